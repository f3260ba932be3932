"""Proposals for core memory: rules that a person stated, and edits by agents that a person has to confirm.

Rules are computed from the files and never stored. A person's decisions are trailers of commits. An agent's
edit that waits for the person is one durable file in `pending/`.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from difflib import ndiff
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from ua_memory.errors import Busy, NotFound, Usage, checked, writing
from ua_memory.git.repository import Revision
from ua_memory.knowledge import core
from ua_memory.knowledge.core import BlockChange
from ua_memory.knowledge.statements import texts
from ua_memory.markdown import document
from ua_memory.markdown.lines import day_of
from ua_memory.paths import make_private
from ua_memory.records import CoreBlock, Fact
from ua_memory.store import pending, swap
from ua_memory.store.draft import Draft, Result
from ua_memory.store.store import Store
from ua_memory.text import grounding, wording
from ua_memory.text.wording import RULES_BLOCK, stated_for_good
from ua_memory.transcripts.reader import TranscriptWords

ACCEPTED, REJECTED, SEEN = "Core-Accepted", "Core-Rejected", "Core-Seen"
"""Trailers: the ids of accepted and rejected proposals, and of agents' revisions that a person approved."""
BY_AGENT = "Core-By-Agent"
"""Trailer: the block that an agent changed without a check against a transcript."""
PREFIX = "core-"
MOST_WAITING = 50
"""Most edits that can wait, so that an agent in a loop does not fill the disk."""
NAMES = 8
"""Hexadecimal digits of the hashes in proposal ids."""

ProposalKind = Literal["statement", "waiting", "unseen"]


@dataclass(frozen=True, slots=True)
class CoreProposal:
    """One proposal. `accept` and `reject` take its `id`.

    A `statement` is a person's rule or preference; `text` would be added to `block`. A `waiting` edit was
    requested by an agent, an `unseen` one was already made by it: `text` is a diff of `block`, with added
    (`+ …`) and removed (`- …`) lines. `days` are the ISO days on which it was said or made.
    """

    id: str
    kind: ProposalKind
    text: str
    why: str
    block: str = RULES_BLOCK
    days: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    client: str = ""
    session: str = ""


@dataclass(frozen=True, slots=True)
class DecidedProposals:
    """The accepted or rejected proposals, and the revision that records it."""

    proposals: tuple[CoreProposal, ...]
    result: Result
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WaitingEdit:
    """An agent's waiting edit. `before` is the block's value when it was requested, None for a new block."""

    section: str
    value: str
    before: str | None
    repeated: str
    client: str
    session: str
    at: str

    @property
    def id(self) -> str:
        named = f"{self.section}\0{self.value}".encode("utf-8", "surrogatepass")
        return f"c-{hashlib.sha256(named).hexdigest()[:NAMES]}"


