"""One Chroma server on loopback for two machines that have the same bank, and a rebuild that is killed.

Not part of `make bench`: FACTS (a million unless told) of invented words; vectors are drawn at random, each
of length 1, which is the harder case for the graph. The words are indexed first; then a process puts the
vectors on the server, is killed once the server has a third of them, and another goes on. The second machine
is a copy of the bank in another folder, which has nothing on the server. Each step is a process of its own;
beside wall time stands the processor time of its threads, and what the server used meanwhile.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from figures import console_script, machine
from invented import environment, sentence
from warm import busy
from years import _megabytes, _spread, _timed, ran, written

from ua_memory import config
from ua_memory.index.embedding import DIMENSIONS, Embedder
from ua_memory.index.sync import Index
from ua_memory.memory import Memory

LOG = "memory/2015-01-01.md"


def main(argv: Sequence[str]) -> None:
    """[--bank FOLDER] [FACTS]: of a bank that `years.py --words --in FOLDER` has made, or of one made here;
    for a process of its own: STEP BANK URL."""
    if argv and argv[0] in STEPS:
        return print(json.dumps(STEPS[argv[0]](Path(argv[1]), argv[2])))
    options = argparse.ArgumentParser()
    options.add_argument("--bank", type=Path)
    options.add_argument("facts", type=int, nargs="?", default=1_000_000)
    chosen = options.parse_args(argv)
    print(machine(), flush=True)
    with tempfile.TemporaryDirectory() as folder, _chroma(Path(folder)) as (server, url):
        before = 0.0
        for name, value in _measured(Path(folder), url, chosen.facts, chosen.bank):
            used, held = _used(server)
            value += f"; server: {used - before:.0f} s of processor, {held:.0f} MB"
            print(f"{chosen.facts:>9,}  {name:<46} {value}", flush=True)
            before = used


def _measured(folder: Path, url: str, facts: int, made: Path | None) -> Iterator[tuple[str, str]]:
    env, root, other = environment(str(folder), daemon="off"), folder / "bank", folder / "other"
    if made:
        shutil.copytree(made / "bank", root)
    else:
        (root / "memory").mkdir(parents=True)
        written(root, facts)
        yield "init", ran([console_script()[0], "init", str(root)], env).told
    yield "words", _step("words", root, "", env)
    first = subprocess.Popen([sys.executable, __file__, "vectors", str(root), url], env=env)
    while _rows(url) < facts / 3 and first.poll() is None:
        time.sleep(1)
    first.send_signal(signal.SIGKILL)
    first.wait()
    yield "killed with so many rows on the server", f"{_rows(url):,}"
    yield "another process goes on", _step("vectors", root, url, env)
    yield "a third has nothing left to do", _step("vectors", root, url, env)
    shutil.copytree(root, other)
    yield "its vectors, by the copied cache", _step("vectors", other, url, env)
    yield "rows of both", f"{_rows(url):,}"
    (other / LOG).write_text("- all else of this day is gone\n", encoding="utf-8")
    yield "the second drops a day", _step("vectors", other, url, env)
    yield "rows of both, then", f"{_rows(url):,}"
    for name, bank in {"first": root, "second": other}.items():
        yield f"searches on the {name} machine", _step("searches", bank, url, env)
    yield "on the server's disk", _megabytes(folder / "chroma", "")


def _step(name: str, root: Path, url: str, env: dict[str, str]) -> str:
    done = ran([sys.executable, __file__, name, str(root), url], env)
    return done.told if done.failed else f"{json.loads(done.said)}; {done.told}"


def _opened(root: Path, url: str) -> Memory:
    return Memory.open(root, config=replace(config.load(root, {}), chroma_url=url))


def _words(root: Path, url: str) -> str:
    with _opened(root, url) as memory:
        return _timed(lambda: memory.index.refresh(vectors=False))


def _vectors(root: Path, url: str) -> str:
    with _opened(root, url) as memory, Index(memory.store, embeds=Unit()) as index:
        sent, upsert, began = list[int](), index.vectors.upsert, time.perf_counter()
        index.vectors.upsert = lambda rows: sent.append(len(rows)) or upsert(rows)  # type: ignore[method-assign, func-returns-value]
        done = index.refresh()
        put = f"{sum(sent):,} sent in {time.perf_counter() - began:.0f} s"
        return f"{done.embedded:,} drawn, {put}, {done.left_texts:,} left, {done.semantic}"


class Unit:
    """Vectors drawn at random under the model's name."""

    model = Embedder().model

    def texts(self, texts: Sequence[str]) -> Any:
        import numpy as np

        rows = np.random.default_rng().standard_normal((len(texts), DIMENSIONS), dtype=np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def _searches(root: Path, url: str) -> str:
    with _opened(root, url) as memory:
        memory.search_many([sentence(5)])
        return _spread(lambda: memory.search_many([sentence(5)]))


STEPS = {"words": _words, "vectors": _vectors, "searches": _searches}


@contextlib.contextmanager
def _chroma(folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A server of this environment's Chroma, which answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        Path(sys.executable).with_name("chroma"),
        "run",
        "--path",
        folder / "chroma",
        "--port",
        str(port),
    ]
    with (folder / "chroma.log").open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        url = f"http://127.0.0.1:{port}"
        for _ in range(600):
            with contextlib.suppress(OSError, ValueError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.1)
        yield server, url
    finally:
        server.terminate()
        server.wait()


def _used(server: subprocess.Popen[bytes]) -> tuple[float, float]:
    """Seconds of processors until now, and the most MB that it held."""
    peak = next(row for row in Path(f"/proc/{server.pid}/status").read_text().splitlines() if "VmHWM" in row)
    return busy(server.pid), int(peak.split()[1]) / 1024


def _rows(url: str) -> int:
    """Rows of all collections on the server."""
    return sum(each.count() for each in _client(url).list_collections())


@cache
def _client(url: str) -> Any:
    import chromadb

    host, _, port = url.rpartition("//")[2].partition(":")
    return chromadb.HttpClient(host, int(port))


if __name__ == "__main__":
    main(sys.argv[1:])
