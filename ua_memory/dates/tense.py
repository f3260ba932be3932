"""Whether a sentence speaks of a day as past or as to come: told by the verb nearest to the day.

Small tables, no grammar: where neither tells, nobody guesses, and `stated` takes the nearest such day.
"""

from __future__ import annotations

import re
from typing import Literal

Tense = Literal["past", "ahead", ""]

_AHEAD = (
    r"(?:will|won['’]t|shall|(?<=\w)['’]ll)(?: not)?(?: (?:have been|have|be)(?: \w+)?)?"
    r"|(?:is|are|am) going to|(?:is|are) due"
)
_PAST = """agreed arrived became began bought broke brought built came chose cut did died drove fell felt
flew forgot found gave got grew had heard held hired kept knew laid lay left lost made met paid put quit
ran read said sat saw sent set shut slept sold spent spoke stood taught thought told took tried
understood was were went woke won wrote since"""
_OPEN = """is are am be being must (?-i:may) might can could should would plan plans due deadline start starts
begin begins end ends open opens close closes launch launches ship ships expire expires happen happens
goes leave leaves arrive arrives return returns"""
"""Verbs of what is, or is to be: beside them a day may be either."""
_NO_VERB = "hundred|need|speed|feed|seed|breed|indeed|shed|embed|exceed|proceed|succeed|united"
_IRREGULAR = "|".join(_PAST.split())
_CUE = re.compile(
    rf"\b(?P<ahead>{_AHEAD})\b"
    rf"|\b(?P<no>(?:is|are|be) (?:\w+ed|{_IRREGULAR})|(?:planned|scheduled) for)\b"
    rf"|\b(?P<past>{_IRREGULAR}|(?:has|have) been|(?!(?:{_NO_VERB})\b)[a-z]{{2,}}ed)\b"
    rf"|\b(?P<open>{'|'.join(_OPEN.split())})\b"
    r"|(?<!went )(?<!came )(?<!moved )(?<!flew )(?<!drove )(?<!back )\b(?P<verb>(?-i:to [a-z]+))\b"
    r"(?<!to the)(?<!to a)(?<!to an)(?<!to my)(?<!to our)(?<!to his)(?<!to her)(?<!to their)(?<!to it)",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"[.!?](?=\s)|[;\n]")
_CLAUSE = re.compile(r"\b(?:that|which|who|because|so|but)\b", re.IGNORECASE)
_ARRANGED = re.compile(
    r"\b(?:for|(?:moved|postponed|pushed|put|rescheduled|delayed|deferred|extended|shifted)\b.{0,80}\bto)"
    r"(?: the| \w+day,?)?\s*$",
    re.IGNORECASE,
)
"""Between a verb of the past and the day that something was booked or put off for: that may be either."""
_FARTHEST = 160
"""Characters of a sentence that are looked at on either side of a day."""


def tense(text: str, at: int, to: int) -> Tense:
    """How the day that stands at `text[at:to]` is spoken of: the last verb before it in its clause tells,
    else the first one behind it in its sentence."""
    before = _SENTENCE.split(text[max(0, at - _FARTHEST) : at])[-1]
    cues = list(_CUE.finditer(_CLAUSE.split(before)[-1]))
    if not cues:
        after = _CUE.search(_SENTENCE.split(text[to : to + _FARTHEST], maxsplit=1)[0])
        cues = [after] if after else []
    if not cues or (cues[-1]["past"] and _ARRANGED.search(before)):
        return ""
    return "past" if cues[-1]["past"] else "ahead" if cues[-1]["ahead"] else ""