@checked
class CoreProposals:
    """The proposals of one bank; `door` names who decides. `undo` undoes a revision by its id; `among` gives
    the paths of files that may have a person's preferences, None for all files."""

    def __init__(
        self, store: Store, door: str, undo: Callable[[str], Result],
        among: Callable[[], Collection[str] | None] = lambda: None,
    ) -> None:  # fmt: skip
        self._store, self._door, self._undo, self._among = store, door, undo, among

    def list(self) -> Sequence[CoreProposal]:
        """All undecided proposals: agents' edits first, then rules, newest first."""
        return [*self._waiting(), *self._unseen(), *self._statements()]

    def accept(
        self, ids: Sequence[str], *, block: str = RULES_BLOCK, by_person: bool = False
    ) -> DecidedProposals:
        """Accept proposals in one commit: add rules as lines of `block`, apply waiting edits, and mark unseen
        edits as seen. Usage unless `by_person`; NotFound, TooLarge; ChangedOnDisk if the block of a waiting
        edit has changed since."""
        chosen = self._chosen(ids, by_person)
        edits = {one.id: one for one in _waiting_edits(self._store)}
        warnings: list[str] = []
        with self._store.revision("core accept", door=self._door) as draft:
            draft.by_person = draft.even_if_empty = True
            for one in chosen:
                if one.kind == "statement":
                    done = self._add_line(draft, one, block)
                elif one.kind == "waiting":
                    edit = edits[one.id]
                    done = core.put(self._store, draft, edit.section, edit.value, expect=edit.before or "")
                else:
                    continue
                warnings += [each for each in done.warnings if each not in warnings]
            draft.subject = f"core: accept {wording.counted(len(chosen), 'proposal')}"
            draft.trailers |= _decision_trailers(chosen, ACCEPTED)
        self._drop(chosen)
        return DecidedProposals(tuple(chosen), draft.result, tuple(warnings))

    def reject(self, ids: Sequence[str], *, by_person: bool = False) -> DecidedProposals:
        """Reject proposals; they are not proposed again. An unseen edit is undone, in a commit of its own.
        Usage unless `by_person`; NotFound; Conflict if an edit cannot be undone."""
        chosen = self._chosen(ids, by_person)
        undone = [self._undo(one.id) for one in chosen if one.kind == "unseen"]
        rest = [one for one in chosen if one.kind != "unseen"]
        if not rest:
            return DecidedProposals(tuple(chosen), undone[-1])
        with self._store.revision("core reject", door=self._door) as draft:
            draft.by_person = draft.even_if_empty = True
            draft.subject = f"core: reject {wording.counted(len(rest), 'proposal')}"
            draft.trailers |= _decision_trailers(rest, REJECTED)
        self._drop(rest)
        return DecidedProposals(tuple(chosen), draft.result)

    def edit(
        self, section: str, value: str, words: TranscriptWords | None, *, client: str = "",
        session: str | None = None,
    ) -> BlockChange | CoreProposal:  # fmt: skip
        """Replace a block for an agent, after a check against the tool outputs of its session.

        An edit that repeats a tool's output and not the person's words is saved as a proposal. One that could
        not be checked in full, or empties the block, is made, and its commit has the trailer `BY_AGENT`.
        Raises what `CoreMemory.replace` raises, and Usage for an edit that the person rejected.
        """
        store, value = self._store, self._store.redacted(value)
        core.check_values(store, {section: value})
        there = core.find_block(core.blocks(store), section)
        before = there.value if there else None
        found = core.find_repeated(value, before or "", words.said, words.outputs) if words else ""
        if not found:
            checked = words is not None and words.complete and bool(value.strip())
            trailers = {} if checked else {BY_AGENT: " ".join(section.split())}
            memory = core.CoreMemory(store, self._door)
            return memory.replace(section, value, session=session, trailers=trailers)
        at = store.now().isoformat(timespec="minutes")
        made = WaitingEdit(section, value, before, store.redacted(found), client, session or "", at)
        if made.id in self._names(REJECTED):
            raise Usage("the person has rejected this edit", hint="leave it out, or ask the person")
        self._save(made)
        return self._shown(made)

    # -- rules -----------------------------------------------------------------------------------------

    def _statements(self) -> Iterator[CoreProposal]:
        """The rules and preferences that qualify as proposals (`_why`), newest first."""
        groups: dict[str, list[Fact]] = {}
        for path, data in texts(self._store, paths=self._among()):
            for fact in document.parse(data, path).of(Fact) if b"preference" in data else ():
                if _is_owners_rule(fact):
                    groups.setdefault(grounding.words_only(fact.text), []).append(fact)
        decided = self._names(ACCEPTED) | self._names(REJECTED) if groups else set()
        stands = grounding.words_only("\n".join(block.value for block in core.blocks(self._store)))
        found = []
        for words, facts in groups.items():
            if grounding.occurs_in(words, stands) or any(_trailer_name(fact) in decided for fact in facts):
                continue
            if why := self._why(facts):
                found.append(_rule_proposal(facts, why))
        yield from sorted(found, key=lambda one: (max(one.days, default=""), one.id), reverse=True)

    def _why(self, facts: Sequence[Fact]) -> str:
        """The reason to propose a statement, '' for none: it was repeated, or is marked as lasting."""
        days = _seen_days(facts)
        if len(days) > 1:
            return f"stated on {', '.join(days[-4:])}"
        sessions = {fact.heading.session for fact in facts if fact.heading.session}
        if len(sessions) > 1 or self._told_again(facts):
            return f"stated in two sessions on {days[0]}" if days else "stated in two sessions"
        said = (text for fact in facts for text in (fact.text, *(quote.text for quote in fact.quotes)))
        return "said with a word such as always, never or remember" if any(map(stated_for_good, said)) else ""

    def _told_again(self, facts: Sequence[Fact]) -> bool:
        """Whether more than one session stated it, by the `Session` trailers of the commits."""
        seen = {f"^{fact.id}" for fact in facts if fact.seen and fact.id}
        if not seen:
            return False
        log = self._store.history.with_trailer("Facts", "")
        changes = (one for one in log if any(seen & set(v.split()) for v in one.trailers["Facts"]))
        return len({one.trailer("Session") for one in changes} - {""}) > 1

    def _add_line(self, draft: Draft, one: CoreProposal, name: str) -> BlockChange:
        path = core.core_path(self._store)
        there = document.parse(draft.read(path), path).of(CoreBlock)
        known = core.find_block(there, name)
        line = f"- {' '.join(one.text.split())}"
        return core.put(self._store, draft, name, f"{known.value}\n{line}" if known and known.value else line)

    # -- waiting edits ---------------------------------------------------------------------------------

    def _waiting(self) -> Iterator[CoreProposal]:
        there = {block.name.casefold(): block.value for block in core.blocks(self._store)}
        for one in _waiting_edits(self._store):
            if there.get(one.section.casefold()) != one.value:  # else a killed process left the file behind
                yield self._shown(one)

    def _shown(self, one: WaitingEdit) -> CoreProposal:
        why = f"asked for by an agent; a tool printed it and no person said it: {one.repeated!r}"
        return CoreProposal(
            one.id, "waiting", _line_diff(one.before or "", one.value), why, one.section, (one.at[:10],),
            client=one.client, session=one.session,
        )  # fmt: skip

    def _save(self, made: WaitingEdit) -> None:
        """Save a waiting edit; it is on disk when this returns. CannotWrite; Busy if too many wait."""
        file = _edit_path(self._store, made.id)
        self._store.make_state()
        with self._store.locked(), writing(file):
            if not file.exists() and sum(1 for _ in _waiting_edits(self._store)) >= MOST_WAITING:
                what = f"{MOST_WAITING} edits of core memory wait for the person"
                raise Busy(what, hint="ua-memory core proposals")
            make_private(file.parent)
            data = json.dumps(asdict(made), ensure_ascii=False, indent=1).encode()
            swap.replace_file(file, data, file.with_suffix(pending.TEMP_SUFFIX))

    def _drop(self, decided: Iterable[CoreProposal]) -> None:
        for one in decided:
            if one.kind == "waiting":
                _edit_path(self._store, one.id).unlink(missing_ok=True)

    # -- unseen edits ----------------------------------------------------------------------------------

    def _unseen(self) -> Iterator[CoreProposal]:
        """Agents' edits that no person has seen and that still have an effect, newest first."""
        history = self._store.history
        made = history.with_trailer(BY_AGENT)
        settled = (history.undone_revisions() | self._names(SEEN)) if made else set()
        there = {block.name.casefold(): block.value for block in core.blocks(self._store)} if made else {}
        for one in made:
            name = one.trailer(BY_AGENT)
            if one.id in settled:
                continue
            before, after = self._value(one, name, "^"), self._value(one, name, "")
            if text := _remaining_diff(before, after, there.get(core.bare_name(name).casefold(), "")):
                yield CoreProposal(
                    one.id, "unseen", text, "written by an agent, not seen yet", name,
                    (one.when.date().isoformat(),), session=one.trailer("Session"),
                )  # fmt: skip

    def _value(self, revision: Revision, name: str, parent: str) -> str:
        path = core.core_path(self._store)
        data = self._store.history.read(f"{revision.id}{parent}", path) or b""
        found = core.find_block(document.parse(data, path).of(CoreBlock), core.bare_name(name))
        return found.value if found else ""

    # -- decisions -------------------------------------------------------------------------------------

    def _chosen(self, ids: Sequence[str], by_person: bool) -> Sequence[CoreProposal]:
        """The proposals with these ids, each once. Usage, NotFound."""
        if not by_person:
            raise Usage("only a person decides on core memory", hint="run it at a terminal")
        if not ids:
            raise Usage("name what is meant", hint="ua-memory core proposals")
        known = self.list()
        chosen: dict[str, CoreProposal] = {}
        for named in ids:
            bare = named.removeprefix("^")
            fits = [one for one in known if one.id.removeprefix("^") == bare]
            if not fits and len(bare) >= 7:
                fits = [one for one in known if one.kind == "unseen" and one.id.startswith(bare)]
            if len(fits) != 1:
                raise NotFound("no such proposal", where=named, hint="ua-memory core proposals")
            chosen[fits[0].id] = fits[0]
        return list(chosen.values())

    def _names(self, key: str) -> set[str]:
        """The values of a trailer in all revisions that were not undone."""
        log = self._store.history.with_trailer(key)
        gone = self._store.history.undone_revisions() if log else set()
        return {name for one in log if one.id not in gone for name in one.trailers.get(key, ())}


