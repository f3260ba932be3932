"""A scripted model API on loopback: Anthropic's Messages, and OpenAI's chat completions.

    with FakeModel({"text": "hello"}, {"error": 529}) as fake:
        ... Endpoint("sk-test", fake.url) ...
        assert fake.bodies[0]["model"]

Replies are given out one a request, the last one for ever; `rules` come first: pairs of a regular
expression, searched in the body as JSON, and the reply for every request that has it. A reply is a dict:

    text, thinking      one block each; calls: [(name, input), …], an input given as a str is sent as it is
    blocks              raw blocks instead; stop; usage; model; details (stop_details of a refusal)
    error               a status; with message, type, retry_after (seconds) and headers beside it
    cut                 drop the connection after so many events; 0: before any byte of an answer
    short               end the stream properly after so many events
    broken              a mid-stream error event of this type, after the first delta
    garbage             send this text instead of an event stream
    hang                say nothing for so many seconds, after `cut` events if given
    drip                send comments or pings (by name) for ever
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

Script = Mapping[str, Any]


class FakeModel:
    """Start it with `with`. `bodies` are the message requests, `headers` theirs, in order. `batches` are
    those that were posted; they are under way until they have `ended`."""

    def __init__(
        self, *replies: Script, rules: Sequence[tuple[str, Script]] = (), count: int | None = None
    ) -> None:
        self.replies, self.rules, self.counted = list(replies) or [{"text": "ok"}], list(rules), count
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.batches: dict[str, list[dict[str, Any]]] = {}
        self.ended = False
        self.stopping = threading.Event()
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (_Handler,), {"fake": self}))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    def __enter__(self) -> FakeModel:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stopping.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def reply_to(self, body: dict[str, Any], headers: dict[str, str]) -> Script:
        with self._lock:
            self.bodies.append(body)
            self.headers.append(headers)
            text = json.dumps(body, ensure_ascii=False)
            for pattern, reply in self.rules:
                if re.search(pattern, text):
                    return reply
            return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]


def message(reply: Script, body: Mapping[str, Any]) -> dict[str, Any]:
    """The whole answer that a reply scripts."""
    blocks = [dict(block) for block in reply.get("blocks", ())]
    if "thinking" in reply:
        blocks.append({"type": "thinking", "thinking": reply["thinking"], "signature": "c2lnbmVk"})
    if "text" in reply:
        blocks.append({"type": "text", "text": reply["text"]})
    for number, (name, given) in enumerate(reply.get("calls", ())):
        identity = f"toolu_{len(body['messages'])}_{number}"
        blocks.append({"type": "tool_use", "id": identity, "name": name, "input": given})
    called = any(block["type"] == "tool_use" for block in blocks)
    usage = {"input_tokens": len(json.dumps(body)) // 4, "output_tokens": len(json.dumps(blocks)) // 4}
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": reply.get("model", body["model"]),
        "content": blocks,
        "stop_reason": reply.get("stop", "tool_use" if called else "end_turn"),
        "stop_details": reply.get("details"),
        "usage": {**usage, **reply.get("usage", {})},
    }


def events(whole: Mapping[str, Any], broken: str | None) -> Iterator[dict[str, Any]]:
    """A whole answer as the API streams it."""
    begin = {**whole, "content": [], "stop_reason": None, "usage": {**whole["usage"], "output_tokens": 1}}
    yield {"type": "message_start", "message": begin}
    yield {"type": "ping"}
    for index, block in enumerate(whole["content"]):
        empty, deltas = _opened(block)
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
            if broken:
                yield {"type": "error", "error": {"type": broken, "message": "scripted"}}
                return
        yield {"type": "content_block_stop", "index": index}
    delta = {key: whole[key] for key in ("stop_reason", "stop_details")}
    usage = {"output_tokens": whole["usage"]["output_tokens"]}
    yield {"type": "message_delta", "delta": {**delta, "stop_sequence": None}, "usage": usage}
    yield {"type": "message_stop"}


def chunks(whole: Mapping[str, Any], broken: str | None) -> Iterator[dict[str, Any]]:
    """A whole answer as chat completions stream it."""

    def chunk(delta: Mapping[str, Any], reason: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return {
            "id": "chatcmpl-1",
            "model": whole["model"],
            "choices": [choice],
        }

    yield chunk({"role": "assistant", "content": ""})
    calls = [block for block in whole["content"] if block["type"] == "tool_use"]
    for text in (t for block in whole["content"] if block["type"] == "text" for t in _cut(block["text"])):
        yield chunk({"content": text})
        if broken:
            yield {"error": {"type": broken, "message": "scripted"}}
            return
    for number, block in enumerate(calls):
        given = block["input"] if isinstance(block["input"], str) else json.dumps(block["input"])
        function = {"name": block["name"], "arguments": ""}
        yield chunk({"tool_calls": [{"index": number, "id": f"{block['id']}", "function": function}]})
        for text in _cut(given):
            yield chunk({"tool_calls": [{"index": number, "function": {"arguments": text}}]})
    names = {"end_turn": "stop", "tool_use": "tool_calls", "max_tokens": "length"}
    yield chunk({}, names.get(whole["stop_reason"], "content_filter"))
    used = whole["usage"]
    cached = used.get("cache_read_input_tokens", 0)
    usage = {
        "prompt_tokens": used["input_tokens"] + cached, "completion_tokens": used["output_tokens"],
        "prompt_tokens_details": {"cached_tokens": cached},
    }  # fmt: skip
    yield {"id": "chatcmpl-1", "choices": [], "usage": usage}


def _opened(block: Mapping[str, Any]) -> tuple[dict[str, Any], list[dict[str, str]]]:
    if block["type"] == "tool_use":
        given = block["input"]
        text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
        return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": t} for t in _cut(text)]
    if block["type"] == "text":
        return {**block, "text": ""}, [{"type": "text_delta", "text": t} for t in _cut(block["text"])]
    if block["type"] == "thinking":
        deltas = [{"type": "thinking_delta", "thinking": t} for t in _cut(block["thinking"])]
        signed = {"type": "signature_delta", "signature": block["signature"]}
        return {**block, "thinking": "", "signature": ""}, [*deltas, signed]
    return dict(block), []


def _cut(text: str) -> list[str]:
    return [text[at : at + 40] for at in range(0, len(text), 40)]


class _Handler(BaseHTTPRequestHandler):
    fake: FakeModel
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: object) -> None:
        """Tests are silent."""

    def do_GET(self) -> None:
        """A batch: how it stands, or once it has ended its results, each as the script replies then."""
        _, _, name = self.path.partition("/v1/messages/batches/")
        block, _, results = name.partition("/")
        if block not in self.fake.batches:
            self._json(404, {"type": "error", "error": {"type": "not_found_error", "message": "none"}}, {})
        elif not results:
            self._json(200, self._batch(block), {})
        else:
            self._begin("application/x-jsonl")
            for row in self.fake.batches[block]:
                reply = self.fake.reply_to(row["params"], {})
                told: dict[str, Any] = {"type": "succeeded", "message": message(reply, row["params"])}
                if "error" in reply:
                    error = {"type": "api_error", "message": "scripted"}
                    told = {"type": "errored", "error": {"type": "error", "error": error}}
                self._chunk(json.dumps({"custom_id": row["custom_id"], "result": told}).encode() + b"\n")
            self.wfile.write(b"0\r\n\r\n")

    def _batch(self, block: str) -> dict[str, Any]:
        counts = dict.fromkeys(("canceled", "errored", "expired", "processing", "succeeded"), 0)
        ended = self.fake.ended
        return {
            "id": block, "type": "message_batch", "request_counts": counts, "archived_at": None,
            "processing_status": "ended" if ended else "in_progress", "cancel_initiated_at": None,
            "created_at": "2026-11-21T12:00:00Z", "expires_at": "2026-11-22T12:00:00Z", "ended_at": None,
            "results_url": f"{self.fake.url}/v1/messages/batches/{block}/results" if ended else None,
        }  # fmt: skip

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            if self.path.endswith("/count_tokens"):
                self._count()
            elif self.path.endswith("/batches"):
                block = f"msgbatch_{len(self.fake.batches) + 1}"
                self.fake.batches[block] = body["requests"]
                self._json(200, self._batch(block), {})
            else:
                self._answer(self.fake.reply_to(body, {k.lower(): v for k, v in self.headers.items()}), body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _count(self) -> None:
        if self.fake.counted is None:
            self._json(
                404, {"type": "error", "error": {"type": "not_found_error", "message": "no such path"}}, {}
            )
        else:
            self._json(200, {"input_tokens": self.fake.counted}, {})

    def _answer(self, reply: Script, body: dict[str, Any]) -> None:
        if "error" in reply:
            headers = dict(reply.get("headers", {}))
            if "retry_after" in reply:
                headers["retry-after"] = str(reply["retry_after"])
            error = {"type": reply.get("type", "api_error"), "message": reply.get("message", "scripted")}
            self._json(reply["error"], {"type": "error", "error": error}, headers)
        elif "garbage" in reply:
            self._begin("text/html")
            self._chunk(reply["garbage"].encode())
            self.wfile.write(b"0\r\n\r\n")
        elif reply.get("cut") == 0:
            self.fake.stopping.wait(reply.get("hang", 0))
            self.close_connection = True
        elif not body.get("stream"):  # as an SDK's caller asks who waits for the whole
            self._json(200, message(reply, body), {})
        else:
            self._stream(reply, body)

    def _stream(self, reply: Script, body: dict[str, Any]) -> None:
        if "hang" in reply and "cut" not in reply:
            self.fake.stopping.wait(reply["hang"])
        self._begin("text/event-stream")
        while "drip" in reply and not self.fake.stopping.wait(0.02):
            self._chunk(b": still here\n\n" if reply["drip"] == "comments" else b'data: {"type": "ping"}\n\n')
        chat = self.path.endswith("/chat/completions")
        rows = (chunks if chat else events)(message(reply, body), reply.get("broken"))
        for number, event in enumerate(rows):
            if number == reply.get("cut"):
                self.fake.stopping.wait(reply.get("hang", 0))
                self.close_connection = True
                return
            if number == reply.get("short"):
                break
            data = json.dumps(event, ensure_ascii=False)
            head = "" if chat else f"event: {event['type']}\n"
            self._chunk(f"{head}data: {data}\n\n".encode())
        if chat and "short" not in reply:
            self._chunk(b"data: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")

    def _begin(self, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Transfer-Encoding", "chunked")
        self.send_header("request-id", "req_scripted")
        self.end_headers()

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def _json(self, status: int, told: object, headers: Mapping[str, str]) -> None:
        data = json.dumps(told).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
