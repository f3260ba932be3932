"""Citations: links to blocks, `[[2026-11-21#^k7m2q9x4tb]]`, as proofs, pages and answers carry them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from ua_memory.records import ref_of

_LINK = re.compile(r"\[\[(?P<file>[^\[\]#|^\n]*)#\^(?P<id>[A-Za-z0-9-]+)(?:\|[^\[\]\n]*)?\]\]")


@dataclass(frozen=True, slots=True)
class Citation:
    """A link to a block: the file's name is a hint, the id is what is meant. It stands at `start`."""

    file: str
    id: str
    start: int
    end: int

    @property
    def ref(self) -> str:
        """What the id is known by; see `ref_of`."""
        return ref_of(self.file, self.id)


def link(path: str, block: str) -> str:
    """The link to a block of the file at `path`: Obsidian's, which knows files by their bare names."""
    return link_to(PurePosixPath(path).stem, block)


def link_to(name: str, block: str) -> str:
    """The link to a block of a file that is called so (`Draft.link_name`)."""
    return f"[[{name}#^{block}]]"


def citations(text: str) -> Iterator[Citation]:
    """The links to blocks in a text, in order."""
    for match in _LINK.finditer(text):
        yield Citation(match["file"], match["id"], match.start(), match.end())
