"""Killing a write at any of its steps: a forked child that dies at the n-th thing it does to disk or git."""

from __future__ import annotations

import os
import shutil
import signal
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from powercut import REAL, Disk
from store_banks import DAY, NOW, first_author, insert, leftovers, make, on_disk, open_again, texts, write

from ua_memory.errors import GitFailed, UaMemoryError
from ua_memory.git.process import Process
from ua_memory.knowledge import core
from ua_memory.store import swap
from ua_memory.store.store import Store
from ua_memory.upkeep import doctor as health
from ua_memory.upkeep import undo

STEPS: tuple[tuple[Any, str], ...] = (
    (os, "open"),
    (os, "fsync"),
    (os, "link"),
    (os, "rename"),
    (os, "replace"),
    (os, "unlink"),
    (os, "mkdir"),
    (swap, "exchange"),
    (Process, "run"),
)
"""What changes the disk or starts git. Before the first and after the last nothing is half done."""
PERSON, MACHINE = "Ann", "ua-memory"
DONE = 17


def counted(
    stop: int | None, raises: Callable[[str], BaseException] | None = None, disk: Disk | None = None
) -> list[str]:
    """Make every step count itself; number `stop` kills the process, or raises, instead. A `disk` loses then
    what was not fsynced."""
    taken: list[str] = []

    def wrap(owner: Any, name: str) -> None:
        real = getattr(owner, name)

        def step(*args: Any, **named: Any) -> Any:
            taken.append(name)
            if stop is not None and len(taken) == stop + 1:
                if raises is not None:
                    raise raises(name)
                if disk is not None:
                    disk.cut(torn=bool(stop % 2))
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args, **named) if disk is None else disk.does(name, real, args, named)

        setattr(owner, name, step)

    for owner, name in STEPS:
        wrap(owner, name)
    return taken


def in_child(action: Callable[[], object], stop: int | None, disk: Disk | None = None) -> tuple[bool, int]:
    """Run in a fork that dies before step `stop`; (whether it came to its end, the steps it took). Where a
    `disk` is given the power goes then, at the latest when all is done."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            taken = counted(stop, disk=disk)
            action()
            if disk is not None:
                disk.cut(torn=False)
            os.write(writing, str(len(taken)).encode())
            code = DONE
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading) as said:
        steps = said.read()
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status):
        assert os.waitstatus_to_exitcode(status) == DONE, "the child failed otherwise than by its kill"
        return True, int(steps)
    return False, 0


@dataclass(frozen=True)
class Scenario:
    """`before` makes the bank's state, `act` is killed, `then` must hold after the next command."""

    before: Callable[[Store], None]
    act: Callable[[Store], object]
    then: Callable[[Store, bool], None]


def _nothing(store: Store) -> None:
    pass


def _killed_fact(store: Store, acknowledged: bool) -> None:
    facts = on_disk(store)
    assert facts.count("killed") <= 1
    if acknowledged:
        assert "killed" in facts
    if "killed" in facts:
        assert first_author(store, "killed") == MACHINE


def _with_first(store: Store, acknowledged: bool) -> None:
    _killed_fact(store, acknowledged)
    assert on_disk(store).count("first") == 1


def _hand_edit(store: Store) -> None:
    insert(store, "first")
    file = store.bank.root / DAY
    write(store, DAY, file.read_text() + "- by hand\n")


def _with_hand(store: Store, acknowledged: bool) -> None:
    _with_first(store, acknowledged)
    assert on_disk(store).count("by hand") == 1
    assert first_author(store, "by hand") == PERSON


def racing_insert(store: Store) -> None:
    """A person saves, from a buffer read before, in the moment between laying and entering."""
    file, enter, buffer = store.bank.root / DAY, swap.swap_in, (store.bank.root / DAY).read_text()

    def enter_after_save(path: Path, out: Path) -> None:
        swap.swap_in = enter
        fresh = file.with_name("editor.tmp")
        fresh.write_text(buffer + "- by hand\n")
        REAL["rename"](fresh, file)  # an editor's step, and none of ours
        enter(path, out)

    swap.swap_in = enter_after_save
    insert(store, "killed")


def _with_race(store: Store, acknowledged: bool) -> None:
    _with_first(store, acknowledged)
    facts = on_disk(store)
    assert facts.count("by hand") <= 1
    if acknowledged:
        assert "by hand" in facts
    if "by hand" in facts:
        assert first_author(store, "by hand") == PERSON


def _core(store: Store) -> None:
    core.CoreMemory(store, "test").replace("User", "first value")


def _core_replaced(store: Store, acknowledged: bool) -> None:
    value = core.CoreMemory(store, "test").get("User").value
    assert value in ("killed value",) if acknowledged else ("first value", "killed value")
    path = core.core_path(store)
    assert first_author(store, "first value", path) == MACHINE
    if value == "killed value":
        assert first_author(store, value, path) == MACHINE


def _two(store: Store) -> None:
    insert(store, "undone")
    insert(store, "first")


def _undone(store: Store, acknowledged: bool) -> None:
    facts = on_disk(store)
    assert facts.count("first") == 1
    assert facts.count("undone") == (0 if acknowledged else facts.count("undone")) <= 1


