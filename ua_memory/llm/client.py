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
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Self, get_args
from urllib.parse import urlsplit

from ua_memory.errors import (
    BudgetSpent,
    KeyRejected,
    ModelRefused,
    ModelUnavailable,
    RequestRejected,
    UaMemoryError,
)
from ua_memory.llm.ledger import Entry, Meter, parse_entry
from ua_memory.llm.model import DEFAULT_URLS, Block, Endpoint, Message, Reply, Stop, TokenUsage, ToolCall
from ua_memory.llm.model import blocks as blocks_of
from ua_memory.text import tokens as text_tokens
from ua_memory.text.patterns import late
from ua_memory.text.redaction import NO_PATTERNS, change_texts, redact

if TYPE_CHECKING:
    import openai
    from anthropic import Anthropic, APIConnectionError, APIStatusError


# -- stream ------------------------------------------------------------------------------------------------
# Reads a streamed answer. The SDK's own accumulator accepts a stream that ended early, and half of a tool's
# input, which would become a false memory.


_STOPS: dict[str, Stop] = {each: each for each in get_args(Stop) if each != "unknown"}
_STOPS |= {"model_context_window_exceeded": "window"}


class MalformedStream(Exception):
    """The events are no valid message."""


class ErrorEvent(Exception):
    """The endpoint ended its stream with an error; `kind` is its type, such as overloaded_error."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def events(chunks: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """The JSON objects of a stream of server-sent events, pings included, up to `[DONE]` if there is one.
    MalformedStream.

    Lines end at LF or CR LF alone: U+2028 and the like occur inside JSON strings.
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
    """An answer that is being received. `started`: the endpoint has reported the size of the prompt;
    `complete`: the answer is complete."""

    def __init__(self) -> None:
        self.started = self.complete = False
        self.model = self.request_id = ""
        self.refusal: str | None = None
        self._stop: str | None = None
        self._usage: dict[str, int] = {}
        self._counted = False
        self._blocks: dict[int, dict[str, Any]] = {}
        self._parts: dict[tuple[int, str], list[str]] = {}

    def add(self, event: Mapping[str, Any]) -> None:
        """Add an event. ErrorEvent, MalformedStream."""
        try:
            self._add(event)
        except (KeyError, TypeError, AttributeError) as error:
            raise MalformedStream(f"an event of type {event.get('type')!r} is not understood") from error

    def _add(self, event: Mapping[str, Any]) -> None:
        kind = event["type"]
        if kind == "message_start":
            self.started = True
            self.model = str(event["message"].get("model") or "")
            self._update_usage(event["message"].get("usage"))
        elif kind == "content_block_start":
            self._blocks[event["index"]] = dict(event["content_block"])
        elif kind == "content_block_delta":
            self._add_delta(event["index"], event["delta"])
        elif kind == "message_delta":
            self._stop = event["delta"].get("stop_reason") or self._stop
            if self._stop == "refusal":
                details = event["delta"].get("stop_details") or {}
                self.refusal = str(details.get("explanation") or details.get("category") or "")
            self._counted = self._update_usage(event.get("usage"))
        elif kind == "message_stop":
            self.complete = self.started
        elif kind == "error":
            failure = event.get("error") or {}
            raise ErrorEvent(str(failure.get("type") or "api_error"), str(failure.get("message") or ""))

    def _update_usage(self, usage: Mapping[str, Any] | None) -> bool:
        """Update the usage. Counts are totals: later ones replace earlier ones. Whether the output was
        reported."""
        found = {key: value for key, value in (usage or {}).items() if isinstance(value, int)}
        self._usage.update(found)
        return "output_tokens" in found

    def _add_delta(self, index: int, delta: Mapping[str, Any]) -> None:
        block = self._blocks[index]
        for key in ("text", "thinking", "signature", "partial_json"):
            if isinstance(delta.get(key), str):
                name = "input" if key == "partial_json" else key
                if block["type"] == "tool_use" or name in block or name == "signature":
                    self._parts.setdefault((index, name), []).append(delta[key])

    @property
    def usage(self) -> TokenUsage:
        """The usage as reported; if the answer was cut, its output is counted here."""
        reported = self._usage.get
        output = reported("output_tokens", 0)
        if not self._counted:
            output = max(output, text_tokens.count("".join("".join(each) for each in self._parts.values())))
        read, written = reported("cache_read_input_tokens", 0), reported("cache_creation_input_tokens", 0)
        return TokenUsage(reported("input_tokens", 0), output, read, written)

    def reply(self) -> Reply:
        """The complete answer, without a call that its end has cut off."""
        blocks, calls = [], []
        last = max(self._blocks, default=0)
        for index in sorted(self._blocks):
            block = self._block_at(index)
            if block["type"] == "tool_use":
                if index == last and self._stop in ("max_tokens", "model_context_window_exceeded"):
                    continue
                given = self._call_input(index, block)
                block["input"] = given or {}
                calls.append(ToolCall(str(block.get("id", "")), str(block.get("name", "")), given))
            if block["type"] != "text" or str(block.get("text", "")).strip():
                blocks.append(block)  # the API does not take an empty text back
        text = "\n\n".join(block["text"] for block in blocks if block["type"] == "text")
        stop = _STOPS.get(self._stop or "", "unknown")
        return Reply(text, tuple(calls), stop, self.usage, tuple(blocks), self.model, self.request_id)

    def _block_at(self, index: int) -> dict[str, Any]:
        block = dict(self._blocks[index])
        for name in ("text", "thinking", "signature"):
            if parts := self._parts.get((index, name)):
                block[name] = str(block.get(name) or "") + "".join(parts)
        return block

    def _call_input(self, index: int, block: Mapping[str, Any]) -> dict[str, Any] | None:
        """A call's input; None if it is not a JSON object."""
        text = "".join(self._parts.get((index, "input"), ()))
        try:
            given = json.loads(text) if text.strip() else block.get("input", {})
        except (ValueError, RecursionError):
            return None
        return given if isinstance(given, dict) else None


