"""A warm daemon goes by the settings as they are at each command: the bank's file, the user's, the caller's
variables, and what is trusted."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from banks import new_bank
from daemons import Place
from index_bank import write
from test_config import GOOD

from ua_memory import config
from ua_memory.daemon.worker import WarmBank

pytestmark = pytest.mark.xdist_group("warm_settings")  # one daemon answers all

CHANGED = {**GOOD, "embedding": ('index.embedding = "onnx"', "onnx"), "trail": ('trail = "beside"', "beside")}
"""Where a good value is the default, another one."""


@pytest.mark.few(30)
@pytest.mark.parametrize("of_user", [False, True])
@pytest.mark.parametrize("name", CHANGED)
def test_every_setting_counts_with_the_next_command(tmp_path: Path, name: str, of_user: bool) -> None:
    """An index that was kept went on with the settings that it was opened under: a folder that was taken out
    of extraPaths was served until the daemon ended."""
    text, value = CHANGED[name]
    if of_user and name in ("id", "trail"):
        return
    if of_user and name == "extra_paths":
        text, value = text.replace("../api/docs", "/docs"), (f"{tmp_path}/notes", "/docs")
    elif name == "extra_paths":
        value = (f"{tmp_path}/notes", "../api/docs")
    bank = new_bank(tmp_path / "bank")
    env = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "mine")}
    before = config.load(bank.root, env)
    warm = WarmBank(bank.root, before, bank.store.bank.pending, env)
    with warm.open_for_caller(bank.root, before, None, env=env) as memory:
        memory.refresh(vectors=False)
        assert getattr(memory.config, name) != value
    says(bank.root, tmp_path, text, of_user)
    config.trust(bank.root, env, config.load(bank.root, env))
    now = config.load(bank.root, env)
    with warm.open_for_caller(bank.root, now, None, env=env) as memory:
        every = (memory, memory.store, memory.index.store, memory.index.files._store)
        assert [getattr(each.config, name) for each in every] == [value] * 4
        assert memory.index.embedding == memory.config.embedding
    with warm.open_own() as memory:
        found = getattr(memory.config, name)
        assert found == value if name != "lock_seconds" else found <= value
    assert getattr(warm.config, name) == value


def says(root: Path, home: Path, text: str, of_user: bool) -> None:
    if of_user:
        write(home / "mine" / "ua-memory" / "config.toml", f"{text}\n")
        return
    key = text.partition("=")[0]
    rows = [row for row in (root / "ua-memory.toml").read_text().splitlines() if not row.startswith(key)]
    write(root / "ua-memory.toml", "\n".join([text, *rows]) + "\n")


# -- what can be seen of it, by a daemon ---------------------------------------------------------------------


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    bank = new_bank(tmp_path / "bank")
    for text in ("Alice moved the harbour map to Oslo", "Bob moved the harbour map to Rome"):
        bank.insert(text)
    bank.write("# Memory\n\n## Me\n\nShort answers, and never before ten in the morning.\n", "MEMORY.md")
    write(Path(os.environ["HOME"]) / "notes" / "map.md", "- The old harbour map hangs in the hall\n")
    found = Place(bank.root)
    assert found.run("daemon", "start").code == 0
    yield found
    found.kill()


def asked(place: Place, *argv: str, given: object = None, **env: str) -> str:
    """What the daemon answers to a command: what it writes to both streams."""
    passed = {name: os.environ[name] for name in ("HOME", "XDG_CONFIG_HOME")}
    stdin = None if given is None else json.dumps(given)
    done = place.command(*argv, env={**passed, **env}, stdin=stdin)["result"]
    return "".join(text for _, text in done["output"])


SEARCH = ("search", "harbour map", "--json")
WRITES: Any = {"tool": "archival_memory_insert", "arguments": {"content": "The map is blue"}}
SEEN: list[tuple[str, tuple[str, ...], Any, str, str]] = [
    ('extraPaths = ["~/notes"]', SEARCH, None, "hangs in the hall", ""),
    ("search.limit = 1", SEARCH, None, "", "Oslo"),
    ("search.min_score = 1", SEARCH, None, "", "Alice"),
    ('redaction.patterns = { town = "Oslo" }', SEARCH, None, "[redacted: town]", "Oslo"),
    ("core.tokens = 3", ("status",), None, "over", ""),
    ("recall.max_tokens = 40", ("recall", "harbour map"), None, "", "Rome"),
    ("mcp.read_only = true", ("mcp", "--call"), WRITES, "disabled in the user's settings", ""),
    ('mcp.tools = ["recall"]', ("mcp", "--call"), WRITES, "disabled in the user's settings", ""),
    ("enabled = false", ("mcp", "--call"), WRITES, "Memory is off", ""),
]
"""A setting, what is asked, what is seen only with it, and what only without it."""


def test_what_is_changed_is_seen_and_seen_no_more(place: Place) -> None:
    file = place.root / "ua-memory.toml"
    before, pid = file.read_text(), place.up()["pid"]
    for text, argv, given, only_with, only_without in SEEN:
        for on in (False, True, False):
            write(file, f"{text}\n{before}" if on else before)
            asked_for = ("trust", "--yes")
            assert place.run(*asked_for).code == 0
            said = asked(place, *argv, given=given)
            assert not only_with or (only_with in said) is on, (text, on, said)
            assert not only_without or (only_without in said) is not on, (text, on, said)
    assert place.up()["pid"] == pid


def test_trust_the_users_file_and_variables_count_at_once(place: Place) -> None:
    file, mine = place.root / "ua-memory.toml", Path(os.environ["XDG_CONFIG_HOME"]) / "ua-memory"
    write(file, f'extraPaths = ["~/notes"]\n{file.read_text()}')
    assert "hangs" not in asked(place, *SEARCH)
    assert "not trusted in ua-memory.toml" in asked(place, *SEARCH)
    assert place.run("trust", "--yes").code == 0
    assert "hangs" in asked(place, *SEARCH) and "not trusted" not in asked(place, *SEARCH)
    assert place.run("trust", "--revoke").code == 0
    assert "hangs" not in asked(place, *SEARCH)
    assert place.run("config", "set", "extraPaths", "~/notes", "--user").code == 0
    assert "hangs" in asked(place, *SEARCH)
    (mine / "config.toml").unlink()
    assert "hangs" not in asked(place, *SEARCH)
    assert "Memory is off" in asked(place, "mcp", "--call", given=WRITES, UA_MEMORY_ENABLED="0")
    assert "Memory is off" not in asked(place, "mcp", "--call", given=WRITES)
