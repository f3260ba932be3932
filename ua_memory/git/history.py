"""Reading and writing the history, in which every revision is a commit: log, diff, blame, branches."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher, unified_diff
from functools import cached_property
from io import BytesIO
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import NamedTuple

from ua_memory.errors import GitFailed, NotFound
from ua_memory.git import repository
from ua_memory.git.process import (
    NO_FSYNC,
    PLAIN_PACK,
    STALE_SECONDS,
    BatchEnded,
    GitObject,
    ObjectReader,
    Process,
    filesystem_now,
    is_running,
    parse_batch,
    set_entries,
    tree_entries,
)
from ua_memory.git.remotes import Remotes
from ua_memory.git.repository import (
    EPOCH,
    MACHINE,
    NOBODY,
    BlameLine,
    Commit,
    Repository,
    Revision,
    blob_id,
    is_id,
)
from ua_memory.markdown.lines import common_prefix_length

# -- concurrent git commands -------------------------------------------------------------------------------
# Noticing a checkout, merge, reset or stash that somebody runs in a bank that is a repository of its own.
#
# Such a command holds `index.lock` while it writes files, and updates HEAD at the end. Until then HEAD names
# one branch, and the files are of another (docs/decisions/0018).


FILE_WRITING_COMMANDS = frozenset(
    {"am", "apply", "bisect", "checkout", "checkout-index", "cherry-pick", "clean", "merge", "mv", "pull"}
    | {"read-tree", "rebase", "reset", "restore", "revert", "rm", "stash", "switch"}
)
"""The commands that write files. Others hold the lock too: `git commit -a` does while its editor is open."""
NEW_LOCK_NS = 1_000_000_000
"""A newer lock counts even if no git process is found, since git may run under another name."""
PAUSE_SECONDS = 0.02
HEAD_CHECKS = 10
"""So often HEAD is checked after a git has written its files and the index."""
MOST_ASKED = 10
"""So many branches, the newest, and so many revisions are compared with a file."""


FileState = tuple[int, int] | None
"""(inode, mtime in ns) of a file; None if there is none."""


@dataclass(frozen=True, slots=True)
class RepositoryState:
    """The branch that HEAD names, and the state of the files HEAD and index."""

    branch: str = ""
    index: FileState = None
    head: FileState = None
    """Differs after every switch, also after one back."""


def read_state(repo: Repository) -> RepositoryState:
    """The present state of a bank's own repository; of a history kept beside code, a constant."""
    if not repo.own or not repo.exists:
        return RepositoryState()
    # HEAD is read before the branch: if it changes in between, the states differ.
    head = _file_state(repo.git_dir / "HEAD")
    return RepositoryState(current_branch(repo), _file_state(repo.git_dir / "index"), head)


def _file_state(file: Path) -> FileState:
    with contextlib.suppress(OSError):
        stat = file.stat()
        return stat.st_ino, stat.st_mtime_ns
    return None


def current_branch(repo: Repository) -> str:
    """The branch that HEAD names, even without a commit; '' if it is detached."""
    with contextlib.suppress(OSError, ValueError):
        if not repo.reftable:
            line = (repo.git_dir / "HEAD").read_text().strip()
            return line[5:] if line.startswith("ref: ") else ""
    return ""


def is_locked(repo: Repository) -> bool:
    """Whether git's index is locked, by a running git or a killed one."""
    return repo.own and (repo.git_dir / "index.lock").exists()


def is_writing_files(repo: Repository) -> bool:
    """Whether a running git may be writing files."""
    if not is_locked(repo):
        return False
    if is_running(repo, FILE_WRITING_COMMANDS):
        return True
    with contextlib.suppress(OSError):
        return filesystem_now(repo.git_dir) - (repo.git_dir / "index.lock").stat().st_mtime_ns < NEW_LOCK_NS
    return False


def wait_until_idle(repo: Repository, seconds: float) -> bool:
    """Wait until no git is writing files; False after a timeout of `seconds`."""
    until = time.monotonic() + seconds
    waited = False
    while is_writing_files(repo):
        if time.monotonic() > until:
            return False
        waited = True
        time.sleep(PAUSE_SECONDS)
    # git writes HEAD after it releases the index.
    for _ in range(HEAD_CHECKS if waited else 0):
        if not is_running(repo, FILE_WRITING_COMMANDS):
            break
        time.sleep(PAUSE_SECONDS)
    return True


