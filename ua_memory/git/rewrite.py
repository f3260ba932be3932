"""A history written again without some contents, beside the old one, then put in its place."""

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
from ua_memory.git.process import IMPORTS, TAKES_IN, GitObject, at_work, lives, text
from ua_memory.git.remotes import AGREED, LOCAL
from ua_memory.git.repository import ASIDE
from ua_memory.paths import make_private

# -- rewriting ---------------------------------------------------------------------------------------------
# A history written anew without some contents: made beside the old one, then put in its place.
#
# The work is git-filter-repo's, in a bare repository of its own: it resets work trees and drops remotes,
# which must not happen to somebody's repository. What is in the trail until the very end is the old
# history.


REWRITTEN = ("refs/heads/*", "refs/tags/*", "refs/notes/*")
"""The refs that are rewritten. Those of remotes are only remembered, and a fetch brings them again."""
_ASIDE = "refs/ua-memory-purge/"
_BLOB = (
    "import os; p = os.path.join({0!r}, blob.original_id.decode())\n"
    "if os.path.exists(p): blob.data = open(p, 'rb').read()"
)
_MESSAGE = """import json, re
said = json.load(open({0!r}))
for pattern, flags in said["patterns"]:
  message = re.sub(pattern.encode("latin-1"), b"[forgotten]", message, flags=flags)
def renamed(found):
  old = found[0].decode()
  new = [name for was, name in said["revisions"].items() if was.startswith(old)]
  return new[0][: len(old)].encode() if len(new) == 1 else found[0]
return re.sub(rb"\\b[0-9a-f]{{7,40}}\\b", renamed, message) if said["revisions"] else message"""
_COMMIT = """import json
revisions = json.load(open({0!r}))["revisions"]
known = lambda parent: revisions.get(parent.decode()) if isinstance(parent, bytes) else None
commit.parents = [(known(each) or "").encode() or each for each in commit.parents]"""


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


def named_objects(history: History, revs: Sequence[str] = ()) -> dict[str, str]:
    """{id: path} of all contents that these revisions lead to, else branches, tags and notes."""
    names = revs or ["--branches", "--tags", "--glob=refs/notes/*"]
    rows = history.run("rev-list", "--objects", *names).decode("utf-8", "surrogateescape").splitlines()
    return {sha: path for sha, _, path in (row.partition(" ") for row in rows) if path}


def all_objects(history: History) -> Iterator[GitObject]:
    """Every object there is but trees, also those that nothing leads to. GitFailed where one is damaged."""
    listing = "--batch-check=%(objectname) %(objecttype)"
    rows = history.run("cat-file", "--batch-all-objects", "--unordered", listing).decode().splitlines()
    names = [name for name, _, kind in (row.partition(" ") for row in rows) if kind != "tree"]
    for start in range(0, len(names), 500):
        yield from filter(None, history.read_objects(names[start : start + 500]))


def back_up(history: History, file: Path) -> None:
    """All refs and what they lead to as one bundle, for its owner alone. CannotWrite where there is one."""
    with writing(file, None):
        make_private(file.parent)
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    history.run("bundle", "create", "--quiet", str(file), "--all")
    file.chmod(0o600)  # git puts a new file in its place
    history.run("bundle", "verify", "--quiet", str(file))


def rewrite(
    history: History, bundle: Path, work: Path, contents: Mapping[str, bytes],
    patterns: Sequence[re.Pattern[bytes]], notes: Sequence[Ref] = (),
) -> dict[str, tuple[str, str]]:  # fmt: skip
    """Make the history in a bundle anew in the folder `work`, with other contents for some, and messages
    without what matches; put it in the trail's place. `notes` are refs that go on to what their revision
    became. {ref: (old, new)} of the branches and tags that changed. GitFailed."""
    old = {ref.name: ref.id for ref in refs(history)}
    head = history.run("rev-parse", "HEAD^{tree}")
    fresh = workspace(history, work, borrows=False)  # made from the backup, which proves that it is whole
    wanted = [f"+{pattern}:{pattern}" for pattern in REWRITTEN]
    fresh.run("fetch", "--quiet", "--no-tags", "--update-head-ok", str(bundle), *wanted, env=LOCAL)
    _filtered(fresh, contents, patterns)
    new = {ref.name: ref.id for ref in refs(fresh)}
    if new.keys() != old.keys() or fresh.run("rev-parse", f"{history.ref()}^{{tree}}") != head:
        raise GitFailed("the new history does not end where the old one does", where=str(work))
    changed = {name: (old[name], sha) for name, sha in new.items() if old[name] != sha}
    if changed:
        kept = [f"+{pattern}:{_ASIDE}{pattern.removeprefix('refs/')}" for pattern in REWRITTEN]
        how = ["--quiet", "--no-tags", "--no-auto-gc", "--no-recurse-submodules"]
        how += ["--upload-pack=git-upload-pack"]
        history.run("fetch", *how, str(fresh.git_dir), *kept, env=LOCAL)
        rows = (fresh.git_dir / "filter-repo" / "commit-map").read_text().splitlines()[1:]
        became = dict(row.split() for row in rows)
        moved = [Ref(name, sha) for name, (_, sha) in changed.items()]
        noted = [Ref(ref.name, became[ref.id]) for ref in notes if ref.id in became]
        move(history, [*moved, *noted], old)
    return changed


def move(history: History, to: Sequence[Ref], old: Mapping[str, str] | None = None) -> None:
    """Let refs lead elsewhere: all of them or, where git is killed or fails, none. GitFailed where one does
    not lead any more to what `old` ({name: id}) says: somebody has committed meanwhile."""
    lines = (f"update {ref.name} {ref.id} {(old or {}).get(ref.name, '')}".rstrip() for ref in to)
    history.run("update-ref", "--stdin", stdin="".join(f"{line}\n" for line in lines).encode())


