"""`install`, `uninstall`, `install cron`, `prune-recall-messages`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from inspect import Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from ua_memory import caller, discovery
from ua_memory.cli import app
from ua_memory.clients import settings
from ua_memory.clients.edit import Broken
from ua_memory.clients.sessions import pruned
from ua_memory.config import as_typed
from ua_memory.errors import (
    CannotWrite,
    ChangedOnDisk,
    Malformed,
    NoBank,
    NotFound,
    ProblemsFound,
    UaMemoryError,
    Usage,
)
from ua_memory.paths import make_private
from ua_memory.store import swap
from ua_memory.views.output import Screen, count, emit_json, note

if TYPE_CHECKING:
    from ua_memory.caller import Call
    from ua_memory.clients.settings import Client, ClientTarget, SettingsPiece

# -- prune -------------------------------------------------------------------------------------------------
# `ua-memory prune-recall-messages`: recalled memory taken out of clients' session files.


CONFIRM = "confirm"
SESSIONS = {"pi": "sessions", "claude-code": "projects", "codex": "sessions"}
"""The folder of a client's own in which it keeps its sessions."""
LONGEST = 64 << 20
"""Bytes of a line that is looked at."""


Recalled = list[tuple[int, bytes, bytes]]
"""What of a session file is to go: where a line begins, the line, what it becomes."""


@app.verb(opens=False)
def prune_recall_messages(
    call: Call,
    words: list[str] | None = Argument(
        None,
        metavar="[PATH]... [confirm]",
        help="Session files or folders (default: those of pi, Claude Code and Codex). `confirm` as the last "
        "word strips them.",
    ),
) -> None:
    """Strip recalled memory from the session files of clients.

    Recall is for one turn: what is in a session file would be sent again when the session is resumed without
    ua-memory. Without `confirm` it shows what would be removed. With it each file is copied to
    `~/.local/share/ua-memory/pruned` first; then only those lines change, in place, without a change of
    length.
    """
    does = (words or [])[-1:] == [CONFIRM]
    given = [caller.absolute(call, word) for word in (words or [])[: -1 if does else None]]
    found = {path: lines for path in _files(call, given) if (lines := _held(path))}
    rows = []
    for path, lines in found.items():
        gone = sum(len(old) - len(new.rstrip()) for _, old, new in lines)
        backup = str(_backup(call, path)) if does else None
        rows.append({"path": str(path), "messages": len(lines), "bytes": gone, "backup": backup})
    for path, lines in found.items() if does else ():
        _write(path, lines)
    emit_json(call, {"pruned": does, "files": rows})
    screen = Screen(call)
    for row, lines in zip(rows, found.values(), strict=True):
        told = f"{count(len(lines), 'message')}{' pruned' if does else ''}"
        screen.item([(str(row["path"]), "path"), ": "], told)
        if row["backup"]:
            screen.line(f"  backup: {row['backup']}")
    if not found:
        screen.line(("No recalled memory", "good"), " in any session file.")
    elif not does:
        note(call, "nothing was changed; add `confirm` as the last word to do it")
    else:
        note(call, "an open session has it until it is resumed")


def _files(call: Call, given: list[Path]) -> Iterator[Path]:
    """The session files below the paths, or in the clients' own folders. NotFound."""
    for path in given:
        if not path.exists():
            hint = "give session files or folders, or leave it out for all"
            raise NotFound("no such file or folder", where=str(path), hint=hint)
    own = (settings.folders(call, client)[0] / sub for client, sub in SESSIONS.items())
    for path in given or own:
        below = [path] if path.is_file() else sorted(path.rglob("*.jsonl"))
        yield from (file for file in below if file.is_file())  # no folder of the name, no dead link


def _held(path: Path) -> Recalled:
    """What of a file is to go. A last line without its end is somebody's who is writing it."""
    lines, at = Recalled(), 0
    with discovery.open_regular(path) as file:
        while line := file.readline(LONGEST):
            new = pruned(line) if line.endswith(b"\n") else None
            if new is not None:
                lines.append((at, line, new))
            at += len(line)
    return lines


def _backup(call: Call, path: Path) -> Path:
    """A copy of a file as it is, for its owner's eyes."""
    data = caller.absolute(call, call.env.get("XDG_DATA_HOME") or "~/.local/share")
    folder = data / "ua-memory" / "pruned"
    make_private(folder)
    number, copy = 1, folder / path.name
    while True:
        try:
            fd = os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            break
        except FileExistsError:
            number, copy = number + 1, folder / f"{path.stem}.{number}{path.suffix}"
    with discovery.open_regular(path) as source, os.fdopen(fd, "wb") as target:
        shutil.copyfileobj(source, target)
        target.flush()
        os.fsync(target.fileno())
    return copy


