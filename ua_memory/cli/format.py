"""What is printed: text for a person, JSON for a script. Rich is loaded only where somebody looks.

A `Screen` takes pieces of text with the names of styles. On a terminal it wraps and colours them; in a pipe
the same words come plain, uncut and without colours. Control characters of remembered text are spelled out
in both, so that no fact can move the cursor, set the title or turn the line around.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.console import Console

    from ua_memory.cli.call import Call
    from ua_memory.memory import Result

Piece = str | tuple[str, str]
"""Text, or text and the name of a style in STYLES."""

STYLES = {
    "strong": "bold",
    "faint": "dim",
    "match": "bold yellow",
    "path": "cyan",
    "id": "magenta",
    "rev": "yellow",
    "good": "green",
    "bad": "red",
    "warn": "yellow",
    "added": "green",
    "removed": "red",
    "hunk": "cyan",
}
ROOM = 24
"""Columns that a text needs beside its label; where there are fewer it begins on the next line."""

_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_UNSAFE_IN_JSON = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def visible(text: str) -> str:
    """The text with control characters, direction marks and broken bytes spelled out: `\\x1b`."""
    return _HIDDEN.sub(lambda found: _spelled(ord(found[0])), text)


def _spelled(code: int) -> str:
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is not UTF-8, as Python carries it along
        code -= 0xDC00
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def dumps(value: object, stream: TextIO, *, indent: int | None = None) -> str:
    """JSON whose strings no reader can take for a line's end, in ASCII where the stream is not UTF-8."""
    ascii_only = (getattr(stream, "encoding", None) or "utf-8").lower().replace("-", "") != "utf8"
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    return _UNSAFE_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def emit(call: Call, value: object, *, line: bool = False) -> None:
    """Print a value as JSON: on one line for a script, indented where a person looks, unless `line`."""
    indent = 2 if call.on_terminal and not line else None
    call.stdout.write(dumps(value, call.stdout, indent=indent) + "\n")


def note(call: Call, text: str) -> None:
    """Say something beside the result, on standard error. With `--json` it is in the JSON instead."""
    if not call.as_json:
        call.stdout.flush()
        call.stderr.write(f"ua-memory: {visible(text)}\n")


def agrees(call: Call, question: str) -> bool:
    """Ask a person at a terminal; anything but yes is no."""
    call.stdout.flush()
    call.stderr.write(f"{question} [y/N] ")
    call.stderr.flush()
    return call.stdin.readline().strip().lower() in (b"y", b"yes")


def commit(revision: str | None) -> Piece:
    """`commit 1a2b3c4`, or that the commit is still owed."""
    return (f"commit {revision[:7]}", "rev") if revision else ("not committed yet", "warn")


def outcome(call: Call, result: Result, *more: str) -> None:
    """Say what a revision took out, and what else there is to say about it."""
    for kind, number in result.redacted.items():
        note(call, f"taken out before writing: {kind}{f' ({number} times)' if number > 1 else ''}")
    for text in (*more, *result.notes):
        note(call, text)


def cells(text: str) -> int:
    """Columns that a text takes on a terminal: two for CJK and emoji, none for what combines."""
    if text.isascii():
        return len(text)
    return sum(
        0
        if unicodedata.combining(c) or c in "\u200d\ufe0f"
        else 1 + (unicodedata.east_asian_width(c) in "WF")
        for c in text
    )


