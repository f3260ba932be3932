"""Log, forget, purge, sync, restore, undo, scan, blame and why: results as text and as JSON."""

from __future__ import annotations

import re
import shlex
import textwrap
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, tzinfo
from itertools import groupby
from typing import TYPE_CHECKING, Any

from ua_memory.knowledge.lineage import BeliefStep, FactStep
from ua_memory.records import is_generated
from ua_memory.text import redaction
from ua_memory.text.wording import counted
from ua_memory.views import output
from ua_memory.views.output import Field, Screen, Styled, commit_label, count, fields, id_label

if TYPE_CHECKING:
    from ua_memory.git.repository import BlameLine, Revision
    from ua_memory.knowledge.lineage import Chain, CitingStep, Link, SentenceStep
    from ua_memory.knowledge.trust import BrokenLink
    from ua_memory.upkeep.archive import RestoreResult
    from ua_memory.upkeep.audit import StatementChange
    from ua_memory.upkeep.forget import ForgetResult, PlanItem
    from ua_memory.upkeep.purge import PurgePlan, PurgeResult
    from ua_memory.upkeep.sync import SyncResult
    from ua_memory.upkeep.traces import TraceReport
    from ua_memory.upkeep.undo import UndoPlan, UndoResult


# -- diary -----------------------------------------------------------------------------------------------
# The commit log as sentences: `Ann inserted: “the API moved to Fly.io”`.


OUR_AUTHOR = "ua-memory"
TEXT_LENGTH = 72
"""Characters of a fact that are quoted."""
QUOTED_TEXTS = 4
"""With so many facts, only the first few are quoted."""
ORIGINS = {
    "person": "from a person", "agent": "from an agent", "tool": "from a tool", "web": "from the web",
    "import": "imported", "compaction": "from a summary of a session",
}  # fmt: skip
CLIENTS = {"cli": "", "mcp": "An agent over MCP", "python": "A program"}
"""Clients whose name in the log differs from their own."""
UNNAMED_DOORS = frozenset({"cli", "daemon", "doctor", "editor", "store", ""})
"""Values of the trailer `Door` that do not say who made the change."""
UNNAMED_OPS = frozenset({"consolidate", "flush", "init", "mend", "merge", "refresh", "settle", "sync"})
"""Operations that are logged without who asked for them."""
OP_VERBS = {
    "consolidate": "Consolidated:", "correct": "Corrected", "import": "Imported", "mend": "Mended",
    "purge": "Purged", "reflect": "Reflected", "refresh": "Refreshed", "restore": "Restored",
    "retain": "Retained", "retire": "Retired", "vouch": "Vouched for",
}  # fmt: skip
WHOLE_SENTENCES = {"sync": "Synced another machine's changes", "init": "Created the bank"}
SUBJECT_VERBS = {
    "add": "Added", "change": "Changed", "create": "Created", "delete": "Deleted", "remove": "Removed",
    "set": "Set",
}  # fmt: skip
"""Verbs in a subject such as `page: create infra` → their past."""
SUBJECT_NOUNS = {"config": "setting", "directives": "directive"}


@dataclass(frozen=True)
class DiaryEntry:
    """An entry of the diary. `revision` is the id that `undo` takes, `undone` whether that was done."""

    when: datetime
    revision: str
    sentence: str
    undone: bool = False


@dataclass(frozen=True)
class _LoggedRevision:
    one: Revision
    when: datetime
    op: str
    who: str
    session: str
    texts: tuple[str, ...]
    undone: bool

    @property
    def group_key(self) -> tuple[Any, ...]:
        """Adjacent revisions with an equal key become one entry."""
        if self.op == "insert" and "seen again" not in self.one.subject:
            return (self.when.date(), self.op, self.who, self.session, self.undone)
        if self.op == "edit":
            return (self.when.date(), self.op, self.who, self.one.subject, self.one.paths, self.undone)
        return (self.one.id,)


def diary_entries(
    revisions: Sequence[Revision], records: Mapping[str, Sequence[Any]], undone: Collection[str],
    zone: tzinfo | None, *, separate: bool = False, referenced: Sequence[Revision] = (),
) -> list[DiaryEntry]:  # fmt: skip
    """Turn revisions, newest first, into entries, grouping similar ones unless `separate`. `records` has the
    records that each revision added, `undone` the ids that were undone, `referenced` the revisions that
    these undid or redid."""
    logged = [_log_revision(one, records.get(one.id, ()), one.id in undone, zone) for one in revisions]
    runs = [list(run) for _, run in groupby(logged, lambda one: one.one.id if separate else one.group_key)]
    more = [_log_revision(one, records.get(one.id, ()), False, zone) for one in referenced]
    known = {each.one.id: each for each in (*more, *logged)}
    return [DiaryEntry(run[0].when, run[0].one.id, _sentence(run, known), run[0].undone) for run in runs]


