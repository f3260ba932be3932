"""Takes secrets out of text before it is written, indexed or sent."""

from __future__ import annotations

import re
from base64 import b64decode, urlsafe_b64decode
from binascii import Error as BadBase64
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import islice, pairwise
from math import log2
from re import Match, Pattern
from types import MappingProxyType

from ua_memory.errors import Malformed
from ua_memory.text.patterns import late, table

# -- names -------------------------------------------------------------------------------------------------
# Names that promise a secret, how a value is given to them, and names that only speak of one.


Span = tuple[str, int, int]
"""A kind, and where in the text its secret stands."""

# Some part of every name, to be looked for before any pattern is tried.
STEMS = ("pass", "pwd", "pw", "contrase", "kennwort", "mot de passe", "senha", "key", "token", "jwt", "otp",
         "pat", "secret", "credential", "auth", "string", "csrf")  # fmt: skip


def _any(words: str) -> str:
    return "|".join(words.split())


_NAME = (
    r"(?i:(?P<password>pass(?:[ -]?(?:word|phrase)|wd|wort|code)s?|(?<![a-z0-9])pwd|(?-i:(?<=[a-z])Pwd)"
    r"|contrase(?:ñ|n)as?|kennwort|mots? de passe|(?<![a-z])senhas?(?![a-z])"
    r"|(?<![a-z0-9])(?:pass|pw)(?![a-z]))|(?P<key>keys?)"
    r"|(?P<token>tokens?|(?<![a-z])(?:jwt|csrf)(?![a-z])|(?-i:(?<![A-Za-z])(?:PAT|OTP)(?![A-Za-z])))"
    r"|(?P<secret>secrets?|credentials?|auth(?:orization)?(?![a-z])|string))"
)
_GAP = r"(?P<suffix>[\w-]{0,32})(?: #?\d{1,2}(?=:))?(?:\[\d{0,5}\])?(?:\\{0,3}[\"'`*)\]]){0,4}"
# The value stands on the next line: indented, quoted, in a code fence, as an item, as its `value:`.
LINE = r"(?:\r?\n|(?:\\r)?\\n)"
_BREAK = (
    rf"[ \t*]{{0,8}}+(?:\\{{1,2}}(?={LINE}))?{LINE}(?:[ \t>]{{0,40}}+{LINE}){{0,2}}[ \t>]{{0,40}}+"
    rf"(?:[`~]{{3}}[\w-]{{0,20}}{LINE}[ \t>]{{0,40}}+)?(?:[-*+] )?(?:\\?[\"']?value\\?[\"']?\s?[:=]\s?)?"
)
# What joins them: `=`, `:`, a table's `|`, `"value":` of a list, `("` of a call, `is`, `was set to`, a blank,
# the end of a heading.
_SIGN = (
    r"(?P<sign>(?:,|\\n|\s){1,20}\\?[\"']?value\\?[\"']?\s?[:=]\s?"
    rf"|[ \t]{{0,8}}(?:=>|:=|={{1,3}}|!={{1,2}}|::?|->|→|\|)[ \t]{{0,8}}"
    rf"(?:(?P<block>[|>][-+\d]{{0,2}})[ \t]{{0,20}})?(?:{_BREAK})?"
    rf"|[ \t]{{0,4}},[ \t]{{0,4}}(?=\\{{0,3}}[\"'`])|>(?:{_BREAK})?"
    r"|(?:(?: (?:for|of|on|in|to) [\w./@ -]{1,40}?)? (?:is|was|are|to|has been|will be)|['’]s)"
    r"(?: (?:now|still|again|just|changed|set|reset|rotated|updated|switched)){0,3}(?: to| as)?:?"
    rf"(?: (?![ \t\n])|{_BREAK})"
    rf"| ?(?:for|of|on) [\w./@ -]{{1,40}}? ?[:=] {{0,4}}(?:{_BREAK})?|\([ \t]?(?=\\{{0,3}}[\"'`])"
    rf"|[ \t]{{1,4}}|{_BREAK})"
)
_SCHEME = r"(?i:(?:bearer|basic|token|apikey|digest|bot|ssws) {1,4})?"
_VALUE = (
    _SCHEME + r"(?:\*{1,2} ?)?(?:[@fbr](?=\\{0,3}[\"']))?(?:(?P<quote>\\{0,3}[\"'`])" + _SCHEME
    + r"(?P<quoted>(?:(?!(?P=quote))(?:\\.|[^\n\\])){1,512})(?:(?P=quote)|(?<=[^\s\"'`<>\\]{512}))"
    r"|(?P<bare>[^\s\"'`<>]{4,512}))"
)  # fmt: skip
LONGEST = 512  # what is judged of a value; it is taken to its end

