"""The memory tool of the Anthropic API (`memory_20250818`): `/memories` is the bank's folder."""

from __future__ import annotations

import asyncio
import re
import sys
from abc import ABCMeta
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

from ua_memory.discovery import CORE_NAMES, LOGS
from ua_memory.errors import Malformed, UaMemoryError, Usage
from ua_memory.git.repository import MACHINE
from ua_memory.knowledge import core, trust
from ua_memory.knowledge.statements import name_of
from ua_memory.llm.tools import MemoryToolParam, SdkAsyncTool, SdkTool
from ua_memory.markdown import document as markdown_document
from ua_memory.markdown import lines as markdown_lines
from ua_memory.markdown.document import Document
from ua_memory.markdown.lines import FileKind, day_of, readable
from ua_memory.memory import Memory
from ua_memory.paths import confined, is_memory_file
from ua_memory.records import CoreBlock, Fact, Passage, Place, Record
from ua_memory.store.draft import Draft, Result
from ua_memory.store.store import Store
from ua_memory.text import redaction
from ua_memory.text.wording import OFF

# -- texts -------------------------------------------------------------------------------------------------
# What the memory tool says: listings, numbered lines, errors. The wording of what Anthropic's own tool also
# says is its wording, which models know; the rest says what to do instead.


ROOT = "/memories"
REPLY_CHARACTERS = 64_000
"""Of a file in one reply; the rest is asked for with `view_range`."""
LISTED_DAYS, LISTED_ROWS = 14, 400
"""Day logs, the latest, and rows in all that a listing shows."""
LISTING_DEPTH = 2


class MemoryToolError(Exception):
    """What the model did wrong, in words that it can act on: the text of a result with `is_error`."""


def model_path(path: str) -> str:
    """The path by which the model knows a file of the bank."""
    return f"{ROOT}/MEMORY.md" if path in CORE_NAMES else f"{ROOT}/{path.removeprefix(f'{LOGS}/')}"


def error_text(error: UaMemoryError) -> str:
    """An error of the bank for the model: where, what, and a hint."""
    where = error.where if error.where and error.where.startswith((f"{LOGS}/", *CORE_NAMES)) else None
    what = f"{model_path(where)}: {error.what}" if where else error.what
    return f"{what}. Hint: {error.hint}." if error.hint else f"{what}."


def with_notes(said: str, result: Result, warnings: Sequence[str] = ()) -> str:
    """A reply with notes below: what was redacted, and warnings."""
    taken = [f"{count} × {kind}" for kind, count in sorted(result.redacted.items())]
    left_out = [f"left out as a secret: {', '.join(taken)}"] if taken else []
    return "\n".join([said, *(f"Note: {note}." for note in (*left_out, *result.notes, *warnings))])


def numbered_line(number: int, line: str) -> str:
    """A line with its number, padded to six digits."""
    return f"{number:>6}\t{line}"


def number_lines(path: str, lines: Sequence[str], view_range: object) -> str:
    """The lines of a file, or of a range, with numbers, as many as fit into one reply. MemoryToolError for an
    invalid range."""
    first, last = _line_range(view_range, len(lines))
    rows: list[str] = []
    left = REPLY_CHARACTERS
    for number in range(first, last + 1):
        left -= len(lines[number - 1]) + 8
        if left < 0 and rows:
            rows.append(f"(lines {number} to {last} are not shown: view them with `view_range`)")
            break
        rows.append(numbered_line(number, lines[number - 1][:REPLY_CHARACTERS]))
    return f"Here's the content of {path} with line numbers:\n" + "\n".join(rows)


def _line_range(asked: object, last: int) -> tuple[int, int]:
    if asked is None:
        return 1, last
    if not isinstance(asked, list | tuple) or len(asked) != 2 or not all(type(n) is int for n in asked):
        raise MemoryToolError("`view_range` is two whole numbers: [first line, last line], -1 for the end.")
    first, end = max(1, asked[0]), last if asked[1] == -1 else min(asked[1], last)
    if first > max(end, 1):
        raise MemoryToolError(f"Invalid `view_range`: {list(asked)}. The file has lines 1 to {last}.")
    return first, end


