"""Names in a sentence, and the words two sentences are compared by. Rather too few names than a wrong one."""

from __future__ import annotations

import calendar
import re


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\S+", text))


ORDINARY = _words(
    """a about add after again all also always an ask avoid call check ensure get give go keep make note
    put run see set take tell try and any are as asked assistant at because before being both but by
    can changed chose client code could created current currently database decided decision did do
    does done during each every everything everyone feature first fixed for from general had has
    have he her here his how however i if implemented in instead into is it its kept later learned
    left let likes made many may might more most moved must my need needed needs never new next no
    none not nothing now of old on once one only open or our out over people person plan planned
    please prefer preferred prefers problem project reason removed replaced right said saw several
    she should since so some someone something still switched team tests than that the their them
    then there these they this those though to today together tomorrow two under until updated us
    use used user users uses using very want wanted wants was we went were what when where whether
    which while who whole why will with without work works would yes yesterday yet you your"""
)
"""Words that begin a sentence without being a name."""

_CODE = re.compile(r"`[^`]*`|\S*://\S+|\S*[/\\]\S*")
_RUN = re.compile(
    r"(?<![\w\0])(?:[A-Z]\w*\.(?:io|com|org|dev|ai|net|js)\b|[A-Z][\w'’]*[a-z]\w*|[A-Z]{2,}\d*)"
    r"(?:[ -](?:[A-Z][\w]*[a-z]\w*|[A-Z]{2,}\d*|\d+(?:\.\d+)*(?![\w%])))*"
)
_WORD = re.compile(r"[^\W_]+")
_BEGINS = re.compile(r"(?:^|[.!?:;–—|]\s*|[(\[\"“‘']|\s-\s+|\d[.)]\s+)$")
_NO_NAMES = _words(
    """I I'm I'll I've I'd OK Ok Yes No The A An Last Next Tues Thurs AM PM UTC GMT AND OR NOT NULL TRUE
    FALSE TODO FIXME NOTE API APIs URL URLs JSON HTML CSS SQL HTTP HTTPS CLI UI UX ID IDs UUID CI CD
    PR PRs MVP TLS SSH DNS CPU GPU RAM PDF CSV XML YAML ETA FAQ IMO FYI ASAP BTW WIP TBD MB GB KB TB"""
)
_NO_NAMES |= {*calendar.month_name, *calendar.month_abbr, *calendar.day_name, *calendar.day_abbr}
_LIGHT = _words(
    """a about after again all also an and any are as at be because been but by can could did do does for
    from had has have had he her his how i if in into is it its just let me more my need no not now
    of off on one only or our out over she should so some than that the their them then there these
    they this those to too up us was we were what when where which while who will with would you
    your"""
)


def names(text: str) -> tuple[str, ...]:
    """The proper names of a sentence, each once, in order: capitalised words that do not merely open it.

    Code, paths and URLs hold none. A word that opens a sentence counts only as part of a longer name.
    """
    plain = _CODE.sub(lambda m: "\0" * len(m[0]), text)
    found: dict[str, None] = {}
    for match in _RUN.finditer(plain):
        words = match[0].split(" ")
        opens = _BEGINS.search(plain[: match.start()].rstrip(" ")[-3:]) is not None
        if opens and (len(words) == 1 or _opens(words[0])):
            words = words[1:]
        while words and words[-1] in _NO_NAMES:
            words.pop()
        while words and words[0] in _NO_NAMES:
            words = words[1:]
        name = re.sub(r"['’]s?$", "", " ".join(words))
        if len(name) > 1 and not name[0].isdigit():
            found.setdefault(name)
    return tuple(found)


def _opens(word: str) -> bool:
    """Whether a capitalised word is likely to be so only because a sentence begins with it."""
    return word.casefold() in ORDINARY or word.endswith(("ed", "ing"))


def terms(text: str) -> frozenset[str]:
    """The words of a text that carry meaning, endings cut, for comparing it with another."""
    words = (word.casefold() for word in _WORD.findall(text))
    return frozenset(_stem(word) for word in words if word not in _LIGHT)


def _stem(word: str) -> str:
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word
