"""Standing rules: whether a person's sentence tells an agent what always, never or only to do.

Told by its words, in English, German, French, Spanish and Japanese: negated imperatives, words such as
always, never and only, prohibitions, limits, approvals, and what a group uses. What tells of something that
happened ("it never worked"), asks, or holds for the moment ("don't commit yet") is no rule.
"""

from __future__ import annotations

import re

from ua_memory.text.patterns import late


def _any(*ways: str) -> re.Pattern[str]:
    return late("|".join(ways), re.IGNORECASE)


_START = (
    r"(?:^|[,;:.(!—–]\s*|\s-\s|\b(?:and|but|so|also|pls|please|then|ok|okay|btw|just|und|aber|bitte"
    r"|et|mais|y|pero)\s+)"
)
_TALK = (
    r"(?:know|worry|think|mind|bother|forget|see|get|understand|remember|have|care|need|wait|panic|believe"
    r"|recall"
    r"|feel|find|seem|look like|hear|agree)\b"
)
_STORY = (
    r"(?:fail|crash|break|work|happen|return|throw|ran|was\b|were\b|been\b|had\b|did\b|got\b|get\b|gets\b"
    r"|saw\b|seen\b"
    r"|heard\b|knew\b|tried\b|mind\b|ends?\b|show|hang|die[sd]?\b|came\b|comes?\b|said\b|used to\b|finish"
    r"|arriv|starts?\b)"
)
_FIX = (
    r"(?:use|deploy|write|name|format|run|keep|store|commit|merge|release|test|pin|avoid|prefer|renew"
    r"|stick to|stick with)"
)
_STATE = (
    r"(?:fine|ok|okay|good|done|green|passing|working|set|ready|broken|red|clear|merged|here|there"
    r"|gone|new|up|back)\b"
)

