"""The flush: one conversation in, one commit out; never half of one, and nothing lost on the way."""

from __future__ import annotations

import io
import json
import os
import signal
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from banks import NOON, new_bank
from invented_words import made_up
from scripted_model import DONE, SAID, Answer, Scripted, keep, offline, turns
from secret_plants import plants

from ua_memory import Memory
from ua_memory.clients.turns import Session
from ua_memory.config import Config
from ua_memory.errors import (
    BudgetSpent,
    KeyRejected,
    Malformed,
    ModelMisbehaved,
    ModelRefused,
    ModelUnavailable,
    RequestRejected,
    Usage,
)
from ua_memory.retain.flush import flush_due, segments

SHARED = Path(os.environ.get("UA_SHARED") or Path(__file__).resolve().parents[2] / "shared") / "data/sessions"
ID = "258c7280-ae70-4798-800f-63464d01a85d"
TALK = (
    "p: We leave Heroku for Fly.io from today, because the price doubled to $1,400 a month.",
    "I moved the API to Fly.io. The config is in deploy/fly.toml and the deploy takes 4 minutes.",
    "p: I want the invoices kept for ten years from now on, Alice insists on it.",
    "Noted.",
)


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return opened(tmp_path / "bank")


def opened(root: Path, **settings: Any) -> Memory:
    new_bank(root)
    from ua_memory import config

    loaded: Config = replace(config.load(root, {}), **settings)
    return Memory.open(root, config=loaded, now=lambda: NOON)


def transcript(*said: str, name: str = ID, context: int = 160_000, start: datetime = SAID) -> io.BytesIO:
    """A Claude Code transcript whose last reply reports a context of so many tokens."""
    rows, parent = [], None
    for turn in turns(*(said or TALK), start=start):
        message: dict[str, Any] = {"role": "user", "content": turn.text}
        if turn.role == "assistant":
            usage = {"input_tokens": context - 10, "output_tokens": 10}
            message = {"role": "assistant", "content": [{"type": "text", "text": turn.text}], "usage": usage}
            message |= {"id": f"msg_{turn.id}", "model": "claude-opus-4-6"}
        rows.append({
            "type": "user" if turn.role == "person" else "assistant", "uuid": f"{name[:8]}-{turn.id}",
            "parentUuid": parent, "sessionId": name, "timestamp": turn.at and turn.at.isoformat(),
            "message": message, "cwd": "/home/x", "version": "2.1.39",
        })  # fmt: skip
        parent = rows[-1]["uuid"]
    return io.BytesIO("".join(json.dumps(row) + "\n" for row in rows).encode())


def ops(memory: Memory) -> list[str]:
    return [one.trailer("Memory-Op") for one in memory.history.log(limit=None)]


def files(memory: Memory) -> dict[str, bytes]:
    root = Path(memory.status().root)
    return {
        str(p.relative_to(root)): p.read_bytes() for p in [*root.glob("*.md"), *root.glob("memory/**/*.md")]
    }


# -- when it fires -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "last", "fires", "at"),
    [
        (149_999, None, False, 150_000),
        (150_000, None, True, 150_000),
        (165_000, 150_000, False, 170_000),
        (170_000, 150_000, True, 170_000),
        (149_000, 20_000, False, 150_000),
        (60_000, 170_000, False, 150_000),
        (155_000, 170_000, True, 150_000),
    ],
)
def test_due(size: int, last: int | None, fires: bool, at: int) -> None:
    assert (flush_due(size, last, 150_000).is_due, flush_due(size, last, 150_000).threshold) == (fires, at)


def test_below_the_threshold_nothing_happens(memory: Memory) -> None:
    before = files(memory)
    found = memory.flush(transcript(context=77_419))
    assert str(found.due) == "77,419 tokens, flushes at 150,000" and found.done == ()
    assert files(memory) == before and ops(memory) == ["init"] and memory.queue.conversations() == []
    assert len(memory.flush(transcript(context=77_419), force=True).done) == 1


