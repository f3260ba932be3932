"""What this process keeps of memory, and what the C library does with it, where that is glibc."""

from __future__ import annotations

import ctypes
import functools
import gc
import math
import re
import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

M_PERTURB, M_ARENA_MAX = -6, -8
"""glibc's numbers of two settings of `mallopt`."""

MADV_PAGEOUT = 21
"""Linux's number (since 5.4) of the advice that pages are not needed for now."""

ZEROES = 0xFF
"""The byte that freed memory is filled with; what is handed out gets its complement."""

_ALONE = threading.Lock()


@contextmanager
def wiped() -> Iterator[None]:
    """Have memory filled with zeroes before it is handed out, and overwritten when it is freed.

    hnswlib, which is in Chroma, writes its tables to disk with the room that nothing was put into yet: 170 kB
    of whatever stood in that memory before, such as a text of which redaction took a key. Not for the life of
    the process: all that the model asks for would be filled as well, a fortieth of a search. One thread at
    a time: the setting is the process's, and who leaves would end it for who is still at work.
    """
    with _ALONE:
        _ask("mallopt", M_PERTURB, ZEROES)
        try:
            yield
        finally:
            _ask("mallopt", M_PERTURB, 0)


def room() -> float:
    """Bytes of address space that this process may still take (`ulimit -v`); infinite without a limit."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return math.inf
    with suppress(OSError, ValueError):
        return limit - int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    return math.inf  # no Linux: what is too much is told when it is asked for


def shared() -> None:
    """Have all threads share one heap: what is freed in it can be given back. At 100,000 facts 10 MB less
    stay at rest; a daemon has one worker, so that hardly anybody waits for it."""
    _ask("mallopt", M_ARENA_MAX, 1)


def trim() -> None:
    """Return freed memory to the system."""
    _ask("malloc_trim", 0)


def forget() -> None:
    """Have all functions of ours that remember what they returned forget it, as the table of tokens is."""
    gc.unfreeze()  # what is frozen is not found
    for each in gc.get_objects():
        # Not `isinstance`, which asks the object: a weak proxy without its own raises ReferenceError. And
        # what a library remembers of a C function has no module.
        if type(each) is functools._lru_cache_wrapper and str(each.__module__).startswith("ua_memory"):
            each.cache_clear()


def page_out(*libraries: str) -> None:
    """Let go of the code of shared libraries whose paths have one of these names; who runs it has the system
    read it again. What other processes run stays. Linux alone, and where this user may write the file."""
    names = "|".join(map(re.escape, libraries))
    code = re.compile(rf"([0-9a-f]+)-([0-9a-f]+) r-.. .*(?:{names}).*\.so")
    with suppress(OSError):
        for found in map(code.match, Path("/proc/self/maps").read_text("utf-8", "replace").splitlines()):
            if found:
                start, end = (int(address, 16) for address in found.groups())
                _ask("madvise", ctypes.c_void_p(start), ctypes.c_size_t(end - start), MADV_PAGEOUT)


def _ask(name: str, *values: object) -> None:
    """Call a function of the C library, if it is there."""
    if function := getattr(ctypes.CDLL(None), name, None):
        function(*values)
