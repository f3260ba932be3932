"""The JSON contract: what each command prints has exactly the keys that docs/json.md shows."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from banks import git
from fake_model import FakeModel
from scripted_model import keep
from terminal import EVERY, Shell, new_shell
from test_flush import TALK, transcript

TEXT = (Path(__file__).parent.parent / "docs" / "json.md").read_text("utf-8")
EXAMPLES = {
    name: json.loads(body) for name, body in re.findall(r"^```json (.+?)\n(.+?)^```$", TEXT, re.M | re.S)
}
OPEN = {"trailers", "redacted", "arms", "parts", "index", "kinds", "origins", "clients", "months", "ops"}
OPEN |= {"sessions", "tags", "purposes", "days", "models", "leftAside", "searched"}
"""Objects whose keys are data; what they hold is checked where it matters."""
OPTIONAL = {"untrusted", "warning", "accepted", "retired"}
"""Keys that an example need not show."""
SAMPLE = Path(__file__).parent.parent / "examples" / "recall.jsonl"
SECRET = "ghp_" + "abcdefghijklmnopqrstuvwxyz0123456789"


def keys(value: Any, inside: str = "") -> Any:
    """The keys of a value, all the way down; a list stands for the union of what its members have."""
    if isinstance(value, dict) and inside not in OPEN:
        if inside == "blocks":
            return {"*": keys(list(value.values()))}
        return {key: keys(each, key) for key, each in value.items() if key not in OPTIONAL}
    if isinstance(value, list) and value and isinstance(value[0], dict):
        union: dict[str, Any] = {}
        for each in value:
            union |= keys(each)
        return [union]
    return None if not isinstance(value, list) else []


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return new_shell(tmp_path)


def agrees(name: str, printed: Any) -> None:
    assert keys(printed) == keys(EXAMPLES[name])


def test_an_item_of_the_index_in_a_hit_is_one_object(shell: Shell) -> None:
    shell.write("memory/2026-11-18.md", "- The API listens on port 8080.\n")
    shell.write("memory/2026-11-20.md", "- The API listens on port 9090 now.\n")
    hit = shell.ok("search", "which port does the API listen on", "--json").json["results"][0]
    assert hit["replaces"]["path"] == "memory/2026-11-18.md"


def test_prune_recall_messages(shell: Shell, tmp_path: Path) -> None:
    entry = {
        "type": "custom_message",
        "id": "b",
        "parentId": "a",
        "customType": "hindsight-recall",
        "content": "x",
    }
    (tmp_path / "s.jsonl").write_text(json.dumps(entry) + "\n")
    words = ("prune-recall-messages", str(tmp_path / "s.jsonl"))
    agrees("prune-recall-messages", shell.ok(*words, "confirm", "--json").json)


FACT = (
    *("insert", "Alice moved the API to Fly.io because Heroku doubled its price", "--tag", "infra"),
    *("--when", "2026-11-19", "--entity", "Alice", "--client", "claude-code", "--session", "8f2c", "--json"),
)


def test_search(shell: Shell) -> None:
    shell.ok(*FACT)
    printed = shell.ok("search", "why leave Heroku", "--explain", "--limit", "1", "--json").json
    agrees("search", printed)
    hit = printed["results"][0]
    assert (hit["path"], hit["startLine"], hit["endLine"]) == ("memory/2026-11-21.md", 5, 7)
    assert hit["citation"] == "memory/2026-11-21.md#L5-L7" and hit["source"] == "memory"
    assert hit["link"] == f"[[2026-11-21#^{hit['id']}]]"
    assert hit["tags"] == ["infra"] and hit["entities"] == ["Alice"] and hit["when"] == "2026-11-19"
    assert 0 < hit["score"] <= 1 and printed["mode"] == "hybrid" and printed["notes"] == []
    assert set(hit["arms"]) <= {"keyword", "semantic", "entity"} and set(hit["arms"]["keyword"]) == {
        "rank",
        "score",
    }


def test_list(shell: Shell) -> None:
    shell.ok(*FACT)
    printed = shell.ok("list", "--json").json
    agrees("list", printed)
    assert printed == shell.ok("search", "--tag", "infra", "--json").json
    agrees("today", shell.ok("today", "--json").json)
    assert shell.ok("yesterday", "--json").json == {
        "day": "2026-11-20",
        "results": [],
        "total": 0,
        "notes": [],
    }


def test_sessions(shell: Shell) -> None:
    shell.ok(
        "flush",
        "-",
        "--force",
        stdin=b"User: Never restart the ledger.\nAssistant: The ledger runs on port 6543,"
        b" and Oksana reconciles it by hand each Friday.\n",
    )
    printed = shell.ok("sessions", "list", "--json").json
    agrees("sessions list", {"sessions": [{**one, "project": "shop"} for one in printed["sessions"]]})
    (name,) = (one["name"] for one in printed["sessions"])
    whole = shell.ok("sessions", "get", name, "--json").json
    assert [one["speaker"] for one in whole["turns"]] == ["person", "agent"]
    assert set(whole["turns"][0]) == {"id", "speaker", "at", "text", "startLine", "endLine"}
    hit = shell.ok("sessions", "search", "ledger port", "--json").json["results"][0]
    assert (
        hit["kind"] == "session"
        and hit["source"] == "sessions"
        and hit["path"].endswith(f"/sessions/{name}.md")
    )
    assert shell.ok("sessions", "forget", name, "--yes", "--json").json == {"deleted": name}
    assert shell.ok("sessions", "off", "--yes", "--json").json == {"keep": False, "deleted": []}
    assert "ua-memory config set sessions.keep true" in shell.ok("sessions", "off").out
    shell.ok("flush", "-", "--force", stdin=b"User: Never restart the tablets.\nAssistant: ok\n")
    assert shell.ok("sessions", "list", "--json").json == {"sessions": []}


def test_recall(shell: Shell) -> None:
    shell.ok(*FACT)
    printed = shell.ok("recall", "why leave Heroku", "--limit", "1", "--json").json
    agrees("recall", printed)
    assert printed["block"] == shell.ok("recall", "why leave Heroku", "--limit", "1").out.rstrip("\n")


def test_explain(shell: Shell) -> None:
    query = 'when did Alice last touch src/app.py between March and May 2026 on "Fly.io"'
    printed = shell.ok("explain", query, "--json").json
    agrees("explain", printed)
    assert printed["time"] == {"start": "2026-03-01", "end": "2026-06-01"} and printed["order"] == "latest"
    assert printed["entities"] == ["Alice", "src/app.py", "Fly.io"] and printed["phrases"] == ["fly io"]
    assert {"alice", "touch", "fly_io"} <= set(printed["terms"]) and "when" not in printed["terms"]
    assert shell.ok("explain", "port", "2019", "--json").json == {
        "time": None,
        "entities": [],
        "terms": ["port", "2019"],
    }
    asked = shell.ok("explain", "since yesterday", "--now", "2026-03-01", "--json").json
    assert asked["time"] == {"start": "2026-02-28", "end": None}
    late = shell.ok("explain", "today", "--now", "2026-03-01T23:30Z", "--json").json["time"]["start"]
    assert late in ("2026-03-01", "2026-03-02")
    assert not list(shell.cwd.rglob("words.db*")), "nothing is indexed"


def test_a_plain_note_has_only_the_keys_it_can_fill(shell: Shell) -> None:
    shell.write("memory/ideas.md", "Otters hold hands while they sleep.\n")
    hit = shell.ok("search", "otters", "--limit", "1", "--json").json["results"][0]
    assert set(hit) == {
        *("path", "startLine", "endLine", "citation", "score", "snippet", "source"),
        *("kind", "record", "origin", "heading"),
    }
    assert hit["heading"] == "ideas", "what its file is called"


def test_batch_answers_each_line_in_order(shell: Shell) -> None:
    shell.ok("insert", "herons stand still")
    shell.ok("insert", "otters hold hands")
    done = shell.ok(
        "search", "--batch", "--json", "--limit", "1", stdin="otters\n\nherons\r\n\xa0\n".encode()
    )
    lines = [json.loads(line) for line in done.out.split("\n")[:-1]]
    assert [len(line["results"]) for line in lines] == [1, 0, 1, 0]
    assert "otters" in lines[0]["results"][0]["snippet"] and "herons" in lines[2]["results"][0]["snippet"]
    assert shell.ok("search", "--batch", stdin=b"").out == ""
    shell.terminals = EVERY
    assert shell.ok("search", "--batch", stdin=b"x\ny").out.count("\n") == 2


def test_bench(shell: Shell) -> None:
    printed = shell.ok("bench", "recall", str(SAMPLE), "--json").json
    agrees("bench recall", printed)
    assert (printed["conversations"], printed["turns"], printed["questions"]) == (1, 8, 6)
    assert [one["name"] for one in printed["rankings"]] == ["ua-memory", "bm25", "grep"]
    assert [(row["name"], row["n"]) for row in printed["rankings"][0]["rows"]] == [
        ("all", 5),
        ("adversarial", 1),
        ("one turn", 2),
        ("several turns", 2),
        ("time", 1),
    ]


def test_insert_and_get(shell: Shell) -> None:
    printed = shell.ok(*FACT).json
    agrees("insert", printed)
    assert (printed["sighting"], printed["repeated"], printed["redacted"]) == (False, False, {})
    assert re.fullmatch(r"[0-9a-f]{40}", printed["revision"])
    assert shell.ok(*FACT).json["sighting"] is True
    redacted = shell.ok("insert", f"token {SECRET}", "--json")
    assert sum(redacted.json["redacted"].values()) == 1 and redacted.err == ""
    got = shell.ok("get", f"^{printed['id']}", "--json").json
    agrees("get", got)
    retired = shell.ok("retire", f"^{printed['id']}", "--why", "they went back", "--json").json
    agrees("retire", retired)
    assert shell("vouch", f"^{printed['id']}").code == 2, "a program vouches for nothing"
    shell.terminals = EVERY
    agrees("vouch", shell.ok("vouch", f"^{printed['id']}", "--json").json)
    assert got["text"].startswith("- Alice moved")
    assert set(shell.ok("get", "MEMORY.md", "--json").json) == set(EXAMPLES["get"]) - {"id", "link"}


def test_core(shell: Shell) -> None:
    assert "before" not in shell.ok("core", "replace", "Me", "tea", "--json").json
    agrees("core replace", shell.ok("core", "replace", "Me", "coffee", "--json").json)
    listed = shell.ok("core", "list", "--json").json
    agrees("core list", listed)
    assert shell.ok("core", "get", "--json").json == {"blocks": listed["blocks"]}
    assert shell.ok("core", "get", "Me", "--json").json == listed["blocks"][0]
    assert shell.ok("core", "proposals", "--json").json == {"proposals": []}
    options = ["--origin", "person", "--kind", "preference", "--client", "codex", "--session", "8f2c"]
    shell.ok("insert", "Never deploy on Fridays.", *options)
    printed = shell.ok("core", "proposals", "--json").json
    printed["proposals"][0]["projects"] = ["shop"]
    agrees("core proposals", printed)


def test_flush_and_what_waits(shell: Shell) -> None:
    talk = transcript().getvalue()
    key = {"ANTHROPIC_API_KEY": "sk-ant-test"}
    preview = shell.ok("flush", "--dry-run", "--json", stdin=talk, **key).json
    for one in preview["preview"]:
        one.pop("when", None)
    agrees("flush dry-run", preview)
    shell("flush", "--json", stdin=talk, ANTHROPIC_BASE_URL="http://127.0.0.1:9")
    agrees("queue list", shell.ok("queue", "list", "--json").json)
    shell.ok("core", "replace", "Hosting", "The API runs on Heroku.")
    steps = [
        {"calls": [("get_core_memory_blocks", {})]},
        {
            "calls": [
                keep(TALK[0][3:]),
                ("core_memory_replace", {"section": "Hosting", "value": "It runs on Fly.io."}),
            ]
        },
        {"text": "done"},
    ]
    with FakeModel(*steps) as fake:
        printed = shell.ok("flush", "--force", "--json", stdin=talk, ANTHROPIC_BASE_URL=fake.url).json
    agrees("flush", printed)
    agrees("stats", shell.ok("stats", "--json").json)
    with FakeModel() as fake:
        key = {"ANTHROPIC_API_KEY": "sk-ant-test", "ANTHROPIC_BASE_URL": fake.url}
        agrees("model test", shell.ok("model", "test", "--json", **key).json)
    agrees("stats cost", shell.ok("stats", "--cost", "--json").json)
    shell("flush", stdin=transcript(name="other").getvalue(), ANTHROPIC_BASE_URL="http://127.0.0.1:9")
    (waiting,) = shell.ok("status", "--json").json["waiting"]
    assert shell.ok("queue", "drop", waiting["key"], "--json").json == {"dropped": [waiting]}
    assert shell.ok("queue", "retry", "--json").json == {
        "flushed": [],
        "waiting": 0,
        "redacted": {},
        "notes": [],
    }


def test_history(shell: Shell) -> None:
    shell.ok("insert", "one")
    agrees("log", shell.ok("log", "--json").json)
    revision = shell.ok("log", "-n", "1", "--json").json["revisions"][0]
    assert revision["op"] == "insert" and revision["trailers"]["Door"] == ["cli"]
    agrees("diff", shell.ok("diff", "HEAD", "--json").json)
    assert shell.ok("diff", "--json").json == {"diff": "", "changes": []}
    agrees("blame", shell.ok("blame", "memory/2026-11-21.md", "--json").json)
    planned = shell.ok("undo", "--dry-run", "--json").json
    sides = {"path": "memory/2026-11-21.md", "line": 5, "now": "", "wanted": "- one"}
    agrees("undo --dry-run", {**planned, "conflicts": [sides]})
    assert revision.items() >= planned["undoes"].items() and planned["conflicts"] == []
    undone = shell.ok("undo", "--json").json
    agrees("undo", undone)
    assert undone["undone"]["revision"] == revision["revision"]
    assert shell.ok("redo", "--dry-run", "--json").json["op"] == "redo"
    agrees("undo", shell.ok("redo", "--json").json)
    shell.write(
        "memory/2026-11-21.md", (shell.cwd / "memory/2026-11-21.md").read_text().replace("one", "two")
    )
    clash = shell("undo", revision["revision"], "--dry-run", "--json")
    assert clash.code == 7 and "two" in clash.json["conflicts"][0]["now"]
    told = shell("undo", revision["revision"], "--dry-run").out
    assert "now:    - two" in told and "wanted: nothing" in told and "would write nothing" in told


def test_import_sessions(shell: Shell) -> None:
    for name in ("a" * 8, "b" * 8):
        (shell.home / ".claude/projects/x").mkdir(parents=True, exist_ok=True)
        file = shell.home / f".claude/projects/x/{name}.jsonl"
        file.write_bytes(transcript(name=name).getvalue())
    (shell.home / ".claude/projects/x/c.jsonl").write_bytes(b"{}")
    event = {"hook_event_name": "Stop", "session_id": "b" * 8, "transcript_path": "", "cwd": "/x"}
    shell("hook", stdin=json.dumps(event))
    printed = shell.ok("import", "sessions", "--json").json
    agrees("import sessions", printed)


def test_forget(shell: Shell) -> None:
    block = shell.ok(*FACT).json["id"]
    agrees("forget --dry-run", shell.ok("forget", f"^{block}", "--dry-run", "--json").json)
    done = shell.ok("forget", f"^{block}", "--json")
    agrees("forget", done.json)
    assert "Heroku" not in done.out
    bundle = str(shell.cwd.parent / "old.bundle")
    agrees("forget --purge", shell.ok("forget", "--purge", "--yes", "--backup", bundle, "--json").json)


def test_import(shell: Shell, tmp_path: Path) -> None:
    shell.ok("core", "replace", "Me", "ours")
    (tmp_path / "clawd" / "memory").mkdir(parents=True)
    (tmp_path / "clawd" / "MEMORY.md").write_text("## Me\n\ntheirs\n")
    (tmp_path / "clawd" / "memory" / "2026-02-03.md").write_text("- one\n\nprose\n")
    printed = shell.ok("import", "openclaw", str(tmp_path / "clawd"), "--json").json
    agrees("import", printed)
    asked = shell.ok("import", "openclaw", str(tmp_path / "clawd"), "--compare", "-", "--json", stdin="one\n")
    agrees("import --compare", asked.json)


def test_machines(shell: Shell, tmp_path: Path) -> None:
    shell.ok("insert", "Alice drinks tea")
    block = shell.ok("insert", "Bob keeps bees in Malta", "--json").json["id"]
    git(tmp_path, "init", "--quiet", "--bare", "--initial-branch=main", "remote.git")
    shell.ok("sync", "--remote", str(tmp_path / "remote.git"))
    agrees("export", shell.ok("export", str(tmp_path / "x.tar"), "--json").json)
    agrees("import archive", shell.ok("import", "archive", str(tmp_path / "x.tar"), "--json").json)
    git(tmp_path, "clone", "--quiet", "remote.git", "other")
    for folder, drink in ((tmp_path / "other", "milk"), (shell.cwd, "cocoa")):
        file = folder / "memory" / "2026-11-21.md"
        file.write_text(file.read_text().replace("drinks tea", f"drinks {drink}"))
    shell.ok("--bank", str(tmp_path / "other"), "forget", f"^{block}")
    shell.write("memory/notes.md", "- bob keeps bees in Malta\n\nAnn says that Bob keeps bees in Malta.\n")
    shell.ok("--bank", str(tmp_path / "other"), "sync")
    heard = shell("sync", "--json")
    assert heard.code == 20
    agrees("sync", heard.json)
    assert "nothing to receive" in shell.ok("sync", "--dry-run").out


def test_what_checks_find(shell: Shell) -> None:
    shell.write("memory/2026-11-01.md", f"- one ^aaaaaaaaaa\n- key {SECRET}\n")
    shell.write("memory/2026-11-02.md", "- another ^aaaaaaaaaa\n")
    for name in ("verify", "scan"):
        found = shell(name, "--json")
        assert found.code == 12 and found.err == ""
        agrees(name, found.json)
    shell.ok("init", ".")
    agrees("scan --history", shell("scan", "--history", "--json").json)
    (shell.cwd / ".git" / "ua-memory").chmod(0o755)
    agrees("doctor", shell("doctor", "--json").json)


def test_status_config_init_and_rebuild(shell: Shell, tmp_path: Path) -> None:
    shell.ok("core", "replace", "Me", "tea")
    agrees("status", shell.ok("status", "--json").json)
    whole, quick = (shell.ok("status", *more, "--json").json for more in ([], ["--quick"]))
    assert quick == {**whole, "problems": None} and whole["problems"] == 0
    assert "not checked" in shell.ok("status", "--quick").out
    assert shell.ok("status", "--accept", "--json").json["accepted"] == []
    settings = shell.ok("config", "--json").json
    agrees("config", settings)
    shell.write(
        "ua-memory.toml",
        'strip = ["x"]\nextraPaths = ["../notes"]\n' + (shell.cwd / "ua-memory.toml").read_text(),
    )
    agrees("trust", shell.ok("trust", "--yes", "--json").json)
    assert shell.ok("config", "search.limit", "--json").json["value"] == 6
    agrees("index rebuild", shell.ok("index", "rebuild", "--json").json)
    made = shell.ok("init", str(tmp_path / "new"), "--json", TZ="Europe/Stockholm").json
    agrees("init", made)
    assert sorted(made["made"]) == sorted(EXAMPLES["init"]["made"])
    assert shell.ok("init", str(tmp_path / "new"), "--json").json["made"] == []


@pytest.mark.parametrize(
    ("argv", "kind", "code"),
    [
        (["get", "^aaaaaaaaaa"], "NotFound", 4),
        (["insert", "x", "--kind", "nonsense"], "Usage", 2),
        (["nonsense"], "Usage", 2),
        (["--bank", "/nonexistent", "log"], "NoBank", 3),
    ],
)
def test_errors(shell: Shell, argv: list[str], kind: str, code: int) -> None:
    done = shell(*argv, "--json")
    assert done.code == code and done.out == "" and done.err.count("\n") == 1
    printed = json.loads(done.err)
    agrees("error", printed)
    assert (printed["error"]["type"], printed["error"]["exit_code"]) == (kind, code)


def test_json_is_one_line_in_a_pipe_and_indented_for_a_person(shell: Shell) -> None:
    assert shell.ok("log", "--json").out.count("\n") == 1
    shell.terminals = EVERY
    assert shell.ok("log", "--json").out.startswith("{\n  ")


def test_every_example_is_compared() -> None:
    source = "".join(file.read_text("utf-8") for file in Path(__file__).parent.glob("test_*.py"))
    assert {name for name in EXAMPLES if f'agrees("{name}"' not in source} == {"verify", "scan"}
