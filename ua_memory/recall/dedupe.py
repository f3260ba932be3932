"""Duplicates among hits, and the origin of observations."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from ua_memory.index.items import SESSION, chunks, placeholders
from ua_memory.index.terms import STOP_WORDS, all_stop_words, is_unspaced
from ua_memory.index.terms import words as words_of
from ua_memory.recall.arms import Ranked
from ua_memory.records import ref_of, written_id
from ua_memory.text import wording
from ua_memory.text.calendar import A_MONTH
from ua_memory.text.names import foreign_light, numerals
from ua_memory.text.wording import CHANGED

if TYPE_CHECKING:
    from ua_memory.index.items import IndexItem
    from ua_memory.index.words import WordIndex


# -- fold --------------------------------------------------------------------------------------------------
# From an order to what is shown: a belief stands for the facts it was made of, and one of those that say
# the same for all of them.
#
# **Observations.** A fact that an observation names as its proof goes under that observation, which takes
# the fact's place where it stood lower, if by itself it answers nearly as well (`NEARLY`): "Alice chooses
# by price" is no answer to when she moved. Whoever asks for kinds gets what they asked for, unfolded.
#
# **Alike** are two items of one kind with the same words in the same order, endings, case, signs and
# articles aside, or where one has all of the other's words and one in ten more, none a number, a name or a
# denial. Two that name different days are two events; what was retired and what holds are not the same. The
# first in the order stands. By this "cheap" and "dear" never fold: what contradicts must be seen.
#
# **Passages** of a session go under a fact that says or quotes what stands in them, if it answers as well.
# Of two with the same words a person's stands before an agent's, and the later before the earlier. A session
# that goes on after it was put into the bank has two files: of two passages of which one begins with all of
# the other the longer stands.
#
# Folded items are no loss: the hit names them, with their days.


NEARLY = 2 / 3
"""The share of a fact's score that an observation must reach by itself to stand for it."""
MORE = 10
"""One word in so many may be added by one of two texts that are alike."""
LONGEST = 200
"""Words that are compared; longer texts are alike if they are equal."""

QUOTED = 4
"""Words of a fact or its quote that a passage of a session must have to go under it."""

_SPEAKER = re.compile(r"^(?:Person|Agent): ", re.MULTILINE)
_SMALL = frozenset(("a", "an", "the"))
_DENIALS = frozenset("no not never none nor neither without cannot dont t".split())  # noqa: SIM905


@dataclass(slots=True)
class KeptHit:
    """A hit, confirmed in its file, and the items folded under it."""

    one: Ranked
    under: list[IndexItem] = field(default_factory=list)
    _rows: list[str] | None = None

    def quotable(self) -> list[str]:
        """What a fact says, and quotes, as `_spoken` has a passage's words; none of what is no fact."""
        if self._rows is None:
            item = self.one.item
            said = (item.text, *item.context.split("\n")) if item.record == "fact" else ()
            self._rows = [f" {' '.join(row)} " for row in map(words_of, said) if len(row) >= QUOTED]
        return self._rows

    def add(self, item: IndexItem) -> None:
        """Fold an item under it. Of two passages that say the same a person's stands, then the later, then
        the longer."""
        there = self.one.item
        if there.record == SESSION and _weight(item) > _weight(there):
            item, self.one = there, self.one._replace(item=item)
        self.under.append(item)


def folded(
    words: WordIndex,
    found: Sequence[Ranked],
    confirm: Callable[[IndexItem], IndexItem | None],
    limit: int,
    *,
    beliefs: bool,
) -> tuple[list[KeptHit], int]:
    """(the first `limit` of those found that stand for themselves; how many were nowhere in their files).

    `confirm` looks an item up in its file. With `beliefs` observations stand for their facts.
    """
    over = _over(found) if beliefs else {}
    kept: dict[str, KeptHit] = {}
    texts, missing = SeenTexts(words), 0
    for one in found:
        full = len(kept) >= limit
        belief = _belief(one, over, kept, full) if over else None
        if one.item.key in kept or (full and not belief and not texts.equal(one.item)):
            continue
        item = confirm(one.item)
        if item is None:
            missing += not full
            continue
        if belief and belief.item.key not in kept:
            there = confirm(belief.item)
            belief = _lifted(belief, one, there) if there else None
            if belief:
                kept[belief.item.key] = KeptHit(belief)
        above = kept[belief.item.key] if belief else texts.alike(item, full)
        above = above or _quoting(one, kept.values())
        if above:
            above.add(item)
        elif not full:
            kept[item.key] = KeptHit(one._replace(item=item))
            texts.add(kept[item.key])
    return list(kept.values()), missing