def _log_revision(
    one: Revision, records: Sequence[Any], undone: bool, zone: tzinfo | None
) -> _LoggedRevision:
    op = one.trailer("Memory-Op")
    heading = next((r.heading for r in records if getattr(r, "heading", None) and r.heading.client), None)
    client = heading.client if heading and one.author == OUR_AUTHOR and op in ("insert", "flush") else ""
    session = (heading.session or "") if heading and client else ""
    door = one.trailer("Door")
    behind = client or ("" if door in UNNAMED_DOORS or op in UNNAMED_OPS else door)
    who = one.author if one.author != OUR_AUTHOR else CLIENTS.get(behind, behind)
    texts = tuple(dict.fromkeys(first_words(record.text) for record in records))
    return _LoggedRevision(one, one.when.astimezone(zone), op, who, session, texts, undone)


def first_words(text: str) -> str:
    """The first TEXT_LENGTH characters of a text, up to a whole word."""
    words = " ".join(text.split())
    return words if len(words) <= TEXT_LENGTH else f"{words[:TEXT_LENGTH].rsplit(' ', 1)[0].rstrip(',;:.')} …"


def _sentence(run: Sequence[_LoggedRevision], known: Mapping[str, _LoggedRevision]) -> str:
    logged = run[0]
    match logged.op:
        case "insert":
            return _insert_sentence(run)
        case "edit":
            return _edit_sentence(run)
        case "flush":
            return _flush_sentence(logged)
        case "undo" | "redo":
            return _undo_sentence(logged, known)
        case "":
            return f"{logged.who} committed: {logged.one.subject}"
        case "sync" if logged.one.subject.startswith("import: "):
            return _with_author(logged, f"Imported the archive {logged.one.subject.removeprefix('import: ')}")
        case op if op in WHOLE_SENTENCES:
            return _with_author(logged, WHOLE_SENTENCES[op])
        case "core replace":
            verb, _, name = logged.one.subject.removeprefix("core: ").partition(" ")
            return _with_author(logged, f"{'Wrote' if verb == 'add' else 'Rewrote'} the core block {name}")
        case "core accept" | "core reject":
            done, _, what = logged.one.subject.removeprefix("core: ").partition(" ")
            return _with_author(logged, f"{done.capitalize()}ed {what} for core memory")
        case "forget":
            ids = logged.one.trailers.get("Facts", ())
            named = f" ({', '.join(ids)})" if 0 < len(ids) < QUOTED_TEXTS else ""
            return _with_author(logged, f"Forgot {logged.one.subject.removeprefix('forget: ')}{named}")
    rest = logged.one.subject.partition(": ")[2] or logged.one.subject
    thing, (verb, _, name) = logged.one.subject.partition(": ")[0], rest.partition(" ")
    if logged.op in OP_VERBS:
        removed = logged.op == "retain" and verb == "remove"
        what = f"Removed {name}" if removed else f"{OP_VERBS[logged.op]} {rest}"
        return _with_author(logged, what, logged.texts)
    if verb in SUBJECT_VERBS and thing != logged.one.subject:
        noun = SUBJECT_NOUNS.get(thing, thing)
        return _with_author(logged, f"{SUBJECT_VERBS[verb]} the {noun} {name}", logged.texts)
    subject = rest if logged.op == "merge" else logged.one.subject
    return _with_author(logged, subject[:1].upper() + subject[1:], logged.texts)


def _with_author(logged: _LoggedRevision, what: str, texts: Sequence[str] = ()) -> str:
    """`Ann replaced …` if the author is known, else `Replaced …`."""
    first, _, rest = what.partition(" ")
    person = logged.who and not first.endswith(":")
    return f"{logged.who} {first.lower()} {rest}{_quote(texts)}" if person else f"{what}{_quote(texts)}"


def _insert_sentence(run: Sequence[_LoggedRevision]) -> str:
    logged = run[0]
    who = f"{logged.who}, session {logged.session}," if logged.who and logged.session else logged.who
    who = who or (f"Session {logged.session}" if logged.session else "")
    again = "seen again" in logged.one.subject
    if len(run) == 1:
        verb = "inserted again" if again else "inserted"
        said = _quote(logged.texts) or " 1 fact, which was forgotten since"
        return f"{who} {verb}{said}" if who else f"{verb.capitalize()}{said}"
    texts = [text for one in reversed(run) for text in one.texts]
    lost = sum(not one.texts for one in run) if texts else 0
    gone = f"; {lost} {'was' if lost == 1 else 'were'} forgotten since" if lost else ""
    size = sum(max(len(one.texts), 1) for one in run)
    what = f"inserted {size} facts in {len(run)} revisions from {run[-1].when:%H:%M} on{_quote(texts)}{gone}"
    return f"{who} {what}" if who else what[0].upper() + what[1:]


def _edit_sentence(run: Sequence[_LoggedRevision]) -> str:
    logged = run[0]
    paths = logged.one.paths
    what = paths[0] if len(paths) == 1 else counted(len(paths), "file")
    said = re.match(r"edit: (remove|delete) (.+)", logged.one.subject)
    done = f"{SUBJECT_VERBS[said[1]].lower()} {said[2]}" if said else f"edited {what}"
    times = f" {len(run)} times from {run[-1].when:%H:%M} on" if len(run) > 1 else ""
    texts = list(dict.fromkeys(text for one in reversed(run) for text in one.texts))
    wrote = " and wrote" if said and texts else ""
    return f"{logged.who} {done} by hand{times}{wrote}{_quote(texts)}"


