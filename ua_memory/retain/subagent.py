"""The sub-agent of a flush: its prompt, its tools, and the facts it proposes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime, tzinfo
from typing import Any, Literal

from ua_memory.errors import Malformed, TooLarge, Usage
from ua_memory.knowledge import core as knowledge_core
from ua_memory.llm.model import Message, Model, Reply, prompt, user
from ua_memory.llm.model import TokenUsage as Tokens
from ua_memory.llm.tools import SAY_DONE, Outcome, Tool, ToolError, run_tools, schema
from ua_memory.markdown.fields import is_time
from ua_memory.records import CoreBlock
from ua_memory.text import grounding
from ua_memory.text.grounding import around, disagreement, flat, locate, named, repeats, ungrounded
from ua_memory.text.noise import defanged
from ua_memory.text.patterns import late
from ua_memory.text.wording import GROUP
from ua_memory.transcripts.turns import Turn

# -- tools -------------------------------------------------------------------------------------------------
# What the tools of the sub-agent take, as JSON schemas.


# -- view --------------------------------------------------------------------------------------------------
# What a flush's sub-agent is shown of memory.
#
# It stands apart from the sub-agent, which loads all that speaks with a model: a hook that only lets turns
# wait has no use for that.


@dataclass(frozen=True, slots=True)
class MemoryView:
    """What the sub-agent may see of memory: hits for a query, one line each, and the core blocks.

    `clean` takes secrets out of a text: what people wrote into their files may hold some. `check` raises what
    core memory would raise if these blocks had these values.
    """

    search: Callable[[str], Sequence[str]]
    core: Callable[[], Sequence[CoreBlock]]
    clean: Callable[[str], str] = str
    check: Callable[[Mapping[str, str]], None] = lambda _: None


# -- candidate ---------------------------------------------------------------------------------------------
# What a flush proposes to keep, before it becomes a fact: by a model or by extraction, in one shape.


CandidateKind = Literal["world", "experience", "preference"]
Speaker = Literal["person", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """One statement worth keeping, with the words it was drawn from.

    `text` is one line. `quote` is verbatim in the turn `turn`, white space aside. `when` is the ISO day that
    the statement is about, None if that is the day it was said, or if it names none or several. `at` is when
    the turn was said, where its client wrote that down. `score` orders candidates of one flush and means
    nothing across flushes; `reason` says in words what the statement was kept for. `seen` are further turns
    that said the same. `was` is what the speakers said of the same thing before, '' for nothing.
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
    """What memory gave a session: an agent that repeats it has said nothing new."""

    def __init__(self, lines: Iterable[str]) -> None:
        found = filter(None, map(_RECALLED_ROW.fullmatch, lines))
        self._rows = [(row["text"], row["path"] or "", row["id"] or "") for row in found]

    def repeated(self, candidate: Candidate) -> bool:
        """Whether the agent says with it only what stands there. What was done is told apart by its form:
        "we move" is no "we moved"."""
        if candidate.who != "assistant" or not self._rows:
            return False
        exact, rows = candidate.kind == "experience", [text for text, _, _ in self._rows]

        def stands(words: str) -> bool:
            parts = grounding.sentences(words)
            return bool(parts) and all(
                any(grounding.restates(part, row, exact=exact) for row in rows) for part in parts
            )

        if stands(candidate.text):
            return True
        # A model words it anew, from words that the agent had from memory.
        return stands(candidate.quote) and not grounding.ungrounded(candidate.text, rows)

    def restated(self, candidate: Candidate) -> tuple[str, str] | None:
        """Path and id of the fact that a person says again with it, in other words or another order."""
        if candidate.who == "person":
            for text, path, block in self._rows:
                both = (candidate.text, text), (text, candidate.text)
                if block and all(grounding.restates(one, other) for one, other in both):
                    return path, block
        return None


def one_line(text: str) -> str:
    """The text with runs of white space as single spaces."""
    return " ".join(text.split())


def as_name(text: str) -> str:
    """A name as a link can hold it."""
    return one_line(re.sub(r"[\[\]|#^]", " ", text))


# -- subagent ----------------------------------------------------------------------------------------------
# The sub-agent of a flush: a fresh model that reads a dying conversation and proposes what to keep.
#
# It has five tools and writes nothing: what it wants kept is checked against the conversation on the spot,
# told to it, and collected. `flush` writes all of it in one revision, or none of it.


