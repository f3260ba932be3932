"""Which statements come from untrusted sources, and whether each proof link leads to a fact."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

from ua_memory.errors import GitFailed, Usage
from ua_memory.knowledge import observations, statements
from ua_memory.knowledge.statements import Statement, texts
from ua_memory.markdown import document as markdown_document
from ua_memory.markdown import fields
from ua_memory.markdown import lines as markdown_lines
from ua_memory.markdown.blocks import BlockShape, scan
from ua_memory.markdown.document import Document
from ua_memory.markdown.lines import FileKind
from ua_memory.records import (
    CoreBlock,
    Fact,
    Observation,
    Opinion,
    Passage,
    Place,
    Problem,
    Proof,
    Tombstone,
    ref_of,
)
from ua_memory.store.store import Store
from ua_memory.text import grounding
from ua_memory.text.grounding import locate
from ua_memory.text.wording import main_clauses, shorten

# -- vouching ----------------------------------------------------------------------------------------------
# Keeps what nobody of the house has said out of what every session begins with (see `trust`).
#
# First it is asked where things come from: an address, path, file, host or flag that only untrusted facts
# name has come from them, in whatever words. Then each new sentence is compared with theirs: word for word,
# and by the words they share. What a person has said as well, no less alike, is the person's.


LEAST_WORDS = 2
"""Words of a sentence that are somebody's: a single one is said by chance."""
_PART_WORDS = 4
"""Words from which a sentence is recognised within a longer one."""
_MAX_JOINED = 3
"""Sentences that are also compared together with one of theirs."""
_JOINED_SHARE = 0.75
"""The share of theirs that these must have: several sentences share words by chance."""
_UNTRUSTED_ORIGIN = re.compile(rb"(?:origin:|\xc2\xb7)[ \t]*(?:web|tool|import)\b")
_TRUSTED_RECORDS = (Fact, Observation, Opinion, Passage, CoreBlock)


@dataclass(frozen=True, slots=True)
class _Sentence:
    """One or several consecutive sentences: the normalized text, and the words they are compared by."""

    flat: str
    units: frozenset[str]
    several: bool = False


def untrusted_source(store: Store, text: str, before: str = "") -> Fact | None:
    """The untrusted fact that a new sentence of `text` repeats, or a new name or address in it comes from;
    None if there is none. Sentences that `before` has are not new.

    The files are read, not the index, so a fact that was just written counts."""
    new_sentences = list(_new_sentences(text, before))
    new_words = grounding.distinctive_tokens(text) - grounding.distinctive_tokens(before)
    named: dict[str, Fact] = {}
    by_person: dict[str, float] = {}
    for fact in _untrusted_facts(store) if new_sentences else ():
        sentences = _fact_sentences(fact)
        for sentence in new_sentences:
            similarity = _similarity(sentence, sentences)
            if similarity and sentence.flat not in by_person:
                by_person[sentence.flat] = _person_similarity(store, sentence)
            if similarity > by_person.get(sentence.flat, 0.0):
                return fact
        plain = grounding.plain_text("\n".join(observations.sources(fact)))
        named |= {thing: fact for thing in new_words if grounding.has_token(plain, thing)}
    for plain in map(grounding.plain_text, _trusted_texts(store) if named else ()):
        named = {thing: fact for thing, fact in named.items() if not grounding.has_token(plain, thing)}
    return next(iter(named.values()), None)


def require_trusted(store: Store, text: str, before: str = "") -> None:
    """Raise Usage if `untrusted_source` finds a fact."""
    if found := untrusted_source(store, text, before):
        where = f"^{found.id}" if found.id else found.place.citation
        hint = "have a person put it into core memory, or leave it out"
        raise Usage(f"this is from an untrusted source ({found.said_by})", where=where, hint=hint)


def _new_sentences(text: str, before: str) -> Iterator[_Sentence]:
    """The sentences that `before` does not have, also joined with their neighbours: a line break hides
    nothing."""
    was, ours = grounding.words_only(before), main_clauses(text)
    new = [one for one in ours if not grounding.occurs_in(grounding.words_only(one), was)]
    for size in range(1, _MAX_JOINED + 1):
        for at in range(len(new) - size + 1):
            several = " ".join(new[at : at + size])
            yield _Sentence(grounding.words_only(several), grounding.tokenize(several), size > 1)


