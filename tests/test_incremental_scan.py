"""An incremental scan sees what a full scan sees, whatever was done."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from banks import Bank, git, new_bank
from hypothesis import given, settings
from hypothesis import strategies as st

from ua_memory.daemon.watch import Watch
from ua_memory.errors import UaMemoryError
from ua_memory.index.sync import Index
from ua_memory.store import scan
from ua_memory.store.scan import FileSurvey as Survey
from ua_memory.store.scan import SnapshotCache

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")
NAMES = ("memory/2026-11-20.md", "memory/2026-11-21.md", "memory/notes.md", "memory/sub/deep.md", "MEMORY.md")
NUMBERS = itertools.count(10_000)


def fresh() -> bytes:
    """One fact that nobody has said before, always as long."""
    return b"- fact %d\n" % next(NUMBERS)


def saved_in_place(bank: Bank, file: Path) -> None:
    bank.write(fresh(), str(file.relative_to(bank.root)))


def saved_by_rename(bank: Bank, file: Path) -> None:
    other = bank.root / "new.tmp"
    other.write_bytes(fresh())
    file.parent.mkdir(exist_ok=True)
    other.replace(file)


def saved_with_its_old_time(bank: Bank, file: Path) -> None:
    was = file.stat() if file.is_file() else None
    saved_in_place(bank, file)
    if was:
        os.utime(file, ns=(was.st_atime_ns, was.st_mtime_ns))


def linked(bank: Bank, file: Path) -> None:
    """A second name for a file, in the place of another, by which it is then changed."""
    second, other = bank.root / "memory/2026-11-20.md", bank.root / "other.tmp"
    if file.is_file() and not file.is_symlink():
        os.link(file, other)
        other.replace(second)
        other.unlink(missing_ok=True)  # they were one file before
        second.write_bytes(fresh())


def moved(bank: Bank, file: Path) -> None:
    if file.is_file():
        file.replace(bank.root / "memory/notes.md")


def deleted(bank: Bank, file: Path) -> None:
    file.unlink(missing_ok=True)


def folder_moved(bank: Bank, file: Path) -> None:
    sub = bank.root / "memory/sub"
    if sub.is_dir():
        sub.replace(bank.root / f"memory/sub{next(NUMBERS)}")


def a_link_in_its_place(bank: Bank, file: Path) -> None:
    file.unlink(missing_ok=True)
    file.parent.mkdir(exist_ok=True)
    file.symlink_to(bank.root / "other.txt")


def inserted(bank: Bank, file: Path) -> None:
    with suppress(UaMemoryError):  # as where a link is in the log's place
        bank.insert(f"fact {next(NUMBERS)}")


def by_another_process(bank: Bank, file: Path) -> None:
    inserted(Bank(bank.root, bank.clock), file)


def adopted(bank: Bank, file: Path) -> None:
    bank.store.adopt()


def committed_by_git(bank: Bank, file: Path) -> None:
    git(bank.root, "add", "-A")
    git(bank.root, "commit", "-qm", "by hand", "--allow-empty")


def checked_out(bank: Bank, file: Path) -> None:
    """Some revision's files in place of these, the branch left where it is; or the branch moved alone."""
    git(bank.root, "checkout", "-qf", "HEAD~1", "--", ".")


def reset(bank: Bank, file: Path) -> None:
    git(bank.root, "reset", "-q", "--soft", "HEAD~1")


def rested(bank: Bank, file: Path) -> None:
    time.sleep(0.06)  # until what was written can no longer change under the same time


def lost(bank: Bank, file: Path) -> None:
    """The daemon's look once a minute."""
    assert bank.store.snapshots
    bank.store.snapshots.invalidate()


DEEDS = (
    saved_in_place, saved_in_place, saved_by_rename, saved_by_rename, saved_with_its_old_time, linked, moved,
    deleted, folder_moved, a_link_in_its_place, inserted, inserted, by_another_process, adopted,
    committed_by_git, checked_out, reset, rested, rested, lost,
)  # fmt: skip


def told(seen: Survey) -> tuple[object, ...]:
    return seen.files, dict(seen.changed), dict(seen.held)


