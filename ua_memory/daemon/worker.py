"""The daemon's one worker thread, its open bank, and what it does between commands."""

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
from ua_memory.daemon.connect import BUSY, ELSEWHERE, INTERNAL, LATE, RequestRefused
from ua_memory.daemon.spawn import background
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
# One thread that does all work, one job after the other: SQLite and Chroma are at home in it.


QUEUED = 128
"""Jobs that may wait."""
PATIENCE = 2.0
"""Seconds in which no job was done, after which who waits is better off doing it."""
DEADLINE = 600.0
"""Seconds that a job may take once it has begun."""
ALIVE = 1.0
"""Seconds after which a caller who waits is told so."""


class Job:
    """A piece of work and what comes of it: messages while it runs, then a result or a RequestRefused."""

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
        except RequestRefused as refused:
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
        """Have a job done and return its result; `tell` gets what it sends, None each second.

        RequestRefused.
        """
        try:
            self._jobs.put_nowait(job)
        except queue.Full:
            raise RequestRefused(BUSY, "too many commands wait") from None
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
                    raise RequestRefused(BUSY, "busy with other commands") from None
                if time.monotonic() > came + PATIENCE + DEADLINE:
                    raise RequestRefused(LATE, f"not finished after {DEADLINE:.0f} s") from None
                tell(None)
                continue
            if kind == "result":
                return what
            if kind != "notice":
                raise what if kind == "refused" else RequestRefused(INTERNAL, repr(what)) from what
            tell(what)

    def stop(self, seconds: float) -> bool:
        """Finish what has begun, refuse the rest; False if that takes longer than `seconds`."""
        with contextlib.suppress(queue.Empty):
            while True:
                job = self._jobs.get_nowait()
                if job and job.settle():
                    job.out.put(("refused", RequestRefused(BUSY, "the daemon is exiting")))
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
            due, said = self._idle(time.monotonic() - self.last), ""
        except Exception as error:
            due, said = None, repr(error)
            if said != self._said:
                self._say(f"background work failed: {said}")
        self._said = said
        return due


# -- flushing ----------------------------------------------------------------------------------------------
# Taking up what waits for its flush, or to be retained, and, after a longer rest, new facts for consolidation
# and stale pages, while nobody asks for anything: one at a time, in a process of its own, so that no command
# waits for a model and nothing of a model stays in memory.
#
# As a module it is that process: `python -m ua_memory.daemon.worker BANK KEY`.


EVERY = 10.0
"""Seconds between two looks at what waits."""
REST = 2.0
"""Seconds without a command after which a flush may be taken up."""
YOUNG = 30.0
"""Seconds in which whoever handed turns over is left to flush them."""
WATCHED = "watched"
"""In place of a key: what has changed at watched paths."""
LOOK = 60.0
"""Seconds between two looks at whether there is any of that to do."""
PORTION = 200
"""Facts that one such consolidation takes, the oldest first; the next one goes on."""
STANDS_BACK = 10
"""How far (`nice`) it stands back."""


def endpoint(config: Config, env: Mapping[str, str]) -> Endpoint | None:
    """The model of the settings and of the environment that this process was started with; never that of a
    caller, so none where it takes a key that only they have."""
    found = endpoint_of(config.provider, config.model, env)
    return found if found and found.can_answer else None


def due(waiting: Sequence[QueueEntry], now: datetime, *, modelled: bool) -> QueueEntry | None:
    """What is to be tried now, the longest waiting first. Without a model only what nobody meant for one:
    its own sentences would be taken, and the model would never see it."""
    for one in waiting:
        fresh = one.newest is not None and now - one.newest < timedelta(seconds=YOUNG)
        early = one.attempts.retry_at is not None and now < one.attempts.retry_at
        waits = fresh or early or one.set_aside or one.still_open(now) or not one.turns
        if not waits and (modelled or one.for_model is False):
            return one
    return None


