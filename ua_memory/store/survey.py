"""One look at all truth files: which there are, which differ from the trail, which are held back.

While nothing changes, this is one `stat` a file and the comparison of one digest, and not even that where a
witness has heard of no change. What it remembers (the proof in `cache/survey-2`, the blob ids in
`cache/blobs-2`) may be deleted at any moment.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from ua_memory.history import History
from ua_memory.paths import Bank
from ua_memory.store import pending
from ua_memory.store.proof import FileStat
from ua_memory.store.sight import Sight, carried, whole
from ua_memory.store.witness import Witness


@dataclass(frozen=True)
class Survey:
    """What lies in the bank. `proof` names the state of all files; it is empty while one of them may change
    again without a trace and nobody would hear of it."""

    sight: Sight
    proof: str = ""

    @property
    def changed(self) -> Mapping[str, int]:
        """The paths that differ from the trail (gone ones too)."""
        return self.sight.seen.changed

    @property
    def held(self) -> Mapping[str, str]:
        """{path: the trail's blob id} of those whose facts disappeared all at once."""
        return self.sight.seen.held

    @cached_property
    def files(self) -> tuple[FileStat, ...]:
        """The files that may be searched, by path: those on disk, with the trail's where they are held."""
        shown = [f for f in self.sight.files if f.path not in self.held]
        shown += [FileStat(path, 0, 0, 0, int(blob, 16)) for path, blob in self.held.items()]
        return tuple(sorted(shown, key=lambda f: f.path))

    def changed_at(self, path: str) -> int:
        """When a changed path was last changed, in ns since the epoch; if it is gone, its folder."""
        return self.changed.get(path, 0)

    def touched(self, proof: str) -> frozenset[str] | None:
        """The paths of which something may be another since the state that an earlier proof names; None where
        that is not known."""
        return self.sight.since.get(proof)

    def some(self, paths: Iterable[str]) -> tuple[FileStat, ...]:
        """Those of the files that have these paths; quick where they are few that were touched."""
        known = self.sight.blobs or {}
        return tuple(FileStat(path, *known[path][:4]) for path in sorted(paths))

    @cached_property
    def passing(self) -> frozenset[str]:
        """The paths of files that may change again without a trace, and will be looked at again."""
        return frozenset(os.fsdecode(name).removeprefix("./") for name in self.sight.open)


def survey(bank: Bank, history: History, few: int, witness: Witness[Sight] | None = None) -> Survey:
    """Compare disk and trail. Before the first revision nothing differs and nothing is held.

    With a `witness` who has heard of no change, the files are not looked at again; of changes to some
    files, only those.
    """
    waiting = pending.keys(bank.pending)
    head = " ".join([history.head() or "", *waiting])
    at = witness.marks() if witness else None
    last, heard = witness.last(at) if witness else (None, None)
    sight: Sight | None = None
    if witness and last and heard is not None and last.seen.few == few:
        stands = last.seen.head == head and not heard and not last.open
        witness.spared += stands
        sight = last if stands else carried(bank, history, last, head, heard)
    sight = sight or whole(bank, history, few, head, waiting, last)
    if witness:
        witness.keep(sight, at)
    if sight.trail is not None:
        history.known = (sight.seen.head, sight.trail)
    return Survey(sight, _named(sight) if sight.seen.stamp or at is not None else "")


def _named(sight: Sight) -> str:
    """The state's name: the files by their stamp, and the trail's content of those that are held."""
    return " ".join([sight.name, *sight.seen.held.values()])
