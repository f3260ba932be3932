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
from typing import IO
from zoneinfo import ZoneInfo

from ua_memory.config import Config
from ua_memory.discovery import LOGS
from ua_memory.errors import Busy, ChangedOnDisk, Malformed, TooLarge, Usage
from ua_memory.knowledge import core as knowledge_core
from ua_memory.knowledge import entities, tombstones
from ua_memory.knowledge import facts as knowledge_facts
from ua_memory.knowledge.core import BlockChange
from ua_memory.knowledge.facts import Equal, Provenance
from ua_memory.knowledge.sessions import (
    EXTRACTION,
    SessionFile,
    SessionFiles,
    SessionReading,
    older_than,
    turn_id,
)
from ua_memory.llm.ledger import THEIRS, Estimate, asked_on, priced
from ua_memory.llm.model import Endpoint, Model, prompt
from ua_memory.llm.model import TokenUsage as Tokens
from ua_memory.markdown import document as markdown_document
from ua_memory.paths import project_of
from ua_memory.records import Fact, Origin, Quote, Was
from ua_memory.retain import ledger
from ua_memory.retain.extract import MOST, Extraction
from ua_memory.retain.queue import Jobs, QueueEntry, TurnQueue, key_of
from ua_memory.retain.subagent import (
    Candidate,
    CoreEdit,
    MemoryView,
    RecalledLines,
    SubagentResult,
    one_line,
    run_subagent,
    shown,
)
from ua_memory.store.draft import Draft
from ua_memory.store.store import Store
from ua_memory.text import redaction, tokens, wording
from ua_memory.text.wording import counted
from ua_memory.transcripts.reader import TranscriptReading, read
from ua_memory.transcripts.turns import Session, Turn

# -- intake ------------------------------------------------------------------------------------------------
# A transcript on its way in: whose it is, how full its context is, and which of its turns are new.


AGAIN_AFTER = 20_000
"""After a flush, so many new tokens of context make the next one due."""
UNDONE = "a flush of this session was undone; --force reads again what it had read"
_COUNTED = 4
"""So many context windows are counted by ourselves at most: more is known to be too much."""


@dataclass(frozen=True, slots=True)
class FlushDue:
    """Whether a flush is due: the context's `size` and the `threshold` at which it `fires`, in tokens.
    `reported`: the client gave the size; else it was counted."""

    fires: bool
    size: int
    threshold: int
    reported: bool = True

    def __str__(self) -> str:
        about = "" if self.reported else "about "
        return f"{about}{self.size:,} tokens, flushes at {self.threshold:,}"


def due(size: int, last: int | None, threshold: int, *, reported: bool = True) -> FlushDue:
    """At the threshold, then every 20,000 new tokens. A context that shrank was compacted; counting starts
    again."""
    at = threshold if last is None or last > size else max(threshold, last + AGAIN_AFTER)
    return FlushDue(size >= at, size, at, reported)


def read_transcript(
    store: Store, stream: IO[bytes], *, client: str | None, session: str | None, force: bool, modelled: bool
) -> tuple[Flush, Sequence[Turn]]:
    """Read a transcript from where the stream stands: what there is to say of it, and its new turns, if a
    flush is due, or forced: then also what a flush read that was undone since and, where a model is to read
    it (`modelled`), what one read that kept nothing.

    `client` and `session` go before what the transcript says of itself. Malformed for what is none, Usage
    for a client that cannot stand in a heading, and for what is no stream of bytes.
    """
    if not isinstance(stream.read(0) if hasattr(stream, "read") else None, bytes):
        raise Usage(
            f"a transcript is a stream of bytes, not {type(stream).__name__}",
            hint='open(FILE, "rb"); turns go to memory.conversations.flush_turns',
        )
    reading = read(stream)
    own = reading.session
    whose = replace(own, client=client or own.client, session=session or own.session)
    # Without a session id its first turn names it, since "the session without an id" may be any.
    nameless = not whose.session
    if nameless:
        whose = replace(whose, session=next((turn.id for turn in ledger.with_chained_ids(reading)), ""))
    _ = Provenance(store.now(), whose.client, "agent", ledger.short(whose.session) or None).heading
    now = _due(store, whose, reading)
    seen = Flush(now, whose, looked=force or now.fires, notes=tuple(_bounded(store)))
    if not seen.looked:
        return seen, ()
    read_to, undone = ledger.ledger(store, whose, kept=force and modelled)
    # What its owner took back comes only at their word: else each flush would bring it again.
    left = [UNDONE] if undone and not force else []
    read_to |= set() if force else undone
    if nameless:
        turns = ledger.unread(ledger.with_chained_ids(reading), read_to)
    else:
        known = read_to if read_to or force else ledger.elsewhere(store, whose)
        reading = reading.again(ledger.base_ids(known)) if known else reading
        turns = list(ledger.without_recorded(reading, known, reading.reached))
    notes = (*seen.notes, *left, *_notes(reading))
    return replace(seen, notes=notes, silent=not turns and not read_to, recalled=reading.recalled), turns