def _flush_sentence(logged: _LoggedRevision) -> str:
    number, _, client = logged.one.subject.removeprefix("flush: ").partition(" from ")
    session = logged.session or logged.one.trailer("Session")[:8]
    where = f"{client or 'a conversation'}{f', session {session}' if session else ''}"
    return f"Saved {number} from {where}{_quote(logged.texts)}"


def _undo_sentence(logged: _LoggedRevision, known: Mapping[str, _LoggedRevision]) -> str:
    """`Undid 1a2b3c4 (…)`, with the undone revision's own sentence if it is known, else its subject."""
    verb = "Undid" if logged.op == "undo" else "Redid"
    names = logged.one.trailers.get("Undoes", ())
    what = logged.one.subject.partition(": ")[2].removeprefix("undo: ")
    first = known.get(names[0]) if len(names) == 1 else None
    while first and first.op in ("undo", "redo"):
        first = known.get(first.one.trailer("Undoes"))
    if first:
        said = _sentence([first], known)
        what = said if first.who and said.startswith(first.who) else said[:1].lower() + said[1:]
    return _with_author(logged, f"{verb} {', '.join(name[:7] for name in names)} ({what})")


def _quote(texts: Sequence[str]) -> str:
    """`: “first text”, “second text” and 3 more`."""
    if not texts:
        return ""
    shown = texts if len(texts) < QUOTED_TEXTS else texts[: QUOTED_TEXTS - 2]
    more = f" and {len(texts) - len(shown)} more" if len(shown) < len(texts) else ""
    return f": {', '.join(f'“{text}”' for text in shown)}{more}"


# -- forget ----------------------------------------------------------------------------------------------
# What was forgotten is not printed: a terminal's history and an agent's transcript would keep it.


FORGET_SIGNS = {
    "gone": ("-", "removed"),
    "revised": ("~", "warn"),
    "left": ("?", "bad"),
    "near": (" ", "faint"),
}


def quoting_lines(found: ForgetResult) -> list[PlanItem]:
    """A person's own lines that quote the forgotten text. They stay until the person removes them."""
    return [piece for piece in found.plan.left if piece.why == "quotes it"]


def show_forget_plan(
    screen: Screen, found: ForgetResult, patterns: Mapping[str, str], *, purging: bool = False
) -> None:
    """Print what a forget would remove, revise and leave, with the texts. `purging`: a purge would follow."""
    plan, near = found.plan, "Near matches, which are not removed (ua-memory forget ^ID removes one):"
    for title, kind, pieces in (
        ("Will be removed:", "gone", plan.gone), ("Will be revised:", "revised", plan.revised),
        ("Your own lines, which are not removed:", "left", plan.left), (near, "near", found.near),
    ):  # fmt: skip
        if pieces or kind == "gone":
            screen.line((title, "strong"))
        sign, style = FORGET_SIGNS[kind]
        for piece in pieces:
            text = " ".join(redaction.redact(piece.text, patterns).text.split())
            screen.item([(f"  {sign} ", style)], text, id_label(piece.id))
            place = f"{piece.place.path}:{piece.place.line}"
            screen.item("      ", (f"{place}  {_piece_text(piece)}", "faint"))
    for one in found.waiting:
        turns = count(len(one.turns), "turn")
        screen.line(f"Queued turns of this session will be removed too: {turns} ({one.key})")
    if found.touched:
        screen.line(f"Will be removed from the queue: {', '.join(found.touched)}")
    kept = (
        "Every branch and tag that contains it will be rewritten." if purging else "It stays in the history."
    )
    screen.line((kept, "faint"))


def _piece_name(piece: PlanItem) -> str:
    """The name that `why` and `forget --purge` take: `^id`, `path#^id` or `path:line`."""
    if piece.id and is_generated(piece.id):
        return f"^{piece.id}"
    return f"{piece.place.path}#^{piece.id}" if piece.id else f"{piece.place.path}:{piece.place.line}"


def _piece_text(piece: PlanItem) -> str:
    return f"{'your ' if piece.by_person else ''}{piece.what}, {piece.why}"


def show_forget(screen: Screen, done: ForgetResult, *, purging: bool = False) -> None:
    """Print what was forgotten, and what a search for it still found. `purging`: a purge follows."""
    plan = done.plan
    assert done.result
    screen.line("Forgot ", _piece_counts(plan.gone), " (", commit_label(done.result.revision), ")")
    for kind, pieces in (("gone", plan.gone), ("revised", plan.revised), ("left", plan.left)):
        sign, style = FORGET_SIGNS[kind]
        for piece in pieces:
            name = (_piece_name(piece), "id" if piece.id else "path")
            screen.item([(f"  {sign} ", style)], name, f"  {_piece_text(piece)}")
    cleared = done.cleared
    if names := [*cleared.pending, *(one.key for one in done.waiting)]:
        screen.line(f"Removed from the queue: {', '.join(names)}")
    looked = (f"{'git' if kind == 'trail' else kind} ({n})" for kind, n in done.proof.searched.items())
    screen.line(_trace_verdict(done.proof), f": searched {', '.join(looked)}.")
    if not purging:
        screen.line(("It stays in the history; undo restores it.", "faint"))
    more = [f"the next searches rebuild the index ({cleared.stale} left)"] if cleared.stale else []
    screen.outcome(done.result, *more)
    screen.note(*(f"it is still in {each.where}" for each in done.proof.found))
    if done.proof.found and quoting_lines(done):
        screen.note("your own lines stay: ua-memory forget PATH:LINE removes one")


