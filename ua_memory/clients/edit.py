"""JSON and TOML that somebody else keeps, changed in place: every other byte stays."""

from __future__ import annotations

import json
import re
import tomllib
from copy import deepcopy
from functools import reduce
from operator import getitem
from typing import Any, NamedTuple

# -- json scan ---------------------------------------------------------------------------------------------
# Where each value of a JSON text begins and ends: a scanner that keeps the places.
#
# It reads JSON, and what OpenClaw's settings may have besides: comments, commas before a bracket, single
# quotes, names without quotes.


DEEPEST = 100
"""Containers in containers; no settings file is deeper."""
Path = tuple[str | int, ...]
"""The way to a value: names of members and numbers of elements."""


class Broken(Exception):
    """A text that is not of the expected type: the line, counted from 1, and why."""

    def __init__(self, line: int, why: str) -> None:
        self.line, self.why = line, why
        super().__init__(f"line {line}: {why}")


class JsonNode(NamedTuple):
    """A value and where it stands: [start, end) of the text. `members` are None but for containers."""

    start: int
    end: int
    value: Any
    members: list[Member] | None


class Member(NamedTuple):
    """A member of an object or an element of an array (its key is a number); `start` is that of its key."""

    key: str | int
    start: int
    node: JsonNode


_SPACE = re.compile(r"(?:[\s\ufeff]|//[^\n]*|/\*.*?\*/)*", re.S)
_STRING = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'", re.S)
_WORD = re.compile(r"[^\s,:\[\]{}\"'/]+")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|\r\n|.)", re.S)
_PLAIN = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0"}


class Scanner:
    def __init__(self, text: str) -> None:
        self.text = text

    def read(self) -> JsonNode:
        node = self.node(self.skip(0), 0)
        if self.skip(node.end) != len(self.text):
            raise self.broken(self.skip(node.end), "unexpected text after the value")
        return node

    def skip(self, at: int) -> int:
        found = _SPACE.match(self.text, at)
        return found.end() if found else at

    def broken(self, at: int, why: str) -> Broken:
        return Broken(self.text.count("\n", 0, at) + 1, why)

    def node(self, at: int, depth: int) -> JsonNode:
        sign = self.text[at : at + 1]
        if sign in ("{", "["):
            if depth == DEEPEST:
                raise self.broken(at, "nested too deep")
            return self.container(at, depth)
        if found := _STRING.match(self.text, at) or _WORD.match(self.text, at):
            return JsonNode(at, found.end(), _said(found[0]), None)
        raise self.broken(at, "a value is missing")

    def container(self, start: int, depth: int) -> JsonNode:
        named = self.text[start] == "{"
        close = "}" if named else "]"
        members: list[Member] = []
        at = self.skip(start + 1)
        while self.text[at : at + 1] != close:
            key, front = len(members), at
            if named:
                key, at = self.key(at)  # type: ignore[assignment]
            node = self.node(at, depth + 1)
            members.append(Member(key, front, node))
            at = self.skip(node.end)
            if self.text[at : at + 1] == ",":
                at = self.skip(at + 1)
            elif self.text[at : at + 1] != close:
                raise self.broken(at, f"a comma or {close} is missing")
        pairs = [(each.key, each.node.value) for each in members]
        return JsonNode(start, at + 1, dict(pairs) if named else [value for _, value in pairs], members)

    def key(self, at: int) -> tuple[str, int]:
        quoted = _STRING.match(self.text, at)
        found = quoted or _WORD.match(self.text, at)
        if found is None:
            raise self.broken(at, "a name in quotes is missing")
        after = self.skip(found.end())
        if self.text[after : after + 1] != ":":
            raise self.broken(after, "a colon is missing")
        return _said(found[0]) if quoted else found[0], self.skip(after + 1)


def _said(text: str) -> Any:
    """What a string or a word of the text says; what is no JSON only a reader of JSON5 takes."""
    try:
        return json.loads(text)
    except ValueError:
        # In single quotes, or a number of its own kind: 0x1F, .5, +1.
        return _ESCAPE.sub(_unescaped, text[1:-1]) if text[0] in "\"'" else text


def _unescaped(found: re.Match[str]) -> str:
    sign = found[1]
    if len(sign) > 1 and sign[0] in "ux":
        return chr(int(sign[1:], 16))
    return "" if sign in ("\n", "\r\n", "\r") else _PLAIN.get(sign, sign)