class Flushing:
    """The daemon's side: looks now and then, starts a process, notes how it ended. Used in the worker."""

    def __init__(self, root: Path, env: Mapping[str, str], say: Callable[[str], None]) -> None:
        self._root, self._env, self._say = root, dict(env), say
        self._process: subprocess.Popen[bytes] | None = None
        self._next, self._told = 0.0, False
        self._last: dict[str, JobRun | None] = {}
        self._next_look = self._next_upkeep = 0.0
        self.watches = False
        """Whether paths are watched: then the daemon does not exit for want of commands."""
        self.key, self._text = "", False
        """What is being flushed or, if it is a text, retained; '' for nothing."""

    def next(self) -> float:
        """When to look again, in seconds of the monotonic clock."""
        return self._next

    def tend(self, memory: Memory, resting: float) -> None:
        """See how the flush under way is doing, or take up one that is due."""
        self._next = time.monotonic() + (1.0 if self.key else EVERY)
        if self._process is not None:
            self._ended(memory)
        elif memory.config.enabled and resting >= REST and (waiting := _waiting(memory)):
            found = due(waiting, memory.store.now(), modelled=self.modelled())
            if found:
                self._text = memory.queue.is_text(found.key)
                self._begin(found.key)
            self._tell(waiting)
        if not self.key and memory.config.enabled and resting >= REST:
            self._look(memory)
        if not self.key and memory.config.enabled and self.rests(memory.config, resting):
            self._next_upkeep = time.monotonic() + LOOK
            jobs = Jobs(memory.store)
            self._last = {job: jobs.last(job) for job in UPKEEP_STEPS}
            if jobs.upkeep_due() and self.can_tend():
                self._begin(UPKEEP_JOB)

    def rests(self, config: Config, resting: float) -> bool:
        """Whether it is time to see if there is something to consolidate."""
        after = config.daemon_upkeep_minutes * 60
        return 0 < after <= resting and time.monotonic() >= self._next_upkeep

    def idle(self, pending: Path) -> bool:
        """Whether there is nothing to look at: told by the names in a folder alone."""
        self._next = time.monotonic() + EVERY
        try:
            names = os.listdir(pending)  # noqa: PTH208
            self.watches = (pending.parent / "local" / "watched.json").exists()
            waits = any(name.startswith(("turns-", "retain-")) for name in names)
            return not (self.key or waits or self.watches)
        except OSError:
            return not self.key

    def stop(self) -> None:
        """End what is under way; its turns go on waiting."""
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

    def modelled(self) -> bool:
        """Whether what we start has a model: its owner may name one while we run."""
        return endpoint(self._settings(), self._env) is not None

    def can_tend(self) -> bool:
        """Whether consolidation may run unasked: by a model, or, without one, where the owner wants none.
        Where a caller may have one that we have not, its work is not done by comparison first."""
        return self.modelled() or self._settings().provider == "none"

    def _look(self, memory: Memory) -> None:
        """Take in what has changed at watched paths; looking there costs at most 0.2 % of a core."""
        if time.monotonic() < self._next_look:
            return
        began = time.monotonic()
        if memory.watches.due(modelled=self.modelled()):
            self._begin(WATCHED)
        self._next_look = time.monotonic() + 500 * (time.monotonic() - began)

    def _begin(self, key: str) -> None:
        self._process = background([str(self._root), key], self._env, module=__name__)
        self.key, self._next = key, time.monotonic() + 1.0

    def _ended(self, memory: Memory) -> None:
        code = self._process.poll() if self._process else None
        if code is None:
            return
        left = next((one for one in _waiting(memory) if one.key == self.key), None)
        if self.key == UPKEEP_JOB:
            self._say_upkeep(Jobs(memory.store), code)
        elif self.key == WATCHED:
            self._say(f"retained watched files{f' (exit code {code})' if code else ''}")
        elif left is None:
            self._say(f"{'retained' if self._text else 'flushed'} {self.key}")
        elif left.reason and code:
            after = f", not before {left.attempts.retry_at:%H:%M:%S}" if left.attempts.retry_at else ""
            self._say(f"{self.key} {'is set aside' if left.set_aside else f'waits on{after}'}: {left.reason}")
        # What failed without turns in its record is not tried again at once.
        self._next = time.monotonic() + (YOUNG if code else 0.0)
        self._process, self.key = None, ""

    def _say_upkeep(self, jobs: Jobs, code: int) -> None:
        """What came of it; a failure is said once, not each time that it is tried again. One that left no
        note, since it was killed or another was at work, is tried again after the longest pause."""
        before, self._last = self._last, {job: jobs.last(job) for job in UPKEEP_STEPS}
        for job, last in self._last.items():
            if last and last.failed < 2 and last != before.get(job):
                after = f" failed, not before {last.again:%H:%M:%S}" if last.failed else ""
                self._say(f"{job}{after}: {last.result}")
        if code and self._last == before:
            self._say(f"upkeep ended with exit code {code}")
            self._next_upkeep = time.monotonic() + UPKEEP_INTERVAL.total_seconds()

    def _tell(self, waiting: Sequence[QueueEntry]) -> None:
        number = sum(one.for_model is not False for one in waiting)
        if number and not self._told and not self.modelled():
            self._told = True
            self._say(f"{number} waiting for a model; this daemon was started without one")


