"""One question's results into figures, the same as the MTEB's LMEB task takes them.

`R@k` is the share of the evidence that the first k results cover, `all@k` whether it is all of it, `hit@k`
whether it is any. The same within the first 2,000 tokens: a result that covers many lines earns their
evidence, and pays for them there. `ses@5`: is any session with evidence among the first five found?
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

DEPTHS = (5, 10, 20)
BUDGET = 2000
BUDGETS = (50, 100, 200, 300, 500, 750, 1000, 1500, BUDGET, 3000, 4000)
"""Tokens at which the curve of recall against tokens is taken."""


class Scored:
    """A question's results, each turn counted where it is found first."""

    def __init__(
        self, found: Iterable[Sequence[str]], gold: frozenset[str], sessions: Mapping[str, str],
        sizes: Mapping[str, int],
    ) -> None:  # fmt: skip
        self.gold, self.sessions = gold, sessions
        self.fresh: list[set[str]] = []
        self.spent: list[int] = []
        self.order: dict[str, None] = {}
        seen: set[str] = set()
        for covered in found:
            new = dict.fromkeys(turn for turn in covered if turn not in seen)
            seen.update(new)
            self.fresh.append(set(new))
            self.spent.append(sum(sizes[turn] for turn in new) + (self.spent[-1] if self.spent else 0))
            self.order.update(dict.fromkeys(sessions[turn] for turn in covered))

    def figures(self) -> dict[str, float]:
        """Name → figure: shares from 0 to 1, tokens as they are."""
        figures: dict[str, float] = {}
        for name, reach in [*((str(k), k) for k in DEPTHS), (f"{BUDGET}t", self.within(BUDGET))]:
            got = self._got(reach)
            figures[f"R@{name}"] = len(got) / len(self.gold)
            figures[f"all@{name}"] = float(got == self.gold)
            figures[f"hit@{name}"] = float(bool(got))
            figures[f"tokens@{name}"] = ([0, *self.spent])[min(reach, len(self.spent))]
        held, first = {self.sessions[turn] for turn in self.gold}, set(list(self.order)[:5])
        figures["ses@5"] = float(bool(held & first))
        figures["sesall@5"] = float(held <= first)
        gains = [1.0 if one & self.gold else 0.0 for one in self.fresh[:10]]
        ideal = sum(1 / math.log2(i + 2) for i in range(min(len(self.gold), 10)))
        figures["nDCG@10"] = min(1.0, sum(g / math.log2(i + 2) for i, g in enumerate(gains)) / ideal)
        figures["MRR@10"] = next((1 / (i + 1) for i, g in enumerate(gains) if g), 0.0)
        return figures

    def curve(self) -> list[float]:
        """The share of the evidence within each of BUDGETS."""
        return [len(self._got(self.within(budget))) / len(self.gold) for budget in BUDGETS]

    def within(self, budget: int) -> int:
        """How many of the first results fit a budget of tokens."""
        return sum(spent <= budget for spent in self.spent)

    def _got(self, reach: int) -> frozenset[str]:
        return self.gold & frozenset().union(*self.fresh[:reach])
