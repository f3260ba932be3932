"""The door to a model, over real HTTP on loopback: answers, every failure, the tool loop, the cache."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from fake_model import FakeModel

from ua_memory.errors import (
    BudgetSpent,
    KeyRejected,
    ModelMisbehaved,
    ModelRefused,
    ModelUnavailable,
    RequestRejected,
)
from ua_memory.llm.client import LOCAL_TIMEOUTS, Claude, MalformedStream, Timeouts, build_request, events
from ua_memory.llm.client import RedactedTexts as Words
from ua_memory.llm.ledger import Ledger, Limits, Meter
from ua_memory.llm.model import Endpoint, Reply, user
from ua_memory.llm.model import TokenUsage as Usage
from ua_memory.llm.tools import Bounds, Tool, ToolError, check_schema, closed, run_tools, schema_errors
from ua_memory.text import tokens

KEY = "sk-ant-api03-" + "k7Qm2x" * 15
HALF = "half " * 40
QUICK = Timeouts(connect=2.0, read=0.3, answer=0.8, retries=1, pause=0.01, longest_wait=1.0)
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.fixture
def meter(tmp_path: Path) -> Meter:
    return Meter(Ledger(tmp_path / "local"), Limits(), lambda: NOON)


def ask(fake: FakeModel, meter: Meter, patience: Timeouts = QUICK, text: str = "hi", **more: Any) -> Reply:
    with Claude(Endpoint(KEY, fake.url), meter, timeouts=patience) as model:
        return model.ask("Be brief.", [user(text)], purpose="test", **more)


# -- answers -------------------------------------------------------------------------------------------


def test_an_answer(meter: Meter) -> None:
    usage = {"input_tokens": 7, "output_tokens": 3, "cache_read_input_tokens": 5}
    with FakeModel({"thinking": "hm", "text": "Grüße, 你好\u2028" * 9, "usage": usage}) as fake:
        reply = ask(fake, meter)
    assert (reply.text, reply.stop, reply.calls) == ("Grüße, 你好\u2028" * 9, "end_turn", ())
    assert reply.usage == Usage(input=7, output=3, cache_read=5)
    assert (reply.model, reply.request_id) == ("claude-sonnet-5-5", "req_scripted")
    thought = {"type": "thinking", "thinking": "hm", "signature": "c2lnbmVk"}
    assert reply.message == {"role": "assistant", "content": [thought, {"type": "text", "text": reply.text}]}
    assert fake.headers[0]["authorization"] == f"Bearer {KEY}"
    assert fake.bodies[0]["stream"] is True


def test_neither_key_nor_address_come_from_the_environment(
    meter: Meter, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "HTTP_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with FakeModel() as fake, Claude(Endpoint(base_url=fake.url), meter) as model:
        assert model.ask("", [user("hi")], purpose="test").text == "ok"
    assert fake.headers[0]["authorization"] == "Bearer none"


def test_secrets_are_taken_out_of_everything_that_goes_out(meter: Meter) -> None:
    own = {"ticket": r"TICKET-\d+"}
    said = [
        user(f"my key is {KEY}, \ud800 and TICKET-77"),
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "as it was", "signature": "c2ln"},
            {"type": "tool_use", "id": "toolu_1", "name": "keep", "input": {"a": [{"b": KEY}], "n": 1}},
        ]},
        user({"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": KEY}]}),
    ]  # fmt: skip
    tool = {"name": "keep", "description": f"not {KEY}", "input_schema": {"type": "object"}}
    endpoint = Endpoint("sk-test")
    with FakeModel() as fake:
        with Claude(Endpoint(endpoint.api_key, fake.url), meter, patterns=own) as model:
            model.ask(f"secret: {KEY}", said, purpose="test", tools=[tool])
        with pytest.raises(ValueError, match="'image' is never sent"):
            build_request(Words(), "", [user({"type": "image"})])
    body = json.dumps(fake.bodies[0])
    assert KEY not in body and "TICKET-77" not in body
    assert body.count("[redacted: anthropic-key]") == 5 and "[redacted: ticket]" in body
    assert "as it was" in body and '"toolu_1"' in body
    assert "sk-test" not in repr(endpoint)


def test_the_sdk_is_imported_by_the_first_request_only() -> None:
    code = (
        "import sys, ua_memory.llm.model; assert not {'anthropic', 'httpx2', 'tiktoken'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parent.parent)


# -- failures ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "kind", "tries"),
    [
        (400, RequestRejected, 1),
        (401, KeyRejected, 1),
        (402, KeyRejected, 1),
        (403, KeyRejected, 1),
        (404, RequestRejected, 1),
        (413, RequestRejected, 1),
        (408, ModelUnavailable, 2),
        (409, ModelUnavailable, 2),
        (429, ModelUnavailable, 2),
        (500, ModelUnavailable, 2),
        (529, ModelUnavailable, 2),
    ],
)
def test_an_error_status(meter: Meter, status: int, kind: type[Exception], tries: int) -> None:
    with FakeModel({"error": status, "message": f"no, {KEY}\nis wrong"}) as fake:
        with pytest.raises(kind) as raised:
            ask(fake, meter)
        assert len(fake.bodies) == tries
        assert f"answered {status}: no, [key] is wrong" in str(raised.value)
        assert raised.value.where == fake.url and raised.value.hint
    spent = meter._ledger.spent().total
    assert (spent.requests, spent.failed, spent.open, spent.usage) == (tries, tries, 0, Usage())


@pytest.mark.parametrize(
    "first",
    [
        {"error": 529},
        {"error": 429, "retry_after": 0.05},
        {"error": 400, "headers": {"x-should-retry": "true"}},
        {"cut": 0},
        {"text": HALF, "cut": 1},
        {"text": HALF, "cut": 6},
        {"text": HALF, "short": 6},
        {"text": "half", "short": 0},
        {"text": "half", "broken": "overloaded_error"},
        {"text": "half", "broken": "api_error"},
        {"garbage": "<html>log in to the café's network</html>"},
        {"garbage": "data: {nonsense\n\n"},
        {"garbage": 'data: {"type": "content_block_delta", "index": 7, "delta": {"text": "x"}}\n\n'},
        {"text": "late", "hang": 5},
        {"text": HALF, "cut": 6, "hang": 5},
    ],
    ids=str,
)
def test_what_passes_is_tried_again(meter: Meter, first: Mapping[str, Any]) -> None:
    with FakeModel(first, {"text": "whole"}) as fake:
        reply = ask(fake, meter)
        assert (reply.text, len(fake.bodies)) == ("whole", 2)
        assert fake.bodies[0] == fake.bodies[1]
    spent = meter._ledger.spent().total
    assert (spent.requests, spent.failed, spent.open) == (2, 1, 0)


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        ({"cut": 0}, "cannot be reached"),
        ({"text": HALF, "cut": 6}, "was cut off"),
        ({"text": HALF, "short": 6}, "is incomplete"),
        (
            {"text": "half", "broken": "overloaded_error"},
            "ended its answer early: overloaded_error, scripted",
        ),
        ({"text": "late", "hang": 5}, "did not respond in time"),
        ({"text": HALF, "cut": 6, "hang": 5}, "stopped coming"),
        ({"garbage": "<html>"}, "is incomplete"),
    ],
    ids=str,
)
def test_what_does_not_pass_ends(meter: Meter, reply: Mapping[str, Any], says: str) -> None:
    with FakeModel(reply) as fake:
        with pytest.raises(ModelUnavailable, match=says) as raised:
            ask(fake, meter)
        assert len(fake.bodies) == 2
        assert "(2 tries)" in str(raised.value)
    assert meter.usage.prompt > 0, "a prompt that may have been read may have to be paid for"


@pytest.mark.parametrize("kind", ["comments", "pings"])
def test_an_endpoint_that_only_keeps_the_line_open(meter: Meter, kind: str) -> None:
    with FakeModel({"drip": kind}) as fake:
        with pytest.raises(ModelUnavailable, match=r"longer than 0\.8 s"):
            ask(fake, meter)
        assert len(fake.bodies) == 1


def test_errors_in_mid_stream_that_do_not_pass(meter: Meter) -> None:
    for broken, kind in (("authentication_error", KeyRejected), ("invalid_request_error", RequestRejected)):
        with FakeModel({"text": "half", "broken": broken}) as fake:
            with pytest.raises(kind):
                ask(fake, meter)
            assert len(fake.bodies) == 1


def test_a_server_of_ones_own_is_given_time_once(meter: Meter) -> None:
    """It says nothing while it reads a long prompt; what was too slow is not asked for all over again."""
    assert Claude(Endpoint(KEY, "http://127.0.0.1:1"), meter)._timeouts == LOCAL_TIMEOUTS
    assert Claude(Endpoint(KEY, "https://api.anthropic.com"), meter)._timeouts == Timeouts()
    unhurried = replace(QUICK, retry_slow=False)
    slow = pytest.raises(ModelUnavailable, match=r"did not respond in time: 0\.3 s")
    with FakeModel({"text": "late", "hang": 5}) as fake, slow as raised:
        ask(fake, meter, unhurried)
    assert len(fake.bodies) == 1 and "UA_CONTEXT_WINDOW" in str(raised.value.hint)


def test_nobody_there(meter: Meter) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    with (
        Claude(Endpoint(KEY, url), meter, timeouts=QUICK) as model,
        pytest.raises(ModelUnavailable, match=r"cannot be reached.*2 tries"),
    ):
        model.ask("", [user("hi")], purpose="test")
    assert meter.usage == Usage()


@pytest.mark.parametrize("wait", ["3600", "Sun, 22 Nov 2026 12:00:00 GMT"])
def test_a_long_retry_after_is_not_waited_for(meter: Meter, wait: str) -> None:
    with FakeModel({"error": 429, "retry_after": wait}) as fake:
        with pytest.raises(ModelUnavailable) as raised:
            ask(fake, meter)
        assert len(fake.bodies) == 1
        assert raised.value.hint == ("try again in 3600 s" if wait == "3600" else "try again later")


def test_a_redirect_is_not_followed(meter: Meter) -> None:
    with FakeModel() as other, FakeModel({"error": 307, "headers": {"location": other.url}}) as fake:
        with pytest.raises(RequestRejected, match="which is not followed"):
            ask(fake, meter)
        assert not other.bodies


def test_a_refusal(meter: Meter) -> None:
    details = {"type": "refusal", "category": "bio", "explanation": "This looks harmful."}
    with FakeModel({"text": "I", "stop": "refusal", "details": details}) as fake:
        with pytest.raises(ModelRefused, match=r"claude-sonnet-5-5 declined to answer: This looks harmful\."):
            ask(fake, meter)
        assert len(fake.bodies) == 1
    assert meter.usage.total > 0


@pytest.mark.parametrize(
    ("endpoint", "kind"),
    [
        (Endpoint(), KeyRejected),
        (Endpoint("sk\n\nx"), KeyRejected),
        (Endpoint("schlüssel"), KeyRejected),
        (Endpoint("sk-x", "localhost:8080"), RequestRejected),
        (Endpoint("sk-x", "ftp://localhost"), RequestRejected),
    ],
)
def test_an_endpoint_that_cannot_be_one(meter: Meter, endpoint: Endpoint, kind: type[Exception]) -> None:
    with Claude(endpoint, meter) as model, pytest.raises(kind) as raised:
        model.ask("", [user("hi")], purpose="test")
    assert not endpoint.api_key or endpoint.api_key not in str(raised.value)


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_events_however_the_bytes_are_cut(size: int) -> None:
    raw = 'event: a\r\ndata: {"type": "é\u2028"}\r\n\r\n: comment\n\n'.encode()
    raw += b'data: {"type":\ndata: "b"}\n\ndata: [1]\n\n'
    chunks = [raw[at : at + size] for at in range(0, len(raw), size)]
    assert list(events(chunks)) == [{"type": "é\u2028"}, {"type": "b"}]
    with pytest.raises(MalformedStream):
        list(events([b"data: {\n\n"]))


# -- the tool loop -------------------------------------------------------------------------------------


class Kept:
    """Two tools and what they were called with."""

    def __init__(self) -> None:
        self.facts: list[str] = []
        text = {"type": "string", "minLength": 1, "maxLength": 200}
        tags = {"type": "array", "items": {"type": "string"}, "maxItems": 3}
        fact = {"type": "object", "properties": {"content": text, "tags": tags}, "required": ["content"]}
        nothing: dict[str, Any] = {"type": "object", "properties": {}}
        self.tools = {
            "keep": Tool("Keep a fact.", fact, self.keep),
            "look": Tool("Look.", nothing, lambda _: "nothing yet"),
            "finish": Tool("End.", nothing, lambda _: "", ends=True),
        }

    def keep(self, given: Mapping[str, Any]) -> str:
        if "bad" in given["content"]:
            raise ToolError("not that one")
        self.facts.append(given["content"])
        return f"kept {len(self.facts)}"


def run(fake: FakeModel, meter: Meter, kept: Kept, text: str = "read this", **more: Any) -> Any:
    unhurried = replace(QUICK, read=10.0, answer=20.0)  # a loop is not about time: other work may slow it
    with Claude(Endpoint(KEY, fake.url, "claude-haiku-5-5"), meter, timeouts=unhurried) as model:
        return run_tools(model, "Keep facts.", [user(text)], kept.tools, purpose="flush", **more)


def keep(*contents: str) -> dict[str, Any]:
    return {"calls": [("keep", {"content": each}) for each in contents]}


def results(body: Mapping[str, Any]) -> list[tuple[str, bool]]:
    return [(block["content"], block.get("is_error", False)) for block in body["messages"][-1]["content"]]


def test_a_loop_answers_parallel_calls_together(meter: Meter) -> None:
    kept, seen = Kept(), []
    first = {
        "thinking": "hm",
        "text": "Two.",
        "calls": [("keep", {"content": "a"}), ("keep", {"content": "b"})],
    }
    with FakeModel(first, {"calls": [("look", {})]}, {"text": "Done."}) as fake:
        outcome = run(fake, meter, kept, on_reply=seen.append)
    assert kept.facts == ["a", "b"]
    assert (outcome.ended, outcome.text, outcome.turns, outcome.calls, outcome.refused) == (
        "done", "Done.", 3, 3, 0,
    )  # fmt: skip
    assert outcome.require_done() is outcome
    assert results(fake.bodies[1]) == [("kept 1", False), ("kept 2", False)]
    ids = [block["tool_use_id"] for block in fake.bodies[1]["messages"][-1]["content"]]
    assert ids == [call.id for call in seen[0].calls]
    assert fake.bodies[1]["messages"][1]["content"][0]["type"] == "thinking"
    assert outcome.usage == meter.usage and len(seen) == 3


def test_calls_that_are_none_are_told_so_and_not_done(meter: Meter) -> None:
    kept = Kept()
    calls = [
        ("rm", {"path": "/"}),
        ("keep", {}),
        ("keep", {"content": "x" * 201}),
        ("keep", {"content": 7}),
        ("keep", {"content": "x", "path": "/etc/passwd"}),
        ("keep", '{"content": "cut o'),
        ("keep", '["content"]'),
        ("keep", {"content": "bad"}),
        ("keep", {"content": "good"}),
    ]
    with FakeModel({"calls": calls}, {"text": "Done."}) as fake:
        outcome = run(fake, meter, kept)
    assert kept.facts == ["good"] and (outcome.calls, outcome.refused) == (1, 8)
    assert results(fake.bodies[1]) == [
        ("there is no tool 'rm'; there are keep, look, finish", True),
        ("'content' is a required property", True),
        (f"content: '{'x' * 79}…{'x' * 107}' is too long", True),
        ("content: 7 is not of type 'string'", True),
        ("Additional properties are not allowed ('path' was unexpected)", True),
        ("the input is no JSON object", True),
        ("the input is no JSON object", True),
        ("not that one", True),
        ("kept 1", False),
    ]


def test_nonsense_without_end(meter: Meter) -> None:
    with FakeModel({"calls": [("rm", {})]}) as fake:
        outcome = run(fake, meter, Kept())
    assert (outcome.ended, outcome.turns) == ("nonsense", 3)
    with pytest.raises(ModelMisbehaved, match="invalid or repeated calls; none of it was saved"):
        outcome.require_done()


def test_the_same_call_without_end(meter: Meter) -> None:
    with FakeModel(keep("a")) as fake:
        assert run(fake, meter, Kept()).ended == "nonsense"
        assert len(fake.bodies) == 4


def test_new_calls_without_end(meter: Meter) -> None:
    kept = Kept()
    with FakeModel(*(keep(f"fact {n}") for n in range(9))) as fake:
        assert run(fake, meter, kept, bounds=Bounds(turns=5)).ended == "turns"
        assert len(fake.bodies) == len(kept.facts) == 5
    with FakeModel(*(keep(f"{n}", f"{n}b") for n in range(9))) as fake:
        assert run(fake, meter, kept, bounds=Bounds(calls=5)).ended == "calls"
        assert len(fake.bodies) == 3
    with FakeModel(keep(*map(str, range(9))), {"text": "Done."}) as fake:
        assert run(fake, meter, kept, bounds=Bounds(at_once=2)).refused == 7


def test_an_answer_that_is_too_long(meter: Meter) -> None:
    kept = Kept()
    cut = {"calls": [("keep", {"content": "whole"}), ("keep", {"content": "cut o"})], "stop": "max_tokens"}
    with FakeModel(cut, {"text": "Done."}) as fake:
        assert run(fake, meter, kept).ended == "done"
        assert kept.facts == ["whole"]
        assert [block["name"] for block in fake.bodies[1]["messages"][1]["content"]] == ["keep"]
    for reply in ({"text": "on and on", "stop": "max_tokens"}, {**keep("cut o"), "stop": "max_tokens"}):
        with FakeModel(reply) as fake:
            assert run(fake, meter, kept).ended == "cut"
    assert kept.facts == ["whole"]


@pytest.mark.parametrize(
    ("reply", "ended"),
    [
        ({"text": "so far", "stop": "model_context_window_exceeded"}, "window"),
        ({**keep("a", "b"), "stop": "model_context_window_exceeded"}, "window"),
        ({"text": "what?", "stop": "tool_use"}, "nonsense"),
        ({"text": "what?", "stop": "made_up"}, "nonsense"),
        ({"stop": "pause_turn"}, "nonsense"),
        ({"calls": [("finish", {})]}, "done"),
        ({**keep("a"), "stop": "end_turn"}, "nonsense"),  # local servers say so; the calls count
        ({"stop": "end_turn"}, "done"),
    ],
    ids=str,
)
def test_other_ends(meter: Meter, reply: Mapping[str, Any], ended: str) -> None:
    with FakeModel(reply) as fake:
        assert run(fake, meter, Kept()).ended == ended


def test_a_pause_is_gone_on_from(meter: Meter) -> None:
    with FakeModel({"text": "wait", "stop": "pause_turn"}, {"text": "Done."}) as fake:
        assert run(fake, meter, Kept()).text == "Done."
        assert fake.bodies[1]["messages"][-1] == {
            "role": "assistant", "content": [{"type": "text", "text": "wait"}],
        }  # fmt: skip
    with FakeModel({"text": "wait", "stop": "pause_turn"}) as fake:
        assert run(fake, meter, Kept(), bounds=Bounds(turns=4)).ended == "turns"


def test_a_failure_in_the_middle_of_a_loop_comes_through(meter: Meter, tmp_path: Path) -> None:
    kept = Kept()
    with FakeModel(keep("a"), {"error": 401}) as fake, pytest.raises(KeyRejected):
        run(fake, meter, kept)
    small = Meter(Ledger(tmp_path / "small"), Limits(run_tokens=22_000), lambda: NOON)
    with FakeModel(*(keep(f"fact {n}") for n in range(20))) as fake:
        with pytest.raises(BudgetSpent, match="of 22,000 tokens are used in this run") as raised:
            run(fake, small, kept)
        assert 1 < len(fake.bodies) < 20
        assert raised.value.hint == "raise limits.run_tokens"
    assert small.usage.total <= 22_000


def test_an_error_of_a_tool_ends_the_loop(meter: Meter) -> None:
    def full(_: object) -> str:
        raise OSError("the disk is full")

    kept = Kept()
    kept.tools["keep"] = Tool("Keep.", kept.tools["keep"].schema, full)
    with FakeModel(keep("a")) as fake, pytest.raises(OSError, match="disk"):
        run(fake, meter, kept)


# -- the cache -----------------------------------------------------------------------------------------


def prefixes(body: Mapping[str, Any]) -> tuple[bytes, list[bytes]]:
    """A request as the cache sees it, tools, system and messages without their marks; and each prefix
    of it that ends in a mark."""
    parts: list[bytes] = []
    marked = []
    order = [*body["tools"], *body["system"]]
    blocks = [(None, block) for block in order]
    blocks += [(message["role"], block) for message in body["messages"] for block in message["content"]]
    for role, block in blocks:
        plain = {key: value for key, value in block.items() if key != "cache_control"}
        parts.append(json.dumps([role, plain], ensure_ascii=False).encode())
        if "cache_control" in block:
            marked.append(b"".join(parts))
    return b"".join(parts), marked


def test_a_long_loop_is_read_from_the_cache(meter: Meter) -> None:
    transcript = "Alice: we are done with Heroku, Fly from today. Bob: agreed, the price doubled. " * 400
    turns = [keep(*(f"fact {n}.{m} of the transcript, in a sentence" for m in range(6))) for n in range(5)]
    with FakeModel(*turns, {"text": "Done."}) as fake:
        assert run(fake, meter, Kept(), transcript).turns == 6
    uncovered, before, previous = 0, [b""], b""
    for number, body in enumerate(fake.bodies):
        whole, marked = prefixes(body)
        assert 2 <= len(marked) <= 4
        if number:
            assert previous.startswith(before[-1]) and whole.startswith(before[-1])
            assert before[-1] in marked, "the server finds a prefix again where a request is marked, too"
            assert len(before[-1]) / len(whole) >= 0.8
        uncovered += tokens.count(whole[len(before[-1]) :].decode())
        before, previous = marked, whole
    assert uncovered <= 1.15 * (tokens.count(transcript) + 1500)


def test_a_single_question_marks_only_what_others_share(meter: Meter) -> None:
    with FakeModel() as fake:
        ask(fake, meter)
    assert [b for b in fake.bodies[0]["system"] if "cache_control" in b]
    assert "cache_control" not in json.dumps(fake.bodies[0]["messages"])


# -- schemas -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "schema", "wrong"),
    [
        (True, {"type": "integer"}, ["True is not of type 'integer'"]),
        (1.0, {"type": "integer"}, ["1.0 is not of type 'integer'"]),
        (1, {"type": "number", "maximum": 0.5}, ["1 is greater than the maximum of 0.5"]),
        (None, {"type": ["string", "null"]}, []),
        ("c", {"enum": ["a", "b"]}, ["'c' is not one of ['a', 'b']"]),
        ("c", {"type": "string", "pattern": "^d"}, ["'c' does not match '^d'"]),
        ([1, "2"], {"type": "array", "items": {"type": "integer"}}, ["1: '2' is not of type 'integer'"]),
        ([], {"type": "array", "minItems": 1}, ["[] should be non-empty"]),
        ({"a": 1}, {"anyOf": [{"required": ["b"]}, {"required": ["a"]}]}, []),
        (
            {"a": {"b": 1, "c": 2}},
            {"properties": {"a": {"properties": {"b": {"type": "string"}}, "required": ["d"]}}},
            [
                "a.b: 1 is not of type 'string'",
                "a: 'd' is a required property",
                "a: Additional properties are not allowed ('c' was unexpected)",
            ],
        ),
    ],
)
def test_what_does_not_fit_a_schema_is_named(
    value: object, schema: Mapping[str, Any], wrong: list[str]
) -> None:
    assert schema_errors(value, closed(schema)) == wrong


def test_a_model_is_told_a_bounded_number_of_errors() -> None:
    many = {"type": "array", "items": {"type": "integer"}}
    assert len(schema_errors(["x"] * 99, many)) == 10


@pytest.mark.parametrize(
    "schema", [{"type": "text"}, {"required": "a"}, {"$ref": "http://localhost/x"}, {"$ref": "#/nowhere"}]
)
def test_what_is_not_a_schema_is_refused(schema: Mapping[str, Any]) -> None:
    with pytest.raises(ValueError):
        check_schema(schema)


def test_a_tool_whose_schema_is_none_cannot_be_made() -> None:
    for schema in ({"type": "string"}, {"type": "object", "properties": {"x": {"type": "text"}}}):
        with pytest.raises(ValueError):
            Tool("", schema, lambda _: "")