def directory_listing(path: str, files: Mapping[str, int]) -> str:
    """A folder's files and folders, two levels deep; `files` are {path within it: bytes}. Of day logs only
    the latest are listed."""
    rows = _listing_rows(files, "", 1)
    left = ""
    if len(rows) > LISTED_ROWS:
        left = f"\n({len(rows) - LISTED_ROWS} more are not shown: view one of the directories)"
        rows = rows[:LISTED_ROWS]
    days = sorted(name for name in files if day_of(name) and "/" not in name)
    older = set(days[:-LISTED_DAYS])
    if older:
        rows = [each for each in rows if each[1] not in older]
        left += f"\n({len(older)} older day logs are not shown, {days[0]} to {days[-LISTED_DAYS - 1]})"
    total = f"{_size_text(sum(files.values()))}\t{path}"
    lines = [total, *(f"{_size_text(size)}\t{path}/{name}" for size, name in rows)]
    head = f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden items:"
    return "\n".join([head, *lines]) + left


def _listing_rows(files: Mapping[str, int], start: str, depth: int) -> list[tuple[int, str]]:
    """(bytes, name) of the entries of a folder, each subfolder followed by its own."""
    here: dict[str, int] = {}
    for name, size in files.items():
        if name.startswith(start):
            head, slash, _ = name[len(start) :].partition("/")
            here[head + slash] = here.get(head + slash, 0) + size
    rows: list[tuple[int, str]] = []
    for name in sorted(here):
        rows.append((here[name], start + name))
        if name.endswith("/") and depth < LISTING_DEPTH:
            rows += _listing_rows(files, start + name, depth + 1)
    return rows


def _size_text(count: int) -> str:
    size, units = float(count), ["B", "K", "M", "G"]
    while size >= 1024 and len(units) > 1:
        size, units = size / 1024, units[1:]
    return f"{size:.0f}{units[0]}" if size == int(size) else f"{size:.1f}{units[0]}"


def find_once(text: str, old: str, path: str) -> int:
    """The offset of the only occurrence of `old`. MemoryToolError if there is none, or several."""
    if not old:
        raise MemoryToolError("`old_str` is empty. To add text, use `insert`.")
    count = text.count(old)
    if not count:
        hidden = " What is shown as [redacted: …] is not in the file." if "[redacted: " in old else ""
        raise MemoryToolError(
            f"No replacement was performed, old_str `{old}` did not appear verbatim in {path}.{hidden}"
        )
    if count > 1:
        found = re.finditer(f"(?={re.escape(old)})", text)
        places = [text.count("\n", 0, each.start()) + 1 for each in found]
        raise MemoryToolError(
            f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: "
            f"{', '.join(map(str, places))}. Please ensure it is unique"
        )
    return text.index(old)


# -- sdk ---------------------------------------------------------------------------------------------------
# How the Anthropic SDK knows our tools for its own, without being imported here: that takes it 1.3 seconds.
#
# Where it is loaded, its tool runner runs only what derives from its classes, and shows the model the words
# of its own `ToolError` alone: of another error it shows a `repr`, and its user a traceback.


_MODULE = "anthropic.lib.tools"


def register_with_sdk(tool: type, *, is_async: bool) -> None:
    """Register a class as the SDK's kind of tool, if the SDK is loaded."""
    name = "BetaAsyncBuiltinFunctionTool" if is_async else "BetaBuiltinFunctionTool"
    kind = getattr(sys.modules.get(_MODULE), name, None)
    if isinstance(kind, ABCMeta):
        kind.register(tool)


def tool_error(text: str) -> MemoryToolError:
    """The error to raise, which is also the SDK's `ToolError` if the SDK is loaded."""
    known = getattr(sys.modules.get(_MODULE), "ToolError", None)
    return _combined_error(known)(text) if isinstance(known, type) else MemoryToolError(text)


@cache
def _combined_error(known: type) -> type[MemoryToolError]:
    return type("MemoryToolError", (MemoryToolError, known), {})


# -- notes -------------------------------------------------------------------------------------------------
# Whole notes, kept by an agent as files: what it may change, by one stretch of lines at a time, and how
# what it writes is stamped as its own.
#
# A note that was made here says `origin: agent` in its front matter, which is not shown to the agent: it
# reads back exactly what it wrote. What it puts into a person's note is stamped fact by fact. A person's
# lines are neither changed nor taken away, and no text of an agent's can say that a person said it.


