"""Two machines and a remote between them, with real git: sync, and what it must refuse; archives."""

from __future__ import annotations

import io
import json
import os
import socket
import subprocess
import tarfile
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from banks import DAY, Bank, git, new_bank, repository
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kill_points import in_child
from store_banks import leftovers
from test_forget import BELIEFS, believe, by_machine, link

from ua_memory.errors import Busy, Conflict, GitFailed, Malformed, NotFound, UaMemoryError, Usage
from ua_memory.git import remotes
from ua_memory.git.history import History
from ua_memory.index.sync import Index
from ua_memory.knowledge import statements
from ua_memory.knowledge.tombstones import Removal, add
from ua_memory.markdown import document as markdown
from ua_memory.memory import Memory
from ua_memory.records import Fact, Observation
from ua_memory.store import lock as aside
from ua_memory.store.store import Store
from ua_memory.upkeep import archive, audit
from ua_memory.upkeep import merge as joining
from ua_memory.upkeep import sync as syncing
from ua_memory.upkeep.sync import SyncResult
from ua_memory.upkeep.undo import BankHistory


def sync(bank: Bank, address: str | None = None, **more: bool) -> SyncResult:
    return syncing.sync(bank.store, address, door="test", index=lambda: Index(bank.store), **more)


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Bank, Bank]:
    """Two machines with one bank, which its remote has, too."""
    return two(tmp_path)


def two(folder: Path, *more: str) -> tuple[Bank, Bank]:
    git(folder, "init", "--quiet", "--bare", "--initial-branch=main", "remote.git")
    one = new_bank(folder / "one")
    for text in ("Alice drinks tea", *more):
        one.insert(text)
    sync(one, str(folder / "remote.git"))
    git(folder, "clone", "--quiet", "remote.git", "two")
    return one, Bank(folder / "two", one.clock)


def tree(bank: Bank) -> dict[str, bytes]:
    return {file.path: bank.bytes(file.path) for file in bank.store.survey().files}


def heads(*banks: Bank) -> set[str | None]:
    return {bank.store.history.head() for bank in banks}


def facts(bank: Bank) -> set[str]:
    docs = (markdown.parse(data, path) for path, data in tree(bank).items())
    return {fact.text for doc in docs for fact in doc.of(Fact)}


def test_weeks_apart_and_then_the_same_to_the_byte(pair: tuple[Bank, Bank]) -> None:
    one, two = pair
    one.insert("Bob moved to Lisbon")
    two.insert("Carol keeps bees")
    two.write("# Notes\n\n- by hand on two\n", "memory/notes.md")
    one.edit("What every session", "What each session", "MEMORY.md")
    assert (out := sync(one)).sent == 2 and out.received == 0
    came = sync(two)
    assert came.merge.added == 1 and came.sent >= 3 and not came.merge.notes
    back = sync(one)
    assert back.merge.added == 1 and back.sent == 0  # the line of two's owner has no id yet
    assert tree(one) == tree(two) and heads(one, two) == {one.store.history.head()}
    assert facts(one) == {"Alice drinks tea", "Bob moved to Lisbon", "Carol keeps bees", "by hand on two"}
    before = heads(one, two)
    assert [sync(bank).sent for bank in (one, two, one)] == [0, 0, 0] and heads(one, two) == before
    assert one.clean() and two.clean() and git(one.root, "status", "--porcelain") == ""


NOTES = "memory/notes.md"
BY_HAND = "# Notes\n\n- hand line 0\n- hand line 1\n- hand line 2\n\nA paragraph of mine.\n"


def renamed_on(bank: Bank, name: str) -> str:
    """Give the notes another name by hand."""
    bank.path(NOTES).rename(bank.path(f"memory/{name}.md"))
    return f"memory/{name}.md"


@pytest.fixture
def with_notes(pair: tuple[Bank, Bank]) -> tuple[Bank, Bank]:
    """Two machines that have a note with hand lines in common."""
    one, two = pair
    one.write(BY_HAND, NOTES)
    sync(one)
    sync(two)
    return pair


def settled(*banks: Bank) -> dict[str, bytes]:
    """The notes that all have, once each has heard of the others."""
    for bank in (*banks, *banks):
        sync(bank)
    notes = {path: data for path, data in tree(banks[0]).items() if path not in ("MEMORY.md", DAY)}
    assert all(tree(bank) == tree(banks[0]) for bank in banks)
    return {path: data for path, data in notes.items() if path.endswith(".md")}


