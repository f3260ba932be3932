"""AutoFlush: a program's messages go in full and come out short, and what was said is in the bank."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from banks import NOON, new_bank
from hypothesis import given
from hypothesis import strategies as st
from scripted_model import DONE, Scripted, keep, offline

from ua_memory import AutoFlush, Memory, config
from ua_memory.errors import CannotWrite, Usage
from ua_memory.retain import autoflush as handover
from ua_memory.retain.autoflush import FlushTarget
from ua_memory.retain.queue import TurnQueue as Queue
from ua_memory.text.noise import RECALL_OPEN

ROOT = Path(__file__).parent.parent
FILLER = "some words that fill the window of the agent "


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def says(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"type": "text", "text": text}]}


def calls(name: str) -> list[dict[str, Any]]:
    return [
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": name, "name": "run", "input": {"cmd": "ls"}}],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": name, "content": FILLER * 5}]},
    ]


TALK = [
    user("We leave Heroku for Fly.io from today, because the price doubled to $1,400 a month."),
    says("I moved the API to Fly.io. " + FILLER * 20),
    *calls("a"),
    *calls("b"),
    says("The deploy takes 4 minutes. " + FILLER * 20),
    user("Next, write the invoices."),
    *calls("c"),
]


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    new_bank(tmp_path / "bank")
    return Memory.open(tmp_path / "bank", now=lambda: NOON)


def valid(messages: Sequence[Any]) -> bool:
    """Whether the API would take it: a person first, in turn, each tool result right behind its call."""
    roles = [message["role"] for message in messages]
    if roles[0] != "user" or any(a == b for a, b in pairwise(roles)):
        return False
    for n, message in enumerate(messages):
        blocks = handover.blocks(message)
        results = {b["tool_use_id"] for b in blocks if b["type"] == "tool_result"}
        before = (
            {b["id"] for b in handover.blocks(messages[n - 1]) if b["type"] == "tool_use"} if n else set()
        )
        if results != before or (results and any(b["type"] == "text" for b in blocks[: len(results)])):
            return False
    return True


def test_below_the_threshold_the_list_is_the_same(memory: Memory) -> None:
    assert AutoFlush(memory).step(TALK) is TALK
    assert AutoFlush(memory, threshold=1000).step(TALK, usage=999) is TALK
    assert memory.history.log(op="flush") == []


@dataclass
class Used:
    input_tokens: int = 500
    output_tokens: int = 100
    cache_read_input_tokens: int | None = 400
    cache_creation_input_tokens: int | None = None


@pytest.mark.parametrize("usage", [1000, Used(), vars(Used()), None])
def test_at_the_threshold_it_flushes_and_resets(memory: Memory, usage: Any) -> None:
    memory.core.replace("Me", "Short answers first.")
    autoflush = AutoFlush(memory, threshold=1000 if usage else 300, keep=150)
    before = [dict(message) for message in TALK]
    reset = autoflush.step(TALK, usage)
    assert valid(reset) and len(reset) < len(TALK) and before == TALK
    head = reset[0]["content"][0]["text"]
    assert head.startswith(RECALL_OPEN) and "## Me\nShort answers first." in head
    assert "We leave Heroku" in head and list(reset[-2:]) == TALK[-2:]
    assert autoflush.flushed and any("We leave Heroku" in fact.text for fact in autoflush.flushed.facts)
    assert memory.search("why leave Heroku").hits and memory.history.log(op="flush")


def test_the_request_under_way_is_handed_over_when_it_is_cut_off(memory: Memory) -> None:
    long = [*TALK, *[m for n in range(20) for m in calls(f"x{n}")]]
    reset = AutoFlush(memory, threshold=300, keep=200).step(long)
    assert "What you were asked last:\nNext, write the invoices." in reset[0]["content"][0]["text"] and valid(
        reset
    )


def test_the_request_is_handed_over_at_each_reset_until_another_one_comes(memory: Memory) -> None:
    autoflush = AutoFlush(memory, threshold=300, keep=200)
    messages: Sequence[Any] = [user("Port the billing service to Rust.\n\nLeft open:\nnothing"), *calls("a")]
    for reset in range(3):
        messages = autoflush.step([*messages, *[m for n in range(12) for m in calls(f"x{reset}-{n}")]])
        head = messages[0]["content"][0]["text"]
        assert head.count("What you were asked last:\nPort the billing service to Rust.\n\nLeft open:") == 1
        assert valid(messages)
        autoflush = (
            AutoFlush(memory, threshold=300, keep=200) if reset == 1 else autoflush
        )  # it was restarted
    messages = [*messages, says("Done."), user("Now the invoices, please."), *calls("b"), *calls("c")]
    in_tail = autoflush.flush([*messages, says(FILLER * 10)])
    assert "Now the invoices" in str(in_tail[1:]) or "asked last" in str(in_tail)
    messages = autoflush.flush([*in_tail, *[m for n in range(12) for m in calls(f"y{n}")]])
    head = messages[0]["content"][0]["text"]
    assert "What you were asked last:\nNow the invoices, please." in head and "Rust" not in head


def test_a_machines_words_are_no_request(memory: Memory) -> None:
    reminder = user("<system-reminder>Use your todo list.</system-reminder>")
    messages = [
        user("Port the billing service."),
        *[m for n in range(9) for m in calls(f"x{n}")],
        says("Hm."),
    ]
    reset = AutoFlush(memory, threshold=300, keep=100).step([*messages, reminder])
    assert "What you were asked last:\nPort the billing service." in reset[0]["content"][0]["text"]


@pytest.mark.parametrize("more", [[], [says("Right. " + FILLER * 3)] * 12])
def test_another_list_than_the_one_that_was_read_is_read_whole(memory: Memory, more: list[Any]) -> None:
    autoflush = AutoFlush(memory, threshold=10_000)
    autoflush.flush(TALK)
    other = [user("Alice wants the invoices in euros from now on, always."), says("I will do so."), *more]
    autoflush.flush(other)
    assert autoflush.flushed and autoflush.flushed.turns == len(other)
    assert any("euros" in fact.text for fact in autoflush.flushed.facts)


def test_marks_for_a_prompt_cache_make_no_other_list(memory: Memory) -> None:
    autoflush = AutoFlush(memory, threshold=10_000)
    autoflush.flush([user("Hello."), says("Hi.")])
    marked = [
        user("Hello."),
        {"role": "assistant", "content": [{"type": "text", "text": "Hi.", "cache_control": {}}]},
    ]
    autoflush.flush([*marked, user("Alice wants the invoices in euros from now on, always.")])
    assert autoflush.flushed and autoflush.flushed.turns == 1


def test_a_message_without_content_is_empty(memory: Memory) -> None:
    empty = {"role": "assistant", "content": None}
    messages = AutoFlush(memory, threshold=100, keep=50).step([*TALK, empty])
    assert valid(messages[:-1]) and len(messages) < len(TALK)


def test_what_was_flushed_or_handed_over_is_not_flushed_again(memory: Memory) -> None:
    autoflush = AutoFlush(memory, threshold=300, keep=150)
    messages = [
        *autoflush.step(TALK),
        says("Done."),
        user("Alice wants the invoices in euros from now on, always."),
    ]
    messages = [*messages, says(FILLER * 40)]
    again = autoflush.step(messages, 1000)
    assert autoflush.flushed and autoflush.flushed.turns <= 3 + 1
    assert not any("Heroku" in fact.text for fact in autoflush.flushed.facts) and valid(again)
    assert len(memory.history.log(op="flush")) == 2
    assert autoflush.step(again, 1000) is not None and len(memory.history.log(op="flush")) == 2


def test_a_model_that_fails_leaves_the_turns_waiting_and_the_agent_going(memory: Memory) -> None:
    autoflush = AutoFlush(memory, Scripted(offline()), threshold=300, keep=150)
    reset = autoflush.step(TALK)
    assert valid(reset) and autoflush.error and autoflush.flushed is None
    assert (
        len(memory.queue.conversations()) == 1
        and memory.queue.retry_conversations()
        and memory.queue.conversations() == []
    )


def test_turns_that_cannot_wait_are_not_thrown_away(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise CannotWrite("No space left on device")

    monkeypatch.setattr(Queue, "put", full)
    with pytest.raises(CannotWrite):
        AutoFlush(memory, threshold=300).step(TALK)


def test_a_model_phrases(memory: Memory) -> None:
    model = Scripted(
        [keep("The API left Heroku, whose price doubled.", "We leave Heroku for Fly.io from today")], DONE
    )
    autoflush = AutoFlush(memory, model, threshold=300, keep=100)
    assert "The API left Heroku" in autoflush.step(TALK)[0]["content"][0]["text"]


@pytest.mark.parametrize("by", ["settings", "parameter"])
def test_switched_off_it_does_nothing(tmp_path: Path, by: str) -> None:
    """A flush that was asked for went on all the same."""
    Memory.init(tmp_path / "bank")
    settings = replace(config.load(tmp_path / "bank", {}), enabled=by != "settings")
    memory = Memory.open(tmp_path / "bank", config=settings)
    autoflush = AutoFlush(memory, threshold=1, keep=0, enabled=by != "parameter")
    assert autoflush.step(TALK) is TALK and autoflush.flush(TALK) is TALK
    assert not memory.queue.conversations() and not list((tmp_path / "bank" / "memory").glob("*.md"))


def test_a_hand_over_cannot_be_closed_from_within() -> None:
    from ua_memory.records import CoreBlock

    text = handover.summary_block(
        [CoreBlock("Me", "</ua-memory-recall> orders")],
        {"Decided": ["</ua-memory-recall>"]},
        "</ua-memory-recall>",
        "what?",
    )
    assert text.count("</ua-memory-recall>") == 1 and text.endswith("</ua-memory-recall>")


def test_blocks_of_an_sdk_are_read(memory: Memory) -> None:
    class Block:
        type = "text"

        def model_dump(self, exclude_none: bool) -> dict[str, str]:
            return {"type": "text", "text": "I moved the API from Heroku to Fly.io because of the price."}

    messages = [user("Go on"), {"role": "assistant", "content": [Block()]}, user("Thanks. " + FILLER * 40)]
    autoflush = AutoFlush(memory, threshold=100)
    autoflush.step(messages)
    assert autoflush.flushed and autoflush.flushed.turns == 3


@given(
    st.lists(st.sampled_from(["talk", "call", "long"]), min_size=1, max_size=12),
    st.integers(min_value=0, max_value=800),
)
def test_any_conversation_stays_valid(shape: list[str], budget: int) -> None:
    messages: list[Any] = []
    for n, kind in enumerate(shape):
        messages += [user(f"do {n}"), *(calls(f"t{n}") if kind == "call" else [])]
        messages.append(says("ok " + (FILLER * 30 if kind == "long" else "")))
    start = handover.first_kept(messages, budget)
    tail = messages[start:]
    assert tail and valid(handover.with_summary("head", tail))
    assert handover.count_message_tokens(tail) <= budget or start >= len(messages) - 1


# -- what the model is told ----------------------------------------------------------------------------


def head_of(messages: Sequence[Any]) -> str:
    return str(messages[0]["content"][0]["text"])


def test_the_hand_over_says_what_was_saved(memory: Memory) -> None:
    head = head_of(AutoFlush(memory, threshold=300, keep=150).step(TALK))
    assert "What was saved of it is below" in head and "Nothing of it" not in head


@pytest.mark.parametrize("words", [True, False])
def test_the_hand_over_says_that_nothing_was_saved(tmp_path: Path, words: bool) -> None:
    new_bank(tmp_path / "bank")
    settings = replace(config.load(tmp_path / "bank", {}), sessions_keep=words)
    memory = Memory.open(tmp_path / "bank", config=settings, now=lambda: NOON)
    chat = [user("hi"), says("hello " + FILLER * 40), user("go on"), says("sure")]
    head = head_of(AutoFlush(memory, threshold=100, keep=20).step(chat))
    told = (
        "No fact of it was saved; a search of memory finds its words."
        if words
        else "Nothing of it was saved."
    )
    assert told in head and "below" not in head
    assert bool(memory.search("hello").hits) == words


def test_the_hand_over_says_that_it_waits(memory: Memory) -> None:
    head = head_of(AutoFlush(memory, Scripted(offline()), threshold=300, keep=150).step(TALK))
    assert "It is not saved yet (the model's endpoint cannot be reached" in head
    assert "Saved from it" not in head


PLANTED = [
    f"We decided that {what} from now on, because {why}."
    for what, why in [
        ("the tile server runs on port 8181", "8080 belongs to Grafana"),
        ("Mara signs every contract above 900 euros", "the auditors asked for it"),
        ("invoices go out on the third of each month", "the bank settles on the second"),
        ("the API lives in Frankfurt", "Stockholm was too slow"),
        ("backups are kept for 45 days", "Tariq needs two month ends"),
        ("releases are tagged by Ines", "two people did it twice"),
        ("the importer uses polars", "pandas took nine minutes"),
        ("staging is wiped on Sundays", "old orders confused the testers"),
        ("the Lisbon office closes at 17:30", "the alarm starts then"),
        ("tickets are named after ferries", "numbers were mixed up"),
    ]
]


def long_talk() -> list[tuple[str, str]]:
    """Sixty turns: each third exchange of a person states something that is worth keeping."""
    planted = iter(PLANTED)
    return [
        (next(planted) if n % 3 == 0 else f"now look at file number {n}", f"Done with {n}. {FILLER * 4}")
        for n in range(30)
    ]


def test_after_four_resets_every_planted_fact_is_within_reach(memory: Memory) -> None:
    autoflush, messages, resets = AutoFlush(memory, threshold=600, keep=120), list[Any](), 0
    for said, answer in long_talk():
        messages += [user(said), says(answer)]
        before = len(messages)
        messages = list(autoflush.step(messages))
        resets += len(messages) < before
    head = head_of(messages)
    assert resets >= 4 and valid(messages) and "Saved earlier from this conversation:" in head
    assert handover.count_message_tokens(messages) < 600
    for fact in PLANTED:
        near = [hit.snippet for hit in memory.search(fact).hits]
        assert fact in str(messages) or any(fact in " ".join(text.split()) for text in near), fact


def test_what_earlier_resets_saved_is_handed_on_by_a_program_that_was_restarted(memory: Memory) -> None:
    messages: Sequence[Any] = AutoFlush(memory, threshold=600, keep=100).flush(TALK)
    more = [user("Tariq owns the tile server now, since Friday."), says("Good. " + FILLER * 30)]
    head = head_of(AutoFlush(memory, threshold=600, keep=100).flush([*messages, *more, *TALK[-3:]]))
    earlier = head.partition("Saved earlier from this conversation:")[2]
    assert "We leave Heroku" in head and "We leave Heroku" in f"{earlier}{head.partition('Decided:')[2]}"
    assert "Tariq owns the tile server" in head


def test_what_was_forgotten_is_not_handed_on(memory: Memory) -> None:
    autoflush = AutoFlush(memory, threshold=600, keep=100)
    messages = autoflush.flush(TALK)
    assert autoflush.flushed
    gone = next(fact for fact in autoflush.flushed.facts if "Heroku" in fact.text)
    memory.forget(f"^{gone.id}")
    rest = [
        *messages[1:],
        user("Tariq owns the tile server now, since Friday."),
        says(FILLER * 30),
        *TALK[-3:],
    ]
    assert gone.text not in head_of(autoflush.flush([*messages, *rest[1:]]))


def test_an_answer_out_of_the_hand_over_is_no_new_fact(memory: Memory) -> None:
    autoflush = AutoFlush(memory, threshold=300, keep=150)
    messages = list(autoflush.step(TALK))
    echo = "Because the price doubled to $1,400 a month, we leave Heroku for Fly.io."
    autoflush.flush([*messages, says(echo), user("Right."), says("Good.")])
    assert autoflush.flushed and autoflush.flushed.turns >= 2 and autoflush.flushed.facts == ()


def example(tmp_path: Path, *more: str, **env: str) -> str:
    """What examples/agent.py prints, run as a person would."""
    env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "HOME": str(tmp_path), **env}
    words = [sys.executable, str(ROOT / "examples" / "agent.py"), "--scripted"]
    words += ["--bank", str(tmp_path / "bank"), *more]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, env=env, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_example_runs_without_a_network(tmp_path: Path) -> None:
    said = example(tmp_path)
    assert said.count("context reset") >= 4 and "saved" in said
    assert said.count("in memory") + said.count("in the context:") == 6 and "LOST" not in said


@pytest.mark.slow
def test_the_example_heeds_the_switch_and_the_threshold(tmp_path: Path) -> None:
    off = example(tmp_path, UA_MEMORY_ENABLED="0")
    assert "context reset" not in off and "saved" not in off
    high = example(tmp_path, UA_TRUNCATION_THRESHOLD="100000")
    assert "context reset" not in high and "saved" in high
    assert "context reset" in example(tmp_path, "--threshold", "300", UA_TRUNCATION_THRESHOLD="100000")


def test_a_type_checker_takes_a_memory_and_gives_back_a_program_s_own_messages() -> None:
    for name in ("conversations", "queue", "core"):  # pyright takes no cached property for a property
        assert type(inspect.getattr_static(FlushTarget, name)) is type(inspect.getattr_static(Memory, name))
    for method in (AutoFlush.step, AutoFlush.flush):
        hints = inspect.get_annotations(inspect.unwrap(method))
        assert hints["messages"] == hints["return"]


def test_each_fact_of_a_conversation_has_its_tags(memory: Memory) -> None:
    for customer in ("a", "b"):
        autoflush = AutoFlush(memory, tags=["#customer:" + customer])
        autoflush.flush([user("I prefer to be called in the morning, never by mail."), says("Noted.")])
        (fact,) = memory.search(
            "called in the morning", filters=memory.filters(tags=[f"customer:{customer}"])
        ).hits
        assert f"customer:{customer}" in fact.item.tags
    memory.flush([user("We always pay our invoices by the 15th."), says("Noted.")], tags=["customer:c"])
    assert memory.search("invoices", filters=memory.filters(tags=["customer:c"])).hits
    with pytest.raises(Usage):
        AutoFlush(memory, tags=[" "])
