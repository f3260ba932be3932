"""The daemon's worker thread, its open bank, and its work between commands."""

from __future__ import annotations

import contextlib
import gc
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ua_memory import config as config_module
from ua_memory.config import Config
from ua_memory.daemon.connect import BUSY, INTERNAL, OTHER_BANK, TIMED_OUT, RequestRefused
from ua_memory.daemon.spawn import start_process
from ua_memory.errors import UaMemoryError
from ua_memory.git.history import History
from ua_memory.index import embedding
from ua_memory.llm.model import Endpoint, Message, Model, Reply, endpoint_of
from ua_memory.memory import Memory
from ua_memory.retain.queue import UPKEEP_INTERVAL, UPKEEP_JOB, UPKEEP_STEPS, JobRun, Jobs
from ua_memory.store.scan import SnapshotCache

if TYPE_CHECKING:
    from ua_memory.daemon.watch import Watch
    from ua_memory.reflect.consolidate import ConsolidationResult
    from ua_memory.retain.queue import QueueEntry


# -- worker ------------------------------------------------------------------------------------------------
# One thread runs all jobs, one after the other: SQLite and Chroma objects stay in one thread.


QUEUE_SIZE = 128
"""Jobs that may wait."""
BUSY_AFTER = 2.0
"""Seconds without a finished job after which a waiting caller is told to run its command itself."""
JOB_TIMEOUT = 600.0
"""Seconds that a job may take once it has started."""
HEARTBEAT_SECONDS = 1.0
"""Seconds between two signs of life to a waiting caller."""


class Job:
    """A piece of work. `messages` gets notices while it runs, then its result or error."""

    def __init__(self, work: Callable[[Job], Any]) -> None:
        self._work, self._claimed, self.started = work, threading.Lock(), False
        self.messages: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()

    def notify(self, what: Any) -> None:
        """Send a notice to the caller while the job runs."""
        self.messages.put(("notice", what))

    def claim(self) -> bool:
        """Claim the job, to run it or to cancel it. False if it was claimed before."""
        return self._claimed.acquire(blocking=False)  # for good

    def run(self) -> None:
        self.started = True
        try:
            self.messages.put(("result", self._work(self)))
        except RequestRefused as refused:
            self.messages.put(("refused", refused))
        except BaseException as error:  # the thread must outlive whatever a command does
            self.messages.put(("failed", error))


Idle = Callable[[float], float | None]


