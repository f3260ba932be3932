"""The parts of a page's body: a heading, a paragraph, a list item, each with its own bytes and its owner."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from ua_memory import markdown
from ua_memory.markdown.blocks import Shape
from ua_memory.markdown.lines import heading_text

Owner = Literal["ours", "person", "other"]
"""Who wrote a line last: a refresh, a person, or nobody who can be named, whose line is left alone."""
CALLOUT = "> [!question] Memory has it otherwise"
"""How what contradicts a person's paragraph begins, below it: a callout that Obsidian draws as a box."""
MARK = re.compile("\ue000(\\d+)\ue001")
_CITED = re.compile(r"(?P<text>.*?)\s*(?P<links>(?:\[\[[^\[\]\n]*#\^[A-Za-z0-9-]+(?:\|[^\[\]\n]*)?\]\]\s*)+)")
_ENDS = re.compile(r"(?<=[.!?。！？])\s+")
_BULLET = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+(?:\[[ xX]\]\s+)?")
_OPENS = re.compile(r"(#{1,6}\s|>|[-*+]\s|\||=|-{3}|\*{3}|_{3}|~~~|```|<!--|\[\^)")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of ours: its text without citations, the ids it cites, and how it stands there."""

    text: str
    ids: tuple[str, ...]
    source: str


@dataclass(eq=False, slots=True)
class Unit:
    """A heading, paragraph, list item or other block: its bytes, and the empty lines behind it."""

    raw: bytes
    shape: Shape
    owner: Owner
    gap: bytes = b""
    ref: str = ""

    @property
    def heading(self) -> bool:
        return self.shape is Shape.HEADING

    @property
    def text(self) -> str:
        """Its lines, without the last one's end."""
        return self.raw.decode("utf-8", "replace").replace("\r\n", "\n").removesuffix("\n")

    @property
    def title(self) -> str:
        return heading_text(self.text.strip())

    @property
    def callout(self) -> bool:
        return self.text.startswith(CALLOUT)

    @property
    def words(self) -> str:
        """The text without bullet, callout and line ends."""
        rows = self.text.split("\n")
        if self.callout:
            rows = rows[1:]
        rows = [row.strip().removeprefix(">").strip() for row in rows]
        return (
            _BULLET.sub("", " ".join(rows).strip(), count=1) if self.shape is Shape.ITEM else " ".join(rows)
        )

    @property
    def sentences(self) -> list[Sentence]:
        """The cited sentences."""
        return [
            Sentence(
                match["text"].strip(),
                tuple(each.ref for each in markdown.citations(match["links"])),
                match[0].strip(),
            )
            for match in _CITED.finditer(self.words)
        ]

    @property
    def loose(self) -> str:
        """What stands behind the last citation, and so is cited by nothing."""
        return _CITED.sub("", self.words).strip()


def mark(number: int) -> str:
    """What stands for a piece of evidence until it is a link."""
    return f"\ue000{number}\ue001"


def plain(text: str) -> str:
    """Text as one line of a paragraph that cannot be taken for syntax, nor for a citation."""
    line = MARK.sub("", " ".join(text.split()))
    line = re.sub("[\ue000\ue001]", "", line).replace("<!--", "\\<!--").replace("#^", "#\\^")
    line = re.sub(r"```+|~~~+", lambda match: "\\" + "\\".join(match[0]), line)
    line = re.sub(r"^(\d+)([.)]\s)", r"\1\\\2", line)
    return "\\" + line if _OPENS.match(line) else line


def own_sentences(unit: Unit) -> list[str]:
    """The sentences of a unit without their citations, each trimmed."""
    text = "\n".join(
        part for part in re.split(r"(?:\s*\[\[[^\[\]\n]*#\^[A-Za-z0-9-]+[^\[\]\n]*\]\])+", unit.words)
    )
    rows = (_ENDS.split(row) for row in text.split("\n"))
    return [said.strip() for row in rows for said in row if any(map(str.isalnum, said))]