def _trace_verdict(proof: TraceReport) -> Styled:
    """Whether a search for the removed text found any of it."""
    return ("None of it is left", "good") if proof.is_clean else ("Some of it was not removed", "bad")


def _piece_counts(pieces: Sequence[PlanItem]) -> str:
    each, plurals = Counter(piece.what for piece in pieces), {"entity": "entities"}
    return ", ".join(count(n, what, plurals.get(what)) for what, n in each.items()) or "queued turns"


def forget_json(found: ForgetResult, patterns: Mapping[str, str]) -> dict[str, Any]:
    """A forget as JSON, with the texts only before it is done."""
    planned = found.result is None

    def piece_json(piece: PlanItem) -> dict[str, Any]:
        text = {"text": redaction.redact(piece.text, patterns).text} if planned else {}
        return fields(piece, "what", "why", "by_person") | text | output.place_json(piece.place, piece.id)

    names = ["plan.gone", "plan.revised", "plan.left", *(["near?"] if planned else [])]
    cleared = ("cleared", ("pending", "logs as logLines", "turns", "embeddings"))
    done = ("result.revision", "result.notes", *output.TRACE, cleared)
    return {
        "dryRun": planned,
        **fields(found, *((name, piece_json) for name in names)),
        "waiting": [{"key": one.key, "turns": len(one.turns)} for one in found.waiting],
        **fields(found, "touched", *(() if planned else done)),
    }


# -- forget --purge: rewriting history -------------------------------------------------------------------


def show_purge_plan(screen: Screen, planned: PurgePlan) -> None:
    """Print what a purge would remove from the history, and the branches and tags it would rewrite."""
    statements = count(len(planned.ids), "forgotten statement")
    contents = count(len(planned.contents), "version of a file", "versions of files")
    screen.line(("Will be removed from the history:", "strong"), f" {statements}, out of {contents}")
    screen.line(("Will be rewritten:", "strong"))
    for ref in planned.refs:
        screen.item([("  ~ ", "warn")], ref.short, (f"  {ref.id[:7]}", "rev"))
    if planned.remotes:
        screen.line(("Will be removed until the next fetch, as long as the remote has it:", "strong"))
        screen.line(f"  {', '.join(planned.remotes)}")
    if planned.unknown:
        names = ", ".join(f"^{block}" for block in planned.unknown)
        screen.line(("Not found in the history:", "warn"), f" {names}")
        screen.line("  It was removed before, or was several lines without an id.")
    if planned.citing:
        where = ", ".join(planned.citing)
        screen.line(("Your own lines that cite it, which are not removed:", "strong"), " ", (where, "path"))
    if planned.around:
        screen.line(("Not rewritten:", "warn"), f" {planned.around}, which has committed files of this bank")
    if planned.own:
        screen.line(("Unreachable objects are deleted too.", "faint"))


def show_purge(screen: Screen, planned: PurgePlan, made: PurgeResult) -> None:
    """Print what a purge has rewritten, and what is left for a person to do."""
    for name, (old, new) in made.rewrote.items():
        screen.line("Rewrote ", made.short(name), "  ", (old[:7], "rev"), " to ", (new[:7], "rev"))
    if not made.rewrote:
        screen.line("No revision had to be rewritten.")
    _show_purge_traces(screen, made.proof, made.revision, made.backup)
    if planned.others:
        left = count(len(planned.others), "other forgotten statement")
        screen.note(f"the history still has {left}; remove: ua-memory forget --purge")
    if planned.around:
        screen.note(f"{planned.around} has committed files of this bank; rewrite its history yourself")


def _show_purge_traces(screen: Screen, proof: TraceReport, revision: str | None, backup: str) -> None:
    """Print what a search for the purged text still found, and where the old history is kept."""
    objects = count(proof.searched.get("history", 0), "object")
    said: list[Styled] = [f", also in the {objects} of the history (", commit_label(revision), ")"]
    screen.line(_trace_verdict(proof), *(said if proof.is_clean else ()))
    screen.note(*(f"it is still in {each.where}" for each in proof.found))
    screen.line("The old history is in ", (backup, "path"))
    rest = ". Until then the purge is not finished."
    screen.line("Once you are sure, delete that: ", (f"rm {shlex.quote(backup)}", "strong"), rest)


def purge_plan_json(planned: PurgePlan) -> dict[str, Any]:
    """What a purge would remove and rewrite, as JSON."""
    refs, unknown = ("refs", ("name", "id as revision")), ("unknown", "^{}".format)
    found = fields(planned, IDS, refs, "remotes", unknown, "around?", "citing?")
    return found | {"contents": len(planned.contents)}


def purge_json(made: PurgeResult) -> dict[str, Any]:
    """What a purge has rewritten, as JSON."""
    rewrote = [{"name": name, "from": old, "to": new} for name, (old, new) in made.rewrote.items()]
    return {"rewrote": rewrote, **fields(made, "backup", "revision", *output.TRACE)}


