"""Cuts sentences, formats counts and money, fills in tags, labels untrusted text, and recognises replies,
standing rules and moves."""

from __future__ import annotations

import math
import re
from collections import namedtuple
from functools import cache

from ua_memory.text.patterns import late, table

TYPE_CHECKING = False  # typing's own constant would cost the import of typing
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any, Literal

    MoveSort = Literal["new", "held", "ended"]


# -- wording -----------------------------------------------------------------------------------------------
# Phrases for commits, errors and prompts.


OFF = (
    "Memory is off: its user has switched it off (UA_MEMORY_ENABLED, or `enabled` in the settings)."
    " Nothing was read or written."
)
"""The answer of every tool of an agent while memory is off."""
MODEL_HINT = "(an API key, your own server or a client you are logged in to: docs/model.md)"
"""How to get a model: the end of each message that one is missing."""


def counted(number: int, noun: str, plural: str = "") -> str:
    """`1 fact`, `3 facts`."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def shorten(text: str, most: int) -> str:
    """The text, ended by an ellipsis if it has more than `most` characters."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


RULES_BLOCK = "Rules"
"""The default block of core memory for accepted rules."""
CORE_INTRO = "What every session begins with: one `## Section` a block, kept short."
"""The first sentence of a new MEMORY.md. Unless it is edited, it is not indexed, not shown to agents and not
counted."""


# -- sentences ---------------------------------------------------------------------------------------------
# Where the sentences of a text end.


CODE = late(r"(?<!`)(`++).{1,600}?(?<!`)\1(?!`)")
"""Code in a line of text."""
_STOP = late(
    r"([.!?…。！？](?:(?<=[.!?…])[\"'”“’»«)\]*_`]*(?=\s)|(?<=[。！？])[\"'”’」』）)\]*_`]*))"
    r"\s*(?=\S)(?!(?<=[?？]\s)– |(?<=[\"”“»«]\s)[a-z])"
)
"""The stop of a sentence with closing quotes and brackets, and the blanks after it. A dash after a question
introduces its answer."""
_WORD, _SEMICOLON = late(r"\w"), late(r"(?<=;)\s+|(?<=；)\s*")
_LONGEST_ASIDE = 400
"""A stop within so many characters of an open bracket is inside it; later the bracket is ignored."""
_NEAR = 160
"""Characters of a sentence that are looked at on either side of a place in it."""

_LAST_WORD = late(r"((?:\d{1,3}|[^\W_])(?![^\W_])|rts)|[^\W_]+", re.IGNORECASE)
"""A word backwards, in a group if it is a small number, an initial or a German street (`Hauptstr.`)."""
_GOES_ON = late(lambda: rf"(?=[^\0]*\0)(?:{'|'.join(pattern for _, pattern in table('full_stops.txt'))})")


def sentences(text: str) -> list[str]:
    """The sentences of each line of a text, if they have any words."""
    found = []
    for line in text.splitlines():
        found += [line[start:end].strip() for start, end in spans(line)]
    return [one for one in found if _WORD.search(one)]


def main_clauses(text: str) -> list[str]:
    """The same, also cut at semicolons."""
    return [part for one in sentences(text) for part in _SEMICOLON.split(one) if _WORD.search(part)]


def around(text: str, at: int, to: int) -> tuple[str, str]:
    """What is before and after `text[at:to]` in its sentence, at most `_NEAR` characters of each."""
    before = text[max(0, at - _NEAR) : at].rpartition("\n")[2]
    line = before + text[at : to + _NEAR].partition("\n")[0]
    at, to = len(before), len(before) + to - at
    start, end = next((span for span in spans(line) if span[1] > at), (at, to))
    return line[start:at], line[to:end]


