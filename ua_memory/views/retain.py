"""Flush, retain, survey, import, queue and watch: results as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from ua_memory.llm.ledger import sum_estimates
from ua_memory.text.wording import MODEL_HINT, shorten
from ua_memory.views import output
from ua_memory.views.output import Screen, Styled, ago, commit_label, count, fields, id_label

if TYPE_CHECKING:
    from datetime import datetime

    from ua_memory.bench import Compared, Pair
    from ua_memory.llm.ledger import Estimate
    from ua_memory.records import Fact
    from ua_memory.retain.flush import Flush, FlushedSession
    from ua_memory.retain.queue import QueueEntry, TextItem
    from ua_memory.retain.retain import RetainPreview, RetainResult
    from ua_memory.retain.survey import FoundSession, Survey, WatchedChanges, WatchedPath, WatchResult
    from ua_memory.upkeep.import_ import ImportResult


# -- flush -----------------------------------------------------------------------------------------------


NO_MODEL = (
    f"sentences were saved verbatim, without a model; a model selects and words facts better {MODEL_HINT}"
)
ID_LENGTH = 8
"""Characters of a session's id that are shown."""


def show_flush(screen: Screen, one: FlushedSession) -> None:
    """Print the flush of a session: how much it read and saved, then the changes by file."""
    session = f" session {one.session[:ID_LENGTH]}" if one.session else ""
    what = f"{count(one.turns, 'turn')} of {one.client}{session}"
    screen.line(f"{what}: {_flush_counts(one)} (", commit_label(one.revision), ")")
    _show_added_facts(screen, one.facts)
    for fact in one.reworded:
        screen.item([("  ~ ", "warn")], fact.text, id_label(fact.id))
        screen.item([("    ", "faint")], (f"was: {fact.was[0].text}", "faint"))
    for each in one.core:
        screen.heading((each.after.place.path, "path"), "  ", (each.after.name, "strong"))
        screen.changes(each.before.value if each.before else "", each.after.value)
    screen.refused(one.refused, one.by)
    screen.redacted(one.redacted)
    screen.note(*one.notes)


def conclude_flush(
    screen: Screen, found: Flush | None, done: Sequence[FlushedSession], modelled: bool
) -> None:
    """Print why nothing was flushed, what was redacted, and that a model would do better."""
    if not done and (found is None or found.due or not found.notes):
        _show_nothing_flushed(screen, found)
    if found:
        screen.redacted(found.redacted, "it was stored or sent")
        screen.note(*found.notes)
    if done and not modelled:
        screen.note(NO_MODEL)


def _show_nothing_flushed(screen: Screen, found: Flush | None) -> None:
    if found is None or found.due is None:
        screen.line("Nothing to flush: no conversation is queued.")
    elif found.silent:
        screen.line("The transcript contains no turns.")
    elif found.was_read:
        screen.line(f"{found.due}: an earlier flush has read all of it.")
    else:
        screen.line(f"{found.due}: nothing to do yet. Flush anyway with --force.")


def _saved_counts(one: FlushedSession | RetainResult) -> list[str]:
    known = [f"{len(one.seen_again)} already known"] if one.seen_again else []
    return [f"saved {count(len(one.facts), 'fact')}", *known]


def _flush_counts(one: FlushedSession) -> str:
    parts = _saved_counts(one)
    parts += [f"{len(one.reworded)} reworded"] if one.reworded else []
    parts += [f"{count(len(one.core), 'core block')} changed"] if one.core else []
    return ", ".join(parts)


def _show_added_fact(screen: Screen, fact: Fact) -> None:
    more = "".join(f" #{tag}" for tag in fact.tags) + (f"  ({fact.when})" if fact.when else "")
    screen.item([("  + ", "added")], fact.text, (more, "faint"), id_label(fact.id))


def _show_added_facts(screen: Screen, found: Sequence[Fact]) -> None:
    for path, facts in groupby(found, key=lambda fact: fact.place.path):
        screen.heading((path, "path"))
        for fact in facts:
            _show_added_fact(screen, fact)


