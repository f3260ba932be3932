"""Flush: queued turns in; facts, core memory edits and one commit out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, tzinfo
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import IO, Any, TypeAlias
from zoneinfo import ZoneInfo

from ua_memory.clients.messages import messages_stream
from ua_memory.clients.transcripts import TranscriptReading, read
from ua_memory.clients.turns import Session, Turn
from ua_memory.config import Config
from ua_memory.discovery import LOGS
from ua_memory.errors import Busy, ChangedOnDisk, Malformed, TooLarge, Usage
from ua_memory.knowledge import core as knowledge_core
from ua_memory.knowledge import entities, tombstones
from ua_memory.knowledge import facts as knowledge_facts
from ua_memory.knowledge.core import BlockChange
from ua_memory.knowledge.facts import FindEqual, Provenance
from ua_memory.knowledge.sessions import (
    EXTRACTION,
    SessionFile,
    SessionFiles,
    SessionReading,
    older_than,
    turn_id,
)
from ua_memory.knowledge.statements import Progress
from ua_memory.llm.ledger import MODEL_TOKENS, Estimate, cached_requests, estimate_of
from ua_memory.llm.model import Endpoint, Message, Model, prompt
from ua_memory.llm.model import TokenUsage as Tokens
from ua_memory.markdown import document as markdown_document
from ua_memory.paths import project_of
from ua_memory.records import Fact, Origin, Quote, Was
from ua_memory.retain import ledger
from ua_memory.retain.extract import MOST_STATEMENTS, Extraction, Unkept, why_not_kept
from ua_memory.retain.queue import Jobs, QueueEntry, TurnQueue, queue_key
from ua_memory.retain.subagent import (
    Candidate,
    CoreEdit,
    MemoryView,
    RecalledLines,
    SubagentResult,
    format_turns,
    one_line,
    run_subagent,
)
from ua_memory.store.draft import Draft
from ua_memory.store.store import Store
from ua_memory.text import redaction, tokens, wording
from ua_memory.text.wording import counted

# -- reading a transcript ----------------------------------------------------------------------------------
# Whose it is, how full its context is, and which of its turns are new.


TOKENS_BETWEEN_FLUSHES = 20_000
"""After a flush, the next one is due after so many new tokens of context."""
UNDONE_NOTE = "a flush of this session was undone; --force reads again what it had read"
_COUNTED_WINDOWS = 4
"""Counting tokens stops at so many context windows: a flush is due far below that."""


@dataclass(frozen=True, slots=True)
class FlushDue:
    """Whether a flush is due: the context's `size` and the `threshold`, in tokens. `reported`: the client
    gave the size; else it was counted."""

    is_due: bool
    size: int
    threshold: int
    reported: bool = True

    def __str__(self) -> str:
        about = "" if self.reported else "about "
        return f"{about}{self.size:,} tokens, flushes at {self.threshold:,}"


def flush_due(size: int, last: int | None, threshold: int, *, reported: bool = True) -> FlushDue:
    """A flush is due at the threshold, then every 20,000 new tokens after the size at the `last` flush. A
    context that shrank was compacted; counting starts again."""
    at = threshold if last is None or last > size else max(threshold, last + TOKENS_BETWEEN_FLUSHES)
    return FlushDue(size >= at, size, at, reported)


Transcript: TypeAlias = IO[bytes] | Iterable[Message]
"""A stream in any client's format, or a program's own messages."""
_SHORTEST_NAMING_TURN = 12
"""Characters of a person's turn that tells a list of messages from others: many begin with a greeting."""


