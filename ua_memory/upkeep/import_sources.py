"""Reading the memories of other tools as values: one reader per source."""

from __future__ import annotations

import hashlib
import json
import os
import re
from base64 import b32encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from ua_memory import discovery
from ua_memory.errors import Malformed, NotFound, Usage
from ua_memory.markdown import document as markdown_document
from ua_memory.markdown import fields
from ua_memory.markdown import lines as markdown_lines
from ua_memory.markdown.lines import readable
from ua_memory.records import Fact, MentalModel, Observation, Opinion, Page, Problem, Proof
from ua_memory.store.files import in_utf8
from ua_memory.text import dates
from ua_memory.text.wording import counted, shorten

# -- contents --------------------------------------------------------------------------------------------
# Markdown files are copied (`CopiedNote`); contents of a database become records (`ImportedRecord`), pages
# and mental models.


Files = Mapping[str, bytes]
"""{path relative to the source, with `/`: bytes}."""


@dataclass(frozen=True, slots=True)
class CopiedNote:
    """A markdown file to be copied.

    `path` is relative to the source, `name` to the folder of the import, and begins with `day` if there is
    one. `curated` notes are imported whatever their day. `body`, if given, is written instead of `data`.
    """

    path: str
    name: str
    data: bytes
    day: str | None = None
    curated: bool = False
    body: bytes | None = None

    @property
    def hash(self) -> str:
        """Twelve hexadecimal digits of the SHA-256 of the bytes."""
        return hashlib.sha256(self.data).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class ImportedRecord:
    """A record of a database, with a block id derived from its id there.

    `said` is an ISO day or time, `session` a session or document, `proofs` the ids of the items it is based
    on.
    """

    record: Fact | Observation | Opinion
    said: str | None = None
    session: str | None = None
    proofs: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        return self.record.id or ""

    @property
    def day(self) -> str | None:
        return self.said[:10] if self.said else None


@dataclass(frozen=True, slots=True)
class SourceContents:
    """The contents of a source. `problems` have the source's paths; `left` are messages on what is not
    imported."""

    source: str
    name: str
    notes: tuple[CopiedNote, ...] = ()
    items: tuple[ImportedRecord, ...] = ()
    core: CopiedNote | None = None
    """A curated file whose blocks may become core memory."""
    models: tuple[MentalModel, ...] = ()
    pages: tuple[Page, ...] = ()
    problems: tuple[Problem, ...] = ()
    left: tuple[str, ...] = ()
    later: int = 0
    """Notes and items that the chosen days leave out."""

    def within(self, days: int | None) -> SourceContents:
        """Curated and undated contents, and those of the newest `days` days; everything for None.

        An item that is based on others has the day of the newest of them, and includes them all.
        """
        if days is None:
            return self
        day_of = {item.id: item.day or "" for item in self.items}
        for item in self.items:
            day_of[item.id] = max((day_of[p] for p in item.proofs if p in day_of), default=day_of[item.id])
        known = sorted({day for day in (*(n.day for n in self.notes), *day_of.values()) if day})
        first = "9999-12-31"
        if known and days:
            first = (date.fromisoformat(known[-1]) - timedelta(days=days - 1)).isoformat()
        notes = tuple(n for n in self.notes if n.curated or (n.day or "") >= first)
        chosen = {item.id for item in self.items if not (day := day_of[item.id]) or day >= first}
        chosen |= {proof for item in self.items if item.id in chosen for proof in item.proofs}
        items = tuple(item for item in self.items if item.id in chosen)
        later = len(self.notes) - len(notes) + len(self.items) - len(items)
        return replace(self, notes=notes, items=items, later=later)


def stable_id(key: str) -> str:
    """The block id for an id of Hindsight, always the same."""
    return b32encode(hashlib.sha256(f"hindsight\0{key}".encode()).digest())[:10].decode().lower()


# -- readers ---------------------------------------------------------------------------------------------
# A reader is a pure function from a source's files to `SourceContents`. `cli` reads the files, and
# `import_.import_contents` writes the contents into a bank. No text is rephrased.


