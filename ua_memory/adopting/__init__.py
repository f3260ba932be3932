"""Memories of other tools into a bank: what `importers` found, in one revision, without doubling anything."""

from __future__ import annotations

from collections.abc import Iterator

from ua_memory.adopting.copies import Copies
from ua_memory.adopting.recipes import recipes
from ua_memory.adopting.records import Records
from ua_memory.adopting.taken import Brought, Taken
from ua_memory.errors import NotFound
from ua_memory.importers import Found
from ua_memory.modelled import Modelled
from ua_memory.store import Draft, Store
from ua_memory.store.draft import Touched
from ua_memory.wording import counted

__all__ = ["Adopts", "Brought", "Taken"]


class Adopts(Modelled):
    """The part of `Memory` that takes over what other tools remembered."""

    def bring_in(self, found: Found, *, dry_run: bool = False) -> Brought:
        """Write what was found into the bank, in one commit, or only tell what that would do.

        What is there already stays as it is, so that it may be done again. Raises what the store raises.
        """
        if dry_run:
            draft = _rehearsal(self.store)
            taken = tuple(_bring(self.store, draft, found))
            return Brought(found, taken, dict(draft.redacted))
        with self.store.revision("import", door=self.door) as draft:
            taken = tuple(_bring(self.store, draft, found))
            draft.subject = _subject(found, taken)
            draft.trailers["Imported"] = [f"{found.source}:{found.name}"]
        return Brought(found, taken, dict(draft.redacted), draft.result)


def _rehearsal(store: Store) -> Draft:
    """A draft that nobody publishes."""

    def touch(path: str) -> Touched:
        try:
            data = store.truth(path)
        except NotFound:
            return Touched(path, None, None, None)
        changed = path in store.survey().changed
        return Touched(path, data, None if changed else data, data)

    return Draft("import", "rehearsal", touch, store.config.redact)


def _bring(store: Store, draft: Draft, found: Found) -> Iterator[Taken]:
    copies = Copies(store, draft, found)
    if found.core:
        yield from copies.curated(found.core)
    for note in found.notes:
        yield copies.take(note)
    yield from Records(store, draft, found).take()
    yield from recipes(draft, found)


def _subject(found: Found, taken: tuple[Taken, ...]) -> str:
    said = []
    for what in ("block", "note", "item", "model", "page"):
        number = sum(1 for each in taken if each.what == what and each.state in ("new", "updated"))
        noun = "core block" if what == "block" else what
        said += [counted(number, noun)] if number else []
    return f"import: {', '.join(said) or 'nothing new'} from {found.source} {found.name}"
