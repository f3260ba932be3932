"""A purge on one machine, and the others: who has the history from before it follows, who purged carries what
the others pushed meanwhile over to the new one.

Nothing is believed: every revision that the remote had is held against what it is said to have become, and
what no record of a purge covers is refused before anything is changed. What was here before lies in a bundle
afterwards.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ua_memory import markdown, statements
from ua_memory.errors import Conflict, GitFailed, StillThere
from ua_memory.forgetting import choosing, purging, recorded, searching, waiting
from ua_memory.forgetting.changing import Changing
from ua_memory.forgetting.derived import Deriving
from ua_memory.forgetting.owners import Owners
from ua_memory.forgetting.recorded import Records
from ua_memory.forgetting.searching import Searched
from ua_memory.forgetting.words import Needle
from ua_memory.history import rewriting
from ua_memory.history.kept import unmarked
from ua_memory.history.replaying import Quarantine, hand_over, nodes, trees
from ua_memory.merge.burying import Dropped
from ua_memory.merge.joining import Cleaned, Joined, join
from ua_memory.merge.rewritten import MEND, Pairing, needles, onward, pair
from ua_memory.records import written_id
from ua_memory.statements import Statement
from ua_memory.store import Store, swap
from ua_memory.tombstones import PURGED

if TYPE_CHECKING:
    from ua_memory.index.sync import Index

WORK = "sync-work"


@dataclass(frozen=True, slots=True)
class Followed:
    """A purge of another machine that was done here, too: the ids, where this history stood and stands, the
    bundle with what it was, the search that proves it, and what still leads to the old history."""

    ids: tuple[str, ...]
    old: str
    new: str = ""
    backup: str = ""
    proof: Searched = field(default_factory=Searched)
    holding: tuple[str, ...] = ()


@dataclass(frozen=True)
class Following:
    """What it takes to follow a purge: the bank, its index, and where the old history may be put."""

    store: Store
    index: Callable[[], Index]
    backup: Path | None
    door: str

    # -- a remote that was rewritten ---------------------------------------------------------------------

    def follow(self, name: str, other: str, subject: str, *, trial: bool) -> tuple[Joined, Followed]:
        """Join a history that was rewritten by a purge, and take what it lacks out of this one. Conflict
        where it lacks anything else, StillThere where a person's lines have the words; nothing is changed
        then."""
        history = self.store.history
        head, agreed = str(history.head()), history.agreed(name)
        records = self._records(other, agreed)
        pairing = pair(history, head, other, agreed, records)
        sought = needles(history, pairing, records, agreed)
        if trial:
            base = next(
                (pairing.mapped[n.id] for n in reversed(pairing.walked) if n.id in pairing.mapped), None
            )
            cleaned = self._cleaned(records, sought, base)
            return join(
                self.store, other, door=self.door, subject=subject, look=True, cleaned=cleaned
            ), Followed(tuple(sorted(records.ids)), head)
        mapped = onward(history, pairing, records, sought)
        cleaned = self._cleaned(records, sought, history.fork(mapped.get(head, head), other))
        backup = self._backed_up()
        done = join(self.store, other, door=self.door, subject=subject, cleaned=cleaned)
        self.store.require_settled()  # what is not joined yet is not to be let go of
        went = (replace(each, revision=str(backup)) for each in cleaned.went)
        done = replace(done, merge=replace(done.merge, dropped=(*done.merge.dropped, *went)))
        new = self._moved(name, other, agreed, records, sought)
        return done, self._cleared(
            name, other, Followed(tuple(sorted(records.ids)), head, new, str(backup)), sought
        )

    def _records(self, other: str, agreed: str | None) -> Records:
        history = self.store.history
        history.require_whole()
        records = recorded.records(history, other, agreed, self.store.config.redact)
        if not records:
            lost = nodes(history, agreed, other) if agreed else []
            where = f"it lacks {lost[0].id[:10]}" if lost else other[:10]
            raise Conflict(
                "the remote's history was rewritten, and no purge accounts for it", where=where, mend=MEND
            )
        return records

    def _cleaned(self, records: Records, sought: list[Needle], base: str | None) -> Cleaned:
        """This machine's files without what was purged, and what was derived from it here."""
        store = self.store
        texts = dict(statements.texts(store))
        targets = [
            choosing.of(record)
            for path, data in texts.items()
            if any(f"^{written_id(block)}".encode() in data for block in records.ids)
            for record in markdown.parse(data, path).records
            if isinstance(record, Statement) and record.ref in records.ids
        ]
        deriving = Deriving(
            texts, targets, Owners(store, texts).ours, store.now().date(), take=False,
            patterns=store.config.redact, ids=records.ids,
        )  # fmt: skip
        plan = Changing(deriving).plan()
        went = tuple(
            Dropped(piece.id or "", piece.place.path, piece.place.line, "here")
            for piece in plan.gone
            if piece.by_person
        )

        def look(merged: Mapping[str, bytes | None]) -> None:
            for path, data in {**texts, **merged}.items():
                if data and any(needle.within(data) for needle in sought):
                    raise StillThere(
                        "it was purged on another machine, and is worded here still", where=path,
                        mend=f"take it out of {path} (ua-memory scan and search find lines), then sync",
                    )  # fmt: skip

        return Cleaned(plan.files, base, look, went)

    def _backed_up(self) -> Path:
        store, backup = self.store, self.backup
        if backup is None:
            raise Conflict(
                "another machine purged its history, and this one's has to lie somewhere before it follows",
                where=str(store.bank.root), mend="name a file outside the bank: sync(backup=…)",
            )  # fmt: skip
        purging.outside(store, backup)
        store.require_settled()
        with store.locked():
            unmarked(store.history)
        rewriting.back_up(store.history, backup)
        purging.note(store, self._unfinished(backup, False))
        return backup

    def _unfinished(self, backup: Path, done: bool) -> purging.Unfinished:
        return purging.Unfinished(str(backup), f"{self.store.now():%Y-%m-%d}", done, sync=True)

    def _moved(
        self, name: str, other: str, agreed: str | None, records: Records, sought: list[Needle]
    ) -> str:  # fmt: skip
        """Put this machine's own revisions on the new history; where the branch stands then."""
        history = self.store.history
        with self.store.locked():
            head = str(history.head())
            pairing = pair(history, head, other, agreed, records)
            new = onward(history, pairing, records, sought, history.blobs()).get(head, head)
            of = trees(history, [head, new, other])
            if of[head] != of[new]:
                raise GitFailed("the new history does not end where the old one does", where=new[:10])
            if of[head] == of[other] and _adds_nothing(pairing, head):
                new = other
            history.run("update-ref", history.ref(), new, head)
            rewriting.let_go(history, self.store.bank.state / WORK)
            history.agree(name, other)
        return new

    def _cleared(self, name: str, other: str, done: Followed, sought: list[Needle]) -> Followed:
        """Beside the files, too, and the proof."""
        store, cleared = self.store, waiting.Cleared()
        with swap.told(store.bank.state):
            waiting.clear(store, sought, done.ids, cleared)
            waiting.reindex(store, self.index(), store.config.search_seconds, cleared)
        proof = searching.look(store, sought, objects=True)
        purging.note(store, self._unfinished(Path(done.backup), proof.holds))
        holding = () if proof.holds else tuple(self._holding(done.old))
        return Followed(done.ids, done.old, done.new, done.backup, proof, holding)

    def _holding(self, old: str) -> list[str]:
        """What of the owner's leads to the history from before."""
        history = self.store.history
        named = rewriting.refs(history, [*rewriting.REWRITTEN, "refs/stash"])
        return [ref.short for ref in named if ref.name != history.ref()]

    def finish(self) -> None:
        """A sync that was killed after the branch had moved has left old objects: let go of them."""
        left = [one for one in purging.unfinished(self.store) if one.sync and not one.done]
        for one in left:
            with self.store.locked():
                unmarked(self.store.history)
                rewriting.let_go(self.store.history, self.store.bank.state / WORK)
            purging.note(self.store, replace(one, done=True))

    # -- a remote that has still what was purged here ----------------------------------------------------

    def pending(self, name: str, offered: str) -> bool:
        """Whether something was purged here that the remote has not heard of."""
        history = self.store.history
        if history.holds(offered):
            return False
        agreed = history.agreed(name)
        done = [each.id for each in history.log(grep=[f"{PURGED}: "]) if each.trailers.get(PURGED)]
        return bool(done) and not (agreed and history.is_within(done[0], agreed))

    def carry(self, name: str, url: str, offered: str, *, trial: bool) -> tuple[str, int, bool] | None:
        """What others pushed onto the history from before a purge here, written anew on top of the one from
        after it: (where that ends, its number of revisions, whether it was purged there, too). Nothing of
        what was purged gets in. None where the remote has heard of the purge, or moved meanwhile."""
        history, work = self.store.history, self.store.bank.state / WORK
        head = str(history.head())
        shutil.rmtree(work, ignore_errors=True)
        try:
            aside = Quarantine(history, work)
            aside.fetch_objects(url)
            mine = (
                recorded.records(aside, head, offered, self.store.config.redact)
                if aside.has(offered)
                else None
            )
            if not mine:
                return None
            theirs = recorded.records(aside, offered, head, self.store.config.redact)
            if theirs:
                walked = nodes(aside, offered, head)
                pairing = Pairing(head, {}, walked, walked=walked)
            else:
                pairing = pair(aside, offered, head, self._stood(aside, offered), mine)
            tip = offered
            if not trial:
                tip = onward(aside, pairing, mine, needles(aside, pairing, mine)).get(offered, offered)
                hand_over(aside, history, tip, head)
            return tip, len(pairing.own), bool(theirs)
        finally:
            shutil.rmtree(work, ignore_errors=True)

    def _stood(self, aside: Quarantine, offered: str) -> str | None:
        """Where the remote stood when something was purged here, if it has that still."""
        rows = [
            row for each in aside.log(grep=[f"{PURGED}: "]) for row in each.trailers.get(purging.REWROTE, ())
        ]
        old = [row.split()[1] for row in rows if row.startswith("refs/remotes/")]
        return next((sha for sha in old if aside.has(sha) and aside.is_within(sha, offered)), None)


def _adds_nothing(pairing: Pairing, head: str) -> bool:
    """Whether only the revision that joined both is this machine's own."""
    return [node.id for node in pairing.own] in ([], [head])
