"""The settings: names, types, defaults and environment variables in one table; where values come from."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, tzinfo
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from ua_memory import discovery
from ua_memory.discovery import SETTINGS, TRUSTED, USER, replace_private
from ua_memory.errors import CannotWrite, Malformed, NotFound, Usage
from ua_memory.paths import git_around, lies, make_private

# -- allowed -----------------------------------------------------------------------------------------------
# What a setting may be, beyond being of its type: the rules in the table below.


LONG_QUERIES = ("skip", "condense")
BUDGETS = ("low", "mid", "high")
CONTENTS = ("person", "assistant", "tool")
PROVIDERS = ("anthropic", "openai", "claude-code", "codex", "none")
MATCHES = ("any", "all", "any_strict", "all_strict", "exact")
"""How tags may be matched; `index.filters` says what each means."""


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
        raise ValueError(f"{value!r} is not a bank id: 1 to 64 letters, digits, - and _")


def _zone(value: str, _: str) -> None:
    if not is_zone(value or "UTC"):
        raise ValueError(f"unknown timezone {value!r}: use a name such as Europe/Kyiv")


def _paths(value: Any, source: str) -> None:
    # It counts for every bank: `notes` would be a folder of whatever repository one stands in.
    for path in ((value,) if value else ()) if isinstance(value, str) else value:
        if source == USER and not re.match(r"/|~(/|$)", path):
            raise ValueError(f"{path!r} does not begin with / or ~")


def _one_of(*words: str) -> Callable[[Any, str], None]:
    def rule(value: str, _: str) -> None:
        if value not in words:
            raise ValueError(f"{value!r} is not one of {', '.join(filter(None, words))}")

    return rule


def _provider(value: str, _: str) -> None:
    if value == "gemini":
        raise ValueError(
            "gemini cannot be the model: its program saves each chat, and sends GEMINI.md along with it"
        )
    _one_of("", *PROVIDERS)(value, _)


def _json_list(value: str, _: str) -> None:
    if value and not (value.startswith("[") and isinstance(json.loads(value), list)):
        raise ValueError(f"{value!r} is not a JSON list")


def _patterns(value: Mapping[str, str], _: str) -> None:
    for kind, pattern in value.items():
        if not re.fullmatch(r"[a-z][a-z0-9-]{0,39}", kind):
            raise ValueError(f"{kind!r} is not a name of a kind: lower-case letters, digits and -")
        _compiles(pattern, f"the pattern of {kind!r}")


def _contents(value: Sequence[str], _: str) -> None:
    for name in value:
        _one_of(*CONTENTS)(name, _)


def _expressions(value: Sequence[str], _: str) -> None:
    for pattern in value:
        _compiles(pattern, repr(pattern))


def _compiles(pattern: str, name: str) -> None:
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"{name} is not a valid regular expression: {error}") from error


# -- config ------------------------------------------------------------------------------------------------
# The settings: one table of names, defaults and environment variables, and where each value comes from.
#
# Environment over the user's own `config.toml` over the bank's `ua-memory.toml` over defaults. The
# environment is passed in by the door. A bank may have come with a stranger's repository: what would send
# text elsewhere, read other folders or keep something from being remembered is *sensitive*, and counts from
# a bank only once its owner has agreed to that very value (`trust`). That is remembered outside of the
# bank.


NO = "no:"
"""Before the hash of a setting that the owner declined."""
MOST_TRUSTED = 100
"""Hashes that are kept of one bank, the newest ones."""


class Setting(NamedTuple):
    """A row of the table: the default, the key in a settings file, its meaning, the environment variable.

    `rule` raises ValueError for a value that cannot be, of a source. A `sensitive` setting counts from a bank
    once trusted; `paths` are folders or files, where `~` is the home; `of_bank` makes no sense for all banks
    of a user. `name` is the field in `Config`."""

    default: Any
    key: str
    says: str
    env: str = ""
    low: float | None = None
    high: float | None = None
    rule: Callable[[Any, str], None] | None = None
    sensitive: bool = False
    paths: bool = False
    of_bank: bool = False
    name: str = ""


def _setting(default: Any, key: str, says: str, **more: Any) -> Any:
    """A field of `Config` that is a `Setting`."""
    row = {"row": Setting(default, key, says, **more)}
    if isinstance(default, dict):
        return field(default_factory=default.copy, metadata=row)
    return field(default=default, metadata=row)


@dataclass(frozen=True, slots=True)
class Config:
    """Every setting, typed.

    `sources` says of each where its value is from: 'default', 'ua-memory.toml', 'config.toml' (the user's) or
    the variable's name. `unknown` are the keys of the bank's file that no setting has, `unknown_user` those
    of the user's: a typo must not be silent. `untrusted` is what the bank's file says of sensitive settings
    and nobody has agreed to, `declined` to which of them the owner said no; `problems` say what was wrong
    where the reading went on with defaults.
    """

    # fmt: off
    id: str = _setting("", "id", "the bank's id, made by init", of_bank=True, rule=_id)
    trail: str = _setting("beside", "trail", of_bank=True, rule=_one_of("own", "beside"),
        says="own: the folder is a git repository of its own; beside: the history is kept separately")
    timezone: str = _setting("", "timezone", rule=_zone,
        says="IANA name, for the day of a fact; empty: the system's")
    mission: str = _setting("", "mission", "what this memory is for, in a sentence")
    directives: tuple[str, ...] = _setting((), "directives", "rules that reflect must follow")
    skepticism: int = _setting(3, "disposition.skepticism", "1 trusting to 5 sceptical", low=1, high=5)
    literalism: int = _setting(3, "disposition.literalism", "1 liberal to 5 literal", low=1, high=5)
    empathy: int = _setting(3, "disposition.empathy", "1 detached to 5 warm", low=1, high=5)
    core_block_tokens: int = _setting(1000, "core.block_tokens", "budget of one block of MEMORY.md", low=1)
    core_tokens: int = _setting(4000, "core.tokens", "budget of all of MEMORY.md", low=1)
    quiet_seconds: float = _setting(30.0, "hand_edits.quiet_seconds", low=0,
        says="seconds without a save before an edit is committed")
    few: int = _setting(5, "hand_edits.few", low=0,
        says="if more facts than this disappear at once, they await confirmation")
    lock_seconds: float = _setting(60.0, "store.lock_seconds", "seconds to wait for another writer", low=0)
    embedding: str = _setting("minilm-int8", "index.embedding", env="UA_MEMORY_EMBEDDING", sensitive=True,
        says="embedding model")
    chroma_url: str = _setting("", "index.chroma_url", env="UA_MEMORY_CHROMA_URL", sensitive=True,
        says="URL of a Chroma server; empty: files in the state folder")
    search_limit: int = _setting(6, "search.limit", "number of hits", low=1, high=1000)
    min_score: float = _setting(0.0, "search.min_score", "minimum score of a hit", low=0, high=1)
    search_seconds: float = _setting(2.0, "search.seconds", low=0,
        says="seconds a search may spend on reading changed files; 0: no limit")
    cross_encoder: str = _setting("", "search.cross_encoder", env="UA_MEMORY_CROSS_ENCODER", sensitive=True,
        paths=True, rule=_paths, says="folder of a cross-encoder model; empty: none")
    longest_query: int = _setting(2000, "recall.longest_query", "maximum characters of a query", low=1)
    long_query: str = _setting("skip", "recall.long_query_behavior", rule=_one_of(*LONG_QUERIES),
        says="skip or condense a longer query (recallLongQueryBehavior)")
    extra_paths: tuple[str, ...] = _setting((), "extraPaths", sensitive=True, paths=True, rule=_paths,
        says="other folders or files of markdown to search; never written")
    recall_budget: str = _setting("", "recall.budget", rule=_one_of("", *BUDGETS),
        says="low, mid or high; empty: search.limit hits")
    recall_max_tokens: int = _setting(0, "recall.max_tokens", low=0,
        says="token limit of recall's block; 0: that of recall.budget")
    auto_recall_tags: tuple[str, ...] = _setting((), "autoRecallTags",
        says="tags that filter what hooks recall; placeholders such as {project} are filled in")
    observation_scopes: tuple[str, ...] = _setting((), "observationScopes",
        says="tags, as {project}, that separate the observations from sessions")
    auto_recall_tags_match: str = _setting("any", "autoRecallTagsMatch", rule=_one_of(*MATCHES),
        says="any, all, any_strict, all_strict or exact; see docs/recall.md")
    auto_recall_tag_groups: str = _setting("", "autoRecallTagGroups", rule=_json_list,
        says="groups of tags, as a JSON string; see docs/recall.md")
    retain_content: tuple[str, ...] = _setting(CONTENTS, "retainContent", rule=_contents,
        says="whose turns are captured: person, assistant, tool")
    strip: tuple[str, ...] = _setting((), "strip", sensitive=True, rule=_expressions,
        says="regular expressions: matching text is not captured")
    tool_filter: tuple[str, ...] = _setting((), "toolFilter",
        says="tools whose calls are left out: mcp__github__*")
    sessions_keep: bool = _setting(True, "sessions.keep",
        says="save sessions; false: only the facts that a flush extracts")
    sessions_place: str = _setting("state", "sessions.place", sensitive=True, rule=_one_of("state", "bank"),
        says="state: on this machine only; bank: in memory/sessions/, committed and synced")
    sessions_agent: str = _setting("spoken", "sessions.agent", rule=_one_of("spoken", "all", "none"),
        says="which of the agent's messages are saved: spoken (no announcements), all or none")
    sessions_groups: bool = _setting(False, "sessions.groups", "also save group chats")
    sessions_days: int = _setting(0, "sessions.days", low=0, sensitive=True,
        says="days after which a session is deleted; 0: never")
    sessions_recall: bool = _setting(True, "sessions.recall",
        says="hooks and recall also search the saved sessions")
    daemon_idle_minutes: float = _setting(10.0, "daemon.idle_minutes", low=0,
        says="minutes without a command until the daemon exits")
    daemon_warm_minutes: float = _setting(3.0, "daemon.warm_minutes", low=0,
        says="minutes without a command until it unloads index and model")
    daemon_upkeep_minutes: float = _setting(5.0, "daemon.upkeep_minutes", low=0,
        says="minutes without a command until the daemon consolidates and refreshes pages; 0: never")
    watch_seconds: float = _setting(30.0, "watch.quiet_seconds", low=0,
        says="seconds without a save before a watched file is retained")
    mcp_tools: tuple[str, ...] = _setting((), "mcp.tools", env="UA_MEMORY_MCP_TOOLS",
        says="tools and sets for agents; empty: all. In the variable separated by commas")
    mcp_read_only: bool = _setting(False, "mcp.read_only", env="UA_MEMORY_MCP_READ_ONLY",
        says="1: agents get only read-only tools")
    redact: Mapping[str, str] = _setting({}, "redaction.patterns", rule=_patterns,
        says="your own secrets: kind to regular expression")
    enabled: bool = _setting(True, "enabled", env="UA_MEMORY_ENABLED",
        says="0: turns off flush, hooks and agents' tools")
    provider: str = _setting("", "provider", env="UA_MEMORY_PROVIDER", sensitive=True, rule=_provider,
        says="anthropic, openai, claude-code, codex or none; empty: anthropic, if its variables are set")
    model: str = _setting("", "model", env="UA_MEMORY_MODEL", sensitive=True,
        says="the model's name; empty: the provider's default")
    truncation_threshold: int = _setting(150_000, "flush.threshold", env="UA_TRUNCATION_THRESHOLD", low=1,
        says="size of the context at which a flush is due, in tokens")
    context_window: int = _setting(200_000, "flush.context_window", env="UA_CONTEXT_WINDOW", low=1000,
        says="size of the agent's context window, in tokens")
    run_tokens: int = _setting(5_000_000, "limits.run_tokens", low=0,
        says="tokens that one run may send and receive")
    run_usd: float = _setting(3.0, "limits.run_usd", "what one run may cost, in dollars", low=0)
    day_tokens: int = _setting(50_000_000, "limits.day_tokens", low=0,
        says="tokens that a day may send and receive")
    day_usd: float = _setting(15.0, "limits.day_usd", "what a day may cost, in dollars", low=0)
    # fmt: on
    sources: Mapping[str, str] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()
    unknown_user: tuple[str, ...] = ()
    untrusted: Mapping[str, Any] = field(default_factory=dict)
    declined: frozenset[str] = frozenset()
    problems: tuple[str, ...] = ()

    @property
    def own(self) -> bool:
        return self.trail == "own"

    @property
    def zone(self) -> tzinfo | None:
        """The bank's timezone; None for the system's."""
        return ZoneInfo(self.timezone) if self.timezone else None

    def clock(self, now: Callable[[], datetime] | None = None) -> Callable[[], datetime]:
        """A clock in the bank's timezone, by one in any; a time without a timezone is the machine's."""
        told = now or partial(datetime.now, UTC)
        return lambda: told().astimezone(self.zone)


@cache
def settings() -> tuple[Setting, ...]:
    """The settings, in the order of the table."""
    return tuple(one.metadata["row"]._replace(name=one.name) for one in fields(Config) if one.metadata)


def as_typed(key: str, words: Sequence[str], *, user: bool = False) -> tuple[str, Any]:
    """(field, value) of a setting as it is typed: one word, a word for each item of a list, or JSON for a
    list or table. NotFound for no setting; Usage for what it cannot be, or not in this file."""
    from difflib import get_close_matches

    keys = {spec.key: spec for spec in settings()}
    if key not in keys:
        near = get_close_matches(key, keys, 1)
        raise NotFound(
            f"unknown setting {key!r}{f'; did you mean {near[0]!r}?' if near else ''}",
            hint="ua-memory config",
        )
    spec = keys[key]
    default, text = spec.default, " ".join(words)
    if spec.of_bank:
        raise Usage("a bank's id cannot be changed", where=key, hint="ua-memory init creates another bank")
    raw: Any = text
    try:
        if isinstance(default, dict) or (isinstance(default, tuple) and text.lstrip().startswith("[")):
            raw = json.loads(text)
        elif isinstance(default, tuple):
            raw = text.split(",") if spec.env else list(words)
        value = _checked(spec, raw, USER if user else SETTINGS)
    except (Malformed, ValueError) as error:
        what = error.what if isinstance(error, Malformed) else f"{text!r} is not JSON"
        raise Usage(what, where=key, hint=_to_set(spec, USER if user else SETTINGS)) from error
    return spec.name, list(value) if isinstance(value, tuple) else value


def sensitive() -> dict[str, str]:
    """The settings that count from a bank only once trusted: field → key in the file."""
    return {spec.name: spec.key for spec in settings() if spec.sensitive}


def user_folder(env: Mapping[str, str]) -> Path | None:
    """The folder of the user's own settings; None where the environment names no home."""
    folder = discovery.user_folder(env)
    return Path(folder) if folder else None


def load(root: Path | str, env: Mapping[str, str], *, lenient: bool = False) -> Config:
    """The settings of the bank at `root`. Malformed names the file, the key and what it should be; a
    `lenient` reading takes the next source's value instead, in the end the default, and tells `problems`.

    A variable that is set to nothing counts as not set.
    """
    root = Path(root)
    reading = _Reading(root, env, lenient)
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for spec in settings():
        value, sources[spec.name] = reading.value(spec, values.get("id", ""))
        if sources[spec.name] != "default":
            values[spec.name] = value
    if "default" in (sources["id"], sources["trail"]):
        values |= _where_it_lies(root, values)
    known = {spec.key for spec in settings()}
    return Config(
        **values, sources=sources, unknown=tuple(_unknown_keys(reading.bank, known)),
        unknown_user=tuple(_unknown_keys(reading.user, known - {"id", "trail"})),
        untrusted=reading.untrusted, declined=frozenset(reading.declined), problems=tuple(reading.problems),
    )  # fmt: skip


class _Reading:
    """One reading of all settings: the files as they are, and what was found wrong on the way."""

    def __init__(self, root: Path, env: Mapping[str, str], lenient: bool) -> None:
        self.root, self.env, self.lenient = root, env, lenient
        self.problems: list[str] = []
        self.untrusted: dict[str, Any] = {}
        self.declined = set[str]()
        folder = user_folder(env)
        self.files = {USER: folder / USER if folder else None, SETTINGS: root / SETTINGS}
        self.user = self._file(USER)
        self.bank = self._file(SETTINGS)
        self.trusted = _trusted_hashes(folder) if folder else {}

    def value(self, spec: Setting, bank_id: str) -> tuple[Any, str]:
        """What a setting is, and its source."""
        for raw, source in self._given(spec):
            try:
                value = self._with_home(spec, _checked(spec, raw, source), source)
            except Malformed as error:
                if not self.lenient:
                    raise
                self.problems.append(self._describe_problem(error, spec, source))
                continue
            if source == SETTINGS and spec.sensitive and value != spec.default:
                who = bank_id or _path_id(self.root)
                digest, agreed = _digest(self.root, spec, value), self.trusted.get(who, ())
                if digest not in agreed:
                    self.untrusted[spec.name] = value
                    self.declined |= {spec.name} if NO + digest in agreed else set()
                    continue
            return value, source
        return None, "default"

    def _given(self, spec: Setting) -> Iterator[tuple[Any, str]]:
        variable, key = spec.env, spec.key
        if variable and self.env.get(variable):
            yield self.env[variable], variable
        if not spec.of_bank and (raw := _lookup(self.user, key)) is not None:
            yield raw, USER
        if (raw := _lookup(self.bank, key)) is not None:
            yield raw, SETTINGS

    def _with_home(self, spec: Setting, value: Any, source: str) -> Any:
        """The value with `~` resolved, as far as the environment tells which home that is."""
        home = self.env.get("HOME")
        if not spec.paths or not home:
            return value
        if isinstance(value, str):
            value = re.sub(r"^~(?=/|$)", lambda _: home, value)
            return os.path.normpath(self.root / value) if value and source == SETTINGS else value
        return tuple(re.sub(r"^~(?=/|$)", lambda _: home, path) for path in value)

    def _file(self, name: str) -> dict[str, Any]:
        file = self.files[name]
        try:
            return _read(file) if file else {}
        except Malformed as error:
            if not self.lenient:
                raise
            line = re.search(r"at line (\d+)", error.what)
            where = f"{file}:{line[1]}" if line else file
            self.problems.append(f"{where}: {error.what}; it is ignored (hint: {error.hint})")
            return _read_broken(file) if file and name == SETTINGS else {}

    def _describe_problem(self, error: Malformed, spec: Setting, source: str) -> str:
        key, file = spec.key, self.files.get(source)
        where = f"{file}:{_line(file, key)}: {key}" if file else source
        return f"{where}: {error.what}, and is ignored (hint: {error.hint})"


def _read(file: Path) -> dict[str, Any]:
    """What a settings file says; nothing where there is none. Malformed."""
    try:
        return tomllib.loads(discovery.read(file).decode("utf-8-sig"))
    except FileNotFoundError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError, RecursionError) as error:
        where = SETTINGS if file.name == SETTINGS else str(file)
        shut = isinstance(error, PermissionError)
        said, hint = ("Permission denied", f"chmod u+rw {file}") if shut else (error, f"correct {file}")
        raise Malformed(f"cannot be read: {said}", where=where, hint=hint) from error