AGENT_FRONT = {"origin": "agent"}
"""The front matter of a note that an agent made."""
NOT_FOR_AGENTS: Mapping[FileKind, str] = {
    FileKind.PAGE: "a knowledge page is written by `refresh` from facts and observations",
    FileKind.MODEL: "a mental model is written only by its owner",
    FileKind.OBSERVATIONS: "observations are created from facts by `consolidate`",
    FileKind.OPINIONS: "opinions are written by `reflect`",
    FileKind.DOCUMENT: "these facts follow the document they were extracted from",
    FileKind.ENTITIES: "names are managed by `entities`",
    FileKind.TOMBSTONES: "this is the list of what was forgotten",
}


@dataclass(frozen=True, slots=True)
class NoteFile:
    """A file as the agent sees it: its lines, without the front matter that marks it as the agent's."""

    path: str
    data: bytes
    document: Document
    hidden: int
    """So many lines at the start are not shown."""

    @property
    def lines(self) -> tuple[str, ...]:
        return self.document.lines[self.hidden :]

    @property
    def text(self) -> str:
        """The lines with `\\n` between, and behind the last where the file has it."""
        return "\n".join(self.lines) + ("\n" if self.document.final_newline and self.lines else "")


@dataclass(frozen=True, slots=True)
class NoteChange:
    """One change of a file's lines, front matter included: `[start:end]` → `new`."""

    start: int
    end: int
    new: tuple[str, ...]


def parse_note(path: str, data: bytes) -> NoteFile:
    """Parse a file's bytes into a note."""
    document = markdown_document.parse(data, path)
    return NoteFile(path, data, document, document.front_end if document.front == AGENT_FRONT else 0)


def refusal_reason(path: str, data: bytes) -> str:
    """Why an agent may not change a file; '' if it may."""
    kind = markdown_lines.kind_of(path)
    if kind is not FileKind.LOG:
        return NOT_FOR_AGENTS.get(kind, "")
    front = markdown_document.parse(data, path).front
    if "imported_from" in front:
        return "this is a copy of a file elsewhere"
    dated = markdown_lines.day_of(path)
    if dated and (front.get("origin") != "agent" or path == f"memory/{dated}.md"):
        return "a day's log is written one fact at a time"
    return ""


def create_note(draft: Draft, path: str, text: str) -> None:
    """Create a note with an agent's text. Usage if agents may not write the file, or the text forges an
    origin."""
    try:
        data = markdown_document.set_front(text.encode("utf-8", "replace"), AGENT_FRONT)
    except Malformed as error:
        what = f"front matter at the start of the text: {error.what}"
        raise Usage(what, hint="leave it out, or correct it") from error
    _require_permitted(path, data)
    _write_note(draft, path, data, NoteChange(0, 0, markdown_document.parse(data, path).lines), ())


def change_note(store: Store, draft: Draft, path: str, text: str) -> tuple[str, ...]:
    """Change a note's text (as in `NoteFile.text`); unchanged lines keep their bytes. Returns warnings about
    budgets. Usage if a person's line would change, or agents may not write the file."""
    before = parse_note(path, draft.read(path))
    _require_permitted(path, before.data)
    step = _difference(before, text)
    persons = _person_lines(store, path, before.data)
    _require_no_person_lines(before, step, persons, "cannot be changed")
    data = _apply_change(before.data, step)
    if markdown_lines.kind_of(path) is FileKind.CORE:
        return _write_core(store, draft, path, data, step)
    _write_note(draft, path, data, step, persons)
    return ()


def remove_note(store: Store, draft: Draft, path: str) -> None:
    """Delete a note. Usage if a person wrote in it, or agents may not write it."""
    document = markdown_document.parse(_require_removable(store, draft, path), path)
    draft.facts += [name_of(fact) for fact in document.of(Fact)]
    draft.delete(path)


