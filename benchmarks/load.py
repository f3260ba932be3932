"""Many clients at once: search and insert through one daemon, and afterwards every insert is looked for.

Each client is a process that speaks with the daemon as the command line does (`cli.asking`), one command
after the other without a pause, and does itself what the daemon is too busy for. A round is two searches,
an insert, and a search for what was just inserted, which must find it. Whatever an insert was told to be
done must stand in the files once, and in the commit that was named.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from figures import Figure, main, process
from invented import committed, environment, fill, indexed, sentence

from ua_memory.daemon import connect as asking
from ua_memory.memory import Memory

COMMAND = (sys.executable, "-P", "-m", "ua_memory")
LIMIT = 120.0
"""Seconds after the end in which the last command of each client must be done."""


@dataclass
class Told:
    """What clients did: seconds of each command, what was acknowledged, what went wrong."""

    searches: list[float] = field(default_factory=list)
    inserts: list[float] = field(default_factory=list)
    acknowledged: list[tuple[str, str, str]] = field(default_factory=list)
    alone: int = 0
    """Commands that the daemon was too busy for."""
    unseen: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


def measure(args: Sequence[str]) -> Iterator[Figure]:
    """[SECONDS [CLIENTS [FACTS]]]: 60 s of 32 clients in a bank of 1,000 facts unless told."""
    length, clients, facts = (*(int(arg) for arg in args), *(60, 32, 1000)[len(args) :])
    with tempfile.TemporaryDirectory() as folder:
        env, root = environment(folder), Path(folder) / "bank"
        process(*COMMAND, "init", str(root), env=env)()
        fill(root, facts)
        with Memory.open(root) as memory:
            committed(memory)
            indexed(memory)
        process(*COMMAND, "--bank", str(root), "daemon", "start", env=env)()
        try:
            process(*COMMAND, "--bank", str(root), "search", "a first look", env=env)()
            told = _clients(root, env, length, clients)
        finally:
            process(*COMMAND, "--bank", str(root), "daemon", "stop", env=env)()
        lost = [*_lost(root, told), *_unwell(root, env)]
        for trouble in (*told.errors, *told.unseen, *lost):
            print(f"# {trouble[:300]}", flush=True)
        yield from _figures(told, lost, f"{clients} clients for {length} s, {facts:,} facts")


def _figures(told: Told, lost: list[str], where: str) -> Iterator[Figure]:
    said = f"{len(told.inserts)} inserts {_percentiles(told.inserts)}"
    yield Figure("load: inserts lost, or there twice", len(lost), 0, f"{where}; {said}")
    said = f"{len(told.searches)} searches {_percentiles(told.searches)}"
    yield Figure("load: searches that missed the last insert", len(told.unseen), 0, said)
    yield Figure("load: errors", len(told.errors), 0, f"{told.alone} commands done without the daemon")


def _percentiles(took: list[float]) -> str:
    if len(took) < 2:
        return f"{took}"
    p95 = sorted(took)[int(len(took) * 0.95)]
    return f"p50 {statistics.median(took) * 1000:.0f} ms, p95 {p95 * 1000:.0f} ms, max {max(took):.1f} s"


def _clients(root: Path, env: dict[str, str], length: int, clients: int) -> Told:
    here = [sys.executable, str(Path(__file__).resolve()), "--client", str(root), str(length)]
    running = [
        subprocess.Popen([*here, str(n)], env=env, cwd=root, stdout=subprocess.PIPE, text=True)
        for n in range(clients)
    ]
    told = Told()
    for number, one in enumerate(running):
        try:
            said, _ = one.communicate(timeout=length + LIMIT)
            for name, value in json.loads(said).items():
                setattr(told, name, getattr(told, name) + value)
        except (subprocess.TimeoutExpired, ValueError) as error:
            one.kill()
            told.errors.append(f"client {number}: {error}")
    return told


# -- afterwards --------------------------------------------------------------------------------------------


def _lost(root: Path, told: Told) -> list[str]:
    """The acknowledged inserts that are not in the files just once, or not in the commit they named."""
    with Memory.open(root) as memory:
        history, wrong = memory.store.history, []
        text = "".join(file.read_text(encoding="utf-8") for file in (root / "memory").glob("*.md"))
        known = history.run("rev-list", "HEAD").decode().split()
        facts = {name: fact for revision in memory.history.log(limit=None) for name in _names(revision)
                 for fact in [revision.id]}  # fmt: skip
    for block, fact, revision in told.acknowledged:
        if text.count(fact) != 1 or text.count(f"{fact} ^{block}\n") != 1:
            wrong.append(f"^{block} stands {text.count(fact)} times in the files: {fact}")
        if revision not in known or facts.get(f"^{block}") != revision:
            wrong.append(f"^{block} is not in the commit it named, {revision}")
    return wrong


def _names(revision: Any) -> Sequence[str]:
    return revision.trailers.get("Facts", ())


def _unwell(root: Path, env: dict[str, str]) -> list[str]:
    at = [*COMMAND, "--bank", str(root)]
    done = subprocess.run([*at, "verify"], env=env, capture_output=True, text=True)
    wrong = [f"verify: {done.stdout}{done.stderr}"] if done.returncode else []
    done = subprocess.run(["git", "status", "--short"], cwd=root, env=env, capture_output=True, text=True)
    return [*wrong, *([f"git status: {done.stdout}"] if done.stdout.strip() else [])]


# -- a client ----------------------------------------------------------------------------------------------


def client(root: str, length: float, number: int) -> Told:
    """Rounds of searches and inserts until the time is over."""
    told, rng = Told(), random.Random(number)
    until = time.monotonic() + length
    while time.monotonic() < until:
        for _ in range(2):
            _search(told, root, sentence(5, rng))
        fact = f"{sentence(9, rng)} {number}x{len(told.inserts)}"
        block = _insert(told, root, fact)
        if block and time.monotonic() < until and block not in _search(told, root, fact):
            told.unseen.append(f"{number}: not found after its insert: ^{block} {fact}")
    return told


def _search(told: Told, root: str, query: str) -> list[str]:
    began = time.monotonic()
    found = _done(told, "--bank", root, "search", query, "--json")
    told.searches.append(time.monotonic() - began)
    return [hit.get("id", "") for hit in found["results"]] if found else []


def _insert(told: Told, root: str, fact: str) -> str:
    began = time.monotonic()
    done = _done(told, "--bank", root, "insert", fact, "--json")
    told.inserts.append(time.monotonic() - began)
    if done:
        told.acknowledged.append((done["id"], fact, done["revision"]))
        if done["notes"]:
            told.errors.append(f"insert said: {done['notes']}")
    return done["id"] if done else ""


def _done(told: Told, *words: str) -> Any:
    """What the daemon answers, or a process of its own where it is too busy; None after an error."""
    said = io.BytesIO()
    try:
        with contextlib.redirect_stdout(io.TextIOWrapper(said, "utf-8", write_through=True)) as out:
            code, why = _asked(list(words))
        out.detach()
    except (asking.NoAnswer, OSError) as error:
        told.errors.append(f"{words[2]}: {error!r}")
        return None
    answer = said.getvalue()
    if code is None:
        told.alone += 1
        env = {**os.environ, "UA_MEMORY_DAEMON": "off"}
        done = subprocess.run([*COMMAND, *words], env=env, capture_output=True)
        code, why, answer = done.returncode, done.stderr.decode(), done.stdout
    if code:
        told.errors.append(f"{words[2]} exited {code}: {why}")
        return None
    return json.loads(answer)


def _asked(words: list[str]) -> tuple[int | None, str]:
    home = os.environ["HOME"]
    daemon = asking.connect_to_daemon(words, "/", home)
    if daemon is None:
        return None, "no daemon"
    try:
        daemon.sendall(asking.request_line(words, "/", home, None, []))
        code, _, why = asking.read_answer(daemon)
        return code, why
    finally:
        daemon.close()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--client"]:
        print(json.dumps(vars(client(sys.argv[2], float(sys.argv[3]), int(sys.argv[4])))))
    else:
        main(measure)