def show_unread_sessions(screen: Screen, sessions: int, turns: int, cost: Estimate | None) -> None:
    """Print how many sessions no model has read yet, and what it would cost."""
    if not sessions:
        screen.line("A model has already read every saved session that is not queued for a flush.")
        return
    screen.line(f"{count(sessions, 'session')} with {count(turns, 'turn')} that no model has read.")
    if cost:
        screen.line(output.estimate_text(cost))


def show_flush_preview(screen: Screen, found: Flush, cost: Estimate | None) -> None:
    """Print what a flush without a model would save, and what one with it would cost."""
    if found.preview:
        screen.line(f"{count(len(found.preview), 'fact')} would be saved without a model:")
    for each in found.preview or ():
        screen.item([("  + ", "added")], each.text, (f"  {each.at:%Y-%m-%d}" if each.at else "", "faint"))
    if found.due and not found.turns:
        _show_nothing_flushed(screen, found)
    elif found.due and not found.preview:
        screen.line(f"{found.due}: nothing would be saved.")
    elif not found.preview:
        screen.line("Nothing would be saved.")
    for text, why in found.unkept:
        screen.item([("  - ", "removed")], text, (f"  ({why})", "faint"))
    if cost:
        screen.line(output.estimate_text(cost))
    screen.note(*found.notes)


# -- JSON ------------------------------------------------------------------------------------------------


def flush_json(found: Flush | None, done: Iterable[FlushedSession], waiting: int) -> dict[str, Any]:
    """The result of a flush as JSON; `context`, `client` and `session` only if a transcript was given."""
    return {
        **_transcript_json(found),
        "flushed": [flushed_session_json(one) for one in done],
        "waiting": waiting,
        **(fields(found, "redacted", "notes") if found else {"redacted": {}, "notes": []}),
    }


def _transcript_json(found: Flush | None) -> dict[str, Any]:
    if found is None or found.due is None or found.session is None:
        return {}
    context = fields(found.due, "size as tokens", "threshold", "reported", "is_due as due")
    return {"context": context, **fields(found, "session.client", "session.session", "turns")}


def flushed_session_json(one: FlushedSession) -> dict[str, Any]:
    """The flush of a session as JSON."""
    reworded = ("reworded", lambda fact: {**fields(fact, "place", "text"), "was": fact.was[0].text})
    known = ("refused", "revision", "redacted", "usage", "notes")
    names = ("client", "session", "turns", "by as model", *FACTS)
    return fields(one, *names, reworded, ("core", _core_change_json), *known)


def _core_change_json(one: Any) -> dict[str, Any]:
    return {"before": one.before.value if one.before else "", **fields(one.after, "name", "value")}


FACTS = (("facts", ("place", "text")), ("seen_again", ("place", "text")))
"""The new facts, and those that were known already."""


def flush_preview_json(found: Flush, cost: Estimate | None) -> dict[str, Any]:
    """A dry run of flush as JSON; `estimate` only if a model is configured."""
    said = ("text", "kind", "who", "turn", "quote", "entities", "tags", "when?")
    return {
        **_transcript_json(found),
        "preview": [fields(one, *said) for one in found.preview or ()],
        **fields(found, ("unkept?", ("text", "why")), "redacted", "notes"),
        **output.estimate_json(cost),
    }


# -- retain ----------------------------------------------------------------------------------------------


