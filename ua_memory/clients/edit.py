"""Edit JSON, TOML and text files of other programs in place: all bytes that are not edited stay."""

from __future__ import annotations

import json
import re
import tomllib
from contextlib import suppress
from copy import deepcopy
from functools import reduce
from operator import getitem
from typing import Any, NamedTuple

# -- json parser -------------------------------------------------------------------------------------------
# A JSON parser that records where each value begins and ends.
#
# It also accepts the JSON5 of OpenClaw's settings: comments, trailing commas, single quotes, unquoted names.


DEEPEST = 100
"""Levels of nested containers."""
KeyPath = tuple[str | int, ...]
"""The path to a value: names of members and indexes of elements."""


class EditError(Exception):
    """A text that cannot be parsed or edited: the line, counted from 1, and why."""

    def __init__(self, line: int, why: str) -> None:
        self.line, self.why = line, why
        super().__init__(f"line {line}: {why}")


class JsonNode(NamedTuple):
    """A parsed value and its span [start, end) in the text. `members` is None if it is not a container."""

    start: int
    end: int
    value: Any
    members: list[Member] | None


class Member(NamedTuple):
    """A member of an object, or an element of an array with its index as `key`. `start` is the key's."""

    key: str | int
    start: int
    node: JsonNode


_SPACE = re.compile(r"(?:[\s\ufeff]|//[^\n]*|/\*.*?\*/)*", re.S)
_STRING = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'", re.S)
_WORD = re.compile(r"[^\s,:\[\]{}\"'/]+")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|\r\n|.)", re.S)
_SIMPLE_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0"}


class JsonScanner:
    def __init__(self, text: str) -> None:
        self.text = text

    def parse(self) -> JsonNode:
        node = self.parse_value(self.skip_space(0), 0)
        if self.skip_space(node.end) != len(self.text):
            raise self.error(self.skip_space(node.end), "unexpected text after the value")
        return node

    def skip_space(self, at: int) -> int:
        found = _SPACE.match(self.text, at)
        return found.end() if found else at

    def error(self, at: int, why: str) -> EditError:
        return EditError(self.text.count("\n", 0, at) + 1, why)

    def parse_value(self, at: int, depth: int) -> JsonNode:
        sign = self.text[at : at + 1]
        if sign in ("{", "["):
            if depth == DEEPEST:
                raise self.error(at, "nested too deep")
            return self.parse_container(at, depth)
        if found := _STRING.match(self.text, at) or _WORD.match(self.text, at):
            return JsonNode(at, found.end(), _scalar_value(found[0]), None)
        raise self.error(at, "a value is missing")

    def parse_container(self, start: int, depth: int) -> JsonNode:
        named = self.text[start] == "{"
        close = "}" if named else "]"
        members: list[Member] = []
        at = self.skip_space(start + 1)
        while self.text[at : at + 1] != close:
            key, front = len(members), at
            if named:
                key, at = self.parse_key(at)  # type: ignore[assignment]
            node = self.parse_value(at, depth + 1)
            members.append(Member(key, front, node))
            at = self.skip_space(node.end)
            if self.text[at : at + 1] == ",":
                at = self.skip_space(at + 1)
            elif self.text[at : at + 1] != close:
                raise self.error(at, f"a comma or {close} is missing")
        pairs = [(each.key, each.node.value) for each in members]
        return JsonNode(start, at + 1, dict(pairs) if named else [value for _, value in pairs], members)

    def parse_key(self, at: int) -> tuple[str, int]:
        quoted = _STRING.match(self.text, at)
        found = quoted or _WORD.match(self.text, at)
        if found is None:
            raise self.error(at, "a name in quotes is missing")
        after = self.skip_space(found.end())
        if self.text[after : after + 1] != ":":
            raise self.error(after, "a colon is missing")
        return _scalar_value(found[0]) if quoted else found[0], self.skip_space(after + 1)


def _scalar_value(text: str) -> Any:
    """The value of a string, number or word, as JSON or else as JSON5."""
    try:
        return json.loads(text)
    except ValueError:
        # A string in single quotes, or a JSON5 number such as 0x1F, .5 or +1, which stays text.
        return _ESCAPE.sub(_unescape, text[1:-1]) if text[0] in "\"'" else text


def _unescape(found: re.Match[str]) -> str:
    sign = found[1]
    if len(sign) > 1 and sign[0] in "ux":
        return chr(int(sign[1:], 16))
    return "" if sign in ("\n", "\r\n", "\r") else _SIMPLE_ESCAPES.get(sign, sign)


