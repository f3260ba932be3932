"""The index's three figures, each a ratio within this run: `python benchmarks/index.py [ITEMS] [FILES]`.

rebuild from cache   against the raw Chroma and FTS5 inserts of the same rows; no model call
first index          against embedding the same texts plus those raw inserts
nothing changed      the check over FILES files against `os.stat` of each of them
"""

from __future__ import annotations

import os
import random
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from figures import Figure, main, paired, ratio

from ua_memory.config import Config
from ua_memory.index.embedding import Embedder, embed_in_batches
from ua_memory.index.sync import READY, Index
from ua_memory.memory import Memory
from ua_memory.paths import locate
from ua_memory.store.store import Store
from ua_memory.upkeep.init import init

HEADS = ("dep", "gar", "ser", "pri", "lon", "bak", "mor", "tel", "vin", "cas", "ru", "ky")
TAILS = ("loy", "den", "ver", "ce", "don", "up", "ning", "le", "eta", "tle", "by", "iv", "stan", "er")
WORDS = [head + tail for head in HEADS for tail in TAILS]


def a_bank(root: Path, items: int) -> Store:
    """A bank of distinct facts of 8 to 24 words, 20 a day."""
    rng, day = random.Random(1), date(2016, 1, 1)
    (root / "memory").mkdir(parents=True)
    for start in range(0, items, 20):
        facts = (" ".join(rng.choices(WORDS, k=rng.randint(8, 24))) for _ in range(min(20, items - start)))
        text = "## 10:00\n\n" + "".join(f"- {fact} {start}.{n}\n" for n, fact in enumerate(facts))
        (root / "memory" / f"{day}.md").write_text(text)
        day += timedelta(days=1)
    return Store(locate(root), Config(), lambda: datetime.now(UTC))


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


def raw_inserts(folder: Path, texts: list[str], rows: list[Any]) -> float:
    """Seconds that Chroma and FTS5 take for these rows, with Chroma's defaults and nothing of ours around."""
    import chromadb
    from chromadb.config import Settings

    def chroma() -> None:
        client = chromadb.PersistentClient(str(folder), settings=Settings(anonymized_telemetry=False))
        collection = client.create_collection("raw", embedding_function=None)
        for start in range(0, len(rows), 2000):
            part = rows[start : start + 2000]
            collection.add(ids=[f"{start + n:032x}" for n in range(len(part))], embeddings=part)
        client.close()

    def words() -> None:
        db = sqlite3.connect(folder / "raw.db", isolation_level=None)
        db.execute("CREATE VIRTUAL TABLE raw USING fts5 (text, tokenize = 'porter unicode61')")
        db.execute("BEGIN")
        db.executemany("INSERT INTO raw VALUES (?)", ((text,) for text in texts))
        db.execute("COMMIT")
        db.close()

    folder.mkdir()
    return timed(chroma)[0] + timed(words)[0]


def indexing(root: Path, items: int) -> Iterator[Figure]:
    """Rebuild and first index, in turn with the raw inserts they are held against."""
    import chromadb  # noqa: F401  (its import is nobody's index time)

    store, model = a_bank(root / "bank", items), Embedder()
    model.texts(["loaded before anything is timed"])
    with Index(store, embeds=model) as index:
        index.refresh()
        texts = [item.text for item in index.words.items("1 ORDER BY path, line, key")]
        rebuilds, firsts = [], []
        for turn in range(3):
            embedding, rows = timed(lambda: _rows(model, texts))
            first = _first_index(root / f"fresh{turn}", items, model)
            raw = raw_inserts(root / f"raw{turn}", texts, rows)
            again, report = timed(index.rebuild)
            assert report.semantic == READY and report.embedded == 0 and report.added == items, report
            rebuilds.append((again, raw))
            firsts.append((first, embedding + raw))
    yield ratio("rebuild from cache / raw Chroma and FTS inserts", rebuilds, 1.5, f"{items:,} items")
    yield ratio("first index / embedding + raw inserts", firsts, 1.25, f"{items:,} items")


def _rows(model: Embedder, texts: list[str]) -> list[Any]:
    runs = [[text] for text in texts]
    return [one.vector for part in embed_in_batches(model, runs) for one in part]


def _first_index(root: Path, items: int, model: Embedder) -> float:
    with Index(a_bank(root, items), embeds=model) as index:
        seconds, report = timed(index.refresh)
    assert report.semantic == READY and report.embedded == items, report
    return seconds


def nothing_changed(root: Path, files: int) -> Iterator[Figure]:
    """What a search does before it trusts its index, against one `os.stat` of each file."""
    founded = init(root, timezone="UTC")
    for number in range(files):
        file = root / "memory" / str(2000 + number // 365) / f"note-{number}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"- fact {number}\n")
    memory = Memory.open(founded.bank.root, config=replace(founded.config, quiet_seconds=0))
    memory.index.refresh(vectors=False)
    memory.store.adopt()
    time.sleep(0.1)
    memory.refresh(vectors=False)
    paths = [str(file) for file in root.glob("memory/*/*.md")]

    def stats() -> None:
        for path in paths:
            os.stat(path)  # noqa: PTH116  (this is the baseline)

    def check() -> None:
        assert not memory.refresh(vectors=False).changed

    yield paired(
        "nothing changed / os.stat of each file", check, stats, bar=2, runs=9, detail=f"{files:,} files"
    )
    memory.close()


def measure(args: Sequence[str]) -> Iterator[Figure]:
    """[ITEMS [FILES]]: 2,000 and 10,000 unless told."""
    items, files = (int(args[0]) if args else 2000), (int(args[1]) if len(args) > 1 else 10_000)
    with tempfile.TemporaryDirectory() as folder:
        yield from nothing_changed(Path(folder) / "many", files)
        yield from indexing(Path(folder), items)


if __name__ == "__main__":
    main(measure)