class Worker:
    """The worker thread. Between jobs it calls `idle(seconds)` with the time since the last job: every `tick`
    seconds, after a `wake`, and after as many seconds as the last call returned. Its errors go to `say`, a
    repeated one only once."""

    def __init__(self, idle: Idle, tick: float = 15.0, say: Callable[[str], None] = lambda _: None) -> None:
        self._jobs: queue.Queue[Job | None] = queue.Queue(QUEUE_SIZE)
        self._idle, self._tick, self._say, self._leaving = idle, tick, say, False
        self._last_error = ""
        self.last, self.done, self.busy = time.monotonic(), 0, False
        self._thread = threading.Thread(target=self._run, name="worker", daemon=True)
        self._thread.start()

    @property
    def idle_seconds(self) -> float:
        """Seconds since the last job; 0 while one runs or waits."""
        return 0.0 if self.busy or self.has_jobs else time.monotonic() - self.last

    @property
    def has_jobs(self) -> bool:
        """Whether a job waits."""
        return not self._jobs.empty()

    def wake(self) -> None:
        """Have `idle` called soon. From any thread."""
        with contextlib.suppress(queue.Full):  # `idle` is called after each job anyway
            self._jobs.put_nowait(None)

    def submit(self, job: Job, tell: Callable[[Any], None]) -> Any:
        """Queue a job, wait for it, and return its result. `tell` gets its notices, and None each second.

        RequestRefused.
        """
        try:
            self._jobs.put_nowait(job)
        except queue.Full:
            raise RequestRefused(BUSY, "too many commands wait") from None
        try:
            return self._wait_for(job, tell)
        finally:
            job.claim()  # cancels the job of a caller that has left

    def _wait_for(self, job: Job, tell: Callable[[Any], None]) -> Any:
        came = time.monotonic()
        while True:
            try:
                kind, what = job.messages.get(timeout=HEARTBEAT_SECONDS)
            except queue.Empty:
                # While jobs finish, waiting is better: a caller's own process would take a core from them.
                stuck = time.monotonic() > max(came, self.last) + BUSY_AFTER
                if stuck and not job.started and job.claim():
                    raise RequestRefused(BUSY, "busy with other commands") from None
                if time.monotonic() > came + BUSY_AFTER + JOB_TIMEOUT:
                    raise RequestRefused(TIMED_OUT, f"not finished after {JOB_TIMEOUT:.0f} s") from None
                tell(None)
                continue
            if kind == "result":
                return what
            if kind != "notice":
                raise what if kind == "refused" else RequestRefused(INTERNAL, repr(what)) from what
            tell(what)

    def stop(self, seconds: float) -> bool:
        """Finish the running job, refuse the rest. False if that takes longer than `seconds`."""
        with contextlib.suppress(queue.Empty):
            while True:
                job = self._jobs.get_nowait()
                if job and job.claim():
                    job.messages.put(("refused", RequestRefused(BUSY, "the daemon is exiting")))
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
                due = self._run_idle()
                wait = self._tick if due is None else min(max(due, 0.0), self._tick)
                continue
            wait = 0.0
            if job is not None and job.claim():
                self.busy = True
                job.run()
                self.last, self.done, self.busy = time.monotonic(), self.done + 1, False

    def _run_idle(self) -> float | None:
        """Call `idle` and catch its errors: without this thread the daemon would answer nothing and never
        exit."""
        try:
            due, said = self._idle(time.monotonic() - self.last), ""
        except Exception as error:
            due, said = None, repr(error)
            if said != self._last_error:
                self._say(f"background work failed: {said}")
        self._last_error = said
        return due


# -- schedule ----------------------------------------------------------------------------------------------


NEVER = float("inf")
WORK = {
    "queue": 0.0,  # look for a conversation or text to flush or retain, or whether the running job has ended
    "watched": 0.0,  # look for changes at watched paths
    "upkeep": 0.0,  # look for facts to consolidate and pages to refresh
    "read": NEVER,  # read changed files into the index
    "commit": NEVER,  # commit a person's edits
    "pack": NEVER,  # pack the history
    "retry": 0.0,  # none of the above is read or committed before, after an error
}
"""The daemon's own work, and when it is due at the start."""


class Schedule(dict[str, float]):
    """When each of the daemon's own pieces of work is due, in seconds of the monotonic clock."""

    def set_in(self, work: str, seconds: float) -> None:
        """Have a piece of work done so many seconds from now."""
        self[work] = time.monotonic() + seconds

    def is_due(self, work: str) -> bool:
        return time.monotonic() >= self[work]


# -- background jobs ---------------------------------------------------------------------------------------
# While no commands come, the daemon flushes and retains what is queued and, after a longer rest, consolidates
# new facts and refreshes stale pages: one job at a time in a child process, so that no command waits for a
# model and nothing of a model stays in memory.
#
# This module is also that process: `python -m ua_memory.daemon.worker BANK KEY`.


QUEUE_INTERVAL = 10.0
"""Seconds between two checks of the queue."""
REST = 2.0
"""Seconds without a command after which a background job may start."""
GRACE_SECONDS = 30.0
"""Seconds in which new turns are left to the process that queued them."""
WATCHED_KEY = "watched"
"""The key that stands for changes at watched paths."""
UPKEEP_CHECK_INTERVAL = 60.0
"""Seconds between two checks whether consolidation or a refresh is due."""
FACTS_PER_RUN = 200
"""Facts of one background consolidation, the oldest first."""
UPKEEP_NICENESS = 10
"""The niceness of a background consolidation."""


def daemon_endpoint(config: Config, env: Mapping[str, str]) -> Endpoint | None:
    """The model of the settings and of this process's own environment, None if that has no key. A caller's
    key is never used."""
    found = endpoint_of(config.provider, config.model, env)
    return found if found and found.can_answer else None


