"""Turn records into items of the index, with their speakers, names and citations, and the index's schema."""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import date
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from ua_memory.index.terms import STOP_WORDS, TOKENIZER, clean, words
from ua_memory.knowledge import sessions
from ua_memory.markdown import fields as markdown_fields
from ua_memory.markdown.document import Document, texthash
from ua_memory.markdown.lines import FileKind, day_of, hashtags, kind_of
from ua_memory.records import (
    TEXT_KEYS,
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
from ua_memory.text import questions, wording
from ua_memory.text.names import ORDINARY, entities, name_candidates

# -- conversations -----------------------------------------------------------------------------------------
# Conversations in a file: the speaker of each item, and which turns are embedded together.
#
# A turn often depends on those before it ("Yes, last Tuesday!"). Consecutive turns, a run, are embedded in
# one model call, and each turn's vector is the mean of its own tokens' states ("late chunking", Günther et
# al. 2024, arXiv 2409.04701), which takes as long as one call a turn. Facts outside conversations are
# embedded alone: unrelated neighbours cost three points of R@10.


RUN_LENGTH = 600
"""Characters of a run, about 130 tokens: the model was trained on texts of up to 128."""

_LABEL = re.compile(r"(\*\*|__)?([^\W\d_][^*:\n]{0,39}?)(?(1)(?:\1:|:\1)|:)(?:\s|$)")
_ROW = re.compile(r"[^;\n]*; [^:;\n]{1,40}: ")
"""A row of a table: "Task: painting; Begin: 7 May"."""
_ASKS = re.compile(r"\?[^?]{0,24}$")
_NOTE = re.compile(r"\s*\[[^\]]*\]\s*$")


def speaker_label(text: str) -> str:
    """The `Name` of a text that begins with `Name:` or `**Name**:`, at most three words; '' for a row of a
    table and any other text."""
    found = None if _ROW.match(text) else _LABEL.match(text)
    name = found[2].strip() if found else ""
    return name if len(name.split()) <= 3 else ""


def speakers_of(texts: Sequence[str]) -> list[str]:
    """The speaker of each of a file's texts, '' for none. A label that occurs once is taken for a heading."""
    labels = [speaker_label(text) for text in texts]
    counts = Counter(labels)
    return [name if name and counts[name] > 1 else "" for name in labels]


def embedding_runs(turns: Sequence[tuple[str, str, str | None, str]]) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of the runs among a file's (speaker, heading, session, text) rows. A text without a
    speaker is a run of its own."""
    start, size = 0, 0
    for number, (speaker, heading, session, text) in enumerate(turns):
        if number > start:
            first = turns[start]
            together = speaker and first[0] and (heading, session) == first[1:3]
            if not together or size + len(text) > RUN_LENGTH:
                yield start, number
                start, size = number, 0
        size += len(text)
    if turns:
        yield start, len(turns)


def with_heading(heading: str, text: str) -> str:
    """The text to embed for an item outside a run: the last part of its heading, then the text. Headings that
    begin with a digit are dates or times and left out."""
    last = heading.rpartition(" > ")[2]
    return f"{last}\n{text}" if last and not last[0].isdigit() else text


def ends_with_question(text: str) -> bool:
    """Whether a text ends with a question, ignoring a bracketed note at its end."""
    if "?" not in text:  # most texts; `_NOTE` is slow
        return False
    return bool(_ASKS.search(_NOTE.sub("", text) if "[" in text else text))


# -- items -------------------------------------------------------------------------------------------------
# An item is one searchable record of a file: a fact, a passage, an observation …
#
# Its key is derived from its file and block id, or the hash of its text if it has none, so that a line
# inserted above it changes neither words nor vectors. Secrets are masked here, before anything is stored: a
# person's line may contain one, the index must not.


SESSION = "session"
"""The record and kind of a session's passages."""
Mask = Callable[[str], str]
"""Replaces the secrets in a text."""


@dataclass(frozen=True, slots=True)
class IndexItem:
    """One row of the index. `text` is what is shown and searched, `context` is only searched; both are
    masked.

    `record` is fact, passage, observation, opinion, page, model, core or session; `kind` is a fact's or
    opinion's kind, else the same as `record`. `texthash` is the hash of the exact text, `linehash` of the
    lines `line` to `end` of the file, `vhash` the `text_id` of the embedded text. `seq` is the item's
    position in its file. `speaker` is set in conversations; `run` identifies the turns it is embedded with.
    `proofs` are the refs (`ref_of`) of the facts that an observation or opinion cites, without duplicates.
    `own` is true if only an agent said it. `named` is the first day, month or year that a fact without a
    `when` names in its text, ISO: it says when an appointment is that was only written down. `last` is the
    last day of several that a `when` or a fact's text names: of a journey.
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
    flag: str | None = None
    named: str | None = None
    last: str | None = None

    @property
    def ref(self) -> str | None:
        """Its id, unique in the bank; see `ref_of`."""
        return ref_of(self.path, self.id) if self.id else None

    @property
    def untrusted(self) -> bool:
        """Whether it came from a tool, the web or an agent's import; see `wording.untrusted`."""
        return wording.untrusted(self.origin, self.client, self.path)

    @property
    def date(self) -> str:
        """The ISO day the item is about, by its `when` or a later day that it names, else the day it was
        said, else ''."""
        return (self.when or (self.day and max(self.named or "", self.day)) or "")[:10]

    def listed_day(self, today: str) -> str:
        """The day under which lists have it: its date, unless that is to come; then the day it was said."""
        return self.date if self.date <= today else self.day or self.date

    @property
    def place(self) -> Place:
        return Place(self.path, self.line, self.end)

    @property
    def fields(self) -> str:
        """A fact's `TEXT_KEYS` and its quotes, a line each; '' for others."""
        return self.context.partition("\n\n")[2]

    def digest(self) -> str:
        """A hash of everything but its position and vector; an equal digest needs no reindexing."""
        parts = [self.key, self.record, self.kind, self.id, self.text, self.texthash, self.linehash]
        parts += [self.when, self.day, self.origin, self.client, self.session, self.heading, self.retired]
        parts += [self.speaker, str(self.own), self.flag]
        return _hash(json.dumps([parts, self.tags, self.entities, self.context, self.proofs]))


def text_id(text: str) -> str:
    """The id of an embedded text in cache and Chroma: the first 32 hexadecimal digits of its SHA-256."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def lines_hash(lines: bytes) -> str:
    """A hash of raw lines joined by newlines, without carriage returns, to verify a hit against its file."""
    return hashlib.blake2b(lines, digest_size=12).hexdigest()


def items_of(document: Document, mask: Mask, logs: LogCache | None = None) -> Iterator[IndexItem]:
    """Yield the items of a parsed file, in file order. `logs` caches those of long logs."""
    seen: dict[str, int] = {}
    tags = tuple(
        tag for record in document.records if isinstance(record, Page | MentalModel) for tag in record.tags
    )
    title, front_names = document_title(document), _front_matter_names(document)
    records = [
        {
            **found,
            "headings": _with_title(title, found["heading"].texts),
            "entities": (*found["entities"], *front_names),
        }
        for found in _searchable(document)
    ]
    # Masking costs more per call than per character: a file without secrets is scanned once.
    everything = "\n\n".join(
        (*document.tags, *(text for found in records for text in (found["text"], _context(found))))
    )
    if mask(everything) == everything:
        mask = str
    else:
        records = _mask_split_keys(records, mask)
    speakers = speakers_of([found["text"] for found in records])
    cache = logs if mask is str and not any(speakers) else None
    cached = cache.get(document) if cache else []
    items = []
    for seq, (found, speaker) in enumerate(zip(records, speakers, strict=True)):
        identity = f"^{found['id']}" if found["id"] else texthash(found["text"])
        occurrence = seen.get(identity, 0)
        seen[identity] = occurrence + 1
        if seq < len(cached):
            items.append(cached[seq])
            continue
        key = _hash(f"{document.path}\0{identity}\0{occurrence}")
        items.append(_item(document, found, seq, key, tags, mask, clean(mask(speaker))))
    complete = cached + list(_assign_runs(items[len(cached) :]))
    if cache:
        cache.put(document, complete)
    yield from complete


def _mask_split_keys(records: list[dict[str, Any]], mask: Mask) -> list[dict[str, Any]]:
    """Mask private keys that span several records, such as a long code block, of which no part is
    recognised."""
    masked = mask("".join(f"\n\0{n}\0\n{found['text']}" for n, found in enumerate(records)))
    begin, end = (f"-----{word} PRIVATE KEY-----" for word in ("BEGIN", "END"))

    def mask_part(text: str) -> str:
        return mask(f"{begin}\n{text}" if "-----END" in text else f"{begin}\n{text}\n{end}")

    return [
        found if f"\0{n}\0" in masked else {**found, "text": mask_part(found["text"])}
        for n, found in enumerate(records)
    ]


def document_title(document: Document) -> str:
    """The title of a file: a page's or model's name; for a note the `title` or `name` of its front matter,
    else the file name, with its `aliases` in parentheses. '' for daily logs without front matter and other
    files."""
    for record in document.records:
        if isinstance(record, Page | MentalModel):
            return record.name
    if kind_of(document.path) is not FileKind.LOG:
        return ""
    stem = document.path.rpartition("/")[2].removesuffix(".md")
    titles = [document.front.get(key) for key in ("title", "name")]
    title = next(
        (one for one in titles if isinstance(one, str) and one), "" if day_of(document.path) else stem
    )
    found = document.front.get("aliases")
    aliases = [one for one in (found if isinstance(found, list) else [found]) if isinstance(one, str) and one]
    if not aliases:
        return title
    return f"{title} ({', '.join(aliases)})" if title else ", ".join(aliases)


_NAME_KEYS = frozenset(("people", "person", "persons", "author", "authors", "attendees", "participants"))
_NAME_KEYS |= {"with", "contact", "contacts", "owner", "location", "place"}
"""Front matter keys whose values are names."""
LONGEST_NAMED = 60
"""Characters of such a name; longer values are sentences."""


def _front_matter_names(document: Document) -> tuple[str, ...]:
    """The names in a note's front matter, whom its text is about or by."""
    if kind_of(document.path) is not FileKind.LOG:
        return ()
    values = [value for key, value in document.front.items() if key.casefold() in _NAME_KEYS]
    every = [one for value in values for one in (value if isinstance(value, list) else [value])]
    names = (one.strip().strip("[]") for one in every if isinstance(one, str))
    return tuple(dict.fromkeys(name for name in names if name and len(name) <= LONGEST_NAMED))


def _with_title(title: str, headings: tuple[str, ...]) -> tuple[str, ...]:
    """The headings with the file's title in front, unless the first heading is the same."""
    if not title or (headings and folded(headings[0]) == folded(title)):
        return headings
    return (title, *headings)


def heading_words(heading: str, tags: Iterable[str]) -> Iterator[str]:
    """Yield the words of headings and tags, without times of day and tags of provenance (`harness:…`)."""
    for part in heading.split(" > "):
        if part and not part[0].isdigit():
            yield from words(part)
    for tag in tags:
        if ":" not in tag:
            yield from words(tag)


def session_items(data: bytes, path: str, mask: Mask) -> list[IndexItem] | None:
    """The passages of a session file; None if it is no session, such as a person's note."""
    found = sessions.parse(data, Path(path))
    if found is None:
        return None
    lines, items = data.split(b"\n"), list[IndexItem]()
    # A question says nothing of what the other passages are about.
    stated = not questions.is_question(found.title)
    title = clean(mask(found.title))
    context = f"{title if stated else ''}\n{clean(mask(found.project))}"
    for seq, one in enumerate(sessions.passages(found)):
        text = clean(mask(one.text))
        items.append(
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
                vhash=text_id(f"{title if stated else ''}\n{text}"),
                day=one.day,
                origin="person" if "person" in one.speakers else "agent",
                own="person" not in one.speakers,
                client=found.client,
                session=found.session,
                heading=title,
                context=context,
                tags=tuple(tag.casefold() for tag in found.tags),
            )
        )  # fmt: skip
    return items


