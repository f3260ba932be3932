"""What Hindsight exports: an export of a bank, its memories as they are listed, dumps of its tables; JSON or
lines of JSON. The shapes differ from version to version, so each object is told by what it has, wherever it
stands in the file.

A memory's text is `what | When: … | Involving: … | why` in one string; here these are the fact's text and
fields. An observation whose source memories are in the export has them as its proofs, with their words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from ua_memory import markdown
from ua_memory.errors import Usage
from ua_memory.importers.found import Files, Found, Item, Note, stable_id
from ua_memory.importers.notes import collect, fitting, note
from ua_memory.markdown.lines import readable
from ua_memory.records import Fact, MentalModel, Observation, Opinion, Page, Problem, Proof

BELIEFS = ("observation", "opinion")
TYPES = ("world", "experience", "assistant", "bank", "observation", "opinion")
SOURCES = ("source_memory_ids", "source_fact_ids", "source_memories")
LONGEST_PROOF = 240
"""Characters of a source's first line that are quoted as a proof."""
_STAMP = re.compile(r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)\S*)?\Z")

Json = dict[str, Any]


@dataclass(slots=True)
class Heap:
    """The objects of an export, by what they are."""

    units: dict[str, Json] = field(default_factory=dict)
    documents: dict[str, Json] = field(default_factory=dict)
    models: dict[str, Json] = field(default_factory=dict)
    pages: dict[str, Json] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    links: list[tuple[str, str]] = field(default_factory=list)
    directives: list[Json] = field(default_factory=list)
    nameless: int = 0

    def sort(self, value: Any) -> None:
        """Put every object within a value where it belongs."""
        if isinstance(value, list):
            for each in value:
                self.sort(each)
        elif isinstance(value, dict):
            self._object(value)
            for each in value.values():
                if isinstance(each, dict | list):
                    self.sort(each)

    def _object(self, one: Json) -> None:
        key = str(one.get("id") or one.get("key") or "")
        if _text(one, "text") and (one.get("fact_type") or one.get("type")) in TYPES:
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


def read(name: str, files: Files) -> Found:
    """The memories, documents, mental models and pages of an export. Usage where there are none."""
    heap, problems = Heap(), list[Problem]()
    for path in sorted(files):
        if path.endswith((".json", ".jsonl")):
            problems += _loaded(heap, path, files[path])
    pages_of_markdown = {p: d for p, d in files.items() if p.endswith(".md") and not p.endswith(".log.md")}
    notes, more, left = collect(pages_of_markdown, curated=True)
    models, pages, bodies = _pages(heap)
    items = tuple(_items(heap))
    notes += [*bodies, *_documents(heap)]
    if not (items or notes or models or pages):
        raise Usage(
            "no memories, documents or mental models of Hindsight", where=name,
            mend="name an export: hindsight-admin export-bank, or GET …/memories/list saved as JSON",
        )  # fmt: skip
    left += _told(heap)
    name = re.sub(r"\.jsonl?\Z", "", name)
    return Found(
        "hindsight", name, tuple(notes), items, models=models, pages=pages,
        problems=(*problems, *more), left=tuple(left),
    )  # fmt: skip


def _loaded(heap: Heap, path: str, data: bytes) -> Iterator[Problem]:
    """Sort a file's JSON into the heap; what cannot be read, at its line."""
    try:
        heap.sort(json.loads(data))
        return
    except (ValueError, RecursionError) as error:
        first, line = str(error), getattr(error, "lineno", 1)
    rows = [(n, row) for n, row in enumerate(data.splitlines(), 1) if row.strip()]
    if not path.endswith(".jsonl") and len(rows) < 2:
        yield Problem(path, line, f"no JSON: {first}")
        return
    for number, row in rows:
        try:
            heap.sort(json.loads(row))
        except (ValueError, RecursionError) as error:
            yield Problem(path, number, f"no JSON: {error}")
            if not path.endswith(".jsonl"):
                return


def _told(heap: Heap) -> Iterator[str]:
    if heap.directives:
        names = ", ".join(str(each.get("name") or "nameless") for each in heap.directives)
        yield f"directives ({names}): copy those you want into ua-memory.toml"
    if heap.nameless:
        yield f"{heap.nameless} memories have no id: they are known again by their text"


# -- memories --------------------------------------------------------------------------------------------


def _items(heap: Heap) -> Iterator[Item]:
    for unit, entity in heap.links:
        if unit in heap.units and entity in heap.names:
            heap.units[unit].setdefault("_names", []).append(heap.names[entity])
    facts = {key: _item(key, one) for key, one in heap.units.items()}
    yield from (i for key, i in facts.items() if _kind(heap.units[key]) not in BELIEFS)
    for key, one in heap.units.items():
        if _kind(one) in BELIEFS:
            named: list[Any] = next((one[name] for name in SOURCES if one.get(name)), [])
            ids = dict.fromkeys(str(each.get("id") if isinstance(each, dict) else each) for each in named)
            sources = [facts[i] for i in ids if i in facts and isinstance(facts[i].record, Fact)]
            yield _belief(facts[key], sources, one) if sources else facts[key]


def _kind(one: Json) -> str:
    return str(one.get("fact_type") or one.get("type"))