def _write(path: Path, lines: Recalled) -> None:
    """Write the lines over those that they were. ChangedOnDisk, and nothing, where one is another."""
    with path.open("r+b", buffering=0) as file:
        if any(os.pread(file.fileno(), len(old), at) != old for at, old, _ in lines):
            raise ChangedOnDisk("the file changed meanwhile", where=str(path), hint="try again")
        for at, _, new in lines:
            os.pwrite(file.fileno(), new, at)
        os.fsync(file.fileno())


# -- installing --------------------------------------------------------------------------------------------
# Putting pieces into clients' files and taking them out: what would change, shown, and then written.
#
# Everything is worked out before the first byte is written, so that a file that cannot be read leaves all
# of them as they were. A file is replaced at once, keeps its mode, and stays a link if it is one.


@dataclass(frozen=True, slots=True)
class InstallStep:
    """One piece: the bytes that are in its file, and those that are to be; None is no file."""

    piece: SettingsPiece
    before: bytes | None
    after: bytes | None

    @property
    def file(self) -> Path:
        return Path(self.piece.file)

    @property
    def there(self) -> bool | None:
        """Whether it is in the file; None where something of ours is, but not as it is put there today."""
        if self.before is None or self.does == "keep":
            return self.before is not None
        text = self.before.decode("utf-8", "surrogateescape")
        return None if self.piece.cut(text) != text else False

    @property
    def does(self) -> str:
        """make, change, remove or keep."""
        if self.before == self.after:
            return "keep"
        return "make" if self.before is None else "remove" if self.after is None else "change"

    def diff(self) -> str:
        from difflib import unified_diff

        old, new = (
            (each or b"").decode("utf-8", "backslashreplace").splitlines(keepends=True)
            for each in (self.before, self.after)
        )
        was, is_ = ("/dev/null" if each is None else str(self.file) for each in (self.before, self.after))
        rows = unified_diff(old, new, was, is_)
        return "".join(
            row if row.endswith("\n") else f"{row}\n\\ No newline at end of file\n" for row in rows
        )


def plan(pieces: Sequence[SettingsPiece], *, out: bool = False) -> list[InstallStep]:
    """What puts the pieces in, or with `out` takes them out. Malformed names file and line.

    Of several pieces of one file each finds what the one before it left.
    """
    steps: list[InstallStep] = []
    left: dict[Path, bytes | None] = {}
    for piece in reversed(pieces) if out else pieces:
        file = Path(piece.file)
        before = left[file] if file in left else _read(file)
        try:
            text = None if before is None else before.decode("utf-8")
            new = (piece.cut if out else piece.put)(text)
        except UnicodeDecodeError as error:
            line = (before or b"").count(b"\n", 0, error.start) + 1
            raise _malformed(file, line, "not UTF-8") from error
        except Broken as error:
            raise _malformed(file, error.line, error.why) from error
        left[file] = None if new is None else new.encode("utf-8")
        steps.append(InstallStep(piece, before, left[file]))
    return steps


def _malformed(file: Path, line: int, why: str) -> Malformed:
    hint = "correct that line; no file was changed"
    return Malformed(f"cannot be read: {why}", where=f"{file}:{line}", hint=hint)


def _read(file: Path) -> bytes | None:
    try:
        return discovery.read(file)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise CannotWrite(f"cannot be read: {getattr(error, 'strerror', error)}", where=str(file)) from error


def carry_out(steps: Iterable[InstallStep]) -> None:
    """Write what differs. ChangedOnDisk where a file is no longer what was planned for."""
    for step in steps:
        if step.does == "keep":
            continue
        target = Path(os.path.realpath(step.file))  # a link stays one: what it leads to is replaced
        if step.after is None:
            _unchanged(step)
            target.unlink(missing_ok=True)
            _folders(step)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        beside = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        try:
            # ~/.claude.json holds a login: nobody else reads it meanwhile
            swap.write(beside, step.after, None if step.before is None else target.stat())
            _unchanged(step)
            beside.replace(target)
        finally:
            beside.unlink(missing_ok=True)