LONG_LOG, LOGS_CACHED = 256, 2
"""Records from which on a log is cached, since it will be read again with a few more; and logs cached."""


class LogCache:
    """The items of the last long logs without secrets and speakers, newest first. There an item depends only
    on its own record and lines, and on earlier records with the same text. The tuple is replaced as a whole,
    so that threads may read it."""

    def __init__(self) -> None:
        self._cached: tuple[tuple[Document, list[IndexItem]], ...] = ()

    def get(self, document: Document) -> list[IndexItem]:
        """The items of the leading records that are identical objects in the cached version of this log."""
        if len(document.records) < LONG_LOG or kind_of(document.path) is not FileKind.LOG:
            return []
        for before, items in self._cached:
            if (before.path, before.tags) == (document.path, document.tags):
                pairs = zip(before.records, document.records, strict=False)
                same = sum(1 for _ in takewhile(lambda pair: pair[0] is pair[1], pairs))
                return items[:same]
        return []

    def put(self, document: Document, items: list[IndexItem]) -> None:
        if len(document.records) >= LONG_LOG and kind_of(document.path) is FileKind.LOG:
            others = tuple(one for one in self._cached if one[0].path != document.path)
            self._cached = ((document, items), *others[: LOGS_CACHED - 1])


def _assign_runs(items: list[IndexItem]) -> Iterator[IndexItem]:
    """Yield the items, those of a run with its `run` and `vhash`."""
    for start, end in embedding_runs([(one.speaker, one.heading, one.session, one.text) for one in items]):
        if end - start < 2:
            yield items[start]
            continue
        run = text_id("\n".join(one.text for one in items[start:end]))
        for number in range(start, end):
            yield replace(items[number], run=run, vhash=text_id(f"{run} {number - start}"))


