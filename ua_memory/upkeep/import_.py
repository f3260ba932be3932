"""Memories of other tools: imported in one revision without doubles, and their search compared with ours."""

from __future__ import annotations

import json
import re
import urllib.parse
import urllib.request
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from ua_memory.discovery import CORE_NAMES, LOGS
from ua_memory.errors import Malformed, NotFound, TooLarge, Usage
from ua_memory.knowledge import core, tombstones
from ua_memory.knowledge import facts as knowledge_facts
from ua_memory.knowledge.statements import Statement, texts
from ua_memory.markdown import blocks, printer
from ua_memory.markdown import document as markdown_document
from ua_memory.markdown import lines as markdown_lines
from ua_memory.records import CoreBlock, Fact, MentalModel, Observation, Opinion, Page, Passage, Proof
from ua_memory.store.draft import Draft, Result
from ua_memory.store.store import Store
from ua_memory.text import redaction, tokens
from ua_memory.text.wording import counted
from ua_memory.transcripts.databases import open_database
from ua_memory.upkeep.import_sources import CopiedNote, ImportedRecord, SourceContents

# -- taken -------------------------------------------------------------------------------------------------
# What became of each thing of a source.


State = Literal["new", "same", "updated", "left"]


@dataclass(frozen=True, slots=True)
class ImportedItem:
    """What became of one thing of a source: a note, a core block, an item, a model or a page.

    `left` is not taken, and `why` says the reason; of the other states it says more where there is more.
    """

    what: Literal["note", "block", "item", "model", "page"]
    source: str
    path: str
    state: State
    why: str = ""
    day: str | None = None
    facts: int = 0
    prose: int = 0


@dataclass(frozen=True, slots=True)
class ImportResult:
    """What an import did, or would do; `result` is None for a rehearsal."""

    found: SourceContents
    taken: tuple[ImportedItem, ...]
    redacted: Mapping[str, int]
    result: Result | None = None

    def count(self, what: str, *states: State) -> int:
        return sum(1 for each in self.taken if each.what == what and (not states or each.state in states))


# -- copies ------------------------------------------------------------------------------------------------
# Copies of other tools' files, and curated memory into core memory.
#
# A file is copied to the byte below `memory/imported/NAME/`; two keys in its front matter say where it came
# from and which bytes it was, so that a second import knows it. The blocks of a curated `MEMORY.md` become
# core memory where ours has no block of that name and there is room; nothing of ours is replaced.


FOLDER = f"{LOGS}/imported"
FROM, HASH, PLACED = "imported_from", "imported_hash", "imported_core"
"""Keys of a copy's front matter: its source, the hash of the source's bytes, the blocks core memory took."""

# -- copies of files -----------------------------------------------------------------------------------


