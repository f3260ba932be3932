"""detect-secrets' plugins, called on single lines; the home of that package.

Importing it costs about 0.25 s, more than all else that an insert does. So `suspects` first tells,
with string searches alone, where a plugin could find anything; only if there is such a place is
the package imported. A test draws strings from the plugins' own patterns and holds that the gate
lets every one of them through. The plugins are used as objects: no settings, no verification,
no network.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from re import Pattern

from .values import is_hex, placeholder, random_looking, very_random

Span = tuple[str, int, int]

# Left out: private keys, JWTs and passwords in URLs, which `kinds` takes in full and in linear time;
# IP addresses and hex strings, which are no secrets.
# Module, class, group of the secret in its patterns, kind.
_PLUGINS = (
    ("artifactory", "ArtifactoryDetector", 0, "artifactory-token"),
    ("aws", "AWSKeyDetector", 1, "aws-secret"),
    ("azure_storage_key", "AzureStorageKeyDetector", 0, "azure-key"),
    ("cloudant", "CloudantDetector", 1, "cloudant-key"),
    ("discord", "DiscordBotTokenDetector", 0, "discord-token"),
    ("github_token", "GitHubTokenDetector", 0, "github-token"),
    ("gitlab_token", "GitLabTokenDetector", 0, "gitlab-token"),
    ("ibm_cloud_iam", "IbmCloudIamDetector", 1, "ibm-key"),
    ("ibm_cos_hmac", "IbmCosHmacDetector", 1, "ibm-key"),
    ("mailchimp", "MailchimpDetector", 0, "mailchimp-key"),
    ("npm", "NpmDetector", 1, "npm-token"),
    ("openai", "OpenAIDetector", 0, "openai-key"),
    ("pypi_token", "PypiTokenDetector", 0, "pypi-token"),
    ("sendgrid", "SendGridDetector", 0, "sendgrid-key"),
    ("slack", "SlackDetector", 0, "slack-token"),
    ("softlayer", "SoftlayerDetector", 1, "softlayer-key"),
    ("square_oauth", "SquareOAuthDetector", 0, "square-token"),
    ("stripe", "StripeDetector", 0, "stripe-key"),
    ("telegram_token", "TelegramBotTokenDetector", 0, "telegram-token"),
    ("twilio", "TwilioKeyDetector", 0, "twilio-key"),
)
# `placeholder` and friends judge these; the other plugins' patterns speak for themselves.
_LOOSE = frozenset({"artifactory-token", "npm-token", "ibm-key", "softlayer-key", "cloudant-key"})

# What the plugins need at the least. Case-sensitive literals, literals of any case, patterns.
_LITERALS = (
    "AKC",
    "AKIA",
    "ASIA",
    "ABIA",
    "ACCA",
    "A3T",
    "AccountKey=",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "GR1348941",
    "glpat-",
    "gldt-",
    "glft-",
    "glsoat-",
    "glrt-",
    "glcbt-",
    "glimt-",
    "glptt-",
    "glagent-",
    "gloas-",
    "_authToken",
    "T3BlbkFJ",
    "pypi-AgE",
    "SG.",
    "sq0csp-",
    "k_live_",
)
_ANY_CASE = (
    "xoxa-",
    "xoxb-",
    "xoxp-",
    "xoxo-",
    "xoxs-",
    "xoxr-",
    "hooks.slack.com/services/t",
    "softlayer.com/soap/",
)
_AP = r"(?:AP[\dA-F][a-zA-Z0-9]{8})"
_QUOTED = r"[\"'][A-Za-z0-9+/\\_=-]{23,}[\"']"
_RUN = r"[A-Za-z0-9_-]{24,}"
_KEYWORD = ("key", "pass", "pwd", "pw", "secret", "contrase", "token")
_KEYWORD_HIT = (
    r"\w{0,60}[\]'\"]{0,2}(?:\[\d{0,9}\])?\s{0,40}(?:[:=!(]|\.assign)[^\n]{0,40}?[\"'`]"
    r"|[^\s]{0,60}\s{0,40}[\"'`][^\n]{1,2000};|[\w\[\]\"']{0,9}[ :=>-]{1,9}[\"']?[A-Za-z0-9_-]{24}"
)
_REVERSED = (
    r"[\"'`]\s{0,40}[!=]{2,3}\s{0,40}\w{0,60}"
    r"(?i:api_?key|\w{2,9}_?key|db_?pass|\w{3,8}_?pass|passw|pwd|secret|contrase)"
)
_DENIED = r"(?i)(?:api|auth|service|account|db|database|priv|private|client)_?key|pass|pwd|secret|contrase"
_LINE = 2000  # characters of a line a plugin is given at most: their patterns are not linear
_OVERLAP = 500
_DATA = 512  # a longer random string is an image or a signature
_NO_SECRET = r"integrity|sha\d*|checksum|digest|etag|fingerprint|hash|cid|signature|model|uuid|_id\b|\bid\b"


@cache
def _compiled(pattern: str) -> Pattern[str]:
    return re.compile(pattern)


def _suspicious_run(run: str) -> bool:
    """A run of token characters that no plugin could take whole: words and dates, uuids, git's hashes."""
    if is_hex(run) and len(run) in {36, 40}:
        return False
    pieces = re.split(r"[_-]", run)
    return (
        max(map(len, pieces)) >= 20
        or sum(any(map(str.isdigit, p)) and any(map(str.isalpha, p)) for p in pieces) >= 1
    )