def read_source(source: str, name: str, files: Files) -> SourceContents:
    """Read a source of this kind. Usage for an unknown kind, or if nothing is found."""
    readers: dict[str, Callable[[str, Files], SourceContents]] = {
        "openclaw": read_openclaw,
        "claude-code": read_claude_code,
        "basic-memory": read_basic_memory,
        "markdown": read_notes,
        "hindsight": read_hindsight,
    }
    if source not in readers:
        raise Usage(f"cannot import from {source!r}", hint=f"use {', '.join(readers)}")
    return readers[source](name, files)


# -- notes -----------------------------------------------------------------------------------------------
# A folder of markdown notes, such as an Obsidian vault. A note's day is in its path, else in its front matter
# (`text.dates`). The file's time is not used, since copies and checkouts change it.


_CONTROL_CHARACTERS = re.compile(r"[\\\x00-\x1f\x7f-\x9f]")
_LONGEST = 200
"""Bytes of a part of a path; there must be room for a day before it."""


_LONGEST_PATH = 800
"""Characters of a path below the folder of an import."""


def read_notes(name: str, files: Files) -> SourceContents:
    """Read every note of a folder. Usage if there is none."""
    notes, problems, left = collect_notes({path: files[path] for path in sorted(files)}, curated=True)
    if not notes:
        raise Usage("no markdown notes found", where=name, hint="give the folder that contains them")
    return SourceContents("markdown", name, tuple(notes), problems=tuple(problems), left=tuple(left))


def collect_notes(files: Files, *, curated: bool) -> tuple[list[CopiedNote], list[Problem], list[str]]:
    """(notes, problems in them, messages on empty and duplicate files). Notes without a day are `curated` as
    given."""
    notes: list[CopiedNote] = []
    problems: list[Problem] = []
    left: list[str] = []
    first: dict[str, str] = {}
    for path, data in files.items():
        if not path.lower().endswith(".md"):
            continue
        if not data.strip():
            left.append(f"{path}: empty")
            continue
        made = make_note(path, data, curated)
        if made.hash in first:
            left.append(f"{path}: the same as {first[made.hash]}")
            continue
        first[made.hash] = path
        notes.append(made)
        problems += note_problems(made, f"memory/{made.name}")
    return notes, problems, left


def make_note(path: str, data: bytes, curated: bool) -> CopiedNote:
    """One file as a note, with its day and its name in the bank."""
    headed = data.removeprefix(b"\xef\xbb\xbf").startswith(b"---")
    day = dates.day_of_note(path, markdown_document.parse(data, f"memory/{path}").front if headed else {})
    return CopiedNote(path, bank_path(path, day), data, day, curated and not day)


def note_problems(note: CopiedNote, path: str) -> list[Problem]:
    """The problems of a note as a file of the bank, with their places in the source."""
    found = markdown_document.parse(note.data, path).problems
    return [Problem(note.path, each.line, each.message) for each in found]


def bank_path(path: str, day: str | None) -> str:
    """A valid path in a bank: without hidden parts and control characters, not too long, with the day before
    the name unless it has it. If it is too deep, the outer folders are dropped."""
    *folders, name = (_safe_part(part) for part in path.split("/") if part not in ("", ".", ".."))
    stem = _safe_part(name[: -len(".md")])
    if day and markdown_lines.day_of(f"{stem}.md") != day:
        stem = f"{day}-{stem}"
    while sum(map(len, folders)) + len(folders) + len(stem) > _LONGEST_PATH:
        folders = folders[1:]
    return "/".join([*folders, f"{stem}.md"])


def _safe_part(part: str) -> str:
    clean = _CONTROL_CHARACTERS.sub("_", part).encode("utf-8", "replace")[:_LONGEST].decode("utf-8", "ignore")
    return f"_{clean[1:]}" if clean.startswith(".") else clean or "_"


def files_below(files: Files, folder: str) -> dict[str, bytes]:
    """The files below a folder, sorted, with paths relative to it."""
    start = f"{folder}/" if folder else ""
    return {path[len(start) :]: files[path] for path in sorted(files) if path.startswith(start)}


