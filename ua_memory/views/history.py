"""The log, what was forgotten or purged, and what came from other machines, for a person and as JSON."""

from __future__ import annotations

import re
import shlex
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, tzinfo
from itertools import groupby
from typing import TYPE_CHECKING, Any

from ua_memory.knowledge.lineage import BeliefStep, FactStep
from ua_memory.records import is_generated
from ua_memory.text import redaction
from ua_memory.text.wording import counted
from ua_memory.views import output
from ua_memory.views.output import Piece as Words
from ua_memory.views.output import Screen, cells, commit, count, day_title, fields, plain

if TYPE_CHECKING:
    from ua_memory.git.repository import BlameLine, Revision
    from ua_memory.knowledge.lineage import Chain, CitingStep, LineCommit, Link, SentenceStep
    from ua_memory.knowledge.trust import BrokenLink
    from ua_memory.upkeep.archive import RestoreResult
    from ua_memory.upkeep.audit import StatementChange
    from ua_memory.upkeep.forget import ForgetResult, Piece
    from ua_memory.upkeep.purge import PurgePlan, PurgeResult
    from ua_memory.upkeep.sync import SyncResult
    from ua_memory.upkeep.traces import TraceReport
    from ua_memory.upkeep.undo import UndoPlan, UndoResult


# -- diary -----------------------------------------------------------------------------------------------
# The trail told as a diary: one plain sentence for each thing that was done. Pure: revisions in, sentences
# out.


OURS = "ua-memory"
WORDS = 72
"""Characters of a fact that are told."""
MANY = 4
"""Of so many facts the first words are not told one by one."""
CLIENTS = {"cli": "", "mcp": "An agent over MCP", "python": "A program"}
"""Who is behind what calls itself so; the rest goes by its own name."""
NOBODY = frozenset({"cli", "daemon", "doctor", "editor", "store", ""})
"""Doors that tell nothing of who came through them."""
QUIET = frozenset({"consolidate", "flush", "init", "mend", "merge", "refresh", "settle", "sync"})
"""Work that is told without who asked for it."""
VERBS = {
    "consolidate": "Consolidated:", "correct": "Corrected", "import": "Imported", "mend": "Mended",
    "purge": "Purged", "reflect": "Reflected", "refresh": "Refreshed", "restore": "Restored",
    "retain": "Retained", "retire": "Retired", "vouch": "Vouched for",
}  # fmt: skip
DONE = {
    "add": "Added", "change": "Changed", "create": "Created", "delete": "Deleted", "remove": "Removed",
    "set": "Set",
}  # fmt: skip
"""What a subject such as `page: create infra` says was done."""
THINGS = {"config": "setting", "directives": "directive"}


@dataclass(frozen=True)
class DiaryEntry:
    """One line of the diary: when, the revision to take back, the sentence, and whether it was taken back."""

    when: datetime
    revision: str
    says: str
    gone: bool = False


@dataclass(frozen=True)
class _LoggedRevision:
    one: Revision
    when: datetime
    op: str
    who: str
    session: str
    texts: tuple[str, ...]
    gone: bool

    @property
    def alike(self) -> tuple[Any, ...]:
        """What entries have in common that are told as one."""
        if self.op == "insert" and "seen again" not in self.one.subject:
            return (self.when.date(), self.op, self.who, self.session, self.gone)
        if self.op == "edit":
            return (self.when.date(), self.op, self.who, self.one.subject, self.one.paths, self.gone)
        return (self.one.id,)


def entries(
    revisions: Sequence[Revision], brought: Mapping[str, Sequence[Any]], taken_back: set[str],
    zone: tzinfo | None, *, each: bool = False, others: Sequence[Revision] = (),
) -> list[DiaryEntry]:  # fmt: skip
    """Revisions, newest first, as entries; those in a row that are alike are one, unless `each` is wanted.
    `others` are revisions that these took or brought back."""
    logged = [_logged(one, brought.get(one.id, ()), one.id in taken_back, zone) for one in revisions]
    runs = [list(run) for _, run in groupby(logged, lambda one: one.one.id if each else one.alike)]
    more = [_logged(one, brought.get(one.id, ()), False, zone) for one in others]
    known = {each.one.id: each for each in (*more, *logged)}
    return [DiaryEntry(run[0].when, run[0].one.id, _sentence(run, known), run[0].gone) for run in runs]


