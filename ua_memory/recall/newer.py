"""Of two hits with different values for one thing the newer ranks before the older.

A sentence states a value if it has a number, date, time, channel or quotation. It replaces an older one if
it states a change ("now", "moved to") and shares a word that few of the hits have, or otherwise if it says
nearly the same. A fact also replaces an older one with nearly the same words if just one of them is
negated, or if it states a change and has other names. It says something of what is asked about in the older
one: a launch that is moved is no newer birthday, though one sentence has both, nor is Leo's lesson a newer
one of Mia's; "the lesson" is. Whoever moved, changed jobs or replaced one thing by another
(`wording.moves`) is no longer where an older fact says. A hit that matches the query much worse than the
older one must state a change and share two words with it, or one if the older value is in a passage's
sentence with a word of the query: a passage matches by all its sentences, a fact by one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import product
from typing import TYPE_CHECKING

from ua_memory.index.items import SESSION
from ua_memory.index.terms import IDLE, STOP_WORDS, all_stop_words, content_words, is_unspaced
from ua_memory.index.terms import words as words_of
from ua_memory.markdown.lines import FileKind, kind_of
from ua_memory.recall.arms import Ranked
from ua_memory.recall.dedupe import SPEAKER, is_quoted_in
from ua_memory.text import wording
from ua_memory.text.calendar import A_MONTH
from ua_memory.text.foreign_dates import is_name
from ua_memory.text.names import apart, entities, foreign_stop_words, in_lexicon, numerals
from ua_memory.text.patterns import Phrases
from ua_memory.text.questions import begins_question, word_stem
from ua_memory.text.wording import ANSWER_DASH, CHANGED, CHANGED_FOLDED, ENDED, Move, sentences

if TYPE_CHECKING:
    from ua_memory.index.items import IndexItem
    from ua_memory.text.wording import MoveSort


REPLACED_HITS, REPLACED_PASSAGES = 20, 10
"""Hits, best first, that are compared, and those among which sessions' passages are: a passage has ten times
the sentences of a fact."""
LATER_FIRST, LATER_FIRST_HITS = 0.8, 3
"""The score of a first fact, and that of a later one relative to it, from which on the later one goes first,
though it need not replace anything; and the hits among which it is looked for. Of 95 pairs of facts in which
something changed 66 have the later first, 56 without this; of 452 questions on four banks as many."""
ENDED_WORDS = 3
"""Words on either side of what says that something ended, among which this is named."""
_MIN_OVERLAP = 0.6
"""The minimum share of words in common with the older sentence if no change is stated."""
_MIN_RATIO_TO_PASSAGE = 0.7
"""The minimum score, relative to a passage, of a hit that replaces a sentence without a word of the query:
the passage was found by another of its sentences."""
_MIN_OVERLAP_NEGATED = 0.8
"""The minimum share of the longer sentence's words in common with one that contradicts it."""
_VALUE_KINDS = "date", "time", "weekday", "day", "name", "percent", "number"
"""The kinds of values, in the order in which they are looked for: a time is no number."""
_PHRASES = Phrases("value_phrases.txt", a_month=A_MONTH)
_NAMES = re.compile(r"[A-ZÄÖÜÉÁÍÓÚÑ](?<=[\w,] .)\w+")
"""Capitalised words that do not begin a sentence."""
_CLAUSES = re.compile(r"(?<=[,;])\s|(?<=\s)(?=(?:and|und|et|y|e)\s)")
_ASCII_WORD = re.compile(r"[a-z]\w\w+")
_UNITS = frozenset(
    """
number numbers nummer numéro número date dates datum fecha fechas
euro euros dollar dollars percent prozent second seconds minute minutes hour hours day days week weeks month
months year years stunde stunden tag tage woche wochen monat monate jahr jahre heure heures jour jours semaine
mois an ans hora horas día días semana mes meses año años dia dias mês ano anos ora ore giorno giorni
settimana settimane mese mesi anno anni uur uren dag dagen weken maand maanden jaar jaren segundo segundos
secondo secondi minuto minutos minuti seconde seconden minuut minuten data numero procent
""".split()  # noqa: SIM905
)
_CODE_NAME = re.compile(r"`([a-z]+(?:[._-][a-z]+)+)`", re.IGNORECASE)
"""A name in code of several words, which is that of a thing: `nightly_ingest`, `events.raw`."""
_COUNTED = re.compile(r"\d (\w{3,})")
"""A noun after a number."""
_DAY_NUMBER = re.compile(r"\d{1,2}(?=\W|st|nd|rd|th)")
_COSTS = frozenset("cost pric kost prei prix coût coûte cues cuest cust prec prez preç prij".split())  # noqa: SIM905
"""Stems of words for what something costs; a sum says as much."""
_ARROW = re.compile(r"\d\s*(?:→|[-=]>)")
_GENERAL = frozenset(
    "use used call name run runn take have keep work live stay held last dura dure heiß nenn wohn".split()  # noqa: SIM905
)
"""Stems of words that say only how a thing is said to be something: the wifi is *called* nest."""
_TABLE = re.compile(r"^(\|.*\|)[ \t]*\n\|[-:| ]+\|[ \t]*\n((?:\|.*\|[ \t]*(?:\n|\Z))+)", re.MULTILINE)
"""A table: its head, and its rows."""


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
    def folded(self) -> str:
        return self.text.casefold()

    @cached_property
    def stated(self) -> frozenset[str]:
        """All its values, as another sentence may name them."""
        return frozenset(value.rstrip(".") for some in self.values.values() for value in some)

    @cached_property
    def beginnings(self) -> frozenset[str]:
        """The first four letters of its words, except stop words: a cheap comparison before that of stems."""
        words = _ASCII_WORD.findall(self.folded)
        return frozenset(word[:4] for word in words if word not in STOP_WORDS)

    @cached_property
    def words(self) -> frozenset[str]:
        return self._own | _stems(CHANGED.sub(" ", self._before)) if self._leans else self._own

    @cached_property
    def _leans(self) -> bool:
        return len(self._own) <= 1

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
            if _PHRASES["may state"].search(part.casefold()):
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
        return CHANGED.sub(" ", self._rest) if self.says_change else self._rest

    @cached_property
    def unnegated(self) -> frozenset[str]:
        """The stems without negations."""
        denying = self.denies or not self.text.isascii()
        return _stems(_PHRASES["negated or polite"].sub(" ", self._bare)) if denying else self._own

    @cached_property
    def names(self) -> frozenset[str]:
        return _stems(" ".join(_NAMES.findall(self._rest)))

    @cached_property
    def denies(self) -> bool:
        return _PHRASES["negated"].search(self.folded) is not None

    @cached_property
    def ended(self) -> bool:
        """Whether it says that something ended or gave way."""
        return ENDED.search(self.folded) is not None

    @cached_property
    def changed(self) -> bool:
        if self.says_change or not (self._before and self._same_speaker):
            return self.says_change
        return CHANGED_FOLDED.search(self._before.casefold()) is not None and self._leans

    @cached_property
    def says_change(self) -> bool:
        """Whether it states a change, outside of its reason: "slow because 57 dropped the index"."""
        return CHANGED_FOLDED.search(_PHRASES["reason clause"].sub(" ", self.folded)) is not None

    def leaves_value_of(self, old: _ValueSentence) -> bool:
        """Whether it names a value of an older sentence as what is left: "from 13 December to", "no more
        Mondays"."""
        text = self.folded
        return any(
            _PHRASES["left before"].search(_before(text, start)) or _PHRASES["left behind"].match(text, end)
            for start, end in self._places_of_values(old)
        )

    def denied_value_of(self, old: _ValueSentence) -> str:
        """The value of an older sentence that it names as wrong, '' for none: "14, not 12"; of a date also
        the day alone: "on 18 January and not on the 15th"."""
        text, dates = self.folded, old.values.get("date", ()) if "date" in self.values else ()
        days = {found[0]: one for one in dates if (found := _DAY_NUMBER.match(one))}
        named = [(_before(text, at), text[at:to]) for at, to in self._places_of_values(old)]
        if days:
            alone = (day for day in _PHRASES["day alone"].finditer(text) if day[1] in days)
            named += [(_before(text, day.start()), days[day[1]]) for day in alone]
        return next((value for before, value in named if _PHRASES["denied before"].search(before)), "")

    def _places_of_values(self, old: _ValueSentence) -> Iterator[tuple[int, int]]:
        """Yield where it has the values of an older sentence."""
        text = self.folded
        for found in (at for one in old.stated if one in text for at in re.finditer(re.escape(one), text)):
            if not text[: found.start()][-1:].isalnum() and not text[found.end() :][:1].isalnum():
                yield found.span()

    @cached_property
    def answers(self) -> frozenset[str]:
        """The words of the question that it answers, as in "Which port does staging use? – 6543"."""
        at = ANSWER_DASH.search(self.text)
        return frozenset(words_of(CHANGED.sub(" ", self.text[: at.start()]))) if at else frozenset()

    @cached_property
    def may_replace(self) -> bool:
        """Whether it may replace another sentence. Of two that may not, neither replaces the other."""
        return bool(self.values or self.answers) or self.denies or (bool(self.names) and self.changed)


