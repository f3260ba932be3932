"""Running git, reading objects and the index without it, and removing locks of killed gits."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
import tempfile
import threading
import weakref
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha1
from pathlib import Path
from stat import S_IMODE, S_ISREG
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from ua_memory.errors import GitFailed, Usage
from ua_memory.paths import foreign

if TYPE_CHECKING:
    from git import Git


# -- process -----------------------------------------------------------------------------------------------
# git processes that do not depend on the caller's environment or settings.
#
# A git directory may be a stranger's, and its settings, hooks and attributes may name programs. None of these
# is run: our settings override them, and remotes are used from a directory without settings (`remotes`).


GIT_MISSING = "git is not installed or does not run"
CONFIG = {
    "core.fsync": "all",  # the first one, so that it can be replaced by its number: plain git fsyncs nothing
    "core.fsyncMethod": "fsync",
    "core.hooksPath": os.devnull,  # fast-import would run the user's reference-transaction hook
    "core.alternateRefsCommand": "true",  # a program, run where objects are borrowed
    "core.attributesFile": os.devnull,
    "core.autocrlf": "false",
    "core.fsmonitor": "false",
    "core.logAllRefUpdates": "false",  # in ten years a reflog outgrows the text
    "core.quotePath": "false",
    "fsck.badDateOverflow": "warn",  # a clock that stood before 1970 is no damage
    "fetch.fsck.badDateOverflow": "warn",
    "receive.fsck.badDateOverflow": "warn",
    "fetch.fsckObjects": "true",  # what another machine sends may be broken, or made to break out
    "http.lowSpeedLimit": "1",  # bytes a second; less for a minute is no connection any more
    "http.lowSpeedTime": "60",
    "fetch.recurseSubmodules": "false",  # each has settings of its own
    "submodule.recurse": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "i18n.commitEncoding": "UTF-8",
    "i18n.logOutputEncoding": "UTF-8",
    "log.showSignature": "false",
    "protocol.ext.allow": "never",  # an address that is a command
    "diff.noprefix": "false",
    "diff.mnemonicPrefix": "false",
}
"""Settings for every git process; the user's own could change what is written or read."""
_LOCK_ERROR = re.compile(r"Unable to create '[^'\n]*\.lock': File exists")
NO_NETWORK = {"GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1"}
"""Variables for processes that need no remote: a partial clone would fetch missing objects, with a program
from its settings."""
NO_REPLACEMENTS = {"GIT_NO_REPLACE_OBJECTS": "1"}
"""Variables that ignore `git replace`, as `read_loose` does."""
NO_USER_CONFIG = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
"""Variables that ignore the user's settings: an error in them would break every command."""
USER_CONFIG_COMMANDS = ("var", "fetch", "push", "ls-remote")
"""Commands that need the user's settings: for the person's name, and for remotes."""
BATCH = ("git", "-c", "core.deltaBaseCacheLimit=16m", "cat-file", "--batch")
"""The long-running process of `ObjectReader`; by default git would cache 96 MB."""
NO_FSYNC = {"GIT_CONFIG_VALUE_0": "none"}
"""Variables for data that can be rebuilt, such as an index."""


def config_variables(*more: tuple[str, str]) -> dict[str, str]:
    """Environment variables that pass `CONFIG` and `more` settings to git."""
    pairs = [*CONFIG.items(), *more]
    found = {"GIT_CONFIG_COUNT": str(len(pairs))}
    for n, (key, value) in enumerate(pairs):
        found |= {f"GIT_CONFIG_KEY_{n}": key, f"GIT_CONFIG_VALUE_{n}": value}
    return found


PLAIN_PACK = config_variables(("pack.compression", "0"))
"""Variables for small packs, which git unpacks at once: large trees would be compressed twice, 8 ms each."""


