"""What a flush, a retain, a survey or an import did or would do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from ua_memory.llm.ledger import together
from ua_memory.views import output
from ua_memory.views.output import MODEL_BY, Piece, Screen, ago, commit, count, fields, visible

if TYPE_CHECKING:
    from datetime import datetime

    from rich.console import Group

    from ua_memory.bench import Compared, Pair
    from ua_memory.llm.ledger import Estimate
    from ua_memory.records import Fact
    from ua_memory.retain.flush import Flush, FlushedSession
    from ua_memory.retain.queue import QueueEntry, TextItem
    from ua_memory.retain.retain import RetainPreview, RetainResult
    from ua_memory.retain.survey import FoundSession, Survey, WatchedChanges, WatchedPath, WatchResult
    from ua_memory.upkeep.import_ import ImportResult


# -- kept ------------------------------------------------------------------------------------------------
# What a flush kept, as a diff a person likes to read, and as JSON.


NO_MODEL = (
    f"without a model sentences were kept verbatim; a model would choose and word them better {MODEL_BY}"
)
SHORT = 8
"""Characters of a session's id that are shown."""


def show_flushed(screen: Screen, one: FlushedSession) -> None:
    """One session's flush: what came in, then file by file what was added and changed."""
    session = f" session {one.session[:SHORT]}" if one.session else ""
    what = f"{count(one.turns, 'turn')} of {one.client}{session}"
    screen.line(f"{what}: {_counted(one)} (", commit(one.revision), ")")
    for path, facts in groupby(one.facts, key=lambda fact: fact.place.path):
        screen.heading((path, "path"))
        for fact in facts:
            _added(screen, fact)
    for fact in one.reworded:
        screen.item([("  ~ ", "warn")], fact.text, (f"  ^{fact.id}", "id"))
        screen.item([("    ", "faint")], (f"was: {fact.was[0].text}", "faint"))
    for each in one.core:
        screen.heading((each.after.place.path, "path"), "  ", (each.after.name, "strong"))
        screen.changes(each.before.value if each.before else "", each.after.value)
    _refused(screen, one.by, one.refused)
    screen.removed(one.redacted)
    screen.note(*one.notes)


def conclude_flush(
    screen: Screen, found: Flush | None, done: Sequence[FlushedSession], modelled: bool
) -> None:
    """What there is to say at the end: why nothing happened, what was taken out, that a model does better."""
    if not done and (found is None or found.due or not found.notes):
        _nothing(screen, found)
    if found:
        screen.removed(found.redacted, "it was stored or sent")
        screen.note(*found.notes)
    if done and not modelled:
        screen.note(NO_MODEL)


def _nothing(screen: Screen, found: Flush | None) -> None:
    if found is None or found.due is None:
        screen.line("Nothing to flush: no conversation is queued.")
    elif found.silent:
        screen.line("It contains no turns.")
    elif found.looked:
        screen.line(f"{found.due}: an earlier flush has read all of it.")
    else:
        screen.line(f"{found.due}: nothing to do yet. Flush anyway with --force.")


def _saved(one: FlushedSession | RetainResult) -> list[str]:
    known = [f"{len(one.seen_again)} already known"] if one.seen_again else []
    return [f"saved {count(len(one.facts), 'fact')}", *known]


def _counted(one: FlushedSession) -> str:
    parts = _saved(one)
    parts += [f"{len(one.reworded)} reworded"] if one.reworded else []
    parts += [f"{count(len(one.core), 'core block')} changed"] if one.core else []
    return ", ".join(parts)


def _added(screen: Screen, fact: Fact) -> None:
    more: list[Piece] = [(f" #{tag}", "faint") for tag in fact.tags]
    more += [(f"  ({fact.when})", "faint")] if fact.when else []
    screen.item([("  + ", "added")], fact.text, *more, (f"  ^{fact.id}", "id"))


def _refused(screen: Screen, by: str, refused: Sequence[str]) -> None:
    if refused:
        screen.heading((f"Proposed by {by}, and not saved as proposed:", "faint"))
    screen.refused(refused)