def show_retain(screen: Screen, one: RetainResult) -> None:
    """Print what was saved of a text."""
    name, label = one.item.document_id or "The text", commit_label(one.revision)
    if one.repeated:
        screen.line(f"{name} was retained before; nothing changed (", label, ")")
        return
    if not one.item.text:
        screen.line(f"{name} is gone; {count(len(one.removed), 'fact')} removed (", label, ")")
    elif one.item.document_id and not one.read and not one.removed:
        each = "chunk costs" if one.chunks == 1 else "chunks cost"
        screen.line(f"{name} has not changed: its {one.chunks:,} {each} nothing.")
    else:
        screen.line(f"{name}: {_retain_counts(one)} (", label, ")")
    if not (one.facts or one.seen_again or one.removed or one.repeated or one.by) and one.read:
        screen.note("without a model no sentence was selected; to keep it as it is: --mode chunks")
    _show_added_facts(screen, one.facts)
    for fact in one.removed:
        screen.item([("  - ", "removed")], fact.text, id_label(fact.id))
    screen.refused(one.refused, one.by)
    screen.redacted(one.redacted)
    screen.note(*(f"your own line, unchanged in {one.path}: {text[:80]}" for text in one.kept), *one.notes)


def _retain_counts(one: RetainResult) -> str:
    of = "" if one.read == one.chunks else f", {one.read} of them new or changed"
    parts = [f"{count(one.chunks, 'chunk')}{of}"] if one.item.document_id else []
    return ", ".join([*parts, *_saved_counts(one), *([f"{len(one.removed)} gone"] if one.removed else [])])


def queued_texts_json(items: Sequence[TextItem], keys: Sequence[str], log: str) -> dict[str, Any]:
    """The queued texts as JSON; `log` is the file that the background process writes to."""
    rows = [{"key": key, **fields(item, "document_id?")} for key, item in zip(keys, items, strict=True)]
    return {"offered": rows, "log": log}


def show_queued_texts(screen: Screen, items: Sequence[TextItem], log: str) -> None:
    """Print that the texts wait for the background process."""
    what = count(len(items), "text") if len(items) > 1 else items[0].document_id or "The text"
    wait = "are saved and wait" if len(items) > 1 else "is saved and waits"
    screen.line(f"{what} {wait} for the model in the background, which writes to ", (log, "path"))


def retain_preview_json(found: Sequence[RetainPreview]) -> dict[str, Any]:
    """A dry run of retain as JSON; `estimate` only if a model is configured."""
    names = ("item.document_id?", "chunks", "read", ("facts", ("text", "when?")))
    return {"preview": [fields(one, *names) | output.estimate_json(one.cost) for one in found]}


def show_retain_preview(screen: Screen, found: Sequence[RetainPreview]) -> None:
    """Print a dry run of retain."""
    for one in found:
        name = one.item.document_id or "The text"
        screen.line(f"{name}: {count(one.chunks, 'chunk')}, {one.read} to be read")
        if one.facts:
            screen.line(f"{count(len(one.facts), 'fact')} would be saved without a model:")
        for fact in one.facts:
            screen.item([("  + ", "added")], fact.text, (f"  {fact.when}" if fact.when else "", "faint"))
    if cost := sum_estimates([one.cost for one in found if one.cost]):
        screen.line(output.estimate_text(cost))


def retain_json(one: RetainResult) -> dict[str, Any]:
    names = ("item.document_id?", "path", "by as model", "chunks", "read", "repeated", *FACTS)
    known = ("kept", "refused", "revision", "redacted", "usage", "notes")
    return fields(one, *names, ("removed", ("id", "text")), *known)


# -- survey of sessions ----------------------------------------------------------------------------------


SHOWN_LINES = 12
"""Lines of a list that are shown; `--json` has all."""
SURVEY_ID_LENGTH = 13
"""Characters of a session's id that are shown: enough to tell UUIDs apart that begin with the time."""


def show_survey(
    screen: Screen, found: Survey, chosen: Sequence[FoundSession], day: str | None, folders: Sequence[str]
) -> None:
    """Print the sessions found in `folders`; `day` is the first one asked for."""
    within = f" since {day}" if day else ""
    if not chosen:
        screen.line(f"No sessions{within}.")
    else:
        screen.line((f"Sessions{within}", "strong"), (f" in {', '.join(folders)}", "faint"))
        screen.line()
        screen.rows(list(_survey_rows(chosen)))
        screen.line()
    for text in _skipped_texts(found, day):
        screen.item("", (text, "faint"))
    _show_first(screen, ("  ! ", "warn"), found.problems)
    if chosen and not any(one.new or one.queued for one in chosen):
        screen.line("Nothing new: all of it was flushed before.")


