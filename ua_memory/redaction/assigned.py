"""Secrets that only their names give away: `password = …`, `"api_key": "…"`, `the token is …`, `… is my
password`, and the columns of a table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from re import Match

from .kinds import compiled
from .names import KEY_BEFORE, LINE, LONGEST, PROVIDERS, STEMS, assignment, sort_of
from .values import FUNCTION_WORD, mixed, placeholder, random_looking, strong_password

Span = tuple[str, int, int]  # kind, start, end

_REST = re.compile(r"[^\s\"'`<>]*")
_SHELL = re.compile(r"\s*(?:export |set |ENV |-e |- )?\w*")
_HEADING = re.compile(r"(?:.*(?:\"|\\n))?[ \t>]*(?:[-*+] )?(?:#{1,6} |[*_]{1,2})[^\n]{0,60}")
# `Users who lost their password:` is followed by users.
_ABOUT_PEOPLE = re.compile(r"(?i)\b(?:who|whose|lost|forg\w+|reset\w*|without|how|know\w*|not|never|no)\b")
_MORE = re.compile(
    rf"[\"'`]?[ \t]{{0,8}}{LINE}[ \t>]{{0,40}}[-*+] [\"'`]?(?P<value>[^\s\"'`<>\\]{{4,512}})"
    rf"(?=[\"'`]?[ \t]{{0,8}}(?:{LINE}|[\"\\]|\Z))"
)
_STEM = re.compile("|".join(STEMS), re.IGNORECASE)
_RULE = re.compile(rf"{LINE}(?=[^\n]{{0,400}}--)[ \t>|:-]{{3,400}}+(?={LINE})")
_LINE_END = re.compile(LINE)
_NO_VALUE = re.compile(r"[,;|\\]|&(?=&|[\w.%[\]-]*=|#?\w+;|$)")  # `&` only where a query or a shell goes on
_NOTHING = re.compile(rf"[ \t*]*(?:\\{{1,2}}(?={LINE}))?{LINE}")
_COMMAND = re.compile(r"(?:.*[\s\"'`])?(?:(?:ENV|ARG|setenv|export|set(?: -\w+)?) \w*|--[\w-]*|login .*)")


def _line_before(text: str, match: Match[str]) -> str:
    return text[max(text.rfind("\n", 0, match.start()) + 1, match.start() - 80) : match.start()]


def _bare(text: str, match: Match[str]) -> tuple[str, bool]:
    """The bare value without what its language puts after it, and whether it ends the line."""
    value, sign = match["bare"], match["sign"]
    shell = sign.strip() == "=" and _SHELL.fullmatch(_line_before(text, match)) is not None
    if not shell or value.endswith((",", ")")):
        value = _NO_VALUE.split(value, maxsplit=1)[0].rstrip(".:)]}*\\?")
    end = match.start("bare") + len(value)
    rest = text[end : end + 4].lstrip(" ,.;*|)]}\\?")
    joined = sign == "=" or text[end : end + 1] in {"&", ";", '"', "'", "`", "<", ","}
    return value, joined or not rest or rest[0] in "\n#\r" or text.startswith(("\\n", "\\r\\n"), end)


def _variable(text: str, end: int, value: str) -> bool:
    """`connect(password=secret_value)`: a bare word before a bracket is a variable."""
    plain = value.isidentifier() and not any(map(str.isdigit, value))
    return plain and text[end : end + 1] in {")", ",", "(", ";"}


def _listed(text: str, match: Match[str], value: str) -> bool:
    """`"password", "…"`: a call may set one so, a list of words does not."""
    before = text[max(0, match.start() - 44) : match.start()]
    return not strong_password(value) or not re.search(r"[(\[]\\{0,3}[\"'][\w.-]{0,40}$", before)


def _broken(match: Match[str]) -> bool:
    """Whether the value stands on another line, where only a block or `value:` says that it is one."""
    sign = match["sign"]
    return match["block"] is None and "value" not in sign and _LINE_END.search(sign) is not None


def _stands_below(text: str, match: Match[str], value: str, sort: str, alone: bool) -> bool:
    """Whether what stands on the next line is a value, and not how the text goes on."""
    before = _line_before(text, match)
    if not alone or " " in value or _ABOUT_PEOPLE.search(before):
        return False
    if _NOTHING.match(match["sign"]) and not _HEADING.fullmatch(before):
        return False
    if sort == "password":
        return strong_password(value) or (match["quoted"] is not None and "=" in match["sign"])
    return random_looking(value, 12)


def _is_password(text: str, match: Match[str], value: str, alone: bool) -> bool:
    sign, name, line = match["sign"].strip(), match["password"].lower(), _line_before(text, match)
    if sign and sign.split()[-1][-1] in "=:>|,-→(":
        variable = value.isidentifier() and "_" in value and not any(map(str.isdigit, value))
        plain = alone and not variable and name != "pass"
        return not value.endswith(":") and (strong_password(value) or plain)
    flag = re.search(r"--[\w-]{0,20}$", line) is not None
    if name in {"pass", "passes"} and not flag:
        return False
    if sign or _COMMAND.fullmatch(line):
        return strong_password(value) or (flag and alone)
    odd = sum(map(str.isdigit, value)) >= 2 and (value != value.lower() or not value.isalnum())
    return (
        strong_password(value)
        and len(value) >= 7
        and (odd or mixed(value) >= 0.4 or match["quoted"] is not None)
    )


def _is_phrase(value: str) -> bool:
    """Whether words between quotes are a passphrase and not a sentence."""
    words = value.split()
    if FUNCTION_WORD.search(value) or re.search(r"(?i)secret|passw", value):
        return False
    return len(words) >= 3 or any(map(strong_password, words))


def _holds(text: str, match: Match[str], sort: str) -> tuple[int, int] | None:
    """Where the value of one assignment is secret, or None."""
    sign = match["sign"].strip()
    if match["quoted"] is not None:
        value, start, alone = match["quoted"], match.start("quoted"), True
        if " " in value.strip() and (sort != "password" or not _is_phrase(value)):
            return None
    else:
        (value, alone), start = _bare(text, match), match.start("bare")
        if _variable(text, start + len(value), value):
            return None
    if len(value) < 4 or placeholder(value) or (sign == "," and _listed(text, match, value)):
        return None
    if _broken(match):
        good = _stands_below(text, match, value, sort, alone)
    elif sort == "password":
        good = _is_password(text, match, value, alone)
    elif not sign:  # `the API key Xk9…`
        good = random_looking(value, 16) and not re.search(r"[/.]", value)
    else:
        good = random_looking(value, 8 if mixed(value) >= 0.3 else 10)
    end = start + len(value)
    if good and len(value) == LONGEST and (rest := _REST.match(text, start)):
        end = max(end, rest.end())
    return (start, end) if good else None


def _kind(text: str, match: Match[str], sort: str) -> str:
    around = PROVIDERS.findall(text[max(0, match.start() - 32) : match.start()])
    if sort == "password" or not around:
        return "api-key" if sort == "key" else sort
    provider = around[-1].lower()
    return f"{provider}-{'secret' if provider == 'aws' else sort}"


def assignments(text: str, low: str) -> Iterator[Span]:
    """Values given to secret-sounding names; `low` is the text with A–Z lowered at the same offsets."""
    for stem in STEMS:
        at = low.find(stem)
        while at >= 0:
            match = assignment().match(text, at)
            sort = sort_of(text, match) if match else None
            span = _holds(text, match, sort) if match and sort else None
            if match and sort and span:
                yield (_kind(text, match, sort), *span)
                if _broken(match) and match["sign"].endswith(("- ", "* ", "+ ")):
                    yield from _listed_below(text, match, sort, span[1])
            at = low.find(stem, max(at + len(stem), span[1] if span else 0))


def _listed_below(text: str, match: Match[str], sort: str, end: int) -> Iterator[Span]:
    """The other items of a list whose first is a value."""
    while (more := _MORE.match(text, end)) and _stands_below(text, match, more["value"], sort, True):
        yield (_kind(text, match, sort), *more.span("value"))
        end = more.end()


def columns(text: str) -> Iterator[Span]:
    """Values in a table's column whose head is a secret's name, read as if the name stood above each."""
    rules = [*_RULE.finditer(text)] if "|" in text and "--" in text else []
    for rule, last in zip(rules, [*(each.start() for each in rules[1:]), len(text)], strict=False):
        ends = [
            0,
            *(line.end() for line in _LINE_END.finditer(text, max(0, rule.start() - 400), rule.start())),
        ]
        heads = {
            n: head for n, (_, head) in enumerate(_cells(text, ends[-1], rule.start())) if _STEM.search(head)
        }
        below = _LINE_END.match(text, rule.end())
        at = below.end() if heads and below else last
        while at < last:
            line = _LINE_END.search(text, at, last)
            end, after = line.span() if line else (last, last)
            cells = _cells(text, at, end)
            if len(cells) < 2 and "|" not in text[at:end]:
                break
            for number, (start, cell) in enumerate(cells):
                above = f"{heads.get(number, '')}:\n"
                found = assignments(above + cell, (above + cell).lower()) if number in heads else ()
                yield from ((kind, start + a - len(above), start + b - len(above)) for kind, a, b in found)
            at = after


def _cells(text: str, start: int, end: int) -> list[tuple[int, str]]:
    """The cells of a table's row, each with where it begins."""
    found, at = [], start
    for cell in text[start:end].split("|"):
        found.append((at, cell))
        at += len(cell) + 1
    outer = (
        not found[0][1].rpartition('"')[2].strip(" \t>*+-")
    )  # `| a | b |`: what stands before the first bar is no cell
    return found[1:] if outer and len(found) > 1 else found