@dataclass
class OtherBranches:
    """The branches other than the current one, `here`."""

    repo: Repository
    here: str
    _trees: dict[str, Mapping[str, str]] = field(default_factory=dict)

    @cached_property
    def tips(self) -> Sequence[tuple[str, str]]:
        """(name, commit) of each, newest first. git is not run if there is only one branch."""
        if not self.repo.own or not (self.repo.reftable or len(self.repo.ref_names("heads", "remotes")) > 1):
            return ()
        words = (f"--count={MOST_ASKED}", "--sort=-committerdate", "--format=%(refname) %(objectname)")
        out = self.repo.run("for-each-ref", *words, "refs/heads", "refs/remotes").decode("utf-8", "replace")
        named = (row.partition(" ") for row in out.splitlines())
        return [(name, commit) for name, _, commit in named if name != self.here]

    def has(self, path: str, blob: str | None, *, new: bool) -> str:
        """A branch on which a file has this content (None: does not exist), by a checkout; else ''.

        A file that is `new` on the current branch may have been copied by hand.
        """
        for name, commit in self.tips:
            if self._files(commit).get(path) == blob:
                # An older content of the current branch, or a deletion, may also be a person's edit, unless
                # git is at work.
                apart = blob and not new and self._has_own_commits(commit)
                if apart or is_locked(self.repo) or self._staged_blob(path) == blob:
                    return name
        return self.here if self.tips and blob and self._is_left_by_switch(path, blob) else ""

    def checked_out_around(self, path: str, blob: str) -> str:
        """The repository around the bank, if its checkout or stash has written this content: its HEAD has it,
        and is older than our newest revision of the file; else ''."""
        theirs = self.repo.around()
        if theirs is None:
            return ""
        inner = (self.repo.root.relative_to(theirs.root) / path).as_posix()
        with contextlib.suppress(GitFailed):
            if theirs.run("rev-parse", "--quiet", "--verify", f"HEAD:{inner}").decode().strip() == blob:
                made = theirs.run("log", "-1", "--format=%ct")
                ours = self.repo.run("log", "-1", "--format=%ct", "--", path)
                return f"HEAD in {theirs.root}" if int(made) < int(ours or 0) else ""
        return ""

    def _is_left_by_switch(self, path: str, blob: str) -> bool:
        """Whether a checkout of the current branch wrote the file just before we committed to that branch:
        HEAD is newer than the commit and the file."""
        try:
            moved = (self.repo.git_dir / "HEAD").stat().st_mtime_ns
            committed = (self.repo.shared / self.here).stat().st_mtime_ns
            written = (self.repo.root / path).stat().st_ctime_ns
        except OSError:
            return False
        if moved < max(committed, written):
            return False
        words = ("log", f"-n{MOST_ASKED}", "--format=", "--raw", "--no-abbrev", "--no-renames", "--", path)
        return f" {blob} " in self.repo.run(*words).decode("utf-8", "replace")

    def _files(self, commit: str) -> Mapping[str, str]:
        if commit not in self._trees:
            self._trees[commit] = repository.parse_ls_tree(self.repo.run("ls-tree", "-r", "-z", commit))
        return self._trees[commit]

    def _has_own_commits(self, commit: str) -> bool:
        head = self.repo.head()
        return not head or bool(self.repo.run("rev-list", "-n1", commit, f"^{head}").strip())

    def _staged_blob(self, path: str) -> str | None:
        with contextlib.suppress(GitFailed):
            row = self.repo.run("ls-files", "-s", "-z", "--", path).decode("utf-8", "surrogateescape")
            return row.split()[1] if row.strip("\0") else None
        return ""


# -- added lines -------------------------------------------------------------------------------------------
# The lines that revisions added, and their messages, parsed from `git log -p`.


REVISIONS_AT_ONCE = 400
"""One git process reads so many revisions, since its whole output is in memory."""
_DIFF_OPTIONS = ("--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", "--text")
"""Options for all diffs: by lines, whatever the user's settings and attributes are."""
_COMMIT = b"commit "
_HUNK = re.compile(rb"@@ -\d+(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)")


@dataclass(slots=True)
class Hunk:
    """Adjacent lines that a revision added to `path`, from `line` on; with the path '' its message."""

    revision: str
    path: str
    line: int = 1
    added: list[bytes] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The added lines."""
        return b"\n".join(self.added).decode("utf-8", "replace")


def all_hunks(history: Repository, *paths: str) -> Iterator[Hunk]:
    """All hunks of the history, oldest first, over all branches, tags and stashes; of these paths or of
    all."""
    asked = ("rev-list", "--reverse", "--all", "--full-history", "--", *paths)
    revisions = history.run(*asked).decode().split() if history.exists else []
    for at in range(0, len(revisions), REVISIONS_AT_ONCE):
        some = revisions[at : at + REVISIONS_AT_ONCE]
        stdin = "".join(f"{each}\n" for each in some).encode()
        shown = ["--no-walk=unsorted", *_DIFF_OPTIONS, "--diff-merges=first-parent", "-p", "-U0"]
        shown += ["--format=commit %H%n%w(0,1,1)%B"]
        out = history.run("log", *shown, "--stdin", "--", *paths, stdin=stdin)
        yield from _parse_log(out, frozenset(some))


def _parse_log(out: bytes, revisions: frozenset[str]) -> Iterator[Hunk]:
    """Parse `git log -p`. Message lines begin with a blank and file lines with + or -, so that none looks
    like one of git's own."""
    hunk = Hunk("", "")
    path, within = "", True
    for row in out.split(b"\n"):
        if row.startswith(_COMMIT) and row[7:].decode("ascii", "replace") in revisions:
            yield hunk
            hunk, within = Hunk(row[7:].decode(), ""), True
        elif row.startswith(b"diff --git "):
            within = False
        elif found := _HUNK.match(row):
            yield hunk
            hunk, within = Hunk(hunk.revision, path, int(found[1])), True
        elif not within and row.startswith(b"+++ "):
            path = _header_path(row[4:])
        elif within and row[:1] == (b"+" if hunk.path else b" "):
            hunk.added.append(row[1:])
    yield hunk


def _header_path(shown: bytes) -> str:
    """The path in `b/memory/x.md`, in which git quotes special characters; '' for none."""
    shown = shown.removesuffix(b"\t")
    if shown.startswith(b'"'):
        shown = _ESCAPE.sub(lambda m: bytes([int(m[1], 8)]) if m[1].isdigit() else m[1], shown[1:-1])
    return shown[2:].decode("utf-8", "surrogateescape") if shown != b"/dev/null" else ""


