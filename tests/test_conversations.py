"""A session heard bit by bit: each turn once, also where the transcript lags behind its client."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from banks import Bank, new_bank

from ua_memory.clients.turns import Session
from ua_memory.retain import ledger as through
from ua_memory.retain.conversations import CaptureResult as Heard
from ua_memory.retain.conversations import capture
from ua_memory.retain.flush import Flusher
from ua_memory.retain.subagent import MemoryView as View

SESSION = Session("claude-code", "258c7280-ae70-4798-800f-63464d01a85d")


class Talk:
    """A Claude Code transcript that grows; `hear` is what a hook does with it."""

    def __init__(self, bank: Bank, session: Session = SESSION) -> None:
        self.bank, self.session, self.lines = bank, session, list[bytes]()
        self.spot: Any = None

    @property
    def flusher(self) -> Flusher:
        view = View(lambda query: [], lambda: [])
        return Flusher(self.bank.store, view, lambda: lambda text: [], door="test")

    def says(self, role: str, text: Any, *, size: int = 0, **more: Any) -> None:
        number = len(self.lines) + 1
        message = {"role": role, "content": text if role == "user" else [{"type": "text", "text": text}]}
        if size:
            message["usage"] = {"input_tokens": size}
        parent = f"u{number - 1}" if number > 1 else None
        record = {"type": role, "uuid": f"u{number}", "parentUuid": parent, "isSidechain": False, **more}
        record |= {"message": message, "sessionId": self.session.session, "timestamp": "2026-11-21T11:00:00Z"}
        self.lines.append(json.dumps(record).encode() + b"\n")

    def hear(self, said: str = "", *, without: int = 0, **more: Any) -> Heard:
        """What a hook does; the last lines (`without`) are not in the file yet."""
        file = io.BytesIO(b"".join(self.lines[: len(self.lines) - without]))
        found = capture(self.flusher, self.session, file, said=said, position=self.spot, **more)
        self.spot = found.position
        return found

    def waiting(self) -> list[str]:
        return [turn.text for each in self.flusher.queue.all() for turn in each.turns]

    def flushed(self) -> int:
        return sum(each.turns for each in self.flusher.drain(every=True))


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    return new_bank(tmp_path / "bank")


@pytest.fixture(params=["spot", "no spot"])
def talk(bank: Bank, request: pytest.FixtureRequest) -> Talk:
    """Heard on from where it was left, and each time from the beginning: it comes to the same."""
    made = Talk(bank)
    if request.param == "no spot":
        heard = made.hear

        def anew(*args: Any, **more: Any) -> Heard:
            found = heard(*args, **more)
            made.spot = type(found.position)(answer_hash=found.position.answer_hash)
            return found

        made.hear = anew  # type: ignore[method-assign]
    return made


@pytest.mark.parametrize("lags", [0, 1, 2])
def test_what_was_said_last_is_taken_once_however_late_it_is_written(talk: Talk, lags: int) -> None:
    for n in range(1, 4):
        talk.says("user", f"question {n}")
        talk.says("assistant", f"answer {n}")
        talk.hear(f"answer {n}", without=lags)
        assert talk.waiting()[-1] == f"answer {n}"
    talk.hear()
    wanted = [f"{what} {n}" for n in range(1, 4) for what in ("question", "answer")]
    assert sorted(talk.waiting()) == sorted(wanted)
    assert lags == 2 or talk.waiting() == wanted


@pytest.mark.parametrize("lags", [0, 1])
def test_a_flush_between_does_not_bring_it_again(talk: Talk, lags: int) -> None:
    talk.says("user", "where does it run?")
    talk.says("assistant", "it runs on Fly.io")
    talk.hear("it runs on Fly.io", without=lags)
    assert talk.flushed() == 2
    assert talk.hear().turns == 0
    talk.says("user", "thanks")
    talk.says("assistant", "it runs on Fly.io")  # the same words again are another turn
    talk.hear("it runs on Fly.io", without=lags)
    assert talk.waiting() == ["thanks", "it runs on Fly.io"]


def test_the_same_event_twice_changes_nothing(talk: Talk) -> None:
    talk.says("user", "go")
    talk.says("assistant", "done")
    for _ in range(3):
        talk.hear("done", without=1)
    assert talk.waiting() == ["go", "done"]
    for _ in range(2):
        talk.hear("done")
    assert talk.waiting() == ["go", "done"]


def test_an_answer_that_is_told_after_its_session_was_flushed_adds_nothing(bank: Bank) -> None:
    talk = Talk(bank)
    talk.says("user", "go")
    talk.says("assistant", "all is done")
    talk.hear(close=True)
    assert talk.flushed() == 2
    talk.spot = None  # a daemon that was busy comes to it when nothing of the session is left
    assert talk.hear("all is done").turns == 0 and talk.waiting() == []
    assert talk.hear("and this was not written yet").turns == 1


def test_the_same_words_in_two_turns_are_two(talk: Talk) -> None:
    for _ in range(3):
        talk.says("user", "go")
        talk.says("assistant", "done")
        talk.hear("done", without=1)
    talk.hear()
    assert talk.waiting() == ["go", "done"] * 3


@pytest.mark.parametrize("flushed_after", [0, 1, 2])
def test_turns_that_are_named_by_their_line_are_each_queued_once(bank: Bank, flushed_after: int) -> None:
    """Codex gives its messages no ids, so a tail that began again at line 1 looked like one already read."""
    flusher, session, position, lines = Talk(bank).flusher, Session("codex", "c"), None, list[bytes]()
    said = [f"{who} {n} speaks about the bees" for n in range(4) for who in ("user", "assistant")]
    lines.append(b'{"type": "session_meta", "payload": {"id": "c"}}\n')
    for number, text in enumerate(said):
        item = {"type": "message", "role": text.split()[0], "content": [{"type": "input_text", "text": text}]}
        lines.append(json.dumps({"type": "response_item", "payload": item}).encode() + b"\n")
        if number % 2:
            whole = io.BytesIO(b"".join(lines))
            position = capture(flusher, session, whole, said=text, position=position).position
        if flushed_after and number == 2 * flushed_after - 1:
            flusher.drain(every=True)
    flusher.drain(every=True)
    kept = flusher.sessions.find(session)
    assert kept and [turn.text for turn in kept.turns] == said


@pytest.mark.parametrize("without", [0, 1])
@pytest.mark.parametrize("flushed", [False, True])
def test_an_event_that_daemon_and_hook_both_answer_is_heard_once(
    bank: Bank, without: int, flushed: bool
) -> None:
    talk = Talk(bank)
    for answer in ("one", "two"):
        talk.says("user", "go")
        talk.says("assistant", answer)
        before = talk.spot
        talk.hear(answer, without=without)
    seen = talk.waiting()
    if flushed and not without:
        talk.flushed()
        seen = []
    talk.spot = before
    talk.hear(answer, without=without)
    assert talk.waiting() == seen


def test_a_line_half_written_is_for_the_next_time(bank: Bank) -> None:
    talk = Talk(bank)
    talk.says("user", "one")
    talk.says("assistant", "two")
    whole = b"".join(talk.lines)
    for cut in (5, len(talk.lines[0]) + 5, len(whole)):
        talk.spot = capture(talk.flusher, SESSION, io.BytesIO(whole[:cut]), position=talk.spot).position
    assert talk.waiting() == ["one", "two"]


def test_a_transcript_that_was_replaced_is_read_from_its_beginning(bank: Bank) -> None:
    talk = Talk(bank)
    talk.says("user", "one " * 100)
    talk.hear()
    talk.lines = []
    talk.says("user", "another beginning", uuid="v1")
    talk.says("assistant", "and its answer", uuid="v2", parentUuid="v1")
    talk.hear()
    assert talk.waiting()[1:] == ["another beginning", "and its answer"]


def test_machines_and_subagents_say_nothing(bank: Bank) -> None:
    talk = Talk(bank)
    talk.says("user", "start")
    talk.hear()
    talk.says(
        "user", "<task-notification>\n<summary>done</summary>\n</task-notification>", promptSource="system"
    )
    talk.says("assistant", "a sub-agent's words", isSidechain=True, agentId="a1")
    assert talk.hear().turns == 0
    talk.says("user", '<ua-memory-recall kind="search">\n- secret plan\n</ua-memory-recall>\nand now?')
    talk.hear('as memory says <ua-memory-recall kind="x">plan</ua-memory-recall> go', without=0)
    assert talk.waiting() == ["start", "and now?", "as memory says  go"]


def test_it_gathers_until_a_flush_is_due(bank: Bank) -> None:
    bank.again(truncation_threshold=1000)
    talk = Talk(bank)
    talk.says("user", "one")
    talk.says("assistant", "two", size=900)
    assert not talk.hear("two").due
    waiting = talk.flusher.queue.all()
    assert waiting[0].open and waiting[0].still_open(bank.clock()) and talk.flusher.drain() == []
    talk.says("user", "three")
    talk.says("assistant", "four", size=1200)
    assert talk.hear("four").due and not talk.hear("four").due  # once is enough
    assert [each.turns for each in talk.flusher.drain()] == [4]
    talk.says("user", "five")
    talk.says("assistant", "six", size=20_000)
    assert not talk.hear("six").due
    talk.says("assistant", "seven", size=21_200)
    assert talk.hear("seven").due


def test_what_is_said_during_a_flush_gathers_anew(bank: Bank) -> None:
    talk = Talk(bank)
    talk.says("user", "one")
    assert talk.hear(close=True).due
    queue, key = talk.flusher.queue, talk.flusher.queue.keys()[0]
    talk.says("user", "two")
    talk.hear()
    assert not queue.get(key).open
    queue.remove_turns(key, {"u1"})
    assert queue.get(key).open and [turn.id for turn in queue.get(key).turns] == ["u2"]


def test_a_session_left_alone_for_half_a_day_is_flushed(bank: Bank) -> None:
    talk = Talk(bank)
    talk.says("user", "one")
    talk.hear()
    bank.clock.later(hours=11)
    assert talk.flusher.drain() == []
    bank.clock.later(hours=2)
    assert [each.turns for each in talk.flusher.drain()] == [1]


def test_of_a_client_without_a_transcript_both_speakers_are_heard(bank: Bank) -> None:
    spot: Any = None

    def told(asked: str, said: str) -> int:
        nonlocal spot
        view = View(lambda query: [], lambda: [])
        flusher = Flusher(bank.store, view, lambda: lambda text: [], door="test")
        found = capture(flusher, Session("hermes", "s"), None, asked=asked, said=said, position=spot)
        spot = found.position
        bank.clock.later(seconds=1)
        return found.turns

    asked = "We moved the API to Fly.io.\n<hindsight_memories>old</hindsight_memories>"
    assert [told(asked, "Done."), told(asked, "Done."), told("Go on.", "Done."), told(asked, "Done.")] == [
        2,
        0,
        2,
        2,
    ]
    talk = Talk(bank, Session("hermes", "s"))
    said = ["We moved the API to Fly.io.", "Done."]
    assert talk.waiting() == [*said, "Go on.", "Done.", *said] and talk.flushed() == 6 and not talk.waiting()


def test_a_plain_flush_knows_what_was_told_early(bank: Bank) -> None:
    talk = Talk(bank)
    talk.says("user", "where does it run?")
    talk.says("assistant", "it runs on Fly.io")
    talk.hear("it runs on Fly.io", without=1)
    whole = b"".join(talk.lines)
    talk.flusher.queue_transcript(io.BytesIO(whole), force=True)
    assert talk.waiting() == ["where does it run?", "it runs on Fly.io"]
    talk.flushed()
    assert talk.flusher.queue_transcript(io.BytesIO(whole))[0].turns == 0
    assert talk.flusher.queue_transcript(io.BytesIO(whole), force=True)[0].turns == 0
    assert through.base_ids({"u1~abc", "~x", "u2"}) == {"u1", "u2"}


@pytest.mark.parametrize("how", ["waits", "flushed", "by hand"])
def test_a_fork_does_not_say_again_what_it_came_out_of(bank: Bank, how: str) -> None:
    talk = Talk(bank)
    talk.says("user", "where does it run?", uuid="8baf8fe3-1bfc-4d10-8567-90a3aca1a892")
    talk.says("assistant", "on Fly.io", uuid="bb0c5fb3-cee3-428c-b0c0-5678e6339430")
    talk.hear("on Fly.io", without=how == "waits")
    if how != "waits":
        talk.flushed()
    fork = Talk(bank, Session("claude-code", "43c4cdf5-bbdf-4ab3-a537-27a7995769d6"))
    fork.lines = [line.replace(b"258c7280", b"43c4cdf5") for line in talk.lines]
    fork.says("user", "and the database?", parentUuid="bb0c5fb3-cee3-428c-b0c0-5678e6339430")
    if how == "by hand":
        bank.again(truncation_threshold=1)
        fork.flusher.queue_transcript(io.BytesIO(b"".join(fork.lines)))
        assert fork.waiting() == ["and the database?"]
        return
    fork.hear()
    before = ["where does it run?", "on Fly.io"] if how == "waits" else []
    assert sorted(fork.waiting()) == sorted([*before, "and the database?"])


@pytest.mark.parametrize("how", ["heard", "by hand"])
def test_a_fork_at_an_earlier_point_has_its_own_turns_alone(bank: Bank, how: str) -> None:
    """The mark of what was flushed is a turn that the fork does not have."""
    names = [f"8baf8fe3-1bfc-4d10-8567-90a3aca1a89{n}" for n in range(4)]
    first = Talk(bank)
    first.says("user", "where does it run?", uuid=names[0])
    first.says("assistant", "Let me look at the settings.", uuid=names[1], parentUuid=names[0])
    first.says("assistant", "on Fly.io, port 8080", uuid=names[2], parentUuid=names[1])
    first.hear()
    fork = Talk(bank, Session("claude-code", "43c4cdf5-bbdf-4ab3-a537-27a7995769d6"))
    origin = b'"forkedFrom":{"sessionId":"%s"},"sessionId"' % SESSION.session.encode()
    fork.lines = [
        line.replace(b"258c7280", b"43c4cdf5").replace(b'"sessionId"', origin) for line in first.lines
    ]
    first.says("user", "and the bill?", uuid=names[3], parentUuid=names[2])
    first.hear()
    first.flushed()
    fork.says("user", "and the database?", parentUuid=names[2])
    if how == "heard":
        fork.hear()
    else:
        bank.again(truncation_threshold=1)
        assert fork.flusher.queue_transcript(io.BytesIO(b"".join(fork.lines)))[0].turns == 1
    assert fork.waiting() == ["and the database?"]
    there = fork.flusher.sessions.find(fork.session)
    assert there and there.parent == SESSION.session
    assert [turn.text for turn in there.turns] == ["and the database?"]


def test_a_fork_of_a_client_that_numbers_its_lines_is_known_by_its_words(bank: Bank) -> None:
    def codex(name: str, parent: str | None, *said: str) -> bytes:
        rows = [{"type": "session_meta", "payload": {"id": name, "forked_from_id": parent}}]
        rows += [{"type": "session_meta", "payload": {"id": parent}}] if parent else []
        roles = ("user", "assistant")
        rows += [
            {"type": "response_item", "payload": {
                "type": "message", "role": roles[n % 2], "content": [{"type": "input_text", "text": text}]}}
            for n, text in enumerate(said)
        ]  # fmt: skip
        return b"".join(json.dumps(row).encode() + b"\n" for row in rows)

    flusher = Talk(bank).flusher
    both = ("where does it run?", "on Fly.io, password: hunter2secret!")
    one, two, three = (Session("codex", f"01998c1e-0000-7000-8000-00000000000{n}") for n in range(3))
    capture(flusher, one, io.BytesIO(codex(one.session, None, *both, "ok", "Done.")))
    flusher.drain(every=True)
    capture(flusher, two, io.BytesIO(codex(two.session, one.session, *both, "and the bill?", "ok")))
    said = (*both, "and the bill?", "on Fly.io", "ok")
    capture(flusher, three, io.BytesIO(codex(three.session, two.session, *said)))
    found = [flusher.sessions.find(session) for session in (two, three)]
    assert [[turn.text for turn in one.turns] for one in found if one] == [
        ["and the bill?", "ok"], ["on Fly.io", "ok"],
    ]  # fmt: skip
