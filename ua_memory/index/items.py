"""Records into the index's items: their names and speakers, as rows of the word index."""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from ua_memory.index.terms import STOP, TOKENIZER, clean, words
from ua_memory.knowledge import sessions
from ua_memory.markdown import fields
from ua_memory.markdown.document import Document, texthash
from ua_memory.markdown.lines import FileKind, day_of, hashtags, kind_of
from ua_memory.records import (
    Entity,
    Fact,
    Heading,
    MentalModel,
    Observation,
    Opinion,
    Page,
    Passage,
    Place,
    Proof,
    Record,
    is_generated,
    ref_of,
    written_id,
)
from ua_memory.text import wording
from ua_memory.text.names import ORDINARY, drawn, entities

# -- talk --------------------------------------------------------------------------------------------------
# Talk in a file: who says an item, and which turns are embedded together.
#
# A turn of a talk leans on those before it ("Yes, last Tuesday!"). Turns that stand together go through the
# model together, and each then takes its own tokens' states out ("late chunking", Günther et al. 2024,
# arXiv 2409.04701): the same number of tokens, hence of seconds, as one at a time. Facts that are no talk
# are embedded alone: among unrelated neighbours this costs three points of R@10.


RUN = 600
"""Characters of a run, some 130 tokens: the model was trained on texts of up to 128."""

_LABEL = re.compile(r"(\*\*|__)?([^\W\d_][^*:\n]{0,39}?)(?(1)(?:\1:|:\1)|:)(?:\s|$)")
_ASKS = re.compile(r"\?[^?]{0,24}$")
_NOTE = re.compile(r"\s*\[[^\]]*\]\s*$")


def label(text: str) -> str:
    """The `Name` of a text that begins with `Name:` or `**Name**:`, of at most three words; else ''."""
    found = _LABEL.match(text)
    name = found[2].strip() if found else ""
    return name if len(name.split()) <= 3 else ""


def speakers_of(texts: Sequence[str]) -> list[str]:
    """Who says each of a file's texts, '' for nobody. Who speaks once only is a heading, not a speaker."""
    labels = [label(text) for text in texts]
    often = Counter(labels)
    return [name if name and often[name] > 1 else "" for name in labels]


def runs(turns: Sequence[tuple[str, str, str | None, str]]) -> Iterator[tuple[int, int]]:
    """(start, end) of the runs of a file's (speaker, heading, session, text); what is no talk is alone."""
    start, size = 0, 0
    for number, (speaker, heading, session, text) in enumerate(turns):
        if number > start:
            first = turns[start]
            together = speaker and first[0] and (heading, session) == first[1:3]
            if not together or size + len(text) > RUN:
                yield start, number
                start, size = number, 0
        size += len(text)
    if turns:
        yield start, len(turns)


def led(heading: str, text: str) -> str:
    """A text as it is embedded when it stands alone: after its heading, which says what it is about.

    A heading that begins with a digit is a day or a time and says nothing of the kind.
    """
    lead = heading.rpartition(" > ")[2]
    return f"{lead}\n{text}" if lead and not lead[0].isdigit() else text


def asks(text: str) -> bool:
    """Whether a text ends in a question, a bracketed note at its end aside."""
    if "?" not in text:  # most texts: told without looking for a note, which tries every blank
        return False
    return bool(_ASKS.search(_NOTE.sub("", text) if "[" in text else text))


# -- items -------------------------------------------------------------------------------------------------
# Records into items: what the index keeps of a bank's files, one row for each thing that can be found.
#
# An item's key is made of its file and its block id, or the hash of its text where it has none, so that a
# line inserted above moves it without touching words or vectors. Text is masked here, before anything else
# sees it: a person's line may hold a secret, the index never does.


