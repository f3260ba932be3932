"""A page without a model: the best observations and facts, each a cited sentence; and what holds for every
page, that a sentence whose evidence is gone, or says something else now, goes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ua_memory import markdown
from ua_memory.grounding.terms import terms
from ua_memory.markdown.blocks import Shape
from ua_memory.names import entities
from ua_memory.records import Observation
from ua_memory.reflect.folding import plain as unlisted
from ua_memory.reflect.grounds import Evidence, unsupported
from ua_memory.reflect.grouping import Said, alike
from ua_memory.reflect.sections import Refused, Sheet
from ua_memory.reflect.units import CALLOUT, Sentence, Unit, mark, plain

OBSERVED, SAID = "What has shown", "What was said"
"""The sections of a page that was put together without a model."""
_OPEN = re.compile(r"\s*\[ \]\s")
MANY, FEW = 8, 3
"""Where so many have two words of the question, or a name in it, those with less are left out; fewer than so
few that have any word say that the answers have other words than the question."""
STRONG, PARAPHRASED = 0.85, 0.6
"""What has no word of the question is listed if it is as near to it as this part of the best; the second
where the answers have other words."""


def fill(sheet: Sheet, evidence: Sequence[Evidence], question: str, anew: bool) -> int:
    """Put what answers the question and is not on the page yet into its sections, and return for how many
    there was no room.

    Of a page written anew, facts stand by their days; later only what is new is added, at the end of its
    list: what a person took out stays out.
    """
    _correct(sheet, evidence)
    there = {block for unit in sheet.units for sentence in unit.sentences for block in sentence.ids}
    there |= {each.record.ref or "" for each in evidence if each.number in sheet.marks()}
    listed = [each for each in evidence if each.record.ref and each.record.ref in there]
    near = _near([each for each in evidence if each.recalled], question)
    wanted = [each for each in near if each.record.ref not in there]
    if not anew:
        wanted = [each for each in wanted if each.news in ("new", "edited")]
    wanted = _once(wanted, listed)
    chosen = wanted[: _room(sheet, wanted)]
    left = len(wanted) - len(chosen)
    observed = [each for each in chosen if isinstance(each.record, Observation)]
    said = sorted((e for e in chosen if e not in observed), key=_when)
    for title, group in ((OBSERVED, observed), (SAID, said)):
        for each in group:
            try:
                section = _section(sheet, title)
                text = f"- {_sentence(each)}{mark(each.number)}"
                sheet.append(section, text, _last_item(sheet, section))
            except Refused:
                left += 1
    return left


def _when(each: Evidence) -> tuple[str, str, int]:
    """Facts by their days, those of none last; those of one day as they stand in their files."""
    place = each.record.place
    return each.day or "undated", place.path, place.line


def _near(evidence: Sequence[Evidence], question: str) -> list[Evidence]:
    """What answers a question, best first, as far as words tell: it has two words of it, or names whom or
    what it is about, or has any word of it, whichever many do; or it is among the nearest anyhow."""
    asked, named = terms(question), terms(" ".join(entities(question)))
    words = [asked & terms(" ".join((each.text, *each.record.entities))) for each in evidence]
    telling: Sequence[bool] = ()
    for telling in ([len(w) > 1 for w in words], [bool(w & named) for w in words], list(map(bool, words))):
        if sum(telling) >= MANY:
            break
    best = max((each.score for each in evidence), default=0.0)
    floor = best * (STRONG if sum(telling) >= FEW else PARAPHRASED)
    ranked = zip(evidence, telling, strict=True)
    return [e for n, (e, tells) in enumerate(ranked) if tells or e.score >= floor or n < FEW]


def _once(wanted: Sequence[Evidence], listed: Sequence[Evidence]) -> list[Evidence]:
    """Of what says the same the newest, and nothing that an observation on the page says, or rests on."""
    beliefs = [e.record for e in (*wanted, *listed) if isinstance(e.record, Observation)]
    proved = {proof.ref for belief in beliefs for proof in belief.proofs}
    told = [Said(e.text, "") for e in listed]
    told += [Said(e.text, "") for e in wanted if isinstance(e.record, Observation)]
    chosen: list[Evidence] = []
    for each in wanted:
        if isinstance(each.record, Observation):
            chosen.append(each)
            continue
        own = Said(each.text, "")
        if each.record.ref in proved or any(alike(own, one) for one in told):
            continue
        twin = next((n for n, one in enumerate(chosen) if alike(own, Said(one.text, ""))), None)
        if twin is None:
            chosen.append(each)
        elif each.day and _when(each) > _when(chosen[twin]):
            chosen[twin] = each
    return chosen


def _correct(sheet: Sheet, evidence: Sequence[Evidence]) -> None:
    """Let items of ours that are one fact each say what it says now. A sentence that a model wrote, of what
    was edited since, goes: nobody here can tell whether it still holds, and the fact's own words come."""
    living = {each.record.ref or "": each for each in evidence}
    edited = {each.record.ref or "" for each in evidence if each.news == "edited"}
    for unit in [unit for unit in sheet.units if unit.owner == "ours" and not unit.heading]:
        said = unit.sentences
        if unit.shape is Shape.ITEM and len(said) == 1:
            each = living.get(said[0].ids[0])
            if each and said[0].text != _sentence(each).strip():
                sheet.replace(unit.ref, f"- {_sentence(each)}{mark(each.number)}")
            continue
        kept = [one.source for one in said if edited.isdisjoint(one.ids)]
        if not kept and said:
            sheet.remove(unit.ref)
        elif len(kept) < len(said):
            sheet.replace(unit.ref, _whole(unit, kept))


