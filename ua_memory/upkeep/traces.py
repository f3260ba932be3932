"""What was forgotten, looked for in everything there is, and cleared from pending records and caches."""

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
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ua_memory.errors import Busy, Malformed, NotFound, UaMemoryError, writing
from ua_memory.git import rewrite
from ua_memory.index.sync import stop_after
from ua_memory.index.words import CurrentIndex
from ua_memory.knowledge import tombstones
from ua_memory.knowledge.core_proposals import forget_edits
from ua_memory.knowledge.sessions import SessionFiles
from ua_memory.paths import is_truth, make_private
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


# -- words -------------------------------------------------------------------------------------------------
# The words that are to be gone, as they may stand anywhere: wrapped, escaped, in JSON, in another case.


SHORT_WORDS, SHORT = 3, 16
"""A text of fewer words and characters than these is sought as a whole line or value: as part of another
sentence it would be that sentence's own."""
MARK = "[forgotten]"
"""What stands in the place of a text where the rest of what it stands in has to stay."""

_GAP = rb"(?:\s|\\[nrt]|\\u000[9ad]|>|\\(?=\s))+"
_OPENS = rb"(?:^|(?<=[\x00-\x1f\"'\x80-\xff])|(?<=[-*+.)] ))"
_CLOSES = rb"(?=$|[\x00-\x1f\"'\x80-\xff]|\\n| [\^#])"
_LETTERS = b"0-9A-Za-z_"
_STOPS = ".!?… "


