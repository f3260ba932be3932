"""The git directory as a place: made, checked, its lost branches and missing objects restored."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path

from ua_memory.discovery import CORE_NAMES, LOGS, SETTINGS
from ua_memory.errors import GitFailed, writing
from ua_memory.git.process import OBJECT_ID, Process, text
from ua_memory.paths import is_truth, make_private

# -- revisions ---------------------------------------------------------------------------------------------
# What goes into the trail and what is read out of it, as values; and git's notations for them.


MACHINE = ("ua-memory", "ua-memory@localhost")
SOMEBODY = ("person", "person@localhost")
"""The author of hand edits where git knows no name for the person."""
ON_BEHALF = ("forget", "redo", "restore", "undo")
"""The `Memory-Op` of revisions whose author is who asked for them, and who has not written their lines."""
NOBODY = "0" * 40
"""The revision of a line that none has yet."""
EPOCH, LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 12, 30, tzinfo=UTC)
"""Between these a commit's time is. git knows none before 1970 (it calls one an overflow, and says nothing of
when it was); and a time that is shown in a zone of its own must not leave the calendar."""
WIDEST = 1400
"""git's widest offset of a zone, as the number that it writes."""


def moment(seconds: str) -> datetime:
    """A commit's time as git says it; the first there can be where it says none."""
    try:
        return min(max(datetime.fromtimestamp(int(seconds), UTC), EPOCH), LATEST)
    except (ValueError, OverflowError, OSError):
        return LATEST if seconds.isdigit() and len(seconds) < 16 else EPOCH


def _stamp(when: datetime) -> str:
    """A time as git takes it."""
    offset = when.strftime("%z")[:5] or "+0000"
    if abs(int(offset)) > WIDEST or when < EPOCH + timedelta(days=1):  # nor is it to be before 1970 there
        offset = "+0000"
    return f"{int(min(max(when, EPOCH), LATEST).timestamp())} {offset}"


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit to be written: whole files by bank-relative path, None for a file that goes."""

    author: tuple[str, str]
    when: datetime
    message: str
    files: Mapping[str, bytes | None]
    blobs: tuple[bytes, ...] = ()
    """Contents to be kept for a while though no file of the commit has them."""
    joins: str = ""
    """Another history that this commit brings in. Where it adds nothing to that one, that one it is."""


@dataclass(frozen=True, slots=True)
class Revision:
    """One commit of the trail as it is read back. `author` is a name; `paths` are those it changed."""

    id: str
    when: datetime
    author: str
    subject: str
    trailers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    paths: tuple[str, ...] = ()

    def trailer(self, name: str) -> str:
        """The trailer's first value, or an empty string."""
        return (self.trailers.get(name) or ("",))[0]


@dataclass(frozen=True, slots=True)
class BlameLine:
    """A line of a file with the revision that its words are from; `revision` is all zeros where none has it.
    There it was line `was` of the file `path`."""

    line: int
    revision: str
    author: str
    when: datetime
    subject: str
    text: str
    path: str = ""
    was: int = 0


def blob_id(data: bytes) -> str:
    """git's name for a file's content."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def is_id(name: str) -> bool:
    """Whether this is the full id of an object, and no other name for it."""
    return bool(OBJECT_ID.fullmatch(name))


def plain_files(out: bytes) -> dict[str, str]:
    """{path: blob id} of what `ls-tree -r -z` lists."""
    rows = (entry.split("\t", 1) for entry in out.decode("utf-8", "surrogateescape").split("\0") if entry)
    # Links (120000) and submodules (160000) of a bank's own repository are nobody's text.
    return {path: meta.split()[2] for meta, path in rows if meta.startswith("100")}


def plain(text: str) -> str:
    """A name or address without what would end it in a commit's header."""
    return "".join(c for c in text.strip() if c not in "<>\n\0")


def fast_import(ref: str, commits: Sequence[Commit], parent: str | None) -> bytes:
    """The stream that writes commits on top of each other and prints their ids."""
    blobs = [b"blob\ndata %d\n%b\n" % (len(blob), blob) for commit in commits for blob in commit.blobs]
    parts = [_commit(ref, n, c, parent if n == 1 else None) for n, c in enumerate(commits, 1)]
    asked = [b"get-mark :%d\n" % n for n in range(1, len(commits) + 1)]
    return b"".join([*blobs, *parts, *asked, b"done\n"])


