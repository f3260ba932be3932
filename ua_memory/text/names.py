"""Names in a text, drawn without a model: proper names, handles, identifiers, paths, hosts, addresses.

One place for facts and queries, so that both are cut alike. Rather too few names than a wrong one.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator

from ua_memory.text.patterns import late


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\S+", text))


ORDINARY = _words(
    """a about add after again all also although always an and another any are as ask asked
    assistant at avoid because before being both but by call can changed check chose client code
    could created current currently database decided decision did do does done during each
    either ensure even every everyone everything feature first fixed for from general get give
    go had has have he her here his how however i if implemented in instead into is it its keep
    kept later learned left let likes made make many may maybe might more most moved must my
    need needed needs neither never new next no none not note nothing now of often old on once
    one only open or other others otherwise our out over people perhaps person plan planned
    please prefer preferred prefers problem project put reason removed replaced right run said
    saw see set several she should since so some someone something still such switched take team
    tell tests than that the their them then there therefore these they this those though to
    today together tomorrow try two under unless until updated us use used user users uses using
    usually very want wanted wants was we went were what when whenever where whether which while
    who whole why will with without work works would yes yesterday yet you your"""
)
"""Words that begin a sentence without being a name."""

_CODE = late(r"`[^`]*`|\S*://\S+|\S*[/\\]\S*")
_TITLE_WORDS = r"[A-Z][\w'’]*[a-z]\w*(?: [A-Z][\w'’]*[a-z]\w*)*"
_ROLE = (
    r"(?!(?:[A-Z]\w* )*(?:Head|Director|President|Manager|Member|Founder|Chair|Lead|Owner|Secretary|Mayor)"
    r" of)"
)
"""Whoever has it is no title, and what it is of is a name of its own."""
_RUN = late(
    rf"(?<![\w\0]){_ROLE}(?:The {_TITLE_WORDS} of(?: the)?|{_TITLE_WORDS} of the) {_TITLE_WORDS}|"
    r"(?<![\w\0])(?:[A-Z]\w*\.(?:io|com|org|dev|ai|net|js)\b|[A-Z][\w'’]*[a-z]\w*|[A-Z]{2,}\d*)"
    r"(?:[ -](?:[A-Z][\w]*[a-z]\w*|[A-Z]{2,}\d*|\d+(?:\.\d+)*(?![\w%])))*"
)
_BEGINS = late(r"(?:^|[.!?:;–—|]\s*|[(\[\"“‘']|\s-\s+|\d[.)]\s+)$")
NO_NAMES = _words(
    """I I'm I'll I've I'd OK Ok Yes No The A An Last Next Tues Thurs AM PM UTC GMT AND OR NOT NULL TRUE
    FALSE TODO FIXME NOTE API APIs URL URLs JSON HTML CSS SQL HTTP HTTPS CLI UI UX ID IDs UUID CI CD
    Hey Hi Hello Wow Thanks Thank Oh Aww Yeah Congrats I’m I’ll I’ve I’d
    PR PRs MVP TLS SSH DNS CPU GPU RAM PDF CSV XML YAML ETA FAQ IMO FYI ASAP BTW WIP TBD MB GB KB TB"""
)
NO_NAMES |= {*calendar.month_name, *calendar.month_abbr, *calendar.day_name, *calendar.day_abbr}


def names(text: str) -> tuple[str, ...]:
    """The proper names of a sentence, each once, in order: capitalised words that do not merely open it.

    Code, paths and URLs hold none. A word that opens a sentence counts only as part of a longer name.
    """
    found: dict[str, None] = {}
    for words, opens in _runs(text):
        first = opens and (len(words) == 1 or _opens(words[0]))
        found.setdefault(_trimmed(words[1:] if first else words))
    found.pop("", None)
    return tuple(found)


def _runs(text: str) -> Iterator[tuple[list[str], bool]]:
    """Each run of capitalised words outside of code, paths and URLs, and whether it opens a sentence. A title
    ("Lord of the Rings") is one, without its article, and does not merely open a sentence."""
    plain = _CODE.sub(lambda m: "\0" * len(m[0]), text)
    for match in _RUN.finditer(plain):
        before = plain[max(0, match.start() - 8) : match.start()].rstrip(" ")[-3:]
        words, opens = match[0].split(" "), _BEGINS.search(before) is not None
        if "of" in words:
            words, opens = words[words[0] == "The" or (opens and _opens(words[0])) :], False
        yield words, opens


def _trimmed(words: list[str]) -> str:
    """A run as a name, without what only stands around one; '' if nothing is left."""
    while words and words[-1] in NO_NAMES:
        words = words[:-1]
    while words and words[0] in NO_NAMES:
        words = words[1:]
    name = re.sub(r"['’]s?$", "", " ".join(words))
    return name if len(name) > 1 and not name[0].isdigit() else ""


def _opens(word: str) -> bool:
    """Whether a capitalised word is likely to be so only because a sentence begins with it."""
    return word.casefold() in ORDINARY or word.endswith(("ed", "ing"))


_QUERYING = _words(
    """am are begin compare could define describe did does enough explain fetch find finally had has have
    hello hey hi how identify is list look may must name ok okay please recall remember remind return search
    shall should show similarly since so summarise summarize tell thank thanks through until was were what
    whatever when where whether which while who whom whose why will would write yes between over under both"""
)
"""Words that begin a question or an order without being a name."""
_URL = r"[a-z][a-z0-9+.-]*://[^\s<>\"'`]+"
_ADDRESS = r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"
_NUMBERED_HOST = r"\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?(?:/\d+)?"
_HOST = (
    r"(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+(?:com|org|net|io|dev|ai|app|co|uk|de|fr|eu|us|ua|edu|gov|info|local"
    r"|internal|sh|me|cloud)(?::\d+)?"
)
_PATH = r"(?:~|\.{1,2})?/[\w.@~+-]+(?:/[\w.@~+-]*)*|[\w.@~+-]+(?:/[\w.@~+-]+)+|[A-Za-z]:\\[\w.\\ -]*[\w.]"
_FILE = (
    r"[\w-]+\.(?:py|md|js|ts|tsx|jsx|json|toml|yaml|yml|txt|rs|go|c|h|cpp|java|rb|sh|sql|html|css|csv|pdf|log"
    r"|ini|cfg|env|lock)"
)
_HANDLE = r"@[A-Za-z][\w-]*(?:\.\w+)*"
_IDENTIFIER = (
    r"[A-Za-z_]\w*(?:(?:\.|::|->)[A-Za-z_]\w*)*\(\)|[A-Za-z]\w*(?:_\w+)+|_\w+|[a-z]+(?:[A-Z][a-z0-9]*)+"
    r"|(?:[A-Z][a-z0-9]+){2,}|[A-Z]{2,}-\d+|#\d{2,}|[A-Z]{4,}\d*"
)
_MARKED = tuple(
    re.compile(rf"(?<![\w@/.\\-])(?:{pattern})(?![\w@])", flags)
    for pattern, flags in (
        (_URL, re.IGNORECASE),
        (_ADDRESS, 0),
        (_NUMBERED_HOST, 0),
        (_FILE, 0),
        (_HOST, re.IGNORECASE),
        (_PATH, 0),
        (_HANDLE, 0),
        (_IDENTIFIER, 0),
    )
)
_QUOTED_CODE = late(r"`([^`\n]+)`")
_LINKED = late(r"\[\[([^\]|#^\n]+)(?:[#^|][^\]\n]*)?\]\]")
_PASTED = late(r"\S{201,}")
"""Longer than any name: a blob, on which the patterns would take their time."""
_EITHER = late(r"(?:and/or|w/o|n/a|his/her|he/she|either/or|yes/no|on/off|[\d/]+)")
_CYRILLIC = late(r"(?<=[^.!?\s] )([А-ЯЁІЇЄҐ][а-яёіїєґ'’-]+(?: [А-ЯЁІЇЄҐ][а-яёіїєґ'’-]+)*)")
"""Names in Cyrillic, but for the word that a sentence begins with."""
_OPENING = late(r"^[^\w@/\[`]*([A-Z][\w'’-]*)")


def entities(query: str) -> tuple[str, ...]:
    """Whom and what a query names, each once, in order of place; none of them merely begins the sentence.

    Besides proper names: `[[wikilinks]]`, `code`, URLs, mail addresses, hosts, paths, handles (`@alice`) and
    identifiers (`UA_TRUNCATION_THRESHOLD`, `readQuery`, `ABC-123`, `#42`).
    """
    found: list[tuple[int, str]] = []
    rest = _PASTED.sub(lambda match: " " * len(match[0]), query)
    for pattern in (_LINKED, _QUOTED_CODE, *_MARKED):
        for match in pattern.finditer(rest):
            name = (match[1] if pattern.groups else match[0]).strip().rstrip(".,;:!?")
            if len(name) > 1 and not _EITHER.fullmatch(name) and name not in NO_NAMES:
                found.append((match.start(), name))
        rest = pattern.sub(lambda match: "\0" * len(match[0]), rest)
    found += [(max(rest.find(name), 0), name) for name in map(_without_opening, names(rest)) if name]
    found += [(match.start(1), match[1]) for match in _CYRILLIC.finditer(rest)]
    found += _opening(rest, {name for _, name in found})
    return tuple(dict.fromkeys(name for _, name in sorted(found, key=lambda each: each[0])))


def _without_opening(name: str) -> str:
    """`Summarize Alice` is Alice."""
    first, _, rest = name.partition(" ")
    return rest if rest and first.casefold() in _QUERYING else name


def _opening(query: str, known: set[str]) -> list[tuple[int, str]]:
    """The name a query begins with: in a question the first word is often whom it is about."""
    match = _OPENING.match(query)
    if not match:
        return []
    word = re.sub(r"['’]s?$", "", match[1])
    ordinary = word.casefold() in ORDINARY | _QUERYING or word in NO_NAMES or word.endswith("ing")
    part = any(word in name.split() for name in known)
    return [] if ordinary or part or len(word) < 2 else [(match.start(1), word)]


_TELLING = late(r"[@/\\_#(`]|\w[.:]+\w|->|[a-z][A-Z]|[A-Z][a-z0-9]+[A-Z]|[A-Z]{4}|[A-Z]{2}-\d")
"""What any of the marked names has: most words have none of it, and are not held against the patterns."""


def drawn(text: str) -> dict[str, bool]:
    """The names that a statement holds: {name: whether it surely is one}.

    Wikilinks are left to who reads them. A word that opens a sentence may be a name or not ("Rain fell",
    "Rome fell"): it is given as unsure, so that who knows where else it stands can tell.
    """
    text = _PASTED.sub(" ", text)
    found: dict[str, bool] = {}
    for words, opens in _runs(text):
        if not opens or len(words) > 1:
            found[_trimmed(words[1:] if opens else words)] = True
        if opens and words[0].casefold() not in ORDINARY:
            found.setdefault(_trimmed(words), False)
    if not text.isascii():
        found |= dict.fromkeys(_CYRILLIC.findall(text), True)
    if _TELLING.search(text):
        marked = dict.fromkeys(_marked(text), True)
        found = {
            name: sure for name, sure in found.items() if not any(name in one for one in marked)
        } | marked
    found.pop("", None)
    return found


def _marked(text: str) -> Iterator[str]:
    if "`" in text:
        yield from (name.strip() for name in _QUOTED_CODE.findall(text))
    rest = " ".join(word for word in text.split() if _TELLING.search(word))
    for pattern in _MARKED:
        for match in pattern.finditer(rest):
            name = match[0].rstrip(".,;:!?")
            if len(name) > 1 and not _EITHER.fullmatch(name) and name not in NO_NAMES:
                yield name
        rest = pattern.sub(" ", rest)
