"""Every client's transcript, written for this repository, against the turns a person read and approved.

`make golden` rewrites the expectations. What must never be read bears the word SECRET in the data.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest

from ua_memory.clients.transcripts import TranscriptReading as Reading
from ua_memory.clients.transcripts import read, sniff

DATA = Path(__file__).parent / "data"
FILES = sorted(p for p in DATA.iterdir() if not p.name.endswith(".turns"))
CLIENTS = {
    "claude-code": "claude-code",
    "pi-": "pi",
    "clawdbot": "clawdbot",
    "openclaw": "openclaw",
    "codex": "codex",
    "hermes": "hermes",
    "opencode": "opencode",
    "messages": "messages",
    "chat": "markdown",
    "notes": "text",
}


def shown(reading: Reading) -> str:
    """A reading as lines that a person can check."""
    lines = [
        f"{name}: {value}"
        for name, value in (
            ("session", reading.session),
            ("context", reading.context_size),
            ("boundary", reading.boundary),
            ("problems", [str(p) for p in reading.problems]),
            ("cut", reading.cut),
        )
    ]
    for turn in reading:
        marks = " ".join(
            filter(None, (turn.agent and f"agent={turn.agent}", "summary" if turn.summary else ""))
        )
        at = turn.at.isoformat() if turn.at else "-"
        lines.append(f"[{turn.line}] {turn.role} {turn.id} {at} {marks}".rstrip())
        lines += ["    " + line for line in turn.text.split("\n")]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_turns_are_what_was_said(path: Path, golden: Callable[[Path, bytes], None]) -> None:
    with path.open("rb") as stream:
        text = shown(read(stream))
    assert "SECRET" not in text
    golden(path.with_name(path.name + ".turns"), text.encode())


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_the_client_is_known_by_content(path: Path) -> None:
    expected = next(client for start, client in CLIENTS.items() if path.name.startswith(start))
    data = path.read_bytes()
    assert sniff(data) == expected
    assert sniff(b"\xef\xbb\xbf" + data) == expected
    assert sniff(data.replace(b"\n", b"\r\n")) == expected


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_line_ends_and_a_pipe_change_nothing(path: Path) -> None:
    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

    data = path.read_bytes()
    plain = list(read(io.BytesIO(data)))
    assert list(read(Pipe(data))) == plain
    ended = [turn.text.replace("\r\n", "\n") for turn in read(io.BytesIO(data.replace(b"\n", b"\r\n")))]
    assert ended == [turn.text for turn in plain]


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_ids_are_unique_and_resume_anywhere(path: Path) -> None:
    data = path.read_bytes()
    turns = list(read(io.BytesIO(data)))
    assert len({turn.id for turn in turns}) == len(turns)
    for number, turn in enumerate(turns):
        reading = read(io.BytesIO(data), since=turn.id)
        assert list(reading) == turns[number + 1 :]
