"""Forgetting: choosing what goes, what was derived from it, the files without it, and the revision."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from ua_memory.errors import ChangedOnDisk, Held, NotFound, TooLarge, Usage
from ua_memory.git.repository import MACHINE
from ua_memory.index import words as index_words
from ua_memory.index.items import IndexItem
from ua_memory.index.terms import Query, all_words_query
from ua_memory.knowledge import observations, statements, tombstones, trust
from ua_memory.knowledge.facts import heading_of
from ua_memory.knowledge.lineage import cut, plain
from ua_memory.knowledge.sessions import IN_BANK, parse
from ua_memory.knowledge.statements import Statement, new_id
from ua_memory.knowledge.tombstones import PATH, Removal
from ua_memory.markdown import document as markdown_document
from ua_memory.markdown import fields, printer
from ua_memory.markdown import lines as markdown_lines
from ua_memory.markdown.blocks import BlockShape, scan
from ua_memory.records import (
    Entity,
    Fact,
    Observation,
    Opinion,
    Place,
    Proof,
    Tombstone,
    is_generated,
    ref_of,
    written_id,
)
from ua_memory.retain import ledger
from ua_memory.store.draft import Draft, Result
from ua_memory.store.store import Store
from ua_memory.text.grounding import ungrounded
from ua_memory.text.wording import counted
from ua_memory.upkeep import traces
from ua_memory.upkeep.traces import Cleanup, CleanupReport, Needle, TraceReport, needles, unmentioned

if TYPE_CHECKING:
    from ua_memory.index.entities import EntityDetails
    from ua_memory.index.sync import Index
    from ua_memory.recall.search import SearchResult
    from ua_memory.retain.queue import QueueEntry


# -- plan --------------------------------------------------------------------------------------------------
# What forgetting comes to: what goes, what is changed, and which lines of a person's are left.


What = Literal["fact", "observation", "opinion", "entity", "sentence", "text"]

ASKED = "asked for"
ALONE = "rests on nothing else"
NAMES = "names what only that named"
SAME = "says the same"
CITES = "cites it"
QUOTES = "quotes it"
NEAR = "similar, but does not have all of the words"


@dataclass(frozen=True, slots=True)
class Piece:
    """Something in a file: what it is, where it stands, its text, and why it goes, changes or stays.

    `by_person` tells that a person wrote its lines.
    """

    what: What
    place: Place
    text: str
    why: str
    id: str | None = None
    by_person: bool = False


@dataclass(frozen=True, slots=True)
class ForgetTarget:
    """What is asked to be forgotten: a record, or lines of a file that are none."""

    place: Place
    text: str
    record: Fact | Observation | Opinion | None = None
    what: What = "text"


@dataclass(frozen=True, slots=True)
class Plan:
    """What goes, what is changed, what of a person's is left, and the files before and after.

    `texts` must not be found anywhere afterwards; `also` neither, unless something that stays says so itself.
    """

    gone: tuple[Piece, ...] = ()
    revised: tuple[Piece, ...] = ()
    left: tuple[Piece, ...] = ()
    texts: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    files: Mapping[str, tuple[bytes, bytes | None]] = field(default_factory=dict)
    removals: tuple[Removal, ...] = ()

    def carry_out(self, draft: Draft) -> None:
        """Write the files as they are to be into an open revision. ChangedOnDisk."""
        for path, (before, after) in self.files.items():
            if draft.read(path) != before:
                raise ChangedOnDisk("the file was saved meanwhile", where=path, hint="try again")
            draft.restore(path, after)

    def without(self, files: Mapping[str, bytes]) -> dict[str, bytes]:
        """Files as they are to be. ChangedOnDisk where one is not as it was when this was worked out."""
        for path, (before, _) in self.files.items():
            if files.get(path) != before:
                raise ChangedOnDisk("the file was saved meanwhile", where=path, hint="try again")
        after = {**files, **{path: data for path, (_, data) in self.files.items()}}
        return {path: data for path, data in after.items() if data is not None}

    @property
    def asked(self) -> tuple[Piece, ...]:
        """What was asked for, without what follows from it."""
        return tuple(piece for piece in self.gone if piece.why == ASKED)

    @property
    def ids(self) -> frozenset[str]:
        """The ids that go, as they are known in the whole bank."""
        return frozenset(ref_of(piece.place.path, piece.id) for piece in self.gone if piece.id)


# -- choosing ----------------------------------------------------------------------------------------------
# What is meant by a target: an id, lines of a file, a session, a name.


_SHOWN = 8
"""Characters that a heading shows of a UUID, at least."""
_LISTED = 8
"""Sessions that an error lists."""


def target(store: Store, given: str) -> list[ForgetTarget]:
    """What is named by an id or by lines (`statements.find_excerpts`). NotFound, Usage."""
    try:
        named = statements.find_excerpts(store, given)
    except NotFound:
        if stone := tombstones.read(store).by_id.get(tombstone_id(given)):
            hint = "ua-memory forget --purge removes it from the history too"
            raise NotFound(f"it was forgotten on {stone.on}", where=given, hint=hint) from None
        raise
    if named.record:
        return [of(named.record)]
    if not named.span:
        raise Usage(f"{given[:80]!r} is not an id or a line", hint="name ^id, PATH:LINE or PATH:FROM-TO")
    return list(_lines(named.path, store.truth(named.path), named.span))


def tombstone_id(given: str) -> str:
    """The id that the tombstone of what is named so has; '' for what names no id."""
    named = statements.read(given)
    block = named.id or (named.file if is_generated(named.file) else "")
    return ref_of(named.file, block) if block and (named.file or is_generated(block)) else block


def is_forgotten(store: Store, block: str) -> bool:
    """Whether an id (`^id`, `PATH#^id`) has a tombstone; one that a person typed may stand there anew."""
    stone = tombstone_id(block)
    if stone not in tombstones.read(store):
        return False
    try:
        return is_generated(stone) or statements.find_excerpts(store, block).record is None
    except NotFound:
        return True


def containing(texts: Mapping[str, bytes], items: Iterable[IndexItem], query: Query) -> list[ForgetTarget]:
    """The statements, and the paragraphs and items of prose, in these items that contain all words of a
    query by themselves: what stands beside them in a passage, and under their heading, is not meant."""
    found: list[ForgetTarget] = []
    for item in items:
        if item.path in texts:
            found += _lines(item.path, texts[item.path], f"{item.line}-{item.end}", prose_only=True)
    found = list({each.place: each for each in found}.values())
    lines = {
        path: markdown_document.parse(texts[path], path).lines for path in {each.place.path for each in found}
    }
    said = ["\n".join(lines[at.path][at.line - 1 : at.end]) for at in (each.place for each in found)]
    return [each for each, is_meant in zip(found, index_words.matching(query, said), strict=True) if is_meant]


def piece(item: IndexItem) -> Piece:
    """Something that a search found, as a plan shows it."""
    what = cast(What, item.record if item.record in ("fact", "observation", "opinion") else "text")
    return Piece(what, item.place, item.text, NEAR, item.id, item.origin == "person")


def of(record: Statement) -> ForgetTarget:
    """A record as a target."""
    return ForgetTarget(record.place, record.text, record)


def _lines(path: str, data: bytes, span: str, *, prose_only: bool = False) -> Iterator[ForgetTarget]:
    """The records that stand on these lines, and the blocks; of what is no record with `prose_only`
    paragraphs and items alone."""
    document = markdown_document.parse(data, path)
    first, last = statements.line_span(path, span, len(document.lines))
    unsaid = (BlockShape.RULE, *([BlockShape.HEADING, BlockShape.COMMENT] if prose_only else []))
    taken: set[int] = set()
    for record in document.statements:
        if record.place.line <= last and first <= record.place.end:
            taken.update(range(record.place.line, record.place.end + 1))
            yield of(record)
    for block in scan(document.lines, document.front_end):
        rows = [n for n in range(max(first, block.start + 1), min(last, block.end) + 1) if n not in taken]
        if rows and block.shape not in unsaid:
            # A person who names one line of a paragraph means that line; of an item, all of it.
            place = Place(path, rows[0], rows[-1])
            if block.shape is BlockShape.ITEM:
                place = Place(path, block.start + 1, block.end)
            text = "\n".join(document.lines[place.line - 1 : place.end])
            yield ForgetTarget(place, plain(text).strip())


def sessions(texts: Mapping[str, bytes]) -> dict[str, list[Fact]]:
    """{session, as headings show it: the facts that were said in it}, in the order of the files."""
    found: dict[str, list[Fact]] = {}
    for path, data in texts.items():
        for fact in markdown_document.parse(data, path).of(Fact):
            if fact.heading.session:
                found.setdefault(fact.heading.session, []).append(fact)
    return found


def choose_session(named: str, said: Mapping[str, Sequence[Fact]], waits: Collection[str]) -> str:
    """The session that is meant by its id, by what a heading shows of it, or by any beginning of these that
    means one session alone. `waits` are whole ids. NotFound with those there are, Usage with those that it
    may mean."""
    named = named.strip()
    known = dict.fromkeys([*said, *map(ledger.short, waits)])
    if any(traces.is_session(one, named) for one in (*known, *waits)):
        return named
    low = named.casefold()
    begins = {ledger.short(one) for one in (*known, *waits) if one.casefold().startswith(low)}
    # More than a heading shows of an id, and less than all of it.
    begins |= {one for one in known if len(one) >= _SHOWN and low.startswith(f"{one.casefold()}-")}
    if len(begins) == 1:
        return begins.pop()
    if begins:
        hint = f"give more of its id: {_named([one for one in known if one in begins], said)}"
        raise Usage(f"{len(begins)} sessions begin with this", where=named[:80], hint=hint)
    hint = f"the latest: {_named([*known], said)}" if known else "this bank has no sessions"
    raise NotFound("no session begins with this", where=named[:80], hint=hint)


def _named(names: Sequence[str], said: Mapping[str, Sequence[Fact]]) -> str:
    """Sessions for a person to choose from, the last ones."""
    rows = []
    for name in names[-_LISTED:]:
        facts = said.get(name, ())
        where = f"{facts[-1].heading.client}, {facts[-1].place.path}" if facts else "waits to be flushed"
        rows.append(f"{name} ({where})")
    more = f", and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(rows) + more


def choose_entity(
    texts: Mapping[str, bytes], names: Collection[str], known: Collection[str]
) -> list[ForgetTarget]:
    """What is settled on these names, and the statements whose ids, or texts where they have none, are
    `known`."""
    found = []
    wanted = {name.casefold() for name in names}
    for path, data in texts.items():
        for record in markdown_document.parse(data, path).records:
            if isinstance(record, Entity) and wanted & {n.casefold() for n in (record.name, *record.aliases)}:
                found.append(ForgetTarget(record.place, record.name, what="entity"))
            elif isinstance(record, Statement) and (f"^{record.ref}" if record.id else record.text) in known:
                found.append(of(record))
    return found


# -- derived -----------------------------------------------------------------------------------------------
# What was derived from what goes, followed through all files until nothing more follows.


Ours = Callable[[str, int, int], bool]
"""Whether a machine wrote these lines of a file last."""

_BLOCK = re.compile(r"\^([A-Za-z0-9-]+)")


class ForgetPlanner:
    """One forgetting while it is worked out. `texts` are all files; `ours` tells a machine's lines from a
    person's, of which only those go that are asked for, unless `take` says that they all do. `ids` are gone
    already, and what they said is `known` where that counts; without `strict` what rests on something else
    stays, whatever it names."""

    def __init__(
        self, texts: Mapping[str, bytes], targets: Sequence[ForgetTarget], ours: Ours, today: date, *,
        take: bool, patterns: Mapping[str, str], ids: Collection[str] = (), strict: bool = True,
        known: Mapping[str, Statement] | None = None,
    ) -> None:  # fmt: skip
        self.texts, self.ours, self.today, self.take = texts, ours, today, take
        self.needles = needles((each.text for each in targets if each.what != "entity"), patterns)
        self.gone: dict[Place, Piece] = {}
        self.records: dict[Place, Statement] = {}
        self.ids: set[str] = set(ids)
        self.strict = strict
        self.also: list[str] = []
        """What went along: quotations, former wordings, texts of what was derived."""
        self._documents: dict[str, markdown_document.Document] = {}
        self._said: dict[str, Statement | None] = {**(known or {})}
        for target in targets:
            if target.record is not None:
                self._lose(target.record, ASKED)
            else:
                self.gone[target.place] = self._piece(target.what, target.place, target.text, ASKED)
        while self._follow():
            pass

    # -- what follows ----------------------------------------------------------------------------------

    def _follow(self) -> bool:
        """Let go of what rests on nothing else; whether there was any."""
        before = len(self.gone)
        for path in self.concerned():
            for record in self.document(path).statements:
                if record.place not in self.gone and (why := self._reason(record)):
                    self._lose(record, why)
        return len(self.gone) > before

    def _lose(self, record: Statement, why: str) -> None:
        self.gone[record.place] = self.piece(record, why)
        self.records[record.place] = record
        if record.id and record.ref:
            others = self._namesakes(record)
            self.ids |= {record.id} if not others else set()
            self.ids |= {record.ref} if record.ref not in {each.ref for each in others} else set()
        if isinstance(record, Fact):
            self.also += [quote.text for quote in record.quotes]
        if why != ASKED or not isinstance(record, Fact):
            self.also += trust.sources(record)

    def _namesakes(self, record: Statement) -> list[Statement]:
        """What has its id, which a person typed, in other files: a link may mean that."""
        if is_generated(str(record.id)):
            return []
        mark, own = f"^{record.id}".encode(), record.place.path
        there = (path for path, data in self.texts.items() if path != own and mark in data)
        others = (each for path in there for each in self.document(path).statements)
        return [each for each in others if each.id == record.id]

    def lost(self, link: Proof | fields.Citation) -> bool:
        """Whether what a link means goes."""
        return link.ref in self.ids or link.id in self.ids

    def _reason(self, record: Statement) -> str:
        """Why a record goes with what goes already, '' where it stays."""
        if self.says(record.text) and (self.take or self.machine(record.place)):
            return SAME
        rests = trust.proofs_of(record)
        lost = [proof.ref for proof in rests if self.lost(proof)]
        if not lost or (isinstance(record, Observation) and observations.by_person(record)):
            return ""
        kept = [proof.ref for proof in rests if not self.lost(proof)]
        if not kept:
            return ALONE
        return NAMES if self.names(record.text, kept, lost) else ""

    def removals(self) -> Iterator[Removal]:
        """What is put under a stone: all that had an id or was asked for. A sentence is known again by what
        it rested on, and a name is not forgotten by itself."""
        for place, piece in self.gone.items():
            record = self.records.get(place)
            if record is not None or (piece.what == "text" and (piece.why == ASKED or piece.by_person)):
                quotes = tuple(quote.text for quote in record.quotes) if isinstance(record, Fact) else ()
                yield Removal((record and record.ref) or new_id(), piece.text, quotes)

    # -- looking -----------------------------------------------------------------------------------------

    def concerned(self) -> list[str]:
        """The files that have what goes, cite it or say it."""
        own = {place.path for place in self.gone}
        marks = [f"^{written_id(block)}".encode() for block in self.ids]

        def is_concerned(path: str, data: bytes) -> bool:
            if path == PATH:
                return False
            cited = path in own or any(mark in data for mark in marks)
            return cited or any(needle.within(data) for needle in self.needles)

        return [path for path, data in self.texts.items() if is_concerned(path, data)]

    def document(self, path: str) -> markdown_document.Document:
        """A file, parsed."""
        if path not in self._documents:
            self._documents[path] = markdown_document.parse(self.texts[path], path)
        return self._documents[path]

    def machine(self, place: Place) -> bool:
        """Whether a machine wrote these lines last."""
        return self.ours(place.path, place.line, place.end)

    def cites(self, text: str) -> bool:
        """Whether a text names an id that goes."""
        named = (*_BLOCK.findall(text), *(each.ref for each in fields.citations(text)))
        return any(block in self.ids for block in named)

    def says(self, text: str) -> bool:
        """Whether one of the texts stands in a text."""
        return any(needle.within(text) for needle in self.needles)

    def names(self, text: str, kept: Iterable[str], lost: Iterable[str]) -> bool:
        """Whether a text names something that what it rests on said, and of which only what goes did."""
        if not self.strict:
            return False
        left = self._evidence(kept)
        missing = ungrounded(text, left)
        return bool(missing) and len(ungrounded(text, [*left, *self._evidence(lost)])) < len(missing)

    def _evidence(self, ids: Iterable[str]) -> list[str]:
        found = [each for each in map(self.statement, ids) if each is not None]
        named = (name for each in found for name in each.entities)
        return [*(text for each in found for text in trust.sources(each)), *named]

    def statement(self, block: str) -> Statement | None:
        """What has an id, None where nothing has."""
        if block not in self._said:
            mark = f"^{written_id(block)}".encode()
            there = (path for path, data in self.texts.items() if mark in data)
            found = (record for path in there for record in self.document(path).statements)
            self._said[block] = next((each for each in found if each.ref == block), None)
        return self._said[block]

    def piece(self, record: Statement, why: str) -> Piece:
        """A record as a piece of a plan."""
        what = cast(What, type(record).__name__.lower())
        return self._piece(what, record.place, record.text, why, record.id)

    def _piece(self, what: What, place: Place, text: str, why: str, block: str | None = None) -> Piece:
        return Piece(what, place, text, why, block, not self.machine(place))


# -- owners ------------------------------------------------------------------------------------------------
# Whose lines are whose: a machine's, which may go with what they rest on, or a person's.


def line_owners(store: Store, texts: Mapping[str, bytes], rev: str = "HEAD") -> Ours:
    """Whose lines are whose, asked of the trail once for each file; of another history by `rev`. Without a
    trail nobody knows: then all count as a person's."""

    authors: dict[str, list[str]] = {}

    def ours(path: str, line: int, end: int) -> bool:
        if path not in authors:
            authors[path] = [row.author for row in store.history.blame(path, texts[path], rev=rev)]
        return {*authors[path][line - 1 : end]} == {MACHINE[0]}

    return ours