def _over(found: Sequence[Ranked]) -> Mapping[str, Ranked]:
    """{fact id: the best observation found that rests on it}, of those that still hold."""
    over: dict[str, Ranked] = {}
    for one in found:
        if one.item.record == "observation" and not one.item.retired:
            for proof in one.item.proofs:
                over.setdefault(proof, one)
    return over


def _belief(
    one: Ranked, over: Mapping[str, Ranked], kept: Mapping[str, KeptHit], full: bool
) -> Ranked | None:
    """The observation that stands for a fact, if there is one and it may."""
    found = over.get(one.item.ref or "") if one.item.record == "fact" and not one.item.retired else None
    if found is None or found.item.key in kept:
        return found
    return None if full or found.score < NEARLY * one.score else found


def _lifted(belief: Ranked, fact: Ranked, there: IndexItem) -> Ranked:
    """An observation in the place of its fact."""
    more = round(fact.score - belief.score, 6)
    return belief._replace(item=there, score=fact.score, parts={**belief.parts, "facts": more})


def _weight(passage: IndexItem) -> tuple[bool, str, int]:
    return not passage.own, passage.day or "", len(passage.text)


def _quoting(passage: Ranked, kept: Iterable[KeptHit]) -> KeptHit | None:
    """The fact, as good an answer as the passage of a session, that says or quotes what stands in it."""
    if passage.item.record != SESSION:
        return None
    said = _spoken(passage.item)
    for each in kept:
        own = each.one.score - each.one.parts.get("newer", 0)
        if own >= passage.score and any(row in said for row in each.quotable()):
            return each
    return None


def _spoken(item: IndexItem) -> str:
    """The words of a passage without its speakers, with a space around each."""
    return f" {' '.join(words_of(_SPEAKER.sub('', item.text)))} "


class SeenTexts:
    """The texts of the hits so far, to find duplicates."""

    def __init__(self, words: WordIndex) -> None:
        self._words = words
        self._by_text: dict[tuple[object, ...], KeptHit] = {}
        self._hashes: set[str] = set()
        self._read: list[tuple[list[str], list[str], KeptHit]] = []
        self._passages: list[KeptHit] = []

    def add(self, kept: KeptHit) -> None:
        self._by_text.setdefault(_exactly(kept.one.item), kept)
        self._hashes.add(kept.one.item.texthash)
        if kept.one.item.record == SESSION:
            self._passages.append(kept)
        words = _compared(kept.one.item)
        self._read.append((words, _begun(words), kept))

    def equal(self, item: IndexItem) -> bool:
        """Whether a hit so far has this very text."""
        return item.texthash in self._hashes and _exactly(item) in self._by_text

    def alike(self, item: IndexItem, exactly: bool) -> KeptHit | None:
        """The first hit so far that says the same, or has the very text."""
        found = self._by_text.get(_exactly(item))
        if found and _one_day(found.one.item, item):
            return found
        if item.record == SESSION:
            return next((each for each in self._passages if _goes_on(each.one.item, item)), None)
        read = [] if exactly else _compared(item)
        begun = _begun(read)
        for other, there, kept in self._read if read else ():
            # Stems are asked of SQLite; where words begin otherwise, so do their stems.
            if _added(begun, there) is not None and self._same(read, other, item, kept.one.item):
                return kept
        return None

    def _same(self, one: list[str], other: list[str], item: IndexItem, there: IndexItem) -> bool:
        if _class(item) != _class(there) or not _one_day(item, there):
            return False
        stems = self._words.vocabulary.stems({*one, *other})
        added = _added([stems[word] or word for word in one], [stems[word] or word for word in other])
        text = there.text if len(one) < len(other) else item.text
        return added is not None and all(_plain(stem, text) for stem in added)


def _goes_on(one: IndexItem, other: IndexItem) -> bool:
    """Whether two passages are of one session, and one begins with all words of the other."""
    if (one.client, one.session) != (other.client, other.session) or one.path == other.path:
        return False
    short, long = sorted((_spoken(one), _spoken(other)), key=len)
    return long.startswith(short)


