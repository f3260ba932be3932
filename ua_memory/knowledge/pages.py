"""Knowledge pages and mental models: create, read, update and delete; and their bodies as sections and units
(headings, paragraphs, list items) that can be edited one by one.

A page's header says what it tracks; its body is written by `reflect.refresh` and by persons. Only a person
may write a mental model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Generic, Literal, TypeVar

from ua_memory.discovery import LOGS
from ua_memory.errors import Malformed, NotFound, Usage, checked
from ua_memory.llm.tools import ToolError
from ua_memory.markdown import document, fields, lines, printer
from ua_memory.markdown.blocks import Block, BlockShape, scan
from ua_memory.markdown.lines import heading_text, is_visible, readable
from ua_memory.records import MentalModel, Page
from ua_memory.store.draft import Draft, Result
from ua_memory.store.store import Store
from ua_memory.text import tokens
from ua_memory.text.wording import sentences

P = TypeVar("P", Page, MentalModel)
MAX_TOKENS = 2048
"""Most tokens of a page's body, if its header has no `max_tokens`."""
LONGEST = {"id": 64, "name": 200, "source_query": 1000}
"""Most characters of the values in a header."""
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_RESERVED = re.compile(r"(?i)(?:con|prn|aux|nul|com\d|lpt\d)")
"""Device names on Windows, which cannot be file names there."""


@dataclass(frozen=True, slots=True)
class PageChange:
    """A page or mental model after a change, and before it (None if it is new)."""

    record: Page | MentalModel
    result: Result
    before: Page | MentalModel | None = None


@checked
class PageFiles(Generic[P]):
    """The knowledge pages or mental models of one bank; `door` names the caller."""

    kind: type[P]
    verb: str
    """The command for them, in the singular."""
    word: str

    def __init__(self, store: Store, door: str) -> None:
        self._store, self._door = store, door

    def list(self) -> Sequence[P]:
        """All of them, in order of their paths; empty files are skipped."""
        return list(self._records().values())

    def get(self, id: str) -> P:
        """One of them: by its file, as a search cites it, by its name or by the id in its header, ignoring
        case. NotFound."""
        name = id.strip("[]").partition("#")[0].removeprefix(f"{self._folder}/").removesuffix(".md")
        there, path = self._records(), f"{self._folder}/{name}.md"
        if found := there.get(path):
            return found
        if any(file.path == path for file in self._store.files()):
            raise _empty_error(path)
        named = [record for record in there.values() if _is_called(record, name)]
        named = [record for record in named if record.id == name] or named
        if len(named) == 1:
            return named[0]
        known = ", ".join(stem(record) for record in there.values()) or "none"
        what = f"no {self.word} {name!r} (there are: {known})"
        raise NotFound(what, where=self._folder, hint=f"ua-memory {self.verb}s list")

    def delete(self, id: str, *, by_person: bool = False) -> PageChange:
        """Delete one. NotFound; Usage for a mental model unless `by_person`."""
        if self.verb == "model":
            require_person(by_person)
        before = self.get(id)
        with self._revision("delete", before, by_person) as draft:
            draft.delete(before.place.path)
        return PageChange(before, draft.result, before)

    def _create(self, made: P, by_person: bool) -> PageChange:
        path = self._path(made.id)
        exists = Usage(
            f"{self.word} {made.id!r} already exists", where=self._folder,
            hint=f"ua-memory {self.verb}s update {made.id}",
        )  # fmt: skip
        if any(_is_called(record, made.id) for record in self._records().values()):
            raise exists
        with self._revision("create", made, by_person) as draft:
            if draft.exists(path):
                raise exists
            draft.write(path, f"{printer.show(made)}\n".encode("utf-8", "replace"))
            there = parse_record(self.kind, draft.read(path), path)
        return PageChange(there, draft.result)

    def _update(self, name: str, changes: dict[str, Any], body: str | None, by_person: bool) -> PageChange:
        if not changes and body is None:
            raise Usage("nothing to change", hint=f"ua-memory {self.verb}s update --help")
        path = (there := self.get(name)).place.path
        with self._revision("update", there, by_person) as draft:
            data = draft.read(path)
            before = parse_record(self.kind, data, path)
            data = document.set_front(data, changes) if changes else data
            draft.write(path, data if body is None else _with_body(data, path, body), removes=[before])
            after = parse_record(self.kind, draft.read(path), path)
        return PageChange(after, draft.result, before)

    @contextmanager
    def _revision(self, did: str, record: P, by_person: bool) -> Iterator[Draft]:
        with self._store.revision(f"{self.verb} {did}", door=self._door, by_person=by_person) as draft:
            yield draft
            draft.subject = f"{self.word}: {'change' if did == 'update' else did} {record.id}"
            draft.trailers[self.verb.title()] = [stem(record)]

    @property
    def _folder(self) -> str:
        return f"{LOGS}/{self.verb}s"

    def _path(self, id: str) -> str:
        """The path for an id. Usage for one that is not a valid file name on every system."""
        word, hint = f"a {self.word}'s id", "use a to z, digits, - and _, as in alice-hosting"
        if not _ID.fullmatch(id) or len(id) > LONGEST["id"]:
            raise Usage(f"{id[:80]!r} cannot be {word}", hint=f"{hint}; at most {LONGEST['id']} characters")
        path = f"{self._folder}/{id}.md"
        if _RESERVED.fullmatch(id) or lines.day_of(path):
            raise Usage(f"{id!r} cannot be {word}: this file name is reserved", hint=hint)
        return path

    def _records(self) -> dict[str, P]:
        """{path: record}, without files that an editor has emptied to save them."""
        there = sorted(file.path for file in self._store.files() if file.path.endswith(".md"))
        paths = [path for path in there if lines.kind_of(path).name == self.verb.upper()]
        records = (
            (path, document.parse(self._store.accepted_bytes(path), path).of(self.kind)) for path in paths
        )
        return {path: found[0] for path, found in records if found}


