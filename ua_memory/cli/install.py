"""`install`, `uninstall`, `install cron`, `prune-recall-messages`."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from inspect import Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ua_memory import caller, clients, discovery, paths
from ua_memory.cli import app
from ua_memory.cli.app import argument, flag, option
from ua_memory.clients import settings
from ua_memory.clients.edit import EditError
from ua_memory.clients.settings import ClientTarget, folders
from ua_memory.clients.transcripts import prune_line
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
from ua_memory.git.history import unified_file_diff
from ua_memory.paths import default_bank, is_bank, make_private
from ua_memory.store import swap
from ua_memory.views.output import Screen, count, emit_json, note

if TYPE_CHECKING:
    from ua_memory.caller import Call
    from ua_memory.clients.settings import Client, SettingsPiece

# -- prune -------------------------------------------------------------------------------------------------
# `ua-memory prune-recall-messages`: remove recalled memory from clients' session files.


CONFIRM_WORD = "confirm"
SESSION_FOLDERS = {"pi": "sessions", "claude-code": "projects", "codex": "sessions"}
"""Client → its folder of sessions, below its own folder."""
LONGEST_LINE = 64 << 20
"""Bytes of a line; a longer one is not changed."""


RecalledLines = list[tuple[int, bytes, bytes]]
"""Lines of a session file to change: (offset, old line, new line)."""


@app.verb(opens_bank=False)
def prune_recall_messages(
    call: Call,
    words: list[str] | None = argument(
        "[PATH]... [confirm]",
        "Session files or folders (default: those of pi, Claude Code and Codex). `confirm` as the last "
        "word strips them.",
        None,
    ),
) -> None:
    """Strip recalled memory from the session files of clients.

    Recall is for one turn: what is in a session file would be sent again when the session is resumed without
    ua-memory. Without `confirm` it shows what would be removed. With it each file is copied to
    `~/.local/share/ua-memory/pruned` first; then only those lines change, in place, without a change of
    length.
    """
    confirmed = (words or [])[-1:] == [CONFIRM_WORD]
    given = [paths.absolute(call, word) for word in (words or [])[: -1 if confirmed else None]]
    found = {path: lines for path in _session_files(call, given) if (lines := _recalled_lines(path))}
    rows = []
    for path, lines in found.items():
        removed = sum(len(old) - len(new.rstrip()) for _, old, new in lines)
        backup = str(_back_up(call, path)) if confirmed else None
        rows.append({"path": str(path), "messages": len(lines), "bytes": removed, "backup": backup})
    for path, lines in found.items() if confirmed else ():
        _overwrite_lines(path, lines)
    emit_json(call, {"pruned": confirmed, "files": rows})
    screen = Screen(call)
    for row, lines in zip(rows, found.values(), strict=True):
        message = f"{count(len(lines), 'message')}{' pruned' if confirmed else ''}"
        screen.item([(str(row["path"]), "path"), ": "], message)
        if row["backup"]:
            screen.line(f"  backup: {row['backup']}")
    if not found:
        screen.line(("No recalled memory", "good"), " in any session file.")
    elif not confirmed:
        note(call, "nothing was changed; add `confirm` as the last word to do it")
    else:
        note(call, "an open session has it until it is resumed")


def _session_files(call: Call, given: list[Path]) -> Iterator[Path]:
    """The session files at or below the paths, by default in the clients' own folders. NotFound."""
    for path in given:
        if not path.exists():
            hint = "give session files or folders, or leave it out for all"
            raise NotFound("no such file or folder", where=str(path), hint=hint)
    own = (folders(call, CLIENTS[client].homes)[0] / sub for client, sub in SESSION_FOLDERS.items())
    for path in given or own:
        below = [path] if path.is_file() else sorted(path.rglob("*.jsonl"))
        yield from (file for file in below if file.is_file())  # no folder, no broken link


def _recalled_lines(path: Path) -> RecalledLines:
    """The lines of a file with recalled memory. A last line without its end is still being written."""
    lines, at = RecalledLines(), 0
    with discovery.open_regular(path) as file:
        while line := file.readline(LONGEST_LINE):
            new = prune_line(line) if line.endswith(b"\n") else None
            if new is not None:
                lines.append((at, line, new))
            at += len(line)
    return lines


def _back_up(call: Call, path: Path) -> Path:
    """Copy a file to the backup folder, readable by its owner only, and return the copy's path."""
    data = paths.absolute(call, call.env.get("XDG_DATA_HOME") or "~/.local/share")
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


