"""How far each session has been read: the `through:` marks in the files and the `Through` trailers of
commits."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from urllib.parse import quote, unquote

from ua_memory.clients.turns import Session, Turn
from ua_memory.knowledge import facts, statements
from ua_memory.markdown import document as markdown_document
from ua_memory.markdown import lines as markdown_lines
from ua_memory.markdown import printer
from ua_memory.records import Fact, Place
from ua_memory.store.draft import Draft
from ua_memory.store.store import Store

# -- marks -------------------------------------------------------------------------------------------------
# A mark is `client/session/entry`, each part percent-encoded. It is written into the files and into trailers
# of commits, and either suffices: the files' marks survive a lost history, the trailers survive a file that
# somebody tidied up. A turn counts as read if it is at or before a marked one on its path.


THROUGH_TRAILER, CONTEXT_TRAILER = "Through", "Context"
EVENT_SEPARATOR = "~"
"""Separates an entry's id from a hash of the text that followed it, in the id of a turn that was captured
from an event before the transcript had it (`retain.conversations`)."""
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-([0-9a-f])[0-9a-f-]{21}", re.IGNORECASE)
_LONGEST_SHORT_ID = 40
_UNIQUE_ID_LENGTH = 16
"""An id of at least so many characters is taken for globally unique: a UUID, a hash, `msg_…`."""


def mark_prefix(session: Session) -> str:
    """`client/session/`: how all marks of a session begin."""
    return f"{_escape(session.client)}/{_escape(session.session)}/"


def format_mark(session: Session, entry: str) -> str:
    """`client/session/entry`, as in files and trailers."""
    return mark_prefix(session) + _escape(entry)


def read_ids(store: Store, session: Session, *, with_facts: bool = False) -> tuple[set[str], set[str]]:
    """The ids of the turns up to which a session has been read: by flushes, and by flushes that were undone
    since. With `with_facts` only flushes count that saved facts."""
    return ReadMarks(store, mark_prefix(session), with_facts=with_facts).read_ids(session)


def ids_of_other_sessions(store: Store, session: Session) -> set[str]:
    """The ids up to which other sessions of the client have been read, if they are globally unique: a fork
    begins with a copy of its parent session, and nothing in it says so."""
    return ReadMarks(store, f"{_escape(session.client)}/").ids_of_client(session.client)


def globally_unique(ids: Iterable[str]) -> set[str]:
    """The ids that name the same entry in any transcript, so not line numbers."""
    return {id for id in ids if len(id.partition(EVENT_SEPARATOR)[0]) >= _UNIQUE_ID_LENGTH}


def size_at_last_flush(store: Store, session: Session) -> int | None:
    """The size of the session's context at its last flush, in tokens; None if it never was flushed."""
    last = store.history.with_trailer(THROUGH_TRAILER, mark_prefix(session))
    size = last[0].trailer(CONTEXT_TRAILER) if last else ""
    return int(size) if size.isdigit() else None


def base_ids(ids: Iterable[str]) -> set[str]:
    """The ids of the transcript's entries; a turn captured from an event counts as the entry that it
    follows."""
    return set(filter(None, (id.partition(EVENT_SEPARATOR)[0] for id in ids)))


def without_captured(turns: Iterable[Turn], ids: Iterable[str], reached: Collection[str]) -> Iterator[Turn]:
    """The turns without those that were captured from an event before the transcript had them.

    `ids` are of turns read before. A captured turn is looked for behind the entry that it follows, which is
    one of these turns or, by `reached`, comes before them ('' for the beginning).
    """
    captured: dict[str, set[str]] = {}
    for entry, separator, text in (id.partition(EVENT_SEPARATOR) for id in ids):
        if separator:
            captured.setdefault(entry, set()).add(text)
    next_hashes = set().union(*(captured.pop(id, ()) for id in reached))
    for turn in turns:
        text = text_hash(turn.text) if next_hashes and turn.role == "assistant" else ""
        if text in next_hashes:
            next_hashes.discard(text)
        else:
            yield turn
        next_hashes |= captured.pop(turn.id, set())


def without_queued(turns: Sequence[Turn], waiting: Collection[str]) -> Iterator[Turn]:
    """The turns without those that are queued and were captured from an event before the transcript had
    them."""
    return without_captured(turns, waiting, base_ids(waiting) - {turn.id for turn in turns})


