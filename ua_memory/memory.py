"""`Memory`: a bank as one object that every door uses: the common verbs, and a part for everything else."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Self

from ua_memory import config as config_module
from ua_memory.config import Config
from ua_memory.errors import CannotWrite, NoBank, NotFound, Usage, at_least, checked
from ua_memory.knowledge import facts as knowledge_facts
from ua_memory.knowledge import statements
from ua_memory.knowledge.facts import InsertResult, Provenance
from ua_memory.knowledge.statements import Excerpt
from ua_memory.markdown import fields
from ua_memory.paths import is_bank, is_memory_file
from ua_memory.records import Fact, Kind, Origin, Quote
from ua_memory.store.draft import Result
from ua_memory.store.store import Store
from ua_memory.upkeep import init
from ua_memory.upkeep.init import InitResult

if TYPE_CHECKING:
    from ua_memory.git.repository import Revision
    from ua_memory.index.entities import Entities
    from ua_memory.index.filters import Filters
    from ua_memory.index.sync import Facts, Index, Refresh, Stop
    from ua_memory.knowledge.core import Budget, CoreMemory, CoreProposals
    from ua_memory.knowledge.observations import ObservationCounts
    from ua_memory.knowledge.opinions import Opinions
    from ua_memory.knowledge.sessions import SessionFiles
    from ua_memory.knowledge.statements import Progress
    from ua_memory.llm.model import Endpoint, Model, ModelOrEndpoint
    from ua_memory.llm.providers import ModelAccess
    from ua_memory.recall.arms import QueryExplanation
    from ua_memory.recall.search import ListResult, RecallResult, Searching, SearchResult
    from ua_memory.reflect.consolidate import ConsolidationResult, Observations
    from ua_memory.reflect.reflection import Directives, Reflection
    from ua_memory.reflect.refresh import MentalModels, Pages
    from ua_memory.retain.conversations import Conversations, WaitQueue
    from ua_memory.retain.extract_by_model import Mode
    from ua_memory.retain.flush import Flush, OnFlushed, Transcript
    from ua_memory.retain.queue import JobRun, QueueEntry
    from ua_memory.retain.retain import Documents, RetainResult
    from ua_memory.retain.survey import TranscriptImport, Watches
    from ua_memory.upkeep.archive import Remote
    from ua_memory.upkeep.audit import Health
    from ua_memory.upkeep.forget import ForgetResult, Forgetting
    from ua_memory.upkeep.purge import HistoryPurges, Unfinished
    from ua_memory.upkeep.undo import BankHistory


@dataclass(frozen=True, slots=True)
class Status:
    """The state of a bank: its folders, uncommitted hand edits, held and pending facts, budgets, index.
    `settings` are those that could not be read; their defaults apply."""

    root: str
    history: str
    own: bool
    head: Revision | None
    files: int
    edited: tuple[str, ...]
    held: tuple[str, ...]
    pending: tuple[str, ...]
    budgets: tuple[Budget, ...]
    problems: int | None
    """Of the files, and one for `damage`; None where they were not looked for."""
    index: Mapping[str, object] = field(default_factory=dict)
    waiting: tuple[QueueEntry, ...] = ()
    damage: str = ""
    """What is wrong with the history, as far as a quick look tells."""
    settings: tuple[str, ...] = ()
    beliefs: ObservationCounts | None = None
    """None before the first consolidation."""
    purges: tuple[Unfinished, ...] = ()
    """Purges of the history that are not finished."""
    proposals: int = 0
    """What is proposed for core memory and not decided."""
    jobs: Mapping[str, JobRun | None] = field(default_factory=dict)
    """The last run of each kind of work that is done unasked."""


def _folder(root: Path | str) -> Path:
    return Path(os.path.expanduser(root)).absolute()  # noqa: PTH111 (which raises where there is no such user)


@checked
class Memory:
    """One bank. `door` names the caller's interface and is written into every commit.

    The common verbs are methods; everything else is a method of a part: `memory.pages.list()`. A part is made
    on first use and has no state of its own.

    Methods raise the errors of `ua_memory.errors`; nothing reads the environment. Times are in the bank's
    timezone. Threads may share it.
    """

    def __init__(self, store: Store, *, door: str = "python") -> None:
        self.store, self.door = store, door
        self.init_result: InitResult | None = None  # what `init` did, if it was `init` that opened this bank
        self._index: Index | None = None
        self._making = Lock()

    @classmethod
    def open(
        cls, root: Path | str, *, config: Config | None = None, now: Callable[[], datetime] | None = None,
        door: str = "python",
    ) -> Self:  # fmt: skip
        """Open the bank in a folder. NoBank if the folder is none; `Memory.init` creates one."""
        if not (root := _folder(root)).is_dir() or not is_bank(root):
            raise NoBank("no memory bank here", where=str(root), hint=f"ua-memory init {root}")
        config = config or config_module.load(root, {})
        return cls(init.open_store(root, config, config.clock(now)), door=door)

    @classmethod
    def init(
        cls, root: Path | str, *, now: Callable[[], datetime] | None = None, timezone: str = "",
        door: str = "python",
    ) -> Memory:  # fmt: skip
        """Create a bank in a folder, or complete one, and open it. See `upkeep.init.init`."""
        done = init.init(_folder(root), now, timezone=timezone, door=door)
        memory = cls.open(done.bank.root, config=done.config, now=now, door=door)
        memory.init_result = done
        return memory

    @property
    def config(self) -> Config:
        """The settings in effect."""
        return self.store.config

    # -- the index -------------------------------------------------------------------------------------

    @property
    def index(self) -> Index:
        """The bank's index. All threads get the same object; creating it opens nothing. Usage in a process
        forked off the one that opened the bank: Chroma waits for threads that are not there."""
        from ua_memory.index.sync import Index

        if self.store.is_forked():
            hint = "open it after the fork: Memory.open(…)"
            raise Usage("the bank was opened before this process was forked", hint=hint)
        with self._making:
            if self._index is None:
                self._index = Index(self.store, embedding=self.config.embedding)
            return self._index

    def lend_index(self, index: Index) -> None:
        """Use an index that is already open: of this bank, with the same model."""
        self._index = index

    def take_index(self) -> Index | None:
        """Give up the open index and return it, None if there is none; the next use creates another."""
        index, self._index = self._index, None
        return index

    def __repr__(self) -> str:
        return f"Memory({str(self.store.bank.root)!r})"

    def __enter__(self) -> Memory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the index, so that another process may open it. Waits for a search of another thread. A
        later call opens it again. In a forked process nothing of the parent's is closed."""
        if self.store.is_forked():
            return
        if self._index is not None:
            self._index.end()
        self.store.close()

    def refresh(
        self, progress: Progress | None = None, *, vectors: bool = True, stop: Stop | None = None
    ) -> Refresh:
        """Bring the index up to date with the files, until `stop` is set; returns what changed."""
        with self.index.lock:  # what is seen is to be what is read: another thread may write meanwhile
            seen = self.store.survey()
            try:
                adopted = self.store.adopt(quiet=self.config.quiet_seconds, seen=seen, wait=False)
            except CannotWrite as error:  # on a full disk what stands in the files is found all the same
                adopted = Result(None, notes=(f"written, but not committed yet: {error}",))
            seen = self.store.survey() if adopted.notes else seen  # something was put back
            done = self.index.refresh(vectors, progress, seen, stop)
        return replace(done, notes=(*adopted.notes, *done.notes))

    # -- facts ------------------------------------------------------------------------------------------

    def insert(
        self, text: str, *, tags: Sequence[str] = (), kind: Kind = "world", when: str | date | None = None,
        entities: Sequence[str] = (), quotes: Sequence[Quote] = (), origin: Origin = "agent",
        client: str | None = None, session: str | None = None, request: str | None = None,
        said_in: Sequence[str] = (),
    ) -> InsertResult:  # fmt: skip
        """Add one fact, verbatim, to today's log. It is durable and committed on return. `said_in` are
        tags of the conversation, such as `project:shop`; they are written once, below its heading. `when` is
        a date, ISO or in words ("tomorrow"), as docs/time.md has them. With a `request`, an id of this call,
        a second one changes nothing (`.repeated`): so an import is resumed."""
        fact = Fact(
            text,
            kind=kind,
            when=knowledge_facts.read_when(self.store, when),
            tags=tuple(tags),
            entities=tuple(entities),
            quotes=tuple(quotes),
        )
        said = Provenance(self.store.now(), client or self.door, origin, session, tuple(said_in))
        return knowledge_facts.insert(
            self.store, fact, said, door=self.door, request=request,
            equal=lambda text: self.facts.equal(text),  # the index is not loaded where nothing is compared
        )  # fmt: skip

    def retire(
        self, target: str, *, why: str = "", by: str = "", by_person: bool = False
    ) -> tuple[Fact, Result]:
        """Note that a fact no longer holds since today, and `why`; `by` is the one that replaces it. It stays
        in its file, and out of searches that do not ask for the past. NotFound; Usage for what is no fact."""
        old, new = self.facts.named(target), self.facts.named(by) if by else None
        if new and new.id == old.id:
            raise Usage("a fact cannot replace itself", where=f"^{old.id}", hint="leave `by` out")
        with self.store.revision("retire", door=self.door, by_person=by_person) as draft:
            day = f"{self.store.now().astimezone(self.store.config.zone):%Y-%m-%d}"
            link = fields.link_to(draft.link_name(new.place.path), str(new.id)) if new else ""
            reasons = (day, link and f"replaced by {link}", why)
            after = knowledge_facts.retire(draft, old, ", ".join(filter(None, reasons)))
            draft.subject = f"retire: ^{after.id} in {after.place.path}"
            draft.facts = [f"^{after.id}"]
        return after, draft.result

    def get(self, target: str) -> Excerpt:
        """Read a file, lines or a fact, named in any form that a command prints: `^id`, `PATH:LINE`,
        `PATH#L3-L5`, `[[…#^id]]`. NotFound, Usage."""
        named = statements.parse_target(target)
        if said := self.sessions.named(named.file, named.id):
            file, span = said
            return statements.excerpt(file.read_bytes(), str(file), named.span or span, named.id)
        try:
            found = statements.resolve_target(self.store, target, lambda block: self.facts.files_of(block))
        except NotFound:
            if not (path := self._outside(named.file)):
                raise
            data = self.index.files.accepted_bytes(path)
            span = statements.block_span(data, path, named.id) if named.id else named.span
            return statements.excerpt(data, path, span)
        path = self._outside(found.path) or found.path
        if not is_memory_file(path) and path.strip("./") and path[0] != "/" and "../" not in path:
            which = "use MEMORY.md or a .md file under memory/, or: " if path.endswith(".md") else ""
            hint = f"{which}ua-memory search {shlex.quote(target)}"
            raise NotFound("no such file in the bank", where=path[:200], hint=hint)
        files = self.index.files if path.startswith("/") else self.store
        return statements.excerpt(files.accepted_bytes(path), path, found.span, found.id)

    def _outside(self, name: str) -> str:
        """The absolute path of a file by `extraPaths` that is named by its path or as in a link, with or
        without `.md` and any folders; '' if none is. Usage for several."""
        if not name or is_memory_file(name):
            return ""
        paths = [str(self.store.bank.root / each) for each in (name, f"{name}.md")]
        for path in paths:
            if os.path.isfile(path):  # noqa: PTH113 (no error for a long name)
                return path
        if not self.config.extra_paths:
            return ""
        end = f"/{name.removesuffix('.md')}.md".casefold()
        found = [path for path in self.index.files.paths() if path.casefold().endswith(end)]
        if len(found) > 1:
            shown = [path.removeprefix(f"{self.store.bank.root}/") for path in found]
            hint = f"specify one: {statements.list_candidates(shown)}"
            raise Usage(f"{len(found)} files have this name", where=name, hint=hint)
        return next(iter(found), "")

    def locate(self, target: str = "") -> tuple[Path, int]:
        """The file of a target, in any form that `get` takes, and its first line, 0 where all of the file is
        meant; without a target MEMORY.md. A day without a log has the file that it would be. NotFound, Usage.
        """
        from ua_memory.knowledge.core import core_path

        root = self.store.bank.root
        if not target:
            return root / core_path(self.store), 0
        try:
            found = self.get(target)
        except NotFound:
            if day := statements.named_day(target, self.store.now()):
                return root / f"memory/{day}.md", 0
            raise
        whole = found.line == 1 and found.end == found.lines
        return root / found.path, 0 if whole else found.line  # an absolute path stays as it is

    # -- search -----------------------------------------------------------------------------------------

    def search(
        self, query: str, *, limit: int | None = None, min_score: float | None = None,
        filters: Filters | None = None,
    ) -> SearchResult:  # fmt: skip
        """Hits for one query over the present files."""
        return self.search_many([query], limit=limit, min_score=min_score, filters=filters)[0]

    def search_many(
        self, queries: Sequence[str], *, limit: int | None = None, min_score: float | None = None,
        filters: Filters | None = None, progress: Progress | None = None, depth: int = 0,
        by_words: bool = False,
    ) -> Sequence[SearchResult]:  # fmt: skip
        """Hits for each query, in order, embedded together unless `by_words`. An answer is `stale` if
        `search.seconds` was too short to read all changes."""
        from ua_memory.recall.search import search_cleaned

        at_least(0, limit=limit)
        refresh = self._refresher(progress, not by_words)
        return search_cleaned(
            self.index, queries, self.config, limit, min_score, filters=filters, depth=depth, refresh=refresh,
            by_words=by_words,
        )  # fmt: skip

    def _refresher(self, progress: Progress | None = None, vectors: bool = True) -> Callable[[], Refresh]:
        """What brings the index up to date for a search, in as many seconds as that may wait from now on."""
        from ua_memory.index.sync import stop_after

        stop = stop_after(self.config.search_seconds)
        return lambda: self.refresh(progress, vectors=vectors, stop=stop)

    def explain(self, query: str, now: datetime | None = None) -> QueryExplanation:
        """How a query asked at `now` is interpreted. Nothing is searched or indexed."""
        from ua_memory.index import sync
        from ua_memory.recall.search import explain_query

        with self.index.lock:
            words = None if sync.is_missing(self.store) else self.index.words
            return explain_query(query, self.config, now or self.store.now(), words)

    def list(
        self, *, filters: Filters | None = None, person: str = "", session: str = "", day: str = "",
        limit: int | None = None, by_date: bool = False, progress: Progress | None = None,
    ) -> ListResult:  # fmt: skip
        """What is remembered, without a query: facts and notes, or the kinds of the `filters`, the newest
        first; what no longer holds only if they say so. What is about a later day stands at the day that it
        was noted, unless the filters name a time or `by_date` is set.

        `person` is a name or an alias that it contains, `session` the name or id of the session it was said
        in, or the beginning of an id, `day` an ISO day on which it was said, or that it is about. NotFound
        for a name that the bank does not know.
        """
        from ua_memory.index.filters import RECORDS, Filters
        from ua_memory.recall.search import LAST_DAY, list_items
        from ua_memory.retain.ledger import short_id

        at_least(0, limit=limit)
        names = tuple(self.entities.names(person)) if person.strip() else ()
        try:
            session = self.sessions.get(session).session if session else ""
        except NotFound:  # its words are not kept, or not here
            said = Filters(sessions=(session, short_id(session)), kinds=RECORDS, retired=True)
            if not list_items(self.index, said, 1, LAST_DAY, self._refresher(progress, vectors=False)).items:
                raise
        sessions = tuple({session, short_id(session)}) if session else ()
        where = replace(Filters() if filters is None else filters, names=names, sessions=sessions, day=day)
        today = LAST_DAY if by_date else self.store.now().date().isoformat()
        return list_items(self.index, where, limit, today, self._refresher(progress, vectors=False))

    def filters(
        self, *, since: str | date | None = None, until: str | date | None = None, tags: Sequence[str] = (),
        groups: object = (), kinds: Sequence[str] = (), sources: Sequence[str] = (),
        match: str = "any_strict", retired: bool | None = None, asked_at: datetime | None = None,
    ) -> Filters:  # fmt: skip
        """The filters of a search; see `Filters`, and `read_groups` for the form of `groups`. `since` and
        `until` may also be time words: "last week", "May", "30d"."""
        from ua_memory.index.filters import Filters, parse_day, read_groups

        lists, now = (tuple(tags), tuple(kinds), tuple(sources)), asked_at or self.store.now()
        since, until = (re.sub(r"^(\d{4}-\d\d-\d\d)[T ].*", r"\1", str(day or "")) for day in (since, until))
        first = parse_day(since, "since", now) if since else None
        last = parse_day(until, "until", now, end=True) if until else None
        groups = read_groups(groups)
        return Filters(first, last, *lists, match=match, groups=groups, retired=retired, asked_at=asked_at)

    def recall(
        self, query: str, *, budget: str = "", max_tokens: int | None = None, limit: int | None = None,
        min_score: float | None = None, filters: Filters | None = None, progress: Progress | None = None,
    ) -> RecallResult:  # fmt: skip
        """Hits for a query as a block for a prompt, marked as data, each line with date and place.

        `budget` is low, mid or high (default: recall.budget); `max_tokens` counts everything, marks included
        (default: recall.max_tokens). Without either it has as many lines as a search has hits, and at most
        9,500 characters. `filters` are
        those of `Memory.filters`. The block is empty where the search found no answer. Usage for an unknown
        budget.
        """
        from ua_memory.recall.readonly import hits_block, preset
        from ua_memory.recall.search import RecallResult, without_weak_hits

        at_least(1, max_tokens=max_tokens, limit=limit)
        budget = budget or self.config.recall_budget
        max_tokens = max_tokens or self.config.recall_max_tokens
        most, depth, lines = 0, 0, None
        if budget or max_tokens:
            chosen = preset(budget, max_tokens)
            most, depth, lines = chosen.tokens, chosen.depth, min(chosen.lines, 1000)
        found = self.search_many(
            [query], limit=limit or lines, min_score=min_score, filters=filters, progress=progress,
            depth=depth,
        )[0]  # fmt: skip
        return RecallResult(*hits_block(without_weak_hits(found, query), most), most, found)

    # -- with or without a model ------------------------------------------------------------------------

    @staticmethod
    def endpoint(api_key: str = "", base_url: str = "", model: str = "") -> Endpoint | None:
        """The model's endpoint from key, URL and name; None if neither key nor URL is given."""
        from ua_memory.llm.model import Endpoint

        given = api_key.strip() or base_url.strip()
        return Endpoint(api_key.strip(), base_url.strip(), model.strip()) if given else None

    def flush(
        self, transcript: Transcript | None = None, *, model: ModelOrEndpoint = None, force: bool = False,
        client: str | None = None, session: str | None = None, tags: Sequence[str] = (),
        tell: Progress | None = None, done: OnFlushed | None = None,
    ) -> Flush:  # fmt: skip
        """Save what matters of a conversation, and of all that waits; one commit for each session.

        `transcript` is a list of messages (`role`, `content`, `timestamp`), or a stream of any client's: of
        that nothing is saved below the threshold unless `force`d; its facts get the `tags`. Without one, what
        waits is flushed. Without a `model` the speakers' own sentences are kept. `tell` hears how far it is,
        `done` of each session as soon as it is committed.

        Raises what the transcript (Malformed), the model (ModelUnavailable, KeyRejected, RequestRejected,
        ModelRefused, ModelMisbehaved, BudgetSpent) or the store raises: the turns wait then.
        """
        flushed = self.conversations.flush(
            transcript, model=model, force=force, client=client, session=session, tags=tags, tell=tell,
            done=done,
        )  # fmt: skip
        if flushed.due is None or flushed.was_read:
            return flushed
        return replace(
            flushed, notes=(*flushed.notes, f"not flushed: {flushed.due}; force=True flushes it now")
        )

    def retain(
        self, text: str, *, document_id: str = "", source: str = "", append: bool = False,
        mode: Mode = "concise", mission: str = "", instructions: str = "", context: str = "",
        timestamp: datetime | None = None, tags: Sequence[str] = (), origin: Origin = "agent",
        client: str | None = None, session: str | None = None, request: str | None = None,
        redo: bool = False, model: ModelOrEndpoint = None, tell: Progress | None = None,
    ) -> RetainResult:  # fmt: skip
        """Extract the facts of a text, now; one commit.

        With a `document_id` they go into that document's file: chunks of it that are there already cost
        nothing and keep their facts, those that are gone take theirs with them; `append` adds. Without one
        they go into the day's log, and the same text again changes nothing. Without a `model`, and in the
        mode `chunks`, the author's own words are kept.

        Raises what the model (ModelUnavailable, KeyRejected, RequestRejected, ModelRefused, ModelMisbehaved,
        BudgetSpent) or the store raises: the text waits then, and `queue retry` goes on.
        """
        item = self.documents.item(
            text, document_id=document_id, source=source, append=append, mode=mode, mission=mission,
            instructions=instructions, context=context, timestamp=timestamp, tags=tags, origin=origin,
            client=client, session=session, request=request, redo=redo,
        )  # fmt: skip
        return self.documents.retain([item], model=model, tell=tell)[0]

    def reflect(
        self, question: str, *, model: ModelOrEndpoint = None, budget: str = "low",
        max_tokens: int | None = None, schema: Mapping[str, Any] | None = None, context: str = "",
        filters: Filters | None = None, keep_opinion: bool = False,
    ) -> Reflection:  # fmt: skip
        """Answer a question from memory: mental models first, then observations, then facts, all cited.

        `budget` is low, mid or high: turns, hits and tokens. `max_tokens` bounds the answer's text, `schema`
        is a JSON schema for a structured answer beside it, `filters` what may be found at all. With
        `keep_opinion` what the model comes to think is written to memory/opinions.md; else nothing is.
        Without a model the evidence is returned; where there is none, no model is asked.

        Raises Usage for a question, budget or schema that is none, and what the model raises: then there is
        no answer, and nothing was kept.
        """
        from ua_memory.reflect.reflection import Reflector

        at_least(1, max_tokens=max_tokens)
        reflector = Reflector(self.store, self.door, self.access, self.search, self.observations.list)
        return reflector.reflect(
            question, model=model, budget=budget, max_tokens=max_tokens or 0, schema=schema, context=context,
            filters=filters, keep_opinion=keep_opinion,
        )  # fmt: skip

    def consolidate(
        self, *, model: ModelOrEndpoint = None, limit: int | None = None, usd: float | None = None,
        retry: bool = False, accept: bool = False, batch_api: bool = False,
        tell: Progress | None = None,
        after: Callable[[ConsolidationResult, Model | None], None] | None = None,
    ) -> ConsolidationResult:  # fmt: skip
        """Hold the facts that no run has considered against the observations; one commit, or none.

        Without a `model` they are only compared. `limit` is how many facts a run takes, `usd` what it may
        cost if that is less than the settings say. `retry` takes up facts that were set aside, `accept` lets
        more than a quarter of the observations be retired. With `batch_api` facts are posted at half the
        price, and a later run collects the answers. `after` hears of the run and may ask on, within
        the same `usd`.

        Busy while another run is at it. What a model raises ends the run, and is in the result.
        """
        from ua_memory.reflect.consolidate import ConsolidationRun, summarize
        from ua_memory.retain.queue import Jobs

        with self.access.open(model, usd) as asked:
            run = ConsolidationRun(
                self.store, door=self.door, model=asked, limit=limit, retry=retry, accept=accept, tell=tell,
                batch_api=batch_api, clean=self.store.redacted,
            )  # fmt: skip
            with Jobs(self.store).record_run("consolidate") as note:
                done = run.run()
                note.result, note.error = summarize(done.changes, done.facts), done.ended
                note.unfinished = bool(done.left)
            if after:
                after(done, asked)
        return done

    # -- upkeep -----------------------------------------------------------------------------------------

    def forget(
        self, *targets: str, query: str = "", session: str = "", entity: str = "", limit: int | None = None,
        dry_run: bool = False, take: bool = False, by_person: bool = False,
    ) -> ForgetResult:  # fmt: skip
        """Remove statements, and what was derived only from them, from files, index, caches and what waits.

        `targets` are `^id`, `PATH:LINE` or `PATH:FROM-TO`; `query` means what contains all of its words, at
        most `limit`; `session` what was said in it, `entity` what is known of somebody. A person's own lines
        that quote it go only with `take`. `dry_run` changes nothing; who asks is the author (`by_person`).
        NotFound where nothing is meant; Held, ChangedOnDisk, Busy, TooLarge.
        """
        return self.forgetting.forget(
            *targets, query=query, session=session, entity=entity, limit=limit, dry_run=dry_run, take=take,
            by_person=by_person,
        )  # fmt: skip

    def _budgets(self) -> tuple[Budget, ...]:
        """Tokens against budgets, where MEMORY.md can be read."""
        from ua_memory.knowledge.core import Budget

        try:
            return tuple(self.core.budgets())
        except CannotWrite:  # it is one of the problems
            return (Budget("", 0, self.config.core_tokens),)

    def _proposal_count(self) -> int:
        """The number of proposals for core memory; 0 where MEMORY.md cannot be read."""
        try:
            return len(self.proposals.list())
        except CannotWrite:  # it is one of the problems
            return 0

    def status(self, *, quick: bool = False) -> Status:
        """The state of the bank. Reads only; with `quick` nothing that takes longer the more there is: no
        problems, no damage, beliefs or proposals."""
        from ua_memory.retain.queue import Jobs
        from ua_memory.upkeep import audit, doctor

        store, seen = self.store, self.store.survey()
        bank, purging = store.bank, (store.bank.state / "purges.json").exists()
        consolidated = (bank.root / "memory/observations", bank.pending / "consolidation-batch.json")
        head, damage = (
            (next(iter(store.history.log(limit=1)), None), "") if quick else audit.newest_revision(store)
        )
        whole = not quick
        return Status(
            root=str(store.bank.root), history=str(store.bank.git_dir), own=store.bank.own,
            files=len(seen.files), head=head,
            waiting=tuple(self.queue.list()),
            edited=tuple(sorted(set(seen.changed) - set(seen.held))), held=tuple(sorted(seen.held)),
            pending=tuple(doctor.pending_revisions(store)), budgets=self._budgets(),
            problems=bool(damage) + sum(1 for _ in audit.quick_problems(store)) if whole else None,
            damage=damage, index=doctor.index_state(store), settings=self.config.problems,
            beliefs=self.observations.counts() if whole and any(map(os.path.exists, consolidated)) else None,
            purges=tuple(self.purges.unfinished()) if purging else (),
            proposals=self._proposal_count() if whole and not damage else 0, jobs=Jobs(store).all(),
        )  # fmt: skip

    # -- parts -----------------------------------------------------------------------------------------

    @cached_property
    def core(self) -> CoreMemory:
        """The blocks of MEMORY.md."""
        from ua_memory.knowledge.core import CoreMemory

        return CoreMemory(self.store, self.door)

    @cached_property
    def proposals(self) -> CoreProposals:
        """What is proposed for core memory."""
        from ua_memory.index.sync import files_with_facts
        from ua_memory.knowledge.core import CoreProposals

        return CoreProposals(
            self.store, self.door, lambda revision: self.history.undo(revision, by_person=True).result,
            lambda: files_with_facts(self.store, "preference", "person"),
        )  # fmt: skip

    @cached_property
    def facts(self) -> Facts:
        """Facts and other statements, by id and by exact text."""
        from ua_memory.index.sync import Facts

        return Facts(self.store, lambda: self.index, self.door)

    @cached_property
    def searching(self) -> Searching:
        """What there is to know about a search besides its hits."""
        from ua_memory.recall.search import Searching

        return Searching(self.store, lambda: self.index, lambda: self._refresher()(), self.get)

    @cached_property
    def entities(self) -> Entities:
        """The names of the bank."""
        from ua_memory.index.entities import Entities

        return Entities(self.store, self.door, lambda: self.index)

    @cached_property
    def observations(self) -> Observations:
        """Observations that consolidation created from facts."""
        from ua_memory.reflect.consolidate import Observations

        return Observations(self.store, self.door, self.facts)

    @cached_property
    def opinions(self) -> Opinions:
        """The agent's opinions."""
        from ua_memory.knowledge.opinions import Opinions

        return Opinions(self.store, self.door)

    @cached_property
    def directives(self) -> Directives:
        """The hard rules for `reflect`."""
        from ua_memory.reflect.reflection import Directives

        return Directives(self.store, self.door)

    @cached_property
    def pages(self) -> Pages:
        """Knowledge pages, and their refreshes."""
        from ua_memory.reflect.refresh import Pages

        return Pages(self.store, self.door, self.access, lambda: self.facts, self.search, self.refresh)

    @cached_property
    def models(self) -> MentalModels:
        """Mental models."""
        from ua_memory.reflect.refresh import MentalModels

        return MentalModels(self.store, self.door, self.access, lambda: self.facts, self.search, self.refresh)

    @cached_property
    def conversations(self) -> Conversations:
        """Flush, preview and queue conversations."""
        from ua_memory.retain.conversations import Conversations

        return Conversations(self.store, self.door, self.access, lambda: self.facts.lookup(), self.search)

    @cached_property
    def sessions(self) -> SessionFiles:
        """What was said in sessions, word for word."""
        from ua_memory.knowledge.sessions import SessionFiles

        return SessionFiles(self.store)

    @cached_property
    def transcripts(self) -> TranscriptImport:
        """The sessions in clients' transcripts."""
        from ua_memory.retain.survey import TranscriptImport

        return TranscriptImport(self.store, self.access, self.conversations)

    @cached_property
    def documents(self) -> Documents:
        """Texts and files that are retained."""
        from ua_memory.retain.retain import Documents

        return Documents(self.store, self.door, self.access, lambda: self.facts.lookup())

    @cached_property
    def queue(self) -> WaitQueue:
        """Conversations and texts waiting for a model."""
        from ua_memory.retain.conversations import WaitQueue

        return WaitQueue(
            self.store, self.access, lambda *a: self.conversations.flusher(*a),
            lambda *a: self.documents.retainer(*a),
        )  # fmt: skip

    @cached_property
    def watches(self) -> Watches:
        """Files outside the bank that are retained when they change."""
        from ua_memory.retain.survey import Watches

        return Watches(self.store, self.documents, self.queue)

    @cached_property
    def history(self) -> BankHistory:
        """Revisions: list, diff, blame, undo."""
        from ua_memory.upkeep.undo import BankHistory

        return BankHistory(self.store, self.door, lambda block: self.facts.files_of(block))

    @cached_property
    def health(self) -> Health:
        """Checks and counts."""
        from ua_memory.upkeep.audit import Health

        return Health(self.store, lambda: self.forgetting.finish())

    @cached_property
    def forgetting(self) -> Forgetting:
        """Forgetting, for good."""
        from ua_memory.upkeep.forget import Forgetting

        return Forgetting(self.store, self.door, lambda: self.index, self.search, self.entities.get)

    @cached_property
    def purges(self) -> HistoryPurges:
        """Removing forgotten statements from the history."""
        from ua_memory.upkeep.purge import HistoryPurges

        return HistoryPurges(self.store, self.door)

    @cached_property
    def remote(self) -> Remote:
        """Other machines: sync, and archives."""
        from ua_memory.upkeep.archive import Remote

        return Remote(self.store, self.door, lambda: self.index)

    @cached_property
    def access(self) -> ModelAccess:
        """Opens the models that are asked."""
        from ua_memory.llm.providers import ModelAccess

        return ModelAccess(self.store)
