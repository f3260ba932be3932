"""Native events on Linux: one queue of the kernel's for all folders of a bank, read in its order.

The order is the point. The kernel queues an event before the call that caused it returns, so when a probe
that was written after a request comes back, every change that ended before the request has been heard of.
Whoever asks reads it (`events`): nobody waits for a thread's turn.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path

from watchdog.observers.inotify_c import InotifyConstants, InotifyEvent, Mask, WatchDescriptor

from ua_memory.daemon.events import Queue
from ua_memory.paths import CORE_NAMES, LOGS, SETTINGS, foreign

NAMES = 256
"""Marks of which it is known what made them."""

_FLAGS = (
    *("IN_MODIFY", "IN_ATTRIB", "IN_MOVED_FROM", "IN_MOVED_TO", "IN_CREATE", "IN_DELETE"),
    *("IN_DELETE_SELF", "IN_MOVE_SELF", "IN_ONLYDIR", "IN_DONT_FOLLOW"),
)
MASK = Mask(sum(getattr(InotifyConstants, name) for name in _FLAGS))
PROBED = Mask(
    MASK & ~sum(getattr(InotifyConstants, name) for name in ("IN_MODIFY", "IN_ATTRIB", "IN_DELETE"))
)
TOP = frozenset(os.fsencode(name) for name in (*(name.lower() for name in CORE_NAMES), SETTINGS, LOGS))
"""What matters of the bank's own folder, which may be a whole code project."""


