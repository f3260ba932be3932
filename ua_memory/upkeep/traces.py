"""Removing forgotten texts from the queue, logs, index and caches, and searching everything for remains."""

from __future__ import annotations

import json
import os
import re
import secrets
import sqlite3
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import cached_property, reduce
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from ua_memory.errors import Malformed, NotFound, UaMemoryError, checked, writing
from ua_memory.git import rewrite
from ua_memory.index.outside import OutsideFiles
from ua_memory.index.sync import stop_after
from ua_memory.index.words import CurrentIndex
from ua_memory.knowledge import tombstones
from ua_memory.knowledge.core import delete_edits
from ua_memory.knowledge.sessions import SessionFiles
from ua_memory.paths import is_memory_file, make_private
from ua_memory.reflect.consolidate import CLAIM
from ua_memory.reflect.decide import Answers
from ua_memory.retain import ledger
from ua_memory.retain.queue import TextQueue, TurnQueue
from ua_memory.store import swap
from ua_memory.store.lock import locked, remove_work_folder
from ua_memory.store.store import Store
from ua_memory.text import redaction

if TYPE_CHECKING:
    from ua_memory.index.sync import Index
    from ua_memory.reflect.decide import BatchOutcome
    from ua_memory.retain.queue import QueueEntry


# -- needles -----------------------------------------------------------------------------------------------
# Matching a text in any file, however it is wrapped, escaped, encoded in JSON or capitalised.


SHORT_WORDS, SHORT = 3, 16
"""A text of fewer words and characters matches only a whole line or value, since within a longer sentence it
is most likely unrelated."""
MARK = "[forgotten]"
"""Replaces a forgotten text within a record that stays."""

_SPACE = rb"(?:\s|\\[nrt]|\\u000[9ad]|>|\\(?=\s))+"
_VALUE_START = rb"(?:^|(?<=[\x00-\x1f\"'\x80-\xff])|(?<=[-*+.)] ))"
_VALUE_END = rb"(?=$|[\x00-\x1f\"'\x80-\xff]|\\n| [\^#])"
_WORD_CHARS = b"0-9A-Za-z_"
_END_PUNCTUATION = ".!?… "


@dataclass(frozen=True)
class Needle:
    """A text to search for. A `secret` matches anywhere, even within a word."""

    text: str
    secret: bool = False

    @property
    def short(self) -> bool:
        return not self.secret and len(self.text) < SHORT and len(self.text.split()) < SHORT_WORDS

    @cached_property
    def pattern(self) -> re.Pattern[bytes]:
        """Matches the text in the bytes of any file."""
        # The first words of a very long text identify it, and are quicker to match.
        text = unicodedata.normalize("NFC", self.text).strip()
        # A quotation often leaves out the full stop.
        bare = text if self.secret or self.short else text.rstrip(_END_PUNCTUATION) or text
        words = _SPACE.join(_word_pattern(word) for word in bare.split()[:400])
        if self.secret:
            return re.compile(words)
        if self.short:
            return re.compile(_VALUE_START + words + _VALUE_END, re.IGNORECASE | re.MULTILINE)
        words += b"(?:" + _word_pattern(text[len(bare) :]) + b")?"
        first, last = bare[0], bare[-1]
        before = b"(?<![" + _WORD_CHARS + b"])" if first.isalnum() else b""
        after = b"(?![" + _WORD_CHARS + b"])" if last.isalnum() else b""
        # A JSON escape before the first word (`\n`) is no letter of it.
        before = b"(?:" + before + rb"|(?<=\\[nrt]))" if before else b""
        return re.compile(before + words + after, re.IGNORECASE)

    def is_in(self, text: str | bytes) -> bool:
        """Whether a text contains it."""
        data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
        return self.pattern.search(data) is not None

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """(start, end) of each match, in characters."""
        data = text.encode("utf-8", "surrogateescape")
        for match in self.pattern.finditer(data):
            first = len(data[: match.start()].decode("utf-8", "surrogateescape"))
            yield first, first + len(match[0].decode("utf-8", "surrogateescape"))

    def mask(self, text: str) -> str:
        """`text` with each match replaced by `MARK`."""
        data = text.encode("utf-8", "surrogatepass")
        new = self.pattern.sub(MARK.encode(), data)
        return new.decode("utf-8", "surrogatepass") if new != data else text


def make_needles(texts: Iterable[str], patterns: Mapping[str, str]) -> tuple[Needle, ...]:
    """Needles for these texts and for the secrets in them, without duplicates."""
    found: dict[Needle, None] = {}
    for text in texts:
        if text.strip() and any(map(str.isalnum, text)):
            found[Needle(text)] = None
            for each in redaction.find(text, patterns):
                if value := text[each.start : each.end].strip():
                    found[Needle(value, secret=True)] = None
    return tuple(found)


