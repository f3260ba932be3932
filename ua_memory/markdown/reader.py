"""Parsing blocks into records, by the kind of file. What cannot be parsed becomes a Problem."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ua_memory.markdown.blocks import (
    ITEM_LIMIT,
    LIMIT,
    Block,
    BlockShape,
    Header,
    Item,
    Span,
    heading_of,
    heading_tags,
    parse_old_heading,
    scan,
    split_passages,
)
from ua_memory.markdown.fields import KEYS, read_fields, read_names
from ua_memory.markdown.lines import (
    BLANK,
    ITEMS,
    FileKind,
    common_prefix_length,
    day_of,
    heading_level,
    heading_text,
    kind_of,
    split_tail,
)
from ua_memory.markdown.printer import CORE_NAME, core_name, decode_core, strip_blank
from ua_memory.records import (
    CoreBlock,
    Entity,
    Fact,
    Heading,
    MentalModel,
    Observation,
    Opinion,
    Page,
    Passage,
    Place,
    Problem,
    Record,
    SourceDocument,
    Tombstone,
)
from ua_memory.text.wording import CORE_INTRO

# -- statements --------------------------------------------------------------------------------------------
# A list item → the record it is, by the kind of file it stands in, with the problems met on the way.


ReportProblem = Callable[[int, str], None]
"""Called with a problem: its line (from 0) and the message."""


def read_record(kind: type, item: Item, path: str, heading: Heading, report: ReportProblem) -> Record | None:
    """Parse an item as a record of this kind; None if it is prose."""
    place = Place(path, item.start + 1, item.end)
    if kind is Entity or kind is Tombstone:
        return (_entity if kind is Entity else _tombstone)(item, place, report)
    return _statement(kind, item, {"place": place, "heading": heading}, report)


def _statement(kind: type, item: Item, where: dict[str, Any], report: ReportProblem) -> Record | None:
    found, kept, wrong = read_fields(kind, item)
    text, tags, block_id = item.text(kept)
    if text is None:
        return None
    for line, message in wrong:
        report(line, f"{message}; it is read as text")
    count, proofs = found.pop("count", None), len(found.get("proofs", ()))
    if count is not None and count != proofs:
        line = next(meta.number for meta in item.metas() if meta.key == "proofs")
        report(line, f"`proofs: {count}`, but the `proof:` items are {proofs}")
    found["tags"] = tags + found.get("tags", ())
    record: Record = kind(text=text, id=block_id, **found, **where)
    return record


def _entity(item: Item, place: Place, report: ReportProblem) -> Entity | None:
    try:
        (name,) = read_names(split_tail(item.lines[0].words, True)[0])
    except ValueError:
        report(item.start, "this item is not a single name such as [[Alice]]; it is read as prose")
        return None
    found, _, wrong = read_fields(Entity, item)
    for line, message in wrong:
        report(line, f"{message}; it is left out")
    return Entity(name, **found, place=place)


def _tombstone(item: Item, place: Place, report: ReportProblem) -> Tombstone | None:
    found, _, wrong = read_fields(Tombstone, item)
    text, _, block_id = item.text()
    if text is not None or block_id is None:
        what = "this item is not a tombstone (a single id such as ^k7m2q9x4tb); it is read as prose"
        report(item.start, what)
        return None
    for line, message in wrong:
        report(line, f"{message}; it is left out")
    missing = [key for key in ("hash", "on") if key not in found]
    if missing:
        report(item.start, f"this tombstone lacks {' and '.join(missing)}")
    return Tombstone(block_id, found.get("hash", ""), found.get("on", ""), place)


# -- reader ------------------------------------------------------------------------------------------------


IMPORTED_KEY = "imported_from"
"""Front matter key of an imported file, with its source: all its records have the origin `import`."""
ORIGIN_KEY = "origin"
"""Front matter key of a note; with the value `agent`, all its records have that origin."""
OpenHeading = tuple[int, str, Heading]
"""(level, text, metadata) of a heading above the present line."""
_OLD_KEYS = ("session", "tags", "summary")


class Reader:
    """Parses a file in one pass over its blocks. `read` fills `records` (in file order), `problems`,
    `through` and `unclosed`."""

    def __init__(self, path: str, lines: Sequence[str], header: Header) -> None:
        self.path, self.lines, self.header = path, lines, header
        self.kind, self.start = kind_of(path), header.size
        self.records: list[Record] = []
        self.problems: list[Problem] = []
        self.through: list[str] = []
        self.unclosed: list[str] = []
        self._base = _file_heading(header) if self.kind is FileKind.LOG else Heading()
        self._headings: list[OpenHeading] = []
        self._prose: list[Span] = []
        self._items_in_prose = False
        self._core: int | None = None
        self._core_names: set[str] = set()
        self._introduction: tuple[int, str] | None = (self.start, "") if self.kind is FileKind.CORE else None
        self._intro_blocks: list[CoreBlock] = []
        self._our_intros: set[int] = set()
        self._old_entry: dict[str, Item] | None = None
        self._old_level = 0

    @property
    def heading(self) -> Heading:
        """The metadata of the innermost heading at the present line."""
        return self._headings[-1][2] if self._headings else self._base

    @property
    def is_between_records(self) -> bool:
        """Whether, in a log, no record or passage is incomplete at the present line."""
        begun = self._prose or self._old_entry is not None or self._old_level or self.unclosed
        return self.kind is FileKind.LOG and not begun

    def read(self) -> None:
        """Parse the file from line `start` on; the part before was parsed already."""
        if self.start == self.header.size:
            if self.header.problem:
                self.problem(*self.header.problem)
            self._read_front()
        keys = KEYS[ITEMS[self.kind]] if self.kind in ITEMS else ()
        for block in scan(self.lines, self.start, keys):
            self._block(block)
        self._end_old_entry()
        self._end_prose()
        self._end_core(len(self.lines))
        self._end_introduction(len(self.lines))
        self._name_introductions()
        self.records.sort(key=lambda record: record.place.line)
        self._report_duplicate_ids()
        self.problems.sort(key=lambda problem: problem.line)

    def problem(self, line: int, message: str) -> None:
        """Add a problem at a line (from 0)."""
        self.problems.append(Problem(self.path, line + 1, message))

    def place(self, start: int, end: int) -> Place:
        """The Place of lines counted from 0, `end` excluded."""
        return Place(self.path, start + 1, end)

    # blocks

    def _block(self, block: Block) -> None:
        if block.unclosed:
            self.unclosed.append(block.unclosed)
            what = "comment" if block.shape is BlockShape.COMMENT else "code fence"
            self.problem(block.start, f"this {what} is not closed: everything after it belongs to it")
        if block.item is not None:
            for line, message in block.item.unclosed:
                self.problem(line, message)
        if self._old_entry is not None and not self._take_old_item(block):
            self._end_old_entry()
        if block.shape is BlockShape.HEADING:
            self._end_prose()
            self._heading(block.start)
        elif block.shape is BlockShape.RULE or self._is_query(block):
            self._end_prose()
        elif block.shape is BlockShape.COMMENT or (block.item is not None and block.item.hidden):
            self._end_prose()
            self._comment(block)
        elif block.item is None or not self._item(block.item):
            self._items_in_prose |= block.item is not None
            if self.kind is FileKind.CORE and self._is_intro(block):
                self._our_intros.add(block.start)
            else:
                self._prose.append((block.start, block.end))

    def _is_query(self, block: Block) -> bool:
        """Whether a code block is a plugin's query or a drawing, which has no text of its own."""
        if block.shape is not BlockShape.CODE:
            return False
        language = self.lines[block.start].strip(BLANK).strip("`~").strip().lower()
        drawn = language == "json" and '"excalidraw"' in "".join(
            self.lines[block.start + 1 : block.start + 3]
        )
        return drawn or language in QUERY_FENCES

    def _heading(self, at: int) -> None:
        words = self.lines[at].strip(BLANK)
        level, text = heading_level(words), heading_text(words)
        while self._headings and self._headings[-1][0] >= level:
            self._headings.pop()
        above = self._headings
        above.append((level, text, heading_of(above, text, self._base)))
        if self._old_level and level <= self._old_level:
            self._old_level = 0
        if parse_old_heading(text) and self.kind is FileKind.LOG:
            self._old_entry, self._old_level = {}, level
        if self.kind is FileKind.CORE and level <= 2:
            self._end_core(at)
            self._end_introduction(at)
            self._core = at if level == 2 else None
            self._introduction = (at + 1, text) if level == 1 else None

    def _comment(self, block: Block) -> None:
        words = "\n".join(self.lines[block.start : block.end]).strip(BLANK).removeprefix("<!--").strip()
        if words.startswith("through:") and words.endswith("-->"):
            marks = words[len("through:") : -len("-->")].split(",")
            self.through.extend(mark.strip() for mark in marks if mark.strip())
        elif words.startswith("tags:") and words.endswith("-->") and self._headings:
            level, text, heading = self._headings[-1]
            if tags := heading_tags(words[len("tags:") : -len("-->")]):
                self._headings[-1] = (level, text, replace(heading, tags=tags))

    def _end_prose(self) -> None:
        limit = ITEM_LIMIT if self._items_in_prose else LIMIT
        for text, start, end in split_passages(self.lines, self._prose, limit):
            self.records.append(Passage(text, self.place(start, end), self.heading))
        self._prose, self._items_in_prose = [], False

    # items

    def _item(self, item: Item) -> bool:
        """Whether the item is a record; otherwise it is prose."""
        if self._old_entry is not None:
            return True
        kind = ITEMS.get(self.kind)
        if kind is None or self._old_level:
            return False
        record = read_record(kind, item, self.path, self.heading, self.problem)
        if record is not None:
            self._end_prose()
            self.records.append(record)
        return record is not None

    # entries in the format of an earlier tool: a heading with a time, then `- session:`, `- tags:`, `-
    # summary:`

    def _take_old_item(self, block: Block) -> bool:
        if block.item is None or self._old_entry is None:
            return False
        key = block.item.lines[0].words.partition(":")[0]
        if key not in _OLD_KEYS or key in self._old_entry:
            return False
        self._old_entry[key] = block.item
        return True

    def _end_old_entry(self) -> None:
        entry, self._old_entry = self._old_entry, None
        if not entry:
            return
        values = {key: i.lines[0].words.partition(":")[2].strip(BLANK) for key, i in entry.items()}
        items = list(entry.values())
        if not values.get("summary"):
            self._prose.extend((item.start, item.end) for item in items)
            return
        level, text, heading = self._headings[-1]
        heading = replace(heading, session=values.get("session") or None)
        self._headings[-1] = (level, text, heading)
        words, tags, block_id = entry["summary"].text()
        listed = [tag.strip(BLANK).removeprefix("#") for tag in values.get("tags", "").split(",")]
        day = text[:10]
        fact = Fact(
            (words or "").partition(":")[2].strip(BLANK),
            id=block_id,
            when=None if day == day_of(self.path) else day,
            tags=(*filter(None, listed), *tags),
            place=self.place(items[0].start, items[-1].end),
            heading=heading,
        )
        self.records.append(fact)

    # whole files

    def _read_front(self) -> None:
        if self.kind is FileKind.LOG:
            self._read_description()
            return
        needed = _REQUIRED_KEYS.get(self.kind)
        if needed is None or not self.lines:
            return
        missing = [key for key in needed if not self.header.text(key)]
        if missing and not self.header.problem:
            self.problem(0, f"the front matter lacks {', '.join(missing)}")
        whole: dict[str, Any] = {"place": self.place(0, len(self.lines)), "tags": self.header.texts("tags")}
        stem = self.path.rpartition("/")[2].removesuffix(".md")
        texts: dict[str, Any] = {
            key: self.header.text(key) or ("" if key == "source_query" else stem) for key in needed
        }
        body = strip_blank("\n".join(self.lines[self.header.size :]))
        if self.kind is FileKind.PAGE:
            self.records.append(Page(**texts, **whole, body=body))
        elif self.kind is FileKind.MODEL:
            self.records.append(MentalModel(**texts, **whole, body=body))
        elif self.header.size:
            source, chunks = self.header.text("source"), self.header.texts("chunks")
            place = self.place(0, self.header.size)
            self.records.append(SourceDocument(**texts, source=source, chunks=chunks, place=place))

    def _read_description(self) -> None:
        """Add the `description` in the front matter of Claude Code's memory files as a passage."""
        text = self.header.text("description")
        for at in range(1, self.header.size):
            if text and self.lines[at].startswith("description:"):
                self.records.append(Passage(text, self.place(at, at + 1), self._base))
                return

    def _end_core(self, end: int) -> None:
        start, self._core = self._core, None
        if start is None:
            return
        name, labelled = core_name(heading_text(self.lines[start].strip(BLANK)))
        while end > start + 1 and not self.lines[end - 1].strip(BLANK):
            end -= 1
        if not name:
            return
        value = decode_core(self.lines[start + 1 : end])
        if name in self._core_names:
            self.problem(start, f"a second core block named {name}")
        self._core_names.add(name)
        self.records.append(CoreBlock(name, value, labelled, self.place(start, end)))

    def _is_intro(self, block: Block) -> bool:
        """Whether a block is the sentence that `init` writes into new core memory."""
        return block.end == block.start + 1 and self.lines[block.start].strip(BLANK) == CORE_INTRO

    def _end_introduction(self, end: int) -> None:
        """Add the text under a title, or above all headings, as a core block, if there is any."""
        top, self._introduction = self._introduction, None
        if top is None or not any(isinstance(r, Passage) and r.place.line > top[0] for r in self.records):
            return
        start, name = top
        while not self.lines[start].strip(BLANK) or start in self._our_intros:
            start += 1
        while not self.lines[end - 1].strip(BLANK):
            end -= 1
        value = decode_core(self.lines[start:end])
        self._intro_blocks.append(CoreBlock(name or CORE_NAME, value, top=True, place=self.place(start, end)))

    def _name_introductions(self) -> None:
        """Give introductions names that differ from the sections'."""
        used = {name.casefold() for name in self._core_names}
        for block in self._intro_blocks:
            name, number = block.name, 1
            while name.casefold() in used:
                number += 1
                name = f"{block.name} (introduction{'' if number == 2 else f' {number - 1}'})"
            used.add(name.casefold())
            self.records.append(replace(block, name=name))

    def _report_duplicate_ids(self) -> None:
        first: dict[str, Any] = {}
        for record in self.records:
            if isinstance(record, (Fact, Observation, Opinion)) and record.id is not None:
                other = first.setdefault(record.id, record)
                if other.text != record.text:
                    what = f"^{record.id} is already the id of another text, line {other.place.line}"
                    self.problem(record.place.line - 1, what)


