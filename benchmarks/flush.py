"""What a flush costs: speed and memory without a model, and how much of a model's prompt its cache has.

The transcript is the largest of the shared ones where they are at hand, else one made here of the same size.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from figures import Figure, console_script, main

SHARED = Path(os.environ.get("UA_SHARED") or Path(__file__).resolve().parents[2] / "shared") / "data/sessions"
MB = 1_000_000
PEAK_MB, SPEED, UNCACHED, PREFIX = 300, 1.0, 1.15, 0.8
OVERHEAD = 1_500
"""Tokens of directive and tools that the bar allows beside what is read."""


def measure(words: Sequence[str]) -> list[Figure]:
    """Speed, memory, prompt cache. A name among `words` is the transcript to read."""
    with tempfile.TemporaryDirectory() as folder:
        given = Path(words[0]) if words else largest(Path(folder))
        return [*extractive(given, Path(folder)), *cached(given, Path(folder))]


def largest(folder: Path) -> Path:
    found = [path for path in SHARED.glob("*/*.jsonl") if path.parent.name != "samples"]
    return max(found, key=lambda path: path.stat().st_size) if found else made(folder / "made.jsonl")


def made(path: Path) -> Path:
    """A transcript of 2.7 MB: little talk, much output of tools."""
    rows: list[dict[str, Any]] = []
    for n in range(900):
        said = (
            f"We decided to keep port {n} for service {n % 7}, because of the firewall."
            if n % 3
            else "x" * 8000
        )
        role = "assistant" if n % 2 else "user"
        message = {"role": role, "content": [{"type": "text" if n % 3 else "tool_result", "text": said}]}
        at = f"2026-11-21T10:{n // 60 % 60:02}:{n % 60:02}Z"
        own = {"uuid": f"u{n}", "parentUuid": f"u{n - 1}" if n else None, "sessionId": "made"}
        rows.append({"type": role, "timestamp": at, "message": message, **own})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


# -- without a model -----------------------------------------------------------------------------------

_RUN = """
import resource, runpy, sys
sys.argv = ["ua-memory", *sys.argv[1:]]
try:
    runpy.run_module("ua_memory", run_name="__main__")
finally:
    print("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
"""


def extractive(transcript: Path, folder: Path) -> list[Figure]:
    """A whole process, from start to commit: three runs, each into a bank of its own; the median."""
    size = transcript.stat().st_size / MB
    runs = sorted(once(transcript, folder / f"bank{n}") for n in range(3))
    seconds = runs[1][0]
    peak = max(run[1] for run in runs)
    speed = f"{size / seconds:.2f} MB/s: {size:.2f} MB in {seconds:.2f} s"
    unit = 1024 if sys.platform == "darwin" else 1
    return [
        Figure("flush without a model, against 1 MB/s", seconds * SPEED / size, 1.0, speed),
        Figure(
            "its memory, against 300 MB", peak / unit / 1024 / PEAK_MB, 1.0, f"{peak / unit / 1024:.0f} MB"
        ),
    ]


def once(transcript: Path, bank: Path) -> tuple[float, int]:
    script, python = console_script()
    subprocess.run([script, "init", str(bank)], check=True, capture_output=True)
    # By a shell: to Linux the peak of who starts a process is the new one's, too, and ours may be the larger.
    words = ["sh", "-c", '"$@"; exit $?', "sh", python, "-P", "-c", _RUN]
    words += ["--bank", str(bank), "flush", "--force", str(transcript)]
    start = time.perf_counter()
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    seconds = time.perf_counter() - start
    return seconds, int(re.findall(r"peak (\d+)", done.stderr)[-1])


# -- with a model --------------------------------------------------------------------------------------


def cached(transcript: Path, folder: Path) -> list[Figure]:
    """One flush against a scripted endpoint, which writes down what it is sent."""
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
    from fake_model import FakeModel

    from ua_memory import Memory
    from ua_memory.text import tokens

    memory = Memory.init(folder / "cached", timezone="UTC")
    with transcript.open("rb") as stream:
        _, said = memory.conversations.flusher().queue_transcript(stream, force=True, queue=False)
    talk = [(n, turn) for n, turn in enumerate(said, 1) if turn.role != "tool" and len(turn.text.split()) > 8]
    words = sum(len(turn.text.split()) for turn in said)
    with FakeModel(*script(talk, words), {"text": "done"}) as fake, transcript.open("rb") as stream:
        memory.flush(stream, model=Memory.endpoint("sk-none", fake.url, "scripted"), force=True)
        bodies = fake.bodies
    from ua_memory.retain.subagent import format_turns

    read = tokens.count(format_turns(said, None))
    uncached, shares, before = 0, [], ""
    for body in bodies:
        text, upto = serialised(body)
        common = before if before and text.startswith(before) else ""
        shares += [len(common.encode()) / len(before.encode())] if before else []
        uncached += tokens.count(text[len(common) :])
        before = text[:upto]
    detail = f"{uncached:,} tokens new in {len(bodies)} requests, {read:,} read"
    worst = min(shares, default=0.0)
    return [
        Figure(
            "tokens not from the cache, against what is read", uncached / (read + OVERHEAD), UNCACHED, detail
        ),
        Figure(
            "80 % against the shared prefix", PREFIX / worst if worst else 9.0, 1.0, f"{worst:.0%} at least"
        ),
    ]


def script(talk: Sequence[tuple[int, Any]], words: int) -> list[dict[str, Any]]:
    """Reads core, then keeps 15 statements for 10,000 words, four at a time."""
    kept = []
    for number, turn in talk[: max(4, words * 15 // 10_000)]:
        quote = " ".join(turn.text.split()[:8])
        statement = {"content": quote, "tags": [], "quote": quote, "turn": number}
        kept.append(("archival_memory_insert", statement))
    first: dict[str, Any] = {"calls": [("get_core_memory_blocks", {})]}
    return [first, *({"calls": kept[n : n + 4]} for n in range(0, len(kept), 4))]


def serialised(body: Mapping[str, Any]) -> tuple[str, int]:
    """The prompt as the cache sees it, in the API's order, and where its last breakpoint lies."""
    parts, upto = [json.dumps(body.get("tools", []), ensure_ascii=False)], 0
    blocks = list(body.get("system", []))
    for message in body["messages"]:
        blocks += [{"role": message["role"], **block} for block in message["content"]]
    for block in blocks:
        plain = {key: value for key, value in block.items() if key != "cache_control"}
        parts.append(json.dumps(plain, ensure_ascii=False))
        if "cache_control" in block:
            upto = sum(map(len, parts))
    return "".join(parts), upto


if __name__ == "__main__":
    main(measure)