SESSION = "session"
"""The record and kind of a passage of a session."""
Masked = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class IndexItem:
    """One findable thing. `text` is what is shown and searched, masked; `context` helps the word search.

    `record` is fact, passage, observation, opinion, page, model or core; `kind` a fact's or opinion's
    kind, else the record's name. `texthash` is of the exact text, `linehash` of the file's lines from
    `line` to `end`, `vhash` of the text that is embedded. `seq` counts the items of a file. `speaker` is who
    says it, where the file is a talk, and `run` the name of the turns it is embedded with; see `talk`.
    `proofs` are the facts that an observation or an opinion rests on, by their `ref`, each once. `own`: no
    person's words are behind it, only an agent's.
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
    own: bool = False

    @property
    def ref(self) -> str | None:
        """What its id is known by in the whole bank; see `ref_of`."""
        return ref_of(self.path, self.id) if self.id else None

    @property
    def untrusted(self) -> bool:
        """Whether a tool, the web or an agent's import said it; see `trust`."""
        return wording.untrusted(self.origin, self.client, self.path)

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
        parts += [self.speaker, str(self.own)]
        return _hash(json.dumps([parts, self.tags, self.entities, self.context, self.proofs]))


def text_id(text: str) -> str:
    """The name of an embedded text in cache and Chroma: 32 hexadecimal digits of its SHA-256."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def lines_hash(lines: bytes) -> str:
    """A hash of raw lines joined by newlines, without carriage returns: how a hit is checked in its file."""
    return hashlib.blake2b(lines, digest_size=12).hexdigest()


def items_of(document: Document, masked: Masked, logs: LongLogs | None = None) -> Iterator[IndexItem]:
    """The items of one parsed file, in file order. `masked` takes secrets out of a text; `logs` remembers
    those of long logs."""
    seen: dict[str, int] = {}
    tags = tuple(
        tag for record in document.records if isinstance(record, Page | MentalModel) for tag in record.tags
    )
    title, named_above = titled(document), _front_names(document)
    records = [
        {
            **found,
            "trail": _below(title, found["heading"].trail),
            "entities": (*found["entities"], *named_above),
        }
        for found in _findable(document)
    ]
    # Looking for secrets costs by the call more than by the letter: a file without any is looked at once.
    everything = "\n\n".join(
        (*document.tags, *(text for found in records for text in (found["text"], _context(found))))
    )
    if masked(everything) == everything:
        masked = str
    else:
        records = _without_parts(records, masked)
    speakers = speakers_of([found["text"] for found in records])
    plain = logs if masked is str and not any(speakers) else None
    known = plain.known(document) if plain else []
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
    if plain:
        plain.keep(document, made)
    yield from made


def _without_parts(records: list[dict[str, Any]], masked: Masked) -> list[dict[str, Any]]:
    """The records without the parts of a key that began in one before: a long block of code is several
    records, and a part of a key is not recognised by itself."""
    left = masked("".join(f"\n\0{n}\0\n{found['text']}" for n, found in enumerate(records)))
    begin, end = (f"-----{word} PRIVATE KEY-----" for word in ("BEGIN", "END"))

    def rest(text: str) -> str:
        return masked(f"{begin}\n{text}" if "-----END" in text else f"{begin}\n{text}\n{end}")

    return [
        found if f"\0{n}\0" in left else {**found, "text": rest(found["text"])}
        for n, found in enumerate(records)
    ]


def titled(document: Document) -> str:
    """What a file is called: the name of a page or a model; of a note what its front matter says, else its
    file's name, and in brackets what else it is called. '' for a day's log and for files of one kind."""
    for record in document.records:
        if isinstance(record, Page | MentalModel):
            return record.name
    if kind_of(document.path) is not FileKind.LOG:
        return ""
    stem = document.path.rpartition("/")[2].removesuffix(".md")
    said = [document.front.get(key) for key in ("title", "name")]
    title = next((one for one in said if isinstance(one, str) and one), "" if day_of(document.path) else stem)
    found = document.front.get("aliases")
    others = [one for one in (found if isinstance(found, list) else [found]) if isinstance(one, str) and one]
    if not others:
        return title
    return f"{title} ({', '.join(others)})" if title else ", ".join(others)


_NAMING = frozenset(
    (
        *("people", "person", "persons", "author", "authors", "attendees", "participants", "with"),
        *("contact", "contacts", "owner", "location", "place"),
    )
)
"""The keys of a note's front matter whose values are names."""
LONGEST_NAMED = 60
"""Characters of such a name; what is longer is a sentence."""