_REMINDER = f"Nothing is saved: you called no tool. Save it with the tools, or {SAY_DONE}."
LOOKS = ("archival_memory_search", "get_core_memory_blocks")
"""Tools that only read."""
BEGINNINGS = ("User", "Agent", "Projects")
"""Blocks that may be filled where they are not there yet. No other can be added: what a transcript says
could otherwise put a heading of its own before every session to come."""
LOOKED_UP, SHOWN_HITS = 12, 40
"""Turns that are looked up for a model that is asked only once, and hits that it is shown in all."""
_QUOTE_WORDS = 4
"""A shorter quote cannot stand for the statement that it failed to support."""


@dataclass(frozen=True, slots=True)
class CoreEdit:
    """A proposed replacement of a core block: the value that was read, and the new value."""

    name: str
    read: str
    value: str


@dataclass(slots=True)
class SubagentResult:
    """What a sub-agent proposed: statements, core edits, what was refused and why, and what it calls the
    session (`title`, `outcome`; '' where it does not). `unstudied` are the
    turns that it only talked about: it made no valid call, and did not say that there was nothing to keep."""

    kept: list[Candidate] = field(default_factory=list)
    core: dict[str, CoreEdit] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    unstudied: list[Turn] = field(default_factory=list)
    title: str = ""
    outcome: str = ""
    usage: Tokens = field(default_factory=Tokens)
    left: int = 0
    """Statements worth keeping that an extraction without a model left out, since there were too many."""
    repeated: int = 0
    """Statements that it left out, since one that is kept says nearly the same."""


def run_subagent(
    model: Model, turns: Sequence[Turn], view: MemoryView, zone: tzinfo | None, *,
    into: SubagentResult | None = None, watch: Callable[[int], None] | None = None, max_tokens: int = 8_000,
    core: bool = True, recalled: RecalledLines | None = None,
) -> SubagentResult:  # fmt: skip
    """Let a fresh sub-agent read the turns. Raises what the model raises; then nothing is to be kept.

    `into` is what earlier stretches of the same transcript brought, which this one adds to. `watch` is told
    after each answer how many turns lie behind what was quoted last. `max_tokens` bounds each answer. Without
    `core` it neither sees nor changes core memory. What the agent repeats of `recalled` is not taken.
    """
    session = _SubagentRun(turns, view, zone, into or SubagentResult(), recalled)

    def watching(_: Reply) -> None:
        if watch is not None:
            watch(session.reached)

    opening = [_opening(turns, zone)]
    tools = session.tools(core=core)
    if model.once:
        opening = [user(session.looked_up(core=core), *opening[0]["content"])]
        tools = {name: tool for name, tool in tools.items() if name not in LOOKS}
    outcome = run_tools(
        model, prompt("flush"), opening, tools, purpose="flush", max_tokens=max_tokens, watch=watching,
        once=model.once, reminder=_REMINDER,
    )  # fmt: skip
    session.harvest.usage += outcome.usage
    if _talks(outcome):
        session.harvest.unstudied.extend(turns)
    else:
        outcome.require_done()
    return session.harvest


def _talks(outcome: Outcome) -> bool:
    """Whether the model called nothing, and said something else than that it is done: small models often
    write about the transcript instead, or get none of their calls right. Nobody may take that for "nothing
    here was worth keeping"."""
    if outcome.ended not in ("done", "cut") or outcome.calls:
        return False
    return outcome.refused > 0 or not outcome.says_done


def shown(turns: Sequence[Turn], zone: tzinfo | None) -> str:
    """The turns as the sub-agent reads them: number, speaker, time, words; further lines are indented, so
    that no turn can pretend to be the next one."""
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


def _opening(turns: Sequence[Turn], zone: tzinfo | None) -> Message:
    # The closing mark cannot be forged from within: a transcript that has it is broken up there.
    text = defanged(shown(turns, zone), "transcript")
    return user(f"<transcript>\n{text}\n</transcript>", "Save what is worth keeping.")