@dataclass(frozen=True)
class Needle:
    """One text that is sought. `secret` tells that it is a secret by itself, wherever it stands."""

    text: str
    secret: bool = False

    @property
    def short(self) -> bool:
        return not self.secret and len(self.text) < SHORT and len(self.text.split()) < SHORT_WORDS

    @cached_property
    def pattern(self) -> re.Pattern[bytes]:
        """Matches it in bytes of any kind of file."""
        # The first words of a very long text are as good as all of them, and quicker.
        text = unicodedata.normalize("NFC", self.text).strip()
        # Who quotes a sentence leaves out its full stop.
        bare = text if self.secret or self.short else text.rstrip(_STOPS) or text
        words = _GAP.join(_word(word) for word in bare.split()[:400])
        if self.secret:
            return re.compile(words)
        if self.short:
            return re.compile(_OPENS + words + _CLOSES, re.IGNORECASE | re.MULTILINE)
        words += b"(?:" + _word(text[len(bare) :]) + b")?"
        first, last = bare[0], bare[-1]
        before = b"(?<![" + _LETTERS + b"])" if first.isalnum() else b""
        after = b"(?![" + _LETTERS + b"])" if last.isalnum() else b""
        # A JSON escape before the first word (`\n`) is no letter of it.
        before = b"(?:" + before + rb"|(?<=\\[nrt]))" if before else b""
        return re.compile(before + words + after, re.IGNORECASE)

    def within(self, text: str | bytes) -> bool:
        """Whether it stands in a text."""
        data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
        return self.pattern.search(data) is not None

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Where it stands in a text, in characters."""
        data = text.encode("utf-8", "surrogateescape")
        for match in self.pattern.finditer(data):
            first = len(data[: match.start()].decode("utf-8", "surrogateescape"))
            yield first, first + len(match[0].decode("utf-8", "surrogateescape"))

    def masked(self, text: str) -> str:
        """A text with a mark in its place."""
        data = text.encode("utf-8", "surrogatepass")
        new = self.pattern.sub(MARK.encode(), data)
        return new.decode("utf-8", "surrogatepass") if new != data else text


def needles(texts: Iterable[str], patterns: Mapping[str, str]) -> tuple[Needle, ...]:
    """The texts as needles, each once, and the secrets that stand in them."""
    found: dict[Needle, None] = {}
    for text in texts:
        if text.strip() and any(map(str.isalnum, text)):
            found[Needle(text)] = None
            for each in redaction.find(text, patterns):
                if value := text[each.start : each.end].strip():
                    found[Needle(value, secret=True)] = None
    return tuple(found)


def unmentioned(
    texts: Iterable[str], sure: Collection[Needle], files: Collection[bytes], patterns: Mapping[str, str]
) -> tuple[Needle, ...]:
    """What went along with what is `sure` to be gone, as needles: of these texts those that none of the files
    as they are to be says."""
    found = (each for each in needles(texts, patterns) if not each.short and each not in sure)
    return tuple(each for each in found if not any(map(each.within, files)))


def _word(word: str) -> bytes:
    return b"".join(map(_letter, word))


def _letter(char: str) -> bytes:
    """A character as files, JSON and our own escapes have it."""
    if char.isascii():
        raw = re.escape(char.encode())
        # In front of punctuation our files, and JSON, may have a backslash.
        return raw if char.isalnum() else rb"\\{0,3}" + raw
    # `re` knows the two cases of ASCII alone in bytes; a Mac decomposes an accent.
    cases = dict.fromkeys((char, char.lower(), char.upper()))
    forms = dict.fromkeys(unicodedata.normalize(form, each) for each in cases for form in ("NFC", "NFD"))
    return b"(?:" + b"|".join(way for each in forms for way in _ways(each)) + b")"


def _ways(text: str) -> Iterator[bytes]:
    """How UTF-8 and JSON write a few characters."""
    yield re.escape(text.encode("utf-8", "surrogatepass"))
    units = text.encode("utf-16-be", "surrogatepass")
    yield b"".join(rb"\\u" + units[n : n + 2].hex().encode() for n in range(0, len(units), 2))


# -- searching ---------------------------------------------------------------------------------------------
# Looking for what was forgotten in everything there is: files, index, cache, pending records, logs, and on
# demand every object of the history. What is found is told with its place, never with its words.


AT_ONCE = 8 << 20
"""Bytes of a file that are looked through at a time."""
OVERLAP = 1 << 18
"""Bytes that two looks share: no text of ours is longer, escaped once."""
_SQLITE = b"SQLite format 3\0"
_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL%'"


@dataclass(frozen=True, slots=True)
class Trace:
    """A place where a forgotten text still stands: `where` is a file with a line, a database's table, or an
    object of the history."""

    where: str
    kind: str


@dataclass(frozen=True, slots=True)
class TraceReport:
    """What was looked through, by kind, and what was found there."""

    looked: dict[str, int] = field(default_factory=dict)
    found: tuple[Trace, ...] = ()

    @property
    def holds(self) -> bool:
        return not self.found


def look(store: Store, needles: Sequence[Needle], *, objects: bool) -> TraceReport:
    """Search all files of the bank and of its state folder, and with `objects` every git object."""
    looked, found = Counter[str](), list[Trace]()
    for kind, file in everything(store):
        looked[kind] += 1
        found += [Trace(where, kind) for where in in_file(store, file, needles)]
    if objects and store.history.exists:
        looked["history"] = 0  # is said, too
        for name, _, data in rewrite.all_objects(store.history):
            looked["history"] += 1
            if any(needle.within(data) for needle in needles):
                found.append(Trace(f"git object {name}", "history"))
    if any(each.kind == "files" for each in found):
        # What is in a file is in the index, too; the file is what is to be told.
        found = [each for each in found if each.kind not in ("index", "cache")]
    return TraceReport(looked, tuple(dict.fromkeys(found)))


def within(files: Mapping[str, bytes], needles: Sequence[Needle]) -> TraceReport:
    """Search files as they are to be."""
    found = []
    for path, data in files.items():
        for match in (match for needle in needles for match in needle.pattern.finditer(data)):
            line = data.count(b"\n", 0, match.start()) + 1
            found.append(Trace(f"{path}:{line}", "files"))
    return TraceReport({"files": len(files)}, tuple(dict.fromkeys(found)))


def everything(store: Store) -> Iterator[tuple[str, Path]]:
    """(kind, file) of everything that a bank keeps, but for git's objects: those are asked of git."""
    bank = store.bank
    for file in _files(bank.root / "memory"):
        yield "files", file
    for file in sorted(bank.root.iterdir()):
        ours = is_truth(file.name) or file.name.startswith((swap.FRESH, swap.OUT))
        if ours and file.is_file() and not file.is_symlink():
            yield "files", file
    folders = {"pending": bank.pending, "index": bank.index, "cache": bank.cache, "local": bank.local}
    for kind, folder in folders.items():
        for file in _files(folder):
            yield kind, file
    known = {*folders.values(), bank.git_dir}
    for file in _files(bank.state, known):
        yield "state", file
    for file in _files(bank.git_dir, {*folders.values(), bank.state, bank.git_dir / "objects"}):
        yield "trail", file


