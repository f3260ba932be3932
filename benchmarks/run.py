"""Every figure of `docs/benchmarks.md`, on this machine; the exit code tells whether all bars were met."""

from __future__ import annotations

import sys

import commands
import flush
import growth
import hooks
import index
import load
import page
import scale
import warm
from figures import machine

if __name__ == "__main__":
    print(machine(), flush=True)
    missed = 0
    for benchmark in (commands, index, flush, growth, warm, hooks, scale, load, page):
        for figure in benchmark.measure([]):
            print(figure, flush=True)
            missed += not figure.met
    sys.exit(f"{missed} missed" if missed else 0)