def move_note(store: Store, draft: Draft, path: str, to: str) -> None:
    """Rename a note; its bytes and ids stay the same. Usage as for `remove_note`."""
    data = _require_removable(store, draft, path)
    _require_permitted(to, data)
    draft.delete(path)
    draft.write(to, data, restored=True)


# -- permissions ---------------------------------------------------------------------------------------------


def _require_permitted(path: str, data: bytes) -> None:
    if why := refusal_reason(path, data):
        raise Usage(why, where=path, hint="write what you know in a note of your own")


def _person_lines(store: Store, path: str, data: bytes) -> frozenset[int]:
    """The numbers (from 0) of the lines that a person wrote, including uncommitted ones."""
    return frozenset(b.line - 1 for b in store.history.blame(path, data) if b.author != MACHINE[0])


def _require_removable(store: Store, draft: Draft, path: str) -> bytes:
    data = draft.read(path)
    if markdown_lines.kind_of(path) is FileKind.CORE:
        raise Usage("core memory cannot be deleted or moved; its text can be changed", where=path)
    _require_permitted(path, data)
    before = parse_note(path, data)
    whole = NoteChange(before.hidden, len(before.document.lines), ())
    _require_no_person_lines(before, whole, _person_lines(store, path, data), "cannot be moved or deleted")
    return data


def _require_no_person_lines(before: NoteFile, step: NoteChange, persons: frozenset[int], what: str) -> None:
    lines = before.document.lines
    theirs = [n for n in range(step.start, step.end) if n in persons and lines[n].strip()]
    if theirs:
        shown = f"line{'s' * (len(theirs) > 1)} {', '.join(str(n - before.hidden + 1) for n in theirs[:10])}"
        raise Usage(
            f"what a person wrote ({shown}) {what}", where=before.path,
            hint="insert a line of your own that says what changed, or ask the person to change theirs",
        )  # fmt: skip


# -- lines ---------------------------------------------------------------------------------------------------


def _difference(before: NoteFile, text: str) -> NoteChange:
    """The one range of lines in which a text differs from a note."""
    old = before.lines
    new = tuple(text.removesuffix("\n").split("\n") if text else ())
    head = markdown_lines.common_prefix_length(old, new)
    tail = markdown_lines.common_prefix_length(old[head:][::-1], new[head:][::-1])
    at = before.hidden
    return NoteChange(at + head, at + len(old) - tail, new[head : len(new) - tail])


def _apply_change(data: bytes, step: NoteChange) -> bytes:
    if step.end == step.start:
        return markdown_lines.insert_after(data, step.start, step.new) if step.new else data
    return markdown_lines.replace_lines(data, Place("", step.start + 1, step.end), step.new)


def _touches(step: NoteChange, record: Record) -> bool:
    """Whether a change replaces lines of a record, or inserts lines into it."""
    start, end = record.place.line - 1, record.place.end
    return step.start < end and start < step.end


# -- what is written -----------------------------------------------------------------------------------------


def _write_core(store: Store, draft: Draft, path: str, data: bytes, step: NoteChange) -> tuple[str, ...]:
    old = markdown_document.parse(draft.read(path), path)
    trust.require_trusted(store, data.decode("utf-8", "replace"), draft.read(path).decode("utf-8", "replace"))
    warnings = core.check_budgets(store, path, draft.read(path), data)
    removes = [block for block in old.of(CoreBlock) if _touches(step, block)]
    _write(draft, path, data, removes)
    return warnings


def _write_note(
    draft: Draft, path: str, data: bytes, step: NoteChange, persons: frozenset[int] | tuple[()]
) -> None:
    old = markdown_document.parse(draft.read(path), path)
    data = _stamp_origin(old, data, path, step)
    removes = [
        record for record in old.records
        if not isinstance(record, Passage) and _touches(step, record) and record.place.line - 1 not in persons
    ]  # fmt: skip
    _write(draft, path, data, removes)
    if "origin" not in markdown_document.parse(data, path).front:
        _require_list_items(data, path, step)
    there = {name_of(fact) for fact in old.of(Fact)}
    named = (name_of(fact) for fact in markdown_document.parse(draft.read(path), path).of(Fact))
    draft.facts += [name for name in named if name not in there]


