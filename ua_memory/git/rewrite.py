"""Rewriting the history without some contents, with git-filter-repo."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import socket
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from ua_memory.errors import Conflict, GitFailed, writing
from ua_memory.git.history import History
from ua_memory.git.process import (
    FETCH_MARK,
    IMPORT_MARK,
    STALE_SECONDS,
    GitObject,
    find_locks,
    is_alive,
    is_running,
    read_text,
    remove_locks,
)
from ua_memory.git.remotes import AGREED, LOCAL_ONLY
from ua_memory.git.repository import BROKEN_FOLDER
from ua_memory.paths import make_private

# -- rewriting ---------------------------------------------------------------------------------------------
# git-filter-repo resets work trees and drops remotes, so it runs in a separate bare repository. The bank's
# repository has the old history until the refs are moved at the end.


REWRITTEN = ("refs/heads/*", "refs/tags/*", "refs/notes/*")
"""The refs that are rewritten. Remote-tracking refs are deleted, and the next fetch recreates them."""
_TEMP_REFS = "refs/ua-memory-purge/"
_BLOB_CALLBACK = (
    "import os; p = os.path.join({0!r}, blob.original_id.decode())\n"
    "if os.path.exists(p): blob.data = open(p, 'rb').read()"
)
_MESSAGE_CALLBACK = """import json, re
said = json.load(open({0!r}))
for pattern, flags in said["patterns"]:
  message = re.sub(pattern.encode("latin-1"), b"[forgotten]", message, flags=flags)
def renamed(found):
  old = found[0].decode()
  new = [name for was, name in said["revisions"].items() if was.startswith(old)]
  return new[0][: len(old)].encode() if len(new) == 1 else found[0]
