"""A model behind an API, Anthropic's or OpenAI's: requests, streams, retries and message batches."""

from __future__ import annotations

import json
import random
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from ua_memory.errors import (
    BudgetSpent,
    KeyRejected,
    ModelRefused,
    ModelUnavailable,
    RequestRejected,
    UaMemoryError,
)
from ua_memory.llm.ledger import Entry, Meter, entry_of
from ua_memory.llm.model import OWN_URL, Block, Endpoint, Message, Reply, Stop, TokenUsage, ToolCall
from ua_memory.text import tokens as text_tokens
from ua_memory.text.patterns import late
from ua_memory.text.redaction import NO_PATTERNS, redact

if TYPE_CHECKING:
    import openai
    from anthropic import Anthropic, APIConnectionError, APIStatusError


# -- stream ------------------------------------------------------------------------------------------------
# Puts a streamed answer together, event by event, and knows whether it is whole.
#
# The SDK's own accumulator takes a stream that ends early for a short answer, and half a tool input for a
# whole one. Saving half of what a model meant to say would be a false memory; so the events are read here.


_STOPS: Mapping[str, Stop] = {
    "end_turn": "end_turn",
    "tool_use": "tool_use",
    "max_tokens": "max_tokens",
    "stop_sequence": "stop_sequence",
    "pause_turn": "pause_turn",
    "model_context_window_exceeded": "window",
}


class MalformedStream(Exception):
    """The events make no message."""


class ErrorEvent(Exception):
    """The endpoint ended its stream with an error. `kind` is the API's type, such as overloaded_error."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def events(chunks: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """The JSON objects of a stream of server-sent events, pings included, to the `[DONE]` that some APIs end
    it with. MalformedStream for what is none.

    Lines end at LF alone (or CR LF): U+2028 and its like stand inside JSON strings.
    """
    data: list[bytes] = []
    for line in _lines(chunks):
        if line.startswith(b"data:"):
            data.append(line[5:].strip())
        elif not line and data:
            if data == [b"[DONE]"]:
                return
            try:
                event = json.loads(b"\n".join(data))
            except (ValueError, RecursionError) as error:
                raise MalformedStream("an event is no JSON") from error
            data = []
            if isinstance(event, dict):
                yield event


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        yield from (line.rstrip(b"\r") for line in whole)


class StreamedReply:
    """An answer on its way in. `begun` once the endpoint has said what the prompt cost."""

    def __init__(self) -> None:
        self.begun = self.whole = False
        self.model = self.request_id = ""
        self.refusal: str | None = None
        self._stop: str | None = None
        self._usage: dict[str, int] = {}
        self._counted = False
        self._blocks: dict[int, dict[str, Any]] = {}
        self._parts: dict[tuple[int, str], list[str]] = {}

    def take(self, event: Mapping[str, Any]) -> None:
        """Add one event. Raises ErrorEvent or MalformedStream."""
        try:
            self._take(event)
        except (KeyError, TypeError, AttributeError) as error:
            raise MalformedStream(f"an event of type {event.get('type')!r} is not understood") from error

    def _take(self, event: Mapping[str, Any]) -> None:
        kind = event["type"]
        if kind == "message_start":
            self.begun = True
            self.model = str(event["message"].get("model") or "")
            self._note(event["message"].get("usage"))
        elif kind == "content_block_start":
            self._blocks[event["index"]] = dict(event["content_block"])
        elif kind == "content_block_delta":
            self._delta(event["index"], event["delta"])
        elif kind == "message_delta":
            self._stop = event["delta"].get("stop_reason") or self._stop
            if self._stop == "refusal":
                details = event["delta"].get("stop_details") or {}
                self.refusal = str(details.get("explanation") or details.get("category") or "")
            self._counted = self._note(event.get("usage"))
        elif kind == "message_stop":
            self.whole = self.begun
        elif kind == "error":
            failure = event.get("error") or {}
            raise ErrorEvent(str(failure.get("type") or "api_error"), str(failure.get("message") or ""))

    def _note(self, usage: Mapping[str, Any] | None) -> bool:
        """Counts are totals so far: later ones replace earlier ones, and absent ones leave them."""
        found = {key: value for key, value in (usage or {}).items() if isinstance(value, int)}
        self._usage.update(found)
        return "output_tokens" in found

    def _delta(self, index: int, delta: Mapping[str, Any]) -> None:
        block = self._blocks[index]
        for key in ("text", "thinking", "signature", "partial_json"):
            if isinstance(delta.get(key), str):
                name = "input" if key == "partial_json" else key
                if block["type"] == "tool_use" or name in block or name == "signature":
                    self._parts.setdefault((index, name), []).append(delta[key])

    @property
    def usage(self) -> TokenUsage:
        """What the endpoint has reported; of an answer that was cut, the output is counted here."""
        reported = self._usage.get
        output = reported("output_tokens", 0)
        if not self._counted:
            output = max(output, text_tokens.count("".join("".join(each) for each in self._parts.values())))
        read, written = reported("cache_read_input_tokens", 0), reported("cache_creation_input_tokens", 0)
        return TokenUsage(reported("input_tokens", 0), output, read, written)

    def reply(self) -> Reply:
        """The whole answer. A call that the end of the answer cut off is left out of it."""
        blocks, calls = [], []
        last = max(self._blocks, default=0)
        for index in sorted(self._blocks):
            block = self._joined(index)
            if block["type"] == "tool_use":
                if index == last and self._stop in ("max_tokens", "model_context_window_exceeded"):
                    continue
                given = self._input(index, block)
                block["input"] = given or {}
                calls.append(ToolCall(str(block.get("id", "")), str(block.get("name", "")), given))
            if block["type"] != "text" or str(block.get("text", "")).strip():
                blocks.append(block)  # the API does not take an empty text back
        text = "\n\n".join(block["text"] for block in blocks if block["type"] == "text")
        stop = _STOPS.get(self._stop or "", "unknown")
        return Reply(text, tuple(calls), stop, self.usage, tuple(blocks), self.model, self.request_id)

    def _joined(self, index: int) -> dict[str, Any]:
        block = dict(self._blocks[index])
        for name in ("text", "thinking", "signature"):
            if parts := self._parts.get((index, name)):
                block[name] = str(block.get(name) or "") + "".join(parts)
        return block

    def _input(self, index: int, block: Mapping[str, Any]) -> dict[str, Any] | None:
        """A call's input, read strictly; None where it is no JSON object."""
        text = "".join(self._parts.get((index, "input"), ()))
        try:
            given = json.loads(text) if text.strip() else block.get("input", {})
        except (ValueError, RecursionError):
            return None
        return given if isinstance(given, dict) else None


