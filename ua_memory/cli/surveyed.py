"""Sessions that were found: for a person as a table, for a script as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ua_memory.cli import finding, homes
from ua_memory.cli.format import Piece, Screen, commit, count, note

if TYPE_CHECKING:
    from ua_memory.cli.call import Call
    from ua_memory.memory import Flushed, Survey, Surveyed

SHOWN = 12
"""Lines of a list that a person is shown; `--json` has all."""
SHORT = 13
"""Characters of a session's id that are shown: those of a UUID that begins with the time tell two apart."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked for; an empty `since` is all, no `clients` are all of them, no `path` the machine."""

    path: str | None
    since: str
    clients: tuple[str, ...]
    project: str | None
    dry_run: bool


def family(one: Surveyed) -> str:
    """The client whose folder a session is kept in: Clawdbot is OpenClaw's older name."""
    return {"clawdbot": "openclaw"}.get(one.session.client, one.session.client)


def project(one: Surveyed) -> str:
    """The project a session was held in, '' if it does not say."""
    from ua_memory.paths import project_of

    return project_of(Path(one.session.cwd)) if one.session.cwd else ""


# -- for a person ----------------------------------------------------------------------------------------


def show(call: Call, asked: Asked, found: Survey, chosen: Sequence[Surveyed], day: str | None) -> None:
    screen = Screen(call)
    within = f" since {day}" if day else ""
    if not chosen:
        screen.line(f"No sessions{within}.")
    else:
        screen.line((f"Sessions{within}", "strong"), _where(call, asked))
        screen.line()
        screen.rows(list(_table(chosen)))
        screen.line()
    for text in _aside(found, day):
        screen.item("", (text, "faint"))
    lines = found.problems
    for line in lines[:SHOWN]:
        screen.item([("  ! ", "warn")], line)
    if len(lines) > SHOWN:
        screen.line((f"  … and {len(lines) - SHOWN:,} more (--json lists all)", "faint"))
    if chosen and not any(one.new or one.waits for one in chosen):
        screen.line("Nothing new: what was said in them was flushed before.")


def _where(call: Call, asked: Asked) -> Piece:
    if asked.path is not None:
        return f" in {asked.path}"
    places = finding.places(call, asked.clients or homes.CLIENTS)
    names = dict.fromkeys(_short(call, folder) for _, folder in places)
    return (f" in {', '.join(names)}", "faint")


def _short(call: Call, folder: Path) -> str:
    return f"~/{folder.relative_to(call.home)}" if folder.is_relative_to(call.home) else str(folder)


def _table(chosen: Sequence[Surveyed]) -> Iterator[list[Piece]]:
    """A row for each client and project, those with the most that is new first, and their sums."""
    groups: dict[tuple[str, str], list[Surveyed]] = {}
    for one in chosen:
        groups.setdefault((one.session.client, project(one)), []).append(one)
    waits = any(one.waits for one in chosen)
    numbers = {key: _numbers(group, waits) for key, group in groups.items()}
    total = _numbers(chosen, waits)
    head = ["sessions", "turns", "flushed", *(["waiting"] if waits else []), "new"]
    shown = [[f"{n:,}" if n else "-" for n in row] for row in (*numbers.values(), total)]
    widths = [max(len(title), *(len(row[n]) for row in shown)) for n, title in enumerate(head)]
    faint: list[Piece] = [("  client", "faint"), ("project", "faint")]
    yield [*faint, *((t.rjust(w), "faint") for t, w in zip(head, widths, strict=True)), ("days", "faint")]
    for key in sorted(groups, key=lambda key: (key[0], -numbers[key][-1], key[1])):
        yield [f"  {key[0]}", (key[1] or "-", "path"), *_cells(numbers[key], widths), _days(groups[key])]
    if len(groups) > 1:
        yield ["  in all", "", *_cells(total, widths), _days(chosen)]


def _numbers(group: Sequence[Surveyed], waits: bool) -> list[int]:
    new, waiting = sum(len(one.new) for one in group), sum(one.waits for one in group)
    sums = [len(group), sum(one.turns for one in group), sum(one.flushed for one in group)]
    return [*sums, *([waiting] if waits else []), new]


