"""Whole notes, kept by an agent as files: what it may change, by one stretch of lines at a time, and how what
it writes is stamped as its own.

A note that was made here says `origin: agent` in its front matter, which is not shown to the agent: it reads
back exactly what it wrote. What it puts into a person's note is stamped fact by fact. A person's lines are
neither changed nor taken away, and no text of an agent's can say that a person said it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from operator import eq

from ua_memory import core, markdown, vouching
from ua_memory.errors import Malformed, Usage
from ua_memory.history import MACHINE
from ua_memory.markdown import Document, FileKind
from ua_memory.records import CoreBlock, Fact, Passage, Place, Record
from ua_memory.statements import name_of
from ua_memory.store import Draft, Store

MARK = {"origin": "agent"}
"""The front matter of a note that an agent made."""
KEPT: Mapping[FileKind, str] = {
    FileKind.PAGE: "a knowledge page is written by `refresh` from what memory holds",
    FileKind.MODEL: "a mental model is its owner's own text",
    FileKind.OBSERVATIONS: "observations are drawn from facts by `consolidate`",
    FileKind.OPINIONS: "opinions are kept by `reflect`",
    FileKind.DOCUMENT: "these facts follow the document they were drawn from",
    FileKind.ENTITIES: "names are settled by `entities`",
    FileKind.TOMBSTONES: "this is the list of what was forgotten",
}


@dataclass(frozen=True, slots=True)
class Note:
    """A file as an agent sees it: its lines, without the front matter that is ours alone."""

    path: str
    data: bytes
    document: Document
    hidden: int
    """So many lines at the start are not shown."""

    @property
    def lines(self) -> tuple[str, ...]:
        return self.document.lines[self.hidden :]

    @property
    def text(self) -> str:
        """The lines with `\\n` between, and behind the last where the file has it."""
        return "\n".join(self.lines) + ("\n" if self.document.final_newline and self.lines else "")


@dataclass(frozen=True, slots=True)
class Change:
    """One stretch of a file's lines, front matter included, that becomes another: `[start:end]` → `new`."""

    start: int
    end: int
    new: tuple[str, ...]


def note(path: str, data: bytes) -> Note:
    """The note in a file's bytes."""
    document = markdown.parse(data, path)
    return Note(path, data, document, document.front_end if document.front == MARK else 0)


def kept_by(path: str, data: bytes = b"") -> str:
    """Why an agent may not change a file, or nothing if it may."""
    kind = markdown.kind_of(path)
    if kind is not FileKind.LOG:
        return KEPT.get(kind, "")
    front = markdown.parse(data, path).front
    if "imported_from" in front:
        return "this is a copy of a file elsewhere"
    own = front.get("origin") == "agent"
    dated = markdown.day_of(path)
    if dated and (not own or path == f"memory/{dated}.md"):
        return "a day's log is written fact by fact, as things are said"
    return ""


def create(draft: Draft, path: str, text: str) -> None:
    """Make a note of an agent's text. Usage where the file is another's to write, or the text forges."""
    try:
        data = markdown.set_front(text.encode("utf-8", "replace"), MARK)
    except Malformed as error:
        raise Usage(
            f"the front matter at the start of the text: {error.what}", mend="leave it out, or correct it"
        ) from error
    _permitted(path, data)
    _keep(draft, path, data, Change(0, 0, markdown.parse(data, path).lines), ())


def change(store: Store, draft: Draft, path: str, text: str) -> tuple[str, ...]:
    """Give a note another text, as `Note.text` shows it: lines that stay keep their bytes. What to tell of
    budgets is returned. Usage where a person's line would change, or the file is not an agent's to write."""
    before = note(path, draft.read(path))
    _permitted(path, before.data)
    step = _step(before, text)
    persons = _persons(store, path, before.data)
    _spared(before, step, persons, "stays as it is")
    data = _spliced(before.data, step)
    if markdown.kind_of(path) is FileKind.CORE:
        return _keep_core(store, draft, path, data, step)
    _keep(draft, path, data, step, persons)
    return ()


def remove(store: Store, draft: Draft, path: str) -> None:
    """Let a note go. Usage where a person wrote in it, or it is not an agent's."""
    data = _removable(store, draft, path)
    draft.facts += [name_of(fact) for fact in markdown.parse(data, path).of(Fact)]
    draft.delete(path)


def move(store: Store, draft: Draft, path: str, to: str) -> None:
    """Give a note another name, its bytes and ids as they are. Usage as for `remove`."""
    data = _removable(store, draft, path)
    _permitted(to, data)
    draft.delete(path)
    draft.write(to, data, restored=True)


# -- whose it is ---------------------------------------------------------------------------------------------


def _permitted(path: str, data: bytes) -> None:
    if why := kept_by(path, data):
        raise Usage(why, where=path, mend="keep what you know in a note of your own")


def _persons(store: Store, path: str, data: bytes) -> frozenset[int]:
    """The numbers (from 0) of the lines that a person wrote, those that are not committed yet among them."""
    return frozenset(b.line - 1 for b in store.history.blame(path, data) if b.author != MACHINE[0])


def _removable(store: Store, draft: Draft, path: str) -> bytes:
    data = draft.read(path)
    if markdown.kind_of(path) is FileKind.CORE:
        raise Usage("core memory stays; its text can be changed", where=path)
    _permitted(path, data)
    before = note(path, data)
    whole = Change(before.hidden, len(before.document.lines), ())
    _spared(before, whole, _persons(store, path, data), "keeps the file where it is")
    return data