def _waiting(memory: Memory) -> list[QueueEntry]:
    """Conversations and texts, the longest waiting first."""
    return sorted(
        memory.queue.list(), key=lambda one: (one.since is None, one.since and one.since.timestamp())
    )


def main(argv: Sequence[str]) -> int:
    """Flush or retain what waits under one key. The exit code is that of its error; the record says which."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that it is noted as no fault of the turns
    root, key = Path(argv[0]), argv[1]
    env: dict[str, Any] = dict(os.environ)
    with Memory.open(root, config=config_module.load(root, env), door="daemon") as memory:
        model = endpoint(memory.config, env)
        try:
            if key == UPKEEP_JOB:
                os.nice(STANDS_BACK)
                return consolidate(memory, model)
            if key == WATCHED:
                memory.watches.run(model=model, unasked=True)
            else:
                memory.queue.attempt(key, model=model)
        except UaMemoryError as error:
            return error.exit_code
    return 0


class Yielding:
    """A model that is asked with the index closed: an answer takes long, and a command may want to search."""

    def __init__(self, model: Model, memory: Memory) -> None:
        self._model, self._memory = model, memory
        self.name, self.one_shot = model.name, model.one_shot

    def ask(self, system: str, messages: Sequence[Message], **more: Any) -> Reply:
        self._memory.close()
        return self._model.ask(system, messages, **more)


def consolidate(memory: Memory, at: Endpoint | None) -> int:
    """Consolidate and refresh stale pages within the limits of one run. The exit code is that of the error
    that ended it."""

    def after(done: ConsolidationResult, model: Model | None) -> None:
        if not done.ended:
            memory.pages.refresh_stale(model and Yielding(model, memory))

    done = memory.consolidate(model=at, limit=PORTION, after=after)
    return done.ended.exit_code if done.ended else 0


# -- warm --------------------------------------------------------------------------------------------------
# A bank kept warm between commands: each opens it anew, as a process of its own would, but for the index.
#
# Settings are read afresh each time; what is kept is what costs time to open: the log of git, the word index,
# Chroma and the model. And the files are not looked at again while the watch reports no change.


OFTEN = 4
"""At every fourth time, after some 64 revisions, packing is not put off any more."""

LIBRARIES = ("onnxruntime", "chromadb_rust_bindings", "tokenizers")
"""What only the index runs: 40 MB of code, which the next search has read again in some 60 ms."""


KEPT = ("HOME", "XDG_CONFIG_HOME", "UA_MEMORY_EMBEDDING", "UA_MEMORY_CHROMA_URL")
"""Variables of the last command by which the daemon goes on: whose settings count, and which index is open.
The others say something about that caller alone."""


class Warm:
    """The bank at `root`, a path without symbolic links. Used from one thread, but for `config`. `env` is
    the environment of the daemon."""

    def __init__(self, root: Path, config: Config, pending: Path, env: Mapping[str, str]) -> None:
        self.root, self.config, self.pending = root, config, pending
        self._env = dict(env)
        self.snapshots = SnapshotCache(lambda: None)
        self._index: Any = None
        self._history: History | None = None
        """The last command's: the next one goes on from the log that it read."""
        self._settled, self._used = False, False
        self.unreported: list[str] = []
        """What became of a person's saves while nobody waited for an answer."""
        self.unpacked = 0
        """So many times a command has put off packing the trail."""

    @property
    def warm(self) -> bool:
        """Whether an index is open."""
        return self._index is not None

    @property
    def is_unloaded(self) -> bool:
        """Whether there is nothing to let go of: no index, and nothing that a command has left remembered."""
        return not (self.warm or self._used)

    @property
    def behind(self) -> bool:
        """Whether the last command had no time to bring it up to date."""
        return self._index is not None and self._index.behind

    def expect(self, query: str) -> None:
        """Have the model, if it is loaded, begin to read what a search is likely to ask: it is busyer than
        all that comes before. Where something else is asked, nothing but that is lost."""
        if self._index is not None and self._index.ready:
            self._index.embeds.prefetch(query)

    @contextmanager
    def opened(
        self, root: Path, config: Config, now: Callable[[], datetime] | None, *, env: Mapping[str, str]
    ) -> Iterator[Memory]:
        """The bank for one command, and its caller's variables. RequestRefused if it is another one."""
        if root.resolve() != self.root:
            raise RequestRefused(ELSEWHERE, f"this daemon's bank is {self.root}")
        memory = Memory.open(root, config=config, now=now, door="cli")
        self.config, self._env, self._used = config, dict(env), True
        with self._lent(memory):
            yield memory

    @contextmanager
    def own(self) -> Iterator[Memory]:
        """The bank for what the daemon does by itself. What was cold before is cold again afterwards.

        What embeds, and where vectors lie, is what the last command named.
        """
        cold = not self.warm
        config = config_module.load(self.root, {name: self._env[name] for name in KEPT if name in self._env})
        # Commands wait for what is done here, so it waits for nobody.
        config = replace(config, lock_seconds=min(config.lock_seconds, 0.5))
        memory = Memory.open(self.root, config=config, door="editor")
        try:
            with self._lent(memory):
                yield memory
        finally:
            if cold:
                self.close()

    @contextmanager
    def _lent(self, memory: Memory) -> Iterator[None]:
        self._lend(memory)
        memory.store.snapshots, memory.store.defer_pack = self.snapshots, self._put_off
        try:
            yield
        except (UaMemoryError, RequestRefused):
            self._take_back(memory)
            raise
        except BaseException:
            memory.close()  # who knows in what state it is
            raise
        else:
            self._take_back(memory)

    def _put_off(self) -> bool:
        """Leave packing to a moment of rest; where there is none for long, it is done at once after all."""
        self.unpacked = (self.unpacked + 1) % OFTEN
        return self.unpacked > 0

    def _lend(self, memory: Memory) -> None:
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
        else:  # another model, another id, a repository that came or went
            index.close()

    def _take_back(self, memory: Memory) -> None:
        self._index = memory.take_index()
        if self._index is not None and not self._settled:
            gc.freeze()  # what Chroma and the model are made of is not looked through for garbage each time
            embedding.trim()  # to load the model took 70 MB more than it is
            self._settled = True

    def unload(self) -> bool:
        """Let go of Chroma, the model and all that is remembered; the next command opens them again. Whether
        an index was open. What counts tokens without one, as `status` does, leaves their table, too."""
        if self.is_unloaded:
            return False
        was, self._used = self.close(), False
        embedding.clear_caches()
        release_memory()
        embedding.page_out(*LIBRARIES)
        return was

    def close(self) -> bool:
        """Let go of the files, and of what reads git's objects; whether an index was open."""
        history, self._history = self._history, None
        if history is not None:
            history.close()
        index, self._index, self._settled = self._index, None, False
        if index is not None:
            index.close()
        return index is not None