def _require_list_items(data: bytes, path: str, step: NoteChange) -> None:
    """Usage if anything but list items is added to a person's note: prose cannot say who wrote it."""
    document = markdown_document.parse(data, path)
    items = {n for fact in document.of(Fact) for n in range(fact.place.line, fact.place.end + 1)}
    for number in range(step.start + 1, step.start + len(step.new) + 1):
        if document.lines[number - 1].strip() and number not in items:
            raise Usage(
                "this is a person's note: only list items (`- …`) can be added to it", where=path,
                hint="write a list item, or make a note of your own",
            )  # fmt: skip


def _write(draft: Draft, path: str, data: bytes, removes: Sequence[Record]) -> None:
    try:
        draft.write(path, data, removes=removes)
    except Malformed as error:
        raise Usage(
            "the text around it would be parsed differently than before", where=error.where,
            hint="change whole list items and paragraphs, and close code fences and comments",
        ) from error  # fmt: skip


def _stamp_origin(old: Document, data: bytes, path: str, step: NoteChange) -> bytes:
    """The bytes with `- origin: agent` below each new fact that nothing else attributes to the agent."""
    for fact in reversed(list(_unattributed_facts(old, markdown_document.parse(data, path), step))):
        data = markdown_lines.insert_after(data, fact.place.end, ["  - origin: agent"])
    if _said_by_others(markdown_document.parse(data, path)) - _said_by_others(old):
        raise Usage(
            "an item in it would be attributed to somebody else", where=path,
            hint="write it as a list item of its own, without nested lines",
        )  # fmt: skip
    return data


def _said_by_others(document: Document) -> Counter[tuple[Fact, str]]:
    return Counter((fact, fact.said_by) for fact in document.of(Fact) if fact.said_by != "agent")


def _unattributed_facts(old: Document, new: Document, step: NoteChange) -> Iterator[Fact]:
    """The new facts that are not attributed to the agent. Usage for what only memory may write: an origin, an
    id, a mark of how far a session was read."""
    if set(new.through) - set(old.through):
        raise Usage("`<!-- through: … -->` is reserved for memory", where=new.path, hint="leave it out")
    shift = len(step.new) - (step.end - step.start)
    before = {fact.place.line: fact for fact in old.of(Fact)}
    ids = {fact.id for fact in before.values() if fact.id}
    for fact in new.of(Fact):
        line = fact.place.line
        is_new = step.start < line <= step.start + len(step.new)
        was = None if is_new else before.get(line if line <= step.start else line - shift)
        if fact.id and fact.id not in ids:
            raise Usage(
                f"`^{fact.id}` at the end of a list item is an id: memory assigns ids", where=new.path,
                hint="leave it out",
            )  # fmt: skip
        if fact.said_by == "agent" or (was is not None and was.said_by == fact.said_by):
            continue
        if fact.origin or not is_new:
            raise Usage(
                f"{fact.text[:60]!r} would be attributed to somebody else: memory records who said what",
                where=new.path, hint="leave `origin:` out, and headings that name a speaker",
            )  # fmt: skip
        yield fact


# -- tool --------------------------------------------------------------------------------------------------
# The commands of the memory tool on the files of a bank: a reply, or an error that a model can act on.
#
# Commands, parameters and replies are those of Anthropic's own file-system tool, whose texts models know.
# `/memories/MEMORY.md` is core memory; a name that does not end in `.md` is given it. Each change is one
# revision.


TYPE, NAME = "memory_20250818", "memory"
DOOR = "memory-tool"
CONTEXT_LINES = 2
"""Lines shown on either side of an edit."""


