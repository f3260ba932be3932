"""One large JSON document, read message by message."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ua_memory.transcripts.source import CHUNK, LONGEST_LINE, Report, Source
from ua_memory.transcripts.turns import Record

_decoder = json.JSONDecoder()


class Elements:
    """The messages of one JSON document, `[…]` or `{"messages": […], …}`, without holding the document."""

    def __init__(self, source: Source, report: Report) -> None:
        self._pieces, self._report = source.pieces(report), report
        self._text, self._at, self._over = "", 0, False
        self.top: Record = {}
        """Short values that stand before the messages: model, session id."""

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        try:
            if self._peek() == "{" and not self._enter():
                return
            self._take("[")
            number = 0
            while self._peek() != "]":
                if number:
                    self._take(",")
                number += 1
                yield number, self._value()
        except EOFError:
            self._report.cut = True
            self._report.add(0, "the list of messages ends in the middle")
        except (ValueError, RecursionError) as error:
            self._report.add(0, f"the list of messages cannot be read further: {error}"[:200])

    def _enter(self) -> bool:
        """Past the keys before "messages"; False where there is no such key."""
        self._take("{")
        while self._peek() == '"':
            key = self._value()
            self._take(":")
            if key == "messages" and self._peek() == "[":
                return True
            value = self._value()
            if isinstance(value, str) and len(value) < 1000 and len(self.top) < 100:
                self.top[key] = value
            if self._peek() == ",":
                self._take(",")
        self._report.add(0, "no list of messages in it")
        return False

    def _more(self, at_least: int = CHUNK) -> bool:
        """More text, if there is any: what has been used is let go."""
        got: list[str] = [self._text[self._at :]]
        size = 0
        while size < at_least and not self._over:
            piece = next(self._pieces, None)
            self._over = piece is None
            got.append(piece or "")
            size += len(piece or "")
        self._text, self._at = "".join(got), 0
        return size > 0

    def _peek(self) -> str:
        while True:
            while self._at < len(self._text):
                if self._text[self._at] not in " \t\r\n\ufeff":
                    return self._text[self._at]
                self._at += 1
            if not self._more():
                raise EOFError

    def _take(self, sign: str) -> None:
        if self._peek() != sign:
            raise ValueError(f"expected {sign}")
        self._at += 1

    def _value(self) -> Any:
        """The next value. What is read doubles with each try, so that a large one is not parsed often."""
        self._peek()
        while True:
            try:
                value, end = _decoder.raw_decode(self._text, self._at)
                if end < len(self._text) or self._over:
                    self._at = end
                    return value
                self._more()  # a number may go on in the next piece
            except ValueError:
                have = len(self._text) - self._at
                if have > LONGEST_LINE:
                    raise ValueError(f"a message is longer than {LONGEST_LINE >> 20} MB, or broken") from None
                if not self._more(max(CHUNK, have)):
                    raise EOFError from None
