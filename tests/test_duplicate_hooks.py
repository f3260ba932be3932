"""Hooks that a client has twice answer once; one that is called again answers again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ua_memory.cli import fast as once

PROMPT = b'{"hook_event_name":"UserPromptSubmit","session_id":"5df2","prompt":"Why Fly.io?"}'


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """When this process was started, and what time it is: of a machine that has /proc and of others alike."""
    found = {"born": 1.0, "now": 1.04, "pid": 11}
    monkeypatch.setattr(once, "_process_start", lambda: found["born"])
    monkeypatch.setattr(once, "_since_boot", lambda: found["now"])
    monkeypatch.setattr(os, "getpid", lambda: found["pid"])
    return found


def test_of_two_hooks_of_one_event_one_answers(clock: dict[str, float]) -> None:
    assert once.is_first_hook(["hook"], PROMPT)
    clock.update(born=1.01, now=1.06, pid=12)
    assert not once.is_first_hook(["hook", "--client", "claude-code"], PROMPT)
    assert once.is_first_hook(
        ["hook", "--bank", "/elsewhere"], PROMPT
    )  # another bank's memory is another answer
    assert once.is_first_hook(["hook"], PROMPT.replace(b"UserPromptSubmit", b"Stop"))


def test_who_is_called_again_answers_again(clock: dict[str, float]) -> None:
    assert once.is_first_hook(["hook"], PROMPT)
    clock.update(born=1.05, now=1.08, pid=12)
    assert once.is_first_hook(["hook"], PROMPT)
    clock.update(born=1.04, now=1.09, pid=13)  # the second hook of this one
    assert not once.is_first_hook(["hook"], PROMPT)


def test_a_client_may_start_the_second_hook_when_the_first_has_answered(
    clock: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_PID", "7")
    assert once.is_first_hook(["hook"], PROMPT)
    clock.update(born=2.0, now=2.04, pid=12)
    assert not once.is_first_hook(["hook"], PROMPT)
    clock.update(born=9.0, now=9.04, pid=13)  # the same words again, later
    assert once.is_first_hook(["hook"], PROMPT)


def test_what_cannot_be_known_is_answered(clock: dict[str, float], monkeypatch: pytest.MonkeyPatch) -> None:
    assert once.is_first_hook(["hook"], PROMPT)
    monkeypatch.setattr(once, "_process_start", lambda: open("/proc/none"))  # noqa: SIM115, PTH123
    clock.update(pid=12)
    assert once.is_first_hook(["hook"], PROMPT)


def test_the_file_does_not_grow_for_ever(clock: dict[str, float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(once, "MOST_EVENT_BYTES", 100)
    for n in range(20):
        assert once.is_first_hook(["hook"], PROMPT.replace(b"Fly.io", b"%d" % n))
    assert (Path(os.environ["XDG_RUNTIME_DIR"]) / "ua-memory" / "events").stat().st_size < 200
