"""Purge: remove forgotten statements from the history as well."""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from pathlib import Path

from ua_memory.discovery import CORE_NAMES, LOGS
from ua_memory.errors import Conflict, NotFound, StillThere, Usage, writing
from ua_memory.git import rewrite
from ua_memory.git.history import CommitStamp, History, commit_stamps
from ua_memory.knowledge import tombstones
from ua_memory.knowledge.statements import Statement
from ua_memory.markdown import document
from ua_memory.paths import git_around, is_truth
from ua_memory.records import Fact, Tombstone, written_id
from ua_memory.store import lock, swap
from ua_memory.store.store import Store
from ua_memory.text.wording import counted
from ua_memory.upkeep import traces
from ua_memory.upkeep.forget import ForgetEdits, ForgetPlanner, ForgetResult, ForgetTarget, tombstone_id
from ua_memory.upkeep.traces import MARK, Needle, TraceReport, needles

# -- purging -----------------------------------------------------------------------------------------------
# Purge: remove forgotten statements from the history as well. A backup lies outside the bank until its owner
# deletes it; so long the purge is not finished, and `status` says so.


RECORD = "purges.json"
WORK = "purge-work"
INSIDE = "a backup inside the bank would keep the forgotten text"
REWROTE = "Rewrote"
"""The trailer of a purge with `REF OLD NEW` for each ref that was rewritten."""


@dataclass(frozen=True, slots=True)
class PurgePlan:
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
class PurgeResult:
    """What a purge has done: the refs from and to, the backup, the commit that says so, and the search."""

    ids: tuple[str, ...]
    rewrote: Mapping[str, tuple[str, str]]
    backup: str
    revision: str | None
    proof: TraceReport

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


def plan(store: Store, ids: Collection[str], sought: Sequence[Needle] = ()) -> PurgePlan:
    """Work out a purge of forgotten ids. Usage for one that was not forgotten, NotFound for no id at all,
    Conflict where a rewriting would harm what is not ours, StillThere where the files still have it."""
    known = tombstones.read(store)
    chosen = tuple(block.removeprefix("^") for block in ids) or tuple(known.by_id)
    if not chosen:
        raise NotFound("nothing to purge: nothing was forgotten", hint="ua-memory forget ^id --purge")
    if strange := next((block for block in chosen if block not in known), None):
        hint = f"ua-memory forget ^{strange} --purge"
        raise Usage("this was not forgotten", where=f"^{strange}", hint=hint)
    store.require_settled()
    rewrite.refuse(store.history)
    paths = rewrite.named_objects(store.history)
    forgotten = {block: known.by_id[block] for block in chosen}
    now = {file.path: store.truth(file.path) for file in store.files()}
    sure, unknown = texts(store.history, paths, forgotten, now, store.config.redact, sought)
    here = set(store.history.blobs().values())
    contents: dict[str, bytes] = {}
    citing: set[str] = set()
    for name, data, new in changes(store.history, paths, chosen, sure, store.config.redact):
        if name not in here:
            contents[name] = new
        elif any(needle.within(data) for needle in sure):  # another file of the owner's repository
            raise _still(paths[name])
        else:
            citing.add(paths[name])
    theirs = rewrite.refs(store.history, ["refs/remotes/*"])
    return PurgePlan(
        chosen, tuple(rewrite.refs(store.history)), contents, sure, store.bank.own,
        tuple(ref.name.removeprefix("refs/remotes/") for ref in theirs),
        tuple(sorted(unknown if not sought else ())), _around(store), tuple(sorted(citing)),
    )  # fmt: skip


def _around(store: Store) -> str:
    """The owner's own repository, if any commit of it has a file of the bank's; '' for none."""
    place = None if store.bank.own else git_around(store.bank.root)
    if place is None:
        return ""
    theirs, here = History(place.git_dir, place.top, own=True), store.bank.root.relative_to(place.top)
    paths = [(here / name).as_posix() for name in (*CORE_NAMES, LOGS)]
    return str(place.top) if theirs.run("rev-list", "--all", "-1", "--", *paths) else ""


def _still(place: str) -> StillThere:
    hint = f"ua-memory forget {place}" if ":" in place else f"remove it from {place} and commit that"
    return StillThere("the files still have it", where=place, hint=hint)