def test_the_threshold_is_a_setting_and_never_beyond_the_window(tmp_path: Path) -> None:
    assert opened(tmp_path / "a", truncation_threshold=5000).flush(transcript(context=6000)).done
    assert opened(tmp_path / "b", context_window=100_000).flush(transcript(context=110_000)).done
    assert not opened(tmp_path / "c", enabled=False).flush(transcript(), force=True).done


def test_without_reported_usage_tokens_are_counted(memory: Memory) -> None:
    text = "\n".join(f"User: this is line {n} of many\nAssistant: yes" for n in range(200)).encode()
    found = memory.flush(io.BytesIO(text))
    assert found.due and not found.due.reported and 1500 < found.due.size < 6000 and not found.done


def test_after_a_flush_only_what_is_new_counts(memory: Memory) -> None:
    assert len(memory.flush(transcript()).done) == 1
    again = memory.flush(transcript(context=165_000))
    assert again.due and not again.due.is_due and again.due.threshold == 180_000
    more = (*TALK, "p: Tariq owns the tile server now, since Friday.", "Good.")
    found = memory.flush(transcript(*more, context=181_000))
    assert found.turns == 2 and found.done[0].turns == 2
    assert [fact.text for fact in found.done[0].facts] == ["Tariq owns the tile server now, since Friday."]
    assert ops(memory) == ["flush", "flush", "init"]


def test_all_of_it_read_before_is_no_flush(memory: Memory) -> None:
    memory.flush(transcript(), force=True)
    head = memory.history.log(limit=1)[0].id
    found = memory.flush(transcript(), force=True)
    assert found.turns == 0 and found.done == () and memory.history.log(limit=1)[0].id == head


def test_two_nameless_transcripts_are_two(memory: Memory) -> None:
    first = b"User: We moved to Fly.io because Heroku doubled its price.\nAssistant: ok\n"
    other = b"User: We moved to Hetzner because Fly.io was too slow for us.\nAssistant: ok\n"
    for text in (first, other):
        assert len(memory.flush(io.BytesIO(text), force=True).done[0].facts) == 1
        assert memory.flush(io.BytesIO(text), force=True).done == ()
    longer = other + b"User: Alice prefers invoices in euros, always.\nAssistant: ok\n"
    assert memory.flush(io.BytesIO(longer), force=True).turns == 2


def test_a_stream_that_cannot_seek(memory: Memory) -> None:
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb") as out:
        out.write(transcript().getvalue())
    with os.fdopen(reading, "rb") as stream:
        assert memory.flush(stream).done[0].turns == 4


def test_what_is_no_transcript_is_said(memory: Memory) -> None:
    with pytest.raises(Malformed):
        memory.flush(io.BytesIO(b'{"hello": "world"}\n'), force=True)
    assert memory.queue.conversations() == []


# -- what is written -----------------------------------------------------------------------------------


def test_without_a_model_the_speakers_own_sentences_are_kept(memory: Memory) -> None:
    (done,) = memory.flush(transcript()).done
    assert done.by == "" and done.facts and done.revision == memory.history.log(limit=1)[0].id
    whole = " ".join(text.partition(": ")[2] or text for text in TALK)
    for fact in done.facts:
        assert fact.text in " ".join(TALK) and not made_up(fact.text, [whole], SAID)
    text = files(memory)["memory/2026-11-20.md"].decode()
    assert "## 14:30 · claude-code · session 258c7280\n<!-- through: claude-code/" in text
    assert "origin: person ([[2026-11-20-1430-claude-code-258c7280#^t-" in text
    assert memory.health.verify() == [] and memory.search("why did we leave Heroku").hits


def test_a_flush_tells_how_many_near_duplicates_it_left_out(memory: Memory) -> None:
    said = (
        "p: I prefer tabs over spaces in the Makefile.",
        "p: as I said, i prefer tabs over spaces in every Makefile",
    )
    (done,) = memory.flush(transcript(*said), force=True).done
    assert len(done.facts) == 1 and "1 near-duplicate left out" in done.notes


