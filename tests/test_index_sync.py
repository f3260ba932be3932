"""The index against the files: a diff with a report, safe to delete, damage or kill at any moment."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from index_bank import Counting, Missing, a_bank, log, write
from index_bank import chroma_index as an_index

from ua_memory.errors import Busy, CannotWrite
from ua_memory.index import generations as index_generations
from ua_memory.index import sync as condition
from ua_memory.index import sync as reading
from ua_memory.index import words as current
from ua_memory.index.generations import Generations
from ua_memory.index.sync import READY, Index
from ua_memory.index.terms import split_query
from ua_memory.index.vectors import LocalVectors, VectorLock, VectorsUnavailable
from ua_memory.index.vectors import VectorMark as Mark
from ua_memory.markdown import document
from ua_memory.markdown.document import texthash
from ua_memory.store import store as stores
from ua_memory.upkeep import doctor as checking

DAY = "memory/2026-11-21.md"
ALICE, BOB, CAROL = "Alice moved to Fly.io ^aaaaaaaaaa", "Bob paints boats", "Carol keeps bees"


def texts(index: Index) -> list[str]:
    return [item.text for item in index.words.items("1 ORDER BY path, line, key")]


def counts(report: Any) -> tuple[int, int, int]:
    return report.added, report.changed, report.removed


def settled(index: Index) -> None:
    """Wait out the racy window, so that the next refresh may trust what it saw."""
    time.sleep(0.06)
    index.refresh()
    assert index.unchanged()


def test_a_refresh_is_a_diff_with_a_report(tmp_path: Path) -> None:
    store = a_bank(tmp_path, {DAY: log(ALICE, BOB), "memory/2026-11-20.md": log(CAROL)})
    with an_index(store) as index:
        first = index.refresh()
        assert (counts(first), first.files, first.embedded, first.semantic) == ((3, 0, 0), 2, 3, READY)
        write(tmp_path / DAY, log("new", "Alice moved to Hetzner ^aaaaaaaaaa"))
        (tmp_path / "memory/2026-11-20.md").unlink()
        second = index.refresh()
        assert (counts(second), second.files, second.embedded) == ((1, 1, 2), 1, 2)
        assert counts(index.refresh()) == (0, 0, 0)
        assert index.vectors.names() == index.words.text_ids()
        assert second.seconds > 0 and not second.failed


def test_a_line_inserted_above_embeds_nothing(tmp_path: Path) -> None:
    store, embeds = a_bank(tmp_path, {DAY: log(BOB, ALICE, BOB)}), Counting()
    with an_index(store, embeds) as index:
        index.refresh()
        assert embeds.seen == 2  # equal texts share a vector
        write(tmp_path / DAY, "Some prose: a, b.\n\n" + log(BOB, ALICE, BOB))
        report = index.refresh()
        assert counts(report) == (1, 0, 0) and embeds.seen == 3
        assert [item.line for item in index.words.items("1 ORDER BY path, line, key")] == [1, 5, 6, 7]


def test_nothing_changed_is_told_by_stats_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = a_bank(tmp_path, {DAY: log(ALICE)})
    with an_index(store) as index:
        index.refresh()
        settled(index)
        monkeypatch.setattr("ua_memory.store.files.list_names", lambda _: pytest.fail("files were listed"))
        monkeypatch.setattr(type(store), "read", lambda *_: pytest.fail("a file was read"))
        assert counts(index.refresh()) == (0, 0, 0)


@pytest.mark.parametrize(
    "change",
    [
        lambda root: write(root / DAY, log(ALICE, BOB)),
        lambda root: write(root / "memory/sub/2026-11-22.md", log(BOB)),
        lambda root: write(root / "memory/2026-11-22.md", log(BOB)),
        lambda root: (root / DAY).unlink(),
        lambda root: (root / DAY).rename(root / "memory/2026-11-23.md"),
        lambda root: write(root / "MEMORY.md", "## A\n\ntext\n"),
        lambda root: (shutil.rmtree(root / "memory"), write(root / "MEMORY.md", "## A\n\ntext\n")),
    ],
)
def test_every_kind_of_change_is_seen(tmp_path: Path, change: Any) -> None:
    store = a_bank(tmp_path, {DAY: log(ALICE)})
    with an_index(store) as index:
        index.refresh()
        settled(index)
        change(tmp_path)
        assert not index.unchanged()
        assert counts(index.refresh()) != (0, 0, 0)


def test_a_change_under_the_same_stat_is_caught_while_fresh(tmp_path: Path) -> None:
    store = a_bank(tmp_path)
    file = tmp_path / DAY
    with an_index(store) as index:
        file.write_text("- one\n")
        stat = file.stat()
        index.refresh()
        with file.open("r+") as same:  # the same size and inode, and the old time put back
            same.write("- two\n")
        os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        index.refresh()
        assert texts(index) == ["two"]


def test_one_bad_file_never_stops_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = a_bank(tmp_path, {DAY: log(ALICE), "memory/2026-11-20.md": log(BOB)})
    real = type(store).read

    def read(self: stores.Store, path: str) -> bytes:
        if path == DAY:
            raise CannotWrite("no permission", where=path)
        return real(self, path)

    with an_index(store) as index:
        monkeypatch.setattr(type(store), "read", read)
        report = index.refresh()
        assert [problem.path for problem in report.failed] == [DAY] and texts(index) == ["Bob paints boats"]
        assert len(index.refresh().failed) == 1  # and is tried again
        monkeypatch.setattr(type(store), "read", real)
        assert index.refresh().failed == [] and len(texts(index)) == 2


def test_a_bug_in_the_parser_is_a_failed_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = a_bank(tmp_path, {DAY: log(ALICE), "memory/2026-11-20.md": log(BOB)})
    real = document.parse
    monkeypatch.setattr(document, "parse", lambda data, path: 1 // 0 if path == DAY else real(data, path))
    with an_index(store) as index:
        assert [problem.path for problem in index.refresh().failed] == [DAY]
        assert texts(index) == ["Bob paints boats"]


def test_secrets_of_a_person_reach_neither_words_nor_vectors(tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    store = a_bank(tmp_path, {DAY: log(f"the token is {secret} for CI")})
    with an_index(store) as index:
        index.refresh()
        assert index.words.search(split_query(secret), 5) == []
        assert "[redacted" in texts(index)[0]
    for file in [*store.bank.index.rglob("*"), *store.bank.cache.rglob("*")]:
        assert not file.is_file() or secret.encode() not in file.read_bytes()


# -- deleted, damaged, killed ------------------------------------------------------------------------------


def order(index: Index) -> list[tuple[str, int]]:
    vector = index.embeds.texts(["Bob and Alice"])[0]
    return [
        *index.nearest([vector], 50)[0],
        *((h.key, h.score) for h in index.words.search(split_query("bob"), 50)),
    ]


def test_deleting_the_index_changes_nothing(tmp_path: Path) -> None:
    embeds = Counting()
    store = a_bank(
        tmp_path, {f"memory/2026-11-{day:02}.md": log(ALICE, BOB, f"day {day}") for day in range(1, 29)}
    )
    with an_index(store, embeds) as index:
        index.refresh()
        write(tmp_path / DAY, log("changed", BOB))
        index.refresh()
        before, seen = order(index), embeds.seen
        shutil.rmtree(store.bank.index)  # under an open index
        report = index.refresh()
        assert report.semantic == READY and order(index) == before and embeds.seen == seen + 1
    shutil.rmtree(store.bank.index)
    with an_index(store, Counting()) as index:
        assert index.refresh().embedded == 0
        assert order(index) == before
    shutil.rmtree(store.bank.cache)
    with an_index(store) as index:
        assert index.rebuild().embedded > 0
        assert order(index) == before


def test_a_rebuild_is_swapped_in(tmp_path: Path) -> None:
    store = a_bank(tmp_path, {DAY: log(ALICE, BOB)})
    with an_index(store) as index, an_index(store) as other:
        index.refresh()
        other.refresh(vectors=False)
        report = index.rebuild()
        assert counts(report) == (2, 0, 0) and report.embedded == 0 and report.semantic == READY
        assert counts(other.refresh(vectors=False)) == (0, 0, 0) and len(texts(other)) == 2
        assert [entry.name for entry in store.bank.index.iterdir() if entry.name.isdigit()] == ["2"]


def test_a_failed_rebuild_leaves_the_old_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = a_bank(tmp_path, {DAY: log(ALICE)})
    with an_index(store) as index:
        index.refresh()
        with monkeypatch.context() as patch:
            patch.setattr(type(store), "survey", lambda _: 1 // 0)
            with pytest.raises(ZeroDivisionError):
                index.rebuild()
        assert counts(index.refresh()) == (0, 0, 0) and texts(index) == ["Alice moved to Fly.io"]


@pytest.mark.parametrize("step", ["upsert", "set_mark", "delete"])
def test_killed_between_words_and_vectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    store = a_bank(tmp_path, {DAY: log(ALICE, BOB)})
    index = an_index(store)
    index.refresh()
    write(tmp_path / DAY, log(BOB, CAROL))
    with monkeypatch.context() as patch:
        patch.setattr(LocalVectors, step, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            index.refresh()
    index.close()
    with an_index(store) as again:
        report = again.refresh()
        assert counts(report) == (0, 0, 0) and report.semantic == READY
        assert again.vectors.names() == again.words.text_ids()


def test_killed_while_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = a_bank(tmp_path, {DAY: log(ALICE), "memory/2026-11-22.md": log(BOB)})
    with an_index(store) as index:
        with monkeypatch.context() as patch:
            patch.setattr(
                index_generations.Manifest,
                "set_proof",
                lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt),
            )
            with pytest.raises(KeyboardInterrupt):
                index.refresh()
        assert counts(index.refresh()) == (2, 0, 0)


def test_another_generation_is_caught_up(tmp_path: Path) -> None:
    store, embeds = a_bank(tmp_path, {DAY: log(ALICE)}), Counting()
    with an_index(store, embeds) as index:
        index.refresh()
        # Others that did not own the vectors brought the words forward.
        with an_index(store) as other:
            for fact in (BOB, CAROL):
                write(tmp_path / DAY, log(ALICE, fact))
                other.refresh(vectors=False)
        report = index.refresh()
        assert (counts(report), report.embedded, embeds.seen) == ((0, 0, 0), 1, 2)
        assert index.vectors.names() == index.words.text_ids()


@pytest.mark.parametrize("mark", [Mark("other", 1, "counting-1"), Mark("", 99, "x"), Mark()])
def test_vectors_of_another_index_are_compared_name_by_name(tmp_path: Path, mark: Mark) -> None:
    store = a_bank(tmp_path, {DAY: log(ALICE, BOB)})
    with an_index(store) as index:
        index.refresh()
        index.vectors.delete([sorted(index.words.text_ids())[0]])
        index.vectors.set_mark(mark)
        assert index.refresh().semantic == READY
        assert index.vectors.names() == index.words.text_ids()
        words, model, cache = index.words, index.embeds.model, index.cache.epoch
        assert index.vectors.mark == Mark(words.epoch, words.generation, model, cache=cache)


def test_another_model_makes_other_vectors(tmp_path: Path) -> None:
    store, other = a_bank(tmp_path, {DAY: log(ALICE, BOB)}), Counting()
    with an_index(store) as index:
        index.refresh()
    other.model = "counting-2"
    with an_index(store, other) as index:
        assert index.refresh().embedded == 2 and other.seen == 2
        assert index.vectors.mark.model == "counting-2"


@pytest.mark.parametrize("damage", [b"", b"garbage" * 3000])
def test_damaged_words_are_rebuilt(tmp_path: Path, damage: bytes) -> None:
    store = a_bank(tmp_path, {DAY: log(ALICE, BOB)})
    with an_index(store) as index:
        index.refresh()
    for file in store.bank.index.glob("*/words.db*"):
        file.write_bytes(damage)
    with an_index(store) as index:
        report = index.refresh()
        assert counts(report) == (2, 0, 0) and report.semantic == READY and report.embedded == 0
        assert not damage or any("damaged" in note for note in report.notes)


def test_words_damaged_in_the_middle_are_rebuilt(tmp_path: Path) -> None:
    many = {
        f"memory/2026-10-{day:02}.md": log(*(f"fact {day} {n}" for n in range(50))) for day in range(1, 30)
    }
    store = a_bank(tmp_path, many)
    with an_index(store) as index:
        index.refresh(vectors=False)
        index.words.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    (file,) = store.bank.index.glob("*/words.db")
    data = bytearray(file.read_bytes())
    for page in range(2, len(data) // 4096, 2):
        data[page * 4096 : page * 4096 + 400] = os.urandom(400)
    file.write_bytes(data)
    with an_index(store) as index:
        for day in range(1, 30):
            write(tmp_path / f"memory/2026-10-{day:02}.md", log(*(f"other {day} {n}" for n in range(50))))
        report = index.refresh(vectors=False)
        assert any("damaged" in note for note in report.notes)
        assert len(texts(index)) == 29 * 50


def test_damaged_vectors_are_rebuilt_from_the_cache(tmp_path: Path) -> None:
    store = a_bank(tmp_path, {DAY: log(ALICE, BOB)})
    with an_index(store) as index:
        index.refresh()
    (file,) = store.bank.index.glob("*/chroma/chroma.sqlite3")
    file.write_bytes(b"garbage" * 3000)
    with an_index(store) as index:
        report = index.refresh()
        assert (report.semantic, report.embedded) == (READY, 0)
        assert any("rebuilt" in note for note in report.notes)
        assert index.vectors.count() == 2


def test_an_index_of_another_version_is_dropped(tmp_path: Path) -> None:
    store = a_bank(tmp_path, {DAY: log(ALICE)})
    with an_index(store) as index:
        index.refresh()
        index.words.set_meta("schema", "0")
    assert condition.state(store) == {"state": "of another version"}
    with an_index(store) as index:
        report = index.refresh()
        assert any("version" in note for note in report.notes) and counts(report) == (1, 0, 0)


# -- without ------------------------------------------------------------------------------------------------


def test_without_a_model_there_are_words(tmp_path: Path) -> None:
    with an_index(a_bank(tmp_path, {DAY: log(ALICE)}), Missing()) as index:
        report = index.refresh()
        assert "sha256" in report.semantic and texts(index) == ["Alice moved to Fly.io"]


def test_without_chroma_there_are_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "chromadb", None)
    with an_index(a_bank(tmp_path, {DAY: log(ALICE)})) as index:
        assert "chromadb" in index.refresh().semantic


def test_without_the_lock_nothing_is_embedded(tmp_path: Path) -> None:
    store = a_bank(tmp_path, {DAY: log(ALICE)})
    store.bank.index.mkdir(parents=True)
    owner = VectorLock(store.bank.index / "owner.lock")
    owner.acquire()
    with an_index(store) as index:
        beside = index.refresh()
        assert (beside.semantic, beside.embedded, beside.left_texts) == (READY, 0, 1)
        with pytest.raises(Busy):
            index.rebuild()
        owner.release()
        assert index.refresh().embedded == 1


def test_where_nothing_can_be_written_the_files_are_read(tmp_path: Path) -> None:
    store = a_bank(tmp_path, {DAY: log(ALICE)})
    store.bank.state.mkdir(parents=True, exist_ok=True)
    store.bank.index.write_text("a file where the folder should be")
    with an_index(store) as index:
        report = index.refresh()
        assert texts(index) == ["Alice moved to Fly.io"] and any(
            "cannot be saved" in note for note in report.notes
        )
        assert report.semantic != READY
        with pytest.raises(VectorsUnavailable, match="cannot be saved"):
            assert index.vectors


def test_words_need_nothing_heavy(tmp_path: Path) -> None:
    a_bank(tmp_path, {DAY: log(ALICE)})
    code = """if True:
        import sys
        from datetime import UTC, datetime
        from pathlib import Path
        from ua_memory.config import Config
        from ua_memory.index.sync import Index
        from ua_memory.paths import locate
        from ua_memory.recall.search import search
        from ua_memory.store.store import Store
        store = Store(locate(Path(sys.argv[1])), Config(), lambda: datetime.now(UTC))
        with Index(store) as index:
            answer = search(index, "alice", refresh=lambda: index.refresh(vectors=False))
        assert len(answer.hits) == 1, answer
        print([name for name in ("chromadb", "onnxruntime", "tokenizers", "numpy") if name in sys.modules])
    """
    root = str(Path(reading.__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": root},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"


def test_state_and_problems(tmp_path: Path) -> None:
    store = a_bank(tmp_path, {DAY: log(ALICE, BOB)})
    assert condition.is_missing(store)
    with an_index(store) as index:
        index.refresh()
        settled(index)
        assert condition.state(store) == {"state": "ready", "items": 2, "files": 1, "vectors": "ready"}
        write(tmp_path / DAY, log(ALICE))
        assert (
            condition.state(store)["state"] == "behind"
            and list(checking.check_integrity(store).problems) == []
        )
        index.words.db.execute("DELETE FROM words WHERE rowid = 1")
        assert len(list(checking.check_integrity(store).problems)) == 1
    assert not condition.is_missing(store)


# -- stopped in the middle ---------------------------------------------------------------------------------


def test_at_a_stop_words_go_first_and_the_newest_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ua_memory.index.sync.MIN_FILES_READ", 1)
    store = a_bank(tmp_path)
    for n in range(6):
        write(tmp_path / f"memory/n{n}.md", log(f"the bird number{n}"), age=100 - 10 * n)
    with an_index(store) as index:
        done = index.refresh(stop=lambda: True)
        assert (done.files, done.left_files, done.added) == (6, 5, 1)
        assert not index.unchanged(), "no proof for what was not read"
        assert [item.path for item in index.words.by_texthash(texthash("the bird number5"))]
        left = [index.refresh(stop=lambda: True).left_files for _ in range(5)]
        assert left == [4, 3, 2, 1, 0]


def test_vectors_go_on_where_they_were_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ua_memory.index.embedding.RUNS_PER_BATCH", 4)
    monkeypatch.setattr("ua_memory.index.sync.UPSERT_BATCH", 3)
    store = a_bank(tmp_path, {"memory/n.md": log(*(f"bird number{n}" for n in range(10)))})
    counting = Counting()
    with an_index(store, counting) as index:
        first = index.refresh(stop=lambda: True)
        assert (first.embedded, first.left_texts) == (4, 6) and index.vectors.count() == 4
        write(tmp_path / "memory/m.md", log("one bird more"))
        second = index.refresh(stop=lambda: True)
        assert (second.embedded, second.left_texts) == (4, 3) and counting.seen == 8
        third = index.refresh()
        assert (third.embedded, third.left_texts) == (3, 0) and counting.seen == 11
        assert index.vectors.count() == 11 == len(index.words.text_ids())
        index._drop_vectors()
        again = index.refresh(stop=lambda: True)
        assert (again.embedded, again.left_texts) == (0, 8), "from the cache, and stopped as well"
        assert index.refresh().left_texts == 0 and counting.seen == 11


def test_a_search_says_what_there_was_no_time_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ua_memory.recall.search import search

    monkeypatch.setattr("ua_memory.index.embedding.RUNS_PER_BATCH", 1)
    monkeypatch.setattr("ua_memory.index.sync.MIN_FILES_READ", 1)
    store = a_bank(tmp_path, {f"memory/n{n}.md": log(f"bird number{n}") for n in range(3)})
    with an_index(store) as index:
        answer = search(index, "bird", refresh=lambda: index.refresh(stop=lambda: True))
        assert answer.stale == {"files": 2} and len(answer.hits) == 1
        assert answer.notes[1:] == ("indexing: 2 changed files not read so far",)
        assert "out of time before the vectors were updated" in answer.notes[0] and answer.mode == "words"
        index.refresh(vectors=False)
        answer = search(index, "bird", refresh=lambda: index.refresh(stop=lambda: True))
        assert answer.stale == {"texts": 2} and len(answer.hits) == 3
        assert "2 items keyword-only so far" in answer.notes[0]
        assert not search(index, "bird").stale


def test_a_search_does_not_wait_for_a_rebuild(tmp_path: Path) -> None:
    store = a_bank(tmp_path, {DAY: log(ALICE, BOB)})
    with an_index(store) as index:
        index.refresh(vectors=False)
    began = time.monotonic()
    with Generations(store.bank.index).building(), an_index(store) as index:
        half_made = Generations(store.bank.index).next()
        write(tmp_path / DAY, log(ALICE, BOB, CAROL))
        assert counts(index.refresh(vectors=False)) == (1, 0, 0) and half_made.is_dir()
    assert time.monotonic() - began < 1
    with an_index(store) as index:  # the rebuild was killed: what it left is swept away
        assert texts(index) == ["Alice moved to Fly.io", BOB, CAROL] and not half_made.exists()


@pytest.mark.parametrize("when", ["opening", "reading"])
def test_what_breaks_beside_a_rebuild_is_read_from_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    monkeypatch.setattr(current, "REBUILD_WAIT", 0.05)
    store = a_bank(tmp_path, {DAY: log(ALICE)})
    with an_index(store) as index:
        index.refresh(vectors=False)
        index.words.db.execute("DROP TABLE files")  # damaged, as SQLite tells it
    if when == "opening":
        for file in store.bank.index.glob("*/words.db*"):
            file.write_bytes(b"garbage" * 3000)
    with an_index(store) as index:
        with Generations(store.bank.index).building():
            report = index.refresh()
            assert texts(index) == ["Alice moved to Fly.io"] and report.semantic != READY
            assert any("another process rebuilds it; all files are read" in note for note in report.notes)
        monkeypatch.setattr(index._current, "_retry_at", 0.0)
        assert index.refresh().semantic == READY, "it is kept again when that is possible"
    assert [entry.name for entry in store.bank.index.iterdir() if entry.name.isdigit()] == [
        Generations(store.bank.index).current().name
    ]
