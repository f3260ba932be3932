"""Which folder is a bank, by file names alone; opening files safely. Light: every command loads it."""

from __future__ import annotations

import os
import stat
from _blake2 import blake2b as blake2b
from marshal import dumps

TYPE_CHECKING = False  # typing's own constant would cost the import of typing
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any, BinaryIO


# -- parts of the standard library -------------------------------------------------------------------------
# `blake2b` and what follows are private names of CPython, and no other module uses any. The public modules
# cost as much as a daemon's whole answer, some 10 ms: `socket` and `json` load `enum` and `re`, and `hashlib`
# loads OpenSSL. For the same reason this module does without `re`. tests/test_start.py compares each with its
# public twin.


def unix_socket() -> Any:
    """A stream socket of the Unix family, not connected."""
    from _socket import AF_UNIX, SOCK_STREAM, socket

    return socket(AF_UNIX, SOCK_STREAM)


def terminal_width(default: int) -> int:
    """The columns of the terminal that one of the standard streams is, else the default."""
    for fd in (1, 2, 0):
        try:
            columns = os.get_terminal_size(fd).columns
        except OSError:
            continue
        if columns > 0:
            return columns
    return default


def json_string(text: str) -> str:
    """A text as JSON in ASCII, with its quotes."""
    from _json import encode_basestring_ascii

    return encode_basestring_ascii(text)


def read_json(text: str) -> Any:
    """What a JSON text that one of our own processes wrote says."""
    from _json import make_scanner

    return make_scanner(_Plain)(text, 0)[0]  # type: ignore[arg-type]


class _Plain:
    """How `json.loads` has the scanner read."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float, parse_int, parse_constant = float, int, float


# -- regular -----------------------------------------------------------------------------------------------
# Opening a file that somebody named: a regular one, or a link to one.
#
# A named pipe, a device or a socket may have no end, or nobody who writes to it: who reads it waits for
# ever. The file is opened first, without waiting, and then asked what it is: between a look and an opening
# it could become another. What is refused is an OSError, so it is reported as any other file that cannot be
# read.
#
# It stands by itself, without `pathlib`, since hooks open files too.


MOST = 64 << 20
"""Bytes of a file that is read whole, where nothing else is said."""
_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class Irregular(OSError):
    """What is neither a regular file nor a folder."""


def opener(name: str, flags: int) -> int:
    """For `open(…, opener=opener)`: as `os.open`, but OSError for all that is no regular file."""
    import errno  # a command that opens no file does without it

    try:
        fd = os.open(name, flags | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.EOPNOTSUPP):  # how Linux and macOS refuse to open a socket
            raise Irregular(errno.EINVAL, "not a regular file", name) from error
        raise
    mode = stat.S_IFMT(os.fstat(fd).st_mode)
    if mode == stat.S_IFREG:
        return fd
    os.close(fd)
    if mode == stat.S_IFDIR:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    raise Irregular(errno.EINVAL, f"{_KINDS.get(mode, 'something else')}, not a regular file", name)


def is_locked(file: str | os.PathLike[str]) -> bool:
    """Whether a process holds this file's lock. Who takes it meanwhile waits a moment for the answer."""
    import fcntl  # which a warm search does without

    try:
        fd = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """A regular file's bytes. OSError where it is none, or cannot be read."""
    return open(path, "rb", opener=opener)


def read(path: str | os.PathLike[str], most: int = MOST) -> bytes:
    """All of a regular file. OSError also where it holds more bytes than `most`."""
    with open_regular(path) as file:
        if os.fstat(file.fileno()).st_size <= most and len(data := file.read(most + 1)) <= most:
            return data
    import errno

    raise OSError(errno.EFBIG, f"larger than {most >> 20} MB", os.fspath(path))


def replace_private(path: str, data: bytes, *, fsync: bool = True) -> None:
    """Replace a file atomically, for nobody else to read. OSError."""
    fresh = f"{path}.{os.getpid()}"
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.write(fd, data)
        if fsync:
            os.fsync(fd)
    finally:
        os.close(fd)
    os.replace(fresh, path)  # noqa: PTH105