def test_the_names_of_a_flush_are_those_a_person_has_settled(memory: Memory) -> None:
    names = memory.store.bank.root / "memory/entities.md"
    names.write_text("- [[Alice Pereira]]\n  - alias: Alice\n")
    (done,) = memory.flush(transcript()).done
    found = {name for one in done.facts for name in one.entities}
    assert "Alice Pereira" in found and "Alice" not in found


def test_days_are_those_on_which_it_was_said(memory: Memory) -> None:
    late = transcript(*TALK, start=SAID.replace(hour=23, minute=58))
    (done,) = memory.flush(late).done
    assert {fact.place.path for fact in done.facts} == {"memory/2026-11-20.md", "memory/2026-11-21.md"}
    assert ops(memory) == ["flush", "init"]


def test_the_banks_timezone_says_which_day_it_is(tmp_path: Path) -> None:
    Memory.init(tmp_path / "bank", timezone="Pacific/Auckland")
    memory = Memory.open(tmp_path / "bank")
    (done,) = memory.flush(transcript()).done
    assert {fact.place.path for fact in done.facts} == {"memory/2026-11-21.md"}
    assert "## 03:30 ·" in files(memory)["memory/2026-11-21.md"].decode()


def test_a_flush_that_keeps_nothing_is_not_repeated(memory: Memory) -> None:
    before = files(memory)
    (done,) = memory.flush(transcript("p: hi", "hello"), force=True).done
    assert done.facts == () and done.revision and files(memory) == before
    assert memory.history.log(limit=1)[0].trailer("Through").endswith("-e2")
    assert memory.flush(transcript("p: hi", "hello"), force=True).done == ()


def test_a_model_chooses_and_edits_core_in_one_commit(memory: Memory) -> None:
    memory.core.replace("Hosting", "The API runs on Heroku.")
    model = Scripted(
        [("get_core_memory_blocks", {}), ("archival_memory_search", {"query": "Heroku"})],
        [
            keep("The API moved to Fly.io because Heroku's price doubled.", TALK[0][3:], tags=["infra"]),
            keep("Alice insists that invoices are kept for ten years.", TALK[2][3:], 3, kind="preference"),
            ("core_memory_replace", {"section": "Hosting", "value": "The API runs on Fly.io."}),
        ],
        DONE,
    )
    (done,) = memory.flush(transcript(), model=model).done
    assert done.by == "scripted" and len(done.facts) == 2 and len(done.core) == 1
    assert memory.core.get("Hosting").value == "The API runs on Fly.io."
    last = memory.history.log(limit=1)[0]
    assert last.subject == "flush: 2 facts, 1 core block from claude-code"
    assert set(last.paths) == {"MEMORY.md", "memory/2026-11-20.md"} and ops(memory).count("flush") == 1
    memory.history.undo()
    assert memory.core.get("Hosting").value == "The API runs on Heroku."


def test_what_is_known_is_seen_again(memory: Memory) -> None:
    model: Callable[[], Scripted] = lambda: Scripted([keep(TALK[0][3:])], DONE)  # noqa: E731
    memory.flush(transcript(), model=model())
    other = memory.flush(transcript(name="ffffffff-0000-4000-8000-000000000000"), model=model()).done[0]
    assert len(other.seen_again) == 1 and not other.facts


def test_what_a_person_says_again_is_seen_again(memory: Memory) -> None:
    first = memory.flush(transcript()).done[0]
    said = "p: Hello again. " + TALK[2][3:]
    again = memory.flush(transcript(said, "ok", name="ffffffff-0000-4000-8000-000000000000")).done[0]
    assert [fact.text for fact in again.seen_again] == [TALK[2][3:]] and not again.facts
    assert again.seen_again[0].id in {fact.id for fact in first.facts} and again.seen_again[0].seen
    memory.insert("Ann pays.", origin="person")
    typed = memory.flush(transcript("p: Ann pays.", name="eeeeeeee-0000-4000-8000-000000000000"), force=True)
    assert not typed.done[0].seen_again


