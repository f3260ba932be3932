"""Markdown in other folders (`extraPaths`), indexed read-only, next to the bank's own files.

Its files are indexed under their absolute paths. They are never written, committed, cited or taken for facts
of the bank. Changes are detected by one `lstat` of each file and folder, as for the bank. Symlinks inside
such a folder and hidden files are skipped; what is missing or cannot be read is reported with every search.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from ua_memory import discovery
from ua_memory.errors import NotFound
from ua_memory.git import process
from ua_memory.index.items import IndexItem, LogCache, items_of, session_items
from ua_memory.knowledge.sessions import IN_BANK
from ua_memory.markdown import document
from ua_memory.markdown.lines import FileKind, day_of, kind_of
from ua_memory.paths import is_memory_file
from ua_memory.records import Problem
from ua_memory.store import files
from ua_memory.store.files import FileStat, read
from ua_memory.store.scan import FileSurvey, valid_name
from ua_memory.text.patterns import late
from ua_memory.text.redaction import redact

if TYPE_CHECKING:
    from ua_memory.store.store import Store


MOST_OUTSIDE = 20_000
"""Files and folders that are indexed of all extra paths together: a whole disk is a mistake."""


SKIPPED = frozenset((b"node_modules", b"__pycache__", b"venv"))
"""Names of folders that are not searched for files."""


_YEAR = late(r"(?:19|20)\d\d")


@dataclass(frozen=True)
class _CombinedSurvey(FileSurvey):
    """The survey of the bank, with the files of other folders and an id of their state."""

    others: tuple[FileStat, ...] = ()
    stamp: str = ""

    @cached_property
    def files(self) -> tuple[FileStat, ...]:
        return (*FileSurvey(self.snapshot).files, *self.others)

    def touched(self, proof: str) -> frozenset[str] | None:
        suffix = f" {self.stamp}"
        if not self.stamp or not proof.endswith(suffix):
            return None
        return super().touched(proof.removesuffix(suffix))


def _combined(bank: FileSurvey, others: tuple[FileStat, ...], stamp: str) -> FileSurvey:
    proof = f"{bank.proof} {stamp}" if bank.proof and stamp else ""
    return _CombinedSurvey(bank.snapshot, proof, others, stamp)


def is_outside(path: str) -> bool:
    """Whether a path in the index is that of a file in another folder."""
    return path.startswith("/")


class OutsideFiles:
    """The bank's files and those of other folders. `notes` has what could not be read of the latter."""

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
        """Switch to the reopened bank, whose settings may name other folders."""
        if store.config.extra_paths != self._store.config.extra_paths:
            self.notes, self._names, self._stamp, self._files = [], [], "", ()
        self._store = store

    @property
    def masks(self) -> str:
        """The id of the bank's own redaction patterns; '' if it has none."""
        return discovery.masks(self._store.config.redact)

    def blob(self, name: str) -> bytes:
        """The content of a git blob in the bank's history."""
        return self._store.history.blob(name)

    def read(self, path: str) -> bytes:
        """A file's current bytes. NotFound if there is none, or the path is in none of the folders."""
        return self._read_outside(path) if is_outside(path) else self._store.read(path)

    def accepted_bytes(self, path: str) -> bytes:
        """The bytes of a file that may be searched; see `Store.accepted_bytes`."""
        return self._read_outside(path) if is_outside(path) else self._store.accepted_bytes(path)

    def items(
        self, path: str, data: bytes, logs: LogCache | None = None
    ) -> tuple[list[IndexItem], Sequence[Problem]]:
        """(items, problems) of a file with these bytes, masked; `logs` as for `items_of`."""
        if self.is_session(path) or path.startswith(IN_BANK):
            found = session_items(data, path, self.masked)
            if found is not None or self.is_session(path):
                return found or [], ()
        read = document.parse(files.searchable_part(data)[0], path)
        items = list(items_of(read, self.masked, logs))
        headings = {item.heading for item in items}
        is_note = kind_of(path) in (FileKind.LOG, FileKind.DOCUMENT) and not day_of(path)
        if is_outside(path) or (is_note and (read.front or any(map(_YEAR.search, headings)))):
            # Takes 40 ms, which most banks do not need.
            from ua_memory.text.dates import day_of_heading, day_of_note

            zone = self._store.config.zone or self._store.now().tzinfo
            day = day_of_note(path, read.front, zone)
            under = {heading: day_of_heading(heading, zone) or day for heading in headings}
            items = [replace(item, day=item.day or under[item.heading]) for item in items]
        if is_outside(path):  # its ids are another bank's: they must not be cited or changed from here
            return [replace(item, id=None) for item in items], ()
        problems = [replace(one, message=self.masked(one.message)) for one in read.problems]
        return items, problems

    def masked(self, text: str) -> str:
        """A text with its secrets redacted, as it may be indexed."""
        return redact(text, self._store.config.redact).text

    def survey(self, bank: FileSurvey, scratch: Path) -> FileSurvey:
        """Extend a survey of the bank by the files of other folders. `scratch` is a writable folder, to read
        the file system's clock."""
        sessions = self._survey_sessions(scratch)
        if not self._store.config.extra_paths:
            return _combined(bank, *sessions) if sessions else bank
        began = _filesystem_now(scratch)
        if not self._stamp or discovery.stamp(discovery.look("", self._names)) != self._stamp:
            found: dict[bytes, None] = {}
            self.notes = []
            for entry in self._store.config.extra_paths:
                found |= dict.fromkeys(self._list_entry(entry, MOST_OUTSIDE - len(found)))
            self._names = list(found)
            rows = discovery.look("", self._names)
            self._files = tuple(
                FileStat("/" + os.fsdecode(name), *row[1:])
                for name, row in zip(self._names, rows, strict=True)
                if row and stat.S_ISREG(row[0]) and name.endswith(b".md")
            )
            self._stamp = discovery.stamp(rows) if files.is_settled(rows, began) else ""
        others, stamp = self._files, self._stamp
        if sessions:
            others, stamp = (*others, *sessions[0]), stamp and sessions[1] and f"{stamp}-{sessions[1]}"
        return _combined(bank, others, stamp)

    def _survey_sessions(self, scratch: Path) -> tuple[tuple[FileStat, ...], str] | None:
        """(session files, id of the state of their folder); None without a folder. Each write replaces the
        file, so the folder's own stat tells whether anything has changed."""
        folder = os.fsencode(self._sessions)[1:]
        rows = discovery.look("", [folder])
        if not rows[0]:
            return None
        if not self._session_stamp or discovery.stamp(rows) != self._session_stamp:
            began = _filesystem_now(scratch)
            rows = discovery.look("", [folder])
            with os.scandir(self._sessions) as entries:
                paths = (entry.path for entry in entries if entry.name[0] != ".")
                names = [os.fsencode(path)[1:] for path in paths if path.endswith(".md")]
            found = zip(names, discovery.look("", names), strict=True)
            self._session_files = tuple(FileStat("/" + os.fsdecode(n), *row[1:]) for n, row in found if row)
            self._session_stamp = discovery.stamp(rows) if files.is_settled(rows, began) else ""
        return self._session_files, self._session_stamp

    def is_session(self, path: str) -> bool:
        """Whether a path in the index is that of a session file."""
        return path.startswith(f"{self._sessions}/")

    def paths(self) -> Iterator[str]:
        """The markdown files of all extra paths."""
        for entry in self._store.config.extra_paths:
            names = map(os.fsdecode, self._list_entry(entry, MOST_OUTSIDE))
            yield from (f"/{name}" for name in names if name.endswith(".md"))

    def _list_entry(self, path: str, most: int) -> Iterator[bytes]:
        """Yield the files and folders of one extra path, including the path itself if it is a symlink:
        absolute paths as bytes, without the leading `/`."""
        given = os.path.normpath(self._store.bank.root / path)
        if path.startswith("~"):
            self.notes.append(f"extraPaths: {path}: unknown home folder; write the full path")
            return
        top = Path(os.path.realpath(given))
        yield from dict.fromkeys((os.fsencode(given)[1:], os.fsencode(top)[1:]))
        if not top.exists():
            self.notes.append(f"extraPaths: {path}: not there")
        elif top.is_dir():
            for number, name in enumerate(self._walk(os.fsencode(top))):
                if number >= most:
                    self.notes.append(f"extraPaths: {path}: only the first {most} files and folders are read")
                    return
                yield name[1:]

    def _walk(self, folder: bytes) -> Iterator[bytes]:
        try:
            with os.scandir(folder) as iterator:
                entries = sorted(iterator, key=lambda entry: entry.name)
        except OSError as error:
            self.notes.append(f"extraPaths: {os.fsdecode(folder)}: {error.strerror}")
            return
        for entry in entries:
            if entry.name.startswith(b".") or not valid_name(os.fsdecode(entry.name)):
                continue
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in SKIPPED:
                    yield entry.path
                    yield from self._walk(entry.path)
            elif entry.name.endswith(b".md") and not self._is_own(os.fsdecode(entry.path)):
                yield entry.path

    def count_unindexed(self) -> int:
        """The number of markdown files in the bank's folder that are neither the bank's own nor in an extra
        path, at most `MOST_OUTSIDE`."""
        root = os.path.realpath(self._store.bank.root)
        tops = {os.path.realpath(self._store.bank.root / entry) for entry in self._store.config.extra_paths}
        if any(f"{root}/".startswith(f"{top.rstrip('/')}/") for top in tops):
            return 0
        found = (os.fsdecode(name) for name in self._walk(os.fsencode(root)) if name.endswith(b".md"))
        return sum(
            1 for name in islice(found, MOST_OUTSIDE) if not any(f"{name}/".startswith(f"{t}/") for t in tops)
        )

    def _is_own(self, path: str) -> bool:
        """Whether a file is one of the bank's own."""
        root = f"{os.path.realpath(self._store.bank.root)}/"
        return path.startswith(root) and is_memory_file(path.removeprefix(root))

    def _read_outside(self, path: str) -> bytes:
        tops = [os.path.realpath(self._store.bank.root / entry) for entry in self._store.config.extra_paths]
        real = os.path.realpath(path)
        tops.append(self._sessions)
        if not path.endswith(".md") or not any(real == top or real.startswith(f"{top}/") for top in tops):
            return self._store.read(path)  # raises the error for a path outside the bank
        data = read(Path(path))
        if data is None:
            raise NotFound("no such file", where=path, hint="ua-memory search")
        return files.in_utf8(data)


def _filesystem_now(scratch: Path) -> int:
    try:
        return process.filesystem_now(scratch)
    except OSError:
        return time.time_ns()  # the clock of a read-only file system cannot be read
