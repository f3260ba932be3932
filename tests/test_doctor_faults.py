"""Each fault planted: `verify` names it, `doctor` mends or explains it, the truth is unharmed (I6, I9)."""

from __future__ import annotations

import gc
import os
import random
import re
import resource
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from banks import git, repository
from index_bank import Counting
from store_banks import DAY, inserted, make, on_disk, open_again

from ua_memory.errors import CannotWrite, Malformed, UaMemoryError
from ua_memory.git.history import History
from ua_memory.index import embedding
from ua_memory.index import vectors as sums
from ua_memory.index.sync import Index
from ua_memory.memory import Memory
from ua_memory.upkeep import doctor as checking
from ua_memory.upkeep.doctor import CHROMA_KILLED, CHROMA_OPEN

pytestmark = pytest.mark.xdist_group("planted_faults")  # one bank is copied for all

FACTS = ["one", "two", "three"]


def flip(file: Path, at: int | None = None) -> None:
    data = file.read_bytes()
    spot = len(data) // 2 if at is None else at
    file.chmod(0o644)
    file.write_bytes(data[:spot] + bytes([data[spot] ^ 0x41]) + data[spot + 1 :])


def flip_in(file: Path, words: bytes, number: int) -> None:
    """Flip a byte in one of the places where these words stand."""
    places = [match.start() for match in re.finditer(words, file.read_bytes())]
    flip(file, places[number] + 1)


def objects(root: Path) -> list[Path]:
    return sorted(file for file in (root / ".git/objects").rglob("*") if file.is_file())


def blob_of_an_old_state(root: Path) -> Path:
    """The loose object that no present file needs."""
    store = open_again(root)
    name = store.history.run("rev-parse", f"HEAD~1:{DAY}").decode().strip()
    return root / ".git/objects" / name[:2] / name[2:]


def state(root: Path) -> Path:
    (root / ".git/ua-memory/pending").mkdir(exist_ok=True)
    return root / ".git/ua-memory"


def folder(file: Path) -> None:
    file.unlink(missing_ok=True)
    file.mkdir()


class Fault(NamedTuple):
    """`named` is what `verify` says of it; `mended` whether `doctor --mend` does, else `says` is its advice.
    After it an insert is `done`, `owed` its commit, or `refused`."""

    plant: Callable[[Path], object]
    named: str
    mended: bool
    says: str = ""
    then: str = "done"


