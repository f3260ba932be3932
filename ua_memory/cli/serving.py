"""The daemon's side of the command line: a request of a caller becomes the call that it is."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import dropwhile, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, cast

from ua_memory.daemon.streams import given

if TYPE_CHECKING:
    from typing import BinaryIO, TextIO

    from ua_memory.cli.call import Call
    from ua_memory.daemon.messages import Request
    from ua_memory.daemon.streams import Output
    from ua_memory.daemon.warm import Warm
    from ua_memory.memory import Memory

LENT = ("HOME", "TZ", "LANG", "LC_", "GIT_", "EMAIL", "XDG_CONFIG_HOME")
"""How a variable begins that processes we start, or the clock, take from the environment of this process."""

ANSWERS_AGENTS = frozenset({"hook", "mcp"})
"""Verbs whose answer no person reads."""
FLAGS = ("--json", "--explain")
"""What may stand before the words of a query and says nothing of them."""


def perform(request: Request, output: Output, warm: Warm) -> int:
    """Run a command as its caller would have, in the bank that is kept warm, and return the exit code."""
    from ua_memory.cli.app import run
    from ua_memory.cli.call import Call
    from ua_memory.daemon.streams import Written

    if query := likely(request.argv):
        warm.expect(query)
    streams = [Written(output, n, request.encodings[n - 1]) for n in (1, 2)]
    call = Call(
        argv=request.argv,
        cwd=Path(request.cwd),
        home=Path(request.home),
        env=request.env,
        stdin=cast("BinaryIO", given(request.stdin)),
        stdout=cast("TextIO", streams[0]),
        stderr=cast("TextIO", streams[1]),
        terminals=request.terminals,
        width=request.width,
        opener=partial(warm.opened, env=request.env),
    )
    with _lent(request.env):
        code = run(call)
        if warm.untold and not ANSWERS_AGENTS & set(request.argv[:3]):
            from ua_memory.cli.format import note

            for text in dict.fromkeys(warm.untold):
                note(call, text)
            warm.untold.clear()
        return code


def likely(argv: Sequence[str]) -> str:
    """What a command line is likely to ask, '' where it begins otherwise: it is not read for that."""
    match argv:
        case ["--bank", _, *rest] | [*rest] if rest[:1] in (["search"], ["recall"]):
            words = dropwhile(FLAGS.__contains__, rest[1:])
            return " ".join(takewhile(lambda word: not word.startswith("-"), words))
        case _:
            return ""


@contextmanager
def _lent(env: Mapping[str, str]) -> Iterator[None]:
    """Have this process's environment be the caller's in what git and the clock read from it.

    Only one command runs at a time, and mostly there is nothing to change.
    """
    before = {name: value for name, value in os.environ.items() if name.startswith(LENT)}
    theirs = {name: value for name, value in env.items() if name.startswith(LENT)}
    if before == theirs:
        yield
        return
    _exchange(before, theirs)
    try:
        yield
    finally:
        _exchange(theirs, before)


def _exchange(old: Mapping[str, str], new: Mapping[str, str]) -> None:
    for name in old.keys() - new.keys():
        del os.environ[name]
    os.environ.update(new)
    if old.get("TZ") != new.get("TZ"):
        time.tzset()


def serve(call: Call, memory: Memory) -> str:
    """Be the bank's daemon until there is a reason to leave, and return it. AlreadyRuns."""
    import gc

    from ua_memory import heap
    from ua_memory.daemon.service import Service, only_one
    from ua_memory.daemon.warm import Warm

    heap.shared()
    # Its matrices are small: two threads wait for each other longer than one takes, on loaded cores twice.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    bank = memory.store.bank
    memory.store.make_state()
    gc.set_threshold(10_000)  # a search makes thousands of short-lived things, and none goes in circles
    with only_one(bank.local):
        service = Service(
            Warm(bank.root, memory.config, bank.pending, call.env), perform, bank.local, call.env
        )
        gc.freeze()
        return service.run()
