"""One git directory and the processes that run on it, and locks that a killed git left there."""

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
# One git directory and the processes that are run on it, whatever the caller's shell or settings say.
#
# A git directory may have come from a stranger, in an archive or on a stick, and its settings, hooks and
# attributes can name programs. None of them is run: what a setting of ours does not outrank is not called,
# and the network is reached from a directory without settings (`remotes`).


NOT_THERE = "git is not installed or does not run"
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
"""Settings of ours for every git process; a user's own would change what is written or read."""
_LOCKED = re.compile(r"Unable to create '[^'\n]*\.lock': File exists")
NO_REMOTE = {"GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1"}
"""For every process that has no business with a remote: a partial clone asks its own for a missing object,
by an address and a program out of its settings."""
AS_COMMITTED = {"GIT_NO_REPLACE_OBJECTS": "1"}
"""What `git replace` has put in the place of an object does not count, whoever reads it (`read_loose`)."""
ALONE = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
"""So that git reads none of the user's own settings: a mistake in them ends every command."""
THEIRS = ("var", "fetch", "push", "ls-remote")
"""What needs them all the same: who the person is, and how another machine is reached."""
READER = ("git", "-c", "core.deltaBaseCacheLimit=16m", "cat-file", "--batch")
"""What reads objects and stays (`ObjectReader`): git alone would keep 96 MB of them unpacked."""
NO_FSYNC = {"GIT_CONFIG_VALUE_0": "none"}
"""For what can be made again, as an index."""


def settings(*more: tuple[str, str]) -> dict[str, str]:
    """The variables by which git takes our settings, and more of them."""
    pairs = [*CONFIG.items(), *more]
    found = {"GIT_CONFIG_COUNT": str(len(pairs))}
    for n, (key, value) in enumerate(pairs):
        found |= {f"GIT_CONFIG_KEY_{n}": key, f"GIT_CONFIG_VALUE_{n}": value}
    return found


PLAIN_PACK = settings(("pack.compression", "0"))
"""For a pack of a few objects, which git takes apart at once: the tree of ten years of logs would be
compressed twice, and takes 8 ms each time."""


DELETES_OTHERS = ("clean",)
"""What would remove files that are not the bank's where the bank lies inside somebody's repository."""
OUR_LIMITS = (
    "GIT_TERMINAL_PROMPT", "GIT_LITERAL_PATHSPECS", "GIT_ALLOW_PROTOCOL", "GIT_NO_LAZY_FETCH", *AS_COMMITTED,
)  # fmt: skip
"""What our own git is not allowed, and a person's is: to ask, to match, to reach a remote, to replace."""


class Process:
    """A git directory and the work tree it belongs to."""

    def __init__(self, git_dir: Path, root: Path, *, own: bool) -> None:
        self.git_dir, self.root, self.own = git_dir, root, own
        self._git: Git | None = None

    @cached_property
    def shared(self) -> Path:
        """The directory with the objects and refs: the git directory's own, or that of the main worktree. A
        git directory keeps to the one that it was made with; an insert asks for it forty times."""
        common = self.git_dir / "commondir"
        return (self.git_dir / common.read_text().strip()).resolve() if common.is_file() else self.git_dir

    @property
    def places(self) -> list[Path]:
        """The folders in which a git that works on it may be."""
        return [place.resolve() for place in (self.git_dir, self.shared, self.root)]

    def git(self) -> Git:
        """GitPython's command object, bound to this trail whatever the caller's shell has set."""
        if self._git is None:
            git = _imported()(str(self.root))
            git.update_environment(**self.environment())
            self._git = git  # only now: another thread would run it on whatever the shell names
        return self._git

    def environment(self) -> dict[str, str]:
        """Variables that pin git to this trail: inside a hook of the user's, theirs name the outer one."""
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
            **NO_REMOTE,
            **AS_COMMITTED,
            **settings(),
        }

    def run(self, *words: str, stdin: bytes | None = None, ok: Sequence[int] = (0,), **extra: Any) -> bytes:
        """Standard output of one git command. GitFailed carries what git said."""
        return self.ask(*words, stdin=stdin, ok=ok, **extra)[0]

    def run_for_person(self, words: Sequence[str], env: Mapping[str, str]) -> int:
        """Run git as a person's own command: on this process's streams, in their environment, pinned to this
        repository. It may ask for a password and reach a remote. The exit code, 128 and more for a signal.

        Usage for what git cannot be given, or what would delete files around the bank; GitFailed.
        """
        if not self.own and words[0] in DELETES_OTHERS:
            raise Usage(f"git {words[0]} would delete files outside of the bank", hint="delete them by hand")
        pinned = {name: value for name, value in self.environment().items() if name not in OUR_LIMITS}
        if not self.own:  # everything around the bank is somebody's work, not files that were forgotten
            pinned |= settings(("status.showUntrackedFiles", "no"))
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
        """The same, with what it said on standard error."""
        git = self.git()
        from git.exc import GitError

        if words[0] not in THEIRS:
            extra["env"] = {**ALONE, **extra.get("env", {})}

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
                why = NOT_THERE if isinstance(error, GitError) else error
                raise GitFailed(
                    f"git did not start: {why}", where=str(self.git_dir), hint="install git"
                ) from error
        if status not in ok:
            why = _reason(said or out)
            raise GitFailed(
                f"git {words[0]} failed: {why}", where=str(self.git_dir),
                hint="ua-memory doctor --mend" if _LOCKED.search(said) else "ua-memory doctor",
            )  # fmt: skip
        return out, said


