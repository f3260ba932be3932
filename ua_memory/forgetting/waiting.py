"""What waits and what is kept beside the truth, without what was forgotten: pending turns and texts, answers
that were paid for, logs, index and cache."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ua_memory.errors import Busy, NotFound
from ua_memory.forgetting.words import Needle
from ua_memory.store import Store
from ua_memory.store.aside import sweep

if TYPE_CHECKING:
    from ua_memory.index.sync import Index
    from ua_memory.reflect.answers import Answer
    from ua_memory.retain.queue import Queue, Waiting


@dataclass(slots=True)
class Cleared:
    """What was taken out beside the truth, in words for a person, and what it comes to for the index."""

    pending: list[str] = field(default_factory=list)
    logs: int = 0
    embeddings: int = 0
    left: int = 0
    """Files that the index has not read again yet: the next search does."""


def queues(store: Store) -> Iterator[Queue]:
    """The two queues of a bank: conversations, and texts."""
    from ua_memory.retain.items import Items
    from ua_memory.retain.queue import Queue

    yield Queue(store.bank.pending, str)
    yield Items(store.bank.pending, str)


def of_session(store: Store, session: str) -> list[tuple[Queue, Waiting]]:
    """What waits of a session, by its whole id or the part of it that headings show."""
    return [
        (queue, one)
        for queue in queues(store)
        for one in queue.all()
        if one.session.session and is_session(one.session.session, session)
    ]


def sessions(store: Store) -> list[str]:
    """The whole ids of the sessions of which something waits."""
    return [one.session.session for queue in queues(store) for one in queue.all() if one.session.session]


def is_session(whole: str, named: str) -> bool:
    """Whether a session is meant by a name: its id, or what a heading shows of it."""
    from ua_memory.retain import through

    return named in (whole, through.short(whole)) or whole == through.short(named)  # a heading's, a whole one


def clear(store: Store, needles: Sequence[Needle], ids: Collection[str], cleared: Cleared) -> None:
    """Take texts out of what waits and of the logs, and with them what a killed import or export left. Busy
    where a consolidation is at work."""
    sweep(store.bank.state)
    for queue in queues(store):
        for key in queue.keys():  # noqa: SIM118 (it is no mapping)
            with suppress(NotFound):  # drained meanwhile
                if queue.rewrite(key, lambda row: without(row, needles)):
                    cleared.pending.append(key)
    if _answers(store, needles, ids):
        cleared.pending.append("consolidation")
    for file in sorted(store.bank.local.glob("*.log*")):
        data = file.read_bytes()
        lines = data.split(b"\n")
        kept = [line for line in lines if not any(needle.within(line) for needle in needles)]
        if len(kept) < len(lines):
            file.write_bytes(b"\n".join(kept))
            cleared.logs += len(lines) - len(kept)


def waits(store: Store, needles: Sequence[Needle]) -> list[str]:
    """The keys of what waits and has one of the texts."""
    found = []
    for queue in queues(store):
        for key in queue.keys():  # noqa: SIM118 (it is no mapping)
            data = (store.bank.pending / f"{queue.prefix}{key}.jsonl").read_bytes()
            if any(needle.within(data) for needle in needles):
                found.append(key)
    return found


def without(row: Mapping[str, Any], needles: Sequence[Needle]) -> dict[str, Any] | None:
    """A row of a pending record without the texts; one of what was drawn from a chunk goes whole, and the
    chunk is read again."""
    said = json.dumps(row, ensure_ascii=False)
    if not any(needle.within(said) for needle in needles):
        return dict(row)
    if "drawn" in row:
        return None
    return {key: _taken_out(value, needles) for key, value in row.items()}


def _taken_out(value: Any, needles: Sequence[Needle]) -> Any:
    if isinstance(value, str):
        for needle in needles:
            value = needle.taken_out(value)
        return value
    if isinstance(value, Mapping):
        return {key: _taken_out(each, needles) for key, each in value.items()}
    return [_taken_out(each, needles) for each in value] if isinstance(value, list) else value


def _answers(store: Store, needles: Sequence[Needle], ids: Collection[str]) -> bool:
    """Let go of a consolidation's answers that rest on what went, or have its words: it asks again."""
    from ua_memory.reflect.answers import Answers
    from ua_memory.reflect.consolidate import CLAIM
    from ua_memory.store.lock import locked

    answers = Answers(store.bank.pending)
    there = answers.all()
    marks = {f"^{block}" for block in ids}
    kept = [
        one
        for one in there
        if not one.rests_on & marks and not any(needle.within(_plain(one)) for needle in needles)
    ]
    if len(kept) == len(there):
        return False
    try:
        with locked(store.bank.state / CLAIM, store.config.lock_seconds):
            answers.keep_only(kept)
    except Busy as error:
        raise Busy(
            "a consolidation is at work", where=error.where, mend="try again when it is done"
        ) from error
    return True


def _plain(answer: Answer) -> str:
    row = [[each.plain() for each in answer.operations], answer.refused, answer.aside]
    return json.dumps(row, ensure_ascii=False)


def reindex(store: Store, index: Index, seconds: float, cleared: Cleared) -> None:
    """Begin the index anew and let go of the embeddings that nothing has any more. Words are read at once;
    the vectors, which have all gone, the next search or the daemon puts back from the cache."""
    from ua_memory.index.current import Current
    from ua_memory.index.reading import within

    if index.shelf.folder.exists():
        with index.turn:
            index.close()
            fresh = Current(
                index.shelf
            )  # of a row that is only deleted, free pages and the log keep the text
            fresh.anew("something was forgotten")
            fresh.close()
            done = index.refresh(vectors=False)
            kept = any(store.bank.cache.glob("embeddings*")) if store.bank.cache.is_dir() else False
            if kept and not done.left_files:
                cleared.embeddings = index.cache.keep_only(index.words.text_ids())
            if store.config.chroma_url:  # rows on a server go with the next look at it, which is now
                done = index.refresh(stop=within(seconds))
        cleared.left = done.left_files + done.left_texts
    elif store.bank.cache.is_dir():
        for file in store.bank.cache.glob("embeddings*"):
            file.unlink(missing_ok=True)