def texts(
    history: History, paths: Mapping[str, str], forgotten: Mapping[str, Tombstone], now: Mapping[str, bytes],
    patterns: Mapping[str, str], more: Sequence[Needle] = (),
) -> tuple[tuple[Needle, ...], set[str]]:  # fmt: skip
    """All texts that these ids ever had, in any revision, and their secrets, with `more` of them: none may
    stand in the files as they are `now` (StillThere), and of what was derived those are left out that do.
    And the ids of which there is no text. `paths` are {blob id: path}.

    A line that had no id when it was forgotten is known by its hash.
    """
    marks = [f"^{written_id(block)}".encode() for block in forgotten if block]
    facts: dict[str, None] = {}
    derived: dict[str, None] = {}
    met: set[str] = set()
    lines: set[bytes] = set()
    for name, kind, data in rewrite.all_objects(history):
        path = paths.get(name, "")
        if kind == "blob" and (not path or is_truth(path)) and path != tombstones.PATH:
            lines.update(data.split(b"\n"))
            if any(mark in data for mark in marks):
                for record in document.parse(data, path or "memory/unknown.md").statements:
                    if _names(record) & forgotten.keys():
                        # What nothing leads to any more has no path: it counts as derived.
                        (facts if path and isinstance(record, Fact) else derived)[record.text] = None
                        met |= _names(record) & forgotten.keys()
    lost = {block: stone for block, stone in forgotten.items() if block not in met}
    facts |= dict.fromkeys(forgotten_texts(lines, tombstones.Tombstones(lost, patterns))) if lost else {}
    if lost and facts:
        found = [tombstones.Tombstones({block: stone}, patterns) for block, stone in lost.items()]
        met |= {next(iter(each.by_id)) for each in found if any(map(each.has, facts))}
    sure = [*more, *(needle for needle in needles(facts, patterns) if not needle.short)]
    for trace in traces.within(now, sure).found:
        raise _still(trace.where)
    rest = needles((text for text in derived if text not in facts), patterns)
    sure += [n for n in rest if not n.short and not any(map(n.within, now.values()))]
    return tuple(dict.fromkeys(sure)), forgotten.keys() - met


def changes(
    history: History, paths: Mapping[str, str], ids: Collection[str], sought: Sequence[Needle],
    patterns: Mapping[str, str],
) -> Iterator[tuple[str, bytes, bytes]]:  # fmt: skip
    """(blob id, content, content without these ids and texts) of what has any of them; `paths` are
    {blob id: path}."""
    for name, kind, data in rewrite.all_objects(history):
        if kind == "blob" and name in paths:
            new = without(data, paths[name], ids, sought, patterns)
            if new != data:
                yield name, data, new


def _names(record: Statement) -> set[str]:
    """What the tombstone of a statement may be called."""
    return {name for name in (record.ref, record.id) if name}


def forgotten_texts(lines: Iterable[bytes], forgotten: tombstones.Tombstones) -> Iterator[str]:
    """The texts of those lines that were forgotten, each as the item that it is, or as it stands."""
    for line in lines:
        text = line.decode("utf-8", "replace").strip()
        items = document.parse(line, "memory/unknown.md").of(Fact) if text[:1] in "-*+0123456789" else ()
        for form in dict.fromkeys([*(fact.text for fact in items), text]):
            if form and forgotten.has(form):
                yield form
                break


def without(
    data: bytes, path: str, ids: Collection[str], sought: Sequence[Needle], patterns: Mapping[str, str]
) -> bytes:
    """A file of the past as if some ids had never been: their lines, what cited only them, and the texts."""
    marks = [f"^{written_id(block)}".encode() for block in ids]
    if path != tombstones.PATH and is_truth(path) and any(mark in data for mark in marks):
        said = document.parse(data, path).statements
        targets = [ForgetTarget(r.place, r.text, r) for r in said if not _names(r).isdisjoint(ids)]
        past = ForgetPlanner(
            {path: data}, targets, lambda *_: True, date.min, take=True, patterns=patterns, ids=ids,
            strict=False,
        )  # fmt: skip
        changed = ForgetEdits(past).plan().files.get(path)
        data = data if changed is None else changed[1] or b""
    if any(needle.within(data) for needle in sought):
        for needle in sought:
            data = needle.pattern.sub(MARK.encode(), data)
    return data