def _searchable(document: Document) -> Iterator[dict[str, Any]]:
    """Yield the values of each record that becomes an item."""
    record_of = {FileKind.CORE: "core", FileKind.PAGE: "page", FileKind.MODEL: "model"}
    prose = record_of.get(kind_of(document.path), "passage")
    for record in document.records:
        if isinstance(record, Fact):
            more = [said for key in TEXT_KEYS if (said := getattr(record, key))]
            more += [quote.text for quote in record.quotes]
            yield _values(record, "fact", record.kind, record.when, record.said_by, more)
        elif isinstance(record, Observation):
            when, origin = record.last or record.since, record.origin or _default_origin(record)
            yield _values(record, "observation", "observation", when, origin)
        elif isinstance(record, Opinion):
            yield _values(record, "opinion", record.kind, record.when, _default_origin(record))
        elif isinstance(record, Passage):
            yield _values(record, prose, prose)


def _default_origin(record: Observation | Opinion) -> str:
    """The origin of a belief that states none: with an id it was consolidated, without it was typed."""
    return record.heading.origin or ("agent" if record.id else "person")


def _values(
    record: Fact | Observation | Opinion | Passage, name: str, kind: str, when: str | None = None,
    origin: str | None = None, more: Sequence[str] = (),
) -> dict[str, Any]:  # fmt: skip
    usual = {"id": None, "tags": (), "entities": (), "retired": None, "flag": None}
    return {
        **{"record": name, "kind": kind, "when": when, "origin": origin, "more": more},
        **{"place": record.place, "heading": record.heading, "text": record.text},
        **{key: getattr(record, key, default) for key, default in usual.items()},
        "proofs": _proofs(record),
        "own": isinstance(record, Fact) and _is_agents_own(record),
    }