class Copies:
    """The copies that a bank has of a source's files, and new ones."""

    def __init__(self, store: Store, draft: Draft, found: SourceContents) -> None:
        self.store, self.draft = store, draft
        self.key = f"{found.source}:{found.name}"
        self.forgotten = tombstones.read(store)
        self.folder = f"{FOLDER}/{slug(found.name)}"
        self.by_source: dict[str, list[tuple[str, str]]] = {}
        self.by_hash: dict[str, str] = {}
        for path, data in texts(store):
            if HASH.encode() in data:
                front = markdown_document.parse(data, path).front
                self._known(path, str(front.get(FROM)), str(front.get(HASH)))

    def _known(self, path: str, source: str, of: str) -> None:
        self.by_source.setdefault(source, []).append((path, of))
        self.by_hash[of] = path

    def take(self, note: CopiedNote, more: Mapping[str, object] | None = None) -> ImportedItem:
        """Copy a note, with `more` keys in its front matter; know it again; or bring its copy up to date."""
        source = f"{self.key}/{note.path}"
        if note.hash in self.by_hash:
            return ImportedItem("note", note.path, self.by_hash[note.hash], "same", day=note.day)
        note, lost = self._allowed(note)
        data = marked(note, {FROM: source, HASH: note.hash, **(more or {})})
        for path, _ in self.by_source.get(source, ()):
            if _goes_on(self.draft.read(path), data):
                return self._update(note, path, data)
        path = self._free(note.name)
        self.draft.write(path, data)
        self._known(path, source, note.hash)
        return replace(self._told(note, path, "new"), why="; ".join(tombstones.refused_note(lost)))

    def _allowed(self, note: CopiedNote) -> tuple[CopiedNote, int]:
        """A note without what was forgotten here, and how much that is."""
        data, lost = self.forgotten.without(
            note.data if note.body is None else note.body, self._free(note.name)
        )
        return (replace(note, body=data), lost) if lost else (note, 0)

    def _update(self, note: CopiedNote, path: str, data: bytes) -> ImportedItem:
        if not self._untouched(path):
            why = "changed both at its source and here since it was imported; the text here stays"
            return ImportedItem("note", note.path, path, "left", why, note.day)
        old = markdown_document.parse(self.draft.read(path), path).records
        self.draft.write(path, data, removes=old)
        self.by_hash[note.hash] = path
        return self._told(note, path, "updated")

    def _told(self, note: CopiedNote, path: str, state: State) -> ImportedItem:
        records = markdown_document.parse(self.draft.read(path), path).records
        facts = sum(isinstance(record, Fact) for record in records)
        prose = sum(isinstance(record, Passage) for record in records)
        return ImportedItem("note", note.path, path, state, day=note.day, facts=facts, prose=prose)

    def _untouched(self, path: str) -> bool:
        """Whether a copy is as an import left it: nobody edited it, and nothing cites its lines."""
        touched = self.draft.touched[path]
        last = self.store.history.log([path], limit=1)
        ours = bool(last) and last[0].trailer("Memory-Op") == "import"
        return ours and touched.disk == touched.trail == touched.start

    def _free(self, name: str) -> str:
        stem, number = name.removesuffix(".md"), 1
        path = f"{self.folder}/{name}"
        while self.draft.exists(path):
            number += 1
            path = f"{self.folder}/{stem}-{number}.md"
        return path

    # -- curated memory --------------------------------------------------------------------------------

    def curated(self, note: CopiedNote) -> Iterator[ImportedItem]:
        """Its blocks into core memory where that is possible; the rest of it as a note."""
        if note.hash in self.by_hash:
            yield ImportedItem("note", note.path, self.by_hash[note.hash], "same")
            return
        blocks = markdown_document.parse(note.data, CORE_NAMES[0]).of(CoreBlock)
        taken = [self._block(block) for block in blocks]
        yield from taken
        placed = [b for b, t in zip(blocks, taken, strict=True) if t.state in ("new", "same")]
        names = [block.name for block in placed]
        body = markdown_lines.without_places(note.data, [block.place for block in placed])
        yield self.take(replace(note, body=body), {PLACED: names or None})

    def _block(self, block: CoreBlock) -> ImportedItem:
        path = core.core_path(self.store)
        known = markdown_document.parse(self.draft.read(path), path).of(CoreBlock)
        ours = next((b for b in known if b.name.casefold() == block.name.casefold()), None)

        def told(state: State, why: str = "") -> ImportedItem:
            return ImportedItem("block", f"## {block.name}", path, state, why)

        if ours and ours.value == printer.strip_blank(self.draft.redact(block.value)):
            return told("same")
        if ours and ours.value:
            return told("left", "core memory already has a block of this name, which stays")
        if self.forgotten.stands_in(block.value):
            return told("left", tombstones.WHY)
        limit = int(core.WARN_AT * self.store.config.core_tokens)
        size = tokens.count(block.value)
        if tokens.count(self.draft.read(path).decode("utf-8", "replace")) + size > limit:
            return told("left", f"its {size} tokens do not fit into core memory")
        try:
            core.put(self.store, self.draft, f"[{block.name}]" if block.labelled else block.name, block.value)
        except (TooLarge, Usage, Malformed) as error:
            return told("left", error.what)
        return told("new")


def slug(name: str) -> str:
    """A name as a folder can have it."""
    words = re.sub(r"[^\w.-]+", "-", name).strip("-.")
    return words[:80] or "bank"


def marked(note: CopiedNote, keys: Mapping[str, object]) -> bytes:
    """A note with these keys in its front matter; above one that cannot take them, with one of ours."""
    data = note.data if note.body is None else note.body
    try:
        return markdown_document.set_front(data, keys)
    except Malformed:
        return markdown_lines.insert_after(
            data, 0, markdown_document.set_front(b"", keys).decode().splitlines()
        )


