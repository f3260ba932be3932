"""Checks a statement against its source: its names, numbers, dates and words must occur there, and agree."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache, cached_property, partial
from unicodedata import category, normalize

from ua_memory.text import calendar
from ua_memory.text.calendar import (
    A_MONTH,
    ALL_MONTHS,
    ALL_WEEKDAYS,
    MONTH_NAMES,
    ONES,
    ORDINALS,
    TENS,
    WEEKDAYS,
    implied_days,
    matches_range,
    moments,
)
from ua_memory.text.names import (
    GERMAN,
    NO_NAMES,
    ORDINARY,
    STOP_WORDS,
    TERM,
    antonyms,
    coined_words,
    foreign_stop_words,
    irregular,
    is_foreign,
    is_opening,
    is_past,
    little_words,
    numerals,
    opens_sentence,
    related,
)
from ua_memory.text.patterns import Phrases, late
from ua_memory.text.wording import main_clauses, sentences

# -- amounts -----------------------------------------------------------------------------------------------
# Numbers with scale, sign, percent and currency, normalized for comparison.
#
# `500k` differs from 500, and 500 euros from 500 dollars. The notation makes no difference: 1,500 equals
# 1'500.0, twelve equals 12, and 2k equals two thousand.


_DIGITS_PATTERN = r"\d{1,2}:\d\d|\d{1,3}(?:[ ,'.]\d{3})+(?!\d)(?:\.\d+)?|\d+(?:[.,]\d+)*"
_MINUS = r"(?:(?<![\w.,)-])[-\u2212](?=[$€£¥]?\d)|\bminus )?"
_SCALES = {
    "hundred": 2,
    "k": 3,
    "thousand": 3,
    "m": 6,
    "mio": 6,
    "million": 6,
    "millions": 6,
    "bn": 9,
    "billion": 9,
}
_UNIT_WORDS = {
    "$": ("$", "dollar", "dollars", "usd", "bucks"),
    "€": ("€", "euro", "euros", "eur"),
    "£": ("£", "pound", "pounds", "gbp", "quid"),
    "¥": ("¥", "yen", "jpy"),
    "%": ("%", "percent", "per cent", "pct"),
    "×": ("×", "times", "x"),
}
_HALF_DAY = (
    r"(?P<half>[ap]\.?m\b\.?|in the (?:morning|afternoon|evening)|at night|nachmittags|de la (?:tarde|noche)|"
    r"de l'après-midi)"
)
_HOUR = r"(?<![\d:.,])(?P<hour>[01]?\d|2[0-4])"
_DIGIT = late(r"\d")
_MAYBE_CLOCK = late(r"\d ?(?:h|uhr|[ap]\.?m\b|o'clock|in|at|nachm|de)|(?:past|to|halb) \d", re.IGNORECASE)
_DECADES = late(r"\b(\d) decades\b", re.IGNORECASE)
_EVERY_N = late(r"\bevery (\d+) (?:min|(hours))")
_AND_A_HALF = late(r"\b(\d+|one) and a half\b", re.IGNORECASE)
_CLOCK_FORMS = (
    (late(rf"\bhalf past {_HOUR}\b(?:,? {_HALF_DAY})?", re.IGNORECASE), 30),
    (late(rf"\bquarter past {_HOUR}\b(?:,? {_HALF_DAY})?", re.IGNORECASE), 15),
    (late(rf"\bquarter to {_HOUR}\b(?:,? {_HALF_DAY})?", re.IGNORECASE), -15),
    (late(rf"\bhalb {_HOUR}\b", re.IGNORECASE), -30),
    (late(rf"{_HOUR} ?(?:h|heures?|uhr)(?: ?(?P<minutes>[0-5]\d))?(?!\w)(?! \d)", re.IGNORECASE), 0),
    (late(rf"{_HOUR}(?:[:.](?P<minutes>[0-5]\d))? ?(?:o'clock,? )?{_HALF_DAY}", re.IGNORECASE), 0),
)
"""Patterns for a time of day, each with the minutes to add to its hour."""
_UNIT_NAMES = {word: unit for unit, words in _UNIT_WORDS.items() for word in words}
_UNIT_PATTERN = "|".join(
    sorted(map(re.escape, (word for word in _UNIT_NAMES if word.isalpha() or " " in word)), key=len)[::-1]
)
_AMOUNT = late(
    rf"(?P<sign>{_MINUS})(?P<before>[$€£¥] ?)?(?P<digits>{_DIGITS_PATTERN})"
    rf"(?:(?P<close>k|m|bn)\b|[ -](?P<scale>hundred|thousand|millions?|mio|billion)\b)?"
    rf"(?: ?(?P<mark>[%$€£¥×])|[ -]?(?P<unit>{_UNIT_PATTERN})\b)?",
    re.IGNORECASE,
)
_AMOUNT_WORD = late(r"[^\W\d_][\w'-]*")
_IMPLIED_NUMBERS = {"decade": 10, "couple": 2, "pair": 2, "both": 2, "fortnight": 14, "once": 1}
_IMPLIED_NUMBERS |= dict.fromkeys(("a", "an", "one", "un", "une", "una", "uno"), 1)
_IMPLIED_NUMBERS |= dict.fromkeys(("ein", "eine", "einen", "einem", "einer"), 1)
"""Words of a source that support a number in a statement, but claim none themselves."""
_TIMES_ADVERBS = {"twice": 2, "thrice": 3}
"""Adverbs that claim a number of times."""
_MULTIPLIERS = _TIMES_ADVERBS | {"double": 2, "doubled": 2, "doubles": 2, "triple": 3, "tripled": 3}
"""Words of a source that support "2 times" or "3 times"; only the adverbs claim a number themselves."""


@dataclass(frozen=True, slots=True)
class Amount:
    """A number in a text: normalized `digits`, a unit (one of `%$€£¥×` or ""), and the text as `written`.

    `minutes` has the digits without their scale where an `m` follows: `5m` is five million or five minutes.
    """

    digits: str
    unit: str = ""
    written: str = ""
    negative: bool = False
    minutes: str = ""


class Amounts:
    """The numbers of a source, for looking up those that a statement claims."""

    def __init__(self, text: str) -> None:
        found = list(amounts(text))
        self._exact = {(each.digits, each.unit) for each in found}
        self._negative = {each.digits for each in found if each.negative}
        words = {word.casefold() for word in _AMOUNT_WORD.findall(text)}
        self._exact |= {(str(n), "×") for word, n in _MULTIPLIERS.items() if word in words}
        plain = [each for each in found if each.written not in _TIMES_ADVERBS]
        self._digits = {each.digits for each in plain} | {each.minutes for each in plain}
        self._digits |= {str(n) for word, n in _IMPLIED_NUMBERS.items() if word in words}
        every = [(int(number), 24 if unit else 60) for number, unit in _EVERY_N.findall(in_digits(text))]
        self._digits |= {str(whole // number) for number, whole in every if number and whole % number == 0}
        self._hours = frozenset(self._digits)
        """Digits without the parts of clock times: an 8 may be the hour of 8:00."""
        self._digits |= {part for each in plain for part in _clock_parts(each.digits)}
        self._units = {
            unit for word, unit in _UNIT_NAMES.items() if word in words or (len(word) == 1 and word in text)
        }

    def has(self, claim: str) -> bool:
        """Whether the source has all numbers of a claim, with the same currency and sign."""
        return all(map(self._has_amount, amounts(claim)))

    @cached_property
    def _sums_and_differences(self) -> frozenset[str]:
        """The sums and differences of any two numbers, which a statement may have calculated."""
        numbers = {int(digits) for digits in self._digits if digits.isdigit() and len(digits) < 7}
        pairs = itertools.combinations(sorted(numbers - {0, 1}), 2)
        return frozenset(str(each) for a, b in pairs for each in (b - a, a + b) if each > 2)

    def _has_amount(self, one: Amount) -> bool:
        if one.negative and one.digits not in self._negative:
            return False
        if one.unit and (one.digits, one.unit) in self._exact:
            return True
        if one.unit and one.unit != "×":
            same = (one.digits, "") in self._exact or one.digits in self._sums_and_differences
            return same and one.unit in self._units
        hour, full, _ = one.digits.partition(":00")
        bare = {hour, hour.lstrip("0"), str(int(hour) % 12)} if full else {one.minutes} - {""}
        is_there = one.digits in self._digits or not self._hours.isdisjoint(bare)
        return is_there or (not full and one.digits in self._sums_and_differences)


def amounts(text: str) -> Iterator[Amount]:
    """The numbers in a text, in order; `twice` and `thrice` come last."""
    text = in_digits(text)
    for one in _AMOUNT.finditer(text):
        digits = plain = _normalize_number(one["digits"])
        scale = (one["close"] or one["scale"] or "").casefold()
        unit = (one["mark"] or one["unit"] or one["before"] or "").strip()
        digits = _apply_scale(plain, _SCALES[scale]) if scale else digits
        minutes = plain if scale == "m" else ""
        yield Amount(digits, _UNIT_NAMES.get(unit.casefold(), ""), one[0].strip(), bool(one["sign"]), minutes)
    for word in map(str.casefold, _AMOUNT_WORD.findall(text)):
        if word in _TIMES_ADVERBS:
            yield Amount(str(_TIMES_ADVERBS[word]), "×", word)


@cache
def _number_words() -> re.Pattern[str]:
    word = "|".join(sorted(numerals(), key=len, reverse=True))
    return re.compile(
        rf"(?<![\w'])(?:one[ -](?=hundred|thousand|million))?(?:{word})"
        rf"(?:(?:[ -]| and | et | y )(?:{word}|one|un|uno))*(?![\w'])",
        re.IGNORECASE,
    )


def in_digits(text: str) -> str:
    """A text with number words and times of day replaced by digits: `twelve hundred` becomes 1200, `half past
    three in the afternoon` 15:30."""
    if not numerals().keys().isdisjoint(TERM.findall(text.casefold())):
        text = _number_words().sub(_number_in_digits, text)
    text = _DECADES.sub(lambda match: f"{match[1]}0 years", text)
    text = _AND_A_HALF.sub(lambda match: f"{'1' if match[1][0] in 'oO' else match[1]}.5", text)
    for pattern, later in _CLOCK_FORMS if _MAYBE_CLOCK.search(text) else ():
        text = pattern.sub(partial(_clock_in_digits, later), text)
    return text


def _number_in_digits(match: re.Match[str]) -> str:
    found, total, part = list[int](), 0, 0
    if whole := numerals().get(match[0].casefold()) if "-" in match[0] else None:
        return str(whole)  # dix-sept
    if re.search(r"\d[ -]$", match.string[: match.start()]) and numerals().get(match[0].casefold(), 0) > 99:
        return match[0]  # 1.5 million
    for word in re.findall(r"[^\W\d_]+", match[0].casefold()):
        value = numerals().get(word, 1)
        if word in ("and", "et", "y"):
            continue
        if value >= 1000 and (part or not total):
            total, part = total + (part or 1) * value, 0
        elif value == 100 and part < 100:
            part = (part or 1) * 100
        elif (total or part) and part % 100 and not (part % 10 == 0 and value < 10 and part % 100 > 19):
            found, total, part = [*found, total + part], 0, value
        else:
            part += value
    return " ".join(map(str, [*found, total + part]))


def _clock_in_digits(offset: int, match: re.Match[str]) -> str:
    """A 12-hour or 24-hour time as `HH:MM`; `offset` minutes are added."""
    part = match.groupdict()
    half = (part.get("half") or "").casefold()
    hour = int(match["hour"]) % 12 if half else int(match["hour"])
    hour += 12 if half.startswith(("p", "in the a", "in the e", "at n", "de la t", "nachm", "de l'a")) else 0
    minutes = (60 * hour + int(part.get("minutes") or 0) + offset) % 1440
    return f"{minutes // 60:02}:{minutes % 60:02}"


def _clock_parts(digits: str) -> Iterator[str]:
    hour, colon, minutes = digits.partition(":")
    if colon:
        yield from (hour, hour.lstrip("0"), minutes, str(int(hour) % 12))


def _normalize_number(number: str) -> str:
    """A number without separators and trailing zeros: `1,500.0` becomes `1500`."""
    if ":" in number:
        return number.rjust(5, "0")
    plain = number.replace(",", "").replace("'", "").replace(" ", "")
    return plain.rstrip("0").rstrip(".") if plain.count(".") == 1 else plain


def _apply_scale(plain: str, power: int) -> str:
    whole, _, part = plain.partition(".")
    if not (whole + part).isdigit() or "." in part or len(part) > power:
        return plain
    return (whole + part.ljust(power, "0")).lstrip("0") or "0"


# -- compounds ---------------------------------------------------------------------------------------------
# Words that contain a number but are no amount: `web3`, `sha256`, `3D`, `3rd-party`, `2-step`.
#
# A date in the source that has a 3 in it does not support `3rd-party`. The word itself has to occur, in one
# word, in two or with a hyphen, its number in digits or in letters.


_LATIN = r"[A-Za-z\u00c0-\u024f]"
_MEASURE_WORDS = """am b bit bits bn byte bytes c chf cm d day days dpi eur f fps g gb gbp ghz gib h hour
hours hr hrs hz in k kb kbit kg khz kib km kw kwh l m ma mb mbit mg mhz mib min mins minute minutes ml mm mo
month months ms ns per percent pm ppm pt px qps quarter quarters rem rpm rps s sec second seconds secs tb tib
us usd v w week weeks wk year years yr yrs x y"""
"""Units: a number with one of them is an amount (`30-day`, `10ms`), not a compound."""
_MEASURES = frozenset(_MEASURE_WORDS.split())
_CARDINALS = {word: n for word, n in (ONES | TENS).items() if 1 < n <= 20}
_TENS_WORDS = "fortieth fiftieth sixtieth seventieth eightieth ninetieth"
_ORDINALS = ORDINALS | {word: 10 * n for n, word in enumerate(_TENS_WORDS.split(), 4)}
_ORDINAL_ABOVE_TWO = late(rf"\b(?:{'|'.join(word for word, n in _ORDINALS.items() if n > 2)})\b")
_CURRENCIES = frozenset(["chf", "eur", "gbp", "usd"])
_AMBIGUOUS_ORDINALS = ("first", "second")
"""In letters these are also adverbs and units of time, so they claim nothing."""
_ON_DAY = r"\b(?:on|by|until|till|before|since|from)"
_COMPOUND = late(
    rf"(?<![\w.,'])(?P<tail>(?!v\d){_LATIN}+\d+(?:{_LATIN}[A-Za-z0-9]*|(?:\.\d+)+)?)(?!\w)"
    rf"|(?<![\w.,:/])(?P<nth>\d+(?:st|nd|rd|th)|{'|'.join(_ORDINALS)})(?P<of>-{_LATIN}{{2,}})?(?!\w)"
    rf"|(?<![\w.,:/])(?P<number>\d+|{'|'.join(_CARDINALS)})-(?P<what>{_LATIN}{{2,}})(?!\w)"
    rf"|(?<![\w.,:/])(?P<head>\d+{_LATIN}[A-Za-z0-9]*)(?!\w)",
    re.IGNORECASE,
)


def compounds(text: str) -> Iterator[re.Match[str]]:
    """The compounds and ordinals of a text. Amounts with a unit, such as `10ms`, are none."""
    return filter(_is_no_amount, _COMPOUND.finditer(text))


def blank_compounds(text: str) -> str:
    """A source with its compounds blanked, so that their digits support no amount. `2-step`, a bare `3rd` and
    `v2` stay: their numbers do."""

    def blanked(match: re.Match[str]) -> str:
        gone = _is_no_amount(match) and (match["tail"] or match["head"] or match["of"])
        return " " * len(match[0]) if gone else match[0]

    return _COMPOUND.sub(blanked, text)


def compound_occurs(word: str, source: str) -> bool:
    """Whether a compound occurs in a source, which must be on one line and in lower case."""
    match = _COMPOUND.fullmatch(word)
    if match is None:
        return False
    if match["nth"]:
        nth = _number_forms(match["nth"].casefold(), _ORDINALS, "(?:st|nd|rd|th)")
        noun = _stem_form((match["of"] or "").removeprefix("-").casefold())
        pattern = rf"{nth}[ -]{noun}" if noun else rf"{nth}(?!\w)"
    elif match["number"]:
        number = _number_forms(match["number"].casefold(), _CARDINALS)
        noun = _stem_form(match["what"].casefold())
        pattern = rf"{number}(?:[ -]\w+)?[ -]{noun}|{noun}\w*[ :=-]{{1,2}}{number}(?!\w)"
    else:
        pattern = "[ ._-]?".join(re.findall(r"\d+|[^\W\d_]+", word.casefold())) + r"s?(?!\w)"
    return re.search(rf"(?<![\w.,])(?:{pattern})", source) is not None


def _is_no_amount(match: re.Match[str]) -> bool:
    """Whether a match of `_COMPOUND` is no amount (`10ms`, `USD500`, `twenty-five`), no ordinary word
    (`second`), no day of a month and no ISO time."""
    if match["nth"]:
        return match["nth"].casefold() not in _AMBIGUOUS_ORDINALS and not _is_day_of_month(match)
    if re.fullmatch(r"\d+T\d+.*", match["head"] or ""):
        return False
    if match["head"]:
        model = re.fullmatch(r"\d+[BDG]", match["head"])  # 3D, 5G, 7B
        return bool(model) or not _MEASURES.issuperset(re.findall(r"[^\W\d_]+", match["head"].casefold()))
    beside = match["what"] or match["tail"].rstrip("0123456789.")
    return beside.casefold() not in (_CURRENCIES if match["tail"] else _MEASURES | _CARDINALS.keys())


def _is_day_of_month(match: re.Match[str]) -> bool:
    """Whether an ordinal is a day of a month: one is named beside it, or it is understood ("on the 3rd.")."""
    before, behind = match.string[: match.start()][-20:], match.string[match.end() :][:20]
    month = re.search(rf"{A_MONTH}\w* (?:the )?$", before, re.I) or re.match(
        rf" (?:of )?{A_MONTH}", behind, re.I
    )
    return bool(month or (re.search(rf"{_ON_DAY} the $", before, re.I) and not re.match(r" \w", behind)))


def _number_forms(word: str, table: Mapping[str, int], ending: str = "") -> str:
    """A pattern for all spellings of a small number, `2`, `two`, or with the `ending` of an ordinal `3rd`,
    `third`."""
    number = table.get(word) or int(re.sub(r"\D", "", word))
    return f"(?:{'|'.join([f'{number}{ending}', *(each for each, n in table.items() if n == number)])})"


def _stem_form(word: str) -> str:
    """A pattern for what the forms of a word begin with: `party` and `parties`, `step` and `stepped`."""
    return re.escape(word[:-1] if len(word) > 3 and word[-1] in "esy" else word)


# -- terms -------------------------------------------------------------------------------------------------
# The stemmed content words by which two sentences are compared.


UNSPACED = late(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\U00020000-\U0003ffff]")
"""A character of a script without spaces between words; each is compared by itself."""


def terms(text: str) -> frozenset[str]:
    """The stemmed words of a text without stop words, for comparing it with another."""
    words = (word.casefold() for word in TERM.findall(text))
    return frozenset(_term_stem(word) for word in words if word not in STOP_WORDS)


def _term_stem(word: str) -> str:
    for ending in ("ing", "ed", "es", "s") if word[-1:] in ("g", "d", "s") else ():
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


# -- claims ------------------------------------------------------------------------------------------------
# What a fact names must occur in its quote or in the turns around it.
#
# A model writes fluent sentences that nobody said. So every name, number, date, path and URL of a
# machine-written fact is looked up in the evidence. If one is missing, the sentence is rejected and the
# verbatim quote is used instead. Ordinary words may differ: facts are reworded. In doubt a word is a claim:
# rejecting a true sentence costs its wording, keeping a false one costs trust.


_URL = late(r"\b[a-z][a-z0-9+.-]*://[^\s<>\"'`)\]]+|\bwww\.[^\s<>\"'`)\]]+", re.IGNORECASE)
_EMAIL = late(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_PATH = late(
    r"(?<![\w/])(?:~|\.{1,2})?/?(?:[\w.@+-]+/)+[\w.@+-]*|(?<![\w/])/[\w.@+-]+|"
    r"(?<![\w/.])(?!(?:e\.g|i\.e|a\.m|p\.m|a\.k)\b)\.?[\w-]+(?:\.[\w-]+)*\."
    r"(?:[a-z]\w{0,4}|(?-i:[a-z]{2,14}))\b(?![/\w])",
    re.IGNORECASE,
)
_IDENTIFIER = late(
    r"(?:\b(?:\w+_\w+|\w+-\d[\w.-]*|[a-z]+[A-Z]\w*|[A-Z]{2,}\w*|v\d[\w.]*)|(?<!\w)@\w[\w.-]*)\b"
)
_ABBREVIATIONS = late("[A-Z]{2,}s")
"""The only identifiers with a plural: `PRs` are PRs, but `map_keys` is no `map_key`."""
_BRAND = late("[a-z][A-Z][a-z]+")
_QUOTED = late(r"`([^`\n]+)`|(?<![\w&/])#([A-Za-z][\w/-]*)")
_VERBATIM = late(r"(?<!\w)[\"„«](?=\S)([^\"„«»\n]*\S)[\"»]")
_ELLIPSIS = late(r"\[?(?:…|\.\.\.)\]?")
_TRAILING_MARKS = ".,;:!?"
_YEAR = late(r"(?:19|20)\d\d(?:-(?:0[1-9]|1[0-2]))?")


_TOPIC_CLAIMS = ("verbatim", "code", "url", "path", "identifier", "name", "opening", "coined")


def ungrounded_claims(
    text: str, evidence: Sequence[str], said_on: date | None = None, context: SourceText | None = None
) -> tuple[str, ...]:
    """The names, numbers, dates, paths and URLs of `text` that the evidence does not have, in order. What it
    is about may be named in its `context`, such as the rest of the conversation; numbers and dates may not.

    `said_on` is the day of the quote, from which "yesterday" counts in both. Without it only dates with a
    year are compared as dates; the words of the others are compared as words.
    """
    known = SourceText(evidence, said_on)
    missing = [(kind, claim) for kind, claim in claims(text, said_on) if not known.has(kind, claim)]
    around = context or known
    return tuple(claim for kind, claim in missing if kind not in _TOPIC_CLAIMS or not around.has(kind, claim))


def is_grounded_name(name: str, evidence: Sequence[str]) -> bool:
    """Whether what a model lists as a name is no ordinary word, and occurs in the evidence."""
    words = [word.casefold() for word in _AMOUNT_WORD.findall(name)]
    ordinary = bool(words) and all(word in ORDINARY or not terms(word) for word in words)
    return not ordinary and SourceText(evidence, None).has_name(_normalize(name))


class SourceText:
    """The names, dates, numbers and words of the evidence, for looking up claims by kind."""

    def __init__(self, pieces: Sequence[str], said_on: date | None) -> None:
        text = _normalize("\n".join(pieces))
        self._said_on = said_on
        self._text = text.casefold()
        self._line = " ".join(self._text.split())
        self._date_ranges = {(span.start, span.end) for span in _date_spans(text, said_on)}
        days = _named_days(text, said_on)
        self._days = {day for _, day in days}
        self._yearless = {day[5:] for _, day in days}
        self._unsure_days = {day[5:] for span, day in days if not span.sure}
        self._sure_days = {day[5:] for span, day in days if span.sure}
        self._ahead = set(implied_days(text, said_on)) if said_on else set()
        if said_on:
            self._days |= {day.isoformat() for day in (said_on, *self._ahead)}
            self._date_ranges |= {(day, day + timedelta(days=1)) for day in self._ahead if day < date.max}
        self._urls = {_trim_url(match[0]) for match in _URL.finditer(text)}
        self._words = {form for word in _AMOUNT_WORD.findall(text) for form in _word_forms(word)}
        self._stems = {stem for word in self._words for stem in _verb_stems(word)}
        self._roots = {_root(word) for word in self._words}
        self._source = text

    @cached_property
    def _amounts(self) -> Amounts:
        return Amounts(blank_compounds(self._source))

    def has(self, kind: str, claim: str) -> bool:
        if kind == "date":
            near = claim[5:] in self._unsure_days and self._is_within_a_year(claim)
            return claim in self._days or near or self._may_mean(claim)
        if kind == "yearless":
            return claim[5:] in self._yearless or self._may_mean(claim)
        if kind in ("number", "identifier") and _YEAR.fullmatch(claim) and self._has_year(claim):
            return True
        if kind == "number":
            return self._amounts.has(claim)
        if kind == "compound":
            nth = claim.casefold().partition("-")[0]
            return (
                compound_occurs(claim, self._line) or self._has_ordinal_number(nth) or self._has_phrase(nth)
            )
        if kind in ("verbatim", "code"):
            return self._has_phrase(claim)
        if kind in ("stretch", "moment"):
            return self._has_phrase(claim) or self._has_date(kind, claim)
        if kind == "url":
            return _trim_url(claim) in self._urls or self._has_token(claim)
        if kind in ("name", "opening") and matches_range(claim.casefold(), self._date_ranges):
            return True
        if kind in ("name", "opening") and self._names_month(MONTH_NAMES.get(claim.casefold(), 0)):
            return True
        if kind == "name" and GERMAN.search(self._line) and _root(claim.casefold()) in self._roots:
            return True  # a noun
        if kind == "name":
            return all(_word_forms(part) & self._words for part in claim.split("-") if part)
        if kind in ("coined", "opening") and _root(claim) in self._roots:
            return True
        if kind == "coined" and any(word.startswith(claim[:_SHORTEST_STEM]) for word in self._words):
            return True
        if kind in ("opening", "coined"):
            return bool((_verb_stems(claim) | _word_forms(claim)) & (self._stems | self._words))
        if kind == "identifier":  # "API" stands in "API-keys", "gpt-4" not in "gpt-4.1"
            forms = [claim, claim[:-1]] if _ABBREVIATIONS.fullmatch(claim) else [claim]
            forms += [f"{claim}s", claim.removesuffix("s")] if _BRAND.fullmatch(claim) else []
            return any(self._has_token(form, r"[.-]\d") for form in forms)
        return self._has_token(claim)

    def _has_ordinal_number(self, nth: str) -> bool:
        """Whether the number of an ordinal occurs: who turned 91 had the 91st birthday."""
        number = str(_ORDINALS.get(nth, "")) or re.sub(r"(?<=\d)(?:st|nd|rd|th)$", "", nth)
        counted = rf"(?<![\w.,]){number}(?![\w:.,]*\d)(?! (?:of )?{A_MONTH})"
        return number.isdigit() and re.search(counted, in_digits(self._line), re.IGNORECASE) is not None

    def has_name(self, name: str) -> bool:
        """Whether a name occurs as whole words; in a script without spaces, as characters."""
        whole = self._has_phrase(name) or self._has_phrase(f"{name}s")
        return whole or bool(UNSPACED.search(name) and name.casefold() in self._line)

    def _may_mean(self, claim: str) -> bool:
        """Whether a weekday, a day of a month or the end of one in the evidence may mean this ISO day."""
        if self._said_on is None or claim[5:] in self._sure_days:
            return False
        day = date.fromisoformat(claim)
        away = abs((day - self._said_on).days)
        weekdays = {ALL_WEEKDAYS.get(word) for word in self._words}
        weekdays -= {each.weekday() for each in self._ahead}  # "by Friday" is one day
        if away < 14 and day.weekday() in weekdays:
            return True
        if away < 46 and re.search(rf"\b{day.day}(?:st|nd|rd|th|\.)(?!\w)", self._line):
            return True
        last = (day + timedelta(days=1)).day == 1 and self._names_month(day.month, "end of ")
        named = self._names_month(day.month) and str(day.day) in re.findall(r"\d+", self._line)
        return away < 367 and (last or named)

    def _has_year(self, claim: str) -> bool:
        """Whether a date of the evidence is in a year, or in a month of it (`2026-02`)."""
        year, _, month = claim.partition("-")
        starts = [start for start, _ in self._date_ranges] + ([self._said_on] if self._said_on else [])
        if any(f"{start:%Y-%m}".startswith(claim) for start in starts):
            return True
        near = (
            self._said_on is not None
            and abs((date(int(year), int(month or 1), 1) - self._said_on).days) <= 366
        )
        return near and bool(month) and self._names_month(int(month))

    def _names_month(self, month: int, before: str = "") -> bool:
        return any(
            ALL_MONTHS.get(name) == month
            for name in re.findall(rf"(?<!\w){before}(?:the )?([^\W\d_]+)", self._line)
        )

    def _is_within_a_year(self, day: str) -> bool:
        """Whether a day is at most a year away, so that a date without a year can mean it."""
        return self._said_on is None or abs((date.fromisoformat(day) - self._said_on).days) <= 366

    def _has_phrase(self, claim: str) -> bool:
        """Whether these words occur one after another, ignoring white space and case."""
        wanted = re.escape(" ".join(claim.casefold().split()))
        return re.search(rf"(?<!\w){wanted}(?!\w)", self._line) is not None

    def _has_date(self, kind: str, claim: str) -> bool:
        """Whether a date of the evidence is what a date range or other time words mean."""
        if kind == "moment":
            later = claim.removeprefix("next ") if claim.startswith("next ") else "?"
            said = self._has_phrase(f"{claim}s") or self._has_phrase(f"tomorrow {later}")
            return said or matches_range(claim, self._date_ranges)
        mine = [(span.start, span.end) for span in _date_spans(claim, self._said_on)]
        if any(27 < (end - start).days < 32 and self._has_year(f"{start:%Y-%m}") for start, end in mine):
            return True
        return any(start <= first and last <= end for start, end in mine for first, last in self._date_ranges)

    def _has_token(self, claim: str, longer: str = r"/|[.-]\w") -> bool:
        """Whether a claim occurs as a whole token, not followed by a match of `longer`."""
        wanted = re.escape(claim.casefold())
        return re.search(rf"(?<!\w){wanted}(?!\w|{longer})", self._text) is not None


def claims(text: str, said_on: date | None = None) -> Iterator[tuple[str, str]]:
    """(kind, text) of everything in a text that evidence must support.

    Kinds: verbatim (in quotation marks), code (in backticks, or a tag), url, email, path, date (an ISO day),
    yearless (a day whose year is a guess), stretch (a range of days), moment (other time words), identifier,
    compound (a word with a number in it, or an ordinal), number, name, opening (a capitalised word at the
    beginning of a sentence, which may be a name) and coined (a lower-case word that is not English).
    """
    rest = _normalize(text)
    for match in _VERBATIM.finditer(rest):
        parts = (part.strip().rstrip(_TRAILING_MARKS) for part in _ELLIPSIS.split(match[1]))
        yield from (("verbatim", words) for words in parts if words)
    yield from (("code", (match[1] or match[2]).strip()) for match in _QUOTED.finditer(rest))
    for kind, pattern in (("url", _URL), ("email", _EMAIL), ("path", _PATH)):
        for match in pattern.finditer(rest):
            yield kind, match[0].rstrip(_TRAILING_MARKS)
        rest = pattern.sub(_blank_out, rest)
    for span, day in _named_days(rest, said_on):
        yield ("date" if span.sure else "yearless"), day
        rest = rest[: span.at] + " " * (span.to - span.at) + rest[span.to :]
    for span in _date_spans(rest, said_on):
        yield "stretch", rest[span.at : span.to]
        rest = rest[: span.at] + " " * (span.to - span.at) + rest[span.to :]
    yield from (("moment", each) for each in moments(in_digits(rest)))
    for match in _IDENTIFIER.finditer(rest):
        yield "identifier", match[0]
    rest = _IDENTIFIER.sub(_blank_out, rest)
    for match in compounds(rest):
        yield "compound", match[0]
        rest = rest[: match.start()] + " " * len(match[0]) + rest[match.end() :]
    yield from (("number", written) for written in sorted({each.written for each in amounts(rest)}))
    yield from _name_claims(rest)
    yield from (("coined", word) for word in coined_words(rest))


def locate(quote: str, turns: Sequence[str]) -> int | None:
    """The index of the first turn that contains a quote as whole words, ignoring white space; else None."""
    wanted = " ".join(_normalize(quote).split())
    if not wanted:
        return None
    plain = (" ".join(_normalize(turn).split()) for turn in turns)
    return next((n for n, turn in enumerate(plain) if _contains_words(turn, wanted)), None)


def _contains_words(text: str, wanted: str) -> bool:
    """Whether a text contains `wanted` as whole words. Compiling a pattern for each took longer than this."""
    at = -1
    while (at := text.find(wanted, at + 1)) >= 0:
        before, after = text[at - 1 : at], text[at + len(wanted) :][:1]
        whole = not (wanted[0].isalnum() and (before.isalnum() or before == "_"))
        if whole and not (wanted[-1].isalnum() and (after.isalnum() or after == "_")):
            return True
    return False


def nearby_turns(index: int, turns: Sequence[str]) -> list[str]:
    """A turn with the one before and after it: the evidence for a fact from that turn."""
    return list(turns[max(0, index - 1) : index + 2])


def _date_spans(text: str, said_on: date | None) -> list[calendar.Span]:
    """The date ranges that a text names. Without `said_on` only those with a year."""
    found = calendar.spans(text, said_on or date(2000, 1, 1))
    return [each for each in found if said_on or re.search(r"\d{4}", text[each.at : each.to])]


def _named_days(text: str, said_on: date | None) -> list[tuple[calendar.Span, str]]:
    """The single days that a text names: (span, ISO day)."""
    return [(span, span.start.isoformat()) for span in _date_spans(text, said_on) if span.is_day]


def _name_claims(text: str) -> Iterator[tuple[str, str]]:
    for match in _AMOUNT_WORD.finditer(text):
        word = match[0]
        if not word[0].isupper():
            continue
        if _has_cue("german noun", text[: match.start()][-12:]):
            continue
        first = is_opening(text[: match.start()].rstrip("\"'(*_ "), word)
        plain = word.casefold().removesuffix("'s") if first else word.casefold()
        if plain in little_words()["roles"] or _cue("role of").fullmatch(plain):
            continue
        if plain in foreign_stop_words() or (
            first and any(one.fullmatch(plain) for one in _cue_words().values())
        ):
            continue
        if plain in ORDINARY and (first or len(word) < 3 or plain in ("user", "assistant")):
            continue
        if first and opens_sentence(word, text[match.end() : match.end() + 10]):
            continue
        yield ("opening" if first and "-" not in word else "name"), word


def _word_forms(word: str) -> set[str]:
    """A word with and without the s of a genitive or plural: `Heroku's` is Heroku, but James is not jam."""
    plain = word.casefold().strip("'-")
    forms = {plain, *plain.replace("'", "-").split("-")}
    forms |= {form[:-2] for form in forms if form.endswith("'s")}
    forms |= {form[:-1] for form in forms if form.endswith("s") and len(form) > 3}
    return forms - {""}


def _verb_stems(word: str) -> set[str]:
    """A word with and without verb endings, so that `Decided` at the start of a sentence is decide."""
    plain = word.casefold().strip("'-")
    endings = [e for e in ("es", "ed", "d", "ing", "ly") if plain.endswith(e) and len(plain) - len(e) >= 4]
    return {plain, *(plain[: -len(ending)] for ending in endings)}


def _trim_url(text: str) -> str:
    return text.rstrip(_TRAILING_MARKS).rstrip("/")


def _blank_out(match: re.Match[str]) -> str:
    return " " * len(match[0])


@cache
def _shorthand() -> tuple[re.Pattern[str], Mapping[str, str]]:
    """A pattern for shorthand such as `dont` or `u`, and the full words for it."""
    spelt = dict(row.replace("_", " ").split("|") for row in little_words()["typed"])
    negated = r"(?P<verb>do|does|did|is|was|are|were|have|has|had|could|would|should|ca|wo)nt"
    going = r"im(?= (?:not|so|the|an?|at|on|in|just|still|gonna|[a-z]+ing)\b)"  # not the German one
    return re.compile(rf"(?<![\w`'])(?:{negated}|{going}|{'|'.join(spelt)})(?![\w`'])", re.IGNORECASE), spelt


def _normalize(text: str) -> str:
    """A text in NFKC, with straight quotation marks, and shorthand spelt out."""
    text = normalize("NFKC", text)
    text = text.translate({0x2019: "'", 0x2018: "'", 0x201C: '"', 0x201D: '"'})
    pattern, spelt = _shorthand()
    return pattern.sub(
        lambda one: f"{one['verb']}n't" if one["verb"] else spelt.get(one[0].casefold(), "I'm"), text
    )


# -- support -----------------------------------------------------------------------------------------------
# Whether a statement shares enough words with its evidence. A sentence of ordinary words has no claims to
# look up, and may still be made up. A false statement in the evidence's own words, or without its "not",
# passes.


_SPEECH_TERMS = terms(
    "user person agent assistant owner team speaker says said tells told asks wants yes ok ll re ve since"
    " until sorry unable help please"
)
"""Terms for speakers, speaking and excuses, which need no support."""
_SHORTEST_STEM, _LONGEST_STEM = 4, 64


def is_supported(text: str, evidence: Sequence[str], question: str = "") -> bool:
    """Whether a text is about what its evidence is about: a quarter of its terms occur there in some form,
    and at least one; names and numbers count half. Asking for more would refuse twice as many paraphrases as
    lies.

    The terms of the `question` it answers do not count. A text without other terms ("No, no.") is not
    supported, unless it answers a question.
    """
    if _DIGIT.search(text := in_digits(text)):
        evidence = [*map(in_digits, evidence)]
    matches = _word_matcher(_content_terms(evidence))
    ignored = _content_terms([question]) | _stop_terms() | _name_terms([text, *evidence])
    if not all(any(map(matches, one.split())) for one in _cue("status").findall(text.casefold())):
        return False
    hedges = [_cue(kind) for kind in ("unsure", "intended", "ahead")]
    own = _content_terms([text])
    words = {word for word in own if matches(word) or not any(one.fullmatch(word) for one in hedges)}
    numbers = {*re.findall(r"\d+", " ".join(evidence))}
    speakers = _content_terms(
        label[1] for each in evidence for line in each.split("\n") if (label := _cue("label").match(line))
    )
    names_too = sum(map(matches, words & ignored - _SPEECH_TERMS - speakers))
    names_too += len({*re.findall(r"\d+", text)} & numbers)
    if not question and not words - ignored and not names_too:
        return False
    own = {word for word in words - ignored if not word.isdigit()}
    return not own or sum(map(matches, own)) + names_too / 2 >= max(1, len(own) / 4)


def _word_matcher(there: Set[str]) -> Callable[[str], bool]:
    """A function that says whether a word is one of these, a form of one, a synonym or an antonym."""
    stems = {_short_stem(word) for word in there}
    roots = {*map(_root, there)}

    begun = {word[:end] for word in there for end in range(_SHORTEST_STEM, min(len(word), _LONGEST_STEM) + 1)}

    def matches(word: str) -> bool:
        beginnings = (word[:end] for end in range(_SHORTEST_STEM, min(len(word), _LONGEST_STEM)))
        near = (
            _root(word) in roots
            or word in there
            or _short_stem(word) in begun
            or any(each in stems for each in beginnings)
        )
        if near:
            return True
        return any(_term_stem(other) in there for other in (*related(word), *antonyms(word)))

    return matches


@cache
def _stop_terms() -> frozenset[str]:
    words = (*foreign_stop_words(), *little_words()["roles"], *MONTH_NAMES, *WEEKDAYS)
    return _SPEECH_TERMS | terms(" ".join(words))


_RESTATED_SHARE, _RESTATED_TERMS = 0.8, 3
"""The share of a repetition's terms that its source must have, and the least number of its terms."""
_NEGATION = late(
    r"\b(?:no|not|never|none|without|cannot|\w+n't|nicht|nie|kein\w*|ohne|pas|jamais|sans|nunca|sin)\b",
    re.IGNORECASE,
)


