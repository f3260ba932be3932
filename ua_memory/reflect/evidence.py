"""What one reflection has found: numbered pieces of memory, in three layers, each with where it stands.

The layers are asked from above: what the user curated (mental models), what was consolidated (observations,
each with its freshness), what was said (facts and notes). Pages are left out: they are written from the same
facts, and an answer that rested on one would only seem to have another proof.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING, Literal, cast

from ua_memory import markdown, statements, tokens
from ua_memory.errors import NotFound, UaMemoryError
from ua_memory.grounding.terms import terms
from ua_memory.recall.search import Answer, Filters, Hit
from ua_memory.records import Fact, MentalModel, Observation, Passage, Place, Record
from ua_memory.store import Store
from ua_memory.wording import counted

if TYPE_CHECKING:
    from ua_memory.reflect.beliefs import Believed

Layer = Literal["models", "observations", "facts"]
LAYERS: Mapping[Layer, tuple[str, ...]] = {
    "models": ("model",),
    "observations": ("observation",),
    "facts": ("fact", "passage", "core"),
}
"""The layers in the order in which they are asked, and the records that make them up."""
TITLES: Mapping[Layer, str] = {
    "models": "Mental models (curated by the owner)",
    "observations": "Observations (consolidated beliefs)",
    "facts": "Facts and notes (what was said)",
}
NEAR = 0.35
"""From which similarity a text is evidence that was found by its meaning alone. The nearest texts to a
question of which memory knows nothing lie at 0.15 to 0.3 (a month of somebody's logs, MiniLM)."""
COVERED = 0.8
"""The share of a question's words that a fresh mental model must have to stand for the layers below it."""
SINCE = 8
"""Facts on an observation that `read` shows beside its proofs."""
_LONGEST = 1200
"""Characters of one piece that are shown; `read` shows the rest."""

Find = Callable[[str, int, Filters], Answer]


@dataclass(frozen=True, slots=True)
class Piece:
    """One thing that was found. `number` is what an answer cites it by, the same all through a run.

    `day` is the ISO day it is about, `said` the one it was said on; `stale` says of a belief that newer
    things were said, or nothing for long. `proofs` are the ids of the facts behind it, itself for a fact.
    `beside` are further words of it that an answer may rest on: quotes, who, why, its names. `hearsay` tells
    that nobody of the house has said it.
    """

    number: int
    layer: Layer
    text: str
    place: Place
    id: str | None = None
    day: str = ""
    said: str = ""
    origin: str = ""
    stale: bool = False
    about: str = ""
    proofs: tuple[str, ...] = ()
    disputed: str = ""
    beside: tuple[str, ...] = ()
    record: Record | None = None
    hearsay: bool = False

    @property
    def citation(self) -> str:
        """`path#L5`."""
        return self.place.citation

    @property
    def words(self) -> list[str]:
        """Everything that an answer citing this may rest on."""
        return [self.text, self.day, self.said, self.citation, *self.beside]

    def line(self) -> str:
        """As a model and a person read it: number, what is known of it, text in one line."""
        flat = " ".join(self.text.split())
        flat = flat if len(flat) <= _LONGEST else f"{flat[:_LONGEST]} … (read {self.number} shows all)"
        return f"[{self.number}] {self.about}: {flat}"


class Found:
    """The pieces of one run, and the ways to more. `find` searches the bank; `clean` takes secrets out;
    `all_beliefs` are the observations with their freshness."""

    def __init__(
        self, store: Store, find: Find, clean: Callable[[str], str], today: date, filters: Filters,
        all_beliefs: Callable[[], Sequence[Believed]],
    ) -> None:  # fmt: skip
        self.pieces: dict[int, Piece] = {}
        self._store, self._find, self._clean, self._today, self._filters = store, find, clean, today, filters
        self._all_beliefs, self._beliefs = all_beliefs, cast("dict[Place, Believed] | None", None)
        self._known: dict[tuple[str, int], int] = {}
        self._files: dict[str, tuple[Record, ...]] = {}
        self.notes: dict[str, None] = {}
        """What searches said that they had to leave out."""

    def search(self, layer: Layer, query: str, limit: int, room: int) -> list[Piece]:
        """The best pieces of a layer for a query, at most `limit` and `room` tokens of them."""
        where = replace(self._filters, kinds=LAYERS[layer], retired=False)
        found: list[Piece] = []
        answer = self._find(query, limit, where)
        self.notes |= dict.fromkeys(answer.notes)
        for hit in filter(bears, answer.hits):
            piece = self._piece(layer, hit)
            room -= tokens.count(piece.text)
            if room < 0 and found:
                break
            found.append(self._numbered(piece))
        return found

    def around(self, number: int) -> list[Piece]:
        """What stands behind a piece or beside it: an observation's proofs and what was said of it since, the
        neighbours of a fact, the whole of a mental model."""
        piece = self.pieces[number]
        if isinstance(piece.record, Observation):
            proofs = [self._cited(proof.ref) for proof in piece.record.proofs]
            since = [self._made(fact, "facts") for fact in self._since(piece.record)[:SINCE]]
            return [*map(self._numbered, filter(None, proofs)), *map(self._numbered, since)]
        there = self._records(piece.place.path)
        if piece.layer == "models":
            return [self._of(record, "models") for record in there if isinstance(record, Passage)]
        at = next((n for n, one in enumerate(there) if one.place == piece.place), None)
        near = there[max(0, at - 2) : at + 3] if at is not None else ()
        return [self._of(one, "facts") for one in near if isinstance(one, Fact | Passage)]

    # -- pieces ------------------------------------------------------------------------------------------

    def _piece(self, layer: Layer, hit: Hit) -> Piece:
        item = hit.item
        record = self._at(item.path, item.line)
        if record is not None and not isinstance(record, MentalModel):
            made = self._made(record, layer)
            if item.untrusted and not made.hearsay:
                made = replace(made, hearsay=True, about=f"{made.about}, untrusted: {item.origin}")
            return replace(made, place=item.place, text=item.text)
        head = f"{layer[:-1]}, {item.date}" if item.date else layer[:-1]
        return Piece(
            0, layer, item.text, item.place, item.id, item.date, item.day or "", item.origin, about=head
        )

    def _numbered(self, piece: Piece) -> Piece:
        key = (piece.place.path, piece.place.line)
        number = self._known.setdefault(key, len(self._known) + 1)
        if number not in self.pieces:
            self.pieces[number] = replace(piece, number=number)
        return self.pieces[number]

    def _of(self, record: Record, layer: Layer) -> Piece:
        return self._numbered(self._made(record, layer))

    def _made(self, record: Record, layer: Layer) -> Piece:
        if isinstance(record, Observation):
            return self._observation(record)
        day = markdown.day_of(record.place.path) or ""
        if isinstance(record, Fact):
            more = (*(q.text for q in record.quotes), record.who, record.why, record.where, record.cause)
            about = (record.when or day)[:10]
            return Piece(
                0, "facts", self._clean(record.text), record.place, record.id, about, day, record.said_by,
                about=", ".join(filter(None, (about or "undated", record.said_by))), proofs=(_name(record),),
                disputed=record.flag or "", record=record,
                beside=tuple(map(self._clean, (*filter(None, more), *record.entities, *_trail(record)))),
                hearsay=record.untrusted,
            )  # fmt: skip
        text = self._clean(getattr(record, "text", "") or getattr(record, "value", ""))
        if layer == "models":
            return self._model(text, record)
        about = ", ".join(filter(None, (day, "note")))
        made = Piece(0, "facts", text, record.place, None, day, day, "person", about=about, record=record)
        return replace(made, proofs=(made.citation,), beside=_trail(record))

    def _observation(self, record: Observation) -> Piece:
        known = self._believed(record)
        newer = self._since(record)
        why = [f"{counted(len(newer), 'fact')} on it not considered yet"] if newer else []
        why += known.freshness.lost[:1] if known else []
        trend = known.trend if known else record.trend
        why += ["nothing new for long"] if trend == "stale" else []
        dates = " to ".join(dict.fromkeys(filter(None, (record.since, record.last))))
        count = len({proof.ref for proof in record.proofs})
        said = [f"stale: {', '.join(why)}" if why else "fresh", trend, counted(count, "proof"), dates]
        quotes = [proof.quote for proof in record.proofs if proof.quote]
        return Piece(
            0, "observations", self._clean(record.text), record.place, record.id, record.last or "",
            record.last or "", record.origin or "agent", bool(why),
            ", ".join(["observation", *dict.fromkeys(filter(None, said))]),
            tuple(dict.fromkeys(proof.ref for proof in record.proofs)), record.flag or "",
            tuple(map(self._clean, (*quotes, record.since or "", *record.entities, *_trail(record)))), record,
        )  # fmt: skip

    def _since(self, record: Observation) -> list[Fact]:
        """Facts on a belief that no run has considered, and that are none of its proofs; the newest first."""
        known, behind = self._believed(record), {proof.ref for proof in record.proofs}
        found = [fact for fact in known.freshness.newer if fact.ref not in behind] if known else []
        return sorted(found, key=lambda fact: markdown.day_of(fact.place.path) or "", reverse=True)

    def _believed(self, record: Observation) -> Believed | None:
        """What is known of an observation beside its lines; read once, and only where one was found."""
        if self._beliefs is None:
            self._beliefs = {one.observation.place: one for one in self._all_beliefs()}
        return self._beliefs.get(record.place)

    def _model(self, text: str, record: Record) -> Piece:
        """A passage of a mental model; its name and the day of its last change are said with it."""
        path = record.place.path
        models = [one for one in self._records(path) if isinstance(one, MentalModel)]
        name = models[0].name if models else path
        changed = self._changed(path)
        about = ", ".join(filter(None, (f"model “{name}”", f"changed {changed}" if changed else "")))
        return Piece(
            0, "models", text, record.place, None, changed, changed, "person", about=about,
            proofs=(path,), beside=(name, *_trail(record)), record=record,
        )  # fmt: skip

    def _changed(self, path: str) -> str:
        """The day a file was last changed, as the trail knows it; today where that is not committed yet."""
        try:
            done = self._store.history.log([path], limit=1)
        except UaMemoryError:
            return ""
        return done[0].when.date().isoformat() if done else self._today.isoformat()

    # -- records -----------------------------------------------------------------------------------------

    def _cited(self, block: str) -> Piece | None:
        """The fact that a proof names, if it still stands and holds."""
        try:
            found = statements.find(self._store, block)
        except NotFound:
            return None
        return self._made(found, "facts") if isinstance(found, Fact) and not found.retired else None

    def _records(self, path: str) -> tuple[Record, ...]:
        if path not in self._files:
            try:
                self._files[path] = markdown.parse(self._store.truth(path), path).records
            except (UaMemoryError, OSError):  # gone meanwhile, or not the bank's
                self._files[path] = ()
        return self._files[path]

    def _at(self, path: str, line: int) -> Record | None:
        return next((one for one in self._records(path) if one.place.line == line), None)


def bears(hit: Hit) -> bool:
    """Whether a hit is evidence: a word, a name or a day of the question led to it, or its meaning is near. A
    search always finds something; what nothing led to is no reason to answer."""
    if set(hit.arms) - {"semantic"}:
        return True
    return "semantic" in hit.arms and hit.arms["semantic"][1] >= NEAR


def covers(question: str, pieces: Sequence[Piece]) -> bool:
    """Whether these speak of nearly all that a question names."""
    asked = terms(question)
    said = terms(" ".join(word for piece in pieces for word in piece.words))
    return bool(asked) and len(asked & said) >= COVERED * len(asked)


def listing(pieces: Sequence[Piece], shown: set[int]) -> Iterator[str]:
    """A line for each piece; of those that were shown before only the number."""
    for piece in pieces:
        yield f"[{piece.number}] is shown above" if piece.number in shown else piece.line()


def _name(fact: Fact) -> str:
    return fact.ref or fact.place.citation


def _trail(record: Record) -> tuple[str, ...]:
    heading = getattr(record, "heading", None)
    return tuple(heading.trail) if heading else ()