def _imported() -> type[Git]:
    """GitPython's class. It runs `git version` when it is imported, and refuses to be where that fails."""
    with contextlib.suppress(ImportError):
        from git import Git

        return Git
    before = {name: os.environ.get(name) for name in ALONE}
    os.environ.update(ALONE)  # for that first run alone: the user's settings may have ended it
    try:
        from git import Git

        return Git
    except ImportError as error:
        said = getattr(error.__cause__, "stderr", "") or ""
        what = f"git cannot be run: {_reason(said)}" if said else NOT_THERE
        hint = "install git; the write waits in pending/, and the next command commits it"
        raise GitFailed(what, hint=hint) from error
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            os.environ.update({name: value} if value is not None else {})


def _reason(said: str | bytes) -> str:
    """What git ends with: the line that is fatal, with what stands before it, since advice may follow; else
    the last."""
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else said
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    end = next((n for n, line in enumerate(lines) if line.startswith("fatal: ")), len(lines) - 1)
    if end < len(lines) - 1:
        return "; ".join(lines[max(0, end - 1) : end + 1])[:500]
    return lines[-1][:500] if lines else "no output"


# -- objects -----------------------------------------------------------------------------------------------
# git's objects by name: what lies in a file of its own is read from there, as what was committed last does;
# the rest through one `git cat-file --batch` process that stays open.


OBJECT_ID = re.compile("[0-9a-f]{40}([0-9a-f]{24})?")
"""The full id of an object, by SHA-1 or SHA-256."""
FEW_NAMES, SMALL_TREE = 8, 1 << 14
"""So many names are looked for in trees of so many bytes at most before a process is started."""
PIPE_BYTES = 4096
"""So much is asked at a time: POSIX takes it into an empty pipe without waiting for git to read it."""


class GitObject(NamedTuple):
    """An object of git's; `kind` is blob, tree, commit or tag."""

    id: str
    kind: str
    data: bytes


class BatchEnded(Exception):
    """git did not answer all that was asked, or did not start."""


class ObjectReader:
    """Reads objects from their own files, and else through a process that starts with the first question, and
    again where it has ended. Threads may share it. Each call gets the repository whose reader it is."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._batch: subprocess.Popen[bytes] | None = None
        self._owner = 0
        self._packs: frozenset[str] = frozenset()
        self._end: Callable[[], object] = lambda: None

    def read(self, git: Process, names: Sequence[str]) -> list[GitObject | None]:
        """What git has under each name, which has no newline in it; None where there is nothing, or the
        name is ambiguous. BatchEnded."""
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
        """End the process. What is asked afterwards starts another."""
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
        return list(answers(batch.stdout, len(names)))

    def _running(self, git: Process) -> subprocess.Popen[bytes]:
        packs = _packs(git.shared / "objects" / "pack")
        if self._owner != os.getpid() or not packs >= self._packs:
            # A forked process would share the pipe with its parent. And a git that has a pack open goes on
            # to answer from it after a purge or a repack has deleted it.
            self._close()
        self._packs = packs
        if self._batch is None or self._batch.poll() is not None:
            self._close()
            self._batch = subprocess.Popen(
                READER, cwd="/",
                env={**os.environ, **git.environment(), **ALONE},
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            self._owner = os.getpid()
            self._end = weakref.finalize(self, _end, self._batch, self._owner)
        return self._batch


def read_loose(objects: Path, name: str) -> GitObject | None:
    """An object by its id or `ID^{commit}`, the tree of a commit by `ID^{tree}`, or its first parent by
    `ID^^{commit}`, from the files they lie in: to start a process takes as long as the rest of a search. None
    where git is to be asked: it has the object in a pack, or knows what is wrong with it."""
    id, _, wanted = name.partition("^")
    if not OBJECT_ID.fullmatch(id) or wanted not in ("", "{tree}", "{commit}", "^{commit}"):
        return None
    try:
        head, _, data = zlib.decompress((objects / id[:2] / id[2:]).read_bytes()).partition(b"\0")
    except (OSError, zlib.error):
        return None
    kind, _, size = head.decode("ascii", "replace").partition(" ")
    if size != str(len(data)):  # git's own reader waits for the rest of it, for ever
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
    """The same of a file by `ID:PATH`, where the trees that lead to it are no large ones: git is faster at
    those. FileNotFoundError where they have no such file."""
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


def _packs(folder: Path) -> frozenset[str]:
    with contextlib.suppress(FileNotFoundError):
        return frozenset(file.name for file in folder.glob("*.pack"))
    return frozenset()


def _end(git: subprocess.Popen[bytes], owner: int) -> None:
    """End a process and close its pipes; of a parent's process, a forked one closes its copies alone."""
    for pipe in (git.stdin, git.stdout):
        if pipe:
            with contextlib.suppress(OSError):
                pipe.close()
    if owner == os.getpid():
        git.kill()
        git.wait()
    else:
        git.returncode = 0  # not ours to wait for


