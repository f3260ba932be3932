"""Sessions that go on: who has to end them, and what they are told at a start and after a compaction."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ua_memory.clients.turns import Session, Turn
from ua_memory.config import Config
from ua_memory.hooks import context as beginning
from ua_memory.hooks import context as sessions
from ua_memory.hooks.events import Event
from ua_memory.knowledge.sessions import SessionFiles
from ua_memory.paths import Bank
from ua_memory.recall.readonly import core_block
from ua_memory.store.store import Store
from ua_memory.text.noise import LONGEST_BLOCK


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    state = tmp_path / ".ua-memory"
    state.mkdir()
    return Bank(tmp_path, False, state, state / "trail.git")


def event(session: str = "s1", why: str = "", kind: str = "start") -> Event:
    made = Event("SessionStart", cast("Any", kind))
    made.session, made.why, made.transcript = session, why, "/t.jsonl"
    return made


def test_a_session_ends_with_its_process(bank: Bank) -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    found = sessions.record_event(bank.pending, event(), child.pid)
    path = sessions.record_path(bank.pending, event())
    assert found["pid"] == child.pid and not sessions.has_ended(path, found)
    assert not sessions.is_other_due(bank.pending, "another")
    child.kill()
    child.wait()
    if sys.platform == "linux":
        assert sessions.has_ended(path, found) and sessions.is_other_due(bank.pending, "another")
        assert not sessions.is_other_due(bank.pending, "s1")


@pytest.mark.skipif(sys.platform != "linux", reason="told by /proc")
def test_a_shell_between_is_not_the_client(bank: Bank) -> None:
    child = subprocess.Popen(["sh", "-c", "sleep 60; true"])
    try:
        assert sessions.record_event(bank.pending, event(), child.pid)["pid"] == os.getpid()
    finally:
        child.kill()
        child.wait()


def test_one_whose_process_nobody_knows_ends_by_silence(bank: Bank) -> None:
    found = sessions.record_event(bank.pending, event(), 0)
    path = sessions.record_path(bank.pending, event())
    assert not sessions.has_ended(path, found)
    os.utime(path, (0, time.time() - sessions.IDLE_TIMEOUT - 60))
    assert sessions.has_ended(path, found)


def test_what_was_asked_for_before_a_compaction_stays_asked_for(bank: Bank) -> None:
    sessions.record_event(bank.pending, event(kind=sessions.COMPACT), 0)
    assert sessions.record_event(bank.pending, event(), 0)["want"] == sessions.COMPACT
    assert sessions.record_event(bank.pending, event(kind=sessions.END), 0)["want"] == sessions.END
    late = event()
    late.kind = "stop"
    assert sessions.record_event(bank.pending, late, 0)["want"] == sessions.END
    # It was resumed before a flush came to it: it goes on, and what was said until then is due still.
    assert sessions.record_event(bank.pending, event(), 0)["want"] == sessions.COMPACT
    path = sessions.record_path(bank.pending, event())
    sessions.update_record(path, spot=[1])
    sessions.update_record(f"{path}.gone", spot=[1])
    assert [found["spot"] for _, found in sessions.session_records(bank.pending)] == [[1]]
    ((_, found),) = sessions.session_records(bank.pending)
    assert found["transcript"] == "/t.jsonl" and found["client"] == "claude-code"


def test_a_session_has_its_words_in_view_until_it_is_compacted(bank: Bank) -> None:
    assert sessions.visible_session(bank.pending, event()) == "s1"
    sessions.record_event(bank.pending, event(), 0)
    assert sessions.visible_session(bank.pending, event()) == "s1"
    sessions.record_event(bank.pending, event(kind=sessions.COMPACT), 0)
    sessions.record_event(bank.pending, event(), 0)
    assert sessions.visible_session(bank.pending, event()) == ""


def test_without_a_state_folder_nothing_is_made(tmp_path: Path) -> None:
    sessions.record_event(tmp_path / "none" / "pending", event(), 0)
    assert not (tmp_path / "none").exists()


# -- what a session is told ----------------------------------------------------------------------------


def core(most: int) -> str:
    return core_block([("Me", "Short answers."), ("Long", "x" * 6000)], most)


def told(bank: Bank, event: Event, kept: Any = ()) -> str:
    look: Any = SimpleNamespace(of_session=lambda *_: list(kept))
    return beginning.start_text(event, bank, core, look) or ""


def page(bank: Bank, name: str, head: str) -> None:
    folder = bank.root / "memory" / "pages"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.md").write_text(f"---\n{head}\n---\n\nname: not this\n")


def test_a_start_is_told_core_memory_and_pages(bank: Bank) -> None:
    page(bank, "hosting", 'id: hosting\nname: "Where it runs"\nsource_query: which provider, and why')
    page(bank, "odd", "name: >\n  folded")
    page(bank, "secret", "name: the key sk0aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa of it")
    text = told(bank, event())
    assert text.index("Short answers.") < text.index("- hosting: Where it runs (which provider, and why)")
    assert "- odd: odd\n" in text and "- secret: the key … of it" in text and "not this" not in text


def test_a_start_is_told_of_its_project(bank: Bank) -> None:
    files = SessionFiles(
        cast(Store, SimpleNamespace(bank=bank, config=Config(), now=lambda: datetime.now(UTC)))
    )
    for number in range(7):
        session = Session("claude-code", f"s{number}", "/home/noor/shop")
        at = datetime(2026, 10, 1 + number, 9, tzinfo=UTC)
        said = Turn(
            f"b{number}", "assistant", f"The cause of number {number} was a stale lock in the queue.", at
        )
        left = Turn(f"c{number}", "person", f"tomorrow we do part {min(number, 5)}", at)
        files.add(session, [Turn(f"a{number}", "person", f"Look into {number}", at), said, left], now=at)
    files.add(
        Session("codex", "x", "/home/noor/other"), [Turn("a", "person", "something else", None)], now=at
    )
    known = [f"- never touch part {n} (2026-10-05)" for n in range(200)], ["- the port is 6543 (2026-10-05)"]
    here = event()
    here.cwd = "/home/noor/shop"
    text = beginning.start_text(here, bank, core, None, known) or ""
    assert "- 2026-10-07: Look into 6 — The cause of number 6 was a stale lock in the queue." in text
    assert "Look into 2" in text and "Look into 1" not in text and "something else" not in text
    assert text.count("tomorrow we do part 5") == 1 and "tomorrow we do part 3" in text  # three, each once
    assert "never touch part 0" in text and "port is 6543" in text
    assert "never touch part 199" not in text and len(text) - len(core(9000)) < 4 * 800 + 200
    here.session = "s6"
    assert "Look into 6" not in (beginning.start_text(here, bank, core, None, known) or "")


def test_all_of_it_has_room(bank: Bank) -> None:
    for n in range(300):
        page(bank, f"page-{n:03}", f"name: Page number {n}\nsource_query: {'what it tracks ' * 20}")
    rows = [f"- 2026-11-21: {'something said ' * 10}{n} [memory/2026-11-21.md#L{n}]" for n in range(20)]
    beginning.save_recalled(bank, event(), "\n".join(["head", *rows]))
    text = told(bank, event(why="compact"), [row.replace("said", "kept") for row in rows])
    assert len(text) <= LONGEST_BLOCK and "Short answers." in text and "more: ua-memory pages list" in text
    assert text.count("<ua-memory-recall kind=") == 4 == text.count("</ua-memory-recall>")


def test_after_a_compaction_what_was_told_comes_back_once(bank: Bank) -> None:
    for n in range(5):
        beginning.save_recalled(bank, event(), f"head\n- one [a#L1]\n- number {n} [b#L{n}]")
    beginning.save_recalled(bank, event("s2"), "- another session's [c#L1]")
    text = told(bank, event(why="compact"), ["- number 2 [b#L2 ^abc]"])
    assert text.count("- one [a#L1]") == 1 == text.count("- number 2 ") and "another session" not in text
    assert "- one" not in told(bank, event(why="startup"))
    beginning.delete_recalled(bank.local, time.time() + 60)
    assert "- one" not in told(bank, event(why="compact"))
    assert json.dumps(text).isascii()
