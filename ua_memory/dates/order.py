"""Whether a query asks for the newest or the oldest of what it finds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

Order = Literal["latest", "earliest"]

_UNTIMED = (
    "name|names|resort|straw|word|words|will|rites|page|line|row|column|element|item|digit|digits|char|character"
    "|letter|byte|bit|index|but|chance|place|person|class|aid|floor|hand|glance|sight|step|argument|parameter|of"
    "|second|minute|hour|day|week|weekend|month|quarter|half|year|decade|night|mile|call|supper|lady|samurai|fm"
    "|january|february|march|april|may|june|july|august|september|october|november|december"
    "|monday|tuesday|wednesday|thursday|friday|saturday|sunday|spring|summer|autumn|fall|winter|\\d+"
)
_LATEST = re.compile(
    r"\b(?:latest|newest|most\s+recent(?:ly)?|how\s+long\s+ago|how\s+recently|how\s+long\s+(?:has\s+it\s+been|is\s+it)"
    r"|how\s+long\s+since|last\s+time|lately|most\s+current|up[- ]to[- ]date"
    r"|(?:did|have|has|had|was|were|do|does)\s+(?:\w+\s+){1,3}last\b(?!\s+(?:" + _UNTIMED + r"))"
    r"|(?:i|we|you|they|he|she|it)\s+last\s+(?!(?:" + _UNTIMED + r")\b)\w+"
    r"|(?:the|my|our|your|his|her|their|\w+['’]s)\s+last\s+(?!(?:" + _UNTIMED + r")\b)[a-z]\w*)",
    re.IGNORECASE,
)
_EARLIEST = re.compile(
    r"\b(?:earliest|oldest|first\s+time|for\s+the\s+first\s+time|very\s+first|first\s+ever|originally"
    r"|(?:did|have|has|had|was|were|do|does)\s+(?:\w+\s+){1,3}first\b(?!\s*-|\s+(?:" + _UNTIMED + r"))"
    r"|(?:i|we|you|they|he|she|it)\s+first\s+(?!(?:" + _UNTIMED + r")\b)\w+"
    r"|(?:the|my|our|your|his|her|their|\w+['’]s)\s+first\s+(?!(?:" + _UNTIMED + r")\b)[a-z]\w*)",
    re.IGNORECASE,
)


def order_of(text: str, read: Sequence[tuple[int, int]] = ()) -> Order | None:
    """What a query's words ask for, those left out that were read as a date ("the last ten days")."""
    for at, to in read:
        text = text[:at] + "," * (to - at) + text[to:]
    latest, earliest = _LATEST.search(text), _EARLIEST.search(text)
    if latest and (not earliest or latest.start() <= earliest.start()):
        return "latest"
    return "earliest" if earliest else None
