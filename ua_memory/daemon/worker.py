"""One thread that does all work, one job after the other: SQLite and Chroma are at home in it."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable
from typing import Any

from ua_memory.daemon.messages import BUSY, INTERNAL, LATE, Refused

QUEUED = 128
"""Jobs that may wait."""
PATIENCE = 2.0
"""Seconds in which no job was done, after which who waits is better off doing it."""
DEADLINE = 600.0
"""Seconds that a job may take once it has begun."""
ALIVE = 1.0
"""Seconds after which a caller who waits is told so."""


class Job:
    """A piece of work and what comes of it: messages while it runs, at the end a result or a Refused."""

    def __init__(self, work: Callable[[Job], Any]) -> None:
        self._work, self._lock, self._settled = work, threading.Lock(), False
        self.begun = False
        self.out: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()

    def tell(self, what: Any) -> None:
        """Send something before the end."""
        self.out.put(("notice", what))

    def settle(self) -> bool:
        """Begin it or call it off, whoever comes first; False for whoever comes second."""
        with self._lock:
            first, self._settled = not self._settled, True
        return first

    def do(self) -> None:
        self.begun = True
        try:
            self.out.put(("result", self._work(self)))
        except Refused as refused:
            self.out.put(("refused", refused))
        except BaseException as error:  # the thread must outlive whatever a command does
            self.out.put(("failed", error))


Idle = Callable[[float], float | None]


class Worker:
    """The thread. Between jobs `idle(seconds)` is called in it, with the time since the last one: every
    `tick` seconds, after a `nudge`, and as soon as it said itself, if it returned a number of seconds. What
    it raises is told to `say`, once while it is the same."""

    def __init__(self, idle: Idle, tick: float = 15.0, say: Callable[[str], None] = lambda _: None) -> None:
        self._jobs: queue.Queue[Job | None] = queue.Queue(QUEUED)
        self._idle, self._tick, self._say, self._leaving = idle, tick, say, False
        self._said = ""
        self.last, self.done, self.busy = time.monotonic(), 0, False
        self._thread = threading.Thread(target=self._run, name="worker", daemon=True)
        self._thread.start()

    @property
    def resting(self) -> float:
        """Seconds since anything was done; 0 while something is."""
        return 0.0 if self.busy or not self._jobs.empty() else time.monotonic() - self.last

    @property
    def wanted(self) -> bool:
        """Whether a job waits."""
        return not self._jobs.empty()

    def nudge(self) -> None:
        """Have `idle` called soon. From any thread."""
        with contextlib.suppress(queue.Full):  # it is called after each job
            self._jobs.put_nowait(None)

    def ask(self, job: Job, tell: Callable[[Any], None]) -> Any:
        """Have a job done and return its result; `tell` gets what it sends, None each second. Refused."""
        try:
            self._jobs.put_nowait(job)
        except queue.Full:
            raise Refused(BUSY, "too many commands wait") from None
        try:
            return self._awaited(job, tell)
        finally:
            job.settle()  # a caller who has left waits for nothing

    def _awaited(self, job: Job, tell: Callable[[Any], None]) -> Any:
        came = time.monotonic()
        while True:
            try:
                kind, what = job.out.get(timeout=ALIVE)
            except queue.Empty:
                # A queue that moves is waited for: to do it oneself takes a processor from who works it off.
                stuck = time.monotonic() > max(came, self.last) + PATIENCE
                if stuck and not job.begun and job.settle():
                    raise Refused(BUSY, "others' commands take long") from None
                if time.monotonic() > came + PATIENCE + DEADLINE:
                    raise Refused(LATE, f"not done after {DEADLINE:.0f} s") from None
                tell(None)
                continue
            if kind == "result":
                return what
            if kind != "notice":
                raise what if kind == "refused" else Refused(INTERNAL, repr(what)) from what
            tell(what)

    def stop(self, seconds: float) -> bool:
        """Finish what has begun, refuse the rest; False if that takes longer than `seconds`."""
        while True:
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                break
            if job and job.settle():
                job.out.put(("refused", Refused(BUSY, "the daemon is leaving")))
        self._leaving = True
        self._jobs.put(None)
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        wait = 0.0
        while not self._leaving:
            try:
                job = self._jobs.get(timeout=wait)
            except queue.Empty:
                due = self._between()
                wait = self._tick if due is None else min(max(due, 0.0), self._tick)
                continue
            wait = 0.0
            if job is not None and job.settle():
                self.busy = True
                job.do()
                self.last, self.done, self.busy = time.monotonic(), self.done + 1, False

    def _between(self) -> float | None:
        """Call `idle`. The thread must outlive this, too: without it a daemon stands there, answers nothing,
        and never leaves, since jobs wait."""
        try:
            due = self._idle(time.monotonic() - self.last)
        except Exception as error:
            due, said = None, repr(error)
            if said != self._said:
                self._say(f"failed between commands: {said}")
            self._said = said
        else:
            self._said = ""
        return due
