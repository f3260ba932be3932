"""The odd things that clients, crashes and pipes do, one by one."""

from __future__ import annotations

import gzip
import io
import json
from typing import Any

import pytest

from ua_memory.clients.transcripts import FORMATS, read, sniff
from ua_memory.clients.turns import LONGEST_LINE, Turn, commit_subject, is_ours
from ua_memory.errors import Malformed, Usage
from ua_memory.text.noise import RECALL_CLOSE, RECALL_OPEN, assistant_text, typed_text, without_envelope


def lines(*records: Any) -> io.BytesIO:
    return io.BytesIO(b"".join(json.dumps(record).encode() + b"\n" for record in records))


def record(kind: str, uuid: str, parent: str | None, text: str, **more: Any) -> dict[str, Any]:
    """A Claude Code record."""
    message = {"role": kind, "id": f"msg_{uuid}", "content": [{"type": "text", "text": text}]}
    return {"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": "s1", "message": message, **more}


def said(stream: io.BytesIO, **options: Any) -> list[str]:
    return [turn.text for turn in read(stream, **options)]


# -- paths, forks, broken lines -------------------------------------------------------------------------


def test_the_marks_of_a_dropped_branch_count_up_to_the_fork() -> None:
    records = [
        record("user", "a", None, "one"),
        record("assistant", "b", "a", "two"),
        record("user", "x", "b", "dropped"),
        record("assistant", "y", "x", "dropped too"),
        record("user", "c", "b", "three"),
        record("assistant", "d", "c", "four"),
    ]
    assert said(lines(*records)) == ["one", "two", "three", "four"]
    assert said(lines(*records), since="y") == ["three", "four"]
    assert said(lines(*records), since=["a", "y"]) == ["three", "four"]
    assert len(said(lines(*records), since="nowhere")) == 4


def test_a_broken_line_in_the_chain_does_not_cost_what_stands_before_it() -> None:
    whole = lines(*(record("user", str(n), str(n - 1) if n else None, f"turn {n}") for n in range(6)))
    raw = whole.getvalue().splitlines(keepends=True)
    raw[3] = b"\0" * 50 + b"\n"
    reading = read(io.BytesIO(b"".join(raw)))
    assert [turn.text for turn in reading] == ["turn 0", "turn 1", "turn 2", "turn 4", "turn 5"]
    assert (reading.broken, reading.cut, reading.problems[0].line) == (1, False, 4)


def test_a_last_line_without_newline_is_whole_if_it_parses() -> None:
    data = lines(record("user", "a", None, "one"), record("user", "b", "a", "two")).getvalue().rstrip(b"\n")
    assert said(io.BytesIO(data)) == ["one", "two"]
    reading = read(io.BytesIO(data[:-1]))
    assert ([turn.text for turn in reading], reading.cut) == (["one"], True)


def test_a_transcript_that_grows_while_it_is_read_stays_what_it_was() -> None:
    stream = lines(record("user", "a", None, "one"), record("assistant", "b", "a", "two"))
    reading = read(stream)
    stream.seek(0, io.SEEK_END)
    stream.write(lines(record("user", "c", "b", "three")).getvalue())
    assert [turn.text for turn in reading] == ["one", "two"]
    stream.seek(0)
    assert said(stream, since="b") == ["three"]


def test_a_record_that_was_copied_by_a_resume_is_read_once() -> None:
    first = [record("user", "a", None, "one"), record("assistant", "b", "a", "two")]
    assert said(lines(*first, *first, record("user", "c", "b", "three"))) == ["one", "two", "three"]


def test_a_line_longer_than_the_limit_is_skipped_and_said_so() -> None:
    long = b'{"type":"user","uuid":"b","message":{"content":"' + b"x" * LONGEST_LINE + b'"}}\n'
    data = lines(record("user", "a", None, "one")).getvalue() + long
    reading = read(io.BytesIO(data + lines(record("user", "c", "b", "three")).getvalue()))
    assert [turn.text for turn in reading] == ["one", "three"]
    assert reading.broken == 1 and "16 MB" in reading.problems[0].message