def _goes_on(old: bytes, new: bytes) -> bool:
    """Whether `new` is what became of `old`: at least half of its lines are still there."""
    lines = [line for line in old.split(b"\n") if line.strip() and not line.startswith(b"imported_")]
    there = set(new.split(b"\n"))
    return 2 * sum(line in there for line in lines) >= len(lines)


# -- recipes -----------------------------------------------------------------------------------------------
# Mental models and pages of another tool: declared where there is none of that id; what is ours stays.


def recipes(draft: Draft, found: SourceContents) -> Iterator[ImportedItem]:
    """Write the models and pages that the bank does not have."""
    for model in found.models:
        yield _take(draft, model, f"{LOGS}/models/{model.id}.md")
    for page in found.pages:
        yield _take(draft, page, f"{LOGS}/pages/{page.id}.md")


def _take(draft: Draft, record: MentalModel | Page, path: str) -> ImportedItem:
    what: Literal["model", "page"] = "model" if isinstance(record, MentalModel) else "page"
    if not draft.exists(path):
        draft.write(path, f"{printer.show(record)}\n".encode())
        return ImportedItem(what, record.name, path, "new")
    ours = next(iter(markdown_document.parse(draft.read(path), path).of(type(record))), None)
    if ours and _says(ours) == _says(record):
        return ImportedItem(what, record.name, path, "same")
    why = f"this bank already has a {what} of this id, which stays"
    return ImportedItem(what, record.name, path, "left", why)


def _says(record: MentalModel | Page) -> tuple[str, str]:
    """What one of them is: a model its text, a page what it asks for, since its body is written anew."""
    text = record.body if isinstance(record, MentalModel) else record.source_query
    return record.name, " ".join(text.split())


# -- records -----------------------------------------------------------------------------------------------
# Records of a database into a bank's files: facts into the log of the day they were said, under block ids
# that are made from their ids there; observations beside ours, with their proofs.


_ID = re.compile(rb"\^([a-z2-7]{10})(?![A-Za-z0-9-])")
_NOBODY = re.compile(r"[^\w.:/@+-]+")