# -- sync and restore ------------------------------------------------------------------------------------

SHOWN_CONFLICTS = 12

CONFLICT_TEXTS = {
    "kept": "deleted on one machine, changed on the other: kept",
    "both": "changed on both machines: both were kept",
    "theirs": "changed on both machines: the remote's was kept",
}


def show_sync(screen: Screen, done: SyncResult) -> None:
    """Print what a sync did or would do."""
    if not done.received and not done.sent and not done.forced and not done.followed:
        screen.line("Up to date with ", (done.address, "path"), ": nothing to receive or send.")
    else:
        screen.line(("Would sync" if done.trial else "Synced", "strong"), " with ", (done.address, "path"))
        verb = ("to receive", "to send") if done.trial else ("received", "sent")
        screen.line(f"  {verb[0]} {count(done.received, 'revision')}{_merge_counts(done)}")
        screen.line(f"  {verb[1]} {count(done.sent, 'revision')}")
    _show_conflicts(screen, done)
    _show_purged_history(screen, done)
    _note_forgotten_elsewhere(screen, done)
    if done.trial:
        screen.line(("Nothing was changed (--dry-run).", "faint"))
    screen.note(*done.notes)


def _note_forgotten_elsewhere(screen: Screen, done: SyncResult | RestoreResult) -> None:
    """Note where the text of a fact is left that was forgotten on another machine."""
    if done.forgotten and not done.forgotten.proof.is_clean:
        left = (each.where for each in done.forgotten.proof.found)
        screen.note(*(f"forgotten on another machine, but it is still in {where}" for where in left))
        screen.note("your own lines stay: ua-memory forget PATH:LINE removes one")


def _show_purged_history(screen: Screen, done: SyncResult) -> None:
    """Print which history replaces which after a purge here or on another machine."""
    if done.forced:
        old, new = (name[:7] for name in done.forced)
        verb = "Would replace" if done.trial else "Replaced"
        screen.line(
            (verb, "warn"), " the history there, which has what was purged here: ", (old, "rev"), " by ",
            (new, "rev"), ". This is a forced push; other machines follow with their next sync.",
        )  # fmt: skip
    if done.followed:
        number = count(len(done.followed.ids), "forgotten statement")
        verb = "Would take" if done.trial else "Took"
        screen.line((verb, "warn"), f" {number} from this history, because it was purged on another machine.")
        if not done.trial:
            screen.line("  ", (done.followed.old[:7], "rev"), " became ", (done.followed.new[:7], "rev"))
            for name in done.followed.holding:
                screen.line("  The old history is kept by ", (name, "warn"), ": delete it, or rewrite it with"
                            " ua-memory forget --purge")  # fmt: skip
            _show_purge_traces(screen, done.followed.proof, done.followed.new, done.followed.backup)


def _merge_counts(done: SyncResult | RestoreResult) -> str:
    merge, gone = done.merge, len(done.merge.forgotten)
    numbers = {"new": merge.added, "changed": merge.changed, "gone": merge.removed, "forgotten": gone}
    parts = [f"{number:,} {word}" for word, number in numbers.items() if number]
    return f"; statements: {', '.join(parts)}" if parts else ""


def _show_conflicts(screen: Screen, done: SyncResult | RestoreResult) -> None:
    """Print what both machines changed, with both versions, for a person to resolve."""
    for each in done.merge.notes[:SHOWN_CONFLICTS]:
        screen.line((each.path, "path"), " ", (each.what, "id"), f" {CONFLICT_TEXTS[each.why]}")
        for name, text in (("here", each.ours), ("there", each.theirs)):
            screen.item(f"  {name + ':':<7}", text.replace("\r\n", "\n") or ("(deleted)", "faint"))
    if len(done.merge.notes) > SHOWN_CONFLICTS:
        screen.line((f"… and {len(done.merge.notes) - SHOWN_CONFLICTS:,} more (--json lists all)", "faint"))
    both = [each.what for each in done.merge.notes if each.why == "both"]
    if any(what.startswith("^") for what in both):
        screen.line(("To resolve one: edit the line with the original id, and delete the other.", "faint"))
    for name in (what.removeprefix("## ") for what in both if what.startswith("## ")):
        how = f'ua-memory core replace {shlex.quote(name)} "what holds"'
        screen.line((f"{name} has both versions. To resolve it: {how}", "faint"))
    how = "Both versions of a text are in the file, one after the other: delete the wrong one."
    if "text" in both:
        screen.line((how, "faint"))
    # Written or changed on one machine and forgotten on the other: print where it was, not the text.
    for lost in done.merge.dropped:
        name = f" ^{lost.id}" if lost.id else ""
        which = ("on the other machine", "here") if lost.side == "here" else ("here", "there")
        said = f" was forgotten {which[0]}, and was removed with later changes {which[1]}"
        screen.line((f"{lost.path}:{lost.line}", "path"), (name, "id"), (said, "warn"))
        if "/" in lost.revision:
            screen.line("  only the old history still has it: ", (lost.revision, "path"))
        elif lost.revision:
            there = f": ua-memory git show {lost.revision[:10]}:{lost.path}"
            screen.line("  still in ", (lost.revision[:7], "rev"), there)
        else:
            screen.line("  still in the file, not committed yet")
    if done.merge.dropped:
        screen.line(("To keep one, write it again without its ^id.", "faint"))


