"""What a rewriting would not get rid of: packs that are marked to be kept, objects that are borrowed.

git marks a pack (`.keep`) while it takes it in, so that nobody repacks it before a ref leads there, and takes
the mark off again. Who is killed in between leaves it there, and every later repack leaves the pack. A mark
of a git that lives, of another machine, or of a person's is none of ours to take off.
"""

from __future__ import annotations

import shlex
import socket
import time

from ua_memory.errors import Conflict
from ua_memory.history.locks import IMPORTS, TAKES_IN, is_there, lives, processes, text
from ua_memory.history.trail import History

WAITS, PAUSE = 20, 0.1
"""So often, and so many seconds each, an import that is at work is waited for."""


def unmarked(history: History) -> None:
    """Take the marks off that a killed git has left. Conflict names one that is somebody's, and where
    objects are borrowed from; call it with the bank's lock, so that no git of ours is at work."""
    objects = history.shared / "objects"
    if lent := [row for row in text(objects / "info" / "alternates").splitlines() if row.strip()]:
        raise Conflict(
            "this history borrows objects, and where they come from keeps them", where=lent[0],
            mend=f"ua-memory git repack -a -d, then rm {shlex.quote(str(objects / 'info' / 'alternates'))}",
        )  # fmt: skip
    for mark in sorted((objects / "pack").glob("*.keep")):
        if not _is_left(text(mark).strip(), history):
            raise Conflict(
                "a pack is marked to be kept, which would keep it", where=str(mark),
                mend=f"if no git is at work there, and you do not need it: rm {shlex.quote(str(mark))}",
            )  # fmt: skip
        mark.unlink(missing_ok=True)


def _is_left(said: str, history: History) -> bool:
    """Whether a mark was left by a git that is no more."""
    if said == IMPORTS:
        return not _import_at_work(history)
    if found := TAKES_IN.fullmatch(said):
        return found[2] == socket.gethostname() and not lives(int(found[1]))
    return False


def _import_at_work(history: History) -> bool:
    """Whether an import into this history goes on. It is waited for: none takes long."""
    places = [place.resolve() for place in (history.git_dir, history.shared, history.root)]
    for _ in range(WAITS):
        if not any(
            IMPORTS in words and is_there(process, words, places) is not False
            for process, words in processes()
        ):
            return False
        time.sleep(PAUSE)
    return True