# -- edits -------------------------------------------------------------------------------------------------
# One file while things are taken out of it: lines that go, lines in the place of others, all else to the
# byte.


_AROUND = re.compile(r"\s*<!--\s*(?:chunk|tags):.*-->\s*")
"""A comment of ours that says something of what stands below it, and nothing without that."""


class FileEdits:
    """The changes of one file. Lines count from 1."""

    def __init__(self, path: str, data: bytes, document: markdown_document.Document) -> None:
        self.path, self.data, self.document = path, data, document
        self._gone: set[int] = set()
        self._new: dict[Place, list[str]] = {}

    @property
    def changed(self) -> bool:
        return bool(self._gone or self._new)

    def drop(self, line: int, end: int) -> None:
        """Take lines out."""
        self._gone.update(range(line, end + 1))

    def replace(self, place: Place, text: str) -> None:
        """Other lines for these."""
        self._new[place] = text.split("\n")

    def result(self) -> bytes | None:
        """The file's bytes after it; None where nothing that says anything is left."""
        self._close_up()
        data = self.data
        for place, lines in self._edits():
            data = markdown_lines.replace_lines(data, place, lines)
        return None if self._says_nothing(data) else data

    def _edits(self) -> list[tuple[Place, Sequence[str]]]:
        """From the last to the first, so that the numbers of those before stay."""
        new = [(p, lines) for p, lines in self._new.items() if p.line not in self._gone]
        covered = {n for place, _ in new for n in range(place.line, place.end + 1)}
        gone = [(Place(self.path, n, n), ()) for n in self._gone - covered]
        return sorted([*new, *gone], key=lambda each: -each[0].line)

    def _close_up(self) -> None:
        """Headings and comments of ours that say something of what is gone go, too; of two empty lines that
        come to stand together, one."""
        lines, gone = self.document.lines, self._gone
        blocks = list(scan(lines, self.document.front_end))
        heads = [block.start for block in blocks if block.shape is BlockShape.HEADING]
        for start in reversed(heads):
            level = markdown_lines.heading_level(lines[start].strip())
            ends = (n for n in heads if n > start and markdown_lines.heading_level(lines[n].strip()) <= level)
            body = range(start + 1, next(ends, len(lines)))
            said = [n + 1 for n in body if lines[n].strip()]
            if level > 1 and gone.intersection(said) and all(
                n in gone or _AROUND.fullmatch(lines[n - 1]) for n in said
            ) and self._ours(start):  # fmt: skip
                gone.update(n + 1 for n in (start, *body))
        for n in sorted(gone):
            before = next((m for m in range(n - 1, 0, -1) if m not in gone), 0)
            after = next((m for m in range(n + 1, len(lines) + 1) if m not in gone), 0)
            blank = [bool(m) and not lines[m - 1].strip() for m in (before, after)]
            if not before and blank[1]:
                gone.add(after)
                continue
            at_end = not any(lines[m - 1].strip() for m in range(n + 1, len(lines) + 1) if m not in gone)
            if all(blank) or (at_end and blank[0] and self.data.endswith(b"\n")):
                gone.add(before)

    def _ours(self, start: int) -> bool:
        """Whether a heading says nothing but what of ours stands below it."""
        client = heading_of(self.document.lines[start].strip()).client
        kind = markdown_lines.kind_of(self.path)
        if kind is markdown_lines.FileKind.DOCUMENT:  # what is drawn from it later stands below its heading
            return not client
        return bool(client) or kind is markdown_lines.FileKind.PAGE

    def _says_nothing(self, data: bytes) -> bool:
        """Whether only the title is left that a file of ours begins with."""
        if not self._gone or not self.path.startswith("memory/"):
            return False
        stem = self.path.rpartition("/")[2].removesuffix(".md")
        document = markdown_document.parse(data, self.path)
        rest = [line.strip().casefold() for line in document.lines if line.strip()]
        return rest in ([], [f"# {stem}".casefold()]) and not document.front


