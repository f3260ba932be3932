"""Records into items: what the index keeps of a bank's files, one row for each thing that can be found.

An item's key is made of its file and its block id, or the hash of its text where it has none, so that
a line inserted above moves it without touching words or vectors. Text is masked here, before anything
else sees it: a person's line may hold a secret, the index never does.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

from ua_memory import trust
from ua_memory.index import talk
from ua_memory.index.terms import clean
from ua_memory.markdown import Document, FileKind, day_of, hashtags, kind_of, texthash
from ua_memory.records import (
    Fact,
    Heading,
    MentalModel,
    Observation,
    Opinion,
    Page,
    Passage,
    Place,
    Proof,
    ref_of,
)

Masked = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Item:
    """One findable thing. `text` is what is shown and searched, masked; `context` helps the word search.

    `record` is fact, passage, observation, opinion, page, model or core; `kind` a fact's or opinion's
    kind, else the record's name. `texthash` is of the exact text, `linehash` of the file's lines from
    `line` to `end`, `vhash` of the text that is embedded. `seq` counts the items of a file. `speaker` is who
    says it, where the file is a talk, and `run` the name of the turns it is embedded with; see `talk`.
    `proofs` are the facts that an observation or an opinion rests on, by their `ref`, each once.
    """

    key: str
    record: str
    kind: str
    path: str
    line: int
    end: int
    seq: int
    id: str | None
    text: str
    texthash: str
    linehash: str
    vhash: str
    when: str | None = None
    day: str | None = None
    origin: str = "person"
    client: str | None = None
    session: str | None = None
    heading: str = ""
    tags: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    retired: str | None = None
    context: str = ""
    speaker: str = ""
    run: str = ""
    proofs: tuple[str, ...] = ()
    importance: int | None = None

    @property
    def ref(self) -> str | None:
        """What its id is known by in the whole bank; see `ref_of`."""
        return ref_of(self.path, self.id) if self.id else None

    @property
    def search_text(self) -> str:
        """The text that words and vectors are made of."""
        return self.text

    @property
    def untrusted(self) -> bool:
        """Whether a tool, the web or an agent's import said it; see `trust`."""
        return trust.untrusted(self.origin, self.client, self.path)

    @property
    def date(self) -> str:
        """The ISO day the item is about, else the day it was said, else ''."""
        return (self.when or self.day or "")[:10]

    @property
    def place(self) -> Place:
        return Place(self.path, self.line, self.end)

    def digest(self) -> str:
        """A hash of all but where it stands in its file: equal digests need no reindexing."""
        parts = [self.key, self.record, self.kind, self.id, self.text, self.texthash, self.linehash]
        parts += [self.when, self.day, self.origin, self.client, self.session, self.heading, self.retired]
        parts += [self.speaker, str(self.importance)]
        return _hash(json.dumps([parts, self.tags, self.entities, self.context, self.proofs]))