# -- json edit ---------------------------------------------------------------------------------------------
# JSON that somebody else keeps, changed in place: every byte that is not ours stays, comments and all.
#
# What was edited is read again and compared with what was meant. An edit can be taken back to the byte:
# whether a container was there before, empty, is told by how a member is put into it, behind one space into
# an empty one, on a line of its own or right behind the bracket into one that we made.


_REMARK = re.compile(r"[ \t]*(?://[^\r\n]*|/\*[^\r\n]*?\*/(?=[ \t]*\r?\n))")
"""A comment behind a value, on the value's own line."""


class JsonDocument:
    """A text of JSON under edit. `value` is what it says, for reading only; Broken where it is none.

    A blank text counts as an empty object, which comes behind it.
    """

    def __init__(self, text: str, *, loose: bool = False) -> None:
        self.loose, self.blank, self.emptied = loose, not text.strip("\ufeff \t\r\n"), False
        self._read(text + "{}" if self.blank else text)
        self.newline = "\r\n" if "\r\n" in text else "\n"
        self.unit = self._unit()

    def _read(self, text: str) -> None:
        if not self.loose:
            try:
                json.loads(text.lstrip("\ufeff"))
            except json.JSONDecodeError as error:
                raise Broken(error.lineno, error.msg) from error
            except RecursionError as error:
                raise Broken(1, "nested too deep") from error
        self.inner, self.root = text, Scanner(text).read()
        if not isinstance(self.root.value, dict):
            raise Broken(1, "not an object")

    @property
    def value(self) -> dict[str, Any]:
        found: dict[str, Any] = self.root.value
        return found

    def at(self, path: Path) -> JsonNode | None:
        """The value at a path; of two members of one name the last, as everybody reads it."""
        node: JsonNode | None = self.root
        for key in path:
            fits = [each.node for each in (node.members or ()) if each.key == key] if node else []
            node = fits[-1] if fits else None
        return node

    def line(self, path: Path) -> int:
        """The line on which the value at a path, or the last there is on the way, begins."""
        while path and self.at(path) is None:
            path = path[:-1]
        node = self.at(path)
        return self.inner.count("\n", 0, node.start if node else 0) + 1

    # -- edits ---------------------------------------------------------------------------------------

    def put(self, path: Path, value: Any) -> None:
        """Set a member, and make the objects on the way to it; where it stands already it is replaced.

        A number that is the array's length adds an element. Broken where something else is in the way.
        """
        meant: Any = deepcopy(self.value)
        if (node := self.at(path)) is not None:
            shown = self._rendered(value, self._indent(node.start)) if "\n" in self.inner else _line(value)
            self._replace((node.start, node.end, shown))
        else:
            while len(path) > 1 and self.at(path[:-1]) is None:
                key, path = path[-1], path[:-1]
                value = [value] if isinstance(key, int) else {key: value}
            self._add(path[:-1], path[-1], value)
        holder: Any = reduce(getitem, path[:-1], meant)
        if isinstance(number := path[-1], int):
            holder[number : number + 1] = [value]
        else:
            holder[number] = value
        assert self.value == meant, f"an edit at {path} has changed something else"

    def cut(self, path: Path) -> None:
        """Take a member or element out, and with it the containers that were made for it alone."""
        way, key = path[:-1], path[-1]
        holder = self.at(way)
        assert holder is not None and holder.members is not None
        meant: Any = deepcopy(self.value)
        del reduce(getitem, way, meant)[key]
        number = max(n for n, each in enumerate(holder.members) if each.key == key)
        members, mine = holder.members, holder.members[number]
        front = self.inner[holder.start + 1 : mine.start]
        if number:  # with the comma, which stands right behind what was there before; comments stay
            comma = self._comma(members[number - 1].node.end)
            kept = comma + 1 + len(self.inner[comma + 1 : mine.start].rstrip())
            self._replace((comma, comma + 1, ""), (kept, mine.node.end, ""))
        elif len(members) > 1:
            after = self._comma(mine.node.end) + 1
            after += len(self.inner[after:]) - len(self.inner[after:].lstrip())
            self._replace((mine.start, after, ""))
        elif front == " ":
            self._replace((holder.start + 1, mine.node.end, ""))
        elif way:
            self.cut(way)
        else:
            self._replace((holder.start + 1, holder.end - 1, ""))
            self.emptied = True
        assert _bare(self.value) == _bare(meant), f"an edit at {path} has changed something else"

    def text(self) -> str | None:
        """The text after the edits; None where only a last line's end is left of a file that we had made."""
        if not self.value and (self.blank or self.emptied):
            front, tail = self.inner[: self.root.start], self.inner[self.root.end :]
            return None if (front, tail) == ("", "\n") else front + tail
        return self.inner

    # -- pieces --------------------------------------------------------------------------------------

    def _add(self, way: Path, key: str | int, value: Any) -> None:
        holder = self.at(way)
        if holder is None or holder.members is None or isinstance(holder.value, dict) != isinstance(key, str):
            raise Broken(self.line(way), f"{'.'.join(map(str, way))} is not of the expected type")
        name = f"{json.dumps(key)}: " if isinstance(key, str) else ""
        if not holder.members:
            lead = " "
            if not way and self.blank:
                lead = self.newline + self.unit
            indent = self._indent(holder.start) + self.unit
            tail = self.newline if lead != " " else ""
            shown = f"{lead}{name}{self._rendered(value, indent)}{tail}"
            self._replace((holder.start + 1, holder.start + 1, shown))
            return
        last = holder.members[-1]
        alone = self._lead(last.start)
        end = behind = last.node.end
        if alone is None:
            shown = f" {name}{_line(value)}"
        else:
            shown = f"{self.newline}{alone}{name}{self._rendered(value, alone)}"
            remark = _REMARK.match(self.inner, end)
            behind = remark.end() if remark else end
        self._replace((end, end, ","), (behind, behind, shown))

    def _replace(self, *pieces: tuple[int, int, str]) -> None:
        text = self.inner
        for start, end, new in reversed(pieces):
            text = text[:start] + new + text[end:]
        self._read(text)

    def _comma(self, at: int) -> int:
        found = Scanner(self.inner).skip(at)
        assert self.inner[found] == ","
        return found

    def _lead(self, at: int) -> str | None:
        """The blanks before a place where it is the first of its line, else None."""
        front = self.inner[self.inner.rfind("\n", 0, at) + 1 : at]
        return front if not front.strip(" \t") and "\n" in self.inner[:at] else None

    def _indent(self, at: int) -> str:
        found = re.match(r"[ \t]*", self.inner[self.inner.rfind("\n", 0, at) + 1 :])
        return found[0] if found else ""

    def _unit(self) -> str:
        leads = [self._lead(each.start) for each in self.root.members or ()]
        return next((lead for lead in leads if lead), "  ")

    def _rendered(self, value: Any, indent: str) -> str:
        shown = json.dumps(value, ensure_ascii=False, indent=self.unit)
        return shown.replace("\n", self.newline + indent)


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _bare(value: Any) -> Any:
    """A copy without empty containers, and without those that hold nothing else."""
    if isinstance(value, dict):
        return {key: bare for key, each in value.items() if (bare := _bare(each)) not in ({}, [])}
    if isinstance(value, list):
        return [bare for each in value if (bare := _bare(each)) not in ({}, [])]
    return value