# -- finding -----------------------------------------------------------------------------------------------
# Which folder is a bank, and which git repository is around it, told by the names of files alone.
#
# It stands by itself, on plain texts, since a hook asks this and has no time to load `pathlib`; everyone
# else asks `paths`.


PAGER_IN_USE = "UA_MEMORY_PAGER_IN_USE"
"""The variable that says of standard output that a pager shows it on a terminal."""
SETTINGS = "ua-memory.toml"
USER, TRUSTED = "config.toml", "trusted.json"
"""In the user's own folder: their settings, for all of their banks, and bank id → hashes of the sensitive
settings of it that they have agreed to."""
CORE_NAMES = ("MEMORY.md", "memory.md")
LOGS = "memory"
BESIDE = ".ua-memory"
"""State where there is no git at all."""
INDEX_VERSION = "25"
"""The version of the word index: an index of another one is rebuilt. Increment it with any change of its
tables, or of how items and terms are made."""


class Folders:
    """The folders of a bank, as `paths.Bank` has them."""

    __slots__ = ("cache", "git_dir", "index", "local", "own", "pending", "root", "state")

    def __init__(self, root: str, own: bool, state: str, git_dir: str) -> None:
        self.root, self.own, self.state, self.git_dir = root, own, state, git_dir
        self.pending, self.index = f"{state}/pending", f"{state}/index"
        self.cache, self.local = f"{state}/cache", f"{state}/local"


exists, join, parent = os.path.isfile, os.path.join, os.path.dirname


def is_bank_at(folder: str) -> bool:
    """Whether a folder is marked as a bank: settings that say something, core memory, or a dated log under
    `memory/`.

    A folder that may not be looked into is none.
    """
    # A case-folding file system answers yes to both names of core memory; either is a bank.
    if any(exists(join(folder, name)) for name in CORE_NAMES) or not is_blank(join(folder, SETTINGS)):
        return True
    try:
        # A code package called `memory` has no dated markdown in it.
        return any(is_dated(log) and log.endswith(".md") for log in os.listdir(join(folder, LOGS)))  # noqa: PTH208
    except OSError:
        return False


def is_dated(name: str) -> bool:
    """Whether a name begins with a date, such as 2026-11-21."""
    digits = name[:4] + name[5:7] + name[8:10]
    dashed = name[4:5] == name[7:8] == "-"
    return dashed and len(digits) == 8 and digits.isdecimal() and not name[10:11].isdecimal()


def user_folder(env: Mapping[str, str]) -> str:
    """The folder of the user's own settings, '' where the environment names no home. A relative one does not
    count: it would lie in whatever bank a command is called in."""
    base = env.get("XDG_CONFIG_HOME", "")
    if not base.startswith("/"):
        base = f"{env['HOME']}/.config" if env.get("HOME", "").startswith("/") else ""
    return f"{base}/ua-memory" if base else ""


def is_blank(file: str) -> bool:
    """Whether a file says nothing, or is not there: empty settings mark no folder as a bank."""
    if not exists(file):
        return True
    try:
        with open_regular(file) as opened:
            return not opened.read(4096).removeprefix(b"\xef\xbb\xbf").strip()
    except OSError:  # it is there; what is wrong with it is said where it is read
        return False


def bank_above(start: str, home: str) -> str | None:
    """The nearest bank at or above `start`; the search ends at `home` and at the border of a file system. A
    linked worktree, in which a bank's untracked files are not, has that of the main one.

    None also where `start` is no folder. What is found has no symbolic links in it.
    """
    start, home = os.path.realpath(start), os.path.realpath(home)
    try:
        device = os.stat(start).st_dev  # noqa: PTH116
        for folder in above(start):
            if os.stat(folder).st_dev != device:  # noqa: PTH116
                return None
            if is_bank_at(folder):
                return folder
            if main := _main_worktree(folder):
                for there in above(join(main, start[len(folder) + 1 :]).rstrip("/")):
                    if is_bank_at(there):
                        return there
                    if there == main:
                        break
            if folder == home:
                return None
    except OSError:
        return None
    return None


