"""What a query asks, by its words: a question, two of them, a task list, a chore, or who somebody is that it
only describes."""

from __future__ import annotations

import re
from collections import namedtuple

from ua_memory.text.patterns import late

# -- questions and chores ----------------------------------------------------------------------------------


AT_THE_MOMENT = (
    r"currently|nowadays|these\s+days|at\s+the\s+moment|derzeit|zurzeit|im\s+moment|actuellement|en\s+ce\s+moment"
    r"|actualmente|hoy\s+en\s+día|en\s+este\s+momento|atualmente|hoje\s+em\s+dia|neste\s+momento|de\s+momento"
    r"|attualmente|oggigiorno|in\s+questo\s+momento|al\s+momento|tegenwoordig|momenteel|op\s+(?:dit|het)\s+moment"
)
"""Asks for how it is now, and says nothing of what a question is about."""

BEFORE_NOW = (
    r"previously|formerly|back\s+then|früher|vorher|ehemals|damals|auparavant|autrefois|précédemment|antiguamente|antaño"
    r"|anteriormente|antigamente|outrora|(?:antes|prima|avant|before|eerder|daarvoor|ervoor)(?=\W*\Z)|precedentemente"
    r"|in\s+passato|un\s+tempo|vroeger|voorheen|hiervoor|destijds"
)
"""Asks for how it was before, likewise."""

_ASKING = (
    r"(?:what|who(?:se|m)?|when|where|which|how|why|wer|we[nm]|was|wann|wo(?:hin|her)?|wie|welche[mnrs]?|warum|wieso"
    r"|qui|que|quoi|quand|où|combien|quel(?:le)?s?|comment|pourquoi|qui[eé]n(?:es)?|qué|cu[aá]ndo|d[oó]nde"
    r"|cu[aá]nt[oa]s?|c[oó]mo|cu[aá]l(?:es)?|quem|quando|onde|quant[aeio]s?|qual[ei]?|quais|ch[ei]|cosa|dove"
    r"|perché|porquê|wat|wanneer|waar(?:heen|van)?|hoe(?:veel)?|wiens?|welke?|waarom)(?:['’]s)?\b"
)
_BEGINNING = late(_ASKING, re.IGNORECASE)
_QUESTION = late(
    rf"[?？]\s*$|^\W*(?:(?:at|for|from|in|on|to|with|ab|an?|auf|bei|bis|um|für|mit|seit|von|avec|de|à|dans|depuis|en|pour"
    r"|con|desde|para|por|da|di|per|com|em|[ao]|met|van|voor)\s+)?"
    r"(?!wie\s+(?:\w+\s+)?(?:be(?:sprochen|kannt)|gesagt|gewünscht|gehabt|immer|vereinbart|oben)\b)"
    rf"(?:{_ASKING}|come\s+(?:si|mai|va|vanno|fac\w+|sta|è|ha|hai)\b|est-ce\b|qu['’]est-ce\b)",
    re.IGNORECASE,
)
_REQUEST_TO_ACT = late(
    r"\W*(?:(?:hey|hi|ok(?:ay)?|so|and|now|then)\W+)*(?:(?:please|pls|bitte)\b|(?:can|could|would|will) you\b"
    r"|(?:kannst|könntest|würdest) du\b|(?:können|könnten) sie\b|peux[- ]tu\b|pouvez[- ]vous\b|tu peux\b"
    r"|(?:me )?(?:puedes|podrías|podes)\b|(?:você |voce )?(?:pode|poderia|consegue)\b|puoi\b|potresti\b"
    r"|mi (?:scriv|fa|prepar|aiut|mand|cerc|trov|traduc|spiegh|spieg|mostr|riassum)i\b"
    r"|(?:me |mij )?(?:escribes|haces|preparas|ayudas|buscas|explicas)\b|tu m['’](?:écris|aides|expliques)\b"
    r"|(?:me )?(?:podes|podias)\b|ajuda-me\b|(?:kun|kan|wil|zou) (?:je|jij|u)\b|help (?:me|mij)\b)",
    re.IGNORECASE,
)


def is_question(prompt: str) -> bool:
    """Whether a prompt is a question."""
    return _QUESTION.search(prompt) is not None


def begins_question(text: str) -> bool:
    """Whether a text begins with a question word."""
    return _BEGINNING.match(text) is not None