FORBIDDEN_COMMANDS = ("clean",)
"""Commands that would delete files around a bank inside somebody's repository."""
RESTRICTIONS = (
    "GIT_TERMINAL_PROMPT", "GIT_LITERAL_PATHSPECS", "GIT_ALLOW_PROTOCOL", "GIT_NO_LAZY_FETCH",
    *NO_REPLACEMENTS,
)  # fmt: skip
"""Variables that restrict our git, but not a person's: no prompts, globs, remotes or replacements."""


class Process:
    """A git directory and the work tree it belongs to."""

    def __init__(self, git_dir: Path, root: Path, *, own: bool) -> None:
        self.git_dir, self.root, self.own = git_dir, root, own
        self._git: Git | None = None

    @cached_property
    def shared(self) -> Path:
        """The directory with objects and refs: the git directory, or the main worktree's. Cached, since one
        insert needs it forty times."""
        common = self.git_dir / "commondir"
        return (self.git_dir / common.read_text().strip()).resolve() if common.is_file() else self.git_dir

    @property
    def places(self) -> list[Path]:
        """The folders in which a git that uses this repository may run."""
        return [place.resolve() for place in (self.git_dir, self.shared, self.root)]

    def git(self) -> Git:
        """GitPython's command object with this repository's environment."""
        if self._git is None:
            git = _import_gitpython()(str(self.root))
            git.update_environment(**self.environment())
            self._git = git  # last, so that another thread does not use it without the environment
        return self._git

    def environment(self) -> dict[str, str]:
        """Variables that pin git to this repository. Within a user's hook, theirs name another one."""
        return {
            "GIT_DIR": str(self.git_dir),
            "GIT_WORK_TREE": str(self.root),
            "GIT_COMMON_DIR": str(self.shared),
            "GIT_INDEX_FILE": str(self.git_dir / "index"),
            "GIT_OBJECT_DIRECTORY": str(self.shared / "objects"),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": "",
            "GIT_NAMESPACE": "",
            "GIT_CONFIG_PARAMETERS": "",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_LITERAL_PATHSPECS": "1",
            "GIT_GLOB_PATHSPECS": "0",
            "GIT_NOGLOB_PATHSPECS": "0",
            "GIT_ICASE_PATHSPECS": "0",
            **NO_NETWORK,
            **NO_REPLACEMENTS,
            **config_variables(),
        }

    def run(self, *words: str, stdin: bytes | None = None, ok: Sequence[int] = (0,), **extra: Any) -> bytes:
        """Run one git command; its standard output. GitFailed has git's error."""
        return self.ask(*words, stdin=stdin, ok=ok, **extra)[0]

    def run_for_person(self, words: Sequence[str], env: Mapping[str, str]) -> int:
        """Run git for a person on this repository, with this process's streams and their environment.

        It may prompt and use remotes. Returns the exit code, above 128 for a signal. Usage for invalid
        arguments, or a command that would delete files around the bank; GitFailed.
        """
        if not self.own and words[0] in FORBIDDEN_COMMANDS:
            raise Usage(f"git {words[0]} would delete files outside of the bank", hint="delete them by hand")
        pinned = {name: value for name, value in self.environment().items() if name not in RESTRICTIONS}
        if not self.own:  # everything around the bank is somebody's work, not files that were forgotten
            pinned |= config_variables(("status.showUntrackedFiles", "no"))
        for name in ("GIT_CONFIG_PARAMETERS", "GIT_NAMESPACE"):
            if not pinned.get(name):
                pinned.pop(name, None)
        theirs = {name: value for name, value in env.items() if not name.startswith("GIT_DIR")}
        env = {**theirs, **pinned, "PWD": os.fspath(self.root)}
        try:
            if not self.own:
                # The history is written without an index; git's own commands compare with one.
                subprocess.run(["git", "read-tree", "HEAD"], cwd=self.root, env=env, check=False)
            code = subprocess.run(["git", *words], cwd=self.root, env=env, check=False).returncode
        except FileNotFoundError as error:
            raise GitFailed("git is not installed", hint="install git") from error
        except ValueError as error:  # NUL, or half a character: from a socket, not from a shell
            raise Usage(f"not an argument for git: {error}", hint="ua-memory git log") from error
        return code if code >= 0 else 128 - code

    def ask(
        self, *words: str, stdin: bytes | None = None, ok: Sequence[int] = (0,), **extra: Any
    ) -> tuple[bytes, str]:
        """Run one git command; (its standard output, its standard error)."""
        git = self.git()
        from git.exc import GitError

        if words[0] not in USER_CONFIG_COMMANDS:
            extra["env"] = {**NO_USER_CONFIG, **extra.get("env", {})}

        with contextlib.ExitStack() as stack:
            try:
                if stdin is not None:
                    spool = stack.enter_context(tempfile.TemporaryFile())
                    spool.write(stdin)
                    spool.seek(0)
                    extra["istream"] = spool
                status, out, said = git.execute(
                    ["git", *words],
                    with_extended_output=True,
                    with_exceptions=False,
                    stdout_as_string=False,
                    strip_newline_in_stdout=False,
                    **extra,
                )
            except (OSError, ValueError, GitError) as error:  # gone, no process to be had, a NUL in a name
                why = GIT_MISSING if isinstance(error, GitError) else error
                failed = f"git did not start: {why}"
                raise GitFailed(failed, where=str(self.git_dir), hint="install git") from error
        if status not in ok:
            why = _last_error(said or out)
            raise GitFailed(
                f"git {words[0]} failed: {why}", where=str(self.git_dir),
                hint="ua-memory doctor --mend" if _LOCK_ERROR.search(said) else "ua-memory doctor",
            )  # fmt: skip
        return out, said


