"""A bank kept warm between commands: each opens it anew, as a process of its own would, but for the index.

Settings, trail and files are read afresh each time; what is kept is what costs seconds to open: the word
index, Chroma and the model.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from ua_memory.config import Config
from ua_memory.daemon.messages import ELSEWHERE, Refused
from ua_memory.errors import UaMemoryError
from ua_memory.memory import Memory


class Warm:
    """The bank at `root`, a path without symbolic links. Used from one thread, but for `config`."""

    def __init__(self, root: Path, config: Config) -> None:
        self.root, self.config = root, config
        self._index: Any = None

    @property
    def warm(self) -> bool:
        """Whether an index is open."""
        return self._index is not None

    @contextmanager
    def opened(self, root: Path, config: Config, now: Callable[[], datetime] | None) -> Iterator[Memory]:
        """The bank for one command. Refused if it is another one."""
        if root.resolve() != self.root:
            raise Refused(ELSEWHERE, f"this daemon's bank is {self.root}")
        memory = Memory.open(root, config=config, now=now, door="cli")
        self.config = config
        self._lend(memory)
        try:
            yield memory
        except (UaMemoryError, Refused):
            self._take_back(memory)
            raise
        except BaseException:
            memory.close()  # who knows in what state it is
            raise
        else:
            self._take_back(memory)

    def _lend(self, memory: Memory) -> None:
        index, self._index = self._index, None
        if index is None:
            return
        then, now = index.store.config, memory.config
        same = (then.embedding, then.chroma_url) == (now.embedding, now.chroma_url)
        if same and index.store.bank == memory.store.bank:
            index.store = memory.store
            memory.__dict__["index"] = index
        else:  # another model, another id, a repository that came or went
            index.close()

    def _take_back(self, memory: Memory) -> None:
        self._index = memory.__dict__.pop("index", None)

    def cool(self) -> None:
        """Let go of Chroma, the model and their memory; the next command opens them again."""
        index, self._index = self._index, None
        if index is not None:
            index.close()
            del index
            _give_back()


def _give_back() -> None:
    """Return freed memory to the system. glibc keeps it: 258 MB stay without this, 140 MB with it."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # neither on macOS nor with musl
    if trim:
        trim(0)
