"""From files to rows: what differs from the manifest is read, parsed and put into the word index.

All of one refresh is one transaction: killed at any moment, the index is what it was before or what it
is after. A file that cannot be read or parsed is reported and tried again next time; the others go on.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ua_memory import markdown
from ua_memory.index import links
from ua_memory.index.items import items_of
from ua_memory.index.manifest import Known, Manifest, content_hash
from ua_memory.index.outside import Files, Looked, outside
from ua_memory.index.words import Words
from ua_memory.records import Problem
from ua_memory.store.proof import RACY_NS, filesystem_now
from ua_memory.store.reading import UNSEARCHED, searched

if TYPE_CHECKING:
    from ua_memory.store import FileStat, Survey

READY = "ready"
Stop = Callable[[], bool]
"""Whether there is no more time: asked after each piece of work, so that something is always done."""
AT_LEAST = 50
"""Files read between two looks at the time: a small bank is always read whole."""


def within(seconds: float) -> Stop | None:
    """Stops that many seconds from now; 0 for never."""
    until = time.monotonic() + seconds
    return (lambda: time.monotonic() > until) if seconds else None


@dataclass(frozen=True, slots=True)
class Refresh:
    """What a refresh did, in items. `semantic` is 'ready', or why there are no vectors. Where it was stopped,
    `left_files` have changed and were not read, `left_texts` have no vector yet."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    files: int = 0
    failed: tuple[Problem, ...] = ()
    seconds: float = 0.0
    semantic: str = READY
    embedded: int = 0
    notes: tuple[str, ...] = ()
    left_files: int = 0
    left_texts: int = 0


@dataclass(slots=True)
class Reading:
    """What one look at the files did to the words, in items; `files` counts those there are, `left` those
    that have changed and were not read."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    files: int = 0
    read: int = 0
    left: int = 0
    failed: list[Problem] = field(default_factory=list)

    @property
    def any(self) -> bool:
        return bool(self.added or self.changed or self.removed)


@dataclass(frozen=True, slots=True)
class Caught:
    """What was done to the vectors: texts that went through the model, and those left without a vector."""

    embedded: int = 0
    left: int = 0


def read_changes(
    store: Files, survey: Survey, words: Words, folder: Path, stop: Stop | None = None
) -> Reading:
    """Bring the words up to date with the files. `folder` is one we may touch, for the file system's clock.

    At `stop` it ends with the files read so far, those that changed last first.

    sqlite3.Error if the words cannot be written; whatever the store raises when files cannot be listed.
    """
    manifest, seen = Manifest(words.db), store.look(survey, folder)
    with words.writing():
        now = filesystem_now(folder)
        if manifest.masks() != store.masks:
            manifest.mask(store.masks)
        due, known, gone, there = _due(manifest, seen)
        done, fresh = Reading(files=there), list[Known]()
        for number, stat in enumerate(due):
            if number and not number % AT_LEAST and stop and stop():
                done.left = sum(not _known(rest, known.get(rest.path)) for rest in due[number:])
                break
            before, held = known.get(stat.path), seen.held.get(stat.path)
            fresh.append(_read_one(store, words, stat, before, held, now, done))
        whole = len(fresh) == len(due) and all(_sure(one, seen) for one in fresh)
        manifest.record(fresh)
        done.removed += sum(words.remove_file(path) for path in gone)
        if any(markdown.kind_of(path) is markdown.FileKind.ENTITIES for path in gone):
            links.settle(words.db, (), store.masked)
        manifest.forget(gone)
        if done.any:
            words.next_generation()
        manifest.seal(seen.proof if whole else "")
    return done


class _Due(NamedTuple):
    """The files to read, what the manifest says of these at least, the paths that are gone, and how many
    files there are."""

    read: list[FileStat]
    known: dict[str, Known]
    gone: list[str]
    there: int


def _due(manifest: Manifest, seen: Looked) -> _Due:
    """What is to be done. Where it is known what was touched since the manifest's state, no other file is
    asked for."""
    touched = seen.touched(manifest.sealed())
    if touched is not None:
        due = [stat for stat in seen.some(touched) if stat.path.endswith(".md")]
        return _Due(due, manifest.files(touched), [], manifest.count())
    files = {stat.path: stat for stat in seen.files if stat.path.endswith(".md")}
    known = manifest.files()
    racy = {path for path, before in known.items() if before.racy}
    due = [f for f in files.values() if f.path in racy or not _known(f, known.get(f.path))]
    # Who has changed goes before who might have, the newest before all others.
    due.sort(key=lambda stat: (_known(stat, known.get(stat.path)), -stat.changed_ns))
    return _Due(due, known, [path for path in known if path not in files], len(files))


def _sure(read: Known, seen: Looked) -> bool:
    """Whether a file was read, and cannot change unseen any more, or will be looked at again."""
    return not read.racy or (bool(read.hash) and read.path in seen.passing)


def _known(stat: FileStat, before: Known | None) -> bool:
    """Whether a file has the stamp that it was read under."""
    return before is not None and before.stamp == (stat.size, stat.mtime_ns, stat.ctime_ns, stat.inode)


def _read_one(
    store: Files,
    words: Words,
    stat: FileStat,
    before: Known | None,
    held: str | None,
    now: int,
    done: Reading,
) -> Known:
    digest, failed = before.hash if before else "", False
    try:
        data = store.blob(held) if held else store.read(stat.path)
        done.read += 1
        digest = content_hash(data)
        if not before or before.hash != digest:
            data, rest = searched(data)
            if rest:
                done.failed.append(Problem(stat.path, rest, UNSEARCHED))
            parsed = markdown.parse(data, stat.path)
            if markdown.kind_of(stat.path) is markdown.FileKind.ENTITIES:
                links.settle(words.db, parsed.records, store.masked)
            items = list(items_of(parsed, store.masked))
            if outside(stat.path):  # its ids are another bank's: nothing here is to cite or to change it
                items = [replace(item, id=None) for item in items]
            added, changed, removed = words.replace_file(stat.path, items)
            done.added, done.changed, done.removed = (
                done.added + added,
                done.changed + changed,
                done.removed + removed,
            )
    except (sqlite3.Error, MemoryError):
        raise
    except Exception as error:  # a bug or a bad file must not take the other files from the index
        failed = True
        done.failed.append(Problem(stat.path, 1, f"not indexed: {error}"))
    racy = failed or max(stat.mtime_ns, stat.ctime_ns) >= now - RACY_NS
    return Known(
        stat.path, stat.size, stat.mtime_ns, stat.ctime_ns, stat.inode, "" if failed else digest, racy
    )