def _is_agents_own(fact: Fact) -> bool:
    """Whether only an agent said it. A fact with a quote is a person's statement in the agent's words, unless
    its `origin` is `agent`."""
    return fact.said_by == "agent" and (fact.origin == "agent" or not fact.quotes)


def _proofs(record: Fact | Observation | Opinion | Passage) -> tuple[str, ...]:
    cited: Sequence[Proof] = getattr(record, "proofs", ()) or getattr(record, "because", ())
    return tuple(dict.fromkeys(proof.ref for proof in cited if proof.id))


def _item(
    document: Document,
    found: dict[str, Any],
    seq: int,
    key: str,
    page_tags: tuple[str, ...],
    mask: Mask,
    speaker: str,
) -> IndexItem:
    place: Place = found["place"]
    heading: Heading = found["heading"]
    text = clean(mask(found["text"]))
    tags = (*found["tags"], *hashtags(found["text"]), *page_tags, *heading.tags, *document.tags)
    topics = [tag for tag in dict.fromkeys(tags) if ":" not in tag]  # a colon marks provenance
    lines = "\n".join(document.lines[place.line - 1 : place.end])
    heading_text = clean(mask(" > ".join(found["headings"])))
    day = day_of(document.path) or day_of(f"{text.partition(' ')[0].rstrip(':')}.md")
    when = found["when"] or (found["record"] == "fact" and _named_days(text, day)) or ""
    first, _, last = when.partition("/")
    return IndexItem(
        **{name: found[name] for name in ("record", "kind", "id", "when", "retired", "proofs", "own")},
        key=key,
        path=document.path,
        line=place.line,
        end=place.end,
        seq=seq,
        text=text,
        texthash=texthash(found["text"]),
        linehash=lines_hash(lines.encode("utf-8", "surrogateescape")),
        vhash=text_id(with_heading(heading_text, text)),
        day=day,
        named=None if found["when"] else first[:10] or None,
        last=_last_day(first[:10], last[:10]),
        origin=found["origin"] or heading.origin or "person",
        client=heading.client,
        session=heading.session,
        heading=heading_text,
        tags=tuple(dict.fromkeys(clean(mask(tag)).casefold() for tag in tags)),
        entities=tuple(clean(mask(name)) for name in found["entities"]),
        flag=found["flag"] and clean(mask(found["flag"])),
        context=clean(mask(_context(found, topics))).rstrip(),
        speaker=speaker,
    )


