"""The `forget` command: select statements, remove them and what was derived from them, in one commit."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from ua_memory.errors import ChangedOnDisk, Held, NotFound, TooLarge, Usage, checked
from ua_memory.git.repository import MACHINE
from ua_memory.index import words as index_words
from ua_memory.index.items import IndexItem
from ua_memory.index.terms import Query, all_words_query
from ua_memory.knowledge import observations, statements, tombstones, trust
from ua_memory.knowledge.facts import heading_of
from ua_memory.knowledge.lineage import split_by_citations, strip_citations
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
from ua_memory.text.grounding import ungrounded_claims
from ua_memory.text.wording import counted, spans
from ua_memory.upkeep import traces
from ua_memory.upkeep.traces import Cleanup, CleanupReport, Needle, TraceReport, make_needles, needles_not_in

if TYPE_CHECKING:
    from ua_memory.index.entities import EntityDetails
    from ua_memory.index.sync import Index
    from ua_memory.recall.search import SearchResult
    from ua_memory.retain.queue import QueueEntry


# -- plan --------------------------------------------------------------------------------------------------
# The result of planning: what is removed, what is revised, and which lines of a person's stay.


ItemKind = Literal["fact", "observation", "opinion", "entity", "sentence", "text"]

REQUESTED = "requested"
UNSUPPORTED = "based on nothing else"
UNGROUNDED = "an entity that only this fact names"
SAME_TEXT = "says the same"
CITES = "cites it"
QUOTES = "quotes it"
SIMILAR = "similar, but does not have all of the words"


@dataclass(frozen=True, slots=True)
class PlanItem:
    """A statement or passage that a plan removes, revises or leaves, with the reason in `why`.

    `by_person`: a person wrote its lines last.
    """

    what: ItemKind
    place: Place
    text: str
    why: str
    id: str | None = None
    by_person: bool = False


@dataclass(frozen=True, slots=True)
class ForgetTarget:
    """What the caller asked to forget: a record, or lines of a file that are not a record."""

    place: Place
    text: str
    record: Fact | Observation | Opinion | None = None
    what: ItemKind = "text"


@dataclass(frozen=True, slots=True)
class ForgetPlan:
    """What is removed (`gone`), `revised` or `left` to its author, and `files` as {path: (before, after)}.

    After the plan is carried out, no file may contain one of `texts`. The same holds for `derived_texts`,
    except where something that stays says it too.
    """

    gone: tuple[PlanItem, ...] = ()
    revised: tuple[PlanItem, ...] = ()
    left: tuple[PlanItem, ...] = ()
    texts: tuple[str, ...] = ()
    derived_texts: tuple[str, ...] = ()
    files: Mapping[str, tuple[bytes, bytes | None]] = field(default_factory=dict)
    removals: tuple[Removal, ...] = ()

    def write(self, draft: Draft) -> None:
        """Write the changed files into an open revision. ChangedOnDisk."""
        self._require_unchanged(draft.read)
        for path, (_, after) in self.files.items():
            draft.restore(path, after)

    def apply(self, files: Mapping[str, bytes]) -> dict[str, bytes]:
        """`files` after the plan. ChangedOnDisk where one has changed since the plan was made."""
        self._require_unchanged(files.get)
        after = {**files, **{path: data for path, (_, data) in self.files.items()}}
        return {path: data for path, data in after.items() if data is not None}

    def _require_unchanged(self, read: Callable[[str], bytes | None]) -> None:
        for path, (before, _) in self.files.items():
            if read(path) != before:
                raise ChangedOnDisk("the file was changed in the meantime", where=path, hint="try again")

    @property
    def requested(self) -> tuple[PlanItem, ...]:
        """What the caller asked for, without what was derived from it."""
        return tuple(piece for piece in self.gone if piece.why == REQUESTED)

    @property
    def ids(self) -> frozenset[str]:
        """The ids that are removed, as `ref_of` gives them."""
        return frozenset(ref_of(piece.place.path, piece.id) for piece in self.gone if piece.id)


# -- targets -----------------------------------------------------------------------------------------------
# Resolving what the caller names: an id, lines of a file, words, a session, an entity.


_SHORT_ID = 8
"""A heading shows at least so many characters of a session's UUID."""
_LISTED_SESSIONS = 8
"""Sessions that an error lists."""


def resolve_target(store: Store, given: str) -> list[ForgetTarget]:
    """The targets that an id or a range of lines names (`statements.resolve_target`). NotFound, Usage."""
    try:
        named = statements.resolve_target(store, given)
    except NotFound:
        if stone := tombstones.read(store).by_id.get(tombstone_id(given)):
            hint = "ua-memory forget --purge removes it from the history too"
            raise NotFound(f"it was forgotten on {stone.on}", where=given, hint=hint) from None
        raise
    if named.record:
        return [target_of(named.record)]
    if not named.span:
        raise Usage(
            f"{given[:80]!r} is not an id or a line",
            hint="name ^id, PATH:LINE or PATH:FROM-TO, or pass words to --query",
        )
    return list(_span_targets(named.path, store.accepted_bytes(named.path), named.span))


