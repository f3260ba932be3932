"""Archival memory: facts into the daily logs and out of them, in domain words."""

from __future__ import annotations

import contextlib
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

from ua_memory.discovery import LOGS
from ua_memory.errors import Malformed, NotFound, TooLarge, Usage
from ua_memory.knowledge.statements import find, new_id, read_files
from ua_memory.markdown import blocks, fields, printer
from ua_memory.markdown import document as markdown_document
from ua_memory.markdown import lines as markdown_lines
from ua_memory.markdown.lines import readable
from ua_memory.records import KINDS, ORIGINS, TEXT_KEYS, Fact, Heading, Origin, Place, Quote, Was
from ua_memory.store.draft import Draft, Result
from ua_memory.store.store import Store
from ua_memory.text import redaction, wording

MAX_TEXT = 64 * 1024
"""Characters of one fact, all its parts together. A longer text is a document: `ingest` it."""
HEADING_SPAN = timedelta(hours=1)
"""Facts of one client and session said within this time share a heading, if they have the same tags."""
FindEqual = Callable[[str], Iterable[str]]
"""The files in which a fact with exactly this text may stand, as the index knows them; it may miss one."""


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a fact came from: who said it, through which client and session, and when (aware, in the bank's
    zone).

    `tags` are written once, below the heading (`text.wording.context_tags`)."""

    at: datetime
    client: str
    origin: Origin = "agent"
    session: str | None = None
    tags: tuple[str, ...] = ()

    @property
    def heading(self) -> str:
        """The heading for the fact. Usage for an unknown origin, and for a client or session that would be
        parsed differently."""
        require_origin(self.origin)
        named = None if self.origin == "agent" else self.origin
        line = blocks.heading_line(f"{self.at:%H:%M}", self.client, self.session, named)
        read = heading_of(line)
        if not read.client or read.origin != named or bool(read.session) != bool(self.session):
            raise Usage(f"{self.client!r} cannot name a client, or {self.session!r} a session")
        return line


@dataclass(frozen=True, slots=True)
class InsertResult:
    """The result of an insert: the fact as written, and whether it was a `sighting` of a known fact or the
    request was `repeated`. If the fact of a repeated request is gone, only its id is left."""

    fact: Fact
    result: Result
    sighting: bool = False
    repeated: bool = False

    @property
    def id(self) -> str:
        """The fact's id."""
        return str(self.fact.id)


def insert(
    store: Store, fact: Fact, said: Provenance, *, door: str, request: str | None = None,
    equal: FindEqual | None = None,
) -> InsertResult:  # fmt: skip
    """Write one fact, verbatim, into the log of the day it was said; durable and committed on return.

    A request id that was answered before changes nothing. A fact of ours that says all of it already is
    noted as seen again; beside a person's line it is a fact of its own. Usage, TooLarge.
    """
    with store.revision("insert", door=door, request=request, session=said.session) as draft:
        if draft.already_done is None:
            draft.by_person = said.origin == "person"
            draft.even_if_empty = request is not None
            placed, sighting = add(draft, fact, said, equal)
            draft.facts = [f"^{placed.id}"]
    if draft.already_done is not None:
        return _repeated_insert(store, draft)
    return InsertResult(placed, draft.result, sighting)


def insert_many(
    store: Store, facts: Iterable[Fact], said: Provenance, *, door: str, equal: FindEqual
) -> list[InsertResult]:
    """The same for many facts, in one revision and one write of the log. What is known already is not written
    again, nor noted as seen again, so that it may be repeated. Usage, TooLarge."""
    with store.revision("insert", door=door, session=said.session) as draft:
        draft.by_person = said.origin == "person"
        given = [_redact_fact(_check_fact(fact), draft) for fact in facts]
        there: dict[str, list[Fact]] = {}
        for path in dict.fromkeys(path for fact in given for path in equal(fact.text)):
            for one in markdown_document.parse(draft.read(path), path).of(Fact):
                there.setdefault(_bare(one.text), []).append(one)
        pairs = ((fact, one) for fact in given for one in there.get(_bare(fact.text), ()))
        known = {fact: one for fact, one in pairs if _says_all(draft, one, fact, said)}
        new = list(dict.fromkeys(fact for fact in given if fact not in known))
        placed = dict(zip(new, _place(draft, new, said) if new else (), strict=True))
        draft.facts = [f"^{one.id}" for one in placed.values()]
    return [InsertResult(known.get(fact) or placed[fact], draft.result, fact in known) for fact in given]