def delete_edits(store: Store, holds: Callable[[str], bool]) -> int:
    """Delete the waiting edits whose old or new value makes `holds` true; returns their number."""
    gone = [one for one in _waiting_edits(store) if holds(one.value) or holds(one.before or "")]
    for one in gone:
        _edit_path(store, one.id).unlink(missing_ok=True)
    return len(gone)


def _waiting_edits(store: Store) -> Iterator[WaitingEdit]:
    for file in swap.list_files(store.bank.pending, PREFIX):
        if file.suffix == ".json":
            with contextlib.suppress(OSError, ValueError, TypeError):
                yield WaitingEdit(**json.loads(file.read_bytes()))


def _edit_path(store: Store, id: str) -> Path:
    return store.bank.pending / f"{PREFIX}{id.removeprefix('c-')}.json"


def _is_owners_rule(fact: Fact) -> bool:
    """Whether a fact is a preference of the owner's. One from a group chat is not."""
    own = fact.said_by == "person" and not wording.group_of((*fact.tags, *fact.heading.tags))
    return own and fact.kind == "preference" and not fact.retired and not fact.untrusted


def _trailer_name(fact: Fact) -> str:
    """A fact's proposal id: its id, or the path and text hash of a line without one."""
    if fact.ref:
        return f"^{fact.ref}"
    return f"{quote(fact.place.path, safe='/@+=~')}#{document.texthash(fact.text)[:NAMES]}"