def _fact_sentences(fact: Fact) -> list[_Sentence]:
    said = main_clauses("\n".join(observations.sources(fact)))
    return [_Sentence(grounding.words_only(one), grounding.tokenize(one)) for one in said]


def _similarity(new: _Sentence, theirs: Iterable[_Sentence]) -> float:
    """How similar a new sentence is to the most similar of a fact's, from 0 to 1; 0 below the threshold."""
    return max((_sentence_similarity(new, one) for one in theirs), default=0.0)


def _sentence_similarity(new: _Sentence, one: _Sentence) -> float:
    if len(one.units) >= LEAST_WORDS and new.flat == one.flat:
        return 1.0
    if len(one.units) >= _PART_WORDS and grounding.occurs_in(one.flat, new.flat):
        return 1.0
    if new.several and len(new.units & one.units) < _JOINED_SHARE * len(one.units):
        return 0.0
    return grounding.likeness(new.units, one.units)


def _untrusted_facts(store: Store) -> Iterator[Fact]:
    for path, data in texts(store):
        if _UNTRUSTED_ORIGIN.search(data):
            yield from (fact for fact in markdown_document.parse(data, path).of(Fact) if fact.untrusted)


def _person_similarity(store: Store, new: _Sentence) -> float:
    """How similar a new sentence is to what a person has said. Computed only on suspicion, since it reads all
    files."""
    documents = (markdown_document.parse(data, path) for path, data in texts(store))
    facts = (fact for document in documents for fact in document.of(Fact) if fact.said_by == "person")
    return max((_similarity(new, _fact_sentences(fact)) for fact in facts), default=0.0)


def _trusted_texts(store: Store) -> Iterator[str]:
    """The texts of all records except untrusted facts."""
    for path, data in texts(store):
        for record in markdown_document.parse(data, path).records:
            if isinstance(record, _TRUSTED_RECORDS) and not (isinstance(record, Fact) and record.untrusted):
                yield record.value if isinstance(record, CoreBlock) else record.text


# -- proofs ------------------------------------------------------------------------------------------------
# Whether the links from pages, observations and opinions to facts are valid.
#
# One pass over the files collects what is there and what is cited; then each citation is looked up. The id
# is what is meant, the file in a link is a hint: facts move. A line of a person need not cite anything.


REFRESH = "refresh"
"""The operation that writes pages."""

Cause = Literal["nowhere", "forgotten", "quote", "unproved", "uncited"]


@dataclass(frozen=True, slots=True)
class BrokenLink:
    """A citation that does not hold: where it is, why, and a message."""

    path: str
    line: int
    cause: Cause
    message: str


def sources(said: Statement) -> tuple[str, ...]:
    """The texts that a quote from a statement may come from: its own, an observation's former wordings, and
    the words it rests on itself."""
    if isinstance(said, Fact):
        return tuple(observations.sources(said))
    before = (was.text for was in said.was) if isinstance(said, Observation) else ()
    return (said.text, *before, *(proof.quote for proof in proofs_of(said) if proof.quote))


def proofs_of(said: Statement) -> tuple[Proof, ...]:
    """The proofs of an observation or opinion; none for a fact."""
    if isinstance(said, Fact):
        return ()
    return said.proofs if isinstance(said, Observation) else said.because


def lacks_proof(said: Statement) -> bool:
    """Whether an observation or opinion that a machine wrote has no proof. One without an id was typed by a
    person."""
    if isinstance(said, Fact) or said.retired or not said.id or proofs_of(said):
        return False
    return not (isinstance(said, Observation) and observations.by_person(said))


def citing_line(lines: Sequence[str], place: Place, block: str) -> int:
    """The line of a record that cites an id, else its first line."""
    cites = (f"#^{block}]", f"#^{block}|")
    rows = range(place.line, min(place.end, len(lines)) + 1)
    return next((row for row in rows if any(one in lines[row - 1] for one in cites)), place.line)


def uncited_ranges(document: Document) -> Iterator[tuple[int, int]]:
    """(first, last) line of each paragraph and item of a page that cites nothing."""
    for block in scan(document.lines, document.front_end):
        text = "\n".join(document.lines[block.start : block.end])
        prose = block.shape in (BlockShape.PARAGRAPH, BlockShape.ITEM) and any(map(str.isalnum, text))
        if prose and next(fields.citations(text), None) is None:
            yield block.start + 1, block.end