def add(draft: Draft, fact: Fact, said: Provenance, equal: FindEqual | None = None) -> tuple[Fact, bool]:
    """Insert a fact in an open revision: (the fact as written, whether it was known). Usage, TooLarge."""
    fact = _redact_fact(_check_fact(fact), draft)
    for known in _equal_facts(draft, fact, said, equal):
        seen = _add_sighting(draft, known, f"{said.at:%Y-%m-%dT%H:%M}")
        if seen:
            draft.subject = f"insert: seen again in {seen.place.path}"
            return seen, True
    return _place(draft, [fact], said)[0], False


def _place(draft: Draft, facts: Sequence[Fact], said: Provenance) -> list[Fact]:
    """Append facts to the log of the day they were said; the facts as written."""
    day, heading = said.at.date().isoformat(), said.heading
    fresh = [replace(fact, id=new_id(), when=None if fact.when == day else fact.when) for fact in facts]
    # A log that cannot take it (a code fence is still open, as while somebody types) is left alone.
    for path in (log_path(day), log_path(f"{day}-more"), log_path(f"{day}-{said.at:%H%M%S}")):
        placed = _append_to_log(draft, path, fresh, said, heading)
        if placed:
            draft.subject = f"insert: {wording.counted(len(facts), 'fact')} into {path}"
            return placed
    raise Malformed("the log of this day cannot be appended to", where=log_path(day), hint="ua-memory verify")


def record_sighting(draft: Draft, path: str, block: str, at: datetime) -> Fact | None:
    """Add a sighting to a fact of ours. None if there is no such fact, it is retired, or a person wrote the
    line."""
    known = find_fact(draft.read(path), path, block) if path.startswith(f"{LOGS}/") else None
    if known is None or known.retired or not known.heading.client or _is_hand_written(draft, known):
        return None
    return _add_sighting(draft, known, f"{at:%Y-%m-%dT%H:%M}")


def reword(draft: Draft, known: Fact, fact: Fact, until: str) -> Fact | None:
    """Replace the text of a fact of ours, in its place and with its id; the former text is kept as `was:`
    with the day until which it held. None if a person edited it, or the new text cannot be written there."""
    new = _redact_fact(_check_fact(fact), draft)
    wanted = replace(
        new, id=known.id, seen=known.seen, was=(Was(known.text, until), *known.was),
        entities=tuple(dict.fromkeys((*known.entities, *new.entities))),
        tags=tuple(dict.fromkeys((*known.tags, *new.tags))),
    )  # fmt: skip
    path = known.place.path
    data = draft.read(path)
    if _is_hand_written(draft, known, wholly=True):
        return None
    lines = markdown_lines.replace_lines(data, known.place, fact_lines(wanted, draft))
    return replace_fact(draft, known, wanted, [lines])


def correct(store: Store, fact: Fact, text: str, *, door: str) -> tuple[Fact, Result]:
    """Correct a fact of ours in one commit. It keeps its id, and its former text as `was:`, but not its
    quotes, which prove the former text. An equal text changes nothing. Usage if a person wrote the line, or
    it is retired."""
    if fact.retired:
        raise Usage("this fact is retired", where=f"^{fact.id}", hint="insert a new fact")
    if " ".join(text.split()) == fact.text:
        return fact, Result(None)
    with store.revision("correct", door=door) as draft:
        day = f"{store.now().astimezone(store.config.zone):%Y-%m-%d}"
        after = reword(draft, fact, replace(fact, text=text, quotes=()), day)
        if after is None:
            hint = f"save the correct fact with archival_memory_insert, then retire ^{fact.id} with `by`"
            raise Usage("a person wrote this line", where=fact.place.citation, hint=hint)
        draft.subject = f"correct: ^{after.id} in {after.place.path}"
        draft.facts = [f"^{after.id}"]
    return after, draft.result


