"""The words that are to be gone, as they may stand anywhere: wrapped, escaped, in JSON, in another case."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from ua_memory import redaction

SHORT_WORDS, SHORT = 3, 16
"""A text of fewer words and characters than these is sought as a whole line or value: as part of another
sentence it would be that sentence's own."""
MARK = "[forgotten]"
"""What stands in the place of a text where the rest of what it stands in has to stay."""

_GAP = rb"(?:\s|\\[nrt]|\\u000[9ad]|>|\\(?=\s))+"
_OPENS = rb"(?:^|(?<=[\x00-\x1f\"'\x80-\xff])|(?<=[-*+.)] ))"
_CLOSES = rb"(?=$|[\x00-\x1f\"'\x80-\xff]|\\n| [\^#])"
_LETTERS = b"0-9A-Za-z_"
_STOPS = ".!?… "


@dataclass(frozen=True)
class Needle:
    """One text that is sought. `secret` tells that it is a secret by itself, wherever it stands."""

    text: str
    secret: bool = False

    @property
    def short(self) -> bool:
        return not self.secret and len(self.text) < SHORT and len(self.text.split()) < SHORT_WORDS

    @cached_property
    def pattern(self) -> re.Pattern[bytes]:
        """Matches it in bytes of any kind of file."""
        # The first words of a very long text are as good as all of them, and quicker.
        text = unicodedata.normalize("NFC", self.text).strip()
        # Who quotes a sentence leaves out its full stop.
        bare = text if self.secret or self.short else text.rstrip(_STOPS) or text
        words = _GAP.join(_word(word) for word in bare.split()[:400])
        if self.secret:
            return re.compile(words)
        if self.short:
            return re.compile(_OPENS + words + _CLOSES, re.IGNORECASE | re.MULTILINE)
        words += b"(?:" + _word(text[len(bare) :]) + b")?"
        first, last = bare[0], bare[-1]
        before = b"(?<![" + _LETTERS + b"])" if first.isalnum() else b""
        after = b"(?![" + _LETTERS + b"])" if last.isalnum() else b""
        # A JSON escape before the first word (`\n`) is no letter of it.
        before = b"(?:" + before + rb"|(?<=\\[nrt]))" if before else b""
        return re.compile(before + words + after, re.IGNORECASE)

    def within(self, text: str | bytes) -> bool:
        """Whether it stands in a text."""
        data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
        return self.pattern.search(data) is not None

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Where it stands in a text, in characters."""
        data = text.encode("utf-8", "surrogateescape")
        for match in self.pattern.finditer(data):
            first = len(data[: match.start()].decode("utf-8", "surrogateescape"))
            yield first, first + len(match[0].decode("utf-8", "surrogateescape"))

    def taken_out(self, text: str) -> str:
        """A text with a mark in its place."""
        data = text.encode("utf-8", "surrogatepass")
        new = self.pattern.sub(MARK.encode(), data)
        return new.decode("utf-8", "surrogatepass") if new != data else text


def needles(texts: Iterable[str], patterns: Mapping[str, str]) -> tuple[Needle, ...]:
    """The texts as needles, each once, and the secrets that stand in them."""
    found: dict[Needle, None] = {}
    for text in texts:
        if text.strip() and any(map(str.isalnum, text)):
            found[Needle(text)] = None
            for each in redaction.find(text, patterns):
                if value := text[each.start : each.end].strip():
                    found[Needle(value, secret=True)] = None
    return tuple(found)


def unsaid(
    texts: Iterable[str], sure: Collection[Needle], files: Collection[bytes], patterns: Mapping[str, str]
) -> tuple[Needle, ...]:
    """What went along with what is `sure` to be gone, as needles: of these texts those that none of the files
    as they are to be says."""
    found = (each for each in needles(texts, patterns) if not each.short and each not in sure)
    return tuple(each for each in found if not any(map(each.within, files)))


def _word(word: str) -> bytes:
    return b"".join(map(_letter, word))


def _letter(char: str) -> bytes:
    """A character as files, JSON and our own escapes have it."""
    if char.isascii():
        raw = re.escape(char.encode())
        # In front of punctuation our files, and JSON, may have a backslash.
        return raw if char.isalnum() else rb"\\{0,3}" + raw
    # `re` knows the two cases of ASCII alone in bytes; a Mac decomposes an accent.
    cases = dict.fromkeys((char, char.lower(), char.upper()))
    forms = dict.fromkeys(unicodedata.normalize(form, each) for each in cases for form in ("NFC", "NFD"))
    return b"(?:" + b"|".join(way for each in forms for way in _ways(each)) + b")"


def _ways(text: str) -> Iterator[bytes]:
    """How UTF-8 and JSON write a few characters."""
    yield re.escape(text.encode("utf-8", "surrogatepass"))
    units = text.encode("utf-16-be", "surrogatepass")
    yield b"".join(rb"\\u" + units[n : n + 2].hex().encode() for n in range(0, len(units), 2))