# -- prose -------------------------------------------------------------------------------------------------
# Sentences of a page or of core memory without those that rest on what goes.


_PREFIX = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+(?:\[[ xX]\]\s+)?")
_QUOTED = re.compile(r"\s*>")
_ENDS = re.compile(r"(?<=[.!?。！？])\s+")

Names = Callable[[str, Collection[str]], bool]
"""Whether a sentence names what none of these ids says."""


def without(
    text: str, ids: Collection[str], needles: Sequence[Needle], names: Names
) -> tuple[str, list[str], list[str]]:
    """A block of prose without the sentences that rest on these ids alone, that say one of the texts, or that
    name what only those ids say; another loses the citation: (what is left, '' for nothing; the sentences
    that went; those that lost a citation)."""
    hits = [span for needle in needles for span in needle.spans(text)]
    kept: list[str] = []
    gone: list[str] = []
    revised: list[str] = []
    end, opens = 0, False
    for start, stop, cited in _parts(text):
        lead, sentence, end = text[end:start], text[start:stop], stop
        lost = [each for each in cited if each.ref in ids or each.id in ids]
        rest = [each.ref for each in cited if each not in lost]
        said = any(first < stop and start < last for first, last in hits)
        if said or (lost and (not rest or names(plain(sentence), rest))):
            gone.append(_said(sentence))
            opens = opens or start == 0
            continue
        if lost:
            revised.append(_said(sentence))
            sentence = _unlinked(sentence, start, lost)
        kept.append(lead + sentence)
    if not gone and not revised:
        return text, [], []
    left = "".join(kept) + text[end:]
    prefix = match[0] if (match := _PREFIX.match(text)) else ""
    # Where the first sentence went, the bullet went with it.
    body = left.lstrip() if opens else left.removeprefix(prefix)
    return prefix + body if any(map(str.isalnum, body)) else "", gone, revised


