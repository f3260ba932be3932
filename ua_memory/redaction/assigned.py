"""Secrets that only their names give away: `password = …`, `"api_key": "…"`, `the token is …`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from re import Match

from .names import LONGEST, PROVIDERS, STEMS, assignment, sort_of
from .values import FUNCTION_WORD, mixed, placeholder, random_looking, strong_password

Span = tuple[str, int, int]  # kind, start, end

_REST = re.compile(r"[^\s\"'`<>]*")
_SHELL = re.compile(r"\s*(?:export |set |ENV |-e |- )?\w*")
_COMMAND = re.compile(r"(?:.*[\s\"'`])?(?:(?:ENV|ARG|setenv|export|set(?: -\w+)?) \w*|--[\w-]*|login .*)")


def _line_before(text: str, match: Match[str]) -> str:
    return text[max(text.rfind("\n", 0, match.start()) + 1, match.start() - 80) : match.start()]


def _bare(text: str, match: Match[str]) -> tuple[str, bool]:
    """The bare value without what its language puts after it, and whether it ends the line."""
    value, sign = match["bare"], match["sign"]
    shell = sign.strip() == "=" and _SHELL.fullmatch(_line_before(text, match)) is not None
    if not shell or value.endswith((",", ")")):
        value = re.split(r"[,;&|\\]", value, maxsplit=1)[0].rstrip(".:)]}*\\?")
    end = match.start("bare") + len(value)
    rest = text[end : end + 4].lstrip(" ,.;*|)]}\\?")
    joined = sign == "=" or text[end : end + 1] in {"&", ";", '"', "'", "`", "<", ","}
    return value, joined or not rest or rest[0] in "\n#\r"


def _variable(text: str, end: int, value: str) -> bool:
    """`connect(password=secret_value)`: a bare word before a bracket is a variable."""
    plain = value.isidentifier() and not any(map(str.isdigit, value))
    return plain and text[end : end + 1] in {")", ",", "(", ";"}


def _listed(text: str, match: Match[str], value: str) -> bool:
    """`"password", "…"`: a call may set one so, a list of words does not."""
    before = text[max(0, match.start() - 44) : match.start()]
    return not strong_password(value) or not re.search(r"[(\[]\\{0,3}[\"'][\w.-]{0,40}$", before)


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
    if sort == "password":
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
            at = low.find(stem, max(at + len(stem), span[1] if span else 0))