return re.sub(rb"\\b[0-9a-f]{{7,40}}\\b", renamed, message) if said["revisions"] else message"""
_COMMIT_CALLBACK = """import json
revisions = json.load(open({0!r}))["revisions"]
known = lambda parent: revisions.get(parent.decode()) if isinstance(parent, bytes) else None
commit.parents = [(known(each) or "").encode() or each for each in commit.parents]"""


@dataclass(frozen=True, slots=True)
class Ref:
    """A branch or tag: its full name and the id of its object."""

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


def require_rewritable(history: History) -> None:
    """Raise Conflict if a rewrite would harm stashes or other work trees, or the clone is shallow. GitFailed
    if git-filter-repo is missing."""
    if find_spec("git_filter_repo") is None:
        raise GitFailed("git-filter-repo is missing", hint="pip install git-filter-repo")
    history.ref()
    where, hint = str(history.git_dir), "ua-memory git stash list"
    if refs(history, ["refs/stash"]):
        raise Conflict("stashes would be lost", where=where, hint=f"{hint}; apply or drop them first")
    if history.own and history.run("worktree", "list", "--porcelain").count(b"worktree ") > 1:
        raise Conflict(
            "other work trees use this history",
            where=where,
            hint="ua-memory git worktree list; remove the others",
        )
    if history.run("config", "--get", "gc.recentObjectsHook", ok=(0, 1)):
        raise Conflict(
            "a hook in the git settings decides which old objects are kept", where="gc.recentObjectsHook",
            hint="ua-memory git config --unset-all gc.recentObjectsHook",
        )  # fmt: skip
    history.require_whole()


def blob_paths(history: History, revs: Sequence[str] = ()) -> dict[str, str]:
    """{id: path} of all objects reachable from these revisions, by default from branches, tags and notes."""
    names = revs or ["--branches", "--tags", "--glob=refs/notes/*"]
    rows = history.run("rev-list", "--objects", *names).decode("utf-8", "surrogateescape").splitlines()
    return {sha: path for sha, _, path in (row.partition(" ") for row in rows) if path}


def all_objects(history: History) -> Iterator[GitObject]:
    """Every object except trees, also unreachable ones. GitFailed if one is damaged."""
    listing = "--batch-check=%(objectname) %(objecttype)"
    rows = history.run("cat-file", "--batch-all-objects", "--unordered", listing).decode().splitlines()
    names = [name for name, _, kind in (row.partition(" ") for row in rows) if kind != "tree"]
    for start in range(0, len(names), 500):
        yield from filter(None, history.read_objects(names[start : start + 500]))


def back_up(history: History, file: Path) -> None:
    """Write all refs and their objects into a bundle, readable by the owner only. CannotWrite if the file
    exists."""
    with writing(file, None):
        make_private(file.parent)
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    history.run("bundle", "create", "--quiet", str(file), "--all")
    file.chmod(0o600)  # git replaces the file
    history.run("bundle", "verify", "--quiet", str(file))


def rewrite_history(
    history: History, bundle: Path, work: Path, contents: Mapping[str, bytes],
    patterns: Sequence[re.Pattern[bytes]], notes: Sequence[Ref] = (),
) -> dict[str, tuple[str, str]]:  # fmt: skip
    """Rewrite the history of a bundle in the folder `work`, and move the refs to it.

    `contents` are {blob id: new bytes}; matches of `patterns` are removed from messages. `notes` are other
    refs to move to the rewritten commits. Returns {ref: (old, new)} of the changed ones. GitFailed.
    """
    old = {ref.name: ref.id for ref in refs(history)}
    head = history.run("rev-parse", "HEAD^{tree}")
    fresh = workspace(history, work, borrows=False)  # from the backup, which proves that that is complete
    wanted = [f"+{pattern}:{pattern}" for pattern in REWRITTEN]
    fresh.run("fetch", "--quiet", "--no-tags", "--update-head-ok", str(bundle), *wanted, env=LOCAL_ONLY)
    _run_filter_repo(fresh, contents, patterns)
    new = {ref.name: ref.id for ref in refs(fresh)}
    if new.keys() != old.keys() or fresh.run("rev-parse", f"{history.ref()}^{{tree}}") != head:
        raise GitFailed("the new history does not end where the old one does", where=str(work))
    changed = {name: (old[name], sha) for name, sha in new.items() if old[name] != sha}
    if changed:
        refspecs = [f"+{pattern}:{_TEMP_REFS}{pattern.removeprefix('refs/')}" for pattern in REWRITTEN]
        how = ["--quiet", "--no-tags", "--no-auto-gc", "--no-recurse-submodules"]
        how += ["--upload-pack=git-upload-pack"]
        history.run("fetch", *how, str(fresh.git_dir), *refspecs, env=LOCAL_ONLY)
        rows = (fresh.git_dir / "filter-repo" / "commit-map").read_text().splitlines()[1:]
        became = dict(row.split() for row in rows)
        moved = [Ref(name, sha) for name, (_, sha) in changed.items()]
        noted = [Ref(ref.name, became[ref.id]) for ref in notes if ref.id in became]
        move_refs(history, [*moved, *noted], old)
    return changed


def move_refs(history: History, to: Sequence[Ref], old: Mapping[str, str] | None = None) -> None:
    """Move refs in one transaction. GitFailed, with none moved, if one is not at its `old` id ({name: id})
    any more: somebody has committed meanwhile."""
    lines = (f"update {ref.name} {ref.id} {(old or {}).get(ref.name, '')}".rstrip() for ref in to)
    history.run("update-ref", "--stdin", stdin="".join(f"{line}\n" for line in lines).encode())


def workspace(history: History, folder: Path, *, borrows: bool = True) -> History:
    """Create a separate repository in a new folder; if it `borrows`, it can read the history's objects.
    Nothing written to it gets into the history. CannotWrite, GitFailed."""
    fresh = History(folder / "history.git", folder / "tree", own=False)
    with writing(folder, None):
        fresh.root.mkdir(parents=True)
        fresh.create()
        fresh.run("symbolic-ref", "HEAD", history.ref())
        if borrows:
            (fresh.git_dir / "objects" / "info").mkdir(exist_ok=True)
            (fresh.git_dir / "objects" / "info" / "alternates").write_text(f"{history.shared / 'objects'}\n")
            fresh.run("update-ref", history.ref(), str(history.head()))
    return fresh


def rebase_filtered(
    work: History, tip: str, without: Sequence[str], parents: Mapping[str, str],
    contents: Mapping[str, bytes], patterns: Sequence[re.Pattern[bytes]],
) -> None:  # fmt: skip
    """Rewrite the commits up to `tip`, except those reachable from `without`, in a workspace: onto the new
    `parents` ({old: new}), with new `contents`, and messages without matches of `patterns`. The new tip is
    the workspace's branch."""
    move_refs(work, [Ref(work.ref(), tip)])
    revs = [work.ref(), *(f"^{each}" for each in without)]
    if work.run("rev-list", "-1", *revs).strip():
        _run_filter_repo(work, contents, patterns, revs, parents)


def _run_filter_repo(
    fresh: History, contents: Mapping[str, bytes], patterns: Sequence[re.Pattern[bytes]],
    revs: Sequence[str] = (), revisions: Mapping[str, str] | None = None,
) -> None:  # fmt: skip
    """Run git-filter-repo. Commits that become empty stay, since their trailers are needed. `revisions` are
    {old: new} ids to replace in parents and messages. CannotWrite, GitFailed."""
    blobs, said = fresh.root.parent / "contents", fresh.root.parent / "messages.json"
    rows = [[each.pattern.decode("latin-1"), int(each.flags)] for each in patterns]
    words = [sys.executable, "-m", "git_filter_repo", "--force", "--quiet", "--prune-empty", "never"]
    words += ["--prune-degenerate", "never", "--blob-callback", _BLOB_CALLBACK.format(str(blobs))]
    words += ["--message-callback", _MESSAGE_CALLBACK.format(str(said))]
    words += ["--commit-callback", _COMMIT_CALLBACK.format(str(said)), "--refs", *revs] if revs else []
    with writing(blobs.parent, None):
        blobs.mkdir()
        for name, data in contents.items():
            (blobs / name).write_bytes(data)
        said.write_text(json.dumps({"patterns": rows, "revisions": dict(revisions or {})}))
        status, _, trouble = fresh.git().execute(
            words, with_extended_output=True, with_exceptions=False, stdout_as_string=False
        )
    if status:
        last = (str(trouble).strip().splitlines() or ["no output"])[-1][:300]
        raise GitFailed(f"git-filter-repo failed: {last}", where=str(fresh.git_dir))


