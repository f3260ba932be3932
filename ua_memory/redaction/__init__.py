"""Takes secrets out of text before it is written, indexed or sent.

`find` tells where they stand, `redact` puts `[redacted: kind]` there. Five sources: shapes that
speak for themselves (`kinds`), card numbers (`cards`), values given to secret-sounding names (`assigned`),
detect-secrets' plugins (`detectors`), and what a run of base64 hides; own patterns come from the bank's
settings.
Nothing here logs, stores or raises with the text of a secret.
"""

from __future__ import annotations

import re
from base64 import b64decode, urlsafe_b64decode
from binascii import Error as BadBase64
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType

from ..errors import Malformed
from .assigned import Span, assignments, columns, named_behind
from .cards import cards
from .detectors import plugin_finds
from .kinds import CHECKED, compiled, rows
from .values import FUNCTION_WORD, is_hex, placeholder, random_looking, strong_password, very_random

_MARKER = re.compile(r"\[redacted: [a-z][a-z0-9-]{0,39}\]")
_KIND = re.compile(r"[a-z][a-z0-9-]{0,39}")
_RUN = re.compile(r"[A-Za-z0-9+/_-]{16,}(?:(?<=[A-Za-z0-9+/]{60})\r?\n[ \t>]{0,12}[A-Za-z0-9+/]{4,})*={0,2}")
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
_ASIDE = re.compile(r"(?i)\b(?:see|ask|vault|policy|required|stored|words|none|same|rotated)\b")
_HEX_SAID = re.compile(r"(?i)\b(?:key|token|secret)\b[^\n.:;]{0,40}(?:\bis|=|:)\s?[\"'`]?$")
_HASHES = re.compile(
    r"(?i)sha-?\d*\b|md5|hash|integrity|fingerprint|checksum|digest|commit|cache|public|primary|partition"
    r"|idempot|revision"
)
_NEAR = re.compile(r"(?i)(?:key|token|secret|passw|credential|bearer|auth)[^\n]{0,60}$")
NO_PATTERNS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Found:
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
    pieces, at = [], 0
    for secret in find(text, patterns):
        lines = "\n" * text.count("\n", secret.start, secret.end)
        pieces += [text[at : secret.start], f"[redacted: {secret.kind}]{lines}"]
        at = secret.end
    return redact("".join((*pieces, text[at:])), patterns).text


def find(text: str, patterns: Mapping[str, str] = NO_PATTERNS) -> tuple[Found, ...]:
    """Where the secrets are, in order and apart from each other; markers are never taken again.

    Raises Malformed as `redact` does. Time grows with the length of the text alone, own patterns aside.
    """
    own = [(kind, _own(kind, regex)) for kind, regex in patterns.items()]
    spans = [(kind, *m.span()) for kind, regex in own for m in regex.finditer(text)]
    spans += _standing(text)
    spans += _encoded(text)
    return tuple(_merged(_without_markers(text, spans), frozenset(patterns)))


def _own(kind: str, regex: str) -> re.Pattern[str]:
    if not _KIND.fullmatch(kind):
        raise Malformed(
            "a kind is a-z, 0-9 and -, at most 40 characters",
            where=f"ua-memory.toml: redact.{kind}",
            mend="rename it in ua-memory.toml",
        )
    try:
        return re.compile(regex)
    except (re.error, OverflowError, RecursionError) as error:
        raise Malformed(
            f"not a regular expression: {error}",
            where=f"ua-memory.toml: redact.{kind}",
            mend="correct it in ua-memory.toml",
        ) from error


def _standing(text: str) -> list[Span]:
    """What can be read without decoding."""
    low = text.lower() if text.isascii() else text.translate(_ASCII_LOWER)
    by_name = [*assignments(text, low), *named_behind(text, low), *columns(text)]
    return [*_shapes(text), *by_name, *cards(text), *_bare_runs(text), *plugin_finds(text, low)]


def _shapes(text: str) -> Iterator[Span]:
    runs = [m.start() for m in re.finditer(r"[A-Za-z0-9_-]{22,}", text)]
    heads = [
        head for run in runs for head in (run, run + 1, run + 2)
    ]  # past the `n` of `\\n`, the `3D` of `%3D`
    for kind, literals, back, pattern in rows():
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
            if kind not in CHECKED or _stands_up(kind, match[group]):
                yield (kind, *match.span(group))


def _places(text: str, literals: tuple[str, ...], back: int) -> Iterator[tuple[int, int]]:
    """From where to where a secret may begin, for each literal met."""
    for literal in literals:
        at = text.find(literal)
        while at >= 0:
            yield (max(0, at - back), at)
            at = text.find(literal, at + len(literal))


def _stands_up(kind: str, value: str) -> bool:
    """A value in a place made for secrets may still be a variable or a stand-in."""
    if kind in {"seed-phrase", "passphrase"}:
        return not FUNCTION_WORD.search(value) and not _ASIDE.search(value)
    if kind == "login":
        return strong_password(value.rstrip(".)")) and not placeholder(value)
    if kind == "basic-auth":
        return ":" in _plain(value)
    if placeholder(value):
        return False
    return (
        random_looking(value, 12) if kind in {"url-token", "bearer-token"} else any(map(str.isalpha, value))
    )


def _bare_runs(text: str) -> Iterator[Span]:
    """Random runs with a secret's word before them on the line, and AWS secrets beside their key id."""
    for match in re.finditer(r"(?<![\w+/-])[A-Za-z0-9+/_-]{24,200}={0,2}(?![\w+/-])", text):
        value = match[0]
        before = text[max(0, match.start() - 160) : match.start()]
        if is_hex(value):
            if len(value) >= 32 and _HEX_SAID.search(before) and not _HASHES.search(before[-60:]):
                yield ("api-key", *match.span())
        elif not very_random(value):
            continue
        elif len(value) == 40 and re.search(r"(?i)A[KS]IA|aws", before):
            yield ("aws-secret", *match.span())
        elif _NEAR.search(before) and not re.search(r"://\S*$", before) and not _HASHES.search(before[-24:]):
            yield ("high-entropy", *match.span())


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
    for match in _RUN.finditer(text):
        whole = match[0][:_DECODED]
        run = re.sub(r"\s[ \t>\s]*", "", whole) if "\n" in whole else whole
        for shift in range(4):
            if not _plain(run[shift : shift + 16]):
                continue
            said = _plain(run[shift:])
            inner = _standing(said) if said else []
            inner += _encoded(said, depth - 1) if said and depth > 1 else ()
            if inner:
                vague = sorted(inner, key=lambda s: s[0] in _VAGUE)
                yield (vague[0][0], match.start(), match.end())
                break


def _without_markers(text: str, spans: Iterable[Span]) -> Iterator[Span]:
    """The spans less the markers in them: what was taken once is never taken again."""
    markers = [m.span() for m in _MARKER.finditer(text)] if "[redacted: " in text else []
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


def _merged(spans: Iterable[Span], own: frozenset[str]) -> Iterator[Found]:
    """Overlapping finds as one; its kind is an own one, else the most telling, else the longest find's."""

    def telling(span: Span) -> tuple[bool, bool, bool, int]:
        return (span[0] in own, span[0] not in _VAGUE, span[0] != "high-entropy", span[2] - span[1])

    group: list[Span] = []
    end = -1
    for span in sorted(spans, key=lambda s: (s[1], -s[2])):
        if span[1] >= end and group:
            yield Found(max(group, key=telling)[0], group[0][1], end)
            group, end = [], -1
        group.append(span)
        end = max(end, span[2])
    if group:
        yield Found(max(group, key=telling)[0], group[0][1], end)