def next_due(waiting: Sequence[QueueEntry], now: datetime, *, modelled: bool) -> QueueEntry | None:
    """The entry to process now, the longest waiting first. Without a model only entries that were queued
    without one: extraction would take the others, and the model would never see them."""
    for one in waiting:
        recent = one.newest is not None and now - one.newest < timedelta(seconds=GRACE_SECONDS)
        before_retry = one.attempts.retry_at is not None and now < one.attempts.retry_at
        postponed = recent or before_retry or one.set_aside or one.still_open(now) or not one.turns
        if not postponed and (modelled or one.for_model is False):
            return one
    return None


class BackgroundJobs:
    """Starts background processes and logs how they ended. Used in the worker thread."""

    def __init__(self, root: Path, env: Mapping[str, str], say: Callable[[str], None]) -> None:
        self._root, self._env, self._say = root, dict(env), say
        self._process: subprocess.Popen[bytes] | None = None
        self.schedule = Schedule(WORK)
        self._warned = False
        self._last: dict[str, JobRun | None] = {}
        self.watches = False
        """Whether paths are watched: then the daemon does not exit when idle."""
        self.key, self._text = "", False
        """The key of the running job; '' for none."""

    def check(self, memory: Memory, resting: float) -> None:
        """Check the running process, or start a job that is due."""
        self.schedule.set_in("queue", 1.0 if self.key else QUEUE_INTERVAL)
        if self._process is not None:
            self._check_process(memory)
        elif memory.config.enabled and resting >= REST and (waiting := _waiting_entries(memory)):
            found = next_due(waiting, memory.store.now(), modelled=self.has_model())
            if found:
                self._text = memory.queue.is_text(found.key)
                self._start(found.key)
            self._warn_without_model(waiting)
        if not self.key and memory.config.enabled and resting >= REST:
            self._check_watched(memory)
        if not self.key and memory.config.enabled and self.is_upkeep_due(memory.config, resting):
            self.schedule.set_in("upkeep", UPKEEP_CHECK_INTERVAL)
            jobs = Jobs(memory.store)
            self._last = {job: jobs.last(job) for job in UPKEEP_STEPS}
            if jobs.upkeep_due() and self.can_consolidate():
                self._start(UPKEEP_JOB)

    def is_upkeep_due(self, config: Config, resting: float) -> bool:
        """Whether it is time to check for facts to consolidate."""
        after = config.daemon_upkeep_minutes * 60
        return 0 < after <= resting and self.schedule.is_due("upkeep")

    def has_nothing_due(self, pending: Path) -> bool:
        """Whether nothing is queued, running or watched, by the names in `pending/` alone."""
        self.schedule.set_in("queue", QUEUE_INTERVAL)
        try:
            names = os.listdir(pending)  # noqa: PTH208
            self.watches = (pending.parent / "local" / "watched.json").exists()
            waits = any(name.startswith(("turns-", "retain-")) for name in names)
            return not (self.key or waits or self.watches)
        except OSError:
            return not self.key

    def stop(self) -> None:
        """Terminate the running process; its turns stay in the queue."""
        process, self._process = self._process, None
        if process is not None:
            process.terminate()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _settings(self) -> Config:
        return config_module.load(self._root, self._env, lenient=True)

    def has_model(self) -> bool:
        """Whether background jobs have a model. The settings are read again, since they may change."""
        return daemon_endpoint(self._settings(), self._env) is not None

    def can_consolidate(self) -> bool:
        """Whether consolidation may run in the background: with a model, or if the provider is `none`. Else a
        caller may have a model that this process lacks, and should consolidate with it."""
        return self.has_model() or self._settings().provider == "none"

    def _check_watched(self, memory: Memory) -> None:
        """Start a job for changes at watched paths. The check takes at most 0.2 % of a core."""
        if not self.schedule.is_due("watched"):
            return
        began = time.monotonic()
        if memory.watches.due(modelled=self.has_model()):
            self._start(WATCHED_KEY)
        self.schedule.set_in("watched", 500 * (time.monotonic() - began))

    def _start(self, key: str) -> None:
        self._process = start_process([str(self._root), key], self._env, module=__name__)
        self.key = key
        self.schedule.set_in("queue", 1.0)

    def _check_process(self, memory: Memory) -> None:
        code = self._process.poll() if self._process else None
        if code is None:
            return
        left = next((one for one in _waiting_entries(memory) if one.key == self.key), None)
        if self.key == UPKEEP_JOB:
            self._log_upkeep(Jobs(memory.store), code)
        elif self.key == WATCHED_KEY:
            self._say(f"retained watched files{f' (exit code {code})' if code else ''}")
        elif left is None:
            self._say(f"{'retained' if self._text else 'flushed'} {self.key}")
        elif left.reason and code:
            after = f", not before {left.attempts.retry_at:%H:%M:%S}" if left.attempts.retry_at else ""
            self._say(f"{self.key} {'is set aside' if left.set_aside else f'waits on{after}'}: {left.reason}")
        # A failure that left no trace in the entry's record must not be retried at once.
        self.schedule.set_in("queue", GRACE_SECONDS if code else 0.0)
        self._process, self.key = None, ""

    def _log_upkeep(self, jobs: Jobs, code: int) -> None:
        """Log the result; of repeated failures only the first. A run that left no result, since it was killed
        or another was running, is retried after the longest pause."""
        before, self._last = self._last, {job: jobs.last(job) for job in UPKEEP_STEPS}
        for job, last in self._last.items():
            if last and last.failed < 2 and last != before.get(job):
                after = f" failed, not before {last.again:%H:%M:%S}" if last.failed else ""
                self._say(f"{job}{after}: {last.result}")
        if code and self._last == before:
            self._say(f"upkeep ended with exit code {code}")
            self.schedule.set_in("upkeep", UPKEEP_INTERVAL.total_seconds())

    def _warn_without_model(self, waiting: Sequence[QueueEntry]) -> None:
        number = sum(one.for_model is not False for one in waiting)
        if number and not self._warned and not self.has_model():
            self._warned = True
            self._say(f"{number} waiting for a model; this daemon was started without one")


