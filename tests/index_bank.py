"""A bank in a folder, with an embedder that needs no model: what the tests of index and recall share."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from ua_memory.config import Config
from ua_memory.index.embedding import EmbeddingUnavailable, normalized
from ua_memory.index.sync import Index
from ua_memory.index.terms import words
from ua_memory.index.vectors import InMemoryVectors, VectorMark, VectorStore
from ua_memory.paths import locate
from ua_memory.store.store import Store


class Counting:
    """A bag of hashed words as a vector of 64 numbers; counts the texts it was given."""

    model = "counting-1"

    def __init__(self) -> None:
        self.seen = 0

    def texts(self, texts: Sequence[str]) -> Any:
        self.seen += len(texts)
        rows = np.zeros((len(texts), 64), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            row[0] = 0.1
            for word in words(text):
                digest = hashlib.sha256(word.encode()).digest()
                row[1 + digest[0] % 63] += 1 if digest[1] & 1 else -1
        return normalized(rows)


class Missing:
    """An embedder that cannot be had."""

    model = "missing"

    def texts(self, texts: Sequence[str]) -> Any:
        raise EmbeddingUnavailable("model.onnx is not the expected file (its sha256 differs)")


class Rows(VectorStore):
    """Vectors in memory: to open and write Chroma's files takes longer than all else of most tests. What it
    does, `test_index_sync`, `test_recall` and `test_vectors` test."""

    mark = VectorMark()

    def __init__(self) -> None:
        self._held: dict[str, Any] = {}

    def set_mark(self, mark: VectorMark) -> None:
        self.mark = mark

    def close(self) -> None:
        """They last as long as the index."""

    def wipe(self) -> None:
        self._held.clear()

    def _call(self, name: str, **values: Any) -> Any:
        raise AssertionError(f"{name} is a method of Chroma's")

    def count(self) -> int:
        return len(self._held)

    def names(self) -> set[str]:
        return {*self._held}

    def upsert(self, vectors: Mapping[str, Any]) -> None:
        self._held |= {name: row for name, row in vectors.items() if row.any()}

    def delete(self, names: Sequence[str]) -> None:
        for name in names:
            self._held.pop(name, None)

    def query(self, vectors: Sequence[Any], limit: int) -> list[list[tuple[str, float]]]:
        held = InMemoryVectors(self._held)
        return [held.query(vector, limit) for vector in vectors]


class QuickIndex(Index):
    """The index of a bank with its vectors in memory."""

    def __init__(self, store: Store, **more: Any) -> None:
        super().__init__(store, **more)
        self._in_memory = Rows()

    def _in_folder(self, generation: Path) -> VectorStore:
        return self._in_memory


def a_bank(root: Path, files: dict[str, str] | None = None) -> Store:
    """A bank's store with these files, older than the racy window."""
    (root / "memory").mkdir(parents=True, exist_ok=True)
    store = Store(locate(root), Config(), lambda: datetime(2026, 11, 21, 12, tzinfo=UTC))
    for path, text in (files or {}).items():
        write(root / path, text)
    return store


def write(file: Path, text: str | bytes, *, age: float = 10.0) -> None:
    """Write a file as if it had been done `age` seconds ago (its change time stays now)."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    then = time.time() - age
    os.utime(file, (then, then))


def an_index(store: Store, embeds: Any = None) -> Index:
    return QuickIndex(store, embeds=embeds or Counting())


def chroma_index(store: Store, embeds: Any = None) -> Index:
    return Index(store, embeds=embeds or Counting())


def log(*facts: str) -> str:
    """A daily log with one item a fact."""
    return "## 10:00\n\n" + "".join(f"- {fact}\n" for fact in facts)
