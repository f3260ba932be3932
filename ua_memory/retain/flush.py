"""The flush: a dying conversation goes in; facts, core edits and one commit come out.

Turns wait in the queue first, so that whatever goes wrong afterwards loses nothing. A model studies them
in stretches that fit its window, or, without one, the speakers' own sentences are kept. All of it is
written in one revision whose `Through` says how far the session has been read; then the turns are let go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import tzinfo

from ua_memory import core, facts, markdown, tokens
from ua_memory.core import Replaced
from ua_memory.errors import ChangedOnDisk, TooLarge, Usage
from ua_memory.facts import Equal, Said
from ua_memory.llm import Model
from ua_memory.llm import Usage as Tokens
from ua_memory.records import Fact, Quote
from ua_memory.retain import through
from ua_memory.retain.candidate import Candidate
from ua_memory.retain.extract import extract
from ua_memory.retain.queue import Queue, Waiting
from ua_memory.retain.subagent import CoreEdit, Harvest, View, study
from ua_memory.store import Draft, Store
from ua_memory.transcripts.turns import Session, Turn

AGAIN_AFTER = 20_000
"""After a flush, so many new tokens of context make the next one due."""
OVERLAP = 4
"""Turns that two stretches of a long transcript share, so that no statement loses its neighbours."""


@dataclass(frozen=True, slots=True)
class Due:
    """Whether a session's size calls for a flush: `size` tokens now, fires at `threshold`."""

    fires: bool
    size: int
    threshold: int

    def __str__(self) -> str:
        return f"{self.size:,} tokens, flushes at {self.threshold:,}"


@dataclass(frozen=True, slots=True)
class Flushed:
    """What a flush kept. `mode` is model or extractive; `refused` is what was proposed and not kept as proposed."""

    mode: str
    session: Session
    turns: int
    facts: tuple[Fact, ...] = ()
    seen_again: tuple[Fact, ...] = ()
    core: tuple[Replaced, ...] = ()
    refused: tuple[str, ...] = ()
    revision: str | None = None
    notes: tuple[str, ...] = ()
    usage: Tokens = field(default_factory=Tokens)


def due(size: int, last: int | None, threshold: int) -> Due:
    """At the threshold, then every 20,000 new tokens; a context that shrank since was compacted and counts anew."""
    at = threshold if last is None or last > size else max(threshold, last + AGAIN_AFTER)
    return Due(size >= at, size, at)


def propose(waiting: Waiting, *, model: Model | None, view: View, zone: tzinfo | None, window: int) -> Harvest:
    """What is worth keeping of the turns, by the model or, without one, by extraction. Writes nothing."""
    if model is None:
        return Harvest(kept=extract(waiting.turns))
    whole = Harvest()
    for stretch in stretches(waiting.turns, window):
        part = study(model, stretch, view, zone)
        known = {(c.text.casefold(), c.turn) for c in whole.kept}
        whole.kept += [c for c in part.kept if (c.text.casefold(), c.turn) not in known]
        whole.core |= part.core
        whole.refused += part.refused
        whole.usage += part.usage
    return whole


def stretches(turns: Sequence[Turn], window: int) -> Iterator[Sequence[Turn]]:
    """The turns in runs of at most `window` tokens, each beginning with the last turns of the one before."""
    start, used = 0, 0
    for n, turn in enumerate(turns):
        size = tokens.count(turn.text) + 12
        if used + size > window and n > start:
            yield turns[start:n]
            start = max(start + 1, n - OVERLAP)
            used = sum(tokens.count(t.text) + 12 for t in turns[start:n])
        used += size
    if start < len(turns):
        yield turns[start:]


def keep(
    store: Store, queue: Queue, waiting: Waiting, harvest: Harvest, *, mode: str, door: str, equal: Equal | None,
    zone: tzinfo | None, size: int | None = None,
) -> Flushed:  # fmt: skip
    """Write a harvest as one revision, then let the turns go. Nothing is written if any part of it cannot be."""
    session, last = waiting.session, waiting.turns[-1]
    placed: list[Fact] = []
    again: list[Fact] = []
    replaced: list[Replaced] = []
    notes: list[str] = []
    with store.revision("flush", door=door, session=session.session or None) as draft:
        for candidate in sorted(harvest.kept, key=lambda c: (c.at is None, c.at)):
            fact, seen = facts.add(draft, _fact(candidate, zone), _said(store, session, candidate, zone), equal)
            (again if seen else placed).append(fact)
        for edit in harvest.core.values():
            notes += _replace(store, draft, edit, replaced)
        mark = through.mark(session, last.id)
        if placed:
            _write_mark(draft, placed[-1], mark)
        draft.even_if_empty = True
        draft.trailers |= {through.TRAILER: [mark], **({through.SIZE: [str(size)]} if size else {})}
        draft.facts = [f"^{fact.id}" for fact in (*placed, *again)]
        draft.subject = f"flush: {_counted(placed, again, replaced)} from {session.client}"
    queue.taken(waiting.key, {turn.id for turn in waiting.turns})
    return Flushed(
        mode, session, len(waiting.turns), tuple(placed), tuple(again), tuple(replaced), tuple(harvest.refused),
        draft.result.revision, (*notes, *draft.result.notes), harvest.usage,
    )  # fmt: skip


def _fact(candidate: Candidate, zone: tzinfo | None) -> Fact:
    """A statement as a fact. Where it is its own quote, one line of origin says who said it and in which turn."""
    own_words = " ".join(candidate.text.split()) == " ".join(candidate.quote.split())
    fact = Fact(candidate.text, kind=candidate.kind, when=candidate.when, entities=candidate.entities, tags=candidate.tags)
    if own_words and candidate.who == "person":
        return replace(fact, origin="person", trail=f"turn {candidate.turn}")
    if own_words:
        return replace(fact, origin="agent", trail=f"turn {candidate.turn}")
    return replace(fact, quotes=(Quote(candidate.quote, f"turn {candidate.turn}"),))


def _said(store: Store, session: Session, candidate: Candidate, zone: tzinfo | None) -> Said:
    at = candidate.at.astimezone(zone) if candidate.at else store.now()
    return Said(at, session.client, "agent", session.session or None)


def _replace(store: Store, draft: Draft, edit: CoreEdit, replaced: list[Replaced]) -> list[str]:
    """Put one core edit into the draft; one that cannot be is left out and told, for the facts are worth keeping."""
    try:
        replaced.append(core.put(store, draft, edit.name, edit.value, expect=edit.read))
    except (ChangedOnDisk, TooLarge, Usage) as error:
        return [f"core block {edit.name} was left as it is: {error.what}"]
    return []


def _write_mark(draft: Draft, fact: Fact, mark: str) -> None:
    """Stand the mark right under the heading that the fact stands under."""
    path = fact.place.path
    data = draft.read(path)
    lines = markdown.parse(data, path).lines
    row = next((n for n in range(fact.place.line - 1, 0, -1) if re.match(r"## ", lines[n - 1])), None)
    if row is not None:
        draft.write(path, markdown.insert_after(data, row, [markdown.through_line(mark)]))


def _counted(placed: Sequence[Fact], again: Sequence[Fact], replaced: Sequence[Replaced]) -> str:
    parts = [f"{len(placed)} fact{'' if len(placed) == 1 else 's'}"]
    parts += [f"{len(again)} seen again"] if again else []
    parts += [f"{len(replaced)} core block{'' if len(replaced) == 1 else 's'}"] if replaced else []
    return ", ".join(parts)