def _front_names(document: Document) -> tuple[str, ...]:
    """The names that a note's front matter gives: what it says is about them, or by them."""
    if kind_of(document.path) is not FileKind.LOG:
        return ()
    values = [value for key, value in document.front.items() if key.casefold() in _NAMING]
    every = [one for value in values for one in (value if isinstance(value, list) else [value])]
    names = (one.strip().strip("[]") for one in every if isinstance(one, str))
    return tuple(dict.fromkeys(name for name in names if name and len(name) <= LONGEST_NAMED))


def _below(title: str, trail: tuple[str, ...]) -> tuple[str, ...]:
    """The headings over a text, its file's title first; a note's first heading often says the same."""
    if not title or (trail and folded(trail[0]) == folded(title)):
        return trail
    return (title, *trail)


def words_over(heading: str, tags: Iterable[str]) -> Iterator[str]:
    """The words of what stands over a text: its headings, its file's title, and tags; no times of day, and
    no tags that say where it was said (`harness:…`)."""
    for part in heading.split(" > "):
        if part and not part[0].isdigit():
            yield from words(part)
    for tag in tags:
        if ":" not in tag:
            yield from words(tag)


def session_items(data: bytes, path: str, masked: Masked) -> list[IndexItem] | None:
    """The passages of a session's file; None for a file that is no session, such as a person's note."""
    found = sessions.parse(data, Path(path))
    if found is None:
        return None
    lines, made = data.split(b"\n"), list[IndexItem]()
    about = clean(masked(f"{found.title}\n{found.project}"))
    for seq, one in enumerate(sessions.passages(found)):
        text = clean(masked(one.text))
        made.append(
            IndexItem(
                key=_hash(f"{path}\0{seq}\0{texthash(one.text)}"),
                record=SESSION,
                kind=SESSION,
                path=path,
                line=one.line,
                end=one.end,
                seq=seq,
                id=None,
                text=text,
                texthash=texthash(one.text),
                linehash=lines_hash(b"\n".join(lines[one.line - 1 : one.end])),
                vhash=text_id(text),
                day=one.day,
                origin="person" if "person" in one.speakers else "agent",
                own="person" not in one.speakers,
                client=found.client,
                session=found.session,
                heading=clean(masked(found.title)),
                context=about,
                tags=tuple(tag.casefold() for tag in found.tags),
            )
        )  # fmt: skip
    return made


LONG, KEPT = 256, 2
"""A log of so many records is likely to be read again with a few more; so many logs are remembered."""


class LongLogs:
    """What was made of long logs that hold no secret and no talk, newest first: each item comes of its own
    record and lines alone, and of how often its like was met before. Replaced as a whole: threads read at
    once."""

    def __init__(self) -> None:
        self._made: tuple[tuple[Document, list[IndexItem]], ...] = ()

    def known(self, document: Document) -> list[IndexItem]:
        """The items of those records at the beginning that are the very ones of a log as it was before."""
        if len(document.records) < LONG or kind_of(document.path) is not FileKind.LOG:
            return []
        for before, items in self._made:
            if (before.path, before.tags) == (document.path, document.tags):
                pairs = zip(before.records, document.records, strict=False)
                same = sum(1 for _ in takewhile(lambda pair: pair[0] is pair[1], pairs))
                return items[:same]
        return []

    def keep(self, document: Document, items: list[IndexItem]) -> None:
        if len(document.records) >= LONG and kind_of(document.path) is FileKind.LOG:
            others = tuple(one for one in self._made if one[0].path != document.path)
            self._made = ((document, items), *others[: KEPT - 1])


def _in_runs(items: list[IndexItem]) -> Iterator[IndexItem]:
    """The items, each turn of a talk with the run it is embedded in."""
    for start, end in runs([(item.speaker, item.heading, item.session, item.text) for item in items]):
        if end - start < 2:
            alone = items[start]
            yield replace(alone, vhash=text_id(led(alone.heading, alone.text)))
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
        "proofs": _proofs(record),
        "own": isinstance(record, Fact) and _is_agents(record),
    }


