"""Finds secrets in a text, and redacts them before it is written, indexed or sent."""

from __future__ import annotations

import re
from base64 import b64decode, urlsafe_b64decode
from binascii import Error as BadBase64
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import islice, pairwise
from math import log2
from re import Match, Pattern
from types import MappingProxyType
from typing import Any

from ua_memory.errors import Malformed
from ua_memory.text.patterns import Phrases, late, table

# -- names -------------------------------------------------------------------------------------------------
# Names of secrets (`password`, `api_key`), how a value is assigned to them, and names that only mention one.


Span = tuple[str, int, int]
"""(kind, start, end) of a secret in a text."""
Place = tuple[int, int]

# Every name contains one of these. They are searched for first, since that is cheap.
_NAME_STEMS = (
    "pass", "pwd", "pw", "contrase", "kennwort", "mot de passe", "mdp", "clé wi", "wlan-schl", "senha",
    "wachtw", "palavra", "key", "token", "jwt", "otp", "pat",
    "secret", "credential", "auth", "string", "csrf",
)  # fmt: skip
_PHRASES = Phrases("secret_phrases.txt")
"""What a secret is called, what stands in its place, and what only looks like one."""
LONGEST = 512  # characters of a value that are checked; it is redacted to its end

_ENV_KEY = late(r"[A-Z0-9]_$")  # `LINEAR_KEY=`
_CONNECTION_STRING = late(r"(?i)connection[ _-]?$")


def _secret_category(text: str, match: Match[str]) -> str | None:
    """`password`, `key`, `token` or `secret`; None where the name only mentions a secret."""
    category = next(g for g in ("password", "key", "token", "secret") if match[g])
    before = text[max(0, match.start() - 16) : match.start()]
    only_speaks = _PHRASES["no password prefix"] if category == "password" else _PHRASES["no secret prefix"]
    if _PHRASES["no secret suffix"].fullmatch(match["suffix"]) or only_speaks.search(before):
        return None
    if category == "key" and not (_PHRASES["key qualifier"].search(before) or _ENV_KEY.search(before)):
        return None
    if match["secret"] == "string" and not _CONNECTION_STRING.search(before):
        return None
    return category


# -- values ------------------------------------------------------------------------------------------------
# Whether a value is a secret, rather than code, a placeholder, an identifier or a word.


