"""One git directory: creating it, its HEAD and refs, restoring lost branches and missing objects."""

from __future__ import annotations

import hashlib
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
from ua_memory.git.process import OBJECT_ID, Process, read_text
from ua_memory.paths import git_around, is_memory_file, make_private, sync_path

# -- revisions ---------------------------------------------------------------------------------------------
# Commits, revisions and blame as values, and git's formats for them.


MACHINE = ("ua-memory", "ua-memory@localhost")
SOMEBODY = ("person", "person@localhost")
"""The author of hand edits if git has no name for the person."""
REQUESTED_OPS = ("forget", "redo", "restore", "undo")
"""The `Memory-Op` of revisions whose author has asked for them, but has not written their lines."""
NOBODY = "0" * 40
"""git's null id; the revision of an uncommitted line."""
EPOCH, LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 12, 30, tzinfo=UTC)
"""The limits of a commit's time. git rejects times before 1970; and a time must stay valid in every time
zone."""
WIDEST_OFFSET = 1400
"""git's widest offset of a time zone, as it writes it."""


def parse_time(seconds: str) -> datetime:
    """Parse a commit's time; `EPOCH` for an invalid one."""
    try:
        return min(max(datetime.fromtimestamp(int(seconds), UTC), EPOCH), LATEST)
    except (ValueError, OverflowError, OSError):
        return LATEST if seconds.isdigit() and len(seconds) < 16 else EPOCH


def _format_time(when: datetime) -> str:
    """A time in git's format."""
    offset = when.strftime("%z")[:5] or "+0000"
    # Nor is it to be before 1970 there.
    if abs(int(offset)) > WIDEST_OFFSET or when < EPOCH + timedelta(days=1):
        offset = "+0000"
    return f"{int(min(max(when, EPOCH), LATEST).timestamp())} {offset}"


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit to be written: {path: whole file, None to delete it}."""

    author: tuple[str, str]
    when: datetime
    message: str
    files: Mapping[str, bytes | None]
    blobs: tuple[bytes, ...] = ()
    """Contents to store that no file of the commit has."""
    joins: str = ""
    """A second parent: the tip of the history that this commit merges."""


@dataclass(frozen=True, slots=True)
class Revision:
    """One commit of the history. `author` is a name; `paths` are the changed ones."""

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
    """A line of a file with the revision that wrote its words (all zeros if uncommitted), and its `Memory-Op`
    ('' without one)."""

    line: int
    revision: str
    author: str
    when: datetime
    subject: str
    text: str
    op: str = ""


def blob_id(data: bytes) -> str:
    """The git blob id of a file's content."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def is_id(name: str) -> bool:
    """Whether a name is a full object id."""
    return bool(OBJECT_ID.fullmatch(name))


def parse_ls_tree(out: bytes, column: int = 2) -> dict[str, str]:
    """{path: blob id, or what another column has} of the regular files in the output of `ls-tree -r -z`."""
    rows = (entry.split("\t", 1) for entry in out.decode("utf-8", "surrogateescape").split("\0") if entry)
    # Without links (120000) and submodules (160000).
    return {path: meta.split()[column] for meta, path in rows if meta.startswith("100")}


def in_header(text: str) -> str:
    """A name or address without the characters that are not allowed in a commit's header."""
    return "".join(c for c in text.strip() if c not in "<>\n\0")


def fast_import_stream(ref: str, commits: Sequence[Commit], parent: str | None) -> bytes:
    """The input for `git fast-import` that writes commits on top of each other and prints their ids."""
    blobs = [b"blob\ndata %d\n%b\n" % (len(blob), blob) for commit in commits for blob in commit.blobs]
    parts = [_commit_command(ref, n, c, parent if n == 1 else None) for n, c in enumerate(commits, 1)]
    asked = [b"get-mark :%d\n" % n for n in range(1, len(commits) + 1)]
    return b"".join([*blobs, *parts, *asked, b"done\n"])


def _commit_command(ref: str, mark: int, commit: Commit, parent: str | None) -> bytes:
    stamp = _format_time(commit.when)
    name, address = (in_header(part) for part in commit.author)
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
    """Parse `Key: value` lines: {key: values}."""
    found: dict[str, tuple[str, ...]] = {}
    for line in text.splitlines():
        key, colon, value = line.partition(": ")
        if colon:
            found[key] = (*found.get(key, ()), value)
    return found