def max_tokens(data: bytes, path: str) -> int:
    """Most tokens of a page's body: its header's `max_tokens`, else 2,048. Malformed if that is no positive
    integer."""
    said = document.parse(data, path).front.get("max_tokens", MAX_TOKENS)
    if not isinstance(said, int) or isinstance(said, bool) or said < 1:
        wrong = f"max_tokens: {said!r} is not a number of tokens"
        raise Malformed(wrong, where=path, hint="correct the header")
    return said


def recipe(record: Page) -> str:
    """A hash of a page's source query; the page is rewritten when it changes."""
    return document.texthash(" ".join(record.source_query.split()))


def stem(record: Page | MentalModel) -> str:
    """The file name of a page or model without its ending, as trailers and links have it."""
    return record.place.path.rpartition("/")[2].removesuffix(".md") or record.id


def parse_record(kind: type[P], data: bytes, path: str) -> P:
    """The page or model that a file has. Malformed for an empty file."""
    for record in document.parse(data, path).of(kind):
        return record
    raise _empty_error(path)


def _empty_error(path: str) -> Malformed:
    return Malformed("this file is empty", where=path, hint=f"rm {path}, or: ua-memory undo")


def _with_body(data: bytes, path: str, body: str) -> bytes:
    before = document.parse(data, path)
    head = b"".join(data.splitlines(keepends=True)[: before.front_end])
    return head + f"\n{body}\n".replace("\n", before.newline).encode("utf-8", "replace")


def _is_called(record: Page | MentalModel, name: str) -> bool:
    """Whether a record has this name, ignoring case: some file systems do not tell `Alice` from `alice`."""
    return name.casefold() in (stem(record).casefold(), record.id.casefold())


def require_person(by_person: bool) -> bool:
    if not by_person:
        raise Usage("only a person may write a mental model", hint="propose it to your user")
    return True


def check_line(text: str, key: str) -> str:
    clean = readable(text).strip()
    if not clean or "\n" in clean or not is_visible(clean) or len(clean) > LONGEST[key]:
        raise Usage(f"{key} is one line of at most {LONGEST[key]} characters, not {clean[:40]!r}")
    return clean


def check_tags(tags: Sequence[str]) -> tuple[str, ...]:
    clean = tuple(dict.fromkeys(readable(tag).strip().removeprefix("#") for tag in tags))
    for tag in clean:
        if not tag or not tag.isprintable() or "," in tag:
            raise Usage(f"{tag!r} is not a valid tag")
    return clean


def check_body(text: str) -> str:
    clean = readable(text.replace("\r\n", "\n")).strip("\n")
    if not clean.strip():
        raise Usage("no text given", hint="give it as an argument, or on standard input")
    return clean


# -- the units of a body -----------------------------------------------------------------------------------


Owner = Literal["ours", "person", "other"]
"""Who wrote a line last: a refresh, a person, or unknown. Only our own lines are changed."""
CALLOUT = "> [!question] Memory has it otherwise"
"""The head of an Obsidian callout that is inserted below a person's paragraph that memory contradicts."""
PLACEHOLDER = re.compile("\ue000(\\d+)\ue001")
_CITED = re.compile(r"(?P<text>.*?)\s*(?P<links>(?:\[\[[^\[\]\n]*#\^[A-Za-z0-9-]+(?:\|[^\[\]\n]*)?\]\]\s*)+)")
_BULLET = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+(?:\[[ xX]\]\s+)?")
_BLOCK_SYNTAX = re.compile(r"(#{1,6}\s|>|[-*+]\s|\||=|-{3}|\*{3}|_{3}|~~~|```|<!--|\[\^)")


