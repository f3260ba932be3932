"""Where each value of a JSON text begins and ends: a scanner that keeps the places.

It reads JSON, and with `loose` what OpenClaw's settings may have besides: comments, commas before a bracket,
single quotes, names without quotes.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

DEEPEST = 100
"""Containers in containers; no settings file is deeper."""
Path = tuple[str | int, ...]
"""The way to a value: names of members and numbers of elements."""


class Broken(Exception):
    """A text that is not what it should be: the line, counted from 1, and why."""

    def __init__(self, line: int, why: str) -> None:
        self.line, self.why = line, why
        super().__init__(f"line {line}: {why}")


class Node(NamedTuple):
    """A value and where it stands: [start, end) of the text. `members` are None but for containers."""

    start: int
    end: int
    value: Any
    members: list[Member] | None


class Member(NamedTuple):
    """A member of an object or an element of an array (its key is a number); `start` is that of its key."""

    key: str | int
    start: int
    node: Node


_SPACE = re.compile(r"[ \t\r\n\f\v\xa0\ufeff]*")
_LOOSE_SPACE = re.compile(r"(?:[\s\ufeff]|//[^\n]*|/\*.*?\*/)*", re.S)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.S)
_LOOSE_STRING = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'", re.S)
_WORD = re.compile(r"[^\s,:\[\]{}\"'/]+")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|\r\n|.)", re.S)
_PLAIN = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0"}


class Scanner:
    def __init__(self, text: str, loose: bool) -> None:
        self.text, self.loose = text, loose
        self.space = _LOOSE_SPACE if loose else _SPACE
        self.string = _LOOSE_STRING if loose else _STRING

    def read(self) -> Node:
        node = self.node(self.skip(0), 0)
        if self.skip(node.end) != len(self.text):
            raise self.broken(self.skip(node.end), "something stands behind the value")
        return node

    def skip(self, at: int) -> int:
        found = self.space.match(self.text, at)
        return found.end() if found else at

    def broken(self, at: int, why: str) -> Broken:
        return Broken(self.text.count("\n", 0, at) + 1, why)

    def node(self, at: int, depth: int) -> Node:
        sign = self.text[at : at + 1]
        if sign in ("{", "["):
            if depth == DEEPEST:
                raise self.broken(at, "nested too deep")
            return self.container(at, depth)
        if found := self.string.match(self.text, at):
            return Node(at, found.end(), self.said(found[0], at), None)
        if found := _WORD.match(self.text, at):
            return Node(at, found.end(), self.word(found[0], at), None)
        raise self.broken(at, "a value is missing")

    def container(self, start: int, depth: int) -> Node:
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
                if self.text[at : at + 1] == close and not self.loose:
                    raise self.broken(at, "a comma before the bracket")
            elif self.text[at : at + 1] != close:
                raise self.broken(at, f"a comma or {close} is missing")
        pairs = [(each.key, each.node.value) for each in members]
        return Node(start, at + 1, dict(pairs) if named else [value for _, value in pairs], members)

    def key(self, at: int) -> tuple[str, int]:
        if found := self.string.match(self.text, at):
            key = self.said(found[0], at)
        elif self.loose and (found := _WORD.match(self.text, at)):
            key = found[0]
        else:
            raise self.broken(at, "a name in quotes is missing")
        after = self.skip(found.end())
        if self.text[after : after + 1] != ":":
            raise self.broken(after, "a colon is missing")
        return key, self.skip(after + 1)

    def said(self, quoted: str, at: int) -> str:
        if not self.loose:
            try:
                return str(json.loads(quoted))
            except ValueError as error:
                raise self.broken(at, "a string that is none") from error
        return _ESCAPE.sub(_unescaped, quoted[1:-1])

    def word(self, word: str, at: int) -> Any:
        try:
            return json.loads(word)
        except ValueError as error:
            if self.loose:
                return word  # a number of its own kind: 0x1F, .5, +1
            raise self.broken(at, f"{word[:20]!r} is no value") from error


def _unescaped(found: re.Match[str]) -> str:
    sign = found[1]
    if len(sign) > 1 and sign[0] in "ux":
        return chr(int(sign[1:], 16))
    return "" if sign in ("\n", "\r\n", "\r") else _PLAIN.get(sign, sign)
