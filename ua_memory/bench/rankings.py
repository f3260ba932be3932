"""Three ways to put a conversation's turns in order for a question: ours, BM25, and what grep would find.

The two others are here to be measured against, so they share nothing with the index: no stemming, no
neighbours, no vectors.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Protocol

from ua_memory.bench.dialogue import Dialogue, Question, write_bank
from ua_memory.config import Config
from ua_memory.memory import Memory

Found = list[tuple[str, ...]]
"""The ids of the turns that each result covers, the best result first."""

_WORD = re.compile(r"\w+")


class Ranks(Protocol):
    """What is measured: all questions of a conversation at once, at most `limit` results for each."""

    def ask(self, questions: Sequence[Question], limit: int) -> list[Found]: ...


def words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


class Grep:
    """Lines by how many of the question's words stand in them, in whole or as a part of another word."""

    def __init__(self, dialogue: Dialogue) -> None:
        self.lines = [(turn.id, turn.line.casefold()) for turn in dialogue.turns]

    def ask(self, questions: Sequence[Question], limit: int) -> list[Found]:
        return [self._one(set(words(one.text)), limit) for one in questions]

    def _one(self, wanted: set[str], limit: int) -> Found:
        scored = [(sum(word in line for word in wanted), turn) for turn, line in self.lines]
        best = sorted((one for one in scored if one[0]), key=lambda one: -one[0])  # stable: else by place
        return [(turn,) for _, turn in best[:limit]]


class BM25:
    """Robertson's BM25 with the usual constants and an inverse document frequency that is never negative.

    After Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009).
    """

    def __init__(self, dialogue: Dialogue, k1: float = 1.2, b: float = 0.75) -> None:
        self.ids = [turn.id for turn in dialogue.turns]
        texts = [words(turn.line) for turn in dialogue.turns]
        mean = sum(map(len, texts)) / len(texts) if texts else 1
        self.postings: dict[str, list[tuple[int, float]]] = defaultdict(list)
        for number, text in enumerate(texts):
            norm = k1 * (1 - b + b * len(text) / mean)
            for word, times in Counter(text).items():
                self.postings[word].append((number, times * (k1 + 1) / (times + norm)))

    def ask(self, questions: Sequence[Question], limit: int) -> list[Found]:
        return [self._one(set(words(one.text)), limit) for one in questions]

    def _one(self, wanted: set[str], limit: int) -> Found:
        scores: dict[int, float] = defaultdict(float)
        for word in sorted(wanted):
            found = self.postings.get(word, [])
            rarity = math.log(1 + (len(self.ids) - len(found) + 0.5) / (len(found) + 0.5))
            for number, share in found:
                scores[number] += rarity * share
        best = sorted(scores, key=lambda number: (-scores[number], number))
        return [(self.ids[number],) for number in best[:limit]]


class Ours:
    """A bank in a folder, asked as anybody asks one, with default settings whatever the environment says.

    Questions that were asked at different times are put at those times; the others at `now`, the clock.
    """

    def __init__(self, dialogue: Dialogue, root: Path, now: Callable[[], datetime] | None = None) -> None:
        self.where: Mapping[tuple[str, int], str] = write_bank(dialogue, root)
        self.at: datetime | None = None
        self.clock = now or Config().clock()
        self.memory = Memory.open(root, now=self._now, door="bench")
        self.notes: set[str] = set()

    def _now(self) -> datetime:
        return self.at.astimezone() if self.at else self.clock()

    def index(self) -> None:
        """Build the index, as the first search would."""
        self.notes.update(self.memory.refresh().notes)

    def close(self) -> None:
        self.memory.close()

    def ask(self, questions: Sequence[Question], limit: int) -> list[Found]:
        times: dict[datetime | None, list[int]] = defaultdict(list)
        for number, one in enumerate(questions):
            times[one.now].append(number)
        found: list[Found] = [[] for _ in questions]
        for self.at, numbers in times.items():
            texts = [" ".join(questions[number].text.split()) for number in numbers]
            for number, answer in zip(numbers, self.memory.search_many(texts, limit=limit), strict=True):
                self.notes.update(answer.notes)
                places = (hit.item.place for hit in answer.hits)
                found[number] = [self._covered(at.path, at.line, at.end) for at in places]
        return found

    def _covered(self, path: str, first: int, last: int) -> tuple[str, ...]:
        at = ((path, line) for line in range(first, last + 1))
        return tuple(self.where[place] for place in at if place in self.where)
