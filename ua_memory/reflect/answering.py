"""Reflect: a question answered from memory by a bounded agent with tools, or the evidence for it without one.

The order of the layers is forced: models, observations, facts. The first search of each is made here, with
the question itself, and its result is in the first message; that is what an agent would ask first anyway, and
it saves three requests. Where a fresh mental model speaks of all that was asked, the layers below are held
back, and an agent that wants them must ask from above. docs/reflect.md tells more.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ua_memory import tokens
from ua_memory.errors import ModelMisbehaved
from ua_memory.llm import Bounds, Model, Reply, Tool, ToolError, Usage, run_tools, user
from ua_memory.reflect import keeping
from ua_memory.reflect.evidence import LAYERS, TITLES, Found, Layer, Piece, covers, listing
from ua_memory.reflect.judging import bounded, claimed, judge, with_numbers
from ua_memory.reflect.keeping import Proposal
from ua_memory.reflect.reflection import UNPROVEN, Asked, Reflection, Step, in_order
from ua_memory.reflect.stance import Stance, said

_REMINDER = "Nobody sees what you write here. Give your answer with the tool `answer`."
_QUERY = {
    "type": "object",
    "properties": {"query": {"type": "string", "minLength": 1, "maxLength": 400}},
    "required": ["query"],
}
_NUMBER = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}


class Session:
    """One reflection: the tools over what was found, and the answer when it is given."""

    def __init__(self, asked: Asked, found: Found) -> None:
        self.asked, self.found = asked, found
        self.path: list[Step] = []
        self.searched: set[Layer] = set()
        self.shown: set[int] = set()
        self.checked: set[int] = set()
        self.refused: set[str] = set()
        self.closing = ""
        self.turns = self.spent = 0
        self.given: Reflection | None = None
        self.proposals: list[Proposal] = []

    # -- before the model ------------------------------------------------------------------------------

    def gather(self) -> dict[Layer, list[Piece]]:
        """Ask the three layers for the question, in their order."""
        layers = {layer: self._look(layer, self.asked.question, "ours") for layer in LAYERS}
        self.searched |= set(LAYERS)
        return layers

    def _look(self, layer: Layer, query: str, by: str) -> list[Piece]:
        size = self.asked.size
        pieces = self.found.search(layer, query, getattr(size, layer), size.room)
        cost = sum(tokens.count(piece.line()) for piece in pieces)
        self.path.append(Step(_TOOL[layer], query, len(pieces), cost, by))
        return pieces

    def opening(self, layers: Mapping[Layer, Sequence[Piece]], stance: Stance) -> str:
        """The first message: what was found, what was thought before, the question, the rules again."""
        sections = []
        held = self._suffices(layers)
        for layer, pieces in layers.items():
            if held and layer != "models":
                self.searched.discard(layer)
                continue
            rows = "\n".join(listing(pieces, self.shown)) or "(nothing)"
            sections.append(f"## {TITLES[layer]}\n{rows}")
            self.shown |= {piece.number for piece in pieces}
        if held:
            self.path.append(
                Step("held_back", "a fresh mental model speaks of all that was asked", by="ours")
            )
        if self.asked.there:
            rows = "\n".join(
                f"- ^{one.id} ({one.kind}, {one.confidence or 0:g}): {one.text}" for one in self.asked.there
            )
            sections.append(f"## What you thought before (no evidence, never cited)\n{rows}")
        asked = [
            "The mental models seem to have it; search on only where they do not." if held else "",
            f"Context of the question: {self.asked.context}" if self.asked.context else "",
            self.asked.shape.told if self.asked.shape else "",
            f"Question: {self.asked.question}",
            stance.rules,
        ]
        return said(sections, asked)

    def _suffices(self, layers: Mapping[Layer, Sequence[Piece]]) -> bool:
        """Whether mental models cover the question, and nothing below was said after their last change."""
        models = layers["models"]
        below = [*layers["observations"], *layers["facts"]]
        newest = max((piece.said for piece in below), default="")
        fresh = [piece for piece in models if piece.said >= newest]
        return bool(fresh) and covers(self.asked.question, fresh)

    # -- the tools --------------------------------------------------------------------------------------

    def tools(self) -> dict[str, Tool]:
        """The same for all requests of a run: what is out of turn is refused, not left out."""
        return {
            "search_mental_models": Tool("Search what the owner curated.", _QUERY, self._searching("models")),
            "search_observations": Tool(
                "Search consolidated beliefs, with their freshness.", _QUERY, self._searching("observations")
            ),
            "search_facts": Tool("Search what was said.", _QUERY, self._searching("facts")),
            "read": Tool(
                "What is behind or beside a number: an observation's proofs and what was said since, "
                "a fact's neighbours, all of a mental model.", _NUMBER, self._read,
            ),
            "answer": Tool("Answer the question. The last call.", self._schema(), self._answer, ends=True),
        }  # fmt: skip

    def _schema(self) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "text": {"type": "string", "minLength": 1, "maxLength": 20_000},
            "found": {"type": "boolean", "description": "Whether memory has the answer."},
            "confidence": {"type": "number", "minimum": 0, "maximum": 1},
        }
        required = [*fields]
        if self.asked.shape:
            fields["data"] = self.asked.shape.field
            required.append("data")
        if self.asked.keep:
            fields["opinions"] = keeping.SCHEMA
        return {"type": "object", "properties": fields, "required": required}

    def watch(self, reply: Reply) -> None:
        """Count a reply, and say from when on there is no room for more than the answer."""
        self.turns += 1
        self.spent += reply.usage.total
        if self.turns >= self.asked.size.turns - 2 or self.spent >= self.asked.size.spend:
            self.closing = "no more searches in this run: answer now, with what you have"

    def _searching(self, layer: Layer) -> Callable[[Mapping[str, Any]], str]:
        def search(given: Mapping[str, Any]) -> str:
            above = [each for each in LAYERS if [*LAYERS].index(each) < [*LAYERS].index(layer)]
            missing = [_TOOL[each] for each in above if each not in self.searched]
            if missing:
                self._refuse(_TOOL[layer], given["query"], f"{missing[0]} comes first")
            if self.closing:
                self._refuse(_TOOL[layer], given["query"], self.closing)
            pieces = self._look(layer, given["query"], "model")
            self.searched.add(layer)
            return self._listed(pieces)

        return search

    def _read(self, given: Mapping[str, Any]) -> str:
        number = given["number"]
        if number not in self.found.pieces:
            self._refuse("read", str(number), f"nothing is numbered {number}")
        if self.closing:
            self._refuse("read", str(number), self.closing)
        pieces = self.found.around(number)
        self.checked.add(number)
        where = self.found.pieces[number].citation
        self.path.append(Step("read", where, len(pieces), sum(tokens.count(p.line()) for p in pieces)))
        return self._listed(pieces)

    def _listed(self, pieces: Sequence[Piece]) -> str:
        rows = "\n".join(listing(pieces, self.shown))
        self.shown |= {piece.number for piece in pieces}
        return said([rows or "nothing found"], [])

    def _refuse(self, what: str, asked: str, why: str) -> None:
        self.path.append(Step(what, asked, said=why))
        raise ToolError(why)

    # -- the answer -------------------------------------------------------------------------------------

    def _answer(self, given: Mapping[str, Any]) -> str:
        if not given["found"] and "facts" not in self.searched:
            self._refuse(
                "answer", "", "search_observations and search_facts before you say that it is not there"
            )
        faults = self.take(given["text"], given["found"], given["confidence"], given)
        if faults and "answer" not in self.refused:
            self.refused.add("answer")
            self._refuse("answer", "", "; ".join(faults))
        self.path.append(Step("answer", "", tokens=tokens.count(given["text"])))
        return "given"

    def take(self, text: str, found: bool, confidence: float, given: Mapping[str, Any]) -> list[str]:
        """Judge an answer, and keep what holds of it: what is wrong, in words for the model."""
        judged = judge(text, self.visible, self.asked.question, found=found, checked=self.checked)
        faults = [*judged.faults]
        notes: list[str] = []
        if tokens.count(judged.text) > self.asked.size.answer:
            faults.append(f"it has more than {self.asked.size.answer} tokens: make it shorter")
        structured = self._shaped(given, faults, notes)
        self.proposals, wrong = keeping.weigh(
            given.get("opinions", ()) if self.asked.keep else (), self.visible, self.asked.there,
            self.asked.all_opinions, self.asked.question,
        )  # fmt: skip
        cited = tuple(self.found.pieces[n] for n in judged.cites)
        holds = found and bool(cited) and bool(judged.text)
        structured = structured if holds or not found else None
        notes += [f"left out of the answer, since nothing it cites says so: {one}" for one in judged.cut]
        notes += [f"not kept: {one}" for one in wrong]
        shown = judged.text if holds or (not found and judged.text) else UNPROVEN
        self.given = Reflection(
            self.asked.question, shown, holds, bounded(confidence, cited, self.checked) if holds else 0.0,
            cited if holds or not found else (), structured=structured, notes=tuple(notes),
        )  # fmt: skip
        return [*faults, *wrong]

    @property
    def visible(self) -> dict[int, Piece]:
        """The pieces that the model was shown: no other number may be cited."""
        return {number: piece for number, piece in self.found.pieces.items() if number in self.shown}

    def _shaped(self, given: Mapping[str, Any], faults: list[str], notes: list[str]) -> Any:
        """The structured answer, if it fits and names nothing that is not in memory."""
        shape = self.asked.shape
        if shape is None:
            return None
        data, wrong = None, ["it is no JSON"]
        with contextlib.suppress(ValueError, RecursionError):
            data = shape.read(given.get("data"))
            wrong = shape.faults(data)
        if wrong and "data" in self.refused:
            raise ModelMisbehaved(
                f"the model's structured answer does not fit the schema: {wrong[0]}",
                mend="try again, or a simpler schema",
            )
        if wrong:
            self.refused.add("data")
            raise ToolError("data: " + "; ".join(wrong))
        said_so = [self.asked.question, json.dumps(shape.schema, ensure_ascii=False)]
        missing = claimed(shape.words(data), [*self.visible.values()], said_so)
        if missing:
            faults.append(f"data: {', '.join(missing)} is not in memory")
            notes.append(f"no structured answer: nothing found says {', '.join(missing)}")
        return None if missing else data


_TOOL: Mapping[Layer, str] = {
    "models": "search_mental_models",
    "observations": "search_observations",
    "facts": "search_facts",
}


def answer(model: Model, session: Session, opening: str, system: str) -> Reflection:
    """Let the model answer. Raises what the model raises; then there is no answer, and nothing is kept."""
    size = session.asked.size

    def ask(messages: Sequence[Mapping[str, Any]]) -> Any:
        bounds = Bounds(turns=max(size.turns - session.turns, 2), calls=40, at_once=6)
        return run_tools(
            model, system, messages, session.tools(), purpose="reflect", bounds=bounds,
            max_tokens=2 * size.answer + 1000, watch=session.watch,
        )  # fmt: skip

    outcome = ask([user(opening)])
    usage = outcome.usage
    if outcome.ended == "done" and session.given is None:
        outcome = ask([*outcome.messages, user(_REMINDER)])
        usage += outcome.usage
    if outcome.ended != "done" or session.given is None:
        _talked(session, outcome.text if outcome.ended == "done" else "", outcome)
    assert session.given is not None
    return _finished(session.given, session, model.name, usage)


def _talked(session: Session, text: str, outcome: Any) -> None:
    """What a model only said, and never gave as its answer: small models do. Its words are judged like those
    of any other answer, and cut to what holds."""
    if not text or session.asked.shape or "facts" not in session.searched:
        outcome.require_done()
        raise ModelMisbehaved("the model gave no answer", mend="try again, or another UA_MEMORY_MODEL")
    session.take(text, True, 0.5, {})
    session.path.append(Step("answer", "", tokens=tokens.count(text)))


def _finished(given: Reflection, session: Session, name: str, usage: Usage) -> Reflection:
    """The answer with its citations numbered as they come in it, and the rest of the evidence behind them."""
    rest = [piece for piece in in_order(session.found.pieces.values()) if piece not in given.citations]
    numbers = {piece.number: n for n, piece in enumerate([*given.citations, *rest], 1)}

    def renumbered(piece: Piece) -> Piece:
        return replace(piece, number=numbers[piece.number])

    return replace(
        given, text=with_numbers(given.text, numbers), citations=tuple(map(renumbered, given.citations)),
        evidence=tuple(in_order(map(renumbered, session.found.pieces.values()))), path=tuple(session.path),
        model=name, usage=usage,
    )  # fmt: skip
