"""Facts that a model decides on within a day, at half the price: posted by one run, collected by a later one.

What was posted stands in `pending/` with the batch's name, so that any run that comes after, be it on another
day, finds it. All portions are asked at once: none sees what the others change. What of it cannot be taken
is reported, and nobody is asked a second time about it; facts without an answer are asked about as ever.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from ua_memory.errors import RequestRejected, Usage
from ua_memory.llm import Claude, Model, Post, Question, Reply
from ua_memory.llm import Usage as Tokens
from ua_memory.paths import make_private
from ua_memory.records import Fact
from ua_memory.reflect.considered import mark
from ua_memory.reflect.deciding import LONGEST_ANSWER, OFFERED, Deciding
from ua_memory.reflect.proposals import Belief
from ua_memory.reflect.stretches import Stretch, asked, opening
from ua_memory.store import swap

FILE = "consolidation-batch.json"
KEPT = timedelta(days=29)
"""For so long the API keeps the answers of a batch."""
DONE = timedelta(days=1)
"""After so long every batch has ended."""
GONE = Fact("", retired="gone or edited")
"""Stands where a fact was shown that does not say any more what it said then."""


@dataclass(frozen=True, slots=True)
class Shown:
    """One question: the facts that were shown, those of them to decide on, by their marks, and the names of
    the observations by label."""

    scope: str
    facts: tuple[str, ...]
    portion: tuple[str, ...]
    beliefs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Posted:
    """A batch that is under way, when it was posted, and what it asks."""

    post: Post
    at: datetime
    shown: tuple[Shown, ...]

    @property
    def marks(self) -> set[str]:
        """All facts to be decided on."""
        return {each for one in self.shown for each in one.portion}


class Box:
    """The file of a bank. One process at a time has it: who holds the claim of the run."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / FILE

    def there(self, now: datetime) -> Posted | None:
        """What is under way; None where nothing is, or so old that nobody has its answers any more."""
        try:
            row = json.loads(self.file.read_bytes())
            shown = tuple(
                Shown(one["scope"], tuple(one["facts"]), tuple(one["portion"]), dict(one["beliefs"]))
                for one in row["shown"]
            )
            found = Posted(Post.of(row["post"]), datetime.fromisoformat(row["at"]), shown)
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None
        return found if now - found.at < KEPT else None

    def keep(self, posted: Posted) -> None:
        """Note a batch; it is on the disk when this returns."""
        rows = [
            {"scope": s.scope, "facts": s.facts, "portion": s.portion, "beliefs": dict(s.beliefs)}
            for s in posted.shown
        ]
        row = {"post": posted.post.plain(), "at": posted.at.isoformat(), "shown": rows}
        make_private(self.file.parent)
        fresh = self.file.with_suffix(".new")
        fresh.unlink(missing_ok=True)
        swap.write(fresh, json.dumps(row).encode("utf-8", "replace"), mode=0o600)
        fresh.replace(self.file)
        swap.sync_folder(self.file.parent)

    def clear(self) -> None:
        """Let go of it."""
        self.file.unlink(missing_ok=True)


def post(box: Box, model: Model, stretches: Sequence[Stretch], at: datetime) -> Posted | None:
    """Post what there is to ask, as far as the limits bear. Usage for a model that takes no batches; what
    `Claude.post` raises."""
    each = [(stretch, portion) for stretch in stretches for portion in stretch.portions]
    if not each:
        return None
    questions = [
        Question(stretch.system, [*opening(stretch), asked(stretch, portion, {})], [OFFERED])
        for stretch, portion in each
    ]
    made = _claude(model).post(questions, purpose="consolidate", max_tokens=LONGEST_ANSWER)
    shown = tuple(
        Shown(
            stretch.scope, tuple(map(mark, stretch.facts)), tuple(map(mark, portion)),
            {label: belief.name for label, belief in stretch.beliefs.items()},
        )
        for stretch, portion in each[: made.count]
    )  # fmt: skip
    posted = Posted(made, at, shown)
    box.keep(posted)
    return posted


def collect(
    box: Box, posted: Posted, model: Model, decide: Callable[[Model], Deciding],
    facts: Mapping[str, Fact], beliefs: Mapping[str, Belief], have: set[str], now: datetime,
) -> bool:  # fmt: skip
    """Take in the answers to a batch, each durable at once; whether it had ended. `decide` makes a hand for
    a model, `facts` are those that wait, by mark, `beliefs` all there are, by name. What `have` names was
    taken in before a kill. RequestRejected where the endpoint knows no such batch: for a day, since the
    endpoint may be another by mistake; then there are no answers, or nothing would be asked for a month."""
    try:
        replies = _claude(model).collect(posted.post)
    except RequestRejected:
        if now - posted.at < DONE:
            raise
        replies = {}
    if replies is None:
        return False
    for number, one in enumerate(posted.shown):
        portion = tuple(facts[name] for name in one.portion if name in facts)
        if number in replies and portion and not have >= set(map(mark, portion)):
            labelled = {label: beliefs[name] for label, name in one.beliefs.items() if name in beliefs}
            shown = tuple(facts.get(name, GONE) for name in one.facts)
            said = _Said(posted.post.model, replies[number])
            decide(said).decided(Stretch(one.scope, labelled, (shown,), ""), portion)
    box.clear()
    return True


def _claude(model: Model) -> Claude:
    if not isinstance(model, Claude):
        raise Usage("this model takes no batches", mend="consolidate without --batch-api")
    return model


class _Said:
    """A model that has said what it has to say."""

    def __init__(self, name: str, reply: Reply) -> None:
        self.name = name
        self._reply: Reply | None = reply

    def ask(self, *_: Any, **__: Any) -> Reply:
        """The reply, and then nothing."""
        reply, self._reply = self._reply, None
        return reply or Reply("", (), "end_turn", Tokens(), ())
