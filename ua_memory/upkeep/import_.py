"""Importing memories of other tools in one revision, without duplicates, and comparing their search with
ours."""

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
from functools import partial
from pathlib import Path
from typing import Any, Literal

from ua_memory.clients.turns import open_database
from ua_memory.discovery import CORE_NAMES, LOGS
from ua_memory.errors import Malformed, NotFound, TooLarge, Usage
from ua_memory.index.terms import STOP_WORDS
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
from ua_memory.upkeep.import_sources import CopiedNote, ImportedRecord, SourceContents

# -- results -----------------------------------------------------------------------------------------------


State = Literal["new", "same", "updated", "left"]


@dataclass(frozen=True, slots=True)
class ImportedItem:
    """The result for one note, core block, item, model or page of a source.

    `left`: not imported, for the reason `why`. For other states `why` may have a remark.
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
    """What an import did, or would do; `result` is None for a dry run."""

    found: SourceContents
    taken: tuple[ImportedItem, ...]
    redacted: Mapping[str, int]
    result: Result | None = None

    def count(self, what: str, *states: State) -> int:
        return sum(1 for each in self.taken if each.what == what and (not states or each.state in states))


# -- notes -------------------------------------------------------------------------------------------------
# A file is copied to `memory/imported/NAME/`. Two keys in its front matter have its source and the hash of
# its bytes, so that a second import recognises it. Blocks of a curated `MEMORY.md` are added to core memory,
# if there is none of that name and there is room; ours are never replaced.


FOLDER = f"{LOGS}/imported"
FROM, HASH, CORE_BLOCKS = "imported_from", "imported_hash", "imported_core"
"""Keys of a copy's front matter: its source, the hash of the source's bytes, blocks added to core memory."""


class NoteImport:
    """Copies the notes of one source into a bank."""

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
                self._remember(path, str(front.get(FROM)), str(front.get(HASH)))

    def _remember(self, path: str, source: str, of: str) -> None:
        self.by_source.setdefault(source, []).append((path, of))
        self.by_hash[of] = path

    def take(self, note: CopiedNote, more: Mapping[str, object] | None = None) -> ImportedItem:
        """Copy a note, with `more` keys in its front matter, or update an earlier copy of it."""
        source = f"{self.key}/{note.path}"
        if note.hash in self.by_hash:
            return ImportedItem("note", note.path, self.by_hash[note.hash], "same", day=note.day)
        note, lost = self._without_forgotten(note)
        data = with_front_matter(note, {FROM: source, HASH: note.hash, **(more or {})})
        for path, _ in self.by_source.get(source, ()):
            if _is_later_version(self.draft.read(path), data):
                return self._update(note, path, data)
        path = self._free_path(note.name)
        self.draft.write(path, data)
        self._remember(path, source, note.hash)
        return replace(self._result(note, path, "new"), why="; ".join(tombstones.refused_note(lost)))

    def _without_forgotten(self, note: CopiedNote) -> tuple[CopiedNote, int]:
        """(the note without forgotten statements, the number of these)."""
        whole = note.data if note.body is None else note.body
        data, lost = self.forgotten.filter_file(whole, self._free_path(note.name))
        return (replace(note, body=data), lost) if lost else (note, 0)

    def _update(self, note: CopiedNote, path: str, data: bytes) -> ImportedItem:
        if not self._is_unedited(path):
            why = "changed both at its source and here since it was imported; the text here stays"
            return ImportedItem("note", note.path, path, "left", why, note.day)
        old = markdown_document.parse(self.draft.read(path), path).records
        self.draft.write(path, data, removes=old)
        self.by_hash[note.hash] = path
        return self._result(note, path, "updated")

    def _result(self, note: CopiedNote, path: str, state: State) -> ImportedItem:
        records = markdown_document.parse(self.draft.read(path), path).records
        facts = sum(isinstance(record, Fact) for record in records)
        prose = sum(isinstance(record, Passage) for record in records)
        return ImportedItem("note", note.path, path, state, day=note.day, facts=facts, prose=prose)

    def _is_unedited(self, path: str) -> bool:
        """Whether an import was the last to change a copy."""
        touched = self.draft.touched[path]
        last = self.store.history.log([path], limit=1)
        ours = bool(last) and last[0].trailer("Memory-Op") == "import"
        return ours and touched.disk == touched.in_head == touched.start

    def _free_path(self, name: str) -> str:
        stem, number = name.removesuffix(".md"), 1
        path = f"{self.folder}/{name}"
        while self.draft.exists(path):
            number += 1
            path = f"{self.folder}/{stem}-{number}.md"
        return path

    # -- curated memory --------------------------------------------------------------------------------

    def take_curated(self, note: CopiedNote) -> Iterator[ImportedItem]:
        """Add a note's blocks to core memory where possible, and copy the rest of it."""
        if note.hash in self.by_hash:
            yield ImportedItem("note", note.path, self.by_hash[note.hash], "same")
            return
        blocks = markdown_document.parse(note.data, CORE_NAMES[0]).of(CoreBlock)
        taken = [self._take_block(block) for block in blocks]
        yield from taken
        placed = [b for b, t in zip(blocks, taken, strict=True) if t.state in ("new", "same")]
        names = [block.name for block in placed]
        body = markdown_lines.remove_places(note.data, [block.place for block in placed])
        yield self.take(replace(note, body=body), {CORE_BLOCKS: names or None})

    def _take_block(self, block: CoreBlock) -> ImportedItem:
        path = core.core_path(self.store)
        known = markdown_document.parse(self.draft.read(path), path).of(CoreBlock)
        ours = next((b for b in known if b.name.casefold() == block.name.casefold()), None)

        def result(state: State, why: str = "") -> ImportedItem:
            return ImportedItem("block", f"## {block.name}", path, state, why)

        if ours and ours.value == printer.strip_blank(self.draft.redact(block.value)):
            return result("same")
        if ours and ours.value:
            return result("left", "core memory already has a block of this name, which stays")
        if self.forgotten.has_line_of(block.value):
            return result("left", tombstones.WHY)
        limit = int(core.WARN_AT * self.store.config.core_tokens)
        size = tokens.count(block.value)
        if tokens.count(self.draft.read(path).decode("utf-8", "replace")) + size > limit:
            return result("left", f"its {size} tokens do not fit into core memory")
        try:
            core.put(self.store, self.draft, f"[{block.name}]" if block.labelled else block.name, block.value)
        except (TooLarge, Usage, Malformed) as error:
            return result("left", error.what)
        return result("new")


