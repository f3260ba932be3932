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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from ua_memory.errors import CannotWrite, Conflict, GitFailed
from ua_memory.git.process import IMPORTS, TAKES_IN, is_there, lives, processes, text
from ua_memory.git.remotes import LOCAL
from ua_memory.git.repository import ASIDE, NOBODY
from ua_memory.git.trail import History
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


# -- replaying ---------------------------------------------------------------------------------------------
# Commits as they stand, what differs between their trees, and commits written anew on other parents.
#
# What a history is compared with once it was rewritten, and what this machine alone has is put on top of it
# with.


_TIP = "refs/ua-memory-replay"
_HEADER = re.compile(rb"[0-9a-f]{40} [0-9a-f]{40}\n")
_FIRST_BLOB = 1 << 30
NAME = re.compile(rb"\b[0-9a-f]{7,40}\b")
"""What may be the name of a commit in a message."""

Change = Callable[[bytes, str, str], bytes]
"""What becomes of a content that stands at a path and has a blob id."""


@dataclass(frozen=True, slots=True)
class RawCommit:
    """One commit: who and when as git writes it, to the byte; signatures are left out."""

    id: str
    parents: tuple[str, ...]
    tree: str
    author: bytes
    committer: bytes
    encoding: bytes
    message: bytes


@dataclass(frozen=True, slots=True)
class TreeChange:
    """A path that two trees have otherwise: modes and blob ids, of which all zeros mean that it is not
    there."""

    path: str
    modes: tuple[str, str]
    blobs: tuple[str, str]


class Quarantine(History):
    """A trail whose new objects go into a folder of their own: another history can be looked at without
    letting it in, and nothing of it stays when the folder goes."""

    def __init__(self, history: History, folder: Path) -> None:
        super().__init__(history.git_dir, history.root, own=history.own)
        self.objects = folder / "objects"
        try:
            self.objects.mkdir(parents=True, mode=0o700)
        except OSError as error:
            raise CannotWrite(error.strerror or str(error), where=str(self.objects)) from error

    def environment(self) -> dict[str, str]:
        """Pinned to the trail, but for where objects are written."""
        there = str(self.shared / "objects").replace("\\", "\\\\").replace('"', '\\"')
        return {
            **super().environment(),
            "GIT_OBJECT_DIRECTORY": str(self.objects),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": f'"{there}"',
        }


def nodes(history: History, tip: str, without: str | None) -> list[RawCommit]:
    """The commits that one history has and another has not, parents first."""
    words = ["rev-list", "--topo-order", "--reverse", tip, *([f"^{without}"] if without else [])]
    names = history.run(*words).decode().split()
    return [_node(name, raw) for name, raw in zip(names, contents(history, names), strict=True)]


def _node(name: str, raw: bytes) -> RawCommit:
    head, _, message = raw.partition(b"\n\n")
    said: dict[bytes, bytes] = {}
    parents = []
    for row in head.split(b"\n"):
        key, _, value = row.partition(b" ")
        if key == b"parent":
            parents.append(value.decode())
        elif key:
            said.setdefault(key, value)
    return RawCommit(
        name, tuple(parents), said[b"tree"].decode(), said[b"author"], said[b"committer"],
        said.get(b"encoding", b""), message,
    )  # fmt: skip


def contents(history: History, names: Sequence[str]) -> list[bytes]:
    """The raw contents of objects that are there. GitFailed where one is missing."""
    asked = "".join(f"{name}\n" for name in names).encode()
    out, at, found = history.run("cat-file", "--batch", stdin=asked), 0, []
    for name in names:
        end = out.index(b"\n", at)
        words = out[at:end].split()
        if len(words) != 3 or not words[2].isdigit():
            raise GitFailed("an object is missing", where=name, mend="ua-memory doctor --mend")
        found.append(out[end + 1 : end + 1 + int(words[2])])
        at = end + int(words[2]) + 2
    return found


def trees(history: History, commits: Sequence[str]) -> dict[str, str]:
    """{commit: its tree}."""
    asked = "".join(f"{name}^{{tree}}\n" for name in commits).encode()
    rows = history.run("cat-file", "--batch-check=%(objectname)", stdin=asked).decode().splitlines()
    return dict(zip(commits, rows, strict=True))


