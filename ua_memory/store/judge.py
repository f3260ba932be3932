"""What a revision finds in a file: what is the person's, what a stale buffer dropped, what is held back."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence

from ua_memory.config import Config
from ua_memory.errors import GitFailed, UaMemoryError, Usage
from ua_memory.history import History, Moment, Others, blob_id, switching
from ua_memory.paths import LOGS, SETTINGS, Bank, confined
from ua_memory.store import saves, swap
from ua_memory.store.draft import Touched
from ua_memory.store.reading import read
from ua_memory.store.saves import Edit
from ua_memory.store.survey import Survey
from ua_memory.store.verdict import contents
from ua_memory.turns import in_turn

FORGOTTEN = f"{LOGS}/forgotten.md"
YOUNG = "young.json"
"""In the state folder: {path: [its newest revision, its blob there, the blob that stood there]} of edits that
are too young to be committed. An old buffer saved over one takes with it what nothing else knows."""
YOUNG_MOST = 20
ALONE = 8
"""Files that git is asked for one by one: a process each, and each of 4 ms."""


class Judge:
    """Compares disk and trail of one bank, file by file; `survey` is asked where all files matter.

    Threads may share it: while one writes, another may look for old buffers.
    """

    def __init__(self, bank: Bank, config: Config, history: History, survey: Callable[[], Survey]) -> None:
        self._root, self._few, self._history, self._survey = bank.root, config.few, history, survey
        self.turn = threading.RLock()
        self._known: dict[str, saves.Past] = {}
        self._at: str | None = None
        self._alone = 0
        self._names: dict[str, str] | None = None
        self._guessed: set[str] = set()
        self._read: dict[str, bytes] = {}
        self._others = Others(history, "")
        self._stale: dict[str, tuple[str | None, bytes | None, bool]] = {}
        self._young = bank.state / YOUNG

    @in_turn
    def touch(
        self, path: str, owed: Mapping[str, bytes | None], *, adopting: bool = False, accept: bool = False
    ) -> Touched:
        """A file as a revision meets it. `owed` are the bytes that commits still owed will give the trail;
        `adopting` takes a link in its place for a file that went, where else Usage is raised; `accept` lets
        a held disappearance stand."""
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
            return Touched(path, disk, trail, disk)
        if path not in owed and not accept and (branch := self._elsewhere(path, disk, trail)):
            return Touched(path, disk, trail, trail, branch=branch)
        if path == SETTINGS:
            return Touched(
                path, disk, trail, disk, held=disk is None and not accept and path in self._survey().held
            )
        return self._judge(Edit(path, trail, disk), accept=accept)

    @in_turn
    def begin(self) -> Moment:
        """Where the repository stands as a revision begins."""
        now = switching.moment(self._history)
        self._others = Others(self._history, now.branch)
        return now

    def _elsewhere(self, path: str, disk: bytes | None, trail: bytes | None) -> str:
        """The branch that a differing file is of, byte by byte: git put it there, and not an editor."""
        with contextlib.suppress(GitFailed):
            blob = None if disk is None else blob_id(disk)
            return self._others.has(path, blob, new=trail is None)
        return ""

    @in_turn
    def is_elsewhere(self, path: str) -> bool:
        """Whether a file is as on another branch."""
        self.begin()
        with contextlib.suppress(UaMemoryError):
            return bool(self.touch(path, {}, adopting=True).branch)
        return False

    @in_turn
    def is_stale(self, path: str) -> bool:
        """Whether a file is an old buffer as it lies there; asked again and again while an edit is young."""
        try:
            disk = read(confined(self._root, path))
        except UaMemoryError:  # who is to commit it will be told
            return False
        head, known = self._history.head(), self._stale.get(path)
        if known is None or known[:2] != (head, disk):
            self.begin()
            found = path != SETTINGS and self.touch(path, {}, adopting=True).put_back
            known = self._stale[path] = head, disk, found
            if disk is not None and not found:
                self._remember(path, disk)
        return known[2]

    def _remember(self, path: str, disk: bytes) -> None:
        """Keep what a young edit left: somebody has seen it, and an old buffer may be saved over it."""
        with contextlib.suppress(UaMemoryError, OSError):
            trail = self._name(path) if self._history.exists else None
            known, name = self._remembered(), blob_id(disk)
            if not trail or trail == name or known.get(path, [])[1:] == [trail, name]:
                return
            revision = self._newest(path)
            self._history.run("hash-object", "-w", "--stdin", stdin=disk)
            rows = {**{p: row for p, row in known.items() if p != path}, path: [revision, trail, name]}
            fresh = self._young.with_suffix(".fresh")
            fresh.unlink(missing_ok=True)
            swap.write(fresh, json.dumps(dict([*rows.items()][-YOUNG_MOST:])).encode(), mode=0o600)
            fresh.replace(self._young)

    def _remembered(self) -> dict[str, list[str]]:
        with contextlib.suppress(OSError, ValueError, TypeError, AttributeError):
            found = json.loads(self._young.read_bytes())
            return {path: row for path, row in found.items() if len(row) == 3}
        return {}

    def _newest(self, path: str) -> str:
        return next((revision.id for revision in self._past(path).newest()), "")

    def _from_young(self, edit: Edit) -> saves.Stale | None:
        """What is to come of a save over a young edit of the person's, which the trail has not yet."""
        known = self._remembered().get(edit.path)
        if not known or edit.trail is None or edit.disk is None:
            return None
        revision, trail, name = known
        if trail != blob_id(edit.trail) or name == blob_id(edit.disk):
            return None
        if revision != self._newest(edit.path):
            return None
        past = saves.Past(edit.path, self._history, self._history.head(), name)
        young = self._history.read_all([(name, "")])[0]
        return saves.stale(Edit(edit.path, young, edit.disk), past) if young else None

    @in_turn
    def expect(self, paths: Sequence[str]) -> None:
        """Read at once what the trail has of files that are to be touched, where they are many."""
        if len(paths) > ALONE and self._history.exists:
            with contextlib.suppress(GitFailed):  # it will be told of each when that is touched
                self._at, self._alone, self._names, self._read = self._history.head(), ALONE, None, {}
                self._names = names = self._history.blobs(rev=self._at or "HEAD")
                self._read = contents(self._history, [names[path] for path in paths if path in names])

    def _trail(self, path: str, disk: bytes | None) -> bytes | None:
        """What the trail has of a file. Where git cannot say, what is on disk: nothing can be told apart
        then, and the commit that is owed is put on top of what the trail turns out to have."""
        self._guessed.discard(path)
        try:
            name = self._name(path) if self._history.exists else None
            if name is None or (disk is not None and blob_id(disk) == name):
                return disk if name else None
            return self._read[name] if name in self._read else self._history.blob(name)
        except GitFailed:
            self._guessed.add(path)
            return disk

    @in_turn
    def guessed(self, paths: Iterable[str]) -> bool:
        """Whether git could not say what it has of one of them: it may have other bytes than were taken."""
        return not self._guessed.isdisjoint(paths)

    def _name(self, path: str) -> str | None:
        """Under what git keeps a file. Who asks for many, as an import does, has them all named at once."""
        head = self._history.head()
        if head != self._at:
            self._at, self._alone, self._names, self._read = head, 0, None, {}
        self._alone += 1
        if self._alone <= ALONE:
            return self._history.blobs([path]).get(path)
        if self._names is None:
            self._names = self._history.blobs(rev=head or "HEAD")
        return self._names.get(path)

    @in_turn
    def save(self, path: str, came: bytes | None, trail: bytes | None, amid: Sequence[bytes] = ()) -> Touched:
        """What a save is that came while the file was being replaced, and these stood in it: to be seen by
        itself."""
        return self._judge(Edit(path, trail, came), alone=True, amid=amid)

    def _judge(
        self, edit: Edit, *, accept: bool = False, alone: bool = False, amid: Sequence[bytes] = ()
    ) -> Touched:
        path, trail, disk = edit.path, edit.trail, edit.disk
        if path == SETTINGS:
            return Touched(path, disk, trail, disk)
        old, start, left = None, disk, frozenset[str]()
        with contextlib.suppress(GitFailed):
            # Who accepts what is gone has seen it: then it is no old buffer.
            if not accept:
                young = None if alone else self._from_young(edit)
                old = young or saves.stale(edit, self._past(path), amid)
            start = old.merged if old else disk
            left = self._forgotten(edit) if disk else left
        if old or left:
            hand = saves.without(disk or b"", path, left)
            theirs = saves.without((old.theirs if old else disk) or b"", path, left)
            start = saves.without(start or b"", path, left)
            back = tuple(line for line in old.back if line.name[1:] not in left) if old else ()
            return Touched(path, disk, trail, start, False, back, theirs, tuple(sorted(left)), hand)
        held = bool(saves.held({path: edit}, self._few)) if alone else self._is_held(edit)
        return Touched(path, disk, trail, disk, held=held and not accept)

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

    def _past(self, path: str) -> saves.Past:
        past, head = self._known.get(path), self._history.head()
        if past is None or past.head != head:
            past = self._known[path] = saves.Past(path, self._history, head)
        return past

    def _is_held(self, edit: Edit) -> bool:
        """Whether the edit is part of a disappearance; in other files facts may be gone, or turn up again."""
        if edit.disk is not None and not any(saves.vanished({edit.path: edit}).values()):
            return False
        return edit.path in self._survey().held
