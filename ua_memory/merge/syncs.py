"""The part of `Memory` that has to do with other machines: sync, export, and the import of an archive."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ua_memory.modelled import Modelled

if TYPE_CHECKING:
    from ua_memory.merge.archive import Archived, Restored
    from ua_memory.merge.syncing import Synced

__all__ = ["Archived", "Restored", "Synced", "Syncs"]


class Syncs(Modelled):
    """One memory on many machines."""

    def sync(self, remote: str | None = None, *, dry_run: bool = False) -> Synced:
        """Pull, merge and push the trail. `remote` is its address, to be given once."""
        from ua_memory.merge import syncing

        return syncing.sync(self.store, remote, door=self.door, trial=dry_run)

    def export(self, file: Path | str, *, dry_run: bool = False) -> Archived:
        """The whole bank, with its history, as one archive that can be verified."""
        from ua_memory.merge import archive

        return archive.export(self.store, Path(file), trial=dry_run)

    def restore(self, file: Path | str, *, dry_run: bool = False) -> Restored:
        """Take an archive of this bank in; a new bank becomes what it holds."""
        from ua_memory.merge import archive

        return archive.restore(self.store, Path(file), door=self.door, trial=dry_run)