def sync_json(done: SyncResult) -> dict[str, Any]:
    """A sync as JSON."""
    names = ("remote", "address", "trial as dry_run", "received", "sent", "revision")
    return {
        **fields(done, *names, *MERGE),
        "forced": dict(zip(("from", "to"), done.forced, strict=True)) if done.forced else None,
        **fields(done, ("followed", _followed_purge_json), FORGOTTEN_ELSEWHERE, "notes"),
    }


def _followed_purge_json(one: Any) -> dict[str, Any]:
    ends = {"from": one.old, "to": one.new or None, "backup": one.backup or None}
    return {**fields(one, IDS), **ends, **fields(one, *output.TRACE, "holding")}


def _dropped_json(one: Any) -> dict[str, Any]:
    return {**output.json_value(one), "id": f"^{one.id}" if one.id else None}


IDS = ("ids", "^{}".format)
MERGE: tuple[Field, ...] = (
    *("merge.added as new", "merge.changed", "merge.removed as gone", "merge.forgotten"),
    *("merge.notes as told", ("merge.dropped", _dropped_json)),
)
"""What a merge brought in."""
FORGOTTEN_ELSEWHERE = ("forgotten as heard", (IDS, *output.TRACE))
"""What another machine has forgotten."""


def show_restore(screen: Screen, done: RestoreResult) -> None:
    """Print what was or would be imported from an archive."""
    what = f"{count(done.files, 'file')} of {done.made[:10]}, verified"
    if not done.received and not done.sessions:
        screen.line("Nothing to import from ", (done.file, "path"), f" ({what}): all of it is already here.")
    else:
        said = f", {count(done.sessions, 'session')}" if done.sessions else ""
        came = f"{count(done.received, 'revision')}{_merge_counts(done)}{said}"
        made: list[Styled] = [] if done.trial else [" (", commit_label(done.revision), ")"]
        screen.line("Would import " if done.trial else "Imported ", (done.file, "path"), *made)
        screen.line(f"  {what}")
        screen.line(f"  {came}")
    _show_conflicts(screen, done)
    _note_forgotten_elsewhere(screen, done)
    screen.note(*done.notes)


def restore_json(done: RestoreResult) -> dict[str, Any]:
    """An import from an archive as JSON."""
    names = ("file", "bank", "made", "files", "received", "sessions", "revision", "trial as dry_run")
    return {"source": "archive", **fields(done, *names, *MERGE, FORGOTTEN_ELSEWHERE, "notes")}


# -- undo ------------------------------------------------------------------------------------------------


def undo_json(one: UndoResult) -> dict[str, Any]:
    """An undo as JSON."""
    return {"undone": output.revision_json(one.revision), **fields(one.result, "revision", "paths", "notes")}


def show_undo(screen: Screen, done: UndoResult, said: str, back: str) -> None:
    """Print what was undone: `said` is its line in the log, `back` the command that reverses it, empty if
    disappeared facts were restored."""
    result = done.result
    if back:
        screen.line(f"{said}, ", commit_label(result.revision))
        screen.line((f"To reverse this: {back}", "faint"))
    else:
        where: Styled = (", ".join(result.paths), "path")
        screen.line("Restored what had disappeared from ", where, " (", commit_label(result.revision), ")")
    screen.outcome(result)


CHANGE_SIGNS = {(False, True): ("+", "added"), (True, False): ("-", "removed"), (True, True): ("~", "warn")}
"""(was there before, is there after) → sign and style of a change."""


def log_row(one: Revision, entry: DiaryEntry) -> dict[str, Any]:
    """A revision and its entry in the diary, as JSON."""
    return {**output.revision_json(one), "says": entry.sentence}


def diff_json(
    revision: str | None, text: str, changes: Sequence[StatementChange], log: Mapping[str, Any] | None
) -> dict[str, Any]:
    """What a revision changed, as JSON; `log` is its row of the log."""
    named = {"revision": revision, "log": log} if revision else {}
    return {**named, "diff": text, "changes": [fields(one, *CHANGE_FIELDS) for one in changes]}


CHANGE_FIELDS = ("path", "line", "record", "id?", "before", "after")
"""The fields of a statement that a revision changed."""


def undo_plan_json(plan: UndoPlan) -> dict[str, Any]:
    """What an undo would change, as JSON."""
    undoes, changes = ("revision as undoes", output.revision_json), ("changes", CHANGE_FIELDS)
    return {"dryRun": True, **fields(plan, "op", undoes, changes, "conflicts", "notes")}


