"""`import --compare`: the old index and ours side by side, and nothing kept of it."""

from __future__ import annotations

import json
import re
import sqlite3
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from terminal import EVERY, Shell, new_shell
from test_import import made

from ua_memory import bench
from ua_memory.upkeep import import_
from ua_memory.views.output import cell_width

ANSI = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
FILES = {
    "MEMORY.md": "## Me\n\n- Alice likes tea.\n",
    "memory/2026-02-03.md": "- We left Heroku for Fly.io since the price doubled.\n- 東京で会議をする。\n",
    "memory/2026-02-04.md": "- The backup runs at night.\n",
}


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return new_shell(tmp_path)


def index(file: Path, table: str, path: str = "memory/2026-02-03.md") -> Path:
    """An index of OpenClaw's (or Clawdbot's) with one chunk."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with sqlite3.connect(file) as there:
        there.execute(f"CREATE VIRTUAL TABLE {table} USING fts5(text, path, start_line, end_line)")
        there.execute(f"INSERT INTO {table} VALUES (?, ?, 1, 2)", (FILES["memory/2026-02-03.md"], path))
    there.close()
    return file


def notes_index(file: Path) -> Path:
    with sqlite3.connect(file) as there:
        there.execute("CREATE VIRTUAL TABLE search_index USING fts5(title, content_snippet, file_path)")
        there.execute("INSERT INTO search_index VALUES ('Hosts', 'We left Heroku', 'memory/2026-02-03.md')")
    there.close()
    return file


def test_both_sides_in_a_terminal(shell: Shell, tmp_path: Path) -> None:
    source = made(tmp_path, "clawd", FILES)
    index(shell.home / ".openclaw/agents/main/agent/openclaw-agent.sqlite", "memory_index_chunks_fts")
    (shell.cwd / "q.txt").write_text("why did we leave Heroku\n\n東京の会議\n")
    before = shell.ok("log", "--json").out
    shell.terminals = EVERY
    for width in (80, 50):
        shell.width = width
        out = ANSI.sub("", shell.ok("import", "openclaw", source, "--compare", "q.txt").out)
        assert max(map(cell_width, out.splitlines())) <= width
        assert "OpenClaw" in out and "2 queries: both found something for 1" in out.replace("\n", " ")
    shell.terminals = frozenset()
    printed = shell.ok("import", "openclaw", source, "--compare", "q.txt", "--json").json
    first = printed["compared"][0]
    assert first["old"][0]["path"] == first["ours"][0]["path"] == "memory/2026-02-03.md"
    assert all("every session" not in each["snippet"] for each in first["ours"])
    assert "Heroku" in first["ours"][0]["snippet"] and printed["compared"][1]["ours"]
    assert shell.ok("log", "--json").out == before and not list(shell.cwd.glob("memory/**/*.md"))


@pytest.mark.slow
def test_what_there_is_no_time_for_is_searched_by_words(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = "".join(f"- The {n}th parcel waits in harbour {n}.\n" for n in range(300))
    source = made(tmp_path, "clawd", {**FILES, "memory/2026-02-05.md": rows})
    monkeypatch.setattr(bench, "SECONDS_A_QUERY", 0.0)
    monkeypatch.setattr(bench, "NEAR", 5)
    printed = shell.ok("import", "openclaw", source, "--compare", "-", "--json", stdin="left Heroku\n").json
    assert 0 < printed["byWordsAlone"] < 300
    assert "Heroku" in printed["compared"][0]["ours"][0]["snippet"]


def test_an_index_of_another_workspace_is_not_asked(shell: Shell, tmp_path: Path) -> None:
    source = made(tmp_path, "clawd", FILES)
    index(shell.home / ".clawdbot/memory/main.sqlite", "chunks_fts", "memory/1999-01-01.md")
    printed = shell.ok("import", "openclaw", source, "--compare", "-", "--json", stdin="left Heroku\n").json
    assert printed["old"]["name"] == "grep" and "--old" in printed["old"]["note"]
    assert printed["compared"][0]["old"][0]["path"] == "memory/2026-02-03.md"


def test_what_is_said_where_there_is_nothing_to_ask(shell: Shell, tmp_path: Path) -> None:
    source = made(tmp_path, "clawd", {**FILES, "not.sqlite": "no database"})
    assert shell("import", "openclaw", source, "--old", "x").code == 2
    assert shell("import", "openclaw", source, "--compare", "nowhere.txt").code == 4
    asked = ("import", "openclaw", source, "--compare", "-")
    assert "the file contains no queries" in shell(*asked, stdin="\n").err
    assert shell(*asked, "--old", "nowhere.db", stdin="x\n").code == 4
    assert "no index of" in shell(*asked, "--old", f"{source}/not.sqlite", stdin="x\n").err


def ask(file: Path, query: str) -> list[tuple[str, str]]:
    found = import_._open_index(file)
    assert found is not None
    return [(each.path, each.text) for each in found.ask(query, 6)]


def test_how_the_old_ones_are_asked(tmp_path: Path) -> None:
    openclaw = index(tmp_path / "oc.sqlite", "memory_index_chunks_fts")
    clawdbot = index(tmp_path / "cb.sqlite", "chunks_fts")
    assert ask(openclaw, "why did we leave Heroku?") and not ask(clawdbot, "why did we leave Heroku?")
    assert ask(clawdbot, "left Heroku") and not ask(openclaw, '"') and not ask(clawdbot, "?!")
    basic = notes_index(tmp_path / "memory.db")
    assert ask(basic, "hero left") == ask(basic, "why Heroku") == [("memory/2026-02-03.md", "We left Heroku")]
    assert ask(basic, "nothing") == []


@pytest.fixture
def recalling() -> Iterator[str]:
    """A Hindsight that answers every recall with one memory, and its URL."""

    class Recall(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            body = json.dumps({"results": [{"id": "a1", "text": f"heard: {asked['query']}"}]}).encode()
            self.send_response(200 if self.path == "/v1/default/banks/b/memories/recall" else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Recall)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1/default/banks/b"
    server.shutdown()
    server.server_close()
    thread.join()


def test_hindsight_answers_for_itself(shell: Shell, tmp_path: Path, recalling: str) -> None:
    unit = {"id": "a1", "fact_type": "world", "text": "We left Heroku."}
    source = made(tmp_path, "hs", {"b.json": json.dumps([unit])})
    asked = ("import", "hindsight", source, "--compare", "-")
    printed = shell.ok(*asked, "--old", recalling, "--json", stdin="Heroku\n").json
    assert printed["compared"][0]["old"] == [{"path": "a1", "score": 0.0, "snippet": "heard: Heroku"}]
    assert "does not answer" in shell(*asked, "--old", f"{recalling}/x", stdin="Heroku\n").err
    alone = shell.ok(*asked, "--json", stdin="Heroku\n").json
    assert "to compare with Hindsight itself" in alone["old"]["note"] and alone["compared"][0]["old"]
