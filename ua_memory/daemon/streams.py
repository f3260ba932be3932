"""A caller's streams as a command meets them: output is recorded in its order, input is asked for."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Callable

from ua_memory.daemon.messages import INPUT, Refused

LIVE = 1.0
"""Seconds after which output is sent as it comes: a bar of progress moves."""

Chunk = tuple[int, str]
"""Descriptor (1 or 2) and text."""


class Output:
    """What a command wrote, in its order. `send` takes what is to be shown before the end."""

    def __init__(self, send: Callable[[list[Chunk]], None]) -> None:
        self._send, self._began = send, time.monotonic()
        self._lock = threading.Lock()  # the bar of progress is drawn by a thread of its own
        self._chunks: list[Chunk] = []

    def add(self, number: int, text: str) -> None:
        with self._lock:
            if self._chunks and self._chunks[-1][0] == number:
                text = self._chunks.pop()[1] + text
            self._chunks.append((number, text))

    def live(self) -> None:
        """Send what there is, if the command takes long."""
        if time.monotonic() - self._began > LIVE and (chunks := self.taken()):
            self._send(chunks)

    def taken(self) -> list[Chunk]:
        """What was not sent yet."""
        with self._lock:
            chunks, self._chunks = self._chunks, []
        return chunks


class Written(io.TextIOBase):
    """Standard output or error of a caller, who encodes what comes."""

    def __init__(self, output: Output, number: int, encoding: str) -> None:
        self._output, self._number, self._encoding = output, number, encoding

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if text:
            self._output.add(self._number, text)
            if self._number == 2:
                self._output.live()
        return len(text)

    def flush(self) -> None:
        self._output.live()


class Unasked(io.RawIOBase):
    """Standard input that was not sent along: whoever reads from it has the caller asked for it.

    It is not fetched while the command waits: a caller who types would block all others.
    """

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        raise Refused(INPUT, "the command reads standard input")


def given(data: bytes | None) -> io.BufferedIOBase:
    """Standard input with what the caller sent."""
    return io.BufferedReader(Unasked()) if data is None else io.BytesIO(data)
