"""What a page rests on: the facts and observations that recall finds for its question, and those it cites."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from ua_memory import grounding, markdown, statements
from ua_memory.errors import NotFound
from ua_memory.records import Fact, Observation
from ua_memory.statements import Statement
from ua_memory.store import Draft, Store

KINDS = ("fact", "observation")
"""What recall is asked for: pages never read pages, nor mental models, nor opinions."""
MOST = 40
"""Pieces of evidence that recall brings to one page."""
WEAKEST = 0.2
"""The score below which what recall finds is about something else, mostly."""
PASSED, FAINTEST = 120, WEAKEST / 2
"""So much is looked at, and down to which score: what lies below the two above is passed over, and is no news
when other facts have lifted it a little."""

Clean = Callable[[str], str]
Recalled = tuple[Sequence[Any], Sequence[str]]
"""What a search found, and its notes of what it had to leave out."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A fact or observation, numbered as the model reads it. `recalled` tells what the question finds from
    what only the page cites; `clean` takes the secrets of people's own lines out of what is shown."""

    number: int
    record: Fact | Observation
    recalled: bool
    clean: Clean
    news: str = ""
    """`new`, `edited` or `left out before`, where that is so since the page was refreshed."""
    score: float = 0.0
    """How near it is to the question, as recall says."""

    @property
    def name(self) -> str:
        """`^id`, or `path#texthash` of a line without an id."""
        return name_of(self.record)

    @property
    def digest(self) -> str:
        return digest(self.record)

    @property
    def day(self) -> str:
        """The day it is about, else was said; '' where nobody knows."""
        if isinstance(self.record, Observation):
            return self.record.last or self.record.since or ""
        return self.record.when or markdown.day_of(self.record.place.path) or ""

    @property
    def text(self) -> str:
        """What it says, on one line."""
        return self.clean(" ".join(self.record.text.split()))

    @property
    def shown(self) -> str:
        """One line for the model."""
        record = self.record
        who = record.said_by if isinstance(record, Fact) else f"observation, {len(record.proofs)} proofs"
        more = [f"{key}: {self.clean(value)}" for key, value in _details(record)]
        news = f", {self.news}" if self.news else ""
        return f"[{self.number}] {self.day or 'no day'} ({who}{news}) " + " | ".join([self.text, *more])

    @property
    def words(self) -> str:
        """All that a sentence which cites it may name."""
        record = self.record
        more = [value for _, value in _details(record)]
        return self.clean("\n".join([record.text, self.day, *more, *record.entities, *record.tags]))


def _details(record: Fact | Observation) -> list[tuple[str, str]]:
    if isinstance(record, Observation):
        pairs = [("since", record.since), ("last", record.last), ("trend", record.trend)]
        pairs += [("quote", proof.quote) for proof in record.proofs[:3]]
    else:
        pairs = [(key, getattr(record, key)) for key in ("where", "who", "why", "cause", "flag")]
        pairs += [("quote", quote.text) for quote in record.quotes]
    return [(key, " ".join(value.split())) for key, value in pairs if value]


def name_of(record: Fact | Observation) -> str:
    """`^id`, or `path#texthash` of a line without an id."""
    return f"^{record.ref}" if record.ref else f"{record.place.path}#{markdown.texthash(record.text)}"


def digest(record: Statement) -> str:
    """A short hash of what a statement says; an id that was added to its line changes nothing."""
    keys = ("when", "where", "who", "why", "cause")
    parts = [record.text, *(str(getattr(record, key, None) or "") for key in keys)]
    return markdown.texthash("\0".join(parts))[:8]


Records = list[Fact | Observation]
Scored = list[tuple[Fact | Observation, float]]


def recalled(store: Store, hits: Iterable[Any], own: str) -> tuple[Scored, Records]:
    """(the statements behind a search's hits with their scores, best first; those passed over): none that is
    retired, lies outside the bank, was learnt from the page itself, whose link is `own`, or is nobody's
    of the house."""
    files: dict[str, Mapping[int, Fact | Observation]] = {}
    found: Scored = []
    passed: Records = []
    for hit in hits:
        item = hit.item
        if item.path.startswith("/"):
            continue
        if item.path not in files:
            records = markdown.parse(store.truth(item.path), item.path).records
            files[item.path] = {r.place.line: r for r in records if isinstance(r, (Fact, Observation))}
        record = files[item.path].get(item.line)
        if record is None or record.retired or (isinstance(record, Observation) and not record.id):
            continue
        if item.untrusted:
            continue
        if isinstance(record, Fact) and record.trail == own:
            continue
        if hit.score >= WEAKEST and len(found) < MOST:
            found.append((record, hit.score))
        else:
            passed.append(record)
    return found, passed


def living(find: Callable[[str], Statement], block: str) -> Fact | Observation | None:
    """What an id stands for, None where that is gone, retired, or said by nobody of the house."""
    try:
        found = find(f"^{block}")
    except NotFound:
        return None
    if statements.hearsay(found, find):
        return None
    return found if isinstance(found, (Fact, Observation)) and not found.retired else None


def unsupported(text: str, cited: Sequence[Evidence]) -> tuple[str, ...]:
    """The names, numbers and dates of a sentence that none of the evidence has; each of its days may be the
    one that "yesterday" is said on."""
    pieces = [each.words for each in cited]
    missing = grounding.ungrounded(text, pieces)
    for each in cited if missing else ():
        try:
            said = date.fromisoformat(each.day[:10])
        except ValueError:
            continue
        missing = min(missing, grounding.ungrounded(text, pieces, said), key=len)
    return missing


def linked(draft: Draft, one: Evidence) -> str:
    """The link to a piece of evidence, which is given an id if it has none. Malformed if it has changed."""
    if isinstance(one.record, Fact):
        fact = statements.cited(draft, one.record)
        return markdown.link_to(draft.link_name(fact.place.path), str(fact.id))
    return markdown.link_to(draft.link_name(one.record.place.path), str(one.record.id))