def read_transcript(
    store: Store, stream: Transcript, *, client: str | None, session: str | None, force: bool, modelled: bool
) -> tuple[Flush, Sequence[Turn]]:
    """Read a transcript from where the stream stands. Returns its session and state, and its new turns if a
    flush is due or forced. A forced flush also reads turns whose flush was undone and, with a model
    (`modelled`), turns of flushes that saved nothing. A list of messages is always due.

    `client` and `session` override what the transcript says of itself. Malformed for a file that is no
    transcript, Usage for a client name that no heading can hold, and for a stream that is not of bytes.
    """
    source, listed = _as_stream(stream)
    reading = read(source, client="messages" if listed else None)
    header = reading.session
    whose = replace(header, client=client or header.client, session=session or header.session)
    # A session without an id is named by its first turn, so that two of them are told apart.
    nameless = listed or not whose.session
    if not whose.session:
        whose = replace(whose, session=_name_by_turns(ledger.with_chained_ids(reading), listed))
    # Raises Usage for a client that no heading can hold.
    _ = Provenance(store.now(), whose.client, "agent", ledger.short_id(whose.session) or None).heading
    due = _measure_context(store, whose, reading)
    limit, window = store.config.truncation_threshold, store.config.context_window
    beyond = f"the threshold of {limit:,} tokens is beyond the context window, which bounds it: {window:,}"
    notes = (beyond,) if limit > window and limit != Config().truncation_threshold else ()
    result = Flush(due, whose, was_read=force or listed or due.is_due, notes=notes)
    if not result.was_read:
        return result, ()
    read_to, undone = ledger.read_ids(store, whose, with_facts=force and modelled)
    # Turns whose flush was undone are read again only if forced: else each flush would bring them back.
    undone_notes = [UNDONE_NOTE] if undone and not force else []
    read_to |= set() if force else undone
    if nameless:
        turns = ledger.unread_turns(ledger.with_chained_ids(reading), read_to)
    else:
        known = read_to if read_to or force else ledger.ids_of_other_sessions(store, whose)
        reading = reading.after(ledger.base_ids(known)) if known else reading
        turns = list(ledger.without_captured(reading, known, reading.reached))
    notes = (*notes, *undone_notes, *_reading_notes(reading))
    return replace(result, notes=notes, silent=not turns and not read_to, recalled=reading.recalled), turns


def _as_stream(transcript: Transcript) -> tuple[Any, bool]:
    """(a stream of bytes, whether the transcript is a list of messages). Usage for anything else."""
    listed = isinstance(transcript, Iterable) and not (
        hasattr(transcript, "read") or isinstance(transcript, str | bytes | Mapping)
    )
    source: Any = messages_stream([*transcript]) if listed else transcript
    if not isinstance(source.read(0) if hasattr(source, "read") else None, bytes):
        raise Usage(
            f"a transcript is a list of messages or a stream of bytes, not {type(transcript).__name__}",
            hint='pass [{"role": "user", "content": …}] or open(FILE, "rb"); a text goes to memory.retain',
        )
    return source, listed


def _name_by_turns(turns: Iterable[Turn], listed: bool) -> str:
    """The id of the first turn; in a list of messages, of the first in which a person says something."""
    first = ""
    for turn in turns:
        first = first or turn.id
        if not listed or (turn.role == "person" and len(turn.text) >= _SHORTEST_NAMING_TURN):
            return turn.id
    return first


def _measure_context(store: Store, session: Session, reading: TranscriptReading) -> FlushDue:
    config = store.config
    size = reading.context_size
    reported = size is not None
    if size is None:
        size = _count_tokens(reading.context(), _COUNTED_WINDOWS * config.context_window)
    threshold = min(config.truncation_threshold, config.context_window)
    return flush_due(size, ledger.size_at_last_flush(store, session), threshold, reported=reported)


def _count_tokens(pieces: Iterator[str], enough: int) -> int:
    total = 0
    for piece in pieces:
        total += tokens.count(piece)
        if total >= enough:
            break
    return total


def _reading_notes(reading: TranscriptReading) -> Iterator[str]:
    broken = reading.broken - reading.cut
    if broken:
        first = reading.problems[: min(broken, 3)]  # the half-written one is the last
        lines = ", ".join(str(problem.line) for problem in first) + (" …" if broken > len(first) else "")
        yield f"{counted(broken, 'line')} of the transcript cannot be read ({lines})"
    if reading.undecoded:
        what = f"{reading.undecoded} byte{' is' if reading.undecoded == 1 else 's are'} not UTF-8"
        yield f"{what}, replaced by \ufffd (Latin-1? iconv -f latin1 -t utf-8 FILE | ua-memory flush -)"
    if reading.cut:
        yield "the last line of the transcript is half written; the next flush reads it"


# -- turn filter -------------------------------------------------------------------------------------------
# Which turns of a conversation are queued, by the bank's settings. The readers in `transcripts` have already
# left out recalled memory, automatic messages and calls of our own tools.


