"""A dry run of a consolidation: the diff of one without a model, and the price of one with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ua_memory import tokens
from ua_memory.llm import HALF, THEIRS, Endpoint, Estimate, Message, Model, Usage, priced
from ua_memory.records import Fact
from ua_memory.reflect import considered
from ua_memory.reflect.applying import Change, name_of
from ua_memory.reflect.folding import fold
from ua_memory.reflect.proposals import SCHEMA
from ua_memory.reflect.stretches import Stretch, asked, opening

if TYPE_CHECKING:
    from ua_memory.reflect.consolidate import Consolidating


@dataclass(frozen=True, slots=True)
class Preview:
    """What a run would do: to `waiting` facts; `diff` and `changes` are those of a run without a model, and
    `estimate` what a model would cost, None without one."""

    waiting: int
    taken: int
    changes: tuple[Change, ...]
    at_odds: tuple[tuple[Fact, Fact], ...]
    diff: str
    estimate: Estimate | None


_SAYS = 400
"""Tokens of an answer, about."""


def preview(run: Consolidating, model: Endpoint | Model | None) -> Preview:
    """What a run would do. Nothing is written, and nothing sent."""
    work = run.work()
    folded = fold(work.beliefs, work.taken, name_of, run.clean)
    with run.store.revision("consolidate", door=run.door) as draft:
        draft.trial = True
        applying = run.applying(draft, work)
        applying.apply(folded.operations)
        applying.mend()
    cost, facts = None, work.waiting
    if model:
        done = considered.read(run.store)
        facts = [fact for fact in work.beliefs.facts if done.waits(fact, modelled=True)][: run.limit]
        cost = estimate(run.stretches(work, facts), model, HALF if run.batch_api else 1.0)
    return Preview(
        len(work.waiting), len(facts), tuple(applying.changes), folded.at_odds, draft.diff(context=1), cost
    )


def estimate(each: Sequence[Stretch], model: Endpoint | Model, share: float = 1.0) -> Estimate:
    """What asking about these stretches would take, upwards rather than down, at this share of its price."""
    requests = [usage for stretch in each for usage in _requests(stretch)]
    return priced(model, sum(usage.prompt for usage in requests), requests, share=share)


def _requests(stretch: Stretch) -> Iterator[Usage]:
    frame = tokens.count(stretch.system) + tokens.count(str(SCHEMA)) + _count(opening(stretch))
    for number, portion in enumerate(stretch.portions):
        own = int(_count([asked(stretch, portion, {})]) * THEIRS)
        begins = int(frame * THEIRS)
        cached = {"cache_read": begins, "cache_write": own} if number else {"cache_write": begins + own}
        yield Usage(**cached, output=_SAYS)


def _count(messages: Sequence[Message]) -> int:
    return sum(tokens.count(str(message["content"])) for message in messages)