def _import_gitpython() -> type[Git]:
    """Import GitPython's class. The import runs `git version`, and fails if that fails. GitFailed."""
    with contextlib.suppress(ImportError):
        from git import Git

        return Git
    before = {name: os.environ.get(name) for name in NO_USER_CONFIG}
    os.environ.update(NO_USER_CONFIG)  # the first attempt may have failed on the user's settings
    try:
        from git import Git

        return Git
    except ImportError as error:
        said = getattr(error.__cause__, "stderr", "") or ""
        what = f"git cannot be run: {_last_error(said)}" if said else GIT_MISSING
        hint = "install git; the write waits in pending/, and the next command commits it"
        raise GitFailed(what, hint=hint) from error
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            os.environ.update({name: value} if value is not None else {})


def _last_error(said: str | bytes) -> str:
    """git's error message: the line with `fatal:` and the one before it, else the last line."""
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else said
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    end = next((n for n, line in enumerate(lines) if line.startswith("fatal: ")), len(lines) - 1)
    if end < len(lines) - 1:
        return "; ".join(lines[max(0, end - 1) : end + 1])[:500]
    return lines[-1][:500] if lines else "no output"


# -- objects -----------------------------------------------------------------------------------------------
# Reading git objects: loose ones (such as the newest) from their files, others through one long-running
# `git cat-file --batch` process.


OBJECT_ID = re.compile("[0-9a-f]{40}([0-9a-f]{24})?")
"""The full id of an object, by SHA-1 or SHA-256."""
FEW_NAMES, SMALL_TREE = 8, 1 << 14
"""So many names are looked up in loose trees of at most so many bytes, before a process is started."""
PIPE_BYTES = 4096
"""So much is written at a time: POSIX accepts it into an empty pipe without blocking."""


class GitObject(NamedTuple):
    """A git object; `kind` is blob, tree, commit or tag."""

    id: str
    kind: str
    data: bytes


class BatchEnded(Exception):
    """The batch process ended early, or did not start."""