def retire(draft: Draft, fact: Fact, says: str) -> Fact:
    """Mark a fact as retired in an open revision. It stays in its file, and so does a person's wording. A
    retired one is not changed. NotFound, Usage."""
    says = draft.redact(" ".join(says.split()))
    return _write_key(draft, fact, "retired", lambda old: old if old.retired else replace(old, retired=says))


def vouch(draft: Draft, fact: Fact) -> Fact:
    """Record in an open revision that a person confirms a statement: it counts as theirs, and keeps who said
    it. A person's own is not changed. NotFound, Usage."""

    def vouched(old: Fact) -> Fact:
        source = old.source or f"vouched for, said by {old.said_by}"
        return old if old.said_by == "person" else replace(old, origin="person", source=source)

    return _write_key(draft, fact, "origin", vouched)


def _write_key(draft: Draft, fact: Fact, key: str, change: Callable[[Fact], Fact]) -> Fact:
    """Write a key below a fact if `change` alters the fact. A person's lines stay as they are."""
    path = fact.place.path
    data = draft.read(path)
    old = find_fact(data, path, fact.id)
    if old is None:
        raise NotFound("no such fact", where=f"^{fact.id}", hint="ua-memory search")
    if (wanted := change(old)) == old:
        return old
    rows = markdown_document.parse(data, path).lines[old.place.line - 1 : old.place.end]
    indent = re.match(r"\s*", rows[0])[0]  # type: ignore[index]
    by_hand = [row for row in rows if not re.match(rf"\s+[-*+]\s+{key}:", row)]
    more = fields.write_origin(wanted.origin, wanted.source) if key == "origin" else wanted.retired
    by_hand.append(f"{indent}  - {key}: {more}")
    new = by_hand if _is_hand_written(draft, old, wholly=True) else fact_lines(wanted, draft)
    draft.write(path, markdown_lines.replace_lines(data, old.place, new), removes=[old])
    after = find_fact(draft.read(path), path, fact.id)
    if after is None or getattr(after, key) != getattr(wanted, key):
        raise Usage(f"this line can have no `{key}:`", where=old.place.citation, hint="edit it by hand")
    return after


def prepare_fact(draft: Draft, fact: Fact) -> tuple[Fact, list[str]]:
    """A checked and redacted fact with an id, and its lines. Usage, TooLarge."""
    fresh = _redact_fact(_check_fact(fact), draft)
    fresh = replace(fresh, id=fresh.id or new_id())
    return fresh, fact_lines(fresh, draft)


def log_path(day: str) -> str:
    return f"{LOGS}/{day}.md"


def heading_of(line: str) -> Heading:
    data = f"{line}\n\n- probe\n".encode("utf-8", "replace")
    probe = markdown_document.parse(data, log_path("probe")).of(Fact)
    return probe[0].heading if probe else Heading()


def require_origin(origin: str) -> None:
    """Usage for an unknown origin."""
    if origin not in ORIGINS:
        raise Usage(f"unknown origin {origin!r}", hint=f"use {', '.join(ORIGINS)}")


