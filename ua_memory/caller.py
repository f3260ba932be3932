"""One call of the command line: its arguments, streams, environment and bank."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import date, datetime, time
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TextIO

from ua_memory import discovery, paths
from ua_memory.clients import VARIABLES
from ua_memory.discovery import PAGER_IN_USE, terminal_width
from ua_memory.errors import Malformed, NoBank, TooLarge, Usage

if TYPE_CHECKING:
    from typer import Context

    from ua_memory.config import Config
    from ua_memory.llm.model import Endpoint
    from ua_memory.memory import Memory
    from ua_memory.records import Origin


# -- call --------------------------------------------------------------------------------------------------
# One call of the command line: who called, from where, with which streams.
#
# The only place of `cli` that looks at the process it runs in. Everything else gets a `Call`, so the same
# verb can run in another process on somebody's behalf: with their arguments, folder, input and terminal.


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
    `opened` are the folders of the bank that was opened, `link_names` its names for links.
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
    opened: paths.Bank | None = field(default=None, init=False)
    link_names: paths.LinkNames | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        words = list(self.argv)
        self.as_json = "--json" in (words[: words.index("--")] if "--" in words else words)

    @property
    def debug(self) -> bool:
        return self.env.get("UA_MEMORY_DEBUG", "0") not in ("", "0")

    def model(self, memory: Memory) -> Endpoint | None:
        """The model that the settings and the caller's variables name, None for none."""
        from ua_memory.llm.model import endpoint_of

        return endpoint_of(memory.config.provider, memory.config.model, self.env)

    @property
    def reads_terminal(self) -> bool:
        return "stdin" in self.terminals

    @property
    def on_terminal(self) -> bool:
        return "stdout" in self.terminals


def of_process(argv: Sequence[str] | None, data: bytes | None = None) -> Call:
    """The call that this process is; `data` is standard input that was read already."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    streams = {"stdin": sys.stdin, "stdout": sys.stdout, "stderr": sys.stderr}
    terminals = frozenset(name for name, stream in streams.items() if stream is not None and stream.isatty())
    terminals |= {"stdout"} if os.environ.get(PAGER_IN_USE) else set()
    return Call(
        argv=sys.argv[1:] if argv is None else list(argv),
        cwd=_cwd(),
        home=_home(),
        env=dict(os.environ),
        stdin=io.BytesIO(data) if data is not None else getattr(sys.stdin, "buffer", None) or io.BytesIO(),
        # A closed descriptor (`>&-`) leaves None; what would be printed there goes nowhere.
        stdout=sys.stdout or io.StringIO(),
        stderr=sys.stderr or io.StringIO(),
        terminals=terminals,
        width=terminal_width(PLAIN_WIDTH) if terminals else PLAIN_WIDTH,
    )


def _cwd() -> Path:
    try:
        return Path.cwd()
    except OSError:  # it was removed under us; looking for a bank from there will say so
        return Path(os.environ.get("PWD", "/"))


def _home() -> Path:
    try:
        return Path.home().resolve()
    except (RuntimeError, OSError):  # no HOME and no entry of this user; libraries look for it, too
        return Path(os.environ.setdefault("HOME", "/nonexistent"))


# -- origin ------------------------------------------------------------------------------------------------
# Who is calling: a person at a terminal, or an agent through a shell.


SETTINGS = ("_HOME", "_DIR", "_PATH", "_CONFIG", "_KEY", "_OFFLINE")
"""A variable that ends so is a person's setting for an agent, and says nothing about who calls."""

MOST = 50 << 20
"""Bytes of standard input that are read as a text or a list of them: as many as `ingest` reads of a file."""


def origin_of(call: Call) -> tuple[Origin, str]:
    """The origin and the client of what is inserted, unless options say otherwise.

    An agent's variable in the environment: `agent`, under the agent's name. Else standard input is a
    terminal: `person`, `terminal`. Else some program or pipe: `agent`, `cli`.
    """
    for start, name in VARIABLES.items():
        if any(
            key.startswith(start) and not key.endswith(SETTINGS) and value for key, value in call.env.items()
        ):
            return "agent", name
    return ("person", "terminal") if call.reads_terminal else ("agent", "cli")


def is_person(call: Call) -> bool:
    """Whether what is asked comes from a person at a terminal."""
    return origin_of(call)[0] == "person"


def given(call: Call, file: Path | None = None) -> bytes:
    """A file's bytes, or standard input. Malformed where it cannot be read, TooLarge."""
    try:
        with discovery.open_regular(file) if file else nullcontext(call.stdin) as source:
            data = source.read(MOST + 1)
    except OSError as error:
        where = str(file or "standard input")
        raise Malformed(f"cannot be read: {error.strerror or error}", where=where) from error
    if len(data) > MOST:
        raise TooLarge(f"larger than {MOST >> 20} MB", where=str(file or "standard input"), hint="split it")
    return data


def read_text(call: Call, words: list[str] | None) -> str:
    """The text that a verb was given: its words, or standard input for `-` or for no words in a pipe.

    Usage where there is none, or where it is not UTF-8; TooLarge. One newline at the end of input is no part
    of it.
    """
    typed = bool(words) and words != ["-"]
    if not words and call.reads_terminal:
        raise Usage("no text given", hint="give it as an argument, or `-` to type it and end with Ctrl-D")
    try:
        if typed:  # bytes that are not of the locale's encoding stand in it as surrogates
            return " ".join(words or ()).encode("utf-8", "surrogateescape").decode()
        text = given(call).decode("utf-8-sig")
    except (UnicodeDecodeError, UnicodeEncodeError) as error:
        raise Usage(
            f"not UTF-8 at byte {error.start}",
            where="the text" if typed else "standard input",
            hint="convert it, as with iconv -f windows-1252 -t utf-8",
        ) from error
    return text.removesuffix("\n").removesuffix("\r")