def suspects(text: str, low: str) -> Iterator[int]:
    """Offsets of places a plugin may take something from, in no order; none for ordinary sentences."""
    for literals, where in ((_LITERALS, text), (_ANY_CASE, low)):
        for literal in literals:
            at = where.find(literal)
            while at >= 0:
                yield at
                at = where.find(literal, at + len(literal))
    if "AP" in text:
        yield from (m.start() for m in _compiled(_AP).finditer(text))
    for mark in "\"'":
        if mark in text:
            yield from (m.start() for m in _compiled(_QUOTED).finditer(text))
            break
    if "==" in text or "!=" in text:
        yield from (m.start() for m in _compiled(_REVERSED).finditer(text))
    yield from (m.start() for m in _compiled(_RUN).finditer(text) if _suspicious_run(m[0]))
    for word in _KEYWORD:
        at = low.find(word)
        while at >= 0:
            if _compiled(_KEYWORD_HIT).match(text, at + len(word)):
                yield at
            at = low.find(word, at + len(word))


def _windows(text: str, low: str) -> list[tuple[int, int]]:
    """The lines with a suspect, long ones cut to what lies around it; ordered, apart from overlaps."""
    windows: list[tuple[int, int]] = []
    for at in sorted(set(suspects(text, low))):
        last = windows[-1][1] if windows else -1
        if at + _OVERLAP <= last or (at < last and text[last : last + 1] in {"\n", ""}):
            continue
        start, end = text.rfind("\n", 0, at) + 1, text.find("\n", at)
        end = len(text) if end < 0 else end
        windows.append((max(start, at - _OVERLAP), min(end, at + _LINE)))
    return windows


@cache
def _plugins() -> tuple[tuple[str, int, tuple[Pattern[str], ...], object], ...]:
    from importlib import import_module

    made = []
    for module, name, group, kind in _PLUGINS:
        plugin = getattr(import_module(f"detect_secrets.plugins.{module}"), name)()
        made.append((kind, group, tuple(plugin.denylist), plugin))
    return tuple(made)


def _regex_finds(line: str) -> Iterator[Span]:
    for kind, group, patterns, _plugin in _plugins():
        for pattern in patterns:
            for match in pattern.finditer(line):
                which = group if group and pattern.groups and match[group] else 0
                value = match[which].strip(" \t\"'=:")
                start = match.start(which) + match[which].find(value)
                if kind in _LOOSE and (placeholder(value) or not random_looking(value)):
                    continue
                yield ("slack-webhook" if "hooks.slack" in value.lower() else kind, start, start + len(value))


def _keyword_finds(line: str) -> Iterator[Span]:
    from detect_secrets.plugins.keyword import QUOTES_REQUIRED_DENYLIST_REGEX_TO_GROUP

    if not _compiled(_DENIED).search(line):  # the patterns themselves look at every quotation mark
        return
    for pattern, group in QUOTES_REQUIRED_DENYLIST_REGEX_TO_GROUP.items():
        match = pattern.search(line)
        if (
            match
            and len(match[group]) >= 8
            and random_looking(match[group])
            and not placeholder(match[group])
        ):
            yield ("secret", match.start(group), match.end(group))


def _entropy_finds(line: str) -> Iterator[Span]:
    from detect_secrets.plugins.high_entropy_strings import Base64HighEntropyString

    plugin = Base64HighEntropyString(limit=4.3)
    for match in plugin.regex.finditer(line):
        value, before = match[2].rstrip("\\"), line[max(0, match.start() - 40) : match.start()].lower()
        if len(value) > _DATA or not very_random(value) or re.search(_NO_SECRET, before):
            continue
        if plugin.calculate_shannon_entropy(value) > plugin.entropy_limit:
            yield ("high-entropy", match.start(2), match.start(2) + len(value))


def plugin_finds(text: str, low: str) -> Iterator[Span]:
    """What detect-secrets takes, with exact offsets in `text`, less what is plainly no secret."""
    for start, end in _windows(text, low):
        line = text[start:end]
        for finds in (_regex_finds, _keyword_finds, _entropy_finds):
            yield from ((kind, start + a, start + b) for kind, a, b in finds(line))