LONGEST_PERIOD = 62
"""Days. What lasts longer, such as a contract, is found only by its first day: it is news on no other."""


def _last_day(first: str, last: str) -> str | None:
    """The last day of a period if both are days, ISO, and it is no longer than LONGEST_PERIOD."""
    if len(first) < 10 or len(last) < 10:
        return None
    lasts = date.fromisoformat(last) - date.fromisoformat(first)
    return last if 0 < lasts.days <= LONGEST_PERIOD else None


def _named_days(text: str, day: str | None) -> str | None:
    # Loaded here: a command that indexes nothing has no use for it.
    from ua_memory.text.dates import when_in_text

    return when_in_text(text, date.fromisoformat(day) if day else None, several=True)


def _context(found: dict[str, Any], topics: Sequence[str] = ()) -> str:
    """Text besides a record's own by which words find it: headings, names and tags; after a blank line, the
    other fields."""
    named = dict.fromkeys((*found["headings"], *found["entities"], *found["tags"], *topics))
    return "\n".join((*named, "", *found["more"]))


def _hash(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


# -- schema ------------------------------------------------------------------------------------------------
# The tables of the word index, and items as their rows.


T = TypeVar("T")

_FIELDS = tuple(each.name for each in fields(IndexItem))
_LISTS = ("tags", "entities", "proofs")
"""Fields that are stored as JSON lists."""
COLUMNS = ", ".join(["rowid", *(f'"{name}"' for name in _FIELDS), "digest", "date"])
_TYPED = ", ".join(f'"{each.name}" {"INTEGER" if each.type in ("int", "bool") else "TEXT"}'
                   for each in fields(IndexItem))  # fmt: skip

SCHEMA = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID",
    "CREATE TABLE files (path BLOB PRIMARY KEY, size INTEGER, mtime_ns INTEGER, ctime_ns INTEGER, inode TEXT,"
    " hash TEXT, racy INTEGER, problems TEXT) WITHOUT ROWID",
    f"CREATE TABLE items (rowid INTEGER PRIMARY KEY, {_TYPED}, digest TEXT, date TEXT, UNIQUE (key))",
    "CREATE INDEX items_place ON items (path, seq)",
    "CREATE INDEX items_vhash ON items (vhash)",
    "CREATE INDEX items_texthash ON items (texthash)",
    "CREATE INDEX items_id ON items (id) WHERE id IS NOT NULL",
    "CREATE INDEX items_named ON items (named) WHERE named IS NOT NULL",
    "CREATE INDEX items_last ON items (last) WHERE last IS NOT NULL",
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


def to_row(number: int, item: IndexItem, digest: str) -> tuple[Any, ...]:
    """An item as the values of COLUMNS."""
    row = {name: getattr(item, name) for name in _FIELDS}
    row |= {name: json.dumps(row[name]) if row[name] else "[]" for name in _LISTS}
    row |= {"client": item.client or "", "retired": item.retired or "", "own": int(item.own)}
    return (number, *row.values(), digest, item.date)


def from_row(values: tuple[Any, ...]) -> IndexItem:
    """The item in a row of COLUMNS."""
    row = dict(zip(_FIELDS, values[1:], strict=False))
    row |= {name: _names(row[name]) for name in _LISTS}
    row |= {"client": row["client"] or None, "retired": row["retired"] or None, "own": bool(row["own"])}
    return IndexItem(**row)


def _names(packed: str) -> tuple[str, ...]:
    return tuple(json.loads(packed)) if packed != "[]" else ()


def open_read_only(file: Path) -> sqlite3.Connection:
    """Open a database read-only. sqlite3.Error, at the latest from the first query."""
    return sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True, timeout=1)