def filter_turns(turns: Iterable[Turn], config: Config, question: str = "") -> Iterator[Turn]:
    """The turns that `retainContent` and `toolFilter` allow, without text that `strip` matches and secrets
    that an assistant asked for; empty ones are left out. `question` is what it said just before."""
    for turn in turns:
        before, question = question, turn.text if turn.role != "tool" else question
        if turn.role not in config.retain_content:
            continue
        if turn.role == "tool":
            name = turn.text.partition(" ")[0].rstrip(":")
            if not any(fnmatchcase(name, pattern) for pattern in config.tool_filter):
                yield turn
            continue
        text = redaction.redact_answer(before, turn.text) if turn.role == "person" else turn.text
        for pattern in config.strip:
            text = re.sub(pattern, "", text)
        if text is turn.text:
            yield turn
        elif text.strip():
            yield replace(turn, text=text.strip())


# -- scope tags --------------------------------------------------------------------------------------------
# Where a session was held (project, folder, group, …), as tags that `autoRecallTags` and `--tag` filter by.
# They hold for all facts below a heading, and are written there once (`knowledge.facts.Provenance`).


def scope_tags(session: Session, scopes: Iterable[str] = (), project: str = "") -> tuple[str, ...]:
    """The tags of all facts of a session. `scopes` are those of the setting; `project` is used where the
    session's folder is not known."""
    folder = Path(session.cwd) if session.cwd else None
    known = {
        "session": session.session, "parent": session.parent, "cwd": session.cwd,
        "group": session.group, "basedir": folder.name if folder else "",
        "project": project_of(folder) if folder else project,
    }  # fmt: skip
    return wording.context_tags(session.client, known, wording.AUTO, scopes)


# -- writing -----------------------------------------------------------------------------------------------
# Facts, core edits and the mark of how far was read, written as one revision.


_ORIGIN_OF_ROLE: Mapping[str, Origin] = {"person": "person", "assistant": "agent", "tool": "tool"}


@dataclass(frozen=True, slots=True)
class FlushedSession:
    """What a flush of one session saved. `by` is the model's name, '' if the speakers' own sentences were
    saved; `reworded` are facts that a second reading with a model reworded; `refused` is what a model
    proposed without support."""

    key: str
    client: str
    session: str
    turns: int
    by: str
    facts: tuple[Fact, ...] = ()
    seen_again: tuple[Fact, ...] = ()
    reworded: tuple[Fact, ...] = ()
    core: tuple[BlockChange, ...] = ()
    refused: tuple[str, ...] = ()
    revision: str | None = None
    notes: tuple[str, ...] = ()
    redacted: Mapping[str, int] = field(default_factory=dict)
    usage: Tokens = field(default_factory=Tokens)