def restates(text: str, source: str, *, exact: bool = False) -> bool:
    """Whether a text only repeats its source in other words or another order.

    Nearly all of its terms and every name and number must occur there, and it may be negated only if the
    source is. With `exact` all words must occur in the same form: "we move" does not repeat "we moved".
    """
    there = _content_terms([source])
    own = {word for word in _content_terms([text]) - _SPEECH_TERMS if not word.isdigit()}
    if len(own) < _RESTATED_TERMS or bool(_NEGATION.search(text)) != bool(_NEGATION.search(source)):
        return False
    matches, words = _word_matcher(there), words_only(source)
    if exact and not all(f" {word} " in words for word in words_only(text).split() if terms(word) & own):
        return False
    return sum(map(matches, own)) >= _RESTATED_SHARE * len(own) and not ungrounded_claims(text, [source])


def _content_terms(pieces: Iterable[str]) -> set[str]:
    text = "\n".join(pieces)
    spaced = (word for word in terms(UNSPACED.sub(" ", text)) if len(word) > 1)  # the m of I'm says nothing
    return {*UNSPACED.findall(text), *spaced}


def _name_terms(pieces: Sequence[str]) -> set[str]:
    """The terms of some texts that are names, without words for relatives."""
    roots = _name_roots((), pieces)
    return {word for word in _content_terms(pieces) if _root(word) in roots - _kin_roots()}


