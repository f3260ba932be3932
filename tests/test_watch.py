"""The watch over a bank's files: what it hears, what it vouches for, and what it does when it is deaf."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from banks import Bank, git, new_bank
from daemons import until

from ua_memory.daemon import watch as watching
from ua_memory.daemon.watch import ObserverEvents, Watch
from ua_memory.store.scan import SnapshotCache

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")
DAY = "memory/2026-11-20.md"


class Watched:
    """A bank under a live watch, with what was said and how often it was heard."""

    def __init__(self, bank: Bank) -> None:
        self.bank, self.heard, self.said = bank, 0, list[str]()
        self.watch = Watch(bank.root, bank.store.bank.local, self._hear, self.said.append)
        self.watch.start()
        self.spare()

    def _hear(self) -> None:
        self.heard += 1

    def spare(self) -> None:
        """Give the store a snapshot cache."""
        self.bank.store.snapshots = SnapshotCache(self.watch.change_count)

    def path(self, path: str = DAY) -> Path:
        return self.bank.root / path

    def changes(self, act: Callable[[], object]) -> int:
        """How many marks an action makes. All have come when it has ended: that is what marks are."""
        before = self.watch.change_count()
        act()
        after = self.watch.change_count()
        assert before is not None and after is not None, self.watch.why
        return after - before


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    bank = new_bank(tmp_path / "bank")
    bank.write("- one fact\n", DAY)
    found = Watched(bank)
    yield found
    found.watch.stop()


def run(*argv: str, cwd: Path) -> None:
    subprocess.run(argv, cwd=cwd, check=True, capture_output=True, timeout=60)


# -- what it hears ---------------------------------------------------------------------------------------


def test_writes_moves_and_deletes(watched: Watched) -> None:
    file = watched.path()
    assert watched.changes(lambda: file.write_text("- two\n"))
    assert watched.changes(lambda: os.utime(file, (1, 1)))
    assert watched.changes(lambda: file.rename(file.with_name("other.md")))
    assert watched.changes(lambda: file.with_name("other.md").unlink())
    assert watched.changes(lambda: watched.path("MEMORY.md").write_text("## Me\n"))
    assert watched.changes(lambda: watched.path("ua-memory.toml").write_bytes(b""))
    assert watched.heard and watched.watch.status()["mode"] == "events"


def test_what_is_no_memory_is_not_heard(watched: Watched) -> None:
    root = watched.bank.root
    (root / "node_modules").mkdir()

    def others() -> None:
        (root / "node_modules" / "x.md").write_text("x")
        (root / "README.md").write_text("x")
        (root / "memory" / "picture.png").write_bytes(b"x")
        (root / "memory" / ".2026-11-20.md.swp").write_bytes(b"x")
        git(root, "status")
        watched.path().read_text()

    assert watched.changes(others) == 0


def sed(file: Path) -> None:
    run("sed", "-i", "s/one fact/a fact by sed/", str(file), cwd=file.parent)


def vim(file: Path) -> None:
    run(
        "vim",
        "-Nu",
        "NONE",
        "-es",
        "-c",
        "%s/one fact/a fact by vim/",
        "-c",
        "wq",
        file.name,
        cwd=file.parent,
    )


def by_rename(file: Path) -> None:
    """VS Code's and Obsidian's atomic save."""
    fresh = file.with_name("2026-11-20.md.tmp-1")
    fresh.write_text("- a fact by rename\n")
    fresh.replace(file)


def in_place(file: Path) -> None:
    with file.open("r+") as opened:
        opened.write("- a fact in place\n")


@pytest.mark.parametrize("edit", [sed, vim, by_rename, in_place])
def test_editors(watched: Watched, edit: Callable[[Path], None]) -> None:
    if edit in (sed, vim) and not shutil.which(edit.__name__):
        pytest.skip("not installed")
    assert watched.bank.store.survey().changed.keys() == {DAY}
    watched.bank.store.adopt()
    until(lambda: not watched.bank.store.survey().racy, 5)
    assert not watched.bank.store.survey().changed
    edit(watched.path())
    assert watched.bank.store.survey().changed.keys() == {DAY}, "seen by the next look, not by a later one"


@pytest.mark.slow
def test_a_checkout_of_a_thousand_files(watched: Watched) -> None:
    root = watched.bank.root
    git(root, "add", "-A")
    git(root, "commit", "-qm", "before")
    git(root, "switch", "-qc", "more")
    for n in range(1000):
        watched.bank.write(f"- fact {n}\n", f"memory/{n % 7}/n{n}.md")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "a thousand")
    names = lambda: {one.path for one in watched.bank.store.survey().files}  # noqa: E731
    for branch, many in (("main", 0), ("more", 1000), ("main", 0)):
        git(root, "switch", "-q", branch)
        assert sum("/n" in name for name in names()) == many
    assert watched.watch.change_count() is not None


def test_folders_come_go_and_move(watched: Watched) -> None:
    logs = watched.path("memory")
    deep = logs / "a" / "b" / "c"
    assert watched.changes(lambda: deep.mkdir(parents=True))
    assert watched.changes(lambda: (deep / "x.md").write_text("- x\n"))
    assert watched.changes(lambda: (logs / "a").rename(logs / "z"))
    moved = logs / "z" / "b" / "c" / "x.md"
    assert watched.changes(lambda: moved.write_text("- y\n"))
    away = watched.bank.root.parent / "away"
    assert watched.changes(lambda: (logs / "z").rename(away))
    assert watched.changes(lambda: (away / "b" / "c" / "x.md").write_text("- z\n")) == 0
    assert watched.changes(lambda: away.rename(logs / "back"))
    assert watched.changes(lambda: (logs / "back" / "b" / "c" / "x.md").write_text("- w\n"))
    assert watched.changes(lambda: shutil.rmtree(logs))
    assert watched.changes(lambda: watched.bank.write("- again\n", "memory/new/x.md"))
    assert watched.changes(lambda: watched.bank.write("- again and again\n", "memory/new/x.md"))


def test_symbolic_links_are_not_followed(watched: Watched) -> None:
    elsewhere = watched.bank.root.parent / "elsewhere"
    elsewhere.mkdir()
    (watched.path("memory") / "link").symlink_to(elsewhere)
    assert watched.changes(lambda: (elsewhere / "x.md").write_text("- x\n")) == 0
    shutil.rmtree(watched.path("memory"))
    watched.path("memory").symlink_to(elsewhere)
    assert watched.changes(lambda: (elsewhere / "y.md").write_text("- y\n")) == 0


def test_case_changes(watched: Watched) -> None:
    file = watched.path("memory/Notes.md")
    file.write_text("- x\n")
    assert watched.changes(lambda: file.rename(file.with_name("notes.md")))
    assert watched.changes(lambda: watched.path("MEMORY.md").rename(watched.path("memory.md")))


# -- what it vouches for -----------------------------------------------------------------------------------


def test_files_are_not_looked_at_again(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    store = watched.bank.store
    store.adopt()
    until(lambda: not store.survey().racy, 5)
    known = store.survey()
    looked: list[int] = []
    monkeypatch.setattr("ua_memory.discovery.stamp", lambda *_: looked.append(1) or "another")
    assert store.survey().proof == known.proof and not looked
    watched.path("MEMORY.md").write_text("## New\n")
    store.survey()
    assert looked


def test_a_commit_by_somebody_else_is_seen(watched: Watched) -> None:
    assert watched.bank.store.survey().changed
    git(watched.bank.root, "add", "-A")
    git(watched.bank.root, "commit", "-qm", "mine")
    assert not watched.bank.store.survey().changed


def test_no_write_is_ever_missed_by_the_look_after_it(watched: Watched) -> None:
    """What a caller does: write, then ask at once. Others write, rename and make folders all the while."""
    over, store, logs = threading.Event(), watched.bank.store, watched.path("memory")

    def disturb() -> None:
        n = 0
        while not over.is_set():
            n += 1
            folder = logs / f"other{n % 5}"
            folder.mkdir(exist_ok=True)
            (folder / "x.md").write_text(f"- {n}\n")
            if n % 3 == 0:
                shutil.rmtree(folder)
            time.sleep(0.001)

    other = threading.Thread(target=disturb)
    other.start()
    try:
        for n in range(150):
            folder = logs / f"mine{n % 4}"
            folder.mkdir(exist_ok=True)
            file = folder / "mine.md"
            file.write_text("- " + "x" * n + "\n")
            sizes = {one.path: one.size for one in store.survey().files}
            assert sizes.get(f"memory/{folder.name}/mine.md") == n + 3
            if n % 4 == 3:
                folder.rename(logs / f"moved{n}")
                assert f"memory/moved{n}/mine.md" in store.survey().changed
    finally:
        over.set()
        other.join()


def test_another_folder_in_its_place_is_not_vouched_for(watched: Watched) -> None:
    root = watched.bank.root
    root.rename(root.with_name("away"))
    shutil.copytree(root.with_name("away"), root)
    assert watched.watch.change_count() is None
    assert not watched.watch.heartbeat() and watched.watch.is_polling
    watched.watch.start()
    assert watched.changes(lambda: watched.path().write_text("- x\n"))


def test_lost_events_are_no_loss(watched: Watched) -> None:
    native = watched.watch._source
    native.on_event = lambda event: None  # type: ignore[union-attr]
    watched.path().write_text("- three\n")
    assert watched.watch.change_count() is None
    assert DAY in watched.bank.store.survey().changed
    state = watched.watch.status()
    assert (state["mode"], state["why"]) == ("polling", "a test event did not arrive")
    assert "polls the files" in watched.said[-1]


def test_an_overflow_is_a_change(watched: Watched) -> None:
    native = watched.watch._source
    assert watched.changes(native.on_queue_overflow)  # type: ignore[union-attr]
    assert watched.changes(lambda: watched.path().write_text("- four\n"))


# -- without events ----------------------------------------------------------------------------------------


def test_where_watches_run_out_files_are_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "POLL_INTERVAL", 0.1)
    from watchdog.observers import inotify_c

    real, added = inotify_c.inotify_add_watch, 0

    def few(*given: object) -> object:
        nonlocal added
        added += 1
        if added > 3:
            inotify_c.ctypes.set_errno(errno.ENOSPC)
            return -1
        return real(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(inotify_c, "inotify_add_watch", few)
    bank = new_bank(tmp_path / "bank")
    bank.write("- x\n", "memory/deep/x.md")
    found = Watched(bank)
    assert found.watch.is_polling and found.watch.change_count() is None
    assert found.watch.status() == {"mode": "polling", "why": "inotify watch limit reached"}
    until(found.watch.check, 5)
    found.watch.record_scan_time(0.001)
    assert found.watch.next_due() <= time.monotonic() + 0.5
    bank.write("- y\n", "memory/deep/x.md")
    assert "memory/deep/x.md" in bank.store.survey().changed
    monkeypatch.setattr(inotify_c, "inotify_add_watch", real)
    monkeypatch.setattr(found.watch, "_next_heartbeat", 0.0)
    assert found.watch.check() and not found.watch.is_polling, "it is tried again"
    found.watch.stop()


def test_no_instance_left(tmp_path: Path) -> None:
    def none(*_: object) -> ObserverEvents:
        raise OSError(errno.EMFILE, "inotify instance limit reached")

    said: list[str] = []
    found = Watch(tmp_path, tmp_path / "local", lambda: None, said.append, none)
    found.start()
    found.start()
    assert found.is_polling and len(said) == 1 and "instance limit" in said[0]


def test_a_shared_file_system_is_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ua_memory.paths.ORDERED", frozenset())
    found = Watched(new_bank(tmp_path / "bank"))
    assert found.watch.is_polling and "may cause no events" in found.watch.why


def test_events_of_another_system_tell_only_when_to_look(tmp_path: Path) -> None:
    bank = new_bank(tmp_path / "bank")
    (bank.root / "memory").rmdir()
    heard = threading.Event()
    found = Watch(bank.root, bank.store.bank.local, heard.set, lambda _: None, ObserverEvents)
    found.start()
    assert found.status()["mode"] == "events" and found.change_count() is None
    bank.write("- x\n", DAY)  # memory/ comes only now
    until(lambda: not found.heartbeat(), 5)
    assert heard.is_set() and "has appeared" in found.why
    found.start()
    heard.clear()
    bank.write("- y\n", DAY)
    assert heard.wait(5)
    found.stop()
