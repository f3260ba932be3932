"""Secrets that came into the trail: found in every revision, branch and stash, told once, never shown."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from banks import DAY, Bank, git, new_bank
from secret_plants import pem
from terminal import Shell, new_shell

from ua_memory.upkeep import audit

NOTES = "memory/notes.md"
TOKEN = "ghp_" + "0123456789abcdefghijABCDEFGHIJ012345"
OTHER = TOKEN[:-1] + "9"


@pytest.fixture
def there(tmp_path: Path) -> Bank:
    return new_bank(tmp_path / "bank")


def past(there: Bank) -> list[tuple[str, int, str]]:
    return [(path, line, kind) for _, path, line, kind in audit.find_past_secrets(there.store)]


def test_what_was_taken_out_of_a_file_still_stands_in_its_history(there: Bank) -> None:
    there.write(f"# Day\n\n- mine {TOKEN}\n- tea\n")
    there.store.adopt()
    came = there.store.history.head()
    there.edit(TOKEN, "gone")
    there.write(f"{pem(Random(1))}\n", 'memory/é ü"q.md')
    there.store.adopt()
    there.insert("nothing of it")
    assert audit.find_secrets(there.store) == [('memory/é ü"q.md', 1, "private-key")]
    found = audit.find_past_secrets(there.store)
    assert found == [(came, DAY, 3, "github-token"), (found[1][0], 'memory/é ü"q.md', 1, "private-key")]


def test_each_is_told_where_it_came_in_first(there: Bank) -> None:
    for text in (f"a {TOKEN}\n", f"b\na {TOKEN}\n", f"b\na {TOKEN} and {OTHER}\n"):
        there.write(text, NOTES)
        there.store.adopt()
    assert past(there) == [(NOTES, 1, "github-token"), (NOTES, 2, "github-token")]


def test_other_branches_stashes_and_messages_are_looked_through(there: Bank) -> None:
    there.insert("one")
    git(there.root, "switch", "--quiet", "-c", "side")
    there.write(f"++ b/x {TOKEN}\ncommit {'0' * 40}\n", NOTES)
    git(there.root, "add", "-A")
    git(there.root, "commit", "--quiet", "-m", f"subject\n\ndiff --git a/x b/x\n@@ -1 +1 @@\n+{OTHER}\n")
    there.write(f"stashed {TOKEN[:-1]}8\n", NOTES)
    git(there.root, "stash", "--quiet")
    git(there.root, "switch", "--quiet", "main")
    assert sorted(set(past(there))) == [
        ("", 5, "github-token"), (NOTES, 1, "github-token"),
    ]  # fmt: skip
    assert len(past(there)) == 3


def test_a_bank_without_a_trail_has_no_past(there: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(there.store.history), "exists", False)
    assert past(there) == []


def test_scan_history_prints_revision_and_place_and_never_the_secret(tmp_path: Path) -> None:
    shell: Shell = new_shell(tmp_path)
    assert shell.ok("scan", "--history").out.startswith("No secrets")
    shell.write(NOTES, f"- key {TOKEN}\n")
    shell.ok("init", ".")
    shell.write(NOTES, "- key gone\n")
    assert shell("scan").code == 0
    found = shell("scan", "--history")
    assert found.code == 12 and TOKEN not in found.out + found.err
    assert found.out.partition(":")[2].startswith(f"{NOTES}:1: github-token")
    assert "1 secret in the history" in found.err