def _logged(one: Revision, records: Sequence[Any], gone: bool, zone: tzinfo | None) -> _LoggedRevision:
    op = one.trailer("Memory-Op")
    heading = next((r.heading for r in records if getattr(r, "heading", None) and r.heading.client), None)
    client = heading.client if heading and one.author == OURS and op in ("insert", "flush") else ""
    session = (heading.session or "") if heading and client else ""
    door = one.trailer("Door")
    behind = client or ("" if door in NOBODY or op in QUIET else door)
    who = one.author if one.author != OURS else CLIENTS.get(behind, behind)
    texts = tuple(dict.fromkeys(short(record.text) for record in records))
    return _LoggedRevision(one, one.when.astimezone(zone), op, who, session, texts, gone)


def short(text: str) -> str:
    """The first words of a text."""
    words = " ".join(text.split())
    return words if len(words) <= WORDS else f"{words[:WORDS].rsplit(' ', 1)[0].rstrip(',;:.')} …"


def _sentence(run: Sequence[_LoggedRevision], known: Mapping[str, _LoggedRevision]) -> str:
    logged = run[0]
    match logged.op:
        case "insert":
            return _inserted(run)
        case "edit":
            return _edited(run)
        case "flush":
            return _flushed(logged)
        case "undo" | "redo":
            return _undone(logged, known)
        case "":
            return f"{logged.who} committed: {logged.one.subject}"
        case "sync":
            return _by(logged, "Synced another machine's changes")
        case "core replace":
            verb, _, name = logged.one.subject.removeprefix("core: ").partition(" ")
            return _by(logged, f"{'Wrote' if verb == 'add' else 'Rewrote'} the core block {name}")
        case "core accept" | "core reject":
            done, _, what = logged.one.subject.removeprefix("core: ").partition(" ")
            return _by(logged, f"{done.capitalize()}ed {what} for core memory")
        case "forget":
            ids = logged.one.trailers.get("Facts", ())
            named = f" ({', '.join(ids)})" if 0 < len(ids) < MANY else ""
            return _by(logged, f"Forgot {logged.one.subject.removeprefix('forget: ')}{named}")
        case "init":
            return _by(logged, "Created the bank")
    rest = logged.one.subject.partition(": ")[2] or logged.one.subject
    if logged.op in VERBS:
        return _by(logged, f"{VERBS[logged.op]} {rest}", logged.texts)
    thing, (verb, _, name) = logged.one.subject.partition(": ")[0], rest.partition(" ")
    if verb in DONE and thing != logged.one.subject:
        return _by(logged, f"{DONE[verb]} the {THINGS.get(thing, thing)} {name}", logged.texts)
    subject = rest if logged.op == "merge" else logged.one.subject
    return _by(logged, subject[:1].upper() + subject[1:], logged.texts)


def _by(logged: _LoggedRevision, what: str, texts: Sequence[str] = ()) -> str:
    """`Ann replaced …` where somebody did it, else `Replaced …`."""
    first, _, rest = what.partition(" ")
    person = logged.who and not first.endswith(":")
    return f"{logged.who} {first.lower()} {rest}{_quoted(texts)}" if person else f"{what}{_quoted(texts)}"


def _inserted(run: Sequence[_LoggedRevision]) -> str:
    logged = run[0]
    who = f"{logged.who}, session {logged.session}," if logged.who and logged.session else logged.who
    who = who or (f"Session {logged.session}" if logged.session else "")
    again = "seen again" in logged.one.subject
    if len(run) == 1:
        verb = "inserted again" if again else "inserted"
        said = _quoted(logged.texts) or " 1 fact, which was forgotten since"
        return f"{who} {verb}{said}" if who else f"{verb.capitalize()}{said}"
    texts = [text for one in reversed(run) for text in one.texts]
    lost = sum(not one.texts for one in run) if texts else 0
    gone = f"; {lost} {'was' if lost == 1 else 'were'} forgotten since" if lost else ""
    what = f"inserted {len(run)} facts from {run[-1].when:%H:%M} on{_quoted(texts)}{gone}"
    return f"{who} {what}" if who else what[0].upper() + what[1:]