BACKUP = "from another copy of this bank: ua-memory git fetch --refetch"
FAULTS = {
    "a flipped object": Fault(lambda r: flip(blob_of_an_old_state(r)), "fsck failed", False, BACKUP),
    "all objects flipped": Fault(
        lambda r: [flip(each) for each in objects(r)], "fsck failed", False, BACKUP, "owed"
    ),
    "a missing object": Fault(lambda r: blob_of_an_old_state(r).unlink(), "missing blob", False, BACKUP),
    "noise in the ref": Fault(
        lambda r: (r / ".git/refs/heads/main").write_bytes(b"garbage\n"), "fsck failed", True
    ),
    "an empty ref": Fault(
        lambda r: (r / ".git/refs/heads/main").write_bytes(b""), "fsck failed", True
    ),
    "noise in HEAD": Fault(
        lambda r: (r / ".git/HEAD").write_bytes(b"garbage"), "fsck failed", False,
        "echo 'ref: refs/heads/main' > ", "owed",
    ),
    "a letter flipped in HEAD": Fault(
        lambda r: (r / ".git/HEAD").write_bytes(b"ref: refs/heads/maif\n"), "without a revision", False,
        "ua-memory git symbolic-ref HEAD refs/heads/main", "owed",
    ),
    "a branch that is gone": Fault(
        lambda r: (r / ".git/refs/heads/main").unlink(), "the branch main is gone; its last revision", True
    ),
    "a branch that is gone beside a hand edit": Fault(
        lambda r: [(r / ".git/refs/heads/main").unlink(), (r / "memory/notes.md").write_text("# Notes\n")],
        "the branch main is gone", False, "ua-memory git update-ref refs/heads/main", "owed",
    ),
    "broken settings of git": Fault(
        lambda r: (r / ".git/config").write_bytes(b"[broken"), "bad config", False, "correct line 2 of ",
        "owed",
    ),
    "a flipped index of git": Fault(lambda r: flip(r / ".git/index"), "index file corrupt", True),
    "an empty index of git": Fault(lambda r: (r / ".git/index").write_bytes(b""), "index file", True),
    "a record of noise": Fault(
        lambda r: (state(r) / "pending/revision-0001-x.json").write_bytes(b"garbage"),
        "unfinished revision cannot be read", False, "copy what you need from it",
    ),
    "waiting turns of noise": Fault(
        lambda r: (state(r) / "pending/turns-x.jsonl").write_bytes(b"garbage\n"),
        "waiting turns cannot be read", False, "queue drop x",
    ),
    "a flipped head of the index": Fault(
        lambda r: flip(next(state(r).rglob("words.db")), 3), "words.db", True
    ),
    "half an index": Fault(
        lambda r: os.truncate(next(state(r).rglob("words.db")), 9000), "words.db", True
    ),
    **{
        f"a byte flipped in a text of the index, {which}": Fault(
            lambda r, n=n: flip_in(next(state(r).rglob("words.db")), b"three", n), "words.db", True
        )
        for n, which in enumerate(("an item's", "a spelling's"))
    },
    "a folder for a lock": Fault(
        lambda r: folder(state(r) / "lock"), "remove it", False, "rm -r", "refused"
    ),
    "a lock of noise": Fault(lambda r: (state(r) / "lock").write_bytes(b"\xff" * 99), "", True),
    "a leftover with words": Fault(
        lambda r: (r / "memory/.ua-out-0001-x.0-aaaaaaaaaa").write_bytes(b"- only here\n"),
        "left by an interrupted write", False, "copy what you need",
    ),
    "a survey of noise": Fault(lambda r: flip(state(r) / "cache/survey-2"), "", True),
}  # fmt: skip


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A sound bank, to be copied."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        store = make(tmp_path_factory.mktemp("banks") / "bank", person=False)
        for text in FACTS:
            inserted(store, text)
        with Index(store) as index:
            index.refresh(vectors=False)
        yield store.bank.root


@pytest.mark.few(8)
@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault(name: str, sound: Path, tmp_path: Path) -> None:
    fault, root = FAULTS[name], tmp_path / "bank"
    shutil.copytree(sound, root)
    fault.plant(root)
    truth = (root / DAY).read_bytes()
    with Memory(open_again(root)) as memory:
        found = [str(each) for each in memory.health.verify()]
        assert any(fault.named in each for each in found) or (not fault.named and found == []), found
        said = [check for check in memory.health.doctor(mend=True) if not check.ok]
        assert (not said) if fault.mended else any(fault.says in check.hint for check in said), said
        if fault.mended:
            assert memory.health.verify() == []
        assert (root / DAY).read_bytes() == truth
        assert memory.search_many(["two"], by_words=True)[0].hits, "it is found all the same"
    outcome = "done"
    try:
        notes = inserted(open_again(root), "four").notes
        outcome = "owed" if any("not committed yet" in note for note in notes) else "done"
    except CannotWrite:
        outcome = "refused"
    assert outcome == fault.then
    assert on_disk(open_again(root)) == FACTS + (["four"] if outcome != "refused" else [])


def test_no_history_begins_where_one_is_out_of_sight(sound: Path, tmp_path: Path) -> None:
    """A write puts the branch back and says so; what somebody's git has lying there is no such history."""
    root = tmp_path / "bank"
    shutil.copytree(sound, root)
    ref = root / ".git/refs/heads/main"
    was = ref.read_text().strip()
    ref.unlink()
    assert open_again(root).history.head() == "refs/heads/main"
    done = inserted(open_again(root), "four")
    assert any(was[:10] in note and "put back" in note for note in done.notes)
    assert open_again(root).history.run("rev-parse", "HEAD~1").decode().strip() == was
    theirs = repository(tmp_path / "theirs")
    git(theirs, "commit-tree", "-m", "x", git(theirs, "write-tree").strip())
    assert History(theirs / ".git", theirs, own=True).head() is None