def _commit(ref: str, mark: int, commit: Commit, parent: str | None) -> bytes:
    stamp = _stamp(commit.when)
    name, address = (plain(part) for part in commit.author)
    head = [f"commit {ref}", f"mark :{mark}", f"author {name} <{address}> {stamp}"]
    head += [f"committer {MACHINE[0]} <{MACHINE[1]}> {stamp}"]
    message = commit.message.replace("\0", "").encode("utf-8", "replace")
    out = ["\n".join(head).encode("utf-8", "replace") + b"\ndata %d\n%b\n" % (len(message), message)]
    if parent:
        out.append(f"from {parent}\n".encode())
    if commit.joins:
        out.append(f"merge {commit.joins}\n".encode())
    for path, data in commit.files.items():
        raw = path.encode("utf-8", "surrogateescape").replace(b"\\", b"\\\\")
        name_ = b'"' + raw.replace(b'"', b'\\"').replace(b"\n", b"\\n") + b'"'
        out.append(
            b"D %b\n" % name_
            if data is None
            else b"M 100644 inline %b\ndata %d\n%b\n" % (name_, len(data), data)
        )
    return b"".join(out)


def parse_trailers(text: str) -> dict[str, tuple[str, ...]]:
    """`Key: value` lines as a mapping; a key that stands several times has several values."""
    found: dict[str, tuple[str, ...]] = {}
    for line in text.splitlines():
        key, colon, value = line.partition(": ")
        if colon:
            found[key] = (*found.get(key, ()), value)
    return found


def blame_lines(out: str) -> Iterator[BlameLine]:
    """The lines in the output of `git blame --porcelain`."""
    known: dict[str, dict[str, str]] = {}
    sha, was, number = "", 0, 0
    for row in out.split("\n"):
        if row.startswith("\t"):
            facts = known[sha]
            when = moment(facts.get("author-time", ""))
            who, path = facts.get("author", ""), facts.get("filename", "")
            yield BlameLine(number, sha, who, when, facts.get("summary", ""), row[1:], path, was)
            continue
        words = row.split(" ")
        if len(words) >= 3 and len(words[0]) == 40 and words[1].isdigit():
            sha, was, number = words[0], int(words[1]), int(words[2])
            known.setdefault(sha, {})
        elif sha and " " in row:
            key, _, value = row.partition(" ")
            known[sha][key] = value


# -- lost --------------------------------------------------------------------------------------------------
# A branch that is gone while its history is there: nothing of it is lost, and none may begin in its place.
#
# Revisions of ours that no branch leads to are sought among git's objects, where HEAD names a branch
# without one. The newest of them that the files agree with is where the branch stood.


BACK = 50
"""Revisions that are held against the files: what a sync only looked at may have come on top of the last."""
ENDS = 5
"""Revisions that nothing follows on and that are held so: an amended one is left lying by git."""
_SEEN = "%H%x00%ct%x00%P%x00%(trailers:key=Memory-Op,valueonly,separator=%x20)%x00%s%x01"


@dataclass(frozen=True, slots=True)
class LostBranch:
    """Where a branch stood. `sure` where nothing follows on it and the files are as they are there."""

    branch: str
    revision: str
    subject: str
    sure: bool

    @property
    def message(self) -> str:
        """What is wrong, in one line."""
        name = self.branch.removeprefix("refs/heads/")
        return f"the branch {name} is gone; its last revision is {self.revision[:10]} ({self.subject})"

    @property
    def hint(self) -> str:
        """The command that brings it back."""
        by_hand = f"ua-memory git update-ref {self.branch} {self.revision[:10]}"
        return "ua-memory doctor --mend" if self.sure else f"if that is the last you know of: {by_hand}"


