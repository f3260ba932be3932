"""What the memory tool says: listings, numbered lines, errors. The wording of what Anthropic's own tool also
says is its wording, which models know; the rest says what to do instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ua_memory.errors import UaMemoryError
from ua_memory.markdown import day_of
from ua_memory.paths import CORE_NAMES, LOGS
from ua_memory.store import Result

ROOT = "/memories"
CHARACTERS = 64_000
"""Of a file in one reply; the rest is asked for with `view_range`."""
DAYS, ROWS = 14, 400
"""Day logs, the latest, and rows in all that a listing shows."""
DEPTH = 2


class MemoryToolError(Exception):
    """What the model did wrong, in words that it can act on: the text of a result with `is_error`."""


def shown(path: str) -> str:
    """A file of the bank by the path that the model knows it by."""
    return f"{ROOT}/MEMORY.md" if path in CORE_NAMES else f"{ROOT}/{path.removeprefix(f'{LOGS}/')}"


def failure(error: UaMemoryError) -> str:
    """An error of the bank's for the model: where, what, and what to do."""
    where = error.where if error.where and error.where.startswith((f"{LOGS}/", *CORE_NAMES)) else None
    what = f"{shown(where)}: {error.what}" if where else error.what
    return f"{what}. To do: {error.mend}." if error.mend else f"{what}."


def told(said: str, result: Result, warnings: Sequence[str] = ()) -> str:
    """A reply, and below it what happened that the model did not ask for."""
    taken = [f"{count} × {kind}" for kind, count in sorted(result.redacted.items())]
    left_out = [f"left out as a secret: {', '.join(taken)}"] if taken else []
    return "\n".join([said, *(f"Note: {note}." for note in (*left_out, *result.notes, *warnings))])


def row(number: int, line: str) -> str:
    """A line with its number, as wide as six digits."""
    return f"{number:>6}\t{line}"


def numbered(path: str, lines: Sequence[str], view_range: object) -> str:
    """The lines of a file, of a range of them, or as many as one reply holds; then what is left out is told.
    MemoryToolError for a range that is none."""
    first, last = _range(view_range, len(lines))
    rows: list[str] = []
    room = CHARACTERS
    for number in range(first, last + 1):
        room -= len(lines[number - 1]) + 8
        if room < 0 and rows:
            rows.append(f"(lines {number} to {last} are not shown: view them with `view_range`)")
            break
        rows.append(row(number, lines[number - 1][:CHARACTERS]))
    return f"Here's the content of {path} with line numbers:\n" + "\n".join(rows)


def _range(asked: object, last: int) -> tuple[int, int]:
    if asked is None:
        return 1, last
    if not isinstance(asked, list | tuple) or len(asked) != 2 or not all(type(n) is int for n in asked):
        raise MemoryToolError("`view_range` is two whole numbers: [first line, last line], -1 for the end.")
    first, end = max(1, asked[0]), last if asked[1] == -1 else min(asked[1], last)
    if first > max(end, 1):
        raise MemoryToolError(f"Invalid `view_range`: {list(asked)}. The file has lines 1 to {last}.")
    return first, end


def listing(path: str, files: Mapping[str, int]) -> str:
    """A folder's files and folders, two levels deep; `files` are {path within it: bytes}. Of day logs only
    the latest are shown, since there is one for each day."""
    rows = _rows(files, "", 1)
    left = ""
    if len(rows) > ROWS:
        rows, left = rows[:ROWS], f"\n({len(rows) - ROWS} more are not shown: view one of the directories)"
    days = sorted(name for name in files if day_of(name) and "/" not in name)
    older = set(days[:-DAYS])
    if older:
        rows = [each for each in rows if each[1] not in older]
        left += f"\n({len(older)} older day logs are not shown, {days[0]} to {days[-DAYS - 1]})"
    total = f"{_size(sum(files.values()))}\t{path}"
    lines = [total, *(f"{_size(size)}\t{path}/{name}" for size, name in rows)]
    head = f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden items:"
    return "\n".join([head, *lines]) + left


def _rows(files: Mapping[str, int], start: str, depth: int) -> list[tuple[int, str]]:
    """(Bytes, name) of what stands in a folder, each folder with a slash and followed by what is in it."""
    here: dict[str, int] = {}
    for name, size in files.items():
        if name.startswith(start):
            head, slash, _ = name[len(start) :].partition("/")
            here[head + slash] = here.get(head + slash, 0) + size
    rows: list[tuple[int, str]] = []
    for name in sorted(here):
        rows.append((here[name], start + name))
        if name.endswith("/") and depth < DEPTH:
            rows += _rows(files, start + name, depth + 1)
    return rows


def _size(count: int) -> str:
    size, units = float(count), ["B", "K", "M", "G"]
    while size >= 1024 and len(units) > 1:
        size, units = size / 1024, units[1:]
    return f"{size:.0f}{units[0]}" if size == int(size) else f"{size:.1f}{units[0]}"


def position(text: str, old: str, path: str) -> int:
    """Where the one occurrence of `old` begins. MemoryToolError where there is none, or more."""
    if not old:
        raise MemoryToolError("`old_str` is empty. To add text, use `insert`.")
    count = text.count(old)
    if not count:
        hidden = " What is shown as [redacted: …] is not in the file." if "[redacted: " in old else ""
        raise MemoryToolError(
            f"No replacement was performed, old_str `{old}` did not appear verbatim in {path}.{hidden}"
        )
    if count > 1:
        places, at = [], text.find(old)
        while at >= 0:
            places.append(text.count("\n", 0, at) + 1)
            at = text.find(old, at + 1)
        raise MemoryToolError(
            f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: "
            f"{', '.join(map(str, places))}. Please ensure it is unique"
        )
    return text.index(old)
