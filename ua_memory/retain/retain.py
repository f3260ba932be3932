"""Retain a text: its facts into the day's log or the document's file, in one commit; and its price."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ua_memory.errors import Busy, TooLarge, Usage
from ua_memory.git.repository import Revision
from ua_memory.knowledge import entities, tombstones
from ua_memory.knowledge import facts as knowledge_facts
from ua_memory.knowledge.facts import Equal, Provenance
from ua_memory.knowledge.statements import Progress
from ua_memory.llm.ledger import THEIRS, Estimate, priced
from ua_memory.llm.model import Endpoint, Model, ModelOrEndpoint
from ua_memory.llm.model import TokenUsage as Tokens
from ua_memory.llm.tools import schema
from ua_memory.records import Fact, Origin, SourceDocument
from ua_memory.retain import documents, extractor
from ua_memory.retain.documents import KnownDocument, Upsert, with_cause
from ua_memory.retain.extract import extract_without_model
from ua_memory.retain.extractor import TOGETHER, Chunk, ChunkExtractor, ExtractedChunk, Mode, TextContext, cut
from ua_memory.retain.queue import QueueEntry, TextItem, TextQueue
from ua_memory.store.draft import Draft
from ua_memory.store.store import Store
from ua_memory.text import redaction, tokens
from ua_memory.text.wording import WHERE_SAID, counted

if TYPE_CHECKING:
    from ua_memory.llm.providers import ModelAccess

# -- retained ----------------------------------------------------------------------------------------------
# What became of one text that was retained.


@dataclass(frozen=True, slots=True)
class RetainResult:
    """What became of one text. `by` names the model, '' where the author's own sentences were taken; `chunks`
    is how many it has, `read` how many of them were read now. `repeated` says that it was retained before,
    and nothing was done; `removed` are facts that went with their chunks, `kept` a person's lines that
    stayed although theirs went; `refused` is what a model proposed and the text does not say."""

    key: str
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


# -- retaining ---------------------------------------------------------------------------------------------
# Retaining: one waiting text goes in; facts in a day's log or its document's file, and one commit, come
# out.
#
# The text waits first, so that whatever goes wrong afterwards loses nothing. What was read of it is noted
# in its record chunk by chunk; all of it is written in one revision; then the record is let go.


TEXT = "Text"
"""The trailer that names a text without an id, by a hash with the bank's id in it."""


