"""Whether a statement stands in its source: names, numbers, dates and words it claims must occur there."""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache, cached_property, partial
from unicodedata import category, normalize

from ua_memory.text import calendar
from ua_memory.text.calendar import A_MONTH, DAY_NAMES, MONTH_NAMES, meant, moments, resolves
from ua_memory.text.names import (
    LIGHT,
    NO_NAMES,
    ORDINARY,
    TERM,
    coined,
    foreign_light,
    irregular,
    is_foreign,
    is_past,
    little_words,
    numerals,
    opens,
    opposites,
    related,
)
from ua_memory.text.patterns import late

# -- amounts -----------------------------------------------------------------------------------------------
# Numbers as a statement claims them: with their scale, sign, percent and currency.
#
# `500k` is no 500, and 500 euros are no 500 dollars. Written another way (1,500 or 1'500.0, twelve or 12,
# 2k or two thousand) a number is the same.


_PLAIN = r"\d{1,2}:\d\d|\d{1,3}(?:[ ,'.]\d{3})+(?!\d)(?:\.\d+)?|\d+(?:[.,]\d+)*"
_SIGN = r"(?:(?<![\w.,)-])[-\u2212](?=[$€£¥]?\d)|\bminus )?"
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
_MONEY = {
    "$": ("$", "dollar", "dollars", "usd", "bucks"),
    "€": ("€", "euro", "euros", "eur"),
    "£": ("£", "pound", "pounds", "gbp", "quid"),
    "¥": ("¥", "yen", "jpy"),
    "%": ("%", "percent", "per cent", "pct"),
    "×": ("×", "times", "x"),
}
_HALF = (
    r"(?P<half>[ap]\.?m\b\.?|in the (?:morning|afternoon|evening)|at night|nachmittags|de la (?:tarde|noche)|"
    r"de l'après-midi)"
)
_HOUR = r"(?<![\d:.,])(?P<hour>[01]?\d|2[0-4])"
_DIGIT = late(r"\d")
_MAYBE_CLOCK = late(r"\d ?(?:h|uhr|[ap]\.?m\b|o'clock|in|at|nachm|de)|(?:past|to|halb) \d", re.IGNORECASE)
_DECADES = late(r"\b(\d) decades\b", re.IGNORECASE)
_RATE = late(r"\bevery (\d+) (?:min|(hours))")
_AND_A_HALF = late(r"\b(\d+|one) and a half\b", re.IGNORECASE)
_CLOCKS = (
    (late(rf"\bhalf past {_HOUR}\b(?:,? {_HALF})?", re.IGNORECASE), 30),
    (late(rf"\bquarter past {_HOUR}\b(?:,? {_HALF})?", re.IGNORECASE), 15),
    (late(rf"\bquarter to {_HOUR}\b(?:,? {_HALF})?", re.IGNORECASE), -15),
    (late(rf"\bhalb {_HOUR}\b", re.IGNORECASE), -30),
    (late(rf"{_HOUR} ?(?:h|heures?|uhr)(?: ?(?P<minutes>[0-5]\d))?(?!\w)(?! \d)", re.IGNORECASE), 0),
    (late(rf"{_HOUR}(?:[:.](?P<minutes>[0-5]\d))? ?(?:o'clock,? )?{_HALF}", re.IGNORECASE), 0),
)
"""How a time of day is written, each with the minutes that it is off."""
_UNITS = {word: unit for unit, words in _MONEY.items() for word in words}
_UNIT = "|".join(
    sorted(map(re.escape, (word for word in _UNITS if word.isalpha() or " " in word)), key=len)[::-1]
)
_AMOUNT = late(
    rf"(?P<sign>{_SIGN})(?P<before>[$€£¥] ?)?(?P<digits>{_PLAIN})"
    rf"(?:(?P<close>k|m|bn)\b|[ -](?P<scale>hundred|thousand|millions?|mio|billion)\b)?"
    rf"(?: ?(?P<mark>[%$€£¥×])|[ -]?(?P<unit>{_UNIT})\b)?",
    re.IGNORECASE,
)
_AMOUNT_WORD = late(r"[^\W\d_][\w'-]*")
_STANDS_FOR = {"decade": 10, "couple": 2, "pair": 2, "both": 2, "fortnight": 14, "once": 1} | dict.fromkeys(
    ("a", "an", "one", "ein", "eine", "einen", "einem", "einer", "un", "une", "una", "uno"), 1
)
"""What a statement may put into a number, but what claims none."""
_OFTEN = {"twice": 2, "thrice": 3}
"""How often: of things that are not two, `twice` says nothing."""
_TIMES = _OFTEN | {"double": 2, "doubled": 2, "doubles": 2, "triple": 3, "tripled": 3}
"""What says how often, but claims no number of its own, save those above."""


@dataclass(frozen=True, slots=True)
class Amount:
    """A number in a text: `digits` as they are compared, its unit (a sign of `%$€£¥×`, or ""), and how it is
    written. `minutes` says that an `m` behind it may be that, or metres."""

    digits: str
    unit: str = ""
    written: str = ""
    negative: bool = False
    minutes: str = ""


