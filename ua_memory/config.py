"""The settings: one table of names, defaults and environment variables, and where each value comes from.

Environment over `ua-memory.toml` over defaults. The environment is passed in by the door. Endpoints and
keys have no name in the file on purpose, and what would send text elsewhere cannot be chosen there: a
bank that came with a cloned repository must not redirect anything.
"""

from __future__ import annotations

import contextlib
import math
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import Field, dataclass, field, fields
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from ua_memory.allowed import BUDGETS, MATCHES, RULES, is_zone
from ua_memory.errors import Malformed
from ua_memory.paths import SETTINGS

__all__ = ["BUDGETS", "MATCHES", "Config", "is_zone", "load", "settings"]


def _setting(
    default: Any, toml: str, says: str, env: str = "", low: float | None = None, high: float | None = None,
    in_file: bool = True,
) -> Any:  # fmt: skip
    meta = {"toml": toml, "env": env, "says": says, "low": low, "high": high, "in_file": in_file}
    if isinstance(default, dict):
        return field(default_factory=default.copy, metadata=meta)
    return field(default=default, metadata=meta)


@dataclass(frozen=True, slots=True)
class Config:
    """Every setting, typed.

    `sources` says of each where its value is from: 'default', 'ua-memory.toml' or the variable's name.
    `unknown` are the keys of the file that no setting has: a typo must not be silent.
    """

    id: str = _setting("", "id", "the bank's id, made by init")
    trail: str = _setting("beside", "trail", "own: the folder is its own git repository; beside: kept apart")
    timezone: str = _setting("", "timezone", "IANA name: a fact goes to the day it is there; empty: system's")
    mission: str = _setting("", "mission", "what this memory is for")
    directives: tuple[str, ...] = _setting((), "directives", "hard rules for reflect")
    skepticism: int = _setting(3, "disposition.skepticism", "1 trusting to 5 sceptical", low=1, high=5)
    literalism: int = _setting(3, "disposition.literalism", "1 between the lines to 5 literal", low=1, high=5)
    empathy: int = _setting(3, "disposition.empathy", "1 detached to 5 warm", low=1, high=5)
    core_block_tokens: int = _setting(1000, "core.block_tokens", "budget of one block of MEMORY.md", low=1)
    core_tokens: int = _setting(4000, "core.tokens", "budget of all of MEMORY.md", low=1)
    quiet_seconds: float = _setting(
        30.0, "hand_edits.quiet_seconds", "rest before an edit is committed", low=0
    )
    few: int = _setting(5, "hand_edits.few", "more facts than this gone at once wait for a yes", low=0)
    lock_seconds: float = _setting(60.0, "store.lock_seconds", "how long to wait for another writer", low=0)
    embedding: str = _setting("minilm-int8", "index.embedding", "what embeds", "UA_MEMORY_EMBEDDING")
    chroma_url: str = _setting(
        "", "index.chroma_url", "a Chroma server; only by its variable", "UA_MEMORY_CHROMA_URL", in_file=False
    )
    search_limit: int = _setting(6, "search.limit", "hits a search prints", low=1, high=1000)
    min_score: float = _setting(0.0, "search.min_score", "weaker hits are left out", low=0, high=1)
    search_seconds: float = _setting(
        2.0, "search.seconds", "time to read changes before a search answers without them; 0: any", low=0
    )
    order: str = _setting("late", "search.order", "late, score or rrf: how candidates become one order")
    cross_encoder: str = _setting(
        "",
        "search.cross_encoder",
        "folder of a cross-encoder; only by its variable",
        "UA_MEMORY_CROSS_ENCODER",
        in_file=False,
    )
    longest_query: int = _setting(
        2000, "recall.longest_query", "characters; a query of more is over-long", low=1
    )
    long_query: str = _setting(
        "skip", "recall.long_query_behavior", "skip or condense an over-long query (recallLongQueryBehavior)"
    )
    boosts: tuple[str, ...] = _setting(
        (), "search.boosts", "what decides near ties: recency, proofs, importance, kind, trust"
    )
    extra_paths: tuple[str, ...] = _setting(
        (), "extraPaths", "other folders or files of markdown that search reads, too; never written"
    )
    recall_budget: str = _setting(
        "", "recall.budget", "low, mid or high; empty: as many hits as search prints"
    )
    recall_max_tokens: int = _setting(
        0, "recall.max_tokens", "tokens of recall's block; 0: its budget's", low=0
    )
    auto_recall_tags: tuple[str, ...] = _setting(
        (), "autoRecallTags", "tags of what a hook puts into a prompt; {project} and such are filled in"
    )
    observation_scopes: tuple[str, ...] = _setting(
        (),
        "observationScopes",
        "tags, as {project}, by whose values the beliefs drawn from sessions are kept apart",
    )
    auto_recall_tags_match: str = _setting(
        "any", "autoRecallTagsMatch", "any, all, any_strict or all_strict; see docs/recall.md"
    )
    auto_recall_tag_groups: str = _setting("", "autoRecallTagGroups", "the same in groups: a text of JSON")
    retain_content: tuple[str, ...] = _setting(
        ("person", "assistant", "tool"), "retainContent", "whose turns are kept: person, assistant, tool"
    )
    strip: tuple[str, ...] = _setting(
        (), "strip", "regular expressions: what matches is left out of what was said"
    )
    tool_filter: tuple[str, ...] = _setting(
        (), "toolFilter", "tools whose calls are left out: mcp__github__*"
    )
    daemon_idle_minutes: float = _setting(
        10.0, "daemon.idle_minutes", "rest after which the daemon leaves", low=0
    )
    daemon_warm_minutes: float = _setting(
        3.0, "daemon.warm_minutes", "rest after which it lets go of index and model", low=0
    )
    watch_seconds: float = _setting(
        30.0, "watch.quiet_seconds", "rest before a watched file is retained", low=0
    )
    mcp_tools: tuple[str, ...] = _setting(
        (), "mcp.tools", "the tools agents have; empty: all. The variable parts names by commas",
        "UA_MEMORY_MCP_TOOLS",
    )  # fmt: skip
    mcp_read_only: bool = _setting(
        False, "mcp.read_only", "1: agents get only tools that read", "UA_MEMORY_MCP_READ_ONLY"
    )
    redact: Mapping[str, str] = _setting({}, "redaction.patterns", "own secrets: kind to regular expression")
    enabled: bool = _setting(True, "enabled", "0 switches flush and hooks off", "UA_MEMORY_ENABLED")
    truncation_threshold: int = _setting(
        150_000, "flush.threshold", "tokens of context from which a flush is due", "UA_TRUNCATION_THRESHOLD",
        low=1,
    )  # fmt: skip
    context_window: int = _setting(
        200_000, "flush.context_window", "tokens that an agent's context holds", "UA_CONTEXT_WINDOW", low=1000
    )
    run_tokens: int = _setting(5_000_000, "limits.run_tokens", "what one run may send and get", low=0)
    run_usd: float = _setting(3.0, "limits.run_usd", "what one run may cost, in dollars", low=0)
    day_tokens: int = _setting(50_000_000, "limits.day_tokens", "what a day may send and get", low=0)
    day_usd: float = _setting(15.0, "limits.day_usd", "what a day may cost, in dollars", low=0)
    sources: Mapping[str, str] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()

    @property
    def own(self) -> bool:
        return self.trail == "own"

    @property
    def zone(self) -> tzinfo | None:
        """The bank's timezone; None for the system's."""
        return ZoneInfo(self.timezone) if self.timezone else None

    def clock(self) -> Callable[[], datetime]:
        """A clock in the bank's timezone: what `Memory.open` goes by when nobody sets the time."""
        zone = self.zone
        return lambda: datetime.now(zone).astimezone(zone)


