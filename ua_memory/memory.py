"""`Memory`: everything a bank can do, as one object that every door uses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ua_memory import config as config_module
from ua_memory.config import Config
from ua_memory.errors import CannotWrite, NoBank, NotFound, UaMemoryError
from ua_memory.knowledge import core, facts, statements
from ua_memory.knowledge.core import Budget, Replaced
from ua_memory.knowledge.entities import Decision, Suggestion
from ua_memory.knowledge.facts import Inserted, Said
from ua_memory.knowledge.observations import Believed, Standing
from ua_memory.knowledge.pages import Kept
from ua_memory.knowledge.statements import Excerpt, Statement
from ua_memory.markdown import document
from ua_memory.paths import is_bank
from ua_memory.recall.block import Recalled, Recalls
from ua_memory.records import CoreBlock, Fact, Kind, Origin, Quote
from ua_memory.reflect.bank import Believing, Paged, Reflections
from ua_memory.retain.bank import Surveys, Watches
from ua_memory.store.draft import Result
from ua_memory.store.scan import Snapshot, SnapshotCache
from ua_memory.store.store import Store
from ua_memory.upkeep import doctor, init
from ua_memory.upkeep.bank import Adopts, Audited, Known, Naming, Portrait, Syncs
from ua_memory.upkeep.doctor import Check
from ua_memory.upkeep.import_ import Brought, Taken
from ua_memory.upkeep.init import Founded

if TYPE_CHECKING:
    from ua_memory.git.repository import BlameLine, Revision
    from ua_memory.index.filters import Filters
    from ua_memory.index.sync import Index, Progress, Refresh, Stop
    from ua_memory.knowledge.lineage import Chain, Link, SentenceStep, Written
    from ua_memory.knowledge.opinions import Changed
    from ua_memory.knowledge.trust import Break
    from ua_memory.llm.ledger import Estimate, Spent, Totals
    from ua_memory.llm.model import Endpoint, Model
    from ua_memory.recall.arms import Explained
    from ua_memory.recall.search import Answer, Hit
    from ua_memory.reflect.consolidate import Consolidated, Preview
    from ua_memory.reflect.evidence import EvidencePiece as Evidence
    from ua_memory.reflect.proposals import Change
    from ua_memory.reflect.reflection import Reflection
    from ua_memory.reflect.refresh import Price, Proposal, Refreshed, Stale
    from ua_memory.retain.bank import Caught
    from ua_memory.retain.flush import Flush, Flushed
    from ua_memory.retain.queue import TextItem as Item
    from ua_memory.retain.queue import Waiting, WaitingItem
    from ua_memory.retain.retain import Priced, Retained
    from ua_memory.retain.survey import Look, Survey, Surveyed, Watched
    from ua_memory.upkeep.archive import Archived, Restored
    from ua_memory.upkeep.bank import Stats
    from ua_memory.upkeep.forget import Forgotten, Piece
    from ua_memory.upkeep.purge import Purged, Purging, Unfinished
    from ua_memory.upkeep.sync import Cloned, Synced
    from ua_memory.upkeep.undo import Undone


__all__ = [
    "Answer", "Archived", "Believed", "BlameLine", "Break", "Brought", "Budget", "Caught",
    "Chain", "Change", "Changed", "Check", "Cloned", "Consolidated", "CoreBlock", "Decision", "Endpoint",
    "Estimate", "Evidence", "Excerpt", "Explained", "Filters", "Flush", "Flushed",
    "Forgotten", "Hit",
    "Inserted", "Item", "Kept", "Known", "Link", "Look", "Memory", "Model", "Piece", "Portrait", "Preview",
    "Price", "Priced", "Proposal", "Purged", "Purging", "Recalled", "Reflection", "Refresh", "Refreshed",
    "Replaced", "Restored", "Result", "Retained", "Revision", "SentenceStep", "Snapshot", "SnapshotCache",
    "Spent", "Stale", "Standing", "Stats", "Status", "Suggestion", "Survey", "Surveyed", "Synced", "Taken",
    "Totals", "Undone", "Unfinished", "Waiting", "WaitingItem", "Watched", "Written",
]  # fmt: skip
"""The types that a door meets, which imports them from here."""


@dataclass(frozen=True, slots=True)
class Status:
    """How a bank stands: its places, what people changed, what is held or pending, its budgets and index.
    `settings` are those that could not be read: defaults count in their place."""

    root: str
    trail: str
    own: bool
    head: Revision | None
    files: int
    edited: tuple[str, ...]
    held: tuple[str, ...]
    pending: tuple[str, ...]
    budgets: tuple[Budget, ...]
    problems: int
    """Of the files, and one for `damage`."""
    index: Mapping[str, object] = field(default_factory=dict)
    waiting: tuple[Waiting, ...] = ()
    damage: str = ""
    """What is wrong with the history, as far as a quick look tells."""
    settings: tuple[str, ...] = ()


class Memory(Surveys, Paged, Adopts, Believing, Naming, Recalls, Reflections, Watches, Audited, Syncs):
    """One bank. `door` names where the calls come from and stands in every commit they make.

    Methods raise the errors of `ua_memory.errors`; nothing reads the environment. Times are the bank's.
    Threads may share it.
    """

    def __init__(self, store: Store, *, door: str = "python") -> None:
        self.store, self.config, self.door = store, store.config, door
        self.founded: Founded | None = None  # what `init` did, if it was `init` that opened this bank

    @classmethod
    def open(
        cls, root: Path | str, *, config: Config | None = None, now: Callable[[], datetime] | None = None,
        door: str = "python",
    ) -> Memory:  # fmt: skip
        """The bank in a folder. NoBank where the folder is none; `Memory.init` makes one."""
        if not (root := Path(root).absolute()).is_dir() or not is_bank(root):
            raise NoBank("no memory bank here", where=str(root), mend=f"ua-memory init {root}")
        config = config or config_module.load(root, {})
        return cls(init.open_store(root, config, now or config.clock()), door=door)

    @classmethod
    def init(
        cls, root: Path | str, *, now: Callable[[], datetime] | None = None, timezone: str = "",
        door: str = "python",
    ) -> Memory:  # fmt: skip
        """Make a bank in a folder, or complete one, and open it. `upkeep.init.init` tells more."""
        founded = init.init(Path(root).absolute(), now, timezone=timezone, door=door)
        memory = cls.open(founded.bank.root, config=founded.config, now=now, door=door)
        memory.founded = founded
        return memory

    def unread(self) -> int:
        """How many markdown files in the bank's folder no search reads: not its own, not in `extraPaths`."""
        from ua_memory.index.outside import OutsideFiles

        return OutsideFiles(self.store).unread()

    @cached_property
    def index(self) -> Index:
        from ua_memory.index.sync import Index

        # Of threads that come at once all get the first one's: making one opens nothing.
        index: Index = self.__dict__.setdefault("index", Index(self.store, embedding=self.config.embedding))
        return index

    def __enter__(self) -> Memory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the index, so that another process may own it. What is used after it opens again. A
        search of another thread is waited for."""
        if index := self.__dict__.get("index"):
            index.end()
        self.store.close()

    # -- archival memory -------------------------------------------------------------------------------

    def insert(
        self, text: str, *, tags: Sequence[str] = (), kind: Kind = "world", when: str | None = None,
        entities: Sequence[str] = (), quotes: Sequence[Quote] = (), origin: Origin = "agent",
        client: str | None = None, session: str | None = None, request: str | None = None,
        said_in: Sequence[str] = (),
    ) -> Inserted:  # fmt: skip
        """Remember one fact, verbatim, in the log of today. It is durable and committed on return. `said_in`
        are tags of all that is said there, as `project:shop`: they stand once, below its heading."""
        fact = Fact(
            text, kind=kind, when=when, tags=tuple(tags), entities=tuple(entities), quotes=tuple(quotes)
        )
        said = Said(self.store.now(), client or self.door, origin, session, tuple(said_in))
        return facts.insert(self.store, fact, said, door=self.door, request=request, equal=self._equal)

    def get(self, target: str) -> Excerpt:
        """Read what is named in any form that a command prints: `^id`, `PATH:LINE`, `PATH#L3-L5`,
        `[[…#^id]]`. NotFound, Usage."""
        found = statements.find_excerpts(self.store, target, self._files_of)
        path = found.path
        data = self.index.files.truth(path) if path.startswith("/") else self.store.truth(path)
        return statements.cut(data, path, found.span, found.id)

    def fact(self, block: str) -> Statement:
        """What has a block id, by the index if it knows the file, else by looking through all files."""
        try:
            return statements.find(self.store, block, self._files_of(block.removeprefix("^")))
        except NotFound:
            return statements.find(self.store, block)

    def _files_of(self, block: str) -> list[str] | None:
        """The files in which an id stands, as the index knows them; None where it does not."""
        from ua_memory.index import sync

        return None if sync.absent(self.store) else self.index.words.files_of(block) or None

    def _known(self) -> facts.Equal:
        unread = [path for path in self.index.refresh(vectors=False).unread if self._is_readable(path)]
        return lambda text: [*self._files_with(text), *unread]

    def _files_with(self, text: str) -> list[str]:
        with self.index.turn:
            items = self.index.words.by_texthash(document.texthash(text))
        return [item.path for item in items if item.kind != "passage"]

    def _is_readable(self, path: str) -> bool:
        try:
            self.store.read(path)
        except UaMemoryError:  # a file that stays unreadable must not keep facts from being written
            return False
        return True

    # -- search ----------------------------------------------------------------------------------------

    def refresh(
        self, progress: Progress | None = None, *, vectors: bool = True, stop: Stop | None = None
    ) -> Refresh:
        """Bring the index up to date with the files until `stop`; the report says what changed."""
        with self.index.turn:  # what is seen is to be what is read: another thread may write meanwhile
            seen = self.store.survey()
            adopted = self.store.adopt(quiet=self.config.quiet_seconds, seen=seen, wait=False)
            seen = self.store.survey() if adopted.notes else seen  # something was put back
            done = self.index.refresh(vectors, progress, seen, stop)
        return replace(done, notes=(*adopted.notes, *done.notes))

    def rebuild(self, progress: Progress | None = None) -> Refresh:
        """Build the index anew from the files alone."""
        return self.index.rebuild(progress=progress)

    def search(
        self, query: str, *, limit: int | None = None, min_score: float | None = None,
        filters: Filters | None = None,
    ) -> Answer:  # fmt: skip
        """Hits for one query, over what is in the files now."""
        return self.search_many([query], limit=limit, min_score=min_score, filters=filters)[0]

    def search_many(
        self, queries: Sequence[str], *, limit: int | None = None, min_score: float | None = None,
        filters: Filters | None = None, progress: Progress | None = None, depth: int = 0,
        by_words: bool = False,
    ) -> list[Answer]:  # fmt: skip
        """Hits for many queries, in their order, embedded in one go unless `by_words`; what of each is asked,
        `read_query` tells. An answer is `stale` where `search.seconds` were too few to read all."""
        from ua_memory.index.sync import within
        from ua_memory.recall.search import answered

        stop = within(self.config.search_seconds)
        return answered(
            self.index, queries, self.config, limit, min_score, filters=filters, depth=depth,
            refresh=lambda: self.refresh(progress, vectors=not by_words, stop=stop), by_words=by_words,
        )  # fmt: skip

    def explain(self, query: str, now: datetime | None = None) -> Explained:
        """How a query is read when it is asked at `now`. Nothing is searched, and nothing indexed."""
        from ua_memory.index import sync
        from ua_memory.recall.search import explained

        with self.index.turn:
            words = None if sync.absent(self.store) else self.index.words
            return explained(query, self.config, now or self.store.now(), words)

    @staticmethod
    def filters(
        *, since: str | None = None, until: str | None = None, tags: Sequence[str] = (), groups: object = (),
        kinds: Sequence[str] = (), sources: Sequence[str] = (), match: str = "any_strict",
    ) -> Filters:  # fmt: skip
        """What a search may return; see `Filters`, and `read_groups` for what `groups` may be."""
        from ua_memory.index.filters import Filters, read_groups

        lists, groups = (tuple(tags), tuple(kinds), tuple(sources)), read_groups(groups)
        return Filters(since, until, *lists, match=match, groups=groups)

    # -- core memory -------------------------------------------------------------------------------------

    def core_blocks(self) -> list[CoreBlock]:
        """The blocks of MEMORY.md, in file order."""
        return core.blocks(self.store)

    def core_block(self, name: str) -> CoreBlock:
        """One block. NotFound lists those there are."""
        return core.block(self.store, name)

    def core_replace(
        self, name: str, value: str, *, expect: str | None = None, request: str | None = None,
        session: str | None = None, by_person: bool = False,
    ) -> Replaced:  # fmt: skip
        """Replace a block of core memory, or add it. `expect` is the value that was read."""
        return core.replace(
            self.store, name, value, door=self.door, expect=expect, request=request, session=session,
            by_person=by_person,
        )  # fmt: skip

    def core_budgets(self) -> list[Budget]:
        """Tokens against budgets: MEMORY.md first, then its blocks."""
        return core.budgets(self.store)

    def _budgets(self) -> tuple[Budget, ...]:
        """The same, where MEMORY.md can be read."""
        try:
            return tuple(self.core_budgets())
        except CannotWrite:  # it is one of the problems
            return (Budget("", 0, self.config.core_tokens),)

    def status(self) -> Status:
        """How the bank stands. Reads only."""
        from ua_memory.upkeep import audit

        store, seen = self.store, self.store.survey()
        head, damage = audit.newest(store)
        return Status(
            root=str(store.bank.root), trail=str(store.bank.git_dir), own=store.bank.own,
            files=len(seen.files), head=head,
            waiting=(*self.waiting(), *self.waiting_texts()),
            edited=tuple(sorted(set(seen.changed) - set(seen.held))), held=tuple(sorted(seen.held)),
            pending=tuple(doctor.pending_revisions(store)), budgets=self._budgets(),
            problems=bool(damage) + sum(1 for _ in audit.file_problems(store)), damage=damage,
            index=doctor.index_state(store), settings=self.config.problems,
        )  # fmt: skip
