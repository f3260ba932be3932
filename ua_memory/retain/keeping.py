"""What was found worth keeping, written as one revision: facts, core edits and how far was read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import tzinfo

from ua_memory import core, entities, facts, statements, tombstones
from ua_memory.core import Replaced
from ua_memory.errors import ChangedOnDisk, Malformed, TooLarge, Usage
from ua_memory.facts import Equal, Said
from ua_memory.llm import Usage as Tokens
from ua_memory.records import Fact, Origin, Quote
from ua_memory.retain import scoped, through
from ua_memory.retain.candidate import Candidate
from ua_memory.retain.queue import Waiting
from ua_memory.retain.subagent import CoreEdit, Harvest
from ua_memory.store import Draft, Store
from ua_memory.transcripts.turns import Session
from ua_memory.wording import counted

_SAID_BY: Mapping[str, Origin] = {"person": "person", "assistant": "agent", "tool": "tool"}


@dataclass(frozen=True, slots=True)
class Flushed:
    """What a flush of one session kept. `by` names the model, and is empty where the speakers' own sentences
    were taken; `refused` is what a model proposed and nobody had said."""

    key: str
    client: str
    session: str
    turns: int
    by: str
    facts: tuple[Fact, ...] = ()
    seen_again: tuple[Fact, ...] = ()
    core: tuple[Replaced, ...] = ()
    refused: tuple[str, ...] = ()
    revision: str | None = None
    notes: tuple[str, ...] = ()
    redacted: Mapping[str, int] = field(default_factory=dict)
    usage: Tokens = field(default_factory=Tokens)


class Keeping:
    """One revision of one flush while it is being put together."""

    def __init__(self, store: Store, waiting: Waiting, zone: tzinfo | None, equal: Equal | None) -> None:
        self.store, self.waiting, self.zone, self.equal = store, waiting, zone, equal
        self.placed: list[tuple[Fact, str]] = []
        self.again: list[Fact] = []
        self.core: list[Replaced] = []
        self.notes: list[str] = []

    def write(self, harvest: Harvest, *, by: str, door: str) -> Flushed:
        """Write a harvest, all of it or, if any error is raised, nothing."""
        session, turns = self.waiting.session, self.waiting.turns
        last = through.mark(session, turns[-1].id)
        who = entities.settled(self.store)
        stones = tombstones.read(self.store)
        kept = [one for one in harvest.kept if not stones.has(one.text) and not stones.quoted(one.quote)]
        self.notes += tombstones.told(len(harvest.kept) - len(kept))
        with self.store.revision("flush", door=door, session=session.session) as draft:
            for candidate in sorted(kept, key=lambda c: (c.at is None, c.at and c.at.timestamp())):
                self._fact(draft, replace(candidate, entities=who.names(candidate.entities)))
            for edit in harvest.core.values():
                if stones.stands_in(edit.value):
                    self.notes.append(f"core block {edit.name} was left as it is: {tombstones.WHY}")
                else:
                    self._core(draft, edit)
            through.write(draft, self.placed, last)
            # Also for nothing at all: what was read once and found empty must not be read again.
            draft.even_if_empty = True
            size = self.waiting.size
            draft.trailers |= {through.TRAILER: [last], **({through.SIZE: [str(size)]} if size else {})}
            draft.facts = [f"^{fact.id}" for fact in (*(f for f, _ in self.placed), *self.again)]
            draft.subject = f"flush: {self._counted()} from {session.client}"
        if harvest.unstudied:
            self.notes.append(self._talked(by, {turn.id for turn in harvest.unstudied}))
        placed = tuple(self._now(fact) for fact, _ in self.placed)
        return Flushed(
            self.waiting.key, session.client, session.session, len(turns), by, placed, tuple(self.again),
            tuple(self.core), tuple(harvest.refused), draft.result.revision,
            (*self.notes, *draft.result.notes), draft.result.redacted, harvest.usage,
        )  # fmt: skip

    def _fact(self, draft: Draft, candidate: Candidate) -> None:
        session = self.waiting.session
        at = candidate.at.astimezone(self.zone) if candidate.at else self.store.now()
        tags = scoped.tags(session, self.store.config.observation_scopes)
        said = Said(at, session.client, "agent", through.short(session.session) or None, tags)
        try:
            fact, seen = facts.add(draft, _as_fact(candidate, session), said, self.equal)
        except (Usage, TooLarge) as error:
            self.notes.append(f"left out, since it cannot be written: {candidate.text[:80]} ({error.what})")
            return
        if seen:
            self.again.append(fact)
        else:
            self.placed.append((fact, through.mark(session, candidate.turn)))

    def _core(self, draft: Draft, edit: CoreEdit) -> None:
        """One core edit; one that cannot be made is left out and told, for the facts are worth keeping."""
        try:
            self.core.append(core.put(self.store, draft, edit.name, edit.value, expect=edit.read))
        except (ChangedOnDisk, Malformed, TooLarge, Usage) as error:
            self.notes.append(f"core block {edit.name} was left as it is: {error.what}")

    def _talked(self, by: str, unstudied: set[str]) -> str:
        return (
            f"{by} called no tool for {len(unstudied)} of {len(self.waiting.turns)} turns; the speakers' own "
            "sentences were kept of these (another UA_MEMORY_MODEL would do better)"
        )

    def _now(self, fact: Fact) -> Fact:
        """The fact where it stands after all, others and marks having come above it."""
        found = statements.find(self.store, str(fact.id), [fact.place.path])
        return found if isinstance(found, Fact) else fact

    def _counted(self) -> str:
        parts = [counted(len(self.placed), "fact")]
        parts += [f"{len(self.again)} seen again"] if self.again else []
        parts += [counted(len(self.core), "core block")] if self.core else []
        return ", ".join(parts)


def _as_fact(candidate: Candidate, session: Session) -> Fact:
    """A statement as a fact. Where it is its own quote, one line says who said it and in which turn. What was
    said in a group came from outside: anybody may have said it."""
    fact = Fact(
        candidate.text,
        kind=candidate.kind,
        when=candidate.when,
        entities=candidate.entities,
        tags=candidate.tags,
    )
    source = f"turn {through.short(candidate.turn)}"
    if candidate.text.split() == candidate.quote.split():
        return replace(fact, origin="web" if session.group else _SAID_BY[candidate.who], trail=source)
    # In other words it is the agent's, as its heading says; what it had from a tool alone stays the tool's.
    origin: Origin | None = "web" if session.group else "tool" if candidate.who == "tool" else None
    return replace(fact, quotes=(Quote(candidate.quote, source),), origin=origin)