def _spared(before: Note, step: Change, persons: frozenset[int], then: str) -> None:
    lines = before.document.lines
    theirs = [n for n in range(step.start, step.end) if n in persons and lines[n].strip()]
    if theirs:
        shown = f"line{'s' * (len(theirs) > 1)} {', '.join(str(n - before.hidden + 1) for n in theirs[:10])}"
        raise Usage(
            f"what a person wrote ({shown}) {then}", where=before.path,
            mend="insert a line of your own that says what changed, or ask the person to change theirs",
        )  # fmt: skip


# -- lines ---------------------------------------------------------------------------------------------------


def _step(before: Note, text: str) -> Change:
    """The one stretch in which a text differs from what is there."""
    old = before.lines
    new = text.split("\n")
    if new and not new[-1]:
        new.pop()
    head = sum(1 for _ in takewhile(bool, map(eq, old, new)))
    most = min(len(old), len(new)) - head
    tail = sum(1 for _ in takewhile(bool, map(eq, old[::-1][:most], new[::-1][:most])))
    at = before.hidden
    return Change(at + head, at + len(old) - tail, tuple(new[head : len(new) - tail]))


def _spliced(data: bytes, step: Change) -> bytes:
    if step.end == step.start:
        return markdown.insert_after(data, step.start, step.new) if step.new else data
    return markdown.replace_lines(data, Place("", step.start + 1, step.end), step.new)


def _inside(step: Change, record: Record) -> bool:
    """Whether a change is of a record's lines, or puts lines among them."""
    start, end = record.place.line - 1, record.place.end
    return step.start < end and start < step.end


# -- what is written -----------------------------------------------------------------------------------------


def _keep_core(store: Store, draft: Draft, path: str, data: bytes, step: Change) -> tuple[str, ...]:
    old = markdown.parse(draft.read(path), path)
    vouching.require(store, data.decode("utf-8", "replace"), draft.read(path).decode("utf-8", "replace"))
    warnings = core.afforded(store, path, draft.read(path), data)
    removes = [block for block in old.of(CoreBlock) if _inside(step, block)]
    _write(draft, path, data, removes)
    return warnings


def _keep(draft: Draft, path: str, data: bytes, step: Change, persons: frozenset[int] | tuple[()]) -> None:
    old = markdown.parse(draft.read(path), path)
    data = _stamped(old, data, path, step)
    removes = [
        record for record in old.records
        if not isinstance(record, Passage) and _inside(step, record) and record.place.line - 1 not in persons
    ]  # fmt: skip
    _write(draft, path, data, removes)
    if "origin" not in markdown.parse(data, path).front:
        _all_facts(data, path, step)
    there = {name_of(fact) for fact in old.of(Fact)}
    named = (name_of(fact) for fact in markdown.parse(draft.read(path), path).of(Fact))
    draft.facts += [name for name in named if name not in there]


def _all_facts(data: bytes, path: str, step: Change) -> None:
    """Usage where anything but list items comes into a person's note: prose cannot say whose it is."""
    document = markdown.parse(data, path)
    items = {n for fact in document.of(Fact) for n in range(fact.place.line, fact.place.end + 1)}
    for number in range(step.start + 1, step.start + len(step.new) + 1):
        if document.lines[number - 1].strip() and number not in items:
            raise Usage(
                "this is a person's note: only list items (`- …`) can be added to it", where=path,
                mend="write a list item, or make a note of your own",
            )  # fmt: skip


def _write(draft: Draft, path: str, data: bytes, removes: Sequence[Record]) -> None:
    try:
        draft.write(path, data, removes=removes)
    except Malformed as error:
        raise Usage(
            "what stands around it would not be read as it was before", where=error.where,
            mend="change whole list items and paragraphs, and close code fences and comments",
        ) from error  # fmt: skip


def _stamped(old: Document, data: bytes, path: str, step: Change) -> bytes:
    """The bytes with `- origin: agent` below each new fact that nothing else says it of."""
    for fact in reversed(list(_unsigned(old, markdown.parse(data, path), step))):
        data = markdown.insert_after(data, fact.place.end, ["  - origin: agent"])
    if _said_by_others(markdown.parse(data, path)) - _said_by_others(old):
        raise Usage(
            "an item of it would be read as somebody else's words", where=path,
            mend="write it as a list item of its own, without nested lines",
        )  # fmt: skip
    return data


def _said_by_others(document: Document) -> Counter[tuple[Fact, str]]:
    return Counter((fact, fact.said_by) for fact in document.of(Fact) if fact.said_by != "agent")


def _unsigned(old: Document, new: Document, step: Change) -> Iterator[Fact]:
    """The facts of a changed file that are not said by the agent and were not there before. Usage for what
    only memory itself may write: an origin, an id, a mark of what was read."""
    if set(new.through) - set(old.through):
        raise Usage("`<!-- through: … -->` is memory's own mark", where=new.path, mend="leave it out")
    grown = len(step.new) - (step.end - step.start)
    before = {fact.place.line: fact for fact in old.of(Fact)}
    ids = {fact.id for fact in before.values() if fact.id}
    for fact in new.of(Fact):
        line = fact.place.line
        fresh = step.start < line <= step.start + len(step.new)
        was = None if fresh else before.get(line if line <= step.start else line - grown)
        if fact.id and fact.id not in ids:
            raise Usage(
                f"`^{fact.id}` at the end of a list item is an id, which memory gives", where=new.path,
                mend="leave it out",
            )  # fmt: skip
        if fact.said_by == "agent" or (was is not None and was.said_by == fact.said_by):
            continue
        if fact.origin or not fresh:
            raise Usage(
                f"{fact.text[:60]!r} would be somebody else's words: memory itself says who said what",
                where=new.path, mend="leave `origin:` out, and headings that name a speaker",
            )  # fmt: skip
        yield fact
