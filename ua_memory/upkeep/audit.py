"""Reading the history (changes, diff, blame), and verifying a bank's files against the invariants."""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from hashlib import sha256
from pathlib import Path
from textwrap import dedent
from typing import cast

from ua_memory.discovery import CORE_NAMES, LOGS, SETTINGS
from ua_memory.errors import GitFailed, NotFound, Usage, checked
from ua_memory.git import repository
from ua_memory.git.history import all_hunks
from ua_memory.git.repository import BlameLine, Revision
from ua_memory.index import sync
from ua_memory.index.generations import FactGroup, IndexedFiles
from ua_memory.knowledge import statements, tombstones, trust
from ua_memory.knowledge.entities import shared_aliases
from ua_memory.knowledge.statements import Progress, Statement
from ua_memory.markdown import document as markdown_document
from ua_memory.markdown import lines
from ua_memory.paths import is_memory_file
from ua_memory.records import (
    Entity,
    Fact,
    MentalModel,
    Page,
    Passage,
    Problem,
    Record,
    Tombstone,
    is_generated,
    ref_of,
)
from ua_memory.store import saves
from ua_memory.store.files import MAX_FILE, UNSEARCHED_MESSAGE, searchable_part
from ua_memory.store.scan import valid_name
from ua_memory.store.store import Store
from ua_memory.text import redaction
from ua_memory.upkeep import doctor


def target_of(store: Store, about: str) -> statements.Target:
    """The file, or the fact with its id, that somebody names. NotFound if nothing is known of it."""
    named = statements.parse_target(about)
    try:
        found = statements.resolve_target(store, about)
    except NotFound:
        if not named.id:
            raise
        return statements.Target("", id=named.id)  # deleted, but the history may have it
    return replace(found, id=found.id or statements.id_at(store, found))


def revisions_of(store: Store, about: str) -> list[Revision]:
    """The revisions of a file or a fact. NotFound if nothing is known of it, Usage for a path outside the
    bank."""
    found = target_of(store, about)
    if found.id:
        return _revisions_of_fact(store, found.id, found)
    if not is_memory_file(found.path):
        hint = "use MEMORY.md or a .md file under memory/"
        raise Usage("not a file of the bank", where=about[:200], hint=hint)
    done = store.history.log([found.path])
    if not done and found.path not in store.survey().changed:
        raise NotFound("no revision has this file", where=found.path, hint="ua-memory status")
    return done


# -- changes -----------------------------------------------------------------------------------------------
# What a revision changed, statement by statement.


@dataclass(frozen=True, slots=True)
class StatementChange:
    """A statement, paragraph or core block that a revision adds, changes or removes.

    `before` and `after` are its lines, None if it does not exist; `line` is its first line after the change
    (before it, if removed). `record` is fact, observation, opinion, passage, core, entity, page, model,
    document or settings (the whole file).
    """

    path: str
    line: int
    record: str
    id: str | None
    before: str | None
    after: str | None


FILES_AT_ONCE = 50
"""So many files of a revision are in memory at a time."""
_RECORD_NAMES = {"coreblock": "core", "mentalmodel": "model", "sourcedocument": "document"}
"""{class name: record name}, where they differ."""


def changes(store: Store, revision: str | None = None) -> Iterator[StatementChange]:
    """What a revision changed, by path and line; without one, the uncommitted hand edits.

    Forgotten statements are left out, and secrets masked. A generator: files are read as needed. NotFound.
    """
    sha = store.history.resolve(statements.strip_target(revision)) if revision else None
    before = parent(store, sha) if sha else store.history.head()
    paths = store.history.show(sha).paths if sha else store.survey().changed
    texts = sorted(
        path for path in paths if path == SETTINGS or (path.endswith(".md") and is_memory_file(path))
    )
    forgotten = tombstones.read(store)
    for start in range(0, len(texts), FILES_AT_ONCE):
        part = texts[start : start + FILES_AT_ONCE]
        old = store.history.read_all([(before, path) for path in part]) if before else [None] * len(part)
        disk = {} if sha else dict(statements.read_files(store, part))
        new = store.history.read_all([(sha, path) for path in part]) if sha else [*map(disk.get, part)]
        for path, was, now in zip(part, old, new, strict=True):
            yield from file_changes(path, was, now, store.redacted, forgotten)


