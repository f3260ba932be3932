"""The kernel's queue of file events on Linux, read in its order by whoever asks, at once.

watchdog's `InotifyFD` reads it in a thread of its own, whose turn one would have to wait for: on two busy
cores for four milliseconds. What asks the kernel is watchdog's all the same.
"""

from __future__ import annotations

import ctypes
import errno
import os
import select
import struct
from collections.abc import Iterator

from watchdog.observers import inotify_c
from watchdog.observers.inotify_c import InotifyEvent, Mask, WatchDescriptor

SIZE = 1 << 16
"""Bytes that are read at once, some thousand events."""
EVENT = 16 + 256
"""Bytes of the longest event: four numbers and a name."""
_HEAD = struct.Struct("iIII")
_LIMITS = {errno.ENOSPC: "inotify watch limit reached", errno.EMFILE: "inotify instance limit reached"}


class Queue:
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
