"""Two editors of one day's file, three writers: nothing acknowledged and no person's line is lost (I1, I8).

A few seconds in every test run; `STRESS_EDITING=300` takes five minutes. One editor keeps a buffer for a
while, adds a line and renames a new file over the old one, as vim does; the other appends, as a shell does.
Neither asks the other. What one of them overwrites before a program of ours has seen it, nobody can know: the
trail has none of these lines, and they alone may be missing.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from store_banks import finish, insert, make, open_again, python

from ua_memory.markdown import document as markdown
from ua_memory.records import Fact
from ua_memory.store.store import Store
from ua_memory.upkeep import audit

SECONDS = float(os.environ.get("STRESS_EDITING", "4"))
WRITERS = 3

INSERT = """
import sys, time
from dataclasses import replace
from pathlib import Path
from ua_memory import config
from ua_memory.errors import Busy
from ua_memory.memory import Memory
root, mine, until = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
memory = Memory.open(root, config=replace(config.load(root, {}), lock_seconds=600.0), door="stress")
print("ready", flush=True)
sys.stdin.readline()
end, number = time.monotonic() + until, 0
while time.monotonic() < end or not number:
    number += 1
    for again in range(100):
        try:
            memory.insert(f"Fact {number} of process {mine}.", request=f"{mine}-{number}")
            break
        except Busy:
            continue
    else:
        raise SystemExit("busy a hundred times")
    time.sleep(0.05 * mine)
print(number)
memory.close()
"""


class Person:
    """Both editors; each remembers the lines that it has written."""

    def __init__(self, day: Path, seed: int) -> None:
        self.day, self.over = day, threading.Event()
        self.saved: list[str] = []
        self.appended: list[str] = []
        self._seed = seed

    def vim(self) -> None:
        """Reads, adds a line or two, each with a save, and reads again only then; now and then not at all."""
        chance, buffer = random.Random(self._seed), self.day.read_bytes()
        while not self.over.wait(chance.uniform(0.05, 0.5)):
            if chance.random() < 0.6:
                buffer = self.day.read_bytes()
                self.over.wait(chance.uniform(0, 0.6))
            self.saved.append(f"Vim wrote {len(self.saved)} here.")
            buffer += (b"" if buffer.endswith(b"\n") else b"\n") + f"- {self.saved[-1]}\n".encode()
            fresh = self.day.with_name(".day.swp")
            fresh.write_bytes(buffer)
            fresh.replace(self.day)

    def shell(self) -> None:
        """`echo … >> FILE`"""
        chance = random.Random(self._seed + 1)
        while not self.over.wait(chance.uniform(0.1, 0.6)):
            self.appended.append(f"Appended by hand, {len(self.appended)}.")
            with self.day.open("ab") as file:
                file.write(f"- {self.appended[-1]}\n".encode())


@contextmanager
def writing(person: Person) -> Iterator[None]:
    threads = [threading.Thread(target=work) for work in (person.vim, person.shell)]
    for each in threads:
        each.start()
    try:
        yield
    finally:
        person.over.set()
        for each in threads:
            each.join(60)


def ever(store: Store, path: str) -> bytes:
    """All that the trail has ever had of a file."""
    every = store.history.read_all([(r.id, path) for r in store.history.log([path])])
    return b"\n".join(data for data in every if data)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1])
def test_two_editors_and_three_writers(
    tmp_path: Path, seed: int, record_property: Callable[[str, object], None], request: pytest.FixtureRequest
) -> None:
    store = make(tmp_path / "bank")
    insert(store, "of the day before")
    day = store.bank.root / "memory" / f"{datetime.now(UTC):%Y-%m-%d}.md"
    day.write_text("# The day\n\n- By hand, at first.\n")
    person = Person(day, seed)
    children = [python(INSERT, store.bank.root, n, SECONDS) for n in range(1, WRITERS + 1)]
    request.addfinalizer(lambda: [child.kill() for child in children])
    for child in children:
        assert child.stdout and child.stdout.readline() == "ready\n"
    began = time.monotonic()
    with writing(person):
        for child in children:
            assert child.stdin
            child.stdin.write("go\n")
            child.stdin.flush()
        counts = [int(out) for out in finish(children, SECONDS * 10 + 120)]
    seconds = time.monotonic() - began
    store = open_again(store.bank.root)
    for _ in range(3):
        store.adopt()
    path = f"memory/{day.name}"
    found = Counter(fact.text for fact in markdown.parse(store.read(path), path).of(Fact))
    ours = [f"Fact {n} of process {mine}." for mine, top in enumerate(counts, 1) for n in range(1, top + 1)]
    theirs = ["By hand, at first.", *person.saved, *person.appended]
    seen = ever(store, path)
    unseen = [text for text in theirs if text.encode() not in seen]
    assert [text for text in ours if not found[text]] == [], "acknowledged"
    assert [text for text in theirs if not found[text] and text not in unseen] == [], "a person's"
    assert [text for text, number in found.items() if number > 1] == []
    assert len(unseen) <= len(theirs) // 4, "most were there to be seen"
    assert store.history.read("HEAD", path) == store.read(path)
    for row in store.history.blame(path, store.read(path)):
        text = row.text[2:].partition(" ^")[0]
        if text in ours:
            assert row.author == "ua-memory", row
        elif text in theirs:
            assert row.author == "Ann" or row.subject.startswith("merge: put back"), row
    assert audit.verify(store) == []
    record_property(
        "figure",
        f"stress: two editors saved {len(theirs) - 1} lines and {WRITERS} writers {len(ours)} facts in"
        f" {seconds:.0f} s: all there once, {len(unseen)} were overwritten unseen",
    )