def _edited(run: Sequence[_LoggedRevision]) -> str:
    logged = run[0]
    paths = logged.one.paths
    what = paths[0] if len(paths) == 1 else counted(len(paths), "file")
    said = re.match(r"edit: (remove|delete) (.+)", logged.one.subject)
    done = f"{DONE[said[1]].lower()} {said[2]}" if said else f"edited {what}"
    times = f" {len(run)} times from {run[-1].when:%H:%M} on" if len(run) > 1 else ""
    texts = list(dict.fromkeys(text for one in reversed(run) for text in one.texts))
    return f"{logged.who} {done} by hand{times}{_quoted(texts)}"


def _flushed(logged: _LoggedRevision) -> str:
    number, _, client = logged.one.subject.removeprefix("flush: ").partition(" from ")
    session = logged.session or logged.one.trailer("Session")[:8]
    where = f"{client or 'a conversation'}{f', session {session}' if session else ''}"
    return f"Saved {number} from {where}{_quoted(logged.texts)}"


def _undone(logged: _LoggedRevision, known: Mapping[str, _LoggedRevision]) -> str:
    """What was taken or brought back, as the diary tells of it where it does."""
    verb = "Undid" if logged.op == "undo" else "Redid"
    names = logged.one.trailers.get("Undoes", ())
    what = logged.one.subject.partition(": ")[2].removeprefix("undo: ")
    first = known.get(names[0]) if len(names) == 1 else None
    while first and first.op in ("undo", "redo"):
        first = known.get(first.one.trailer("Undoes"))
    if first:
        said = _sentence([first], known)
        what = said if first.who and said.startswith(first.who) else said[:1].lower() + said[1:]
    return _by(logged, f"{verb} {', '.join(name[:7] for name in names)} ({what})")


def _quoted(texts: Sequence[str]) -> str:
    """`: “the first words”`, of several facts the first ones."""
    if not texts:
        return ""
    shown = texts if len(texts) < MANY else texts[: MANY - 2]
    more = f" and {len(texts) - len(shown)} more" if len(shown) < len(texts) else ""
    return f": {', '.join(f'“{text}”' for text in shown)}{more}"


# -- forgotten -------------------------------------------------------------------------------------------
# What a forgetting does, or has done: for a person, and as JSON. Once it is done, its words are not
# printed: a terminal, and an agent's transcript, would keep them.


SIGNS = {"gone": ("-", "removed"), "revised": ("~", "warn"), "left": ("?", "bad"), "near": (" ", "faint")}


def quoting(found: ForgetResult) -> list[Piece]:
    """The lines of a person that have the words, and stay unless they say otherwise."""
    return [piece for piece in found.plan.left if piece.why == "quotes it"]


def show_forgetting(screen: Screen, found: ForgetResult, patterns: Mapping[str, str]) -> None:
    """What would go, be revised and be left, with its words."""
    plan, near = found.plan, "Near matches, which stay (forget ^ID removes one):"
    for title, kind, pieces in (
        ("Will be removed:", "gone", plan.gone), ("Will be revised:", "revised", plan.revised),
        ("Your own lines, which stay:", "left", plan.left), (near, "near", found.near),
    ):  # fmt: skip
        if pieces or kind == "gone":
            screen.line((title, "strong"))
        sign, style = SIGNS[kind]
        for piece in pieces:
            text = " ".join(redaction.redact(piece.text, patterns).text.split())
            more: list[Words] = [(f"  ^{piece.id}", "id")] if piece.id else []
            screen.item([(f"  {sign} ", style)], text, *more)
            place = f"{piece.place.path}:{piece.place.line}"
            screen.item("      ", (f"{place}  {_named(piece)}", "faint"))
    for one in found.waiting:
        turns = count(len(one.turns), "turn")
        screen.line(f"Queued turns of this session will be removed too: {turns} ({one.key})")
    if found.touched:
        screen.line(f"Will be removed from the queue: {', '.join(found.touched)}")
    screen.line(("The history keeps it.", "faint"))


def _name(piece: Piece) -> str:
    """What it is called, so that `why` and `forget --purge` know it again."""
    if piece.id and is_generated(piece.id):
        return f"^{piece.id}"
    return f"{piece.place.path}#^{piece.id}" if piece.id else f"{piece.place.path}:{piece.place.line}"


def _named(piece: Piece) -> str:
    return f"{'your ' if piece.by_person else ''}{piece.what}, {piece.why}"


