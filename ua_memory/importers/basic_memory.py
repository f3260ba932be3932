"""A basic-memory project: notes of markdown whose list items are observations and relations.

`- [method] Pour over is clearer #brewing (my own)` has a category, tags and a context; `- requires
[[Grinder]]` links its note to another; `@effective(2026-03-01)` says from when something holds. Each line
stays as it is; category, names and times are written below it as this bank's own metadata.
"""

from __future__ import annotations

import re
from dataclasses import replace

from ua_memory import markdown
from ua_memory.importers import notes
from ua_memory.importers.found import Files, Found, Note
from ua_memory.markdown.values import write_links, write_tags
from ua_memory.records import Fact

_CATEGORY = re.compile(r"\[([^\[\]()]{2,}|[a-wyzA-WYZ0-9])\]\s+\S")
_CLOCK = re.compile(r"[\d:.,\s-]+")
_LINK = re.compile(r"\[\[([^\[\]|#^]+)(?:[#^|][^\[\]]*)?\]\]")
_EFFECTIVE = re.compile(r"@effective\((\d{4}-\d\d-\d\d)(?:\s*,\s*(\d{4}-\d\d-\d\d))?\)")


def read(name: str, files: Files) -> Found:
    """Every note of a project. Usage where there is none."""
    found = notes.read(name, files)
    made = tuple(replace(note, curated=True, body=told(note)) for note in found.notes)
    return replace(found, source="basic-memory", notes=made)


def told(note: Note) -> bytes | None:
    """The note with what its items say as metadata below them; None where they say nothing more."""
    path = f"memory/{note.name}"
    document = markdown.parse(note.data, path)
    title = str(document.front.get("title") or note.path.rpartition("/")[2].removesuffix(".md"))
    more = [(f, lines) for f in reversed(document.of(Fact)) if (lines := metadata(f, title))]
    data = note.data
    for fact, lines in more:
        data = markdown.insert_after(data, fact.place.end, lines)
    if more and not _reads_so(note.data, data, path):  # all in one go is quick; one of them is the trouble
        data = note.data
        for fact, lines in more:
            new = markdown.insert_after(data, fact.place.end, lines)
            data = new if _reads_so(data, new, path) else data
    return data if data != note.data else None


def metadata(fact: Fact, title: str) -> list[str]:
    """What an item says beside its text, as the lines of a fact's metadata."""
    first = fact.text.split("\n")[0]
    lines = []
    if (effective := _EFFECTIVE.search(first)) and not fact.when:
        lines.append(f"  - when: {'/'.join(filter(None, effective.groups()))}")
    names = [name.strip() for name in _LINK.findall(first) if name.strip()]
    if names and not fact.entities:
        lines.append(f"  - entities: {write_links(list(dict.fromkeys([title, *names])))}")
    category = _CATEGORY.match(first)
    if category and not _CLOCK.fullmatch(category[1]):
        lines.append(f"  - tags: {write_tags([category[1].strip()])}")
    return lines


def _reads_so(old: bytes, new: bytes, path: str) -> bool:
    """Whether what was put below the items is read as theirs, and nothing reads otherwise than before."""
    then, now = markdown.parse(old, path), markdown.parse(new, path)
    same = [fact.text for fact in then.of(Fact)] == [fact.text for fact in now.of(Fact)]
    return same and len(now.problems) == len(then.problems)