# -- chat completions --------------------------------------------------------------------------------------
# OpenAI's API, which many servers have: converts our requests, and the chunks of the stream to events.


_STOP_REASONS = {
    "stop": "end_turn", "tool_calls": "tool_use", "function_call": "tool_use", "length": "max_tokens",
    "content_filter": "refusal",
}  # fmt: skip


def chat_body(request: ModelRequest, model: str, max_tokens: int, *, own: bool) -> dict[str, Any]:
    """The body of a request. `own` models of OpenAI's refuse the name `max_tokens`, which all servers
    know."""
    system = "\n\n".join(block["text"] for block in request.body.get("system", ()))
    messages: list[dict[str, Any]] = [{"role": "system", "content": system}]
    for message in request.body["messages"]:
        messages += _chat_messages(message["role"], message["content"])
    body = {
        "model": model, "messages": [each for each in messages if each.get("content") or len(each) > 2],
        "max_completion_tokens" if own else "max_tokens": max_tokens,
        "stream": True, "stream_options": {"include_usage": True},
    }  # fmt: skip
    if tools := request.body.get("tools"):
        names = {"name": "name", "description": "description", "parameters": "input_schema"}
        functions = ({theirs: tool[ours] for theirs, ours in names.items()} for tool in tools)
        body["tools"] = [{"type": "function", "function": each} for each in functions]
    return body


def _chat_messages(role: str, blocks: Sequence[Block]) -> list[dict[str, Any]]:
    """One of our messages as theirs: results of tools as one message each, then the text."""
    found: list[dict[str, Any]] = [
        {"role": "tool", "tool_call_id": block["tool_use_id"], "content": "\n".join(_texts(block)) or "done"}
        for block in blocks
        if block["type"] == "tool_result"
    ]
    text = "\n\n".join(block["text"] for block in blocks if block["type"] == "text")
    said: dict[str, Any] = {"role": role, "content": text}
    calls = []
    for block in (block for block in blocks if block["type"] == "tool_use"):
        function = {"name": block["name"], "arguments": json.dumps(block["input"], ensure_ascii=False)}
        calls.append({"id": block["id"], "type": "function", "function": function})
    if calls:
        said["tool_calls"] = calls
    return [*found, said] if calls or said["content"] else found