def _compared(item: IndexItem) -> list[str]:
    """The words by which an item is held against others; none of a session's passage: it is no statement."""
    return [] if item.record == SESSION else _words(item.text)


def _words(text: str) -> list[str]:
    """The words that are compared; none where they are too many."""
    read = [word for word in words_of(text[: LONGEST * 20]) if word not in _SMALL]
    return read if len(read) <= LONGEST else []


def _begun(words: Sequence[str]) -> list[str]:
    return [word[:2] for word in words]


def _class(item: IndexItem) -> tuple[object, ...]:
    return item.record, item.kind, bool(item.retired)


def _exactly(item: IndexItem) -> tuple[object, ...]:
    return *_class(item), _spoken(item) if item.record == SESSION else item.texthash


def _one_day(one: IndexItem, other: IndexItem) -> bool:
    """Whether they do not name different days. A log's day is when it was said, which may be often."""
    return not (one.when and other.when) or one.when == other.when


def _added(one: Sequence[str], other: Sequence[str]) -> list[str] | None:
    """What the longer has beside all words of the shorter, in their order; None where they say otherwise."""
    short, long = (one, other) if len(one) < len(other) else (other, one)
    if not short or len(long) - len(short) > len(short) // MORE:
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


def _plain(stem: str, text: str) -> bool:
    """Whether an added word changes little: no number, no denial, no name."""
    if stem in _DENIALS or not stem.isalpha():
        return False
    return bool(re.search(rf"(?<!\w){re.escape(stem[:-1] or stem)}", text))


# -- replaced ----------------------------------------------------------------------------------------------
# Of two hits that give a value of one thing the newer stands before the older. A sentence gives a value where
# it has a number, a date, a time, a channel or something quoted. It replaces an older one if it says that
# something changed ("now", "moved to") and has a word in common that few of the hits have, or without such a
# word if it says nearly the same. A fact that has nearly all of its words in common with an older one
# replaces it, too, if only one of them denies, or if it says that something changed and has other names. Who
# moved, changed jobs or left one thing for another (`wording.moves`) is no longer where an older fact says.
# A fact that matches the query far worse than what it replaces must say that something changed, and have two
# words in common with it. What nothing replaces stays where it is.