def placeholders(values: Sequence[object]) -> str:
    """A `?` for each value, separated by commas."""
    return ",".join("?" * len(values))


def chunks(values: list[T], size: int = 500) -> Iterator[list[T]]:
    """Split values into lists within SQLite's limit of parameters."""
    for start in range(0, len(values), size):
        yield values[start : start + size]


# -- names and citations -----------------------------------------------------------------------------------
# Which names occur in which items. Extracted from the files, without a model.
#
# A name is declared (a speaker, an `entities:` line, a wikilink) or extracted from the text: a proper name,
# handle, path, identifier, host or address. Names are looked up by the words of a query, so the cost depends
# on the query and not on the bank. Aliases come from `memory/entities.md`.


LONGEST = 6
"""Words of a name; `https://fly.io/docs/apps` has five. Longer names are neither stored nor looked up."""

SENTENCE_START, EXTRACTED, DECLARED = 0, 1, 2
"""How certain a name is: it only begins a sentence, as any word may; it occurs within one; it is declared."""

COUNT_LIMIT = 1000
"""A name's items are counted up to this number; ranking does not need more."""

_LINK = re.compile(r"\[\[([^\]|#^]+)")
_BLOCK = re.compile(r"\^([a-z0-9]+)")
_LABELS = re.compile(r"\W{0,3}[:|]")
_AFTER_BAR = re.compile(r"\W*?[|]")


def folded(name: str) -> str:
    """The normalised form of a name, for comparison: its words, without case and punctuation."""
    return " ".join(words(name))


class ItemName(NamedTuple):
    """A name in an item: its certainty (`SENTENCE_START` …), spellings, one per line, and flags (`WITHIN`
    …)."""

    certainty: int
    spellings: str
    flags: int


WITHIN, LINKED, LABEL = 1, 2, 4
"""Flags: part of a longer name; in a wikilink or `entities:` line; before a colon or in a table cell."""


