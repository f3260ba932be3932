"""Translates date words of other languages into the English ones that the date grammar reads."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

from ua_memory.text.calendar import Token, tokenize, word_tuple
from ua_memory.text.patterns import Phrases, data_text, late, without_accents
from ua_memory.text.questions import AT_THE_MOMENT, BEFORE_NOW

# -- languages ---------------------------------------------------------------------------------------------
# Date words of other languages and their English words (`data/foreign_dates.toml`).


MONTHS = word_tuple("January February March April May June July August September October November December")
NUMBERS = (*map(str, range(1, 21)), "30")
DAYS = word_tuple("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
PHRASES = Phrases(
    "date_phrases.txt",
    re.IGNORECASE,
    month="|".join(MONTHS),
    weekday="|".join(DAYS),
    at_the_moment=AT_THE_MOMENT,
    before_now=BEFORE_NOW,
)
"""The forms of dates, and the words by which a text speaks of the past, of what is to come, of a habit."""


def _parse_forms(names: str, english: tuple[str, ...]) -> dict[str, str]:
    """`января/январе февраля/феврале` → each form with the English name of its place."""
    pairs = zip(names.split(), english, strict=True)
    return {form: name for forms, name in pairs for form in forms.split("/")}


def _parse_words(text: str) -> dict[str, str]:
    """`since: seit ab`, a line for each English word → each word with its English one; `_` joins words."""
    found = {}
    for row in text.strip().splitlines():
        english, _, words = row.partition(":")
        found.update({word.replace("_", " "): english.replace("_", " ") for word in words.split()})
    return found


@dataclass(frozen=True)
class Language:
    """The date words of a language: `names` are dates by themselves, `joins` only next to one.

    `phrases` are the names of several words, `signs` are words that identify the language; `doubtful` names
    exist in another language, too, `telling` ones in none. `asks` are question words that exist in English,
    too, and identify the language only next to a name. `habits` are articles that make a weekday every one.
    """

    code: str
    names: dict[str, str]
    phrases: tuple[str, ...]
    joins: dict[str, str]
    signs: frozenset[str]
    doubtful: frozenset[str]
    asks: frozenset[str]
    habits: frozenset[str]
    telling: frozenset[str]


@cache
def _table() -> Mapping[str, Mapping[str, str]]:
    """`data/foreign_dates.toml`: {language: {kind: words}}."""
    return tomllib.loads(data_text("foreign_dates.toml"))


@cache
def languages() -> tuple[Language, ...]:
    """All languages but Chinese, whose words are found by pattern."""
    return tuple(_language(code, rows) for code, rows in _table().items() if code != "zh")


def _language(code: str, rows: Mapping[str, str]) -> Language:
    kinds = (
        frozenset(rows.get(kind, "").split()) for kind in ("signs", "doubtful", "asks", "habits", "telling")
    )
    names = (
        _parse_forms(rows["months"], MONTHS) | _parse_forms(rows["days"], DAYS) | _parse_words(rows["names"])
    )
    phrases = tuple(name for name in names if " " in name or "-" in name)
    joins = _parse_words(rows["joins"]) | _parse_forms(rows["numbers"], NUMBERS)
    return Language(code, names, phrases, joins, *kinds)


_SHORT_MONTHS = (
    "jan/janv/ene feb/févr/fév mär/mrt apr/avr/abr - jun jul/juil aug sep/sept okt/oct/ott nov"
    " dez/déc/dec/dic"
)


@cache
def _months() -> Mapping[str, int]:
    """{name of a month in any of the languages, if need be shortened: its number}."""
    english = {name.casefold(): name for name in MONTHS}
    every = [english, *(one.names for one in languages()), _parse_forms(_SHORT_MONTHS, MONTHS)]
    return {
        name: MONTHS.index(english) + 1
        for names in every
        for name, english in names.items()
        if english in MONTHS
    }


def is_month(word: str) -> bool:
    """Whether a word is a month's name in one of the languages."""
    return word.casefold() in _months()


@cache
def _weekdays() -> Mapping[str, int]:
    every = [(name, english) for one in languages() for name, english in one.names.items() if english in DAYS]
    return {name.casefold(): DAYS.index(english) for name, english in (*every, *zip(DAYS, DAYS, strict=True))}


