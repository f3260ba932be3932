"""What somebody who looks at the page waits for: until it listens, each view as the server answers it, its
bytes, the server's memory, and what is typed; in a bank of 100,000 facts over 10,000 days.

No model is loaded, and no daemon runs: what is typed is searched by words.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path

from figures import Figure, console_script, main, process
from invented import FIRST, committed, environment, fill, sentence

from ua_memory.index.sync import Index
from ua_memory.memory import Memory

NAMES = [
    f"{first}{one} {last}{other}"
    for first in ("Ad", "Bo", "Cy", "Di", "Ed")
    for one in ("a", "ka", "lin", "mar", "ron", "sa", "tel", "vik", "wen", "zo")
    for last in ("Am", "Bir", "Col", "Dor", "Es", "Far", "Gor", "Hil", "Ing", "Jor")
    for other in ("berg", "dal", "es", "feld", "gard", "holt", "mann", "sen", "ton", "wick")
]
"""5,000 names, which two of each day meet."""
QUICK, OTHERS, TYPED = 30.0, 100.0, 50.0
"""Milliseconds of the server at the 95th percentile: of the first page, a day and a card; of any other page;
of a search as one types."""


def measure(args: Sequence[str]) -> Iterator[Figure]:
    """[FACTS [RUNS]]: how many facts (100,000), and how often each page is asked for (20)."""
    facts, runs = (*(int(arg) for arg in args), *(100_000, 20)[len(args) :])
    with tempfile.TemporaryDirectory() as folder:
        env, root = environment(folder, "off"), Path(folder) / "bank"
        process(console_script()[0], "init", str(root), env=env)()
        fill(root, facts, each=10)
        for number, day in enumerate(sorted((root / "memory").glob("20*.md"))):
            name, other = NAMES[number % len(NAMES)], NAMES[7 * number % 97]
            line = f"- {name} met {other} in Lisbon. ^{_id(day.stem)}\n"
            day.write_text(day.read_text() + line)
        with Memory.open(root) as memory:
            committed(memory)
            with Index(memory.store) as index:
                index.refresh(vectors=False)
        yield from _served(root, env, runs)


def _id(day: str) -> str:
    """A block id as ours are: ten of a–z and 2–7."""
    return day.replace("-", "").translate({48: "o", 49: "l", 56: "b", 57: "g"}).rjust(10, "a")


def _served(root: Path, env: dict[str, str], runs: int) -> Iterator[Figure]:
    began = time.perf_counter()
    server = subprocess.Popen(
        [console_script()[0], "--bank", str(root), "web", "--no-open"],
        env=env,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout is not None
        link = next(found[0] for line in server.stdout if (found := re.findall(r"http://\S+/enter\S+", line)))
        with urllib.request.urlopen(link) as answer:
            cookie = answer.headers["set-cookie"].split(";")[0]
        took = time.perf_counter() - began
        yield Figure("page: until it is signed in, s", took, bar=1.2, detail="")
        base, day = link.partition("/enter")[0], FIRST.date().isoformat()
        views = {
            "/": QUICK, f"/days/{day}": QUICK, f"/f/{_id(day)}": QUICK, "/names": OTHERS,
            "/names/Ada%20Amberg": OTHERS, "/graph": OTHERS, "/sessions": OTHERS,
            "/core": OTHERS, "/diary": OTHERS, "/work": OTHERS, "/pages": OTHERS,
            "/beliefs": OTHERS, f"/files/memory/{day}.md": OTHERS,
            "/search?by=words&q=QUERY": TYPED,
        }  # fmt: skip
        for view, bar in views.items():
            times, size = [], 0
            for _ in range(runs):
                url = base + view.replace("QUERY", "%20".join(sentence(3).split()))
                asked = urllib.request.Request(url, headers={"cookie": cookie})
                start = time.perf_counter()
                with urllib.request.urlopen(asked, timeout=120) as answer:
                    size = max(size, len(answer.read()))
                times.append(1000 * (time.perf_counter() - start))
            p95 = sorted(times)[int(0.95 * (len(times) - 1))]
            yield Figure(
                f"page: {view}, p95 in ms", p95, bar=bar, detail=f"first {times[0]:.0f} ms; {size:,} bytes"
            )
        status = Path(f"/proc/{server.pid}/status").read_text()
        held = int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) / 1024
        yield Figure("page: the server's memory in MB", held, bar=120, detail="without the model")
    finally:
        os.kill(server.pid, signal.SIGTERM)
        server.wait(20)


if __name__ == "__main__":
    main(measure)