@pytest.mark.slow
def test_a_file_that_every_machine_renamed_otherwise_stands_there_once(
    with_notes: tuple[Bank, Bank], tmp_path: Path
) -> None:
    one, two = with_notes
    git(tmp_path, "clone", "--quiet", "remote.git", "three")
    three = Bank(tmp_path / "three", one.clock)
    names = [renamed_on(bank, name) for bank, name in ((one, "a"), (two, "b"), (three, "c"))]
    sync(one)
    (told,) = sync(two).merge.notes
    assert (told.what, told.why, told.ours, told.theirs) == ("file name", "theirs", names[1], names[0])
    assert settled(one, two, three) == {names[0]: BY_HAND.encode()}


def test_a_file_renamed_on_one_machine_has_what_the_other_changed(with_notes: tuple[Bank, Bank]) -> None:
    one, two = with_notes
    path = renamed_on(one, "a")
    two.edit("line 1", "line one", NOTES)
    assert settled(one, two) == {path: BY_HAND.replace("line 1", "line one").encode()}
    path = "memory/b.md"
    one.path("memory/a.md").rename(one.path(path))
    two.edit("line 2", "line two", "memory/a.md")
    wanted = BY_HAND.replace("line 1", "line one").replace("line 2", "line two")
    assert settled(two, one) == {path: wanted.encode()}


@pytest.mark.slow
def test_renamed_twice_and_changed_on_both(with_notes: tuple[Bank, Bank]) -> None:
    one, two = with_notes
    for bank, name in ((one, "a"), (two, "b")):
        bank.edit("# Notes\n\n", f"# Notes\n\n- new on {name}\n", renamed_on(bank, name))
    one.store.adopt()
    fact = next(f for f in markdown.parse(one.bytes("memory/a.md"), "memory/a.md").of(Fact) if "0" in f.text)
    with one.store.revision("consolidate", door="test") as draft:
        block = statements.ensure_id(draft, fact).id
    ((path, text),) = settled(one, two).items()
    assert {line.author for bank in (one, two) for line in audit.blame(bank.store, path)} == {"person"}
    wanted = f"- new on a\n- new on b\n{BY_HAND}".replace("line 0", f"line 0 ^{block}")
    assert sorted(text.decode().split("\n")) == sorted(wanted.split("\n"))


@pytest.mark.slow
def test_renamed_on_one_machine_and_deleted_on_the_other_stays(with_notes: tuple[Bank, Bank]) -> None:
    one, two = with_notes
    path = renamed_on(one, "a")
    two.path(NOTES).unlink()
    assert settled(one, two) == {path: BY_HAND.encode()}


@pytest.mark.slow
def test_two_files_that_got_one_name_are_both_in_it(with_notes: tuple[Bank, Bank]) -> None:
    one, two = with_notes
    one.write("- something else\n", "memory/more.md")
    settled(one, two)
    path = renamed_on(one, "a")
    two.path("memory/more.md").rename(two.path(path))
    found = settled(one, two)
    assert found.keys() == {path}
    assert sorted(found[path].decode().split("\n")) == sorted(f"- something else\n\n{BY_HAND}".split("\n"))


@pytest.mark.parametrize("deletes_first", [True, False])
def test_a_note_deleted_on_one_machine_and_edited_on_the_other_is_there_whole(
    with_notes: tuple[Bank, Bank], deletes_first: bool
) -> None:
    one, two = with_notes
    two.path(NOTES).unlink()
    one.edit("hand line 1", "hand line one", NOTES)
    order = (two, one) if deletes_first else (one, two)
    told = [note for bank in (*order, order[0]) for note in sync(bank).merge.notes]
    assert [(note.what, note.path, note.why) for note in told] == [("file", NOTES, "kept")]
    assert one.text(NOTES) == two.text(NOTES) == BY_HAND.replace("line 1", "line one")


def test_both_readings_stand_and_are_told(pair: tuple[Bank, Bank]) -> None:
    one, two = pair
    for bank, drink in ((one, "coffee"), (two, "water")):
        bank.edit("tea", drink)
    sync(one)
    told = sync(two).merge.notes
    sync(one)
    assert [t.why for t in told] == ["both"] and facts(one) == {"Alice drinks coffee", "Alice drinks water"}
    assert tree(one) == tree(two)