def _files(folder: Path, but: Iterable[Path] = ()) -> Iterator[Path]:
    skipped = {str(each) for each in but}
    shut: list[OSError] = []
    for here, folders, names in os.walk(folder, onerror=shut.append):
        folders[:] = sorted(name for name in folders if str(Path(here, name)) not in skipped)
        for name in sorted(names):
            file = Path(here, name)
            if not file.is_symlink() and file.is_file():
                yield file
    # Not to be opened either, so that nobody takes it for searched.
    yield from (Path(error.filename) for error in shut if isinstance(error, PermissionError))


def in_file(store: Store, file: Path, needles: Sequence[Needle]) -> Iterator[str]:
    """The places in a file where one of the texts stands."""
    name = _name(store, file)
    try:
        with file.open("rb") as opened:
            start, rest = opened.read(AT_ONCE), b""
            if start.startswith(_SQLITE):
                yield from (f"{name} ({table})" for table in _in_tables(file, needles))
            before = 0
            while start:
                data = rest + start
                for needle in needles:
                    for match in needle.pattern.finditer(data):
                        line = before + data.count(b"\n", 0, match.start()) + 1
                        yield f"{name}:{line}" if name.endswith((".md", ".toml", ".log", ".jsonl")) else name
                before += data.count(b"\n", 0, max(0, len(data) - OVERLAP))
                start, rest = opened.read(AT_ONCE), data[-OVERLAP:]
    except OSError as error:
        yield f"{name} (cannot be read: {error.strerror})"


def _in_tables(file: Path, needles: Sequence[Needle]) -> Iterator[str]:
    """The tables of a database with a row that has one of the texts. What no row has, its pages may: they are
    looked through as bytes."""
    try:
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True, timeout=5)) as db:
            db.text_factory = bytes
            tables = db.execute(_TABLES)
            for table in [row[0].decode() for row in tables.fetchall()]:
                quoted = table.replace('"', '""')
                for row in db.execute(f'SELECT * FROM "{quoted}"'):
                    if any(n.within(value) for value in row if isinstance(value, bytes) for n in needles):
                        yield table
                        break
    except sqlite3.Error:
        return  # as bytes it is looked through in any case


def _name(store: Store, file: Path) -> str:
    bank = store.bank
    for base, prefix in ((bank.state, ""), (bank.git_dir, f"{bank.git_dir.name}/"), (bank.root, "")):
        if file.is_relative_to(base):
            return prefix + file.relative_to(base).as_posix()
    return str(file)


# -- waiting -----------------------------------------------------------------------------------------------
# What waits and what is kept beside the truth, without what was forgotten: pending turns and texts, answers
# that were paid for, logs, index and cache.


@dataclass(slots=True)
class CleanupReport:
    """What was taken out beside the truth, in words for a person, and what it comes to for the index."""

    pending: list[str] = field(default_factory=list)
    logs: int = 0
    turns: int = 0
    """Turns of sessions whose words were emptied."""
    embeddings: int = 0
    left: int = 0
    """Files that the index has not read again yet: the next search does."""


def queues(store: Store) -> Iterator[TurnQueue]:
    """The two queues of a bank: conversations, and texts."""
    yield TurnQueue(store.bank.pending, str)
    yield TextQueue(store.bank.pending, str)


def of_sessions(store: Store) -> Iterator[tuple[TurnQueue, QueueEntry]]:
    """What waits of any session, which has its whole id."""
    return ((queue, one) for queue in queues(store) for one in queue.all() if one.session.session)


def of_session(store: Store, session: str) -> list[tuple[TurnQueue, QueueEntry]]:
    """What waits of a session, by its whole id or the part of it that headings show."""
    return [row for row in of_sessions(store) if is_session(row[1].session.session, session)]


def is_session(whole: str, named: str) -> bool:
    """Whether a session is meant by a name: its id, or what a heading shows of it."""
    return named in (whole, ledger.short(whole)) or whole == ledger.short(named)  # a heading's, a whole one


