"""An open revision, and the hand edits in the files it touches."""

from __future__ import annotations

import contextlib
import json
import re
import threading
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ua_memory.config import Config
from ua_memory.discovery import LOGS, SETTINGS
from ua_memory.errors import Conflict, GitFailed, Malformed, UaMemoryError, Usage
from ua_memory.git import history as git_history
from ua_memory.git.history import History, OtherBranches, RepositoryState, unified_file_diff
from ua_memory.git.repository import Revision, blob_id
from ua_memory.markdown import document
from ua_memory.paths import Bank, confined
from ua_memory.records import Fact, Passage, Record
from ua_memory.store import saves, swap
from ua_memory.store.files import read
from ua_memory.store.lock import synchronized
from ua_memory.store.saves import DroppedLine, Edit, diff_hunks
from ua_memory.store.scan import FileSurvey, bytes_on_disk
from ua_memory.text import redaction

# -- draft -------------------------------------------------------------------------------------------------
# An open revision: the files it has read, their new content, and its message.
#
# All text from our interfaces passes through `Draft.write`, which removes secrets, and refuses text without
# an origin and changes that would lose a record. There is no other way to write a file, so that none is
# skipped.


@dataclass(frozen=True, slots=True)
class TouchedFile:
    """A file of a revision: its bytes on `disk`, in HEAD (`in_head`), and those that the revision changes
    (`start`).

    `start` differs from `disk` only if a stale save was merged. A hand edit of a `held` file is not
    committed.
    """

    path: str
    disk: bytes | None
    in_head: bytes | None
    start: bytes | None
    held: bool = False
    restored: tuple[DroppedLine, ...] = ()
    theirs: bytes | None = None
    """Of a stale save: the save with the person's own dropped lines put back."""
    forgotten: tuple[str, ...] = ()
    """The forgotten ids that a save has again; their statements are removed from it."""
    without_forgotten: bytes | None = None
    """The save without these statements."""
    other_branch: str = ""
    """The branch that the file's content is from, by a checkout: it is no edit, and `start` is HEAD's."""

    @property
    def is_stale(self) -> bool:
        """Whether the save lacked something that is put back (`restored`)."""
        return self.start != self.saved

    @property
    def saved(self) -> bytes | None:
        """What is committed of the person's save."""
        return self.in_head if self.other_branch else self.without_forgotten if self.forgotten else self.disk


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of a revision: its commit (None while it is not committed yet), notes, and {kind: number}
    of redacted secrets."""

    revision: str | None
    paths: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    redacted: Mapping[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Draft:
    """The open revision that `Store.revision` yields. Paths are relative to the bank; bytes are whole
    files."""

    op: str
    door: str
    touch: Callable[[str], TouchedFile]
    patterns: Mapping[str, str]
    typed: Callable[[str, bytes, int], bool] = lambda path, data, line: False
    """(path, HEAD's bytes, line) → whether a person wrote that line, ids that were appended aside."""
    link_name: Callable[[str], str] = lambda path: path.rpartition("/")[2].removesuffix(".md")
    """path → the file's name in links; see `paths.LinkNames`."""
    subject: str = ""
    body: str = ""
    facts: list[str] = field(default_factory=list)
    trailers: dict[str, list[str]] = field(default_factory=dict)
    trial: bool = False
    """A dry run: nothing is written."""
    even_if_empty: bool = False
    """Commit even if no file changes, so that a run that found nothing is not repeated."""
    by_person: bool = False
    """The person is the commit's author."""
    joins: str = ""
    """The commit of another machine's history that is merged: the second parent."""
    foreign_files: dict[str, bytes | None] = field(default_factory=dict)
    """Files of that history that are not memory: they are committed, and not written to disk here."""
    already_done: Revision | None = None
    """The earlier revision with the same request id: nothing will be written."""
    files: dict[str, bytes | None] = field(default_factory=dict)
    touched: dict[str, TouchedFile] = field(default_factory=dict)
    redacted: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    result: Result = Result(None)

    def get(self, path: str) -> bytes | None:
        """A file as this revision leaves it; None if there is none."""
        if path in self.files:
            return self.files[path]
        if path not in self.touched:
            self.touched[path] = self.touch(path)
        return self.touched[path].start

    def read(self, path: str) -> bytes:
        """The same, but empty if there is none."""
        return self.get(path) or b""

    def exists(self, path: str) -> bool:
        return self.get(path) is not None

    def redact(self, text: str) -> str:
        """The text with secrets masked; they are counted in the result."""
        clean = redaction.redact(text, self.patterns)
        self.redacted.update(clean.counts)
        return clean.text

    def write(
        self, path: str, data: bytes, *, removes: Iterable[Record] = (), restored: bool = False
    ) -> None:
        """Set a file's new bytes.

        `removes` are the records that are meant to be removed; Malformed if any other would be lost. Bytes
        that the bank had before (undo, merge) are `restored` unchecked and unredacted.
        """
        before = self.read(path)
        if not restored:
            data = self._redact_new(before, data)
            self._refuse_loss(path, before, data, removes)
        self.files[path] = data

    def delete(self, path: str) -> None:
        """Delete a file."""
        self.read(path)
        self.files[path] = None

    def restore(self, path: str, data: bytes | None) -> None:
        """Set a file to bytes that the bank had before, or delete it for None."""
        if data is not None:
            self.write(path, data, restored=True)
        elif self.exists(path):
            self.delete(path)

    def changed(self) -> dict[str, bytes | None]:
        """The files whose bytes this revision changes."""
        return {path: data for path, data in self.files.items() if data != self.touched[path].start}

    def diff(self, first: str = "", context: int = 3) -> str:
        """A unified diff of this revision, with the file `first` at the top."""
        return "".join(
            unified_file_diff(path, self.touched[path].start or b"", data or b"", context)
            for path, data in sorted(self.changed().items(), key=lambda file: (file[0] != first, file[0]))
        )

    def _redact_new(self, before: bytes, after: bytes) -> bytes:
        """`after` with secrets masked in the lines that `before` does not have."""
        pieces: list[bytes] = []
        for old, new, same in diff_hunks(before, after):
            pieces += new if same else self._redact_hunk(old, new)
        return b"".join(pieces)

    def _redact_hunk(self, old: list[bytes], new: list[bytes]) -> list[bytes]:
        if len(old) == len(new) and all(
            n.startswith(o.rstrip(b"\r\n")) for o, n in zip(old, new, strict=True)
        ):
            # Text was appended to lines, such as a block id: only that is ours to redact.
            kept = [o.rstrip(b"\r\n") for o in old]
            return [k + self._redact_bytes(n[len(k) :]) for k, n in zip(kept, new, strict=True)]
        return [self._redact_bytes(b"".join(new))]

    def _redact_bytes(self, data: bytes) -> bytes:
        text = data.decode("utf-8", "surrogateescape")
        clean = self.redact(text)
        return data if clean == text else clean.encode("utf-8", "surrogateescape")

    def _refuse_loss(self, path: str, before: bytes, after: bytes, removes: Iterable[Record]) -> None:
        then = Counter(r for r in document.parse(before, path).records if not isinstance(r, Passage))
        parsed = document.parse(after, path).records
        now = Counter(r for r in parsed if not isinstance(r, Passage))
        lost = then - now - Counter(r for r in removes if not isinstance(r, Passage))
        if lost:
            what = f"the change would lose {len(lost)} record(s) it was not asked to touch"
            where = f"{path}:{next(iter(lost)).place.line}"
            raise Malformed(what, where=where, hint="ua-memory verify")
        bare = {r for r in now - then if isinstance(r, Fact) and not r.origin}
        bare -= {r for r in parsed if isinstance(r, Fact) and (r.heading.client or r.heading.origin)}
        if bare:  # a person's line that gets an id, or is retired, needs no origin
            theirs = {replace(r, id=None, retired=None) for r in then if isinstance(r, Fact)}
            bare = {r for r in bare if replace(r, id=None, retired=None) not in theirs}
        if bare:
            what = "a fact without an origin was about to be written"
            raise Malformed(what, where=path, hint="report this as a bug")


# -- edits -------------------------------------------------------------------------------------------------
# Comparing a file with HEAD: what the person changed, what a stale save dropped, what is held.


FORGOTTEN_FILE = f"{LOGS}/forgotten.md"
SEEN_EDITS_FILE = "young.json"
"""A file of the state folder: {path: [newest revision, blob id in HEAD, blob id on disk]} of hand edits that
a search has read before they were committed. A stale save would lose them otherwise."""
SEEN_EDITS_KEPT = 20
READ_ATTEMPTS = 3
"""An edited file is read so often if it changes while it is inspected: half of a file would look like a
deletion."""


def _has_conflict(data: bytes | None) -> bool:
    """Whether a text has git's conflict markers, which are no memory, but in a code fence are."""
    fence, marks = b"", [b"<<<<<<< ", b"=======", b">>>>>>> "]
    for line in (data or b"").splitlines():
        if found := re.match(rb"\s*(`{3,}|~{3,})", line):
            fence = b"" if fence and found[1].startswith(fence) else fence or found[1]
        elif not fence and line.removeprefix(BOM_UTF8).startswith(marks[0]):
            marks.pop(0)
            if not marks:
                return True
    return False


class EditInspector:
    """Compares disk and HEAD of one bank, file by file; `survey()` compares all files.

    Thread-safe: while one thread writes, another may look for stale saves.
    """

    def __init__(self, bank: Bank, config: Config, history: History, scan: Callable[[], FileSurvey]) -> None:
        self._root, self._few, self._history, self._survey = bank.root, config.few, history, scan
        self.lock = threading.RLock()
        self._histories: dict[str, saves.FileHistory] = {}
        self._unsure: set[str] = set()
        self._other_branches = OtherBranches(history, "")
        self._stale: dict[str, tuple[str | None, bytes | None, bool]] = {}
        self._seen_file = bank.state / SEEN_EDITS_FILE

    @synchronized
    def inspect(
        self, path: str, owed: Mapping[str, bytes | None], *, adopting: bool = False, accept: bool = False
    ) -> TouchedFile:
        """The state of a file at the beginning of a revision.

        `owed` are {path: bytes} of commits that are not made yet. While `adopting`, a symbolic link counts as
        a deleted file; otherwise it raises Usage. `accept` confirms a held disappearance.
        """
        for _ in range(READ_ATTEMPTS):
            found = self._inspect(path, owed, adopting, accept)
            if found.disk in (found.in_head, bytes_on_disk(self._root / path)):
                break
        return found

    def _inspect(self, path: str, owed: Mapping[str, bytes | None], adopt: bool, accept: bool) -> TouchedFile:
        try:
            disk = read(file := confined(self._root, path))
        except Usage:
            if not adopt:
                raise
            disk, file = None, None  # a link replaced the file
        in_head = owed[path] if path in owed else self._head_bytes(path, disk)
        if disk is None and file and in_head is not None:
            disk = read(file, expected=True)
        if in_head == disk:
            return TouchedFile(path, disk, in_head, disk)
        if path not in owed and not accept and (branch := self._other_branch(path, disk, in_head)):
            return TouchedFile(path, disk, in_head, in_head, other_branch=branch)
        if _has_conflict(disk) and not _has_conflict(in_head):
            git = "ua-memory git" if self._history.own else "git"
            hint = f"resolve them, or end the merge: {git} status"
            raise Conflict("the file has git's conflict markers", where=path, hint=hint)
        if path == SETTINGS:
            held = disk is None and not accept and path in self._survey().held
            return TouchedFile(path, disk, in_head, disk, held=held)
        return self._classify(Edit(path, in_head, disk), accept=accept)

    @synchronized
    def is_conflicted(self, path: str) -> bool:
        """Whether git has written its conflict markers into a file, which nobody has resolved yet."""
        with contextlib.suppress(UaMemoryError):
            disk = read(confined(self._root, path))
            return _has_conflict(disk) and not _has_conflict(self._head_bytes(path, disk))
        return False

    @synchronized
    def read_position(self) -> RepositoryState:
        """The repository's position (branch, HEAD, index) as a revision begins."""
        now = git_history.read_state(self._history)
        self._other_branches = OtherBranches(self._history, now.branch)
        return now

    def _other_branch(self, path: str, disk: bytes | None, in_head: bytes | None) -> str:
        """Another branch that has exactly these bytes of a changed file, which a checkout has written; or
        ''."""
        with contextlib.suppress(GitFailed):
            blob = None if disk is None else blob_id(disk)
            if found := self._other_branches.has(path, blob, new=in_head is None):
                return found
            if blob and in_head and sum(saves.lost_records({path: Edit(path, in_head, disk)}).values()):
                return self._other_branches.checked_out_around(path, blob)
        return ""

    @synchronized
    def is_of_other_branch(self, path: str) -> bool:
        """Whether a file has the content of another branch."""
        self.read_position()
        with contextlib.suppress(UaMemoryError):
            return bool(self.inspect(path, {}, adopting=True).other_branch)
        return False

    @synchronized
    def is_stale(self, path: str, head: str | None) -> bool:
        """Whether the file on disk is a stale save, or what the repository around the bank has checked out.
        The answer is cached until the edit is committed; `head` is the newest commit as it is now.

        The bank's lock is not held, so it is cached only if file and HEAD are still those that were compared.
        """
        if path == SETTINGS:
            return False
        try:
            disk = read(confined(self._root, path))
        except UaMemoryError:  # reported when it is committed
            return False
        known = self._stale.get(path)
        if known is not None and known[:2] == (head, disk):
            return known[2]
        self.read_position()
        try:
            found = self.inspect(path, {}, adopting=True)
        except Conflict:  # git's markers, which are not committed
            return False
        lacks = found.is_stale or bool(found.other_branch and not self._history.own)
        if found.disk == bytes_on_disk(self._root / path) and self._history.head() == head:
            self._stale[path] = head, found.disk, lacks
            if found.disk is not None and not lacks:
                self._record_seen(path, found.disk, head)
        return lacks

    def _record_seen(self, path: str, disk: bytes, head: str | None) -> None:
        """Store the content of a hand edit that is not committed yet, in case a stale save overwrites it.

        Only if HEAD is still `head`, which the edit was made on.
        """
        with contextlib.suppress(UaMemoryError, OSError):
            in_head = self._head_blob_id(path) if self._history.exists else None
            known, name = self._seen_edits(), blob_id(disk)
            if not in_head or in_head == name or known.get(path, [])[1:] == [in_head, name]:
                return
            revision = self._newest_revision(path)
            self._history.run("hash-object", "-w", "--stdin", stdin=disk)
            if self._history.head() != head:
                return
            rows = {**{p: row for p, row in known.items() if p != path}, path: [revision, in_head, name]}
            newest = json.dumps(dict([*rows.items()][-SEEN_EDITS_KEPT:])).encode()
            swap.replace_file(self._seen_file, newest, self._seen_file.with_suffix(".fresh"))

    def _seen_edits(self) -> dict[str, list[str]]:
        with contextlib.suppress(OSError, ValueError, TypeError, AttributeError):
            found = json.loads(self._seen_file.read_bytes())
            return {path: row for path, row in found.items() if len(row) == 3}
        return {}

    def _newest_revision(self, path: str) -> str:
        return next((revision.id for revision in self._file_history(path).recent()), "")

    def _stale_against_seen(self, edit: Edit) -> saves.StaleSave | None:
        """The merge of a stale save with a recorded hand edit that it has overwritten; None if it has not."""
        known = self._seen_edits().get(edit.path)
        if not known or edit.in_head is None or edit.disk is None:
            return None
        revision, in_head, name = known
        if in_head != blob_id(edit.in_head) or name == blob_id(edit.disk):
            return None
        if revision != self._newest_revision(edit.path):
            return None
        past = saves.FileHistory(edit.path, self._history, self._history.head(), name)
        seen = self._history.read_all([(name, "")])[0]
        return saves.detect_stale(Edit(edit.path, seen, edit.disk), past) if seen else None

    def _head_bytes(self, path: str, disk: bytes | None) -> bytes | None:
        """The file in HEAD. If git fails, the bytes on disk: the commit is rebased later, when git works
        again."""
        self._unsure.discard(path)
        try:
            name = self._head_blob_id(path) if self._history.exists else None
            return self._history.blob_or_guess(name, disk)
        except GitFailed:
            self._unsure.add(path)
            return disk

    @synchronized
    def is_unsure(self, paths: Iterable[str]) -> bool:
        """Whether git failed to read one of these from HEAD, so that the disk's bytes were used instead."""
        return not self._unsure.isdisjoint(paths)

    def _head_blob_id(self, path: str) -> str | None:
        """The blob id of a file in HEAD."""
        return self._history.blobs([path]).get(path)

    @synchronized
    def inspect_save(
        self, path: str, save: bytes | None, in_head: bytes | None, intermediate: Sequence[bytes] = ()
    ) -> TouchedFile:
        """Classify a save that came while the file was being written and had these `intermediate` contents.
        Whether it is held is decided without other files."""
        return self._classify(Edit(path, in_head, save), alone=True, intermediate=intermediate)

    def _classify(
        self, edit: Edit, *, accept: bool = False, alone: bool = False, intermediate: Sequence[bytes] = ()
    ) -> TouchedFile:
        path, in_head, disk = edit.path, edit.in_head, edit.disk
        if path == SETTINGS:
            return TouchedFile(path, disk, in_head, disk)
        stale, start, forgotten = None, disk, frozenset[str]()
        with contextlib.suppress(GitFailed):
            # With `accept` the person has confirmed the deletions: it is not a stale save.
            if not accept:
                over_seen = None if alone else self._stale_against_seen(edit)
                stale = over_seen or saves.detect_stale(edit, self._file_history(path), intermediate)
                if stale and not alone and self._has_moved(path, [row.name for row in stale.restored]):
                    stale = None
            start = stale.merged if stale else disk
            forgotten = self._forgotten_ids(edit) if disk else forgotten
        if stale or forgotten:
            without_forgotten = saves.remove_ids(disk or b"", path, forgotten)
            theirs = saves.remove_ids((stale.theirs if stale else disk) or b"", path, forgotten)
            start = saves.remove_ids(start or b"", path, forgotten)
            restored = tuple(row for row in stale.restored if row.name[1:] not in forgotten) if stale else ()
            ids = tuple(sorted(forgotten))
            return TouchedFile(path, disk, in_head, start, False, restored, theirs, ids, without_forgotten)
        held = bool(saves.paths_to_hold({path: edit}, self._few)) if alone else self._is_held(edit)
        return TouchedFile(path, disk, in_head, disk, held=held and not accept)

    def _has_moved(self, path: str, names: Sequence[str]) -> bool:
        """Whether a fact that a save lacks is in another file: no old buffer knew where it would be moved."""
        ids = b"|".join(re.escape(name.encode()) for name in names if name.startswith("^"))
        others = (self._root / stat.path for stat in self._survey().files if stat.path != path)
        return bool(ids) and any(re.search(rb"(?m) (?:%b)\s*$" % ids, read(file) or b"") for file in others)

    def _forgotten_ids(self, edit: Edit) -> frozenset[str]:
        """The forgotten ids that a save has again. A person who wants such a statement back undoes the
        forgetting, or writes it without the id."""
        again = edit.after.keys() - edit.before.keys()
        ids = {name for kind, name in again if kind == "id"}
        if not ids or edit.path == FORGOTTEN_FILE:
            return frozenset()
        texts = (self._history.read("HEAD", FORGOTTEN_FILE), read(self._root / FORGOTTEN_FILE))
        keys = (key for data in texts for key in saves.by_key(data, FORGOTTEN_FILE))
        stones = {name for kind, name in keys if kind == "Tombstone"}
        return frozenset(ids & stones)

    def _file_history(self, path: str) -> saves.FileHistory:
        past, head = self._histories.get(path), self._history.head()
        if past is None or past.head != head:
            past = self._histories[path] = saves.FileHistory(path, self._history, head)
        return past

    def _is_held(self, edit: Edit) -> bool:
        """Whether the edit is part of a held disappearance, over all files."""
        if edit.disk is not None and not any(saves.lost_records({edit.path: edit}).values()):
            return False
        return edit.path in self._survey().held