def _overwrite_lines(path: Path, lines: RecalledLines) -> None:
    """Overwrite lines in place. ChangedOnDisk, with nothing written, if one has changed."""
    with path.open("r+b", buffering=0) as file:
        if any(os.pread(file.fileno(), len(old), at) != old for at, old, _ in lines):
            raise ChangedOnDisk("the file was changed in the meantime", where=str(path), hint="try again")
        for at, _, new in lines:
            os.pwrite(file.fileno(), new, at)
        os.fsync(file.fileno())


# -- changing clients' settings ----------------------------------------------------------------------------
# Pieces of settings are added to clients' files or removed from them.
#
# All changes are planned before the first is written, so an unreadable file leaves every file unchanged. A
# file is replaced atomically, keeps its mode, and stays a symbolic link if it is one.


@dataclass(frozen=True, slots=True)
class InstallStep:
    """The change of one piece: its file's bytes before and after; None is no file."""

    piece: SettingsPiece
    before: bytes | None
    after: bytes | None

    @property
    def file(self) -> Path:
        return Path(self.piece.file)

    @property
    def installed(self) -> bool | None:
        """Whether the piece is in the file; None if an outdated one is."""
        if self.before is None or self.action == "keep":
            return self.before is not None
        text = self.before.decode("utf-8", "surrogateescape")
        return None if self.piece.remove(text) != text else False

    @property
    def action(self) -> str:
        """make, change, remove or keep."""
        if self.before == self.after:
            return "keep"
        return "make" if self.before is None else "remove" if self.after is None else "change"

    def diff(self) -> str:
        path, how = str(self.file), "backslashreplace"
        return unified_file_diff(path, self.before, self.after, sides=("", ""), errors=how)


def plan_steps(pieces: Sequence[SettingsPiece], *, remove: bool = False) -> list[InstallStep]:
    """Plan adding or removing the pieces. Several pieces of one file build on each other. Malformed."""
    steps: list[InstallStep] = []
    contents: dict[Path, bytes | None] = {}
    for piece in reversed(pieces) if remove else pieces:
        file = Path(piece.file)
        before = contents[file] if file in contents else _read_file(file)
        try:
            text = None if before is None else before.decode("utf-8")
            new = (piece.remove if remove else piece.add)(text)
        except UnicodeDecodeError as error:
            line = (before or b"").count(b"\n", 0, error.start) + 1
            raise _malformed_error(file, line, "not UTF-8") from error
        except EditError as error:
            raise _malformed_error(file, error.line, error.why) from error
        contents[file] = None if new is None else new.encode("utf-8")
        steps.append(InstallStep(piece, before, contents[file]))
    return steps


def _malformed_error(file: Path, line: int, why: str) -> Malformed:
    hint = "correct that line; no file was changed"
    return Malformed(f"cannot be read: {why}", where=f"{file}:{line}", hint=hint)


def _read_file(file: Path) -> bytes | None:
    try:
        return discovery.read(file)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise CannotWrite(f"cannot be read: {getattr(error, 'strerror', error)}", where=str(file)) from error


def apply_steps(steps: Iterable[InstallStep]) -> None:
    """Write the planned changes. ChangedOnDisk if a file has changed since."""
    for step in steps:
        if step.action == "keep":
            continue
        target = Path(os.path.realpath(step.file))  # a symbolic link stays one
        if step.after is None:
            _check_unchanged(step)
            target.unlink(missing_ok=True)
            _remove_empty_folders(step)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        beside = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        try:
            # ~/.claude.json holds a login: the temporary file must not be readable by others
            swap.write_new(beside, step.after, None if step.before is None else target.stat())
            _check_unchanged(step)
            beside.replace(target)
        finally:
            beside.unlink(missing_ok=True)


def _check_unchanged(step: InstallStep) -> None:
    if _read_file(step.file) != step.before:
        raise ChangedOnDisk("was changed in the meantime", where=str(step.file), hint="run it again")


def _remove_empty_folders(step: InstallStep) -> None:
    """Remove the folders that were made for a file, if they are empty now."""
    folder, made = step.file.parent, step.piece.folder
    if made:  # compiled from our modules
        shutil.rmtree(folder / "__pycache__", ignore_errors=True)
    while made and folder.is_relative_to(made):
        try:
            folder.rmdir()
        except OSError:  # not empty
            return
        folder = folder.parent


