"""All of knowledge once through, with a model over HTTP: a text becomes facts, a belief, a page, an opinion;
every sentence leads down to somebody's words, and each link that is broken by hand is found."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from banks import DAY, NOON
from fake_model import FakeModel, Script

from ua_memory import Memory, config
from ua_memory.knowledge.lineage import BeliefStep, FactStep, SentenceStep
from ua_memory.llm.model import Endpoint
from ua_memory.upkeep import audit

SAID = "Alice moved the API to Fly.io for the price, Heroku got dear. Its database runs on Neon in Frankfurt."
MOVED, NEON = "Alice moved the API to Fly.io.", "The database of the API runs on Neon in Frankfurt."
PRICE, SPEED = "Alice chooses the host of the API by price.", "Alice chose the host by price, now by speed."
RISK = "Alice may move the API again when prices change."
PAGE, OPINIONS = "memory/pages/infra.md", "memory/opinions.md"
ASKED = "where do API and database run, and how does Alice choose the host"
_SHOWN = re.compile(r"^\W*(?:\[(\d+)\]|([fo]\d+)) ([^\n]+)", re.MULTILINE)


class Works(FakeModel):
    """Does what each tool is for, once, with what it is shown; `seen` leads from a label to its text."""

    def reply_to(self, body: dict[str, Any], headers: dict[str, str]) -> Script:
        self.bodies.append(body)
        said = [b for m in body["messages"] if m["role"] == "user" for b in m["content"]]
        text = "\n".join(str(block.get("text", "")) for block in said)
        self.seen = {number or label: words for number, label, words in _SHOWN.findall(text)}
        if any(block["type"] == "tool_result" for block in said):
            return {"text": "done"}
        for tool in body["tools"]:
            if tool["name"] in ("keep", "decide", "append_paragraph", "answer"):
                return {"calls": [(tool["name"], getattr(self, tool["name"])())]}
        raise AssertionError(body["tools"])

    def at(self, words: str) -> str:
        return next(label for label, text in self.seen.items() if words in text)

    def keep(self) -> Any:
        first, second = SAID.split(". ")
        return {"facts": [{"what": MOVED, "quote": first}, {"what": NEON, "quote": second}]}

    def decide(self) -> Any:
        if not any(PRICE in text for text in self.seen.values()):
            proof = {"fact": self.at("moved the API"), "quote": "moved the API to Fly.io"}
            return {"operations": [{"do": "create", "text": PRICE, "proofs": [proof]}]}
        proof = {"fact": self.at("fastest"), "quote": "the fastest host"}
        which = {"do": "revise", "observation": self.at(PRICE), "text": SPEED}
        return {"operations": [{**which, "proofs": [proof]}]}

    def append_paragraph(self) -> Any:
        said = {PRICE: [int(self.at(PRICE))], "The API runs on Fly.io.": [int(self.at(MOVED))]}
        both = {"The database is Neon.": [int(self.at(NEON)), int(self.at(MOVED))]}
        sentences = [{"text": text, "evidence": numbers} for text, numbers in {**said, **both}.items()]
        return {"section": "S0", "sentences": sentences}

    def answer(self) -> Any:
        on = [int(self.at(PRICE)), int(self.at(NEON))]
        formed = {"change": "form", "text": RISK, "kind": "risk", "confidence": 0.6, "because": on}
        return {"text": f"{PRICE} [{on[0]}]", "found": True, "confidence": 0.9, "opinions": [formed]}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Memory, Works]]:
    """A bank that has been all the way, and whose one belief was then reworded."""
    root = tmp_path_factory.mktemp("knowledge") / "bank"
    Memory.init(root, now=lambda: NOON, timezone="UTC")
    loaded = replace(config.load(root, {}), embedding="none")
    memory = Memory.open(root, config=loaded, now=lambda: NOON, door="test")
    with Works() as fake:
        model = Endpoint("sk-test", fake.url)
        memory.retain(SAID, model=model, client="claude-code", session="8f2c")
        memory.consolidate(model=model)
        memory.pages.create("infra", "Infrastructure", ASKED)
        memory.pages.refresh("infra", model=model)
        memory.reflect(ASKED, model=model, keep_opinion=True)
        memory.insert("Alice looks for the fastest host.")
        memory.consolidate(model=model)
        yield memory, fake


def test_every_sentence_leads_to_somebodys_words(whole: tuple[Memory, Works]) -> None:
    memory, fake = whole
    (believed,), (risk,) = memory.observations.list(), memory.opinions.list()
    assert (believed.observation.text, len(believed.observation.proofs)) == (SPEED, 2)
    assert (risk.text, len(risk.because)) == (RISK, 2)
    assert memory.health.verify() == []
    sentences = memory.history.why("infra").steps
    assert [step.text for step in sentences] == [PRICE, "The API runs on Fly.io.", "The database is Neon."]
    targets = ["infra", f"^{risk.id}", f"^{believed.observation.id}"]
    for chain in map(memory.history.why, targets):
        assert (chain.breaks, chain.exit_code) == ((), 0)
        for leaf in leaves(chain.steps):
            assert leaf.written and leaf.session.day == "2026-11-21"
            assert leaf.session.session == "8f2c" or leaf.text.endswith("fastest host.")
    asked = len(fake.bodies)
    ops = [one.id for one in memory.history.log(limit=None)]
    again = memory.consolidate(model=Endpoint("sk-test", fake.url))
    assert (again.committed, len(fake.bodies), [one.id for one in memory.history.log(limit=None)]) == (
        False, asked, ops
    )  # fmt: skip


def leaves(steps: Any) -> Iterator[FactStep]:
    for step in steps:
        if isinstance(step, FactStep):
            yield step
        else:
            assert isinstance(step, SentenceStep | BeliefStep) and step.links
            yield from leaves([link.step for link in step.links])


def drop(pattern: str) -> Callable[[str], str]:
    """Take out the lines that have this."""
    return lambda text: re.sub(rf"^.*{pattern}.*\n", "", text, flags=re.MULTILINE)


BREAKS: list[tuple[str, Callable[[str], str], str]] = [
    (
        PAGE,
        lambda text: re.sub(r"#\^\w{10}\]\]$", "#^aaaaaaaaaa]]", text, flags=re.M),
        "does not exist in the bank",
    ),
    ("observation", lambda text: re.sub(r"#\^\w{10}", "#^bbbbbbbbbb", text), "does not exist in the bank"),
    ("observation", lambda text: text.replace('"moved the API', '"sold the API'), 'not say "sold the API'),
    ("observation", drop("proof: "), "is an observation without a proof"),
    ("observation", lambda text: "# Alice\n", "does not exist in the bank"),
    (OPINIONS, lambda text: re.sub(r"#\^\w{10}", "#^cccccccccc", text), "does not exist in the bank"),
    (OPINIONS, lambda text: text.replace(f'"{PRICE[:20]}', '"Bob chooses by luck'), 'not say "Bob chooses'),
    (OPINIONS, drop("because: "), "is an opinion without a reason"),
    (DAY, lambda text: text.replace("moved the API to Fly.io", "sold the API"), 'does not say "moved the'),
    (
        DAY,
        lambda text: re.sub(rf"- {re.escape(NEON)}.*\n(?:  .*\n)*", "", text),
        "does not exist in the bank",
    ),
]


@pytest.mark.few(4)
@pytest.mark.parametrize(("path", "broken", "message"), BREAKS)
def test_each_broken_link_is_found(
    whole: tuple[Memory, Works], path: str, broken: Callable[[str], str], message: str
) -> None:
    memory, _ = whole
    path = memory.observations.list()[0].observation.place.path if path == "observation" else path
    file = memory.store.bank.root / path
    before = file.read_text()
    after = broken(before)
    assert after != before
    try:
        file.write_text(after)
        found = [str(problem) for problem in audit.verify(memory.store)]
        assert [line for line in found if message in line], found
        assert (
            memory.history.why("infra").exit_code
            or memory.history.why(f"^{memory.opinions.list()[0].id}").exit_code
        )
    finally:
        file.write_text(before)
    assert audit.verify(memory.store) == []
