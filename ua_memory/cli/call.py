"""One call of the command line: who called, from where, with which streams.

The only place of `cli` that looks at the process it runs in. Everything else gets a `Call`, so the same
verb can run in another process on somebody's behalf: with their arguments, folder, input and terminal.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TextIO

if TYPE_CHECKING:
    from ua_memory.config import Config
    from ua_memory.memory import Endpoint, Memory

Clock = Callable[[], datetime]
Opener = Callable[[Path, "Config", Clock | None], AbstractContextManager["Memory"]]
PLAIN_WIDTH = 80
"""The width of help in a pipe. Nothing else that goes into a pipe is broken into lines."""


@contextmanager
def in_process(root: Path, config: Config, now: Clock | None) -> Iterator[Memory]:
    """Open a bank for the length of one call."""
    from ua_memory.memory import Memory

    memory = Memory.open(root, config=config, now=now, door="cli")
    try:
        yield memory
    finally:
        memory.close()


@dataclass(slots=True)
class Call:
    """Arguments, folder, home, environment, streams and terminal of one call.

    `terminals` names those of "stdin", "stdout" and "stderr" that are terminals. `now` is None for the
    bank's own clock. `bank` is what `--bank` said, set while the arguments are read.
    """

    argv: Sequence[str]
    cwd: Path
    home: Path
    env: Mapping[str, str]
    stdin: BinaryIO
    stdout: TextIO
    stderr: TextIO
    terminals: frozenset[str] = frozenset()
    width: int = PLAIN_WIDTH
    now: Clock | None = None
    opener: Opener = in_process
    bank: str | None = None
    as_json: bool = field(init=False)

    def __post_init__(self) -> None:
        words = list(self.argv)
        self.as_json = "--json" in (words[: words.index("--")] if "--" in words else words)

    @property
    def debug(self) -> bool:
        return self.env.get("UA_MEMORY_DEBUG", "0") not in ("", "0")

    @property
    def endpoint(self) -> Endpoint | None:
        """The model that the caller has configured: by environment alone, never by a bank's file."""
        from ua_memory.memory import Memory

        names = ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "UA_MEMORY_MODEL")
        return Memory.endpoint(*(self.env.get(name, "") for name in names))

    @property
    def reads_terminal(self) -> bool:
        return "stdin" in self.terminals

    @property
    def on_terminal(self) -> bool:
        return "stdout" in self.terminals


def of_process(argv: Sequence[str] | None = None) -> Call:
    """The call that this process is."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    streams = {"stdin": sys.stdin, "stdout": sys.stdout, "stderr": sys.stderr}
    terminals = frozenset(name for name, stream in streams.items() if stream is not None and stream.isatty())
    return Call(
        argv=sys.argv[1:] if argv is None else list(argv),
        cwd=_cwd(),
        home=_home(),
        env=dict(os.environ),
        stdin=getattr(sys.stdin, "buffer", None) or io.BytesIO(),
        # A closed descriptor (`>&-`) leaves None; what would be printed there goes nowhere.
        stdout=sys.stdout or io.StringIO(),
        stderr=sys.stderr or io.StringIO(),
        terminals=terminals,
        width=_width() if terminals else PLAIN_WIDTH,
    )


def _cwd() -> Path:
    try:
        return Path.cwd()
    except OSError:  # it was removed under us; looking for a bank from there will say so
        return Path(os.environ.get("PWD", "/"))


def _home() -> Path:
    try:
        return Path.home().resolve()
    except (RuntimeError, OSError):
        return Path("/nonexistent")


def _width() -> int:
    for stream in (sys.stdout, sys.stderr, sys.stdin):
        try:
            columns = os.get_terminal_size(stream.fileno()).columns
        except (OSError, ValueError, AttributeError):
            continue
        if columns > 0:
            return columns
    return PLAIN_WIDTH