def above(folder: str) -> Iterator[str]:
    """An absolute folder and all that it lies in, the nearest first."""
    while True:
        yield folder
        if (outer := parent(folder)) == folder:
            return
        folder = outer


def git_folders(folder: str) -> tuple[str, str, str] | None:
    """The repository that a folder without symbolic links lies in, worktrees and submodules included, as its
    files tell: its top level, its git directory, and what its worktrees share.

    A `.git` file that leads nowhere (its repository was moved or deleted) counts as none.
    """
    for top in above(folder):
        dot = join(top, ".git")
        if exists(join(dot, "HEAD")):
            return top, dot, dot
        if exists(dot):
            git_dir = _led_to(dot, "gitdir:")
            if git_dir and exists(join(git_dir, "HEAD")):
                return top, git_dir, _led_to(join(git_dir, "commondir")) or git_dir
    return None


def project_of(folder: str) -> str:
    """The name of the git repository around a folder, in all its worktrees that of the main one; outside of
    git the folder's own."""
    around = git_folders(folder)
    if around is None:
        return folder.rstrip("/").rpartition("/")[2]
    top, _, common = around
    return parent(common).rpartition("/")[2] if common.endswith("/.git") else top.rpartition("/")[2]


def worktree(git_dir: str, common: str) -> str:
    """What a worktree is called."""
    return "main" if git_dir == common else git_dir.rpartition("/")[2]


def _main_worktree(top: str) -> str:
    """The top level of the main worktree if this is that of a linked one, else ''. Each must name the other:
    an unpacked archive may have a `.git` file that leads into any repository."""
    dot = join(top, ".git")
    git_dir = _led_to(dot, "gitdir:") if os.path.isfile(dot) else None  # noqa: PTH113
    common = git_dir and _led_to(join(git_dir, "commondir"))
    if not git_dir or not common or not common.endswith("/.git"):
        return ""
    back = _led_to(join(git_dir, "gitdir"))
    return parent(common) if back and os.path.realpath(back) == dot else ""


def _led_to(file: str, key: str = "") -> str | None:
    """The folder that a file of git's names, relative to its own folder."""
    try:
        with open_regular(file) as opened:
            line = os.fsdecode(opened.read()).strip()
    except OSError:
        return None
    return os.path.realpath(join(parent(file), line[len(key) :].strip())) if line.startswith(key) else None


# -- stamps ------------------------------------------------------------------------------------------------
# What files are now, by one `lstat` of each, and the digest of that: the same digest, the same files.
#
# It stands by itself since a hook that opens no bank compares it as well as the store that keeps it.


SUM = 8
"""Bytes of a sum."""
CTIME = 3
"""Where a `Row` has the time of change."""

if TYPE_CHECKING:
    Row = tuple[int, int, int, int, int] | None
    """Mode, size, mtime, ctime and inode of one file or folder; None if it is not there."""


def look(root: str | os.PathLike[str], names: Sequence[bytes]) -> list[Row]:
    """Each of the named, below the root, as `lstat` sees it now."""
    base, lstat = os.fsencode(root) + b"/", os.lstat
    rows: list[Row] = []
    for name in names:
        try:
            s = lstat(base + name)
        except OSError:
            rows.append(None)
        else:
            rows.append((s.st_mode, s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_ino))
    return rows


def stamp(rows: list[Row]) -> str:
    """The digest of a look."""
    return blake2b(dumps(rows, 1), digest_size=16).hexdigest()


def masks(patterns: Mapping[str, str]) -> str:
    """The name of what a bank's own patterns take out of its index; '' where it has none."""
    return blake2b(repr(sorted(patterns.items())).encode(), digest_size=8).hexdigest() if patterns else ""


def sealed(data: bytes) -> bytes:
    """Data with a sum of it before."""
    return blake2b(data, digest_size=SUM).digest() + data


def unsealed(data: bytes) -> bytes:
    """What was sealed. ValueError where it is not as it was."""
    if sealed(data[SUM:]) != data:
        raise ValueError("not what was written")
    return data[SUM:]