def _survey_rows(chosen: Sequence[FoundSession]) -> Iterator[list[Styled]]:
    """The heads, a row for each client and project, those with the most new turns first, and the totals."""
    groups: dict[tuple[str, str], list[FoundSession]] = {}
    for one in chosen:
        groups.setdefault((one.session.client, one.project), []).append(one)
    waits = any(one.queued for one in chosen)
    numbers = {key: _survey_sums(group, waits) for key, group in groups.items()}
    total = _survey_sums(chosen, waits)
    head = ["sessions", "turns", "flushed", *(["waiting"] if waits else []), "new"]
    shown = [[f"{n:,}" if n else "-" for n in row] for row in (*numbers.values(), total)]
    widths = [max(len(title), *(len(row[n]) for row in shown)) for n, title in enumerate(head)]
    faint: list[Styled] = [("  client", "faint"), ("project", "faint")]
    yield [*faint, *((t.rjust(w), "faint") for t, w in zip(head, widths, strict=True)), ("days", "faint")]
    for key in sorted(groups, key=lambda key: (key[0], -numbers[key][-1], key[1])):
        cells = _number_cells(numbers[key], widths)
        yield [f"  {key[0]}", (key[1] or "-", "path"), *cells, _day_span(groups[key])]
    if len(groups) > 1:
        yield ["  in all", "", *_number_cells(total, widths), _day_span(chosen)]


def _survey_sums(group: Sequence[FoundSession], waits: bool) -> list[int]:
    new, waiting = sum(len(one.new) for one in group), sum(one.queued for one in group)
    sums = [len(group), sum(one.turns for one in group), sum(one.flushed for one in group)]
    return [*sums, *([waiting] if waits else []), new]


def _number_cells(numbers: Sequence[int], widths: Sequence[int]) -> Iterator[Styled]:
    for n, (number, width) in enumerate(zip(numbers, widths, strict=True)):
        text = (f"{number:,}" if number else "-").rjust(width)
        yield (text, "good") if number and n == len(numbers) - 1 else text


def _day_span(group: Iterable[FoundSession]) -> str:
    times = [at for one in group for at in (one.first, one.last) if at]
    days = sorted({f"{at:%Y-%m-%d}" for at in times})
    return "" if not days else days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"


def _skipped_texts(found: Survey, day: str | None) -> Iterator[str]:
    left = [count(number, f"{kind} transcript") for kind, number in sorted(found.machines.items())]
    left += [count(found.silent, "session") + " without turns"] if found.silent else []
    left += [f"{count(found.older, 'session')} from before {day}"] if found.older else []
    if left:
        yield f"Skipped: {', '.join(left)}."
    if found.going:
        names = ", ".join(f"{each.client} {each.session[:SURVEY_ID_LENGTH]}" for each in found.going[:3])
        more = " …" if len(found.going) > 3 else ""
        yield f"{count(len(found.going), 'session')} still open: their hooks capture them ({names}{more})."


def show_survey_flush(screen: Screen, one: FoundSession, flushed: FlushedSession) -> None:
    day = f"{one.last:%Y-%m-%d}" if one.last else "no date   "
    where = f"{one.session.client} {one.project} {one.session.session[:SURVEY_ID_LENGTH]}".replace("  ", " ")
    details = f"{count(flushed.turns, 'turn')}, {_flush_counts(flushed)} ("
    screen.item([(f"{day}  ", "faint")], f"{where}: {details}", commit_label(flushed.revision), ")")
    screen.redacted(flushed.redacted)
    screen.note(*flushed.notes)