def _file_heading(header: Header) -> Heading:
    """The heading for all records of a file: its origin, if it was imported or an agent keeps it, and its
    title, which many imported notes have in the file name or front matter only."""
    source = header.text(IMPORTED_KEY)
    if source is None:
        return Heading(origin="agent", whole=True) if header.text(ORIGIN_KEY) == "agent" else Heading()
    stem = source.rpartition("/")[2].removesuffix(".md")
    title = header.text("title") or ("" if day_of(f"{stem}.md") == stem or stem == "MEMORY" else stem)
    return Heading((title,) if title else (), origin="import", whole=True)


QUERY_FENCES = frozenset(
    "dataview dataviewjs tasks query base kanban:settings tracker compressed-json".split()  # noqa: SIM905
)
"""Languages of code fences that are queries of Obsidian and its plugins, or Excalidraw's drawings."""

_REQUIRED_KEYS: Mapping[FileKind, tuple[str, ...]] = {
    FileKind.PAGE: ("id", "name", "source_query"),
    FileKind.MODEL: ("id", "name"),
    FileKind.DOCUMENT: ("document_id",),
}


# -- incremental parsing -----------------------------------------------------------------------------------
# Parsing a log again from near the first line that has changed.
#
# One insert parses the log of its day several times: before and after it, and whatever an editor saves. Of
# thousands of facts only the end differs.
#
# A block does not depend on lines after the first one of the next block (`blocks`). So records, problems and
# headings before a line are the same if that line and all before it are.