# -- context -----------------------------------------------------------------------------------------------
# Which bank a call is about, and the open `Memory` of it.


def call_of(ctx: Context) -> Call:
    """The call that a verb was invoked by."""
    call = ctx.find_object(Call)
    assert call is not None, "a verb runs inside app.run"
    return call


@contextmanager
def opened(call: Call, *, lenient: bool = False) -> Iterator[Memory]:
    """The bank of a command, as `bank_of` has it; what its owner has to know of it is said first."""
    with bank_of(call, lenient=lenient) as memory:
        tell_untrusted(call, memory.config)
        tell_sessions(call, memory)
        yield memory


@contextmanager
def bank_of(call: Call, *, lenient: bool = False) -> Iterator[Memory]:
    """The bank of a call, open for as long as the block lasts; `lenient` as `config.load` has it."""
    root = paths.bank_root(call)
    with call.opener(root, settings_of(call, root, lenient=lenient), call.now) as memory:
        call.opened, call.link_names = memory.store.bank, memory.store.link_names
        yield memory


def settings_of(call: Call, root: Path, *, lenient: bool = False) -> Config:
    """The settings that count for a call in the bank at `root`. Malformed."""
    from ua_memory import config

    return config.load(root, environment(call), lenient=lenient)


def environment(call: Call) -> dict[str, str]:
    """The caller's variables as settings read them: with a home, and paths as the caller means them."""
    env = {**call.env, "HOME": call.env.get("HOME") or str(call.home)}
    if given := env.get("UA_MEMORY_CROSS_ENCODER"):
        env["UA_MEMORY_CROSS_ENCODER"] = str(paths.absolute(call, given))
    return env


def user_file(call: Call) -> Path:
    """The user's own settings."""
    folder = discovery.user_folder(environment(call))
    assert folder, "a call has a home"
    return Path(folder, discovery.USER)


def tell_untrusted(call: Call, config: Config) -> None:
    """Say, once a command, which settings of the bank's file do not count; with `--json`, too."""
    if text := untrusted(config):
        call.stderr.write(f"ua-memory: {text}\n")


def tell_sessions(call: Call, memory: Memory) -> None:
    """Tell a person at a terminal, once a bank, that sessions are saved, and how to stop that."""
    if not (call.on_terminal and memory.config.sessions_keep and is_person(call)):
        return
    if (words := next(memory.sessions.all(), None)) and not told_before(memory, "sessions"):
        bank = memory.config.sessions_place == "bank"
        scope = "then committed to the bank" if bank else "on this machine only"
        call.stderr.write(
            f"ua-memory: sessions are saved in {words.path.parent}, {scope}; "
            "to stop and delete them: ua-memory sessions off\n"
        )


def told_before(memory: Memory, what: str) -> bool:
    """Whether this was said before at this bank, as it is from now on."""
    told = memory.store.bank.local / f"{what}.told"
    if told.exists():
        return True
    paths.make_private(told.parent)
    told.touch(mode=0o600)
    return False


def tell_default_bank(call: Call) -> None:
    """Tell a person at a terminal which bank was taken, where none is here or above."""
    if call.on_terminal and is_person(call) and paths.named(call) is None and paths.found(call) is None:
        call.stderr.write(f"ua-memory: no bank here or above; using {paths.bank_root(call)}\n")


def untrusted(config: Config) -> str:
    """That settings of the bank's file do not count before their owner says so; '' where all do."""
    from ua_memory.config import sensitive

    names = sensitive()
    keys = ", ".join(names[name] for name in config.untrusted if name not in config.declined)
    where = discovery.SETTINGS
    return f"not trusted in {where}, and ignored: {keys} (to review: ua-memory trust)" if keys else ""


def bank_here(call: Call) -> Path | None:
    """The folder of the bank that a call is about, None where there is none."""
    try:
        return paths.bank_root(call)
    except NoBank:
        return None


def remote_address(call: Call, given: str) -> str:
    """A remote's address as git takes it; a folder's is absolute, from where the caller stands."""
    folder = paths.absolute(call, given)
    there = os.path.exists(folder)  # noqa: PTH110 (False for a name that is too long)
    return str(folder.resolve()) if there else given


# -- dates -------------------------------------------------------------------------------------------------
# Dates that people write for options.


def parse_moment(text: str | None, now: datetime) -> datetime:
    """A moment out of what `--now` was given: `2026-11-21` (its noon), `2026-11-21T14:00`.

    With an offset or in the zone of `now`, which is the answer to None. Usage for anything else.
    """
    if text is None:
        return now
    word = text.strip()
    try:
        if re.fullmatch(r"\d{4}-\d\d-\d\d", word, re.ASCII):
            return datetime.combine(date.fromisoformat(word), time(12), now.tzinfo)
        given = datetime.fromisoformat(word)
        return given if given.tzinfo else given.replace(tzinfo=now.tzinfo)
    except ValueError as error:
        hint = "use 2026-11-21 or 2026-11-21T14:00"
        raise Usage(f"{text!r} is not a valid time", where="--now", hint=hint) from error