def file_changes(
    path: str, before: bytes | None, after: bytes | None, masked: Callable[[str], str],
    forgotten: tombstones.Tombstones | None = None,
) -> list[StatementChange]:  # fmt: skip
    """The changes between two contents of a file, by line; without what is `forgotten`."""
    if path == SETTINGS:
        texts = (data if data is None else data.decode("utf-8", "replace") for data in (before, after))
        was, now = (None if text is None else masked(text) for text in texts)
        return [StatementChange(path, 1, "settings", None, was, now)] if was != now else []
    sides = [_excerpts(data, path, forgotten) for data in (before, after)]
    old, new = ([one[0] for one in side] for side in sides)
    gone, come = list[int](), list[int]()
    pairs: list[tuple[int, int]] = []
    for tag, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            pairs += _pair_reworded(old, new, range(i, j), range(k, m))
            gone += range(i, j)
            come += range(k, m)
    # The same id, or the same text, is the same statement, even if it has moved.
    moved = _pair_identical(old, new, gone, come)
    pairs = moved + [p for p in pairs if p[0] not in dict(moved) and p[1] not in {n for _, n in moved}]
    again = dict(pairs)
    found = [_make_change(path, sides[0][n], sides[1][again[n]] if n in again else None) for n in gone]
    found += [_make_change(path, None, sides[1][n]) for n in come if n not in again.values()]
    changed = sorted((one for one in found if one.before != one.after), key=lambda one: one.line)
    # Masking secrets is slow, so only changes are masked.
    return [replace(one, before=one.before and masked(one.before), after=one.after and masked(one.after))
            for one in changed]  # fmt: skip


_Excerpt = tuple[Record, str]
"""A record and its lines."""


def _excerpts(data: bytes | None, path: str, forgotten: tombstones.Tombstones | None) -> list[_Excerpt]:
    document, core = markdown_document.parse(data or b"", path), lines.kind_of(path) is lines.FileKind.CORE
    found: list[_Excerpt] = []
    for record in document.records:
        # Tombstones are reported as removed statements, and passages of core memory as its blocks.
        if isinstance(record, Tombstone) or (core and isinstance(record, Passage)):
            continue
        if forgotten and isinstance(record, Statement) and forgotten.matches(record):
            continue
        first, last = record.place.line - 1, record.place.end
        if isinstance(record, Page | MentalModel):  # the body's paragraphs are separate records
            record, last = replace(record, body=""), document.front_end
        found.append((record, dedent("\n".join(document.lines[first:last]))))
    return found


def _pair_identical(
    old: Sequence[Record], new: Sequence[Record], gone: Sequence[int], come: Sequence[int]
) -> list[tuple[int, int]]:
    """Pairs (index in old, index in new) of records with the same id, or the same text and an id on one side
    only."""
    by_id = {str(id_): n for n in come if (id_ := getattr(new[n], "id", None))}
    by_text = {(type(new[n]), getattr(new[n], "text", None)): n for n in reversed(come)}
    found: dict[int, int] = {}
    for n in gone:
        block = getattr(old[n], "id", None)
        there = by_id.get(str(block)) if block else by_text.get((type(old[n]), getattr(old[n], "text", "")))
        if there is not None and there not in found.values():
            found[n] = there
    return list(found.items())


def _pair_reworded(
    old: Sequence[Record], new: Sequence[Record], gone: range, come: range
) -> Iterator[tuple[int, int]]:
    """Pairs of records without ids at the same place that share half of their words."""
    if len(gone) * len(come) > saves.MOST_PAIRS:
        return
    left = {n: _word_set(new[n]) for n in come if not _has_id(new[n])}
    for n in gone:
        own = _word_set(old[n])
        same = [m for m in left if type(new[m]) is type(old[n]) and not _has_id(old[n])]
        best = max(same, key=lambda m: len(own & left[m]), default=None)
        if best is not None and 2 * len(own & left[best]) >= min(len(own), len(left[best])):
            yield n, best
            del left[best]


def _word_set(record: Record) -> frozenset[str]:
    """The words of a record's text, else of its name or id."""
    said = (getattr(record, name, None) for name in ("text", "name", "id", "document_id"))
    return frozenset(re.findall(r"\w+", str(next(filter(None, said), "")).casefold()))


