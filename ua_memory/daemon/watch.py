"""File events of a bank: inotify, FSEvents or kqueue, or polling where there are none."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import itertools
import os
import select
import struct
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer, inotify_c
from watchdog.observers.inotify_c import InotifyConstants, InotifyEvent, Mask, WatchDescriptor

from ua_memory.discovery import CORE_NAMES, LOGS, SETTINGS
from ua_memory.paths import foreign, make_private

# -- watch -------------------------------------------------------------------------------------------------
# Hearing of changes to a bank's files: by native events, or, where there are none, by looking now and then.
#
# An event is only a mark. Whoever acts on it reads the files, so that a lost, doubled or late event
# costs time and nothing else.


BEAT = 60.0
"""Seconds between two heartbeats: a probe is written, and its event must come."""
LOOKS = 2.0
"""Seconds between two looks at the files where there are no events."""
POLLED, HEARD = 500, 2000
"""So many times what a look took passes before the next one, without events and with them: looking takes at
most 0.2 and 0.05 % of a core."""


class Native(Protocol):
    """Where events come from. `marks` counts the changes seen, None if something may have been missed."""

    blind: str

    @property
    def folders(self) -> int: ...
    def marks(self) -> int | None: ...
    def touched(self, since: int) -> frozenset[bytes] | None: ...
    def alive(self) -> bool: ...
    def stop(self) -> None: ...


Opens = Callable[[Path, Path, Callable[[], None]], Native]


def native(root: Path, probes: Path, on_change: Callable[[], None]) -> Native:
    """This system's events. OSError or ImportError where there are none to be had."""
    return (Inotify if sys.platform == "linux" else Observed)(root, probes, on_change)


class Watch:
    """The watch over one bank. `on_change` is called at each mark, by another thread; `say` writes a log."""

    def __init__(
        self, root: Path, local: Path, on_change: Callable[[], None], say: Callable[[str], None],
        opens: Opens = native,
    ) -> None:  # fmt: skip
        self._root, self._probes = root, local / "watch"
        self._on_change, self._say, self._opens = on_change, say, opens
        self._native: Native | None = None
        self.why = "it has not started"
        """Why there are no events; '' where there are."""
        self.beaten = 0.0
        """When the last heartbeat came back, in seconds since the epoch; 0 for never."""
        self._next_beat, self._next_look = 0.0, 0.0

    @property
    def polls(self) -> bool:
        """Whether files are looked at now and then, since there are no events."""
        return self._native is None

    def start(self) -> None:
        """Begin to hear. Never fails: without events there is polling."""
        self.stop()
        self._next_beat = time.monotonic() + BEAT
        try:
            make_private(self._probes)
            for left in self._probes.iterdir():
                left.unlink()
            self._native = self._opens(self._root, self._probes, self._on_change)
        except (OSError, ImportError) as error:
            self._polled(getattr(error, "strerror", None) or str(error))
            return
        if self.beat():
            if self.why:
                self._say(f"watches {self._native.folders - 1} folders by events")
            self.why = ""

    def stop(self) -> None:
        """Hear nothing more."""
        found, self._native = self._native, None
        if found is not None:
            found.stop()

    def marks(self) -> int | None:
        """How many changes were seen, all that ended before the call among them; None if nobody knows."""
        found = self._native
        return found.marks() if found is not None and not found.blind else None

    def touched(self, since: int) -> frozenset[bytes] | None:
        """The names of the files, below the bank's root, that were touched since a mark; None where something
        else was, or nobody knows."""
        found = self._native
        return found.touched(since) if found is not None and not found.blind else None

    def beat(self) -> bool:
        """Whether events come: a probe's must. Where they do not, polling begins, and says so."""
        found = self._native
        if found is None:
            return False
        if not found.blind and found.alive():
            self.beaten = time.time()
            return True
        self._polled(found.blind or "a test event did not arrive")
        return False

    # -- what is to be done from time to time ------------------------------------------------------------

    def next(self) -> float:
        """When `tend` is due, in seconds of the monotonic clock."""
        return min(self._next_beat, self._next_look) if self.polls else max(self._next_beat, self._next_look)

    def tend(self) -> bool:
        """Begin, keep the heart beating, try again to have events where there are none: from one thread.
        Whether it is time to look at all files, seen as events or not."""
        now = time.monotonic()
        if now < self.next():
            return False
        if now >= self._next_beat:
            self._next_beat = now + BEAT
            if not self.beat():
                self.start()
        return True

    def took(self, seconds: float) -> None:
        """Say how long a look at all files took: where it is long, they are looked at less often."""
        share = max(LOOKS, POLLED * seconds) if self.polls else HEARD * seconds
        self._next_look = time.monotonic() + share

    def state(self) -> dict[str, Any]:
        """How it stands, as `daemon status --json` has it; asks for a heartbeat."""
        with contextlib.suppress(OSError):
            self.beat()
        when = time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(self.beaten)) if self.beaten else ""
        told = {"mode": "polling" if self.polls else "events", "heartbeat": when, "why": self.why}
        native = self._native  # which another thread may take away
        folders = {"folders": native.folders - 1} if native else {}
        return {key: value for key, value in told.items() if value} | folders

    def _polled(self, why: str) -> None:
        self.stop()
        if self.why != why:
            self._say(f"no events, polls the files: {why}")
        self.why = why