def differences(history: History, pairs: Sequence[tuple[str, str]]) -> list[list[TreeChange]]:
    """What each two trees have otherwise; one process for all."""
    wanted = [pair for pair in dict.fromkeys(pairs) if pair[0] != pair[1]]
    asked = "".join(f"{old} {new}\n" for old, new in wanted).encode()
    words = ["diff-tree", "--stdin", "-r", "-z", "--raw", "--no-renames", "--full-index"]
    out = history.run(*words, stdin=asked) if wanted else b""
    found: dict[tuple[str, str], list[TreeChange]] = {pair: [] for pair in pairs}
    here: list[TreeChange] = []
    tokens = iter(out.split(b"\0"))
    for token in tokens:
        while header := _HEADER.match(token):  # several in a row where nothing differed
            old, new = header[0].decode().split()
            here, token = found[old, new], token[header.end() :]
        if token:
            before, after, one, other, _ = token[1:].decode().split(" ")
            path = next(tokens).decode("utf-8", "surrogateescape")
            here.append(TreeChange(path, (before, after), (one, other)))
    return [found[pair] for pair in pairs]


def empty_tree(history: History) -> str:
    """The id of a tree that has nothing; it is written, so that it can be compared with."""
    return history.run("hash-object", "-w", "-t", "tree", "--stdin", stdin=b"").decode().strip()


def replay(
    history: History, own: Sequence[RawCommit], mapped: Mapping[str, str], change: Change,
    said: Callable[[bytes, Mapping[str, str]], bytes],
) -> dict[str, str]:  # fmt: skip
    """Write commits anew, parents first: on what their parents were `mapped` to, with contents changed and
    messages as `said` by what is mapped by then. {old: new} of them. No ref is moved; nothing leads to
    them."""
    done: dict[str, str] = {}
    for part in _portions(own):
        done |= _replay(history, part, {**mapped, **done}, change, said)
    return done


def _portions(own: Sequence[RawCommit]) -> Iterator[list[RawCommit]]:
    """Commits in runs, none of which names another of its run in its message: names are known afterwards."""
    here: list[RawCommit] = []
    short: set[bytes] = set()
    for node in own:
        if any(name[:7] in short for name in NAME.findall(node.message)):
            yield here
            here, short = [], set()
        here.append(node)
        short.add(node.id[:7].encode())
    if here:
        yield here


def _replay(
    history: History, own: Sequence[RawCommit], mapped: Mapping[str, str], change: Change,
    said: Callable[[bytes, Mapping[str, str]], bytes],
) -> dict[str, str]:  # fmt: skip
    of = trees(history, sorted({node.parents[0] for node in own if node.parents}))
    nothing = empty_tree(history)
    before = [of[node.parents[0]] if node.parents else nothing for node in own]
    changes = differences(history, [(old, node.tree) for old, node in zip(before, own, strict=True)])
    blobs = sorted({e.blobs[1] for each in changes for e in each if e.modes[1][:3] == "100"})
    stream = _Stream(dict(zip(blobs, contents(history, blobs), strict=True)), change)
    marks = {node.id: f":{n}" for n, node in enumerate(own, 1)}
    for n, (node, entries) in enumerate(zip(own, changes, strict=True), 1):
        parents = [mapped.get(name) or marks.get(name) or name for name in node.parents]
        stream.commit(n, node, parents, said(node.message, mapped), entries)
    asked = [b"get-mark :%d\n" % n for n in range(1, len(own) + 1)]
    stream.parts += [*asked, f"reset {_TIP}\nfrom {NOBODY}\n\ndone\n".encode()]
    words = ["fast-import", "--quiet", "--done", "--force", "--date-format=raw-permissive"]
    made = history.run(*words, stdin=b"".join(stream.parts)).decode().split()
    return {node.id: sha for node, sha in zip(own, made, strict=True)}


