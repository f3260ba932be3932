"""Archival memory: facts into the daily logs and out of them, in domain words."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from ua_memory import fields, markdown
from ua_memory.errors import NotFound, TooLarge, Usage
from ua_memory.paths import LOGS
from ua_memory.records import KINDS, NOWHERE, Fact, Heading, Kind, Origin, Place, Quote
from ua_memory.store import Store
from ua_memory.store.draft import Draft, Result

MAX_TEXT = 64 * 1024
"""Characters of one fact. A longer text is a document: `ingest` it."""
ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"
SAME_BREATH = timedelta(hours=1)
"""Facts of one client and session said within this time share a heading."""

Equal = Callable[[str], Sequence[Fact]]
"""Facts with exactly this text anywhere in the bank, as the index knows them; it may miss one."""


@dataclass(frozen=True, slots=True)
class Said:
    """How a fact came in: by whom, through which client and session, when (aware, in the bank's timezone)."""

    at: datetime
    client: str
    origin: Origin = "agent"
    session: str | None = None


@dataclass(frozen=True, slots=True)
class Inserted:
    """What an insert did: the fact where it stands, and whether it was new, seen again, or asked twice."""

    fact: Fact
    result: Result
    sighting: bool = False
    repeated: bool = False
    heading: Heading = field(default=Heading())


def new_id() -> str:
    """Ten base32 characters: 50 bits, never used again."""
    return "".join(secrets.choice(ALPHABET) for _ in range(10))


def insert(
    store: Store, fact: Fact, said: Said, *, door: str, request: str | None = None, equal: Equal | None = None
) -> Inserted:
    """Write one fact, verbatim, into the log of the day it was said; durable and committed on return.

    A request id that was answered before changes nothing. A text that stands in a fact of ours already
    adds a sighting to it; beside a person's line it is a fact of its own. Usage, TooLarge.
    """
    _check(fact)
    if request and (revision := store.known_request(request)):
        return _answered(store, revision)
    with store.revision("insert", door=door, request=request, session=said.session) as draft:
        draft.by_person = said.origin == "person"
        fact = _redacted(fact, draft)
        known = _ours_with_text(store, draft, fact, equal)
        if known:
            path, placed = known.place.path, _see_again(draft, known, said)
            draft.subject = f"insert: seen again in {path}"
        else:
            path, placed = _append(draft, replace(fact, id=fact.id or new_id()), said)
            draft.subject = f"insert: 1 fact into {path}"
        draft.facts = [f"^{placed.id}"]
    return Inserted(placed, draft.result, sighting=known is not None, heading=placed.heading)


def log_path(day: str) -> str:
    return f"{LOGS}/{day}.md"


def find(store: Store, block: str, paths: Sequence[str] | None = None) -> Fact:
    """The fact with a block id (`^id` or `id`), looked for in the given files, else in all. NotFound."""
    wanted = block.removeprefix("^")
    for path in paths if paths is not None else [f.path for f in store.files()]:
        data = store.truth(path)
        if wanted.encode() not in data:
            continue
        for record in markdown.parse(data, path).of(Fact):
            if record.id == wanted:
                return record
    raise NotFound("no fact has this id", where=f"^{wanted}", mend="ua-memory search")


def _check(fact: Fact) -> None:
    if not fact.text.strip():
        raise Usage("there is no text to remember")
    if len(fact.text) > MAX_TEXT:
        raise TooLarge(
            f"{len(fact.text)} characters; a fact has at most {MAX_TEXT}",
            mend="split it, or retain it as a document",
        )
    if fact.kind not in KINDS or fact.kind in ("observation", "opinion", "pattern", "risk"):
        raise Usage(f"{fact.kind!r} is no kind of fact", mend="use world, experience or preference")
    if fact.when is not None and not fields.is_time(fact.when):
        raise Usage(f"{fact.when!r} is no date", mend="use 2026-11-21, 2026-11-21T14:32 or 2026-11")
    for tag in fact.tags:
        if not tag.strip() or tag != tag.strip() or any(c in tag for c in "\n\r\0"):
            raise Usage(f"{tag!r} is no tag")


def _redacted(fact: Fact, draft: Draft) -> Fact:
    clean = draft.redact
    quotes = tuple(Quote(clean(q.text), q.source) for q in fact.quotes)
    entities = tuple(clean(name) for name in fact.entities)
    optional = {
        key: clean(value) for key in ("where", "who", "why", "cause") if (value := getattr(fact, key))
    }
    return replace(fact, text=clean(fact.text), quotes=quotes, entities=entities, **optional)


def _answered(store: Store, revision: str) -> Inserted:
    done = store.history.show(revision)
    name = done.trailer("Facts")
    placed = Fact("", id=name.removeprefix("^") or None)
    if name:
        try:
            placed = find(store, name, list(done.paths))
        except NotFound:  # forgotten or moved since: the request is answered all the same
            placed = replace(placed, place=NOWHERE)
    return Inserted(placed, Result(revision, done.paths), repeated=True, heading=placed.heading)


def _ours_with_text(store: Store, draft: Draft, fact: Fact, equal: Equal | None) -> Fact | None:
    """A live fact of ours with this text and these tags, checked against the file as it is now."""
    for candidate in equal(fact.text) if equal else ():
        path = candidate.place.path
        for there in markdown.parse(draft.read(path), path).of(Fact):
            same = there.text == fact.text and set(there.tags) == set(fact.tags) and there.kind == fact.kind
            if same and there.heading.client and there.id and not there.retired:
                return there
    return None


def _see_again(draft: Draft, known: Fact, said: Said) -> Fact:
    """Note another sighting on the fact's `seen:` line; nothing else of it is printed anew."""
    path, stamp = known.place.path, said.at.strftime("%Y-%m-%dT%H:%M")
    if stamp in known.seen:
        return known
    data = draft.read(path)
    lines = markdown.parse(data, path).lines[known.place.line - 1 : known.place.end]
    rows = [n for n, line in enumerate(lines) if re.match(r"\s+[-*+] seen:", line)]
    if rows:
        row = known.place.line + rows[-1]
        new = markdown.replace_lines(data, Place(path, row, row), [f"{lines[rows[-1]].rstrip()}, {stamp}"])
    else:
        new = markdown.insert_after(data, known.place.end, [f"  - seen: {stamp}"])
    draft.write(path, new, removes=[known])
    return _placed(new, path, str(known.id))


def _append(draft: Draft, fact: Fact, said: Said) -> tuple[str, Fact]:
    """Put a fact at the end of its day's log, under the last heading if that is of the same breath."""
    path = log_path(said.at.date().isoformat())
    data = draft.read(path)
    lines = markdown.show(fact).split("\n")
    origin = None if said.origin == "agent" else said.origin
    heading = markdown.heading_line(said.at.strftime("%H:%M"), said.client, said.session, origin)
    if not data:
        lines = [f"# {said.at.date().isoformat()}", "", heading, "", *lines]
    elif not _same_breath(markdown.parse(data, path), said, origin):
        lines = [heading, "", *lines]
    new = markdown.append(data, lines)
    draft.write(path, new)
    return path, _placed(draft.read(path), path, str(fact.id))


def _same_breath(document: markdown.Document, said: Said, origin: Origin | None) -> bool:
    """Whether the file ends in facts under a heading of this client, session and origin, within the hour."""
    tail = document.records[-1] if document.records else None
    if not isinstance(tail, Fact) or any(line.strip() for line in document.lines[tail.place.end :]):
        return False
    last = tail.heading
    if last.time is None or (last.client, last.session, last.origin) != (said.client, said.session, origin):
        return False
    hour, minute = map(int, last.time.split(":"))
    began = said.at.replace(hour=hour, minute=minute, second=0, microsecond=0)
    return timedelta(0) <= said.at - began < SAME_BREATH


def _placed(data: bytes, path: str, block: str) -> Fact:
    return next(f for f in markdown.parse(data, path).of(Fact) if f.id == block)


__all__ = ["Equal", "Inserted", "Kind", "Said", "find", "insert", "log_path", "new_id"]
