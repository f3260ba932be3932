"""Documents: their files in `memory/documents/`, and reading files of other formats as markdown."""

from __future__ import annotations

import email
import email.policy
import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from io import BytesIO
from itertools import islice, pairwise
from pathlib import Path, PurePath
from typing import Any

from ua_memory import discovery
from ua_memory.clients.messages import front_matter, title_day
from ua_memory.discovery import LOGS
from ua_memory.errors import Malformed, NotFound, TooLarge, Usage
from ua_memory.knowledge import facts
from ua_memory.markdown import blocks, fields, printer
from ua_memory.markdown import document as markdown_document
from ua_memory.paths import DATED, is_memory_file
from ua_memory.records import Fact, SourceDocument
from ua_memory.retain.extract_by_model import Chunk, ExtractedChunk
from ua_memory.retain.queue import TextItem
from ua_memory.store.draft import Draft
from ua_memory.store.files import in_utf8
from ua_memory.store.store import Store
from ua_memory.text.dates import day_of_note
from ua_memory.text.wording import OF_ONE_SESSION

# -- document files ----------------------------------------------------------------------------------------
# The header of a document's file lists its chunks by name. The facts of each are below
# `<!-- chunk: NAME -->`, under a heading if the chunk has one. The lines of an unchanged chunk stay as they
# are; those of a removed chunk are removed, except lines that a person wrote or changed.


FOLDER = f"{LOGS}/documents"
MOST_CHUNKS = 4_000
"""Most chunks of one document, some ten million characters: the header names each of them."""
_CHUNK_MARK = re.compile(rb"<!-- chunk: (\S+) -->\s*$")
_HEADING = re.compile(rb"(#{1,6})(?:[ \t]|\r?$)")
_SEARCHED_REVISIONS = 50
"""So many of the latest revisions of a document are searched for facts that a retain has written."""


@dataclass(frozen=True, slots=True)
class KnownDocument:
    """A document in the bank: its path, its chunks' names in order, and the mode they were extracted with."""

    path: str
    chunks: tuple[str, ...] = ()
    mode: str = "concise"
    exists: bool = True


@dataclass(slots=True)
class Upsert:
    """Result of an upsert: added and removed facts, the texts of a person's facts that were `kept`, notes."""

    added: list[Fact] = field(default_factory=list)
    removed: list[Fact] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def find(store: Store, document_id: str) -> KnownDocument:
    """The document with this id, wherever in the folder its file is, or a new one. Malformed if a header
    cannot be read."""
    wanted = document_id.encode("utf-8", "replace")
    paths = _paths(store)
    for path in paths:
        try:
            data = store.read(path)
        except NotFound:
            continue
        document = markdown_document.parse(data, path)
        source = next(iter(document.of(SourceDocument)), None)
        if source is not None and source.document_id == document_id:
            return KnownDocument(path, source.chunks, str(document.front.get("mode") or "concise"))
        if source is None and wanted in data[:2_000] and path == path_of(document_id, ()):
            raise Malformed("the header of this document cannot be read", where=path, hint="ua-memory verify")
    return KnownDocument(path_of(document_id, paths), exists=False)


def path_of(document_id: str, taken: Sequence[str]) -> str:
    """The path for a new document: the last part of its id, with a hash unless that alone is the id."""
    stem = re.sub(r"\.(?:md|markdown|txt|html?|pdf|docx|eml)$", "", document_id, flags=re.IGNORECASE)
    words = re.sub(r"[^\w]+", "-", stem.replace("\\", "/").rstrip("/").rpartition("/")[2]).strip("-").lower()
    words = words.encode("utf-8", "replace")[:60].decode("utf-8", "ignore").strip("-_") or "document"
    if words == document_id and f"{FOLDER}/{words}.md" not in taken:
        return f"{FOLDER}/{words}.md"
    return f"{FOLDER}/{words}-{hashlib.sha256(document_id.encode('utf-8', 'replace')).hexdigest()[:6]}.md"


