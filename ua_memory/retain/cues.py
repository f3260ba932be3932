"""What makes a sentence worth keeping, as one table: cue, weights, and the words it is told by.

A cue counts once however often it occurs, and weighs differently in a person's words and in an assistant's.
The words are English: in another language little is found.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cue:
    """`person` and `assistant` are what it adds to the score of a sentence of theirs."""

    name: str
    pattern: re.Pattern[str]
    person: float
    assistant: float


def _cue(name: str, person: float, assistant: float, *ways: str) -> Cue:
    return Cue(name, re.compile("|".join(ways), re.IGNORECASE), person, assistant)


_WE = r"\b(?:i|we)(?:'d| would|'ll| will)?(?: \w+ly)?(?: only| just| also| always| never| rather)?"
"""We would only …: a person who speaks of what they want."""
_ERRAND = r"(?:do|know|see|test|ask)\b"
"""What one wants to do next is no preference."""
_OPENING = r"(?:(?:ok|okay|great|good|perfect|excellent|alright|right|yes|done|expected)[,.!—-]+ *)?"
_ASKING = (
    r"(?:(?:ok|okay|alright|now|then|and|also|please|yes|so|or|btw|could you|can you|can we|how about you|"
    r"want you to|i (?:actually )?want you to)[, ]+)*"
)
_IT = r"(?:this|that|these|those)"
_DOES = r"(?:was|were|are|will|would|can|could|should|may|might|did|won't|can't|doesn't|isn't|wasn't)"
_MY = (
    r"(?:name|wife|husband|partner|son|daughter|kids?|mother|father|parents?|sister|brother|friend|boss|colleagues?|"
    r"team|company|birthday|address|phone|email|doctor|dog|cat|car|house|flat|job|manager|landlord|server|laptop|account)"
)
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|march|april|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|"
    r"dec(?:ember)?)"
)
_WEEKDAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"

CUES = (
    _cue(
        "preference",
        2.5,
        0.5,
        rf"{_WE} (?:want(?! to {_ERRAND})|prefer|like|love(?! (?:that|how|it|you))|hate|dislike)\b",
        r"\b(?:wants|prefers|insists|hates|loves|dislikes)\b",
        rf"{_WE} (?:expect|assume|think that|insist|care about)\b",
        r"\b(?:i'm|i am) (?:\w+ )?(?:interested in|a fan of|not happy)|\bdon't (?:like|want)\b",
        r"\bprefer(?:s|red)?\b|\bfavou?rite\b|\bplease (?:always|never|don't|do not|stop|keep)\b",
    ),
    _cue(
        "rule",
        2.0,
        0.75,
        r"\b(?:must(?:n't)?(?! have)|from now on|by default|at all times|as a rule)\b",
        r"\b(?:has|have|needs?) to be\b|\bshould(?:n't)?(?: \w+)? be\b|\bmake sure\b|\bonly ever\b",
        r"\b(?:no longer|not allowed|forbidden)\b|^remember (?:that|to)\b",
        r"^(?:please )?(?:always|never|don't ever|do not ever)\b",
        r"^(?:please )?use \S+(?: \w+)?,? (?:not|never)\b",
    ),
    _cue(
        "decision",
        2.0,
        1.25,
        r"\b(?:decided|decision|agreed|settled on|chose|chosen|go(?:ing)? with|opted)\b",
        r"\b(?:instead of|rather than)\b",
        rf"\bwe(?:'ll| will| want to|'re going to) (?!see|need|{_ERRAND})|\bno, we\b|\bbecomes the\b",
        r"\blet's (?:use|keep|not|drop|go with|move to|switch|call|put)\b|\bin favou?r of\b",
        r"\bswitch(?:ed|ing)? to\b|\bstick(?:ing)? (?:with|to)\b|\S (?:->|→) \S",
    ),
    _cue(
        "reason",
        2.0,
        2.25,
        r"\b(?:because|due to|reason (?:is|was|being|for)|the reason|root cause|caused? (?:is|was|by))\b",
        r"\b(?:that's why|which is why|so that)\b",
        r"\bsince (?:it|we|they|the|there)\b(?! (?:last|talked|spoke|met))",
        r"\botherwise\b",
        r"\b(?:turn(?:s|ed) out|learn(?:ed|t) that)\b",
        r"\bthe (?:(?:key|real|underlying|main|actual) )?(?:cause|reason|point|difference) (?:is|was)\b",
        r"\bthe key (?:is|was)\b|\bkey fix\b|\bthe (?:pattern|idea|insight|trick|catch|lesson) (?:is|was)\b",
    ),
    _cue(
        "constraint",
        1.5,
        2.25,
        r"\b(?:requires?|required|can(?:'t|not| not)|won't work|unless)\b",
        r"\b(?:not supported|unsupported|incompatible)\b",
        r"\bonly (?:\w+ ){0,2}(?:if|when|on|for|works?|after|supports?|processed)\b|\bbypass(?:es|ed)?\b",
        r"\b(?:does|do|did)(?:n't| not) (?:support|work|allow|exist|block)\b|\blimit(?:ed|s)? (?:to|of|is)\b",
        r"\bfails? (?:if|on|when|unless|because)\b|\bbreak(?:s|ing)? (?:if|when|this|the)\b",
        r"\bno \S+ (?:field|option|support|way) exists?\b",
    ),
    _cue(
        "condition",
        1.0,
        1.0,
        r"\bif (?:we|i|you|the (?!latter|former)|a|an|user|they|it)\b",
        r"\bwhen(?:ever)? (?:we|i|you|the|a|an|user|`)",
    ),
    _cue(
        "habit",
        1.25,
        0.5,
        r"\b(?:always|never|every (?:day|week|month|year|morning|night|time|\d+ \w+s))\b",
    ),
    _cue(
        "how things are",
        2.0,
        0.5,
        r"\bwe (?:use|host|deploy|store|run)\b",
        r"\b(?:lives?|listens?|runs?|is (?:hosted|stored|deployed)) (?:at|on|in|under|behind) \S*[\w./:-]",
        r"\bis (?:the|our|my|a) (?:new )?"
        r"(?:owner|lead|maintainer|manager|contact|boss|designer|accountant|landlord)\b",
    ),
    _cue(  # beside the date itself
        "appointment",
        0.5,
        0.25,
        r"\b(?:is|are|starts?|begins?|ends?|opens?|closes?|expires?|launch(?:es)?)(?: due)?"
        rf"(?: on| from| by)? (?:the )?(?:20\d\d-\d\d-\d\d|{_MONTH} \d{{1,2}}|"
        rf"\d{{1,2}}(?:st|nd|rd|th)?\.? (?:of )?{_MONTH})\b",
    ),
    _cue(
        "date",
        1.25,
        0.75,
        r"\b(?:19|20)\d\d-\d\d(?:-\d\d)?\b|\b(?:yesterday|tomorrow|last night|tonight)\b",
        rf"\b{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?\b|\b\d{{1,2}}(?:st|nd|rd|th)?\.? (?:of )?{_MONTH}\b",
        rf"\b{_MONTH} (?:19|20)\d\d\b",
        rf"\b(?:on|by|until|till|next|last|this|since|before|every) {_WEEKDAY}\b",
        r"\b\d+ (?:days|weeks|months|years) ago\b",
        r"\b(?:last|next) (?:week|weekend|month|year|summer|winter)\b",
    ),
    _cue(
        "outcome",
        0.75,
        1.0,
        r"\b(?:fixed|resolved|removed|renamed|replaced|migrated|moved|completed?|released|shipped|merged|deployed)\b",
        r"\b(?:consolidated|split|introduced|propagated|configured|implemented|rewrote|rewritten|disabled|enabled)\b",
        r"\b(?:bought|paid|booked|signed|hired|met|launched)\b",
    ),
    _cue(
        "open end",
        1.0,
        0.75,
        r"\bstill (?:needs?|open|missing|fails?|have to|to do)\b|\b(?:not yet|open question)\b",
        r"\b(?:follow[- ]up|todo|remains? (?:open|to)|deadline|due (?:on|by)|unresolved)\b",
        r"\b(?:waiting (?:for|on)|postponed|blocked (?:by|on))\b",
    ),
    _cue(
        "about a person",
        2.0,
        0.5,
        rf"\bmy {_MY}\b",
        r"\bour (?:team|company|office|customers?|clients?|budget|policy|database|servers?|product)\b",
        r"\bi (?:live|work|was born|moved|studied|started|joined|own|speak|play|bought)\b",
        r"\b(?:i am|i'm) (?:an?|from|allergic|vegetarian|vegan)\b",
    ),
)
"""What carries something."""

LEANS = _cue(
    "leans on another sentence",
    -1.0,
    -1.25,
    rf"^{_IT}(?:'s)?(?= \w+s\b| {_DOES}\b)",
    r"^(?:it(?! turn)|its|it's|that's|they|them|he|she|both|all|yes|yeah|yep)\b",
    rf"\b(?:{_IT}|the same|such) (?:files?|things?|stuff|ones?|approach|way|place|part)\b",
)

PENALTIES = (
    _cue(
        "narration",
        0.0,
        -4.0,
        rf"^{_OPENING}(?:now|let me|let's|also|need to|we need to)\b",
        rf"^{_OPENING}(?:looking at|continuing|starting|moving on|time to)\b",
        rf"^{_OPENING}(?:checking|running|here(?:'s| is| are)|should i|want me)\b",
        rf"^{_OPENING}still (?:compiling|running|waiting)\b",
        rf"^{_OPENING}(?:would you\b|next[,:]|first[,:])",
        rf"^{_OPENING}i(?:'ll| will| need to| see| can see|'m going to|'ve (?:got|made)| should| found)\b",
        rf"^{_OPENING}i have (?:a|all|the|full|both)\b",
    ),
    _cue(
        "pleasantry",
        -2.0,
        -4.0,
        r"^(?:thanks?|thank you|sorry|you're (?:absolutely )?right)\b",
        r"^good (?:catch|point|idea|question|progress)\b",
        r"^(?:great|perfect|excellent|wow|jesus|nice|lol|haha|yo|hi|hello|hey)\b",
    ),
    _cue(
        "errand",
        -2.0,
        0.0,
        rf"^{_ASKING}(?:read|check|look|run|continue|start|work on|do|go|fix|commit|push)\b",
        rf"^{_ASKING}(?:implement|tackle|propose)\b",
        rf"^{_ASKING}(?:show|tell|give|explain|try|investigate)\b",
        rf"^{_ASKING}(?:remember(?! that| to)|revert|create|copy|move|write)\b",
        rf"^{_ASKING}(?:open|find|kill)\b",
        rf"^{_ASKING}(?:let's tackle|could read)\b",
    ),
    _cue(
        "errand", -2.0, 0.0, r"\bi (?:actually )?want you to\b|\byou (?:havn't|haven't|should have|need to)\b"
    ),
    _cue(
        "passing state",
        -0.5,
        -1.5,
        r"\blines? \d+|\bat \d+-\d+|\bin progress\b|\bnext (?:big )?(?:task|step)|\bprogress\b",
        r"\bclean compile|\btests?,? .*\bpass|^(?:all )?(?:green|clean|done|pushed|committed)\b",
    ),
    _cue(
        "not settled",
        -0.75,
        -1.5,
        r"\b(?:maybe|perhaps|probably|possibly|might|could|may need|not sure|would be)\b",
        r"\b(?:for now|temporar\w+|iiuc|i'm thinking)\b",
        r"\b(?:option [a-d]|pros?:|cons?:|recommendation:)|\bi (?:feel|guess|suppose)\b",
    ),
    _cue(
        "step of a plan",
        0.0,
        -1.5,
        r"^(?:add|use|create|update|remove|replace|move|extract|take|handle|implement|define|register|call|don't)\b",
    ),
    LEANS,
)
"""What carries nothing once its moment is over."""
