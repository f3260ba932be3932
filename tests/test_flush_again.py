"""`flush --again`: a model reads what extraction has read. And answers out of memory are nothing new."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_model import FakeModel
from hypothesis import given
from hypothesis import strategies as st
from scripted_model import DONE, Scripted, keep, offline
from terminal import Shell, new_shell
from test_flush import ID, TALK, opened, transcript

from ua_memory import Memory
from ua_memory.errors import ModelUnavailable, Usage
from ua_memory.markdown import document
from ua_memory.records import Fact, Was
from ua_memory.retain.flush import FlushedSession
from ua_memory.retain.subagent import Candidate, RecalledLines
from ua_memory.text.grounding import restates
from ua_memory.text.noise import fenced

HEROKU = TALK[0][3:]
BETTER = keep("The API left Heroku for Fly.io, whose price had doubled to $1,400 a month.", HEROKU)
NEW = keep("A deploy to Fly.io takes 4 minutes.", "the deploy takes 4 minutes", 2)


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return opened(tmp_path / "bank")


def again(memory: Memory, *answers: Any, **how: Any) -> list[FlushedSession]:
    model = Scripted(*answers)
    found, _ = memory.conversations.unread_sessions(model=model, **how)
    return list(memory.conversations.read_again(found, model=model))


def heroku(memory: Memory) -> Fact:
    found = [fact for fact in facts(memory) if "Heroku" in fact.text]
    assert len(found) == 1, found
    return found[0]


def facts(memory: Memory) -> Iterator[Fact]:
    for file in memory.store.files():
        yield from document.parse(memory.store.accepted_bytes(file.path), file.path).of(Fact)


def marks(memory: Memory) -> list[str]:
    texts = [memory.store.accepted_bytes(one.path).decode() for one in memory.store.files()]
    return [line for text in texts for line in text.split("\n")
            if line.startswith("<!-- through:")]  # fmt: skip


# -- a second reading ----------------------------------------------------------------------------------


def test_a_models_words_replace_the_extracted_sentence_in_its_place(memory: Memory) -> None:
    memory.flush(transcript())
    old, read_to, through = heroku(memory), marks(memory), memory.sessions.get(ID).through
    (done,) = again(memory, [BETTER, NEW], DONE)
    fact = heroku(memory)
    assert (
        fact.id == old.id and fact.text == BETTER[1]["content"] and fact.was == (Was(old.text, "2026-11-21"),)
    )
    assert fact.place.path == old.place.path and fact.heading.session == old.heading.session
    assert fact.quotes[0].text == HEROKU and (fact.quotes[0].source or "").startswith("[[2026-11-20-1430-")
    assert set(old.entities) <= set(fact.entities) and fact.said_by == "agent"
    assert [one.text for one in done.reworded] == [fact.text] and [one.text for one in done.facts] == [
        NEW[1]["content"]
    ]
    assert memory.sessions.get(ID).read_by == "scripted" and memory.sessions.get(ID).through == through
    assert marks(memory) == read_to and memory.history.log(limit=1)[0].trailers.get("Through") is None
    assert memory.health.verify() == [] and "why did" not in fact.text
    assert memory.search("Heroku price doubled", limit=1).hits[0].item.id == fact.id
    assert memory.history.why(f"^{fact.id}").breaks == ()


def test_what_was_read_by_a_model_is_not_read_again(memory: Memory) -> None:
    memory.flush(transcript())
    assert len(again(memory, [BETTER], DONE)) == 1 and again(memory, [BETTER], DONE) == []
    assert memory.flush(transcript(), force=True).turns == 0


def test_equal_facts_are_no_second_ones(memory: Memory) -> None:
    memory.flush(transcript())
    before = {fact.id for fact in facts(memory)}
    (done,) = again(memory, [keep(HEROKU, kind="experience")], DONE)
    assert [one.text for one in done.seen_again] == [HEROKU] and not done.facts
    assert {fact.id for fact in facts(memory)} == before and not heroku(memory).was


def test_a_fact_of_another_session_is_seen_again(memory: Memory) -> None:
    memory.flush(transcript())
    other = "11112222-ae70-4798-800f-63464d01a85d"
    memory.flush(transcript("p: hello there, we had a long day at the office", "Hm.", name=other), force=True)
    text = "We had a long day at the office."
    memory.insert(text, client="claude-code")
    said = keep(text, "we had a long day at the office")
    model = Scripted(DONE, [said], DONE)
    found, _ = memory.conversations.unread_sessions(model=model)
    done = list(
        memory.conversations.read_again(
            sorted(found, key=lambda one: one[0].session, reverse=True), model=model
        )
    )
    assert len(done) == 2 and sum(len(one.facts) + len(one.seen_again) for one in done) == 1


def test_a_line_that_a_person_edited_stays(memory: Memory) -> None:
    memory.flush(transcript())
    old = heroku(memory)
    path = memory.store.bank.root / old.place.path
    path.write_text(path.read_text().replace(f"^{old.id}", f"^{old.id}\n  - importance: 5"))
    (done,) = again(memory, [BETTER], DONE)
    stays = next(fact for fact in facts(memory) if fact.id == old.id)
    assert stays.text == old.text and not stays.was and done.reworded == () and len(done.facts) == 1


def test_the_facts_of_a_second_reading_have_the_sessions_project(memory: Memory) -> None:
    memory.flush(transcript())
    (done,) = again(memory, [NEW], DONE)
    (project,) = {memory.sessions.get(ID).project}
    tags = done.facts[0].heading.tags
    assert f"session:{ID}" in tags and (not project or f"project:{project}" in tags)


def test_a_session_that_waits_for_its_flush_is_left_to_it(memory: Memory) -> None:
    memory.conversations.enqueue(transcript(), force=True)
    assert memory.sessions.get(ID).read_by == "" and again(memory, [BETTER], DONE) == []
    memory.queue.drop(memory.queue.conversations()[0].key)
    assert len(again(memory, [BETTER], DONE)) == 1  # nobody else will read it now


def test_a_model_that_fails_changes_nothing(memory: Memory) -> None:
    memory.flush(transcript())
    before = heroku(memory)
    with pytest.raises(ModelUnavailable):
        again(memory, offline())
    assert heroku(memory) == before and memory.sessions.get(ID).read_by == "extraction"
    assert memory.queue.conversations() == []


def test_a_model_that_only_talks_leaves_it_unread(memory: Memory) -> None:
    memory.flush(transcript())
    count = len(list(facts(memory)))
    (done,) = again(memory, "What a nice conversation.")
    assert len(list(facts(memory))) == count and "they stay unread" in done.notes[0]
    assert memory.sessions.get(ID).read_by == "extraction"


def test_what_was_undone_is_read_again_only_by_force(memory: Memory) -> None:
    memory.flush(transcript())
    memory.history.undo()
    assert again(memory, [BETTER], DONE) == []
    (done,) = again(memory, [BETTER], DONE, force=True)
    assert len(done.facts) == 1


def test_an_undone_second_reading_gives_the_sentence_back(memory: Memory) -> None:
    memory.flush(transcript())
    old = heroku(memory)
    again(memory, [BETTER], DONE)
    memory.history.undo()
    assert heroku(memory) == old


def test_what_was_forgotten_is_not_read(memory: Memory) -> None:
    memory.flush(transcript())
    memory.forget(f"^{heroku(memory).id}")
    found, _ = memory.conversations.unread_sessions()
    assert not any("Heroku for Fly" in turn.text for _, each in found for turn in each.turns)


def test_without_a_model_it_says_how_to_configure_one(memory: Memory) -> None:
    memory.flush(transcript())
    found, cost = memory.conversations.unread_sessions()
    assert len(found) == 1 and cost is None
    with pytest.raises(Usage, match="no model is configured") as raised:
        list(memory.conversations.read_again(found, model=None))
    assert "ANTHROPIC_API_KEY" in (raised.value.hint or "")


@pytest.mark.parametrize("since", ["2026-11-20", "2026-11-21"])
def test_since(memory: Memory, since: str) -> None:
    memory.flush(transcript())
    assert len(memory.conversations.unread_sessions(since)[0]) == (since == "2026-11-20")


@given(st.text(alphabet="ab (-\n)2026-:", max_size=30), st.text(alphabet="ab(1", min_size=1, max_size=8))
def test_a_former_wording_is_read_back(text: str, until: str) -> None:
    from ua_memory.markdown import printer

    fact = Fact("It is so.", id="k7m2q9x4tb", was=(Was(text.strip(), until),))
    (read,) = document.parse(f"{printer.show(fact)}\n".encode(), "memory/2026-11-21.md").of(Fact)
    assert read == fact


# -- the command ---------------------------------------------------------------------------------------


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = new_shell(tmp_path)
    (shell.cwd / "talk.jsonl").write_bytes(transcript().getvalue())
    (shell.cwd / "empty.jsonl").write_bytes(transcript("p: hi", "hello").getvalue())
    return shell


def test_the_command_prices_it_first_and_then_reads(shell: Shell) -> None:
    shell.ok("flush", "talk.jsonl")
    with FakeModel({"calls": [BETTER]}, {"text": DONE}) as fake:
        key = {"ANTHROPIC_BASE_URL": fake.url, "ANTHROPIC_API_KEY": "sk-ant-test"}
        dry = shell.ok("flush", "--again", "--dry-run", **key)
        assert "1 session with 4 turns that no model has read" in dry.out and "would read about" in dry.out
        assert fake.bodies == []
        done = shell.ok("flush", "--again", "--since", "2000", **key)
        assert (
            done.out.index("would read about") < done.out.index("1 reworded") and "was: We leave" in done.out
        )
        assert "has already read every saved session" in shell.ok("flush", "--again", **key).out


def test_the_command_asks_a_person(shell: Shell) -> None:
    shell.ok("flush", "talk.jsonl")
    with FakeModel({"calls": [BETTER]}, {"text": DONE}) as fake:
        key = {"ANTHROPIC_BASE_URL": fake.url, "ANTHROPIC_API_KEY": "sk-ant-test"}
        for said, asked in ((b"n\n", 0), (b"y\n", 2)):
            shell.terminals = frozenset({"stdin"})
            done = shell("flush", "--again", stdin=said, **key)
            assert "read them? [y/N]" in done.err and len(fake.bodies) == asked


def test_the_command_without_a_model(shell: Shell) -> None:
    shell.ok("flush", "talk.jsonl")
    done = shell("flush", "--again")
    assert done.code == 2 and "no model is configured" in done.err and "ANTHROPIC_API_KEY" in done.err
    assert shell("flush", "--again", "talk.jsonl").code == 2 and shell("flush", "--since", "30d").code == 2


def test_as_json(shell: Shell) -> None:
    shell.ok("flush", "talk.jsonl")
    with FakeModel({"calls": [BETTER]}, {"text": DONE}) as fake:
        key = {"ANTHROPIC_BASE_URL": fake.url, "ANTHROPIC_API_KEY": "sk-ant-test"}
        dry = shell.ok("flush", "--again", "--dry-run", "--json", **key).json
        assert (dry["sessions"], dry["turns"]) == (1, 4) and dry["estimate"]["requests"]
        one = shell.ok("flush", "--again", "--json", **key).json["flushed"][0]
        assert one["reworded"][0]["was"] == HEROKU and one["reworded"][0]["text"] == BETTER[1]["content"]
        assert shell.ok("flush", "--again", "--json", **key).json == {"sessions": 0, "turns": 0}


# -- a flush that kept nothing, and one that was undone -----------------------------------------------


def test_a_flush_that_kept_nothing_blocks_no_later_one(memory: Memory) -> None:
    quiet = ("p: hm, the tiles look odd", "Odd how?")
    (done,) = memory.flush(transcript(*quiet), force=True).done
    assert done.facts == ()
    more = (*quiet, "p: Tariq owns the tile server now, since Friday.", "Good.")
    assert [one.text for one in memory.flush(transcript(*more), force=True).done[0].facts] == [more[2][3:]]


def test_with_a_model_force_reads_what_was_read_for_nothing(memory: Memory) -> None:
    quiet = ("p: hm, the tiles look odd", "Odd how?")
    memory.flush(transcript(*quiet), force=True)
    said = keep("The tiles look odd.", "the tiles look odd")
    found = memory.flush(transcript(*quiet), force=True, model=Scripted([said], DONE))
    assert [one.text for one in found.done[0].facts] == ["The tiles look odd."]
    assert memory.flush(transcript(*quiet), force=True, model=Scripted([said], DONE)).turns == 0


def test_force_reads_a_transcript_again_after_an_undo(shell: Shell) -> None:
    first = shell.ok("flush", "talk.jsonl", "--json").json["flushed"][0]["facts"]
    shell.ok("undo")
    (shell.cwd / "later.jsonl").write_bytes(transcript(context=190_000).getvalue())
    assert "a flush of this session was undone; --force" in shell.ok("flush", "later.jsonl").err
    back = shell.ok("flush", "talk.jsonl", "--force", "--json").json["flushed"][0]["facts"]
    assert [one["text"] for one in back] == [one["text"] for one in first]
    assert shell.ok("flush", "talk.jsonl", "--force", "--json").json["flushed"] == []


# -- echoes --------------------------------------------------------------------------------------------

FACT = "We leave Heroku for Fly.io because the price doubled to $1,400 a month."
ECHO = "Because the price doubled to $1,400 a month, we leave Heroku for Fly.io."


def with_recall(block: str, *said: str, hook: str = "context") -> io.BytesIO:
    """A transcript in which a hook gave the block along with the first prompt."""
    lines = transcript(*said).getvalue().splitlines(keepends=True)
    answer = json.dumps({"hookSpecificOutput": {"additionalContext": block}})
    given_by: dict[str, Any] = {
        "context": {"type": "hook_additional_context", "content": [block]},
        "output": {"type": "hook_success", "stdout": answer, "content": ""},
    }
    first = json.loads(lines[0])
    row = {"type": "attachment", "uuid": "hook-1", "parentUuid": first["uuid"], "attachment": given_by[hook]}
    row |= {key: first[key] for key in ("sessionId", "timestamp", "cwd", "version")}
    return io.BytesIO(b"".join([lines[0], json.dumps(row).encode() + b"\n", *lines[1:]]))


def recalled_block(memory: Memory) -> str:
    return memory.recall("why did we leave Heroku").block


@pytest.mark.parametrize("hook", ["context", "output"])
@pytest.mark.parametrize("answer", [ECHO, FACT, f"{ECHO} {FACT}"])
def test_an_answer_out_of_memory_is_nothing_new(memory: Memory, answer: str, hook: str) -> None:
    memory.insert(FACT, origin="person")
    block = recalled_block(memory)
    assert FACT in block
    said = ("p: why did we leave the old host?", answer, "p: I see, thanks", "Good.")
    plain = opened(memory.store.bank.root.parent / "plain")
    assert plain.flush(transcript(*said), force=True).done[0].facts, "without the block it is news"
    (done,) = memory.flush(with_recall(block, *said, hook=hook), force=True).done
    assert done.facts == () and done.seen_again == ()


def test_nor_for_a_model(memory: Memory) -> None:
    memory.insert(FACT, origin="person")
    model = Scripted(
        [keep("Heroku was left for Fly.io, since its price doubled to $1,400 a month.", ECHO, 2)], DONE
    )
    stream = with_recall(recalled_block(memory), "p: why did we leave the old host?", ECHO)
    (done,) = memory.flush(stream, force=True, model=model).done
    assert done.facts == () and "had it from memory" in model.told[0]


def test_what_is_new_in_it_is_kept(memory: Memory) -> None:
    memory.insert(FACT, origin="person")
    more = "Alice decided yesterday that the move to Hetzner happens in March instead of Fly.io."
    stream = with_recall(recalled_block(memory), "p: and now?", more)
    assert [one.text for one in memory.flush(stream, force=True).done[0].facts] == [more]


def test_a_person_who_says_it_again_is_a_sighting(memory: Memory) -> None:
    known = memory.insert(FACT, origin="person").fact
    stream = with_recall(recalled_block(memory), f"p: {ECHO}", "Right.")
    (done,) = memory.flush(stream, force=True).done
    assert done.facts == () and [one.id for one in done.seen_again] == [known.id]
    (now,) = [fact for fact in facts(memory) if fact.id == known.id]
    assert now.text == FACT and len(now.seen) == 1


def test_what_a_session_heard_waits_with_its_turns(memory: Memory) -> None:
    memory.insert(FACT, origin="person")
    stream = with_recall(recalled_block(memory), "p: why did we leave the old host?", ECHO)
    memory.conversations.enqueue(stream, force=True)
    (waiting,) = memory.queue.conversations()
    assert any(FACT in line for line in waiting.recalled)
    assert memory.flush().done[0].facts == ()


def test_what_is_forgotten_does_not_wait(memory: Memory) -> None:
    known = memory.insert(FACT, origin="person").fact
    stream = with_recall(recalled_block(memory), "p: why did we leave the old host?", "Hm.")
    memory.conversations.enqueue(stream, force=True)
    memory.forget(f"^{known.id}")
    assert not any("1,400" in line for line in memory.queue.conversations()[0].recalled)


def candidate(text: str, **more: Any) -> Candidate:
    made = Candidate(text, "world", "assistant", None, (), (), text, "e1", None, 1.0, "")
    return replace(made, **more)


@pytest.mark.parametrize(
    ("text", "row", "same"),
    [
        ("Deploys take 4 minutes on Fly.io.", "On Fly.io a deploy takes 4 minutes.", True),
        ("Deploys take 5 minutes on Fly.io.", "On Fly.io a deploy takes 4 minutes.", False),
        ("Mara signs the contracts.", "Mara never signs the contracts.", False),
        ("Mara signs the contracts above 900 euros.", "Mara signs every contract above 900 euros.", True),
        ("Ines signs the contracts above 900 euros.", "Mara signs every contract above 900 euros.", False),
        ("It does.", "It does.", False),
    ],
)
def test_what_repeats_what(text: str, row: str, same: bool) -> None:
    assert restates(text, row) == same
    line = f"- 2026-11-20: {row} [memory/2026-11-20.md#L12-L15 ^k7m2q9x4tb; 2 alike]"
    assert RecalledLines([line]).is_repetition(candidate(text)) == same
    block = next(iter(fenced("search", f"head\n{line}").split("\n")[2:3]))
    assert RecalledLines([block]).restated_fact(candidate(text, who="person")) in (
        None, ("memory/2026-11-20.md", "k7m2q9x4tb"),
    )  # fmt: skip


def test_what_was_done_is_no_echo_of_what_was_planned() -> None:
    lines = RecalledLines(["- We move the API to Fly.io. (2026-11-20)"])
    assert not lines.is_repetition(candidate("I moved the API to Fly.io.", kind="experience"))
