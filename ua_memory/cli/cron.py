"""`ua-memory install cron`: the nightly job of a bank, shown or handed to what runs it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ua_memory.cli import context
from ua_memory.errors import CannotWrite, NotFound, Usage

if TYPE_CHECKING:
    from ua_memory.cli.call import Call
    from ua_memory.cli.installing import Step
    from ua_memory.clients.settings import Target

ODD = "surrogateescape"
"""Somebody's crontab need not be UTF-8: its bytes stay what they are."""
NONE_YET = ("no crontab for", "no such file")
"""How `crontab -l` says that there is none: cronie's, Vixie's and the BSDs', and BusyBox's."""


DEFAULT = "03:30"


def target(call: Call, kind: str, at: str = DEFAULT) -> Target:
    """The job for the caller's bank. Usage for a time or a kind that there is not."""
    from ua_memory.cli.installing import command_of
    from ua_memory.clients import schedule

    if kind not in schedule.KINDS:
        raise Usage(f"no kind {kind!r}", mend=f"--kind {', '.join(schedule.KINDS)}")
    bank = str(context.bank_root(call).resolve())
    if not bank.isprintable():
        raise Usage("no job for a folder whose name cannot be printed", where=repr(bank))
    command = [command_of(call)[0], "--bank", bank]
    return schedule.target(kind, bank, command, _time(at), str(call.home))


def in_place(call: Call, kind: str | None) -> Target:
    """The job to be checked where no time is asked for: of the kind that is set up, at its own time."""
    from ua_memory.clients.schedule import KINDS, time_of

    bank = str(context.bank_root(call).resolve())
    for each in (kind,) if kind else KINDS:
        steps = plan(call, target(call, each), out=True)
        if any(step.does != "keep" for step in steps):
            texts = (step.before.decode("utf-8", ODD) for step in steps if step.before)
            times = filter(None, (time_of(each, bank, text) for text in texts))
            return target(call, each, next((f"{hour:02}:{minute:02}" for hour, minute in times), DEFAULT))
    return target(call, kind or kind_here(call))


def kind_here(call: Call) -> str:
    """What runs jobs on this machine: launchd, a systemd of the user's that answers, else cron."""
    if sys.platform == "darwin":
        return "launchd"
    if _there(call, "systemctl") and _ran(call, ["systemctl", "--user", "show-environment"]):
        return "systemd"
    return "cron"


def _time(at: str) -> tuple[int, int]:
    hour, colon, minute = at.partition(":")
    if colon and hour.isdecimal() and minute.isdecimal() and int(hour) < 24 and int(minute) < 60:
        return int(hour), int(minute)
    raise Usage(f"no time of day: {at!r}", mend="--at 03:30")


def plan(call: Call, job: Target, *, out: bool = False) -> list[Step]:
    """What is to be done; the crontab takes the place of a file. NotFound where there is no such command."""
    from ua_memory.cli import installing
    from ua_memory.clients.schedule import CRONTAB

    if job.pieces[0].file != CRONTAB:
        return installing.plan(job.pieces, out=out)
    if not _there(call, "crontab"):
        if out:
            return []
        raise NotFound("there is no crontab command here", mend="ua-memory install cron --kind systemd")
    text = _crontab(call)
    new = (job.pieces[0].cut if out else job.pieces[0].put)(text)
    before, after = (None if each is None else each.encode("utf-8", ODD) for each in (text, new))
    return [installing.Step(Path(CRONTAB), job.pieces[0].what, before, after)]


def carry_out(call: Call, job: Target, steps: list[Step], *, out: bool = False) -> None:
    """Write what differs, and tell what runs it. CannotWrite in its words where it refuses."""
    from ua_memory.cli import installing
    from ua_memory.clients.schedule import CRONTAB

    changed = [step for step in steps if step.does != "keep"]
    for step in changed:
        if str(step.file) == CRONTAB:
            _must(call, ["crontab", "-"], step.after or b"")
            return
    timers = [step.file.name for step in steps if step.file.suffix == ".timer"]
    agents = [str(step.file) for step in steps if step.file.suffix == ".plist"]
    systemctl = ["systemctl", "--user"]
    if changed and out:
        for words in [*([*systemctl, "disable", "--now", name] for name in timers),
                      *(["launchctl", "unload", file] for file in agents)]:  # fmt: skip
            _ran(call, words)
    installing.carry_out(changed)
    if not changed or not (timers or agents):
        return
    if timers:
        _must(call, [*systemctl, "daemon-reload"])
    for words in [] if out else [*([*systemctl, "enable", "--now", name] for name in timers),
                                 *(["launchctl", "load", file] for file in agents)]:  # fmt: skip
        _must(call, words)


def _crontab(call: Call) -> str | None:
    """The caller's crontab, None where there is none yet. CannotWrite where that cannot be told for certain:
    what is not read would be lost, since `crontab -` takes the place of all of it."""
    done = _done(call, ["crontab", "-l"])
    said = done.stderr.decode("utf-8", "replace")
    if not done.returncode:
        return done.stdout.decode("utf-8", ODD)
    if any(none in said.lower() for none in NONE_YET):
        return None
    why = (said.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
    mend = "ua-memory install cron shows the line to add"
    raise CannotWrite(f"cannot be read: {why}", where="crontab -l", mend=mend)


def _there(call: Call, name: str) -> bool:
    return shutil.which(name, path=call.env.get("PATH")) is not None


def _ran(call: Call, words: list[str]) -> bool:
    """Run a command; whether it is there and succeeds."""
    try:
        return _done(call, words).returncode == 0
    except CannotWrite:
        return False


def _must(call: Call, words: list[str], given: bytes = b"") -> None:
    done = _done(call, words, given)
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        why = (said or [f"exit code {done.returncode}"])[-1]
        raise CannotWrite(why, where=" ".join(words), mend=f"run it yourself: {' '.join(words)}")


def _done(call: Call, words: list[str], given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run a command. CannotWrite where it is missing, or takes half a minute."""
    env = {**call.env, "LC_ALL": "C"}
    try:
        return subprocess.run(words, env=env, input=given, capture_output=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotWrite(str(error), where=" ".join(words)) from error


def shown(call: Call, job: Target) -> str:
    """The job as text: what goes into which file, for somebody who puts it there by hand."""
    texts = []
    for piece in job.pieces:
        new = piece.put(None) or ""
        texts.append(new if len(job.pieces) == 1 else f"# {piece.file}\n{new}")
    return "\n".join(texts)
