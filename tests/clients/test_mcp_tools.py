"""The MCP inspector and the conformance suite against our server. Opt-in: INSPECTOR, CONFORMANCE."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from real_client import PATH, Place, program, until

pytestmark = [pytest.mark.client, pytest.mark.slow]

SCENARIOS = (
    *(
        "server-initialize",
        "ping",
        "tools-list",
        "resources-list",
        "prompts-list",
        "dns-rebinding-protection",
    ),
    *("server-session-lifecycle", "server-sse-multiple-streams", "http-header-validation", "caching"),
    "sep-2164-resource-not-found",
)
"""Those that need no tools of the suite's own. `server-stateless` asks for some in 4 of its 25 checks."""
UNGUARDED = """
import sys, uvicorn
from ua_memory.mcp import relay, tools
at = tools.listen(0)
print(at.getsockname()[1], flush=True)
words = ["--bank", sys.argv[1], "mcp"]
made = tools.make_server(lambda asked: relay.ask_memory(words, dict(asked), "off", []), "0.1.0")
app = tools.asgi_app(made, "x" * 40, at.getsockname()[1]).inner
uvicorn.Server(uvicorn.Config(app, log_level="warning", http="h11", ws="none")).run(sockets=[at])
"""
"""The server over HTTP, without the guard that asks for a token, which the suite cannot give."""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def run(place: Place, *words: str) -> str:
    """What a tool printed; it must be content."""
    done = subprocess.run(
        words, env={**place.outside(), "PATH": f"{place.bin}:{PATH}"}, cwd=place.project,
        capture_output=True, text=True, timeout=180, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_the_inspector_finds_nothing_wrong(place: Place, era: str) -> None:
    inspect = (program("INSPECTOR"), "--cli", str(place.bin / "ua-memory"), "mcp", "--protocol-era", era)
    listed = run(place, *inspect, "--method", "tools/list", "--strict", "-q", "--format", "json")
    assert "archival_memory_search" in listed
    called = ("--method", "tools/call", "--tool-name", "archival_memory_search", "--tool-arg", "query=API")
    assert "Alice moved the API to Fly.io" in run(place, *inspect, *called)
    assert "memory://" in run(place, *inspect, "--method", "resources/list")


def answers(port: int) -> bool:
    """Whether something listens there."""
    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0


@contextlib.contextmanager
def served(place: Place) -> Iterator[str]:
    """Our server over HTTP: where it is."""
    with subprocess.Popen(
        [sys.executable, "-P", "-c", UNGUARDED, str(place.bank)], env=place.environment(),
        stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        try:
            assert process.stdout
            port = int(process.stdout.readline())
            until(lambda: answers(port))
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.kill()


def test_the_conformance_suite_passes(place: Place, tmp_path: Path) -> None:
    suite = program("CONFORMANCE")
    with served(place) as url:
        for scenario in SCENARIOS:
            run(place, suite, "server", "--url", url, "--scenario", scenario)