# -- lost branches -----------------------------------------------------------------------------------------
# If the ref of a branch is missing but its commits exist, no new history may begin in its place.
#
# Our unreachable commits are searched for: the newest whose files agree with the disk is the branch's last.


SEARCH_DEPTH = 50
"""So many revisions of a tip are compared with the files: fetched ones may be on top of the last."""
SEARCHED_TIPS = 5
"""So many unreachable tips are compared: git also leaves those of amended commits."""
_LOG_FORMAT = "%H%x00%ct%x00%P%x00%(trailers:key=Memory-Op,valueonly,separator=%x20)%x00%s%x01"


@dataclass(frozen=True, slots=True)
class LostBranch:
    """The last revision of a lost branch. `sure`: it has no descendants, and its files are those on disk."""

    branch: str
    revision: str
    subject: str
    sure: bool

    @property
    def message(self) -> str:
        """The error message, in one line."""
        name = self.branch.removeprefix("refs/heads/")
        return f"the branch {name} is gone; its last revision is {self.revision[:10]} ({self.subject})"

    @property
    def hint(self) -> str:
        """The command that restores it."""
        by_hand = f"ua-memory git update-ref {self.branch} {self.revision[:10]}"
        return "ua-memory doctor --mend" if self.sure else f"if that is the last you know of: {by_hand}"


def find_lost(repo: Process, branch: str) -> LostBranch | None:
    """The last revision of a branch without a ref; None if there was none, or other branches contain it.
    GitFailed."""
    if not _has_objects(repo.shared / "objects"):
        return None
    commits = repo.run("cat-file", "--batch-all-objects", "--batch-check=%(objecttype) %(objectname)")
    names = [line[7:] for line in commits.decode().splitlines() if line.startswith("commit ")]
    if not names:
        return None
    seen = ["log", "--no-walk=unsorted", "--stdin", f"--format={_LOG_FORMAT}", "--no-color"]
    out = repo.run(*seen, stdin="\n".join(names).encode()).decode("utf-8", "replace")
    rows = [row.lstrip("\n").split("\0") for row in out.split("\x01") if row.strip()]
    followed = {parent for row in rows for parent in row[2].split()}
    within = set(repo.run("rev-list", "--branches").decode().split())
    known = followed | within
    ends = [row for row in rows if row[3].strip() and row[0] not in known]
    ends.sort(key=lambda row: parse_time(row[1]), reverse=True)
    subjects = {row[0]: row[4] for row in rows}
    here = _files_on_disk(repo.root)
    for end in ends[:SEARCHED_TIPS] if here else ():
        for name in repo.run("rev-list", "--first-parent", f"-n{SEARCH_DEPTH}", end[0]).decode().split():
            if _memory_files(repo, name) == here:
                return LostBranch(branch, name, subjects[name], name == end[0])
    return LostBranch(branch, ends[0][0], ends[0][4], False) if ends else None


def _has_objects(objects: Path) -> bool:
    """Whether there are any objects, without starting a process."""
    return any(objects.glob("pack/*.pack")) or any(objects.glob("[0-9a-f][0-9a-f]/*"))


def _memory_files(repo: Process, revision: str) -> dict[str, str]:
    """{path: blob id} of a revision's memory files."""
    every = parse_ls_tree(repo.run("ls-tree", "-r", "-z", revision))
    return {path: blob for path, blob in every.items() if is_memory_file(path)}


def _files_on_disk(root: Path) -> dict[str, str]:
    """{path: blob id} of the memory files on disk; empty if one cannot be read."""
    files = [*(root / name for name in (*CORE_NAMES, SETTINGS)), *(root / LOGS).rglob("*.md")]
    named = {file.relative_to(root).as_posix(): file for file in files if not file.is_symlink()}
    try:
        return {
            path: blob_id(file.read_bytes())
            for path, file in named.items()
            if is_memory_file(path) and file.is_file()
        }
    except OSError:
        return {}


# -- missing objects ---------------------------------------------------------------------------------------
# Finding objects that are missing or damaged, and restoring blobs and trees from the files on disk. Commits
# cannot be restored.