def names_of(item: IndexItem) -> dict[str, ItemName]:
    """{folded name: how it occurs} of an item; {} for a session, which does not count for entities."""
    if item.record == SESSION:
        return {}
    found: dict[str, int] = {}
    spellings = defaultdict[str, set[str]](set)
    linked = {name: folded(name) for name in (*item.entities, *_LINK.findall(item.text))}
    for spelling, sure in name_candidates(item.text).items():
        name = folded(spelling)
        spellings[name].add(spelling)
        if name not in STOP_WORDS and name not in ORDINARY and not name.isdigit():
            found[name] = max(EXTRACTED if sure else SENTENCE_START, found.get(name, SENTENCE_START))
    for spelling in (item.speaker, *linked):
        spellings[folded(spelling)].add(spelling)
        found[folded(spelling)] = DECLARED
    every = f" {'  '.join(spellings)} "
    return {
        name: ItemName(
            certainty,
            "\n".join(sorted(spellings[name])),
            _name_flags(item, name, spellings[name], linked, every),
        )
        for name, certainty in found.items()
        if name and name.count(" ") < LONGEST
    }


def _name_flags(
    item: IndexItem, name: str, spellings: Iterable[str], linked: Mapping[str, str], every: str
) -> int:
    """The flags of a name. `every` has all names of the item, separated by two spaces."""
    within = every.count(f" {name} ") > 1
    is_label = any(_is_label(item.text, one) for one in spellings)
    return WITHIN * within | LINKED * (name in linked.values()) | LABEL * is_label


def _is_label(text: str, name: str) -> bool:
    """Whether a name occurs before a colon or in a table cell."""
    if not name or (":" not in text and "|" not in text):
        return False
    start = text.find(name)
    while start >= 0:
        if _LABELS.match(text, start + len(name)) or _AFTER_BAR.match(text[:start][::-1]):
            return True
        start = text.find(name, start + 1)
    return False


def mentions(item: IndexItem, names: Iterable[str]) -> bool:
    """Whether an item contains one of these folded names."""
    text = f" {folded(item.speaker)} {' '.join(words(item.text))} "
    return any(f" {name} " in text for name in names) or any(folded(name) in names for name in item.entities)


def citations_of(item: IndexItem) -> set[str]:
    """The ids that an item cites in its proofs or its text, as refs. Ids that a person chose are included
    without their file, too, since the file in a link is only a hint."""
    if "^" not in item.text and not item.proofs:
        return set()
    links = [(link.id, link.ref) for link in markdown_fields.citations(item.text)]
    bare = (block for block in _BLOCK.findall(item.text) if is_generated(block))
    return {*item.proofs, *map(written_id, item.proofs), *(name for link in links for name in link), *bare}


def add_links(db: sqlite3.Connection, first: int, items: Sequence[IndexItem]) -> None:
    """Insert the names and citations of items with rowids from `first` on; a trigger deletes them."""
    rows = [
        (name, found.certainty, first + n, found.spellings, found.flags)
        for n, item in enumerate(items)
        for name, found in names_of(item).items()
    ]
    db.executemany("INSERT INTO names VALUES (?, ?, ?, ?, ?)", sorted(rows))
    cited = [(block, first + n) for n, item in enumerate(items) for block in citations_of(item)]
    db.executemany("INSERT INTO cites VALUES (?, ?)", sorted(cited))


def replace_settled(db: sqlite3.Connection, records: Iterable[Record], mask: Mask) -> None:
    """Replace the settled names with those of these records."""
    db.execute("DELETE FROM settled")
    db.executemany("INSERT OR IGNORE INTO settled VALUES (?, ?, ?)", sorted(settled_names(records, mask)))


def settled_names(records: Iterable[Record], mask: Mask) -> set[tuple[str, int, str]]:
    """{(folded name, number of the entity, role "name" or "not")} of the entities among these records."""
    rows = set()
    settled = (record for record in records if isinstance(record, Entity))
    for number, entity in enumerate(settled):
        for role, names in (("name", (entity.name, *entity.aliases)), ("not", entity.nots)):
            rows |= {(found, number, role) for name in names if (found := folded(mask(name)))}
    return rows


