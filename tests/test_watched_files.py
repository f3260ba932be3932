"""Watched files outside the bank: retained when they rest, never the bank's own, never lost unasked."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from banks import Clock, new_bank
from fake_model import FakeModel
from scripted_model import Scripted
from terminal import Shell, new_shell
from test_cli_json import agrees
from test_extract_by_model import SAID, fact, keep
from test_retain import Reads

from ua_memory import Memory, config
from ua_memory.daemon.worker import WATCHED_KEY, BackgroundJobs, main
from ua_memory.errors import Malformed, ModelUnavailable, NotFound, TooLarge, Usage
from ua_memory.retain import survey as watched


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def memory(tmp_path: Path, clock: Clock) -> Memory:
    new_bank(tmp_path / "bank", clock)
    return Memory.open(tmp_path / "bank", config=config.load(tmp_path / "bank", {}), now=clock)


@pytest.fixture
def notes(tmp_path: Path, clock: Clock) -> Callable[..., Path]:
    def write(name: str, text: str) -> Path:
        path = tmp_path / "notes" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        os.utime(path, (clock().timestamp(), clock().timestamp()))
        return path

    return write


def test_a_file_is_retained_when_it_rests_and_again_when_it_was_saved(
    memory: Memory, clock: Clock, notes: Callable[..., Path]
) -> None:
    path = notes("hosting.md", SAID)
    memory.watches.add(path.parent)
    assert memory.watches.run().young == [str(path)] and not memory.watches.due(modelled=True)
    clock.later(seconds=31)
    assert memory.watches.due(modelled=False)
    (done,) = memory.watches.run().done
    assert done.item.document_id == str(path) and done.facts and done.facts[0].said_by == "import"
    assert not memory.watches.due(modelled=True) and not memory.watches.run().done
    notes("hosting.md", "Bob prefers tea over coffee.")
    clock.later(seconds=31)
    (done,) = memory.watches.run().done
    assert len(done.removed) == len(done.facts) == 1


def test_the_first_text_again_is_the_first_text_again(
    memory: Memory, clock: Clock, notes: Callable[..., Path]
) -> None:
    for text in (SAID, "Bob prefers tea over coffee.", SAID):
        memory.watches.add(notes("a.md", text).parent)
        (done,) = memory.watches.run(now=True).done
        clock.later(minutes=1)
        assert [one.text for one in done.facts] == [text]


def test_a_vanished_file_keeps_its_facts_until_it_is_let_go(
    memory: Memory, notes: Callable[..., Path]
) -> None:
    path = notes("a.md", SAID)
    notes("b.md", "Bob prefers tea over coffee.")
    memory.watches.add(path.parent)
    (file, _) = [memory.store.bank.root / one.path for one in memory.watches.run(now=True).done]
    path.unlink()
    assert memory.watches.due(modelled=False)  # once, to tell
    assert memory.watches.run().gone == [str(path)] and file.exists()
    assert not memory.watches.due(modelled=False) and memory.watches.list()[0][1].gone == (str(path),)
    caught = memory.watches.run(accept=True)
    assert caught.let_go == [str(path)] and not file.exists() and len(caught.done[0].removed) == 1
    assert "remove 1 fact with" in memory.history.log(limit=1)[0].subject


def test_what_a_person_wrote_into_it_outlives_the_file(memory: Memory, notes: Callable[..., Path]) -> None:
    path = notes("a.md", SAID)
    memory.watches.add(path)
    file = memory.store.bank.root / memory.watches.run(now=True).done[0].path
    file.write_text(file.read_text("utf-8") + "- mine, too\n", "utf-8")
    path.unlink()
    caught = memory.watches.run(accept=True)
    assert caught.missing == [str(path)] and not caught.let_go  # the path itself is not there
    memory.watches.remove(str(path))
    memory.watches.add(path.parent)
    assert "- mine, too" in file.read_text("utf-8")


def test_a_folder_that_is_not_there_makes_no_file_gone(memory: Memory, notes: Callable[..., Path]) -> None:
    folder = notes("a.md", SAID).parent
    memory.watches.add(folder)
    memory.watches.run(now=True)
    folder.rename(folder.with_name("unmounted"))
    caught = memory.watches.run(accept=True)
    assert caught.missing == [str(folder)] and not caught.gone and not caught.let_go
    folder.with_name("unmounted").rename(folder)
    assert not memory.watches.run(now=True).done


def test_the_bank_and_what_is_hidden_are_never_read(
    memory: Memory, tmp_path: Path, notes: Callable[..., Path]
) -> None:
    root = memory.store.bank.root
    for inside in (root, root / "memory", root / "docs"):
        inside.mkdir(exist_ok=True)
        with pytest.raises(Usage, match="already part of the memory bank"):
            memory.watches.add(inside)
    memory.insert("One fact.")
    for name in (".hidden/a.md", "node_modules/a.md", "pic.png", "README"):
        notes(name, SAID)
    link = tmp_path / "notes" / "link.md"
    link.symlink_to(root / "MEMORY.md")
    memory.watches.add(tmp_path)  # the bank lies in it
    assert not memory.watches.list()[0][1].ready and not memory.watches.run(now=True).done


def test_a_file_that_cannot_be_read_is_told_and_not_tried_until_it_is_saved(
    memory: Memory, notes: Callable[..., Path]
) -> None:
    path = notes("a.md", SAID)
    path.write_bytes(b"\0 no text")
    memory.watches.add(path.parent)
    assert [name for name, _ in memory.watches.run(now=True).failed] == [str(path)]
    assert not memory.watches.due(modelled=True) and memory.watches.list()[0][0].files[str(path)].error
    path.write_text(SAID)
    assert memory.watches.run(now=True).done


def test_what_a_model_fails_at_waits_in_the_queue(memory: Memory, notes: Callable[..., Path]) -> None:
    from scripted_model import offline

    memory.watches.add(notes("a.md", SAID).parent, model=Scripted())
    assert not memory.watches.run(unasked=True, now=True).done  # meant for a model, and there is none
    with pytest.raises(ModelUnavailable):
        memory.watches.run(model=Scripted(offline()), now=True)
    assert len(memory.queue.texts()) == 1 and not memory.watches.due(modelled=True)
    assert memory.queue.retry_texts(model=Reads())[0].facts


def test_too_much_is_refused_and_a_broken_list_named(
    memory: Memory, notes: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watched, "MOST_FILES", 1)
    folder = notes("a.md", SAID).parent
    notes("b.md", SAID)
    with pytest.raises(TooLarge):
        memory.watches.add(folder)
    with pytest.raises(NotFound):
        memory.watches.remove(str(folder))
    memory.store.make_state()
    memory.store.bank.local.mkdir(exist_ok=True)
    (memory.store.bank.local / "watched.json").write_text("{")
    with pytest.raises(Malformed, match="cannot be read"):
        memory.watches.list()


# -- the daemon ----------------------------------------------------------------------------------------


def test_the_daemon_takes_in_what_rests(
    memory: Memory, notes: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []
    monkeypatch.setattr(BackgroundJobs, "_start", lambda self, key: begun.append(key))
    flushing = BackgroundJobs(memory.store.bank.root, {}, lambda _: None)
    assert flushing.has_nothing_due(memory.store.bank.pending) and not flushing.watches
    path = notes("a.md", SAID)
    os.utime(path, (path.stat().st_mtime - 60, path.stat().st_mtime - 60))
    memory.watches.add(path.parent)
    assert not flushing.has_nothing_due(memory.store.bank.pending) and flushing.watches
    flushing.check(memory, 5.0)
    assert begun == [WATCHED_KEY]
    assert main([str(memory.store.bank.root), WATCHED_KEY]) == 0
    flushing.schedule["watched"] = 0.0
    flushing.check(memory, 5.0)
    assert begun == [WATCHED_KEY] and (memory.store.bank.root / "memory" / "documents").is_dir()


# -- the command ---------------------------------------------------------------------------------------


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return new_shell(tmp_path)


def test_the_command_and_its_json(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "a.md").write_text(SAID)
    assert "1 file to be read" in shell.ok("watch", "add", str(folder), UA_MEMORY_DAEMON="off").out
    agrees("watch list", shell.ok("watch", "list", "--json").json)
    assert "1 new or changed" in shell.ok("watch", "list").out
    with FakeModel({"calls": [keep(fact(SAID))]}) as fake:
        dry = shell.ok("watch", "run", "--dry-run", ANTHROPIC_API_KEY="k")
        assert "would read about" in dry.out and not fake.bodies
        assert SAID in shell.ok("watch", "run", "--now", ANTHROPIC_BASE_URL=fake.url).out
    assert shell.ok("watch", "run").out == "Nothing has changed.\n"
    (folder / "a.md").unlink()
    told = shell.ok("watch", "run", "--json").json
    assert told["gone"] == [str(folder / "a.md")] and told["retained"] == []
    agrees("watch run", told)
    assert "watch run --accept" in shell.ok("watch", "list").out
    assert "a.md is gone; 1 fact removed" in shell.ok("watch", "run", "--accept").out
    assert "Removed 1 fact with memory/documents/a-" in shell.ok("log", "-n", "1").out
    shell.write("ua-memory.toml", (shell.cwd / "ua-memory.toml").read_text() + "watch.quiet_seconds = 2\n")
    monkeypatch.setattr("ua_memory.cli.retain._ensure_daemon", lambda *_: True)
    assert "again 2 seconds after" in shell.ok("watch", "add", str(folder)).out
    assert shell.ok("watch", "remove", str(folder)).out.startswith("No longer watching")
    assert "Nothing is watched" in shell.ok("watch", "list").out
