"""Commits as they stand, what differs between their trees, and commits written anew on other parents.

What a history is compared with once it was rewritten, and what this machine alone has is put on top of it
with.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ua_memory.errors import CannotWrite, GitFailed
from ua_memory.history.revisions import NOBODY
from ua_memory.history.trail import History

_TIP = "refs/ua-memory-replay"
_HEADER = re.compile(rb"[0-9a-f]{40} [0-9a-f]{40}\n")
_FIRST_BLOB = 1 << 30
NAME = re.compile(rb"\b[0-9a-f]{7,40}\b")
"""What may be the name of a commit in a message."""

Change = Callable[[bytes, str, str], bytes]
"""What becomes of a content that stands at a path and has a blob id."""


@dataclass(frozen=True, slots=True)
class Node:
    """One commit: who and when as git writes it, to the byte; signatures are left out."""

    id: str
    parents: tuple[str, ...]
    tree: str
    author: bytes
    committer: bytes
    encoding: bytes
    message: bytes


@dataclass(frozen=True, slots=True)
class Entry:
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


def nodes(history: History, tip: str, without: str | None) -> list[Node]:
    """The commits that one history has and another has not, parents first."""
    words = ["rev-list", "--topo-order", "--reverse", tip, *([f"^{without}"] if without else [])]
    names = history.run(*words).decode().split()
    return [_node(name, raw) for name, raw in zip(names, contents(history, names), strict=True)]


def _node(name: str, raw: bytes) -> Node:
    head, _, message = raw.partition(b"\n\n")
    said: dict[bytes, bytes] = {}
    parents = []
    for row in head.split(b"\n"):
        key, _, value = row.partition(b" ")
        if key == b"parent":
            parents.append(value.decode())
        elif key:
            said.setdefault(key, value)
    return Node(
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


def differences(history: History, pairs: Sequence[tuple[str, str]]) -> list[list[Entry]]:
    """What each two trees have otherwise; one process for all."""
    wanted = [pair for pair in dict.fromkeys(pairs) if pair[0] != pair[1]]
    asked = "".join(f"{old} {new}\n" for old, new in wanted).encode()
    words = ["diff-tree", "--stdin", "-r", "-z", "--raw", "--no-renames", "--full-index"]
    out = history.run(*words, stdin=asked) if wanted else b""
    found: dict[tuple[str, str], list[Entry]] = {pair: [] for pair in pairs}
    here: list[Entry] = []
    tokens = iter(out.split(b"\0"))
    for token in tokens:
        while header := _HEADER.match(token):  # several in a row where nothing differed
            old, new = header[0].decode().split()
            here, token = found[old, new], token[header.end() :]
        if token:
            before, after, one, other, _ = token[1:].decode().split(" ")
            path = next(tokens).decode("utf-8", "surrogateescape")
            here.append(Entry(path, (before, after), (one, other)))
    return [found[pair] for pair in pairs]


def empty_tree(history: History) -> str:
    """The id of a tree that has nothing; it is written, so that it can be compared with."""
    return history.run("hash-object", "-w", "-t", "tree", "--stdin", stdin=b"").decode().strip()


def replay(
    history: History, own: Sequence[Node], mapped: Mapping[str, str], change: Change,
    said: Callable[[bytes, Mapping[str, str]], bytes],
) -> dict[str, str]:  # fmt: skip
    """Write commits anew, parents first: on what their parents were `mapped` to, with contents changed and
    messages as `said` by what is mapped by then. {old: new} of them. No ref is moved; nothing leads to
    them."""
    done: dict[str, str] = {}
    for part in _portions(own):
        done |= _replay(history, part, {**mapped, **done}, change, said)
    return done


def _portions(own: Sequence[Node]) -> Iterator[list[Node]]:
    """Commits in runs, none of which names another of its run in its message: names are known afterwards."""
    here: list[Node] = []
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
    history: History, own: Sequence[Node], mapped: Mapping[str, str], change: Change,
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
        self, mark: int, node: Node, parents: Sequence[str], message: bytes, entries: Sequence[Entry]
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

    def _rows(self, entries: Sequence[Entry]) -> Iterator[bytes]:
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
