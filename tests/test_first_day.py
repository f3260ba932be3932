"""docs/first-day.md and the session of README.md: every command is run as it stands, and prints what it says.

Clients are stubs that do what their installed hooks say; `python3 -m venv` makes a stub of pip. In
`first-day.md` the program is one that asks for a process with its imports done (`fork_server.py`); the
session of `README.md` is run by the program as it is installed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from daemons import forking, on_terminal, until

ROOT = Path(__file__).parent.parent
PROGRAM = Path(sys.executable).with_name("ua-memory")
VARYING = {
    r"  today\b| \(today\)": "",  # not on the terminal of this test, which has no colours
    r"\^[a-z0-9]{10}": "^ID",
    r"\b[0-9a-f]{7}\b": "COMMIT",
    r"\d{4}-\d\d-\d\d": "DAY",
    r"\w+day,? \d+ \w+ \d{4}": "DAY",
    r"\b\d\d:\d\d\b": "TIME",
    r"\b[01]\.\d\d\b": "SCORE",
    r"DAY-\d{4}-": "DAY-TIME-",
    r"\.md:[\d-]+": ".md:LINE",
}
"""What differs from run to run, and what is compared instead."""

STUBS = {
    "python3": """#!/bin/sh
[ "$1 $2" = "-m venv" ] || exit 1
mkdir -p "$3/bin" && ln -sf "$UA_MEMORY_PROGRAM" "$3/bin/ua-memory"
printf '#!/bin/sh\\n[ "$*" = "install ." ]\\n' > "$3/bin/pip" && chmod +x "$3/bin/pip"
""",
    "crontab": """#!/bin/sh
case "$1" in -l) cat "$HOME/crontab" 2>/dev/null || { echo "no crontab for noor" >&2; exit 1; } ;;
-) cat > "$HOME/crontab" ;; *) cat "$1" > "$HOME/crontab" ;; esac
""",
    "claude": f"#!{sys.executable} -P\n" + '''
import json, os, pathlib, subprocess, sys
name = pathlib.Path(sys.argv[0]).name
settings = {"claude": ".claude/settings.json", "codex": ".codex/hooks.json"}[name]
home = pathlib.Path(os.environ["HOME"])
hooks = json.loads((home / settings).read_text())["hooks"]
session = "0b7c52e1-6f0d-4d0e-9a53-2f1d7f4f3c88"
transcript = home / ".claude/projects/home-noor" / f"{session}.jsonl"
transcript.parent.mkdir(parents=True, exist_ok=True)

def tell(event, **more):
    about = {"hook_event_name": event, "session_id": session, "cwd": os.getcwd(), **more}
    if name == "claude":
        about["transcript_path"] = str(transcript)
    for each in (each for group in hooks.get(event, []) for each in group["hooks"]):
        run = [each["command"], *each["args"]] if "args" in each else ["sh", "-c", each["command"]]
        done = subprocess.run(run, input=json.dumps(about), capture_output=True, text=True, close_fds=False)
        with (home / f"{name}.given").open("a") as given:
            given.write(done.stdout)

def write(number, role, text):
    record = {"type": role, "uuid": f"u{number}", "parentUuid": f"u{number - 1}" if number else None,
              "isSidechain": False, "sessionId": session, "timestamp": f"2026-11-22T10:00:0{number}Z",
              "message": {"role": role, "content": [{"type": "text", "text": text}]}}
    with transcript.open("a") as file:
        file.write(json.dumps(record) + "\\n")

tell("SessionStart", source="startup")
for number, prompt in enumerate(sys.stdin.read().splitlines()):
    if not prompt.startswith("/"):
        tell("UserPromptSubmit", prompt=prompt)
        write(2 * number, "user", prompt)
        write(2 * number + 1, "assistant", "All right.")
        tell("Stop")
tell("SessionEnd", reason="prompt_input_exit")
''',
}  # fmt: skip
STUBS["codex"] = STUBS["claude"]
FORKED = (
    f"#!{sys.executable} -ISs\n"
    + """
import json, os, socket, sys

