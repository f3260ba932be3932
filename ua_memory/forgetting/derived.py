"""What was derived from what goes, followed through all files until nothing more follows."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date

from ua_memory import markdown, observations, proofs
from ua_memory.forgetting.plan import ALONE, ASKED, NAMES, SAME, Piece, Target, What
from ua_memory.forgetting.words import needles
from ua_memory.grounding import ungrounded
from ua_memory.records import Fact, Observation, Place, Proof, is_generated, written_id
from ua_memory.statements import Statement, new_id
from ua_memory.tombstones import PATH, Burial

Ours = Callable[[str, int, int], bool]
"""Whether a machine wrote these lines of a file last."""

_BLOCK = re.compile(r"\^([A-Za-z0-9-]+)")


class Deriving:
    """One forgetting while it is worked out. `texts` are all files; `ours` tells a machine's lines from a
    person's, of which only those go that are asked for, unless `take` says that they all do. `ids` are gone
    already, and what they said is `known` where that counts; without `strict` what rests on something else
    stays, whatever it names."""

    def __init__(
        self, texts: Mapping[str, bytes], targets: Sequence[Target], ours: Ours, today: date, *,
        take: bool, patterns: Mapping[str, str], ids: Collection[str] = (), strict: bool = True,
        known: Mapping[str, Statement] | None = None,
    ) -> None:  # fmt: skip
        self.texts, self.ours, self.today, self.take = texts, ours, today, take
        self.needles = needles((each.text for each in targets if each.what != "entity"), patterns)
        self.gone: dict[Place, Piece] = {}
        self.records: dict[Place, Statement] = {}
        self.ids: set[str] = set(ids)
        self.strict = strict
        self.also: list[str] = []
        """What went along: quotations, former wordings, texts of what was derived."""
        self._documents: dict[str, markdown.Document] = {}
        self._said: dict[str, Statement | None] = {**(known or {})}
        for target in targets:
            if target.record is not None:
                self._lose(target.record, ASKED)
            else:
                self.gone[target.place] = self._piece(target.what, target.place, target.text, ASKED)
        while self._follow():
            pass

    # -- what follows ----------------------------------------------------------------------------------

    def _follow(self) -> bool:
        """Let go of what rests on nothing else; whether there was any."""
        before = len(self.gone)
        for path in self.concerned():
            for record in self.document(path).records:
                if isinstance(record, Statement) and record.place not in self.gone:
                    why = self._reason(record)
                    if why:
                        self._lose(record, why)
        return len(self.gone) > before

    def _lose(self, record: Statement, why: str) -> None:
        self.gone[record.place] = self.piece(record, why)
        self.records[record.place] = record
        if record.id and record.ref:
            others = self._namesakes(record)
            self.ids |= {record.id} if not others else set()
            self.ids |= {record.ref} if record.ref not in {each.ref for each in others} else set()
        if isinstance(record, Fact):
            self.also += [quote.text for quote in record.quotes]
        if why != ASKED or not isinstance(record, Fact):
            self.also += proofs.sources(record)

    def _namesakes(self, record: Statement) -> list[Statement]:
        """What has its id, which a person typed, in other files: a link may mean that."""
        if is_generated(str(record.id)):
            return []
        mark, own = f"^{record.id}".encode(), record.place.path
        there = (path for path, data in self.texts.items() if path != own and mark in data)
        others = (each for path in there for each in self.document(path).records)
        return [each for each in others if isinstance(each, Statement) and each.id == record.id]

    def lost(self, link: Proof | markdown.Citation) -> bool:
        """Whether what a link means goes."""
        return link.ref in self.ids or link.id in self.ids

    def _reason(self, record: Statement) -> str:
        """Why a record goes with what goes already, '' where it stays."""
        if self.says(record.text) and (self.take or self.machine(record.place)):
            return SAME
        rests = proofs.proofs_of(record)
        lost = [proof.ref for proof in rests if self.lost(proof)]
        if not lost or (isinstance(record, Observation) and observations.by_person(record)):
            return ""
        kept = [proof.ref for proof in rests if not self.lost(proof)]
        if not kept:
            return ALONE
        return NAMES if self.names(record.text, kept, lost) else ""

    def burials(self) -> Iterator[Burial]:
        """What is put under a stone: all that had an id or was asked for. A sentence is known again by what
        it rested on, and a name is not forgotten by itself."""
        for place, piece in self.gone.items():
            record = self.records.get(place)
            if record is not None or (piece.what == "text" and (piece.why == ASKED or piece.by_person)):
                quotes = tuple(quote.text for quote in record.quotes) if isinstance(record, Fact) else ()
                yield Burial((record and record.ref) or new_id(), piece.text, quotes)

    # -- looking -----------------------------------------------------------------------------------------

    def concerned(self) -> list[str]:
        """The files that have what goes, cite it or say it."""
        own = {place.path for place in self.gone}
        marks = [f"^{written_id(block)}".encode() for block in self.ids]

        def is_concerned(path: str, data: bytes) -> bool:
            if path == PATH:
                return False
            cited = path in own or any(mark in data for mark in marks)
            return cited or any(needle.within(data) for needle in self.needles)

        return [path for path, data in self.texts.items() if is_concerned(path, data)]

    def document(self, path: str) -> markdown.Document:
        """A file, parsed."""
        if path not in self._documents:
            self._documents[path] = markdown.parse(self.texts[path], path)
        return self._documents[path]

    def machine(self, place: Place) -> bool:
        """Whether a machine wrote these lines last."""
        return self.ours(place.path, place.line, place.end)

    def cites(self, text: str) -> bool:
        """Whether a text names an id that goes."""
        named = (*_BLOCK.findall(text), *(each.ref for each in markdown.citations(text)))
        return any(block in self.ids for block in named)

    def says(self, text: str) -> bool:
        """Whether one of the texts stands in a text."""
        return any(needle.within(text) for needle in self.needles)

    def names(self, text: str, kept: Iterable[str], lost: Iterable[str]) -> bool:
        """Whether a text names something that what it rests on said, and of which only what goes did."""
        if not self.strict:
            return False
        left = self._evidence(kept)
        missing = ungrounded(text, left)
        return bool(missing) and len(ungrounded(text, [*left, *self._evidence(lost)])) < len(missing)

    def _evidence(self, ids: Iterable[str]) -> list[str]:
        found = [each for each in map(self.statement, ids) if each is not None]
        named = (name for each in found for name in each.entities)
        return [*(text for each in found for text in proofs.sources(each)), *named]

    def statement(self, block: str) -> Statement | None:
        """What has an id, None where nothing has."""
        if block not in self._said:
            mark = f"^{written_id(block)}".encode()
            there = (path for path, data in self.texts.items() if mark in data)
            records = (record for path in there for record in self.document(path).records)
            self._said[block] = next(
                (each for each in records if isinstance(each, Statement) and each.ref == block), None
            )
        return self._said[block]

    def piece(self, record: Statement, why: str) -> Piece:
        """A record as a piece of a plan."""
        return self._piece(kind_of(record), record.place, record.text, why, record.id)

    def _piece(self, what: What, place: Place, text: str, why: str, block: str | None = None) -> Piece:
        return Piece(what, place, text, why, block, not self.machine(place))


def kind_of(record: Statement) -> What:
    """What a record is called."""
    if isinstance(record, Fact):
        return "fact"
    return "observation" if isinstance(record, Observation) else "opinion"