# -- events ------------------------------------------------------------------------------------------------
# The kernel's queue of file events on Linux, read in its order by whoever asks, at once.
#
# watchdog's `InotifyFD` reads it in a thread of its own, whose turn one would have to wait for: on two busy
# cores for four milliseconds. What asks the kernel is watchdog's all the same.


SIZE = 1 << 16
"""Bytes that are read at once, some thousand events."""
EVENT = 16 + 256
"""Bytes of the longest event: four numbers and a name."""
_HEAD = struct.Struct("iIII")
_LIMITS = {errno.ENOSPC: "inotify watch limit reached", errno.EMFILE: "inotify instance limit reached"}


class EventQueue:
    """One queue, empty at first. OSError where there is none to be had, or no watch left."""

    def __init__(self) -> None:
        self._ended, self._end = os.pipe()
        self._fd = inotify_c.inotify_init()
        if self._fd < 0:
            why = _error()
            for fd in (self._ended, self._end):  # it is tried again each minute
                os.close(fd)
            raise why
        os.set_inheritable(self._fd, False)
        os.set_blocking(self._fd, False)

    def add(self, path: bytes, mask: Mask) -> WatchDescriptor:
        """Watch a folder; the same number again for one that is watched."""
        found = inotify_c.inotify_add_watch(self._fd, path, mask)
        if found < 0:
            raise _error()
        return found

    def drop(self, watch: WatchDescriptor) -> None:
        """Watch it no longer; what was queued of it comes still. One that is gone is none of our business."""
        inotify_c.inotify_rm_watch(self._fd, watch)

    def wait(self) -> bool:
        """Wait until something has happened; False once it is ended."""
        poll = select.poll()
        for fd in (self._fd, self._ended):
            poll.register(fd, select.POLLIN)
        return all(fd != self._ended for fd, _ in poll.poll())

    def events(self) -> Iterator[InotifyEvent]:
        """What has happened until now, without waiting."""
        data = b" " * SIZE
        while len(data) > SIZE - EVENT:  # there was no room for more
            try:
                data = os.read(self._fd, SIZE)
            except BlockingIOError:
                return
            at = 0
            while at < len(data):
                watch, mask, cookie, length = _HEAD.unpack_from(data, at)
                at += _HEAD.size + length
                yield InotifyEvent(watch, mask, cookie, data[at - length : at].rstrip(b"\0"))

    def end(self) -> None:
        """Have `wait` come back, now and ever after."""
        os.write(self._end, b"!")

    def close(self) -> None:
        """Let go of it, once nobody waits."""
        for fd in (self._fd, self._ended, self._end):
            os.close(fd)


def _error() -> OSError:
    """Why the kernel refused."""
    number = ctypes.get_errno()
    return OSError(number, _LIMITS.get(number) or os.strerror(number))


