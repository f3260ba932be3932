"""The part of `Memory` that forgets. What does it is imported when it is used."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ua_memory.modelled import Modelled
from ua_memory.records import is_generated

if TYPE_CHECKING:
    from ua_memory.forgetting.forgetting import Forgotten
    from ua_memory.forgetting.purging import Purged, Purging, Unfinished
    from ua_memory.forgetting.searching import Searched
    from ua_memory.index.sync import Index


class Forgets(Modelled):
    """Forgetting, for good."""

    @cached_property
    def index(self) -> Index:
        """The bank's index."""
        raise NotImplementedError

    def entity(self, name: str) -> Any:
        """Everything about whoever is called so."""
        raise NotImplementedError

    def forget(
        self, *targets: str, query: str = "", session: str = "", entity: str = "", limit: int | None = None,
        dry_run: bool = False, take: bool = False,
    ) -> Forgotten:  # fmt: skip
        """Remove statements, and what was derived only from them, from files, index, caches and what waits.

        `targets` are `^id`, `PATH:LINE` or `PATH:FROM-TO`; `query` means what contains all of its words, at
        most `limit`; `session` what was said in it, `entity` what is known of somebody. A person's own lines
        that quote it go only with `take`. `dry_run` changes nothing. NotFound where nothing is meant; Held,
        ChangedOnDisk, Busy, TooLarge.
        """
        from ua_memory.forgetting.forgetting import Forgetting

        work = Forgetting(self)
        return work.forget(
            *targets, query=query, session=session, entity=entity, limit=limit, dry_run=dry_run, take=take
        )

    def finish_forgetting(self) -> list[Searched]:
        """Bring what a killed process has begun to forget to its end, or let go of it if nothing was done."""
        if not any(self.store.bank.pending.glob("forget-*.json")):
            return []
        from ua_memory.forgetting.forgetting import Forgetting

        return Forgetting(self).finish()

    def is_forgotten(self, block: str) -> bool:
        """Whether an id (`^id`, `PATH#^id`) has a tombstone; one that a person typed may stand there anew."""
        from ua_memory import excerpts, tombstones
        from ua_memory.errors import NotFound
        from ua_memory.forgetting.choosing import stone_of

        stone = stone_of(block)
        if stone not in tombstones.read(self.store):
            return False
        try:
            return is_generated(stone) or excerpts.find(self.store, block).record is None
        except NotFound:
            return True

    # -- the history -------------------------------------------------------------------------------------

    def purging(self, *ids: str, after: Forgotten | None = None) -> Purging:
        """What it takes to get forgotten ids out of the history, too: those of `after`, those named, or all.
        Changes nothing. Usage, NotFound, Conflict, StillThere."""
        from ua_memory.forgetting import purging
        from ua_memory.forgetting.choosing import stone_of

        if after is not None:
            return purging.plan(self.store, [one.id for one in after.plan.burials], after.sought)
        return purging.plan(self.store, [stone_of(block) or block for block in ids])

    def purge(self, planned: Purging, backup: Path) -> Purged:
        """Rewrite the trail's history. All that it was goes into the bundle `backup`, outside of the bank;
        the purge counts as unfinished until its owner deletes that. CannotWrite, GitFailed, Usage."""
        from ua_memory.forgetting import purging

        return purging.purge(self.store, planned, backup, door=self.door)

    def unfinished_purges(self) -> list[Unfinished]:
        """Purges that were cut short, or whose backup is there still."""
        if not (self.store.bank.state / "purges.json").exists():
            return []
        from ua_memory.forgetting import purging

        return purging.unfinished(self.store)
