"""One `Memory`, and several of one bank, used from many threads at once, as web frameworks and agents do."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from ua_memory import AutoFlush, Memory, MemoryTool
from ua_memory.errors import ChangedOnDisk
from ua_memory.git.process import Process
from ua_memory.index import embedding as heap
from ua_memory.store.lock import locked

THREADS = 8
ROWS = 8


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.init(tmp_path / "bank", door="test") as opened:
        for number in range(ROWS):
            opened.insert(f"The walnut trees of row {number} were planted in {1900 + number}.")
        yield opened


def at_once(works: Iterable[Callable[[], object]]) -> None:
    """Do these in a thread each, begun together; what one raises is raised here."""
    works = list(works)
    ready = threading.Barrier(len(works))

    def begun(work: Callable[[], object]) -> object:
        ready.wait()
        return work()

    with ThreadPoolExecutor(len(works)) as pool:
        for done in [pool.submit(begun, work) for work in works]:
            done.result()


def finds(memory: Memory, query: str, text: str, *, by_words: bool = False) -> None:
    answer = memory.search_many([query], by_words=by_words)[0]
    assert text in [hit.item.text for hit in answer.hits], answer
    assert not [note for note in answer.notes if "damaged" in note or "cannot" in note], answer.notes


class Mix:
    """What threads do to a bank: each its own, until there is no more."""

    def __init__(self, memory: Memory, more: Callable[[int], bool]) -> None:
        self.memory, self.more, self.said = memory, more, list[str]()

    def work(self, number: int) -> Callable[[], None]:
        each = (self.search, self.insert, self.refresh, self.words)[number % 4]

        def run() -> None:
            turn = 0
            while self.more(turn):
                each(number, turn)
                turn += 1

        return run

    def search(self, _number: int, turn: int) -> None:
        row = turn % ROWS
        text = f"The walnut trees of row {row} were planted in {1900 + row}."
        finds(self.memory, text, text)

    def words(self, _number: int, turn: int) -> None:
        answers = self.memory.search_many(["walnut trees", "planted row"], by_words=True)
        assert all(answer.hits for answer in answers), turn

    def insert(self, number: int, turn: int) -> None:
        text = f"Basket {number}-{turn} holds {number * 1000 + turn} hazelnuts."
        self.memory.insert(text)
        self.said.append(text)
        finds(self.memory, text, text, by_words=bool(turn % 2))

    def refresh(self, number: int, turn: int) -> None:
        done = self.memory.index.rebuild() if turn % 10 == 9 and number == 2 else self.memory.refresh()
        assert not done.failed, done

    def run(self) -> None:
        at_once(self.work(number) for number in range(THREADS))
        for text in self.said:
            assert len(self.memory.facts._files_with(text)) == 1, text
        assert len(self.memory.history.log(limit=None)) >= len(self.said)


def test_threads_that_search_insert_and_refresh_share_one_memory(memory: Memory) -> None:
    Mix(memory, lambda turn: turn < 4).run()


@pytest.mark.slow
def test_threads_share_one_memory_for_ten_seconds(memory: Memory) -> None:
    until = time.monotonic() + 10
    Mix(memory, lambda turn: turn < 1 or time.monotonic() < until).run()


def test_a_memory_is_closed_while_other_threads_search_it(memory: Memory) -> None:
    text = "The walnut trees of row 7 were planted in 1907."

    def search() -> None:
        for _ in range(10):
            finds(memory, text, text, by_words=True)
        finds(memory, text, text)

    def close() -> None:
        for _ in range(20):
            memory.close()

    at_once([search, close, search, close])
    memory.close()
    with Memory.open(memory.store.bank.root) as other:  # nobody holds the vectors any more
        assert other.refresh().semantic == "ready"
        assert other.index.vectors.count() == len(other.index.words.text_ids())


def test_threads_that_come_at_once_get_the_same_index(memory: Memory) -> None:
    fresh = Memory.open(memory.store.bank.root)
    found = list[object]()
    at_once([lambda: found.append(fresh.index)] * THREADS)
    assert len({*map(id, found)}) == 1


def test_many_memories_of_one_bank_in_one_process(memory: Memory) -> None:
    root = memory.store.bank.root

    def request(number: int) -> Callable[[], None]:
        def work() -> None:
            for turn in range(2):
                with Memory.open(root) as own:
                    text = f"Crate {number}-{turn} weighs {number * 100 + turn} kilograms."
                    own.insert(text)
                    finds(own, text, text, by_words=True)

        return work

    at_once(request(number) for number in range(THREADS))
    assert (
        len([fact for fact in memory.history.log(limit=None) if fact.trailer("Memory-Op") == "insert"])
        == ROWS + 2 * THREADS
    )


def test_every_kind_of_call_may_come_from_any_thread(memory: Memory) -> None:
    fact = memory.insert("Alice Miller keeps the keys of the walnut barn.").fact
    tool = MemoryTool(memory)

    def flush(number: int) -> Callable[[], object]:
        # A conversation is one thread's at a time; there are many conversations.
        messages = [{"role": "user", "content": f"I decided that the fair number {number} opens in Porto."}]
        return lambda: AutoFlush(memory, client=f"agent{number}").flush(messages)

    def forget() -> None:
        burnt = memory.insert("The old barn burnt down.").fact
        for _ in range(20):
            with contextlib.suppress(ChangedOnDisk):  # others write into the same log: try again, as it says
                memory.forget(f"^{burnt.id}")
                return
        raise AssertionError("it was never forgotten")

    calls: list[Callable[[], object]] = [
        *(flush(number) for number in range(3)),
        lambda: memory.entities.get("Alice Miller"),
        lambda: memory.entities.list(10),
        lambda: memory.facts.get(f"^{fact.id}"),
        lambda: memory.recall("who keeps the keys of the barn?", max_tokens=500),
        lambda: memory.explain("what happened yesterday?"),
        lambda: memory.core.replace("person", "Alice"),
        lambda: tool.call({"command": "view", "path": "/memories"}),
        forget,
        memory.status,
        memory.health.verify,
        memory.history.log,
    ]
    at_once(calls)
    finds(memory, "keys of the walnut barn", fact.text)
    assert not memory.search_many(["old barn burnt"], by_words=True)[0].stale
    assert "burnt" not in str(memory.search("burnt").hits)


def test_an_event_loop_may_hand_its_calls_to_threads(memory: Memory) -> None:
    async def ask() -> None:
        texts = [f"Ladder {number} stands in orchard {number}." for number in range(6)]
        await asyncio.gather(*(asyncio.to_thread(memory.insert, text) for text in texts))
        answers = await asyncio.gather(*(asyncio.to_thread(memory.search, text) for text in texts))
        for text, answer in zip(texts, answers, strict=True):
            assert answer.hits[0].item.text == text

    asyncio.run(ask())


def test_a_search_does_not_wait_for_who_writes(memory: Memory) -> None:
    """A writer may be waiting for the index: two that wait for each other would wait until one gives up."""
    (memory.store.bank.root / "memory/barn.md").write_text("The barn door is painted red.\n")
    config = replace(memory.config, quiet_seconds=0)  # due to be committed as the person's
    own = Memory.open(memory.store.bank.root, config=config)
    with locked(own.store.bank.state / "lock", 1):
        finds(own, "barn door painted", "The barn door is painted red.", by_words=True)
        assert own.status().edited == ("memory/barn.md",)
    own.search("barn door")
    assert own.status().edited == ()


def test_memory_is_wiped_as_long_as_any_thread_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    said = list[object]()
    monkeypatch.setattr(heap, "_call_libc", lambda *values: said.append(values[-1]))

    def work() -> None:
        with heap.zeroed_memory():
            time.sleep(0.002)

    at_once([work] * THREADS)
    assert said == [heap.FILL_BYTE, 0] * THREADS


def test_no_thread_gets_a_git_that_is_not_bound_to_the_trail_yet(tmp_path: Path) -> None:
    class Watched(Process):
        def environment(self) -> dict[str, str]:
            assert self._git is None
            return super().environment()

    assert Watched(tmp_path / "git", tmp_path, own=True).git()
