"""Reading and writing the history: every revision is a commit. Also branches, blame and added lines."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from difflib import SequenceMatcher, unified_diff
from functools import cached_property
from pathlib import Path

from ua_memory.errors import GitFailed, NotFound
from ua_memory.git import repository
from ua_memory.git.process import NO_FSYNC, PLAIN_PACK, SECONDS, filesystem_now, is_there, processes
from ua_memory.git.remotes import Remotes
from ua_memory.git.repository import (
    MACHINE,
    NOBODY,
    BlameLine,
    Commit,
    Repository,
    Revision,
    blame_lines,
    blob_id,
    parse_trailers,
    plain_files,
)

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
MOST = 10
"""So many branches are looked at, the newest."""


FileState = tuple[int, int] | None
"""Inode and time of a file; None where there is none."""


@dataclass(frozen=True, slots=True)
class Moment:
    """Where a repository stands: the branch that HEAD names, if it does, and its files HEAD and index."""

    branch: str = ""
    index: FileState = None
    head: FileState = None
    """Another after each switch, also after one there and back."""


def moment(trail: Repository) -> Moment:
    """Where a bank's own repository stands now; of a trail that is kept beside, where it always does."""
    if not trail.own or not trail.exists:
        return Moment()
    head = _state(trail.git_dir / "HEAD")  # first: who reads a newer name finds another state, too
    return Moment(branch_of(trail), _state(trail.git_dir / "index"), head)


def _state(file: Path) -> FileState:
    with contextlib.suppress(OSError):
        stat = file.stat()
        return stat.st_ino, stat.st_mtime_ns
    return None


def branch_of(trail: Repository) -> str:
    """The branch that HEAD names, whether it is born or not; '' where it names none."""
    with contextlib.suppress(OSError, ValueError):
        if not (trail.shared / "reftable").is_dir():
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
    places = [place.resolve() for place in (trail.git_dir, trail.shared, trail.root)]
    if any(
        not MOVERS.isdisjoint(words) and is_there(process, words, places) is not False
        for process, words in processes()
    ):
        return True
    with contextlib.suppress(OSError):
        return filesystem_now(trail.git_dir) - (trail.git_dir / "index.lock").stat().st_mtime_ns < YOUNG_NS
    return False


def settled(trail: Repository, seconds: float) -> bool:
    """Wait until no git writes files, for so long at most; whether it is so."""
    until = time.monotonic() + seconds
    while is_moving(trail):
        if time.monotonic() > until:
            return False
        time.sleep(PAUSE)
    return True


@dataclass
class Others:
    """The branches besides the one that HEAD names."""

    trail: Repository
    here: str
    _trees: dict[str, Mapping[str, str]] = field(default_factory=dict)

    @cached_property
    def tips(self) -> Sequence[tuple[str, str]]:
        """(name, commit) of each, the newest first. Where there is but one branch, git is not asked."""
        if not self.trail.own or not _several(self.trail.shared):
            return ()
        words = [
            "for-each-ref",
            f"--count={MOST}",
            "--sort=-committerdate",
            "--format=%(refname) %(objectname)",
        ]
        rows = self.trail.run(*words, "refs/heads", "refs/remotes").decode("utf-8", "replace").splitlines()
        named = [(name, commit) for name, _, commit in (row.partition(" ") for row in rows)]
        return [(name, commit) for name, commit in named if name != self.here]

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
            self._trees[commit] = plain_files(self.trail.run("ls-tree", "-r", "-z", commit))
        return self._trees[commit]

    def _is_apart(self, commit: str) -> bool:
        head = self.trail.head()
        return not head or bool(self.trail.run("rev-list", "-n1", commit, f"^{head}").strip())

    def _staged(self, path: str) -> str | None:
        with contextlib.suppress(GitFailed):
            row = self.trail.run("ls-files", "-s", "-z", "--", path).decode("utf-8", "surrogateescape")
            return row.split()[1] if row.strip("\0") else None
        return ""


def _several(shared: Path) -> bool:
    """Whether there is more than one branch, the remotes' among them."""
    loose = (file for kind in ("heads", "remotes") for file in (shared / "refs" / kind).rglob("*"))
    names = {file.relative_to(shared).as_posix() for file in loose if file.is_file()}
    with contextlib.suppress(OSError):
        rows = (shared / "packed-refs").read_text("utf-8", "replace").splitlines()
        names |= {row.split()[1] for row in rows if " refs/heads/" in row or " refs/remotes/" in row}
    return len(names) > 1 or (shared / "reftable").is_dir()


# -- additions ---------------------------------------------------------------------------------------------
# Every line that ever came into the trail or left it: what each revision changed, and said of itself.


