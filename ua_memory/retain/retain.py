"""Retain: extract the facts of a text into the day's log or a document's file, in one commit; and its
preview."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ua_memory.clients.messages import text_parts
from ua_memory.errors import Busy, TooLarge, Usage, checked
from ua_memory.git.repository import Revision
from ua_memory.knowledge import entities, tombstones
from ua_memory.knowledge import facts as knowledge_facts
from ua_memory.knowledge.facts import FindEqual, Provenance
from ua_memory.knowledge.statements import Progress
from ua_memory.llm.ledger import MODEL_TOKENS, Estimate, estimate_of
from ua_memory.llm.model import Endpoint, Model, ModelOrEndpoint
from ua_memory.llm.model import TokenUsage as Tokens
from ua_memory.llm.tools import schema
from ua_memory.records import Fact, Origin, SourceDocument
from ua_memory.retain import documents, extract_by_model
from ua_memory.retain.documents import KnownDocument, Upsert, with_cause
from ua_memory.retain.extract import extract_without_model
from ua_memory.retain.extract_by_model import (
    Chunk,
    ChunkExtractor,
    ExtractedChunk,
    Mode,
    TextContext,
    split_text,
)
from ua_memory.retain.queue import QueueEntry, TextItem, TextQueue
from ua_memory.retain.subagent import one_line
from ua_memory.store.draft import Draft
from ua_memory.store.store import Store
from ua_memory.text import tokens
from ua_memory.text.dates import parse_when
from ua_memory.text.wording import WHERE_SAID, counted

if TYPE_CHECKING:
    from ua_memory.llm.providers import ModelAccess


@dataclass(frozen=True, slots=True)
class RetainResult:
    """What became of one text. `by` names the model, '' if the author's own sentences were extracted;
    `chunks` is how many it has, `read` how many of them were read now. `repeated`: it was retained before,
    and nothing was done; `removed` are the facts of removed chunks, `kept` a person's lines in these, which
    stayed; `refused` is what a model proposed and the text does not support."""

    item: TextItem
    path: str = ""
    by: str = ""
    chunks: int = 0
    read: int = 0
    facts: tuple[Fact, ...] = ()
    seen_again: tuple[Fact, ...] = ()
    removed: tuple[Fact, ...] = ()
    kept: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    repeated: bool = False
    revision: str | None = None
    notes: tuple[str, ...] = ()
    redacted: Mapping[str, int] = field(default_factory=dict)
    usage: Tokens = field(default_factory=Tokens)


# -- retain ------------------------------------------------------------------------------------------------
# A text is queued first, so that no later failure loses it. The facts of each chunk are saved in the queue as
# soon as it is read; all are written to a day's log or the document's file as one revision; then the text
# leaves the queue.


TEXT_TRAILER = "Text"
"""The trailer with the hash of a text that has no document id."""


class Retainer:
    """Retains into one bank. `tell(done, total)` is called with the number of chunks read."""

    def __init__(
        self, store: Store, lookup: Callable[[], FindEqual], *, door: str, model: Model | None = None,
        tell: Progress | None = None,
    ) -> None:  # fmt: skip
        self.store, self.lookup, self.door = store, lookup, door
        self.model, self.tell = model, tell
        self.redacted: Counter[str] = Counter()
        self.items = TextQueue(store.bank.pending, partial(store.redacted, counts=self.redacted))

    def enqueue(self, item: TextItem, *, for_model: bool) -> str:
        """Queue a text and return its key; it is on the disk, without secrets, on return."""
        if not item.text.strip():
            what = "the file is empty" if item.source.startswith("/") else "no text given to retain"
            raise Usage(what, where=item.source)
        key = hashlib.sha256(item.request.encode("utf-8", "replace")).hexdigest()[:10]
        self.store.make_state()
        self.items.put_text(key, item, at=self.store.now(), for_model=for_model)
        return key

    def retain_entry(self, key: str, patience: float, *, unasked: bool = False) -> RetainResult | None:
        """Retain the text under a key; None if there is none, or if it is set aside and this run is
        `unasked`. Raises what the model and the store raise; the text then stays queued."""
        with self.items.attempt(key, patience, self.store.now, unasked=unasked) as entry:
            if entry is None or entry.item is None:
                return None
            stays = "nothing was written, and the text is queued"
            for_model = self.model is not None
            with self.items.recording_failure(key, self.store.now, stays, for_model=for_model):
                done = self._retain(entry, entry.item)
            self.items.remove(key)
            return done

    def drain(self) -> list[RetainResult]:
        """Retain the whole queue, except what is set aside or claimed by another process. Without a model
        this includes texts that are meant for one, as with conversations."""
        done = []
        for entry in self.items.all():
            if entry.set_aside:
                continue
            try:
                one = self.retain_entry(entry.key, 0)
            except Busy:
                continue
            done += [one] if one else []
        return done

    def drop_document(self, document_id: str) -> RetainResult:
        """Remove the facts of a document that no longer exists, and its file unless a person wrote in it."""
        item = TextItem("", self.store.now(), document_id)
        known = documents.find(self.store, document_id)
        with self.store.revision("retain", door=self.door) as draft:
            done = documents.clear(self.store, draft, known, item) if known.exists else Upsert()
            draft.subject = f"retain: remove {counted(len(done.removed), 'fact')} with {known.path}"
        return RetainResult(
            item, known.path, removed=tuple(done.removed), kept=tuple(done.kept),
            revision=draft.result.revision, notes=draft.result.notes,
        )  # fmt: skip

    def _retain(self, entry: QueueEntry, item: TextItem) -> RetainResult:
        before = self.store.find_request(item.request) or self._seen_before(item)
        if before is not None:
            paths = [path for path in before.paths if path.endswith(".md")]
            return RetainResult(item, paths[0] if paths else "", repeated=True, revision=before.id or None)
        known, chunks, unread = _read_state(self.store, item)
        todo = list({chunk.name: chunk for chunk in unread}.values())
        if known is not None and not todo and (item.append or tuple(c.name for c in chunks) == known.chunks):
            return RetainResult(item, known.path, chunks=len(chunks))
        found, usage = self._read(entry, item, todo)
        who = entities.entity_records(self.store)
        forgotten = tombstones.read(self.store)
        extracted = {name: one.settle_names(who).without(forgotten.matches) for name, one in found.items()}
        lost = sum(len(one.facts) - len(extracted[name].facts) for name, one in found.items())
        done = self._write(item, known, chunks, extracted)
        talked = sum(each.talked for each in extracted.values())
        notes = []
        if talked and self.model:
            notes.append(
                f"{self.model.name} called no tool for {talked} of {len(todo)} chunks; of these the author's "
                "own sentences were kept (another UA_MEMORY_MODEL would do better)"
            )
        notes += tombstones.refused_note(lost)
        return replace(
            done, chunks=len(chunks), read=len(todo), notes=(*notes, *done.notes),
            by=self.model.name if self.model and item.mode != "chunks" else "",
            refused=tuple(text for each in extracted.values() for text in each.refused),
            usage=usage,
        )  # fmt: skip

    def _read(
        self, entry: QueueEntry, item: TextItem, todo: Sequence[Chunk]
    ) -> tuple[dict[str, ExtractedChunk], Tokens]:
        """The facts of the chunks; those that an earlier attempt has extracted with a model are in the
        entry."""
        brief = self.context_of(item)
        reader = ChunkExtractor(self.model, brief) if self.model and item.mode != "chunks" else None
        found: dict[str, ExtractedChunk] = {}
        for number, chunk in enumerate(todo):
            if self.tell:
                self.tell(number, len(todo))
            extracted = entry.chunks_read.get(chunk.name) if reader else None
            if extracted is None:
                extracted = reader.extract(chunk) if reader else ExtractedChunk()
                if not reader or (extracted.talked and not extracted.facts):
                    extracted = replace(extract_without_model(chunk, brief), talked=extracted.talked)
                if reader:
                    self.items.add_chunk(entry.key, chunk.name, extracted)
            found[chunk.name] = extracted
        return found, reader.usage if reader else Tokens()

    def context_of(self, item: TextItem) -> TextContext:
        """The context of a text."""
        at, mission = item.at.astimezone(self.store.now().tzinfo), item.mission or self.store.config.mission
        title = item.document_id.replace("\\", "/").rpartition("/")[2]
        return TextContext(at, item.mode, title, item.context, mission, item.instructions, item.tags)

    # -- writing -----------------------------------------------------------------------------------

    def _write(
        self, item: TextItem, known: KnownDocument | None, chunks: Sequence[Chunk],
        extracted: Mapping[str, ExtractedChunk],
    ) -> RetainResult:  # fmt: skip
        with self.store.revision(
            "retain", door=self.door, request=item.request, session=item.session or None
        ) as draft:
            before = draft.already_done or self._seen_before(item)  # by another process meanwhile
            if before is None:
                draft.even_if_empty = True  # so that the text is not read again
                for_model = self.model is not None and item.mode in ("concise", "custom")
                if known is None:
                    done = self._write_to_log(draft, item, chunks, extracted, for_model)
                else:
                    done = self._write_to_document(draft, item, known, chunks, extracted, for_model)
                draft.facts = [f"^{fact.id}" for fact in (*done.facts, *done.seen_again)]
        if before is not None:
            return RetainResult(item, repeated=True, revision=before.id or None)
        placed = knowledge_facts.find_committed(self.store, done.facts)
        result = draft.result
        return replace(
            done, facts=placed, revision=result.revision, notes=(*done.notes, *result.notes),
            redacted=dict(Counter(result.redacted) + self.redacted),
        )  # fmt: skip

    def _write_to_log(
        self, draft: Draft, item: TextItem, chunks: Sequence[Chunk], extracted: Mapping[str, ExtractedChunk],
        for_model: bool,
    ) -> RetainResult:  # fmt: skip
        at, heading = self.context_of(item).at, _heading_origin(item.origin, for_model)
        where = (*item.said_in, *item.metadata)
        said = Provenance(at, item.client or "retain", heading, item.session or None, where)
        equal, new, again, notes = self.lookup(), list[Fact](), list[Fact](), list[str]()
        times = {chunk.name: MessageTimes(chunk, at, self.store.now()) for chunk in chunks}
        for name, one in extracted.items():
            placed: dict[int, Fact] = {}
            for n, fact in enumerate(one.facts):
                cause = placed.get(one.causes.get(n, -1))
                cause_path = cause.place.path if cause else ""
                fact = with_cause(draft, _with_origin(fact, item.origin, said.origin), cause, cause_path)
                try:
                    sent = replace(said, at=times[name].of(fact) or at)
                    placed[n], seen = knowledge_facts.add(draft, fact, sent, equal)
                except (Usage, TooLarge) as error:
                    notes.append(f"left out, since it cannot be written: {fact.text[:80]} ({error.what})")
                    continue
                (again if seen else new).append(placed[n])
        draft.trailers[TEXT_TRAILER] = [self._hash(item)]
        paths = list(dict.fromkeys(fact.place.path for fact in (*new, *again)))
        path = paths[0] if paths else ""
        into = f" into {path if len(paths) == 1 else counted(len(paths), 'log')}" if paths else ""
        draft.subject = f"retain: {_summary(new, again)}{into}"
        return RetainResult(item, path, facts=tuple(new), seen_again=tuple(again), notes=tuple(notes))

    def _write_to_document(
        self, draft: Draft, item: TextItem, known: KnownDocument, chunks: Sequence[Chunk],
        extracted: Mapping[str, ExtractedChunk], for_model: bool,
    ) -> RetainResult:  # fmt: skip
        heading = _heading_origin(item.origin, for_model)
        said = Provenance(self.store.now(), item.client or "retain", heading, None)
        own, at = dict[str, ExtractedChunk](), self.context_of(item).at
        for chunk in chunks:
            if one := extracted.get(chunk.name):
                times = MessageTimes(chunk, at, self.store.now())
                facts = (_with_origin(times.dated(fact), item.origin, heading) for fact in one.facts)
                own[chunk.name] = replace(one, facts=tuple(facts))
        done = documents.put(self.store, draft, known, item, said.heading, chunks, own)
        gone = f", {len(done.removed)} gone" if done.removed else ""
        draft.subject = f"retain: {_summary(done.added)}{gone} in {known.path}"
        return RetainResult(
            item, known.path, facts=tuple(done.added), removed=tuple(done.removed),
            kept=tuple(done.kept), notes=tuple(done.notes),
        )  # fmt: skip

    # -- repetitions -------------------------------------------------------------------------------

    def _seen_before(self, item: TextItem) -> Revision | None:
        """The revision that retained the same text without a document id, unless it was undone."""
        if item.document_id or item.redo:
            return None
        found = self.store.history.with_trailer(TEXT_TRAILER, self._hash(item))
        undone = self.store.history.undone_revisions()
        current = [each for each in found if each.id not in undone][:1]
        return next(iter(self.store.history.with_paths(current)), None)

    def _hash(self, item: TextItem) -> str:
        """The hash of a text, salted with the bank's id so that a short secret cannot be guessed from it."""
        asked = "" if item.mode == "concise" else f"{item.mode}\0{item.instructions}"
        text = f"{self.store.config.id}\0{asked}\0{item.text}"
        return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:20]


