"""What else a bank of its own has in its repository, and is no memory: it comes along where only the other
machine has changed it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ua_memory.errors import CannotWrite, Conflict
from ua_memory.history import blob_id
from ua_memory.paths import BESIDE
from ua_memory.store import Store, swap

SHOWN = 3


def carried(
    store: Store, strange: Mapping[str, str], fork: str | None, other: str
) -> tuple[dict[str, bytes | None], list[str]]:
    """What else a bank of its own has in its repository: taken where only the other changed it."""
    if not strange:
        return {}, []
    if not store.bank.own:
        raise Conflict(
            "the other history has files that are no memory", where=", ".join(sorted(strange)[:SHOWN]),
            mend="give the trail a remote of its own: ua-memory git remote set-url origin ADDRESS",
        )  # fmt: skip
    history = store.history
    head = history.head()
    here = history.differing(fork, head) if head else {}
    there = history.differing(fork, other)
    plain = not head or history.is_within(head, other)
    linked = [path for path in strange if there[path][0][:3] not in ("100", "")]
    if linked and not plain:
        raise Conflict("links and submodules are not merged here", where=linked[0], mend="ua-memory git pull")
    both = sorted(path for path in strange if path in here and here[path] != there[path])
    data = {
        path: history.blob(blob) if blob else None
        for path, blob in strange.items()
        if there[path][0] != "160000"
    }
    notes = [
        f"{path} was changed on both machines; this one's stands, {other[:10]} has the other" for path in both
    ]
    return {path: each for path, each in data.items() if path not in both}, notes


def brought_along(store: Store, carried: Mapping[str, bytes | None], was: Mapping[str, str]) -> list[str]:
    """Bring files in the folder along that are no memory, where nobody has changed them; what was not."""
    notes = []
    for path, data in carried.items():
        file = store.bank.root / path
        if not _ours(store.bank.root, path):
            notes.append(f"{path} was not written")
            continue
        here = file.read_bytes() if file.is_file() else None
        if (here is None) != (path not in was) or (here is not None and blob_id(here) != was[path]):
            if here != data:
                notes.append(f"{path} differs from the repository's: see git status")
            continue
        try:
            if data is None:
                file.unlink(missing_ok=True)
            else:
                file.parent.mkdir(parents=True, exist_ok=True)
                fresh = file.with_name(f".ua-{file.name[:100]}.fresh")
                fresh.unlink(missing_ok=True)
                swap.write(fresh, data)
                fresh.replace(file)
        except OSError as error:
            raise CannotWrite(
                error.strerror or str(error), where=str(file), mend="check owner, mode and free space"
            ) from error
    return notes


def _ours(root: Path, path: str) -> bool:
    """Whether a path stays in the folder, outside of what git and we keep there."""
    here = root
    for part in path.split("/"):
        here = here / part
        if part in ("", ".", "..", BESIDE) or part.lower() == ".git" or here.is_symlink():
            return False
    return True
