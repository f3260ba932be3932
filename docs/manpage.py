"""The man page, from the help texts. `make golden` writes it to docs/ua-memory.1; the wheel has it."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any

from ua_memory import __version__, config
from ua_memory.cli.app import EPILOG, VERBS, command_line
from ua_memory.errors import EXIT_CODES

WIDTH = 10_000
"""Columns of a usage line: the reader's terminal breaks it."""
ABOUT = (
    "Daily logs and core memory are markdown files; every revision is a git commit; the index can be deleted",
    "at any time. Without a command it says where the bank is and what to do next.",
)
FILES = (
    ("~/ua-memory", "The default bank, used where there is no other."),
    ("ua-memory.toml", "A bank's settings, in its folder."),
    ("~/.config/ua-memory/config.toml", "Settings for all of your banks."),
)


def page() -> str:
    """The page in the language of man."""
    root: Any = command_line()
    top = root.make_context(
        "ua-memory", ["--help"], resilient_parsing=True, help_option_names=["-h", "--help"]
    )
    out = [
        f'.TH UA\\-MEMORY 1 "" "ua\\-memory {__version__}" "User Commands"',
        ".SH NAME", f"ua\\-memory \\- {_text(root.help)[:1].lower()}{_text(root.help)[1:].rstrip('.')}",
        ".SH SYNOPSIS", ".B ua\\-memory", "[OPTIONS] COMMAND [ARGS]...",
        ".SH DESCRIPTION", *ABOUT, _text(EPILOG),
        ".SH OPTIONS", *_params(root, top),
    ]  # fmt: skip
    for title, section in VERBS.items():
        out += [f".SH {_text(title).upper()}"]
        for name in section:
            out += _command(root.get_command(top, name), top, f"ua-memory {name}")
    out += [".SH ENVIRONMENT"]
    for one in config.settings():
        out += [".TP", f".B {_text(one.env)}", f"{_text(one.says)} ({_text(one.key)})"] if one.env else []
    out += [".SH FILES"]
    for name, says in FILES:
        out += [".TP", f".I {_text(name)}", _text(says)]
    out += [".SH EXIT STATUS", "0 for success, 1 for a bug, 2 for invalid usage, and one for each cause:"]
    for code, kind in sorted((code, kind) for kind, code in _codes()):
        out += [".TP", f".B {code}", _text(kind)]
    out += [".SH SEE ALSO", ".BR git (1)"]
    return "\n".join(_guarded(line) for line in out) + "\n"


def _command(command: Any, above: Any, called: str) -> Iterator[str]:
    """A verb; of a family each of its verbs."""
    context = type(above)(command, info_name=called.rpartition(" ")[2], parent=above)
    inner = getattr(command, "commands", {})
    usage = " ".join(command.collect_usage_pieces(context))
    yield from (".SS " + _text(called), f".B {_text(called)}", _text(usage))
    yield from _prose(command.help or "")
    yield from _params(command, context)
    for name, each in inner.items():
        yield from _command(each, context, f"{called} {name}")


def _prose(text: str) -> Iterator[str]:
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        yield from (".PP", _text(" ".join(paragraph.split())))


def _params(command: Any, context: Any) -> Iterator[str]:
    """Arguments and options, each with what its help says; `-h` is told once."""
    for param in command.get_params(context):
        record = None if param.name == "help" and context.parent else param.get_help_record(context)
        if record:
            yield from (".TP", f".B {_text(record[0])}", _text(" ".join(record[1].split())) or "\\&")


def _codes() -> Iterator[tuple[str, int]]:
    for code, kind in EXIT_CODES.items():
        yield " ".join((kind.__doc__ or kind.__name__).split()), code


def _text(text: str) -> str:
    """Text as man takes it: a minus that can be copied, and no escapes but ours."""
    return text.replace("\\", "\\e").replace("-", "\\-")


def _guarded(line: str) -> str:
    """A line of text that begins like a request is text still."""
    return f"\\&{line}" if line[:1] == "'" or re.match(r"\.(?![A-Z]{1,2}( |$))", line) else line


if __name__ == "__main__":
    sys.stdout.write(page())
