"""Files and folders outside the bank that are retained when they change: which, and how they stood last.

The list lies in the bank's `local/`, and not in its settings: `ua-memory.toml` comes along with a cloned
repository, and must not make us read its new owner's other files. Lost, it is typed again; no memory hangs on
it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ua_memory.errors import CannotWrite, Malformed, TooLarge, Usage
from ua_memory.paths import is_bank, make_private
from ua_memory.retain.converting import MOST_BYTES, is_read
from ua_memory.store import Store

NAME = "watched.json"
MOST_FILES = 5_000
"""Files that one watched path may have."""
_LEFT_OUT = frozenset(("node_modules", "__pycache__", "venv", "target", "dist", "build"))

Stamp = tuple[int, int]
"""When a file was saved last, in nanoseconds, and its size."""


@dataclass(frozen=True, slots=True)
class Stood:
    """How a file stood when it was taken in. `error` says why it could not be, `gone` that it vanished
    since, and was told so: its facts stay until a person lets them go."""

    stamp: Stamp
    error: str = ""
    gone: bool = False


@dataclass(frozen=True, slots=True)
class Watched:
    """One path that is watched, and its files as they stood. `modelled`: a model is to read it."""

    path: str
    modelled: bool = False
    files: dict[str, Stood] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Look:
    """What a look at a watched path finds: files to be taken in now, those saved too lately, and those that
    are not there any more. `missing` says that the path itself is not, which makes no file gone."""

    ready: dict[str, Stamp]
    young: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    missing: bool = False


def load(store: Store) -> list[Watched]:
    """The watched paths, in the order they were added. Malformed names a list that cannot be read."""
    file = store.bank.local / NAME
    try:
        rows = json.loads(file.read_bytes())
        return [_made(row) for row in rows]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        mend = f"rm {file}, and add the paths again"
        raise Malformed(f"cannot be read: {error}", where=str(file), mend=mend) from error


def save(store: Store, watched: list[Watched]) -> None:
    """Write the list down. CannotWrite."""
    file = store.bank.local / NAME
    beside = file.with_suffix(".new")
    try:
        make_private(file.parent)
        if not watched:
            file.unlink(missing_ok=True)
            return
        data = json.dumps([asdict(one) for one in watched], ensure_ascii=False, indent=1)
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
            out.write(data.encode("utf-8", "surrogatepass"))
        beside.replace(file)
    except OSError as error:
        raise CannotWrite(
            error.strerror or str(error), where=str(file), mend="check owner, mode and free space"
        ) from error


def add(store: Store, path: Path, *, modelled: bool) -> Watched:
    """Watch a path. Usage for one inside the bank, or around all of it that is not there, or that holds too
    much; watching what is watched changes nothing but `modelled`."""
    path = path.resolve()
    bank = store.bank.root.resolve()
    if path == bank or path.is_relative_to(bank):
        raise Usage("this is memory already", where=str(path), mend="watch a path outside the bank")
    if not path.exists():
        raise Usage("there is nothing to watch", where=str(path))
    if not path.is_dir() and not path.is_file():
        raise Usage("not a regular file, nor a folder", where=str(path))
    if path.is_file() and not is_read(path.name):
        raise Usage(f"{path.suffix} files are not read", where=str(path))
    for _ in files(store, path):  # TooLarge now, and not in the daemon's log
        pass
    watched = load(store)
    known = next((one for one in watched if one.path == str(path)), None)
    one = replace(known, modelled=modelled) if known else Watched(str(path), modelled)
    save(store, [one if each is known else each for each in watched] if known else [*watched, one])
    return one


def files(store: Store, path: Path) -> Iterator[tuple[str, Stamp]]:
    """The files of a watched path that are read, with their stamps: nothing hidden, no symbolic links,
    nothing of a bank's. TooLarge for too many."""
    if path.is_file():
        yield str(path), _stamp(path.stat())
        return
    count = 0
    for folder, inner, names in os.walk(path):
        inner[:] = [
            name
            for name in sorted(inner)
            if not name.startswith(".") and name not in _LEFT_OUT and not is_bank(Path(folder, name))
        ]
        for name in sorted(names):
            if name.startswith(".") or not Path(name).suffix or not is_read(name):
                continue
            file = Path(folder, name)
            try:
                found = file.lstat()
            except OSError:
                continue
            if not file.is_symlink() and found.st_size <= MOST_BYTES:
                count += 1
                if count > MOST_FILES:
                    what = f"more than {MOST_FILES:,} files"
                    raise TooLarge(what, where=str(path), mend="watch folders within it")
                yield str(file), _stamp(found)


def look(store: Store, one: Watched, quiet: float) -> Look:
    """What has changed at a watched path since it was taken in last. Files that were saved less than `quiet`
    seconds ago are let rest: an editor saves in the middle of a sentence."""
    path = Path(one.path)
    if not path.exists():
        return Look({}, missing=True)
    now = store.now().timestamp()
    ready: dict[str, Stamp] = {}
    young = []
    there = set()
    for name, stamp in files(store, path):
        there.add(name)
        known = one.files.get(name)
        if known is not None and known.stamp == stamp and not known.gone:
            continue
        age = now - stamp[0] / 1e9
        if 0 <= age < quiet:
            young.append(name)
        else:
            ready[name] = stamp
    return Look(ready, tuple(young), tuple(name for name in one.files if name not in there))


def _stamp(found: os.stat_result) -> Stamp:
    return found.st_mtime_ns, found.st_size


def _made(row: dict[str, Any]) -> Watched:
    stood = {
        str(name): Stood((int(each["stamp"][0]), int(each["stamp"][1])), each["error"], bool(each["gone"]))
        for name, each in row["files"].items()
    }
    return Watched(str(row["path"]), bool(row["modelled"]), stood)
