"""How far each session has been read: `through:` in the files and in commit trailers."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from urllib.parse import quote, unquote

from ua_memory.knowledge import facts, statements
from ua_memory.markdown import document as markdown_document
from ua_memory.markdown import lines as markdown_lines
from ua_memory.markdown import printer
from ua_memory.records import Fact, Place
from ua_memory.store.draft import Draft
from ua_memory.store.store import Store
from ua_memory.transcripts.turns import Session, Turn

# -- through -----------------------------------------------------------------------------------------------
# How far a session has been read: `through:` in the files and `Through` in the trail, and nothing else.
#
# Both say `client/session/entry`, with what separates them written as %xx. Either suffices: the files'
# marks survive a lost trail, the trailers survive a file that somebody tidied up. A turn counts as read if
# it stands at or before a marked one on its path.


TRAILER, SIZE = "Through", "Context"
FOLLOWS = "~"
"""Between the id of an entry and a hash of the words that came after it, in the id of a turn that was told
before the transcript had it (`retain.conversations`)."""
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-([0-9a-f])[0-9a-f-]{21}", re.IGNORECASE)
_LONGEST = 40
_UNIQUE = 16
"""Characters from which on a client's id is no number of its own: a UUID, a hash, `msg_…`."""


def prefix(session: Session) -> str:
    """The prefix of every mark of a session."""
    return f"{_part(session.client)}/{_part(session.session)}/"


def mark(session: Session, entry: str) -> str:
    """`client/session/entry`, as in files and trailers."""
    return prefix(session) + _part(entry)


def ledger(store: Store, session: Session, *, kept: bool = False) -> tuple[set[str], set[str]]:
    """How far a session has been read, by the ids of its turns: by flushes that stand, and by those that were
    undone since. With `kept` those count that kept something.

    The history is asked first, in one call.
    """
    return ReadMarks(store, prefix(session), kept=kept).of(session)


def elsewhere(store: Store, session: Session) -> set[str]:
    """The ids up to which other sessions of the client have been read, if no two entries share them: a
    fork begins with a copy of its parent session, and nothing in it says so."""
    return ReadMarks(store, f"{_part(session.client)}/").elsewhere(session.client)


def unique(ids: Iterable[str]) -> set[str]:
    """The ids that mean the same entry in any transcript, so not line numbers."""
    return {id for id in ids if len(id.partition(FOLLOWS)[0]) >= _UNIQUE}


def size_at_last_flush(store: Store, session: Session) -> int | None:
    """How large the session's context was when it was last flushed, in tokens; None if it never was."""
    last = store.history.with_trailer(TRAILER, prefix(session))
    size = last[0].trailer(SIZE) if last else ""
    return int(size) if size.isdigit() else None


def base_ids(ids: Iterable[str]) -> set[str]:
    """The ids as in transcripts; a turn taken from an event counts as the entry that it follows."""
    return set(filter(None, (id.partition(FOLLOWS)[0] for id in ids)))


def without_recorded(turns: Iterable[Turn], ids: Iterable[str], reached: Collection[str]) -> Iterator[Turn]:
    """The turns without those that were taken from an event before the transcript had them.

    `ids` are of turns read before. A turn from an event counts from the entry that it follows, among these
    turns or, by `reached`, before them ('' for the beginning).
    """
    told: dict[str, set[str]] = {}
    for after, sign, words in (id.partition(FOLLOWS) for id in ids):
        if sign:
            told.setdefault(after, set()).add(words)
    expected = set().union(*(told.pop(id, ()) for id in reached))
    for turn in turns:
        words = words_hash(turn.text) if expected and turn.role == "assistant" else ""
        if words in expected:
            expected.discard(words)
        else:
            yield turn
        expected |= told.pop(turn.id, set())


def without_waiting(turns: Sequence[Turn], waiting: Collection[str]) -> Iterator[Turn]:
    """The turns without what a client has told of before its transcript had it, and what waits since."""
    return without_recorded(turns, waiting, base_ids(waiting) - {turn.id for turn in turns})