def tombstone_id(given: str) -> str:
    """The id under which a target's tombstone is stored; '' if the target is not an id."""
    named = statements.parse_target(given)
    block = named.id or (named.file if is_generated(named.file) else "")
    return ref_of(named.file, block) if block and (named.file or is_generated(block)) else block


def is_forgotten(store: Store, block: str) -> bool:
    """Whether an id (`^id`, `PATH#^id`) has a tombstone. An id that a person typed may be in use again."""
    stone = tombstone_id(block)
    if stone not in tombstones.read(store):
        return False
    try:
        return is_generated(stone) or statements.resolve_target(store, block).record is None
    except NotFound:
        return True


def word_targets(texts: Mapping[str, bytes], items: Iterable[IndexItem], query: Query) -> list[ForgetTarget]:
    """The statements and blocks of prose in these index items that contain all words of a query.

    A block must contain them itself: its heading and its neighbours in a passage do not count.
    """
    found: list[ForgetTarget] = []
    for item in items:
        if item.path in texts:
            found += _span_targets(item.path, texts[item.path], f"{item.line}-{item.end}", prose_only=True)
    found = list({each.place: each for each in found}.values())
    paths = {each.place.path for each in found}
    lines = {path: markdown_document.parse(texts[path], path).lines for path in paths}
    said = ["\n".join(lines[at.path][at.line - 1 : at.end]) for at in (each.place for each in found)]
    return [each for each, is_meant in zip(found, index_words.matching(query, said), strict=True) if is_meant]


def target_of(record: Statement) -> ForgetTarget:
    """The target for a whole record."""
    return ForgetTarget(record.place, record.text, record)


def _span_targets(path: str, data: bytes, span: str, *, prose_only: bool = False) -> Iterator[ForgetTarget]:
    """The records on a range of lines (`FROM-TO`), then the other blocks on them.

    With `prose_only` headings and comments are left out.
    """
    document = markdown_document.parse(data, path)
    first, last = statements.line_span(path, span, len(document.lines))
    unsaid = (BlockShape.RULE, *([BlockShape.HEADING, BlockShape.COMMENT] if prose_only else []))
    taken: set[int] = set()
    for record in document.statements:
        if record.place.line <= last and first <= record.place.end:
            taken.update(range(record.place.line, record.place.end + 1))
            yield target_of(record)
    for block in scan(document.lines, document.front_end):
        rows = [n for n in range(max(first, block.start + 1), min(last, block.end) + 1) if n not in taken]
        if rows and block.shape not in unsaid:
            # A person who names one line of a paragraph means that line; of an item, all of it.
            place = Place(path, rows[0], rows[-1])
            if block.shape is BlockShape.ITEM:
                place = Place(path, block.start + 1, block.end)
            text = "\n".join(document.lines[place.line - 1 : place.end])
            yield ForgetTarget(place, strip_citations(text).strip())


def facts_by_session(texts: Mapping[str, bytes]) -> dict[str, list[Fact]]:
    """{session id as headings show it: its facts}, in the order of the files."""
    found: dict[str, list[Fact]] = {}
    for path, data in texts.items():
        for fact in markdown_document.parse(data, path).of(Fact):
            if fact.heading.session:
                found.setdefault(fact.heading.session, []).append(fact)
    return found


def choose_session(named: str, said: Mapping[str, Sequence[Fact]], waits: Collection[str]) -> str:
    """The session with this id, short id (as headings show it) or unambiguous prefix of one.

    `waits` are the full ids of queued sessions. NotFound lists the latest sessions, Usage those that match.
    """
    named = named.strip()
    known = dict.fromkeys([*said, *map(ledger.short_id, waits)])
    if any(traces.is_same_session(one, named) for one in (*known, *waits)):
        return named
    low = named.casefold()
    begins = {ledger.short_id(one) for one in (*known, *waits) if one.casefold().startswith(low)}
    # More than a heading shows of an id, and less than all of it.
    begins |= {one for one in known if len(one) >= _SHORT_ID and low.startswith(f"{one.casefold()}-")}
    if len(begins) == 1:
        return begins.pop()
    if begins:
        hint = f"give more of its id: {_list_sessions([one for one in known if one in begins], said)}"
        raise Usage(f"{len(begins)} sessions begin with this", where=named[:80], hint=hint)
    hint = f"the latest: {_list_sessions([*known], said)}" if known else "this bank has no sessions"
    raise NotFound("no session begins with this", where=named[:80], hint=hint)


def _list_sessions(names: Sequence[str], said: Mapping[str, Sequence[Fact]]) -> str:
    """The last of these sessions, as one line for an error message."""
    rows = []
    for name in names[-_LISTED_SESSIONS:]:
        facts = said.get(name, ())
        where = f"{facts[-1].heading.client}, {facts[-1].place.path}" if facts else "waits to be flushed"
        rows.append(f"{name} ({where})")
    more = f", and {len(names) - _LISTED_SESSIONS} more" if len(names) > _LISTED_SESSIONS else ""
    return ", ".join(rows) + more


