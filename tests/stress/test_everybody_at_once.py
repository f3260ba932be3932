"""Everybody at one day's file (I1, I3, I22, I42): many processes, an editor, git, a daemon, a rebuild.

Six processes with five facts each in every test run; `make stress N=64` takes 64 with fifty each.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from daemons import Place
from store_banks import first_author, insert, make, open_again, python

from ua_memory.errors import Busy
from ua_memory.index.sync import Index
from ua_memory.markdown import document as markdown
from ua_memory.records import Fact
from ua_memory.store.store import Store
from ua_memory.upkeep import audit
from ua_memory.upkeep import doctor as checking

PROCESSES = int(os.environ.get("STRESS_PROCESSES", "6"))
FACTS = int(os.environ.get("STRESS_FACTS", "5"))
PAUSE = 0.3
"""Seconds between two saves of the editor: often enough to meet its own last save amid a write of ours."""
SECONDS = float(os.environ.get("STRESS_SECONDS", 60 + PROCESSES * FACTS * 2))
"""So long it may take; more on a machine that has other things to do."""
SAMPLE = 200
"""So many commits, evenly spread, are read and parsed one by one."""
READ_ONLY = (["status", "--short"], ["log", "--oneline", "-5"], ["diff", "--stat"])

INSERT = """
import sys
from dataclasses import replace
from pathlib import Path
from ua_memory import config
from ua_memory.errors import Busy
from ua_memory.memory import Memory
root, mine, facts = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
memory = Memory.open(root, config=replace(config.load(root, {}), lock_seconds=600.0), door="stress")
print("ready", flush=True)
sys.stdin.readline()
for number in range(facts):
    for again in range(100):
        try:
            memory.insert(f"Fact {number} of process {mine}.", request=f"{mine}-{number}")
            break
        except Busy:  # as a door tells it; the same request is carried out once
            continue
    else:
        raise SystemExit("busy a hundred times")
memory.close()
"""


class Around:
    """What goes on in other threads until all facts are written."""

    def __init__(self, place: Place, day: Path) -> None:
        self.place, self.day = place, day
        self.over = threading.Event()
        self.saves = self.gits = self.rebuilds = 0
        self.trouble: list[str] = []

    def edit(self) -> None:
        """A person reads the file, adds a line, and saves: in place, or by a new file under its name."""
        while not self.over.wait(PAUSE):
            if not self.day.exists():
                continue
            self.saves += 1
            text = self.day.read_text()
            time.sleep(0.02)
            text += ("" if text.endswith("\n") else "\n") + f"- By hand, number {self.saves}.\n"
            if self.saves % 2:
                self.day.write_text(text)
            else:
                fresh = self.day.with_name(".day.swp")
                fresh.write_text(text)
                fresh.replace(self.day)

    def git(self) -> None:
        while not self.over.wait(0.2):
            words = [*READ_ONLY, ["add", "memory"], ["gc", "--quiet"]][self.gits % 5]
            done = subprocess.run(["git", *words], cwd=self.place.root, capture_output=True, check=False)
            # git maps what it compares into memory: a file that an editor shortens meanwhile ends it so.
            if words in READ_ONLY and done.returncode not in (0, -signal.SIGBUS):
                self.trouble.append(f"git {' '.join(words)}: {done.returncode} {done.stderr.decode()}")
            self.gits += 1

    def rebuild(self) -> None:
        while not self.over.wait(1):
            done = self.place.run("index", "rebuild")
            self.rebuilds += done.code == 0
            if done.code not in (0, Busy.exit_code):  # a daemon has the vectors, and no time for a rebuild
                self.trouble.append(done.err)


@contextmanager
def going_on(around: Around) -> Iterator[None]:
    threads = [threading.Thread(target=work) for work in (around.edit, around.git, around.rebuild)]
    for each in threads:
        each.start()
    try:
        yield
    finally:
        around.over.set()
        for each in threads:
            each.join(120)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    found = Place(make(tmp_path / "bank").bank.root)
    yield found
    found.kill()


@pytest.mark.slow
def test_everybody_at_once(
    place: Place, record_property: Callable[[str, object], None], request: pytest.FixtureRequest
) -> None:
    insert(open_again(place.root), "of the day before")
    assert place.run("daemon", "start").code == 0
    day = place.root / "memory" / f"{datetime.now(UTC):%Y-%m-%d}.md"
    children = [python(INSERT, place.root, n, FACTS) for n in range(PROCESSES)]
    request.addfinalizer(lambda: [child.kill() for child in children])
    for child in children:
        assert child.stdout and child.stdout.readline() == "ready\n"
    around, began = Around(place, day), time.monotonic()
    with going_on(around):
        for child in children:
            assert child.stdin
            child.stdin.write("go\n")
            child.stdin.flush()
        for child in children:
            _, trouble = child.communicate(timeout=SECONDS)
            assert child.returncode == 0, trouble
    seconds = time.monotonic() - began
    assert not around.trouble, around.trouble
    assert place.status(), "the daemon is alive"
    place.kill()
    store = open_again(place.root)
    store.adopt()
    store.adopt()
    all_there(store, f"memory/{day.name}", around)
    record_property(
        "figure",
        f"stress: {PROCESSES} processes wrote {PROCESSES * FACTS} facts in {seconds:.0f} s, beside"
        f" {around.saves} saves of an editor, {around.gits} runs of git and {around.rebuilds} rebuilds: all"
        f" there once, {len(store.history.log())} commits",
    )


def all_there(store: Store, path: str, around: Around) -> None:
    data = store.read(path)
    found = Counter(fact.text for fact in markdown.parse(data, path).of(Fact))
    ours = [f"Fact {number} of process {mine}." for mine in range(PROCESSES) for number in range(FACTS)]
    theirs = [f"By hand, number {number}." for number in range(1, around.saves + 1)]
    assert found == Counter([*ours, *theirs])
    assert store.history.read("HEAD", path) == data
    for line in store.history.blame(path, data):
        if line.text.startswith("- Fact "):
            assert line.author == "ua-memory", line
        elif line.author != "Ann" and line.text.startswith("- By hand"):
            # A save of the person's own next buffer had dropped it, and it was put back.
            assert line.subject.startswith("merge: put back"), line
            assert first_author(store, line.text.removeprefix("- "), path) == "Ann"
    revisions = store.history.log()
    for revision in revisions[:: max(1, len(revisions) // SAMPLE)]:
        then = store.history.read(revision.id, path)
        assert then is None or not markdown.parse(then, path).problems, revision
    assert audit.verify(store) == []
    with Index(store) as index:
        index.refresh(vectors=False)
        for text in found:
            assert index.words.by_texthash(markdown.texthash(text)), text
    assert list(checking.check_integrity(store).problems) == []