def find_lost(trail: Process, branch: str) -> LostBranch | None:
    """The last revision of a branch that is gone; None where there never was one, or other branches have
    all of it. GitFailed."""
    if not _has_objects(trail.shared / "objects"):
        return None
    commits = trail.run("cat-file", "--batch-all-objects", "--batch-check=%(objecttype) %(objectname)")
    names = [line[7:] for line in commits.decode().splitlines() if line.startswith("commit ")]
    if not names:
        return None
    seen = ["log", "--no-walk=unsorted", "--stdin", f"--format={_SEEN}", "--no-color"]
    out = trail.run(*seen, stdin="\n".join(names).encode()).decode("utf-8", "replace")
    rows = [row.lstrip("\n").split("\0") for row in out.split("\x01") if row.strip()]
    followed = {parent for row in rows for parent in row[2].split()}
    within = set(trail.run("rev-list", "--branches").decode().split())
    known = followed | within
    ends = [row for row in rows if row[3].strip() and row[0] not in known]
    ends.sort(key=lambda row: moment(row[1]), reverse=True)
    subjects = {row[0]: row[4] for row in rows}
    here = _on_disk(trail.root)
    for end in ends[:ENDS] if here else ():
        for name in trail.run("rev-list", "--first-parent", f"-n{BACK}", end[0]).decode().split():
            if _truth(trail, name) == here:
                return LostBranch(branch, name, subjects[name], name == end[0])
    return LostBranch(branch, ends[0][0], ends[0][4], False) if ends else None


def _has_objects(objects: Path) -> bool:
    """Whether a git directory has an object, or a pack; no process is started."""
    return any(objects.glob("pack/*.pack")) or any(objects.glob("[0-9a-f][0-9a-f]/*"))


def _truth(trail: Process, revision: str) -> dict[str, str]:
    """{path: blob id} of a revision's files of memory."""
    every = plain_files(trail.run("ls-tree", "-r", "-z", revision))
    return {path: blob for path, blob in every.items() if is_truth(path)}


def _on_disk(root: Path) -> dict[str, str]:
    """The same of the disk; nothing where that cannot be read."""
    files = [*(root / name for name in (*CORE_NAMES, SETTINGS)), *(root / LOGS).rglob("*.md")]
    named = {file.relative_to(root).as_posix(): file for file in files if not file.is_symlink()}
    try:
        return {
            path: blob_id(file.read_bytes())
            for path, file in named.items()
            if is_truth(path) and file.is_file()
        }
    except OSError:
        return {}


# -- missing -----------------------------------------------------------------------------------------------
# Objects that are missing from a trail, or that came to be noise: found, and written again from what the
# files hold. A blob is its content and a tree is a listing of blobs; what a commit said stands nowhere
# else.


Listing = Mapping[str, tuple[str, str]]
"""{path: (mode, blob id)} of all files of a revision."""
_ID = r"([0-9a-f]{40})"
_NAMED = re.compile(
    rf"missing (\w+) {_ID}|(invalid) sha1 pointer {_ID}|{_ID}: object (corrupt) or missing"
    rf"|(?:mismatch, found at:|unable to unpack \w+ of) \S*?([0-9a-f]{{2}})/([0-9a-f]{{38}})"
)
ASIDE = "ua-memory-broken"
"""A folder in the git directory for files of git's that are noise."""
RECENT = 1000
"""Of so many of the newest revisions a quick look tells whether each object is there."""
DOUBTS = 6
"""Files of which it is not known how a revision had them, whose ways together are tried out."""
KINDS = {"invalid": "commit"}


def find_missing(trail: Process) -> dict[str, str]:
    """{id: kind} of every object that something leads to and that is not there, or not what it should be; the
    kind is "object" where nobody can tell. All of the history is read."""
    out, said = trail.ask("fsck", "--full", "--no-dangling", "--no-progress", ok=range(256))
    found: dict[str, str] = {}
    for row in _NAMED.finditer(f"{out.decode('utf-8', 'replace')}\n{said}"):
        one, other = filter(None, row.groups())  # a kind and an id, an id and what it is, or an id in two
        name = next((each for each in (other, one) if len(each) == 40), one + other)
        if name.strip("0") and found.get(name, "object") == "object":
            found[name] = KINDS.get(one, one if one in ("blob", "tree", "commit") else "object")
    return found


