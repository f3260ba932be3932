"""A model that calls its tools well and says what a small one makes up: a fluent liar with real quotes.

The small model behind `url` calls no tools by itself. Here it is asked about one turn after another, and
whatever it answers is proposed as a fact resting on words that were really said in that turn.
"""

from __future__ import annotations

import json
import re
import urllib.request
from typing import Any

from deciding_model import facts, shown
from fake_model import FakeModel, Script

_TURN = re.compile(
    r"^\[(\d+)\] (person|assistant)[^:\n]*(?:\d\d:\d\d)?: (.+?)(?=^\[\d+\] |^— |\Z)", re.M | re.S
)
_ASK = "State one fact about this in one sentence, with names, numbers and dates."


class Inventive(FakeModel):
    """`said` are the sentences that the small model made of the turns, in order."""

    def __init__(self, url: str, each: int = 10) -> None:
        super().__init__()
        self.small, self.each, self.said = url, each, list[str]()

    def reply_to(self, body: dict[str, Any], headers: dict[str, str]) -> Script:
        if len(body["messages"]) > 1:
            return {"text": "done"}
        opening = body["messages"][0]["content"][0]["text"]
        found = [(int(n), text) for n, _, text in _TURN.findall(opening) if len(_quote(text).split()) > 3]
        step = max(1, len(found) // self.each)
        return {"calls": [self._call(n, text) for n, text in found[::step]]} if found else {"text": "done"}

    def _call(self, number: int, text: str) -> tuple[str, dict[str, Any]]:
        sentence = self._asked(text[:600])
        self.said.append(sentence)
        given = {"content": sentence, "quote": _quote(text), "turn": number, "tags": ["said"]}
        return "archival_memory_insert", given

    def _asked(self, text: str) -> str:
        messages = [{"role": "user", "content": f"{text}\n\n{_ASK}"}]
        body = {"model": "small", "max_tokens": 60, "messages": messages}
        request = urllib.request.Request(
            f"{self.small}/v1/messages", json.dumps(body).encode(), {"content-type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=300) as answer:
            blocks = json.load(answer)["content"]
        words = " ".join("".join(block.get("text", "") for block in blocks).split())
        return words[:1000] or "Nothing."


class InventsFacts(Inventive):
    """The same over a text that is retained: of every few lines of it a fact."""

    def reply_to(self, body: dict[str, Any], headers: dict[str, str]) -> Script:
        last = body["messages"][-1]["content"][-1]
        text = re.search(r"<text [^>]*>\n(.*)\n</text>", str(last.get("text") or ""), re.S)
        if not text:
            return {"text": "done"}
        lines = list(filter(None, map(_quote, text[1].splitlines())))[:: max(1, self.each // 4)]
        return {"calls": [("keep", {"facts": [self._fact(line) for line in lines[: self.each]]})]}

    def _fact(self, line: str) -> dict[str, Any]:
        self.said.append(self._asked(line))
        return {"what": self.said[-1], "quote": line, "entities": re.findall(r"[A-Z]\w+", self.said[-1])[:12]}


class InventsBeliefs(Inventive):
    """The same over facts that are consolidated: an observation of every few, and it rests on their words."""

    def reply_to(self, body: dict[str, Any], headers: dict[str, str]) -> Script:
        last = body["messages"][-1]["content"]
        if any(block["type"] == "tool_result" for block in last):
            return {"calls": [("decide", {"operations": []})]}
        asked = list(facts(shown(body)).items())
        chosen = asked[:: max(1, len(asked) // self.each)]
        return {"calls": [("decide", {"operations": [self._belief(*fact) for fact in chosen]})]}

    def _belief(self, label: str, text: str) -> dict[str, Any]:
        self.said.append(self._asked(text))
        quote = " ".join(text.split()[:6])
        return {"do": "create", "text": self.said[-1][:600], "proofs": [{"fact": label, "quote": quote}]}


def _quote(text: str) -> str:
    """The first line of a turn that says something."""
    lines = (line.strip() for line in text.splitlines())
    return next((line[:300].strip() for line in lines if len(line.split()) > 3), "")
