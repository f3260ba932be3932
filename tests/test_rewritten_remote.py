"""A remote whose history was rewritten: followed where a purge accounts for all of it, else refused."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from banks import DAY, Bank, git, repository
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_forget import believe
from test_sync_machines import facts, heads, tree, two

from ua_memory.errors import Conflict, GitFailed, UaMemoryError
from ua_memory.git import rewrite as rewriting
from ua_memory.memory import Memory
from ua_memory.upkeep.sync import SyncResult

SECRET = "The door code of the office is seven one nine four."
MOVED = "Bob moved to Lisbon"


def sync(bank: Bank, address: str | None = None, **more: object) -> SyncResult:
    again = Bank(bank.root, bank.clock)
    with Memory(again.store, door="test") as memory:
        backup = bank.root.parent / f"{bank.root.name}-{len(list(bank.root.parent.glob('*.bundle')))}.bundle"
        return memory.remote.sync(address, **{"backup": backup, **more})  # type: ignore[arg-type]


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Bank, Bank]:
    """Two machines with a fact each, and one that is to be purged."""
    return two(tmp_path, SECRET, MOVED)


def block_of(bank: Bank, text: str) -> str:
    (line,) = (row for row in bank.text().splitlines() if text in row)
    return line.rpartition("^")[2]


def purge(bank: Bank, text: str = "door code") -> str:
    """Forget what has these words, and take it out of the history; its id."""
    block = block_of(bank, text)
    with Memory(Bank(bank.root, bank.clock).store, door="test") as memory:
        done = memory.forget(f"^{block}", take=True)
        file = bank.root.parent / f"{bank.root.name}-{block}.bundle"
        assert memory.purges.run(memory.purges.plan(after=done), file).proof.is_clean
    return block


def objects(bank: Bank) -> bytes:
    return b"\n".join(data for _, _, data in rewriting.all_objects(bank.store.history))


def rewritten(folder: Path, old: str, new: str) -> None:
    """Rewrite the remote's history as somebody with a forced push may: one line for another, everywhere."""
    work = folder / "work"
    git(folder, "clone", "--quiet", "remote.git", "work")
    script = f"f() {{ [ ! -f {DAY} ] || sed -i 's/{old}/{new}/' {DAY}; }}; f"
    env = {"FILTER_BRANCH_SQUELCH_WARNING": "1"}
    subprocess.run(
        ["git", "filter-branch", "--tree-filter", script, "--", "--all"], cwd=work, check=True,
        capture_output=True, env={**os.environ, **env},
    )  # fmt: skip
    git(work, "push", "--quiet", "--force", "origin", "main")


def test_a_purge_reaches_the_other_machine_with_weeks_of_work_on_both(pair: tuple[Bank, Bank]) -> None:
    one, two = pair
    one.insert("Carol keeps bees")
    two.insert("Dave sails")
    two.edit("seven one", "seven two")  # what is purged elsewhere is edited here
    two.write("# Notes\n\n- by hand on two\n", "memory/notes.md")
    two.store.adopt()
    two.insert("Erin paints")
    believe(two, "The office has a code.", (two.find(block_of(two, "door code")), "door code of the office"))
    purge(one)
    old = git(one.root.parent / "remote.git", "rev-parse", "main").strip()
    done = sync(one)
    assert done.forced == (old, one.store.history.head()) and done.followed is None
    came = sync(two)
    assert came.followed and came.followed.proof.is_clean and came.forced is None
    sync(one)
    wanted = {"Alice drinks tea", "Bob moved to Lisbon", "Carol keeps bees", "Dave sails", "Erin paints"}
    for bank in (one, two):
        assert facts(bank) == {*wanted, "by hand on two"}
        assert b"door code" not in objects(bank) and bank.clean()
        assert git(bank.root, "status", "--porcelain") == ""
    assert tree(one) == tree(two) and len(heads(one, two)) == 1
    assert b"door code" not in git(one.root.parent / "remote.git", "log", "-p", "main").encode()
    subjects = git(one.root, "log", "--format=%s").splitlines()
    assert len([s for s in subjects if s.startswith("edit: ")]) == 1  # two's own revisions, each as it was
    assert [sync(bank).sent for bank in (one, two, one)] == [0, 0, 0] and len(heads(one, two)) == 1
    (left,) = Memory(two.store).purges.unfinished()
    assert Path(left.backup) == Path(came.followed.backup) and left.done
    repository(again := two.root.parent / "again")
    git(again, "fetch", "--quiet", left.backup, "main")
    assert SECRET in git(again, "log", "-p", "FETCH_HEAD") and "Erin" in git(again, "log", "-p", "FETCH_HEAD")