def slug(name: str) -> str:
    """A name that is safe as a folder's."""
    return re.sub(r"[^\w.-]+", "-", name).strip("-.")[:80] or "bank"


def with_front_matter(note: CopiedNote, keys: Mapping[str, object]) -> bytes:
    """A note with these keys in its front matter; if that cannot be edited, with a new one above it."""
    data = note.data if note.body is None else note.body
    try:
        return markdown_document.set_front(data, keys)
    except Malformed:
        header = markdown_document.set_front(b"", keys).decode().splitlines()
        return markdown_lines.insert_after(data, 0, header)


def _is_later_version(old: bytes, new: bytes) -> bool:
    """Whether `new` still has half of the lines of `old`."""
    lines = [line for line in old.split(b"\n") if line.strip() and not line.startswith(b"imported_")]
    there = set(new.split(b"\n"))
    return 2 * sum(line in there for line in lines) >= len(lines)


# -- models and pages --------------------------------------------------------------------------------------
# Added if the bank has none with that id; ours are never replaced.


def import_recipes(draft: Draft, found: SourceContents) -> Iterator[ImportedItem]:
    """Write the models and pages that the bank does not have."""
    for model in found.models:
        yield _import_recipe(draft, model, f"{LOGS}/models/{model.id}.md")
    for page in found.pages:
        yield _import_recipe(draft, page, f"{LOGS}/pages/{page.id}.md")


