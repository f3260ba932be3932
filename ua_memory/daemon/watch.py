"""Watch a bank's files for changes: by inotify, FSEvents or kqueue, else by polling."""

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
# An event only says that something may have changed. Whoever acts on it reads the files, so a lost, doubled
# or late event costs time and nothing else.


HEARTBEAT_INTERVAL = 60.0
"""Seconds between two heartbeats: a probe file is written, and its event must arrive."""
POLL_INTERVAL = 2.0
"""Seconds between two scans of the files if there are no events."""
POLL_FACTOR, EVENT_SCAN_FACTOR = 500, 2000
"""The pause between two full scans as a multiple of a scan's duration, without events and with them: scans
take at most 0.2 and 0.05 % of a core."""


class EventSource(Protocol):
    """A source of file events. `change_count` is None if changes may have been missed."""

    failure: str

    @property
    def folders(self) -> int: ...
    def change_count(self) -> int | None: ...
    def changed_names(self, since: int) -> frozenset[bytes] | None: ...
    def is_alive(self) -> bool: ...
    def stop(self) -> None: ...


OpenEvents = Callable[[Path, Path, Callable[[], None]], EventSource]


def open_events(root: Path, probes: Path, on_change: Callable[[], None]) -> EventSource:
    """Open this system's event source. OSError or ImportError if there is none."""
    return (InotifyEvents if sys.platform == "linux" else ObserverEvents)(root, probes, on_change)


class Watch:
    """Watches one bank. `on_change` is called at each change, by another thread; `say` writes to the log."""

    def __init__(
        self, root: Path, local: Path, on_change: Callable[[], None], say: Callable[[str], None],
        opens: OpenEvents = open_events,
    ) -> None:  # fmt: skip
        self._root, self._probes = root, local / "watch"
        self._on_change, self._say, self._open_events = on_change, say, opens
        self._source: EventSource | None = None
        self.why = "it has not started"
        """Why there are no events; '' if there are."""
        self.last_heartbeat = 0.0
        """When the last heartbeat's event arrived, in seconds since 1970; 0 for never."""
        self._next_heartbeat, self._next_scan = 0.0, 0.0

    @property
    def is_polling(self) -> bool:
        """Whether the files are polled, since there are no events."""
        return self._source is None

    def start(self) -> None:
        """Start watching. Never fails: without events the files are polled."""
        self.stop()
        self._next_heartbeat = time.monotonic() + HEARTBEAT_INTERVAL
        try:
            make_private(self._probes)
            for left in self._probes.iterdir():
                left.unlink()
            self._source = self._open_events(self._root, self._probes, self._on_change)
        except (OSError, ImportError) as error:
            self._start_polling(getattr(error, "strerror", None) or str(error))
            return
        if self.heartbeat():
            if self.why:
                self._say(f"watches {self._source.folders - 1} folders by events")
            self.why = ""

    def stop(self) -> None:
        """Stop watching."""
        found, self._source = self._source, None
        if found is not None:
            found.stop()

    def change_count(self) -> int | None:
        """The number of changes seen, including all that ended before the call; None if unknown."""
        found = self._source
        return found.change_count() if found is not None and not found.failure else None

    def changed_names(self, since: int) -> frozenset[bytes] | None:
        """The paths, below the bank's root, of the files that changed since a count; None if anything else
        changed, or that is unknown."""
        found = self._source
        return found.changed_names(since) if found is not None and not found.failure else None

    def heartbeat(self) -> bool:
        """Check that a probe's event arrives. If not, log it and start polling."""
        found = self._source
        if found is None:
            return False
        if not found.failure and found.is_alive():
            self.last_heartbeat = time.time()
            return True
        self._start_polling(found.failure or "a test event did not arrive")
        return False

    # -- regular work --------------------------------------------------------------------------------

    def next_due(self) -> float:
        """When `tend` is due, in seconds of the monotonic clock."""
        times = (self._next_heartbeat, self._next_scan)
        return min(times) if self.is_polling else max(times)

    def check(self) -> bool:
        """Start the watch, check the heartbeat, and retry to get events. Called from one thread. True if it
        is time to scan all files."""
        now = time.monotonic()
        if now < self.next_due():
            return False
        if now >= self._next_heartbeat:
            self._next_heartbeat = now + HEARTBEAT_INTERVAL
            if not self.heartbeat():
                self.start()
        return True

    def record_scan_time(self, seconds: float) -> None:
        """Record how long a scan of all files took: the longer, the less often they are scanned."""
        share = max(POLL_INTERVAL, POLL_FACTOR * seconds) if self.is_polling else EVENT_SCAN_FACTOR * seconds
        self._next_scan = time.monotonic() + share

    def status(self) -> dict[str, Any]:
        """The watch's status, as printed by `daemon status --json`, after a heartbeat."""
        with contextlib.suppress(OSError):
            self.heartbeat()
        local = time.localtime(self.last_heartbeat)
        when = time.strftime("%Y-%m-%dT%H:%M:%S%z", local) if self.last_heartbeat else ""
        values = {"mode": "polling" if self.is_polling else "events", "heartbeat": when, "why": self.why}
        source = self._source  # another thread may set it to None
        folders = {"folders": source.folders - 1} if source else {}
        return {key: value for key, value in values.items() if value} | folders

    def _start_polling(self, why: str) -> None:
        self.stop()
        if self.why != why:
            self._say(f"no events, polls the files: {why}")
        self.why = why


