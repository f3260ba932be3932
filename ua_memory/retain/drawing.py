"""One chunk of a text → the facts in it, by a model; what it makes up does not get in.

One request a chunk: a single tool takes the whole list, and taking it ends the turn. The chunks of a text are
one growing conversation, so that a request begins with all of the one before, which the server has cached,
and the model sees what it kept already; after a bound a new one is begun. What the text says in the
imperative is data like the rest of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from ua_memory.entities import Settled
from ua_memory.grounding import around, locate, named, supported, ungrounded
from ua_memory.llm import Bounds, Message, Model, Outcome, Tool, run_tools, user
from ua_memory.llm import Usage as Tokens
from ua_memory.records import Fact, Quote
from ua_memory.retain import asked, moments
from ua_memory.retain.asked import Brief
from ua_memory.retain.candidate import as_name, one_line
from ua_memory.retain.chunks import Chunk, name_of

TOGETHER = 64_000
"""Characters, answers included, that the conversation about one text may grow to: a dozen chunks."""
LONGEST_ANSWER = 8_000
SMALLEST = 600
"""Characters of a piece that is not halved again when the answer to it was cut off."""
_BOUNDS = Bounds(turns=4, calls=4, faults=3)
_QUOTE_WORDS = 4
"""A shorter quote cannot stand for the statement that it failed to support."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """What came out of one chunk. `causes` gives for a fact's index that of the earlier fact which caused it;
    `refused` is what the model proposed and the text does not say; `talked` that it called no tool."""

    facts: tuple[Fact, ...] = ()
    causes: Mapping[int, int] = field(default_factory=dict)
    refused: tuple[str, ...] = ()
    talked: bool = False

    def named(self, who: Settled) -> Drawn:
        """The same with all names as they are settled: what a person decided holds for every later fact."""
        facts = (replace(fact, entities=who.names(fact.entities)) for fact in self.facts)
        return replace(self, facts=tuple(facts))

    def but(self, forbidden: Callable[[Fact], bool]) -> Drawn:
        """The same without some facts."""
        kept = [n for n, fact in enumerate(self.facts) if not forbidden(fact)]
        if len(kept) == len(self.facts):
            return self
        now = {n: new for new, n in enumerate(kept)}
        causes = {now[n]: now[c] for n, c in self.causes.items() if n in now and c in now}
        return replace(self, facts=tuple(self.facts[n] for n in kept), causes=causes)


class Drawing:
    """A model at work on one text: `draw` its chunks in order."""

    def __init__(self, model: Model, brief: Brief, *, purpose: str = "retain") -> None:
        self.model, self.brief, self.purpose = model, brief, purpose
        self.usage = Tokens()
        self._said: list[Message] = []
        self._size = 0

    def draw(self, chunk: Chunk) -> Drawn:
        """The facts in a chunk. Raises what the model raises, and ModelMisbehaved for an answer that is none:
        then nothing of the text is to be kept."""
        into = _Into(chunk, self.brief)
        ask = partial(
            run_tools, self.model, asked.directive(self.brief), tools=into.tools(), purpose=self.purpose,
            bounds=_BOUNDS, max_tokens=LONGEST_ANSWER,
        )  # fmt: skip
        outcome = ask(messages=self._opening(chunk))
        self.usage += outcome.usage
        if _talks(outcome):
            outcome = ask(messages=[*outcome.messages, user(asked.REMINDER)])
            self.usage += outcome.usage
        if outcome.ended in ("cut", "window") and not into.taken:
            return self._halved(chunk, outcome)
        if _talks(outcome):
            self._forget()
            return Drawn(talked=True)
        if not into.taken:
            outcome.require_done()
        self._said = list(outcome.messages)
        return into.drawn()

    def _opening(self, chunk: Chunk) -> list[Message]:
        """What was said so far with the chunk behind it; anew where that has grown too long."""
        shown = asked.shown(chunk.text, self.brief)
        if self._size + 2 * len(shown) > TOGETHER:
            self._forget()
        self._size += 2 * len(shown)  # an answer is about as long as what it is about
        last = self._said[-1] if self._said else None
        if last and last["role"] == "user":
            return [
                *self._said[:-1],
                {"role": "user", "content": [*last["content"], *user(shown)["content"]]},
            ]
        return [*self._said, user(shown)]

    def _forget(self) -> None:
        self._said, self._size = [], 0

    def _halved(self, chunk: Chunk, outcome: Outcome) -> Drawn:
        """Both halves of a chunk whose facts did not fit into one answer."""
        self._forget()
        middle = len(chunk.text) // 2
        breaks = [m.end() for m in re.finditer(r"\n\s*\n|\n|(?<=[.!?])\s", chunk.text)]
        at = min(breaks, key=lambda place: abs(place - middle), default=middle)
        if len(chunk.text) < SMALLEST or not 0 < at < len(chunk.text):
            outcome.require_done()
        halves = (chunk.text[:at], chunk.text[at:])
        one, other = (
            self.draw(replace(chunk, text=half, name=name_of(half))) if half.strip() else Drawn()
            for half in halves
        )
        behind = len(one.facts)
        causes = {**one.causes, **{n + behind: m + behind for n, m in other.causes.items()}}
        return Drawn(
            (*one.facts, *other.facts), causes, (*one.refused, *other.refused), one.talked or other.talked
        )


def _talks(outcome: Outcome) -> bool:
    """Whether the model called nothing. Nobody may take that for "nothing here is worth keeping"."""
    return outcome.ended == "done" and not outcome.calls and not outcome.refused


class _Into:
    """Takes in what a model says of one chunk, and holds each of its claims against the text."""

    def __init__(self, chunk: Chunk, brief: Brief) -> None:
        self.chunk, self.brief = chunk, brief
        self.pieces = asked.pieces(chunk.text)
        self.taken = False
        self._facts: list[Fact] = []
        self._causes: dict[int, int] = {}
        self._refused: list[str] = []

    def tools(self) -> dict[str, Tool]:
        if self.brief.mode == "verbatim":
            return {asked.NAME: Tool(asked.DESCRIBES, asked.DESCRIBE, self._describe, ends=True)}
        return {asked.NAME: Tool(asked.KEEPS, asked.KEEP, self._keep, ends=True)}

    def drawn(self) -> Drawn:
        return Drawn(tuple(self._facts), dict(self._causes), tuple(self._refused))

    def _keep(self, given: Mapping[str, Any]) -> str:
        self.taken = True
        places: dict[int, int] = {}
        for number, one in enumerate(given["facts"], 1):
            fact = self._grounded(one)
            if fact is None:
                continue
            places[number] = len(self._facts)
            cause = places.get(one.get("cause", 0)) if one.get("cause", 0) < number else None
            if cause is not None:
                self._causes[len(self._facts)] = cause
            self._facts.append(fact)
        return f"kept {len(self._facts)}"

    def _describe(self, given: Mapping[str, Any]) -> str:
        self.taken = True
        told = {one["n"]: one for one in reversed(given["facts"])}
        for number, piece in enumerate(self.pieces, 1):
            fact = Fact(piece, tags=self.brief.tags, when=moments.derived(piece, self.brief.at.date()))
            evidence = self._evidence(number - 1)
            self._facts.append(self._with_rest(fact, told.get(number, {}), evidence, piece))
        return f"kept {len(self._facts)}"

    def _grounded(self, given: Mapping[str, Any]) -> Fact | None:
        what, quote = one_line(given["what"]), one_line(given["quote"])
        where = locate(quote, self.pieces) if quote else None
        if not what or (where is None and locate(quote, [self.chunk.text]) is None):
            self._refused.append(f"{what or quote} (no such words in the text: {quote[:80]})")
            return None
        evidence = [self.chunk.text] if where is None else self._evidence(where)
        missing = ", ".join(ungrounded(what, evidence, self.brief.at.date()))
        if not missing and not supported(what, evidence):
            missing = "any of it"
        if missing:
            self._refused.append(f"{what} (the text does not say {missing} there)")
            if len(quote.split()) < _QUOTE_WORDS or self._rests(quote):
                return None
            what = quote
        quotes = () if what == quote else (Quote(quote),)
        fact = Fact(what, kind=given.get("kind", "world"), quotes=quotes)
        return self._with_rest(fact, {} if missing else given, evidence, quote)

    def _rests(self, quote: str) -> bool:
        """Whether a fact is kept that has these words, or rests on them."""
        return any(quote in (fact.text, *(each.text for each in fact.quotes)) for fact in self._facts)

    def _with_rest(self, fact: Fact, given: Mapping[str, Any], evidence: Sequence[str], quote: str) -> Fact:
        """The fact with those of the further parts that the text has."""
        day = self.brief.at.date()

        def said(key: str) -> str | None:
            words = one_line(given.get(key) or "")
            holds = words and not ungrounded(words, evidence, day)
            return words if holds and (key != "why" or supported(words, evidence)) else None

        names = (as_name(name) for name in given.get("entities", ()))
        tags = ("-".join(tag.strip().strip("#").split()) for tag in given.get("tags", ()))
        grounded = (tag for tag in tags if tag and not ungrounded(tag, [*evidence, self.chunk.text]))
        when = moments.accepted(given.get("when") or "", evidence, day)
        return replace(
            fact,
            kind=given.get("kind", fact.kind),
            when=when or fact.when or moments.derived(quote, day),
            where=said("where"), who=said("who"), why=said("why"),
            entities=tuple(dict.fromkeys(n for n in names if named(n, evidence))),
            tags=tuple(dict.fromkeys((*self.brief.tags, *grounded))),
        )  # fmt: skip

    def _evidence(self, index: int) -> list[str]:
        """What a statement about a piece may speak of: it and its neighbours, and what stands above all."""
        return [*around(index, self.pieces), self.chunk.heading, self.brief.context, self.brief.title]
