"""Copies of other tools' files, and curated memory into core memory.

A file is copied to the byte below `memory/imported/NAME/`; two keys in its front matter say where it came
from and which bytes it was, so that a second import knows it. The blocks of a curated `MEMORY.md` become core
memory where ours has no block of that name and there is room; nothing of ours is replaced.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from ua_memory import core, markdown, tokens, tombstones
from ua_memory.adopting.taken import State, Taken
from ua_memory.errors import Malformed, TooLarge, Usage
from ua_memory.importers import Core, Found, Note
from ua_memory.markdown.printer import strip_blank
from ua_memory.paths import LOGS
from ua_memory.records import CoreBlock, Fact, Passage, Place
from ua_memory.statements import texts
from ua_memory.store import Draft, Store

FOLDER = f"{LOGS}/imported"
FROM, HASH, PLACED = "imported_from", "imported_hash", "imported_core"
"""Keys of a copy's front matter: its source, the hash of the source's bytes, the blocks core memory took."""

# -- copies of files -----------------------------------------------------------------------------------


class Copies:
    """The copies that a bank has of a source's files, and new ones."""

    def __init__(self, store: Store, draft: Draft, found: Found) -> None:
        self.store, self.draft = store, draft
        self.key = f"{found.source}:{found.name}"
        self.stones = tombstones.read(store)
        self.folder = f"{FOLDER}/{slug(found.name)}"
        self.by_source: dict[str, list[tuple[str, str]]] = {}
        self.by_hash: dict[str, str] = {}
        for path, data in texts(store):
            if HASH.encode() in data:
                front = markdown.parse(data, path).front
                self._known(path, str(front.get(FROM)), str(front.get(HASH)))

    def _known(self, path: str, source: str, of: str) -> None:
        self.by_source.setdefault(source, []).append((path, of))
        self.by_hash[of] = path

    def take(self, note: Note, more: Mapping[str, object] | None = None) -> Taken:
        """Copy a note, with `more` keys in its front matter; know it again; or bring its copy up to date."""
        source = f"{self.key}/{note.path}"
        if note.hash in self.by_hash:
            return Taken("note", note.path, self.by_hash[note.hash], "same", day=note.day)
        note, lost = self._allowed(note)
        data = marked(note, {FROM: source, HASH: note.hash, **(more or {})})
        for path, _ in self.by_source.get(source, ()):
            if _goes_on(self.draft.read(path), data):
                return self._update(note, path, data)
        path = self._free(note.name)
        self.draft.write(path, data)
        self._known(path, source, note.hash)
        return replace(self._told(note, path, "new"), why="; ".join(tombstones.told(lost)))

    def _allowed(self, note: Note) -> tuple[Note, int]:
        """A note without what was forgotten here, and how much that is."""
        data, lost = self.stones.without(note.data if note.body is None else note.body, self._free(note.name))
        return (replace(note, body=data), lost) if lost else (note, 0)

    def _update(self, note: Note, path: str, data: bytes) -> Taken:
        if not self._untouched(path):
            why = "changed at its source, and here since it was imported; this copy stays"
            return Taken("note", note.path, path, "left", why, note.day)
        old = markdown.parse(self.draft.read(path), path).records
        self.draft.write(path, data, removes=old)
        self.by_hash[note.hash] = path
        return self._told(note, path, "updated")

    def _told(self, note: Note, path: str, state: State) -> Taken:
        records = markdown.parse(self.draft.read(path), path).records
        facts = sum(isinstance(record, Fact) for record in records)
        prose = sum(isinstance(record, Passage) for record in records)
        return Taken("note", note.path, path, state, day=note.day, facts=facts, prose=prose)

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

    def curated(self, curated: Core) -> Iterator[Taken]:
        """Its blocks into core memory where that is possible; the rest of it as a note."""
        note = curated.note
        if note.hash in self.by_hash:
            yield Taken("note", note.path, self.by_hash[note.hash], "same")
            return
        taken = [self._block(note, block) for block in curated.blocks]
        yield from taken
        placed = [b for b, t in zip(curated.blocks, taken, strict=True) if t.state in ("new", "same")]
        names = [block.name for block in placed]
        body = _without(note.data, [block.place for block in placed])
        yield self.take(replace(note, body=body), {PLACED: names or None})

    def _block(self, note: Note, block: CoreBlock) -> Taken:
        path = core.core_path(self.store)
        known = markdown.parse(self.draft.read(path), path).of(CoreBlock)
        ours = next((b for b in known if b.name.casefold() == block.name.casefold()), None)
        label = f"## {block.name}"
        if ours and ours.value == strip_blank(self.draft.redact(block.value)):
            return Taken("block", label, path, "same")
        if ours and ours.value:
            return Taken("block", label, path, "left", "ours has a block of this name, which stays")
        if self.stones.stands_in(block.value):
            return Taken("block", label, path, "left", tombstones.WHY)
        limit = int(core.WARN_AT * self.store.config.core_tokens)
        size = tokens.count(block.value)
        if tokens.count(self.draft.read(path).decode("utf-8", "replace")) + size > limit:
            return Taken("block", label, path, "left", f"no room for its {size} tokens in core memory")
        try:
            core.put(self.store, self.draft, f"[{block.name}]" if block.labelled else block.name, block.value)
        except (TooLarge, Usage, Malformed) as error:
            return Taken("block", label, path, "left", error.what)
        return Taken("block", label, path, "new")


def slug(name: str) -> str:
    """A name as a folder can have it."""
    words = re.sub(r"[^\w.-]+", "-", name).strip("-.")
    return words[:80] or "bank"


def marked(note: Note, keys: Mapping[str, object]) -> bytes:
    """A note with these keys in its front matter; above one that cannot take them, with one of ours."""
    data = note.data if note.body is None else note.body
    try:
        return markdown.set_front(data, keys)
    except Malformed:
        return markdown.insert_after(data, 0, markdown.set_front(b"", keys).decode().splitlines())


def _without(data: bytes, places: list[Place]) -> bytes:
    """The bytes without the lines of these places."""
    for place in sorted(places, key=lambda each: -each.line):
        data = markdown.replace_lines(data, place, [])
    return data


def _goes_on(old: bytes, new: bytes) -> bool:
    """Whether `new` is what became of `old`: at least half of its lines are still there."""
    lines = [line for line in old.split(b"\n") if line.strip() and not line.startswith(b"imported_")]
    there = set(new.split(b"\n"))
    return 2 * sum(line in there for line in lines) >= len(lines)
