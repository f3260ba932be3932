"""What grows with a bank: a search inside the daemon, the daemon's memory, one insert.

Vectors are drawn, not computed (`invented`). A search is held against embedding its query alone, which is
done here by the same code while the daemon rests; an insert into a large and old bank against one into a
small one, in turn.

Needs an installation that is not editable, since that is what users have; `make bench` makes one.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from figures import Figure, console_script, main, paired, process, seconds
from invented import Asked, committed, environment, fill, grown, indexed, sentence
from warm import at_rest, megabytes

from ua_memory.index.embedding import Embedder
from ua_memory.memory import Memory

BARS = ((1000, 2, 400), (10_000, 3, 400), (100_000, 6, 700))
"""Up to so many facts: the bar of a search in embeddings, that of the daemon's memory in MB."""
SEARCHES = 60


def measure(args: Sequence[str]) -> Iterator[Figure]:
    """[FACTS...]: 1,000 and 10,000 unless told; the promise goes to 100,000. Inserts are measured in the
    largest, with a tenth as many revisions."""
    sizes = [int(arg) for arg in args] or [1000, 10_000]
    for facts in sizes:
        with tempfile.TemporaryDirectory() as folder:
            yield from _searches(folder, facts, rest=facts == max(sizes))
    with tempfile.TemporaryDirectory() as folder:
        yield from _inserts(folder, max(sizes))


def _bank(folder: str, name: str, env: dict[str, str]) -> Path:
    root = Path(folder) / name
    process(console_script()[0], "init", str(root), env=env)()
    return root


def _searches(folder: str, facts: int, rest: bool) -> Iterator[Figure]:
    env = environment(folder)
    root = _bank(folder, "bank", env)
    fill(root, facts, each=28)
    with Memory.open(root) as memory:
        committed(memory)
        took = indexed(memory)
    at = (console_script()[0], "--bank", str(root))
    process(*at, "daemon", "start", env=env)()
    try:
        bar, most = next((bar, most) for upto, bar, most in BARS if facts <= upto)
        yield _search(root, env, bar, f"{facts:,} facts, indexed in {took:.0f} s")
        if rest:
            yield from at_rest(at, root, env, facts, most)
        else:
            yield Figure("daemon's memory in MB, warm", megabytes(at, env), most, f"{facts:,} facts")
    finally:
        process(*at, "daemon", "stop", env=env)()


def _search(root: Path, env: dict[str, str], bar: float, told: str) -> Figure:
    asked, model, pairs = Asked(root, env), Embedder(), []
    for _ in range(SEARCHES + 3):
        query = sentence(5)
        pairs.append((asked.seconds("search", query, "--json"), seconds(lambda q=query: model.texts([q]))))
    asked.close()
    ours, theirs = zip(*pairs[3:], strict=True)
    ratios = sorted(a / b for a, b in pairs[3:])
    p50, alone, p95 = statistics.median(ours), statistics.median(theirs), sorted(ours)[int(SEARCHES * 0.95)]
    said = f"{told}; {p50 * 1000:.1f} ms (p95 {p95 * 1000:.1f}) against {alone * 1000:.1f} ms"
    return Figure("search in the daemon / embedding alone", p50 / alone, bar, said, ratios[0], ratios[-1])


def _inserts(folder: str, facts: int) -> Iterator[Figure]:
    env, roots = environment(folder), []
    for name, many, revisions in (("large", facts, facts // 10), ("small", 100, 10)):
        roots.append(_bank(folder, name, env))
        with Memory.open(roots[-1]) as memory:
            grown(memory, many, revisions)
            indexed(memory)
    told = f"{facts:,} facts, {facts // 10:,} revisions against 100 and 10"
    try:
        yield _insert("warm", roots, env, 25, told)
    finally:
        for root in roots:
            process(console_script()[0], "--bank", str(root), "daemon", "stop", env=env)()
    yield _insert("no daemon", roots, {**env, "UA_MEMORY_DAEMON": "off"}, 9, told)


def _insert(kind: str, roots: Sequence[Path], env: dict[str, str], runs: int, told: str) -> Figure:
    number = iter(range(10**6))

    def insert(root: Path) -> None:
        text = f"a line that somebody says, number {next(number)}"
        process(console_script()[0], "--bank", str(root), "insert", text, env=env)()

    name, (large, small) = f"insert, {kind}: large bank / small bank", roots
    return paired(name, lambda: insert(large), lambda: insert(small), bar=1.5, runs=runs, detail=told)


if __name__ == "__main__":
    main(measure)