def show_again(screen: Screen, sessions: int, turns: int, cost: Estimate | None) -> None:
    """Which sessions a model would read anew, and what it would take."""
    if not sessions:
        screen.line("A model has read every session that is kept and does not wait for its flush.")
        return
    screen.line(f"{count(sessions, 'session')} with {count(turns, 'turn')} that no model has read.")
    if cost:
        screen.line(output.priced(cost))


# -- a dry run -------------------------------------------------------------------------------------------


def show_preview(screen: Screen, found: Flush, cost: Estimate | None) -> None:
    """What would be saved without a model, and what one would cost."""
    if found.preview:
        screen.line(f"{count(len(found.preview), 'fact')} would be saved without a model:")
    for each in found.preview or ():
        screen.item([("  + ", "added")], each.text, (f"  {each.at:%Y-%m-%d}" if each.at else "", "faint"))
    if found.due and not found.turns:
        _nothing(screen, found)
    elif found.due and not found.preview:
        screen.line(f"{found.due}: nothing would be saved.")
    elif not found.preview:
        screen.line("Nothing would be saved.")
    if cost:
        screen.line(output.priced(cost))
    screen.note(*found.notes)


# -- JSON ------------------------------------------------------------------------------------------------


def flushed_shape(found: Flush | None, done: Iterable[FlushedSession], waiting: int) -> dict[str, Any]:
    """The result of a flush; `context`, `client` and `session` only where a transcript was given."""
    return {
        **_of_transcript(found),
        "flushed": [flushed(one) for one in done],
        "waiting": waiting,
        **(fields(found, "redacted", "notes") if found else {"redacted": {}, "notes": []}),
    }


def _of_transcript(found: Flush | None) -> dict[str, Any]:
    if found is None or found.due is None or found.session is None:
        return {}
    context = fields(found.due, "size as tokens", "threshold", "reported", "fires as due")
    return {"context": context, **fields(found, "session.client", "session.session", "turns")}


def flushed(one: FlushedSession) -> dict[str, Any]:
    """One session's flush."""
    return {
        **fields(one, "client", "session", "turns", "by as model"),
        **_facts(one),
        "reworded": [{**fields(fact, "place", "text"), "was": fact.was[0].text} for fact in one.reworded],
        "core": [
            {"before": each.before.value if each.before else "", **fields(each.after, "name", "value")}
            for each in one.core
        ],
        **fields(one, "refused", "revision", "redacted", "usage", "notes"),
    }


def _facts(one: FlushedSession | RetainResult) -> dict[str, Any]:
    """The facts that came of it, and those that were known."""
    each = {"facts": one.facts, "seenAgain": one.seen_again}
    return {name: [fields(fact, "place", "text") for fact in facts] for name, facts in each.items()}


def shape_of_preview(found: Flush, cost: Estimate | None) -> dict[str, Any]:
    """What a dry run found; `estimate` only where a model is configured."""
    said = ("text", "kind", "who", "turn", "quote", "entities", "tags", "when?")
    return {
        **_of_transcript(found),
        "preview": [fields(one, *said) for one in found.preview or ()],
        **fields(found, "redacted", "notes"),
        **output.estimate(cost),
    }


# -- retained --------------------------------------------------------------------------------------------
# What a retain kept, as a person likes to read it, and as JSON.


def show_retained(screen: Screen, done: Sequence[RetainResult], *, modelled: bool) -> None:
    """Texts that were retained."""
    for one in done:
        _one(screen, one)
    if not modelled and any(one.facts and one.item.mode != "chunks" for one in done):
        screen.note(NO_MODEL)


def _one(screen: Screen, one: RetainResult) -> None:
    name = one.item.document_id or "The text"
    if one.repeated:
        screen.line(f"{name} was retained before; nothing changed (", commit(one.revision), ")")
        return
    if not one.item.text:
        screen.line(f"{name} is gone; {count(len(one.removed), 'fact')} removed (", commit(one.revision), ")")
    elif one.item.document_id and not one.read and not one.removed:
        each = "chunk costs" if one.chunks == 1 else "chunks cost"
        screen.line(f"{name} has not changed: its {one.chunks:,} {each} nothing.")
    else:
        screen.line(f"{name}: {_counted_facts(one)} (", commit(one.revision), ")")
    if not (one.facts or one.seen_again or one.removed or one.repeated or one.by) and one.read:
        screen.note("without a model no sentence was selected; to keep it as it is: --mode chunks")
    if one.facts:
        screen.heading((one.path, "path"))
    for fact in one.facts:
        _added(screen, fact)
    for fact in one.removed:
        screen.item([("  - ", "removed")], fact.text, (f"  ^{fact.id}", "id"))
    _refused(screen, one.by, one.refused)
    screen.removed(one.redacted)
    screen.note(*(f"your own line, unchanged in {one.path}: {text[:80]}" for text in one.kept), *one.notes)