def _bounded(store: Store) -> Iterator[str]:
    wanted, window = store.config.truncation_threshold, store.config.context_window
    if wanted > window and wanted != Config().truncation_threshold:
        yield f"the threshold of {wanted:,} tokens is beyond the context window, which bounds it: {window:,}"


def _due(store: Store, session: Session, reading: TranscriptReading) -> FlushDue:
    config = store.config
    size = reading.usage.context
    reported = size is not None
    if size is None:
        size = _counted(reading.context(), _COUNTED * config.context_window)
    threshold = min(config.truncation_threshold, config.context_window)
    return due(size, ledger.size_at_last_flush(store, session), threshold, reported=reported)


def _counted(pieces: Iterator[str], enough: int) -> int:
    total = 0
    for piece in pieces:
        total += tokens.count(piece)
        if total >= enough:
            break
    return total


def _notes(reading: TranscriptReading) -> Iterator[str]:
    broken = reading.broken - reading.cut
    if broken:
        first = reading.problems[: min(broken, 3)]  # the half-written one is the last
        lines = ", ".join(str(problem.line) for problem in first) + (" …" if broken > len(first) else "")
        yield f"{counted(broken, 'line')} of the transcript cannot be read ({lines})"
    if reading.undecoded:
        what = f"{reading.undecoded} byte{' is' if reading.undecoded == 1 else 's are'} not UTF-8"
        yield f"{what}, and stand as \ufffd (Latin-1? iconv -f latin1 -t utf-8 FILE | ua-memory flush -)"
    if reading.cut:
        yield "the last line of the transcript is half written; the next flush reads it"


# -- sieve -------------------------------------------------------------------------------------------------
# What of a conversation is let wait, as the bank's settings have it: whose turns, which tools, which words.
#
# Before that, readers leave out what nobody said: recalled memory, machines' turns, our own tools
# (`spoken`, `transcripts`).


def filter_turns(turns: Iterable[Turn], config: Config) -> Iterator[Turn]:
    """The turns that `retainContent` and `toolFilter` allow, without text that `strip` matches; empty ones
    are left out."""
    for turn in turns:
        if turn.role not in config.retain_content:
            continue
        if turn.role == "tool":
            name = turn.text.partition(" ")[0].rstrip(":")
            if not any(fnmatchcase(name, pattern) for pattern in config.tool_filter):
                yield turn
            continue
        text = turn.text
        for pattern in config.strip:
            text = re.sub(pattern, "", text)
        if text is turn.text:
            yield turn
        elif text.strip():
            yield replace(turn, text=text.strip())


# -- scoped ------------------------------------------------------------------------------------------------
# In what a session was held, as tags for filters: what `autoRecallTags` and `--tag` name by `{project}` and
# the like. They hold for all facts below a heading, and stand there once (`knowledge.facts.Provenance`).