def put(
    store: Store, draft: Draft, known: KnownDocument, item: TextItem, heading: str, chunks: Sequence[Chunk],
    extracted: Mapping[str, ExtractedChunk],
) -> Upsert:  # fmt: skip
    """Write these chunks into the document's file, in an open revision. `extracted` has the facts of the
    chunks that were read; the other chunks keep their lines. TooLarge, Malformed."""
    done = Upsert()
    names = list(dict.fromkeys(chunk.name for chunk in chunks))
    if item.append:
        names = list(dict.fromkeys((*known.chunks, *names)))
    if len(names) > MOST_CHUNKS:
        what = f"{len(names)} chunks; a document has at most {MOST_CHUNKS}"
        raise TooLarge(what, hint="split the document")
    path, data = known.path, draft.read(known.path) or _new_file(item, heading)
    before = markdown_document.parse(data, path)
    ours = _written_facts(store, path)
    sections = list(_sections(data))
    reuse: dict[str, Fact] = {}
    removed: list[Fact] = []
    for section in sections:
        if section.name and (section.name not in names or section.name in extracted):
            _strip_chunk(section, before.of(Fact), ours, removed, reuse, done)
    _insert_chunks(draft, sections, names, {c.name: c for c in chunks}, extracted, reuse, done, path, data)
    data = b"".join(line for section in sections for line in section.lines)
    changes: dict[str, Any] = {"source": item.source} if item.source else {}
    changes["mode"] = None if item.mode == "concise" else item.mode
    changes |= {"written": f"{item.at:%Y-%m-%d}"} | ({"chunks": names} if names else {})
    if item.metadata:  # of one key the new value counts
        keys = tuple(f"{tag.partition(':')[0]}:" for tag in item.metadata)
        changes["tags"] = [*(tag for tag in before.tags if not tag.startswith(keys)), *item.metadata]
    data = markdown_document.set_front(data, changes)
    draft.write(path, data, removes=[*removed, *before.of(SourceDocument)])
    after = {fact.id: fact for fact in markdown_document.parse(draft.read(path), path).of(Fact)}
    done.removed = [fact for fact in removed if fact.id not in after]
    old = {fact.id for fact in removed}
    done.added = [after[f.id] for f in done.added if f.id in after and f.id not in old]
    return done


def list_documents(store: Store) -> list[tuple[SourceDocument, tuple[str, ...], int]]:
    """All documents, by their paths, each with its tags and how many facts it has."""
    found = []
    for path in _paths(store):
        document = markdown_document.parse(store.accepted_bytes(path), path)
        count = len(document.of(Fact))
        found += [(one, document.tags, count) for one in document.of(SourceDocument)]
    return found


def _paths(store: Store) -> list[str]:
    return sorted(each.path for each in store.survey().files if each.path.startswith(f"{FOLDER}/"))


def clear(store: Store, draft: Draft, known: KnownDocument, item: TextItem) -> Upsert:
    """Remove all chunks from a document, in an open revision; the file is deleted unless a person wrote in
    it."""
    done = put(store, draft, known, item, "", (), {})
    rest = markdown_document.parse(draft.read(known.path), known.path)
    if all(line.startswith("#") for line in rest.lines[rest.front_end :] if line.strip()):
        draft.delete(known.path)
    return done


def _new_file(item: TextItem, heading: str) -> bytes:
    name = item.document_id.rpartition("/")[2] if item.document_id.startswith("/") else item.document_id
    title = _plain_heading(name) or "Document"
    header = printer.show(SourceDocument(item.document_id, item.source or None))
    # A document outlives the session in which it was first retained.
    lasting = [tag for tag in item.said_in if not tag.startswith(OF_ONE_SESSION)]
    mark = f"{blocks.tags_line(lasting)}\n" if lasting else ""
    return f"{header}\n\n# {title}\n\n{heading}\n{mark}".encode("utf-8", "replace")


# -- sections ------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Section:
    """Lines of the file, newlines included: those of one chunk, or without a name those outside of any
    chunk."""

    name: str
    lines: list[bytes]
    first: int
    """The number of the first line in the file."""