def show_undo_plan(screen: Screen, plan: UndoPlan, said: str) -> None:
    """Print what an undo would change, or both sides of each conflict. `said` is the revision's line in the
    log."""
    if plan.op == "restore":
        screen.line("Would restore what had disappeared:")
    elif plan.op == "edit":
        screen.line("Would take back hand edits that are not committed yet:")
    else:
        screen.line(f"Would {plan.op} ", (plan.revision.id[:7], "rev"), f" ({said})")
    for one in plan.changes:
        sign, style = CHANGE_SIGNS[one.before is not None, one.after is not None]
        place = (f"{one.path}:{one.line}", "path")
        screen.item([(f"  {sign} ", style)], place, f"  {one.record}", id_label(one.id))
        both = one.before is not None and one.after is not None
        for side, text in (("now:  ", one.before), ("then: ", one.after)):
            if text is not None:
                screen.item(f"      {side if both else ''}", text)
    if plan.conflicts:
        places = count(len(plan.conflicts), "place was", "places were")
        screen.line((f"Conflict: {places} changed again since; undo would write nothing.", "bad"))
    for each in plan.conflicts:
        screen.line("  ", (f"{each.path}:{each.line}", "path"))
        screen.item("    now:    ", each.now or ("nothing", "faint"))
        screen.item("    wanted: ", each.wanted or ("nothing", "faint"))
    screen.note(*plan.notes)


# -- secrets ---------------------------------------------------------------------------------------------

Secrets = tuple[list[tuple[str, int, str]], list[tuple[str, str, int, str]] | None]
"""(path, line, kind) of those in the files, and (revision, path, line, kind) of those in the history, None
where that was not searched."""


def secrets_json(found: Secrets) -> dict[str, Any]:
    """Secrets as JSON, without their text."""
    now, past = found
    secrets = [{"path": p, "line": line, "kind": kind} for p, line, kind in now]
    rows = [{"revision": r, "path": p, "line": line, "kind": kind} for r, p, line, kind in past or ()]
    return {"secrets": secrets} | ({} if past is None else {"history": rows})


def show_secrets(screen: Screen, found: Secrets) -> None:
    """Print where each secret is, and what to do about it."""
    now, past = found[0], found[1] or []
    for path, line, kind in now:
        screen.item([(f"{path}:{line}:", "path"), " "], kind)
    for revision, path, line, kind in past:
        screen.item([(f"{revision[:10]}:{path or 'message'}:{line}:", "path"), " "], kind)
    if not now and not past:
        screen.line(("No secrets", "good"), " found.")
    if now:
        hint = "forget PATH:LINE removes a line everywhere; change the secrets where they are used"
        screen.note(f"{count(len(now), 'secret')} in the files; {hint}")
    if past:
        hint = "change them where they are used; forget --purge removes a line from it"
        screen.note(f"{count(len(past), 'secret')} in the history; {hint}")


# -- log, blame and why ----------------------------------------------------------------------------------


def show_log(screen: Screen, found: list[DiaryEntry], today: date) -> None:
    """Print the diary by day."""
    if not found:
        screen.line("No revisions.")
    for number, (day, entries) in enumerate(groupby(found, lambda one: one.when.date())):
        screen.line() if number else None
        screen.line((output.day_title(day, today if screen.is_terminal else date.min), "strong"))
        for one in entries:
            row: list[Styled] = [(one.sentence, "faint"), (" (undone)", "warn")]
            label: list[Styled] = [(f"  {one.when:%H:%M}  ", "faint"), (one.revision[:7], "rev"), "  "]
            screen.item(label, *(row if one.undone else [one.sentence]))


def show_blame(screen: Screen, lines: Sequence[BlameLine], now: datetime) -> None:
    """Print lines with who wrote each, and when."""
    rows: list[list[Styled]] = []
    for one in lines:
        known = bool(one.revision.strip("0"))
        when = one.when.astimezone(now.tzinfo)
        revision: Styled = (one.revision[:7], "rev") if known else ("not yet", "faint")
        author: Styled = (one.author, "good" if one.author != "ua-memory" else "faint") if known else ""
        day: Styled = (f"{when:%Y-%m-%d}" if known else "", "faint")
        rows.append([revision, day, author, (f"{one.line:>3}", "faint"), one.text.rstrip("\r")])
    screen.rows(rows, gap=1 if screen.width < 60 else 2)


def show_chain(screen: Screen, chain: Chain, now: datetime) -> None:
    """Print what a statement is based on, as a tree."""
    tree = _ChainTree(screen, now)
    for number, step in enumerate(chain.steps):
        screen.line() if number else None
        tree.step(step, "", "")


def show_citing(screen: Screen, found: Sequence[CitingStep], below: str = "") -> None:
    """Print what cites a statement, as a tree."""
    if not found and not below:
        screen.line("Nothing cites it.")
    for number, one in enumerate(found):
        last = number == len(found) - 1
        screen.item([(below + ("└ " if last else "├ "), "faint")], " ".join(one.text.split()))
        rest = below + ("  " if last else "│ ")
        gone = (f"  retired: {one.retired}" if one.retired else "", "warn")
        screen.item([(rest, "faint")], (f"{one.record} ", "faint"), *_location(one), gone)
        show_citing(screen, one.cited_by, rest)


def citing_json(target: str, found: Sequence[CitingStep]) -> dict[str, Any]:
    """What cites a statement, as JSON."""
    return {"target": target, "citedBy": [_citing_json(one) for one in found]}


def _citing_json(one: CitingStep) -> dict[str, Any]:
    return fields(one, "record", "text", "place", "retired?", ("cited_by", _citing_json))