def _short_stem(word: str) -> str:
    """A word without its last two letters, but at least four."""
    return word[: max(_SHORTEST_STEM, len(word) - 2)]


# -- agreement ---------------------------------------------------------------------------------------------
# Whether a statement contradicts the quote that it rests on, although it uses the quote's words.
#
# A quote is distorted by an added or dropped "not", another speaker, a dropped "might", another order of its
# words. Both sides are split into clauses, and each clause of the statement is compared with the quote's
# clauses that share its words. The checks look for cue words (`data/little_words.toml`). A contradiction in
# other words ("the price fell" of one that rose) is not recognised.


_I_AM = r"(?:\bi am|\bi'm|name is|ich bin|hei(?:ß|ss)e|je suis|m'appelle|\bsoy|me llamo)"
_PHRASES = Phrases("agreement_phrases.txt", i_am=_I_AM)
"""Forms of verbs, orders of words and so on, in several languages."""
_FIRST_NAME = late(r"(?:(?:Mr|Mrs|Ms|Dr)\.? )?([A-Z][a-z]\w*)")
_NUMBER_UNIT = late(r"(?<![\w.,:])(\d+(?:[.,:]\d+)*) ([^\W\d_]+)")
_THAN_WORDS, _FOR_WORDS = ("than", "als", "que"), ("for", "für", "pour", "por", "para")
_WITH_WORDS = frozenset(["with", "mit", "avec", "con"])
_COORDINATE_BREAK = late(r"; |, (?=and |but |und |aber |et |mais |y |pero |maybe |perhaps |vielleicht )")
_PARALLEL_CLAUSES = late(r"[,;]? (?:and|und|et|y|but|aber|mais|pero|while) |[,;] ")
_ROLES = ("person", "user", "assistant")
_OTHER_ROLE = {"person": "assistant", "assistant": "person"}
_ROLE_ROOTS = ("perso", "assis", "agent")
_SELF_INTRODUCTION = rf"(?:{_I_AM}|\bam|this is) {{0}}|\b{{0}}\w* here\b"
_CONTRACTIONS = (
    (late(r"\bcan't\b"), "can not"), (late(r"\bwon't\b"), "will not"), (late(r"n't\b"), " not"),
    (late(r"'ll\b"), " will"), (late(r"'d\b"), " would"), (late(r"'(?:m|re|ve)\b"), ""),
    (late(r"\bn'"), "ne "), (late(r"\bj'"), "je "), (late(r"\bm'"), "me "), (late(r"\b(?:[ldts]|qu)'"), ""),
)  # fmt: skip
_FUSED_PREPOSITIONS = {"zum": "zu", "zur": "zu", "vom": "von", "al": "a", "del": "de", "au": "à", "du": "de"}
_PHRASE_TO_REWRITE = late(
    rf"\b(?:(?P<one>{'|'.join(_FUSED_PREPOSITIONS)})\b|for (?P<reason>\w+) reasons\b|"
    r"(?:less|fewer|weniger|moins|menos) (?!than|als|que|de|of|or|oder|ou|o))"
)
_CLAUSE_START = late(r"(?<=[.!?;:,])\s+")
_ROOT_LENGTH = 5
_WORD_OR_NUMBER = late(r"[^\W\d_]+-\d+|\d+(?:[.,:]\d+)*|[^\W\d_]+(?:[-'][^\W\d_]+)*")