def test_inline_sidechains_are_not_mixed_into_the_main_line() -> None:
    side = [record("user", "s", None, "look", isSidechain=True, agentId="g")]
    side.append(record("assistant", "t", "s", "found", isSidechain=True, agentId="g"))
    main = [record("user", "a", None, "one"), record("assistant", "b", "a", "two")]
    assert said(lines(main[0], *side, main[1])) == ["one", "two"]
    assert [(turn.role, turn.agent) for turn in read(lines(*side))] == [
        ("assistant", "g"),
        ("assistant", "g"),
    ]


def test_an_old_compaction_without_a_boundary_keeps_the_turns_before_it() -> None:
    text = "This session is being continued from a previous conversation that ran out of context."
    summary = record("user", "s", None, text)
    reading = read(lines(record("user", "a", None, "one"), summary, record("user", "b", "s", "two")))
    assert [turn.text for turn in reading] == ["one", "two"]


# -- sizes ---------------------------------------------------------------------------------------------


def test_usage_counts_an_api_message_once_and_not_after_a_compaction() -> None:
    usage = {"input_tokens": 10, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 1000}
    a = record("assistant", "a", None, "one")
    b = record("assistant", "b", "a", "two")
    for one, output in ((a, 1), (b, 7)):
        one["message"] |= {"id": "msg_1", "model": "claude", "usage": {**usage, "output_tokens": output}}
    boundary = {"type": "system", "subtype": "compact_boundary", "uuid": "c", "logicalParentUuid": "b"}
    assert read(lines(a, b)).context_size == 1117
    after = read(lines(a, b, boundary, record("user", "d", "c", "three")))
    assert after.context_size is None
    assert list(after.context()) == ["three"]
    assert after.boundary is not None and [t.line >= after.boundary.kept for t in after] == [
        False,
        False,
        True,
    ]


def test_context_counts_tool_outputs_which_turns_never_show() -> None:
    messages = [
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "t", "name": "Read", "input": {"path": "x"}}],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "OUTPUT"}]},
    ]
    reading = read(io.BytesIO(json.dumps(messages).encode()))
    assert "OUTPUT" in list(reading.context())
    assert [turn.text for turn in reading] == ["Read x: ok"]


# -- what is never read ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a <system-reminder>no</system-reminder> b", "a  b"),
        (f"{RECALL_OPEN} at='1'>no{RECALL_CLOSE}yes", "yes"),
        (f"yes {RECALL_OPEN}>no end", "yes"),
        ("<hindsight-recall>no</hindsight-recall>yes<hindsight-recall>no</hindsight-recall>", "yes"),
        ("please strip <system-reminder> blocks", "please strip <system-reminder> blocks"),
        ("<system-reminder>never closed", ""),
        ("<system-reminder> blocks: please strip them", "<system-reminder> blocks: please strip them"),
        ("<command-name>/x</command-name>", ""),
        ("[Request interrupted by user for tool use]", ""),
        ("a < b and <b>bold</b>", "a < b and <b>bold</b>"),
        ("half a pair \ud83d", "half a pair ?"),
    ],
)
def test_typed_keeps_what_the_person_typed(text: str, left: str) -> None:
    assert typed_text(text) == left


def test_stripping_is_linear() -> None:
    assert typed_text("x " + "<system-reminder>" * 100_000) != ""
    assert typed_text("<system-reminder></system-reminder>" * 50_000 + "y") == "y"


def test_assistants_do_not_repeat_recalled_memory_or_silence() -> None:
    assert (
        assistant_text("a <memory-context>no</memory-context>b <system-reminder>") == "a b <system-reminder>"
    )
    assert assistant_text(" NO_REPLY ") == ""


def test_envelopes_of_channels_are_taken_off() -> None:
    assert without_envelope("[WhatsApp +1 2026-01-20T14:03Z] hi") == "hi"
    assert without_envelope("[todo] buy milk") == "[todo] buy milk"
    assert without_envelope("[Slack x 2026-01-20 14:03] hi\n[slack message id: 1 channel: 2]") == "hi"


