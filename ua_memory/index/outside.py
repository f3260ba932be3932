"""Other folders' markdown (`extraPaths`), read only: what of it is there, and the bytes of both worlds.

Their files are found beside the bank's, under their absolute paths. They are never written, committed,
cited or taken for facts of the bank. Whether they have changed is told as for the bank's own: by one `lstat`
of each file and folder. Links inside such a folder are not followed, hidden files not read; what cannot be
read, or is not there, is told with every search and leaves all else as it is.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ua_memory import discovery
from ua_memory.errors import NotFound
from ua_memory.git import process
from ua_memory.index.items import IndexItem, LongLogs, items_of, session_items
from ua_memory.knowledge.sessions import IN_BANK
from ua_memory.markdown import document
from ua_memory.paths import is_truth
from ua_memory.records import Problem
from ua_memory.store import files
from ua_memory.store.files import FileStat, read
from ua_memory.text.redaction import redact

if TYPE_CHECKING:
    from ua_memory.store.scan import FileSurvey
    from ua_memory.store.store import Store


MOST = 20_000
"""Files and folders that are read of all extra paths together: somebody's whole disk is a mistake."""


SKIPPED = frozenset((b"node_modules", b"__pycache__", b"venv"))
"""Folders of other people's files, which no one means who names the folder around them."""


class AnySurvey(Protocol):
    """What a refresh needs to know of files: a `Survey`, or one with those of other folders."""

    @property
    def files(self) -> Sequence[FileStat]: ...
    @property
    def held(self) -> Mapping[str, str]: ...
    @property
    def proof(self) -> str: ...
    @property
    def racy(self) -> frozenset[str]: ...
    def touched(self, proof: str) -> frozenset[str] | None: ...
    def stats_of(self, paths: Iterable[str]) -> Sequence[FileStat]: ...


@dataclass(frozen=True, slots=True)
class _CombinedSurvey:
    """A survey, and the files of other folders with a name for their state."""

    seen: FileSurvey
    others: tuple[FileStat, ...]
    stamp: str

    @property
    def files(self) -> Sequence[FileStat]:
        return (*self.seen.files, *self.others)

    @property
    def held(self) -> Mapping[str, str]:
        return self.seen.held

    @property
    def proof(self) -> str:
        return f"{self.seen.proof} {self.stamp}" if self.seen.proof and self.stamp else ""

    @property
    def racy(self) -> frozenset[str]:
        return self.seen.racy

    def touched(self, proof: str) -> frozenset[str] | None:
        theirs = f" {self.stamp}"
        return (
            self.seen.touched(proof.removesuffix(theirs)) if self.stamp and proof.endswith(theirs) else None
        )

    def stats_of(self, paths: Iterable[str]) -> Sequence[FileStat]:
        return self.seen.stats_of(paths)


def outside(path: str) -> bool:
    """Whether a path of the index is that of another folder's file."""
    return path.startswith("/")