_VERB = r"(?:is|was|are|ist|war|wird|est|était|es|era|é)"
_THAT = r"(?:that|this|it|which|das|dies|ce|cela|ça|eso|ese|esa|esto|isso|esse)"
_WHOSE = (
    r"(?:the|my|our|your|his|her|their|its|mein|unser|dein|ihr|sein|das|le|la|les|mon|notre|votre|son|el|mi"
    r"|tu|su|nuestra|minha|nossa)"
)
# `… is my password`, `… (that is the password)`, `… ist das WLAN-Passwort`: the words behind say what it was.
_BEFORE_NAME = (
    r"(?i)(?<![\w/.@:=-])(?:(?P<quote>[\"'`“„«])(?P<quoted>[^\n\"'`“”„«»]{4,120})\\?[\"'`”“»]"
    r"|(?P<bare>[^\s\"'`“”„«»()<>]{4,120}+))[*)]{0,3}"
    rf"(?P<link>,?(?:\s|\\n){{1,6}}{_VERB}|[,;:]?(?:\s|\\n){{0,6}}(?:[—–-] )?[(\[]?"
    rf"(?:{_THAT}(?:\s{_VERB}|['’]s)|c['’](?:est|était))|\s{{1,6}}(?:as|als|comme|como)|\s{{0,6}}(?P<loose>[(\[]|<-|←|—|–))"
    rf"(?:\s{{0,6}}(?P<whose>{_WHOSE})(?=\s))?\s{{0,6}}(?P<words>(?:[\w.'/-]{{1,24}}\s){{0,3}}[\w-]{{0,24}})\Z"
)
_NAME = (
    r"(?i)(?P<password>pass(?:[ -]?(?:word|phrase|code)|wd|wort)|kennwort|mot de passe|contrase[ñn]a|senha"
    r"|clave(?!\s(?:para|del? (?!wi-?fi|router|correo|servidor|cuenta|red\b)))|пароль)"
    r"|(?P<key>key)|(?P<token>token)|(?P<secret>secret)|(?P<pin>(?-i:PIN))"
)
_STEMS = ("pass", "kennwort", "mot de passe", "contrase", "clave", "senha", "пароль", "key", "token",
          "secret", "pin")  # fmt: skip