def read_when(store: Store, when: str | date | None) -> str | None:
    """The time that a fact is about in ISO, in the bank's zone; what is no time is left for `insert` to
    refuse. Usage for a span that ends before it begins."""
    if when is None:
        return None
    if isinstance(when, date):
        when = when.isoformat(timespec="minutes") if isinstance(when, datetime) else when.isoformat()
    if fields.is_time(when):
        first, *last = points = [fields.local_time(one, store.config.zone) for one in when.split("/")]
        if last and last[0].replace(" ", "T") < first.replace(" ", "T")[: len(last[0])]:
            raise Usage("the span ends before it begins", where=when, hint=f"use {last[0]}/{first}")
        return "/".join(points)
    from ua_memory.text import dates

    with contextlib.suppress(ValueError, OverflowError):
        return dates.parse_when(when, store.now())
    return when


def _check_fact(fact: Fact) -> Fact:
    """The fact without lone surrogates and with unique tags. Usage, TooLarge."""
    if not fact.text.strip():
        raise Usage("no text given")
    words = (getattr(fact, key) or "" for key in ("text", *TEXT_KEYS))
    size = sum(map(len, (*words, *fact.entities, *fact.tags, *(quote.text for quote in fact.quotes))))
    if size > MAX_TEXT:
        hint = "split it, or retain it as a document"
        raise TooLarge(f"{size} characters; a fact has at most {MAX_TEXT}", hint=hint)
    if fact.kind not in KINDS or fact.kind in ("observation", "opinion", "pattern", "risk"):
        raise Usage(f"{fact.kind!r} is not a kind of fact", hint="use world, experience or preference")
    if fact.when is not None and not fields.is_time(fact.when):
        hint = "use 2026-11-21, 2026-11-21T14:32, 2026-11, or words: tomorrow, last week, 3 May, ieri"
        raise Usage(f"{fact.when!r} is not a valid date", hint=hint)
    tags = unique_tags(fact.tags)
    if any(not name.strip() for name in fact.entities):
        raise Usage("an entity needs a name")
    return replace(fact, text=readable(fact.text), tags=tags)


def unique_tags(given: Iterable[str]) -> tuple[str, ...]:
    """Tags without `#` and lone surrogates, each once in any case. Usage."""
    tags: dict[str, str] = {}
    for tag in (readable(tag.removeprefix("#")) for tag in given):
        tags.setdefault(tag.casefold(), tag)
        if not tag.strip() or tag != tag.strip() or any(c in tag for c in "\n\r\0"):
            raise Usage(f"{tag!r} is not a valid tag")
    return tuple(tags.values())


def _redact_fact(fact: Fact, draft: Draft) -> Fact:
    def clean(text: str) -> str:
        return draft.redact(readable(text))

    single: dict[str, Any] = {
        key: clean(said) for key in ("text", *TEXT_KEYS, "source") if (said := getattr(fact, key))
    }
    quotes = tuple(Quote(clean(q.text), q.source and clean(q.source)) for q in fact.quotes)
    entities, tags = tuple(map(clean, fact.entities)), tuple(dict.fromkeys(map(clean, fact.tags)))
    return replace(fact, **single, quotes=quotes, entities=entities, tags=tags)


def _repeated_insert(store: Store, draft: Draft) -> InsertResult:
    done, result = draft.already_done, draft.result
    assert done is not None
    if done.trailer("Memory-Op") != "insert":
        raise Usage("this request id was already used for something else", where=done.subject)
    name = done.trailer("Facts")
    for paths in (done.paths, None):  # where it was written, else wherever it was moved to
        with contextlib.suppress(NotFound):
            found = find(store, name, paths)
            if isinstance(found, Fact):
                return InsertResult(found, result, repeated=True)
    return InsertResult(Fact("", id=name.removeprefix("^")), result, repeated=True)


FULL_STOPS = ("", ".", "。")


def _bare(text: str) -> str:
    """A text in half-width letters and digits where there are such, without the final full stop."""
    wide = (
        c if unicodedata.east_asian_width(c) not in "FH" else unicodedata.normalize("NFKC", c) for c in text
    )
    return unicodedata.normalize("NFC", "".join(wide)).strip().rstrip("".join(FULL_STOPS))


