"""docs/limits.md against the code, and each bound at its edge where no other test has it: the most that
works, and what happens to one more."""

from __future__ import annotations

import functools
import importlib
import io
import re
import threading
from pathlib import Path
from typing import Any

import pytest
from terminal import Shell, new_shell

import ua_memory
from ua_memory import config
from ua_memory.errors import Malformed, TooLarge, Usage
from ua_memory.memory import Memory

HERE = Path(__file__).parent
PAGE = (HERE / "../docs/limits.md").read_text("utf-8")
ENTRIES = dict(re.findall(r"^- \*\*(.+?)\*\*: (.+)$", PAGE, re.M))
"""Of the page: what is bounded, and the rest of its line."""
UNITS = {"KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}


def rows(file: str) -> list[list[str]]:
    """The rows of a table of two columns in a file of `tests/data`, without its head."""
    text = (HERE / "data" / file).read_text("utf-8")
    return [list(row) for row in re.findall(r"^\| (.+?) \| (.+) \|$", text, re.M)[1:]]


SETTINGS = {one.key: one.default for one in config.settings()}
NUMBER = r"(\d[\d,.]*)(?: (KB|MB|GB))?"
BOUND = ("MOST", "MAX", "LONGEST", "LARGEST", "DEEPEST")
"""How the name of a bound begins."""
NAMED = [
    (number, unit, name)
    for told in (*ENTRIES.values(), *(bound for _, bound in rows("internal_bounds.md")))
    for number, unit, name in re.findall(NUMBER + r"(?: [a-z]+)? `([a-z_A-Z.]+)`", told)
]


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return new_shell(tmp_path)


@pytest.fixture
def memory(shell: Shell) -> Memory:
    return Memory.open(shell.cwd, now=lambda: shell.time)


# -- the page ----------------------------------------------------------------------------------------------


def value(name: str) -> Any:
    """What a name of the page is in the code: a setting's default, a constant, or a key of one."""
    if name in SETTINGS:
        return SETTINGS[name]
    parts = name.split(".")
    for top in ("ua_memory.", ""):
        for size in range(len(parts) - 1, 0, -1):
            try:
                module = importlib.import_module(top + ".".join(parts[:size]))
            except ModuleNotFoundError:
                continue
            try:
                return functools.reduce(
                    lambda found, part: found[part] if isinstance(found, dict) else getattr(found, part),
                    parts[size:],
                    module,
                )
            except AttributeError:  # the package `mcp` is ours and somebody else's
                continue
    raise AssertionError(f"{name} is nowhere")


@pytest.mark.parametrize(("number", "unit", "name"), NAMED, ids=[name for *_, name in NAMED])
def test_a_number_is_the_one_of_the_code(number: str, unit: str, name: str) -> None:
    assert float(number.replace(",", "")) * UNITS.get(unit, 1) == value(name)


def test_each_entry_has_its_tests() -> None:
    """`bound_tests.md` has a row for each entry of the page, by the first bound that it names."""
    files = {file.name: file for file in HERE.rglob("test_*.py")}

    @functools.cache
    def there(file: str) -> set[str]:
        return set(re.findall(r"^def (test_\w+)", files[file].read_text("utf-8"), re.M))

    entries = PAGE.partition("## Without a bound")[0].count("\n- ")
    first = [next(name for *_, name in NAMED if f"`{name}`" in told) for told in ENTRIES.values()]
    tests = {name.strip("`"): test for name, test in rows("bound_tests.md")}
    assert len(first) == entries > 50 and len(NAMED) > 90
    assert set(first) == set(tests)
    for name, test in tests.items():
        named = re.findall(r"`(test_\w+\.py)::(test_\w+)`", test)
        assert named, f"{name} has no test"
        assert not [f"{file}::{each}" for file, each in named if each not in there(file)]


def test_every_bound_of_the_code_is_on_the_page() -> None:
    told, found = {name for *_, name in NAMED}, set()
    root = Path(ua_memory.__file__).parent
    for file in root.rglob("*.py"):
        module = ".".join(file.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
        for line in file.read_text("utf-8").splitlines():
            if assigned := re.match(r"([A-Z][A-Z_, ]*)(?:: [\w\[\], ]+)? = (?=.*\d)", line):
                found |= {f"{module}.{name}" for name in assigned[1].split(", ") if name.startswith(BOUND)}
    assert len(found) > 60
    assert not {name for name in found if not any(f"{one}.".startswith(f"{name}.") for one in told)}


# -- what is read and written --------------------------------------------------------------------------------


def test_a_huge_file_stays_and_is_named(
    shell: Shell, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("upkeep.audit", "store.files", "store.scan"):
        monkeypatch.setattr(f"ua_memory.{module}.MAX_FILE", 1000)
    exact, more = "- Heroku was left\n" * 55 + "- it is so\n", "- Fly is what we use\n" * 100
    shell.write("memory/2026-11-01.md", exact[:1000])
    shell.write("memory/2026-11-02.md", more)
    refreshed = memory.refresh(vectors=False)
    memory.store.adopt()
    assert [problem.path for problem in refreshed.failed] == ["memory/2026-11-02.md"]
    assert memory.search_many(["Heroku"], by_words=True)[0].hits
    assert not memory.search_many(["Fly"], by_words=True)[0].hits
    assert memory.insert("something else").fact.id and memory.status().problems == 1
    assert "it is not read, committed or searched" in shell("verify").out + shell("verify").err
    assert (shell.cwd / "memory/2026-11-02.md").read_text() == more
    assert "memory/2026-11-01.md" in memory.store.history.blobs()
    with pytest.raises(TooLarge):
        memory.store.read("memory/2026-11-02.md")


def test_of_a_very_large_file_the_beginning_is_searched(
    shell: Shell, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ua_memory.store.files.MAX_INDEXED", 100)
    shell.write("memory/2026-11-01.md", "- Heroku was the first\n" + "- Fly is next\n" * 5)
    shell.write("memory/2026-11-02.md", "- Heroku again here\n- and Fly too\n" * 3 + "- Azure\n")
    whole, cut = memory.refresh(vectors=False), memory.health.verify()
    assert [(p.path, p.line) for p in whole.failed] == [("memory/2026-11-02.md", 6)]
    assert [(p.path, p.line) for p in cut] == [("memory/2026-11-02.md", 6)]
    assert memory.search_many(["Heroku again"], by_words=True)[0].hits
    assert not memory.search_many(["Azure"], by_words=True)[0].hits
    assert not memory.refresh(vectors=False).failed  # it is not read again until it changes
    memory.store.adopt()
    assert b"Azure" in memory.store.history.blob(memory.store.history.blobs()["memory/2026-11-02.md"])


def test_front_matter() -> None:
    from ua_memory.markdown.blocks import LONGEST
    from ua_memory.markdown.document import parse

    for more, problems in ((0, 0), (1, 1)):
        text = f"---\nname: {'x' * (LONGEST - 6 + more)}\n---\n\nThe body.\n"
        parsed = parse(text.encode(), "memory/pages/a.md")
        long = [problem for problem in parsed.problems if "longer than" in problem.message]
        assert len(long) == problems and bool(parsed.front.get("name")) is not bool(problems)
        assert any("The body." in str(record) for record in parsed.records)


def test_one_fact() -> None:
    from ua_memory.knowledge.facts import MAX_TEXT, _check_fact
    from ua_memory.records import Fact

    assert _check_fact(Fact("x" * (MAX_TEXT - 4), tags=("ab",), where="in")).tags == ("ab",)
    with pytest.raises(TooLarge):
        _check_fact(Fact("x" * (MAX_TEXT - 4), tags=("ab",), where="inn"))


def test_passages() -> None:
    from ua_memory.markdown.blocks import LIMIT
    from ua_memory.markdown.document import parse
    from ua_memory.records import Passage

    text = "A line of what was written down.\n" * 200
    passages = parse(text.encode(), "memory/2026-11-01.md").of(Passage)
    assert len(passages) > 1 and max(len(passage.text) for passage in passages) <= LIMIT
    assert "\n".join(passage.text for passage in passages) == text.strip()


def test_paths() -> None:
    from ua_memory.paths import LONGEST_NAME, LONGEST_PATH, is_memory_file

    name = "x" * (LONGEST_NAME - 3) + ".md"
    assert is_memory_file(f"memory/{name}") and not is_memory_file(f"memory/x{name}")
    deep = "memory/" + "d/" * ((LONGEST_PATH - 11) // 2) + "xx.md"
    assert len(deep) == LONGEST_PATH
    assert is_memory_file(deep) and not is_memory_file(deep.replace("xx", "xxx"))


def test_names_and_rules(memory: Memory) -> None:
    from ua_memory.knowledge import core, opinions, pages
    from ua_memory.reflect import reflection as directives
    from ua_memory.store import commit as flight

    for most, refuses in (
        (core.LONGEST_NAME, core._new_block),
        (pages.LONGEST["id"], memory.pages._path),
        (pages.LONGEST["name"], lambda text: pages.check_line(text, "name")),
        (pages.LONGEST["source_query"], lambda text: pages.check_line(text, "source_query")),
        (directives.LONGEST_DIRECTIVE, directives._check_rule),
        (opinions.LONGEST, opinions._check_text),
        (flight.MAX_REQUEST, flight.request_id),
    ):
        refuses("x" * most)
        with pytest.raises(Usage):
            refuses("x" * (most + 1))


def test_there_are_only_so_many_directives(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ua_memory.reflect.reflection.MOST_DIRECTIVES", 1)
    memory.directives.add("Never name a customer.")
    with pytest.raises(Usage):
        memory.directives.add("Always say when.")


def test_a_commit_names_so_many_facts() -> None:
    from ua_memory.store.commit import NAMED_FACTS, fact_trailers

    assert fact_trailers(["^a"] * NAMED_FACTS) == ["^a"] * NAMED_FACTS and fact_trailers(
        ["^a"] * (NAMED_FACTS + 1)
    ) == [str(NAMED_FACTS + 1)]


def test_json_in_json() -> None:
    from ua_memory.clients.edit import DEEPEST, EditError, JsonScanner

    assert JsonScanner("[" * DEEPEST + "]" * DEEPEST).parse()
    with pytest.raises(EditError):
        JsonScanner("[" * (DEEPEST + 1) + "]" * (DEEPEST + 1)).parse()


# -- what is asked and brought in ----------------------------------------------------------------------------


def test_a_query() -> None:
    from ua_memory.text.noise import read_query

    longest = SETTINGS["recall.longest_query"]
    assert read_query("x" * longest).text and read_query("x" * (longest + 1)).long


def test_standard_input(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ua_memory.caller.MOST", 20)
    assert shell("insert", "-", stdin="x" * 20).code == 0
    for verb in (["insert", "-"], ["retain", "-"], ["retain", "--batch"], ["search", "--batch"]):
        assert shell(*verb, stdin="x" * 21).code == TooLarge.exit_code


def test_what_fits_into_a_message() -> None:
    """The most of standard input that is sent along, each byte six of JSON, and the rest of the command."""
    from ua_memory.daemon.connect import LARGEST_MESSAGE, MOST_INPUT

    assert 6 * MOST_INPUT + (1 << 20) < LARGEST_MESSAGE


def test_a_file_to_ingest(memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ua_memory.retain import documents as files

    monkeypatch.setattr(files, "MOST_BYTES", 10)
    (tmp_path / "a.md").write_text("x" * 10)
    assert files.read(memory.store, tmp_path / "a.md")[0] == "x" * 10
    (tmp_path / "b.md").write_text("x" * 11)
    with pytest.raises(TooLarge):
        files.read(memory.store, tmp_path / "b.md")


def test_a_document(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    from ua_memory.retain import documents
    from ua_memory.retain import extract_by_model as chunks
    from ua_memory.retain.queue import TextItem as Item

    pieces = chunks.split_text(" ".join(f"Thing {number} was said." for number in range(1000)))
    assert len(pieces) > 3 and max(len(piece.text) for piece in pieces) <= chunks.LONGEST_CHUNK
    monkeypatch.setattr(documents, "MOST_CHUNKS", len(pieces))
    known, item = (
        documents.KnownDocument("memory/documents/a.md", exists=False),
        Item("", memory.store.now(), "a"),
    )
    with pytest.raises(TooLarge), memory.store.revision("x", door="test") as draft:
        documents.put(
            memory.store, draft, known, item, "## 09:00 · cli", (*pieces, chunks.Chunk("y", "y")), {}
        )
    with memory.store.revision("x", door="test") as draft:
        assert documents.put(memory.store, draft, known, item, "## 09:00 · cli", pieces, {})


def test_other_folders(shell: Shell, memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    for name in ("a.md", "b.md"):
        shell.write(f"../notes/{name}", f"- The kiln of {name} is hot\n")
    memory.store.config = replace(memory.store.config, extra_paths=("../notes",))
    for most, told in ((2, 0), (1, 1)):
        monkeypatch.setattr("ua_memory.index.outside.MOST_OUTSIDE", most)
        with Memory(memory.store) as fresh:
            assert len(fresh.refresh(vectors=False).notes) == told
            assert len(fresh.search_many(["kiln"], by_words=True)[0].hits) == most


def test_a_file_of_an_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ua_memory.upkeep import import_sources as imported

    monkeypatch.setattr(imported, "LARGEST", 10)
    (tmp_path / "a.md").write_text("x" * 10)
    (tmp_path / "b.md").write_text("x" * 11)
    files, unread = imported.files_of(tmp_path, tmp_path / "bank", "markdown")
    assert list(files) == ["a.md"] and [line.partition(":")[0] for line in unread] == ["b.md"]


@pytest.mark.parametrize(
    ("name", "error"), [("MOST_FILES", Malformed), ("MOST_MANIFEST", Malformed), ("MOST_BUNDLE", TooLarge)]
)
def test_an_archive(
    name: str, error: type[Exception], shell: Shell, memory: Memory, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    from ua_memory.upkeep import archive

    done = archive.export(memory.store, tmp_path / "bank.tar")
    monkeypatch.setattr(archive, name, done.files + 1 if name == "MOST_FILES" else 10_000)
    archive.restore(memory.store, tmp_path / "bank.tar", door="test", index=lambda: memory.index, trial=True)
    monkeypatch.setattr(archive, name, done.files if name == "MOST_FILES" else 10)
    with pytest.raises(error):
        archive.restore(
            memory.store, tmp_path / "bank.tar", door="test", index=lambda: memory.index, trial=True
        )


def test_a_header_of_an_archive() -> None:
    """A longer name stands in a header of its own: `LENGTH path=NAME` and a newline."""
    import io
    import tarfile

    from ua_memory.upkeep import archive as tarred

    def archive(more: int) -> io.BytesIO:
        name = "n" * (tarred.MOST_HEADER - len(f"{tarred.MOST_HEADER} path=\n") + more)
        raw = tarfile.TarInfo(name).tobuf(tarfile.PAX_FORMAT)
        return io.BytesIO(raw + bytes(1024))

    tarred.check_tar(archive(0), 1)
    with pytest.raises(tarred.InvalidArchive):
        tarred.check_tar(archive(1), 1)


def test_a_schema() -> None:
    import json

    from ua_memory.reflect.reflection import LONGEST_SCHEMA, parse_schema

    schema = {"type": "object", "description": ""}
    schema["description"] = "x" * (LONGEST_SCHEMA - len(json.dumps(schema)))
    assert parse_schema(schema)
    with pytest.raises(Usage):
        parse_schema({**schema, "description": f"x{schema['description']}"})


def test_an_event(monkeypatch: pytest.MonkeyPatch) -> None:
    from ua_memory.hooks import events as clients

    event = b'{"hook_event_name": "SessionEnd", "session_id": "a", "cwd": "/", "reason": "exit"}'
    monkeypatch.setattr(clients, "LARGEST_EVENT", len(event))
    assert clients.parse_event(event, "claude-code")
    with pytest.raises(ValueError, match="larger"):
        clients.parse_event(event + b" ", "claude-code")


def test_a_turn_of_prose() -> None:
    from ua_memory.clients.messages import LONGEST_TURN
    from ua_memory.clients.transcripts import read

    line = "Something was said about it here.\n"
    turns = list(read(io.BytesIO(line.encode() * (LONGEST_TURN // len(line) * 3)), client="text"))
    assert len(turns) == 3 and max(len(turn.text) for turn in turns) <= LONGEST_TURN + len(line)


def test_a_long_turn_is_read_at_both_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    from ua_memory.retain import extract as sentences

    text = "The first is here.\n\n" + "This is between.\n\n" * 20 + "The last is here."
    for most, middle in ((len(text), True), (20, False)):
        monkeypatch.setattr(sentences, "LONGEST_TURN_END", most)
        said = {one.quote for one in sentences.sentences(text)}
        assert {"The first is here.", "The last is here."} <= said
        assert ("This is between." in said) is middle


def test_the_end_of_a_live_transcript(monkeypatch: pytest.MonkeyPatch) -> None:
    from ua_memory.retain import conversations

    stream = io.BytesIO(b"x" * 100)
    spot = conversations.ReadPosition(offset=90, checksum=conversations._checksum(stream, 90), lines=1)
    for most, alone in ((10, b"x" * 10), (9, None)):
        monkeypatch.setattr(conversations, "MOST_TAIL", most)
        assert conversations._read_tail(stream, spot, 100) == alone


def test_a_line_that_is_pruned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from test_prune_sessions import INJECTED

    from ua_memory.cli import install as prune

    (tmp_path / "a.jsonl").write_bytes(INJECTED[0])
    for most, lines in ((len(INJECTED[0]), 1), (len(INJECTED[0]) - 1, 0)):
        monkeypatch.setattr(prune, "LONGEST_LINE", most)
        assert len(prune._recalled_lines(tmp_path / "a.jsonl")) == lines


def test_a_file_in_a_reply(shell: Shell, memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    import json

    from ua_memory.mcp import tools as openclaw

    shell.write("memory/2026-11-01.md", "- one\n- two\n")
    for most, lines in ((12, 2), (11, 1)):
        monkeypatch.setattr(openclaw, "REPLY_CHARACTERS", most)
        told = json.loads(openclaw._openclaw_get(memory, {"path": "memory/2026-11-01.md"}, None))
        assert (told["lines"], "nextFrom" in told) == (lines, lines == 1)


# -- daemon and servers, time, logs --------------------------------------------------------------------------


def test_one_caller_too_many() -> None:
    import json
    import socket
    from types import SimpleNamespace

    from ua_memory.daemon import connect
    from ua_memory.daemon.server import CALLER_LIMIT, Service

    here, there = socket.socketpair()
    full = threading.Semaphore(CALLER_LIMIT)
    assert all(full.acquire(blocking=False) for _ in range(CALLER_LIMIT))
    listener = SimpleNamespace(accept=lambda: (here, None))
    Service._accept(SimpleNamespace(_callers=full, log=SimpleNamespace(say=str)), listener)  # type: ignore[arg-type]
    assert json.loads(there.recv(1000))["error"]["code"] == connect.BUSY
    there.close()


def test_one_job_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    from ua_memory.daemon import worker
    from ua_memory.daemon.connect import BUSY
    from ua_memory.daemon.connect import RequestRefused as Refused

    monkeypatch.setattr(worker, "QUEUE_SIZE", 1)
    free, begun = threading.Event(), threading.Event()
    at_work = worker.Worker(lambda _: None)
    asking = [
        threading.Thread(target=at_work.submit, args=(worker.Job(work), lambda _: None))
        for work in (lambda _: (begun.set(), free.wait(20)), lambda _: None)
    ]
    asking[0].start()
    assert begun.wait(5)
    asking[1].start()
    while not at_work.has_jobs:
        pass
    with pytest.raises(Refused) as refused:
        at_work.submit(worker.Job(lambda _: None), lambda _: None)
    assert refused.value.code == BUSY
    free.set()
    for each in asking:
        each.join(5)
    assert at_work.stop(5)


def test_calls_that_take_long(monkeypatch: pytest.MonkeyPatch) -> None:
    import json

    from ua_memory.mcp import relay

    done: list[str] = []
    at = relay.Relay.__new__(relay.Relay)
    monkeypatch.setattr(relay, "MOST_THREADS", 1)
    monkeypatch.setattr(at, "_running", {}, raising=False)
    monkeypatch.setattr(
        at, "_start_thread", lambda number, *_: (done.append("later"), at._running.update({number: 0}))
    )
    monkeypatch.setattr(at, "result", lambda *_: done.append("at once"))
    monkeypatch.setattr(at, "_send", lambda *_: None)
    for number in (1, 2):
        call = {"name": "reflect", "arguments": {"question": "why"}}
        at.handle_line(
            json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": call}).encode()
        )
    assert done == ["later", "at once"]


def test_a_request_over_http() -> None:
    from mcp.server.transport_security import DEFAULT_MAX_REQUEST_BODY_SIZE
    from test_mcp_http import TOKEN, answered

    known = {"authorization": f"Bearer {TOKEN}"}
    assert answered([known | {"content-length": str(DEFAULT_MAX_REQUEST_BODY_SIZE + 1)}, known]) == [413, 200]


def test_git_over_a_network(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    from ua_memory.git import remotes

    asked: list[object] = []
    monkeypatch.setattr(remotes._IsolatedGit, "ask", lambda *_, **more: asked.append(more) or (b"", ""))
    memory.store.history._run_remote("fetch")
    assert asked == [{"ok": (0,), "kill_after_timeout": remotes.TIMEOUT}]


def test_tries() -> None:
    from datetime import UTC, datetime

    from ua_memory.retain import queue as tries

    now = datetime(2026, 11, 21, tzinfo=UTC)
    waits = [(tries.retry_time(now, count, 1) - now).total_seconds() for count in (1, 2, 6, 7, 1000)]
    assert waits == [
        tries.FIRST_RETRY_SECONDS,
        2 * tries.FIRST_RETRY_SECONDS,
        32 * tries.FIRST_RETRY_SECONDS,
        tries.MOST_RETRY_SECONDS,
        tries.MOST_RETRY_SECONDS,
    ]
    failed = [{"failed": "it", "own": True}] * tries.SET_ASIDE_AFTER
    assert tries.read_attempts(failed).set_aside and not tries.read_attempts(failed[1:]).set_aside


def test_the_log_of_the_background(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    from types import SimpleNamespace

    from ua_memory.daemon import spawn as detached

    monkeypatch.setattr("subprocess.Popen", lambda *_, **__: SimpleNamespace(pid=1))
    folder = memory.store.bank.local
    folder.mkdir(parents=True, exist_ok=True)
    for size, old in ((detached.LARGEST_LOG - 100, 0), (detached.LARGEST_LOG, 1)):
        (folder / detached.FLUSH_LOG).write_bytes(b"x" * size)
        detached.start_detached(memory.store.bank, {})
        assert len(list(folder.glob("flush.log.1"))) == old


def test_events_that_were_heard(tmp_path: Path) -> None:
    from ua_memory.cli import fast as once

    file = tmp_path / "heard"
    for size, kept in ((once.MOST_EVENT_BYTES, True), (once.MOST_EVENT_BYTES + 1, False)):
        file.write_bytes(b"x" * size)
        assert not once._is_recorded(str(file), "an event", 0)
        assert (file.stat().st_size > once.MOST_EVENT_BYTES) is kept


def test_metadata_and_tags(memory: Memory) -> None:
    from ua_memory.mcp import tools
    from ua_memory.mcp.tools import MOST_TAGS
    from ua_memory.retain.retain import LONGEST_VALUE

    assert memory.documents.item("x", metadata={"ticket": "y" * LONGEST_VALUE}).metadata
    with pytest.raises(Usage, match="cannot be metadata"):
        memory.documents.item("x", metadata={"ticket": "y" * (LONGEST_VALUE + 1)})
    memory.insert("The gate is green.", tags=[f"t{n}" for n in range(MOST_TAGS + 2)])
    shown = tools.call_tool(memory, "list_tags", {}, tools.Caller())[0]
    assert shown.count("\n- ") == MOST_TAGS and "… and 2 more" in shown