def words_hash(text: str) -> str:
    """The hash of a turn's words in an id."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:12]


def unread(turns: Iterable[Turn], read: Collection[str]) -> list[Turn]:
    """The turns after the last one that was read, in order."""
    fresh: list[Turn] = []
    for turn in turns:
        fresh.append(turn)
        if turn.id in read:
            fresh.clear()
    return fresh


def with_chained_ids(turns: Iterable[Turn]) -> Iterator[Turn]:
    """The turns of a transcript without ids of its own, each named by a hash of all up to it.

    Line numbers would do within one transcript; but another without a session id has the same lines, and
    would be taken for read. Equal hashes mean that the same words were said from the beginning on.
    """
    state = hashlib.sha256()
    for turn in turns:
        state.update(f"{turn.role}\0{turn.text}\0".encode("utf-8", "surrogatepass"))
        yield replace(turn, id=state.hexdigest()[:16])


def short(name: str) -> str:
    """A session's or turn's id as a person reads it: the first part of a UUID, else the id, if that is short.

    A UUID that begins with the time keeps all of its time. The mark has the whole id in any case.
    """
    plain = re.sub(r"[^\w.-]", "-", name)
    found = _UUID.fullmatch(name.partition(".")[0])
    if found:
        return name[: 13 if found[1] in "67" else 8] + name[36:]
    return plain if len(plain) <= _LONGEST else hashlib.sha256(name.encode()).hexdigest()[:8]


def write(draft: Draft, placed: Sequence[tuple[Fact, str]], last: str) -> None:
    """Write a mark under each heading that has facts of an open revision.

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
            _stand(draft, path, row, text)


def heading_row(draft: Draft, fact: Fact) -> int | None:
    """The line of the heading above a fact in the draft."""
    path = fact.place.path
    now = facts.fact_in(draft.read(path), path, fact.id)
    lines = markdown_document.parse(draft.read(path), path).lines[: now.place.line - 1 if now else 0]
    return next((row for row in range(len(lines), 0, -1) if lines[row - 1].startswith("## ")), None)


def _stand(draft: Draft, path: str, row: int, text: str) -> None:
    data = draft.read(path)
    lines = markdown_document.parse(data, path).lines
    below = lines[row] if row < len(lines) else ""
    if below.startswith(f"<!-- through: {text.rpartition('/')[0]}/") and "," not in below:
        draft.write(
            path,
            markdown_lines.replace_lines(data, Place(path, row + 1, row + 1), [printer.through_line(text)]),
        )
    else:
        draft.write(path, markdown_lines.insert_after(data, row, [printer.through_line(text)]))


def _part(text: str) -> str:
    """One part of a mark, with what separates marks, parts and comments written as %xx."""
    return quote(text, safe=":@+=~", errors="replace") or "-"


# -- marks -------------------------------------------------------------------------------------------------
# The `through:` marks of a bank, looked up once for whoever asks after many sessions at a time.


By = dict[str, set[str]]
"""Entry ids by what the marks of their session begin with."""


class ReadMarks:
    """How far each session has been read, as of the first question; of those alone whose marks begin with
    `start`. With `kept` those flushes count that kept something."""

    def __init__(self, store: Store, start: str = "", *, kept: bool = False) -> None:
        self.store, self._start, self._kept = store, start, kept

    def of(self, session: Session) -> tuple[set[str], set[str]]:
        """The ids up to which a session has been read: by flushes that stand, and by those that were undone
        since, whose turns are read again only on request."""
        found, undone = self._trail
        start = prefix(session)
        gone = undone.get(start, set())
        return found.get(start) or self._files.get(start, set()) - gone, gone

    def elsewhere(self, client: str) -> set[str]:
        """The ids up to which any session of a client has been read, if no two entries share them."""
        start = prefix(Session(client)).partition("/")[0] + "/"
        by = (ids for each in self._trail for name, ids in each.items() if name.startswith(start))
        return unique(id for ids in by for id in ids)

    @cached_property
    def _trail(self) -> tuple[By, By]:
        """The marks of flushes that stand, and of those that were undone."""
        log = self.store.history.with_trailer(TRAILER, self._start)
        gone = self.store.history.taken_back()
        left = [each for each in log if each.id not in gone and (each.trailer("Facts") or not self._kept)]
        stand = _by(m for each in left for m in each.trailers.get(TRAILER, ()))
        undone = _by(m for each in log if each.id in gone for m in each.trailers.get(TRAILER, ()))
        return stand, {start: ids - stand.get(start, set()) for start, ids in undone.items()}

    @cached_property
    def _files(self) -> By:
        sought = self._start.encode() or b"through:"
        texts = (each for each in statements.texts(self.store, every=True) if sought in each[1])
        return _by(mark for path, data in texts for mark in markdown_document.parse(data, path).through)


def _by(marks: Iterable[str]) -> By:
    found: By = defaultdict(set)
    for mark in marks:
        start, _, entry = mark.rpartition("/")
        found[f"{start}/"].add(unquote(entry))
    return dict(found)
