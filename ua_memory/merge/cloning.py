"""A second machine: a new folder becomes what a remote has, whatever branch of it the bank is on.

All of it is made beside the folder and put in its place at the end: killed on the way, it is begun anew.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from ua_memory.errors import CannotWrite, Conflict, NoBank, UaMemoryError, Usage
from ua_memory.finding import DATED
from ua_memory.history import History
from ua_memory.history.remotes import REMOTE, shown
from ua_memory.merge.joining import settings
from ua_memory.merge.refusing import refuse
from ua_memory.paths import CORE_NAMES, LOGS, SETTINGS

BRANCHES = 20
"""So many branches are looked at for a bank, the remote's own first."""
PART = ".ua-memory-part"
AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Cloned:
    """What was cloned: from where, which branch, and how much. `notes` name what could not be."""

    address: str
    branch: str
    revisions: int
    files: int
    notes: tuple[str, ...] = ()


def clone(root: Path, address: str) -> Cloned | None:
    """Make `root` the bank that a remote has; None where it is already. Usage where something else is there,
    NoBank where the remote has none, Conflict for one that belongs beside code, GitFailed."""
    History.address(address)
    if _is_clone(root, address):
        return None
    try:
        if root.is_dir() and any(root.iterdir()):
            mend = (
                "name an empty folder; a bank that is there already takes it in with ua-memory sync --remote"
            )
            raise Usage("the folder is not empty", where=str(root), mend=mend)
        root.parent.mkdir(parents=True, exist_ok=True)
        part = root.with_name(f".{root.name}{PART}")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
    except OSError as error:
        raise CannotWrite(
            error.strerror or str(error), where=str(root), mend="name another folder"
        ) from error
    try:
        done = _made(History(part / ".git", part, own=True), address)
        part.replace(root)
    except OSError as error:
        raise CannotWrite(
            error.strerror or str(error), where=str(root), mend="name another folder"
        ) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return done


def _is_clone(root: Path, address: str) -> bool:
    """Whether an earlier run came to its end."""
    history = History(root / ".git", root, own=True)
    try:
        return history.exists and history.remote() == (REMOTE, address)
    except UaMemoryError:
        return False


def _made(history: History, address: str) -> Cloned:
    history.create()
    branch, sha = _found(history, address)
    known = settings(history.read(sha, SETTINGS)) or {}
    if known.get("trail") == "beside":
        raise Conflict(
            "this memory is kept beside code", where=shown(address),
            mend="in a checkout of that code: ua-memory init, then ua-memory sync --remote ADDRESS",
        )  # fmt: skip
    there = history.differing(None, sha)
    refuse(history, sha, there)
    history.run("symbolic-ref", "HEAD", f"refs/heads/{branch}")
    history.run("update-ref", f"refs/heads/{branch}", sha)
    history.set_remote(address)
    history.run("config", f"branch.{branch}.remote", REMOTE)
    history.run("config", f"branch.{branch}.merge", f"refs/heads/{branch}")
    history.run("update-ref", f"refs/remotes/{REMOTE}/{branch}", sha)
    history.agree(REMOTE, sha)
    plain = {path: entry for path, entry in there.items() if entry[0].startswith("100")}
    _check_out(history, plain)
    notes = tuple(
        f"{path} is no plain file, and was not checked out" for path in sorted(there.keys() - plain.keys())
    )
    return Cloned(shown(address), branch, history.number(None, sha), len(plain), notes)


def _found(history: History, address: str) -> tuple[str, str]:
    """The branch that has a bank, and its newest revision, which is here then."""
    default, heads = history.heads(address)
    if not heads:
        raise NoBank(
            "nothing is there yet", where=shown(address),
            mend="on the machine that has the bank: ua-memory sync --remote ADDRESS",
        )  # fmt: skip
    order = dict.fromkeys((default, "main", "master", *heads))
    for branch in [name for name in order if name in heads][:BRANCHES]:
        sha = history.fetch_objects(address, f"refs/heads/{branch}")
        if any(map(_is_sign, history.blobs(rev=sha))):
            return branch, sha
    raise NoBank(
        f"no branch there holds a memory bank ({', '.join(list(heads)[:5])})", where=shown(address),
        mend="ua-memory init makes one, and ua-memory sync --remote puts it into a remote of its own",
    )  # fmt: skip


def _is_sign(path: str) -> bool:
    """Whether a file marks a folder as a bank, as `paths.is_bank` has it."""
    folder, _, name = path.rpartition("/")
    log = folder == LOGS and name.endswith(".md") and DATED.match(name)
    return path in (SETTINGS, *CORE_NAMES) or bool(log)


def _check_out(history: History, files: dict[str, tuple[str, str]]) -> None:
    """Write a revision's files as they are in it, and git's index with them; no filter is run."""
    paths = sorted(files)
    for start in range(0, len(paths), AT_ONCE):
        some = paths[start : start + AT_ONCE]
        for path, data in zip(some, history.read_all([(files[p][1], "") for p in some]), strict=True):
            if {part.casefold() for part in path.split("/")} & {"..", ".", ".git", ""}:
                raise Conflict("no name of a file", where=repr(path)[:200])
            file = history.root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data or b"")
            if files[path][0] == "100755":
                file.chmod(file.stat().st_mode | 0o100)
    history.run("read-tree", "HEAD")
    history.run("update-index", "-q", "--refresh", ok=(0, 1))
