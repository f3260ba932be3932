"""What is meant by a target: an id, lines of a file, a session, a name."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import cast

from ua_memory import excerpts, markdown, tombstones
from ua_memory.errors import NotFound, Usage
from ua_memory.forgetting.plan import NEAR, Piece, Target, What
from ua_memory.forgetting.waiting import is_session
from ua_memory.index import matching
from ua_memory.index.items import Item
from ua_memory.index.terms import Query
from ua_memory.lineage.sentences import plain
from ua_memory.markdown.blocks import Shape, scan
from ua_memory.records import Entity, Fact, Place, is_generated, ref_of
from ua_memory.retain.through import short
from ua_memory.statements import Statement
from ua_memory.store import Store

_SHOWN = 8
"""Characters that a heading shows of a UUID, at least."""
_LISTED = 8
"""Sessions that an error lists."""


def target(store: Store, given: str) -> list[Target]:
    """What is named by an id or by lines (`excerpts`). NotFound, Usage."""
    try:
        named = excerpts.find(store, given)
    except NotFound:
        if stone := tombstones.read(store).stones.get(stone_of(given)):
            raise NotFound(
                f"it was forgotten on {stone.on}", where=given, mend="ua-memory forget --purge takes it "
                "out of the history, too",
            ) from None  # fmt: skip
        raise
    if named.record:
        return [of(named.record)]
    if not named.span:
        raise Usage(f"{given[:80]!r} is no id and no line", mend="name ^id, PATH:LINE or PATH:FROM-TO")
    return list(_lines(named.path, store.truth(named.path), named.span))


def stone_of(given: str) -> str:
    """The id that the tombstone of what is named so has; '' for what names no id."""
    named = excerpts.read(given)
    block = named.id or (named.file if is_generated(named.file) else "")
    return ref_of(named.file, block) if block and (named.file or is_generated(block)) else block


def containing(texts: Mapping[str, bytes], items: Iterable[Item], query: Query) -> list[Target]:
    """The statements, and the paragraphs and items of prose, in these items that contain all words of a
    query by themselves: what stands beside them in a passage, and under their heading, is not meant."""
    found: list[Target] = []
    for item in items:
        if item.path in texts:
            found += _lines(item.path, texts[item.path], f"{item.line}-{item.end}", prose_only=True)
    found = list({each.place: each for each in found}.values())
    lines = {path: markdown.parse(texts[path], path).lines for path in {each.place.path for each in found}}
    said = ["\n".join(lines[at.path][at.line - 1 : at.end]) for at in (each.place for each in found)]
    return [each for each, is_meant in zip(found, matching.containing(query, said), strict=True) if is_meant]


def piece(item: Item) -> Piece:
    """Something that a search found, as a plan shows it."""
    what = cast(What, item.record if item.record in ("fact", "observation", "opinion") else "text")
    return Piece(what, item.place, item.text, NEAR, item.id, item.origin == "person")


def of(record: Statement) -> Target:
    """A record as a target."""
    return Target(record.place, record.text, record)


def _lines(path: str, data: bytes, span: str, *, prose_only: bool = False) -> Iterator[Target]:
    """The records that stand on these lines, and the blocks; of what is no record with `prose_only`
    paragraphs and items alone."""
    document = markdown.parse(data, path)
    first, last = excerpts.line_span(span, len(document.lines))
    taken: set[int] = set()
    for record in document.records:
        if isinstance(record, Statement) and record.place.line <= last and first <= record.place.end:
            taken.update(range(record.place.line, record.place.end + 1))
            yield of(record)
    for block in scan(document.lines, document.front_end):
        rows = [n for n in range(max(first, block.start + 1), min(last, block.end) + 1) if n not in taken]
        unsaid = (Shape.RULE, Shape.HEADING, Shape.COMMENT) if prose_only else (Shape.RULE,)
        if rows and block.shape not in unsaid:
            # A person who names one line of a paragraph means that line; of an item, all of it.
            place = Place(path, rows[0], rows[-1])
            if block.shape is Shape.ITEM:
                place = Place(path, block.start + 1, block.end)
            text = "\n".join(document.lines[place.line - 1 : place.end])
            yield Target(place, plain(text).strip())


def sessions(texts: Mapping[str, bytes]) -> dict[str, list[Fact]]:
    """{session, as headings show it: the facts that were said in it}, in the order of the files."""
    found: dict[str, list[Fact]] = {}
    for path, data in texts.items():
        for fact in markdown.parse(data, path).of(Fact):
            if fact.heading.session:
                found.setdefault(fact.heading.session, []).append(fact)
    return found


def session(named: str, said: Mapping[str, Sequence[Fact]], waits: Collection[str]) -> str:
    """The session that is meant by its id, by what a heading shows of it, or by any beginning of these that
    means one session alone. `waits` are whole ids. NotFound with those there are, Usage with those that it
    may mean."""
    named = named.strip()
    known = dict.fromkeys([*said, *map(short, waits)])
    if any(is_session(one, named) for one in (*known, *waits)):
        return named
    low = named.casefold()
    begins = {short(one) for one in (*known, *waits) if one.casefold().startswith(low)}
    # More than a heading shows of an id, and less than all of it.
    begins |= {one for one in known if len(one) >= _SHOWN and low.startswith(f"{one.casefold()}-")}
    if len(begins) == 1:
        return begins.pop()
    if begins:
        each = _named([one for one in known if one in begins], said)
        raise Usage(f"{len(begins)} sessions begin so", where=named[:80], mend=f"say more of it: {each}")
    mend = f"the last there are: {_named([*known], said)}" if known else "no session is known here"
    raise NotFound("no session begins so", where=named[:80], mend=mend)


def _named(names: Sequence[str], said: Mapping[str, Sequence[Fact]]) -> str:
    """Sessions for a person to choose from, the last ones."""
    rows = []
    for name in names[-_LISTED:]:
        facts = said.get(name, ())
        where = f"{facts[-1].heading.client}, {facts[-1].place.path}" if facts else "waits to be flushed"
        rows.append(f"{name} ({where})")
    more = f", and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(rows) + more


def entity(texts: Mapping[str, bytes], names: Collection[str], known: Collection[str]) -> list[Target]:
    """What is settled on these names, and the statements whose ids, or texts where they have none, are
    `known`."""
    found = []
    wanted = {name.casefold() for name in names}
    for path, data in texts.items():
        for record in markdown.parse(data, path).records:
            if isinstance(record, Entity) and wanted & {n.casefold() for n in (record.name, *record.aliases)}:
                found.append(Target(record.place, record.name, what="entity"))
            elif isinstance(record, Statement) and (f"^{record.ref}" if record.id else record.text) in known:
                found.append(of(record))
    return found