def _import_recipe(draft: Draft, record: MentalModel | Page, path: str) -> ImportedItem:
    what: Literal["model", "page"] = "model" if isinstance(record, MentalModel) else "page"
    if not draft.exists(path):
        draft.write(path, f"{printer.show(record)}\n".encode())
        return ImportedItem(what, record.name, path, "new")
    ours = next(iter(markdown_document.parse(draft.read(path), path).of(type(record))), None)
    if ours and _identity(ours) == _identity(record):
        return ImportedItem(what, record.name, path, "same")
    why = f"this bank already has a {what} of this id, which stays"
    return ImportedItem(what, record.name, path, "left", why)


def _identity(record: MentalModel | Page) -> tuple[str, str]:
    """What makes two of them the same: name and text of a model, name and query of a page."""
    text = record.body if isinstance(record, MentalModel) else record.source_query
    return record.name, " ".join(text.split())


# -- records -----------------------------------------------------------------------------------------------
# Facts go into the log of their day, observations and opinions into files beside ours. Block ids are derived
# from the source's ids.


_BLOCK_ID = re.compile(rb"\^([a-z2-7]{10})(?![A-Za-z0-9-])")
_UNSAFE = re.compile(r"[^\w.:/@+-]+")


class RecordImport:
    """Writes the records of one source into a bank."""

    def __init__(self, store: Store, draft: Draft, found: SourceContents) -> None:
        self.store, self.draft, self.found = store, draft, found
        self.known: dict[str, Statement] = {}
        self.forgotten = tombstones.read(store)
        self.files: dict[str, str] = {}
        self.logs: dict[str, str] = {}

    def take(self) -> Iterator[ImportedItem]:
        """Write new records; the results of all."""
        if not self.found.items:
            return
        self._find_known()
        fresh: dict[str, list[ImportedRecord]] = defaultdict(list)
        results: dict[str, ImportedItem] = {}
        for item in self.found.items:
            if there := self._existing_result(item):
                results[item.id] = there
                continue
            path = self.files[item.id] = self._path_for(item)
            results[item.id] = ImportedItem("item", f"^{item.id}", path, "new", day=item.day)
            fresh[path].append(item)
        for path in sorted(fresh):
            self._write(path, fresh[path])
        for item in self.found.items:
            one = results[item.id]
            fact = isinstance(item.record, Fact)
            yield replace(one, facts=1) if fact and one.state == "new" else one

    # -- existing records --------------------------------------------------------------------------------

    def _find_known(self) -> None:
        """Find the records that the bank has already, by id."""
        wanted = {item.id for item in self.found.items}
        for path, data in texts(self.store):
            if wanted.isdisjoint(found.decode() for found in _BLOCK_ID.findall(data)):
                continue
            for record in markdown_document.parse(data, path).statements:
                if record.id in wanted:
                    self.known[record.id] = record
                    self.files[record.id] = path

    def _existing_result(self, item: ImportedRecord) -> ImportedItem | None:
        """The result for an item that is not written, None for a new one."""
        if item.id in self.forgotten or (item.id not in self.known and self.forgotten.matches(item.record)):
            return ImportedItem("item", f"^{item.id}", "", "left", "it was forgotten here", item.day)
        ours = self.known.get(item.id)
        if ours is None:
            return None
        result = ImportedItem("item", f"^{item.id}", ours.place.path, "same", day=item.day)
        said = item.record.text
        if ours.text == said or ours.text == redaction.redact(said, self.draft.patterns).text:
            return result
        return replace(result, state="left", why="it has been changed here; the text here stays")

    # -- writing -----------------------------------------------------------------------------------------

    def _path_for(self, item: ImportedRecord) -> str:
        if isinstance(item.record, Observation):
            return f"{LOGS}/observations/{slug(self.found.name)}.md"
        if isinstance(item.record, Opinion):
            return f"{LOGS}/opinions.md"
        day, _ = self._moment(item)
        if not day:
            return f"{FOLDER}/{slug(self.found.name)}/undated.md"
        if day not in self.logs:
            self.logs[day] = self._log_path(day)
        return self.logs[day]

    def _log_path(self, day: str) -> str:
        """The log of a day, or a second one while it has an unclosed code fence or comment."""
        path = knowledge_facts.log_path(day)
        document = markdown_document.parse(self.draft.read(path), path)
        is_open = any(block.unclosed for block in blocks.scan(document.lines, document.front_end))
        return knowledge_facts.log_path(f"{day}-import") if is_open else path

    def _moment(self, item: ImportedRecord) -> tuple[str | None, str]:
        """(day, time) at which an item was said, in the bank's timezone."""
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
            for heading, under in self._group_by_heading(path, items).items():
                lines += [*([heading, ""] if heading else []), *self._fact_lines(path, under), ""]
        else:
            for item in items:
                lines += printer.show(self._belief_record(item)).split("\n")
        while lines and not lines[-1]:
            lines.pop()
        if data and lines[0].startswith("- ") and data.rstrip(b"\n").split(b"\n")[-1][:1] not in b"- ":
            lines.insert(0, "")
        if not data and path == knowledge_facts.log_path(markdown_lines.day_of(path) or ""):
            lines = [f"# {markdown_lines.day_of(path)}", "", *lines]
        self.draft.write(path, markdown_document.append(data, lines))

    def _group_by_heading(self, path: str, items: list[ImportedRecord]) -> dict[str, list[ImportedRecord]]:
        """{heading with time and source: items}; the heading is '' in a file that has its source in the front
        matter."""
        headed: dict[str, list[ImportedRecord]] = defaultdict(list)
        for item in sorted(items, key=lambda each: self._moment(each)[1]):
            session = _UNSAFE.sub("-", item.session or "")[:80].strip("-") or None
            line = blocks.heading_line(self._moment(item)[1], self.found.source, session, "import")
            headed["" if path.startswith(FOLDER) else line].append(item)
        return headed

    def _fact_lines(self, path: str, items: list[ImportedRecord]) -> Iterator[str]:
        day = markdown_lines.day_of(path)
        for item in items:
            fact = item.record
            assert isinstance(fact, Fact)
            fact = replace(fact, when=None if fact.when == day else fact.when)
            yield from knowledge_facts.fact_lines(fact, self.draft)

    def _belief_record(self, item: ImportedRecord) -> Observation | Opinion:
        record = item.record
        stems = {id: self.draft.link_name(path) for id, path in self.files.items()}
        if isinstance(record, Observation):
            return replace(record, proofs=_locate_proofs(record.proofs, stems))
        assert isinstance(record, Opinion)
        return replace(record, because=_locate_proofs(record.because, stems))