# -- blame -------------------------------------------------------------------------------------------------
# Who wrote the words of each line of a file: its lines are followed from its first revision to the last.
#
# A machine that appends a block id to a person's line has not written it; nor has a revision that restores
# lines: an undo, or the merge after a stale save. `git blame` would name these. Lines that such a revision
# wrote itself are a machine's, even if a person is the commit's author.


RESTORING_OPS = frozenset({"merge", "redo", "restore", "sync", "undo"})
"""The `Memory-Op` of our revisions that restore lines of earlier ones."""
FILES_AT_ONCE = 20
_BLOCK_ID = re.compile(r"(?:^|\s+)\^[A-Za-z0-9-]+\s*$")


class _Lines(NamedTuple):
    """The lines of a file, and the revision that wrote each."""

    texts: list[str]
    authors: list[Revision]


def _follow_lines(history: History, rev: str, path: str) -> _Lines:
    """The lines of a file in a revision. GitFailed, also if an earlier content is missing."""
    rows = _read_log(history, "--topo-order", "--reverse", "--parents", rev, "--", path)[0]
    done = [(_parse_revision(row), row.split(b"\0", 2)[1].decode().split()) for row in rows]
    children = Counter(parent for _, parents in done for parent in parents)
    states: dict[str, _Lines] = {}
    written: dict[str, Revision] = {}
    found = _Lines([], [])
    for start in range(0, len(done), FILES_AT_ONCE):
        some = done[start : start + FILES_AT_ONCE]
        contents = history.read_all([(revision.id, path) for revision, _ in some])
        for (revision, parents), data in zip(some, contents, strict=True):
            if data is None and (lost := history.run("ls-tree", revision.id, "--", path)):
                what = f"object {lost.split()[2].decode()} is missing"
                raise GitFailed(what, where=str(history.git_dir), hint="ua-memory doctor")
            before = [old for old in map(states.get, parents) if old and old.texts]
            if data and len(before) < 2:
                before += _renamed_lines(history, revision.id, path, len(before))
            found = states[revision.id] = _attribute(revision, _split_rows(data or b""), before, written)
            for parent in parents:
                children[parent] -= 1
                if not children[parent]:
                    states.pop(parent, None)
    return found


def _renamed_lines(history: History, revision: str, path: str, known: int) -> Iterator[_Lines]:
    """The lines of the file that a revision renamed to this path, for each parent that lacks the path. So
    many parents are `known` to have it."""
    (commit,) = history.read_objects([revision])
    header = commit.data.partition(b"\n\n")[0].decode("ascii", "replace") if commit else ""
    parents = [row.removeprefix("parent ") for row in header.split("\n") if row.startswith("parent ")]
    for parent in parents if len(parents) > known else ():
        # A shallow history lacks the parents of its first revisions.
        if history.read_objects([parent]) != [None] and history.read(parent, path) is None:
            words = ("diff-tree", "-r", "-z", "-M", "--diff-filter=R", "--name-status", parent, revision)
            names = history.run(*words).decode("utf-8", "surrogateescape").split("\0")
            old = [was for was, now in zip(names[1::3], names[2::3], strict=False) if now == path]
            yield from (_follow_lines(history, parent, was) for was in old)


def _attribute(
    revision: Revision, texts: list[str], before: Sequence[_Lines], written: dict[str, Revision]
) -> _Lines:
    """A revision's lines; its parents have the lines `before`. `written` has the author of each text that the
    file ever had, with and without its id, and gets the new ones."""
    op = revision.trailer("Memory-Op")
    requested = op in repository.REQUESTED_OPS
    by_words = revision.author == MACHINE[0] or requested or op in RESTORING_OPS
    authors: list[Revision | None] = [None] * len(texts)
    for old in before:
        for i, j, size in _equal_lines(old.texts, texts, by_words):
            pairs = zip(authors[j : j + size], old.authors[i : i + size], strict=True)
            authors[j : j + size] = [known or theirs for known, theirs in pairs]
    own = replace(revision, author=MACHINE[0]) if requested else revision
    for n in [n for n, known in enumerate(authors) if known is None]:
        keys = (texts[n].rstrip(), _strip_id(texts[n])) if texts[n].strip() else ()
        there = (written[key] for key in keys if key in written and op in RESTORING_OPS)
        authors[n] = by = next(there, own)
        written |= dict.fromkeys(keys, by)
    return _Lines(texts, [by or own for by in authors])


def _equal_lines(old: Sequence[str], new: Sequence[str], by_words: bool) -> Iterator[tuple[int, int, int]]:
    """(where in `old`, where in `new`, number) of equal lines. If `by_words`, ids and the order do not
    count."""
    head = common_prefix_length(old, new)
    tail = common_prefix_length(old[head:][::-1], new[head:][::-1])
    yield 0, 0, head
    yield len(old) - tail, len(new) - tail, tail
    plain = _strip_id if by_words else str
    a, b = (list(map(plain, rows[head : len(rows) - tail])) for rows in (old, new))
    moved, left = defaultdict[str, list[int]](list), set(range(len(b)))
    gone = set(range(len(a)))
    for i, j, size in SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks():
        yield head + i, head + j, size
        gone -= {*range(i, i + size)}
        left -= {*range(j, j + size)}
    for i in sorted(gone, reverse=True) if by_words else ():
        moved[a[i]].append(i)
    for j in sorted(left):
        if b[j] and moved[b[j]]:
            yield head + moved[b[j]].pop(), head + j, 1


def _split_rows(data: bytes) -> list[str]:
    return data.decode("utf-8", "surrogateescape").removesuffix("\n").split("\n") if data else []


def _printable(text: str) -> str:
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _strip_id(line: str) -> str:
    """A line without the block id at its end."""
    return _BLOCK_ID.sub("", line).rstrip()


