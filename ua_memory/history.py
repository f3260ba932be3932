"""The trail in git: every revision a commit, read back as revisions. The only module that knows git.

Commits are written by `git fast-import`: it takes the exact bytes of a revision instead of whatever
lies on disk at that moment, needs no index and no lock on one, runs no hooks, asks for no identity,
and is one process (docs/decisions/0001).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ua_memory.errors import GitFailed, NotFound

if TYPE_CHECKING:
    from git import Git

US, RS = "\x1f", "\x1e"
MACHINE = ("ua-memory", "ua-memory@localhost")
SOMEBODY = ("person", "person@localhost")
"""The author of hand edits where git knows no name for the person."""


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit to be written: whole files by bank-relative path, None for a file that goes."""

    author: tuple[str, str]
    when: datetime
    message: str
    files: Mapping[str, bytes | None]


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
    """A line of a file with the revision that last changed it; `revision` is all zeros where none has it."""

    line: int
    revision: str
    author: str
    when: datetime
    subject: str
    text: str


def blob_id(data: bytes) -> str:
    """git's name for a file's content."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


class History:
    """The git directory of one bank's trail, with the bank's root as its work tree."""

    def __init__(self, git_dir: Path, root: Path, *, own: bool) -> None:
        self.git_dir, self.root, self.own = git_dir, root, own
        self._git: Git | None = None

    # -- the process ---------------------------------------------------------------------------

    def git(self) -> Git:
        """GitPython's command object, bound to this trail whatever git variables the caller's shell has set."""
        if self._git is None:
            try:
                from git import Git
            except ImportError as error:  # GitPython refuses to be imported where there is no git
                raise GitFailed(
                    "git is not installed or does not run",
                    mend="install git; what was being written waits in pending/ and is committed by the next command",
                ) from error
            self._git = Git(str(self.root))
            self._git.update_environment(**self.environment())
        return self._git

    def environment(self) -> dict[str, str]:
        """Variables that pin git to this trail: inside a hook of the user's the outer repository's are set."""
        common = self.git_dir / "commondir"
        shared = (self.git_dir / common.read_text().strip()).resolve() if common.is_file() else self.git_dir
        config = {"core.fsync": "all", "core.autocrlf": "false", "core.quotePath": "false", "gc.auto": "0"}
        pairs = {
            f"GIT_CONFIG_{part}_{n}": text
            for n, pair in enumerate(config.items())
            for part, text in zip(("KEY", "VALUE"), pair, strict=True)
        }
        return {
            "GIT_DIR": str(self.git_dir),
            "GIT_WORK_TREE": str(self.root),
            "GIT_COMMON_DIR": str(shared),
            "GIT_INDEX_FILE": str(self.git_dir / "index"),
            "GIT_OBJECT_DIRECTORY": str(shared / "objects"),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": "",
            "GIT_NAMESPACE": "",
            "GIT_CONFIG_PARAMETERS": "",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_LITERAL_PATHSPECS": "1",
            "GIT_CONFIG_COUNT": str(len(config)),
            **pairs,
        }

    def run(self, *words: str, stdin: bytes | None = None, ok: Sequence[int] = (0,), **extra: Any) -> bytes:
        """Standard output of one git command. GitFailed carries what git said."""
        with contextlib.ExitStack() as stack:
            if stdin is not None:
                spool = stack.enter_context(tempfile.TemporaryFile())
                spool.write(stdin)
                spool.seek(0)
                extra["istream"] = spool
            try:
                status, out, said = self.git().execute(
                    ["git", *words], with_extended_output=True, with_exceptions=False,
                    stdout_as_string=False, strip_newline_in_stdout=False, **extra,
                )  # fmt: skip
            except OSError as error:
                raise GitFailed(f"git did not start: {error}", where=str(self.git_dir)) from error
        if status not in ok:
            raise GitFailed(
                f"git {words[0]} failed: {_last_line(said)}", where=str(self.git_dir), mend="ua-memory doctor"
            )
        return bytes(out) if isinstance(out, bytes) else str(out).encode()

    # -- where it stands -------------------------------------------------------------------------

    @property
    def exists(self) -> bool:
        return (self.git_dir / "HEAD").exists()

    def create(self) -> None:
        """Make the trail's git directory, or the bank's own repository. Nothing happens where it exists."""
        if self.exists:
            return
        self.git_dir.mkdir(parents=True, exist_ok=True)
        where = {"GIT_OBJECT_DIRECTORY": str(self.git_dir / "objects")}
        self.run("init", "--quiet", "--initial-branch=main", "--object-format=sha1", "--template=", env=where)
        if not self.own:
            # The work tree belongs to somebody else: plain `git` there must not find a second repository.
            self.run("config", "core.worktree", str(self.root))

    def ref(self) -> str:
        """The branch that revisions go to. GitFailed on a detached HEAD or in the midst of a merge or rebase."""
        head = (self.git_dir / "HEAD").read_text().strip()
        if not head.startswith("ref: "):
            raise GitFailed("HEAD is detached", where=str(self.git_dir), mend="git switch main")
        for mark in ("MERGE_HEAD", "rebase-merge", "rebase-apply", "CHERRY_PICK_HEAD", "REVERT_HEAD"):
            if self.own and (self.git_dir / mark).exists():
                raise GitFailed("a merge or rebase is under way", where=str(self.git_dir), mend="git status")
        return head[5:]

    def head(self) -> str | None:
        """The newest revision's id, or None in a trail without commits. No process is started."""
        if not self.exists:
            return None
        head = (self.git_dir / "HEAD").read_text().strip()
        if not head.startswith("ref: "):
            return head
        common = Path(self.environment()["GIT_COMMON_DIR"])
        with contextlib.suppress(FileNotFoundError):
            return (common / head[5:]).read_text().strip() or None
        with contextlib.suppress(FileNotFoundError):
            for line in (common / "packed-refs").read_text().splitlines():
                if line.endswith(" " + head[5:]):
                    return line.split()[0]
        return None

    # -- reading -----------------------------------------------------------------------------------

    def resolve(self, revision: str) -> str:
        """The full id of a revision by any of git's names for it."""
        if not self.exists or revision.startswith("-"):
            raise NotFound("no such revision", where=revision, mend="ua-memory log")
        try:
            return self.run("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}").decode().strip()
        except GitFailed as error:
            raise NotFound("no such revision", where=revision, mend="ua-memory log") from error

    def blobs(self, paths: Sequence[str] = (), rev: str = "HEAD") -> dict[str, str]:
        """{path: blob id} of a revision's files; of all, or of those named."""
        if rev == "HEAD" and self.head() is None:
            return {}
        out = self.run("ls-tree", "-r", "-z", rev, "--", *(f"{p}" for p in paths))
        rows = (entry.split("\t", 1) for entry in out.decode("utf-8", "surrogateescape").split("\0") if entry)
        return {path: meta.split()[2] for meta, path in rows}

    def read(self, rev: str, path: str) -> bytes | None:
        """A file's bytes as a revision has them, or None."""
        found = self.blobs([path], rev) if rev != "HEAD" or self.head() else {}
        return self.blob(found[path]) if path in found else None

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
        """Revisions, newest first; those that touched the paths and whose message has all fixed strings of `grep`."""
        if self.head() is None:
            return []
        words = [
            "log",
            "-z",
            "--name-only",
            f"--format={RS}%H{US}%ct{US}%an{US}%s{US}%(trailers:only,unfold){US}",
        ]
        words += [f"-n{limit}"] if limit else []
        words += ["-F", "--all-match", *(f"--grep={text}" for text in grep)] if grep else []
        out = self.run(*words, rev, "--", *paths).decode("utf-8", "replace")
        return [_revision(entry) for entry in out.split(RS)[1:]]

    def show(self, revision: str) -> Revision:
        """One revision. NotFound if there is none."""
        return self.log(rev=self.resolve(revision), limit=1)[0]

    def diff(self, old: str | None, new: str | None, paths: Sequence[str] = (), *, context: int = 3) -> str:
        """A unified diff between two revisions; None as `old` is the empty tree, as `new` the files on disk."""
        first = old or self.run("hash-object", "-t", "tree", "--stdin", stdin=b"").decode().strip()
        words = ["diff", "--no-color", "--no-ext-diff", "--no-textconv", f"-U{context}", first]
        return self.run(*words, *([new] if new else []), "--", *paths).decode("utf-8", "replace")

    def blame(self, path: str, contents: bytes, *, lines: tuple[int, int] | None = None) -> list[BlameLine]:
        """Who wrote each line of `contents`, the file's present bytes."""
        span = [f"-L{lines[0]},{lines[1]}"] if lines else []
        with tempfile.NamedTemporaryFile() as spool:
            spool.write(contents)
            spool.flush()
            words = ["blame", "--porcelain", *span, "--contents", spool.name, "--", path]
            return list(_blame(self.run(*words).decode("utf-8", "replace")))

    # -- writing -----------------------------------------------------------------------------------

    def commit(self, commits: Sequence[Commit]) -> list[str]:
        """Write commits on top of the branch, durably (`core.fsync=all`; plain git fsyncs nothing); their ids."""
        ref, parent = self.ref(), self.head()
        stream = b"".join(
            _fast_import(ref, n, c, parent if n == 1 else None) for n, c in enumerate(commits, 1)
        )
        asked = b"".join(b"get-mark :%d\n" % n for n in range(1, len(commits) + 1))
        out = self.run(
            "fast-import", "--quiet", "--done", "--date-format=raw", stdin=stream + asked + b"done\n"
        )
        self._follow(commits)
        return out.decode().split()

    def _follow(self, commits: Sequence[Commit]) -> None:
        """Bring the index of the bank's own repository along, so that `git status` shows only what a person did."""
        if not self.own:
            return
        final = {path: data for c in commits for path, data in c.files.items()}
        rows = [
            f"100644 {blob_id(d)}\t{p}" if d is not None else f"0 {'0' * 40}\t{p}" for p, d in final.items()
        ]
        # A held index.lock is nothing to fail for: the commit stands, and `doctor` or the next revision mends the index.
        with contextlib.suppress(GitFailed):
            self.run("update-index", "-z", "--index-info", stdin="".join(f"{r}\0" for r in rows).encode())

    def person(self) -> tuple[str, str]:
        """The name and address under which hand edits are committed: git's own for this user, else a stand-in."""
        try:
            ident = self.run("var", "GIT_AUTHOR_IDENT").decode("utf-8", "replace")
        except GitFailed:
            return SOMEBODY
        name, _, rest = ident.partition(" <")
        return _plain(name) or SOMEBODY[0], _plain(rest.partition(">")[0]) or SOMEBODY[1]

    def repack(self, *, full: bool = False) -> None:
        """Fold loose objects into packs; geometrically, so that the work stays in step with what was added."""
        self.run(
            "repack",
            "-d",
            "-q",
            "-l",
            *(["-a", "-f", "--depth=200", "--window=50"] if full else ["--geometric=2"]),
        )

    def loose_bytes(self) -> int:
        """About how much lies in loose objects: one of the 256 folders is looked at, as `git gc --auto` does."""
        sample = Path(self.environment()["GIT_OBJECT_DIRECTORY"]) / "17"
        try:
            return 256 * sum(entry.stat().st_size for entry in os.scandir(sample))
        except OSError:
            return 0


