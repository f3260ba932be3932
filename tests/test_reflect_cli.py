"""`reflect`, `opinions` and `directives` as people and scripts meet them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from fake_model import FakeModel
from terminal import EVERY, Done, Shell, new_shell
from test_cli_json import agrees
from test_reflect import LOG, OBSERVED, SAID, says

ASKED = ("reflect", "why did Alice move the API from Heroku?")


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = new_shell(tmp_path)
    shell.write("memory/2026-11-20.md", LOG)
    shell.write("memory/observations/Alice.md", OBSERVED)
    return shell


def asking(shell: Shell, fake: FakeModel, *argv: str, **more: str) -> Done:
    return shell(*argv, ANTHROPIC_BASE_URL=fake.url, ANTHROPIC_API_KEY="sk-ant-test", **more)


def number(shell: Shell, block: str = "aaaaaaaaaa") -> int:
    found = shell.ok(*ASKED, "--json").json["evidence"]
    return next(int(one["number"]) for one in found if one.get("id") == block)


def test_an_answer_reads_well_at_eighty_columns(shell: Shell) -> None:
    a, e = number(shell), number(shell, "eeeeeeeeee")
    shell.terminals = EVERY
    text = f"{SAID.format(a=a)} She chooses the host of the API by price [{a}, {e}]."
    with FakeModel(says(text)) as fake:
        done = asking(shell, fake, *ASKED, "--explain")
    plain = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", done.out)
    assert max(map(len, plain.splitlines())) <= 80 and done.code == 0, done.err
    assert plain.startswith("Alice moved the API from Heroku because the price doubled to $1,400 [1].")
    assert "Confidence: medium (0.7), 1 proof\n" in plain
    assert "[1]  memory/2026-11-20.md#L3-L4  2026-11-20, person  ^aaaaaaaaaa\n     Alice moved" in plain
    assert "memory/observations/Alice.md#L1-L6  observation, fresh, new" in plain
    assert " 3. search_facts  the question  " in plain and "tokens in" in plain


def test_without_a_key_it_says_so(shell: Shell) -> None:
    done = shell.ok(*ASKED)
    assert done.out.startswith("Observations\n[1]") and "\nFacts and notes\n" in done.out
    assert "without a model this is the evidence" in done.err
    assert shell("reflect", " ").code == 2 and shell("reflect", "x", "--budget", "huge").code == 2
    assert shell.ok("reflect", "zzyx quux").out == "I don't know: memory has nothing on this.\n"


def test_json(shell: Shell) -> None:
    a = number(shell)
    schema = {"type": "object", "properties": {"host": {"type": "string"}}}
    shell.write("host.json", json.dumps(schema))
    bad = says(SAID.format(a=99), data={"host": "Fly.io"})
    with FakeModel(bad, says(SAID.format(a=a), data={"host": "Fly.io"})) as fake:
        printed = asking(shell, fake, *ASKED, "--json", "--explain", "--schema", "host.json").json
    assert printed.pop("structured") == {"host": "Fly.io"}
    agrees("reflect", printed)
    assert shell("reflect", "x", "--schema", "nope.json").code == 4
    assert shell("reflect", "x", "--schema", "-", stdin="{").code == 2


def test_opinions(shell: Shell) -> None:
    assert "reflect --keep" in shell.ok("opinions", "list").out
    a = number(shell)
    formed = {"change": "form", "text": "Fly.io may double its price, too.", "kind": "risk", "because": [a]}
    with FakeModel(says(SAID.format(a=a), opinions=[formed])) as fake:
        done = asking(shell, fake, *ASKED, "--keep")
    assert re.search(
        r"Formed a risk \(commit \w{7}\)\n  \+ Fly.io may double its price, too\.  risk  \^", done.out
    )
    printed = shell.ok("opinions", "list", "--json").json
    agrees("opinions list", printed)
    block = "^" + printed["opinions"][0]["id"]
    assert "because [[2026-11-20#^aaaaaaaaaa]] “Alice moved" in shell.ok("opinions", "show", block).out
    agrees("opinions revise", shell.ok("opinions", "revise", block, "--confidence", "0.3", "--json").json)
    assert "  - Fly.io may double" in shell.ok("opinions", "drop", block, "it", "was", "sold").out
    assert shell.ok("opinions", "list", "--json").json == {"opinions": []}
    assert "dropped 2026-11-21, it was sold" in shell.ok("opinions", "list", "--all").out
    assert shell("opinions", "revise", block).code == 2 and shell("opinions", "show", "^nope").code == 4
    assert not shell.ok("search", "Fly.io price", "--kind", "risk", "--json").json["results"]
    asked = ("--kind", "risk", "--retired", "--json")
    assert shell.ok("search", "Fly.io price", *asked).json["results"]


def test_directives(shell: Shell) -> None:
    assert "No directives" in shell.ok("directives", "list").out
    agrees("directives create", shell.ok("directives", "create", "Never name a customer.", "--json").json)
    agrees("directives list", shell.ok("directives", "list", "--json").json)
    assert " 1. Never name a customer." in shell.ok("directives", "list").out
    shell.terminals = EVERY
    shell.ok("directives", "create", "Be", "brief.")
    rows = shell.ok("log", "--json", "--limit", "2").json["revisions"]
    assert [row["op"] for row in rows] == ["directives"] * 2 and rows[0]["author"] != rows[1]["author"]
    shell.terminals = frozenset()
    agrees("directives delete", shell.ok("directives", "delete", "2", "--json").json)
    assert shell("directives", "delete", "2").code == 4
    agrees("directives update", shell.ok("directives", "update", "1", "Name no customer.", "--json").json)
    agrees("directives get", shell.ok("directives", "get", "1", "--json").json)
    assert shell.ok("directives", "get", "1").out == "Name no customer.\n"
    assert shell("directives", "update", "2", "x").code == 4 and shell("directives", "get", "0").code == 4
    assert shell("directives", "create", " ").code == 2