class FlushWriter:
    """Writes one flush as one revision. `session_file` has the session's words. With `rereading` a session is
    read again with a model: facts that were extracted without one are reworded, and the marks stay. `publish`
    adds the session's words to the revision."""

    def __init__(
        self, store: Store, entry: QueueEntry, zone: tzinfo | None, equal: FindEqual | None,
        session_file: SessionFile | None = None, rereading: bool = False,
        publish: Callable[[Draft], None] | None = None,
    ) -> None:  # fmt: skip
        self.store, self.entry, self.zone, self.equal = store, entry, zone, equal
        self.session_file, self.rereading, self.publish = session_file, rereading, publish
        self.recalled = RecalledLines(entry.recalled)
        self.extracted: list[Fact] = []
        self.reworded: list[Fact] = []
        self.placed: list[tuple[Fact, str]] = []
        self.seen_again: list[Fact] = []
        self.core: list[BlockChange] = []
        self.notes: list[str] = []

    def write(self, proposed: SubagentResult, *, by: str, door: str) -> FlushedSession:
        """Write what was proposed: all of it or, if any error is raised, nothing."""
        session, turns = self.entry.session, self.entry.turns
        known = entities.entity_records(self.store)
        gone = tombstones.read(self.store)
        kept = [c for c in proposed.candidates if not (gone.has_text(c.text) or gone.quoted(c.quote))]
        if proposed.left_out:
            more = counted(proposed.left_out, "statement")
            self.notes.append(f"{more} more worth keeping left out: at most {MOST_STATEMENTS} a flush")
        if proposed.duplicates:
            self.notes.append(f"{counted(proposed.duplicates, 'near-duplicate')} left out")
        self.notes += tombstones.refused_note(len(proposed.candidates) - len(kept))
        with self.store.revision("flush", door=door, session=session.session) as draft:
            self.extracted = self._extracted_facts(draft) if self.rereading else []
            for candidate in sorted(kept, key=lambda c: (c.at is None, c.at and c.at.timestamp())):
                self._write_fact(draft, replace(candidate, entities=known.names(candidate.entities)))
            for edit in proposed.core_edits.values():
                if gone.has_line_of(edit.value):
                    self.notes.append(f"core block {edit.name} was left as it is: {tombstones.WHY}")
                else:
                    self._edit_core_block(draft, edit)
            if not self.rereading:
                self._write_marks(draft)
            if self.publish:
                self.publish(draft)
            # An empty commit carries the mark, so that what was read in vain is not read again.
            draft.even_if_empty = True
            every = (*(f for f, _ in self.placed), *self.seen_again, *self.reworded)
            draft.facts = [f"^{fact.id}" for fact in every]
            read = ", read again" if self.rereading else ""
            draft.subject = f"flush: {self._summary()} from {session.client}{read}"
        if unread := {turn.id for turn in proposed.unread}:
            fate = "they stay unread" if self.rereading else "the speakers' own sentences were kept of these"
            self.notes.append(
                f"{by} made no valid call for {len(unread)} of {len(turns)} turns; {fate} "
                "(another UA_MEMORY_MODEL would do better)"
            )
        committed = partial(knowledge_facts.find_committed, self.store)
        placed = committed([fact for fact, _ in self.placed])
        return FlushedSession(
            self.entry.key, session.client, session.session, len(turns), by, placed, tuple(self.seen_again),
            committed(self.reworded), tuple(self.core), tuple(proposed.refused),
            draft.result.revision, (*self.notes, *draft.result.notes), draft.result.redacted, proposed.usage,
        )  # fmt: skip

    def _write_marks(self, draft: Draft) -> None:
        """Record how far the session has been read."""
        last = ledger.format_mark(self.entry.session, self.entry.turns[-1].id)
        ledger.write_marks(draft, self.placed, last)
        size = self.entry.size
        context = {ledger.CONTEXT_TRAILER: [str(size)]} if size else {}
        draft.trailers |= {ledger.THROUGH_TRAILER: [last], **context}

    def _extracted_facts(self, draft: Draft) -> list[Fact]:
        """Facts of the session that an earlier flush without a model extracted."""
        days = {f"{LOGS}/{turn.at:%Y-%m-%d}" for turn in self.entry.turns if turn.at}
        # A day may have several files: `memory/2026-11-21-more.md`.
        paths = [one.path for one in self.store.files() if one.path[: len(LOGS) + 11] in days]
        whose = self.entry.session.client, ledger.short_id(self.entry.session.session)
        facts = (one for path in paths for one in markdown_document.parse(draft.read(path), path).of(Fact))
        own = (one for one in facts if (one.heading.client, one.heading.session) == whose)
        return [one for one in own if one.id and not one.retired and not one.was]

    def _merge_with_known(self, draft: Draft, candidate: Candidate, fact: Fact, at: datetime) -> bool:
        """Whether a statement is known in other words: a fact that the person repeats is recorded as seen
        again, and an extracted sentence that it was made from is reworded."""
        if row := self.recalled.restated_fact(candidate):
            seen = knowledge_facts.record_sighting(draft, *row, at)
            self.seen_again += [seen] if seen else []
            return seen is not None
        quote = one_line(candidate.quote)
        for old in self.extracted:
            if quote == one_line(old.quotes[0].text if old.quotes else old.text):
                unchanged = one_line(old.text) == candidate.text
                day = f"{self.store.now():%Y-%m-%d}"
                known = knowledge_facts.find_fact(draft.read(old.place.path), old.place.path, old.id) or old
                new = old if unchanged else knowledge_facts.reword(draft, known, fact, day)
                if new:
                    (self.seen_again if unchanged else self.reworded).append(new)
                    self.extracted.remove(old)
                    return True
        return False

    def _write_fact(self, draft: Draft, candidate: Candidate) -> None:
        session, session_file = self.entry.session, self.session_file
        at = candidate.at.astimezone(self.zone) if candidate.at else self.store.now()
        project = session_file.project if session_file else ""
        tags = scope_tags(session, self.store.config.observation_scopes, project)
        provenance = Provenance(at, session.client, "agent", ledger.short_id(session.session) or None, tags)
        try:
            stated = _as_fact(candidate, session, session_file)
            if self._merge_with_known(draft, candidate, stated, at):
                return
            fact, seen = knowledge_facts.add(draft, stated, provenance, self.equal)
        except (Usage, TooLarge) as error:
            self.notes.append(f"left out, since it cannot be written: {candidate.text[:80]} ({error.what})")
            return
        if seen:
            self.seen_again.append(fact)
        else:
            self.placed.append((fact, ledger.format_mark(session, candidate.turn)))

    def _edit_core_block(self, draft: Draft, edit: CoreEdit) -> None:
        """Make a core edit; one that cannot be made becomes a note, since the facts are worth keeping."""
        try:
            self.core.append(knowledge_core.put(self.store, draft, edit.name, edit.value, expect=edit.read))
        except (ChangedOnDisk, Malformed, TooLarge, Usage) as error:
            self.notes.append(f"core block {edit.name} was left as it is: {error.what}")

    def _summary(self) -> str:
        parts = [counted(len(self.placed), "fact")]
        parts += [f"{len(self.seen_again)} already known"] if self.seen_again else []
        parts += [f"{len(self.reworded)} reworded"] if self.reworded else []
        parts += [counted(len(self.core), "core block")] if self.core else []
        return ", ".join(parts)


