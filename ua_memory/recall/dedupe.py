"""Fold duplicates among hits, rank newer values before older ones, and label beliefs by their sources."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from ua_memory.index.items import SESSION, chunks, placeholders
from ua_memory.index.terms import STOP_WORDS, all_stop_words, is_unspaced
from ua_memory.index.terms import words as words_of
from ua_memory.recall.arms import Ranked
from ua_memory.records import ref_of, written_id
from ua_memory.text import wording
from ua_memory.text.calendar import A_MONTH
from ua_memory.text.foreign_dates import is_name
from ua_memory.text.names import entities, foreign_stop_words, numerals
from ua_memory.text.noise import word_stem
from ua_memory.text.sentences import sentences
from ua_memory.text.wording import ANSWERED, CHANGED, CHANGED_FOLDED

if TYPE_CHECKING:
    from ua_memory.index.items import IndexItem
    from ua_memory.index.words import WordIndex


# -- folding duplicates ------------------------------------------------------------------------------------
# A hit stands for its duplicates, and an observation for its facts; the hit lists them with their days.
#
# **Observations.** A fact is folded under an observation that cites it, which takes the fact's rank if it
# ranked lower, provided its own score is nearly as high (`OBSERVATION_SHARE`): "Alice chooses by price" does
# not answer when she moved. A search for kinds is not folded so.
#
# **Duplicates** are two items of one kind with the same words in the same order, ignoring inflection, case,
# punctuation and articles, or where one has one word in ten more, which is no number, name or negation. Items
# with different dates are different events; retired and current items are different. The first one is kept.
# "Cheap" and "dear" are thus never folded: contradictions must be visible.
#
# **Passages** of a session are folded under a fact that states or quotes a part of them, if its score is as
# high. Of two passages with the same words a person's is kept rather than an agent's, then the later. A
# session that continued after it was moved into the bank has two files: if a passage begins with all of
# another, it is kept.


OBSERVATION_SHARE = 2 / 3
"""The minimum score of an observation, relative to the fact it stands for."""
WORDS_PER_ADDED = 10
"""A duplicate may have one additional word per this many words."""
LONGEST = 200
"""Words that are compared; longer texts are only duplicates if they are equal."""


_NO_LETTERS = re.compile(r"[\W_]+")
LEAST_QUOTED = 12
"""Letters and digits of a fact or its quote that are recognized in a passage."""
SUPPORT, GOOD_ALONE = 0.6, 0.8
"""The share of its best fact's score that a session's passage gains; the score from which a fact answers by
itself."""
CERTAIN, MUCH = 0.9, 0.75
"""The score of a fact that no gain lifts a session's passage above; the share of an undated note's score that
the fact in a passage needs to lift it above that."""

_SPEAKER = re.compile(r"^(?:Person|Agent): ", re.MULTILINE)
_ARTICLES = frozenset(("a", "an", "the"))
_DENIALS = frozenset("no not never none nor neither without cannot dont t".split())  # noqa: SIM905


@dataclass(slots=True)
class KeptHit:
    """A hit, verified against its file, and the items folded under it."""

    one: Ranked
    under: list[IndexItem] = field(default_factory=list)

    def add(self, item: IndexItem) -> None:
        """Fold an item under this hit; of two passages the better (`_passage_rank`) becomes the hit."""
        own = self.one.item
        if own.record == SESSION and _passage_rank(item) > _passage_rank(own):
            item, self.one = own, self.one._replace(item=item)
        self.under.append(item)


def fold(
    words: WordIndex,
    found: Sequence[Ranked],
    confirm: Callable[[IndexItem], IndexItem | None],
    limit: int,
    *,
    beliefs: bool,
) -> tuple[list[KeptHit], int]:
    """(the first `limit` hits after folding, the number of candidates no longer in their files).

    `confirm` verifies an item against its file. With `beliefs` observations stand for their facts.
    """
    observations = _observations_by_fact(found) if beliefs else {}
    kept: dict[str, KeptHit] = {}
    texts, missing = SeenTexts(words), 0
    for one in found:
        full = len(kept) >= limit
        belief = _observation_for(one, observations, kept, full) if observations else None
        if one.item.key in kept or (full and not belief and not texts.equal(one.item)):
            continue
        item = confirm(one.item)
        if item is None:
            missing += not full
            continue
        if belief and belief.item.key not in kept:
            current = confirm(belief.item)
            belief = _in_place_of(belief, one, current) if current else None
            if belief:
                kept[belief.item.key] = KeptHit(belief)
        above = kept[belief.item.key] if belief else texts.duplicate(item, full)
        above = above or _fact_quoting(one, kept.values())
        if above:
            above.add(item)
        elif not full:
            kept[item.key] = KeptHit(one._replace(item=item))
            texts.add(kept[item.key])
    return list(kept.values()), missing


def _observations_by_fact(found: Sequence[Ranked]) -> Mapping[str, Ranked]:
    """{ref of a fact: the best current observation among the candidates that cites it}."""
    observations: dict[str, Ranked] = {}
    for one in found:
        if one.item.record == "observation" and not one.item.retired:
            for proof in one.item.proofs:
                observations.setdefault(proof, one)
    return observations


def _observation_for(
    one: Ranked, observations: Mapping[str, Ranked], kept: Mapping[str, KeptHit], full: bool
) -> Ranked | None:
    """The observation that a fact is folded under, None for none."""
    is_current_fact = one.item.record == "fact" and not one.item.retired
    found = observations.get(one.item.ref or "") if is_current_fact else None
    if found is None or found.item.key in kept:
        return found
    return None if full or found.score < OBSERVATION_SHARE * one.score else found


def _in_place_of(belief: Ranked, fact: Ranked, current: IndexItem) -> Ranked:
    """An observation with the score of its fact; `current` is the verified item."""
    gain = round(fact.score - belief.score, 6)
    return belief._replace(item=current, score=fact.score, parts={**belief.parts, "facts": gain})


def with_support(found: list[Ranked]) -> list[Ranked]:
    """The candidates; a session's passage gains a share of the score of the best fact that states or quotes a
    part of it: a long passage has words of many questions, a fact is about one thing. It gains nothing from a
    fact that answers by itself, and is folded under that."""
    # Without token vectors the scores of a fact and a passage are not of one scale.
    if not any(one.item.record == SESSION and "every" in one.parts for one in found):
        return found
    facts = [(one.score, _quotable(one.item)) for one in found if one.item.record == "fact"]
    first = max((score for score, _ in facts), default=0.0)
    note = max((one.score for one in found if one.item.record != SESSION and not one.item.day), default=0.0)

    def supported(one: Ranked) -> Ranked:
        text = _passage_letters(one.item) if one.item.record == SESSION and one.score > 0 else ""
        best = next((score for score, rows in facts if any(_has_letters(text, row) for row in rows)), 0.0)
        if best <= 0 or best >= max(one.score, GOOD_ALONE):
            return one
        score = capped(one.score + SUPPORT * best, one.score, first)
        # A note without a day is not older than the session, which need not say how it is now.
        gain = round(capped(score, one.score, note, sure=best < MUCH * note) - one.score, 4)
        return one._replace(score=one.score + gain, parts={**one.parts, "support": gain})

    return sorted(map(supported, found), key=lambda one: -one.score)


def capped(score: float, own: float, best: float, *, sure: bool | None = None) -> float:
    """The score of a passage with its gain, `own` without it, that stays below a `best` fact's if that is
    `sure`, by default if it is `CERTAIN`."""
    stays = best >= CERTAIN if sure is None else sure
    return max(own, min(score, best - 1e-4)) if stays else score


def _passage_letters(item: IndexItem) -> str:
    """The letters of a passage without its speakers."""
    return _letters(_SPEAKER.sub("", item.text))


def _quotable(fact: IndexItem) -> list[str]:
    """A fact's text and quotes as `_letters`, without those that are too short to be recognized."""
    rows = map(_letters, (fact.text, *fact.context.split("\n")))
    return [row for row in rows if len(row) >= LEAST_QUOTED]