def _unchanged(step: InstallStep) -> None:
    if _read(step.file) != step.before:
        raise ChangedOnDisk("was changed meanwhile", where=str(step.file), hint="run it again")


def _folders(step: InstallStep) -> None:
    """Remove the folders that were made for a file, if nothing is left in them."""
    folder, made = step.file.parent, step.piece.folder
    if made:  # what Python has made of our modules
        shutil.rmtree(folder / "__pycache__", ignore_errors=True)
    while made and folder.is_relative_to(made):
        try:
            folder.rmdir()
        except OSError:  # not empty: something else lies there, or more of ours is still to go
            return
        folder = folder.parent


def show(
    call: Call, target: ClientTarget, steps: list[InstallStep], *, dry: bool = False, line: bool = False
) -> None:
    """Say what was done, or with `dry` what would be, as a diff; `line` offers the one for AGENTS.md."""
    changed = any(step.does != "keep" for step in steps)
    notes = [*target.notes] if changed else []
    notes += [f"{TWICE}, by the {way} in {where}; {ONE_WAY}" for way, where in target.twice]
    files: list[dict[str, Any]] = [
        {"path": str(step.file), "what": step.piece.what, "does": step.does}
        | ({"diff": step.diff()} if dry and step.does != "keep" else {})
        for step in steps
    ]
    told = {"client": target.client, "changed": changed, "dry_run": dry, "files": files, "notes": notes}
    emit_json(call, told | ({"line": settings.line_for(target.client)} if line else {}))
    screen = Screen(call)
    if dry:
        for step in steps:
            screen.diff(step.diff())
        if not changed:
            screen.line("Nothing would change.")
        return
    if not steps:
        screen.line(f"Nothing to remove: ua-memory is not in {target.client}'s settings.")
    for step in steps:
        word = (f"{DONE[step.does]:9}", "faint" if step.does == "keep" else "good")
        screen.item([word], f"{step.piece.what} in ", (str(step.file), "path"))
    for each in notes:
        screen.item("Note: ", each)
    if line and changed:
        screen.heading("Agents use it only if their instructions say so. Add this line")
        screen.line("to AGENTS.md or CLAUDE.md, or have it added by --agents-md FILE:")
        screen.item("  ", (settings.line_for(target.client), "strong"))


TWICE = "hooks a second time"
ONE_WAY = "keep one: ua-memory uninstall claude-code, with --project there; /plugin removes a plugin"
DONE = {"make": "Created", "change": "Changed", "remove": "Removed", "keep": "Unchanged"}


def check_pieces(call: Call, target: ClientTarget, steps: list[InstallStep]) -> None:
    """Say whether all is in place, and the command and a bank are there. ProblemsFound where it is not."""
    command = settings.command_of(call)[0]
    found = shutil.which(command, path=call.env.get("PATH"))
    rows = [(step.piece.what, step.piece.file, step.there is True) for step in steps]
    old = {(step.piece.what, step.piece.file) for step in steps if step.there is None}
    bank = caller.bank_here(call)
    rows.append(("bank", str(bank or "none"), bank is not None))
    rows.append(("command", command, found is not None))
    rows += [(f"{TWICE}, by the {way}", where, False) for way, where in target.twice]
    good = all(ok for *_, ok in rows)
    checks = [{"what": what, "where": where, "ok": ok} for what, where, ok in rows]
    emit_json(call, {"client": target.client, "installed": good, "checks": checks})
    screen = Screen(call)
    for what, where, ok in rows:
        bad = "twice" if what.startswith(TWICE) else "outdated" if (what, where) in old else "missing"
        word = (f"{'ok' if ok else bad:9}", "good" if ok else "bad")
        screen.item([word], f"{what}: ", (where, "path"))
    if not good:
        if all(ok or what == "bank" for what, _, ok in rows):
            raise ProblemsFound("there is no memory bank: nothing will be saved", hint="ua-memory init")
        if target.twice and all(ok or what.startswith(TWICE) for what, _, ok in rows):
            raise ProblemsFound(f"ua-memory is set up for {target.client} more than once", hint=ONE_WAY)
        what = f"ua-memory is incompletely set up for {target.client}"
        show_it = "" if target.client == "cron" else " --dry-run"  # cron's is shown unless --write is said
        raise ProblemsFound(what, hint=f"ua-memory install {target.client}{show_it} shows what is missing")


# -- cron --------------------------------------------------------------------------------------------------
# `ua-memory install cron`: the nightly job of a bank, shown or handed to what runs it.