def entity_targets(
    texts: Mapping[str, bytes], names: Collection[str], known: Collection[str]
) -> list[ForgetTarget]:
    """The entity records with one of these names, and the statements whose `^id` (else text) is `known`."""
    found = []
    wanted = {name.casefold() for name in names}
    for path, data in texts.items():
        for record in markdown_document.parse(data, path).records:
            if isinstance(record, Entity) and wanted & {n.casefold() for n in (record.name, *record.aliases)}:
                found.append(ForgetTarget(record.place, record.name, what="entity"))
            elif isinstance(record, Statement) and (f"^{record.ref}" if record.id else record.text) in known:
                found.append(target_of(record))
    return found


# -- authors of lines --------------------------------------------------------------------------------------


IsMachineWritten = Callable[[str, int, int], bool]
"""(path, first line, last line) → whether a machine wrote all these lines last."""


def machine_line_check(store: Store, texts: Mapping[str, bytes], rev: str = "HEAD") -> IsMachineWritten:
    """A check of who wrote lines last, by `git blame` once per file of revision `rev`.

    Without a history all lines count as a person's.
    """

    authors: dict[str, list[str]] = {}

    def written_by_machine(path: str, line: int, end: int) -> bool:
        if path not in authors:
            authors[path] = [row.author for row in store.history.blame(path, texts[path], rev=rev)]
        return {*authors[path][line - 1 : end]} == {MACHINE[0]}

    return written_by_machine


# -- edits -------------------------------------------------------------------------------------------------
# Removing and replacing lines of one file; all other bytes stay.


_OUR_COMMENT = re.compile(r"\s*<!--\s*(?:chunk|tags):.*-->\s*")
"""A comment of ours that describes the items below it, and is useless without them."""


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
        """Remove lines."""
        self._gone.update(range(line, end + 1))

    def replace(self, place: Place, text: str) -> None:
        """Replace lines."""
        self._new[place] = text.split("\n")

    def result(self) -> bytes | None:
        """The edited file; None if nothing but its title is left, and it can be deleted."""
        self._drop_empty_headings()
        data = self.data
        for place, lines in self._replacements():
            data = markdown_lines.replace_lines(data, place, lines)
        return None if self._has_only_title(data) else data

    def _replacements(self) -> list[tuple[Place, Sequence[str]]]:
        """(place, new lines), the last first, so that earlier line numbers stay valid."""
        new = [(p, lines) for p, lines in self._new.items() if p.line not in self._gone]
        covered = {n for place, _ in new for n in range(place.line, place.end + 1)}
        gone = [(Place(self.path, n, n), ()) for n in self._gone - covered]
        return sorted([*new, *gone], key=lambda each: -each[0].line)

    def _drop_empty_headings(self) -> None:
        """Also drop our headings and comments that have nothing below them any more, and one of two blank
        lines that become neighbours."""
        lines, gone = self.document.lines, self._gone
        blocks = list(scan(lines, self.document.front_end))
        heads = [block.start for block in blocks if block.shape is BlockShape.HEADING]
        for start in reversed(heads):
            level = markdown_lines.heading_level(lines[start].strip())
            ends = (n for n in heads if n > start and markdown_lines.heading_level(lines[n].strip()) <= level)
            body = range(start + 1, next(ends, len(lines)))
            said = [n + 1 for n in body if lines[n].strip()]
            if level > 1 and gone.intersection(said) and all(
                n in gone or _OUR_COMMENT.fullmatch(lines[n - 1]) for n in said
            ) and self._is_our_heading(start):  # fmt: skip
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

    def _is_our_heading(self, start: int) -> bool:
        """Whether a heading was written for the facts or the page's text below it."""
        client = heading_of(self.document.lines[start].strip()).client
        kind = markdown_lines.kind_of(self.path)
        if kind is markdown_lines.FileKind.DOCUMENT:  # what is drawn from it later stands below its heading
            return not client
        return bool(client) or kind is markdown_lines.FileKind.PAGE

    def _has_only_title(self, data: bytes) -> bool:
        """Whether nothing but the title of a file of ours is left."""
        if not self._gone or not self.path.startswith("memory/"):
            return False
        stem = self.path.rpartition("/")[2].removesuffix(".md")
        document = markdown_document.parse(data, self.path)
        rest = [line.strip().casefold() for line in document.lines if line.strip()]
        return rest in ([], [f"# {stem}".casefold()]) and not document.front


# -- prose -------------------------------------------------------------------------------------------------
# Removing sentences from a block of prose, of a page or of core memory.


_BULLET = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+(?:\[[ xX]\]\s+)?")
_BLOCKQUOTE = re.compile(r"\s*>")


def _plain_sentence(sentence: str) -> str:
    return strip_citations(sentence).strip(" \t\n,;")


def _sentences(text: str) -> Iterator[tuple[int, int, list[fields.Citation]]]:
    """(start, end, citations) of each sentence; of sentences with common citations, and of a blockquote."""
    if _BLOCKQUOTE.match(text):
        yield 0, len(text), list(fields.citations(text))
        return
    for start, stop, cited in split_by_citations(text):
        every = [(0, stop - start)] if cited else spans(text[start:stop])
        yield from ((start + at, start + to, cited) for at, to in every)