# -- basic memory ----------------------------------------------------------------------------------------
# A basic-memory project: notes of markdown whose list items are observations and relations.
#
# `- [method] Pour over is clearer #brewing (my own)` has a category, tags and a context; `- requires
# [[Grinder]]` links its note to another; `@effective(2026-03-01)` is the beginning of validity. Each line is
# kept; category, names and times are added below it as metadata of ours.


_CATEGORY_TAG = re.compile(r"\[([^\[\]()]{2,}|[a-wyzA-WYZ0-9])\]\s+\S")
_CLOCK = re.compile(r"[\d:.,\s-]+")
_LINK = re.compile(r"\[\[([^\[\]|#^]+)(?:[#^|][^\[\]]*)?\]\]")
_EFFECTIVE = re.compile(r"@effective\((\d{4}-\d\d-\d\d)(?:\s*,\s*(\d{4}-\d\d-\d\d))?\)")


def read_basic_memory(name: str, files: Files) -> SourceContents:
    """Read every note of a project. Usage if there is none."""
    found = read_notes(name, files)
    made = tuple(replace(note, curated=True, body=with_metadata(note)) for note in found.notes)
    return replace(found, source="basic-memory", notes=made)


def with_metadata(note: CopiedNote) -> bytes | None:
    """The note with metadata added below its items; None if there is nothing to add."""
    path = f"memory/{note.name}"
    document = markdown_document.parse(note.data, path)
    title = str(document.front.get("title") or note.path.rpartition("/")[2].removesuffix(".md"))
    more = [(f, lines) for f in reversed(document.of(Fact)) if (lines := metadata(f, title))]
    data = note.data
    for fact, lines in more:
        data = markdown_lines.insert_after(data, fact.place.end, lines)
    # Adding all at once is quick; on a problem, add one by one.
    if more and not _is_metadata_only(note.data, data, path):
        data = note.data
        for fact, lines in more:
            new = markdown_lines.insert_after(data, fact.place.end, lines)
            data = new if _is_metadata_only(data, new, path) else data
    return data if data != note.data else None


def metadata(fact: Fact, title: str) -> list[str]:
    """The metadata lines for an item: its validity, names and category."""
    first = fact.text.split("\n")[0]
    lines = []
    if (effective := _EFFECTIVE.search(first)) and not fact.when:
        lines.append(f"  - when: {'/'.join(filter(None, effective.groups()))}")
    names = [name.strip() for name in _LINK.findall(first) if name.strip()]
    if names and not fact.entities:
        lines.append(f"  - entities: {fields.write_links(list(dict.fromkeys([title, *names])))}")
    category = _CATEGORY_TAG.match(first)
    if category and not _CLOCK.fullmatch(category[1]):
        lines.append(f"  - tags: {fields.write_tags([category[1].strip()])}")
    return lines


def _is_metadata_only(old: bytes, new: bytes, path: str) -> bool:
    """Whether the added lines parse as metadata, and all else as before."""
    then, now = markdown_document.parse(old, path), markdown_document.parse(new, path)
    same = [fact.text for fact in then.of(Fact)] == [fact.text for fact in now.of(Fact)]
    return same and len(now.problems) == len(then.problems)


# -- claude code -----------------------------------------------------------------------------------------
# Claude Code's own memory: one fact a file with front matter (`projects/*/memory/*.md`), and `CLAUDE.md`.
#
# Named may be `~/.claude`, a project's folder in it, a `memory` folder, or a code project with a
# `CLAUDE.md`. Session transcripts are no memories yet: a flush reads them.


INSTRUCTIONS = ("CLAUDE.md", "CLAUDE.local.md")
_MEMORY = re.compile(r"(?:projects/[^/]+/)?memory/.+\.md")
_INDEX_LINE = re.compile(r"\s*[-*] \[[^\]]*\]\(([^)]+\.md)\)")


