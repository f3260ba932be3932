"""A transcript far larger than memory should be: what a reading holds does not grow with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import ua_memory

READ = r"""
import pathlib, re, resource, sys
from ua_memory.clients.transcripts import read
def used():
    if sys.platform == "darwin":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Linux hands the parent's ru_maxrss on to the child; the high-water mark of the address space it does not
    return int(re.search(r"VmHWM:\s+(\d+)", pathlib.Path("/proc/self/status").read_text())[1]) * 1024
stream = sys.stdin.buffer if sys.argv[1] == "-" else open(sys.argv[1], "rb")
before = used()
turns = sum(1 for turn in read(stream))
print(turns, used() - before)
"""


def claude_code(n: int) -> dict[str, object]:
    message = {"role": "user" if n % 2 else "assistant", "content": f"turn {n} " + "words " * 60}
    link = {"uuid": f"0000-{n:08d}", "parentUuid": f"0000-{n - 1:08d}" if n else None, "sessionId": "s"}
    return {"type": message["role"], **link, "message": message}


def pi(n: int) -> dict[str, object]:
    if not n:
        return {
            "type": "session",
            "version": 3,
            "id": "s",
            "cwd": "/x",
            "timestamp": "2026-03-01T10:00:00.000Z",
        }
    message = {"role": "user" if n % 2 else "assistant", "content": f"turn {n} " + "words " * 10}
    return {
        "type": "message",
        "id": f"{n:08x}",
        "parentId": f"{n - 1:08x}" if n > 1 else None,
        "message": message,
    }


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["claude-code", "pi", "pipe", "messages", "text"])
def test_memory_stays_bounded(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "transcript"
    size = 12 << 20
    make = pi if kind in ("pi", "pipe") else claude_code
    with path.open("w") as out:
        out.write("[" if kind == "messages" else "")
        for n in range(10**9):
            record = make(n)
            if kind == "text":
                out.write(f"User: turn {n}\nAssistant: {'yes ' * 200}\n")
            else:
                value = record["message"] if kind == "messages" else record
                out.write(("," if n and kind == "messages" else "") + json.dumps(value) + "\n")
            if out.tell() > size:
                break
        out.write("]" if kind == "messages" else "")
    environment = dict(os.environ, PYTHONPATH=str(Path(ua_memory.__file__).parent.parent))
    with path.open("rb") as stream:
        done = subprocess.run(
            [sys.executable, "-c", READ, "-" if kind == "pipe" else str(path)],
            stdin=stream if kind == "pipe" else None,
            env=environment,
            capture_output=True,
            check=True,
            text=True,
        )
    turns, grown = map(int, done.stdout.split())
    print(f"{kind}: {turns} turns, {grown / (1 << 20):.1f} MB for {size >> 20} MB")
    assert turns > 5_000
    # 500 MB may take 300: what is fixed (a line, a buffer, the spool) and half a byte for each byte at most
    assert grown < (10 << 20) + size // 2
