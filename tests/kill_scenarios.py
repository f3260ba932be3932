"""More than one write at a time, to be killed: flush, drained queue, consolidation, redo, an index, imports.

Importing it adds to `kill_points.SCENARIOS`. What is checked of all of them: done again, as a hook, a timer
or a person does it, the work is there once, whole, and a machine's.
"""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

from deciding_model import create
from kill_points import MACHINE, SCENARIOS, Scenario
from scripted_model import DONE, SAID, Scripted, keep, turns
from store_banks import DAY, clock, first_author, insert, on_disk, open_again, texts

from ua_memory import config
from ua_memory.clients.turns import Session
from ua_memory.git import rewrite as rewriting
from ua_memory.index.sync import Index
from ua_memory.knowledge import tombstones
from ua_memory.markdown.document import parse, texthash
from ua_memory.memory import Memory
from ua_memory.records import Fact
from ua_memory.reflect import consolidate as _consolidate
from ua_memory.retain import extract as _extract
from ua_memory.retain import flush as _flush
from ua_memory.retain.queue import queue_key
from ua_memory.store import lock as aside
from ua_memory.store.store import Store
from ua_memory.upkeep import doctor as checking
from ua_memory.upkeep import import_sources as importers
from ua_memory.upkeep import purge as purging
from ua_memory.upkeep import sync as _syncing
from ua_memory.upkeep import undo
from ua_memory.upkeep.import_ import import_contents

LOADED = (_consolidate, _extract, _flush, _syncing)
"""Imported here, once, and not by each child."""
SAID_DAY = "memory/2026-11-20.md"
TALK = (
    "p: We leave Heroku for Fly.io from today, because the price doubled to $1,400 a month.",
    "I moved the API to Fly.io. The config is in deploy/fly.toml and the deploy takes 4 minutes.",
    "p: I want the invoices kept for ten years from now on, Alice insists on it.",
)
NAMES = ("one", "two")
HEARD = tuple((name, said) for said in pairwise((0, 2, len(TALK))) for name in NAMES)
"""Which turns of which session (from, to) come when: after an answer, and when there is no more."""
KEPT = "The API runs on Fly.io."
FACTS = ("Alice moved the API to Fly.io because the price doubled.", "Alice drinks green tea.")


def memory(store: Store, later: int = 0) -> Memory:
    root = store.bank.root
    loaded = config.load(root, {})
    return Memory.open(root, config=loaded, now=lambda: clock() + timedelta(hours=later), door="test")


def once(found: list[str], wanted: set[str]) -> None:
    """Each of these facts is there, and no fact twice."""
    assert wanted <= set(found), wanted - set(found)
    assert set(Counter(found).values()) <= {1}, found


# -- flush ---------------------------------------------------------------------------------------------


def reader() -> Scripted:
    return Scripted([keep(KEPT, "moved the API to Fly.io", 2)], DONE)


def flush(store: Store, model: Scripted | None, later: int = 0) -> None:
    with memory(store, later) as bank:
        bank.conversations.flush_turns(Session("test", "one"), turns(*TALK, start=SAID), model=model)


def flushed(model: Callable[[], Scripted | None]) -> Callable[[Store, bool], None]:
    """Whatever was left of the first flush, the hook's next call ends it; a third adds nothing."""

    def then(store: Store, acknowledged: bool) -> None:
        if acknowledged:
            assert on_disk(store, SAID_DAY)
            assert memory(store).queue.conversations() == []
        drain(store, model(), later=1)
        flush(store, model(), later=2)
        drain(store, model(), later=3)
        found = on_disk(store, SAID_DAY)
        once(found, {KEPT} if model() else set())
        assert found
        assert all(first_author(store, text, SAID_DAY) == MACHINE for text in found)
        flush(store, model(), later=4)
        assert on_disk(store, SAID_DAY) == found, "what was read is not read again"
        assert memory(store).queue.conversations() == []

    return then


# -- the queue -----------------------------------------------------------------------------------------


