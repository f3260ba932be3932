"""The files after it: without what goes, with what stays changed where it cited or quoted it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ua_memory import markdown, observations, proofs
from ua_memory.forgetting.derived import Deriving
from ua_memory.forgetting.edits import Edits
from ua_memory.forgetting.plan import ALONE, ASKED, CITES, QUOTES, Piece, Plan
from ua_memory.forgetting.prose import without
from ua_memory.markdown.blocks import Shape, scan
from ua_memory.records import Entity, Fact, Observation, Opinion, Place, Proof, Tombstone
from ua_memory.statements import Statement

_META = re.compile(r"\s+[-*+]\s+[a-z]+:\s")


class Changing:
    """The files of one forgetting while they are changed, and what is to be told of it."""

    def __init__(self, deriving: Deriving) -> None:
        self.deriving = deriving
        self.sentences: dict[Place, Piece] = {}
        self.revised: list[Piece] = []
        self.left: list[Piece] = []

    def plan(self) -> Plan:
        """All of it."""
        deriving = self.deriving
        edits = [self._edited(path) for path in deriving.concerned()]
        changed = {edit.path: (edit.data, edit.result()) for edit in edits if edit.changed}
        gone = [*deriving.gone.values(), *self.sentences.values()]
        also = [*deriving.also, *(piece.text for piece in self.sentences.values())]
        return Plan(
            tuple(sorted(gone, key=_order)), tuple(sorted(self.revised, key=_order)),
            tuple(sorted(self.left, key=_order)), tuple(n.text for n in deriving.needles if not n.secret),
            tuple(dict.fromkeys(also)), changed, tuple(deriving.burials()),
        )  # fmt: skip

    def _edited(self, path: str) -> Edits:
        deriving = self.deriving
        edits = Edits(path, deriving.texts[path], deriving.document(path))
        taken: set[int] = set()
        for record in edits.document.records:
            if isinstance(record, (Fact, Observation, Opinion, Entity, Tombstone)):
                taken.update(range(record.place.line, record.place.end + 1))
        for place in (place for place in deriving.gone if place.path == path):
            edits.drop(place.line, place.end)
            taken.update(range(place.line, place.end + 1))
        for record in edits.document.records:
            if isinstance(record, Statement) and record.place not in deriving.gone:
                self._revise(edits, record)
        self._prose(edits, taken)
        return edits

    # -- records that stay -------------------------------------------------------------------------------

    def _revise(self, edits: Edits, record: Statement) -> None:
        place = record.place
        lines = "\n".join(edits.document.lines[place.line - 1 : place.end])
        quoted, cited = self.deriving.says(lines), self.deriving.cites(lines)
        if not quoted and not cited:
            return
        if isinstance(record, Fact):
            self._revise_fact(edits, record)
            return
        new = self._without(record)
        if new != record:
            edits.replace(place, markdown.show(new))
            self.revised.append(self.deriving.piece(record, CITES if cited else QUOTES))
        elif quoted:
            self.left.append(self.deriving.piece(record, QUOTES))

    def _revise_fact(self, edits: Edits, fact: Fact) -> None:
        """A fact that stays loses the lines of its metadata that cite what goes, or have its words."""
        deriving = self.deriving
        lost, stay = "", ""
        for n in range(fact.place.line, fact.place.end + 1):
            line = edits.document.lines[n - 1]
            why = QUOTES if deriving.says(line) else CITES if deriving.cites(line) else ""
            if not why:
                continue
            meta = n > fact.place.line and _META.match(line)
            if meta and (deriving.take or deriving.ours(edits.path, n, n)):
                edits.drop(n, n)
                lost = lost or why
            else:
                stay = stay or why
        if lost:
            self.revised.append(deriving.piece(fact, lost))
        if stay:
            self.left.append(deriving.piece(fact, stay))

    def _without(self, record: Observation | Opinion) -> Observation | Opinion:
        """A belief without the proofs that go, and without what they brought along."""
        deriving = self.deriving
        rests = proofs.proofs_of(record)
        kept = tuple(self._unquoted(proof) for proof in rests if not deriving.lost(proof))
        lost = [proof.ref for proof in rests if deriving.lost(proof)]
        names = self._brought(record.entities, "entities", lost, kept, record.text)
        tags = self._brought(record.tags, "tags", lost, kept, record.text)
        if isinstance(record, Opinion):
            return replace(record, because=kept, entities=names, tags=tags)
        stay = [proof.ref for proof in kept]
        was = tuple(
            each
            for each in record.was
            if not deriving.says(each.text) and not (lost and deriving.names(each.text, stay, lost))
        )
        new = replace(record, proofs=kept, was=was, entities=names, tags=tags)
        if not lost:
            return new
        facts = {p.ref: fact for p in kept if isinstance(fact := deriving.statement(p.ref), Fact)}
        days = observations.days_of(new, facts)
        trend = observations.trend(days, deriving.today) if days and deriving.strict else record.trend
        first, last = (days[0], days[-1]) if days else (None, None)
        return replace(new, since=first, last=last, trend=trend or None)

    def _unquoted(self, proof: Proof) -> Proof:
        return replace(proof, quote="") if proof.quote and self.deriving.says(proof.quote) else proof

    def _brought(
        self, there: Sequence[str], key: str, lost: Iterable[str], kept: Sequence[Proof], text: str
    ) -> tuple[str, ...]:
        """The names or tags of a belief without those that only what goes has brought along."""

        def of(ids: Iterable[str]) -> set[str]:
            found = filter(None, map(self.deriving.statement, ids))
            return {each.casefold() for record in found for each in getattr(record, key)}

        gone = of(lost) - of(proof.ref for proof in kept)
        return tuple(one for one in there if one.casefold() not in gone or one.casefold() in text.casefold())

    # -- prose -------------------------------------------------------------------------------------------

    def _prose(self, edits: Edits, taken: set[int]) -> None:
        """Sentences of pages, core memory and notes that are no records."""
        deriving, document = self.deriving, edits.document
        for block in scan(document.lines, document.front_end):
            place = Place(edits.path, block.start + 1, block.end)
            text = "\n".join(document.lines[block.start : block.end])
            said, cites = deriving.says(text), deriving.cites(text)
            if taken.intersection(range(place.line, place.end + 1)) or not (said or cites):
                continue
            if not deriving.machine(place) and not (said and deriving.take):
                self.left.append(Piece("text", place, text, QUOTES if said else CITES, by_person=True))
            elif block.shape in (Shape.PARAGRAPH, Shape.ITEM):
                self._shorten(edits, place, text)
            else:
                edits.drop(place.line, place.end)
                self._sentence(place, text)
        for n, line in enumerate(document.lines[: document.front_end], 1):
            if deriving.says(line):
                self.left.append(Piece("text", Place(edits.path, n, n), line, QUOTES, by_person=True))

    def _shorten(self, edits: Edits, place: Place, text: str) -> None:
        deriving = self.deriving
        cut = without(
            text, deriving.ids, deriving.needles, lambda said, rest: deriving.names(said, rest, deriving.ids)
        )
        if cut.gone and not cut.text:
            edits.drop(place.line, place.end)
        elif cut.text != text:
            edits.replace(place, cut.text)
        for said in cut.gone:
            self._sentence(place, said)
        self.revised += [Piece("sentence", place, said, CITES) for said in cut.revised]

    def _sentence(self, place: Place, text: str) -> None:
        why = QUOTES if self.deriving.says(text) else ALONE
        if there := self.sentences.get(place):  # a second one of one paragraph
            text = f"{there.text} {text}"
        person = not self.deriving.machine(place)
        self.sentences[place] = Piece("sentence", place, text, why, by_person=person)


def _order(piece: Piece) -> tuple[bool, str, int]:
    return piece.why != ASKED, piece.place.path, piece.place.line