def _read_state(
    store: Store, item: TextItem
) -> tuple[KnownDocument | None, Sequence[Chunk], Sequence[Chunk]]:
    """The document of a text, if it has one, the text's chunks, and those not read yet. In another mode other
    facts are extracted, so known chunks are read again."""
    chunks = split_text(item.text)
    known = documents.find(store, item.document_id) if item.document_id else None
    known_chunks = () if known is None or item.redo or known.mode != item.mode else known.chunks
    return known, chunks, [chunk for chunk in chunks if chunk.name not in known_chunks]


class MessageTimes:
    """When the messages of a chunk of a chat or a mail were sent; `written` is when the text was."""

    def __init__(self, chunk: Chunk, written: datetime, now: datetime) -> None:
        parts = text_parts(chunk.above + chunk.text, written, chunk.form) if chunk.form.stamps else ()
        sent = ((one_line(part.text), part.at) for part in parts if part.at and part.at != written)
        self._parts = [(text, at) for text, at in sent if at <= max(now, written)]

    def of(self, fact: Fact) -> datetime | None:
        """When a fact was said, None if no message with its words has a day."""
        quote = one_line(fact.quotes[0].text if fact.quotes else fact.text)
        return next((at for text, at in self._parts if quote in text), None)

    def dated(self, fact: Fact) -> Fact:
        """The fact, with the day of its message unless it names another: a document has no day of its own."""
        at = self.of(fact)
        return replace(fact, when=f"{at:%Y-%m-%d}") if at and not fact.when else fact