AT_ONCE = 400
"""Revisions that are read by one git process: its output is held as a whole."""
_COMMIT = b"commit "
_HUNK = re.compile(rb"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_ESCAPED = re.compile(rb"\\([0-7]{3}|.)")


@dataclass(frozen=True, slots=True)
class Addition:
    """Lines that a revision added in a row, from `line` on, in the file `path`; '' is its message."""

    revision: str
    path: str
    line: int
    text: str


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


def additions(history: Repository, *paths: str, only: Sequence[str] | None = None) -> Iterator[Addition]:
    """What came in, oldest first, through every branch, tag and stash there is; of these paths, or of all.
    With `only` what these revisions brought, in their order."""
    if not history.exists:
        return
    asked = ["rev-list", "--reverse", "--all", "--full-history", "--", *paths]
    listed = only if only is not None else history.run(*asked).decode().split()
    for hunk in hunks(history, listed, *paths):
        if hunk.added:
            text = b"\n".join(hunk.added).decode("utf-8", "replace")
            yield Addition(hunk.revision, hunk.path, hunk.new, text)


def hunks(history: Repository, revisions: Sequence[str], *paths: str) -> Iterator[Hunk]:
    """What these revisions changed, in their order, in these paths or in all."""
    for at in range(0, len(revisions), AT_ONCE):
        some = revisions[at : at + AT_ONCE]
        stdin = "".join(f"{each}\n" for each in some).encode()
        shown = ["--no-walk=unsorted", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames"]
        shown += ["--format=commit %H%n%w(0,1,1)%B", "-p", "-U0", "--text", "--diff-merges=first-parent"]
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
# git's own `blame` names these, so it is asked again where they found the line.


GIVING_BACK = frozenset({"merge", "redo", "restore", "sync", "undo"})
"""The `Memory-Op` of revisions of ours that bring back lines which an earlier revision of the file had."""
FILES_AT_ONCE = 20
FEW_LINES = 100
"""So many lines are named to git; of more, all are asked for."""
_ID = re.compile(r"(?:^|\s+)\^[A-Za-z0-9-]+\s*$")

Where = tuple[str, str, int]
"""A revision, a file of it and a line of that, counted from 1."""


@dataclass(frozen=True, slots=True)
class Authors:
    """Asks the trail who wrote what. `read` gives the bytes of (revision, path) each."""

    history: Repository
    read: Callable[[Sequence[tuple[str, str]]], list[bytes | None]]

    def written(self, rev: str, path: str, lines: Iterable[int] = ()) -> list[BlameLine]:
        """Who wrote each line of a file as a revision has it, or at least these lines of it."""
        found = {row.line: row for row in self._blame(rev, path, lines)}
        unsure = [n for n, row in found.items() if _unsure(row) and row.text.strip()]
        ignored: set[str] = set()
        while unsure:
            given, back = self._earlier({n: found[n] for n in unsure})
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
        return list(blame_lines(out.decode("utf-8", "surrogateescape")))

    def _again(
        self, rev: str, path: str, given: Mapping[int, tuple[str, Where]], ignored: Iterable[str]
    ) -> Iterator[tuple[int, BlameLine]]:
        """What git says of lines that were given an id when it ignores who gave it. It guesses what they were
        before: where that has other words, it is asked where they really stood."""
        asked = self._blame(rev, path, given, ignored) if given else []
        rows = {row.line: row for row in asked if row.line in given}
        places = [(row.revision, _path(row)) for row in rows.values()]
        files = dict(zip(places, self.read(places), strict=True)) if places else {}
        wrong: dict[int, Where] = {}
        for n, row in rows.items():
            text, where = given[n]
            there = (files[row.revision, _path(row)] or b"").decode("utf-8", "surrogateescape").split("\n")
            if row.revision not in ignored and _words(there[row.was - 1]) == _words(text):
                yield n, row
            else:
                wrong[n] = where
        yield from _each(wrong, lambda *file: self._blame(*file))

    def _earlier(self, rows: Mapping[int, BlameLine]) -> tuple[dict[int, Where], dict[int, Where]]:
        """Where lines stood before that the revision which git names has not written: in the one before it,
        otherwise only in an id; and in an older one, since they were brought back."""
        gone: dict[tuple[str, str], dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        came: dict[tuple[str, str], dict[int, int]] = defaultdict(dict)
        ops: dict[str, str] = {}
        for n, row in rows.items():
            came[row.revision, _path(row)][row.was] = n
        revisions = list(dict.fromkeys(revision for revision, _ in came))
        for hunk in hunks(self.history, revisions, *dict.fromkeys(path for _, path in came)):
            if not hunk.path:
                said = b"\n".join(hunk.added).decode("utf-8", "replace").rstrip("\n")
                ops[hunk.revision] = "".join(parse_trailers(said.rpartition("\n\n")[2]).get("Memory-Op", ()))
            for at, line in enumerate(hunk.removed, hunk.old):
                gone[hunk.revision, hunk.path][_words(line.decode("utf-8", "surrogateescape"))].append(at)
        given: dict[int, Where] = {}
        back: dict[int, Where] = {}
        for (revision, path), lines in came.items():
            left: dict[int, str] = {}
            for _, n in sorted(lines.items()):
                if there := gone[revision, path].get(_words(rows[n].text)):
                    given[n] = (f"{revision}^", path, there.pop(0))
                else:
                    left[n] = rows[n].text
            if left and ops.get(revision) in GIVING_BACK:
                back |= self._stood(revision, path, left)
        return given, back

    def _stood(self, revision: str, path: str, wanted: Mapping[int, str]) -> dict[int, Where]:
        """Where lines last stood in a file before a revision brought them back."""
        found: dict[int, Where] = {}
        left = {n: text.rstrip() for n, text in wanted.items()}
        before = self.history.run("log", "--format=%H", revision, "--", path).decode().split()[1:]
        for at in range(0, len(before), FILES_AT_ONCE):
            some = before[at : at + FILES_AT_ONCE]
            for rev, data in zip(some, self.read([(each, path) for each in some]), strict=True):
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
    return row.author == MACHINE[0] or row.subject.startswith("merge: ")


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
_OBJECT = re.compile("[0-9a-f]{40}([0-9a-f]{24})?")
FEW_PATHS = 10
"""Files of a commit, with which it is less than a hundred objects: git keeps those loose, not in a pack."""


class History(Remotes):
    """The git directory of one bank's trail, with the bank's root as its work tree."""

    known: tuple[str, Mapping[str, str]] | None = None
    """A revision's id and all its plain files, as `blobs` has them, where they need not be asked for."""

    # -- reading -----------------------------------------------------------------------------------

    def resolve(self, revision: str) -> str:
        """The full id of a revision by any of git's names for it."""
        if not self.exists or revision.startswith("-"):
            raise NotFound("no such revision", where=revision, mend="ua-memory log")
        found = self.run("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}", ok=(0, 1))
        if not found:
            raise NotFound("no such revision", where=revision, mend="ua-memory log")
        return found.decode().strip()

    def blobs(self, paths: Sequence[str] = (), rev: str = "HEAD") -> dict[str, str]:
        """{path: blob id} of a revision's plain files; of all, or of those named."""
        head = self.head() if rev == "HEAD" else rev
        if head is None:
            return {}
        known = self.known  # another thread may look meanwhile
        if known and known[0] == head:
            every = known[1]
            return {path: every[path] for path in paths or every if path in every}
        return repository.plain_files(self.run("ls-tree", "-r", "-z", rev, "--", *paths))

    def moved(self, old: str, new: str) -> dict[str, str | None]:
        """{path: blob id, None where there is no plain file now} of all in which two revisions differ."""
        words = self.run("diff-tree", "-r", "-z", "--no-renames", old, new).split(b"\0")
        return {
            os.fsdecode(path): meta.split()[3].decode() if meta.split()[1].startswith(b"100") else None
            for meta, path in zip(words[::2], words[1::2], strict=False)
        }

    def read(self, rev: str, path: str) -> bytes | None:
        """A file's bytes as a revision has them, or None."""
        if rev == "HEAD" and self.head() is None:
            return None
        return self.read_all([(rev, path)])[0]

    def read_all(self, wanted: Sequence[tuple[str, str]]) -> list[bytes | None]:
        """The bytes of (revision, path) each, or of (blob id, ""), None where there are none; one process.
        GitFailed where it ends before it has told of all."""
        asked = "".join(f"{rev}:{path}\n" if path else f"{rev}\n" for rev, path in wanted).encode(
            "utf-8", "surrogateescape"
        )
        out, at, found = self.run("cat-file", "--batch", stdin=asked), 0, list[bytes | None]()
        for _ in wanted:
            end = out.find(b"\n", at)
            words = out[at:end].split(b" ")
            there = len(words) == 3 and words[2].isdigit()
            last = end + 1 + int(words[2]) if there else end
            if out[last : last + 1] != b"\n":
                raise GitFailed("git's answer breaks off", where=str(self.git_dir), mend="ua-memory verify")
            found.append(out[end + 1 : last] if there and words[1] == b"blob" else None)
            at = last + 1
        return found

    def blob(self, name: str) -> bytes:
        """The content git keeps under a blob id."""
        return self.run("cat-file", "blob", name)

    def log(
        self,
        paths: Sequence[str] = (),
        *,
        limit: int | None = None,
        grep: Sequence[str] = (),
        rev: str = "HEAD",
    ) -> list[Revision]:
        """Revisions, newest first: those that touched the paths and have all fixed strings of `grep`."""
        if self.head() is None:
            return []
        mark = secrets.token_hex(8)
        words = ["log", "-z", "--name-only", "--no-renames", "--diff-merges=first-parent", "--no-color"]
        words += [f"--format={repository.log_format(mark)}"]
        words += [f"-n{limit}"] if limit else []
        words += ["-F", "--all-match", *(f"--grep={text}" for text in grep)] if grep else []
        try:
            return list(repository.revisions(self.run(*words, rev, "--", *paths), mark))
        except GitFailed:
            self.require_born()  # says more than git does
            raise

    def taken_back(self) -> set[str]:
        """The ids of the revisions that an undo took back: those of undos where a redo did, too."""
        gone: set[str] = set()
        for done in self.log(grep=["Undoes: "]):
            # A redo takes back the undo, and what that had taken back counts again.
            if done.id not in gone:
                gone |= {*done.trailers.get("Undoes", ())}
        return gone

    def show(self, revision: str) -> Revision:
        """One revision. NotFound if there is none."""
        return self.log(rev=self.resolve(revision), limit=1)[0]

    def diff(self, old: str | None, new: str | None, paths: Sequence[str] = (), *, context: int = 3) -> str:
        """A unified diff between two revisions; None is the empty tree as `old`, the disk as `new`."""
        if new is None:
            return "".join(
                self._diff_to_disk(old, path, context) for path in paths or self.blobs(rev=old or "HEAD")
            )
        first = old or self.run("hash-object", "-t", "tree", "--stdin", stdin=b"").decode().strip()
        words = [
            "diff",
            "--no-color",
            "--no-ext-diff",
            "--no-textconv",
            "--no-renames",
            "--text",
            f"-U{context}",
        ]
        return self.run(*words, first, new, "--", *paths).decode("utf-8", "replace")

    def _diff_to_disk(self, old: str | None, path: str, context: int) -> str:
        file = self.root / path
        now = file.read_bytes() if file.is_file() and not file.is_symlink() else None
        then = self.read(old, path) if old else None
        names = ("/dev/null" if then is None else f"a/{path}", "/dev/null" if now is None else f"b/{path}")
        sides = ((data or b"").decode("utf-8", "replace").split("\n") for data in (then, now))
        one, other = (
            [*(f"{line}\n" for line in lines[:-1]), *(lines[-1:] if lines[-1] else [])] for lines in sides
        )
        rows = list(unified_diff(one, other, *names, n=context))
        shown = [row if row.endswith("\n") else f"{row}\n\\ No newline at end of file\n" for row in rows]
        return "".join([f"diff --git a/{path} b/{path}\n", *shown]) if shown else ""

    def blame(
        self, path: str, contents: bytes, *, lines: tuple[int, int] | None = None, rev: str = "HEAD"
    ) -> list[BlameLine]:  # fmt: skip
        """Who wrote each line of `contents`, the file's present bytes (`authors`); NOBODY where no one has
        yet."""
        known = Authors(self, self.read_all).written(rev, path) if self.blobs([path], rev) else []
        rows = contents.decode("utf-8", "surrogateescape").split("\n")
        rows = rows if rows[-1] else rows[:-1]
        epoch = datetime.fromtimestamp(0, UTC)
        found = [BlameLine(n, NOBODY, NOT_YET, epoch, "", row) for n, row in enumerate(rows, 1)]
        for i, j, size in SequenceMatcher(
            None, [k.text for k in known], rows, autojunk=False
        ).get_matching_blocks():
            for n in range(size):
                found[j + n] = replace(known[i + n], line=j + n + 1)
        chosen = found[lines[0] - 1 : lines[1]] if lines else found
        return [
            replace(b, text=b.text.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))
            for b in chosen
        ]

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
        found = self.stored(ref) or ""
        if _OBJECT.fullmatch(found):
            return found
        words = ("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")
        return self.run(*words, ok=(0, 1, 128)).decode().strip() or None

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
                        "git is at work there", where=str(lock), mend=f"try again; else rm {lock}"
                    )
                lock.unlink(missing_ok=True)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise GitFailed(f"{error.strerror}: {lock}", mend=f"rm {lock}") from error

    def mend_index(self, paths: Sequence[str] = ()) -> None:
        """Bring the index along for these paths and those that an earlier commit could not."""
        if self.own and (late := {*paths, *self.behind()}):
            there = self.blobs(sorted(late))
            self._follow({path: there.get(path) for path in late})

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
            rows = [f"100644 {name}\t{path}" if name else f"0 {NOBODY}\t{path}" for path, name in ids.items()]
            if rows:
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


def _bytes_in(folder: Path) -> int:
    total = 0
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            with contextlib.suppress(OSError):
                total += entry.stat().st_size
    return total
