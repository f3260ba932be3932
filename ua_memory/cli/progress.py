"""Progress of long work, on standard error, and only where that is a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ua_memory.cli.call import Call

PATIENCE = 0.7
"""Seconds that go by before anything is shown: most work is done by then."""


@contextmanager
def progress(call: Call, what: str) -> Iterator[Callable[[int, int], None] | None]:
    """A function to be told (done, total), or None where nobody looks. The bar is gone at the end."""
    if "stderr" not in call.terminals or call.env.get("TERM") == "dumb":
        yield None
        return
    shown = _Bar(call, what)
    try:
        yield shown.tell
    finally:
        shown.stop()


class _Bar:
    def __init__(self, call: Call, what: str) -> None:
        self.call, self.what, self.since = call, what, time.monotonic()
        self.bar: Any = None
        self.task: Any = None

    def tell(self, done: int, total: int) -> None:
        if self.bar is None:
            if time.monotonic() - self.since < PATIENCE or done >= total:
                return
            self._start(total)
        self.bar.update(self.task, completed=done, total=total)

    def _start(self, total: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        console = Console(
            file=self.call.stderr, force_terminal=True, width=self.call.width, _environ=self.call.env
        )
        columns = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()]
        columns += [TimeRemainingColumn(compact=True)] if self.call.width >= 60 else []
        self.bar = Progress(*columns, console=console, transient=True)
        self.task = self.bar.add_task(self.what, total=total)
        self.bar.start()

    def stop(self) -> None:
        if self.bar is not None:
            self.bar.stop()