def _sections(data: bytes) -> Iterator[_Section]:
    """The file as sections. A chunk's section begins at its heading and the blank line above it, and ends at
    the next chunk or larger heading."""
    lines = BytesIO(data).readlines()
    starts: dict[int, str] = {}
    for n, line in enumerate(lines):
        mark, heading = _CHUNK_MARK.match(line), _HEADING.match(line)
        if mark:
            at = n - 1 if n and (above := _HEADING.match(lines[n - 1])) and len(above[1]) > 2 else n
            at -= bool(at and not lines[at - 1].strip())
            starts[at] = mark[1].decode("utf-8", "replace")
        elif heading and len(heading[1]) < 3:
            starts.setdefault(n - bool(n and not lines[n - 1].strip()), "")
    cuts = sorted({0, *starts})
    for at, end in zip(cuts, [*cuts[1:], len(lines)], strict=True):
        yield _Section(starts.get(at, ""), lines[at:end], at + 1)


def _strip_chunk(
    section: _Section, facts: Sequence[Fact], ours: set[Fact] | None, removed: list[Fact],
    reuse: dict[str, Fact], done: Upsert,
) -> None:  # fmt: skip
    """Remove our facts from a section; a person's lines stay, without the chunk's mark."""
    last = section.first + len(section.lines) - 1
    out: set[int] = set()
    for fact in facts:
        if section.first <= fact.place.line <= last:
            if fact.id and (ours is None or _as_written(fact) in ours):
                removed.append(fact)
                reuse.setdefault(fact.text, fact)
                out |= set(range(fact.place.line, fact.place.end + 1))
            else:
                done.kept.append(fact.text)
    left = (line for n, line in enumerate(section.lines, section.first) if n not in out)
    rest = [line for line in left if not _CHUNK_MARK.match(line)]
    in_use = any(line.strip() and not _HEADING.match(line) for line in rest)
    section.lines, section.name = rest if in_use else [], ""


def _written_facts(store: Store, path: str) -> set[Fact] | None:
    """The facts of a document as retains have written them; None if there is no history."""
    if not store.history.exists:
        return None
    every = store.history.revisions([path])
    done = [*islice((one for one in every if one.trailer("Memory-Op") == "retain"), _SEARCHED_REVISIONS)]
    found = store.history.read_all([(each.id, path) for each in done])
    return {_as_written(f) for data in found if data for f in markdown_document.parse(data, path).of(Fact)}


def _as_written(fact: Fact) -> Fact:
    """A fact without the fields that are added to it later."""
    return replace(fact, seen=(), flag=None)


def _insert_chunks(
    draft: Draft, sections: list[_Section], names: Sequence[str], chunks: Mapping[str, Chunk],
    extracted: Mapping[str, ExtractedChunk], reuse: Mapping[str, Fact], done: Upsert, path: str, data: bytes,
) -> None:  # fmt: skip
    """Insert the sections of chunks that were read after those of the chunks before them."""
    newline = b"\r\n" if b"\r\n" in data else b"\n"
    headings = [n for n, section in enumerate(sections) if any(_HEADING.match(x) for x in section.lines)]
    at = next((n for n in headings if not sections[n].name and _is_ours(sections[n])), len(sections) - 1)
    for name in names:
        known = next((n for n, section in enumerate(sections) if section.name == name), None)
        if known is not None:
            at = max(at, known)
        elif name in extracted and extracted[name].facts:
            lines = _chunk_lines(draft, chunks[name], extracted[name], reuse, done, path)
            if sections[at].lines and not sections[at].lines[-1].endswith(b"\n"):
                sections[at].lines[-1] += newline
            body = [line.encode("utf-8", "replace") + newline for line in lines]
            at += 1
            sections.insert(at, _Section(name, body if len(lines) > 3 else [], 0))
    for section, following in pairwise(sections):
        if section.first == 0 and following.lines and following.lines[0].strip():
            section.lines.append(newline)


def _is_ours(section: _Section) -> bool:
    """Whether a section has a heading of ours, which names the client that its facts are from."""
    headings = (line.decode("utf-8", "replace") for line in section.lines if line.startswith(b"## "))
    return any(facts.heading_of(heading.strip()).client for heading in headings)