def _room(sheet: Sheet, wanted: Sequence[Evidence]) -> int:
    """How many of them, best first, the page has room for."""
    from ua_memory import tokens

    room, number = sheet.limit - sheet.size - 30, 0
    for each in wanted:
        room -= tokens.count(f"- {_sentence(each)}[[2026-11-21#^k7m2q9x4tb]]\n")
        if room < 0:
            break
        number += 1
    return number


def _section(sheet: Sheet, title: str) -> str:
    found = next((unit for unit in sheet.units if unit.heading and unit.title == title), None)
    return (found or sheet.add_section(title)).ref


def _last_item(sheet: Sheet, section: str) -> str:
    """The last item of ours in a section, '' if there is none."""
    under = next(units for heading, units in sheet.sections() if heading and heading.ref == section)
    return next((u.ref for u in reversed(under) if u.owner == "ours" and u.shape is Shape.ITEM), "")


def _sentence(each: Evidence) -> str:
    """What a fact says, free of marks of a list, with the day it is about where that is not its log's."""
    day = getattr(each.record, "when", None)
    told = f"{day}: " if day and day != markdown.day_of(each.record.place.path) else ""
    todo = "To do: " if _OPEN.match(each.text) else ""
    return f"{plain(told + todo + unlisted(each.text))} "


def settle(sheet: Sheet, evidence: Sequence[Evidence]) -> list[str]:
    """Take out what is no longer so: links to what is gone, sentences without support, paragraphs without
    sentences. Returns the sentences that went, and why."""
    living = {each.record.ref or "": each for each in evidence}
    dropped: list[str] = []
    for unit in [unit for unit in sheet.units if unit.owner == "ours" and not unit.heading]:
        if any(ord(char) in (0xE000, 0xE001) for char in unit.text):
            continue  # written just now, and held against its evidence then
        kept = [said for sentence in unit.sentences if (said := _kept(sentence, living, dropped))]
        if unit.loose:
            dropped.append(f"{unit.loose} (it cites nothing)")
        if not kept:
            sheet.remove(unit.ref)
        elif kept != [sentence.source for sentence in unit.sentences] or unit.loose:
            sheet.replace(unit.ref, _whole(unit, kept))
    return dropped


def _kept(sentence: Sentence, living: Mapping[str, Evidence], dropped: list[str]) -> str:
    """A sentence as it may stand; '' if it may not."""
    cited = [living[block] for block in sentence.ids if block in living]
    if not cited:
        dropped.append(f"{sentence.text} (what it rests on is gone)")
        return ""
    if missing := unsupported(sentence.text, cited):
        dropped.append(f"{sentence.text} (its evidence has no {', '.join(missing)} now)")
        return ""
    source = sentence.source
    for link in reversed(list(markdown.citations(source))):
        if link.ref not in living:
            source = source[: link.start].rstrip() + source[link.end :]
    return source


def _whole(unit: Unit, kept: Sequence[str]) -> str:
    text = " ".join(kept)
    if unit.callout:
        return f"{CALLOUT}\n> {text}"
    return f"- {text}" if unit.shape is Shape.ITEM else text
