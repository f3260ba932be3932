"""A history written anew without some contents: made beside the old one, then put in its place.

The work is git-filter-repo's, in a bare repository of its own: it resets work trees and drops remotes, which
must not happen to somebody's repository. What is in the trail until the very end is the old history.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from ua_memory.errors import CannotWrite, Conflict, GitFailed
from ua_memory.history.missing import ASIDE
from ua_memory.history.remotes import LOCAL
from ua_memory.history.trail import History
from ua_memory.paths import make_private

REWRITTEN = ("refs/heads/*", "refs/tags/*", "refs/notes/*")
"""The refs that are rewritten. Those of remotes are only remembered, and a fetch brings them again."""
_ASIDE = "refs/ua-memory-purge/"
_BLOB = (
    "import os; p = os.path.join({0!r}, blob.original_id.decode())\n"
    "if os.path.exists(p): blob.data = open(p, 'rb').read()"
)
_MESSAGE = (
    "import json, re\n"
    "for p, f in json.load(open({0!r})):\n"
    "  message = re.sub(p.encode('latin-1'), b'[forgotten]', message, flags=f)\n"
    "return message"
)


@dataclass(frozen=True, slots=True)
class Ref:
    """A branch or tag: its full name, and what it points to."""

    name: str
    id: str

    @property
    def short(self) -> str:
        """`main`, or `tag v1`."""
        kind, _, name = self.name.removeprefix("refs/").partition("/")
        return name if kind == "heads" else f"{kind.removesuffix('s')} {name}"


def refs(history: History, patterns: Sequence[str] = REWRITTEN) -> list[Ref]:
    """The refs of these kinds."""
    kinds = [pattern.removesuffix("*") for pattern in patterns]
    rows = history.run("for-each-ref", "--format=%(objectname) %(refname)", *kinds).decode().splitlines()
    return [Ref(name, sha) for sha, name in (row.split(" ", 1) for row in rows)]


def refuse(history: History) -> None:
    """Conflict where a rewriting would harm what is not ours: stashes, other work trees, half a history.
    GitFailed where git-filter-repo is missing."""
    if find_spec("git_filter_repo") is None:
        raise GitFailed("git-filter-repo is missing", mend="pip install git-filter-repo")
    history.ref()
    where, mend = str(history.git_dir), "ua-memory git stash list"
    if refs(history, ["refs/stash"]):
        raise Conflict("stashes would be lost", where=where, mend=f"{mend}; apply or drop them first")
    if history.own and history.run("worktree", "list", "--porcelain").count(b"worktree ") > 1:
        raise Conflict(
            "other work trees stand on this history",
            where=where,
            mend="ua-memory git worktree list; remove the others",
        )
    if history.run("config", "--get", "gc.recentObjectsHook", ok=(0, 1)):
        raise Conflict(
            "a program of git's settings decides which old objects are kept", where="gc.recentObjectsHook",
            mend="ua-memory git config --unset-all gc.recentObjectsHook",
        )  # fmt: skip
    history.require_whole()


def named_objects(history: History) -> dict[str, str]:
    """{id: path} of all contents that branches, tags and notes lead to."""
    names = ["--branches", "--tags", "--glob=refs/notes/*"]
    rows = history.run("rev-list", "--objects", *names).decode("utf-8", "surrogateescape").splitlines()
    return {sha: path for sha, _, path in (row.partition(" ") for row in rows) if path}


def all_objects(history: History) -> Iterator[tuple[str, bytes, bytes]]:
    """(id, type, content) of every object there is but trees, also of those that nothing leads to."""
    rows = history.run("cat-file", "--batch-all-objects", "--batch-check", "--unordered").split(b"\n")
    found = [(row.split()[0].decode(), row.split()[1]) for row in rows if row]
    names = [(name, kind) for name, kind in found if kind != b"tree"]
    for start in range(0, len(names), 500):
        part = names[start : start + 500]
        out, at = history.run("cat-file", "--batch", stdin="".join(f"{n}\n" for n, _ in part).encode()), 0
        for name, kind in part:
            end = out.index(b"\n", at)
            size = int(out[at:end].split()[2])
            yield name, kind, out[end + 1 : end + 1 + size]
            at = end + size + 2


def back_up(history: History, file: Path) -> None:
    """All refs and what they lead to as one bundle, for its owner alone. CannotWrite where there is one."""
    try:
        make_private(file.parent)
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError as error:
        raise CannotWrite(error.strerror or str(error), where=str(file)) from error
    history.run("bundle", "create", "--quiet", str(file), "--all")
    file.chmod(0o600)  # git puts a new file in its place
    history.run("bundle", "verify", "--quiet", str(file))


def rewrite(
    history: History, bundle: Path, work: Path, contents: Mapping[str, bytes],
    patterns: Sequence[tuple[bytes, int]],
) -> dict[str, tuple[str, str]]:  # fmt: skip
    """Make the history in a bundle anew in the folder `work`, with other contents for some, and messages
    without what matches; put it in the trail's place. {ref: (old, new)} of those that changed. GitFailed."""
    old = {ref.name: ref.id for ref in refs(history)}
    head = history.run("rev-parse", "HEAD^{tree}")
    fresh = _made(history, bundle, work)
    blobs = work / "contents"
    blobs.mkdir()
    for name, data in contents.items():
        (blobs / name).write_bytes(data)
    said = work / "messages.json"
    said.write_text(json.dumps([[pattern.decode("latin-1"), flags] for pattern, flags in patterns]))
    _filtered(fresh, blobs, said)
    new = {ref.name: ref.id for ref in refs(fresh)}
    if new.keys() != old.keys() or fresh.run("rev-parse", f"{history.ref()}^{{tree}}") != head:
        raise GitFailed("the new history does not end where the old one does", where=str(work))
    changed = {name: (old[name], sha) for name, sha in new.items() if old[name] != sha}
    if changed:
        kept = [f"+{pattern}:{_ASIDE}{pattern.removeprefix('refs/')}" for pattern in REWRITTEN]
        how = [
            "--quiet",
            "--no-tags",
            "--no-auto-gc",
            "--no-recurse-submodules",
            "--upload-pack=git-upload-pack",
        ]
        history.run("fetch", *how, str(fresh.git_dir), *kept, env=LOCAL)
        lines = [f"update {name} {sha} {old[name]}" for name, (_, sha) in changed.items()]
        history.run("update-ref", "--stdin", stdin="".join(f"{line}\n" for line in lines).encode())
    return changed