@lru_cache(maxsize=2048)
def _letters(text: str) -> str:
    """A text's letters and digits in lower case: what is quoted without markup is found in it."""
    return _NO_LETTERS.sub("", text.casefold())


def _has_letters(text: str, row: str) -> bool:
    """Whether a text has these letters; "costs 40" is not in "costs 400"."""
    return row in text and bool(re.search(rf"(?:(?<!\d)|(?!\d)){row}(?:(?!\d)|(?<!\d))", text))


def _passage_rank(passage: IndexItem) -> tuple[bool, str, int]:
    return not passage.own, passage.day or "", len(passage.text)


def _fact_quoting(passage: Ranked, kept: Iterable[KeptHit]) -> KeptHit | None:
    """The hit with a fact that states or quotes a part of a session's passage, with at least its score."""
    if passage.item.record != SESSION:
        return None
    text = _passage_letters(passage.item)
    for each in kept:
        own = each.one.score - each.one.parts.get("newer", 0)
        rows = _quotable(each.one.item) if each.one.item.record == "fact" and own >= passage.score else ()
        if any(_has_letters(text, row) for row in rows):
            return each
    return None


class SeenTexts:
    """The texts of the hits so far, to find duplicates of them."""

    def __init__(self, words: WordIndex) -> None:
        self._words = words
        self._by_text: dict[tuple[object, ...], KeptHit] = {}
        self._hashes: set[str] = set()
        self._seen: list[tuple[list[str], list[str], KeptHit]] = []
        self._passages: list[KeptHit] = []

    def add(self, kept: KeptHit) -> None:
        self._by_text.setdefault(_text_key(kept.one.item), kept)
        self._hashes.add(kept.one.item.texthash)
        if kept.one.item.record == SESSION:
            self._passages.append(kept)
        words = _comparable_words(kept.one.item)
        self._seen.append((words, _prefixes(words), kept))

    def equal(self, item: IndexItem) -> bool:
        """Whether a hit so far has exactly this text."""
        return item.texthash in self._hashes and _text_key(item) in self._by_text

    def duplicate(self, item: IndexItem, exactly: bool) -> KeptHit | None:
        """The first hit so far of which this is a duplicate, or (`exactly`) with exactly this text."""
        found = self._by_text.get(_text_key(item))
        if found and _same_day(found.one.item, item):
            return found
        if item.record == SESSION:
            return next((each for each in self._passages if _extends(each.one.item, item)), None)
        words = [] if exactly else _comparable_words(item)
        prefixes = _prefixes(words)
        for other, other_prefixes, kept in self._seen if words else ():
            # Comparing prefixes first avoids most queries for stems.
            similar = _added_words(prefixes, other_prefixes) is not None
            if similar and self._same(words, other, item, kept.one.item):
                return kept
        return None

    def _same(self, one: list[str], other: list[str], item: IndexItem, seen: IndexItem) -> bool:
        if _type_key(item) != _type_key(seen) or not _same_day(item, seen):
            return False
        stems = self._words.vocabulary.stems({*one, *other})
        added = _added_words([stems[word] or word for word in one], [stems[word] or word for word in other])
        text = seen.text if len(one) < len(other) else item.text
        return added is not None and all(_is_minor(stem, text) for stem in added)