def of_head(trail: Process) -> str:
    """What is missing of the newest revisions, or of the line of revisions to them, in words; empty if
    nothing is. Fast: whether an object is what it should be is not looked at, nor are older files."""
    try:
        words = ("rev-list", "--objects", f"--max-count={RECENT}", "--missing=print", "HEAD")
        rows = trail.run(*words).decode("utf-8", "replace").splitlines()
        if sum(" " not in row for row in rows) >= RECENT:  # what has no name is a commit
            trail.run("rev-list", "--count", "HEAD")
    except GitFailed as error:
        return error.what
    gone = [row[1:] for row in rows if row.startswith("?")]
    return message(dict.fromkeys(gone, "object")) if gone else ""


def message(gone: Mapping[str, str]) -> str:
    """`2 objects are missing: tree 1a2b3c4d5e, …`."""
    first = ", ".join(f"{kind} {name[:10]}" for name, kind in list(gone.items())[:3])
    more = f" and {len(gone) - 3} more" if len(gone) > 3 else ""
    return f"{'an object is' if len(gone) == 1 else f'{len(gone)} objects are'} missing: {first}{more}"


def write_again(trail: Process, contents: Mapping[str, bytes], listings: Iterable[Listing]) -> dict[str, str]:
    """Write what is missing again, as far as these contents of blobs and listings of files have it; what is
    missing still."""
    held = {name: ("tree", data) for listing in listings for name, data in trees(listing).items()}
    held |= {name: ("blob", data) for name, data in contents.items()}
    gone = _noise_aside(trail, find_missing(trail))
    while there := [name for name in gone if name in held]:
        for name in there:
            kind, data = held.pop(name)
            with suppress(OSError):  # where it is noise git would not write it: it sees that there is a file
                (trail.shared / "objects" / name[:2] / name[2:]).unlink(missing_ok=True)
            trail.run("hash-object", "-w", "-t", kind, "--stdin", stdin=data)
        gone = _noise_aside(trail, find_missing(trail))  # below a tree that was missing nobody could look
    return gone


def _noise_aside(trail: Process, gone: dict[str, str]) -> dict[str, str]:
    """Move files away that are no objects, since git would not write one where a file is; what is missing
    then: a pack may have had it, too."""
    files = [trail.shared / "objects" / name[:2] / name[2:] for name in gone]
    if not any(file.exists() for file in files):
        return gone
    (trail.git_dir / ASIDE).mkdir(exist_ok=True)
    for file in files:
        with suppress(FileNotFoundError):
            file.replace(trail.git_dir / ASIDE / f"{file.parent.name}{file.name}")
    return find_missing(trail)


def guesses(index: Listing, disk: Listing, earlier: Listing, changed: Iterable[str]) -> Iterator[Listing]:
    """What the newest revision may have listed: git's index, or the files, where of each that was changed by
    hand, or since the revision before, it may be what it is, what it was, or not there at all."""
    yield index
    doubted = {path for path in {*disk, *earlier} if earlier and disk.get(path) != earlier.get(path)}
    order = sorted({*doubted, *changed})[:DOUBTS]
    choices = [dict.fromkeys((disk.get(path), earlier.get(path), None)) for path in order]
    for chosen in product(*choices):
        sides = dict(zip(order, chosen, strict=True))
        listing = {path: sides.get(path, entry) for path, entry in {**disk, **sides}.items()}
        yield {path: entry for path, entry in listing.items() if entry}


def trees(listing: Listing) -> dict[str, bytes]:
    """{id: content} of the trees that a listing makes, as git writes them."""
    found: dict[str, bytes] = {}

    def made(folder: Listing) -> str:
        rows: dict[str, tuple[str, str]] = {}
        inner: dict[str, dict[str, tuple[str, str]]] = {}
        for path, entry in folder.items():
            name, slash, rest = path.partition("/")
            if slash:
                inner.setdefault(name, {})[rest] = entry
            else:
                rows[name] = (entry[0], entry[1])
        rows |= {name: ("40000", made(entries)) for name, entries in inner.items()}
        order = sorted(rows.items(), key=lambda row: _raw(row[0]) + (b"/" if row[1][0] == "40000" else b""))
        data = b"".join(
            b"%b %b\0%b" % (mode.encode(), _raw(name), bytes.fromhex(of)) for name, (mode, of) in order
        )
        name = hashlib.sha1(b"tree %d\0%b" % (len(data), data), usedforsecurity=False).hexdigest()
        found[name] = data
        return name

    if listing:
        made(listing)
    return found