def purge(store: Store, planned: PurgePlan, backup: Path, *, door: str) -> PurgeResult:
    """Rewrite the history. The old one lies in `backup`, a file outside of the bank. CannotWrite, GitFailed,
    Conflict; until the new history stands in its place nothing has happened."""
    outside(store, backup)
    work = store.bank.state / WORK
    with store.locked(), writing(work):
        rewrite.unmarked(store.history)
        shutil.rmtree(work, ignore_errors=True)
        lock.remove_work_folder(store.bank.state)
        rewrite.back_up(store.history, backup)
        note(store, Unfinished(str(backup), f"{store.now():%Y-%m-%d}", False))
        patterns = [needle.pattern for needle in planned.needles]
        remote = store.history.remote()
        agreed = store.history.agreed(remote[0]) if remote else None
        notes = [rewrite.Ref(store.history.agreement(remote[0]), agreed)] if remote and agreed else []
        rewrote = rewrite.rewrite(store.history, backup, work, planned.contents, patterns, notes)
        rewrite.let_go(store.history, work)
    with store.revision("purge", door=door) as draft:
        draft.even_if_empty = True
        number = len(planned.ids)
        draft.subject = f"purge: {counted(number, 'forgotten statement')} from the history"
        draft.trailers[tombstones.PURGED] = [f"^{block}" for block in planned.ids]
        draft.trailers[REWROTE] = [f"{name} {old} {new}" for name, (old, new) in rewrote.items()]
        words = [needle.text for needle in planned.needles]
        draft.trailers[tombstones.WORDS] = tombstones.hashes(words, tombstones.read(store).salt)
    proof = traces.look(store, planned.needles, objects=True)
    note(store, Unfinished(str(backup), f"{store.now():%Y-%m-%d}", proof.holds))
    return PurgeResult(planned.ids, rewrote, str(backup), draft.result.revision, proof)


def outside(
    store: Store, file: Path, what: str = INSIDE, hint: str = "give a folder outside the bank"
) -> None:
    """Usage for a file that would lie in the bank."""
    for inner in (store.bank.root, store.bank.state, store.bank.git_dir):
        if file.resolve().is_relative_to(inner.resolve()):
            raise Usage(what, where=str(file), hint=hint)


def unfinished(store: Store) -> list[Unfinished]:
    """The purges that were cut short, or whose backup is still there."""
    return [one for one in _noted(store) if not one.done or Path(one.backup).exists()]


def _noted(store: Store) -> list[Unfinished]:
    try:
        return [Unfinished(**row) for row in json.loads((store.bank.state / RECORD).read_bytes())]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError):
        return [Unfinished(str(store.bank.state / RECORD), "", False)]


def note(store: Store, one: Unfinished) -> None:
    file = store.bank.state / RECORD
    rest = [each for each in unfinished(store) if each.backup != one.backup and Path(each.backup).exists()]
    # A purge that comes to its end has done what an earlier one was cut short in.
    rest = [replace(each, done=each.done or one.done) for each in rest]
    rows = [asdict(each) for each in (*rest, one)]
    with writing(file):
        swap.put(file, json.dumps(rows, indent=1).encode(), file.with_suffix(".fresh"))


# -- purges of another machine ---------------------------------------------------------------------------
# What a purge says of itself, by which other machines see what a rewritten history may lack.
#
# A purge's commit names the ids that left the history (`Purged:`) and the hashes of all texts that were
# taken out (`Purged-Words:`); `memory/forgotten.md` has a tombstone for each id. A rewriting keeps the order
# of revisions, their authors and times, so each old revision has a counterpart in the new history.


_OUT = MARK.encode()
HINT = "nothing was changed here; see docs/sync.md, A rewritten history"


@dataclass(frozen=True)
class Purges:
    """What one history has purged and another has not."""

    each: Sequence[frozenset[str]] = ()
    """The ids of each purge, oldest first."""
    tombstones: Mapping[str, Tombstone] = field(default_factory=dict)
    """{id: tombstone} of all of them; under '' one with the hashes of all texts that were taken out."""
    patterns: Mapping[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.each)

    @property
    def ids(self) -> frozenset[str]:
        """All ids that were purged."""
        return frozenset[str]().union(*self.each)

    def account_for(self, old: bytes, new: bytes, paths: Collection[str]) -> bool:
        """Whether a content at one of these paths was changed by the purges and by nothing else."""
        for path in paths:
            data = old
            for ids in self.each:
                data = without(data, path, ids, (), self.patterns)
            if _is_marked(data, new):
                return True
        return False


def _is_marked(old: bytes, new: bytes) -> bool:
    """Whether one text is the other with `[forgotten]` in the place of some of it."""
    first, *rest = new.split(_OUT)
    if not rest:
        return old == new
    at = len(first) if old.startswith(first) else -1
    for part in rest[:-1]:
        found = old.find(part, at) if at >= 0 else -1
        at = found + len(part) if found >= 0 else -1
    return 0 <= at <= len(old) - len(rest[-1]) and old.endswith(rest[-1])