def weekday_named(word: str) -> int | None:
    """The number of a weekday by its name in any of the languages, Monday being 0."""
    return _weekdays().get(word.casefold())


def is_name(word: str) -> bool:
    """Whether a word, with or without its accents, names a day, a month or their like in any language."""
    return without_accents(word.casefold()) in _plain_names()


@cache
def _plain_names() -> frozenset[str]:
    english = (name.casefold() for name in (*MONTHS, *DAYS))
    return frozenset(map(without_accents, {*english, *(name for one in languages() for name in one.names)}))


def days_of_months(text: str) -> list[tuple[int, int, int, int]]:
    """(year or 0, month, first day, last day) of the dates of a statement that are not in English: `5 de
    diciembre`, `3 mars 2027`, `12月2日`. Nothing if the statement is about every month or year."""
    if PHRASES["each"].search(text):
        return []
    found = []
    for match in PHRASES["day of month"].finditer(text):
        first, day, name, year, han_year, month, han_day = match.groups()
        number = _months().get(name.casefold(), 0) if name else int(month)
        if number:
            last = int(day or han_day)
            found.append((int(year or han_year or 0), number, int(first or last), last))
    return found


def months_of_years(text: str) -> list[tuple[int, int]]:
    """(year, month) of the months that a statement names with their years: `im Januar 2027`."""
    found = PHRASES["month of year"].findall(text)
    return [(int(year), number) for name, year in found if (number := _months().get(name.casefold()))]


# -- chinese -----------------------------------------------------------------------------------------------
# Chinese and Japanese date words. The scripts have no spaces, so the words are found by pattern.


HAN = late("[\u4e00-\u9fff]|きのう|おととい|おととし|あした|あさって|きょう[はの]|ゆうべ")
_WIDE_DIGITS = str.maketrans("０１２３４５６７８９", "0123456789")
_DIGITS = {char: n for n, char in enumerate("零一二三四五六七八九十")} | {"两": 2, "〇": 0}
_N = r"(?:\d{1,4}|[一二三四五六七八九十两]{1,3})"
_Y = r"(?:(?:19|20)\d\d|(?:令和|平成|昭和)(?:元|N))"
_DAY = dict(zip("一二三四五六日天", (*DAYS, "Sunday"), strict=True))
_YOUBI = dict(zip("月火水木金土日", DAYS, strict=True))
_WEEKS = {
    "先々週": "2 weeks ago",
    "先週": "last week",
    "今週": "this week",
    "来週": "next week",
    "再来週": "the week after next",
}
_ERAS = {"令和": 2018, "平成": 1988, "昭和": 1925}
_SEASON = dict(zip("春夏秋冬", ("spring", "summer", "autumn", "winter"), strict=True))


@cache
def _chinese() -> Mapping[str, Mapping[str, str]]:
    """The Chinese words by kind (`unit`, `year`, `which`, `plain` dates), each with its English ones."""
    return {kind: _parse_words(text) for kind, text in _table()["zh"].items()}


_JOINS = {"to", "and", "from", "morning", "afternoon", "evening"}


def _number(text: str) -> int:
    if text.isdigit():
        return int(text)
    if "十" in text:
        tens, _, ones = text.partition("十")
        return (_DIGITS[tens] if tens else 1) * 10 + (_DIGITS[ones] if ones else 0)
    return _DIGITS[text]


def _year(text: str) -> str:
    """A year of four digits, of one that may be counted in an era of Japan: 令和8."""
    if text[:2] not in _ERAS:
        return text
    return str(_ERAS[text[:2]] + (1 if text[2:] == "元" else _number(text[2:])))


def _month(text: str) -> str:
    number = _number(text)
    return MONTHS[number - 1] if 1 <= number <= 12 else ","


def _which(match: re.Match[str]) -> str:
    which, unit, at = _chinese()["which"][match[1]], _chinese()["unit"][match[2]].removesuffix("s"), match[3]
    return f"{_DAY[at]} of {which} week" if at else f"{which} {unit}"


def _of_month(word: str) -> str:
    return _chinese()["plain"].get(word) or f"{_chinese()['which'][word.removesuffix('月')]} month"


def _rule(pattern: str, make: Callable[[re.Match[str]], str]) -> tuple[re.Pattern[str], Callable[..., str]]:
    return late(pattern.replace("Y", _Y).replace("N", _N)), make