class _Tool:
    """The tool over one bank, however its caller waits for it."""

    name = NAME

    def __init__(
        self, memory: Memory, *, session: str | None = None, cache_control: Mapping[str, str] | None = None
    ) -> None:
        self.memory, self.session, self._cache_control = memory, session, cache_control
        register_with_sdk(type(self), is_async=isinstance(self, AsyncMemoryTool))

    def to_dict(self) -> MemoryToolParam:
        """What stands in `tools` of a request."""
        more = {"cache_control": dict(self._cache_control)} if self._cache_control else {}
        return cast(MemoryToolParam, {"type": TYPE, "name": NAME, **more})

    def answer(self, tool_use: Any) -> dict[str, Any]:
        """The `tool_result` block for a `tool_use` block of the model's, errors included."""
        given = tool_use if isinstance(tool_use, Mapping) else getattr(tool_use, "__dict__", {})
        if not {"id", "input"} <= given.keys():
            raise Usage(f"a tool_use block has an id and an input, not {tool_use!r:.80}")
        result = {"type": "tool_result", "tool_use_id": given["id"]}
        try:
            return {**result, "content": self._run_command(given["input"])}
        except MemoryToolError as error:
            return {**result, "content": str(error), "is_error": True}

    def _run_command(self, input: object) -> str:
        try:
            return self._dispatch(input)
        except UaMemoryError as error:
            raise tool_error(error_text(error)) from error
        except MemoryToolError as error:
            raise tool_error(str(error)) from None

    def _dispatch(self, input: object) -> str:
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
                raise MemoryToolError(f"`{command}` needs `{key}`, {_TYPE_NAMES[kind]}.")
            values.append(value.replace("\r\n", "\n") if isinstance(value, str) else value)
        if command == "view":
            values.append(given.get("view_range"))
        return work(self, *values)

    # -- the commands ----------------------------------------------------------------------------------------

    def _view(self, path: str, view_range: object) -> str:
        files = {f.path: f.size for f in self.memory.store.files()}
        here = _relative_path(path)
        folder = f"{LOGS}/{here}/" if here else f"{LOGS}/"
        if not here or any(name.startswith(folder) for name in files):
            found = {name.removeprefix(folder): n for name, n in files.items() if name.startswith(folder)}
            if not here:
                found |= {CORE_NAMES[0]: n for name, n in files.items() if name in CORE_NAMES}  # noqa: B035
            return directory_listing(path.rstrip("/"), found)
        file = self._file(path)
        if file not in files:
            raise MemoryToolError(f"The path {path} does not exist. Please provide a valid path.")
        note = parse_note(file, self.memory.store.accepted_bytes(file))
        return number_lines(path, self._visible_lines(note), view_range)

    def _create(self, path: str, file_text: str) -> str:
        with self._revision("create") as draft:
            file = self._file(path)
            if draft.exists(file):
                raise MemoryToolError(f"File {path} already exists")
            if self._files_below(path):
                raise MemoryToolError(f"The path {path} is a directory.")
            create_note(draft, file, file_text)
        return with_notes(f"File created successfully at: {path}", draft.result)

    def _str_replace(self, path: str, old_str: str, new_str: str) -> str:
        with self._revision("edit") as draft:
            before = self._note(draft, path)
            text = before.text
            at = find_once(text, old_str, path)
            text = text[:at] + new_str + text[at + len(old_str) :]
            warnings = change_note(self.memory.store, draft, before.path, text)
            after = parse_note(before.path, draft.read(before.path))
        line = text.count("\n", 0, at)
        lines = self._visible_lines(after)
        rows = range(max(0, line - CONTEXT_LINES), min(len(lines), line + CONTEXT_LINES + 1))
        snippet = "\n".join(numbered_line(n + 1, lines[n]) for n in rows)
        said = "The memory file has been edited. Here is the snippet showing the change (with line numbers):"
        return with_notes(f"{said}\n{snippet}", draft.result, warnings)

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
            warnings = change_note(self.memory.store, draft, before.path, "\n".join(lines) + "\n")
        return with_notes(f"The file {path} has been edited.", draft.result, warnings)

    def _delete(self, path: str) -> str:
        if not _relative_path(path):
            raise MemoryToolError(f"Cannot delete the {ROOT} directory itself")
        with self._revision("delete") as draft:
            for file in self._files_at(draft, path):
                remove_note(self.memory.store, draft, file)
        return with_notes(f"Successfully deleted {path}", draft.result)

    def _rename(self, old_path: str, new_path: str) -> str:
        if not _relative_path(old_path):
            raise MemoryToolError(f"Cannot rename the {ROOT} directory itself")
        with self._revision("rename") as draft:
            subject = f"memory tool: rename {_relative_path(old_path)} to {_relative_path(new_path)}"
            draft.subject = subject[:200]
            for file in self._files_at(draft, old_path):
                inner = file.removeprefix(f"{LOGS}/{_relative_path(old_path)}/")
                to = self._file(new_path if inner == file else f"{new_path.rstrip('/')}/{inner}")
                if draft.exists(to) or self._files_below(new_path):
                    raise MemoryToolError(f"The destination {new_path} already exists")
                move_note(self.memory.store, draft, file, to)
        return with_notes(f"Successfully renamed {old_path} to {new_path}", draft.result)

    def _visible_lines(self, note: NoteFile) -> list[str]:
        """The lines of a note without what a model should not see."""
        text = redaction.redact_lines(readable("\n".join(note.lines)), self.memory.config.redact)
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
        inner = _relative_path(path)
        if inner == CORE_NAMES[0]:
            return core.core_path(self.memory.store)
        file = f"{LOGS}/{inner}" if inner.endswith(".md") else f"{LOGS}/{inner}.md"
        half = any("\ud800" <= letter <= "\udfff" for letter in inner)  # JSON can say it, no file's name can
        if not inner or half or not is_memory_file(file):
            raise MemoryToolError(
                f"The path {path} cannot be used: name a file below {ROOT}, with no part that is empty or "
                "starts with a dot, and no backslashes."
            )
        confined(self.memory.store.bank.root, file)
        return file

    def _files_below(self, path: str) -> list[str]:
        """The files below a path that is a folder; none where it is none."""
        start = f"{LOGS}/{_relative_path(path)}/"
        return [f.path for f in self.memory.store.files() if f.path.startswith(start)]

    def _note(self, draft: Draft, path: str) -> NoteFile:
        file = self._file(path) if _relative_path(path) else ""
        if not file or (not draft.exists(file) and self._files_below(path)):
            raise MemoryToolError(f"The path {path} is not a file.")
        if not draft.exists(file):
            raise MemoryToolError(f"The path {path} does not exist. Please provide a valid path.")
        return parse_note(file, draft.read(file))

    def _files_at(self, draft: Draft, path: str) -> list[str]:
        """The file that a path means, or those below it."""
        file, below = self._file(path), self._files_below(path)
        if below and draft.exists(file):
            raise MemoryToolError(f"{path} is a directory and also a file: name the file {path}.md")
        if not below and not draft.exists(file):
            raise MemoryToolError(f"The path {path} does not exist")
        return below or [file]