def _item(key: str, one: Json) -> Item:
    kind = _kind(one)
    said = _stamp(one, "mentioned_at") or _stamp(one, "event_date") or _stamp(one, "created_at")
    what, who, why = parts(_text(one, "text"), bool(_stamp(one, "occurred_start")))
    tags = [str(tag) for tag in one.get("tags") or () if str(tag).strip() and "\n" not in str(tag)]
    names = _names(one)
    session = _text(one, "document_id") or None
    block = stable_id("hindsight", key)
    if kind in BELIEFS:  # it stays a fact where nothing in the export bears it
        tags.append(kind)
    fact = Fact(
        what, block, kind="world" if kind in ("world", *BELIEFS) else "experience",
        when=_when(one), who=who, why=why, entities=names, tags=tuple(dict.fromkeys(tags)),
    )  # fmt: skip
    return Item(fact, said, session)


def parts(text: str, dated: bool) -> tuple[str, str | None, str | None]:
    """What, who and why of a memory's one string. Its `When:` stays in the text unless it is `dated`."""
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
    """When it happened: a day, a minute, or a stretch of days; None where that is not known."""
    start, end = _stamp(one, "occurred_start"), _stamp(one, "occurred_end")
    if not start:
        return None
    if end and end[:10] > start[:10]:
        return f"{start[:10]}/{end[:10]}"
    when = start[:16] if start[11:16] not in ("", "00:00") else start[:10]
    return when if markdown.is_time(when) else start[:10]


def _stamp(one: Json, key: str) -> str | None:
    """A time as `2026-02-03` or with hour, minute and offset; None if there is none that can be read."""
    value = one.get(key)
    match = _STAMP.match(value.strip()) if isinstance(value, str) else None
    if not match or not markdown.is_time(match[1]):
        return None
    return value.strip().replace(" ", "T", 1) if match[2] else match[1]  # type: ignore[union-attr]


def _names(one: Json) -> tuple[str, ...]:
    given = one.get("entities") or one.get("_names") or []
    each = given.split(",") if isinstance(given, str) else given if isinstance(given, list) else []
    keys = ("text", "name", "canonical_name")
    found = [next((e[k] for k in keys if e.get(k)), "") if isinstance(e, dict) else e for e in each]
    return tuple(dict.fromkeys(name for e in found if (name := " ".join(str(e).split()))))


def _belief(item: Item, sources: list[Item], one: Json) -> Item:
    """An observation or an opinion with the facts that it rests on."""
    fact, kind = item.record, _kind(one)
    assert isinstance(fact, Fact)
    proofs = tuple(
        Proof("", each.id, each.record.text.split("\n")[0][:LONGEST_PROOF].strip()) for each in sources
    )
    tags = tuple(tag for tag in fact.tags if tag != kind)
    if kind == "opinion":
        sure = one.get("confidence_score")
        confidence = float(sure) if isinstance(sure, int | float) and 0 <= sure <= 1 else None
        held = Opinion(
            fact.text, fact.id, confidence=confidence, because=proofs, entities=fact.entities, tags=tags
        )
        return replace(item, record=held, proofs=tuple(each.id for each in sources))
    days = sorted(each.day for each in sources if each.day)
    record = Observation(
        fact.text, fact.id, proofs, since=days[0] if days else None, last=days[-1] if days else None,
        entities=fact.entities, tags=tags, origin="import",
    )  # fmt: skip
    return replace(item, record=record, proofs=tuple(each.id for each in sources))


# -- documents, models, pages ----------------------------------------------------------------------------


def _documents(heap: Heap) -> Iterator[Note]:
    for key, one in heap.documents.items():
        day = (_stamp(one, "created_at") or _stamp(one, "updated_at") or "")[:10] or None
        path = f"documents/{_file(key)}.md"
        yield Note(path, fitting(path, day), readable(one["original_text"]).encode(), day)


def _pages(heap: Heap) -> tuple[tuple[MentalModel, ...], tuple[Page, ...], list[Note]]:
    """Mental models; pages as recipes; what stood on them as notes, since a page's body is written anew."""
    pages, bodies, of_pages = [], [], set()
    for key, one in heap.pages.items():
        model = heap.models.get(str(one.get("mental_model_id")), one)
        of_pages.add(str(one.get("mental_model_id")))
        query = _text(model, "source_query") or _text(one, "source_query") or _text(one, "name")
        pages.append(Page(_file(key), _text(one, "name") or key, query, _tags(model)))
        if body := _text(model, "content"):
            bodies.append(
                note(f"pages/{_file(key)}.md", f"# {_text(one, 'name')}\n\n{body}\n".encode(), True)
            )
    models = [
        MentalModel(_file(key), _text(one, "name") or key, _tags(one), _text(one, "content"))
        for key, one in heap.models.items()
        if key not in of_pages and _text(one, "content")
    ]
    return tuple(models), tuple(pages), bodies


def _tags(one: Json) -> tuple[str, ...]:
    return tuple(str(tag) for tag in one.get("tags") or () if str(tag).strip())


def _file(key: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", key).strip("-_")[:64] or "nameless"


def _text(one: Json, key: str) -> str:
    value = one.get(key)
    return value if isinstance(value, str) and value.strip() else ""