def _is_agents(fact: Fact) -> bool:
    """Whether an agent alone has said it. What it has in other words with a quote is its person's, unless the
    fact itself says that it is the agent's."""
    return fact.said_by == "agent" and (fact.origin == "agent" or not fact.quotes)


def _proofs(record: Fact | Observation | Opinion) -> tuple[str, ...]:
    named: Sequence[Proof] = getattr(record, "proofs", ()) or getattr(record, "because", ())
    return tuple(dict.fromkeys(proof.ref for proof in named if proof.id))


def _prose(record: Passage, name: str) -> dict[str, Any]:
    return {
        **{"record": name, "kind": name, "when": None, "origin": None, "more": []},
        **{"place": record.place, "heading": record.heading, "id": None, "text": record.text},
        **{"tags": (), "entities": (), "retired": None, "proofs": (), "own": False},
    }


def _item(
    document: Document,
    found: dict[str, Any],
    seq: int,
    key: str,
    page_tags: tuple[str, ...],
    masked: Masked,
    speaker: str,
) -> IndexItem:
    place: Place = found["place"]
    heading: Heading = found["heading"]
    text = clean(masked(found["text"]))
    tags = (*found["tags"], *hashtags(found["text"]), *page_tags)
    every = (*tags, *heading.tags, *document.tags)
    entities = tuple(clean(masked(name)) for name in found["entities"])
    said = (tag for tag in dict.fromkeys(every) if ":" not in tag)  # those with one say where it was said
    context = clean(masked(_context(found) + " " + " ".join(said)))
    lines = "\n".join(document.lines[place.line - 1 : place.end])
    return IndexItem(
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
        own=found["own"],
    )


def _context(found: dict[str, Any]) -> str:
    """What stands around a record's text and helps to find it by words."""
    return "\n".join([*found["trail"], *found["entities"], *found["tags"], *found["more"]])


def _hash(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


# -- tables ------------------------------------------------------------------------------------------------
# The word index's tables, and an item as a row of them.


T = TypeVar("T")

SCHEMA_VERSION = "16"
"""Raise it with any change here or in how items and terms are made: another version is dropped."""

COLUMNS = (
    'rowid, key, digest, path, line, "end", seq, record, kind, id, date, origin, client, session, retired,'
    ' texthash, linehash, vhash, "when", day, heading, tags, entities, text, context, speaker, run,'
    " proofs, own"
)

SCHEMA = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID",
    "CREATE TABLE files (path BLOB PRIMARY KEY, size INTEGER, mtime_ns INTEGER, ctime_ns INTEGER, inode TEXT,"
    " hash TEXT, racy INTEGER, problems TEXT) WITHOUT ROWID",
    "CREATE TABLE items (rowid INTEGER PRIMARY KEY, key TEXT UNIQUE, digest TEXT, path TEXT, line INTEGER,"
    ' "end" INTEGER, seq INTEGER, record TEXT, kind TEXT, id TEXT, date TEXT, origin TEXT, client TEXT,'
    ' session TEXT, retired TEXT, texthash TEXT, linehash TEXT, vhash TEXT, "when" TEXT, day TEXT,'
    " heading TEXT, tags TEXT, entities TEXT, text TEXT, context TEXT, speaker TEXT, run TEXT,"
    " proofs TEXT, own INTEGER)",
    "CREATE INDEX items_place ON items (path, seq)",
    "CREATE INDEX items_vhash ON items (vhash)",
    "CREATE INDEX items_texthash ON items (texthash)",
    "CREATE INDEX items_id ON items (id) WHERE id IS NOT NULL",
    "CREATE INDEX items_run ON items (run) WHERE run != ''",
    "CREATE INDEX items_order ON items (date, day, path, line, key)",
    "CREATE INDEX items_day ON items (record, day, origin, session, kind, client)",
    "CREATE TABLE cites (cited TEXT, item INTEGER, PRIMARY KEY (cited, item)) WITHOUT ROWID",
    "CREATE INDEX cites_item ON cites (item)",
    "CREATE TABLE names (name TEXT, how INTEGER, item INTEGER, spelled TEXT, stands INTEGER,"
    " PRIMARY KEY (name, how, item)) WITHOUT ROWID",
    "CREATE INDEX names_item ON names (item)",
    "CREATE TABLE settled (name TEXT, entity INTEGER, role TEXT, PRIMARY KEY (name, entity, role))"
    " WITHOUT ROWID",
    "CREATE INDEX settled_entity ON settled (entity)",
    "CREATE TRIGGER items_gone AFTER DELETE ON items BEGIN DELETE FROM names WHERE item = old.rowid;"
    " DELETE FROM cites WHERE item = old.rowid; END",
    "CREATE TABLE grams (gram TEXT, size INTEGER, word TEXT, PRIMARY KEY (gram, size, word)) WITHOUT ROWID",
    "CREATE TABLE forms (language TEXT, stem TEXT, word TEXT, PRIMARY KEY (language, stem, word))"
    " WITHOUT ROWID",
    "CREATE TABLE journal (generation INTEGER, vhash TEXT)",
    f'CREATE VIRTUAL TABLE words USING fts5 (text, context, tokenize = "{TOKENIZER}")',
    "CREATE VIRTUAL TABLE terms USING fts5vocab (words, row)",
)