class _SubagentRun:
    """One sub-agent's tools over one stretch of a transcript."""

    def __init__(
        self, turns: Sequence[Turn], view: MemoryView, zone: tzinfo | None, harvest: SubagentResult,
        recalled: RecalledLines | None = None,
    ) -> None:  # fmt: skip
        self.recalled = recalled or RecalledLines(())
        self.turns, self.view, self.zone, self.harvest = turns, view, zone, harvest
        self.texts = [turn.text for turn in turns]
        self.spoken = [grounding.spoken(turn.role, turn.text) for turn in turns]
        self.known = {(c.text.casefold(), c.turn) for c in harvest.kept}
        self.blocks: dict[str, CoreBlock] | None = None
        self.shown: list[str] = []
        self.reached = 0

    def tools(self, *, core: bool) -> dict[str, Tool]:
        given = {
            "archival_memory_insert": ("Keep one statement of the transcript.", self._insert),
            "core_memory_replace": ("Replace one block of core memory by a new text.", self._replace),
            "name_session": ("Say what the session was about and how it ended.", self._name),
            "archival_memory_search": ("Find what memory has already.", self._search),
            "get_core_memory_blocks": ("Read all blocks of core memory.", self._blocks),
        }
        every = {name: Tool(does, schema(name), call) for name, (does, call) in given.items()}
        return {name: tool for name, tool in every.items() if core or "core_memory" not in name}

    def looked_up(self, *, core: bool) -> str:
        """What a model would look up that is asked only once: what memory has on the person's longest turns,
        and the core blocks."""
        said = sorted((turn.text for turn in self.turns if turn.role == "person"), key=len, reverse=True)
        hits: dict[str, None] = {}
        for text in said[:LOOKED_UP]:
            with suppress(Usage):
                hits |= dict.fromkeys(self.view.search(one_line(text)[:400]))
        found = [*hits][:SHOWN_HITS]
        self.shown += found
        known = "\n".join(found) or "nothing"
        parts = [f"archival_memory_search found:\n<memory>\n{defanged(known, 'memory')}\n</memory>"]
        if core:
            blocks = defanged(self._blocks({}), "core")
            parts.append(f"get_core_memory_blocks found:\n<core>\n{blocks}\n</core>")
        return "\n\n".join(["This has been looked up for you.", *parts])

    # -- statements ----------------------------------------------------------------------------

    def _insert(self, given: Mapping[str, Any]) -> str:
        index = self._turn_of(given["quote"], given["turn"])
        turn, quote = self.turns[index], one_line(given["quote"])
        text, when = one_line(given["content"]), given.get("when") or None
        names = tuple(dict.fromkeys(filter(None, map(as_name, given.get("entities", ())))))
        if when is not None and not is_time(when):
            raise ToolError(f"{when!r} is no ISO date; nothing was kept")
        if not text or not quote:
            raise ToolError("there is no statement, or no quote; nothing was kept")
        if turn.echo and repeats(quote, flat(turn.echo)):
            self._refuse(f"{text} (the agent repeats what a tool printed)")
            raise ToolError("these words are a tool's, which the agent repeats; nothing was kept")
        claimed = f"{text}\n{when or ''}\n{', '.join(names)}"
        evidence = around(index, self.texts)
        missing = ungrounded(claimed, evidence, self._day(index))
        why = f"nobody said {', '.join(missing)} there" if missing else ""
        why = why or disagreement(text, [quote], around(index, self.spoken))
        if why:
            self._refuse(f"{text} ({why})")
            if len(quote.split()) < _QUOTE_WORDS:
                raise ToolError(f"{why}; nothing was kept")
            if any(each.quote == quote and each.turn == turn.id for each in self.harvest.kept):
                return f"not kept: {why}, and its quote is kept already"
            text, when, names = quote, None, ()
        names = tuple(name for name in names if named(name, evidence))
        candidate = Candidate(
            text, given.get("kind", "world"), turn.role, when, names, self._tags(given["tags"]), quote,
            turn.id, turn.at, 1.0, "chosen by the model",
        )  # fmt: skip
        self.reached = max(self.reached, index + 1)
        if self.recalled.repeated(candidate):
            return "not kept: the assistant had it from memory, which has it already"
        self._keep(candidate)
        return f"kept as its quote instead: {why}" if why else "kept"

    def _refuse(self, what: str) -> None:
        """Told to the person afterwards, so without secrets."""
        self.harvest.refused.append(self.view.clean(what))

    def _keep(self, candidate: Candidate) -> None:
        """Once only: neighbouring stretches share turns, and models repeat themselves."""
        key = (candidate.text.casefold(), candidate.turn)
        if key not in self.known:
            self.known.add(key)
            self.harvest.kept.append(candidate)

    def _turn_of(self, quote: str, number: int) -> int:
        if 1 <= number <= len(self.texts) and locate(quote, [self.texts[number - 1]]) is not None:
            return number - 1
        index = locate(quote, self.texts)
        if index is None:
            self._refuse(f"{one_line(quote)[:80]} (no such words in the transcript)")
            raise ToolError("the quote is not in one turn of the transcript word for word; nothing was kept")
        return index

    def _day(self, index: int) -> date | None:
        """The day of a turn; of one without a time, that of the last turn before it that has one."""
        at = next((turn.at for turn in reversed(self.turns[: index + 1]) if turn.at), None)
        return at.astimezone(self.zone).date() if at else None

    def _tags(self, given: Sequence[str]) -> tuple[str, ...]:
        tags = ("-".join(tag.strip().strip("#").split()) for tag in given)
        fit = (tag for tag in tags if tag and not tag.startswith(f"{GROUP}:"))  # which speech cannot choose
        return tuple(dict.fromkeys(tag for tag in fit if not ungrounded(tag, self.texts)))

    def _name(self, given: Mapping[str, Any]) -> str:
        title, outcome = one_line(given["title"]), one_line(given["outcome"])
        if missing := ungrounded(f"{title}\n{outcome}", self.texts):
            raise ToolError(f"nobody said {', '.join(missing)}; the session has no name yet")
        self.harvest.title, self.harvest.outcome = title, outcome
        return "named"

    # -- memory --------------------------------------------------------------------------------

    def _replace(self, given: Mapping[str, Any]) -> str:
        if self.blocks is None:
            raise ToolError("read the blocks first: get_core_memory_blocks")
        wanted = given["section"].strip().lstrip("#").strip().strip("[]").casefold()
        name = next((there for there in self.blocks if there.casefold() == wanted), None)
        if name is None:
            raise ToolError(f"there is no such block; there are: {', '.join(self.blocks) or 'none'}")
        read, value = self.blocks[name].value, given["value"]
        if self.view.clean(read) != read:
            raise ToolError("this block holds something that you were not shown; it cannot be replaced")
        now = self.harvest.core[name].value if name in self.harvest.core else read
        missing = ungrounded(value, [read, now, name, *self.texts])
        if missing:
            self._refuse(f"core block {name} (nobody said {', '.join(missing)})")
            raise ToolError(
                f"neither the block nor the transcript has: {', '.join(missing)}; nothing was changed"
            )
        edits = {each.name: each.value for each in self.harvest.core.values()}
        try:
            self.view.check(edits | {name: value})
        except (Malformed, TooLarge, Usage) as error:
            raise ToolError(f"{error.what}; nothing was changed, so make it shorter or plainer") from error
        if why := self._unborne(value, [read, now, name]):
            self._refuse(f"core block {name}: {why}")
            raise ToolError(
                f"{why}; nothing was changed. Core memory takes what the person said, in such words"
            )
        self.harvest.core[name] = CoreEdit(name, read, value)
        return "will be replaced"

    def _unborne(self, value: str, kept: Sequence[str]) -> str:
        said = [turn.text for turn in self.turns if knowledge_core.is_persons(turn)]
        others = [turn.text for turn in self.turns if not knowledge_core.is_persons(turn)]
        return knowledge_core.find_ungrounded(value, kept, said, [*others, *self.shown])

    def _search(self, given: Mapping[str, Any]) -> str:
        try:
            hits = self.view.search(given["query"])
        except Usage as error:
            raise ToolError(error.what) from error
        self.shown += hits
        return "\n".join(hits) or "memory has nothing on this"

    def _blocks(self, given: Mapping[str, Any]) -> str:
        if self.blocks is None:
            there = {block.name: block for block in self.view.core()}
            known = {name.casefold() for name in there}
            self.blocks = there | {
                name: CoreBlock(name, "") for name in BEGINNINGS if name.casefold() not in known
            }
        values = {name: block.value for name, block in self.blocks.items()}
        values |= {name: edit.value for name, edit in self.harvest.core.items()}
        return self.view.clean(
            "\n\n".join(f"## {name}\n{value or '(empty)'}" for name, value in values.items())
        )