def show_forgotten(screen: Screen, done: ForgetResult, *, purging: bool = False) -> None:
    """What was done, and what the search afterwards found. With `purging` the history goes next."""
    plan = done.plan
    assert done.result
    screen.line("Forgot ", _counted(plan.gone), " (", commit(done.result.revision), ")")
    for kind, pieces in (("gone", plan.gone), ("revised", plan.revised), ("left", plan.left)):
        sign, style = SIGNS[kind]
        for piece in pieces:
            name = _name(piece)
            screen.item([(f"  {sign} ", style)], (name, "id" if piece.id else "path"), f"  {_named(piece)}")
    cleared = done.cleared
    if cleared.pending or done.waiting:
        names = [*cleared.pending, *(one.key for one in done.waiting)]
        screen.line(f"Removed from the queue: {', '.join(names)}")
    looked = (f"{'git' if kind == 'trail' else kind} ({n})" for kind, n in done.proof.looked.items())
    screen.line(_verdict(done.proof), f": searched {', '.join(looked)}.")
    if not purging:
        screen.line(("The history keeps it; undo restores it.", "faint"))
    more = [f"the next searches rebuild the index ({cleared.left} left)"] if cleared.left else []
    screen.outcome(done.result, *more)
    screen.note(*(f"it is still in {each.where}" for each in done.proof.found))
    if done.proof.found and quoting(done):
        screen.note("your own lines stay: ua-memory forget PATH:LINE removes one")


def _verdict(proof: TraceReport) -> Words:
    """What a search for what was removed comes to."""
    return ("Nothing of it is left", "good") if proof.holds else ("Not all of it was removed", "bad")


def _counted(pieces: Sequence[Piece]) -> str:
    each, plurals = Counter(piece.what for piece in pieces), {"entity": "entities"}
    return ", ".join(count(n, what, plurals.get(what)) for what, n in each.items()) or "queued turns"


def forgotten_shape(found: ForgetResult, patterns: Mapping[str, str]) -> dict[str, Any]:
    """As JSON; with its words only before it is done."""
    words = found.result is None

    def pieces(given: Sequence[Piece]) -> list[dict[str, Any]]:
        return [
            fields(piece, "what", "why", "by_person")
            | ({"text": redaction.redact(piece.text, patterns).text} if words else {})
            | output.place(piece.place, piece.id)
            for piece in given
        ]

    plan = found.plan
    done: dict[str, Any] = {}
    if found.result is not None:
        cleared = fields(found.cleared, "pending", "logs as logLines", "turns", "embeddings")
        done = fields(found.result, "revision", "notes") | output.searched(found.proof)
        done["cleared"] = cleared
    return {
        "dryRun": found.result is None,
        "gone": pieces(plan.gone),
        "revised": pieces(plan.revised),
        "left": pieces(plan.left),
        **({"near": pieces(found.near)} if words and found.near else {}),
        "waiting": [{"key": one.key, "turns": len(one.turns)} for one in found.waiting],
        **fields(found, "touched"),
        **done,
    }


# -- purged ----------------------------------------------------------------------------------------------
# `ua-memory forget --purge`: what leaves the history, which branches and tags are rewritten, the backup.


def show_purge(screen: Screen, planned: PurgePlan) -> None:
    """What a purge would remove and rewrite."""
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
        why = f" {names}: they were removed before, or had no id and"
        screen.line(("The history has no text of", "warn"), why)
        screen.line("  more than one line; what it says of these is not found.")
    if planned.citing:
        where = ", ".join(planned.citing)
        screen.line(("Your own lines that cite it, which stay:", "strong"), " ", (where, "path"))
    if planned.around:
        screen.line(("Not rewritten:", "warn"), f" {planned.around}, which has committed files of this bank")
    if planned.own:
        screen.line(("Unreachable objects are deleted too.", "faint"))


def show_purged(screen: Screen, planned: PurgePlan, made: PurgeResult) -> None:
    """What a purge has rewritten, and what is left for a person to do."""
    for name, (old, new) in made.rewrote.items():
        screen.line("Rewrote ", made.short(name), "  ", (old[:7], "rev"), " to ", (new[:7], "rev"))
    if not made.rewrote:
        screen.line("No revision had to be rewritten.")
    proved(screen, made.proof, made.revision, made.backup)
    if planned.around:
        screen.note(f"{planned.around} has committed files of this bank; rewrite its history yourself")