# -- log ---------------------------------------------------------------------------------------------------
# The log of one repository, cached per head: revisions by trailer, path and id.


FIRST, GROWTH = 32, 8
"""So many revisions are read first, with their paths. Paths of older ones are read on demand, each time 8
times as many: for 50,000 revisions they take 10 s, all else takes 1 s."""
_LOG = ("log", "-z", "--no-renames", "--diff-merges=first-parent", "--no-color")
_FIELDS = ("%H", "%P", "%ct", "%an", "%s", "%n%(trailers:only,unfold)")

Row = bytes
"""One revision of git's output: the fields of `_FIELDS` separated by NUL, some 200 bytes. A million with
paths takes 300 MB; as `Revision` objects they would take 2 GB."""


@dataclass(slots=True)
class _LoadedLog:
    """The revisions of one head, newest first. `paths` has the changed paths (separated by NUL) of the newest
    ones only. `whole`: the first revision has been reached."""

    head: str
    rows: list[Row] = field(default_factory=list)
    paths: list[bytes] = field(default_factory=list)
    whole: bool = False

    @property
    def complete(self) -> bool:
        """Whether all revisions are loaded, with their paths."""
        return self.whole and len(self.paths) == len(self.rows)


class RevisionLog:
    """A cache of `git log` of the current branch.

    For a new head on top of the known one only new revisions are read; else all. Thread-safe. Each method
    gets the repository and the id of its head. GitFailed.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._known = _LoadedLog("")
        self._merges: dict[bytes, list[bytes]] = {}
        self._deep_queries = 0
        """How often paths of old revisions were needed."""

    def newest(self, git: Process, head: str) -> Iterator[Revision]:
        """All revisions, newest first; a generator that reads them as needed."""
        with self._lock:
            known = self._load(git, head)
        n = 0
        while self._read_paths(git, known, n + 1):
            yield _parse_revision(known.rows[n], known.paths[n].split(b"\0"))
            n += 1

    def with_trailer(self, git: Process, head: str, key: str, start: str = "") -> list[Revision]:
        """The revisions with a trailer `key` whose value begins with `start`, newest first, without their
        `paths`."""
        with self._lock:
            known = self._load(git, head)
            self._read_rest(git, known)
        sought = f"\n{key}: {start}".encode()
        return [_parse_revision(row) for row in known.rows if sought in row]

    def find(self, git: Process, head: str, id: str) -> Revision | None:
        """The revision with this full id, if it is loaded."""
        with self._lock:
            known = self._load(git, head)
            start = f"{id}\0".encode()
            found = next((n for n, row in enumerate(known.rows) if row.startswith(start)), None)
            if found is None or found >= len(known.paths):
                return None
            return _parse_revision(known.rows[found], known.paths[found].split(b"\0"))

    def touching(
        self, git: Process, head: str, paths: Sequence[str], limit: int | None = None
    ) -> list[Revision]:
        """The revisions that changed these files or folders, newest first, with only these in `paths`. A
        merge counts if a file differs from each parent."""
        sought = [path.encode("utf-8", "surrogateescape").rstrip(b"/") for path in paths]
        found: list[Revision] = []
        with self._lock:
            known, n = self._load(git, head), 0
            while (limit is None or len(found) < limit) and self._read_paths(git, known, n + 1):
                if names := self._changed_paths(git, known, n, sought):
                    found.append(_parse_revision(known.rows[n], names))
                n += 1
                if n == len(known.paths) and not known.complete:
                    self._deep_queries += 1
                    if self._deep_queries == 1:
                        # For a single query git is twice as fast as reading all older paths.
                        some = [f"-n{limit}"] if limit else []
                        return run_log(git, *some, head, "--", *paths)
        return found

    def _changed_paths(self, git: Process, known: _LoadedLog, n: int, sought: Sequence[bytes]) -> list[bytes]:
        """The n-th revision's paths that match."""
        every = known.paths[n]
        if not any(path in every for path in sought):
            return []
        names = _matching_paths(every.split(b"\0"), sought)
        id, parents, _ = known.rows[n].split(b"\0", 2)
        if names and b" " in parents:
            if id not in self._merges:
                words = ("--no-walk", "--diff-merges=combined", "--name-only", id.decode())
                self._merges[id] = _read_log(git, *words)[1][0].split(b"\0")
            return names if _matching_paths(self._merges[id], sought) else []
        return names

    # -- reading -----------------------------------------------------------------------------------

    def _load(self, git: Process, head: str) -> _LoadedLog:
        """The log of a head, extended from the known one if possible."""
        if self._known.head != head:
            known = _extend_log(git, self._known, head)
            if not known:
                rows, paths = _read_log(git, f"-n{FIRST}", "--name-only", head)
                known = _LoadedLog(head, rows, paths, len(rows) < FIRST)
            self._known = known
        return self._known

    def _read_rest(self, git: Process, known: _LoadedLog) -> None:
        if not known.whole:
            known.rows += _read_log(git, f"--skip={len(known.rows)}", known.head)[0]
            known.whole = True

    def _read_paths(self, git: Process, known: _LoadedLog, count: int) -> bool:
        """Read the paths of `count` revisions; False if there are fewer."""
        with self._lock:
            if count > len(known.paths) and not known.complete:
                self._read_rest(git, known)
                some = known.rows[len(known.paths) : max(count, len(known.paths) * GROWTH)]
                known.paths += _read_changed_paths(git, [_row_id(row) for row in some])
            return count <= len(known.paths)