def _remove_citations(sentence: str, start: int, lost: Sequence[fields.Citation]) -> str:
    """A sentence without some of its citations and the punctuation before them. `start` is its offset."""
    for each in reversed(lost):
        before, after = sentence[: each.start - start], sentence[each.end - start :]
        before = re.sub(r"[ \t]*[,;]?[ \t]*$", "", before) if not before.endswith("\n") else before
        if before.rstrip().endswith((".", "!", "?", "]")) and after.lstrip(" ,;").startswith("[["):
            after = " " + after.lstrip(" ,;\t")
        sentence = before + after
    return sentence


# -- derived -----------------------------------------------------------------------------------------------
# Finding what was derived from the targets, transitively, in all files.


_METADATA_LINE = re.compile(r"\s+[-*+]\s+[a-z]+:\s")
_BLOCK_ID = re.compile(r"\^([A-Za-z0-9-]+)")


class ForgetPlanner:
    """Computes what is removed along with the targets.

    `texts` are all files. A person's lines are removed only if they are targets, or with `take`. `ids` are
    removed already; `known` has their statements. Without `strict` a statement that has other evidence stays,
    even if it names something that only the removed evidence named.
    """

    def __init__(
        self, texts: Mapping[str, bytes], targets: Sequence[ForgetTarget], by_machine: IsMachineWritten,
        today: date, *, take: bool, patterns: Mapping[str, str], ids: Collection[str] = (),
        strict: bool = True, known: Mapping[str, Statement] | None = None,
    ) -> None:  # fmt: skip
        self.texts, self.by_machine, self.today, self.take = texts, by_machine, today, take
        self.needles = make_needles((each.text for each in targets if each.what != "entity"), patterns)
        self.gone: dict[Place, PlanItem] = {}
        self.records: dict[Place, Statement] = {}
        self.ids: set[str] = set(ids)
        self.strict = strict
        self.derived_texts: list[str] = []
        """Texts that are removed with the targets: quotes, former wordings, derived statements."""
        self.sentences: dict[Place, PlanItem] = {}
        self.revised: list[PlanItem] = []
        self.left: list[PlanItem] = []
        self._documents: dict[str, markdown_document.Document] = {}
        self._statements: dict[str, Statement | None] = {**(known or {})}
        for target in targets:
            if target.record is not None:
                self._remove(target.record, REQUESTED)
            else:
                self.gone[target.place] = self._new_item(target.what, target.place, target.text, REQUESTED)
        while self._add_derived():
            pass

    # -- derived statements ----------------------------------------------------------------------------

    def _add_derived(self) -> bool:
        """Remove the statements that have lost their evidence; whether there were any."""
        before = len(self.gone)
        for path in self.affected_files():
            for record in self.document(path).statements:
                if record.place not in self.gone and (why := self._removal_reason(record)):
                    self._remove(record, why)
        return len(self.gone) > before

    def _remove(self, record: Statement, why: str) -> None:
        self.gone[record.place] = self.plan_item(record, why)
        self.records[record.place] = record
        if record.id and record.ref:
            others = self._with_same_id(record)
            self.ids |= {record.id} if not others else set()
            self.ids |= {record.ref} if record.ref not in {each.ref for each in others} else set()
        if isinstance(record, Fact):
            self.derived_texts += [quote.text for quote in record.quotes]
        if why != REQUESTED or not isinstance(record, Fact):
            self.derived_texts += trust.sources(record)

    def _with_same_id(self, record: Statement) -> list[Statement]:
        """Statements of other files with the same typed id: a link by id alone may mean one of them."""
        if is_generated(str(record.id)):
            return []
        mark, own = f"^{record.id}".encode(), record.place.path
        there = (path for path, data in self.texts.items() if path != own and mark in data)
        others = (each for path in there for each in self.document(path).statements)
        return [each for each in others if each.id == record.id]

    def is_removed(self, link: Proof | fields.Citation) -> bool:
        """Whether the target of a link is removed."""
        return link.ref in self.ids or link.id in self.ids

    def _removal_reason(self, record: Statement) -> str:
        """Why a record is removed with what is removed already; '' if it stays."""
        if self.has_removed_text(record.text) and (self.take or self.is_machine_written(record.place)):
            return SAME_TEXT
        rests = trust.proofs_of(record)
        lost = [proof.ref for proof in rests if self.is_removed(proof)]
        if not lost or (isinstance(record, Observation) and observations.by_person(record)):
            return ""
        kept = [proof.ref for proof in rests if not self.is_removed(proof)]
        if not kept:
            return UNSUPPORTED
        return UNGROUNDED if self.is_ungrounded(record.text, kept, lost) else ""

    def removals(self) -> Iterator[Removal]:
        """What gets a tombstone: statements, and passages that were asked for or that a person wrote.

        A derived sentence needs none, since it would cite one that has. An entity's name is not forbidden.
        """
        for place, piece in self.gone.items():
            record = self.records.get(place)
            if record is not None or (piece.what == "text" and (piece.why == REQUESTED or piece.by_person)):
                quotes = tuple(quote.text for quote in record.quotes) if isinstance(record, Fact) else ()
                yield Removal((record and record.ref) or new_id(), piece.text, quotes)

    # -- queries -----------------------------------------------------------------------------------------

    def affected_files(self) -> list[str]:
        """The files that contain, cite or quote what is removed."""
        own = {place.path for place in self.gone}
        marks = [f"^{written_id(block)}".encode() for block in self.ids]

        def is_affected(path: str, data: bytes) -> bool:
            if path == PATH:
                return False
            cited = path in own or any(mark in data for mark in marks)
            return cited or any(needle.is_in(data) for needle in self.needles)

        return [path for path, data in self.texts.items() if is_affected(path, data)]

    def document(self, path: str) -> markdown_document.Document:
        """A file, parsed."""
        if path not in self._documents:
            self._documents[path] = markdown_document.parse(self.texts[path], path)
        return self._documents[path]

    def is_machine_written(self, place: Place) -> bool:
        """Whether a machine wrote all these lines last."""
        return self.by_machine(place.path, place.line, place.end)

    def cites_removed(self, text: str) -> bool:
        """Whether a text cites an id that is removed."""
        named = (*_BLOCK_ID.findall(text), *(each.ref for each in fields.citations(text)))
        return any(block in self.ids for block in named)

    def has_removed_text(self, text: str) -> bool:
        """Whether a text contains one of the removed texts."""
        return any(needle.is_in(text) for needle in self.needles)

    def is_ungrounded(self, text: str, kept: Iterable[str], lost: Iterable[str]) -> bool:
        """Whether a text names something that only its `lost` evidence supports, and the `kept` does not."""
        if not self.strict:
            return False
        left = self._source_texts(kept)
        missing = ungrounded_claims(text, left)
        both = [*left, *self._source_texts(lost)]
        return bool(missing) and len(ungrounded_claims(text, both)) < len(missing)

    def _source_texts(self, ids: Iterable[str]) -> list[str]:
        found = [each for each in map(self.find_statement, ids) if each is not None]
        named = (name for each in found for name in each.entities)
        return [*(text for each in found for text in trust.sources(each)), *named]

    def find_statement(self, block: str) -> Statement | None:
        """The statement with this id."""
        if block not in self._statements:
            mark = f"^{written_id(block)}".encode()
            there = (path for path, data in self.texts.items() if mark in data)
            found = (record for path in there for record in self.document(path).statements)
            self._statements[block] = next((each for each in found if each.ref == block), None)
        return self._statements[block]

    def plan_item(self, record: Statement, why: str) -> PlanItem:
        """The plan's item for a record."""
        what = cast(ItemKind, type(record).__name__.lower())
        return self._new_item(what, record.place, record.text, why, record.id)

    def _new_item(
        self, what: ItemKind, place: Place, text: str, why: str, block: str | None = None
    ) -> PlanItem:
        return PlanItem(what, place, text, why, block, not self.is_machine_written(place))

    # -- plan -------------------------------------------------------------------------------------------

    def plan(self) -> ForgetPlan:
        """The complete plan."""
        edits = [self._edit_file(path) for path in self.affected_files()]
        changed = {edit.path: (edit.data, edit.result()) for edit in edits if edit.changed}
        gone = [*self.gone.values(), *self.sentences.values()]
        also = [*self.derived_texts, *(piece.text for piece in self.sentences.values())]
        return ForgetPlan(
            tuple(sorted(gone, key=_sort_key)), tuple(sorted(self.revised, key=_sort_key)),
            tuple(sorted(self.left, key=_sort_key)), tuple(n.text for n in self.needles if not n.secret),
            tuple(dict.fromkeys(also)), changed, tuple(self.removals()),
        )  # fmt: skip

    def _edit_file(self, path: str) -> FileEdits:
        edits = FileEdits(path, self.texts[path], self.document(path))
        taken: set[int] = set()
        gone = [place for place in self.gone if place.path == path]
        for place in gone:
            edits.drop(place.line, place.end)
        kinds = (Fact, Observation, Opinion, Entity, Tombstone)
        for place in (*gone, *(each.place for each in edits.document.records if isinstance(each, kinds))):
            taken.update(range(place.line, place.end + 1))
        for record in edits.document.statements:
            if record.place not in self.gone:
                self._revise(edits, record)
        self._edit_prose(edits, taken)
        return edits

    # -- records that stay -------------------------------------------------------------------------------

    def _revise(self, edits: FileEdits, record: Statement) -> None:
        place = record.place
        lines = "\n".join(edits.document.lines[place.line - 1 : place.end])
        quoted, cited = self.has_removed_text(lines), self.cites_removed(lines)
        if not quoted and not cited:
            return
        if isinstance(record, Fact):
            self._revise_fact(edits, record)
            return
        new = self._without_removed_evidence(record)
        if new != record:
            edits.replace(place, printer.show(new))
            self.revised.append(self.plan_item(record, CITES if cited else QUOTES))
        elif quoted:
            self.left.append(self.plan_item(record, QUOTES))

    def _revise_fact(self, edits: FileEdits, fact: Fact) -> None:
        """Remove the metadata lines of a fact that cite or quote what is removed."""
        lost, stay = "", ""
        for n in range(fact.place.line, fact.place.end + 1):
            line = edits.document.lines[n - 1]
            why = QUOTES if self.has_removed_text(line) else CITES if self.cites_removed(line) else ""
            if not why:
                continue
            meta = n > fact.place.line and _METADATA_LINE.match(line)
            if meta and (self.take or self.by_machine(edits.path, n, n)):
                edits.drop(n, n)
                lost = lost or why
            else:
                stay = stay or why
        if lost:
            self.revised.append(self.plan_item(fact, lost))
        if stay:
            self.left.append(self.plan_item(fact, stay))

    def _without_removed_evidence(self, record: Observation | Opinion) -> Observation | Opinion:
        """An observation or opinion without its removed proofs, and the names, tags and dates that only they
        support."""
        rests = trust.proofs_of(record)
        left = (proof for proof in rests if not self.is_removed(proof))
        kept = tuple(replace(p, quote="") if self.has_removed_text(p.quote) else p for p in left)
        lost = [proof.ref for proof in rests if self.is_removed(proof)]
        names = self._supported_values(record.entities, "entities", lost, kept, record.text)
        tags = self._supported_values(record.tags, "tags", lost, kept, record.text)
        if isinstance(record, Opinion):
            return replace(record, because=kept, entities=names, tags=tags)
        stay, said = [proof.ref for proof in kept], record.was
        said = tuple(each for each in said if not self.has_removed_text(each.text))
        was = tuple(each for each in said if not lost or not self.is_ungrounded(each.text, stay, lost))
        new = replace(record, proofs=kept, was=was, entities=names, tags=tags)
        if not lost:
            return new
        facts = {p.ref: fact for p in kept if isinstance(fact := self.find_statement(p.ref), Fact)}
        days = observations.days_of(new, facts)
        trend = observations.trend(days, self.today) if days and self.strict else record.trend
        first, last = (days[0], days[-1]) if days else (None, None)
        return replace(new, since=first, last=last, trend=trend or None)

    def _supported_values(
        self, there: Sequence[str], key: str, lost: Iterable[str], kept: Sequence[Proof], text: str
    ) -> tuple[str, ...]:
        """`there`, the record's names or tags, without those that only `lost` evidence has."""

        def of(ids: Iterable[str]) -> set[str]:
            found = filter(None, map(self.find_statement, ids))
            return {each.casefold() for record in found for each in getattr(record, key)}

        gone = of(lost) - of(proof.ref for proof in kept)
        return tuple(one for one in there if one.casefold() not in gone or one.casefold() in text.casefold())

    # -- prose -------------------------------------------------------------------------------------------

    def _edit_prose(self, edits: FileEdits, taken: set[int]) -> None:
        """Edit the prose of pages, core memory and notes. `taken` are the lines of records."""
        document = edits.document
        for block in scan(document.lines, document.front_end):
            place = Place(edits.path, block.start + 1, block.end)
            text = "\n".join(document.lines[block.start : block.end])
            said, cites = self.has_removed_text(text), self.cites_removed(text)
            if taken.intersection(range(place.line, place.end + 1)) or not (said or cites):
                continue
            if not self.is_machine_written(place) and not (said and self.take):
                self.left.append(PlanItem("text", place, text, QUOTES if said else CITES, by_person=True))
            elif block.shape in (BlockShape.PARAGRAPH, BlockShape.ITEM):
                self._edit_block(edits, place, text)
            else:
                edits.drop(place.line, place.end)
                self._add_sentence(place, text)
        for n, line in enumerate(document.lines[: document.front_end], 1):
            if self.has_removed_text(line):
                self.left.append(PlanItem("text", Place(edits.path, n, n), line, QUOTES, by_person=True))

    def _edit_block(self, edits: FileEdits, place: Place, text: str) -> None:
        left, gone, revised = self._remove_sentences(text)
        if gone and not left:
            edits.drop(place.line, place.end)
        elif left != text:
            edits.replace(place, left)
        for said in gone:
            self._add_sentence(place, said)
        self.revised += [PlanItem("sentence", place, said, CITES) for said in revised]

    def _remove_sentences(self, text: str) -> tuple[str, list[str], list[str]]:
        """Remove the sentences of a block that have a removed text, cite only removed ids, or are ungrounded
        without them. Other sentences that cite them lose the citation.

        Returns (the text that is left, '' for none, removed sentences, sentences that lost a citation).
        """
        hits = [span for needle in self.needles for span in needle.spans(text)]
        kept: list[str] = []
        gone: list[str] = []
        revised: list[str] = []
        end, opens = 0, False
        for start, stop, cited in _sentences(text):
            lead, sentence, end = text[end:start], text[start:stop], stop
            lost = [each for each in cited if self.is_removed(each)]
            rest = [each.ref for each in cited if each not in lost]
            said = any(first < stop and start < last for first, last in hits)
            if said or (lost and (not rest or self.is_ungrounded(strip_citations(sentence), rest, self.ids))):
                gone.append(_plain_sentence(sentence))
                opens = opens or start == 0
                continue
            if lost:
                revised.append(_plain_sentence(sentence))
                sentence = _remove_citations(sentence, start, lost)
            kept.append(lead + sentence)
        if not gone and not revised:
            return text, [], []
        left = "".join(kept) + text[end:]
        prefix = match[0] if (match := _BULLET.match(text)) else ""
        # Where the first sentence went, the bullet went with it.
        body = left.lstrip() if opens else left.removeprefix(prefix)
        return prefix + body if any(map(str.isalnum, body)) else "", gone, revised

    def _add_sentence(self, place: Place, text: str) -> None:
        why = QUOTES if self.has_removed_text(text) else UNSUPPORTED
        if there := self.sentences.get(place):  # a second one of one paragraph
            text = f"{there.text} {text}"
        person = not self.is_machine_written(place)
        self.sentences[place] = PlanItem("sentence", place, text, why, by_person=person)