def read_claude_code(name: str, files: Files) -> SourceContents:
    """Read the memory files and instructions below a folder. Usage if there are none."""
    talks = sum(path.endswith(".jsonl") for path in files)
    chosen = {path: data for path, data in files.items() if path in INSTRUCTIONS or _MEMORY.fullmatch(path)}
    top = {path: data for path, data in files.items() if "/" not in path}
    if not chosen and any(map(_is_memory_file, top.values())):
        chosen = top  # the memory folder itself
    made, problems, left = collect_notes(dict(sorted(chosen.items())), curated=True)
    index = {note.path for note in made if _is_index(note, chosen)}
    left += [f"{path}: an index of the other notes" for path in sorted(index)]
    notes = tuple(
        replace(note, name=_name(note), curated=True)
        for note in sorted(made, key=lambda n: n.path.rpartition("/")[2] not in INSTRUCTIONS)
        if note.path not in index
    )
    if talks:
        left.append(f"{talks} session transcript{'s' * (talks > 1)}: those are for `ua-memory flush FILE`")
    if not notes:
        remark = " (session transcripts are for `ua-memory flush FILE`)" if talks else ""
        hint = "give ~/.claude, or ~/.claude/projects/PROJECT/memory"
        raise Usage(f"no memory files and no CLAUDE.md{remark}", where=name, hint=hint)
    return SourceContents("claude-code", name, notes, problems=tuple(problems), left=tuple(left))


def _is_memory_file(data: bytes) -> bool:
    return data.removeprefix(b"\xef\xbb\xbf").startswith(b"---") and b"\nname:" in data[:2000]


def _is_index(note: CopiedNote, files: Files) -> bool:
    """Whether a MEMORY.md only lists the files beside it."""
    folder, _, base = note.path.rpartition("/")
    if base != "MEMORY.md":
        return False
    lines = [line for line in note.data.decode("utf-8", "replace").splitlines() if line.strip()]
    named = [match[1] for line in lines if (match := _INDEX_LINE.match(line))]
    others = [line for line in lines if not _INDEX_LINE.match(line) and not line.startswith("#")]
    return not others and all(f"{folder}/{file}".removeprefix("/") in files for file in named)


def _name(note: CopiedNote) -> str:
    """`projects/-home-u-api/memory/x.md` as `home-u-api/x.md`."""
    parts = [part for part in note.path.split("/") if part not in ("projects", "memory")]
    return bank_path("/".join(part.lstrip("-") or part for part in parts), note.day)


# -- hindsight -------------------------------------------------------------------------------------------
# What Hindsight exports: an export of a bank, its memories as they are listed, dumps of its tables; JSON or
# lines of JSON. The shapes differ from version to version, so an object is recognised by what it
# has, wherever it stands in the file.
#
# A memory's text is `what | When: … | Involving: … | why` in one string; here these are the fact's text and
# fields. An observation whose source memories are in the export has them as its proofs, with their words.


BELIEFS = ("observation", "opinion")
TYPES = ("world", "experience", "assistant", "bank", "observation", "opinion")
LISTS = ("memories", "memory_units", "items")
"""Keys of lists of memories, in which each object that is not read is reported."""
SOURCES = ("source_memory_ids", "source_fact_ids", "source_memories")
LONGEST_PROOF = 240
"""So many characters of a source's first line are quoted in a proof."""
_STAMP = re.compile(r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)\S*)?\Z")

Json = dict[str, Any]