_HEX = late(r"[0-9a-f]+|[0-9A-F]+")
_UUID = late(r"(?i)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def entropy(value: str) -> float:
    """Shannon entropy in bits per character."""
    size = len(value)
    return -sum(n / size * log2(n / size) for n in Counter(value).values()) if size else 0.0


def _char_class(char: str) -> int:
    return 0 if char.islower() else 1 if char.isupper() else 2 if char.isdigit() else 3


def class_changes(value: str) -> float:
    """The share of neighbouring characters that differ in class (lower, upper, digit, other): about 0.6 in
    random base64, below 0.3 in identifiers."""
    classes = [_char_class(c) for c in value]
    return sum(a != b for a, b in pairwise(classes)) / max(1, len(classes) - 1)


def is_hex(value: str) -> bool:
    """Whether a value is a hex number or UUID: a hash, most of the time."""
    return _HEX.fullmatch(value) is not None or _UUID.fullmatch(value) is not None


def is_random(value: str, least: int = 10) -> bool:
    """Whether a value looks generated: a long hex number, or letters and digits that form no words."""
    if len(value) < least or entropy(value) < 2.5 or any(map(str.isspace, value)):
        return False
    letters, digits = any(map(str.isalpha, value)), any(map(str.isdigit, value))
    if is_hex(value):
        return len(value) >= 16 and letters and digits
    pieces = [p for p in re.split(r"[-_./:+=~@]", value) if p]
    if len(pieces) > 1 and all(_PHRASES["identifier part"].fullmatch(p) for p in pieces):
        return False  # words and numbers: prod-db-2024, gpt-4o-2024-08-06
    if letters and digits:
        words = (
            r"(?:[A-Z]?[a-z]{3,}|\d{1,4})+" if len(value) >= 20 else r"(?:[A-Z]?[a-z]{3,}|[A-Z]{3,}|\d{1,4})+"
        )
        if _PHRASES["identifier part"].fullmatch(value) or re.fullmatch(words, value):
            return False  # getUser2, Sonnet45
        return class_changes(value) >= 0.2 or (len(value) >= 16 and entropy(value) >= 3.2)
    if re.fullmatch(r"(?:[A-Z2-7]{8}){2,8}", value):
        return entropy(value) >= 3.3  # base32, as one-time passwords use it
    return letters and len(value) >= 20 and class_changes(value) >= 0.3 and entropy(value) >= 3.6


def is_very_random(value: str) -> bool:
    """Whether a value is a secret even without a name: 24 characters or more of three classes, well mixed."""
    if _PHRASES["generated id"].fullmatch(value):
        return False
    return (
        len(value) >= 24
        and {0, 1, 2} <= {_char_class(c) for c in value}
        and entropy(value) >= 3.9
        and sum(map(str.isdigit, value)) >= 2
        and class_changes(value) >= 0.38
        and max(map(len, re.split(r"[/_-]", value))) >= 12
    )


def is_strong_password(value: str) -> bool:
    """Whether a value looks like no ordinary word: six characters or more, letters with digits or marks."""
    if len(value) < 6 or _PHRASES["numeric"].fullmatch(value) or _PHRASES["file or host"].fullmatch(value):
        return False
    letters, digits = any(map(str.isalpha, value)), any(map(str.isdigit, value))
    marks = any(c in "!@#$%^&*+=?~" for c in value[1:])
    return letters and ((marks and not re.fullmatch(r"[A-Za-z'/-]+[!?*]+", value)) or digits)


def is_placeholder(value: str) -> bool:
    """Whether a value is code, a reference, a type, a placeholder or a common word, and so no secret."""
    bare = value.strip(" *_:;,.!?()[]{}").lower()
    return (
        len(set(value)) < 3
        or _PHRASES["placeholder"].fullmatch(bare) is not None
        or _PHRASES["code or reference"].match(value) is not None
    )


# -- kinds -------------------------------------------------------------------------------------------------
# Patterns of secrets that are recognised without a name: provider tokens, keys and hashes.


SecretPattern = tuple[str, tuple[str, ...], int, str]
"""(kind, literals of which one must occur, how many characters before it the secret may begin, pattern)."""


@cache
def secret_patterns() -> tuple[SecretPattern, ...]:
    """The rows of `data/secrets.txt`, which explains them."""
    found = ((heading.split(), pattern) for heading, pattern in table("secrets.txt"))
    return tuple((kind, tuple(some), int(back), pattern) for (kind, back, *some), pattern in found)


@cache
def _patterns_by_prefix() -> tuple[Mapping[tuple[str, ...], set[int]], set[int]]:
    """{first three characters of a literal: numbers of its patterns}, and the patterns to try on any text."""
    by_prefix: dict[tuple[str, ...], set[int]] = {}
    always: set[int] = set()
    for number, (_, literals, _, _) in enumerate(secret_patterns()):
        if not literals or min(map(len, literals)) < 3:
            always.add(number)
        for literal in literals:
            by_prefix.setdefault(tuple(literal[:3]), set()).add(number)
    return by_prefix, always


def _candidate_patterns(text: str) -> Iterator[SecretPattern]:
    """The patterns whose literals may occur in a text. Searching for each of 300 takes ten times as long."""
    by_prefix, always = _patterns_by_prefix()
    present = by_prefix.keys() & set(zip(text, text[1:], text[2:], strict=False))
    return map(secret_patterns().__getitem__, sorted(always.union(*map(by_prefix.__getitem__, present))))


@cache
def compiled(pattern: str) -> Pattern[str]:
    """`re.compile`, once for each pattern and only if it is used."""
    return re.compile(pattern)


# -- assigned ----------------------------------------------------------------------------------------------
# Secrets that are recognised by their names: `password = …`, `"api_key": "…"`, `the token is …`, `… is my
# password`, and the columns of a table.


_REST = late(r"[^\s\"'`<>]*")
_SHELL_PREFIX = late(r"\s*(?:export |set |ENV |-e |- )?\w*")
_HEADING = late(r"(?:.*(?:\"|\\n))?[ \t>]*(?:[-*+] )?(?:#{1,6} |[*_]{1,2})[^\n]{0,60}")
_STEM = late("|".join(_NAME_STEMS), re.IGNORECASE)
_VALUE_END = late(r"[,;|\\]|&(?=&|[\w.%[\]-]*=|#?\w+;|$)")  # `&` only where a query or a shell goes on
_CLAUSE_END = late(r"\s*(?:\Z|[\n.,;)\]!?|]|\\n|(?:for|para|on|und|and|y) )")


def _line_before(text: str, match: Match[str]) -> str:
    return text[max(text.rfind("\n", 0, match.start()) + 1, match.start() - 80) : match.start()]


def _bare_value(text: str, match: Match[str]) -> tuple[str, bool]:
    """(a value without quotes and without the syntax after it, whether it ends the line)."""
    value, sign = match["bare"], match["sign"]
    shell = sign.strip() == "=" and _SHELL_PREFIX.fullmatch(_line_before(text, match)) is not None
    if not shell or value.endswith((",", ")")):
        value = _VALUE_END.split(value, maxsplit=1)[0].rstrip(".:)]}*\\?")
    end = match.start("bare") + len(value)
    rest = text[end : end + 4].lstrip(" ,.;*|)]}\\?")
    joined = sign == "=" or text[end : end + 1] in {"&", ";", '"', "'", "`", "<", ","}
    return value, joined or not rest or rest[0] in "\n#\r" or text.startswith(("\\n", "\\r\\n"), end)


def _is_variable(text: str, end: int, value: str) -> bool:
    """Whether a value is a variable: a plain word before a bracket, `connect(password=secret_value)`."""
    plain = value.isidentifier() and not any(map(str.isdigit, value))
    return plain and text[end : end + 1] in {")", ",", "(", ";"}


def _is_in_list(text: str, match: Match[str], value: str) -> bool:
    """Whether `"password", "…"` is a list of words, rather than a call that sets a password."""
    before = text[max(0, match.start() - 44) : match.start()]
    return not is_strong_password(value) or not re.search(r"[(\[]\\{0,3}[\"'][\w.-]{0,40}$", before)


def _is_on_next_line(match: Match[str]) -> bool:
    """Whether the value is on another line, and neither a YAML block nor a `value:` marks it."""
    sign = match["sign"]
    return match["block"] is None and "value" not in sign and _PHRASES["line end"].search(sign) is not None


def _is_value_below(text: str, match: Match[str], value: str, category: str, alone: bool = True) -> bool:
    """Whether the next line is a value, and not the next sentence."""
    before = _line_before(text, match)
    if not alone or " " in value or _PHRASES["about people"].search(before):
        return False
    if _PHRASES["only line end"].match(match["sign"]) and not _HEADING.fullmatch(before):
        return False
    if category == "password":
        return is_strong_password(value) or (match["quoted"] is not None and "=" in match["sign"])
    return is_random(value, 12)


def _is_password(text: str, match: Match[str], value: str, alone: bool) -> bool:
    sign, name, line = match["sign"].strip(), match["password"].lower(), _line_before(text, match)
    if sign and sign.split()[-1][-1] in "=:>|,-→(":
        variable = value.isidentifier() and "_" in value and not any(map(str.isdigit, value))
        plain = alone and not variable and name != "pass" and not (match["service"] or match["whose"])
        return not value.endswith(":") and (is_strong_password(value) or plain or is_random(value))
    flag = re.search(r"--[\w-]{0,20}$", line) is not None
    if name in {"pass", "passes"} and not flag and not line.lower().endswith(" with "):
        return False
    if sign or _PHRASES["command"].fullmatch(line):
        return is_strong_password(value) or (flag and alone)
    if not is_strong_password(value) or len(value) < 7:
        return False
    odd = sum(map(str.isdigit, value)) >= 2 and (value != value.lower() or not value.isalnum())
    odd = odd or class_changes(value) >= 0.4 or match["quoted"] is not None
    if match["quoted"] is not None or _PHRASES["word and number"].fullmatch(value) is None:
        return odd
    if _PHRASES["topic"].search(value) is not None:
        return odd and value.isalnum()
    return odd or _CLAUSE_END.match(text, match.start("bare") + len(value)) is not None


def _is_passphrase(value: str) -> bool:
    """Whether quoted words are a passphrase and not a sentence."""
    words = value.split()
    if _PHRASES["function word"].search(value) or re.search(r"(?i)secret|passw", value):
        return False
    return len(words) >= 3 or any(map(is_strong_password, words))


def _value_span(text: str, match: Match[str], category: str) -> Place | None:
    """(start, end) of the secret value of an assignment, None where it is no secret."""
    sign = match["sign"].strip()
    if match["quoted"] is not None:
        value, start, alone = match["quoted"], match.start("quoted"), True
        if " " in value.strip() and (category != "password" or not _is_passphrase(value)):
            return None
    else:
        (value, alone), start = _bare_value(text, match), match.start("bare")
        if _is_variable(text, start + len(value), value):
            return None
    if match["service"] and category != "password":
        return None
    if len(value) < 4 or is_placeholder(value) or (sign == "," and _is_in_list(text, match, value)):
        return None
    if _is_on_next_line(match):
        is_secret = _is_value_below(text, match, value, category, alone)
    elif not sign and match["quoted"] and text.startswith(";", match.end()) and is_random(value):
        is_secret = True  # `api_key "Xk9…";`
    elif category == "password":
        is_secret = _is_password(text, match, value, alone)
    elif not sign:  # `the API key Xk9…`
        is_secret = is_random(value, 16) and not re.search(r"[/.]", value)
    else:
        is_secret = is_random(value, 8 if class_changes(value) >= 0.3 else 10)
    end = start + len(value)
    if is_secret and len(value) == LONGEST and (rest := _REST.match(text, start)):
        end = max(end, rest.end())
    return (start, end) if is_secret else None


def _assignment_kind(text: str, match: Match[str], category: str) -> str:
    around = _PHRASES["providers"].findall(text[max(0, match.start() - 32) : match.start()])
    if category == "password" or not around:
        return "api-key" if category == "key" else category
    provider = around[-1].lower()
    return f"{provider}-{'secret' if provider == 'aws' else category}"


def _assignments(text: str, lowered: str) -> Iterator[Span]:
    """Values assigned to names of secrets. `lowered` is the text with A–Z in lower case, same offsets."""
    for stem in _NAME_STEMS:
        at = lowered.find(stem)
        while at >= 0:
            match = _PHRASES["assignment"].match(text, at)
            category = _secret_category(text, match) if match else None
            span = _value_span(text, match, category) if match and category else None
            if match and category and span:
                yield (_assignment_kind(text, match, category), *span)
                if _is_on_next_line(match) and match["sign"].endswith(("- ", "* ", "+ ")):
                    yield from _list_items(text, match, category, span[1])
            at = lowered.find(stem, max(at + len(stem), span[1] if span else 0))


def _list_items(text: str, match: Match[str], category: str, end: int) -> Iterator[Span]:
    """The other items of a list whose first item is a secret."""
    item = _PHRASES["list item"]
    while (more := item.match(text, end)) and _is_value_below(text, match, more["value"], category):
        yield (_assignment_kind(text, match, category), *more.span("value"))
        end = more.end()


def _table_columns(text: str) -> Iterator[Span]:
    """Values in a table column that is headed by a secret's name. Each is read as if below the name."""
    line_end = _PHRASES["line end"]
    rules = [*_PHRASES["table rule"].finditer(text)] if "|" in text and "--" in text else []
    for rule, last in zip(rules, [*(each.start() for each in rules[1:]), len(text)], strict=False):
        ends = [0, *(one.end() for one in line_end.finditer(text, max(0, rule.start() - 400), rule.start()))]
        heads = {
            n: head for n, (_, head) in enumerate(_cells(text, ends[-1], rule.start())) if _STEM.search(head)
        }
        below = line_end.match(text, rule.end())
        at = below.end() if heads and below else last
        while at < last:
            line = line_end.search(text, at, last)
            end, after = line.span() if line else (last, last)
            cells = _cells(text, at, end)
            if len(cells) < 2 and "|" not in text[at:end]:
                break
            for number, (start, cell) in enumerate(cells):
                above = f"{heads.get(number, '')}:\n"
                found = _assignments(above + cell, (above + cell).lower()) if number in heads else ()
                yield from ((kind, start + a - len(above), start + b - len(above)) for kind, a, b in found)
            at = after


def _cells(text: str, start: int, end: int) -> list[tuple[int, str]]:
    """(offset, text) of the cells of a table row."""
    found, at = [], start
    for cell in text[start:end].split("|"):
        found.append((at, cell))
        at += len(cell) + 1
    # `| a | b |`: what stands before the first bar is no cell.
    outer = not found[0][1].rpartition('"')[2].strip(" \t>*+-")
    return found[1:] if outer and len(found) > 1 else found


_LATER_STEMS = ("pass", "kennwort", "wachtw", "palavra", "mot de passe", "contrase", "clave", "senha",
          "пароль", "key", "token", "secret", "pin")  # fmt: skip


def _values_before_names(text: str, lowered: str) -> Iterator[Span]:
    """Values whose name comes after them: `… is my password`."""
    for stem in _LATER_STEMS:
        at = lowered.find(stem)
        while at >= 0:
            name = _PHRASES["later name"].match(text, at)
            ends = _PHRASES["after name"].match(text, name.end()) if name else None
            match = _PHRASES["value before name"].search(text[max(0, at - 200) : at]) if ends else None
            if name and ends and match and (span := _value_before_name(text, name, ends, match)):
                yield ("api-key" if name["key"] else str(name.lastgroup), *span)
            at = lowered.find(stem, at + len(stem))


def _value_before_name(text: str, name: Match[str], ends: Match[str], match: Match[str]) -> Place | None:
    """(start, end) of the value before a name, None where the words are about something else."""
    which = "quoted" if match["bare"] is None else "bare"
    start = max(0, name.start() - 200) + match.start(which)
    value = match[which].rstrip(".,;:" if which == "bare" else "")
    words = match["words"] if name[0].lower() != "senha" else re.sub(r"\b[ao] ", "", match["words"])
    apart = match[which].endswith(".") or "\n" in match["link"]  # its own sentence may go on elsewhere
    if (
        _PHRASES["function word"].search(words)
        or _PHRASES["question word"].search(words)
        or is_placeholder(value)
    ):
        return None
    if name["pin"]:
        is_secret = re.fullmatch(r"\d{4,10}", value) is not None
    elif not name["password"]:
        wanted = name["key"] is None or _PHRASES["key qualifier"].search(
            text[max(0, name.start() - 16) : name.start()]
        )
        is_secret = wanted is not None and is_random(value, 16)
    elif apart and ends["on"]:
        is_secret = False
    elif " " in value:
        is_secret = _is_passphrase(value)
    elif match["loose"] in ("(", "[", "—", "–") and (ends["on"] or not match["whose"]):
        is_mixed = is_strong_password(value) and class_changes(value) >= 0.4
        is_secret = ends["on"] is None and len(value) >= 8 and is_mixed
    else:
        hyphenated = match["whose"] and re.fullmatch(r"[A-Za-z]{3,}(?:-[A-Za-z]{3,}){3,}", value)
        is_secret = is_strong_password(value) or bool(hyphenated) or (which == "quoted" and len(value) >= 6)
    return (start, start + len(value)) if is_secret else None


# -- cards -------------------------------------------------------------------------------------------------
# Numbers of payment cards: an issuer's first digits, its lengths, and the check digit (Luhn).
#
# One number in ten passes the check, so that alone is not enough: order numbers, ids, telephone numbers and
# timestamps stay. A number in the groups of a card, or with a prefix and length that an issuer uses today, is
# redacted; a rarer one only next to a word for a card.


_DIGIT_GAP = "[ .\u00a0\u2007\u2009\u202f\u2010\u2011\u2012\u2013-]"
# In fours (a fifth group is the end of a long number, or the three digits on the back), as Amex and Diners
# print it, or in one piece. Not inside a word, a path, a decimal or an account's number in fours (IBAN).
_CARD_NUMBER = (
    r"(?:(?<![A-Za-z0-9_/#+-])(?<!\d\.)|(?<=\\[nrt])|(?<=%20))"
    rf"(?:(?<!\d{{4}}{_DIGIT_GAP})(?<![A-Z]{{2}}\d{{2}}{_DIGIT_GAP})"
    rf"(?<![A-Z]{{2}}\d{{2}}{_DIGIT_GAP}[A-Z]\d{{3}}{_DIGIT_GAP})\d{{4}}(?P<four>{_DIGIT_GAP})\d{{4}}(?P=four)\d{{4}}(?P=four)\d{{4}}"
    rf"(?P<rest>(?P=four)\d{{3}}(?!\d))?(?!{_DIGIT_GAP}(?!20\d\d|0[1-9]\d\d|1[0-2]\d\d)\d{{4}}(?!\d))"
    rf"|\d{{4}}(?P<six>{_DIGIT_GAP})\d{{6}}(?P=six)\d{{4,5}}|\d{{12,19}})(?![A-Za-z0-9_]|\.\w|-\d)"
)
_EIGHT_DIGITS = late(rf"\d{{4}}{_DIGIT_GAP}?\d{{4}}")


def passes_luhn(digits: str) -> bool:
    """Whether the last digit is the check digit of the others."""
    doubled = (sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2])
    return (sum(doubled) + sum(map(int, digits[-1::-2]))) % 10 == 0