def test_a_remote_that_allows_no_forced_push_is_named_as_such(
    pair: tuple[Bank, Bank], tmp_path: Path
) -> None:
    purge(pair[0])
    git(tmp_path / "remote.git", "config", "receive.denyNonFastForwards", "true")  # as `init --shared` does
    with pytest.raises(GitFailed, match="denying non-fast-forward") as refused:
        sync(pair[0])
    assert "receive.denyNonFastForwards false" in str(refused.value.hint)
    git(tmp_path / "remote.git", "config", "receive.denyNonFastForwards", "false")
    assert sync(pair[0]).forced


def test_a_branch_that_somebody_moved_meanwhile_is_not_moved(pair: tuple[Bank, Bank]) -> None:
    history = Bank(pair[0].root, pair[0].clock).store.history
    head, first = str(history.head()), history.log(limit=None)[-1].id
    to = [rewriting.Ref("refs/heads/other", first), rewriting.Ref(history.ref(), first)]
    with pytest.raises(GitFailed):
        rewriting.move_refs(history, to, {history.ref(): first})
    assert history.head() == head and history.stored("refs/heads/other") is None
    rewriting.move_refs(history, to, {history.ref(): head})
    assert history.head() == first


@pytest.mark.slow
def test_who_has_nothing_of_its_own_ends_at_the_remotes_revision(pair: tuple[Bank, Bank]) -> None:
    one, two = pair
    purge(one)
    sync(one)
    sync(two)
    assert len(heads(one, two)) == 1 and tree(one) == tree(two) and b"door code" not in objects(two)


@pytest.mark.slow
def test_what_others_pushed_meanwhile_is_carried_over(pair: tuple[Bank, Bank]) -> None:
    one, two = pair
    purge(one)
    two.insert("Dave sails")
    two.edit("seven one", "seven two")
    sync(two)
    done = sync(one)
    assert done.forced and done.received == 2 and "Dave sails" in facts(one)
    assert b"door code" not in objects(one)
    sync(two)
    sync(one)
    assert tree(one) == tree(two) and len(heads(one, two)) == 1 and b"door code" not in objects(two)
    assert facts(two) == {"Alice drinks tea", "Bob moved to Lisbon", "Dave sails"}


@pytest.mark.slow
def test_a_second_purge_carries_over_what_others_pushed_since_the_first(pair: tuple[Bank, Bank]) -> None:
    one, two = pair
    purge(one)
    for bank in (one, two):
        sync(bank)
    again = purge(one, MOVED)  # rewrites the revision of the first purge, too
    two.insert("Dave sails")
    sync(two)
    assert sync(one).forced
    assert sync(two).followed
    assert heads(one, two) == {one.store.history.head()} and facts(two) == {"Alice drinks tea", "Dave sails"}
    for bank in pair:
        assert MOVED.encode() not in objects(bank) and b"door code" not in objects(bank) and again


def test_both_purged(pair: tuple[Bank, Bank]) -> None:
    one, two = pair
    two.insert("Dave sails")
    purge(one)
    purge(two, "Lisbon")
    for bank in (one, two, one, two, one):
        sync(bank)
    for bank in (one, two):
        assert b"door code" not in objects(bank) and b"Lisbon" not in objects(bank)
        assert facts(bank) == {"Alice drinks tea", "Dave sails"}
    assert tree(one) == tree(two) and len(heads(one, two)) == 1


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("Alice drinks tea", "Alice drinks coffee", "more than what was purged"),
        (r".*Bob moved.*", "", "more than what was purged"),
    ],
)
def test_a_purge_that_also_changes_something_else_is_refused(
    pair: tuple[Bank, Bank], old: str, new: str, says: str
) -> None:
    one, two = pair
    purge(one)
    sync(one)
    rewritten(one.root.parent, old, new)
    two.insert("Dave sails")
    was = tree(two), heads(two)
    with pytest.raises(Conflict, match=says) as refused:
        sync(two)
    assert DAY in str(refused.value.where) and (tree(two), heads(two)) == was
    assert not list(two.root.parent.glob("two-*.bundle"))


