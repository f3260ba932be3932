"""`ua-memory import sessions`: find transcripts on this machine, tell what is in them, flush what is new."""

from __future__ import annotations

from datetime import date, datetime, time
from pathlib import Path
from typing import TYPE_CHECKING

from ua_memory.cli import context, finding, homes, sessions, surveyed
from ua_memory.cli.format import Screen, count, emit, note
from ua_memory.errors import Usage

if TYPE_CHECKING:
    from ua_memory.cli.call import Call
    from ua_memory.memory import Flushed, Memory, Survey, Surveyed


def run(call: Call, memory: Memory, asked: surveyed.Asked) -> None:
    """Find, tell and, unless it is a dry run, flush."""
    from ua_memory.cli.hearing import take_up
    from ua_memory.cli.times import parse_day

    unknown = set(asked.clients) - set(homes.CLIENTS)
    if unknown:
        known = ", ".join(homes.CLIENTS)
        if "gemini" in unknown:
            raise Usage(
                "Gemini CLI's transcripts are not read: its sessions are kept by hooks, as they happen",
                mend="ua-memory install gemini",
            )
        raise Usage(f"no client {min(unknown)!r} whose sessions are known", mend=f"known are: {known}")
    if not memory.config.enabled:
        _off(call, memory, asked)
        return
    now = memory.store.now()
    day = parse_day(asked.since or None, "--since", now.date())
    since = datetime.combine(date.fromisoformat(day), time(), now.tzinfo) if day else None
    if not asked.dry_run:  # what hooks heard of ended sessions goes before what their transcripts have
        take_up(memory, lambda text: note(call, text), model=bool(call.endpoint))
    found = _survey(call, memory, asked, since)
    chosen = [one for one in found.sessions if _fits(call, one, asked)]
    fresh = [one for one in chosen if one.new or one.waits]
    if not call.as_json:
        surveyed.show(call, asked, found, chosen, day)
    if asked.dry_run:
        _preview(call, memory, asked, found, chosen, fresh)
    else:
        _flush(call, memory, asked, found, chosen, fresh)


def _off(call: Call, memory: Memory, asked: surveyed.Asked) -> None:
    off = memory.flush().notes  # it says so, and does nothing
    if call.as_json:
        emit(call, surveyed.shape(asked, (), None, (), off))
    for text in off:
        note(call, text)


def _survey(call: Call, memory: Memory, asked: surveyed.Asked, since: datetime | None) -> Survey:
    from ua_memory.cli.progress import progress

    if asked.path is None:
        transcripts = list(finding.on_machine(call, asked.clients or homes.CLIENTS))
    else:
        transcripts = list(finding.below(context.absolute(call, asked.path)))
    listed = sessions.listed(memory.store.bank.pending)
    going = {
        (str(each.get("client")), str(each.get("session")))
        for path, each in listed
        if not sessions.over(path, each)
    }
    with progress(call, "Reading sessions") as tell:
        return memory.survey(transcripts, since=since, going=going, tell=tell)


def _fits(call: Call, one: Surveyed, asked: surveyed.Asked) -> bool:
    if asked.clients and surveyed.family(one) not in asked.clients:
        return False
    if asked.project is None:
        return True
    folder = Path(one.session.cwd) if one.session.cwd else None
    named = context.absolute(call, asked.project).resolve()
    below = folder is not None and named in (folder, *folder.parents)
    return below or asked.project.casefold() in (
        surveyed.project(one).casefold(),
        folder.name.casefold() if folder else "",
    )


def _preview(
    call: Call,
    memory: Memory,
    asked: surveyed.Asked,
    found: Survey,
    chosen: list[Surveyed],
    fresh: list[Surveyed],
) -> None:
    from ua_memory.cli.kept import costs, estimate

    kept, cost = memory.preview_sessions(fresh, model=call.endpoint)
    if call.as_json:
        more = {"preview": kept, **({"estimate": estimate(cost)} if cost else {})}
        emit(call, {**surveyed.shape(asked, chosen, found, (), ()), **more})
        return
    screen = Screen(call)
    if fresh:
        screen.line(f"Without a model {count(kept, 'fact')} would be kept.")
        if cost:
            screen.line(costs(cost))
        screen.line(("Nothing was changed. Without --dry-run they are flushed, each in a commit.", "faint"))


def _flush(
    call: Call,
    memory: Memory,
    asked: surveyed.Asked,
    found: Survey,
    chosen: list[Surveyed],
    fresh: list[Surveyed],
) -> None:
    from ua_memory.cli import kept

    done: list[Flushed] = []
    screen = Screen(call)
    try:
        for one, flushed in memory.bring_sessions(fresh, model=call.endpoint):
            done.append(flushed)
            if not call.as_json:  # a line as each is done, which is all the progress one needs to see
                surveyed.kept(call, screen, one, flushed)
                call.stdout.flush()
    finally:  # what was flushed before another one failed is told in any case
        if call.as_json:
            emit(call, surveyed.shape(asked, chosen, found, done, ()))
        elif done:
            surveyed.conclude(screen, done)
            if not call.endpoint:
                note(call, kept.NO_MODEL)