def settings() -> list[tuple[str, str, str, str, Any]]:
    """(field, key in the file, environment variable, meaning, default) of each setting, in order."""
    plain = Config()
    return [
        (
            spec.name,
            spec.metadata["toml"],
            spec.metadata["env"],
            spec.metadata["says"],
            getattr(plain, spec.name),
        )
        for spec in _table()
    ]


def load(root: Path, env: Mapping[str, str]) -> Config:
    """The settings of the bank at `root`. Malformed names the file, the key and what it should be.

    A variable that is set to nothing counts as not set.
    """
    written = _read(root / SETTINGS)
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for spec in _table():
        in_file = spec.metadata["in_file"]
        raw, source = _lookup(written, spec.metadata["toml"]) if in_file else None, SETTINGS
        variable = spec.metadata["env"]
        if variable and env.get(variable):
            raw, source = env[variable], variable
        sources[spec.name] = "default" if raw is None else source
        if raw is not None:
            values[spec.name] = _checked(spec, raw, source)
    if env.get("HOME") and (extra := values.get("extra_paths")):  # this side of the door knows no home
        values["extra_paths"] = tuple(re.sub(r"^~(?=/|$)", lambda _: env["HOME"], path) for path in extra)
    known = {spec.metadata["toml"] for spec in _table() if spec.metadata["in_file"]}
    return Config(**values, sources=sources, unknown=tuple(_strangers(written, known)))