def brought(history: History, tips: Sequence[str], without: Sequence[str]) -> dict[str, str]:
    """{blob id: path} of the contents that some histories have and others have not."""
    if not tips:
        return {}
    asked = "".join(f"{name}\n" for name in (*tips, *(f"^{each}" for each in without))).encode()
    out = history.run("rev-list", "--objects", "--stdin", stdin=asked).decode("utf-8", "surrogateescape")
    rows = (row.partition(" ") for row in out.splitlines())
    places = {sha: path for sha, _, path in rows if path}
    asked = "".join(f"{sha}\n" for sha in places).encode()
    kinds = history.run("cat-file", "--batch-check=%(objecttype)", stdin=asked).decode().splitlines()
    return {sha: path for (sha, path), kind in zip(places.items(), kinds, strict=True) if kind == "blob"}


class _Stream:
    """What is told to `git fast-import`."""

    def __init__(self, data: Mapping[str, bytes], change: Change) -> None:
        self.data, self.change = data, change
        self.parts: list[bytes] = []
        self._known: dict[tuple[str, str], str] = {}

    def commit(
        self,
        mark: int,
        node: RawCommit,
        parents: Sequence[str],
        message: bytes,
        entries: Sequence[TreeChange],
    ) -> None:
        """One commit and, before it, the contents that it brings."""
        rows = list(self._rows(entries))
        start = b"" if parents else f"reset {_TIP}\n\n".encode()
        head = [start + f"commit {_TIP}\nmark :{mark}".encode(), b"author " + node.author]
        head += [b"committer " + node.committer]
        head += [b"encoding " + node.encoding] if node.encoding else []
        self.parts.append(b"\n".join(head) + b"\ndata %d\n%b\n" % (len(message), message))
        self.parts += [
            f"{word} {parent}\n".encode()
            for word, parent in zip(["from", *["merge"] * len(parents)], parents, strict=False)
        ]
        self.parts += rows
        self.parts.append(b"\n")

    def _rows(self, entries: Sequence[TreeChange]) -> Iterator[bytes]:
        for each in entries:
            raw = each.path.encode("utf-8", "surrogateescape").replace(b"\\", b"\\\\")
            name = b'"' + raw.replace(b'"', b'\\"').replace(b"\n", b"\\n") + b'"'
            if each.blobs[1] == NOBODY:
                yield b"D %b\n" % name
            else:
                blob = self._blob(each.blobs[1], each.path) if each.modes[1][:3] == "100" else each.blobs[1]
                yield b"M %b %b %b\n" % (each.modes[1].encode(), blob.encode(), name)

    def _blob(self, blob: str, path: str) -> str:
        key = (blob, path)
        if key not in self._known:
            data = self.data[blob]
            new = self.change(data, path, blob)
            self._known[key] = blob
            if new != data:
                mark = _FIRST_BLOB + len(self._known)
                self.parts.append(b"blob\nmark :%d\ndata %d\n%b\n" % (mark, len(new), new))
                self._known[key] = f":{mark}"
        return self._known[key]


def hand_over(aside: History, history: History, tip: str, known: str | None) -> None:
    """Bring commits that were made in a quarantine into the trail, with what they need and no more."""
    asked = f"{tip}\n" + (f"^{known}\n" if known else "")
    pack = aside.run("pack-objects", "--stdout", "--revs", "--quiet", stdin=asked.encode())
    history.run("index-pack", "--stdin", "--fix-thin", stdin=pack)


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
            "this history borrows objects, and where they come from keeps them", where=lent[0],
            mend=f"ua-memory git repack -a -d, then rm {shlex.quote(str(objects / 'info' / 'alternates'))}",
        )  # fmt: skip
    for mark in sorted((objects / "pack").glob("*.keep")):
        if not _is_left(text(mark).strip(), history):
            raise Conflict(
                "a pack is marked to be kept, which would keep it", where=str(mark),
                mend=f"if no git is at work there, and you do not need it: rm {shlex.quote(str(mark))}",
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
    places = [place.resolve() for place in (history.git_dir, history.shared, history.root)]
    for _ in range(WAITS):
        if not any(
            IMPORTS in words and is_there(process, words, places) is not False
            for process, words in processes()
        ):
            return False
        time.sleep(PAUSE)
    return True