def _counted_facts(one: RetainResult) -> str:
    of = "" if one.read == one.chunks else f", {one.read} of them new or changed"
    parts = [f"{count(one.chunks, 'chunk')}{of}"] if one.item.document_id else []
    return ", ".join([*parts, *_saved(one), *([f"{len(one.removed)} gone"] if one.removed else [])])


def offered_shape(items: Sequence[TextItem], keys: Sequence[str], log: str) -> dict[str, Any]:
    """As JSON."""
    both = zip(keys, items, strict=True)
    return {"offered": [{"key": key, **fields(item, "document_id?")} for key, item in both], "log": log}


def show_offered(screen: Screen, items: Sequence[TextItem], log: str) -> None:
    """Texts that were handed over to the background."""
    what = count(len(items), "text") if len(items) > 1 else items[0].document_id or "The text"
    wait = "are saved and wait" if len(items) > 1 else "is saved and waits"
    screen.line(f"{what} {wait} for the model in the background, which writes to ", (log, "path"))


def priced_shape(found: Sequence[RetainPreview]) -> dict[str, Any]:
    """What a dry run found of each text; `estimate` only where a model is configured."""
    rows = (
        fields(one, "item.document_id?", "chunks", "read")
        | {"facts": [fields(fact, "text", "when?") for fact in one.facts]}
        | output.estimate(one.cost)
        for one in found
    )
    return {"preview": list(rows)}


def show_priced(screen: Screen, found: Sequence[RetainPreview]) -> None:
    """What a dry run found."""
    for one in found:
        name = one.item.document_id or "The text"
        screen.line(f"{name}: {count(one.chunks, 'chunk')}, {one.read} to be read")
        if one.facts:
            screen.line(f"{count(len(one.facts), 'fact')} would be saved without a model:")
        for fact in one.facts:
            screen.item([("  + ", "added")], fact.text, (f"  {fact.when}" if fact.when else "", "faint"))
    if cost := together([one.cost for one in found if one.cost]):
        screen.line(output.priced(cost))


# -- JSON ------------------------------------------------------------------------------------------------


def retained_shape(one: RetainResult) -> dict[str, Any]:
    return {
        **fields(one, "item.document_id?", "path", "by as model", "chunks", "read", "repeated"),
        **_facts(one),
        "removed": [fields(fact, "id", "text") for fact in one.removed],
        **fields(one, "kept", "refused", "revision", "redacted", "usage", "notes"),
    }


# -- surveyed --------------------------------------------------------------------------------------------
# Sessions that were found: for a person as a table, for a script as JSON.


SHOWN = 12
"""Lines of a list that a person is shown; `--json` has all."""
SHORT_TITLE = 13
"""Characters of a session's id that are shown: those of a UUID that begins with the time tell two apart."""


# -- for a person ----------------------------------------------------------------------------------------


def show_survey(
    screen: Screen, found: Survey, chosen: Sequence[FoundSession], day: str | None, places: Sequence[str]
) -> None:
    """What sessions there are; `places` are the folders that were searched."""
    within = f" since {day}" if day else ""
    if not chosen:
        screen.line(f"No sessions{within}.")
    else:
        screen.line((f"Sessions{within}", "strong"), (f" in {', '.join(places)}", "faint"))
        screen.line()
        screen.rows(list(_table(chosen)))
        screen.line()
    for text in _aside(found, day):
        screen.item("", (text, "faint"))
    _first(screen, ("  ! ", "warn"), found.problems)
    if chosen and not any(one.new or one.waits for one in chosen):
        screen.line("Nothing new: all of it was flushed before.")


def _table(chosen: Sequence[FoundSession]) -> Iterator[list[Piece]]:
    """A row for each client and project, those with the most that is new first, and their sums."""
    groups: dict[tuple[str, str], list[FoundSession]] = {}
    for one in chosen:
        groups.setdefault((one.session.client, one.project), []).append(one)
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