REPLACING, PASSAGES = 40, 10
"""Hits, best first, among which newer values are looked for, and those among which passages of sessions are:
a passage has ten times the sentences of a fact."""
_LIKE = 0.6
"""The share of its words that a sentence has in common with an older one it replaces, where it does not say
that something changed."""
_NEAR = 0.7
"""The share of a passage's score that what replaces one of its sentences must reach, where that has no word
of the query: a passage has many, and is found by another."""
_OPPOSITE = 0.8
"""The share of the longer one's words that two sentences have in common of which one denies the other."""
_DENIES = re.compile(
    r"\b(?:not|never|no|cannot|\w+n[’']t|nicht|kein\w*|nie(?:mals)?|ne|pas|jamais|nunca|jamás)\b|\bn[’']|ません"
    r"|なかった|ない(?=[。、\s]|$)",
    re.IGNORECASE,
)
_DENYING = re.compile(rf"{_DENIES.pattern}|もう|ます", re.IGNORECASE)
"""What denies, and what Japanese has in the other form of the verb."""
_NAMES = re.compile(r"(?<=[\w,] )[A-ZÄÖÜÉÁÍÓÚÑ]\w+")
_LONGER = re.compile(r"[a-z]\w\w+")
_NUMBER = r"\d[\d.,:]*\d|\d"
_MONTHS = rf"(?:{A_MONTH}|okt|dez|mai|mär|avr|juin|juil|août|févr?|ene|abr|ago|dic|déc)[a-zéû]*\.?"
_OFTEN = (
    r"\b(?=[cdefjlmstw])(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days"
    r"|(?:every|each)\s+(?:mon|tues|wednes|thurs|fri|satur|sun)day"
    r"|(?:mon|diens|donners|frei|sams|sonn)tags|mittwochs|jeden\s+(?:\w+tag|mittwoch)"
    r"|(?:le|chaque)\s+(?:\w+di|dimanche)|(?:los|cada)\s+(?:lunes|martes|miércoles|jueves|viernes|sábados?|domingos?))\b"
)
"""A day of each week; one day of one week is a date. The first letters spare most words the rest."""
_AFTER_DAY = (
    r"\s*(?:[,;:!?)]|\.(?!\d)|$)"
    r"|\s+(?:now|instead|because|since|at|and|not|then|but|for|due|ipv|statt|wegen|und|jetzt)\b"
)  # fmt: skip
"""What follows on a day of the month, and not on the number of a floor or a try."""
_VALUES = {
    "date": re.compile(
        rf"\b{_MONTHS}\s+\d{{1,2}}(?:st|nd|rd|th)?\b(?:,?\s+\d{{4}}\b)?"
        rf"|\b\d{{1,2}}(?:\.|st|nd|rd|th)?\s+(?:de\s+|of\s+)?{_MONTHS}(?!\w)(?:\s+\d{{4}}\b)?"
        r"|\d{1,2}月\d{1,2}日|\b\d{4}-\d\d-\d\d\b|\b\d{1,2}[./]\d{1,2}\.(?!\d)"
        rf"|\b(?:by|until|end|bis|ende|avant|fin|finales\s+de)\s+(?:of\s+)?{_MONTHS}(?!\w)"
        rf"|\b(?:the|on|until|by|de)\s+\d{{1,2}}(?:st|nd|rd|th|e)(?={_AFTER_DAY})"
        rf"|\b(?:am|zum|den)\s+\d{{1,2}}\.(?={_AFTER_DAY})",
        re.IGNORECASE,
    ),
    "time": re.compile(r"\b\d{1,2}:\d\d\b|\b\d{1,2}\s*(?:am|pm|uhr|h)\b|\d{1,2}時", re.IGNORECASE),
    "weekday": re.compile(_OFTEN, re.IGNORECASE),
    "name": re.compile(r"(?<!\w)#[a-z][\w-]+|`[^`\n]+`|[\"“„«「][^\"”“»」\n]{3,80}[\"”“»」]", re.IGNORECASE),
    "number": re.compile(rf"(?:{_NUMBER})|\b(?:once|twice)\s+an?\b", re.IGNORECASE),
}
_UNITS = frozenset(
    """
euro euros dollar dollars percent prozent second seconds minute minutes hour hours day days week weeks month
months year years stunde stunden tag tage woche wochen monat monate jahr jahre heure heures jour jours semaine
mois an ans hora horas día días semana mes meses año años
""".split()  # noqa: SIM905
)
_COUNTED = re.compile(r"\d (\w{3,})")
"""A word that a number counts."""
_MAY_STATE = re.compile(
    rf"[\d#`\"“„«「]|\b(?:once|twice|by|until|end|bis|ende|avant|fin)\b|{_OFTEN}", re.IGNORECASE
)
_LEANS = re.compile(r"(?:its|it['’]s|it is|that['’]?s|c['’]est|das ist|het is)\b", re.IGNORECASE)
"""How a sentence begins whose subject stands in the one before."""
_SENTENCES = re.compile(r"(?<=[.!?…])(?<!\b\d\.)(?<!\b\d\d\.)\s+|(?<=[。！？])|\n+")


class _Stated:
    """A sentence that gives values, by their kind. Its other words by their stems, and whether it says that
    something changed, are looked at where the values of two sentences differ. One that says nothing else
    ("it's the 13th now") is about what the sentence `before` it is."""

    def __init__(self, text: str, values: Mapping[str, frozenset[str]], rest: str, before: str) -> None:
        self.text, self.values, self._rest, self._before = text, values, rest, before

    @cached_property
    def beginnings(self) -> frozenset[str]:
        """Of the longer words, of which equal stems have the same."""
        return frozenset(word[:4] for word in _LONGER.findall(self.text.casefold()) if word not in STOP_WORDS)

    @cached_property
    def words(self) -> frozenset[str]:
        alone = len(self._own) <= 1 or _LEANS.match(self.text)
        return self._own | _stems(CHANGED.sub(" ", self._before)) if alone else self._own

    @cached_property
    def counted(self) -> frozenset[str]:
        """What its numbers count: amps, sacks, nights."""
        return _stems(" ".join(_COUNTED.findall(self.text)))

    @cached_property
    def _own(self) -> frozenset[str]:
        return _stems(self._bare)

    @cached_property
    def _bare(self) -> str:
        return CHANGED.sub(" ", self._rest) if self.changed else self._rest

    @cached_property
    def claimed(self) -> frozenset[str]:
        """The words without those that deny."""
        denying = self.denies or not self.text.isascii()
        return _stems(_DENYING.sub(" ", self._bare)) if denying else self._own

    @cached_property
    def names(self) -> frozenset[str]:
        return _stems(" ".join(_NAMES.findall(self._rest)))

    @cached_property
    def denies(self) -> bool:
        return _DENIES.search(self.text) is not None

    @cached_property
    def changed(self) -> bool:
        return CHANGED.search(self.text) is not None

    @cached_property
    def tells(self) -> bool:
        """Whether it can replace another sentence, or be replaced by one that cannot."""
        return bool(self.values) or self.denies or (bool(self.names) and self.changed)


