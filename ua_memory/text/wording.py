"""Small wordings used everywhere: counts, money, scopes, the label of untrusted text, and standing rules."""

from __future__ import annotations

import math
import re
from functools import cache

from ua_memory.text.patterns import late, table

TYPE_CHECKING = False  # typing's own constant would cost the import of typing
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any


# -- wording -----------------------------------------------------------------------------------------------
# Words that texts of every layer need alike: commits, errors, and what a model is told.


OFF = (
    "Memory is off: its user has switched it off (UA_MEMORY_ENABLED, or `enabled` in the settings)."
    " Nothing was read or written."
)
"""What every tool of an agent answers then."""


def counted(number: int, noun: str, plural: str = "") -> str:
    """`1 fact`, `3 facts`."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


RULES_BLOCK = "Rules"
"""The block of core memory that an accepted rule is added to, unless another is named."""
CORE_INTRO = "What every session begins with: one `## Section` a block, kept short."
"""The sentence that a new MEMORY.md begins with. As long as nobody has changed it, it is no memory: it is not
indexed, not given to an agent, not counted."""


# -- money -------------------------------------------------------------------------------------------------
# Dollars as people read them: cents, and below a cent as many digits as it takes to be seen.


def dollars(amount: float) -> str:
    """`$12.50`, `$1,400.00`, `$0.0004`; `$0.00` is nothing at all."""
    if not amount or abs(amount) >= 0.01:
        return f"${amount:,.2f}"
    places = 1 - math.floor(math.log10(abs(amount)))
    return f"${amount:.{places}f}".rstrip("0")


# -- places ------------------------------------------------------------------------------------------------
# Where and in what something is said or asked: `{session} {parent} {cwd} {basedir} {project}` in tags, and
# the tags that say it of what is kept.
#
# Alone, a placeholder is the tag that says so (`{project}` is `project:api`); inside other text it is the
# bare value (`team:{project}`). What is not known, such as the session of a person at a terminal, takes the
# tags that need it with it: a scope that nobody can be in would only hide things.


GROUP = "group"
"""The key of the tag that says in which group chat something was said."""
NAMES = ("session", "parent", "cwd", "basedir", "project")
OF_ONE_SESSION = ("session:", "parent:")
WHERE_SAID = frozenset((*NAMES, GROUP, "harness", "store_method", "scope"))
"""Keys of the tags that `said_in` gives."""
AUTO, TOOL = "store_method:auto", "store_method:tool"
"""Who had it kept: a flush, or an agent that called a tool."""
_PLACE = re.compile("{(" + "|".join(NAMES) + ")}")


def filled(tags: Iterable[str], known: Mapping[str, str]) -> list[str]:
    """The tags with their placeholders filled in, without those for which something is not known."""
    found = []
    for tag in tags:
        names = _PLACE.findall(tag)
        if all(known.get(name) for name in names):
            alone = f"{names[0]}:{known[names[0]]}" if names and _PLACE.fullmatch(tag) else ""
            found.append(alone or _PLACE.sub(lambda name: known[name[1]], tag))
    return found


def filled_groups(groups: Any, known: Mapping[str, str]) -> Any:
    """Groups of tags, as JSON has them, with the placeholders of all their tags filled in."""
    if isinstance(groups, dict):
        return {key: filled_groups(value, known) for key, value in groups.items()}
    if isinstance(groups, list):
        if groups and all(isinstance(each, str) for each in groups):
            return filled(groups, known)
        return [filled_groups(each, known) for each in groups]
    return groups


def group_of(tags: Iterable[str]) -> str:
    """The tag that says in which group chat something was said, '' where it was none."""
    return next((tag for tag in tags if tag.startswith(f"{GROUP}:")), "")


def said_in(
    harness: str, known: Mapping[str, str], method: str, scopes: Iterable[str] = ()
) -> tuple[str, ...]:
    """The tags of all that is kept there; what is not known is left out. `scopes` (`observationScopes`) are
    the tags by whose values beliefs are kept apart."""
    named = {"harness": harness, **{name: known.get(name, "") for name in (*NAMES, GROUP)}}
    where = [f"{name}:{value}" for name, value in named.items() if value]
    return (*where, method, *(f"scope:{tag.removeprefix('scope:')}" for tag in filled(scopes, known)))


# -- trust -------------------------------------------------------------------------------------------------
# Whose words may speak for the house: what a tool or the web said, and what an agent ingested, may not.
#
# Such facts are found, behind equal ones and with a label. They do not become beliefs, pages or core memory
# before a person has vouched for them: by `origin: person` below the line, or an import or ingest by
# command. Read by every hook: nothing is imported that costs.


BY_COMMAND = frozenset({"terminal", "cli", "watch", "hindsight"})
"""Clients under whose names a person's own command imports. No agent may call itself so."""
IMPORTED = "memory/imported/"
"""Where `import` puts copies of files; their headings name whoever wrote there."""
CAME = {"web": "from the web", "tool": "from a tool", "import": "imported by an agent"}


