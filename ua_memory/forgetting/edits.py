"""One file while things are taken out of it: lines that go, lines in the place of others, all else to the
byte."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ua_memory import markdown
from ua_memory.facts import heading_of
from ua_memory.markdown.blocks import Shape, scan
from ua_memory.markdown.lines import heading_level
from ua_memory.records import Place

_AROUND = re.compile(r"\s*<!--\s*(?:chunk|tags):.*-->\s*")
"""A comment of ours that says something of what stands below it, and nothing without that."""


class Edits:
    """The changes of one file. Lines count from 1."""

    def __init__(self, path: str, data: bytes, document: markdown.Document) -> None:
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
            data = markdown.replace_lines(data, place, lines)
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
        heads = [block.start for block in blocks if block.shape is Shape.HEADING]
        for start in reversed(heads):
            level = heading_level(lines[start].strip())
            ends = (n for n in heads if n > start and heading_level(lines[n].strip()) <= level)
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
        kind = markdown.kind_of(self.path)
        if kind is markdown.FileKind.DOCUMENT:  # what is drawn from it later stands below its heading
            return not client
        return bool(client) or kind is markdown.FileKind.PAGE

    def _says_nothing(self, data: bytes) -> bool:
        """Whether only the title is left that a file of ours begins with."""
        if not self._gone or not self.path.startswith("memory/"):
            return False
        stem = self.path.rpartition("/")[2].removesuffix(".md")
        document = markdown.parse(data, self.path)
        rest = [line.strip().casefold() for line in document.lines if line.strip()]
        return rest in ([], [f"# {stem}".casefold()]) and not document.front
