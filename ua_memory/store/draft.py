"""An open revision, and the hand edits in the files it touches."""

from __future__ import annotations

import contextlib
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ua_memory.config import Config
from ua_memory.discovery import LOGS, SETTINGS
from ua_memory.errors import GitFailed, Malformed, UaMemoryError, Usage
from ua_memory.git import history as git_history
from ua_memory.git.history import History, OtherBranches, RepositoryState, difference
from ua_memory.git.repository import Revision, blob_id
from ua_memory.markdown import document
from ua_memory.paths import Bank, confined
from ua_memory.records import Fact, Passage, Record
from ua_memory.store import saves, swap
from ua_memory.store.files import read
from ua_memory.store.lock import synchronized
from ua_memory.store.merge3 import diff_hunks
from ua_memory.store.saves import DroppedLine, Edit
from ua_memory.store.scan import FileSurvey, bytes_on_disk
from ua_memory.text import redaction

# -- draft -------------------------------------------------------------------------------------------------
# A revision while it is being written: what it read, what it wants, what it says about itself.
#
# Everything a door adds passes through `Draft.write`, which takes out secrets and refuses text without an
# origin or a change that would lose a record. No door can forget these, since no other way leads to a file.


@dataclass(frozen=True, slots=True)
class TouchedFile:
    """A file of a revision: bytes on disk, in the history, and those that the revision starts from.

    `start` differs from `disk` only if a stale buffer was merged. The history of a `held` file differs from
    the disk, and stays so.
    """

    path: str
    disk: bytes | None
    trail: bytes | None
    start: bytes | None
    held: bool = False
    restored: tuple[DroppedLine, ...] = ()
    theirs: bytes | None = None
    """Where something was put back: the save with the person's own lines among it."""
    forgotten: tuple[str, ...] = ()
    """The ids of what was forgotten that a save has again: it is left out of the file, and of the trail."""
    without_forgotten: bytes | None = None
    """The save without it."""
    other_branch: str = ""
    """Another branch, of which the file is at the moment: nobody has edited it; it starts from the trail."""

    @property
    def put_back(self) -> bool:
        """Whether an old buffer lacked something that is put back: `restored` tells what."""
        return self.start != self.saved

    @property
    def saved(self) -> bytes | None:
        """What the trail gets of the person's save."""
        return self.trail if self.other_branch else self.without_forgotten if self.forgotten else self.disk


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of a revision: its commit (None while it is missing), notes, and counts of redacted
    secrets."""

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
    """Whether a person typed this line of a file as the trail has it, whatever it was given since."""
    link_name: Callable[[str], str] = lambda path: path.rpartition("/")[2].removesuffix(".md")
    """What a file is called in a link; see `paths.LinkNames`."""
    subject: str = ""
    body: str = ""
    facts: list[str] = field(default_factory=list)
    trailers: dict[str, list[str]] = field(default_factory=dict)
    trial: bool = False
    """Nothing of it is to be written: it only shows what would change."""
    even_if_empty: bool = False
    """Commit also when no file changes: a run that found nothing must not be repeated."""
    by_person: bool = False
    """A person gave these words through a door: the commit has their name."""
    joins: str = ""
    """The history of another machine that the commit brings in."""
    carried: dict[str, bytes | None] = field(default_factory=dict)
    """Files of that history that are no memory: they go into the commit, and no file here is touched."""
    answered: Revision | None = None
    """The revision that carried out this request id already: leave the block, nothing will be written."""
    files: dict[str, bytes | None] = field(default_factory=dict)
    touched: dict[str, TouchedFile] = field(default_factory=dict)
    redacted: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    result: Result = Result(None)

    def get(self, path: str) -> bytes | None:
        """A file as this revision would leave it; None where there is none."""
        if path in self.files:
            return self.files[path]
        if path not in self.touched:
            self.touched[path] = self.touch(path)
        return self.touched[path].start

    def read(self, path: str) -> bytes:
        """The same; empty if there is none."""
        return self.get(path) or b""

    def exists(self, path: str) -> bool:
        return self.get(path) is not None

    def redact(self, text: str) -> str:
        """The text without its secrets; they are counted in the result."""
        clean = redaction.redact(text, self.patterns)
        self.redacted.update(clean.taken)
        return clean.text

    def write(
        self, path: str, data: bytes, *, removes: Iterable[Record] = (), restored: bool = False
    ) -> None:
        """Set a file's new bytes.

        `removes` names the records that are meant to go. `restored` marks bytes that the bank had before
        (undo, merge): nobody's old words are redacted or stamped anew. Malformed stops a change that would
        lose any other record, the file untouched.
        """
        before = self.read(path)
        if not restored:
            data = self._cleansed(before, data)
            self._refuse_loss(path, before, data, removes)
        self.files[path] = data

    def delete(self, path: str) -> None:
        """Delete a file."""
        self.read(path)
        self.files[path] = None

    def restore(self, path: str, data: bytes | None) -> None:
        """Set a file to bytes that the bank had before, or delete it where these are None."""
        if data is not None:
            self.write(path, data, restored=True)
        elif self.exists(path):
            self.delete(path)

    def changed(self) -> dict[str, bytes | None]:
        """The files whose bytes this revision changes."""
        return {path: data for path, data in self.files.items() if data != self.touched[path].start}

    def diff(self, first: str = "", context: int = 3) -> str:
        """What this revision changes, in all files, as a unified diff; the file `first` comes first."""
        return "".join(
            difference(path, self.touched[path].start or b"", data or b"", context)
            for path, data in sorted(self.changed().items(), key=lambda file: (file[0] != first, file[0]))
        )

    def _cleansed(self, before: bytes, after: bytes) -> bytes:
        """`after` with secrets taken out of what `before` does not have; their own lines stay as they are."""
        pieces: list[bytes] = []
        for old, new, same in diff_hunks(before, after):
            pieces += new if same else self._cleansed_hunk(old, new)
        return b"".join(pieces)

    def _cleansed_hunk(self, old: list[bytes], new: list[bytes]) -> list[bytes]:
        if len(old) == len(new) and all(
            n.startswith(o.rstrip(b"\r\n")) for o, n in zip(old, new, strict=True)
        ):
            # Lines that were only added to, as by a block id: what stood there is not ours to change.
            kept = [o.rstrip(b"\r\n") for o in old]
            return [k + self._cleansed_bytes(n[len(k) :]) for k, n in zip(kept, new, strict=True)]
        return [self._cleansed_bytes(b"".join(new))]

    def _cleansed_bytes(self, data: bytes) -> bytes:
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
        theirs = {replace(r, id=None, retired=None) for r in then if isinstance(r, Fact)}
        for record in now - then:
            if not isinstance(record, Fact) or record.origin:
                continue
            if replace(record, id=None, retired=None) in theirs:
                continue  # a person's line that is given an id, or retired, stays theirs
            if not _under_our_heading(record, parsed):
                what = "a fact without an origin was about to be written"
                raise Malformed(what, where=path, hint="report this as a bug")


def _under_our_heading(record: Fact, parsed: tuple[Record, ...]) -> bool:
    """Whether some equal fact of the file stands under a heading that names who said it."""
    same = (r for r in parsed if r == record)
    return any(isinstance(r, Fact) and (r.heading.client or r.heading.origin) for r in same)


# -- edits -------------------------------------------------------------------------------------------------
# How a file differs from HEAD: what the person changed, what a stale buffer dropped, what is held.


FORGOTTEN = f"{LOGS}/forgotten.md"
SEEN_EDITS = "young.json"
"""In the state folder: {path: [its newest revision, its blob there, the blob on disk]} of edits that a search
has read and that are too recent to be committed. A stale buffer saved over one would lose it."""
SEEN_MOST = 20
LOOKS = 3
"""So often an edited file is looked at anew where it has changed since it was read: it may have been half
written, and what it lacked would be taken for deleted."""


class EditInspector:
    """Compares disk and HEAD of one bank, file by file; `survey` is asked where all files matter.

    Threads may share it: while one writes, another may look for stale buffers.
    """

    def __init__(
        self, bank: Bank, config: Config, history: History, survey: Callable[[], FileSurvey]
    ) -> None:
        self._root, self._few, self._history, self._survey = bank.root, config.few, history, survey
        self.lock = threading.RLock()
        self._known: dict[str, saves.FileHistory] = {}
        self._unsure: set[str] = set()
        self._others = OtherBranches(history, "")
        self._stale: dict[str, tuple[str | None, bytes | None, bool]] = {}
        self._seen_file = bank.state / SEEN_EDITS

    @synchronized
    def inspect(
        self, path: str, owed: Mapping[str, bytes | None], *, adopting: bool = False, accept: bool = False
    ) -> TouchedFile:
        """A file as a revision meets it. `owed` are the bytes that commits still owed will give the trail;
        `adopting` takes a link in its place for a file that went, where else Usage is raised; `accept` lets
        a held disappearance stand."""
        for _ in range(LOOKS):
            found = self._inspect(path, owed, adopting, accept)
            if found.disk in (found.trail, bytes_on_disk(self._root / path)):
                break
        return found

    def _inspect(
        self, path: str, owed: Mapping[str, bytes | None], adopting: bool, accept: bool
    ) -> TouchedFile:
        try:
            disk = read(file := confined(self._root, path))
        except Usage:
            if not adopting:
                raise
            disk, file = None, None  # a link where a file was: to the bank, the file is gone
        trail = owed[path] if path in owed else self._trail(path, disk)
        if disk is None and file and trail is not None:
            disk = read(file, expected=True)
        if trail == disk:
            return TouchedFile(path, disk, trail, disk)
        if path not in owed and not accept and (branch := self._other_branch(path, disk, trail)):
            return TouchedFile(path, disk, trail, trail, other_branch=branch)
        if path == SETTINGS:
            return TouchedFile(
                path, disk, trail, disk, held=disk is None and not accept and path in self._survey().held
            )
        return self._classify(Edit(path, trail, disk), accept=accept)

    @synchronized
    def begin(self) -> RepositoryState:
        """Where the repository stands as a revision begins."""
        now = git_history.moment(self._history)
        self._others = OtherBranches(self._history, now.branch)
        return now

    def _other_branch(self, path: str, disk: bytes | None, trail: bytes | None) -> str:
        """The branch that a differing file is of, byte by byte: git put it there, and not an editor."""
        with contextlib.suppress(GitFailed):
            blob = None if disk is None else blob_id(disk)
            return self._others.has(path, blob, new=trail is None)
        return ""

    @synchronized
    def is_of_other_branch(self, path: str) -> bool:
        """Whether a file is as on another branch."""
        self.begin()
        with contextlib.suppress(UaMemoryError):
            return bool(self.inspect(path, {}, adopting=True).other_branch)
        return False

    @synchronized
    def is_stale(self, path: str) -> bool:
        """Whether a file on disk is a stale buffer; asked again and again until its edit is committed.

        Nobody holds the lock here: what is remembered is what was looked at, and only where no other process
        has written the file or moved the trail meanwhile.
        """
        if path == SETTINGS:
            return False
        try:
            disk = read(confined(self._root, path))
        except UaMemoryError:  # who is to commit it will be told
            return False
        head, known = self._history.head(), self._stale.get(path)
        if known is not None and known[:2] == (head, disk):
            return known[2]
        self.begin()
        found = self.inspect(path, {}, adopting=True)
        if found.disk == bytes_on_disk(self._root / path) and self._history.head() == head:
            self._stale[path] = head, found.disk, found.put_back
            if found.disk is not None and not found.put_back:
                self._record_seen(path, found.disk, head)
        return found.put_back

    def _record_seen(self, path: str, disk: bytes, head: str | None) -> None:
        """Keep the content of an edit that is not committed yet: a stale buffer may be saved over it.

        The edit is of what the trail had at `head`; of a newer one it would lack what came with that.
        """
        with contextlib.suppress(UaMemoryError, OSError):
            trail = self._name(path) if self._history.exists else None
            known, name = self._seen_edits(), blob_id(disk)
            if not trail or trail == name or known.get(path, [])[1:] == [trail, name]:
                return
            revision = self._newest(path)
            self._history.run("hash-object", "-w", "--stdin", stdin=disk)
            if self._history.head() != head:
                return
            rows = {**{p: row for p, row in known.items() if p != path}, path: [revision, trail, name]}
            newest = json.dumps(dict([*rows.items()][-SEEN_MOST:])).encode()
            swap.replace_file(self._seen_file, newest, self._seen_file.with_suffix(".fresh"))

    def _seen_edits(self) -> dict[str, list[str]]:
        with contextlib.suppress(OSError, ValueError, TypeError, AttributeError):
            found = json.loads(self._seen_file.read_bytes())
            return {path: row for path, row in found.items() if len(row) == 3}
        return {}

    def _newest(self, path: str) -> str:
        return next((revision.id for revision in self._file_history(path).newest()), "")

    def _stale_against_seen(self, edit: Edit) -> saves.StaleSave | None:
        """The merge of a save over an edit of the person's that is not committed yet, if the save is
        stale."""
        known = self._seen_edits().get(edit.path)
        if not known or edit.trail is None or edit.disk is None:
            return None
        revision, trail, name = known
        if trail != blob_id(edit.trail) or name == blob_id(edit.disk):
            return None
        if revision != self._newest(edit.path):
            return None
        past = saves.FileHistory(edit.path, self._history, self._history.head(), name)
        seen = self._history.read_all([(name, "")])[0]
        return saves.detect_stale(Edit(edit.path, seen, edit.disk), past) if seen else None

    def _trail(self, path: str, disk: bytes | None) -> bytes | None:
        """What the trail has of a file. Where git cannot say, what is on disk: nothing can be told apart
        then, and the commit that is owed is put on top of what the trail turns out to have."""
        self._unsure.discard(path)
        try:
            name = self._name(path) if self._history.exists else None
            if name is None or (disk is not None and blob_id(disk) == name):
                return disk if name else None
            return self._history.blob(name)
        except GitFailed:
            self._unsure.add(path)
            return disk

    @synchronized
    def is_unsure(self, paths: Iterable[str]) -> bool:
        """Whether git could not say what it has of one of them: it may have other bytes than were taken."""
        return not self._unsure.isdisjoint(paths)

    def _name(self, path: str) -> str | None:
        """Under what git keeps a file."""
        return self._history.blobs([path]).get(path)

    @synchronized
    def inspect_save(
        self, path: str, came: bytes | None, trail: bytes | None, intermediate: Sequence[bytes] = ()
    ) -> TouchedFile:
        """A save that came while the file was being replaced and had these `intermediate` contents. Other
        files do not count for whether it is held."""
        return self._classify(Edit(path, trail, came), alone=True, intermediate=intermediate)

    def _classify(
        self, edit: Edit, *, accept: bool = False, alone: bool = False, intermediate: Sequence[bytes] = ()
    ) -> TouchedFile:
        path, trail, disk = edit.path, edit.trail, edit.disk
        if path == SETTINGS:
            return TouchedFile(path, disk, trail, disk)
        old, start, left = None, disk, frozenset[str]()
        with contextlib.suppress(GitFailed):
            # Who accepts what is gone has seen it: then it is no old buffer.
            if not accept:
                over_seen = None if alone else self._stale_against_seen(edit)
                old = over_seen or saves.detect_stale(edit, self._file_history(path), intermediate)
            start = old.merged if old else disk
            left = self._forgotten(edit) if disk else left
        if old or left:
            hand = saves.without(disk or b"", path, left)
            theirs = saves.without((old.theirs if old else disk) or b"", path, left)
            start = saves.without(start or b"", path, left)
            back = tuple(line for line in old.back if line.name[1:] not in left) if old else ()
            return TouchedFile(path, disk, trail, start, False, back, theirs, tuple(sorted(left)), hand)
        held = bool(saves.held({path: edit}, self._few)) if alone else self._is_held(edit)
        return TouchedFile(path, disk, trail, disk, held=held and not accept)

    def _forgotten(self, edit: Edit) -> frozenset[str]:
        """The ids that a save has again though they were forgotten. What bears one was ours; a person who
        wants it back undoes the forgetting, or says it in words of their own."""
        again = saves.keys(edit.disk, edit.path).keys() - saves.keys(edit.trail, edit.path).keys()
        ids = {name for kind, name in again if kind == "id"}
        if not ids or edit.path == FORGOTTEN:
            return frozenset()
        texts = (self._history.read("HEAD", FORGOTTEN), read(self._root / FORGOTTEN))
        stones = {name for data in texts for kind, name in saves.keys(data, FORGOTTEN) if kind == "Tombstone"}
        return frozenset(ids & stones)

    def _file_history(self, path: str) -> saves.FileHistory:
        past, head = self._known.get(path), self._history.head()
        if past is None or past.head != head:
            past = self._known[path] = saves.FileHistory(path, self._history, head)
        return past

    def _is_held(self, edit: Edit) -> bool:
        """Whether the edit is part of a disappearance; in other files facts may be gone, or turn up again."""
        if edit.disk is not None and not any(saves.lost_records({edit.path: edit}).values()):
            return False
        return edit.path in self._survey().held