def _is_measured(text: str) -> bool:
    """Whether a text has a number with its unit."""
    return _PHRASES["measured"].search(text) is not None


def _before(text: str, at: int) -> str:
    """What stands before a place: not all of it, or a table of 15,000 numbers takes a minute."""
    return text[max(0, at - 300) : at]


@lru_cache(maxsize=1024)  # what is found once is often found again
def _value_sentences(text: str, plain: bool = True) -> Sequence[_ValueSentence]:
    """The sentences of a text that state a value; with `plain` all of them."""
    found, before = list[_ValueSentence](), ""
    rows = _TABLE.sub(
        lambda at: "".join(f"{at[1]}{row}\n" for row in at[2].splitlines()), SPEAKER.sub("", text)
    )
    for part in sentences(rows):
        bare, values = part, dict[str, frozenset[str]]()
        for kind in _VALUE_KINDS if _PHRASES["may state"].search(part.casefold()) else ():
            if matches := frozenset(match.casefold() for match in _PHRASES[kind].findall(bare)):
                values[kind] = matches
                bare = _PHRASES[kind].sub(" ", bare)
        bare += " ".join(_CODE_NAME.findall(part))
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
    words = filter(_is_content_word, content_words(text))
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


_NO_OTHER_VALUE = "it states no other value, and neither the contrary nor another name"