def needles_not_in(
    texts: Iterable[str], sure: Collection[Needle], files: Collection[bytes], patterns: Mapping[str, str]
) -> tuple[Needle, ...]:
    """Needles for the texts that none of `files` contains, without short ones and those in `sure`."""
    found = (each for each in make_needles(texts, patterns) if not each.short and each not in sure)
    return tuple(each for each in found if not any(map(each.is_in, files)))


def _word_pattern(word: str) -> bytes:
    return b"".join(map(_char_pattern, word))


def _char_pattern(char: str) -> bytes:
    """Matches a character in either case, as plain text, in JSON and with our own escapes."""
    if char.isascii():
        raw = re.escape(char.encode())
        # In front of punctuation our files, and JSON, may have a backslash.
        return raw if char.isalnum() else rb"\\{0,3}" + raw
    # `re` knows the two cases of ASCII alone in bytes; a Mac decomposes an accent.
    cases = dict.fromkeys((char, char.lower(), char.upper()))
    forms = dict.fromkeys(unicodedata.normalize(form, each) for each in cases for form in ("NFC", "NFD"))
    return b"(?:" + b"|".join(way for each in forms for way in _encodings(each)) + b")"


def _encodings(text: str) -> Iterator[bytes]:
    """The characters in UTF-8, and as JSON's `\\u` escapes."""
    yield re.escape(text.encode("utf-8", "surrogatepass"))
    units = text.encode("utf-16-be", "surrogatepass")
    yield b"".join(rb"\\u" + units[n : n + 2].hex().encode() for n in range(0, len(units), 2))


# -- searching ---------------------------------------------------------------------------------------------
# Searching all that a bank stores: files, index, cache, pending records, logs, and on demand every git
# object. A result has the place only, never the text.


CHUNK_BYTES = 8 << 20
"""A file is read and searched in chunks of this size."""
OVERLAP_BYTES = 1 << 18
"""Two chunks overlap by this much, so that no match is missed: no text of ours is longer, even escaped."""
_SQLITE = b"SQLite format 3\0"
_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL%'"


@dataclass(frozen=True, slots=True)
class Trace:
    """A place that still contains a forgotten text. `where` is a file with its line, a database's table, or a
    git object."""

    where: str
    kind: str


@dataclass(frozen=True, slots=True)
class TraceReport:
    """How many files of each kind were searched, and what was found."""

    searched: dict[str, int] = field(default_factory=dict)
    found: tuple[Trace, ...] = ()

    @property
    def is_clean(self) -> bool:
        return not self.found


def search_everything(store: Store, needles: Sequence[Needle], *, objects: bool) -> TraceReport:
    """Search the bank's files, its state folder, `extraPaths` and, with `objects`, every git object."""
    looked, found = Counter[str](), list[Trace]()
    for kind, file in all_files(store):
        looked[kind] += 1
        found += [Trace(where, kind) for where in search_file(store, file, needles)]
    if objects and store.history.exists:
        looked["history"] = 0  # is said, too
        for name, _, data in rewrite.all_objects(store.history):
            looked["history"] += 1
            if any(needle.is_in(data) for needle in needles):
                found.append(Trace(f"git object {name}", "history"))
    if any(each.kind in ("files", "extraPaths") for each in found):
        # The index repeats what is in the files; report the files only.
        found = [each for each in found if each.kind not in ("index", "cache")]
    return TraceReport(looked, tuple(dict.fromkeys(found)))


def search_files(files: Mapping[str, bytes], needles: Sequence[Needle]) -> TraceReport:
    """Search {path: bytes} in memory."""
    found = []
    for path, data in files.items():
        for match in (match for needle in needles for match in needle.pattern.finditer(data)):
            line = data.count(b"\n", 0, match.start()) + 1
            found.append(Trace(f"{path}:{line}", "files"))
    return TraceReport({"files": len(files)}, tuple(dict.fromkeys(found)))