# -- inotify's event queue ---------------------------------------------------------------------------------
# The kernel's queue of file events on Linux, read in order by any thread that asks.
#
# watchdog's `InotifyFD` reads it in its own thread, and waiting for that takes four milliseconds on two busy
# cores. The system calls are watchdog's.


READ_SIZE = 1 << 16
"""Bytes that are read at once: some thousand events."""
EVENT_SIZE = 16 + 256
"""Bytes of the longest event: four numbers and a name."""
_EVENT_HEADER = struct.Struct("iIII")
_LIMIT_ERRORS = {errno.ENOSPC: "inotify watch limit reached", errno.EMFILE: "inotify instance limit reached"}


class EventQueue:
    """An inotify instance. OSError without instances or watches left."""

    def __init__(self) -> None:
        self._wake_read, self._wake_write = os.pipe()
        self._fd = inotify_c.inotify_init()
        if self._fd < 0:
            why = _kernel_error()
            for fd in (self._wake_read, self._wake_write):  # it is retried each minute
                os.close(fd)
            raise why
        os.set_inheritable(self._fd, False)
        os.set_blocking(self._fd, False)

    def add(self, path: bytes, mask: Mask) -> WatchDescriptor:
        """Watch a folder and return its descriptor, which is the same if it is watched already."""
        found = inotify_c.inotify_add_watch(self._fd, path, mask)
        if found < 0:
            raise _kernel_error()
        return found

    def drop(self, watch: WatchDescriptor) -> None:
        """Stop watching a folder. Its queued events still arrive; a folder that is gone is no error."""
        inotify_c.inotify_rm_watch(self._fd, watch)

    def wait(self) -> bool:
        """Wait for an event. False once the queue is ended."""
        poll = select.poll()
        for fd in (self._fd, self._wake_read):
            poll.register(fd, select.POLLIN)
        return all(fd != self._wake_read for fd, _ in poll.poll())

    def events(self) -> Iterator[InotifyEvent]:
        """The events so far, without waiting."""
        data = b" " * READ_SIZE
        while len(data) > READ_SIZE - EVENT_SIZE:  # there was no room for more
            try:
                data = os.read(self._fd, READ_SIZE)
            except BlockingIOError:
                return
            at = 0
            while at < len(data):
                watch, mask, cookie, length = _EVENT_HEADER.unpack_from(data, at)
                at += _EVENT_HEADER.size + length
                yield InotifyEvent(watch, mask, cookie, data[at - length : at].rstrip(b"\0"))

    def end(self) -> None:
        """Make `wait` return False from now on."""
        os.write(self._wake_write, b"!")

    def close(self) -> None:
        """Close it. Nobody may be waiting."""
        for fd in (self._fd, self._wake_read, self._wake_write):
            os.close(fd)


def _kernel_error() -> OSError:
    """The error of the last system call."""
    number = ctypes.get_errno()
    return OSError(number, _LIMIT_ERRORS.get(number) or os.strerror(number))


# -- inotify -----------------------------------------------------------------------------------------------
# Events on Linux: one kernel queue for all folders of a bank, read in order.
#
# The order matters. The kernel queues an event before the system call that caused it returns, so once the
# event of a probe written after a request arrives, every change that ended before the request has been seen.
# The asking thread reads the queue itself.


KNOWN_CHANGES = 256
"""Changes whose file names are remembered."""

