"""Whether a value looks like a secret, or like code, a placeholder, an identifier, a word of prose."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from math import log2

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
FUNCTION_WORD = re.compile(
    r"(?i)\b(?:a|an|the|is|are|be|must|at|for|to|of|your|and|or|with|in|on|this|that|not|it|if|was|can|no|"
    r"we|i|you)\b"
)
# A reference to a variable, a path, a call, a link to a vault; `your-…`, `<…>`, `***`.
_CODE = re.compile(
    r"\$[\w({]|\$$|%[sd(]|\{\{|\{[\w.]*\}|#\{|[<\[(]|//|~/|\.{1,2}/|/[\w.-]+/|/[\w.-]+$|[A-Z]:\\|&"
    r"|(?:[A-Za-z_][\w.]*[(\[])+[\w.,:]*[)\]]*$|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+$|[A-Z]\w*<"
    r"|(?:env|vault|op|ref|secrets?|arn|ssm|file|https?|keyring|kv|projects)(?::|/)|[*•.xX#_?\u2026-]+$"
    r"|(?i:your|my|some|insert|enter|put|replace|the|user|a)[_-]|.{0,60}(?i:example|placeholder|changeme|y"
    r"our[_-]|_here|redacted)"
)
_PIECE = re.compile(
    r"[A-Z]*[a-z]*|(?:[A-Z]?[a-z]{2,}){1,9}|[a-z]{1,9}\d{1,3}[a-z]{1,9}|v?\d+[a-z]?|[a-z]{2,9}\d[a-z]|[A-Z"
    r"a-z]{1,9}\d{1,4}|\d{1,4}[A-Za-z]{1,3}"
)
# toolu_01…, req_011…: names of things; AAAA…: a public key of ssh.
_ID = re.compile(r"(?:[a-z]{2,12}[_-]){1,3}[A-Za-z0-9]+|AAAA[A-Z]\w+.*")
_HEX = re.compile(r"[0-9a-f]+|[0-9A-F]+")
_UUID = re.compile(r"(?i)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NUMERIC = re.compile(r"[\d.,:/%+-]+\w{0,3}|v?\d[\d.]*\w?|\d+-\w*|#?\d+|[~^<>=]*\d[\w.]*")
_NAMED = re.compile(
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