def conclude_survey(screen: Screen, done: Sequence[FlushedSession]) -> None:
    facts, turns = sum(len(one.facts) for one in done), sum(one.turns for one in done)
    again = sum(len(one.seen_again) for one in done)
    more = f", {again:,} already known" if again else ""
    details = f"{count(facts, 'fact')}{more}, of {count(turns, 'turn')} in {count(len(done), 'session')}."
    screen.line(("Kept ", "strong"), details)


def survey_json(
    dry_run: bool, chosen: Iterable[FoundSession] = (), found: Survey | None = None,
    done: Iterable[FlushedSession] = (), notes: Iterable[str] = (),
) -> dict[str, Any]:  # fmt: skip
    """The sessions that were found, and the flushes made of them, as JSON."""
    names = ("machines as leftAside", "older", "silent", ("going", ("client", "session")), "problems")
    nothing = {"leftAside": {}, "older": 0, "silent": 0, "going": [], "problems": []}
    return {
        "dry_run": dry_run,
        "sessions": [_found_session_json(one) for one in chosen],
        **(fields(found, *names) if found else nothing),
        "flushed": [flushed_session_json(one) for one in done],
        "notes": list(notes),
    }


def _found_session_json(one: FoundSession) -> dict[str, Any]:
    names = ("session.client", "session.session", "transcript.where as path", "turns", "flushed")
    known = ("project?", "session.cwd?", "session.parent?", "first?", "last?")
    return {**fields(one, *names, "queued as waiting"), "new": len(one.new), **fields(one, *known)}


# -- import ----------------------------------------------------------------------------------------------


def import_json(done: ImportResult, unread: list[str]) -> dict[str, Any]:
    """An import as JSON; `unread` are files that could not be read."""
    found = done.found
    taken = ("what", "source", "path", "state", "day?", "why?", "facts?", "prose?")
    revision = ("result.revision", "result.notes") if done.result else ()
    return {
        **fields(done, "found.source", "found.name"),
        "dry_run": done.result is None,
        **fields(done, ("taken", taken), "found.later"),
        "left": [*found.left, *unread],
        **fields(done, ("found.problems", str), "redacted", *revision),
    }


def show_import(screen: Screen, done: ImportResult, unread: list[str]) -> None:
    """Print what was or would be imported, what was not and why, and what to do next."""
    found, changed = done.found, sum(each.state in ("new", "updated") for each in done.taken)
    if done.result is None:
        screen.line(("Would import", "strong"), f" {found.name} ({found.source}):")
    elif changed:
        screen.line(
            "Imported ", (found.name, "strong"), f" ({found.source}): ", commit_label(done.result.revision)
        )
    else:
        screen.line(f"Nothing new in {found.name} ({found.source}): all of it is already here.")
    screen.rows([["  " + label, text] for label, text in _import_counts(done)])
    for title, lines in _import_lists(done, unread):
        if lines:
            screen.line((title, "strong"))
            _show_first(screen, "  ", lines)
    _show_next_step(screen, done, changed)
    screen.note(*(done.result.notes if done.result else ()))


def _import_counts(done: ImportResult) -> Iterator[tuple[str, str]]:
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


def _import_lists(done: ImportResult, unread: list[str]) -> Iterator[tuple[str, list[str]]]:
    left = [t for t in done.taken if t.state == "left"]
    yield "Not in core memory, but in a note:", [f"{t.source}: {t.why}" for t in left if t.what == "block"]
    yield "Not imported:", [f"{t.source}: {t.why}" for t in left if t.what != "block"]
    yield "Updated:", [t.path for t in done.taken if t.state == "updated"]
    yield "Skipped:", [*done.found.left, *unread]
    yield "Unreadable or read as plain text:", [str(problem) for problem in done.found.problems]


def _show_first(screen: Screen, mark: Styled, lines: Sequence[str]) -> None:
    for line in lines[:SHOWN_LINES]:
        screen.item([mark], line)
    if len(lines) > SHOWN_LINES:
        screen.line((f"  … and {len(lines) - SHOWN_LINES:,} more (--json lists all)", "faint"))


