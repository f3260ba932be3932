"""The part of `Memory` for its history: log, undo, verify, forget, entities, sync, import, statistics."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ua_memory.errors import NotFound
from ua_memory.index import words as index_words
from ua_memory.index.items import folded
from ua_memory.knowledge import entities, statements, tombstones
from ua_memory.knowledge.entities import Beside, Decision, Resolved, Settled, Suggestion
from ua_memory.markdown import document, lines
from ua_memory.markdown.lines import FileKind
from ua_memory.recall.block import Modelled
from ua_memory.records import Fact, is_generated
from ua_memory.store.draft import Draft, TouchedFile
from ua_memory.store.store import Store
from ua_memory.text.wording import counted
from ua_memory.upkeep import doctor
from ua_memory.upkeep.import_ import Brought, Copies, RecordImport, Taken, recipes
from ua_memory.upkeep.import_sources import SourceContents

if TYPE_CHECKING:
    from ua_memory.git.repository import BlameLine, Revision
    from ua_memory.index.items import IndexItem
    from ua_memory.index.sync import Index
    from ua_memory.index.words import WordIndex
    from ua_memory.knowledge.lineage import Chain
    from ua_memory.knowledge.statements import Statement
    from ua_memory.records import Problem
    from ua_memory.store.draft import Result
    from ua_memory.upkeep.archive import Archived, Restored
    from ua_memory.upkeep.doctor import Check
    from ua_memory.upkeep.forget import Forgotten
    from ua_memory.upkeep.purge import Purged, Purging, Unfinished
    from ua_memory.upkeep.sync import Cloned, Synced
    from ua_memory.upkeep.traces import Searched
    from ua_memory.upkeep.undo import Undone


# -- forgets -----------------------------------------------------------------------------------------------
# The part of `Memory` that forgets. What does it is imported when it is used.


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
        from ua_memory.upkeep.forget import Forgetting

        work = Forgetting(self)
        return work.forget(
            *targets, query=query, session=session, entity=entity, limit=limit, dry_run=dry_run, take=take
        )

    def finish_forgetting(self) -> list[Searched]:
        """Bring what a killed process has begun to forget to its end, or let go of it if nothing was done."""
        if not any(self.store.bank.pending.glob("forget-*.json")):
            return []
        from ua_memory.upkeep.forget import Forgetting

        return Forgetting(self).finish()

    def is_forgotten(self, block: str) -> bool:
        """Whether an id (`^id`, `PATH#^id`) has a tombstone; one that a person typed may stand there anew."""
        from ua_memory.upkeep.forget import stone_of

        stone = stone_of(block)
        if stone not in tombstones.read(self.store):
            return False
        try:
            return is_generated(stone) or statements.find_excerpts(self.store, block).record is None
        except NotFound:
            return True

    # -- the history -------------------------------------------------------------------------------------

    def purging(self, *ids: str, after: Forgotten | None = None) -> Purging:
        """What it takes to get forgotten ids out of the history, too: those of `after`, those named, or all.
        Changes nothing. Usage, NotFound, Conflict, StillThere."""
        from ua_memory.upkeep import purge
        from ua_memory.upkeep.forget import stone_of

        if after is not None:
            return purge.plan(self.store, [one.id for one in after.plan.removals], after.sought)
        return purge.plan(self.store, [stone_of(block) or block for block in ids])

    def purge(self, planned: Purging, backup: Path) -> Purged:
        """Rewrite the trail's history. All that it was goes into the bundle `backup`, outside of the bank;
        the purge counts as unfinished until its owner deletes that. CannotWrite, GitFailed, Usage."""
        from ua_memory.upkeep import purge

        return purge.purge(self.store, planned, backup, door=self.door)

    def unfinished_purges(self) -> list[Unfinished]:
        """Purges that were cut short, or whose backup is there still."""
        if not (self.store.bank.state / "purges.json").exists():
            return []
        from ua_memory.upkeep import purge

        return purge.unfinished(self.store)


# -- stats -------------------------------------------------------------------------------------------------
# Counts over a bank: what it holds, by kind, origin, client and month, and what was done to it.


@dataclass(frozen=True, slots=True)
class Stats:
    """`months` counts facts by their log's month, `ops` revisions by what they did. Days are ISO days."""

    files: int
    bytes: int
    facts: int
    first: str
    last: str
    revisions: int
    kinds: Mapping[str, int]
    origins: Mapping[str, int]
    clients: Mapping[str, int]
    months: Mapping[str, int]
    ops: Mapping[str, int]