ENGLISH = _any(
    rf"{_START}(?:please |pls )*(?:do ?n[o'’]?t|do not|never)(?: ever)? (?!{_TALK})[a-z]{{2,}}",
    rf"\b(?:always|never)\b(?! (?:\w+ )?{_STORY})(?!\s*$)",
    r"\b(?:never|ever)\s*[.!,;]?\s*$",
    r"\b(?:must|should|may|can|shall) (?:always|never|not|only)\b|\bmust ?n[o'’]t\b",
    r"\b(?:not allowed|(?<!\d )forbid(?:s|den)?|prohibited|off[- ]limits|hands off|stay away from"
    r"|no exceptions?)\b",
    r"\b(?:under no circumstances|at all times|from now on|as a rule|unless i (?:say|ask|tell)|by default)\b",
    r"\bleave (?!it (?:to|at|for))\S+(?: \S+){0,3} alone\b|\b(?:whenever|every time) (?:you|we|i)\b",
    r"\bonly (?:via|from|through|with|by|after|use|in|on|the|for)\b(?! (?:\w+ )?(?:problem|thing|issue|one"
    r"|way|reason))",
    r"\bonly\s*(?:[.,;!]|$)|\bnot \w+,? only\b",
    rf"\bwe (?:only |always |never |just )?{_FIX}\b(?! to\b)(?!d)",
    rf"(?:{_START}|\b(?:use|are|with|but) )no (?!problem|worries|idea|need|longer|one|way|matter|clue|rush"
    rf"|thanks|thank|more"
    r"|wonder|doubt|luck|reason|it|i|we|you|that|this|the|not|sorry|wait|change|difference|error"
    r"|such)[a-z][\w-]+",
    r"\buse [\w./`+-]+(?: \w+){0,3},? (?:not|never|everywhere|only|here|by default|for (?:all|every|any"
    r"|everything))\b",
    r"(?:please|pls) (?:keep|use|make|write|put|avoid|name|call|stick|answer|reply|format)\b(?! (?:it"
    r"|this|that) (?:now|again)\b)",
    r"\b(?:nobody|no one|none) (?:is allowed|may|can|should|must|gets to|touches|applies|of that|but)\b",
    r"\b(?:allergic to|veggie|vegetarian|vegan|halal|kosher)\b|\b(?:nut|gluten|lactose|sugar)[- ]free\b",
    r"\b(?:has|have|needs?) to (?:approve|sign off|agree|confirm)\b|\bneeds? (?:approval|sign[- ]?off"
    r"|\w+ notice|notice)\b",
    r"\bwithout (?:asking|pinging|telling|checking with|talking to|approval|my ok)\b|\bdon['’]?t let me\b",
    rf"\b(?:everything|everyone|every \w+|all (?:the |our )?(?!i\b|we\b|you\b|of\b|that\b"
    rf"|this\b)\w+)(?: \w+){{0,4}} (?:is|are|stays?|goes|must|uses|needs?)\b(?! (?:\w+ )?{_STATE})",
    r"\b(?:max(?:imum)?|at most|at least|min(?:imum)?|no more than|not more than|up to) (?:\d|one\b|two\b"
    r"|three\b|a\b)|\bmax\b\s*[.,!]?$",
    r"\bi (?:want|prefer|hate|only (?:want|like|use|get)|never|always|insist"
    r"|can[o'’]?t stand) (?!you to\b|us to\b|to\b)",
    r"\b(?:deploys?|releases?|builds?|tests?|commits?|migrations?) (?:only )?(?:via|through|with"
    r"|go through|are run with)\b",
    r"\b(?:has to|have to|must|needs to) be (?:excluded|included|approved|signed|kept)\b",
)
GERMAN = _any(
    r"\b(?:niemals|auf keinen fall|unter keinen umständen|ausschließlich|grundsätzlich|ab sofort|ab jetzt"
    r"|von nun an)\b",
    r"\b(?:immer|nie) (?!noch|wieder|mehr|gesehen|gehört|funktioniert|geklappt)|\bbitte (?:immer|nie"
    r"|keine?n?|nicht|nur)\b",
    r"\bnur (?:noch )?(?:von|vom|mit|auf|über|per|aus|im|in|nach|für|bei)\b|\b(?:verboten|nicht erlaubt"
    r"|finger weg)\b",
    r"\b(?:darf|dürfen|soll|sollen|muss|müssen) (?:\w+ ){0,4}(?:nicht|nie|nur|immer|keine?n?)\b"
    r"|\bin ruhe lassen\b|\blass \S+ in ruhe\b",
    r"\bwir (?:nutzen|verwenden|benutzen|nehmen|deployen|schreiben)\b|\b(?:maximal|höchstens|mindestens) \d",
    r"\b(?:gehen|machen|nehmen|wollen) wir (?:\w+ )?(?:nicht|nie|keine?n?)\b|\b(?:allergisch|vegetarisch"
    r"|vegan)\b",
    r"\bfass(?:t)? \S+(?: \S+){0,3} nicht an\b|\bist tabu\b|\bminsdk|\b(?:bitte )?keine?n? \w+ bitte\b",
)
FRENCH = _any(
    r"\b(?:jamais|toujours|interdit(?:e|s|es)?|désormais|uniquement|exclusivement|en aucun cas"
    r"|obligatoirement)\b",
    r"\bil (?:ne )?faut (?:pas|jamais|rien|plus|toujours)?|\bà partir de maintenant\b|\bsans exception\b",
    r"\bn(?:e |['’])(?:touche|modifie|utilise|mets|mettez|lance|lancez|fais|faites|supprime|change|envoie"
    r"|écri[st])\w*\b.*\b(?:pas|jamais|rien|plus|que)\b",
    r"\b(?:doit|doivent|dois|devez|devons) (?:toujours |jamais |pas |être )|\b(?:on"
    r"|nous) (?:n['’])?utilis(?:e|ons)\b",
    r"(?:^|[,;:.(!]\s*|\bet )pas (?:de|d['’])\s?\w+|\bseulement\b|\b(?:max(?:imum)?|au plus|au moins"
    r"|au maximum)\b",
    r"\ballergiques?\b|\bvouvoie|\btutoie|\bvouvoiement\b|\btutoiement\b",
)
SPANISH = _any(
    r"\b(?:nunca|jamás|siempre|prohibid[oa]s?|únicamente|exclusivamente|en ningún caso"
    r"|bajo ningún concepto)\b",
    r"\bno se (?:toca|puede|debe|permite|usa|cambia|hace)|\b(?:hay|tiene|tienen|tenemos) que\b"
    r"|\bdeben?\b (?:ser|estar|ir)\b",
    r"(?:^|[,;:.(!¡]\s*|\by )nada de\b|\bs[oó]lo (?:con|desde|en|por|los|las|el|la|se|usa)\b|\b(?:usamos"
    r"|utilizamos)\b",
    r"\bno (?:toques|uses|hagas|cambies|pongas|borres|envíes|mandes|ejecutes|escribas|metas|toquéis"
    r"|quiero)\b",
    r"\b(?:a partir de ahora|desde ahora|ni se te ocurra|lo quiero)\b|\b(?:máximo|como máximo|mínimo"
    r"|al menos|como mucho) \d|\balérgic[oa]s?\b",
)
JAPANESE = _any(
    r"必ず|絶対|禁止|常に|今後は|以降は|厳禁|(?:触ら|使わ|変え|出さ|消さ|送ら|書か|し)ないで|てはいけ|ちゃ(?:だめ|ダメ)|のみ(?:$|[、。で])",
    r"いつも.*(?:して|使って|お願い)|は[^。、]*で(?:[^。、]{0,12})(?:回して|使って|書いて|統一|表示して|お願い)|でお願い|を使って(?:$|[。、い])",
)
LANGUAGES = (ENGLISH, GERMAN, FRENCH, SPANISH, JAPANESE)

