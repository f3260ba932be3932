"""What is damaged in a bank's state folder and in its trail's index: found by `verify`, mended by `doctor`.

None of it is the truth. What can be made anew is; what holds words that stand nowhere else is only named.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from shlex import quote

from ua_memory.errors import GitFailed
from ua_memory.history import blob_id, missing
from ua_memory.paths import CORE_NAMES, LOGS, SETTINGS, is_truth
from ua_memory.records import Problem
from ua_memory.store import Store, pending
from ua_memory.store.proof import closed

BROKEN = ".broken"
"""Behind the name of a git index that git could not read: it is kept, for who had staged something."""

APPENDED = 1000
"""So many lines that were put at a file's end since are left out to find what a revision had of it."""


def problems(store: Store) -> Iterator[Problem]:
    """What is wrong in the state folder; nothing is changed."""
    folder = store.bank.pending
    there = {record.key for record in pending.found(folder)}
    lost = [folder / f"revision-{key}.json" for key in pending.keys(folder) if key not in there]
    for file in (*lost, *pending.unreadable(folder)):
        yield Problem(str(file), 1, "a revision in flight cannot be read: take from it what you miss")
    for file, key in unreadable_turns(store):
        yield Problem(str(file), 1, f"turns that wait cannot be read: see `ua-memory queue list` ({key})")
    lock = store.bank.state / "lock"
    if lock.exists() and not lock.is_file():
        yield Problem(str(lock), 1, "no file can be locked here: take it away")


def unreadable(store: Store) -> Iterator[tuple[str, str, str]]:
    """(path, why, the command that mends it) of each file and folder of the truth that cannot be read."""
    root = store.bank.root
    folders, files = {LOGS}, [root / name for name in (*CORE_NAMES, SETTINGS)]
    for here, inner, names in os.walk(root / LOGS):
        inner[:] = sorted(name for name in inner if not name.startswith("."))
        folders |= {Path(here, name).relative_to(root).as_posix() for name in inner}
        files += [Path(here, name) for name in sorted(names) if name.endswith(".md") and name[0] != "."]
    shut = closed(root, map(os.fsencode, folders))
    for folder in sorted(shut):
        yield folder, "Permission denied", f"chmod u+rwx {quote(str(root / folder))}"
    for file in files:
        path = file.relative_to(root).as_posix()
        if path.rpartition("/")[0] in shut or not os.path.isfile(file) or os.path.islink(file):  # noqa: PTH113,PTH114
            continue
        try:
            with file.open("rb") as opened:
                opened.read(1)
        except OSError as error:
            yield path, error.strerror or str(error), f"chmod u+rw {quote(str(file))}"


def unreadable_turns(store: Store) -> list[tuple[Path, str]]:
    """The records of waiting turns of which nothing can be read, or some lines cannot: (file, key)."""
    found = []
    for file in sorted(store.bank.pending.glob("turns-*.jsonl")):
        whole = file.read_bytes()
        lines = whole.split(b"\n")[:-1]  # a line that was never ended is a killed writer's, and passed over
        if not all(_is_row(line) for line in lines):
            found.append((file, file.name[len("turns-") : -len(".jsonl")]))
    return found


def _is_row(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def of_index(store: Store) -> bool:
    """Whether it is git's index that git cannot read, in a bank of its own; the commits may be well."""
    if not store.bank.own:
        return False
    try:
        store.history.run("fsck", "--no-dangling", "--no-progress")  # nothing else looks at its checksum
    except GitFailed as error:
        return "index file" in error.what
    return False


def fetched(store: Store) -> str:
    """How what stands in no file of this machine's comes back: git fetches all of it anew."""
    try:
        remote = store.history.remote()
    except GitFailed:
        remote = None
    if remote:
        return f"ua-memory git fetch --refetch {remote[0]}; then ua-memory doctor --mend"
    return (
        "from another copy of this bank: ua-memory git fetch --refetch FOLDER; then ua-memory doctor --mend"
    )


def _held(store: Store) -> tuple[dict[str, bytes], Iterator[missing.Listing]]:
    """What files, git's index and what waits hold: {blob id: content}, and how a revision may list them."""
    index = _listed(store, "ls-files", "--stage", "-z") if store.bank.own else {}
    seen, contents = store.survey(), dict[str, bytes]()
    disk = {path: entry for path, entry in index.items() if not is_truth(path)}
    for path in {*index, *(file.path for file in seen.files)}:
        file = store.bank.root / path
        with contextlib.suppress(OSError):
            if file.is_file() and not file.is_symlink():
                data = file.read_bytes()
                contents[blob_id(data)] = data
                disk[path] = (index.get(path, ("100644", ""))[0], blob_id(data))
    for record in reversed(pending.found(store.bank.pending)):
        for change in record.changes:
            for side in (change.start, change.aim, change.trail, change.placed, change.wanted, *change.taken):
                contents |= {blob_id(side): side} if side is not None else {}
            disk.pop(change.path, None)
            if change.trail is not None:
                disk[change.path] = ("100644", blob_id(change.trail))
    for path, (_, name) in _listed(store, "ls-tree", "-r", "-z", "HEAD").items():
        if name not in contents and path in disk and (now := contents.get(disk[path][1])):
            contents |= {blob_id(was): was for was in _beginnings(now) if blob_id(was) == name}
    earlier = _listed(store, "ls-tree", "-r", "-z", "HEAD~1")
    doubted = list(seen.changed)
    if not doubted and not earlier:  # git cannot say what it has: whatever was written last may be new
        newest = sorted(seen.files, key=lambda file: file.changed_ns, reverse=True)
        doubted = [file.path for file in newest[: missing.DOUBTS]]
    return contents, missing.guesses(index, disk, earlier, doubted)


def _beginnings(data: bytes) -> Iterator[bytes]:
    """What a file was before lines were put at its end, as a person and an insert do."""
    end = len(data)
    for _ in range(APPENDED):
        if (end := data.rfind(b"\n", 0, max(end - 1, 0)) + 1) == 0:
            return
        yield data[:end]


def _listed(store: Store, *words: str) -> dict[str, tuple[str, str]]:
    """{path: (mode, blob id)} of git's index or of a revision; nothing where git cannot say."""
    with contextlib.suppress(GitFailed):
        rows = store.history.run(*words).decode("utf-8", "surrogateescape").split("\0")
        found = ((meta.split(), path) for meta, _, path in (row.partition("\t") for row in rows if row))
        return {path: (meta[0], meta[2] if meta[1] == "blob" else meta[1]) for meta, path in found}
    return {}


def renew_trail(store: Store) -> None:
    """Put a branch that is gone back to where it stood, if the files say where that was; write objects again
    that are missing and that the files hold; and make git's index anew from the last commit, the old one kept
    beside it. What else is wrong with the trail is left as it is. GitFailed."""
    with store.locked():
        store.history.set_noise_aside()
        store.history.put_back()
        if gone := missing.write_again(store.history, *_held(store)):
            raise GitFailed(missing.told(gone), where=str(store.bank.git_dir), mend=fetched(store))
    if not of_index(store):
        return
    with store.locked():
        file = store.bank.git_dir / "index"
        file.replace(file.with_name(file.name + BROKEN))
        store.history.run("read-tree", "HEAD")
