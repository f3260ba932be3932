"""Chinese date words into English ones. The script has no spaces: they are found by pattern."""

from __future__ import annotations

import re
from collections.abc import Callable

from ua_memory.dates.tongues import DAYS, MONTHS

HAN = re.compile("[\u4e00-\u9fff]")
_DIGITS = {char: n for n, char in enumerate("零一二三四五六七八九十")} | {"两": 2, "〇": 0}
_N = r"(?:\d{1,4}|[一二三四五六七八九十两]{1,3})"
_DAY = dict(zip("一二三四五六日天", (*DAYS, "Sunday"), strict=True))
_SEASON = dict(zip("春夏秋冬", ("spring", "summer", "autumn", "winter"), strict=True))


def _words(text: str) -> dict[str, str]:
    """`昨天 yesterday, 前天 2 days ago` → each Chinese word with its English ones."""
    return dict(row.strip().split(" ", 1) for row in text.split(","))


_UNIT = _words(
    "天 days, 日 days, 周 weeks, 星期 weeks, 礼拜 weeks, 月 months, 年 years, 小时 hours,"
    " 分钟 minutes, 季度 quarters"
)
_YEAR = _words("前年 2 years ago, 去年 last year, 今年 this year, 明年 next year")
_WHICH = _words("上 last, 上个 last, 这 this, 这个 this, 本 this, 下 next, 下个 next")
_PLAIN = _words(
    "大前天 3 days ago, 前天 2 days ago, 昨天 yesterday, 昨日 yesterday, 昨晚 last night, 今天 today,"
    "今日 today,"
    "今晚 tonight, 今早 this morning, 明天 tomorrow, 后天 the day after tomorrow, 上周末 last weekend,"
    "这周末 this weekend, 本周末 this weekend, 周末 the weekend, 上半年 first half of this year,"
    "下半年 second half of this year, 圣诞节 at Christmas, 元旦 on New Year's Day, 春天 in spring,"
    "夏天 in summer, 秋天 in autumn, 冬天 in winter, 春季 in spring, 夏季 in summer, 秋季 in autumn,"
    "冬季 in winter, 早上 morning, 上午 morning, 下午 afternoon, 晚上 evening, 以来 <since, 之前 <before,"
    "以前 <before, 以后 <after, 之后 <after, 从 from, 自 from, 到 to, 至 to, 和 and, 初 <early, 中旬 <mid,"
    "底 <late, 末 <late"
)
_PLAIN |= _YEAR
_JOINS = {"to", "and", "from", "morning", "afternoon", "evening"}


def _number(text: str) -> int:
    if text.isdigit():
        return int(text)
    if "十" in text:
        tens, _, ones = text.partition("十")
        return (_DIGITS[tens] if tens else 1) * 10 + (_DIGITS[ones] if ones else 0)
    return _DIGITS[text]


def _month(text: str) -> str:
    number = _number(text)
    return MONTHS[number - 1] if 1 <= number <= 12 else ","


def _which(match: re.Match[str]) -> str:
    which, unit, at = _WHICH[match[1]], _UNIT[match[2]].removesuffix("s"), match[3]
    return f"{_DAY[at]} of {which} week" if at else f"{which} {unit}"


def _rule(pattern: str, make: Callable[[re.Match[str]], str]) -> tuple[re.Pattern[str], Callable[..., str]]:
    return re.compile(pattern.replace("N", _N)), make


_RULES = (
    _rule(
        r"(\d{4})\s*年\s*(\d{1,2})\s*月\s*(\d{1,2})\s*[日号]",
        lambda m: f"{m[1]}-{int(m[2]):02}-{int(m[3]):02}",
    ),
    _rule(r"(\d{4})\s*年\s*(\d{1,2})\s*月份?", lambda m: f"{_month(m[2])} {m[1]}"),
    _rule(r"(\d{4})\s*年第?([一二三四1-4])季度", lambda m: f"Q{_number(m[2])} {m[1]}"),
    _rule(r"((?:19|20)\d\d)\s*年([春夏秋冬])[天季]", lambda m: f"{_SEASON[m[2]]} {m[1]}"),
    _rule(r"((?:19|20)\d\d)\s*年", lambda m: f"year {m[1]}"),
    _rule(r"(去年|今年|明年)(N)月份?", lambda m: f"{_month(m[2])} {_YEAR[m[1]]}"),
    _rule(r"(去年|今年|明年)([春夏秋冬])[天季]", lambda m: f"{_SEASON[m[2]]} of {_YEAR[m[1]]}"),
    _rule(
        r"(?:最近|过去|近)的?(N)个?(天|日|周|星期|月|年|小时)",
        lambda m: f"the last {_number(m[1])} {_UNIT[m[2]]}",
    ),
    _rule(
        r"(N)个?(天|日|周|星期|礼拜|月|年|小时|分钟|季度)[之以]?前",
        lambda m: f"{_number(m[1])} {_UNIT[m[2]]} ago",
    ),
    _rule(r"(N)个?(天|周|星期|月|年)[之以]?后", lambda m: f"{_number(m[1])} {_UNIT[m[2]]} from now"),
    _rule(r"(上个?|这个?|本|下个?)(周|星期|礼拜)([一二三四五六日天])", _which),
    _rule(r"(上个?|这个?|本|下个?)(周|星期|礼拜|月|季度)(?!末)()", _which),
    _rule(r"(?:周|星期|礼拜)([一二三四五六日天])", lambda m: f"on {_DAY[m[1]]}"),
    _rule(r"(N)月(N)[日号]", lambda m: f"{_number(m[2])} {_month(m[1])}"),
    _rule(r"第([一二三四])季度", lambda m: f"in Q{_number(m[1])}"),
    _rule(r"(?<![\d个一二三四五六七八九十两])(N)月份?(?!亮|饼|球)", lambda m: f"in {_month(m[1])}"),
    _rule("|".join(sorted(_PLAIN, key=len, reverse=True)), lambda m: _PLAIN[m[0]]),
    _rule(r"\d{4}-\d\d-\d\d", lambda m: m[0]),
)


def in_english(text: str) -> list[tuple[str, int, int]]:
    """The date words of a text in English with their places; empty where it has none by itself."""
    found: list[tuple[str, int, int]] = []
    at = 0
    while at < len(text):
        rule = next(((m, make) for pattern, make in _RULES if (m := pattern.match(text, at))), None)
        if rule is None:
            if not found or found[-1][0] != ",":
                found.append((",", at, at + 1))
            at += 1
            continue
        match, make = rule
        _add(found, make(match), match.start(), match.end())
        at = match.end()
    return found if any(word not in _JOINS and word != "," for word, _, _ in found) else []


def _add(found: list[tuple[str, int, int]], word: str, at: int, to: int) -> None:
    """`5月底` is late May, `3月以来` since March: what bounds stands behind."""
    if not word.startswith("<"):
        if found and found[-1][0] in ("to", "and"):
            word = word.removeprefix("in ")
        found.append((word, at, to))
    elif found and found[-1][0] != "," and found[-1][0] not in _JOINS:
        plain, first, _ = found[-1]
        plain = plain.removeprefix("in ").removeprefix("on ").removeprefix("year ")
        found[-1] = (f"{word[1:]} {plain}", first, to)