def spans(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of each sentence of a paragraph, whose line breaks are blanks. A stop in code, in
    brackets or after an abbreviation ends none."""
    hidden = CODE.sub(lambda m: "x" * len(m[0]), text) if "`" in text else text
    start, aside = 0, "(" in hidden
    for stop in _STOP.finditer(hidden):
        at, to = stop.span()
        near = max(start, at - _LONGEST_ASIDE)
        if aside and near == start and hidden.count("(", near, to) > hidden.count(")", near, to):
            continue
        if hidden[at] == "." and goes_on(hidden[near : at + 1], hidden[to : to + 40]):
            continue
        yield start, stop.end(1)
        start = to
    if start < len(text):
        yield start, len(text)


def goes_on(before: str, after: str) -> bool:
    """Whether the full stop that ends `before` is that of an abbreviation, an ordinal or a date, and ends no
    sentence."""
    last = _LAST_WORD.match(before[-2:-18:-1])  # a search forwards takes longer
    if not last or not (last[1] or last[0].casefold() in _last_words()):
        return False
    return _GOES_ON.search(f"{before[-16:]}\0{after}") is not None


@cache
def _last_words() -> frozenset[str]:
    """The last words of all abbreviations, backwards."""
    stops = (pattern.partition(r"\.\x00")[0] for _, pattern in table("full_stops.txt"))
    return frozenset(word[::-1] for stop in stops for word in re.findall(r"\w+(?=[|)])", stop))


# -- money -------------------------------------------------------------------------------------------------
# Dollars with cents; below a cent, with as many digits as it takes to be more than 0.


def dollars(amount: float) -> str:
    """`$12.50`, `$1,400.00`, `$0.0004`; `$0.00` only for 0."""
    if not amount or abs(amount) >= 0.01:
        return f"${amount:,.2f}"
    places = 1 - math.floor(math.log10(abs(amount)))
    return f"${amount:.{places}f}".rstrip("0")


# -- context tags ------------------------------------------------------------------------------------------
# The context of a memory or query as tags, and the placeholders `{session} {parent} {cwd} {basedir}
# {project}` in tags.
#
# A placeholder alone becomes a whole tag (`{project}` becomes `project:api`); inside other text it becomes
# the value (`team:{project}`). A tag is dropped if a value is not known, such as the session of a person at a
# terminal: a scope that nobody is in would only hide memories.


GROUP = "group"
"""The key of the tag for the group chat."""
PLACE_KEYS = ("session", "parent", "cwd", "basedir", "project")
OF_ONE_SESSION = ("session:", "parent:")
WHERE_SAID = frozenset((*PLACE_KEYS, GROUP, "harness", "store_method", "scope"))
"""Keys of the tags that `context_tags` gives."""
AUTO, TOOL = "store_method:auto", "store_method:tool"
"""Tags for how a memory was stored: by a flush, or by an agent that called a tool."""
_PLACEHOLDER = re.compile("{(" + "|".join(PLACE_KEYS) + ")}")


def fill_tags(tags: Iterable[str], known: Mapping[str, str]) -> list[str]:
    """The tags with their placeholders filled in, without those that have an unknown value."""
    found = []
    for tag in tags:
        names = _PLACEHOLDER.findall(tag)
        if all(known.get(name) for name in names):
            alone = f"{names[0]}:{known[names[0]]}" if names and _PLACEHOLDER.fullmatch(tag) else ""
            found.append(alone or _PLACEHOLDER.sub(lambda name: known[name[1]], tag))
    return found


def fill_groups(groups: Any, known: Mapping[str, str]) -> Any:
    """`fill_tags` for nested groups of tags as in JSON."""
    if isinstance(groups, dict):
        return {key: fill_groups(value, known) for key, value in groups.items()}
    if isinstance(groups, list):
        if groups and all(isinstance(each, str) for each in groups):
            return fill_tags(groups, known)
        return [fill_groups(each, known) for each in groups]
    return groups


def group_of(tags: Iterable[str]) -> str:
    """The tag of the group chat, '' if there is none."""
    return next((tag for tag in tags if tag.startswith(f"{GROUP}:")), "")


def context_tags(
    harness: str, known: Mapping[str, str], method: str, scopes: Iterable[str] = ()
) -> tuple[str, ...]:
    """The tags of a memory stored in a context, without unknown values. `scopes` (`observationScopes`) are
    the tags by which observations are separated."""
    named = {"harness": harness, **{name: known.get(name, "") for name in (*PLACE_KEYS, GROUP)}}
    where = [f"{name}:{value}" for name, value in named.items() if value]
    return (*where, method, *(f"scope:{tag.removeprefix('scope:')}" for tag in fill_tags(scopes, known)))


# -- trust -------------------------------------------------------------------------------------------------
# Which facts are untrusted: those from a tool or the web, and those that an agent ingested.
#
# Searches find them, ranked after equal ones and with a label. They do not become observations, pages or core
# memory until a person approves them: by `origin: person` below the line, or by an import or ingest by
# command. Every hook loads this module, so it imports nothing slow.


BY_COMMAND = frozenset({"terminal", "cli", "watch", "hindsight"})
"""Client names of a person's own commands. No agent may use them."""
IMPORTED = "memory/imported/"
"""Folder for copies of imported files. Their headings name the authors."""
ORIGIN_LABELS = {"web": "from the web", "tool": "from a tool", "import": "imported by an agent"}


def untrusted(origin: str | None, client: str | None, path: str = "") -> bool:
    """Whether a fact is from the web, a tool or an agent's import, and no person has approved it. A person's
    import by command is the person's, and what an agent says in its own words is the agent's."""
    if origin not in ORIGIN_LABELS:
        return False
    by_agent = client not in (None, "", *BY_COMMAND) and not path.startswith(IMPORTED)
    return origin != "import" or by_agent


AGENTS = "an agent's words"


def label(origin: str, is_untrusted: bool, own: bool = False) -> str:
    """The label after a recalled line that is untrusted, or (`own`) only an agent's; '' for others."""
    if is_untrusted:
        return f"; untrusted: {ORIGIN_LABELS.get(origin, origin)}"
    return f"; {AGENTS}" if own else ""


# -- rules -------------------------------------------------------------------------------------------------
# Whether a person's sentence is a standing rule: what an agent shall always, never or only do.
#
# In the seven languages and Japanese: negated imperatives, words such as always, never and only,
# prohibitions, limits, approvals, and what a group uses. Reports ("it never worked"), questions and
# instructions for the moment ("don't commit yet") are no rules.


LANGUAGES = ("english", "german", "french", "spanish", "portuguese", "italian", "dutch", "japanese")
RULE_LENGTH = 400
"""Characters. Longer sentences explain something."""


@cache
def _rule_patterns() -> Mapping[str, re.Pattern[str]]:
    """The patterns of `data/standing_rules.txt`, one for each heading."""
    ways: dict[str, list[str]] = {}
    for heading, pattern in table("standing_rules.txt"):
        ways.setdefault(heading, []).append(pattern)
    return {heading: late("|".join(some), re.IGNORECASE) for heading, some in ways.items()}


def _without_stories(text: str) -> str:
    """A sentence without its clauses that tell a story or a taste; '' if it can be no rule."""
    ways = _rule_patterns()
    if not 6 <= len(text) <= RULE_LENGTH or ways["moment"].search(text) or ways["unsaid"].search(text):
        return ""
    return ways["story"].sub("", text)


def standing_rule(text: str) -> bool:
    """Whether a person's sentence is a rule that applies beyond the moment."""
    said = _without_stories(text)
    return any(_rule_patterns()[language].search(said) for language in LANGUAGES)


def stated_for_good(text: str) -> bool:
    """Whether a rule or preference has a word by which one statement of it is enough: always, never,
    remember, and their like in these languages."""
    return _rule_patterns()["for good"].search(_without_stories(text)) is not None


# -- replies and changes -----------------------------------------------------------------------------------


ASSENTS = (
    r"yes+|yep|yup|yeah|yea|ye|ya|y|ok(?:ay)?|k|sure|fine|good|great|right|true|agreed|exactly|precisely|perfect"
    r"|excellent|nice|cool|ja|genau|gut|passt|einverstanden|oui|d['’]accord|bien|sí|vale|claro|de acuerdo|sim"
    r"|isso|está bem|perfeito|combinado|exato|sì|va bene|bene|d['’]accordo|perfetto|esatto|goed|prima|akkoord"
    r"|klopt|precies|はい|いいね|お願い"
)
DENIALS = r"no{1,4}|nope|nah|nein|non|não|neen?|いいえ"
"""What a reply begins with that agrees to what was said before, or denies it."""
ANSWER_DASH = late("(?<=[?？]) – ")
"""Between a question and its answer, in a fact that has both: `Which port? – 6543`."""


def _change_words(sort: str) -> str:
    """The pattern of the words of a sort in `data/changes.txt`: `changed`, `moved` or `ended`."""
    rows = {heading: how for heading, how in table("changes.txt") if heading.startswith(sort)}
    unspaced = [rows.pop(f"{sort} {language}", "(?!)") for language in ("japanese", "chinese")]
    return rf"\b(?:{'|'.join(rows.values())})\b|{'|'.join(unspaced)}"


CHANGED = late(lambda: _change_words("changed"), re.IGNORECASE)
CHANGED_FOLDED = late(lambda: _change_words("changed"))
"""Words which say that a value has changed; the second is four times as fast, for case-folded text."""
MOVED = late(lambda: _change_words("moved"), re.IGNORECASE)
"""Words which say that a day was put off or brought forward."""
ENDED = late(lambda: _change_words("ended"))
"""Words which say that what a case-folded sentence names has ended or given way."""


# -- moves -------------------------------------------------------------------------------------------------
# Who lives or works where and uses what in a sentence, and whether it is new. A home, a job and a replacement
# are one at a time, so the newer ends the older.


_CAPITAL = r"(?!(?:Me|Se|Nos|Mi|Ci|Si|Ho|Abbiamo)\b)[A-ZÀ-ÖØ-Þ][\w-]*"
_NO_WORD_BEFORE = "".join(rf"(?<!\b{word}\s)" for word in ("of", "and", "or", "von", "und", "de", "et", "y"))
"""No subject after these words: "the brother of Alice", "Bob and Alice"."""
_IMPLIES_I = late(
    r"(?:viv|trabaj|trabalh|lavor|us|utiliz|resid|mor|abit)o\b|(?:é|ei|saí)\b|estoy", re.IGNORECASE
)
_IMPLIES_WE = late(r"(?:[aei]mos|iamo)\b", re.IGNORECASE)
_REFLEXIVES = {
    "": "",
    "me": "yo",
    "nos": "nosotros",
    "mi sono": "yo",
    "ci siamo": "nosotros",
    "ho": "yo",
    "abbiamo": "nosotros",
}
"""What may stand before a verb without a subject, and who it implies; '': the verb says."""
_BEFORE = 80
"""Characters before a verb that are searched for its subject."""


@cache
def _move_hints() -> Mapping[str, Sequence[str]]:
    """{language: case-folded parts of words, one of which each sentence about a move has}; most texts have
    none."""
    hints = (row for row in table("moves.txt") if row[0].endswith(" hint"))
    return {heading.removesuffix(" hint"): parts.split("|") for heading, parts in hints}


def move_languages(text: str) -> list[str]:
    """The languages in which a case-folded text may speak of a move."""
    return [language for language in _move_hints() if may_move(text, language)]


def may_move(text: str, language: str) -> bool:
    """Whether a case-folded text may speak of a move in a language."""
    return any(map(text.__contains__, _move_hints()[language]))


@cache
def _move_patterns(
    language: str,
) -> tuple[re.Pattern[str], Mapping[str, Sequence[tuple[str, re.Pattern[str]]]]]:
    """(pattern of the subject before a verb, {"new", "held" or "ended": [(kind, pattern)]}) of a language."""
    rows = [(heading.split(), how) for heading, how in table("moves.txt") if heading.startswith(language)]
    parts = {words[1]: how for words, how in rows if len(words) == 2}
    who = late(
        rf"(?:^|[^\w'’.-])(?<!['’]s\s){_NO_WORD_BEFORE}"
        rf"(?P<who>{parts.get('who', '-')}\s+[^\W\d_][\w-]*(?:\s+{_CAPITAL}){{0,2}}"
        rf"|{_CAPITAL}(?:\s+{_CAPITAL}){{0,2}}|^(?!(?:[Mm]e|[Ss]e|[Nn]os|[Mm]i|[Cc]i|[Ss]i|[Hh]o|[Aa]bbiamo)\b)[^\W\d_][\w-]*|[Jj](?=['’]))[\s'’]+"
        rf"(?:(?:{parts.get('before', '-')})\s+){{0,3}}\Z"
    )
    ways: dict[str, list[tuple[str, re.Pattern[str]]]] = {"new": [], "held": [], "ended": []}
    for words, how in rows:
        if len(words) == 3:
            ways[words[2]].append((words[1], late(how)))
    return who, ways


Move = namedtuple("Move", ("kind", "who", "new", "old"))
"""A statement of where somebody is, or what is used: its kind (home, work, role, place or any; of an end: end
left or gone), who, the value, and the old value or ''."""


def moves(text: str, language: str, sort: MoveSort) -> Iterator[Move]:
    """The statements of a sentence. `sort` is "new" for changes, "held" for what is the case, "ended" for
    what somebody ended or left."""
    before, ways = _move_patterns(language)
    for what, how in ways[sort]:
        if found := how.search(text):
            said, start = found.groupdict(), found.start()
            who = said.get("who") or _find_subject(before, text[max(0, start - _BEFORE) : start], found[0])
            if who or what == "gone":  # of itself
                yield Move(what, who, said["new"], said.get("old") or "")


def _find_subject(before: re.Pattern[str], text: str, verb: str) -> str:
    """The subject before a verb, '' if there is none; in Spanish, Portuguese and Italian the verb may imply
    it: `yo` or `nosotros`."""
    if named := before.search(text):
        return "je" if named["who"] in ("J", "j") else named["who"]
    implied = _REFLEXIVES.get(text.strip().casefold())
    if implied is None or implied:
        return implied or ""
    return "nosotros" if _IMPLIES_WE.search(verb) else "yo" if _IMPLIES_I.search(verb) else ""