# -- json edits --------------------------------------------------------------------------------------------
# Each edit is parsed again and compared with the expected value.
#
# Removing an addition restores the text to the byte. The layout records whether the container existed before:
# a member is added to an existing empty container after one space, and to a new one on a line of its own or
# directly after the bracket.


_TRAILING_COMMENT = re.compile(r"[ \t]*(?://[^\r\n]*|/\*[^\r\n]*?\*/(?=[ \t]*\r?\n))")
"""A comment after a value, on the same line."""


class JsonDocument:
    """A JSON text to edit; `value` is its parsed object, not to be changed. EditError if it is invalid.

    `loose` accepts JSON5. In a blank text an empty object is appended.
    """

    def __init__(self, text: str, *, loose: bool = False) -> None:
        self.loose, self.blank, self.emptied = loose, not text.strip("\ufeff \t\r\n"), False
        self._parse(text + "{}" if self.blank else text)
        self.newline = "\r\n" if "\r\n" in text else "\n"
        self.unit = self._unit()

    def _parse(self, text: str) -> None:
        if not self.loose:
            try:
                json.loads(text.lstrip("\ufeff"))
            except json.JSONDecodeError as error:
                raise EditError(error.lineno, error.msg) from error
            except RecursionError as error:
                raise EditError(1, "nested too deep") from error
        self.inner, self.root = text, JsonScanner(text).parse()
        if not isinstance(self.root.value, dict):
            raise EditError(1, "not an object")

    @property
    def value(self) -> dict[str, Any]:
        found: dict[str, Any] = self.root.value
        return found

    def at(self, path: KeyPath) -> JsonNode | None:
        """The node at a path, None if there is none; of duplicate keys the last, as JSON parsers do."""
        node: JsonNode | None = self.root
        for key in path:
            fits = [each.node for each in (node.members or ()) if each.key == key] if node else []
            node = fits[-1] if fits else None
        return node

    def line(self, path: KeyPath) -> int:
        """The line, from 1, where the value at a path, or else its nearest existing parent, begins."""
        while path and self.at(path) is None:
            path = path[:-1]
        node = self.at(path)
        return self.inner.count("\n", 0, node.start if node else 0) + 1

    # -- edits ---------------------------------------------------------------------------------------

    def put(self, path: KeyPath, value: Any) -> None:
        """Set a member or element, and create missing parents; an existing value is replaced.

        An index equal to the array's length appends an element. EditError if a parent has another type.
        """
        expected: Any = deepcopy(self.value)
        if (node := self.at(path)) is not None:
            text = self._render(value, self._indent(node.start)) if "\n" in self.inner else _one_line(value)
            self._replace((node.start, node.end, text))
        else:
            while len(path) > 1 and self.at(path[:-1]) is None:
                key, path = path[-1], path[:-1]
                value = [value] if isinstance(key, int) else {key: value}
            self._add(path[:-1], path[-1], value)
        holder: Any = reduce(getitem, path[:-1], expected)
        if isinstance(number := path[-1], int):
            holder[number : number + 1] = [value]
        else:
            holder[number] = value
        assert self.value == expected, f"an edit at {path} has changed something else"

    def cut(self, path: KeyPath) -> None:
        """Remove a member or element, and the containers that `put` created for it if they are empty now."""
        parent, key = path[:-1], path[-1]
        holder = self.at(parent)
        assert holder is not None and holder.members is not None
        expected: Any = deepcopy(self.value)
        del reduce(getitem, parent, expected)[key]
        number = max(n for n, each in enumerate(holder.members) if each.key == key)
        members, mine = holder.members, holder.members[number]
        front = self.inner[holder.start + 1 : mine.start]
        if number:  # remove the comma after the previous member, too; comments stay
            comma = self._find_comma(members[number - 1].node.end)
            kept = comma + 1 + len(self.inner[comma + 1 : mine.start].rstrip())
            self._replace((comma, comma + 1, ""), (kept, mine.node.end, ""))
        elif len(members) > 1:
            after = self._find_comma(mine.node.end) + 1
            after += len(self.inner[after:]) - len(self.inner[after:].lstrip())
            self._replace((mine.start, after, ""))
        elif front == " ":
            self._replace((holder.start + 1, mine.node.end, ""))
        elif parent:
            self.cut(parent)
        else:
            self._replace((holder.start + 1, holder.end - 1, ""))
            self.emptied = True
        same = _without_empty(self.value) == _without_empty(expected)
        assert same, f"an edit at {path} has changed something else"

    def text(self) -> str | None:
        """The text after the edits; None if only a newline is left of a file that we created."""
        if not self.value and (self.blank or self.emptied):
            front, tail = self.inner[: self.root.start], self.inner[self.root.end :]
            return None if (front, tail) == ("", "\n") else front + tail
        return self.inner

    # -- positions and layout ------------------------------------------------------------------------

    def _add(self, parent: KeyPath, key: str | int, value: Any) -> None:
        holder = self.at(parent)
        if holder is None or holder.members is None or isinstance(holder.value, dict) != isinstance(key, str):
            raise EditError(self.line(parent), f"{'.'.join(map(str, parent))} is not of the expected type")
        name = f"{json.dumps(key)}: " if isinstance(key, str) else ""
        if not holder.members:
            fresh = not parent and self.blank
            lead, tail = (self.newline + self.unit, self.newline) if fresh else (" ", "")
            indent = self._indent(holder.start) + self.unit
            shown = f"{lead}{name}{self._render(value, indent)}{tail}"
            self._replace((holder.start + 1, holder.start + 1, shown))
            return
        last = holder.members[-1]
        alone = self._line_indent(last.start)
        end = behind = last.node.end
        if alone is None:
            shown = f" {name}{_one_line(value)}"
        else:
            shown = f"{self.newline}{alone}{name}{self._render(value, alone)}"
            remark = _TRAILING_COMMENT.match(self.inner, end)
            behind = remark.end() if remark else end
        self._replace((end, end, ","), (behind, behind, shown))

    def _replace(self, *pieces: tuple[int, int, str]) -> None:
        text = self.inner
        for start, end, new in reversed(pieces):
            text = text[:start] + new + text[end:]
        self._parse(text)

    def _find_comma(self, at: int) -> int:
        found = JsonScanner(self.inner).skip_space(at)
        assert self.inner[found] == ","
        return found

    def _line_indent(self, at: int) -> str | None:
        """The indentation before a position that is the first on its line, else None."""
        front = self.inner[self.inner.rfind("\n", 0, at) + 1 : at]
        return front if not front.strip(" \t") and "\n" in self.inner[:at] else None

    def _indent(self, at: int) -> str:
        found = re.match(r"[ \t]*", self.inner[self.inner.rfind("\n", 0, at) + 1 :])
        return found[0] if found else ""

    def _unit(self) -> str:
        leads = [self._line_indent(each.start) for each in self.root.members or ()]
        return next((lead for lead in leads if lead), "  ")

    def _render(self, value: Any, indent: str) -> str:
        shown = json.dumps(value, ensure_ascii=False, indent=self.unit)
        return shown.replace("\n", self.newline + indent)