def _extend_log(git: Process, known: _LoadedLog, head: str) -> _LoadedLog | None:
    """The known log with the revisions since; None if they are not a linear continuation."""
    if not known.head:
        return None
    try:
        rows, paths = _read_log(git, "--name-only", f"{known.head}..{head}")
    except GitFailed:  # the known head no longer exists, as after a purge
        return None
    ids = [_row_id(row) for row in rows]
    parents = [row.split(b"\0", 2)[1].decode() for row in rows]
    if not rows or parents != [*ids[1:], known.head]:
        return None
    return _LoadedLog(head, rows + known.rows, paths + known.paths, known.whole)


def run_log(git: Process, *words: str) -> list[Revision]:
    """The revisions, with paths, that `git log` prints with these arguments. GitFailed."""
    rows, paths = _read_log(git, "--name-only", *words)
    return [_parse_revision(row, names.split(b"\0")) for row, names in zip(rows, paths, strict=True)]


@dataclass(frozen=True, slots=True)
class CommitStamp:
    """A commit's parents, and a `stamp` that a purge does not change: author, committer, times,
    `Memory-Op`."""

    parents: tuple[str, ...]
    stamp: str


def commit_stamps(git: Process, tip: str) -> dict[str, CommitStamp]:
    """{id: stamp} of a history, newest first."""
    shown = "%H%x00%P%x00%an%x00%ae%x00%at%x00%cn%x00%ce%x00%ct%x00%(trailers:key=Memory-Op,separator=%x00)"
    out = git.run("log", "--topo-order", f"--format={shown}", tip).decode("utf-8", "surrogateescape")
    parts = (row.split("\0", 2) for row in out.split("\n") if row)
    return {sha: CommitStamp(tuple(parents.split()), stamp) for sha, parents, stamp in parts}


def _read_changed_paths(git: Process, ids: Sequence[str]) -> list[bytes]:
    stdin = "".join(f"{id}\n" for id in ids).encode()
    return _read_log(git, "--no-walk=unsorted", "--stdin", "--name-only", stdin=stdin)[1] if ids else []


def _read_log(git: Process, *words: str, stdin: bytes | None = None) -> tuple[list[Row], list[bytes]]:
    """(rows, changed paths of each) that `git log` prints. Records are separated by NUL and a random mark,
    which no message contains."""
    mark = secrets.token_hex(8)
    out = git.run(*_LOG, f"--format=%x00{mark}%x00{'%x00'.join(_FIELDS)}%x00", *words, stdin=stdin)
    rows: list[Row] = []
    paths: list[bytes] = []
    same: dict[bytes, bytes] = {}
    for record in out.split(f"\0{mark}\0".encode())[1:]:
        *fields, rest = record.split(b"\0", len(_FIELDS))
        names = b"\0".join(filter(None, (name.strip(b"\n") for name in rest.split(b"\0"))))
        rows.append(b"\0".join(fields))
        paths.append(same.setdefault(names, names))  # most revisions change the same file
    return rows, paths


def _row_id(row: Row) -> str:
    return row.partition(b"\0")[0].decode()


def _matching_paths(names: Iterable[bytes], sought: Collection[bytes]) -> list[bytes]:
    """The names that are one of `sought`, or in one of these folders."""
    return [name for name in names if any(name == p or name.startswith(p + b"/") for p in sought)]


def _parse_revision(row: Row, names: Iterable[bytes] = ()) -> Revision:
    id, _, when, author, subject, said = row.decode("utf-8", "replace").split("\0")
    trailers = repository.parse_trailers(said)
    return Revision(id, repository.parse_time(when), author, subject, trailers, _decode_paths(names))


def _decode_paths(names: Iterable[bytes]) -> tuple[str, ...]:
    return tuple(name.decode("utf-8", "surrogateescape") for name in names if name)


# -- history -----------------------------------------------------------------------------------------------
# Commits are written by `git fast-import`: it takes the bytes of a revision rather than those on disk, needs
# neither index nor identity, and is one process (docs/decisions/0001). The work tree's attributes are not
# used: a filter or `eol=crlf` would change the bytes.


PENDING_INDEX_FILE = "ua-memory/index-behind"
"""A file in the bank's own git directory: paths whose index entries could not be updated yet."""
NOT_COMMITTED = "not committed yet"
STALE_LOCK_NS = STALE_SECONDS * 10**9
SMALL_COMMIT = 10
"""A commit of so many files has less than a hundred objects, which git stores loose, not in a pack."""