def _cloned(store: Store) -> None:
    """A clone has no state folder: its first turns make it."""
    shutil.rmtree(store.bank.state)


def wait(store: Store) -> None:
    """As a client's hooks do it: sessions go on side by side, bit by bit, and end."""
    flusher = memory(store).conversations.flusher()
    sessions = {name: Session("test", name) for name in NAMES}
    for name, (since, until) in HEARD:
        said = turns(*(line.replace("Fly.io", name) for line in TALK), start=SAID)
        flusher.queue_turns(sessions[name], said[since:until], None, is_open=True)
    for each in sessions.values():
        flusher.queue.mark_due(queue_key(each), clock())


def drain(store: Store, model: Scripted | None = None, later: int = 0) -> None:
    with memory(store, later) as bank:
        bank.flush(model=model, force=True)


def _waiting(store: Store, acknowledged: bool) -> None:
    waiting = memory(store).queue.conversations()
    if acknowledged:
        assert len(waiting) == 2
        assert not any(each.open for each in waiting)
    found = {(each.session.session, turn.id) for each in waiting for turn in each.turns}
    order = [(name, f"e{n + 1}") for name, (since, until) in HEARD for n in range(since, until)]
    assert found == set(order[: len(found)]), "what was put before what waits waits, too"
    assert len(found) == len(order) or not acknowledged
    wait(store)
    waiting = memory(store).queue.conversations()
    assert [[turn.id for turn in each.turns] for each in waiting] == [["e1", "e2", "e3"]] * 2, waiting
    assert not any(each.broken or each.open for each in waiting)
    _drained(store, False)


def _drained(store: Store, acknowledged: bool) -> None:
    bank = memory(store)
    if acknowledged:
        assert bank.queue.conversations() == []
    drain(store, later=1)
    found = on_disk(store, SAID_DAY)
    once(found, set())
    assert all(any(f"to {name}." in text or f"for {name} " in text for text in found) for name in NAMES), (
        found
    )
    assert all(first_author(store, text, SAID_DAY) == MACHINE for text in found)
    assert memory(store).queue.conversations() == []


# -- consolidation and redo ----------------------------------------------------------------------------


def _two_facts(store: Store) -> None:
    for text in FACTS:
        insert(store, text)


def consolidate(store: Store) -> None:
    beliefs = [create(text, (f"f{n}", text)) for n, text in enumerate(FACTS, 1)]
    with memory(store) as bank:
        bank.consolidate(model=Scripted([("decide", {"operations": beliefs})]))


def _consolidated(store: Store, acknowledged: bool) -> None:
    def believed() -> list[str]:
        return sorted(each.observation.text for each in memory(store).observations.list())

    if acknowledged:
        assert believed() == sorted(FACTS)
    # What the killed run was told is used, and its facts are no longer asked about: an `after` may be.
    memory(store).consolidate(model=Scripted([("decide", {"operations": []})]))
    first = believed()
    assert first in (sorted(FACTS), []), first
    for stat in store.files():
        if "observations" in stat.path:
            for text in texts(store.read(stat.path), stat.path):
                assert first_author(store, text, stat.path) == MACHINE
    once(on_disk(store, DAY), set(FACTS))
    assert Path(store.bank.pending / "consolidation.jsonl").exists() is False


def _undone(store: Store) -> None:
    insert(store, "undone")
    insert(store, "first")
    undo.BankHistory(store, "test").undo("HEAD~1")


def _redone(store: Store, acknowledged: bool) -> None:
    found = on_disk(store)
    assert found.count("first") == 1
    assert found.count("undone") == (1 if acknowledged else found.count("undone")) <= 1


# -- the index -----------------------------------------------------------------------------------------


def _indexed(store: Store) -> None:
    _two_facts(store)
    with Index(store) as index:
        index.refresh(vectors=False)


def rebuild(store: Store) -> None:
    with Index(store) as index:
        index.rebuild(vectors=False)