def answers(stream: IO[bytes], count: int) -> Iterator[GitObject | None]:
    """The next objects in the output of `cat-file --batch`. ValueError where it breaks off."""
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
    """(mode, name, id) of all that a tree lists."""
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
# Entries of git's index, set without a process: to start one takes a fifth of the time of an insert.


PLAIN_INDEX, SMALL_INDEX = b"DIRC\0\0\0\2", 1 << 16
"""How one begins that may have no more than entries and trees, and the bytes of some 600 of them."""


def set_entries(index: Path, ids: Mapping[str, str | None]) -> bool:
    """Give plain files in an index these blobs, None for one that goes, as `git update-index --index-info`
    does. False where that is git's to do, as where there is none or somebody holds it: nothing is changed."""
    lock, done = index.with_name("index.lock"), False
    try:
        fd = os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError:
        return False
    try:
        with os.fdopen(fd, "wb") as file:
            was = index.lstat()
            if S_ISREG(was.st_mode) and was.st_size <= SMALL_INDEX:
                file.write(made := _with_entries(index.read_bytes(), int(was.st_mtime), ids))
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


def _with_entries(raw: bytes, written: int, ids: Mapping[str, str | None]) -> bytes:
    """An index with these entries, last `written` in that second; empty where it has what only git knows, or
    a path that git would not take."""
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
            # A file of that second may have been changed again in it. git, which compares seconds, reads it
            # as long as the index is no newer, and afterwards where its size is said to be 0.
            entry = entry[:36] + bytes(4) + entry[40:]
        entries[raw[at + 62 : end], entry[60] >> 4 & 3] = entry
        at += len(entry)
    kept = raw[at:-20]
    if kept and (kept[:4] != b"TREE" or int.from_bytes(kept[4:8], "big") != len(kept) - 8):
        return b""
    for path, id in ids.items():
        name = path.encode("utf-8", "surrogateescape")
        for there in [one for one in entries if _in_the_way(one[0], name, new=bool(id))]:
            del entries[there]
        if id:  # no times, so that git compares it with the file when it is asked
            entry = bytes(24) + (0o100644).to_bytes(4, "big") + bytes(12) + bytes.fromhex(id)
            entry += min(len(name), 0xFFF).to_bytes(2, "big") + name
            entries[name, 0] = entry + bytes(8 - len(entry) % 8)
    made = PLAIN_INDEX + len(entries).to_bytes(4, "big") + b"".join(entries[key] for key in sorted(entries))
    return made + sha1(made, usedforsecurity=False).digest()


def _in_the_way(entry: bytes, name: bytes, *, new: bool) -> bool:
    """Whether an entry goes where this one is set: the same one, or a folder in place of a file."""
    return entry == name or (new and (entry.startswith(name + b"/") or name.startswith(entry + b"/")))


# -- locks -------------------------------------------------------------------------------------------------
# Locks that a killed git has left in a git directory: found, and removed where nobody holds them.
#
# git locks by making a file and unlocks by taking it away; who is killed in between leaves it there, and
# every later git gives up before it. Nothing in such a file says whose it is, so git's processes are looked
# at: one that works there holds it. Where they cannot be seen (another machine, another system), age alone
# tells.