def _said(sentence: str) -> str:
    return plain(sentence).strip(" \t\n,;")


def _parts(text: str) -> Iterator[tuple[int, int, list[fields.Citation]]]:
    """The sentences of a block, as far as they can be taken apart: those in front of citations together, and
    a quotation as a whole."""
    if _QUOTED.match(text):
        yield 0, len(text), list(fields.citations(text))
        return
    for start, stop, cited in cut(text):
        at = start
        for end in () if cited else _ENDS.finditer(text, start, stop):
            yield at, end.start(), cited
            at = end.end()
        yield at, stop, cited


def _unlinked(sentence: str, start: int, lost: Sequence[fields.Citation]) -> str:
    """A sentence without some of its citations, and without what stood between them and those that stay."""
    for each in reversed(lost):
        before, after = sentence[: each.start - start], sentence[each.end - start :]
        before = re.sub(r"[ \t]*[,;]?[ \t]*$", "", before) if not before.endswith("\n") else before
        if before.rstrip().endswith((".", "!", "?", "]")) and after.lstrip(" ,;").startswith("[["):
            after = " " + after.lstrip(" ,;\t")
        sentence = before + after
    return sentence


# -- changing ----------------------------------------------------------------------------------------------
# The files after it: without what goes, with what stays changed where it cited or quoted it.