def clear(store: Store, needles: Sequence[Needle], ids: Collection[str], cleared: CleanupReport) -> None:
    """Take texts out of what waits and of the logs, and with them what a killed import or export left. Busy
    where a consolidation is running."""
    remove_work_folder(store.bank.state)
    for queue in queues(store):
        for key in queue.keys():  # noqa: SIM118 (it is no mapping)
            with suppress(NotFound):  # drained meanwhile
                if queue.rewrite(key, lambda row: without(row, needles)):
                    cleared.pending.append(key)
    if _answers(store, needles, ids):
        cleared.pending.append("consolidation")
    if forget_edits(store, lambda text: any(needle.within(text) for needle in needles)):
        cleared.pending.append("core memory")
    said = SessionFiles(store)
    cleared.turns += said.forget(lambda turn: any(needle.within(turn.text) for needle in needles))
    for file in sorted(store.bank.local.glob("*.log*")):
        data = file.read_bytes()
        lines = data.split(b"\n")
        kept = [line for line in lines if not any(needle.within(line) for needle in needles)]
        if len(kept) < len(lines):
            file.write_bytes(b"\n".join(kept))
            cleared.logs += len(lines) - len(kept)


def waiting_keys(store: Store, needles: Sequence[Needle]) -> list[str]:
    """The keys of what waits and has one of the texts."""
    found = []
    for queue in queues(store):
        for key in queue.keys():  # noqa: SIM118 (it is no mapping)
            data = (store.bank.pending / f"{queue.prefix}{key}.jsonl").read_bytes()
            if any(needle.within(data) for needle in needles):
                found.append(key)
    return found


def without(row: Mapping[str, Any], needles: Sequence[Needle]) -> dict[str, Any] | None:
    """A row of a pending record without the texts; one of what was drawn from a chunk goes whole, and the
    chunk is read again."""
    said = json.dumps(row, ensure_ascii=False)
    if not any(needle.within(said) for needle in needles):
        return dict(row)
    if "drawn" in row:
        return None
    return {key: _taken_out(value, needles) for key, value in row.items()}


def _taken_out(value: Any, needles: Sequence[Needle]) -> Any:
    if isinstance(value, str):
        for needle in needles:
            value = needle.masked(value)
        return value
    if isinstance(value, Mapping):
        return {key: _taken_out(each, needles) for key, each in value.items()}
    return [_taken_out(each, needles) for each in value] if isinstance(value, list) else value


def _answers(store: Store, needles: Sequence[Needle], ids: Collection[str]) -> bool:
    """Let go of a consolidation's answers that rest on what went, or have its words: it asks again."""
    answers = Answers(store.bank.pending)
    there = answers.all()
    marks = {f"^{block}" for block in ids}
    left = [(one, _plain(one)) for one in there if not one.rests_on & marks]
    kept = [one for one, said in left if not any(needle.within(said) for needle in needles)]
    if len(kept) == len(there):
        return False
    try:
        with locked(store.bank.state / CLAIM, store.config.lock_seconds):
            answers.keep_only(kept)
    except Busy as error:
        hint = "try again when it is done"
        raise Busy("a consolidation is running", where=error.where, hint=hint) from error
    return True


def _plain(answer: BatchOutcome) -> str:
    row = [[*map(asdict, answer.operations)], answer.refused, answer.aside]
    return json.dumps(row, ensure_ascii=False)


def reindex(store: Store, index: Index, seconds: float, cleared: CleanupReport) -> None:
    """Begin the index anew and let go of the embeddings that nothing has any more. Words are read at once;
    the vectors, which have all gone, the next search or the daemon puts back from the cache."""
    if index.generations.folder.exists():
        with index.lock:
            index.close()
            fresh = CurrentIndex(index.generations)
            # Of a row that is only deleted, free pages and the log keep the text.
            fresh.reset("something was forgotten")
            fresh.close()
            done = index.refresh(vectors=False)
            kept = any(store.bank.cache.glob("embeddings*")) if store.bank.cache.is_dir() else False
            if kept and not done.left_files:
                cleared.embeddings = index.cache.keep_only(index.words.text_ids())
            if store.config.chroma_url:  # rows on a server go with the next look at it, which is now
                done = index.refresh(stop=stop_after(seconds))
        cleared.left = done.left_files + done.left_texts
    elif store.bank.cache.is_dir():
        for file in store.bank.cache.glob("embeddings*"):
            file.unlink(missing_ok=True)


