"""The facade end to end, with the real index and model; and what it must not load."""

from __future__ import annotations

import errno
import io
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path, PurePath
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from banks import DAY, NOON, Clock, git

from ua_memory import AutoFlush, Memory, MemoryTool, discovery
from ua_memory.config import Config
from ua_memory.errors import CannotWrite, ChangedOnDisk, NoBank, NotFound, Usage
from ua_memory.index.outside import OutsideFiles
from ua_memory.knowledge.facts import InsertResult
from ua_memory.records import Fact, Quote
from ua_memory.upkeep import audit

ROOT = Path(__file__).parent.parent
SAID = {
    "heroku": "We left Heroku for Fly.io because the price doubled.",
    "tea": "Alice drinks green tea in the morning.",
    "deploy": "Deployments run on Tuesdays after the stand-up.",
    "kyiv": "The office in Kyiv moved to Podil.",
    "bug": "The crash in the parser came from an unclosed fence.",
}


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    """One bank with a few facts for all tests that only read or add: the model is loaded once."""
    with Memory.init(tmp_path_factory.mktemp("m") / "bank", now=Clock(), door="test") as opened:
        for text in SAID.values():
            opened.insert(text, client="claude-code", session="8f2c")
        yield opened


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Memory]:
    with Memory.init(tmp_path / "bank", now=Clock(), door="test") as opened:
        yield opened


# -- opening ---------------------------------------------------------------------------------------------


def test_the_package_exports_it_lazily() -> None:
    assert Memory.__module__ == "ua_memory.memory"


def test_a_folder_that_is_no_bank(tmp_path: Path) -> None:
    for root in (tmp_path, tmp_path / "gone", str(tmp_path)):
        with pytest.raises(NoBank) as caught:
            Memory.open(root)
        assert (caught.value.hint or "").startswith("ua-memory init ")


def test_init_then_open(tmp_path: Path) -> None:
    made = Memory.init(tmp_path / "bank", timezone="Europe/Kyiv")
    assert made.init_result and made.init_result.made == ("MEMORY.md", "ua-memory.toml")
    opened = Memory.open(tmp_path / "bank")
    assert opened.init_result is None
    assert opened.config.timezone == "Europe/Kyiv"
    assert opened.config.id == made.config.id
    assert opened.store.now().tzinfo == ZoneInfo("Europe/Kyiv")


def test_settings_and_clock_can_be_handed_in(tmp_path: Path) -> None:
    Memory.init(tmp_path / "bank")
    opened = Memory.open(
        tmp_path / "bank", config=Config(search_limit=2, trail="own"), now=lambda: NOON, door="x"
    )
    done = opened.insert("said")
    assert done.fact.place.path == DAY
    assert done.fact.heading.client == "x", "a door that names no client is one"
    assert opened.history.log(limit=1)[0].trailer("Door") == "x"


@pytest.mark.parametrize("now", [NOON, NOON.replace(tzinfo=None)])
def test_a_clock_in_another_timezone_or_none_is_read_in_the_banks(tmp_path: Path, now: datetime) -> None:
    with Memory.init(tmp_path, now=lambda: now, timezone="Pacific/Kiritimati") as made:
        assert made.insert("said").fact.place.path == "memory/2026-11-22.md"
        assert made.history.log(limit=1)[0].when == NOON


# -- remembering and finding -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("why did we leave Heroku", "heroku"),
        ("what does Alice like to drink", "tea"),
        ("when do we release", "deploy"),
        ("Podil", "kyiv"),
        ("parser crash", "bug"),
    ],
)
def test_what_was_inserted_is_found(memory: Memory, query: str, wanted: str) -> None:
    answer = memory.search(query)
    assert answer.mode == "hybrid"
    assert answer.hits[0].item.text == SAID[wanted]
    assert 0 < answer.hits[0].score <= 1
    assert answer.hits[0].item.path == DAY


def test_what_was_just_written_is_found_by_the_next_search(fresh: Memory) -> None:
    """I52, I25"""
    assert fresh.search("zeppelin").hits == ()
    fresh.insert("The zeppelin landed.")
    assert fresh.search("zeppelin").hits[0].item.text == "The zeppelin landed."
    (fresh.store.bank.root / DAY).write_text("- A balloon, typed by hand.\n")
    assert fresh.search("balloon").hits[0].item.text == "A balloon, typed by hand."
    # A stale buffer: the fact it dropped comes back once the file is written again.
    fresh.insert("another")
    assert fresh.search("zeppelin").hits


