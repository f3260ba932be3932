"""What a model is shown: the observations and the facts of a stretch, and which of these it decides on now.

All requests of a stretch begin alike: instructions, tool, observations, facts. All but the first read that
from the prompt cache, and end with no more than the numbers of one portion and what the run has changed
meanwhile. So a model sees what goes together in all of a stretch, and five sixths of what is sent stood in
the request before. How much is shown at once, and in how many turns, is the cheapest `plan` that does so.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ua_memory.fence import defanged
from ua_memory.grounding.terms import terms
from ua_memory.llm import Message, user
from ua_memory.observations import day_of, scope_of
from ua_memory.records import Fact
from ua_memory.reflect.grouping import in_order
from ua_memory.reflect.proposals import PROMPT, SCHEMA, Belief

ALIKE = 600
"""Facts that the same observations are shown with."""
OBSERVATIONS = 80
LETTERS, FEW = 9_000, 3_000
"""Observations that are shown, and their characters: those that have most words in common with the facts, and
fewer where the facts are few."""
SHARED = 0.83
"""The part of all that is sent that should stand in the request before."""
LONG, TURNS = 26_000, 9
"""Characters of a beginning, and the portions that share it, at most."""
LEAST, MOST, FACTS = 1_000, 4_000, 40
"""Characters of a portion, and facts of one, about."""
LONGEST = 700
"""Characters that are shown of one fact."""
_FRAME = 60
"""Characters of JSON around a message; there are five."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Facts of one scope that are shown together, in the portions in which they are decided on, and the
    observations shown with them, by label."""

    scope: str
    beliefs: Mapping[str, Belief]
    portions: tuple[tuple[Fact, ...], ...]
    system: str

    @property
    def facts(self) -> list[Fact]:
        """All that is shown, in the order of their labels."""
        return [fact for portion in self.portions for fact in portion]

    def alone(self, facts: Sequence[Fact]) -> Stretch:
        """The same with none but these."""
        return replace(self, portions=(tuple(facts),))


def stretches(facts: Sequence[Fact], beliefs: Sequence[Belief], mission: str = "") -> Iterator[Stretch]:
    """All there is to ask, in order. Scopes never meet in one request."""
    system = f"{PROMPT}\n\nWhat this memory is for: {mission}" if mission.strip() else PROMPT
    for scoped in in_order(facts):
        for start in range(0, len(scoped), ALIKE):
            some = scoped[start : start + ALIKE]
            scope = scope_of(some[0])
            near = _nearest(some, [each for each in beliefs if each.scope == scope])
            labelled = {f"o{n}": belief for n, belief in enumerate(near, 1)}
            frame = len(system) + len(json.dumps(SCHEMA)) + len(_observations(near)) + _FRAME
            count, turns = plan(frame, sum(map(_size, some)), len(some))
            for shown in _parts(some, count):
                yield Stretch(scope, labelled, tuple(_parts(shown, turns)), system)


def _nearest(facts: Sequence[Fact], beliefs: Sequence[Belief]) -> list[Belief]:
    """The beliefs that share most with these facts, as they stand in the bank."""
    often = Counter(word for fact in facts for word in terms(fact.text))
    weight = {b.name: sum(often[w] ** 0.5 for w in terms(b.text)) for b in beliefs}
    room = min(LETTERS, max(FEW, 3 * sum(map(_size, facts))))
    chosen: set[str] = set()
    letters = 0
    for belief in sorted(beliefs, key=lambda b: weight[b.name], reverse=True)[:OBSERVATIONS]:
        if letters + len(belief.text) <= room:  # one that is too long hides none behind it
            letters += len(belief.text)
            chosen.add(belief.name)
    return [belief for belief in beliefs if belief.name in chosen]


def plan(frame: int, letters: int, facts: int) -> tuple[int, int]:
    """Into how many stretches to put so many facts of so many characters, and each into how many portions,
    where instructions and observations have `frame` characters: the cheapest plan that shares enough, else
    the one that shares most."""
    best, found = (False, 0.0), (1, 1)
    least = max(1, facts // FACTS)  # so many portions at least, however short the facts
    for count in range(1, max(1, letters // LEAST, least) + 1):
        begins = frame + letters // count
        for turns in range(1, TURNS + 1):
            portion = letters // (count * turns)
            few = facts <= FACTS * count * turns if portion >= LEAST else count * turns == least
            if count * turns > 1 and not (few and portion <= MOST and (begins <= LONG or turns == 1)):
                continue
            sent = count * turns * (begins + 5 * _FRAME)
            shared = (count * (turns - 1) * begins + (count - 1) * frame) / sent
            rank = (shared >= SHARED, -sent if shared >= SHARED else shared)
            if rank > best:
                best, found = rank, (count, turns)
    return found


def _parts(facts: Sequence[Fact], number: int) -> Iterator[tuple[Fact, ...]]:
    """The facts in so many parts of about the same length, none of them empty, each in the order of days."""
    parts: list[list[Fact]] = [[] for _ in range(number)]
    whole, before = sum(map(_size, facts)), 0
    for fact in facts:
        parts[number * (2 * before + _size(fact)) // (2 * whole)].append(fact)
        before += _size(fact)
    yield from (tuple(sorted(part, key=_told)) for part in parts if part)


def _told(fact: Fact) -> tuple[str, str, int]:
    return day_of(fact), fact.place.path, fact.place.line


def _size(fact: Fact) -> int:
    return len(_shown(fact)) + 8


def opening(stretch: Stretch) -> list[Message]:
    """What all requests of a stretch begin with. Each part ends with a word of the model's own, so that user
    and assistant take turns, which servers with a strict template insist on."""
    ready: Message = {"role": "assistant", "content": "Ready."}
    shown = (_observations(stretch.beliefs.values()), _facts(stretch.facts))
    return [message for text in shown for message in (user(text), ready)]


def asked(stretch: Stretch, portion: Sequence[Fact], changed: Mapping[str, Belief]) -> Message:
    """Which facts to decide on; `changed` are the beliefs that this run has made or reworded, where they may
    bear on them."""
    lines = [f"{label} {_flat(belief.text)}" for label, belief in changed.items()]
    known = f"<changed>\n{chr(10).join(lines)}\n</changed>\n" if lines else ""
    # Not by `index`: lines without an id that say the same on two days are equal.
    first = next(n for n, fact in enumerate(stretch.facts, 1) if fact is portion[0])
    last = first + len(portion) - 1
    return user(f"{known}Decide on f{first}" + (f" to f{last}." if last > first else "."))


def _facts(facts: Iterable[Fact]) -> str:
    rows, day = [], None
    for number, fact in enumerate(facts, 1):
        if day_of(fact) != day:
            day = day_of(fact)
            rows.append(f"{day or 'undated'}:")
        rows.append(f"f{number} {_shown(fact)}")
    return f"<facts>\n{chr(10).join(rows)}\n</facts>"


def _observations(beliefs: Iterable[Belief]) -> str:
    rows = [
        f"o{number} {_flat(each.text)} [{each.proofs}{f', last {each.last}' if each.last else ''}]"
        for number, each in enumerate(beliefs, 1)
    ]
    return f"<observations>\n{chr(10).join(rows) or 'none yet'}\n</observations>"


def _shown(fact: Fact) -> str:
    text = _flat(fact.text)
    return text if len(text) <= LONGEST else text[:LONGEST].rpartition(" ")[0] + " …"


def _flat(text: str) -> str:
    # What closes the block it stands in cannot be forged from within it.
    return defanged(" ".join(text.split()), "facts", "observations", "changed")