class Inotify:
    """Watches a bank's folder, and `memory/` with all below it. `heard` is called at each mark, by its own
    thread or one that asks, and must not keep it. OSError where there are no instances or watches left."""

    def __init__(self, root: Path, probes: Path, heard: Callable[[], None]) -> None:
        self._root, self._probes, self._heard = os.fsencode(root), os.fsencode(probes), heard
        self.blind = ""
        """Why it may miss something; '' while it does not."""
        self._marks, self._came = 0, b""
        self._touched: deque[bytes | None] = deque(maxlen=NAMES)
        self._turn, self._names = threading.RLock(), itertools.count(1)
        self._folders: dict[WatchDescriptor, tuple[bytes, tuple[int, int]]] = {}
        self._kinds: dict[int, str] = {}
        self._queue = Queue()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        try:
            self._add(self._probes, PROBED)
            self._add_all()
        except OSError:
            self._queue.close()
            raise
        self._thread.start()

    @property
    def folders(self) -> int:
        """How many are watched."""
        return len(self._folders)

    def stop(self) -> None:
        """Hear nothing more."""
        self._queue.end()
        self._thread.join()
        with self._turn:
            self.blind = self.blind or "it was stopped"
            self._queue.close()

    # -- what has happened ---------------------------------------------------------------------------

    def marks(self) -> int | None:
        """How many changes were heard of, all that ended before this call among them.

        None where a probe's event is not among them, or something may have been missed.
        """
        name = b"%d.%d" % (os.getpid(), next(self._names))
        with self._turn:
            if self.blind or not self._probed(name):
                return None
            self._hear()
            known = self._came == name and not self.blind and self._in_place()
            return self._marks if known else None

    def touched(self, since: int) -> frozenset[bytes] | None:
        """The names of the files, below the bank's root, that made the marks since then; None where a folder
        or something unknown made one, or they were many."""
        with self._turn:
            many = self._marks - since
            if not 0 <= many <= len(self._touched):
                return None
            names = frozenset([*self._touched][len(self._touched) - many :])
        return None if None in names else frozenset(name for name in names if name)

    def alive(self) -> bool:
        """Whether a probe's event comes back, and what is watched is what is there."""
        return self.marks() is not None

    def _probed(self, name: bytes) -> bool:
        path = self._probes + b"/" + name
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
            os.unlink(path)  # noqa: PTH108 (bytes, and on the way to every answer)
        except OSError:
            return False
        return True

    def _in_place(self) -> bool:
        """Whether what is watched is what is there: another folder may have come in place of one."""
        for path, there in self._folders.values():
            try:
                found = os.lstat(path)
            except OSError:
                return False
            if (found.st_dev, found.st_ino) != there:
                return False
        return True

    # -- called by whoever has the turn to read the queue ------------------------------------------------

    def _listen(self) -> None:
        while self._queue.wait():
            with self._turn:
                self._hear()

    def _hear(self) -> None:
        for event in self._queue.events():
            if event.is_queue_overflow:
                self.on_queue_overflow()
            elif event.is_ignored:
                self.on_watch_deleted(event.wd)
            else:
                self.on_event(event)

    def on_event(self, event: InotifyEvent) -> None:
        known = self._folders.get(event.wd)
        if known is None:
            return
        folder = known[0]
        if folder == self._probes:
            if event.is_create:
                self._came = event.name
            elif event.is_delete_self or event.is_move_self:
                self.blind = "its own folder was taken away"
            return
        if not event.name:
            self._of_itself(folder, event)
        elif self._matters(folder, event):
            if event.is_directory:
                self._of_folder(folder + b"/" + event.name, event)
            self._mark(None if event.is_directory else self._below(folder) + event.name)

    def on_watch_deleted(self, wd: WatchDescriptor) -> None:
        if self._folders.pop(wd, None):
            self._mark()

    def on_queue_overflow(self) -> None:
        with contextlib.suppress(OSError):
            self._add_all()  # a folder may have come of which nothing was heard
        self._mark()

    def _matters(self, folder: bytes, event: InotifyEvent) -> bool:
        if folder == self._root:
            return event.name.lower() in TOP
        return not event.name.startswith(b".") and (event.is_directory or event.name.endswith(b".md"))

    def _of_itself(self, folder: bytes, event: InotifyEvent) -> None:
        if folder == self._root and (event.is_delete_self or event.is_move_self):
            self.blind = "the bank's folder was taken away"
        self._mark()

    def _of_folder(self, path: bytes, event: InotifyEvent) -> None:
        if event.is_moved_from:
            self._drop_all(path)
        elif event.is_create or event.is_moved_to:
            with contextlib.suppress(OSError):
                self._add_tree(path)

    def _below(self, folder: bytes) -> bytes:
        return b"./" if folder == self._root else folder[len(self._root) + 1 :] + b"/"

    def _mark(self, name: bytes | None = None) -> None:
        self._marks += 1
        self._touched.append(name)
        self._heard()

    # -- folders ---------------------------------------------------------------------------------------

    def _add_all(self) -> None:
        self._add(self._root)
        self._add_tree(self._root + b"/" + os.fsencode(LOGS))

    def _add_tree(self, path: bytes) -> None:
        """Watch a folder, then look what is in it: what comes between the two is heard of."""
        if not self._add(path):
            return
        try:
            with os.scandir(path) as entries:
                below = [
                    e.path for e in entries if not e.name.startswith(b".") and e.is_dir(follow_symlinks=False)
                ]
        except FileNotFoundError:
            return
        for folder in below:
            self._add_tree(folder)

    def _add(self, path: bytes, mask: Mask = MASK) -> bool:
        """Watch one folder; False if there is none any more. OSError, and `blind`, if that cannot be."""
        try:
            found = os.lstat(path)
            wd = self._queue.add(path, mask)
            if found.st_dev not in self._kinds:
                self._kinds[found.st_dev] = foreign(os.fsdecode(path))
            if kind := self._kinds[found.st_dev]:
                raise OSError(errno.EOPNOTSUPP, f"on {kind}, files may change unheard", os.fsdecode(path))
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            if error.errno == errno.ELOOP:  # a symbolic link, which is not followed
                return False
            self.blind = f"{os.fsdecode(path)}: {error.strerror or error}"
            raise
        self._folders[wd] = (path, (found.st_dev, found.st_ino))
        return True

    def _drop_all(self, path: bytes) -> None:
        """Watch a folder no longer that was moved away, nor what is below it."""
        for wd, (known, _) in list(self._folders.items()):
            if known == path or known.startswith(path + b"/"):
                del self._folders[wd]
                self._queue.drop(wd)
