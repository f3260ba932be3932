"""Claude Code's own memory: one fact a file with front matter (`projects/*/memory/*.md`), and `CLAUDE.md`.

Named may be `~/.claude`, a project's folder in it, a `memory` folder, or a code project with a `CLAUDE.md`.
Session transcripts are no memories yet: a flush reads them.
"""

from __future__ import annotations

import re
from dataclasses import replace

from ua_memory.errors import Usage
from ua_memory.importers.found import Files, Found, Note
from ua_memory.importers.notes import collect, fitting

INSTRUCTIONS = ("CLAUDE.md", "CLAUDE.local.md")
_MEMORY = re.compile(r"(?:projects/[^/]+/)?memory/.+\.md")
_INDEX_LINE = re.compile(r"\s*[-*] \[[^\]]*\]\(([^)]+\.md)\)")


def read(name: str, files: Files) -> Found:
    """The memory files and instructions below a folder. Usage where there are none."""
    talks = sum(path.endswith(".jsonl") for path in files)
    chosen = {path: data for path, data in files.items() if _wanted(path)}
    if not chosen and any(_has_front(data) for path, data in files.items() if "/" not in path):
        chosen = {path: data for path, data in files.items() if "/" not in path}  # the memory folder itself
    made, problems, left = collect(dict(sorted(chosen.items())), curated=True)
    index = {note.path for note in made if _is_index(note, chosen)}
    left += [f"{path}: an index of the notes beside it" for path in sorted(index)]
    notes = tuple(
        replace(note, name=_name(note), curated=True)
        for note in sorted(made, key=lambda n: n.path.rpartition("/")[2] not in INSTRUCTIONS)
        if note.path not in index
    )
    if talks:
        left.append(f"{talks} session transcript{'s' * (talks > 1)}: those are for `ua-memory flush FILE`")
    if not notes:
        told = " (session transcripts are for `ua-memory flush FILE`)" if talks else ""
        raise Usage(
            f"no memory files and no CLAUDE.md{told}", where=name,
            mend="name ~/.claude, or ~/.claude/projects/PROJECT/memory",
        )  # fmt: skip
    return Found("claude-code", name, notes, problems=tuple(problems), left=tuple(left))


def _wanted(path: str) -> bool:
    return path in INSTRUCTIONS or bool(_MEMORY.fullmatch(path))


def _has_front(data: bytes) -> bool:
    return data.removeprefix(b"\xef\xbb\xbf").startswith(b"---") and b"\nname:" in data[:2000]


def _is_index(note: Note, files: Files) -> bool:
    """Whether a MEMORY.md only lists the files beside it."""
    folder, _, base = note.path.rpartition("/")
    if base != "MEMORY.md":
        return False
    lines = [line for line in note.data.decode("utf-8", "replace").splitlines() if line.strip()]
    named = [match[1] for line in lines if (match := _INDEX_LINE.match(line))]
    others = [line for line in lines if not _INDEX_LINE.match(line) and not line.startswith("#")]
    return not others and all(f"{folder}/{file}".removeprefix("/") in files for file in named)


def _name(note: Note) -> str:
    """`projects/-home-u-api/memory/x.md` as `home-u-api/x.md`."""
    parts = [part for part in note.path.split("/") if part not in ("projects", "memory")]
    return fitting("/".join(part.lstrip("-") or part for part in parts), note.day)