Listing = Mapping[str, tuple[str, str]]
"""{path: (mode, blob id)} of all files of a revision."""
_ID = r"([0-9a-f]{40})"
_FSCK_PROBLEM = re.compile(
    rf"missing (\w+) {_ID}|(invalid) sha1 pointer {_ID}|{_ID}: object (corrupt) or missing"
    rf"|(?:mismatch, found at:|unable to unpack \w+ of) \S*?([0-9a-f]{{2}})/([0-9a-f]{{38}})"
)
BROKEN_FOLDER = "ua-memory-broken"
"""A folder in the git directory for damaged files of git."""
CHECKED_REVISIONS = 1000
"""A quick check covers so many of the newest revisions."""
UNCERTAIN_FILES = 6
"""For so many files, all combinations of possible contents are tried."""
FSCK_KINDS = {"invalid": "commit"}


def find_missing(repo: Process) -> dict[str, str]:
    """{id: kind} of every object that is referenced and missing or damaged; the kind is "object" if unknown.
    Reads the whole history (`git fsck`)."""
    out, said = repo.ask("fsck", "--full", "--no-dangling", "--no-progress", ok=range(256))
    found: dict[str, str] = {}
    for row in _FSCK_PROBLEM.finditer(f"{out.decode('utf-8', 'replace')}\n{said}"):
        one, other = filter(None, row.groups())  # a kind and an id, an id and what it is, or an id in two
        name = next((each for each in (other, one) if len(each) == 40), one + other)
        if name.strip("0") and found.get(name, "object") == "object":
            found[name] = FSCK_KINDS.get(one, one if one in ("blob", "tree", "commit") else "object")
    return found


def missing_from_head(repo: Process) -> str:
    """A message about objects that are missing from the newest revisions, '' if none are. Fast: objects are
    not verified, and older files not checked."""
    try:
        words = ("rev-list", "--objects", f"--max-count={CHECKED_REVISIONS}", "--missing=print", "HEAD")
        rows = repo.run(*words).decode("utf-8", "replace").splitlines()
        if sum(" " not in row for row in rows) >= CHECKED_REVISIONS:  # what has no name is a commit
            repo.run("rev-list", "--count", "HEAD")
    except GitFailed as error:
        return error.what
    gone = [row[1:] for row in rows if row.startswith("?")]
    return missing_message(dict.fromkeys(gone, "object")) if gone else ""


def missing_message(gone: Mapping[str, str]) -> str:
    """`2 objects are missing: tree 1a2b3c4d5e, …`."""
    first = ", ".join(f"{kind} {name[:10]}" for name, kind in list(gone.items())[:3])
    more = f" and {len(gone) - 3} more" if len(gone) > 3 else ""
    return f"{'an object is' if len(gone) == 1 else f'{len(gone)} objects are'} missing: {first}{more}"


def write_lost(repo: Process, contents: Mapping[str, bytes], listings: Iterable[Listing]) -> dict[str, str]:
    """Write missing objects again, as far as they are in `contents` ({blob id: bytes}) or follow from
    listings; {id: kind} of those that are still missing."""
    held = {name: ("tree", data) for listing in listings for name, data in tree_objects(listing).items()}
    held |= {name: ("blob", data) for name, data in contents.items()}
    gone = _set_invalid_aside(repo, find_missing(repo))
    while there := [name for name in gone if name in held]:
        for name in there:
            kind, data = held.pop(name)
            with suppress(OSError):  # git would not overwrite a damaged file
                (repo.shared / "objects" / name[:2] / name[2:]).unlink(missing_ok=True)
            repo.run("hash-object", "-w", "-t", kind, "--stdin", stdin=data)
        # Objects below a missing tree were not checked before.
        gone = _set_invalid_aside(repo, find_missing(repo))
    return gone


def _set_invalid_aside(repo: Process, gone: dict[str, str]) -> dict[str, str]:
    """Move invalid object files away, since git would not overwrite them; {id: kind} of what is missing then,
    since a pack may have the object too."""
    files = [repo.shared / "objects" / name[:2] / name[2:] for name in gone]
    if not any(file.exists() for file in files):
        return gone
    (repo.git_dir / BROKEN_FOLDER).mkdir(exist_ok=True)
    for file in files:
        with suppress(FileNotFoundError):
            file.replace(repo.git_dir / BROKEN_FOLDER / f"{file.parent.name}{file.name}")
    return find_missing(repo)


