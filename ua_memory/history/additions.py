"""Every line that ever came into the trail or left it: what each revision changed, and said of itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ua_memory.history.repository import Repository

AT_ONCE = 400
"""Revisions that are read by one git process: its output is held as a whole."""
_COMMIT = b"commit "
_HUNK = re.compile(rb"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_ESCAPED = re.compile(rb"\\([0-7]{3}|.)")


@dataclass(frozen=True, slots=True)
class Addition:
    """Lines that a revision added in a row, from `line` on, in the file `path`; '' is its message."""

    revision: str
    path: str
    line: int
    text: str


@dataclass(slots=True)
class Hunk:
    """Lines in a row of the file `path` that a revision took out, from `old` on, and put in, from `new` on.
    What it put into '' is its message."""

    revision: str
    path: str
    old: int = 1
    new: int = 1
    removed: list[bytes] = field(default_factory=list)
    added: list[bytes] = field(default_factory=list)


def additions(history: Repository, *paths: str, only: Sequence[str] | None = None) -> Iterator[Addition]:
    """What came in, oldest first, through every branch, tag and stash there is; of these paths, or of all.
    With `only` what these revisions brought, in their order."""
    if not history.exists:
        return
    asked = ["rev-list", "--reverse", "--all", "--full-history", "--", *paths]
    listed = only if only is not None else history.run(*asked).decode().split()
    for hunk in hunks(history, listed, *paths):
        if hunk.added:
            text = b"\n".join(hunk.added).decode("utf-8", "replace")
            yield Addition(hunk.revision, hunk.path, hunk.new, text)


def hunks(history: Repository, revisions: Sequence[str], *paths: str) -> Iterator[Hunk]:
    """What these revisions changed, in their order, in these paths or in all."""
    for at in range(0, len(revisions), AT_ONCE):
        some = revisions[at : at + AT_ONCE]
        stdin = "".join(f"{each}\n" for each in some).encode()
        shown = ["--no-walk=unsorted", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames"]
        shown += ["--format=commit %H%n%w(0,1,1)%B", "-p", "-U0", "--text", "--diff-merges=first-parent"]
        out = history.run("log", *shown, "--stdin", "--", *paths, stdin=stdin)
        yield from _read(out, frozenset(some))


def _read(out: bytes, revisions: frozenset[str]) -> Iterator[Hunk]:
    """Rows of a message begin with a blank and those of a file with + or -: none can pass for git's own."""
    hunk = Hunk("", "")
    path, within = "", True
    for row in out.split(b"\n"):
        if row.startswith(_COMMIT) and row[7:].decode("ascii", "replace") in revisions:
            yield hunk
            hunk, path, within = Hunk(row[7:].decode(), ""), "", True
        elif row.startswith(b"diff --git "):
            path, within = "", False
        elif found := _HUNK.match(row):
            yield hunk
            hunk, within = Hunk(hunk.revision, path, int(found[1]), int(found[2])), True
        elif not within and row[:4] in (b"--- ", b"+++ "):
            path = _named(row[4:]) or path  # a file that goes is named above only
        elif within and row[:1] == (b"+" if hunk.path else b" "):
            hunk.added.append(row[1:])
        elif within and hunk.path and row[:1] == b"-":
            hunk.removed.append(row[1:])
    yield hunk


def _named(shown: bytes) -> str:
    """The path in `b/memory/x.md`; '' for none."""
    shown = unquoted(shown.removesuffix(b"\t"))
    return shown[2:].decode("utf-8", "surrogateescape") if shown != b"/dev/null" else ""


def unquoted(shown: bytes) -> bytes:
    """A path as git shows it, which puts it in quotes where it holds something odd."""
    if not shown.startswith(b'"'):
        return shown
    return _ESCAPED.sub(lambda m: bytes([int(m[1], 8)]) if m[1].isdigit() else m[1], shown[1:-1])