def test_a_core_edit_that_would_be_dropped_is_refused_while_the_model_can_mend_it(memory: Memory) -> None:
    def edit(value: str) -> tuple[str, dict[str, str]]:
        return "core_memory_replace", {"section": "User", "value": value}

    model = Scripted(
        [("get_core_memory_blocks", {})],
        [
            edit("invoices kept for ten years " * 400),
            edit("## Invoices\nten years"),
            edit("invoices: ten years"),
        ],
        DONE,
    )
    (done,) = memory.flush(transcript(), model=model).done
    assert "over its budget" in model.told[1] and "has a heading" in model.told[2]
    assert model.told[3] == "will be replaced" and memory.core.get("User").value == "invoices: ten years"
    assert len(done.core) == 1 and not done.notes


def test_switched_off_nothing_is_retried(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable):
        opened(tmp_path / "bank").flush(transcript(), model=Scripted(offline()))
    off = opened(tmp_path / "bank", enabled=False)
    assert off.queue.retry_conversations() == [] and len(off.queue.conversations()) == 1


def test_what_is_refused_is_told_without_secrets(memory: Memory) -> None:
    secret = "ghp_" + "abcdefghijklmnopqrstuvwxyz0123456789"
    model = Scripted([keep(f"Bob uses the token {secret} in production.", TALK[1])], DONE)
    (done,) = memory.flush(transcript(), model=model).done
    assert done.refused and secret not in str(done.refused)


def test_a_core_block_that_changed_meanwhile_stays(memory: Memory) -> None:
    memory.core.replace("Hosting", "The API runs on Heroku.")
    edited = [False]

    def edit() -> None:
        if len(model.asked) == 2 and not edited[0]:
            edited[0] = True
            memory.core.replace("Hosting", "Ask Noor.")

    wanted = ("core_memory_replace", {"section": "Hosting", "value": "The API runs on Fly.io."})
    model = Scripted([("get_core_memory_blocks", {})], [wanted, keep(TALK[0][3:])], DONE, on_ask=edit)
    (done,) = memory.flush(transcript(), model=model).done
    assert memory.core.get("Hosting").value == "Ask Noor." and len(done.facts) == 1
    assert any("Hosting was left as it is" in note for note in done.notes)


def test_a_long_transcript_is_read_in_stretches_that_share_turns(tmp_path: Path) -> None:
    memory = opened(tmp_path / "bank", context_window=4000)
    said = [f"p: Point {n}: " + "words that fill a turn " * 12 for n in range(60)]
    model = Scripted(DONE)
    memory.flush(transcript(*said), model=model, force=True)
    openings = [asked[0]["content"][0]["text"] for asked in model.asked if len(asked) == 1]
    assert len(openings) > 2
    for one, other in pairwise(openings):
        shared = {line.partition(": ")[2] for line in one.splitlines() if line[:1] == "["}
        shared &= {line.partition(": ")[2] for line in other.splitlines() if line[:1] == "["}
        assert 1 <= len(shared) <= 4
    read = {line.partition("Point ")[2].partition(":")[0] for o in openings for line in o.splitlines()}
    assert read >= {str(n) for n in range(60)}


def test_the_lines_that_cannot_be_read_are_told_without_the_half_written_last(memory: Memory) -> None:
    head, _, rest = transcript().getvalue().partition(b"\n")
    notes = memory.flush(io.BytesIO(head + b'\n{"type": \n' + rest + b'{"ty')).notes
    assert "1 line of the transcript cannot be read (2)" in notes
    assert "the last line of the transcript is half written; the next flush reads it" in notes