def _read_broken(file: Path) -> dict[str, Any]:
    """Which bank it is and whether it is switched off, by single lines of a file that is no TOML: its state
    must be found all the same, and who wants nothing kept is to be heard."""
    try:
        text = discovery.read(file).decode("utf-8-sig", "replace")
    except OSError:
        return {}
    rows = re.findall(r"""^(id|trail|enabled)[ \t]*=[ \t]*(["']?)([\w-]+)\2[ \t]*(?:#.*)?$""", text, re.M)
    return {key: value for key, _, value in rows}


def _where_it_lies(root: Path, values: Mapping[str, Any]) -> dict[str, Any]:
    """Which bank it is, by the state folder that it has, where its settings do not say."""
    found = lies(root)
    if found is None:
        return {}
    there = {"trail": "own" if found[0] else "beside", "id": found[1]}
    return {key: value for key, value in there.items() if value and not values.get(key)}


def _line(file: Path, dotted: str) -> int:
    """The line of a settings file on which a key stands, 1 where that cannot be told."""
    table = ""
    for number, row in enumerate(discovery.read(file).decode("utf-8-sig", "replace").splitlines(), 1):
        head = re.match(r"\s*\[+([^\]]+)\]", row)
        table = f"{head[1].strip()}." if head else table
        name = f"{table}{re.split(r'[={]', row, maxsplit=1)[0].strip()}"
        if "=" in row and (dotted == name or dotted.startswith(f"{name}.")):
            return number
    return 1


