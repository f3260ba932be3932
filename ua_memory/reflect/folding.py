"""Consolidation without a model: what several days say in nearly the same words becomes one observation.

Nothing is phrased and nothing concluded: the words are those of the fact that has most in common with the
others, freed of list marks and emphasis, and each proof is the fact it is from.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ua_memory.observations import Beliefs, stands
from ua_memory.records import Fact, Observation
from ua_memory.reflect.considered import mark
from ua_memory.reflect.grouping import ALIKE, Said, alike, at_odds, near, said, same
from ua_memory.reflect.proposals import Operation
from ua_memory.statements import by_ref, linked, new_id

_CHECKBOX = re.compile(r"\A\s*\[[ xX]\]\s+")
_EMPHASIS = re.compile(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1")
_LONGEST_QUOTE = 300
_NO_PROSE = re.compile(r"`[^`]*`|\S*[/\\_=]\S*|\S+\.\w{1,4}\b")
_WORD = re.compile(r"[^\W\d_]{2,}")
_LISTED = re.compile(r"\s*(?:`[^`]*`|~?[\w.-]*/\S+|\S+\.\w{1,4})\s*(?:\([^)]*\)\s*)?(?:[-–—:→]|$)")
_LEAST_WORDS, _LEAST_SMALL = 4, 2
"""Words besides paths and code, and those of them that are no names: a list of files is no belief."""


@dataclass(frozen=True, slots=True)
class Folded:
    """What a comparison came to: operations, and pairs of facts that may be at odds, the newer first."""

    operations: tuple[Operation, ...] = ()
    at_odds: tuple[tuple[Fact, Fact], ...] = ()


def fold(
    beliefs: Beliefs, waiting: Sequence[Fact], name: Callable[[Observation], str],
    clean: Callable[[str], str],
) -> Folded:  # fmt: skip
    """Compare the facts that wait with all others and with the observations there are. `name` is what an
    observation is called; `clean` takes secrets out: a fact that has any is no quote for a belief."""
    fresh = {mark(fact) for fact in waiting}
    if not fresh:
        return Folded()
    everything = [said(fact) for fact in beliefs.facts if not fact.retired]
    own = [Said(each.text, each.scope or "", each.last or "") for each in beliefs.live]
    operations, proved = _strengthened(beliefs.live, own, everything, fresh, name, clean)
    # What a person retired is not made anew of the same facts.
    ended = {proof.ref for each in beliefs.observations if each.retired for proof in each.proofs}
    rest = [one for one in everything if one.fact and one.mark not in proved and one.fact.ref not in ended]
    operations += _created(rest, beliefs, fresh, clean)
    return Folded(tuple(operations), tuple(_at_odds(everything, fresh)))


def _strengthened(
    live: Sequence[Observation], own: Sequence[Said], facts: Sequence[Said], fresh: set[str],
    name: Callable[[Observation], str], clean: Callable[[str], str],
) -> tuple[list[Operation], set[str]]:  # fmt: skip
    """New proofs for what is believed already, and the marks of all facts that are some belief's proof."""
    by_id = by_ref(one.fact for one in facts if one.fact)
    # A fact that was edited since proves nothing until it is found alike again.
    every = ((number, p) for number, each in enumerate(live) for p in each.proofs if stands(p, by_id))
    proofs = {fact.ref: number for number, p in every if (fact := linked(p, by_id))}
    of_fact = {id(one): proofs.get(one.fact.ref or "") for one in facts if one.fact}
    found: dict[int, list[Fact]] = {}
    each = [*own, *facts]
    for one, other in near(each, ALIKE, fresh):
        first, second = (other, one) if other < len(own) or one >= len(own) else (one, other)
        for left, right in ((first, second), (second, first)):
            fact = each[right].fact
            if fact is None or each[right].mark not in fresh or of_fact[id(each[right])] is not None:
                continue
            number = left if left < len(own) else of_fact[id(each[left])]
            if number is not None and alike(each[left], each[right]):
                found.setdefault(number, []).append(fact)
    made, proved = [], {one.mark for one in facts if one.fact and of_fact[id(one)] is not None}
    for number, some in sorted(found.items()):
        quoted = _quoted([fact for fact in some if mark(fact) not in proved], clean)
        proved |= {each for each, _ in quoted}
        if quoted:
            made.append(Operation("strengthen", name(live[number]), proofs=quoted))
    return made, proved


def _created(
    rest: Sequence[Said], beliefs: Beliefs, fresh: set[str], clean: Callable[[str], str]
) -> list[Operation]:
    texts = {each.text.casefold() for each in beliefs.observations}
    made = []
    for group in same(rest, fresh):
        facts = [fact for number in group if (fact := rest[number].fact)]
        text, told = plain(facts[0].text), {mark(fact): said(fact).source for fact in facts}
        quoted = _quoted(facts, clean)
        several = len({told[each] for each, _ in quoted}) > 1
        if (
            several
            and _is_prose(text)
            and fresh & told.keys()
            and text.casefold() not in texts
            and clean(text) == text
        ):
            made.append(Operation("create", f"new:{new_id()}", text, quoted))
    return made


def _is_prose(text: str) -> bool:
    """Whether a line says something, and is no entry of a list: `src/a.py — fixed`, `late = 5 (~84%)`."""
    words = _WORD.findall(_NO_PROSE.sub(" ", text))
    small = sum(not word[0].isupper() for word in words)
    return len(words) >= _LEAST_WORDS and small >= _LEAST_SMALL and not _LISTED.match(text)


def _quoted(facts: Iterable[Fact], clean: Callable[[str], str]) -> tuple[tuple[str, str], ...]:
    """Each fact with its own words, cut at a word where they are many."""
    found = {}
    for fact in facts:
        words = " ".join(fact.text.split())
        quote = words if len(words) <= _LONGEST_QUOTE else words[:_LONGEST_QUOTE].rpartition(" ")[0]
        if quote and clean(quote) == quote:
            found[mark(fact)] = quote
    return tuple(found.items())


def _at_odds(facts: Sequence[Said], fresh: set[str]) -> Iterable[tuple[Fact, Fact]]:
    """Facts that wait, against all others: the same words, another number or a denial."""
    for one, other in near(facts, ALIKE, fresh):
        pair = sorted((facts[one], facts[other]), key=lambda each: (each.day, each.source), reverse=True)
        if pair[0].source == pair[1].source or not at_odds(*pair):
            continue
        newer, older = pair[0].fact, pair[1].fact
        if newer and older and fresh & {mark(newer), mark(older)}:
            yield newer, older


def plain(text: str) -> str:
    """A line of a list as a sentence: without its box to tick, and without emphasis."""
    return " ".join(_EMPHASIS.sub(r"\2", _CHECKBOX.sub("", text)).split())