def _extends(one: IndexItem, other: IndexItem) -> bool:
    """Whether two passages of one session, in different files, begin with the same words."""
    if (one.client, one.session) != (other.client, other.session) or one.path == other.path:
        return False
    short, long = sorted((_passage_letters(one), _passage_letters(other)), key=len)
    return long.startswith(short)


def _comparable_words(item: IndexItem) -> list[str]:
    """The words of an item without articles; [] for more than `LONGEST`, and for sessions' passages."""
    if item.record == SESSION:
        return []
    words = [word for word in words_of(item.text[: LONGEST * 20]) if word not in _ARTICLES]
    return words if len(words) <= LONGEST else []


def _prefixes(words: Sequence[str]) -> list[str]:
    return [word[:2] for word in words]


def _type_key(item: IndexItem) -> tuple[object, ...]:
    return item.record, item.kind, bool(item.retired)


def _text_key(item: IndexItem) -> tuple[object, ...]:
    return *_type_key(item), _passage_letters(item) if item.record == SESSION else item.texthash


def _same_day(one: IndexItem, other: IndexItem) -> bool:
    """Whether their dates do not differ. The day on which they were said may."""
    return not (one.when and other.when) or one.when == other.when


def _added_words(one: Sequence[str], other: Sequence[str]) -> list[str] | None:
    """The additional words of the longer text; None if it lacks words of the shorter, or has too many."""
    short, long = (one, other) if len(one) < len(other) else (other, one)
    if not short or len(long) - len(short) > len(short) // WORDS_PER_ADDED:
        return None
    added: list[str] = []
    at = 0
    for word in long:
        if at < len(short) and short[at] == word:
            at += 1
        elif len(added) == len(long) - len(short):
            return None
        else:
            added.append(word)
    return added


def _is_minor(stem: str, text: str) -> bool:
    """Whether an added word changes little: it is no number, negation or name."""
    if stem in _DENIALS or not stem.isalpha():
        return False
    return bool(re.search(rf"(?<!\w){re.escape(stem[:-1] or stem)}", text))


# -- replaced values ---------------------------------------------------------------------------------------
# Of two hits with different values for one thing the newer ranks before the older.
#
# A sentence states a value if it has a number, date, time, channel or quotation. It replaces an older one if
# it states a change ("now", "moved to") and shares a word that few of the hits have, or otherwise if it says
# nearly the same. A fact also replaces an older one with nearly the same words if just one of them is
# negated, or if it states a change and has other names. It says something of what is asked about in the older
# one: a launch that is moved is no newer birthday, though one sentence has both, nor is Leo's lesson a newer
# one of Mia's; "the lesson" is. Whoever moved, changed jobs or replaced one thing by another
# (`wording.moves`) is no longer where an older fact says. A hit that matches the query much worse than the
# older one must state a change and share two words with it, or one if the older value is in a passage's
# sentence with a word of the query: a passage matches by all its sentences, a fact by one.