def _heading_origin(origin: Origin, modelled: bool) -> Origin:
    """The origin that a heading names: a model's wording is not a person's."""
    return "agent" if modelled and origin == "person" else origin


def _with_origin(fact: Fact, origin: Origin, heading_origin: Origin) -> Fact:
    """The fact with the author's origin if it is verbatim but its heading has another origin."""
    return fact if origin == heading_origin or fact.quotes else replace(fact, origin=origin)


def _summary(new: Sequence[Fact], again: Sequence[Fact] = ()) -> str:
    facts = counted(len(new), "fact")
    return f"{facts}, {len(again)} already known" if again else facts


# -- preview -----------------------------------------------------------------------------------------------


_TOOL_TOKENS = 350
"""Tokens that the API adds to a request with a tool."""


@dataclass(frozen=True, slots=True)
class RetainPreview:
    """What retaining a text would do: its chunks, those to be read, the facts saved without a model and, if
    there is a model, its cost."""

    item: TextItem
    chunks: int
    read: int
    facts: tuple[Fact, ...]
    cost: Estimate | None


def preview_text(
    store: Store, brief: TextContext, item: TextItem, model: Endpoint | Model | None
) -> RetainPreview:
    """The preview of one text; costs are rounded up."""
    known, chunks, todo = _read_state(store, item)
    facts = tuple(
        MessageTimes(chunk, brief.at, store.now()).dated(fact) if known else fact
        for chunk in todo for fact in extract_without_model(chunk, brief).facts
    )  # fmt: skip
    asks = model is not None and item.mode != "chunks" and bool(todo)
    cost = _estimate([chunk.text for chunk in todo], brief, model) if asks and model else None
    return RetainPreview(item, len(chunks), len(todo), facts, cost)


