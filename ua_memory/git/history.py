"""Reading and writing the history: every revision is a commit. Also branches, blame and added lines."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from difflib import SequenceMatcher, unified_diff
from functools import cached_property
from io import BytesIO
from itertools import islice
from pathlib import Path

from ua_memory.errors import GitFailed, NotFound
from ua_memory.git import repository
from ua_memory.git.process import (
    NO_FSYNC,
    PLAIN_PACK,
    SECONDS,
    BatchEnded,
    GitObject,
    ObjectReader,
    Process,
    answers,
    at_work,
    filesystem_now,
    set_entries,
    tree_entries,
)
from ua_memory.git.remotes import Remotes
from ua_memory.git.repository import MACHINE, NOBODY, BlameLine, Commit, Repository, Revision, blob_id, is_id

# -- switching ---------------------------------------------------------------------------------------------
# git at work on the files of a bank that is a repository of its own: a checkout, a merge, a reset, a stash.
#
# Such a command holds `index.lock` while it writes files, and moves HEAD when they are all there. Until
# then HEAD names one branch and the files are another's (docs/decisions/0018).


MOVERS = frozenset(
    {"am", "apply", "bisect", "checkout", "checkout-index", "cherry-pick", "clean", "merge", "mv", "pull"}
    | {"read-tree", "rebase", "reset", "restore", "revert", "rm", "stash", "switch"}
)
"""The commands that write files. Of others a lock says nothing: `git commit -a` holds it while its editor is
open."""
YOUNG_NS = 1_000_000_000
"""For so long a lock is believed whose git is not to be seen: not each is a program of that name."""
PAUSE = 0.02
HEAD_TRIES = 10
"""So often it is looked whether HEAD moves, once a git has written its files and the index."""
MOST = 10
"""So many branches are looked at, the newest."""


FileState = tuple[int, int] | None
"""Inode and time of a file; None where there is none."""


@dataclass(frozen=True, slots=True)
class RepositoryState:
    """Where a repository stands: the branch that HEAD names, if it does, and its files HEAD and index."""

    branch: str = ""
    index: FileState = None
    head: FileState = None
    """Another after each switch, also after one there and back."""


def moment(trail: Repository) -> RepositoryState:
    """Where a bank's own repository stands now; of a trail that is kept beside, where it always does."""
    if not trail.own or not trail.exists:
        return RepositoryState()
    head = _state(trail.git_dir / "HEAD")  # first: who reads a newer name finds another state, too
    return RepositoryState(branch_of(trail), _state(trail.git_dir / "index"), head)


def _state(file: Path) -> FileState:
    with contextlib.suppress(OSError):
        stat = file.stat()
        return stat.st_ino, stat.st_mtime_ns
    return None


def branch_of(trail: Repository) -> str:
    """The branch that HEAD names, whether it is born or not; '' where it names none."""
    with contextlib.suppress(OSError, ValueError):
        if not trail.reftable:
            line = (trail.git_dir / "HEAD").read_text().strip()
            return line[5:] if line.startswith("ref: ") else ""
    return ""


def is_locked(trail: Repository) -> bool:
    """Whether some git holds the index, or has left it so."""
    return trail.own and (trail.git_dir / "index.lock").exists()


def is_moving(trail: Repository) -> bool:
    """Whether a git that lives may be writing files."""
    if not is_locked(trail):
        return False
    if at_work(trail, MOVERS):
        return True
    with contextlib.suppress(OSError):
        return filesystem_now(trail.git_dir) - (trail.git_dir / "index.lock").stat().st_mtime_ns < YOUNG_NS
    return False


def settled(trail: Repository, seconds: float) -> bool:
    """Wait until no git writes files, for so long at most; whether it is so."""
    until = time.monotonic() + seconds
    waited = False
    while is_moving(trail):
        if time.monotonic() > until:
            return False
        waited = True
        time.sleep(PAUSE)
    # It writes HEAD after it lets the index go.
    for _ in range(HEAD_TRIES if waited else 0):
        if not at_work(trail, MOVERS):
            break
        time.sleep(PAUSE)
    return True


@dataclass
class OtherBranches:
    """The branches besides the one that HEAD names."""

    trail: Repository
    here: str
    _trees: dict[str, Mapping[str, str]] = field(default_factory=dict)

    @cached_property
    def tips(self) -> Sequence[tuple[str, str]]:
        """(name, commit) of each, the newest first. Where there is but one branch, git is not asked."""
        if not self.trail.own or not (
            self.trail.reftable or len(self.trail.ref_names("heads", "remotes")) > 1
        ):
            return ()
        words = (f"--count={MOST}", "--sort=-committerdate", "--format=%(refname) %(objectname)")
        out = self.trail.run("for-each-ref", *words, "refs/heads", "refs/remotes").decode("utf-8", "replace")
        named = (row.partition(" ") for row in out.splitlines())
        return [(name, commit) for name, _, commit in named if name != self.here]

    def has(self, path: str, blob: str | None, *, new: bool) -> str:
        """The branch on which a file is this, or that has no such file where it is None; else nothing. One
        that is `new` on this branch may have been copied by hand."""
        for name, commit in self.tips:
            if self._tree(commit).get(path) == blob:
                # What is an older state of this branch, too, or no file at all, may be a person's doing,
                # unless git has written it.
                apart = blob and not new and self._is_apart(commit)
                if apart or is_locked(self.trail) or self._staged(path) == blob:
                    return name
        return self.here if self.tips and blob and self._came_late(path, blob) else ""

    def _came_late(self, path: str, blob: str) -> bool:
        """Whether git, on its way to this branch, wrote what the file was there before something was
        committed to it: HEAD came after the commit and after the file."""
        try:
            moved = (self.trail.git_dir / "HEAD").stat().st_mtime_ns
            committed = (self.trail.shared / self.here).stat().st_mtime_ns
            written = (self.trail.root / path).stat().st_ctime_ns
        except OSError:
            return False
        if moved < max(committed, written):
            return False
        words = ("log", f"-n{MOST}", "--format=", "--raw", "--no-abbrev", "--no-renames", "--", path)
        return f" {blob} " in self.trail.run(*words).decode("utf-8", "replace")

    def _tree(self, commit: str) -> Mapping[str, str]:
        if commit not in self._trees:
            self._trees[commit] = repository.plain_files(self.trail.run("ls-tree", "-r", "-z", commit))
        return self._trees[commit]

    def _is_apart(self, commit: str) -> bool:
        head = self.trail.head()
        return not head or bool(self.trail.run("rev-list", "-n1", commit, f"^{head}").strip())

    def _staged(self, path: str) -> str | None:
        with contextlib.suppress(GitFailed):
            row = self.trail.run("ls-files", "-s", "-z", "--", path).decode("utf-8", "surrogateescape")
            return row.split()[1] if row.strip("\0") else None
        return ""