def count(store: Store) -> Stats:
    """Read every file once and count. Retired facts count, for they are still there."""
    kinds, origins, clients, months = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    days: list[str] = []
    files = size = 0
    for path, data in statements.texts(store):
        files, size = files + 1, size + len(data)
        if lines.kind_of(path) is not FileKind.LOG and not path.startswith("memory/documents/"):
            continue
        day = lines.day_of(path)
        found = document.parse(data, path).of(Fact)
        days += [day] if day and found else []
        for fact in found:
            kinds[fact.kind] += 1
            origins[fact.said_by] += 1
            clients[fact.heading.client or "by hand"] += 1
            months[day[:7] if day else "undated"] += 1
    done = store.history.log()
    ops = Counter(one.trailer("Memory-Op") or "other" for one in done)
    return Stats(
        files=files,
        bytes=size,
        facts=sum(kinds.values()),
        first=min(days, default=""),
        last=max(days, default=""),
        revisions=len(done),
        kinds=dict(kinds.most_common()),
        origins=dict(origins.most_common()),
        clients=dict(clients.most_common()),
        months=dict(sorted(months.items())),
        ops=dict(ops.most_common()),
    )


# -- audited -----------------------------------------------------------------------------------------------
# The part of `Memory` that answers for what was done: the trail, what is wrong, and what is taken back.
#
# What does it is imported where it is used: all of grounding and lineage would be read for each command
# else.


class Audited(Forgets):
    """The trail of a bank and what can be done with it."""

    def log(
        self, about: str | None = None, *, op: str | None = None, limit: int | None = 20
    ) -> list[Revision]:
        """Revisions, newest first: all, of a file, or of a fact (`^id`)."""
        from ua_memory.upkeep import audit

        return audit.log(self.store, about=about, op=op, limit=limit)

    def brought(
        self, revisions: Sequence[Revision], about: str | None = None
    ) -> dict[str, tuple[Statement, ...]]:
        """{revision: the statements it brought or changed}, without what was forgotten since; of a file or
        fact (`^id`) alone where it is `about` one."""
        from ua_memory.upkeep import audit

        return audit.brought(self.store, revisions, about)

    def taken_back(self) -> set[str]:
        """The revisions that an undo took back."""
        return self.store.history.taken_back()

    def diff(self, revision: str | None = None) -> str:
        """What a revision changed, or what is changed by hand and not committed yet."""
        from ua_memory.upkeep import audit

        return audit.diff(self.store, revision)

    def undo(self, revision: str | None = None) -> Undone:
        """Take back a revision (the newest, unless one is named), or restore what is held."""
        from ua_memory.upkeep import undo

        return undo.undo(self.store, revision, door=self.door)

    def redo(self) -> Undone:
        """Take back the newest undo."""
        from ua_memory.upkeep import undo

        return undo.redo(self.store, door=self.door)

    def blame(self, target: str) -> list[BlameLine]:
        """Who wrote each line of a file, a range or a fact."""
        from ua_memory.upkeep import audit

        return audit.blame(self.store, target)

    def why(self, target: str) -> Chain:
        """What `^id`, `PATH:LINE` or a file rests on, down to quotes, session and commit."""
        from ua_memory.knowledge import lineage

        return lineage.why(self.store, target)

    def verify(self) -> list[Problem]:
        """Every invariant that can be checked; empty where all hold."""
        return self.verified()[0]

    def verified(self) -> tuple[list[Problem], list[Problem]]:
        """The same, and what could not be checked now, with the reason."""
        from ua_memory.upkeep import audit, doctor

        problems, unchecked = doctor.index_checked(self.store)
        return [*audit.verify(self.store), *doctor.state_problems(self.store), *problems], unchecked

    def secrets(self) -> list[tuple[str, int, str]]:
        """(path, line, kind) of each secret in the files."""
        from ua_memory.upkeep import audit

        return audit.secrets(self.store)

    def past_secrets(self) -> list[tuple[str, str, int, str]]:
        """(revision, path, line, kind) of each secret that ever came into the trail, where it came first."""
        from ua_memory.upkeep import audit

        return audit.past_secrets(self.store)

    def doctor(self, *, mend: bool = False) -> list[Check]:
        """The checks of the surroundings and the state, and with `mend` what can be mended, mended."""
        if mend:
            self.finish_forgetting()
        return doctor.checkup(self.store, mend=mend)

    def stats(self) -> Stats:
        """What the bank holds, counted."""
        return count(self.store)

    def accept(self) -> Result:
        """Let what disappeared by hand be gone: commit it as the person's."""
        return self.store.adopt(accept=True)


# -- naming ------------------------------------------------------------------------------------------------
# The part of `Memory` that knows who is who: the bank's names counted, shown, and decided about.


COMPARED = 1000
"""Names, the most frequent, among which it is looked for two that may be one."""
ROUND = 20
"""Names beside somebody's that count as their company."""
DAYS = 45
"""Up to so many days from first to last a timeline goes by days, then by months."""