def test_undo_takes_back_this_machines_own_and_names_a_newer_one_of_the_other(
    pair: tuple[Bank, Bank],
) -> None:
    one, two = pair
    one.insert("Bob drinks mate")
    for each in (one, two):
        sync(each)
    theirs = two.insert("Carol drinks rum").result.revision or ""
    for each in (two, one):
        sync(each)
    undo, name = BankHistory(one.store, "test").undo, theirs[:7]
    told = (
        f"{name} (insert: 1 fact into {DAY}) is from another machine; `ua-memory undo {name}` takes it back",
    )
    done = undo()
    assert facts(one) == {"Alice drinks tea", "Carol drinks rum"} and done.result.notes == told
    undo()
    with pytest.raises(NotFound, match=f"nothing of this machine to undo; {name}"):
        undo()
    assert undo(name).result.notes == () and facts(one) == set()


def test_a_trial_changes_nothing(pair: tuple[Bank, Bank]) -> None:
    one, two = pair
    one.insert("Bob moved to Lisbon")
    sync(one)
    two.insert("Carol keeps bees")
    was = tree(two), heads(two), git(two.root, "for-each-ref")
    done = sync(two, trial=True)
    assert done.merge.added == 1 and done.sent == 1 and done.revision is None
    assert (tree(two), heads(two), git(two.root, "for-each-ref")) == was
    three = new_bank(two.root.with_name("three"))
    assert sync(three, str(two.root.with_name("remote.git")), trial=True).merge.added == 2
    assert git(three.root, "remote") == ""


