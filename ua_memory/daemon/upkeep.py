"""What a daemon does by itself between commands: catch up with the files, commit edits that have rested,
take up what waits for its flush. All of it in the one worker, in pieces that keep no command waiting.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from ua_memory.daemon.warm import give_back
from ua_memory.errors import UaMemoryError

if TYPE_CHECKING:
    from ua_memory.daemon.flushing import Flushing
    from ua_memory.daemon.warm import Warm
    from ua_memory.daemon.watch import Watch

STILL = 0.15
"""Seconds without an event after which files are read: an editor's save is several events."""
AT_MOST = 1.0
"""Seconds after the first event when they are read in any case."""
REST = 2.0
"""Seconds without a command after which the trail may be packed, half a second of work, or an edit kept."""
AGAIN = 5.0
"""Seconds after which what failed is tried again; each further time twice as many, to a minute."""
NEVER = float("inf")


class Upkeep:
    """Heard of from the watch's thread, done in the worker's. `nudge` wakes the worker; `hurried` says
    whether a command waits for it."""

    def __init__(
        self, warm: Warm, say: Callable[[str], None], nudge: Callable[[], None], hurried: Callable[[], bool],
        flushing: Flushing | None = None,
    ) -> None:  # fmt: skip
        self._flushing = flushing
        self._warm, self._say, self._nudge, self._hurried = warm, say, nudge, hurried
        self.watch: Watch | None = None
        self._lock = threading.Lock()
        self._first, self._last = NEVER, 0.0
        self._pack_at = NEVER
        self._rested, self._behind, self._failures, self._not_before = NEVER, False, 0, 0.0
        self._unseen = ""
        """Why it could not be seen last what waits: every ten seconds, and said once."""
        self.caught_up = 0
        """So many times the index was brought up to date without a command."""

    def heard(self) -> None:
        """Something may have changed. From any thread; returns at once."""
        now = time.monotonic()
        with self._lock:
            first, self._last = self._first == NEVER, now
            self._first = min(self._first, now)
        if first:
            self._nudge()

    def tend(self, watch: Watch) -> None:
        """Begin: start the watch, keep it alive, and read what has changed while no daemon was there."""
        self.watch = watch
        self.heard()

    @property
    def waits(self) -> bool:
        """Whether an edit waits for its quiet, a file to be read, a flush to end, or a watched path for its
        changes: no time to leave."""
        flushes = self._flushing is not None and bool(self._flushing.key or self._flushing.watches)
        return min(self._first, self._rested, self._pack_at) != NEVER or flushes

    def next(self) -> float:
        """When there is something to do, in seconds of the monotonic clock."""
        flush = self._flushing.next() if self._flushing else NEVER
        return min(self._due(), self.watch.next() if self.watch else NEVER, flush, self._pack_at)

    def do(self, resting: float = NEVER) -> None:
        """Do one piece of what is due. What fails is noted, and tried again. `resting` are the seconds since
        the last command."""
        if self._flushing and time.monotonic() >= self._flushing.next():
            self._flush(self._flushing, resting)
        self._pack(resting)
        whole = self.watch is not None and self.watch.tend()
        if whole:
            self._warm.witness.forget()
        if not whole and (time.monotonic() < self._due() or self._put_off(resting)):
            return
        with self._lock:
            first, self._first = self._first, NEVER
        try:
            self._catch_up(whole)
        except Exception as error:  # a bug, too: what was heard of is not forgotten for it
            self._first = min(first, time.monotonic())
            self._not_before = time.monotonic() + min(AGAIN * 2**self._failures, 60.0)
            self._failures += 1
            if self._failures == 1:
                why = error if isinstance(error, UaMemoryError) else repr(error)
                self._say(f"could not catch up with the files, and tries again: {why}")
        else:
            self._failures, self._not_before = 0, 0.0

    def _put_off(self, resting: float) -> bool:
        """Whether an edit that has had its quiet waits a little more. The command just answered may have been
        a script's last before it removes the bank, and what was written meanwhile would be in its way."""
        if resting >= REST or self._first != NEVER or self._behind or self._warm.behind:
            return False
        self._rested = time.monotonic() + REST - resting
        return True

    def _pack(self, resting: float) -> None:
        """Pack the trail once commands that wanted to are followed by none for a while."""
        self._pack_at = time.monotonic() + max(REST - resting, 0.0) if self._warm.unpacked else NEVER
        if self._warm.unpacked and resting >= REST:
            self._warm.unpacked, self._pack_at = 0, NEVER
            try:
                with self._warm.own() as memory:
                    memory.store.pack()
            except (UaMemoryError, OSError) as error:  # it is as outgrown for the next who asks
                self._say(f"could not pack the trail: {error}")

    def _flush(self, flushing: Flushing, resting: float) -> None:
        if flushing.idle(self._warm.pending):
            return
        try:
            with self._warm.own() as memory:
                flushing.tend(memory, resting)
        except (UaMemoryError, OSError) as error:
            if str(error) != self._unseen:
                self._say(f"could not see what waits for its flush: {error}")
            self._unseen = str(error)
        else:
            self._unseen = ""

    def _due(self) -> float:
        with self._lock:
            read = min(self._last + STILL, self._first + AT_MOST) if self._first != NEVER else NEVER
        return max(
            min(read, self._rested, 0.0 if self._behind or self._warm.behind else NEVER), self._not_before
        )

    def _catch_up(self, whole: bool) -> None:
        began, warm, much = time.monotonic(), self._warm.warm, self._behind or self._warm.behind
        with self._warm.own() as memory:
            # A person who saved an old copy is told by their next command what was put back.
            self._warm.untold += memory.store.adopt(quiet=memory.config.quiet_seconds, wait=False).notes
            # Cold, words will do: nobody waits, and the model would take 200 MB for nothing.
            done = memory.refresh(vectors=warm, stop=self._hurried)
            seen, quiet = memory.store.survey(), memory.config.quiet_seconds
        if whole and self.watch:
            self.watch.took(time.monotonic() - began)
        self._behind = bool(done.left_files or done.left_texts)
        if much and not self._behind:
            give_back()
        self.caught_up += bool(done.added or done.changed or done.removed)
        since = [time.time() - seen.changed_at(path) / 1e9 for path in set(seen.changed) - set(seen.held)]
        # A time in the future, as `touch` can set it, is nothing to wait for.
        rest = [quiet - age if age < quiet else AGAIN for age in since if age >= 0]
        self._rested = time.monotonic() + min(rest) + 0.02 if rest else NEVER
