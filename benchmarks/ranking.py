"""What each part of the ranking gains: `benchmarks/ranking.py CONVERSATION.json…`, one row a part left out.

A conversation is sessions of turns with ids, and questions that name the turns which hold the answer. They
are the user's own copy; none are shipped. Not part of `make bench`.
"""

from __future__ import annotations

import json
import shutil
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from ua_memory.config import Config
from ua_memory.index import items as talk
from ua_memory.memory import Memory
from ua_memory.recall import arms as asked
from ua_memory.recall import arms as entity
from ua_memory.recall import arms as keyword
from ua_memory.recall import arms as semantic
from ua_memory.recall import arms as temporal
from ua_memory.recall import fusion, rerank, search
from ua_memory.recall import rerank as feedback
from ua_memory.recall.arms import Arms, Ranked


def nothing(*_: Any) -> list[Any]:
    """What an arm finds that is left out."""
    return []


def reciprocal(_index: Any, _asked: Any, _said: Any, arms: Arms, _where: Any) -> list[Ranked]:
    """All that the arms found by the sum of 1 / (60 + rank), a first place in every arm being 1 (Cormack et
    al. 2009). It needs no scores, and loses what one arm alone is sure of."""
    items = {one.item.key: one.item for found in arms.values() for one in found}
    sums = dict.fromkeys(items, 0.0)
    for found in arms.values():
        for one in found:
            sums[one.item.key] += 1 / (60 + one.rank)
    most = sum(1 / 61 for found in arms.values() if found) or 1.0
    fused = [Ranked(item, round(sums[key] / most, 6), {}) for key, item in items.items()]
    return sorted(fused, key=lambda one: (-one.score, one.item.path, one.item.line, one.item.key))


PARTS: dict[str, list[tuple[Any, str, Any]]] = {
    "all of it": [],
    "no keyword arm": [(keyword, "find_by_words", nothing)],
    "no semantic arm": [(semantic, "find_by_meaning", nothing)],
    "no entity arm": [(entity, "find_by_names", nothing)],
    "no temporal arm": [(temporal, "find_by_days", nothing)],
    "no step from name to name": [(entity, "BOOSTED", 0)],
    "time words not read": [(search, "query_dates", lambda *_: (None, None, False))],
    "turns embedded one by one": [(talk, "RUN_LENGTH", 0)],
    "nothing from beside": [
        (rerank, name, 0.0) for name in ("BEFORE", "QUESTION_BEFORE", "AFTER", "EARLIER", "NEIGHBOUR")
    ],
    "questions lend no more": [(rerank, "QUESTION_BEFORE", 0.8)],
    "nothing from two before": [(rerank, "EARLIER", 0.0)],
    "what is unlike the best loses nothing": [(feedback, "FEEDBACK_PENALTY", 0.0)],
    "who is named, no lift": [(rerank, "BOOST", 0.0)],
    "small words weigh in full": [(asked, "STOP_WORD_WEIGHT", 1.0), (asked, "PRIOR_ITEMS", 0)],
    "all words weigh the same": [(asked, "inverse_frequency", lambda known, total: 1.0)],
    "scores added up": [(fusion, "_rank_by_tokens", lambda *_: None)],
    "reciprocal ranks": [(fusion, "_rank_by_tokens", reciprocal)],
}


def a_bank(conversation: dict[str, Any], root: Path) -> dict[tuple[str, int], str]:
    """A log a day, an item a turn; {(path, line): turn}."""
    days: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for session in conversation["sessions"]:
        day, hour = session["when"][:10], session["when"][11:16]
        days[day] += [(f"## {hour}", ""), ("", "")]
        days[day] += [
            (f"- **{t['speaker']}**: {' '.join(t['text'].split())}", t["id"]) for t in session["turns"]
        ]
        days[day].append(("", ""))
    (root / "memory").mkdir(parents=True)
    (root / "MEMORY.md").write_text("# Memory\n")
    for day, lines in days.items():
        text = "\n".join([f"# {day}", "", *(line for line, _ in lines)])
        (root / "memory" / f"{day}.md").write_text(text + "\n")
    return {
        (f"memory/{day}.md", number): turn
        for day, lines in days.items()
        for number, (_, turn) in enumerate(lines, 3)
        if turn
    }


@contextmanager
def changed(changes: list[tuple[Any, str, Any]]) -> Iterator[dict[str, Any]]:
    """With some of the ranking's constants set otherwise; the settings to rank with."""
    kept = [(owner, name, getattr(owner, name)) for owner, name, _ in changes if owner is not Config]
    for owner, name, value in changes:
        if owner is not Config:
            setattr(owner, name, value)
    try:
        yield {name: value for owner, name, value in changes if owner is Config}
    finally:
        for owner, name, value in kept:
            setattr(owner, name, value)


class Bank:
    """A conversation as a bank of its own, and its questions."""

    def __init__(self, file: Path, folder: Path) -> None:
        conversation = json.loads(file.read_text())
        self.questions = conversation["questions"]
        self.where = a_bank(conversation, folder)
        self.memory = Memory.open(folder, config=replace(Config(), quiet_seconds=1e9))
        self.memory.refresh()  # a search would stop to embed after `search.seconds`

    def rows(self, settings: dict[str, Any]) -> tuple[list[tuple[int, list[float]]], float]:
        """[(category, [R@5, R@10, R@50])] of each question, and the median processor ms of twenty."""
        self.memory.store.config = replace(Config(), quiet_seconds=1e9, **settings)
        queries = [" ".join(question["q"].split()) for question in self.questions]
        rows, took = [], []
        answers = self.memory.search_many(queries, limit=50)
        for question, answer in zip(self.questions, answers, strict=True):
            turns = [self.where.get((hit.item.path, hit.item.line)) for hit in answer.hits]
            gold = set(question["evidence"])
            rows.append((question["category"], [len(gold & set(turns[:k])) / len(gold) for k in (5, 10, 50)]))
        for query in queries[:20]:
            began = time.process_time()
            self.memory.search(query)
            took.append(1000 * (time.process_time() - began))
        return rows, statistics.median(took)


def main(files: list[Path]) -> None:
    """A row for each part: R@5, R@10, R@50, adversarial R@10, R@5 and R@10 of each file, processor ms."""
    banks: dict[bool, list[Bank]] = {}
    scratch = Path(tempfile.mkdtemp())
    for part, changes in PARTS.items():
        with changed(changes) as settings:
            fresh = any(
                owner is talk for owner, _, _ in changes
            )  # what is embedded otherwise is another bank
            if fresh not in banks:
                folders = [scratch / f"{number}-{fresh}" for number in range(len(files))]
                banks[fresh] = [Bank(*pair) for pair in zip(files, folders, strict=True)]
            found = [bank.rows(settings) for bank in banks[fresh]]

        def mean(rows: list[tuple[int, list[float]]], k: int, adversarial: bool = False) -> float:
            return 100 * statistics.fmean(r[k] for category, r in rows if (category == 5) is adversarial)

        every = [row for rows, _ in found for row in rows]
        each = " | ".join(f"{mean(rows, 0):.1f} / {mean(rows, 1):.1f}" for rows, _ in found)
        cells = [f"{mean(every, k):.1f}" for k in range(3)] + [f"{mean(every, 1, True):.1f}", each]
        milliseconds = statistics.median(ms for _, ms in found)
        print("| " + " | ".join([part, *cells, f"{milliseconds:.0f}"]) + " |", flush=True)
    for bank in (bank for some in banks.values() for bank in some):
        bank.memory.close()
    shutil.rmtree(scratch)


if __name__ == "__main__":
    main([Path(name) for name in sys.argv[1:]])