def _numbers(group: Sequence[FoundSession], waits: bool) -> list[int]:
    new, waiting = sum(len(one.new) for one in group), sum(one.waits for one in group)
    sums = [len(group), sum(one.turns for one in group), sum(one.flushed for one in group)]
    return [*sums, *([waiting] if waits else []), new]


def _cells(numbers: Sequence[int], widths: Sequence[int]) -> Iterator[Piece]:
    for n, (number, width) in enumerate(zip(numbers, widths, strict=True)):
        text = (f"{number:,}" if number else "-").rjust(width)
        yield (text, "good") if number and n == len(numbers) - 1 else text


def _days(group: Iterable[FoundSession]) -> str:
    times = [at for one in group for at in (one.first, one.last) if at]
    days = sorted({f"{at:%Y-%m-%d}" for at in times})
    return "" if not days else days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"


def _aside(found: Survey, day: str | None) -> Iterator[str]:
    left = [count(number, f"{kind} transcript") for kind, number in sorted(found.machines.items())]
    left += [count(found.silent, "session") + " without turns"] if found.silent else []
    left += [f"{count(found.older, 'session')} from before {day}"] if found.older else []
    if left:
        yield f"Skipped: {', '.join(left)}."
    if found.going:
        names = ", ".join(f"{each.client} {each.session[:SHORT_TITLE]}" for each in found.going[:3])
        more = " …" if len(found.going) > 3 else ""
        yield f"{count(len(found.going), 'session')} still open: their hooks capture them ({names}{more})."


def show_one_flushed(screen: Screen, one: FoundSession, flushed: FlushedSession) -> None:
    day = f"{one.last:%Y-%m-%d}" if one.last else "no date   "
    where = f"{one.session.client} {one.project} {one.session.session[:SHORT_TITLE]}".replace("  ", " ")
    details = f"{count(flushed.turns, 'turn')}, {_counted(flushed)} ("
    screen.item([(f"{day}  ", "faint")], f"{where}: {details}", commit(flushed.revision), ")")
    screen.removed(flushed.redacted)
    screen.note(*flushed.notes)


def conclude_survey(screen: Screen, done: Sequence[FlushedSession]) -> None:
    facts, turns = sum(len(one.facts) for one in done), sum(one.turns for one in done)
    again = sum(len(one.seen_again) for one in done)
    more = f", {again:,} already known" if again else ""
    details = f"{count(facts, 'fact')}{more}, of {count(turns, 'turn')} in {count(len(done), 'session')}."
    screen.line(("Kept ", "strong"), details)


# -- JSON ------------------------------------------------------------------------------------------------


def survey_shape(
    dry_run: bool, chosen: Iterable[FoundSession] = (), found: Survey | None = None,
    done: Iterable[FlushedSession] = (), notes: Iterable[str] = (),
) -> dict[str, Any]:  # fmt: skip
    """What was found, and what was flushed of it."""
    return {
        "dry_run": dry_run,
        "sessions": [_session(one) for one in chosen],
        "leftAside": dict(found.machines) if found else {},
        "older": found.older if found else 0,
        "silent": found.silent if found else 0,
        "going": [fields(each, "client", "session") for each in (found.going if found else ())],
        "problems": list(found.problems) if found else [],
        "flushed": [flushed(one) for one in done],
        "notes": list(notes),
    }


def _session(one: FoundSession) -> dict[str, Any]:
    names = ("session.client", "session.session", "transcript.where as path", "turns", "flushed")
    known = ("project?", "session.cwd?", "session.parent?", "first?", "last?")
    return {**fields(one, *names, "waits as waiting"), "new": len(one.new), **fields(one, *known)}


# -- imported --------------------------------------------------------------------------------------------
# What an import did or would do.


def import_shape(done: ImportResult, unread: list[str]) -> dict[str, Any]:
    """The JSON of an import."""
    found = done.found
    taken = ("what", "source", "path", "state", "day?", "why?", "facts?", "prose?")
    return {
        **fields(done, "found.source", "found.name"),
        "dry_run": done.result is None,
        "taken": [fields(each, *taken) for each in done.taken],
        "later": found.later,
        "left": [*found.left, *unread],
        "problems": [str(problem) for problem in found.problems],
        **fields(done, "redacted"),
        **(fields(done, "result.revision", "result.notes") if done.result else {}),
    }


