"""`consolidate` and `observations` as a person and a script meet them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from deciding_model import Decider, create, decide, facts, quoted
from terminal import EVERY, Shell, new_shell
from test_cli_json import agrees

from ua_memory.index.sync import Facts
from ua_memory.knowledge import statements

ALICE = "Alice chooses providers by their price."


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = new_shell(tmp_path)
    (shell.cwd / "memory").mkdir(exist_ok=True)
    said = {
        "2026-11-10": [ALICE, "The build takes 40 seconds on the runner."],
        "2026-11-12": [f"{ALICE[:-1]}, always.", "The build takes 90 seconds on the runner."],
    }
    for day, lines in said.items():
        (shell.cwd / f"memory/{day}.md").write_text("".join(f"- {line}\n" for line in lines))
    return shell


def test_without_a_model_it_says_what_it_folded(shell: Shell) -> None:
    done = shell.ok("consolidate")
    first, *rest = done.out.splitlines()
    assert re.fullmatch(r"4 facts considered without a model: 1 created \(commit [0-9a-f]{7}\)", first)
    assert "memory/observations/Alice.md" in rest
    assert any(line.startswith(f"  + {ALICE[:-1]}") and "2 proofs" in line for line in rest)
    assert "Possible contradictions, the newer first:" in rest
    assert "without a model facts are only compared" in done.err
    again = shell.ok("consolidate")
    assert (again.out, again.err) == ("", "")
    shell.terminals = EVERY
    assert shell.ok("consolidate").out.strip() == "Nothing new to consider."
    assert re.search(r"Observations\S* +1; 0 facts to consider", shell.ok("status").out)


def test_pages_that_are_stale_are_refreshed_after_it(shell: Shell) -> None:
    shell.ok("pages", "create", "alice", "--query", "what about Alice and her providers")
    done = shell.ok("consolidate")
    assert done.out.index("considered") < done.out.index("alice  created")
    assert ALICE[:-1] in (shell.cwd / "memory/pages/alice.md").read_text()
    again = shell.ok("consolidate", "--json")
    assert again.json["pages"] == [] and not again.json["committed"]
    (shell.cwd / "memory/2026-11-13.md").write_text("- Alice left a provider because of its price.\n")
    assert [page["id"] for page in shell.ok("consolidate", "--json").json["pages"]] == ["alice"]


def test_a_dry_run_shows_a_diff_and_a_price(shell: Shell) -> None:
    done = shell.ok("consolidate", "--dry-run", ANTHROPIC_API_KEY="sk-none")
    assert "+++ b/memory/observations/Alice.md" in done.out
    assert re.search(r"claude-\S+ would read about [\d,]+ tokens in 1 request.*about \$0\.\d\d", done.out)
    assert not (shell.cwd / "memory/observations").exists()
    printed = shell.ok("consolidate", "--dry-run", "--json", ANTHROPIC_API_KEY="sk-none").json
    half = shell.ok("consolidate", "--dry-run", "--batch-api", "--json", ANTHROPIC_API_KEY="sk-none").json
    assert half["estimate"]["usd"] == pytest.approx(printed["estimate"]["usd"] / 2, abs=1e-4)
    assert len(printed["atOdds"]) == 1
    changes = [named(each) for each in printed["changes"]]
    agrees("consolidate dry", {**printed, "atOdds": [], "changes": changes})


def named(observation: dict[str, object]) -> dict[str, object]:
    return {"entities": ["Alice"], **observation}


def test_json(shell: Shell) -> None:
    printed = shell.ok("consolidate", "--json").json
    for pair in printed["atOdds"]:
        for each in pair.values():
            each |= {"id": "x", "link": "[[x]]"}  # a line that became no proof keeps its bytes
    agrees("consolidate", {**printed, "changes": [named(each) for each in printed["changes"]]})
    listed = shell.ok("observations", "list", "--json").json
    agrees("observations", {"observations": [named(each) for each in listed["observations"]]})
    (one,) = listed["observations"]
    assert shell.ok("observations", "get", f"^{one['id']}", "--json").json == one
    assert "beliefs" in shell.ok("status", "--json").json


def test_what_is_believed_is_told_without_reading_all_files(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 20 files those that an observation cites, and those with facts that no run has considered."""
    for day in range(10, 28):
        (shell.cwd / f"memory/2026-09-{day}.md").write_text(f"- Ware number {day} lies in hall {day}.\n")
    shell.ok("consolidate")
    (shell.cwd / "memory/2026-11-13.md").write_text("- Alice left two providers for their price.\n")
    read: list[str] = []
    texts = statements.texts

    def watched(*args: Any, **more: Any) -> Iterator[tuple[str, bytes]]:
        for path, data in texts(*args, **more):
            read.append(path)
            yield path, data

    monkeypatch.setattr(statements, "texts", watched)
    told = shell.ok("observations", "list", "--json").json
    (one,) = told["observations"]
    assert one["proofs"] and one["why"] == ["1 newer fact on it not considered yet"], (
        "what was considered is not new"
    )
    assert len({*read}) == 4, read
    monkeypatch.setattr(Facts, "files", lambda *_: None)
    assert shell.ok("observations", "list", "--json").json == told
    assert len({*read}) > 20


