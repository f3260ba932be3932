"""A dated conversation whose questions name the turns that hold the answer, and the bank made of it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Turn:
    """What one said in one go. `who` may be empty: a note that nobody is named for."""

    id: str
    who: str
    text: str

    @property
    def line(self) -> str:
        """The turn as a list item of a daily log."""
        text = " ".join(self.text.split())
        return f"- **{self.who}**: {text}" if self.who else f"- {text}"

    @property
    def tokens(self) -> int:
        """Its length in tokens, taken as four characters each: the same for whatever is compared."""
        return math.ceil(len(self.text + self.who) / 4)


@dataclass(frozen=True, slots=True)
class Session:
    """Turns in their order, begun at `when`. One that runs past midnight stands once a day, with one id."""

    id: str
    when: datetime
    turns: tuple[Turn, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, and the ids of the turns with the answer. `now` is when, if that is known.

    An adversarial question asks for what was not said; its evidence is what it is easily taken for.
    """

    text: str
    evidence: frozenset[str]
    category: str
    adversarial: bool = False
    now: datetime | None = None


@dataclass(frozen=True, slots=True)
class Dialogue:
    """One conversation with its questions; `unanswered` counts those that name no evidence."""

    name: str
    sessions: tuple[Session, ...]
    questions: tuple[Question, ...]
    unanswered: int = 0

    @property
    def turns(self) -> list[Turn]:
        return [turn for session in self.sessions for turn in session.turns]

    @property
    def session_of(self) -> dict[str, str]:
        """Turn id → session id."""
        return {turn.id: session.id for session in self.sessions for turn in session.turns}


def write_bank(dialogue: Dialogue, root: Path) -> Mapping[tuple[str, int], str]:
    """Write the conversation as a person would: a log a day, a heading a session, a list item a turn.

    Returns (path in the bank, line) → turn id.
    """
    days: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for session in dialogue.sessions:
        lines = days[session.when.date().isoformat()]
        lines += [(f"## {session.when:%H:%M}", ""), ("", "")]
        lines += [(turn.line, turn.id) for turn in session.turns]
        lines.append(("", ""))
    (root / "memory").mkdir(parents=True, exist_ok=True)
    (root / "MEMORY.md").write_text("# Memory\n", encoding="utf-8")
    where = {}
    for day, lines in days.items():
        path = f"memory/{day}.md"
        text = "\n".join([f"# {day}", "", *(line for line, _ in lines)]) + "\n"
        (root / path).write_text(text, encoding="utf-8", errors="replace")
        where.update({(path, number): turn for number, (_, turn) in enumerate(lines, start=3) if turn})
    return where
