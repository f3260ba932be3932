"""Hearing of changes to a bank's files: by native events, or, where there are none, by looking now and then.

What is heard is only a mark. Whoever acts on it reads the files, so that a lost, doubled or late event costs
time and nothing else.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from ua_memory.paths import make_private

BEAT = 60.0
"""Seconds between two heartbeats: a probe is written, and its event must come."""
LOOKS = 2.0
"""Seconds between two looks at the files where there are no events."""
POLLED, HEARD = 500, 2000
"""So many times what a look took passes before the next one, without events and with them: looking takes at
most 0.2 and 0.05 % of a core."""


class Native(Protocol):
    """Where events come from. `marks` counts what was heard, None if something may have been missed."""

    blind: str

    @property
    def folders(self) -> int: ...
    def marks(self) -> int | None: ...
    def touched(self, since: int) -> frozenset[bytes] | None: ...
    def alive(self) -> bool: ...
    def stop(self) -> None: ...


Opens = Callable[[Path, Path, Callable[[], None]], Native]


def native(root: Path, probes: Path, heard: Callable[[], None]) -> Native:
    """This system's events. OSError or ImportError where there are none to be had."""
    if sys.platform != "linux":
        from ua_memory.daemon.observed import Observed

        return Observed(root, probes, heard)
    from ua_memory.daemon.inotify import Inotify

    return Inotify(root, probes, heard)


class Watch:
    """The watch over one bank. `heard` is called at each mark, from another thread; `say` writes the log."""

    def __init__(
        self, root: Path, local: Path, heard: Callable[[], None], say: Callable[[str], None],
        opens: Opens = native,
    ) -> None:  # fmt: skip
        self._root, self._probes = root, local / "watch"
        self._heard, self._say, self._opens = heard, say, opens
        self._native: Native | None = None
        self.why = "it has not begun"
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
            self._native = self._opens(self._root, self._probes, self._heard)
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
        """How many changes were heard of, all that ended before the call among them; None if nobody knows."""
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
        self._polled(found.blind or "a probe's event did not come back")
        return False

    # -- what is to be done from time to time ------------------------------------------------------------

    def next(self) -> float:
        """When `tend` is due, in seconds of the monotonic clock."""
        return min(self._next_beat, self._next_look) if self.polls else max(self._next_beat, self._next_look)

    def tend(self) -> bool:
        """Begin, keep the heart beating, try again to have events where there are none: from one thread.
        Whether it is time to look at all files, heard of or not."""
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
        found = self._native
        told = {"mode": "polling" if found is None else "events", "heartbeat": when, "why": self.why}
        return {key: value for key, value in told.items() if value} | (
            {"folders": found.folders - 1} if found is not None else {}
        )

    def _polled(self, why: str) -> None:
        self.stop()
        if self.why != why:
            self._say(f"no events, looks at the files now and then: {why}")
        self.why = why