def text_hash(text: str) -> str:
    """The hash of a turn's text that its id contains if it was captured from an event."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:12]


def unread_turns(turns: Iterable[Turn], read: Collection[str]) -> list[Turn]:
    """The turns after the last one that was read, in order."""
    fresh: list[Turn] = []
    for turn in turns:
        fresh.append(turn)
        if turn.id in read:
            fresh.clear()
    return fresh


def with_chained_ids(turns: Iterable[Turn]) -> Iterator[Turn]:
    """The turns of a transcript without entry ids, each with a hash of all turns up to it as its id.

    Line numbers would be equal in any two transcripts without a session id, and the second would be taken for
    read. Equal hashes mean that the same words were said from the beginning on.
    """
    state = hashlib.sha256()
    for turn in turns:
        state.update(f"{turn.role}\0{turn.text}\0".encode("utf-8", "surrogatepass"))
        yield replace(turn, id=state.hexdigest()[:16])


def short_id(name: str) -> str:
    """A session's or turn's id for people: the first part of a UUID, else the id itself if it is short, else
    a hash of it.

    A UUID that begins with the time keeps all of its time. The mark has the whole id in any case.
    """
    plain = re.sub(r"[^\w.-]", "-", name)
    found = _UUID.fullmatch(name.partition(".")[0])
    if found:
        return name[: 13 if found[1] in "67" else 8] + name[36:]
    return plain if len(plain) <= _LONGEST_SHORT_ID else hashlib.sha256(name.encode()).hexdigest()[:8]


def write_marks(draft: Draft, placed: Sequence[tuple[Fact, str]], last: str) -> None:
    """Write a mark under each heading that has new facts, in an open revision.

    `placed` are the facts with the marks of their turns, in the order they were said; the last heading gets
    `last`. An older mark of the same session is replaced.
    """
    wanted: dict[tuple[str, int], str] = {}
    for fact, own in placed:
        if (row := heading_row(draft, fact)) is not None:
            wanted.pop((fact.place.path, row), None)
            wanted[fact.place.path, row] = own
    if wanted:
        wanted[next(reversed(wanted))] = last
    for (path, row), text in sorted(wanted.items(), reverse=True):
        if draft.redact(text) == text:  # an id that looks like a secret stands in the trailer alone
            _write_mark(draft, path, row, text)


def heading_row(draft: Draft, fact: Fact) -> int | None:
    """The line of the heading above a fact in the draft."""
    path = fact.place.path
    now = facts.find_fact(draft.read(path), path, fact.id)
    lines = markdown_document.parse(draft.read(path), path).lines[: now.place.line - 1 if now else 0]
    return next((row for row in range(len(lines), 0, -1) if lines[row - 1].startswith("## ")), None)


def _write_mark(draft: Draft, path: str, row: int, text: str) -> None:
    data = draft.read(path)
    lines = markdown_document.parse(data, path).lines
    below = lines[row] if row < len(lines) else ""
    mark = [printer.through_line(text)]
    if below.startswith(f"<!-- through: {text.rpartition('/')[0]}/") and "," not in below:
        data = markdown_lines.replace_lines(data, Place(path, row + 1, row + 1), mark)
    else:
        data = markdown_lines.insert_after(data, row, mark)
    draft.write(path, data)


def _escape(text: str) -> str:
    """One part of a mark; characters that separate marks, parts and comments are percent-encoded."""
    return quote(text, safe=":@+=~", errors="replace") or "-"


# -- marks of a whole bank ---------------------------------------------------------------------------------
# Looked up once for callers that ask about many sessions.


IdsByPrefix = dict[str, set[str]]
"""Entry ids by `client/session/`."""


class ReadMarks:
    """How far each session has been read, as of the first question. Only marks that begin with `start` are
    looked up. With `with_facts` only flushes count that saved facts."""

    def __init__(self, store: Store, start: str = "", *, with_facts: bool = False) -> None:
        self.store, self._start, self._with_facts = store, start, with_facts

    def read_ids(self, session: Session) -> tuple[set[str], set[str]]:
        """The ids up to which a session has been read: by flushes, and by flushes that were undone since,
        whose turns are read again only on request."""
        read, undone = self._marks_in_history
        prefix = mark_prefix(session)
        undone_ids = undone.get(prefix, set())
        return read.get(prefix) or self._marks_in_files.get(prefix, set()) - undone_ids, undone_ids

    def ids_of_client(self, client: str) -> set[str]:
        """The ids up to which any session of a client has been read, if they are globally unique."""
        start = mark_prefix(Session(client)).partition("/")[0] + "/"
        by = (ids for each in self._marks_in_history for name, ids in each.items() if name.startswith(start))
        return globally_unique(id for ids in by for id in ids)

    @cached_property
    def _marks_in_history(self) -> tuple[IdsByPrefix, IdsByPrefix]:
        """The marks of current flushes, and of those that were undone."""
        log = self.store.history.with_trailer(THROUGH_TRAILER, self._start)
        gone = self.store.history.undone_revisions()
        left = [one for one in log if one.id not in gone and (one.trailer("Facts") or not self._with_facts)]
        current = _by_prefix(m for one in left for m in one.trailers.get(THROUGH_TRAILER, ()))
        undone = _by_prefix(m for one in log if one.id in gone for m in one.trailers.get(THROUGH_TRAILER, ()))
        return current, {start: ids - current.get(start, set()) for start, ids in undone.items()}

    @cached_property
    def _marks_in_files(self) -> IdsByPrefix:
        sought = self._start.encode() or b"through:"
        texts = (each for each in statements.texts(self.store, every=True) if sought in each[1])
        return _by_prefix(m for path, data in texts for m in markdown_document.parse(data, path).through)


def _by_prefix(marks: Iterable[str]) -> IdsByPrefix:
    found: IdsByPrefix = defaultdict(set)
    for mark in marks:
        start, _, entry = mark.rpartition("/")
        found[f"{start}/"].add(unquote(entry))
    return dict(found)