class Retainer:
    """Retains into one bank. `tell(done, total)` is called with the number of chunks read."""

    def __init__(
        self, store: Store, known: Callable[[], Equal], *, door: str, model: Model | None = None,
        tell: Progress | None = None,
    ) -> None:  # fmt: skip
        self.store, self.known, self.door = store, known, door
        self.model, self.tell = model, tell
        self.redacted: Counter[str] = Counter()
        self.items = TextQueue(store.bank.pending, self._clean)

    def offer(self, item: TextItem, *, modelled: bool) -> str:
        """Queue a text; it is on the disk, without secrets, on return. Its key."""
        if not item.text.strip():
            raise Usage("no text given to retain")
        key = hashlib.sha256(item.request.encode("utf-8", "replace")).hexdigest()[:10]
        self.store.make_state()
        self.items.put_text(key, item, at=self.store.now(), for_model=modelled)
        return key

    def one(self, key: str, patience: float, *, unasked: bool = False) -> RetainResult | None:
        """Retain the text under a key; None if there is none, or if it is set aside and this was not asked
        for. Raises what the model and the store raise; the text then stays queued."""
        with self.items.attempt(key, patience, self.store.now, unasked=unasked) as waiting:
            if waiting is None or waiting.item is None:
                return None
            stays = "nothing was written, and the text is queued"
            modelled = self.model is not None
            with self.items.recording_failure(key, self.store.now, stays, for_model=modelled):
                done = self._retained(waiting, waiting.item)
            self.items.remove(key)
            return done

    def drain(self) -> list[RetainResult]:
        """Retain the rest of the queue, except what is set aside or claimed by another process; without a
        model also what was meant for one, as conversations are."""
        done = []
        for waiting in self.items.all():
            if waiting.set_aside:
                continue
            try:
                one = self.one(waiting.key, 0)
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
            draft.subject = f"retain: {len(done.removed)} facts gone with {known.path}"
        return RetainResult(
            "", item, known.path, removed=tuple(done.removed), kept=tuple(done.kept),
            revision=draft.result.revision, notes=draft.result.notes,
        )  # fmt: skip

    def _retained(self, waiting: QueueEntry, item: TextItem) -> RetainResult:
        before = self.store.answered(item.request) or self._seen_before(item)
        if before is not None:
            paths = [path for path in before.paths if path.endswith(".md")]
            return RetainResult(
                waiting.key, item, paths[0] if paths else "", repeated=True, revision=before.id or None
            )
        chunks = cut(item.text)
        known = documents.find(self.store, item.document_id) if item.document_id else None
        # Another mode asks for something else of each chunk: what was drawn before does not answer it.
        stands = () if known is None or item.redo or known.mode != item.mode else known.chunks
        todo = list({chunk.name: chunk for chunk in chunks if chunk.name not in stands}.values())
        if known is not None and not todo and (item.append or tuple(c.name for c in chunks) == known.chunks):
            return RetainResult(waiting.key, item, known.path, chunks=len(chunks))
        found, usage = self._read(waiting, item, todo)
        who = entities.settled(self.store)
        forgotten = tombstones.read(self.store)
        drawn = {name: one.named(who).but(forgotten.forbid) for name, one in found.items()}
        lost = sum(len(one.facts) - len(drawn[name].facts) for name, one in found.items())
        done = self._written(waiting, item, known, chunks, drawn)
        talked = sum(each.talked for each in drawn.values())
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
            refused=tuple(text for each in drawn.values() for text in each.refused),
            usage=usage,
        )  # fmt: skip

    def _read(
        self, waiting: QueueEntry, item: TextItem, todo: Sequence[Chunk]
    ) -> tuple[dict[str, ExtractedChunk], Tokens]:
        """The facts of the chunks; what an earlier try has read with a model is in the record."""
        brief = self.brief(item)
        drawing = ChunkExtractor(self.model, brief) if self.model and item.mode != "chunks" else None
        found: dict[str, ExtractedChunk] = {}
        for number, chunk in enumerate(todo):
            if self.tell:
                self.tell(number, len(todo))
            drawn = waiting.chunks_read.get(chunk.name) if drawing else None
            if drawn is None:
                drawn = drawing.extract(chunk) if drawing else ExtractedChunk()
                if not drawing or (drawn.talked and not drawn.facts):
                    drawn = replace(extract_without_model(chunk, brief), talked=drawn.talked)
                if drawing:
                    self.items.add_chunk(waiting.key, chunk.name, drawn)
            found[chunk.name] = drawn
        return found, drawing.usage if drawing else Tokens()

    def brief(self, item: TextItem) -> TextContext:
        """What is known of a text besides its words."""
        zone = self.store.now().tzinfo
        mission = item.mission or self.store.config.mission
        title = item.document_id.replace("\\", "/").rpartition("/")[2]
        return TextContext(
            item.at.astimezone(zone), item.mode, title, item.context, mission, item.instructions, item.tags
        )

    # -- writing -----------------------------------------------------------------------------------

    def _written(
        self, waiting: QueueEntry, item: TextItem, known: KnownDocument | None, chunks: Sequence[Chunk],
        drawn: Mapping[str, ExtractedChunk],
    ) -> RetainResult:  # fmt: skip
        with self.store.revision(
            "retain", door=self.door, request=item.request, session=item.session or None
        ) as draft:
            before = draft.answered or self._seen_before(item)  # by another process, while this one read
            if before is None:
                draft.even_if_empty = True  # what was read once must not be read again
                modelled = self.model is not None and item.mode in ("concise", "custom")
                if known is None:
                    done = self._into_log(draft, waiting, item, drawn, modelled)
                else:
                    done = self._into_document(draft, waiting, item, known, chunks, drawn, modelled)
                draft.facts = [f"^{fact.id}" for fact in (*done.facts, *done.seen_again)]
        if before is not None:
            return RetainResult(waiting.key, item, repeated=True, revision=before.id or None)
        placed = tuple(knowledge_facts.as_committed(self.store, fact) for fact in done.facts)
        result = draft.result
        return replace(
            done, facts=placed, revision=result.revision, notes=(*done.notes, *result.notes),
            redacted=dict(Counter(result.redacted) + self.redacted),
        )  # fmt: skip

    def _into_log(
        self,
        draft: Draft,
        waiting: QueueEntry,
        item: TextItem,
        drawn: Mapping[str, ExtractedChunk],
        modelled: bool,
    ) -> RetainResult:
        at, heads = item.at.astimezone(self.store.now().tzinfo), _heads(item.origin, modelled)
        where = (*item.said_in, *item.metadata)
        said = Provenance(at, item.client or "retain", heads, item.session or None, where)
        equal = self.known()
        new: list[Fact] = []
        again: list[Fact] = []
        notes: list[str] = []
        for one in drawn.values():
            placed: dict[int, Fact] = {}
            for n, fact in enumerate(one.facts):
                cause = placed.get(one.causes.get(n, -1))
                fact = with_cause(
                    draft, _of(fact, item.origin, said.origin), cause, cause.place.path if cause else ""
                )
                try:
                    placed[n], seen = knowledge_facts.add(draft, fact, said, equal)
                except (Usage, TooLarge) as error:
                    notes.append(f"left out, since it cannot be written: {fact.text[:80]} ({error.what})")
                    continue
                (again if seen else new).append(placed[n])
        draft.trailers[TEXT] = [self._hash(item)]
        path = new[0].place.path if new else again[0].place.path if again else ""
        draft.subject = f"retain: {_counted(new, again)}{f' into {path}' if path else ''}"
        return RetainResult(
            waiting.key, item, path, facts=tuple(new), seen_again=tuple(again), notes=tuple(notes)
        )

    def _into_document(
        self, draft: Draft, waiting: QueueEntry, item: TextItem, known: KnownDocument,
        chunks: Sequence[Chunk],
        drawn: Mapping[str, ExtractedChunk], modelled: bool,
    ) -> RetainResult:  # fmt: skip
        heads = _heads(item.origin, modelled)
        said = Provenance(self.store.now(), item.client or "retain", heads, None)
        own = {
            name: replace(one, facts=tuple(_of(fact, item.origin, heads) for fact in one.facts))
            for name, one in drawn.items()
        }
        done = documents.put(self.store, draft, known, item, said.heading, chunks, own)
        gone = f", {len(done.removed)} gone" if done.removed else ""
        draft.subject = f"retain: {_counted(done.added)}{gone} in {known.path}"
        return RetainResult(
            waiting.key, item, known.path, facts=tuple(done.added), removed=tuple(done.removed),
            kept=tuple(done.kept), notes=tuple(done.notes),
        )  # fmt: skip

    # -- what was seen before ----------------------------------------------------------------------

    def _seen_before(self, item: TextItem) -> Revision | None:
        """The revision that retained the same text without an id, if no undo has taken it back."""
        if item.document_id or item.redo:
            return None
        found = self.store.history.with_trailer(TEXT, self._hash(item))
        gone = self.store.history.taken_back()
        stands = [each for each in found if each.id not in gone][:1]
        return next(iter(self.store.history.with_paths(stands)), None)

    def _hash(self, item: TextItem) -> str:
        """Salted with the bank's id: a short secret must not be guessed from it."""
        asked = "" if item.mode == "concise" else f"{item.mode}\0{item.instructions}"
        text = f"{self.store.config.id}\0{asked}\0{item.text}"
        return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:20]

    def _clean(self, text: str) -> str:
        found = redaction.redact(text, self.store.config.redact)
        self.redacted.update(found.taken)
        return found.text