def _waiting_entries(memory: Memory) -> list[QueueEntry]:
    """The queue's conversations and texts, the longest waiting first."""
    return sorted(
        memory.queue.list(), key=lambda one: (one.since is None, one.since and one.since.timestamp())
    )


def main(argv: Sequence[str]) -> int:
    """Run the job with a key. Returns the exit code of its error."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # not counted as a failed attempt of the entry
    root, key = Path(argv[0]), argv[1]
    env: dict[str, Any] = dict(os.environ)
    with Memory.open(root, config=config_module.load(root, env), door="daemon") as memory:
        model = daemon_endpoint(memory.config, env)
        try:
            if key == UPKEEP_JOB:
                os.nice(UPKEEP_NICENESS)
                return consolidate(memory, model)
            if key == WATCHED_KEY:
                memory.watches.run(model=model, unasked=True)
            else:
                memory.queue.attempt(key, model=model)
        except UaMemoryError as error:
            return error.exit_code
    return 0


class IndexReleasingModel:
    """A model that closes the index before each request: an answer takes long, and a command may need the
    index meanwhile."""

    def __init__(self, model: Model, memory: Memory) -> None:
        self._model, self._memory = model, memory
        self.name, self.one_shot = model.name, model.one_shot

    def ask(self, system: str, messages: Sequence[Message], **more: Any) -> Reply:
        self._memory.close()
        return self._model.ask(system, messages, **more)


def consolidate(memory: Memory, at: Endpoint | None) -> int:
    """Consolidate and refresh stale pages within the limits of one run. Returns the exit code of the error
    that ended it."""

    def after(done: ConsolidationResult, model: Model | None) -> None:
        if not done.ended:
            memory.pages.refresh_stale(model and IndexReleasingModel(model, memory))

    done = memory.consolidate(model=at, limit=FACTS_PER_RUN, after=after)
    return done.ended.exit_code if done.ended else 0


# -- the open bank -----------------------------------------------------------------------------------------
# Each command opens the bank anew, as its own process would, and reads the settings. What is slow to open is
# kept between commands: git's log, the word index, Chroma and the model. The files are not scanned again
# while the watch reports no change.


PACK_EVERY = 4
"""Packing the history is deferred, but not more often than this in a row: some 64 revisions."""

INDEX_LIBRARIES = ("onnxruntime", "chromadb_rust_bindings", "tokenizers")
"""Libraries that only the index uses: 40 MB of code, which the next search loads again in some 60 ms."""


KEPT_VARIABLES = ("HOME", "XDG_CONFIG_HOME", "UA_MEMORY_EMBEDDING", "UA_MEMORY_CHROMA_URL")
"""Variables of the last command that the daemon's own work uses: they choose the settings and the index. The
others concern only that caller."""


class WarmBank:
    """The daemon's bank, with its index and model kept open. `root` has no symbolic links, `env` is the
    daemon's environment. Used from one thread, except `config`."""

    def __init__(self, root: Path, config: Config, pending: Path, env: Mapping[str, str]) -> None:
        self.root, self.config, self.pending = root, config, pending
        self._env = dict(env)
        self.snapshots = SnapshotCache(lambda: None)
        self._index: Any = None
        self._history: History | None = None
        """The last command's history, whose parsed log the next one continues."""
        self._is_trimmed, self._used = False, False
        self.unreported: list[str] = []
        """Notes about a person's saves that no command has printed yet."""
        self.deferred_packings = 0
        """How many times in a row commands have deferred packing the history."""

    @property
    def is_loaded(self) -> bool:
        """Whether an index is open."""
        return self._index is not None

    @property
    def has_nothing_to_unload(self) -> bool:
        """Whether neither an index nor a cache is in memory."""
        return not (self.is_loaded or self._used)

    @property
    def is_behind(self) -> bool:
        """Whether the last command left the index out of date."""
        return self._index is not None and self._index.behind

    def prefetch_query(self, query: str) -> None:
        """Start embedding a guessed query if the model is loaded, since that takes longest of a search."""
        if self._index is not None and self._index.ready:
            self._index.embeds.prefetch(query)

    @contextmanager
    def open_for_caller(
        self, root: Path, config: Config, now: Callable[[], datetime] | None, *, env: Mapping[str, str]
    ) -> Iterator[Memory]:
        """Open the bank for a caller's command. RequestRefused if the command is for another bank."""
        if root.resolve() != self.root:
            raise RequestRefused(OTHER_BANK, f"this daemon's bank is {self.root}")
        memory = Memory.open(root, config=config, now=now, door="cli")
        self.config, self._env, self._used = config, dict(env), True
        with self._with_index(memory):
            yield memory

    @contextmanager
    def open_own(self) -> Iterator[Memory]:
        """Open the bank for the daemon's own work, with the embedding model and the vector store of the last
        command. An index that was not loaded before is closed afterwards.
        """
        cold = not self.is_loaded
        env = {name: self._env[name] for name in KEPT_VARIABLES if name in self._env}
        config = config_module.load(self.root, env)
        # Commands wait for this work, so it must not wait long for a lock.
        config = replace(config, lock_seconds=min(config.lock_seconds, 0.5))
        memory = Memory.open(self.root, config=config, door="editor")
        try:
            with self._with_index(memory):
                yield memory
        finally:
            if cold:
                self.close()

    @contextmanager
    def _with_index(self, memory: Memory) -> Iterator[None]:
        self._pass_index_to(memory)
        memory.store.snapshots, memory.store.defer_pack = self.snapshots, self._defer
        try:
            yield
        except (UaMemoryError, RequestRefused):
            self._take_index_from(memory)
            raise
        except BaseException:
            memory.close()  # its state is unknown
            raise
        else:
            self._take_index_from(memory)

    def _defer(self) -> bool:
        """Defer packing the history to an idle moment, except at every PACK_EVERY-th time."""
        self.deferred_packings = (self.deferred_packings + 1) % PACK_EVERY
        return self.deferred_packings > 0

    def _pass_index_to(self, memory: Memory) -> None:
        history, self._history = self._history, memory.store.history
        if history is not None:
            self._history.share_cache(history)
        index, self._index = self._index, None
        if index is None:
            return
        then, now = index.store.config, memory.config
        same = (then.embedding, then.chroma_url) == (now.embedding, now.chroma_url)
        if same and index.store.bank == memory.store.bank:
            index.use(memory.store)
            memory.lend_index(index)
        else:  # another model or bank id, or a repository was added or removed
            index.close()

    def _take_index_from(self, memory: Memory) -> None:
        self._index = memory.take_index()
        if self._index is not None and not self._is_trimmed:
            gc.freeze()  # exclude the objects of Chroma and the model from garbage collection
            embedding.trim()  # loading the model took 70 MB more than it needs
            self._is_trimmed = True

    def unload(self) -> bool:
        """Release Chroma, the model and all caches, also those that commands like `status` filled; the next
        command loads them again. True if an index was open."""
        if self.has_nothing_to_unload:
            return False
        was, self._used = self.close(), False
        embedding.clear_caches()
        release_memory()
        embedding.page_out(*INDEX_LIBRARIES)
        return was

    def close(self) -> bool:
        """Close the index and the history. True if an index was open."""
        history, self._history = self._history, None
        if history is not None:
            history.close()
        index, self._index, self._is_trimmed = self._index, None, False
        if index is not None:
            index.close()
        return index is not None


