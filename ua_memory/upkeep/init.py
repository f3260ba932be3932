"""`init`: creating a bank's settings, core memory, folder for logs, and git repository."""

from __future__ import annotations

import re
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
from ua_memory.paths import Bank, confined, git_around, is_memory_file, locate, make_private, without_git
from ua_memory.store import files, swap
from ua_memory.store.draft import Result
from ua_memory.store.store import Store
from ua_memory.text.patterns import data_text
from ua_memory.text.redaction import find
from ua_memory.text.wording import CORE_INTRO, counted

NEW_CORE_MEMORY = f"# Memory\n\n{CORE_INTRO}\n".encode()


@dataclass(frozen=True, slots=True)
class InitResult:
    """The result of `init`. `made` are the files it wrote, none if the bank was complete."""

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
    """Make `root` a bank, or complete one. Existing files are committed unchanged, as the person's.

    A folder outside any git repository becomes a repository of its own. Inside somebody's (a code project, an
    OpenClaw workspace) that repository is not touched: the history is stored below its git directory.
    Usage for an unknown timezone, CannotWrite.
    """
    if timezone and not config_module.is_zone(timezone):
        raise Usage(f"unknown timezone {timezone!r}", hint="use a name such as Europe/Kyiv")
    with writing(root / LOGS, "move what is in the way, check owner and mode, or choose another folder"):
        (root / LOGS).mkdir(parents=True, exist_ok=True)
    root = root.resolve()
    for name in CORE_NAMES:  # what cannot be read is refused before a repository is made
        files.read(root / name)
    present = config_module.load(root, {})
    before = locate(root, own=present.own, bank_id=present.id)
    restored = _restore_deleted(Store(before, present, present.clock(now)))
    present = config_module.load(root, {}) if restored else present
    missing = _missing_settings(root, present, timezone)
    config = replace(present, **missing)
    notes = [*restored, *_make_repository(root, config, before)]
    bank = locate(root, own=config.own, bank_id=config.id)
    clock = config.clock(now)
    for earlier in (before, without_git(root)):
        notes += _move_state(earlier, bank, config, clock)
    store = Store(bank, config, clock)
    store.make_state()
    store.adopt()
    made, result = _write_files(store, missing, door)
    return InitResult(bank, config, made, replace(result, notes=(*notes, *result.notes)))


def _restore_deleted(store: Store) -> list[str]:
    """Write the files of a bank again of which none is left, and say so. `git clean` in the repository around
    a bank deletes them all, since that git does not know them."""
    blobs = {path: name for path, name in store.history.blobs().items() if is_memory_file(path)}
    if not blobs or any((store.bank.root / path).exists() for path in blobs):
        return []
    contents = store.history.contents(blobs.values())
    for path, name in blobs.items():
        with writing(file := confined(store.bank.root, path)):
            file.parent.mkdir(parents=True, exist_ok=True)
            swap.write_new(file, contents[name])
    return [f"restored {counted(len(blobs), 'file')} of this bank from its history: they had been deleted"]


def _missing_settings(root: Path, present: Config, timezone: str) -> dict[str, Any]:
    """{key: value} of settings that identify the bank and are not in its file yet."""
    apart = present.sources["trail"] == "default"
    own = "own" if present.own or git_around(root) is None else "beside"
    wanted = {
        "id": (present.id or new_id()) if present.sources["id"] == "default" else "",
        "trail": own if apart else "",
        "timezone": "" if present.timezone else timezone,
    }
    return {key: value for key, value in wanted.items() if value}


def _write_files(store: Store, missing: Mapping[str, Any], door: str) -> tuple[tuple[str, ...], Result]:
    """Write the files that a bank needs, or add to its settings; (names of the files written, result)."""
    with store.revision("init", door=door) as draft:
        if not any(draft.exists(name) for name in CORE_NAMES):
            draft.write(CORE_NAMES[0], NEW_CORE_MEMORY, restored=True)
        if is_blank(str(store.bank.root / SETTINGS)):
            draft.write(SETTINGS, _new_settings_file(store.config), restored=True)
        elif missing:
            # At the end of the file they would belong to its last table.
            lines = [f'{key} = "{value}"' for key, value in missing.items()]
            draft.write(SETTINGS, insert_after(draft.read(SETTINGS), 0, lines), restored=True)
        made = tuple(draft.changed())
        draft.subject = "init: make this folder a bank"
    return made, draft.result


def set_setting(store: Store, key: str, value: Any, *, by_person: bool) -> Result | None:
    """Set a setting in the bank's file; None if it had that value. Usage for a secret; Malformed."""
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
    """Create the bank's own repository, from an earlier history in the state folder if there is one;
    notes."""
    own = root / ".git"
    if not config.own or own.exists():
        return []
    earlier = History(before.git_dir, root, own=False)
    try:
        earlier.git()  # fails without git, before an empty `.git` is created
        if earlier.exists:
            earlier.run("config", "--unset", "core.worktree")
            earlier.run("config", "core.bare", "false")
            before.git_dir.rename(own)
            # With an empty index `git status` would list every file as deleted.
            History(own, root, own=True).run("read-tree", "HEAD")
            return [f"the history was moved from {before.git_dir} to {own}"]
        else:
            History(own, root, own=True).create()
    except GitFailed as error:
        return [f"{error.what}; nothing is committed until you install git and run `ua-memory init` again"]
    except OSError as error:
        raise CannotWrite(error.strerror or str(error), where=str(own)) from error
    return []


def _move_state(before: Bank, after: Bank, config: Config, now: Callable[[], datetime]) -> list[str]:
    """Move the state of the same bank from an earlier location: pending work, history, cache; notes."""
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
        # Two histories cannot be merged here, and neither may be lost.
        aside = after.state / f"earlier-{now():%Y%m%d%H%M%S}.git"
        before.git_dir.rename(aside)
        shutil.rmtree(before.state)
    return [f"an earlier history of this bank is kept in {aside}"]


def _new_settings_file(config: Config) -> bytes:
    unset = '# timezone = "Europe/Kyiv"   # else the system\'s'
    zone = f'timezone = "{config.timezone}"' if config.timezone else unset
    filled = {"@id@": config.id, "@trail@": config.trail, "@timezone@": zone}
    return re.sub("@[a-z]+@", lambda key: filled[key[0]], data_text("new_settings.toml")).encode()
