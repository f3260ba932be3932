"""What a setting may be, beyond being of its type: one rule for each that has one."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from zoneinfo import ZoneInfo

from ua_memory.paths import USER

ORDERS = ("late", "score", "rrf")
LONG_QUERIES = ("skip", "condense")
BOOSTS = ("recency", "proofs", "importance", "kind", "trust")
BUDGETS = ("low", "mid", "high")
CONTENTS = ("person", "assistant", "tool")
MATCHES = ("any", "all", "any_strict", "all_strict")
"""How tags may be matched; `index.scopes` says what each means."""


def is_zone(name: str) -> bool:
    """Whether `name` is a time zone by its IANA name."""
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return False
    return True


def _id(value: str, _: str) -> None:
    # It names a folder under the git directory: one from a cloned repository must not lead out of there.
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", value):
        raise ValueError(f"{value!r} is no bank id: 1 to 64 letters, digits, - and _")


def _trail(value: str, _: str) -> None:
    if value not in ("own", "beside"):
        raise ValueError(f"{value!r} is neither own nor beside")


def _zone(value: str, _: str) -> None:
    if not is_zone(value or "UTC"):
        raise ValueError(f"no timezone {value!r}: use a name such as Europe/Kyiv")


def _paths(value: Any, source: str) -> None:
    # It counts for every bank: `notes` would be a folder of whatever repository one stands in.
    for path in ((value,) if value else ()) if isinstance(value, str) else value:
        if source == USER and not re.match(r"/|~(/|$)", path):
            raise ValueError(f"{path!r} does not begin with / or ~")


def _among(*words: str) -> Callable[[Any, str], None]:
    def rule(value: str, _: str) -> None:
        if value not in words:
            raise ValueError(f"{value!r} is none of {', '.join(filter(None, words))}")

    return rule


def _json_list(value: str, _: str) -> None:
    import json

    if value and not (value.startswith("[") and isinstance(json.loads(value), list)):
        raise ValueError(f"{value!r} is no list in JSON")


def _boosts(value: Sequence[str], _: str) -> None:
    for name in value:
        if name not in BOOSTS:
            raise ValueError(f"{name!r} is none of {', '.join(BOOSTS)}")


def _patterns(value: Mapping[str, str], _: str) -> None:
    for kind, pattern in value.items():
        if not re.fullmatch(r"[a-z][a-z0-9-]{0,39}", kind):
            raise ValueError(f"{kind!r} is no name of a kind: small letters, digits and -")
        try:
            re.compile(pattern)
        except (re.error, RecursionError, OverflowError) as error:
            raise ValueError(f"the pattern of {kind!r} is no regular expression: {error}") from error


def _contents(value: Sequence[str], _: str) -> None:
    for name in value:
        if name not in CONTENTS:
            raise ValueError(f"{name!r} is none of {', '.join(CONTENTS)}")


def _expressions(value: Sequence[str], _: str) -> None:
    for pattern in value:
        try:
            re.compile(pattern)
        except (re.error, RecursionError, OverflowError) as error:
            raise ValueError(f"{pattern!r} is no regular expression: {error}") from error


RULES: Mapping[str, Callable[[Any, str], None]] = {
    "id": _id, "trail": _trail, "timezone": _zone, "redact": _patterns,
    "extra_paths": _paths, "cross_encoder": _paths,
    "order": _among(*ORDERS), "long_query": _among(*LONG_QUERIES), "recall_budget": _among("", *BUDGETS),
    "boosts": _boosts,
    "retain_content": _contents, "strip": _expressions,
    "auto_recall_tags_match": _among(*MATCHES), "auto_recall_tag_groups": _json_list,
}  # fmt: skip
