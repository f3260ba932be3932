"""What is meant by a target: an id, lines of a file, a session, a name."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from ua_memory import excerpts, markdown, statements, tombstones
from ua_memory.errors import NotFound, Usage
from ua_memory.forgetting.plan import Target
from ua_memory.forgetting.waiting import is_session
from ua_memory.lineage.sentences import plain
from ua_memory.markdown.blocks import Shape, scan
from ua_memory.records import Entity, Fact, Place
from ua_memory.statements import Statement
from ua_memory.store import Store


def target(store: Store, given: str) -> list[Target]:
    """What `^id`, `PATH:LINE` or `PATH:FROM-TO` means. NotFound, Usage."""
    if given.startswith("^"):
        try:
            return [of(statements.find(store, given))]
        except NotFound:
            stones = tombstones.read(store).stones
            if stone := stones.get(given[1:]):
                raise NotFound(
                    f"it was forgotten on {stone.on}", where=given, mend="ua-memory forget --purge takes it "
                    "out of the history, too",
                ) from None  # fmt: skip
            raise
    path, span = excerpts.split_target(given)
    if not span:
        raise Usage(f"{given[:80]!r} is no id and no line", mend="name ^id, PATH:LINE or PATH:FROM-TO")
    return list(_lines(path, store.truth(path), span))


def of(record: Statement) -> Target:
    """A record as a target."""
    return Target(record.place, record.text, record)


def _lines(path: str, data: bytes, span: str) -> Iterator[Target]:
    """The records that stand on these lines, and the blocks of prose."""
    document = markdown.parse(data, path)
    first, last = excerpts.line_span(span, len(document.lines))
    taken: set[int] = set()
    for record in document.records:
        if isinstance(record, Statement) and record.place.line <= last and first <= record.place.end:
            taken.update(range(record.place.line, record.place.end + 1))
            yield of(record)
    for block in scan(document.lines, document.front_end):
        rows = [n for n in range(max(first, block.start + 1), min(last, block.end) + 1) if n not in taken]
        if rows and block.shape is not Shape.RULE:
            # A person who names one line of a paragraph means that line; of an item, all of it.
            place = Place(path, rows[0], rows[-1])
            if block.shape is Shape.ITEM:
                place = Place(path, block.start + 1, block.end)
            text = "\n".join(document.lines[place.line - 1 : place.end])
            yield Target(place, plain(text).strip())


def session(texts: Mapping[str, bytes], named: str) -> list[Target]:
    """The facts that were said in a session, by its id or the part of it that headings show."""
    found = []
    for path, data in texts.items():
        for fact in markdown.parse(data, path).of(Fact):
            if fact.heading.session and is_session(named, fact.heading.session):
                found.append(of(fact))
    return found


def entity(texts: Mapping[str, bytes], names: Collection[str], known: Collection[str]) -> list[Target]:
    """What is settled on these names, and the statements whose ids, or texts where they have none, are
    `known`."""
    found = []
    wanted = {name.casefold() for name in names}
    for path, data in texts.items():
        for record in markdown.parse(data, path).records:
            if isinstance(record, Entity) and wanted & {n.casefold() for n in (record.name, *record.aliases)}:
                found.append(Target(record.place, record.name, what="entity"))
            elif isinstance(record, Statement) and (f"^{record.id}" if record.id else record.text) in known:
                found.append(of(record))
    return found