# -- additions ---------------------------------------------------------------------------------------------
# Every line that ever came into the trail or left it: what each revision changed, and said of itself.


AT_ONCE = 400
"""Revisions that are read by one git process: its output is held as a whole."""
_AS_TEXT = ("--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", "--text")
"""How any diff is asked for: by lines, whatever the user's settings and attributes say of a file."""
_COMMIT = b"commit "
_HUNK = re.compile(rb"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_ESCAPED = re.compile(rb"\\([0-7]{3}|.)")


@dataclass(slots=True)
class Hunk:
    """Lines in a row of the file `path` that a revision took out, from `old` on, and put in, from `new` on.
    What it put into '' is its message."""

    revision: str
    path: str
    old: int = 1
    new: int = 1
    removed: list[bytes] = field(default_factory=list)
    added: list[bytes] = field(default_factory=list)

    @property
    def text(self) -> str:
        """What was put in."""
        return b"\n".join(self.added).decode("utf-8", "replace")


def all_hunks(history: Repository, *paths: str) -> Iterator[Hunk]:
    """What was ever changed, oldest first, through every branch, tag and stash there is; of these paths, or
    of all."""
    if history.exists:
        asked = ("rev-list", "--reverse", "--all", "--full-history", "--", *paths)
        yield from hunks(history, history.run(*asked).decode().split(), *paths)


def hunks(history: Repository, revisions: Sequence[str], *paths: str) -> Iterator[Hunk]:
    """What these revisions changed, in their order, in these paths or in all."""
    for at in range(0, len(revisions), AT_ONCE):
        some = revisions[at : at + AT_ONCE]
        stdin = "".join(f"{each}\n" for each in some).encode()
        shown = ["--no-walk=unsorted", *_AS_TEXT, "--diff-merges=first-parent", "-p", "-U0"]
        shown += ["--format=commit %H%n%w(0,1,1)%B"]
        out = history.run("log", *shown, "--stdin", "--", *paths, stdin=stdin)
        yield from _read(out, frozenset(some))


def _read(out: bytes, revisions: frozenset[str]) -> Iterator[Hunk]:
    """Rows of a message begin with a blank and those of a file with + or -: none can pass for git's own."""
    hunk = Hunk("", "")
    path, within = "", True
    for row in out.split(b"\n"):
        if row.startswith(_COMMIT) and row[7:].decode("ascii", "replace") in revisions:
            yield hunk
            hunk, path, within = Hunk(row[7:].decode(), ""), "", True
        elif row.startswith(b"diff --git "):
            path, within = "", False
        elif found := _HUNK.match(row):
            yield hunk
            hunk, within = Hunk(hunk.revision, path, int(found[1]), int(found[2])), True
        elif not within and row[:4] in (b"--- ", b"+++ "):
            path = _named(row[4:]) or path  # a file that goes is named above only
        elif within and row[:1] == (b"+" if hunk.path else b" "):
            hunk.added.append(row[1:])
        elif within and hunk.path and row[:1] == b"-":
            hunk.removed.append(row[1:])
    yield hunk


def _named(shown: bytes) -> str:
    """The path in `b/memory/x.md`; '' for none."""
    shown = unquoted(shown.removesuffix(b"\t"))
    return shown[2:].decode("utf-8", "surrogateescape") if shown != b"/dev/null" else ""


def unquoted(shown: bytes) -> bytes:
    """A path as git shows it, which puts it in quotes where it holds something odd."""
    if not shown.startswith(b'"'):
        return shown
    return _ESCAPED.sub(lambda m: bytes([int(m[1], 8)]) if m[1].isdigit() else m[1], shown[1:-1])


# -- authors -----------------------------------------------------------------------------------------------
# Who wrote each line of a file: who brought its words in.
#
# A machine that appends a block id to a person's line has not written it, and neither has what only brings
# back lines that were gone: an undo, or the merge that puts back what an old editor buffer had dropped.
# git's own `blame` names these, so it is asked again where they found the line. What such a revision wrote
# anew is a machine's, also where a person asked for it and is its author.


GIVING_BACK = frozenset({"merge", "redo", "restore", "sync", "undo"})
"""The `Memory-Op` of revisions of ours that bring back lines which an earlier revision of the file had."""
FILES_AT_ONCE = 20
FEW_LINES = 100
"""So many lines are named to git; of more, all are asked for."""
_ID = re.compile(r"(?:^|\s+)\^[A-Za-z0-9-]+\s*$")

Where = tuple[str, str, int]
"""A revision, a file of it and a line of that, counted from 1."""


@dataclass(frozen=True, slots=True)
class LineAuthors:
    """Asks the trail who wrote what."""

    history: History

    def written(self, rev: str, path: str, lines: Iterable[int] = ()) -> list[BlameLine]:
        """Who wrote each line of a file as a revision has it, or at least these lines of it."""
        found = {row.line: row for row in self._blame(rev, path, lines)}
        unsure = [n for n, row in found.items() if _unsure(row) and row.text.strip()]
        ignored: set[str] = set()
        while unsure:
            given, back, anew = self._earlier({n: found[n] for n in unsure})
            found |= {n: replace(found[n], author=MACHINE[0]) for n in anew}
            ignored |= {found[n].revision for n in given}
            again = self._again(rev, path, {n: (found[n].text, where) for n, where in given.items()}, ignored)
            for n, row in [*again, *_each(back, lambda *file: self.written(*file))]:
                found[n] = replace(row, line=n, text=found[n].text)
            unsure = [n for n in given if _unsure(found[n])]
        return list(found.values())

    def _blame(
        self, rev: str, path: str, lines: Iterable[int] = (), ignored: Iterable[str] = ()
    ) -> list[BlameLine]:
        wanted = sorted({*lines})
        some = [f"-L{n},{n}" for n in wanted] if len(wanted) <= FEW_LINES else []
        passed = [f"--ignore-rev={each}" for each in ignored]
        out = self.history.run("blame", "--porcelain", "--no-textconv", *passed, *some, rev, "--", path)
        return list(repository.blame_lines(out.decode("utf-8", "surrogateescape")))

    def _again(
        self, rev: str, path: str, given: Mapping[int, tuple[str, Where]], ignored: Iterable[str]
    ) -> Iterator[tuple[int, BlameLine]]:
        """What git says of lines that were given an id when it ignores who gave it. It guesses what they were
        before: where that has other words, it is asked where they really stood."""
        asked = self._blame(rev, path, given, ignored) if given else []
        rows = {row.line: row for row in asked if row.line in given}
        places = [(row.revision, _path(row)) for row in rows.values()]
        files = dict(zip(places, self.history.read_all(places), strict=True)) if places else {}
        wrong: dict[int, Where] = {}
        for n, row in rows.items():
            text, where = given[n]
            there = (files[row.revision, _path(row)] or b"").decode("utf-8", "surrogateescape").split("\n")
            if row.revision not in ignored and _words(there[row.was - 1]) == _words(text):
                yield n, row
            else:
                wrong[n] = where
        yield from _each(wrong, lambda *file: self._blame(*file))

    def _earlier(self, rows: Mapping[int, BlameLine]) -> tuple[dict[int, Where], dict[int, Where], list[int]]:
        """Where lines stood before that the revision which git names has not written: in the one before it,
        otherwise only in an id; and in an older one, since they were brought back. Last, those that were
        written anew on somebody's behalf."""
        gone: dict[tuple[str, str], dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        came: dict[tuple[str, str], dict[int, int]] = defaultdict(dict)
        ops: dict[str, str] = {}
        for n, row in rows.items():
            came[row.revision, _path(row)][row.was] = n
        revisions = list(dict.fromkeys(revision for revision, _ in came))
        for hunk in hunks(self.history, revisions, *dict.fromkeys(path for _, path in came)):
            if not hunk.path:
                trailers = repository.parse_trailers(hunk.text.rstrip("\n").rpartition("\n\n")[2])
                ops[hunk.revision] = "".join(trailers.get("Memory-Op", ()))
            for at, line in enumerate(hunk.removed, hunk.old):
                gone[hunk.revision, hunk.path][_words(line.decode("utf-8", "surrogateescape"))].append(at)
        given: dict[int, Where] = {}
        back: dict[int, Where] = {}
        anew: list[int] = []
        for (revision, path), lines in came.items():
            left: dict[int, str] = {}
            for _, n in sorted(lines.items()):
                if there := gone[revision, path].get(_words(rows[n].text)):
                    given[n] = (f"{revision}^", path, there.pop(0))
                else:
                    left[n] = rows[n].text
            op = ops.get(revision)
            stood = self._stood(revision, path, left) if left and op in GIVING_BACK else {}
            back |= stood
            anew += left.keys() - stood if op in repository.ON_BEHALF else ()
        return given, back, anew

    def _stood(self, revision: str, path: str, wanted: Mapping[int, str]) -> dict[int, Where]:
        """Where lines last stood in a file before a revision brought them back."""
        found: dict[int, Where] = {}
        left = {n: text.rstrip() for n, text in wanted.items()}
        before = self.history.run("log", "--format=%H", revision, "--", path).decode().split()[1:]
        for at in range(0, len(before), FILES_AT_ONCE):
            some = before[at : at + FILES_AT_ONCE]
            for rev, data in zip(some, self.history.read_all([(each, path) for each in some]), strict=True):
                there = _places((data or b"").decode("utf-8", "surrogateescape").split("\n"))
                here = {n: (rev, path, there[key]) for n, text in left.items() if (key := _key(text, there))}
                left = {n: text for n, text in left.items() if n not in here}
                found |= here
                if not left:
                    return found
        return found


def _each(
    places: Mapping[int, Where], ask: Callable[[str, str, Iterable[int]], Iterable[BlameLine]]
) -> Iterator[tuple[int, BlameLine]]:
    """What is said of lines where they stood earlier; each file is asked for once."""
    files: dict[tuple[str, str], dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for n, (rev, path, line) in places.items():
        files[rev, path][line].append(n)
    for (rev, path), lines in files.items():
        for row in ask(rev, path, lines):
            yield from ((n, row) for n in lines.get(row.line, ()))


def _unsure(row: BlameLine) -> bool:
    """Whether the line may be another's than the author's of the revision that git names."""
    return row.author == MACHINE[0] or row.subject.partition(": ")[0] in ("merge", *repository.ON_BEHALF)


def _places(rows: Sequence[str]) -> dict[str, int]:
    """The first line with each text, and with each text without its id."""
    bare = {_words(row): n for n, row in reversed([*enumerate(rows, 1)])}
    return bare | {row.rstrip(): n for n, row in reversed([*enumerate(rows, 1)])}


def _key(text: str, there: Mapping[str, int]) -> str:
    return next((key for key in (text, _words(text)) if key in there), "")


def _words(line: str) -> str:
    """A line without the block id at its end."""
    return _ID.sub("", line).rstrip()


def _path(row: BlameLine) -> str:
    return unquoted(row.path.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")


# -- log ---------------------------------------------------------------------------------------------------
# The log of one repository, read once per head: revisions by trailer, by path and by id.


FIRST, GROWTH = 32, 8
"""So many revisions are read first, with their paths; of older ones the paths are read as they are asked for,
each time 8 times as many: of 50,000 revisions they take 10 s, all the rest takes 1 s."""
_LOG = ("log", "-z", "--no-renames", "--diff-merges=first-parent", "--no-color")
_FIELDS = ("%H", "%P", "%ct", "%an", "%s", "%n%(trailers:only,unfold)")

Row = bytes
"""One revision as git tells of it: the fields of `_FIELDS` with NUL between them, some 200 bytes. A million
of them takes 300 MB, with paths; as `Revision` objects they would take 2 GB."""


@dataclass(slots=True)
class _LoadedLog:
    """The revisions that lead to one head, newest first. `paths` are those of the newest ones: names with
    NUL between them. `whole` says whether the first revision has been reached."""

    head: str
    rows: list[Row] = field(default_factory=list)
    paths: list[bytes] = field(default_factory=list)
    whole: bool = False

    @property
    def complete(self) -> bool:
        """Whether all revisions are here with their paths."""
        return self.whole and len(self.paths) == len(self.rows)


class RevisionLog:
    """What `git log` says of the branch that is checked out. A new head that goes on from the known one is
    read from there; after anything else the log is read anew. Threads may share it. Each method gets the
    repository and its head, an id; they raise GitFailed."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._known = _LoadedLog("")
        self._merges: dict[bytes, list[bytes]] = {}
        self._deep = 0
        """So many times paths of old revisions were asked for."""

    def newest(self, git: Process, head: str) -> Iterator[Revision]:
        """All revisions, newest first, read as they are taken."""
        with self._lock:
            known = self._at(git, head)
        n = 0
        while self._read_paths(git, known, n + 1):
            yield _revision(known.rows[n], known.paths[n].split(b"\0"))
            n += 1

    def with_trailer(self, git: Process, head: str, key: str, start: str = "") -> list[Revision]:
        """The revisions of which a trailer `key` has a value that begins with `start`, newest first. Their
        `paths` are left out: `with_paths` reads them."""
        sought = f"\n{key}: {start}".encode()
        return [_revision(row) for row in self._whole(git, head).rows if sought in row]

    def find(self, git: Process, head: str, id: str) -> Revision | None:
        """The revision with this full id, if it is among those read so far."""
        with self._lock:
            known = self._at(git, head)
            start = f"{id}\0".encode()
            found = next((n for n, row in enumerate(known.rows) if row.startswith(start)), None)
            if found is None or found >= len(known.paths):
                return None
            return _revision(known.rows[found], known.paths[found].split(b"\0"))

    def with_paths(self, git: Process, revisions: Sequence[Revision]) -> list[Revision]:
        """The same revisions with the paths that they changed."""
        if not revisions:
            return []
        names = _paths_of(git, [each.id for each in revisions])
        pairs = zip(revisions, names, strict=True)
        return [replace(each, paths=_decoded(some.split(b"\0"))) for each, some in pairs]

    def touching(
        self, git: Process, head: str, paths: Sequence[str], limit: int | None = None
    ) -> list[Revision]:
        """Revisions that changed these files or folders, newest first; `paths` are those of them. A merge is
        one of them where it has a file otherwise than each of its parents."""
        sought = [path.encode("utf-8", "surrogateescape").rstrip(b"/") for path in paths]
        found: list[Revision] = []
        with self._lock:
            known, n = self._at(git, head), 0
            while (limit is None or len(found) < limit) and self._read_paths(git, known, n + 1):
                if names := self._changed(git, known, n, sought):
                    found.append(_revision(known.rows[n], names))
                n += 1
                if n == len(known.paths) and not known.complete:
                    self._deep += 1
                    if self._deep == 1:
                        # To one question git has an answer in half the time that all older paths take.
                        some = [f"-n{limit}"] if limit else []
                        return revisions(git, *some, head, "--", *paths)
        return found

    def _changed(self, git: Process, known: _LoadedLog, n: int, sought: Sequence[bytes]) -> list[bytes]:
        """Those of the n-th revision's paths that are sought."""
        every = known.paths[n]
        if not any(path in every for path in sought):
            return []
        names = _among(every.split(b"\0"), sought)
        id, parents, _ = known.rows[n].split(b"\0", 2)
        if names and b" " in parents:
            if id not in self._merges:
                words = ("--no-walk", "--diff-merges=combined", "--name-only", id.decode())
                self._merges[id] = _read_log(git, *words)[1][0].split(b"\0")
            return names if _among(self._merges[id], sought) else []
        return names

    # -- reading -----------------------------------------------------------------------------------

    def _at(self, git: Process, head: str) -> _LoadedLog:
        """What is known of a head, with what is new since the one before it."""
        if self._known.head != head:
            self._known = _onward(git, self._known, head) or _LoadedLog(head)
        return self._known

    def _whole(self, git: Process, head: str) -> _LoadedLog:
        """All revisions, the paths of older ones aside."""
        with self._lock:
            known = self._at(git, head)
            self._begin(git, known)
            self._go_back(git, known)
            return known

    def _begin(self, git: Process, known: _LoadedLog) -> None:
        if not known.rows and not known.whole:
            known.rows, known.paths = _read_log(git, f"-n{FIRST}", "--name-only", known.head)
            known.whole = len(known.rows) < FIRST

    def _go_back(self, git: Process, known: _LoadedLog) -> None:
        if not known.whole:
            known.rows += _read_log(git, f"--skip={len(known.rows)}", known.head)[0]
            known.whole = True

    def _read_paths(self, git: Process, known: _LoadedLog, count: int) -> bool:
        """Read the paths of so many revisions; whether there are so many."""
        with self._lock:
            self._begin(git, known)
            if count > len(known.paths) and not known.complete:
                self._go_back(git, known)
                some = known.rows[len(known.paths) : max(count, len(known.paths) * GROWTH)]
                known.paths += _paths_of(git, [_id(row) for row in some])
            return count <= len(known.paths)


def _onward(git: Process, known: _LoadedLog, head: str) -> _LoadedLog | None:
    """What is known, with the revisions since; None where these do not follow on it, one after the other."""
    if not known.rows:
        return None
    try:
        rows, paths = _read_log(git, "--name-only", f"{known.head}..{head}")
    except GitFailed:  # the known head is gone, as after a purge
        return None
    ids = [_id(row) for row in rows]
    parents = [row.split(b"\0", 2)[1].decode() for row in rows]
    if not rows or parents != [*ids[1:], known.head]:
        return None
    return _LoadedLog(head, rows + known.rows, paths + known.paths, known.whole)


def revisions(git: Process, *words: str) -> list[Revision]:
    """What `git log` with these words tells, with paths. GitFailed."""
    rows, paths = _read_log(git, "--name-only", *words)
    return [_revision(row, names.split(b"\0")) for row, names in zip(rows, paths, strict=True)]


@dataclass(frozen=True, slots=True)
class CommitStamp:
    """A revision as it stands in its history; `stamp` is what no purge changes: who, when, and which of our
    operations."""

    parents: tuple[str, ...]
    stamp: str


def commit_stamps(git: Process, tip: str) -> dict[str, CommitStamp]:
    """{id: stamp} of a history, newest first."""
    shown = "%H%x00%P%x00%an%x00%ae%x00%at%x00%cn%x00%ce%x00%ct%x00%(trailers:key=Memory-Op,separator=%x00)"
    out = git.run("log", "--topo-order", f"--format={shown}", tip).decode("utf-8", "surrogateescape")
    parts = (row.split("\0", 2) for row in out.split("\n") if row)
    return {sha: CommitStamp(tuple(parents.split()), stamp) for sha, parents, stamp in parts}


def _paths_of(git: Process, ids: Sequence[str]) -> list[bytes]:
    stdin = "".join(f"{id}\n" for id in ids).encode()
    return _read_log(git, "--no-walk=unsorted", "--stdin", "--name-only", stdin=stdin)[1] if ids else []


def _read_log(git: Process, *words: str, stdin: bytes | None = None) -> tuple[list[Row], list[bytes]]:
    """The revisions that `git log` tells of, and the paths of each. NUL and a mark made for this call cannot
    stand in a message."""
    mark = secrets.token_hex(8)
    out = git.run(*_LOG, f"--format=%x00{mark}%x00{'%x00'.join(_FIELDS)}%x00", *words, stdin=stdin)
    rows: list[Row] = []
    paths: list[bytes] = []
    same: dict[bytes, bytes] = {}
    for record in out.split(f"\0{mark}\0".encode())[1:]:
        *fields, rest = record.split(b"\0", len(_FIELDS))
        names = b"\0".join(filter(None, (name.strip(b"\n") for name in rest.split(b"\0"))))
        rows.append(b"\0".join(fields))
        paths.append(same.setdefault(names, names))  # most change the file of the day
    return rows, paths


def _id(row: Row) -> str:
    return row.partition(b"\0")[0].decode()


def _among(names: Iterable[bytes], sought: Collection[bytes]) -> list[bytes]:
    """Those names that are sought, or in a folder that is."""
    return [name for name in names if any(name == p or name.startswith(p + b"/") for p in sought)]


def _revision(row: Row, names: Iterable[bytes] = ()) -> Revision:
    id, _, when, author, subject, said = row.decode("utf-8", "replace").split("\0")
    trailers = repository.parse_trailers(said)
    return Revision(id, repository.moment(when), author, subject, trailers, _decoded(names))


def _decoded(names: Iterable[bytes]) -> tuple[str, ...]:
    return tuple(name.decode("utf-8", "surrogateescape") for name in names if name)


# -- trail -------------------------------------------------------------------------------------------------
# Reading the trail, and writing it: every revision a commit, with exactly its bytes.
#
# Commits are written by `git fast-import`: it takes the bytes of a revision instead of whatever lies on
# disk at that moment, needs no index and no lock on one, asks for no identity, and is one process
# (docs/decisions/0001). Nothing here goes through the attributes of the work tree: a filter or an
# `eol=crlf` of the user's would show or store other bytes than the file has.


BEHIND = "ua-memory/index-behind"
"""In the bank's own git directory: paths whose index entries could not be brought along yet."""
NOT_YET = "not committed yet"
STALE_NS = SECONDS * 10**9
FEW_PATHS = 10
"""Files of a commit, with which it is less than a hundred objects: git keeps those loose, not in a pack."""


class History(Remotes):
    """The git directory of one bank's trail, with the bank's root as its work tree."""

    def __init__(self, git_dir: Path, root: Path, *, own: bool) -> None:
        super().__init__(git_dir, root, own=own)
        self._log, self._objects = RevisionLog(), ObjectReader()
        self.known: tuple[str, Mapping[str, str]] | None = None
        """A revision's id and all its plain files, as `blobs` returns them: not read again."""

    def close(self) -> None:
        """End the process that reads objects. What is read afterwards starts another."""
        self._objects.close()

    def go_on_from(self, other: History) -> None:
        """Take over what was read of the same repository, and the process that reads its objects."""
        if (other.git_dir, other.root, other.own) == (self.git_dir, self.root, self.own):
            self._log, self._objects, self.known = other._log, other._objects, other.known

    # -- reading -----------------------------------------------------------------------------------

    def resolve(self, revision: str) -> str:
        """The full id of a revision by any of git's names for it."""
        if self.exists and not revision.startswith("-"):
            (found,) = self.read_objects([f"{revision}^{{commit}}"])
            if found:
                return found.id
        raise NotFound("no such revision", where=revision, hint="ua-memory log")

    def blobs(self, paths: Sequence[str] = (), rev: str = "HEAD") -> dict[str, str]:
        """{path: blob id} of a revision's plain files; of all, or of those named."""
        commit = self.head() if rev == "HEAD" else rev
        if commit is None:
            return {}
        known = self.known  # another thread may set it meanwhile
        if not known or known[0] != commit:
            known = commit, self._listed(commit)
            self.known = known if is_id(commit) else self.known
        return {path: known[1][path] for path in paths or known[1] if path in known[1]}

    def _listed(self, commit: str) -> dict[str, str]:
        """All of them, in the order of git, read out of the trees, a level of folders at a time."""
        found: dict[str, str] = {}
        folders = {"": f"{commit}^{{tree}}"}
        while folders:
            trees = self.read_objects([*folders.values()])
            deeper: dict[str, str] = {}
            for folder, tree in zip(folders, trees, strict=True):
                if tree is None:  # git says what is wrong
                    return repository.plain_files(self.run("ls-tree", "-r", "-z", commit))
                for mode, name, sha in tree_entries(tree):
                    path = folder + name
                    # Links (120000) and submodules (160000) of a bank's own repository are nobody's text.
                    if mode.startswith(b"100"):
                        found[path] = sha
                    elif mode == b"40000":
                        deeper[f"{path}/"] = sha
            folders = deeper
        return {path: found[path] for path in sorted(found, key=os.fsencode)}

    def moved(self, old: str, new: str) -> dict[str, str | None]:
        """{path: blob id, None where there is no plain file now} of all in which two revisions differ."""
        there = self.differing(old, new)
        return {path: blob if mode.startswith("100") else None for path, (mode, blob) in there.items()}

    def read_objects(self, names: Sequence[str]) -> list[GitObject | None]:
        """What git has under each of these names: an id, `REVISION:PATH`, `REVISION^{commit}`. None where
        there is nothing. GitFailed where an object is damaged."""
        lines = [self._line_of(name) for name in names]
        try:
            return self._objects.read(self, lines)
        except BatchEnded:  # git says why when it is asked anew
            stdin = "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")
            out = BytesIO(self.run("cat-file", "--batch", stdin=stdin))
            try:
                return list(answers(out, len(lines)))
            except ValueError as error:
                raise GitFailed(str(error), where=str(self.git_dir), hint="ua-memory verify") from error

    def _line_of(self, name: str) -> str:
        """The name as one line that git can be sent; NOBODY where there cannot be such a name."""
        try:
            os.fsencode(name)
        except UnicodeEncodeError:  # a lone surrogate that stands for no byte
            return NOBODY
        if "\n" not in name:
            return name
        out = self.run("rev-parse", "--verify", "--quiet", name, ok=(0, 1, 128))
        return out.decode().strip() or NOBODY

    def read(self, rev: str, path: str) -> bytes | None:
        """A file's bytes as a revision has them, or None."""
        if rev == "HEAD" and self.head() is None:
            return None
        return self.read_all([(rev, path)])[0]

    def read_all(self, wanted: Sequence[tuple[str, str]]) -> list[bytes | None]:
        """The bytes of (revision, path) each, or of (blob id, ""), None where there are none. GitFailed where
        an object is damaged."""
        at = {"HEAD": self.head() or "HEAD"} if any(rev == "HEAD" for rev, _ in wanted) else {}
        found = self.read_objects([f"{at.get(rev, rev)}:{path}" if path else rev for rev, path in wanted])
        return [each.data if each and each.kind == "blob" else None for each in found]

    def blob(self, name: str) -> bytes:
        """The content git keeps under a blob id. GitFailed where there is none."""
        (found,) = self.read_objects([name])
        return found.data if found and found.kind == "blob" else self.run("cat-file", "blob", name)

    def contents(self, names: Iterable[str]) -> dict[str, bytes]:
        """{blob id: what git keeps under it}, asked for together: of ten years of logs one by one took 13 s.
        GitFailed where something is missing."""
        wanted = list(dict.fromkeys(names))
        found = zip(wanted, self.read_objects(wanted) if wanted else (), strict=True)
        return {name: each.data if each and each.kind == "blob" else self.blob(name) for name, each in found}

    def has_committed(self, path: str, data: bytes) -> bool:
        """Whether any commit of any branch, also one that was left, has this content of a file."""
        if self.read_objects([blob := blob_id(data)]) == [None]:
            return False
        words = ("--all", "--reflog", "-m", "--full-history", "-n1", "--format=%H")
        return bool(self.run("log", *words, f"--find-object={blob}", "--", path).strip())

    def log(self, paths: Sequence[str] = (), *, limit: int | None = None) -> list[Revision]:
        """Revisions of the branch, newest first: all, or those that changed these files or folders. Their
        `paths` are those of them."""
        return list(islice(self.revisions(paths, limit=limit), limit))

    def revisions(self, paths: Sequence[str] = (), *, limit: int | None = None) -> Iterator[Revision]:
        """The same, read as they are taken."""
        if (head := self.head()) is None:
            return
        with self._born():
            if paths:
                yield from self._log.touching(self, head, paths, limit)
            else:
                yield from self._log.newest(self, head)

    def with_trailer(self, key: str, start: str = "", *, rev: str = "HEAD") -> list[Revision]:
        """The revisions with a trailer `key` whose value begins with `start`, newest first. Their `paths` are
        not read; `with_paths` does."""
        if (head := self.head()) is None:
            return []
        with self._born():
            if rev == "HEAD":
                return self._log.with_trailer(self, head, key, start)
            found = revisions(self, "-F", f"--grep={key}: {start}", rev)
            return [one for one in found if any(v.startswith(start) for v in one.trailers.get(key, ()))]

    def with_paths(self, done: Sequence[Revision]) -> list[Revision]:
        """Revisions with the paths that they changed."""
        return self._log.with_paths(self, done)

    def taken_back(self) -> set[str]:
        """The ids of the revisions that an undo took back: those of undos where a redo did, too."""
        gone: set[str] = set()
        for done in self.with_trailer("Undoes"):
            # A redo takes back the undo, and what that had taken back counts again.
            if done.id not in gone:
                gone |= {*done.trailers.get("Undoes", ())}
        return gone

    def mentioning(self, block: str, paths: Sequence[str] = ()) -> set[str]:
        """The ids of the revisions that added or removed a line with the block id `^block`."""
        words = ("--format=%H", "--no-textconv", "-G", f"\\^{block}([^A-Za-z0-9-]|$)", "--", *paths)
        return set(self.run("log", *words).decode().split()) if self.head() else set()

    @contextlib.contextmanager
    def _born(self) -> Iterator[None]:
        """A branch that is gone says more of what is wrong than git does."""
        try:
            yield
        except GitFailed:
            self.require_born()
            raise

    def show(self, revision: str) -> Revision:
        """One revision. NotFound if there is none."""
        sha = self.resolve(revision)
        head = self.head()
        known = self._log.find(self, head, sha) if head else None
        return known or revisions(self, "-n1", sha)[0]

    def diff(self, old: str | None, new: str | None, paths: Sequence[str] = (), *, context: int = 3) -> str:
        """A unified diff between two revisions; None is the empty tree as `old`, the disk as `new`."""
        if new is None:
            return "".join(
                self._diff_to_disk(old, path, context) for path in paths or self.blobs(rev=old or "HEAD")
            )
        first = old or self.run("hash-object", "-t", "tree", "--stdin", stdin=b"").decode().strip()
        words = ("diff", *_AS_TEXT, f"-U{context}", first, new)
        return self.run(*words, "--", *paths).decode("utf-8", "replace")

    def _diff_to_disk(self, old: str | None, path: str, context: int) -> str:
        file = self.root / path
        now = file.read_bytes() if file.is_file() and not file.is_symlink() else None
        shown = difference(path, self.read(old, path) if old else None, now, context)
        return f"diff --git a/{path} b/{path}\n{shown}" if shown else ""

    def blame(
        self, path: str, contents: bytes, *, lines: tuple[int, int] | None = None, rev: str = "HEAD"
    ) -> list[BlameLine]:  # fmt: skip
        """Who wrote each line of `contents`, the file's present bytes (`authors`); NOBODY where no one has
        yet."""
        there = self.read_all([(rev, path)]) if self.exists else [None]
        known = LineAuthors(self).written(rev, path) if there != [None] else []
        rows = contents.decode("utf-8", "surrogateescape").split("\n")
        rows = rows if rows[-1] else rows[:-1]
        epoch = datetime.fromtimestamp(0, UTC)
        found = [BlameLine(n, NOBODY, NOT_YET, epoch, "", row) for n, row in enumerate(rows, 1)]
        matcher = SequenceMatcher(None, [k.text for k in known], rows, autojunk=False)
        for i, j, size in matcher.get_matching_blocks():
            for n in range(size):
                found[j + n] = replace(known[i + n], line=j + n + 1)
        chosen = found[lines[0] - 1 : lines[1]] if lines else found
        shown = (b.text.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for b in chosen)
        return [replace(b, text=text) for b, text in zip(chosen, shown, strict=True)]

    # -- writing -----------------------------------------------------------------------------------

    def target(self, branch: str) -> str:
        """The ref that revisions made for a branch go to: the branch, whatever HEAD names now; `HEAD` where
        it has no commit, or the trail is not the bank's own repository."""
        return branch if self.own and branch and self.tip(branch) else "HEAD"

    def is_away(self, branch: str) -> bool:
        """Whether HEAD names another branch than this one, which is there still."""
        return self.target(branch) not in ("HEAD", branch_of(self))

    def tip(self, ref: str) -> str | None:
        """The newest revision of a branch or of HEAD; None where there is none."""
        if ref == "HEAD":
            return self.head()
        found = self.stored(ref)
        if (found and is_id(found)) or (not found and ref.startswith("refs/") and not self.reftable):
            return found or None
        (commit,) = self.read_objects([f"{ref}^{{commit}}"])
        return commit.id if commit else None

    def commit(self, commits: Sequence[Commit], target: str = "HEAD", parent: str | None = None) -> list[str]:
        """Write commits durably (`core.fsync=all`) on top of `parent`, by default the target's tip; their
        ids. The target is a branch, or HEAD for the one that it names.

        GitFailed also where the branch moved meanwhile: nothing is committed then.
        """
        here = self.ref()
        ref = here if target == "HEAD" else target
        self._clear_locks(ref)
        if ref == here and (joined := self.joined(commits)):
            return joined
        stream = repository.fast_import(ref, commits, parent or self.tip(ref))
        try:
            env = PLAIN_PACK if sum(len(c.files) for c in commits) <= FEW_PATHS else {}
            out = self.run("fast-import", "--quiet", "--done", "--date-format=raw", stdin=stream, env=env)
        except GitFailed:
            for report in self.git_dir.glob("fast_import_crash_*"):
                report.unlink(missing_ok=True)
            raise
        if not self.own or ref == branch_of(self):  # else the index is another branch's
            final = {path: data for c in commits for path, data in c.files.items()}
            self._follow({path: None if data is None else blob_id(data) for path, data in final.items()})
        return out.decode().split()

    def not_loose(self, contents: Iterable[bytes | None]) -> tuple[bytes, ...]:
        """Those that are no loose object. In a commit's stream they come to nothing where a pack has them;
        where none has, the trail lacks them, and the files hold them for the last time."""
        objects = self.shared / "objects"
        named = {blob_id(data): data for data in contents if data is not None}
        return tuple(data for name, data in named.items() if not (objects / name[:2] / name[2:]).exists())

    def _clear_locks(self, ref: str) -> None:
        """Remove ref locks that a killed git left: nothing but us writes a trail kept beside, and in a bank
        of its own no git holds one for ten seconds. GitFailed names one that may be alive."""
        for lock in (self.git_dir / "HEAD.lock", self.shared / f"{ref}.lock"):
            if not lock.exists():
                continue
            try:
                if self.own and filesystem_now(self.git_dir) - lock.stat().st_mtime_ns < STALE_NS:
                    raise GitFailed(
                        "git is running there", where=str(lock), hint=f"try again; else rm {lock}"
                    )
                lock.unlink(missing_ok=True)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise GitFailed(f"{error.strerror}: {lock}", hint=f"rm {lock}") from error

    def joined(self, commits: Sequence[Commit]) -> list[str] | None:
        """Go on to another history, if the one commit to be made adds nothing to it; else None."""
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
        """Bring the index along for these paths and those that an earlier commit could not."""
        there = self.blobs(paths) if self.own and paths else {}
        self._follow({path: there.get(path) for path in paths})

    def _follow(self, ids: dict[str, str | None]) -> None:
        """Set index entries of the bank's own repository, so that `git status` shows what a person did.

        Where the index is locked nothing fails: the commit stands, and the paths wait for the next call.
        """
        if not self.own:
            return
        late = [path for path in self.behind() if path not in ids]
        try:
            there = self.blobs(late) if late else {}
            ids |= {path: there.get(path) for path in late}
            if ids and not set_entries(self.git_dir / "index", ids):
                rows = (
                    f"100644 {name}\t{path}" if name else f"0 {NOBODY}\t{path}" for path, name in ids.items()
                )
                stdin = "".join(f"{row}\0" for row in rows).encode("utf-8", "surrogateescape")
                self.run("update-index", "-z", "--index-info", stdin=stdin, env=NO_FSYNC)
            self._note_behind([])
        except GitFailed:
            self._note_behind(sorted(ids))

    def behind(self) -> list[str]:
        """Paths whose index entries lag behind the last commit, as a locked index has left them."""
        try:
            raw = (self.git_dir / BEHIND).read_bytes()
        except OSError:
            return []
        return [path for path in raw.decode("utf-8", "surrogateescape").split("\0") if path]

    def _note_behind(self, paths: Sequence[str]) -> None:
        note = self.git_dir / BEHIND
        with contextlib.suppress(OSError):  # only about how `git status` looks
            if paths:
                note.touch(mode=0o600)
                note.write_bytes("\0".join(paths).encode("utf-8", "surrogateescape"))
            else:
                note.unlink(missing_ok=True)

    def repack(self, *, full: bool = False) -> None:
        """Fold loose objects into packs, geometrically, so that the work stays in step with what was added.

        Nothing is dropped: in a bank of its own, what no branch leads to may be somebody's stash.
        """
        how = ["-a", "-k", "-f", "--depth=200", "--window=50"] if full else ["--geometric=2"]
        self.run("repack", "-d", "-q", "-l", *how)

    def outgrown(self) -> bool:
        """Whether loose objects take more than a megabyte and an eighth of what is packed: time to repack.

        All 256 folders are looked at. One of them, as git itself does, would tell little: the tree of ten
        years of logs is a single large object.
        """
        objects = self.shared / "objects"
        loose = sum(_bytes_in(objects / f"{n:02x}") for n in range(256))
        return loose > max(1 << 20, _bytes_in(objects / "pack") // 8)


def difference(path: str, old: bytes | None, new: bytes | None, context: int = 3) -> str:
    """A unified diff of a file's contents, None where there is no file."""
    names = ("/dev/null" if old is None else f"a/{path}", "/dev/null" if new is None else f"b/{path}")
    one, other = (
        [line.decode("utf-8", "replace") for line in BytesIO(data or b"").readlines()] for data in (old, new)
    )
    rows = unified_diff(one, other, *names, n=context)
    return "".join(row if row.endswith("\n") else f"{row}\n\\ No newline at end of file\n" for row in rows)


def _bytes_in(folder: Path) -> int:
    total = 0
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            with contextlib.suppress(OSError):
                total += entry.stat().st_size
    return total