def workspace(history: History, folder: Path, *, borrows: bool = True) -> History:
    """A repository in a new folder in which to work on a history, whose objects it can read if it `borrows`
    them. What comes into it does not get into the history. CannotWrite, GitFailed."""
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


def replant(
    work: History, tip: str, without: Sequence[str], parents: Mapping[str, str],
    contents: Mapping[str, bytes], patterns: Sequence[re.Pattern[bytes]],
) -> str:  # fmt: skip
    """Make the revisions up to `tip` that are not `without` anew in a workspace: on what their `parents` are
    now ({old: new}), with other contents for some, and messages without what matches. The new tip; the
    workspace's branch leads to it."""
    move(work, [Ref(work.ref(), tip)])
    revs = [work.ref(), *(f"^{each}" for each in without)]
    if work.run("rev-list", "-1", *revs).strip():
        _filtered(work, contents, patterns, revs, parents)
    return work.resolve(work.ref())


def _filtered(
    fresh: History, contents: Mapping[str, bytes], patterns: Sequence[re.Pattern[bytes]],
    revs: Sequence[str] = (), revisions: Mapping[str, str] | None = None,
) -> None:  # fmt: skip
    """Run git-filter-repo. Revisions that become empty stay: their trailers say what was read. `revisions`
    are names of parents, and in messages, for which others stand. CannotWrite, GitFailed."""
    blobs, said = fresh.root.parent / "contents", fresh.root.parent / "messages.json"
    rows = [[each.pattern.decode("latin-1"), int(each.flags)] for each in patterns]
    words = [sys.executable, "-m", "git_filter_repo", "--force", "--quiet", "--prune-empty", "never"]
    words += ["--prune-degenerate", "never", "--blob-callback", _BLOB.format(str(blobs))]
    words += ["--message-callback", _MESSAGE.format(str(said))]
    words += ["--commit-callback", _COMMIT.format(str(said)), "--refs", *revs] if revs else []
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


def let_go(history: History, work: Path) -> None:
    """Delete everything that no branch or tag leads to now: old revisions, reflogs, what remotes had. Up to
    where a remote agreed stays noted if that is in this history."""
    gone = refs(history, [f"{_ASIDE}*", "refs/remotes/*", "refs/original/*"])
    gone = [ref for ref in gone if not ref.name.endswith(f"/{AGREED}") or not history.holds(ref.id)]
    for ref in gone:
        if ref.name.endswith("/HEAD"):
            history.run("symbolic-ref", "--delete", ref.name, ok=(0, 1, 128))
    lines = "".join(f"delete {ref.name}\n" for ref in gone if not ref.name.endswith("/HEAD"))
    history.run("update-ref", "--stdin", stdin=lines.encode())
    # An editor's last message stays in a file that git never clears.
    for name in ("FETCH_HEAD", "ORIG_HEAD", "COMMIT_EDITMSG", "TAG_EDITMSG"):
        with writing(history.git_dir / name, None):
            (history.git_dir / name).unlink(missing_ok=True)
    history.mend_index()
    if history.pending_index_paths():  # git prunes nothing that its index names
        raise GitFailed(
            "git's index is locked, and still contains what must be removed", where=str(history.git_dir)
        )
    history.run("reflog", "expire", "--expire=now", "--expire-unreachable=now", "--all")
    history.run("repack", "-a", "-d", "-q", "-l")
    history.run("prune", "--expire=now")
    shutil.rmtree(history.git_dir / ASIDE, ignore_errors=True)  # half an object of it may be there
    shutil.rmtree(work, ignore_errors=True)


# -- kept --------------------------------------------------------------------------------------------------
# What a rewriting would not get rid of: packs that are marked to be kept, objects that are borrowed.
#
# git marks a pack (`.keep`) while it takes it in, so that nobody repacks it before a ref leads there, and
# takes the mark off again. Who is killed in between leaves it there, and every later repack leaves the
# pack. A mark of a git that lives, of another machine, or of a person's is none of ours to take off.


WAITS, PAUSE = 20, 0.1
"""So often, and so many seconds each, an import that is at work is waited for."""


def unmarked(history: History) -> None:
    """Take the marks off that a killed git has left. Conflict names one that is somebody's, and where
    objects are borrowed from; call it with the bank's lock, so that no git of ours is at work."""
    objects = history.shared / "objects"
    if lent := [row for row in text(objects / "info" / "alternates").splitlines() if row.strip()]:
        raise Conflict(
            "this history uses objects of another repository, which keeps them", where=lent[0],
            hint=f"ua-memory git repack -a -d, then rm {shlex.quote(str(objects / 'info' / 'alternates'))}",
        )  # fmt: skip
    for mark in sorted((objects / "pack").glob("*.keep")):
        if not _is_left(text(mark).strip(), history):
            raise Conflict(
                "a pack has a .keep file, so its objects would stay", where=str(mark),
                hint=f"if you do not need it: rm {shlex.quote(str(mark))}",
            )  # fmt: skip
        mark.unlink(missing_ok=True)


def _is_left(said: str, history: History) -> bool:
    """Whether a mark was left by a git that is no more."""
    if said == IMPORTS:
        return not _import_at_work(history)
    if found := TAKES_IN.fullmatch(said):
        return found[2] == socket.gethostname() and not lives(int(found[1]))
    return False


def _import_at_work(history: History) -> bool:
    """Whether an import into this history goes on. It is waited for: none takes long."""
    for _ in range(WAITS):
        if not at_work(history, (IMPORTS,)):
            return False
        time.sleep(PAUSE)
    return True
