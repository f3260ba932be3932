"""Tombstones of forgotten statements, in `memory/forgotten.md`.

A tombstone has the statement's id and salted hashes of its text, never the text. What arrives from outside (a
transcript, a document, another tool's memory, another machine) is checked against them. What somebody adds
with `insert` is not: that is a deliberate choice.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property

from ua_memory.errors import NotFound
from ua_memory.markdown import document as markdown_document
from ua_memory.markdown import lines as markdown_lines
from ua_memory.markdown import printer
from ua_memory.records import Fact, Observation, Opinion, Place, Tombstone, is_generated
from ua_memory.store.draft import Draft
from ua_memory.store.store import Store
from ua_memory.text import redaction
from ua_memory.text.wording import sentences

PATH = "memory/forgotten.md"
TITLE = ("# Forgotten", "")
PURGED = "Purged"
"""Trailer of a purge: an id that was removed from the history."""
PURGED_WORDS = "Purged-Words"
"""Trailer of a purge: salted hashes of texts that were removed from the history."""
LEAST_WORDS = 4
"""Words from which a quotation identifies a forgotten statement; shorter ones are too common."""
_ENDS = ".,;:!?…。！？\"'“”‘’«»`*_ "
_BULLET = re.compile(r"\s*(?:[-*+>]|\d+[.)])\s+")
WHY = "it records what was forgotten here"
_HASH = re.compile(r"([0-9a-f]{8}):([0-9a-f]{16})")


@dataclass(frozen=True)
class Tombstones:
    """The tombstones of a bank, by id. `redact` are the bank's own patterns of secrets, by name."""

    by_id: Mapping[str, Tombstone] = field(default_factory=dict)
    redact: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def _marks(self) -> Mapping[str, frozenset[str]]:
        found: dict[str, set[str]] = {}
        for stone in self.by_id.values():
            for salt, mark in _HASH.findall(stone.hash):
                found.setdefault(salt, set()).add(mark)
        return {salt: frozenset(marks) for salt, marks in found.items()}

    @property
    def salt(self) -> str:
        """The salt for new hashes: that of the first tombstone, else a new one. A bank merged from two
        others has both salts; each hash is stored with its own."""
        return next(iter(self._marks), "") or secrets.token_hex(4)

    def __contains__(self, block: str) -> bool:
        return block.removeprefix("^") in self.by_id

    def has_text(self, *texts: str) -> bool:
        """Whether one of these texts was forgotten, ignoring letter case, white space and final punctuation.
        A text also matches if only its secrets have been redacted since."""
        if not self._marks:
            return False
        forms = {form for text in texts for form in _normal_forms(text, self.redact)}
        return any(salted_hash(salt, form) in marks for salt, marks in self._marks.items() for form in forms)

    def quoted(self, *quotes: str) -> bool:
        """Whether one of these quotations is the source or the text of a forgotten statement. Short ones are
        ignored (`LEAST_WORDS`)."""
        return self.has_text(*filter(_is_distinctive, quotes))

    def has_id_of(self, said: Fact | Observation | Opinion) -> bool:
        """Whether a statement's id was forgotten. An id that a person typed may be reused for another
        statement, so its text must match, too."""
        if not said.id or is_generated(said.id):
            return bool(said.id) and str(said.id) in self
        return not self.by_id.keys().isdisjoint((said.ref, said.id)) and self.has_text(said.text)

    def matches(self, said: Fact | Observation | Opinion) -> bool:
        """Whether a statement from outside was forgotten, by its id, its text or one of its quotations."""
        quotes = [quote.text for quote in said.quotes] if isinstance(said, Fact) else ()
        return self.has_id_of(said) or self.has_text(said.text) or self.quoted(*quotes)

    def filter_file(self, data: bytes, path: str) -> tuple[bytes, int]:
        """Remove the forgotten statements and lines from a file: (the remaining bytes, number removed)."""
        found = list(self.found(data, path))
        for n in sorted({n for _, rows in found for n in rows}, reverse=True):
            data = markdown_lines.replace_lines(data, Place(path, n, n), ())
        return data, len(found)

    def found(self, data: bytes, path: str) -> Iterator[tuple[str, list[int]]]:
        """Find forgotten text in a file: (id or '', line numbers from 1), a pair for each statement and for
        each line of other records, or one pair for a record of which every line matches."""
        document = markdown_document.parse(data, path)
        for record in document.records if self.by_id else ():
            rows = range(record.place.line, record.place.end + 1)
            if isinstance(record, (Fact, Observation, Opinion)):
                if self.matches(record):
                    yield record.id or "", [*rows]
                continue
            lost = [n for n in rows if self.has_line_of(document.lines[n - 1])]
            yield from [("", lost)] if len(lost) == len(rows) else (("", [n]) for n in lost)

    def has_sentence_of(self, text: str) -> bool:
        """Whether a line, or a sentence of a line, was forgotten."""
        return self.has_text(*map(str.strip, text.splitlines()), *sentences(text))

    def has_line_of(self, text: str) -> bool:
        """Whether a line of a text was forgotten, with or without its bullet."""
        rows = [row for row in text.splitlines() if row.strip()]
        return bool(rows) and self.has_text(*rows, *(_BULLET.sub("", row) for row in rows))


