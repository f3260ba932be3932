"""Many texts into vectors, portion by portion.

Bulk work runs in a child process: onnxruntime keeps what it took.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Callable, Generator, Sequence
from pathlib import Path

from ua_memory.index.embed import (
    DIMENSIONS,
    Embedded,
    Embedder,
    EmbeddingUnavailable,
    Embeds,
    EmbedsTokens,
)

BULK = 2000
"""From so many texts on a child process does it."""

PORTION = 128
"""Runs handed to the child at a time: what a kill may cost."""


def in_portions(
    embeds: Embeds, runs: Sequence[Sequence[str]], progress: Callable[[int, int], None] | None = None,
    *, whole: bool = True,
) -> Generator[list[Embedded], None, None]:  # fmt: skip
    """What the texts of the runs become, portion by portion, in order; many texts by a child process,
    unless it may end before the `whole` is done: to start one takes as long as a few portions."""
    total, done = sum(map(len, runs)), 0
    child = _Child() if whole and total >= BULK and type(embeds) is Embedder and embeds.bundled else None
    try:
        for start in range(0, len(runs), PORTION):
            portion = runs[start : start + PORTION]
            found = child.runs(portion) if child else _embedded(embeds, portion)
            yield found
            done += len(found)
            if progress:
                progress(done, total)
    finally:
        if child:
            child.close()


def _embedded(embeds: Embeds, runs: Sequence[Sequence[str]]) -> list[Embedded]:
    if isinstance(embeds, EmbedsTokens):
        return embeds.runs(runs)
    return [Embedded(row) for row in embeds.texts([text for run in runs for text in run])]


class _Child:
    """An interpreter of its own that embeds one portion a line and ends with its input."""

    def __init__(self) -> None:
        root = str(Path(__file__).resolve().parents[2])
        code = f"import sys; sys.path.insert(0, {root!r}); from ua_memory.index.bulk import serve; serve()"
        self._process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def runs(self, runs: Sequence[Sequence[str]]) -> list[Embedded]:
        assert self._process.stdin
        try:
            self._process.stdin.write(json.dumps([list(run) for run in runs]).encode() + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise EmbeddingUnavailable("the embedding process ended early") from error
        return [self._one() for run in runs for _ in run]

    def _one(self) -> Embedded:
        import numpy as np

        vector = np.frombuffer(self._read(DIMENSIONS * 2), dtype="<f2").astype(np.float32)
        return Embedded(vector, self._read(int.from_bytes(self._read(4), "little")))

    def _read(self, size: int) -> bytes:
        assert self._process.stdout
        data = self._process.stdout.read(size)
        if len(data) != size:
            raise EmbeddingUnavailable("the embedding process ended early")
        return data

    def close(self) -> None:
        with contextlib.suppress(OSError):
            assert self._process.stdin
            self._process.stdin.close()
        if self._process.stdout:
            self._process.stdout.close()
        self._process.kill()
        self._process.wait()


def serve() -> None:
    """The child: a JSON list of runs a line on standard input; for each text, on standard output, its vector
    in half precision, the number of bytes of its codes in four bytes, and the codes."""
    embeds = Embedder()
    for line in sys.stdin.buffer:
        for one in embeds.runs(json.loads(line)):
            sys.stdout.buffer.write(one.vector.astype("<f2").tobytes())
            sys.stdout.buffer.write(len(one.codes).to_bytes(4, "little") + one.codes)
        sys.stdout.buffer.flush()