def proved(screen: Screen, proof: TraceReport, revision: str | None, backup: str) -> None:
    """What the search has found, and where the old history lies."""
    objects = count(proof.looked.get("history", 0), "object")
    said: list[Words] = [f", also in the {objects} of the history (", commit(revision), ")"]
    screen.line(_verdict(proof), *(said if proof.holds else ()))
    screen.note(*(f"it is still in {each.where}" for each in proof.found))
    screen.line("The old history is in ", (backup, "path"))
    rest = ". Until then the purge is not finished."
    screen.line("Once you are sure, delete that: ", (f"rm {backup}", "strong"), rest)


def purge_shape(planned: PurgePlan) -> dict[str, Any]:
    """What a purge would remove and rewrite, as JSON."""
    return {
        "ids": [f"^{block}" for block in planned.ids],
        "refs": [fields(ref, "name", "id as revision") for ref in planned.refs],
        **fields(planned, "remotes"),
        "unknown": [f"^{block}" for block in planned.unknown],
        **fields(planned, "around?", "citing?"),
        "contents": len(planned.contents),
    }


def purged_shape(made: PurgeResult) -> dict[str, Any]:
    """What a purge has rewritten, as JSON."""
    return {
        "rewrote": [{"name": name, "from": old, "to": new} for name, (old, new) in made.rewrote.items()],
        **fields(made, "backup", "revision"),
        **output.searched(made.proof),
    }


# -- synced and restored ---------------------------------------------------------------------------------

SHOWN_CHANGES = 12

WHY = {
    "kept": "deleted on one machine, changed on the other: kept",
    "both": "changed on both machines: both were kept",
    "theirs": "changed on both machines: the remote's was kept",
}


def show_synced(screen: Screen, done: SyncResult) -> None:
    """What a sync did, or would do."""
    if not done.received and not done.sent and not done.forced and not done.followed:
        screen.line("Up to date with ", (done.address, "path"), ": nothing to receive or send.")
    else:
        screen.line(("Would sync" if done.trial else "Synced", "strong"), " with ", (done.address, "path"))
        verb = ("to receive", "to send") if done.trial else ("received", "sent")
        screen.line(f"  {verb[0]} {count(done.received, 'revision')}{_figures(done)}")
        screen.line(f"  {verb[1]} {count(done.sent, 'revision')}")
    _merged_told(screen, done)
    _purges_told(screen, done)
    _left_told(screen, done)
    if done.trial:
        screen.line(("Nothing was changed (--dry-run).", "faint"))
    screen.note(*done.notes)


def _left_told(screen: Screen, done: SyncResult | RestoreResult) -> None:
    """Name the lines of a person's that have the words of what was forgotten."""
    if done.heard and not done.heard.proof.holds:
        left = (each.where for each in done.heard.proof.found)
        screen.note(*(f"forgotten on another machine, but it is still in {where}" for where in left))
        screen.note("your own lines stay: ua-memory forget PATH:LINE removes one")


def _purges_told(screen: Screen, done: SyncResult) -> None:
    """What of a history takes the place of what: purged here, or on another machine."""
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
            proved(screen, done.followed.proof, done.followed.new, done.followed.backup)


def _figures(done: SyncResult | RestoreResult) -> str:
    merge, gone = done.merge, len(done.merge.forgotten)
    numbers = {"new": merge.came, "changed": merge.changed, "gone": merge.went, "forgotten": gone}
    parts = [f"{number:,} {word}" for word, number in numbers.items() if number]
    return f": {', '.join(parts)} (of what has an id)" if parts else ""


def _merged_told(screen: Screen, done: SyncResult | RestoreResult) -> None:
    """What both machines changed, with what each of them has, for a person to settle."""
    for each in done.merge.notes[:SHOWN_CHANGES]:
        screen.line((each.path, "path"), " ", (each.what, "id"), f" {WHY[each.why]}")
        for name, text in (("here", each.ours), ("there", each.theirs)):
            screen.item(f"  {name + ':':<7}", text or ("(deleted)", "faint"))
    if len(done.merge.notes) > SHOWN_CHANGES:
        screen.line((f"… and {len(done.merge.notes) - SHOWN_CHANGES:,} more (--json lists all)", "faint"))
    both = [each.what for each in done.merge.notes if each.why == "both"]
    if any(what.startswith("^") for what in both):
        screen.line(("To resolve one: edit the line with the original id, and delete the other.", "faint"))
    for name in (what.removeprefix("## ") for what in both if what.startswith("## ")):
        how = f'ua-memory core replace {shlex.quote(name)} "what holds"'
        screen.line((f"{name} has both versions. To resolve it: {how}", "faint"))
    if "text" in both:
        how = "Both versions of a text are in the file, one after the other: delete the wrong one."
        screen.line((how, "faint"))
    # What was written or changed on one machine and forgotten on the other: where it was, not its words.
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


