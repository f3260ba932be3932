"""A measured figure, and how to get one on a shared, noisy machine: in pairs, as a ratio, by the median."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

os.environ["UA_MEMORY_DAEMON"] = "off"  # what is measured is the process itself; `warm` says otherwise


@dataclass(frozen=True, slots=True)
class Figure:
    """One ratio against its bar. `lower` and `upper` are the smallest and largest ratio of any pair."""

    name: str
    ratio: float
    bar: float
    detail: str
    lower: float = 0.0
    upper: float = 0.0

    @property
    def met(self) -> bool:
        return self.ratio <= self.bar

    def __str__(self) -> str:
        span = f" ({self.lower:.2f}–{self.upper:.2f})" if self.upper else ""
        verdict = "ok  " if self.met else "MISS"
        return f"{verdict} {self.name:<48} {self.ratio:6.2f}{span:<15} bar {self.bar:<5g} {self.detail}"


def machine() -> str:
    """What it was measured on."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    model = next((line.split(":")[1].strip() for line in lines if "model name" in line), platform.machine())
    git = subprocess.run(["git", "--version"], capture_output=True, text=True, check=True).stdout.split()[2]
    system = f"{platform.system()} {platform.release()}"
    cores = f"{os.cpu_count()} cores (two at work take {beside():.2f} × as long as one)"
    return f"{model}, {cores}, {system}, Python {platform.python_version()}, git {git}"


def beside() -> float:
    """How much longer a loop takes beside another: 1 where there are two cores, 2 where a shared machine has
    only one for us at the moment. What is done in two threads is to be judged by it."""
    loop = [sys.executable, "-c", "sum(range(15_000_000))"]

    def together(many: int) -> None:
        for one in [subprocess.Popen(loop) for _ in range(many)]:
            one.wait()

    pairs = [(seconds(lambda: together(2)), seconds(lambda: together(1))) for _ in range(3)]
    return statistics.median(two / one for two, one in pairs)


def seconds(work: Callable[[], object]) -> float:
    """Wall time of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def paired(
    name: str,
    ours: Callable[[], object],
    theirs: Callable[[], object],
    *,
    bar: float,
    runs: int,
    detail: str = "",
    between: Callable[[], object] = lambda: None,
) -> Figure:
    """Both in turn, `runs` times after one warm-up each; the median of the pairs' ratios. `between` comes
    before each pair, and is not counted."""
    between(), seconds(ours), seconds(theirs)
    pairs = [(between(), seconds(ours), seconds(theirs))[1:] for _ in range(runs)]
    ratios = sorted(a / b for a, b in pairs)
    mine, other = (statistics.median(side) * 1000 for side in zip(*pairs, strict=True))
    said = f"{mine:.1f} ms against {other:.1f} ms" + (f"; {detail}" if detail else "")
    return Figure(name, statistics.median(ratios), bar, said, ratios[0], ratios[-1])


def ratio(name: str, pairs: Sequence[tuple[float, float]], bar: float, detail: str) -> Figure:
    """A figure from pairs of seconds that were measured in turn."""
    ratios = sorted(ours / theirs for ours, theirs in pairs)
    mine, other = (statistics.median(side) for side in zip(*pairs, strict=True))
    said = f"{mine:.2f} s against {other:.2f} s; {detail}"
    return Figure(name, statistics.median(ratios), bar, said, ratios[0], ratios[-1])


def process(
    *argv: str, env: dict[str, str] | None = None, cwd: Path | None = None, stdin: str = ""
) -> Callable[[], object]:
    """A whole process, its output thrown away; it must succeed."""

    def run() -> None:
        done = subprocess.run(argv, env=env, cwd=cwd, input=stdin, text=True, capture_output=True)
        if done.returncode:
            raise SystemExit(f"{' '.join(argv)} exited {done.returncode}: {done.stderr[-500:]}")

    return run


def console_script() -> tuple[str, str]:
    """The installed `ua-memory` beside this interpreter, and the interpreter its first line names."""
    script = Path(sys.executable).with_name("ua-memory")
    first = script.read_text(encoding="utf-8").splitlines()[0]
    return str(script), first.removeprefix("#!").strip()


def main(measure: Callable[[Sequence[str]], Iterable[Figure]]) -> None:
    """Run one benchmark file by itself."""
    print(machine())
    for figure in measure(sys.argv[1:]):
        print(figure, flush=True)
