"""Purging: what was forgotten, out of the history as well."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from difflib import SequenceMatcher
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ua_memory.discovery import CORE_NAMES, LOGS
from ua_memory.errors import Conflict, NotFound, StillThere, Usage
from ua_memory.git import rewrite
from ua_memory.git.rewrite import unmarked
from ua_memory.git.trail import History
from ua_memory.knowledge import tombstones
from ua_memory.knowledge.statements import Statement
from ua_memory.markdown import document
from ua_memory.paths import git_around, is_truth
from ua_memory.records import Fact, Tombstone, written_id
from ua_memory.store import lock, swap
from ua_memory.store.store import Store
from ua_memory.text.wording import counted
from ua_memory.upkeep import traces
from ua_memory.upkeep.forget import Changing, Deriving, ForgetTarget
from ua_memory.upkeep.traces import MARK, Needle, needles

if TYPE_CHECKING:
    from ua_memory.upkeep.traces import Searched


# -- purging -----------------------------------------------------------------------------------------------
# Purging: what was forgotten, out of the history as well. A backup lies outside of the bank until its owner
# deletes it; so long the purge is not finished, and `status` says so.


RECORD = "purges.json"
WORK = "purge-work"
REWROTE = "Rewrote"
"""The trailer of a purge with `REF OLD NEW` for each ref that was rewritten."""


@dataclass(frozen=True, slots=True)
class Purging:
    """What a purge would do: the ids that leave the history, the refs that are rewritten, the contents that
    change, and what of the owner's is let go of: remotes' branches, which a fetch brings again."""

    ids: tuple[str, ...]
    refs: tuple[rewrite.Ref, ...]
    contents: Mapping[str, bytes]
    needles: tuple[Needle, ...]
    own: bool
    remotes: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    """Ids of which the history has no text: they have left it, or were worded over several lines."""
    around: str = ""
    """The repository of the owner's that has committed the bank's files itself: it is theirs to rewrite."""
    citing: tuple[str, ...] = ()
    """Files with a line of the owner's that cites one of the ids, and none of the words: they stay."""