def read(store: Store, data: bytes | None = None) -> Tombstones:
    """The tombstones of a bank. `data` are the file's bytes; without them it is read."""
    if data is None:
        with suppress(NotFound):
            data = store.accepted_bytes(PATH)
    return Tombstones(parse(data), store.config.redact)


def parse(data: bytes | None) -> dict[str, Tombstone]:
    """Parse the bytes of a tombstone file: {id: tombstone}, empty for no file."""
    return {stone.id: stone for stone in markdown_document.parse(data, PATH).of(Tombstone)} if data else {}


def purged(store: Store) -> set[str]:
    """The ids that purges removed from the history, so that they cannot be restored."""
    done = store.history.with_trailer(PURGED)
    return {block.removeprefix("^") for each in done for block in each.trailers.get(PURGED, ())}


def refused_note(number: int) -> list[str]:
    """A message saying how many forgotten statements were left out; empty for none."""
    said = "1 statement was" if number == 1 else f"{number} statements were"
    return [f"{said} left out: forgotten here before"] if number else []


@dataclass(frozen=True, slots=True)
class Removal:
    """A statement to write a tombstone for: its id, text and supporting quotations."""

    id: str
    text: str
    quotes: tuple[str, ...] = ()


def add(store: Store, draft: Draft, gone: Sequence[Removal], day: str) -> None:
    """Add tombstones in an open revision. An id that has one already is skipped."""
    data = draft.read(PATH)
    known = read(store, data)
    lines: list[str] = []
    salt = known.salt
    for one in gone:
        if one.id not in known:
            texts = [one.text, *filter(_is_distinctive, one.quotes)]
            forms = dict.fromkeys(form for text in texts for form in _normal_forms(text, known.redact))
            marks = " ".join(f"{salt}:{salted_hash(salt, form)}" for form in forms)
            lines += printer.show(Tombstone(one.id, marks, day)).split("\n")
    if lines:
        new = markdown_document.append(data, lines if data.strip() else [*TITLE, *lines])
        draft.write(PATH, new, restored=True)  # hashes are no secrets, whatever they look like


def _is_distinctive(text: str) -> bool:
    return len(text.split()) >= LEAST_WORDS


def _normal_forms(text: str, patterns: Mapping[str, str]) -> list[str]:
    return list(dict.fromkeys(map(normalize, (text, redaction.redact(text, patterns).text))))


def normalize(text: str) -> str:
    """Normalize a text before hashing: NFKC, casefolded, single spaces, no punctuation at its ends."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split()).strip(_ENDS)


def hash_rows(texts: Sequence[str], salt: str) -> list[str]:
    """The salted hashes of texts, eight to a row."""
    rows = [f"{salt}:{salted_hash(salt, normalize(text))}" for text in texts]
    return [" ".join(rows[n : n + 8]) for n in range(0, len(rows), 8)]


def salted_hash(salt: str, form: str) -> str:
    """The salted hash of a normalized text: 16 hexadecimal digits."""
    return hashlib.sha256(f"{salt}\0{form}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
