"""The commands of the memory tool on the files of a bank: a reply, or an error that a model can act on.

Commands, parameters and replies are those of Anthropic's own file-system tool, whose texts models know.
`/memories/MEMORY.md` is core memory; a name that does not end in `.md` is given it. Each change is one
revision.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ua_memory import core, notes, redaction
from ua_memory.errors import UaMemoryError
from ua_memory.markdown import readable
from ua_memory.memory import Memory
from ua_memory.memory_tool import sdk, texts
from ua_memory.memory_tool.texts import ROOT, MemoryToolError
from ua_memory.notes import Note
from ua_memory.paths import CORE_NAMES, LOGS, confined, is_truth
from ua_memory.store import Draft
from ua_memory.wording import OFF

TYPE, NAME = "memory_20250818", "memory"
DOOR = "memory-tool"
AROUND = 2
"""Lines shown on either side of an edit."""


class _Tool:
    """The tool over one bank, however its caller waits for it."""

    name = NAME

    def __init__(
        self, memory: Memory, *, session: str | None = None, cache_control: Mapping[str, str] | None = None
    ) -> None:
        self.memory, self.session, self._cache_control = memory, session, cache_control
        sdk.declare(type(self), waits=isinstance(self, AsyncMemoryTool))

    def to_dict(self) -> dict[str, Any]:
        """What stands in `tools` of a request."""
        more = {"cache_control": dict(self._cache_control)} if self._cache_control else {}
        return {"type": TYPE, "name": NAME, **more}

    def answer(self, tool_use: Any) -> dict[str, Any]:
        """The `tool_result` block for a `tool_use` block of the model's, errors included."""
        given = tool_use if isinstance(tool_use, Mapping) else vars(tool_use)
        result = {"type": "tool_result", "tool_use_id": given["id"]}
        try:
            return {**result, "content": self._carried_out(given["input"])}
        except MemoryToolError as error:
            return {**result, "content": str(error), "is_error": True}

    def _carried_out(self, input: object) -> str:
        try:
            return self._command(input)
        except UaMemoryError as error:
            raise sdk.refusal(texts.failure(error)) from error
        except MemoryToolError as error:
            raise sdk.refusal(str(error)) from None

    def _command(self, input: object) -> str:
        if not self.memory.config.enabled:
            raise MemoryToolError(OFF)
        given = input if isinstance(input, Mapping) else {}
        command = given.get("command")
        if not isinstance(command, str) or command not in _COMMANDS:
            raise MemoryToolError(f"Unknown command: {command}. Use one of {', '.join(_COMMANDS)}.")
        work, wanted = _COMMANDS[command]
        values = []
        for key, kind in wanted.items():
            value = given.get(key)
            if not isinstance(value, kind) or isinstance(value, bool):
                raise MemoryToolError(f"`{command}` needs `{key}`, {_KINDS[kind]}.")
            values.append(value.replace("\r\n", "\n") if isinstance(value, str) else value)
        if command == "view":
            values.append(given.get("view_range"))
        return work(self, *values)

    # -- the commands ----------------------------------------------------------------------------------------

    def _view(self, path: str, view_range: object) -> str:
        files = {f.path: f.size for f in self.memory.store.files()}
        here = _inner(path)
        folder = f"{LOGS}/{here}/" if here else f"{LOGS}/"
        if not here or any(name.startswith(folder) for name in files):
            found = {name.removeprefix(folder): n for name, n in files.items() if name.startswith(folder)}
            if not here:
                found |= {CORE_NAMES[0]: n for name, n in files.items() if name in CORE_NAMES}  # noqa: B035
            return texts.listing(path.rstrip("/"), found)
        file = self._file(path)
        if file not in files:
            raise MemoryToolError(f"The path {path} does not exist. Please provide a valid path.")
        return texts.numbered(path, self._shown(notes.note(file, self.memory.store.truth(file))), view_range)

    def _create(self, path: str, file_text: str) -> str:
        with self._revision("create") as draft:
            file = self._file(path)
            if draft.exists(file):
                raise MemoryToolError(f"File {path} already exists")
            if self._folder(path):
                raise MemoryToolError(f"The path {path} is a directory.")
            notes.create(draft, file, file_text)
        return texts.told(f"File created successfully at: {path}", draft.result)

    def _str_replace(self, path: str, old_str: str, new_str: str) -> str:
        with self._revision("edit") as draft:
            before = self._note(draft, path)
            text = before.text
            at = texts.position(text, old_str, path)
            text = text[:at] + new_str + text[at + len(old_str) :]
            warnings = notes.change(self.memory.store, draft, before.path, text)
            after = notes.note(before.path, draft.read(before.path))
        line = text.count("\n", 0, at)
        lines = self._shown(after)
        rows = range(max(0, line - AROUND), min(len(lines), line + AROUND + 1))
        snippet = "\n".join(texts.row(n + 1, lines[n]) for n in rows)
        said = "The memory file has been edited. Here is the snippet showing the change (with line numbers):"
        return texts.told(f"{said}\n{snippet}", draft.result, warnings)

    def _insert(self, path: str, insert_line: int, insert_text: str) -> str:
        with self._revision("insert") as draft:
            before = self._note(draft, path)
            lines = list(before.lines)
            if not 0 <= insert_line <= len(lines):
                raise MemoryToolError(
                    f"Invalid `insert_line` parameter: {insert_line}. "
                    f"It should be within the range [0, {len(lines)}]."
                )
            lines.insert(insert_line, insert_text.rstrip("\n"))
            warnings = notes.change(self.memory.store, draft, before.path, "\n".join(lines) + "\n")
        return texts.told(f"The file {path} has been edited.", draft.result, warnings)

    def _delete(self, path: str) -> str:
        if not _inner(path):
            raise MemoryToolError(f"Cannot delete the {ROOT} directory itself")
        with self._revision("delete") as draft:
            for file in self._all(draft, path):
                notes.remove(self.memory.store, draft, file)
        return texts.told(f"Successfully deleted {path}", draft.result)

    def _rename(self, old_path: str, new_path: str) -> str:
        if not _inner(old_path):
            raise MemoryToolError(f"Cannot rename the {ROOT} directory itself")
        with self._revision("rename") as draft:
            draft.subject = f"memory tool: rename {_inner(old_path)} to {_inner(new_path)}"[:200]
            for file in self._all(draft, old_path):
                inner = file.removeprefix(f"{LOGS}/{_inner(old_path)}/")
                to = self._file(new_path if inner == file else f"{new_path.rstrip('/')}/{inner}")
                if draft.exists(to) or self._folder(new_path):
                    raise MemoryToolError(f"The destination {new_path} already exists")
                notes.move(self.memory.store, draft, file, to)
        return texts.told(f"Successfully renamed {old_path} to {new_path}", draft.result)

    def _shown(self, note: Note) -> list[str]:
        """The lines of a note without what a model should not see."""
        text = redaction.masked(readable("\n".join(note.lines)), self.memory.config.redact)
        return text.split("\n") if note.lines else []

    # -- the bank --------------------------------------------------------------------------------------------

    @contextmanager
    def _revision(self, what: str) -> Iterator[Draft]:
        with self.memory.store.revision(f"note {what}", door=DOOR, session=self.session) as draft:
            yield draft
            changed = ", ".join(name.removeprefix(f"{LOGS}/") for name in sorted(draft.changed()))
            draft.subject = draft.subject or f"memory tool: {what} {changed}"[:200]

    def _file(self, path: str) -> str:
        """The file of the bank that a path means, whether it is there or not."""
        inner = _inner(path)
        if inner == CORE_NAMES[0]:
            return core.core_path(self.memory.store)
        file = f"{LOGS}/{inner}" if inner.endswith(".md") else f"{LOGS}/{inner}.md"
        half = any("\ud800" <= letter <= "\udfff" for letter in inner)  # JSON can say it, no file's name can
        if not inner or half or not is_truth(file):
            raise MemoryToolError(
                f"The path {path} cannot be used: name a file below {ROOT}, with no part that is empty or "
                "starts with a dot, and no backslashes."
            )
        confined(self.memory.store.bank.root, file)
        return file

    def _folder(self, path: str) -> list[str]:
        """The files below a path that is a folder; none where it is none."""
        start = f"{LOGS}/{_inner(path)}/"
        return [f.path for f in self.memory.store.files() if f.path.startswith(start)]

    def _note(self, draft: Draft, path: str) -> Note:
        file = self._file(path) if _inner(path) else ""
        if not file or (not draft.exists(file) and self._folder(path)):
            raise MemoryToolError(f"The path {path} is not a file.")
        if not draft.exists(file):
            raise MemoryToolError(f"The path {path} does not exist. Please provide a valid path.")
        return notes.note(file, draft.read(file))

    def _all(self, draft: Draft, path: str) -> list[str]:
        """The file that a path means, or those below it."""
        file, below = self._file(path), self._folder(path)
        if below and draft.exists(file):
            raise MemoryToolError(f"{path} is a directory and also a file: name the file {path}.md")
        if not below and not draft.exists(file):
            raise MemoryToolError(f"The path {path} does not exist")
        return below or [file]


