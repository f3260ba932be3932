"""The MCP server: what it says of itself is what the official SDK says, and a model can act on its errors."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from banks import new_bank
from daemons import Place

from ua_memory import mcp_server
from ua_memory.cli import relay
from ua_memory.memory import Memory

ROOT = Path(__file__).parent.parent
FILE = ROOT / "ua_memory" / "data" / "mcp.json"
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
META = {
    relay.MODERN: "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
LISTS = ("tools/list", "prompts/list", "resources/list", "resources/templates/list")
SDK = f"""
from ua_memory.mcp_server import server
server(lambda name, arguments: "asked " + name, {VERSION!r}).run()
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

    known: dict[str, Any] = {"versions": sorted(HANDSHAKE_PROTOCOL_VERSIONS)}
    for era, first, params in (
        ("legacy", HELLO, {}),
        ("modern", asks("server/discover", 0, _meta=META), {"_meta": META}),
    ):
        rows = [first, *([READY] if era == "legacy" else [])]
        found = sdk([*rows, *(asks(method, n, **params) for n, method in enumerate(LISTS, 1))])
        found[0]["capabilities"] = {name: {"listChanged": False} for name in found[0]["capabilities"]}
        known[era] = {first["method"]: found[0], **{method: found[n] for n, method in enumerate(LISTS, 1)}}
    known["legacy"]["ping"] = {}
    return json.dumps(known, indent=1, sort_keys=True).encode() + b"\n"


def test_what_the_relay_says_is_what_the_sdk_says(golden: Callable[[Path, bytes], None]) -> None:
    golden(FILE, listing())


def tools() -> list[Any]:
    found: list[Any] = json.loads(FILE.read_bytes())["legacy"]["tools/list"]["tools"]
    return found


def test_the_tools_have_the_names_and_arguments_of_the_contract() -> None:
    assert {tool["name"]: list(tool["inputSchema"]["properties"]) for tool in tools()} == {
        "archival_memory_insert": ["content", "tags"],
        "archival_memory_search": ["query"],
        "core_memory_replace": ["section", "value"],
        "get_core_memory_blocks": [],
    }
    for tool in tools():
        takes = mcp_server.TAKES[tool["name"]]
        assert list(takes) == list(tool["inputSchema"]["properties"])
        assert [key for key, kind in takes.items() if kind == "text"] == tool["inputSchema"].get(
            "required", []
        )
        assert len(tool["description"]) > 30 and "outputSchema" not in tool


def test_the_sdks_server_hands_its_calls_on() -> None:
    from mcp import Client

    asked: list[tuple[str, Mapping[str, Any]]] = []
    made = mcp_server.server(lambda name, given: asked.append((name, given)) or "done", VERSION)

    async def talk() -> None:
        async with Client(made) as client:
            for name, given in CALLS:
                found = await client.call_tool(name, given)
                assert found.content[0].text == "done" and found.structured_content is None  # type: ignore[union-attr]

    asyncio.run(talk())
    assert [(name, {k: v for k, v in given.items() if v is not None}) for name, given in asked] == CALLS


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


def test_tools_do_what_they_say(memory: Memory) -> None:
    who = mcp_server.Caller("claude-code", "8f2c")
    said = [mcp_server.call(memory, name, given, who) for name, given in CALLS]
    assert not any(failed for _, failed in said)
    texts = [text for text, _ in said]
    assert texts[0].startswith("Remembered: ^") and "The gate is green" in texts[2]
    assert texts[2].startswith('<ua-memory-recall kind="search">') and "## Me\nShort answers." in texts[4]
    assert texts[3] == "Added core block 'Me'."
    again = mcp_server.call(memory, "archival_memory_insert", CALLS[0][1], who)[0]
    assert "seen again" in again
    day = (memory.store.bank.root / "memory").glob("*.md")
    assert "claude-code · session 8f2c" in "".join(file.read_text() for file in day)
    assert [r.trailer("Door") for r in memory.log(limit=4)] == ["mcp"] * 4
    secret = "ghp_" + "abcdefghijklmnopqrstuvwxyz0123456789"
    assert (
        "Taken out before writing: github-token."
        in mcp_server.call(memory, "archival_memory_insert", {"content": f"the token is {secret}"}, who)[0]
    )


@pytest.mark.parametrize(
    ("name", "given", "says"),
    [
        ("archival_memory_search", {}, "query is missing"),
        ("archival_memory_search", {"query": 7}, "query must be a text"),
        ("archival_memory_search", {"q": "x"}, "it takes no q"),
        ("archival_memory_search", ["x"], "must be an object"),
        ("archival_memory_insert", {"content": "x", "tags": "a"}, "tags must be a list of texts"),
        ("archival_memory_insert", {"content": "  "}, "mend"),
        ("core_memory_replace", {"section": "A", "value": "## B\nx"}, "use ###"),
        ("core_memory_replace", {"section": "A", "value": "word " * 9000}, "budget"),
    ],
)  # fmt: skip
def test_an_error_says_how_to_mend_it(memory: Memory, name: str, given: Any, says: str) -> None:
    text, failed = mcp_server.call(memory, name, given, mcp_server.Caller())
    assert failed and says in text and text.startswith(f"{name} failed: ") and "mend" in text, text