def spellings(text: str) -> set[str]:
    """The texts that `insert` takes for the same and that can be looked up: by width and full stop."""
    return {
        text,
        *(f"{one}{end}" for one in (text.rstrip("".join(FULL_STOPS)), _bare(text)) for end in FULL_STOPS),
    }


def _equal_facts(draft: Draft, fact: Fact, said: Provenance, equal: FindEqual | None) -> Iterator[Fact]:
    """Our facts that say all of it, by the files as they are now."""
    for path in dict.fromkeys(equal(fact.text) if equal else ()):
        for there in markdown_document.parse(draft.read(path), path).of(Fact):
            if _bare(there.text) == _bare(fact.text) and _says_all(draft, there, fact, said):
                yield there


def _says_all(draft: Draft, there: Fact, fact: Fact, said: Provenance) -> bool:
    """Whether one of our facts with this text is not retired, and has all that `fact` says and its origin."""
    # A flush writes a person's words down as theirs; what they gave us themselves stays apart.
    came = there.heading.client and (there.heading.origin or "agent") == said.origin
    theirs = there.said_by == (fact.origin or said.origin)
    here = wording.group_of(there.heading.tags) == wording.group_of(said.tags)
    says = there.id and not there.retired and _is_covered_by(there, fact)
    return bool(came and theirs and here and says) and not _is_typed_by_person(draft, there)


def _is_typed_by_person(draft: Draft, there: Fact) -> bool:
    """Whether a person typed this fact below our heading; its id may be of a machine."""
    return there.said_by == "person" and _is_hand_written(draft, there)


def _is_hand_written(draft: Draft, there: Fact, *, wholly: bool = False) -> bool:
    """Whether a person typed this fact's first line, or, with `wholly`, any of its lines."""
    path = there.place.path
    file = draft.touched[path]
    start = find_fact(file.start or b"", path, there.id)
    if start is None:
        return False  # this revision itself brings it
    was = find_fact(file.in_head or b"", path, there.id)
    if was is None or (wholly and was != start):
        return True
    rows = range(was.place.line, was.place.end + 1 if wholly else was.place.line + 1)
    return any(draft.typed(path, file.in_head or b"", row) for row in rows)


_COMPARED_FIELDS = frozenset(
    "text id kind when entities tags quotes seen was origin source retired flag place heading".split()  # noqa: SIM905
)
"""Attributes of a fact that have no value of their own to lose, or are compared by themselves."""


def _is_covered_by(there: Fact, fact: Fact) -> bool:
    """Whether `there` has everything that `fact` says, so that a sighting of it is enough."""
    if there.kind != fact.kind or {*map(str.casefold, there.tags)} != {*map(str.casefold, fact.tags)}:
        return False
    if fact.when and fact.when != (there.when or markdown_lines.day_of(there.place.path)):
        return False
    new = {quote.text for quote in fact.quotes} - {quote.text for quote in there.quotes}
    single = (key for key in Fact.__dataclass_fields__ if key not in _COMPARED_FIELDS)
    same = all(getattr(fact, key) in (None, getattr(there, key)) for key in single)
    return same and not new and set(fact.entities) <= set(there.entities)


def _add_sighting(draft: Draft, known: Fact, stamp: str) -> Fact | None:
    """Add a sighting to the fact's `seen:` line; its other lines stay unchanged."""
    if stamp in known.seen:
        return known
    path, wanted = known.place.path, replace(known, seen=(*known.seen, stamp))
    data = draft.read(path)
    lines = markdown_document.parse(data, path).lines[known.place.line - 1 : known.place.end]
    rows = [n for n, line in enumerate(lines) if re.match(r"\s+[-*+]\s+seen:", line)]
    tries = [
        markdown_lines.replace_lines(data, Place(path, row, row), [f"{lines[n].rstrip()}, {stamp}"])
        for n in reversed(rows)
        for row in [known.place.line + n]
    ]
    tries.append(markdown_lines.insert_after(data, known.place.end, [f"  - seen: {stamp}"]))
    return replace_fact(draft, known, wanted, tries)