class ChatStream:
    """Converts the chunks of a streamed completion to events."""

    def __init__(self) -> None:
        self._blocks = 0
        self._text: int | None = None
        self._calls: dict[int, tuple[str, int]] = {}
        self._started = False

    def events(self, chunk: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """The events of a chunk. MalformedStream."""
        try:
            yield from self._events(chunk)
        except (KeyError, TypeError, AttributeError, IndexError) as error:
            raise MalformedStream("a chunk makes no sense") from error

    def _events(self, chunk: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        if failure := chunk.get("error"):
            error = failure if isinstance(failure, Mapping) else {"message": str(failure)}
            kind = error.get("type") or error.get("code") or "api_error"
            yield {"type": "error", "error": {"type": str(kind), "message": error.get("message")}}
        if not self._started:
            self._started = True
            yield {"type": "message_start", "message": {"model": chunk.get("model")}}
        for choice in (chunk.get("choices") or ())[:1]:
            delta = choice.get("delta") or {}
            if delta.get("content"):
                yield from self._text_events(delta["content"])
            for call in delta.get("tool_calls") or ():
                yield from self._call_events(call)
            if reason := choice.get("finish_reason"):
                stop = "refusal" if delta.get("refusal") else _STOP_REASONS.get(reason, reason)
                yield {"type": "message_delta", "delta": {"stop_reason": stop}}
                yield {"type": "message_stop"}
        if usage := chunk.get("usage"):
            cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
            yield {"type": "message_delta", "delta": {}, "usage": {
                "input_tokens": usage["prompt_tokens"] - cached, "cache_read_input_tokens": cached,
                "output_tokens": usage.get("completion_tokens", 0),
            }}  # fmt: skip

    def _text_events(self, text: str) -> Iterator[dict[str, Any]]:
        if self._text is None:
            self._text = self._blocks
            yield self._block_start({"type": "text", "text": ""})
        delta = {"type": "text_delta", "text": text}
        yield {"type": "content_block_delta", "index": self._text, "delta": delta}

    def _call_events(self, call: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """The events of a call. Some servers give all calls the index 0 and distinguish them by id."""
        at, function = call.get("index") or 0, call.get("function") or {}
        id, block = self._calls.get(at, ("", -1))
        if block < 0 or (call.get("id") and call["id"] != id):
            id, block = call.get("id") or f"call_{self._blocks}", self._blocks
            self._calls[at] = id, block
            yield self._block_start({"type": "tool_use", "id": id, "name": function.get("name"), "input": {}})
        if function.get("arguments"):
            delta = {"type": "input_json_delta", "partial_json": function["arguments"]}
            yield {"type": "content_block_delta", "index": block, "delta": delta}

    def _block_start(self, block: dict[str, Any]) -> dict[str, Any]:
        self._blocks += 1
        return {"type": "content_block_start", "index": self._blocks - 1, "content_block": block}


# -- failures ----------------------------------------------------------------------------------------------
# Errors of the SDKs and endpoints as our own: those that may pass are retried.


_TRANSIENT = {"overloaded_error", "api_error", "rate_limit_error", "timeout_error", "server_error"}
_KEY_ERRORS = {"authentication_error", "permission_error", "billing_error"}
_LONGEST_MESSAGE = 300
_NO_SUCH_MODEL = late(
    r"(invalid|unknown|no such|not a valid) model|model\b.*\b(not found|not exist|not available)", re.I
)


class TransientFailure(Exception):
    """A failure that may pass. `wait` is the `Retry-After` in seconds; `sent`: the prompt may have been read
    and billed; `slow`: a time-out."""

    def __init__(
        self, what: str, *, wait: float | None = None, sent: bool = False, slow: bool = False
    ) -> None:
        super().__init__(what)
        self.what, self.wait, self.sent, self.slow = what, wait, sent, slow


def status_failure(
    error: APIStatusError | openai.APIStatusError, endpoint: Endpoint
) -> TransientFailure | UaMemoryError:
    """The failure for a status of 3xx, 4xx or 5xx, by the SDK's rules of what to retry."""
    status, headers = error.status_code, error.response.headers
    said = clean_message(_error_message(error), endpoint)
    what = f"the model's endpoint answered {status}" + (f": {said}" if said else "")
    again = headers.get("x-should-retry")
    if again == "true" or (again != "false" and (status in (408, 409, 429) or status >= 500)):
        return TransientFailure(what, wait=_delay(headers.get("retry-after-ms"), headers.get("retry-after")))
    if status in (408, 409, 429) or status >= 500:
        return _model_unavailable(what, endpoint)
    if status in (401, 402, 403):
        return _key_rejected(what, endpoint)
    if 300 <= status < 400:
        what = f"{what}: a redirect to {headers.get('location', 'elsewhere')!r}, which is not followed"
    return _request_rejected(what, endpoint, unknown=status == 404 or _NO_SUCH_MODEL.search(said) is not None)


def _error_message(error: APIStatusError | openai.APIStatusError) -> str:
    """The message in an error's body, or ''."""
    body: Any = error.body
    inner = body.get("error", body) if isinstance(body, Mapping) else body
    return str(inner.get("message") or "") if isinstance(inner, Mapping) else str(inner or "")


def connection_failure(error: APIConnectionError | openai.APIConnectionError) -> TransientFailure:
    """The failure if there was no answer: no server, no network, a time-out, or cut off before the first
    byte."""
    cause = error.__cause__
    kind = type(cause).__name__ if cause else ""
    if type(error).__name__ == "APITimeoutError" and kind != "ConnectTimeout":
        return TransientFailure("the model's endpoint did not respond in time", sent=True, slow=True)
    why = str(cause).strip()[:_LONGEST_MESSAGE] if cause else ""
    what = "the model's endpoint cannot be reached" + (f": {redact(why).text}" if why else "")
    return TransientFailure(what, sent=kind not in ("ConnectError", "ConnectTimeout"))


def event_failure(kind: str, message: str, endpoint: Endpoint) -> TransientFailure | UaMemoryError:
    """The failure for an error in a stream."""
    said = clean_message(message, endpoint)
    what = f"the model's endpoint ended its answer early: {kind}" + (f", {said}" if said else "")
    if kind in _TRANSIENT:
        return TransientFailure(what)
    return _key_rejected(what, endpoint) if kind in _KEY_ERRORS else _request_rejected(what, endpoint)


def clean_message(text: str, endpoint: Endpoint) -> str:
    """An endpoint's message, shortened, on one line, and without keys that it may repeat."""
    plain = text
    for key in filter(None, (endpoint.api_key.strip(), endpoint.auth_token.strip())):
        plain = plain.replace(key, "[key]")
    return " ".join(redact(plain).text.split())[:_LONGEST_MESSAGE]


def _key_rejected(what: str, endpoint: Endpoint) -> KeyRejected:
    name = endpoint.variable("AUTH_TOKEN" if endpoint.auth_token else "API_KEY")
    return KeyRejected(what, where=endpoint.url, hint=f"set {name} to a key that is valid there")


def _request_rejected(what: str, endpoint: Endpoint, *, unknown: bool = False) -> RequestRejected:
    """A request that was not accepted; `unknown`: the endpoint may not have the model."""
    url = f"{endpoint.variable('BASE_URL')} {endpoint.url}"
    hint = f"UA_MEMORY_MODEL is {endpoint.name}, {url}: check both"
    if unknown and not endpoint.model:
        hint = f"set UA_MEMORY_MODEL to a model that this endpoint has; {endpoint.name} is only the default"
    if endpoint.provider == "openai" and not urlsplit(endpoint.url).path:
        hint += f"; most servers are at {endpoint.url}/v1"
    return RequestRejected(what, where=endpoint.url, hint=hint)


def _model_unavailable(what: str, endpoint: Endpoint) -> UaMemoryError:
    return ModelUnavailable(what, where=endpoint.url, hint="try again later")


def _delay(milliseconds: str | None, seconds: str | None) -> float | None:
    """`Retry-After` in seconds, None if there is none; a date counts as infinite."""
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
# Builds the body of a request: all texts are redacted once more and counted, and cache breakpoints are set.
#
# The prompt cache matches prefixes (tools, system, messages) that end at a breakpoint. At most four are
# allowed: after the system text (which covers the tools), after the first message (the transcript), after the
# newest message, and where the request before had its newest. Without the last one, twenty parallel calls
# could lie between two breakpoints, and the server does not look back further.


_CACHE_BREAKPOINT = {"cache_control": {"type": "ephemeral"}}
_CACHED_TEXTS = 5_000
# What the API adds, as measured by its users: a few tokens a block, some 300–600 for tools.
_BLOCK_TOKENS, _TOOL_TOKENS = 8, 600


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """The body of a request without the model and the length of the answer; `tokens` by our own count."""

    body: dict[str, Any]
    tokens: int


class RedactedTexts:
    """Redacts and counts texts, each only once: an agent's loop sends the same transcript with every
    request."""

    def __init__(self, patterns: Mapping[str, str] = NO_PATTERNS) -> None:
        self._clean_and_count = lru_cache(maxsize=_CACHED_TEXTS)(partial(_clean_and_count, patterns))

    def clean(self, text: str) -> str:
        """The text without secrets, and without lone surrogates, which JSON cannot carry."""
        return self._clean_and_count(text)[0]

    def count(self, text: str) -> int:
        """The tokens of the clean text."""
        return self._clean_and_count(text)[1]


def _clean_and_count(patterns: Mapping[str, str], text: str) -> tuple[str, int]:
    clean = redact(text.encode("utf-8", "replace").decode(), patterns).text
    return clean, text_tokens.count(clean)


def build_request(
    words: RedactedTexts, system: str, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = (),
    *, cacheable: bool = False,
) -> ModelRequest:  # fmt: skip
    """The request for these messages. ValueError for a block that cannot be redacted."""
    asked = [number for number, message in enumerate(messages) if message["role"] == "user"]
    marked = {*asked[:1], *asked[-2:]} if cacheable else set()
    sent = []
    for number, message in enumerate(messages):
        blocks = [_redact_block(block, words.clean) for block in blocks_of(message)]
        if number in marked:
            blocks[-1] = {**blocks[-1], **_CACHE_BREAKPOINT}
        sent.append({"role": message["role"], "content": blocks})
    body: dict[str, Any] = {"messages": sent}
    if system:
        body["system"] = [{"type": "text", "text": words.clean(system), **_CACHE_BREAKPOINT}]
    if tools:
        body["tools"] = [_redact_descriptions(tool, words.clean) for tool in tools]
    return ModelRequest(body, _tokens_of(words, system, messages, body.get("tools", [])))


def _redact_block(block: Block, clean: Callable[[str], str]) -> dict[str, Any]:
    """The block with its texts redacted. Thinking blocks are signed and sent back unchanged: they were made
    from redacted text."""
    kind = block["type"]
    if kind == "text":
        return {**block, "text": clean(block["text"])}
    if kind == "tool_use":
        return {**block, "input": change_texts(block["input"], clean)}
    if kind == "tool_result":
        content, is_text = block.get("content", ""), isinstance(block.get("content", ""), str)
        parts = clean(content) if is_text else [_redact_block(each, clean) for each in content]
        return {**block, "content": parts}
    if kind in ("thinking", "redacted_thinking"):
        return dict(block)
    raise ValueError(f"a block of type {kind!r} is never sent: nothing can take secrets out of it")


def _redact_descriptions(tool: Any, clean: Callable[[str], str]) -> Any:
    """A tool's definition with its descriptions redacted; the rest is code."""
    if isinstance(tool, Mapping):
        found = {key: _redact_descriptions(item, clean) for key, item in tool.items()}
        text = found.get("description")
        return {**found, "description": clean(text)} if isinstance(text, str) else found
    return [_redact_descriptions(item, clean) for item in tool] if isinstance(tool, list | tuple) else tool


def _tokens_of(words: RedactedTexts, system: str, messages: Sequence[Message], tools: Sequence[Any]) -> int:
    total = words.count(system) + (_TOOL_TOKENS + words.count(json.dumps(tools)) if tools else 0)
    for message in messages:
        for block in blocks_of(message):
            total += _BLOCK_TOKENS + sum(words.count(text) for text in _texts(block))
    return total


def _texts(block: Block) -> list[str]:
    kind = block["type"]
    if kind == "tool_use":
        return [json.dumps(block["input"], ensure_ascii=False)]
    if kind == "tool_result":
        content = block.get("content", "")
        return [content] if isinstance(content, str) else [t for each in content for t in _texts(each)]
    return [str(block.get(kind, "")) if kind != "redacted_thinking" else str(block.get("data", ""))]


# -- message batches ---------------------------------------------------------------------------------------
# The Batches API answers many requests within a day, at half the price. `post` returns a `BatchHandle`, and
# another process may `collect` it later. Until then their worst case is in the ledger.


BATCH_PRICE = 0.5
"""The share of its price that a request in a batch costs."""


@dataclass(frozen=True, slots=True)
class BatchQuestion:
    """One request of a batch."""

    system: str
    messages: Sequence[Message]
    tools: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class BatchHandle:
    """A posted batch: its id, how many of the questions are in it, the first ones, the model, and its ledger
    entry."""

    id: str
    count: int
    model: str
    entry: str


def add_message(message: Mapping[str, Any], answer: StreamedReply) -> StreamedReply:
    """Add a complete message as the events of a stream."""
    answer.add({"type": "message_start", "message": message})
    for number, block in enumerate(message.get("content") or ()):
        answer.add({"type": "content_block_start", "index": number, "content_block": block})
    answer.add({"type": "message_delta", "delta": message, "usage": message.get("usage")})
    answer.add({"type": "message_stop"})
    return answer


@contextmanager
def _as_failures(sdk: Any, endpoint: Endpoint) -> Iterator[None]:
    """Convert an SDK's errors to TransientFailure or our own errors."""
    try:
        yield
    except sdk.APIStatusError as error:
        raise status_failure(error, endpoint) from error
    except sdk.APIConnectionError as error:
        raise connection_failure(error) from error


@contextmanager
def _as_batch_errors(endpoint: Endpoint) -> Iterator[None]:
    """Convert all errors of a batch to our own."""
    import anthropic

    try:
        with _as_failures(anthropic, endpoint):
            yield
    except TransientFailure as error:
        raise _model_unavailable(error.what, endpoint) from error
    except anthropic.AnthropicError as error:
        raise _model_unavailable(f"the model's endpoint gave no batch: {error}", endpoint) from error


# -- models ------------------------------------------------------------------------------------------------
# Each request is metered and retried. The SDKs give the connection and its errors, but three things are done
# here: retries, since the SDKs do not retry a cut stream, and sleep for as long as `Retry-After` says, even
# a day; no redirects, which would send texts to another server; and no key or address is taken from the
# environment or an SDK's profiles, since a daemon serves several banks.


_UNMEASURED_RATIO = 1.5
"""The most tokens of a model for one of ours, until a reply gives its own count."""
_MARGIN = 1.1
_LONGEST_PAUSE = 8.0


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Times in seconds: for the connection, for the next byte, for a whole answer; how often to retry, after
    which first pause, and the longest `Retry-After` to wait for; and whether to retry after a time-out."""

    connect: float = 10.0
    read: float = 300.0
    answer: float = 1200.0
    retries: int = 2
    pause: float = 0.5
    longest_wait: float = 60.0
    retry_slow: bool = True


LOCAL_TIMEOUTS = Timeouts(read=1200.0, answer=3600.0, retry_slow=False)
"""For a server on this network: it is silent for minutes while a CPU reads a long prompt. Requests that were
too slow are not retried."""


class MeteredModel(ABC):
    """A model for one run, metered. Close it, or use it as a context manager."""

    one_shot = False
    _client: Anthropic | openai.OpenAI | None = None

    def __init__(
        self, endpoint: Endpoint, meter: Meter, *, patterns: Mapping[str, str] = NO_PATTERNS,
        timeouts: Timeouts | None = None,
    ) -> None:  # fmt: skip
        self._endpoint, self._meter = endpoint, meter
        self._timeouts = timeouts or (LOCAL_TIMEOUTS if endpoint.free else Timeouts())
        self._texts = RedactedTexts(patterns)
        self._token_ratio: float | None = None

    @property
    def name(self) -> str:
        """The id of the requested model."""
        return self._endpoint.name

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection, if there is one. `ask` opens it again."""
        if self._client is not None:
            self._client.close()
            self._client = None

    @abstractmethod
    def _receive(self, request: ModelRequest, max_tokens: int, answer: StreamedReply) -> None:
        """Send the request and receive the complete answer. TransientFailure for what may be retried."""

    def ask(
        self, system: str, messages: Sequence[Message], *, purpose: str, max_tokens: int = 16_000,
        tools: Sequence[Mapping[str, Any]] = (), cacheable: bool = False,
    ) -> Reply:  # fmt: skip
        """See `Model.ask`."""
        request = build_request(self._texts, system, messages, tools, cacheable=cacheable)
        pause = self._timeouts.pause
        for attempt in range(self._timeouts.retries + 1):
            try:
                return self._ask_once(request, max_tokens, purpose)
            except TransientFailure as failure:
                wait = failure.wait
                last = attempt == self._timeouts.retries or (failure.slow and not self._timeouts.retry_slow)
                if last or (wait or 0.0) > self._timeouts.longest_wait:
                    raise self._unavailable(failure, attempt + 1) from failure
                # With jitter: many banks wake at the same hour.
                time.sleep(pause * random.uniform(0.75, 1.0) if wait is None else wait)
                pause = min(2 * pause, _LONGEST_PAUSE)
        raise AssertionError("the loop above returns or raises")

    def estimate(self, tokens: int) -> int:
        """An upper estimate of the model's tokens for a number of ours, learnt from its own counts."""
        factor = _UNMEASURED_RATIO if self._token_ratio is None else self._token_ratio * _MARGIN
        return int(tokens * factor) + 1

    def _ask_once(self, request: ModelRequest, max_tokens: int, purpose: str) -> Reply:
        prompt = self.estimate(request.tokens)
        worst = TokenUsage(cache_write=prompt, output=max_tokens)
        entry = self._meter.reserve(purpose, self.name, worst, free=self._endpoint.free)
        answer, sent = StreamedReply(), True
        try:
            self._receive(request, max_tokens, answer)
            # A refusal must not be saved or sent back as an answer.
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
            used = answer.usage if answer.started else TokenUsage(input=prompt if sent else 0)
            if answer.started and not used.prompt:  # not every server counts
                used = replace(used, input=prompt)
            failed = not answer.complete
            self._meter.record_usage(entry, answer.model, used, failed=failed, request=answer.request_id)
        # Not from small prompts, which are mostly overhead.
        if (counted := reply.usage.prompt) and request.tokens >= 200:
            self._token_ratio = max(self._token_ratio or 1.0, counted / request.tokens)
        return reply

    def _stream(self, opened: Any, answer: StreamedReply, chat: ChatStream | None = None) -> None:
        """Add the events of a response, or the chunks of a `chat` as events."""
        with opened:
            headers = opened.response.headers
            answer.request_id = headers.get("request-id", "") or headers.get("x-request-id", "")
            chunks = self._timed_chunks(opened.response.iter_bytes())
            try:
                for event in events(chunks):
                    for each in chat.events(event) if chat else (event,):
                        answer.add(each)
            except ErrorEvent as error:
                raise event_failure(error.kind, str(error), self._endpoint) from error
            except MalformedStream as error:
                what = f"the model's endpoint sent an invalid answer: {error}"
                raise TransientFailure(what, sent=True) from error
        if not answer.complete:
            raise TransientFailure("the model's answer is incomplete", sent=True)

    def _timed_chunks(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        """The chunks, until the time for an answer is over. Errors while bytes are read count as a cut: the
        SDK passes them on as classes of another library."""
        until = time.monotonic() + self._timeouts.answer
        try:
            for chunk in chunks:
                yield chunk
                if time.monotonic() > until:  # pings and comments alone would keep us here for ever
                    what = f"the model's answer took longer than {self._timeouts.answer:g} s"
                    raise _model_unavailable(what, self._endpoint)
        except UaMemoryError:
            raise
        except Exception as error:
            slow = "Timeout" in type(error).__name__
            what = "stopped coming" if slow else "was cut off"
            raise TransientFailure(f"the model's answer {what}", sent=True, slow=slow) from error

    def _arguments(self, sdk: Any) -> dict[str, Any]:
        """The arguments of an SDK's client."""
        times = sdk.Timeout(self._timeouts.read, connect=self._timeouts.connect)
        http = {
            "follow_redirects": False,
            # Reading the system's certificates takes 0.1 s, which a plain http URL has no use for.
            "verify": urlsplit(self._endpoint.url).scheme != "http",
            # A proxy set for the world outside has no business with a model on this network. The SDK takes
            # it from the environment even with trust_env=False; a mount overrides it.
            "mounts": {"http://": None, "https://": None, "all://": None} if self._endpoint.free else {},
        }
        client = sdk.DefaultHttpxClient(timeout=times, **http)
        return {"base_url": self._endpoint.url, "max_retries": 0, "timeout": times, "http_client": client}

    def _unavailable(self, failure: TransientFailure, attempts: int) -> ModelUnavailable:
        what = failure.what + (f": {self._timeouts.read:g} s" if failure.slow else "")
        what += f" ({attempts} tries)" if attempts > 1 else ""
        far = failure.wait is not None and failure.wait > self._timeouts.longest_wait
        when = f"in {failure.wait:.0f} s" if far and failure.wait != float("inf") else "later"
        if failure.slow and self._endpoint.free:
            when += ", or send less at once with a smaller UA_CONTEXT_WINDOW"
        return ModelUnavailable(what, where=self._endpoint.url, hint=f"try again {when}")

    def _refused(self, why: str) -> ModelRefused:
        said = clean_message(why, self._endpoint)
        what = f"{self.name} declined to answer" + (f": {said}" if said else "")
        hint = "use another UA_MEMORY_MODEL, or UA_MEMORY_PROVIDER=none"
        return ModelRefused(what, where=self._endpoint.url, hint=hint)


# -- providers ---------------------------------------------------------------------------------------------


class OpenAIModel(MeteredModel):
    """A model with the chat completions API: OpenAI's, Ollama, LM Studio, vLLM and others.

    `ask` raises KeyRejected or RequestRejected for an invalid key or URL before anything is sent.
    """

    _client: openai.OpenAI | None = None

    def _receive(self, request: ModelRequest, max_tokens: int, answer: StreamedReply) -> None:
        client = self._connect()
        import openai

        own = self._endpoint.url == DEFAULT_URLS["openai"]
        body: Any = chat_body(request, self.name, max_tokens, own=own)
        with _as_failures(openai, self._endpoint):
            stream = client.chat.completions.create(**body)
        self._stream(stream, answer, ChatStream())

    def _connect(self) -> openai.OpenAI:
        if self._client is None:
            _check_endpoint(self._endpoint)
            try:
                import openai
            except ImportError as error:
                what = "the provider openai needs the openai SDK"
                raise ModelUnavailable(what, hint="pip install 'ua-memory[openai]'") from error
            key = self._endpoint.api_key.strip() or "none"
            self._client = openai.OpenAI(api_key=key, **self._arguments(openai))
        return self._client


class Claude(MeteredModel):
    """A model with the Messages API: Anthropic's, or any server at the owner's URL.

    `ask` raises KeyRejected or RequestRejected for an invalid key or URL before anything is sent.
    """

    _client: Anthropic | None = None

    def _receive(self, request: ModelRequest, max_tokens: int, answer: StreamedReply) -> None:
        import anthropic

        with _as_failures(anthropic, self._endpoint):
            stream = self._connect().messages.create(
                model=self.name, max_tokens=max_tokens, stream=True, **request.body
            )
        self._stream(stream, answer)

    def _connect(self) -> Anthropic:
        if self._client is None:
            _check_endpoint(self._endpoint)
            import anthropic

            token = self._endpoint.auth_token.strip() or None
            # One is set in any case: else the SDK looks in the environment and the home folder.
            key = None if token else self._endpoint.api_key.strip() or "none"
            self._client = anthropic.Anthropic(
                api_key=key, auth_token=token, open_telemetry=False, **self._arguments(anthropic)
            )
        return self._client

    # -- batches ------------------------------------------------------------------------------------

    def post(self, questions: Sequence[BatchQuestion], *, purpose: str, max_tokens: int) -> BatchHandle:
        """Post a batch with as many of the questions, from the first on, as the limits allow. Raises what
        `ask` raises; BudgetSpent if not even the first one fits."""
        built = [build_request(self._texts, q.system, q.messages, q.tools, cacheable=True) for q in questions]
        entry, count = self._reserve(built, purpose, max_tokens)
        requests = [
            {"custom_id": str(n), "params": {"model": self.name, "max_tokens": max_tokens, **each.body}}
            for n, each in enumerate(built[:count])
        ]
        try:
            with _as_batch_errors(self._endpoint):
                made = self._connect().messages.batches.create(requests=requests)  # type: ignore[arg-type]
        except (KeyRejected, RequestRejected):  # whatever else went wrong, it may have been taken
            self._meter.record_usage(entry, "", share=BATCH_PRICE, failed=True)
            raise
        return BatchHandle(made.id, count, self.name, entry.line().decode())

    def collect(self, post: BatchHandle) -> dict[int, Reply] | None:
        """The replies of a batch by the index of their question, None if it has not ended; failed and
        refused ones are missing. Raises what `ask` raises; RequestRejected if the endpoint does not know
        the batch."""
        with _as_batch_errors(self._endpoint):
            batches = self._connect().messages.batches
            if batches.retrieve(post.id).processing_status != "ended":
                return None
            rows = [(row.custom_id, row.result) for row in batches.results(post.id)]
        found: dict[int, Reply] = {}
        used: list[TokenUsage] = []
        for name, result in rows:
            if result.type == "succeeded" and name.isdigit() and int(name) < post.count:
                answer = add_message(result.message.to_dict(), StreamedReply())
                used.append(answer.usage)
                if answer.refusal is None:
                    found[int(name)] = answer.reply()
        entry = parse_entry(json.loads(post.entry))
        self._meter.record_usage(entry, "", *used, share=BATCH_PRICE, failed=not found)
        return found

    def _reserve(self, built: Sequence[ModelRequest], purpose: str, max_tokens: int) -> tuple[Entry, int]:
        worst = [TokenUsage(cache_write=self.estimate(r.tokens), output=max_tokens) for r in built]
        count = len(worst)
        while True:
            how: dict[str, Any] = {"share": BATCH_PRICE, "free": self._endpoint.free}
            try:
                return self._meter.reserve(purpose, self.name, *worst[:count], **how), count
            except BudgetSpent:
                if count <= 1:
                    raise
                count = count * 3 // 4


def _check_endpoint(endpoint: Endpoint) -> None:
    parts = urlsplit(endpoint.url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        hint = f"correct {endpoint.variable('BASE_URL')}"
        raise RequestRejected("this is not the URL of a model", where=endpoint.url, hint=hint)
    key = (endpoint.auth_token or endpoint.api_key).strip()
    name = endpoint.variable("AUTH_TOKEN" if endpoint.auth_token else "API_KEY")
    if not (key.isascii() and key.isprintable()) or " " in key:
        # Said here because the library below would print the key that it cannot send.
        raise KeyRejected("the key contains invalid characters", hint=f"set {name} again")
    if not key and endpoint.url == DEFAULT_URLS[endpoint.provider]:
        raise KeyRejected("no API key is set", where=endpoint.url, hint=f"set {name}")