# -- the relay ---------------------------------------------------------------------------------------------


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    found = Place(new_bank(tmp_path / "bank").root)
    yield found
    found.kill()


def relayed(place: Place, rows: list[Any], daemon: str) -> list[Any]:
    argv = [sys.executable, "-P", "-m", "ua_memory", "mcp"]
    return spoken(argv, rows, cwd=place.root, env=place.environment(daemon))


def test_it_speaks_both_eras(place: Place) -> None:
    rows = [HELLO, READY, asks("tools/list", 1), asks("ping", 2), asks("prompts/list", "three")]  # type: ignore[arg-type]
    rows += [asks("initialize", 4, protocolVersion="1999-01-01"), asks("tools/list", 5, _meta=META)]
    rows += [asks("server/discover", 6, _meta=META), asks("ping", 7, _meta=META)]
    said = relayed(place, rows, "off")
    assert [each["id"] for each in said] == [0, 1, 2, "three", 4, 5, 6, 7]
    found = {each["id"]: each.get("result") for each in said}
    assert found[0]["protocolVersion"] == "2025-06-18" and found[0]["serverInfo"]["version"] == VERSION
    assert found[4]["protocolVersion"] in json.loads(FILE.read_bytes())["versions"] and found[2] == {}
    assert found[1]["tools"] == found[5]["tools"] == tools() and found[5]["resultType"] == "complete"
    assert found[6]["supportedVersions"] == ["2026-07-28"] and said[7]["error"]["code"] == -32601


def test_a_broken_line_is_answered_and_the_next_too(place: Place) -> None:
    rows = ["", "{", "\x00\xff", "[]", "7", '{"id": 1}', '{"jsonrpc": "2.0", "id": 2, "method": 3}']
    rows += [
        '{"jsonrpc": "2.0", "id": 3, "method": "x", "params": []}',
        '{"jsonrpc": "2.0", "id": 9, "result": {}}',
    ]
    rows += ["[" * 100_000, '{"jsonrpc": "2.0", "id": {}, "method": "no/such"}', "x" * (relay.LARGEST + 1)]
    rows += [json.dumps(asks("tools/call", 4, name="nope")), json.dumps(asks("ping", 5))]
    said = relayed(place, rows, "off")
    codes = [each["error"]["code"] if "error" in each else each["id"] for each in said]
    assert codes == [
        *(-32700, -32700, -32600, -32600, -32600, -32600, -32600), -32700, -32601, -32600, -32602, 5,
    ]  # fmt: skip
    assert "archival_memory_search" in said[-2]["error"]["message"]


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
    said = {each["id"]: each["result"] for each in relayed(place, rows, daemon)}
    texts = [said[n]["content"][0]["text"] for n in range(1, 6)]
    assert (
        texts[0].startswith("Remembered: ^") and "gate is green" in texts[2] and "Short answers" in texts[4]
    )
    assert not any(said[n]["isError"] for n in range(1, 6))
    assert said[9]["isError"] and "query is missing" in said[9]["content"][0]["text"]
    assert said[9]["resultType"] == "complete"
    if daemon == "auto":
        assert place.status()["commands"] >= 6  # type: ignore[index]


def test_without_a_bank_it_says_how_to_make_one(tmp_path: Path) -> None:
    place = Place(tmp_path)
    said = relayed(place, [asks("tools/call", 1, name="get_core_memory_blocks")], "off")
    text = said[0]["result"]["content"][0]["text"]
    assert said[0]["result"]["isError"] and "ua-memory init" in text


def test_the_relay_loads_nothing_heavy(place: Place) -> None:
    code = (
        "import sys\nfrom ua_memory.cli import fast\n"
        "fast._leave = lambda code: (print(*sorted(sys.modules), file=sys.stderr), sys.exit(code))\n"
        "fast.main()"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, "mcp"], input=json.dumps(HELLO) + "\n", cwd=place.root,
        env=place.environment("off"), capture_output=True, text=True, check=True,
    )  # fmt: skip
    heavy = {"mcp", "pydantic", "typer", "subprocess", "ua_memory.memory", "pathlib"}
    assert "json" in done.stderr.split() and not heavy & set(done.stderr.split())


def test_it_wakes_a_daemon(place: Place) -> None:
    relayed(place, [HELLO], "auto")
    deadline = time.monotonic() + 30
    while not (place.status() or {}).get("commands"):
        assert time.monotonic() < deadline
        time.sleep(0.1)