def _has_id(record: Record) -> bool:
    return isinstance(record, Statement) and bool(record.id)


def _make_change(path: str, old: _Excerpt | None, new: _Excerpt | None) -> StatementChange:
    before, after = old[1] if old else None, new[1] if new else None
    record, _ = cast(_Excerpt, new or old)
    block = record.id if isinstance(record, Statement) else None
    kind = type(record).__name__.lower()
    return StatementChange(path, record.place.line, _RECORD_NAMES.get(kind, kind), block, before, after)


def _revisions_of_fact(store: Store, block: str, named: statements.Target) -> list[Revision]:
    """The revisions of a fact: found by trailers, by changed lines with its id, and by `blame` of its lines.

    A typed id is only searched for in its own file.
    """
    name, within = f"^{block}", [] if is_generated(block) or not named.path else [named.path]
    done = [] if within else store.history.with_trailer("Facts", name)
    done = store.history.with_paths([one for one in done if name in one.trailers["Facts"]])
    found = {one.id: one for one in done}
    paths = {path for one in done for path in one.paths} | {*within}
    ids = set(found)
    if re.fullmatch(r"[A-Za-z0-9-]+", block):
        ids |= store.history.mentioning(block, within)
    if named.path:
        ids |= {line.revision for line in _blame_target(store, named)}
    elif not ids:
        raise NotFound("no such id", where=name, hint="ua-memory search")
    for sha in ids - found.keys():
        if sha.strip("0"):
            paths |= set(store.history.show(sha).paths)
    return [r for r in store.history.log(sorted(paths)) if r.id in ids] if paths else []


def diff(store: Store, revision: str | None = None) -> str:
    """A unified diff of a revision; without one, of the uncommitted hand edits."""
    if revision is None:
        changed = sorted(store.survey().changed)
        return store.history.diff(store.history.head(), None, changed) if changed else ""
    sha = store.history.resolve(statements.strip_target(revision))
    return store.history.diff(parent(store, sha), sha)


def parent(store: Store, sha: str) -> str | None:
    """The id of a revision's parent, None for the first."""
    try:
        return store.history.resolve(f"{sha}^")
    except NotFound:
        return None


def blame(store: Store, target: str) -> list[BlameLine]:
    """Who wrote each line of a target (`statements.resolve_target`), also of uncommitted lines."""
    return _blame_target(store, statements.resolve_target(store, target))


def _blame_target(store: Store, named: statements.Target) -> list[BlameLine]:
    data = store.accepted_bytes(named.path)
    last = data.count(b"\n") + (not data.endswith(b"\n"))
    lines = statements.line_span(named.path, named.span, last) if named.span else None
    return store.history.blame(named.path, data, lines=lines)


def verify(store: Store, tell: Progress | None = None) -> list[Problem]:
    """Check all invariants that can be checked: syntax, ids, proofs, tombstones, held files, the history."""
    proofs = trust.FileProofs()
    found = [*file_problems(store, proofs, tell), *_history_problems(store)]  # held files are reported there
    uncited = trust.uncited_by_refresh(store, proofs.loose)
    return [*found, *(Problem(one.path, one.line, one.message) for one in uncited)]


def file_problems(
    store: Store, proofs: trust.FileProofs | None = None, tell: Progress | None = None,
    known: IndexedFiles | None = None,
) -> Iterator[Problem]:  # fmt: skip
    """Problems in the files themselves. `proofs` collects what they say and cite.

    Unchanged files that are in the index (`known`) and have only facts are not parsed; then quotes from them
    are not checked.
    """
    proofs, stones = proofs or trust.FileProofs(), dict[str, Tombstone]()
    generated: list[IdRow] = []
    typed_ids: list[Statement] = []
    flagged = list(known.marked()) if known else []
    same = known.same if known else {}
    paths = {one.path for one in store.survey().files if one.path.endswith(".md")}
    read = paths & same.keys()
    for path in sorted(read):
        yield from same[path]
    parsed = {path for path in paths if path not in same or not _has_only_facts(path)}
    for path, data in statements.texts(store, paths=parsed, tell=tell):
        read.add(path)
        document = markdown_document.parse(data, path)
        if path not in same:
            if rest := searchable_part(data)[1]:
                yield Problem(path, rest, UNSEARCHED_MESSAGE)
            yield from document.problems
            for one in document.statements:
                if one.id and is_generated(one.id):
                    text = markdown_document.texthash(one.text)
                    generated.append((one.id, path, one.place.line, text))
                elif one.id:
                    typed_ids.append(one)  # may be used in several files
                if isinstance(one, Fact) and (one.flag or not one.id):
                    flagged.append((path, one.place.line, one.id, one.text, one.flag))
        yield from shared_aliases(document.of(Entity))
        proofs.read(document)
        stones |= {stone.id: stone for stone in document.of(Tombstone)}
    yield from _duplicate_ids(generated, known)
    yield from _forgotten_again(store, stones, generated, typed_ids, known)
    missing = {proof.id for _, _, proof in proofs.cited} - proofs.said.keys()
    for block, path, *_, text in known.texts(missing) if known else ():
        quotes = (proof.quote for _, _, proof in proofs.cited if proof.id == block)
        proofs.said[ref_of(path, block)] = (text, *filter(None, quotes))
    yield from _flagged_facts(flagged, proofs.said.keys() | stones.keys(), known)
    yield from proofs.problems(store)
    yield from _unreadable_files(store, read)