# -- for a person ----------------------------------------------------------------------------------------


def show_imported(screen: Screen, done: ImportResult, unread: list[str]) -> None:
    """The report: what was found and how well, what was not taken, and what to do next."""
    found, changed = done.found, sum(each.state in ("new", "updated") for each in done.taken)
    if done.result is None:
        screen.line(("Would import", "strong"), f" {found.name} ({found.source}):")
    elif changed:
        screen.line("Imported ", (found.name, "strong"), f" ({found.source}): ", commit(done.result.revision))
    else:
        screen.line(f"Nothing new in {found.name} ({found.source}): all of it is already here.")
    screen.rows([["  " + label, text] for label, text in _figures(done)])
    for title, lines in _lists(done, unread):
        if lines:
            screen.line((title, "strong"))
            _first(screen, "  ", lines)
    _next(screen, done, changed)
    screen.note(*(done.result.notes if done.result else ()))


def _figures(done: ImportResult) -> Iterator[tuple[str, str]]:
    names = {"block": "core memory", "note": "notes", "item": "records", "model": "models", "page": "pages"}
    words = {"new": "new", "same": "already here", "updated": "updated", "left": "not imported"}
    for what, label in names.items():
        words["left"] = "in a note instead" if what == "block" else "not imported"
        parts = [f"{n:,} {word}" for state, word in words.items() if (n := done.count(what, state))]  # type: ignore[arg-type]
        if parts:
            yield label, ", ".join(parts)
    fresh = [t for t in done.taken if t.state in ("new", "updated") and (t.what == "note" or t.facts)]
    if fresh:
        facts, prose = sum(t.facts for t in fresh), sum(t.prose for t in fresh)
        beliefs = done.count("item", "new") - sum(t.what == "item" for t in fresh)
        more = f", {count(beliefs, 'observation or opinion', 'observations and opinions')}" if beliefs else ""
        yield "in them", f"{count(facts, 'fact')}, {count(prose, 'passage')} of prose{more}"
        days = sorted(t.day for t in fresh if t.day)
        bare = len(fresh) - len(days)
        span = f"{days[0]} to {days[-1]}" if days else "none found"
        yield "days", span + (f"; {bare:,} without a day" if bare else "")
    if done.redacted:
        kinds = ", ".join(f"{kind} {number}" for kind, number in sorted(done.redacted.items()))
        yield "secrets", f"{'removed' if done.result else 'would be removed'}: {kinds}"


def _lists(done: ImportResult, unread: list[str]) -> Iterator[tuple[str, list[str]]]:
    left = [t for t in done.taken if t.state == "left"]
    yield "Not in core memory, but in a note:", [f"{t.source}: {t.why}" for t in left if t.what == "block"]
    yield "Not imported:", [f"{t.source}: {t.why}" for t in left if t.what != "block"]
    yield "Updated:", [t.path for t in done.taken if t.state == "updated"]
    yield "Skipped:", [*done.found.left, *unread]
    yield "Unreadable or read as plain text:", [str(problem) for problem in done.found.problems]


def _first(screen: Screen, mark: Piece, lines: Sequence[str]) -> None:
    for line in lines[:SHOWN]:
        screen.item([mark], line)
    if len(lines) > SHOWN:
        screen.line((f"  … and {len(lines) - SHOWN:,} more (--json lists all)", "faint"))


def _next(screen: Screen, done: ImportResult, changed: int) -> None:
    if done.found.later:
        screen.line(f"Not imported: {count(done.found.later, 'older or undated note')}; --all imports them.")
    if done.result is None:
        screen.line(("Nothing was changed. Without --dry-run this is one commit.", "faint"))
    elif changed:
        screen.line(("Next: ua-memory search WORDS; ua-memory undo reverses it.", "faint"))


# -- waiting ---------------------------------------------------------------------------------------------


def waiting_what(one: QueueEntry) -> str:
    """What waits, in words."""
    item: TextItem | None = getattr(one, "item", None)
    if item is None:
        return count(len(one.turns), "turn")
    return f"{item.document_id or 'a text'} ({count(len(item.text), 'character')})"


