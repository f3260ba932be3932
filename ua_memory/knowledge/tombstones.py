"""What was forgotten, and how it is known when it comes again: `memory/forgotten.md`.

A tombstone has an id and salted hashes of what stood there, never the text. What comes in from outside once
more (a transcript, a document, another tool's memory, another machine) is held against them; what somebody
says anew with `insert` is not, since that is a wish.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
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

PATH = "memory/forgotten.md"
TITLE = ("# Forgotten", "")
PURGED = "Purged"
"""The trailer of a purge that names an id which left the history."""
PURGED_WORDS = "Purged-Words"
"""The trailer of a purge that has salted hashes of texts which left the history."""
LEAST_WORDS = 4
"""Words of a quotation that is known again by itself; fewer are said by anybody."""
_ENDS = ".,;:!?…。！？\"'“”‘’«»`*_ "
_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])")
_BULLET = re.compile(r"\s*(?:[-*+>]|\d+[.)])\s+")
WHY = "it records what was forgotten here"
_HASH = re.compile(r"([0-9a-f]{8}):([0-9a-f]{16})")


@dataclass(frozen=True)
class Tombstones:
    """The tombstones of a bank. `redact` has its own patterns of secrets."""

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
        """The bank's salt: that of its first tombstone, else a new one. Where two machines began apart, both
        stand, each at the hashes made with it."""
        return next(iter(self._marks), "") or secrets.token_hex(4)

    def __contains__(self, block: str) -> bool:
        return block.removeprefix("^") in self.by_id

    def has(self, *texts: str) -> bool:
        """Whether one of these texts was forgotten, letter case, white space and final stops aside. Also
        where a secret that it had was taken out meanwhile."""
        if not self._marks:
            return False
        forms = {form for text in texts for form in _normal_forms(text, self.redact)}
        return any(salted_hash(salt, form) in marks for salt, marks in self._marks.items() for form in forms)

    def quoted(self, *quotes: str) -> bool:
        """Whether what was forgotten rested on one of these quotations, or was worded so."""
        return self.has(*filter(_is_distinctive, quotes))

    def names(self, said: Fact | Observation | Opinion) -> bool:
        """Whether this very statement was forgotten, by its id; by one that a person typed, and may give to
        something else, only with what it said."""
        if not said.id or is_generated(said.id):
            return bool(said.id) and str(said.id) in self
        return not self.by_id.keys().isdisjoint((said.ref, said.id)) and self.has(said.text)

    def forbid(self, said: Fact | Observation | Opinion) -> bool:
        """Whether a statement that came in from outside is one that was forgotten: has its id, if that is of
        our kind, says it, or rests on the words it rested on."""
        quotes = said.quotes if isinstance(said, Fact) else ()
        return self.names(said) or self.has(said.text) or self.quoted(*(quote.text for quote in quotes))

    def without(self, data: bytes, path: str) -> tuple[bytes, int]:
        """A file from outside without the statements and lines that were forgotten, and their number."""
        found = list(self.found(data, path))
        for n in sorted({n for _, rows in found for n in rows}, reverse=True):
            data = markdown_lines.replace_lines(data, Place(path, n, n), ())
        return data, len(found)

    def found(self, data: bytes, path: str) -> Iterator[tuple[str, list[int]]]:
        """(its id, if it has one; its lines) of each statement of a file that was forgotten, and of each line
        of anything else."""
        document = markdown_document.parse(data, path)
        for record in document.records if self.by_id else ():
            rows = range(record.place.line, record.place.end + 1)
            if isinstance(record, (Fact, Observation, Opinion)):
                if self.forbid(record):
                    yield record.id or "", [*rows]
                continue
            lost = [n for n in rows if self.stands_in(document.lines[n - 1])]
            yield from [("", lost)] if len(lost) == len(rows) else (("", [n]) for n in lost)

    def said_in(self, text: str) -> bool:
        """Whether a sentence or a line of what was said is one that was forgotten."""
        rows = [row.strip() for row in text.splitlines()]
        return self.has(*rows, *(part for row in rows for part in _SENTENCE_END.split(row)))

    def stands_in(self, text: str) -> bool:
        """Whether a line of a text, its bullet aside, says what was forgotten."""
        rows = [row for row in text.splitlines() if row.strip()]
        return bool(rows) and self.has(*rows, *(_BULLET.sub("", row) for row in rows))


def read(store: Store, data: bytes | None = None) -> Tombstones:
    """The tombstones of a bank; `data` are the file's bytes if they are known."""
    if data is None:
        try:
            data = store.truth(PATH)
        except NotFound:
            data = b""
    return Tombstones(parse(data), store.config.redact)


def parse(data: bytes | None) -> dict[str, Tombstone]:
    """{id: tombstone} of the file's bytes, as anybody has them; of no file, none."""
    return {stone.id: stone for stone in markdown_document.parse(data, PATH).of(Tombstone)} if data else {}


def was_purged(store: Store, ids: Collection[str]) -> bool:
    """Whether one of these left the history, so that nothing can bring it back."""
    done = store.history.with_trailer(PURGED)
    return any(f"^{block}" in each.trailers.get(PURGED, ()) for each in done for block in ids)


def refused_note(number: int) -> list[str]:
    """What to say of statements that were not taken in, if there are any."""
    said = "1 statement was" if number == 1 else f"{number} statements were"
    return [f"{said} left out: forgotten here before"] if number else []


@dataclass(frozen=True, slots=True)
class Removal:
    """What a tombstone is made for: the id, the text, and the quotations it rested on."""

    id: str
    text: str
    quotes: tuple[str, ...] = ()


def add(store: Store, draft: Draft, gone: Sequence[Removal], day: str) -> None:
    """Add tombstones in an open revision. An id that has one keeps it."""
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
    """A text as it is compared with what was forgotten."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split()).strip(_ENDS)


def hash_rows(texts: Sequence[str], salt: str) -> list[str]:
    """The salted hashes of texts, some to a row."""
    rows = [f"{salt}:{salted_hash(salt, normalize(text))}" for text in texts]
    return [" ".join(rows[n : n + 8]) for n in range(0, len(rows), 8)]


def salted_hash(salt: str, form: str) -> str:
    """The salted hash of a text as `folded` gives it."""
    return hashlib.sha256(f"{salt}\0{form}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
