"""Whatever comes in (I30, I54, I70): no crash, no hang, bounded memory, no byte lost; `make fuzz N=…`.

The markdown parser has its properties in test_markdown, transcripts in transcripts/test_any_bytes, the
settings of clients in test_client_settings; here are the other readers. Counterexamples are kept
in `.hypothesis/`, those that are mended as `@example` here.
"""

from __future__ import annotations

import io
import json
import shutil
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from store_banks import insert, make, open_again

from ua_memory import config
from ua_memory.clients.transcripts import read
from ua_memory.daemon import server as messages
from ua_memory.errors import Malformed, UaMemoryError
from ua_memory.hooks import events as clients
from ua_memory.index import sync as condition
from ua_memory.index.sync import Index
from ua_memory.markdown import document as markdown
from ua_memory.mcp import relay
from ua_memory.mcp import tools as mcp_server
from ua_memory.mcp.tools import Caller, check_arguments
from ua_memory.memory import Memory
from ua_memory.records import Fact
from ua_memory.retain.queue import TurnQueue as Queue
from ua_memory.store import pending
from ua_memory.store.store import Store
from ua_memory.upkeep import doctor as checking

NAMES = [
    "hook_event_name", "UserPromptSubmit", "SessionStart", "Stop", "PreCompact", "SessionEnd",
    "BeforeAgent", "prompt", "session_id", "cwd", "transcript_path", "source", "trigger", "reason",
    "jsonrpc", "2.0", "id", "method", "params", "run", "argv", "env", "encodings", "terminals", "width",
    "stdin", "home", "protocol", "code", "tools/call", "name", "arguments", "_meta", "query", "content",
    "tags", "section", "value", "path", "file_path", "limit", "since", "until", "kinds", "match", "put",
    "session", "turn", "failed", "at", "text", "role", "client", "put", "open", "due", "tried", "again",
]  # fmt: skip
words = st.sampled_from(NAMES)
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 10**20) | st.floats() | words | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=6),
    max_leaves=10,
)
objects = st.dictionaries(words, values, max_size=8)
anything = st.binary(max_size=300) | objects.map(lambda each: json.dumps(each).encode())
DEEP = b"[" * 100_000
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    """A bank that the examples of one property share."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        store = make(tmp_path_factory.mktemp("banks") / "bank", person=False)
    insert(store, "Alice moved the API to Fly.io.")
    with Memory(open_again(store.bank.root)) as memory:
        yield memory


# -- hooks, MCP, the socket ----------------------------------------------------------------------------


@given(
    anything
    | st.builds(lambda more, name: json.dumps({**more, "hook_event_name": name}).encode(), objects, words),
    st.sampled_from(("", "claude-code", "codex", "gemini", "x", "-", "Ä")),
)
@example(DEEP, "")
@example(b'{"hook_event_name": "UserPromptSubmit", "prompt": "\\ud800", "session_id": "\\u0000"}', "")
def test_a_hook_reads_anything(data: bytes, client: str) -> None:
    with suppress(ValueError):
        event = clients.parse_event(data, client)
        if event:
            assert clients.reply_json(event, event.prompt).isascii()


@given(anything | objects.map(lambda more: json.dumps({"jsonrpc": "2.0", "id": 1, **more}).encode()))
@example(DEEP)
@example(b'{"jsonrpc": "2.0", "id": 1, "method": "run", "params": {"stdin": "\xe2\x82\xac"}}')
def test_the_socket_reads_anything(line: bytes) -> None:
    try:
        _, _, params = messages.parse_request(line)
        messages.command_request(params)
    except messages.RequestRefused as error:
        assert error.code and error.message


@given(objects)
def test_a_request_for_a_command_is_whole_or_refused(more: dict[str, Any]) -> None:
    whole = {
        "argv": ["x"], "cwd": "/", "home": "/", "env": {"A": "b"}, "encodings": ["utf-8", "utf-8"],
        "terminals": [], "width": 80, "stdin": None,
    }  # fmt: skip
    with suppress(messages.RequestRefused):
        found = messages.command_request({**whole, **more})
        assert all(isinstance(each, str) for each in (*found.argv, found.cwd, *found.env.values()))


@given(anything | objects.map(lambda more: json.dumps({"jsonrpc": "2.0", "id": 1, **more}).encode()))
@example(DEEP)
@example(b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": [], "arguments": 1}}')
def test_mcp_reads_any_line(line: bytes) -> None:
    with suppress(relay.JsonRpcError):
        message = relay._parse_line(line)
        assert isinstance(message, dict)


TEXT = st.text(max_size=20) | st.sampled_from(["../x", "/etc/passwd", "\0", "x" * 5000, "^a", "memory/x.md"])


@given(st.sampled_from(sorted(mcp_server.TOOLS)), st.data())
def test_mcp_checks_any_arguments(name: str, data: st.DataObject) -> None:
    tool = mcp_server.TOOLS[name]
    plain = {"string": TEXT, "integer": st.integers(), "number": st.floats(), "boolean": st.booleans()}
    known = {key: plain.get(kind.get("type", ""), values) for key, kind in tool.parameters.items()}
    arguments = data.draw(values | st.fixed_dictionaries({}, optional=known))
    with suppress(UaMemoryError):
        checked = check_arguments(tool, arguments)
        assert checked.keys() <= tool.parameters.keys() and checked.keys() >= {*tool.required}


READS = sorted(
    name
    for name, tool in mcp_server.TOOLS.items()
    if tool.declaration["annotations"]["readOnlyHint"] and name not in relay.MAY_ASK_A_MODEL
)


@settings(max_examples=max(20, settings().max_examples // 10))
@given(st.data())
def test_mcp_answers_any_call(bank: Memory, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(READS))
    kinds = {"string": TEXT, "integer": st.integers(-5, 10**12), "number": st.floats(allow_nan=False)}
    given_ = {
        key: data.draw(kinds.get(kind["type"], TEXT) | values)
        for key, kind in mcp_server.TOOLS[name].parameters.items()
        if key in mcp_server.TOOLS[name].required or data.draw(st.booleans())
    }
    text, failed = mcp_server.call_tool(bank, name, given_, Caller())
    assert isinstance(text, str) and (text or not failed)
    assert "Traceback" not in text and "root:" not in text


# -- settings and front matter -------------------------------------------------------------------------


@given(
    st.binary(max_size=200)
    | st.dictionaries(
        st.sampled_from(["id", "timezone", "mission", "store", "limits", "search", "mcp", "index", "trail"]),
        values, max_size=5,
    ).map(lambda each: "\n".join(f"{key} = {json.dumps(value)}" for key, value in each.items()).encode())
)  # fmt: skip
@example(b"a = " + DEEP)
@example(b"a." * 2_000 + b"b = 1")
def test_settings_are_read_or_named(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "ua-memory.toml"
        file.write_bytes(data)
        try:
            config.load(Path(folder), {})
        except UaMemoryError as error:
            assert "ua-memory.toml" in str(error)
        assert file.read_bytes() == data


FRONT = st.lists(
    st.sampled_from(
        [b"---\n", b"a: 1\n", b"id: x\n", b"name: 'y\n", b"- b\n", b"\xff\n", b"a: &a [*a]\n", b"...\n"]
    )
    | st.binary(max_size=12)
).map(lambda pieces: b"---\n" + b"".join(pieces))


@given(
    FRONT, st.dictionaries(st.sampled_from(["id", "name", "z"]), st.none() | st.text(max_size=12), max_size=2)
)
@example(b"---\na: " + b"[" * 1500 + b"\n---\n- b\n", {"id": "x"})
@example(
    b"---\n"
    + b"a: &a [x]\n"
    + b"".join(b"%c: &%c [*%c,*%c]\n" % (n + 1, n + 1, n, n) for n in range(97, 120))
    + b"---\n",
    {},
)
def test_front_matter_keeps_the_body(data: bytes, changes: dict[str, Any]) -> None:
    before = markdown.parse(data, "memory/pages/x.md")
    with suppress(Malformed):
        after = markdown.set_front(data, changes)
        body = before.lines[before.front_end :]
        assert markdown.parse(after, "memory/pages/x.md").lines[-len(body) :] == body or not body


# -- what lies in the state folder ---------------------------------------------------------------------


@given(anything, st.sampled_from(["revision-1-x.json", "revision-.json", "revision-1.fresh", "x"]))
@example(pending.FIRST_LINE, "revision-1-x.json")
def test_any_record_is_read_or_set_aside_whole(data: bytes, name: str) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / name).write_bytes(data)
        assert pending.read_records(folder) == []
        pending.set_aside_unreadable(folder)
        pending.uncommitted_contents(pending.read_records(folder))
        if name.startswith("revision-") and name.endswith(".json"):
            assert [file.read_bytes() for file in pending.unreadable_records(folder)] == [data]


@given(st.lists(anything, max_size=4).map(b"\n".join), st.booleans())
@example(DEEP + b"\n", True)
def test_any_queue_is_read_or_told(data: bytes, ended: bool) -> None:
    data += b"\n" if ended else b""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "turns-x.jsonl").write_bytes(data)
        queue = Queue(folder, str)
        (found,) = queue.all()
        queue.remove_stale_claims()
        found.still_open(NOW)
        assert (folder / "turns-x.jsonl").read_bytes() == data


INDEXES: list[Path] = []


def indexed(folder: Path) -> Store:
    """A bank with a small index, copied."""
    if not INDEXES:
        INDEXES.append(Path(tempfile.mkdtemp(prefix="ua-fuzz-")) / "bank")
        store = make(INDEXES[0], person=False)
        for text in ("one", "two"):
            insert(store, text)
        with Index(store) as index:
            index.refresh(vectors=False)
    shutil.copytree(INDEXES[0], folder)
    return open_again(folder)


@settings(max_examples=max(6, settings().max_examples // 20))
@given(
    st.integers(0, 10**6),
    st.sampled_from(["flip", "cut", "noise", "empty"]),
    st.binary(min_size=1, max_size=64),
)
@example(3158, "noise", b"\x80")
@example(2162, "flip", b"x")
def test_a_damaged_index_answers_or_is_built_anew(at: int, how: str, noise: bytes) -> None:
    with tempfile.TemporaryDirectory() as place:
        store = indexed(Path(place) / "bank")
        files = sorted(
            file for top in (store.bank.index, store.bank.cache) if top.exists()
            for file in top.rglob("*") if file.is_file() and file.stat().st_size
        )  # fmt: skip
        file = files[at % len(files)]
        data = file.read_bytes()
        spot = at % len(data)
        file.write_bytes({
            "flip": data[:spot] + bytes([data[spot] ^ 0x41]) + data[spot + 1 :],
            "cut": data[:spot], "noise": data[:spot] + noise + data[spot + len(noise) :], "empty": b"",
        }[how])  # fmt: skip
        truth = {stat.path: store.read(stat.path) for stat in store.files()}
        list(checking.check_integrity(store).problems)
        condition.state(store)
        with Memory(store) as memory:
            answer = memory.search_many(["one"], by_words=True)[0]
            assert answer.hits
            for hit in answer.hits:
                assert hit.item.text.encode() in truth[hit.item.path], "what is shown stands there"
        assert {stat.path: store.read(stat.path) for stat in store.files()} == truth


# -- time and memory -----------------------------------------------------------------------------------

LONG: dict[str, bytes] = {
    "deep lists": b"".join(b"  " * (n % 500) + b"- x\n" for n in range(20_000)),
    "links": b"- " + b"[[" * 100_000 + b"\n",
    "tags": b"- " + b"#a" * 100_000 + b"\n",
    "blanks": b"- a" + b" " * 200_000 + b"b\n",
    "ids": b"- " + b"^a " * 70_000 + b"\n",
    "fences": b"```\n" * 50_000,
    "quotes": b"- a\n" + b'  - quote: "' + b'\\"' * 100_000 + b"\n",
    "comments": b"<!-- " * 40_000,
    "headings": b"## " + b"\xc2\xb7 " * 70_000 + b"\n",
    "one line": b"x" * 1_000_000,
    "front": b"---\n" + b"a: b\n" * 20_000,
}


def spent(work: Callable[[], object]) -> tuple[float, int]:
    tracemalloc.start()
    began = time.process_time()
    try:
        work()
        return time.process_time() - began, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.few(2)
@pytest.mark.parametrize("name", LONG)
def test_what_is_long_and_odd_is_parsed_in_time(name: str) -> None:
    data = LONG[name]
    seconds, most = spent(lambda: markdown.parse(data, "memory/2026-11-21.md").of(Fact))
    assert seconds < 10 and most < 400 * len(data) + (8 << 20), (seconds, most)


ODD = (b"[", b"[a](", b"{", b"<", b'{"a":', b"**a", b"`", b"You: ", b"\xff")


@pytest.mark.few(4)
@pytest.mark.parametrize("piece", ODD)
def test_a_transcript_that_is_one_odd_line(piece: bytes) -> None:
    data = piece * (100_000 // len(piece)) + b"\n" + b'{"type":"user"}\n' * 1000

    def work() -> None:
        for client in ("claude-code", "codex", "pi", "messages", None):
            with suppress(UaMemoryError):
                list(read(io.BytesIO(data), client=client))

    seconds, most = spent(work)
    assert seconds < 20 and most < 64 << 20, (seconds, most)
