"""The trail and other copies of it: another machine's by way of a remote, or an archive's.

Nothing here forces anything. What is fetched stands under a ref of its own until it was joined; the ref of
the remote's branch says up to where both agreed.
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
from ua_memory.git.process import APART, NO_FSYNC, NO_REMOTE, OBJECT_ID, Lock, Process, read_loose
from ua_memory.git.repository import NOBODY, Repository

REMOTE = "origin"
INCOMING, AGREED = "ua-memory-incoming", "ua-memory-agreed"
_AGAIN = ("fetch first", "non-fast-forward", "stale info", "failed to update ref", "cannot lock ref")
"""What git says where somebody else pushed at the same moment."""
SECONDS = 900
"""After which a fetch or a push is given up."""
LOCAL = {"GIT_ALLOW_PROTOCOL": "file"}
"""For a fetch out of a folder or a bundle of ours."""
_PROGRAMS = (
    r"^(core\.(sshcommand|gitproxy|askpass)|credential\..*|http\..*|url\..*"
    r"|remote\..*\.(proxy|vcs|(upload|receive)pack))$"
)
"""Settings of how a remote is reached: of a repository's own none is heeded, they may be a stranger's."""
_RECEIVES = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.alternateRefsCommand=true",
    "receive.denyCurrentBranch=refuse",
)
"""What holds in a folder that is pushed to: the git that takes it in runs here, and its hooks and filters
would with it."""
_OBJECTS = ("GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES")
_WHO = re.compile(r"(\w+://)([^/@\s]*)@")


def shown(text: str) -> str:
    """An address, or what git says of one, without the name and password that may stand in it; ssh needs the
    name."""
    return _WHO.sub(lambda m: f"{m[1]}{m[2].split(':')[0]}@" if m[1] == "ssh://" else m[1], text)


def folder(address: str, root: Path) -> Path | None:
    """The git directory that an address leads to, if that is a folder of this machine."""
    path = str(Path(root, address.removeprefix("file://")))
    for place in map(Path, (f"{path}/.git", path, f"{path}.git/.git", f"{path}.git")):
        with contextlib.suppress(OSError, ValueError):
            if place.is_file():
                place = place.parent / place.read_text().removeprefix("gitdir:").strip()
            if (place / "HEAD").is_file():
                return place
    return None


def _because(said: str) -> str:
    """Why a remote would not move a branch, out of what git says beside its answer."""
    rows = [row.removeprefix("remote: ").strip() for row in said.splitlines()]
    return next((row.removeprefix("error: ") for row in rows if ".lock'" in row or "cannot lock" in row), "")


class _IsolatedGit(Process):
    """A git directory with nothing in it but refs, and a trail's objects: only the user's own settings hold
    in it, whatever those of the trail are."""

    def __init__(self, git_dir: Path, root: Path, objects: Mapping[str, str]) -> None:
        super().__init__(git_dir, root, own=False)
        self._objects = objects

    def environment(self) -> dict[str, str]:
        """That of a trail, with remotes."""
        pinned = {key: value for key, value in super().environment().items() if key not in NO_REMOTE}
        return {**pinned, **self._objects, "GIT_NO_LAZY_FETCH": "1"}


class Remotes(Repository):
    """What a trail knows of other copies of itself."""

    # -- where two histories stand -----------------------------------------------------------------

    def has(self, sha: str) -> bool:
        """Whether there is such a commit here, wherever it belongs. GitFailed: a git that cannot say says
        no no; a sync that took it for one brought back what was purged."""
        if self._lies_here(sha):
            return True
        words = ("rev-parse", "--verify", "--quiet", f"{sha}^{{commit}}")
        return bool(self.run(*words, ok=(0, 1, 128)).strip())

    def _lies_here(self, sha: str) -> bool:
        """Whether a commit is in a file of its own; no process is started."""
        with contextlib.suppress(GitFailed):
            return bool(read_loose(self.shared / "objects", f"{sha}^{{commit}}"))
        return False

    def is_within(self, old: str, new: str) -> bool:
        """Whether one history is a part of another, or the same. GitFailed."""
        if old == new and self._lies_here(old):
            return True
        try:
            return not self.run("rev-list", "-n1", old, f"^{new}").strip()
        except GitFailed:
            if self.has(old) and self.has(new):
                raise
            return False

    def holds(self, sha: str) -> bool:
        """Whether the branch has a commit in it."""
        return self.has(sha) and self.is_within(sha, self.head() or NOBODY)

    def fork(self, one: str, other: str) -> str | None:
        """The newest commit that two histories have in common; None where they began apart."""
        found = self.run("merge-base", one, other, ok=(0, 1)).decode().split()
        return found[0] if found else None

    def number(self, old: str | None, new: str) -> int:
        """How many commits one history has that another has not."""
        return int(self.run("rev-list", "--count", new, *([f"^{old}"] if old else [])))

    def differing(self, old: str | None, new: str) -> dict[str, tuple[str, str]]:
        """{path: (mode, blob id)} of what `new` has otherwise than `old`; of what is gone ("", "")."""
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
        out = self.run("ls-tree", "-r", "-l", "-z", rev).decode("utf-8", "surrogateescape")
        rows = (entry.split("\t", 1) for entry in out.split("\0") if entry)
        return {path: int(size) for meta, path in rows if (size := meta.split()[3]).isdigit()}

    # -- remotes -----------------------------------------------------------------------------------

    def remote(self) -> tuple[str, str] | None:
        """(name, address) of the remote that this branch goes to, else of `origin`, if there is one."""
        if not self.exists:
            return None
        branch = self.ref().removeprefix("refs/heads/")
        settings = self._settings()
        name = settings.get(f"branch.{branch}.remote") or REMOTE
        address = settings.get(f"remote.{name}.url")
        return (name, address) if address else None

    def set_remote(self, address: str) -> None:
        """Remember where this trail is shared. Usage for what git would take for something else."""
        self.run("remote", "add", REMOTE, self.address(address))

    @staticmethod
    def address(given: str) -> str:
        """An address as it was given, if it can be one."""
        if given.startswith("-") or not given.strip() or not given.isprintable():
            raise Usage("not the address of a repository", where=repr(given)[:200])
        return given

    def _settings(self) -> dict[str, str]:
        """{key: value} of git's settings here, the last of several; section and name in lower case."""
        rows = self.run("config", "--list", "-z").decode("utf-8", "replace").split("\0")
        return {key: value.strip() for key, _, value in (row.partition("\n") for row in rows)}

    def agreed(self, name: str) -> str | None:
        """Up to where this machine and a remote agreed when they last met, else what a clone began with."""
        for ref in (self._tracked(name, AGREED), self._tracked(name)):
            stored = None if self.reftable else self.stored(ref) or ""
            if stored and self._lies_here(stored):
                return stored
            if stored == "":
                continue
            words = ("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")
            if found := self.run(*words, ok=(0, 1)).decode().strip():
                return found
        return None

    def agree(self, name: str, sha: str) -> None:
        """Note up to where both agree. git's own note of the remote's branch moves with any fetch."""
        self.run("update-ref", self.agreement(name), sha)

    def agreement(self, name: str) -> str:
        """The ref that notes up to where this machine and a remote agree."""
        return self._tracked(name, AGREED)

    def _tracked(self, name: str, last: str = "") -> str:
        return f"refs/remotes/{name}/{last or self.ref().removeprefix('refs/heads/')}"

    def offered(self, address: str) -> str | None:
        """Where the remote's branch stands, None while there is none. Nothing is fetched."""
        out, _ = self._reach("ls-remote", "--refs", "--", address, self.ref())
        rows = (line.split("\t") for line in out.decode().splitlines() if "\t" in line)
        return next((sha for sha, ref in rows if ref == self.ref()), None)

    def heads(self, address: str) -> tuple[str, dict[str, str]]:
        """The branch that a remote's HEAD leads to, empty where it leads to none, and {branch: revision}."""
        out, _ = self._reach("ls-remote", "--symref", "--", address, "HEAD", "refs/heads/*")
        rows = [row.split("\t", 1) for row in out.decode("utf-8", "replace").splitlines() if "\t" in row]
        first = next((sha.removeprefix("ref: refs/heads/") for sha, _ in rows if sha.startswith("ref: ")), "")
        found = {ref.removeprefix("refs/heads/"): sha for sha, ref in rows if ref.startswith("refs/heads/")}
        return (first if first in found else ""), found

    def set_head(self, address: str) -> str:
        """Have a remote's HEAD lead to this branch if it leads to none, so that a plain `git clone` finds it;
        what there is to tell. Only of a folder it can be set."""
        if self.heads(address)[0]:
            return ""
        branch = self.ref().removeprefix("refs/heads/")
        if (place := folder(address, self.root)) is None:
            how = f"ua-memory init --from {shlex.quote(shown(address))}"
            return f"HEAD of the remote leads to no branch: a plain git clone finds nothing there; {how} does"
        Process(place, place, own=False).run("symbolic-ref", "HEAD", self.ref())
        return f"HEAD of the remote led to no branch; it leads to {branch} now"

    @contextlib.contextmanager
    def fetched(self, source: str, ref: str = "", name: str = REMOTE) -> Iterator[str]:
        """The newest commit of a remote's branch, or of a bundle's, brought here for as long as the block
        lasts; what was not joined is nobody's then."""
        here = self._tracked(name, INCOMING)
        self.run("update-ref", here, came := self.fetch_objects(source, ref))
        try:
            yield came
        finally:
            self.run("update-ref", "-d", here)

    def fetch_objects(self, source: str, ref: str = "") -> str:
        """Bring what a remote's branch leads to here, and note it under no name; its newest commit."""
        words = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--refmap=", "--no-auto-gc"]
        came = f"refs/remotes/{INCOMING}"
        with self._apart() as apart:
            self._reach(
                *words, "--no-recurse-submodules", "--", source, f"+{ref or self.ref()}:{came}", by=apart
            )
            return apart.run("rev-parse", "--verify", f"{came}^{{commit}}").decode().strip()

    def push(self, name: str, sha: str, *, to: str = "", instead: str = "") -> str:
        """Give a remote's branch a commit that goes on from what it has, or takes the place of `instead` if
        the branch stands there still. `to` is the remote's address while it is not known by its name. Empty
        once it is there; git's reason where somebody was faster, or the branch is locked; GitFailed where it
        refuses for another."""
        words = ["push", "--porcelain", "--no-follow-tags", "--recurse-submodules=no", "--no-verify"]
        words += [f"--force-with-lease={self.ref()}:{instead}"] if instead else []
        settings = self._settings()
        there = to or settings.get(f"remote.{name}.pushurl") or settings.get(f"remote.{name}.url", "")
        words += self._receiving(there)
        out, said = self._reach(*words, "--", there, f"{sha}:{self.ref()}", ok=(0, 1))
        refused = [line for line in out.decode("utf-8", "replace").splitlines() if line.startswith("!")]
        why = shown(_because(said) or refused[0].rpartition("\t")[2]) if refused else ""
        if refused and not any(word in refused[0] for word in _AGAIN):
            raise GitFailed(f"the remote refuses the push: {why}", where=shown(there), hint=self._way(there))
        if not refused:
            self.agree(name, sha)
            if settings.get(f"remote.{name}.fetch"):
                self.run("update-ref", self._tracked(name), sha)
        return why

    def _receiving(self, address: str) -> list[str]:
        """How a folder is pushed to: without what its settings and hooks would run."""
        place = folder(address, self.root)
        if place is None:
            return []
        settings = [*_RECEIVES]
        if Process(place, self.root, own=False).run("config", "--get", "gc.recentObjectsHook", ok=(0, 1)):
            settings.append("receive.autogc=false")
        return [f"--receive-pack=git {' '.join(f'-c {each}' for each in settings)} receive-pack"]

    @contextlib.contextmanager
    def _apart(self) -> Iterator[Process]:
        """A git directory for the length of one call, from which remotes are reached: with this trail's
        objects and the names of its revisions, and none of its settings."""
        with (
            writing(self.git_dir, None),  # also while the folder is taken away
            tempfile.TemporaryDirectory(prefix=APART, dir=self.git_dir) as folder,
        ):
            place = Path(folder)
            (place / "refs").mkdir()
            (place / "HEAD").write_text(f"ref: {self.ref()}\n")
            (place / "packed-refs").write_bytes(self._names())
            with contextlib.suppress(FileNotFoundError):
                (place / "shallow").write_bytes((self.shared / "shallow").read_bytes())
            yield _IsolatedGit(place, self.root, {key: self.environment()[key] for key in _OBJECTS})

    def _names(self) -> bytes:
        """A line `ID REF` for each branch here and of remotes."""
        if self.reftable:
            words = "for-each-ref", "--format=%(objectname) %(refname)", "refs/heads", "refs/remotes"
            return self.run(*words)
        found: dict[str, str] = {}
        for ref in self.ref_names("heads", "remotes"):
            with contextlib.suppress(ValueError):
                found[ref] = self.stored(ref) or ""
        return "".join(f"{id} {ref}\n" for ref, id in found.items() if OBJECT_ID.fullmatch(id)).encode()

    def _reach(self, *words: str, ok: Sequence[int] = (0,), by: Process | None = None) -> tuple[bytes, str]:
        with contextlib.nullcontext(by) if by else self._apart() as apart:
            try:
                return apart.ask(*words, ok=ok, kill_after_timeout=SECONDS)
            except GitFailed as error:
                there = words[words.index("--") + 1]
                raise GitFailed(shown(error.what), where=shown(there), hint=self._way(there)) from error

    def _way(self, there: str) -> str:
        """What helps where a remote cannot be reached."""
        if there.startswith("ext::"):
            return "a command cannot be used as an address: ua-memory git remote set-url origin ADDRESS"
        out = self.run("config", "--local", "--includes", "--name-only", "--get-regexp", _PROGRAMS, ok=(0, 1))
        if names := ", ".join(dict.fromkeys(out.decode("utf-8", "replace").split())):
            return f"settings of this repository are not used for it: {names}; put them into ~/.gitconfig"
        return f"see whether this gets there: ua-memory git ls-remote {shlex.quote(shown(there))}"

    def locks(self, address: str = "") -> list[Lock]:
        """What a killed git has left locked here, and in the folder that an address leads to."""
        found = process.found(self) if self.exists else []
        if place := folder(address, self.root) if address else None:
            there = Process(place, place.parent if place.name == ".git" else place, own=True)
            with contextlib.suppress(OSError):  # nothing of ours to write there
                found += process.found(there)
        return found

    # -- bundles -----------------------------------------------------------------------------------

    def bundle(self, file: Path) -> None:
        """The branch and all it leads to, as one file, read back as who takes it in does: git puts a damaged
        object of a pack into it as it stands. Conflict where this is half a history, GitFailed."""
        self.require_whole()
        self.run("bundle", "create", "--quiet", "--version=2", str(file), self.ref())
        with tempfile.TemporaryDirectory(dir=file.parent) as folder:
            apart = Repository(Path(folder, ".git"), Path(folder), own=True)
            try:
                apart.run("init", "--quiet", env=NO_FSYNC)
                apart.run("fetch", "--quiet", "--no-tags", str(file), self.ref(), env={**NO_FSYNC, **LOCAL})
            except GitFailed as error:
                why = f"the history cannot be unpacked from the bundle: {error.what}"
                raise GitFailed(why, where=str(self.git_dir), hint="ua-memory verify") from error

    def require_whole(self) -> None:
        """Conflict where only the end of the history is here."""
        if (self.shared / "shallow").exists():
            raise Conflict(
                "this is a shallow clone", where=str(self.git_dir),
                hint="ua-memory git fetch --unshallow",
            )  # fmt: skip

    def bundled(self, file: Path) -> dict[str, str]:
        """{ref: id} of what a bundle holds, once it was seen to be whole. GitFailed."""
        self.run("bundle", "verify", "--quiet", str(file))
        rows = self.run("bundle", "list-heads", str(file)).decode("utf-8", "replace").splitlines()
        return {ref: sha for sha, _, ref in (row.partition(" ") for row in rows)}
