"""Reflect: a question answered from memory with citations, as text or by a JSON schema."""

from __future__ import annotations

import contextlib
import json
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ua_memory import config as config_module
from ua_memory.config import Config
from ua_memory.discovery import SETTINGS
from ua_memory.errors import Malformed, ModelMisbehaved, NotFound, Usage, checked, one_line
from ua_memory.index.filters import Filters
from ua_memory.knowledge import opinions as knowledge_opinions
from ua_memory.knowledge.opinions import OpinionChange
from ua_memory.llm.model import Model, ModelOrEndpoint, Reply, TokenUsage, prompt, prompts, tool_task, user
from ua_memory.llm.tools import (
    Bounds,
    Tool,
    ToolError,
    check_schema,
    references,
    run_tools,
    schema,
    schema_errors,
)
from ua_memory.records import Fact, Kind, Observation, Opinion
from ua_memory.reflect.evidence import (
    LAYERS,
    TITLES,
    EvidenceCollector,
    EvidencePiece,
    Layer,
    bounded_confidence,
    check_answer,
    covers_question,
    format_pieces,
    is_evidence,
    renumber_citations,
    unsupported_claims,
)
from ua_memory.store.draft import Draft, Result
from ua_memory.store.store import Store
from ua_memory.text import tokens as text_tokens
from ua_memory.text.noise import escape_tags
from ua_memory.text.wording import MODEL_HINT

if TYPE_CHECKING:
    from ua_memory.knowledge.observations import ObservationView
    from ua_memory.llm.providers import ModelAccess
    from ua_memory.recall.search import SearchResult

# -- opinions ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OpinionProposal:
    """A checked change of an opinion: what to do, with which opinion (None: a new one), and the reasons."""

    change: str
    before: Opinion | None
    text: str
    kind: Kind | None
    confidence: float | None
    because: tuple[EvidencePiece, ...]
    why: str


def check_opinions(
    given: Sequence[Mapping[str, Any]], pieces: Mapping[int, EvidencePiece], there: Sequence[Opinion],
    everything: Sequence[Opinion], question: str,
) -> tuple[list[OpinionProposal], list[str]]:  # fmt: skip
    """The valid changes, and the faults of the others in words for the model. `there` are the opinions that
    were shown and may be changed, `everything` all current ones, which must not be repeated. An opinion may
    go beyond its reasons, but its names and numbers must be in the pieces or the question."""
    valid: list[OpinionProposal] = []
    faults: list[str] = []
    for one in given:
        proposal, fault = _parse_proposal(one, pieces, there)
        if proposal is not None and not fault and proposal.change != "drop":
            fault = _why_invalid(proposal, everything, pieces, question)
        if proposal is not None and not fault:
            valid.append(proposal)
        else:
            faults.append(f"opinion “{str(one.get('text') or one.get('id', ''))[:60]}”: {fault}")
    return valid, faults


def _parse_proposal(
    one: Mapping[str, Any], pieces: Mapping[int, EvidencePiece], there: Sequence[Opinion]
) -> tuple[OpinionProposal | None, str]:
    change, block = one["change"], str(one.get("id", "")).strip().removeprefix("^")
    before = next((each for each in there if block and each.id == block), None)
    if change != "form" and before is None:
        return None, f"there is no opinion ^{block} among those you were shown"
    if change == "drop":
        return OpinionProposal(change, before, "", None, None, (), str(one.get("why", ""))), ""
    named = (pieces[n] for n in one.get("because", ()) if n in pieces)
    because = tuple(p for p in named if isinstance(p.record, Observation | Fact) and not p.untrusted)
    text = " ".join(str(one.get("text", "")).split())
    confidence = one.get("confidence", 0.5 if change == "form" else None)
    if confidence is not None:
        confidence = bounded_confidence(float(confidence), because)
    why = str(one.get("why", ""))
    return OpinionProposal(change, before, text, one.get("kind"), confidence, because, why), ""