def _locate_proofs(proofs: Sequence[Proof], stems: Mapping[str, str]) -> tuple[Proof, ...]:
    """The proofs with the files of their facts, without those whose facts were not imported."""
    return tuple(replace(proof, file=stems[proof.id]) for proof in proofs if proof.id in stems)


# -- importing ---------------------------------------------------------------------------------------------


def import_contents(store: Store, found: SourceContents, *, door: str, dry_run: bool = False) -> ImportResult:
    """Import a source in one commit, or with `dry_run` only compute the result.

    It can be repeated, since existing records are recognised. Raises the errors of `Store.revision`.
    """
    with store.revision("import", door=door) as draft:
        draft.trial = dry_run
        taken = tuple(_import_all(store, draft, found))
        draft.subject = _subject(found, taken)
        draft.trailers["Imported"] = [f"{found.source}:{found.name}"]
    return ImportResult(found, taken, dict(draft.redacted), None if dry_run else draft.result)


def _import_all(store: Store, draft: Draft, found: SourceContents) -> Iterator[ImportedItem]:
    copies = NoteImport(store, draft, found)
    if found.core:
        yield from copies.take_curated(found.core)
    for note in found.notes:
        yield copies.take(note)
    yield from RecordImport(store, draft, found).take()
    yield from import_recipes(draft, found)