def test_stretches_cut_a_turn_that_is_too_long() -> None:
    (long,) = turns("p: " + "word " * 5000)
    pieces = [turn for stretch in segments([long], 1000) for turn in stretch]
    assert len(pieces) > 4 and {turn.id for turn in pieces} == {"e1"}
    assert "".join(dict.fromkeys(turn.text for turn in pieces)).count("word") >= 1


# -- secrets -------------------------------------------------------------------------------------------


def test_no_planted_secret_is_sent_kept_or_waiting(memory: Memory) -> None:
    planted = [plant for plant in plants() if "\n" not in plant.text][:60]
    said = [f"p: From now on we always use this one for the deploy: {plant.text}" for plant in planted]
    model = Scripted([keep("nothing", "nothing said")], offline())
    with pytest.raises(ModelUnavailable):
        memory.flush(transcript(*said), model=model, force=True)
    everything = json.dumps(model.asked, ensure_ascii=False)
    state = Path(memory.store.bank.state)
    everything += "".join(p.read_text(errors="replace") for p in state.rglob("*") if p.is_file())
    memory.flush()
    everything += "".join(data.decode() for data in files(memory).values()) + memory.history.diff("HEAD")
    left = [plant.secret for plant in planted if plant.secret in everything]
    assert left == []


# -- the model fails -----------------------------------------------------------------------------------

FAILURES = [
    offline(),
    KeyRejected("the model's endpoint answered 401"),
    RequestRejected("the model's endpoint answered 400"),
    ModelRefused("the model declined"),
    BudgetSpent("the next request could use too much"),
    ModelMisbehaved("the model kept on"),
]