def replace_fact(draft: Draft, known: Fact, wanted: Fact, tries: Iterable[bytes]) -> Fact | None:
    """Write the first of these versions of a file that has the fact as it is wanted. None if none has."""
    path = known.place.path
    for data in tries:
        if find_fact(data, path, known.id) == wanted:
            draft.write(path, data, removes=[known])
            return find_fact(draft.read(path), path, known.id)
    return None


def _append_to_log(
    draft: Draft, path: str, facts: Sequence[Fact], said: Provenance, heading: str
) -> list[Fact] | None:
    """Append facts to a log, under the last heading if that has the same client, session, tags and hour."""
    data = draft.read(path)
    document = markdown_document.parse(data, path)
    if document.unclosed:
        return None
    lines = [line for fact in facts for line in fact_lines(fact, draft)]
    mark = _tag_line(said.tags, draft)
    if not data:
        lines = [f"# {said.at.date().isoformat()}", "", heading, *mark, "", *lines]
    elif not _shares_heading(document, said.at, heading_of("\n".join([heading, *mark]))):
        lines = [heading, *mark, "", *lines]
    new = markdown_document.append(data, lines, closed=True)
    found = markdown_document.parse(new, path).of(Fact)[-len(facts) :]
    if [*found] != [*facts] or found[0].heading.client != heading_of(heading).client:
        return None
    draft.write(path, new)
    return [*markdown_document.parse(draft.read(path), path).of(Fact)[-len(facts) :]]


def find_committed(store: Store, facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """The facts at their places after the revision, since lines may have been added above them."""
    files = read_files(store, list(dict.fromkeys(fact.place.path for fact in facts)))
    parsed = (markdown_document.parse(data, path) for path, data in files)
    there = {(one.place.path, one.id): one for document in parsed for one in document.of(Fact)}
    return tuple(there.get((fact.place.path, fact.id), fact) for fact in facts)


def fact_lines(fact: Fact, draft: Draft) -> list[str]:
    """The fact's lines, such that redacting the text before the id does not remove the id."""
    shown = printer.show(fact)
    if f"^{fact.id}" not in redaction.redact(shown, draft.patterns).text:
        # "the password: ^k7m2q9x4tb" would be taken for a secret, and the id with it.
        shown = f"{printer.show(replace(fact, id=None))}\n  ^{fact.id}"
    return shown.split("\n")


def _tag_line(tags: tuple[str, ...], draft: Draft) -> list[str]:
    """The line of tags below a heading; none if a path in it looks like a secret."""
    line = blocks.tags_line(tags)
    return [line] if tags and redaction.redact(line, draft.patterns).text == line else []


def _shares_heading(document: markdown_document.Document, at: datetime, new: Heading) -> bool:
    """Whether the file ends in facts under a heading of this client, session, origin and tags, within the
    last hour."""
    tail = document.records[-1] if document.records else None
    if not isinstance(tail, Fact) or any(line.strip() for line in document.lines[tail.place.end :]):
        return False
    last = tail.heading
    if not last.time or (last.client, last.session, last.origin) != (new.client, new.session, new.origin):
        return False
    if set(last.tags) != set(new.tags):
        return False
    if not last.texts[-1].startswith(f"{last.time} "):  # a person's own heading further down
        return False
    hour, minute = map(int, last.time.split(":"))
    began = at.replace(hour=hour, minute=minute, second=0, microsecond=0)
    # In UTC: in the night the clocks change, the hands lie.
    return timedelta(0) <= at.astimezone(UTC) - began.astimezone(UTC) < HEADING_SPAN


def find_fact(data: bytes, path: str, block: str | None) -> Fact | None:
    """The fact with this id in a file's bytes, None where there is none."""
    return next((f for f in markdown_document.parse(data, path).of(Fact) if f.id == block), None)