def _chunk_lines(
    draft: Draft, chunk: Chunk, extracted: ExtractedChunk, reuse: Mapping[str, Fact], done: Upsert, path: str
) -> list[str]:
    """The lines of a chunk's section. A fact with the text of a removed one keeps its id."""
    heading = _plain_heading(chunk.heading)
    lines = ["", *([f"### {heading}"] if heading else []), f"<!-- chunk: {chunk.name} -->", ""]
    placed: dict[int, Fact] = {}
    used: set[str | None] = {fact.id for fact in done.added}
    for n, fact in enumerate(extracted.facts):
        before = reuse.get(fact.text)
        if before is not None and before.id not in used:
            fact = replace(fact, id=before.id)
        try:
            cause = placed.get(extracted.causes.get(n, -1))
            fact, own = facts.prepare_fact(draft, with_cause(draft, fact, cause, path))
        except (Usage, TooLarge, Malformed) as error:
            done.notes.append(f"left out, since it cannot be written: {fact.text[:80]} ({error.what})")
            continue
        placed[n] = fact
        used.add(fact.id)
        done.added.append(fact)
        lines += own
    return lines


def with_cause(draft: Draft, fact: Fact, cause: Fact | None, path: str) -> Fact:
    """The fact with a `cause:` that quotes and links another fact."""
    if cause is None or not cause.id:
        return fact
    words = " ".join(re.sub(r"[\[\]]", " ", cause.text).split())
    short = words if len(words) <= 100 else f"{words[:99].rsplit(' ', 1)[0]}…"
    return replace(fact, cause=f"{short} {fields.link_to(draft.link_name(path), cause.id)}")


def _plain_heading(text: str) -> str:
    """Text as a heading without characters that would give it a meaning, such as the author of what is below
    it."""
    words = re.sub(r"[#<>^·\[\]|]", " ", text).replace("—", "-")
    return " ".join(words.split())[:80].strip()


# -- conversion to markdown --------------------------------------------------------------------------------
# Markdown and plain text are read as they are, other formats by the extra markitdown. Its converters are
# called one by one: markitdown's own choice of a converter reads archives, pictures and the network, while
# those for HTML, PDF and DOCX read only the bytes they are given.


TEXT_SUFFIXES = (".md", ".markdown", ".mdown", ".txt", ".text", ".rst", ".org", ".log", "")
CONVERTED_SUFFIXES = (".html", ".htm", ".pdf", ".docx")
MAIL = ".eml"
MOST_BYTES = 50 << 20
INSTALL = "pip install 'ua-memory[ingest]'"


def is_read(name: str) -> bool:
    """Whether files of this name can be read."""
    return PurePath(name).suffix.lower() in (*TEXT_SUFFIXES, MAIL, *CONVERTED_SUFFIXES)


def to_markdown(data: bytes, name: str) -> str:
    """A file's bytes as markdown. Usage for an unsupported format or a missing extra, Malformed if the
    bytes are not of the format that the name says, TooLarge."""
    suffix = PurePath(name).suffix.lower()
    if len(data) > MOST_BYTES:
        raise TooLarge(f"larger than {MOST_BYTES >> 20} MB", where=name, hint="split it")
    if suffix in TEXT_SUFFIXES:
        text = in_utf8(data).decode("utf-8-sig").replace("\r\n", "\n")
        if "\0" in text[:8_192]:
            raise Malformed("this is not text", where=name)
        return text
    if suffix == MAIL:
        return _mail_text(data, name)
    if suffix not in CONVERTED_SUFFIXES:
        known = " ".join(each for each in (*TEXT_SUFFIXES, MAIL, *CONVERTED_SUFFIXES) if each)
        raise Usage(f"{suffix} files are not read", where=name, hint=f"convert it to one of: {known}")
    return _convert(data, name, suffix)


