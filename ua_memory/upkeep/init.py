"""Making a bank: settings, core memory, a folder for the logs, and a git repository where there is none."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from ua_memory import config as config_module
from ua_memory.config import Config
from ua_memory.discovery import CORE_NAMES, LOGS, SETTINGS, is_blank
from ua_memory.errors import CannotWrite, GitFailed, Usage, writing
from ua_memory.git.history import History
from ua_memory.knowledge.statements import new_id
from ua_memory.markdown.lines import insert_after
from ua_memory.paths import Bank, git_around, locate, make_private, without_git
from ua_memory.store.draft import Result
from ua_memory.store.store import Store
from ua_memory.text.redaction import find
from ua_memory.text.wording import CORE_INTRO

CORE = f"# Memory\n\n{CORE_INTRO}\n".encode()


@dataclass(frozen=True, slots=True)
class InitResult:
    """What init did. `made` names the files it wrote, empty where the bank was complete already."""

    bank: Bank
    config: Config
    made: tuple[str, ...]
    result: Result


def open_store(root: Path, config: Config, now: Callable[[], datetime]) -> Store:
    """The store of the bank at `root`."""
    return Store(locate(root, own=config.own, bank_id=config.id), config, now)


def init(
    root: Path, now: Callable[[], datetime] | None = None, *, timezone: str = "", door: str = "cli"
) -> InitResult:
    """Make `root` a bank, or complete it; what is there is kept to the byte and committed as the person's.

    A folder outside any git repository becomes one of its own. Inside somebody's (a code project, an
    OpenClaw workspace) their repository is not touched: the trail lies under its git directory.
    Usage for an unknown timezone, CannotWrite where nothing can be made.
    """
    if timezone and not config_module.is_zone(timezone):
        raise Usage(f"unknown timezone {timezone!r}", hint="use a name such as Europe/Kyiv")
    with writing(root, "choose another folder"):
        (root / LOGS).mkdir(parents=True, exist_ok=True)
    root = root.resolve()
    present = config_module.load(root, {})
    before = locate(root, own=present.own, bank_id=present.id)
    missing = _missing(root, present, timezone)
    config = replace(present, **missing)
    notes = _make_repository(root, config, before)
    bank = locate(root, own=config.own, bank_id=config.id)
    clock = now or config.clock()
    for earlier in (before, without_git(root)):
        notes += _move_state(earlier, bank, config, clock)
    store = Store(bank, config, clock)
    store.make_state()
    store.adopt()
    made, result = _write(store, missing, door)
    return InitResult(bank, config, made, replace(result, notes=(*notes, *result.notes)))


def _missing(root: Path, present: Config, timezone: str) -> dict[str, Any]:
    """What the settings file must say for the bank to be found again, and does not yet."""
    apart = present.sources["trail"] == "default"
    own = "own" if git_around(root) is None else "beside"
    wanted = {
        "id": "" if present.id else _former_id(root) or new_id(),
        "trail": own if apart else "",
        "timezone": "" if present.timezone else timezone,
    }
    return {key: value for key, value in wanted.items() if value}


def _former_id(root: Path) -> str:
    """The id of a trail in the repository around that was this folder's: `git clean -fdx` takes the settings
    away and leaves the trail, which must be found again."""
    place = git_around(root)
    if not place:
        return ""
    nameless = locate(root).state.name
    for state in sorted((place.common / "ua-memory").glob(f"*-{place.worktree}")):
        trail = History(state / "trail.git", root, own=False)
        with contextlib.suppress(GitFailed):
            if trail.exists and state.name != nameless:
                kept = trail.run("config", "--get", "core.worktree").rstrip(b"\n")
                if os.fsdecode(kept) == str(root):
                    return state.name.removesuffix(f"-{place.worktree}")
    return ""


def _write(store: Store, missing: Mapping[str, Any], door: str) -> tuple[tuple[str, ...], Result]:
    """Write the files that a bank needs, or add to its settings; the names of those written."""
    with store.revision("init", door=door) as draft:
        if not any(draft.exists(name) for name in CORE_NAMES):
            draft.write(CORE_NAMES[0], CORE, restored=True)
        if is_blank(str(store.bank.root / SETTINGS)):
            draft.write(SETTINGS, _toml(store.config), restored=True)
        elif missing:
            # A table's keys run to the end of the file, so what belongs to none goes to its start.
            lines = [f'{key} = "{value}"' for key, value in missing.items()]
            draft.write(SETTINGS, insert_after(draft.read(SETTINGS), 0, lines), restored=True)
        made = tuple(draft.changed())
        draft.subject = "init: make this folder a bank"
    return made, draft.result


def set_setting(store: Store, key: str, value: Any, *, by_person: bool) -> Result | None:
    """Set a setting in the bank's file; None where it stood there already. Usage for a secret; Malformed."""
    if find(str(value)):
        what = "this value holds a secret, and the bank's file is committed and synced"
        hint = "add --user, or set its variable"
        raise Usage(what, where=key, hint=hint)
    with store.revision("config", door="cli", by_person=by_person) as draft:
        before = draft.read(SETTINGS)
        after = config_module.put(before, SETTINGS, key, value)
        if after != before:
            draft.write(SETTINGS, after, restored=True)
            draft.subject = f"config: set {key}"
    return draft.result if after != before else None