# -- what an owner has agreed to -----------------------------------------------------------------------------


def trust(root: Path, env: Mapping[str, str], config: Config, names: Iterable[str] | None = None) -> None:
    """Remember that the owner agrees to what the bank's file says of these settings, else of all that are not
    trusted yet. CannotWrite where there is no place for it."""
    specs = {spec.name: spec for spec in settings()}
    wanted = config.untrusted if names is None else set(names) & set(config.untrusted)
    fresh = [_digest(root, specs[name], config.untrusted[name]) for name in wanted]
    if fresh:
        _keep(root, env, config, lambda there: [*(each for each in there if each not in fresh), *fresh])


def distrust(root: Path, env: Mapping[str, str], config: Config, *, wholly: bool) -> None:
    """Remember that the owner says no to what is not trusted yet, or `wholly` to all that the bank's file
    says of sensitive settings: nothing warns of it until it changes."""
    specs = [s for s in settings() if s.name in config.untrusted]
    specs += [s for s in settings() if wholly and s.sensitive and config.sources[s.name] == SETTINGS]
    values = (config.untrusted.get(spec.name, getattr(config, spec.name)) for spec in specs)
    said = [NO + _digest(root, spec, value) for spec, value in zip(specs, values, strict=True)]
    _keep(root, env, config, lambda there: [*({} if wholly else dict.fromkeys(there)), *said])


