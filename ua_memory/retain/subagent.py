"""The sub-agent of a flush: its prompt, its tools, and the facts it proposes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime, tzinfo
from typing import Any, Literal

from ua_memory.clients.turns import Turn
from ua_memory.errors import Malformed, TooLarge, Usage
from ua_memory.knowledge import core as knowledge_core
from ua_memory.llm.model import Model, prompt, user
from ua_memory.llm.model import TokenUsage as Tokens
from ua_memory.llm.tools import SAY_DONE, Tool, ToolError, run_tools, schema
from ua_memory.markdown.fields import is_time
from ua_memory.records import CoreBlock
from ua_memory.text import grounding
from ua_memory.text.calendar import A_MONTH, A_WEEKDAY
from ua_memory.text.grounding import disagreement, is_grounded_name, locate, nearby_turns, ungrounded_claims
from ua_memory.text.noise import escape_tags
from ua_memory.text.patterns import Phrases, late
from ua_memory.text.wording import ASSENTS, DENIALS, GROUP, main_clauses, sentences


@dataclass(frozen=True, slots=True)
class MemoryView:
    """The sub-agent's read access to memory: `search` gives one line for each hit, `core` the core blocks.

    `redact` removes secrets, which people's own files may hold. `check` raises what core memory would raise
    if these blocks had these values.
    """

    search: Callable[[str], Sequence[str]]
    core: Callable[[], Sequence[CoreBlock]]
    redact: Callable[[str], str] = str
    check: Callable[[Mapping[str, str]], None] = lambda _: None


# -- candidates --------------------------------------------------------------------------------------------


CandidateKind = Literal["world", "experience", "preference"]
Speaker = Literal["person", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """One statement worth keeping, found by a model or by extraction.

    `text` is one line. `quote` is verbatim in the turn with the id `turn`, white space aside. `when` is the
    ISO day that the statement is about; None if that is the day it was said, or if it names none or several.
    `at` is when the turn was said, if the client recorded it. `score` orders the candidates of one flush
    only; `reason` says in words why it is kept. `seen` are further turns that say the same. `was` is an
    earlier value that it replaces, '' for none.
    """

    text: str
    kind: CandidateKind
    who: Speaker
    when: str | None
    entities: tuple[str, ...]
    tags: tuple[str, ...]
    quote: str
    turn: str
    at: datetime | None
    score: float
    reason: str
    seen: tuple[str, ...] = ()
    was: str = ""


_RECALLED_ROW = late(
    r"(?:- )?(?:(?:undated|[\d/T:.Z+-]+): )?(?P<text>.*?)"
    r"(?: \[(?P<path>[^\[\]#]+)#L[\d-]+L?\d*(?: \^(?P<id>[\w-]+))?[^\[\]]*\])?"
)
"""A line of a block of recalled memory, as `noise.row` writes it, or any other."""


class RecalledLines:
    """Lines of recalled memory that a session was given: an agent that repeats them says nothing new."""

    def __init__(self, lines: Iterable[str]) -> None:
        found = filter(None, map(_RECALLED_ROW.fullmatch, lines))
        self._rows = [(row["text"], row["path"] or "", row["id"] or "") for row in found]

    def is_repetition(self, candidate: Candidate) -> bool:
        """Whether an agent's statement only repeats these lines. For an experience the verb forms must be
        equal: "we move" is not "we moved"."""
        if candidate.who != "assistant" or not self._rows:
            return False
        exact, rows = candidate.kind == "experience", [text for text, _, _ in self._rows]

        def is_known(words: str) -> bool:
            parts = main_clauses(words)
            return bool(parts) and all(
                any(grounding.restates(part, row, exact=exact) for row in rows) for part in parts
            )

        if is_known(candidate.text):
            return True
        # A model has reworded what the agent had from memory.
        return is_known(candidate.quote) and not grounding.ungrounded_claims(candidate.text, rows)

    def restated_fact(self, candidate: Candidate) -> tuple[str, str] | None:
        """Path and id of the recalled fact that a person's statement repeats in other words or another
        order."""
        if candidate.who == "person":
            for text, path, block in self._rows:
                both = (candidate.text, text), (text, candidate.text)
                if block and all(grounding.restates(one, other) for one, other in both):
                    return path, block
        return None


def one_line(text: str) -> str:
    """The text with runs of white space as single spaces."""
    return " ".join(text.split())


def link_name(text: str) -> str:
    """A name without characters that a link cannot hold."""
    return one_line(re.sub(r"[\[\]|#^]", " ", text))


# -- sub-agent ---------------------------------------------------------------------------------------------
# A model reads a conversation whose context is about to be lost, and proposes what to keep. It has five tools
# and writes nothing: each proposal is checked against the conversation, the model is told the outcome, and
# `flush` writes all that was accepted as one revision, or nothing.


_NO_TOOL_CALLED = f"Nothing is saved: you called no tool. Save it with the tools, or {SAY_DONE}."
READ_ONLY_TOOLS = ("archival_memory_search", "get_core_memory_blocks")
"""Tools that only read; a model without tool use gets their results in its prompt."""
NEW_BLOCKS = ("User", "Agent", "Projects")
"""Core blocks that the sub-agent may add. It can add no others: a transcript could otherwise put a heading
of its own into the prompt of every later session."""
SEARCHED_TURNS, SHOWN_HITS = 12, 40
"""For a model that is asked only once: turns that memory is searched for, and hits that it is shown."""
SHORTEST_QUOTE = 4
"""A quote of fewer words is not kept in place of a statement that it does not support."""


@dataclass(frozen=True, slots=True)
class CoreEdit:
    """A proposed replacement of a core block: the value that was read, and the new value."""

    name: str
    read: str
    value: str


@dataclass(slots=True)
class SubagentResult:
    """What a sub-agent proposed: statements, core edits, what was refused and why, and its name for the
    session (`title`, `outcome`; '' for none). `unread` are turns for which the model made no valid call,
    though it did not say that there was nothing to keep."""

    candidates: list[Candidate] = field(default_factory=list)
    core_edits: dict[str, CoreEdit] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    unread: list[Turn] = field(default_factory=list)
    title: str = ""
    outcome: str = ""
    usage: Tokens = field(default_factory=Tokens)
    left_out: int = 0
    """Statements that extraction without a model left out, since there were too many."""
    duplicates: int = 0
    """Near-duplicates that extraction without a model left out."""


def run_subagent(
    model: Model, turns: Sequence[Turn], view: MemoryView, zone: tzinfo | None, *,
    result: SubagentResult | None = None, on_progress: Callable[[int], None] | None = None,
    max_tokens: int = 8_000, core: bool = True, recalled: RecalledLines | None = None,
) -> SubagentResult:  # fmt: skip
    """Let a sub-agent read the turns. Raises what the model raises; then nothing is kept.

    `result` has the proposals from earlier segments of the transcript, to which this one adds. `on_progress`
    is called after each answer with the number of turns up to the last quote. `max_tokens` bounds each
    answer. Without `core` it neither sees nor changes core memory. Statements in which the agent repeats
    `recalled` are dropped.
    """
    run = _SubagentRun(turns, view, zone, result or SubagentResult(), recalled)

    # A closing mark within the transcript is broken up, so that it cannot end the block.
    text = escape_tags(format_turns(turns, zone), "transcript")
    messages = [user(f"<transcript>\n{text}\n</transcript>", "Save what is worth keeping.")]
    tools = run.tools(core=core)
    if model.one_shot:
        messages = [user(run.prefetch(core=core), *messages[0]["content"])]
        tools = {name: tool for name, tool in tools.items() if name not in READ_ONLY_TOOLS}
    outcome = run_tools(
        model, prompt("flush"), messages, tools, purpose="flush", max_tokens=max_tokens,
        on_reply=lambda _: on_progress(run.turns_read) if on_progress else None,
        one_shot=model.one_shot, reminder=_NO_TOOL_CALLED,
    )  # fmt: skip
    run.result.usage += outcome.usage
    # A model that made no valid call and did not say that it is done, has not read them. Small models often
    # write about the transcript instead, which must not count as "nothing here is worth keeping".
    silent = outcome.ended in ("done", "cut") and not outcome.calls
    if silent and (outcome.refused or not outcome.says_done):
        run.result.unread.extend(turns)
    else:
        outcome.require_done()
    return run.result


def format_turns(turns: Sequence[Turn], zone: tzinfo | None) -> str:
    """The turns as the sub-agent reads them: number, speaker, time, text. Further lines of a turn are
    indented, so that no turn can pretend to be the next one."""
    lines, day = [], ""
    for number, turn in enumerate(turns, 1):
        at = turn.at.astimezone(zone) if turn.at else None
        if at and f"{at:%Y-%m-%d}" != day:
            day = f"{at:%Y-%m-%d}"
            lines.append(f"— {day}, a {at:%A} —")
        who = f"{turn.role} ({turn.agent})" if turn.agent else turn.role
        text = "\n ".join(turn.text.splitlines())
        lines.append(f"[{number}] {who}{f' {at:%H:%M}' if at else ''}: {text}")
    return "\n".join(lines)


PHRASES = Phrases(
    "phrases.txt", re.IGNORECASE, assents=ASSENTS, denials=DENIALS, month=A_MONTH, weekday=A_WEEKDAY
)
"""How people reply, correct themselves, ask and so on."""
_DECIDED = late(r"\b(?:decided|agreed|accepts?|accepted|chosen?|settled)\b")


def _asks_other(turn: str, statement: str) -> bool:
    """Whether a turn ends with a question that is about something else than a statement: "Shall I also delete
    the old ones?". A question about what was said before has few words of its own, or "it" or "that"."""
    question = sentences(turn)[-1:]
    own = grounding.terms(question[0]) if question and question[0].endswith("?") else frozenset()
    return (
        len(own) > 1
        and not PHRASES["means what was said"].search(question[0])
        and own.isdisjoint(grounding.terms(statement))
    )