# -- chat completions --------------------------------------------------------------------------------------
# OpenAI's chat completions, as many servers have them: our request turned into theirs, and the pieces of
# their stream into the events above.


_FINISHED = {
    "stop": "end_turn", "tool_calls": "tool_use", "function_call": "tool_use", "length": "max_tokens",
    "content_filter": "refusal",
}  # fmt: skip


def chat_body(request: ModelRequest, model: str, max_tokens: int, *, own: bool) -> dict[str, Any]:
    """The body of a request. Only OpenAI's `own` models refuse the name that all servers know for the length
    of an answer."""
    messages = [
        {"role": "system", "content": "\n\n".join(block["text"] for block in request.body.get("system", ()))}
    ]
    for message in request.body["messages"]:
        messages += _chat_messages(message["role"], message["content"])
    body = {
        "model": model, "messages": [each for each in messages if each.get("content") or len(each) > 2],
        "max_completion_tokens" if own else "max_tokens": max_tokens,
        "stream": True, "stream_options": {"include_usage": True},
    }  # fmt: skip
    if tools := request.body.get("tools"):
        body["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": tool["name"],
                    "description": tool["description"],
                    "parameters": tool["input_schema"],
                },
            }
            for tool in tools
        ]
    return body


def _chat_messages(role: str, blocks: Sequence[Block]) -> list[dict[str, Any]]:
    """One message of ours: results of tools first, each a message of its own, and then what was said."""
    found: list[dict[str, Any]] = [
        {"role": "tool", "tool_call_id": block["tool_use_id"], "content": "\n".join(_texts(block)) or "done"}
        for block in blocks
        if block["type"] == "tool_result"
    ]
    said: dict[str, Any] = {
        "role": role,
        "content": "\n\n".join(block["text"] for block in blocks if block["type"] == "text"),
    }
    calls = [
        {
            "id": block["id"],
            "type": "function",
            "function": {"name": block["name"], "arguments": json.dumps(block["input"], ensure_ascii=False)},
        }
        for block in blocks
        if block["type"] == "tool_use"
    ]
    if calls:
        said["tool_calls"] = calls
    return [*found, said] if calls or said["content"] else found


