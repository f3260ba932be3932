"""What a model is shown: the observations of a stretch of facts, and the facts in batches.

Each request is a beginning that all of a stretch share, and one batch. The beginning, instructions, tool and
observations, is read from the prompt cache by all requests but the first, so a batch is measured by it: at a
seventh of it, six in seven bytes of a request are the one before's, and every fact costs some eight times its
own length, seven of them at a tenth of the price. A conversation that grew from batch to batch would cost
more for the same share.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ua_memory.grounding.terms import terms
from ua_memory.llm import Message, user
from ua_memory.observations import day_of, scope_of
from ua_memory.records import Fact
from ua_memory.reflect.grouping import in_order
from ua_memory.reflect.proposals import PROMPT, SCHEMA, Belief

STRETCH = 600
"""Facts that share a beginning."""
OBSERVATIONS = 80
LETTERS = 12_000
"""Observations of a beginning, and their characters: those that have most words in common with its facts."""
SHARE = 0.15
"""What a batch may be of its beginning."""
MOST, LEAST_LETTERS = 24, 700
"""Facts of a batch, and the characters that it may have in any case."""
LONGEST = 700
"""Characters that are shown of one fact."""
_FRAME = 60
"""Characters of JSON around a message."""
_MARKS = re.compile(r"<(?=\s*/?\s*(?:facts|observations|changed))", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Stretch:
    """A run of facts of one scope, and the observations shown with them, by label."""

    scope: str
    beliefs: Mapping[str, Belief]
    batches: tuple[tuple[Fact, ...], ...]
    system: str


def stretches(facts: Sequence[Fact], beliefs: Sequence[Belief], mission: str = "") -> Iterator[Stretch]:
    """All there is to ask, in order. Scopes never meet in one request."""
    system = f"{PROMPT}\n\nWhat this memory is for: {mission}" if mission.strip() else PROMPT
    for scoped in in_order(facts):
        for start in range(0, len(scoped), STRETCH):
            some = scoped[start : start + STRETCH]
            scope = scope_of(some[0])
            near = _nearest(some, [each for each in beliefs if each.scope == scope])
            labelled = {f"o{n}": belief for n, belief in enumerate(near, 1)}
            frame = len(system) + len(json.dumps(SCHEMA)) + len(_observations(labelled.values())) + 4 * _FRAME
            room = max(LEAST_LETTERS, int(frame * SHARE) - 2 * _FRAME)
            yield Stretch(scope, labelled, tuple(_batches(some, room)), system)


def _nearest(facts: Sequence[Fact], beliefs: Sequence[Belief]) -> list[Belief]:
    """The beliefs that share most with these facts, as they stand in the bank."""
    often = Counter(word for fact in facts for word in terms(fact.text))
    weight = {b.name: sum(often[w] ** 0.5 for w in terms(b.text)) for b in beliefs}
    chosen: set[str] = set()
    letters = 0
    for belief in sorted(beliefs, key=lambda b: weight[b.name], reverse=True)[:OBSERVATIONS]:
        letters += len(belief.text)
        if letters <= LETTERS:
            chosen.add(belief.name)
    return [belief for belief in beliefs if belief.name in chosen]


def _batches(facts: Sequence[Fact], room: int) -> Iterator[tuple[Fact, ...]]:
    batch: list[Fact] = []
    used = 0
    for fact in facts:
        size = len(_shown(fact)) + 8
        if batch and (used + size > room or len(batch) >= MOST):
            yield tuple(batch)
            batch, used = [], 0
        batch.append(fact)
        used += size
    if batch:
        yield tuple(batch)


def opening(stretch: Stretch) -> list[Message]:
    """What all requests of a stretch begin with. It ends with a word of the model's own, so that user and
    assistant take turns, which servers with a strict template insist on."""
    return [user(_observations(stretch.beliefs.values())), {"role": "assistant", "content": "Ready."}]


def asked(facts: Sequence[Fact], changed: Mapping[str, Belief]) -> Message:
    """One batch; `changed` are the beliefs that this run has made or reworded, where they may bear on it."""
    lines = [f"{label} {_flat(belief.text)}" for label, belief in changed.items()]
    first = f"<changed>\n{chr(10).join(lines)}\n</changed>\n" if lines else ""
    rows, day = [], None
    for number, fact in enumerate(facts, 1):
        if day_of(fact) != day:
            day = day_of(fact)
            rows.append(f"{day or 'undated'}:")
        rows.append(f"f{number} {_shown(fact)}")
    return user(f"{first}<facts>\n{chr(10).join(rows)}\n</facts>")


def _observations(beliefs: Iterable[Belief]) -> str:
    rows = [
        f"o{number} {_flat(each.text)} [{each.proofs}{f', last {each.last}' if each.last else ''}]"
        for number, each in enumerate(beliefs, 1)
    ]
    return f"<observations>\n{chr(10).join(rows) or 'none yet'}\n</observations>"


def _shown(fact: Fact) -> str:
    text = _flat(fact.text)
    cut = text if len(text) <= LONGEST else text[:LONGEST].rpartition(" ")[0] + " …"
    return f"{cut} ({fact.said_by})" if fact.said_by in ("web", "tool") else cut


def _flat(text: str) -> str:
    # What closes the block it stands in cannot be forged from within it.
    return _MARKS.sub("< ", " ".join(text.split()))