def test_limits_filters_and_many_queries(memory: Memory) -> None:
    assert len(memory.search("the", limit=2).hits) <= 2
    assert memory.search("Heroku", limit=0).hits == ()
    assert memory.search("Heroku", min_score=1.0).hits == ()
    assert memory.search("Heroku", filters=memory.filters(tags=["none"])).hits == ()
    assert memory.search("Heroku", filters=memory.filters(since="2026-11-21", kinds=["fact"])).hits
    words = memory.filters(since="last week", until="2026-11-21T09:00")
    assert (words.since, words.until) == ("2026-11-09", "2026-11-21"), words
    wrong: list[Callable[[], object]] = [
        lambda: memory.search("Heroku", limit=-1), lambda: memory.list(limit=-1),
        lambda: memory.recall("Heroku", max_tokens=0), lambda: memory.recall("Heroku", limit=0),
        lambda: memory.reflect("Heroku?", max_tokens=0), lambda: memory.history.log(limit=-1),
        lambda: memory.search_many("Heroku"), lambda: memory.filters(since="soon"),
        lambda: memory.list(day="2026-99-99"),
    ]  # fmt: skip
    for call in wrong:
        with pytest.raises(Usage, match=r"at least|must be a list|'(soon|2026-99-99)' is not"):
            call()
    for given in ("We moved.", io.StringIO("We moved."), ["We moved."], [{"role": "user", "content": 5}]):
        with pytest.raises(Usage, match=r"a (stream of bytes|dict with role and content), not "):
            memory.flush(given)  # type: ignore[arg-type]
    one, two = memory.search_many(["Heroku", "Podil"])
    assert (one.hits[0].item.text, two.hits[0].item.text) == (SAID["heroku"], SAID["kyiv"])


def test_an_equal_text_is_seen_again_in_another_file(fresh: Memory) -> None:
    one = fresh.insert("said", tags=["a"])
    fresh.store.now = Clock(NOON + timedelta(days=3))
    two = fresh.insert("said", tags=["a"])
    assert two.sighting and two.fact.id == one.fact.id and two.fact.place.path == DAY
    assert not fresh.insert("said", tags=["b"]).sighting


def test_what_is_not_there_or_no_number_is_said_so(fresh: Memory) -> None:
    for name in ("nope.md", "memory/nope.md", "nope", "notes/nope.md"):
        with pytest.raises(NotFound, match="no such file in the bank"):
            fresh.get(name)
    for nan in (float("nan"), np.float64("nan"), Decimal("NaN")):
        with pytest.raises(Usage, match="min_score must be a number"):
            fresh.search("tea", min_score=nan)  # type: ignore[arg-type]
    with pytest.raises(NotFound, match="no such session"):
        fresh.list(session="8f2c")
    fresh.insert("Ann drinks tea", session="8f2c")
    assert fresh.list(session="8f2c").items and not fresh.list(session="8f2c", day="2026-01-01").items
    assert repr(fresh) == f"Memory({str(fresh.store.bank.root)!r})"


def test_many_facts_are_one_commit_and_each_is_there_once(fresh: Memory) -> None:
    known = fresh.insert("Bob drinks rum").id
    given: list[str | Fact] = [
        "Ann drinks tea",
        Fact("Ida swims", when="yesterday", tags=("sport",)),
        "Bob drinks rum.",
    ]
    many = fresh.facts.insert_many([*given, "Ann drinks tea"])
    assert [one.sighting for one in many] == [False, False, True, False] and many[2].id == known
    assert many[0] == many[3] and many[1].fact.when == "2026-11-20" and many[1].fact.tags == ("sport",)
    newest, _ = fresh.history.log(limit=2)
    assert newest.subject == f"insert: 2 facts into {DAY}" and len(newest.trailers["Facts"]) == 2
    assert all(one.sighting for one in fresh.facts.insert_many(iter(given)))
    assert fresh.history.log(limit=1)[0].id == newest.id == many[0].result.revision
    with pytest.raises(Usage, match="no text"):
        fresh.facts.insert_many(["not alone", " "])
    assert len(fresh.list().items) == 3 and fresh.facts.insert_many([]) == []


def test_a_text_that_differs_in_width_or_a_full_stop_is_known(fresh: Memory) -> None:
    one = fresh.insert("会議は12月3日")
    for text in ("会議は１２月３日", "会議は12月3日。", "会議は12月3日", "会議は１２月３日。"):
        assert fresh.insert(text).id == one.id
    assert fresh.insert("The area is 5 m²").id != fresh.insert("The area is 5 m2").id
    assert (
        fresh.insert("Did we move?").id != fresh.insert("Did we move").id == fresh.insert("Did we move.").id
    )