class MemoryTool(_Tool):
    """The tool over one bank. `session` names the conversation in every commit; `cache_control` goes into the
    tool's declaration. The SDK's tool runner takes it if the SDK was imported before the tool was made."""

    def call(self, input: object) -> str:
        """Carry out one command, as the model gave it. MemoryToolError, which is the SDK's `ToolError`, too,
        where the SDK is loaded."""
        return self._carried_out(input)


class AsyncMemoryTool(_Tool):
    """The same for the SDK's asynchronous tool runner: commands, which wait for the disk, run in a thread."""

    async def call(self, input: object) -> str:
        """As `MemoryTool.call`."""
        return await asyncio.to_thread(self._carried_out, input)


_COMMANDS: Mapping[str, tuple[Callable[..., str], Mapping[str, type]]] = {
    "view": (_Tool._view, {"path": str}),
    "create": (_Tool._create, {"path": str, "file_text": str}),
    "str_replace": (_Tool._str_replace, {"path": str, "old_str": str, "new_str": str}),
    "insert": (_Tool._insert, {"path": str, "insert_line": int, "insert_text": str}),
    "delete": (_Tool._delete, {"path": str}),
    "rename": (_Tool._rename, {"old_path": str, "new_path": str}),
}
_KINDS: Mapping[type, str] = {str: "a text", int: "a whole number"}


def _inner(path: str) -> str:
    """A path below `/memories`, empty for that itself. MemoryToolError where it leads out."""
    if path != ROOT and not path.startswith(f"{ROOT}/"):
        raise MemoryToolError(f"Path must start with {ROOT}, got: {path}")
    inner = path[len(ROOT) :].strip("/")
    if ".." in inner.split("/"):
        raise MemoryToolError(f"Path {path} would escape {ROOT} directory")
    return inner