def guess_listings(index: Listing, disk: Listing, old: Listing, changed: Iterable[str]) -> Iterator[Listing]:
    """Listings that the newest revision may have had: git's index, or the files on disk. Of uncertain files,
    each combination of the present entry, the earlier one and none is tried."""
    yield index
    doubted = {path for path in {*disk, *old} if old and disk.get(path) != old.get(path)}
    order = sorted({*doubted, *changed})[:UNCERTAIN_FILES]
    choices = [dict.fromkeys((disk.get(path), old.get(path), None)) for path in order]
    for chosen in product(*choices):
        sides = dict(zip(order, chosen, strict=True))
        listing = {path: sides.get(path, entry) for path, entry in {**disk, **sides}.items()}
        yield {path: entry for path, entry in listing.items() if entry}


def tree_objects(listing: Listing) -> dict[str, bytes]:
    """{id: content} of the tree objects for a listing."""
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
        order = sorted(
            rows.items(), key=lambda row: _encode_name(row[0]) + (b"/" if row[1][0] == "40000" else b"")
        )
        entries = ((mode.encode(), _encode_name(name), bytes.fromhex(of)) for name, (mode, of) in order)
        data = b"".join(b"%b %b\0%b" % entry for entry in entries)
        name = hashlib.sha1(b"tree %d\0%b" % (len(data), data), usedforsecurity=False).hexdigest()
        found[name] = data
        return name

    if listing:
        made(listing)
    return found