def _one_line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _without_empty(value: Any) -> Any:
    """A copy without empty containers, and without those that contain only such."""
    if isinstance(value, dict):
        return {key: bare for key, each in value.items() if (bare := _without_empty(each)) not in ({}, [])}
    if isinstance(value, list):
        return [bare for each in value if (bare := _without_empty(each)) not in ({}, [])]
    return value


# -- appended lines ----------------------------------------------------------------------------------------
# Append lines to a text after an empty line; removing them restores the text to the byte.


def split_lines(text: str) -> list[str]:
    """Split a text after each line feed, and nowhere else; the lines keep their endings."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def newline_style(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def append_lines(text: str | None, lines: list[str]) -> str:
    """Append lines to a text (None: no file). The result ends with a newline if the text did or is None."""
    newline = newline_style(text or "")
    block = newline.join(lines)
    if not text:
        return block + ("\n" if text is None else "")
    return f"{text}{newline}{block}{newline}" if text.endswith("\n") else f"{text}{newline * 2}{block}"


def remove_lines(rows: list[str], start: int, end: int) -> list[str]:
    """Remove the lines [start, end), and the empty line and newline that `append_lines` added."""
    cut_off = not rows[end - 1].endswith("\n")
    parted = start > 1 and rows[start - 1] in ("\n", "\r\n")
    kept = rows[: start - parted] + rows[end:]
    if cut_off and parted:  # the text did not end with a newline before
        kept[-1] = kept[-1].removesuffix(rows[start - 1])
    return kept


# -- toml edits --------------------------------------------------------------------------------------------
# Add, change and remove one table, by whole lines, so that comments, order and layout of the rest stay. Each
# result is parsed and compared with the expected value.
#
# tomlkit, which edits our own settings, does not fit here: it treats the comment above the next table as part
# of the table before it, and moves it.


def read_table(text: str, name: tuple[str, str]) -> dict[str, Any] | None:
    """The values of a table, None if there is no such table. EditError if the text is not TOML."""
    holder = _read(text).get(name[0], {})
    found = holder.get(name[1]) if isinstance(holder, dict) else None
    return found if isinstance(found, dict) else None


def put_table(text: str | None, name: tuple[str, str], values: dict[str, Any]) -> str:
    """Set these values in the table, which is added if it is missing; its other values stay.

    EditError if the text is not TOML, or the table cannot be edited line by line.
    """
    before, present = _read(text or ""), read_table(text or "", name)
    if text and present is not None and all(present.get(key) == value for key, value in values.items()):
        return text
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in values.items()]
    if present is None:
        new = append_lines(text, [f"[{name[0]}.{name[1]}]", *lines])
    else:
        new = _change_lines(text or "", name, dict(zip(values, lines, strict=True)))
    holder = before.get(name[0])
    expected = {**(holder if isinstance(holder, dict) else {}), name[1]: {**(present or {}), **values}}
    _check_edit(text or "", new, name, {**before, name[0]: expected})
    return new


def remove_table(text: str, name: tuple[str, str]) -> str | None:
    """Remove the table and its subtables, and the empty line before it.

    None if nothing is left of a file that we created.
    """
    before = _read(text)
    if read_table(text, name) is None:
        return text
    rows = split_lines(text)
    while found := _find_table(rows, name):
        rows = remove_lines(rows, *found)
    new = "".join(rows)
    others = {key: value for key, value in before[name[0]].items() if key != name[1]}
    expected = {key: value for key, value in before.items() if key != name[0]}
    _check_edit(text, new, name, {**expected, name[0]: others} if others else expected)
    return new if new or not text.endswith("\n") else None


def _read(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text.lstrip("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"\(at line (\d+), column \d+\)", str(error))
        why = str(error).partition(" (at ")[0]
        line = int(found[1]) if found else text.count("\n") + 1
        raise EditError(line, why[:1].lower() + why[1:]) from error
    except RecursionError as error:
        raise EditError(1, "it is nested too deep") from error


def _check_edit(text: str, new: str, name: tuple[str, str], expected: dict[str, Any]) -> None:
    """EditError unless the new text has the expected values; the table may be inline or have dotted keys."""
    with suppress(EditError):
        if _read(new) in (expected, {**expected, name[0]: {}}):
            return
    line = next((n for n, row in enumerate(text.splitlines(), 1) if name[0] in row), 1)
    raise EditError(line, f"{name[0]} is written in a form that cannot be edited line by line")


def _header_pattern(name: tuple[str, str]) -> re.Pattern[str]:
    first, second = (rf"(?:{re.escape(each)}|\"{re.escape(each)}\"|'{re.escape(each)}')" for each in name)
    return re.compile(rf"\ufeff?\s*\[\s*{first}\s*\.\s*{second}\s*[.\]]")


def _find_table(rows: list[str], name: tuple[str, str]) -> tuple[int, int] | None:
    """The lines [start, end) of the first table with this name, without the comments after it."""
    header = _header_pattern(name)
    start = next((n for n, row in enumerate(rows) if header.match(row)), None)
    if start is None:
        return None
    end = start + 1
    for n in range(start + 1, len(rows)):
        row = rows[n].strip()
        if row.startswith("["):
            break
        if row and not row.startswith("#"):
            end = n + 1
    return start, end


def _change_lines(text: str, name: tuple[str, str], lines: dict[str, str]) -> str:
    """Replace the lines of these keys in the table; missing ones are inserted after its header."""
    rows, newline = split_lines(text), newline_style(text)
    start, end = _find_table(rows, name) or (0, 0)
    for key, line in lines.items():
        there = next((n for n in range(start + 1, end) if re.match(rf"\s*\"?{key}\"?\s*=", rows[n])), None)
        if there is None:
            rows.insert(start + 1, line + newline)
            end += 1
        else:
            rows[there] = line + (newline if rows[there].endswith("\n") else "")
    return "".join(rows)
