"""What goes along with what the other machine has forgotten: each side without it, as `forget` leaves a bank.

What was derived from it on one machine is nothing that the other could have let go of. So each side forgets
what the other has, before the two are merged.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import date

from ua_memory import markdown, statements
from ua_memory.forgetting import choosing
from ua_memory.forgetting.changing import Changing
from ua_memory.forgetting.derived import Deriving, Ours
from ua_memory.forgetting.forgetting import told
from ua_memory.forgetting.owners import Owners
from ua_memory.forgetting.plan import ASKED, Plan
from ua_memory.history import blob_id
from ua_memory.merge.burying import Dropped
from ua_memory.paths import is_truth
from ua_memory.records import Tombstone, written_id
from ua_memory.statements import Statement
from ua_memory.store import Draft, Store
from ua_memory.tombstones import PATH, Tombstones, bury, stones

Read = Callable[[str], bytes | None]


@dataclass(frozen=True, slots=True)
class Along:
    """What goes along on each side, `here` and `there`."""

    here: Plan = field(default_factory=Plan)
    there: Plan = field(default_factory=Plan)

    @property
    def paths(self) -> set[str]:
        """The files that it changes on either side."""
        return {*self.here.files, *self.there.files}

    @property
    def texts(self) -> tuple[str, ...]:
        """What went along here, and must not be found any more where nothing else says it."""
        return self.here.also

    def ids(self, files: Mapping[str, bytes | None]) -> set[str]:
        """The ids that go along with it, but for those that stand in the merged files all the same."""
        gone = {*self.here.ids, *self.there.ids}
        for path, data in files.items():
            if path != PATH and data and any(f"^{written_id(block)}".encode() in data for block in gone):
                records = markdown.parse(data, path).records
                gone -= {str(each.ref) for each in records if isinstance(each, Statement)}
        return gone

    def dropped(self, known: Collection[Dropped]) -> list[Dropped]:
        """What a person wrote of it, and facts that said the same: where they stood."""
        seen = {(each.path, each.line) for each in known}
        return [
            Dropped(piece.id or "", piece.place.path, piece.place.line, side)
            for side, plan in (("here", self.here), ("there", self.there))
            for piece in plan.gone
            if piece.why != ASKED and (piece.by_person or piece.what == "fact")
            if (piece.place.path, piece.place.line) not in seen
        ]

    def notes(self) -> list[str]:
        """What went along and was revised, in numbers."""
        gone = tuple(each for each in (*self.here.gone, *self.there.gone) if each.why != ASKED)
        both = Plan(gone, (*self.here.revised, *self.there.revised))
        if not both.gone and not both.revised:
            return []
        return [f"what rested on it went along: {told(both)}"]

    def buried(self, store: Store, draft: Draft) -> None:
        """Put stones on what went along, as `forget` does. A line without an id has the other's already."""
        gone = self.ids(draft.files)
        burials = [one for plan in (self.here, self.there) for one in plan.burials if one.id in gone]
        bury(store, draft, burials, store.now().date().isoformat())


def along(store: Store, fork: str | None, other: str, ours: Read, edited: Collection[str]) -> Along:
    """What each side loses with what the other has forgotten since both last met at `fork`. `ours` reads this
    machine's files, of which some are `edited` since its last revision."""
    history = store.history
    known = stones(history.read(fork, PATH)) if fork else {}
    here, there = stones(ours(PATH)), stones(history.read(other, PATH))
    head = history.head()
    mine = {block: stone for block, stone in there.items() if block not in here and block not in known}
    theirs = {block: stone for block, stone in here.items() if block not in there and block not in known}
    # Who has nothing of its own has derived nothing that the other did not see when it forgot.
    mine = {} if head and not edited and history.is_within(head, other) else mine
    found: dict[str, Plan] = {}
    old = history.blobs(rev=fork) if fork and (mine or theirs) else {}
    if mine and head:
        texts = dict(statements.texts(store))
        texts |= {path: ours(path) or b"" for path in {*edited} & texts.keys()}
        found["here"] = _plan(store, texts, mine, old, "HEAD")
    if theirs:
        names = {path: blob for path, blob in history.blobs(rev=other).items()
                 if is_truth(path) and path.endswith(".md")}  # fmt: skip
        read = history.read_all([(blob, "") for blob in names.values()])
        texts = {path: data for path, data in zip(names, read, strict=True) if data is not None}
        found["there"] = _plan(store, texts, theirs, old, other)
    return Along(**found)


def _plan(
    store: Store, texts: Mapping[str, bytes], new: Mapping[str, Tombstone], old: Mapping[str, str], rev: str
) -> Plan:
    fresh = {path for path, data in texts.items() if old.get(path) != blob_id(data)}
    ours, today = Owners(store, texts, rev).ours, store.now().date()
    return forgetting(texts, Tombstones(new, store.config.redact), fresh, ours, today)


def forgetting(
    texts: Mapping[str, bytes], forgotten: Tombstones, fresh: Collection[str], ours: Ours, today: date
) -> Plan:
    """A forgetting of what has these tombstones, by its id; in files that are `fresh` since both met also
    by what it says: of the others, who forgot it has seen and left what stands there."""
    marks, targets = [f"^{written_id(block)}".encode() for block in forgotten.stones], []
    for path, data in texts.items():
        if path == PATH or not (path in fresh or any(mark in data for mark in marks)):
            continue
        for record in markdown.parse(data, path).records:
            if isinstance(record, Statement) and (
                forgotten.buried(record) or (path in fresh and forgotten.forbid(record))
            ):
                targets.append(choosing.of(record))
    deriving = Deriving(
        texts, targets, ours, today, take=False, patterns=forgotten.redact, ids=forgotten.stones.keys()
    )
    return Changing(deriving).plan()