_META = re.compile(r"\s+[-*+]\s+[a-z]+:\s")


class ForgetEdits:
    """The files of one forgetting while they are changed, and what is to be told of it."""

    def __init__(self, deriving: ForgetPlanner) -> None:
        self.deriving = deriving
        self.sentences: dict[Place, Piece] = {}
        self.revised: list[Piece] = []
        self.left: list[Piece] = []

    def plan(self) -> Plan:
        """All of it."""
        deriving = self.deriving
        edits = [self._edited(path) for path in deriving.concerned()]
        changed = {edit.path: (edit.data, edit.result()) for edit in edits if edit.changed}
        gone = [*deriving.gone.values(), *self.sentences.values()]
        also = [*deriving.also, *(piece.text for piece in self.sentences.values())]
        return Plan(
            tuple(sorted(gone, key=_order)), tuple(sorted(self.revised, key=_order)),
            tuple(sorted(self.left, key=_order)), tuple(n.text for n in deriving.needles if not n.secret),
            tuple(dict.fromkeys(also)), changed, tuple(deriving.removals()),
        )  # fmt: skip

    def _edited(self, path: str) -> FileEdits:
        deriving = self.deriving
        edits = FileEdits(path, deriving.texts[path], deriving.document(path))
        taken: set[int] = set()
        for record in edits.document.records:
            if isinstance(record, (Fact, Observation, Opinion, Entity, Tombstone)):
                taken.update(range(record.place.line, record.place.end + 1))
        for place in (place for place in deriving.gone if place.path == path):
            edits.drop(place.line, place.end)
            taken.update(range(place.line, place.end + 1))
        for record in edits.document.statements:
            if record.place not in deriving.gone:
                self._revise(edits, record)
        self._prose(edits, taken)
        return edits

    # -- records that stay -------------------------------------------------------------------------------

    def _revise(self, edits: FileEdits, record: Statement) -> None:
        place = record.place
        lines = "\n".join(edits.document.lines[place.line - 1 : place.end])
        quoted, cited = self.deriving.says(lines), self.deriving.cites(lines)
        if not quoted and not cited:
            return
        if isinstance(record, Fact):
            self._revise_fact(edits, record)
            return
        new = self._without(record)
        if new != record:
            edits.replace(place, printer.show(new))
            self.revised.append(self.deriving.piece(record, CITES if cited else QUOTES))
        elif quoted:
            self.left.append(self.deriving.piece(record, QUOTES))

    def _revise_fact(self, edits: FileEdits, fact: Fact) -> None:
        """A fact that stays loses the lines of its metadata that cite what goes, or have its words."""
        deriving = self.deriving
        lost, stay = "", ""
        for n in range(fact.place.line, fact.place.end + 1):
            line = edits.document.lines[n - 1]
            why = QUOTES if deriving.says(line) else CITES if deriving.cites(line) else ""
            if not why:
                continue
            meta = n > fact.place.line and _META.match(line)
            if meta and (deriving.take or deriving.ours(edits.path, n, n)):
                edits.drop(n, n)
                lost = lost or why
            else:
                stay = stay or why
        if lost:
            self.revised.append(deriving.piece(fact, lost))
        if stay:
            self.left.append(deriving.piece(fact, stay))

    def _without(self, record: Observation | Opinion) -> Observation | Opinion:
        """A belief without the proofs that go, and without what they brought along."""
        deriving = self.deriving
        rests = trust.proofs_of(record)
        kept = tuple(
            replace(proof, quote="") if proof.quote and deriving.says(proof.quote) else proof
            for proof in rests
            if not deriving.lost(proof)
        )
        lost = [proof.ref for proof in rests if deriving.lost(proof)]
        names = self._brought(record.entities, "entities", lost, kept, record.text)
        tags = self._brought(record.tags, "tags", lost, kept, record.text)
        if isinstance(record, Opinion):
            return replace(record, because=kept, entities=names, tags=tags)
        stay = [proof.ref for proof in kept]
        was = tuple(
            each
            for each in record.was
            if not deriving.says(each.text) and not (lost and deriving.names(each.text, stay, lost))
        )
        new = replace(record, proofs=kept, was=was, entities=names, tags=tags)
        if not lost:
            return new
        facts = {p.ref: fact for p in kept if isinstance(fact := deriving.statement(p.ref), Fact)}
        days = observations.days_of(new, facts)
        trend = observations.trend(days, deriving.today) if days and deriving.strict else record.trend
        first, last = (days[0], days[-1]) if days else (None, None)
        return replace(new, since=first, last=last, trend=trend or None)

    def _brought(
        self, there: Sequence[str], key: str, lost: Iterable[str], kept: Sequence[Proof], text: str
    ) -> tuple[str, ...]:
        """The names or tags of a belief without those that only what goes has brought along."""

        def of(ids: Iterable[str]) -> set[str]:
            found = filter(None, map(self.deriving.statement, ids))
            return {each.casefold() for record in found for each in getattr(record, key)}

        gone = of(lost) - of(proof.ref for proof in kept)
        return tuple(one for one in there if one.casefold() not in gone or one.casefold() in text.casefold())

    # -- prose -------------------------------------------------------------------------------------------

    def _prose(self, edits: FileEdits, taken: set[int]) -> None:
        """Sentences of pages, core memory and notes that are no records."""
        deriving, document = self.deriving, edits.document
        for block in scan(document.lines, document.front_end):
            place = Place(edits.path, block.start + 1, block.end)
            text = "\n".join(document.lines[block.start : block.end])
            said, cites = deriving.says(text), deriving.cites(text)
            if taken.intersection(range(place.line, place.end + 1)) or not (said or cites):
                continue
            if not deriving.machine(place) and not (said and deriving.take):
                self.left.append(Piece("text", place, text, QUOTES if said else CITES, by_person=True))
            elif block.shape in (BlockShape.PARAGRAPH, BlockShape.ITEM):
                self._shorten(edits, place, text)
            else:
                edits.drop(place.line, place.end)
                self._sentence(place, text)
        for n, line in enumerate(document.lines[: document.front_end], 1):
            if deriving.says(line):
                self.left.append(Piece("text", Place(edits.path, n, n), line, QUOTES, by_person=True))

    def _shorten(self, edits: FileEdits, place: Place, text: str) -> None:
        deriving = self.deriving
        left, gone, revised = without(
            text, deriving.ids, deriving.needles, lambda said, rest: deriving.names(said, rest, deriving.ids)
        )
        if gone and not left:
            edits.drop(place.line, place.end)
        elif left != text:
            edits.replace(place, left)
        for said in gone:
            self._sentence(place, said)
        self.revised += [Piece("sentence", place, said, CITES) for said in revised]

    def _sentence(self, place: Place, text: str) -> None:
        why = QUOTES if self.deriving.says(text) else ALONE
        if there := self.sentences.get(place):  # a second one of one paragraph
            text = f"{there.text} {text}"
        person = not self.deriving.machine(place)
        self.sentences[place] = Piece("sentence", place, text, why, by_person=person)


