"""The steps of a chain, one kind of value each, and what does not hold in it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from ua_memory.errors import NotFound, ProblemsFound
from ua_memory.proofs import Break
from ua_memory.records import Place, Quote


@dataclass(frozen=True, slots=True)
class Written:
    """The commit that wrote a line last; None stands for one that no commit has yet."""

    revision: str
    author: str
    when: datetime
    op: str
    subject: str


@dataclass(frozen=True, slots=True)
class Session:
    """Where words come from: who said them (`origin`), through which client, in which session, on which day
    and at what time; `through` says how far that session has been read, `trail` what else is known."""

    origin: str
    client: str | None = None
    session: str | None = None
    day: str | None = None
    time: str | None = None
    trail: str | None = None
    through: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FactStep:
    """A fact: its text, the verbatim words it rests on with the turn they are from, and its session."""

    text: str
    id: str | None
    place: Place
    quotes: tuple[Quote, ...]
    session: Session
    written: Written | None
    retired: str | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """A proof: what is cited, with which words, and what stands there; or why it does not hold."""

    id: str
    quote: str
    step: FactStep | BeliefStep | None
    fault: Break | None = None


@dataclass(frozen=True, slots=True)
class BeliefStep:
    """An observation or an opinion, and its proofs."""

    record: str
    text: str
    id: str | None
    place: Place
    links: tuple[Link, ...]
    written: Written | None
    retired: str | None = None
    fault: Break | None = None


@dataclass(frozen=True, slots=True)
class SentenceStep:
    """A sentence of a page or of other prose, and what it cites."""

    text: str
    place: Place
    links: tuple[Link, ...]
    written: Written | None
    fault: Break | None = None


Step = SentenceStep | BeliefStep | FactStep


@dataclass(frozen=True, slots=True)
class Chain:
    """All that is said at a target, and why. `breaks` are those of all steps, in the order they are told."""

    target: str
    steps: tuple[Step, ...]
    breaks: tuple[Break, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 where all holds; 4 where something is nowhere; else 12."""
        causes = {one.cause for one in self.breaks}
        if causes & {"nowhere", "forgotten"}:
            return NotFound.exit_code
        return ProblemsFound.exit_code if causes else 0
