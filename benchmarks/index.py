"""The index's three figures, each a ratio within this run: `python benchmarks/index.py [ITEMS] [FILES]`.

rebuild from cache   against the raw Chroma and FTS5 inserts of the same rows; no model call
first index          against embedding the same texts plus those raw inserts
nothing changed      the check over FILES files against `os.stat` of each of them
"""

from __future__ import annotations

import os
import platform
import random
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from ua_memory.config import Config
from ua_memory.index.embed import Embedder, in_portions
from ua_memory.index.sync import READY, Index
from ua_memory.paths import locate
from ua_memory.store import Store

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


def show(what: str, seconds: float, against: str, floor: float, bar: float) -> None:
    ratio = f"{seconds / floor:.2f} x, bar {bar}"
    print(f"{what:20} {seconds * 1e3:9.1f} ms   {against:24} {floor * 1e3:9.1f} ms   {ratio}")


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


def indexing(root: Path, items: int) -> None:
    import chromadb  # noqa: F401  (its import is nobody's index time)

    store, model = a_bank(root / "bank", items), Embedder()
    model.texts(["loaded before anything is timed"])
    with Index(store, embeds=model) as index:
        first, report = timed(index.refresh)
        assert report.semantic == READY and report.embedded == items, report
        texts = [item.search_text for item in index.words.all_items()]
        embedding, rows = timed(lambda: [row for _, part in in_portions(model, texts) for row in part])
        raw = min(raw_inserts(root / f"raw{n}", texts, rows) for n in range(3))
        again = []
        for _ in range(3):
            seconds, report = timed(index.rebuild)
            assert report.semantic == READY and report.embedded == 0 and report.added == items, report
            again.append(seconds)
    show("rebuild from cache", min(again), "raw inserts", raw, 1.5)
    show("first index", first, "embedding + raw inserts", embedding + raw, 1.25)


def nothing_changed(root: Path, files: int) -> None:
    store = Store(locate(root), Config(), lambda: datetime.now(UTC))
    for number in range(files):
        file = root / "memory" / str(2000 + number // 365) / f"note-{number}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"- fact {number}\n")
    with Index(store) as index:
        index.refresh(vectors=False)
        time.sleep(0.1)
        index.refresh(vectors=False)
        paths = [str(file) for file in root.glob("memory/*/*.md")]

        def stats() -> None:
            for path in paths:
                os.stat(path)  # noqa: PTH116  (this is the baseline)

        check, floor = [], []
        for _ in range(7):
            seconds, same = timed(index.unchanged)
            assert same
            check.append(seconds)
            floor.append(timed(stats)[0])
    show("nothing changed", statistics.median(check), "os.stat of each", statistics.median(floor), 2)


def main() -> None:
    items = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    files = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    print(f"{items} items; {files} files for the check that nothing changed")
    with tempfile.TemporaryDirectory() as folder:
        nothing_changed(Path(folder) / "many", files)
        indexing(Path(folder), items)


if __name__ == "__main__":
    main()