def _order(piece: Piece) -> tuple[bool, str, int]:
    return piece.why != ASKED, piece.place.path, piece.place.line


# -- forgetting --------------------------------------------------------------------------------------------
# A forgetting: worked out, written as one revision, cleared away beside the files, and proved.


MOST = 1000
"""Statements that one query may mean."""
SHOWN = 3
"""Files that an error names."""


@dataclass(frozen=True, slots=True)
class ForgetResult:
    """What a forgetting does, or has done: the plan, what waits and goes with it, and once it is done the
    revision, what was cleared away beside the files, and the search that proves it."""

    plan: Plan
    waiting: tuple[QueueEntry, ...] = ()
    touched: tuple[str, ...] = ()
    """Keys of what waits and has the words somewhere; they are taken out of it."""
    result: Result | None = None
    cleared: CleanupReport = field(default_factory=CleanupReport)
    proof: TraceReport = field(default_factory=TraceReport)
    sought: tuple[Needle, ...] = ()
    """The texts, for a purge that follows."""
    near: tuple[Piece, ...] = ()
    """What a search for the same words finds besides, which stays."""


def refuse_held(held: Collection[str]) -> None:
    """Held where facts of these files disappeared and nobody said whether that was meant."""
    if held:
        hint = "ua-memory undo restores them, ua-memory status --accept confirms it"
        raise Held("facts disappeared here all at once", where=", ".join(sorted(held)[:SHOWN]), hint=hint)


