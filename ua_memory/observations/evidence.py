"""What a belief rests on: the words of its facts, the days they are of, and what these days say of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from ua_memory import markdown
from ua_memory.grounding import locate
from ua_memory.places import OF_ONE_SESSION
from ua_memory.records import Fact, Observation, Proof
from ua_memory.statements import linked

TRENDS = ("new", "strengthening", "steady", "weakening", "stale")
RECENT, OLD = timedelta(days=30), timedelta(days=90)
"""Hindsight's two windows."""
MORE, LESS = 1.5, 0.5
"""How much denser, or thinner, recent evidence is than what came before, to be called a change."""


@dataclass(frozen=True, slots=True)
class Ground:
    """A fact, and the words of it that a belief rests on, copied exactly."""

    fact: Fact
    quote: str


def sources(fact: Fact) -> list[str]:
    """The texts a quote may come from: the fact's own, and the verbatim quotes it carries itself."""
    return [fact.text, *(quote.text for quote in fact.quotes)]


def holds(quote: str, fact: Fact) -> bool:
    """Whether the fact has these very words, white space and the shape of quotation marks aside."""
    return locate(quote, sources(fact)) is not None


def stands(proof: Proof, facts: Mapping[str, Fact]) -> bool:
    """Whether a proof's fact is there, is not retired, and has the words."""
    fact = linked(proof, facts)
    return fact is not None and not fact.retired and (not proof.quote or holds(proof.quote, fact))


def scope_of(fact: Fact) -> str:
    """Where a fact belongs, '' for nowhere in particular: its tags of the form `key:value`, sorted, those of
    a single session aside, and of the tags of its heading those that say `scope:`. `scope:work` is `work`,
    `project:shop` stays as it is. Beliefs never mix them."""
    named = (*fact.tags, *(tag for tag in fact.heading.tags if tag.startswith("scope:")))
    placed = {tag for tag in named if 0 < tag.find(":") < len(tag) - 1}
    placed = {tag for tag in placed if not tag.startswith(OF_ONE_SESSION)}
    return ", ".join(sorted(tag.removeprefix("scope:") for tag in placed))


def day_of(fact: Fact) -> str:
    """The ISO day a fact is about: its `when`, else its log's day; '' where neither names one."""
    when = (fact.when or "")[:10]
    return when if len(when) == 10 else markdown.day_of(fact.place.path) or _first_day(when)


def _first_day(month: str) -> str:
    return {4: f"{month}-01-01", 7: f"{month}-01"}.get(len(month.partition("/")[0]), "")


def days_of(observation: Observation, facts: Mapping[str, Fact]) -> list[str]:
    """The ISO days of an observation's proofs and of the sightings of these facts, in order. A proof whose
    fact is gone has the day of the log that it names."""
    found: list[str] = []
    for proof in observation.proofs:
        fact = linked(proof, facts)
        found.append(day_of(fact) if fact else markdown.day_of(f"{proof.file}.md") or "")
        found.extend(stamp[:10] for stamp in (fact.seen if fact else ()))
    return sorted(filter(None, found))


def trend(days: Iterable[str], today: date) -> str:
    """What the days of the evidence say of a belief, '' where there are none.

    `new` if all of it is of the last 30 days, `stale` if none is of the last 90. Otherwise evidence a day in
    the last 30 is compared with that before: half as much again is `strengthening`, less than half is
    `weakening`, anything between is `steady`. Days to come count as today.
    """
    dated = sorted(min(date.fromisoformat(day), today) for day in days)
    if not dated:
        return ""
    border = today - RECENT
    if dated[-1] < today - OLD:
        return "stale"
    if dated[0] >= border:
        return "new"
    recent = sum(day >= border for day in dated)
    before = (len(dated) - recent) / max((border - dated[0]).days, RECENT.days)
    change = recent / RECENT.days / before
    return "strengthening" if change > MORE else "weakening" if change < LESS else "steady"


def inherited(grounds: Sequence[Ground]) -> tuple[str, ...]:
    """The tags that a belief takes over from its facts, each once; those of a single session stay behind."""
    tags = (tag for ground in grounds for tag in ground.fact.tags)
    each = dict.fromkeys(tag for tag in tags if not tag.startswith(OF_ONE_SESSION))
    return tuple(sorted(each, key=lambda tag: ":" in tag))  # those that can stand behind the text come first


def named(text: str, facts: Sequence[Fact]) -> tuple[str, ...]:
    """The entities of the facts that the belief is about: those its text names, and those that at least half
    of the facts share."""
    plain, counted = text.casefold(), dict[str, int]()
    for fact in facts:
        for name in dict.fromkeys(fact.entities):
            counted[name] = counted.get(name, 0) + 1
    half = max(len(facts) / 2, 1)
    return tuple(name for name, n in counted.items() if name.casefold() in plain or n >= half)