def _only_one(store: Store) -> None:
    insert(store, "undone")


def _whole_file_undone(store: Store, acknowledged: bool) -> None:
    assert not (acknowledged and "undone" in on_disk(store))


SCENARIOS = {
    "into a new file": Scenario(_nothing, lambda s: insert(s, "killed"), _killed_fact),
    "into a file": Scenario(
        lambda s: bool(insert(s, "first")) or None, lambda s: insert(s, "killed"), _with_first
    ),
    "beside a hand edit": Scenario(_hand_edit, lambda s: insert(s, "killed"), _with_hand),
    "with a racing save": Scenario(lambda s: bool(insert(s, "first")) or None, racing_insert, _with_race),
    "adopting a hand edit": Scenario(_hand_edit, lambda s: s.adopt(), lambda s, done: _with_hand(s, False)),
    "core replace": Scenario(
        _core, lambda s: core.CoreMemory(s, "test").replace("User", "killed value"), _core_replaced
    ),
    "undo": Scenario(_two, lambda s: undo.BankHistory(s, "test").undo("HEAD~1"), _undone),
    "undo of a whole file": Scenario(
        _only_one, lambda s: undo.BankHistory(s, "test").undo("HEAD"), _whole_file_undone
    ),
}

WRITES = tuple(SCENARIOS)
"""Those of a single write: `kill_scenarios` adds to the others, and samples its own."""


def prepared(name: str, folder: Path) -> Path:
    """A bank in the scenario's state, to be copied for each kill."""
    SCENARIOS[name].before(make(folder))
    return folder


def steps_of(name: str, bank: Path, folder: Path) -> int:
    """How many steps the scenario takes when nobody kills it; its outcome is checked too."""
    shutil.copytree(bank, folder)
    done, steps = in_child(lambda: SCENARIOS[name].act(open_again(folder)), None)
    settled(name, folder, done, "insert")
    return steps


def kill_at(
    name: str, bank: Path, folder: Path, stop: int, following: str, again: int | None = None, *,
    power: bool = False,
) -> None:  # fmt: skip
    """Kill the scenario before its step `stop`, and recovery before its step `again`; then see what the
    next command makes of it. With `power` what was not fsynced is lost, too."""
    shutil.copytree(bank, folder)
    disk = Disk(folder) if power else None
    done, _ = in_child(lambda: SCENARIOS[name].act(open_again(folder)), stop, disk)
    if again is not None:
        in_child(lambda: open_again(folder).adopt(), again)
    settled(name, folder, done, following, power=power)


CLEAR = DONE + 1
"""The exit code of a child whose act ended in an error of ours that says what the system said."""


def fail_at(name: str, bank: Path, folder: Path, stop: int, code: int) -> bool:
    """Let the scenario's step `stop` fail once, as the system does; whether that was told. Then see what the
    next command makes of it."""
    shutil.copytree(bank, folder)
    child = os.fork()
    if child == 0:
        ended = 1
        try:
            counted(
                stop, lambda step: GitFailed("git no") if step == "run" else OSError(code, os.strerror(code))
            )
            try:
                SCENARIOS[name].act(open_again(folder))
                ended = DONE
            except UaMemoryError as error:
                ended = CLEAR if os.strerror(code) in str(error) or "git" in str(error) else 1
                if ended != CLEAR:
                    traceback.print_exc()
        except BaseException:  # the report shows what the parent knows by its exit code alone
            traceback.print_exc()
        finally:
            os._exit(ended)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert ended in (DONE, CLEAR), f"{name}: step {stop} with {os.strerror(code)} is no clear error"
    settled(name, folder, ended == DONE, "insert")
    return ended == CLEAR


def settled(name: str, folder: Path, acknowledged: bool, following: str, *, power: bool = False) -> None:
    store = open_again(folder)
    if following == "insert":
        insert(store, "after")
        assert on_disk(store).count("after") == 1
        assert first_author(store, "after") == MACHINE
    store.adopt()
    SCENARIOS[name].then(store, acknowledged)
    if power and leftovers(store):
        swept(store)
    whole(store)


def swept(store: Store) -> None:
    """What a power cut may leave besides: copies of what the trail has, for `doctor --mend`; empty claims."""
    for file in store.bank.pending.glob("*.claim"):
        assert file.read_bytes() == b""
        file.unlink()
    (found,) = [each for each in health.checkup(store, mend=True) if each.name == "leftovers"]
    assert found.ok, found


def whole(store: Store) -> None:
    """What holds of every bank at rest: disk and trail agree, nothing is owed, nothing lies beside."""
    left = leftovers(store)
    assert left == [], left
    assert not store.survey().changed
    for revision in store.history.log():
        by_git = revision.when.replace(tzinfo=None) != NOW.replace(tzinfo=None)
        assert by_git or revision.trailer("Memory-Op"), revision
    for stat in store.files():
        found = texts(store.read(stat.path), stat.path)
        assert len(found) == len(set(found))
    assert b"<<<" not in b"".join(store.read(stat.path) for stat in store.files())


def refused(action: Callable[[], object]) -> str:
    """The name of the error of ours that an action ends in, or an empty string."""
    try:
        action()
    except UaMemoryError as error:
        return type(error).__name__
    return ""
