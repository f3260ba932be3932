"""Where things lie: the bank above a folder, and the state folder that belongs to a bank.

Path logic; all that is made here is a private folder. Environment and home are passed in; git is recognised
by its files, never run.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shlex
import threading
import time
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple, Protocol

from ua_memory import discovery
from ua_memory.discovery import BESIDE, CORE_NAMES, LOGS, SETTINGS
from ua_memory.errors import NoBank, Usage

LONGEST_PATH, LONGEST_NAME = 1024, 255
"""Characters of a path and bytes of a name; what is longer no file system here would take."""
DATED = re.compile(r"(\d{4}-\d{2}-\d{2})(?!\d)")
ORDERED = frozenset("ext2 ext3 ext4 xfs btrfs bcachefs f2fs jfs zfs tmpfs ramfs overlay".split())  # noqa: SIM905
"""File systems of which this kernel sees every change; one that is shared (nfs, 9p, fuse) changes unheard."""


@dataclass(frozen=True, slots=True)
class Bank:
    """A bank's folders. `own` tells a git repository of the bank's own from a history kept apart from others'
    code.

    `git_dir` is the history: every revision is a commit there. It may not exist yet.
    """

    root: Path
    own: bool
    state: Path
    git_dir: Path

    @property
    def pending(self) -> Path:
        return self.state / "pending"

    @property
    def index(self) -> Path:
        return self.state / "index"

    @property
    def cache(self) -> Path:
        return self.state / "cache"

    @property
    def local(self) -> Path:
        return self.state / "local"

    @property
    def sessions(self) -> Path:
        return self.state / "sessions"


@dataclass(frozen=True, slots=True)
class GitPlace:
    """The repository around a folder: its top level, its git directory, and what its worktrees share."""

    top: Path
    git_dir: Path
    common: Path

    @property
    def worktree(self) -> str:
        return discovery.worktree(str(self.git_dir), str(self.common))


def is_bank(folder: Path) -> bool:
    """Whether a folder is marked as a bank; see `discovery`."""
    return discovery.is_bank_at(str(folder))


def discover(start: Path, home: Path) -> Path | None:
    """The nearest bank at or above `start`, if there is one; see `finding`."""
    found = discovery.bank_above(str(start), str(home))
    return None if found is None else Path(found)


def default_bank(home: Path) -> Path:
    """The bank of last resort, in plain sight since its owner is meant to read it."""
    return home / "ua-memory"


def git_around(folder: Path) -> GitPlace | None:
    """The git repository that `folder` lies in, worktrees and submodules included, read from its files.

    A `.git` file that leads nowhere (its repository was moved or deleted) counts as none.
    """
    found = discovery.git_folders(str(folder))
    return None if found is None else GitPlace(*map(Path, found))


def project_of(folder: Path) -> str:
    """What a folder's project is called; see `discovery.project_of`."""
    return discovery.project_of(str(folder))


def derived_id(root: Path, place: GitPlace | None) -> str:
    """An id for a bank that has no settings yet: the same in every checkout of the same tree."""
    inner = root.relative_to(place.top).as_posix() if place else "."
    return hashlib.sha256(f"bank:{inner}".encode()).hexdigest()[:10]


def locate(root: Path, *, own: bool = False, bank_id: str = "") -> Bank:
    """The folders of the bank at `root`.

    A repository of its own keeps state in `.git/ua-memory/`. Inside somebody's repository history and
    state live under the common git directory, where neither `git clean` nor a branch switch reaches.
    """
    root = root.resolve()
    place = git_around(root)
    if own and place and place.top == root:
        return Bank(root, True, place.git_dir / "ua-memory", place.git_dir)
    if place:
        state = place.common / "ua-memory" / f"{bank_id or derived_id(root, place)}-{place.worktree}"
        return Bank(root, False, state, state / "trail.git")
    return without_git(root)


def without_git(root: Path) -> Bank:
    """The folders of a bank at `root` as long as there is no git around it."""
    return Bank(root, False, root / BESIDE, root / BESIDE / "trail.git")


def lies(root: Path) -> tuple[bool, str] | None:
    """(own, id) of the bank at `root` by the history that lies there, for who cannot read its settings; None
    where that cannot be told."""
    root = root.resolve()
    place = git_around(root)
    if place is None:
        return None
    states = (one.parent.parent.name for one in _histories(place) if _worktree_of(one) == str(root))
    of_it = {name.removesuffix(f"-{place.worktree}") for name in states} - {derived_id(root, place)}
    if len(of_it) == 1:
        return False, of_it.pop()
    own = place.top == root and not of_it and (place.git_dir / "ua-memory" / "lock").exists()
    return (True, "") if own else None


def _histories(place: GitPlace) -> Iterator[Path]:
    """The settings of the histories of banks inside a repository."""
    return (place.common / "ua-memory").glob(f"*-{place.worktree}/trail.git/config")


def emptied_bank(folder: Path) -> Path | None:
    """The folder, at or above this one, of a bank whose files were deleted, but not its history."""
    place = git_around(folder.resolve())
    roots = {Path(_worktree_of(one)) for one in _histories(place)} if place else set[Path]()
    above = (folder.resolve(), *folder.resolve().parents)
    return next((each for each in above if each in roots and not is_bank(each)), None)