class MemoryTool(_Tool, SdkTool):
    """The tool over one bank. `session` names the conversation in every commit; `cache_control` goes into the
    tool's declaration. The SDK's tool runner takes it if the SDK was imported before the tool was made."""

    def call(self, input: object) -> str:
        """Carry out one command, as the model gave it. MemoryToolError, which is the SDK's `ToolError`, too,
        where the SDK is loaded."""
        return self._run_command(input)


class AsyncMemoryTool(_Tool, SdkAsyncTool):
    """The same for the SDK's asynchronous tool runner: commands, which wait for the disk, run in a thread."""

    async def call(self, input: object) -> str:
        """As `MemoryTool.call`."""
        return await asyncio.to_thread(self._run_command, input)


_COMMANDS: Mapping[str, tuple[Callable[..., str], Mapping[str, type]]] = {
    "view": (_Tool._view, {"path": str}),
    "create": (_Tool._create, {"path": str, "file_text": str}),
    "str_replace": (_Tool._str_replace, {"path": str, "old_str": str, "new_str": str}),
    "insert": (_Tool._insert, {"path": str, "insert_line": int, "insert_text": str}),
    "delete": (_Tool._delete, {"path": str}),
    "rename": (_Tool._rename, {"old_path": str, "new_path": str}),
}
_TYPE_NAMES: Mapping[type, str] = {str: "a string", int: "an integer"}


def _relative_path(path: str) -> str:
    """A path below `/memories`, empty for that itself. MemoryToolError where it leads out."""
    if path != ROOT and not path.startswith(f"{ROOT}/"):
        raise MemoryToolError(f"Path must start with {ROOT}, got: {path}")
    inner = path[len(ROOT) :].strip("/")
    if ".." in inner.split("/"):
        raise MemoryToolError(f"Path {path} would escape {ROOT} directory")
    return inner