def text_id(text: str) -> str:
    """The name of an embedded text in cache and Chroma: 32 hexadecimal digits of its SHA-256."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def lines_hash(lines: bytes) -> str:
    """A hash of raw lines joined by newlines, without carriage returns: how a hit is checked in its file."""
    return hashlib.blake2b(lines, digest_size=12).hexdigest()


def items_of(document: Document, masked: Masked) -> Iterator[Item]:
    """The items of one parsed file, in file order. `masked` takes secrets out of a text."""
    seen: dict[str, int] = {}
    tags = tuple(
        tag for record in document.records if isinstance(record, Page | MentalModel) for tag in record.tags
    )
    # What a page or a model is called stands in its front matter alone, and is what people ask for.
    names = [record.name for record in document.records if isinstance(record, Page | MentalModel)]
    records = [{**found, "trail": (*names, *found["heading"].trail)} for found in _findable(document)]
    # Looking for secrets costs by the call more than by the letter: a file without any is looked at once.
    everything = "\n\n".join(
        (*document.tags, *(text for found in records for text in (found["text"], _context(found))))
    )
    if masked(everything) == everything:
        masked = str
    speakers = talk.speakers([found["text"] for found in records])
    known = _known(document) if masked is str and not any(speakers) else []
    items = []
    for seq, (found, speaker) in enumerate(zip(records, speakers, strict=True)):
        identity = f"^{found['id']}" if found["id"] else texthash(found["text"])
        occurrence = seen.get(identity, 0)
        seen[identity] = occurrence + 1
        if seq < len(known):
            items.append(known[seq])
            continue
        key = _hash(f"{document.path}\0{identity}\0{occurrence}")
        items.append(_item(document, found, seq, key, tags, masked, clean(masked(speaker))))
    made = known + list(_in_runs(items[len(known) :]))
    if masked is str and not any(speakers):
        _keep(document, made)
    yield from made


LONG, KEPT = 256, 2
"""A log of so many records is likely to be read again with a few more; so many logs are remembered."""
_made: tuple[tuple[Document, list[Item]], ...] = ()
"""What was made of long logs that hold no secret and no talk, newest first: each item comes of its own record
and lines alone, and of how often its like was met before. Replaced as a whole: threads read at once."""


def _known(document: Document) -> list[Item]:
    """The items of those records at the beginning that are the very ones of a log as it was read before."""
    if len(document.records) < LONG or kind_of(document.path) is not FileKind.LOG:
        return []
    for before, items in _made:
        if (before.path, before.tags) == (document.path, document.tags):
            pairs = zip(before.records, document.records, strict=False)
            same = sum(1 for _ in takewhile(lambda pair: pair[0] is pair[1], pairs))
            return items[:same]
    return []


def _keep(document: Document, items: list[Item]) -> None:
    global _made
    if len(document.records) >= LONG and kind_of(document.path) is FileKind.LOG:
        others = tuple(one for one in _made if one[0].path != document.path)
        _made = ((document, items), *others[: KEPT - 1])


def _in_runs(items: list[Item]) -> Iterator[Item]:
    """The items, each turn of a talk with the run it is embedded in."""
    for start, end in talk.runs([(item.speaker, item.heading, item.session, item.text) for item in items]):
        if end - start < 2:
            alone = items[start]
            yield replace(alone, vhash=text_id(talk.led(alone.heading, alone.text)))
            continue
        run = text_id("\n".join(item.text for item in items[start:end]))
        for number in range(start, end):
            yield replace(items[number], run=run, vhash=text_id(f"{run} {number - start}"))


def _findable(document: Document) -> Iterator[dict[str, Any]]:
    """The records that become items, each as the few values an item takes from it."""
    record_of = {FileKind.CORE: "core", FileKind.PAGE: "page", FileKind.MODEL: "model"}
    prose = record_of.get(kind_of(document.path), "passage")
    for record in document.records:
        if isinstance(record, Fact):
            more = [v for v in (record.where, record.who, record.why, record.cause) if v]
            yield _values(
                record,
                "fact",
                record.kind,
                record.when,
                record.said_by,
                [*more, *(q.text for q in record.quotes)],
            )
        elif isinstance(record, Observation):
            when, origin = record.last or record.since, record.origin or _writer(record)
            yield _values(record, "observation", "observation", when, origin, [])
        elif isinstance(record, Opinion):
            yield _values(record, "opinion", record.kind, record.when, _writer(record), [])
        elif isinstance(record, Passage):
            yield _prose(record, prose)


def _writer(record: Observation | Opinion) -> str:
    """Who wrote a belief that does not say so: what has an id was consolidated, what has none was typed."""
    return record.heading.origin or ("agent" if record.id else "person")


def _values(
    record: Fact | Observation | Opinion,
    name: str,
    kind: str,
    when: str | None,
    origin: str | None,
    more: list[str],
) -> dict[str, Any]:
    return {
        **{"record": name, "kind": kind, "when": when, "origin": origin, "more": more},
        **{"place": record.place, "heading": record.heading, "id": record.id, "text": record.text},
        **{"tags": record.tags, "entities": record.entities, "retired": record.retired},
        **{"proofs": _proofs(record), "importance": getattr(record, "importance", None)},
    }


def _proofs(record: Fact | Observation | Opinion) -> tuple[str, ...]:
    named: Sequence[Proof] = getattr(record, "proofs", ()) or getattr(record, "because", ())
    return tuple(dict.fromkeys(proof.ref for proof in named if proof.id))


def _prose(record: Passage, name: str) -> dict[str, Any]:
    return {
        **{"record": name, "kind": name, "when": None, "origin": None, "more": []},
        **{"place": record.place, "heading": record.heading, "id": None, "text": record.text},
        **{"tags": (), "entities": (), "retired": None, "proofs": (), "importance": None},
    }


def _item(
    document: Document,
    found: dict[str, Any],
    seq: int,
    key: str,
    page_tags: tuple[str, ...],
    masked: Masked,
    speaker: str,
) -> Item:
    place: Place = found["place"]
    heading: Heading = found["heading"]
    text = clean(masked(found["text"]))
    tags = (*found["tags"], *hashtags(found["text"]), *page_tags)
    # Those of the heading and the file are for filters alone: as words they would make all below them alike.
    every = (*tags, *heading.tags, *document.tags)
    entities = tuple(clean(masked(name)) for name in found["entities"])
    context = clean(masked(_context(found) + " " + " ".join(tags)))
    lines = "\n".join(document.lines[place.line - 1 : place.end])
    return Item(
        key=key,
        record=found["record"],
        kind=found["kind"],
        path=document.path,
        line=place.line,
        end=place.end,
        seq=seq,
        id=found["id"],
        text=text,
        texthash=texthash(found["text"]),
        linehash=lines_hash(lines.encode("utf-8", "surrogateescape")),
        vhash="",
        when=found["when"],
        day=day_of(document.path),
        origin=found["origin"] or heading.origin or "person",
        client=heading.client,
        session=heading.session,
        heading=clean(masked(" > ".join(found["trail"]))),
        tags=tuple(dict.fromkeys(clean(masked(tag)).casefold() for tag in every)),
        entities=entities,
        retired=found["retired"],
        context=context.strip(),
        speaker=speaker,
        proofs=found["proofs"],
        importance=found["importance"],
    )


def _context(found: dict[str, Any]) -> str:
    """What stands around a record's text and helps to find it by words."""
    return "\n".join([*found["trail"], *found["entities"], *found["tags"], *found["more"]])


def _hash(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