def test_what_is_kept_of_embeddings_is_looked_at(sound: Path, tmp_path: Path) -> None:
    """A byte of a vector, a byte of its tokens, a vector that is gone: named, and made again."""
    root = tmp_path / "bank"
    shutil.copytree(sound, root)
    store = open_again(root)
    with Index(store, embeds=Counting()) as index:
        index.refresh()
    with Memory(store) as memory:
        assert memory.health.verify() == []
        cached = next(state(root).rglob("embeddings-*.db"))
        with closing(sqlite3.connect(cached)) as db:
            ((vector,),) = db.execute("SELECT vector FROM vectors LIMIT 1")
        whole = cached.read_bytes()
        flip(cached, whole.find(vector) + 5)
        assert [each.message for each in memory.health.verify()] == [
            "1 embeddings differ from their checksums"
        ]
        cached.write_bytes(whole)
        with closing(sqlite3.connect(next(state(root).rglob("chroma.sqlite3")))) as db:
            db.execute("DELETE FROM embeddings WHERE id = (SELECT min(id) FROM embeddings)")
            db.commit()
        assert ["without a vector" in each.message for each in memory.health.verify()] == [True, False]
        flip(cached, whole.find(vector) + 5)
        assert all(check.ok for check in memory.health.doctor(mend=True) if check.name == "index")
        assert memory.health.verify() == [] and not cached.exists()


def flipped(file: Path, at: int, bit: int) -> None:
    """Flip one bit in place, so that whoever has the file open sees it."""
    with file.open("r+b") as data:
        data.seek(at)
        was = data.read(1)[0]
        data.seek(at)
        data.write(bytes([was ^ bit]))


def says(file: Path) -> list[object]:
    """All that a database says; bytes that are no part of it aside, and names of a state: with another one
    the next refresh compares all."""
    with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as db:
        tables = sorted(db.execute("SELECT name, sql FROM sqlite_master WHERE sql NOT LIKE '%VIRTUAL%'"))
        asked = [text for name, text in SAID.items() if name in dict(tables)]
        return [tables, *(sorted(map(repr, db.execute(text))) for text in asked)]


SAID = {"files": "SELECT path, hash FROM files"} | {
    name: f"SELECT * FROM {name}"
    for name in ("items", "names", "settled", "grams", "words_content", "vectors", "sums")
}


