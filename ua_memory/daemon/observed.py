"""Native events where there is no inotify, by watchdog's own choice: FSEvents or kqueue.

They may come late and out of order, so they tell when to look, and never that nothing has changed.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer

from ua_memory.paths import LOGS

BACK = 3.0
"""Seconds in which a probe must come back."""


class Observed(FileSystemEventHandler):
    """Watches a bank's folder, and `memory/` with all below it. OSError where that cannot be had."""

    def __init__(self, root: Path, probes: Path, heard: Callable[[], None]) -> None:
        self._root, self._probes, self._heard = root, probes, heard
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
            self.blind = f"{LOGS}/ has come"  # the next heartbeat begins anew, with it
            self._heard()
        elif path.parent == self._root or self._logs in path.parents:
            self._heard()