PROCESSES = Path("/proc")
SECONDS, UNSEEN_SECONDS = 10, 3600
"""How old a lock must be: where git's processes can be seen, and where they cannot."""
APART = "ua-memory-remote-"
"""How the folders are called from which remotes are reached."""
_WHERE = (
    "HEAD.lock", "*_HEAD.lock", "index.lock", "config.lock", "config.worktree.lock", "packed-refs.lock",
    "shallow.lock", "gc.pid", "gc.pid.lock", "refs/**/*.lock", "reftable/*.lock", "objects/*.lock",
    "objects/pack/*.lock", "objects/info/**/*.lock", "objects/pack/*.keep", f"{APART}*",
)  # fmt: skip
TAKES_IN = re.compile(r"(?:fetch|receive)-pack (\d+) on (\S+)")
"""What git writes into the mark of a pack that it fetches: who does it."""
IMPORTS = "fast-import"
"""The same of a pack that it imports; it does not say who."""


@dataclass(frozen=True, slots=True)
class Lock:
    """A lock. `held` says who may hold it, and is empty where nobody does."""

    file: Path
    held: str


def found(git: Process) -> list[Lock]:
    """The locks in a git directory and the one it shares with other work trees."""
    there = {file for folder in {git.git_dir, git.shared} for name in _WHERE for file in folder.glob(name)}
    files = [file for file in sorted(there) if file.suffix != ".keep" or _says(file)]
    if not files:
        return []
    gits, now = who(git.places), filesystem_now(git.git_dir)
    return [Lock(file, _held(file, gits, now)) for file in files]


def remove(locks: list[Lock]) -> list[Path]:
    """Remove those that nobody holds; what was removed. Another may have been quicker."""
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


def _says(mark: Path) -> bool:
    """Whether the mark of a pack that is kept is git's own; else it is somebody's wish."""
    return text(mark).strip() == IMPORTS or bool(TAKES_IN.fullmatch(text(mark).strip()))


def _held(file: Path, gits: list[str] | None, now: int) -> str:
    if gits:
        return f"{gits[0]} is running there"
    by = TAKES_IN.fullmatch(text(file).strip()) if file.suffix == ".keep" else None
    if by and (by[2] != socket.gethostname() or lives(int(by[1]))):
        return f"process {by[1]} on {by[2]} may still be running"
    with contextlib.suppress(OSError):
        age = (now - file.stat().st_mtime_ns) // 10**9
        needed = UNSEEN_SECONDS if gits is None else SECONDS
        return "" if age >= needed else f"made {age} s ago, and treated as in use for {needed} s"
    return "removed meanwhile"


def text(file: Path) -> str:
    """What a small file says; nothing where there is none."""
    try:
        return file.read_text("utf-8", "replace")
    except (FileNotFoundError, IsADirectoryError):
        return ""


def lives(process: int) -> bool:
    """Whether there is a process of this number."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):  # somebody else's
        return True
    return True


def at_work(git: Process, words: Collection[str]) -> bool:
    """Whether a process that was told one of these words may be at work in a git directory."""
    return any(
        not set(words).isdisjoint(told) and is_there(process, told, git.places) is not False
        for process, told in processes()
    )


def who(places: list[Path]) -> list[str] | None:
    """The gits that may hold a lock in these folders; None where that cannot be seen. Our own that reads
    objects for as long as a bank is open takes none."""
    if not (PROCESSES / "self" / "cmdline").exists() or any(foreign(str(place)) for place in places):
        return None
    every = ((folder, words) for folder, words in processes() if tuple(words[: len(READER)]) != READER)
    gits = ((folder, words) for folder, words in every if Path(words[0]).name.startswith("git"))
    seen = [(folder, words, is_there(folder, words, places)) for folder, words in gits]
    if any(here is None for _, _, here in seen):
        return None
    return [
        f"process {folder.name if folder else ''} ({' '.join(words[:2])})"
        for folder, words, here in seen
        if here
    ]


def processes() -> Iterator[tuple[Path | None, list[str]]]:
    """(its folder in /proc, its words) of each process there is."""
    if (PROCESSES / "self" / "cmdline").exists():
        for folder in PROCESSES.glob("[0-9]*"):
            with contextlib.suppress(OSError):  # it has ended meanwhile
                yield folder, (folder / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
        return
    try:
        out = subprocess.run(["ps", "-A", "-o", "args="], capture_output=True, check=True, timeout=30).stdout
    except (OSError, subprocess.SubprocessError):
        out = IMPORTS.encode()  # nobody knows
    yield from ((None, row.split()) for row in out.decode("utf-8", "replace").splitlines())


def is_there(process: Path | None, words: list[str], places: list[Path]) -> bool | None:
    """Whether a git works in one of these folders, by its own folder, its environment and what it was told;
    None where nobody can see that."""
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
    """The file system's own clock in ns, which stamps the files that are compared; a file is made to ask."""
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".clock-") as file:
        return os.fstat(file.fileno()).st_mtime_ns