@dataclass(frozen=True, slots=True)
class NamedInQuery:
    """The bank's names in a query: {folded name: how many items have it, up to `COUNT_LIMIT`}, longest first.

    `declared` are certain names, `every` includes those extracted from texts. Both include all aliases of a
    settled name; `aliases` has {name in the query: its other names}.
    """

    declared: Mapping[str, int]
    every: Mapping[str, int]
    aliases: Mapping[str, tuple[str, ...]]


def names_in_query(db: sqlite3.Connection, query: str) -> NamedInQuery:
    """The bank's names in a query. One that only begins sentences counts if the query writes it as a name."""
    query_words = words(query)
    candidates = {
        " ".join(query_words[start : start + size])
        for size in range(1, LONGEST + 1)
        for start in range(len(query_words) - size + 1)
    }
    aliases, ignored = _settled(db, candidates, f" {' '.join(query_words)} ")
    settled = {*aliases, *(name for names in aliases.values() for name in names)}
    written = {folded(name) for name in entities(query)} if query_words else set()
    declared, every = {}, {}
    for name, count, certainty in _known_names(db, sorted((candidates | settled) - ignored)):
        if certainty == DECLARED or name in settled:
            declared[name] = count
        if certainty >= EXTRACTED or name in settled or name in written:
            every[name] = count
    return NamedInQuery(_longest_first(declared), _longest_first(every), aliases)


def _longest_first(names: Mapping[str, int]) -> Mapping[str, int]:
    return dict(sorted(names.items(), key=lambda pair: (-len(pair[0]), pair[0])))


def _known_names(db: sqlite3.Connection, names: Sequence[str]) -> Iterator[tuple[str, int, int]]:
    """Yield (name, number of items, highest certainty) of the names that are in the index."""
    for part in chunks(list(names), 250):
        yield from db.execute(
            "SELECT * FROM (SELECT column1,"
            f" (SELECT count(*) FROM (SELECT 1 FROM names WHERE name = column1 LIMIT {COUNT_LIMIT})),"
            " (SELECT how FROM names WHERE name = column1 ORDER BY how DESC LIMIT 1) AS how"
            f" FROM (VALUES {','.join(['(?)'] * len(part))})) WHERE how IS NOT NULL",
            part,
        )


def _settled(
    db: sqlite3.Connection, candidates: set[str], query: str
) -> tuple[dict[str, tuple[str, ...]], set[str]]:
    """({settled name in the query, or the first word of one: its other names}, names to ignore).

    A name is ignored if it only occurs within one that it is settled not to be: "Alice" in "Alice Cooper".
    A first word stands for the names without it: "Roberto" for "Bob Ruiz", who is now "Roberto Ruiz".
    """
    groups: dict[int, dict[str, set[str]]] = {}
    for part in chunks(sorted(candidates), 250):
        these = placeholders(part)
        rows = db.execute(
            "SELECT entity, role, name FROM settled WHERE entity IN"
            f" (SELECT entity FROM settled WHERE role = 'name' AND (name IN ({these})"
            f" OR substr(name, 1, instr(name, ' ') - 1) IN ({these})))", part * 2
        )  # fmt: skip
        for entity, role, name in rows:
            groups.setdefault(entity, {"name": set(), "not": set()})[role].add(name)
    aliases: dict[str, set[str]] = {}
    ignored: set[str] = set()
    for group in groups.values():
        rest = query
        for name in sorted(group["not"], key=len, reverse=True):
            rest = rest.replace(f" {name} ", "  ")
        for name in sorted(group["name"] & candidates):
            if f" {name} " in rest:
                aliases.setdefault(name, set()).update(group["name"] - group["not"] - {name})
            else:
                ignored.add(name)
        firsts = {name.partition(" ")[0] for name in group["name"]} & set(rest.split()) - ORDINARY
        for first in firsts - STOP_WORDS:
            if others := {name for name in group["name"] - group["not"] if first not in name.split()}:
                aliases.setdefault(first, set()).update(others)
    return {name: tuple(sorted(names)) for name, names in aliases.items()}, ignored - aliases.keys()
