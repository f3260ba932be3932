"""Standing rules: whether a person's sentence tells an agent what always, never or only to do.

Told by its words, in English, German, French, Spanish and Japanese: negated imperatives, words such as
always, never and only, prohibitions, limits, approvals, and what a group uses. What tells of something that
happened ("it never worked"), asks, or holds for the moment ("don't commit yet") is no rule.
"""

from __future__ import annotations

import re
from functools import cache

from ua_memory.text.patterns import late, table

LANGUAGES = ("english", "german", "french", "spanish", "japanese")
RULE_LENGTH = 400
"""Characters: what is longer explains something."""


@cache
def _says(what: str) -> re.Pattern[str]:
    """How `data/standing_rules.txt` says a thing, in any of its ways."""
    ways = (pattern for heading, pattern in table("standing_rules.txt") if heading == what)
    return re.compile("|".join(ways), re.IGNORECASE)


def standing_rule(text: str) -> bool:
    """Whether a person's sentence holds beyond the moment in which it was said."""
    if not 6 <= len(text) <= RULE_LENGTH or _says("moment").search(text) or _says("unsaid").search(text):
        return False
    return any(_says(language).search(text) for language in LANGUAGES)


def stated_for_good(text: str) -> bool:
    """Whether a rule or preference has a word by which one statement of it is enough: always, never,
    remember, and their like in the five languages."""
    unsaid = len(text) > RULE_LENGTH or _says("moment").search(text) or _says("unsaid").search(text)
    return not unsaid and _says("for good").search(text) is not None


CHANGED = late(
    r"\b(?:now|new|instead|moved?|push(?:ed|es)|postponed|delayed|slips?|slipped|chang(?:ed?|es)|no\s+longer"
    r"|any\s?more|goes\s+to|went\s+to|go(?:ing)?\s+to|raised|lowered|increased|dropped|bumped|switch(?:ed)?"
    r"|replac(?:ed|es)|killed|make\s+(?:it|the|that)|too\s+(?:late|early|much|little|high|low)|after\s+all"
    r"|already|from\s+\w+\s+on|gave\s+us"
    r"|jetzt|nun|neue[nrms]?|statt(?:dessen)?|versch(?:ieb|ob)\w*|geändert|ab\s+sofort|nicht\s+mehr|künftig"
    r"|inzwischen|maintenant|désormais|nouve(?:au|lle)|repouss\w+|reporté\w*|passe\s+à|chang\w+|finalement"
    r"|plutôt|au\s+lieu|ahora|nuev[oa]s?|aplaz\w+|pospon\w+|adelant\w+|cambi\w+|quedan?\s+en|pasa\s+a"
    r"|ya\s+no|recort\w+|en\s+vez|agora|adesso|spostat\w+|verzet|nu)\b"
    r"|変更|変え|延期|前倒し|になった|今は|新し|やっぱり|じゃなく",
    re.IGNORECASE,
)
"""Words that say that a value is not what it was."""