def cards(text: str) -> Iterator[tuple[str, int, int]]:
    """The spans of card numbers."""
    if not _EIGHT_DIGITS.search(text):  # most texts: no pattern is compiled for them
        return
    card_word, label_word = _PHRASES["card word"], _PHRASES["card label"]
    common, rarer = _PHRASES["common issuers"], _PHRASES["rare issuers"]
    for match in compiled(_CARD_NUMBER).finditer(text):
        start = match.start()
        before = text[max(text.rfind("\n", 0, start) + 1, start - 60) : start]
        behind = text[match.end() : match.end() + 30].split("\n", 1)[0]
        has_card_word, label = card_word.search(before), label_word.search(before)
        grouped, named = match["four"] or match["six"], has_card_word or card_word.search(behind)
        sure = grouped and named  # `my card for the order is 4111 1111 …`
        if label and not sure and (label["thing"] or not (has_card_word or (grouped and label["number"]))):
            continue
        rare = named or grouped
        for end in (match.end(), match.start("rest")) if match["rest"] else (match.end(),):
            digits = "".join(str(int(digit)) for digit in text[start:end] if digit.isdecimal())
            if (common.fullmatch(digits) or (rare and rarer.fullmatch(digits))) and passes_luhn(digits):
                yield ("card-number", start, end)
                break