def all_files(store: Store) -> Iterator[tuple[str, Path]]:
    """(kind, file) of all that a bank stores, except git's objects, and of what its searches read."""
    bank = store.bank
    yield from (("files", file) for file in _walk(bank.root / "memory"))
    for file in sorted(bank.root.iterdir()):
        ours = is_memory_file(file.name) or file.name.startswith((swap.TEMP_PREFIX, swap.SWAP_PREFIX))
        if ours and file.is_file() and not file.is_symlink():
            yield "files", file
    yield from (("extraPaths", Path(path)) for path in OutsideFiles(store).paths())
    folders = {"pending": bank.pending, "index": bank.index, "cache": bank.cache, "local": bank.local}
    yield from ((kind, file) for kind, folder in folders.items() for file in _walk(folder))
    yield from (("state", file) for file in _walk(bank.state, {*folders.values(), bank.git_dir}))
    known = {*folders.values(), bank.state, bank.git_dir / "objects"}
    yield from (("trail", file) for file in _walk(bank.git_dir, known))


def _walk(folder: Path, but: Iterable[Path] = ()) -> Iterator[Path]:
    skipped = {str(each) for each in but}
    shut: list[OSError] = []
    for here, folders, names in os.walk(folder, onerror=shut.append):
        folders[:] = sorted(name for name in folders if str(Path(here, name)) not in skipped)
        for name in sorted(names):
            file = Path(here, name)
            if not file.is_symlink() and file.is_file():
                yield file
    # An unreadable folder is yielded as a file, so that opening it fails and is reported.
    yield from (Path(error.filename) for error in shut if isinstance(error, PermissionError))


def search_file(store: Store, file: Path, needles: Sequence[Needle]) -> Iterator[str]:
    """The places in a file that contain one of the texts. An unreadable file counts as one."""
    name = _display_path(store, file)
    try:
        with file.open("rb") as opened:
            start, rest = opened.read(CHUNK_BYTES), b""
            if start.startswith(_SQLITE):
                yield from (f"{name} ({table})" for table in _tables_with_text(file, needles))
            before = 0
            while start:
                data = rest + start
                for needle in needles:
                    for match in needle.pattern.finditer(data):
                        line = before + data.count(b"\n", 0, match.start()) + 1
                        yield f"{name}:{line}" if name.endswith((".md", ".toml", ".log", ".jsonl")) else name
                before += data.count(b"\n", 0, max(0, len(data) - OVERLAP_BYTES))
                start, rest = opened.read(CHUNK_BYTES), data[-OVERLAP_BYTES:]
    except FileNotFoundError:
        return  # gone since the folder was listed, as SQLite's journal is after each commit
    except OSError as error:
        yield f"{name} (cannot be read: {error.strerror})"


def _tables_with_text(file: Path, needles: Sequence[Needle]) -> Iterator[str]:
    """The tables of an SQLite database with a row that contains one of the texts.

    Deleted rows may remain in its pages: the caller searches these as bytes.
    """
    try:
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True, timeout=5)) as db:
            db.text_factory = bytes
            tables = db.execute(_TABLES)
            for table in [row[0].decode() for row in tables.fetchall()]:
                quoted = table.replace('"', '""')
                for row in db.execute(f'SELECT * FROM "{quoted}"'):
                    if any(n.is_in(value) for value in row if isinstance(value, bytes) for n in needles):
                        yield table
                        break
    except sqlite3.Error:
        return  # the caller searches it as bytes in any case


def _display_path(store: Store, file: Path) -> str:
    bank = store.bank
    for base, prefix in ((bank.state, ""), (bank.git_dir, f"{bank.git_dir.name}/"), (bank.root, "")):
        if file.is_relative_to(base):
            return prefix + file.relative_to(base).as_posix()
    return str(file)


# -- pending and derived data ------------------------------------------------------------------------------
# Removing texts from pending turns and texts, saved model answers, sessions, logs, index and cache.


@dataclass(slots=True)
class CleanupReport:
    """What was removed: names of `pending` records, and numbers of log lines, turns and embeddings."""

    pending: list[str] = field(default_factory=list)
    logs: int = 0
    turns: int = 0
    """Turns of sessions that were emptied."""
    embeddings: int = 0
    stale: int = 0
    """Files that the next search has to index again."""


def queues(store: Store) -> Iterator[TurnQueue]:
    """The queues of a bank: of conversations and of texts."""
    yield TurnQueue(store.bank.pending, str)
    yield TextQueue(store.bank.pending, str)


def queued_sessions(store: Store) -> Iterator[tuple[TurnQueue, QueueEntry]]:
    """(queue, entry) of every queued conversation; entries have the session's full id."""
    return ((queue, one) for queue in queues(store) for one in queue.all() if one.session.session)


def queued_for(store: Store, session: str) -> list[tuple[TurnQueue, QueueEntry]]:
    """(queue, entry) of a session, by its full id or the short one that headings show."""
    return [row for row in queued_sessions(store) if is_same_session(row[1].session.session, session)]


