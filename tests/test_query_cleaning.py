"""Queries as agents make them: what a person asked of all that reaches memory."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ua_memory.memory import Memory
from ua_memory.text.noise import CONDENSED, condense, fenced, read_query

ASKED = "what did we decide about X"
LONG = "Here is the log. " + "INFO worker took a job and let it go again. " * 80 + f"So {ASKED}? Thanks."


@pytest.mark.parametrize(
    "raw",
    [
        ASKED,
        f"  {ASKED}\n",
        f"/ask {ASKED}",
        f"/skill:ask-memory {ASKED}",
        f"/plugin:tools:ask\n{ASKED}",
        f"{fenced('search', '- 2026-11-19: Alice moved')}\n\n{ASKED}",
        f"<relevant-memories>\nold things\n</relevant-memories>\n{ASKED}",
        f"<hindsight_memories>old</hindsight_memories>{ASKED}",
        f"<system-reminder>Today is Friday.</system-reminder>\n{ASKED}",
        f"{ASKED}\n<system-reminder>The file was changed.</system-reminder>",
        f"<ide_opened_file>src/foo.py</ide_opened_file>{ASKED}",
        f"[Telegram Noor id:7 2026-11-21 10:04 UTC] {ASKED}\n[message_id: 5501]",
        f"<relevant-memories>x</relevant-memories>\n[WhatsApp +380 2026-11-21T10:04Z] {ASKED}",
        f"System: [2026-11-21 10:04:12 UTC] WhatsApp connected.\n\n{ASKED}",
        f"[Chat messages since your last reply - for context]\n[Slack Bob] lunch?\n\n"
        f"[Current message - respond to this]\n[Slack Noor] {ASKED}",
        f"[Replying to Bob id:3]\nlunch at noon?\n[/Replying]\n{ASKED}",
        "<command-message>ask is running</command-message>\n<command-name>/ask</command-name>\n"
        f"<command-args>{ASKED}</command-args>\nYou are a careful assistant. Look everywhere, " + "x" * 5000,
        f'<skill name="ask" location="/x">\nLook everywhere.\n</skill>\n\n{ASKED}',
        f"# Context from my IDE setup:\n## Open tabs:\n- a.py\n\n## My request for Codex:\n{ASKED}",
        f"> Bob: lunch at noon?\n> Alice: yes\n\n{ASKED}",
        f"User: hello\nAssistant: hello, what can I do?\nUser: {ASKED}",
        f"Human: hello\n\nAI: hello\n\nHuman: {ASKED}\n\nAI:",
    ],
)
def test_what_was_typed_wins_over_what_was_put_around_it(raw: str) -> None:
    wanted = read_query(raw)
    assert wanted.text.strip() == ASKED and wanted.why == "" and not wanted.skipped


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ("/compact", "/compact is a command"),
        ("/clear  \n", "/clear is a command"),
        ("/hindsight:status", "/hindsight:status is a command"),
        ("<command-name>/clear</command-name>\n<command-args></command-args>", "/clear is a command"),
        ("<command-name>clear</command-name>", "/clear is a command"),
        ("<task-notification>done</task-notification>", "wrote all of the query"),
        ("<system-reminder>Today is Friday.</system-reminder>", "wrote all of the query"),
        (fenced("search", "- 2026-11-19: Alice moved"), "wrote all of the query"),
        ("<local-command-stdout>ok</local-command-stdout>", "wrote all of the query"),
        ("[Request interrupted by user]", "wrote all of the query"),
        ("Read HEARTBEAT.md if it exists and follow it strictly.", "wrote all of the query"),
        (LONG, "3,"),
    ],
)
def test_what_asks_for_nothing_is_skipped_and_says_why(raw: str, said: str) -> None:
    wanted = read_query(raw)
    assert wanted.text == "" and wanted.skipped
    assert wanted.why.startswith("not searched: ") and said in wanted.why


@pytest.mark.parametrize(
    "raw",
    [
        *(
            "",
            " \n",
            "a",
            "?",
            "🎉🎉",
            "'; DROP TABLE items; --",
            "NEAR(a b)",
            "AND OR NOT",
            "*",
            '"unbalanced',
        ),
        *("text:alice", "/etc/hosts", "/tmp", "/var is full", "src/foo.py", "either/or", "a < b > c", "#123"),
        *("<div> in the footer", "Alice: what did she say", "note: buy milk", "2026-11-21", "> quoted only"),
        *("[x] done", "[2026] the year", "std::vector<int>", "why </system-reminder>", "x\0y", "\ud800"),
    ],
)
def test_an_ordinary_query_stays_as_it_is(raw: str) -> None:
    wanted = read_query(raw)
    assert wanted.text.strip() == raw.strip().replace("\ud800", "?") or wanted.text == raw
    assert wanted.why == ""


def test_an_over_long_query_is_condensed_on_request() -> None:
    wanted = read_query(LONG, "condense")
    assert wanted.text.startswith("Here is the log.") and wanted.text.endswith(f"So {ASKED}? Thanks.")
    assert len(wanted.text) <= CONDENSED and not wanted.skipped and wanted.long
    assert f"condensed to “{wanted.text}”" in wanted.why
    assert read_query(LONG, longest=len(LONG)).text == LONG and read_query("x" * 11, longest=10).skipped
    assert condense("x" * 3000) == "x" * CONDENSED
    assert condense("去哪里？" + "好。" * 900).startswith("去哪里？")


@given(st.text(), st.integers(1, 50))
def test_any_text_is_read(raw: str, longest: int) -> None:
    for behavior in ("skip", "condense"):
        wanted = read_query(raw, behavior, longest)
        assert len(wanted.text) <= max(longest, CONDENSED)
        assert wanted.skipped or wanted.text or not raw.strip() or wanted.text == raw


def test_every_door_reads_a_query_so(tmp_path_factory: pytest.TempPathFactory) -> None:
    with Memory.init(tmp_path_factory.mktemp("bank")) as memory:
        memory.insert("We decided about X to leave Heroku")
        answers = memory.search_many([f"/ask {ASKED}", "/compact", ASKED, LONG], by_words=True)
        assert [len(answer.hits) for answer in answers] == [1, 0, 1, 0]
        assert answers[0] == answers[2] and "not searched" in answers[1].notes[0]
        read_as = memory.explain("/ask whom did we recieve on Heroko in May")
        assert "ask" not in read_as.terms and read_as.meant == {"heroko": "heroku"}
        assert "command" in memory.explain("/compact").why