def is_request(prompt: str) -> bool:
    """Whether a prompt asks for something to be done, if only in the form of a question."""
    return _REQUEST_TO_ACT.match(prompt) is not None


_CHORE = late(
    r"^\W*(?:(?:please|pls|bitte|ok(?:ay)?|(?:can|could|would) you|kannst du|peux[- ]tu|puedes|puoi)\W+)*"
    r"(?:sort|rename|run|explain|list|translate|proofread|correct|format|count|convert|bump|(?:erklär|sortier|übersetz|benenn"
    r"|korrigier)e?|lass(?! uns)|explique|traduis|corrige|trie|liste|renomme|explica|traduce|ordena|renombra"
    r"|spiega|traduci|ordina|correggi|rinomina|accorcia|riscrivi|traduz|renomeia|resume|reescreve|melhora|encurta"
    r"|vertaal|sorteer|hernoem|corrigeer|verbeter"
    r"|herschrijf|leg uit|how (?:do|can|to)|what does|was macht|comment|cómo|com[eo] s[ei]"
    r"|hoe (?:zeg|doe) je)\b"
    r"|(?<!-)\b(?:this|these|diese[mnrs]?|ce|cet|cette|ces|est[aeo]s?|ess[ae]s?|quest[aeio]|deze)\b"
    r"(?! (?:morning|afternoon|evening|night|week|month|year|summer|christmas|\w+day"
    r"|morgen|abend|woche|monat|jahr|sommer|winter|\w*wochenende|\w+tag|matin|après|soir|semaine|week|mois|année"
    r"|été|hiver|semana|\w+di|mañana|manhã|tarde|noche|noite|fin|fim|mes|mês|año|ano|verano|verão|vez|mattina|sera|settimana|mese|anno|estate|notte|volta"
    r"|ochtend|middag|avond|nacht|maand|jaar|zomer|keer|\w+dag|\w+dì))",
    re.IGNORECASE,
)


def is_chore(prompt: str) -> bool:
    """Whether a prompt is about what is at hand ("explain this line", "sort the imports"), and so seldom
    needs what was said before."""
    return _CHORE.search(prompt) is not None


_ORDER = late(
    r"\W*(?:(?:again|all|and|above|both|first|for|go|in|it|just|last|let['’]s|next|now|of|on|one|other|previous|second"
    r"|a|that|the(?:m|n|se|re)?|this|those|to|try|with|you|no(?:pe)?|ok(?:ay)?|yes|please|pls|thanks?|thx"
    r"|(?:re-?)?(?:build|run|start|test)s?|amend|branch|changes?|checks?|commit(?:te?)?|compile|diff|do|errors?|files?|fix"
    r"|format|lint(?:er|ing)?|make|open|pr|pull|push|redo|remaining|revert|save|show|stash|status|stop|suite|typ(?:e|o)s?"
    r"|undo|unit|warnings?|bitte|das|den|die|es|führ|aus|lass|laufen|mach|nochmal|und|zeig|rückgängig|fehler"
    r"|et|la|lance|le|les|pousse|annule|erreurs?|ejecuta|haz|los|corrige|esegui|fai|il?|gli"
    r"|kannst|du|nochmals|einmal|versuch(?:e|en)?|encore|une|fois|réessaie|otra|vez|de|nuevo|inténtalo|di|nuovo|riprova"
    r"|tenta|outra|novo|por|favor|isso|faz|podes|kun|je|dat|dit|het|een|nog|keer|opnieuw|probeer|proberen|doe|maak"
    r"|alsjeblieft)\b\W*)+",
    re.IGNORECASE,
)


def is_order(prompt: str) -> bool:
    """Whether a prompt is nothing but an order about what is at hand, and names nothing: "run the tests",
    "thanks, commit", "no, the other one"."""
    return _ORDER.fullmatch(prompt) is not None


# -- telephone numbers -------------------------------------------------------------------------------------


