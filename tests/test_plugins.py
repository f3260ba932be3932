"""What ua-memory puts into clients in their own languages: it must say what its own commands understand."""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from terminal import new_shell

SHIM = Path(__file__).parents[1] / "ua_memory" / "data" / "plugins" / "hermes" / "__init__.py.in"


@pytest.fixture
def hermes(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The memory provider's module, as Hermes loads it."""
    theirs = ModuleType("agent.memory_provider")
    theirs.MemoryProvider = type("MemoryProvider", (), {})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "agent", ModuleType("agent"))
    monkeypatch.setitem(sys.modules, "agent.memory_provider", theirs)
    found: dict[str, Any] = {}
    exec(compile(SHIM.read_text(), str(SHIM), "exec"), found)
    return found


def test_hermes_calls_a_tool_as_the_command_takes_it(hermes: dict[str, Any], tmp_path: Path) -> None:
    shell = new_shell(tmp_path)
    shell.ok("insert", "Alice moved the API to Fly.io")
    hermes["_run"] = lambda words, given, seconds: shell.ok(*words, stdin=given).out
    provider = hermes["UaMemory"]()
    found = json.loads(provider.handle_tool_call("archival_memory_search", {"query": "API"}))
    assert "Alice moved the API" in found["result"]
    assert "error" in json.loads(provider.handle_tool_call("archival_memory_search", {}))


def test_no_turn_comes_in_behind_the_end_of_its_session(hermes: dict[str, Any]) -> None:
    """Seen in 0.19.0: the end of a session followed its last turn at once, and overtook it."""
    came: list[tuple[str, str]] = []
    sources: list[Any] = []
    free = threading.Event()

    def run(words: list[str], given: str, seconds: float) -> str:
        told = json.loads(given)
        if told["hook_event_name"] == "Stop":
            free.wait(5)
        came.append((told["hook_event_name"], told["session_id"]))
        sources.append(told.get("source"))
        return ""

    hermes["_run"] = run
    provider = hermes["UaMemory"]()
    provider.initialize("one")
    provider.sync_turn("asked", "said", session_id="one")
    threading.Thread(target=lambda: (time.sleep(0.05), free.set())).start()
    provider.on_session_end([])
    provider.on_session_switch("two", parent_session_id="one", reset=True)
    started, ended = ("SessionStart", "one"), ("SessionEnd", "one")
    assert came == [started, ("Stop", "one"), ended, ("SessionStart", "two")]
    provider.on_pre_compress([])
    provider.on_session_end([])  # it says so, too, and then goes on under the same name
    provider.on_session_switch("two", parent_session_id="two")
    assert came[4:] == [("PreCompact", "two"), ("SessionStart", "two")]
    assert [each for each in sources if each] == ["startup", "clear", "compact"]
    provider.on_session_end([])
    assert came[-1] == ("SessionEnd", "two")