def broken_reason(
    proof: Proof, texts_by_ref: Mapping[str, Sequence[str]], forgotten: Mapping[str, str]
) -> tuple[Cause, str] | None:
    """Why a proof does not hold; None if it does. `texts_by_ref` has the texts of each statement, `forgotten`
    the day on which each forgotten one was forgotten."""
    ref, name = proof.ref, f"^{proof.id}"
    texts = texts_by_ref.get(ref, texts_by_ref.get(proof.id))
    if texts is None:
        if ref in forgotten:
            return "forgotten", f"{name} was forgotten{f' on {forgotten[ref]}' if forgotten[ref] else ''}"
        return "nowhere", f"{name} does not exist in the bank"
    if proof.quote and locate(proof.quote, texts) is None:
        return "quote", f'{name} does not say "{shorten(proof.quote, 60)}"'
    return None


@dataclass
class FileProofs:
    """Collects the statements and citations of a bank's files as they are read, then finds the broken
    links."""

    said: dict[str, tuple[str, ...]] = field(default_factory=dict)
    buried: dict[str, str] = field(default_factory=dict)
    cited: list[tuple[str, int, Proof]] = field(default_factory=list)
    bare: list[Problem] = field(default_factory=list)
    loose: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    """Per page, the paragraphs that cite nothing."""
    _files: dict[str, set[str]] = field(default_factory=dict)

    def read(self, document: Document) -> None:
        """Add a file."""
        path = document.path
        for record in document.records:
            if isinstance(record, Tombstone):
                self.buried[record.id] = record.on
            elif isinstance(record, Statement):
                if record.id:
                    self._say(record)
                if lacks_proof(record):
                    kind = "an observation without a proof"
                    what = kind if isinstance(record, Observation) else "an opinion without a reason"
                    self.bare.append(Problem(path, record.place.line, f"^{record.id} is {what}"))
                for proof in () if getattr(record, "retired", None) else proofs_of(record):
                    self.cited.append((path, citing_line(document.lines, record.place, proof.id), proof))
        if markdown_lines.kind_of(path) is FileKind.PAGE:
            for number, line in enumerate(document.lines[document.front_end :], document.front_end + 1):
                self.cited += [(path, number, Proof(each.file, each.id)) for each in fields.citations(line)]
            if found := list(uncited_ranges(document)):
                self.loose[path] = found

    def _say(self, record: Statement) -> None:
        """Add a statement's texts, by its `ref`. A typed id that only one file has works without the file,
        too."""
        block, ref = str(record.id), str(record.ref)
        self.said[ref] = (*self.said.get(ref, ()), *sources(record))
        files = self._files.setdefault(block, set())
        files.add(record.place.path)
        if len(files) == 1:
            self.said[block] = self.said[ref]
        elif block != ref:
            self.said.pop(block, None)

    def problems(self, store: Store) -> Iterator[Problem]:
        """The broken links, in the order in which they were read."""
        refs = {proof.ref for _, _, proof in self.cited if proof.id not in self.said}
        missing = refs - self.said.keys() - self.buried.keys()
        elsewhere = _prose_block_ids(store, missing) if missing else set()
        yield from self.bare
        for path, line, proof in self.cited:
            why = None if proof.ref in elsewhere else broken_reason(proof, self.said, self.buried)
            if why:
                yield Problem(path, line, why[1])


def _prose_block_ids(store: Store, ids: set[str]) -> set[str]:
    """Those ids that stand at a paragraph of prose, as in Obsidian's block links."""
    found: set[str] = set()
    pattern = re.compile(rb"(?:^|\s)\^([A-Za-z0-9-]+)[ \t\r]*$", re.MULTILINE)
    for path, data in statements.texts(store):
        if b"^" in data and markdown_lines.kind_of(path) is not FileKind.TOMBSTONES:
            found |= ids & {ref_of(path, match.decode()) for match in pattern.findall(data)}
    return found


def uncited_by_refresh(store: Store, loose: Mapping[str, Sequence[tuple[int, int]]]) -> Iterator[BrokenLink]:
    """The uncited paragraphs of pages of which a refresh wrote all lines."""
    for path in sorted(loose) if store.history.exists else ():
        with suppress(GitFailed):  # of a damaged history `verify` tells itself
            lines = store.history.blame(path, store.accepted_bytes(path))
            for start, end in loose[path]:
                if all(line.op == REFRESH for line in lines[start - 1 : end]):
                    yield BrokenLink(path, start, "uncited", "written by a refresh without a citation")