# -- paragraph ---------------------------------------------------------------------------------------------
# Lines of ours at the end of somebody's text, behind an empty line, and out again to the byte.


def rows_of(text: str) -> list[str]:
    """The lines of a text with their ends. Only a line feed ends one, whatever else stands in it."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def newline_of(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def added(text: str | None, lines: list[str]) -> str:
    """The text with the lines at its end. They end as it does; None, no file, as with a line's end."""
    newline = newline_of(text or "")
    block = newline.join(lines)
    if not text:
        return block + ("\n" if text is None else "")
    return f"{text}{newline}{block}{newline}" if text.endswith("\n") else f"{text}{newline * 2}{block}"


def removed(rows: list[str], start: int, end: int) -> list[str]:
    """The lines without those from `start` to before `end`, and without what `added` put around them."""
    cut_off = not rows[end - 1].endswith("\n")
    parted = start > 1 and rows[start - 1] in ("\n", "\r\n")
    kept = rows[: start - parted] + rows[end:]
    if cut_off and parted:  # the text had no line's end when they came
        kept[-1] = kept[-1].removesuffix(rows[start - 1])
    return kept


# -- toml edit ---------------------------------------------------------------------------------------------
# One table in TOML that somebody else keeps: added at the end, found again by its name, taken out.
#
# Text is only ever added or cut in whole lines, and what comes of it is read and compared with what was
# meant. So comments, order and layout of everything else stay. tomlkit, which edits our own settings, loses
# them here: it counts the comment above the next table to the one before, and moves it along.