def purges(history: History, tip: str, base: str | None, patterns: Mapping[str, str]) -> Purges:
    """The purges of the history up to `tip` that the one up to `base` has not. Conflict where one names an
    id that has no tombstone."""
    each, forgotten, words = list[frozenset[str]](), dict[str, Tombstone](), list[str]()
    done = history.with_trailer(tombstones.PURGED, rev=f"{base}..{tip}" if base else tip)
    for one in reversed(done):
        ids = frozenset(block.removeprefix("^") for block in one.trailers.get(tombstones.PURGED, ()))
        known = tombstones.parse(history.read(one.id, tombstones.PATH))
        if strange := sorted(ids - known.keys()):
            what = f"a purge lists ^{strange[0]}, which has no tombstone"
            raise Conflict(what, where=f"{one.id[:10]} {tombstones.PATH}", hint=HINT)
        each.append(ids)
        forgotten |= {block: known[block] for block in ids}
        words += one.trailers.get(tombstones.WORDS, ())
    if words:
        forgotten[""] = Tombstone("", " ".join(words), "")
    return Purges(each, forgotten, patterns)


def counterparts(
    history: History, old: str, new: str, purged: Purges, *, at: str | None = None, to: str | None = None
) -> tuple[str, dict[str, str]]:
    """What a history was rewritten to: its newest revision that has a counterpart in the `new` history, and
    {old: new} of that and all before it. With `at` no other than this old revision, with `to` no other than
    this new one. Conflict names what the new history lacks, or the file that differs by more than was
    purged."""
    there, here = commit_stamps(history, new), commit_stamps(history, old)
    alike: dict[str, list[str]] = {}
    for sha, commit in there.items():
        alike.setdefault(commit.stamp, []).append(sha)
    wrong = ""
    for one in [at] if at else [sha for sha in here if sha not in there]:
        for other in [to] if to else alike.get(here[one].stamp, ()):
            found = _side_by_side(here, there, one, other)
            path = _differing(history, one, other, purged) if found else ""
            if found and not path:
                return one, found
            wrong = wrong or (f"{one[:10]} {path}" if path else "")
    if wrong:
        why = "the history was rewritten, and a file differs by more than what was purged"
        raise Conflict(why, where=wrong, hint=HINT)
    lost = history.show(at or old)
    what = "the history was rewritten, and no purge explains why it lacks a revision"
    raise Conflict(what, where=f"{lost.id[:10]} ({lost.subject[:60]})", hint=HINT)


def _side_by_side(
    here: Mapping[str, CommitStamp], there: Mapping[str, CommitStamp], old: str, new: str
) -> dict[str, str]:
    """{old: new} of two revisions and of all before them; empty where these are not the same revisions."""
    found: dict[str, str] = {}
    left = [(old, new)]
    while left:
        one, other = left.pop()
        if one == other or found.get(one) == other:
            continue
        was, now = here.get(one), there.get(other)
        if one in found or not was or not now or was.stamp != now.stamp:
            return {}
        if len(was.parents) != len(now.parents):
            return {}
        found[one] = other
        left += zip(was.parents, now.parents, strict=True)
    return found


def _differing(history: History, old: str, new: str, purged: Purges) -> str:
    """The first file that two revisions have otherwise by more than what was purged; '' for none."""
    was, now = history.differing(new, old), history.differing(old, new)
    read = iter(history.read_all([(blob, "") for path in was for _, blob in (was[path], now[path]) if blob]))
    data = {path: [next(read) if blob else None for _, blob in (was[path], now[path])] for path in was}
    for path, (before, after) in data.items():
        modes = {was[path][0], now[path][0]}
        # The same content elsewhere may have been taken for what has to be changed.
        paths = [path, *(name for name in data if data[name][0] == before), "memory/unknown.md"]
        plain = before is not None and after is not None and len(modes) == 1
        if not plain or not purged.account_for(before or b"", after or b"", paths):
            return path
    return ""


# -- purges ------------------------------------------------------------------------------------------------
# The purges of a bank, as its doors use them.


class HistoryPurges:
    """Purging one bank's history of what was forgotten; `door` names who does it."""

    def __init__(self, store: Store, door: str) -> None:
        self._store, self._door = store, door

    def plan(self, *ids: str, after: ForgetResult | None = None) -> PurgePlan:
        """What it takes to purge forgotten ids from the history, too: those of `after`, those named, or all.
        Changes nothing. Usage, NotFound, Conflict, StillThere."""
        if after is not None:
            return plan(self._store, [one.id for one in after.plan.removals], after.sought)
        return plan(self._store, [tombstone_id(block) or block for block in ids])

    def run(self, planned: PurgePlan, backup: Path) -> PurgeResult:
        """Rewrite the trail's history. All that it was goes into the bundle `backup`, outside of the bank;
        the purge counts as unfinished until its owner deletes that. CannotWrite, GitFailed, Usage."""
        return purge(self._store, planned, backup, door=self._door)

    def unfinished(self) -> Sequence[Unfinished]:
        """Purges that were cut short, or whose backup is there still."""
        return unfinished(self._store)