@contextmanager
def watched(bank: Bank) -> Iterator[Watch]:
    watch = Watch(bank.root, bank.store.bank.local, lambda: None, lambda _: None)
    watch.start()
    assert not watch.is_polling
    bank.store.snapshots = SnapshotCache(watch.change_count, watch.changed_names)
    try:
        yield watch
    finally:
        watch.stop()


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    bank = new_bank(tmp_path_factory.mktemp("carried") / "bank")
    for name in NAMES:
        bank.write(fresh(), name)
        bank.store.adopt()
    return bank.root


@contextmanager
def copied(template: Path) -> Iterator[Bank]:
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(template, f"{folder}/bank", symlinks=True)
        yield Bank(Path(folder).resolve() / "bank")


@pytest.fixture(scope="module")
def looks() -> Iterator[list[bool]]:
    """Of each scan that might be incremental, whether it was: otherwise the test below has shown nothing."""
    found: list[bool] = []
    yield found
    assert sum(found) > 10


@settings(max_examples=max(4, settings().max_examples // 50), deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(DEEDS), st.sampled_from(NAMES), st.booleans()), min_size=12, max_size=25
    )
)
def test_it_sees_what_a_full_scan_sees(
    template: Path, looks: list[bool], deeds: list[tuple[Callable[[Bank, Path], None], str, bool]]
) -> None:
    incremental = scan.incremental_scan

    def counted(*given: object) -> object:
        found = incremental(*given)  # type: ignore[arg-type]
        looks.append(found is not None)
        return found

    with copied(template) as bank, watched(bank), pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan, "incremental_scan", counted)
        with Index(bank.store) as index:
            for deed, name, searched in deeds:
                deed(bank, bank.path(name))
                seen = bank.store.survey()
                shutil.rmtree(bank.store.bank.cache, ignore_errors=True)
                assert told(seen) == told(Bank(bank.root, bank.clock).store.survey()), deed
                if not searched:  # so that the index lags behind by several looks
                    continue
                report = index.refresh(vectors=False, seen=seen)
                there = b"".join(bank.store.accepted_bytes(each.path) for each in seen.files).decode()
                assert not report.failed and report.files == sum(f.path.endswith(".md") for f in seen.files)
                found = re.findall(
                    r"fact \d+",
                    "\n".join(each.text for each in index.words.items("1 ORDER BY path, line, key")),
                )
                assert sorted(found) == sorted(re.findall(r"fact \d+", there)), deed


def test_only_what_was_touched_is_looked_at(template: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with copied(template) as bank, watched(bank), Index(bank.store) as index:
        bank.insert("one")  # so that today's log is there
        index.refresh(vectors=False)
        monkeypatch.setattr(scan, "full_scan", lambda *_: pytest.fail("every file was looked at"))
        monkeypatch.setattr("ua_memory.index.generations.Manifest.files", only_some())
        git_s, asked = bank.store.history.run, list[str]()
        monkeypatch.setattr(
            bank.store.history, "run", lambda *a, **k: (asked.append(a[0]), git_s(*a, **k))[1]
        )
        for n in range(3):
            bank.insert(f"and {n}")
            assert index.refresh(vectors=False).added == 1
        assert asked == 3 * ["fast-import", "diff-tree"]
        time.sleep(0.06)
        index.refresh(vectors=False)
        monkeypatch.undo()
        # To a process that hears nothing the files and the index are as if all had been looked at.
        alone = Bank(bank.root, bank.clock).store.survey()
        assert alone.proof and alone.proof == bank.store.survey().proof
        assert index.unchanged(alone)


def only_some() -> Callable[..., object]:
    from ua_memory.index.generations import Manifest

    every = Manifest.files

    def files(manifest: Manifest, paths: object = None) -> object:
        assert paths is not None, "all of the manifest was read"
        return every(manifest, paths)  # type: ignore[arg-type]

    return files


def test_too_much_at_once_is_looked_at_whole(template: Path) -> None:
    with copied(template) as bank, watched(bank) as watch:
        bank.store.survey()
        before = watch.change_count()
        assert before is not None
        for n in range(300):  # in turn: the kernel makes one of two like events in a row
            bank.write(fresh(), NAMES[n % 2])
        assert watch.change_count() and watch.changed_names(before) is None, "more marks than are remembered"
        now = watch.change_count()
        assert now and watch.changed_names(now) == frozenset()
        bank.write(fresh(), NAMES[3])
        assert watch.change_count() and watch.changed_names(now) == {NAMES[3].encode()}
        (bank.root / "memory/new").mkdir()
        assert watch.change_count() and watch.changed_names(now) is None, (
            "a folder tells nothing of what is in it"
        )