def table(text: str, name: tuple[str, str]) -> dict[str, Any] | None:
    """What a table says, None where there is none. Broken where the text is no TOML."""
    holder = _read(text).get(name[0], {})
    found = holder.get(name[1]) if isinstance(holder, dict) else None
    return found if isinstance(found, dict) else None


def put(text: str | None, name: tuple[str, str], values: dict[str, Any]) -> str:
    """The text with these values in the table; others that stand in it stay.

    Broken where the text is no TOML, or has the table in a form that lines cannot be added to.
    """
    before, present = _read(text or ""), table(text or "", name)
    if text and present is not None and all(present.get(key) == value for key, value in values.items()):
        return text
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in values.items()]
    if present is None:
        new = added(text, [f"[{name[0]}.{name[1]}]", *lines])
    else:
        new = _changed(text or "", name, dict(zip(values, lines, strict=True)))
    held = before.get(name[0])
    meant = {**(held if isinstance(held, dict) else {}), name[1]: {**(present or {}), **values}}
    _same(text or "", new, name, {**before, name[0]: meant})
    return new


def cut(text: str, name: tuple[str, str]) -> str | None:
    """The text without the table and the tables below it, and without the empty line before it.

    None where nothing is left of a file that we had made.
    """
    before = _read(text)
    if table(text, name) is None:
        return text
    rows = rows_of(text)
    while found := _span(rows, name):
        rows = removed(rows, *found)
    new = "".join(rows)
    rest = {key: value for key, value in before[name[0]].items() if key != name[1]}
    meant = {key: value for key, value in before.items() if key != name[0]}
    _same(text, new, name, {**meant, name[0]: rest} if rest else meant)
    return new if new or not text.endswith("\n") else None


def _read(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text.lstrip("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"\(at line (\d+), column \d+\)", str(error))
        why = str(error).partition(" (at ")[0]
        line = int(found[1]) if found else text.count("\n") + 1
        raise Broken(line, why[:1].lower() + why[1:]) from error
    except RecursionError as error:
        raise Broken(1, "it is nested too deep") from error


def _same(text: str, new: str, name: tuple[str, str], meant: dict[str, Any]) -> None:
    """Broken unless the new text says what was meant: the table may be written in another way than as one."""
    try:
        if _read(new) == meant or _read(new) == {**meant, name[0]: {}}:
            return
    except Broken:
        pass
    lines = text.splitlines()
    line = next((n for n, row in enumerate(lines, 1) if name[0] in row), 1)
    raise Broken(line, f"{name[0]} is written in a form that cannot be edited line by line")


def _header(name: tuple[str, str]) -> re.Pattern[str]:
    first, second = (rf"(?:{re.escape(each)}|\"{re.escape(each)}\"|'{re.escape(each)}')" for each in name)
    return re.compile(rf"\ufeff?\s*\[\s*{first}\s*\.\s*{second}\s*[.\]]")


def _span(rows: list[str], name: tuple[str, str]) -> tuple[int, int] | None:
    """The lines [start, end) of the first of the tables with this name; comments behind it are not its."""
    header = _header(name)
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


def _changed(text: str, name: tuple[str, str], lines: dict[str, str]) -> str:
    """The text with some lines of the table in place of those of the same keys, or behind its header."""
    rows, newline = rows_of(text), newline_of(text)
    start, end = _span(rows, name) or (0, 0)
    for key, line in lines.items():
        there = next((n for n in range(start + 1, end) if re.match(rf"\s*\"?{key}\"?\s*=", rows[n])), None)
        if there is None:
            rows.insert(start + 1, line + newline)
            end += 1
        else:
            rows[there] = line + (newline if rows[there].endswith("\n") else "")
    return "".join(rows)
