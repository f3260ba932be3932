"""The real Gemini CLI against a scripted model that speaks its interface; GEMINI_BIN names it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from real_client import program, server
from real_clients import Driven, node


def asked(body: dict[str, Any]) -> dict[str, Any]:
    """A request of Gemini's as the scripts know requests."""
    messages = []
    for row in body.get("contents") or []:
        role = {"model": "assistant"}.get(row.get("role"), "user")
        parts = []
        for part in row.get("parts") or []:
            if "functionResponse" in part:
                text = json.dumps(part["functionResponse"].get("response"))
                parts.append({"type": "tool_result", "tool_use_id": "1", "content": text})
            elif part.get("text"):
                parts.append({"type": "text", "text": part["text"]})
        messages.append({"role": role, "content": parts})
    offered = [each for tool in body.get("tools") or [] for each in tool.get("functionDeclarations", [])]
    tools = [{"name": each["name"]} for each in offered]
    return {"model": "gemini", "messages": messages, "tools": tools}


def answered(message: dict[str, Any]) -> dict[str, Any]:
    """A reply of a script as Gemini says it."""
    parts = [
        {"text": block["text"]}
        if block["type"] == "text"
        else {"functionCall": {"name": block["name"], "args": block["input"]}}
        for block in message["content"]
    ]
    used = {"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110}
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
    return {"candidates": [candidate], "usageMetadata": used, "modelVersion": "gemini"}


def speaking(fake: Any) -> Any:
    """A scripted Anthropic that speaks Gemini's interface, too."""
    module = server("fake_anthropic")

    class Handler(module.Handler):  # type: ignore[misc, name-defined]
        def route(self, request: dict[str, Any]) -> Any:
            if "enerateContent" not in request["path"] or not isinstance(request["body"], dict):
                return super().route(request)
            fake.record(request)
            body, number = asked(request["body"]), fake.count_message()
            _, reply = fake.script.choose({**request, "body": body}, number)
            found = answered(module.build_message(reply, body))
            if "stream" not in request["path"]:
                return self.send_json(200, found)
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(f"data: {json.dumps(found)}\n\n".encode())
            self.close_connection = True
            return None

    fake._server.RequestHandlerClass = type("Bound", (Handler,), {"fake": fake})
    return fake


class Gemini(Driven):
    """Gemini CLI, one run a prompt."""

    def __init__(self, root: Path, rules: list[Any], default: Any, **more: str) -> None:
        self.words = [node(), program("GEMINI_BIN")]
        super().__init__(root, rules, default, **more)
        speaking(self.fake)

    def set_up(self) -> None:
        folder = self.home / ".gemini"
        folder.mkdir()
        auth = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
        quiet = {"privacy": {"usageStatisticsEnabled": False}}
        folder.joinpath("settings.json").write_text(json.dumps({**auth, **quiet}))
        self.install("gemini")

    def says(self, text: str, *words: str) -> str:
        model = {"GOOGLE_GEMINI_BASE_URL": self.fake.base_url, "GEMINI_API_KEY": "dummy"}
        run = [*self.words, "-m", "gemini-2.5-flash", "-p", text, *words]
        return self.done(run, **model, GEMINI_CLI_TRUST_WORKSPACE="true")