@pytest.mark.parametrize(
    ("name", "arguments", "server", "own"),
    [
        ("mcp__ua-memory__list_pages", {}, "", True),
        ("mcp__plugin_x_mem__memory_search", {}, "", True),
        ("mcp_mem_memory_get", {}, "", True),
        ("ua-memory__recall", {}, "", True),
        ("get_core_memory_blocks", None, "", True),
        ("memory", {"command": "view", "path": "/memories"}, "", True),
        ("Bash", {"command": "cd x && ua-memory insert 'a'"}, "", True),
        ("shell", {"command": ["bash", "-lc", "/opt/bin/ua-memory search x"]}, "", True),
        ("recall", {"query": "x"}, "", True),
        ("mcp__notes__recall", {"query": "x"}, "", False),
        ("mcp__notes__search", {"query": "x"}, "", False),
        ("list_pages", {}, "notion", False),
        ("mcp__notion__create_page", {}, "", False),
        ("Bash", {"command": "git commit -m 'Fix ua-memory search'"}, "", False),
        ("Read", {"file_path": "/x/ua-memory.toml"}, "", False),
    ],
)
def test_our_own_tools_are_known_under_every_name(name: str, arguments: Any, server: str, own: bool) -> None:
    assert is_ours(name, arguments, server) is own


@pytest.mark.parametrize(
    ("command", "subject"),
    [
        ('git commit -m "Add a \\"quoted\\" word" -m "body"', 'Add a "quoted" word'),
        ("git commit -am 'One' && git commit -qm 'Two'", "One / Two"),
        ("git commit --message='Three'", "Three"),
        ("git commit -m \"$(cat <<'EOF'\nFour\n\nbody\nEOF\n)\"", "Four"),
        ("git commit -F - <<'EOF'\nFive\nEOF", "Five"),
        ("git commit --amend --no-edit", ""),
    ],
)
def test_the_subject_of_a_commit(command: str, subject: str) -> None:
    assert commit_subject(command) == subject


def test_a_commit_without_a_message_takes_git_s_own_word_and_a_failed_one_none() -> None:
    def turns(error: bool) -> list[str]:
        made = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "git commit --amend"}}
        result = {
            "type": "tool_result",
            "tool_use_id": "t",
            "content": "[main 1a2b3c4] Six\n x",
            "is_error": error,
        }
        messages = [{"role": "assistant", "content": [made]}, {"role": "user", "content": [result]}]
        return said(io.BytesIO(json.dumps(messages).encode()))

    assert turns(False) == ["Bash git commit --amend: ok; commit: Six"]
    assert turns(True) == ["Bash git commit --amend: error"]


# -- containers -----------------------------------------------------------------------------------------


def test_a_large_list_of_messages_is_read_piece_by_piece() -> None:
    messages = [{"role": "user", "content": f"message {n} " + "é" * 40_000} for n in range(40)]
    for indent in (None, 2):
        for value in (messages, {"model": "m", "tools": [{"name": "x" * 90_000}], "messages": messages}):
            reading = read(io.BytesIO(json.dumps(value, indent=indent, ensure_ascii=False).encode()))
            assert [turn.id for turn in reading] == [f"m{n}" for n in range(1, 41)]
            assert not reading.problems
    cut = read(io.BytesIO(json.dumps(messages).encode()[:1_000_000]))
    assert cut.cut and 1 < len(list(cut)) < 40


def test_compressed_and_foreign_files() -> None:
    stream = lines(record("user", "a", None, "one"))
    packed = gzip.compress(stream.getvalue())
    assert said(io.BytesIO(packed)) == ["one"]
    for data, hint in (
        (b"\x28\xb5\x2f\xfd____", "zstd -dc"),
        (b"SQLite format 3\0", "export"),
        (b'{"type":"unheard-of"}\n', "claude-code"),
        (b'{"half', "claude-code"),
    ):
        with pytest.raises(Malformed) as error:
            read(io.BytesIO(data))
        assert hint in (error.value.hint or "")
    with pytest.raises(Usage):
        read(stream, client="gemini")


def test_an_empty_transcript_is_empty() -> None:
    for client in (*FORMATS, None):
        reading = read(io.BytesIO(b""), client=client)
        assert (list(reading), reading.context_size, reading.boundary) == ([], None, None)


def test_a_stream_is_read_from_where_it_stands() -> None:
    stream = io.BytesIO(b"User: skipped\nUser: read\nAssistant: yes\n")
    stream.readline()
    assert said(stream) == ["read", "yes"]