@pytest.mark.parametrize("code", [errno.EIO, errno.EACCES])
def test_an_equal_text_is_known_though_the_index_cannot_read_its_file(
    fresh: Memory, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """That the index knows of no equal fact does not mean that there is none where a read failed."""
    refused = OSError(code, os.strerror(code))
    one = fresh.insert("said")
    real = discovery.open_regular
    fresh.store.now = Clock(NOON + timedelta(days=3))

    def by_the_index(self: OutsideFiles, path: str) -> bytes:
        raise CannotWrite("cannot be read", where=path) from refused

    def by_anybody(path: os.PathLike[str]) -> object:
        if Path(path).name == Path(DAY).name:
            raise refused
        return real(path)

    with monkeypatch.context() as patch:
        patch.setattr(OutsideFiles, "read", by_the_index)
        two = fresh.insert("said")
        assert two.sighting and two.fact.id == one.fact.id
    with monkeypatch.context() as patch:
        patch.setattr(discovery, "open_regular", by_anybody)
        assert fresh.index.rebuild().failed
        assert not fresh.insert("said").sighting, "an unreadable file keeps no fact from being written"


def test_a_time_is_kept_in_the_zone_of_the_bank(fresh: Memory) -> None:
    fresh.store.config = replace(fresh.store.config, timezone="Pacific/Honolulu")
    for given, kept in (
        ("2026-11-27T05:00Z", "2026-11-26T19:00"),
        ("2026-11-26T19:00:30-10:00/2026-11-28", "2026-11-26T19:00:30/2026-11-28"),
        ("2026-11-27T05:00", "2026-11-27T05:00"),
        ("2026-11", "2026-11"),
    ):
        assert fresh.insert(given, when=given).fact.when == kept
    with pytest.raises(Usage, match="ends before it begins"):
        fresh.insert("back", when="2026-11-25/2026-11-21")


def test_an_equal_text_is_known_when_the_index_is_gone(fresh: Memory) -> None:
    """I50"""
    import shutil

    one = fresh.insert("said")
    fresh.close()
    shutil.rmtree(fresh.store.bank.index)
    assert fresh.insert("said").fact.id == one.fact.id


def test_a_bank_deleted_while_it_is_open_is_not_made_again(fresh: Memory) -> None:
    import shutil

    fresh.insert("said")
    shutil.rmtree(fresh.store.bank.root)
    for act in (fresh.search, fresh.insert, fresh.retain):
        with pytest.raises(NoBank, match="is gone"):
            act("said")
    assert not fresh.store.bank.root.exists()


FORKS = """
import os, shutil, sys
from ua_memory import Memory, UaMemoryError
def told(*words, memory):
    try:
        print(len(memory.search("otter").hits), *words, flush=True)
    except UaMemoryError as error:
        print(error.what, flush=True)
memory = Memory.init(sys.argv[1])
memory.insert("The otter lives in the river")
memory.search("otter")
if not os.fork():
    told(memory=memory)
    memory.close()
    sys.exit(3)
told(os.waitstatus_to_exitcode(os.wait()[1]), memory=memory)
memory.close()
if not os.fork():
    with Memory.open(sys.argv[1]) as memory:
        memory.insert("Alice owns a bicycle")
        found = memory.search("who has a bike?")
        print(found.mode, found.hits[0].snippet, *found.notes, sep="; ", flush=True)
    sys.exit(3)
memory = Memory.open(sys.argv[1])
print(os.waitstatus_to_exitcode(os.wait()[1]), *memory.search("who has a bike?").notes, flush=True)
shutil.rmtree(sys.argv[1])
told(memory=memory)
"""


def test_a_process_that_was_forked_searches_what_it_opens_itself_and_ends(tmp_path: Path) -> None:
    """As a worker of a server does, whose parent had a bank open. And one ends whose bank is gone."""
    done = subprocess.run(
        [sys.executable, "-c", FORKS, str(tmp_path / "bank")], cwd=ROOT, capture_output=True, text=True,
        timeout=60, check=True,
    )  # fmt: skip
    why = "Chroma was opened before this process was forked; compared with the embeddings kept here"
    assert done.stdout.splitlines() == [
        "the bank was opened before this process was forked", "1 3",
        f"hybrid; Alice owns a bicycle; {why}", "3", "the memory bank is gone",
    ], done.stderr  # fmt: skip


def test_a_bank_on_a_drive_that_is_gone(fresh: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Path) -> bool:
        raise OSError(errno.EHOSTDOWN, "Host is down")

    monkeypatch.setattr(Path, "is_dir", fail)
    with pytest.raises(NoBank, match="is gone"):
        fresh.search("said")


def test_every_option_of_insert(fresh: Memory) -> None:
    done = fresh.insert(
        "Alice moved the API",
        tags=["infra"],
        kind="experience",
        when="2026-11-19",
        entities=["Alice"],
        quotes=[Quote("Fly from today", "turn 41")],
        origin="tool",
        client="codex",
        session="8f2c",
        request="r1",
    )
    assert isinstance(done, InsertResult)
    fact = fresh.facts.get(str(done.fact.id))
    assert isinstance(fact, Fact) and fact == done.fact
    assert (fact.said_by, fact.heading.client, fact.heading.session) == ("tool", "codex", "8f2c")
    assert fresh.insert("anything", request="r1").repeated


# -- reading -----------------------------------------------------------------------------------------------


def test_a_string_is_no_list_of_its_letters(fresh: Memory) -> None:
    with pytest.raises(Usage, match="tags must be a list"):
        fresh.insert("Pelle has a boat", tags="boats")
    with pytest.raises(Usage, match="entities must be a list"):
        fresh.insert("Pelle has a boat", entities="Pelle")
    with pytest.raises(Usage, match="tags must be a list"):
        fresh.filters(tags="boats")
    with pytest.raises(Usage, match="tags must be a list"):
        fresh.retain("Pelle has a boat", tags="boats")
    for write in (fresh.insert, fresh.documents.item):
        with pytest.raises(Usage, match="said_in must be a list"):
            write("Pelle has a boat", said_in="project:a")
        with pytest.raises(Usage, match="unknown origin 'foo'"):
            write("Pelle has a boat", origin="foo")


def test_an_argument_of_another_type_is_refused_in_words(fresh: Memory) -> None:
    wrong: list[Callable[[], object]] = [
        *(partial(fresh.insert, text) for text in (None, b"x", 5, ["x"])),  # type: ignore[arg-type]
        lambda: fresh.insert("x", tags=None), lambda: fresh.insert("x", tags=[1]),  # type: ignore
        lambda: fresh.insert("x", when=2026), lambda: fresh.search(["x"]),  # type: ignore
        lambda: fresh.search("x", limit="5"), lambda: fresh.search("x", limit=1.5),  # type: ignore
        lambda: fresh.search("x", filters={"tags": ["a"]}), lambda: fresh.forget(None),  # type: ignore
        lambda: fresh.retire(None), lambda: fresh.get(None), lambda: fresh.history.why(None),  # type: ignore
        lambda: fresh.core.replace("X", None), lambda: Memory.open(None),  # type: ignore
        lambda: AutoFlush(fresh, threshold="5"), lambda: fresh.pages.get(1),  # type: ignore
    ]  # fmt: skip
    for call in wrong:
        with pytest.raises(Usage, match=r"^\w+ must be .*, not "):
            call()
    with pytest.raises(Usage) as refused:
        fresh.retain([{"role": "user", "content": "x"}])  # type: ignore[arg-type]
    assert refused.value.hint == "messages are for memory.flush(messages)"
    fresh.insert("We moved.")
    with pytest.raises(Usage, match="not a model: 'gpt-4'"):
        fresh.reflect("Who moved?", model="gpt-4")  # type: ignore[arg-type]
    with pytest.raises(Usage, match="not a model: 'gpt-4'"):  # not only when the context is full
        AutoFlush(fresh, "gpt-4")  # type: ignore[arg-type]
    with pytest.raises(Usage, match="keep must be at least 0"):
        AutoFlush(fresh, keep=-1)
    with pytest.raises(Usage, match="threshold must be at least 1"):
        AutoFlush(fresh, threshold=-1)
    with pytest.raises(Usage, match="a tool_use block has"):
        MemoryTool(fresh).answer(None)


def test_arguments_that_do_are_taken(fresh: Memory) -> None:
    """Iterators, numbers that are no int or float, and any path; not a class that has only the name."""

    class Somewhere:
        def __fspath__(self) -> str:
            return str(fresh.store.bank.root)

    Filters = type("Filters", (), {})
    given: list[Any] = [(tag for tag in ("a", "b")), map(str, "cd"), iter(["e"])]
    assert [fresh.insert(f"We rent boat {n}.", tags=tags).fact.tags for n, tags in enumerate(given)] == [
        ("a", "b"), ("c", "d"), ("e",),
    ]  # fmt: skip
    assert len(fresh.search_many(iter(["boat", "car"]))) == 2  # type: ignore[arg-type]
    assert fresh.search("boat", limit=np.int64(3), min_score=np.float32(0.01)).hits  # type: ignore[arg-type]
    assert fresh.search("boat", min_score=Decimal("0.01")).hits  # type: ignore[arg-type]
    for root in (Somewhere(), PurePath(fresh.store.bank.root)):
        assert Memory.open(root).store.bank.root == fresh.store.bank.root  # type: ignore[arg-type]
    for wrong in ({"limit": True}, {"filters": Filters()}):
        with pytest.raises(Usage):
            fresh.search("boat", **wrong)  # type: ignore[arg-type]


def test_dates_and_a_home_folder_are_taken_as_they_are(
    fresh: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert fresh.insert("x", when=date(2026, 11, 3)).fact.when == "2026-11-03"
    assert fresh.insert("y", when=datetime(2026, 11, 3, 9, 5)).fact.when == "2026-11-03T09:05"
    found = fresh.list(filters=fresh.filters(since=date(2026, 11, 3), until=datetime(2026, 11, 3, 9)))
    assert {item.text for item in found.items} == {"x", "y"}
    monkeypatch.setenv("HOME", str(fresh.store.bank.root.parent))
    assert Memory.open("~/bank").store.bank.root == fresh.store.bank.root


def test_a_tag_in_another_case_is_the_same(fresh: Memory) -> None:
    assert fresh.insert("x", tags=["a", "Böe", "A", "#BÖE"]).fact.tags == ("a", "Böe")


def test_get(fresh: Memory) -> None:
    one = fresh.insert("one\ntwo")
    whole = fresh.get(DAY)
    assert (whole.line, whole.end, whole.lines) == (1, 6, 6)
    assert whole.text.startswith("# 2026-11-21\n") and not whole.text.endswith("\n")
    assert fresh.get(f"{DAY}:1").text == "# 2026-11-21"
    part = fresh.get(f"{DAY}:5-99")
    assert (part.line, part.end, part.text) == (5, 6, f"- one\n  two ^{one.fact.id}")
    by_id = fresh.get(f"^{one.fact.id}")
    assert (by_id.text, by_id.id, by_id.line, by_id.end) == (part.text, one.fact.id, 5, 6)
    fresh.search("one")
    assert fresh.get(f"^{one.fact.id}") == by_id, "the same through the index"
    (fresh.store.bank.root / "memory" / "x.md").write_bytes(b"caf\xe9\r\nline\r\n")
    assert fresh.get("memory/x.md").text == "caf\ufffd\nline"
    (fresh.store.bank.root / "memory" / "empty.md").touch()
    empty = fresh.get("memory/empty.md")
    assert (empty.text, empty.lines) == ("", 0)


def test_get_by_an_id_that_moved_since_the_index_was_made(fresh: Memory) -> None:
    one = fresh.insert("one")
    fresh.search("one")
    root = fresh.store.bank.root
    (root / DAY).rename(root / "memory" / "moved.md")
    assert fresh.get(f"^{one.fact.id}").path == "memory/moved.md"


@pytest.mark.parametrize(
    ("target", "error"),
    [
        ("^zzzzzzzzzz", NotFound),
        ("memory/none.md", NotFound),
        (f"{DAY}:99", NotFound),
        (f"{DAY}:0", Usage),
        (f"{DAY}:b", Usage),
        ("../../etc/passwd", Usage),
        ("/etc/passwd", Usage),
        ("", Usage),
    ],
)
def test_get_what_is_not_there(memory: Memory, target: str, error: type[Exception]) -> None:
    """I63"""
    with pytest.raises(error):
        memory.get(target)


def test_core(fresh: Memory) -> None:
    assert fresh.core.list() == []
    fresh.core.replace("User", "Ann")
    assert fresh.core.get("user").value == "Ann"
    with pytest.raises(ChangedOnDisk):
        fresh.core.replace("User", "Bob", expect="Carl")
    assert [budget.name for budget in fresh.core.budgets()] == ["", "User"]
    assert fresh.search("Ann").hits[0].item.kind == "core"


# -- audit -------------------------------------------------------------------------------------------------


def test_audit(fresh: Memory) -> None:
    one = fresh.insert("zeppelin")
    assert fresh.history.log(DAY)[0].id == one.result.revision
    assert "+- zeppelin" in fresh.history.diff(one.result.revision)
    assert fresh.history.diff() == ""
    assert fresh.history.blame(f"^{one.fact.id}")[0].author == "ua-memory"
    assert fresh.health.verify() == []
    fresh.history.undo()
    assert fresh.search("zeppelin").hits == ()
    fresh.history.redo()
    assert fresh.search("zeppelin").hits
    assert audit.find_secrets(fresh.store) == []
    assert [check for check in fresh.health.doctor() if not check.ok] == []


def test_status_reads_only(fresh: Memory) -> None:
    fresh.insert("one")
    fresh.search("one")
    root = fresh.store.bank.root
    (root / "memory" / "notes.md").write_text("- mine ^abcdefghij\n- other ^abcdefghij\n")
    before = git(root, "rev-parse", "HEAD"), {p: p.read_bytes() for p in root.rglob("*.md")}
    found = fresh.status()
    assert (found.root, found.own, found.files) == (str(root), True, 4)
    assert found.head and found.head.id == before[0].strip()
    assert (found.edited, found.held, found.pending) == (("memory/notes.md",), (), ())
    assert found.problems == 1
    assert found.index["state"] in ("ready", "behind")
    assert (git(root, "rev-parse", "HEAD"), {p: p.read_bytes() for p in root.rglob("*.md")}) == before


def test_what_is_held_is_found_until_it_is_accepted(fresh: Memory) -> None:
    """I7"""
    for n in range(9):
        fresh.insert(f"zeppelin number {n}")
    (fresh.store.bank.root / DAY).unlink()
    assert fresh.status().held == (DAY,)
    assert len(fresh.search("zeppelin", limit=20).hits) == 9
    assert "zeppelin number 3" in fresh.get(DAY).text
    assert fresh.store.adopt(accept=True).revision
    assert fresh.status().held == ()
    assert fresh.search("zeppelin").hits == ()
    fresh.history.undo()
    assert len(fresh.search("zeppelin", limit=20).hits) == 9


def test_rebuild_gives_the_same_hits(memory: Memory) -> None:
    """I50"""
    before = [(h.item.key, h.score) for h in memory.search("price of Heroku").hits]
    report = memory.index.rebuild()
    assert report.semantic == "ready" and report.embedded == 0, "from the cache"
    assert [(h.item.key, h.score) for h in memory.search("price of Heroku").hits] == before


def test_close_lets_another_have_the_index(fresh: Memory) -> None:
    """I53"""
    fresh.insert("zeppelin")
    assert fresh.search("zeppelin").mode == "hybrid"
    other = Memory.open(fresh.store.bank.root, now=Clock())
    waiting = other.search("zeppelin")
    assert waiting.hits
    fresh.close()
    other.close()
    assert other.search("zeppelin").mode == "hybrid"
    other.close()
    fresh.close()
    assert fresh.search("zeppelin").hits, "what is used after closing opens again"


# -- what is not loaded ------------------------------------------------------------------------------------

HEAVY = ("chromadb", "onnxruntime", "tokenizers", "numpy", "anthropic", "mcp", "rich", "typer", "tiktoken")


def loaded_by(script: str, root: Path) -> set[str]:
    lines = f"import sys\nfrom pathlib import Path\nroot = Path({str(root)!r})\n{script}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", lines], cwd=ROOT, capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in done.stdout.split()} & {*HEAVY, "git"}


def test_importing_loads_nothing_heavy(tmp_path: Path) -> None:
    assert loaded_by("import ua_memory", tmp_path) == set()
    assert loaded_by("from ua_memory import Memory", tmp_path) == set()


def test_an_insert_loads_no_model(tmp_path: Path) -> None:
    """An insert is to cost what a commit costs; chromadb alone takes a second to import."""
    Memory.init(tmp_path / "bank")
    script = "from ua_memory import Memory\nwith Memory.open(root) as m: m.insert('said'); m.insert('said')"
    assert loaded_by(script, tmp_path / "bank") == {"git"}
    script = (
        "from ua_memory import Memory\nwith Memory.open(root) as m:\n"
        "    m.status(); m.history.log(); m.get('MEMORY.md')"
    )
    assert loaded_by(script, tmp_path / "bank") <= {"git", "tiktoken"}