def delete_unreachable(history: History, work: Path) -> None:
    """Delete all unreachable objects, reflogs and remote-tracking refs. The ref of the commit agreed on with
    a remote stays if it is in this history."""
    gone = refs(history, [f"{_TEMP_REFS}*", "refs/remotes/*", "refs/original/*"])
    gone = [ref for ref in gone if not ref.name.endswith(f"/{AGREED}") or not history.holds(ref.id)]
    for ref in gone:
        if ref.name.endswith("/HEAD"):
            history.run("symbolic-ref", "--delete", ref.name, ok=(0, 1, 128))
    lines = "".join(f"delete {ref.name}\n" for ref in gone if not ref.name.endswith("/HEAD"))
    history.run("update-ref", "--stdin", stdin=lines.encode())
    # git never deletes these files, which may contain a commit message.
    for name in ("FETCH_HEAD", "ORIG_HEAD", "COMMIT_EDITMSG", "TAG_EDITMSG"):
        with writing(history.git_dir / name, None):
            (history.git_dir / name).unlink(missing_ok=True)
    _finish_index(history)
    history.run("reflog", "expire", "--expire=now", "--expire-unreachable=now", "--all")
    history.run("repack", "-a", "-d", "-q", "-l")
    history.run("prune", "--expire=now")
    shutil.rmtree(history.git_dir / BROKEN_FOLDER, ignore_errors=True)  # half an object of it may be there
    shutil.rmtree(work, ignore_errors=True)


def _finish_index(history: History) -> None:
    """Update the index, since git prunes nothing that it names. A lock of a running git is waited for, and
    one that a killed process left is removed as soon as its age shows that. GitFailed."""
    until = time.monotonic() + STALE_SECONDS + 2  # its age is counted in whole seconds
    history.mend_index()
    while history.pending_index_paths():
        locks = [lock for lock in find_locks(history) if lock.file.name == "index.lock"]
        if time.monotonic() > until:
            where, hint = history.git_dir / "index", "see what git says: ua-memory git status"
            for lock in locks:
                where, rm = lock.file, f"rm {shlex.quote(str(lock.file))}"
                hint = f"try again ({lock.held}), or if no git is running there: {rm}"
            what = f"git's index {'is locked' if locks else 'cannot be updated'}"
            raise GitFailed(f"{what}, and still contains what must be removed", where=str(where), hint=hint)
        if not remove_locks(locks):
            time.sleep(PAUSE_SECONDS)
        history.mend_index()


# -- keep files --------------------------------------------------------------------------------------------
# Packs with a `.keep` file and borrowed objects would not be deleted by a rewrite.
#
# git creates a `.keep` file while it receives a pack. A killed git leaves it, and later repacks skip the
# pack. A file of a running git, of another machine or of a person is not deleted.


IMPORT_CHECKS, PAUSE_SECONDS = 20, 0.1
"""So often, and so many seconds apart, it is checked whether a running import has ended."""


def remove_keep_files(history: History) -> None:
    """Delete the `.keep` files of killed gits. Conflict for any other one, and for borrowed objects. Requires
    the bank's lock, so that no git of ours is running."""
    objects = history.shared / "objects"
    if lent := [row for row in read_text(objects / "info" / "alternates").splitlines() if row.strip()]:
        raise Conflict(
            "this history uses objects of another repository, which keeps them", where=lent[0],
            hint=f"ua-memory git repack -a -d, then rm {shlex.quote(str(objects / 'info' / 'alternates'))}",
        )  # fmt: skip
    for mark in sorted((objects / "pack").glob("*.keep")):
        if not _is_stale_mark(read_text(mark).strip(), history):
            raise Conflict(
                "a pack has a .keep file, so its objects would stay", where=str(mark),
                hint=f"if you do not need it: rm {shlex.quote(str(mark))}",
            )  # fmt: skip
        mark.unlink(missing_ok=True)


def _is_stale_mark(said: str, history: History) -> bool:
    """Whether a `.keep` file was left by a git that is no longer running."""
    if said == IMPORT_MARK:
        return not _is_importing(history)
    if found := FETCH_MARK.fullmatch(said):
        return found[2] == socket.gethostname() and not is_alive(int(found[1]))
    return False


def _is_importing(history: History) -> bool:
    """Whether an import into this history is still running after a short wait."""
    for _ in range(IMPORT_CHECKS):
        if not is_running(history, (IMPORT_MARK,)):
            return False
        time.sleep(PAUSE_SECONDS)
    return True