def _why_invalid(
    one: OpinionProposal, everything: Sequence[Opinion], pieces: Mapping[int, EvidencePiece], question: str
) -> str:
    if one.change == "form" and not one.text:
        return "there is no text"
    if not one.because and (one.change == "form" or one.text):
        return "because must name facts or observations that you were shown and that are not untrusted"
    known = [question, *([one.before.text] if one.before else ())]
    if one.text and (missing := unsupported_claims(one.text, [*pieces.values()], known)):
        return f"{', '.join(missing)} is nowhere in what you were shown"
    alike = knowledge_opinions.find_similar(one.text, everything) if one.change == "form" else None
    return f"^{alike.id} says this already; revise it" if alike else ""


def write_opinions(
    store: Store, proposals: Sequence[OpinionProposal], *, question: str, door: str
) -> tuple[OpinionChange, ...]:
    """Write the changes as one revision."""
    if not proposals:
        return ()
    day = store.now().date().isoformat()
    done: list[tuple[Opinion | None, Opinion]] = []
    with store.revision("reflect", door=door) as draft:
        for one in proposals:
            grounds = [(p.record, "") for p in one.because if isinstance(p.record, Fact | Observation)]
            if one.before is None:
                how: dict[str, Any] = {"kind": one.kind or "opinion", "confidence": one.confidence or 0.0}
                after = knowledge_opinions.form(draft, one.text, grounds, **how, day=day)
            elif one.change == "drop":
                after = knowledge_opinions.drop(draft, one.before, one.why, day)
            else:
                after = knowledge_opinions.revise(
                    draft, one.before, text=one.text, grounds=grounds, kind=one.kind,
                    confidence=one.confidence, day=day,
                )  # fmt: skip
            done.append((one.before, after))
        draft.subject = f"reflect: {_summary(done)}"
        draft.body = f"Asked: {draft.redact(' '.join(question.split()))}"
        draft.facts = [f"^{after.id}" for _, after in done]
    result: Result = draft.result
    return tuple(OpinionChange(before, after, result) for before, after in done)


def _summary(done: Sequence[tuple[Opinion | None, Opinion]]) -> str:
    formed = sum(before is None for before, _ in done)
    dropped = sum(before is not None and bool(after.retired) for before, after in done)
    counts = {"formed": formed, "revised": len(done) - formed - dropped, "dropped": dropped}
    text = ", ".join(f"{number} {word}" for word, number in counts.items() if number)
    return f"{text} (memory/opinions.md)"


# -- structured answers ------------------------------------------------------------------------------------


LONGEST_SCHEMA = 8000
"""Most characters of a schema as JSON, which is sent with the question."""


@dataclass(frozen=True, slots=True)
class AnswerSchema:
    """A JSON schema (draft 2020-12 unless it says another)."""

    schema: Mapping[str, Any]

    @property
    def field(self) -> Mapping[str, Any]:
        """The schema of the answer's `data`: the caller's schema, or a JSON text if that is not of an object
        or has references, which would break inside the tool's schema."""
        as_text = {"type": "string", "description": "JSON that fits the schema."}
        return as_text if self._as_text else self.schema

    @property
    def instruction(self) -> str:
        """The instruction for the model."""
        says = "`data` of the answer: with values from memory alone"
        text = json.dumps(self.schema, ensure_ascii=False, separators=(",", ":")) if self._as_text else ""
        return f"{says}, as JSON text that fits this JSON schema: {text}" if text else f"{says}."

    @property
    def _as_text(self) -> bool:
        return self.schema.get("type") != "object" or any(references(self.schema))

    def read(self, given: Any) -> Any:
        """Parse the given `data`. ValueError for invalid JSON."""
        return json.loads(given) if self._as_text else given


def parse_schema(schema: Any) -> AnswerSchema:
    """Check a caller's schema. Usage if it is invalid, too long, or refers to other documents."""
    if not isinstance(schema, Mapping):
        raise Usage("a JSON schema must be an object", hint='{"type": "object", "properties": {…}}')
    if len(json.dumps(schema)) > LONGEST_SCHEMA:
        raise Usage(f"the schema has more than {LONGEST_SCHEMA} characters", hint="remove descriptions")
    try:
        check_schema(schema)
    except ValueError as error:
        raise Usage(str(error)) from error
    return AnswerSchema(schema)