@dataclass(slots=True)
class ExportObjects:
    """The objects of an export by kind."""

    units: dict[str, Json] = field(default_factory=dict)
    documents: dict[str, Json] = field(default_factory=dict)
    models: dict[str, Json] = field(default_factory=dict)
    pages: dict[str, Json] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    links: list[tuple[str, str]] = field(default_factory=list)
    directives: list[Json] = field(default_factory=list)
    nameless: int = 0
    unread: list[str] = field(default_factory=list)
    """Of the memories those without a text or of an unknown type."""

    def sort(self, value: Any, listed: bool = False, inside: bool = False) -> None:
        """Sort all objects within a value, recursively; `listed` are those in one of `LISTS`, but not in one
        `inside` a memory, whose metadata may have any key."""
        if isinstance(value, list):
            for each in value:
                self.sort(each, listed, inside)
            return
        one = value if isinstance(value, dict) else {}
        if not self._sort_object(one, listed) and listed:
            self.unread.append(str(one.get("id") or shorten(json.dumps(value, ensure_ascii=False), 40)))
        inside = inside or _is_memory(one)
        for name, each in one.items():
            if isinstance(each, dict | list):
                self.sort(each, isinstance(each, list) and name in LISTS and not inside, inside)

    def _sort_object(self, one: Json, listed: bool) -> bool:
        """Whether an object is of a known kind. A memory that is listed as one may lack its type."""
        if listed and not (one.get("fact_type") or one.get("type")) and _text(one, "text"):
            one["fact_type"] = "world"
        key = str(one.get("id") or one.get("key") or "")
        if _is_memory(one):
            self.nameless += not key
            self.units.setdefault(key or _text(one, "text"), one)
        elif key and _text(one, "original_text"):
            self.documents.setdefault(key, one)
        elif key and one.get("kind") == "page":
            self.pages.setdefault(key, one)
        elif key and ("source_query" in one or ("content" in one and "max_tokens" in one)):
            self.models.setdefault(key, one)
        elif key and _text(one, "canonical_name"):
            self.names[key] = _text(one, "canonical_name")
        elif one.get("unit_id") and one.get("entity_id"):
            self.links.append((str(one["unit_id"]), str(one["entity_id"])))
        elif "is_active" in one and _text(one, "content"):
            self.directives.append(one)
        else:
            return False
        return True


def _is_memory(one: Json) -> bool:
    return bool(_text(one, "text")) and (one.get("fact_type") or one.get("type")) in TYPES


def read_hindsight(name: str, files: Files) -> SourceContents:
    """Read the memories, documents, mental models and pages of an export. Usage if there are none."""
    objects, problems = ExportObjects(), list[Problem]()
    for path in sorted(files):
        if path.endswith((".json", ".jsonl")):
            problems += _load_json(objects, path, files[path])
    pages_of_markdown = {p: d for p, d in files.items() if p.endswith(".md") and not p.endswith(".log.md")}
    notes, more, left = collect_notes(pages_of_markdown, curated=True)
    models, pages, bodies = _pages(objects)
    items = tuple(_records(objects))
    notes += [*bodies, *_documents(objects)]
    left += _left_out(objects)
    if not (items or notes or models or pages):
        if problems:
            raise Usage(problems[0].message, where=f"{problems[0].path}:{problems[0].line}")
        hint = "give an export: hindsight-admin export-bank, or GET …/memories/list saved as JSON"
        what = "; ".join(("contains no memories, documents or mental models of Hindsight", *left))
        raise Usage(what, where=name, hint=hint)
    name = re.sub(r"\.jsonl?\Z", "", name)
    return SourceContents(
        "hindsight", name, tuple(notes), items, models=models, pages=pages,
        problems=(*problems, *more), left=tuple(left),
    )  # fmt: skip


def _load_json(objects: ExportObjects, path: str, data: bytes) -> Iterator[Problem]:
    """Sort a file's JSON into the heap; what cannot be read, at its line."""
    try:
        objects.sort(json.loads(data))
        return
    except (ValueError, RecursionError) as error:
        first, line = str(error), getattr(error, "lineno", 1)
    rows = [(n, row) for n, row in enumerate(data.splitlines(), 1) if row.strip()]
    if not path.endswith(".jsonl") and len(rows) < 2:
        yield Problem(path, line, f"not JSON: {first}")
        return
    for number, row in rows:
        try:
            objects.sort(json.loads(row))
        except (ValueError, RecursionError) as error:
            yield Problem(path, number, f"not JSON: {error}")
            if not path.endswith(".jsonl"):
                return


def _left_out(objects: ExportObjects) -> Iterator[str]:
    if objects.directives:
        names = ", ".join(str(each.get("name") or "nameless") for each in objects.directives)
        yield f"directives ({names}): copy those you want into ua-memory.toml"
    if objects.nameless:
        yield f"{objects.nameless} memories have no id; their text is compared instead"
    if objects.unread:
        some = f"{', '.join(objects.unread[:5])}{', …' if len(objects.unread) > 5 else ''}"
        number = counted(len(objects.unread), "memory", "memories")
        yield f"{number} without a text or of an unknown type: {some}"


