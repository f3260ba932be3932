"""Every line that ever came into the trail: what each revision added, and what it said of itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ua_memory.history.trail import History

AT_ONCE = 400
"""Revisions that are read by one git process: its output is held as a whole."""
_COMMIT = b"commit "
_HUNK = re.compile(rb"@@ -\S+ \+(\d+)(?:,\d+)? @@")
_ESCAPED = re.compile(rb"\\([0-7]{3}|.)")


@dataclass(frozen=True, slots=True)
class Addition:
    """Lines that a revision added in a row, from `line` on, in the file `path`; '' is its message."""

    revision: str
    path: str
    line: int
    text: str


def additions(history: History, *paths: str, only: Sequence[str] | None = None) -> Iterator[Addition]:
    """What came in, oldest first, through every branch, tag and stash there is; of these paths, or of all.
    With `only` what these revisions brought, in their order."""
    if not history.exists:
        return
    asked = ["rev-list", "--reverse", "--all", "--full-history", "--", *paths]
    listed = [*only] if only is not None else history.run(*asked).decode().split()
    for at in range(0, len(listed), AT_ONCE):
        some = listed[at : at + AT_ONCE]
        stdin = "".join(f"{each}\n" for each in some).encode()
        shown = ["--no-walk=unsorted", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames"]
        shown += ["--format=commit %H%n%w(0,1,1)%B", "-p", "-U0", "--text", "--diff-merges=first-parent"]
        out = history.run("log", *shown, "--stdin", "--", *paths, stdin=stdin)
        yield from _read(out, frozenset(some))


def _read(out: bytes, revisions: frozenset[str]) -> Iterator[Addition]:
    """Rows of a message begin with a blank and those of a file with + or -: none can pass for git's own."""
    revision, path, start = "", "", 1
    held: list[bytes] = []

    def taken() -> Iterator[Addition]:
        if held:
            yield Addition(revision, path, start, b"\n".join(held).decode("utf-8", "replace"))
            held.clear()

    within = True
    for row in out.split(b"\n"):
        if row.startswith(_COMMIT) and row[7:].decode("ascii", "replace") in revisions:
            yield from taken()
            revision, path, start, within = row[7:].decode(), "", 1, True
        elif row.startswith(b"diff --git "):
            yield from taken()
            within = False
        elif found := _HUNK.match(row):
            yield from taken()
            start, within = int(found[1]), True
        elif not within and row.startswith(b"+++ "):
            path = _named(row[4:])
        elif within and row[:1] == (b"+" if path else b" "):
            held.append(row[1:])
    yield from taken()


def _named(shown: bytes) -> str:
    """The path in `b/memory/x.md`, which git puts in quotes where it holds something odd; '' for none."""
    shown = shown.removesuffix(b"\t")
    if shown.startswith(b'"'):
        shown = _ESCAPED.sub(lambda m: bytes([int(m[1], 8)]) if m[1].isdigit() else m[1], shown[1:-1])
    return shown.removeprefix(b"b/").decode("utf-8", "surrogateescape") if shown != b"/dev/null" else ""