def row(number: int, item: IndexItem, digest: str) -> tuple[Any, ...]:
    """An item as the values of COLUMNS."""
    where = (number, item.key, digest, item.path, item.line, item.end, item.seq)
    what = (item.record, item.kind, item.id, item.date, item.origin, item.client or "", item.session)
    hashes = (item.retired or "", item.texthash, item.linehash, item.vhash, item.when, item.day, item.heading)
    names = (json.dumps(item.tags), json.dumps(item.entities))
    about = (item.context, item.speaker, item.run, json.dumps(item.proofs), int(item.own))
    return (*where, *what, *hashes, *names, item.text, *about)


def from_row(values: tuple[Any, ...]) -> IndexItem:
    """The item of a row of COLUMNS."""
    _, key, _, path, line, end, seq, record, kind, block_id, _, origin, client, session = values[:14]
    retired, texthash, linehash, vhash, when, day, heading, tags, entities = values[14:23]
    text, context, speaker, run, proofs, own = values[23:]
    return IndexItem(
        key=key,
        record=record,
        kind=kind,
        path=path,
        line=line,
        end=end,
        seq=seq,
        id=block_id,
        text=text,
        texthash=texthash,
        linehash=linehash,
        vhash=vhash,
        when=when,
        day=day,
        origin=origin,
        client=client or None,
        session=session,
        heading=heading,
        tags=_names(tags),
        entities=_names(entities),
        retired=retired or None,
        context=context,
        speaker=speaker,
        run=run,
        proofs=_names(proofs),
        own=bool(own),
    )


def _names(packed: str) -> tuple[str, ...]:
    return tuple(json.loads(packed)) if packed != "[]" else ()


def read_only(file: Path) -> sqlite3.Connection:
    """A database that is only looked at. sqlite3.Error, at the latest with the first question."""
    return sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True, timeout=1)


def marks(values: Sequence[object]) -> str:
    """As many question marks as values."""
    return ",".join("?" * len(values))


def chunks(values: list[T], size: int = 500) -> Iterator[list[T]]:
    """The values in lists that stay under SQLite's limits."""
    for start in range(0, len(values), size):
        yield values[start : start + size]


# -- links -------------------------------------------------------------------------------------------------
# Names and the items they stand in: who speaks, who is spoken of. Drawn from the files, without a model.
#
# A name is declared, as a speaker, in an `entities:` line or by a wikilink, or drawn from the text: a
# proper name, handle, path, identifier, host or address. Looked up by the query's own words, so that a
# lookup costs by the query and not by the bank. What else somebody is called comes from
# `memory/entities.md`.


LONGEST = 6
"""Words of a name that are tried: `https://fly.io/docs/apps` has five. Longer ones are not kept."""

OPENING, DRAWN, DECLARED = 0, 1, 2
"""How a name is known to be one: it opens a sentence, as any word may; it stands within; it is said to be."""

MANY = 1000
"""Items of a name that are counted; the rest makes no difference."""