IdRow = tuple[str, str, int, str]
"""(id, path, line, hash of its text)."""


_MISPLACED_ID = re.compile(r"(?<!\S)\^([a-z0-9]{10})(?=\s)")
"""A generated id with text after it."""


def _flagged_facts(
    facts: Iterable[tuple[str, int, str | None, str, str | None]], ids: Set[str], known: IndexedFiles | None
) -> Iterator[Problem]:
    """Conflicts that a sync left for a person to decide, and ids that are invalid because text follows them.

    An id that exists elsewhere counts as a citation. `facts` are (path, line, id, text, flag).
    """
    for path, line, block, text, flag in facts:
        if flag and statements.OTHER_VERSION in flag:
            yield Problem(path, line, f"{flag}; correct that one, and delete this one")
        for one in () if block else _MISPLACED_ID.findall(text):
            if one not in ids and not (known and any(known.texts([one]))):
                what = f"^{one} is not at the end of the line, so it is not an id; move it there"
                yield Problem(path, line, what)


def _forgotten_again(
    store: Store, stones: Mapping[str, Tombstone], said: Sequence[IdRow], typed: Sequence[Statement],
    known: IndexedFiles | None,
) -> Iterator[Problem]:  # fmt: skip
    """Statements that have a tombstone and are in a file again."""
    forgotten = tombstones.Tombstones(stones, store.config.redact)
    buried = sorted(filter(is_generated, stones))
    rows = [row[:3] for row in (known.texts(buried) if known else ())]
    rows += [row[:3] for row in said if row[0] in stones]
    again = filter(forgotten.has_id_of, typed if stones else ())
    rows += [(str(one.id), one.place.path, one.place.line) for one in again]
    for block, path, line in rows:
        yield Problem(path, line, f"^{block} was forgotten and is here again")


def quick_problems(store: Store) -> Iterator[Problem]:
    """The same, using the index for unchanged files."""
    with contextlib.suppress(sqlite3.Error), sync.open_indexed_files(store) as known:
        if known is not None:
            yield from list(file_problems(store, known=known))
            return
    yield from file_problems(store)


def _has_only_facts(path: str) -> bool:
    """Whether a file's kind has only facts and prose, which have no proofs to check."""
    return lines.kind_of(path) in (lines.FileKind.LOG, lines.FileKind.DOCUMENT)


def _duplicate_ids(said: Sequence[IdRow], known: IndexedFiles | None) -> Iterator[Problem]:
    """Generated ids that two files have with different texts; the parser reports duplicates within a file."""
    rows = list(said)
    if known:
        blocks = filter(is_generated, {*known.duplicate_ids(), *(row[0] for row in said)})
        rows += [row[:4] for row in known.texts(blocks)]
    first: dict[str, IdRow] = {}
    for row in sorted(rows, key=lambda row: row[1:3]):
        block, path, line, text = row
        _, where, at, other = first.setdefault(block, row)
        if text != other and where != path:
            yield Problem(path, line, f"^{block} is also {where}:{at}, with another text")


