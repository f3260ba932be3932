"""JSON that somebody else keeps, changed in place: every byte that is not ours stays, comments and all.

What was edited is read again and compared with what was meant. An edit can be taken back to the byte: whether
a container was there before, empty, is told by how a member is put into it, behind one space into an empty
one, on a line of its own or right behind the bracket into one that we made.
"""

from __future__ import annotations

import json
import re
from typing import Any

from ua_memory.clients.json_scan import Broken, Node, Path, Scanner

__all__ = ["Broken", "Document", "Path"]

_REMARK = re.compile(r"[ \t]*(?://[^\r\n]*|/\*[^\r\n]*?\*/(?=[ \t]*\r?\n))")
"""A comment behind a value, on the value's own line."""


class Document:
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
        self.inner, self.root = text, Scanner(text, self.loose).read()
        if not isinstance(self.root.value, dict):
            raise Broken(1, "no object")

    @property
    def value(self) -> dict[str, Any]:
        found: dict[str, Any] = self.root.value
        return found

    def at(self, path: Path) -> Node | None:
        """The value at a path; of two members of one name the last, as everybody reads it."""
        node: Node | None = self.root
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
        meant = _with(self.value, path, value)
        if (node := self.at(path)) is not None:
            shown = self._rendered(value, self._indent(node.start)) if "\n" in self.inner else _line(value)
            self._replace((node.start, node.end, shown))
        else:
            while len(path) > 1 and self.at(path[:-1]) is None:
                key, path = path[-1], path[:-1]
                value = [value] if isinstance(key, int) else {key: value}
            self._add(path[:-1], path[-1], value)
        assert self.value == meant, f"an edit at {path} has changed something else"

    def cut(self, path: Path) -> None:
        """Take a member or element out, and with it the containers that were made for it alone."""
        way, key = path[:-1], path[-1]
        holder = self.at(way)
        assert holder is not None and holder.members is not None
        meant = _bare(_without(self.value, path))
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
        assert _bare(self.value) == meant, f"an edit at {path} has changed something else"

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
            raise Broken(self.line(way), f"{'.'.join(map(str, way))} is not what it should be")
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
            remark = _REMARK.match(self.inner, end) if self.loose else None
            behind = remark.end() if remark else end
        self._replace((end, end, ","), (behind, behind, shown))

    def _replace(self, *pieces: tuple[int, int, str]) -> None:
        text = self.inner
        for start, end, new in reversed(pieces):
            text = text[:start] + new + text[end:]
        self._read(text)

    def _comma(self, at: int) -> int:
        found = Scanner(self.inner, self.loose).skip(at)
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


def _with(value: Any, path: Path, new: Any) -> Any:
    """A copy with the value at a path set, the containers on the way made."""
    if not path:
        return new
    key, rest = path[0], path[1:]
    if isinstance(key, int):
        found = list(value) if isinstance(value, list) else []
        there = found[key] if key < len(found) else None
        return [*found[:key], _with(there, rest, new), *found[key + 1 :]]
    there = value if isinstance(value, dict) else {}
    return {**there, key: _with(there.get(key), rest, new)}


def _without(value: Any, path: Path) -> Any:
    """A copy without the member or element at a path."""
    key, rest = path[0], path[1:]
    if isinstance(value, list):
        return [new for n, each in enumerate(value) for new in ([each] if n != key else _cut(each, rest))]
    return {
        name: new for name, each in value.items() for new in ([each] if name != key else _cut(each, rest))
    }


def _cut(value: Any, rest: Path) -> list[Any]:
    return [_without(value, rest)] if rest else []


def _bare(value: Any) -> Any:
    """A copy without empty containers, and without those that hold nothing else."""
    if isinstance(value, dict):
        return {key: bare for key, each in value.items() if (bare := _bare(each)) not in ({}, [])}
    if isinstance(value, list):
        return [bare for each in value if (bare := _bare(each)) not in ({}, [])]
    return value