def untrusted(origin: str | None, client: str | None, path: str = "") -> bool:
    """Whether nobody of the house has said or vouched for it. What a person imports or ingests by command
    counts as theirs, and what an agent says in its own words as the agent's."""
    if origin not in CAME:
        return False
    by_agent = client not in (None, "", *BY_COMMAND) and not path.startswith(IMPORTED)
    return origin != "import" or by_agent


AGENTS = "an agent's words"


def label(origin: str, is_untrusted: bool, own: bool = False) -> str:
    """What is said behind a recalled line that nobody of the house has said, or (`own`) an agent alone: let
    its reader weigh it."""
    if is_untrusted:
        return f"; untrusted: {CAME.get(origin, origin)}"
    return f"; {AGENTS}" if own else ""


# -- rules -------------------------------------------------------------------------------------------------
# How a standing rule is worded: whether a person's sentence tells an agent what always, never or only to do.
#
# In English, German, French, Spanish and Japanese: negated imperatives, words such as always, never and only,
# prohibitions, limits, approvals, and what a group uses. What tells of something that happened ("it never
# worked"), asks, or holds for the moment ("don't commit yet") is no rule.


LANGUAGES = ("english", "german", "french", "spanish", "japanese")
RULE_LENGTH = 400
"""Characters: what is longer explains something."""


@cache
def _says() -> Mapping[str, re.Pattern[str]]:
    """How `data/standing_rules.txt` says each thing, in any of its ways."""
    ways: dict[str, list[str]] = {}
    for heading, pattern in table("standing_rules.txt"):
        ways.setdefault(heading, []).append(pattern)
    return {heading: late("|".join(some), re.IGNORECASE) for heading, some in ways.items()}


def standing_rule(text: str) -> bool:
    """Whether a person's sentence holds beyond the moment in which it was said."""
    if not 6 <= len(text) <= RULE_LENGTH or _says()["moment"].search(text) or _says()["unsaid"].search(text):
        return False
    return any(_says()[language].search(text) for language in LANGUAGES)


def stated_for_good(text: str) -> bool:
    """Whether a rule or preference has a word by which one statement of it is enough: always, never,
    remember, and their like in the five languages."""
    unsaid = len(text) > RULE_LENGTH or _says()["moment"].search(text) or _says()["unsaid"].search(text)
    return not unsaid and _says()["for good"].search(text) is not None


CHANGED = late(
    r"\b(?:now|(?<!\ba )(?<!\bfor )new|instead|moved?"
    r"|push(?:ed|es)|postponed|delayed|slips?|slipped|chang(?:ed?|es)"
    r"|no\s+longer|any\s?more|goes\s+to|went\s+to|go(?:ing)?\s+to|raised|lowered|increased|dropped|bumped|switch(?:ed)?"
    r"|replac(?:ed|es)|killed|make\s+(?:it|the|that)|too\s+(?:late|early|much|little|high|low)|after\s+all"
    r"|already|from\s+\w+\s+on|gave\s+us|extended|(?:up|down)graded|migrated|lowering|raising|scratch\s+that|(?:can['’]?t|not)\s+before"
    r"|skip(?:ped|ping)?|put(?:s|ting)?\s+(?:\w+\s+){1,3}up\s+to"
    r"|(?:since|seit|depuis|desde)\s+(?:\d|jan|f[eé][bv]|m[aä]r|a[pvb]r|ma[iy]|ju[il]|jun|aug|ao[uû]|ago|sep|o[ck]t"
    r"|nov|d[eéi][cz]|ene)\w*"
    r"|jetzt|nun|neue[nrms]?|statt(?:dessen)?|versch(?:ieb|ob)\w*|geändert|ab\s+sofort|nicht\s+mehr|künftig|rauf|runter"
    r"|inzwischen|erst\s+am|erhöh\w*|gesenkt|verlänger\w*|maintenant|désormais|nouve(?:au|lle)|repouss\w+|reporté\w*|pass(?:e|ent|ons)\s+à|pas\s+avant|gliss\w+|décal\w+|recul\w+|chang\w+|finalement"
    r"|plutôt|au\s+lieu|prolong\w*|augment\w*|baiss\w*|ahora|nuev[oa]s?|aplaz\w+|pospon\w+|adelant\w+|cambi\w+|quedan?\s+en|(?:pasa(?:n|mos)?|sub[eo]n?|baj[ao]n?)\s+a|montée?s?\s+à"
    r"|ya\s+no|no\s+antes|prorrog\w*|sub(?:ido|imos|ió)|baj(?:ado|amos|ó)|recort\w+|en\s+vez|agora|adesso|spostat\w+|verzet|verschoven|uitgesteld|ipv|in\s+plaats|nu)\b"
    r"|変更|変え|延期|延び|前倒し|上げ|下げ|になった|になりま|今は|新し|やっぱり|じゃなく",
    re.IGNORECASE,
)
"""Words that say that a value is not what it was."""