def _make_repository(root: Path, config: Config, before: Bank) -> list[str]:
    """The bank's own repository, made from a trail that was begun before git was there, if there is one."""
    own = root / ".git"
    if not config.own or own.exists():
        return []
    earlier = History(before.git_dir, root, own=False)
    try:
        earlier.git()  # where there is none, not even an empty `.git` is left behind
        if earlier.exists:
            earlier.run("config", "--unset", "core.worktree")
            earlier.run("config", "core.bare", "false")
            before.git_dir.rename(own)
            # git's index is empty so far: without this `git status` calls every file deleted.
            History(own, root, own=True).run("read-tree", "HEAD")
        else:
            History(own, root, own=True).create()
    except GitFailed as error:
        return [f"{error.what}; nothing is committed until you install git and run `ua-memory init` again"]
    except OSError as error:
        raise CannotWrite(error.strerror or str(error), where=str(own)) from error
    return []


def _move_state(before: Bank, after: Bank, config: Config, now: Callable[[], datetime]) -> list[str]:
    """Take along what an unfinished or nameless bank had already: pending work, trail, cache."""
    if before.state == after.state or not before.state.exists():
        return []
    with Store(before, config, now).locked():
        make_private(after.state.parent)
        if not after.state.exists():
            before.state.rename(after.state)
            (after.state / ".gitignore").unlink(missing_ok=True)
            return []
        for part in ("pending", "cache", "local"):
            if (before.state / part).is_dir():
                shutil.copytree(before.state / part, after.state / part, dirs_exist_ok=True)
        if not before.git_dir.exists():
            shutil.rmtree(before.state)
            return []
        # Two histories cannot be made one here, and none may be lost.
        aside = after.state / f"earlier-{now():%Y%m%d%H%M%S}.git"
        before.git_dir.rename(aside)
        shutil.rmtree(before.state)
    return [f"an earlier history of this bank is kept in {aside}"]


def _toml(config: Config) -> bytes:
    unset = '# timezone = "Europe/Kyiv"   # else the system\'s'
    zone = f'timezone = "{config.timezone}"' if config.timezone else unset
    return f"""\
# The settings of this memory bank. `ua-memory config` lists all of them and where each value comes from.
id = "{config.id}"
trail = "{config.trail}"   # own: this folder is the bank's git repository; beside: its history is separate
{zone}

# mission = "what this memory is for"

# [core]                    # budgets of MEMORY.md, in tokens
# block_tokens = 1000
# tokens = 4000

# [redaction]               # more secrets: a kind and a regular expression each
# patterns = {{ "internal-host" = "[a-z0-9-]+\\\\.corp\\\\.example" }}
""".encode()