def _texts_and_keys(value: Any) -> Iterator[str]:
    """All texts, numbers and keys of the data, which must be supported by the evidence."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield str(key)
            yield from _texts_and_keys(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts_and_keys(inner)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


# -- reflection --------------------------------------------------------------------------------------------


NOTHING_FOUND = "I don't know: memory has nothing on this."
NOT_SUPPORTED = "I don't know: the sources do not support the model's answer."


@dataclass(frozen=True, slots=True)
class ReflectLimits:
    """The limits of one reflection: turns; hits of each layer, and their tokens (`room`); tokens of the
    answer; and tokens sent and received in all, after which it has to answer (`spend`)."""

    turns: int
    models: int
    observations: int
    facts: int
    room: int
    answer: int
    spend: int


SIZES: Mapping[str, ReflectLimits] = {
    "low": ReflectLimits(4, 2, 6, 8, 800, 500, 20_000),
    "mid": ReflectLimits(8, 3, 10, 16, 2000, 1000, 60_000),
    "high": ReflectLimits(16, 4, 16, 30, 5000, 2000, 200_000),
}


@dataclass(frozen=True, slots=True)
class ReflectStep:
    """One step: what was done (`search_facts`, `read`, `answer`, …), with what, the number of pieces found
    and their tokens. `said` is why it was refused; `by` is `ours` for searches before the model was asked."""

    what: str
    asked: str
    found: int = 0
    tokens: int = 0
    by: str = "model"
    said: str = ""


@dataclass(frozen=True, slots=True)
class Reflection:
    """An answer and its evidence.

    `text` is '' without a model, whose name is `model`. `evidence` is all that was found, by layer;
    `citations` are the pieces that the text cites, numbered 1, 2, … in order. `confidence` is from 0 to 1,
    bounded by the citations. `structured` is the answer to a schema. `opinions` were formed, revised or
    dropped. `notes` say what was cut out of the answer and why.
    """

    question: str
    text: str = ""
    answered: bool = False
    confidence: float = 0.0
    citations: tuple[EvidencePiece, ...] = ()
    evidence: tuple[EvidencePiece, ...] = ()
    path: tuple[ReflectStep, ...] = ()
    model: str = ""
    structured: Any = None
    opinions: tuple[OpinionChange, ...] = ()
    notes: tuple[str, ...] = ()
    usage: TokenUsage = field(default_factory=TokenUsage)

    @property
    def level(self) -> str:
        """The confidence as a word: high, medium or low; none for 0."""
        word = "high" if self.confidence >= 0.75 else "medium" if self.confidence >= 0.5 else "low"
        return word if self.confidence > 0 else "none"

    @property
    def based_on(self) -> dict[Layer, tuple[EvidencePiece, ...]]:
        """The citations by layer; without a model all evidence."""
        chosen = self.citations if self.model else self.evidence
        return {layer: tuple(one for one in chosen if one.layer == layer) for layer in LAYERS}


@dataclass(frozen=True, slots=True)
class ReflectQuestion:
    """A question and its options. `there` are opinions on the topic, `all_opinions` all current ones; `keep`
    allows changing opinions."""

    question: str
    size: ReflectLimits
    context: str = ""
    shape: AnswerSchema | None = None
    keep: bool = False
    there: tuple[Opinion, ...] = ()
    all_opinions: tuple[Opinion, ...] = ()


def by_layer(pieces: Iterable[EvidencePiece]) -> list[EvidencePiece]:
    """The pieces by layer, mental models first, then by number."""
    rank = {layer: number for number, layer in enumerate(LAYERS)}
    return sorted(pieces, key=lambda piece: (rank[piece.layer], piece.number))


# -- prompts -----------------------------------------------------------------------------------------------
# The bank's mission, directives and disposition. They change how reflect answers, not what recall finds.


def directives_text(config: Config) -> str:
    """The directives, numbered; '' if there are none. They are at both ends of the prompt."""
    rows = [f"{number}. {text}" for number, text in enumerate(config.directives, 1)]
    return "\n".join(["Rules of the owner, which go before everything else:", *rows]) if rows else ""


def system_prompt(config: Config, words: int, keep: bool) -> str:
    """The system prompt, the same for all requests of a run."""
    traits = ("skepticism", "literalism", "empathy")
    disposition = " ".join(prompts()[trait][getattr(config, trait) - 1] for trait in traits)
    mission = f"What this memory is for: {config.mission}" if config.mission else ""
    opinions = prompt("opinions") if keep else ""
    parts = [directives_text(config), prompt("reflect").format(length=words), disposition, mission, opinions]
    return "\n\n".join(filter(None, parts))


def user_message(sections: Sequence[str], asked: Sequence[str]) -> str:
    """A message of memory, in a block that its text cannot close, and the request."""
    body = escape_tags("\n\n".join(sections), "memory")
    return "\n\n".join([f"<memory>\n{body}\n</memory>", *filter(None, asked)])


# -- the agent ---------------------------------------------------------------------------------------------
# A bounded agent with tools answers a question from memory; without a model the evidence is the result.
#
# The layers are searched in a fixed order: models, observations, facts. The first search of each, with the
# question itself, is made before the model is asked, which saves three requests. Where a fresh mental model
# covers the question, the lower layers are left out of the first message, and the agent has to search them
# in order. See docs/reflect.md.


_NO_ANSWER_CALLED = "Nobody sees what you write here. Give your answer with the tool `answer`."


class ReflectRun:
    """One reflection: the tools over the evidence, and the answer."""

    def __init__(self, asked: ReflectQuestion, found: EvidenceCollector) -> None:
        self.asked, self.found = asked, found
        self.path: list[ReflectStep] = []
        self.searched: set[Layer] = set()
        self.shown: set[int] = set()
        self.checked: set[int] = set()
        self.refused: set[str] = set()
        self.must_answer = ""
        self.turns = self.spent = 0
        self.answer: Reflection | None = None
        self.proposals: list[OpinionProposal] = []

    # -- before the model ------------------------------------------------------------------------------

    def search_layers(self) -> dict[Layer, list[EvidencePiece]]:
        """Search all layers for the question, in order."""
        layers = {layer: self._search_layer(layer, self.asked.question, "ours") for layer in LAYERS}
        self.searched |= set(LAYERS)
        return layers

    def _search_layer(self, layer: Layer, query: str, by: str) -> list[EvidencePiece]:
        size = self.asked.size
        pieces = self.found.search(layer, query, getattr(size, layer), size.room)
        self._record(_SEARCH_TOOL[layer], query, pieces, by)
        return pieces

    def _record(self, what: str, asked: str, pieces: Sequence[EvidencePiece], by: str = "model") -> None:
        cost = sum(text_tokens.count(piece.line()) for piece in pieces)
        self.path.append(ReflectStep(what, asked, len(pieces), cost, by))

    def first_message(self, layers: Mapping[Layer, Sequence[EvidencePiece]], rules: str) -> str:
        """The first message: evidence, earlier opinions, the question, the rules again."""
        sections = []
        models_only = self._models_suffice(layers)
        for layer, pieces in layers.items():
            if models_only and layer != "models":
                self.searched.discard(layer)
                continue
            rows = "\n".join(format_pieces(pieces, self.shown)) or "(nothing)"
            sections.append(f"## {TITLES[layer]}\n{rows}")
            self.shown |= {piece.number for piece in pieces}
        if models_only:
            why = "a fresh mental model speaks of all that was asked"
            self.path.append(ReflectStep("held_back", why, by="ours"))
        if there := self.asked.there:
            opinions = (f"- ^{one.id} ({one.kind}, {one.confidence or 0:g}): {one.text}" for one in there)
            title = "What you thought before (no evidence, never cited)"
            sections.append("\n".join([f"## {title}", *opinions]))
        asked = [
            "The mental models seem to have it; search on only where they do not." if models_only else "",
            f"Context of the question: {self.asked.context}" if self.asked.context else "",
            self.asked.shape.instruction if self.asked.shape else "",
            f"Question: {self.asked.question}",
            rules,
        ]
        return user_message(sections, asked)

    def _models_suffice(self, layers: Mapping[Layer, Sequence[EvidencePiece]]) -> bool:
        """Whether mental models cover the question, and no lower evidence is newer than they are."""
        models = layers["models"]
        below = [*layers["observations"], *layers["facts"]]
        newest = max((piece.said for piece in below), default="")
        fresh = [piece for piece in models if piece.said >= newest]
        return bool(fresh) and covers_question(self.asked.question, fresh)

    # -- the tools --------------------------------------------------------------------------------------

    def tools(self) -> dict[str, Tool]:
        """The tools, the same for all requests of a run; calls out of order are refused."""
        found = {
            name: Tool(tool_task(name), schema("query"), partial(self._search_tool, layer))
            for layer, name in _SEARCH_TOOL.items()
        }
        found["read"] = Tool(tool_task("read"), schema("number"), self._read)
        found["answer"] = Tool(tool_task("answer"), self._schema(), self._answer, ends=True)
        return found

    def _schema(self) -> dict[str, Any]:
        base = schema("answer")
        fields, required = {**base["properties"]}, [*base["required"]]
        if self.asked.shape:
            fields["data"] = self.asked.shape.field
            required.append("data")
        if self.asked.keep:
            fields["opinions"] = schema("opinions")
        return {**base, "properties": fields, "required": required}

    def count_reply(self, reply: Reply) -> None:
        """Count a reply; near the limits, only allow the answer from now on."""
        self.turns += 1
        self.spent += reply.usage.total
        if self.turns >= self.asked.size.turns - 2 or self.spent >= self.asked.size.spend:
            self.must_answer = "no more searches in this run: answer now, with what you have"

    def _search_tool(self, layer: Layer, given: Mapping[str, Any]) -> str:
        above = [*LAYERS][: [*LAYERS].index(layer)]
        missing = [f"{_SEARCH_TOOL[each]} comes first" for each in above if each not in self.searched]
        if why := missing[0] if missing else self.must_answer:
            self._refuse(_SEARCH_TOOL[layer], given["query"], why)
        pieces = self._search_layer(layer, given["query"], "model")
        self.searched.add(layer)
        return self._show(pieces)

    def _read(self, given: Mapping[str, Any]) -> str:
        number = given["number"]
        if why := self.must_answer if number in self.found.pieces else f"nothing is numbered {number}":
            self._refuse("read", str(number), why)
        pieces = self.found.related(number)
        self.checked.add(number)
        self._record("read", self.found.pieces[number].citation, pieces)
        return self._show(pieces)

    def _show(self, pieces: Sequence[EvidencePiece]) -> str:
        rows = "\n".join(format_pieces(pieces, self.shown))
        self.shown |= {piece.number for piece in pieces}
        return user_message([rows or "nothing found"], [])

    def _refuse(self, what: str, asked: str, why: str) -> None:
        self.path.append(ReflectStep(what, asked, said=why))
        raise ToolError(why)

    # -- the answer -------------------------------------------------------------------------------------

    def _answer(self, given: Mapping[str, Any]) -> str:
        if not given["found"] and "facts" not in self.searched:
            why = "search_observations and search_facts before you say that it is not there"
            self._refuse("answer", "", why)
        faults = self.check(given["text"], given["found"], given["confidence"], given)
        if faults and "answer" not in self.refused:
            self.refused.add("answer")
            self._refuse("answer", "", "; ".join(faults))
        self.path.append(ReflectStep("answer", "", tokens=text_tokens.count(given["text"])))
        return "given"

    def check(self, text: str, found: bool, confidence: float, given: Mapping[str, Any]) -> list[str]:
        """Check an answer and keep its supported part; returns the faults, in words for the model."""
        checked = check_answer(text, self.visible, self.asked.question, found=found, checked=self.checked)
        faults = [*checked.faults]
        notes: list[str] = []
        if text_tokens.count(checked.text) > self.asked.size.answer:
            faults.append(f"it has more than {self.asked.size.answer} tokens: make it shorter")
        structured = self._structured_answer(given, faults, notes)
        self.proposals, wrong = check_opinions(
            given.get("opinions", ()) if self.asked.keep else (), self.visible, self.asked.there,
            self.asked.all_opinions, self.asked.question,
        )  # fmt: skip
        cited = tuple(self.found.pieces[n] for n in checked.cites)
        holds = found and bool(cited) and bool(checked.text)
        structured = structured if holds or not found else None
        notes += [f"left out of the answer, not supported by its sources: {one}" for one in checked.cut]
        notes += [f"not kept: {one}" for one in wrong]
        shown = checked.text if holds or (not found and checked.text) else NOT_SUPPORTED
        self.answer = Reflection(
            self.asked.question, shown, holds,
            bounded_confidence(confidence, cited) if holds else 0.0,
            cited if holds or not found else (), structured=structured, notes=tuple(notes),
        )  # fmt: skip
        return [*faults, *wrong]

    @property
    def visible(self) -> dict[int, EvidencePiece]:
        """The pieces that the model was shown; no others may be cited."""
        return {number: piece for number, piece in self.found.pieces.items() if number in self.shown}

    def _structured_answer(self, given: Mapping[str, Any], faults: list[str], notes: list[str]) -> Any:
        """The structured answer, if it fits the schema and memory supports it."""
        shape = self.asked.shape
        if shape is None:
            return None
        data, wrong = None, ["it is no JSON"]
        with contextlib.suppress(ValueError, RecursionError):
            data = shape.read(given.get("data"))
            wrong = schema_errors(data, shape.schema)
        if wrong and "data" in self.refused:
            what = f"the model's structured answer does not fit the schema: {wrong[0]}"
            raise ModelMisbehaved(what, hint="try again, or a simpler schema")
        if wrong:
            self.refused.add("data")
            raise ToolError("data: " + "; ".join(wrong))
        said_so = [self.asked.question, json.dumps(shape.schema, ensure_ascii=False)]
        missing = unsupported_claims("\n".join(_texts_and_keys(data)), [*self.visible.values()], said_so)
        if missing:
            faults.append(f"data: {', '.join(missing)} is not in memory")
            notes.append(f"no structured answer: nothing found says {', '.join(missing)}")
        return None if missing else data


_SEARCH_TOOL: Mapping[Layer, str] = {
    "models": "search_mental_models",
    "observations": "search_observations",
    "facts": "search_facts",
}


def answer(model: Model, run: ReflectRun, first_message: str, system: str) -> Reflection:
    """Have the model answer. Raises what the model raises; nothing is written then."""
    size = run.asked.size

    def ask(messages: Sequence[Mapping[str, Any]]) -> Any:
        bounds = Bounds(turns=max(size.turns - run.turns, 2), calls=40, at_once=6)
        return run_tools(
            model, system, messages, run.tools(), purpose="reflect", bounds=bounds,
            max_tokens=2 * size.answer + 1000, on_reply=run.count_reply,
        )  # fmt: skip

    outcome = ask([user(first_message)])
    usage = outcome.usage
    if outcome.ended == "done" and run.answer is None:
        outcome = ask([*outcome.messages, user(_NO_ANSWER_CALLED)])
        usage += outcome.usage
    if outcome.ended != "done" or run.answer is None:
        _take_text_as_answer(run, outcome.text if outcome.ended == "done" else "", outcome)
    assert run.answer is not None
    return _with_renumbered_citations(run.answer, run, model.name, usage)


def _take_text_as_answer(run: ReflectRun, text: str, outcome: Any) -> None:
    """Take the text of a model that did not call `answer`, as small models do. It is checked and cut like any
    other answer."""
    if not text or run.asked.shape or "facts" not in run.searched:
        outcome.require_done()
        raise ModelMisbehaved("the model gave no answer", hint="try again, or another UA_MEMORY_MODEL")
    run.check(text, True, 0.5, {})
    run.path.append(ReflectStep("answer", "", tokens=text_tokens.count(text)))


def _with_renumbered_citations(done: Reflection, run: ReflectRun, name: str, usage: TokenUsage) -> Reflection:
    """The answer with its citations renumbered in order, and the rest of the evidence after them."""
    rest = [piece for piece in by_layer(run.found.pieces.values()) if piece not in done.citations]
    numbers = {piece.number: n for n, piece in enumerate([*done.citations, *rest], 1)}

    def renumbered(piece: EvidencePiece) -> EvidencePiece:
        return replace(piece, number=numbers[piece.number])

    return replace(
        done, text=renumber_citations(done.text, numbers),
        citations=tuple(map(renumbered, done.citations)),
        evidence=tuple(by_layer(map(renumbered, run.found.pieces.values()))), path=tuple(run.path),
        model=name, usage=usage,
    )  # fmt: skip


NO_MODEL = (
    f"without a model this is the evidence in order, not an answer; a model would weigh it {MODEL_HINT}"
)
NO_OPINION_NOTE = "no opinion was formed: that needs a model"
EARLIER_OPINIONS = 5
"""Most earlier opinions that a model is shown."""


class Reflector:
    """Answers questions from one bank with `search` and the current observations."""

    def __init__(
        self, store: Store, door: str, models: ModelAccess, search: Callable[..., SearchResult],
        observations: Callable[[], Sequence[ObservationView]],
    ) -> None:  # fmt: skip
        self._store, self._door, self._models = store, door, models
        self._search, self._observations = search, observations

    def reflect(
        self, question: str, *, model: ModelOrEndpoint = None, budget: str = "low", max_tokens: int = 0,
        schema: Mapping[str, Any] | None = None, context: str = "", filters: Filters | None = None,
        keep_opinion: bool = False,
    ) -> Reflection:  # fmt: skip
        """See `Memory.reflect`."""
        if not question.strip():
            raise Usage("no question given", hint='ua-memory reflect "why did we leave Heroku"')
        if budget not in SIZES:
            raise Usage(f"no budget {budget!r}", hint=f"one of {', '.join(SIZES)}")
        size = SIZES[budget] if max_tokens <= 0 else replace(SIZES[budget], answer=max_tokens)
        base, store, today = Filters() if filters is None else filters, self._store, self._store.now().date()
        found = EvidenceCollector(store, self._search, store.redacted, today, base, self._observations)
        holding = tuple(knowledge_opinions.all_opinions(store))
        wanted = ReflectQuestion(
            question.strip(), size, context.strip(),
            None if schema is None else parse_schema(schema), keep_opinion,
            self._opinions_on(question.strip(), base, holding), holding,
        )  # fmt: skip
        run = ReflectRun(wanted, found)
        layers = run.search_layers()
        pieces = tuple(by_layer(run.found.pieces.values()))
        left = tuple(run.found.notes)
        if model is None or not pieces:
            notes = [*left, *([] if model else [NO_MODEL, *([NO_OPINION_NOTE] if keep_opinion else [])])]
            text = "" if pieces else NOTHING_FOUND
            return Reflection(question, text, evidence=pieces, path=tuple(run.path), notes=tuple(notes))
        system = system_prompt(store.config, size.answer * 2 // 3, keep_opinion)
        with self._models.open(model) as opened:
            assert opened is not None
            done = answer(opened, run, run.first_message(layers, directives_text(store.config)), system)
        opinions = write_opinions(store, run.proposals, question=question, door=self._door)
        return replace(done, opinions=opinions, notes=(*left, *done.notes))

    def _opinions_on(self, question: str, base: Filters, holding: Sequence[Opinion]) -> tuple[Opinion, ...]:
        """The opinions that a search for the question finds; these may be changed."""
        if not holding:
            return ()
        where = replace(base, kinds=("opinion", "pattern", "risk"), retired=False)
        hits = self._search(question, limit=EARLIER_OPINIONS, filters=where).hits
        ids = [hit.item.id for hit in hits if is_evidence(hit)]
        return tuple(one for one in holding if one.id and one.id in ids)


# -- directives --------------------------------------------------------------------------------------------


LONGEST_DIRECTIVE = 500
"""Most characters of one directive, which is twice in every prompt of reflect."""
MOST_DIRECTIVES = 30
SETTING = "directives"


@checked
class Directives:
    """The directives of a bank: a list in ua-memory.toml, numbered from 1. Each change is one revision;
    `door` names who makes it."""

    def __init__(self, store: Store, door: str) -> None:
        self._store, self._door = store, door

    def list(self) -> Sequence[str]:
        """All directives, in order."""
        return self._store.config.directives

    def get(self, number: int) -> str:
        """The directive with this number. NotFound."""
        return _rule_at(self.list(), number)

    def add(self, text: str, *, by_person: bool = False) -> Result:
        """Add a directive at the end. Usage for an invalid text or one that exists, Malformed for a file that
        cannot be edited."""
        return self._change(None, _check_rule(text), by_person)[1]

    def update(self, number: int, text: str, *, by_person: bool = False) -> Result:
        """Replace the directive with this number. NotFound, and what `add` raises."""
        return self._change(number, _check_rule(text), by_person)[1]

    def delete(self, number: int, *, by_person: bool = False) -> tuple[str, Result]:
        """Remove the directive with this number, and return it. NotFound, Malformed."""
        there, done = self._change(number, "", by_person)
        return there[number - 1], done

    def _change(self, number: int | None, text: str, by_person: bool) -> tuple[Sequence[str], Result]:
        """Add a directive (without a `number`), replace one, or delete it (without a `text`), in one
        revision. Returns also what the directives were. Malformed if anything else of the file would
        change."""
        with self._store.revision("directives", door=self._door, by_person=by_person) as draft:
            there, rule = _read_rules(draft), draft.redact(text)
            if number is not None:
                _rule_at(there, number)
            if rule and rule in there:
                raise Usage("this directive already exists", where=SETTINGS)
            if number is None and len(there) >= MOST_DIRECTIVES:
                what = f"there are already {MOST_DIRECTIVES} directives, the maximum"
                raise Usage(what, hint="ua-memory directives delete N")
            what = "add" if number is None else "change" if rule else "remove"
            draft.subject = f"directives: {what} {number or len(there) + 1}"

            def edit(rules: Any) -> None:  # a Python list, or the one in the TOML document
                if number is None:
                    rules.append(rule)
                elif rule:
                    rules[number - 1] = rule
                else:
                    del rules[number - 1]

            edit(rules := [*there])
            data = config_module.edited(
                draft.read(SETTINGS), SETTINGS, lambda document: edit(document.setdefault(SETTING, [])),
                lambda said: {**said, SETTING: rules},
            )  # fmt: skip
            draft.write(SETTINGS, data, restored=True)  # the rule itself was redacted before
        self._store.config = replace(self._store.config, directives=tuple(rules))
        return there, draft.result


def _rule_at(rules: Sequence[str], number: int) -> str:
    if not 1 <= number <= len(rules):
        raise NotFound(f"no directive {number}; there are {len(rules)}", hint="ua-memory directives list")
    return rules[number - 1]


_EXAMPLE = 'ua-memory directives create "Never name a customer."'
_check_rule = partial(one_line, most=LONGEST_DIRECTIVE, what="a directive", example=_EXAMPLE)


def _read_rules(draft: Draft) -> list[str]:
    try:
        found = tomllib.loads(draft.read(SETTINGS).decode("utf-8-sig")).get(SETTING, [])
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Malformed(f"cannot be read: {error}", where=SETTINGS, hint="correct it") from error
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise Malformed(f"{SETTING} is not a list of strings", where=SETTINGS, hint="ua-memory config")
    return found
