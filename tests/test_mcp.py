"""The MCP server: what it says of itself is what the official SDK says, and a model can act on its errors."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from banks import new_bank
from daemons import Place

from ua_memory.mcp import relay
from ua_memory.mcp import tools as mcp_server
from ua_memory.mcp.tools import make_server
from ua_memory.memory import Memory
from ua_memory.text import tokens

ROOT = Path(__file__).parent.parent
FILE = ROOT / "ua_memory" / "data" / "mcp.json"
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
META = {
    relay.MODERN_KEY: "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
READ = {"uri": "memory://core", "mimeType": "text/markdown", "text": "a text"}
LISTS = ("tools/list", "prompts/list", "resources/list", "resources/templates/list")
SDK = f"""
import asyncio
from mcp.server.stdio import stdio_server
from ua_memory.mcp.tools import make_server

async def main():
    made = make_server(lambda asked: {{"resources": [], "text": "a text", "failed": False}}, {VERSION!r})
    async with stdio_server() as (reads, writes):
        await made.run(reads, writes, made.create_initialization_options())

asyncio.run(main())
"""


def spoken(argv: list[str], rows: list[Any], **more: Any) -> list[Any]:
    """What an MCP server over stdio answers to these lines, in order."""
    given = "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows)
    done = subprocess.run(argv, input=given, capture_output=True, text=True, timeout=60, check=False, **more)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def asks(method: str, number: int, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


HELLO = asks(
    "initialize", 0, protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "t", "version": "1"}
)
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def sdk(rows: list[Any]) -> dict[int, Any]:
    # The SDK answers as it is done, not in order, and ends with its input: it is asked one at a time.
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", SDK], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert process.stdin and process.stdout
    found = {}
    with process:
        for row in rows:
            process.stdin.write(json.dumps(row) + "\n")
            process.stdin.flush()
            if "id" in row:
                answer = json.loads(process.stdout.readline())
                found[answer["id"]] = answer["result"]
        process.stdin.close()
    return found


def listing() -> bytes:
    """What the SDK says, but that we announce no changes of lists."""
    from mcp.types.version import HANDSHAKE_PROTOCOL_VERSIONS

    sets = {name: list(names) for name, names in mcp_server.SETS.items()}
    known: dict[str, Any] = {"versions": sorted(HANDSHAKE_PROTOCOL_VERSIONS), "sets": sets}
    for era, first, params in (
        ("legacy", HELLO, {}),
        ("modern", asks("server/discover", 0, _meta=META), {"_meta": META}),
    ):
        rows = [first, *([READY] if era == "legacy" else [])]
        rows += [asks(method, n, **params) for n, method in enumerate(LISTS, 1)]
        found = sdk([*rows, asks("resources/read", 9, uri="memory://core", **params)])
        found[0]["capabilities"] = {name: {"listChanged": False} for name in found[0]["capabilities"]}
        shown = found[1].pop("tools")
        assert known.setdefault("tools", shown) == shown
        known[era] = {first["method"]: found[0], **{method: found[n] for n, method in enumerate(LISTS, 1)}}
        assert found[9]["contents"] == [READ]
        known[era]["resources/read"] = {**found[9], "contents": []}
    known["legacy"]["ping"] = {}
    return json.dumps(known, indent=1).encode() + b"\n"


@pytest.mark.slow
def test_what_the_relay_says_is_what_the_sdk_says(golden: Callable[[Path, bytes], None]) -> None:
    golden(FILE, listing())


def tools() -> list[Any]:
    found: list[Any] = json.loads(FILE.read_bytes())["tools"]
    return found


def test_the_tools_have_the_names_and_arguments_of_the_contract() -> None:
    contract = {
        "archival_memory_insert": ["content", "tags"],
        "archival_memory_search": ["query", "limit", "since", "until"],
        "core_memory_replace": ["section", "value"],
        "get_core_memory_blocks": [],
        "list_pages": ["folder"],
        "get_page": ["id"],
        "create_page": ["id", "name", "source_query"],
        "recall": ["query", "max_tokens", "budget"],
        "ingest": ["title", "content"],
        "retire": ["id", "by", "why"],
        "list_facts": ["person", "session", "kinds"],
        "correct_fact": ["id", "content"],
        "reflect": ["query", "budget", "max_tokens"],
        "update_page": ["id", "name", "source_query"],
        "delete_page": ["id"],
        "refresh_page": ["id"],
        "retain": ["content", "context", "tags", "document_id", "update_mode", "timestamp", "metadata"],
        "ingest_file": ["file_path"],
        "list_documents": [],
        "list_tags": ["query"],
        "list_directives": [],
        "list_banks": [],
        "memory_search": ["query", "maxResults", "minScore", "corpus"],
        "memory_get": ["path", "from", "lines", "corpus"],
    }
    shown = {tool["name"]: list(tool["inputSchema"]["properties"]) for tool in tools()}
    assert list(shown) == list(contract)
    for tool in tools():
        wanted = contract[tool["name"]]
        more = set(shown[tool["name"]]) - set(wanted)
        assert shown[tool["name"]][: len(wanted)] == wanted
        assert not more or (tool["name"] in ("recall", "reflect", "list_facts") and "tags" in more)
        assert len(tool["description"]) > 20 and "outputSchema" not in tool
        assert "body" not in shown[tool["name"]], "agents say what a page tracks, never its text"


def test_what_tools_do_to_a_bank_is_told_before() -> None:
    told = {tool["name"]: tool["annotations"] for tool in tools()}
    reads = {name for name, each in told.items() if each["readOnlyHint"]}
    assert reads == {
        "archival_memory_search", "get_core_memory_blocks", "recall", "reflect", "list_pages", "get_page",
        "list_facts", "list_documents", "list_tags", "list_directives", "list_banks", "memory_search",
        "memory_get",
    }  # fmt: skip
    assert {name for name, each in told.items() if each.get("destructiveHint")} == {
        "retire", "correct_fact", "core_memory_replace", "update_page", "delete_page", "refresh_page",
        "retain", "ingest", "ingest_file",
    }  # fmt: skip
    asking = {name for name, each in told.items() if each["openWorldHint"]}
    assert asking == relay.MAY_ASK_A_MODEL, "what may ask a model is never done by the daemon"


MOST_TOKENS = 1500
"""Of the default set, which some clients send with each request."""


def test_the_default_set_is_small() -> None:
    """Sixteen tools took 2,500 tokens of each request of pi."""
    sent = {tool["name"]: json.dumps(tool, ensure_ascii=False, separators=(",", ":")) for tool in tools()}
    size = {name: tokens.count(text) for name, text in sent.items()}
    for name in ("default", "openclaw"):
        assert len(mcp_server.SETS[name]) <= 10
        assert sum(size[each] for each in mcp_server.SETS[name]) < MOST_TOKENS, size
    assert list(sent)[:10] == list(mcp_server.SETS["default"]), "they are listed first"


def test_the_sdks_server_hands_its_calls_on() -> None:
    from mcp import Client, MCPError

    asked: list[Mapping[str, Any]] = []

    def answer(given: Mapping[str, Any]) -> Mapping[str, Any]:
        asked.append(given)
        if "resources" in given:
            return {"resources": [{"uri": "memory://core", "name": "core", "mimeType": "text/markdown"}]}
        return {"missing": "gone"} if given.get("read") == "memory://x" else {"text": "done", "failed": True}

    async def talk() -> None:
        async with Client(make_server(answer, VERSION, ["memory_get"])) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == ["memory_get"]
            found = await client.call_tool("memory_get", {"path": "x", "from": 3})
            assert found.content[0].text == "done" and found.structured_content is None  # type: ignore[union-attr]
            assert found.is_error
            assert str((await client.list_resources()).resources[0].uri) == "memory://core"
            with pytest.raises(MCPError, match="gone"):
                await client.read_resource("memory://x")
            with pytest.raises(MCPError, match="unknown tool"):
                await client.call_tool("retain", {"content": "x"})

    asyncio.run(talk())
    assert asked[0] == {"tool": "memory_get", "arguments": {"path": "x", "from": 3}}


CALLS: list[tuple[str, dict[str, Any]]] = [
    ("archival_memory_insert", {"content": "The gate is green", "tags": ["garden"]}),
    ("archival_memory_insert", {"content": "The door is blue"}),
    ("archival_memory_search", {"query": "gate"}),
    ("core_memory_replace", {"section": "Me", "value": "Short answers."}),
    ("get_core_memory_blocks", {}),
]


# -- what tools do -----------------------------------------------------------------------------------------


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory(new_bank(tmp_path / "bank").store, door="mcp") as found:
        yield found


def test_where_memory_is_off_no_tool_does_anything(tmp_path: Path) -> None:
    """`UA_MEMORY_ENABLED=0` let every one of them go on writing."""
    bank = new_bank(tmp_path / "bank")
    before = {file: file.read_bytes() for file in (tmp_path / "bank").rglob("*") if file.is_file()}
    off = Memory.open(bank.root, config=replace(bank.store.config, enabled=False), door="mcp")
    for name in mcp_server.TOOLS:
        text, failed = mcp_server.call_tool(off, name, {}, mcp_server.Caller())
        assert failed and "Memory is off" in text, name
    caller = mcp_server.Caller()
    assert mcp_server.answer_request(off, {"resources": True}, caller) == {"resources": []}
    assert (
        "Memory is off" in mcp_server.answer_request(off, {"read": "memory://MEMORY.md"}, caller)["missing"]
    )
    assert before == {file: file.read_bytes() for file in (tmp_path / "bank").rglob("*") if file.is_file()}


@pytest.mark.parametrize("daemon", ["off", "auto"])
def test_the_variable_switches_the_servers_tools_off(tmp_path: Path, daemon: str) -> None:
    place = Place(new_bank(tmp_path / "bank").root)
    asked = {"name": "archival_memory_insert", "arguments": {"content": "The gate is green"}}
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": asked}) + "\n"
    try:
        done = place.run("mcp", daemon=daemon, stdin=line, UA_MEMORY_ENABLED="0")
        assert done.err == "" and done.json["result"]["isError"] and "Memory is off" in done.out
        assert not list((place.root / "memory").glob("*.md"))
        assert "Memory is off" not in place.run("mcp", daemon=daemon, stdin=line).out
        assert list((place.root / "memory").glob("*.md"))
    finally:
        place.kill()


def test_what_is_not_trusted_is_said_once_a_server_beside_the_protocol(tmp_path: Path) -> None:
    place = Place(new_bank(tmp_path / "bank").root)
    file = place.root / "ua-memory.toml"
    file.write_text(f'extraPaths = ["~/private"]\n{file.read_text()}')
    asked = {"name": "archival_memory_search", "arguments": {"query": "gate"}}
    lines = [{"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": asked} for n in (1, 2)]
    done = place.run("mcp", daemon="off", stdin="".join(json.dumps(each) + "\n" for each in lines))
    assert [json.loads(row)["id"] for row in done.out.splitlines()] == [1, 2]
    assert done.err.count("extraPaths") == 1 and "ua-memory trust" in done.err


def test_tools_do_what_they_say(memory: Memory) -> None:
    who = mcp_server.Caller("claude-code", "8f2c")
    said = [mcp_server.call_tool(memory, name, given, who) for name, given in CALLS]
    assert not any(failed for _, failed in said)
    texts = [text for text, _ in said]
    assert texts[0].startswith("Remembered: ^") and "The gate is green" in texts[2]
    assert texts[2].startswith('<ua-memory-recall kind="search">') and "## Me\nShort answers." in texts[4]
    assert texts[3] == "Added core block 'Me'."
    again = mcp_server.call_tool(memory, "archival_memory_insert", CALLS[0][1], who)[0]
    assert "Already known" in again
    day = (memory.store.bank.root / "memory").glob("*.md")
    assert "claude-code · session 8f2c" in "".join(file.read_text() for file in day)
    assert [r.trailer("Door") for r in memory.history.log(limit=4)] == ["mcp"] * 4
    for tags in ("people,drinks", "#people, #drinks", '["people", "drinks"]'):
        given = {"content": f"Bob likes tea, said as {len(tags)}", "tags": tags}
        assert not mcp_server.call_tool(memory, "archival_memory_insert", given, who)[1]
        with_both = memory.filters(tags=["people", "drinks"], match="all_strict")
        hits = memory.search_many([given["content"]], filters=with_both, by_words=True)[0].hits
        assert given["content"] in [hit.item.text for hit in hits]
    secret = "ghp_" + "abcdefghijklmnopqrstuvwxyz0123456789"
    assert (
        "Removed before writing: github-token."
        in mcp_server.call_tool(memory, "archival_memory_insert", {"content": f"the token is {secret}"}, who)[
            0
        ]
    )


def test_a_machine_without_room_for_a_process_or_thread_is_told_of(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_args: Any, **_more: Any) -> Any:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    def none(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(subprocess, "Popen", full)
    relay.start_daemon(["mcp"])
    assert "the daemon cannot be started: Resource temporarily unavailable" in capsys.readouterr().err
    monkeypatch.setattr(threading.Thread, "start", none)
    one = relay.Relay(relay.read_tool_data(), ["mcp"], "off")
    asked = {"name": "archival_memory_search", "arguments": {"query": "x"}}
    one.handle_line(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": asked}).encode())
    one.finish()
    assert "Memory cannot be used now" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "given", "says"),
    [
        ("archival_memory_search", {}, "query is missing"),
        ("archival_memory_search", {"query": " "}, "query is empty"),
        ("archival_memory_search", {"query": "*"}, "no word to search for"),
        ("archival_memory_search", {"query": ["gate"]}, "query must be a string"),
        ("correct_fact", {"id": "k7m2q9x4tb", "content": "x"}, "^k7m2q9x4tb"),
        ("list_facts", {"person": "Nobody Here"}, "not a name: call archival_memory_search 'Nobody Here'."),
        ("reflect", {"query": ""}, "query is empty. Hint: pass query (a string)."),
        ("retire", {"id": "MEMORY.md"}, "name ^id or PATH:LINE, as archival_memory_search prints them"),
        ("retain", {"content": "x", "metadata": {"session": "x"}}, "cannot be a key of metadata"),
        ("retain", {"content": "x", "timestamp": "soon"}, "not a valid time (timestamp)"),
        ("retain", {"content": "x", "timestamp": "2026"}, "'2026' is not a valid time (timestamp)"),
        ("recall", {"query": "x", "query_timestamp": "soon"}, "not a valid time (query_timestamp)"),
        ("recall", {"query": "x", "since": "soon"}, "not a valid date (since)"),
        ("list_facts", {"until": "soon"}, "not a valid date (until)"),
        ("recall", {"query": "x", "tags_match": "most"}, "not one of any_strict"),
        ("refresh_page", {"id": "nope"}, "Hint: call list_pages."),
        ("archival_memory_search", {"q": "x"}, "unknown argument q"),
        ("archival_memory_search", ["x"], "must be an object"),
        ("recall", {"query": "x", "budget": "huge"}, "not one of low, mid, high"),
        ("recall", {"query": "x", "max_tokens": 0}, "at least 1"),
        ("recall", {"query": "x", "min_score": 7}, "min_score must be at most 1"),
        ("recall", {"query": "word " * 500}, "2,000 are the most"),
        ("archival_memory_search", {"query": "word " * 500}, "2,000 are the most"),
        ("get_page", {"id": "nope"}, "Hint: call list_pages."),
        ("update_page", {"id": "nope"}, "nothing to change"),
        ("delete_page", {"id": "nope"}, "Hint: call list_pages."),
        ("ingest", {"title": " ", "content": "x"}, "title is empty"),
        ("ingest_file", {"file_path": "x.md"}, "may not read any folder"),
        ("archival_memory_insert", {"content": "x", "tags": 7}, "tags must be a list of strings"),
        ("archival_memory_insert", {"content": "  "}, "Hint"),
        ("core_memory_replace", {"section": "A", "value": "## B\nx"}, "use ###"),
        ("core_memory_replace", {"section": "A", "value": "word " * 9000}, "budget"),
    ],
)  # fmt: skip
def test_an_error_gives_a_hint(memory: Memory, name: str, given: Any, says: str) -> None:
    text, failed = mcp_server.call_tool(memory, name, given, mcp_server.Caller())
    assert failed and says in text and text.startswith(f"{name} failed: ") and "Hint" in text, text


def said(memory: Memory, tool: str, caller: mcp_server.Caller | None = None, /, **given: Any) -> str:
    text, failed = mcp_server.call_tool(memory, tool, given, caller or mcp_server.Caller())
    assert not failed, text
    return text


def test_what_models_write_for_nothing_is_nothing(memory: Memory) -> None:
    empty = {"since": "", "until": "", "tags_match": "", "budget": "", "query_timestamp": ""}
    said(memory, "archival_memory_insert", content="Noor fires the kiln on Fridays.", tags=[None, "kiln"])
    assert "kiln on Fridays" in said(
        memory, "recall", query="when is the kiln fired?", tags=["kiln"], **empty
    )


def test_a_search_says_first_that_it_has_no_answer_or_none_from_these_days(memory: Memory) -> None:
    """Of other days, too, it said "What memory has on this", and that they are no answer below the lines."""
    said(memory, "archival_memory_insert", content="Noor fires the kiln on Fridays.")
    for query, begins in (
        ("when is the kiln fired", "What memory has on this"),
        ("who painted the ceiling on Fridays", "Memory has no answer to this. The nearest lines follow."),
        ("when was the kiln fired in July 2024", "Memory has nothing on this from 2024-07-01 to 2024-07-31."),
    ):
        lines = said(memory, "archival_memory_search", query=query).splitlines()
        assert lines[1].startswith(begins) and "kiln on Fridays" in lines[2], lines
    for day in range(5):
        said(memory, "archival_memory_insert", content=f"Crew {day} cleans the glaze room on Fridays.")
    for limit in ({}, {"limit": 5}):
        text = said(memory, "archival_memory_search", query="who painted the ceiling on Fridays", **limit)
        assert "no answer" in text and text.count("\n- ") == limit.get("limit", 3)


def test_a_time_may_be_given_in_words(memory: Memory) -> None:
    text = "The jury meets in the blue room and needs nine chairs."
    said(memory, "retain", content=text, timestamp="24.11.2024")
    assert "nine chairs" in said(memory, "list_facts", since="Nov 24, 2024", until="2024-11-24")


def test_a_long_fact_does_not_fill_a_list(memory: Memory) -> None:
    said(memory, "archival_memory_insert", content="clay " * 4000)
    assert len(said(memory, "list_facts")) < 4000


def test_an_empty_value_empties_a_core_block(memory: Memory) -> None:
    said(memory, "core_memory_replace", section="Work", value="Noor leads the kiln project.")
    said(memory, "core_memory_replace", section="Work", value="")
    listed = said(memory, "get_core_memory_blocks")
    assert "## Work\n(empty)" in listed and "kiln" not in listed


def test_a_page_is_declared_and_memory_writes_it(memory: Memory) -> None:
    said(
        memory,
        "archival_memory_insert",
        content="Heroku doubled its price: Alice moved the API to Fly.io.",
    )
    assert "get_page shows its text" in said(
        memory, "create_page", id="hosting", name="Hosting", source_query="where does the API run?"
    )
    page = said(memory, "get_page", id="Hosting")
    for cited in ("hosting.md", "memory/pages/hosting.md", "memory/pages/hosting.md#L9-L12", "[[hosting]]"):
        assert said(memory, "get_page", id=cited) == page
    assert page.startswith('<ua-memory-recall kind="page">') and "Fly.io" in page
    said(memory, "archival_memory_insert", content="Bob moved the API on to Hetzner in May.")
    assert "refresh_page rewrites it" in said(memory, "get_page", id="hosting")
    assert "- hosting: Hosting. Tracks: where does the API run?" in said(memory, "list_pages")
    assert "Changed" in said(memory, "update_page", id="hosting", name="Where things run")
    found = mcp_server.answer_request(memory, {"resources": True}, mcp_server.Caller())["resources"]
    uris = [row["uri"] for row in found]
    assert uris[0] == "memory://core" and "memory://page/hosting" in uris and "memory://day/" in uris[-1]
    for uri in uris:
        assert mcp_server.answer_request(memory, {"read": uri}, mcp_server.Caller())["text"]
    for odd in ("memory://page/../../etc/passwd", "file:///etc/passwd", "memory://day/2001-01-01", "x"):
        assert "missing" in mcp_server.answer_request(memory, {"read": odd}, mcp_server.Caller())
    assert "Deleted" in said(memory, "delete_page", id="hosting")


def test_recall_and_reflect_keep_to_what_is_asked(memory: Memory) -> None:
    for tag in ("garden", "house"):
        said(memory, "archival_memory_insert", content=f"The {tag} gate is green", tags=[tag])
    assert "house gate" not in said(memory, "recall", query="gate", tags=["garden"], budget="low")
    assert "nothing fits in 5 tokens" in said(memory, "recall", query="gate", max_tokens=5)
    assert "house gate" in said(memory, "recall", query="gate", tags='["house"]')
    text = said(memory, "reflect", query="which gate is green?")
    assert "garden gate" in text and "without a model" in text


def test_what_models_write_in_another_form_is_understood(memory: Memory) -> None:
    told = said(memory, "archival_memory_insert", content="The harbour gate is green", tags="gates, #harbour")
    block = told.partition("^")[2].split()[0]
    assert said(memory, "recall", query="gate", tags="harbour", max_tokens="500", limit=3.0)
    assert "green" in said(memory, "recall", query="gate", budget="LOW", kinds="world")
    assert said(memory, "archival_memory_insert", content=42).startswith("Remembered")
    text = mcp_server.call_tool(memory, "retire", json.dumps({"id": block, "why": 7}), mcp_server.Caller())
    assert not text[1] and f"Retired ^{block} in memory/" in text[0]
    assert text[0].endswith(": The harbour gate is green")  # so that a wrong id is seen
    for form in (f"^{block}", f" ^{block} ", f"`{block}`", f"#^{block}", f"[^{block}]"):
        assert f"^{block} was already retired: 20" in said(memory, "retire", id=form, why="other")
    assert "green" in said(memory, "list_facts", retired="true", tags=["gates"])
    assert "No facts match" in said(memory, "list_facts", retired=False, tags="gates", limit="5")


def test_facts_are_listed_corrected_and_retired(memory: Memory) -> None:
    for name in ("Alice", "Bob"):
        said(memory, "archival_memory_insert", content=f"{name} pays 40 euros for the kiln", tags=["money"])
    rows = said(memory, "list_facts", person="Alice")
    assert rows.startswith('<ua-memory-recall kind="list">') and "Bob" not in rows
    assert "1 older ones are not shown" in said(memory, "list_facts", limit=1)
    block = rows.partition("^")[2].split(")")[0]
    done = said(memory, "correct_fact", id=block, content="Alice pays 44 euros for the kiln")
    assert f"Corrected ^{block}" in done
    asked = {"query": "what does Alice pay for the kiln?"}
    assert "44 euros" in said(memory, "archival_memory_search", **asked)
    assert "44 euros" not in said(memory, "archival_memory_search", **asked, until="2020")
    text = memory.get(f"^{block}").text
    assert "was: Alice pays 40 euros" in text and "#money" in text
    again = said(memory, "correct_fact", id=block, content="Alice pays 44 euros for the kiln")
    assert f"^{block}" in again and memory.get(f"^{block}").text == text
    assert memory.history.log(limit=1)[0].trailer("Memory-Op") == "correct"
    file = memory.store.bank.root / "memory/notes.md"
    file.write_text("- Carol sails. ^typedbyher1\n- Dave sails. ^daves8ails\n")
    refused, failed = mcp_server.call_tool(
        memory, "correct_fact", {"id": "daves8ails", "content": "Dave rows."}, mcp_server.Caller()
    )
    assert failed and "a person wrote this line" in refused and "retire ^daves8ails with `by`" in refused
    assert file.read_text().count("sails") == 2


def test_what_a_bank_has_is_listed(memory: Memory, tmp_path: Path) -> None:
    assert "no tags yet" in said(memory, "list_tags") and "no documents" in said(memory, "list_documents")
    who = mcp_server.Caller("codex", "s1", said_in=("project:shop",), banks=lambda: [tmp_path / "other"])
    said(memory, "archival_memory_insert", who, content="The gate is green", tags=["garden", "gates"])
    said(memory, "archival_memory_insert", who, content="The wall is red", tags=["garden"])
    tags = said(memory, "list_tags")
    assert "- garden: 2\n- gates: 1" in tags and "project" not in tags
    assert "- project:shop: 2" in said(memory, "list_tags", query="project")
    assert str(tmp_path / "other") in said(memory, "list_banks", who) and "in use" in said(
        memory, "list_banks"
    )
    assert "directives add" in said(memory, "list_directives")
    memory.directives.add("Answer in metric units.", by_person=True)
    assert "1. Answer in metric units." in said(memory, "list_directives")
    said(memory, "create_page", id="garden", name="Garden", source_query="what is in the garden?")
    page = memory.store.bank.root / "memory/pages/garden.md"
    (page.parent / "home").mkdir()
    page.rename(page.parent / "home/garden.md")
    assert "(in home/)" in said(memory, "list_pages") and "garden" in said(
        memory, "list_pages", folder="home/"
    )
    assert "the folders are: home" in said(memory, "list_pages", folder="work")
    assert "Page 'garden'" in said(memory, "refresh_page", id="garden")


def test_a_text_has_its_time_and_metadata(memory: Memory) -> None:
    text = "We decided that Alice moves the API to Fly.io: Heroku costs 400 dollars."
    more = {"timestamp": "2026-03-05T10:00", "metadata": {"ticket": "SHOP-12", "lane": 3}}
    assert "memory/2026-03-05.md" in said(memory, "retain", content=text, **more)
    assert "Fly.io" in said(memory, "recall", query="Fly.io", tags=["ticket:SHOP-12", "lane:3"])
    assert "Fly.io" not in said(memory, "recall", query="Fly.io", tags=["ticket:SHOP-13"])
    said(memory, "retain", content=text.replace("Alice", "Bob"), document_id="minutes", **more)
    said(memory, "retain", content=text.replace("Alice", "Carol"), document_id="minutes",
         metadata='{"ticket": "SHOP-14"}')  # fmt: skip
    assert "minutes: 1 fact; memory/documents/minutes.md" in (found := said(memory, "list_documents"))
    assert "ticket:SHOP-14" in found and "SHOP-12" not in found and "lane:3" in found
    assert "Carol" in said(memory, "recall", query="Fly.io", tags=["ticket:SHOP-14"], tags_match="exact")
    asked = {"query": "what did we decide last week?", "query_timestamp": "2026-03-12"}
    assert "Alice" in said(memory, "recall", **asked, limit=1)
    assert "Alice" in said(memory, "recall", query="Fly.io", since="2026-03-05", until="2026-03-05")


def test_openclaws_tools_have_openclaws_keys(memory: Memory) -> None:
    said(memory, "archival_memory_insert", content="The harbour gate is green")
    found = json.loads(said(memory, "memory_search", query="harbour gate"))
    row = found["results"][0]
    assert {"path", "startLine", "endLine", "score", "snippet", "source", "corpus", "citation"} <= set(row)
    assert found["fallback"] is None and found["mode"] and row["score"] >= 0.35
    assert json.loads(said(memory, "memory_search", query="harbour gate", corpus="wiki"))["results"] == []
    read = json.loads(said(memory, "memory_get", path=row["path"], **{"from": row["startLine"], "lines": 1}))
    assert read["status"] == "ok" and "harbour gate" in read["text"] and read["from"] == row["startLine"]
    assert json.loads(said(memory, "memory_get", path="memory/2001-01-01.md"))["status"] == "not_found"
    for outside in ("/etc/passwd", "../../etc/passwd", "ua-memory.toml"):
        got = json.loads(said(memory, "memory_get", path=outside))
        assert got["status"] in ("error", "not_found") and got["text"] == ""
    log = memory.store.bank.root / row["path"]
    log.write_text(log.read_text() + "".join(f"- line {n}\n" for n in range(200)))
    long = json.loads(said(memory, "memory_get", path=row["path"], lines=3))
    assert long["truncated"] and long["nextFrom"] == 4 and "Use from=4" in long["text"]


def test_secrets_that_a_person_wrote_are_masked(memory: Memory) -> None:
    secret = "ghp_" + "abcdefghijklmnopqrstuvwxyz0123456789"
    file = memory.store.bank.root / "memory" / "notes.md"
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"- the key\n- {secret}\n- the third line\n")
    read = json.loads(said(memory, "memory_get", path="memory/notes.md", **{"from": 2}))
    assert secret not in read["text"] and read["text"].endswith("the third line") and read["lines"] == 2


def test_a_text_is_retained_now_or_behind_the_call(memory: Memory) -> None:
    text = "We decided on 2026-11-02 that Alice moves the API to Fly.io: Heroku costs 400 dollars."
    now = said(memory, "ingest", title="Minutes", content=text)
    assert (
        "1 kept" in now
        and "Fly.io" in now
        and "has not changed" in said(memory, "ingest", title="Minutes", content=text)
    )
    begun: list[Any] = []
    who = mcp_server.Caller(
        model=memory.endpoint("key"), run_detached=lambda words: begun.append(words) or "log"
    )
    assert "is saved" in said(memory, "retain", who, content=text + " Bob agreed.")
    assert "being written" in said(memory, "create_page", who, id="a", name="A", source_query="what?")
    waits = memory.queue.texts()
    assert begun == [("queue", "retry", waits[0].key), ("pages", "refresh", "a")]


def test_a_file_is_read_from_the_callers_folder_alone(memory: Memory, tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / ".ssh").mkdir(parents=True)
    for name in ("notes.md", ".env", ".ssh/key", "../outside.md"):
        (project / name).write_text("Alice pays 400 dollars a month for Heroku since 2026-11-02.\n")
    (project / "link.md").symlink_to("../outside.md")
    who = mcp_server.Caller(folders=(project,))
    assert "Heroku" in said(memory, "ingest_file", who, file_path="notes.md")
    for name in (
        ".env",
        ".ssh/key",
        "../outside.md",
        "link.md",
        str(tmp_path / "outside.md"),
        "none.md",
        "\0",
    ):
        text, failed = mcp_server.call_tool(memory, "ingest_file", {"file_path": name}, who)
        assert failed and "Hint" in text, (name, text)
    root = mcp_server.Caller(folders=(Path("/"),))
    assert mcp_server.call_tool(memory, "ingest_file", {"file_path": str(project / "notes.md")}, root)[1]


def test_python_recalls_as_the_command_does(memory: Memory) -> None:
    memory.insert("The harbour gate is green", tags=["harbour"])
    found = memory.recall("harbour gate", budget="low", filters=memory.filters(tags=["harbour"]))
    assert "is green" in found.block and found.most == 600 and not found.left
    assert memory.recall("harbour gate", filters=memory.filters(tags=["other"])).block == ""


def test_settings_take_tools_away(memory: Memory) -> None:
    memory.store.config = replace(memory.config, mcp_read_only=True)
    assert set(mcp_server.offered_tools(memory.config, ["all"])) == set(
        mcp_server.enabled_tools(memory.config)
    )
    assert "retain" not in mcp_server.offered_tools(memory.config, ["documents"])
    assert set(mcp_server.enabled_tools(memory.config)) == {
        tool["name"] for tool in tools() if tool["annotations"]["readOnlyHint"]
    }
    text, failed = mcp_server.call_tool(memory, "retain", {"content": "x"}, mcp_server.Caller())
    assert failed and "disabled in the user's settings" in text
    memory.store.config = replace(memory.config, mcp_tools=("recall", "retain"))
    assert mcp_server.enabled_tools(memory.config) == ["recall"]


# -- the relay ---------------------------------------------------------------------------------------------


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    found = Place(new_bank(tmp_path / "bank").root)
    yield found
    found.kill()


def relayed(place: Place, rows: list[Any], daemon: str) -> list[Any]:
    argv = [sys.executable, "-P", "-m", "ua_memory", "mcp"]
    return spoken(argv, rows, cwd=place.root, env=place.environment(daemon))


def relayed_without_start(place: Place, *rows: Any) -> list[Any]:
    """The same without a daemon, and without the second that a process takes to start."""
    done = place.run("mcp", daemon="off", stdin="".join(json.dumps(row) + "\n" for row in rows))
    assert done.code == 0, done.err
    return [json.loads(line) for line in done.out.splitlines()]


def test_it_speaks_both_eras(place: Place) -> None:
    rows = [HELLO, READY, asks("tools/list", 1), asks("ping", 2), asks("prompts/list", "three")]  # type: ignore[arg-type]
    rows += [asks("initialize", 4, protocolVersion="1999-01-01"), asks("tools/list", 5, _meta=META)]
    rows += [asks("server/discover", 6, _meta=META), asks("ping", 7, _meta=META)]
    said = relayed(place, rows, "off")
    assert [each["id"] for each in said] == [0, 1, 2, "three", 4, 5, 6, 7]
    found = {each["id"]: each.get("result") for each in said}
    assert found[0]["protocolVersion"] == "2025-06-18" and found[0]["serverInfo"]["version"] == VERSION
    assert found[4]["protocolVersion"] in json.loads(FILE.read_bytes())["versions"] and found[2] == {}
    assert found[1]["tools"] == found[5]["tools"] == tools()[:10] and found[5]["resultType"] == "complete"
    assert found[6]["supportedVersions"] == ["2026-07-28"] and said[7]["error"]["code"] == -32601


def test_a_broken_line_is_answered_and_the_next_too(place: Place) -> None:
    rows = ["", "{", "\x00\xff", "[]", "7", '{"id": 1}', '{"jsonrpc": "2.0", "id": 2, "method": 3}']
    rows += [
        '{"jsonrpc": "2.0", "id": 3, "method": "x", "params": []}',
        '{"jsonrpc": "2.0", "id": 9, "result": {}}',
    ]
    rows += [
        "[" * 100_000,
        '{"jsonrpc": "2.0", "id": {}, "method": "no/such"}',
        '{"jsonrpc": "2.0", "id": null, "method": "tools/list"}',
        "x" * (relay.LARGEST_LINE + 1),
    ]
    rows += [json.dumps(asks("tools/call", 4, name="archival_search")), json.dumps(asks("ping", 5))]
    said = relayed(place, rows, "off")
    codes = [each["error"]["code"] if "error" in each else each["id"] for each in said]
    assert codes == [
        *(-32700, -32700, -32600, -32600, -32600, -32600, -32600), -32700, -32600, -32600, -32600, -32602, 5,
    ]  # fmt: skip
    assert said[-2]["error"]["message"].endswith("did you mean archival_memory_search?")


def test_a_line_that_is_too_long_is_answered_by_its_id(place: Place) -> None:
    given = {"name": "archival_memory_insert", "arguments": {"content": "x" * relay.LARGEST_LINE, "id": "no"}}
    call = {"method": "tools/call", "params": given}
    rows = [{"jsonrpc": "2.0", "id": "a", **call}, {**call, "jsonrpc": "2.0", "id": 2}, {**call, "x": 1}]
    rows += [{"id": 4, "params": given, "jsonrpc": "2.0", "method": "ping"}]
    said = relayed(place, [json.dumps(row) for row in rows], "off")
    assert [each["id"] for each in said] == ["a", 2, None, 4]
    for each in said[:2]:
        assert each["result"]["isError"] and "use ingest_file" in each["result"]["content"][0]["text"]
    assert "too long" in said[3]["error"]["message"]


@pytest.mark.parametrize("number", [b'"a\tb"', b"007", b'"\xff"', b"1.5", b"1e3", b"-"])
def test_a_line_that_is_too_long_is_answered_whatever_its_id(
    capsys: pytest.CaptureFixture[str], number: bytes
) -> None:
    server = relay.Relay(relay.read_tool_data(), ["mcp"], "off")
    call = b'"method":"tools/call","params":"' + b"x" * relay.LARGEST_LINE
    for line in (b'{"id":' + number + b"," + call + b'"}\n', b"{" + call + b'","id":' + number + b"}\n"):
        server.handle_line(line)
        said = json.loads(capsys.readouterr().out)
        assert said["id"] is None and "too long" in said["error"]["message"]


@pytest.mark.parametrize("daemon", ["off", "auto"])
def test_a_tool_is_called(place: Place, daemon: str) -> None:
    if daemon == "auto":
        assert place.run("daemon", "start").code == 0
    rows = [
        HELLO,
        READY,
        *(asks("tools/call", n, name=name, arguments=given) for n, (name, given) in enumerate(CALLS, 1)),
    ]
    rows.append(asks("tools/call", 9, name="archival_memory_search", _meta=META))
    done = place.run("mcp", daemon=daemon, stdin="".join(json.dumps(row) + "\n" for row in rows))
    said = {each["id"]: each["result"] for each in map(json.loads, done.out.splitlines())}
    texts = [said[n]["content"][0]["text"] for n in range(1, 6)]
    assert (
        texts[0].startswith("Remembered: ^") and "gate is green" in texts[2] and "Short answers" in texts[4]
    )
    assert not any(said[n]["isError"] for n in range(1, 6))
    assert said[9]["isError"] and "query is missing" in said[9]["content"][0]["text"]
    assert said[9]["resultType"] == "complete"
    if daemon == "auto":
        assert place.status()["commands"] >= 6  # type: ignore[index]


def test_it_lists_the_tools_that_settings_leave(place: Place) -> None:
    rows = [asks("tools/list", 1), asks("resources/list", 2), asks("resources/read", 3, uri="memory://nope")]
    place.env = {"UA_MEMORY_MCP_TOOLS": "recall, retain"}
    settings = place.root / "ua-memory.toml"
    settings.write_text(settings.read_text() + "\n[mcp]\nread_only = true\ntools = []\n")
    said = {each["id"]: each for each in relayed_without_start(place, *rows)}
    assert [tool["name"] for tool in said[1]["result"]["tools"]] == ["recall"]
    assert said[2]["result"]["resources"][0]["uri"] == "memory://core"
    assert said[3]["error"] == {
        "code": -32602, "message": "memory://nope: no such resource", "data": {"uri": "memory://nope"}
    }  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "settings", "names"),
    [
        (["--tools", "all"], None, list(mcp_server.TOOLS)),
        (["--tools=recall, pages"], None, mcp_server.expand_names(["recall", "pages"])),
        (["--tools", "openclaw"], None, mcp_server.expand_names(["openclaw"])),
        ([], "core,recall", mcp_server.expand_names(["core", "recall"])),
        (["--tools", "core,retain"], "core,recall", mcp_server.expand_names(["core"])),
    ],
)
def test_a_client_asks_for_tools_by_name_or_set(
    place: Place, asked: list[str], settings: str | None, names: list[str]
) -> None:
    place.env = {"UA_MEMORY_MCP_TOOLS": settings} if settings else {}
    refused = next(name for name in mcp_server.TOOLS if name not in names) if len(names) < 24 else "no_tool"
    call = asks("tools/call", 2, name=refused, arguments={})
    rows = "".join(json.dumps(row) + "\n" for row in (asks("tools/list", 1), call))
    done = place.run("mcp", *asked, daemon="off", stdin=rows)
    said = [json.loads(line) for line in done.out.splitlines()]
    assert [tool["name"] for tool in said[0]["result"]["tools"]] == names and not done.err
    assert said[1].get("error") or said[1]["result"]["isError"], refused


def test_a_tool_that_settings_misspell_is_told(place: Place) -> None:
    place.env = {"UA_MEMORY_MCP_TOOLS": "bogus,recal,core"}
    wrong = "mcp.tools: no tool or set of tools is called bogus, recal; did you mean recall?\n"
    rows = "".join(json.dumps(asks("tools/list", number)) + "\n" for number in (1, 2))
    assert place.run("mcp", daemon="off", stdin=rows).err == f"ua-memory: {wrong}"
    checked = place.run("doctor", daemon="off")
    assert checked.code == 12 and "did you mean recall?" in checked.out
    assert "did you mean recall?" in place.run("mcp", "--tools", "recal", daemon="off").err


def test_it_ends_quietly_when_nobody_reads_its_answers(place: Place) -> None:
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "ua_memory", "mcp"], cwd=place.root, env=place.environment("off"),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as server:  # fmt: skip
        assert server.stdin and server.stdout and server.stderr
        server.stdout.close()
        server.stdin.write(json.dumps(asks("ping", 1)).encode() + b"\n")
        server.stdin.flush()
        assert server.stderr.read() == b"" and server.wait(20) == 141


@pytest.mark.parametrize("wrong", [["--tools", "recall,forget"], ["--tool", "all"], ["all"]])
def test_a_command_line_that_it_does_not_know_is_an_error_at_once(place: Place, wrong: list[str]) -> None:
    done = place.run("mcp", *wrong, daemon="off", stdin=json.dumps(asks("ping", 1)) + "\n")
    assert done.code == 2 and not done.out
    if "--tools" in wrong:
        assert "called forget" in done.err and "openclaw" in done.err and "correct_fact" in done.err


def test_without_a_bank_it_says_how_to_make_one(tmp_path: Path) -> None:
    place = Place(tmp_path)
    said = relayed_without_start(place, asks("tools/call", 1, name="get_core_memory_blocks"))
    text = said[0]["result"]["content"][0]["text"]
    assert said[0]["result"]["isError"] and "ua-memory init" in text


def test_a_call_that_waits_for_a_model_holds_up_no_other(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    go, killed, begun = threading.Event(), threading.Event(), threading.Semaphore(0)

    def ask(_words: Any, request: dict[str, Any], _mode: str, running: list[Any]) -> dict[str, Any]:
        running.append(killed.set)
        if request["tool"] == "reflect":
            begun.release()
            assert go.wait(10)
        return {"text": request["client"], "failed": False}

    monkeypatch.setattr(relay, "ask_memory", ask)
    one = relay.Relay(relay.read_tool_data(), ["mcp"], "off")
    hello = HELLO["params"] | {"clientInfo": {"name": "codex-mcp-client", "version": "1"}}
    call = {"name": "recall", "arguments": {}}
    rows = [asks("initialize", 0, **hello), asks("tools/call", 1, name="reflect")]
    rows += [asks("tools/call", 2, name="reflect"), asks("tools/call", 3, **call)]
    for row in rows:
        one.handle_line(json.dumps(row).encode())
    assert begun.acquire(timeout=10) and begun.acquire(timeout=10)
    one.handle_line(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}')
    assert killed.is_set()
    go.set()
    one.finish()
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["id"] for each in told] == [0, 3, 2]
    assert told[1]["result"]["content"] == [{"type": "text", "text": "codex"}]


def test_requests_at_once_start_one_child_where_no_daemon_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    children: list[str] = []

    def ask_daemon(*_given: Any) -> tuple[dict[str, Any] | None, str]:
        return ({"text": "daemon"}, "") if children else (None, relay.connect.NOT_RUNNING)

    def ask_child(*_given: Any) -> dict[str, Any]:
        time.sleep(0.2)
        children.append("")
        return {"text": "child"}

    monkeypatch.setattr(relay, "_ask_daemon", ask_daemon)
    monkeypatch.setattr(relay, "_ask_child", ask_child)
    lock, found = threading.Lock(), list[str]()

    def ask() -> None:
        found.append(relay.ask_memory(["mcp"], {"tool": "recall"}, "auto", [], lock)["text"])

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(found) == ["child", *["daemon"] * 7]


def test_the_relay_loads_nothing_heavy(place: Place) -> None:
    code = (
        "import sys\nfrom ua_memory.cli import fast\n"
        "fast._exit = lambda code: (print(*sorted(sys.modules), file=sys.stderr), sys.exit(code))\n"
        "fast.main()"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, "mcp"], input=json.dumps(HELLO) + "\n", cwd=place.root,
        env=place.environment("off"), capture_output=True, text=True, check=True,
    )  # fmt: skip
    heavy = {"mcp", "pydantic", "typer", "subprocess", "ua_memory.memory", "pathlib"}
    assert "json" in done.stderr.split() and not heavy & set(done.stderr.split())


def test_with_a_daemon_no_process_is_started_for_a_tool(place: Place) -> None:
    assert place.run("daemon", "start").code == 0
    code = (
        "import sys\nfrom ua_memory.cli import fast\n"
        "fast._exit = lambda code: (print('subprocess' in sys.modules, file=sys.stderr), sys.exit(code))\n"
        "from ua_memory.mcp import relay\nrelay.start_daemon = lambda words: None\nfast.main()"
    )
    rows = [asks("tools/call", 1, name="archival_memory_insert", arguments={"content": "The map is blue"})]
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, "mcp"], input="".join(json.dumps(row) + "\n" for row in rows),
        cwd=place.root, env=place.environment("auto"), capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "Remembered" in json.loads(done.stdout)["result"]["content"][0]["text"]
    assert done.stderr == "False\n"


def test_a_call_that_a_daemon_works_on_is_cancelled_by_closing_its_connection(
    place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert place.run("daemon", "start").code == 0
    pid = place.up()["pid"]
    for name, value in place.environment("auto").items():
        monkeypatch.setenv(name, value)
    one = relay.Relay(relay.read_tool_data(), ["mcp", "--bank", str(place.root)], "auto")
    monkeypatch.setattr(relay, "_ask_child", lambda *_: pytest.fail("a cancelled call is not begun again"))
    os.kill(pid, signal.SIGSTOP)
    try:
        one.handle_line(json.dumps(asks("resources/list", 1)).encode())
        deadline = time.monotonic() + 10
        while not one._running[1]:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        began = time.monotonic()
        one.handle_line(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}')
        one.finish()
    finally:
        os.kill(pid, signal.SIGCONT)
    assert time.monotonic() - began < 2 and capsys.readouterr().out == ""


def test_it_wakes_a_daemon(place: Place) -> None:
    relayed(place, [HELLO], "auto")
    deadline = time.monotonic() + 30
    while not (place.status() or {}).get("commands"):
        assert time.monotonic() < deadline
        time.sleep(0.1)