PROVIDERS = late(
    "(?i)" + _any("""
        aws heroku azure cloudflare twilio datadog mistral cohere deepgram algolia mailgun
        postmark okta railway segment snyk travis jenkins github gitlab slack stripe google
        openai anthropic pagerduty zendesk intercom mapbox openweather newsapi fastly vercel
        netlify sentry amplitude mixpanel shodan virustotal
    """)
)  # fmt: skip
# `key` alone opens nothing: these words before it do.
KEY_BEFORE = late(
    "(?i)(?:" + _any("""
        api access secret auth priv(?:ate)? sign(?:ing|ature) encrypt(?:ion)? master account
        storage service client licen[cs]e deploy webhook admin app(?:lication)? subscription
        shared consumer db database crypto hmac project server root user integration ingest
        write personal activation product recovery wallet host sdk bot team rest live test hex
        my our your
    """) + "|" + PROVIDERS.pattern[4:] + r")[ _.-]?$"
)  # fmt: skip
_ENV_KEY = late(r"[A-Z0-9]_$")  # `LINEAR_KEY=`
_STRING_BEFORE = late(r"(?i)connection[ _-]?$")
# A name that goes on like this speaks about the secret, it does not hold it.
_ABOUT = late(
    r"(?i)[_-]?(?:" + _any(r"""
        ids? names? path files? env ur[li]s? len length count fields? polic(?:y|ies) types? ttl
        expir\w* rotat\w* reset\w* manager hint limits? usage budget window arn refs? reference
        version size prefix store provider endpoint header param\w* strength min\w* max\w* less
        boards? words? pairs? iz\w* is\w* or ors ed ing ary e ration stor\w* book ring man port
        age enger ive ion through thru ent ch status state error handler changed at since until
        digest algo\w* hash
    """)
    + r")(?![a-z]).*|[a-z]{3,}(?<!key)(?<!token)(?<!prod)(?<!dev)(?<!test).*"
)  # fmt: skip
# `page_token`, `maxTokens`, `primary_key` hold none; `monkey`, `tiktoken`, `compass` are other words.
_BEFORE = late(
    r"(?:(?<![A-Za-z])|(?<=[a-z])(?=[A-Z]))(?i:" + _any("""
        max min page next sync continuation num total prompt completion input output cursor stop
        pad eos bos sep unk special public primary foreign cache partition sort row idempotency
        by
    """) + r")[ _.-]?$|(?i:mon|don|tur|hot|whis|jo|tic|tik)$"
)  # fmt: skip
_BEFORE_PASS = late(r"(?i)(?:com|by|sur|tres|un)$")


@cache
def assignment() -> Pattern[str]:
    """A name, what joins it to its value, and the value, `quoted` or `bare`; matched at a stem."""
    return re.compile(_NAME + _GAP + _SIGN + _VALUE)


def category_of(text: str, match: Match[str]) -> str | None:
    """`password`, `key`, `token` or `secret`; None where the name only speaks of a secret."""
    category = next(g for g in ("password", "key", "token", "secret") if match[g])
    before = text[max(0, match.start() - 16) : match.start()]
    only_speaks = _BEFORE_PASS if category == "password" else _BEFORE
    if _ABOUT.fullmatch(match["suffix"]) or only_speaks.search(before):
        return None
    if category == "key" and not (KEY_BEFORE.search(before) or _ENV_KEY.search(before)):
        return None
    if match["secret"] == "string" and not _STRING_BEFORE.search(before):
        return None
    return category


# -- values ------------------------------------------------------------------------------------------------
# Whether a value looks like a secret, or like code, a placeholder, an identifier, a word of prose.