class Amounts:
    """The numbers that a text has."""

    def __init__(self, text: str) -> None:
        found = list(amounts(text))
        self._exact = {(each.digits, each.unit) for each in found}
        self._negative = {each.digits for each in found if each.negative}
        words = {word.casefold() for word in _AMOUNT_WORD.findall(text)}
        self._exact |= {(str(n), "×") for word, n in _TIMES.items() if word in words}
        plain = [each for each in found if each.written not in _OFTEN]
        self._digits = {each.digits for each in plain} | {each.minutes for each in plain}
        self._digits |= {str(n) for word, n in _STANDS_FOR.items() if word in words}
        every = [(int(number), 24 if unit else 60) for number, unit in _RATE.findall(in_digits(text))]
        self._digits |= {str(whole // number) for number, whole in every if number and whole % number == 0}
        self._bare = frozenset(self._digits)
        """Those that are no time of day by themselves, but may mean one."""
        self._digits |= {part for each in plain for part in _clock_parts(each.digits)}
        self._units = {
            unit for word, unit in _UNITS.items() if word in words or (len(word) == 1 and word in text)
        }

    def has(self, claim: str) -> bool:
        """Whether all numbers of a claim stand here, none in another currency or of another sign."""
        return all(map(self._has, amounts(claim)))

    @cached_property
    def _reckoned(self) -> frozenset[str]:
        """What two of the numbers are apart, or are together."""
        numbers = {int(digits) for digits in self._digits if digits.isdigit() and len(digits) < 7}
        pairs = itertools.combinations(sorted(numbers - {0, 1}), 2)
        return frozenset(str(each) for a, b in pairs for each in (b - a, a + b) if each > 2)

    def _has(self, one: Amount) -> bool:
        if one.negative and one.digits not in self._negative:
            return False
        if one.unit and (one.digits, one.unit) in self._exact:
            return True
        if one.unit and one.unit != "×":
            same = (one.digits, "") in self._exact or one.digits in self._reckoned
            return same and one.unit in self._units
        hour, full, _ = one.digits.partition(":00")
        bare = {hour, hour.lstrip("0"), str(int(hour) % 12)} if full else {one.minutes} - {""}
        said = one.digits in self._digits or not self._bare.isdisjoint(bare)
        return said or (not full and one.digits in self._reckoned)


def amounts(text: str) -> Iterator[Amount]:
    """The numbers in a text, those that are written in digits first."""
    text = in_digits(text)
    for match in _AMOUNT.finditer(text):
        digits = plain = _plain_number(match["digits"])
        scale = (match["close"] or match["scale"] or "").casefold()
        unit = _UNITS.get((match["mark"] or match["unit"] or match["before"] or "").strip().casefold(), "")
        digits = _scaled(plain, _SCALES[scale]) if scale else digits
        yield Amount(digits, unit, match[0].strip(), bool(match["sign"]), plain if scale == "m" else "")
    for word in map(str.casefold, _AMOUNT_WORD.findall(text)):
        if word in _OFTEN:
            yield Amount(str(_OFTEN[word]), "×", word)


@cache
def _number_words() -> re.Pattern[str]:
    word = "|".join(sorted(numerals(), key=len, reverse=True))
    return re.compile(
        rf"(?<![\w'])(?:one[ -](?=hundred|thousand|million))?(?:{word})"
        rf"(?:(?:[ -]| and | et | y )(?:{word}|one|un|uno))*(?![\w'])",
        re.IGNORECASE,
    )


def in_digits(text: str) -> str:
    """A text with its numbers and times of day in digits: `twelve hundred` is 1200, `half past three in the
    afternoon` 15:30."""
    if not numerals().keys().isdisjoint(TERM.findall(text.casefold())):
        text = _number_words().sub(_spelt_number, text)
    text = _DECADES.sub(lambda match: f"{match[1]}0 years", text)
    text = _AND_A_HALF.sub(lambda match: f"{'1' if match[1][0] in 'oO' else match[1]}.5", text)
    for pattern, later in _CLOCKS if _MAYBE_CLOCK.search(text) else ():
        text = pattern.sub(partial(_time_of_day, later), text)
    return text


def _spelt_number(match: re.Match[str]) -> str:
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


def _time_of_day(later: int, match: re.Match[str]) -> str:
    """The hour of a clock that has twelve or 24 of them; `later` are minutes to add."""
    part = match.groupdict()
    half = (part.get("half") or "").casefold()
    hour = int(match["hour"]) % 12 if half else int(match["hour"])
    hour += 12 if half.startswith(("p", "in the a", "in the e", "at n", "de la t", "nachm", "de l'a")) else 0
    minutes = (60 * hour + int(part.get("minutes") or 0) + later) % 1440
    return f"{minutes // 60:02}:{minutes % 60:02}"


def _clock_parts(digits: str) -> Iterator[str]:
    hour, colon, minutes = digits.partition(":")
    if colon:
        yield from (hour, hour.lstrip("0"), minutes, str(int(hour) % 12))


def _plain_number(number: str) -> str:
    """`1,500.0` as `1500`: written another way it is the same number."""
    if ":" in number:
        return number.rjust(5, "0")
    plain = number.replace(",", "").replace("'", "").replace(" ", "")
    return plain.rstrip("0").rstrip(".") if plain.count(".") == 1 else plain


def _scaled(plain: str, power: int) -> str:
    whole, _, part = plain.partition(".")
    if not (whole + part).isdigit() or "." in part or len(part) > power:
        return plain
    return (whole + part.ljust(power, "0")).lstrip("0") or "0"


# -- compounds ---------------------------------------------------------------------------------------------
# Numbers inside a word: `web3`, `sha256`, `3D`, `3rd-party`, `2-step`. They count nothing by themselves.
#
# A date in the source that has a 3 in it does not say `3rd-party`. Such a word has to stand there as
# itself, however it is spelt: together, in two or with a hyphen, the number in digits or in letters.


_LATIN = r"[A-Za-z\u00c0-\u024f]"
_UNIT_ = """am b bit bits bn byte bytes c chf cm d day days dpi eur f fps g gb gbp ghz gib h hour hours hr hrs
hz in k kb kbit kg khz kib km kw kwh l m ma mb mbit mg mhz mib min mins minute minutes ml mm mo month months
ms ns per percent pm ppm pt px qps quarter quarters rem rpm rps s sec second seconds secs tb tib us usd v w
week weeks wk year years yr yrs x y"""
"""What measures: with these a number is a number, `30-day` as well as `30 days`, `10ms` as `10 ms`."""
_MEASURES = frozenset(_UNIT_.split())
_COUNTED = """two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
seventeen eighteen nineteen twenty"""
_ORDERED = """second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth
fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"""
_CARDINALS = {word: n for n, word in enumerate(_COUNTED.split(), 2)}
_TENS = """thirtieth fortieth fiftieth sixtieth seventieth eightieth
ninetieth"""
_ORDINALS = {word: n for n, word in enumerate(_ORDERED.split(), 2)} | {"first": 1}
_ORDINALS |= {word: 10 * n for n, word in enumerate(_TENS.split(), 3)}
_BIG_ORDINAL = late(rf"\b(?:{'|'.join(word for word, n in _ORDINALS.items() if n > 2)})\b")
_CURRENCIES = frozenset(["chf", "eur", "gbp", "usd"])
_ORDINARY = ("first", "second")
"""In letters these are adverbs, stretches of time and ordinary words, and claim nothing."""
_BY = r"\b(?:on|by|until|till|before|since|from)"
_COMPOUND = late(
    rf"(?<![\w.,'])(?P<tail>(?!v\d){_LATIN}+\d+(?:{_LATIN}[A-Za-z0-9]*|(?:\.\d+)+)?)(?!\w)"
    rf"|(?<![\w.,:/])(?P<nth>\d+(?:st|nd|rd|th)|{'|'.join(_ORDINALS)})(?P<of>-{_LATIN}{{2,}})?(?!\w)"
    rf"|(?<![\w.,:/])(?P<number>\d+|{'|'.join(_CARDINALS)})-(?P<what>{_LATIN}{{2,}})(?!\w)"
    rf"|(?<![\w.,:/])(?P<head>\d+{_LATIN}[A-Za-z0-9]*)(?!\w)",
    re.IGNORECASE,
)


def compounds(text: str) -> Iterator[re.Match[str]]:
    """The words of a text that have a number in them, and ordinals; not what measures, as `10ms`."""
    return filter(_counts_nothing, _COMPOUND.finditer(text))


def without(text: str) -> str:
    """A source without the numbers of such words, which are no amounts there; that of `2-step` is, and so are
    those of a bare `3rd` and of `v2`."""

    def left(match: re.Match[str]) -> str:
        gone = _counts_nothing(match) and (match["tail"] or match["head"] or match["of"])
        return " " * len(match[0]) if gone else match[0]

    return _COMPOUND.sub(left, text)


def stands(word: str, source: str) -> bool:
    """Whether such a word stands in a source, which is on one line and in small letters."""
    match = _COMPOUND.fullmatch(word)
    if match is None:
        return False
    if match["nth"]:
        nth, of = _nth(match["nth"].casefold()), _stem((match["of"] or "-").casefold()[1:])
        wanted = rf"{nth}[ -]{of}" if of else rf"{nth}(?!\w)"
    elif match["number"]:
        number, what = _cardinal(match["number"].casefold()), _stem(match["what"].casefold())
        wanted = rf"{number}(?:[ -]\w+)?[ -]{what}|{what}\w*[ :=-]{{1,2}}{number}(?!\w)"
    else:
        wanted = "[ ._-]?".join(re.findall(r"\d+|[^\W\d_]+", word.casefold())) + r"s?(?!\w)"
    return re.search(rf"(?<![\w.,])(?:{wanted})", source) is not None


def _counts_nothing(match: re.Match[str]) -> bool:
    """Whether it is neither a measure (`10ms`, `USD500`, `twenty-five`), nor an ordinary word (`second`), nor
    the day of a month or the T of a time."""
    if match["nth"]:
        return match["nth"].casefold() not in _ORDINARY and not _is_day(match)
    if re.fullmatch(r"\d+T\d+.*", match["head"] or ""):
        return False
    if match["head"]:
        named = re.fullmatch(r"\d+[BDG]", match["head"])  # 3D, 5G, 7B
        return bool(named) or not _MEASURES.issuperset(re.findall(r"[^\W\d_]+", match["head"].casefold()))
    beside = match["what"] or match["tail"].rstrip("0123456789.")
    return beside.casefold() not in (_CURRENCIES if match["tail"] else _MEASURES | _CARDINALS.keys())


def _is_day(match: re.Match[str]) -> bool:
    """Whether an ordinal is a day: of a month beside it, or of one that everybody knows ("on the 3rd.")."""
    before, behind = match.string[: match.start()][-20:], match.string[match.end() :][:20]
    month = re.search(rf"{A_MONTH}\w* (?:the )?$", before, re.I) or re.match(
        rf" (?:of )?{A_MONTH}", behind, re.I
    )
    return bool(month or (re.search(rf"{_BY} the $", before, re.I) and not re.match(r" \w", behind)))


def _nth(word: str) -> str:
    """All ways to write an ordinal."""
    number = int(word[:-2]) if word[0].isdigit() else _ORDINALS[word]
    spelt = [each for each, n in _ORDINALS.items() if n == number]
    return f"(?:{'|'.join([rf'{number}(?:st|nd|rd|th)', *spelt])})"


def _cardinal(word: str) -> str:
    """All ways to write a small number."""
    number = int(word) if word[0].isdigit() else _CARDINALS[word]
    spelt = [each for each, n in _CARDINALS.items() if n == number]
    return f"(?:{'|'.join([str(number), *spelt])})"


def _stem(word: str) -> str:
    """What the forms of a word begin with: `party` and `parties`, `step` and `stepped`."""
    return re.escape(word[:-1] if len(word) > 3 and word[-1] in "esy" else word)


# -- terms -------------------------------------------------------------------------------------------------
# The words two sentences are compared by.


UNSPACED = late(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\U00020000-\U0003ffff]")
"""A character of a script that puts no space between words: each is compared."""


def terms(text: str) -> frozenset[str]:
    """The words of a text that carry meaning, endings cut, for comparing it with another."""
    words = (word.casefold() for word in TERM.findall(text))
    return frozenset(_term_stem(word) for word in words if word not in LIGHT)


def _term_stem(word: str) -> str:
    for ending in ("ing", "ed", "es", "s") if word[-1:] in ("g", "d", "s") else ():
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


# -- claims ------------------------------------------------------------------------------------------------
# Nothing made up: what a fact names must stand in its quote or in the turns around it.
#
# A model writes fluent sentences that were never said. So every name, number, date, path and URL in a
# machine-written fact is looked for in the evidence; one that is not there takes the whole sentence down,
# and the verbatim quote stands in its place. Ordinary words may differ: rewording is what a fact is for. In
# doubt a word is a claim: to refuse a true sentence costs its wording, to keep a false one costs trust.


_URL = late(r"\b[a-z][a-z0-9+.-]*://[^\s<>\"'`)\]]+|\bwww\.[^\s<>\"'`)\]]+", re.IGNORECASE)
_EMAIL = late(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_PATH = late(
    r"(?<![\w/])(?:~|\.{1,2})?/?(?:[\w.@+-]+/)+[\w.@+-]*|(?<![\w/])/[\w.@+-]+|"
    r"(?<![\w/.])(?!(?:e\.g|i\.e|a\.m|p\.m|a\.k)\b)\.?[\w-]+(?:\.[\w-]+)*\."
    r"(?:[a-z]\w{0,4}|(?-i:[a-z]{2,14}))\b(?![/\w])",
    re.IGNORECASE,
)
_IDENTIFIER = late(r"(?:\b(?:\w+_\w+|\w+-\d[\w.-]*|[a-z]+[A-Z]\w*|[A-Z]{2,}\w*|v\d[\w.]*)|@\w[\w.-]*)\b")
_ABBREVIATIONS = late("[A-Z]{2,}s")
"""Only these have a plural: `PRs` are each a PR, but what code calls `map_keys` is no `map_key`."""
_QUOTED = late(r"`([^`\n]+)`|(?<![\w&/])#([A-Za-z][\w/-]*)")
_VERBATIM = late(r"(?<!\w)[\"„«](?=\S)([^\"„«»\n]*\S)[\"»]")
_LEFT_OUT = late(r"\[?(?:…|\.\.\.)\]?")
_CLAIM_WORD = late(r"[^\W\d_][\w'-]*")
_SENTENCE_END = late(r"[.!?:;]\s*$|^\s*$")
_TRAILING = ".,;:!?"


def ungrounded(text: str, evidence: Sequence[str], said: date | None = None) -> tuple[str, ...]:
    """The names, numbers, dates, paths and URLs of `text` that no piece of the evidence has, in order.

    `said` is the day of the quote, against which "yesterday" is read in both; without it only dates that
    name their year are compared as dates, and the words of the others as words.
    """
    known = _Evidence(evidence, said)
    return tuple(claim for kind, claim in claims(text, said) if not known.has(kind, claim))


def named(name: str, evidence: Sequence[str]) -> bool:
    """Whether what a model lists as a name is one, and stands in the evidence. "There" is none anywhere."""
    words = [word.casefold() for word in _CLAIM_WORD.findall(name)]
    ordinary = bool(words) and all(word in ORDINARY or not terms(word) for word in words)
    return not ordinary and _Evidence(evidence, None).names(_plain_claim(name))


class _Evidence:
    """What the evidence names, by kind."""

    def __init__(self, pieces: Sequence[str], said: date | None) -> None:
        text = _plain_claim("\n".join(pieces))
        self._said = said
        self._text = text.casefold()
        self._flat = " ".join(self._text.split())
        self._stretches = {(span.start, span.end) for span in _spans(text, said)}
        days = _dates(text, said)
        self._days = {day for _, day in days}
        self._yearless = {day[5:] for _, day in days}
        self._unsure = {day[5:] for span, day in days if not span.sure}
        if said:
            ahead = set(meant(text, said))
            self._days |= {day.isoformat() for day in (said, *ahead)}
            self._stretches |= {(day, day + timedelta(days=1)) for day in ahead}
        self._urls = {_url(match[0]) for match in _URL.finditer(text)}
        self._words = {form for word in _CLAIM_WORD.findall(text) for form in _forms(word)}
        self._stems = {stem for word in self._words for stem in _stems(word)}
        self._roots = {_root(word) for word in self._words}
        self._pieces = text

    @cached_property
    def _amounts(self) -> Amounts:
        return Amounts(without(self._pieces))

    def has(self, kind: str, claim: str) -> bool:
        if kind == "date":
            return claim in self._days or (claim[5:] in self._unsure and self._near(claim))
        if kind == "yearless":
            return claim[5:] in self._yearless
        if kind == "number":
            return self._amounts.has(claim)
        if kind == "compound":
            return stands(claim, self._flat) or self._counts(claim.casefold())
        if kind in ("verbatim", "code"):
            return self._says(claim)
        if kind in ("stretch", "moment"):
            return self._says(claim) or self._within(kind, claim)
        if kind == "url":
            return _url(claim) in self._urls or self._stands(claim)
        if kind in ("name", "opening") and resolves(claim.casefold(), self._stretches):
            return True
        if kind == "name" and len(_GERMAN.findall(self._flat)) and _root(claim.casefold()) in self._roots:
            return True  # a noun
        if kind == "name":
            return all(_forms(part) & self._words for part in claim.split("-") if part)
        if kind in ("coined", "opening") and _root(claim) in self._roots:
            return True
        if kind == "coined" and any(word.startswith(claim[:_SHORTEST_STEM]) for word in self._words):
            return True
        if kind in ("opening", "coined"):
            return bool((_stems(claim) | _forms(claim)) & (self._stems | self._words))
        if kind == "identifier":  # "API" stands in "API-keys", "gpt-4" not in "gpt-4.1"
            forms = (claim, claim[:-1]) if _ABBREVIATIONS.fullmatch(claim) else (claim,)
            return any(self._stands(form, r"[.-]\d") for form in forms)
        return self._stands(claim)

    def _counts(self, nth: str) -> bool:
        """Whether an ordinal's number stands there: who turned 91 had the 91st birthday."""
        number = str(_ORDINALS.get(nth, "")) or re.sub(r"(?<=\d)(?:st|nd|rd|th)$", "", nth)
        counted = rf"(?<![\w.,]){number}(?![\w:.,]*\d)(?! (?:of )?{A_MONTH})"
        return number.isdigit() and re.search(counted, in_digits(self._flat), re.IGNORECASE) is not None

    def names(self, name: str) -> bool:
        """Whether it is called so there; in a script without spaces, whether these characters stand there."""
        whole = self._says(name) or self._says(f"{name}s")
        return whole or bool(UNSPACED.search(name) and name.casefold() in self._flat)

    def _near(self, day: str) -> bool:
        """Whether a day is what one without its year can mean: the last such, or the next."""
        return self._said is None or abs((date.fromisoformat(day) - self._said).days) <= 366

    def _says(self, claim: str) -> bool:
        """Whether these very words stand there, white space and letter case aside."""
        wanted = re.escape(" ".join(claim.casefold().split()))
        return re.search(rf"(?<!\w){wanted}(?!\w)", self._flat) is not None

    def _within(self, kind: str, claim: str) -> bool:
        """Whether a date of the evidence is what these time words mean."""
        if kind == "moment":
            later = claim.removeprefix("next ") if claim.startswith("next ") else "?"
            return (
                self._says(f"{claim}s") or self._says(f"tomorrow {later}") or resolves(claim, self._stretches)
            )
        mine = [(span.start, span.end) for span in _spans(claim, self._said)]
        return any(start <= first and last <= end for start, end in mine for first, last in self._stretches)

    def _stands(self, claim: str, longer: str = r"/|[.-]\w") -> bool:
        """Whether the claim stands there as a whole: what `longer` matches after it makes it a part."""
        wanted = re.escape(claim.casefold())
        return re.search(rf"(?<!\w){wanted}(?!\w|{longer})", self._text) is not None


def claims(text: str, said: date | None = None) -> Iterator[tuple[str, str]]:
    """(kind, what) of everything in a text that can be true or made up.

    Kinds: verbatim (what stands in quotation marks), code (what is quoted as such, or a tag), url, email,
    path, date (an ISO day), yearless (one whose year is a guess), stretch (of days), moment (other time
    words), identifier, compound (a word with a number in it, or an ordinal), number, name, opening for a
    capitalised word that a sentence begins with, which may be a name or not, and coined for a lower-case
    one that is no English.
    """
    rest = _plain_claim(text)
    for match in _VERBATIM.finditer(rest):
        parts = (part.strip().rstrip(_TRAILING) for part in _LEFT_OUT.split(match[1]))
        yield from (("verbatim", words) for words in parts if words)
    yield from (("code", (match[1] or match[2]).strip()) for match in _QUOTED.finditer(rest))
    for kind, pattern in (("url", _URL), ("email", _EMAIL), ("path", _PATH)):
        for match in pattern.finditer(rest):
            yield kind, match[0].rstrip(_TRAILING)
        rest = pattern.sub(_blank, rest)
    for span, day in _dates(rest, said):
        yield ("date" if span.sure else "yearless"), day
        rest = rest[: span.at] + " " * (span.to - span.at) + rest[span.to :]
    for span in _spans(rest, said):
        yield "stretch", rest[span.at : span.to]
        rest = rest[: span.at] + " " * (span.to - span.at) + rest[span.to :]
    yield from (("moment", each) for each in moments(in_digits(rest)))
    for match in _IDENTIFIER.finditer(rest):
        yield "identifier", match[0]
    rest = _IDENTIFIER.sub(_blank, rest)
    for match in compounds(rest):
        yield "compound", match[0]
        rest = rest[: match.start()] + " " * len(match[0]) + rest[match.end() :]
    yield from (("number", written) for written in sorted({each.written for each in amounts(rest)}))
    yield from _names(rest)
    yield from (("coined", word) for word in coined(rest))


def locate(quote: str, turns: Sequence[str]) -> int | None:
    """The index of the turn that has these very words, white space aside, or None; no half words."""
    wanted = " ".join(_plain_claim(quote).split())
    if not wanted:
        return None
    plain = (" ".join(_plain_claim(turn).split()) for turn in turns)
    return next((n for n, turn in enumerate(plain) if _has_words(turn, wanted)), None)


def _has_words(text: str, wanted: str) -> bool:
    """Whether a text has them, no half words. A pattern for each took longer to compile than to search."""
    at = -1
    while (at := text.find(wanted, at + 1)) >= 0:
        before, after = text[at - 1 : at], text[at + len(wanted) :][:1]
        whole = not (wanted[0].isalnum() and (before.isalnum() or before == "_"))
        if whole and not (wanted[-1].isalnum() and (after.isalnum() or after == "_")):
            return True
    return False


def around(index: int, turns: Sequence[str]) -> list[str]:
    """A turn and the two around it: what a fact drawn from it may speak of."""
    return list(turns[max(0, index - 1) : index + 2])


def _spans(text: str, said: date | None) -> list[calendar.Span]:
    """The stretches of days that a text names; none that needs a today we do not have."""
    found = calendar.spans(text, said or date(2000, 1, 1))
    return [each for each in found if said or re.search(r"\d{4}", text[each.at : each.to])]


def _dates(text: str, said: date | None) -> list[tuple[calendar.Span, str]]:
    """The single days of a text and where it names them."""
    return [(span, span.start.isoformat()) for span in _spans(text, said) if span.is_day]


def _names(text: str) -> Iterator[tuple[str, str]]:
    for match in _CLAIM_WORD.finditer(text):
        word = match[0]
        if not word[0].isupper():
            continue
        if _GERMAN_NOUN.search(text[: match.start()][-12:]):
            continue
        first = _SENTENCE_END.search(text[: match.start()].rstrip("\"'(*_ ")[-3:]) is not None
        plain = word.casefold().removesuffix("'s") if first else word.casefold()
        if plain in little_words()["roles"] or _ROLE_OF.fullmatch(plain):
            continue
        if plain in foreign_light() or (first and any(one.fullmatch(plain) for one in _little().values())):
            continue
        if plain in ORDINARY and (first or len(word) < 3 or plain in ("user", "assistant")):
            continue
        if first and opens(word, text[match.end() : match.end() + 10]):
            continue
        yield ("opening" if first and "-" not in word else "name"), word


def _forms(word: str) -> set[str]:
    """A word, and it without the genitive's or the plural's s: `Heroku's` is Heroku, but James is not jam."""
    plain = word.casefold().strip("'-")
    forms = {plain, *plain.replace("'", "-").split("-")}
    forms |= {form[:-2] for form in forms if form.endswith("'s")}
    forms |= {form[:-1] for form in forms if form.endswith("s") and len(form) > 3}
    return forms - {""}


def _stems(word: str) -> set[str]:
    """A word without the endings of verbs, so that `Decided` at the start of a sentence is decide."""
    plain = word.casefold().strip("'-")
    endings = [e for e in ("es", "ed", "d", "ing", "ly") if plain.endswith(e) and len(plain) - len(e) >= 4]
    return {plain, *(plain[: -len(ending)] for ending in endings)}


def _url(text: str) -> str:
    return text.rstrip(_TRAILING).rstrip("/")


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])


@cache
def _typed() -> tuple[re.Pattern[str], Mapping[str, str]]:
    """What is typed in a hurry, and the full words for it."""
    spelt = dict(row.replace("_", " ").split("|") for row in little_words()["typed"])
    negated = r"(?P<verb>do|does|did|is|was|are|were|have|has|had|could|would|should|ca|wo)nt"
    going = r"im(?= (?:not|so|the|an?|at|on|in|just|still|gonna|[a-z]+ing)\b)"  # not the German one
    return re.compile(rf"(?<![\w`'])(?:{negated}|{going}|{'|'.join(spelt)})(?![\w`'])", re.IGNORECASE), spelt


def _plain_claim(text: str) -> str:
    """Composed, with straight quotation marks and in full words: they are typed and printed in many ways."""
    text = unicodedata.normalize("NFKC", text)
    text = text.translate({0x2019: "'", 0x2018: "'", 0x201C: '"', 0x201D: '"'})
    pattern, spelt = _typed()
    return pattern.sub(
        lambda one: f"{one['verb']}n't" if one["verb"] else spelt.get(one[0].casefold(), "I'm"), text
    )


# -- support -----------------------------------------------------------------------------------------------
# Whether a statement says about what its evidence says: a sentence of ordinary words names nothing, and may
# still be made up from its first word to its last.
#
# Measured in November 2026 on 76 rewordings of turns of real talks, most of them free, and on 213 sentences
# that a small model said about such turns. Of the rewordings three are refused. Of what the model said the
# names and numbers leave 72, and this 29, most of them the turn's own words in a frame ("the text says …").
# What lies in the words that were said, or leaves out their "not", it cannot tell.


_SHARE, _MORE = 1 / 3, 2
"""The part of its words that a text must share, and how many more than these it may have of its own: a short
rewording is free, a long one is not."""
_WHO = terms(
    "user person agent assistant owner team speaker says said tells told asks wants yes ok ll re ve since"
    " until"
)
"""Who speaks is told by the turn, not by its words, and that he does so says nothing."""
_AFTER_SENTENCE = late(r"(?<=[.!?])\s+")
_SHORTEST_STEM, _FEW = 4, 4


def supported(text: str, evidence: Sequence[str], asked: str = "") -> bool:
    """Whether of the words that a text has beside the little ones enough stand in its evidence, in some form:
    a third of them, and in a long text nearly half; so too of each longer sentence of it.

    Those of the question that was `asked` prove nothing either way, nor do names and numbers, which are
    claims of their own. A text that has nothing else ("No, no.") says nothing, unless it was asked for.
    """
    if _DIGIT.search(text := in_digits(text)):
        evidence = [*map(in_digits, evidence)]
    stands = _standing(_terms(evidence))
    apart = _terms([asked]) | _without_weight() | _capitals([text, *evidence])
    if not all(any(map(stands, one.split())) for one in _little()["status"].findall(text.casefold())):
        return False
    light = [_little()[kind] for kind in ("unsure", "intended", "ahead")]
    words = {word for word in _terms([text]) if stands(word) or not any(one.fullmatch(word) for one in light)}
    there = {*re.findall(r"\d+", " ".join(evidence))}
    speakers = _terms(
        label[1] for each in evidence for line in each.split("\n") if (label := _LABEL.match(line))
    )
    named_too = sum(map(stands, words & apart - _WHO - speakers)) + len({*re.findall(r"\d+", text)} & there)
    if not asked and not words - apart and not named_too:
        return False
    for number, part in enumerate((text, *_AFTER_SENTENCE.split(text))):
        own = {word for word in _terms([part]) & words - apart if not word.isdigit()}
        shared = sum(map(stands, own))
        enough = shared >= _SHARE * len(own) and len(own) - shared <= shared + _MORE
        few = len(own) < 2 or 0 < shared >= len(own) - shared - _MORE
        enough = enough or (number == 0 and few and named_too >= 2)
        if not enough and (number == 0 or len(own) > _FEW):
            return False
    return True


def _standing(there: Set[str]) -> Callable[[str], bool]:
    """What tells of a word whether it is one of these, in some form."""
    stems = {_evidence_stem(word) for word in there}
    roots = {*map(_root, there)}

    begun = {word[:end] for word in there for end in range(_SHORTEST_STEM, len(word) + 1)}

    def stands(word: str) -> bool:
        beginnings = (word[:end] for end in range(_SHORTEST_STEM, len(word)))
        near = (
            _root(word) in roots
            or word in there
            or _evidence_stem(word) in begun
            or any(each in stems for each in beginnings)
        )
        if near:
            return True
        return any(_term_stem(other) in there for other in (*related(word), *opposites(word)))

    return stands


def _standing_in(text: str) -> Callable[[str], bool]:
    """The same of the words of a text."""
    return _standing({*_WORD_OR_NUMBER.findall(text)})


@cache
def _without_weight() -> frozenset[str]:
    return _WHO | terms(" ".join((*foreign_light(), *little_words()["roles"], *MONTH_NAMES, *DAY_NAMES)))


_REPEATED, _REPEATS = 0.8, 3
"""The share of its words that a repetition has from its source, and how many it has at least."""
_DENIES = late(
    r"\b(?:no|not|never|none|without|cannot|\w+n't|nicht|nie|kein\w*|ohne|pas|jamais|sans|nunca|sin)\b",
    re.IGNORECASE,
)


def restates(text: str, source: str, *, exact: bool = False) -> bool:
    """Whether a text says in other words or another order what its source says, and nothing beyond it: nearly
    all of its words stand there, every name and number, and it denies something only if the source does.
    With `exact` all words stand there in the same form, as where "we move" and "we moved" are two things."""
    own, there = {word for word in _terms([text]) - _WHO if not word.isdigit()}, _terms([source])
    if len(own) < _REPEATS or bool(_DENIES.search(text)) != bool(_DENIES.search(source)):
        return False
    stands, words = _standing(there), flat(source)
    if exact and not all(f" {word} " in words for word in flat(text).split() if terms(word) & own):
        return False
    return sum(map(stands, own)) >= _REPEATED * len(own) and not ungrounded(text, [source])


def _terms(pieces: Iterable[str]) -> set[str]:
    text = "\n".join(pieces)
    spaced = (word for word in terms(UNSPACED.sub(" ", text)) if len(word) > 1)  # the m of I'm says nothing
    return {*UNSPACED.findall(text), *spaced}


def _capitals(pieces: Sequence[str]) -> set[str]:
    """The names of some texts, as terms."""
    roots = _called((), pieces)
    return {word for word in _terms(pieces) if _root(word) in roots - _kin_roots()}


def _evidence_stem(word: str) -> str:
    """What the forms of a word have in common: all but two letters."""
    return word[: max(_SHORTEST_STEM, len(word) - 2)]


# -- agreement ---------------------------------------------------------------------------------------------
# Whether a statement says of its quote's words what the quote says of them.
#
# A quote can be turned around: by a "not", by who says it, by a dropped "might", by the order of its words.
# Both sides are cut into clauses, and the statement is held against the clauses that have its words. What
# decides are little words (`data/little_words.toml`). What is said in words of its own ("the price fell" of
# one that rose) is not recognised.


_NOT_UNSPACED = late("ない|(?<!かもしれ)ません|なかった|ずに|不|没|沒|未")
_DONE = late(
    r"\b(?:was|were|had|did|went|bought|took|gave|made|got|came|became|began|sold|found|met|saw|sent|built|ran|"
    r"won|wrote|spent|paid|taught|kept|lost|broke|chose|drove|flew|grew|spoke|already|split|put|cut|set|hit|read|let|shut|(?!need)\w{2,}ed|"
    r"(?:hat|habe|haben|ist|sind) .*\b\w*(?:ge\w+(?:t|en)|iert)|"
    r"(?:a|ont|est|sont|ai) \w+(?:é|ée|és|i|is|it|u)|(?:ha|han|he) \w+[ai]do|\w+(?:ó|aron|ieron))\b"
)
"""Forms of verbs that say that something was done."""
_PAST = late(r"(?<!\ban )(?<!\ba )(?<!\bthe )\b([a-z]{2,}ed)\b")
_PARTICIPLE = late(
    r"\b(?:is|are|be|been|being|gets?|has|have|had|was|were|wants?)"
    r"(?: (?:not|never|always|only))* (?!to )\w+ed\b"
)
_LESS_THAN = late(r"\b(?:less|weniger|moins|menos) (?:than|als|que|de)\b")
_PURPOSE = late(r".* (?:to|um|zu|pour|para) ([^,;]+)$")
_COMPARES, _PRICED = ("than", "als", "que"), ("for", "für", "pour", "por", "para")
_TOGETHER = frozenset(["with", "mit", "avec", "con"])
_EXCHANGES = late("replac|swap|exchang|ersetz|tausch|remplac|reemplaz|sustitu")
_COMPARED_BY = (
    r"\b(?!(?:d?er|aber|oder|immer|over|under|after|never|ever|other|her)\b)"
    r"(?:[^\W\d_]+er|as(?! well| soon| long| far)|more|less|not|weniger|"
    r"menos|mehr|worse|mieux|plus|moins|más|mejor|peor|mayor|menor|meilleure?) "
)
_COMPARISON = late(rf"{_COMPARED_BY}(?:(?!{_COMPARED_BY})[^\W\d_]+ ){{0,5}}(?P<than>than|als|que|as) ")
_ARTICLE = late(r"(?:the|an?|der|die|das|le|la|les|el|los|las)\b")
_ALL_BUT = late(r"\b(?:all|every\w*|any\w*)(?: \w+){0,3} but\b")
_COORDINATED = late(r"; |, (?=and |but |und |aber |et |mais |y |pero |maybe |perhaps |vielleicht )")
_NOT_ALL = late(r"\b(?:any ?more|(?:after|above) all|all right|each other)\b")
_OTHERS_SAY = late(
    r"\b(?:says|thinks|believes|reckons|swears|insists|sagt|meint|glaubt|behauptet|dit|pense|croit|dice|cree|piensa)\b"
)
_MANY = late(r"\b([^\W\d_]{3,})s\b")
_ONE_OF = r"\b(?:this|one|my|our|mi|mon|ma|est[ea]|cette?)"
_NOT_THE = late(r"\b(?:not|never) \w+(?: \w+)? (?:the|this|that) ")
_OWN_WORDS = late(
    r"\b(?:says?|said|sagt|dit|dice|according to|laut|selon|según) (?:der |the |l')?person\b|"
    r"\bperson (?:says?|said|sagt|dit|dice)\b"
)
_BEFORE_NOUN = late(
    r"(?:the|an?|his|her|their|its|my|your|our|any|no|some|of|in|at|on|for|with|from|under|by|into|\w+'s|der|die|das|dem|den|des|eine?[mnrs]?|"
    r"im|am|le|la|les|une?|des|du|au|mon|ma|el|los|las|una?|su|mi)"
)
_NEARLY = late(r"\b(?:almost|nearly) (\w+)")
_NOBODY = late(r"nobody|neither|none|no one|niemand|keiner|personne|aucun|nadie|ninguno")
_ZU = late(r"\b(?:zu [a-zäöüß]+n|[a-zäöüß]+zu[a-zäöüß]+en)\b")
_CONTRAST = late(r"\b(?:not|nicht|no|pas)\b.*\b(?:but|only|just|sondern|sino|mais)\b(?P<but>.*)")
_SUBJECT_FIRST = late(
    r"(?:(?:and|but|because|that|both of|und|et|y) )?(?:"
    r"(?P<whose>(?P<owner>(?!there|here|it|s?he|that|what|who|let)\w+)'s|my|our|mein\w*|"
    r"unser\w*|mon|ma|mes|notre|nos|mis?|nuestr\w+)|the|a|der|die|das|le|la|les|el|los|las) "
    r"(?!team|company|family|group|birthday|name|firma|familie|equipo|équipe)(?P<what>\w+)"
)
_DONE_TO = late(
    r"\b(?:is|are|was|were|been?|being|w[iu]rd\w*|est|sont|était|fut|es|son|est[aá]n?|fue(?:ron)?) (?:\w+ )?"
    r"\w+(?:ed|en|t|ée?s?|[ai]d[oa]s?)\b"
)
"""A passive: who it is done to does nothing, "the database is hosted at Hetzner"."""
_ALIKE_CLAUSES = late(r"[,;]? (?:and|und|et|y|but|aber|mais|pero|while) |[,;] ")
_PREPOSITION = late(
    r"\b(?:in|on|at|for|with|to|from|by|into|under|an|auf|mit|für|bei|zu|von|à|dans|avec|pour|chez|con|en|para|por)\b"
)
_MEASURE = late(
    r"\b((?:milli|kilo|mega|giga|centi)?(?:met(?:er|re)|gram|byte|lit(?:er|re))s?|miles?|feet|inch(?:es)?|"
    r"pounds?|(?:second|minute|hour|day|week|month|year)s?)\b"
)
_FIXED = late(rf"(?:user|person|agent|assistant|owner)s?|{_MEASURE.pattern}")
_PASSIVE = late(r"\b(?:by|von|durch|par|por)\b")
_LABEL = late(
    r"^[\W_]*(person|user|assistant|[A-ZÀ-Þ][\w'-]*(?: [A-ZÀ-Þ][\w'-]*)?)[*_]*(?: ?\([^)]*\))?[*_]*: "
)
_ROLES = ("person", "user", "assistant")
_OTHER = {"person": "assistant", "assistant": "person"}
_YOU = late(r"(?:(?<=^)|(?<=[,;:] )|(?<=that )|(?<=and )|(?<=but )|(?<=so )|(?<=because )|(?<=was ))you\b")
_YOU_DID = late(r"\byou (\w+)")
"""An agent's "you" is the person; a person's may be anybody, unless it did something."""
_OBJECT_FIRST = late(r"\bme ((?:a|ha|ont|han|as|has) \w+|\w+)")
_USER = late(r"\b(?:user|owner|nutzers?|nutzerin|benutzers?|l'utilisat(?:eur|rice)|usuari[oa])\b")
_ROLE_OF = late(r"[ld]'utilisat(?:eur|rice)s?")
_ROLE_ROOTS = ("perso", "assis", "agent")
_INTRODUCED = (
    r"(?:i am|i'm|name is|this is|ich bin|ich heiße|je suis|je m'appelle|soy|me llamo) {0}\b|\b{0} here\b"
)
_CONTRACTED = (
    (late(r"\bcan't\b"), "can not"), (late(r"\bwon't\b"), "will not"), (late(r"n't\b"), " not"),
    (late(r"'ll\b"), " will"), (late(r"'d\b"), " would"), (late(r"'(?:m|re|ve)\b"), ""),
    (late(r"\bn'"), "ne "), (late(r"\bj'"), "je "), (late(r"\bm'"), "me "), (late(r"\b(?:[ldts]|qu)'"), ""),
)  # fmt: skip
_ONE_WORD = {"zum": "zu", "zur": "zu", "vom": "von", "al": "a", "del": "de", "au": "à", "du": "de"}
_OTHERWISE = late(
    rf"\b(?:(?P<one>{'|'.join(_ONE_WORD)})\b|for (?P<reason>\w+) reasons\b|"
    r"(?:less|fewer|weniger|moins|menos) (?!than|als|que|de|of|or|oder|ou|o))"
)
_SENTENCE = late(r"(?<=[.!?;])\s+|\n")
_CLAUSE = late(
    r"[,;:()–—]+\s+|\s+[-–—]\s+|\s+(?=(?:but|sondern|aber|mais|sino|pero|and|und|et|y|he|she|they|dass|"
    r"because|weil|which|who|after|nachdem|that(?=\s(?:person|assistant|he|she|they|i|we)\s)|while|whereas|"
    r"although|since(?! \d))\s)"
)
_JUST_AND = late(r",? (?:and|und|et|y|after) ")
_JOINS = late(r"^(?:and|und|et|y|but|aber|mais|pero)\s+")
_OPENING_OF = late(r"(?<=[.!?;:,])\s+")
_GERMAN_NOUN = late(r"\b(?:(?:ein|kein|mein|sein|ihr|unser|dies|jed)(?:e[mnrs]?)?|das|zum|zur|beim|vom) $")
"""What stands before a German noun, and seldom before a name."""
_GERMAN = late(r"\b(?:der|die|das|und|ist|nicht|ich|meine?|hat|im|wir|eine?|den|dem|mit|kein)\b")
_ROOT = 5
_WORD_OR_NUMBER = late(r"[^\W\d_]+-\d+|\d+(?:[.,:]\d+)*|[^\W\d_]+(?:[-'][^\W\d_]+)*")


@cache
def _little() -> Mapping[str, re.Pattern[str]]:
    """The table of little words: what matches any word or phrase of a class."""

    def phrase(word: str) -> str:
        return re.escape(word.replace("_", " ").casefold()).replace(r"\*", r"\w*").replace(r"\ ", " ")

    return {
        name: late(rf"\b(?:{'|'.join(map(phrase, sorted(words, key=len, reverse=True)))})\b")
        for name, words in little_words().items()
    }


def _has(kind: str, text: str) -> bool:
    return _little()[kind].search(text) is not None


@dataclass(frozen=True, slots=True)
class _Part:
    """A clause: in small letters with contractions resolved, the stems of its words, those of them that are
    names, its sentence, who says it, and words that it leaves to the clause before (`and the stove 85`)."""

    text: str
    stems: tuple[str, ...]
    names: frozenset[str]
    sentence: str
    who: str = ""
    left: frozenset[str] = frozenset()
    carried: frozenset[str] = frozenset()
    question: bool = False

    @property
    def words(self) -> frozenset[str]:
        """The stems that it has or is understood to have."""
        return frozenset(self.stems) | self.left


def disagreement(text: str, quotes: Sequence[str], evidence: Sequence[str] = (), asked: str = "") -> str:
    """Why a statement does not agree with the quotes that it rests on, in words for the model; '' if it does.

    `evidence` are the texts that the quotes stand in, and what else it may take words from; each may begin
    with who says it (`Anna: `, or the role `person: `). `asked` is the question that the statement answers.
    """
    if not supported(text, evidence or quotes, asked):
        return "hardly a word of it was said"
    return contradiction(text, quotes, evidence)


def contradiction(text: str, quotes: Sequence[str], evidence: Sequence[str] = ()) -> str:
    """The same for a statement that need not share words with its quotes."""
    pieces = [each for each in evidence if each] or list(quotes)
    asis, text = text, _in_words_of(text, pieces)
    whole = [sentence for quote in quotes for sentence in _whole_sentences(quote, pieces)]
    names = _called([text], pieces)
    said = [part for sentence, who in whole for part in _parts(sentence, names, who)]
    known = [part for piece in pieces for part in _parts(piece, names)]
    plainly = [sentence for sentence, _ in whole]
    own = quotes if not _has("reports", flat(" ".join(plainly))) else ()
    if flat(asis) in {flat(" ".join(plainly)), *map(flat, (*plainly, *own))}:
        return ""
    told = [_told(sentence, who) for sentence, who in whole]
    found = (
        _reported(text, told)
        or _causes(text, plainly, names)
        or _generalises(text, plainly)
        or _bounds(text, plainly)
    )
    if found := found or _turned(_told(text, ""), told, names):
        return found
    literal = {*_stems_of(_plainly(asis))}
    for part in _parts(text, names):
        near = _nearest(part, said)
        found = (
            _reported(text, told, near) or _denied(part, said, told, literal)
            or _overstated(near, said, text) or _shifted(near, text)
            or _of_subject(part, near) or _misplaced(part, known) or _mixed(part, told)
            or _replaced(part, told, known) or _taken_back(part, near, asis)
        )  # fmt: skip
        if found:
            return found
    return ""


def spoken(who: str, text: str) -> str:
    """A text with who says it, unless it begins with a name itself."""
    return text if _LABEL.match(text) else f"{who}: {text}"


# in the words of its sources


_SMALL = late(r"(?<!\w)[^\W\d_A-ZÀ-Þ][^\W\d_]*(?!\w)")
_WORD_IN_SENTENCE = late(r"(?P<less>\b(?:not|less|no) )?(?<![\w'])(?P<word>[^\W\d_]{3,})(?![\w'])")


def _in_words_of(text: str, pieces: Sequence[str]) -> str:
    """A statement in its sources' words: `purchased` as `buyed` where they say `bought`, and `dear` as
    `not cheap` where they say `cheap`."""
    words = [word for piece in pieces for word in _SMALL.findall(piece) if word not in LIGHT]
    there = {_root(word.removesuffix("er").removesuffix("est")): word for word in words}
    there |= {_root(word): word for word in words}

    def instead(match: re.Match[str]) -> str:
        word = match["word"]
        if (
            word in LIGHT
            or _root(word) in there
            or word in foreign_light()
            or _FIXED.fullmatch(word)
            or _has("undoes", word)
        ):
            return match[0]
        past = "ed" if is_past(word) else ""
        found = next((other for other in related(word) if _root(other) in there), "")
        if found:
            return f"{match['less'] or ''}{found}{past}"
        found = next((other for other in opposites(word) if _root(other) in there), "")
        found = there[_root(found)] if found and word.endswith(("er", "est")) else f"{found}{past}"
        return f"{'' if match['less'] else 'not '}{found}" if found.removesuffix("ed") else match[0]

    return _WORD_IN_SENTENCE.sub(instead, text)


# the parts


def _plainly(text: str) -> str:
    text = in_digits(_plain_claim(text).casefold())
    text = _AMOUNT.sub(_as_number, text) if _DIGIT.search(text) else text
    text = _BIG_ORDINAL.sub(lambda match: f"{_ORDINALS[match[0]]}th", text)
    for pattern, instead in _CONTRACTED if "'" in text else ():
        text = pattern.sub(instead, text)
    return _OTHERWISE.sub(_in_other_words, text)


def _in_other_words(match: re.Match[str]) -> str:
    """One word for two as two, "for tax reasons" as a because, and "less" as a "not"."""
    if match["one"]:
        return _ONE_WORD[match["one"]]
    return f"because of {match['reason']}" if match["reason"] else "not "


def _as_number(match: re.Match[str]) -> str:
    """`1.5k` and `1,500` as 1500, with the unit as it is."""
    plain, scale = _plain_number(match["digits"]), match["close"] or match["scale"] or ""
    if not scale or scale == "m":
        return match[0].replace(match["digits"], plain, 1)
    return match[0].replace(match["digits"], _scaled(plain, _SCALES[scale]), 1).replace(scale, "", 1)


def _parts(text: str, names: Set[str], who: str = "") -> list[_Part]:
    """The clauses of a text, in which "I" is who says it."""
    found: list[_Part] = []
    for line in _plain_claim(text).split("\n"):
        label = _LABEL.match(line)
        who = _labelled(label) if label else who
        for sentence in _SENTENCE.split(line[label.end() :] if label else line):
            plain, before = _told(sentence, who), None
            for piece in _joined_up(plain, names):
                before = _part(piece, plain, names | {_root(who)}, who, before)
                found.append(before)
    return found


def _told(sentence: str, who: str) -> str:
    """A sentence with who says it in the place of "I", and one word for the user."""
    plain = _USER.sub("person", _plainly(sentence))
    if who in _OTHER and (who == "assistant" or any(map(is_past, _YOU_DID.findall(plain)))):
        plain = _YOU.sub(_OTHER[who], plain)
    plain = _OBJECT_FIRST.sub(r"\1 me", plain) if " me " in plain and is_foreign(plain) else plain
    return _little()["subject"].sub(who or "speaker", plain)


def _joined_up(sentence: str, names: Set[str]) -> list[str]:
    """The clauses of a sentence; what is a name alone or has no word of its own stays with its neighbour."""
    pieces: list[str] = []
    bare = False
    for piece in filter(None, _CLAUSE.split(sentence)):
        stems = {*_stems_of(piece)}
        alone = not {one for one in stems - (names - _kin_roots()) if not one.isdigit()}
        if pieces and (not stems or (_JOINS.match(piece) and (alone or bare))):
            pieces[-1] += f" {piece}"
        else:
            pieces.append(piece)
        bare = alone
    return pieces


def _part(piece: str, sentence: str, names: Set[str], who: str, before: _Part | None) -> _Part:
    stems = tuple(_stems_of(piece))
    mine = frozenset(stems) & names
    left: set[str] = set()
    carried: frozenset[str] = frozenset()
    if before:
        own = {one for one in stems if one not in names and not one[0].isdigit()}
        plain = [one for one in before.stems if one not in names and not one[0].isdigit()]
        joins = _JOINS.match(piece) is not None
        short = not own & {*plain} and len(own) < 2 + bool(mine)
        if short or (joins and own <= {*plain}):
            left |= {*plain[0 if mine and before.names else 1 :]}
        number = [n for n, one in enumerate(before.stems) if one[0].isdigit()]
        if number and any(one[0].isdigit() for one in stems) and not any(_counted(stems)):
            left |= {*before.stems[number[-1] + 1 :]}
        carried = before.names | before.carried if joins and not mine else carried
    mine |= {_root(who or "speaker")} if _has("first", piece) else set()
    return _Part(piece, stems, mine, sentence, who, frozenset(left), carried, sentence.rstrip().endswith("?"))


def _stems_of(text: str) -> Iterator[str]:
    """The roots of the words that carry meaning, and numbers, in order; none of scripts without spaces."""
    for match in _WORD_OR_NUMBER.finditer(UNSPACED.sub(" ", text)):
        word = match[0].removesuffix("'s")
        if word[0].isdigit():
            yield word.rstrip(".,:")
        elif len(word) > 1 and word not in LIGHT and word not in foreign_light():
            yield _root(word)


def _root(word: str) -> str:
    """What the forms of a word have in common, more roughly than a stem: move, moved; allergy, allergic."""
    stem = _term_stem(irregular().get(word, word))
    stem = stem[:-1] if len(stem) > 3 and (stem[-1] in "eyaoéáó" or stem[-1] == stem[-2]) else stem
    return stem[:_ROOT]


def _called(statement: Sequence[str], evidence: Sequence[str]) -> frozenset[str]:
    """The roots of what has a name: a capital inside a sentence, a speaker's label, or the first word of a
    sentence that is not an ordinary one; and of relatives. Of German nouns only those that open a sentence.
    """
    found: set[str] = set()
    for text in (*statement, *evidence):
        plain = _plain_claim(text)
        german, foreign = len(_GERMAN.findall(plain)) > 1, is_foreign(plain)
        for line in plain.split("\n"):
            label = _LABEL.match(line)
            found |= {word.casefold() for word in label[1].split()} if label else set()
            for sentence in _OPENING_OF.split(line[label.end() :] if label else line):
                for match in _CLAIM_WORD.finditer(sentence):
                    word = match[0].removesuffix("'s")
                    inside = bool(sentence[: match.start()].strip("\"'(*_- "))
                    if not word[0].isupper() or (inside and german):
                        continue
                    if word in NO_NAMES or word.casefold() in ORDINARY:
                        continue
                    if inside or not (foreign or opens(word, sentence[match.end() :])):
                        found.add(word.casefold())
    light = LIGHT | foreign_light()
    return frozenset(_root(word) for word in found if word not in light) | {*_ROLE_ROOTS} | _kin_roots()


def _whole_sentences(quote: str, evidence: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The sentences that a quote is cut from, each with who says it: the label of its line, or of the last
    one before it. The quote itself where it is not found."""
    wanted = " ".join(_plain_claim(quote).split())
    for piece in evidence:
        who, rows = "", _plain_claim(piece).split("\n")
        if locate(quote, [piece]) is None:
            continue
        found = []
        for row in rows:
            if label := _LABEL.match(row):
                who, row = _labelled(label), row[label.end() :]
            for sentence in _AFTER_SENTENCE.split(row):
                flat_one = " ".join(sentence.split())
                if flat_one and (flat_one in wanted or wanted in flat_one or _overlap(flat_one, wanted)):
                    found.append((flat_one, who))
        yield from found or [(quote, who)]
        return
    label = _LABEL.match(quote)
    yield (quote[label.end() :], _labelled(label)) if label else (quote, "")


def _labelled(label: re.Match[str]) -> str:
    """Who a label says speaks."""
    who = label[1].split()[0].casefold()
    return "person" if who == "user" else who


def _overlap(sentence: str, quote: str) -> bool:
    """Whether a quote begins or ends in the middle of a sentence."""
    words = quote.split()
    return any(sentence.endswith(" ".join(words[:n])) for n in range(2, len(words))) or any(
        sentence.startswith(" ".join(words[n:])) for n in range(1, len(words) - 1)
    )


def _nearest(part: _Part, said: Sequence[_Part]) -> list[_Part]:
    """The clauses that share most words with a part of a statement."""
    mine = set(part.stems)
    shared = [len(mine & set(one.stems)) for one in said]
    most = max(shared, default=0)
    return [one for one, number in zip(said, shared, strict=True) if most and number == most]


# what is denied


def _denied(part: _Part, said: Sequence[_Part], told: Sequence[str], literal: Set[str]) -> str:
    """Whether one side denies what the other says: the word that a "not" stands before decides. Of what is
    `literal`, no opposite of the statement's word, the denial may also be understood."""
    both = part.text + " ".join(one.text for one in said)
    if UNSPACED.search(both):
        near = _nearest_signs(part, said)
        differs = near and bool(_NOT_UNSPACED.search(part.text)) != bool(_NOT_UNSPACED.search(near.text))
        return "one denies what the other says" if differs else ""
    if any(_comparison(part.sentence, other) < 0 for other in told):
        return ""
    known = {stem for one in said for stem in one.stems}
    mine, has = _scopes(part.text), {*part.stems}
    turns = [*_little()["undoes"].findall(part.text), *_little()["implies_not"].findall(part.text)]
    soft = any(_root(one) not in known for one in turns)
    denied = {stem for scope in _scopes(part.text, refusing=True) for stem in scope}
    for one in said:
        contrast = _CONTRAST.search(one.sentence)
        theirs = _scopes(one.text, refusing=True)
        free = [each for each in mine if not any({*each[:2]} & {*scope[:2]} for scope in theirs)]
        other = soft or free  # denies it in words of its own
        for scope in (each for each in theirs if not any({*each[:2]} & {*one[:2]} for one in mine)):
            head = next(iter(scope[1:] if contrast else scope), "")
            but = contrast and has & {*_stems_of(contrast["but"])} - {*one.stems}
            who = one.who or "speaker"
            speaker = {_root(who)} if one.text.strip(" .!") != f"not {who}" else set()
            if (
                len(scope) > 1
                and len(has) > 2
                and has.isdisjoint(scope[1:4])
                and not part.names & {*one.names}
            ):
                continue
            if other or head not in has - denied - speaker:
                behind = scope[1:2] if is_foreign(one.text) else []  # its verb has another form
                if other or not {*behind} & (has - denied - part.names) or _scopes(part.text, refusing=True):
                    continue
                head = behind[0]
            if not but or has & {*scope[1:]}:
                return f"what was said has “not {head}…”"
    of_denied = any(part.names & {*scope} for one in said for scope in _scopes(one.text))
    if mine and (soft or of_denied):
        return ""
    for scope in mine:
        head = next(iter(scope), "")
        holders = [one for one in said if head in one.stems]
        if (
            holders
            and not any(
                _has("undoes", one.text)
                or _scopes(one.text, refusing=True)
                or _has("except", one.sentence)
                or _ALL_BUT.search(one.sentence)
                or (head in literal and any(_has(kind, one.text) for kind in ("limits", "implies_not")))
                for one in holders
            )
            and not any({*scope[:2]} & {*other} for one in said for other in _scopes(one.text))
        ):
            return f"nothing that was said denies “{head}…”"
    return ""


def _scopes(text: str, *, refusing: bool = False) -> list[list[str]]:
    """The words that each "not" of a clause denies, the one it stands before first; wishes are passed over:
    who does not want to sell does not sell."""
    if _has("except", text) and re.search(r"\b(?:no|nothing|nobody|none|never|nichts|nie|rien|nada)\b", text):
        return []
    plain = _little()["no_denial"].sub(" ", text)
    found = []
    for kind in ("not", "refuses") if refusing else ("not",):
        for match in _little()[kind].finditer(plain):
            place = _PREPOSITION.match(plain, match.end() + 1)
            if kind == "refuses" and place and place[0] not in ("to", "de", "zu"):
                continue  # stopped in Rome
            behind = _little()["but"].split(plain[match.end() :])[0]
            words = list(_stems_of(_little()["wishes"].sub(" ", behind)))
            if kind == "refuses" and not words:
                continue  # the nanny quit
            before = list(_stems_of(_little()["wishes"].sub(" ", plain[: match.start()])))[::-1]
            if words or before:
                alone = (not words and refusing) or _NOBODY.fullmatch(match[0])
                found += [[word] for word in words or before] if alone else [words or before]
    return found


def _taken_back(part: _Part, near: Sequence[_Part], text: str) -> str:
    """Whether what was taken back is said to be so: "declined the offer" of one that was accepted."""
    plain = _plainly(text)
    if len(near) != 1:
        return ""
    (one,) = near
    shared = {*part.stems} & {*one.stems} - one.names
    if not shared:
        return ""
    if mine := _little()["reverses"].search(part.text):
        kinds = ("limits", "seldom", "reverses", "takes_back")
        denied = _turns(one.sentence) or any(_has(kind, one.sentence) for kind in kinds)
        if not denied and not any(map(_standing_in(one.sentence), mine[0].split())):
            return f"nothing that was said has “{mine[0]}”"
    if _turns(plain) or any(_has(kind, plain) for kind in ("unsure", "limits", "seldom")):
        return ""
    found = _little()["reverses"].search(one.text) or _little()["takes_back"].search(one.text)
    if not found or _PREPOSITION.match(one.text, found.end() + 1):
        return ""
    same = any(map(_standing_in(found[0]), _WORD_OR_NUMBER.findall(plain)))
    return "" if same else f"what was said has “{found[0]}”"


def _nearest_signs(part: _Part, said: Sequence[_Part]) -> _Part | None:
    mine = set(UNSPACED.findall(part.text))
    return max(said, key=lambda one: len(mine & set(UNSPACED.findall(one.text))), default=None)


# how sure it is


def _level(text: str, sentence: str, question: bool = False) -> int:
    """How far from done: 3 it may be, 2 it is meant to be, 1 it will be, 0 it is."""
    beside = next((each for each in _COORDINATED.split(sentence) if text.strip(" .,") in each), sentence)
    plain, beside = (
        _little()["no_condition"].sub(" ", one) for one in (sentence if _ZU.search(text) else text, beside)
    )
    nearly = _NEARLY.search(plain)
    told_of = (nearly and is_past(nearly[1])) or (_has("at_times", plain) and not _DONE.search(sentence))
    if told_of or _has("unsure", plain) or _has("whole", beside):
        return 3
    text = _little()["no_intention"].sub(" ", text)
    return 2 if question or _has("intended", text) else 1 if _has("ahead", text) else 0


def _overstated(near: Sequence[_Part], said: Sequence[_Part], text: str) -> str:
    """Whether it says as done what only might, should or will be."""
    if not near:
        return ""
    mine = _plainly(text)
    level, done = max(_level(mine, mine), 2 * ("prefer" in mine)), _DONE.search(mine) is not None
    mine_too = {*_stems_of(mine)} - {stem for one in near for stem in one.stems}
    beside = [one for one in said if mine_too & {*one.stems}]
    theirs = min(_level(one.text, one.sentence, one.question) for one in (*near, *beside))
    asked = any(one.question for one in near)
    if _turns(mine) and any(_has("would_have", one.sentence) for one in near):
        return ""
    if theirs == 3 and (level < 2 or (level == 2 and _has("ahead", mine) and not asked)):
        return "it was said only of what may be"
    if theirs == 2 and level == 0:
        return "it was said only of what is wanted or planned"
    if theirs == 1 and level == 0 and done and not any(_DONE.search(one.text) for one in near):
        return "it was said only of what is to come"
    if level == theirs == 0 and _PAST.search(mine) and _became_past(mine, near):
        return "it was not said of the past"
    happened = all(_DONE.search(one.text) for one in near)
    plainly = not any(_turns(one.text) or _level(one.sentence, one.sentence) for one in near)
    if happened and theirs == 0 and _has("not_yet", mine) and plainly:
        return "it was said of what was done"
    if level == 1 and theirs == 0 and not done and happened:
        return "it was said of what is past"
    return ""


def _turns(text: str) -> bool:
    """Whether a text has a word that denies what stands beside it."""
    return any(_has(kind, text) for kind in ("not", "undoes", "implies_not"))


def _reported(text: str, told: Sequence[str], near: Sequence[_Part] = ()) -> str:
    """Whether what somebody else is said to have said is a fact here, or what who speaks says."""
    theirs = "\n".join(told)
    others = near and all(_OTHERS_SAY.search(one.text) and one.who not in one.text.split() for one in near)
    if not (others or _has("reports", theirs)):
        return ""
    mine = _OWN_WORDS.sub(" ", _told(text, ""))
    if any(_has(kind, mine) for kind in ("reports", "says", "unsure")) or _turns(mine) != _turns(theirs):
        return ""  # nor is it hearsay that it is not so
    return "it was only said that somebody says so"


def _became_past(text: str, near: Sequence[_Part]) -> bool:
    """Whether a verb is past here and was not there."""
    past = {_root(match[1]) for match in _PAST.finditer(_PARTICIPLE.sub(" ", text))}
    return any(
        past & {*one.stems} and not _DONE.search(one.sentence) and not _has("past", one.text) for one in near
    )


def _shifted(near: Sequence[_Part], text: str) -> str:
    """Whether what used to be so is said of now."""
    mine = _plainly(text)
    if near and _has("no_more", mine) != _has("no_more", near[0].sentence):
        still, more = (mine, near[0].text) if _has("still", mine) else (near[0].text, mine)
        if _has("still", still) and _has("no_more", more):
            return "one says that it is still so, the other that it is no longer"
    past = near and all(
        _has("once", one.text)
        or _has("back_then", one.sentence)
        or (_has("ended", one.text) and _DONE.search(one.text))
        for one in near
    )
    mine = _PARTICIPLE.sub(" ", mine) if re.search(r"\b(?:is|are)\b", mine) else mine
    told = _has("was", mine) or any(map(is_past, mine.split()))
    return "it was said only of the past" if past and not told else ""


# of whom


@cache
def _passing() -> frozenset[str]:
    return frozenset(map(_root, little_words()["passing"]))


@cache
def _abbreviated() -> frozenset[str]:
    return frozenset(_root(name.casefold()) for name in NO_NAMES if name.isupper() and len(name) > 2)


def _misplaced(part: _Part, said: Sequence[_Part]) -> str:
    """Whether a name or a number is put to words that were said of another one alone."""
    there = {stem for one in said for stem in one.stems}
    for item in (one for one in part.stems if one in part.names or (one[0].isdigit() and one in there)):
        for word in (stem for stem in part.stems if stem != item and not stem[0].isdigit()):
            if word in _abbreviated() or (item in part.names and word in _passing()):
                continue  # "the API" is whichever one was spoken of, and "new" and "last" are of anybody
            holders = [one for one in said if word in one.words]
            fits = any(_fits(item, one, part, said) for one in holders)
            if word in part.names and not fits:
                fits = any(_fits(word, one, part, said) for one in said if item in one.words)
            denied = any(item in scope for one in said for scope in _scopes(one.text))
            if holders and not fits and not (denied and _scopes(part.text)):
                return f"“{word}…” was not said of {item}"
    return _wrong_unit(part, said) or _wrong_measure(part, said)


def _fits(item: str, clause: _Part, part: _Part, said: Sequence[_Part]) -> bool:
    """Whether a clause may speak of an item: it has it, may mean it by a pronoun, or names no other that the
    statement leaves out."""
    if item in clause.words | clause.names | clause.carried or item == "speak":
        return True
    if item[0].isdigit():
        return not any(one[0].isdigit() and one not in part.stems for one in clause.stems)
    speaker = _root(clause.who or "speaker")
    if item == speaker and f"{clause.who}'s" in part.text and not clause.names & _kin_roots():
        return True  # what belongs to who speaks is spoken of without him
    by_pronoun = _has("third", clause.text)
    if by_pronoun and not clause.names - {speaker, *part.stems}:
        of_another = _has("another", clause.text) and item == speaker == part.stems[0]
        return not of_another or part.text.startswith(f"{clause.who}'s")
    if item in _kin_roots() and item in {*_stems_of(clause.sentence)} and _has("third", clause.sentence):
        return True
    others = (clause.names | clause.carried) - {
        *_stems_of(part.sentence if item in clause.names else part.text)
    }
    kin = {one for one in others if one in _kin_roots()}
    others -= kin if _has("kin", part.text) else set()
    beside = any(one.stems[:1] == (item,) and one.sentence == clause.sentence for one in said)
    others |= {*clause.stems[:1]} - {*part.stems} if beside else set()  # each has a subject of its own
    if item == "perso" and clause.who not in _ROLES:
        others -= {speaker}
    if others == {speaker} and clause.who in (*_ROLES, "") and item not in _ROLE_ROOTS:
        if part.stems[0] != item or _ARTICLE.match(part.text):
            return True
        told = [one for one in said if item in one.names and one.who == clause.who]
        return not told or any(re.search(_INTRODUCED.format(item), one.text) for one in told)
    return not others


@cache
def _kin_roots() -> frozenset[str]:
    """Roots of the words for relatives, which stand for a person as a name does."""
    return frozenset(_root(word.rstrip("*")) for word in little_words()["kin"])


def _of_subject(part: _Part, near: Sequence[_Part]) -> str:
    """Whether what somebody else did is said of who speaks, or of its owner: "the board approved it",
    "my boss wants it"."""
    opening = part.text.removeprefix("the ").split()[:1]
    subject = ""
    for one in near:
        match = None if _DONE_TO.search(one.text) else _SUBJECT_FIRST.match(one.text)
        who = (match and match["owner"]) or one.who or "speaker"
        if not match or opening != [who] or who in one.text.split():
            return ""
        if _standing_in(part.text)(match["what"]):
            return ""
        if not match["whose"] and len({*part.stems} & {*one.stems}) < 2:
            return ""
        subject = match["what"]
    return f"it was said of “{subject}”, not of “{opening[0]}”" if subject else ""


def _mixed(part: _Part, told: Sequence[str]) -> str:
    """Whether it joins the beginning of one of two like clauses with the end of the other: of "the iron at
    night and the zinc at noon" the iron at noon."""
    has = {*part.stems} - _WHO
    for sentence in (one for one in told if has <= {*_stems_of(one), *part.names}):
        clauses = _ALIKE_CLAUSES.split(sentence)
        for (start, end), (other_start, other_end) in itertools.permutations(map(_halves, clauses), 2):
            left = end - other_end and not end & has and other_start - start - has
            if (start - other_start) & has and (other_end - end) & has and left:
                return "it joins what was said apart"
        for before, behind in itertools.pairwise(clauses):
            one, other = {*_stems_of(before)}, {*_stems_of(behind)}
            parts = (one - other) & has, (other - one) & has, one - other - has, other - one - has
            if all(parts) and not _has("third", behind):
                return "it joins what was said apart"
    return ""


def _halves(clause: str) -> tuple[Set[str], Set[str]]:
    """What stands before and behind the last preposition of a clause."""
    found = list(_PREPOSITION.finditer(clause)) or list(re.finditer(r" (?=\S+\W*$)", clause))
    start, end = found[-1].span() if found else (len(clause), len(clause))
    return {*_stems_of(clause[:start])}, {*_stems_of(clause[end:])}


def _replaced(part: _Part, told: Sequence[str], known: Sequence[_Part]) -> str:
    """Whether a noun stands where another one was said, between the same words."""
    there = {stem for one in known for stem in one.stems}
    mine = _slots(part.text)
    strange = [one for one in mine if one[1] not in there | part.names and not one[1][0].isdigit()]
    if len(strange) != 1 or len(mine) < 3:
        return ""
    has = {stem for _, stem, *_ in mine}
    for (before, _, left, right, word), sentence in itertools.product(strange, told):
        for prior, other, behind, ahead, instead in _slots(sentence):
            if other in has | part.names or other[0].isdigit() or not _is_noun(word, instead):
                continue
            noun = _BEFORE_NOUN.fullmatch(before) and _BEFORE_NOUN.fullmatch(prior)
            inside = before == prior and left == behind and right == ahead and left not in (*part.names, "")
            inside = inside and not (word[-1] == instead[-1] == "s")  # answers for returns
            begun, ended = left == behind != "" and right in ("", ahead), right == ahead != ""
            if (inside and before != "no" and not before[:1].isdigit()) or (noun and (begun or ended)):
                same = _standing_in(" ".join(one.text for one in known))(word)
                return "" if same else f"“{word}” was not said there, but “{instead}”"
    return ""


def _is_noun(*words: str) -> bool:
    """Whether none of these is a past form or an adverb, or has a sense that turns a sentence."""
    little = _turning()
    return not any(is_past(word) or word.endswith("ly") or word in little for word in words)


@cache
def _turning() -> frozenset[str]:
    kinds = ("except", "every", "because", "limits", "seldom", "markers", "after", "intended", "unsure")
    return frozenset(["per", "used", "ahead", *(word for kind in kinds for word in little_words()[kind])])


def _slots(text: str) -> list[tuple[str, str, str, str, str]]:
    """Each word with weight: the word right before it, its stem, the stems before and behind, and itself."""
    words = _WORD_OR_NUMBER.findall(text)
    full = [(words[n - 1] if n else "", next(_stems_of(word), ""), word) for n, word in enumerate(words)]
    full = [one for one in full if one[1]]
    stems = ["", *(stem for _, stem, _ in full), ""]
    return [(before, stem, stems[n], stems[n + 2], word) for n, (before, stem, word) in enumerate(full)]


def _wrong_unit(part: _Part, said: Sequence[_Part]) -> str:
    """Whether a number counts what another number counts in what was said."""
    pairs = {pair for one in said for pair in itertools.pairwise(one.stems)} & {
        *itertools.pairwise(part.stems)
    }
    counted = {number for before, number in pairs if number[0].isdigit()}  # version 3
    for number, unit in (one for one in _counted(part.stems) if one[0] not in counted):
        theirs = {(n, u) for one in said for n, u in _counted(one.stems)}
        if (
            unit in {u for _, u in theirs}
            and (number, unit) not in theirs
            and number in {n for n, _ in theirs}
        ):
            return f"{number} does not stand at “{unit}…” there"
    return ""


def _wrong_measure(part: _Part, said: Sequence[_Part]) -> str:
    """Whether it measures in a unit that was not said, where another was."""
    mine = {_root(word) for word in _MEASURE.findall(part.text)}
    theirs = {_root(word) for one in said for word in _MEASURE.findall(one.text)}
    numbers = {one for one in part.stems if one[0].isdigit()}
    same = numbers & {one for each in said for one in each.stems}
    return f"nobody said “{min(mine - theirs)}…” there" if mine - theirs and theirs - mine and same else ""


def _counted(stems: Sequence[str]) -> Iterator[tuple[str, str]]:
    for one, behind in itertools.pairwise(stems):
        if one[0].isdigit() and not behind[0].isdigit():
            yield one, behind


# in which order


def _turned(text: str, told: Sequence[str], names: Set[str]) -> str:
    """Whether what stands before and behind a "from", "to", "before" is exchanged, or who does it to whom."""
    source = [sentence for each in told for sentence in _SENTENCE.split(each)]
    for one, other in itertools.product(_AFTER_SENTENCE.split(text), source):
        if (side := _comparison(one, other)) and (side < 0) == (_denials(one) == _denials(other)):
            return "what is compared is exchanged"
        denies = _has("not", one) != _has("not", other)
        shared = {*_stems_of(one)} & {*_stems_of(other)}
        for marker, (left, right) in _sides(one).items():
            there = _sides(other).get(marker)
            turned = denies and marker in ("before", *little_words()["after"])
            if there is None or turned or marker in _COMPARES:
                continue
            here, away = {*right} & {*there[0]} - {*there[1]}, {*left} & {*there[1]} - {*there[0]}
            if marker in _PRICED and any(one[0].isdigit() for one in here | away):
                continue
            enough = shared - here - away or len(here | away) > 3 or marker in ("before", "after")
            if here and away and enough:
                return f"what stands before and behind “{marker}” is exchanged"
        for mine, theirs in itertools.product(_CLAUSE.split(one), _CLAUSE.split(other)):
            if _exchanged(mine, theirs, names & {*_stems_of(mine)} & {*_stems_of(theirs)}):
                return "the names are exchanged"
            if _other_way(mine, theirs):
                return "who does it and to whom is exchanged"
    return ""


def _comparison(one: str, other: str) -> int:
    """Whether the sides of a comparison stand as they do in another sentence (1) or are exchanged (-1); 0 if
    there are no two comparisons by the same word."""
    mine, theirs = _compared(one), _compared(other)
    if not mine or not theirs or mine[0] not in ("", *theirs[1]):
        return 0
    (_, left, right), (_, before, behind) = mine, theirs
    crossed = len((right - left) & (before - behind)) + len((left - right) & (behind - before))
    straight = len((right - left) & (behind - before)) + (left == before and right == behind)
    return -1 if crossed > straight else 1 if straight else 0


def _compared(sentence: str) -> tuple[str, Set[str], Set[str]] | None:
    """The word things are compared by, and the words on both sides of its "than"."""
    match = _COMPARISON.search(sentence)
    if match is None:
        return None
    than = match.start("than")
    behind = _CLAUSE.split(sentence[match.end() :])[0]
    by = next(_stems_of(sentence[match.start() : than]), "")
    return by, {*_stems_of(sentence[:than])}, {*_stems_of(behind)}


def _denials(text: str) -> int:
    """Whether an even or an odd number of words turn a sentence into its opposite."""
    return (len(_little()["not"].findall(text)) + len(_LESS_THAN.findall(text))) % 2


def _other_way(mine: str, theirs: str) -> bool:
    """Whether what stands right before and behind a verb stands the other way round in the other clause."""
    both = f"{mine} {theirs}"
    bound = _PASSIVE.search(both) or not {*both.split()}.isdisjoint(little_words()["markers"])
    if bound or len(_GERMAN.findall(both)) > 1:
        return False
    one, other = _WORD_OR_NUMBER.findall(mine), _WORD_OR_NUMBER.findall(theirs)
    forms = {word.removesuffix("s"): n for n, word in enumerate(other)}
    if len(forms.keys() & {word.removesuffix("s") for word in one}) < 3:
        return False
    for n, word in enumerate(one):
        if (at := forms.get(word.removesuffix("s"))) is None or word[0].isdigit() or not any(_stems_of(word)):
            continue
        around = (
            one[max(0, n - 2) : n],
            one[n + 1 : n + 4],
            other[max(0, at - 2) : at],
            other[at + 1 : at + 4],
        )
        before, behind, left, right = (
            {stem for each in part for stem in _stems_of(each) if ":" not in stem} for part in around
        )
        if (before - behind) & (right - left) and (behind - before) & (left - right):
            return True
    return False


def _sides(sentence: str) -> dict[str, tuple[list[str], list[str]]]:
    """What stands before and behind each marker; `after` is a `before` from behind."""
    found: dict[str, tuple[list[str], list[str]]] = {}
    left: list[str] = []
    marker = ""
    swaps = _EXCHANGES.search(sentence) is not None
    markers = {*little_words()["markers"], *little_words()["after"], *little_words()["then"]}
    for match in _WORD_OR_NUMBER.finditer(sentence):
        word = match[0]
        if word in markers and (word not in _TOGETHER or swaps):
            marker = word
            found.setdefault(word, (left[-3:], []))
            continue
        if _PREPOSITION.fullmatch(word) or sentence[match.start() - 2 : match.start() - 1] in (",", ";"):
            marker = ""
        for stem in _stems_of(word):
            if marker and len(found[marker][1]) < 2:
                found[marker][1].append(stem)
            left.append(stem)
    for word in found.keys() & {*little_words()["after"]}:
        found.setdefault("before", found[word][::-1])
    for word in found.keys() & {*little_words()["then"]}:
        found.setdefault("before", found[word])
    return found


def _exchanged(mine: str, theirs: str, names: Set[str]) -> bool:
    """Whether two names that a verb joins stand the other way round, and it is no passive."""
    if len(names) < 2 or bool(_PASSIVE.search(mine)) != bool(_PASSIVE.search(theirs)):
        return False
    one, other = list(_stems_of(mine)), list(_stems_of(theirs))
    for a, b in itertools.permutations(names, 2):
        if one.index(a) < one.index(b) and other.index(b) < other.index(a):
            between = {*one[one.index(a) + 1 : one.index(b)]} & {*other[other.index(b) + 1 : other.index(a)]}
            if len(_GERMAN.findall(f"{mine} {theirs}")) > 1:  # the verb stands last
                between = {one[-1]} & {other[-1]}
            apart = {*little_words()["markers"], "and"} - {"to", "à", "a"}
            if between - names and apart.isdisjoint((_before(mine, b), _before(theirs, a))):
                return True
    return False


def _before(text: str, stem: str) -> str:
    """The word before the one of a stem."""
    words = [match[0] for match in _WORD_OR_NUMBER.finditer(text)]
    return next((words[n - 1] for n, word in enumerate(words) if n and stem in _stems_of(word)), "")


# why, how much, how often


def _causes(text: str, quotes: Sequence[str], names: Set[str]) -> str:
    """Whether a reason is given that the quote does not have, or not as the reason."""
    text = text.replace(" or so ", " ")
    purpose = _PURPOSE.search(_plainly(text))
    aims = [*_stems_of(purpose[1])] if purpose else []
    if len(aims) > 1 and {*aims}.isdisjoint({*names - _kin_roots(), *_stems_of(_plainly("\n".join(quotes)))}):
        return "nobody said that this is what for"
    mine = next(_reasons(_told(text, ""), names), None)
    if mine is None or not mine[0]:
        return ""
    why, what = mine
    theirs = _plainly("\n".join(quotes))
    if len(why & {*_stems_of(theirs)}) < _SHARE * len(why):
        return "nobody said that this is the reason"
    sentences_there = _SENTENCE.split(theirs)
    given = [each for one in sentences_there for each in _reasons(one, names) if all(each)]
    given = [(cause, effect) for cause, effect in given if effect & (what | why)]
    if any(len(why & cause) >= len(why & effect) and why & cause for cause, effect in given):
        return ""
    if any(len(why & effect) > len(why & cause) for cause, effect in given):
        return "reason and result are exchanged"
    if any(what & effect for _, effect in given):
        return "another reason was given"
    beside = [
        _JUST_AND.split(one) for one in sentences_there if not _has("because", one) and not _has("hence", one)
    ]
    for halves in beside:
        roots = [{*_stems_of(half)} for half in halves]
        if (
            len(roots) == 2
            and all(len(why & one) != len(what & one) for one in roots)
            and roots[0] & (why | what)
            and roots[1] & (why | what)
        ):
            return "nobody said that this is the reason"
    return ""


def _reasons(sentence: str, names: Set[str]) -> Iterator[tuple[Set[str], Set[str]]]:
    """The words of each reason that a sentence gives, and of what it gives it for."""
    for kind in ("because", "hence"):
        match = _little()[kind].search(sentence)
        before, behind = (sentence[: match.start()], sentence[match.end() :]) if match else ("", "")
        if match and kind == "because":
            behind = next(filter(str.strip, _little()["hence"].split(behind)), "")
            if not any(_stems_of(before)):  # because it broke, they left
                behind, comma, before = behind.partition(",")
                if not comma:
                    continue
            before, behind = behind, before
        if match:
            yield {*_stems_of(before)} - names, {*_stems_of(behind)} - names


def _generalises(text: str, quotes: Sequence[str]) -> str:
    """Whether "all", "always", "never", "usually" are its own."""
    mine, theirs = _plainly(text), _plainly("\n".join(quotes))
    mine = _NOT_ALL.sub(" ", mine)
    mine = re.sub(r"\bany\w*", "", mine) if _has("limits", mine) else mine
    if _has("claims_all", mine) and not _has("every", theirs):
        once = _DONE.search(theirs) or _has("this", theirs) or _NOT_THE.search(theirs)
        denied = _has("never", mine) and _has("not", theirs) and not once
        return "" if denied else "it was not said of all, or always"
    if (
        _has("claims_all", mine)
        and (_has("limits", theirs) or _ALL_BUT.search(theirs))
        and not (_has("limits", mine) or _ALL_BUT.search(mine))
    ):
        return "it was said with an exception, or of some only"
    if _has("claims_all", mine) and _has("not_all", theirs) and not _has("not_all", mine):
        return "it was not said of all"
    if _has("claims_all", mine) and _has("says_partly", theirs) and not _has("claims_all", theirs):
        return "it was said only of some"
    if (
        _has("often", mine)
        and _has("seldom", theirs)
        and not (_has("habit", theirs) or _has("every", theirs))
    ):
        return "it was not said of what is usual"
    for noun in {*_MANY.findall(mine)} - {*_MANY.findall(theirs)}:
        if re.search(rf"{_ONE_OF}(?: \w+)? {noun}\b", theirs):
            return f"it was said of one {noun} only"
    if _has("some", mine) and _has("claims_all", theirs) and not _has("says_partly", theirs):
        return "it was said of all"
    if _has("partly", theirs) and not _has("says_partly", mine):
        return "it was said only of some, or sometimes"
    return ""


def _bounds(text: str, quotes: Sequence[str]) -> str:
    """Whether a number is a least in one and a most in the other."""
    mine, theirs = _limits(text), _limits("\n".join(quotes))
    for number, kind in mine.items():
        if kind != theirs.get(number, kind):
            return f"{number} is {theirs[number]} there"
    return ""


def _limits(text: str) -> dict[str, str]:
    """Numbers that are said to be the least or the most of what is meant."""
    found = {}
    plain = _plainly(text)
    for kind, word in (("least", "a minimum"), ("most", "a maximum")):
        for match in re.finditer(
            rf"(?:{_little()[kind].pattern})\s(?:\w+\s)?[$€£]?(\d+(?:[.,:]\d+)*)", plain
        ):
            found[match[1]] = word
    return found


# -- likeness ----------------------------------------------------------------------------------------------
# How much one sentence is another in other words: shared words by their stems, and signs of scripts that
# set no spaces by twos and threes.
#
# A second net only: who may say something somewhere is decided by where it comes from. What shares few
# words with its source, or stands in another language, is not recognised.


LIKE = {4: 0.5, 3: 0.6}
"""So many words shared, and the share of the shorter one's words from which two sentences say the same; fewer
are shared by chance. Of 666 pairs of one bank's notes on one project none does."""
_ALIKE = str.maketrans("асԁеһіјорԛѕуѵх", "acdehijopqsyvx")
"""Small letters of other scripts that cannot be told from Latin ones."""
_CLAUSE_END = late(r"(?<=[.!?;])\s+|(?<=[。！？；])|\n")
_ANY_WORD = late(r"\w+")
_PAIRED = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff\uac00-\ud7ff"
_KANA = "\u3041-\u309f"
_TRIPLED = "\u0e01-\u0e59\u0e81-\u0edf\u1000-\u109f\u1780-\u17e9"
_RUN = late(rf"(?P<two>[{_PAIRED}]+)|(?P<three>[{_TRIPLED}]+)|[^\W{_PAIRED}{_TRIPLED}{_KANA}]+")
"""Chinese and Korean by twos, Thai, Lao, Burmese and Khmer by threes; katakana stand as words, and hiragana,
which bind them, are passed over."""
_THING = late(
    r"\b[a-z][a-z0-9+.-]*://[^\s<>\"'`)\]]+|[\w.+-]+@[\w-]+(?:\.[\w-]+)+|(?<![\w-])--?[a-z][\w-]*|"
    r"(?<![\w/])[~.]{0,2}/?(?:[\w.@+-]+/)+[\w.@+-]*|(?<![\w/.])\.?\w[\w-]*(?:\.[\w-]+)*\.[a-z]\w{1,13}\b",
    re.IGNORECASE,
)


def plain_text(text: str) -> str:
    """A text as it reads: letter case, letters without width and those that only look different aside."""
    if text.isascii():  # most outputs of tools are, and they are long
        return text.lower()
    seen = "".join(sign for sign in normalize("NFKC", text) if category(sign) not in ("Cf", "Mn"))
    return seen.casefold().translate(_ALIKE)


def flat(text: str) -> str:
    """The words alone, a blank on either side, so that neither marks nor markdown hide them."""
    return f" {' '.join(_ANY_WORD.findall(plain_text(text)))} "


def sentences(text: str) -> list[str]:
    """The sentences of a text, and its lines, that have any words."""
    return [one for one in _CLAUSE_END.split(normalize("NFC", text)) if _ANY_WORD.search(one)]


def clauses(text: str) -> frozenset[str]:
    """What of a text is compared: the stems of its words, pairs or triples of signs without spaces."""
    return frozenset(_units(plain_text(text)))


def _units(text: str) -> Iterator[str]:
    for run in _RUN.finditer(text):
        size = 2 if run["two"] else 3 if run["three"] else 0
        if size:
            yield from (run[0][at : at + size] for at in range(max(1, len(run[0]) - size + 1)))
        else:
            yield from terms(run[0])


def likeness(one: frozenset[str], other: frozenset[str]) -> float:
    """The share of the shorter one's words that both have; 0 where that is not enough to say the same."""
    shared = len(one & other)
    least = LIKE.get(min(shared, max(LIKE)))
    share = shared / min(len(one), len(other)) if least else 0.0
    return share if least and share >= least else 0.0


def within(sentence: str, text: str) -> bool:
    """Whether a flat text has all words of a flat sentence in their order; without spaces, its signs."""
    bare = sentence.strip()
    return (sentence if " " in bare or bare.isascii() else bare) in text


RUN, _RUN_OF_SIGNS = 5, 10
"""Words in a row that are not shared by chance, if most of them carry meaning; signs, where no spaces stand
between words."""


def runs(sentence: str) -> Iterator[str]:
    """The runs of a sentence that are not shared by chance, flat; a sentence of four words is one."""
    words, size = flat(sentence).split(), RUN
    if UNSPACED.search(sentence):
        signs, size = flat(sentence).strip(), _RUN_OF_SIGNS
        yield from (signs[at : at + size] for at in range(len(signs) - size + 1))
        return
    size = RUN if len(words) >= RUN else RUN - 1
    for at in range(len(words) - size + 1):
        run = f" {' '.join(words[at : at + size])} "
        if len(terms(run)) > size // 2:
            yield run


def repeats(sentence: str, source: str) -> bool:
    """Whether a sentence is in the main a flat text's words: half of its runs stand there, those counted that
    do not overlap."""
    some = list(runs(sentence))[::RUN]
    return bool(some) and 2 * sum(run in source for run in some) >= len(some)


def content_words(text: str) -> frozenset[str]:
    """What is not said by chance: addresses, paths, names of files and hosts, the flags of commands."""
    return frozenset(one.rstrip(".,;:!?/") for one in _THING.findall(plain_text(text)))


def names(text: str, thing: str) -> bool:
    """Whether a text, as `plain` gives it, has a thing as a whole."""
    return thing in text and re.search(rf"(?<![\w-]){re.escape(thing)}(?!\w)", text) is not None