_PROPER = re.compile(r"(?!\d)[^\W_a-z][^\n/\\@_()#:`]*")


@dataclass(frozen=True, slots=True)
class Known:
    """A name of the bank: in how many places it stands, first and last ISO day ('' where none is known).

    `settled` is whether memory/entities.md has a record of it, with these `aliases` and `nots`.
    """

    name: str
    count: int
    first: str = ""
    last: str = ""
    aliases: tuple[str, ...] = ()
    nots: tuple[str, ...] = ()
    settled: bool = False


@dataclass(frozen=True, slots=True)
class Portrait:
    """All that the bank has of a name: its places in the order of their days, the names beside it with how
    often, and a timeline of ISO days or months."""

    known: Known
    items: tuple[IndexItem, ...] = ()
    beside: Mapping[str, int] = field(default_factory=dict)
    timeline: Mapping[str, int] = field(default_factory=dict)


class Naming(Modelled):
    """The names of a bank."""

    @cached_property
    def index(self) -> Index:
        """The bank's index."""
        raise NotImplementedError

    def entities(self, limit: int | None = None, *, every: bool = False) -> list[Known]:
        """The names of the bank, the most frequent first; with `every` also paths, handles and identifiers,
        and words that are mostly no names."""
        with self._named() as (words, known):
            return _listed(words, known, limit, every)

    def entity(self, name: str) -> Portrait:
        """Everything about whoever is called so. NotFound, which names who is called nearly so."""
        with self._named() as (words, known):
            return self._portrait(words, known, name)

    def _portrait(self, words: WordIndex, known: Settled, name: str) -> Portrait:
        called = known.called(name)
        record = called[0] if len(called) == 1 else None
        names = [record.name, *record.aliases] if record else [name]
        own = {folded(each) for each in names}
        items = index_words.items(words, own)
        if not items and record is None:
            raise NotFound(
                "nobody is called so", where=name, mend=_near(name, _listed(words, known, COMPARED))
            )
        shown = record.name if record else index_words.written(words, folded(name)).spelling
        days = [day for item in items if (day := item.day or item.date)]
        about = Known(
            shown, len(items), min(days, default=""), max(days, default=""),
            record.aliases if record else (), record.nots if record else (), record is not None,
        )  # fmt: skip
        return Portrait(about, tuple(items), self._beside(words, known, own), _timeline(days))

    def suggested(self, limit: int = 20) -> list[Suggestion]:
        """Names that may be one, with the reason, for a person to decide. Nothing is merged."""
        with self._named() as (words, known):
            found = _listed(words, known, COMPARED)
            return entities.suggestions(
                {one.name: one.count for one in found}, known, self._company(words), limit
            )

    def resolve_name(self, name: str, context: Iterable[str] = ()) -> Resolved:
        """Whom a name in a text stands for, by what is settled and by the other names of the text."""
        with self._named() as (words, known):
            return known.resolve(name, context, self._company(words))

    # -- decisions ---------------------------------------------------------------------------------------

    def entity_alias(self, name: str, other: str, *, by_person: bool = False) -> Decision:
        """`other` is another name of `name`. NotFound where the bank has never heard of `name`."""
        self._heard_of(name)
        return entities.alias(self.store, name, other, door=self.door, by_person=by_person)

    def entity_merge(self, name: str, other: str, *, by_person: bool = False) -> Decision:
        """`other` is `name`, with all it is called. NotFound where the bank has never heard of one."""
        self._heard_of(name, other)
        return entities.merge(self.store, name, other, door=self.door, by_person=by_person)

    def entity_split(self, name: str, other: str, *, by_person: bool = False) -> Decision:
        """`other` is not `name`, for good."""
        self._heard_of(name)
        return entities.split(self.store, name, other, door=self.door, by_person=by_person)

    def entity_rename(self, old: str, new: str, *, by_person: bool = False) -> Decision:
        """What was called `old` is called `new`, and found by both."""
        self._heard_of(old)
        return entities.rename(self.store, old, new, door=self.door, by_person=by_person)

    def _heard_of(self, *names: str) -> None:
        with self._named() as (words, known):
            for name in names:
                if not known.called(name) and not index_words.items(words, [folded(name)]):
                    near = _near(name, _listed(words, known, COMPARED))
                    raise NotFound("nobody is called so", where=name, mend=near)

    # -- what the index knows ------------------------------------------------------------------------------

    @contextmanager
    def _named(self) -> Iterator[tuple[WordIndex, Settled]]:
        with self.index.turn:
            self.index.refresh(vectors=False)
            yield self.index.words, entities.settled(self.store)

    def _company(self, words: WordIndex) -> Beside:
        @cache
        def beside(name: str) -> frozenset[str]:
            counts = index_words.beside(words, [folded(name)])
            return frozenset(sorted(counts, key=lambda one: (-counts[one], one))[:ROUND])

        return beside

    def _beside(self, words: WordIndex, known: Settled, own: set[str]) -> Mapping[str, int]:
        counts = index_words.beside(words, own)
        best = sorted(counts, key=lambda one: (-counts[one], one))[:ROUND]
        found = Counter[str]()
        for one in best:
            written = index_words.written(words, one)
            shown = known.resolve(written.spelling)
            if shown.how != "open" or (_PROPER.fullmatch(written.spelling) and not written.doubtful):
                found[shown.name] += counts[one]
        return dict(found.most_common())