_PHONE = late(
    r"(?:tel|tlf|tfno|telf|fono|phone|mobile|cell|handy|rufnummer|m[oó]vil|celular|telem[oó]vel|cellulare|portable"
    r"|gsm|mobiel(?:tje)?|t[eé]l[eéè](?:f|ph)o?[oó]n\w*)(?:number|nummer)?",
    re.IGNORECASE,
)
_NUMBER = late(r"numbers?|nummer|n[uú]mero|numéro", re.IGNORECASE)
_PHONE_NUMBER = late(
    r"(?<![\w.,:/-])(?!\d{4}-\d\d-\d\d|\d\d?[-/]\d\d?[-/]\d{4})(?:\+|\(?0|(?=[1-9]))"
    r"(?:(?=(?:\W?\d){8})[\d()]+(?:[ /-]{1,2}[\d()]+){0,6}|\d{3}-\d{4}|\d?(?:\.?\d\d){4})(?![\w.,]?\d)"
)


def phone_words(words: list[str]) -> list[int]:
    """The places of a query's words that ask for a telephone number: `phone number`, `Handynummer`."""
    asking = any(map(_PHONE.fullmatch, words))
    return (
        [n for n, word in enumerate(words) if _PHONE.fullmatch(word) or _NUMBER.fullmatch(word)]
        if asking
        else []
    )


def has_phone_number(text: str) -> bool:
    return _PHONE_NUMBER.search(text) is not None


# -- two questions -----------------------------------------------------------------------------------------


_FRENCH_PRONOUN = r"-(?:t-)?(?:ils?|elles?)"
_AND = r"(?:and|und|et|y|e|en)\s+"
_TWO_QUESTIONS = late(
    rf"\W*(?P<one>{_ASKING}.*?\w)(?:\s*,)?(?:\s*[?？]|(?=\s+{_AND}))\s*(?:{_AND}(?:also\s+)?)?"
    rf"(?P<other>{_ASKING}(?:(?:\s+\S+){{2,}}|\s+\w+{_FRENCH_PRONOUN}\W*))",
    re.IGNORECASE,
)
_NO_QUESTION = late(rf"(?:\bbetween\b.*|{_ASKING})\Z", re.IGNORECASE)
"""What a first question does not end with: "the rules for when", "the difference between what Mia"."""
_OF_THE_FIRST = late(
    rf"\b(?:he|she|it|they|him|her(?=\W*$)|them|er|sie)\b|{_FRENCH_PRONOUN}\b", re.IGNORECASE
)
_THING = late(
    r"\b(?:the|my|our|his|her|their|de[rn]|die|das|(?:mein|unser)(?:e[nr]?)?|l[ea]|mon|ma|notre)\s+\w+(?:\s+\w+)?"
    r"(?=\W*$)",
    re.IGNORECASE,
)
_NAMES = late(r"(?<=\w\s)[^\W\d_a-zß-öø-ÿ]\w+(?:\s+[^\W\d_a-zß-öø-ÿ]\w+)*")


def two_questions(query: str) -> tuple[str, str] | None:
    """The two questions of a query. A pronoun in the second stands for whom the first describes or names, or
    for the thing that it ends with."""
    found = _TWO_QUESTIONS.fullmatch(query)
    if found is None or _NO_QUESTION.search(found["one"]):
        return None
    one, other = found["one"], found["other"]
    described, thing, names = find_description(one), _THING.search(one), _NAMES.findall(one)
    meant = thing[0] if thing else names[0] if len(names) == 1 else ""
    meant = f"the {described.clause}" if described and described.after is not None else meant
    return one, " ".join(_OF_THE_FIRST.sub(f" {meant}", other, count=1).split()) if meant else other


# -- task lists --------------------------------------------------------------------------------------------


