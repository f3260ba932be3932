"""Claude Code's memory, basic-memory's notes, Hindsight's exports: what they become here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from terminal import Shell, new_shell
from test_import import made, states

from ua_memory.markdown import document as markdown
from ua_memory.records import Fact, MentalModel, Observation, Opinion, Page
from ua_memory.upkeep import import_sources as hindsight
from ua_memory.upkeep.import_sources import stable_id

NOTE = """---
title: Coffee Brewing Methods
permalink: coffee-brewing-methods
tags: [coffee]
---
# Coffee Brewing Methods

## Observations
- [method] Pour over gives more clarity than French press #brewing (personal experience)
- [ ] buy filters
- [00:00:11] a line of a transcript
- [decision log] Water at 94 degrees @effective(2026-03-01)

## Relations
- requires [[Proper Grinding Technique]]
1. relates_to [[Home|home]] (since May)

A paragraph with - [odd] signs.
"""


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return new_shell(tmp_path)


# -- Claude Code -----------------------------------------------------------------------------------------


def test_claude_codes_memory_files(shell: Shell, tmp_path: Path) -> None:
    front = "---\nname: tests\ndescription: how Alice wants tests\n"
    front += "metadata:\n  modified: 2026-01-05T10:00:00Z\n---\n"
    files = {
        "CLAUDE.md": "- Use tabs.\n",
        "projects/-home-a-api/memory/tests.md": f"{front}\nOne assertion a test. [[deploy]]\n",
        "projects/-home-a-api/memory/deploy.md": "---\nname: deploy\n---\nOn Fridays never.\n",
        "projects/-home-a-api/memory/MEMORY.md": "# Memory\n- [Tests](tests.md) — short\n- [D](deploy.md)\n",
        "projects/-home-a-api/5f.jsonl": "{}\n",
        "plugins/x/README.md": "no memory",
    }
    done = shell.ok("import", "claude-code", made(tmp_path, "dot", files), "--json").json
    assert [each["path"].removeprefix("memory/imported/dot/") for each in done["taken"]] == [
        "CLAUDE.md",
        "home-a-api/deploy.md",
        "home-a-api/2026-01-05-tests.md",
    ]
    assert [line.split(":")[0] for line in done["left"]] == [
        "projects/-home-a-api/memory/MEMORY.md",
        "1 session transcript",
    ]
    hits = shell.ok("search", "how does Alice want tests", "--json").json["results"]
    assert {"how Alice wants tests", "One assertion a test. [[deploy]]"} <= {hit["snippet"] for hit in hits}
    folder = str(tmp_path / "dot/projects/-home-a-api/memory")
    again = shell.ok("import", "claude-code", folder, "--json").json
    assert {state for _, state in states(again)} == {"same"}
    refused = shell("import", "claude-code", made(tmp_path, "talks", {"a.jsonl": "{}"}))
    assert refused.code == 2 and "ua-memory flush FILE" in refused.err


# -- basic-memory ----------------------------------------------------------------------------------------


def test_observations_and_relations_of_basic_memory(shell: Shell, tmp_path: Path) -> None:
    source = made(tmp_path, "main", {"coffee/Coffee Brewing Methods.md": NOTE})
    done = shell.ok("import", "basic-memory", source, "--json").json
    copy = (shell.cwd / done["taken"][0]["path"]).read_text()
    found = markdown.parse(copy.encode(), done["taken"][0]["path"])
    assert [(f.text, f.tags, f.entities, f.when) for f in found.of(Fact)] == [
        (
            "[method] Pour over gives more clarity than French press #brewing (personal experience)",
            ("method",), (), None,
        ),
        ("[ ] buy filters", (), (), None),
        ("[00:00:11] a line of a transcript", (), (), None),
        ("[decision log] Water at 94 degrees @effective(2026-03-01)", ("decision log",), (), "2026-03-01"),
        (
            "requires [[Proper Grinding Technique]]",
            (), ("Coffee Brewing Methods", "Proper Grinding Technique"), None,
        ),
        ("relates_to [[Home|home]] (since May)", (), ("Coffee Brewing Methods", "Home"), None),
    ]  # fmt: skip
    assert not found.problems and [line for line in copy.splitlines() if line in NOTE.splitlines()]
    assert all(line in copy.splitlines() for line in NOTE.splitlines())
    hit = shell.ok("search", "clarity", "--tag", "brewing", "--tag", "method", "--json").json["results"][0]
    assert hit["heading"].startswith("Coffee Brewing Methods > ")
    assert states(shell.ok("import", "basic-memory", source, "--json").json)[0][1] == "same"
    (tmp_path / "main/coffee/Coffee Brewing Methods.md").write_text(NOTE + "- [tip] Rinse the filter.\n")
    assert states(shell.ok("import", "basic-memory", source, "--json").json)[0][1] == "updated"


# -- Hindsight -------------------------------------------------------------------------------------------

UNITS: list[dict[str, Any]] = [
    {
        "id": "a1", "fact_type": "world", "document_id": "talk-7", "tags": ["infra"],
        "text": "Alice moved the API to Fly.io | When: Tuesday | Involving: Alice, Bob | the price doubled",
        "occurred_start": "2026-02-03T00:00:00Z", "mentioned_at": "2026-02-05T14:32:10+00:00",
        "entities": [{"canonical_name": "Alice"}, {"canonical_name": "Fly.io"}],
    },
    {"id": "a2", "fact_type": "assistant", "text": "The agent wrote the runbook. | When: in March",
     "mentioned_at": "2026-02-05T14:32:40+00:00", "entities": "Alice, Runbook", "document_id": "talk-7"},
    {"id": "a3", "fact_type": "world", "text": "Prices rose.", "occurred_start": "2026-01-01T00:00:00Z",
     "occurred_end": "2026-01-31T23:59:59Z", "mentioned_at": "2026-01-10T09:00:00Z"},
    {"id": "o1", "fact_type": "observation", "text": "Alice chooses by price.", "proof_count": 2,
     "source_memory_ids": ["a1", "a3", "gone"], "mentioned_at": "2026-02-06T00:00:00Z"},
    {"id": "o2", "fact_type": "observation", "text": "Bob is quiet.", "source_memory_ids": ["gone"]},
    {"id": "p1", "fact_type": "opinion", "text": "Fly.io is the better host.", "confidence_score": 0.8,
     "source_memory_ids": ["a1"]},
    {"id": "p2", "fact_type": "opinion", "text": "Nothing lasts.", "confidence_score": 0.2},
]  # fmt: skip
EXPORT = {
    "version": 3,
    "bank": {"memory_units": UNITS},
    "mental_models": [
        {"id": "mm-1", "name": "Hosts", "source_query": "hosts?", "content": "Price first.", "tags": []},
        {"id": "mm-2", "name": "Infra", "source_query": "where do services run", "content": "On Fly."},
    ],
    "knowledge_pages": [{"id": "kp-9", "kind": "page", "name": "Infra", "mental_model_id": "mm-2"}],
    "documents": [{"id": "talk-7", "original_text": "We moved.\n", "created_at": "2026-02-05T14:00:00Z"}],
    "directives": [{"name": "Kind", "content": "Be kind.", "is_active": True, "priority": 1}],
}


def exported(tmp_path: Path, value: Any = EXPORT) -> str:
    return made(tmp_path, "hs", {"bank.json": json.dumps(value)}) + "/bank.json"


def records(shell: Shell, path: str, kind: type[Any]) -> tuple[Any, ...]:
    return markdown.parse((shell.cwd / path).read_bytes(), path).of(kind)


def test_what_hindsight_exports(shell: Shell, tmp_path: Path) -> None:
    done = shell.ok("import", "hindsight", exported(tmp_path), "--all", "--json").json
    assert {state for _, state in states(done)} == {"new"} and "directives (Kind)" in done["left"][0]
    one, two = records(shell, "memory/2026-02-05.md", Fact)
    assert (one.text, one.who, one.why, one.when) == (
        "Alice moved the API to Fly.io", "Alice, Bob", "the price doubled", "2026-02-03"
    )  # fmt: skip
    assert (one.id, one.said_by, one.tags, one.entities) == (
        stable_id("a1"), "import", ("infra",), ("Alice", "Fly.io")
    )  # fmt: skip
    assert (one.heading.client, one.heading.session, one.heading.time) == ("hindsight", "talk-7", "14:32")
    assert (two.text, two.kind) == ("The agent wrote the runbook. | When: in March", "experience")
    (three,) = records(shell, "memory/2026-01-10.md", Fact)
    assert three.when == "2026-01-01/2026-01-31"
    (belief,) = records(shell, "memory/observations/bank.md", Observation)
    assert [(p.file, p.id, p.quote) for p in belief.proofs] == [
        ("2026-02-05", one.id, "Alice moved the API to Fly.io"),
        ("2026-01-10", three.id, "Prices rose."),
    ]
    bare, thought = records(shell, "memory/imported/bank/undated.md", Fact)
    assert (bare.text, bare.tags, bare.said_by) == ("Bob is quiet.", ("observation",), "import")
    assert (thought.text, thought.tags) == ("Nothing lasts.", ("opinion",))
    (held,) = records(shell, "memory/opinions.md", Opinion)
    assert (held.confidence, [proof.id for proof in held.because]) == (0.8, [one.id])
    assert records(shell, "memory/models/mm-1.md", MentalModel)[0].body == "Price first."
    page = records(shell, "memory/pages/kp-9.md", Page)[0]
    assert (page.source_query, page.body) == ("where do services run", "")
    assert "On Fly." in (shell.cwd / "memory/imported/bank/pages/kp-9.md").read_text()
    assert "We moved." in (shell.cwd / "memory/imported/bank/documents/2026-02-05-talk-7.md").read_text()
    assert shell.ok("verify").code == 0
    assert shell.ok("search", "who moved to Fly.io", "--json").json["results"][0]["id"] == one.id


def test_hindsight_twice_and_taken_back(shell: Shell, tmp_path: Path) -> None:
    shell.ok("insert", "ours")
    first = shell.ok("import", "hindsight", exported(tmp_path), "--all", "--json").json
    again = shell.ok("import", "hindsight", exported(tmp_path), "--all", "--json").json
    assert {state for _, state in states(again)} == {"same"} and again["revision"] == first["revision"]
    other = json.loads(json.dumps(UNITS))
    other[0]["text"] = "Alice moved it to Render."
    lines = "\n".join(json.dumps({"table": "memory_units", "row": unit}) for unit in other) + "\nbroken\n"
    rows = made(tmp_path, "rows", {"dump.jsonl": lines})
    changed = shell.ok("import", "hindsight", rows, "--all", "--json").json
    assert [each["why"] for each in changed["taken"] if each["state"] == "left"] == [
        "it has been changed here; the text here stays"
    ]
    assert changed["problems"][0].startswith("dump.jsonl:8: not JSON")
    shell.ok("undo", first["revision"])
    assert sorted(p.name for p in shell.cwd.glob("memory/**/*.md")) == ["2026-11-21.md"]


def test_the_newest_days_take_along_what_they_rest_on(shell: Shell, tmp_path: Path) -> None:
    done = shell.ok("import", "hindsight", exported(tmp_path, UNITS), "--days", "1", "--json").json
    assert done["later"] == 0  # a3 is old, and o1 rests on it
    bare = [unit for unit in UNITS if unit["id"] in ("a1", "a3")]
    shell.ok("undo")
    assert (
        shell.ok("import", "hindsight", exported(tmp_path, bare), "--days", "1", "--json").json["later"] == 1
    )


@pytest.mark.parametrize(
    ("text", "dated", "read"),
    [
        ("plain", False, ("plain", None, None)),
        ("a | b", True, ("a", None, "b")),
        ("a | When: May | why", False, ("a | When: May", None, "why")),
        ("a | When: May | Involving: X", True, ("a", "X", None)),
    ],
)
def test_a_text_in_parts(text: str, dated: bool, read: tuple[str | None, ...]) -> None:
    assert hindsight.split_text(text, dated) == read


def test_what_is_not_read_of_the_memories_of_hindsight_is_named(shell: Shell, tmp_path: Path) -> None:
    listed = [{"id": "c5", "text": "Whales sing."}, {"id": "c6", "content": "other key"}, 3]
    done = shell.ok("import", "hindsight", exported(tmp_path, {"memories": listed}), "--json").json
    assert "2 memories without a text or of an unknown type: c6, 3" in done["left"]
    (fact,) = records(shell, done["taken"][0]["path"], Fact)
    assert (fact.text, fact.kind) == ("Whales sing.", "world")
    inside = {**listed[0], "metadata": {"items": [{"sku": 1}, {"text": "no memory"}]}}  # type: ignore[dict-item]
    done = shell.ok("import", "hindsight", exported(tmp_path, {"items": [inside]}), "--json").json
    assert not done["left"] and len(done["taken"]) == 1
    (tmp_path / "hs/bank.json").write_text("{bad")
    refused = shell("import", "hindsight", str(tmp_path / "hs/bank.json"))
    assert refused.code == 2 and "bank.json:1: not JSON" in refused.err


def test_an_export_of_something_else(shell: Shell, tmp_path: Path) -> None:
    done = shell("import", "hindsight", exported(tmp_path, {"rows": [1]}))
    assert done.code == 2 and "no memories" in done.err
