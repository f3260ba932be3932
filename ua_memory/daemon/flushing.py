"""Taking up what waits for its flush, or to be retained, while nobody asks for anything: one at a time, in a
process of its own, so that no command waits for a model and nothing of a model stays in memory.

As a module it is that process: `python -m ua_memory.daemon.flushing BANK KEY`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ua_memory import config as settings
from ua_memory.errors import UaMemoryError
from ua_memory.memory import Memory

if TYPE_CHECKING:
    from ua_memory.memory import Endpoint, Waiting

EVERY = 10.0
"""Seconds between two looks at what waits."""
REST = 2.0
"""Seconds without a command after which a flush may be taken up."""
YOUNG = 30.0
"""Seconds in which whoever handed turns over is left to flush them."""
WATCHED = "watched"
"""In place of a key: what has changed at watched paths."""
MODEL = ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "UA_MEMORY_MODEL")


def endpoint(env: Mapping[str, str]) -> Endpoint | None:
    """The model of the environment that this process was started with; never that of a caller."""
    return Memory.endpoint(*(env.get(name, "") for name in MODEL))


def due(waiting: Sequence[Waiting], now: datetime, *, modelled: bool) -> Waiting | None:
    """What is to be tried now, the longest waiting first. Without a model only what nobody meant for one:
    its own sentences would be taken, and the model would never see it."""
    for one in waiting:
        fresh = one.newest is not None and now - one.newest < timedelta(seconds=YOUNG)
        early = one.tried.again is not None and now < one.tried.again
        if (
            not (fresh or early or one.aside or one.gathers(now))
            and one.turns
            and (modelled or one.modelled is False)
        ):
            return one
    return None


class Flushing:
    """The daemon's side: looks now and then, starts a process, notes how it ended. Used in the worker."""

    def __init__(self, root: Path, env: Mapping[str, str], say: Callable[[str], None]) -> None:
        self._root, self._env, self._say = root, dict(env), say
        self._modelled = endpoint(env) is not None
        self._process: subprocess.Popen[bytes] | None = None
        self._next, self._names, self._told = 0.0, "", False
        self._next_look = 0.0
        self.watches = False
        """Whether paths are watched: then the daemon does not leave for want of commands."""
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
            found = due(waiting, memory.store.now(), modelled=self._modelled)
            if found:
                self._text = memory.waits_as_text(found.key)
                self._begin(found.key)
            self._tell(waiting)
        if not self.key and memory.config.enabled and resting >= REST:
            self._look(memory)

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

    def _look(self, memory: Memory) -> None:
        """Take in what has changed at watched paths; looking there costs at most 0.2 % of a core."""
        if time.monotonic() < self._next_look:
            return
        began = time.monotonic()
        if memory.watch_due(modelled=self._modelled):
            self._begin(WATCHED)
        self._next_look = time.monotonic() + 500 * (time.monotonic() - began)

    def _begin(self, key: str) -> None:
        # -P: no module of the folder it runs in may take the place of one of ours.
        argv = [sys.executable, "-P", "-m", __name__, str(self._root), key]
        null = subprocess.DEVNULL
        self._process = subprocess.Popen(
            argv, stdin=null, stdout=null, stderr=null, cwd="/", env=self._env, start_new_session=True
        )
        self.key, self._next = key, time.monotonic() + 1.0

    def _ended(self, memory: Memory) -> None:
        code = self._process.poll() if self._process else None
        if code is None:
            return
        left = next((one for one in _waiting(memory) if one.key == self.key), None)
        if self.key == WATCHED:
            self._say(f"caught up with watched files{f' (exit code {code})' if code else ''}")
        elif left is None:
            self._say(f"{'retained' if self._text else 'flushed'} {self.key}")
        elif left.reason and code:
            after = f", not before {left.tried.again:%H:%M:%S}" if left.tried.again else ""
            self._say(f"{self.key} {'is set aside' if left.aside else f'waits on{after}'}: {left.reason}")
        # What failed without a word in its record is not tried again at once.
        self._next = time.monotonic() + (YOUNG if code else 0.0)
        self._process, self.key = None, ""

    def _tell(self, waiting: Sequence[Waiting]) -> None:
        number = sum(one.modelled is not False for one in waiting)
        if number and not self._modelled and not self._told:
            self._told = True
            self._say(f"{number} waiting for a model, and this daemon was started without one")


def _waiting(memory: Memory) -> list[Waiting]:
    """Conversations and texts, the longest waiting first."""
    both = [*memory.waiting(), *memory.waiting_texts()]
    return sorted(both, key=lambda one: (one.since is None, one.since and one.since.timestamp()))


def main(argv: Sequence[str]) -> int:
    """Flush or retain what waits under one key. The exit code is that of its error; the record says which."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that it is noted as no fault of the turns
    root, key = Path(argv[0]), argv[1]
    env: dict[str, Any] = dict(os.environ)
    with Memory.open(root, config=settings.load(root, env), door="daemon") as memory:
        try:
            if key == WATCHED:
                memory.watch_run(model=endpoint(env), unasked=True)
            elif memory.waits_as_text(key):
                memory.attempt_text(key, model=endpoint(env))
            else:
                memory.attempt(key, model=endpoint(env))
        except UaMemoryError as error:
            return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