class ChatStream:
    """Turns the chunks of one streamed completion into events of a message."""

    def __init__(self) -> None:
        self._blocks = 0
        self._text: int | None = None
        self._calls: dict[int, tuple[str, int]] = {}
        self._begun = False

    def events(self, chunk: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """The events of a chunk. Raises MalformedStream."""
        try:
            yield from self._events(chunk)
        except (KeyError, TypeError, AttributeError, IndexError) as error:
            raise MalformedStream("a chunk makes no sense") from error

    def _events(self, chunk: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        if failed := chunk.get("error"):
            told = failed if isinstance(failed, Mapping) else {"message": str(failed)}
            kind = told.get("type") or told.get("code") or "api_error"
            yield {"type": "error", "error": {"type": str(kind), "message": told.get("message")}}
        if not self._begun:
            self._begun = True
            yield {"type": "message_start", "message": {"model": chunk.get("model")}}
        for choice in (chunk.get("choices") or ())[:1]:
            delta = choice.get("delta") or {}
            if delta.get("content"):
                yield from self._said(delta["content"])
            for call in delta.get("tool_calls") or ():
                yield from self._called(call)
            if reason := choice.get("finish_reason"):
                stop = "refusal" if delta.get("refusal") else _FINISHED.get(reason, reason)
                yield {"type": "message_delta", "delta": {"stop_reason": stop}}
                yield {"type": "message_stop"}
        if usage := chunk.get("usage"):
            cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
            yield {"type": "message_delta", "delta": {}, "usage": {
                "input_tokens": usage["prompt_tokens"] - cached, "cache_read_input_tokens": cached,
                "output_tokens": usage.get("completion_tokens", 0),
            }}  # fmt: skip

    def _said(self, text: str) -> Iterator[dict[str, Any]]:
        if self._text is None:
            self._text = self._blocks
            yield self._opened({"type": "text", "text": ""})
        delta = {"type": "text_delta", "text": text}
        yield {"type": "content_block_delta", "index": self._text, "delta": delta}

    def _called(self, call: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Some servers give every call the index 0, and tell them apart only by id."""
        at, function = call.get("index") or 0, call.get("function") or {}
        id, block = self._calls.get(at, ("", -1))
        if block < 0 or (call.get("id") and call["id"] != id):
            id, block = call.get("id") or f"call_{self._blocks}", self._blocks
            self._calls[at] = id, block
            yield self._opened({"type": "tool_use", "id": id, "name": function.get("name"), "input": {}})
        if function.get("arguments"):
            delta = {"type": "input_json_delta", "partial_json": function["arguments"]}
            yield {"type": "content_block_delta", "index": block, "delta": delta}

    def _opened(self, block: dict[str, Any]) -> dict[str, Any]:
        self._blocks += 1
        return {"type": "content_block_start", "index": self._blocks - 1, "content_block": block}


# -- failures ----------------------------------------------------------------------------------------------
# What went wrong with a request, told as our errors: what may pass is tried again, the rest is said.


_MAY_PASS = {"overloaded_error", "api_error", "rate_limit_error", "timeout_error", "server_error"}
_OF_THE_KEY = {"authentication_error", "permission_error", "billing_error"}
_LONGEST = 300
_NO_SUCH_MODEL = late(
    r"(invalid|unknown|no such|not a valid) model|model\b.*\b(not found|not exist|not available)", re.I
)


class TransientFailure(Exception):
    """A failure that another try may not meet. `wait` is what the endpoint asked for, in seconds;
    `sent` whether the prompt may have been read, and so paid for; `slow` that nothing came for too long."""

    def __init__(
        self, what: str, *, wait: float | None = None, sent: bool = False, slow: bool = False
    ) -> None:
        super().__init__(what)
        self.what, self.wait, self.sent, self.slow = what, wait, sent, slow


def of_status(
    error: APIStatusError | openai.APIStatusError, endpoint: Endpoint
) -> TransientFailure | UaMemoryError:
    """An answer with a status of 3xx, 4xx or 5xx; the SDK's rules for which to try again."""
    status, headers = error.status_code, error.response.headers
    said = in_one_line(_said_by(error), endpoint)
    what = f"the model's endpoint answered {status}" + (f": {said}" if said else "")
    again = headers.get("x-should-retry")
    if again == "true" or (again != "false" and (status in (408, 409, 429) or status >= 500)):
        return TransientFailure(what, wait=_wait(headers.get("retry-after-ms"), headers.get("retry-after")))
    if status in (408, 409, 429) or status >= 500:
        return _unavailable(what, endpoint)
    if status in (401, 402, 403):
        return _key(what, endpoint)
    if 300 <= status < 400:
        what = f"{what}, and is not followed to {headers.get('location', 'elsewhere')!r}"
    return _request(what, endpoint, unknown=status == 404 or _NO_SUCH_MODEL.search(said) is not None)


def _said_by(error: APIStatusError | openai.APIStatusError) -> str:
    """The message of an error's body; '' where it has none."""
    body: Any = error.body
    inner = body.get("error", body) if isinstance(body, Mapping) else body
    return str(inner.get("message") or "") if isinstance(inner, Mapping) else str(inner or "")


def of_connection(error: APIConnectionError | openai.APIConnectionError) -> TransientFailure:
    """No answer at all: nobody there, no network, a time-out, or cut off before its first byte."""
    cause = error.__cause__
    kind = type(cause).__name__ if cause else ""
    if type(error).__name__ == "APITimeoutError" and kind != "ConnectTimeout":
        return TransientFailure("the model's endpoint was silent for too long", sent=True, slow=True)
    why = str(cause).strip()[:_LONGEST] if cause else ""
    what = "the model's endpoint cannot be reached" + (f": {redact(why).text}" if why else "")
    return TransientFailure(what, sent=kind not in ("ConnectError", "ConnectTimeout"))


def of_event(kind: str, message: str, endpoint: Endpoint) -> TransientFailure | UaMemoryError:
    """An error in the middle of a stream."""
    said = in_one_line(message, endpoint)
    what = f"the model's endpoint ended its answer early: {kind}" + (f", {said}" if said else "")
    if kind in _MAY_PASS:
        return TransientFailure(what)
    return _key(what, endpoint) if kind in _OF_THE_KEY else _request(what, endpoint)


def in_one_line(text: str, endpoint: Endpoint) -> str:
    """An endpoint's own words, short, on one line and without the key that some of them repeat."""
    plain = text
    for key in filter(None, (endpoint.api_key.strip(), endpoint.auth_token.strip())):
        plain = plain.replace(key, "[key]")
    return " ".join(redact(plain).text.split())[:_LONGEST]


def _key(what: str, endpoint: Endpoint) -> KeyRejected:
    name = endpoint.variable("AUTH_TOKEN" if endpoint.auth_token else "API_KEY")
    return KeyRejected(what, where=endpoint.url, hint=f"put a key that is valid there into {name}")


def _request(what: str, endpoint: Endpoint, *, unknown: bool = False) -> RequestRejected:
    """A request that was not accepted; `unknown` where the endpoint may not have the model."""
    url = f"{endpoint.variable('BASE_URL')} {endpoint.url}"
    hint = f"UA_MEMORY_MODEL is {endpoint.name}, {url}: check both"
    if unknown and not endpoint.model:
        hint = f"set UA_MEMORY_MODEL to a model that this endpoint has; {endpoint.name} is only the default"
    if endpoint.provider == "openai" and not urlsplit(endpoint.url).path:
        hint += f"; most servers are at {endpoint.url}/v1"
    return RequestRejected(what, where=endpoint.url, hint=hint)


def _unavailable(what: str, endpoint: Endpoint) -> UaMemoryError:
    return ModelUnavailable(what, where=endpoint.url, hint="try again later")


def _wait(milliseconds: str | None, seconds: str | None) -> float | None:
    """What `Retry-After` asks for: seconds, or a date, which is read as a long time."""
    for value, factor in ((milliseconds, 0.001), (seconds, 1.0)):
        try:
            return max(0.0, float(value or "") * factor)
        except ValueError:
            continue
    try:
        return float("inf") if seconds and parsedate_to_datetime(seconds) else None
    except ValueError:
        return None


# -- request -----------------------------------------------------------------------------------------------
# The body of a request: every text redacted once more, counted, and marked for the prompt cache.
#
# The cache works on prefixes, in the order tools, system, messages, and finds one again only where a
# request ended it with a mark. At most four marks are allowed: behind the system text (which covers the
# tools), behind the first message (the transcript), behind the newest message, and again where the request
# before had its newest. Without that last one, twenty parallel calls would lie between two marks, and the
# server does not look back further than that.


_MARK = {"cache_control": {"type": "ephemeral"}}
_REMEMBERED = 5_000
# What the API adds around texts, measured by its users: a few tokens a block, some 300–600 for tools.
_FOR_A_BLOCK, _FOR_TOOLS = 8, 600


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """What is sent besides the model's name and the length of the answer; `tokens` by our own count."""

    body: dict[str, Any]
    tokens: int


class RedactedTexts:
    """Redacts and counts texts, each only once: a loop sends the same long transcript every turn."""

    def __init__(self, patterns: Mapping[str, str] = NO_PATTERNS) -> None:
        self._patterns = patterns
        self._known: dict[str, tuple[str, int]] = {}

    def clean(self, text: str) -> str:
        """The text without secrets, and without lone surrogates, which JSON cannot carry."""
        return self._both(text)[0]

    def count(self, text: str) -> int:
        """tokens.count of the clean text."""
        return self._both(text)[1]

    def _both(self, text: str) -> tuple[str, int]:
        if text not in self._known:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            clean = redact(text.encode("utf-8", "replace").decode(), self._patterns).text
            self._known[text] = clean, text_tokens.count(clean)
        return self._known[text]


def build(
    words: RedactedTexts,
    system: str,
    messages: Sequence[Message],
    tools: Sequence[Mapping[str, Any]] = (),
    *,
    goes_on: bool = False,
) -> ModelRequest:
    """The request for these messages. ValueError for a block of a kind that cannot be redacted."""
    marked = _marked(messages) if goes_on else frozenset()
    sent = []
    for number, message in enumerate(messages):
        blocks = [_block(block, words.clean) for block in _blocks(message)]
        if number in marked:
            blocks[-1] = {**blocks[-1], **_MARK}
        sent.append({"role": message["role"], "content": blocks})
    body: dict[str, Any] = {"messages": sent}
    if system:
        body["system"] = [{"type": "text", "text": words.clean(system), **_MARK}]
    if tools:
        body["tools"] = [_described(tool, words.clean) for tool in tools]
    return ModelRequest(body, _count(words, system, messages, body.get("tools", [])))


def _marked(messages: Sequence[Message]) -> frozenset[int]:
    said = [number for number, message in enumerate(messages) if message["role"] == "user"]
    return frozenset(said[:1] + said[-2:])


def _blocks(message: Message) -> list[Block]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def _block(block: Block, clean: Callable[[str], str]) -> dict[str, Any]:
    """The block with every text of ours cleaned. What the model thought is signed and goes back as it
    came: it was made of cleaned text."""
    kind = block["type"]
    if kind == "text":
        return {**block, "text": clean(block["text"])}
    if kind == "tool_use":
        return {**block, "input": _deep(block["input"], clean)}
    if kind == "tool_result":
        content = block.get("content", "")
        is_text = isinstance(content, str)
        return {**block, "content": clean(content) if is_text else [_block(each, clean) for each in content]}
    if kind in ("thinking", "redacted_thinking"):
        return dict(block)
    raise ValueError(f"a block of type {kind!r} is never sent: nothing can take secrets out of it")


def _deep(value: Any, clean: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list | tuple):
        return [_deep(item, clean) for item in value]
    if isinstance(value, Mapping):
        return {key: _deep(item, clean) for key, item in value.items()}
    return value


def _described(tool: Any, clean: Callable[[str], str]) -> Any:
    """A tool's definition with its descriptions cleaned; names, types and limits are code."""
    if isinstance(tool, Mapping):
        return {
            key: clean(item) if key == "description" and isinstance(item, str) else _described(item, clean)
            for key, item in tool.items()
        }
    return [_described(item, clean) for item in tool] if isinstance(tool, list | tuple) else tool


def _count(words: RedactedTexts, system: str, messages: Sequence[Message], tools: Sequence[Any]) -> int:
    total = words.count(system) + (_FOR_TOOLS + words.count(json.dumps(tools)) if tools else 0)
    for message in messages:
        for block in _blocks(message):
            total += _FOR_A_BLOCK + sum(words.count(text) for text in _texts(block))
    return total


def _texts(block: Block) -> list[str]:
    kind = block["type"]
    if kind == "tool_use":
        return [json.dumps(block["input"], ensure_ascii=False)]
    if kind == "tool_result":
        content = block.get("content", "")
        return [content] if isinstance(content, str) else [t for each in content for t in _texts(each)]
    return [str(block.get(kind, "")) if kind != "redacted_thinking" else str(block.get("data", ""))]


# -- posting -----------------------------------------------------------------------------------------------
# Many requests posted at once and answered within a day, at half the price: the API's message batches.
#
# Nobody waits: who posts keeps the `BatchHandle`, and whoever comes later collects it, in another process
# or on another day. The worst case of all of them stands in the ledger until then.


HALF = 0.5
"""What a request of a batch costs of its price."""


@dataclass(frozen=True, slots=True)
class BatchQuestion:
    """One request of a batch."""

    system: str
    messages: Sequence[Message]
    tools: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class BatchHandle:
    """A batch that was posted: its name at the endpoint, how many of the questions it has, the first ones,
    the model that was asked, and its line of the ledger."""

    id: str
    count: int
    model: str
    entry: str


def take_whole(message: Mapping[str, Any], answer: StreamedReply) -> StreamedReply:
    """Take in a message as if it had been streamed: one reader of answers is enough."""
    answer.take({"type": "message_start", "message": message})
    for number, block in enumerate(message.get("content") or ()):
        answer.take({"type": "content_block_start", "index": number, "content_block": block})
    answer.take({"type": "message_delta", "delta": message, "usage": message.get("usage")})
    answer.take({"type": "message_stop"})
    return answer


@contextmanager
def _failures(sdk: Any, endpoint: Endpoint) -> Iterator[None]:
    """What an SDK raises over a request, as TransientFailure or an error of ours."""
    try:
        yield
    except sdk.APIStatusError as error:
        raise of_status(error, endpoint) from error
    except sdk.APIConnectionError as error:
        raise of_connection(error) from error


@contextmanager
def _errors(endpoint: Endpoint) -> Iterator[None]:
    """Whatever the SDK raises over a batch, as an error of ours."""
    import anthropic

    try:
        with _failures(anthropic, endpoint):
            yield
    except TransientFailure as error:
        raise _unavailable(error.what, endpoint) from error
    except anthropic.AnthropicError as error:
        raise _unavailable(f"the model's endpoint gave no batch: {error}", endpoint) from error


# -- asking ------------------------------------------------------------------------------------------------
# A model that is asked: each request metered, tried again where that may help, and its answer put together.
#
# The home of the SDKs, which give the connection and the names of its errors. Three things are done here
# instead of there. Trying again: the SDKs do not try a cut stream again, and sleep for as long as a
# `Retry-After` says, be it a day. Redirects are not followed: they would take texts where no owner sent
# them. And no key or address is taken from the environment or an SDK's profiles: a daemon serves many.


_UNMEASURED = 1.5
"""A model's tokens to one of ours, at most, until a reply has told: newer tokenizers count 1.3 and more."""
_MARGIN = 1.1
_LONGEST_PAUSE = 8.0


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long to wait, in seconds: for the connection, for the next byte, for one whole answer; how
    often to try again, after which first pause, and the longest `Retry-After` that is waited for; and
    whether one that was silent for too long is tried again at all."""

    connect: float = 10.0
    silence: float = 300.0
    whole: float = 1200.0
    retries: int = 2
    pause: float = 0.5
    longest_wait: float = 60.0
    slow_again: bool = True


UNHURRIED = Timeouts(silence=1200.0, whole=3600.0, slow_again=False)
"""With a server on this network: it says nothing while it reads a long prompt, and on a plain processor
that takes minutes. What was too slow there once is not tried again."""


class MeteredModel(ABC):
    """One run's way to a model. Close it, or use it as a context manager."""

    once = False
    _client: Anthropic | openai.OpenAI | None = None

    def __init__(
        self,
        endpoint: Endpoint,
        meter: Meter,
        *,
        patterns: Mapping[str, str] = NO_PATTERNS,
        patience: Timeouts | None = None,
    ) -> None:
        self._endpoint, self._meter = endpoint, meter
        self._patience = patience or (UNHURRIED if endpoint.free else Timeouts())
        self._words = RedactedTexts(patterns)
        self._measured: float | None = None

    @property
    def name(self) -> str:
        """The id of the model asked for."""
        return self._endpoint.name

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection, if there is one. Asking again opens another."""
        if self._client is not None:
            self._client.close()
            self._client = None

    @abstractmethod
    def _read(self, request: ModelRequest, max_tokens: int, answer: StreamedReply) -> None:
        """Send the request and take its answer in; on return `answer` is whole. Raises TransientFailure for
        what may be tried again."""

    def ask(
        self,
        system: str,
        messages: Sequence[Message],
        *,
        purpose: str,
        max_tokens: int = 16_000,
        tools: Sequence[Mapping[str, Any]] = (),
        goes_on: bool = False,
    ) -> Reply:
        """See `Model.ask`."""
        request = build(self._words, system, messages, tools, goes_on=goes_on)
        pause = self._patience.pause
        for tried in range(self._patience.retries + 1):
            try:
                return self._try(request, max_tokens, purpose)
            except TransientFailure as failure:
                wait = failure.wait
                last = tried == self._patience.retries or (failure.slow and not self._patience.slow_again)
                if last or (wait or 0.0) > self._patience.longest_wait:
                    raise self._unavailable(failure, tried + 1) from failure
                # With jitter: many banks wake at the same hour.
                time.sleep(pause * random.uniform(0.75, 1.0) if wait is None else wait)
                pause = min(2 * pause, _LONGEST_PAUSE)
        raise AssertionError("the loop above returns or raises")

    def estimate(self, tokens: int) -> int:
        """Upper estimate of this model's tokens for a number of ours, learnt from its own counts."""
        factor = _UNMEASURED if self._measured is None else self._measured * _MARGIN
        return int(tokens * factor) + 1

    def _try(self, request: ModelRequest, max_tokens: int, purpose: str) -> Reply:
        prompt = self.estimate(request.tokens)
        worst = TokenUsage(cache_write=prompt, output=max_tokens)
        entry = self._meter.reserve(purpose, self.name, worst, free=self._endpoint.free)
        answer, sent = StreamedReply(), True
        try:
            self._read(request, max_tokens, answer)
            # A refused answer is read, but no answer: it must not be kept, nor sent back.
            if answer.refusal is not None:
                raise self._refused(answer.refusal)
            reply = answer.reply()
        except TransientFailure as failure:
            sent = failure.sent
            raise
        except UaMemoryError:
            sent = False
            raise
        finally:
            used = answer.usage if answer.begun else TokenUsage(input=prompt if sent else 0)
            if answer.begun and not used.prompt:  # not every server counts
                used = replace(used, input=prompt)
            failed = not answer.whole
            self._meter.settle(entry, answer.model, used, failed=failed, request=answer.request_id)
        self._measure(reply.usage.prompt, request)
        return reply

    def _stream(self, opened: Any, answer: StreamedReply, chat: ChatStream | None = None) -> None:
        """Take in the events of a response that has begun, or chunks of a `chat` as events."""
        with opened:
            headers = opened.response.headers
            answer.request_id = headers.get("request-id", "") or headers.get("x-request-id", "")
            chunks = self._in_time(opened.response.iter_bytes())
            try:
                for event in events(chunks):
                    for each in chat.events(event) if chat else (event,):
                        answer.take(each)
            except ErrorEvent as error:
                raise of_event(error.kind, str(error), self._endpoint) from error
            except MalformedStream as error:
                raise TransientFailure(
                    f"the model's endpoint sent an invalid answer: {error}", sent=True
                ) from error
        if not answer.whole:
            raise TransientFailure("the model's answer is incomplete", sent=True)

    def _in_time(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        """The chunks, while they come in time. The SDK lets errors of the connection through raw, as the
        classes of a library below it; whatever breaks while bytes are read is a cut."""
        until = time.monotonic() + self._patience.whole
        while True:
            try:
                chunk = next(chunks, None)
            except Exception as error:
                slow = "Timeout" in type(error).__name__
                what = "stopped coming" if slow else "was cut off"
                raise TransientFailure(f"the model's answer {what}", sent=True, slow=slow) from error
            if chunk is None:
                return
            yield chunk
            if time.monotonic() > until:  # pings and comments alone would keep us here for ever
                what = f"the model's answer took longer than {self._patience.whole:g} s"
                raise _unavailable(what, self._endpoint)

    def _http(self) -> dict[str, Any]:
        """How the HTTP client of an SDK is made."""
        return {
            "follow_redirects": False,
            # Reading the system's certificates takes 0.1 s, which a plain http URL has no use for.
            "verify": urlsplit(self._endpoint.url).scheme != "http",
            # A proxy set for the world outside has no business with a model on this network. The SDK takes
            # it from the environment even with trust_env=False; a mount overrides it.
            "mounts": {"http://": None, "https://": None, "all://": None} if self._endpoint.free else {},
        }

    def _measure(self, counted: int, request: ModelRequest) -> None:
        """Learn from what the endpoint counted; not from small prompts, which are mostly frame."""
        if counted and request.tokens >= 200:
            self._measured = max(self._measured or 1.0, counted / request.tokens)

    def _unavailable(self, failure: TransientFailure, tries: int) -> ModelUnavailable:
        what = failure.what + (f": {self._patience.silence:g} s" if failure.slow else "")
        what += f" ({tries} tries)" if tries > 1 else ""
        far = failure.wait is not None and failure.wait > self._patience.longest_wait
        when = f"in {failure.wait:.0f} s" if far and failure.wait != float("inf") else "later"
        if failure.slow and self._endpoint.free:
            when += ", or send less at once with a smaller UA_CONTEXT_WINDOW"
        return ModelUnavailable(what, where=self._endpoint.url, hint=f"try again {when}")

    def _refused(self, why: str) -> ModelRefused:
        said = in_one_line(why, self._endpoint)
        what = f"{self.name} declined to answer" + (f": {said}" if said else "")
        hint = "use another UA_MEMORY_MODEL, or UA_MEMORY_PROVIDER=none"
        return ModelRefused(what, where=self._endpoint.url, hint=hint)


# -- providers ---------------------------------------------------------------------------------------------


class OpenAIModel(MeteredModel):
    """A model behind chat completions: OpenAI's, or those of Ollama, LM Studio, vLLM and others.

    Asking raises KeyRejected or RequestRejected for a key or a URL that cannot be one, before any is sent.
    """

    _client: openai.OpenAI | None = None

    def _read(self, request: ModelRequest, max_tokens: int, answer: StreamedReply) -> None:
        connected = self._connected()
        import openai

        own = self._endpoint.url == OWN_URL["openai"]
        body: Any = chat_body(request, self.name, max_tokens, own=own)
        with _failures(openai, self._endpoint):
            stream = connected.chat.completions.create(**body)
        self._stream(stream, answer, ChatStream())

    def _connected(self) -> openai.OpenAI:
        if self._client is None:
            _check(self._endpoint)
            try:
                import openai
            except ImportError as error:
                raise ModelUnavailable(
                    "the provider openai needs the openai SDK", hint="pip install 'ua-memory[openai]'"
                ) from error
            times = openai.Timeout(self._patience.silence, connect=self._patience.connect)
            self._client = openai.OpenAI(
                api_key=self._endpoint.api_key.strip() or "none", base_url=self._endpoint.url, max_retries=0,
                timeout=times, http_client=openai.DefaultHttpxClient(timeout=times, **self._http()),
            )  # fmt: skip
        return self._client


class Claude(MeteredModel):
    """A model behind the Messages API: Anthropic's own, or whatever answers at the owner's URL.

    Asking raises KeyRejected or RequestRejected for a key or a URL that cannot be one, before any is sent.
    """

    _client: Anthropic | None = None

    def _read(self, request: ModelRequest, max_tokens: int, answer: StreamedReply) -> None:
        import anthropic

        with _failures(anthropic, self._endpoint):
            stream = self._connected().messages.create(
                model=self.name, max_tokens=max_tokens, stream=True, **request.body
            )
        self._stream(stream, answer)

    def _connected(self) -> Anthropic:
        if self._client is None:
            _check(self._endpoint)
            import anthropic

            times = anthropic.Timeout(self._patience.silence, connect=self._patience.connect)
            token = self._endpoint.auth_token.strip() or None
            self._client = anthropic.Anthropic(
                # One is set in any case: else the SDK looks in the environment and the home folder.
                api_key=None if token else self._endpoint.api_key.strip() or "none",
                auth_token=token,
                base_url=self._endpoint.url,
                max_retries=0,
                timeout=times,
                open_telemetry=False,
                http_client=anthropic.DefaultHttpxClient(timeout=times, **self._http()),
            )
        return self._client

    # -- batches ------------------------------------------------------------------------------------

    def post(self, questions: Sequence[BatchQuestion], *, purpose: str, max_tokens: int) -> BatchHandle:
        """Post questions, as many of them, from the first on, as the limits bear. What `ask` raises;
        BudgetSpent where not even the first one fits."""
        built = [build(self._words, q.system, q.messages, q.tools, goes_on=True) for q in questions]
        entry, count = self._reserved(built, purpose, max_tokens)
        requests = [
            {"custom_id": str(n), "params": {"model": self.name, "max_tokens": max_tokens, **each.body}}
            for n, each in enumerate(built[:count])
        ]
        try:
            with _errors(self._endpoint):
                made = self._connected().messages.batches.create(requests=requests)  # type: ignore[arg-type]
        except (KeyRejected, RequestRejected):  # whatever else went wrong, it may have been taken
            self._meter.settle(entry, "", share=HALF, failed=True)
            raise
        return BatchHandle(made.id, count, self.name, entry.line().decode())

    def collect(self, post: BatchHandle) -> dict[int, Reply] | None:
        """The replies to a batch by the number of their question, None while it is under way; those that
        failed, were refused or ran out of time are missing. What `ask` raises; RequestRejected where the
        endpoint knows no such batch any more."""
        with _errors(self._endpoint):
            batches = self._connected().messages.batches
            if batches.retrieve(post.id).processing_status != "ended":
                return None
            rows = [(row.custom_id, row.result) for row in batches.results(post.id)]
        found: dict[int, Reply] = {}
        used: list[TokenUsage] = []
        for name, result in rows:
            if result.type == "succeeded" and name.isdigit() and int(name) < post.count:
                answer = take_whole(result.message.to_dict(), StreamedReply())
                used.append(answer.usage)
                if answer.refusal is None:
                    found[int(name)] = answer.reply()
        self._meter.settle(entry_of(json.loads(post.entry)), "", *used, share=HALF, failed=not found)
        return found

    def _reserved(self, built: Sequence[ModelRequest], purpose: str, max_tokens: int) -> tuple[Entry, int]:
        worst = [TokenUsage(cache_write=self.estimate(r.tokens), output=max_tokens) for r in built]
        count = len(worst)
        while True:
            try:
                free = self._endpoint.free
                return self._meter.reserve(purpose, self.name, *worst[:count], share=HALF, free=free), count
            except BudgetSpent:
                if count <= 1:
                    raise
                count = count * 3 // 4


def _check(endpoint: Endpoint) -> None:
    parts = urlsplit(endpoint.url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        hint = f"correct {endpoint.variable('BASE_URL')}"
        raise RequestRejected("this is not the URL of a model", where=endpoint.url, hint=hint)
    key = (endpoint.auth_token or endpoint.api_key).strip()
    name = endpoint.variable("AUTH_TOKEN" if endpoint.auth_token else "API_KEY")
    if not (key.isascii() and key.isprintable()) or " " in key:
        # Said here because the library below would print the key that it cannot send.
        raise KeyRejected("the key contains invalid characters", hint=f"set {name} anew")
    if not key and endpoint.url == OWN_URL[endpoint.provider]:
        raise KeyRejected("no API key is set", where=endpoint.url, hint=f"set {name}")