def test_who_is_overtaken_merges_again_and_forces_nothing(
    pair: tuple[Bank, Bank], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = pair
    one.insert("Bob moved to Lisbon")
    two.insert("Carol keeps bees")
    real, pushed = History.push, []

    def slow(self: History, name: str, sha: str, *, to: str = "", instead: str = "") -> str:
        pushed.append(sha)
        if len(pushed) == 1:
            real(one.store.history, name, one.store.history.head() or "")
        return real(self, name, sha, to=to, instead=instead)

    monkeypatch.setattr(History, "push", slow)
    sync(two)
    sync(one)
    assert len(pushed) == 2 and tree(one) == tree(two) and len(facts(one)) == 3


def test_a_link_in_the_place_of_memory_is_refused_where_it_comes_from_and_where_it_comes_to(
    pair: tuple[Bank, Bank],
) -> None:
    one, two = pair
    one.path("memory/link.md").symlink_to("/etc/hostname")
    git(one.root, "add", "-A")
    git(one.root, "commit", "--quiet", "-m", "link")
    with pytest.raises(Conflict, match=r"memory/link\.md: .*committed") as here:
        sync(one)
    git(one.root, "push", "--quiet", "origin", "main")
    with pytest.raises(Conflict, match=r":memory/link\.md: .*symbolic link in the place") as there:
        sync(two)
    hint = "replace the link with the file itself"
    assert hint in str(here.value.hint) and f"on the machine that made it: {hint}" in str(there.value.hint)
    one.path("memory/link.md").unlink()
    one.write("- in its place\n", "memory/link.md")
    sync(one)
    sync(two)
    assert facts(two) == {"Alice drinks tea", "in its place"} and tree(one) == tree(two)


def test_a_rewritten_remote_is_refused(pair: tuple[Bank, Bank], tmp_path: Path) -> None:
    one, two = pair
    first = one.store.history.log()[-1].id
    git(tmp_path / "remote.git", "update-ref", "refs/heads/main", first)
    was = tree(two)
    for bank in pair:
        with pytest.raises(Conflict, match="rewritten"):
            sync(bank)
    assert tree(two) == was and git(tmp_path / "remote.git", "rev-parse", "main").strip() == first
    # What the hint says keeps what was pushed since the rewrite, and what the remote lost.
    for bank in pair:
        bank.insert(f"Since then, on {bank.root.name}")
        git(bank.store.bank.git_dir, "remote", "remove", "origin")
        sync(bank, str(tmp_path / "remote.git"))
    sync(one)
    assert tree(one) == tree(two) and facts(one) == {
        "Alice drinks tea", "Since then, on one", "Since then, on two"
    }  # fmt: skip


def test_two_banks_are_not_made_one_but_a_new_one_becomes_the_other(
    pair: tuple[Bank, Bank], tmp_path: Path
) -> None:
    one, _ = pair
    three = new_bank(tmp_path / "three")
    other = Bank(three.root, three.clock)
    sync(other, str(tmp_path / "remote.git"))
    assert tree(other) == tree(one)
    stranger = new_bank(tmp_path / "four")
    stranger.insert("Something else")
    with pytest.raises(Conflict, match="different banks"):
        sync(stranger, str(tmp_path / "remote.git"))
    with pytest.raises(Usage):
        sync(stranger, "--upload-pack=x")
    with pytest.raises(GitFailed, match=r"none\.git.*does not appear"):
        sync(stranger, str(tmp_path / "none.git"))
    with pytest.raises(NotFound, match="no remote") as none:  # no address that was refused is kept
        sync(stranger)
    assert none.value.where == str(stranger.store.bank.root)  # maybe the default bank


def test_a_first_address_is_kept_once_something_of_it_is_here(tmp_path: Path) -> None:
    one, _ = two(tmp_path)
    git(tmp_path / "remote.git", "config", "receive.maxInputSize", "1")
    three = new_bank(tmp_path / "three")
    three.insert("Bob moved to Lisbon")
    three.edit(three.store.config.id, one.store.config.id, "ua-memory.toml")
    three = Bank(three.root, three.clock)
    with pytest.raises(GitFailed, match=r"refuses the push: .*: fatal: pack exceeds maximum"):
        sync(three, str(tmp_path / "remote.git"))
    assert facts(three) == {"Alice drinks tea", "Bob moved to Lisbon"}
    git(tmp_path / "remote.git", "config", "--unset", "receive.maxInputSize")
    assert sync(three).sent >= 2


def test_a_remote_that_says_nothing_is_given_up_and_holds_up_no_write(
    pair: tuple[Bank, Bank], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = pair[0], Bank(pair[0].root, pair[0].clock)
    other.again(lock_seconds=0)
    monkeypatch.setattr(remotes, "FIRST_ANSWER", 4)
    with socket.create_server(("127.0.0.1", 0)) as silent, ThreadPoolExecutor() as pool:
        there = f"git://127.0.0.1:{silent.getsockname()[1]}/x.git"
        git(one.store.bank.git_dir, "config", "remote.origin.url", there)
        waiting = pool.submit(sync, one)
        with silent.accept()[0]:
            with pytest.raises(Busy, match="another sync is running"):
                sync(other)
            other.insert("Meanwhile")
            with pytest.raises(GitFailed, match="did not complete in 4 secs"):
                waiting.result()


def test_inside_a_code_repository_the_trail_goes_apart(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "--bare", "--initial-branch=main", "code.git")
    git(tmp_path, "init", "--quiet", "--bare", "--initial-branch=main", "trail.git")
    repository(tmp_path / "a", {"src/x.py": "x = 1\n"})
    one = new_bank(tmp_path / "a")
    git(one.root, "add", "ua-memory.toml")
    git(one.root, "commit", "--quiet", "-m", "a bank")
    git(tmp_path, "clone", "--quiet", "a", "b")
    two = new_bank(tmp_path / "b")
    one.insert("on one")
    two.insert("on two")
    for bank in (one, two, one):
        sync(bank, str(tmp_path / "trail.git"))
    assert tree(one) == tree(two) and {"on one", "on two"} == facts(one)
    assert git(tmp_path / "trail.git", "ls-tree", "-r", "--name-only", "main").split() == sorted(tree(one))
    assert git(two.root, "log", "--format=%s").split("\n")[0] == "a bank"  # somebody's repository is theirs
    # The code's own repository, given by mistake, is no trail.
    git(tmp_path / "a", "push", "--quiet", str(tmp_path / "code.git"), "HEAD:main")
    git(one.store.bank.git_dir, "config", "remote.origin.url", str(tmp_path / "code.git"))
    with pytest.raises(Conflict):
        sync(one)
    git(tmp_path / "code.git", "branch", "-m", "main", "master")  # nor is it where their branches differ
    with pytest.raises(Conflict, match=r"other branches \(master\)"):
        sync(one)
    assert git(tmp_path / "code.git", "branch", "--format=%(refname:short)").split() == ["master"]


def test_other_files_of_the_repository_come_along_unless_both_changed_them(pair: tuple[Bank, Bank]) -> None:
    one, two = pair
    for bank, name in ((one, "a.txt"), (two, "b.txt")):
        (bank.root / name).write_text(name)
        (bank.root / "c.txt").write_text(name)
        git(bank.root, "add", ".")
        git(bank.root, "commit", "--quiet", "-m", name)
        bank.insert(f"beside {name}")
    sync(one)
    notes = sync(two).notes
    sync(one)
    assert (two.root / "a.txt").read_text() == "a.txt" and (two.root / "c.txt").read_text() == "b.txt"
    assert any("c.txt" in note for note in notes) and heads(one, two) == {one.store.history.head()}
    assert {p.name for p in one.root.glob("*.txt")} == {p.name for p in two.root.glob("*.txt")}
    assert git(two.root, "status", "--porcelain") == ""


def test_an_edit_in_the_very_moment_is_not_lost(
    pair: tuple[Bank, Bank], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = pair
    one.insert("Bob moved to Lisbon")
    sync(one)
    real = joining.merge_commit

    def late(*args: Any, **more: Any) -> object:
        done = real(*args, **more)
        two.edit("tea", "green tea")
        return done

    with monkeypatch.context() as patch:
        patch.setattr(joining, "merge_commit", late)
        sync(two)
    assert facts(two) == {"Alice drinks green tea", "Bob moved to Lisbon"}
    sync(two)
    sync(one)
    assert tree(one) == tree(two) and "Alice drinks green tea" in facts(one)


def test_what_was_forgotten_on_one_does_not_return_from_the_other(pair: tuple[Bank, Bank]) -> None:
    one, two = pair
    block = next(fact.id for fact in markdown.parse(one.bytes(), DAY).of(Fact))
    with one.store.revision("forget", door="test") as draft:
        add(one.store, draft, [Removal(str(block), "Alice drinks tea")], "2026-11-22")
        draft.write(DAY, b"\n".join(r for r in one.bytes().split(b"\n") if b"tea" not in r), restored=True)
    two.edit("tea", "tea, with milk")  # the id that was forgotten, and its words, once more, under others
    two.write("- alice drinks tea\n- Bob moved to Lisbon\n", "memory/notes.md")
    two.insert("Alice drinks tea!", session="8f2c")
    sync(one)
    assert {block} < {*sync(two).merge.forgotten}  # told by id, and so is what said the same
    sync(one)
    assert facts(one) == {"Bob moved to Lisbon"} and tree(one) == tree(two) and len(heads(one, two)) == 1


def test_what_went_with_a_tombstone_is_told_and_its_words_are_sought(pair: tuple[Bank, Bank]) -> None:
    """A line that a person edited, one they wrote by hand, prose that stays; on the forgetting side, too."""
    one, two = pair
    kept, taken = (
        str(one.insert(text).fact.id) for text in ("The code is 4711 blue", "Carol sails to Malta")
    )
    for bank in pair:
        sync(bank)
    Index(two.store).refresh(vectors=False)
    for block in (kept, taken):
        Memory(one.store).forget(f"^{block}")
    two.edit("4711 blue", "4711 blue, ring twice")
    two.write("# Notes\n\n- carol sails to Malta.\n\nAnn says the code is 4711 blue.\n", "memory/notes.md")
    sync(one)
    done = sync(two)
    went = {(each.id, each.path, each.side) for each in done.merge.dropped}
    assert went == {(kept, DAY, "here"), ("", "memory/notes.md", "here")}
    for each in done.merge.dropped:
        rows = git(two.root, "show", f"{each.revision}:{each.path}").split("\n")
        assert "ring twice" in rows[each.line - 1] or "carol sails" in rows[each.line - 1]
    assert done.forgotten and {*done.forgotten.ids} == {kept, taken}
    assert [each.where for each in done.forgotten.proof.found] == ["memory/notes.md:3"]
    assert not [*two.store.bank.pending.glob("forget-*")]
    two.edit("# 2026-11-21\n", "# 2026-11-21\n\n- The code is 4711 blue, ring twice\n")  # said anew
    again = sync(two)
    assert not again.merge.dropped and not again.forgotten
    sync(one)
    assert "The code is 4711 blue, ring twice" in facts(one) and tree(one) == tree(two)
    block = next(str(fact.id) for fact in markdown.parse(one.bytes(), DAY).of(Fact) if fact.id)
    Memory(one.store).forget(f"^{block}")
    two.edit("Alice drinks tea", "Alice drinks mint")
    sync(two)
    assert [(each.id, each.side) for each in sync(one).merge.dropped] == [(block, "there")]


def test_what_is_brought_back_on_one_is_not_told_as_gone_on_the_other(pair: tuple[Bank, Bank]) -> None:
    one, two = pair
    block = next(str(fact.id) for fact in markdown.parse(one.bytes(), DAY).of(Fact))
    gone = Memory(one.store).forget(f"^{block}")
    sync(one)
    sync(two)
    assert "Alice drinks tea" not in facts(two)
    Memory(one.store).history.undo(str(gone.result and gone.result.revision))
    two.insert("Bob moved to Lisbon")  # two has work of its own, too
    sync(one)
    trial, done = sync(two, trial=True), sync(two)
    assert not trial.merge.dropped and not done.merge.dropped and not done.forgotten
    assert "Alice drinks tea" in facts(two)


@pytest.mark.few(1)
@pytest.mark.parametrize("forgets_first", [True, False])
def test_what_was_derived_on_the_other_machine_goes_or_is_revised(
    pair: tuple[Bank, Bank], forgets_first: bool
) -> None:
    """What no `forget` could see: it was derived elsewhere meanwhile. Whoever syncs last does it."""
    one, two = pair
    said, card = (
        one.insert(text).fact
        for text in ("Alice moved the API to Fly.io because of Heroku.", "Alice pays Fly.io by card.")
    )
    for bank in (*pair, one):
        sync(bank)
    alone = believe(two, "Heroku is left behind.", (said, "because of Heroku"))  # in a file of its own
    both = believe(two, "Alice uses Fly.io.", (said, "moved the API to Fly.io"), (card, "pays Fly.io"))
    page = "memory/pages/infra.md"
    by_machine(two, f"The API moved away. {link(said)} It is paid by card. {link(card)}\n", page)
    by_machine(two, f"# Memory\n\n## Infra\n\n- They moved away. {link(said)}\n- Alice\n", "MEMORY.md")
    two.write(f"Ann: see [[{DAY[7:-3]}#^{said.id}]], and that Heroku is behind.\n", "memory/notes.md")
    Memory(one.store).forget(f"^{said.id}")
    first, last = (one, two) if forgets_first else (two, one)
    sync(first)
    trial, was = sync(last, trial=True), tree(last)
    assert tree(last) == was
    done = sync(last)
    assert (
        any("2 sentences, 1 observation; 1 revised" in note for note in done.notes)
        and done.notes == trial.notes
    )
    assert {said.id, alone.id} == {*done.merge.forgotten} == {*trial.merge.forgotten}
    sync(first)
    assert tree(one) == tree(two) and len(heads(one, two)) == 1 and one.clean() and two.clean()
    (left,) = markdown.parse(one.bytes(BELIEFS), BELIEFS).of(Observation)
    assert (left.id, [proof.id for proof in left.proofs]) == (both.id, [card.id])
    assert one.text(page) == f"It is paid by card. {link(card)}\n" and "moved" not in one.text("MEMORY.md")
    assert f"^{alone.id}" in one.text("memory/forgotten.md") and "Ann: see" in one.text("memory/notes.md")
    assert not done.forgotten or done.forgotten.proof.is_clean


@pytest.mark.few(2)
@pytest.mark.parametrize("stop", [3, 14, 22, 30, 38])
def test_killed_on_the_way_nothing_is_half(pair: tuple[Bank, Bank], stop: int) -> None:
    one, two = pair
    one.insert("Bob moved to Lisbon")
    sync(one)
    two.insert("Carol keeps bees")
    two.edit("tea", "milk")
    ended, steps = in_child(lambda: sync(two), stop)
    assert not ended, f"it takes only {steps} steps"
    for bank in (one, two):
        sync(Bank(bank.root, bank.clock))
    sync(one)
    assert tree(one) == tree(two) and len(heads(one, two)) == 1 and one.clean() and two.clean()
    assert facts(one) == {"Alice drinks milk", "Bob moved to Lisbon", "Carol keeps bees"}
    assert not [name for name in leftovers(two.store) if "fresh" in name]


@pytest.mark.slow
@given(
    st.lists(
        st.tuples(st.booleans(), st.sampled_from(["insert", "edit", "drop", "sync"]), st.integers(0, 3)),
        max_size=9,
    )
)
@settings(
    max_examples=max(4, settings().max_examples // 50),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    deadline=None,
)
def test_any_order_of_work_ends_alike(
    tmp_path_factory: pytest.TempPathFactory, work: list[tuple[bool, str, int]]
) -> None:
    banks = two(tmp_path_factory.mktemp("pair"))
    for n, (second, what, at) in enumerate(work):
        bank = banks[second]
        rows = (
            [row for row in bank.text().splitlines() if row.startswith("- ")] if bank.path().exists() else []
        )
        if what == "insert":
            bank.insert(f"fact {n}")
        elif what == "sync":
            sync(bank)
        elif rows:
            row = rows[at % len(rows)]
            bank.edit(row, row.replace(" ^", f" again{n} ^", 1) if what == "edit" else "")
    for bank in (*banks, *banks):
        sync(bank)
    assert tree(banks[0]) == tree(banks[1]) and len(heads(*banks)) == 1
    assert banks[0].clean() and banks[1].clean()


# -- archives --------------------------------------------------------------------------------------------


def restore(store: Store, file: Path) -> archive.RestoreResult:
    return archive.restore(store, file, door="test", index=lambda: Index(store))


def test_an_archive_is_the_whole_bank_and_nothing_else(pair: tuple[Bank, Bank], tmp_path: Path) -> None:
    one, _ = pair
    file = tmp_path / "bank.tar"
    done = archive.export(one.store, file)
    assert done.files == 3 and file.stat().st_mode & 0o777 == 0o600
    with tarfile.open(file) as tar:
        assert sorted(tar.getnames()) == [
            *("files/MEMORY.md", "files/memory/2026-11-21.md", "files/ua-memory.toml"),
            *("manifest.json", "trail.bundle"),
        ]
    assert b"remote.git" not in file.read_bytes()
    three = new_bank(tmp_path / "three")
    taken = restore(three.store, file)
    assert taken.merge.added == 1 and tree(three) == tree(one)
    assert restore(Bank(three.root, one.clock).store, file).received == 0
    with pytest.raises(UaMemoryError, match="already exists"):
        archive.export(one.store, file)
    with pytest.raises(Usage, match="inside"):
        archive.export(one.store, one.root / "x.tar")
    for name in ("bank.zip", "bank.tar.gz", "bank.TGZ"):
        with pytest.raises(Usage, match=r"\.tar") as told:
            archive.export(one.store, tmp_path / name)
        assert "bank.tar," in str(told.value.hint)


@pytest.mark.parametrize("named", [False, True])
def test_an_export_that_is_killed_leaves_nothing_behind(
    pair: tuple[Bank, Bank], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    """`named`: on a file system that knows no files without a name; the next export sweeps up there."""
    folder = tmp_path / "out"
    folder.mkdir()
    if named:
        monkeypatch.setattr(os, "O_TMPFILE", os.O_DIRECTORY, raising=False)  # as an older kernel reads it
        monkeypatch.setattr(tempfile, "_O_TMPFILE_WORKS", False)
    elif not hasattr(os, "O_TMPFILE"):
        pytest.skip("no files without a name here")
    seen: list[int] = []
    add = archive._add

    def adding(*given: Any) -> None:
        seen.append(len(list(folder.iterdir())))  # what would be left if it were killed here
        add(*given)

    monkeypatch.setattr(archive, "_add", adding)
    archive.export(pair[0].store, folder / "bank.tar")
    assert set(seen) == {int(named)} and [each.name for each in folder.iterdir()] == ["bank.tar"]
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    left, other = folder / f".bank.tar.{ended.pid}.part", folder / f".other.tar.{ended.pid}.part"
    left.touch()
    other.touch()
    (folder / "bank.tar").unlink()
    archive.export(pair[0].store, folder / "bank.tar")
    assert not left.exists() and other.exists()


@pytest.mark.parametrize("fault", ["flipped", "shallow"])
def test_no_archive_is_written_that_could_not_be_taken_in(
    pair: tuple[Bank, Bank], tmp_path: Path, fault: str
) -> None:
    """git bundles a damaged object of a pack, and half a history, without turns."""
    one = pair[0]
    one.edit("tea", "green tea")
    one.store.adopt()
    git(one.root, "repack", "-adq", "--window=0")
    if fault == "shallow":
        git(tmp_path, "clone", "--quiet", "--depth=1", (tmp_path / "one").as_uri(), "half")
        one = Bank(tmp_path / "half", one.clock)
    else:
        (pack,) = (one.root / ".git/objects/pack").glob("*.pack")
        said = git(one.root, "verify-pack", "-v", str(pack.with_suffix(".idx"))).split("\n")
        old = git(one.root, "rev-parse", f"HEAD~1:{DAY}").strip()
        at = next(int(row.split()[4]) for row in said if row.startswith(old))
        data = bytearray(pack.read_bytes())
        data[at + 20] ^= 4
        pack.chmod(0o600)
        pack.write_bytes(data)
    with pytest.raises(UaMemoryError, match="shallow clone" if fault == "shallow" else "git fetch failed"):
        archive.export(one.store, tmp_path / "bank.tar")
    assert not [*tmp_path.glob("*bank.tar*")] and not [*one.store.bank.state.glob("export-*")]


def _members(file: Path) -> list[tuple[tarfile.TarInfo, bytes]]:
    with tarfile.open(file) as tar:
        return [(member, (tar.extractfile(member) or io.BytesIO()).read()) for member in tar]


def _rewritten(file: Path, change: Callable[[list[tuple[tarfile.TarInfo, bytes]]], None]) -> None:
    rows = _members(file)
    change(rows)
    with tarfile.open(file, "w") as tar:
        for member, data in rows:
            member.size = len(data) if member.isreg() else 0
            tar.addfile(member, io.BytesIO(data))


def _other_byte(rows: list[tuple[tarfile.TarInfo, bytes]]) -> None:
    rows[2] = (rows[2][0], rows[2][1].replace(b"tea", b"mud"))


def _outside(rows: list[tuple[tarfile.TarInfo, bytes]]) -> None:
    said = json.loads(rows[0][1])
    said["members"][0]["name"] = rows[1][0].name = "files/../../evil.md"
    rows[0] = (rows[0][0], json.dumps(said).encode())


def _link(rows: list[tuple[tarfile.TarInfo, bytes]]) -> None:
    rows[1][0].type, rows[1][0].linkname = tarfile.SYMTYPE, "/etc/passwd"


def _other_files(rows: list[tuple[tarfile.TarInfo, bytes]]) -> None:
    """Files and hashes agree, and are not what the history has."""
    import hashlib

    _other_byte(rows)
    said = json.loads(rows[0][1])
    row = next(row for row in said["members"] if row["name"] == rows[2][0].name)
    row["sha256"], row["bytes"] = hashlib.sha256(rows[2][1]).hexdigest(), len(rows[2][1])
    rows[0] = (rows[0][0], json.dumps(said).encode())


CHANGES = [
    _other_byte,
    _outside,
    _link,
    _other_files,
    lambda rows: rows.pop(),
    lambda rows: rows.append(rows[1]),
    lambda rows: rows.pop(0),
]


@pytest.mark.few(3)
@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_archive_is_refused_before_a_byte_is_written(
    tmp_path: Path, change: Callable[[list[tuple[tarfile.TarInfo, bytes]]], None]
) -> None:
    one = new_bank(tmp_path / "one")
    one.insert("Alice drinks tea")
    archive.export(one.store, file := tmp_path / "bank.tar")
    _rewritten(file, change)
    two = new_bank(tmp_path / "two")
    was = tree(two), heads(two)
    with pytest.raises(Malformed, match="not imported"):
        restore(two.store, file)
    assert (tree(two), heads(two)) == was and not (two.store.bank.state / aside.WORK_FOLDER).exists()
    assert not (tmp_path / "evil.md").exists()


def test_no_byte_of_an_archive_can_be_another(tmp_path: Path) -> None:
    """Also where nothing stands; and no header makes anything grow, or call itself without an end."""
    one = new_bank(tmp_path / "one")
    archive.export(one.store, file := tmp_path / "bank.tar")
    data = file.read_bytes()
    with tarfile.open(file) as tar:
        starts = [at for member in tar for at in (member.offset, member.offset_data)]
    flipped = [*starts, *(at - 1 for at in starts[1:]), *range(0, len(data), 997), len(data) - 1]
    wrong = [data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :] for at in flipped]
    for kind in (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME):
        header = tarfile.TarInfo("x")
        header.type = kind
        wrong.append(header.tobuf() * 20_000 + data)
        header.size = 8 << 30
        wrong.append(header.tobuf() + data)
    for bad in wrong:
        file.write_bytes(bad)
        with pytest.raises(Malformed):
            archive._verify_archive(file, tmp_path / "trail.bundle")
        (tmp_path / "trail.bundle").unlink(missing_ok=True)
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(Malformed, match="not a regular file"):
        archive._verify_archive(file, tmp_path / "trail.bundle")


def test_a_cut_archive_is_refused(tmp_path: Path) -> None:
    one = new_bank(tmp_path / "one")
    archive.export(one.store, file := tmp_path / "bank.tar")
    data = file.read_bytes()
    with tarfile.open(file) as tar:
        end = max(member.offset_data + member.size for member in tar)
    for length in (0, 100, 700, len(data) // 2, end - 1, len(data) - 1):
        file.write_bytes(data[:length])
        with pytest.raises((Malformed, GitFailed)):
            restore(one.store, file)


def test_memory_has_all_of_it(pair: tuple[Bank, Bank], tmp_path: Path) -> None:
    with Memory.open(pair[0].root, now=pair[0].clock) as memory:
        assert (
            memory.remote.sync(dry_run=True).trial and memory.remote.export(tmp_path / "x.tar").revisions > 1
        )
        assert memory.remote.restore(tmp_path / "x.tar", dry_run=True).trial
