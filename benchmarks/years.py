"""Ten years of daily logs and a million facts: made up, adopted, indexed, edited, searched, written to.

Not part of `make bench`: `make years N=1000000` takes hours and some 10 GB of `TMPDIR`. Facts are what
flushes and a person write, of invented words; vectors are drawn, not computed (`invented`), queries are
embedded. Each step is a process of its own, so that its memory is its own. Beside each wall time stands the
processor time of all threads, which says more on a machine that does other things; no bar is set.

Needs an installation that is not editable, since that is what users have; `make years` makes one.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path

from figures import console_script, machine
from invented import FIRST, WORDS, Asked, Drawn, environment, sentence
from warm import busy, megabytes, pid

from ua_memory.index.sync import Index, Refresh
from ua_memory.memory import Memory

DAYS = 3652
LETTERS = "abcdefghijklmnopqrstuvwxyz234567"
NAMES = 3000
"""People and things that one fact in five names."""
TALK = 40
"""Facts below one heading: what a flush brings at once."""
RUNS = 60
AT_A_TIME = 60.0
"""Seconds of searches in one series, at most."""


def main(argv: Sequence[str]) -> None:
    """[--words] [--in FOLDER] [FACTS…]: a bank of so many each, one million unless told; without vectors and
    what needs them; in a folder where it stays, and where the next run goes on with it.
    For a process of its own: STEP BANK."""
    if argv and (step := {**STEPS, **WITHOUT}.get(argv[0])):
        return print(json.dumps(step(Path(argv[1]))))
    options = argparse.ArgumentParser()
    options.add_argument("--words", action="store_true")
    options.add_argument("--in", dest="folder")
    options.add_argument("facts", type=int, nargs="*", default=[1_000_000])
    chosen = options.parse_args(argv)
    print(machine(), flush=True)
    for facts in chosen.facts:
        kept = contextlib.nullcontext(chosen.folder) if chosen.folder else tempfile.TemporaryDirectory()
        with kept as folder:
            for name, value in _lived(Path(folder).absolute(), facts, vectors=not chosen.words):
                print(f"{facts:>9,}  {name:<46} {value}", flush=True)


def _lived(folder: Path, facts: int, vectors: bool) -> Iterator[tuple[str, str]]:
    env, root = environment(str(folder), daemon="off"), folder / "bank"
    at = (console_script()[0], "--bank", str(root))
    if not root.exists():
        (root / "memory").mkdir(parents=True)
        yield f"text in {DAYS:,} logs", f"{written(root, facts) / 1e6:.0f} MB"
        yield "init: all of it a person's commit", ran([at[0], "init", str(root)], env).told
        yield "git", _megabytes(root / ".git", "objects")
    for step in STEPS if vectors else ("words", "reworded", "sought"):
        done = ran([sys.executable, __file__, step, str(root)], env)
        for name, value in json.loads(done.said).items() if not done.failed else [(step, "failed")]:
            yield f"{step}: {name}", value
        yield f"{step}: the whole process", done.told
        if step in ("vectors", "reworded"):
            yield from _sizes(root / ".git" / "ua-memory")
    yield from _commands(at, root, env, vectors)
    if vectors:
        yield from _warm(at, root, env)
    yield "git, at the end", _megabytes(root / ".git", "objects")


def written(root: Path, facts: int) -> int:
    """Daily logs with so many facts in all; the bytes of their text."""
    rng, size, told = random.Random(7), 0, 0
    names = [" ".join(rng.sample(WORDS, 2)).title() for _ in range(NAMES)]
    for day in range(DAYS):
        date = (FIRST + timedelta(days=day)).date().isoformat()
        lines, until = [f"# {date}\n"], facts * (day + 1) // DAYS
        for number in range(told, until):
            if (number - told) % TALK == 0:
                hour = 9 + (number - told) // TALK % 14
                lines.append(f"\n## {hour:02}:00 · claude-code · session {number:08x}\n\n")
            lines.append(_fact(rng, number, date, names))
        told, text = until, "".join(lines).encode()
        (root / "memory" / f"{date}.md").write_bytes(text)
        size += len(text)
    return size


def _fact(rng: random.Random, number: int, date: str, names: list[str]) -> str:
    """One in ten is a person's line without an id; one in five has a day and names."""
    said, kind = sentence(rng.randint(6, 16), rng), number % 10
    if kind == 0:
        return f"- {said}\n"
    block = "".join(LETTERS[number // 32**place % 32] for place in range(10))
    more = f"  - when: {date}\n  - entities: [[{rng.choice(names)}]], [[{rng.choice(names)}]]\n"
    return f"- {said} ^{block}\n{more if kind in (3, 7) else ''}"


# -- steps, each in a process of its own ---------------------------------------------------------------------


def _words(root: Path) -> dict[str, str]:
    with Memory.open(root) as memory:
        told = {"words, links and days": _timed(lambda: memory.index.refresh(vectors=False))}
        return {**told, "nothing changed": _timed(lambda: memory.index.refresh(vectors=False))}


def _vectors(root: Path) -> dict[str, str]:
    with Memory.open(root) as memory, Index(memory.store, embeds=Drawn()) as index:
        reports: list[Refresh] = []
        told = {"drawn, put into the cache and into Chroma": _timed(lambda: reports.append(index.refresh()))}
        return {**told, "left": f"{reports[0].left_texts} texts, {reports[0].semantic}"}


def _edited(root: Path, vectors: bool = True) -> dict[str, str]:
    """A person adds a line to one log; in a process that has had the index open before."""
    log = sorted((root / "memory").glob("*.md"))[DAYS // 2]
    with Memory.open(root) as memory, Index(memory.store, embeds=Drawn()) as index:
        told = {"the first look of a process": _timed(lambda: index.refresh(vectors))}
        for name, also in {"words after one hand edit": False, "and vectors after another": vectors}.items():
            with log.open("a", encoding="utf-8") as file:
                file.write(f"- {sentence(9)}\n")
            told[name] = _timed(lambda also=also: index.refresh(also))
        return told


def _searched(root: Path, vectors: bool = True) -> dict[str, str]:
    """Searches of one process, what is shown found again in its files."""
    with Memory.open(root) as memory:
        told = {"the first": _timed(lambda: memory.search_many([sentence(5)], by_words=not vectors))}
        for name, by_words in {"by words": True, "by everything": False}.items():
            if vectors or by_words:
                told[name] = _spread(lambda by=by_words: memory.search_many([sentence(5)], by_words=by))
        return told


STEPS: dict[str, Callable[[Path], dict[str, str]]] = {
    "words": _words, "vectors": _vectors, "edited": _edited, "searched": _searched,
}  # fmt: skip
WITHOUT = {"reworded": lambda root: _edited(root, False), "sought": lambda root: _searched(root, False)}
"""The same without vectors."""


# -- whole commands ------------------------------------------------------------------------------------------


def _commands(
    at: tuple[str, ...], root: Path, env: dict[str, str], vectors: bool
) -> Iterator[tuple[str, str]]:
    """What a person types, no daemon."""
    archive = root.parent / "bank.tar"
    block = "".join(LETTERS[1 // 32**place % 32] for place in range(10))
    for argv in (
        ("insert", "a line that somebody says"), ("insert", "another line that somebody says"),
        *[("search", "--json", sentence(5))] * vectors, ("get", f"^{block}"), ("log", "-n", "5"), ("status",),
        ("stats",), ("verify",), ("export", str(archive)),
    ):  # fmt: skip
        yield f"{argv[0]}, no daemon", ran([*at, *argv], env).told
    if archive.exists():
        yield "the archive", f"{archive.stat().st_size / 1e6:.0f} MB"
        archive.unlink()


def _warm(at: tuple[str, ...], root: Path, env: dict[str, str]) -> Iterator[tuple[str, str]]:
    env = {**env, "UA_MEMORY_DAEMON": "require"}
    yield "daemon start", ran([*at, "daemon", "start"], env).told
    try:
        asked, daemon = Asked(root, env), pid(at, env)
        for verb, words in (("search", ("--json",)), ("insert", ())):
            yield f"{verb} in the daemon, the first", f"{asked.seconds(verb, sentence(5), *words):.2f} s"
            work = _spread(lambda: asked.seconds(verb, sentence(5), *words), lambda: busy(daemon))  # noqa: B023
            yield f"{verb} in the daemon", work
        asked.close()
        yield "memory of the daemon", f"{megabytes(at, env):.0f} MB"
    finally:
        ran([*at, "daemon", "stop"], env)


class ran:
    """A process to its end: its time, its processor time, the most memory it had, what it said."""

    def __init__(self, argv: Sequence[str], env: dict[str, str]) -> None:
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            began = time.perf_counter()
            process = subprocess.Popen(argv, env=env, stdout=out, stderr=err, stdin=subprocess.DEVNULL)
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = self.failed = os.waitstatus_to_exitcode(status)
            took = time.perf_counter() - began
            out.seek(0), err.seek(0)
            self.said, complaint = out.read().decode(), err.read().decode()
        busy, most = used.ru_utime + used.ru_stime, used.ru_maxrss / 1024
        self.told = f"{took:.2f} s, {busy:.2f} s of processor, {most:.0f} MB"
        if self.failed:
            self.told += f", exited {self.failed}: {' '.join(complaint.split())[-200:]}"


def _timed(work: Callable[[], object]) -> str:
    began, busy_before = time.perf_counter(), _processor()
    work()
    return f"{time.perf_counter() - began:.2f} s, {_processor() - busy_before:.2f} s of processor"


def _spread(work: Callable[[], object], processor: Callable[[], float] | None = None) -> str:
    """So many times, as long as there is time for it: wall time of each, and processor time of all."""
    used, took, until = processor or _processor, list[float](), time.monotonic() + AT_A_TIME
    before = used()
    while len(took) < RUNS and (time.monotonic() < until or len(took) < 2):
        began = time.perf_counter()
        work()
        took.append(time.perf_counter() - began)
    each, took = (used() - before) / len(took) * 1000, sorted(took)
    p50, p95 = statistics.median(took) * 1000, took[int(len(took) * 0.95)] * 1000
    return f"{each:.0f} ms of processor each; p50 {p50:.0f} ms, p95 {p95:.0f} ms of {len(took)}"


def _processor() -> float:
    """Seconds of this process, all threads, and of the processes it waited for."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def _sizes(state: Path) -> Iterator[tuple[str, str]]:
    yield "word index", _megabytes(state / "index", "words.db")
    yield "Chroma", _megabytes(state / "index", "chroma/")
    yield "cache of embeddings", _megabytes(state / "cache", "")


def _megabytes(folder: Path, part: str) -> str:
    files = (file for file in folder.rglob("*") if part in str(file) and file.is_file())
    return f"{sum(file.stat().st_size for file in files) / 1e6:.0f} MB"


if __name__ == "__main__":
    main(sys.argv[1:])