def count(number: int, noun: str, plural: str | None = None) -> str:
    """`1 file`, `12 files`, `1,234 revisions`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


class Screen:
    """Where the human form of a result goes."""

    def __init__(self, call: Call) -> None:
        self.call, self.width = call, call.width
        self.fancy = call.on_terminal and call.env.get("TERM") != "dumb"
        self._console: Console | None = None

    # -- printing ------------------------------------------------------------------------------

    def line(self, *pieces: Piece) -> None:
        """One line, or on a terminal as many as it takes."""
        self.item("", *pieces)

    def item(self, label: Piece | Sequence[Piece], *pieces: Piece) -> None:
        """A label and a text; on a terminal the text's further lines stand under its first."""
        front: list[Piece] = [*label] if isinstance(label, list) else [label]  # type: ignore[list-item]
        lead = visible("".join(_text(piece) for piece in front))
        if not self.fancy:
            body = visible("".join(_text(piece) for piece in pieces)).replace("\n", "\n" + " " * cells(lead))
            self.call.stdout.write(f"{lead}{body}".rstrip() + "\n")
            return
        self._wrapped(front, lead, pieces)

    def raw(self, text: str, *, exact: bool = False) -> None:
        """A text uncut and unwrapped, its control characters spelled out but for those that end its lines; a
        pipe, too, may end at a terminal. To the byte if `exact`."""
        if not text.endswith("\n"):
            text += "\n"
        self.call.stdout.write(text if exact else "\r\n".join(map(visible, text.split("\r\n"))))

    def _wrapped(self, front: list[Piece], lead: str, pieces: Iterable[Piece]) -> None:
        from rich.text import Text

        console = self.console()
        indent = cells(lead)
        body = self._styled(pieces)
        out = self._styled(front)
        if indent and self.width - indent < ROOM and cells(body.plain) > self.width - indent:
            out.rstrip()
            out.append("\n")
            indent = min(2, indent)
            out.append(" " * indent)
        lines = body.wrap(console, max(self.width - indent, 8)) if body.plain else [Text("")]
        for number, each in enumerate(lines):
            each.rstrip()
            out.append("\n" + " " * indent if number else "")
            out.append_text(each)
        console.print(out, soft_wrap=True)

    def _styled(self, pieces: Iterable[Piece]) -> Any:
        from rich.text import Text

        text = Text()
        for piece in pieces:
            text.append(visible(_text(piece)), None if isinstance(piece, str) else STYLES[piece[1]])
        return text

    def console(self) -> Console:
        """Rich's console on the caller's terminal."""
        if self._console is None:
            self._console = _console(self.call, self.call.stdout)
        return self._console

    # -- shapes --------------------------------------------------------------------------------

    def rows(self, rows: Sequence[Sequence[Piece]], *, gap: int = 2) -> None:
        """A table without lines: columns as wide as their widest cell, the last one wrapped."""
        if not rows:
            return
        columns = max(len(row) for row in rows) - 1
        widths = [
            max((cells(visible(_text(row[n]))) for row in rows if n < len(row) - 1), default=0)
            for n in range(columns)
        ]
        for row in rows:
            label: list[Piece] = []
            for cell, width in zip(row[:-1], widths, strict=False):
                label += [cell, " " * (width - cells(visible(_text(cell))) + gap)]
            self.item(label, row[-1])

    def bar(self, part: float, size: int = 10) -> list[Piece]:
        """How full something is, drawn; nothing in a pipe."""
        if not self.fancy:
            return []
        filled = min(size, round(part * size)) if part < 1 else size
        style = "bad" if part > 1 else "warn" if part >= 0.8 else "good"
        return [("█" * filled, style), ("░" * (size - filled), "faint"), "  "]

    def diff(self, text: str, *, exact: bool = False) -> None:
        """A unified diff, coloured where a person looks; to the byte if `exact`."""
        if not self.fancy or exact:
            self.raw(text, exact=exact) if text else None
            return
        for row in text.splitlines():
            start = row[:4]
            style = (
                "strong"
                if start in ("diff", "+++ ", "--- ", "inde", "new ", "dele")
                else "hunk"
                if row.startswith("@@")
                else "added"
                if row.startswith("+")
                else "removed"
                if row.startswith("-")
                else ""
            )
            self.line((row, style) if style else row)


def _text(piece: Piece) -> str:
    return piece if isinstance(piece, str) else piece[0]


def _console(call: Call, stream: TextIO) -> Console:
    from rich.console import Console

    return Console(
        file=stream,
        force_terminal=True,
        width=call.width,
        highlight=False,
        markup=False,
        emoji=False,
        _environ=call.env,
    )