class Forgetting(Cleanup):
    """Forgetting in one bank."""

    def __init__(
        self, store: Store, door: str, index: Callable[[], Index], search: Callable[[str], SearchResult],
        entity: Callable[[str], EntityDetails],
    ) -> None:  # fmt: skip
        super().__init__(store, index)
        self.config, self.door, self.search, self.entity = store.config, door, search, entity

    def forget(
        self, *targets: str, query: str = "", session: str = "", entity: str = "", limit: int | None = None,
        dry_run: bool = False, take: bool = False, by_person: bool = False,
    ) -> ForgetResult:  # fmt: skip
        """See `Memory.forget`."""
        with self.alone():
            self.end_begun()
            # What people saved is merged first where it has to be, so that it stands as it is read here.
            held = dry_run or self.store.survey().held
            notes = () if held else self.store.adopt().notes
            chosen, session, near = self._chosen(targets, query, session, entity, limit)
            waits = [one for _, one in traces.of_session(self.store, session)] if session else []
            if not chosen and not waits:
                where = query or session or entity
                raise NotFound("memory has nothing on this", where=where, hint="ua-memory search")
            plan = self._plan(chosen, take)
            sought = self._sought(plan)
            touched = tuple(traces.waiting_keys(self.store, sought))
            found = ForgetResult(plan, tuple(waits), touched, sought=sought, near=near)
            if dry_run:
                return found
            begun = self.begin((one.id for one in plan.removals), plan.ids, sought, session)
            result = self._write(plan, session, waits, by_person)
            cleared, proof = self.end(begun, sought, plan.ids, session)
            result = replace(result, notes=(*notes, *result.notes))
            return replace(found, result=result, cleared=cleared, proof=proof)

    # -- what is meant -----------------------------------------------------------------------------------

    def _chosen(
        self, targets: Sequence[str], query: str, session: str, entity: str, limit: int | None
    ) -> tuple[list[ForgetTarget], str, tuple[Piece, ...]]:
        """What is meant, the session as it is called, and what is near a query and not meant."""
        ways = sum(map(bool, (targets, query.strip(), session, entity)))
        if ways != 1:
            what = "use only one of: ids and lines, --query, --session, --entity"
            hint = "ua-memory forget ^id, or --query, --session or --entity"
            raise Usage(what if ways else "nothing given to forget", hint=hint)
        found: list[ForgetTarget] = []
        near: tuple[Piece, ...] = ()
        if targets:
            found = [each for given in targets for each in target(self.store, given)]
        elif query:
            found, near = self._with_words(query, limit)
        elif session:
            said = sessions(self._texts())
            waits = [one.session.session for _, one in traces.of_sessions(self.store)]
            session = choose_session(session, said, waits)
            meant = [name for name in said if traces.is_session(name, session)]
            found = [of(fact) for name in meant for fact in said[name]]
        else:
            portrait = self.entity(entity)
            names = (portrait.known.name, *portrait.known.aliases)
            known = {f"^{item.ref}" if item.id else item.text for item in portrait.items}
            found = choose_entity(self._texts(), names, known)
        return list({each.place: each for each in found}.values()), session, near

    def _with_words(self, query: str, limit: int | None) -> tuple[list[ForgetTarget], tuple[Piece, ...]]:
        """What contains all words of a query, at most `limit`, the best first; and what else a search for it
        finds. NotFound where nothing contains them, TooLarge where more than `MOST` do."""
        index, words = self.index(), all_words_query(query)
        index.refresh(vectors=False)  # all files, however long it takes: what is not read is not found
        hits = self.search(query).hits
        keys = [hit.key for hit in index.words.search(words, MOST + 1)] if words.phrases else []
        if len(keys) > MOST:
            raise TooLarge(f"more than {MOST} statements contain this", where=query, hint="add a word")
        found = containing(self._texts(), index.words.get(keys), words) if keys else []
        if not found:
            hint = "ua-memory search finds similar ones, and ua-memory forget ^ID removes one"
            raise NotFound("nothing contains all of these words", where=query, hint=hint)
        taken = {(t.place.path, row) for t in found for row in range(t.place.line, t.place.end + 1)}
        near = (
            item for item in (hit.item for hit in hits)
            if taken.isdisjoint((item.path, row) for row in range(item.line, item.end + 1))
        )  # fmt: skip
        return found[:limit], tuple(map(piece, near))

    def _texts(self) -> dict[str, bytes]:
        """All files but those of sessions, whose turns go whole (`traces.clear`)."""
        found = dict(statements.texts(self.store, every=True))
        of_session = {path for path in found if path.startswith(IN_BANK) and parse(found[path], Path(path))}
        return {path: data for path, data in found.items() if path not in of_session}

    def _plan(self, chosen: Sequence[ForgetTarget], take: bool) -> Plan:
        refuse_held(self.store.survey().held)
        texts = self._texts()
        for path in {each.place.path for each in chosen} - texts.keys():  # refused a moment ago
            texts[path] = self.store.truth(path)
        ours, today = line_owners(self.store, texts), self.store.now().date()
        deriving = ForgetPlanner(texts, chosen, ours, today, take=take, patterns=self.config.redact)
        return ForgetEdits(deriving).plan()

    def _sought(self, plan: Plan) -> tuple[Needle, ...]:
        """What must be nowhere afterwards: the texts, their secrets, and of what goes with them that which
        nothing says any more that stays."""
        sure = needles(plan.texts, self.config.redact)
        after = {**self._texts(), **{path: new or b"" for path, (_, new) in plan.files.items()}}
        return (*sure, *unmentioned(plan.also, sure, after.values(), self.config.redact))

    # -- doing it ----------------------------------------------------------------------------------------

    def _write(self, plan: Plan, session: str, waits: Sequence[QueueEntry], by_person: bool) -> Result:
        """One revision, whose message has ids and counts."""
        with self.store.revision("forget", door=self.door, by_person=by_person) as draft:
            plan.carry_out(draft)
            tombstones.add(self.store, draft, plan.removals, self.store.now().date().isoformat())
            draft.facts = [f"^{one.id}" for one in plan.removals]
            marks = [ledger.mark(one.session, one.turns[-1].id) for one in waits if one.turns]
            draft.trailers |= {ledger.TRAILER: marks} if marks else {}
            draft.even_if_empty = bool(marks)
            draft.subject = f"forget: {summarize(plan)}"
        return draft.result