def _estimate(texts: list[str], brief: TextContext, model: Endpoint | Model) -> Estimate:
    tool = schema("describe" if brief.mode == "verbatim" else "keep")
    head = tokens.count(extract_by_model.directive(brief)) + tokens.count(json.dumps(tool)) + _TOOL_TOKENS
    total, behind, grown, requests = 0, 0, 0, list[Tokens]()
    for text in texts:
        size = int(tokens.count(extract_by_model.prompt_text(text, brief)) * MODEL_TOKENS)
        if grown + 2 * len(text) > extract_by_model.CONVERSATION_LENGTH:
            behind = grown = 0
        fresh = size if behind else size + int(head * MODEL_TOKENS)
        total += behind + fresh
        requests.append(Tokens(cache_read=behind, cache_write=fresh, output=size))
        behind += fresh + size  # the answer, about as long as the text, goes back with the next
        grown += 2 * len(text)
    return estimate_of(model, total, requests)


# -- texts and files ---------------------------------------------------------------------------------------


_KEY = re.compile(r"[A-Za-z][\w.-]{0,39}")
LONGEST_VALUE = 200
"""Characters of a value of metadata."""


def as_tags(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """Metadata as tags `key:value`. Usage for keys that are reserved for scopes, and for values that no tag
    can hold."""
    found = []
    for key, value in metadata.items():
        text = str(value).strip()
        if not _KEY.fullmatch(key) or key in WHERE_SAID:
            raise Usage(f"{key[:80]!r} cannot be a key of metadata", hint="use a word such as ticket")
        if isinstance(value, dict | list) or not text.isprintable() or not 0 < len(text) <= LONGEST_VALUE:
            hint = f"use one line of at most {LONGEST_VALUE} characters"
            raise Usage(f"the value of {key!r} cannot be metadata", hint=hint)
        found.append(f"{key}:{text}")
    return tuple(found)


LINE_KEYS = {"text", "document_id", "append", "mode", "mission", "instructions", "context", "timestamp",
             "tags", "origin", "session", "request", "metadata"}  # fmt: skip
"""The keys of a text in JSON Lines (`Documents.read_lines`)."""


def _part_progress(tell: Progress, before: int, size: int, total: int) -> Progress:
    """A callback for a part of the work, which begins at `before` and has `size` of `total`."""
    return lambda done, of: tell(before + size * done // max(of, 1), total)


@checked
class Documents:
    """Retains texts and files in one bank. `door` names the caller, `lookup` finds facts by exact text."""

    def __init__(self, store: Store, door: str, models: ModelAccess, lookup: Callable[[], FindEqual]) -> None:
        self._store, self._door, self._models, self._lookup = store, door, models, lookup

    def item(
        self, text: str, *, document_id: str = "", source: str = "", append: bool = False,
        mode: Mode = "concise", mission: str = "", instructions: str = "", context: str = "",
        timestamp: datetime | None = None, tags: Sequence[str] = (), origin: Origin = "agent",
        client: str | None = None, session: str | None = None, request: str | None = None,
        redo: bool = False, said_in: Sequence[str] = (), metadata: Mapping[str, Any] | None = None,
    ) -> TextItem:  # fmt: skip
        """A text with its options, as `retain` takes it. `timestamp` (aware) is when it was said or written,
        else the day in its title, else now; `request` is an id of this call, so that a repetition changes
        nothing; `said_in` are scope tags. `metadata` becomes tags `key:value`. Usage for an unknown mode or
        origin, and for metadata that cannot be tags."""
        if mode not in extract_by_model.MODES:
            raise Usage(f"{mode!r} is not a mode", hint=f"use {', '.join(extract_by_model.MODES)}")
        if mode == "custom" and not instructions.strip():
            raise Usage("the mode custom needs instructions")
        knowledge_facts.require_origin(origin)
        if append and not document_id:
            raise Usage("append needs a document_id to append to")
        now = self._store.now()
        at = timestamp or documents.day_of_text(text, now) or now
        return TextItem(
            text, at, document_id, source, append, mode, mission, instructions, context,
            tuple(tags), client or self._door, session or "", origin,
            request or f"retain-{secrets.token_hex(8)}", redo,
            tuple(said_in), as_tags(metadata or {}),
        )  # fmt: skip

    def all(self) -> Sequence[tuple[SourceDocument, tuple[str, ...], int]]:
        """The documents of the bank, each with its tags and the number of its facts."""
        return documents.list_documents(self._store)

    def read(self, path: Path, **more: Any) -> TextItem:
        """A file outside the bank as a text: markdown, plain text and, with the extra `ingest`, HTML, PDF and
        DOCX. Its id is its path unless `document_id` is given; its time is the day in its name, or when it
        was last saved. `more` as for `item`. Usage, NotFound, Malformed, TooLarge."""
        text, where, at = documents.read(self._store, path)
        more = {**more, "document_id": more.get("document_id") or where, "source": where}
        return self.item(text, **{**more, "timestamp": more.get("timestamp") or at})

    def read_lines(self, data: bytes, **common: Any) -> list[TextItem]:
        """Texts from JSON Lines, objects with keys of `LINE_KEYS`; these override `common`, which are as for
        `item`. Usage with the number of a wrong line, or if there is none."""
        items = []
        for number, line in enumerate(data.decode("utf-8-sig", "replace").splitlines(), 1):
            if not line.strip():
                continue
            where, hint = f"line {number}", f"known keys: {', '.join(sorted(LINE_KEYS))}"
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise Usage(f"not JSON: {error}", where=where) from None
            if not isinstance(row, dict) or not isinstance(row.get("text"), str) or row.keys() - LINE_KEYS:
                raise Usage("not an object with a text and known keys", where=where, hint=hint)
            if "timestamp" in row:
                row["timestamp"] = self.moment(str(row["timestamp"]), where)
            items.append(self.item(row.pop("text"), **{**common, **row}))
        if not items:
            raise Usage("no text given", hint="one JSON object a line: text, document_id, …")
        return items

    def moment(self, text: str | None, where: str = "--timestamp") -> datetime | None:
        """Parse a time, in the bank's timezone if it names none. Usage, with `where`."""
        if text is None:
            return None
        now, iso = self._store.now(), text
        try:
            with suppress(ValueError):
                iso = parse_when(text, now)
            at = datetime.fromisoformat(iso)
        except (ValueError, OverflowError):
            hint = "use 2026-11-21, 2026-11-21T14:32, or words: yesterday at 15:00"
            raise Usage(f"{text!r} is not a valid time", where=where, hint=hint) from None
        return at if at.tzinfo else at.replace(tzinfo=now.tzinfo)

    def retain(
        self, items: Iterable[TextItem], *, model: ModelOrEndpoint = None, tell: Progress | None = None
    ) -> list[RetainResult]:
        """Retain several texts, each in one commit, in order; all are queued first. `tell` reports the chunks
        of all of them."""
        with self._models.open(model) as opened:
            retainer = self.retainer(opened)
            sizes = {}
            for item in items:
                key = retainer.enqueue(item, for_model=opened is not None)
                sizes[key] = max(1, len(split_text(item.text)) if tell else 1)
            done, total, found = 0, sum(sizes.values()), list[RetainResult]()
            for key, size in sizes.items():
                if tell:
                    tell(done, total)
                    retainer.tell = _part_progress(tell, done, size, total)
                one = retainer.retain_entry(key, self._store.config.lock_seconds)
                found += [one] if one else []
                done += size
            return found

    def enqueue(self, items: Iterable[TextItem], *, model: ModelOrEndpoint = None) -> list[str]:
        """Queue texts durably without retaining them, and return their keys. `model` is the one that will
        read them."""
        retainer = self.retainer()
        return [retainer.enqueue(item, for_model=model is not None) for item in items]

    def preview(self, items: Iterable[TextItem], *, model: ModelOrEndpoint = None) -> list[RetainPreview]:
        """What retaining these texts would save without a model, and cost with one. Writes and sends
        nothing."""
        retainer = self.retainer()
        clean = (replace(item, text=retainer.items.clean(item.text)) for item in items)
        return [preview_text(self._store, retainer.context_of(item), item, model) for item in clean]

    def retainer(self, model: Model | None = None, tell: Progress | None = None) -> Retainer:
        """A `Retainer` of this bank. `tell` is called with the progress."""
        return Retainer(self._store, self._lookup, door=self._door, model=model, tell=tell)
