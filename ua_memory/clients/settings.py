"""What an installation puts into a client's own files, and takes out again: text to text, nothing else.

A `Piece` is one thing of ours in one file. `put` and `cut` get what stands in the file (None: there is none)
and give what is to stand there (None: no file); what is in place already comes back as it was, to the byte.
Whatever else stands in the file stays, and where it cannot be read nothing is changed: `Broken`.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ua_memory.clients import toml_edit
from ua_memory.clients.json_edit import Broken, Document
from ua_memory.clients.paragraph import added, removed, rows_of

NAME = "ua-memory"
"""Our name among a client's MCP servers, plugins and extensions, and that of the command."""

CALL = ("command", "args")
"""The keys of an entry that say what is run."""
Change = Callable[[str | None], str | None]


class Piece(NamedTuple):
    """One thing of ours: the file it goes into, what it is, how it is put there and taken out.

    `folder` is one that was made for files of ours; empty, it goes when they go, and those in it do.
    """

    file: str
    what: str
    put: Change
    cut: Change
    folder: str = ""


class Target(NamedTuple):
    """A client, what goes into its files, and what its owner is told besides.

    `twice` is what has the client call our hooks a second time, and the file where that stands. `left` is
    what its owner has put there for us by the client's own means: it is taken out with the rest.
    """

    client: str
    pieces: tuple[Piece, ...]
    notes: tuple[str, ...] = ()
    twice: tuple[tuple[str, str], ...] = ()
    left: tuple[Piece, ...] = ()


def json_piece(file: str, what: str, put: Callable[[Document], None], cut: Callable[[Document], None],
               *, loose: bool = False) -> Piece:  # fmt: skip
    """A piece in a file of JSON."""

    def putting(text: str | None) -> str | None:
        document = Document(text or "", loose=loose)
        put(document)
        new = document.text()
        return f"{new}\n" if text is None and new else new

    def cutting(text: str | None) -> str | None:
        if text is None:
            return None
        document = Document(text, loose=loose)
        cut(document)
        return document.text()

    return Piece(file, what, putting, cutting)


def toml_table(file: str, what: str, name: tuple[str, str], values: dict[str, Any]) -> Piece:
    """A table in a file of TOML. One of this name that runs something else is its owner's, and stays."""

    def theirs(text: str) -> bool:
        found = toml_edit.table(text, name)
        return found is not None and not runs_us(found)

    def put(text: str | None) -> str | None:
        if text and theirs(text):
            return text
        there = toml_edit.table(text or "", name) or {}
        wanted = {key: value for key, value in values.items() if key in CALL or key not in there}
        return toml_edit.put(text, name, wanted)

    def cut(text: str | None) -> str | None:
        return text if not text or theirs(text) else toml_edit.cut(text, name)

    return Piece(file, what, put, cut)


def whole_file(file: str, what: str, content: str, mark: str, folder: str = "") -> Piece:
    """A file that is ours altogether; one without our mark in it is somebody else's: Broken."""

    def put(text: str | None) -> str | None:
        return content if text is None or ours(text) else text

    def cut(text: str | None) -> str | None:
        return None if text is not None and ours(text) else text

    def ours(text: str) -> bool:
        if mark not in text:
            raise Broken(1, f"not a file of ours (it has no {mark!r}); move it out of the way")
        return True

    return Piece(file, what, put, cut, folder)


# -- MCP ---------------------------------------------------------------------------------------------------


def mcp_server(file: str, holder: tuple[str, ...], entry: dict[str, Any], *, loose: bool = False) -> Piece:
    """Our server in the object `holder` of a file. What its owner has added to the entry stays."""
    path = (*holder, NAME)

    def put(document: Document) -> None:
        there = document.at(path)
        if there is None:
            document.put(path, entry)
        elif runs_us(there.value):
            _amend(document, path, entry)

    def cut(document: Document) -> None:
        there = document.at(path)
        if there is not None and runs_us(there.value):
            document.cut(path)

    return json_piece(file, "MCP server", put, cut, loose=loose)


def _amend(document: Document, path: tuple[str | int, ...], entry: dict[str, Any]) -> None:
    """Bring an entry of ours up to date: what it calls, and what is missing. What its owner set stays."""
    there = document.at(path)
    assert there is not None
    for key, value in entry.items():
        if key not in there.value or (key in CALL and there.value[key] != value):
            document.put((*path, key), value)


def runs_us(entry: Any) -> bool:
    """Whether an entry of a client's settings calls ua-memory: by `command` and `args`, in whatever form."""
    return bool(words_of(entry))