def _listed(words: WordIndex, known: Settled, limit: int | None, every: bool = False) -> list[Known]:
    """The settled names and the others, the most frequent first."""
    found: list[Known] = []
    taken: set[str] = set()
    for record in known.records:
        names = {folded(each) for each in (record.name, *record.aliases)}
        taken |= names
        items = index_words.items(words, names)
        days = [day for item in items if (day := item.day or item.date)]
        first, last = min(days, default=""), max(days, default="")
        found.append(Known(record.name, len(items), first, last, record.aliases, record.nots, True))
    others = 0
    for one in index_words.census(words):
        if others == limit:
            break
        if one.name in taken:
            continue
        name = index_words.written(words, one.name)
        if every or (_PROPER.fullmatch(name.spelling) and not name.doubtful):
            found.append(Known(name.spelling, one.items, one.first, one.last))
            others += 1
    return sorted(found, key=lambda one: (-one.count, one.name.casefold()))[:limit]


def _timeline(days: Sequence[str]) -> Mapping[str, int]:
    """How often each ISO day or, over a longer time, each month."""
    from datetime import date

    full = [day for day in days if len(day) == 10]
    span = (date.fromisoformat(max(full)) - date.fromisoformat(min(full))).days if full else 0
    counted = Counter(full if span <= DAYS else [day[:7] for day in days])
    return dict(sorted(counted.items()))


def _near(name: str, among: Sequence[Known]) -> str:
    near = [one.name for one in among if entities.likeness(one.name, name)][:3]
    return f"did you mean {' or '.join(near)}?" if near else "ua-memory entities list"


# -- syncs -------------------------------------------------------------------------------------------------
# The part of `Memory` that has to do with other machines: sync, export, and the import of an archive.


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
        from ua_memory.upkeep import sync

        return sync.sync(
            self.store, remote, door=self.door, index=lambda: self.index, trial=dry_run, backup=backup
        )

    @staticmethod
    def clone(root: Path, address: str) -> Cloned | None:
        """Make a folder the bank that a remote has; None where it is that already. To be opened then."""
        from ua_memory.upkeep import sync

        return sync.clone(root, address)

    def export(self, file: Path | str, *, dry_run: bool = False) -> Archived:
        """The whole bank, with its history, as one archive that can be verified."""
        from ua_memory.upkeep import archive

        return archive.export(self.store, Path(file), trial=dry_run)

    def restore(self, file: Path | str, *, dry_run: bool = False) -> Restored:
        """Take an archive of this bank in; a new bank becomes what it holds."""
        from ua_memory.upkeep import archive

        return archive.restore(
            self.store, Path(file), door=self.door, index=lambda: self.index, trial=dry_run
        )


# -- adopting ----------------------------------------------------------------------------------------------
# Memories of other tools into a bank: what `importers` found, in one revision, without doubling anything.


class Adopts(Modelled):
    """The part of `Memory` that takes over what other tools remembered."""

    def bring_in(self, found: SourceContents, *, dry_run: bool = False) -> Brought:
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

    def touch(path: str) -> TouchedFile:
        try:
            data = store.truth(path)
        except NotFound:
            return TouchedFile(path, None, None, None)
        changed = path in store.survey().changed
        return TouchedFile(path, data, None if changed else data, data)

    return Draft("import", "rehearsal", touch, store.config.redact)


def _bring(store: Store, draft: Draft, found: SourceContents) -> Iterator[Taken]:
    copies = Copies(store, draft, found)
    if found.core:
        yield from copies.curated(found.core)
    for note in found.notes:
        yield copies.take(note)
    yield from RecordImport(store, draft, found).take()
    yield from recipes(draft, found)


def _subject(found: SourceContents, taken: tuple[Taken, ...]) -> str:
    said = []
    for what in ("block", "note", "item", "model", "page"):
        number = sum(1 for each in taken if each.what == what and each.state in ("new", "updated"))
        noun = "core block" if what == "block" else what
        said += [counted(number, noun)] if number else []
    return f"import: {', '.join(said) or 'nothing new'} from {found.source} {found.name}"