def _heads(origin: Origin, modelled: bool) -> Origin:
    """Whose the facts of a heading are: words that a model chose are no person's."""
    return "agent" if modelled and origin == "person" else origin


def _of(fact: Fact, origin: Origin, heads: Origin) -> Fact:
    """A statement in its author's own words is its author's, also below a heading of an agent's."""
    return fact if origin == heads or fact.quotes else replace(fact, origin=origin)


def _counted(new: Sequence[Fact], again: Sequence[Fact] = ()) -> str:
    told = counted(len(new), "fact")
    return f"{told}, {len(again)} already known" if again else told


# -- pricing -----------------------------------------------------------------------------------------------
# What retaining a text would keep and cost, before anything is sent: tokens times the dated table.


_TOOL_WORDS = 350
"""Tokens that the API adds where there is a tool."""


@dataclass(frozen=True, slots=True)
class RetainPreview:
    """What retaining a text would do: its chunks, those to be read, the facts saved without a model and,
    if there is a model, its cost."""

    item: TextItem
    chunks: int
    read: int
    facts: tuple[Fact, ...]
    cost: Estimate | None


def preview_text(
    store: Store, brief: TextContext, item: TextItem, model: Endpoint | Model | None
) -> RetainPreview:
    """The preview of one text; costs are rounded up."""
    chunks = cut(item.text)
    known = documents.find(store, item.document_id) if item.document_id else None
    stands = () if known is None or item.redo or known.mode != item.mode else known.chunks
    todo = [chunk for chunk in chunks if chunk.name not in stands]
    facts = tuple(fact for chunk in todo for fact in extract_without_model(chunk, brief).facts)
    asks = model is not None and item.mode != "chunks" and bool(todo)
    cost = _cost([chunk.text for chunk in todo], brief, model) if asks and model else None
    return RetainPreview(item, len(chunks), len(todo), facts, cost)


