"""Patterns that are compiled when they are first used: the large tables of words take 70 ms together, and
most commands that import them look for none."""

from __future__ import annotations

import re

TYPE_CHECKING = False  # typing's own constant would cost the import of typing
if TYPE_CHECKING:
    from typing import Any

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