def words_of(entry: Any) -> list[str]:
    """The words behind our command that an entry calls it with (the command itself first); [] for others."""
    if not isinstance(entry, dict) or not isinstance(entry.get("command"), str):
        return []
    more = entry.get("args", [])
    args = [each for each in more if isinstance(each, str)] if isinstance(more, list) else []
    try:
        words = [entry["command"]] if args else shlex.split(entry["command"])
    except ValueError:
        return []
    words += args
    for at, word in enumerate(words[:4]):  # `python -P -m ua_memory` is we, too
        if os.path.basename(word) in (NAME, "ua_memory"):  # noqa: PTH119 (no file, a word)
            return words[at:]
    return []


# -- hooks in Claude Code's form ---------------------------------------------------------------------------


def hooks(file: str, wanted: dict[str, dict[str, Any]], *, loose: bool = False) -> Piece:
    """Our hooks, one for each event, beside those of others. `wanted`: event → the hook's own object."""

    def put(document: Document) -> None:
        for event, places in _ours(document).items():
            for place in reversed(places[1:] if event in wanted else places):
                _cut(document, place)
        for event, hook in wanted.items():
            places = _ours(document).get(event, [])
            if places:
                _amend(document, places[0], hook)
                continue
            groups = document.at(("hooks", event))
            number = len(groups.members or ()) if groups else 0
            document.put(("hooks", event, number), {"hooks": [hook]})

    def cut(document: Document) -> None:
        for places in _ours(document).values():
            for place in reversed(places):
                _cut(document, place)

    return json_piece(file, "hooks", put, cut, loose=loose)


def has_hooks(text: str) -> bool:
    """Whether hooks of ours stand in settings of Claude Code's form. Broken where they cannot be read."""
    return bool(_ours(Document(text)))


def _ours(document: Document) -> dict[str, list[tuple[str | int, ...]]]:
    """Where hooks of ours stand, by event."""
    held = document.value.get("hooks", {})
    if not isinstance(held, dict):
        raise Broken(document.line(("hooks",)), "hooks is no object")
    found: dict[str, list[tuple[str | int, ...]]] = {}
    for event, groups in held.items():
        if not isinstance(groups, list):
            raise Broken(document.line(("hooks", event)), f"hooks.{event} is no list")
        for number, group in enumerate(groups):
            inner = group.get("hooks") if isinstance(group, dict) else None
            for place, hook in enumerate(inner if isinstance(inner, list) else ()):
                if "hook" in words_of(hook)[1:]:
                    found.setdefault(event, []).append(("hooks", event, number, "hooks", place))
    return found


def _cut(document: Document, place: tuple[str | int, ...]) -> None:
    """Take a hook out; its group goes along if it was the only one there, whatever else stands in that."""
    group = document.at(place[:-2])
    assert group is not None
    document.cut(place if len(group.value["hooks"]) > 1 else place[:-2])


# -- a line for agents -------------------------------------------------------------------------------------

MARK = "<!-- ua-memory -->"
LINE = (
    "Search ua-memory (the tool `archival_memory_search`) before you answer anything about earlier work,"
    " decisions, people or preferences, and save what later sessions will need with `archival_memory_insert`."
)
"""Agents do not call a memory server of their own accord: measured, 0 of 40 sessions without such a line in
their instructions, 40 of 40 with it."""


def agents_line(file: str) -> Piece:
    """The line in AGENTS.md, CLAUDE.md or their like, behind an empty line at the end; known by its mark."""
    line = f"{LINE} {MARK}"

    def put(text: str | None) -> str | None:
        if text and MARK in text:
            return "".join(
                line + row[len(row.rstrip("\r\n")) :] if MARK in row else row for row in rows_of(text)
            )
        return added(text, [line])

    def cut(text: str | None) -> str | None:
        rows = rows_of(text or "")
        at = next((n for n, row in enumerate(rows) if MARK in row), None)
        if text is None or at is None:
            return text
        return "".join(removed(rows, at, at + 1)) if text != line + "\n" else None

    return Piece(file, "line for agents", put, cut)


def call_of(command: Sequence[str], *more: str) -> dict[str, Any]:
    """`command` and `args` of an entry: the words that start ua-memory, and what it is to do."""
    return {"command": command[0], "args": [*command[1:], *more]}


def with_command(text: str, command: Sequence[str]) -> str:
    """A shim's text with these words in the place where it says how ua-memory is called."""
    usual = f'["{NAME}"]'
    assert text.count(usual) == 1, "a shim says once how ua-memory is called"
    return text.replace(usual, json.dumps(list(command)))