# -- memories --------------------------------------------------------------------------------------------


def _records(objects: ExportObjects) -> Iterator[ImportedRecord]:
    for unit, entity in objects.links:
        if unit in objects.units and entity in objects.names:
            objects.units[unit].setdefault("_names", []).append(objects.names[entity])
    facts = {key: _record(key, one) for key, one in objects.units.items()}
    yield from (i for key, i in facts.items() if _kind(objects.units[key]) not in BELIEFS)
    for key, one in objects.units.items():
        if _kind(one) in BELIEFS:
            named: list[Any] = next((one[name] for name in SOURCES if one.get(name)), [])
            ids = dict.fromkeys(str(each.get("id") if isinstance(each, dict) else each) for each in named)
            sources = [facts[i] for i in ids if i in facts and isinstance(facts[i].record, Fact)]
            yield _make_belief(facts[key], sources, one) if sources else facts[key]


def _kind(one: Json) -> str:
    return str(one.get("fact_type") or one.get("type"))


def _record(key: str, one: Json) -> ImportedRecord:
    kind = _kind(one)
    said = _time_of(one, "mentioned_at") or _time_of(one, "event_date") or _time_of(one, "created_at")
    what, who, why = split_text(_text(one, "text"), bool(_time_of(one, "occurred_start")))
    tags = [str(tag) for tag in one.get("tags") or () if str(tag).strip() and "\n" not in str(tag)]
    if kind in BELIEFS:  # it stays a fact where nothing in the export bears it
        tags.append(kind)
    fact = Fact(
        what, stable_id(key), kind="world" if kind in ("world", *BELIEFS) else "experience",
        when=_when(one), who=who, why=why, entities=_names(one), tags=tuple(dict.fromkeys(tags)),
    )  # fmt: skip
    return ImportedRecord(fact, said, _text(one, "document_id") or None)


def split_text(text: str, dated: bool) -> tuple[str, str | None, str | None]:
    """(what, who, why) of a memory's text. Its `When:` stays in the text unless it is `dated`."""
    what, *rest = re.split(r" \| ", readable(text).strip())
    who, why = [], []
    for part in rest:
        if part.startswith("When: "):
            what = what if dated else f"{what} | {part}"
        elif part.startswith("Involving: "):
            who.append(part.removeprefix("Involving: "))
        else:
            why.append(part)
    one_line = [" ".join(" | ".join(each).split()) or None for each in (who, why)]
    return what, one_line[0], one_line[1]


def _when(one: Json) -> str | None:
    """When it happened: a day, a time or a span of days; None if unknown."""
    start, end = _time_of(one, "occurred_start"), _time_of(one, "occurred_end")
    if not start:
        return None
    if end and end[:10] > start[:10]:
        return f"{start[:10]}/{end[:10]}"
    when = start[:16] if start[11:16] not in ("", "00:00") else start[:10]
    return when if fields.is_time(when) else start[:10]


def _time_of(one: Json, key: str) -> str | None:
    """A time as `2026-02-03` or with hour, minute and offset; None if missing or invalid."""
    value = one.get(key)
    match = _STAMP.match(value.strip()) if isinstance(value, str) else None
    if not match or not fields.is_time(match[1]):
        return None
    return value.strip().replace(" ", "T", 1) if match[2] else match[1]  # type: ignore[union-attr]


def _names(one: Json) -> tuple[str, ...]:
    given = one.get("entities") or one.get("_names") or []
    each = given.split(",") if isinstance(given, str) else given if isinstance(given, list) else []
    keys = ("text", "name", "canonical_name")
    found = [next((e[k] for k in keys if e.get(k)), "") if isinstance(e, dict) else e for e in each]
    return tuple(dict.fromkeys(name for e in found if (name := " ".join(str(e).split()))))