def _worktree_of(config: Path) -> str:
    """The folder that a history says it is of, as git writes it."""
    try:
        rows = os.fsdecode(config.read_bytes()).splitlines()
    except OSError:
        return ""
    named = (row.partition("=")[2].strip() for row in rows if row.strip().startswith("worktree"))
    return next(named, "").strip('"')


def vault_of(folder: Path) -> Path | None:
    """The Obsidian vault that a folder is or lies in: the nearest with `.obsidian`, at or above it."""
    above = (folder, *folder.parents)
    return next((each for each in above if os.path.isdir(f"{each}/.obsidian")), None)  # noqa: PTH112


class LinkNames:
    """What the files of a bank are called in links: by their bare names as Obsidian does, `2026-11-21`, and
    by the path in the vault, `memory/2026-11-21`, where another note of it has that name.

    The vault is the nearest folder with `.obsidian` at or above the bank, else the bank. It is walked once;
    after `renew` each folder costs a stat, and those that have changed are listed again. Where the vault
    holds more than can be walked, an Obsidian vault's notes are called by their paths. Threads may share
    one.
    """

    MOST = 50_000
    """Entries that are looked at."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._vault = root
        self._folders: dict[str, _VaultFolder] = {}
        self._names: Counter[str] | None = None
        self._known = False
        self._turn = threading.Lock()

    def renew(self) -> LinkNames:
        """Answer what is asked from now on by the folders as they are then; gives itself."""
        self._known = False
        return self

    def __call__(self, path: str) -> str:
        bare = path.rpartition("/")[2].removesuffix(".md")
        with self._turn:
            if not self._known:
                self._look()
            vault, names = self._vault, self._names
        if names is None:
            alone = not (vault / ".obsidian").is_dir()
        else:  # the file itself may be about to be written
            alone = names[bare.casefold()] <= os.path.exists(f"{self.root}/{path}")  # noqa: PTH110 (False where it may not be seen)
        if alone:
            return bare
        return (self.root / path).relative_to(vault).as_posix().removesuffix(".md")

    def _look(self) -> None:
        vault = vault_of(self.root) or self.root
        before = self._folders if vault == self._vault else {}
        if before and all(_changed(at) == folder.changed_ns for at, folder in before.items()):
            self._known = True
            return
        folders, waiting, left = dict[str, _VaultFolder](), [str(vault)], self.MOST
        while waiting and left >= 0:
            at = waiting.pop()
            folders[at] = found = _folder(at, before.get(at))
            left -= found.entries
            waiting += found.below
        if left < 0:
            self._names = None
        elif self._names is None or folders != before:
            self._names = Counter(name for each in folders.values() for name in each.notes)
        self._vault, self._folders, self._known = vault, folders, True


class _VaultFolder(NamedTuple):
    """A folder of a vault: when it was changed (-1 where that may have been after it was listed), the folders
    in it by their paths, the names of its notes, and how many entries count."""

    changed_ns: int = -1
    below: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    entries: int = 0


_SETTLED_NS = 2_000_000_000
"""A folder changed so recently may change again within the same tick of the file system's clock."""


def _changed(folder: str) -> int:
    """When a folder was changed; 0 where that cannot be said."""
    try:
        return os.stat(folder).st_mtime_ns  # noqa: PTH116 (each folder of a vault, before each answer)
    except OSError:
        return 0


def _folder(path: str, before: _VaultFolder | None) -> _VaultFolder:
    """The folder as it is; `before` as it was listed last. Empty where it cannot be read."""
    changed, now = _changed(path), time.time_ns()
    if before and before.changed_ns == changed:
        return before
    try:
        with os.scandir(path) as found:
            entries = [(each.name, each.is_dir(follow_symlinks=False)) for each in found]
    except OSError:
        return _VaultFolder()
    below = [name for name, folder in entries if folder and name[0] != "." and name != "node_modules"]
    files = [name for name, folder in entries if not folder]
    notes = tuple(name[:-3].casefold() for name in files if name.endswith(".md"))
    settled = changed if changed < now - _SETTLED_NS else -1
    return _VaultFolder(settled, tuple(f"{path}/{name}" for name in below), notes, len(below) + len(files))


