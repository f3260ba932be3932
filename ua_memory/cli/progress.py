"""Progress of long work, on standard error, and only where that is a terminal."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ua_memory.cli.call import Call

PATIENCE = 2.0
"""Seconds that go by before anything is shown: most work is done by then."""


@contextmanager
def progress(call: Call, what: str) -> Iterator[Callable[[int, int], None] | None]:
    """A function to be told (done, total), or None where nobody looks. The bar is gone at the end."""
    if "stderr" not in call.terminals or call.env.get("TERM") == "dumb":
        yield None
        return
    shown = _Bar(call, what)
    # By the clock and not by the first report: what takes long may be long in reporting, too.
    patience = threading.Timer(PATIENCE, shown.start)
    patience.daemon = True
    patience.start()
    try:
        yield shown.tell
    finally:
        patience.cancel()
        shown.stop()


class _Bar:
    """A bar that begins without knowing how much there is to do. `start` runs in a timer's thread."""

    def __init__(self, call: Call, what: str) -> None:
        self.call, self.what = call, what
        self.known: tuple[int, int] | None = None
        self.lock, self.over = threading.Lock(), False
        self.bar: Any = None
        self.task: Any = None

    def tell(self, done: int, total: int) -> None:
        with self.lock:
            self.known = (done, total)
            if self.bar is not None:
                self.bar.update(self.task, completed=done, total=total)

    def start(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        with self.lock:
            if self.over:
                return
            call = self.call
            console = Console(file=call.stderr, force_terminal=True, width=call.width, _environ=call.env)
            columns = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()]
            columns += [TimeRemainingColumn(compact=True)] if call.width >= 60 else []
            self.bar = Progress(*columns, console=console, transient=True)
            done, total = self.known or (0, None)
            self.task = self.bar.add_task(self.what, completed=done, total=total)
            self.bar.start()

    def stop(self) -> None:
        with self.lock:
            self.over = True
            if self.bar is not None:
                self.bar.stop()
