"""Fetching from and pushing to other copies of the history: a remote, or the bundle in an archive.

Nothing is forced unless asked for. A fetched history has a ref of its own until it is joined; another ref
records the last commit that both agreed on.
"""

from __future__ import annotations

import contextlib
import re
import shlex
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ua_memory.errors import Conflict, GitFailed, Usage, writing
from ua_memory.git import process
from ua_memory.git.process import NO_FSYNC, NO_NETWORK, OBJECT_ID, TEMP_PREFIX, Lock, Process
from ua_memory.git.repository import NOBODY, Repository, parse_ls_tree

REMOTE = "origin"
INCOMING, AGREED = "ua-memory-incoming", "ua-memory-agreed"
_RETRY_REASONS = (
    "fetch first",
    "[rejected] (non-fast-forward)",
    "stale info",
    "failed to update ref",
    "cannot lock ref",
)
"""git's reasons for a refused push that can be retried: somebody else pushed at the same moment."""
TIMEOUT, FIRST_ANSWER = 900, 60
"""Of a fetch or push; and of the question before it what the remote has, in seconds."""
LOCAL_ONLY = {"GIT_ALLOW_PROTOCOL": "file"}
"""Variables for fetching from a folder or bundle of ours."""
_IGNORED_SETTINGS = (
    r"^(core\.(sshcommand|gitproxy|askpass)|credential\..*|http\..*|url\..*"
    r"|remote\..*\.(proxy|vcs|(upload|receive)pack))$"
)
"""Settings that name programs for remotes: those of the repository itself are ignored, since it may be a
stranger's."""
_RECEIVE_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.alternateRefsCommand=true",
    "receive.denyCurrentBranch=refuse",
)
"""Settings for pushing to a local folder: its git runs here, and would run its hooks and filters."""
_OBJECT_VARIABLES = ("GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES")
_CREDENTIALS = re.compile(r"(\w+://)([^/@\s]*)@")


def printable(text: str) -> str:
    """An address or message of git without user and password; ssh addresses keep the user."""
    return _CREDENTIALS.sub(lambda m: f"{m[1]}{m[2].split(':')[0]}@" if m[1] == "ssh://" else m[1], text)


def local_git_dir(address: str, root: Path) -> Path | None:
    """The git directory of an address that is a local folder, else None."""
    path = str(Path(root, address.removeprefix("file://")))
    for place in map(Path, (f"{path}/.git", path, f"{path}.git/.git", f"{path}.git")):
        with contextlib.suppress(OSError, ValueError):
            if place.is_file():
                place = place.parent / place.read_text().removeprefix("gitdir:").strip()
            if (place / "HEAD").is_file():
                return place
    return None


def _lock_reason(said: str) -> str:
    """The line of git's messages about a lock, '' if there is none."""
    rows = [row.removeprefix("remote: ").strip() for row in said.splitlines()]
    return next((row.removeprefix("error: ") for row in rows if ".lock'" in row or "cannot lock" in row), "")


def _remote_words(said: str) -> list[str]:
    """What the remote itself says of a push, such as the reason of its hook."""
    rows = [row.removeprefix("remote:").strip() for row in said.splitlines() if row.startswith("remote:")]
    return [printable(" ".join(rows))[:500]] if any(rows) else []


class _IsolatedGit(Process):
    """A temporary git directory with the refs and objects of another, but without its settings."""

    def __init__(self, git_dir: Path, root: Path, objects: Mapping[str, str]) -> None:
        super().__init__(git_dir, root, own=False)
        self._objects = objects

    def environment(self) -> dict[str, str]:
        """The usual environment, with remotes allowed."""
        pinned = {key: value for key, value in super().environment().items() if key not in NO_NETWORK}
        return {**pinned, **self._objects, "GIT_NO_LAZY_FETCH": "1"}