def _as_fact(candidate: Candidate, session: Session, session_file: SessionFile | None) -> Fact:
    """A candidate as a fact. Where its text equals its quote, no quote is written but the speaker and the
    turn, as a link if the session's words are kept. In a group chat the origin is `web`: anybody may have
    said it."""
    entities, tags = candidate.entities, tuple(dict.fromkeys((*candidate.tags, *session.tags)))
    fact = Fact(candidate.text, kind=candidate.kind, when=candidate.when, entities=entities, tags=tags)
    if candidate.was and candidate.at:
        fact = replace(fact, was=(Was(candidate.was, candidate.at.date().isoformat()),))
    source = (session_file and session_file.link(candidate.turn)) or f"turn {ledger.short_id(candidate.turn)}"
    origin: Origin = "web" if session.group else _ORIGIN_OF_ROLE[candidate.who]
    if candidate.text.split() == candidate.quote.split():
        return replace(fact, origin=origin, source=source)
    # A person's words in a model's wording have the origin of the heading, which is the agent. What only a
    # tool or an agent said keeps that origin, since no person said it.
    stated_origin = None if origin == "person" else origin
    return replace(fact, quotes=(Quote(candidate.quote, source),), origin=stated_origin)


# -- flush -------------------------------------------------------------------------------------------------
# Turns are queued first, so that no later failure loses them. A model reads them in segments that fit its
# window; without a model the speakers' own sentences are kept. All is written as one revision whose
# `Through` trailer says how far the session has been read; then the turns leave the queue.


OVERLAP_TURNS = 4
"""Turns that two segments of a long transcript share, so that no statement loses its neighbours."""
PART_OF_WINDOW = 0.5
"""The part of a model's window that a segment may fill: its own token count may be higher, and it has to
answer."""
LONGEST_ANSWER = 8_000
"""Tokens of one answer of the sub-agent: some forty statements. Longer answers are of no use."""
_TOKENS_PER_TURN = 12
"""Of a turn's number, speaker and time."""

OnFlushed = Callable[["FlushedSession"], None]


@dataclass(frozen=True, slots=True)
class Flush:
    """Result of a flush. `due` is None where no transcript was given; `was_read` tells whether it was due or
    forced, and `turns` how many new ones it had. `done` has what was flushed, for each session; `preview`
    what a dry run would save; `silent`: the transcript has no turns and never had; `recalled` has the lines
    of recalled memory in it."""

    due: FlushDue | None = None
    session: Session | None = None
    turns: int = 0
    was_read: bool = False
    done: tuple[FlushedSession, ...] = ()
    preview: tuple[Candidate, ...] | None = None
    unkept: tuple[Unkept, ...] = ()
    """With `explain`: a person's other sentences."""
    redacted: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    silent: bool = False
    recalled: tuple[str, ...] = ()