class ObjectReader:
    """Reads loose objects from their files, and others through a process that is started when needed.

    Thread-safe. Each call gets the repository, which must be the same.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._batch: subprocess.Popen[bytes] | None = None
        self._owner = 0
        self._packs: frozenset[str] = frozenset()
        self._end: Callable[[], object] = lambda: None

    def read(self, git: Process, names: Sequence[str]) -> list[GitObject | None]:
        """The objects with these names (without newlines); None if missing or ambiguous. BatchEnded."""
        objects = git.shared / "objects"
        loose = {name: read_loose(objects, name) for name in names}
        rest = [name for name in names if not loose[name]]
        absent = set[str]()
        if self._batch is None and len(rest) <= FEW_NAMES:
            for name in rest:
                with contextlib.suppress(FileNotFoundError):
                    loose[name] = _read_path(objects, name)
                    continue
                absent.add(name)
            rest = [name for name in rest if not loose[name] and name not in absent]
        with self._lock:
            try:
                asked = (found for some in _chunks(rest) for found in self._ask(git, some))
                return [None if name in absent else loose[name] or next(asked) for name in names]
            except (OSError, ValueError) as error:
                self._close()
                raise BatchEnded from error
            except BaseException:  # an interrupt: the rest of the answer is still in the pipe
                self._close()
                raise

    def close(self) -> None:
        """End the process; a later read starts another."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        self._end()
        self._batch, self._end = None, lambda: None

    def _ask(self, git: Process, names: Sequence[bytes]) -> list[GitObject | None]:
        batch = self._running(git)
        assert batch.stdin
        assert batch.stdout
        batch.stdin.write(b"".join(names))
        batch.stdin.flush()
        return list(parse_batch(batch.stdout, len(names)))

    def _running(self, git: Process) -> subprocess.Popen[bytes]:
        packs = _pack_names(git.shared / "objects" / "pack")
        if self._owner != os.getpid() or not packs >= self._packs:
            # A forked process would share the pipe with its parent, and a git that has a pack open would
            # still read from it after a purge or repack has deleted it.
            self._close()
        self._packs = packs
        if self._batch is None or self._batch.poll() is not None:
            self._close()
            self._batch = subprocess.Popen(
                BATCH, cwd="/",
                env={**os.environ, **git.environment(), **NO_USER_CONFIG},
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            self._owner = os.getpid()
            self._end = weakref.finalize(self, _end_process, self._batch, self._owner)
        return self._batch


def read_loose(objects: Path, name: str) -> GitObject | None:
    """Read a loose object by `ID`, `ID^{commit}`, `ID^{tree}` (a commit's tree) or `ID^^{commit}` (its
    parent).

    Starting a process would take as long as the rest of a search. None if git has to be run: the object is in
    a pack, missing or damaged. GitFailed for a wrong size.
    """
    id, _, wanted = name.partition("^")
    if not OBJECT_ID.fullmatch(id) or wanted not in ("", "{tree}", "{commit}", "^{commit}"):
        return None
    try:
        head, _, data = zlib.decompress((objects / id[:2] / id[2:]).read_bytes()).partition(b"\0")
    except (OSError, zlib.error):
        return None
    kind, _, size = head.decode("ascii", "replace").partition(" ")
    if size != str(len(data)):  # git would wait for the rest for ever
        raise GitFailed(f"object {id} is damaged", where=str(objects), hint="ua-memory doctor")
    if wanted in ("", f"{{{kind}}}"):
        return GitObject(id, kind, data)
    if kind != "commit" or wanted == "{commit}":
        return None
    tree, parent, *_ = data.decode("ascii", "replace").split("\n", 2)
    if wanted == "{tree}":
        return read_loose(objects, tree.removeprefix("tree "))
    return read_loose(objects, f"{parent.removeprefix('parent ')}^{{commit}}")


def _read_path(objects: Path, name: str) -> GitObject | None:
    """Read a loose file by `ID:PATH`, if its trees are small (git is faster for large ones).
    FileNotFoundError if there is no such file."""
    id, colon, path = name.partition(":")
    found = read_loose(objects, f"{id}^{{tree}}") if colon else None
    for part in path.split("/"):
        if not found or found.kind != "tree" or len(found.data) > SMALL_TREE:
            return None
        of = next((of for _, entry, of in tree_entries(found) if entry == part), None)
        if of is None and part.strip("."):
            raise FileNotFoundError(name)
        found = read_loose(objects, of or "")
    return found


def _pack_names(folder: Path) -> frozenset[str]:
    with contextlib.suppress(FileNotFoundError):
        return frozenset(file.name for file in folder.glob("*.pack"))
    return frozenset()


def _end_process(git: subprocess.Popen[bytes], owner: int) -> None:
    """End a process and close its pipes; in a forked child, only close its copies of the pipes."""
    for pipe in (git.stdin, git.stdout):
        if pipe:
            with contextlib.suppress(OSError):
                pipe.close()
    if owner == os.getpid():
        git.kill()
        git.wait()
    else:
        git.returncode = 0  # not ours to wait for


def parse_batch(stream: IO[bytes], count: int) -> Iterator[GitObject | None]:
    """Parse the next objects in the output of `cat-file --batch`. ValueError if it ends early."""
    for _ in range(count):
        header = stream.readline()
        if not header.endswith(b"\n"):
            raise ValueError("git's output ended early")
        words = header[:-1].split(b" ")
        if len(words) != 3 or not words[2].isdigit():
            yield None
            continue
        size = int(words[2])
        data = stream.read(size + 1)
        if len(data) != size + 1 or data[-1:] != b"\n":
            raise ValueError("git's output ended early")
        yield GitObject(words[0].decode(), words[1].decode(), data[:-1])


def tree_entries(tree: GitObject) -> Iterator[tuple[bytes, str, str]]:
    """(mode, name, id) of each entry of a tree."""
    data, at, width = tree.data, 0, len(tree.id) // 2
    while at < len(data):
        end = data.index(b"\0", at)
        mode, _, name = data[at:end].partition(b" ")
        at = end + 1 + width
        yield mode, name.decode("utf-8", "surrogateescape"), data[end + 1 : at].hex()


def _chunks(names: Sequence[str]) -> Iterator[list[bytes]]:
    some: list[bytes] = []
    size = 0
    for name in names:
        line = name.encode("utf-8", "surrogateescape") + b"\n"
        if some and size + len(line) > PIPE_BYTES:
            yield some
            some, size = [], 0
        some.append(line)
        size += len(line)
    if some:
        yield some


# -- index -------------------------------------------------------------------------------------------------
# Setting entries of git's index without a process, which would take a fifth of the time of an insert.


PLAIN_INDEX, SMALL_INDEX = b"DIRC\0\0\0\2", 1 << 16
"""The header of an index of version 2, and the size of one with some 600 entries."""


def set_entries(index: Path, ids: Mapping[str, str | None]) -> bool:
    """Set {path: blob id, None to remove} in an index, as `git update-index --index-info` does.

    False, with nothing changed, if git has to do it: no index, a locked one, or unknown extensions.
    """
    lock, done = index.with_name("index.lock"), False
    try:
        fd = os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError:
        return False
    try:
        with os.fdopen(fd, "wb") as file:
            was = index.lstat()
            if S_ISREG(was.st_mode) and was.st_size <= SMALL_INDEX:
                file.write(made := _update_entries(index.read_bytes(), int(was.st_mtime), ids))
                os.fchmod(fd, S_IMODE(was.st_mode))
                done = bool(made)
        if done:
            lock.replace(index)
    except (OSError, ValueError):
        done = False
    finally:
        if not done:
            lock.unlink(missing_ok=True)
    return done


def _update_entries(raw: bytes, written: int, ids: Mapping[str, str | None]) -> bytes:
    """The bytes of an index with these entries; empty if only git can write it. `written` is the index's
    mtime in seconds."""
    if any(part.casefold() in ("", ".", "..", ".git") for path in ids for part in path.split("/")):
        return b""
    if not raw.startswith(PLAIN_INDEX) or sha1(raw[:-20], usedforsecurity=False).digest() != raw[-20:]:
        return b""
    entries: dict[tuple[bytes, int], bytes] = {}
    at = 12
    for _ in range(int.from_bytes(raw[8:12], "big")):
        end = raw.index(b"\0", at + 62)
        entry = raw[at : at + (end - at + 8 & ~7)]
        if int.from_bytes(entry[8:12], "big") >= written:
            # The file may have changed again within that second. As git does for such "racy" entries, set its
            # size to 0, so that its content is compared.
            entry = entry[:36] + bytes(4) + entry[40:]
        entries[raw[at + 62 : end], entry[60] >> 4 & 3] = entry
        at += len(entry)
    trees = raw[at:-20]
    if trees and (trees[:4] != b"TREE" or int.from_bytes(trees[4:8], "big") != len(trees) - 8):
        return b""
    for path, id in ids.items():
        name = path.encode("utf-8", "surrogateescape")
        for there in [one for one in entries if _conflicts(one[0], name, new=bool(id))]:
            del entries[there]
        if id:  # without times, so that git compares the content
            entry = bytes(24) + (0o100644).to_bytes(4, "big") + bytes(12) + bytes.fromhex(id)
            entry += min(len(name), 0xFFF).to_bytes(2, "big") + name
            entries[name, 0] = entry + bytes(8 - len(entry) % 8)
    made = PLAIN_INDEX + len(entries).to_bytes(4, "big") + b"".join(entries[key] for key in sorted(entries))
    return made + sha1(made, usedforsecurity=False).digest()


def _conflicts(entry: bytes, name: bytes, *, new: bool) -> bool:
    """Whether a new entry replaces this one: the same path, or a folder in place of a file."""
    return entry == name or (new and (entry.startswith(name + b"/") or name.startswith(entry + b"/")))


# -- locks -------------------------------------------------------------------------------------------------
# Finding and removing lock files of killed gits.
#
# A killed git leaves its lock file, which makes every later git fail. The file does not name its owner: it is
# in use if a git process runs in the repository. Where processes cannot be seen (another machine or system),
# only its age counts.


PROCESSES = Path("/proc")
STALE_SECONDS, STALE_SECONDS_UNSEEN = 10, 3600
"""The age at which a lock is stale, if git's processes can be seen, and if not."""
TEMP_PREFIX = "ua-memory-remote-"
"""Prefix of the temporary git directories that are used for remotes."""
_LOCK_PATTERNS = (
    "HEAD.lock", "*_HEAD.lock", "index.lock", "config.lock", "config.worktree.lock", "packed-refs.lock",
    "shallow.lock", "gc.pid", "gc.pid.lock", "refs/**/*.lock", "reftable/*.lock", "objects/*.lock",
    "objects/pack/*.lock", "objects/info/**/*.lock", "objects/pack/*.keep", f"{TEMP_PREFIX}*",
)  # fmt: skip
FETCH_MARK = re.compile(r"(?:fetch|receive)-pack (\d+) on (\S+)")
"""The content of a `.keep` file while git fetches a pack: process and host."""
IMPORT_MARK = "fast-import"
"""The content of a `.keep` file while git imports a pack."""


@dataclass(frozen=True, slots=True)
class Lock:
    """A lock file; `held` says who may be using it, and is '' if nobody is."""

    file: Path
    held: str


def find_locks(git: Process) -> list[Lock]:
    """The lock files of a repository."""
    folders = {git.git_dir, git.shared}
    there = {file for folder in folders for name in _LOCK_PATTERNS for file in folder.glob(name)}
    files = [file for file in sorted(there) if file.suffix != ".keep" or _is_git_mark(file)]
    if not files:
        return []
    gits, now = find_holders(git.places), filesystem_now(git.git_dir)
    return [Lock(file, _holder(file, gits, now)) for file in files]


def remove_locks(locks: list[Lock]) -> list[Path]:
    """Remove the locks that nobody holds; the removed files."""
    gone = []
    for lock in locks:
        if not lock.held:
            with contextlib.suppress(OSError):
                _remove(lock.file)
                gone.append(lock.file)
    return gone


def _remove(file: Path) -> None:
    if file.is_dir():
        for inner in sorted(file.rglob("*"), reverse=True):
            inner.rmdir() if inner.is_dir() else inner.unlink()
        file.rmdir()
    else:
        file.unlink()


def _is_git_mark(mark: Path) -> bool:
    """Whether a `.keep` file was made by git, not by a person."""
    return read_text(mark).strip() == IMPORT_MARK or bool(FETCH_MARK.fullmatch(read_text(mark).strip()))


def _holder(file: Path, gits: list[str] | None, now: int) -> str:
    if gits:
        return f"{gits[0]} is running there"
    by = FETCH_MARK.fullmatch(read_text(file).strip()) if file.suffix == ".keep" else None
    if by and (by[2] != socket.gethostname() or is_alive(int(by[1]))):
        return f"process {by[1]} on {by[2]} may still be running"
    with contextlib.suppress(OSError):
        age = (now - file.stat().st_mtime_ns) // 10**9
        needed = STALE_SECONDS_UNSEEN if gits is None else STALE_SECONDS
        return "" if age >= needed else f"made {age} s ago, and treated as in use for {needed} s"
    return "removed in the meantime"


def read_text(file: Path) -> str:
    """The text of a file; '' if there is none."""
    try:
        return file.read_text("utf-8", "replace")
    except (FileNotFoundError, IsADirectoryError):
        return ""


def is_alive(process: int) -> bool:
    """Whether a process with this id exists."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):  # somebody else's
        return True
    return True


def is_running(git: Process, words: Collection[str]) -> bool:
    """Whether a process with one of these words as an argument may be running in a repository."""
    return any(
        not set(words).isdisjoint(arguments) and works_in(process, arguments, git.places) is not False
        for process, arguments in processes()
    )


def find_holders(places: list[Path]) -> list[str] | None:
    """Descriptions of the git processes that may hold a lock in these folders; None if processes cannot be
    seen. Our own object reader takes no locks."""
    if not (PROCESSES / "self" / "cmdline").exists() or any(foreign(str(place)) for place in places):
        return None
    every = ((folder, words) for folder, words in processes() if tuple(words[: len(BATCH)]) != BATCH)
    gits = ((folder, words) for folder, words in every if Path(words[0]).name.startswith("git"))
    seen = [(folder, words, works_in(folder, words, places)) for folder, words in gits]
    if any(here is None for _, _, here in seen):
        return None
    holders = ((folder, words) for folder, words, here in seen if here)
    return [f"process {folder.name if folder else ''} ({' '.join(words[:2])})" for folder, words in holders]


def processes() -> Iterator[tuple[Path | None, list[str]]]:
    """(folder in /proc, arguments) of each process."""
    if (PROCESSES / "self" / "cmdline").exists():
        for folder in PROCESSES.glob("[0-9]*"):
            with contextlib.suppress(OSError):  # it has ended meanwhile
                yield folder, (folder / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
        return
    try:
        out = subprocess.run(["ps", "-A", "-o", "args="], capture_output=True, check=True, timeout=30).stdout
    except (OSError, subprocess.SubprocessError):
        out = IMPORT_MARK.encode()  # unknown: assume one is running
    yield from ((None, row.split()) for row in out.decode("utf-8", "replace").splitlines())


def works_in(process: Path | None, words: list[str], places: list[Path]) -> bool | None:
    """Whether a git runs in one of these folders, by its working directory, environment and arguments; None
    if unknown."""
    try:
        if process is None:
            return None
        folder = (process / "cwd").readlink()
        rows = (process / "environ").read_bytes().decode("utf-8", "replace").split("\0")
    except (FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
        return False
    except OSError:
        return None
    named = [row.partition("=")[2] for row in (*rows, *words) if row.startswith(("GIT_DIR=", "--git-dir="))]
    met = [Path(os.path.normpath(folder / name)) for name in ("", *named)]
    return any(path.is_relative_to(place) for path in met for place in places)


def filesystem_now(folder: Path) -> int:
    """The file system's clock in ns, read from the time stamp of a temporary file."""
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".clock-") as file:
        return os.fstat(file.fileno()).st_mtime_ns