REPLACED_HITS, REPLACED_PASSAGES = 40, 10
"""Hits, best first, that are compared, and those among which sessions' passages are: a passage has ten times
the sentences of a fact."""
_LIKE = 0.6
"""The minimum share of words in common with the older sentence if no change is stated."""
_NEAR = 0.7
"""The minimum score, relative to a passage, of a hit that replaces a sentence without a word of the query:
the passage was found by another of its sentences."""
_OPPOSITE = 0.8
"""The minimum share of the longer sentence's words in common with one that contradicts it."""
_DENIES = re.compile(
    r"\b(?:not|never|no|cannot|\w+n[’']t|nicht|kein\w*|nie(?:mals)?|ne|pas|jamais|nunca|jamás)\b|\bn[’']|ません"
    r"|なかった|ない(?=[。、\s]|$)"
)
_DENYING = re.compile(rf"{_DENIES.pattern}|もう|ます", re.IGNORECASE)
"""Negations in case-folded text, and also what Japanese has in the affirmative form of the verb, in any."""
_NAMES = re.compile(r"[A-ZÄÖÜÉÁÍÓÚÑ](?<=[\w,] .)\w+")
_REASON = re.compile(r"\b(?:because|weil|wegen|parce que|porque)\b")
_CLAUSES = re.compile(r"(?<=[,;])\s|(?<=\s)(?=(?:and|und|et|y)\s)")
_LONGER = re.compile(r"[a-z]\w\w+")
_NUMBER = r"\d[\d.,:]*\d|\d"
_MONTHS = rf"(?:{A_MONTH}|okt|dez|mai|mär|avr|juin|juil|août|févr?|ene|abr|ago|dic|déc)[a-zéû]*\.?"
_WEEKLY = (
    r"\b(?=[cdefjlmstw])(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days"
    r"|(?:every|each)\s+(?:mon|tues|wednes|thurs|fri|satur|sun)day"
    r"|(?:mon|diens|donners|frei|sams|sonn)tags|mittwochs|jeden\s+(?:\w+tag|mittwoch)"
    r"|(?:le|chaque)\s+(?:\w+di|dimanche)|(?:los|cada)\s+(?:lunes|martes|miércoles|jueves|viernes|sábados?|domingos?))\b"
)
"""A recurring day of the week. Lookaheads for the first letter are for speed."""
_AFTER_DAY = (
    r"\s*(?:[,;:!?)]|\.(?!\d)|$)"
    r"|\s+(?:now|instead|because|since|at|and|not|then|but|for|due|ipv|statt|wegen|und|jetzt)\b"
)  # fmt: skip
"""What follows a day of the month, but not the number of a floor or an attempt."""
_A_DAY = (
    r"\b(?=[dfjlmstvwz])(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:mon|diens|donners|frei|sams|sonn)tag|mittwoch"
    r"|(?:lun|mar|mercre|jeu|vendre|same)di|dimanche|lunes|martes|miércoles|jueves|viernes|sábado|domingo"
    r"|(?:lune|marte|mercole|giove|vener)dì|(?:maan|dins|woens|donder|vrij|zater|zon)dag)\b|[月火水木金土日]曜"
)
"""A day of the week, which is a value of a sentence that states a change."""
_VALUES = {
    "date": re.compile(
        rf"(?=[\dabdefjmnostuz])(?:\b{_MONTHS}\s+\d{{1,2}}(?:st|nd|rd|th)?\b(?:,?\s+\d{{4}}\b)?"
        rf"|\b\d{{1,2}}(?:\.|st|nd|rd|th)?\s+(?:de\s+|of\s+)?{_MONTHS}(?!\w)(?:\s+\d{{4}}\b)?"
        r"|\d{1,2}月\d{1,2}日|\b\d{4}-\d\d-\d\d\b|\b\d{1,2}[./]\d{1,2}\.(?!\d)"
        rf"|\b(?:by|until|end|bis|ende|avant|fin|finales\s+de)\s+(?:of\s+)?{_MONTHS}(?!\w)"
        rf"|\b(?:the|on|until|by|de)\s+\d{{1,2}}(?:st|nd|rd|th|e)(?={_AFTER_DAY})"
        rf"|\b(?:am|zum|den)\s+\d{{1,2}}\.(?={_AFTER_DAY}))",
        re.IGNORECASE,
    ),
    "time": re.compile(r"\b\d{1,2}:\d\d\b|\b\d{1,2}\s*(?:am|pm|uhr|h)\b|\d{1,2}時", re.IGNORECASE),
    "weekday": re.compile(_WEEKLY, re.IGNORECASE),
    "day": re.compile(_A_DAY, re.IGNORECASE),
    "name": re.compile(r"(?<!\w)#[a-z][\w-]+|`[^`\n]+`|[\"“„«「][^\"”“»」\n]{3,80}[\"”“»」]", re.IGNORECASE),
    "percent": re.compile(
        rf"(?:{_NUMBER})(?=\s*(?:%|percent\b|prozent\b|por\s+ciento\b|pour\s+cent\b))", re.IGNORECASE
    ),
    "number": re.compile(rf"(?:{_NUMBER})|\b(?:once|twice)\s+an?\b", re.IGNORECASE),
}
_UNITS = frozenset(
    """
number numbers nummer numéro número
euro euros dollar dollars percent prozent second seconds minute minutes hour hours day days week weeks month
months year years stunde stunden tag tage woche wochen monat monate jahr jahre heure heures jour jours semaine
mois an ans hora horas día días semana mes meses año años
""".split()  # noqa: SIM905
)
_COUNTED = re.compile(r"\d (\w{3,})")
"""A noun after a number."""
_MEASURED = re.compile(
    r"[€$£¥]\s?\d|\d\s?(?:[€$£¥%]|(?:euros?|dollars?|francs?|kg|lbs?|km|cm|mm|ml|kwh)\b)", re.IGNORECASE
)
"""A number with its unit."""
_MAY_STATE = re.compile(
    rf"[\d#`\"“„«「]|\b(?:once|twice|by|until|end|bis|ende|avant|fin)\b|{_WEEKLY}|{_A_DAY}"
)
"""What a case-folded sentence with a value has."""
_MOVING = (
    r"\b(?:mov|push|shift|rais|lower|cut|schieb|verleg|senk|avanc|déplac|repouss|muev|sub|baj)\w*"
    r"\s(?:\S+\s){0,6}?(?:from|vo[nm]|de|du|del)"
)
"""What stands before a value that is left for another."""
_ENDING = (
    r"\b(?:no (?:more|longer)(?! than)|not|instead of|rather than|nicht mehr|(?:an)?statt|plus"
    r"|au lieu d[eu]s?|ya no|en vez de|invece d\w+|non più|niet meer|in plaats van|não mais|em vez d\w+)"
    r"['’\s]\s*(?:\S+\s){0,2}?"
)
"""What stands before a value that is one no more."""
_UNFIT = (
    r"\s+(?:\w+\s+){0,2}?(?:is|was|were|ist|war|waren|est|était|es|era|fue|è|foi|was|waren)\s+(?:\w+\s+)?"
    r"(?:too|zu|trop|demasiado|troppo|demais|te)\b"
)
"""What stands behind one: "10 was too long"."""
_IS = r"(?:is|are|ist|sind|est|es|è|é|now|jetzt|maintenant|ahora|agora|adesso|ora|nu)"
"""What stands between a role and a name, or before the sentence that names somebody for it."""
_LEANS = re.compile(r"(?:its|it['’]s|it is|that['’]?s|c['’]est|das ist|het is)\b", re.IGNORECASE)
"""Beginnings of sentences whose subject is in the sentence before."""


