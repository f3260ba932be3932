"""What a path names is read only if it is a regular file: nobody waits for a pipe, a device or a socket."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from terminal import Shell, new_shell

from ua_memory import discovery as regular
from ua_memory.errors import UaMemoryError


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return new_shell(tmp_path)


@pytest.fixture(autouse=True)
def _nobody_waits() -> Iterator[None]:
    """Whoever waits at a pipe is woken, and the test fails: it would wait for ever."""

    def woken(*_: Any) -> None:
        raise AssertionError("waits for somebody at the other end")

    before = signal.signal(signal.SIGALRM, woken)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def pipe(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    return path


KINDS = ("pipe", "device", "socket", "link")


def made(kind: str, folder: Path) -> Path:
    """Something that is no regular file, under a name that could be one's."""
    path = folder / "it.md"
    if kind == "pipe":
        return pipe(path)
    if kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "link":
        path.symlink_to(pipe(folder / "other"))
    else:
        with socket.socket(socket.AF_UNIX) as end, pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)  # the name of a socket is short
            end.bind(path.name)
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    path = made(kind, tmp_path)
    with pytest.raises(regular.Irregular, match="not a regular file"):
        regular.open_regular(path)
    with pytest.raises(IsADirectoryError):
        regular.open_regular(tmp_path)


def test_a_regular_file_and_a_link_to_one_are_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345678")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    assert regular.read(tmp_path / "b", 8) == b"12345678"
    with pytest.raises(OSError, match="larger than"):
        regular.read(tmp_path / "b", 7)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "words",
    [
        "flush {0}", "flush --dry-run {0}", "ingest {0}", "retain {0}", "retain --batch {0}", "watch add {0}",
        "import archive {0}", "import markdown {1}/fine --compare {0}", "reflect who --schema {0}",
    ],
)  # fmt: skip
def test_a_command_says_what_it_was_given(shell: Shell, tmp_path: Path, kind: str, words: str) -> None:
    path = made(kind, tmp_path)
    (tmp_path / "fine").mkdir()
    (tmp_path / "fine" / "a.md").write_text("- The kiln was lit in May\n")
    done = shell(*(word.format(path, tmp_path) for word in words.split()))
    assert done.code > 1 and "not a regular file" in done.err
    assert not list(shell.cwd.glob("memory/*.md"))


@pytest.mark.parametrize("source", ["markdown", "hindsight", "claude-code", "sessions"])
def test_an_import_names_what_it_cannot_read(shell: Shell, tmp_path: Path, source: str) -> None:
    folder = tmp_path / "notes"
    for name in ("a.md", "b.jsonl", "c.sqlite", "c.db"):
        pipe(folder / name)
    (folder / "CLAUDE.md").write_text("# Kiln\n\n- The kiln was lit in May\n")
    done = shell.ok("import", source, str(folder), "--json")
    assert "not a regular file" in done.out
    (folder / "b.jsonl").rename(folder / "CLAUDE.md")
    done = shell("import", source, str(folder / "CLAUDE.md"), "--json")
    assert "not a regular file" in done.out + done.err


PATHS = ("MEMORY.md", "memory/2026-11-20.md", "memory/notes.md", "memory/pages/kiln.md", "memory/entities.md",
         "memory/opinions.md", "memory/forgotten.md", "memory/observations/kiln.md")  # fmt: skip


@pytest.mark.few(3)
@pytest.mark.parametrize("path", PATHS)
def test_a_pipe_in_the_bank_stops_nobody(shell: Shell, path: str) -> None:
    shell.ok("insert", "The kiln was lit in May")
    pipe(shell.cwd / path)
    done = shell("get", path)
    assert done.code > 1 and "not a regular file" in done.err
    for words in ("search kiln", "recall kiln", "insert another", "log", "diff", "verify", "status"):
        assert shell(*words.split()).code != 1, words
    told = {
        "session_id": "s",
        "transcript_path": "",
        "cwd": str(shell.cwd),
        "prompt": "the kiln, was it lit?",
    }
    for event in ("SessionStart", "UserPromptSubmit", "SessionStart"):
        shell.ok("hook", stdin=json.dumps({"hook_event_name": event, "source": "startup", **told}))


def test_settings_that_are_a_pipe_are_told(shell: Shell) -> None:
    pipe(shell.cwd / "ua-memory.toml")
    assert "not a regular file" in shell.ok("status", "--bank", str(shell.cwd)).out
    done = shell("search", "kiln", "--bank", str(shell.cwd))
    assert done.code > 1 and "not a regular file" in done.err


SETTINGS = {
    "claude-code": ".claude/settings.json",
    "codex": ".codex/hooks.json",
    "gemini": ".gemini/settings.json",
}


@pytest.mark.parametrize("client", SETTINGS)
def test_a_client_s_settings_that_are_a_pipe_are_told(shell: Shell, client: str) -> None:
    pipe(shell.home / SETTINGS[client])
    done = shell("install", client, "--check")
    assert done.code > 1 and "not a regular file" in done.err


def test_a_hook_s_transcript_that_is_a_pipe_is_left_alone(shell: Shell, tmp_path: Path) -> None:
    told = {"session_id": "s", "cwd": str(shell.cwd), "transcript_path": str(pipe(tmp_path / "t.jsonl"))}
    said = "We always fire the big kiln at night because power is cheap then."
    more = {"prompt": "When do we fire?", "last_assistant_message": said}
    shell.ok("hook", "--client", "other", stdin=json.dumps({"hook_event_name": "Stop", **told, **more}))
    assert "power is cheap" in shell.ok("queue", "list", "--json").out or list(
        (shell.cwd / ".git/ua-memory/pending").glob("turns-*")
    )


def test_other_folders_pipes_are_not_waited_for(shell: Shell, tmp_path: Path) -> None:
    pipe(tmp_path / "notes" / "a.md")
    shell.write("../../notes/b.md", "- The kiln was lit in May\n")
    with (shell.cwd / "ua-memory.toml").open("a") as file:
        file.write(f'extraPaths = ["{tmp_path}/notes", "{tmp_path}/notes/a.md"]\n')
    shell.ok("trust", "--yes")
    assert "lit in May" in shell.ok("search", "kiln").out
    assert shell("get", str(tmp_path / "notes" / "a.md")).code > 1


def test_an_agent_s_file_that_is_a_pipe_is_refused(shell: Shell, tmp_path: Path) -> None:
    from ua_memory.memory import Memory

    path = pipe(tmp_path / "a.md")
    with Memory.open(shell.cwd, now=lambda: shell.time) as memory, pytest.raises(UaMemoryError, match="pipe"):
        memory.documents.read(path)