def show_steps(
    call: Call, target: ClientTarget, steps: list[InstallStep], *, dry: bool = False, line: bool = False
) -> None:
    """Print what was done, or with `dry` the diff; `line` adds the line to put into AGENTS.md."""
    changed = any(step.action != "keep" for step in steps)
    notes = [*target.notes] if changed else []
    notes += [f"{SET_UP_TWICE}, by the {way} in {where}; {KEEP_ONE_HINT}" for way, where in target.duplicates]
    files: list[dict[str, Any]] = []
    for step in steps:
        diff = {"diff": step.diff()} if dry and step.action != "keep" else {}
        files.append({"path": str(step.file), "what": step.piece.what, "does": step.action} | diff)
    shape = {"client": target.client, "changed": changed, "dry_run": dry, "files": files, "notes": notes}
    emit_json(call, shape | ({"line": settings.agents_text(target.client)} if line else {}))
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
        word = (f"{STEP_VERBS[step.action]:8} ", "faint" if step.action == "keep" else "good")
        screen.item([word], f"{step.piece.what} in ", (str(step.file), "path"))
    for each in notes:
        screen.item("Note: ", each)
    if line and changed:
        screen.heading("Agents use it only if their instructions say so. Add this line")
        screen.line("to AGENTS.md or CLAUDE.md, or have it added by --agents-md FILE:")
        screen.item("  ", (settings.agents_text(target.client), "strong"))


SET_UP_TWICE = "hooks a second time"
KEEP_ONE_HINT = "keep one: ua-memory uninstall claude-code, with --project there; /plugin removes a plugin"
STEP_VERBS = {"make": "Created", "change": "Changed", "remove": "Removed", "keep": "Unchanged"}


def check_pieces(call: Call, target: ClientTarget, steps: list[InstallStep]) -> None:
    """Print whether all pieces, the command and a bank are there. ProblemsFound if not."""
    command = settings.command_of(call)[0]
    executable = shutil.which(command, path=call.env.get("PATH"))
    bank, states = caller.bank_here(call), {True: "ok", None: "outdated", False: "missing"}
    rows = [(step.piece.what, step.piece.file, states[step.installed]) for step in steps]
    rows.append(("bank", str(bank or "none"), states[bank is not None]))
    rows.append(("command", command, states[executable is not None]))
    rows += [(f"{SET_UP_TWICE}, by the {way}", where, "twice") for way, where in target.duplicates]
    checks = [{"what": what, "where": where, "ok": state == "ok"} for what, where, state in rows]
    bad = [(what, state) for what, _, state in rows if state != "ok"]
    emit_json(call, {"client": target.client, "installed": not bad, "checks": checks})
    screen = Screen(call)
    for what, where, state in rows:
        screen.item([(f"{state:9}", "good" if state == "ok" else "bad")], f"{what}: ", (where, "path"))
    if bad:
        if all(what == "bank" for what, _ in bad):
            raise ProblemsFound("there is no memory bank: nothing will be saved", hint="ua-memory init")
        if all(state == "twice" for _, state in bad):
            raise ProblemsFound(f"ua-memory is set up for {target.client} more than once", hint=KEEP_ONE_HINT)
        what = f"ua-memory is incompletely set up for {target.client}"
        dry_run = "" if target.client == "cron" else " --dry-run"  # cron's is shown unless --write is said
        raise ProblemsFound(what, hint=f"ua-memory install {target.client}{dry_run} shows what is missing")


# -- cron --------------------------------------------------------------------------------------------------
# `ua-memory install cron`: show a bank's nightly job, or install it.


CRONTAB_ERRORS = "surrogateescape"
"""A crontab may not be UTF-8: its bytes are kept."""
NO_CRONTAB = ("no crontab for", "no such file")
"""Errors of `crontab -l` without a crontab: of cronie, Vixie and the BSDs, and of BusyBox."""


DEFAULT_TIME = "03:30"


def cron_target(call: Call, kind: str, at: str = DEFAULT_TIME) -> ClientTarget:
    """The nightly job for the caller's bank. Usage for an invalid time or kind."""
    if kind not in settings.SCHEDULERS:
        raise Usage(f"unknown kind {kind!r}", hint=f"--kind {', '.join(settings.SCHEDULERS)}")
    bank = str(paths.bank_root(call).resolve())
    if not bank.isprintable():
        raise Usage("no job for a folder whose name cannot be printed", where=repr(bank))
    command = [settings.command_of(call)[0], "--bank", bank]
    return settings.schedule_target(kind, bank, command, _parse_time(at), str(call.home))


