"""Making a bank: settings, core memory, a folder for the logs, and a git repository where there is none."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from ua_memory import config as settings
from ua_memory.config import Config
from ua_memory.errors import CannotWrite, GitFailed
from ua_memory.facts import new_id
from ua_memory.history import History
from ua_memory.paths import CORE_NAMES, LOGS, SETTINGS, Bank, git_around, locate
from ua_memory.store import Store
from ua_memory.store.draft import Result

CORE = b"# Memory\n\nWhat every session begins with: one `## Section` a block, kept short.\n"


@dataclass(frozen=True, slots=True)
class Founded:
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
) -> Founded:
    """Make `root` a bank, or complete it; what is there is kept to the byte and committed as the person's.

    A folder outside any git repository becomes one of its own. Inside somebody's (a code project, an
    OpenClaw workspace) their repository is not touched: the trail lies under its git directory.
    """
    try:
        (root / LOGS).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CannotWrite(error.strerror or str(error), where=str(root)) from error
    root = root.resolve()
    present = settings.load(root, {})
    before = locate(root, own=present.own, bank_id=present.id)
    config = replace(present, id=present.id or new_id(), timezone=present.timezone or timezone)
    fresh = not (root / SETTINGS).exists()
    if fresh and git_around(root) is None:
        config = replace(config, trail="own")
    notes = _make_repository(root, config, before)
    bank = locate(root, own=config.own, bank_id=config.id)
    _move_state(before, bank)
    store = Store(bank, config, now or config.clock())
    with store.revision("init", door=door) as draft:
        made = [] if any(draft.exists(name) for name in CORE_NAMES) else [CORE_NAMES[0]]
        if made:
            draft.write(CORE_NAMES[0], CORE, restored=True)
        if not draft.exists(SETTINGS):
            draft.write(SETTINGS, _toml(config), restored=True)
            made.append(SETTINGS)
        draft.subject = "init: make this folder a bank"
    store.adopt()
    return Founded(bank, config, tuple(made), replace(draft.result, notes=(*notes, *draft.result.notes)))


def _make_repository(root: Path, config: Config, before: Bank) -> list[str]:
    """The bank's own repository, made from a trail that was begun before git was there, if there is one."""
    own = root / ".git"
    if not config.own or own.exists():
        return []
    earlier = History(before.git_dir, root, own=False)
    try:
        if earlier.exists:
            earlier.run("config", "--unset", "core.worktree")
            earlier.run("config", "core.bare", "false")
            before.git_dir.rename(own)
        else:
            History(own, root, own=True).create()
    except GitFailed as error:
        return [f"{error.what}; commits wait until `ua-memory init` is run again with git installed"]
    return []


def _move_state(before: Bank, after: Bank) -> None:
    """Take along what an unfinished or nameless bank had already: pending work, trail, index."""
    if before.state == after.state or not before.state.exists():
        return
    after.state.parent.mkdir(parents=True, exist_ok=True)
    if not after.state.exists():
        before.state.rename(after.state)
        with contextlib.suppress(FileNotFoundError):
            (after.state / ".gitignore").unlink()
        return
    for part in ("pending", "cache", "local"):
        if (before.state / part).is_dir():
            shutil.copytree(before.state / part, after.state / part, dirs_exist_ok=True)
    shutil.rmtree(before.state)


def _toml(config: Config) -> bytes:
    zone = (
        f'timezone = "{config.timezone}"'
        if config.timezone
        else '# timezone = "Europe/Kyiv"   # else the system\'s'
    )
    return f"""\
# The settings of this memory bank. `ua-memory config` lists all of them and where each value comes from.
id = "{config.id}"
trail = "{config.trail}"   # own: this folder is the bank's git repository; beside: its history is kept apart
{zone}

# mission = "what this memory is for"

# [core]                    # budgets of MEMORY.md, in tokens
# block_tokens = 1000
# tokens = 4000

# [redaction]               # more secrets: a kind and a regular expression each
# patterns = {{ "internal-host" = "[a-z0-9-]+\\\\.corp\\\\.example" }}
""".encode()