class _ValueSentence:
    """A sentence with the values it states by kind, `rest` without them, and the sentence before. Its stems
    are only computed when the values of two sentences differ. A sentence without other words ("it's the 13th
    now") includes those of the sentence before."""

    def __init__(
        self, text: str, values: Mapping[str, frozenset[str]], rest: str, before: str, *, same_speaker: bool
    ) -> None:
        self.text, self.values, self._rest, self._before = text, values, rest, before
        self._same_speaker = same_speaker

    @cached_property
    def beginnings(self) -> frozenset[str]:
        """The first four letters of its words, except stop words: a cheap comparison before that of stems."""
        return frozenset(word[:4] for word in _LONGER.findall(self.text.casefold()) if word not in STOP_WORDS)

    @cached_property
    def words(self) -> frozenset[str]:
        return self._own | _stems(CHANGED.sub(" ", self._before)) if self._leans else self._own

    @cached_property
    def _leans(self) -> bool:
        return len(self._own) <= 1 or _LEANS.match(self.text) is not None

    @cached_property
    def subject(self) -> str:
        """The stem of its first content word, '' if it has none."""
        return next((min(stems) for word in words_of(self._bare) if (stems := _stems(word))), "")

    @cached_property
    def parts(self) -> list[frozenset[str]]:
        """The words of each statement in it: of its clauses with a value, else of itself unless it is an
        exclamation."""
        found, clause = list[str](), ""
        for part in _CLAUSES.split(self.text):
            clause += part
            if _MAY_STATE.search(part.casefold()):
                found.append(clause)
                clause = ""
        if found[1:]:
            return [_stems(each) for each in found]
        return [self.words] if self.values or len(self.words) > 1 else []

    @cached_property
    def counted(self) -> frozenset[str]:
        """The stems of nouns after numbers: amps, sacks, nights."""
        return _stems(" ".join(_COUNTED.findall(self.text)))

    @cached_property
    def _own(self) -> frozenset[str]:
        return _stems(self._bare)

    @cached_property
    def _bare(self) -> str:
        return CHANGED.sub(" ", self._rest) if self._says_change else self._rest

    @cached_property
    def claimed(self) -> frozenset[str]:
        """The stems without negations."""
        denying = self.denies or not self.text.isascii()
        return _stems(_DENYING.sub(" ", self._bare)) if denying else self._own

    @cached_property
    def names(self) -> frozenset[str]:
        return _stems(" ".join(_NAMES.findall(self._rest)))

    @cached_property
    def denies(self) -> bool:
        return _DENIES.search(self.text.casefold()) is not None

    @cached_property
    def changed(self) -> bool:
        leans = self._leans and self._same_speaker
        return self._says_change or (leans and CHANGED_FOLDED.search(self._before.casefold()) is not None)

    @cached_property
    def _says_change(self) -> bool:
        return CHANGED_FOLDED.search(self.text.casefold()) is not None

    def moves_from(self, old: _ValueSentence) -> bool:
        """Whether it names a value of an older sentence as what is left: "from 13 December to", "no more
        Mondays"."""
        values = "|".join(re.escape(value.rstrip(".")) for some in old.values.values() for value in some)
        left = rf"(?:{_MOVING}\s+|{_ENDING})(?:{values})\b|(?<!\w)(?:{values})(?:\s*(?:→|[-=]>)|{_UNFIT})"
        return re.search(left, self.text.casefold()) is not None

    @cached_property
    def answers(self) -> frozenset[str]:
        """The words of the question that it answers, as in "Which port does staging use? – 6543"."""
        at = ANSWERED.search(self.text)
        return frozenset(words_of(CHANGED.sub(" ", self.text[: at.start()]))) if at else frozenset()

    @cached_property
    def may_replace(self) -> bool:
        """Whether it may replace another sentence. Of two that may not, neither replaces the other."""
        return bool(self.values or self.answers) or self.denies or (bool(self.names) and self.changed)


def _value_sentences(text: str, plain: bool = True) -> list[_ValueSentence]:
    """The sentences of a text that state a value; with `plain` all of them."""
    found, before = list[_ValueSentence](), ""
    for part in sentences(_SPEAKER.sub("", text)):
        bare, values = part, dict[str, frozenset[str]]()
        for kind, pattern in _VALUES.items() if _MAY_STATE.search(part.casefold()) else ():
            if matches := frozenset(match.casefold() for match in pattern.findall(bare)):
                values[kind] = matches
                bare = pattern.sub(" ", bare)
        if values or plain:
            found.append(_ValueSentence(part, values, bare, before, same_speaker=plain))
        before = f"{before} {bare}" if plain else bare
    return found


def _in_digits(text: str, folded: str) -> str:
    """A text with numerals as digits; `folded` is the text in lower case."""
    for word in numerals().keys() & set(folded.split()):
        text = re.sub(rf"\b{word}\b", str(numerals()[word]), text, flags=re.IGNORECASE)
    return text


def _stems(text: str) -> frozenset[str]:
    words = filter(_is_content_word, words_of(text))
    found = (word.removesuffix("ing") if len(word) > 6 else word for word in words)
    return frozenset(map(word_stem, found))


def _is_content_word(word: str) -> bool:
    return (
        not word[0].isdigit()
        and word not in STOP_WORDS
        and word not in foreign_stop_words()
        and word not in all_stop_words()
        and word not in _UNITS
        and (len(word) > 2 or not word.isascii())
    )


