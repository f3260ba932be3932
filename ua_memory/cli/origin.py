"""Who is calling: a person at a terminal, or an agent through a shell."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from ua_memory.cli.call import Call
    from ua_memory.records import Origin

AGENTS = (
    ("CLAUDECODE", "claude-code"),
    ("CODEX_", "codex"),
    ("PI_", "pi"),
    ("OPENCLAW_", "openclaw"),
    ("HERMES_", "hermes"),
    ("GEMINI_CLI", "gemini-cli"),
    ("OPENCODE", "opencode"),
    ("CURSOR_AGENT", "cursor"),
)
"""How a variable begins that an agent sets for the commands it runs, and the agent's name."""

SETTINGS = ("_HOME", "_DIR", "_PATH", "_CONFIG", "_KEY", "_OFFLINE")
"""A variable that ends so is a person's setting for an agent, and says nothing about who calls."""

MOST = 50 << 20
"""Bytes of standard input that are read as a text or a list of them: as many as `ingest` reads of a file."""


def caller(call: Call) -> tuple[Origin, str]:
    """The origin and the client of what is inserted, unless options say otherwise.

    An agent's variable in the environment: `agent`, under the agent's name. Else standard input is a
    terminal: `person`, `terminal`. Else some program or pipe: `agent`, `cli`.
    """
    for start, name in AGENTS:
        if any(
            key.startswith(start) and not key.endswith(SETTINGS) and value for key, value in call.env.items()
        ):
            return "agent", name
    return ("person", "terminal") if call.reads_terminal else ("agent", "cli")


def is_person(call: Call) -> bool:
    """Whether what is asked comes from a person at a terminal."""
    return caller(call)[0] == "person"


def given(call: Call, file: Path | None = None) -> bytes:
    """A file's bytes, or standard input. Malformed where it cannot be read, TooLarge."""
    from ua_memory import regular
    from ua_memory.errors import Malformed, TooLarge

    try:
        with regular.opened(file) if file else nullcontext(call.stdin) as source:
            data = source.read(MOST + 1)
    except OSError as error:
        where = str(file or "standard input")
        raise Malformed(f"cannot be read: {error.strerror or error}", where=where) from error
    if len(data) > MOST:
        raise TooLarge(f"larger than {MOST >> 20} MB", where=str(file or "standard input"), mend="split it")
    return data


def read_text(call: Call, words: list[str] | None) -> str:
    """The text that a verb was given: its words, or standard input for `-` or for no words in a pipe.

    Usage where there is none, or where it is not UTF-8; TooLarge. One newline at the end of input is no part
    of it.
    """
    from ua_memory.errors import Usage

    if words and words != ["-"]:
        return " ".join(words)
    if not words and call.reads_terminal:
        raise Usage("there is no text", mend="give it as an argument, or `-` to type it and end with Ctrl-D")
    data = given(call)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Usage(
            f"not UTF-8 at byte {error.start}",
            where="standard input",
            mend="convert it, as with iconv -t utf-8",
        ) from error
    return text.removesuffix("\n").removesuffix("\r")