_FLAGS = (
    *("IN_MODIFY", "IN_ATTRIB", "IN_MOVED_FROM", "IN_MOVED_TO", "IN_CREATE", "IN_DELETE"),
    *("IN_DELETE_SELF", "IN_MOVE_SELF", "IN_ONLYDIR", "IN_DONT_FOLLOW"),
)
FOLDER_MASK = Mask(sum(getattr(InotifyConstants, name) for name in _FLAGS))
_PROBE_FLAGS = (name for name in _FLAGS if name not in ("IN_MODIFY", "IN_ATTRIB", "IN_DELETE"))
PROBE_MASK = Mask(sum(getattr(InotifyConstants, name) for name in _PROBE_FLAGS))
WATCHED_NAMES = frozenset(map(os.fsencode, (*(name.lower() for name in CORE_NAMES), SETTINGS, LOGS)))
"""Names in the bank's own folder that are watched: the folder may be a whole code project."""


class InotifyEvents:
    """Watches a bank's folder, and `memory/` with all below it. `on_change` is called at each change, by its
    own thread or one that asks, and must return at once. OSError without instances or watches left."""

    def __init__(self, root: Path, probes: Path, on_change: Callable[[], None]) -> None:
        self._root, self._probes, self._on_change = os.fsencode(root), os.fsencode(probes), on_change
        self.failure = ""
        """Why changes may be missed; '' while they are not."""
        self._changes, self._last_probe = 0, b""
        self._changed_names: deque[bytes | None] = deque(maxlen=KNOWN_CHANGES)
        self._lock, self._probe_numbers = threading.RLock(), itertools.count(1)
        self._folders: dict[WatchDescriptor, tuple[bytes, tuple[int, int]]] = {}
        self._file_systems: dict[int, str] = {}
        self._queue = EventQueue()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        try:
            self._add(self._probes, PROBE_MASK)
            self._add_all()
        except OSError:
            self._queue.close()
            raise
        self._thread.start()

    @property
    def folders(self) -> int:
        """The number of watched folders."""
        return len(self._folders)

    def stop(self) -> None:
        """Stop watching."""
        self._queue.end()
        self._thread.join()
        with self._lock:
            self.failure = self.failure or "it was stopped"
            self._queue.close()

    # -- queries -------------------------------------------------------------------------------------

    def change_count(self) -> int | None:
        """The number of changes seen, including all that ended before this call.

        None if a probe's event has not arrived, or changes may have been missed.
        """
        name = b"%d.%d" % (os.getpid(), next(self._probe_numbers))
        with self._lock:
            if self.failure or not self._write_probe(name):
                return None
            self._read_events()
            known = self._last_probe == name and not self.failure and self._in_place()
            return self._changes if known else None

    def changed_names(self, since: int) -> frozenset[bytes] | None:
        """The paths, below the bank's root, of the files that changed since a count; None if a folder or
        something unknown changed, or too many did."""
        with self._lock:
            many = self._changes - since
            if not 0 <= many <= len(self._changed_names):
                return None
            names = frozenset([*self._changed_names][len(self._changed_names) - many :])
        return None if None in names else frozenset(name for name in names if name)

    def is_alive(self) -> bool:
        """Whether a probe's event arrives, and the watched folders are still the same."""
        return self.change_count() is not None

    def _write_probe(self, name: bytes) -> bool:
        path = self._probes + b"/" + name
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
            os.unlink(path)  # noqa: PTH108 (bytes, and on the way to every answer)
        except OSError:
            return False
        return True

    def _in_place(self) -> bool:
        """Whether the watched folders are still the same: one may have been replaced by another."""
        for path, there in self._folders.values():
            try:
                found = os.lstat(path)
            except OSError:
                return False
            if (found.st_dev, found.st_ino) != there:
                return False
        return True

    # -- reading the queue, with the lock held -------------------------------------------------------

    def _listen(self) -> None:
        while self._queue.wait():
            with self._lock:
                self._read_events()

    def _read_events(self) -> None:
        for event in self._queue.events():
            if event.is_queue_overflow:
                self.on_queue_overflow()
            elif event.is_ignored:
                if self._folders.pop(event.wd, None):
                    self._record_change()
            else:
                self.on_event(event)

    def on_event(self, event: InotifyEvent) -> None:
        known = self._folders.get(event.wd)
        if known is None:
            return
        folder = known[0]
        if folder == self._probes:
            if event.is_create:
                self._last_probe = event.name
            elif event.is_delete_self or event.is_move_self:
                self.failure = "its folder was removed"
            return
        if not event.name:
            if folder == self._root and (event.is_delete_self or event.is_move_self):
                self.failure = "the bank's folder was removed"
            self._record_change()
        elif self._is_relevant(folder, event):
            if event.is_directory:
                self._on_folder_event(folder + b"/" + event.name, event)
            below = b"./" if folder == self._root else folder[len(self._root) + 1 :] + b"/"
            self._record_change(None if event.is_directory else below + event.name)

    def on_queue_overflow(self) -> None:
        with contextlib.suppress(OSError):
            self._add_all()  # the event of a new folder may be lost
        self._record_change()

    def _is_relevant(self, folder: bytes, event: InotifyEvent) -> bool:
        if folder == self._root:
            return event.name.lower() in WATCHED_NAMES
        return not event.name.startswith(b".") and (event.is_directory or event.name.endswith(b".md"))

    def _on_folder_event(self, path: bytes, event: InotifyEvent) -> None:
        if event.is_moved_from:
            self._drop_all(path)
        elif event.is_create or event.is_moved_to:
            with contextlib.suppress(OSError):
                self._add_tree(path)

    def _record_change(self, name: bytes | None = None) -> None:
        self._changes += 1
        self._changed_names.append(name)
        self._on_change()

    # -- folders ---------------------------------------------------------------------------------------

    def _add_all(self) -> None:
        self._add(self._root)
        self._add_tree(self._root + b"/" + os.fsencode(LOGS))

    def _add_tree(self, path: bytes) -> None:
        """Watch a folder, and only then list it, so that what is added in between is seen."""
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

    def _add(self, path: bytes, mask: Mask = FOLDER_MASK) -> bool:
        """Watch a folder. False if it is gone. OSError, and `failure` is set, if it cannot be watched."""
        try:
            found = os.lstat(path)
            wd = self._queue.add(path, mask)
            if found.st_dev not in self._file_systems:
                self._file_systems[found.st_dev] = foreign(os.fsdecode(path))
            if kind := self._file_systems[found.st_dev]:
                raise OSError(errno.EOPNOTSUPP, f"on {kind}, changes may cause no events", os.fsdecode(path))
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            if error.errno == errno.ELOOP:  # a symbolic link, which is not followed
                return False
            self.failure = f"{os.fsdecode(path)}: {error.strerror or error}"
            raise
        self._folders[wd] = (path, (found.st_dev, found.st_ino))
        return True

    def _drop_all(self, path: bytes) -> None:
        """Stop watching a folder that was moved away, and those below it."""
        for wd, (known, _) in list(self._folders.items()):
            if known == path or known.startswith(path + b"/"):
                del self._folders[wd]
                self._queue.drop(wd)