class Remotes(Repository):
    """Comparing histories, remotes and bundles."""

    # -- comparing histories -----------------------------------------------------------------------

    def has(self, sha: str) -> bool:
        """Whether a commit exists here, on any branch. An error of git is GitFailed, not False, since a sync
        would then bring back what was purged."""
        words = ("rev-parse", "--verify", "--quiet", f"{sha}^{{commit}}")
        return bool(self.run(*words, ok=(0, 1, 128)).strip())

    def is_within(self, old: str, new: str) -> bool:
        """Whether `old` is `new` or an ancestor of it. GitFailed."""
        try:
            return not self.run("rev-list", "-n1", old, f"^{new}").strip()
        except GitFailed:
            if self.has(old) and self.has(new):
                raise
            return False

    def holds(self, sha: str) -> bool:
        """Whether the current branch contains a commit."""
        return self.has(sha) and self.is_within(sha, self.head() or NOBODY)

    def fork(self, one: str, other: str) -> str | None:
        """The merge base of two commits; None for unrelated histories."""
        found = self.run("merge-base", one, other, ok=(0, 1)).decode().split()
        return found[0] if found else None

    def number(self, old: str | None, new: str) -> int:
        """The number of commits in `old..new`."""
        return int(self.run("rev-list", "--count", new, *([f"^{old}"] if old else [])))

    def differing(self, old: str | None, new: str) -> dict[str, tuple[str, str]]:
        """{path: (mode, blob id)} of the files in `new` that differ from `old`; ("", "") for deleted ones."""
        tree = old or self.run("hash-object", "-t", "tree", "--stdin", stdin=b"").decode().strip()
        out = self.run("diff-tree", "-r", "-z", "--raw", "--no-renames", "--full-index", tree, new)
        words = out.decode("utf-8", "surrogateescape").split("\0")
        found = {}
        for meta, path in zip(words[:-1:2], words[1::2], strict=False):
            _, mode, _, blob, _ = meta.split(" ")
            found[path] = ("", "") if blob == NOBODY else (mode, blob)
        return found

    def sizes(self, rev: str) -> dict[str, int]:
        """{path: bytes} of a revision's files."""
        found = parse_ls_tree(self.run("ls-tree", "-r", "-l", "-z", rev), 3)
        return {path: int(size) for path, size in found.items()}

    # -- remotes -----------------------------------------------------------------------------------

    def remote(self) -> tuple[str, str] | None:
        """(name, address) of this branch's remote, else of `origin`, if there is one."""
        if not self.exists:
            return None
        branch = self.ref().removeprefix("refs/heads/")
        settings = self._read_config()
        name = settings.get(f"branch.{branch}.remote") or REMOTE
        address = settings.get(f"remote.{name}.url")
        return (name, address) if address else None

    def set_remote(self, address: str) -> None:
        """Add the remote. Usage for an invalid address."""
        self.run("remote", "add", REMOTE, self.address(address))

    @staticmethod
    def address(given: str) -> str:
        """Check an address. Usage for an invalid one."""
        if given.startswith("-") or not given.strip() or not given.isprintable():
            raise Usage("not the address of a repository", where=repr(given)[:200])
        return given

    def _read_config(self) -> dict[str, str]:
        """{key: last value} of git's settings for this repository; section and name in lower case."""
        rows = self.run("config", "--list", "-z").decode("utf-8", "replace").split("\0")
        return {key: value.strip() for key, _, value in (row.partition("\n") for row in rows)}

    def agreed(self, name: str) -> str | None:
        """The last commit that this machine and a remote agreed on, else the one that was cloned."""
        for ref in (self._tracked(name, AGREED), self._tracked(name)):
            words = ("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")
            if found := self.run(*words, ok=(0, 1)).decode().strip():
                return found
        return None

    def agree(self, name: str, sha: str) -> None:
        """Record that commit. git's own remote-tracking ref moves with any fetch."""
        self.run("update-ref", self.agreement(name), sha)

    def agreement(self, name: str) -> str:
        """The ref of the last commit that this machine and a remote agreed on."""
        return self._tracked(name, AGREED)

    def _tracked(self, name: str, last: str = "") -> str:
        return f"refs/remotes/{name}/{last or self.ref().removeprefix('refs/heads/')}"

    def offered(self, address: str) -> str | None:
        """The commit of the remote's branch, None for an empty remote. Nothing is fetched.

        Conflict for a bank beside code, if there are only other branches: this may be the code's remote.
        """
        branch, heads = self.ref().removeprefix("refs/heads/"), self.heads(address)[1]
        if heads and branch not in heads and not self.own:
            what = f"the remote has other branches ({', '.join(list(heads)[:3])}), and no {branch}"
            hint = f"use an empty repository; or add it there: ua-memory git push {shlex.quote(address)} HEAD"
            raise Conflict(what, where=printable(address), hint=printable(hint))
        return heads.get(branch)

    def heads(self, address: str) -> tuple[str, dict[str, str]]:
        """(the branch that a remote's HEAD names, or '', {branch: commit})."""
        out, _ = self._run_remote("ls-remote", "--symref", "--", address, "HEAD", "refs/heads/*")
        rows = [row.split("\t", 1) for row in out.decode("utf-8", "replace").splitlines() if "\t" in row]
        first = next((sha.removeprefix("ref: refs/heads/") for sha, _ in rows if sha.startswith("ref: ")), "")
        found = {ref.removeprefix("refs/heads/"): sha for sha, ref in rows if ref.startswith("refs/heads/")}
        return (first if first in found else ""), found

    def set_head(self, address: str) -> str:
        """Set a remote's HEAD to this branch if it names none, so that a plain `git clone` works; a note on
        it. That is only possible for a local folder."""
        if self.heads(address)[0]:
            return ""
        branch = self.ref().removeprefix("refs/heads/")
        if (place := local_git_dir(address, self.root)) is None:
            how = f"ua-memory init --from {shlex.quote(printable(address))}"
            return f"HEAD of the remote leads to no branch: a plain git clone finds nothing there; {how} does"
        Process(place, place, own=False).run("symbolic-ref", "HEAD", self.ref())
        return f"HEAD of the remote led to no branch; it leads to {branch} now"

    @contextlib.contextmanager
    def fetched(self, source: str, ref: str = "", name: str = REMOTE) -> Iterator[str]:
        """Fetch a remote's or a bundle's branch; yields its commit, which has a ref within the block only."""
        here = self._tracked(name, INCOMING)
        self.run("update-ref", here, commit := self.fetch_objects(source, ref))
        try:
            yield commit
        finally:
            self.run("update-ref", "-d", here)

    def fetch_objects(self, source: str, ref: str = "") -> str:
        """Fetch a remote's branch without updating any ref here; its commit."""
        words = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--refmap=", "--no-auto-gc"]
        target = f"refs/remotes/{INCOMING}"
        with self._isolated() as isolated:
            self._run_remote(
                *words, "--no-recurse-submodules", "--", source, f"+{ref or self.ref()}:{target}", by=isolated
            )
            return isolated.run("rev-parse", "--verify", f"{target}^{{commit}}").decode().strip()

    def push(self, name: str, sha: str, *, to: str = "", instead: str = "") -> str:
        """Push a commit to a remote's branch.

        With `instead` it may replace that commit (`--force-with-lease`). `to` is the address of a remote that
        is not saved yet. Returns '', or git's reason if it can be retried: somebody was faster, or the branch
        is locked. GitFailed for any other refusal.
        """
        words = ["push", "--porcelain", "--no-follow-tags", "--recurse-submodules=no", "--no-verify"]
        words += [f"--force-with-lease={self.ref()}:{instead}"] if instead else []
        settings = self._read_config()
        url = to or settings.get(f"remote.{name}.pushurl") or settings.get(f"remote.{name}.url", "")
        words += self._receive_options(url)
        out, said = self._run_remote(*words, "--", url, f"{sha}:{self.ref()}", ok=(0, 1))
        refused = [line for line in out.decode("utf-8", "replace").splitlines() if line.startswith("!")]
        why = printable(_lock_reason(said) or refused[0].rpartition("\t")[2]) if refused else ""
        if refused and not any(word in refused[0] for word in _RETRY_REASONS):
            what = f"the remote refuses the push: {': '.join([why, *_remote_words(said)])}"
            hint = f"all that it says: ua-memory git push {shlex.quote(printable(url))} HEAD"
            if instead:
                hint = "allow forced pushes there (git config receive.denyNonFastForwards false), and sync"
            raise GitFailed(what, where=printable(url), hint=hint)
        if not refused:
            self.agree(name, sha)
            if settings.get(f"remote.{name}.fetch"):
                self.run("update-ref", self._tracked(name), sha)
        return why

    def _receive_options(self, address: str) -> list[str]:
        """Options for pushing to a local folder without running its hooks and filters."""
        place = local_git_dir(address, self.root)
        if place is None:
            return []
        settings = [*_RECEIVE_SETTINGS]
        if Process(place, self.root, own=False).run("config", "--get", "gc.recentObjectsHook", ok=(0, 1)):
            settings.append("receive.autogc=false")
        return [f"--receive-pack=git {' '.join(f'-c {each}' for each in settings)} receive-pack"]

    @contextlib.contextmanager
    def _isolated(self) -> Iterator[Process]:
        """A temporary git directory for one call to a remote: with this repository's objects and refs, and
        none of its settings."""
        with (
            writing(self.git_dir, None),  # also while the folder is removed
            tempfile.TemporaryDirectory(prefix=TEMP_PREFIX, dir=self.git_dir) as folder,
        ):
            place = Path(folder)
            (place / "refs").mkdir()
            (place / "HEAD").write_text(f"ref: {self.ref()}\n")
            (place / "packed-refs").write_bytes(self._packed_refs())
            with contextlib.suppress(FileNotFoundError):
                (place / "shallow").write_bytes((self.shared / "shallow").read_bytes())
            yield _IsolatedGit(place, self.root, {key: self.environment()[key] for key in _OBJECT_VARIABLES})

    def _packed_refs(self) -> bytes:
        """The content of a `packed-refs` file with all local and remote branches."""
        if self.reftable:
            words = "for-each-ref", "--format=%(objectname) %(refname)", "refs/heads", "refs/remotes"
            return self.run(*words)
        found: dict[str, str] = {}
        for ref in self.ref_names("heads", "remotes"):
            with contextlib.suppress(ValueError):
                found[ref] = self.stored(ref) or ""
        return "".join(f"{id} {ref}\n" for ref, id in found.items() if OBJECT_ID.fullmatch(id)).encode()

    def _run_remote(
        self, *words: str, ok: Sequence[int] = (0,), by: Process | None = None
    ) -> tuple[bytes, str]:
        with contextlib.nullcontext(by) if by else self._isolated() as isolated:
            try:
                seconds = FIRST_ANSWER if words[0] == "ls-remote" else TIMEOUT
                return isolated.ask(*words, ok=ok, kill_after_timeout=seconds)
            except GitFailed as error:
                url = words[words.index("--") + 1]
                raise GitFailed(printable(error.what), where=printable(url), hint=self._hint(url)) from error

    def _hint(self, there: str) -> str:
        """The hint for a remote that cannot be reached."""
        if there.startswith("ext::"):
            return "a command cannot be used as an address: ua-memory git remote set-url origin ADDRESS"
        words = ("config", "--local", "--includes", "--name-only", "--get-regexp", _IGNORED_SETTINGS)
        out = self.run(*words, ok=(0, 1))
        if names := ", ".join(dict.fromkeys(out.decode("utf-8", "replace").split())):
            return f"settings of this repository are not used for it: {names}; put them into ~/.gitconfig"
        return f"see whether this gets there: ua-memory git ls-remote {shlex.quote(printable(there))}"

    def locks(self, address: str = "") -> list[Lock]:
        """The lock files here, and in a remote that is a local folder."""
        found = process.find_locks(self) if self.exists else []
        if place := local_git_dir(address, self.root) if address else None:
            there = Process(place, place.parent if place.name == ".git" else place, own=True)
            with contextlib.suppress(OSError):  # nothing of ours to write there
                found += process.find_locks(there)
        return found

    # -- bundles -----------------------------------------------------------------------------------

    def bundle(self, file: Path) -> None:
        """Write the branch as a git bundle, and unpack it to verify it, since git copies damaged objects.
        Conflict for a shallow clone, GitFailed."""
        self.require_whole()
        self.run("bundle", "create", "--quiet", "--version=2", str(file), self.ref())
        with tempfile.TemporaryDirectory(dir=file.parent) as folder:
            isolated = Repository(Path(folder, ".git"), Path(folder), own=True)
            try:
                isolated.run("init", "--quiet", env=NO_FSYNC)
                env = {**NO_FSYNC, **LOCAL_ONLY}
                isolated.run("fetch", "--quiet", "--no-tags", str(file), self.ref(), env=env)
            except GitFailed as error:
                why = f"the history cannot be unpacked from the bundle: {error.what}"
                raise GitFailed(why, where=str(self.git_dir), hint="ua-memory verify") from error

    def require_whole(self) -> None:
        """Raise Conflict in a shallow clone."""
        if (self.shared / "shallow").exists():
            raise Conflict(
                "this is a shallow clone", where=str(self.git_dir),
                hint="ua-memory git fetch --unshallow",
            )  # fmt: skip

    def bundled(self, file: Path) -> dict[str, str]:
        """{ref: commit} of a bundle, which is verified first. GitFailed."""
        self.run("bundle", "verify", "--quiet", str(file))
        rows = self.run("bundle", "list-heads", str(file)).decode("utf-8", "replace").splitlines()
        return {ref: sha for sha, _, ref in (row.partition(" ") for row in rows)}