@cache
def _cue_words() -> Mapping[str, re.Pattern[str]]:
    """The cue words of `data/little_words.toml`: one pattern for each kind of cue."""

    def phrase(word: str) -> str:
        return re.escape(word.replace("_", " ").casefold()).replace(r"\*", r"\w*").replace(r"\ ", " ")

    return {
        name: late(rf"\b(?:{'|'.join(map(phrase, sorted(words, key=len, reverse=True)))})\b")
        for name, words in little_words().items()
    }


def _cue(kind: str) -> re.Pattern[str]:
    """The pattern of a kind of cue words, or of a phrase."""
    return _cue_words().get(kind) or _PHRASES[kind]


def _has_cue(kind: str, text: str) -> bool:
    return _cue(kind).search(text) is not None


@dataclass(frozen=True, slots=True)
class _Clause:
    """A clause in lower case, with contractions spelt out.

    `names` are those of its stems that are names. `inherited` are stems it takes over from the clause before
    (`and the stove 85`), and `prior_names` the names of the clauses that it continues.
    """

    text: str
    stems: tuple[str, ...]
    names: frozenset[str]
    sentence: str
    speaker: str = ""
    inherited: frozenset[str] = frozenset()
    prior_names: frozenset[str] = frozenset()
    question: bool = False

    @property
    def words(self) -> frozenset[str]:
        """Its own stems and those it inherits."""
        return frozenset(self.stems) | self.inherited


def disagreement(
    text: str, quotes: Sequence[str], evidence: Sequence[str] = (), *, agreed: bool = False
) -> str:
    """Why a statement does not agree with the quotes that it rests on, as a message to the model; '' if it
    does.

    `evidence` are the texts that contain the quotes, and others that it may take words from. Each may begin
    with its speaker (`Anna: `, or the role `person: `). `agreed`: what was only proposed was then agreed to.
    """
    if not is_supported(text, evidence or quotes):
        return "too few of its words occur in the source"
    return contradiction(text, quotes, evidence, agreed=agreed)


def contradiction(
    text: str, quotes: Sequence[str], evidence: Sequence[str] = (), *, agreed: bool = False
) -> str:
    """`disagreement` for a statement that need not share words with its quotes."""
    pieces = [each for each in evidence if each] or list(quotes)
    original, text = text, _use_source_words(text, pieces)
    cited = [sentence for quote in quotes for sentence in _quoted_sentences(quote, pieces)]
    names = _name_roots([text], pieces)
    quoted = [claim for sentence, who in cited for claim in _parse_clauses(sentence, names, who)]
    known = [claim for piece in pieces for claim in _parse_clauses(piece, names)]
    quoted_texts = [sentence for sentence, _ in cited]
    own = quotes if not _has_cue("reports", words_only(" ".join(quoted_texts))) else ()
    if words_only(original) in {words_only(" ".join(quoted_texts)), *map(words_only, (*quoted_texts, *own))}:
        return ""
    resolved = [_resolve_i(sentence, who) for sentence, who in cited]
    found = (
        _check_hearsay(text, resolved)
        or _check_reason(text, quoted_texts, names, pieces)
        or _check_quantity(text, quoted_texts)
        or _check_limits(text, quoted_texts)
        or _check_exchanged(text, quotes)
        or _check_actor(text, cited, evidence)
    )
    if found := found or _check_order(_resolve_i(text, ""), resolved, names):
        return found
    literal, clauses = {*_stems(_simplify(original))}, _parse_clauses(text, names)
    there = {stem for one in known for stem in one.stems} | names
    reworded = len({stem for claim in clauses for stem in claim.stems if stem.isalpha()} - there) > 1
    for claim in clauses:
        closest = _closest_clauses(claim, quoted)
        found = (
            _check_hearsay(text, resolved, closest) or _check_negation(claim, quoted, resolved, literal)
            or (not agreed and _check_certainty(closest, quoted, text)) or _check_tense(closest, text)
            or _check_subject(claim, closest)
            or (not reworded and _check_names(claim, known, quoted))
            or _check_unit(claim, known) or _check_measure(claim, known)
            or (not agreed and _check_speaker(claim, closest)) or _check_joined(claim, resolved)
        )  # fmt: skip
        if found:
            return found
    return ""