ODD = "surrogateescape"
"""Somebody's crontab need not be UTF-8: its bytes stay what they are."""
NONE_YET = ("no crontab for", "no such file")
"""How `crontab -l` says that there is none: cronie's, Vixie's and the BSDs', and BusyBox's."""


DEFAULT = "03:30"


def target(call: Call, kind: str, at: str = DEFAULT) -> ClientTarget:
    """The job for the caller's bank. Usage for a time or a kind that there is not."""
    if kind not in settings.KINDS:
        raise Usage(f"unknown kind {kind!r}", hint=f"--kind {', '.join(settings.KINDS)}")
    bank = str(caller.bank_root(call).resolve())
    if not bank.isprintable():
        raise Usage("no job for a folder whose name cannot be printed", where=repr(bank))
    command = [settings.command_of(call)[0], "--bank", bank]
    return settings.schedule_target(kind, bank, command, _time(at), str(call.home))


def in_place(call: Call, kind: str | None) -> ClientTarget:
    """The job to be checked where no time is asked for: of the kind that is set up, at its own time."""
    bank = str(caller.bank_root(call).resolve())
    for each in (kind,) if kind else settings.KINDS:
        steps = cron_plan(call, target(call, each), out=True)
        if any(step.does != "keep" for step in steps):
            texts = (step.before.decode("utf-8", ODD) for step in steps if step.before)
            times = filter(None, (settings.time_of(each, bank, text) for text in texts))
            return target(call, each, next((f"{hour:02}:{minute:02}" for hour, minute in times), DEFAULT))
    return target(call, kind or kind_here(call))


def kind_here(call: Call) -> str:
    """What runs jobs on this machine: launchd, a systemd of the user's that answers, else cron."""
    if sys.platform == "darwin":
        return "launchd"
    return "systemd" if _ran(call, ["systemctl", "--user", "show-environment"]) else "cron"


def _time(at: str) -> tuple[int, int]:
    hour, colon, minute = at.partition(":")
    if colon and hour.isdecimal() and minute.isdecimal() and int(hour) < 24 and int(minute) < 60:
        return int(hour), int(minute)
    raise Usage(f"not a time of day: {at!r}", hint="--at 03:30")


def cron_plan(call: Call, job: ClientTarget, *, out: bool = False) -> list[InstallStep]:
    """What is to be done; the crontab takes the place of a file. NotFound where there is no such command."""
    line = job.pieces[0]
    if line.file != settings.CRONTAB:
        return plan(job.pieces, out=out)
    if not shutil.which("crontab", path=call.env.get("PATH")):
        if out:
            return []
        raise NotFound("no crontab command is installed", hint="ua-memory install cron --kind systemd")
    text = _crontab(call)
    both = (text, (line.cut if out else line.put)(text))
    before, after = (None if each is None else each.encode("utf-8", ODD) for each in both)
    return [InstallStep(line, before, after)]


def carry_out_cron(call: Call, steps: list[InstallStep], *, out: bool = False) -> None:
    """Write what differs, and tell what runs it. CannotWrite in its words where it refuses."""
    changed = [step for step in steps if step.does != "keep"]
    if not changed:
        return None
    if str(changed[0].file) == settings.CRONTAB:
        return _must(call, ["crontab", "-"], changed[0].after or b"")
    timers = [step.file.name for step in steps if step.file.suffix == ".timer"]
    agents = [str(step.file) for step in steps if step.file.suffix == ".plist"]
    systemctl = ["systemctl", "--user"]
    words = [[*systemctl, "disable" if out else "enable", "--now", name] for name in timers]
    words += [["launchctl", "unload" if out else "load", file] for file in agents]
    for each in words if out else ():
        _ran(call, each)
    carry_out(changed)
    if timers:
        _must(call, [*systemctl, "daemon-reload"])
    for each in () if out else words:
        _must(call, each)
    return None


def _crontab(call: Call) -> str | None:
    """The caller's crontab, None where there is none yet. CannotWrite where that cannot be told for certain:
    what is not read would be lost, since `crontab -` takes the place of all of it."""
    done = _done(call, ["crontab", "-l"])
    if not done.returncode:
        return done.stdout.decode("utf-8", ODD)
    if any(none in done.stderr.decode("utf-8", "replace").lower() for none in NONE_YET):
        return None
    hint = "ua-memory install cron shows the line to add"
    raise CannotWrite(f"cannot be read: {_why(done)}", where="crontab -l", hint=hint)