def synced_shape(done: SyncResult) -> dict[str, Any]:
    """The JSON of a sync."""
    return {
        **fields(done, "remote", "address", "trial as dry_run", "received", "sent", "revision"),
        **_merged_shape(done),
        "forced": dict(zip(("from", "to"), done.forced, strict=True)) if done.forced else None,
        "followed": _followed_shape(done.followed) if done.followed else None,
        "heard": _heard_shape(done.heard),
        **fields(done, "notes"),
    }


def _heard_shape(one: Any) -> dict[str, Any] | None:
    return one and {"ids": [f"^{block}" for block in one.ids], **output.searched(one.proof)}


def _followed_shape(one: Any) -> dict[str, Any]:
    return {
        "ids": [f"^{block}" for block in one.ids],
        "from": one.old,
        "to": one.new or None,
        "backup": one.backup or None,
        **output.searched(one.proof),
        **fields(one, "holding"),
    }


def _merged_shape(done: SyncResult | RestoreResult) -> dict[str, Any]:
    """The JSON of what came in."""
    merge = done.merge
    return {
        **fields(merge, "came as new", "changed", "went as gone", "forgotten", "notes as told"),
        "dropped": [plain(each) | {"id": f"^{each.id}" if each.id else None} for each in merge.dropped],
    }


def show_restored(screen: Screen, done: RestoreResult) -> None:
    """Say what an archive brought."""
    what = f"{count(done.files, 'file')} of {done.made[:10]}, verified: "
    if not done.received and not done.sessions:
        screen.line("Nothing to import from ", (done.file, "path"), f" ({what}all of it is already here).")
    else:
        said = f", {count(done.sessions, 'session')}" if done.sessions else ""
        came = f"{count(done.received, 'revision')}{_figures(done)}{said}"
        screen.line(
            "Would import " if done.trial else "Imported ", (done.file, "path"), f" ({what}{came})",
            *([] if done.trial else [" ", commit(done.revision)]),
        )  # fmt: skip
    _merged_told(screen, done)
    _left_told(screen, done)
    screen.note(*done.notes)


def restored_shape(done: RestoreResult) -> dict[str, Any]:
    """What an archive brought, as JSON."""
    return {
        "source": "archive",
        **fields(done, "file", "bank", "made", "files", "received", "sessions", "revision"),
        **fields(done, "trial as dry_run"),
        **_merged_shape(done),
        "heard": _heard_shape(done.heard),
        **fields(done, "notes"),
    }


# -- undone ----------------------------------------------------------------------------------------------


def undo_shape(done: UndoResult) -> dict[str, Any]:
    """A revision that was taken back, as JSON."""
    return {"undone": output.revision(done.revision), **fields(done.result, "revision", "paths", "notes")}


def show_undone(screen: Screen, done: UndoResult, said: str, back: str) -> None:
    """What was done, as `log` says it; `back` is the command that reverses it, empty where held facts were
    restored."""
    result = done.result
    if back:
        screen.line(f"{said}, ", commit(result.revision))
        screen.line((f"To reverse this: {back}", "faint"))
    else:
        where: Words = (", ".join(result.paths), "path")
        screen.line("Restored what had disappeared from ", where, " (", commit(result.revision), ")")
    screen.outcome(result)


SIDES = {(False, True): ("+", "added"), (True, False): ("-", "removed"), (True, True): ("~", "warn")}
"""How a change is marked, by whether it was there before and is after."""


def diff_shape(revision: str | None, text: str, changes: Sequence[StatementChange]) -> dict[str, Any]:
    """What a revision changed, as JSON."""
    named = {"revision": revision} if revision else {}
    return {**named, "diff": text, "changes": [fields(one, *CHANGE) for one in changes]}


CHANGE = ("path", "line", "record", "id?", "before", "after")
"""What is told of a statement that a revision changed."""