def introduces_speaker(text: str) -> bool:
    """Whether who speaks says their name: "I am Kasia"."""
    return _has_cue("introduces", text)


def with_speaker_label(speaker: str, text: str) -> str:
    """A text with its speaker in front, unless it begins with a speaker already."""
    return text if _cue("label").match(text) else f"{speaker}: {text}"


# source words


_LOWER_CASE_WORD = late(r"(?<!\w)[^\W\d_A-ZÀ-Þ][^\W\d_]*(?!\w)")
_WORD_IN_SENTENCE = late(r"(?P<less>\b(?:not|less|no) )?(?<![\w'])(?P<word>[^\W\d_]{3,})(?![\w'])")


def _use_source_words(text: str, pieces: Sequence[str]) -> str:
    """A statement with synonyms and antonyms replaced by words of its sources: `purchased` becomes `buyed`
    where they say `bought`, and `dear` becomes `not cheap` where they say `cheap`."""
    words = [word for piece in pieces for word in _LOWER_CASE_WORD.findall(piece) if word not in STOP_WORDS]
    there = {_root(word.removesuffix("er").removesuffix("est")): word for word in words}
    there |= {_root(word): word for word in words}

    def instead(match: re.Match[str]) -> str:
        word = match["word"]
        if (
            word in STOP_WORDS
            or _root(word) in there
            or word in foreign_stop_words()
            or _cue("unchanged word").fullmatch(word)
            or _has_cue("undoes", word)
        ):
            return match[0]
        past = "ed" if is_past(word) else ""
        found = next((other for other in related(word) if _root(other) in there), "")
        if found:
            return f"{match['less'] or ''}{found}{past}"
        found = next((other for other in antonyms(word) if _root(other) in there), "")
        found = there[_root(found)] if found and word.endswith(("er", "est")) else f"{found}{past}"
        return f"{'' if match['less'] else 'not '}{found}" if found.removesuffix("ed") else match[0]

    return _WORD_IN_SENTENCE.sub(instead, text)


# clauses


def _simplify(text: str) -> str:
    """A text in lower case, with numbers in digits, and contractions and fused prepositions spelt out."""
    text = in_digits(_normalize(text).casefold())
    text = _AMOUNT.sub(_amount_in_digits, text) if _DIGIT.search(text) else text
    text = _ORDINAL_ABOVE_TWO.sub(lambda match: f"{_ORDINALS[match[0]]}th", text)
    for pattern, instead in _CONTRACTIONS if "'" in text else ():
        text = pattern.sub(instead, text)
    return _PHRASE_TO_REWRITE.sub(_rewrite_phrase, text)


def _rewrite_phrase(match: re.Match[str]) -> str:
    """`zum` as `zu`, "for tax reasons" as a because, and "less" as a "not"."""
    if match["one"]:
        return _FUSED_PREPOSITIONS[match["one"]]
    return f"because of {match['reason']}" if match["reason"] else "not "


def _amount_in_digits(match: re.Match[str]) -> str:
    """`1.5k` and `1,500` as 1500, with the unit as it is."""
    plain, scale = _normalize_number(match["digits"]), match["close"] or match["scale"] or ""
    if not scale or scale == "m":
        return match[0].replace(match["digits"], plain, 1)
    return match[0].replace(match["digits"], _apply_scale(plain, _SCALES[scale]), 1).replace(scale, "", 1)


def _parse_clauses(text: str, names: Set[str], speaker: str = "") -> list[_Clause]:
    """The clauses of a text, with "I" replaced by the speaker. Labels (`Anna: `) change the speaker."""
    found: list[_Clause] = []
    for line in _normalize(text).split("\n"):
        label = _cue("label").match(line)
        speaker = _label_speaker(label) if label else speaker
        for sentence in main_clauses(line[label.end() :] if label else line):
            plain, before = _resolve_i(sentence, speaker), None
            for piece in _split_clauses(plain, names):
                before = _make_clause(piece, plain, names | {_root(speaker)}, speaker, before)
                found.append(before)
    return found


def _resolve_i(sentence: str, speaker: str) -> str:
    """A simplified sentence with "I" replaced by its speaker, and all words for the user by `person`."""
    plain = _cue("user").sub("person", _simplify(sentence))
    if speaker in _OTHER_ROLE and (
        speaker == "assistant" or any(map(is_past, _cue("you did").findall(plain)))
    ):
        plain = _cue("you").sub(_OTHER_ROLE[speaker], plain)
    plain = _cue("object first").sub(r"\1 me", plain) if " me " in plain and is_foreign(plain) else plain
    return _cue("subject").sub(speaker or "speaker", plain)


def _split_clauses(sentence: str, names: Set[str]) -> list[str]:
    """The clauses of a sentence. One without words of its own, or of names alone, stays with its
    neighbour."""
    pieces: list[str] = []
    bare = False
    for piece in filter(None, _cue("clause").split(sentence)):
        stems = {*_stems(piece)}
        alone = not {one for one in stems - (names - _kin_roots()) if not one.isdigit()}
        if pieces and (not stems or (_cue("joins").match(piece) and (alone or bare))):
            pieces[-1] += f" {piece}"
        else:
            pieces.append(piece)
        bare = alone
    return pieces


def _make_clause(piece: str, sentence: str, names: Set[str], speaker: str, before: _Clause | None) -> _Clause:
    stems = tuple(_stems(piece))
    mine = frozenset(stems) & names
    inherited: set[str] = set()
    prior_names: frozenset[str] = frozenset()
    if before:
        own = {one for one in stems if one not in names and not one[0].isdigit()}
        plain = [one for one in before.stems if one not in names and not one[0].isdigit()]
        joins = _cue("joins").match(piece) is not None
        short = not own & {*plain} and len(own) < 2 + bool(mine)
        if short or (joins and own <= {*plain}):
            inherited |= {*plain[0 if mine and before.names else 1 :]}
        number = [n for n, one in enumerate(before.stems) if one[0].isdigit()]
        if number and any(one[0].isdigit() for one in stems) and not any(_number_units(stems)):
            inherited |= {*before.stems[number[-1] + 1 :]}
        prior_names = before.names | before.prior_names if joins and not mine else prior_names
    mine |= {_root(speaker or "speaker")} if _has_cue("first", piece) else set()
    asks = sentence.rstrip().endswith("?")
    return _Clause(piece, stems, mine, sentence, speaker, frozenset(inherited), prior_names, asks)


def _stems(text: str) -> Iterator[str]:
    """The roots of content words, and numbers, in order; none of scripts without spaces."""
    for match in _WORD_OR_NUMBER.finditer(UNSPACED.sub(" ", text)):
        word = match[0].removesuffix("'s")
        if word[0].isdigit():
            yield word.rstrip(".,:")
        elif len(word) > 1 and word not in STOP_WORDS and word not in foreign_stop_words():
            yield _root(word)


def _root(word: str) -> str:
    """The first letters that the forms of a word share, shorter than a stem: allergy and allergic are
    `aller`."""
    stem = _term_stem(irregular().get(word, word))
    stem = stem[:-1] if len(stem) > 3 and (stem[-1] in "eyaoéáó" or stem[-1] == stem[-2]) else stem
    return stem[:_ROOT_LENGTH]


def _name_roots(statement: Sequence[str], evidence: Sequence[str]) -> frozenset[str]:
    """The roots of names: words with a capital inside a sentence, speakers' labels, the first word of a
    sentence if it is no ordinary one and stands nowhere in small letters, words for roles and for relatives.
    In German only the first words."""
    found: set[str] = set()
    small = {word for text in evidence for word in _LOWER_CASE_WORD.findall(text)}
    for text in (*statement, *evidence):
        plain = _normalize(text)
        german, foreign = len(GERMAN.findall(plain)) > 1, is_foreign(plain)
        for line in plain.split("\n"):
            label = _cue("label").match(line)
            found |= {word.casefold() for word in label[1].split()} if label else set()
            for sentence in _CLAUSE_START.split(line[label.end() :] if label else line):
                for match in _AMOUNT_WORD.finditer(sentence):
                    word = match[0].removesuffix("'s")
                    inside = bool(sentence[: match.start()].strip("\"'(*_- "))
                    if not word[0].isupper() or (inside and german):
                        continue
                    if word in NO_NAMES or word.casefold() in ORDINARY:
                        continue
                    opens = word.casefold() in small or opens_sentence(word, sentence[match.end() :])
                    if inside or not (foreign or opens):
                        found.add(word.casefold())
    light = STOP_WORDS | foreign_stop_words()
    return frozenset(_root(word) for word in found if word not in light) | {*_ROLE_ROOTS} | _kin_roots()