# -- redaction ---------------------------------------------------------------------------------------------
# `find` returns the spans of secrets, and `redact` replaces them by `[redacted: kind]`.
#
# Five sources: patterns (`secret_patterns`), card numbers, values of names, random runs, and all of these
# inside base64. The bank's settings add patterns of their own.
#
# Nothing here logs, stores or raises with the text of a secret.


MARKER = late(r"\[redacted: [a-z][a-z0-9-]{0,39}\]")
_KIND = late(r"[a-z][a-z0-9-]{0,39}")
_LONG_RUN = late(r"[A-Za-z0-9+/_-]{16,}(?:(?<=[A-Za-z0-9+/]{60})\r?\n[ \t>]{0,12}[A-Za-z0-9+/]{4,})*={0,2}")
_MAX_DECODED = 262_144  # characters of base64 that are decoded
_ASCII_LOWER = {c: c + 32 for c in range(65, 91)}
_GENERIC_KIND_NAMES = """
    password secret token api-key high-entropy url-password url-token bearer-token basic-auth azure-sas
    password-hash
"""
_GENERIC_KINDS = frozenset(_GENERIC_KIND_NAMES.split())
NO_PATTERNS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Secret:
    """One secret: `text[start:end]` is the value alone, without its name or the user of its URL."""

    kind: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Redacted:
    """`text` with `[redacted: kind]` for each secret, and the `counts` of each kind."""

    text: str
    counts: Mapping[str, int]