def sync_path(path: Path) -> None:
    """Make a file, or the names in a folder, durable (fsync)."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def append_lines(file: IO[bytes], lines: bytes) -> None:
    """Append whole lines to a file that is open for reading and appending; they are on the disk on return. A
    half line that a killed writer left is ended first, so that readers can skip it. OSError."""
    if file.seek(0, os.SEEK_END):
        file.seek(-1, os.SEEK_END)
        if file.read(1) != b"\n":
            file.write(b"\n")
    file.write(lines)
    file.flush()
    os.fsync(file.fileno())


def make_private(folder: Path) -> None:
    """Make a folder of the state, and those above it that are missing, for their owner alone: what `mkdir`
    makes above a folder has the mode that the umask leaves."""
    if not folder.is_dir():
        if not folder.parent.is_dir():
            make_private(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def is_memory_file(path: str) -> bool:
    """Whether a bank-relative path is one that a memory file or the settings may have, by its name alone.

    No `..`, nothing hidden, no characters that file names of ours could not be told by in a message.
    """
    if path in (*CORE_NAMES, SETTINGS):
        return True
    parts = path.split("/")
    return (
        len(parts) > 1
        and parts[0] == LOGS
        and path.endswith(".md")
        and len(path) <= LONGEST_PATH
        and all(
            part and part[0] != "." and len(part.encode("utf-8", "surrogatepass")) <= LONGEST_NAME
            for part in parts
        )
        and not _odd(path)
    )


def _odd(path: str) -> bool:
    if path.isascii():
        return "\\" in path or not path.isprintable()
    if any(char == "\\" or unicodedata.category(char) == "Cc" for char in path):
        return True
    try:
        os.fsencode(path)
    except UnicodeEncodeError:  # half a character, as JSON may have it: no file can be called so
        return True
    return False


def confined(root: Path, path: str) -> Path:
    """The absolute path of a memory file, or Usage: no `..`, no absolute path, no symlink on the way."""
    if not is_memory_file(path):
        hint = "use MEMORY.md or a .md file under memory/"
        hint = f"ua-memory search {path}" if path.isalpha() else hint
        raise Usage("not a file of the bank", where=repr(path)[:200], hint=hint)
    top = here = str(root)
    for part in path.split("/"):  # as texts: a search confirms each of its hits, and paths took it half a ms
        here = f"{here}/{part}"
        if os.path.islink(here):  # noqa: PTH114
            where = here[len(top) + 1 :]
            raise Usage("a symbolic link is not followed", where=where, hint="put the file itself here")
    return root / path


def foreign(path: str) -> str:
    """The kind of file system that a folder lies on, if it is none of `ORDERED`; '' if that is unknown."""
    best, kind = "", ""
    with contextlib.suppress(OSError, ValueError, IndexError):
        for row in Path("/proc/self/mountinfo").read_text("utf-8", "surrogateescape").splitlines():
            left, _, right = row.partition(" - ")
            point = re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), left.split()[4])
            if (path == point or path.startswith(point.rstrip("/") + "/")) and len(point) >= len(best):
                best, kind = point, right.split()[0]
    return "" if kind in ORDERED else kind


# -- from where a call came --------------------------------------------------------------------------------


class Surroundings(Protocol):
    """From where a call came: its folder, home and variables, and the bank that it names."""

    cwd: Path
    home: Path
    env: Mapping[str, str]
    bank: str | None


def named(call: Surroundings) -> Path | None:
    """The bank that `--bank` or `UA_MEMORY_BANK` names, whether there is one or not."""
    given = call.bank or call.env.get("UA_MEMORY_BANK")
    return absolute(call, given) if given else None


def absolute(call: Surroundings, given: str) -> Path:
    """A path as the caller means it: from their folder, `~` being their home."""
    if given == "~" or given.startswith("~/"):
        return call.home / given[2:]
    return call.cwd / given


def found(call: Surroundings) -> Path | None:
    """The nearest bank at or above the caller's folder."""
    if not call.cwd.is_dir():
        raise NoBank(
            "the current folder is gone",
            where=str(call.cwd),
            hint="cd to a folder that exists, or name the bank with --bank",
        )
    return discover(call.cwd, call.home)


def bank_root(call: Surroundings) -> Path:
    """The folder of the bank that a call is about. NoBank tells how to make one."""
    chosen = named(call)
    if chosen is not None:
        if not chosen.is_dir() or not is_bank(chosen):
            by = "--bank" if call.bank else "UA_MEMORY_BANK"
            if chosen.exists() and not chosen.is_dir():
                inside = discover(chosen.parent, call.home)
                hint = f"name the bank it is in: {inside}" if inside else "name the folder of a bank"
                raise NoBank(f"not a folder (given by {by})", where=str(chosen), hint=hint)
            raise NoBank(
                f"not a memory bank (given by {by}){_empty(chosen)}",
                where=str(chosen),
                hint=f"ua-memory init {shlex.quote(str(chosen))}",
            )
        return chosen
    nearest = found(call)
    if nearest is not None:
        return nearest
    default = default_bank(call.home)
    if not default.is_dir() or not is_bank(default):
        if emptied := emptied_bank(call.cwd):
            raise NoBank(
                "the files of this bank are gone, as after `git clean` or `git stash -u`; its history is not",
                where=str(emptied),
                hint=f"ua-memory init {shlex.quote(str(emptied))} (restores them)",
            )
        raise NoBank(
            f"no memory bank here or above{_empty(call.cwd)}, and none at {default}",
            where=str(call.cwd),
            hint=f"ua-memory init (makes {default}), or ua-memory init . (makes one here)",
        )
    return default


def _empty(folder: Path) -> str:
    return f" ({discovery.SETTINGS} here is empty)" if (folder / discovery.SETTINGS).is_file() else ""
