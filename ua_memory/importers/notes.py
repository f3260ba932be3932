"""A folder of markdown notes, such as an Obsidian vault: each is copied, under its day where it has one.

A note's day is said by its path (`2026-02-03`, `20260203`, `2026_02_03`, `2026/02/03`), else by its front
matter (`date`, `day`, `created`, `modified`). The file's own time is not
asked: copies and checkouts change it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, datetime

from ua_memory import markdown
from ua_memory.errors import Usage
from ua_memory.importers.found import Files, Found, Note
from ua_memory.records import Problem

DATE_KEYS = ("date", "day", "created", "created_at", "date_created", "creation_date", "modified")
_IN_NAME = re.compile(r"(?<!\d)((?:19|20)\d\d)([-_.]?)(\d\d)\2(\d\d)(?!\d)")
_IN_FOLDERS = re.compile(r"(?:^|/)((?:19|20)\d\d)/(\d\d)/(\d\d)(?!\d)")
_UNFIT = re.compile(r"[\\\x00-\x1f\x7f-\x9f]")
_LONGEST = 200
"""Bytes of a part of a path; with a day before it, it is still a name."""


_DEEPEST = 800
"""Characters of a path below the folder of an import."""


def read(name: str, files: Files) -> Found:
    """Every note of a folder. Usage where there is none."""
    notes, problems, left = collect({path: files[path] for path in sorted(files)}, curated=True)
    if not notes:
        raise Usage("there are no markdown notes", where=name, mend="name the folder that holds them")
    return Found("markdown", name, tuple(notes), problems=tuple(problems), left=tuple(left))


def collect(files: Files, *, curated: bool) -> tuple[list[Note], list[Problem], list[str]]:
    """Notes, what is wrong in them, and what is left out: empty files, and copies of another one.

    `curated` marks those without a day as wanted in any case.
    """
    notes: list[Note] = []
    problems: list[Problem] = []
    left: list[str] = []
    first: dict[str, str] = {}
    for path, data in files.items():
        if not path.lower().endswith(".md"):
            continue
        if not data.strip():
            left.append(f"{path}: empty")
            continue
        made = note(path, data, curated)
        if made.hash in first:
            left.append(f"{path}: the same as {first[made.hash]}")
            continue
        first[made.hash] = path
        notes.append(made)
        problems += trouble(made)
    return notes, problems, left


def note(path: str, data: bytes, curated: bool) -> Note:
    """One file as a note, with its day and its name in the bank."""
    day = day_in(path) or day_by_front(path, data)
    return Note(path, fitting(path, day), data, day, curated and not day)


def trouble(note: Note) -> Iterator[Problem]:
    """What cannot be read of a note as it would stand in a bank, at its place in the source."""
    for problem in markdown.parse(note.data, f"memory/{note.name}").problems:
        yield Problem(note.path, problem.line, problem.message)


def day_in(path: str) -> str | None:
    """The day that a path says, the last one of its name first."""
    stem = path.rpartition("/")[2]
    for match in reversed(list(_IN_NAME.finditer(stem))):
        if day := _real(match[1], match[3], match[4]):
            return day
    folders = _IN_FOLDERS.search(path)
    return _real(*folders.groups()) if folders else None


def day_by_front(path: str, data: bytes) -> str | None:
    """The day that a note's front matter says, by the first of DATE_KEYS that has one."""
    if not data.removeprefix(b"\xef\xbb\xbf").startswith(b"---"):
        return None
    front = markdown.parse(data, f"memory/{path}").front
    values = [front.get(key) for key in DATE_KEYS]
    nested = front.get("metadata")
    values += [nested.get(key) for key in DATE_KEYS] if isinstance(nested, dict) else []
    return next((day for value in values if (day := _day_of(value))), None)


def _day_of(value: object) -> str | None:
    if isinstance(value, datetime | date):
        return value.isoformat()[:10]
    match = _IN_NAME.match(value) if isinstance(value, str) else None
    return _real(match[1], match[3], match[4]) if match else None


def _real(year: str, month: str, day: str) -> str | None:
    try:
        return date(int(year), int(month), int(day)).isoformat()
    except ValueError:
        return None


def fitting(path: str, day: str | None) -> str:
    """A path as a bank can have it: nothing hidden, no control characters, not too long, and its day in front
    of its name where a log's name does not say it yet. Of one that is too deep the inner folders are kept."""
    parts = [_part(part) for part in path.split("/") if part not in ("", ".", "..")]
    stem = _part(parts[-1][: -len(".md")])
    if day and markdown.day_of(f"{stem}.md") != day:
        stem = f"{day}-{stem}"
    folders = parts[:-1]
    while sum(map(len, folders)) + len(folders) + len(stem) > _DEEPEST:
        folders = folders[1:]
    return "/".join([*folders, f"{stem}.md"])


def _part(part: str) -> str:
    clean = _UNFIT.sub("_", part).encode("utf-8", "replace")[:_LONGEST].decode("utf-8", "ignore")
    return f"_{clean[1:]}" if clean.startswith(".") else clean or "_"


def under(files: Files, folder: str) -> dict[str, bytes]:
    """The files below a folder, by their path in it, in order."""
    start = f"{folder}/" if folder else ""
    return {path[len(start) :]: files[path] for path in sorted(files) if path.startswith(start)}