def _encode_name(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


# -- repository --------------------------------------------------------------------------------------------


IN_PROGRESS_FILES = ("MERGE_HEAD", "rebase-merge", "rebase-apply", "CHERRY_PICK_HEAD", "REVERT_HEAD")


class Repository(Process):
    """One git directory: creation, HEAD, refs and the person's name."""

    _person: tuple[str, str] | None = None

    @property
    def exists(self) -> bool:
        """Whether the repository was created completely."""
        return (self.git_dir / "HEAD").is_file() and (self.shared / "objects").is_dir()

    def around(self) -> Repository | None:
        """The repository that the bank lies in, if it has no repository of its own."""
        place = None if self.own else git_around(self.root)
        return Repository(place.git_dir, place.top, own=True) if place else None

    def create(self) -> None:
        """Create the git directory, or the bank's own repository, unless it exists."""
        if self.exists:
            return
        with writing(self.git_dir, None):
            if self.own:
                self.git_dir.mkdir(parents=True, exist_ok=True)
            else:
                make_private(self.git_dir)
        where = {"GIT_OBJECT_DIRECTORY": str(self.git_dir / "objects")}
        how = ["--initial-branch=main", "--object-format=sha1", "--template="]
        # In the state folder it is private: git creates all files with this mode.
        self.run("init", "--quiet", *how, *([] if self.own else ["--shared=0600"]), env=where)
        if not self.own:
            # The work tree is in somebody's repository: plain `git` there must not find a second one.
            self.run("config", "core.worktree", str(self.root))
        # `git init` does not fsync: after a power cut, the first commit could be in no repository.
        for name in ("HEAD", "config", "objects", "refs/heads", "refs", "", ".."):
            with suppress(OSError):  # a file system that cannot: nothing is promised there
                sync_path(self.git_dir / name)

    def ref(self) -> str:
        """The branch to commit to. GitFailed for a detached HEAD, or during a merge or rebase."""
        head = self._head_line()
        if not head.startswith("ref: "):
            if OBJECT_ID.fullmatch(head):
                hint = f"ua-memory git switch {self._branch()}"
                raise GitFailed("HEAD is detached", where=str(self.git_dir), hint=hint)
            hint = f"echo 'ref: refs/heads/{self._branch()}' > {shlex.quote(str(self.git_dir / 'HEAD'))}"
            raise GitFailed("HEAD names no branch", where=str(self.git_dir), hint=hint)
        for mark in IN_PROGRESS_FILES:
            if self.own and (self.git_dir / mark).exists():
                hint = "ua-memory git status says how to finish or abort it"
                raise GitFailed("a merge or rebase is in progress", where=str(self.git_dir), hint=hint)
        if self.reftable:
            return self.run("symbolic-ref", "HEAD").decode().strip()
        self.require_branch()
        return head[5:]

    def require_branch(self) -> None:
        """Raise GitFailed if the branch of HEAD has no ref, although it has commits or there are other
        branches: no new history may begin then."""
        head = self.head()
        if head and self._head_line() == f"ref: {head}":
            if lost := self.lost():
                raise GitFailed(lost.message, where=str(self.git_dir), hint=lost.hint)
            what = f"HEAD names a branch without a revision: {head.removeprefix('refs/heads/')}"
            hint = f"ua-memory git symbolic-ref HEAD refs/heads/{self._branch()}"
            raise GitFailed(what, where=str(self.git_dir), hint=hint)

    def lost(self) -> LostBranch | None:
        """The last revision of HEAD's branch, if its ref is missing and its commits exist. GitFailed."""
        head = self.head()
        if not head or self._head_line() != f"ref: {head}":
            return None
        return find_lost(self, head)

    def restore_branch(self) -> list[str]:
        """Restore a missing branch ref if its last revision is certain; notes on it. Otherwise nothing is
        changed, and the next commit is refused."""
        with suppress(GitFailed):
            lost = self.lost()
            if lost and lost.sure:
                self.run("update-ref", lost.branch, lost.revision, NOBODY)
                return [f"{lost.message}: put back; `ua-memory verify` checks the rest of the history"]
        return []

    def head(self) -> str | None:
        """The newest commit's id, or None without commits; read without a process, if refs are files. For a
        damaged HEAD or a missing ref it is a name that git rejects."""
        if not self.exists:
            return None
        head = self._head_line()
        if not head.startswith("ref: "):
            return head or None
        name = head[5:]
        found = self.stored(name)
        if found is not None:
            return found if found and not found.startswith("ref: ") else self._rev_parse_head()
        if self.reftable:
            return self._rev_parse_head()
        if self.ref_names("heads"):
            return name
        with suppress(GitFailed):
            return name if find_lost(self, name) else None
        return name  # git cannot read its objects: no new history may begin

    def stored(self, ref: str) -> str | None:
        """The content of a ref's file, or its id in `packed-refs`; None if there is neither. Starts no
        process."""
        with suppress(OSError):
            return (self.shared / ref).read_text().strip()
        rows = read_text(self.shared / "packed-refs").splitlines()
        return next((row.split()[0] for row in rows if row.endswith(f" {ref}")), None)

    def ref_names(self, *kinds: str) -> set[str]:
        """The refs of these kinds (`heads`, `remotes`), read from files without a process."""
        loose = (file for kind in kinds for file in (self.shared / "refs" / kind).rglob("*"))
        packed = (row.partition(" ")[2] for row in read_text(self.shared / "packed-refs").splitlines())
        wanted = tuple(f"refs/{kind}/" for kind in kinds)
        found = {file.relative_to(self.shared).as_posix() for file in loose if file.is_file()}
        return found | {name for name in packed if name.startswith(wanted)}

    def person(self) -> tuple[str, str]:
        """(name, email) for hand edits: git's for this user, or `SOMEBODY`."""
        if self._person is None:  # cached, since it starts a process
            try:
                ident = self.run("var", "GIT_AUTHOR_IDENT").decode("utf-8", "replace")
            except GitFailed:
                return SOMEBODY
            name, _, rest = ident.partition(" <")
            self._person = (in_header(name) or SOMEBODY[0], in_header(rest.partition(">")[0]) or SOMEBODY[1])
        return self._person

    @property
    def reftable(self) -> bool:
        """Whether refs are stored in git's reftable format, not in files."""
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

    def set_invalid_ref_aside(self) -> None:
        """Move the branch's ref file away if its content is no commit id, so that the branch can be
        restored."""
        head = self._head_line()
        file = self.shared / head.removeprefix("ref: ")
        with suppress(FileNotFoundError):
            if head.startswith("ref: refs/heads/") and not OBJECT_ID.fullmatch(
                file.read_bytes().decode("latin-1").strip()
            ):
                (self.git_dir / BROKEN_FOLDER).mkdir(exist_ok=True)
                file.replace(self.git_dir / BROKEN_FOLDER / file.name)

    def _rev_parse_head(self) -> str | None:
        with suppress(GitFailed):
            return self.run("rev-parse", "--verify", "--quiet", "HEAD^{commit}").decode().strip() or None
        return None
