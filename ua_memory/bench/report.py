"""Every question of every conversation put to every ranking, and what comes out on the average."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from ua_memory.bench.dialogue import Dialogue, Question
from ua_memory.bench.rankings import BM25, Grep, Ours, Ranks
from ua_memory.bench.score import BUDGETS, Scored
from ua_memory.errors import Malformed

LIMIT = 50
"""Results asked for each question."""
NAMES = ("ua-memory", "bm25", "grep")


@dataclass(frozen=True, slots=True)
class Row:
    """The mean of each figure over `n` questions: percent with one digit, tokens as whole numbers."""

    name: str
    n: int
    figures: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Ranking:
    """What one ranking reaches. `ms` is the median, over conversations, of the milliseconds a question takes.

    The first row is `all`, without adversarial questions, which have the second; then one a category.
    `curve` has (tokens, R in percent) of the first row.
    """

    name: str
    ms: float
    rows: tuple[Row, ...]
    curve: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class Report:
    """The rankings side by side, and what they were given. `unanswered` questions name no evidence."""

    conversations: int
    turns: int
    questions: int
    unanswered: int
    index_seconds: float
    limit: int
    rankings: tuple[Ranking, ...]
    notes: tuple[str, ...]


def measure(
    files: Sequence[Sequence[Dialogue]], *, limit: int = LIMIT, sample: int | None = None,
    now: Callable[[], datetime] | None = None, progress: Callable[[int, int], None] | None = None,
) -> Report:  # fmt: skip
    """Ask everything. `sample` asks at most so many questions of each file, evenly spread.

    Malformed where no question has evidence. The banks are in a temporary folder, one at a time.
    """
    unanswered = sum(one.unanswered for file in files for one in file)
    dialogues = [one for file in files for one in _sampled(file, sample)]
    if not dialogues:
        raise Malformed("no question in these files names its evidence", mend="see docs/bench.md")
    tally = {name: _Tally() for name in NAMES}
    notes: set[str] = set()
    seconds = 0.0
    for number, one in enumerate(dialogues):
        if progress:
            progress(number, len(dialogues))
        with tempfile.TemporaryDirectory(prefix="ua-memory-bench-", ignore_cleanup_errors=True) as scratch:
            ours = Ours(one, Path(scratch) / "bank", now)
            try:
                seconds += _timed(ours.index)
                rankings: tuple[Ranks, ...] = (ours, BM25(one), Grep(one))
                for name, ranks in zip(NAMES, rankings, strict=True):
                    tally[name].add(one, ranks, limit)
            finally:
                ours.close()
            notes |= ours.notes
    return Report(
        len(dialogues), sum(len(one.turns) for one in dialogues),
        sum(len(one.questions) for one in dialogues), unanswered, round(seconds, 2), limit,
        tuple(tally[name].ranking(name) for name in NAMES), tuple(sorted(notes)),
    )  # fmt: skip


def _sampled(file: Sequence[Dialogue], sample: int | None) -> list[Dialogue]:
    """The conversations that have questions, with those of the sample."""
    pairs = [(number, question) for number, one in enumerate(file) for question in one.questions]
    if sample and len(pairs) > sample:
        step = len(pairs) / sample
        pairs = [pairs[int(i * step)] for i in range(sample)]
    kept: dict[int, list[Question]] = defaultdict(list)
    for number, question in pairs:
        kept[number].append(question)
    return [replace(file[number], questions=tuple(asked)) for number, asked in kept.items()]


def _timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


class _Tally:
    """The figures of one ranking, question by question."""

    def __init__(self) -> None:
        self.totals: dict[str, list[Mapping[str, float]]] = defaultdict(list)
        self.categories: dict[str, list[Mapping[str, float]]] = defaultdict(list)
        self.curves: dict[str, list[list[float]]] = defaultdict(list)
        self.ms: list[float] = []

    def add(self, dialogue: Dialogue, ranks: Ranks, limit: int) -> None:
        """Ask a conversation's questions at once. The first is asked before the clock starts, to be warm."""
        answers: list[list[tuple[str, ...]]] = []
        ranks.ask(dialogue.questions[:1], limit)
        seconds = _timed(lambda: answers.extend(ranks.ask(dialogue.questions, limit)))
        self.ms.append(1000 * seconds / len(dialogue.questions))
        sessions, sizes = dialogue.session_of, {turn.id: turn.tokens for turn in dialogue.turns}
        for question, found in zip(dialogue.questions, answers, strict=True):
            scored = Scored(found, question.evidence, sessions, sizes)
            total = "adversarial" if question.adversarial else "all"
            figures = scored.figures()
            self.totals[total].append(figures)
            if not question.adversarial:
                self.categories[question.category].append(figures)
            self.curves[total].append(scored.curve())

    def ranking(self, name: str) -> Ranking:
        totals = [(row, self.totals[row]) for row in ("all", "adversarial") if row in self.totals]
        means = [statistics.fmean(values) for values in zip(*self.curves[totals[0][0]], strict=True)]
        return Ranking(
            name,
            round(statistics.median(self.ms), 2),
            tuple(_row(*each) for each in [*totals, *sorted(self.categories.items())]),
            tuple((budget, round(100 * mean, 1)) for budget, mean in zip(BUDGETS, means, strict=True)),
        )


def _row(name: str, each: Sequence[Mapping[str, float]]) -> Row:
    means = {key: statistics.fmean(one[key] for one in each) for key in each[0]}
    rounded = {
        key: round(mean) if key.startswith("tokens") else round(100 * mean, 1) for key, mean in means.items()
    }
    return Row(name, len(each), rounded)
