"""Made-up banks of any size, quickly: sentences of invented words in daily logs, a trail of many
revisions, and an index whose vectors are drawn instead of computed.

The words are common and rare ones as in a language. A vector says nothing of its text here, which is the
harder case for the graph that finds the nearest.
"""

from __future__ import annotations

import json
import os
import random
import socket
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ua_memory.daemon import connect as address
from ua_memory.git.repository import MACHINE, SOMEBODY, Commit
from ua_memory.index.embedding import DIMENSIONS, Embedder
from ua_memory.index.sync import READY, Index
from ua_memory.memory import Memory

SYLLABLES = tuple("ka lo mi ter ran su vel da no pri sto en ur bi ga fo lin che mar ot".split())  # noqa: SIM905
RNG = random.Random(7)
WORDS = ["".join(RNG.choices(SYLLABLES, k=RNG.randint(1, 4))) for _ in range(4000)]
WEIGHTS = list(accumulate(1 / rank for rank in range(10, 4010)))
FIRST = datetime(2010, 1, 1, 9, tzinfo=UTC)
AT_ONCE = 500
"""Commits handed to git at a time."""


def sentence(length: int, rng: random.Random = RNG) -> str:
    return " ".join(rng.choices(WORDS, cum_weights=WEIGHTS, k=length))


def environment(home: str, daemon: str = "require") -> dict[str, str]:
    """The environment of commands that find nothing of this user's."""
    who = {f"GIT_{role}_{part}": "b@b" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("UA_", "PYTHON"))}
    return {**kept, "HOME": home, "XDG_RUNTIME_DIR": home, "UA_MEMORY_DAEMON": daemon, **who}


def fill(bank: Path, facts: int, each: int = 100) -> None:
    """Facts of 6 to 16 words in daily logs, so many each."""
    (bank / "memory").mkdir(exist_ok=True)
    for day in range((facts + each - 1) // each):
        rows = [f"- {sentence(RNG.randint(6, 16))}\n" for _ in range(min(each, facts - day * each))]
        (bank / _log(day)).write_text("".join(rows), encoding="utf-8")


def grown(memory: Memory, facts: int, revisions: int, each: int = 28) -> None:
    """The same as so many revisions of ours have left it: each adds its share to the log of a day."""
    history, (share, more) = memory.store.history, divmod(facts, revisions)
    logs: dict[str, bytes] = {}
    commits, told = [], 0
    for number in range(revisions):
        path, names = _log(told // each), []
        text = logs.get(path) or f"# {_day(told // each)}\n\n## 09:00 · bench\n\n".encode()
        for _ in range(share + (number < more)):
            names.append(f"^{told:010d}")
            text += f"- {sentence(RNG.randint(6, 16))} {names[-1]}\n".encode()
            told += 1
        logs[path] = text
        trailers = "".join(f"Facts: {name}\n" for name in names)
        message = f"insert: {len(names)} facts into {path}\n\nMemory-Op: insert\nDoor: cli\n{trailers}"
        message += f"Request: {number:020d}-1349189d\n"
        commits.append(Commit(MACHINE, FIRST + timedelta(hours=number), message, {path: text}))
        if len(commits) == AT_ONCE or number == revisions - 1:
            history.commit(commits)
            commits = []
    (memory.store.bank.root / "memory").mkdir(exist_ok=True)
    for path, text in logs.items():
        (memory.store.bank.root / path).write_bytes(text)
    history.repack()


def committed(memory: Memory) -> None:
    """One commit of all files as they are."""
    root = memory.store.bank.root
    files = {f"memory/{file.name}": file.read_bytes() for file in (root / "memory").glob("*.md")}
    memory.store.history.commit(
        [Commit(SOMEBODY, FIRST, "edit: many days\n\nMemory-Op: edit\n", dict(files))]
    )


class Drawn(Embedder):
    """The model with numbers drawn in place of what it computes; everything around them is the model's."""

    def _load(self) -> Any:
        return self._drawn

    @cached_property
    def _drawn(self) -> Any:
        return SimpleNamespace(tokenizer=super()._load().tokenizer, session=_Numbers())


class _Numbers:
    """Numbers as a model's output: stretches of one long row of them, each from a place of its own."""

    def __init__(self) -> None:
        import numpy as np

        self._draw = np.random.default_rng(7)
        self._row = self._draw.standard_normal(1 << 22, dtype=np.float32)

    def run(self, _: object, inputs: dict[str, Any]) -> list[Any]:
        import numpy as np

        many, tokens = inputs["input_ids"].shape
        size = tokens * DIMENSIONS
        starts = self._draw.integers(0, len(self._row) - size, many)
        return [np.stack([self._row[at : at + size].reshape(tokens, DIMENSIONS) for at in starts])]


def indexed(memory: Memory) -> float:
    """Bring words and vectors up to date without the model; the seconds it took."""
    began = time.perf_counter()
    with Index(memory.store, embeds=Drawn()) as index:
        report = index.refresh()
    assert report.semantic == READY and not report.failed, report
    return time.perf_counter() - began


def _log(day: int) -> str:
    return f"memory/{_day(day)}.md"


def _day(day: int) -> str:
    return (FIRST + timedelta(days=day)).date().isoformat()


# -- a daemon, asked without a process of its own ----------------------------------------------------------


class Asked:
    """One connection to a bank's daemon. The time of a command there is that of its exchange, less what an
    exchange takes in which nothing is done."""

    def __init__(self, bank: Path, env: dict[str, str]) -> None:
        self.bank, self.env = bank, env
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(120)
        self.socket.connect(
            f"{next(address.socket_folders(env))}/{address.socket_name(os.path.realpath(bank))}"
        )
        self._lines = self.socket.makefile("rb")

    def close(self) -> None:
        self._lines.close()
        self.socket.close()

    def seconds(self, *argv: str) -> float:
        """How long a command takes inside the daemon; it must succeed."""
        whole, said = self._exchanged("run", self._params(argv))
        if said["result"]["code"]:
            raise SystemExit(f"{argv}: {said}")
        return whole - self._exchanged("status", {})[0]

    def _exchanged(self, method: str, params: dict[str, Any]) -> tuple[float, Any]:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        began = time.perf_counter()
        self.socket.sendall(json.dumps(message).encode() + b"\n")
        for said in self._answers():
            if "id" in said:
                if "result" not in said:
                    raise SystemExit(f"{method}: {said}")
                return time.perf_counter() - began, said
        raise SystemExit("the daemon has ended")

    def _answers(self) -> Iterator[Any]:
        for line in self._lines:
            yield json.loads(line)

    def _params(self, argv: tuple[str, ...]) -> dict[str, Any]:
        home = self.env["HOME"]
        return {
            "protocol": address.PROTOCOL, "code": address.PACKAGE, "cwd": str(self.bank), "home": home,
            "argv": list(argv), "env": {"HOME": home}, "encodings": ["utf-8", "utf-8"], "terminals": [],
            "width": 80, "stdin": None,
        }  # fmt: skip