def scope_tags(session: Session, scopes: Iterable[str] = (), project: str = "") -> tuple[str, ...]:
    """The tags of all that a flush keeps of a session. `scopes` are those of the setting; `project` is its
    project where its folder is not known."""
    folder = Path(session.cwd) if session.cwd else None
    known = {
        "session": session.session, "parent": session.parent, "cwd": session.cwd,
        "group": session.group, "basedir": folder.name if folder else "",
        "project": project_of(folder) if folder else project,
    }  # fmt: skip
    return wording.said_in(session.client, known, wording.AUTO, scopes)


# -- keeping -----------------------------------------------------------------------------------------------
# What was found worth keeping, written as one revision: facts, core edits and how far was read.


_SAID_BY: Mapping[str, Origin] = {"person": "person", "assistant": "agent", "tool": "tool"}


@dataclass(frozen=True, slots=True)
class FlushedSession:
    """What a flush of one session saved. `by` is the model's name, '' if the speakers' own sentences were
    saved; `reworded` are facts that a second reading gave better words; `refused` is what a model proposed
    without support."""

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
    """One revision of one flush while it is being put together. `words` is the session's file. With `again`
    it is a second reading: what extraction kept of it gets better words, and how far was read stays."""

    def __init__(
        self, store: Store, waiting: QueueEntry, zone: tzinfo | None, equal: Equal | None,
        words: SessionFile | None = None, again: bool = False,
    ) -> None:  # fmt: skip
        self.store, self.waiting, self.zone, self.equal = store, waiting, zone, equal
        self.words, self.second = words, again
        self.recalled = RecalledLines(waiting.recalled)
        self.extracted: list[Fact] = []
        self.reworded: list[Fact] = []
        self.placed: list[tuple[Fact, str]] = []
        self.again: list[Fact] = []
        self.core: list[BlockChange] = []
        self.publish: Callable[[Draft], None] | None = None
        self.notes: list[str] = []

    def write(self, harvest: SubagentResult, *, by: str, door: str) -> FlushedSession:
        """Write a harvest, all of it or, if any error is raised, nothing."""
        session, turns = self.waiting.session, self.waiting.turns
        who = entities.settled(self.store)
        forgotten = tombstones.read(self.store)
        kept = [
            one for one in harvest.kept if not forgotten.has(one.text) and not forgotten.quoted(one.quote)
        ]
        if harvest.left:
            self.notes.append(
                f"{counted(harvest.left, 'statement')} more worth keeping left out: at most {MOST} a flush"
            )
        if harvest.repeated:
            self.notes.append(f"{counted(harvest.repeated, 'near-duplicate')} left out")
        self.notes += tombstones.refused_note(len(harvest.kept) - len(kept))
        with self.store.revision("flush", door=door, session=session.session) as draft:
            self.extracted = self._of_session(draft) if self.second else []
            for candidate in sorted(kept, key=lambda c: (c.at is None, c.at and c.at.timestamp())):
                self._fact(draft, replace(candidate, entities=who.names(candidate.entities)))
            for edit in harvest.core.values():
                if forgotten.stands_in(edit.value):
                    self.notes.append(f"core block {edit.name} was left as it is: {tombstones.WHY}")
                else:
                    self._core(draft, edit)
            if not self.second:
                self._mark(draft)
            if self.publish:
                self.publish(draft)
            # Also for nothing at all: what was read once and found empty must not be read again.
            draft.even_if_empty = True
            every = (*(f for f, _ in self.placed), *self.again, *self.reworded)
            draft.facts = [f"^{fact.id}" for fact in every]
            read = ", read again" if self.second else ""
            draft.subject = f"flush: {self._counted()} from {session.client}{read}"
        if harvest.unstudied:
            self.notes.append(self._talked(by, {turn.id for turn in harvest.unstudied}))
        now = partial(knowledge_facts.as_committed, self.store)
        placed = tuple(now(fact) for fact, _ in self.placed)
        return FlushedSession(
            self.waiting.key, session.client, session.session, len(turns), by, placed, tuple(self.again),
            tuple(map(now, self.reworded)), tuple(self.core), tuple(harvest.refused),
            draft.result.revision, (*self.notes, *draft.result.notes), draft.result.redacted, harvest.usage,
        )  # fmt: skip

    def _mark(self, draft: Draft) -> None:
        """Write down how far the session has been read."""
        last = ledger.mark(self.waiting.session, self.waiting.turns[-1].id)
        ledger.write(draft, self.placed, last)
        size = self.waiting.size
        draft.trailers |= {ledger.TRAILER: [last], **({ledger.SIZE: [str(size)]} if size else {})}

    def _of_session(self, draft: Draft) -> list[Fact]:
        """What an earlier flush of the session kept in the speakers' own words."""
        days = {f"{LOGS}/{turn.at:%Y-%m-%d}" for turn in self.waiting.turns if turn.at}
        paths = [one.path for one in self.store.files() if one.path[: len(LOGS) + 11] in days]
        whose = self.waiting.session.client, ledger.short(self.waiting.session.session)
        facts = (one for path in paths for one in markdown_document.parse(draft.read(path), path).of(Fact))
        own = (one for one in facts if (one.heading.client, one.heading.session) == whose)
        return [one for one in own if one.id and not one.retired and not one.was]

    def _known(self, draft: Draft, candidate: Candidate, fact: Fact, at: datetime) -> bool:
        """Whether a statement is there in other words: as the person's words of before, that are seen again,
        or as the sentence that it was drawn from, which gets its words."""
        if row := self.recalled.restated(candidate):
            seen = knowledge_facts.see_again(draft, *row, at)
            self.again += [seen] if seen else []
            return seen is not None
        said = one_line(candidate.quote)
        for old in self.extracted:
            if said == one_line(old.quotes[0].text if old.quotes else old.text):
                there = one_line(old.text) == candidate.text
                day = f"{self.store.now():%Y-%m-%d}"
                known = knowledge_facts.fact_in(draft.read(old.place.path), old.place.path, old.id) or old
                new = old if there else knowledge_facts.reword(draft, known, fact, day)
                if new:
                    (self.again if there else self.reworded).append(new)
                    self.extracted.remove(old)
                    return True
        return False

    def _fact(self, draft: Draft, candidate: Candidate) -> None:
        session, words = self.waiting.session, self.words
        at = candidate.at.astimezone(self.zone) if candidate.at else self.store.now()
        project = words.project if words else ""
        tags = scope_tags(session, self.store.config.observation_scopes, project)
        said = Provenance(at, session.client, "agent", ledger.short(session.session) or None, tags)
        try:
            stated = _as_fact(candidate, session, words)
            if self._known(draft, candidate, stated, at):
                return
            fact, seen = knowledge_facts.add(draft, stated, said, self.equal)
        except (Usage, TooLarge) as error:
            self.notes.append(f"left out, since it cannot be written: {candidate.text[:80]} ({error.what})")
            return
        if seen:
            self.again.append(fact)
        else:
            self.placed.append((fact, ledger.mark(session, candidate.turn)))

    def _core(self, draft: Draft, edit: CoreEdit) -> None:
        """One core edit; one that cannot be made is left out and told, for the facts are worth keeping."""
        try:
            self.core.append(knowledge_core.put(self.store, draft, edit.name, edit.value, expect=edit.read))
        except (ChangedOnDisk, Malformed, TooLarge, Usage) as error:
            self.notes.append(f"core block {edit.name} was left as it is: {error.what}")

    def _talked(self, by: str, unstudied: set[str]) -> str:
        kept = "they stay unread" if self.second else "the speakers' own sentences were kept of these"
        return (
            f"{by} made no valid call for {len(unstudied)} of {len(self.waiting.turns)} turns; {kept} "
            "(another UA_MEMORY_MODEL would do better)"
        )

    def _counted(self) -> str:
        parts = [counted(len(self.placed), "fact")]
        parts += [f"{len(self.again)} already known"] if self.again else []
        parts += [f"{len(self.reworded)} reworded"] if self.reworded else []
        parts += [counted(len(self.core), "core block")] if self.core else []
        return ", ".join(parts)


