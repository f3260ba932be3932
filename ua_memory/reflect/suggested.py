"""What memory would change in a mental model: a diff to read. No machine writes one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ua_memory.llm import Usage as Tokens
from ua_memory.markdown.lines import readable
from ua_memory.records import MentalModel
from ua_memory.reflect import briefing, extractive, writing
from ua_memory.reflect import grounds as proofs
from ua_memory.reflect.grounds import Evidence
from ua_memory.reflect.refresh import Refresher, Tell, preview_links
from ua_memory.reflect.sections import Sheet
from ua_memory.store.draft import difference

ASKED = 600
"""Characters of a mental model that recall is asked with."""
FEW = 10
"""Facts that are proposed where no model chooses."""
NO_LIMIT = 1_000_000


@dataclass(frozen=True, slots=True)
class Proposal:
    """A diff of a mental model that nobody has applied; `evidence` is how many facts it was held against."""

    model: MentalModel
    by: str
    diff: str
    evidence: int
    refused: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    usage: Tokens = field(default_factory=Tokens)


def propose(refresher: Refresher, model: MentalModel, tell: Tell | None = None) -> Proposal:
    """Work on a copy, and show what would be different. Raises what the model raises."""
    path = model.place.path
    data = refresher.store.read(path)
    sheet = Sheet(data, path, ["ours"] * (data.count(b"\n") + 1), NO_LIMIT)
    question = readable(f"{model.name}\n{model.body}")[:ASKED]
    evidence, notes = _evidence(refresher, question)
    written = writing.Written()
    if refresher.model is None:
        extractive.fill(sheet, evidence[:FEW], question, True)
    elif evidence:
        asked = (sheet, model.name, evidence, refresher.view.clean)
        if tell:
            tell(briefing.estimate(refresher.at or refresher.model, *asked))
        written = writing.write(refresher.model, *asked)
    new = sheet.data(preview_links(evidence))
    by = refresher.model.name if refresher.model else ""
    return Proposal(
        model, by, difference(path, data, new), len(evidence), tuple(written.refused), tuple(notes),
        written.usage,
    )  # fmt: skip


def _evidence(refresher: Refresher, question: str) -> tuple[Sequence[Evidence], Sequence[str]]:
    hits, notes = refresher.view.recall(question)
    records, _ = proofs.recalled(refresher.store, hits, "")
    return [
        Evidence(n, record, True, refresher.view.clean) for n, (record, _) in enumerate(records, 1)
    ], notes