_AFTER_NAME = (
    r"[\"'`*)\]\\]{0,4}(?:\s{0,4}(?:\Z|[.,;!?)\]\n\"]|\\n|\\\")|\s(?P<on>(?:for|of|on|at|in|here|there|now|since"
    r"|fürs?|von|vom|zum|im|am|auf|bei|pour|de|du|des|sur|del|para|en|do|da"
    r"|(?:and|but|so|und|et|y|e)\s(?!\w*(?:token|user|login|secret|key|auth|session|account)))\b))"
)
_NO_NAME_OF_IT = re.compile(
    r"(?i)\b(?:where|when|why|how|what|who|whose|before|after|behind|under|without)\b"
)


def named_behind(text: str, low: str) -> Iterator[Span]:
    """Values that the words behind them call a secret."""
    for stem in _STEMS:
        at = low.find(stem)
        while at >= 0:
            name = compiled(_NAME).match(text, at)
            ends = compiled(_AFTER_NAME).match(text, name.end()) if name else None
            match = compiled(_BEFORE_NAME).search(text[max(0, at - 200) : at]) if ends else None
            if name and ends and match and (span := _called(text, name, ends, match)):
                yield ("api-key" if name["key"] else str(name.lastgroup), *span)
            at = low.find(stem, at + len(stem))


def _called(text: str, name: Match[str], ends: Match[str], match: Match[str]) -> tuple[int, int] | None:
    """Where the value is that is called so, or None where these words speak of something else."""
    which = "quoted" if match["bare"] is None else "bare"
    start = max(0, name.start() - 200) + match.start(which)
    value = match[which].rstrip(".,;:" if which == "bare" else "")
    words = match["words"] if name[0].lower() != "senha" else re.sub(r"\b[ao] ", "", match["words"])
    apart = match[which].endswith(".") or "\n" in match["link"]  # its own sentence may go on elsewhere
    if FUNCTION_WORD.search(words) or _NO_NAME_OF_IT.search(words) or placeholder(value):
        return None
    if name["pin"]:
        good = re.fullmatch(r"\d{4,10}", value) is not None
    elif not name["password"]:
        wanted = name["key"] is None or KEY_BEFORE.search(text[max(0, name.start() - 16) : name.start()])
        good = wanted is not None and random_looking(value, 16)
    elif apart and ends["on"]:
        good = False
    elif " " in value:
        good = _is_phrase(value)
    elif match["loose"] in ("(", "[", "—", "–") and (ends["on"] or not match["whose"]):
        good = ends["on"] is None and len(value) >= 8 and strong_password(value) and mixed(value) >= 0.4
    else:
        words_of_it = match["whose"] and re.fullmatch(r"[A-Za-z]{3,}(?:-[A-Za-z]{3,}){3,}", value)
        good = strong_password(value) or bool(words_of_it) or (which == "quoted" and len(value) >= 6)
    return (start, start + len(value)) if good else None
