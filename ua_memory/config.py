"""The settings: one table of names, defaults and environment variables, and where each value comes from.

Environment over `ua-memory.toml` over defaults. The environment is passed in by the door. Endpoints
and keys have no name in the file on purpose: a bank that came with a cloned repository must not redirect them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from ua_memory.errors import Malformed
from ua_memory.paths import SETTINGS


def _setting(default: Any, toml: str, says: str, env: str = "", low: float | None = None, high: float | None = None) -> Any:
    made = {"metadata": {"toml": toml, "env": env, "says": says, "low": low, "high": high}}
    return field(default_factory=lambda: default, **made) if isinstance(default, dict) else field(default=default, **made)


@dataclass(frozen=True, slots=True)
class Config:
    """Every setting, typed. `sources` says of each whether it is a default, from the file or the environment."""

    id: str = _setting("", "id", "the bank's id, made by init")
    trail: str = _setting("beside", "trail", "own: this folder is the bank's git repository; beside: the trail is kept apart")
    timezone: str = _setting("", "timezone", "IANA name; a fact goes to the day it was said there; empty: the system's")
    mission: str = _setting("", "mission", "what this memory is for")
    directives: tuple[str, ...] = _setting((), "directives", "hard rules for reflect")
    skepticism: int = _setting(3, "disposition.skepticism", "1 trusting to 5 sceptical", low=1, high=5)
    literalism: int = _setting(3, "disposition.literalism", "1 reads between the lines to 5 literal", low=1, high=5)
    empathy: int = _setting(3, "disposition.empathy", "1 detached to 5 warm", low=1, high=5)
    core_block_tokens: int = _setting(1000, "core.block_tokens", "budget of one block of MEMORY.md", low=1)
    core_tokens: int = _setting(4000, "core.tokens", "budget of all of MEMORY.md", low=1)
    quiet_seconds: float = _setting(30.0, "hand_edits.quiet_seconds", "a hand edit is committed after so much quiet", low=0)
    few: int = _setting(5, "hand_edits.few", "more facts than this gone at once wait for a yes", low=0)
    lock_seconds: float = _setting(60.0, "store.lock_seconds", "how long to wait for another writer", low=0)
    embedding: str = _setting("minilm-int8", "index.embedding", "the embedding function", "UA_MEMORY_EMBEDDING")
    search_limit: int = _setting(6, "search.limit", "hits a search prints", low=1, high=1000)
    min_score: float = _setting(0.0, "search.min_score", "weaker hits are left out", low=0, high=1)
    redact: Mapping[str, str] = _setting({}, "redaction.patterns", "own secrets: kind to regular expression")
    enabled: bool = _setting(True, "enabled", "0 switches flush and hooks off", "UA_MEMORY_ENABLED")
    sources: Mapping[str, str] = field(default_factory=dict)

    @property
    def own(self) -> bool:
        return self.trail == "own"

    def clock(self) -> Callable[[], datetime]:
        """A clock in the bank's timezone: what a door hands to `Memory.open` when nobody sets the time."""
        zone: tzinfo | None = ZoneInfo(self.timezone) if self.timezone else None
        return lambda: datetime.now(zone).astimezone(zone)


def settings() -> list[tuple[str, str, str, str, Any]]:
    """(field, key in the file, environment variable, meaning, default) of each setting, in the table's order."""
    plain = Config()
    return [
        (f.name, f.metadata["toml"], f.metadata["env"], f.metadata["says"], getattr(plain, f.name))
        for f in fields(Config)
        if f.metadata
    ]


def load(root: Path, env: Mapping[str, str]) -> Config:
    """The settings of the bank at `root`. Malformed names the file, the key and what it should be."""
    known = _read(root / SETTINGS)
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for spec in fields(Config):
        if not spec.metadata:
            continue
        raw, source = _lookup(known, spec.metadata["toml"]), SETTINGS
        if spec.metadata["env"] and spec.metadata["env"] in env:
            raw, source = env[spec.metadata["env"]], spec.metadata["env"]
        sources[spec.name] = "default" if raw is None else source
        if raw is not None:
            values[spec.name] = _checked(spec.name, raw, spec.metadata, source)
    config = Config(**values, sources=sources)
    _check_zone(config)
    return config


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Malformed(str(error), where=SETTINGS, mend=f"correct {file}") from error


def _lookup(known: Mapping[str, Any], dotted: str) -> Any:
    here: Any = known
    for part in dotted.split("."):
        here = here.get(part) if isinstance(here, Mapping) else None
    return here


def _checked(name: str, raw: Any, meta: Mapping[str, Any], source: str) -> Any:
    default = getattr(Config(), name)
    where = source if source != SETTINGS else f"{SETTINGS}, {meta['toml']}"
    try:
        value = _converted(raw, default)
    except (TypeError, ValueError) as error:
        raise Malformed(f"{raw!r} is not a {type(default).__name__}", where=where, mend=meta["says"]) from error
    for bound, off in ((meta["low"], lambda v, b: v < b), (meta["high"], lambda v, b: v > b)):
        if bound is not None and off(value, bound):
            raise Malformed(f"{value} is out of range ({meta['low']}–{meta['high']})", where=where, mend=meta["says"])
    if name == "trail" and value not in ("own", "beside"):
        raise Malformed(f"{value!r} is neither own nor beside", where=where, mend=meta["says"])
    return value


def _converted(raw: Any, default: Any) -> Any:
    if isinstance(default, bool):
        if str(raw).lower() not in ("0", "1", "true", "false", "yes", "no", "on", "off"):
            raise ValueError(raw)
        return str(raw).lower() in ("1", "true", "yes", "on")
    if isinstance(default, tuple | dict):
        kind = list if isinstance(default, tuple) else dict
        if not isinstance(raw, kind) or not all(isinstance(v, str) for v in (raw if kind is list else raw.values())):
            raise TypeError(raw)
        return type(default)(raw)
    if isinstance(raw, bool) or (isinstance(default, str) and not isinstance(raw, str)):
        raise TypeError(raw)
    return type(default)(raw)


def _check_zone(config: Config) -> None:
    if config.timezone:
        try:
            ZoneInfo(config.timezone)
        except (KeyError, ValueError, OSError) as error:
            raise Malformed(
                f"no timezone {config.timezone!r}", where=f"{SETTINGS}, timezone", mend="use a name such as Europe/Kyiv"
            ) from error