def _make_belief(item: ImportedRecord, sources: list[ImportedRecord], one: Json) -> ImportedRecord:
    """The observation or opinion for a memory, with its source facts as proofs."""
    fact, kind = item.record, _kind(one)
    assert isinstance(fact, Fact)
    quotes = [each.record.text.split("\n")[0][:LONGEST_PROOF].strip() for each in sources]
    proofs = tuple(Proof("", each.id, quote) for each, quote in zip(sources, quotes, strict=True))
    tags = tuple(tag for tag in fact.tags if tag != kind)
    if kind == "opinion":
        sure = one.get("confidence_score")
        confidence = float(sure) if isinstance(sure, int | float) and 0 <= sure <= 1 else None
        record: Opinion | Observation = Opinion(
            fact.text, fact.id, confidence=confidence, because=proofs, entities=fact.entities, tags=tags
        )
    else:
        days: list[str | None] = [*sorted(each.day for each in sources if each.day)] or [None]
        record = Observation(
            fact.text, fact.id, proofs, since=days[0], last=days[-1], entities=fact.entities, tags=tags,
            origin="import",
        )  # fmt: skip
    return replace(item, record=record, proofs=tuple(each.id for each in sources))


# -- documents, models, pages ----------------------------------------------------------------------------


def _documents(objects: ExportObjects) -> Iterator[CopiedNote]:
    for key, one in objects.documents.items():
        day = (_time_of(one, "created_at") or _time_of(one, "updated_at") or "")[:10] or None
        path = f"documents/{_file_name(key)}.md"
        yield CopiedNote(path, bank_path(path, day), readable(one["original_text"]).encode(), day)


def _pages(objects: ExportObjects) -> tuple[tuple[MentalModel, ...], tuple[Page, ...], list[CopiedNote]]:
    """(mental models, pages without their body, the bodies as notes). A page's body is generated here."""
    pages, bodies, of_pages = [], [], set()
    for key, one in objects.pages.items():
        model = objects.models.get(str(one.get("mental_model_id")), one)
        of_pages.add(str(one.get("mental_model_id")))
        query = _text(model, "source_query") or _text(one, "source_query") or _text(one, "name")
        pages.append(Page(_file_name(key), _text(one, "name") or key, query, _tags(model)))
        if body := _text(model, "content"):
            data = f"# {_text(one, 'name')}\n\n{body}\n".encode()
            bodies.append(make_note(f"pages/{_file_name(key)}.md", data, True))
    models = [
        MentalModel(_file_name(key), _text(one, "name") or key, _tags(one), _text(one, "content"))
        for key, one in objects.models.items()
        if key not in of_pages and _text(one, "content")
    ]
    return tuple(models), tuple(pages), bodies


def _tags(one: Json) -> tuple[str, ...]:
    return tuple(str(tag) for tag in one.get("tags") or () if str(tag).strip())


