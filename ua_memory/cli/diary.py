"""The trail told as a diary: one plain sentence for each thing that was done. Pure: revisions in, sentences
out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from itertools import groupby
from typing import TYPE_CHECKING, Any

from ua_memory.wording import counted

if TYPE_CHECKING:
    from ua_memory.memory import Revision

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
    "consolidate": "Consolidated", "import": "Imported", "mend": "Mended", "purge": "Purged",
    "reflect": "Reflected", "refresh": "Refreshed", "restore": "Restored", "retain": "Retained",
}  # fmt: skip
DONE = {
    "add": "Added", "change": "Changed", "create": "Created", "delete": "Deleted", "remove": "Removed",
    "set": "Set",
}  # fmt: skip
"""What a subject such as `page: create infra` says was done."""
THINGS = {"config": "setting", "directives": "directive"}


@dataclass(frozen=True)
class Entry:
    """One line of the diary: when, the revision to take back, the sentence, and whether it was taken back."""

    when: datetime
    revision: str
    says: str
    gone: bool = False


@dataclass(frozen=True)
class _Told:
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
            return (self.when.date(), self.op, self.who, self.one.paths, self.gone)
        return (self.one.id,)


def entries(
    revisions: Sequence[Revision], brought: Mapping[str, Sequence[Any]], taken_back: set[str],
    zone: tzinfo | None, *, each: bool = False, others: Sequence[Revision] = (),
) -> list[Entry]:  # fmt: skip
    """Revisions, newest first, as entries; those in a row that are alike are one, unless `each` is wanted.
    `others` are revisions that these took or brought back."""
    told = [_told(one, brought.get(one.id, ()), one.id in taken_back, zone) for one in revisions]
    runs = [[one] for one in told] if each else [list(run) for _, run in groupby(told, lambda one: one.alike)]
    more = [_told(one, brought.get(one.id, ()), False, zone) for one in others]
    known = {each.one.id: each for each in (*more, *told)}
    return [Entry(run[0].when, run[0].one.id, _sentence(run, known), run[0].gone) for run in runs]


def _told(one: Revision, records: Sequence[Any], gone: bool, zone: tzinfo | None) -> _Told:
    op = one.trailer("Memory-Op")
    heading = next((r.heading for r in records if getattr(r, "heading", None) and r.heading.client), None)
    client = heading.client if heading and one.author == OURS and op in ("insert", "flush") else ""
    session = (heading.session or "") if heading and client else ""
    door = one.trailer("Door")
    behind = client or ("" if door in NOBODY or op in QUIET else door)
    who = one.author if one.author != OURS else CLIENTS.get(behind, behind)
    texts = tuple(dict.fromkeys(short(record.text) for record in records))
    return _Told(one, one.when.astimezone(zone), op, who, session, texts, gone)


def short(text: str) -> str:
    """The first words of a text."""
    words = " ".join(text.split())
    return words if len(words) <= WORDS else f"{words[:WORDS].rsplit(' ', 1)[0].rstrip(',;:.')} …"


def _sentence(run: Sequence[_Told], known: Mapping[str, _Told]) -> str:
    told = run[0]
    match told.op:
        case "insert":
            return _inserted(run)
        case "edit":
            return _edited(run)
        case "flush":
            return _flushed(told)
        case "undo" | "redo":
            return _undone(told, known)
        case "":
            return f"{told.who} committed: {told.one.subject}"
        case "sync":
            return _by(told, "Brought in what another machine had")
        case "core replace":
            verb, _, name = told.one.subject.removeprefix("core: ").partition(" ")
            return _by(told, f"{'Wrote' if verb == 'add' else 'Rewrote'} the core block {name}")
        case "forget":
            ids = told.one.trailers.get("Facts", ())
            named = f" ({', '.join(ids)})" if 0 < len(ids) < MANY else ""
            return _by(told, f"Forgot {told.one.subject.removeprefix('forget: ')}{named}")
        case "init":
            return _by(told, "Made this folder a bank")
    rest = told.one.subject.partition(": ")[2] or told.one.subject
    if told.op in VERBS:
        return _by(told, f"{VERBS[told.op]} {rest}", told.texts)
    thing, (verb, _, name) = told.one.subject.partition(": ")[0], rest.partition(" ")
    if verb in DONE and thing != told.one.subject:
        return _by(told, f"{DONE[verb]} the {THINGS.get(thing, thing)} {name}", told.texts)
    subject = rest if told.op == "merge" else told.one.subject
    return _by(told, subject[:1].upper() + subject[1:], told.texts)


def _by(told: _Told, what: str, texts: Sequence[str] = ()) -> str:
    """`Ann replaced …` where somebody did it, else `Replaced …`."""
    first, _, rest = what.partition(" ")
    person = told.who and not first.endswith(":")
    return f"{told.who} {first.lower()} {rest}{_quoted(texts)}" if person else f"{what}{_quoted(texts)}"


def _inserted(run: Sequence[_Told]) -> str:
    told = run[0]
    who = f"{told.who}, session {told.session}," if told.who and told.session else told.who
    who = who or (f"Session {told.session}" if told.session else "")
    again = "seen again" in told.one.subject
    if len(run) == 1:
        verb = "inserted again" if again else "inserted"
        said = _quoted(told.texts) or " 1 fact, which was forgotten since"
        return f"{who} {verb}{said}" if who else f"{verb.capitalize()}{said}"
    texts = [text for one in reversed(run) for text in one.texts]
    lost = sum(not one.texts for one in run) if texts else 0
    gone = f"; {lost} {'was' if lost == 1 else 'were'} forgotten since" if lost else ""
    what = f"inserted {len(run)} facts from {run[-1].when:%H:%M} on{_quoted(texts)}{gone}"
    return f"{who} {what}" if who else what[0].upper() + what[1:]


def _edited(run: Sequence[_Told]) -> str:
    told = run[0]
    paths = told.one.paths
    what = paths[0] if len(paths) == 1 else counted(len(paths), "file")
    times = f" {len(run)} times from {run[-1].when:%H:%M} on" if len(run) > 1 else ""
    texts = list(dict.fromkeys(text for one in reversed(run) for text in one.texts))
    return f"{told.who} edited {what} by hand{times}{_quoted(texts)}"


def _flushed(told: _Told) -> str:
    number, _, client = told.one.subject.removeprefix("flush: ").partition(" from ")
    session = told.session or told.one.trailer("Session")[:8]
    where = f"{client or 'a conversation'}{f', session {session}' if session else ''}"
    return f"Read a conversation of {where}, and kept {number}{_quoted(told.texts)}"


def _undone(told: _Told, known: Mapping[str, _Told]) -> str:
    """What was taken or brought back, as the diary tells of it where it does."""
    verb = "Took back" if told.op == "undo" else "Brought back"
    names = told.one.trailers.get("Undoes", ())
    what = told.one.subject.partition(": ")[2].removeprefix("undo: ")
    first = known.get(names[0]) if len(names) == 1 else None
    while first and first.op in ("undo", "redo"):
        first = known.get(first.one.trailer("Undoes"))
    if first:
        said = _sentence([first], known)
        what = said if first.who and said.startswith(first.who) else said[:1].lower() + said[1:]
    return _by(told, f"{verb} {', '.join(name[:7] for name in names)} ({what})")


def _quoted(texts: Sequence[str]) -> str:
    """`: “the first words”`, of several facts the first ones."""
    if not texts:
        return ""
    shown = texts if len(texts) < MANY else texts[: MANY - 2]
    more = f" and {len(texts) - len(shown)} more" if len(shown) < len(texts) else ""
    return f": {', '.join(f'“{text}”' for text in shown)}{more}"
