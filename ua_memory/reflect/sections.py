"""A page's body as sections and paragraphs, and small operations on them: what no operation names keeps
its bytes.

Each paragraph and each list item is a `Unit`. Those that are not ours are never changed, moved or removed,
whatever is asked. In text of ours a mark stands for evidence (`mark(3)`), until it is written and the facts
have their ids.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from ua_memory import markdown, tokens
from ua_memory.errors import Malformed
from ua_memory.markdown.blocks import Block, Shape, scan
from ua_memory.reflect.units import CALLOUT, MARK, Owner, Unit

LONGEST_TITLE = 80


class Refused(Exception):
    """An operation that is not done, and why."""


class Sheet:
    """The body of one page while it is worked on. `limit` bounds its tokens."""

    def __init__(self, data: bytes, path: str, owners: Sequence[Owner], limit: int) -> None:
        document = markdown.parse(data, path)
        pieces = data.split(b"\n")
        rows = [piece + b"\n" for piece in pieces[:-1]] + ([pieces[-1]] if pieces[-1] else [])
        self.newline = document.newline.encode()
        self.limit = limit
        self.units: list[Unit] = []
        at = document.front_end
        blocks = list(scan(document.lines, at))
        if unclosed := next((block for block in blocks if block.unclosed), None):
            raise Malformed(
                f"what begins here is not closed by {unclosed.unclosed}: nothing can be written below it",
                where=f"{path}:{unclosed.start + 1}", mend="close it",
            )  # fmt: skip
        _join_quotations(blocks, document.lines)
        first = blocks[0].start if blocks else len(rows)
        self.head = b"".join(rows[:first])
        for block, following in zip(blocks, [*blocks[1:], None], strict=False):
            end = following.start if following else len(rows)
            made = Unit(
                b"".join(rows[block.start : block.end]), block.shape,
                _owner(owners[block.start : block.end], block.shape), b"".join(rows[block.end : end]),
            )  # fmt: skip
            self.units.append(made)
        self._numbers = {"P": 0, "S": 0}
        for unit in self.units:
            self._number(unit)

    def data(self, links: Mapping[int, str]) -> bytes:
        """The file's bytes, with a link for each mark."""
        out = self.head
        for unit in self.units:
            raw = unit.raw
            if b"\xee\x80\x80" in raw and unit.owner == "ours":
                raw = MARK.sub(lambda m: links[int(m[1])], raw.decode()).encode()
            out += raw + unit.gap
        return out

    def marks(self) -> set[int]:
        """The numbers of the evidence that is cited by what was written."""
        return {int(m[1]) for unit in self.units if unit.owner == "ours" for m in MARK.finditer(unit.text)}

    @property
    def size(self) -> int:
        """Tokens of the body."""
        body = b"".join(unit.raw + unit.gap for unit in self.units).decode("utf-8", "replace")
        return tokens.count(MARK.sub("[[2026-11-21#^k7m2q9x4tb]]", body))

    def sections(self) -> Iterator[tuple[Unit | None, list[Unit]]]:
        """(heading, its units), the lead first, which has none."""
        heading: Unit | None = None
        under: list[Unit] = []
        for unit in self.units:
            if unit.heading:
                yield heading, under
                heading, under = unit, []
            else:
                under.append(unit)
        yield heading, under

    # -- operations ------------------------------------------------------------------------------------

    def append(self, section: str, text: str, after: str = "") -> Unit:
        """A paragraph (`- …` is an item) at the end of a section, or behind one of its units."""
        if after:
            at = self.units.index(self._find(after, "P")) + 1
            while at < len(self.units) and self.units[at].callout:
                at += 1
        else:
            at = self._end(section)
        return self._insert(at, text)

    def replace(self, ref: str, text: str) -> None:
        """Another text for a paragraph of ours."""
        unit = self._ours(self._find(ref, "P"))
        before = unit.raw, unit.shape
        end = self.newline if unit.raw.endswith(b"\n") else b""
        unit.raw = text.encode("utf-8", "replace").replace(b"\n", self.newline) + end
        unit.shape = Shape.ITEM if text.startswith("- ") else Shape.PARAGRAPH
        if self.size > self.limit and len(unit.raw) > len(before[0]):
            unit.raw, unit.shape = before
            self._too_long()
        above = self.units[: self.units.index(unit)][-1:]
        if above and unit.shape is Shape.PARAGRAPH and not above[0].gap and not above[0].heading:
            above[0].gap = self.newline  # an item may stand right below it, a paragraph would go on there

    def remove(self, ref: str) -> None:
        """A paragraph of ours taken out."""
        self._drop(self._ours(self._find(ref, "P")))

    def add_section(self, title: str) -> Unit:
        """A section at the end of the page."""
        return self._insert(len(self.units), f"## {self._titled(title)}", Shape.HEADING)

    def rename(self, section: str, title: str) -> None:
        """Another title for a section of ours."""
        unit = self._ours(self._find(section, "S"))
        marks = re.match(rb"\s*#+", unit.raw)
        end = self.newline if unit.raw.endswith(b"\n") else b""
        unit.raw = (marks[0] if marks else b"##") + b" " + self._titled(title, unit).encode() + end

    def remove_section(self, section: str) -> None:
        """A section of ours with all that stands in it."""
        head = self._ours(self._find(section, "S"))
        under = next(units for heading, units in self.sections() if heading is head)
        for unit in under:
            self._ours(unit)
        for unit in (*under, head):
            self._drop(unit)

    def contradict(self, ref: str, text: str) -> Unit:
        """What memory has against a person's paragraph, in a box below it."""
        unit = self._find(ref, "P")
        if unit.owner == "ours":
            raise Refused(f"{ref} is yours: correct it with replace_paragraph")
        return self._insert(self.units.index(unit) + 1, f"{CALLOUT}\n> {text}")

    def clear(self) -> None:
        """All of ours taken out, but for headings above what stays."""
        for unit in [unit for unit in self.units if unit.owner == "ours" and not unit.heading]:
            self._drop(unit)
        self.prune()

    def prune(self) -> None:
        """Headings of ours without anything below them taken out."""
        for heading, under in list(self.sections()):
            if heading and heading.owner == "ours" and not under:
                self._drop(heading)

    # -- how it is done --------------------------------------------------------------------------------

    def _insert(self, at: int, text: str, shape: Shape | None = None) -> Unit:
        raw = text.encode("utf-8", "replace").replace(b"\n", self.newline) + self.newline
        shape = shape or (Shape.ITEM if text.startswith("- ") else Shape.PARAGRAPH)
        made = Unit(raw, shape, "ours")
        before = self.units[at - 1] if at else None
        after = self.units[at] if at < len(self.units) else None
        saved = (self.head, before.raw if before else b"", before.gap if before else b"")
        if before:
            before.raw += b"" if before.raw.endswith(b"\n") else self.newline
            made.gap = before.gap if after else b""
            before.gap = self._between(before, made) if after else before.gap or self._between(before, made)
        elif not self.head.endswith((b"\n\n", b"\n\r\n")) and self.head:
            self.head += (b"" if self.head.endswith(b"\n") else self.newline) + self.newline
        if after and not made.gap:
            made.gap = self._between(made, after)
        self.units.insert(at, made)
        if self.size > self.limit:
            self.units.remove(made)
            self.head = saved[0]
            if before:
                before.raw, before.gap = saved[1:]
            self._too_long()
        self._number(made)
        return made

    def _between(self, one: Unit, other: Unit) -> bytes:
        together = one.shape is Shape.ITEM and other.shape is Shape.ITEM
        return b"" if together else self.newline

    def _drop(self, unit: Unit) -> None:
        at = self.units.index(unit)
        del self.units[at]
        if 0 < at < len(self.units):
            before = self.units[at - 1]
            before.gap = before.gap or (self._between(before, self.units[at]) and unit.gap)
        elif at and not unit.gap and self.units[at - 1].owner == "ours":
            self.units[at - 1].gap = b""

    def _number(self, unit: Unit) -> None:
        letter = "S" if unit.heading else "P"
        self._numbers[letter] += 1
        unit.ref = f"{letter}{self._numbers[letter]}"

    def _find(self, ref: str, letter: str) -> Unit:
        found = next((unit for unit in self.units if unit.ref == ref.strip() and ref[:1] == letter), None)
        if found is None:
            known = [unit.ref for unit in self.units if unit.ref.startswith(letter)]
            what = "paragraph" if letter == "P" else "section"
            raise Refused(f"there is no {what} {ref[:20]!r}; there are: {', '.join(known) or 'none'}")
        return found

    def _ours(self, unit: Unit) -> Unit:
        if unit.owner != "ours":
            raise Refused(f"{unit.ref} was written by a person, and stays as it is")
        return unit

    def _end(self, section: str) -> int:
        """Behind the last unit of a section."""
        wanted = None if section.strip() == "S0" else self._find(section, "S")
        heading, under = next(each for each in self.sections() if each[0] is wanted)
        last = under[-1] if under else heading
        return self.units.index(last) + 1 if last else 0

    def _titled(self, title: str, but: Unit | None = None) -> str:
        line = " ".join(title.split()).strip("# ")
        if not line or len(line) > LONGEST_TITLE or "[[" in line or MARK.search(line):
            raise Refused(f"a title is one line of at most {LONGEST_TITLE} characters, without links")
        if any(unit.heading and unit is not but and unit.title == line for unit in self.units):
            raise Refused(f"there is a section {line!r} already")
        return line

    def _too_long(self) -> None:
        raise Refused(f"the page may have {self.limit} tokens, and would have more: make room first")


def _join_quotations(blocks: list[Block], lines: Sequence[str]) -> None:
    """Make one block of the lines of a quotation, which are read as one each."""
    for at in range(len(blocks) - 1, 0, -1):
        one, other = blocks[at - 1], blocks[at]
        quoted = all(lines[block.start].lstrip().startswith(">") for block in (one, other))
        if quoted and one.shape is other.shape is Shape.PARAGRAPH and one.end == other.start:
            one.end = other.end
            del blocks[at]


def _owner(rows: Sequence[Owner], shape: Shape) -> Owner:
    """Whose a unit is: a person's, if one line of it is."""
    if "person" in rows:
        return "person"
    mine = shape in (Shape.HEADING, Shape.PARAGRAPH, Shape.ITEM)
    return "ours" if mine and rows and all(row == "ours" for row in rows) else "other"