def _file_name(key: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", key).strip("-_")[:64] or "nameless"


def _text(one: Json, key: str) -> str:
    value = one.get(key)
    return value if isinstance(value, str) and value.strip() else ""


# -- openclaw --------------------------------------------------------------------------------------------
# An OpenClaw workspace (older: Clawdbot): curated `MEMORY.md` first, then the notes in `memory/`.
#
# The source may be a workspace, or the state folder around it (`~/.openclaw`) with `workspace*` folders.


OPENCLAW_INSTRUCTIONS = ("AGENTS.md", "SOUL.md", "TOOLS.md", "IDENTITY.md", "HEARTBEAT.md", "BOOTSTRAP.md")
"""Instructions for the agent, which are not imported."""
CURATED_FILES = ("USER.md",)
DREAM_FILES = ("DREAMS.md", "dreams.md")


def read_openclaw(name: str, files: Files) -> SourceContents:
    """Read a workspace. Usage if there is none."""
    inner = sorted({path.split("/")[0] for path in files if path.startswith("workspace") and "/" in path})
    roots = [root for root in ("", *inner) if _is_workspace(files_below(files, root))]
    if not roots:
        what = "not an OpenClaw workspace: it has neither MEMORY.md nor memory/*.md"
        hint = "give the workspace, such as ~/.openclaw/workspace or ~/clawd"
        raise Usage(what, where=name, hint=hint)
    if roots[0] == "" or len(roots) == 1:
        return _workspace(name, files_below(files, roots[0]), roots[0])
    raise Usage(f"several workspaces: {', '.join(roots)}", where=name, hint="give one of them")


def _is_workspace(files: Files) -> bool:
    return any(p in discovery.CORE_NAMES or (p.startswith("memory/") and p.endswith(".md")) for p in files)


def _workspace(name: str, files: Files, root: str) -> SourceContents:
    memory = {path: data for path, data in files.items() if path.startswith("memory/")}
    memory |= {path: files[path] for path in DREAM_FILES if path in files}
    notes, problems, left = collect_notes(memory, curated=False)
    # The folder of an import stands for `memory/`: relative links between notes go on working.
    notes = [replace(each, name=each.name.removeprefix("memory/")) for each in notes]
    for path in (p for p in CURATED_FILES if files.get(p, b"").strip()):
        notes.insert(0, make_note(path, files[path], True))
    core = None
    if path := next((path for path in discovery.CORE_NAMES if files.get(path, b"").strip()), ""):
        core = CopiedNote(path, bank_path(path, None), files[path], None, True)
        problems = [*note_problems(core, discovery.CORE_NAMES[0]), *problems]
    if instructions := [path for path in OPENCLAW_INSTRUCTIONS if path in files]:
        left.append(f"{', '.join(instructions)}: instructions for the agent, not memories")
    return SourceContents(
        "openclaw", root or name, tuple(notes), core=core, problems=tuple(problems), left=tuple(left)
    )


# -- files -----------------------------------------------------------------------------------------------

READ = {"hindsight": (".md", ".json", ".jsonl")}

NAMED = {"claude-code": (".jsonl",)}
"""What is read for a source besides markdown, and what is only noticed: transcripts may be large."""

SKIPPED = ("node_modules", "__pycache__", "venv")

LARGEST = 64 * 1024 * 1024
"""Bytes of a file; a larger one is no note, and an export of that size is better cut into documents."""


def files_of(root: Path, ours: Path, source: str) -> tuple[dict[str, bytes], list[str]]:
    """The files that a reader may want, by their path below `root`, and what is not read. A link to a
    file inside of it is followed, one to a folder is not; nothing hidden is looked into, nor is
    the bank itself, `ours`. NotFound; Malformed where `root` is a file that cannot be read."""
    files: dict[str, bytes] = {}
    unread: list[str] = []
    if not root.exists():
        raise NotFound("no such file or folder", where=str(root), hint="give the folder or file to import")
    wanted, named = READ.get(source, (".md",)), NAMED.get(source, ())

    def refused(error: OSError) -> None:
        unread.append(f"{error.filename}: {error.strerror}")

    for file in _walk(root, ours, (*wanted, *named), refused):
        name = file.name if file == root else file.relative_to(root).as_posix()
        if file != root and not file.resolve().is_relative_to(root.resolve()):
            unread.append(f"{name}: a link that leads out of the folder")
            continue
        try:
            if name.lower().endswith(named):
                files[name] = b""
            else:
                files[name] = in_utf8(discovery.read(file, LARGEST))
        except OSError as error:
            if file == root:  # it was named, not found
                why = f"cannot be read: {error.strerror or error}"
                raise Malformed(why, where=str(root), hint="give a folder or a file") from error
            unread.append(f"{name}: {error.strerror or error}")
        if b"\0" in files.get(name, b""):
            del files[name]
            unread.append(f"{name}: binary")
    return files, unread


def _walk(
    root: Path, ours: Path, wanted: tuple[str, ...], unread: Callable[[OSError], None]
) -> Iterator[Path]:
    if not root.is_dir():
        yield root
        return
    for folder, below, names in os.walk(root, onerror=unread):
        fit = (name for name in below if not name.startswith(".") and name not in SKIPPED)
        below[:] = sorted(name for name in fit if Path(folder, name).resolve() != ours)
        for name in sorted(names):
            file = Path(folder, name)
            if name.lower().endswith(wanted) and not name.startswith(".") and not file.is_dir():
                yield file