def _cost(texts: list[str], brief: TextContext, model: Endpoint | Model) -> Estimate:
    tool = schema("describe" if brief.mode == "verbatim" else "keep")
    head = tokens.count(extractor.directive(brief)) + tokens.count(json.dumps(tool)) + _TOOL_WORDS
    total, behind, grown, requests = 0, 0, 0, list[Tokens]()
    for text in texts:
        size = int(tokens.count(extractor.prompt_text(text, brief)) * THEIRS)
        if grown + 2 * len(text) > TOGETHER:
            behind = grown = 0
        fresh = size if behind else size + int(head * THEIRS)
        total += behind + fresh
        requests.append(Tokens(cache_read=behind, cache_write=fresh, output=size))
        behind += fresh + size  # the answer, about as long as the text, goes back with the next
        grown += 2 * len(text)
    return priced(model, total, requests)


# -- documents ---------------------------------------------------------------------------------------------
# Texts and files: made into what can be retained, and retained, made to wait or priced.


_KEY = re.compile(r"[A-Za-z][\w.-]{0,39}")
LONGEST_VALUE = 200
"""Characters of a value of metadata."""


def as_tags(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """Metadata as tags `key:value`. Usage for keys that say where something was said, and for what would be
    no tag."""
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
"""What a text of `Documents.read_lines` may say."""


def _part(tell: Progress, before: int, size: int, total: int) -> Progress:
    """Tells of a part of the work that begins after `before` and has `size` of `total`."""
    return lambda done, of: tell(before + size * done // max(of, 1), total)


class Documents:
    """Retains texts and files in one bank. `door` names the caller, `lookup` finds facts by exact text."""

    def __init__(self, store: Store, door: str, models: ModelAccess, lookup: Callable[[], Equal]) -> None:
        self._store, self._door, self._models, self._lookup = store, door, models, lookup

    def item(
        self, text: str, *, document_id: str = "", source: str = "", append: bool = False,
        mode: Mode = "concise", mission: str = "", instructions: str = "", context: str = "",
        timestamp: datetime | None = None, tags: Sequence[str] = (), origin: Origin = "agent",
        client: str | None = None, session: str | None = None, request: str | None = None,
        redo: bool = False, said_in: Sequence[str] = (), metadata: Mapping[str, Any] | None = None,
    ) -> TextItem:  # fmt: skip
        """A text as `retain` takes it. `timestamp` (aware) is when it was said or written, else now;
        `request` an id of this call, so that a repetition changes nothing; `said_in` tags of all that is said
        there. `metadata` becomes tags `key:value` of the text. Usage for a mode that there is not, and for
        metadata that cannot be tags."""
        if mode not in extractor.MODES:
            raise Usage(f"{mode!r} is not a mode", hint=f"use {', '.join(extractor.MODES)}")
        if mode == "custom" and not instructions.strip():
            raise Usage("the mode custom needs instructions")
        if append and not document_id:
            raise Usage("append needs a document_id to append to")
        return TextItem(
            text, timestamp or self._store.now(), document_id, source, append, mode, mission, instructions,
            context, knowledge_facts.listed(tags, "tags"), client or self._door, session or "", origin,
            request or f"retain-{secrets.token_hex(8)}", redo, tuple(said_in), as_tags(metadata or {}),
        )  # fmt: skip

    def all(self) -> Sequence[tuple[SourceDocument, tuple[str, ...], int]]:
        """The documents of the bank, each with its tags and the number of its facts."""
        return documents.listed(self._store)

    def read(self, path: Path, **more: Any) -> TextItem:
        """A file outside the bank as a text: markdown, plain text and, with the extra `ingest`, HTML, PDF and
        DOCX. Its id is its path unless `document_id` is given, its time the day in its name or when it was
        saved last. `more` as for `item`. Usage, NotFound, Malformed, TooLarge."""
        text, where, at = documents.read(self._store, path)
        more = {**more, "document_id": more.get("document_id") or where, "source": where}
        return self.item(text, **{**more, "timestamp": more.get("timestamp") or at})

    def read_lines(self, data: bytes, **common: Any) -> list[TextItem]:
        """Texts of which each is a JSON object on a line, with keys of `LINE_KEYS`; these go before `common`,
        which are as for `item`. Usage names the line, or says that there is none."""
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
        """The time that somebody gave, in the bank's timezone if it names none. Usage, with `where`."""
        if text is None:
            return None
        try:
            at = datetime.fromisoformat(text)
        except ValueError:
            hint = "use 2026-11-21 or 2026-11-21T14:32"
            raise Usage(f"{text!r} is not a valid time", where=where, hint=hint) from None
        return at if at.tzinfo else at.replace(tzinfo=self._store.now().tzinfo)

    def retain(
        self, items: Iterable[TextItem], *, model: ModelOrEndpoint = None, tell: Progress | None = None
    ) -> list[RetainResult]:
        """Retain several texts, each in one commit, in order; all are queued first. `tell` hears of the
        chunks of all of them."""
        with self._models.open(model) as asked:
            retainer = self.retainer(asked)
            sizes = {}
            for item in items:
                key = retainer.offer(item, modelled=asked is not None)
                sizes[key] = max(1, len(cut(item.text)) if tell else 1)
            done, total, found = 0, sum(sizes.values()), list[RetainResult]()
            for key, size in sizes.items():
                if tell:
                    tell(done, total)
                    retainer.tell = _part(tell, done, size, total)
                one = retainer.one(key, self._store.config.lock_seconds)
                found += [one] if one else []
                done += size
            return found

    def enqueue(self, items: Iterable[TextItem], *, model: ModelOrEndpoint = None) -> list[str]:
        """Queue texts durably and retain none. Their keys; `model` is the one that will read them."""
        retainer = self.retainer()
        return [retainer.offer(item, modelled=model is not None) for item in items]

    def preview(self, items: Iterable[TextItem], *, model: ModelOrEndpoint = None) -> list[RetainPreview]:
        """What retaining these texts would save without a model, and cost with one. Writes and sends
        nothing."""
        retainer = self.retainer()
        clean = (replace(item, text=retainer.items.clean(item.text)) for item in items)
        return [preview_text(self._store, retainer.brief(item), item, model) for item in clean]

    def retainer(self, model: Model | None = None, tell: Progress | None = None) -> Retainer:
        """A `Retainer` of this bank. `tell` is called with the progress."""
        return Retainer(self._store, self._lookup, door=self._door, model=model, tell=tell)