def save(file: Path, data: bytes) -> None:
    """Put a file of the user's in place, whole and for nobody else to read. OSError."""
    file = Path(os.path.realpath(file))  # a link into somebody's dotfiles stays one
    make_private(file.parent)
    replace_private(str(file), data)


def _keep(root: Path, env: Mapping[str, str], config: Config, edit: Callable[[list[str]], list[str]]) -> None:
    folder = user_folder(env)
    if folder is None:
        raise CannotWrite("there is no home folder to save it in", hint="set HOME or XDG_CONFIG_HOME")
    there, who = _trusted_hashes(folder), config.id or _path_id(root)
    kept = {**there, who: edit(there.get(who, []))[-MOST_TRUSTED:]}
    values = {"banks": {name: hashes for name, hashes in kept.items() if hashes}}
    save(folder / TRUSTED, json.dumps(values, indent=1).encode() + b"\n")


def _trusted_hashes(folder: Path) -> dict[str, list[str]]:
    """Bank → hashes. A file that cannot be read agrees to nothing."""
    try:
        found = json.loads(discovery.read(folder / TRUSTED))["banks"]
        return {str(who): [each for each in hashes if isinstance(each, str)] for who, hashes in found.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def _path_id(root: Path) -> str:
    """How a bank without an id is known: no id has a colon in it."""
    return f"path:{os.path.realpath(root)}"


def _digest(root: Path, spec: Setting, value: Any) -> str:
    """The hash of a setting and what it means here.

    A relative path means another folder in another clone, and a link inside of the bank's repository
    another one after a pull: what is agreed to is the folder that it leads to.
    """
    if spec.paths:
        value = [_real_path(root, path) for path in (value if isinstance(value, tuple) else (value,))]
    return hashlib.sha256(json.dumps([spec.key, value]).encode()).hexdigest()


def _real_path(root: Path, path: str) -> str:
    real = Path(os.path.realpath(root))
    place = git_around(real)
    top = str(place.top if place else real)
    named = os.path.normpath(real / path)
    return os.path.realpath(named) if f"{named}/".startswith(f"{top}/") else named


def _lookup(written: Mapping[str, Any], dotted: str) -> Any:
    here: Any = written
    for part in dotted.split("."):
        here = here.get(part) if isinstance(here, dict) else None
    return here


def _unknown_keys(written: Mapping[str, Any], known: set[str], above: str = "") -> Iterator[str]:
    for key, value in written.items():
        name = f"{above}{key}"
        if name in known:
            continue
        if isinstance(value, Mapping) and any(k.startswith(f"{name}.") for k in known):
            yield from _unknown_keys(value, known, f"{name}.")
        else:
            yield name


def _checked(spec: Setting, raw: Any, source: str) -> Any:
    low, high = spec.low, spec.high
    where = f"{source}, {spec.key}" if source in (SETTINGS, USER) else source
    try:
        value = _converted(raw, spec.default, source not in (SETTINGS, USER))
        if (low is not None and not value >= low) or (high is not None and not value <= high):
            bounds = f"from {low} to {high}" if high is not None else f"{low} or more"
            raise ValueError(f"{value} is out of range: {bounds}")
        if spec.rule:
            spec.rule(value, source)
    except (TypeError, ValueError, OverflowError) as error:
        raise Malformed(str(error), where=where, hint=_to_set(spec, source)) from error
    return value


def _to_set(spec: Setting, source: str) -> str:
    """How a value that can not be is corrected where it stands."""
    key, says = spec.key, spec.says
    if source not in (SETTINGS, USER):
        return f"correct {source}, or unset it ({says})"
    return f"ua-memory config set {key} VALUE{' --user' if source == USER else ''} ({says})"


def _converted(raw: Any, default: Any, from_env: bool) -> Any:
    """The raw value as the default's type; a variable's is always a string, with commas in a list of strings.
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
    bool: "1 or 0", str: "a string", tuple: "a list of strings", dict: "a table", int: "an integer",
    float: "a number",
}  # fmt: skip


# -- configfile --------------------------------------------------------------------------------------------
# Changing a settings file: one value set, every other byte of it as it was. The home of
# tomlkit, imported where a file is edited: every command reads settings, and it takes as long as they do.


_BOM = b"\xef\xbb\xbf"


def put(data: bytes, file: str, key: str, value: Any) -> bytes:
    """The file with a setting; `key` has a dot where it stands in a table. Malformed."""
    parts = key.split(".")

    def change(document: Any) -> None:
        here = document
        for part in parts[:-1]:
            if part not in here:
                here[part] = {}
            here = here[part]
            if not isinstance(here, Mapping):
                raise Malformed(f"{part!r} is a value there, no table", where=file, hint="edit it by hand")
        here[parts[-1]] = value

    def meant(before: Mapping[str, Any]) -> dict[str, Any]:
        return _with(before, parts, value)

    return edited(data, file, change, meant)


def edited(
    data: bytes, file: str, change: Callable[[Any], None],
    meant: Callable[[Mapping[str, Any]], Mapping[str, Any]],
) -> bytes:  # fmt: skip
    """The file after a change of its document. Malformed where it is no TOML, or where what comes of it would
    not say what is `meant`, of what it said before."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    bom, rest = (_BOM, data[len(_BOM) :]) if data.startswith(_BOM) else (b"", data)
    try:
        text = rest.decode()
        document = tomlkit.parse(text)
        change(document)
        new = tomlkit.dumps(document)
        fine = tomllib.loads(new) == meant(tomllib.loads(text))
    except (TOMLKitError, tomllib.TOMLDecodeError, UnicodeDecodeError, TypeError) as error:
        raise Malformed(f"cannot be edited: {error}", where=file, hint="edit it by hand") from error
    if not fine:
        raise Malformed("this setting cannot be edited separately", where=file, hint="edit it by hand")
    return bom + new.encode()


def _with(before: Mapping[str, Any], parts: list[str], value: Any) -> dict[str, Any]:
    head, rest = parts[0], parts[1:]
    return {**before, head: _with(before.get(head, {}), rest, value) if rest else value}