_WORDS = """
    none null nil true false undefined string str bytes text int integer number bool boolean object any
    required optional secret password passwd pass passphrase pwd token key user username admin root test
    changeme example placeholder dummy fake sample todo tbd redacted hidden masked removed yourpassword
    empty unset missing unknown default varchar char var let const self this value auto prompt env file
    vault basic bearer digest oauth oauth2 jwt and or the expired valid invalid rotated changed reset see
    ask stored saved protected only must should will not login based field hash hashed encrypted plaintext
    manager input output enabled disabled yes no off generated random same different here there with from
    when then than that they them your mine ours sent left right above below soon later today done okay
    fine good correct wrong incorrect accepted rejected revoked leaked exposed stolen gone safe secure
    strong weak short long stale fresh active inactive pending current previous old new first last next
    authentication refresh access needed working broken failing mandatory available configured shared
    private public local global session per limit sha256 sha512 sha1 md5 base64 base32 bcrypt argon2
    argon2id scrypt pbkdf2 hs256 rs256 es256 utf-8 utf8 ed25519 x509 1password bitwarden keychain keepass
    lastpass pass2 oauth2.0 saml2 tls1.3 http2 ipv4 ipv6 k8s s3 ec2
"""
_STOP = frozenset(_WORDS.split())
FUNCTION_WORD = late(
    r"(?i)\b(?:a|an|the|is|are|be|must|at|for|to|of|your|and|or|with|in|on|this|that|not|it|if|was|can|no|"
    r"we|i|you)\b"
)
# A reference to a variable, a path, a call, a link to a vault; `your-…`, `<…>`, `***`.
_CODE = late(
    r"\$[\w({]|\$$|%[sd(]|\{\{|\{[\w.]*\}|#\{|[<\[(]|//|~/|\.{1,2}/|/[\w.-]+/|/[\w.-]+$|[A-Z]:\\|&"
    r"|(?:[A-Za-z_][\w.]*[(\[])+[\w.,:]*[)\]]*$|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+$|[A-Z]\w*<"
    r"|(?:env|vault|op|ref|secrets?|arn|ssm|file|https?|keyring|kv|projects)(?::|/)|[*•.xX#_?\u2026-]+$"
    r"|(?i:your|my|some|insert|enter|put|replace|the|user|a)[_-]|.{0,60}(?i:example|placeholder|changeme|y"
    r"our[_-]|_here|redacted)"
)
_PIECE = late(
    r"[A-Z]*[a-z]*|(?:[A-Z]?[a-z]{2,}){1,9}|[a-z]{1,9}\d{1,3}[a-z]{1,9}|v?\d+[a-z]?|[a-z]{2,9}\d[a-z]|[A-Z"
    r"a-z]{1,9}\d{1,4}|\d{1,4}[A-Za-z]{1,3}"
)
# toolu_01…, req_011…: names of things; AAAA…: a public key of ssh.
_ID = late(r"(?:[a-z]{2,12}[_-]){1,3}[A-Za-z0-9]+|AAAA[A-Z]\w+.*")
_HEX = late(r"[0-9a-f]+|[0-9A-F]+")
_UUID = late(r"(?i)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NUMERIC = late(r"[\d.,:/%+-]+\w{0,3}|v?\d[\d.]*\w?|\d+-\w*|#?\d+|[~^<>=]*\d[\w.]*")
_NAMED = late(
    r"https?:.*|[\w./-]+\.(?:md|py|txt|js|ts|tsx|rs|go|sh|toml|json|ya?ml|com|org|io|dev|net|env|key|pem)"
    r"|[A-Z]{2,6}-\d+|[A-Za-z]\d+|[\w.+-]+@[\w-]+\.\w+|@[\w-]+|#[\w-]+|\^\w+"
)


def entropy(value: str) -> float:
    """Shannon's, in bits a character."""
    size = len(value)
    return -sum(n / size * log2(n / size) for n in Counter(value).values()) if size else 0.0


def _class(char: str) -> int:
    return 0 if char.islower() else 1 if char.isupper() else 2 if char.isdigit() else 3


def mixed(value: str) -> float:
    """How often neighbours differ in class (lower, upper, digit, other): about 0.6 in random base64,
    below 0.3 in the identifiers of code."""
    classes = [_class(c) for c in value]
    return sum(a != b for a, b in pairwise(classes)) / max(1, len(classes) - 1)


def is_hex(value: str) -> bool:
    """A hash, most of the time."""
    return _HEX.fullmatch(value) is not None or _UUID.fullmatch(value) is not None


def random_looking(value: str, least: int = 10) -> bool:
    """Whether a machine drew it: a long hex number, or letters and digits in no order of words."""
    if len(value) < least or entropy(value) < 2.5 or any(map(str.isspace, value)):
        return False
    letters, digits = any(map(str.isalpha, value)), any(map(str.isdigit, value))
    if is_hex(value):
        return len(value) >= 16 and letters and digits
    pieces = [p for p in re.split(r"[-_./:+=~@]", value) if p]
    if len(pieces) > 1 and all(_PIECE.fullmatch(p) for p in pieces):
        return False  # words and numbers: prod-db-2024, gpt-4o-2024-08-06
    if letters and digits:
        words = (
            r"(?:[A-Z]?[a-z]{3,}|\d{1,4})+" if len(value) >= 20 else r"(?:[A-Z]?[a-z]{3,}|[A-Z]{3,}|\d{1,4})+"
        )
        if _PIECE.fullmatch(value) or re.fullmatch(words, value):
            return False  # getUser2, Sonnet45
        return mixed(value) >= 0.2 or (len(value) >= 16 and entropy(value) >= 3.2)
    if re.fullmatch(r"(?:[A-Z2-7]{8}){2,8}", value):
        return entropy(value) >= 3.3  # base32, as one-time passwords use it
    return letters and len(value) >= 20 and mixed(value) >= 0.3 and entropy(value) >= 3.6


def very_random(value: str) -> bool:
    """Fit to be taken with next to no context: three classes, thoroughly mixed, 24 characters or more."""
    if _ID.fullmatch(value):
        return False
    return (
        len(value) >= 24
        and {0, 1, 2} <= {_class(c) for c in value}
        and entropy(value) >= 3.9
        and sum(map(str.isdigit, value)) >= 2
        and mixed(value) >= 0.38
        and max(map(len, re.split(r"[/_-]", value))) >= 12
    )


def strong_password(value: str) -> bool:
    """What no word of a sentence looks like: six characters or more, letters with digits or marks."""
    if len(value) < 6 or _NUMERIC.fullmatch(value) or _NAMED.fullmatch(value):
        return False
    letters, digits = any(map(str.isalpha, value)), any(map(str.isdigit, value))
    marks = any(c in "!@#$%^&*+=?~" for c in value[1:])
    return letters and ((marks and not re.fullmatch(r"[A-Za-z'/-]+[!?*]+", value)) or digits)


def placeholder(value: str) -> bool:
    """Code, a reference, a type, a stand-in, a stop word: nothing that opens a door."""
    bare = value.strip(" *_:;,.!?()[]{}").lower()
    return len(set(value)) < 3 or bare in _STOP or _CODE.match(value) is not None


# -- kinds -------------------------------------------------------------------------------------------------
# The shapes of secrets that can be told by themselves: provider tokens, keys and hashes.


Row = tuple[str, tuple[str, ...], int, str]
"""A kind, literals one of which must occur, how many characters before it the secret may begin, pattern."""


@cache
def rows() -> tuple[Row, ...]:
    """The rows of `data/secrets.txt`, which says more of them."""
    found = ((heading.split(), pattern) for heading, pattern in table("secrets.txt"))
    return tuple((kind, tuple(some), int(back), pattern) for (kind, back, *some), pattern in found)


@cache
def _heads() -> tuple[Mapping[tuple[str, ...], set[int]], set[int]]:
    """Which rows have a literal that begins with these characters, and which are looked at in any text."""
    by_head: dict[tuple[str, ...], set[int]] = {}
    always: set[int] = set()
    for number, (_, literals, _, _) in enumerate(rows()):
        if not literals or min(map(len, literals)) < 3:
            always.add(number)
        for literal in literals:
            by_head.setdefault(tuple(literal[:3]), set()).add(number)
    return by_head, always


def _rows_for(text: str) -> Iterator[Row]:
    """The rows of which a literal may stand in a text: to look for each of 300 takes ten times as long."""
    by_head, always = _heads()
    met = by_head.keys() & set(zip(text, text[1:], text[2:], strict=False))
    return map(rows().__getitem__, sorted(always.union(*map(by_head.__getitem__, met))))


@cache
def compiled(pattern: str) -> Pattern[str]:
    """Compiled once, and only when a literal of its row was met."""
    return re.compile(pattern)


# -- assigned ----------------------------------------------------------------------------------------------
# Secrets that only their names give away: `password = …`, `"api_key": "…"`, `the token is …`, `… is my
# password`, and the columns of a table.


_REST = late(r"[^\s\"'`<>]*")
_SHELL = late(r"\s*(?:export |set |ENV |-e |- )?\w*")
_HEADING = late(r"(?:.*(?:\"|\\n))?[ \t>]*(?:[-*+] )?(?:#{1,6} |[*_]{1,2})[^\n]{0,60}")
# `Users who lost their password:` is followed by users.
_ABOUT_PEOPLE = late(r"(?i)\b(?:who|whose|lost|forg\w+|reset\w*|without|how|know\w*|not|never|no)\b")
_MORE = late(
    rf"[\"'`]?[ \t]{{0,8}}{LINE}[ \t>]{{0,40}}[-*+] [\"'`]?(?P<value>[^\s\"'`<>\\]{{4,512}})"
    rf"(?=[\"'`]?[ \t]{{0,8}}(?:{LINE}|[\"\\]|\Z))"
)
_STEM = late("|".join(STEMS), re.IGNORECASE)
_RULE = late(rf"{LINE}(?=[^\n]{{0,400}}--)[ \t>|:-]{{3,400}}+(?={LINE})")
_LINE_END = late(LINE)
_NO_VALUE = late(r"[,;|\\]|&(?=&|[\w.%[\]-]*=|#?\w+;|$)")  # `&` only where a query or a shell goes on
_NOTHING = late(rf"[ \t*]*(?:\\{{1,2}}(?={LINE}))?{LINE}")
_COMMAND = late(r"(?:.*[\s\"'`])?(?:(?:ENV|ARG|setenv|export|set(?: -\w+)?) \w*|--[\w-]*|login .*)")


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


def _on_next_line(match: Match[str]) -> bool:
    """Whether the value stands on another line, where only a block or `value:` says that it is one."""
    sign = match["sign"]
    return match["block"] is None and "value" not in sign and _LINE_END.search(sign) is not None


def _is_value_below(text: str, match: Match[str], value: str, category: str, alone: bool) -> bool:
    """Whether what stands on the next line is a value, and not how the text goes on."""
    before = _line_before(text, match)
    if not alone or " " in value or _ABOUT_PEOPLE.search(before):
        return False
    if _NOTHING.match(match["sign"]) and not _HEADING.fullmatch(before):
        return False
    if category == "password":
        return strong_password(value) or (match["quoted"] is not None and "=" in match["sign"])
    return random_looking(value, 12)


def _is_password(text: str, match: Match[str], value: str, alone: bool) -> bool:
    sign, name, line = match["sign"].strip(), match["password"].lower(), _line_before(text, match)
    if sign and sign.split()[-1][-1] in "=:>|,-→(":
        variable = value.isidentifier() and "_" in value and not any(map(str.isdigit, value))
        plain = alone and not variable and name != "pass"
        return not value.endswith(":") and (strong_password(value) or plain or random_looking(value))
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


def _value_span(text: str, match: Match[str], category: str) -> tuple[int, int] | None:
    """Where the value of one assignment is secret, or None."""
    sign = match["sign"].strip()
    if match["quoted"] is not None:
        value, start, alone = match["quoted"], match.start("quoted"), True
        if " " in value.strip() and (category != "password" or not _is_phrase(value)):
            return None
    else:
        (value, alone), start = _bare(text, match), match.start("bare")
        if _variable(text, start + len(value), value):
            return None
    if len(value) < 4 or placeholder(value) or (sign == "," and _listed(text, match, value)):
        return None
    if _on_next_line(match):
        good = _is_value_below(text, match, value, category, alone)
    elif not sign and match["quoted"] and text.startswith(";", match.end()) and random_looking(value):
        good = True  # `api_key "Xk9…";`
    elif category == "password":
        good = _is_password(text, match, value, alone)
    elif not sign:  # `the API key Xk9…`
        good = random_looking(value, 16) and not re.search(r"[/.]", value)
    else:
        good = random_looking(value, 8 if mixed(value) >= 0.3 else 10)
    end = start + len(value)
    if good and len(value) == LONGEST and (rest := _REST.match(text, start)):
        end = max(end, rest.end())
    return (start, end) if good else None


def _kind(text: str, match: Match[str], category: str) -> str:
    around = PROVIDERS.findall(text[max(0, match.start() - 32) : match.start()])
    if category == "password" or not around:
        return "api-key" if category == "key" else category
    provider = around[-1].lower()
    return f"{provider}-{'secret' if provider == 'aws' else category}"


def _assignments(text: str, low: str) -> Iterator[Span]:
    """Values given to secret-sounding names; `low` is the text with A–Z lowered at the same offsets."""
    for stem in STEMS:
        at = low.find(stem)
        while at >= 0:
            match = assignment().match(text, at)
            category = category_of(text, match) if match else None
            span = _value_span(text, match, category) if match and category else None
            if match and category and span:
                yield (_kind(text, match, category), *span)
                if _on_next_line(match) and match["sign"].endswith(("- ", "* ", "+ ")):
                    yield from _list_below(text, match, category, span[1])
            at = low.find(stem, max(at + len(stem), span[1] if span else 0))


def _list_below(text: str, match: Match[str], category: str, end: int) -> Iterator[Span]:
    """The other items of a list whose first is a value."""
    while (more := _MORE.match(text, end)) and _is_value_below(text, match, more["value"], category, True):
        yield (_kind(text, match, category), *more.span("value"))
        end = more.end()


def _table_columns(text: str) -> Iterator[Span]:
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
                found = _assignments(above + cell, (above + cell).lower()) if number in heads else ()
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
_VARIABLE = (
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
_NO_NAME_OF_IT = late(r"(?i)\b(?:where|when|why|how|what|who|whose|before|after|behind|under|without)\b")


def _named_afterwards(text: str, low: str) -> Iterator[Span]:
    """Values that the words behind them call a secret."""
    for stem in _STEMS:
        at = low.find(stem)
        while at >= 0:
            name = compiled(_VARIABLE).match(text, at)
            ends = compiled(_AFTER_NAME).match(text, name.end()) if name else None
            match = compiled(_BEFORE_NAME).search(text[max(0, at - 200) : at]) if ends else None
            if name and ends and match and (span := _named_value(text, name, ends, match)):
                yield ("api-key" if name["key"] else str(name.lastgroup), *span)
            at = low.find(stem, at + len(stem))


def _named_value(text: str, name: Match[str], ends: Match[str], match: Match[str]) -> tuple[int, int] | None:
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


# -- cards -------------------------------------------------------------------------------------------------
# Numbers of payment cards: an issuer's first digits, its lengths, and the check digit (Luhn).
#
# One number in ten passes the check, so that alone takes nothing: order numbers, ids, telephone numbers and
# timestamps stay. A number written as cards write it, or of a length and beginning that an issuer has
# today, is taken; a rarer one only with a word beside it that speaks of a card.


_DIGIT_GAP = "[ .\u00a0\u2007\u2009\u202f\u2010\u2011\u2012\u2013-]"
# In fours (a fifth group is the end of a long number, or the three digits on the back), as Amex and Diners
# print it, or in one piece. Not inside a word, a path, a decimal or an account's number in fours (IBAN).
_NUMBER = (
    r"(?:(?<![A-Za-z0-9_/#+-])(?<!\d\.)|(?<=\\[nrt])|(?<=%20))"
    rf"(?:(?<!\d{{4}}{_DIGIT_GAP})(?<![A-Z]{{2}}\d{{2}}{_DIGIT_GAP})\d{{4}}(?P<four>{_DIGIT_GAP})\d{{4}}(?P=four)\d{{4}}(?P=four)\d{{4}}"
    rf"(?P<rest>(?P=four)\d{{3}}(?!\d))?(?!{_DIGIT_GAP}(?!20\d\d|0[1-9]\d\d|1[0-2]\d\d)\d{{4}}(?!\d))"
    rf"|\d{{4}}(?P<six>{_DIGIT_GAP})\d{{6}}(?P=six)\d{{4,5}}|\d{{12,19}})(?![A-Za-z0-9_]|\.\w|-\d)"
)
# First digits and lengths in use: Visa, Mastercard, American Express, Discover, JCB, UnionPay, Diners.
_COMMON = (
    r"4\d{15}|(?:5[1-5]\d\d|222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|2720)\d{12}|3[47]\d{13}"
    r"|6(?:011|4[4-9]\d|5\d\d)\d{12}|35(?:2[89]|[3-8]\d)\d{12}|62\d{14}"
)
# Rarer ones: Diners' fourteen, Maestro and its like, thirteen or nineteen digits.
_RARE = r"3(?:0[0-5]|[689]\d)\d{11}|4\d{12}(?:\d{6})?|(?:5[06-8]|6\d)\d{10,17}"
_CARD = (
    r"(?i)card|\bvisa\b|amex|american express|maestro|diners|union ?pay|\bjcb\b|discover|\bcvv|\bcvc|\bpan\b"
    r"|kart[ae]|carte|tarjeta|cart[ãa]o|карт|カード|卡|카드"
)
_CARD_LABEL = (
    r"(?i)(?:(?P<thing>order|invoice|ticket|tracking|parcel|booking|reference|ref|serial|imei|iccid|isbn|ean|gtin"
    r"|upc|sku|timestamp|\bts|nonce|seed|snowflake|message|msg|chat|user|thread|channel|job|build|run|trace|span"
    r"|request|session|transaction|commit|tweet|post|status|video|meeting|zoom|item|product|customer|member"
    r"|bestell\w*|rechnung\w*|kunden\w*|artikel\w*|commande|facture|pedido|cliente|注文|订单)"
    r"|_?id|№|#|(?P<number>\bno|nr|num|number|nummer|número|numéro|番号|号码))s?"
    r"[\"'`*]{0,2}[ _-]?(?:no|nr|num|numbers?|nummer|番号|号|id|ids|key)?[.:#=\"'`*]{0,4}"
    r"(?: (?:is|was|ist|est|es))?[ \"'`#:=：]{0,3}$"
)
_SOME = late(rf"\d{{4}}{_DIGIT_GAP}?\d{{4}}")


def luhn(digits: str) -> bool:
    """Whether the last digit checks the others."""
    doubled = (sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2])
    return (sum(doubled) + sum(map(int, digits[-1::-2]))) % 10 == 0


def cards(text: str) -> Iterator[tuple[str, int, int]]:
    """Where card numbers stand, as kind, start and end."""
    if not _SOME.search(text):  # most texts: no pattern is compiled for them
        return
    card, thing, common, rarer = map(compiled, (_CARD, _CARD_LABEL, _COMMON, _RARE))
    for match in compiled(_NUMBER).finditer(text):
        start = match.start()
        before = text[max(text.rfind("\n", 0, start) + 1, start - 60) : start]
        behind = text[match.end() : match.end() + 30].split("\n", 1)[0]
        told, other = card.search(before), thing.search(before)
        grouped, named = match["four"] or match["six"], told or card.search(behind)
        sure = grouped and named  # `my card for the order is 4111 1111 …`
        if other and not sure and (other["thing"] or not (told or (grouped and other["number"]))):
            continue
        rare = named or grouped
        for end in (match.end(), match.start("rest")) if match["rest"] else (match.end(),):
            digits = "".join(str(int(digit)) for digit in text[start:end] if digit.isdecimal())
            if (common.fullmatch(digits) or (rare and rarer.fullmatch(digits))) and luhn(digits):
                yield ("card-number", start, end)
                break


# -- redaction ---------------------------------------------------------------------------------------------
# Takes secrets out of text before it is written, indexed or sent.
#
# `find` tells where they stand, `redact` puts `[redacted: kind]` there. Five sources: patterns that speak for
# themselves (`rows`), card numbers, values given to secret-sounding names, random runs, and what a run of
# base64 hides; own patterns come from the bank's settings.
#
# Nothing here logs, stores or raises with the text of a secret.


MARKER = late(r"\[redacted: [a-z][a-z0-9-]{0,39}\]")
_KIND = late(r"[a-z][a-z0-9-]{0,39}")
_LONG_RUN = late(r"[A-Za-z0-9+/_-]{16,}(?:(?<=[A-Za-z0-9+/]{60})\r?\n[ \t>]{0,12}[A-Za-z0-9+/]{4,})*={0,2}")
_DECODED = 262_144  # characters of base64 that are looked into
_ASCII_LOWER = {c: c + 32 for c in range(65, 91)}
_VAGUE = frozenset(
    {
        "password",
        "secret",
        "token",
        "api-key",
        "high-entropy",
        "url-password",
        "url-token",
        "bearer-token",
        "basic-auth",
        "azure-sas",
        "password-hash",
    }
)
_ASIDE = late(r"(?i)\b(?:see|ask|vault|policy|required|stored|words|none|same|rotated)\b")
_HEX_SAID = late(r"(?i)\b(?:key|token|secret)\b[^\n.:;]{0,40}(?:\bis|=|:)\s?[\"'`]?$")
_HASHES = late(
    r"(?i)sha-?\d*\b|md5|hash|integrity|fingerprint|checksum|digest|commit|cache|public|primary|partition"
    r"|idempot|revision"
)
_NO_SECRET = late(
    r"(?i)integrity|sha\d*|checksum|digest|etag|fingerprint|hash|cid|signature|model|uuid|_id\b|\bid\b"
)
_NEAR = late(r"(?i)(?:key|token|secret|passw|credential|bearer|auth)[^\n]{0,60}$")
NO_PATTERNS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Secret:
    """One secret: `text[start:end]` is the value alone, without its name or the user of its URL."""

    kind: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Redacted:
    """`text` with `[redacted: kind]` for each secret, and how many of each kind were `taken`."""

    text: str
    taken: Mapping[str, int]


def redact(text: str, patterns: Mapping[str, str] = NO_PATTERNS) -> Redacted:
    """Take every secret out; a second time takes nothing. `patterns` are own ones, kind to regex.

    Raises Malformed, naming the setting, for a kind or regex that is none.
    """
    taken: Counter[str] = Counter()
    while found := find(
        text, patterns
    ):  # what stands beside a marker may read differently: until nothing is left
        pieces, at = [], 0
        for secret in found:
            pieces += [text[at : secret.start], f"[redacted: {secret.kind}]"]
            at = secret.end
            taken[secret.kind] += 1
        text = "".join((*pieces, text[at:]))
    return Redacted(text, dict(taken))


def masked(text: str, patterns: Mapping[str, str] = NO_PATTERNS) -> str:
    """A text as it may be shown to a model: without its secrets, each line with the number it had."""
    if not (found := find(text, patterns)):
        return text
    pieces, at = [], 0
    for secret in found:
        lines = "\n" * text.count("\n", secret.start, secret.end)
        pieces += [text[at : secret.start], f"[redacted: {secret.kind}]{lines}"]
        at = secret.end
    return redact("".join((*pieces, text[at:])), patterns).text


def find(text: str, patterns: Mapping[str, str] = NO_PATTERNS) -> tuple[Secret, ...]:
    """Where the secrets are, in order and apart from each other; markers are never taken again.

    Raises Malformed as `redact` does. Time grows with the length of the text alone, own patterns aside.
    """
    own = [(kind, _own(kind, regex)) for kind, regex in patterns.items()]
    spans = [(kind, *m.span()) for kind, regex in own for m in regex.finditer(text)]
    spans += _in_plain_text(text)
    spans += _encoded(text)
    return tuple(_merged(_without_markers(text, spans), frozenset(patterns)))


def _own(kind: str, regex: str) -> re.Pattern[str]:
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


def _in_plain_text(text: str) -> list[Span]:
    """What can be read without decoding."""
    low = text.lower() if text.isascii() else text.translate(_ASCII_LOWER)
    by_name = [*_assignments(text, low), *_named_afterwards(text, low), *_table_columns(text)]
    return [*_by_pattern(text), *by_name, *cards(text), *_random_runs(text)]


def _by_pattern(text: str) -> Iterator[Span]:
    runs = [m.start() for m in re.finditer(r"[A-Za-z0-9_-]{22,}", text)]
    heads = [
        head for run in runs for head in (run, run + 1, run + 2)
    ]  # past the `n` of `\\n`, the `3D` of `%3D`
    for kind, literals, back, pattern in _rows_for(text):
        places = _places(text, literals, back) if literals else ((head, head) for head in heads)
        done = 0
        for first, last in places:
            if last < done:
                continue
            regex = compiled(pattern)
            match = regex.match(text, first) if first == last else regex.search(text, first, last + 400)
            if match is None or match.start() > last:
                continue
            done = match.end()
            group = 1 if regex.groups else 0
            if kind not in _JUDGES or _JUDGES[kind](match[group]):
                yield (kind, *match.span(group))


def _places(text: str, literals: tuple[str, ...], back: int) -> Iterator[tuple[int, int]]:
    """From where to where a secret may begin, for each literal met."""
    for literal in literals:
        at = text.find(literal)
        while at >= 0:
            yield (max(0, at - back), at)
            at = text.find(literal, at + len(literal))


def _is_word_list(value: str) -> bool:
    return not FUNCTION_WORD.search(value) and not _ASIDE.search(value)


def _is_login(value: str) -> bool:
    return strong_password(value.rstrip(".)")) and not placeholder(value)


def _has_letters(value: str) -> bool:
    return not placeholder(value) and any(map(str.isalpha, value))


def _is_random(value: str) -> bool:
    return not placeholder(value) and random_looking(value, 12)


# A value in a place made for secrets may still be a variable or a stand-in: kind → whether it is a secret.
_JUDGES: Mapping[str, Callable[[str], bool]] = {
    "url-password": _has_letters,
    "password": _has_letters,
    "url-token": _is_random,
    "bearer-token": _is_random,
    "artifactory-password": _is_random,
    "secret": lambda value: not placeholder(value) and random_looking(value),
    "basic-auth": lambda value: ":" in _plain(value),
    "login": _is_login,
    "seed-phrase": _is_word_list,
    "passphrase": _is_word_list,
}


def _random_runs(text: str) -> Iterator[Span]:
    """Random runs in quotes or after a secret's word on the line, and AWS secrets beside their key id."""
    for match in re.finditer(r"(?<![\w+/-])[A-Za-z0-9+/_-]{24,512}={0,2}(?![\w+/-])", text):
        value, (start, end) = match[0], match.span()
        before = text[max(0, start - 160) : start]
        if is_hex(value):
            if len(value) >= 32 and _HEX_SAID.search(before) and not _HASHES.search(before[-60:]):
                yield ("api-key", start, end)
        elif not very_random(value):
            continue
        elif len(value) == 40 and re.search(r"(?i)A[KS]IA|aws", before):
            yield ("aws-secret", start, end)
        elif before.endswith(('"', "'")) and text[end : end + 1] == before[-1]:
            if entropy(value) > 4.3 and not _NO_SECRET.search(before[-40:]):
                yield ("high-entropy", start, end)
        elif _NEAR.search(before) and not re.search(r"://\S*$", before) and not _HASHES.search(before[-24:]):
            yield ("high-entropy", start, end)


def _plain(value: str) -> str:
    """What base64 says, '' where it is none or no text."""
    value = value.rstrip("=")
    try:
        decode = urlsafe_b64decode if "-" in value or "_" in value else b64decode
        said = decode(value[: len(value) - (len(value) % 4 == 1)] + "=" * (-len(value) % 4)).decode()
    except (BadBase64, ValueError):
        return ""
    return said if sum(c.isprintable() or c.isspace() for c in said) == len(said) else ""


def _encoded(text: str, depth: int = 2) -> Iterator[Span]:
    """Runs of base64, at whichever of four alignments reads as text, that hide a secret."""
    for match in _LONG_RUN.finditer(text):
        whole = match[0][:_DECODED]
        run = re.sub(r"\s[ \t>\s]*", "", whole) if "\n" in whole else whole
        for shift in range(4):
            if not _plain(run[shift : shift + 16]):
                continue
            said = _plain(run[shift:])
            inner = _in_plain_text(said) if said else []
            inner += _encoded(said, depth - 1) if said and depth > 1 else ()
            if inner:
                vague = sorted(inner, key=lambda s: s[0] in _VAGUE)
                yield (vague[0][0], match.start(), match.end())
                break


def _without_markers(text: str, spans: Iterable[Span]) -> Iterator[Span]:
    """The spans less the markers in them: what was taken once is never taken again."""
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


def _merged(spans: Iterable[Span], own: frozenset[str]) -> Iterator[Secret]:
    """Overlapping finds as one; its kind is an own one, else the most telling, else the longest find's."""

    def telling(span: Span) -> tuple[bool, bool, bool, int]:
        return (span[0] in own, span[0] not in _VAGUE, span[0] != "high-entropy", span[2] - span[1])

    group: list[Span] = []
    end = -1
    for span in sorted(spans, key=lambda s: (s[1], -s[2])):
        if span[1] >= end and group:
            yield Secret(max(group, key=telling)[0], group[0][1], end)
            group, end = [], -1
        group.append(span)
        end = max(end, span[2])
    if group:
        yield Secret(max(group, key=telling)[0], group[0][1], end)