def test_a_purge_beside_which_revisions_are_dropped_is_refused(pair: tuple[Bank, Bank]) -> None:
    one, two = pair
    two.insert("Dave sails")
    sync(two)
    purge(one)  # it has not heard of Dave, and does not sync
    git(one.root, "push", "--quiet", "--force", "origin", "main")
    was = tree(two), heads(two)
    with pytest.raises(Conflict, match=r"no purge explains|not by a purge") as refused:
        sync(two)
    assert "insert" in str(refused.value.where) or "test" in str(refused.value.where)
    assert (tree(two), heads(two)) == was


def test_a_rewriting_without_a_record_is_refused(pair: tuple[Bank, Bank]) -> None:
    one, two = pair
    rewritten(one.root.parent, "tea", "coffee")
    was = tree(two), heads(two)
    for bank in pair:
        with pytest.raises(Conflict, match="not by a purge") as refused:
            sync(bank)
        assert "it lacks" in str(refused.value.where)
    assert (tree(two), heads(two)) == was


@pytest.mark.slow
def test_a_persons_line_with_the_words_stops_it_before_anything_is_done(pair: tuple[Bank, Bank]) -> None:
    one, two = pair
    two.write(f"# Notes\n\nMind: {SECRET}\n", "memory/notes.md")
    purge(one)
    sync(one)
    two.store.adopt()
    was = tree(two), heads(two)
    with pytest.raises(UaMemoryError, match="purged on another machine") as refused:
        sync(two)
    assert refused.value.where == "memory/notes.md:3" and (tree(two), heads(two)) == was
    two.write("# Notes\n", "memory/notes.md")
    sync(two)
    assert b"door code" not in objects(two)


@pytest.mark.slow
def test_what_two_machines_did_in_the_same_second_is_not_one_revision(pair: tuple[Bank, Bank]) -> None:
    """Author, time, message and parent alike, before the purge: they are told apart by what they did."""
    for bank, said in zip(pair, ("alone", "with Eve"), strict=True):
        bank.edit("Alice drinks tea", f"Alice drinks tea {said}")
        bank.insert(f"said {said}")
    one, two = pair
    purge(two)
    for bank in (two, one, two):
        sync(bank)
    for bank in pair:
        assert b"door code" not in objects(bank)
        assert {f"Alice drinks tea {said}" for said in ("alone", "with Eve")} <= facts(bank)
    assert tree(one) == tree(two) and len(heads(one, two)) == 1


WORK = st.lists(
    st.tuples(st.booleans(), st.sampled_from(["insert", "edit", "drop", "cite", "sync"]), st.integers(0, 3)),
    max_size=8,
)


@pytest.mark.slow
@given(WORK, WORK, st.booleans())
@settings(
    max_examples=max(8, settings().max_examples // 50),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    deadline=None,
)
def test_any_work_around_a_purge_ends_alike_and_without_it(
    tmp_path_factory: pytest.TempPathFactory,
    before: list[tuple[bool, str, int]],
    after: list[tuple[bool, str, int]],
    second: bool,
) -> None:
    """Random work on both, a purge on either, random work again, with syncs anywhere between."""
    folder = tmp_path_factory.mktemp("pair")
    banks = two(folder, SECRET, MOVED)
    _work(banks, before, "before")
    purged = banks[second]
    if "door code" in purged.text():
        purge(purged)
        _work(banks, after, "after")
        for bank in (purged, *banks, *banks):
            sync(bank)
        for bank in banks:
            assert b"door code" not in objects(bank)
    for bank in (*banks, *banks):
        sync(bank)
    assert tree(banks[0]) == tree(banks[1]) and len(heads(*banks)) == 1
    assert banks[0].clean() and banks[1].clean()


def _work(banks: tuple[Bank, Bank], work: list[tuple[bool, str, int]], when: str) -> None:
    for n, (second, what, at) in enumerate(work):
        bank = banks[second]
        rows = [row for row in bank.text().splitlines() if row.startswith("- ")]
        if what == "insert":
            bank.insert(f"{when} {n}")
        elif what == "cite":
            block = next((row.rpartition("^")[2] for row in rows if "door code" in row), None)
            if block:
                believe(
                    bank, f"The office has a code, {when} {n}.", (bank.find(block), "door code of the office")
                )
        elif what == "sync":
            sync(bank)
        elif rows:
            row = rows[at % len(rows)]
            bank.edit(row, row.replace(" ^", f" again{n} ^", 1) if what == "edit" else "")