def _raw(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


# -- repository --------------------------------------------------------------------------------------------
# The git directory as a place: whether it is there, its making, where it stands, who the person is.


UNDER_WAY = ("MERGE_HEAD", "rebase-merge", "rebase-apply", "CHERRY_PICK_HEAD", "REVERT_HEAD")


class Repository(Process):
    """Standing and settings of one git directory."""

    _person: tuple[str, str] | None = None

    @property
    def exists(self) -> bool:
        """Whether `create` has been here and came to its end."""
        return (self.git_dir / "HEAD").is_file() and (self.shared / "objects").is_dir()

    def create(self) -> None:
        """Make the trail's git directory, or the bank's own repository. Nothing happens where it exists."""
        if self.exists:
            return
        with writing(self.git_dir, None):
            if self.own:
                self.git_dir.mkdir(parents=True, exist_ok=True)
            else:
                make_private(self.git_dir)
        where = {"GIT_OBJECT_DIRECTORY": str(self.git_dir / "objects")}
        how = ["--initial-branch=main", "--object-format=sha1", "--template="]
        # A trail in the state folder is as private as all there; git gives each of its files that mode.
        self.run("init", "--quiet", *how, *([] if self.own else ["--shared=0600"]), env=where)
        if not self.own:
            # The work tree belongs to somebody else: plain `git` there must not find a second repository.
            self.run("config", "core.worktree", str(self.root))
        # `git init` fsyncs nothing: without these, the first durable commit may be in no repository.
        for name in ("HEAD", "config", "objects", "refs/heads", "refs", "", ".."):
            _sync(self.git_dir / name)

    def ref(self) -> str:
        """The branch that revisions go to. GitFailed on a detached HEAD or in a merge or rebase."""
        head = self._head_line()
        if not head.startswith("ref: "):
            if OBJECT_ID.fullmatch(head):
                hint = f"ua-memory git switch {self._branch()}"
                raise GitFailed("HEAD is detached", where=str(self.git_dir), hint=hint)
            hint = f"echo 'ref: refs/heads/{self._branch()}' > {shlex.quote(str(self.git_dir / 'HEAD'))}"
            raise GitFailed("HEAD names no branch", where=str(self.git_dir), hint=hint)
        for mark in UNDER_WAY:
            if self.own and (self.git_dir / mark).exists():
                hint = "ua-memory git status says how to finish or abort it"
                raise GitFailed("a merge or rebase is in progress", where=str(self.git_dir), hint=hint)
        if self.reftable:
            return self.run("symbolic-ref", "HEAD").decode().strip()
        self.require_born()
        return head[5:]

    def require_born(self) -> None:
        """GitFailed where HEAD names a branch that is not there, and another one is, or its revisions are:
        the history is not to begin, it is out of sight."""
        head = self.head()
        if head and self._head_line() == f"ref: {head}":
            if lost := self.lost():
                raise GitFailed(lost.message, where=str(self.git_dir), hint=lost.hint)
            what = f"HEAD names a branch without a revision: {head.removeprefix('refs/heads/')}"
            hint = f"ua-memory git symbolic-ref HEAD refs/heads/{self._branch()}"
            raise GitFailed(what, where=str(self.git_dir), hint=hint)

    def lost(self) -> LostBranch | None:
        """Where the branch stood that HEAD names, if it is gone and its revisions are there. GitFailed."""
        head = self.head()
        if not head or self._head_line() != f"ref: {head}":
            return None
        return find_lost(self, head)

    def put_back(self) -> list[str]:
        """Put a branch that is gone back to where it stood, if the files say where that was; what to tell of
        it. What cannot be told is left as it is, and git refuses the next commit."""
        with suppress(GitFailed):
            lost = self.lost()
            if lost and lost.sure:
                self.run("update-ref", lost.branch, lost.revision, NOBODY)
                return [f"{lost.message}: put back; `ua-memory verify` checks the rest of the history"]
        return []

    def head(self) -> str | None:
        """The newest revision's id, or None in a trail without commits. No process is started for it,
        except where refs are not kept in files. What git will refuse where HEAD is noise, or out of sight."""
        if not self.exists:
            return None
        head = self._head_line()
        if not head.startswith("ref: "):
            return head or None
        name = head[5:]
        found = self.stored(name)
        if found is not None:
            return found if found and not found.startswith("ref: ") else self._asked()
        if self.reftable:
            return self._asked()
        if self.ref_names("heads"):
            return name
        with suppress(GitFailed):
            return name if find_lost(self, name) else None
        return name  # git cannot say what its objects are: nothing is to begin there

    def stored(self, ref: str) -> str | None:
        """What a ref's file or its line in `packed-refs` says, a commit's id as a rule; None where it has
        neither. No process is started."""
        with suppress(OSError):
            return (self.shared / ref).read_text().strip()
        rows = text(self.shared / "packed-refs").splitlines()
        return next((row.split()[0] for row in rows if row.endswith(f" {ref}")), None)

    def ref_names(self, *kinds: str) -> set[str]:
        """The refs of these kinds (`heads`, `remotes`) by their files alone; no process is started."""
        loose = (file for kind in kinds for file in (self.shared / "refs" / kind).rglob("*"))
        packed = (row.partition(" ")[2] for row in text(self.shared / "packed-refs").splitlines())
        wanted = tuple(f"refs/{kind}/" for kind in kinds)
        found = {file.relative_to(self.shared).as_posix() for file in loose if file.is_file()}
        return found | {name for name in packed if name.startswith(wanted)}

    def person(self) -> tuple[str, str]:
        """Whose name and address hand edits are committed under: git's own for this user, or a stand-in."""
        if self._person is None:  # asked once: a process
            try:
                ident = self.run("var", "GIT_AUTHOR_IDENT").decode("utf-8", "replace")
            except GitFailed:
                return SOMEBODY
            name, _, rest = ident.partition(" <")
            self._person = plain(name) or SOMEBODY[0], plain(rest.partition(">")[0]) or SOMEBODY[1]
        return self._person

    @property
    def reftable(self) -> bool:
        """Whether refs are kept in tables of git's, and not in files."""
        return (self.shared / "reftable").is_dir()

    def _head_line(self) -> str:
        try:
            return (self.git_dir / "HEAD").read_text().strip()
        except OSError as error:
            what = f"HEAD cannot be read: {error.strerror or error}"
            raise GitFailed(what, where=str(self.git_dir), hint="check owner and mode") from error
        except ValueError:
            return "noise"

    def _branch(self) -> str:
        """The branch that HEAD should name: main, or else the first there is."""
        names = sorted(name.removeprefix("refs/heads/") for name in self.ref_names("heads"))
        return shlex.quote(names[0] if names and "main" not in names else "main")

    def set_noise_aside(self) -> None:
        """Move the file of the branch away, if what it says is no revision: the branch is gone then, and can
        be put back."""
        head = self._head_line()
        file = self.shared / head.removeprefix("ref: ")
        with suppress(FileNotFoundError):
            if head.startswith("ref: refs/heads/") and not OBJECT_ID.fullmatch(
                file.read_bytes().decode("latin-1").strip()
            ):
                (self.git_dir / ASIDE).mkdir(exist_ok=True)
                file.replace(self.git_dir / ASIDE / file.name)

    def _asked(self) -> str | None:
        with suppress(GitFailed):
            return self.run("rev-parse", "--verify", "--quiet", "HEAD^{commit}").decode().strip() or None
        return None


def _sync(path: Path) -> None:
    with suppress(OSError):  # a file system that cannot: nothing is promised there
        fd = os.open(path, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