# -- inotify -----------------------------------------------------------------------------------------------
# Native events on Linux: one queue of the kernel's for all folders of a bank, read in its order.
#
# The order is the point. The kernel queues an event before the call that caused it returns, so when a probe
# that was written after a request comes back, every change that ended before the request has been seen.
# Whoever asks reads it (`events`): nobody waits for a thread's turn.


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
    """Watches a bank's folder, and `memory/` with all below it. `on_change` is called at each mark, by its
    own thread or one that asks, and must return at once. OSError without instances or watches left."""

    def __init__(self, root: Path, probes: Path, on_change: Callable[[], None]) -> None:
        self._root, self._probes, self._on_change = os.fsencode(root), os.fsencode(probes), on_change
        self.blind = ""
        """Why it may miss something; '' while it does not."""
        self._marks, self._came = 0, b""
        self._touched: deque[bytes | None] = deque(maxlen=NAMES)
        self._turn, self._names = threading.RLock(), itertools.count(1)
        self._folders: dict[WatchDescriptor, tuple[bytes, tuple[int, int]]] = {}
        self._kinds: dict[int, str] = {}
        self._queue = EventQueue()
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
        """How many changes were seen, all that ended before this call among them.

        None where a probe's event is not among them, or something may have been missed.
        """
        name = b"%d.%d" % (os.getpid(), next(self._names))
        with self._turn:
            if self.blind or not self._probed(name):
                return None
            self._read_events()
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
                self._read_events()

    def _read_events(self) -> None:
        for event in self._queue.events():
            if event.is_queue_overflow:
                self.on_queue_overflow()
            elif event.is_ignored:
                if self._folders.pop(event.wd, None):
                    self._mark()
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
                self.blind = "its folder was removed"
            return
        if not event.name:
            if folder == self._root and (event.is_delete_self or event.is_move_self):
                self.blind = "the bank's folder was removed"
            self._mark()
        elif self._matters(folder, event):
            if event.is_directory:
                self._of_folder(folder + b"/" + event.name, event)
            below = b"./" if folder == self._root else folder[len(self._root) + 1 :] + b"/"
            self._mark(None if event.is_directory else below + event.name)

    def on_queue_overflow(self) -> None:
        with contextlib.suppress(OSError):
            self._add_all()  # a folder may have come of which there was no event
        self._mark()

    def _matters(self, folder: bytes, event: InotifyEvent) -> bool:
        if folder == self._root:
            return event.name.lower() in TOP
        return not event.name.startswith(b".") and (event.is_directory or event.name.endswith(b".md"))

    def _of_folder(self, path: bytes, event: InotifyEvent) -> None:
        if event.is_moved_from:
            self._drop_all(path)
        elif event.is_create or event.is_moved_to:
            with contextlib.suppress(OSError):
                self._add_tree(path)

    def _mark(self, name: bytes | None = None) -> None:
        self._marks += 1
        self._touched.append(name)
        self._on_change()

    # -- folders ---------------------------------------------------------------------------------------

    def _add_all(self) -> None:
        self._add(self._root)
        self._add_tree(self._root + b"/" + os.fsencode(LOGS))

    def _add_tree(self, path: bytes) -> None:
        """Watch a folder, then look what is in it: what comes between the two is seen."""
        if not self._add(path):
            return
        try:
            with os.scandir(path) as entries:
                inner = [each for each in entries if each.is_dir(follow_symlinks=False)]
        except FileNotFoundError:
            return
        for each in inner:
            if not each.name.startswith(b"."):
                self._add_tree(each.path)

    def _add(self, path: bytes, mask: Mask = MASK) -> bool:
        """Watch one folder; False if there is none any more. OSError, and `blind`, if that cannot be."""
        try:
            found = os.lstat(path)
            wd = self._queue.add(path, mask)
            if found.st_dev not in self._kinds:
                self._kinds[found.st_dev] = foreign(os.fsdecode(path))
            if kind := self._kinds[found.st_dev]:
                raise OSError(errno.EOPNOTSUPP, f"on {kind}, changes may cause no events", os.fsdecode(path))
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


# -- observed ----------------------------------------------------------------------------------------------
# Native events where there is no inotify, by watchdog's own choice: FSEvents or kqueue.
#
# They may come late and out of order, so they tell when to look, and never that nothing has changed.


BACK = 3.0
"""Seconds in which a probe must come back."""


class Observed(FileSystemEventHandler):
    """Watches a bank's folder, and `memory/` with all below it. OSError where that cannot be had."""

    def __init__(self, root: Path, probes: Path, on_change: Callable[[], None]) -> None:
        self._root, self._probes, self._on_change = root, probes, on_change
        self.blind, self.folders = "", 2
        self._count, self._back = 0, threading.Condition()
        self._came: set[str] = set()
        self._logs = root / LOGS
        self._observer = Observer()
        self._observer.schedule(self, str(root), recursive=False)
        self._observer.schedule(self, str(probes), recursive=False)
        self._below = self._logs.is_dir() and not self._logs.is_symlink()
        if self._below:
            self._observer.schedule(self, str(self._logs), recursive=True)
            self.folders = 3
        self._observer.start()

    def stop(self) -> None:
        """Hear nothing more."""
        self._observer.stop()
        self._observer.join(5)

    def marks(self) -> None:
        """Nobody knows: see above."""

    def touched(self, since: int) -> None:
        """Nobody knows: see above."""

    def alive(self) -> bool:
        """Whether a probe's event comes back."""
        with self._back:
            self._count += 1
            name = f"{os.getpid()}.{self._count}"
            path = self._probes / name
            path.touch(mode=0o600)
            try:
                return self._back.wait_for(lambda: name in self._came, BACK)
            finally:
                path.unlink(missing_ok=True)
                self._came.clear()

    def dispatch(self, event: FileSystemEvent) -> None:
        """One event, of whatever kind."""
        path = Path(os.fsdecode(event.src_path))
        if event.event_type in ("opened", "closed_no_write"):
            return
        if path.parent == self._probes:
            with self._back:
                self._came.add(path.name)
                self._back.notify_all()
        elif path == self._logs and not self._below:
            self.blind = f"{LOGS}/ has appeared"  # the next heartbeat begins anew, with it
            self._on_change()
        elif path.parent == self._root or self._logs in path.parents:
            self._on_change()
