"""Links in a vault in which other notes have the names of the bank's files: they carry the path."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_model import FakeModel
from terminal import EVERY, Shell, new_shell
from test_cli_json import EXAMPLES
from test_flush import transcript
from test_reflect import LOG, OBSERVED, SAID, says

from ua_memory.paths import LinkNames

ASKED = ("reflect", "why did Alice move the API from Heroku?")
MINE = "---\nid: infra\nname: x\nsource_query: API on Fly\n---\n\nThe API needs two regions.\n"
WRITES = (
    "append_paragraph",
    {"section": "S0", "sentences": [{"text": "The API runs on Fly.io.", "evidence": [1]}]},
)
OTHERS = ("2026-11-20", "2026-11-21", "Alice", "opinions", "infra")


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = new_shell(tmp_path)
    shell.write("memory/2026-11-20.md", LOG)
    shell.write("memory/observations/Alice.md", OBSERVED)
    return shell


def linked(value: Any) -> Iterator[dict[str, Any]]:
    """The objects with a link, all the way down."""
    if isinstance(value, dict):
        yield from [value] if "link" in value else []
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from linked(each)


def opinions(shell: Shell) -> Iterator[tuple[str, Any]]:
    evidence = shell.ok(*ASKED, "--json").json
    yield "reflect", evidence
    a = next(one["number"] for one in evidence["evidence"] if one.get("id") == "aaaaaaaaaa")
    formed = {"change": "form", "text": "Fly.io may double its price, too.", "kind": "risk", "because": [a]}
    with FakeModel(says(SAID.format(a=a), opinions=[formed])) as fake:
        key = {"ANTHROPIC_BASE_URL": fake.url, "ANTHROPIC_API_KEY": "sk-ant-test"}
        yield "reflect", shell.ok(*ASKED, "--keep", "--json", **key).json
    listed = shell.ok("opinions", "list", "--json").json
    yield "opinions list", listed
    block = "^" + listed["opinions"][0]["id"]
    yield "opinions revise", shell.ok("opinions", "revise", block, "--confidence", "0.3", "--json").json


def conversations(shell: Shell) -> Iterator[tuple[str, Any]]:
    yield "flush", shell.ok("flush", "--force", "--json", stdin=transcript().getvalue()).json
    said = shell.home / ".claude/projects/x/a.jsonl"
    said.parent.mkdir(parents=True)
    said.write_bytes(transcript(name="a" * 8).getvalue())
    yield "import sessions", shell.ok("import", "sessions", "--json").json
    yield "retain", shell.ok("retain", "Bob prefers tea over coffee since 2019.", "--json").json


def pages(shell: Shell) -> Iterator[tuple[str, Any]]:
    shell.write("memory/pages/infra.md", MINE)
    with FakeModel({"calls": [WRITES]}, {"text": "done"}) as fake:
        printed = shell.ok("pages", "refresh", "--all", "--json", ANTHROPIC_BASE_URL=fake.url).json
    yield "pages refresh", printed


def printed(shell: Shell) -> Iterator[tuple[str, Any]]:
    """The documented name of each command that prints links, and what it prints."""
    yield "search", shell.ok("search", "Heroku", "--json").json
    why_not = ("search", "Heroku", "--why-not", "memory/2026-11-20.md:3", "--json")
    yield "search --why-not", shell.ok(*why_not).json
    yield "list", shell.ok("list", "--json").json
    yield "recall", shell.ok("recall", "Heroku", "--json").json
    noted = shell.ok("insert", "Alice pays the invoices of Fly.io.", "--entity", "Alice", "--json").json
    yield "insert", noted
    yield "today", shell.ok("today", "--json").json
    yield "get", shell.ok("get", "^aaaaaaaaaa", "--json").json
    yield "why", shell.ok("why", "^eeeeeeeeee", "--json").json
    yield "why --up", shell.ok("why", "--up", "^aaaaaaaaaa", "--json").json
    yield "entities show", shell.ok("entities", "show", "Alice", "--json").json
    yield "observations", shell.ok("observations", "list", "--json").json
    yield from opinions(shell)
    yield from conversations(shell)
    for day, much in (("2026-11-10", ""), ("2026-11-12", ", always")):
        shell.write(f"memory/{day}.md", f"- Carol chooses providers by their price{much}. ^carol{day[-2:]}\n")
    yield "consolidate dry", shell.ok("consolidate", "--dry-run", "--json", ANTHROPIC_API_KEY="k").json
    yield "consolidate", shell.ok("consolidate", "--json").json
    yield from pages(shell)
    yield "forget --dry-run", shell.ok("forget", f"^{noted['id']}", "--dry-run", "--json").json
    yield "forget", shell.ok("forget", f"^{noted['id']}", "--json").json
    yield "retire", shell.ok("retire", "^cccccccccc", "--why", "they are gone", "--json").json
    typed = replace(shell, terminals=EVERY)
    yield "vouch", typed.ok("vouch", "^bbbbbbbbbb", "--json").json


@pytest.mark.slow
def test_every_command_prints_the_path_where_another_note_has_the_name(shell: Shell) -> None:
    for name in (*OTHERS, "2026-11-10", "2026-11-12", "Carol"):
        shell.write(f"Daily/{name}.md", "# another\n")
    seen = set[str]()
    for name, value in printed(shell):
        found = [*linked(value)]
        for one in found:
            assert one["link"] == f"[[{one['path'].removesuffix('.md')}#^{one['id']}]]", (name, one)
            assert one["path"].startswith("memory/") and not one["link"].startswith("[[Daily")
        if found:
            seen.add(name)
    assert seen == {name for name, example in EXAMPLES.items() if any(linked(example))}


def test_a_link_is_bare_again_once_the_other_note_is_gone(shell: Shell) -> None:
    def link() -> str:
        return str(shell.ok("get", "^aaaaaaaaaa", "--json").json["link"])

    assert link() == "[[2026-11-20#^aaaaaaaaaa]]"
    shell.write("deep/er/2026-11-20.MD", "no note of Obsidian's")
    assert link() == "[[2026-11-20#^aaaaaaaaaa]]"
    shell.write("deep/er/2026-11-20.md", "# another\n")
    assert link() == "[[memory/2026-11-20#^aaaaaaaaaa]]"
    (shell.cwd / "deep/er/2026-11-20.md").unlink()
    assert link() == "[[2026-11-20#^aaaaaaaaaa]]"
    assert shell.ok("get", "[[memory/2026-11-20#^aaaaaaaaaa]]").out == shell.ok("get", "^aaaaaaaaaa").out


def test_folders_that_did_not_change_are_not_listed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("memory", "Daily/old", "node_modules", ".trash"):
        (tmp_path / folder).mkdir(parents=True)
    for folder in ("memory", "node_modules", ".trash"):
        (tmp_path / folder / "a.md").touch()
    long_ago = time.time() - 60
    for folder in (tmp_path, *tmp_path.rglob("*/")):
        os.utime(folder, (long_ago, long_ago))
    names, listed, real = LinkNames(tmp_path), list[str](), os.scandir

    def scandir(path: str) -> Any:
        listed.append(Path(path).name)
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert names("memory/a.md") == "a" and sorted(listed) == sorted([tmp_path.name, "memory", "Daily", "old"])
    (tmp_path / "Daily/old/A.md").touch()
    listed.clear()
    assert names("memory/a.md") == "a" and not listed, "nobody asked to look again"
    assert names.renew()("memory/a.md") == "memory/a" and listed == ["old"]
    (tmp_path / "Daily/old/A.md").unlink()
    assert names.renew()("memory/a.md") == "a"