def _show_next_step(screen: Screen, done: ImportResult, changed: int) -> None:
    if done.found.later:
        screen.line(f"Not imported: {count(done.found.later, 'older or undated note')}; --all imports them.")
    if done.result is None:
        screen.line(("Nothing was changed. Without --dry-run this is one commit.", "faint"))
    elif changed:
        screen.line(("Next: ua-memory search WORDS; ua-memory undo reverses it.", "faint"))


# -- queue -----------------------------------------------------------------------------------------------


def waiting_text(one: QueueEntry) -> str:
    """What waits: `12 turns`, or a text's name and length."""
    if item := one.item:
        return f"{item.document_id or 'a text'} ({count(len(item.text), 'character')})"
    return count(len(one.turns), "turn")


def waiting_reason(one: QueueEntry) -> str:
    """Why an entry is still in the queue, and how to retry it."""
    if one.broken:
        return f"set aside: {one.broken}"
    said = f"failed {count(one.attempts.count, 'time')}, last: {one.reason}"
    return f"set aside: {said}; try again: ua-memory queue retry {one.key}" if one.set_aside else said


def show_waiting(screen: Screen, one: QueueEntry, now: datetime) -> None:
    """Print an entry of the queue: what waits, since when, and why."""
    since = ago(one.since.astimezone(now.tzinfo), now) if one.since else "at an unknown time"
    how = "captured since" if one.still_open(now) else "queued"
    screen.item([(one.key, "id"), "  "], f"{waiting_text(one)}, {how} {since}")
    if one.reason:
        screen.item("  ", (waiting_reason(one), "bad" if one.set_aside else "warn"))


def waiting_json(one: QueueEntry) -> dict[str, Any]:
    text = fields(one, "item.document_id") | {"characters": len(one.item.text)} if one.item else {}
    state = ("open as gathers?", "set_aside as aside?", "attempts.retry_at as again?")
    return {
        **fields(one, "key", "session.client", "session.session"),
        "turns": len(one.turns),
        **fields(one, "attempts.count as tries"),
        **text,
        **fields(one, "since?", "reason?", "size as tokens?", *state),
    }


# -- watch -----------------------------------------------------------------------------------------------


def show_watch_run(screen: Screen, run: WatchResult) -> None:
    """Print what was left for later of the watched paths."""
    if not run.done:
        waits = "Nothing to read yet: recently saved files are read once they stop changing."
        screen.line(waits if run.young else "Nothing has changed.")
    if run.young:
        young = count(len(run.young), "file")
        screen.note(f"{young} saved just now; to read them: ua-memory watch run --now")
    for name, why in run.failed:
        screen.note(f"not read: {name}: {why}")
    for name in run.gone:
        screen.note(f"{name} no longer exists; its facts stay until: ua-memory watch run --accept")
    for name in run.missing:
        screen.note(f"{name} is missing (an unmounted disk?); its documents stay")


def show_added_paths(
    screen: Screen, added: Sequence[tuple[WatchedPath, WatchedChanges]], quiet: float | None
) -> None:
    """Print newly watched paths. `quiet`: seconds after a save until the daemon reads it; None if none
    runs."""
    for one, look in added:
        files = count(len(look.ready) + len(look.young), "file")
        screen.line("Watching ", (one.path, "path"), f": {files} to be read.")
    if quiet is not None:
        screen.line(f"The daemon reads them, and again {quiet:g} seconds after each save.")
    screen.line("Now, or without a daemon: ua-memory watch run; --dry-run shows the price.")


def show_watched(screen: Screen, found: tuple[WatchedPath, WatchedChanges]) -> None:
    """Print a watched path and what has changed there."""
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