def _rule_proposal(facts: Sequence[Fact], why: str) -> CoreProposal:
    tags = (tag for fact in facts for tag in (*fact.tags, *fact.heading.tags))
    projects = sorted({tag.partition(":")[2] for tag in tags if tag.startswith("project:")})
    head, days = facts[0], tuple(_seen_days(facts))
    said = head.heading.client or "", head.heading.session or ""
    name = _trailer_name(head)
    return CoreProposal(name, "statement", head.text, why, RULES_BLOCK, days, tuple(projects), *said)


def _seen_days(facts: Sequence[Fact]) -> list[str]:
    """The ISO days on which facts were said or seen again, sorted."""
    said = (day_of(fact.place.path) or "" for fact in facts)
    seen = (stamp[:10] for fact in facts for stamp in fact.seen)
    return sorted({*said, *seen} - {""})


def _decision_trailers(decided: Sequence[CoreProposal], key: str) -> Mapping[str, list[str]]:
    named = [one.id for one in decided if one.kind != "unseen"]
    seen = [one.id for one in decided if one.kind == "unseen"]
    return {**({key: named} if named else {}), **({SEEN: seen} if seen else {})}


def _line_diff(before: str, after: str) -> str:
    rows = ndiff(before.splitlines(), after.splitlines())
    return "\n".join(row for row in rows if row[:2] in ("+ ", "- ") and row[2:].strip())


def _remaining_diff(before: str, after: str, now: str) -> str:
    """The lines of a change that still apply: added ones that are there, removed ones that are not."""
    there = set(now.splitlines())
    rows = _line_diff(before, after).splitlines()
    return "\n".join(row for row in rows if (row[2:] in there) == (row[0] == "+"))
