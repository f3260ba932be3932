"""A model that decides by what it is shown, over HTTP, and banks with facts for it to decide on."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from banks import NOON, Bank, new_bank
from fake_model import FakeModel, Script

from ua_memory.llm.model import Endpoint
from ua_memory.memory import Memory

Shown = dict[str, str]
"""Texts by label, as a request shows them: f1, f2, … for facts, o1 and n1 for observations."""
Rule = Callable[[Shown], Script]


class Decider(FakeModel):
    """Answers each request by a rule that is given what the request shows; `shown` keeps that."""

    def __init__(self, rule: Rule) -> None:
        super().__init__()
        self.rule = rule
        self.shown: list[Shown] = []

    def reply_to(self, body: dict[str, Any], headers: dict[str, str]) -> Script:
        with self._lock:
            self.bodies.append(body)
            self.shown.append(shown(body))
            return self.rule(self.shown[-1])

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint("sk-test", self.url)


def shown(body: Mapping[str, Any]) -> Shown:
    """What a request shows, told results of the tool (as `told`) included; of the facts those to decide on,
    and all that stand there as `shown`."""
    found: Shown = {}
    first = last = 0
    for message in body["messages"]:
        for block in message["content"]:
            text = str(block.get("text") or block.get("content") or "")
            if block["type"] == "tool_result":
                found["told"] = text
            for label, said in re.findall(r"^([fon]\d+) (.*)$", text, re.M):
                found[label] = re.sub(r" \[\d+(, last [\d-]+)?\]$", "", said) if label[0] != "f" else said
            if turn := re.search(r"^Decide on f(\d+)(?: to f(\d+))?\.$", text, re.M):
                first, last = int(turn[1]), int(turn[2] or turn[1])
    every = " ".join(text for key, text in found.items() if key[0] == "f")
    now = {key: text for key, text in found.items() if key[0] != "f" or first <= int(key[1:]) <= last}
    return {**now, "shown": every}


def decide(*operations: Mapping[str, Any]) -> Script:
    """A reply that calls the tool."""
    return {"calls": [("decide", {"operations": list(operations)})]}


def create(text: str, *proofs: tuple[str, str]) -> dict[str, Any]:
    return {"do": "create", "text": text, "proofs": quoted(*proofs)}


def quoted(*proofs: tuple[str, str]) -> list[dict[str, str]]:
    return [{"fact": fact, "quote": quote} for fact, quote in proofs]


def facts(seen: Shown) -> dict[str, str]:
    return {label: text for label, text in seen.items() if re.fullmatch(r"f\d+", label)}


def each_one(seen: Shown) -> Script:
    """An observation of every fact, worded as it is."""
    return decide(*(create(text, (label, text)) for label, text in facts(seen).items()))


def labelled(seen: Mapping[str, str], words: str) -> str:
    """The label of what is shown with these words."""
    return next(label for label, text in seen.items() if words in text)


def log(bank: Bank, day: str, *lines: str, client: str = "claude-code", start: int = 0) -> None:
    """A log of this day as a client left it, each line with an id of its own."""
    _left(bank, day, lines, client, start)
    bank.store.adopt()


def _left(bank: Bank, day: str, lines: Sequence[str], client: str = "claude-code", start: int = 0) -> None:
    path = f"memory/{day}.md"
    ids = (
        f"{day.replace('-', '')}{n:02d}".translate(str.maketrans("0189", "wxyz")) for n in range(start, 99)
    )
    rows = [f"- {line} ^{block}" for line, block in zip(lines, ids, strict=False)]
    bank.write(f"# {day}\n\n## 09:15 · {client} · session {day}\n\n" + "\n".join(rows) + "\n", path)


def bank_with(folder: Path, days: Mapping[str, Sequence[str]]) -> tuple[Bank, Memory]:
    """A bank with these logs, of one commit: each is seven processes of git."""
    bank = new_bank(folder)
    for day, lines in days.items():
        _left(bank, day, lines)
    if days:
        bank.store.adopt()
    return bank, opened(bank)


def opened(bank: Bank) -> Memory:
    return Memory.open(bank.root, now=bank.clock, door="test")


def texts(memory: Memory) -> list[str]:
    return sorted(each.observation.text for each in memory.observations.list())


def names(values: Iterable[Any]) -> list[str]:
    return [value.how for value in values]


__all__ = [
    "NOON", "Decider", "bank_with", "create", "decide", "each_one", "facts", "labelled", "log", "names",
    "opened", "quoted", "shown", "texts",
]  # fmt: skip