def watched_json(found: tuple[WatchedPath, WatchedChanges]) -> dict[str, Any]:
    """A watched path as JSON; `missing` and `failed` only if there are any."""
    one, look = found
    failed = [{"path": name, "reason": stood.error} for name, stood in one.files.items() if stood.error]
    known = {"path": one.path, "files": len(one.files), "changed": sorted((*look.ready, *look.young))}
    return known | fields(look, "gone") | ({"failed": failed} if failed else {}) | fields(look, "missing?")


def watch_run_json(run: WatchResult) -> dict[str, Any]:
    failed = ("failed", lambda each: dict(zip(("path", "reason"), each, strict=True)))
    return fields(run, ("done as retained", retain_json), "young", failed, "gone", "missing")


# -- comparison with another memory ------------------------------------------------------------------------

RESULTS_PER_SIDE, RESULT_LENGTH = 3, 240
"""Results that are shown of each side, and characters of each; `--json` has all."""


def comparison_json(done: Compared) -> dict[str, Any]:
    """A comparison as JSON."""
    return {
        "old": fields(done.old, "name", "note"),
        "seconds": {"old": round(done.seconds[0], 4), "ours": round(done.seconds[1], 4)},
        "byWordsAlone": done.by_words,
        "compared": [_pair_json(done, pair) for pair in done.pairs],
    }


def _pair_json(done: Compared, pair: Pair) -> dict[str, Any]:
    ours = [_result_json(done.source(h), h.item.line, h.item.end, h.score, h.snippet) for h in pair.ours]
    old = [_result_json(each.path, each.line, each.end, each.score, each.text) for each in pair.old]
    return {"query": pair.query, "old": old, "ours": ours}


def _result_json(path: str, line: int, end: int, score: float, text: str) -> dict[str, Any]:
    where = {"startLine": line, "endLine": end} if line else {}
    return {"path": path, **where, "score": round(score, 4), "snippet": text[:700]}


def show_comparison(screen: Screen, done: Compared) -> None:
    """Print both sides' results for each query, and the totals."""
    screen.item([("Old:  ", "strong")], f"{done.old.name} ({done.old.note})")
    less = f" ({done.by_words:,} texts, far from all queries, by keywords only)" if done.by_words else ""
    how = f"ua-memory, keywords and meaning{less}, from a temporary copy"
    screen.item([("Ours: ", "strong")], how)
    for pair in done.pairs:
        screen.heading((f"? {pair.query}", "strong"))
        old = [(f"{each.path}:{each.line}" if each.line else each.path, each.text) for each in pair.old]
        _show_side(screen, "old", old)
        _show_side(screen, "ours", [(done.source(hit), hit.snippet) for hit in pair.ours])
    screen.line()
    _show_totals(screen, done)


def _show_side(screen: Screen, name: str, results: Sequence[tuple[str, str]]) -> None:
    """Print the first results of a side: their places, and how their texts begin."""
    for number, (place, text) in enumerate(results[:RESULTS_PER_SIDE], 1):
        screen.item([(f"  {name if number == 1 else '':<6}", "faint"), f"{number}. "], (place, "path"))
        screen.item(" " * 11, shorten(" ".join(text.split()), RESULT_LENGTH))
    if not results:
        screen.item([(f"  {name:<6}", "faint")], "(nothing)")


def _show_totals(screen: Screen, done: Compared) -> None:
    both = sum(bool(p.old) and bool(p.ours) for p in done.pairs)
    alone = sum(bool(p.old) and not p.ours for p in done.pairs)
    ours = sum(bool(p.ours) and not p.old for p in done.pairs)
    same = sum(p.old[0].path == done.source(p.ours[0]) for p in done.pairs if p.old and p.ours)
    screen.line(
        f"{count(len(done.pairs), 'query', 'queries')}: both found something for {both:,} "
        f"(the same file first: {same:,}), only the old for {alone:,}, only ours for {ours:,}."
    )
    there, here = (f"{1000 * each:,.0f} ms" for each in done.seconds)
    screen.line((f"Median time of a query: {there} there, {here} here. Nothing was imported.", "faint"))