class RecordImport:
    """The items of a source, put where they belong."""

    def __init__(self, store: Store, draft: Draft, found: SourceContents) -> None:
        self.store, self.draft, self.found = store, draft, found
        self.known: dict[str, Statement] = {}
        self.forgotten = tombstones.read(store)
        self.files: dict[str, str] = {}
        self.logs: dict[str, str] = {}

    def take(self) -> Iterator[ImportedItem]:
        """Write what is new, and tell of every item what became of it."""
        if not self.found.items:
            return
        self._look()
        fresh: dict[str, list[ImportedRecord]] = defaultdict(list)
        told: dict[str, ImportedItem] = {}
        for item in self.found.items:
            if there := self._there(item):
                told[item.id] = there
                continue
            path = self.files[item.id] = self._path(item)
            told[item.id] = ImportedItem("item", f"^{item.id}", path, "new", day=item.day)
            fresh[path].append(item)
        for path in sorted(fresh):
            self._write(path, fresh[path])
        for item in self.found.items:
            one = told[item.id]
            fact = isinstance(item.record, Fact)
            yield replace(one, facts=1) if fact and one.state == "new" else one

    # -- what is there -----------------------------------------------------------------------------------

    def _look(self) -> None:
        """Which of the items the bank has, by their ids."""
        wanted = {item.id for item in self.found.items}
        for path, data in texts(self.store):
            if wanted.isdisjoint(found.decode() for found in _ID.findall(data)):
                continue
            for record in markdown_document.parse(data, path).statements:
                if record.id in wanted:
                    self.known[record.id] = record
                    self.files[record.id] = path

    def _there(self, item: ImportedRecord) -> ImportedItem | None:
        """What is to be told of an item that is not written."""
        if item.id in self.forgotten or (item.id not in self.known and self.forgotten.forbid(item.record)):
            return ImportedItem("item", f"^{item.id}", "", "left", "it was forgotten here", item.day)
        ours = self.known.get(item.id)
        if ours is None:
            return None
        told = ImportedItem("item", f"^{item.id}", ours.place.path, "same", day=item.day)
        said = item.record.text
        if ours.text == said or ours.text == redaction.redact(said, self.draft.patterns).text:
            return told
        return replace(told, state="left", why="it has been changed here; the text here stays")

    # -- where it goes -----------------------------------------------------------------------------------

    def _path(self, item: ImportedRecord) -> str:
        if isinstance(item.record, Observation):
            return f"{LOGS}/observations/{slug(self.found.name)}.md"
        if isinstance(item.record, Opinion):
            return f"{LOGS}/opinions.md"
        day, _ = self._moment(item)
        if not day:
            return f"{FOLDER}/{slug(self.found.name)}/undated.md"
        if day not in self.logs:
            self.logs[day] = self._log(day)
        return self.logs[day]

    def _log(self, day: str) -> str:
        """The log of a day, or another of it while somebody is writing there (a code fence is still open)."""
        path = knowledge_facts.log_path(day)
        document = markdown_document.parse(self.draft.read(path), path)
        is_open = any(block.unclosed for block in blocks.scan(document.lines, document.front_end))
        return knowledge_facts.log_path(f"{day}-import") if is_open else path

    def _moment(self, item: ImportedRecord) -> tuple[str | None, str]:
        """Day and time at which an item was said, by the bank's clock."""
        if not item.said:
            return None, ""
        try:
            at = datetime.fromisoformat(item.said)
        except ValueError:
            return item.day, "00:00"
        if at.tzinfo and len(item.said) > len("2026-02-03"):
            at = at.astimezone(self.store.now().tzinfo)
        return at.date().isoformat(), f"{at:%H:%M}"

    def _write(self, path: str, items: list[ImportedRecord]) -> None:
        data = self.draft.read(path)
        if path.startswith(FOLDER) and not data:
            data = markdown_document.set_front(b"", {FROM: f"{self.found.source}:{self.found.name}"})
        lines: list[str] = []
        if isinstance(items[0].record, Fact):
            for heading, under in self._headed(path, items).items():
                lines += [*([heading, ""] if heading else []), *self._facts(path, under), ""]
        else:
            for item in items:
                lines += printer.show(self._belief(item)).split("\n")
        while lines and not lines[-1]:
            lines.pop()
        if data and lines[0].startswith("- ") and data.rstrip(b"\n").split(b"\n")[-1][:1] not in b"- ":
            lines.insert(0, "")
        if not data and path == knowledge_facts.log_path(markdown_lines.day_of(path) or ""):
            lines = [f"# {markdown_lines.day_of(path)}", "", *lines]
        self.draft.write(path, markdown_document.append(data, lines))

    def _headed(self, path: str, items: list[ImportedRecord]) -> dict[str, list[ImportedRecord]]:
        """The items under the headings of ours that say when and from where each came; none in a file that
        says it for all."""
        headed: dict[str, list[ImportedRecord]] = defaultdict(list)
        for item in sorted(items, key=lambda each: self._moment(each)[1]):
            session = _NOBODY.sub("-", item.session or "")[:80].strip("-") or None
            line = blocks.heading_line(self._moment(item)[1], self.found.source, session, "import")
            headed["" if path.startswith(FOLDER) else line].append(item)
        return headed

    def _facts(self, path: str, items: list[ImportedRecord]) -> Iterator[str]:
        day = markdown_lines.day_of(path)
        for item in items:
            fact = item.record
            assert isinstance(fact, Fact)
            yield from knowledge_facts.lines_of(
                replace(fact, when=None if fact.when == day else fact.when), self.draft
            )

    def _belief(self, item: ImportedRecord) -> Observation | Opinion:
        record = item.record
        stems = {id: self.draft.link_name(path) for id, path in self.files.items()}
        if isinstance(record, Observation):
            return replace(record, proofs=_placed(record.proofs, stems))
        assert isinstance(record, Opinion)
        return replace(record, because=_placed(record.because, stems))


def _placed(proofs: Sequence[Proof], stems: Mapping[str, str]) -> tuple[Proof, ...]:
    """The proofs with the files that their facts stand in; without those of facts that were not taken."""
    return tuple(replace(proof, file=stems[proof.id]) for proof in proofs if proof.id in stems)


# -- importing ---------------------------------------------------------------------------------------------
# All that was found in another tool, into the bank: one revision, without doubling anything.


def import_contents(store: Store, found: SourceContents, *, door: str, dry_run: bool = False) -> ImportResult:
    """Write what was found into the bank, in one commit, or only tell what that would do.

    What is there already stays as it is, so that it may be done again. Raises what the store raises.
    """
    with store.revision("import", door=door) as draft:
        draft.trial = dry_run
        taken = tuple(_imported(store, draft, found))
        draft.subject = _subject(found, taken)
        draft.trailers["Imported"] = [f"{found.source}:{found.name}"]
    return ImportResult(found, taken, dict(draft.redacted), None if dry_run else draft.result)