def _stated(text: str, plain: bool = True) -> list[_Stated]:
    """The sentences of a text that give a value, and those that may be denied (`plain`)."""
    found, before = list[_Stated](), ""
    for part in filter(None, _SENTENCES.split(_SPEAKER.sub("", text))):
        bare, values = part, dict[str, frozenset[str]]()
        for kind, pattern in _VALUES.items() if _MAY_STATE.search(part) else ():
            if there := frozenset(match.casefold() for match in pattern.findall(bare)):
                values[kind] = there
                bare = pattern.sub(" ", bare)
        if values or plain:
            found.append(_Stated(part, values, bare, before))
        before = bare
    return found


def _in_digits(text: str, folded: str) -> str:
    """A text with its numbers in digits."""
    for word in numerals().keys() & set(folded.split()):
        text = re.sub(rf"\b{word}\b", str(numerals()[word]), text, flags=re.IGNORECASE)
    return text


def _stems(text: str) -> frozenset[str]:
    found = (word.removesuffix("ing") if len(word) > 6 else word for word in words_of(text) if _tells(word))
    return frozenset(word[: max(4, len(word) - 2)] for word in found)


def _tells(word: str) -> bool:
    return (
        not word[0].isdigit()
        and word not in STOP_WORDS
        and word not in foreign_light()
        and word not in _UNITS
        and (len(word) > 2 or not word.isascii())
    )


def _replaces(
    new: _Stated,
    old: _Stated,
    rare: Callable[[str], bool],
    sure: bool = False,
    far: bool = False,
    asked: frozenset[str] = frozenset(),
) -> bool:
    """Whether a sentence gives another value than an older one; `sure` asks for most of its words even if it
    says that something changed, `far` that it says so and has two words in common, or one and a date. Another
    date needs one word in common, and all of the query's words (`asked`) that the older one has."""
    differs = (new.values[kind] - values for kind, values in old.values.items() if kind in new.values)
    if not any(differs):
        return new.values == old.values and _contradicts(new, old)
    both = new.words & old.words
    shared = {word for word in both if rare(word) or (len(both) > 1 and word in new.counted & old.counted)}
    if new.changed and not sure:
        kinds = new.values.keys() & old.values.keys()
        dated = not kinds.isdisjoint(("date", "time"))
        day = not far and "date" in kinds and asked & old.words <= new.words
        if shared or 2 <= len(both) >= len(old.words) / 2 or (day and both):
            return max(len(shared), 1) + dated > far
    if far:
        return False
    return len(shared) >= 2 and len(shared) >= _LIKE * min(len(new.words), len(old.words))


def _contradicts(new: _Stated, old: _Stated) -> bool:
    """Whether a sentence says the opposite of another one, or the same of another name from now on."""
    renamed = new.denies == old.denies
    if renamed and (not new.changed or not (new.names and old.names) or new.names & old.names):
        return False
    if new.text.rstrip().endswith(("?", "？")):
        return False
    begun = min(len(new.beginnings), len(old.beginnings))
    if new.text.isascii() and old.text.isascii() and 2 * len(new.beginnings & old.beginnings) < begun:
        return False  # most pairs; their stems take ten times as long
    mine, theirs = new.claimed, old.claimed
    if renamed:
        mine, theirs = mine - new.names, theirs - old.names
    shared = len(mine & theirs)
    return shared >= 2 and shared >= _OPPOSITE * max(len(mine), len(theirs))