@dataclass(frozen=True, slots=True)
class CitedSentence:
    """A sentence of ours: its text without citations, the ids it cites, and its source text."""

    text: str
    ids: tuple[str, ...]
    source: str


@dataclass(eq=False, slots=True)
class BodyUnit:
    """A heading, paragraph, list item or other block: its bytes, and the empty lines after it."""

    raw: bytes
    shape: BlockShape
    owner: Owner
    gap: bytes = b""
    ref: str = ""

    @property
    def is_heading(self) -> bool:
        return self.shape is BlockShape.HEADING

    @property
    def text(self) -> str:
        """Its lines, without the last newline."""
        return self.raw.decode("utf-8", "replace").replace("\r\n", "\n").removesuffix("\n")

    @property
    def title(self) -> str:
        return heading_text(self.text.strip())

    @property
    def is_callout(self) -> bool:
        return self.text.startswith(CALLOUT)

    @property
    def words(self) -> str:
        """The text on one line, without bullet and callout marks."""
        rows = self.text.split("\n")[self.is_callout :]
        text = " ".join(row.strip().removeprefix(">").strip() for row in rows)
        return _BULLET.sub("", text.strip(), count=1) if self.shape is BlockShape.ITEM else text

    @property
    def sentences(self) -> list[CitedSentence]:
        """The cited sentences."""
        found = []
        for match in _CITED.finditer(self.words):
            ids = tuple(each.ref for each in fields.citations(match["links"]))
            found.append(CitedSentence(match["text"].strip(), ids, match[0].strip()))
        return found

    @property
    def uncited_text(self) -> str:
        """The text after the last citation, which no citation supports."""
        return _CITED.sub("", self.words).strip()


def placeholder(number: int) -> str:
    """A placeholder for a citation of this piece of evidence."""
    return f"\ue000{number}\ue001"


def escape_line(text: str) -> str:
    """Text as one line of a paragraph, escaped so that nothing in it is markdown syntax or a citation."""
    line = PLACEHOLDER.sub("", " ".join(text.split()))
    line = re.sub("[\ue000\ue001]", "", line).replace("<!--", "\\<!--").replace("#^", "#\\^")
    line = re.sub(r"```+|~~~+", lambda match: "\\" + "\\".join(match[0]), line)
    line = re.sub(r"^(\d+)([.)]\s)", r"\1\\\2", line)
    return "\\" + line if _BLOCK_SYNTAX.match(line) else line


def uncited_sentences(unit: BodyUnit) -> list[str]:
    """The sentences of a unit, without citations."""
    return sentences(re.sub(r"(?:\s*\[\[[^\[\]\n]*#\^[A-Za-z0-9-]+[^\[\]\n]*\]\])+", "\n", unit.words))


# -- editing -----------------------------------------------------------------------------------------------
# Units that no operation names keep their bytes. Units that are not ours are never changed, moved or removed.
# In text of ours a placeholder such as `placeholder(3)` cites evidence until the facts have their ids.


LONGEST_TITLE = 80


class RefusedEdit(ToolError):
    """Why an edit is refused, in words for the model."""

    def __init__(self, why: str) -> None:
        super().__init__(f"{why}; nothing was changed")