def _imported(store: Store, draft: Draft, found: SourceContents) -> Iterator[ImportedItem]:
    copies = Copies(store, draft, found)
    if found.core:
        yield from copies.curated(found.core)
    for note in found.notes:
        yield copies.take(note)
    yield from RecordImport(store, draft, found).take()
    yield from recipes(draft, found)


def _subject(found: SourceContents, taken: tuple[ImportedItem, ...]) -> str:
    said = []
    for what in ("block", "note", "item", "model", "page"):
        number = sum(1 for each in taken if each.what == what and each.state in ("new", "updated"))
        noun = "core block" if what == "block" else what
        said += [counted(number, noun)] if number else []
    return f"import: {', '.join(said) or 'nothing new'} from {found.source} {found.name}"


# -- comparing -------------------------------------------------------------------------------------------
# How the tool that one comes from answers a query: by its own index, read only, or by a plain look.


SMALL = frozenset((
    "a", "about", "an", "and", "are", "at", "be", "been", "by", "can", "did", "do", "does", "for",
    "from", "had", "has", "have", "how", "i", "in", "is", "it", "its", "me", "my", "of", "on", "or",
    "our", "should", "that", "the", "their", "them", "there", "they", "this", "to", "us", "was", "we",
    "were", "what", "when", "where", "which", "who", "whom", "why", "will", "with", "you",
))  # fmt: skip
"""Words that say nothing of what is looked for."""

OPENCLAW_TERMS = 6

SECONDS = 30.0
"""For so long Hindsight may think about one query."""


Ask = Callable[[str, int], "list[Old]"]


@dataclass(frozen=True, slots=True)
class Old:
    """What the other tool found: where, in its own terms, and the text."""

    path: str
    text: str
    line: int = 0
    end: int = 0
    score: float = 0.0


@dataclass(frozen=True, slots=True)
class Comparison:
    """Who answers for the old side, what is to be said about that, and how to ask."""

    name: str
    note: str
    ask: Ask


def ask_backend(
    found: SourceContents, root: Path, files: Mapping[str, bytes], old: str | Path | None, home: Path
) -> Comparison:
    """The old side of a comparison: what `old` names, a URL or a file, else the index that is found, else the
    files. NotFound, Usage for a file that is no index."""
    if isinstance(old, str):
        return Comparison("Hindsight", f"asked at {old}", _recalled(old))
    if old is not None:
        if not old.is_file():
            raise NotFound("no such index", where=str(old), hint="give the other tool's SQLite file")
        asking = _index(old)
        if asking is None:
            raise Usage("no index of OpenClaw or basic-memory", where=str(old), hint="give its SQLite file")
        return asking
    for path in _places(found.source, home, root):
        asking = _index(path)
        if asking and _of_this(path, files):
            return asking
    if found.source == "hindsight":
        ask = _most_words([(f"^{item.id}", 0, item.record.text) for item in found.items])
        return Comparison("words", "to compare with Hindsight itself, give its bank with --old URL", ask)
    note = "lines ordered by how many of the query's words they have"
    if found.source not in ("markdown", "claude-code"):
        note = f"no index of it was found (give one with --old); {note}"
    return Comparison("grep", note, _grepped(files))


def _places(source: str, home: Path, root: Path) -> Iterator[Path]:
    """Where the indexes of a tool lie."""
    if source == "openclaw":
        for state in (root, root.parent, home / ".openclaw", home / ".clawdbot"):
            for pattern in ("agents/*/agent/*.sqlite", "memory/*.sqlite", "*.sqlite"):
                yield from sorted(state.glob(pattern))
    if source == "basic-memory":
        yield home / ".basic-memory" / "memory.db"


def _index(path: Path) -> Comparison | None:
    """How to ask the index in a file, or None where it is none that is known."""
    tables = _rows(path, "SELECT name FROM sqlite_master WHERE type = 'table'", ())
    names = {str(row[0]) for row in tables or ()}
    words = "keywords only: its vectors need the model that made them"
    if "memory_index_chunks_fts" in names:
        return Comparison("OpenClaw", f"{path}, {words}", _openclaw(path, "memory_index_chunks_fts", _some))
    if "chunks_fts" in names:
        return Comparison("Clawdbot", f"{path}, {words}", _openclaw(path, "chunks_fts", _all))
    if "search_index" in names:
        return Comparison("basic-memory", f"{path}, {words}", _basic_memory(path))
    return None