@cache
def _rules() -> tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...]:
    """(pattern of a date word, function that gives its English), in the order in which they are tried."""
    unit, year = _chinese()["unit"], _chinese()["year"]
    plain = {**_chinese()["plain"], **year}
    season = "の?([春夏秋冬])(?:[天季]|休み|(?![\u4e00-\u9fff]))"
    return (
        _rule(
            r"(Y)\s*年\s*(\d{1,2})\s*月\s*(\d{1,2})\s*[日号]",
            lambda m: f"{_year(m[1])}-{int(m[2]):02}-{int(m[3]):02}",
        ),
        _rule(r"(Y)\s*年\s*(\d{1,2})\s*月份?", lambda m: f"{_month(m[2])} {_year(m[1])}"),
        _rule(r"(\d{4})\s*年第?([一二三四1-4])季度", lambda m: f"Q{_number(m[2])} {m[1]}"),
        _rule(rf"((?:19|20)\d\d)\s*年{season}", lambda m: f"{_SEASON[m[2]]} {m[1]}"),
        _rule(r"(Y)\s*年", lambda m: f"year {_year(m[1])}"),
        _rule(
            r"(先月|今月|来月|上个月|这个月|本月|下个月)的?の?(N)[日号]",
            lambda m: f"the {m[2] if m[2].isdigit() else _number(m[2])}th of {_of_month(m[1])}",
        ),
        _rule(
            r"(去年|今年|明年|昨年|来年)の?(N)月(N)[日号]",
            lambda m: f"{_number(m[3])} {_month(m[2])} {year[m[1]]}",
        ),
        _rule(r"(去年|今年|明年|昨年|来年)の?(N)月份?", lambda m: f"{_month(m[2])} {year[m[1]]}"),
        _rule(rf"(去年|今年|明年|昨年|来年){season}", lambda m: f"{_SEASON[m[2]]} of {year[m[1]]}"),
        _rule(
            r"(?:最近|过去|近)的?(N)个?(天|日|周|星期|月|年|小时)",
            lambda m: f"the last {_number(m[1])} {unit[m[2]]}",
        ),
        _rule(
            r"(先々週|先週|今週|再来週|来週)の?([月火水木金土日])曜日?",
            lambda m: f"{_YOUBI[m[2]]} of {_WEEKS[m[1]]}",
        ),
        _rule(r"([月火水木金土日])曜日", lambda m: f"on {_YOUBI[m[1]]}"),
        _rule(
            r"(N)个?(天|日|周|星期|礼拜|月|年|小时|分钟|季度|週間?|[ヶかカ]月|時間)[之以]?前",
            lambda m: f"{_number(m[1])} {unit[m[2]]} ago",
        ),
        _rule(
            r"(N)个?(天|日|周|星期|月|年|週間?|[ヶかカ]月)[之以]?[后後]",
            lambda m: f"{_number(m[1])} {unit[m[2]]} from now",
        ),
        _rule(r"(上个?|这个?|本|下个?)(周|星期|礼拜)([一二三四五六日天])", _which),
        _rule(r"(上个?|这个?|本|下个?)(周|星期|礼拜|月|季度)(?!末)()", _which),
        _rule(r"(?:周|星期|礼拜)([一二三四五六日天])", lambda m: f"on {_DAY[m[1]]}"),
        _rule(r"(N)月(N)[日号]", lambda m: f"{_number(m[2])} {_month(m[1])}"),
        _rule(r"第([一二三四])季度", lambda m: f"in Q{_number(m[1])}"),
        _rule(r"(?<![\d个一二三四五六七八九十两])(N)月份?(?!亮|饼|球)", lambda m: f"in {_month(m[1])}"),
        _rule(
            "(?![明今]日[香子](?:さん|ちゃん|[のはがをにとも、]|$))(?:"
            + "|".join(sorted(plain, key=len, reverse=True))
            + ")",
            lambda m: plain[m[0]],
        ),
        _rule(r"\d{4}-\d\d-\d\d", lambda m: m[0]),
    )