def newer_first(found: list[Ranked], query: str = "") -> tuple[list[Ranked], dict[str, IndexItem]]:
    """The candidates, best first, with each newer value before the older one that it replaces, in its place
    and with its score (what that adds is the part `newer`); and {key of the newer: what it replaces}."""
    near = [
        one for rank, one in enumerate(found[:REPLACING])
        if one.item.day and not one.item.retired and (one.item.record != SESSION or rank < PASSAGES)
    ]  # fmt: skip
    texts = [f" {one.item.text.casefold()}" for one in near]
    stated = {
        one.item.key: _stated(one.item.text, plain=False)
        if one.item.record == SESSION
        else _stated(_in_digits(one.item.text, text))
        for one, text in zip(near, texts, strict=True)
    }

    counted: dict[str, int] = {}

    def rare(stem: str) -> bool:
        if stem not in counted:
            begun = f" {stem}" if stem.isascii() else stem
            counted[stem] = sum(begun in text for text in texts)
        return counted[stem] <= max(4, len(texts) // 3)

    moved = _moves(near, texts)
    # Most facts only say what is so: two of these are not compared.
    every = [(rank, one, stated[one.item.key]) for rank, one in enumerate(near)]
    telling = [row for row in every if any(each.tells for each in row[2])]
    asked, placed = _stems(query), list(found)
    replaced: dict[str, IndexItem] = {}
    for n, old, mine in every:
        newer = [
            one for rank, one, said in (every if any(each.tells for each in mine) else telling)
            if (one.item.day or "") >= (old.item.day or "") and _later(one.item, old.item)
            and _answers_too(one, old)
            and ((close := _close(one, old)) or (n < PASSAGES and one.item.record != SESSION))
            and any(
                _replaces(a, b, rare, rank < n, not close, asked)
                and (old.item.record != SESSION or one.score >= _NEAR * old.score or asked & b.words)
                for a in said for b in mine
            )
        ]  # fmt: skip
        newer += [one for one, moves in moved if _ends(moves, one, old, texts[n])]
        if newer:
            best = max(newer, key=lambda one: (one.item.record != SESSION, one.score))
            _lift(placed, best, old)
            there = replaced.get(best.item.key)
            if there is None or _later(old.item, there):
                replaced[best.item.key] = old.item
    return placed, replaced


FEW_SIGNS, READ = 14, 1000
"""Signs besides the names in a statement of nothing else, and characters of a text that are looked at."""
_Move = tuple[str, str, str, str, str]
"""A language, and what `wording.moves` says."""
_SPEAKING = frozenset("i we ich wir je nous yo nosotros 私 僕 俺".split())  # noqa: SIM905
_UNSAID = ("yo", "nosotros", "je")
_DETERMINERS = frozenset("the my our der die das mein meine unser la le les mon ma el los mi".split())  # noqa: SIM905
_SOMEBODY = frozenset("he she they it this that er sie es das il elle ils elles ce él ella ellos 彼".split())  # noqa: SIM905


def _moves(near: Sequence[Ranked], texts: Sequence[str]) -> list[tuple[Ranked, list[_Move]]]:
    """The hits that say that somebody or something is with something else now, and what they say."""
    found = []
    for language in wording.move_languages("\n".join(texts)):
        for one, text in zip(near, texts, strict=True):
            if one.item.record != SESSION and language in wording.move_languages(text):
                said = wording.moves(one.item.text[:READ], language, "new")
                found.append((one, [(language, *each) for each in said]))
    return [(one, moves) for one, moves in found if moves]


def _ends(moves: Iterable[_Move], new: Ranked, old: Ranked, text: str) -> bool:
    """Whether what a hit says ends what an older one has, whose `text` is case-folded. Of one that it names
    ("left Initech"), or that says nothing else, it is the answer, however little of the query it has: "Bob
    joined Bosch" has no word of where he works."""
    if old.item.record == SESSION or not _later(new.item, old.item):
        return False
    close = _answers_too(new, old) and _close(new, old)
    same = new.item.speaker == old.item.speaker
    for language, what, who, now, before in moves:
        if who not in _UNSAID and not any(word in text for word in who.casefold().split()):
            continue  # most speak of somebody else
        for sort in ("held", "new"):
            for kind, whom, value, _ in wording.moves(old.item.text[:READ], language, sort):
                ended = _has(value, before) if before else kind == what
                if ended and not _has(value, now) and _same_one(who, whom, same):
                    return close or bool(before) or _nothing_else(old.item.text, whom, value)
    return False


def _nothing_else(text: str, who: str, value: str) -> bool:
    """Whether a text has a verb besides these, and nothing else; in a script without spaces, a few signs."""
    if is_unspaced(text):
        return len(text) - len(who) - len(value) <= FEW_SIGNS
    rest = {*words_of(text)} - {*words_of(who), *words_of(value)} - all_stop_words()
    return len(rest) <= 1


def _has(text: str, words: str) -> bool:
    """Whether words stand in a text, in their order."""
    return f" {' '.join(words_of(words))} " in f" {' '.join(words_of(text))} "


def _same_one(one: str, other: str, speaker: bool) -> bool:
    """Whether two subjects are one: of the same name, or both whoever is speaking."""
    mine, theirs = ({word for word in words_of(who) if word not in _DETERMINERS} for who in (one, other))
    if not mine or not theirs or mine & _SOMEBODY or theirs & _SOMEBODY:
        return False
    if mine & _SPEAKING or theirs & _SPEAKING:
        return speaker and mine == theirs
    return mine <= theirs or theirs <= mine


def _answers_too(new: Ranked, old: Ranked) -> bool:
    """Whether a hit may answer what an older one answers: it is as much about who is asked about, or names
    nobody else, and has the kind of answer that is asked for if that one has."""
    kind = new.parts.get("kind", 0) >= old.parts.get("kind", 0)
    return kind and (_as_named(new, old) or not new.item.entities)


def _close(new: Ranked, old: Ranked) -> bool:
    """Whether a hit matches half as well as an older one or better, and is as much about who is meant."""
    return new.score >= old.score / 2 and _as_named(new, old)


def _as_named(new: Ranked, old: Ranked) -> bool:
    return new.parts.get("named", 0) >= old.parts.get("named", 0)


def _later(one: IndexItem, other: IndexItem) -> bool:
    """Whether an item was said later; on one day, by its line in the same file."""
    if one.day != other.day:
        return (one.day or "") > (other.day or "")
    return one.path == other.path and one.line > other.line


def _lift(placed: list[Ranked], new: Ranked, old: Ranked) -> None:
    """Put a hit before another that stands before it."""
    at = {one.item.key: n for n, one in enumerate(placed)}
    to, there = at[old.item.key], at[new.item.key]
    if to < there:
        one, score = placed.pop(there), placed[to].score
        parts = {**one.parts, "newer": round(score - one.score, 4)}
        placed.insert(to, one._replace(score=max(one.score, score), parts=parts))


# -- hearsay -----------------------------------------------------------------------------------------------
# Beliefs that rest on what nobody of the house has said: they are no better than what they rest on.


def with_origin_of_proofs(words: WordIndex, found: list[Ranked]) -> list[Ranked]:
    """The candidates; an observation of untrusted facts alone, and an opinion that cites any, have the origin
    of such a fact, and with it its label and its place. What a person worded is the person's."""
    believed = {one.item.key: one.item for one in found if one.item.proofs and one.item.origin != "person"}
    if not believed:
        return found
    whose = _whose(words, {proof for item in believed.values() for proof in item.proofs})
    origins = {key: origin for key, item in believed.items() if (origin := _origin(item, whose))}
    return [
        one._replace(item=_told(one.item, *origins[one.item.key])) if one.item.key in origins else one
        for one in found
    ]


def _told(item: IndexItem, origin: str, client: str | None) -> IndexItem:
    return replace(item, origin=origin, client=client)


Whose = tuple[str, str | None]
"""An origin and a client."""


def _whose(words: WordIndex, ids: Iterable[str]) -> dict[str, Whose | None]:
    """{id: whose an untrusted fact is, None where the house has said it} of those that there are."""
    found: dict[str, Whose | None] = {}
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


def _origin(item: IndexItem, whose: dict[str, Whose | None]) -> Whose | None:
    there = [whose[proof] for proof in item.proofs if proof in whose]
    bad = [each for each in there if each]
    return bad[0] if bad and (item.record == "opinion" or len(bad) == len(there)) else None
