"""Patterns that are compiled when they are first used, and the tables of them in `data/`.

The large tables of words take 70 ms together, and most commands that import them look for none.
"""

from __future__ import annotations

import os
import re

TYPE_CHECKING = False  # typing's own constant would cost the import of typing
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_DATA = os.path.join(os.path.dirname(os.path.dirname(__file__)), "data")  # noqa: PTH118, PTH120 (pathlib takes 4 ms)
_METHODS = (
    "search",
    "match",
    "fullmatch",
    "split",
    "findall",
    "finditer",
    "sub",
    "subn",
    "pattern",
    "groups",
)


class _LatePattern:
    """Behaves as the compiled pattern; from the first use on it has that one's methods as its own."""

    def __init__(self, pattern: str, flags: int) -> None:
        self._source = pattern, flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        compiled = re.compile(*self._source)
        for each in _METHODS:
            setattr(self, each, getattr(compiled, each))
        return getattr(compiled, name)


def late(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """`re.compile`, but at the first use. `re.error` comes then, too."""
    return _LatePattern(pattern, flags)  # type: ignore[return-value]


_PART = late(r"\{[a-z_]+\}")


def table(file: str, /, **parts: str) -> Iterator[tuple[str, str]]:
    """The rows of a table of patterns in `data/`: how each is headed, and its pattern.

    A heading begins its line; below it, indented, stands the pattern, in as many lines as it takes. `#`
    begins a comment. What is headed `{name}` stands for itself where a later pattern says `{name}`; `parts`
    are more of those.
    """
    known = {f"{{{part}}}": pattern for part, pattern in parts.items()}
    rows: list[tuple[str, list[str]]] = []
    for line in data_text(file).splitlines():
        if line.startswith(" "):
            rows[-1][1].append(line.strip())
        elif line and not line.startswith("#"):
            rows.append((line, []))
    for heading, lines in rows:
        pattern = _PART.sub(lambda part: known[part[0]], "".join(lines))
        if heading.startswith("{"):
            known[heading] = pattern
        else:
            yield heading, pattern


def data_text(name: str) -> str:
    """A file of `ua_memory/data/`."""
    with open(os.path.join(_DATA, name), encoding="utf-8") as file:  # noqa: PTH118, PTH123
        return file.read()