_TASK_NOUN = (
    r"(?:tasks?|to-?dos?|(?:action|todo|to-do) items|checkbox(?:es)?|aufgaben|punkte|tâches|tareas|tarefas"
    r"|attività|compiti|taken)"
)
_IT_ENDS = r"(?= (?:in|on|for|at|with|from|about|this|left|before|by|after|today|tomorrow|next)\b|\W*$)"
"""A query ends, or only says what it is about."""
_OPEN_TASKS = late(
    rf"\b(?:(?:open|unfinished|outstanding|pending|remaining|offenen?|unerledigten?|openstaande) {_TASK_NOUN}"
    rf"|(?:open|outstanding) items{_IT_ENDS}"
    rf"|{_TASK_NOUN} (?:(?:are |sind )?(?:still |noch )?(?:open|offen|left)|ouvertes|restantes|à faire"
    r"|pendientes|pendentes|em aberto|in sospeso|da fare)"
    r"|(?:what(?:['’]s| is| are)?|anything|everything) (?:(?:still|left) )+(?:open|to do|to be done)"
    rf"{_IT_ENDS}|what (?:do (?:i|we) (?:still )?(?:have|need) to|must (?:i|we) (?:still )?) ?do{_IT_ENDS}"
    r"|was ist (?:noch offen|(?:noch )?zu (?:tun|erledigen))|wat is (?:er )?nog (?:open|te doen)"
    r"|was (?:muss ich|müssen wir) noch (?:tun|machen|erledigen)"
    r"|(?:qu['’]est-ce qui |ce qui |que )?reste(?:-t-il)? à faire"
    r"|qu[eé] (?:(?:me|nos) )?(?:queda|falta) (?:por|para) hacer|qu[eé] (?:tengo|tenemos|hay) pendiente"
    r"|o que (?:(?:me|nos) )?falta fazer|cosa resta da fare|cose da fare|wat moe(?:t ik|ten we) nog doen)\b"
    r"|^\W*(?:(?:my|our|the|all)\s+)*(?:to-?dos?(?: list| items)?|(?:to-?do|aufgaben)-?liste|takenlijst)\b"
    rf"{_IT_ENDS}",
    re.IGNORECASE,
)
_DONE_TASKS = late(
    rf"\b(?:(?:finished|completed|done|closed|erledigten?) {_TASK_NOUN}|tâches (?:faites|terminées|finies)"
    r"|tareas (?:hechas|terminadas)|tarefas (?:feitas|concluídas)|attività completate|voltooide taken)\b",
    re.IGNORECASE,
)


def asks_for_tasks(query: str) -> tuple[str, str] | None:
    """("todo" or "done", the rest of a query) if it asks for the open or finished items of task lists."""
    for kind, pattern in (("todo", _OPEN_TASKS), ("done", _DONE_TASKS)):
        if found := pattern.search(query):
            return kind, (query[: found.start()] + query[found.end() :]).strip(" ?!.")
    return None


_TAGGED = late(
    r"^\W*(?:(?:all|every|any|the|my|alle|todas?|todos|toutes?|tous|tutt[eio]|le|les|las|los|die|meine)\s+)*"
    r"(?:(?:things?|notes?|facts?|lines?|entries|everything|anything|what|items?|alles|notizen|einträge|was"
    r"|tout|notas?|todo|tudo|cosas|coisas|appunti|cose|notities|dingen)\s+)?"
    r"(?:(?:is|are|ist|sind|est|está|è)\s+)?"
    r"(?:tagged(?:\s+(?:as|with))?|with\s+(?:the\s+)?tag|getaggt\s+mit|mit\s+(?:dem\s+)?schlagwort"
    r"|avec\s+(?:le\s+tag|l['’]étiquette)|con\s+(?:el\s+tag|la\s+etiqueta|il\s+tag|l['’]etichetta)"
    r"|com\s+(?:a\s+etiqueta|o\s+tag)|met\s+(?:de\s+)?tag)\s+#?(?P<tag>\w[\w/-]*)",
    re.IGNORECASE,
)


def with_plain_tag(query: str) -> str:
    """A query with the tag that it asks for in words as `#tag`: "things with the tag garden in May"."""
    return _TAGGED.sub(r"#\g<tag>", query, count=1)


# -- descriptions ------------------------------------------------------------------------------------------