def _quoted_sentences(quote: str, evidence: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(sentence, speaker) of each whole sentence that a quote is cut from. The speaker is the last label at
    or before its line. The quote itself where the evidence does not have it."""
    wanted = " ".join(_normalize(quote).split())
    for piece in evidence:
        speaker, rows = "", _normalize(piece).split("\n")
        if locate(quote, [piece]) is None:
            continue
        found = []
        for row in rows:
            if label := _cue("label").match(row):
                speaker, row = _label_speaker(label), row[label.end() :]
            for sentence in sentences(row):
                flat_one = " ".join(sentence.split())
                if flat_one and (flat_one in wanted or wanted in flat_one or _overlap(flat_one, wanted)):
                    found.append((flat_one, speaker))
        yield from found or [(quote, speaker)]
        return
    label = _cue("label").match(quote)
    yield (quote[label.end() :], _label_speaker(label)) if label else (quote, "")


def _label_speaker(label: re.Match[str]) -> str:
    """The speaker that a label names, `person` for the user."""
    who = label[1].split()[0].casefold()
    return "person" if who == "user" else who


def _overlap(sentence: str, quote: str) -> bool:
    """Whether a quote begins or ends in the middle of a sentence."""
    words = quote.split()
    return any(sentence.endswith(" ".join(words[:n])) for n in range(2, len(words))) or any(
        sentence.startswith(" ".join(words[n:])) for n in range(1, len(words) - 1)
    )


def _closest_clauses(claim: _Clause, quoted: Sequence[_Clause]) -> list[_Clause]:
    """The quoted clauses that share most stems with a clause of the statement."""
    mine = set(claim.stems)
    shared = [len(mine & set(one.stems)) for one in quoted]
    most = max(shared, default=0)
    return [one for one, number in zip(quoted, shared, strict=True) if most and number == most]


# negation


def _check_negation(
    claim: _Clause, quoted: Sequence[_Clause], resolved: Sequence[str], literal: Set[str]
) -> str:
    """Why one side denies what the other says, '' if neither does: the word after a "not" decides.

    For stems in `literal`, which no antonym was replaced by, other cues may stand for the "not".
    """
    both = claim.text + " ".join(one.text for one in quoted)
    if UNSPACED.search(both):
        closest = _closest_unspaced(claim, quoted)
        denies = _has_cue("not unspaced", claim.text)
        differs = closest and denies != _has_cue("not unspaced", closest.text)
        return "one denies what the other says" if differs else ""
    if any(_comparison_order(claim.sentence, other) < 0 for other in resolved):
        return ""
    known = {stem for one in quoted for stem in one.stems}
    negators = [*_cue("undoes").findall(claim.text), *_cue("implies_not").findall(claim.text)]
    has_own_negator = any(_root(one) not in known for one in negators)
    for one in quoted:
        if head := _dropped_denial(claim, one, has_own_negator):
            return f"what was said has “not {head}…”"
    of_denied = any(claim.names & {*scope} for one in quoted for scope in _negations(one.text))
    if has_own_negator or of_denied:
        return ""
    heads = (next(iter(scope), "") for scope in _negations(claim.text) if _is_added(scope, quoted, literal))
    return next((f"nothing that was said denies “{head}…”" for head in heads), "")


def _dropped_denial(claim: _Clause, quoted: _Clause, has_own_negator: bool) -> str:
    """The word that a quoted clause denies and the statement does not, '' for none. A statement with a
    negator of its own may deny it in other words."""
    negations, refusals = _negations(claim.text), _negations(claim.text, refusing=True)
    theirs, contrast = _negations(quoted.text, refusing=True), _cue("contrast").search(quoted.sentence)
    stems, denied = {*claim.stems}, {stem for scope in refusals for stem in scope}
    who = quoted.speaker or "speaker"
    speaker = {_root(who)} if quoted.text.strip(" .!") != f"not {who}" else set()
    after_but = contrast and stems & {*_stems(contrast["but"])} - {*quoted.stems}
    reworded = has_own_negator or any(not _share_head(each, theirs) for each in negations)
    for scope in (each for each in theirs if not _share_head(each, negations)):
        elsewhere = len(scope) > 1 and len(stems) > 2 and stems.isdisjoint(scope[1:4])
        if elsewhere and not claim.names & {*quoted.names}:
            continue
        head = next(iter(scope[1:] if contrast else scope), "")
        if reworded or head not in stems - denied - speaker:
            behind = scope[1:2] if is_foreign(quoted.text) else []  # its verb has another form
            if reworded or refusals or not {*behind} & (stems - denied - claim.names):
                continue
            head = behind[0]
        if not after_but or stems & {*scope[1:]}:
            return head
    return ""


def _is_added(scope: Sequence[str], quoted: Sequence[_Clause], literal: Set[str]) -> bool:
    """Whether a "not" of a statement is in none of the quoted clauses, though they have its word."""
    head = next(iter(scope), "")
    holders = [one for one in quoted if head in one.stems]
    return (
        bool(holders)
        and not any(
            _has_cue("undoes", one.text)
            or _negations(one.text, refusing=True)
            or one.question
            or any(_has_cue(kind, one.sentence) for kind in ("except", "unsure"))
            or _has_cue("all but", one.sentence)
            or (head in literal and any(_has_cue(kind, one.text) for kind in ("limits", "implies_not")))
            for one in holders
        )
        and not any({*scope[:2]} & {*other} for one in quoted for other in _negations(one.text))
    )


def _share_head(scope: Sequence[str], others: Iterable[Sequence[str]]) -> bool:
    """Whether one of the first two stems that a "not" applies to is one of the first two of another."""
    return any({*scope[:2]} & {*other[:2]} for other in others)


def _negations(text: str, *, refusing: bool = False) -> list[list[str]]:
    """The stems that each "not" of a clause applies to, in order. Verbs of wishing are skipped: who does not
    want to sell does not sell. With `refusing`, verbs such as "refused" count as a "not"."""
    if _has_cue("except", text) and _has_cue("nothing but", text):
        return []
    plain = _cue("no_denial").sub(" ", text)
    found = []
    for kind in ("not", "refuses") if refusing else ("not",):
        for match in _cue(kind).finditer(plain):
            place = _cue("preposition").match(plain, match.end() + 1)
            if kind == "refuses" and place and place[0] not in ("to", "de", "zu"):
                continue  # stopped in Rome
            behind = _cue("but").split(plain[match.end() :])[0]
            words = list(_stems(_cue("wishes").sub(" ", behind)))
            if kind == "refuses" and not words:
                continue  # the nanny quit
            before = list(_stems(_cue("wishes").sub(" ", plain[: match.start()])))[::-1]
            if words or before:
                alone = (not words and refusing) or _cue("nobody").fullmatch(match[0])
                found += [[word] for word in words or before] if alone else [words or before]
    return found


def _closest_unspaced(claim: _Clause, quoted: Sequence[_Clause]) -> _Clause | None:
    """The quoted clause that shares most characters of scripts without spaces."""
    mine = set(UNSPACED.findall(claim.text))
    return max(quoted, key=lambda one: len(mine & set(UNSPACED.findall(one.text))), default=None)


# certainty and tense


def _uncertainty(text: str, sentence: str, question: bool = False) -> int:
    """How uncertain a clause is: 3 it may be, 2 it is wanted or planned, 1 it will be, 0 it is."""
    beside = next((each for each in _COORDINATE_BREAK.split(sentence) if text.strip(" .,") in each), sentence)
    whole = sentence if _has_cue("german infinitive", text) else text
    whole, beside = (_cue("i would").sub("i want to ", one) for one in (whole, beside))
    plain, beside = (_cue("no_condition").sub(" ", one) for one in (whole, beside))
    nearly = _cue("nearly").search(plain)
    at_times = _has_cue("at_times", plain) and not _has_cue("past form", sentence)
    if (nearly and is_past(nearly[1])) or at_times or _has_cue("unsure", plain) or _has_cue("whole", beside):
        return 3
    text = _cue("no_intention").sub(" ", _cue("i would").sub("i want to ", text))
    return 2 if question or _has_cue("intended", text) else 1 if _has_cue("ahead", text) else 0


def _check_certainty(closest: Sequence[_Clause], quoted: Sequence[_Clause], text: str) -> str:
    """Why a statement is more certain than its quote: it says as done what may, should or will be. Else
    ''."""
    if not closest:
        return ""
    mine = _simplify(text)
    level, done = max(_uncertainty(mine, mine), 2 * ("prefer" in mine)), _has_cue("past form", mine)
    mine_too = {*_stems(mine)} - {stem for one in closest for stem in one.stems}
    beside = [one for one in quoted if mine_too & {*one.stems}]
    theirs = min(_uncertainty(one.text, one.sentence, one.question) for one in (*closest, *beside))
    asked = any(one.question for one in closest)
    if is_negated(mine) and any(_has_cue("would_have", one.sentence) for one in closest):
        return ""
    if theirs == 3 and (level < 2 or (level == 2 and _has_cue("ahead", mine) and not asked)):
        return "it was said only of what may be"
    if theirs == 2 and level == 0:
        return "it was said only of what is wanted or planned"
    if theirs == 1 and level == 0 and done and not any(_has_cue("past form", one.text) for one in closest):
        return "it was said only of what is to come"
    if level == theirs == 0 and _has_cue("past verb", mine) and _is_put_in_past(mine, closest):
        return "it was not said of the past"
    happened = all(_has_cue("past form", one.text) for one in closest)
    plainly = not any(is_negated(one.text) or _uncertainty(one.sentence, one.sentence) for one in closest)
    if happened and theirs == 0 and _has_cue("not_yet", mine) and plainly:
        return "it was said of what was done"
    if level == 1 and theirs == 0 and not done and happened:
        return "it was said of what is past"
    return ""


def is_negated(text: str) -> bool:
    """Whether a text has any negating word."""
    return any(_has_cue(kind, text) for kind in ("not", "undoes", "implies_not"))


def _check_hearsay(text: str, resolved: Sequence[str], closest: Sequence[_Clause] = ()) -> str:
    """Why a statement presents what somebody else reported as a fact, else ''."""
    theirs = "\n".join(resolved)
    others = (_has_cue("others say", one.text) and one.speaker not in one.text.split() for one in closest)
    if not ((closest and all(others)) or _has_cue("reports", theirs)):
        return ""
    mine = _cue("person says").sub(" ", _resolve_i(text, ""))
    if any(_has_cue(kind, mine) for kind in ("reports", "says", "unsure")):
        return ""
    if is_negated(mine) != is_negated(theirs):
        return ""  # that it is not so is no hearsay
    if _has_cue("intended", mine) and any(one.text.split()[0] in mine.split() for one in closest):
        return ""  # who says that it should be so wants it
    return "it was only said that somebody says so"


def _is_put_in_past(text: str, closest: Sequence[_Clause]) -> bool:
    """Whether a verb is in the past tense here, and not in the quoted clauses."""
    past = {_root(match[1]) for match in _cue("past verb").finditer(_cue("participle").sub(" ", text))}
    same = (one for one in closest if past & {*one.stems})
    return any(not _has_cue("past form", one.sentence) and not _has_cue("past", one.text) for one in same)


def _check_tense(closest: Sequence[_Clause], text: str) -> str:
    """Why a statement says of the present what was said of the past, else ''."""
    mine = _simplify(text)
    if closest and _has_cue("no_more", mine) != _has_cue("no_more", closest[0].sentence):
        still, more = (mine, closest[0].text) if _has_cue("still", mine) else (closest[0].text, mine)
        if _has_cue("still", still) and _has_cue("no_more", more):
            return "one says that it is still so, the other that it is no longer"
    past = closest and all(
        _has_cue("once", one.text)
        or _has_cue("back_then", one.sentence)
        or (_has_cue("ended", one.text) and _has_cue("past form", one.text))
        for one in closest
    )
    mine = _cue("participle").sub(" ", mine) if re.search(r"\b(?:is|are)\b", mine) else mine
    is_past_here = _has_cue("was", mine) or any(map(is_past, mine.split()))
    return "it was said only of the past" if past and not is_past_here else ""


# who and what


@cache
def _passing_roots() -> frozenset[str]:
    """Roots of adjectives such as "new" and "last", which may be said of anybody."""
    return frozenset(map(_root, little_words()["passing"]))


@cache
def _acronyms() -> frozenset[str]:
    """Roots of abbreviations that name no one thing, such as "API"."""
    return frozenset(_root(name.casefold()) for name in NO_NAMES if name.isupper() and len(name) > 2)


def _check_names(claim: _Clause, known: Sequence[_Clause], quoted: Sequence[_Clause]) -> str:
    """Why a name or number does not go with a word of the clause, else '': the word was said of another
    one. What the quote has goes with words that only stand beside it: they say what it is about. A statement
    with two words of its own is not asked: in a free paraphrase a name stands at other words."""
    cited = {stem for one in quoted for stem in one.words}
    there = {stem for one in known for stem in one.stems}
    for item in (one for one in claim.stems if one in claim.names or (one[0].isdigit() and one in there)):
        for word in (stem for stem in claim.stems if stem != item and not stem[0].isdigit()):
            of_month = rf"\b(?:{A_MONTH} {item}|{item} (?:of )?{A_MONTH})\b"
            if item.isdigit() and re.search(of_month, claim.text, re.IGNORECASE):
                continue
            if word in _acronyms() or (item in claim.names and word in _passing_roots()):
                continue  # "the API" is whichever one was spoken of, and "new" and "last" are of anybody
            if item in cited and word not in cited:
                continue
            holders = [one for one in known if word in one.words]
            fits = any(_may_mean(item, one, claim, known) for one in holders)
            if word in claim.names and not fits:
                fits = any(_may_mean(word, one, claim, known) for one in known if item in one.words)
            denied = any(item in scope for one in known for scope in _negations(one.text))
            if holders and not fits and not (denied and _negations(claim.text)):
                return f"“{word}…” was not said of {item}"
    return ""


def _may_mean(item: str, clause: _Clause, claim: _Clause, known: Sequence[_Clause]) -> bool:
    """Whether a clause may be about a name or number: it contains it, may mean it by a pronoun, or names no
    other that the statement leaves out."""
    if item in clause.words | clause.names | clause.prior_names or item == "speak":
        return True
    if item[0].isdigit():
        return not any(one[0].isdigit() and one not in claim.stems for one in clause.stems)
    speaker = _root(clause.speaker or "speaker")
    if item == speaker and f"{clause.speaker}'s" in claim.text and not clause.names & _kin_roots():
        return True  # what belongs to who speaks is spoken of without him
    by_pronoun = _has_cue("third", clause.text)
    if by_pronoun and not clause.names - {speaker, *claim.stems}:
        of_another = _has_cue("another", clause.text) and item == speaker == claim.stems[0]
        return not of_another or claim.text.startswith(f"{clause.speaker}'s")
    if item in _kin_roots() and item in {*_stems(clause.sentence)} and _has_cue("third", clause.sentence):
        return True
    others = (clause.names | clause.prior_names) - {
        *_stems(claim.sentence if item in clause.names else claim.text)
    }
    kin = {one for one in others if one in _kin_roots()}
    others -= kin if _has_cue("kin", claim.text) else set()
    beside = any(one.stems[:1] == (item,) and one.sentence == clause.sentence for one in known)
    others |= {*clause.stems[:1]} - {*claim.stems} if beside else set()  # each has a subject of its own
    if item == "perso" and clause.speaker not in _ROLES:
        others -= {speaker}
    if others == {speaker} and clause.speaker in (*_ROLES, "") and item not in _ROLE_ROOTS:
        if claim.stems[0] != item or _cue("article").match(claim.text):
            return True
        mentions = [one for one in known if item in one.names and one.speaker == clause.speaker]
        return not mentions or any(re.search(_SELF_INTRODUCTION.format(item), one.text) for one in mentions)
    return not others


@cache
def _kin_roots() -> frozenset[str]:
    """Roots of the words for relatives, which stand for a person as a name does."""
    return frozenset(_root(word.rstrip("*")) for word in little_words()["kin"])


def _check_subject(claim: _Clause, closest: Sequence[_Clause]) -> str:
    """Why the statement's subject is wrong, else '': it says of the speaker or owner what another did ("the
    board approved it", "my boss wants it")."""
    opening = claim.text.removeprefix("the ").split()[:1]
    subject = ""
    for one in closest:
        match = None if _has_cue("passive verb", one.text) else _cue("subject first").match(one.text)
        who = (match and match["owner"]) or one.speaker or "speaker"
        if not match or opening != [who] or who in one.text.split():
            return ""
        if _word_matcher({*_WORD_OR_NUMBER.findall(claim.text)})(match["what"]):
            return ""
        if not match["whose"] and len({*claim.stems} & {*one.stems}) < 2:
            return ""
        subject = match["what"]
    return f"it was said of “{subject}”, not of “{opening[0]}”" if subject else ""


def _check_speaker(claim: _Clause, closest: Sequence[_Clause]) -> str:
    """Why the statement is not of the user, else '': others said so, who did not speak of the user."""
    theirs = (one.speaker in ("", "person") or _has_cue("of user", one.sentence) for one in closest)
    others = closest and claim.stems[:1] == (_root("person"),) and not any(theirs)
    return f"{closest[0].speaker} said so, not the user" if others else ""


def _check_joined(claim: _Clause, resolved: Sequence[str]) -> str:
    """Why a clause mixes two parallel clauses, else '': it joins the beginning of one with the end of the
    other. Of "the iron at night and the zinc at noon" it says the iron at noon."""
    stems = {*claim.stems} - _SPEECH_TERMS
    for sentence in (one for one in resolved if stems <= {*_stems(one), *claim.names}):
        pieces = _PARALLEL_CLAUSES.split(sentence)
        for (start, end), (other_start, other_end) in itertools.permutations(map(_split_halves, pieces), 2):
            mixed = (start - other_start) & stems and end - other_end and not end & stems
            if mixed and 0 < len((other_end - end) & stems) <= len(other_start - start - stems):
                return "it joins what was said apart"
        for before, behind in itertools.pairwise(pieces):
            one, other = {*_stems(before)}, {*_stems(behind)}
            parts = (one - other) & stems, (other - one) & stems, one - other - stems, other - one - stems
            partly = len(parts[0]) <= len(parts[2]) and len(parts[1]) <= len(parts[3])
            if all(parts) and partly and not _has_cue("third", behind):
                return "it joins what was said apart"
    return ""


def _split_halves(clause: str) -> tuple[Set[str], Set[str]]:
    """The stems before and after the last preposition of a clause."""
    found = list(_cue("preposition").finditer(clause)) or list(re.finditer(r" (?=\S+\W*$)", clause))
    start, end = found[-1].span() if found else (len(clause), len(clause))
    return {*_stems(clause[:start])}, {*_stems(clause[end:])}


def _check_unit(claim: _Clause, known: Sequence[_Clause]) -> str:
    """Why a number has the wrong unit, else '': the unit goes with another number in what was said."""
    pairs = {pair for one in known for pair in itertools.pairwise(one.stems)} & {
        *itertools.pairwise(claim.stems)
    }
    counted = {number for before, number in pairs if number[0].isdigit()}  # version 3
    for number, unit in (one for one in _number_units(claim.stems) if one[0] not in counted):
        said = {(n, _root(u)) for one in known for n, u in _NUMBER_UNIT.findall(one.text)}
        if unit in {u for _, u in said} and (number, unit) not in said and number in {n for n, _ in said}:
            return f"{number} does not stand at “{unit}…” there"
    return ""


def _check_measure(claim: _Clause, known: Sequence[_Clause]) -> str:
    """Why a unit of measure was replaced by another, else ''."""
    mine = {_root(word) for word in _cue("measure unit").findall(claim.text)}
    theirs = {_root(word) for one in known for word in _cue("measure unit").findall(one.text)}
    numbers = {one for one in claim.stems if one[0].isdigit()}
    same = numbers & {one for each in known for one in each.stems}
    return f"nobody said “{min(mine - theirs)}…” there" if mine - theirs and theirs - mine and same else ""


def _number_units(stems: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(number, the stem after it)."""
    for one, behind in itertools.pairwise(stems):
        if one[0].isdigit() and not behind[0].isdigit():
            yield one, behind


# order


def _check_order(text: str, resolved: Sequence[str], names: Set[str]) -> str:
    """Why the order of words is exchanged, else '': around a comparison, "from", "to" or "before", or a
    verb."""
    source = [sentence for each in resolved for sentence in main_clauses(each)]
    for one, other in itertools.product(sentences(text), source):
        if (side := _comparison_order(one, other)) and (side < 0) == (_parity(one) == _parity(other)):
            return "what is compared is exchanged"
        denies = _has_cue("not", one) != _has_cue("not", other)
        shared = {*_stems(one)} & {*_stems(other)}
        for marker, (left, right) in _marker_sides(one).items():
            there = _marker_sides(other).get(marker)
            turned = denies and marker in ("before", *little_words()["after"])
            if there is None or turned or marker in _THAN_WORDS:
                continue
            here, away = {*right} & {*there[0]} - {*there[1]}, {*left} & {*there[1]} - {*there[0]}
            if marker in _FOR_WORDS and any(one[0].isdigit() for one in here | away):
                continue
            enough = shared - here - away or len(here | away) > 3 or marker in ("before", "after")
            if here and away and enough:
                return f"what stands before and behind “{marker}” is exchanged"
        for mine, theirs in itertools.product(_cue("clause").split(one), _cue("clause").split(other)):
            if _swaps_names(mine, theirs, names & {*_stems(mine)} & {*_stems(theirs)}):
                return "the names are exchanged"
            if _reverses_verb(mine, theirs):
                return "who does it and to whom is exchanged"
    return ""


def _comparison_order(one: str, other: str) -> int:
    """1 if two sentences compare the same sides in the same order, -1 if the sides are exchanged, 0 if they
    are no comparisons by the same word."""
    mine, theirs = _compared_sides(one), _compared_sides(other)
    if not mine or not theirs or mine[0] not in ("", *theirs[1]):
        return 0
    (_, left, right), (_, before, behind) = mine, theirs
    crossed = len((right - left) & (before - behind)) + len((left - right) & (behind - before))
    straight = len((right - left) & (behind - before)) + (left == before and right == behind)
    return -1 if crossed > straight else 1 if straight else 0


def _compared_sides(sentence: str) -> tuple[str, Set[str], Set[str]] | None:
    """(the stem compared by, the stems before "than", those after it), None where nothing is compared."""
    match = _cue("comparison").search(sentence)
    if match is None:
        return None
    than = match.start("than")
    behind = _cue("clause").split(sentence[match.end() :])[0]
    by = next(_stems(sentence[match.start() : than]), "")
    return by, {*_stems(sentence[:than])}, {*_stems(behind)}


def _parity(text: str) -> int:
    """The number of negations in a sentence, modulo 2."""
    return (len(_cue("not").findall(text)) + len(_cue("less than").findall(text))) % 2


def _reverses_verb(mine: str, theirs: str) -> bool:
    """Whether the words before and after a shared verb are exchanged in the other clause."""
    both = f"{mine} {theirs}"
    bound = _has_cue("passive agent", both) or not {*both.split()}.isdisjoint(little_words()["markers"])
    if bound or len(GERMAN.findall(both)) > 1:
        return False
    one, other = _WORD_OR_NUMBER.findall(mine), _WORD_OR_NUMBER.findall(theirs)
    forms = {word.removesuffix("s"): n for n, word in enumerate(other)}
    if len(forms.keys() & {word.removesuffix("s") for word in one}) < 3:
        return False
    for n, word in enumerate(one):
        if (at := forms.get(word.removesuffix("s"))) is None or word[0].isdigit() or not any(_stems(word)):
            continue
        windows = (
            one[max(0, n - 2) : n],
            one[n + 1 : n + 4],
            other[max(0, at - 2) : at],
            other[at + 1 : at + 4],
        )
        before, behind, left, right = (
            {stem for each in part for stem in _stems(each) if ":" not in stem} for part in windows
        )
        if (before - behind) & (right - left) and (behind - before) & (left - right):
            return True
    return False


def _marker_sides(sentence: str) -> dict[str, tuple[list[str], list[str]]]:
    """(stems before, stems after) of each marker such as "from"; `after` also gives a reversed `before`."""
    found: dict[str, tuple[list[str], list[str]]] = {}
    left: list[str] = []
    marker = ""
    swaps = _has_cue("exchange verb", sentence)
    markers = {*little_words()["markers"], *little_words()["after"], *little_words()["then"]}
    for match in _WORD_OR_NUMBER.finditer(sentence):
        word = match[0]
        if word in markers and (word not in _WITH_WORDS or swaps):
            marker = word
            found.setdefault(word, (left[-3:], []))
            continue
        if _cue("preposition").fullmatch(word) or sentence[match.start() - 2 : match.start() - 1] in (
            ",",
            ";",
        ):
            marker = ""
        for stem in _stems(word):
            if marker and len(found[marker][1]) < 2:
                found[marker][1].append(stem)
            left.append(stem)
    for word in found.keys() & {*little_words()["after"]}:
        found.setdefault("before", found[word][::-1])
    for word in found.keys() & {*little_words()["then"]}:
        found.setdefault("before", found[word])
    return found


def _swaps_names(mine: str, theirs: str, names: Set[str]) -> bool:
    """Whether two names around the same verb are exchanged, unless one clause is a passive."""
    if len(names) < 2 or _has_cue("passive agent", mine) != _has_cue("passive agent", theirs):
        return False
    one, other = list(_stems(mine)), list(_stems(theirs))
    for a, b in itertools.permutations(names, 2):
        if one.index(a) < one.index(b) and other.index(b) < other.index(a):
            between = {*one[one.index(a) + 1 : one.index(b)]} & {*other[other.index(b) + 1 : other.index(a)]}
            if len(GERMAN.findall(f"{mine} {theirs}")) > 1:  # the verb stands last
                between = {one[-1]} & {other[-1]}
            apart = {*little_words()["markers"], "and"} - {"to", "à", "a"}
            if between - names and apart.isdisjoint((_word_before(mine, b), _word_before(theirs, a))):
                return True
    return False


def _word_before(text: str, stem: str) -> str:
    """The word before the first word with a stem, '' if there is none."""
    words = [match[0] for match in _WORD_OR_NUMBER.finditer(text)]
    return next((words[n - 1] for n, word in enumerate(words) if n and stem in _stems(word)), "")


# reasons and quantities


def _check_reason(text: str, quotes: Sequence[str], names: Set[str], evidence: Sequence[str]) -> str:
    """Why a reason or purpose is not that of the quote or, where the quote gives none, said beside it; else
    ''."""
    text = _cue("otherwise").sub(" because", _cue("no reason").sub(" ", text))
    purpose = _cue("purpose").search(_simplify(text))
    aims = [*_stems(purpose[1])] if purpose else []
    turns = [one for one in evidence if any(locate(quote, [one]) is not None for quote in quotes)]
    said = {*_stems(_simplify("\n".join([*quotes, *turns])))}
    if len(aims) > 1 and {*aims}.isdisjoint({*names - _kin_roots(), *said}):
        return "nobody gave this purpose"
    mine = next(_reason_pairs(_resolve_i(text, ""), names), None)
    if mine is None or not mine[0]:
        return ""
    why, what = mine
    theirs = _cue("otherwise").sub(" because", _simplify("\n".join(quotes)))
    if 3 * len(why & said) < len(why):
        return "nobody said that this is the reason"
    sentences_there = main_clauses(theirs)
    given = [each for one in sentences_there for each in _reason_pairs(one, names) if all(each)]
    given = [(cause, effect) for cause, effect in given if effect & (what | why)]
    if any(len(why & cause) >= len(why & effect) and why & cause for cause, effect in given):
        return ""
    if any(len(why & effect) > len(why & cause) and what & cause for cause, effect in given):
        return "reason and result are exchanged"
    if any(len(what & effect) > len(why & effect) for _, effect in given):
        return "another reason was given"
    without_reason = (one for one in sentences_there if not _has_cue("because", one))
    for halves in (_cue("plain and").split(one) for one in without_reason if not _has_cue("hence", one)):
        roots = [{*_stems(half)} for half in halves]
        lean = [len(why & one) - len(what & one) for one in roots]
        if len(lean) == 2 and lean[0] * lean[1] < 0:
            return "nobody said that this is the reason"
    return ""


def _reason_pairs(sentence: str, names: Set[str]) -> Iterator[tuple[Set[str], Set[str]]]:
    """(stems of the reason, stems of the result) for each reason that a sentence gives."""
    for kind in ("because", "hence"):
        match = _cue(kind).search(sentence)
        before, behind = (sentence[: match.start()], sentence[match.end() :]) if match else ("", "")
        if match and kind == "because":
            behind = next(filter(str.strip, _cue("hence").split(behind)), "")
            if not any(_stems(before)):  # because it broke, they left
                behind, comma, before = behind.partition(",")
                if not comma:
                    continue
            before, behind = behind, before
        if match:
            yield {*_stems(before)} - names, {*_stems(behind)} - names


def _check_quantity(text: str, quotes: Sequence[str]) -> str:
    """Why an "all", "always", "never" or "usually" is not that of the quote, else ''."""
    mine, theirs = _simplify(text), _simplify("\n".join(quotes))
    mine = _cue("not all").sub(" ", mine)
    mine = re.sub(r"\bany\w*", "", mine) if _has_cue("limits", mine) else mine
    if _has_cue("claims_all", mine) and not _has_cue("every", theirs):
        once = _has_cue("past form", theirs) or _has_cue("this", theirs) or _has_cue("not this one", theirs)
        denied = _has_cue("never", mine) and _has_cue("not", theirs) and not once
        return "" if denied else "it was not said of all, or always"
    if (
        _has_cue("claims_all", mine)
        and (_has_cue("limits", theirs) or _has_cue("all but", theirs))
        and not (_has_cue("limits", mine) or _has_cue("all but", mine))
    ):
        return "it was said with an exception, or of some only"
    if _has_cue("claims_all", mine) and _has_cue("not_all", theirs) and not _has_cue("not_all", mine):
        return "it was not said of all"
    partly = _has_cue("says_partly", theirs) and not _has_cue("claims_all", theirs)
    if _has_cue("claims_all", mine) and partly:
        return "it was said only of some"
    if _has_cue("partly", theirs) and not _has_cue("says_partly", mine):
        return "it was said only of some, or sometimes"
    return ""


def _check_limits(text: str, quotes: Sequence[str]) -> str:
    """Why a number is a minimum on one side and a maximum on the other, else ''."""
    mine, theirs = _number_limits(text), _number_limits("\n".join(quotes))
    for number, kind in mine.items():
        if kind != theirs.get(number, kind):
            return f"{number} is {theirs[number]} there"
    return ""


def _check_exchanged(text: str, quotes: Sequence[str]) -> str:
    """Why a number or person is not the one of the quote, else '': the quote has another one with the same
    unit, of the same form or for the same kind of person, which the statement does not have."""
    mine, theirs = (dict(_comparable(one)) for one in (_simplify(text), _simplify("\n".join(quotes))))
    for value, kind in mine.items():
        same = {value, *related(value)}
        others = [
            one for one, what in theirs.items() if what == kind and not {one, *related(one)} & mine.keys()
        ]
        if kind and others and same.isdisjoint(theirs):
            return f"“{value}” was not said, but “{others[0]}”"
    return ""


def _comparable(text: str) -> Iterator[tuple[str, str]]:
    """(number or person, its kind): the unit behind a number, the form of a time or version, or `person`."""
    words = _WORD_OR_NUMBER.findall(text)
    for word, behind in itertools.zip_longest(words, words[1:], fillvalue=""):
        if word[0].isdigit():
            form = re.sub(r"\d+", "0", word)
            yield word, form if form != "0" else _root(behind) if behind.isalpha() else ""
        elif _has_cue("kin", word) or _has_cue("person", word):
            yield word.removesuffix("'s").removesuffix("s"), "person"


def _check_actor(text: str, cited: Sequence[tuple[str, str]], evidence: Sequence[str]) -> str:
    """Why a name is not that of the speaker, who said "I" of what the statement says of it; else ''."""
    name, said = _FIRST_NAME.match(text), " ".join(sentence for sentence, _ in cited)
    if not name or name[1].casefold() in ORDINARY or name[1].casefold() in _simplify(said):
        return ""
    roots = set(_stems(" ".join(_WORD_OR_NUMBER.findall(text)[:8])))
    introduced = re.compile(_SELF_INTRODUCTION.format(re.escape(name[1].casefold())))
    if any(introduced.search(one.casefold()) for one in evidence):
        return ""
    for sentence, who in cited:
        did = {_root(verb) for verb in _cue("i did").findall(_simplify(sentence))} - {_root("have")}
        if who in _ROLES and did & roots:
            return f"the {who} said it of themselves"
    return ""


def _number_limits(text: str) -> dict[str, str]:
    """{number: "a minimum" or "a maximum"} for the numbers of a text that are limits."""
    found = {}
    plain = _simplify(text)
    for kind, word in (("least", "a minimum"), ("most", "a maximum")):
        for match in re.finditer(rf"(?:{_cue(kind).pattern})\s(?:\w+\s)?[$€£]?(\d+(?:[.,:]\d+)*)", plain):
            found[match[1]] = word
    return found


# -- likeness ----------------------------------------------------------------------------------------------
# How similar two sentences are: by shared stems, and in scripts without spaces by shared bigrams or trigrams.
#
# This is a second check only: what may be written where is decided by its origin. A sentence that shares few
# words with its source, or is in another language, is not recognised.


LIKENESS_THRESHOLDS = {4: 0.5, 3: 0.6}
"""{number of shared tokens: least share of the shorter sentence's tokens} from which two sentences are alike.
Of 666 pairs of one bank's notes on one project none reaches it."""
_CONFUSABLES = str.maketrans("асԁеһіјорԛѕуѵх", "acdehijopqsyvx")
"""Lower-case letters of other scripts that look like Latin ones."""
_ANY_WORD = late(r"\w+")
_BIGRAMS = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff\uac00-\ud7ff"
_KANA = "\u3041-\u309f"
_TRIGRAMS = "\u0e01-\u0e59\u0e81-\u0edf\u1000-\u109f\u1780-\u17e9"
_SCRIPT_RUN = late(rf"(?P<two>[{_BIGRAMS}]+)|(?P<three>[{_TRIGRAMS}]+)|[^\W{_BIGRAMS}{_TRIGRAMS}{_KANA}]+")
"""Chinese and Korean are cut into bigrams, Thai, Lao, Burmese and Khmer into trigrams. Katakana are words;
hiragana, which join them, are skipped."""
_DISTINCTIVE = late(
    # Bounded, since a search that fails is tried again from each character of a long word (base64, a ruler).
    r"\b[a-z][a-z0-9+.-]{0,30}://[^\s<>\"'`)\]]+|[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+|(?<![\w-])--?[a-z][\w-]*|"
    r"(?<![\w/])[~.]{0,2}/?(?:[\w.@+-]{1,255}/)+[\w.@+-]*|"
    r"(?<![\w/.])\.?\w[\w-]{0,254}(?:\.[\w-]{1,255})*\.[a-z]\w{1,13}\b",
    re.IGNORECASE,
)


def plain_text(text: str) -> str:
    """A text in lower case, without zero-width characters and accents, lookalike letters replaced."""
    if text.isascii():  # most outputs of tools are, and they are long
        return text.lower()
    seen = "".join(sign for sign in normalize("NFKC", text) if category(sign) not in ("Cf", "Mn"))
    return seen.casefold().translate(_CONFUSABLES)


def words_only(text: str) -> str:
    """The words of a text with one blank before, between and after them: without marks and markdown."""
    return f" {' '.join(_ANY_WORD.findall(plain_text(text)))} "


def tokenize(text: str) -> frozenset[str]:
    """The tokens by which `likeness` compares texts: stems, and bigrams or trigrams in scripts without
    spaces."""
    return frozenset(_units(plain_text(text)))


def _units(text: str) -> Iterator[str]:
    for run in _SCRIPT_RUN.finditer(text):
        size = 2 if run["two"] else 3 if run["three"] else 0
        if size:
            yield from (run[0][at : at + size] for at in range(max(1, len(run[0]) - size + 1)))
        else:
            yield from terms(run[0])


def likeness(one: frozenset[str], other: frozenset[str]) -> float:
    """The share of the shorter one's tokens that both have; 0 below `LIKENESS_THRESHOLDS`."""
    shared = len(one & other)
    least = LIKENESS_THRESHOLDS.get(min(shared, max(LIKENESS_THRESHOLDS)))
    share = shared / min(len(one), len(other)) if least else 0.0
    return share if least and share >= least else 0.0


def occurs_in(sentence: str, text: str) -> bool:
    """Whether a text contains a sentence, both as `words_only` gives them."""
    bare = sentence.strip()
    return (sentence if " " in bare or bare.isascii() else bare) in text


RUN_LENGTH, _UNSPACED_RUN_LENGTH = 5, 10
"""Words in a row that two texts do not share by chance, and characters in scripts without spaces."""


def word_runs(sentence: str) -> Iterator[str]:
    """The runs of `RUN_LENGTH` words of a sentence in which most words are content words; four words are a
    run."""
    words = words_only(sentence).split()
    if UNSPACED.search(sentence):
        signs, size = words_only(sentence).strip(), _UNSPACED_RUN_LENGTH
        yield from (signs[at : at + size] for at in range(len(signs) - size + 1))
        return
    size = RUN_LENGTH if len(words) >= RUN_LENGTH else RUN_LENGTH - 1
    for at in range(len(words) - size + 1):
        run = f" {' '.join(words[at : at + size])} "
        if len(terms(run)) > size // 2:
            yield run


def mostly_repeats(sentence: str, source: str) -> bool:
    """Whether half of a sentence's runs, without overlaps, occur in a source as `words_only` gives it."""
    some = list(word_runs(sentence))[::RUN_LENGTH]
    return bool(some) and 2 * sum(run in source for run in some) >= len(some)


def distinctive_tokens(text: str) -> frozenset[str]:
    """The addresses, paths, file names, hosts and command flags of a text."""
    return frozenset(one.rstrip(".,;:!?/") for one in _DISTINCTIVE.findall(plain_text(text)))


def has_token(text: str, token: str) -> bool:
    """Whether a text, as `plain_text` gives it, contains a whole token."""
    return token in text and re.search(rf"(?<![\w-]){re.escape(token)}(?!\w)", text) is not None
