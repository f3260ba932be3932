"""The words around a time word: which of them begin a date, end one, or make something else of it."""

from __future__ import annotations

from ua_memory.dates.text import Text
from ua_memory.dates.words import (
    ALL_MONTHS,
    EARLY,
    LAST,
    LATE,
    MIDDLE,
    NEXT,
    THIS,
)


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


IN = words("in during over since until till throughout through across circa within into")
ROUND = words(
    "from by before after to around between and or for at on about of starting ending through up than"
)
WHICH = LAST | THIS | NEXT | EARLY | LATE | MIDDLE | {"earlier", "later"}
EACH = words("every each any man most many some per all no another one two")
CLOSED = words(
    """i we you he she it they me us him them who whom whose what when where why how which that this these
    those there and or but nor so then than as if because while about above across after against along
    among around at before behind below between by despite during except for from in inside into like
    near of off on onto out over since through throughout till to toward towards under until up upon
    with within without via am is are was were be been being do does did done have has had having can
    could will would shall should might must not no again also already both either just only still too
    a an the my our your his her its their all any some each every anyone someone everyone everybody
    anything something everything nothing nobody please ago now today yesterday tomorrow until onwards
    onward early late last next"""
)
"""Words that go on after a date is complete; a noun behind it would make it a part of something else."""
PRONOUNS = words("i i'm i've i'd i'll we you he she they it")
COUNTED = words(
    """people persons users requests lines files items tokens rows columns steps tests points dollars euros
    pounds words characters chars commits bytes kilobytes megabytes gigabytes bits ms kb mb gb tb kg km miles
    meters metres feet hours minutes seconds days weeks months years times more other others different of
    percent calories units pieces records entries events messages errors connections clients servers nodes
    copies iterations attempts retries samples examples documents pages questions answers jobs tasks threads
    workers players members visitors students employees customers pixels steps km/h rpm hz mhz volts watts
    degrees eur usd lei rupees yen crowns blocks cores issues tickets votes stars views downloads bugs calls
    seats rooms houses cars books games items. cups spoons grams litres liters soldiers men women children
    kids dogs cats or-so additional total separate individual inches yards tons"""
)
"""What a number before it counts: `in 2019 files`, `May 3 people join`."""
NUMBERED = words(
    """port ports room rooms version release line lines page pages id error code status issue issues ticket
    pr bug build number no nr row column step chapter section rfc iso pid model office windows server house
    apartment flat suite gate flight route highway bus train channel part item order invoice case article
    extension ext pin psalm bond floor locker tag package block channel commit revision rev v go python java
    node es c++ ecmascript vs studio exchange sharepoint word excel photoshop autocad matlab x86 http https
    localhost budget: salary price cost costs paid worth top area zip postcode exit unit"""
)
"""What a number behind it numbers: `port 2019`, `Office 2019`."""
YEARLY = words(
    """budget budgets conference taxes tax election elections holiday holidays vacation trip retreat offsite
    report review reviews season edition goals goal plan plans roadmap calendar festival summit resolutions
    results wedding olympics olympiad championship fiscal year conferences pandemic planning retro
    retrospective    recap highlights revenue earnings world cup euro games worlds interview interviews"""
)
"""What has a year behind or before it: `budget 2025`, `2026 goals`."""
TIMES_OF = words(
    "holiday holidays vacation vacations break term semester months time season quarter"
    " session solstice equinox"
)
NOT_OF_SEASON = words(
    """boot framework cloud mvc security data bean beans cleaning roll rolls loaded chicken batch integration
    webflux jpa water board onion camp camps school job internship jacket coat tires tyres collection back
    guy apart asleep behind sort leaves leaf damage palace olympics sale sales"""
)
NOT_OF_DAY = words("roast roasts times school league brunch football driver blues mass best")


def ends(text: Text, i: int) -> bool:
    """Whether a phrase may be complete before a token: the end, a mark, or a word that cannot be its noun."""
    return i >= len(text) or text.kind(i) == "mark" or text.low(i) in CLOSED or subject(text, i)


def subject(text: Text, i: int) -> bool:
    """A capitalised word in a text that is not all capitals: who did it, most likely."""
    return text.kind(i) == "word" and text.capital(i) and not text.tokens[i].text.isupper()


def before_word(text: Text, i: int) -> str:
    """The word before, an article and a dash left out."""
    i -= 1
    while i >= 0 and (text.low(i) in ("the", "of", "a") or text.kind(i) == "dash"):
        if text.low(i) == "of" and text.low(i - 1) not in (
            *WHICH,
            "half",
            "month",
            "week",
            "day",
            "quarter",
        ):
            break
        i -= 1
    return text.low(i)


PARTS = EARLY | LATE | MIDDLE


def of_a_year(text: Text, j: int) -> bool:
    """`last year`, `of this year` behind a month or a season."""
    j = j + (text.low(j) == "of")
    return text.low(j) in ("last", "this", "next") and text.low(j + 1) == "year"


def joins_months(text: Text, j: int) -> bool:
    return text.low(j + 1) in ALL_MONTHS


def plain_end(text: Text, j: int) -> bool:
    """An end without a name behind it: `by May`, not `by May Smith`."""
    return ends(text, j) and not (subject(text, j) and text.low(j) not in PRONOUNS)


def yearlike(text: Text, j: int) -> bool:
    return text.kind(j) == "number" and len(text.low(j)) == 4