def undo_plan_shape(plan: UndoPlan) -> dict[str, Any]:
    """What an undo would change, as JSON."""
    return {
        "dryRun": True,
        "op": plan.op,
        "undoes": output.revision(plan.revision),
        "changes": [fields(one, *CHANGE) for one in plan.changes],
        **fields(plan, "conflicts", "notes"),
    }


def show_undo_plan(screen: Screen, plan: UndoPlan, said: str) -> None:
    """What an undo would change, or the two sides of each conflict; `said` is what the log says of what it
    takes back."""
    if plan.op == "restore":
        screen.line("Would restore what had disappeared:")
    else:
        screen.line(f"Would {plan.op} ", (plan.revision.id[:7], "rev"), f" ({said})")
    for one in plan.changes:
        sign, style = SIDES[one.before is not None, one.after is not None]
        name: list[Words] = [(f"  ^{one.id}", "id")] if one.id else []
        screen.item([(f"  {sign} ", style)], (f"{one.path}:{one.line}", "path"), f"  {one.record}", *name)
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


def secrets_shape(found: Secrets) -> dict[str, Any]:
    """As JSON; never the secret itself."""
    now, past = found
    shape: dict[str, Any] = {"secrets": [{"path": p, "line": line, "kind": kind} for p, line, kind in now]}
    if past is not None:
        rows = [{"revision": r, "path": p, "line": line, "kind": kind} for r, p, line, kind in past]
        shape["history"] = rows
    return shape


def show_secrets(screen: Screen, found: Secrets) -> None:
    """A line for each, and what to do about them."""
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
    """The diary, day by day."""
    day = None
    if not found:
        screen.line("No revisions.")
    for one in found:
        if one.when.date() != day:
            if day is not None:
                screen.line()
            day = one.when.date()
            screen.line((day_title(day, today if screen.fancy else date.min), "strong"))
        label: list[Words] = [(f"  {one.when:%H:%M}  ", "faint"), (one.revision[:7], "rev"), "  "]
        said: list[Words] = [(one.says, "faint"), (" (undone)", "warn")] if one.gone else [one.says]
        screen.item(label, *said)


def show_blame(screen: Screen, lines: Sequence[BlameLine], now: datetime) -> None:
    """Lines with who wrote each, and when."""
    rows: list[list[Words]] = []
    for one in lines:
        known = bool(one.revision.strip("0"))
        when = one.when.astimezone(now.tzinfo)
        revision: Words = (one.revision[:7], "rev") if known else ("not yet", "faint")
        author: Words = (one.author, "good" if one.author != "ua-memory" else "faint") if known else ""
        day: Words = (f"{when:%Y-%m-%d}" if known else "", "faint")
        rows.append([revision, day, author, (f"{one.line:>3}", "faint"), one.text])
    screen.rows(rows, gap=1 if screen.width < 60 else 2)


def show_chain(screen: Screen, chain: Chain, now: datetime) -> None:
    """What a statement rests on, as a tree."""
    tree = _Tree(screen, now)
    for number, step in enumerate(chain.steps):
        if number:
            tree.screen.line()
        tree.step(step, "", "")


def show_citing(screen: Screen, found: Sequence[CitingStep], below: str = "") -> None:
    """What rests on a statement, as a tree: what rests on that stands under it."""
    if not found and not below:
        screen.line("Nothing rests on it.")
    for number, one in enumerate(found):
        last = number == len(found) - 1
        screen.item([(below + ("└ " if last else "├ "), "faint")], " ".join(one.text.split()))
        rest = below + ("  " if last else "│ ")
        gone: list[Words] = [(f"  retired: {one.retired}", "warn")] if one.retired else []
        screen.item([(rest, "faint")], (f"{one.record} ", "faint"), *_cited(one), *gone)
        show_citing(screen, one.cited_by, rest)


def citing_shape(target: str, found: Sequence[CitingStep]) -> dict[str, Any]:
    """What rests on a statement, as JSON."""
    return {"target": target, "citedBy": [_citing_shape(one) for one in found]}


def _citing_shape(one: CitingStep) -> dict[str, Any]:
    said = fields(one, "record", "text", "place", "retired?")
    return said | {"citedBy": [_citing_shape(each) for each in one.cited_by]}


