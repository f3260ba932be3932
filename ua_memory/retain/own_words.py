"""Facts of a text without a model: its author's own sentences, list items and rows of tables.

Nothing is reworded. A row is written with the words of its table's head before its own, since alone it would
say nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from ua_memory.grounding.terms import terms
from ua_memory.names import names
from ua_memory.records import Fact, Quote
from ua_memory.retain import moments
from ua_memory.retain.asked import Brief, pieces
from ua_memory.retain.candidate import one_line
from ua_memory.retain.chunks import Chunk
from ua_memory.retain.drawing import Drawn
from ua_memory.retain.extract import extract
from ua_memory.retain.sentences import plain, sentences
from ua_memory.transcripts.turns import Turn

PER_10_000_WORDS, AT_LEAST = 300, 12
"""How much a document may leave: its author chose the words, so more than of a talk."""
_WORDS = 4
"""A list item of fewer words says nothing alone."""
_ROW = re.compile(r"\s*\|(.*)\|\s*$")
_RULE = re.compile(r"\s*\|[\s:|-]+\|\s*$")


def own_words(chunk: Chunk, brief: Brief) -> Drawn:
    """What is kept of a chunk without a model."""
    if brief.mode == "chunks":
        text = chunk.text.strip()
        return Drawn((Fact(text, tags=brief.tags, when=moments.derived(text, brief.at.date())),))
    if brief.mode == "verbatim":
        return Drawn(
            tuple(_dated(Fact(each, entities=names(each)), each, brief) for each in pieces(chunk.text))
        )
    weighed = [*_said(chunk, brief), *_listed(chunk)] or [*_alone(chunk)]
    more = islice(_named(chunk), max(AT_LEAST - len(weighed), 0))
    found = [(_position(chunk.text, fact), fact) for fact in (*weighed, *more)]
    found.sort(key=lambda each: each[0])
    return Drawn(tuple(_dated(fact, _evidence(fact), brief) for fact in _once(fact for _, fact in found)))


def _said(chunk: Chunk, brief: Brief) -> Iterator[Fact]:
    turn = Turn("text", "person", chunk.text, brief.at)
    for each in extract([turn], per_10_000_words=PER_10_000_WORDS, at_least=AT_LEAST):
        quotes = () if each.text == each.quote else (Quote(each.quote),)
        yield Fact(each.text, kind=each.kind, entities=each.entities, tags=each.tags, quotes=quotes)


def _alone(chunk: Chunk) -> Iterator[Fact]:
    """A statement that is all there is: whoever hands over one sentence wants it kept."""
    said = list(sentences(chunk.text))
    text = one_line(chunk.text)
    if len(said) == 1 and said[0].text == text and len(text.split()) >= _WORDS and not text.endswith("?"):
        yield Fact(text, entities=names(text))


def _listed(chunk: Chunk) -> Iterator[Fact]:
    """Items that are whole statements, and the rows of tables."""
    for sentence in sentences(chunk.text):
        if sentence.item and not sentence.nested and len(sentence.text.split()) >= _WORDS:
            text = f"{sentence.lead} {sentence.text}" if sentence.lead else sentence.text
            quotes = (Quote(sentence.quote),) if text != sentence.quote else ()
            if not text.rstrip().endswith("?"):
                yield Fact(text, entities=names(text), quotes=quotes)
    yield from _rows(chunk.text)


def _named(chunk: Chunk) -> Iterator[Fact]:
    """Whole sentences that name somebody or count something: few of a document are chat."""
    for sentence in sentences(chunk.text):
        found = names(sentence.text)
        plain = sentence.whole and not sentence.item and not sentence.text.rstrip().endswith("?")
        telling = bool(found) or any(map(str.isdigit, sentence.text))
        if plain and telling and len(sentence.text.split()) >= _WORDS:
            quotes = () if sentence.text == sentence.quote else (Quote(sentence.quote),)
            yield Fact(sentence.text, entities=found, quotes=quotes)


def _rows(text: str) -> Iterator[Fact]:
    head: list[str] = []
    above = ""
    for line in text.splitlines():
        row = _ROW.match(line)
        if _RULE.match(line):
            found = _ROW.match(above)
            head = [plain(cell.strip()) for cell in found[1].split("|")] if found else []
        elif row and head:
            cells = [plain(cell.strip()) for cell in row[1].split("|")]
            said = [f"{key}: {cell}" if key else cell for key, cell in zip(head, cells, strict=False) if cell]
            if len(said) > 1:
                yield Fact("; ".join(said), entities=names("; ".join(cells)), quotes=(Quote(one_line(line)),))
        elif not row:
            head = []
        above = line


def _once(facts: Iterator[Fact]) -> Iterator[Fact]:
    """Each statement once: one that is within another is no second."""
    kept: list[tuple[frozenset[str], Fact]] = []
    for fact in facts:
        words = terms(fact.text)
        if not any(words <= said for said, _ in kept):
            kept = [each for each in kept if not each[0] < words]
            kept.append((words, fact))
    yield from (fact for _, fact in kept)


def _dated(fact: Fact, text: str, brief: Brief) -> Fact:
    tags = tuple(dict.fromkeys((*brief.tags, *fact.tags)))
    return replace(fact, when=moments.derived(text, brief.at.date()), tags=tags)


def _evidence(fact: Fact) -> str:
    return fact.quotes[0].text if fact.quotes else fact.text


def _position(text: str, fact: Fact) -> int:
    flat = one_line(text)
    return flat.find(one_line(_evidence(fact))) % (len(flat) + 1)