# -- moves -------------------------------------------------------------------------------------------------
# Who lives or works where and uses what, as a sentence says it, and whether it says that this is new. A home,
# a job and what takes the place of something are one at a time, so that the newer ends the older.


_HINTS: Mapping[str, Sequence[str]] = {
    "english": ("moved", "relocated", "moving", " now", "joined", "joining", "hired", "started", "switched",
                "migrated", "changed", "left ", "quit ", "replaced", "swapped", "dropped", "ditched"),
    "german": ("gezogen", "zog", "zieh", "jetzt", "nun ", "inzwischen", "mittlerweile", "wechsel",
               "umgestiegen", "ersetzt", "verlassen"),
    "french": ("ménagé", "install", "parti", "maintenant", "désormais", "rejoint", "passé", "migré", "quitté",
               "abandonné", "remplacé", "basculé", "changé"),
    "spanish": ("mud", "traslad", "ahora", "unió", "unido", "incorpor", "pasó", "pasé", "entró", "cambi",
                "dejó", "dejamos", "migr", "reemplaz", "sustitu"),
    "japanese": ("引っ越", "引越", "移", "転", "入社", "変更", "乗り換", "切り替", "変え", "やめ", "辞め"),
}  # fmt: skip
"""What stands in a text, its case folded, that may say so: most texts have none of it."""
_CAPITAL = r"(?!(?:Me|Se|Nos)\b)[A-ZÀ-ÖØ-Þ][\w-]*"
_NOT_BEHIND = "".join(rf"(?<!\b{word}\s)" for word in ("of", "and", "or", "von", "und", "de", "et", "y"))
"""Of whom nothing is told: "the brother of Alice", "Bob and Alice"."""
_SPANISH_I = late(r"(?:viv|trabaj|us|utiliz|resid)o\b|é\b|estoy", re.IGNORECASE)
_SPANISH_WE = late(r"[ai]mos\b", re.IGNORECASE)
_BEFORE = 80
"""Characters before a verb in which there is who it is about."""


def move_languages(text: str) -> list[str]:
    """The languages in which a text, its case folded, may say that something moved."""
    return [language for language, hints in _HINTS.items() if any(hint in text for hint in hints)]


@cache
def _moves(language: str) -> tuple[re.Pattern[str], Mapping[str, Sequence[tuple[str, re.Pattern[str]]]]]:
    """Who stands before a verb, and how a language says something: {new or held: (what, pattern)}."""
    rows = [(heading.split(), how) for heading, how in table("moves.txt") if heading.startswith(language)]
    parts = {words[1]: how for words, how in rows if len(words) == 2}
    who = late(
        rf"(?:^|[^\w'’.-])(?<!['’]s\s){_NOT_BEHIND}"
        rf"(?P<who>{parts.get('who', '-')}\s+[^\W\d_][\w-]*(?:\s+{_CAPITAL}){{0,2}}"
        rf"|{_CAPITAL}(?:\s+{_CAPITAL}){{0,2}}|^(?!(?:[Mm]e|[Ss]e|[Nn]os)\b)[^\W\d_][\w-]*|[Jj](?=['’]))[\s'’]+"
        rf"(?:(?:{parts.get('before', '-')})\s+){{0,3}}\Z"
    )
    ways: dict[str, list[tuple[str, re.Pattern[str]]]] = {"new": [], "held": []}
    for words, how in rows:
        if len(words) == 3:
            ways[words[2]].append((words[1], late(how)))
    return who, ways


def moves(text: str, language: str, sort: str) -> Iterator[tuple[str, str, str, str]]:
    """(home, work or any; who; what it is; what it was, '' where that is not said) of what a sentence says is
    `new`, or `held`."""
    before, ways = _moves(language)
    for what, how in ways[sort]:
        if found := how.search(text):
            said, start = found.groupdict(), found.start()
            who = said.get("who") or _who(before, text[max(0, start - _BEFORE) : start], found[0])
            if who:
                yield what, who, said["new"], said.get("old") or ""


def _who(before: re.Pattern[str], text: str, verb: str) -> str:
    """Who stands before a verb, '' where nobody does; in Spanish the verb may say it."""
    if named := before.search(text):
        return "je" if named["who"] in ("J", "j") else named["who"]
    if text.strip().casefold() not in ("", "me", "nos"):
        return ""
    return "nosotros" if _SPANISH_WE.search(verb) else "yo" if _SPANISH_I.search(verb) else ""