_ROLE = (
    r"(?:electrician|optician|plumber|carpenter|painter|roofer|gardener|cleaner|mechanic|architect|engineer|lawyer"
    r"|notary|accountant|banker|broker|land(?:lord|lady)|tenant|lodger|neighbou?r|boss|manager|director|supervisor"
    r"|chair(?:man|woman|person)?|treasurer|secretary|president|assistant|colleague|intern|trainee|apprentice"
    r"|student|customer|supplier|vendor|contractor|consultant|doctor|gp|dentist|surgeon|(?:physio)?therapist"
    r"|physio|psychologist|nurse|midwife|vet|pharmacist|hairdresser|barber|carer|nanny|babysitter|teacher|tutor"
    r"|professor|principal|coach|trainer|instructor|conductor|cellist|violinist|pianist|guitarist|drummer|singer"
    r"|bassist|chef|baker|butcher|priest|pastor|mayor|(?:(?:step|grand|god)?(?:mother|father|son|daughter)|sister"
    r"|brother|mum|mom|dad|wife|husband)(?:-in-law)?|aunt|uncle|cousin|niece|nephew|partner|(?:girl|boy)?friend"
    r"|(?:flat|room)mate|translator|photographer|maintainer|technician|librarian|caretaker|janitor|winner|organi[sz]er"
    r"|plasterer|tiler|joiner|welder|designer|developer|reviewer|captain|referee|caterer|florist|tailor|jeweller"
    r"|tuner|beekeeper|farmer|diver|head(?:master|mistress|teacher)|postman|courier|programmer|analyst|scientist"
    r"|researcher|inspector|auditor|advis[eo]r)"
)
_SOMEBODY = rf"(?:{_ROLE}|person|man|woman|lady|guy|girl|boy|one|company|firm|shop|place|team)"
_A_TIME = (
    r"(?:(?:(?:19|20)\d\d|now|today|then|(?:last|next|this) (?:week|month|year|spring|\w+day)|christmas"
    r"|easter|\w+day|(?:mar(?:ch)?|may|june?|july?|spring|summer|autumn|winter|(?:jan|feb|apr|aug|sep|oct|nov|dec)[a-z]*)"
    r"(?=\W*$| (?:\d|on\b)))\b)"
)
_DESCRIPTION = late(
    r"\b(?:the|my|our|his|her|their)\s+(?:\w+\s+)?"
    rf"(?:\w+\s+who|{_SOMEBODY}\s+(?:that|which|with|from(?!\s+{_A_TIME})))\s+(?P<clause>\w.*?)[?!.\s]*$",
    re.IGNORECASE,
)
_NAMED_ROLE = late(
    rf"\b(?:(?:the|my|our|his|her|their)\s+|(?<![\w-])(?=\w+['’]s\s))"
    rf"(?P<clause>(?:[\w'’-]+\s+){{0,2}}{_ROLE})(?:['’]s)?(?P<after>\b.*?)[?!.\s]*$",
    re.IGNORECASE,
)
_ASKS_WHO = late(
    r"(?:who|what|which|is|was|are|were|the|a|s|names?|called|again|i|me|to|of|do|does|did|you|know)",
    re.IGNORECASE,
)
_WHO_IS = late(r"\W*who(?:['’]s|\s+(?:is|was))\W*", re.IGNORECASE)
_AUXILIARY = late(r"\b(?:do|does|did|will|can|could|should|would)\s*$", re.IGNORECASE)
_PREPOSITION = late(r"(?:in|at|on|for|since|during|with|by|last|this)\b", re.IGNORECASE)

Description = namedtuple("Description", ("before", "clause", "after"))
"""The `clause` or role by which a query describes somebody instead of naming them, with what stands `before`
it; `after` is what follows a role, and None if the description is a relative clause."""


def find_description(query: str) -> Description | None:
    """How a query describes somebody."""
    found = _DESCRIPTION.search(query) or _NAMED_ROLE.search(query)
    return found and Description(query[: found.start()], found["clause"], found.groupdict().get("after"))


def asks_more(described: Description) -> bool:
    """Whether a query asks for more than who is described."""
    if described.after is None:  # what is asked may stand in it: "what is the man who fell allergic to"
        return not _WHO_IS.fullmatch(described.before)
    return not all(map(_ASKS_WHO.fullmatch, re.findall(r"\w+", described.before + described.after)))


def replace_description(described: Description, name: str, hit: str) -> str:
    """A query with a name in place of a description. The last words of a clause that are not in its hit
    are part of the question: "allergic to" in "what is the man who fell allergic to"."""
    before, clause, after = described
    if after is not None:
        return " ".join([*before.split(), name, *after.split()])
    text, words = hit.casefold(), clause.split()
    known = [n for n, word in enumerate(words) if len(word) > 2 and word_stem(word) in text]
    rest = words[known[-1] + 1 :] if known else words
    if not known or (rest and _PREPOSITION.match(rest[0])):
        rest = rest[-1:] if _AUXILIARY.search(before) else []
    return " ".join([*before.split(), name, *rest])


def word_stem(word: str) -> str:
    """The beginning that the forms of a word share: without a plural s all but two letters, at least four."""
    if len(word) > 3 and not word.endswith(("is", "ss", "us")):
        word = word.removesuffix("s")
    return word[: max(4, len(word) - 2)].casefold()