def _why(done: subprocess.CompletedProcess[bytes]) -> str:
    """Why a command has failed: the last line that it said."""
    said = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return (said or [f"exit code {done.returncode}"])[-1]


def _ran(call: Call, words: list[str]) -> bool:
    """Run a command; whether it is there and succeeds."""
    try:
        return _done(call, words).returncode == 0
    except CannotWrite:
        return False


def _must(call: Call, words: list[str], given: bytes = b"") -> None:
    done = _done(call, words, given)
    if done.returncode:
        raise CannotWrite(_why(done), where=" ".join(words), hint=f"run it yourself: {' '.join(words)}")


def _done(call: Call, words: list[str], given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run a command. CannotWrite where it is missing, or takes half a minute."""
    env = {**call.env, "LC_ALL": "C"}
    try:
        return subprocess.run(words, env=env, input=given, capture_output=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotWrite(str(error), where=" ".join(words)) from error


def without_memory(call: Call) -> Iterator[str]:
    """The clients that are on this machine, as far as their folders tell, and into whose settings nothing of
    ours was written."""
    for name, client in settings.CLIENTS.items():
        if not any(folder.is_dir() for folder in settings.folders(call, name)):
            continue
        try:
            if all(step.there is False for step in plan(client.target(call).pieces)):
                yield name
        except UaMemoryError:  # whose settings cannot be read: `install` says so
            continue


# -- install -----------------------------------------------------------------------------------------------
# `ua-memory install`: memory set up in the clients that people use, and taken out again (`uninstall`).


IN = """Set up memory in an agent's client.

Nothing else in the client's settings changes. Run it again after an update; `ua-memory uninstall` removes
exactly what it added."""
OUT = """Remove memory from an agent's client: exactly what install added, nothing that you wrote."""
install_app = app.new(no_args_is_help=True, help=IN)
uninstall_app = app.new(no_args_is_help=True, help=OUT)

DryRun = Option(False, "--dry-run", help="Show what would change, as a diff; change nothing.")
Check = Option(False, "--check", help="Check whether everything is in place; exit code 12 if not.")
Agents = Option(
    None, "--agents-md", metavar="FILE", help="Also add the line for agents to FILE, or remove it."
)
ModelOption = Annotated[
    str | None,
    Option(
        "--model", metavar="client", show_default=False,
        help="With `client`, its own program, logged in, is memory's model: no key is needed.",
    ),
]  # fmt: skip
OPTIONS = {
    "project": Annotated[
        bool, Option("--project", help="In this folder's settings, for everyone who works in it.")
    ],
    "plugin": Annotated[
        str | None, Option("--plugin", metavar="DIR", help="As a plugin, in a marketplace in DIR.")
    ],
    "memory_slot": Annotated[
        bool, Option("--memory-slot", help="Replace OpenClaw's own memory: take its memory slot.")
    ],
    "auto_memory": Annotated[
        bool, Option("--auto-memory", help="Also store its own notes in memory/claude-code.")
    ],
}
"""The options that a client's target may have, by the names of its parameters."""


def _both(name: str, client: Client) -> None:
    """Add a client to install and uninstall. What its target takes besides the call is an option of both."""
    own = [*signature(client.target).parameters.values()][1:]
    own = [one.replace(annotation=OPTIONS[one.name]) for one in own]

    def put(
        call: Call, model: ModelOption = None, agents_md: str | None = Agents, dry_run: bool = DryRun,
        check: bool = Check, **chosen: Any,
    ) -> None:  # fmt: skip
        target = _with_line(call, _with_model(call, client.target(call, **chosen), model), agents_md)
        steps = plan(target.pieces)
        if check:
            return check_pieces(call, target, steps)
        if not dry_run:
            carry_out(steps)
        show(call, target, steps, dry=dry_run, line=agents_md is None)
        try:
            caller.bank_root(call)
        except NoBank as none:
            note(call, f"{none.what}; until there is one, nothing is saved: {none.hint}")
        return None

    def take(call: Call, agents_md: str | None = Agents, dry_run: bool = DryRun, **chosen: Any) -> None:
        target = _with_line(call, client.target(call, **chosen), agents_md)
        target = target._replace(notes=(), twice=target.twice[1:])  # the first that is left is not the second
        of_model = settings.model_piece(str(caller.user_file(call)), target.client)
        pieces = (*target.pieces, *target.left, of_model)
        steps = [step for step in plan(pieces, out=True) if step.does != "keep"]
        if not dry_run:
            carry_out(steps)
        show(call, target, steps, dry=dry_run)

    works: list[Any] = [put, take]
    for work in works:
        given = signature(work).parameters
        named = [
            given[name] for name in given if name not in ("call", "chosen", "" if client.model else "model")
        ]
        work.__signature__ = Signature([given["call"], *own, *named])
    app.verb(install_app, name, opens=False, help=f"Set up {client.does}.")(put)
    app.verb(uninstall_app, name, opens=False, help=f"{client.out} {client.does}.")(take)


for _name, _client in settings.CLIENTS.items():
    _both(_name, _client)


@app.verb(install_app, "mcp", opens=False)
def install_mcp(
    call: Call,
    client: str = Option(
        "", metavar="NAME", help=f"In the form of one of {', '.join(filter(None, settings.SERVERS))}."
    ),
    print_: bool = Option(
        True, "--print", show_default=False, help="Print it, as it does in any case; no file is changed."
    ),
) -> None:
    """Show the MCP server's entry for the settings of any client."""
    if client not in settings.SERVERS:
        known = ", ".join(filter(None, settings.SERVERS))
        raise Usage(f"unknown client {client!r}", hint=f"without --client, or one of {known}")
    _show_pieces(call, settings.recipe(client, settings.command_of(call)))


install_app.registered_commands.insert(2, install_app.registered_commands.pop())  # where help has it


@app.verb(install_app, "cron", opens=False)
def install_cron(
    call: Call,
    at: str | None = Option(None, "--at", metavar="HH:MM", help="The time of day (03:30)."),
    kind: str | None = Option(
        None, metavar="KIND", help="cron, systemd or launchd (default: what this system has)."
    ),
    write: bool = Option(False, "--write", help="Set it up instead of showing it."),
    check: bool = Check,
) -> None:
    """Show a nightly job that consolidates the bank, or set it up."""
    job = in_place(call, kind) if check and not at else target(call, kind or kind_here(call), at or DEFAULT)
    if not write and not check:
        notes = job.notes if call.as_json else ("to set it up, add --write", *job.notes)
        return _show_pieces(call, job._replace(notes=notes))
    steps = cron_plan(call, job)
    if check:
        return check_pieces(call, job, steps)
    carry_out_cron(call, steps)
    return show(call, job, steps)


@app.verb(uninstall_app, "cron", opens=False)
def uninstall_cron(call: Call, dry_run: bool = DryRun) -> None:
    """Remove the bank's nightly job."""
    done = []
    for kind in settings.KINDS:
        job = target(call, kind)
        steps = [step for step in cron_plan(call, job, out=True) if step.does != "keep"]
        if not dry_run:
            carry_out_cron(call, steps, out=True)
        done += steps
    show(call, job._replace(notes=()), done, dry=dry_run)


def _show_pieces(call: Call, job: ClientTarget) -> None:
    """Print what goes into which file, for somebody who puts it there by hand."""
    files = [{"path": piece.file, "what": piece.what, "text": piece.put(None)} for piece in job.pieces]
    emit_json(call, {"client": job.client, "files": files, "notes": list(job.notes)})
    texts = [piece.put(None) or "" for piece in job.pieces]
    if len(texts) > 1:
        texts = [f"# {piece.file}\n{text}" for piece, text in zip(job.pieces, texts, strict=True)]
    Screen(call).raw("\n".join(texts))
    for each in job.notes:
        note(call, each)


def _with_model(call: Call, target: ClientTarget, model: str | None) -> ClientTarget:
    """The client's own program as the model, too. Usage for one that cannot be."""
    if model is None:
        return target
    if model != "client":
        hint = f"ua-memory install {target.client} --model client"
        raise Usage(f"{model!r} is no model of a client", hint=hint)
    as_typed("provider", [target.client], user=True)
    notes = (*target.notes, settings.MODEL_NOTE.format(target.client))
    piece = settings.model_piece(str(caller.user_file(call)), target.client)
    return target._replace(pieces=(*target.pieces, piece), notes=notes)


def _with_line(call: Call, target: ClientTarget, agents_md: str | None) -> ClientTarget:
    if agents_md is None:
        return target
    line = settings.agents_line(str(caller.absolute(call, agents_md)), target.client)
    return target._replace(pieces=(*target.pieces, line))
