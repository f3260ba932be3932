"""The part of `Memory` that has to do with other machines: sync, export, and the import of an archive."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ua_memory.modelled import Modelled

if TYPE_CHECKING:
    from ua_memory.index.sync import Index
    from ua_memory.merge.archive import Archived, Restored
    from ua_memory.merge.cloning import Cloned
    from ua_memory.merge.following import Followed
    from ua_memory.merge.syncing import Synced

__all__ = ["Archived", "Cloned", "Followed", "Restored", "Synced", "Syncs"]


class Syncs(Modelled):
    """One memory on many machines."""

    @cached_property
    def index(self) -> Index:
        """The bank's index."""
        raise NotImplementedError

    def sync(
        self, remote: str | None = None, *, dry_run: bool = False, backup: Path | None = None
    ) -> Synced:  # fmt: skip
        """Pull, merge and push the trail. `remote` is its address, to be given once. Where another machine
        has purged its history, this one's goes into the bundle `backup` before it follows: a new file
        outside of the bank. Conflict where it has to be named."""
        from ua_memory.merge import syncing

        return syncing.sync(
            self.store, remote, door=self.door, index=lambda: self.index, trial=dry_run, backup=backup
        )

    @staticmethod
    def clone(root: Path, address: str) -> Cloned | None:
        """Make a folder the bank that a remote has; None where it is that already. To be opened then."""
        from ua_memory.merge import cloning

        return cloning.clone(root, address)

    def export(self, file: Path | str, *, dry_run: bool = False) -> Archived:
        """The whole bank, with its history, as one archive that can be verified."""
        from ua_memory.merge import archive

        return archive.export(self.store, Path(file), trial=dry_run)

    def restore(self, file: Path | str, *, dry_run: bool = False) -> Restored:
        """Take an archive of this bank in; a new bank becomes what it holds."""
        from ua_memory.merge import archive

        return archive.restore(
            self.store, Path(file), door=self.door, index=lambda: self.index, trial=dry_run
        )