class _Comparison:
    """The hits of a query that are compared (`near`), and the rules by which one replaces another. A rank is
    one among these hits."""

    def __init__(self, found: Sequence[Ranked], query: str) -> None:
        self.near = [
            one for rank, one in enumerate(found[:REPLACED_HITS])
            if not one.item.retired
            and (one.item.record != SESSION or rank < REPLACED_PASSAGES)
        ]  # fmt: skip
        self.asked, self._counted = _stems(IDLE.sub(" ", query)), dict[str, int]()
        self._texts = [f" {one.item.text.casefold()}" for one in self.near]
        self._dated = [text for one, text in zip(self.near, self._texts, strict=True) if one.item.day]
        self._stated = [
            _value_sentences(one.item.text, plain=False)
            if one.item.record == SESSION
            else _value_sentences(_in_digits(one.item.text, text))
            for one, text in zip(self.near, self._texts, strict=True)
        ]
        self._denying = [
            [each for each in stated if each.values and _PHRASES["denies"].search(each.folded)]
            for stated in self._stated
        ]
        self._may_replace = [
            any(
                each.may_replace or (one.item.record != SESSION and (each.ended or each.changed))
                for each in stated
            )
            for one, stated in zip(self.near, self._stated, strict=True)
        ]
        self._able = [rank for rank, may in enumerate(self._may_replace) if may]
        moving = _moving(self.near, self._texts)
        self._moved, self._ended = (_moves(moving, sort) for sort in ("new", "ended"))

    def newer(self, n: int) -> list[Ranked]:
        """The hits that replace the one at rank `n`: by a value, by a move, or by an end of what it says."""
        old, text = self.near[n], self._texts[n]
        ranks = range(len(self.near)) if self._may_replace[n] else self._able
        found = [
            self.near[rank]
            for rank in ranks
            if _later(self.near[rank].item, old.item) and not self.why_not(rank, n)
        ]
        for one, language, moves in self._moved if old.item.day else ():
            found += [one] if _ends_by_moving(moves, language, one, old, text) else []
        ended = ((one, move) for one, _, moves in self._ended if old.item.day for move in moves)
        return found + [one for one, move in ended if _ends_by_leaving(move, one.item, old.item, self.asked)]

    def all_newer(self) -> list[list[Ranked]]:
        """For each rank the hits that replace it; for a passage also those that replace a fact in it, if it
        was found by this fact's sentence."""
        own = [self.newer(n) for n in range(len(self.near))]
        return [newer or self._newer_than_quoted(n, own) for n, newer in enumerate(own)]

    def _newer_than_quoted(self, n: int, newer: Sequence[list[Ranked]]) -> list[Ranked]:
        passage = self.near[n].item
        if passage.record != SESSION:
            return []
        facts = ((rank, one.item) for rank, one in enumerate(self.near) if one.item.record != SESSION)
        quoted = [rank for rank, fact in facts if is_quoted_in(fact, passage)]
        found = [
            rank
            for rank in quoted
            if newer[rank]
            and (rank == quoted[0] or any(_is_found_by(s, passage, self.asked) for s in self._stated[rank]))
        ]
        return [one for rank in found for one in newer[rank] if one.item.key != passage.key]

    def why_not(self, rank: int, n: int) -> str:
        """Why a hit does not replace one that was said earlier by a value, '' if it does. A note without a
        day may be younger: it is replaced only by what names its value as wrong."""
        one, old, why = self.near[rank], self.near[n], "it states no value"
        if any(self._corrects(*pair) for pair in product(self._denying[rank], self._stated[n])):
            return ""
        if not old.item.day:
            return "the other has no day, and it does not say that its value is wrong"
        if not _answers_too(one, old):
            return "it is about other names, or has no such answer"
        close, passage = _is_close(one, old), old.item.record == SESSION
        facts = SESSION not in (one.item.record, old.item.record)
        same_day = one.item.date == old.item.date != one.item.day
        if not close and n >= REPLACED_PASSAGES:
            return "it matches the query much worse"
        for new, said in product(self._stated[rank], self._stated[n]):
            worse = not (close or (passage and self.asked & said.words))
            why = self._why_no_newer(
                new, said, ranks_first=rank < n, matches_worse=worse, facts=facts, same_day=same_day
            )
            if why:
                continue
            near = not passage or one.score >= _MIN_RATIO_TO_PASSAGE * old.score
            if near or _is_found_by(said, old.item, self.asked):
                parts = [part for each in self._stated[n] for part in each.parts]
                about = _is_about(one.item, old.item, parts, self.asked)
                return "" if about else "it is not about what is asked for"
            why = "the passage was found by another sentence"
        return why

    def _corrects(self, new: _ValueSentence, old: _ValueSentence) -> bool:
        """Whether a sentence gives another value, names that of an older one as wrong, and shares a word, or
        two if it is a small number: "the hall opens at 9, not 12" says nothing of 12 chairs in the hall; or
        all that is asked for, which many texts may have."""
        other = any(new.values[kind] - old.values[kind] for kind in new.values.keys() & old.values.keys())
        denied = new.denied_value_of(old) if other else ""
        if not denied:
            return False
        all_asked = len(self.asked) > 1 and self.asked <= new.words & old.words
        least = 1 if len(denied) > 2 else 2
        return all_asked or self._count_distinctive(new, old) >= least

    def are_related(self, rank: int, n: int) -> bool:
        """Whether two hits share a word, or the one states a move."""
        pairs = product(self._stated[rank], self._stated[n])
        moved = any(each is self.near[rank] for each, *_ in self._moved)
        return moved or any(not new.words.isdisjoint(old.words) for new, old in pairs)

    def _why_no_newer(
        self,
        new: _ValueSentence,
        old: _ValueSentence,
        *,
        ranks_first: bool,
        matches_worse: bool,
        facts: bool,
        same_day: bool,
    ) -> str:
        """Why a sentence does not replace an older one, '' if it does. If its hit `ranks_first`, most words
        must be shared, even if it states a change; if that `matches_worse`, it must state a change and share
        two words, or one and a date. Another date needs one shared word and all of the query's words that the
        older sentence has. Another number without a stated change needs most words of the longer sentence:
        explanations repeat those of what they explain."""
        if facts and (self._ends(new, old) or self._turns_into(new, old)):
            return ""
        if new.answers and new.answers == old.answers:
            return "it gives the same answer" if words_of(new.text) == words_of(old.text) else ""
        kinds = {*new.values} & {*old.values}
        if "day" in new.values and "weekday" in old.values and new.changed:
            kinds.add("day")  # "legs moved to Thursday" from "legs on Mondays"
        if not kinds and (new.values or old.values):  # most pairs
            return _NO_OTHER_VALUE
        changed = bool(kinds) and (new.changed or new.leaves_value_of(old))
        kinds -= set() if changed else {"day"}
        if same_day and len(new.values.get("date", ())) == 1 == len(old.values.get("date", ())):
            kinds -= {"date"}  # "January 20", "2027-01-20"
        if not any(new.values[kind] - old.values.get(kind, frozenset()) for kind in kinds):
            may = new.values == old.values and (changed or new.denies != old.denies or new.changed)
            return "" if may and _contradicts(new, old) else _NO_OTHER_VALUE
        same = bool(old.counted) and old.counted <= new.counted and old.stated <= new.stated
        if same and not new.leaves_value_of(old):
            return "it counts the same"  # "all 6 projectors run 4.3" replaces nothing of 6 projectors
        wanted, both = self.asked & old.words, new.words & old.words
        if _is_of_another(new, old, self.asked, changed, only_day=kinds == {"day"}, strict=not facts):
            return "its value is of something else"
        shared = self._count_distinctive(new, old)
        if changed and not ranks_first:
            dated = not kinds.isdisjoint(("date", "time", "day"))
            day = not matches_worse and "date" in kinds and wanted <= new.words
            all_asked = len(self.asked) > 1 and self.asked <= both
            all_asked = all_asked or (new.subject in self.asked and self.asked - _GENERAL <= both)
            if shared or all_asked or 2 <= len(both) >= len(old.words) / 2 or (day and both):
                enough = max(shared, 1) + dated >= (2 if matches_worse else 1)
                return "" if enough else "it matches the query much worse, and shares one word"
        if matches_worse:
            return "it matches the query much worse, and does not replace it in so many words"
        if len(both) == 1 and new.words == old.words and _is_measured(new.text) and _is_measured(old.text):
            return ""  # "Rent 1150 €", "Rent 1178 €"
        size = max if kinds == {"number"} and not changed else min
        enough = shared >= max(2, _MIN_OVERLAP * size(len(new.words), len(old.words)))
        return "" if enough else "it shares too few words, and states no change of that"

    def _ends(self, new: _ValueSentence, old: _ValueSentence) -> bool:
        """Whether a sentence names what an older one gives as the answer, says that it ended or gave way, and
        something else: "Frau Krüger is on leave, Herr Özdemir teaches Lena's class"."""
        if not new.ended or new.beginnings.isdisjoint(old.beginnings):  # most pairs
            return False
        wanted, named = self.asked & old.words, (old.words - self.asked) & new.words
        if not (named and new.words - old.words - self.asked and self._is_asked(wanted)):
            return False
        theirs = _stems(" ".join(entities(old.text)))
        if named & theirs and not (new.names - theirs or wanted <= new.words):
            return False
        begins = _stems(" ".join(words_of(new.text)[:2]))
        if wanted.isdisjoint(new.words) and named.isdisjoint(theirs & begins):
            return False
        text = new.folded
        around = (
            [*words_of(text[: at.start()])[-ENDED_WORDS:], *words_of(text[at.end() :])[:ENDED_WORDS]]
            for at in ENDED.finditer(text)
        )
        return any(not named.isdisjoint(_stems(" ".join(words))) for words in around)

    def may_be_outdated(self, one: Ranked) -> bool:
        """Whether a hit is a fact of a day: no passage, note or turn of a conversation."""
        return one.item.record == "fact" and bool(one.item.day) and not one.item.speaker and one in self.near

    def kinds(self, one: Ranked) -> set[str]:
        """The kinds of values that a hit states."""
        return {kind for sentence in self._stated[self.near.index(one)] for kind in sentence.values}

    def _is_asked(self, words: frozenset[str]) -> bool:
        """Whether these are half of the words that are asked for."""
        return bool(words) and 2 * len(words) >= len(self.asked - _GENERAL)

    def _turns_into(self, new: _ValueSentence, old: _ValueSentence) -> bool:
        """Whether a sentence says that what is asked for, of which an older one says something, turned into
        something else: "office wifi renamed to kestrel"; or is something else now, in the same words. The
        older one has whatever the newer has of the query: the portal's port is not the portal."""
        if not new.changed or new.beginnings.isdisjoint(old.beginnings):  # most pairs
            return False
        wanted = (self.asked & old.words) - _GENERAL
        same = self._is_asked(wanted) and wanted == (self.asked & new.words) - _GENERAL
        if not (same and new.words - old.words - self.asked):
            return False
        if turned := _PHRASES["turned"].search(new.folded):
            after = words_of(new.folded[turned.end() :])
            if after and (after[0][0].isdigit() or is_name(after[0])):
                return False  # "moved to Friday", "to 5200": values are compared with those of their kind
            stems = (stem for word in after for stem in _stems(word))
            return next(stems, "") not in {"", *old.words}
        sides = [_PHRASES["copula"].split(each.text, maxsplit=1) for each in (new, old)]
        mine, theirs = (_stems(side[0]) if side[1:] else frozenset[str]() for side in sides)
        return bool(mine) and mine == theirs and wanted <= mine

    def _count_distinctive(self, new: _ValueSentence, old: _ValueSentence) -> int:
        """The number of common words that few dated texts have, or that are counted in both sentences."""
        both = new.words & old.words
        enough = len(both) > 1 or (self.asked and self.asked <= both)
        counted = new.counted & old.counted if enough else frozenset[str]()
        return sum(stem in counted or self._is_rare(stem) for stem in both)

    def _is_rare(self, stem: str) -> bool:
        if stem not in self._counted:
            prefix = f" {stem}" if stem.isascii() else stem
            self._counted[stem] = sum(prefix in text for text in self._dated)
        return self._counted[stem] <= max(4, len(self._dated) // 3)


def _is_of_another(
    new: _ValueSentence,
    old: _ValueSentence,
    asked: frozenset[str],
    changed: bool,
    *,
    only_day: bool,
    strict: bool,
) -> bool:
    """Whether a newer sentence is about something else than an older one, of which some words are `asked`
    for:

    - without a change in its own words ("not until 9" is none): it has other words in place of these;
    - without any change: both have their own subjects;
    - only the weekday differs: it lacks one of these, or has two words of its own;
    - they share one word: its subject stands before that ("the garage rent"), or in place of what is asked, a
      scanner where the printer is. Unless `strict`, a sentence that states a change may lack what does not
      stand before that word: "retention for logs raised" lacks "kept"."""
    wanted, added, both = asked & old.words, new.words - old.words, new.words & old.words
    lacks = wanted - new.words
    lacks -= _COSTS if _is_measured(new.text) else set()
    sure = changed and (new.says_change or _ARROW.search(new.text))
    if not sure and lacks and added:
        return True
    if not changed and _have_own_subjects(new, old):
        return True
    if only_day and (lacks or len(added) > 1):
        return True
    if len(both) != 1 or not new.subject or new.subject in old.words or _PHRASES["limit"].match(new.text):
        return False
    compound = rf"\b{re.escape(new.subject)}\w*\s+{re.escape(min(both))}"
    kind = "|".join(map(re.escape, lacks))
    qualified = lacks and (
        not sure or strict or re.search(rf"\b(?:{kind})\w*\s+{re.escape(min(both))}", old.folded)
    )
    return bool(qualified) or re.search(compound, new.folded) is not None


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
    mine, theirs = new.unnegated, old.unnegated
    if renamed:
        mine, theirs = mine - new.names, theirs - old.names
    shared = len(mine & theirs)
    return shared >= 2 and shared >= _MIN_OVERLAP_NEGATED * max(len(mine), len(theirs))


def _is_about(new: IndexItem, old: IndexItem, parts: Sequence[frozenset[str]], asked: frozenset[str]) -> bool:
    """Whether a newer item may be about what is asked for in an older one, whose statements have the words
    `parts`. It has one of the query's words that only the statement asked for has, if these are half of the
    query. It has the older one's names that are asked for; or else another word of the query, and no name
    that the older one has in its other statements alone, or not at all."""
    best = max(parts, key=lambda words: len(words & asked), default=frozenset[str]())
    elsewhere = frozenset[str]().union(*(words for words in parts if words is not best))
    own = (best & asked) - elsewhere
    if parts[1:] and own and 2 * len(own) >= len(asked) and not _has_any(new, own):
        return False
    mine, theirs = _names(new), _names(old)
    if any(_has_another(*pair, asked) for pair in (*product(mine, [old]), *product(theirs, [new]))):
        return False
    if not any(name.keys() & asked and not _has_name(new, name.values()) for name in theirs):
        return True
    rest = ({name[stem] for stem in name.keys() - (elsewhere - best)} for name in mine)
    return _has_any(new, asked) and all(_has_name(old, words) for words in rest)


def _names(item: IndexItem) -> list[dict[str, str]]:
    """The words of each name in an item by their stems, except in the reason it gives."""
    names = (*entities(_PHRASES["reason"].split(item.text)[0]), *item.entities)
    found = (
        {stem: word for word in words_of(name) for stem in _stems(word)}
        for name in names
        if not _opens(name, item)
    )
    return [name for name in found if name]


def _opens(name: str, item: IndexItem) -> bool:
    """Whether a name is an English plural that only begins a text: Flights."""
    return item.text.startswith(f"{name} ") and name.endswith("s") and in_lexicon(name[:-1])


def _has_another(name: Mapping[str, str], item: IndexItem, asked: frozenset[str]) -> bool:
    """Whether an item has, in place of a name that is asked for, a word that only begins like it: Paula where
    Paul is, the parish where Paris is."""
    stems = name.keys() & asked
    return bool(stems) and _has_any(item, stems) and not _has_name(item, [name[stem] for stem in stems])


def _has_name(item: IndexItem, words: Collection[str]) -> bool:
    """Whether an item has one of a name's words, in other letters than Latin its stem; a plural or genitive
    only if it begins with a capital."""
    text = apart(" ".join((item.heading, item.text, *item.entities, *item.tags)))
    if any(word > "ɏ" and word_stem(word) in text.casefold() for word in words):
        return True
    forms = (
        f"(?i:{w})|{w[0].upper()}(?i:{w[1:].removesuffix('s')})(?:e?s|e?n)?" for w in map(re.escape, words)
    )
    return any(re.search(rf"\b(?:{each})\b", text) for each in forms)


def _has_any(item: IndexItem, stems: Iterable[str]) -> bool:
    """Whether an item has one of these stems."""
    text = " ".join((item.heading, item.text, *item.entities, *item.tags)).casefold()
    return any(stem in text for stem in stems)


def newer_first(found: list[Ranked], query: str = "") -> tuple[list[Ranked], dict[str, IndexItem]]:
    """(the candidates with each newer value before the older one, at its rank and with its score (the gain is
    the part `newer`), {key of the newer: the item it replaces})."""
    compared, ordered = _Comparison(found, query), list(found)
    replaced: dict[str, IndexItem] = {}
    for old, newer in zip(compared.near, compared.all_newer(), strict=True):
        if newer:
            best = max(newer, key=lambda one: (one.item.record != SESSION, one.score))
            _move_before(ordered, best, old)
            known, asked = replaced.get(best.item.key), compared.asked
            if asked and not _has_any(old.item, asked) and not _is_close(old, best):
                continue  # what it replaces there is not what is asked for
            # The first line of several is not what was replaced.
            one_line = old.item.record != SESSION and "\n" not in old.item.text
            if one_line and (known is None or _later(old.item, known)):
                replaced[best.item.key] = old.item
    _put_later_first(ordered, compared, query)
    return ordered, replaced


def _put_later_first(ordered: list[Ranked], compared: _Comparison, query: str) -> None:
    """Move a later fact before the first one if both match a question well and share half of what it asks
    for: of facts about one thing the last usually says how it is now. It replaces nothing that is shown."""
    first = ordered[0] if ordered else None
    if first is None or first.parts.get("newer") or not compared.may_be_outdated(first):
        return
    kinds = compared.kinds(first)
    wanted = (compared.asked & _stems(first.item.text)) - _GENERAL
    if first.score < LATER_FIRST or not wanted or not begins_question(query):
        return
    for one in ordered[1:LATER_FIRST_HITS]:
        later = compared.may_be_outdated(one) and (one.item.day or "") > (first.item.day or "")
        kind = one.parts.get("kind", 0) >= first.parts.get("kind", 0)
        if not later or not kind or one.score < LATER_FIRST * first.score:
            continue
        same = not kinds or not kinds.isdisjoint(compared.kinds(one))
        if same and 2 * len(wanted & _stems(one.item.text)) >= len(wanted):
            return _move_before(ordered, one, first)


def replaced_first(found: list[Ranked], query: str) -> list[Ranked]:
    """The candidates with the older values of a thing before the valid one, the last of them first."""
    compared, ordered = _Comparison(found, query), list(found)
    pairs = [(old, newer) for old, newer in zip(compared.near, compared.all_newer(), strict=True) if newer]
    replaced = {old.item.key for old, _ in pairs}
    for old, newer in sorted(pairs, key=lambda pair: pair[0].item.day or "", reverse=True):
        for one in newer:
            first, second = (one, old) if one.item.key in replaced else (old, one)
            _move_before(ordered, first, second)
    return ordered


EXPLAINED = 3
"""Newer hits of which it is said why they do not replace an older one."""


def why_not_replaced(found: Sequence[Ranked], query: str, old: IndexItem) -> list[tuple[IndexItem, str]]:
    """[(item, why it does not replace an older one)] of the best candidates that were said later, and share a
    word with it or state a move."""
    compared = _Comparison(found, query)
    n = next((n for n, one in enumerate(compared.near) if one.item.key == old.key), None)
    ranks = [] if n is None else [k for k, one in enumerate(compared.near) if _later(one.item, old)]
    related = [rank for rank in ranks if compared.are_related(rank, n or 0)][:EXPLAINED]
    return [(compared.near[rank].item, why) for rank in related if (why := compared.why_not(rank, n or 0))]


FEW_OTHERS = 2
"""The most words besides the thing in what ends with it (`_ends_by_leaving`)."""
FEW_CHARACTERS = 14
"""In scripts without spaces, the characters besides both names in a text that states nothing else."""
READ_CHARACTERS = 1000
"""Characters of a text that are read for moves."""
_SPEAKING = frozenset("i we ich wir je nous yo nosotros ik wij eu nós io noi 私 僕 俺".split())  # noqa: SIM905
_WE = frozenset("we wir nous nosotros wij nós noi".split())  # noqa: SIM905
_IMPLIED_SPEAKERS = _WE | {"yo", "je"}
"""Speakers whom the older sentence may call by another word, or not at all."""
_DETERMINERS = frozenset(
    """
the my our der die das den mein meine meinen unser unsere unseren la le les mon ma notre el los las mi nuestro
nuestra o a os as meu minha nosso nossa il lo gli mio mia nostro nostra de het mijn ons onze
""".split()  # noqa: SIM905
)
_DETERMINER_PREFIXES = tuple(f"{word} " for word in _DETERMINERS)
"""How a subject begins that may be a thing of ours: "we replaced Redis" ends "the cache is Redis"."""
_SOMEBODY = frozenset("he she they it this that er sie es das il elle ils elles ce él ella ellos 彼".split())  # noqa: SIM905


def _moving(near: Sequence[Ranked], texts: Sequence[str]) -> list[tuple[Ranked, str]]:
    """[(hit, a language in which it may speak of a move)], by language."""
    facts = [(one, text) for one, text in zip(near, texts, strict=True) if one.item.record != SESSION]
    languages = wording.move_languages("\n".join(texts))
    return [(one, each) for each in languages for one, text in facts if wording.may_move(text, each)]


def _moves(moving: Iterable[tuple[Ranked, str]], sort: MoveSort) -> list[tuple[Ranked, str, list[Move]]]:
    """[(hit, language, the moves of a sort that it states in this)], such as a change of jobs."""
    found = []
    for one, language in moving:
        moves = list(wording.moves(one.item.text[:READ_CHARACTERS], language, sort))
        found += [(one, language, moves)] if moves else []
    return found


def _ends_by_moving(moves: Iterable[Move], language: str, new: Ranked, old: Ranked, text: str) -> bool:
    """Whether the moves of a hit end the state in an older one, whose lower-case text is `text`. If the new
    hit names the old value ("left Initech"), or the old one states nothing else, it need not match the query:
    "Bob joined Bosch" has no word of "where does Bob work"."""
    if old.item.record == SESSION or not _later(new.item, old.item):
        return False
    close = _answers_too(new, old) and _is_close(new, old)
    speaker = new.item.speaker == old.item.speaker
    sorts: tuple[MoveSort, ...] = ("held", "new")
    for move in moves:
        named = (move.old or move.who).casefold().split()
        if (move.old or not {*named} <= _IMPLIED_SPEAKERS) and not any(word in text for word in named):
            continue  # the older one mentions neither the value that is left nor who moved, as most do not
        for sort in sorts:
            for state in wording.moves(old.item.text[:READ_CHARACTERS], language, sort):
                ended = _has_words(state.new, move.old) if move.old else state.kind == move.kind
                ours = move.old and {*words_of(move.who)} <= _SPEAKING
                ours = ours and state.who.casefold().startswith(_DETERMINER_PREFIXES)
                same = ours or _same_subject(move.who, state.who, speaker)
                if same and ended and not _has_words(state.new, move.new):
                    return close or bool(move.old) or _nothing_else(old.item.text, state.who, state.new)
    return False


def _ends_by_leaving(move: Move, new: IndexItem, old: IndexItem, asked: frozenset[str]) -> bool:
    """Whether an older item is over since somebody in it left a thing, or the speaker ended it. It has all
    words of the thing: two, and the newer item has whatever it has of the query; or the last of it is one
    ("hosted at Hetzner"), and the newer item has what else it is about."""
    if old.record == SESSION or not _later(new, old):
        return False
    mine, theirs, things, subject = (_stems(text) for text in (new.text, old.text, move.new, move.who))
    theirs -= _stems(" ".join(_DETERMINERS))
    if not things or not things <= theirs:
        return False
    if move.kind == "left":
        return bool(subject) and subject <= theirs
    if move.kind == "gone":
        return asked & theirs <= mine
    if not ({*words_of(move.who)} <= _SPEAKING and new.speaker == old.speaker):
        return False
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
    contains the kind of answer if the older one does. A bare number may follow another: "prices: rye
    5.20", "rye is 5.60 now"."""
    kind = new.parts.get("kind", 0) >= old.parts.get("kind", 0) or not _is_measured(old.item.text)
    return kind and (_has_names_of(new, old) or not new.item.entities)


def _is_found_by(sentence: _ValueSentence, passage: IndexItem, asked: frozenset[str]) -> bool:
    """Whether no other sentence of a passage has more of a query's stems."""
    mine = len(asked & sentence.words)
    return mine > 0 and all(len(asked & _stems(part)) <= mine for part in sentences(passage.text))


def _is_close(new: Ranked, old: Ranked) -> bool:
    """Whether a hit has at least half of the older one's score and is as much about the query's names."""
    return new.score >= old.score / 2 and _has_names_of(new, old)


def _has_names_of(new: Ranked, old: Ranked) -> bool:
    return new.parts.get("named", 0) >= old.parts.get("named", 0)


def _later(one: IndexItem, other: IndexItem) -> bool:
    """Whether an item was said later; on the same day, whether it is further down in the same file. All of a
    document holds at one time: of its facts only messages, which have days, are later than others."""
    if one.day != other.day:
        return (one.day or "") > (other.day or "")
    at_one_time = kind_of(one.path) is FileKind.DOCUMENT and not (one.when and other.when)
    return one.path == other.path and one.line > other.line and not at_one_time


def _move_before(ranked: list[Ranked], new: Ranked, old: Ranked) -> None:
    """Move a hit directly before an older one that ranks higher, with its score."""
    rank_of = {one.item.key: n for n, one in enumerate(ranked)}
    target, at = rank_of[old.item.key], rank_of[new.item.key]
    if target < at:
        one, score = ranked.pop(at), ranked[target].score
        parts = {**one.parts, "newer": round(score - one.score, 4)}
        ranked.insert(target, one._replace(score=max(one.score, score), parts=parts))