def _unreadable_files(store: Store, read: Set[str]) -> Iterator[Problem]:
    """Files that cannot be read or are ignored, and unknown settings."""
    refused = {path: why for path, why, _ in doctor.unreadable_files(store)}
    for path, why in refused.items():
        yield Problem(path, 1, f"cannot be read: {why} (ua-memory doctor)")
    for file in store.survey().files:
        if file.path.endswith(".md") and file.path not in read and file.path not in refused:
            why = "cannot be read: its name or its permissions do not allow it"
            large = f"larger than {MAX_FILE >> 20} MB: it is not read, committed or searched; split it"
            yield Problem(file.path, 1, large if file.size > MAX_FILE else why)
    links, unsayable = _ignored_files(store)
    for path in links:
        yield Problem(path, 1, "a symbolic link is not followed; put the file itself here")
    for path in unsayable:
        yield Problem(path, 1, "its name has a backslash, a control character or invalid UTF-8: rename it")
    for key in store.config.unknown:
        yield Problem(SETTINGS, 1, f"unknown setting {key!r}: `ua-memory config` lists them")


def _ignored_files(store: Store) -> tuple[list[str], list[str]]:
    """(symbolic links, files with invalid names) among the memory files: they are neither committed nor
    searched. The names are escaped for printing."""
    root = store.bank.root
    links, odd = [name for name in (*CORE_NAMES, SETTINGS, LOGS) if (root / name).is_symlink()], list[str]()
    for name in () if LOGS in links else _walk_names(root, LOGS):
        if os.path.islink(f"{root}/{name}"):  # noqa: PTH114 (a Path of each takes longer)
            links += [name] if name.endswith(".md") or (root / name).is_dir() else []
        elif name.endswith(".md") and not valid_name(name) and (root / name).is_file():
            odd.append(repr(name)[1:-1])
    return sorted(links), sorted(odd)


def _walk_names(root: Path, top: str) -> Iterator[str]:
    """All names below a folder, except hidden ones and those in unreadable folders."""
    for here, folders, files in os.walk(root / top):
        folders[:] = [name for name in folders if not name.startswith(".")]
        if os.access(here, os.X_OK, effective_ids=os.access in os.supports_effective_ids):
            below = Path(here).relative_to(root).as_posix()
            yield from (f"{below}/{name}" for name in (*folders, *files) if not name.startswith("."))


def _history_problems(store: Store) -> Iterator[Problem]:
    gone = "facts disappeared all at once: `ua-memory status --accept`, or `ua-memory undo`"
    for path in sorted(store.survey().held):
        yield Problem(path, 1, gone)
    if not store.history.exists:
        return
    try:
        store.history.run("fsck", "--full", "--no-dangling", "--no-progress")
    except GitFailed as error:
        yield Problem(str(store.bank.git_dir), 1, error.what)
        return
    try:
        store.history.require_branch()
    except GitFailed as error:
        yield Problem(str(store.bank.git_dir), 1, f"{error.what}: {error.hint}")


def newest_revision(store: Store) -> tuple[Revision | None, str]:
    """(the newest revision, what is wrong with it); None without a history, '' if nothing is wrong."""
    found: list[Revision] = []
    try:
        if not store.history.exists or not store.history.head():
            return None, ""
        store.history.require_branch()
        found = store.history.log(limit=1)
        wrong = repository.missing_from_head(store.history)
    except GitFailed as error:
        wrong = error.what
    return (found[0] if found else None), wrong


def find_secrets(store: Store, tell: Progress | None = None) -> list[tuple[str, int, str]]:
    """(path, line, kind) of every secret in the files. A person's own lines are committed unredacted."""
    found: Counter[tuple[str, int, str]] = Counter()
    for path, data in statements.texts(store, tell=tell):
        text = data.decode("utf-8", "replace")
        for secret in redaction.find(text, store.config.redact):
            found[path, text.count("\n", 0, secret.start) + 1, secret.kind] += 1
    return sorted(found)


def find_past_secrets(store: Store) -> list[tuple[str, str, int, str]]:
    """(revision, path, line, kind) of every secret in the history, oldest first, each where it was added
    first. The path is '' for one in a commit message."""
    ours = (*CORE_NAMES, LOGS, SETTINGS) if store.bank.own else ()
    seen: set[tuple[str, str, bytes]] = set()
    found = []
    for hunk in all_hunks(store.history, *ours):
        text = hunk.text
        for secret in redaction.find(text, store.config.redact):
            value = text[secret.start : secret.end].encode()
            name = (hunk.path, secret.kind, sha256(value).digest())
            if name not in seen:
                seen.add(name)
                line = hunk.line + text.count("\n", 0, secret.start)
                found.append((hunk.revision, hunk.path, line, secret.kind))
    return found


