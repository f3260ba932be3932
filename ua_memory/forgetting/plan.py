"""What forgetting comes to: what goes, what is changed, and which lines of a person's are left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ua_memory.errors import ChangedOnDisk
from ua_memory.records import Fact, Observation, Opinion, Place, ref_of
from ua_memory.store import Draft
from ua_memory.tombstones import Burial

What = Literal["fact", "observation", "opinion", "entity", "sentence", "text"]

ASKED = "asked for"
ALONE = "rests on nothing else"
NAMES = "says what only that said"
SAME = "says the same"
CITES = "cites it"
QUOTES = "quotes it"
NEAR = "is near, and lacks a word"


@dataclass(frozen=True, slots=True)
class Piece:
    """Something in a file: what it is, where it stands, its text, and why it goes, changes or stays.

    `by_person` tells that a person wrote its lines.
    """

    what: What
    place: Place
    text: str
    why: str
    id: str | None = None
    by_person: bool = False


@dataclass(frozen=True, slots=True)
class Target:
    """What is asked to be forgotten: a record, or lines of a file that are none."""

    place: Place
    text: str
    record: Fact | Observation | Opinion | None = None
    what: What = "text"


@dataclass(frozen=True, slots=True)
class Plan:
    """What goes, what is changed, what of a person's is left, and the files before and after.

    `texts` must not be found anywhere afterwards; `also` neither, unless something that stays says so itself.
    """

    gone: tuple[Piece, ...] = ()
    revised: tuple[Piece, ...] = ()
    left: tuple[Piece, ...] = ()
    texts: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    files: Mapping[str, tuple[bytes, bytes | None]] = field(default_factory=dict)
    burials: tuple[Burial, ...] = ()

    def carry_out(self, draft: Draft) -> None:
        """Write the files as they are to be into an open revision. ChangedOnDisk."""
        for path, (before, after) in self.files.items():
            if draft.read(path) != before:
                raise ChangedOnDisk("it was saved meanwhile", where=path, mend="try again")
            if after is None:
                draft.delete(path)
            else:
                draft.write(path, after, restored=True)

    def without(self, files: Mapping[str, bytes]) -> dict[str, bytes]:
        """Files as they are to be. ChangedOnDisk where one is not as it was when this was worked out."""
        for path, (before, _) in self.files.items():
            if files.get(path) != before:
                raise ChangedOnDisk("it was saved meanwhile", where=path, mend="try again")
        after = {**files, **{path: data for path, (_, data) in self.files.items()}}
        return {path: data for path, data in after.items() if data is not None}

    @property
    def asked(self) -> tuple[Piece, ...]:
        """What was asked for, without what follows from it."""
        return tuple(piece for piece in self.gone if piece.why == ASKED)

    @property
    def ids(self) -> frozenset[str]:
        """The ids that go, as they are known in the whole bank."""
        return frozenset(ref_of(piece.place.path, piece.id) for piece in self.gone if piece.id)