@pytest.fixture(scope="module")
def embedded(sound: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sound bank with vectors, to be copied."""
    root = tmp_path_factory.mktemp("embedded") / "bank"
    shutil.copytree(sound, root)
    (root / "memory/entities.md").write_text("- [[Alice]]\n  - alias: Ali\n")
    with Index(open_again(root), embeds=Counting()) as index:
        index.refresh()
    return root


@pytest.mark.slow
def test_a_bit_flipped_anywhere_in_the_index_is_named_and_mended(embedded: Path, tmp_path: Path) -> None:
    """Each file of the index and the embeddings, at its ends and some places between: named, or in a
    database no part of what it says. One of each file is mended."""
    root = tmp_path / "bank"
    shutil.copytree(embedded, root)
    store, chance = open_again(root), random.Random(8)
    with Index(store, embeds=Counting()) as index:  # the files' times are not those of the copy
        index.refresh()
    files = [file for file in (state(root) / "index").rglob("*") if file.is_file() and file.stat().st_size]
    files = [
        *sorted(file for file in files if file.suffix != ".lock"),
        state(root) / f"cache/{embedding.CACHE_FILE}",
    ]
    assert len(files) >= 9 and checking.check_integrity(store) == ([], [])
    for file in files:
        size, whole = file.stat().st_size, says(file) if file.suffix == ".db" else None
        spots = {0, size - 1, *(chance.randrange(size) for _ in range(9))}
        for at, bit in ((at, 1 << chance.randrange(8)) for at in sorted(spots)):
            flipped(file, at, bit)
            found = checking.check_integrity(store)
            assert found.problems or (whole and says(file) == whole), (file.name, at, bit, found.unchecked)
            flipped(file, at, bit)
        copy = tmp_path / file.name
        shutil.copytree(root, copy)
        flipped(copy / file.relative_to(root), 0, 1)
        with Memory(open_again(copy)) as memory:
            assert memory.health.verify() != []
            assert [check for check in memory.health.doctor(mend=True) if check.name == "index" and check.ok]
            assert memory.health.verify() == [] and memory.search_many(["two"], by_words=True)[0].hits
    assert checking.check_integrity(store) == ([], [])


def test_what_others_have_open_is_no_fault(embedded: Path, tmp_path: Path, monkeypatch: Any) -> None:
    """Chroma's files are told of while nobody has them open and who had has closed them. What was only read
    keeps its sum."""
    root = tmp_path / "bank"
    shutil.copytree(embedded, root)
    store, read = open_again(root), list[str]()
    monkeypatch.setattr(
        sums, "_file_checksum", lambda file, old=sums._file_checksum: (read.append(file.name), old(file))[1]
    )
    with Index(store, embeds=Counting()) as index:
        index.refresh()
        found = checking.check_integrity(store)
        assert not found.problems and [each.message for each in found.unchecked] == [
            f"not checked: {CHROMA_OPEN}"
        ]
    time.sleep(0.06)
    for _ in range(2):
        read.clear()
        with Index(store, embeds=Counting()) as index:
            index.refresh()
            index.nearest(Counting().texts(["one"]), 3)
    assert "chroma.sqlite3" in read and "chroma.json" not in read
    assert checking.check_integrity(store) == ([], [])
    inserted(store, "four")  # and the index is behind
    assert checking.check_integrity(store) == ([], [])
    next(state(root).rglob("chroma.sums")).unlink()  # as a kill leaves it
    assert [each.message for each in checking.check_integrity(store).unchecked] == [
        f"not checked: {CHROMA_KILLED}"
    ]


def test_settings_of_noise_are_named(sound: Path, tmp_path: Path) -> None:
    shutil.copytree(sound, tmp_path / "bank")
    (tmp_path / "bank/ua-memory.toml").write_bytes(b"\xff")
    with pytest.raises(Malformed, match=r"ua-memory\.toml"):
        open_again(tmp_path / "bank")
    assert (tmp_path / "bank/ua-memory.toml").read_bytes() == b"\xff"


def test_too_many_open_files(sound: Path, tmp_path: Path) -> None:
    """The system's own limit, at every number from nothing to enough: told or done, and whole."""
    root = tmp_path / "bank"
    shutil.copytree(sound, root)
    outcomes = set()
    for spare in range(9):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                store = open_again(root)
                gc.disable()  # what other tests have left open would be closed amid the insert
                free = [os.dup(0) for _ in range(9)]  # the numbers that files would get, in this order
                for number in free:
                    os.close(number)
                hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
                resource.setrlimit(resource.RLIMIT_NOFILE, (free[spare], hard))
                try:
                    inserted(store, f"spare {spare}")
                    code = 17
                except UaMemoryError as error:
                    code = 18 if "open files" in str(error) or "git" in str(error) else 19
            finally:
                os._exit(code)
        outcome = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert outcome in (17, 18), (spare, outcome)
        outcomes.add(outcome)
        store = open_again(root)
        store.adopt()
        found = on_disk(store)
        assert found[:3] == FACTS and len(found) == len(set(found))
        assert outcome == 18 or f"spare {spare}" in found
    assert outcomes == {17, 18}, "the limits tried are both too low and enough"
    with Memory(open_again(root)) as memory:
        assert memory.health.verify() == []