def release_memory() -> None:
    """Return freed memory to the system. Without this, glibc keeps 258 MB instead of 140 MB."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    embedding.trim()


# -- upkeep ------------------------------------------------------------------------------------------------
# The daemon's own work between commands: update the index, commit hand edits, run background jobs. All in the
# worker thread, in pieces small enough that no command waits long.


SETTLE_SECONDS = 0.15
"""Seconds without an event before changed files are read: an editor's save causes several events."""
SETTLE_LIMIT = 1.0
"""Seconds after the first event when changed files are read in any case."""
RETRY_SECONDS = 5.0
"""Seconds before a failed update is retried, doubled each time up to a minute."""
CLOCK_SKEW = 60.0
"""Seconds by which the clock of a file system may be ahead of ours."""


class Upkeep:
    """The daemon's own work. `note_change` is called from the watch's thread, the rest in the worker's.
    `wake_worker` wakes that; `has_command` says whether a command waits."""

    def __init__(
        self, warm: WarmBank, say: Callable[[str], None], wake_worker: Callable[[], None],
        has_command: Callable[[], bool], flushing: BackgroundJobs,
    ) -> None:  # fmt: skip
        self._flushing, self._schedule = flushing, flushing.schedule
        self._warm, self._say, self._wake_worker, self._has_command = warm, say, wake_worker, has_command
        self.watch: Watch | None = None
        self._lock = threading.Lock()
        self._read_by = 0.0
        """When changed files are read even while others change."""
        self._behind, self._failures = False, 0
        self._queue_error = ""
        """The last error of reading the queue, so that it is logged only once."""
        self.index_updates = 0
        """How many times the index was updated without a command."""

    def note_change(self) -> None:
        """Record that files may have changed. From any thread; returns at once."""
        now = time.monotonic()
        with self._lock:
            first = self._schedule["read"] == NEVER
            self._read_by = now + SETTLE_LIMIT if first else self._read_by
            self._schedule["read"] = min(now + SETTLE_SECONDS, self._read_by)
        if first:
            self._wake_worker()

    def attach(self, watch: Watch) -> None:
        """Use a watch, and read what has changed while no daemon ran."""
        self.watch = watch
        self.note_change()

    @property
    def has_pending_work(self) -> bool:
        """Whether the daemon must not exit: an edit is not committed, a file not indexed, a job is running,
        or paths are watched."""
        flushes = bool(self._flushing.key or self._flushing.watches)
        return min(self._schedule[work] for work in ("read", "commit", "pack")) != NEVER or flushes

    def next_due(self) -> float:
        """When `run_due` has something to do, in seconds of the monotonic clock."""
        watch = self.watch.next_due() if self.watch else NEVER
        return min(self._due(), watch, self._schedule["queue"], self._schedule["pack"])

    def run_due(self, resting: float = NEVER) -> None:
        """Do what is due. Failures are logged and retried. `resting`: seconds since the last command."""
        if self._schedule.is_due("queue"):
            self._flush(resting)
        self._pack(resting)
        whole = self.watch is not None and self.watch.check()
        if whole:
            self._warm.snapshots.invalidate()
        if not whole and (time.monotonic() < self._due() or self._defer(resting)):
            return
        with self._lock:
            self._schedule["read"] = NEVER
        try:
            self._update_index(whole)
        except Exception as error:  # even after a bug the change is not forgotten
            with self._lock:
                self._read_by = time.monotonic()
                self._schedule["read"] = self._read_by
            self._schedule.set_in("retry", min(RETRY_SECONDS * 2**self._failures, 60.0))
            self._failures += 1
            if self._failures == 1:
                why = error if isinstance(error, UaMemoryError) else repr(error)
                self._say(f"could not update the index, retrying: {why}")
        else:
            self._failures = 0
            self._schedule["retry"] = 0.0

    def _defer(self, resting: float) -> bool:
        """Whether to commit an edit a little later. A script may be about to remove the bank after its last
        command, and files written meanwhile would be in its way."""
        if resting >= REST or self._schedule["read"] != NEVER or self._behind or self._warm.is_behind:
            return False
        self._schedule.set_in("commit", REST - resting)
        return True

    def _pack(self, resting: float) -> None:
        """Pack the history that commands deferred to pack, once no command comes for a while."""
        self._schedule["pack"] = NEVER
        if self._warm.deferred_packings and resting < REST:
            self._schedule.set_in("pack", REST - resting)
        elif self._warm.deferred_packings:
            self._warm.deferred_packings = 0
            try:
                with self._warm.open_own() as memory:
                    memory.store.pack()
            except (UaMemoryError, OSError) as error:  # the next command tries again
                self._say(f"could not pack the history: {error}")

    def _flush(self, resting: float) -> None:
        flushing = self._flushing
        upkeep = flushing.is_upkeep_due(self._warm.config, resting)
        if flushing.has_nothing_due(self._warm.pending) and not upkeep:
            return
        before, unseen = flushing.key, ""
        try:
            with self._warm.open_own() as memory:
                flushing.check(memory, resting)
            if flushing.key == UPKEEP_JOB != before:
                self._warm.unload()  # the child process needs the index, which only one process may open
        except (UaMemoryError, OSError) as error:
            unseen = str(error)
            if unseen != self._queue_error:
                self._say(f"could not read the queue: {error}")
        self._queue_error = unseen

    def _due(self) -> float:
        """When the index is to be updated, or an edit committed."""
        behind = self._behind or self._warm.is_behind
        due = 0.0 if behind else min(self._schedule["read"], self._schedule["commit"])
        return max(due, self._schedule["retry"])

    def _update_index(self, whole: bool) -> None:
        began, now = time.monotonic(), time.time()
        warm, much = self._warm.is_loaded, self._behind or self._warm.is_behind
        with self._warm.open_own() as memory:
            # The next command prints these notes, as when an old copy was saved over newer facts.
            self._warm.unreported += memory.store.adopt(quiet=memory.config.quiet_seconds, wait=False).notes
            # Without a loaded model only the word index is updated: the model would take 200 MB.
            done = memory.refresh(vectors=warm, stop=self._has_command)
            seen, quiet = memory.store.survey(), memory.config.quiet_seconds
        if whole and self.watch:
            self.watch.record_scan_time(time.monotonic() - began)
        self._behind = bool(done.left_files or done.left_texts)
        if much and not self._behind:
            release_memory()
        self.index_updates += bool(done.added or done.changed or done.removed)
        # Ages at the start: an edit that came to rest while the index was updated is due now, not in a retry.
        ages = [now - seen.changed[path] / 1e9 for path in set(seen.changed) - set(seen.held)]
        # A modification time further in the future than a clock may differ, as `touch` can set, is ignored.
        waits = [quiet - age if age < quiet else RETRY_SECONDS for age in ages if age > -CLOCK_SKEW]
        self._schedule["commit"] = began + min(waits) + 0.02 if waits else NEVER


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
