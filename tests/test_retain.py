"""Retain: one text in, one commit out; what has not changed costs nothing, and a person's lines stay."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from banks import DAY, NOON, new_bank
from fake_model import FakeModel
from scripted_model import Scripted, offline
from test_extract_by_model import SAID, fact, keep

from ua_memory import Memory, config
from ua_memory.errors import (
    BudgetSpent,
    ModelMisbehaved,
    ModelRefused,
    ModelUnavailable,
    NotFound,
    UaMemoryError,
    Usage,
)
from ua_memory.llm.model import Endpoint
from ua_memory.markdown import document as markdown
from ua_memory.records import Fact, SourceDocument

PARTS = [
    f"## Part {n}\n\n"
    + f"The office number {n} closes at {n + 1} o'clock. "
    + "It says no more than that. " * 90
    for n in range(6)
]
LONG = "\n\n".join(PARTS)
FILE = "memory/documents/handbook.md"


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return opened(tmp_path / "bank")


def opened(root: Path, **settings: Any) -> Memory:
    new_bank(root)
    loaded = replace(config.load(root, {}), **settings)
    return Memory.open(root, config=loaded, now=lambda: NOON)


class Reads(Scripted):
    """A model that keeps the first sentence of each chunk it is shown."""

    def ask(self, *args: Any, **more: Any) -> Any:
        shown = args[1][-1]["content"][-1]["text"]
        last = shown.split("</text>")[0].rstrip().split("\n\n")[-1]
        sentence = last.split(". ")[0].split("\n")[-1].rstrip(".") + "."
        self.answers = [[keep(fact(sentence))]]
        return super().ask(*args, **more)


def commits(memory: Memory) -> list[str]:
    return [one.trailer("Memory-Op") for one in memory.history.log(limit=None)]


def text(memory: Memory, path: str = FILE) -> str:
    return (memory.store.bank.root / path).read_text("utf-8")


# -- into the log --------------------------------------------------------------------------------------


def test_a_sentence_goes_into_the_log_of_the_day(memory: Memory) -> None:
    done = memory.retain(
        SAID, model=Scripted([keep(fact("Alice moved the API to Fly.io.", SAID))]), client="x"
    )
    (one,) = done.facts
    assert done.path == DAY and done.by == "scripted" and one.text == "Alice moved the API to Fly.io."
    assert one.when == "2026-11-17" and one.said_by == "agent" and one.heading.client == "x"
    assert memory.history.log(limit=1)[0].subject == f"retain: 1 fact into {DAY}"


CHAT = (
    "10/11/2026 09:32 - Tom: Tomorrow I pay invoice 31.\n11/11/2026 6:40 PM - Ann: The rent is 900 euros.\n"
    "31/12/2026 10:00 - Ann: The deposit is 300 euros.\n"
)


def test_a_message_goes_into_the_log_of_its_day(memory: Memory) -> None:
    done = memory.retain(CHAT)
    assert [(one.place.path, one.when, one.heading.time) for one in done.facts] == [
        ("memory/2026-11-10.md", "2026-11-11", "09:32"),
        ("memory/2026-11-11.md", None, "18:40"),
        (DAY, None, "12:00"),  # in a day to come nothing was said
    ]
    told = "User: The rent is 900 euros.\nAssistant: Is it due on the 5th?\nUser: On the 6th."
    assert {one.place.path for one in memory.retain(told).facts} == {DAY}


def test_a_text_goes_into_the_log_of_the_day_in_its_title(memory: Memory, tmp_path: Path) -> None:
    minutes = "# Minutes of 6 May 2026\n\nThe crane of Ann was put up yesterday.\n"
    (one,) = memory.retain(minutes).facts
    assert (one.place.path, one.when) == ("memory/2026-05-06.md", "2026-05-05")
    (tmp_path / "minutes.md").write_text(minutes)
    assert memory.documents.read(tmp_path / "minutes.md").at.date().isoformat() == "2026-05-06"


def test_a_message_in_a_document_has_its_day(memory: Memory) -> None:
    found = memory.documents.preview([memory.documents.item(CHAT, document_id="chat")])[0].facts
    done = memory.retain(CHAT, document_id="chat").facts
    days = ["2026-11-11", "2026-11-11", None]
    assert [one.when for one in found] == [one.when for one in done] == days


def test_a_row_of_a_document_replaces_none_above_it(memory: Memory) -> None:
    prices = "# Prices\n\n- Price of concrete C25/30: 128 euros\n- Price of concrete C30/37: 141 euros\n"
    memory.retain(prices, document_id="prices")
    hits = memory.search("price of concrete").hits
    assert hits and not any(hit.replaces for hit in hits)


def test_a_document_is_not_read_again_for_each_of_its_facts(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, paths, counts = memory.store.read, list[str](), list[int]()
    monkeypatch.setattr(memory.store, "read", lambda path: paths.append(path) or read(path))
    for most in (2, 20):
        bills = "\n".join(f"- Bill {n} of Ann is over {n * 37} euros.\n" for n in range(1, most + 1))
        done = memory.retain(bills, document_id=f"bills {most}")
        assert len(done.facts) == most
        counts.append(paths.count(done.path))
    assert counts[0] == counts[1]


def test_the_same_text_again_changes_nothing_and_asks_nobody(memory: Memory) -> None:
    memory.retain(SAID, model=Scripted([keep(fact(SAID))]))
    before = commits(memory)
    model = Scripted()
    again = memory.retain(SAID, model=model)
    assert again.repeated and not model.asked and commits(memory) == before
    memory.history.undo(memory.history.log(limit=1)[0].id)
    assert memory.retain(SAID).facts  # what was taken back may be said again


def test_the_same_text_from_two_at_once_is_kept_once(memory: Memory) -> None:
    class Slow(Scripted):
        def ask(self, *args: Any, **more: Any) -> Any:
            memory.retain(SAID)  # another process is done first
            return super().ask(*args, **more)

    done = memory.retain(SAID, model=Slow([keep(fact("Alice moved the API to Fly.io.", SAID))]))
    assert (
        done.repeated
        and done.revision == memory.history.log(limit=1)[0].id
        and commits(memory).count("retain") == 1
    )
    assert not memory.queue.texts() and "seen:" not in text(memory, DAY)


def test_a_text_with_nothing_in_it_is_not_read_twice(memory: Memory) -> None:
    model = Scripted([keep()])
    assert not memory.retain("Hello there!", model=model).facts
    assert memory.retain("Hello there!", model=model).repeated and len(model.asked) == 1


def test_a_cause_cites_the_fact_before(memory: Memory) -> None:
    model = Scripted([keep(fact("Heroku's price doubled"), fact("Alice moved our API to Fly.io", cause=1))])
    first, second = memory.retain(SAID, model=model).facts
    assert second.cause == f"Heroku's price doubled [[2026-11-21#^{first.id}]]"


def test_without_a_model_the_authors_sentences_are_theirs(memory: Memory) -> None:
    (one,) = memory.retain(SAID, origin="person", client="terminal").facts
    assert one.text == SAID and one.said_by == "person" and one.when == "2026-11-17"


def test_what_a_model_phrased_is_not_the_persons(memory: Memory) -> None:
    model = Scripted([keep(fact("Alice moved the API to Fly.io.", SAID), fact("Heroku's price doubled"))])
    phrased, verbatim = memory.retain(SAID, model=model, origin="person").facts
    assert (phrased.said_by, verbatim.said_by) == ("agent", "person")


@pytest.mark.parametrize(
    ("more", "what"),
    [
        ({"mode": "short"}, "is not a mode"),
        ({"mode": "custom"}, "needs instructions"),
        ({"append": True}, "document_id"),
    ],
)
def test_what_cannot_be_meant_is_refused(memory: Memory, more: dict[str, Any], what: str) -> None:
    with pytest.raises(Usage, match=what):
        memory.retain(SAID, **more)
    with pytest.raises(Usage, match="no text"):
        memory.retain(" \n")


def test_a_chunk_as_it_is_needs_no_model(memory: Memory) -> None:
    model = Scripted()
    done = memory.retain("# A\n\n- one\n- two\n", mode="chunks", model=model)
    assert [one.text for one in done.facts] == ["# A\n\n- one\n- two"] and not model.asked


def test_a_mission_and_instructions_are_told_to_the_model(tmp_path: Path) -> None:
    memory = opened(tmp_path / "bank", mission="the garden")
    with FakeModel({"calls": [keep()]}) as fake:
        memory.retain(SAID, model=Endpoint("k", fake.url))
        memory.retain(SAID, model=Endpoint("k", fake.url), mode="custom", instructions="Only prices.")
    assert "the garden" in json.dumps(fake.bodies[0]["system"])
    assert "Only prices." in json.dumps(fake.bodies[1]["system"])


# -- into a document -----------------------------------------------------------------------------------


def test_a_document_says_which_fact_is_from_which_chunk(memory: Memory) -> None:
    model = Reads()
    done = memory.retain(LONG, document_id="handbook", origin="import", model=model)
    assert done.path == FILE and done.chunks == len(model.asked) > 2 and len(done.facts) == done.chunks
    parsed = markdown.parse(text(memory).encode(), FILE)
    (source,) = parsed.of(SourceDocument)
    assert source.document_id == "handbook" and len(source.chunks) == done.chunks and not parsed.problems
    assert text(memory).count("<!-- chunk: ") == done.chunks
    assert {one.said_by for one in parsed.of(Fact)} == {"import"}
    assert parsed.of(Fact)[0].heading.texts[-1].startswith("Part ")
    assert memory.search("office closes").hits[0].item.path == FILE


def test_unchanged_chunks_keep_their_bytes_and_cost_nothing(memory: Memory) -> None:
    memory.retain(LONG, document_id="handbook", model=Reads())
    before, count = text(memory), len(commits(memory))
    model = Reads()
    again = memory.retain(LONG, document_id="handbook", model=model)
    assert not model.asked and text(memory) == before and len(commits(memory)) == count
    assert (again.read, again.chunks > 2) == (0, True)


def test_a_changed_chunk_is_read_again_and_the_rest_left_alone(memory: Memory) -> None:
    memory.retain(LONG, document_id="handbook", model=Reads())
    before = text(memory).splitlines()
    model = Reads()
    edited = LONG.replace("number 3 closes at 4", "number 3 closes at 9")
    done = memory.retain(edited, document_id="handbook", model=model)
    assert len(model.asked) == done.read == 1
    after = text(memory).splitlines()
    changed = [line for line in before if line not in after]
    assert len(changed) <= 3 and all("chunk" in line or "closes" in line for line in changed)
    assert [line.split()[0] for line in after if line.startswith("###")] == ["###"] * done.chunks


def test_a_chunk_that_is_gone_takes_its_facts_with_it(memory: Memory) -> None:
    first = memory.retain(LONG, document_id="handbook", model=Reads())
    done = memory.retain("\n\n".join(PARTS[:3]), document_id="handbook", model=Reads())
    assert 0 < len(done.removed) <= 4
    there = markdown.parse(text(memory).encode(), FILE).of(Fact)
    assert {one.id for one in there} < {one.id for one in first.facts} | {one.id for one in done.facts}
    assert not any("number 5" in one.text for one in there)


def test_a_fact_that_is_drawn_again_keeps_its_id(memory: Memory) -> None:
    first = memory.retain(
        "Bob likes tea. We met.", document_id="a", model=Scripted([keep(fact("Bob likes tea."))])
    )
    both = Scripted([keep(fact("Bob likes tea."), fact("We met in Porto."))])
    second = memory.retain("Bob likes tea. We met in Porto.", document_id="a", model=both)
    assert [one.text for one in second.facts] == ["We met in Porto."] and not second.removed
    assert f"^{first.facts[0].id}" in text(memory, "memory/documents/a.md")


def test_what_a_person_changed_or_added_stays_and_is_told(memory: Memory) -> None:
    memory.retain(LONG, document_id="handbook", model=Reads())
    path = memory.store.bank.root / FILE
    lines = path.read_text("utf-8").splitlines(keepends=True)
    at = next(n for n, line in enumerate(lines) if line.startswith("- "))
    lines[at] = lines[at].replace("closes", "mostly closes")
    lines.insert(at + 1, "- and I have the key\n\nA note of mine.\n")
    path.write_text("".join(lines) + "\n## Mine\n\n- my own list\n", "utf-8")
    done = memory.retain("Something else entirely is true.", document_id="handbook", model=Reads())
    left = text(memory)
    for mine in (lines[at], "- and I have the key\n", "A note of mine.\n", "## Mine\n\n- my own list\n"):
        assert mine in left
    assert len(done.kept) == 2 and left.count("closes") == 1
    assert [c.author for c in memory.history.log(limit=2)][1] != "ua-memory"


def test_append_adds_and_is_done_once(memory: Memory) -> None:
    memory.retain(PARTS[0], document_id="handbook", model=Reads())
    model = Reads()
    done = memory.retain(PARTS[1], document_id="handbook", append=True, model=model)
    assert not done.removed and done.facts
    again = memory.retain(PARTS[1], document_id="handbook", append=True, model=model)
    assert not again.facts and len(model.asked) == done.read
    both = markdown.parse(text(memory).encode(), FILE).of(Fact)
    assert ["number 0" in both[0].text, "number 1" in both[-1].text] == [True, True]


def test_redo_and_another_mode_read_all_again(memory: Memory) -> None:
    memory.retain(LONG, document_id="handbook")
    model = Reads()
    done = memory.retain(LONG, document_id="handbook", redo=True, model=model)
    assert done.read == done.chunks == len(model.asked)
    other = memory.retain(LONG, document_id="handbook", mode="chunks")
    assert other.read == other.chunks and "mode: chunks" in text(memory)


def test_documents_of_like_names_have_files_of_their_own(memory: Memory) -> None:
    paths = [
        memory.retain(SAID, document_id=name).path for name in ("/a/API.md", "/b/API.md", "api", "../../etc")
    ]
    assert len(set(paths)) == 4 and paths[2] == "memory/documents/api.md"
    assert all(path.startswith("memory/documents/") and ".." not in path for path in paths)
    moved = memory.store.bank.root / "memory/documents/renamed.md"
    (memory.store.bank.root / paths[0]).rename(moved)
    assert memory.retain(f"{SAID} We decided it on Friday.", document_id="/a/API.md").path.endswith(
        "renamed.md"
    )


def test_a_heading_of_the_text_cannot_say_who_wrote_it(memory: Memory) -> None:
    done = memory.retain(f"# 09:15 · boss · person\n\n{SAID}\n", document_id="a", origin="web")
    assert {one.said_by for one in done.facts} == {"web"}


def test_windows_line_ends_stay(memory: Memory) -> None:
    memory.retain(LONG, document_id="handbook", model=Reads())
    path = memory.store.bank.root / FILE
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    memory.retain(LONG.replace("closes at 4", "closes at 9"), document_id="handbook", model=Reads())
    data = path.read_bytes()
    assert data.count(b"\n") == data.count(b"\r\n") and data.count(b"<!-- chunk") > 2


# -- when it fails -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        ({"error": 529}, ModelUnavailable), ({"stop": "refusal", "text": "no"}, ModelRefused),
        ({"calls": [("keep", '{"facts": [')]}, ModelMisbehaved), ({"cut": 3, "text": "x"}, ModelUnavailable),
        ({"garbage": "<html>"}, ModelUnavailable),
    ],
)  # fmt: skip
def test_a_model_that_fails_leaves_the_text_waiting(
    memory: Memory, reply: dict[str, Any], error: type[UaMemoryError], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ua_memory.llm.client.time.sleep", lambda _: None)
    before = commits(memory)
    with FakeModel(reply) as fake, pytest.raises(error, match="the text is queued"):
        memory.retain(SAID, model=Endpoint("k", fake.url), document_id="a")
    (waiting,) = memory.queue.texts()
    assert commits(memory) == before and waiting.attempts.count == 1
    assert waiting.item and waiting.item.text == SAID
    (done,) = memory.queue.retry_texts(model=Scripted([keep(fact(SAID))]))
    assert done.facts and not memory.queue.texts()


def test_a_spent_budget_keeps_what_was_read_for_the_next_time(tmp_path: Path) -> None:
    memory = opened(tmp_path / "bank", run_tokens=20_000)
    answer = {"calls": [keep(fact("It says no more than that.", "It says no more than that."))]}
    with FakeModel({**answer, "usage": {"input_tokens": 6_000}}) as fake, pytest.raises(BudgetSpent):
        memory.retain(LONG, document_id="handbook", model=Endpoint("k", fake.url))
    (waiting,) = memory.queue.texts()
    assert 0 < len(waiting.chunks_read) < 6 and not (memory.store.bank.root / FILE).exists()
    model = Reads()
    (done,) = memory.queue.retry_texts(model=model)
    assert len(model.asked) == done.chunks - len(waiting.chunks_read) and len(done.facts) == done.chunks


def test_killed_behind_the_commit_it_is_not_done_twice(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("ua_memory.retain.queue.TextQueue.remove", _killed)
        memory.retain(SAID, document_id="a", append=True, model=Reads())
    model, before = Reads(), commits(memory)
    (done,) = memory.queue.retry_texts(model=model)
    assert done.repeated and not model.asked and commits(memory) == before and not memory.queue.texts()


def test_killed_before_the_commit_nothing_is_read_again(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("ua_memory.retain.retain.Retainer._write", _killed)
        memory.retain(
            SAID, model=Scripted([keep(fact("Alice moved the API to Fly.io.", SAID, when="2026-11-17"))])
        )
    model = Scripted()
    (done,) = memory.queue.retry_texts(model=model)
    assert not model.asked and done.facts[0].quotes[0].text == SAID


def _killed(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_a_text_that_keeps_failing_is_set_aside(memory: Memory) -> None:
    (key,) = memory.documents.enqueue([memory.documents.item(SAID)], model=Scripted())
    for _ in range(5):
        with pytest.raises(ModelMisbehaved):
            memory.queue.attempt(key, model=Scripted([("nothing", {})]))
    assert memory.queue.texts()[0].set_aside and memory.queue.attempt(key, model=Scripted()) is None
    (done,) = memory.queue.retry_texts([key], model=Scripted([keep(fact(SAID))]))
    assert done.facts


def test_what_waits_can_be_dropped_and_has_no_secrets(memory: Memory) -> None:
    secret = "ghp_" + "abcdefghijklmnopqrstuvwxyz0123456789"
    (key,) = memory.documents.enqueue(
        [memory.documents.item(f"{SAID} The token is {secret}.")], model=Scripted()
    )
    (file,) = memory.store.bank.pending.glob("retain-*.jsonl")
    assert secret not in file.read_text() and file.stat().st_mode & 0o777 == 0o600
    assert memory.queue.drop(key).key == key and not memory.queue.texts()
    with pytest.raises(NotFound):
        memory.queue.drop(key)


def test_a_batch_waits_whole_before_the_first_is_read(memory: Memory) -> None:
    items = [memory.documents.item(f"{SAID} {n}", document_id=f"d{n}") for n in range(3)]
    with pytest.raises(ModelUnavailable):
        memory.documents.retain(items, model=Scripted([keep(fact(SAID))], offline()))
    assert len(memory.queue.texts()) == 2
    assert len(memory.queue.retry_texts(model=Reads())) == 2


def test_a_request_is_carried_out_once(memory: Memory) -> None:
    memory.retain(SAID, request="r1", redo=True)
    assert memory.retain(SAID, request="r1", redo=True).repeated


def test_a_dry_run_says_the_price_and_writes_nothing(memory: Memory) -> None:
    before = commits(memory)
    (one,) = memory.documents.preview(
        [memory.documents.item(LONG, document_id="handbook")], model=Endpoint("k")
    )
    assert (
        one.read == one.chunks
        and one.cost
        and one.cost.requests == one.chunks
        and 0 < (one.cost.usd or 0) < 1
    )
    assert commits(memory) == before and not memory.queue.texts()


@pytest.mark.parametrize("document_id", ["", "handbook"])
def test_drawn_facts_have_the_names_that_a_person_has_settled(memory: Memory, document_id: str) -> None:
    names = memory.store.bank.root / "memory/entities.md"
    names.write_text(
        "- [[Alice Pereira]]\n  - alias: Alice\n"
        "- [[Fly.io]]\n  - not: Flyio\n- [[Salesforce]]\n  - alias: Heroku\n"
    )
    said = fact("Alice moved our API to Fly.io", entities=["alice", "Alice", "Flyio", "fly.io", "Heroku"])
    (one,) = memory.retain(SAID + " Flyio.", document_id=document_id, model=Scripted([keep(said)])).facts
    assert one.entities == ("Alice Pereira", "Flyio", "Fly.io", "Salesforce")
    (one,) = memory.retain(f"{SAID} Yes.", document_id=document_id).facts
    assert one.entities == ("Fly.io", "Salesforce") and one.text == SAID  # its words stay
