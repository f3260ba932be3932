"""What a session's client and transcript say, put into the bank: after each answer, and when it has ended."""

from __future__ import annotations

import contextlib
import os
from dataclasses import astuple
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ua_memory import regular
from ua_memory.cli import beginning, sessions
from ua_memory.errors import Malformed
from ua_memory.transcripts import Session

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from typing import BinaryIO

    from ua_memory.memory import Memory

TOLD = 7 * 86400.0
"""Seconds for which is known what a session was told: it may be resumed, and compacted then."""


def heard(
    memory: Memory,
    path: str,
    found: dict[str, Any],
    *,
    said: str = "",
    asked: str = "",
    close: bool = False,
    model: bool = False,
) -> bool:
    """Let the new turns of the session of a file wait, and note how far it was heard. True if a flush is due.

    Malformed for a transcript that is none; CannotWrite.
    """
    named = {key: str(found.get(key) or "") for key in ("client", "session", "cwd", "parent", "group")}
    session = Session(**named, started=datetime.fromtimestamp(found.get("started") or 0, UTC))
    with _opened(found.get("transcript")) as stream:
        spot = found.get("spot") or ()
        told = memory.hear(session, stream, said=said, asked=asked, spot=spot, close=close, model=model)
    sessions.noted(path, spot=list(astuple(told.spot)))
    return told.due


def _opened(transcript: object) -> AbstractContextManager[BinaryIO | None]:
    """A session's transcript; None where there is none, or where what a client named is no file."""
    missing = (FileNotFoundError, NotADirectoryError, IsADirectoryError, regular.Irregular)
    with contextlib.suppress(*missing):
        return regular.opened(str(transcript or "/nowhere"))
    return contextlib.nullcontext()


def take_up(memory: Memory, say: Callable[[str], None], *, model: bool = False) -> None:
    """Hear to their end all sessions that have ended, were killed, or asked for it before a compaction; a
    flush is due of them then. `say` is told what could not be read."""
    bank = memory.store.bank
    for path, found in list(sessions.listed(bank.pending)):
        over = sessions.over(path, found)
        if not over and found.get("want") != sessions.COMPACT:
            continue
        try:
            heard(memory, path, found, close=True, model=model)
        except Malformed as error:  # it will not become one: what waits of it is all there is
            say(f"{found.get('client')} session {found.get('session')}: {error.what}")
            sessions.noted(path, transcript="")
        if not over:
            sessions.noted(path, want="")
        else:
            with contextlib.suppress(OSError):
                os.unlink(path)  # noqa: PTH108
    beginning.forget(bank.local, memory.store.now().timestamp() - TOLD)