def waiting_why(one: QueueEntry) -> str:
    """Why a session waits still, and what comes next."""
    if one.broken:
        return f"set aside: {one.broken}"
    details = f"failed {count(one.tries, 'time')}, last: {one.reason}"
    if one.aside:
        return f"set aside: {details}; try again: ua-memory queue retry {one.key}"
    return details


def show_waiting(screen: Screen, one: QueueEntry, now: datetime) -> None:
    """What waits, since when, and why."""
    since = ago(one.since.astimezone(now.tzinfo), now) if one.since else "at an unknown time"
    how = "captured since" if one.gathers(now) else "queued"
    screen.item([(one.key, "id"), "  "], f"{waiting_what(one)}, {how} {since}")
    if one.reason:
        screen.item("  ", (waiting_why(one), "bad" if one.aside else "warn"))


def waiting_shape(one: QueueEntry) -> dict[str, Any]:
    item: TextItem | None = getattr(one, "item", None)
    known = ("since?", "reason?", "size as tokens?", "open as gathers?", "aside?", "tried.again?")
    return {
        **fields(one, "key", "session.client", "session.session"),
        "turns": len(one.turns),
        **fields(one, "tries"),
        **({**fields(item, "document_id"), "characters": len(item.text)} if item else {}),
        **fields(one, *known),
    }


# -- watched ---------------------------------------------------------------------------------------------


def show_caught(screen: Screen, caught: WatchResult, modelled: bool) -> None:
    """What a look at the watched paths retained, and what it left for later."""
    show_retained(screen, caught.done, modelled=modelled)
    if not caught.done:
        waits = "Nothing to read yet: recent saves wait until they settle."
        screen.line(waits if caught.young else "Nothing has changed.")
    if caught.young:
        young = count(len(caught.young), "file")
        screen.note(f"{young} saved just now; to read them: ua-memory watch run --now")
    for name, why in caught.failed:
        screen.note(f"not read: {name}: {why}")
    for name in caught.gone:
        screen.note(f"{name} no longer exists; its facts stay until: ua-memory watch run --accept")
    for name in caught.missing:
        screen.note(f"{name} is missing (an unmounted disk?); its documents stay")


def show_added(
    screen: Screen, added: Sequence[tuple[WatchedPath, WatchedChanges]], quiet: float | None
) -> None:
    """Paths that are watched now. `quiet`: seconds after a save until the daemon reads; None without one."""
    for one, look in added:
        files = count(len(look.ready) + len(look.young), "file")
        screen.line("Watching ", (one.path, "path"), f": {files} to be read.")
    if quiet is not None:
        screen.line(f"The daemon reads them, and again {quiet:g} seconds after each save.")
    screen.line("Now, or without a daemon: ua-memory watch run; --dry-run shows the price.")


def show_watched(screen: Screen, found: tuple[WatchedPath, WatchedChanges]) -> None:
    """What is watched, and what has changed there."""
    one, look = found
    changed = len(look.ready) + len(look.young)
    more = f", {changed} new or changed" if changed else ""
    screen.line((one.path, "path"), f"  {count(len(one.files), 'document')}{more}")
    if look.missing:
        screen.line("  ", ("missing; its documents stay", "warn"))
    for name, stood in one.files.items():
        if stood.error:
            screen.item("  ", (f"{name}: {stood.error}", "warn"))
    for name in look.gone:
        gone = f"{name} no longer exists; its facts stay until: ua-memory watch run --accept"
        screen.item("  ", (gone, "warn"))


def watched_shape(found: tuple[WatchedPath, WatchedChanges]) -> dict[str, Any]:
    """A watched path; `missing` and `failed` only where there is such."""
    one, look = found
    failed = [{"path": name, "reason": stood.error} for name, stood in one.files.items() if stood.error]
    known = {"path": one.path, "files": len(one.files), "changed": sorted((*look.ready, *look.young))}
    return known | fields(look, "gone") | ({"failed": failed} if failed else {}) | fields(look, "missing?")


