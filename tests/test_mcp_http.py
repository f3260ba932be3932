"""`ua-memory mcp --http`: who is let in, and who is not."""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

import pytest
from terminal import new_shell

from ua_memory.errors import Busy, Malformed
from ua_memory.mcp import tools as loopback
from ua_memory.mcp.tools import make_server

TOKEN = "a-token-of-forty-characters-for-the-test"
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    },
}


def answered(headers: list[dict[str, str]]) -> list[int]:
    """The status that the application gives to a first request with each of these sets of headers."""
    made = make_server(lambda asked: {"text": "x", "failed": False}, "1")
    app = loopback.asgi_app(made, TOKEN, 8765)
    found: list[int] = []
    plain = {"content-type": "application/json", "accept": "application/json, text/event-stream"}

    async def one(given: dict[str, str]) -> None:
        pairs = [(k.encode(), v.encode()) for k, v in ({"host": "127.0.0.1:8765"} | plain | given).items()]
        scope: dict[str, Any] = {
            "type": "http", "method": "POST", "path": "/mcp", "raw_path": b"/mcp", "query_string": b"",
            "headers": pairs, "http_version": "1.1", "scheme": "http", "root_path": "",
            "server": ("127.0.0.1", 8765), "client": ("127.0.0.1", 5),
        }  # fmt: skip
        body = [{"type": "http.request", "body": json.dumps(HELLO).encode(), "more_body": False}]

        async def receive() -> Any:
            if body:
                return body.pop()
            await asyncio.sleep(5)
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                found.append(message["status"])

        await app(scope, receive, send)

    async def every() -> None:
        async with made.session_manager.run():
            for given in headers:
                await one(given)

    asyncio.run(every())
    return found


def test_only_who_has_the_token_and_means_this_machine_is_let_in() -> None:
    known = {"authorization": f"Bearer {TOKEN}"}
    assert answered(
        [
            known,
            known | {"origin": "http://localhost:8765"},
            {},
            {"authorization": f"Bearer {TOKEN}x"},
            {"authorization": TOKEN},
            known | {"host": "evil.example:8765"},
            known | {"host": "127.0.0.1:9999"},
            known | {"host": "127.0.0.1.evil.example:8765"},
            known | {"host": "127.0.0.1:8765@evil.example"},
            known | {"origin": "http://evil.example"},
            known | {"origin": "http://localhost.evil.example:8765"},
            known | {"origin": "null"},
        ]
    ) == [200, 200, 401, 401, 401, 421, 421, 421, 421, 403, 403, 403]


def test_the_token_is_its_owners_alone(tmp_path: Path) -> None:
    first, new = loopback.read_or_make_token(tmp_path / "local")
    file = tmp_path / "local" / loopback.TOKEN_FILE
    assert new and len(first) >= 40 and file.stat().st_mode & 0o777 == 0o600
    assert loopback.read_or_make_token(tmp_path / "local") == (first, False)
    file.chmod(0o644)
    with pytest.raises(Malformed, match="others can read"):
        loopback.read_or_make_token(tmp_path / "local")
    file.chmod(0o600)
    file.write_text("short")
    with pytest.raises(Malformed, match="not a valid token"):
        loopback.read_or_make_token(tmp_path / "local")


def test_a_port_that_is_taken_is_said() -> None:
    with socket.socket() as taken:
        taken.bind((loopback.HOST, 0))
        taken.listen()
        with pytest.raises(Busy, match="port"):
            loopback.listen(taken.getsockname()[1])
    with loopback.listen(0) as free:
        assert free.getsockname()[0] == "127.0.0.1"
        with socket.create_connection(free.getsockname(), 1):
            pass  # its address is told before the SDK is loaded: who comes early waits


def test_without_the_sdk_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ua_memory.cli.daemon.find_spec", lambda name: None)
    done = new_shell(tmp_path)("mcp", "--http", "--port", "0")
    assert done.code == 2 and "pip install 'ua-memory[http]'" in done.err