def in_english(text: str) -> list[tuple[str, int, int]]:
    """The Chinese and Japanese date words of a text as `Piece`s; empty if none is a date by itself."""
    found: list[tuple[str, int, int]] = []
    text = text.translate(_WIDE_DIGITS)
    at = 0
    while at < len(text):
        rule = next(((m, make) for pattern, make in _rules() if (m := pattern.match(text, at))), None)
        if rule is None:
            if not found or found[-1][0] != ",":
                found.append((",", at, at + 1))
            at += 1
            continue
        match, make = rule
        _append_word(found, make(match), match.start(), match.end())
        at = match.end()
    return found if any(word not in _JOINS and word != "," for word, _, _ in found) else []


def _append_word(found: list[tuple[str, int, int]], word: str, at: int, to: int) -> None:
    """Append an English word. In `5月底` (late May), `3月以来` (since March) the modifier comes last."""
    if not word.startswith("<"):
        if found and found[-1][0] in ("to", "and"):
            word = word.removeprefix("in ")
        found.append((word, at, to))
    elif found and found[-1][0] != "," and found[-1][0] not in _JOINS:
        plain, first, _ = found[-1]
        plain = plain.removeprefix("in ").removeprefix("on ").removeprefix("year ")
        found[-1] = (f"{word[1:]} {plain}", first, to)


# -- translation -------------------------------------------------------------------------------------------
# The language of a text's date words, and their translation.


_CYRILLIC = late("[Ѐ-ӿ]")
_ONLY_UKRAINIAN, _ONLY_RUSSIAN = late("[іїєґ]", re.I), late("[ыэёъ]", re.I)
_APOSTROPHES = str.maketrans("’ʼ", "''")
_MOST_TOKENS = 5
"""Tokens of one entry of a table at most: `après-demain`, `fin de semana`."""
_GO_BEFORE_IN = ("last", "this", "next", "early", "mid", "late", "since", "until")
_UNITS = {"day", "week", "month", "quarter", "year"}
_PARTS = {"early", "mid", "late"}
_OF_PART = {*_PARTS, "of"}
_SETTLE_A_DAY = {"last<", "next<", "last", "next", "of", "before", "after"}
"""Words behind a weekday that make it a certain one."""

_BOUNDS = {"in", "since", "until", "before", "after", "between", "early", "mid", "late", "from"}
"""Words that make a year a date: `Anfang 2026`."""

_FIRST = late(r"1\.?(?:er|º|°)")
_ARTICLES = {"le": "fr", "du": "fr", "au": "fr", "el": "es", "del": "es", "al": "es", "il": "it", "dia": "pt"}
_ANY_WORD, _DIGIT = late(r"\w+"), late(r"\d")
_MAKES_DATE = late(r"\b(?:\d{4}|1er)\b|\b1[º°]")

Piece = tuple[str, int, int]
"""(English words, start, end) of what was translated."""


@cache
def _date_words() -> frozenset[str]:
    """The words that the dates of all languages are made of."""
    every = (name for one in languages() for name in (*one.names, *one.phrases, *one.joins))
    return frozenset(word for name in every for word in _ANY_WORD.findall(name.lower()))


def language(text: str) -> str | None:
    """The language of a text's date words, a key of the table, or None."""
    if HAN.search(text):
        return "zh" if in_english(text) else None
    if not _DIGIT.search(text) and _date_words().isdisjoint(_ANY_WORD.findall(text.lower())):
        return None  # most texts; to read their tokens takes ten times as long
    tokens = tokenize(text.translate(_APOSTROPHES))
    low = {token.low: token for token in tokens if token.kind == "word"}
    said = f" {' '.join(token.text.lower() for token in tokens)} ".replace(" - ", "-")
    words = set(low) | {f"{token.text.lower()}" for token in low.values()}
    cyrillic, has_year = bool(_CYRILLIC.search(text)), re.search(r"\b(?:19|20)\d\d\b", text) is not None
    best, score = None, 0
    for spoken in languages():
        if cyrillic != (spoken.code in ("ru", "uk")) or _excluded(spoken, text):
            continue
        phrases = {name for name in spoken.phrases if f" {name} " in said}
        names = words & spoken.names.keys() | phrases
        if not names and not has_year:
            continue
        sure = names - spoken.doubtful
        signs = words & spoken.signs - names
        parts = {word for phrase in phrases for word in re.split("[ -]", phrase)}
        short = bool(sure) and all(
            word in spoken.names or word in spoken.asks or _known(word, spoken) for word in words - parts
        )
        short = short or not spoken.telling.isdisjoint(names)
        dated = len(words) <= 2 and bool(names) and _MAKES_DATE.search(text) is not None
        if not names:
            bounds = {word for word in words if spoken.joins.get(word) in _BOUNDS}
            names, dated = bounds, bool(bounds and (len(words) <= 2 or len(signs - bounds) > 0))
            signs = set()
        weight = (3 if names & spoken.names.keys() else 1) * len(names) + len(signs)
        if names and (signs or short or cyrillic or dated) and weight > score:
            best, score = spoken.code, weight
    slashed = None if best else PHRASES["slashed day"].search(text)
    return best or (
        _ARTICLES[slashed["article"].lower()]
        if slashed
        else "de"
        if PHRASES["dotted day"].search(text)
        else None
    )