class _ChainTree:
    """Prints a chain as a tree: each statement above those it is based on."""

    def __init__(self, screen: Screen, now: datetime) -> None:
        self.screen, self.now = screen, now
        self.shown: set[str] = set()

    def step(self, step: SentenceStep | BeliefStep | FactStep, lead: str, below: str) -> None:
        """Print a step and those below it. `lead` stands before its first line, `below` before all others."""
        links: tuple[Link, ...] = () if isinstance(step, FactStep) else step.links
        rest = below + ("│ " if links else "  ")
        self._text(step.text, lead, rest if lead else "", "" if lead else "strong")
        if isinstance(step, FactStep):
            self._fact(step, rest)
        else:
            kind = step.record if isinstance(step, BeliefStep) else "sentence"
            self._line(rest, (f"{kind} ", "faint"), *_location(step), *self._written(step.written))
            if isinstance(step, BeliefStep) and step.retired:
                self._line(rest, (f"retired: {step.retired}", "warn"))
            if step.fault:
                self._broken(rest, step.fault)
        for number, link in enumerate(links):
            last = number == len(links) - 1
            self._link(link, below + ("└ " if last else "├ "), below + ("  " if last else "│ "))

    def _link(self, link: Link, lead: str, below: str) -> None:
        if link.step is None:
            self._line(lead, (f"^{link.id}", "id"))
        else:
            self.step(link.step, lead, below)
        if link.fault:
            self._broken(below + "  ", link.fault)
        elif link.quote:
            self._text(f"“{link.quote}” is in the cited text", below + "  ", below + "  ", "good")

    def _fact(self, step: FactStep, rest: str) -> None:
        self._line(rest, ("fact ", "faint"), *_location(step), *self._written(step.written))
        if step.id and step.id in self.shown:
            return
        self.shown.add(step.id or "")
        for quote in step.quotes:
            source = f" ({quote.source})" if quote.source else ""
            self._text(f"“{quote.text}”{source}", rest, rest, "match")
        said = step.session
        client = "" if said.client == "cli" else said.client
        parts = (
            ORIGINS.get(said.origin, said.origin), client and f"in {client}",
            said.session and f"session {said.session}", " ".join(filter(None, (said.day, said.time))),
            said.source,
        )  # fmt: skip
        self._text(", ".join(filter(None, parts)), rest, rest, "faint")
        if said.words:
            self._text(f"“{' '.join(said.words.split())}”", rest, rest, "match")
        elif said.source and said.source.startswith("[["):
            self._text("the transcript of this session is not on this machine", rest, rest, "faint")
        if said.through:
            self._text(f"read through {', '.join(said.through)}", rest, rest, "faint")
        if step.retired:
            self._line(rest, (f"retired: {step.retired}", "warn"))

    def _written(self, written: BlameLine | None) -> list[Styled]:
        if written is None:
            return [("  not committed yet", "warn")]
        when = written.when.astimezone(self.now.tzinfo)
        by = "" if written.author == "ua-memory" else f" by {written.author}"
        return [(f"  {written.op or 'commit'}{by} {when:%Y-%m-%d} ", "faint"), (written.revision[:7], "rev")]

    def _broken(self, rest: str, fault: BrokenLink) -> None:
        self._text(f"✗ {fault.message}", rest, rest, "bad")

    def _line(self, lead: str, *pieces: Styled) -> None:
        self.screen.item([(lead, "faint")], *pieces)

    def _text(self, text: str, lead: str, below: str, style: str) -> None:
        """Print a text, wrapped, with the tree's lines in front."""
        indent = max(output.cell_width(lead), output.cell_width(below))
        room = self.screen.width - indent if self.screen.is_terminal else 10**9
        lines = textwrap.wrap(" ".join(text.split()), max(room, 20), break_long_words=False) or [""]
        for number, line in enumerate(lines):
            self.screen.item([(below if number else lead, "faint")], (line, style) if style else line)


def _location(step: SentenceStep | BeliefStep | FactStep | CitingStep) -> list[Styled]:
    block = getattr(step, "id", None)
    at: Styled = (f"{step.place.path}:{step.place.line}", "path")
    return [(f"^{block} ", "id"), at] if block else [at]


def chain_json(chain: Chain) -> dict[str, Any]:
    """What a statement is based on, as JSON."""
    return fields(chain, "target", ("steps", _step_json), "breaks")


def _step_json(step: SentenceStep | BeliefStep | FactStep) -> dict[str, Any]:
    written = ("written?", ("revision", "author", "when", "op", "subject"))
    found = {"step": "sentence", **fields(step, "text", "place", written)}
    if isinstance(step, FactStep):
        said = ("origin", "client?", "session?", "day?", "time?", "source as trail?", "through?", "words?")
        quotes = ("quotes", ("text?", "source?"))
        return found | {"step": "fact"} | fields(step, "retired?", quotes, ("session as said", said))
    if isinstance(step, BeliefStep):
        found |= {"step": step.record, **fields(step, "retired?")}
    link = ("id", "quote?", "fault?", ("step as rests?", _step_json))
    return found | fields(step, "fault?", ("links as proofs", link))