asks = socket.socket(fileno=int(os.environ["TEST_ASKS"]))
answers, theirs = socket.socketpair()
told = {"argv": sys.argv[1:], "cwd": os.getcwd(), "env": dict(os.environ)}
answers.sendall(json.dumps(told).encode() + b"\\n")
socket.send_fds(asks, [b"!"], [0, 1, 2, theirs.fileno()])
theirs.close()
_, ended = answers.makefile("rb")  # the process id and, once it has ended, the exit code
sys.exit(int(ended))
"""
)
"""`ua-memory` as `fork_server.py` has it: to start Python and load the model would take most of the test."""


def steps(text: str) -> list[tuple[str, str, str]]:
    """Command, what is typed into it, and what it prints, of every `console` block of a text."""
    found = []
    for block in re.findall(r"^```console\n(.*?)^```", text, re.M | re.S):
        for step in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, *rows = step.splitlines()
            typed = [row.removeprefix("> ") for row in rows if row.startswith("> ")]
            shown = [row for row in rows if not row.startswith("> ")]
            found.append((command, "\n".join(typed), "\n".join(shown).strip()))
    return found


def same(shown: str, printed: str) -> bool:
    """Whether a command printed what a page shows, where `…` is anything."""
    for pattern, name in VARYING.items():
        shown, printed = re.sub(pattern, name, shown), re.sub(pattern, name, printed)
    return re.fullmatch(re.escape(shown).replace("…", ".*"), printed.strip(), re.S) is not None


class Desk:
    """A home folder with a checkout in it, and a shell whose folder is remembered from command to command."""

    def __init__(self, home: Path, program: Path) -> None:
        self.home, self.folder = home, home / "checkout"
        for folder in ("checkout", "stubs", "vault/notes", "vault/.obsidian", ".claude", ".codex"):
            (home / folder).mkdir(parents=True)
        for name, text in STUBS.items():
            (home / "stubs" / name).write_text(text)
            (home / "stubs" / name).chmod(0o755)
        (home / ".gitconfig").write_text("[user]\nname = Noor Lindqvist\nemail = noor@example.org\n")
        path = f"{home}/stubs:{home}/.local/bin:/usr/local/bin:/usr/bin:/bin"
        self.env = {**os.environ, "HOME": str(home), "PATH": path, "UA_MEMORY_PROGRAM": str(program)}
        self.env |= {"GIT_CONFIG_GLOBAL": f"{home}/.gitconfig", "TERM": "dumb"}
        self.env |= {"UA_MEMORY_DAEMON": "off", "UA_MEMORY_PAGER": "cat"}

    def types(self, command: str, typed: str = "") -> str:
        """What a terminal shows of a command."""
        script = f"{command}\ncode=$?; pwd > {self.home}/folder; exit $code"
        asks = forking().asks.fileno()
        begun: list[subprocess.Popen[bytes]] = []

        def begin(terminal: int) -> None:
            begun.append(
                subprocess.Popen(
                    ["bash", "-c", script], cwd=self.folder, env={**self.env, "TEST_ASKS": str(asks)},
                    stdout=terminal, stderr=terminal, stdin=subprocess.PIPE if typed else terminal,
                    pass_fds=[asks],
                )
            )  # fmt: skip
            if typed:
                assert begun[0].stdin
                begun[0].stdin.write(typed.encode())
                begun[0].stdin.close()

        shown = on_terminal(begin, 200)
        assert begun[0].wait() == 0, f"$ {command}\n{shown}"
        self.folder = Path((self.home / "folder").read_text().strip())
        return shown.replace("\r\n", "\n").replace(str(self.home), "/home/noor")

    def follows(self, page: str) -> None:
        """Do what a page says; each section begins in the folder in which the first did."""
        text, start = (ROOT / page).read_text("utf-8"), self.folder
        assert not re.search("^```(sh|bash)", text, re.M), "only blocks of the kind `console` are run"
        for section in text.split("\n## "):
            self.folder = start
            for command, typed, shown in steps(section):
                printed = self.types(command, typed)
                assert same(shown, printed), f"$ {command}\n{printed}\n--- {page} has\n{shown}"
                if command == "claude":
                    until(lambda: "Alice is away" in self.types("cat ~/ua-memory/memory/*.md"), 60)


def test_first_day(tmp_path: Path) -> None:
    program = tmp_path / "ua-memory"
    program.write_text(FORKED)
    program.chmod(0o755)
    desk = Desk(tmp_path / "noor", program)
    desk.follows("docs/first-day.md")
    for client in ("claude", "codex"):
        given = (desk.home / f"{client}.given").read_text()
        assert "Prefers short answers." in given and "because the price doubled" in given


def test_the_session_in_the_readme(tmp_path: Path) -> None:
    if not PROGRAM.exists():
        pytest.skip("ua-memory is not installed beside this python")
    desk = Desk(tmp_path / "noor", PROGRAM)
    desk.folder = desk.home
    (desk.home / ".local/bin").mkdir(parents=True)
    (desk.home / ".local/bin/ua-memory").symlink_to(PROGRAM)
    desk.follows("README.md")


def test_a_page_that_says_something_else_is_noticed() -> None:
    printed = "Remembered in memory/2027-01-02.md:17 (^aaaaaaaaaa, commit 1234567)\n"
    assert same("Remembered in memory/2026-11-22.md:5 (^2ezoepcbgq, …)", printed)
    assert not same("Remembered in memory/2026-11-22.md:5", "Remembered in MEMORY.md:5")
    assert not same("", "something") and same("…", "")