def _cells(numbers: Sequence[int], widths: Sequence[int]) -> Iterator[Piece]:
    for n, (number, width) in enumerate(zip(numbers, widths, strict=True)):
        text = (f"{number:,}" if number else "-").rjust(width)
        yield (text, "good") if number and n == len(numbers) - 1 else text


def _days(group: Iterable[Surveyed]) -> str:
    times = [at for one in group for at in (one.first, one.last) if at]
    days = sorted({f"{at:%Y-%m-%d}" for at in times})
    return "" if not days else days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"


def _aside(found: Survey, day: str | None) -> Iterator[str]:
    left = [count(number, f"{kind} transcript") for kind, number in sorted(found.machines.items())]
    left += [count(found.silent, "session") + " without a word"] if found.silent else []
    left += [f"{count(found.older, 'session')} from before {day}"] if found.older else []
    if left:
        yield f"Left aside: {', '.join(left)}."
    if found.going:
        names = ", ".join(f"{each.client} {each.session[:SHORT]}" for each in found.going[:3])
        more = " …" if len(found.going) > 3 else ""
        yield f"{count(len(found.going), 'session')} that still run: their hooks keep them ({names}{more})."


def kept(call: Call, screen: Screen, one: Surveyed, flushed: Flushed) -> None:
    day = f"{one.last:%Y-%m-%d}" if one.last else "no date   "
    again = f", {len(flushed.seen_again)} seen again" if flushed.seen_again else ""
    again += f", {count(len(flushed.core), 'core block')} changed" if flushed.core else ""
    where = f"{one.session.client} {project(one)} {one.session.session[:SHORT]}".replace("  ", " ")
    told = f"{count(flushed.turns, 'turn')}, kept {count(len(flushed.facts), 'fact')}{again} ("
    screen.item([(f"{day}  ", "faint")], f"{where}: {told}", commit(flushed.revision), ")")
    for kind, number in flushed.redacted.items():
        note(call, f"taken out before writing: {kind}{f' ({number} times)' if number > 1 else ''}")
    for text in flushed.notes:
        note(call, text)


def conclude(screen: Screen, done: Sequence[Flushed]) -> None:
    facts, turns = sum(len(one.facts) for one in done), sum(one.turns for one in done)
    again = sum(len(one.seen_again) for one in done)
    more = f", {again:,} seen again" if again else ""
    told = f"{count(facts, 'fact')}{more}, of {count(turns, 'turn')} in {count(len(done), 'session')}."
    screen.line(("Kept ", "strong"), told)


# -- JSON ------------------------------------------------------------------------------------------------


def shape(
    asked: Asked,
    chosen: Iterable[Surveyed],
    found: Survey | None,
    done: Iterable[Flushed],
    notes: Iterable[str],
) -> dict[str, Any]:
    """What was found, and what was flushed of it."""
    from ua_memory.cli.kept import flushed

    return {
        "dry_run": asked.dry_run,
        "sessions": [_session(one) for one in chosen],
        "leftAside": dict(found.machines) if found else {},
        "older": found.older if found else 0,
        "silent": found.silent if found else 0,
        "going": [{"client": s.client, "session": s.session} for s in (found.going if found else ())],
        "problems": list(found.problems) if found else [],
        "flushed": [flushed(one) for one in done],
        "notes": list(notes),
    }


def _session(one: Surveyed) -> dict[str, Any]:
    from ua_memory.cli import shapes

    session = one.session
    known = {"project": project(one), "cwd": session.cwd, "parent": session.parent}
    known |= {
        "first": one.first.isoformat() if one.first else "",
        "last": one.last.isoformat() if one.last else "",
    }
    return {
        "client": session.client,
        "session": session.session,
        "path": one.transcript.where,
        "turns": one.turns,
        "flushed": one.flushed,
        "waiting": one.waits,
        "new": len(one.new),
        **shapes.without_empty(known),
    }