def caught_shape(caught: WatchResult) -> dict[str, Any]:
    return {
        "retained": [retained_shape(one) for one in caught.done],
        **fields(caught, "young"),
        "failed": [{"path": name, "reason": why} for name, why in caught.failed],
        **fields(caught, "gone", "missing"),
    }


# -- compared --------------------------------------------------------------------------------------------

SHOWN_RESULTS = 3
"""Results of each side that a person sees; `--json` has all."""

ROWS = 3
"""Lines of each result."""

NARROW = 70
"""Columns below which the sides stand one after the other."""


def comparison_shape(done: Compared) -> dict[str, Any]:
    """The JSON of a comparison."""
    return {
        "old": fields(done.old, "name", "note"),
        "seconds": {"old": round(done.seconds[0], 4), "ours": round(done.seconds[1], 4)},
        "byWordsAlone": done.by_words,
        "compared": [_pair(done, pair) for pair in done.pairs],
    }


def _pair(done: Compared, pair: Pair) -> dict[str, Any]:
    ours = [_result(done.source(h), h.item.line, h.item.end, h.score, h.snippet) for h in pair.ours]
    old = [_result(each.path, each.line, each.end, each.score, each.text) for each in pair.old]
    return {"query": pair.query, "old": old, "ours": ours}


def _result(path: str, line: int, end: int, score: float, text: str) -> dict[str, Any]:
    where = {"startLine": line, "endLine": end} if line else {}
    return {"path": path, **where, "score": round(score, 4), "snippet": text[:700]}


def show_comparison(screen: Screen, done: Compared) -> None:
    """Both sides of each query, and what that comes to."""
    screen.item([("Old:  ", "strong")], f"{done.old.name} ({done.old.note})")
    less = f" ({done.by_words:,} texts, far from all queries, by keywords only)" if done.by_words else ""
    how = f"ua-memory, keywords and meaning{less}, from a temporary copy"
    screen.item([("Ours: ", "strong")], how)
    for pair in done.pairs:
        screen.line("")
        screen.item([("? ", "strong")], (pair.query, "strong"))
        old = [(f"{each.path}:{each.line}" if each.line else each.path, each.text) for each in pair.old]
        _sides(screen, old, [(done.source(hit), hit.snippet) for hit in pair.ours])
    screen.line("")
    _sum(screen, done)


def _sides(screen: Screen, old: list[tuple[str, str]], ours: list[tuple[str, str]]) -> None:
    """Both sides next to each other, one after the other where that is too narrow."""
    from rich import box
    from rich.table import Table

    width = min(screen.width, 160)
    table = Table(box=box.MINIMAL, show_header=False, show_edge=False, pad_edge=False, width=width)
    if width < NARROW:
        table.add_row("old", _side(old, width - 7))
        table.add_row("ours", _side(ours, width - 7))
    else:
        half = (width - 3) // 2
        table.add_column(width=half)
        table.add_row(_side(old, half), _side(ours, half))
    screen.console().print(table)


def _side(results: list[tuple[str, str]], width: int) -> Group:
    """The first results: where each stands, and some rows of its text."""
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    rows: list[Padding | Text] = []
    for number, (place, text) in enumerate(results[:SHOWN_RESULTS], 1):
        rows.append(Text(f"{number}. {visible(place)}", overflow="fold"))
        words = Text(visible(" ".join(text.split())), overflow="fold")
        words.truncate(ROWS * (width - 4), overflow="ellipsis")
        rows.append(Padding(words, (0, 0, 0, 3)))
    return Group(*(rows or [Text("(nothing)")]))


def _sum(screen: Screen, done: Compared) -> None:
    both = sum(bool(p.old) and bool(p.ours) for p in done.pairs)
    alone = sum(bool(p.old) and not p.ours for p in done.pairs)
    ours = sum(bool(p.ours) and not p.old for p in done.pairs)
    same = sum(p.old[0].path == done.source(p.ours[0]) for p in done.pairs if p.old and p.ours)
    screen.line(
        f"{count(len(done.pairs), 'query', 'queries')}: both found something for {both:,} "
        f"(the same file first: {same:,}), only the old for {alone:,}, only ours for {ours:,}."
    )
    there, here = (f"{1000 * each:,.0f} ms" for each in done.seconds)
    screen.line((f"Median time of a query: {there} there, {here} here. Nothing was kept.", "faint"))