def _as_fact(candidate: Candidate, session: Session, words: SessionFile | None) -> Fact:
    """A statement as a fact. Where it is its own quote, one line says who said it and in which turn: by a
    link, where the session's words are kept. What was said in a group came from outside: anybody may have
    said it."""
    fact = Fact(
        candidate.text,
        kind=candidate.kind,
        when=candidate.when,
        entities=candidate.entities,
        tags=candidate.tags,
    )
    if candidate.was and candidate.at:
        fact = replace(fact, was=(Was(candidate.was, candidate.at.date().isoformat()),))
    source = (words and words.link(candidate.turn)) or f"turn {ledger.short(candidate.turn)}"
    if candidate.text.split() == candidate.quote.split():
        return replace(fact, origin="web" if session.group else _SAID_BY[candidate.who], trail=source)
    # In other words it is the agent's, as its heading says; what it had from a tool alone stays the tool's,
    # and what it had from an agent alone says so, since no person's words are behind it.
    alone: Origin | None = None if candidate.who == "person" else _SAID_BY[candidate.who]
    origin: Origin | None = "web" if session.group else alone
    return replace(fact, quotes=(Quote(candidate.quote, source),), origin=origin)


# -- flush -------------------------------------------------------------------------------------------------
# The flush: a dying conversation goes in; facts, core edits and one commit come out.
#
# Turns wait in the queue first, so that whatever goes wrong afterwards loses nothing. A model studies them
# in stretches that fit its window, or, without one, the speakers' own sentences are kept. All of it is
# written in one revision whose `Through` says how far the session has been read; then the turns are dropped.