def test_text_without_speakers_is_one_person_s_and_a_book_is_cut() -> None:
    assert said(io.BytesIO(b"Alice: hi\nBob: hello\n")) == ["Alice: hi\nBob: hello"]
    book = list(read(io.BytesIO(b"A line of a book.\n" * 20_000)))
    assert all(isinstance(t, Turn) and len(t.text) < 40_000 for t in book) and len(book) > 5
    assert len({turn.id for turn in book}) == len(book)
    single = list(read(io.BytesIO(b"word " * 100_000)))
    assert len({turn.id for turn in single}) == len(single) > 3


def test_sniffing_survives_a_first_line_longer_than_the_head() -> None:
    long = "x" * 70_000
    assert (
        sniff(json.dumps({"parentUuid": None, "sessionId": "s", "message": long}).encode()[:65_536])
        == "claude-code"
    )
    assert (
        sniff(json.dumps({"messages": [{"role": "user", "content": long}]}).encode()[:65_536]) == "messages"
    )
    assert sniff(b"[12:30] Alice: hi\n") == "text"


RECORDS = [record("user" if n % 2 else "assistant", str(n), str(n - 1), f"turn {n}") for n in range(1, 9)]


@pytest.mark.parametrize(
    "junk", [b"\0" * 40 + b"\n", b"not JSON\n", b"", b'l", "text": "cut"}]}}\n', b'{"type": "us\n']
)
@pytest.mark.parametrize("long", [0, 200_000])
def test_a_damaged_beginning_hides_no_client(junk: bytes, long: int) -> None:
    raw = (b"x" * long) + junk + lines(*RECORDS).getvalue()
    reading = read(io.BytesIO(raw if junk or long else raw[30:]))
    assert reading.session.client == "claude-code" and reading.broken == 1
    assert [turn.text for turn in reading][-6:] == [f"turn {n}" for n in range(3, 9)]


def test_messages_one_to_a_line_may_begin_damaged() -> None:
    rows = [{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}]
    damaged = io.BytesIO(b'": "cut"}\n' + lines(*rows).getvalue())
    assert said(damaged) == ["one", "two"]
    spread = "[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n"
    assert said(io.BytesIO(spread.encode())) == ["one", "two"]


@pytest.mark.parametrize(
    "raw",
    [
        b'x": 1}\n' + b'{"hello": 1}\n' * 3,
        b' the end of a long record"}]}, "isMeta": true, "n": 1}\n',
        b'cut\n{"a": 1\n{"b": \n{"c"\n',
        b"\x7fELF\x02\x01\x01\0\0\0 some words",
        "UTF-16 without its mark".encode("utf-16-le"),
    ],
)
def test_what_is_no_text_is_nobodys_words(raw: bytes) -> None:
    with pytest.raises(Malformed):
        read(io.BytesIO(raw))


def test_a_persons_text_may_quote_a_record() -> None:
    pasted = "Look at this:\n" + json.dumps(RECORDS[0]) + "\nWhy is the parent empty?\n"
    assert read(io.BytesIO(pasted.encode())).session.client == "text"


@pytest.mark.few(1)
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_is_read_by_its_mark(encoding: str) -> None:
    mark = "" if encoding == "utf-16" else "\ufeff"
    text = "User: Wir ziehen nach Köln 💾.\nAssistant: gut\n" * 40_000
    assert said(io.BytesIO((mark + text).encode(encoding)))[-2:] == ["Wir ziehen nach Köln 💾.", "gut"]
    rows = lines(*RECORDS).getvalue().decode()
    assert said(io.BytesIO((mark + rows).encode(encoding))) == [f"turn {n}" for n in range(1, 9)]


def test_bytes_that_are_not_utf_8_are_counted() -> None:
    reading = read(io.BytesIO("User: Köln für \ufffd immer\n".encode().replace(b"\xc3\xb6", b"\xf6")))
    assert reading.undecoded == 1 and [turn.text for turn in reading] == ["K\ufffdln für \ufffd immer"]
    raw = lines(*RECORDS).getvalue().replace(b"turn 3", b"t\xfcrn 3")
    assert read(io.BytesIO(raw)).undecoded == 1