BLOCKS_BETWEEN_POINTS = 32
"""There is a resume point after about so many blocks."""
READERS_CACHED = 4
"""Enough for the contents before and after an insert, and two saves of an editor."""


@dataclass(frozen=True, slots=True)
class ResumePoint:
    """A line (from 0) from which parsing can resume, and the numbers of results before it."""

    line: int
    records: int
    problems: int
    through: int
    headings: tuple[OpenHeading, ...]


class RecentReaders:
    """The latest readers of long files, newest first. The tuple is replaced, for thread safety."""

    def __init__(self) -> None:
        self.readers: tuple[IncrementalReader, ...] = ()

    def add(self, reader: IncrementalReader) -> None:
        self.readers = (reader, *self.readers[: READERS_CACHED - 1])


class IncrementalReader(Reader):
    """A Reader that records resume points, and resumes from those of a recent reader."""

    def __init__(self, path: str, lines: Sequence[str], header: Header, recent: RecentReaders) -> None:
        super().__init__(path, lines, header)
        self._recent = recent
        self._points: list[ResumePoint] = []
        self._blocks_since = 0
        self._problems_before_ids: tuple[Problem, ...] = ()

    def read(self) -> None:
        """Parse the file, from the last resume point of a recent reader before the first difference."""
        kept = self._recent.readers
        points = ((self._last_common_point(like), like) for like in kept)
        best = max(points, key=lambda one: one[0], default=(-1, self))
        if best[0] >= 0:
            self._resume(best[1], best[1]._points[best[0]])
        super().read()
        if self._points:
            self._recent.add(self)

    def _last_common_point(self, like: IncrementalReader) -> int:
        """The index of the last resume point of another reader whose line, and all before, are the same; -1
        for none."""
        if like.path != self.path or like.header != Header() or self.header != Header():
            return -1
        same = common_prefix_length(like.lines, self.lines)
        return bisect_right(like._points, same - 1, key=lambda mark: mark.line) - 1

    def _resume(self, like: IncrementalReader, mark: ResumePoint) -> None:
        self.start = mark.line
        self.records = like.records[: mark.records]
        self.problems = [*like._problems_before_ids[: mark.problems]]
        self.through = like.through[: mark.through]
        self._headings = [*mark.headings]
        self._points = [each for each in like._points if each.line < mark.line]
        self._blocks_since = BLOCKS_BETWEEN_POINTS

    def _block(self, block: Block) -> None:
        if self._blocks_since >= BLOCKS_BETWEEN_POINTS and self.is_between_records:
            found = len(self.records), len(self.problems), len(self.through)
            self._points.append(ResumePoint(block.start, *found, tuple(self._headings)))
            self._blocks_since = 0
        self._blocks_since += 1
        super()._block(block)

    def _report_duplicate_ids(self) -> None:
        # Duplicate ids are found again each time, and added last.
        self._problems_before_ids = tuple(self.problems)
        super()._report_duplicate_ids()