class PageEditor:
    """The body of one page while it is edited. `limit` is its maximum in tokens."""

    def __init__(self, data: bytes, path: str, owners: Sequence[Owner], limit: int) -> None:
        parsed = document.parse(data, path)
        rows = BytesIO(data).readlines()
        self.newline = parsed.newline.encode()
        self.limit = limit
        self.units: list[BodyUnit] = []
        at = parsed.front_end
        blocks = list(scan(parsed.lines, at))
        if unclosed := next((block for block in blocks if block.unclosed), None):
            raise Malformed(
                f"what begins here is not closed by {unclosed.unclosed}: nothing can be written below it",
                where=f"{path}:{unclosed.start + 1}", hint="close it",
            )  # fmt: skip
        _join_quotations(blocks, parsed.lines)
        first = blocks[0].start if blocks else len(rows)
        self.head = b"".join(rows[:first])
        for block, following in zip(blocks, [*blocks[1:], None], strict=False):
            end = following.start if following else len(rows)
            made = BodyUnit(
                b"".join(rows[block.start : block.end]), block.shape,
                _owner(owners[block.start : block.end], block.shape), b"".join(rows[block.end : end]),
            )  # fmt: skip
            self.units.append(made)
        self._numbers = {"P": 0, "S": 0}
        for unit in self.units:
            self._assign_ref(unit)

    def data(self, links: Mapping[int, str]) -> bytes:
        """The file's bytes, with a link for each placeholder."""
        out = self.head
        for unit in self.units:
            raw = unit.raw
            if b"\xee\x80\x80" in raw and unit.owner == "ours":
                raw = PLACEHOLDER.sub(lambda m: links[int(m[1])], raw.decode()).encode()
            out += raw + unit.gap
        return out

    def cited_numbers(self) -> set[int]:
        """The numbers of the evidence that our text cites."""
        ours = (unit.text for unit in self.units if unit.owner == "ours")
        return {int(match[1]) for text in ours for match in PLACEHOLDER.finditer(text)}

    def size(self, but: BodyUnit | None = None, more: bytes = b"") -> int:
        """Tokens of the body, without one unit and with more text."""
        units = (unit.raw + unit.gap for unit in self.units if unit is not but)
        body = b"".join([*units, more]).decode("utf-8", "replace")
        return tokens.count(PLACEHOLDER.sub("[[2026-11-21#^k7m2q9x4tb]]", body))

    def sections(self) -> Iterator[tuple[BodyUnit | None, list[BodyUnit]]]:
        """Each heading with its units. The first section has no heading (None)."""
        heading: BodyUnit | None = None
        under: list[BodyUnit] = []
        for unit in self.units:
            if unit.is_heading:
                yield heading, under
                heading, under = unit, []
            else:
                under.append(unit)
        yield heading, under

    # -- operations ------------------------------------------------------------------------------------

    def append(self, section: str, text: str, after: str = "") -> BodyUnit:
        """Add a paragraph (`- …` is an item) at the end of a section, or after one of its units."""
        if after:
            at = self.units.index(self._find(after, "P")) + 1
            while at < len(self.units) and self.units[at].is_callout:
                at += 1
        else:
            at = self._section_end(section)
        return self._insert(at, text)

    def replace(self, ref: str, text: str) -> None:
        """Replace the text of a paragraph of ours."""
        unit = self._require_ours(self._find(ref, "P"))
        end = self.newline if unit.raw.endswith(b"\n") else b""
        raw = text.encode("utf-8", "replace").replace(b"\n", self.newline) + end
        if len(raw) > len(unit.raw):
            self._require_room(raw, but=unit)
        unit.raw, unit.shape = raw, _shape_of(text)
        above = self.units[: self.units.index(unit)][-1:]
        if above and unit.shape is BlockShape.PARAGRAPH and not above[0].gap and not above[0].is_heading:
            above[0].gap = self.newline  # a paragraph right below would continue the one above

    def remove(self, ref: str) -> None:
        """Remove a paragraph of ours."""
        self._drop(self._require_ours(self._find(ref, "P")))

    def add_section(self, title: str) -> BodyUnit:
        """Add a section at the end of the page."""
        return self._insert(len(self.units), f"## {self._check_title(title)}", BlockShape.HEADING)

    def rename(self, section: str, title: str) -> None:
        """Change the title of a section of ours."""
        unit = self._require_ours(self._find(section, "S"))
        marks = re.match(rb"\s*#+", unit.raw)
        end = self.newline if unit.raw.endswith(b"\n") else b""
        unit.raw = (marks[0] if marks else b"##") + b" " + self._check_title(title, unit).encode() + end

    def remove_section(self, section: str) -> None:
        """Remove a section of ours with all its units."""
        head = self._require_ours(self._find(section, "S"))
        under = next(units for heading, units in self.sections() if heading is head)
        for unit in under:
            self._require_ours(unit)
        for unit in (*under, head):
            self._drop(unit)

    def contradict(self, ref: str, text: str) -> BodyUnit:
        """Insert a callout below a person's paragraph with what memory has against it."""
        unit = self._find(ref, "P")
        if unit.owner == "ours":
            raise RefusedEdit(f"{ref} is yours: correct it with replace_paragraph")
        return self._insert(self.units.index(unit) + 1, f"{CALLOUT}\n> {text}")

    def clear(self) -> None:
        """Remove all units of ours, except headings above units that stay."""
        for unit in [unit for unit in self.units if unit.owner == "ours" and not unit.is_heading]:
            self._drop(unit)
        self.remove_empty_headings()

    def remove_empty_headings(self) -> None:
        """Remove headings of ours that have nothing below them."""
        for heading, under in list(self.sections()):
            if heading and heading.owner == "ours" and not under:
                self._drop(heading)

    # -- how it is done --------------------------------------------------------------------------------

    def _insert(self, at: int, text: str, shape: BlockShape | None = None) -> BodyUnit:
        raw = text.encode("utf-8", "replace").replace(b"\n", self.newline) + self.newline
        self._require_room(raw + self.newline)
        made = BodyUnit(raw, shape or _shape_of(text), "ours")
        before = self.units[at - 1] if at else None
        after = self.units[at] if at < len(self.units) else None
        if before:
            before.raw += b"" if before.raw.endswith(b"\n") else self.newline
            made.gap = before.gap if after else b""
            before.gap = (b"" if after else before.gap) or self._gap_between(before, made)
        elif not self.head.endswith((b"\n\n", b"\n\r\n")) and self.head:
            self.head += (b"" if self.head.endswith(b"\n") else self.newline) + self.newline
        if after and not made.gap:
            made.gap = self._gap_between(made, after)
        self.units.insert(at, made)
        self._assign_ref(made)
        return made

    def _gap_between(self, one: BodyUnit, other: BodyUnit) -> bytes:
        together = one.shape is BlockShape.ITEM and other.shape is BlockShape.ITEM
        return b"" if together else self.newline

    def _drop(self, unit: BodyUnit) -> None:
        at = self.units.index(unit)
        del self.units[at]
        if 0 < at < len(self.units):
            before = self.units[at - 1]
            before.gap = before.gap or (self._gap_between(before, self.units[at]) and unit.gap)
        elif at and not unit.gap and self.units[at - 1].owner == "ours":
            self.units[at - 1].gap = b""

    def _assign_ref(self, unit: BodyUnit) -> None:
        letter = "S" if unit.is_heading else "P"
        self._numbers[letter] += 1
        unit.ref = f"{letter}{self._numbers[letter]}"

    def _find(self, ref: str, letter: str) -> BodyUnit:
        found = next((unit for unit in self.units if unit.ref == ref.strip() and ref[:1] == letter), None)
        if found is None:
            known = [unit.ref for unit in self.units if unit.ref.startswith(letter)]
            what = "paragraph" if letter == "P" else "section"
            raise RefusedEdit(f"there is no {what} {ref[:20]!r}; there are: {', '.join(known) or 'none'}")
        return found

    def _require_ours(self, unit: BodyUnit) -> BodyUnit:
        if unit.owner != "ours":
            raise RefusedEdit(f"{unit.ref} was written by a person, and stays as it is")
        return unit

    def _section_end(self, section: str) -> int:
        """The index after the last unit of a section."""
        wanted = None if section.strip() == "S0" else self._find(section, "S")
        heading, under = next(each for each in self.sections() if each[0] is wanted)
        last = under[-1] if under else heading
        return self.units.index(last) + 1 if last else 0

    def _check_title(self, title: str, but: BodyUnit | None = None) -> str:
        line = " ".join(title.split()).strip("# ")
        if not line or len(line) > LONGEST_TITLE or "[[" in line or PLACEHOLDER.search(line):
            raise RefusedEdit(f"a title is one line of at most {LONGEST_TITLE} characters, without links")
        if any(unit.is_heading and unit is not but and unit.title == line for unit in self.units):
            raise RefusedEdit(f"there is a section {line!r} already")
        return line

    def _require_room(self, more: bytes, but: BodyUnit | None = None) -> None:
        if self.size(but, more) > self.limit:
            raise RefusedEdit(f"the page may have {self.limit} tokens, and would have more: make room first")


def _shape_of(text: str) -> BlockShape:
    return BlockShape.ITEM if text.startswith("- ") else BlockShape.PARAGRAPH


def _join_quotations(blocks: list[Block], lines: Sequence[str]) -> None:
    """Join consecutive quotation lines, each of which is scanned as a block of its own."""
    for at in range(len(blocks) - 1, 0, -1):
        one, other = blocks[at - 1], blocks[at]
        quoted = all(lines[block.start].lstrip().startswith(">") for block in (one, other))
        if quoted and one.shape is other.shape is BlockShape.PARAGRAPH and one.end == other.start:
            one.end = other.end
            del blocks[at]


def _owner(rows: Sequence[Owner], shape: BlockShape) -> Owner:
    """The owner of a unit: a person, if one of its lines is theirs."""
    if "person" in rows:
        return "person"
    mine = shape in (BlockShape.HEADING, BlockShape.PARAGRAPH, BlockShape.ITEM)
    return "ours" if mine and rows and all(row == "ours" for row in rows) else "other"