MOMENT = _any(
    r"\b(?:yet|right now|this time|for the moment|for now|today only|erstmal|gerade nicht"
    r"|pour l['’]instant|por ahora)\b",
    r"[?？]\s*$|か[。]?$",
    r"^\s*(?:why|how|what|when|where|who|which|can|could|would|will|is|are|do|does|did|should|warum|wie"
    r"|wann|wer|pourquoi|comment|por qué|cómo)\b(?!.*!)",
    r"\bi (?:always|never) (?:thought|knew|wondered|liked|got|used|had|wanted|understood)\b",
    r"^(?:if (?:we|i|you) (?:could|can|would)|you (?:can|could|may)|could|maybe|i think|i guess)\b",
    r"^(?:it|this|that|he|she|they|which)(?: \w+)? (?:always|never|only)\b",
    r"\b(?:never ?mind|no worries|as always|like always|wie immer|comme toujours|como siempre)\b",
)
UNSAID = _any(
    r"\b(?:no longer|not|n['’]t|never) (?:\w+ )?(?:true|the case|necessar\w+|always|everywhere"
    r"|mandatory|required)\b",
    r"\b(?:do(?:es)?n['’]?t|do(?:es)? not) (?:\w+ )?(?:have|need) to\b|\bneed ?n['’]?t\b",
    r"\b(?:you|he|she|they|we|i) (?:never|always) (?:\w+ed|said|told|wrote|did|gave|took|knew|thought"
    r"|meant|had|went)\b",
    r"\b(?:said|says|told \w+|wrote|claims?|claimed|asked|sagte|schrieb|a dit|dijo)\b[^.]{0,30}[\"“„«「]",
    r"\bif \w+ (?:always|never|only)\b.*\b(?:would|could|might|['’]d)\b|\b(?:wish|if only)\b"
    r"|\bwould(?: \w+)? be nice",
    r"\bnicht (?:immer|mehr|unbedingt|zwingend|wahr|überall)\b|\bstimmt nicht\b|\bwenn wir .*(?:wäre"
    r"|würde)",
    r"\b(?:pas|plus) (?:toujours|forcément|obligatoire|vrai|nécessaire)\b|\bsi (?:on"
    r"|nous) .*\b(?:serait|pourrait)\b",
    r"\bno (?:siempre|es (?:cierto|verdad|necesario|obligatorio)|hace falta|tienes que)\b"
    r"|\bsi (?:siempre|nunca) .*r[ií]a\b",
    r"(?:必要|義務)は(?:あり|な)|とは限|わけでは|訳では|なくても(?:いい|よい|良い)|と言(?:った|われ)",
)
"""What takes a rule back, quotes one, or only wishes for one."""
RULE_LENGTH = 400
"""Characters: what is longer explains something."""


def standing_rule(text: str) -> bool:
    """Whether a person's sentence holds beyond the moment in which it was said."""
    if not 6 <= len(text) <= RULE_LENGTH or MOMENT.search(text) or UNSAID.search(text):
        return False
    return any(language.search(text) for language in LANGUAGES)


FOR_GOOD = _any(
    r"\b(?:always|never|remember|do ?n[o'’]?t (?:ever )?forget|from now on|at all times"
    r"|under no circumstances)\b",
    r"\b(?:immer|niemals|nie|merk(?:e|t)? dir|merkt euch|vergiss nicht|ab (?:sofort|jetzt)|von nun an"
    r"|auf keinen fall|unter keinen umständen)\b",
    r"\b(?:toujours|jamais|désormais|à partir de maintenant|en aucun cas|retiens|retenez)\b"
    r"|\b(?:souviens-toi|souvenez-vous|rappelle-toi|n['’]oublie)",
    r"\b(?:siempre|nunca|jamás|a partir de ahora|desde ahora|en ningún caso|recuerda|acuérdate"
    r"|no (?:te )?olvides)\b",
    r"必ず|常に|いつも|絶対|決して|今後は|覚えて|忘れないで",
)


def stated_for_good(text: str) -> bool:
    """Whether a rule or preference has a word by which one statement of it is enough: always, never,
    remember, and their like in the five languages."""
    unsaid = len(text) > RULE_LENGTH or MOMENT.search(text) or UNSAID.search(text)
    return not unsaid and FOR_GOOD.search(text) is not None


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