def _answers(store: Store, acknowledged: bool) -> None:
    with Index(open_again(store.bank.root)) as index:
        index.refresh(vectors=False)
        for text in FACTS:
            assert index.words.by_texthash(texthash(text)), text
        assert list(checking.check_integrity(store).problems) == []
        index.rebuild(vectors=False)
    generations = [each.name for each in store.bank.index.iterdir() if each.name.isdigit()]
    assert len(generations) == 1, "what a killed rebuild left is swept up"


# -- forgetting ----------------------------------------------------------------------------------------


def _left(store: Store) -> None:
    """What a killed export leaves: a bundle with all of the history."""
    folder = store.bank.state / aside.WORK_FOLDER
    folder.mkdir(parents=True)
    (folder / "trail.bundle").write_text("".join(FACTS))


def _to_forget(store: Store) -> None:
    _two_facts(store)
    _left(store)
    with memory(store) as bank:
        bank.search_many(["Heroku"], by_words=True)


def forget(store: Store) -> None:
    (gone,) = (fact.id for fact in parse(store.read(DAY), DAY).of(Fact) if fact.text == FACTS[0])
    with memory(store) as bank:
        bank.forget(f"^{gone}")


def _forgotten(store: Store, acknowledged: bool) -> None:
    """All of it or nothing; what was begun is ended, and then the text is nowhere but in the history."""
    begun = FACTS[0] not in on_disk(store, DAY)
    assert begun or not acknowledged
    memory(store).forgetting.finish()
    assert on_disk(store, DAY).count(FACTS[1]) == 1
    if begun:
        assert tombstones.read(store)
        with Index(store) as index:
            index.refresh(vectors=False)
            assert not index.words.by_texthash(texthash(FACTS[0]))
        kept = b"".join(each.read_bytes() for each in store.bank.state.rglob("*") if each.is_file())
        assert FACTS[0].encode() not in kept


# -- the history, here and on another machine ------------------------------------------------------------


def objects(store: Store) -> bytes:
    return b"".join(data for _, _, data in rewriting.all_objects(store.history))


def purge(store: Store) -> None:
    """Purge what was forgotten; what it was goes into the next bundle beside the bank's folder."""
    root = store.bank.root
    number = len([*root.parent.glob(f"{root.name}-*.bundle")])
    with memory(store) as bank:
        bank.purges.run(bank.purges.plan(), root.parent / f"{root.name}-{number}.bundle")


def _forgot(store: Store) -> None:
    _two_facts(store)
    forget(store)
    _left(store)


def _purged(store: Store, acknowledged: bool) -> None:
    """All of it or nothing; what was cut short is named, and done again."""
    assert all(one.done for one in purging.open_purges(store)) or not acknowledged
    if not acknowledged:
        purge(store)
    assert FACTS[0].encode() not in objects(store)
    assert on_disk(store, DAY).count(FACTS[1]) == 1
    assert all(one.done for one in purging.open_purges(store))
    assert memory(store).health.verify() == []


def sync(store: Store, address: str | None = None) -> None:
    root = store.bank.root
    number = len([*root.parent.glob(f"{root.name}-*.bundle")])
    with memory(open_again(root)) as bank:
        bank.remote.sync(address, backup=root.parent / f"{root.name}-{number}.bundle")


def other(store: Store) -> Store:
    """The other machine. It and the remote lie in the bank's folder, and are copied with it."""
    there = store.bank.root / "other"
    if not there.exists():
        subprocess.run(
            ["git", "init", "-q", "--bare", "-b", "main", "remote.git"], cwd=store.bank.root, check=True
        )
        sync(store, "remote.git")
        subprocess.run(["git", "clone", "-q", "remote.git", "other"], cwd=store.bank.root, check=True)
        subprocess.run(["git", "remote", "set-url", "origin", "../remote.git"], cwd=there, check=True)
    return open_again(there)


def _apart(store: Store) -> None:
    _two_facts(store)
    there = other(store)
    insert(there, "theirs")
    sync(there)
    insert(store, "mine")