# What extracts, what asks a model and what writes are imported where they work: a hook only queues turns.

OVERLAP = 4
"""Turns that two stretches of a long transcript share, so that no statement loses its neighbours."""
PART_OF_WINDOW = 0.5
"""What of a model's window one stretch may fill: its tokens are smaller than ours, and it has to answer."""
LONGEST_ANSWER = 8_000
"""Tokens of one answer of the sub-agent: some forty statements. A model that says more says nothing."""
_PER_TURN = 12

Tell = Callable[[int, int], None]
Done = Callable[["FlushedSession"], None]


@dataclass(frozen=True, slots=True)
class Flush:
    """What a call did. `due` is None where no transcript was given; `looked` tells whether it was due, or
    forced, and `turns` how many new ones it had. `done` is what was flushed, one for each session; `preview`
    is what a dry run would have kept; `silent` that nobody said anything in it; `recalled` what memory gave
    the session."""

    due: FlushDue | None = None
    session: Session | None = None
    turns: int = 0
    looked: bool = False
    done: tuple[FlushedSession, ...] = ()
    preview: tuple[Candidate, ...] | None = None
    redacted: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    silent: bool = False
    recalled: tuple[str, ...] = ()


class Flusher:
    """Flushes into one bank. `tell(done, total)` is called with the number of turns read."""

    def __init__(
        self, store: Store, view: MemoryView, known: Callable[[], Equal], *, door: str,
        model: Model | None = None, tell: Tell | None = None, wants: bool | None = None,
    ) -> None:  # fmt: skip
        self.store, self.view, self.known = store, view, known
        self.door, self.model, self.tell = door, model, tell
        self.wants = model is not None if wants is None else wants
        """Whether a model is to read what is made to wait."""
        self.redacted: Counter[str] = Counter()
        self.queue = TurnQueue(store.bank.pending, self._clean)
        self.sessions = SessionFiles(store)
        self.zone: tzinfo | None = ZoneInfo(store.config.timezone) if store.config.timezone else None

    def take(
        self, stream: IO[bytes], *, client: str | None = None, session: str | None = None,
        force: bool = False, keep: bool = True,
    ) -> tuple[Flush, tuple[Turn, ...]]:  # fmt: skip
        """Look at a transcript; if it is due, let its new turns wait, unless `keep` is false."""
        seen, found = read_transcript(
            self.store, stream, client=client, session=session, force=force, modelled=self.wants
        )
        whose, due = seen.session, seen.due
        assert whose and due, "a transcript has both"
        turns = tuple(self.own_turns(whose, [*ledger.without_waiting(found, self.queue.ids(whose))]))
        if keep and turns:
            self.put(whose, turns, due.size, recalled=seen.recalled)
        return replace(seen, turns=len(turns), redacted=dict(self.redacted)), turns

    def own_turns(self, session: Session, turns: Sequence[Turn]) -> Sequence[Turn]:
        """The turns behind those that a fork has copied from its parent session."""
        if not session.parent:
            return turns
        wanted = list(filter_turns(turns, self.store.config))
        clean = [
            replace(turn, text=redaction.redact(turn.text, self.store.config.redact).text) for turn in wanted
        ]
        return wanted[self.sessions.copied(session, clean, self.store.config.sessions_agent) :]

    def put(
        self, session: Session, turns: Iterable[Turn], size: int | None, *, more: bool = False,
        recalled: Iterable[str] = (),
    ) -> QueueEntry | None:  # fmt: skip
        """Let those turns wait for their flush that the settings want kept, None if there are none; they are
        on the disk, without secrets, when this returns. With `more` they gather: no flush is due. `recalled`
        is what memory gave the session."""
        turns = list(filter_turns(turns, self.store.config))
        session = replace(session, title=(title := self._clean(session.title)))
        if not turns:
            if title:
                self._keep_words(session, (), title)
            return None
        self.store.make_state()
        now = self.store.now()
        waiting = self.queue.put(
            session, turns, at=now, size=size, modelled=self.wants, more=more, recalled=recalled
        )
        self._keep_words(session, waiting.turns, title)
        return waiting

    def _keep_words(self, session: Session, turns: Sequence[Turn], title: str = "") -> SessionFile | None:
        """Write what was said, and the client's title, into the session's file; None where it is not kept."""
        config = self.store.config
        if not config.sessions_keep or (session.group and not config.sessions_groups):
            return None
        return self.sessions.add(
            session, turns, now=self.store.now(), agent=config.sessions_agent, title=title
        )

    def preview(self, turns: Sequence[Turn], recalled: Iterable[str] = ()) -> tuple[Candidate, ...]:
        """What an extractive flush of these turns would keep. Nothing is written or sent."""
        clean = (replace(t, text=self._clean(t.text)) for t in filter_turns(turns, self.store.config))
        return tuple(self._own_words(clean, RecalledLines(recalled)).kept)

    def drain(
        self, first: Session | None = None, done: Done | None = None, *, every: bool = False
    ) -> list[FlushedSession]:
        """Flush what waits: of `first` before all others, each as one revision. Not what was set aside, and
        what gathers still only if it is `first`, or with `every`.

        `done` hears of each as soon as it is committed. Raises what the model or the store raises: the turns
        go on waiting then, and so do those of the sessions that would have come after.
        """
        mine = [key for each in self.queue.all() if (key := each.key) and first and each.session == first]
        flushed = []
        self.queue.sweep()
        self.sessions.sweep()
        if days := self.store.config.sessions_days:
            self.sessions.expire(older_than(self.store.now(), days))
        now = self.store.now()
        rest = [e.key for e in self.queue.all() if not e.aside and (every or not e.gathers(now))]
        for key in dict.fromkeys((*mine, *rest)):
            try:
                one = self.one(key, self.store.config.lock_seconds if key in mine or not first else 0)
            except Busy:
                if key in mine or not first:
                    raise
                continue  # another process is at it
            if one is not None:
                flushed.append(one)
                if done:
                    done(one)
        return flushed

    def one(self, key: str, patience: float, *, unasked: bool = False) -> FlushedSession | None:
        """Flush what waits under a key; None if all of it was read before, by a run that was killed late, or
        if it is set aside and this was not asked for."""
        with self.queue.attempt(key, patience, self.store.now, unasked=unasked) as waiting:
            if waiting is None:
                return None
            read_to, _ = ledger.ledger(self.store, waiting.session, kept=self.model is not None)
            unread = ledger.unread(waiting.turns, read_to)
            fresh = [*self._as_wanted_now(unread)]
            words = self._keep_words(waiting.session, fresh)
            flushed = self._flushed(replace(waiting, turns=tuple(fresh)), words) if fresh else None
            self.queue.remove_turns(key, {turn.id for turn in waiting.turns})
            return flushed

    def _as_wanted_now(self, turns: Iterable[Turn]) -> Iterator[Turn]:
        """What the settings of today let pass of turns: those under which they were let wait may have been
        others, or broken."""
        own = self.store.config.redact
        yield from (
            replace(t, text=self._clean(t.text)) if own else t for t in filter_turns(turns, self.store.config)
        )

    def _flushed(self, waiting: QueueEntry, words: SessionFile | None) -> FlushedSession:
        stays = f"nothing was saved, and {counted(len(waiting.turns), 'turn')} wait"
        by = self.model.name if self.model else ""
        noting = self.queue.noting_failure(waiting.key, self.store.now, stays, modelled=bool(by))
        with Jobs(self.store).noted("flush") as note, noting:
            harvest = self._harvest(waiting)
            reading = self._reading(by or EXTRACTION, ledger.short(waiting.turns[-1].id), harvest)
            done = self._write(waiting, words, harvest, reading)
            note.result = f"{counted(len(done.facts), 'fact')} from {done.client}"
            return done

    def _write(
        self, waiting: QueueEntry, words: SessionFile | None, harvest: SubagentResult,
        reading: SessionReading | None, again: bool = False,
    ) -> FlushedSession:  # fmt: skip
        """Write what was found as one revision, with the session's words if they go into the bank."""
        files, by = self.sessions, self.model.name if self.model else ""
        shared = words and (self.store.config.sessions_place == "bank" or files.in_bank(words))
        writer = FlushWriter(self.store, waiting, self.zone, self.known(), words, again)
        if words and reading and shared:
            writer.publish = partial(files.publish, found=reading.noted(words))
        done = writer.write(harvest, by=by, door=self.door)
        if shared:
            files.sweep()
        elif words and reading:
            files.mark(waiting.session, reading)
        return done

    def _harvest(self, waiting: QueueEntry, *, again: bool = False) -> SubagentResult:
        turns, recalled = waiting.turns, RecalledLines(waiting.recalled)
        if self.model is None:
            return self._own_words(turns, recalled)
        whole, behind, window = SubagentResult(), 0, self.store.config.context_window
        answer = min(LONGEST_ANSWER, window // 4)
        for stretch in stretches(turns, int(window * PART_OF_WINDOW)):
            watch = self._watch(behind, len(turns))
            run_subagent(
                self.model, stretch, self.view, self.zone, into=whole, watch=watch, max_tokens=answer,
                core=not waiting.session.group, recalled=recalled,
            )  # fmt: skip
            behind = min(behind + len(stretch) - OVERLAP, len(turns))
        # What a model only talked about was not read by anybody yet: its speakers' own words are kept.
        unread = {turn.id for turn in whole.unstudied if not again}
        own = self._own_words([turn for turn in turns if turn.id in unread], recalled)
        whole.kept, whole.left, whole.repeated = whole.kept + own.kept, own.left, own.repeated
        return whole

    def _own_words(self, turns: Iterable[Turn], recalled: RecalledLines) -> SubagentResult:
        extraction = Extraction(self.zone or self.store.now().tzinfo)
        for turn in turns:
            extraction.add(turn)
        kept = [one for one in extraction.best() if not recalled.repeated(one)]
        return SubagentResult(kept=kept, left=extraction.left, repeated=extraction.repeated)

    # -- a second reading ---------------------------------------------------------------------

    def unstudied(self, since: str = "", *, force: bool = False) -> Iterator[tuple[SessionFile, QueueEntry]]:
        """The sessions since an ISO day that no model has read, newest first, each with its turns, but for
        those that wait for their flush. One whose flush was undone only with `force`."""
        zone, window = self.zone or self.store.now().tzinfo, self.store.config
        for one in self.sessions.all():
            whose = Session(one.client, one.session, parent=one.parent, group=one.group)
            if one.read_by not in ("", EXTRACTION) or one.day < since:
                continue
            if not force and ledger.ledger(self.store, whose)[1]:
                continue
            ids = set(map(turn_id, self.queue.ids(whose)))
            one = replace(one, turns=tuple(turn for turn in one.turns if turn.id not in ids))
            if turns := tuple(filter_turns(one.said(zone), window)):
                yield one, QueueEntry(key_of(whose), whose, turns)

    def study(self, words: SessionFile, found: QueueEntry, patience: float) -> FlushedSession:
        """Have the model read a session's words anew, as one revision. Raises as `drain`; then nothing of
        this session has changed."""
        assert self.model is not None, "a second reading is a model's"
        self.store.make_state()
        with self.queue.claimed(found.key, patience):
            harvest = self._harvest(found, again=True)
            reading = self._reading(self.model.name, words.through, harvest)
            return self._write(found, words, harvest, None if harvest.unstudied else reading, again=True)

    def _reading(self, read_by: str, through: str, harvest: SubagentResult) -> SessionReading:
        return SessionReading(read_by, through, self._clean(harvest.title), self._clean(harvest.outcome))

    def _watch(self, behind: int, total: int) -> Callable[[int], None]:
        return lambda reached: self.tell(min(max(behind, 0) + reached, total), total) if self.tell else None

    def _clean(self, text: str) -> str:
        found = redaction.redact(text, self.store.config.redact)
        self.redacted.update(found.taken)
        return found.text


def stretches(turns: Sequence[Turn], window: int) -> Iterator[Sequence[Turn]]:
    """The turns in runs of at most `window` tokens, each run repeating the last turns of the one before.

    A turn that is too long by itself is split into parts with its id.
    """
    sized = [
        (piece, tokens.count(piece.text) + _PER_TURN) for turn in turns for piece in _pieces(turn, window)
    ]
    start, used = 0, 0
    for n, (_, size) in enumerate(sized):
        if used + size > window and n > start:
            yield [turn for turn, _ in sized[start:n]]
            back = n
            used = 0
            while back > max(start + 1, n - OVERLAP) and used + sized[back - 1][1] + size <= window // 2:
                back -= 1
                used += sized[back][1]
            start = back
        used += size
    if start < len(sized):
        yield [turn for turn, _ in sized[start:]]


def _pieces(turn: Turn, window: int) -> Iterator[Turn]:
    text, room = turn.text, max(window - _PER_TURN, 1)
    if len(text) <= room:  # no token is shorter than a character
        yield turn
        return
    while text:
        head = tokens.fit(text, room) or text[:1]
        yield replace(turn, text=head)
        text = text[len(head) :]


# -- estimate ----------------------------------------------------------------------------------------------
# What a flush by a model would cost, before anything is sent: tokens times the dated table.


_OVERHEAD = 1_000
"""The directive's companions: the descriptions of tools, and what the API adds for them."""
_REQUESTS = 6
"""Answers that a flush usually takes; all but the first read the transcript from the cache."""
_SAYS = 500
"""Tokens of an answer with a few calls, thought included."""


def estimate(turns: Sequence[Turn], model: Endpoint | Model, window: int) -> Estimate:
    """The tokens and requests that a model would need for these turns, rounded up."""
    total, requests = 0, list[Tokens]()
    for stretch in stretches(turns, int(window * PART_OF_WINDOW)):
        size = int((tokens.count(shown(stretch, None)) + tokens.count(prompt("flush")) + _OVERHEAD) * THEIRS)
        total += size
        requests += asked_on(size, _REQUESTS, _SAYS)
    return priced(model, total, requests)