def _subject(found: SourceContents, taken: tuple[ImportedItem, ...]) -> str:
    said = []
    for what in ("block", "note", "item", "model", "page"):
        number = sum(1 for each in taken if each.what == what and each.state in ("new", "updated"))
        noun = "core block" if what == "block" else what
        said += [counted(number, noun)] if number else []
    return f"import: {', '.join(said) or 'nothing new'} from {found.source} {found.name}"


# -- comparing -------------------------------------------------------------------------------------------
# Searching with the other tool: with its own index, read-only, or by counting words.


OPENCLAW_TERMS = 6

TIMEOUT_SECONDS = 30.0
"""Timeout of one query to Hindsight."""


Ask = Callable[[str, int], "list[OldHit]"]


@dataclass(frozen=True, slots=True)
class OldHit:
    """A hit of the other tool: its place in that tool's terms, and the text."""

    path: str
    text: str
    line: int = 0
    end: int = 0
    score: float = 0.0


@dataclass(frozen=True, slots=True)
class Comparison:
    """The other tool in a comparison: its name, a remark on how it is searched, and the search function."""

    name: str
    note: str
    ask: Ask


def ask_backend(
    found: SourceContents, root: Path, files: Mapping[str, bytes], old: str | Path | None, home: Path
) -> Comparison:
    """The search of the other tool: at the URL or in the file `old`, else in an index that is found, else in
    the files themselves. NotFound, Usage for a file that is not an index."""
    if isinstance(old, str):
        return Comparison("Hindsight", f"asked at {old}", _hindsight(old))
    if old is not None:
        if not old.is_file():
            raise NotFound("no such index", where=str(old), hint="give the other tool's SQLite file")
        asking = _open_index(old)
        if asking is None:
            raise Usage("no index of OpenClaw or basic-memory", where=str(old), hint="give its SQLite file")
        return asking
    for path in _index_locations(found.source, home, root):
        asking = _open_index(path)
        if asking and _is_index_of(path, files):
            return asking
    if found.source == "hindsight":
        ask = _by_matching_words([(f"^{item.id}", 0, item.record.text) for item in found.items])
        return Comparison("words", "to compare with Hindsight itself, give its bank with --old URL", ask)
    note = "lines ordered by how many of the query's words they have"
    if found.source not in ("markdown", "claude-code"):
        note = f"no index of it was found (give one with --old); {note}"
    return Comparison("grep", note, _grep(files))


def _index_locations(source: str, home: Path, root: Path) -> Iterator[Path]:
    """Where a tool may have its index."""
    if source == "openclaw":
        for state in (root, root.parent, home / ".openclaw", home / ".clawdbot"):
            for pattern in ("agents/*/agent/*.sqlite", "memory/*.sqlite", "*.sqlite"):
                yield from sorted(state.glob(pattern))
    if source == "basic-memory":
        yield home / ".basic-memory" / "memory.db"


def _open_index(path: Path) -> Comparison | None:
    """The search of an index file, None for an unknown kind."""
    tables = _query(path, "SELECT name FROM sqlite_master WHERE type = 'table'", ())
    names = {str(row[0]) for row in tables or ()}
    words = "keywords only: its vectors need the model that made them"
    for table, (tool, columns, expressions) in _INDEXES.items():
        if table in names:
            sql = f"SELECT {columns} FROM {table} WHERE {table} MATCH ? ORDER BY bm25({table}) LIMIT ?"
            return Comparison(tool, f"{path}, {words}", partial(_search_index, path, sql, expressions))
    return None


def _is_index_of(path: Path, files: Mapping[str, bytes]) -> bool:
    """Whether an index has at least one of these files."""
    named = (f"SELECT DISTINCT {columns.partition(',')[0]} FROM {table}"
             for table, (_, columns, _) in _INDEXES.items())  # fmt: skip
    return any(str(row[0]) in files for each in named for row in _query(path, each, ()) or ())