_LINK = re.compile(r"\[\[([^\]|#^]+)")
_BLOCK = re.compile(r"\^([a-z0-9]+)")
_LABELS = re.compile(r"\W{0,3}[:|]")
_AFTER_BAR = re.compile(r"\W*?[|]")


def folded(name: str) -> str:
    """A name as it is compared: its words, case and signs aside."""
    return " ".join(words(name))


class ItemName(NamedTuple):
    """A name in an item: how it is known to be one, its spellings there, a line each, and the flags of how it
    `stands` there."""

    how: int
    spelled: str
    stands: int


WITHIN, LINKED, LABEL = 1, 2, 4
"""As a part of a longer name; in a wikilink or an `entities:` line; before a colon or in a table's cell."""


def names_of(item: IndexItem) -> dict[str, ItemName]:
    """The names that stand in an item, folded; none of a session's, which count for no entity."""
    if item.record == SESSION:
        return {}
    found: dict[str, int] = {}
    spelled = defaultdict[str, set[str]](set)
    linked = {name: folded(name) for name in (*item.entities, *_LINK.findall(item.text))}
    for spelling, sure in drawn(item.text).items():
        name = folded(spelling)
        spelled[name].add(spelling)
        if name not in STOP and name not in ORDINARY and not name.isdigit():
            found[name] = max(DRAWN if sure else OPENING, found.get(name, OPENING))
    for spelling in (item.speaker, *linked):
        spelled[folded(spelling)].add(spelling)
        found[folded(spelling)] = DECLARED
    longer = f" {'  '.join(spelled)} "
    return {
        name: ItemName(
            how, "\n".join(sorted(spelled[name])), _stands(item, name, spelled[name], linked, longer)
        )
        for name, how in found.items()
        if name and name.count(" ") < LONGEST
    }


def _stands(
    item: IndexItem, name: str, spelled: Iterable[str], linked: Mapping[str, str], longer: str
) -> int:
    """The flags of a name. `longer` has all names of the item, two blanks apart."""
    within = longer.count(f" {name} ") > 1
    label = any(_is_label(item.text, one) for one in spelled)
    return WITHIN * within | LINKED * (name in linked.values()) | LABEL * label


def _is_label(text: str, name: str) -> bool:
    """Whether a spelling stands before a colon, or in a table's cell, somewhere in a text."""
    if not name or (":" not in text and "|" not in text):
        return False
    start = text.find(name)
    while start >= 0:
        if _LABELS.match(text, start + len(name)) or _AFTER_BAR.match(text[:start][::-1]):
            return True
        start = text.find(name, start + 1)
    return False


def holds(item: IndexItem, names: Iterable[str]) -> bool:
    """Whether one of these folded names stands in an item."""
    text = f" {folded(item.speaker)} {' '.join(words(item.text))} "
    return any(f" {name} " in text for name in names) or any(folded(name) in names for name in item.entities)


def cites_of(item: IndexItem) -> set[str]:
    """The ids that an item names, as what it rests on or in its text: by `ref`, and one that was typed also
    by itself, since the file in a link to it is a hint."""
    if "^" not in item.text and not item.proofs:
        return set()
    links = [(link.id, link.ref) for link in fields.citations(item.text)]
    bare = (block for block in _BLOCK.findall(item.text) if is_generated(block))
    return {*item.proofs, *map(written_id, item.proofs), *(name for link in links for name in link), *bare}


def add(db: sqlite3.Connection, first: int, items: Sequence[IndexItem]) -> None:
    """Write down the names and citations of items numbered from `first` on; a trigger drops them with their
    items."""
    rows = [
        (name, known.how, first + n, known.spelled, known.stands)
        for n, item in enumerate(items)
        for name, known in names_of(item).items()
    ]
    db.executemany("INSERT INTO names VALUES (?, ?, ?, ?, ?)", sorted(rows))
    cited = [(block, first + n) for n, item in enumerate(items) for block in cites_of(item)]
    db.executemany("INSERT INTO cites VALUES (?, ?)", sorted(cited))