def installed_cron_target(call: Call, kind: str | None) -> ClientTarget:
    """The job as it is installed, with its own kind and time; else the default job."""
    bank = str(paths.bank_root(call).resolve())
    for each in (kind,) if kind else settings.SCHEDULERS:
        steps = plan_cron(call, cron_target(call, each), remove=True)
        if any(step.action != "keep" for step in steps):
            texts = (step.before.decode("utf-8", CRONTAB_ERRORS) for step in steps if step.before)
            times = filter(None, (settings.scheduled_time(each, bank, text) for text in texts))
            at = next((f"{hour:02}:{minute:02}" for hour, minute in times), DEFAULT_TIME)
            return cron_target(call, each, at)
    return cron_target(call, kind or default_scheduler(call))


def default_scheduler(call: Call) -> str:
    """What runs jobs on this machine: launchd, a user's systemd that answers, else cron."""
    if sys.platform == "darwin":
        return "launchd"
    return "systemd" if _succeeds(call, ["systemctl", "--user", "show-environment"]) else "cron"


def _parse_time(at: str) -> tuple[int, int]:
    hour, colon, minute = at.partition(":")
    if colon and hour.isdecimal() and minute.isdecimal() and int(hour) < 24 and int(minute) < 60:
        return int(hour), int(minute)
    raise Usage(f"not a time of day: {at!r}", hint="--at 03:30")


def plan_cron(call: Call, job: ClientTarget, *, remove: bool = False) -> list[InstallStep]:
    """Plan adding or removing a job; a crontab stands for the file. NotFound without the crontab command."""
    line = job.pieces[0]
    if line.file != settings.CRONTAB:
        return plan_steps(job.pieces, remove=remove)
    if not shutil.which("crontab", path=call.env.get("PATH")):
        if remove:
            return []
        there = default_scheduler(call) == "systemd"
        hint = "ua-memory install cron --kind systemd" if there else "install your system's cron package"
        raise NotFound("no crontab command is installed", hint=hint)
    text = _read_crontab(call)
    both = (text, (line.remove if remove else line.add)(text))
    before, after = (None if each is None else each.encode("utf-8", CRONTAB_ERRORS) for each in both)
    return [InstallStep(line, before, after)]


def apply_cron(call: Call, steps: list[InstallStep], *, remove: bool = False) -> None:
    """Write the planned changes, and enable or disable the job. CannotWrite with the scheduler's error."""
    changed = [step for step in steps if step.action != "keep"]
    if not changed:
        return None
    if str(changed[0].file) == settings.CRONTAB:
        return _run_or_fail(call, ["crontab", "-"], changed[0].after or b"")
    timers = [step.file.name for step in steps if step.file.suffix == ".timer"]
    agents = [str(step.file) for step in steps if step.file.suffix == ".plist"]
    systemctl = ["systemctl", "--user"]
    words = [[*systemctl, "disable" if remove else "enable", "--now", name] for name in timers]
    words += [["launchctl", "unload" if remove else "load", file] for file in agents]
    for each in words if remove else ():
        _succeeds(call, each)
    apply_steps(changed)
    if timers:
        _run_or_fail(call, [*systemctl, "daemon-reload"])
    for each in () if remove else words:
        _run_or_fail(call, each)
    return None


def _read_crontab(call: Call) -> str | None:
    """The caller's crontab, None if there is none. CannotWrite for any other error: `crontab -` replaces all
    of it, so what was not read would be lost."""
    done = _run_command(call, ["crontab", "-l"])
    if not done.returncode:
        return done.stdout.decode("utf-8", CRONTAB_ERRORS)
    if any(none in done.stderr.decode("utf-8", "replace").lower() for none in NO_CRONTAB):
        return None
    hint = "ua-memory install cron shows the line to add"
    raise CannotWrite(f"cannot be read: {_failure_reason(done)}", where="crontab -l", hint=hint)


def _failure_reason(done: subprocess.CompletedProcess[bytes]) -> str:
    """Why a command failed: the last line of its standard error."""
    said = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return (said or [f"exit code {done.returncode}"])[-1]


def _succeeds(call: Call, words: list[str]) -> bool:
    """Run a command. True if it exists and succeeds."""
    try:
        return _run_command(call, words).returncode == 0
    except CannotWrite:
        return False