def is_same_session(whole: str, named: str) -> bool:
    """Whether two session ids mean the same session; each may be a full id or a heading's short one."""
    return named in (whole, ledger.short_id(whole)) or whole == ledger.short_id(named)


def remove_texts(store: Store, needles: Sequence[Needle], ids: Collection[str], done: CleanupReport) -> None:
    """Remove texts from pending records, sessions and logs, and delete the work folder of a killed import or
    export. Busy while a consolidation is running."""
    remove_work_folder(store.bank.state)
    for queue in queues(store):
        for key in queue.keys():  # noqa: SIM118 (it is no mapping)
            with suppress(NotFound):  # drained meanwhile
                if queue.rewrite(key, lambda row: redact_row(row, needles)):
                    done.pending.append(key)
    if _drop_answers(store, needles, ids):
        done.pending.append("consolidation")
    if delete_edits(store, lambda text: any(needle.is_in(text) for needle in needles)):
        done.pending.append("core memory")
    said = SessionFiles(store)
    done.turns += said.forget(lambda turn: any(needle.is_in(turn.text) for needle in needles))
    local = store.bank.local  # logs, and the lines that hooks have given to sessions
    for file in sorted([*local.glob("*.log*"), *local.glob("recalled-*")]):
        data = file.read_bytes()
        lines = data.split(b"\n")
        kept = [line for line in lines if not any(needle.is_in(line) for needle in needles)]
        if len(kept) < len(lines):
            file.write_bytes(b"\n".join(kept))
            done.logs += len(lines) - len(kept)


def keys_with_texts(store: Store, needles: Sequence[Needle]) -> list[str]:
    """The keys of the queue entries that contain one of the texts."""
    every = ((queue.prefix, key) for queue in queues(store) for key in queue.keys())  # noqa: SIM118
    files = ((key, (store.bank.pending / f"{prefix}{key}.jsonl").read_bytes()) for prefix, key in every)
    return [key for key, data in files if any(needle.is_in(data) for needle in needles)]


def redact_row(row: Mapping[str, Any], needles: Sequence[Needle]) -> dict[str, Any] | None:
    """A row of a pending record with the texts masked.

    None for the facts that a model drew from a chunk: without the row the chunk is extracted again.
    """
    said = json.dumps(row, ensure_ascii=False)
    if not any(needle.is_in(said) for needle in needles):
        return dict(row)
    if "drawn" in row:
        return None
    masked = redaction.change_texts(row, lambda text: reduce(lambda t, needle: needle.mask(t), needles, text))
    return dict(masked)


def _drop_answers(store: Store, needles: Sequence[Needle], ids: Collection[str]) -> bool:
    """Drop saved answers of a consolidation that rest on removed `ids` or contain a text; whether there were
    any. The next consolidation asks the model again. Busy."""
    answers = Answers(store.bank.pending)
    there = answers.all()
    marks = {f"^{block}" for block in ids}
    left = [(one, _answer_text(one)) for one in there if not one.rests_on & marks]
    kept = [one for one, said in left if not any(needle.is_in(said) for needle in needles)]
    if len(kept) == len(there):
        return False
    busy = "a consolidation is running", "try again when it is done"
    with locked(store.bank.state / CLAIM, store.config.lock_seconds, *busy):
        answers.keep_only(kept)
    return True


def _answer_text(answer: BatchOutcome) -> str:
    row = [[*map(asdict, answer.operations)], answer.refused, answer.aside]
    return json.dumps(row, ensure_ascii=False)


def reindex(store: Store, index: Index, seconds: float, cleared: CleanupReport) -> None:
    """Rebuild the index, and drop cached embeddings that are not used any more.

    The word index is rebuilt at once; vectors are added from the cache by the next search or the daemon.
    """
    if index.generations.folder.exists():
        with index.lock:
            index.close()
            fresh = CurrentIndex(index.generations)
            # Deleting rows would leave the text in free pages and in the write-ahead log.
            fresh.reset("something was forgotten")
            fresh.close()
            done = index.refresh(vectors=False)
            kept = any(store.bank.cache.glob("embeddings*")) if store.bank.cache.is_dir() else False
            if kept and not done.left_files:
                cleared.embeddings = index.cache.keep_only(index.words.text_ids())
            if store.config.chroma_url:  # rows on a server are only deleted by a refresh with vectors
                done = index.refresh(stop=stop_after(seconds))
        cleared.stale = done.left_files + done.left_texts
    elif store.bank.cache.is_dir():
        for file in store.bank.cache.glob("embeddings*"):
            file.unlink(missing_ok=True)