def _agrees(reply: str) -> bool:
    """Whether a reply begins with an assent that its first sentence does not limit: "ok, but not that"."""
    first = next(iter(sentences(reply)), "")
    return PHRASES["assents"].match(first) is not None and not PHRASES["limits an assent"].search(first)


class _SubagentRun:
    """The tools of one sub-agent for one segment of a transcript."""

    def __init__(
        self, turns: Sequence[Turn], view: MemoryView, zone: tzinfo | None, result: SubagentResult,
        recalled: RecalledLines | None = None,
    ) -> None:  # fmt: skip
        self.recalled = recalled or RecalledLines(())
        self.turns, self.view, self.zone, self.result = turns, view, zone, result
        self.texts = [turn.text for turn in turns]
        self.spoken = [grounding.with_speaker_label(turn.role, turn.text) for turn in turns]
        self.conversation = grounding.SourceText(self.texts, None)
        self.introductions = [text for text in self.spoken if grounding.introduces_speaker(text)]
        self.known = {(c.text.casefold(), c.turn) for c in result.candidates}
        self.blocks: dict[str, CoreBlock] | None = None
        self.seen_hits: list[str] = []
        self.turns_read = 0

    def tools(self, *, core: bool) -> dict[str, Tool]:
        given = {
            "archival_memory_insert": ("Keep one statement of the transcript.", self._insert),
            "core_memory_replace": ("Replace one block of core memory by a new text.", self._replace_block),
            "name_session": ("Say what the session was about and how it ended.", self._name_session),
            "archival_memory_search": ("Find what memory has already.", self._search),
            "get_core_memory_blocks": ("Read all blocks of core memory.", self._read_blocks),
        }
        every = {name: Tool(does, schema(name), call) for name, (does, call) in given.items()}
        return {name: tool for name, tool in every.items() if core or "core_memory" not in name}

    def prefetch(self, *, core: bool) -> str:
        """The results of the read-only tools for a model that is asked only once: hits for the person's
        longest turns, and the core blocks."""
        said = sorted((turn.text for turn in self.turns if turn.role == "person"), key=len, reverse=True)
        hits: dict[str, None] = {}
        for text in said[:SEARCHED_TURNS]:
            with suppress(Usage):
                hits |= dict.fromkeys(self.view.search(one_line(text)[:400]))
        found = [*hits][:SHOWN_HITS]
        self.seen_hits += found
        known = "\n".join(found) or "nothing"
        parts = [f"archival_memory_search found:\n<memory>\n{escape_tags(known, 'memory')}\n</memory>"]
        if core:
            blocks = escape_tags(self._read_blocks({}), "core")
            parts.append(f"get_core_memory_blocks found:\n<core>\n{blocks}\n</core>")
        return "\n\n".join(["This has been looked up for you.", *parts])

    # -- statements ----------------------------------------------------------------------------

    def _insert(self, given: Mapping[str, Any]) -> str:
        index = self._find_turn(given["quote"], given["turn"])
        turn, quote = self.turns[index], one_line(given["quote"])
        text, when = one_line(given["content"]), given.get("when") or None
        names = tuple(dict.fromkeys(filter(None, map(link_name, given.get("entities", ())))))
        if when is not None and not is_time(when):
            raise ToolError(f"{when!r} is no ISO date; nothing was kept")
        if not text or not quote:
            raise ToolError("there is no statement, or no quote; nothing was kept")
        if turn.echo and grounding.mostly_repeats(quote, grounding.words_only(turn.echo)):
            self._refuse(f"{text} (the agent repeats what a tool printed)")
            raise ToolError("these words are a tool's, which the agent repeats; nothing was kept")
        claims = f"{text}\n{when or ''}\n{', '.join(names)}"
        evidence = nearby_turns(index, self.texts)
        missing = ungrounded_claims(claims, evidence, self._day_of_turn(index), self.conversation)
        why = f"nobody said {', '.join(missing)} there" if missing else ""
        reply = self._reply_to(index)
        denied = PHRASES["denies it"].match(reply) is not None and not _asks_other(
            turn.text, f"{text} {quote}"
        )
        if denied and not grounding.is_negated(text):
            self._refuse(f"{text} (the person denied it)")
            raise ToolError("the person denied it; nothing was kept")
        agreed = _agrees(reply)
        if reply and not agreed and _DECIDED.search(text) and not grounding.is_negated(text):
            why = why or "nobody agreed to it"
        spoken = [*nearby_turns(index, self.spoken), *self.introductions]
        why = why or disagreement(text, [quote], spoken, agreed=agreed)
        if why:
            self._refuse(f"{text} ({why})")
            if len(quote.split()) < SHORTEST_QUOTE:
                raise ToolError(f"{why}; nothing was kept")
            if any(each.quote == quote and each.turn == turn.id for each in self.result.candidates):
                return f"not kept: {why}, and its quote is kept already"
            text, when, names = quote, None, ()
        names = tuple(name for name in names if is_grounded_name(name, evidence))
        candidate = Candidate(
            text, given.get("kind", "world"), turn.role, when, names, self._grounded_tags(given["tags"]),
            quote, turn.id, turn.at, 1.0, "chosen by the model",
        )  # fmt: skip
        self.turns_read = max(self.turns_read, index + 1)
        if self.recalled.is_repetition(candidate):
            return "not kept: the assistant had it from memory, which has it already"
        # Neighbouring segments share turns, and models repeat themselves.
        if (key := (text.casefold(), turn.id)) not in self.known:
            self.known.add(key)
            self.result.candidates.append(candidate)
        return f"kept as its quote instead: {why}" if why else "kept"

    def _reply_to(self, index: int) -> str:
        """What the person said next to a turn of the assistant, '' for other turns."""
        if self.turns[index].role != "assistant":
            return ""
        return next((turn.text for turn in self.turns[index + 1 :] if turn.role == "person"), "")

    def _refuse(self, what: str) -> None:
        """Record a refusal for the person, without secrets."""
        self.result.refused.append(self.view.redact(what))

    def _find_turn(self, quote: str, number: int) -> int:
        if 1 <= number <= len(self.texts) and locate(quote, [self.texts[number - 1]]) is not None:
            return number - 1
        index = locate(quote, self.texts)
        if index is None:
            self._refuse(f"{one_line(quote)[:80]} (no such words in the transcript)")
            raise ToolError("the quote is not in one turn of the transcript word for word; nothing was kept")
        return index

    def _day_of_turn(self, index: int) -> date | None:
        """The day of a turn; without a time of its own, that of the last turn before it that has one."""
        at = next((turn.at for turn in reversed(self.turns[: index + 1]) if turn.at), None)
        return at.astimezone(self.zone).date() if at else None

    def _grounded_tags(self, given: Sequence[str]) -> tuple[str, ...]:
        tags = ("-".join(tag.strip().strip("#").split()) for tag in given)
        fit = (tag for tag in tags if tag and not tag.startswith(f"{GROUP}:"))  # which speech cannot choose
        return tuple(dict.fromkeys(tag for tag in fit if not ungrounded_claims(tag, self.texts)))

    def _name_session(self, given: Mapping[str, Any]) -> str:
        title, outcome = one_line(given["title"]), one_line(given["outcome"])
        if missing := ungrounded_claims(f"{title}\n{outcome}", self.texts):
            raise ToolError(f"nobody said {', '.join(missing)}; the session has no name yet")
        self.result.title, self.result.outcome = title, outcome
        return "named"

    # -- memory --------------------------------------------------------------------------------

    def _replace_block(self, given: Mapping[str, Any]) -> str:
        if self.blocks is None:
            raise ToolError("read the blocks first: get_core_memory_blocks")
        wanted = given["section"].strip().lstrip("#").strip().strip("[]").casefold()
        name = next((there for there in self.blocks if there.casefold() == wanted), None)
        if name is None:
            raise ToolError(f"there is no such block; there are: {', '.join(self.blocks) or 'none'}")
        read, value = self.blocks[name].value, given["value"]
        if self.view.redact(read) != read:
            raise ToolError("this block holds something that you were not shown; it cannot be replaced")
        now = self.result.core_edits[name].value if name in self.result.core_edits else read
        missing = ungrounded_claims(value, [read, now, name, *self.texts])
        if missing:
            self._refuse(f"core block {name} (nobody said {', '.join(missing)})")
            raise ToolError(
                f"neither the block nor the transcript has: {', '.join(missing)}; nothing was changed"
            )
        edits = {each.name: each.value for each in self.result.core_edits.values()}
        try:
            self.view.check(edits | {name: value})
        except (Malformed, TooLarge, Usage) as error:
            raise ToolError(f"{error.what}; nothing was changed, so make it shorter or plainer") from error
        if why := self._why_ungrounded(value, [read, now, name]):
            self._refuse(f"core block {name}: {why}")
            raise ToolError(
                f"{why}; nothing was changed. Core memory takes what the person said, in such words"
            )
        self.result.core_edits[name] = CoreEdit(name, read, value)
        return "will be replaced"

    def _why_ungrounded(self, value: str, trusted: Sequence[str]) -> str:
        said = [turn.text for turn in self.turns if knowledge_core.is_persons(turn)]
        others = [turn.text for turn in self.turns if not knowledge_core.is_persons(turn)]
        return knowledge_core.find_ungrounded(value, trusted, said, [*others, *self.seen_hits])

    def _search(self, given: Mapping[str, Any]) -> str:
        try:
            hits = self.view.search(given["query"])
        except Usage as error:
            raise ToolError(error.what) from error
        self.seen_hits += hits
        return "\n".join(hits) or "memory has nothing on this"

    def _read_blocks(self, given: Mapping[str, Any]) -> str:
        if self.blocks is None:
            old = {block.name: block for block in self.view.core()}
            known = {key.casefold() for key in old}
            self.blocks = old | {key: CoreBlock(key, "") for key in NEW_BLOCKS if key.casefold() not in known}
        values = {key: block.value for key, block in self.blocks.items()}
        values |= {key: edit.value for key, edit in self.result.core_edits.items()}
        return self.view.redact(
            "\n\n".join(f"## {key}\n{value or '(empty)'}" for key, value in values.items())
        )
