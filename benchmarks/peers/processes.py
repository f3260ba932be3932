"""Other programs: what one costs, one that stays, and one that speaks MCP or HTTP.

Linux only: costs are read in /proc.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TICK = os.sysconf("SC_CLK_TCK")
PATIENCE, LONG = 600.0, 3600.0
"""Seconds that one answer or start may take, and one command, as an installation or an index: these machines
are shared."""


class Failed(Exception):
    """A program did not do what it was asked; says what it printed."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds on the wall, seconds of processors, and the largest process in MB."""

    wall: float
    cpu: float
    peak: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.wall + other.wall, self.cpu + other.cpu, max(self.peak, other.peak))


def run(argv: Sequence[str], env: Mapping[str, str], cwd: Path | None = None) -> tuple[str, Cost]:
    """A whole process: what it printed, and what it cost, its children included."""
    start = time.perf_counter()
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            argv, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True
        )
        assert process.stdout is not None
        with process.stdout, killed_after(LONG, process):
            printed = process.stdout.read()
            _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        if process.returncode:
            raise Failed(f"{' '.join(argv[:4])} … exited {process.returncode}: {errors.read()[-400:]}")
    return printed, Cost(
        time.perf_counter() - start,
        used.ru_utime + used.ru_stime,
        used.ru_maxrss / 1024,
    )


@contextlib.contextmanager
def killed_after(seconds: float, process: subprocess.Popen[str]) -> Iterator[None]:
    """Reading from it ends then: no tool holds up the others."""
    timer = threading.Timer(seconds, process.kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def tree(root: int) -> list[int]:
    """A process and all below it."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    found = [root]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found


class Server:
    """A program that stays. Stopped with all that it started."""

    def __init__(
        self, argv: Sequence[str], env: Mapping[str, str], cwd: Path | None = None, answers: bool = True
    ) -> None:  # fmt: skip
        """`answers`: over its pipes; what another prints goes to the log, or it would stop at a full pipe."""
        self.errors = (Path(env["HOME"]) / "server.log").open("w+")
        self.process = subprocess.Popen(
            argv, env=env, cwd=cwd, stdin=subprocess.PIPE, stderr=self.errors,
            stdout=subprocess.PIPE if answers else self.errors, text=True, start_new_session=True,
        )  # fmt: skip
        self.said = 0

    def cpu(self) -> float:
        """Seconds of processors until now, of what still runs."""
        total = 0
        for pid in tree(self.process.pid):
            with contextlib.suppress(OSError):
                total += sum(
                    map(
                        int,
                        Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15],
                    )
                )
        return total / TICK

    def memory(self) -> float:
        """MB that it holds, what processes share counted once."""
        total = 0
        for pid in tree(self.process.pid):
            with contextlib.suppress(OSError):
                rows = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
                total += next(int(row.split()[1]) for row in rows if row.startswith("Pss:"))
        return total / 1024

    def ask(self, method: str, params: Mapping[str, Any]) -> Any:
        """One request of JSON-RPC over its pipes, as MCP has it."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.said += 1
        self._tell({"jsonrpc": "2.0", "id": self.said, "method": method, "params": params})
        with killed_after(PATIENCE, self.process):
            while line := self.process.stdout.readline():
                with contextlib.suppress(ValueError):
                    answer = json.loads(line)
                    if answer.get("id") == self.said:
                        if "error" in answer:
                            raise Failed(str(answer["error"])[:400])
                        return answer["result"]
        raise Failed(f"closed its output: {self.log()}")

    def greet(self) -> None:
        """Begin a session of MCP."""
        client = {"name": "ua-memory benchmark", "version": "1"}
        self.ask(
            "initialize",
            {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client},
        )
        self._tell({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def tool(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """What a tool of MCP answers: its structured result, else its text as JSON."""
        answer = self.ask("tools/call", {"name": name, "arguments": arguments})
        return answer.get("structuredContent") or json.loads(answer["content"][0]["text"])

    def wait_for(self, url: str) -> None:
        """Until it answers there."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until and self.process.poll() is None:
            with contextlib.suppress(OSError):
                fetch(url, patience=5)
                return
            time.sleep(0.5)
        raise Failed(f"does not answer at {url}: {self.log()}")

    def log(self) -> str:
        self.errors.flush()
        return Path(self.errors.name).read_text(errors="replace")[-400:]

    def stop(self) -> None:
        pids = tree(self.process.pid)
        for number in (signal.SIGTERM, signal.SIGKILL):
            for pid in pids:
                with contextlib.suppress(OSError):
                    os.kill(pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(15)
        for pipe in (self.process.stdin, self.process.stdout, self.errors):
            with contextlib.suppress(OSError):  # what was not sent is not wanted
                if pipe:
                    pipe.close()

    def _tell(self, message: Mapping[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()


def fetch(
    url: str,
    body: Any = None,
    method: str = "",
    token: str = "",
    patience: float = PATIENCE,
) -> Any:
    """JSON over HTTP on loopback; None where the answer is none."""
    headers = {
        "Content-Type": "application/json",
        **({"Authorization": f"Bearer {token}"} if token else {}),
    }
    sent = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, sent, headers, method=method or ("POST" if sent else "GET"))
    with urllib.request.urlopen(request, timeout=patience) as answer:
        text = answer.read()
    try:
        return json.loads(text)
    except ValueError:
        return None