# -- cleanup -----------------------------------------------------------------------------------------------
# The second half of a forget, after its commit. A record in `pending/` has the texts to remove, so that the
# next command finishes the cleanup of a killed process.


RECORD_PREFIX = "forget-"
"""Begins the file name of a cleanup's record in `pending/`."""
TEMP_SUFFIX = ".tmp"
"""Ends the name of such a record while it is written. Not `.fresh`, which any revision may delete."""


@checked
class Cleanup:
    """Removes forgotten texts from one bank's pending and derived data."""

    def __init__(self, store: Store, index: Callable[[], Index]) -> None:
        self.store, self.index = store, index

    def finish(self) -> list[TraceReport]:
        """Finish the cleanups of killed processes. Busy, Malformed."""
        if not any(self.store.bank.pending.glob(f"{RECORD_PREFIX}*")):
            return []
        with self.exclusive():
            return self.finish_interrupted()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the lock for forgetting: while it is held, every record found is a killed process's. Busy."""
        self.store.make_state()
        with locked(self.store.bank.state / "forget.lock", self.store.config.lock_seconds):
            for left in self.store.bank.pending.glob(f"{RECORD_PREFIX}*{TEMP_SUFFIX}"):
                left.unlink(missing_ok=True)
            yield

    def finish_interrupted(self) -> list[TraceReport]:
        """Finish interrupted cleanups, or drop their records if nothing was committed. Malformed.

        For a caller that holds the lock (`exclusive`).
        """
        done = []
        for file in sorted(self.store.bank.pending.glob(f"{RECORD_PREFIX}*.json")):
            try:
                row = json.loads(file.read_bytes())
                sought = tuple(Needle(text, secret) for text, secret in row["texts"])
                forgotten, ids, session = row["buried"], frozenset(row["ids"]), row["session"]
            except (ValueError, KeyError, TypeError) as error:
                hint = f"forget it again, with this file out of the way: rm {quote(str(file))}"
                raise Malformed("an interrupted forget cannot be read", where=str(file), hint=hint) from error
            self.store.require_settled()
            if self._has_tombstones(forgotten):
                done.append(self.clean_up(file, sought, ids, session)[1])
            else:
                file.unlink(missing_ok=True)
        return done

    def write_record(
        self, forgotten: Iterable[str], ids: Collection[str], sought: Sequence[Needle], session: str = ""
    ) -> Path:
        """Write the record of a cleanup into `pending/`, before anything is removed."""
        self.store.make_state()
        folder = self.store.bank.pending
        make_private(folder)
        row = {
            "buried": [*forgotten], "ids": sorted(ids),
            "session": session, "texts": [[needle.text, needle.secret] for needle in sought],
        }  # fmt: skip
        file = folder / f"{RECORD_PREFIX}{secrets.token_hex(8)}.json"
        with writing(file):
            swap.replace_file(file, json.dumps(row).encode(), file.with_suffix(TEMP_SUFFIX))
        return file

    @contextmanager
    def with_record(
        self, forgotten: Sequence[str], ids: Collection[str], sought: Sequence[Needle]
    ) -> Iterator[Path]:
        """Hold the lock and write the record, for a block that removes the texts and calls `clean_up`.

        If the block fails before the tombstones are committed, the record is deleted.
        """
        with self.exclusive():
            file = self.write_record(forgotten, ids, sought)
            try:
                yield file
            except UaMemoryError:
                if not self._has_tombstones(forgotten):
                    file.unlink(missing_ok=True)
                raise

    def _has_tombstones(self, forgotten: Sequence[str]) -> bool:
        known = tombstones.read(self.store)
        return bool(forgotten) and all(block in known for block in forgotten)

    def clean_up(
        self, begun: Path, sought: Sequence[Needle], ids: Collection[str], session: str = "", *,
        objects: bool = False,
    ) -> tuple[CleanupReport, TraceReport]:  # fmt: skip
        """Remove the texts from pending and derived data, delete the record, and search for remains.

        CannotWrite leaves the record, and the next forget goes on from it.
        """
        cleared = CleanupReport()
        with writing(self.store.bank.state):
            for queue, one in queued_for(self.store, session) if session else ():
                queue.drop(one.key)
            said = SessionFiles(self.store)
            for words in list(said.all()) if session else ():
                if is_same_session(words.session, session):
                    said.delete(words)
                    cleared.turns += len(words.turns)
            remove_texts(self.store, sought, ids, cleared)
            reindex(self.store, self.index(), self.store.config.search_seconds, cleared)
            begun.unlink(missing_ok=True)
        return cleared, search_everything(self.store, sought, objects=objects)