@pytest.mark.few(6)
@pytest.mark.parametrize("error", FAILURES, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("after", [0, 1, 2])
def test_whatever_fails_nothing_is_half_done_and_the_turns_wait(
    memory: Memory, error: Exception, after: int
) -> None:
    memory.core.replace("Hosting", "The API runs on Heroku.")
    before, head = files(memory), memory.history.log(limit=1)[0].id
    work: list[Answer] = [[("get_core_memory_blocks", {})], [keep(TALK[0][3:])]]
    with pytest.raises(type(error)) as raised:
        memory.flush(transcript(), model=Scripted(*work[:after], error))
    assert "4 turns wait" in raised.value.what and "ua-memory queue retry" in raised.value.hint
    assert files(memory) == before and memory.history.log(limit=1)[0].id == head
    (waiting,) = memory.queue.conversations()
    assert (len(waiting.turns), waiting.attempts.count) == (4, 1) and waiting.reason
    (done,) = memory.flush(model=Scripted([keep(TALK[0][3:])], DONE)).done
    assert len(done.facts) == 1 and memory.queue.conversations() == []
    assert memory.flush(transcript(), force=True).turns == 0


def test_the_next_flush_of_the_session_takes_up_what_waits(memory: Memory) -> None:
    with pytest.raises(ModelUnavailable):
        memory.flush(transcript(), model=Scripted(offline()))
    more = (*TALK, "p: And Tariq owns the tile server from Monday on, we decided that.", "Good.")
    (done,) = memory.flush(transcript(*more, context=190_000)).done
    assert done.turns == 6 and memory.queue.conversations() == []


def test_what_other_sessions_left_is_taken_up_after_ones_own(memory: Memory) -> None:
    with pytest.raises(ModelUnavailable):
        memory.flush(transcript(name="ffffffff-0000-4000-8000-000000000000"), model=Scripted(offline()))
    done = memory.flush(transcript()).done
    assert [one.session[:8] for one in done] == ["258c7280", "ffffffff"]


def _die(root: Path, where: str) -> None:
    """Run a flush in a fork that is killed at a point of it."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    try:
        memory = Memory.open(root, now=lambda: NOON)
        kill: Callable[..., None] = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)  # noqa: E731
        from ua_memory.retain import flush, ledger, queue
        from ua_memory.store.draft import Draft

        model = Scripted([keep(TALK[0][3:])], DONE, on_ask=kill if where == "asking" else None)
        places: dict[str, tuple[Any, str]] = {
            "writing": (Draft, "write"),
            "committing": (ledger, "write_marks"),
            "letting go": (queue.TurnQueue, "remove_turns"),
            "handing over": (flush.Flusher, "drain"),
        }
        if where in places:
            assert hasattr(*places[where])
            setattr(*places[where], kill)
        memory.flush(transcript(), model=model)
    finally:
        os._exit(1)


@pytest.mark.few(2)
@pytest.mark.parametrize("where", ["handing over", "asking", "writing", "committing", "letting go"])
def test_killed_half_way_the_next_flush_completes_it_once(memory: Memory, where: str) -> None:
    root = Path(memory.status().root)
    _die(root, where)
    assert len(memory.queue.conversations()) == 1
    memory.flush(model=Scripted([keep(TALK[0][3:])], DONE))
    assert ops(memory).count("flush") == 1 and memory.queue.conversations() == []
    text = files(memory)["memory/2026-11-20.md"].decode()
    assert text.count("We leave Heroku") == 1 and memory.health.verify() == []


# -- a dry run -----------------------------------------------------------------------------------------


def test_a_dry_run_writes_and_sends_nothing(memory: Memory) -> None:
    model = Scripted("never asked")
    before = sorted(p for p in Path(memory.status().root).rglob("*") if p.is_file())
    found, cost = memory.conversations.preview(transcript(), model=model)
    assert found.preview and cost and cost.tokens > 500 and cost.usd is None and model.asked == []
    assert sorted(p for p in Path(memory.status().root).rglob("*") if p.is_file()) == before
    endpoint = Memory.endpoint("sk-x", "", "claude-sonnet-5-5")
    _, cost = memory.conversations.preview(transcript(), model=endpoint)
    assert cost and cost.usd and 0.001 < cost.usd < 0.2
    _, free = memory.conversations.preview(transcript(), model=Memory.endpoint("", "http://127.0.0.1:1", "x"))
    assert free and free.usd == 0


# -- real transcripts ----------------------------------------------------------------------------------

REAL = sorted(SHARED.glob("*/*.jsonl")) if SHARED.is_dir() else []
REAL = [path for path in REAL if path.parent.name != "samples"]


@pytest.mark.few(2)
@pytest.mark.shared
@pytest.mark.skipif(not REAL, reason="the shared transcripts are not here")
@pytest.mark.parametrize("path", REAL, ids=lambda path: path.stem[:8])
@pytest.mark.parametrize("scripted", [False, True], ids=["alone", "scripted"])
def test_real_transcripts(memory: Memory, path: Path, scripted: bool) -> None:
    with path.open("rb") as stream:
        _, said = memory.conversations.flusher().queue_transcript(stream, force=True, queue=False)
        stream.seek(0)
        by_id = {turn.id: n for n, turn in enumerate(said)}
        wordy = [n for n, turn in enumerate(said, 1) if turn.role != "tool" and len(turn.text.split()) > 8][
            :12
        ]
        calls = [
            keep("Zanzibar paid 987,654 dollars.", " ".join(said[n - 1].text.split()[:8]), n) for n in wordy
        ]
        model = Scripted(calls, DONE) if scripted else None
        (done,) = memory.flush(stream, force=True, model=model).done
    assert done.turns == len(said) and done.facts and memory.health.verify() == []
    ways = cited(memory, by_id)
    for fact in done.facts:
        assert "Zanzibar" not in fact.text
        source = fact.source or (fact.quotes[0].source if fact.quotes else "") or ""
        near = [n for id, n in by_id.items() if source == ways[id]]
        window = [said[k].text for n in near for k in range(max(0, n - 1), min(n + 2, len(said)))]
        assert window and not made_up(fact.text, window, said[near[0]].at)
    assert ops(memory) == ["flush", "init"]
    with path.open("rb") as stream:
        assert memory.flush(stream, force=True).turns == 0


def cited(memory: Memory, entries: Iterable[str]) -> dict[str, str]:
    """How facts name the turns they are from: by a link into the session, for what tools say by the id."""
    (words,) = memory.sessions.all()
    return {entry: words.link(entry) or f"turn {memory_short(entry)}" for entry in entries}


def memory_short(name: str) -> str:
    from ua_memory.retain.ledger import short_id

    return short_id(name)


def test_a_list_of_messages_is_flushed_as_it_is(memory: Memory) -> None:
    """A session's later messages may come alone, or with those before them; a stream waits for a threshold,
    and the result says so."""
    asked: Any = {
        "role": "user",
        "content": "We decided to rent the boat.",
        "timestamp": "2026-03-05T10:00:00Z",
    }
    more: Any = {"role": "user", "content": [{"type": "text", "text": "We decided to sell the car."}]}

    def kept(*messages: Any, session: str | None = None) -> list[str]:
        return [fact.text for one in memory.flush([*messages], session=session).done for fact in one.facts]

    assert kept() == []
    assert kept(asked, session="s") == ["We decided to rent the boat."]
    assert kept(more, session="s") == ["We decided to sell the car."]
    assert (memory.store.bank.root / "memory/2026-03-05.md").exists()
    assert kept(asked, {"role": "user", "content": "We decided to buy a bike."}, session="s") == [
        "We decided to buy a bike."
    ]
    waits = memory.flush(io.BytesIO(b'[{"role": "user", "content": "We decided to swim."}]'))
    assert not waits.done and "force=True flushes it now" in waits.notes[-1]


@pytest.mark.parametrize("at", [1764000000, 1764000000.5, 1764000000000, "2025-11-24T16:00:00Z"])
def test_a_message_s_time_may_be_in_seconds(memory: Memory, at: Any) -> None:
    memory.flush([{"role": "user", "content": "We decided to rent the boat.", "timestamp": at}])
    assert (memory.store.bank.root / "memory/2025-11-24.md").exists()


def test_two_lists_that_begin_with_a_greeting_are_two_sessions(memory: Memory) -> None:
    greeting: list[Any] = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello! What is it?"},
    ]
    boat, car = (
        [*greeting, {"role": "user", "content": f"We decided to sell the {what}."}]
        for what in ("boat", "car")
    )
    names = [memory.flush(each).session for each in (boat, car, [*boat, *greeting])]
    assert names[0] == names[2] != names[1]


def test_messages_may_come_from_any_iterable(memory: Memory) -> None:
    said: list[Any] = [{"role": "user", "content": "We decided to sell the car."}]
    assert memory.flush(each for each in said).turns == 1
    assert memory.flush(deque([*said, {"role": "user", "content": "We decided to swim."}])).turns == 1
    for result in ({"temperature": 4}, 5):
        memory.flush([*said, {"role": "tool", "tool_call_id": "x", "content": result}])


@pytest.mark.parametrize(
    "message",
    [
        {"content": "We swim."}, {"role": "human", "content": "We swim."}, {"role": "user", "content": 5},
        {"role": "user", "parts": [{"text": "We swim."}]}, {"role": "model", "parts": []}, {}, "We swim.",
    ],
)  # fmt: skip
def test_what_would_save_nothing_is_no_message(memory: Memory, message: Any) -> None:
    with pytest.raises(Usage, match="a message is a dict with role and content"):
        memory.flush([{"role": "user", "content": "We decided to sell the car."}, message])


def test_turns_of_a_program(memory: Memory) -> None:
    done = memory.conversations.flush_turns(Session("my-agent", "run-1"), turns(*TALK), size=5)
    assert done and done.client == "my-agent"
    assert "· my-agent · session run-1" in files(memory)["memory/2026-11-20.md"].decode()
