"""A nightly `ua-memory consolidate` of one bank: a line of cron, a timer of systemd, an agent of launchd.

Each bank has a job of its own, known by a name with a hash of the bank's path.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Sequence
from xml.sax.saxutils import escape

from ua_memory.clients.paragraph import rows_of
from ua_memory.clients.settings import NAME, Piece, Target, whole_file

KINDS = ("cron", "systemd", "launchd")
CRONTAB = "crontab"
"""The file of a line of cron's: none, but what `crontab -l` shows and `crontab -` takes."""


def name_of(bank: str) -> str:
    """The job's name: `ua-memory-1a2b3c4d`."""
    return f"{NAME}-{hashlib.sha256(bank.encode('utf-8', 'surrogateescape')).hexdigest()[:8]}"


def target(kind: str, bank: str, command: Sequence[str], at: tuple[int, int], home: str) -> Target:
    """The job of a kind for a bank, at an hour and minute; `command` starts ua-memory with `--bank`."""
    name, words = name_of(bank), [*command, "consolidate"]
    if kind == "cron":
        key = KEY.format("the head of the crontab: ANTHROPIC_API_KEY=…")
        return Target("cron", (_line(name, [*words, "--log"], at),), (key,))
    if kind == "systemd":
        units = f"{home}/.config/systemd/user/{name}"
        service = (
            f"[Unit]\nDescription=ua-memory consolidates {_unit(bank)}\n\n"
            f"[Service]\nType=oneshot\nNice=10\nExecStart={' '.join(map(_quoted, words))}\n"
        )
        timer = (
            f"[Unit]\nDescription=ua-memory consolidates {_unit(bank)} at night\n\n"
            f"[Timer]\nOnCalendar=*-*-* {at[0]:02}:{at[1]:02}:00\nPersistent=true\nRandomizedDelaySec=300\n\n"
            "[Install]\nWantedBy=timers.target\n"
        )
        pieces = (
            whole_file(f"{units}.service", "service", service, NAME),
            whole_file(f"{units}.timer", "timer", timer, NAME),
        )
        return Target(
            "cron",
            pieces,
            (KEY.format(f"systemctl --user edit {name}.service: [Service] Environment=ANTHROPIC_API_KEY=…"),),
        )
    file = f"{home}/Library/LaunchAgents/{name}.plist"
    strings = "".join(f"    <string>{escape(word)}</string>\n" for word in words)
    plist = PLIST.format(name=name, words=strings, hour=at[0], minute=at[1])
    return Target(
        "cron", (whole_file(file, "agent", plist, NAME),), (KEY.format("its EnvironmentVariables"),)
    )


_TIMES = {
    "cron": r"(?m)^(?P<minute>\d+) (?P<hour>\d+) \* \* \* .*# {name}$",
    "systemd": r"(?m)^OnCalendar=\*-\*-\* (?P<hour>\d+):(?P<minute>\d+):",
    "launchd": r"Hour</key>\s*<integer>(?P<hour>\d+)<[^M]*Minute</key>\s*<integer>(?P<minute>\d+)<",
}


def time_of(kind: str, bank: str, text: str) -> tuple[int, int] | None:
    """The hour and minute at which the job in a file runs, None where it does not say them as we do."""
    found = re.search(_TIMES[kind].replace("{name}", name_of(bank)), text)
    return (int(found["hour"]), int(found["minute"])) if found else None


KEY = "it runs without your shell's environment; a model's key goes into {}"

PLIST = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key>
  <string>{name}</string>
  <key>ProgramArguments</key>
  <array>
{words}  </array>
  <key>StartCalendarInterval</key>
  <dict>
    <key>Hour</key>
    <integer>{hour}</integer>
    <key>Minute</key>
    <integer>{minute}</integer>
  </dict>
  <key>LowPriorityIO</key>
  <true/>
</dict>
</plist>
"""


def _line(name: str, words: Sequence[str], at: tuple[int, int]) -> Piece:
    """A line of the crontab, known by the job's name behind it."""
    mark = f" # {name}\n"
    # Cron takes a bare percent sign for the end of the line.
    line = f"{at[1]} {at[0]} * * * {shlex.join(words)}".replace("%", r"\%") + mark

    def put(text: str | None) -> str | None:
        rows = rows_of(text or "")
        if any(row.endswith(mark) for row in rows):
            return "".join(line if row.endswith(mark) else row for row in rows)
        end = "\n" if rows and not rows[-1].endswith("\n") else ""
        return f"{text or ''}{end}{line}"

    def cut(text: str | None) -> str | None:
        return None if text is None else "".join(row for row in rows_of(text) if not row.endswith(mark))

    return Piece(CRONTAB, "line", put, cut)


def _quoted(word: str) -> str:
    """A word as systemd reads it: specifiers and variables are not meant."""
    plain = _unit(word).replace("\\", "\\\\").replace('"', '\\"').replace("$", "$$")
    return f'"{plain}"' if plain != word or any(c.isspace() or c in "';" for c in word) else word


def _unit(text: str) -> str:
    return text.replace("%", "%%").replace("\n", " ")