def _known(word: str, spoken: Language) -> bool:
    return word in spoken.joins or _stem(word, spoken) is not None


def _excluded(spoken: Language, text: str) -> bool:
    if spoken.code == "ru":
        return bool(_ONLY_UKRAINIAN.search(text))
    return spoken.code == "uk" and bool(_ONLY_RUSSIAN.search(text))


def translated(text: str, code: str) -> list[Piece]:
    """The date words of a text in English, in order; other words between them become a comma."""
    if code == "zh":
        return in_english(text)
    spoken = next(each for each in languages() if each.code == code)
    tokens = tokenize(text.translate(_APOSTROPHES))
    days = PHRASES["dotted day"] if code == "de" else PHRASES["slashed day"]
    numeric = {match.start("day"): match for match in days.finditer(text)}
    pieces: list[Piece] = []
    i = 0
    while i < len(tokens):
        if day := numeric.get(tokens[i].at):
            pieces.append((f"{day['day']} {MONTHS[int(day['month']) - 1]}", tokens[i].at, day.end()))
            i = next((n for n in range(i, len(tokens)) if tokens[n].at >= day.end()), len(tokens))
            continue
        word, width = _translate(tokens, i, spoken)
        at, to = tokens[i].at, tokens[i + width - 1].to
        i += width
        if word.endswith("<"):
            _move_before_noun(pieces, (word[:-1], at, to))
        elif word:
            pieces.append((word, at, to))
    return _apply_neighbours(pieces)


def _translate(tokens: list[Token], i: int, spoken: Language) -> tuple[str, int]:
    """(the English for the words at a token, how many tokens they are)."""
    for width in range(min(_MOST_TOKENS, len(tokens) - i), 1, -1):
        window = tokens[i : i + width]
        if any(token.kind not in ("word", "number", "dash") for token in window):
            continue
        key = " ".join(token.text.lower() for token in window)
        key = key.replace(" - ", "-")
        known = spoken.names.get(key) or spoken.joins.get(key)
        if known:
            return known, width
    token = tokens[i]
    low = token.text.lower()
    if _FIRST.fullmatch(low):
        return "first", 1
    if token.kind in ("number", "date", "ordinal", "dash", "clock"):
        return token.text, 1
    if token.kind == "mark":
        dotted = token.text == "." and i and tokens[i - 1].kind == "number" and len(tokens[i - 1].text) <= 2
        return ("" if dotted else ","), 1
    word = spoken.names.get(low) or spoken.joins.get(low) or _stem(low, spoken) or ","
    if _is_habit(tokens, i, word, spoken) or (word == "weekend" and _is_elsewhere(tokens, i, spoken)):
        return ",", 1
    return (word[:-1] if _stands_alone(tokens, i, spoken) else ",") if word.endswith("?") else word, 1


def _is_habit(tokens: list[Token], i: int, word: str, spoken: Language) -> bool:
    """Whether a weekday is every one, by its article: `il lunedì`; not `il lunedì 3`, `… scorso`."""
    if word not in DAYS or not i or tokens[i - 1].low not in spoken.habits:
        return False
    after = tokens[i + 1] if i + 1 < len(tokens) else None
    dated = after and (after.kind == "number" or spoken.joins.get(after.low, "") in _SETTLE_A_DAY)
    return not dated and (i < 2 or tokens[i - 2].low not in ("tra", "fra", "dopo", "prima", "e"))