def summarize(plan: Plan) -> str:
    """`1 fact, 2 observations; 1 revised`: what goes and what is changed, in numbers."""
    each = Counter("passage" if piece.what == "text" else piece.what for piece in plan.gone)
    plurals = {"entity": "entities"}
    parts = [counted(number, what, plurals.get(what, "")) for what, number in each.items()]
    gone = ", ".join(parts) or "nothing that was written"
    return f"{gone}; {len(plan.revised)} revised" if plan.revised else gone


# -- resting -----------------------------------------------------------------------------------------------
# What rests on statements that are taken back goes with them, or is revised, as it is where they are
# forgotten.


def remove_derived(store: Store, draft: Draft, lost: Mapping[str, Statement]) -> str:
    """Take out of an open revision what was derived only from the `lost`, revise what was partly; in words
    what that comes to, empty for nothing. A person's own lines stay."""
    texts = dict(statements.texts(store, every=True))
    for path, data in draft.files.items():
        texts.pop(path, None)
        if data is not None:
            texts[path] = data
    deriving = ForgetPlanner(
        texts, [], line_owners(store, texts), store.now().date(), take=False,
        patterns=store.config.redact, ids=lost.keys(), known=lost,
    )  # fmt: skip
    plan = ForgetEdits(deriving).plan()
    plan.carry_out(draft)
    return summarize(plan) if plan.files else ""