def _of_this(path: Path, files: Mapping[str, bytes]) -> bool:
    """Whether an index that lay about is of these files: it names at least one of them."""
    named = ("path FROM memory_index_chunks_fts", "path FROM chunks_fts", "file_path FROM search_index")
    found = (_rows(path, f"SELECT DISTINCT {each}", ()) or () for each in named)
    return any(str(row[0]) in files for rows in found for row in rows)


def _rows(path: Path, query: str, values: Sequence[object]) -> list[tuple[Any, ...]] | None:
    """What a query gives, or None where the file cannot be asked so."""
    with suppress(OSError), open_database(path) as there:
        return there.execute(query, values).fetchall()
    return None


def words_of(query: str) -> list[str]:
    """A query's words, small letters, each once, in order."""
    return list(dict.fromkeys(re.findall(r"\w+", query.casefold())))


def _telling(query: str) -> list[str]:
    return [word for word in words_of(query) if word not in SMALL] or words_of(query)


def _all(query: str) -> str:
    return " AND ".join(f'"{word}"' for word in re.findall(r"[A-Za-z0-9_]+", query))


def _some(query: str) -> str:
    return " OR ".join(f'"{word}"' for word in _telling(query)[:OPENCLAW_TERMS])


def _openclaw(path: Path, table: str, match: Callable[[str], str]) -> Ask:
    sql = (
        f"SELECT path, text, start_line, end_line, bm25({table}) FROM {table} "
        f"WHERE {table} MATCH ? ORDER BY bm25({table}) LIMIT ?"
    )

    def ask(query: str, limit: int) -> list[Old]:
        rows = _rows(path, sql, (match(query), limit)) if words_of(query) else []
        return [
            Old(str(at), str(text), int(start), int(end), -rank / (1 - rank))
            for at, text, start, end, rank in rows or ()
        ]

    return ask


def _basic_memory(path: Path) -> Ask:
    sql = (
        "SELECT file_path, title, content_snippet, bm25(search_index) FROM search_index "
        "WHERE search_index MATCH ? ORDER BY bm25(search_index) LIMIT ?"
    )

    def ask(query: str, limit: int) -> list[Old]:
        for joined, words in ((" AND ", words_of(query)), (" OR ", _telling(query))):
            rows = _rows(path, sql, (joined.join(f'"{word}"*' for word in words), limit)) if words else []
            if rows:
                return [Old(str(at), str(text or title), score=-rank) for at, title, text, rank in rows]
        return []

    return ask


def _recalled(url: str) -> Ask:
    """Hindsight's recall over HTTP; `url` is that of a bank: http://HOST/v1/default/banks/ID."""

    def ask(query: str, limit: int) -> list[Old]:
        body = json.dumps({"query": query, "budget": "mid", "max_tokens": 2048}).encode()
        request = urllib.request.Request(
            f"{url.rstrip('/')}/memories/recall", body, {"Content-Type": "application/json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=SECONDS) as reply:
                results = json.load(reply).get("results") or []
        except (OSError, ValueError, AttributeError) as error:
            hint = "give http://HOST/v1/default/banks/ID"
            raise NotFound(f"Hindsight does not answer: {error}", where=url, hint=hint) from error
        return [Old(str(r.get("document_id") or r.get("id")), str(r.get("text"))) for r in results[:limit]]

    return ask


def _grepped(files: Mapping[str, bytes]) -> Ask:
    lines = [
        (path, number, line)
        for path, data in files.items()
        for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1)
        if line.strip()
    ]
    return _most_words(lines)


def _most_words(lines: Sequence[tuple[str, int, str]]) -> Ask:
    """Lines by how many of the query's words they have, the shortest of equals first."""
    known = [(path, number, line, set(words_of(line))) for path, number, line in lines]

    def ask(query: str, limit: int) -> list[Old]:
        wanted = set(_telling(query))
        ranked = sorted((-len(wanted & row[3]), len(row[2]), n) for n, row in enumerate(known))
        chosen = [(known[n], -many) for many, _, n in ranked[:limit] if many]
        return [Old(p, text.strip(), at, at, many / len(wanted)) for (p, at, text, _), many in chosen]

    return ask
