"""A bank kept warm between commands: each opens it anew, as a process of its own would, but for the index.

Settings and trail are read afresh each time; what is kept is what costs seconds to open: the word index,
Chroma and the model. And the files are not looked at again while a witness vouches for the last look.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from ua_memory import config as settings
from ua_memory import heap
from ua_memory.config import Config
from ua_memory.daemon.messages import ELSEWHERE, Refused
from ua_memory.errors import UaMemoryError
from ua_memory.memory import Memory, Sight, Witness

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
        self.witness: Witness[Sight] = Witness(lambda: None)
        self._index: Any = None
        self._settled, self._used = False, False
        self.untold: list[str] = []
        """What became of a person's saves while nobody waited for an answer."""
        self.unpacked = 0
        """So many times a command has put off packing the trail."""

    @property
    def warm(self) -> bool:
        """Whether an index is open."""
        return self._index is not None

    @property
    def rested(self) -> bool:
        """Whether there is nothing to let go of: no index, and nothing that a command has left remembered."""
        return not (self.warm or self._used)

    @property
    def behind(self) -> bool:
        """Whether the last command had no time to bring it up to date."""
        return self._index is not None and self._index.behind

    def expect(self, query: str) -> None:
        """Have the model, if it is loaded, begin to read what a search is likely to ask: it takes longer than
        all that comes before. Where something else is asked, nothing but that is lost."""
        if self._index is not None and self._index.ready:
            self._index.embeds.expect(query)

    @contextmanager
    def opened(
        self, root: Path, config: Config, now: Callable[[], datetime] | None, *, env: Mapping[str, str]
    ) -> Iterator[Memory]:
        """The bank for one command, and its caller's variables. Refused if it is another one."""
        if root.resolve() != self.root:
            raise Refused(ELSEWHERE, f"this daemon's bank is {self.root}")
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
        config = settings.load(self.root, {name: self._env[name] for name in KEPT if name in self._env})
        # Commands wait for what is done here, so it waits for nobody.
        config = replace(config, lock_seconds=min(config.lock_seconds, 0.5))
        memory = Memory.open(self.root, config=config, door="editor")
        try:
            with self._lent(memory):
                yield memory
        finally:
            if cold:
                self._close()

    @contextmanager
    def _lent(self, memory: Memory) -> Iterator[None]:
        self._lend(memory)
        memory.store.witness, memory.store.put_off = self.witness, self._put_off
        try:
            yield
        except (UaMemoryError, Refused):
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
        index, self._index = self._index, None
        if index is None:
            return
        then, now = index.store.config, memory.config
        same = (then.embedding, then.chroma_url) == (now.embedding, now.chroma_url)
        if same and index.store.bank == memory.store.bank:
            index.use(memory.store)
            memory.__dict__["index"] = index
        else:  # another model, another id, a repository that came or went
            index.close()

    def _take_back(self, memory: Memory) -> None:
        self._index = memory.__dict__.pop("index", None)
        if self._index is not None and not self._settled:
            gc.freeze()  # what Chroma and the model are made of is not looked through for garbage each time
            heap.trim()  # to load the model took 70 MB more than it is
            self._settled = True

    def cool(self) -> bool:
        """Let go of Chroma, the model and all that is remembered; the next command opens them again. Whether
        an index was open. What counts tokens without one, as `status` does, leaves their table, too."""
        if self.rested:
            return False
        was, self._used = self._close(), False
        heap.forget()
        give_back()
        heap.page_out(*LIBRARIES)
        return was

    def _close(self) -> bool:
        index, self._index, self._settled = self._index, None, False
        if index is not None:
            index.close()
        return index is not None


def give_back() -> None:
    """Return freed memory to the system. glibc keeps it: 258 MB stay without this, 140 MB with it."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    heap.trim()