class _Tree:
    """A chain drawn downwards: what is said above, what it rests on below it."""

    def __init__(self, screen: Screen, now: datetime) -> None:
        self.screen, self.now = screen, now
        self.shown: set[str] = set()

    def step(self, step: SentenceStep | BeliefStep | FactStep, lead: str, below: str) -> None:
        """One step. `lead` stands before its first line, `below` before all others."""
        links: tuple[Link, ...] = () if isinstance(step, FactStep) else step.links
        rest = below + ("│ " if links else "  ")
        style = "strong" if not lead else ""
        self._text(step.text, lead, below + ("│ " if links else "  ") if lead else "", style)
        if isinstance(step, FactStep):
            self._fact(step, rest)
        else:
            kind = step.record if isinstance(step, BeliefStep) else "sentence"
            self._line(rest, (f"{kind} ", "faint"), *_cited(step), *self._written(step.written))
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
        self._line(rest, ("fact ", "faint"), *_cited(step), *self._written(step.written))
        if step.id and step.id in self.shown:
            return
        self.shown.add(step.id or "")
        for quote in step.quotes:
            source = f" ({quote.source})" if quote.source else ""
            self._text(f"“{quote.text}”{source}", rest, rest, "match")
        said = step.session
        parts = (
            f"said by {said.origin}", said.client and f"in {said.client}",
            said.session and f"session {said.session}", " ".join(filter(None, (said.day, said.time))),
            said.trail,
        )  # fmt: skip
        self._text(", ".join(filter(None, parts)), rest, rest, "faint")
        if said.words:
            self._text(f"“{' '.join(said.words.split())}”", rest, rest, "match")
        elif said.trail and said.trail.startswith("[["):
            self._text("the words of this session are not on this machine", rest, rest, "faint")
        if said.through:
            self._text(f"read through {', '.join(said.through)}", rest, rest, "faint")
        if step.retired:
            self._line(rest, (f"retired: {step.retired}", "warn"))

    def _written(self, written: LineCommit | None) -> list[Words]:
        if written is None:
            return [("  not committed yet", "warn")]
        when = written.when.astimezone(self.now.tzinfo)
        by = "" if written.author == "ua-memory" else f" by {written.author}"
        return [(f"  {written.op or 'commit'}{by} {when:%Y-%m-%d} ", "faint"), (written.revision[:7], "rev")]

    def _broken(self, rest: str, fault: BrokenLink) -> None:
        self._text(f"✗ {fault.message}", rest, rest, "bad")

    def _line(self, lead: str, *pieces: Words) -> None:
        self.screen.item([(lead, "faint")], *pieces)

    def _text(self, text: str, lead: str, below: str, style: str) -> None:
        """A text of any length with the tree beside each of its lines."""
        room = self.screen.width - max(cells(lead), cells(below)) if self.screen.fancy else 10**9
        lines = textwrap.wrap(" ".join(text.split()), max(room, 20), break_long_words=False) or [""]
        for number, line in enumerate(lines):
            self.screen.item([(below if number else lead, "faint")], (line, style) if style else line)


def _cited(step: SentenceStep | BeliefStep | FactStep | CitingStep) -> list[Words]:
    block = getattr(step, "id", None)
    at: Words = (f"{step.place.path}:{step.place.line}", "path")
    return [(f"^{block} ", "id"), at] if block else [at]


def chain_shape(chain: Chain) -> dict[str, Any]:
    """What a statement rests on, as JSON."""
    steps = [_step_shape(step) for step in chain.steps]
    return {**fields(chain, "target"), "steps": steps, **fields(chain, "breaks")}


def _step_shape(step: SentenceStep | BeliefStep | FactStep) -> dict[str, Any]:
    found = {"step": "sentence", **fields(step, "text", "place", "written?")}
    if isinstance(step, FactStep):
        said = ("origin", "client?", "session?", "day?", "time?", "trail?", "through?", "words?")
        quotes = [fields(quote, "text?", "source?") for quote in step.quotes]
        told = {"quotes": quotes, "said": fields(step.session, *said)}
        return found | {"step": "fact"} | fields(step, "retired?") | told
    if isinstance(step, BeliefStep):
        found |= {"step": step.record, **fields(step, "retired?")}
    links = [
        fields(link, "id", "quote?", "fault?") | ({"rests": _step_shape(link.step)} if link.step else {})
        for link in step.links
    ]
    return found | fields(step, "fault?") | {"proofs": links}