def test_list_show_and_retire(shell: Shell) -> None:
    shell.ok("consolidate")
    (one,) = shell.ok("observations", "list", "--json").json["observations"]
    listed = shell.ok("observations", "list").out
    assert "new, 2 proofs, last 2026-11-12" in listed and f"^{one['id']}" in listed
    assert shell.ok("observations", "list", "--stale").out == "No observation is stale.\n"
    shown = shell.ok("observations", "get", one["id"]).out
    assert shell.ok("observations", "show", one["id"]).out == shown  # its name before
    assert "2 proofs, 2026-11-10 to 2026-11-12" in shown and f"“{ALICE}”" in shown
    log = shell.cwd / "memory/2026-11-12.md"
    log.write_text(log.read_text().replace("price, always", "speed, always"))
    assert "was edited: it does not say" in shell.ok("observations", "list", "--stale").out
    assert shell("observations", "retire", one["id"]).code == 2
    done = shell.ok("observations", "retire", one["id"], "--because", "she says so")
    assert done.out.startswith("Retired: Alice chooses")
    assert "retired: she says so" in shell.ok("observations", "list", "--retired").out
    assert shell.ok("log", "--json").json["revisions"][0]["author"] == "ua-memory", "a script's, no person's"
    assert "No observations yet." in shell.ok("observations", "list").out
    assert shell("observations", "show", "^nothing").code == 4


def test_a_model_s_run_tells_what_it_did_and_what_it_did_not(shell: Shell) -> None:
    def rule(seen: dict[str, str]) -> object:
        price = next(label for label, text in facts(seen).items() if "price" in text)
        return decide(
            create("Alice buys by price.", (price, "by their price")),
            create("Zoltan buys by price.", (price, "by their price")),
            {"do": "retire", "observation": "o9", "proofs": quoted((price, "price"))},
        )

    with Decider(rule) as model:
        done = shell.ok("consolidate", ANTHROPIC_BASE_URL=model.url)
    assert re.match(r"4 facts considered with claude-\S+: 1 created", done.out)
    assert "not in the facts cited: Zoltan" in done.out
    assert "there is no observation 'o9'" in done.out
    assert done.err == ""


def test_the_error_that_ended_a_run_has_its_own_exit_code(shell: Shell) -> None:
    with Decider(lambda seen: {"error": 401, "type": "authentication_error"}) as model:
        done = shell("consolidate", ANTHROPIC_BASE_URL=model.url)
    assert (done.code, done.out) == (15, "")
    assert "4 facts still to consider: ua-memory consolidate" in done.err