def release_memory() -> None:
    """Return freed memory to the system. glibc keeps it: 258 MB stay without this, 140 MB with it."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    embedding.trim()


# -- upkeep ------------------------------------------------------------------------------------------------
# What a daemon does by itself between commands: catch up with the files, commit edits that have rested,
# take up what waits for its flush. All of it in the one worker, in pieces that keep no command waiting.


STILL = 0.15
"""Seconds without an event after which files are read: an editor's save is several events."""
AT_MOST = 1.0
"""Seconds after the first event when they are read in any case."""
AGAIN = 5.0
"""Seconds after which what failed is tried again; each further time twice as many, to a minute."""
NEVER = float("inf")


class Upkeep:
    """Heard of from the watch's thread, done in the worker's. `nudge` wakes the worker; `hurried` says
    whether a command waits for it."""

    def __init__(
        self, warm: Warm, say: Callable[[str], None], nudge: Callable[[], None], hurried: Callable[[], bool],
        flushing: Flushing,
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
        """So many times the index was updated without a command."""

    def note_change(self) -> None:
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
        self.note_change()

    @property
    def waits(self) -> bool:
        """Whether an edit waits for its quiet, a file to be read, a flush to end, or a watched path for its
        changes: no time to leave."""
        flushes = bool(self._flushing.key or self._flushing.watches)
        return min(self._first, self._rested, self._pack_at) != NEVER or flushes

    def next(self) -> float:
        """When there is something to do, in seconds of the monotonic clock."""
        watch = self.watch.next() if self.watch else NEVER
        return min(self._due(), watch, self._flushing.next(), self._pack_at)

    def do(self, resting: float = NEVER) -> None:
        """Do one piece of what is due. What fails is noted, and tried again. `resting` are the seconds since
        the last command."""
        if time.monotonic() >= self._flushing.next():
            self._flush(self._flushing, resting)
        self._pack(resting)
        whole = self.watch is not None and self.watch.tend()
        if whole:
            self._warm.snapshots.invalidate()
        if not whole and (time.monotonic() < self._due() or self._put_off(resting)):
            return
        with self._lock:
            first, self._first = self._first, NEVER
        try:
            self._catch_up(whole)
        except Exception as error:  # a bug, too: the change is not forgotten for it
            self._first = min(first, time.monotonic())
            self._not_before = time.monotonic() + min(AGAIN * 2**self._failures, 60.0)
            self._failures += 1
            if self._failures == 1:
                why = error if isinstance(error, UaMemoryError) else repr(error)
                self._say(f"could not update the index, retrying: {why}")
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
                self._say(f"could not pack the history: {error}")

    def _flush(self, flushing: Flushing, resting: float) -> None:
        if flushing.idle(self._warm.pending) and not flushing.rests(self._warm.config, resting):
            return
        before, unseen = flushing.key, ""
        try:
            with self._warm.own() as memory:
                flushing.tend(memory, resting)
            if flushing.key == UPKEEP_JOB != before:
                self._warm.unload()  # a page's search needs the index, and one process may have it open
        except (UaMemoryError, OSError) as error:
            unseen = str(error)
            if unseen != self._unseen:
                self._say(f"could not read the queue: {error}")
        self._unseen = unseen

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
            self._warm.unreported += memory.store.adopt(quiet=memory.config.quiet_seconds, wait=False).notes
            # Cold, words will do: nobody waits, and the model would take 200 MB for nothing.
            done = memory.refresh(vectors=warm, stop=self._hurried)
            seen, quiet = memory.store.survey(), memory.config.quiet_seconds
        if whole and self.watch:
            self.watch.took(time.monotonic() - began)
        self._behind = bool(done.left_files or done.left_texts)
        if much and not self._behind:
            release_memory()
        self.caught_up += bool(done.added or done.changed or done.removed)
        since = [time.time() - seen.changed[path] / 1e9 for path in set(seen.changed) - set(seen.held)]
        # A time in the future, as `touch` can set it, is nothing to wait for.
        rest = [quiet - age if age < quiet else AGAIN for age in since if age >= 0]
        self._rested = time.monotonic() + min(rest) + 0.02 if rest else NEVER


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