class History(Remotes):
    """The history of one bank: a git directory with the bank's root as its work tree."""

    def __init__(self, git_dir: Path, root: Path, *, own: bool) -> None:
        super().__init__(git_dir, root, own=own)
        self._log, self._objects = RevisionLog(), ObjectReader()
        self.known: tuple[str, Mapping[str, str]] | None = None
        """Cache of `blobs`: (commit id, {path: blob id})."""

    def close(self) -> None:
        """End the process that reads objects; a later read starts another."""
        self._objects.close()

    def share_cache(self, other: History) -> None:
        """Share caches and the object reader with another instance of the same repository."""
        if (other.git_dir, other.root, other.own) == (self.git_dir, self.root, self.own):
            self._log, self._objects, self.known = other._log, other._objects, other.known

    # -- reading -----------------------------------------------------------------------------------

    def resolve(self, revision: str) -> str:
        """The full id of a revision, by any of git's names for it. NotFound."""
        if self.exists and not revision.startswith("-"):
            (found,) = self.read_objects([f"{revision}^{{commit}}"])
            if found:
                return found.id
        raise NotFound("no such revision", where=revision, hint="ua-memory log")

    def blobs(self, paths: Sequence[str] = (), rev: str = "HEAD") -> dict[str, str]:
        """{path: blob id} of a revision's regular files; of all, or of these paths."""
        commit = self.head() if rev == "HEAD" else rev
        if commit is None:
            return {}
        known = self.known  # another thread may set it meanwhile
        if not known or known[0] != commit:
            known = commit, self._list_files(commit)
            self.known = known if is_id(commit) else self.known
        return {path: known[1][path] for path in paths or known[1] if path in known[1]}

    def _list_files(self, commit: str) -> dict[str, str]:
        """{path: blob id} of all regular files, in git's order, read tree by tree, one level at a time."""
        found: dict[str, str] = {}
        folders = {"": f"{commit}^{{tree}}"}
        while folders:
            trees = self.read_objects([*folders.values()])
            deeper: dict[str, str] = {}
            for folder, tree in zip(folders, trees, strict=True):
                if tree is None:  # let git report the error
                    return repository.parse_ls_tree(self.run("ls-tree", "-r", "-z", commit))
                for mode, name, sha in tree_entries(tree):
                    path = folder + name
                    # Without links (120000) and submodules (160000) of a bank's own repository.
                    if mode.startswith(b"100"):
                        found[path] = sha
                    elif mode == b"40000":
                        deeper[f"{path}/"] = sha
            folders = deeper
        return {path: found[path] for path in sorted(found, key=os.fsencode)}

    def moved(self, old: str, new: str) -> dict[str, str | None]:
        """{path: blob id in `new`, None if it is no regular file} of all paths that differ."""
        there = self.differing(old, new)
        return {path: blob if mode.startswith("100") else None for path, (mode, blob) in there.items()}

    def read_objects(self, names: Sequence[str]) -> list[GitObject | None]:
        """The objects with these names: an id, `REVISION:PATH` or `REVISION^{commit}`; None for a missing
        one. GitFailed if an object is damaged."""
        lines = [self._batch_line(name) for name in names]
        try:
            return self._objects.read(self, lines)
        except BatchEnded:  # run git again for its error message
            stdin = "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")
            out = BytesIO(self.run("cat-file", "--batch", stdin=stdin))
            try:
                return list(parse_batch(out, len(lines)))
            except ValueError as error:
                raise GitFailed(str(error), where=str(self.git_dir), hint="ua-memory verify") from error

    def _batch_line(self, name: str) -> str:
        """An object's name as a line of `cat-file` input; NOBODY (no object) if that is impossible."""
        try:
            os.fsencode(name)
        except UnicodeEncodeError:  # a lone surrogate that stands for no byte
            return NOBODY
        if "\n" not in name:
            return name
        out = self.run("rev-parse", "--verify", "--quiet", name, ok=(0, 1, 128))
        return out.decode().strip() or NOBODY

    def read(self, rev: str, path: str) -> bytes | None:
        """A file's bytes in a revision, or None."""
        if rev == "HEAD" and self.head() is None:
            return None
        return self.read_all([(rev, path)])[0]

    def read_all(self, wanted: Sequence[tuple[str, str]]) -> list[bytes | None]:
        """The bytes of each (revision, path) or (blob id, ""), None for missing ones. GitFailed if an object
        is damaged."""
        at = {"HEAD": self.head() or "HEAD"} if any(rev == "HEAD" for rev, _ in wanted) else {}
        found = self.read_objects([f"{at.get(rev, rev)}:{path}" if path else rev for rev, path in wanted])
        return [each.data if each and each.kind == "blob" else None for each in found]

    def blob(self, name: str) -> bytes:
        """The content of a blob. GitFailed if it is missing."""
        (found,) = self.read_objects([name])
        return found.data if found and found.kind == "blob" else self.run("cat-file", "blob", name)

    def blob_or_guess(self, name: str | None, guess: bytes | None) -> bytes | None:
        """The content of a blob, read only if it is not the `guess`; None without a name. GitFailed."""
        if name is None or (guess is not None and blob_id(guess) == name):
            return guess if name else None
        return self.blob(name)

    def contents(self, names: Iterable[str]) -> dict[str, bytes]:
        """{blob id: content}, read together: one by one, ten years of logs took 13 s. GitFailed if one is
        missing."""
        wanted = list(dict.fromkeys(names))
        found = zip(wanted, self.read_objects(wanted) if wanted else (), strict=True)
        return {name: each.data if each and each.kind == "blob" else self.blob(name) for name, each in found}

    def has_committed(self, path: str, data: bytes) -> bool:
        """Whether any commit of any branch, or of the reflog, has this content of a file."""
        if self.read_objects([blob := blob_id(data)]) == [None]:
            return False
        words = ("--all", "--reflog", "-m", "--full-history", "-n1", "--format=%H")
        return bool(self.run("log", *words, f"--find-object={blob}", "--", path).strip())

    def log(self, paths: Sequence[str] = (), *, limit: int | None = None) -> list[Revision]:
        """The branch's revisions, newest first: all, or those that changed these files or folders, with only
        these in `paths`."""
        return list(islice(self.revisions(paths, limit=limit), limit))

    def revisions(self, paths: Sequence[str] = (), *, limit: int | None = None) -> Iterator[Revision]:
        """The same as a generator, which reads them as needed."""
        if (head := self.head()) is None:
            return
        with self._explaining_missing_branch():
            if paths:
                yield from self._log.touching(self, head, paths, limit)
            else:
                yield from self._log.newest(self, head)

    def with_trailer(self, key: str, start: str = "", *, rev: str = "HEAD") -> list[Revision]:
        """The revisions with a trailer `key` whose value begins with `start`, newest first, without
        `paths`."""
        if (head := self.head()) is None:
            return []
        with self._explaining_missing_branch():
            if rev == "HEAD":
                return self._log.with_trailer(self, head, key, start)
            found = run_log(self, "-F", f"--grep={key}: {start}", rev)
            return [one for one in found if any(v.startswith(start) for v in one.trailers.get(key, ()))]

    def with_paths(self, done: Sequence[Revision]) -> list[Revision]:
        """The same revisions with their changed paths."""
        names = _read_changed_paths(self, [one.id for one in done])
        pairs = zip(done, names, strict=True)
        return [replace(one, paths=_decode_paths(some.split(b"\0"))) for one, some in pairs]

    def undone_revisions(self) -> set[str]:
        """The ids of undone revisions, and of undos that were redone."""
        gone: set[str] = set()
        for done in self.with_trailer("Undoes"):
            # An undo that was itself redone undoes nothing.
            if done.id not in gone:
                gone |= {*done.trailers.get("Undoes", ())}
        return gone

    def mentioning(self, block: str, paths: Sequence[str] = ()) -> set[str]:
        """The ids of revisions that added or removed a line with the id `^block`."""
        words = ("--format=%H", "--no-textconv", "-G", f"\\^{block}([^A-Za-z0-9-]|$)", "--", *paths)
        return set(self.run("log", *words).decode().split()) if self.head() else set()

    @contextlib.contextmanager
    def _explaining_missing_branch(self) -> Iterator[None]:
        """If git fails because the branch's ref is missing, raise the error that says so."""
        try:
            yield
        except GitFailed:
            self.require_branch()
            raise

    def show(self, revision: str) -> Revision:
        """One revision. NotFound if there is none."""
        sha = self.resolve(revision)
        head = self.head()
        known = self._log.find(self, head, sha) if head else None
        return known or run_log(self, "-n1", sha)[0]

    def diff(self, old: str | None, new: str | None, paths: Sequence[str] = (), *, context: int = 3) -> str:
        """A unified diff between two revisions; None is the empty tree as `old`, the disk as `new`."""
        if new is None:
            paths = paths or [*self.blobs(rev=old or "HEAD")]
            return "".join(self._diff_to_disk(old, path, context) for path in paths)
        first = old or self.run("hash-object", "-t", "tree", "--stdin", stdin=b"").decode().strip()
        words = ("diff", *_DIFF_OPTIONS, f"-U{context}", first, new)
        return self.run(*words, "--", *paths).decode("utf-8", "replace")

    def _diff_to_disk(self, old: str | None, path: str, context: int) -> str:
        file = self.root / path
        now = file.read_bytes() if file.is_file() and not file.is_symlink() else None
        shown = unified_file_diff(path, self.read(old, path) if old else None, now, context)
        return f"diff --git a/{path} b/{path}\n{shown}" if shown else ""

    def blame(
        self, path: str, contents: bytes, *, lines: tuple[int, int] | None = None, rev: str = "HEAD"
    ) -> list[BlameLine]:  # fmt: skip
        """Who wrote each line of `contents`, the file's present bytes; uncommitted lines have the revision
        NOBODY."""
        there = self.read_all([(rev, path)]) if self.exists else [None]
        known = [_follow_lines(self, rev, path)] if there != [None] else []
        found = _attribute(Revision(NOBODY, EPOCH, NOT_COMMITTED, ""), _split_rows(contents), known, {})
        rows = [*enumerate(zip(*found, strict=True), 1)]
        return [
            BlameLine(n, by.id, by.author, by.when, by.subject, _printable(text), by.trailer("Memory-Op"))
            for n, (text, by) in (rows[lines[0] - 1 : lines[1]] if lines else rows)
        ]

    # -- writing -----------------------------------------------------------------------------------

    def target(self, branch: str) -> str:
        """The ref for commits that were made for a branch: the branch itself; `HEAD` if it has no commit, or
        the history is kept beside code."""
        return branch if self.own and branch and self.tip(branch) else "HEAD"

    def is_not_checked_out(self, branch: str) -> bool:
        """Whether this branch still exists and HEAD names another one."""
        return self.target(branch) not in ("HEAD", current_branch(self))

    def tip(self, ref: str) -> str | None:
        """The commit of a ref or of HEAD; None if there is none."""
        if ref == "HEAD":
            return self.head()
        found = self.stored(ref)
        if (found and is_id(found)) or (not found and ref.startswith("refs/") and not self.reftable):
            return found or None
        (commit,) = self.read_objects([f"{ref}^{{commit}}"])
        return commit.id if commit else None

    def commit(self, commits: Sequence[Commit], target: str = "HEAD", parent: str | None = None) -> list[str]:
        """Write commits, fsynced, on top of `parent`, by default the target's tip; returns their ids.

        The target is a branch, or HEAD. GitFailed also if the branch has moved meanwhile; then nothing is
        committed.
        """
        here = self.ref()
        ref = here if target == "HEAD" else target
        self._remove_stale_locks(ref)
        if ref == here and (joined := self.fast_forward(commits)):
            return joined
        stream = repository.fast_import_stream(ref, commits, parent or self.tip(ref))
        try:
            env = PLAIN_PACK if sum(len(c.files) for c in commits) <= SMALL_COMMIT else {}
            out = self.run("fast-import", "--quiet", "--done", "--date-format=raw", stdin=stream, env=env)
        except GitFailed:
            for report in self.git_dir.glob("fast_import_crash_*"):
                report.unlink(missing_ok=True)
            raise
        if not self.own or ref == current_branch(self):  # else the index is another branch's
            final = {path: data for c in commits for path, data in c.files.items()}
            self._set_index({path: None if data is None else blob_id(data) for path, data in final.items()})
        return out.decode().split()

    def not_loose_objects(self, contents: Iterable[bytes | None]) -> tuple[bytes, ...]:
        """The contents that are not stored as loose objects: they are in a pack, or missing from a damaged
        history. Writing them again is harmless in the first case and a repair in the second."""
        objects = self.shared / "objects"
        named = {blob_id(data): data for data in contents if data is not None}
        return tuple(data for name, data in named.items() if not (objects / name[:2] / name[2:]).exists())

    def _remove_stale_locks(self, ref: str) -> None:
        """Remove ref locks of killed gits. Only we write a history beside code; in a bank's own repository a
        lock is stale after ten seconds. GitFailed names a newer one."""
        for lock in (self.git_dir / "HEAD.lock", self.shared / f"{ref}.lock"):
            if not lock.exists():
                continue
            try:
                if self.own and filesystem_now(self.git_dir) - lock.stat().st_mtime_ns < STALE_LOCK_NS:
                    hint = f"try again; else rm {quote(str(lock))}"
                    raise GitFailed("git is running there", where=str(lock), hint=hint)
                lock.unlink(missing_ok=True)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise GitFailed(f"{error.strerror}: {lock}", hint=f"rm {quote(str(lock))}") from error

    def fast_forward(self, commits: Sequence[Commit]) -> list[str] | None:
        """Fast-forward to another history if the merge commit would add nothing to it: [its tip]; else
        None."""
        if len(commits) != 1 or not (other := commits[0].joins):
            return None
        head = self.head()
        if head and not self.is_within(head, other):
            return None
        there = {path: blob for path, (_, blob) in self.differing(head, other).items()}
        if there != {path: "" if data is None else blob_id(data) for path, data in commits[0].files.items()}:
            return None
        self.run("update-ref", self.ref(), other, head or NOBODY)
        self.mend_index(list(there))
        return [other]

    def mend_index(self, paths: Sequence[str] = ()) -> None:
        """Update git's index for these paths, and for those that are still pending."""
        there = self.blobs(paths) if self.own and paths else {}
        self._set_index({path: there.get(path) for path in paths})

    def _set_index(self, ids: dict[str, str | None]) -> None:
        """Set index entries of the bank's own repository, so that `git status` shows only a person's changes.

        If the index is locked, the paths are saved for the next call.
        """
        if not self.own:
            return
        late = [path for path in self.pending_index_paths() if path not in ids]
        try:
            there = self.blobs(late) if late else {}
            ids |= {path: there.get(path) for path in late}
            if ids and not set_entries(self.git_dir / "index", ids):
                entries = {path: f"100644 {name}" if name else f"0 {NOBODY}" for path, name in ids.items()}
                rows = (f"{entry}\t{path}" for path, entry in entries.items())
                stdin = "".join(f"{row}\0" for row in rows).encode("utf-8", "surrogateescape")
                self.run("update-index", "-z", "--index-info", stdin=stdin, env=NO_FSYNC)
            self._save_pending_paths([])
        except GitFailed:
            self._save_pending_paths(sorted(ids))

    def pending_index_paths(self) -> list[str]:
        """The paths whose index entries could not be updated, since the index was locked."""
        try:
            raw = (self.git_dir / PENDING_INDEX_FILE).read_bytes()
        except OSError:
            return []
        return [path for path in raw.decode("utf-8", "surrogateescape").split("\0") if path]

    def _save_pending_paths(self, paths: Sequence[str]) -> None:
        note = self.git_dir / PENDING_INDEX_FILE
        with contextlib.suppress(OSError):  # only `git status` is affected
            if paths:
                note.touch(mode=0o600)
                note.write_bytes("\0".join(paths).encode("utf-8", "surrogateescape"))
            else:
                note.unlink(missing_ok=True)

    def repack(self) -> None:
        """Pack loose objects, geometrically, so that the cost is proportional to what was added.

        Nothing is pruned: in a bank's own repository, unreachable objects may be somebody's.
        """
        self.run("repack", "-d", "-q", "-l", "--geometric=2")

    def needs_repack(self) -> bool:
        """Whether loose objects take more than a megabyte, and more than an eighth of the packs.

        All 256 folders are counted: unlike in other repositories, single objects may be large.
        """
        objects = self.shared / "objects"
        loose = sum(_folder_size(objects / f"{n:02x}") for n in range(256))
        return loose > max(1 << 20, _folder_size(objects / "pack") // 8)


def unified_file_diff(
    path: str, old: bytes | None, new: bytes | None, context: int = 3, *,
    sides: tuple[str, str] = ("a/", "b/"), errors: str = "replace",
) -> str:  # fmt: skip
    """A unified diff of two contents of a file; None: no file. `sides` begin the paths."""
    both = tuple(zip(sides, (old, new), strict=True))
    was, now = ("/dev/null" if data is None else f"{side}{path}" for side, data in both)
    one, other = ([line.decode("utf-8", errors) for line in BytesIO(data or b"")] for _, data in both)
    rows = unified_diff(one, other, was, now, n=context)
    return "".join(row if row.endswith("\n") else f"{row}\n\\ No newline at end of file\n" for row in rows)


def _folder_size(folder: Path) -> int:
    total = 0
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            with contextlib.suppress(OSError):
                total += entry.stat().st_size
    return total
