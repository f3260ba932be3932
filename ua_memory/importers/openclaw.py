"""An OpenClaw workspace (older: Clawdbot): curated `MEMORY.md` first, then the notes in `memory/`.

A workspace is a bank as it stands; this copies one into another. Named may be the workspace, or the state
folder around it (`~/.openclaw`), whose `workspace*` folders are then looked into.
"""

from __future__ import annotations

from dataclasses import replace

from ua_memory import markdown
from ua_memory.errors import Usage
from ua_memory.importers.found import Core, Files, Found, Note
from ua_memory.importers.notes import collect, fitting, note, under
from ua_memory.paths import CORE_NAMES
from ua_memory.records import CoreBlock, Problem

INSTRUCTIONS = ("AGENTS.md", "SOUL.md", "TOOLS.md", "IDENTITY.md", "HEARTBEAT.md", "BOOTSTRAP.md")
"""What tells an agent how to be: prompts, no memories."""
CURATED = ("USER.md",)
DREAMS = ("DREAMS.md", "dreams.md")


def read(name: str, files: Files) -> Found:
    """What a workspace holds. Usage where there is none."""
    roots = [root for root in ("", *_workspaces(files)) if _is_workspace(under(files, root))]
    if not roots:
        raise Usage(
            "no OpenClaw workspace: neither MEMORY.md nor memory/*.md", where=name,
            mend="name the workspace, as ~/.openclaw/workspace or ~/clawd",
        )  # fmt: skip
    if roots[0] == "" or len(roots) == 1:
        return _workspace(name, under(files, roots[0]), roots[0])
    several = ", ".join(roots)
    raise Usage(f"several workspaces: {several}", where=name, mend="name one of them")


def _workspaces(files: Files) -> list[str]:
    return sorted({path.split("/")[0] for path in files if path.startswith("workspace") and "/" in path})


def _is_workspace(files: Files) -> bool:
    core = any(path in CORE_NAMES for path in files)
    return core or any(path.startswith("memory/") and path.endswith(".md") for path in files)


def _workspace(name: str, files: Files, root: str) -> Found:
    memory = {path: data for path, data in files.items() if path.startswith("memory/")}
    memory |= {path: files[path] for path in DREAMS if path in files}
    notes, problems, left = collect(memory, curated=False)
    # The folder of an import stands for `memory/`: relative links between notes go on working.
    notes = [replace(each, name=each.name.removeprefix("memory/")) for each in notes]
    for path in (p for p in CURATED if files.get(p, b"").strip()):
        notes.insert(0, note(path, files[path], True))
    core = _core(files)
    if core:
        problems = [*_core_trouble(core.note), *problems]
    told = [path for path in INSTRUCTIONS if path in files]
    if told:
        left.append(f"{', '.join(told)}: instructions for the agent, no memories")
    name = root or name
    return Found("openclaw", name, tuple(notes), core=core, problems=tuple(problems), left=tuple(left))


def _core(files: Files) -> Core | None:
    path = next((path for path in CORE_NAMES if files.get(path, b"").strip()), None)
    if path is None:
        return None
    blocks = markdown.parse(files[path], CORE_NAMES[0]).of(CoreBlock)
    return Core(Note(path, fitting(path, None), files[path], None, True), blocks)


def _core_trouble(note: Note) -> list[Problem]:
    found = markdown.parse(note.data, CORE_NAMES[0]).problems
    return [Problem(note.path, problem.line, problem.message) for problem in found]
