"""Who wrote each line of a file: who brought its words in.

A machine that appends a block id to a person's line has not written it, and neither has what only brings back
lines that were gone: an undo, or the merge that puts back what an old editor buffer had dropped. git's own
`blame` names these, so it is asked again where they found the line.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ua_memory.history.additions import hunks, unquoted
from ua_memory.history.repository import Repository
from ua_memory.history.revisions import MACHINE, BlameLine, blame_lines, parse_trailers

GIVING_BACK = frozenset({"merge", "redo", "restore", "sync", "undo"})
"""The `Memory-Op` of revisions of ours that bring back lines which an earlier revision of the file had."""
AT_ONCE = 20
FEW = 100
"""So many lines are named to git; of more, all are asked for."""
_ID = re.compile(r"(?:^|\s+)\^[A-Za-z0-9-]+\s*$")

Where = tuple[str, str, int]
"""A revision, a file of it and a line of that, counted from 1."""


@dataclass(frozen=True, slots=True)
class Authors:
    """Asks the trail who wrote what. `read` gives the bytes of (revision, path) each."""

    history: Repository
    read: Callable[[Sequence[tuple[str, str]]], list[bytes | None]]

    def written(self, rev: str, path: str, lines: Iterable[int] = ()) -> list[BlameLine]:
        """Who wrote each line of a file as a revision has it, or at least these lines of it."""
        found = {row.line: row for row in self._blame(rev, path, lines)}
        unsure = [n for n, row in found.items() if _unsure(row) and row.text.strip()]
        ignored: set[str] = set()
        while unsure:
            given, back = self._earlier({n: found[n] for n in unsure})
            ignored |= {found[n].revision for n in given}
            again = self._again(rev, path, {n: (found[n].text, where) for n, where in given.items()}, ignored)
            for n, row in [*again, *_each(back, lambda *file: self.written(*file))]:
                found[n] = replace(row, line=n, text=found[n].text)
            unsure = [n for n in given if _unsure(found[n])]
        return list(found.values())

    def _blame(
        self, rev: str, path: str, lines: Iterable[int] = (), ignored: Iterable[str] = ()
    ) -> list[BlameLine]:
        wanted = sorted({*lines})
        some = [f"-L{n},{n}" for n in wanted] if len(wanted) <= FEW else []
        passed = [f"--ignore-rev={each}" for each in ignored]
        out = self.history.run("blame", "--porcelain", "--no-textconv", *passed, *some, rev, "--", path)
        return list(blame_lines(out.decode("utf-8", "surrogateescape")))

    def _again(
        self, rev: str, path: str, given: Mapping[int, tuple[str, Where]], ignored: Iterable[str]
    ) -> Iterator[tuple[int, BlameLine]]:
        """What git says of lines that were given an id when it ignores who gave it. It guesses what they were
        before: where that has other words, it is asked where they really stood."""
        asked = self._blame(rev, path, given, ignored) if given else []
        rows = {row.line: row for row in asked if row.line in given}
        places = [(row.revision, _path(row)) for row in rows.values()]
        files = dict(zip(places, self.read(places), strict=True)) if places else {}
        wrong: dict[int, Where] = {}
        for n, row in rows.items():
            text, where = given[n]
            there = (files[row.revision, _path(row)] or b"").decode("utf-8", "surrogateescape").split("\n")
            if row.revision not in ignored and _words(there[row.was - 1]) == _words(text):
                yield n, row
            else:
                wrong[n] = where
        yield from _each(wrong, lambda *file: self._blame(*file))

    def _earlier(self, rows: Mapping[int, BlameLine]) -> tuple[dict[int, Where], dict[int, Where]]:
        """Where lines stood before that the revision which git names has not written: in the one before it,
        otherwise only in an id; and in an older one, since they were brought back."""
        gone: dict[tuple[str, str], dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        came: dict[tuple[str, str], dict[int, int]] = defaultdict(dict)
        ops: dict[str, str] = {}
        for n, row in rows.items():
            came[row.revision, _path(row)][row.was] = n
        revisions = list(dict.fromkeys(revision for revision, _ in came))
        for hunk in hunks(self.history, revisions, *dict.fromkeys(path for _, path in came)):
            if not hunk.path:
                said = b"\n".join(hunk.added).decode("utf-8", "replace").rstrip("\n")
                ops[hunk.revision] = "".join(parse_trailers(said.rpartition("\n\n")[2]).get("Memory-Op", ()))
            for at, line in enumerate(hunk.removed, hunk.old):
                gone[hunk.revision, hunk.path][_words(line.decode("utf-8", "surrogateescape"))].append(at)
        given: dict[int, Where] = {}
        back: dict[int, Where] = {}
        for (revision, path), lines in came.items():
            left: dict[int, str] = {}
            for _, n in sorted(lines.items()):
                if there := gone[revision, path].get(_words(rows[n].text)):
                    given[n] = (f"{revision}^", path, there.pop(0))
                else:
                    left[n] = rows[n].text
            if left and ops.get(revision) in GIVING_BACK:
                back |= self._stood(revision, path, left)
        return given, back

    def _stood(self, revision: str, path: str, wanted: Mapping[int, str]) -> dict[int, Where]:
        """Where lines last stood in a file before a revision brought them back."""
        found: dict[int, Where] = {}
        left = {n: text.rstrip() for n, text in wanted.items()}
        before = self.history.run("log", "--format=%H", revision, "--", path).decode().split()[1:]
        for at in range(0, len(before), AT_ONCE):
            some = before[at : at + AT_ONCE]
            for rev, data in zip(some, self.read([(each, path) for each in some]), strict=True):
                there = _places((data or b"").decode("utf-8", "surrogateescape").split("\n"))
                here = {n: (rev, path, there[key]) for n, text in left.items() if (key := _key(text, there))}
                left = {n: text for n, text in left.items() if n not in here}
                found |= here
                if not left:
                    return found
        return found


def _each(
    places: Mapping[int, Where], ask: Callable[[str, str, Iterable[int]], Iterable[BlameLine]]
) -> Iterator[tuple[int, BlameLine]]:
    """What is said of lines where they stood earlier; each file is asked for once."""
    files: dict[tuple[str, str], dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for n, (rev, path, line) in places.items():
        files[rev, path][line].append(n)
    for (rev, path), lines in files.items():
        for row in ask(rev, path, lines):
            yield from ((n, row) for n in lines.get(row.line, ()))


def _unsure(row: BlameLine) -> bool:
    """Whether the line may be another's than the author's of the revision that git names."""
    return row.author == MACHINE[0] or row.subject.startswith("merge: ")


def _places(rows: Sequence[str]) -> dict[str, int]:
    """The first line with each text, and with each text without its id."""
    bare = {_words(row): n for n, row in reversed([*enumerate(rows, 1)])}
    return bare | {row.rstrip(): n for n, row in reversed([*enumerate(rows, 1)])}


def _key(text: str, there: Mapping[str, int]) -> str:
    return next((key for key in (text, _words(text)) if key in there), "")


def _words(line: str) -> str:
    """A line without the block id at its end."""
    return _ID.sub("", line).rstrip()


def _path(row: BlameLine) -> str:
    return unquoted(row.path.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")
