"""A file outside the bank, read to be retained: its text, its path, and when it was written."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from ua_memory import regular
from ua_memory.errors import Malformed, NotFound, Usage
from ua_memory.paths import DATED, is_truth
from ua_memory.retain.converting import MOST_BYTES, text_of
from ua_memory.store import Store


@dataclass(frozen=True, slots=True)
class Given:
    """A file's text as markdown, its absolute path, and when it was written (aware)."""

    text: str
    path: str
    at: datetime


def read(store: Store, path: Path) -> Given:
    """Read a file. NotFound; Usage for a folder, a file of the bank, or a format that is not read;
    TooLarge."""
    path = path.resolve()
    refuse_own(store, path)
    if path.is_dir():
        raise Usage(
            "a folder is no file", where=str(path), mend=f"name its files, or: ua-memory watch add {path}"
        )
    try:
        with regular.opened(path) as file:
            data, saved = file.read(MOST_BYTES + 1), os.fstat(file.fileno()).st_mtime
    except FileNotFoundError as error:
        raise NotFound("no such file", where=str(path)) from error
    except OSError as error:
        raise Malformed(f"cannot be read: {error.strerror or error}", where=str(path)) from error
    return Given(text_of(data, path.name), str(path), _written(path, saved, store.now()))


def refuse_own(store: Store, path: Path) -> None:
    """Usage for a file that is memory already: retained again, it would be learnt as if it were new."""
    for folder in (store.bank.state.resolve(), store.bank.root.resolve()):
        if path.is_relative_to(folder):
            inner = path.relative_to(folder).as_posix()
            if folder == store.bank.state.resolve() or is_truth(inner) or inner in ("", ".", "memory"):
                raise Usage("this is memory already", where=str(path), mend="name a file outside the bank")


def _written(path: Path, saved: float, now: datetime) -> datetime:
    """The day in the file's name, else when it was saved last; never later than now."""
    named = DATED.search(path.stem)
    if named:
        try:
            return min(now, datetime.fromisoformat(f"{named[1]}T12:00").replace(tzinfo=now.tzinfo))
        except ValueError:
            pass
    return min(now, datetime.fromtimestamp(saved, now.tzinfo))