class Flusher:
    """Flushes into one bank. `tell(done, total)` is called with the number of turns read."""

    def __init__(
        self, store: Store, view: MemoryView, lookup: Callable[[], FindEqual], *, door: str,
        model: Model | None = None, tell: Progress | None = None, for_model: bool | None = None,
    ) -> None:  # fmt: skip
        self.store, self.view, self.lookup = store, view, lookup
        self.door, self.model, self.tell = door, model, tell
        self.for_model = model is not None if for_model is None else for_model
        """Whether a model is to read what is queued."""
        self.redacted: Counter[str] = Counter()
        self._redact = partial(store.redacted, counts=self.redacted)
        self.queue = TurnQueue(store.bank.pending, self._redact)
        self.sessions = SessionFiles(store)
        self.zone: tzinfo | None = ZoneInfo(store.config.timezone) if store.config.timezone else None

    def queue_transcript(
        self, stream: Transcript, *, client: str | None = None, session: str | None = None,
        force: bool = False, queue: bool = True, tags: Sequence[str] = (),
    ) -> tuple[Flush, tuple[Turn, ...]]:  # fmt: skip
        """Read a transcript; if a flush is due, queue its new turns, unless `queue` is false."""
        tags = knowledge_facts.unique_tags(tags)
        result, found = read_transcript(
            self.store, stream, client=client, session=session, force=force, modelled=self.for_model
        )
        whose, due = result.session, result.due
        assert whose and due, "a transcript has both"
        queued = self.queue.queued_ids(whose)
        turns = tuple(self.without_copied_turns(whose, [*ledger.without_queued(found, queued)]))
        if queue and turns:
            self.queue_turns(replace(whose, tags=tags), turns, due.size, recalled=result.recalled)
        return replace(result, turns=len(turns), redacted=dict(self.redacted)), turns

    def without_copied_turns(self, session: Session, turns: Sequence[Turn]) -> Sequence[Turn]:
        """The turns without those that a forked session has copied from its parent."""
        if not session.parent:
            return turns
        wanted = list(filter_turns(turns, self.store.config))
        patterns = self.store.config.redact
        clean = [replace(turn, text=redaction.redact(turn.text, patterns).text) for turn in wanted]
        return wanted[self.sessions.copied(session, clean, self.store.config.sessions_agent) :]

    def queue_turns(
        self, session: Session, turns: Iterable[Turn], size: int | None, *, is_open: bool = False,
        recalled: Iterable[str] = (),
    ) -> QueueEntry | None:  # fmt: skip
        """Queue the turns that the settings let through, None if there are none; they are on the disk,
        without secrets, on return. With `is_open` no flush is due. `recalled` has the lines of recalled
        memory in the session."""
        queued = self.queue.find(queue_key(session))
        question = queued.turns[-1].text if queued and queued.turns else ""
        turns = list(filter_turns(turns, self.store.config, question))
        session = replace(session, title=(title := self._redact(session.title)))
        if not turns:
            if title:
                self._save_session(session, (), title)
            return None
        self.store.make_state()
        now = self.store.now()
        entry = self.queue.put(
            session, turns, at=now, size=size, for_model=self.for_model, is_open=is_open, recalled=recalled
        )
        self._save_session(session, entry.turns, title)
        return entry

    def _save_session(self, session: Session, turns: Sequence[Turn], title: str = "") -> SessionFile | None:
        """Write the turns and the client's title into the session's file; None if the settings keep none."""
        config = self.store.config
        if not config.sessions_keep or (session.group and not config.sessions_groups):
            return None
        return self.sessions.add(
            session, turns, now=self.store.now(), agent=config.sessions_agent, title=title
        )

    def preview(
        self, turns: Sequence[Turn], recalled: Iterable[str] = (), *, explain: bool = False
    ) -> tuple[tuple[Candidate, ...], tuple[Unkept, ...]]:
        """(what a flush of these turns without a model would save, with `explain` what it would not). Nothing
        is written or sent."""
        clean = [replace(t, text=self._redact(t.text)) for t in filter_turns(turns, self.store.config)]
        kept = tuple(self._extract(clean, RecalledLines(recalled)).candidates)
        return kept, tuple(why_not_kept(clean, kept)) if explain else ()

    def drain(
        self, first: Session | None = None, done: OnFlushed | None = None, *, every: bool = False
    ) -> list[FlushedSession]:
        """Flush the queue, each session as one revision, `first` before all others. Entries that are set
        aside are skipped, and so are open sessions, except `first` or with `every`.

        `done` is called with each session once it is committed. Raises what the model or the store raises;
        that session and those after it then stay queued.
        """
        urgent = [key for each in self.queue.all() if (key := each.key) and first and each.session == first]
        flushed = []
        self.queue.remove_stale_claims()
        self.sessions.sweep()
        if days := self.store.config.sessions_days:
            self.sessions.expire(older_than(self.store.now(), days))
        now = self.store.now()
        others = [e.key for e in self.queue.all() if not e.set_aside and (every or not e.still_open(now))]
        for key in dict.fromkeys((*urgent, *others)):
            is_asked_for = key in urgent or not first
            try:
                one = self.flush_entry(key, self.store.config.lock_seconds if is_asked_for else 0)
            except Busy:
                if is_asked_for:
                    raise
                continue  # another process is flushing it
            if one is not None:
                flushed.append(one)
                if done:
                    done(one)
        return flushed

    def flush_entry(self, key: str, patience: float, *, unasked: bool = False) -> FlushedSession | None:
        """Flush the entry under a key. None if a run that was killed late has already saved all of it, or if
        it is set aside and this run is `unasked`."""
        with self.queue.attempt(key, patience, self.store.now, unasked=unasked) as entry:
            if entry is None:
                return None
            read_to, _ = ledger.read_ids(self.store, entry.session, with_facts=self.model is not None)
            unread = ledger.unread_turns(entry.turns, read_to)
            # By the current settings, which may have changed since they were queued.
            fresh = [*filter_turns(unread, self.store.config)]
            if self.store.config.redact:
                fresh = [replace(turn, text=self._redact(turn.text)) for turn in fresh]
            session_file = self._save_session(entry.session, fresh)
            flushed = self._flush_turns(replace(entry, turns=tuple(fresh)), session_file) if fresh else None
            self.queue.remove_turns(key, {turn.id for turn in entry.turns})
            return flushed

    def _flush_turns(self, entry: QueueEntry, session_file: SessionFile | None) -> FlushedSession:
        why_queued = f"nothing was saved, and {counted(len(entry.turns), 'turn waits', 'turns wait')}"
        by = self.model.name if self.model else ""
        failures = self.queue.recording_failure(entry.key, self.store.now, why_queued, for_model=bool(by))
        with Jobs(self.store).record_run("flush") as note, failures:
            proposed = self._propose(entry)
            reading = self._reading(by or EXTRACTION, ledger.short_id(entry.turns[-1].id), proposed)
            done = self._write(entry, session_file, proposed, reading)
            note.result = f"{counted(len(done.facts), 'fact')} from {done.client}"
            return done

    def _write(
        self, entry: QueueEntry, session_file: SessionFile | None, proposed: SubagentResult,
        reading: SessionReading | None, rereading: bool = False,
    ) -> FlushedSession:  # fmt: skip
        """Write a result as one revision, with the session's words if they are kept in the bank."""
        files, by = self.sessions, self.model.name if self.model else ""
        shared = session_file and (self.store.config.sessions_place == "bank" or files.in_bank(session_file))
        publish = None
        if session_file and reading and shared:
            publish = partial(files.publish, found=reading.noted(session_file))
        writer = FlushWriter(self.store, entry, self.zone, self.lookup(), session_file, rereading, publish)
        done = writer.write(proposed, by=by, door=self.door)
        if shared:
            files.sweep()
        elif session_file and reading:
            files.mark(entry.session, reading)
        return done

    def _propose(self, entry: QueueEntry, *, rereading: bool = False) -> SubagentResult:
        turns, recalled = entry.turns, RecalledLines(entry.recalled)
        if self.model is None:
            return self._extract(turns, recalled)
        whole, turns_done, window = SubagentResult(), 0, self.store.config.context_window
        answer = min(LONGEST_ANSWER, window // 4)
        for segment in segments(turns, int(window * PART_OF_WINDOW)):
            run_subagent(
                self.model, segment, self.view, self.zone, result=whole, max_tokens=answer,
                on_progress=partial(self._report, turns_done, len(turns)), recalled=recalled,
                core=not entry.session.group,
            )  # fmt: skip
            turns_done = min(max(turns_done + len(segment) - OVERLAP_TURNS, 0), len(turns))
        # Turns that the model made no valid call for are extracted without it.
        unread = {turn.id for turn in whole.unread if not rereading}
        own = self._extract([turn for turn in turns if turn.id in unread], recalled)
        whole.candidates += own.candidates
        whole.left_out, whole.duplicates = own.left_out, own.duplicates
        return whole

    def _extract(self, turns: Iterable[Turn], recalled: RecalledLines) -> SubagentResult:
        extraction = Extraction(self.zone or self.store.now().tzinfo)
        for turn in turns:
            extraction.add(turn)
        kept = [one for one in extraction.best() if not recalled.is_repetition(one)]
        return SubagentResult(candidates=kept, left_out=extraction.left_out, duplicates=extraction.duplicates)

    # -- reading again with a model -----------------------------------------------------------

    def unread_sessions(
        self, since: str = "", *, force: bool = False
    ) -> Iterator[tuple[SessionFile, QueueEntry]]:
        """The sessions since an ISO day that no model has read, newest first, each with its turns, without
        those that are queued. Sessions whose flush was undone only with `force`."""
        zone, config = self.zone or self.store.now().tzinfo, self.store.config
        for one in self.sessions.all():
            whose = Session(one.client, one.session, parent=one.parent, group=one.group)
            if one.read_by not in ("", EXTRACTION) or one.day < since:
                continue
            if not force and ledger.read_ids(self.store, whose)[1]:
                continue
            ids = set(map(turn_id, self.queue.queued_ids(whose)))
            one = replace(one, turns=tuple(turn for turn in one.turns if turn.id not in ids))
            if turns := tuple(filter_turns(one.said(zone), config)):
                yield one, QueueEntry(queue_key(whose), whose, turns)

    def reread(self, session_file: SessionFile, found: QueueEntry, patience: float) -> FlushedSession:
        """Have the model read a session again, as one revision. Raises as `drain`; then nothing of this
        session has changed."""
        assert self.model is not None, "only a model reads again"
        self.store.make_state()
        with self.queue.claim(found.key, patience):
            proposed = self._propose(found, rereading=True)
            name, through = self.model.name, session_file.through
            reading = None if proposed.unread else self._reading(name, through, proposed)
            return self._write(found, session_file, proposed, reading, rereading=True)

    def _reading(self, read_by: str, through: str, proposed: SubagentResult) -> SessionReading:
        return SessionReading(read_by, through, self._redact(proposed.title), self._redact(proposed.outcome))

    def _report(self, turns_done: int, total: int, reached: int) -> None:
        if self.tell:
            self.tell(min(turns_done + reached, total), total)


def segments(turns: Sequence[Turn], budget: int) -> Iterator[Sequence[Turn]]:
    """The turns in segments of at most `budget` tokens, each repeating the last turns of the one before.

    A turn that is too long by itself is split into parts with the same id.
    """
    pieces = (piece for turn in turns for piece in _split_turn(turn, budget))
    sized = [(piece, tokens.count(piece.text) + _TOKENS_PER_TURN) for piece in pieces]
    start, used = 0, 0
    for n, (_, size) in enumerate(sized):
        if used + size > budget and n > start:
            yield [turn for turn, _ in sized[start:n]]
            back, used = n, 0
            while (
                back > max(start + 1, n - OVERLAP_TURNS) and sized[back - 1][1] <= budget // 2 - size - used
            ):
                back -= 1
                used += sized[back][1]
            start = back
        used += size
    if start < len(sized):
        yield [turn for turn, _ in sized[start:]]


def _split_turn(turn: Turn, budget: int) -> Iterator[Turn]:
    text, room = turn.text, max(budget - _TOKENS_PER_TURN, 1)
    if len(text) <= room:  # no token is shorter than a character
        yield turn
        return
    while text:
        head = tokens.fit(text, room) or text[:1]
        yield replace(turn, text=head)
        text = text[len(head) :]


# -- estimate ----------------------------------------------------------------------------------------------


_TOOL_TOKENS = 1_000
"""Tokens of the tools' descriptions, and of what the API adds for them."""
_USUAL_REQUESTS = 6
"""Requests that a flush usually takes; all but the first read the transcript from the prompt cache."""
_ANSWER_TOKENS = 500
"""Tokens of an answer with a few calls, thought included."""


def estimate(turns: Sequence[Turn], model: Endpoint | Model, window: int) -> Estimate:
    """The tokens and cost of a flush of these turns by a model, rounded up."""
    total, requests = 0, list[Tokens]()
    for segment in segments(turns, int(window * PART_OF_WINDOW)):
        size = tokens.count(format_turns(segment, None)) + tokens.count(prompt("flush")) + _TOOL_TOKENS
        size = int(size * MODEL_TOKENS)
        total += size
        requests += cached_requests(size, _USUAL_REQUESTS, _ANSWER_TOKENS)
    return estimate_of(model, total, requests)
