"""What a hook knows of a bank without reading its settings: the same as they say, or nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from banks import new_bank

from ua_memory import config
from ua_memory.daemon.connect import named_bank
from ua_memory.discovery import SETTINGS
from ua_memory.hooks import context as known
from ua_memory.paths import Bank


@pytest.fixture
def bank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bank:
    monkeypatch.setattr(known, "RACY_NS", 0)
    found = new_bank(tmp_path / "bank").store.bank
    found.cache.mkdir(parents=True, exist_ok=True)
    known.cache_settings(found, config.load(found.root, {}), {})
    return found


def read(bank: Bank, named: str = "", env: dict[str, str] | None = None, cwd: Path | None = None) -> Any:
    folder = str(cwd or bank.root)
    path = named_bank(["--bank", named], folder, "/nowhere") if named else ""
    return known.cached_settings(path, folder, "/nowhere", env or {})


def test_it_is_what_the_settings_say(bank: Bank) -> None:
    folders, said = read(bank)
    for name in ("root", "state", "git_dir", "pending", "index", "cache", "local"):
        assert getattr(folders, name) == str(getattr(bank, name)), name
    settings = config.load(bank.root, {})
    assert folders.own == bank.own
    assert all(getattr(said, one.name) == getattr(settings, one.name) for one in config.settings())
    below = bank.root / "memory" / "x"
    below.mkdir(parents=True)
    assert read(bank, cwd=below) and read(bank, named="bank", cwd=bank.root.parent)


def appended(bank: Bank) -> None:
    with (bank.root / SETTINGS).open("a") as file:
        file.write("\n[search]\nlimit = 9\n")


def nearer(bank: Bank) -> None:
    (bank.root / "sub" / "memory").mkdir(parents=True)
    (bank.root / "sub" / "memory" / "2026-11-21.md").touch()


def moved(bank: Bank) -> None:
    (bank.root / ".git").rename(bank.root / "elsewhere")


def damaged(bank: Bank) -> None:
    (bank.cache / known.SETTINGS_CACHE).write_text('{"proof": [], "settings"')


@pytest.mark.parametrize("change", [appended, nearer, moved, damaged])
def test_what_may_have_changed_is_not_known(bank: Bank, change: Callable[[Bank], None]) -> None:
    (bank.root / "sub").mkdir(exist_ok=True)
    assert read(bank, cwd=bank.root / "sub")
    change(bank)
    assert read(bank, cwd=bank.root / "sub") is None


def test_a_variable_that_settings_heed_counts(bank: Bank) -> None:
    assert read(bank, env={"UA_TRUNCATION_THRESHOLD": ""})
    assert read(bank, env={"UA_TRUNCATION_THRESHOLD": "9"}) is None
    known.cache_settings(bank, config.load(bank.root, {"UA_MEMORY_ENABLED": "0"}), {"UA_MEMORY_ENABLED": "0"})
    assert read(bank) is None and not read(bank, env={"UA_MEMORY_ENABLED": "0"})[1].enabled


def test_the_users_files_count(bank: Bank, tmp_path: Path) -> None:
    env = {"XDG_CONFIG_HOME": str(tmp_path / "mine")}
    mine = tmp_path / "mine" / "ua-memory"
    mine.mkdir(parents=True)
    for name in ("config.toml", "trusted.json"):
        known.cache_settings(bank, config.load(bank.root, env), env)
        assert read(bank, env=env) and read(bank) is None
        (mine / name).touch()
        assert read(bank, env=env) is None


@pytest.mark.parametrize("text", ['strip = ["x"]\n', 'search.limit = "many"\n'])
def test_settings_of_which_there_is_something_to_tell_are_read_each_time(bank: Bank, text: str) -> None:
    file = bank.root / SETTINGS
    file.write_text(text + file.read_text())
    known.cache_settings(bank, config.load(bank.root, {}, lenient=True), {})
    assert read(bank) is None


def test_a_file_just_written_may_be_written_again(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known, "RACY_NS", 3600 * 10**9)
    (bank.cache / known.SETTINGS_CACHE).unlink()
    known.cache_settings(bank, config.load(bank.root, {}), {})
    assert read(bank) is None


def test_no_folder_is_made_for_it(tmp_path: Path) -> None:
    root = tmp_path / "fresh"
    root.mkdir()
    known.cache_settings(Bank(root, False, root / "state", root / "state" / "trail"), config.Config(), {})
    assert not any(root.iterdir())
    assert known.cached_settings(str(root), "/", "/nowhere", {}) is None