@dataclass(frozen=True, slots=True)
class Purged:
    """What a purge has done: the refs from and to, the backup, the commit that says so, and the search."""

    ids: tuple[str, ...]
    rewrote: Mapping[str, tuple[str, str]]
    backup: str
    revision: str | None
    proof: Searched

    @staticmethod
    def short(name: str) -> str:
        """A ref as a person calls it."""
        return rewrite.Ref(name, "").short


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A purge whose backup is still there; not `done` where it was cut short itself."""

    backup: str
    on: str
    done: bool
    sync: bool = False
    """Another machine purged, and this one follows it with its next sync."""


def plan(store: Store, ids: Collection[str], sought: Sequence[Needle] = ()) -> Purging:
    """Work out a purge of forgotten ids. Usage for one that was not forgotten, NotFound for no id at all,
    Conflict where a rewriting would harm what is not ours, StillThere where the files have it still."""
    known = tombstones.read(store)
    chosen = tuple(block.removeprefix("^") for block in ids) or tuple(known.stones)
    if not chosen:
        raise NotFound("nothing was forgotten that could be purged", mend="ua-memory forget ^id --purge")
    if strange := next((block for block in chosen if block not in known), None):
        raise Usage(
            "this was not forgotten", where=f"^{strange}", mend=f"ua-memory forget ^{strange} --purge"
        )
    store.require_settled()
    rewrite.refuse(store.history)
    paths = rewrite.named_objects(store.history)
    facts, derived, unknown = _texts(store, paths, {block: known.stones[block] for block in chosen})
    now = {file.path: store.truth(file.path) for file in store.files()}
    for needle in (*sought, *facts):
        for path, data in now.items():
            if met := needle.pattern.search(data):
                line = data.count(b"\n", 0, met.start()) + 1
                raise _still(f"{path}:{line}")
    more = [needle for needle in derived if not any(map(needle.within, now.values()))]
    sure = tuple(dict.fromkeys((*sought, *facts, *more)))
    here = set(store.history.blobs().values())
    contents: dict[str, bytes] = {}
    citing: set[str] = set()
    for name, kind, data in rewrite.all_objects(store.history):
        if kind == b"blob" and name in paths:
            new = without(data, paths[name], chosen, sure, store.config.redact)
            if new != data and name in here:
                if any(needle.within(data) for needle in sure):  # another file of the owner's repository
                    raise _still(paths[name])
                citing.add(paths[name])
            elif new != data:
                contents[name] = new
    remotes = [
        ref.name.removeprefix("refs/remotes/") for ref in rewrite.refs(store.history, ["refs/remotes/*"])
    ]
    refs = rewrite.refs(store.history)
    unknown = unknown if not sought else set()
    own, around = store.bank.own, _around(store)
    rest = tuple(remotes), tuple(sorted(unknown)), around, tuple(sorted(citing))
    return Purging(chosen, tuple(refs), contents, sure, own, *rest)


def _around(store: Store) -> str:
    """The owner's own repository, if any commit of it has a file of the bank's; '' for none."""
    place = None if store.bank.own else git_around(store.bank.root)
    if place is None:
        return ""
    theirs, here = History(place.git_dir, place.top, own=True), store.bank.root.relative_to(place.top)
    paths = [(here / name).as_posix() for name in (*CORE_NAMES, LOGS)]
    return str(place.top) if theirs.run("rev-list", "--all", "-1", "--", *paths) else ""


def _still(place: str) -> StillThere:
    mend = f"ua-memory forget {place}" if ":" in place else f"take it out of {place}, and commit that"
    return StillThere("the files have it still", where=place, mend=mend)


def _texts(
    store: Store, paths: Mapping[str, str], stones: Mapping[str, Tombstone]
) -> tuple[list[Needle], list[Needle], set[str]]:
    """All texts that these ids ever had, in any revision, and their secrets: of facts, and of what was
    derived, which something else may say, too; and the ids of which there is no text.

    A line that had no id when it was forgotten is known by its hash.
    """
    marks = [f"^{written_id(block)}".encode() for block in stones]
    facts: dict[str, None] = {}
    derived: dict[str, None] = {}
    met: set[str] = set()
    lines: set[bytes] = set()
    for name, kind, data in rewrite.all_objects(store.history):
        path = paths.get(name, "")
        if kind == b"blob" and (not path or is_truth(path)) and path != tombstones.PATH:
            lines.update(data.split(b"\n"))
            if any(mark in data for mark in marks):
                for record in document.parse(data, path or "memory/unknown.md").records:
                    if isinstance(record, Statement) and _names(record) & stones.keys():
                        # What nothing leads to any more has no path: it counts as derived.
                        (facts if path and isinstance(record, Fact) else derived)[record.text] = None
                        met |= _names(record) & stones.keys()
    lost = {block: stone for block, stone in stones.items() if block not in met}
    facts |= dict.fromkeys(said(lines, tombstones.Tombstones(lost, store.config.redact))) if lost else {}
    if lost and facts:
        found = [tombstones.Tombstones({block: stone}, store.config.redact) for block, stone in lost.items()]
        met |= {next(iter(each.stones)) for each in found if any(map(each.has, facts))}

    def sought(texts: Iterable[str]) -> list[Needle]:
        return [needle for needle in needles(texts, store.config.redact) if not needle.short]

    return sought(facts), sought(text for text in derived if text not in facts), set(stones) - met


def _names(record: Statement) -> set[str]:
    """What the tombstone of a statement may be called."""
    return {name for name in (record.ref, record.id) if name}


def said(lines: Iterable[bytes], stones: tombstones.Tombstones) -> Iterator[str]:
    """The texts of those lines that were forgotten, each as the item that it is, or as it stands."""
    for line in lines:
        text = line.decode("utf-8", "replace").strip()
        items = document.parse(line, "memory/unknown.md").of(Fact) if text[:1] in "-*+0123456789" else ()
        for form in dict.fromkeys([*(fact.text for fact in items), text]):
            if form and stones.has(form):
                yield form
                break


def without(
    data: bytes, path: str, ids: Collection[str], sought: Sequence[Needle], patterns: Mapping[str, str]
) -> bytes:
    """A file of the past as if some ids had never been: their lines, what cited only them, and the texts."""
    marks = [f"^{written_id(block)}".encode() for block in ids]
    if path != tombstones.PATH and is_truth(path) and any(mark in data for mark in marks):
        records = (r for r in document.parse(data, path).records if isinstance(r, Statement))
        targets = [ForgetTarget(r.place, r.text, r) for r in records if not _names(r).isdisjoint(ids)]
        past = Deriving(
            {path: data},
            targets,
            lambda *_: True,
            date.min,
            take=True,
            patterns=patterns,
            ids=ids,
            strict=False,
        )
        changed = Changing(past).plan().files.get(path)
        data = data if changed is None else changed[1] or b""
    if any(needle.within(data) for needle in sought):
        for needle in sought:
            data = needle.pattern.sub(MARK.encode(), data)
    return data


def purge(store: Store, planned: Purging, backup: Path, *, door: str) -> Purged:
    """Rewrite the history. The old one lies in `backup`, a file outside of the bank. CannotWrite, GitFailed,
    Conflict; until the new history stands in its place nothing has happened."""
    outside(store, backup)
    work = store.bank.state / WORK
    with store.locked(), swap.told(work):
        unmarked(store.history)
        shutil.rmtree(work, ignore_errors=True)
        lock.sweep(store.bank.state)
        rewrite.back_up(store.history, backup)
        note(store, Unfinished(str(backup), f"{store.now():%Y-%m-%d}", False))
        patterns = [(needle.pattern.pattern, int(needle.pattern.flags)) for needle in planned.needles]
        met = rewrite.refs(store.history, ["refs/remotes/*"])
        rewrote = rewrite.rewrite(store.history, backup, work, planned.contents, patterns)
        became = rewrite.became(work)
        rewrite.let_go(store.history, work)
    with store.revision("purge", door=door) as draft:
        draft.even_if_empty = True
        number = len(planned.ids)
        draft.subject = f"purge: {counted(number, 'forgotten statement')} out of the history"
        draft.trailers[tombstones.PURGED] = [f"^{block}" for block in planned.ids]
        draft.trailers[REWROTE] = [f"{name} {old} {new}" for name, (old, new) in rewrote.items()]
        # Where a remote stood, for the sync that brings the new history there.
        draft.trailers[REWROTE] += [f"{r.name} {r.id} {became[r.id]}" for r in met if r.id in became]
        texts = [needle.text for needle in planned.needles]
        draft.trailers[tombstones.WORDS] = tombstones.hashes(texts, tombstones.read(store).salt)
    proof = traces.look(store, planned.needles, objects=True)
    note(store, Unfinished(str(backup), f"{store.now():%Y-%m-%d}", proof.holds))
    return Purged(planned.ids, rewrote, str(backup), draft.result.revision, proof)


def outside(store: Store, backup: Path) -> None:
    for inner in (store.bank.root, store.bank.state, store.bank.git_dir):
        if backup.resolve().is_relative_to(inner.resolve()):
            raise Usage(
                "a backup inside the bank would keep it there",
                where=str(backup),
                mend="name a folder outside",
            )


def unfinished(store: Store) -> list[Unfinished]:
    """The purges that were cut short, or whose backup is still there."""
    return [one for one in _noted(store) if not one.done or Path(one.backup).exists()]


def _noted(store: Store) -> list[Unfinished]:
    try:
        rows = json.loads((store.bank.state / RECORD).read_bytes())
        return [
            Unfinished(str(row["backup"]), str(row["on"]), bool(row["done"]), bool(row.get("sync")))
            for row in rows
        ]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError, KeyError):
        return [Unfinished(str(store.bank.state / RECORD), "", False)]


def note(store: Store, one: Unfinished) -> None:
    file = store.bank.state / RECORD
    rest = [each for each in unfinished(store) if each.backup != one.backup and Path(each.backup).exists()]
    # A purge that comes to its end has done what an earlier one was cut short in.
    rest = [replace(each, done=each.done or one.done) for each in rest]
    rows = [asdict(each) for each in (*rest, one)]
    fresh = file.with_suffix(".fresh")
    try:
        fresh.unlink(missing_ok=True)
        swap.write(fresh, json.dumps(rows, indent=1).encode(), mode=0o600)
        fresh.replace(file)
        swap.sync_folder(file.parent)
    except OSError as error:
        swap.refused(error, file)


# -- recorded ----------------------------------------------------------------------------------------------
# What a purge says of itself, for machines that have the history from before it: ids, and salted hashes.
#
# A purge's commit names the ids that left the history (`Purged:`) and the hashes of all texts that were
# taken out (`Purged-Words:`); `memory/forgotten.md` has a tombstone for each. By these another machine sees
# whether what a rewritten history lacks is that and nothing else. Nothing here has a word of what it was.


_HASH = re.compile(r"([0-9a-f]{8}):([0-9a-f]{16})")
_OUT = MARK.encode()
Knows = Callable[[str], bool]
MOST_PLACES = 200
"""So often the words that follow a mark are sought in one stretch of a text, before it counts as another."""


@dataclass(frozen=True)
class Record:
    """One purge: the revision that says so, the ids, and the hashes of what was taken out."""

    revision: str
    ids: frozenset[str]
    marks: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """{salt: hashes}."""

    def knows(self, text: str) -> bool:
        """Whether this is one of the texts that were taken out."""
        form = tombstones.folded(text)
        return any(tombstones.mark(salt, form) in marks for salt, marks in self.marks.items())


@dataclass(frozen=True)
class PurgeRecords:
    """The purges that one history has and another has not, oldest first."""

    each: Sequence[Record] = ()
    patterns: Mapping[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.each)

    @cached_property
    def ids(self) -> frozenset[str]:
        """All ids that were purged."""
        return frozenset[str]().union(*(record.ids for record in self.each))

    def knows(self, text: str) -> bool:
        """Whether one of them took this text out."""
        return any(record.knows(text) for record in self.each)

    def applied(self, data: bytes, path: str, sought: Sequence[Needle] = ()) -> bytes:
        """A content as if these ids had never been, and without the texts that are `sought`."""
        for record in self.each:
            data = without(data, path, record.ids, (), self.patterns)
        return without(data, path, (), sought, self.patterns) if sought else data

    def covers(self, old: bytes, new: bytes, paths: Collection[str]) -> bool:
        """Whether a content was changed by these purges and by nothing else."""
        return any(covered(self.applied(old, path), new, self.knows) for path in paths)

    def sought(self, blobs: Iterable[tuple[str, bytes]], others: Iterable[tuple[str, bytes]]) -> list[Needle]:
        """The texts that (path, content) of a history before these purges have: what the ids said, and lines
        that are known by their hash. Of `others`, which only this machine has, whatever wording the ids
        have."""
        found: dict[str, None] = {}
        lines: set[bytes] = set()
        for own, rows in ((False, blobs), (True, others)):
            for path, data in rows:
                if path == tombstones.PATH:
                    continue
                for record in document.parse(data, path).records:
                    if not isinstance(record, Statement) or record.ref not in self.ids:
                        continue
                    if isinstance(record, Fact) or own or self.knows(record.text):
                        found[record.text] = None
                lines.update(data.split(b"\n"))
        hashes = tombstones.Tombstones({"": Tombstone("", self._hashes, "")}, self.patterns)
        found |= dict.fromkeys(said(lines, hashes))
        return [needle for needle in needles(found, self.patterns) if not needle.short]

    @cached_property
    def _hashes(self) -> str:
        rows = (f"{salt}:{m}" for r in self.each for salt, marks in r.marks.items() for m in marks)
        return " ".join(dict.fromkeys(rows))


def records(history: History, tip: str, without_: str | None, patterns: Mapping[str, str]) -> PurgeRecords:
    """The purges of one history that another has not. Conflict where one names an id that has no
    tombstone."""
    span = f"{without_}..{tip}" if without_ else tip
    done = history.log(grep=[f"{tombstones.PURGED}: "], rev=span)
    return PurgeRecords([_record(history, each.id, each.trailers) for each in reversed(done)], patterns)


def _record(history: History, revision: str, trailers: Mapping[str, Sequence[str]]) -> Record:
    ids = frozenset(block.removeprefix("^") for block in trailers.get(tombstones.PURGED, ()))
    stones = tombstones.stones(history.read(revision, tombstones.PATH))
    if strange := sorted(ids - stones.keys()):
        raise Conflict(
            f"a purge names ^{strange[0]}, which has no tombstone",
            where=f"{revision[:10]} {tombstones.PATH}",
            mend="nothing was changed here; docs/sync.md, A rewritten history, tells what to do",
        )  # fmt: skip
    said = [*trailers.get(tombstones.WORDS, ()), *(stones[block].hash for block in ids)]
    marks: dict[str, set[str]] = {}
    for salt, mark in _HASH.findall(" ".join(said)):
        marks.setdefault(salt, set()).add(mark)
    return Record(revision, ids, {salt: frozenset(found) for salt, found in marks.items()})


# -- whether a text was changed by what is recorded, and by nothing else ---------------------------------


def covered(old: bytes, new: bytes, knows: Knows) -> bool:
    """Whether `new` is `old` with `[forgotten]` in the place of texts that are known, and nothing else."""
    if old == new:
        return True
    if _OUT not in new:
        return False
    one, other = old.splitlines(keepends=True), new.splitlines(keepends=True)
    for kind, a, b, c, d in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        if kind != "equal" and not _stretch(b"".join(one[a:b]), b"".join(other[c:d]), knows):
            return False
    return True


def _stretch(old: bytes, new: bytes, knows: Knows) -> bool:
    """The same of lines that differ: between the marks both say the same, and what a mark stands for is
    known."""
    first, *rest = new.split(_OUT)
    if not old.startswith(first):
        return False
    ends = {len(first)}
    for n, literal in enumerate(rest, 1):
        last, found, tried = n == len(rest), set[int](), 0
        for start in ends:
            for at in _places(old, literal, start, last):
                tried += 1
                if tried > MOST_PLACES:
                    break
                if old[start:at] == _OUT or any(map(knows, _forms(old[start:at]))):
                    found.add(at + len(literal))
        ends = found
    return len(old) in ends


def _places(old: bytes, literal: bytes, start: int, last: bool) -> Iterator[int]:
    if last:
        if old.endswith(literal) and len(old) - len(literal) >= start:
            yield len(old) - len(literal)
        return
    at = old.find(literal, start)
    while at >= 0:
        yield at
        at = old.find(literal, at + 1)


def _forms(piece: bytes) -> Iterator[str]:
    """A text as it may have stood: plain, quoted, with the escapes of our files or of JSON."""
    text = piece.decode("utf-8", "replace")
    yield text
    yield re.sub(r"\n[ \t]*>+[ \t]?", "\n", text)
    yield re.sub(r"\\(?=\W)", "", text)
    plain = re.sub(r"\\[nrt]", " ", text)
    yield re.sub(r"\\+(?=\W)", "", re.sub(r"(?:\\u[0-9a-f]{4})+", _unicode, plain))


def _unicode(found: re.Match[str]) -> str:
    units = bytes.fromhex(found[0].replace("\\u", ""))
    return units.decode("utf-16-be", "replace")
