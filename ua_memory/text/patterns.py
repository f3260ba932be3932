"""Regular expressions that are compiled on first use, and the tables of them in `data/`.

Compiling all large patterns takes 70 ms, and most commands use none of them.
"""

from __future__ import annotations

import os
import re
import unicodedata
from functools import cache

TYPE_CHECKING = False  # typing's own constant would cost the import of typing
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

_DATA = os.path.join(os.path.dirname(os.path.dirname(__file__)), "data")  # noqa: PTH118, PTH120 (pathlib takes 4 ms)
_METHODS = "search match fullmatch split findall finditer sub subn pattern groups".split()  # noqa: SIM905


class _LatePattern:
    """A proxy for a compiled pattern. The first use compiles it and copies its methods."""

    def __init__(self, pattern: str | Callable[[], str], flags: int) -> None:
        self._pattern, self._flags = pattern, flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        pattern = self._pattern if isinstance(self._pattern, str) else self._pattern()
        compiled = re.compile(pattern, self._flags)
        for each in _METHODS:
            setattr(self, each, getattr(compiled, each))
        return getattr(compiled, name)


def late(pattern: str | Callable[[], str], flags: int = 0) -> re.Pattern[str]:
    """`re.compile` on first use, which may raise `re.error` only then. A function returns its pattern."""
    return _LatePattern(pattern, flags)  # type: ignore[return-value]


_PART = late(r"\{[a-z_]+\}")
_FURTHER = " " * 8


def table(file: str, /, **parts: str) -> Iterator[tuple[str, str]]:
    """(heading, pattern) of each row of a table in `data/`.

    A heading is a line that is not indented, the indented lines below it are its pattern. If the heading ends
    in a colon, each of them is an alternative, and one that is indented further continues the one above. `#`
    begins a comment. A pattern headed `{name}` replaces `{name}` in later patterns, as do `parts`.
    """
    known = {f"{{{part}}}": pattern for part, pattern in parts.items()}
    rows: list[tuple[str, list[str]]] = []
    for line in data_text(file).splitlines():
        if line.startswith(" "):
            rows[-1][1].append(line)
        elif line and not line.startswith("#"):
            rows.append((line, []))
    for heading, lines in rows:
        name, listed = heading.removesuffix(":"), heading.endswith(":")
        starts = (listed and not line.startswith(_FURTHER) for line in lines)
        text = "".join("|" * start + line.strip() for start, line in zip(starts, lines, strict=True))
        pattern = _PART.sub(lambda part: known[part[0]], f"(?:{text[1:]})" if listed else text)
        if name.startswith("{"):
            known[name] = pattern
        else:
            yield name, pattern


class Phrases(dict[str, "re.Pattern[str]"]):
    """The patterns of a table in `data/` by name. It is read when the first of them is used."""

    def __init__(self, file: str, flags: int = 0, /, **parts: str) -> None:
        super().__init__()
        self._file, self._flags, self._parts = file, flags, parts

    def __missing__(self, name: str) -> re.Pattern[str]:
        self |= {each: late(pattern, self._flags) for each, pattern in table(self._file, **self._parts)}
        if name not in self:
            raise KeyError(name)
        return self[name]


def data_text(name: str) -> str:
    """The text of a file in `ua_memory/data/`."""
    with open(os.path.join(_DATA, name), encoding="utf-8") as file:  # noqa: PTH118, PTH123
        return file.read()


def sections(file: str) -> Mapping[str, str]:
    """{heading: the lines below it} of a file in `data/`; an empty line ends each, and the comment above."""
    blocks = (block.strip("\n").partition("\n") for block in data_text(file).split("\n\n")[1:])
    return {heading: text for heading, _, text in blocks}


def without_accents(text: str) -> str:
    """A text without its accents, as FTS5 reads it."""
    if text.isascii():
        return text
    return "".join(sign for sign in unicodedata.normalize("NFKD", text) if not unicodedata.combining(sign))


def stem_words(language: str, words: Sequence[str]) -> list[str]:
    """The stems of lower-case words, without accents, which many people leave out."""
    if not words:
        return []
    import Stemmer  # not needed by English banks

    if language == "portuguese":
        words = [_PORTUGUESE_PLURAL.sub("ão", word) for word in words]
    # A stemmer is not thread-safe; creating one takes 4 µs.
    return [without_accents(stem) for stem in Stemmer.Stemmer(language).stemWords(words)]


_PORTUGUESE_PLURAL = late(r"(?:ões|oes|ães|ao)$")
"""Plurals that Snowball does not reduce to the stem of the singular: `reuniões`, `reunião`."""


@cache
def language_words() -> Mapping[str, Mapping[str, str]]:
    """The sections of languages.txt: {`sure` or `doubtful`: {language: its stop words}}, and exceptions under
    `but`."""
    found: dict[str, dict[str, str]] = {}
    for heading, words in sections("languages.txt").items():
        kind, _, language = heading.partition(" ")
        found.setdefault(kind, {})[language] = words
    return found