# -- clearing ----------------------------------------------------------------------------------------------
# The end of a forgetting, beside the files: what waits, logs, index and caches, and the search that proves
# it. A record in `pending/` says what is to be gone: who is killed in the midst of it has it finished.


BEGUN = "forget-"
"""How a record in `pending/` begins that says what is to be gone until it is."""
UNWRITTEN = ".tmp"
"""Ends the name of such a record while it is written. `.fresh` is a revision's, which any other may sweep."""


class Cleanup:
    """Clearing away, in one bank."""

    def __init__(self, store: Store, index: Callable[[], Index]) -> None:
        self.store, self.index = store, index

    def finish(self) -> list[TraceReport]:
        """Bring what a killed process has begun to forget to its end, or let go of it if nothing was done."""
        if not any(self.store.bank.pending.glob(f"{BEGUN}*")):
            return []
        with self.alone():
            return self.end_begun()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """One forgetting at a time: another one's record is no killed process's. Busy."""
        self.store.make_state()
        with locked(self.store.bank.state / "forget.lock", self.store.config.lock_seconds):
            for left in self.store.bank.pending.glob(f"{BEGUN}*{UNWRITTEN}"):
                left.unlink(missing_ok=True)
            yield

    def end_begun(self) -> list[TraceReport]:
        """The same, for who is alone already. Malformed."""
        done = []
        for file in sorted(self.store.bank.pending.glob(f"{BEGUN}*.json")):
            try:
                row = json.loads(file.read_bytes())
                sought = tuple(Needle(text, secret) for text, secret in row["texts"])
                forgotten, ids, session = row["buried"], frozenset(row["ids"]), row["session"]
            except (ValueError, KeyError, TypeError) as error:
                hint = f"forget it again, with this file out of the way: rm {file}"
                raise Malformed("an interrupted forget cannot be read", where=str(file), hint=hint) from error
            self.store.require_settled()
            if self._is_done(forgotten):
                done.append(self.end(file, sought, ids, session)[1])
            else:
                file.unlink(missing_ok=True)
        return done

    def begin(
        self, forgotten: Iterable[str], ids: Collection[str], sought: Sequence[Needle], session: str = ""
    ) -> Path:
        """Say in `pending/` what is to be gone: who is killed in the midst of it has it finished."""
        self.store.make_state()
        folder = self.store.bank.pending
        make_private(folder)
        row = {
            "buried": [*forgotten], "ids": sorted(ids),
            "session": session, "texts": [[needle.text, needle.secret] for needle in sought],
        }  # fmt: skip
        file = folder / f"{BEGUN}{secrets.token_hex(8)}.json"
        with writing(file):
            swap.put(file, json.dumps(row).encode(), file.with_suffix(UNWRITTEN))
        return file

    @contextmanager
    def begun(
        self, forgotten: Sequence[str], ids: Collection[str], sought: Sequence[Needle]
    ) -> Iterator[Path]:
        """The same for the length of a block that does it. Where that fails before anything was forgotten
        there is nothing to be finished."""
        with self.alone():
            file = self.begin(forgotten, ids, sought)
            try:
                yield file
            except UaMemoryError:
                if not self._is_done(forgotten):
                    file.unlink(missing_ok=True)
                raise

    def _is_done(self, forgotten: Sequence[str]) -> bool:
        known = tombstones.read(self.store)
        return bool(forgotten) and all(block in known for block in forgotten)

    def end(
        self, begun: Path, sought: Sequence[Needle], ids: Collection[str], session: str = "", *,
        objects: bool = False,
    ) -> tuple[CleanupReport, TraceReport]:  # fmt: skip
        """Take it out of what waits, the logs, index and caches, and search everything for it. CannotWrite:
        the record stays, and the next forgetting goes on from it."""
        cleared = CleanupReport()
        with writing(self.store.bank.state):
            for queue, one in of_session(self.store, session) if session else ():
                queue.drop(one.key)
            said = SessionFiles(self.store)
            for words in list(said.all()) if session else ():
                if is_session(words.session, session):
                    said.delete(words)
                    cleared.turns += len(words.turns)
            clear(self.store, sought, ids, cleared)
            reindex(self.store, self.index(), self.store.config.search_seconds, cleared)
            begun.unlink(missing_ok=True)
        return cleared, look(self.store, sought, objects=objects)