def redact(text: str, patterns: Mapping[str, str] = NO_PATTERNS) -> Redacted:
    """Replace every secret; doing so twice changes nothing. `patterns` are the bank's own: {kind: regex}.

    Raises Malformed, which names the setting, for a kind or regex that is not valid.
    """
    counts: Counter[str] = Counter()
    while found := find(text, patterns):  # text next to a marker may match anew: repeat until nothing does
        pieces, at = [], 0
        for secret in found:
            pieces += [text[at : secret.start], f"[redacted: {secret.kind}]"]
            at = secret.end
            counts[secret.kind] += 1
        text = "".join((*pieces, text[at:]))
    return Redacted(text, dict(counts))


def redact_lines(text: str, patterns: Mapping[str, str] = NO_PATTERNS) -> str:
    """`redact` that keeps the number of lines, so that line numbers stay right."""
    if not (found := find(text, patterns)):
        return text
    pieces, at = [], 0
    for secret in found:
        lines = "\n" * text.count("\n", secret.start, secret.end)
        pieces += [text[at : secret.start], f"[redacted: {secret.kind}]{lines}"]
        at = secret.end
    return redact("".join((*pieces, text[at:])), patterns).text


def change_texts(value: Any, change: Callable[[str], str], but: Collection[str] = ()) -> Any:
    """A value as of JSON with each string in it changed, except below the keys `but`."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list | tuple):
        return [change_texts(each, change, but) for each in value]
    if isinstance(value, Mapping):
        return {key: each if key in but else change_texts(each, change, but) for key, each in value.items()}
    return value


def find(text: str, patterns: Mapping[str, str] = NO_PATTERNS) -> tuple[Secret, ...]:
    """The secrets of a text, in order and without overlaps; markers are never redacted again.

    Raises Malformed as `redact` does. The time is linear in the length of the text, except for `patterns`.
    """
    own = [(kind, _compile_pattern(kind, regex)) for kind, regex in patterns.items()]
    spans = [(kind, *m.span()) for kind, regex in own for m in regex.finditer(text)]
    spans += _find_unencoded(text)
    spans += _find_encoded(text)
    return tuple(_merge_spans(_without_markers(text, spans), frozenset(patterns)))


def _compile_pattern(kind: str, regex: str) -> re.Pattern[str]:
    """A pattern of the settings. Raises Malformed."""
    if not _KIND.fullmatch(kind):
        raise Malformed(
            "a kind is a-z, 0-9 and -, at most 40 characters",
            where=f"ua-memory.toml: redact.{kind}",
            hint="rename it in ua-memory.toml",
        )
    try:
        return re.compile(regex)
    except (re.error, OverflowError, RecursionError) as error:
        raise Malformed(
            f"not a regular expression: {error}",
            where=f"ua-memory.toml: redact.{kind}",
            hint="correct it in ua-memory.toml",
        ) from error


def _find_unencoded(text: str) -> list[Span]:
    """All secrets but those in base64."""
    low = text.lower() if text.isascii() else text.translate(_ASCII_LOWER)
    by_name = [*_assignments(text, low), *_values_before_names(text, low), *_table_columns(text)]
    return [*_match_patterns(text), *by_name, *cards(text), *_random_runs(text)]


def _match_patterns(text: str) -> Iterator[Span]:
    """Secrets that match one of `secret_patterns`."""
    runs = [m.start() for m in re.finditer(r"[A-Za-z0-9_-]{22,}", text)]
    # Past the `n` of `\\n`, the `3D` of `%3D`.
    heads = [head for run in runs for head in (run, run + 1, run + 2)]
    for kind, literals, back, pattern in _candidate_patterns(text):
        places = _search_ranges(text, literals, back) if literals else ((head, head) for head in heads)
        done = 0
        for first, last in places:
            if last < done:
                continue
            regex = compiled(pattern)
            tries = (regex.match(text, at, last + 400) for at in range(first, last + 1))
            match = regex.match(text, first) if first == last else next(filter(None, tries), None)
            if match is None:
                continue
            done = match.end()
            group = 1 if regex.groups else 0
            if kind not in _VALUE_CHECKS or _VALUE_CHECKS[kind](match[group]):
                yield (kind, *match.span(group))


def _search_ranges(text: str, literals: tuple[str, ...], back: int) -> Iterator[tuple[int, int]]:
    """(first, last) offset at which a secret may begin, for each occurrence of a literal."""
    for literal in literals:
        at = text.find(literal)
        while at >= 0:
            yield (max(0, at - back), at)
            at = text.find(literal, at + len(literal))


def _is_word_list(value: str) -> bool:
    return not _PHRASES["function word"].search(value) and not _PHRASES["no word list"].search(value)


def _is_login(value: str) -> bool:
    return is_strong_password(value.rstrip(".)")) and not is_placeholder(value)


def _has_letters(value: str) -> bool:
    return not is_placeholder(value) and any(map(str.isalpha, value))


def _is_random_token(value: str) -> bool:
    return not is_placeholder(value) and is_random(value, 12)


# A match may still be a variable or a placeholder: {kind: whether a value is a secret}.
_VALUE_CHECKS: Mapping[str, Callable[[str], bool]] = {
    "url-password": _has_letters,
    "password": _has_letters,
    "url-token": _is_random_token,
    "bearer-token": _is_random_token,
    "artifactory-password": _is_random_token,
    "secret": lambda value: not is_placeholder(value) and is_random(value),
    "basic-auth": lambda value: ":" in _decode_base64(value),
    "login": _is_login,
    "seed-phrase": _is_word_list,
    "passphrase": _is_word_list,
}


def _random_runs(text: str) -> Iterator[Span]:
    """Random runs in quotes or after a word for a secret on the line, and AWS secrets near their key id."""
    for match in re.finditer(r"(?<![\w+/-])[A-Za-z0-9+/_-]{24,512}={0,2}(?![\w+/-])", text):
        value, (start, end) = match[0], match.span()
        before = text[max(0, start - 160) : start]
        if is_hex(value):
            if (
                len(value) >= 32
                and _PHRASES["hex label"].search(before)
                and not _PHRASES["hash label"].search(before[-60:])
            ):
                yield ("api-key", start, end)
        elif not is_very_random(value):
            continue
        elif len(value) == 40 and re.search(r"(?i)A[KS]IA|aws", before):
            yield ("aws-secret", start, end)
        elif before.endswith(('"', "'")) and text[end : end + 1] == before[-1]:
            if entropy(value) > 4.3 and not _PHRASES["no secret label"].search(before[-40:]):
                yield ("high-entropy", start, end)
        elif _PHRASES["hash label"].search(before[-24:]) or re.search(r"://\S*$", before):
            continue
        elif _PHRASES["secret label"].search(before):
            yield ("high-entropy", start, end)


def _decode_base64(value: str) -> str:
    """The text of a base64 value, '' where it is no base64 or no text."""
    value = value.rstrip("=")
    try:
        decode = urlsafe_b64decode if "-" in value or "_" in value else b64decode
        decoded = decode(value[: len(value) - (len(value) % 4 == 1)] + "=" * (-len(value) % 4)).decode()
    except (BadBase64, ValueError):
        return ""
    return decoded if sum(c.isprintable() or c.isspace() for c in decoded) == len(decoded) else ""


def _find_encoded(text: str, depth: int = 2) -> Iterator[Span]:
    """Runs of base64 that contain a secret, at any of the four alignments."""
    for match in _LONG_RUN.finditer(text):
        whole = match[0][:_MAX_DECODED]
        run = re.sub(r"\s[ \t>\s]*", "", whole) if "\n" in whole else whole
        for shift in range(4):
            if not _decode_base64(run[shift : shift + 16]):
                continue
            decoded = _decode_base64(run[shift:])
            inner = _find_unencoded(decoded) if decoded else []
            inner += _find_encoded(decoded, depth - 1) if decoded and depth > 1 else ()
            if inner:
                vague = sorted(inner, key=lambda s: s[0] in _GENERIC_KINDS)
                yield (vague[0][0], match.start(), match.end())
                break


def _without_markers(text: str, spans: Iterable[Span]) -> Iterator[Span]:
    """The spans without the `[redacted: …]` markers in them, which are never redacted again."""
    markers = [m.span() for m in MARKER.finditer(text)] if "[redacted: " in text else []
    ends = [end for _, end in markers]
    for kind, start, end in spans:
        for a, b in islice(markers, bisect_right(ends, start), None):
            if a >= end:
                break
            if start < a:
                yield (kind, start, a)
            start = b
        if start < end:
            yield (kind, start, end)


def _merge_spans(spans: Iterable[Span], own: frozenset[str]) -> Iterator[Secret]:
    """Overlapping spans as one. Its kind is an `own` one, then the most specific, then the longest."""

    def specificity(span: Span) -> tuple[bool, bool, bool, int]:
        return (span[0] in own, span[0] not in _GENERIC_KINDS, span[0] != "high-entropy", span[2] - span[1])

    group: list[Span] = []
    end = -1
    for span in sorted(spans, key=lambda s: (s[1], -s[2])):
        if span[1] >= end and group:
            yield Secret(max(group, key=specificity)[0], group[0][1], end)
            group, end = [], -1
        group.append(span)
        end = max(end, span[2])
    if group:
        yield Secret(max(group, key=specificity)[0], group[0][1], end)


# -- answers -----------------------------------------------------------------------------------------------
# "What is the database password?", "wintergreen22": only the question says that the answer is a secret.


_QUESTION_LENGTH, _ANSWER_LENGTH = 300, 200
"""Characters at the end of a turn that may ask for a secret, and of a turn that may answer it."""
_QUOTES = "\"'`.,;:?()<>“”‘’„«»「」"

_VARIABLE = late(r"[A-Z]+(?:_[A-Z]+)*_(?:KEY|TOKEN|SECRET)(?:_\d)?")


def names_secret(text: str) -> bool:
    """Whether a text has a word for a secret: "password", "API key"."""
    return _PHRASES["names secret"].search(text) is not None


def tells_secret(text: str) -> bool:
    """Whether a number or a word with digits follows a word for a secret."""
    return _PHRASES["tells secret"].search(text) is not None


def redact_answer(question: str, answer: str) -> str:
    """A short answer without the secret that the end of the question asks for; else the answer itself."""
    if len(answer) > _ANSWER_LENGTH or not _PHRASES["asks for secret"].search(question[-_QUESTION_LENGTH:]):
        return answer
    words = answer.split()
    if len(words) > 3 and answer.islower() and all(map(str.isalpha, words)) and _is_passphrase(answer):
        return "[redacted: secret]"
    if len(words) > 1 and re.fullmatch(r"[\d ]{4,}\W?", answer):  # 482 913
        return "[redacted: secret]"
    values = {word.strip(_QUOTES) for word in words}
    if not _PHRASES["asks for password"].search(question):  # "Which secret should I use?", "DEPLOY_KEY_2"
        values = {value for value in values if not _VARIABLE.fullmatch(value)}
    for value in sorted(filter(None, values), key=len, reverse=True):
        digits = value.isdigit() and len(value) > 3
        alone = len(words) == 1 and MARKER.search(redact(f"password: {value}").text)
        if digits or alone or (is_strong_password(value) and not is_placeholder(value)):
            answer = answer.replace(value, "[redacted: secret]")
    return answer