# -- statistics --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stats:
    """Counts: `months` of facts by their log's month, `ops` of revisions by `Memory-Op`. Days are ISO
    days."""

    files: int
    bytes: int
    facts: int
    first: str
    last: str
    revisions: int
    kinds: Mapping[str, int]
    origins: Mapping[str, int]
    clients: Mapping[str, int]
    months: Mapping[str, int]
    ops: Mapping[str, int]


def count_all(store: Store) -> Stats:
    """Count the bank's contents, by the index for unchanged files, else by parsing. Retired facts count
    too."""
    kinds, origins, clients, months = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    days: list[str] = []
    for (kind, origin, client, day), number in _count_facts(store).items():
        kinds[kind] += number
        origins[origin] += number
        clients[client or "by hand"] += number
        months[day[:7] if day else "undated"] += number
        days += [day] if day else []
    there = [one for one in store.survey().files if one.path.endswith(".md")]
    done = store.history.log()
    counts = {"kinds": kinds, "origins": origins, "clients": clients}
    counts["ops"] = Counter(one.trailer("Memory-Op") or "other" for one in done)
    return Stats(
        files=len(there), bytes=sum(one.size for one in there), facts=kinds.total(),
        first=min(days, default=""), last=max(days, default=""), revisions=len(done),
        months=dict(sorted(months.items())),
        **{name: dict(counter.most_common()) for name, counter in counts.items()},
    )  # fmt: skip


def _count_facts(store: Store) -> Counter[FactGroup]:
    with contextlib.suppress(sqlite3.Error), sync.open_indexed_files(store) as known:
        if known is not None:
            found = known.facts(outer=bool(store.config.extra_paths))
            found.update(_count_by_parsing(store, known.same.keys()))
            return +found
    return _count_by_parsing(store, frozenset())


def _count_by_parsing(store: Store, but: Set[str]) -> Counter[FactGroup]:
    """The same by parsing all files except `but`."""
    found = Counter[FactGroup]()
    paths = {one.path for one in store.survey().files if one.path not in but and _has_only_facts(one.path)}
    for path, data in statements.texts(store, paths=paths):
        day = lines.day_of(path) or ""
        for fact in markdown_document.parse(data, path).of(Fact):
            found[fact.kind, fact.said_by, fact.heading.client or "", day] += 1
    return found


Watch = Callable[[str], contextlib.AbstractContextManager[Progress | None]]


@checked
class Health:
    """`memory.health`: checks and statistics of one bank. `finish` completes interrupted forgets."""

    def __init__(self, store: Store, finish: Callable[[], object]) -> None:
        self._store, self._finish = store, finish

    def verify(self) -> Sequence[Problem]:
        """Problems found by all checks of files, history and index."""
        return self.verified()[0]

    def quick(self) -> Sequence[Problem]:
        """Problems found with the index and the newest revision, without reading every file."""
        damage = newest_revision(self._store)[1]
        broken = [Problem(".git", 1, damage)] if damage else []
        return [*broken, *quick_problems(self._store), *doctor.state_problems(self._store)]

    def verified(
        self, watch: Watch = lambda _: contextlib.nullcontext()
    ) -> tuple[Sequence[Problem], Sequence[Problem]]:
        """(problems, what could not be checked now and why). `watch(title)` shows progress."""
        with watch("Checking the files") as tell:
            found = [*verify(self._store, tell), *doctor.state_problems(self._store)]
        with watch("Checking the index") as tell:
            problems, unchecked = doctor.check_integrity(self._store, tell)
        return [*found, *problems], unchecked

    def doctor(self, *, mend: bool = False, quick: bool = False) -> Sequence[doctor.Check]:
        """Checks of git, permissions and the state folder; with `mend`, problems are repaired where
        possible; `quick` leaves out the whole history and index."""
        if mend:
            self._finish()
        return doctor.checkup(self._store, mend=mend, quick=quick)

    def stats(self) -> Stats:
        """Counts of the bank's contents."""
        return count_all(self._store)
