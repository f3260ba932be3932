"""What of a revision another machine cannot take in, said so that it can be mended where it came from."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from ua_memory.errors import Conflict, TooLarge
from ua_memory.history import History
from ua_memory.paths import is_truth
from ua_memory.store.reading import MAX_FILE


def refuse(history: History, other: str, there: Mapping[str, tuple[str, str]]) -> None:
    """Conflict for a link in the place of memory, TooLarge for a file that nobody would read. `there` is
    {path: (mode, blob)} of what the revision `other` has otherwise."""
    if path := link_in(there):
        raise Conflict(
            "a symbolic link stands there in the place of memory", where=f"{other[:10]}:{path}",
            mend=f"on the machine that made it: {undone(path)}; then sync there, and here again",
        )  # fmt: skip
    large = (p for p, size in history.sizes(other).items() if is_truth(p) and size > MAX_FILE)
    if path := next(large, ""):
        raise TooLarge(
            f"larger than {MAX_FILE >> 20} MB", where=f"{other[:10]}:{path}",
            mend="on the machine that made it: split the file, sync; then sync here again",
        )  # fmt: skip


def link_in(there: Mapping[str, tuple[str, str]]) -> str:
    """The first path of memory at which something else than a file stands; empty where there is none."""
    return next((p for p, (mode, _) in there.items() if is_truth(p) and mode[:3] not in ("100", "")), "")


def undone(path: str) -> str:
    """How a committed link is taken back."""
    name = shlex.quote(path)
    gone = f"ua-memory git rm {name}; ua-memory git commit -m 'no link'"
    return f"put the file itself in the place of the link, or take that out ({gone})"


def refuse_push(history: History, offered: str | None, head: str) -> None:
    """Conflict where a link was committed here that no other machine would take in."""
    if path := link_in(history.differing(offered, head)):
        raise Conflict(
            "a symbolic link was committed in the place of memory, which no other machine takes in",
            where=path, mend=f"{undone(path)}; then sync again",
        )  # fmt: skip