def became(work: Path) -> dict[str, str]:
    """{old: new} of all revisions that a rewriting in `work` went through."""
    rows = (work / "history.git" / "filter-repo" / "commit-map").read_text().splitlines()[1:]
    return {row.partition(" ")[0]: row.partition(" ")[2].strip() for row in rows}


def _made(history: History, bundle: Path, work: Path) -> History:
    fresh = History(work / "history.git", work / "tree", own=False)
    fresh.root.mkdir(parents=True)
    fresh.create()
    fresh.run("symbolic-ref", "HEAD", history.ref())
    wanted = [f"+{pattern}:{pattern}" for pattern in REWRITTEN]
    fresh.run("fetch", "--quiet", "--no-tags", "--update-head-ok", str(bundle), *wanted, env=LOCAL)
    return fresh


def _filtered(fresh: History, blobs: Path, said: Path) -> None:
    """Run git-filter-repo. Revisions that become empty stay: their trailers say what was read."""
    words = [sys.executable, "-m", "git_filter_repo", "--force", "--quiet", "--prune-empty", "never"]
    words += ["--prune-degenerate", "never", "--blob-callback", _BLOB.format(str(blobs))]
    words += ["--message-callback", _MESSAGE.format(str(said))]
    status, _, trouble = fresh.git().execute(
        words, with_extended_output=True, with_exceptions=False, stdout_as_string=False
    )
    if status:
        last = (str(trouble).strip().splitlines() or ["it said nothing"])[-1][:300]
        raise GitFailed(f"git-filter-repo failed: {last}", where=str(fresh.git_dir))


def let_go(history: History, work: Path) -> None:
    """Delete everything that no branch or tag leads to now: old revisions, reflogs, what remotes had."""
    gone = [*refs(history, [f"{_ASIDE}*"]), *refs(history, ["refs/remotes/*", "refs/original/*"])]
    lines = "".join(f"delete {ref.name}\n" for ref in gone if not ref.name.endswith("/HEAD"))
    heads = [ref.name for ref in gone if ref.name.endswith("/HEAD")]
    for name in heads:
        history.run("symbolic-ref", "--delete", name, ok=(0, 1, 128))
    history.run("update-ref", "--stdin", stdin=lines.encode())
    # An editor's last message stays in a file that git never clears.
    for name in ("FETCH_HEAD", "ORIG_HEAD", "COMMIT_EDITMSG", "TAG_EDITMSG"):
        try:
            (history.git_dir / name).unlink(missing_ok=True)
        except OSError as error:
            raise CannotWrite(error.strerror or str(error), where=str(history.git_dir / name)) from error
    history.mend_index()
    if history.behind():  # git prunes nothing that its index names
        raise GitFailed("git's index is locked, and keeps what is to go", where=str(history.git_dir))
    history.run("reflog", "expire", "--expire=now", "--expire-unreachable=now", "--all")
    history.run("repack", "-a", "-d", "-q", "-l")
    history.run("prune", "--expire=now")
    shutil.rmtree(history.git_dir / ASIDE, ignore_errors=True)  # half an object of it may be there
    shutil.rmtree(work, ignore_errors=True)