def _sort_key(piece: PlanItem) -> tuple[bool, str, int]:
    return piece.why != REQUESTED, piece.place.path, piece.place.line


# -- forgetting --------------------------------------------------------------------------------------------
# Plan, commit, clean up the derived data, and search for remains.


MOST_FOUND = 1000
"""A query that matches more statements is refused."""
LISTED = 3
"""An error lists so many files."""


@dataclass(frozen=True, slots=True)
class ForgetResult:
    """The plan and, unless it was a dry run, its revision (`result`), the cleanup and the final search.

    `waiting` are the queued conversations of the session, which are dropped.
    """

    plan: ForgetPlan
    waiting: tuple[QueueEntry, ...] = ()
    touched: tuple[str, ...] = ()
    """Keys of other queue entries that contain one of the texts, which is removed from them."""
    result: Result | None = None
    cleared: CleanupReport = field(default_factory=CleanupReport)
    proof: TraceReport = field(default_factory=TraceReport)
    needles: tuple[Needle, ...] = ()
    """The texts, for a purge that follows."""
    near: tuple[PlanItem, ...] = ()
    """Similar statements that a search finds, which stay."""


def refuse_held(held: Collection[str]) -> None:
    """Raise Held if facts of these files disappeared at once and nobody has confirmed it."""
    if held:
        hint = "ua-memory undo restores them, ua-memory status --accept confirms it"
        raise Held("facts disappeared here all at once", where=", ".join(sorted(held)[:LISTED]), hint=hint)


