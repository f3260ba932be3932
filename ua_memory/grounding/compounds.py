"""Numbers inside a word: `web3`, `sha256`, `3D`, `3rd-party`, `2-step`. They count nothing by themselves.

A date in the source that has a 3 in it does not say `3rd-party`. Such a word has to stand there as itself,
however it is spelt: together, in two or with a hyphen, the number in digits or in letters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_LATIN = r"[A-Za-z\u00c0-\u024f]"
_UNITS = """am b bit bits bn byte bytes c chf cm d day days dpi eur f fps g gb gbp ghz gib h hour hours hr hrs
hz in k kb kbit kg khz kib km kw kwh l m ma mb mbit mg mhz mib min mins minute minutes ml mm mo month months
ms ns per percent pm ppm pt px qps quarter quarters rem rpm rps s sec second seconds secs tb tib us usd v w
week weeks wk year years yr yrs x y"""
"""What measures: with these a number is a number, `30-day` as well as `30 days`, `10ms` as `10 ms`."""
_MEASURES = frozenset(_UNITS.split())
_COUNTED = """two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
seventeen eighteen nineteen twenty"""
_ORDERED = """second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth
fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"""
_CARDINALS = {word: n for n, word in enumerate(_COUNTED.split(), 2)}
_ORDINALS = {word: n for n, word in enumerate(_ORDERED.split(), 2)} | {"first": 1}
_MONEY = frozenset(["chf", "eur", "gbp", "usd"])
_ORDINARY = ("first", "second")
"""In letters these are adverbs, stretches of time and ordinary words, and claim nothing."""
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)"
_BY = r"\b(?:on|by|until|till|before|since|from)"
_COMPOUND = re.compile(
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
    return beside.casefold() not in (_MONEY if match["tail"] else _MEASURES | _CARDINALS.keys())


def _is_day(match: re.Match[str]) -> bool:
    """Whether an ordinal is a day: of a month beside it, or of one that everybody knows ("on the 3rd.")."""
    before, behind = match.string[: match.start()][-20:], match.string[match.end() :][:20]
    month = re.search(rf"{_MONTH}\w* (?:the )?$", before, re.I) or re.match(
        rf" (?:of )?{_MONTH}", behind, re.I
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