def settle(db: sqlite3.Connection, records: Iterable[Record], masked: Callable[[str], str]) -> None:
    """Make the names that these records settle the settled ones, in place of those there were."""
    db.execute("DELETE FROM settled")
    db.executemany("INSERT OR IGNORE INTO settled VALUES (?, ?, ?)", sorted(settling(records, masked)))


def settling(records: Iterable[Record], masked: Callable[[str], str]) -> set[tuple[str, int, str]]:
    """(folded name, number of the entity, role) of the names that these records settle."""
    rows = set()
    settled = (record for record in records if isinstance(record, Entity))
    for number, entity in enumerate(settled):
        for role, said in (("name", (entity.name, *entity.aliases)), ("not", entity.nots)):
            rows |= {(found, number, role) for name in said if (found := folded(masked(name)))}
    return rows


@dataclass(frozen=True, slots=True)
class NamedInQuery:
    """The bank's names that stand in a query: {name: how many items have it, up to `MANY`}, longest first.

    `declared` are those that somebody gave as names, `every` also those drawn from texts. Who is said by one
    settled name is there by all of them; `also` has {name said: the others}.
    """

    declared: Mapping[str, int]
    every: Mapping[str, int]
    also: Mapping[str, tuple[str, ...]]


def named(db: sqlite3.Connection, query: str) -> NamedInQuery:
    """Whom a query names. A name that only ever opens a sentence counts where the query writes it as one."""
    said = words(query)
    tried = {
        " ".join(said[start : start + size])
        for size in range(1, LONGEST + 1)
        for start in range(len(said) - size + 1)
    }
    also, others = _settled(db, tried, f" {' '.join(said)} ")
    settled = {*also, *(name for names in also.values() for name in names)}
    written = {folded(name) for name in entities(query)} if said else set()
    declared, every = {}, {}
    for name, count, how in _known_names(db, sorted((tried | settled) - others)):
        if how == DECLARED or name in settled:
            declared[name] = count
        if how >= DRAWN or name in settled or name in written:
            every[name] = count
    return NamedInQuery(_longest(declared), _longest(every), also)


def _longest(names: Mapping[str, int]) -> Mapping[str, int]:
    return dict(sorted(names.items(), key=lambda pair: (-len(pair[0]), pair[0])))


def _known_names(db: sqlite3.Connection, names: Sequence[str]) -> Iterator[tuple[str, int, int]]:
    """(name, how many items have it, how it is known to be one at best) of those that there are."""
    for part in chunks(list(names), 250):
        yield from db.execute(
            "SELECT * FROM (SELECT column1,"
            f" (SELECT count(*) FROM (SELECT 1 FROM names WHERE name = column1 LIMIT {MANY})),"
            " (SELECT how FROM names WHERE name = column1 ORDER BY how DESC LIMIT 1) AS how"
            f" FROM (VALUES {','.join(['(?)'] * len(part))})) WHERE how IS NOT NULL",
            part,
        )


def _settled(
    db: sqlite3.Connection, tried: set[str], said: str
) -> tuple[dict[str, tuple[str, ...]], set[str]]:
    """({settled name that is said: what else that one is called}, names that are said of another).

    A name that is said only within one that it is settled not to be ("Alice" in "Alice Cooper") is not meant.
    """
    groups: dict[int, dict[str, set[str]]] = {}
    for part in chunks(sorted(tried)):
        rows = db.execute(
            "SELECT entity, role, name FROM settled WHERE entity IN"
            f" (SELECT entity FROM settled WHERE name IN ({marks(part)}) AND role = 'name')", part
        )  # fmt: skip
        for entity, role, name in rows:
            groups.setdefault(entity, {"name": set(), "not": set()})[role].add(name)
    also: dict[str, set[str]] = {}
    others: set[str] = set()
    for group in groups.values():
        rest = said
        for name in sorted(group["not"], key=len, reverse=True):
            rest = rest.replace(f" {name} ", "  ")
        for name in sorted(group["name"] & tried):
            if f" {name} " in rest:
                also.setdefault(name, set()).update(group["name"] - group["not"] - {name})
            else:
                others.add(name)
    return {name: tuple(sorted(names)) for name, names in also.items()}, others - also.keys()
