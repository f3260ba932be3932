"""An OpenAI-compatible endpoint on loopback: embeddings from ua-memory's own model, so that tools differ
only in how they search; and a language model that has nothing to say, whose input is counted.

    endpoint.py [PORT]      serves until its standard input ends; `GET /spent` tells what was asked for
"""

from __future__ import annotations

import base64
import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from ua_memory.index.embedding import Embedder

MODEL = "all-MiniLM-L6-v2"


class Spent:
    """Requests and characters that were sent, by what they were for."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.counts = {"embedding_requests": 0, "embedding_chars": 0, "model_requests": 0, "model_chars": 0}

    def add(self, kind: str, chars: int) -> None:
        with self.lock:
            self.counts[f"{kind}_requests"] += 1
            self.counts[f"{kind}_chars"] += chars


class Endpoint(BaseHTTPRequestHandler):
    embedder: Embedder
    spent: Spent
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing: standard error is for what goes wrong."""

    def do_GET(self) -> None:
        self._answer(
            self.spent.counts if self.path == "/spent" else {"data": [{"id": MODEL, "object": "model"}]}
        )

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.endswith("/embeddings"):
            self._answer(self._embeddings(asked))
        elif self.path.endswith("/chat/completions"):
            self._answer(self._silence(asked))
        else:
            self.send_error(404)

    def _embeddings(self, asked: dict[str, Any]) -> dict[str, Any]:
        texts = [asked["input"]] if isinstance(asked["input"], str) else asked["input"]
        self.spent.add("embedding", sum(map(len, texts)))
        vectors = self.embedder.texts(texts)
        plain = asked.get("encoding_format") != "base64"
        rows = [
            v.tolist() if plain else base64.b64encode(v.astype("<f4").tobytes()).decode() for v in vectors
        ]
        data = [{"object": "embedding", "index": i, "embedding": row} for i, row in enumerate(rows)]
        return {
            "object": "list",
            "model": MODEL,
            "data": data,
            "usage": {"prompt_tokens": 0, "total_tokens": 0},
        }

    def _silence(self, asked: dict[str, Any]) -> dict[str, Any]:
        self.spent.add("model", len(json.dumps(asked["messages"], ensure_ascii=False)))
        said = {"role": "assistant", "content": '{"facts": []}'}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        choice = {"index": 0, "message": said, "finish_reason": "stop"}
        made = {"id": "silence", "object": "chat.completion", "created": int(time.time())}
        return {**made, "model": asked.get("model", MODEL), "choices": [choice], "usage": usage}

    def _answer(self, body: dict[str, Any]) -> None:
        sent = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)


def serve(port: int = 0) -> ThreadingHTTPServer:
    """The endpoint on loopback, at a free port unless one is named; it serves in a thread of its own."""
    handler = type("Endpoint", (Endpoint,), {"embedder": Embedder(), "spent": Spent()})
    server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


if __name__ == "__main__":
    print(
        f"http://127.0.0.1:{serve(int(sys.argv[1]) if len(sys.argv) > 1 else 0).server_port}/v1", flush=True
    )
    sys.stdin.read()