class OutsideFiles:
    """The bank's files and those of other folders. `notes` says what of the latter could not be read."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.notes: list[str] = []
        self._names: list[bytes] = []
        self._stamp = ""
        self._files: tuple[FileStat, ...] = ()
        self._sessions = os.path.realpath(store.bank.sessions)
        self._session_files: tuple[FileStat, ...] = ()
        self._session_stamp = ""

    def use(self, store: Store) -> None:
        """Go on with the bank as it was opened anew, whose settings may name other folders."""
        if store.config.extra_paths != self._store.config.extra_paths:
            self.notes, self._names, self._stamp, self._files = [], [], "", ()
        self._store = store

    @property
    def masks(self) -> str:
        """The name of the patterns of the bank's own that text is masked by; '' for none."""
        return discovery.masks(self._store.config.redact)

    def blob(self, name: str) -> bytes:
        """What the trail holds in place of a file."""
        return self._store.history.blob(name)

    def read(self, path: str) -> bytes:
        """A file's present bytes. NotFound where there is none, or where it is none of ours to read."""
        return self._outer(path) if outside(path) else self._store.read(path)

    def truth(self, path: str) -> bytes:
        """What may be searched of a file; see `Store.truth`."""
        return self._outer(path) if outside(path) else self._store.truth(path)

    def items(
        self, path: str, data: bytes, logs: LongLogs | None = None
    ) -> tuple[list[IndexItem], Sequence[Problem]]:
        """What can be found in a file with these bytes, and what is wrong in it, masked; see `items_of` for
        `logs`."""
        if self.is_session(path) or path.startswith(IN_BANK):
            found = session_items(data, path, self.masked)
            if found is not None or self.is_session(path):
                return found or [], ()
        read = document.parse(files.searched(data)[0], path)
        items = items_of(read, self.masked, logs)
        if outside(path):  # its ids are another bank's: nothing here is to cite or to change them
            # Some 40 ms, which a bank without outside files need not wait for.
            from ua_memory.text.dates import day_of_note

            day = day_of_note(path, read.front, self._store.config.zone or self._store.now().tzinfo)
            return [replace(item, id=None, day=day) for item in items], ()
        problems = [replace(one, message=self.masked(one.message)) for one in read.problems]
        return list(items), problems

    def masked(self, text: str) -> str:
        """A text without the secrets in it: what the index may hold of it."""
        return redact(text, self._store.config.redact).text

    def look(self, seen: FileSurvey, scratch: Path) -> AnySurvey:
        """A survey with what lies in other folders now. `scratch` is for the file system's clock."""
        sessions = self._look_at_sessions(scratch)
        if not self._store.config.extra_paths:
            return _CombinedSurvey(seen, *sessions) if sessions else seen
        began = _now(scratch)
        if not self._stamp or discovery.stamp(discovery.look("", self._names)) != self._stamp:
            found: dict[bytes, None] = {}
            self.notes = []
            for entry in self._store.config.extra_paths:
                found |= dict.fromkeys(self._named(entry, MOST - len(found)))
            self._names = list(found)
            rows = discovery.look("", self._names)
            self._files = tuple(
                FileStat("/" + os.fsdecode(name), *row[1:])
                for name, row in zip(self._names, rows, strict=True)
                if row and stat.S_ISREG(row[0]) and name.endswith(b".md")
            )
            self._stamp = discovery.stamp(rows) if files.settled(rows, began) else ""
        outer, stamp = self._files, self._stamp
        if sessions:
            outer, stamp = (*outer, *sessions[0]), stamp and sessions[1] and f"{stamp}-{sessions[1]}"
        return _CombinedSurvey(seen, outer, stamp)

    def _look_at_sessions(self, scratch: Path) -> tuple[tuple[FileStat, ...], str] | None:
        """The files of sessions, and a name for the state of their folder; None where there is none. Each
        write there makes a new file, so the folder's own stat tells whether anything has changed."""
        folder = os.fsencode(self._sessions)[1:]
        rows = discovery.look("", [folder])
        if not rows[0]:
            return None
        if not self._session_stamp or discovery.stamp(rows) != self._session_stamp:
            began = _now(scratch)
            rows = discovery.look("", [folder])
            with os.scandir(self._sessions) as entries:
                names = [os.fsencode(entry.path)[1:] for entry in entries if _is_session(entry.name)]
            found = zip(names, discovery.look("", names), strict=True)
            self._session_files = tuple(FileStat("/" + os.fsdecode(n), *row[1:]) for n, row in found if row)
            self._session_stamp = discovery.stamp(rows) if files.settled(rows, began) else ""
        return self._session_files, self._session_stamp

    def is_session(self, path: str) -> bool:
        """Whether a path of the index is that of a session's file."""
        return path.startswith(f"{self._sessions}/")

    def _named(self, entry: str, room: int) -> Iterator[bytes]:
        """What there is to look at of one extra path, a link to it included: bytes without the first `/`."""
        given = os.path.normpath(self._store.bank.root / entry)
        if entry.startswith("~"):
            self.notes.append(f"extraPaths: {entry}: unknown home folder; write the full path")
            return
        top = Path(os.path.realpath(given))
        yield from dict.fromkeys((os.fsencode(given)[1:], os.fsencode(top)[1:]))
        if not top.exists():
            self.notes.append(f"extraPaths: {entry}: not there")
        elif top.is_dir():
            for number, name in enumerate(self._below(os.fsencode(top))):
                if number >= room:
                    self.notes.append(
                        f"extraPaths: {entry}: only the first {room} files and folders are read"
                    )
                    return
                yield name[1:]

    def _below(self, folder: bytes) -> Iterator[bytes]:
        try:
            with os.scandir(folder) as entries:
                there = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            self.notes.append(f"extraPaths: {os.fsdecode(folder)}: {error.strerror}")
            return
        for entry in there:
            if entry.name.startswith(b".") or not os.fsdecode(entry.name).isprintable():
                continue
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in SKIPPED:
                    yield entry.path
                    yield from self._below(entry.path)
            elif entry.name.endswith(b".md") and not self._ours(os.fsdecode(entry.path)):
                yield entry.path

    def unread(self) -> int:
        """How many markdown files are in the bank's folder that are neither its own nor in an extra path: at
        most `MOST`."""
        root = os.path.realpath(self._store.bank.root)
        tops = {os.path.realpath(self._store.bank.root / entry) for entry in self._store.config.extra_paths}
        if any(f"{root}/".startswith(f"{top.rstrip('/')}/") for top in tops):
            return 0
        found = (os.fsdecode(name) for name in self._below(os.fsencode(root)) if name.endswith(b".md"))
        return sum(1 for name in islice(found, MOST) if not any(f"{name}/".startswith(f"{t}/") for t in tops))

    def _ours(self, path: str) -> bool:
        """Whether a file is the bank's own, which is read as such."""
        root = f"{os.path.realpath(self._store.bank.root)}/"
        return path.startswith(root) and is_truth(path.removeprefix(root))

    def _outer(self, path: str) -> bytes:
        tops = [os.path.realpath(self._store.bank.root / entry) for entry in self._store.config.extra_paths]
        real = os.path.realpath(path)
        tops.append(self._sessions)
        if not path.endswith(".md") or not any(real == top or real.startswith(f"{top}/") for top in tops):
            return self._store.read(path)  # which says that it is no path of the bank
        data = read(Path(path))
        if data is None:
            raise NotFound("no such file", where=path, hint="ua-memory search")
        return data


def _is_session(name: str) -> bool:
    return name.endswith(".md") and name[0] != "."


def _now(scratch: Path) -> int:
    try:
        return process.filesystem_now(scratch)
    except OSError:
        return time.time_ns()  # the clock of a file system that we cannot write to cannot be asked