@checked
class Forgetting(Cleanup):
    """The `forget` command of one bank; `door` names the interface that asked."""

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
        with self.exclusive():
            self.finish_interrupted()
            # Hand edits are committed first, since a stale buffer among them is merged and changes the files.
            held = dry_run or self.store.survey().held
            notes = () if held else self.store.adopt().notes
            chosen, session, near = self._select(targets, query, session, entity, limit)
            waits = [one for _, one in traces.queued_for(self.store, session)] if session else []
            if not chosen and not waits:
                where = query or session or entity
                raise NotFound("memory has nothing on this", where=where, hint="ua-memory search")
            plan = self._make_plan(chosen, take)
            sought = self._make_needles(plan)
            touched = tuple(traces.keys_with_texts(self.store, sought))
            found = ForgetResult(plan, tuple(waits), touched, needles=sought, near=near)
            if dry_run:
                return found
            begun = self.write_record((one.id for one in plan.removals), plan.ids, sought, session)
            result = self._write(plan, session, waits, by_person)
            cleared, proof = self.clean_up(begun, sought, plan.ids, session)
            result = replace(result, notes=(*notes, *result.notes))
            return replace(found, result=result, cleared=cleared, proof=proof)

    # -- selection ---------------------------------------------------------------------------------------

    def _select(
        self, targets: Sequence[str], query: str, session: str, entity: str, limit: int | None
    ) -> tuple[list[ForgetTarget], str, tuple[PlanItem, ...]]:
        """(targets, id of the session, similar items that are no targets). Usage unless one way is used."""
        ways = sum(map(bool, (targets, query.strip(), session, entity)))
        if ways != 1:
            what = "use only one of: ids and lines, --query, --session, --entity"
            hint = "ua-memory forget ^id, or --query, --session or --entity"
            raise Usage(what if ways else "nothing given to forget", hint=hint)
        found: list[ForgetTarget] = []
        near: tuple[PlanItem, ...] = ()
        if targets:
            found = [each for given in targets for each in resolve_target(self.store, given)]
        elif query:
            found, near = self._find_targets(query, limit)
        elif session:
            said = facts_by_session(self._texts())
            waits = [one.session.session for _, one in traces.queued_sessions(self.store)]
            session = choose_session(session, said, waits)
            meant = [name for name in said if traces.is_same_session(name, session)]
            found = [target_of(fact) for name in meant for fact in said[name]]
        else:
            portrait = self.entity(entity)
            names = (portrait.known.name, *portrait.known.aliases)
            known = {f"^{item.ref}" if item.id else item.text for item in portrait.items}
            found = entity_targets(self._texts(), names, known)
        return list({each.place: each for each in found}.values()), session, near

    def _find_targets(self, query: str, limit: int | None) -> tuple[list[ForgetTarget], tuple[PlanItem, ...]]:
        """The statements that contain all words of a query, best first, at most `limit`; and other hits.

        NotFound if nothing contains them, TooLarge if more than `MOST_FOUND` do.
        """
        index, words = self.index(), all_words_query(query)
        index.refresh(vectors=False)  # all files, however long it takes: what is not read is not found
        hits = self.search(query).hits
        keys = [hit.key for hit in index.words.search(words, MOST_FOUND + 1)] if words.phrases else []
        if len(keys) > MOST_FOUND:
            raise TooLarge(f"more than {MOST_FOUND} statements contain this", where=query, hint="add a word")
        found = word_targets(self._texts(), index.words.get(keys), words) if keys else []
        if not found:
            hint = "ua-memory search finds similar ones, and ua-memory forget ^ID removes one"
            raise NotFound("no statement contains all of these words", where=query, hint=hint)
        taken = {(t.place.path, row) for t in found for row in range(t.place.line, t.place.end + 1)}
        near = []
        for item in (hit.item for hit in hits):
            if taken.isdisjoint((item.path, row) for row in range(item.line, item.end + 1)):
                kind = item.record if item.record in ("fact", "observation", "opinion") else "text"
                what, person = cast(ItemKind, kind), item.origin == "person"
                near.append(PlanItem(what, item.place, item.text, SIMILAR, item.id, person))
        return found[:limit], tuple(near)

    def _texts(self) -> dict[str, bytes]:
        """All files except sessions', whose turns are removed whole by `traces.remove_texts`."""
        found = dict(statements.texts(self.store, every=True))
        of_session = {path for path in found if path.startswith(IN_BANK) and parse(found[path], Path(path))}
        return {path: data for path, data in found.items() if path not in of_session}

    def _make_plan(self, chosen: Sequence[ForgetTarget], take: bool) -> ForgetPlan:
        refuse_held(self.store.survey().held)
        texts = self._texts()
        for path in {each.place.path for each in chosen} - texts.keys():  # refused a moment ago
            texts[path] = self.store.accepted_bytes(path)
        by_machine, today = machine_line_check(self.store, texts), self.store.now().date()
        planner = ForgetPlanner(texts, chosen, by_machine, today, take=take, patterns=self.config.redact)
        return planner.plan()

    def _make_needles(self, plan: ForgetPlan) -> tuple[Needle, ...]:
        """The texts that must be found nowhere afterwards, with their secrets, and the derived texts that no
        remaining file contains."""
        sure = make_needles(plan.texts, self.config.redact)
        after = {**self._texts(), **{path: new or b"" for path, (_, new) in plan.files.items()}}
        return (*sure, *needles_not_in(plan.derived_texts, sure, after.values(), self.config.redact))

    # -- commit ------------------------------------------------------------------------------------------

    def _write(self, plan: ForgetPlan, session: str, waits: Sequence[QueueEntry], by_person: bool) -> Result:
        """Commit the plan; the message has ids and counts, no text."""
        with self.store.revision("forget", door=self.door, by_person=by_person) as draft:
            plan.write(draft)
            tombstones.add(self.store, draft, plan.removals, self.store.now().date().isoformat())
            draft.facts = [f"^{one.id}" for one in plan.removals]
            marks = [ledger.format_mark(one.session, one.turns[-1].id) for one in waits if one.turns]
            draft.trailers |= {ledger.THROUGH_TRAILER: marks} if marks else {}
            draft.even_if_empty = bool(marks)
            draft.subject = f"forget: {summarize(plan)}"
        return draft.result


def summarize(plan: ForgetPlan) -> str:
    """The counts of a plan, as `1 fact, 2 observations; 1 revised`."""
    each = Counter("passage" if piece.what == "text" else piece.what for piece in plan.gone)
    plurals = {"entity": "entities"}
    parts = [counted(number, what, plurals.get(what, "")) for what, number in each.items()]
    revised = f"{len(plan.revised)} revised" if plan.revised else ""
    return "; ".join(filter(None, (", ".join(parts), revised))) or "nothing that was written"


# -- undo --------------------------------------------------------------------------------------------------


def remove_derived(store: Store, draft: Draft, lost: Mapping[str, Statement]) -> str:
    """Remove from an open revision what was derived only from the `lost` statements, and revise what was
    partly. A person's lines stay. Returns a summary, '' if nothing changed."""
    texts = dict(statements.texts(store, every=True))
    for path, data in draft.files.items():
        texts.pop(path, None)
        if data is not None:
            texts[path] = data
    planner = ForgetPlanner(
        texts, [], machine_line_check(store, texts), store.now().date(), take=False,
        patterns=store.config.redact, ids=lost.keys(), known=lost,
    )  # fmt: skip
    plan = planner.plan()
    plan.write(draft)
    return summarize(plan) if plan.files else ""