def _run_or_fail(call: Call, words: list[str], given: bytes = b"") -> None:
    done = _run_command(call, words, given)
    if done.returncode:
        command = " ".join(words)
        raise CannotWrite(_failure_reason(done), where=command, hint=f"run it yourself: {command}")


def _run_command(call: Call, words: list[str], given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run a command. CannotWrite if it is missing, or takes 30 seconds."""
    env = {**call.env, "LC_ALL": "C"}
    try:
        return subprocess.run(words, env=env, input=given, capture_output=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotWrite(str(error), where=" ".join(words)) from error


def clients_without_memory(call: Call) -> Iterator[str]:
    """The clients whose folders are on this machine and that ua-memory is not installed in."""
    for name, client in CLIENTS.items():
        if not any(folder.is_dir() for folder in folders(call, client.homes)):
            continue
        try:
            if all(step.installed is False for step in plan_steps(client.target(call).pieces)):
                yield name
        except UaMemoryError:  # whose settings cannot be read: `install` says so
            continue


# -- install and uninstall ---------------------------------------------------------------------------------


INSTALL_HELP = """Set up memory in an agent's client.

Nothing else in the client's settings changes. Run it again after an update; `ua-memory uninstall` removes
exactly what it added."""
UNINSTALL_HELP = "Remove memory from an agent's client: exactly what install added, nothing that you wrote."
install_app = app.family("install", INSTALL_HELP)
uninstall_app = app.family("uninstall", UNINSTALL_HELP)

DryRun = flag("--dry-run", "Show what would change, as a diff; change nothing.")
Check = flag("--check", "Check whether everything is in place; exit code 12 if not.")
Agents = option("--agents-md FILE", "Also add the line for agents to FILE, or remove it.")
_MODEL_HELP = "With `client`, its own program, logged in, is memory's model: no key is needed."
ClientsModel = Annotated[str | None, option("--model client", _MODEL_HELP, ..., show_default=False)]
CLIENT_OPTIONS = {
    "project": flag("--project", "In this folder's settings, for everyone who works in it."),
    "plugin": option("--plugin DIR", "As a plugin, in a marketplace in DIR."),
    "memory_slot": flag("--memory-slot", "Replace OpenClaw's own memory: take its memory slot."),
    "auto_memory": flag("--auto-memory", "Also store its own notes in memory/claude-code."),
}
"""Parameter of a client's target function → its command-line option."""


CLIENTS = clients.load()
PRINTED = {name: client.printed for name, client in CLIENTS.items() if client.printed}
SERVERS = dict(sorted({**settings.SERVERS, **PRINTED}.items()))
"""The form of the MCP server in each client that has one, by name."""


def _add_client(name: str, client: Client) -> None:
    """Add a client to install and uninstall. The parameters of its target function become options of both."""
    own = [*signature(client.target).parameters.values()][1:]
    own = [one.replace(default=CLIENT_OPTIONS[one.name]) for one in own]

    def install(
        call: Call, model: ClientsModel = None, agents_md: str | None = Agents, dry_run: bool = DryRun,
        check: bool = Check, **chosen: Any,
    ) -> None:  # fmt: skip
        target = _add_model_piece(call, client.target(call, **chosen), model)
        target = _add_agents_line(call, target, agents_md)
        steps = plan_steps(target.pieces)
        if check:
            return check_pieces(call, target, steps)
        if not dry_run:
            apply_steps(steps)
        show_steps(call, target, steps, dry=dry_run, line=agents_md is None)
        try:
            root, default = paths.bank_root(call), default_bank(call.home)
        except NoBank as none:
            note(call, f"{none.what}; until there is one, nothing is saved: {none.hint}")
        else:
            if not dry_run and paths.named(call) is None and root != default and not is_bank(default):
                other = f"ua-memory --bank {shlex.quote(str(root))} install {name}"
                note(call, f"only sessions in {root} use it: there is no bank at {default}; for all: {other}")
        return None

    def uninstall(call: Call, agents_md: str | None = Agents, dry_run: bool = DryRun, **chosen: Any) -> None:
        target = _add_agents_line(call, client.target(call, **chosen), agents_md)
        # One of the remaining ones is no duplicate.
        target = target._replace(notes=(), duplicates=target.duplicates[1:])
        of_model = settings.model_piece(str(caller.user_file(call)), target.client)
        pieces = (*target.pieces, *target.left, of_model)
        steps = [step for step in plan_steps(pieces, remove=True) if step.action != "keep"]
        if not dry_run:
            apply_steps(steps)
        show_steps(call, target, steps, dry=dry_run)

    functions: list[Any] = [install, uninstall]
    for function in functions:
        given = signature(function).parameters
        left_out = ("call", "chosen", "" if client.model else "model")
        named = [given[name] for name in given if name not in left_out]
        function.__signature__ = Signature([given["call"], *own, *named])
    app.verb(install_app, name, opens_bank=False, help=f"Set up {client.does}.")(install)
    app.verb(uninstall_app, name, opens_bank=False, help=f"Remove {client.does}.")(uninstall)


for _name, _client in CLIENTS.items():
    _add_client(_name, _client)


@app.verb(install_app, "mcp", opens_bank=False)
def install_mcp(
    call: Call,
    client: str = option("NAME", f"In the form of one of {', '.join(filter(None, SERVERS))}.", ""),
    print_: bool = option(
        "--print", "Print it, as it does in any case; no file is changed.", True, show_default=False
    ),
) -> None:
    """Show the MCP server's entry for the settings of any client."""
    if client not in SERVERS:
        known = ", ".join(filter(None, SERVERS))
        raise Usage(f"unknown client {client!r}", hint=f"without --client, or one of {known}")
    piece = SERVERS[client](settings.command_of(call))
    _show_pieces(call, ClientTarget(client or "mcp", (piece,), (f"it belongs in {piece.file}",)))


install_app.registered_commands.insert(2, install_app.registered_commands.pop())  # where help has it


@app.verb(install_app, "cron", opens_bank=False)
def install_cron(
    call: Call,
    at: str | None = option("--at HH:MM", "The time of day (03:30)."),
    kind: str | None = option("KIND", "cron, systemd or launchd (default: what this system has)."),
    write: bool = flag("--write", "Set it up instead of showing it."),
    check: bool = Check,
) -> None:
    """Show a nightly job that consolidates the bank, or set it up."""
    if check and not at:
        job = installed_cron_target(call, kind)
    else:
        job = cron_target(call, kind or default_scheduler(call), at or DEFAULT_TIME)
    if not write and not check:
        notes = job.notes if call.as_json else ("to set it up, add --write", *job.notes)
        return _show_pieces(call, job._replace(notes=notes))
    steps = plan_cron(call, job)
    if check:
        return check_pieces(call, job, steps)
    apply_cron(call, steps)
    return show_steps(call, job, steps)


@app.verb(uninstall_app, "cron", opens_bank=False)
def uninstall_cron(call: Call, dry_run: bool = DryRun) -> None:
    """Remove the bank's nightly job."""
    done = []
    for kind in settings.SCHEDULERS:
        job = cron_target(call, kind)
        steps = [step for step in plan_cron(call, job, remove=True) if step.action != "keep"]
        if not dry_run:
            apply_cron(call, steps, remove=True)
        done += steps
    show_steps(call, job._replace(notes=()), done, dry=dry_run)


def _show_pieces(call: Call, job: ClientTarget) -> None:
    """Print what goes into which file, to be added by hand."""
    files = [{"path": piece.file, "what": piece.what, "text": piece.add(None)} for piece in job.pieces]
    emit_json(call, {"client": job.client, "files": files, "notes": list(job.notes)})
    texts = [piece.add(None) or "" for piece in job.pieces]
    if len(texts) > 1:
        texts = [f"# {piece.file}\n{text}" for piece, text in zip(job.pieces, texts, strict=True)]
    Screen(call).raw("\n".join(texts))
    for each in job.notes:
        note(call, each)


def _add_model_piece(call: Call, target: ClientTarget, model: str | None) -> ClientTarget:
    """Add the setting that makes the client's own program the model. Usage for one that cannot be."""
    if model is None:
        return target
    if model != "client":
        hint = f"ua-memory install {target.client} --model client"
        raise Usage(f"{model!r} is not the model of a client", hint=hint)
    as_typed("provider", [target.client], user=True)
    notes = (*target.notes, settings.MODEL_NOTE.format(target.client))
    piece = settings.model_piece(str(caller.user_file(call)), target.client)
    return target._replace(pieces=(*target.pieces, piece), notes=notes)


def _add_agents_line(call: Call, target: ClientTarget, agents_md: str | None) -> ClientTarget:
    if agents_md is None:
        return target
    line = settings.agents_line_piece(str(paths.absolute(call, agents_md)), target.client)
    return target._replace(pieces=(*target.pieces, line))