def _apart_and_purged_here(store: Store) -> None:
    _apart(store)
    forget(store)
    purge(store)


def _apart_and_purged_there(store: Store) -> None:
    _apart(store)
    there = other(store)
    forget(there)
    purge(there)
    sync(there)


def _together(purged: bool) -> Callable[[Store, bool], None]:
    """After a few more syncs both machines have the same, all of it, and of what was purged nothing."""

    def then(store: Store, acknowledged: bool) -> None:
        for each in (store, other(store), store):
            sync(each)
        here, there = open_again(store.bank.root), other(store)
        assert here.history.head() == there.history.head()
        for each in (here, there):
            wanted = {"mine", "theirs", *FACTS} - ({FACTS[0]} if purged else set())
            once(on_disk(each, DAY), wanted)
            if purged:
                assert FACTS[0].encode() not in objects(each)
                assert FACTS[0] not in on_disk(each, DAY)
            assert all(one.done for one in purging.open_purges(each))
            assert not each.survey().changed

    return then


# -- what is taken in ------------------------------------------------------------------------------------

THEIRS = {
    "2026-11-20.md": b"# Friday\n\n- Bob keeps bees.\n- Bob left Berlin.\n\nAn aside.\n",
    "ideas.md": b"- A hive on the roof.\n",
}
TAKEN = {"Bob keeps bees.", "Bob left Berlin.", "A hive on the roof."}


def bring_in(store: Store) -> None:
    with memory(store) as bank:
        import_contents(bank.store, importers.read_source("markdown", "vault", THEIRS), door=bank.door)


def _brought(store: Store, acknowledged: bool) -> None:
    """All of it or nothing; done again, each note is there once and as it was."""

    def taken() -> list[str]:
        copies = [each.path for each in store.files() if "/imported/" in each.path]
        found = [text for path in copies for text in on_disk(store, path)]
        assert all(
            first_author(store, text, path) == MACHINE for path in copies for text in on_disk(store, path)
        )
        return found

    assert set(taken()) in ((TAKEN,) if acknowledged else (TAKEN, set()))
    bring_in(store)
    once(taken(), TAKEN)
    once(on_disk(store, DAY), set(FACTS))


def _beside_an_archive(store: Store) -> None:
    _apart(store)
    with memory(other(store)) as there:
        there.remote.export(store.bank.root / "theirs.tar")


def restore(store: Store) -> None:
    with memory(store) as bank:
        bank.remote.restore(store.bank.root / "theirs.tar")


def _restored(store: Store, acknowledged: bool) -> None:
    assert "theirs" in on_disk(store) or not acknowledged
    restore(store)
    once(on_disk(store), {"mine", "theirs", *FACTS})
    assert not (store.bank.state / aside.WORK_FOLDER).exists(), "what a killed import unpacked is swept up"


WORK = {
    "flush": Scenario(lambda s: None, lambda s: flush(s, None), flushed(lambda: None)),
    "flush by a model": Scenario(lambda s: None, lambda s: flush(s, reader()), flushed(reader)),
    "turns put to wait": Scenario(_cloned, wait, _waiting),
    "queue drain": Scenario(wait, drain, _drained),
    "consolidate": Scenario(_two_facts, consolidate, _consolidated),
    "redo": Scenario(_undone, lambda s: undo.BankHistory(s, "test").redo(), _redone),
    "index swap": Scenario(_indexed, rebuild, _answers),
    "forget": Scenario(_to_forget, forget, _forgotten),
    "purge": Scenario(_forgot, purge, _purged),
    "sync": Scenario(_apart, sync, _together(False)),
    "sync after a purge here": Scenario(_apart_and_purged_here, sync, _together(True)),
    "sync after a purge there": Scenario(_apart_and_purged_there, sync, _together(True)),
    "import": Scenario(_two_facts, bring_in, _brought),
    "import of an archive": Scenario(_beside_an_archive, restore, _restored),
}
SCENARIOS.update(WORK)