# -- watchdog's observer -----------------------------------------------------------------------------------
# Events without inotify, by watchdog's own choice: FSEvents or kqueue.
#
# They may arrive late and out of order, so they say when to look, and never that nothing has changed.


PROBE_TIMEOUT = 3.0
"""Seconds in which a probe's event must arrive."""


class ObserverEvents(FileSystemEventHandler):
    """Watches a bank's folder, and `memory/` with all below it. OSError if that fails."""

    def __init__(self, root: Path, probes: Path, on_change: Callable[[], None]) -> None:
        self._root, self._probes, self._on_change = root, probes, on_change
        self.failure, self.folders = "", 2
        self._count, self._condition = 0, threading.Condition()
        self._last_probe: set[str] = set()
        self._logs = root / LOGS
        self._observer = Observer()
        self._observer.schedule(self, str(root), recursive=False)
        self._observer.schedule(self, str(probes), recursive=False)
        self._watches_logs = self._logs.is_dir() and not self._logs.is_symlink()
        if self._watches_logs:
            self._observer.schedule(self, str(self._logs), recursive=True)
            self.folders = 3
        self._observer.start()

    def stop(self) -> None:
        """Stop watching."""
        self._observer.stop()
        self._observer.join(5)

    def change_count(self) -> None:
        """Nobody knows: see above."""

    def changed_names(self, since: int) -> None:
        """Nobody knows: see above."""

    def is_alive(self) -> bool:
        """Whether a probe's event arrives."""
        with self._condition:
            self._count += 1
            name = f"{os.getpid()}.{self._count}"
            path = self._probes / name
            path.touch(mode=0o600)
            try:
                return self._condition.wait_for(lambda: name in self._last_probe, PROBE_TIMEOUT)
            finally:
                path.unlink(missing_ok=True)
                self._last_probe.clear()

    def dispatch(self, event: FileSystemEvent) -> None:
        """Handle an event: watchdog's entry point."""
        path = Path(os.fsdecode(event.src_path))
        if event.event_type in ("opened", "closed_no_write"):
            return
        if path.parent == self._probes:
            with self._condition:
                self._last_probe.add(path.name)
                self._condition.notify_all()
        elif path == self._logs and not self._watches_logs:
            self.failure = f"{LOGS}/ has appeared"  # the next heartbeat restarts the watch with it
            self._on_change()
        elif path.parent == self._root or self._logs in path.parents:
            self._on_change()