def _mail_text(data: bytes, name: str) -> str:
    """A saved mail as text: who wrote it to whom, when, about what, and its text without attachments."""
    mail = email.message_from_bytes(data, policy=email.policy.default)
    heads = [f"{key}: {mail[key]}" for key in ("From", "To", "Date", "Subject") if mail[key]]
    body = mail.get_body(("plain", "html"))
    try:
        said = str(body.get_content()) if body else ""
    except (LookupError, UnicodeError) as error:
        raise Malformed(f"the text of this mail cannot be read: {error}", where=name) from error
    if body and body.get_content_subtype() == "html":
        said = _convert(said.encode(), name, ".html")
    return "\n".join((*heads, "", said))


def _convert(data: bytes, name: str, suffix: str) -> str:
    try:
        from markitdown import StreamInfo
        from markitdown.converters import DocxConverter, HtmlConverter, PdfConverter
    except ImportError as error:
        raise Usage(f"{suffix} files need a converter", where=name, hint=INSTALL) from error
    converters: dict[str, Any] = {".pdf": PdfConverter, ".docx": DocxConverter}
    converter = converters.get(suffix, HtmlConverter)()
    try:
        text = converter.convert(BytesIO(data), StreamInfo(extension=suffix)).markdown
    except Exception as error:  # its parsers raise whatever they like over a broken file
        if type(error).__name__ == "MissingDependencyException":
            raise Usage(f"{suffix} files need a converter", where=name, hint=INSTALL) from error
        raise Malformed(
            f"cannot be read as {suffix[1:].upper()}: {type(error).__name__}", where=name,
            hint="open it and save it again, or convert it to text",
        ) from error  # fmt: skip
    if not str(text).strip():
        raise Malformed("it contains no text (a scan?)", where=name, hint="run OCR on it first")
    if suffix in (".html", ".htm"):  # a list of terms, which only some markdown has
        text = re.sub(r"(?m)^(\w.*[^:\s])\n: +", r"\1: ", str(text))
    return str(text)


# -- reading files -----------------------------------------------------------------------------------------


def read(store: Store, path: Path) -> tuple[str, str, datetime]:
    """Read a file: its text as markdown, its absolute path, and when it was written (aware). NotFound; Usage
    for a folder, a file of the bank, or a format that is not read; TooLarge."""
    path = path.resolve()
    check_outside_bank(store, path)
    if path.is_dir():
        hint = f"name its files, or: ua-memory watch add {path}"
        raise Usage("a folder is not a file", where=str(path), hint=hint)
    try:
        with discovery.open_regular(path) as file:
            data, saved = file.read(MOST_BYTES + 1), os.fstat(file.fileno()).st_mtime
    except FileNotFoundError as error:
        raise NotFound("no such file", where=str(path)) from error
    except OSError as error:
        raise Malformed(f"cannot be read: {error.strerror or error}", where=str(path)) from error
    text = to_markdown(data, path.name)
    return text, str(path), _written_at(path, text, saved, store.now())


def check_outside_bank(store: Store, path: Path) -> None:
    """Raise Usage for a file of the bank, which would be retained as if it were new."""
    for folder in (store.bank.state.resolve(), store.bank.root.resolve()):
        if path.is_relative_to(folder):
            inner = path.relative_to(folder).as_posix()
            if folder == store.bank.state.resolve() or is_memory_file(inner) or inner in ("", ".", "memory"):
                hint = "the bank's own files are searched already; name another file"
                raise Usage("this is already part of the memory bank", where=str(path), hint=hint)


def _written_at(path: Path, text: str, saved: float, now: datetime) -> datetime:
    """The day in the file's name or of the text, else when it was last saved; never later than now."""
    if named := DATED.search(path.stem):
        with suppress(ValueError):
            return min(now, datetime.fromisoformat(f"{named[1]}T12:00").replace(tzinfo=now.tzinfo))
    return day_of_text(text, now) or min(now, datetime.fromtimestamp(saved, now.tzinfo))


def day_of_text(text: str, now: datetime) -> datetime | None:
    """The day in a text's front matter, else in its title; None if that is not over yet."""
    front = blocks.read_header(front_matter(text).splitlines()).values
    day = day_of_note("", front)
    at = datetime.fromisoformat(f"{day}T12:00").replace(tzinfo=now.tzinfo) if day else title_day(text, now)
    return at if at and at <= now else None