def _fast_import(ref: str, mark: int, commit: Commit, parent: str | None) -> bytes:
    stamp = f"{int(commit.when.timestamp())} {commit.when.strftime('%z') or '+0000'}"
    head = [f"commit {ref}", f"mark :{mark}", f"author {commit.author[0]} <{commit.author[1]}> {stamp}"]
    head += [f"committer {MACHINE[0]} <{MACHINE[1]}> {stamp}"]
    message = commit.message.encode("utf-8", "replace")
    out = ["\n".join(head).encode() + b"\ndata %d\n%b\n" % (len(message), message)]
    if parent:
        out.append(f"from {parent}\n".encode())
    for path, data in commit.files.items():
        name = (
            b'"'
            + path.encode("utf-8", "surrogateescape")
            .replace(b"\\", b"\\\\")
            .replace(b'"', b'\\"')
            .replace(b"\n", b"\\n")
            + b'"'
        )
        out.append(
            b"D %b\n" % name
            if data is None
            else b"M 100644 inline %b\ndata %d\n%b\n" % (name, len(data), data)
        )
    return b"".join(out)


def _revision(entry: str) -> Revision:
    sha, when, author, subject, trailers, rest = entry.split(US, 5)
    found: dict[str, list[str]] = {}
    for line in trailers.splitlines():
        key, colon, value = line.partition(": ")
        if colon:
            found.setdefault(key, []).append(value)
    paths = tuple(p for p in rest.strip("\0\n").split("\0") if p.strip())
    moment = datetime.fromtimestamp(int(when), UTC)
    return Revision(
        sha,
        moment,
        author,
        subject,
        {k: tuple(v) for k, v in found.items()},
        tuple(p.lstrip("\n") for p in paths),
    )


def _blame(out: str) -> Iterator[BlameLine]:
    known: dict[str, dict[str, str]] = {}
    sha, number = "", 0
    for row in out.split("\n"):
        if row.startswith("\t"):
            facts = known[sha]
            when = datetime.fromtimestamp(int(facts.get("author-time", "0")), UTC)
            yield BlameLine(number, sha, facts.get("author", ""), when, facts.get("summary", ""), row[1:])
            continue
        words = row.split(" ")
        if len(words) >= 3 and len(words[0]) == 40 and words[1].isdigit():
            sha, number = words[0], int(words[2])
            known.setdefault(sha, {})
        elif sha and " " in row:
            key, _, value = row.partition(" ")
            known[sha][key] = value


def _plain(text: str) -> str:
    return "".join(c for c in text.strip() if c not in "<>\n\0")


def _last_line(said: str | bytes) -> str:
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else said
    lines: Iterable[str] = [line for line in text.strip().splitlines() if line.strip()]
    return list(lines)[-1][:500] if lines else "it said nothing"