def _table() -> Iterator[Field[Any]]:
    return (spec for spec in fields(Config) if spec.metadata)


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError, RecursionError) as error:
        raise Malformed(f"cannot be read: {error}", where=SETTINGS, mend=f"correct {file}") from error


def _lookup(written: Mapping[str, Any], dotted: str) -> Any:
    here: Any = written
    for part in dotted.split("."):
        here = here.get(part) if isinstance(here, Mapping) else None
    return here


def _strangers(written: Mapping[str, Any], known: set[str], above: str = "") -> Iterator[str]:
    for key, value in written.items():
        name = f"{above}{key}"
        if name in known:
            continue
        if isinstance(value, Mapping) and value and any(k.startswith(f"{name}.") for k in known):
            yield from _strangers(value, known, f"{name}.")
        else:
            yield name


def _checked(spec: Field[Any], raw: Any, source: str) -> Any:
    meta, default = spec.metadata, getattr(Config(), spec.name)
    where = source if source != SETTINGS else f"{SETTINGS}, {meta['toml']}"
    low, high = meta["low"], meta["high"]
    try:
        value = _converted(raw, default, source != SETTINGS)
        if (low is not None and not value >= low) or (high is not None and not value <= high):
            bounds = f"from {low} to {high}" if high is not None else f"{low} or more"
            raise ValueError(f"{value} is out of range: {bounds}")
        if spec.name in RULES:
            RULES[spec.name](value, source)
    except (TypeError, ValueError, OverflowError) as error:
        raise Malformed(str(error), where=where, mend=meta["says"]) from error
    return value


def _converted(raw: Any, default: Any, from_env: bool) -> Any:
    """The raw value as the default's type; a variable's is always a string, with commas in a list of texts.
    TypeError if it is none."""
    if isinstance(default, bool):
        word = str(raw).strip().lower()
        if word in ("1", "true", "yes", "on", "0", "false", "no", "off"):
            return word in ("1", "true", "yes", "on")
    elif isinstance(default, str):
        if isinstance(raw, str):
            return raw
    elif isinstance(default, tuple):
        raw = [word.strip() for word in raw.split(",") if word.strip()] if from_env else raw
        if isinstance(raw, list) and all(isinstance(item, str) for item in raw):
            return tuple(raw)
    elif isinstance(default, dict):
        if isinstance(raw, dict) and all(isinstance(item, str) for item in raw.values()):
            return dict(raw)
    elif isinstance(raw, int | float | str) and not isinstance(raw, bool):
        with contextlib.suppress(ValueError):
            number = float(raw)
            if math.isfinite(number) and (isinstance(default, float) or number.is_integer()):
                return type(default)(number)
    raise TypeError(f"{raw!r} is not {_KINDS[type(default)]}")


_KINDS = {
    bool: "1 or 0", str: "a text", tuple: "a list of texts", dict: "a table of texts", int: "a whole number",
    float: "a number",
}  # fmt: skip