class _Comparison:
    """Compares the sentences in the `texts` that a query has found; `asked` are the query's stems."""

    def __init__(self, texts: Sequence[str], query: str) -> None:
        self.asked, self._texts, self._counted = _stems(query), texts, dict[str, int]()

    def replaces(self, new: _ValueSentence, old: _ValueSentence, *, strict: bool, weak: bool) -> bool:
        """Whether a sentence replaces an older one. `strict`: most words must be shared, even if it states a
        change; `weak`: it must state a change and share two words, or one and a date. Another date needs one
        shared word and all of the query's words that the older sentence has. See `_is_of_another`."""
        if new.answers and new.answers == old.answers:
            return words_of(new.text) != words_of(old.text)
        kinds = new.values.keys() & old.values.keys()
        changed = new.changed or (bool(kinds) and new.moves_from(old))
        kinds -= set() if changed else {"day"}
        if not any(new.values[kind] - old.values[kind] for kind in kinds):
            if new.values != old.values or not (changed or new.denies != old.denies):
                return False
            return _contradicts(new, old) or _renames(new, old, self.asked)
        wanted, both = self.asked & old.words, new.words & old.words
        if _is_of_another(new, old, wanted, changed, only_day=kinds == {"day"}):
            return False
        shared = self._telling(new, old)
        if changed and not strict:
            dated = not kinds.isdisjoint(("date", "time", "day"))
            day = not weak and "date" in kinds and wanted <= new.words
            if shared or 2 <= len(both) >= len(old.words) / 2 or (day and both):
                return max(shared, 1) + dated > weak
        if weak:
            return False
        if len(both) == 1 and new.words == old.words and all(_MEASURED.search(s.text) for s in (new, old)):
            return True  # "Rent 1150 €", "Rent 1178 €"
        return shared >= max(2, _LIKE * min(len(new.words), len(old.words)))

    def _telling(self, new: _ValueSentence, old: _ValueSentence) -> int:
        """The number of common words that few texts have, or that both sentences have after a number."""
        both = new.words & old.words
        enough = len(both) > 1 or (self.asked and self.asked <= both)
        counted = new.counted & old.counted if enough else frozenset[str]()
        return sum(stem in counted or self._is_rare(stem) for stem in both)

    def _is_rare(self, stem: str) -> bool:
        if stem not in self._counted:
            prefix = f" {stem}" if stem.isascii() else stem
            self._counted[stem] = sum(prefix in text for text in self._texts)
        return self._counted[stem] <= max(4, len(self._texts) // 3)


def _is_of_another(
    new: _ValueSentence, old: _ValueSentence, wanted: frozenset[str], changed: bool, *, only_day: bool
) -> bool:
    """Whether a newer sentence is about something else than an older one, of which the query has the words
    `wanted`. Without a change it is if it has other words in place of these, or both have their own subjects.
    If they differ in a weekday alone, it has all of these and one word of its own at most. If they share one
    word, it is if its subject stands before that ("the garage rent") or is there instead of what is asked,
    a scanner where the printer is."""
    lacks, added, both = wanted - new.words, new.words - old.words, new.words & old.words
    if not changed and ((lacks and added) or _have_own_subjects(new, old)):
        return True
    if only_day and (lacks or len(added) > 1):
        return True
    if len(both) != 1 or not new.subject or new.subject in old.words:
        return False
    compound = rf"\b{re.escape(new.subject)}\w*\s+{re.escape(min(both))}"
    return bool(lacks) or re.search(compound, new.text.casefold()) is not None


def _have_own_subjects(one: _ValueSentence, other: _ValueSentence) -> bool:
    """Whether two sentences are about different things, by their beginnings: production, staging."""
    return one.subject not in other.words and other.subject not in one.words


def _contradicts(new: _ValueSentence, old: _ValueSentence) -> bool:
    """Whether just one of two similar sentences is negated, or the new one changes the name."""
    renamed = new.denies == old.denies
    if renamed and (not (new.names and old.names) or new.names & old.names or not new.changed):
        return False
    if new.text.rstrip().endswith(("?", "？")):
        return False
    fewer = min(len(new.beginnings), len(old.beginnings))
    if new.text.isascii() and old.text.isascii() and 2 * len(new.beginnings & old.beginnings) < fewer:
        return False  # most pairs; comparing stems takes ten times as long
    mine, theirs = new.claimed, old.claimed
    if renamed:
        mine, theirs = mine - new.names, theirs - old.names
    shared = len(mine & theirs)
    return shared >= 2 and shared >= _OPPOSITE * max(len(mine), len(theirs))


def _renames(new: _ValueSentence, old: _ValueSentence, asked: frozenset[str]) -> bool:
    """Whether the new sentence states a change and gives one other name for what is asked for: "My doctor is
    Dr Salvi", "I changed doctor: now I see Dr Pini"."""
    if not (new.changed and old.names and new.names - old.names):
        return False
    own = (asked & old.words) - old.names
    if not own or not own <= new.words - new.names:
        return False
    given = "|".join(map(re.escape, own))
    named = re.search(rf"\b(?:{given})\w*\s*(?:[:,=]|{_IS}\b)", new.text.casefold())
    return bool(named) and len(entities(new.text)) == 1 and not any(map(is_name, words_of(new.text)))


def _is_about(new: IndexItem, old: IndexItem, parts: Sequence[frozenset[str]], asked: frozenset[str]) -> bool:
    """Whether a newer item may be about what is asked for in an older one, whose statements have the words
    `parts`. If the one asked for has at least half of the query's words for itself, one of them is needed. A
    name of the query may be missing if others of its words are there, and no other name, which may be that of
    another statement."""
    best = max(parts, key=lambda words: len(words & asked), default=frozenset[str]())
    elsewhere = frozenset[str]().union(*(words for words in parts if words is not best))
    own = (best & asked) - elsewhere
    if parts[1:] and own and 2 * len(own) >= len(asked) and not _has_any(new, own):
        return False
    if not any(name & asked and not _has_any(new, name) for name in _names(old)):
        return True
    return _has_any(new, asked) and all(_has_any(old, name - (elsewhere - best)) for name in _names(new))


def _names(item: IndexItem) -> list[frozenset[str]]:
    """The stems of each name in an item, except in the reason it gives."""
    names = (*entities(_REASON.split(item.text)[0]), *item.entities)
    return [stems for name in names if (stems := _stems(name))]


def _has_any(item: IndexItem, stems: frozenset[str]) -> bool:
    """Whether an item has one of these stems."""
    text = " ".join((item.heading, item.text, *item.entities, *item.tags)).casefold()
    return any(stem in text for stem in stems)


def newer_first(found: list[Ranked], query: str = "") -> tuple[list[Ranked], dict[str, IndexItem]]:
    """(the candidates with each newer value before the older one, at its rank and with its score (the gain is
    the part `newer`), {key of the newer: the item it replaces})."""
    near = [
        one for rank, one in enumerate(found[:REPLACED_HITS])
        if one.item.day and not one.item.retired and (one.item.record != SESSION or rank < REPLACED_PASSAGES)
    ]  # fmt: skip
    texts = [f" {one.item.text.casefold()}" for one in near]
    stated = {
        one.item.key: _value_sentences(one.item.text, plain=False)
        if one.item.record == SESSION
        else _value_sentences(_in_digits(one.item.text, text))
        for one, text in zip(near, texts, strict=True)
    }

    moved, ended = _moves(near, texts, "new"), _moves(near, texts, "ended")
    every = [(rank, one, stated[one.item.key]) for rank, one in enumerate(near)]
    replacing = [row for row in every if any(each.may_replace for each in row[2])]
    compared, ordered = _Comparison(texts, query), list(found)
    asked = compared.asked
    replaced: dict[str, IndexItem] = {}
    for n, old, mine in every:
        passage = old.item.record == SESSION
        newer = [
            one for rank, one, theirs in (every if any(each.may_replace for each in mine) else replacing)
            if (one.item.day or "") >= (old.item.day or "") and _later(one.item, old.item)
            and _answers_too(one, old)
            and ((close := _close(one, old)) or n < REPLACED_PASSAGES)
            and any(
                compared.replaces(
                    a, b, strict=rank < n, weak=not (close or (passage and asked & b.words))
                )
                and (not passage or one.score >= _NEAR * old.score or _is_found_by(b, old.item, asked))
                for a in theirs for b in mine
            )
        ]  # fmt: skip
        parts = [part for each in mine for part in each.parts] if newer else []
        newer = [one for one in newer if _is_about(one.item, old.item, parts, asked)]
        newer += [one for one, moves in moved if _is_ended_by(moves, one, old, texts[n])]
        newer += [
            one for one, ends in ended if any(_ends(*each[1:4], one.item, old.item, asked) for each in ends)
        ]  # fmt: skip
        if newer:
            best = max(newer, key=lambda one: (one.item.record != SESSION, one.score))
            _move_before(ordered, best, old)
            known = replaced.get(best.item.key)
            # The first line of several is not what was replaced.
            one_line = old.item.record != SESSION and "\n" not in old.item.text
            if one_line and (known is None or _later(old.item, known)):
                replaced[best.item.key] = old.item
    return ordered, replaced


FEW_OTHERS = 2
"""Words besides its value in a text that states nothing else."""
FEW_CHARACTERS, READ_CHARACTERS = 14, 1000
"""In scripts without spaces, the characters besides both names in a text that states nothing else; characters
of a text that are read."""
_Move = tuple[str, str, str, str, str]
"""A language, and a row of `wording.moves`."""
_SPEAKING = frozenset("i we ich wir je nous yo nosotros ik wij eu nós io noi 私 僕 俺".split())  # noqa: SIM905
_WE = frozenset("we wir nous nosotros wij nós noi".split())  # noqa: SIM905
_UNNAMED = _WE | {"yo", "je"}
"""Speakers whom the older sentence may call by another word, or not at all."""
_DETERMINERS = frozenset(
    """
the my our der die das den mein meine meinen unser unsere unseren la le les mon ma notre el los las mi nuestro
nuestra o a os as meu minha nosso nossa il lo gli mio mia nostro nostra de het mijn ons onze
""".split()  # noqa: SIM905
)
_OUR_THING = tuple(f"{word} " for word in _DETERMINERS)
"""How a subject begins that may be a thing of ours: "we replaced Redis" ends "the cache is Redis"."""
_SOMEBODY = frozenset("he she they it this that er sie es das il elle ils elles ce él ella ellos 彼".split())  # noqa: SIM905


def _moves(near: Sequence[Ranked], texts: Sequence[str], sort: str) -> list[tuple[Ranked, list[_Move]]]:
    """[(hit, the moves of a sort that it states)], such as a change of jobs."""
    found = []
    for language in wording.move_languages("\n".join(texts)):
        for one, text in zip(near, texts, strict=True):
            if one.item.record != SESSION and language in wording.move_languages(text):
                moves = wording.moves(one.item.text[:READ_CHARACTERS], language, sort)
                found.append((one, [(language, *each) for each in moves]))
    return [(one, moves) for one, moves in found if moves]


def _is_ended_by(moves: Iterable[_Move], new: Ranked, old: Ranked, text: str) -> bool:
    """Whether the moves of a hit end the state in an older one, whose lower-case text is `text`. If the new
    hit names the old value ("left Initech"), or the old one states nothing else, it need not match the query:
    "Bob joined Bosch" has no word of "where does Bob work"."""
    if old.item.record == SESSION or not _later(new.item, old.item):
        return False
    close = _answers_too(new, old) and _close(new, old)
    same = new.item.speaker == old.item.speaker
    for language, what, who, now, before in moves:
        named = (before or who).casefold().split()
        if (before or not {*named} <= _UNNAMED) and not any(word in text for word in named):
            continue  # about somebody else, as most are
        for sort in ("held", "new"):
            for kind, whom, value, _ in wording.moves(old.item.text[:READ_CHARACTERS], language, sort):
                ended = _has_words(value, before) if before else kind == what
                ours = before and {*words_of(who)} <= _SPEAKING and whom.casefold().startswith(_OUR_THING)
                if ended and not _has_words(value, now) and (ours or _same_subject(who, whom, same)):
                    return close or bool(before) or _nothing_else(old.item.text, whom, value)
    return False


def _ends(what: str, who: str, thing: str, new: IndexItem, old: IndexItem, asked: frozenset[str]) -> bool:
    """Whether an older item is over since the speaker ended a thing, or somebody in it left the thing. It has
    all words of the thing: if that is its last word, and with it what it is about ("hosted at Hetzner"),
    or two of them, and the newer item has whatever it has of the query."""
    if old.record == SESSION or not _later(new, old):
        return False
    mine, theirs, things, subject = (_stems(text) for text in (new.text, old.text, thing, who))
    theirs -= _stems(" ".join(_DETERMINERS))
    speaking = {*words_of(who)} <= _SPEAKING and new.speaker == old.speaker
    if not things or not things <= theirs or not (speaking or (what == "left" and subject)):
        return False
    if not speaking or what == "left":
        return bool(subject) and subject <= theirs
    if len(things) > 1 and asked & theirs <= mine:
        return True
    others, names = theirs - things, _stems(" ".join(entities(old.text))) - things
    is_about = names & theirs <= mine and (len(others) <= FEW_OTHERS or not others.isdisjoint(mine))
    return is_about and _stems(words_of(old.text)[-1]) <= things


def _nothing_else(text: str, who: str, value: str) -> bool:
    """Whether a text has at most one content word besides the subject and the value, such as the verb."""
    if is_unspaced(text):
        return len(text) - len(who) - len(value) <= FEW_CHARACTERS
    rest = {*words_of(text)} - {*words_of(who), *words_of(value)} - STOP_WORDS - all_stop_words()
    return len(rest) <= 1


def _has_words(text: str, words: str) -> bool:
    """Whether a text contains these words as a phrase."""
    return f" {' '.join(words_of(words))} " in f" {' '.join(words_of(text))} "


def _same_subject(one: str, other: str, speaker: bool) -> bool:
    """Whether two subjects are the same: by name, or both the speaker."""
    mine, theirs = ({word for word in words_of(who) if word not in _DETERMINERS} for who in (one, other))
    if not mine or not theirs or mine & _SOMEBODY or theirs & _SOMEBODY:
        return False
    if mine & _SPEAKING or theirs & _SPEAKING:
        return speaker and mine == theirs
    return mine <= theirs or theirs <= mine


def _answers_too(new: Ranked, old: Ranked) -> bool:
    """Whether a hit may answer the query as the older one does: it is about the same names or has none, and
    contains the kind of answer if the older one does."""
    kind = new.parts.get("kind", 0) >= old.parts.get("kind", 0)
    return kind and (_as_named(new, old) or not new.item.entities)


def _is_found_by(sentence: _ValueSentence, passage: IndexItem, asked: frozenset[str]) -> bool:
    """Whether no other sentence of a passage has more of a query's stems."""
    mine = len(asked & sentence.words)
    return mine > 0 and all(len(asked & _stems(part)) <= mine for part in sentences(passage.text))


def _close(new: Ranked, old: Ranked) -> bool:
    """Whether a hit has at least half of the older one's score and is as much about the query's names."""
    return new.score >= old.score / 2 and _as_named(new, old)


def _as_named(new: Ranked, old: Ranked) -> bool:
    return new.parts.get("named", 0) >= old.parts.get("named", 0)


def _later(one: IndexItem, other: IndexItem) -> bool:
    """Whether an item was said later; on the same day, whether it is further down in the same file."""
    if one.day != other.day:
        return (one.day or "") > (other.day or "")
    return one.path == other.path and one.line > other.line


def _move_before(ranked: list[Ranked], new: Ranked, old: Ranked) -> None:
    """Move a hit directly before an older one that ranks higher, with its score."""
    rank_of = {one.item.key: n for n, one in enumerate(ranked)}
    target, at = rank_of[old.item.key], rank_of[new.item.key]
    if target < at:
        one, score = ranked.pop(at), ranked[target].score
        parts = {**one.parts, "newer": round(score - one.score, 4)}
        ranked.insert(target, one._replace(score=max(one.score, score), parts=parts))


# -- sources of beliefs ------------------------------------------------------------------------------------
# A belief is no more trustworthy than the facts it cites.


def with_origin_of_proofs(words: WordIndex, found: list[Ranked]) -> list[Ranked]:
    """The candidates; an observation of untrusted facts only, and an opinion that cites one, get the origin
    of such a fact, and with it its label and penalty. Beliefs that a person wrote keep theirs."""
    beliefs = {one.item.key: one.item for one in found if one.item.proofs and one.item.origin != "person"}
    if not beliefs:
        return found
    sources = _untrusted_sources(words, {proof for item in beliefs.values() for proof in item.proofs})
    inherited = {key: source for key, item in beliefs.items() if (source := _inherited_source(item, sources))}
    return [_with_source(one, inherited.get(one.item.key)) for one in found]


def _with_source(one: Ranked, source: Source | None) -> Ranked:
    return one._replace(item=replace(one.item, origin=source[0], client=source[1])) if source else one


Source = tuple[str, str | None]
"""An origin and a client."""


def _untrusted_sources(words: WordIndex, ids: Iterable[str]) -> dict[str, Source | None]:
    """{ref: the source of an untrusted fact, None for a trusted one} of the facts that exist."""
    found: dict[str, Source | None] = {}
    refs = frozenset(ids)
    for part in chunks(sorted({written_id(ref) for ref in refs})):
        query = f"SELECT id, origin, client, path FROM items WHERE id IN ({placeholders(part)})"
        for written, origin, client, path in words.db.execute(query, part):
            if (block := ref_of(path, written)) not in refs:
                continue
            if not wording.untrusted(origin, client or None, path):
                found[block] = None
            else:
                found.setdefault(block, (origin, client or None))
    return found


def _inherited_source(item: IndexItem, sources: dict[str, Source | None]) -> Source | None:
    known = [sources[proof] for proof in item.proofs if proof in sources]
    untrusted = [each for each in known if each]
    return untrusted[0] if untrusted and (item.record == "opinion" or len(untrusted) == len(known)) else None