def _query(path: Path, query: str, values: Sequence[object]) -> list[tuple[Any, ...]] | None:
    """The rows of an SQL query, None if it fails."""
    with suppress(OSError), open_database(path) as there:
        return there.execute(query, values).fetchall()
    return None


def words_of(query: str) -> list[str]:
    """A query's words in lower case, without duplicates, in order."""
    return list(dict.fromkeys(re.findall(r"\w+", query.casefold())))


def _content_words(query: str) -> list[str]:
    return [word for word in words_of(query) if word not in STOP_WORDS] or words_of(query)


def _all_words(query: str) -> str:
    return " AND ".join(f'"{word}"' for word in re.findall(r"[A-Za-z0-9_]+", query))


def _some_words(query: str) -> str:
    return " OR ".join(f'"{word}"' for word in _content_words(query)[:OPENCLAW_TERMS])


def _all_beginnings(query: str) -> str:
    return " AND ".join(f'"{word}"*' for word in words_of(query))


def _some_beginnings(query: str) -> str:
    return " OR ".join(f'"{word}"*' for word in _content_words(query))


_OPENCLAW = "path, text, start_line, end_line, -bm25({0}) / (1 - bm25({0}))"
_BASIC_MEMORY = "file_path, coalesce(nullif(content_snippet, ''), title), 0, 0, -bm25(search_index)"
_INDEXES: Mapping[str, tuple[str, str, Sequence[Callable[[str], str]]]] = {
    "memory_index_chunks_fts": ("OpenClaw", _OPENCLAW.format("memory_index_chunks_fts"), [_some_words]),
    "chunks_fts": ("Clawdbot", _OPENCLAW.format("chunks_fts"), [_all_words]),
    "search_index": ("basic-memory", _BASIC_MEMORY, [_all_beginnings, _some_beginnings]),
}
"""{table: (tool, columns of a hit, expressions for a query, tried one after the other)}."""


def _search_index(
    path: Path, sql: str, expressions: Sequence[Callable[[str], str]], query: str, limit: int
) -> list[OldHit]:
    for expression in expressions if words_of(query) else ():
        if rows := _query(path, sql, (expression(query), limit)):
            return [OldHit(str(at), str(text), *place) for at, text, *place in rows]
    return []


def _hindsight(url: str) -> Ask:
    """Hindsight's recall over HTTP; `url` is that of a bank: http://HOST/v1/default/banks/ID."""

    def ask(query: str, limit: int) -> list[OldHit]:
        body = json.dumps({"query": query, "budget": "mid", "max_tokens": 2048}).encode()
        address, headers = f"{url.rstrip('/')}/memories/recall", {"Content-Type": "application/json"}
        request = urllib.request.Request(address, body, headers)
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as reply:
                results = json.load(reply).get("results") or []
        except (OSError, ValueError, AttributeError) as error:
            hint = "give http://HOST/v1/default/banks/ID"
            raise NotFound(f"Hindsight does not answer: {error}", where=url, hint=hint) from error
        return [OldHit(str(r.get("document_id") or r.get("id")), str(r.get("text"))) for r in results[:limit]]

    return ask


def _grep(files: Mapping[str, bytes]) -> Ask:
    lines = [
        (path, number, line)
        for path, data in files.items()
        for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1)
        if line.strip()
    ]
    return _by_matching_words(lines)


def _by_matching_words(lines: Sequence[tuple[str, int, str]]) -> Ask:
    """Lines by how many of the query's words they have, the shortest of equals first."""
    known = [(path, number, line, set(words_of(line))) for path, number, line in lines]

    def ask(query: str, limit: int) -> list[OldHit]:
        wanted = set(_content_words(query))
        ranked = sorted((-len(wanted & row[3]), len(row[2]), n) for n, row in enumerate(known))
        chosen = [(known[n], -many) for many, _, n in ranked[:limit] if many]
        return [OldHit(p, text.strip(), at, at, many / len(wanted)) for (p, at, text, _), many in chosen]

    return ask