def _is_elsewhere(tokens: list[Token], i: int, spoken: Language) -> bool:
    """Whether a weekend is an event by its place, `il weekend a Roma`, and says nothing of the day."""
    between = tokens[i + 1 : i + 3]
    return (
        len(between) == 2
        and spoken.joins.get(between[0].low) in ("to", "in", "from now>in")
        and between[1].text[:1].isupper()
        and between[1].low not in spoken.names
    )


def _stands_alone(tokens: list[Token], i: int, spoken: Language) -> bool:
    """Whether only little words stand beside a word: `na segunda`, not `segunda parte`, `quinta do lago`."""
    if i + 2 < len(tokens) and spoken.joins.get(tokens[i + 1].low) == "of":
        whole = tokens[i + 2].low
        if whole not in spoken.names and not _known(whole, spoken):
            return False
    beside = (token for token in (*tokens[max(i - 1, 0) : i], *tokens[i + 1 : i + 2]) if token.kind == "word")
    return all(_known(token.low, spoken) or token.low in spoken.signs for token in beside)


def _stem(low: str, spoken: Language) -> str | None:
    stems = (key for key in spoken.joins if key.endswith("*") and low.startswith(key[:-1]))
    return next((spoken.joins[key] for key in stems), None)


def _move_before_noun(pieces: list[Piece], which: Piece) -> None:
    """`lundi dernier`, `les 10 derniers jours`: "last" goes before the noun, or before the number."""
    if pieces and pieces[-1][0] not in {",", "the", "of", "on", *_BOUNDS}:
        noun, at, to = pieces[-1]
        pieces[-1] = which
        pieces.append((noun.removeprefix("the "), at, to))
    else:
        pieces.append(which)


def _counted(words: list[str]) -> bool:
    return bool(words) and (words[-1].isdigit() or words[-1] == "some")


def _begins_time(after: list[str]) -> bool:
    """Whether a "first" before these words is one of a month or of a time: `1er mai`, `du 1er au 5 mai`."""
    after = [word for word in after if word not in ("of", "the", "on", "to", "until", "and")]
    after = after[1:] if after and after[0].isdigit() else after
    return bool(after) and after[0] in {*MONTHS, *_UNITS, "weekend"}


def _apply_neighbours(pieces: list[Piece]) -> list[Piece]:
    """Adjust words by their neighbours: `с марта по май`, `в 2019 году`, `hace tres días`, `10 last days`."""
    words = [word for word, _, _ in pieces]
    found: list[Piece] = []
    waiting: Piece | None = None  # a word that goes behind the count that follows it
    for n, (word, at, to) in enumerate(pieces):
        before, after = words[n - 1].rpartition(">")[2] if n else "", words[n + 1 : n + 3]
        if word == "since" and any(each in ("to", "until") for each in words[n + 1 : n + 6]):
            word = "from"
        if word == "to" and before in ("", ",") and after[:1] and after[0] in MONTHS:
            word = "in"  # a marzo
        if word == "first" and not _begins_time(words[n + 1 : n + 6]):
            word = ","
        if word == "weekend" and before in ("on", "in", "of"):
            word = "the weekend"  # am Wochenende
        if word in ("month", "year") and _PARTS.intersection(words[max(n - 2, 0) : n]) and before in _OF_PART:
            word = f"the {word}"  # a fin de mes
        if word == "the" and (before == "first" or before.isdigit()) and after[:1] and after[0].isdigit():
            word = "to"  # du 3 au 5 mai
        if word == "year" and re.fullmatch(r"(?:19|20)\d\d", before):
            found[-1] = (found[-1][0], found[-1][1], to)
            continue
        if ">" in word:
            behind, _, alone = word.partition(">")
            if len(after) == 2 and after[0].isdigit() and after[1] in _UNITS:
                waiting = (behind, at, to)
                continue
            word = alone or ","
        if word.startswith("in ") and before in _GO_BEFORE_IN:
            word = word[3:]
        if word == "on" and before in ("since", "until", "before", "after", "between", "from"):
            continue
        if word == "on" and before == "and" and any(each.endswith("between") for each in words[:n]):
            continue  # entre le 3 et le 5 mai
        if word == "ago" and before in _UNITS and not _counted(words[: n - 1]):
            found[-1] = (f"1 {before}", *found[-1][1:])
        found.append((word, at, to))
        if waiting and word in _UNITS:
            found.append(waiting)
            waiting = None
    return found
