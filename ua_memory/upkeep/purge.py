"""Purge: remove forgotten statements from the history as well."""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from pathlib import Path

from ua_memory.discovery import CORE_NAMES, LOGS
from ua_memory.errors import Conflict, NotFound, StillThere, Usage, checked, writing
from ua_memory.git import rewrite
from ua_memory.git.history import CommitStamp, History, commit_stamps
from ua_memory.knowledge import tombstones
from ua_memory.knowledge.statements import Statement
from ua_memory.markdown import document
from ua_memory.paths import is_memory_file
from ua_memory.records import Fact, Tombstone, written_id
from ua_memory.store import lock, swap
from ua_memory.store.store import Store
from ua_memory.text.wording import counted
from ua_memory.upkeep import traces
from ua_memory.upkeep.forget import ForgetPlanner, ForgetResult, ForgetTarget, tombstone_id
from ua_memory.upkeep.traces import MARK, Needle, TraceReport, make_needles

# -- purging -----------------------------------------------------------------------------------------------
# Purge: remove forgotten statements from the history as well. A backup lies outside the bank until its owner
# deletes it; so long the purge is not finished, and `status` says so.


RECORD = "purges.json"
WORK_FOLDER = "purge-work"
BACKUP_INSIDE = "a backup inside the bank would keep the forgotten text"
REWROTE_TRAILER = "Rewrote"
"""The trailer of a purge with `REF OLD NEW` for each ref that was rewritten."""


@dataclass(frozen=True, slots=True)
class PurgePlan:
    """What a purge would do: the ids to remove, the refs to rewrite, and `contents` as {blob id: new bytes}.

    `remotes` are remote-tracking branches that are deleted; the next fetch recreates them.
    """

    ids: tuple[str, ...]
    refs: tuple[rewrite.Ref, ...]
    contents: Mapping[str, bytes]
    needles: tuple[Needle, ...]
    own: bool
    remotes: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    """Ids whose text was not found in the history: purged earlier, or several lines long."""
    around: str = ""
    """An enclosing repository that has committed the bank's files: its owner has to rewrite it."""
    citing: tuple[str, ...] = ()
    """Files with a person's line that cites one of the ids without its text: they stay."""
    others: tuple[str, ...] = ()
    """Forgotten ids that stay in the history."""


@dataclass(frozen=True, slots=True)
class PurgeResult:
    """What a purge did: {ref: (old, new)}, the backup, the commit that records it, and the final search."""

    ids: tuple[str, ...]
    rewrote: Mapping[str, tuple[str, str]]
    backup: str
    revision: str | None
    proof: TraceReport

    @staticmethod
    def short(name: str) -> str:
        """The short name of a ref."""
        return rewrite.Ref(name, "").short


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A purge whose backup still exists; not `done` if it was interrupted."""

    backup: str
    on: str
    done: bool
    sync: bool = False
    """Another machine purged, and this one follows it with its next sync."""


def _enclosing_repository(store: Store) -> str:
    """The repository around the bank, if it has committed a file of the bank; else ''."""
    theirs = store.history.around()
    if theirs is None:
        return ""
    here = store.bank.root.relative_to(theirs.root)
    paths = [(here / name).as_posix() for name in (*CORE_NAMES, LOGS)]
    return str(theirs.root) if theirs.run("rev-list", "--all", "-1", "--", *paths) else ""


def _still_in_file(place: str) -> StillThere:
    hint = f"ua-memory forget {place}" if ":" in place else f"remove it from {place} and commit that"
    return StillThere("the files still have it", where=place, hint=hint)


def forgotten_needles(
    history: History, paths: Mapping[str, str], forgotten: Mapping[str, Tombstone], now: Mapping[str, bytes],
    patterns: Mapping[str, str], more: Sequence[Needle] = (),
) -> tuple[tuple[Needle, ...], set[str]]:  # fmt: skip
    """Needles for all texts that these ids had in any revision, after `more`; and the ids without any text.

    `paths` are {blob id: path}, `now` the present files. StillThere if one of them has a fact's text; derived
    texts that one has are left out. A line that had no id when it was forgotten is found by its hash.
    """
    marks = [f"^{written_id(block)}".encode() for block in forgotten if block]
    facts: dict[str, None] = {}
    derived: dict[str, None] = {}
    met: set[str] = set()
    lines: set[bytes] = set()
    for name, kind, data in rewrite.all_objects(history):
        path = paths.get(name, "")
        if kind == "blob" and (not path or is_memory_file(path)) and path != tombstones.PATH:
            lines.update(data.split(b"\n"))
            if any(mark in data for mark in marks):
                for record in document.parse(data, path or "memory/unknown.md").statements:
                    if _tombstone_ids(record) & forgotten.keys():
                        # An unreachable blob has no path: it counts as derived.
                        (facts if path and isinstance(record, Fact) else derived)[record.text] = None
                        met |= _tombstone_ids(record) & forgotten.keys()
    lost = {block: stone for block, stone in forgotten.items() if block not in met}
    facts |= dict.fromkeys(forgotten_texts(lines, tombstones.Tombstones(lost, patterns))) if lost else {}
    if lost and facts:
        found = [tombstones.Tombstones({block: stone}, patterns) for block, stone in lost.items()]
        met |= {next(iter(each.by_id)) for each in found if any(map(each.has_text, facts))}
    sure = [*more, *(needle for needle in make_needles(facts, patterns) if not needle.short)]
    for trace in traces.search_files(now, sure).found:
        raise _still_in_file(trace.where)
    rest = make_needles((text for text in derived if text not in facts), patterns)
    sure += [n for n in rest if not n.short and not any(map(n.is_in, now.values()))]
    return tuple(dict.fromkeys(sure)), forgotten.keys() - met


def changed_blobs(
    history: History, paths: Mapping[str, str], ids: Collection[str], sought: Sequence[Needle],
    patterns: Mapping[str, str],
) -> Iterator[tuple[str, bytes, bytes]]:  # fmt: skip
    """(blob id, old content, new content) of each blob with one of these ids or texts; `paths` are
    {blob id: path}."""
    for name, kind, data in rewrite.all_objects(history):
        if kind == "blob" and name in paths:
            new = remove_from_blob(data, paths[name], ids, sought, patterns)
            if new != data:
                yield name, data, new


def _tombstone_ids(record: Statement) -> set[str]:
    """The ids under which a statement may have a tombstone."""
    return {name for name in (record.ref, record.id) if name}


def forgotten_texts(lines: Iterable[bytes], forgotten: tombstones.Tombstones) -> Iterator[str]:
    """The texts of the forgotten ones among these lines, parsed as list items where they are."""
    for line in lines:
        text = line.decode("utf-8", "replace").strip()
        items = document.parse(line, "memory/unknown.md").of(Fact) if text[:1] in "-*+0123456789" else ()
        for form in dict.fromkeys([*(fact.text for fact in items), text]):
            if form and forgotten.has_text(form):
                yield form
                break


def remove_from_blob(
    data: bytes, path: str, ids: Collection[str], sought: Sequence[Needle], patterns: Mapping[str, str]
) -> bytes:
    """An earlier content of a file without some ids, without what cited only them, and with texts masked."""
    marks = [f"^{written_id(block)}".encode() for block in ids]
    if path != tombstones.PATH and is_memory_file(path) and any(mark in data for mark in marks):
        said = document.parse(data, path).statements
        targets = [ForgetTarget(r.place, r.text, r) for r in said if not _tombstone_ids(r).isdisjoint(ids)]
        past = ForgetPlanner(
            {path: data}, targets, lambda *_: True, date.min, take=True, patterns=patterns, ids=ids,
            strict=False,
        )  # fmt: skip
        changed = past.plan().files.get(path)
        data = data if changed is None else changed[1] or b""
    if any(needle.is_in(data) for needle in sought):
        for needle in sought:
            data = needle.pattern.sub(MARK.encode(), data)
    return data


def require_outside(
    store: Store, file: Path, what: str = BACKUP_INSIDE, hint: str = "give a folder outside the bank"
) -> None:
    """Raise Usage for a file within the bank."""
    for inner in (store.bank.root, store.bank.state, store.bank.git_dir):
        if file.resolve().is_relative_to(inner.resolve()):
            raise Usage(what, where=str(file), hint=hint)


def open_purges(store: Store) -> list[Unfinished]:
    """The purges that were interrupted, or whose backup still exists."""
    return [one for one in _read_record(store) if not one.done or Path(one.backup).exists()]


def _read_record(store: Store) -> list[Unfinished]:
    try:
        return [Unfinished(**row) for row in json.loads((store.bank.state / RECORD).read_bytes())]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError):
        return [Unfinished(str(store.bank.state / RECORD), "", False)]


def record_purge(store: Store, one: Unfinished) -> None:
    """Add a purge to the record, or replace its entry."""
    file = store.bank.state / RECORD
    rest = [each for each in open_purges(store) if each.backup != one.backup and Path(each.backup).exists()]
    # A complete purge has also done what an interrupted one had left.
    rest = [replace(each, done=each.done or one.done) for each in rest]
    rows = [asdict(each) for each in (*rest, one)]
    with writing(file):
        swap.replace_file(file, json.dumps(rows, indent=1).encode(), file.with_suffix(".fresh"))


def _merge_backups(store: Store, backup: Path) -> Path:
    """The backup of a purge that was killed after its rewrite, if one was. Only that has the old history, so
    `backup`, made by the purge that finishes it, is deleted."""
    for one in open_purges(store):
        ours = one.on and not one.done and not one.sync  # no day: the record cannot be read
        if ours and one.backup != str(backup) and Path(one.backup).is_file():
            backup.unlink()
            return Path(one.backup)
    return backup


# -- purges of another machine ---------------------------------------------------------------------------
# Checking that a rewritten history differs from the old one by recorded purges only.
#
# A purge's commit has the removed ids (`Purged:`) and the hashes of all removed texts (`Purged-Words:`);
# `memory/forgotten.md` has a tombstone for each id. A rewrite keeps the order of commits, their authors and
# times, so each old commit has a counterpart in the new history.


_MARK_BYTES = MARK.encode()
REWRITTEN_HINT = "nothing was changed here; see docs/sync.md, A rewritten history"


@dataclass(frozen=True)
class Purges:
    """The purges that one history has and another lacks."""

    each: Sequence[frozenset[str]] = ()
    """The ids of each purge, oldest first."""
    tombstones: Mapping[str, Tombstone] = field(default_factory=dict)
    """{id: tombstone}; under '' one with the hashes of all removed texts."""
    patterns: Mapping[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.each)

    @property
    def ids(self) -> frozenset[str]:
        """All ids that were purged."""
        return frozenset[str]().union(*self.each)

    def explain(self, old: bytes, new: bytes, paths: Collection[str]) -> bool:
        """Whether the purges alone turn `old`, at one of these paths, into `new`."""
        for path in paths:
            data = old
            for ids in self.each:
                data = remove_from_blob(data, path, ids, (), self.patterns)
            if _is_marked(data, new):
                return True
        return False


def _is_marked(old: bytes, new: bytes) -> bool:
    """Whether `new` is `old` with `[forgotten]` in place of some parts."""
    first, *rest = new.split(_MARK_BYTES)
    if not rest:
        return old == new
    at = len(first) if old.startswith(first) else -1
    for part in rest[:-1]:
        found = old.find(part, at) if at >= 0 else -1
        at = found + len(part) if found >= 0 else -1
    return 0 <= at <= len(old) - len(rest[-1]) and old.endswith(rest[-1])


def purges_since(history: History, tip: str, base: str | None, patterns: Mapping[str, str]) -> Purges:
    """The purges in `base..tip`. Conflict if one names an id that has no tombstone."""
    each, forgotten, words = list[frozenset[str]](), dict[str, Tombstone](), list[str]()
    done = history.with_trailer(tombstones.PURGED, rev=f"{base}..{tip}" if base else tip)
    for one in reversed(done):
        ids = frozenset(block.removeprefix("^") for block in one.trailers.get(tombstones.PURGED, ()))
        known = tombstones.parse(history.read(one.id, tombstones.PATH))
        if strange := sorted(ids - known.keys()):
            what = f"a purge lists ^{strange[0]}, which has no tombstone"
            raise Conflict(what, where=f"{one.id[:10]} {tombstones.PATH}", hint=REWRITTEN_HINT)
        each.append(ids)
        forgotten |= {block: known[block] for block in ids}
        words += one.trailers.get(tombstones.PURGED_WORDS, ())
    if words:
        forgotten[""] = Tombstone("", " ".join(words), "")
    return Purges(each, forgotten, patterns)


def match_rewritten(
    history: History, old: str, new: str, purged: Purges, *, at: str | None = None, to: str | None = None
) -> tuple[str, dict[str, str]]:
    """The newest commit of `old` that has a counterpart in `new`, and {old: new} for it and its ancestors.

    `at` and `to` restrict the search to this old or this new commit. Conflict names a commit that the new
    history lacks, or a file that differs by more than the purges.
    """
    there, here = commit_stamps(history, new), commit_stamps(history, old)
    alike: dict[str, list[str]] = {}
    for sha, commit in there.items():
        alike.setdefault(commit.stamp, []).append(sha)
    wrong = ""
    for one in [at] if at else [sha for sha in here if sha not in there]:
        for other in [to] if to else alike.get(here[one].stamp, ()):
            found = _match_ancestors(here, there, one, other)
            path = _unexplained_change(history, one, other, purged) if found else ""
            if found and not path:
                return one, found
            wrong = wrong or (f"{one[:10]} {path}" if path else "")
    if wrong:
        why = "the history was rewritten, and a file differs by more than what was purged"
        raise Conflict(why, where=wrong, hint=REWRITTEN_HINT)
    lost = history.show(at or old)
    what = "the history was rewritten, and no purge explains why it lacks a revision"
    raise Conflict(what, where=f"{lost.id[:10]} ({lost.subject[:60]})", hint=REWRITTEN_HINT)


def _match_ancestors(
    here: Mapping[str, CommitStamp], there: Mapping[str, CommitStamp], old: str, new: str
) -> dict[str, str]:
    """{old: new} for two commits and all their ancestors; empty unless all of them match."""
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


def _unexplained_change(history: History, old: str, new: str, purged: Purges) -> str:
    """The first file that differs between two commits by more than the purges; '' for none."""
    was, now = history.differing(new, old), history.differing(old, new)
    read = iter(history.read_all([(blob, "") for path in was for _, blob in (was[path], now[path]) if blob]))
    data = {path: [next(read) if blob else None for _, blob in (was[path], now[path])] for path in was}
    for path, (before, after) in data.items():
        modes = {was[path][0], now[path][0]}
        # A blob that several files share was changed under the rules of one of their paths.
        paths = [path, *(name for name in data if data[name][0] == before), "memory/unknown.md"]
        plain = before is not None and after is not None and len(modes) == 1
        if not plain or not purged.explain(before or b"", after or b"", paths):
            return path
    return ""


# -- interface ---------------------------------------------------------------------------------------------


@checked
class HistoryPurges:
    """`memory.purges`: removing forgotten statements from one bank's history."""

    def __init__(self, store: Store, door: str) -> None:
        self._store, self._door = store, door

    def plan(self, *ids: str, after: ForgetResult | None = None) -> PurgePlan:
        """Plan a purge of these forgotten ids, of those that `after` removed, or of all. Changes nothing.
        Usage, NotFound, Conflict, StillThere."""
        store, known = self._store, tombstones.read(self._store)
        sought = after.needles if after else ()
        removed = [one.id for one in after.plan.removals] if after else []
        named = removed if after else [tombstone_id(one) or one for one in ids]
        chosen = tuple(block.removeprefix("^") for block in named) or tuple(known.by_id)
        if not chosen:
            raise NotFound("nothing to purge: nothing was forgotten", hint="ua-memory forget ^id --purge")
        if strange := next((block for block in chosen if block not in known), None):
            hint = f"ua-memory forget ^{strange} --purge"
            raise Usage("this was not forgotten", where=f"^{strange}", hint=hint)
        store.require_settled()
        rewrite.require_rewritable(store.history)
        paths = rewrite.blob_paths(store.history)
        forgotten = {block: known.by_id[block] for block in chosen}
        now = {file.path: store.accepted_bytes(file.path) for file in store.files()}
        sure, unknown = forgotten_needles(store.history, paths, forgotten, now, store.config.redact, sought)
        here = set(store.history.blobs().values())
        contents: dict[str, bytes] = {}
        citing: set[str] = set()
        for name, data, new in changed_blobs(store.history, paths, chosen, sure, store.config.redact):
            if name not in here:
                contents[name] = new
            elif any(needle.is_in(data) for needle in sure):  # another file of the owner's repository
                raise _still_in_file(paths[name])
            else:
                citing.add(paths[name])
        theirs = rewrite.refs(store.history, ["refs/remotes/*"])
        return PurgePlan(
            chosen, tuple(rewrite.refs(store.history)), contents, sure, store.bank.own,
            tuple(ref.name.removeprefix("refs/remotes/") for ref in theirs),
            tuple(sorted(unknown if not sought else ())), _enclosing_repository(store), tuple(sorted(citing)),
            tuple(sorted(known.by_id.keys() - {*chosen} - tombstones.purged(store))),
        )  # fmt: skip

    def run(self, planned: PurgePlan, backup: Path) -> PurgeResult:
        """Rewrite the history, after writing all of it into the bundle `backup`, outside the bank.

        The purge counts as unfinished until its owner deletes the backup. CannotWrite, GitFailed, Usage.
        """
        store = self._store
        require_outside(store, backup)
        work = store.bank.state / WORK_FOLDER
        with store.locked(), writing(work):
            rewrite.remove_keep_files(store.history)
            shutil.rmtree(work, ignore_errors=True)
            lock.remove_work_folder(store.bank.state)
            rewrite.back_up(store.history, backup)
            record_purge(store, Unfinished(str(backup), f"{store.now():%Y-%m-%d}", False))
            patterns = [needle.pattern for needle in planned.needles]
            remote = store.history.remote()
            agreed = store.history.agreed(remote[0]) if remote else None
            notes = [rewrite.Ref(store.history.agreement(remote[0]), agreed)] if remote and agreed else []
            rewrote = rewrite.rewrite_history(store.history, backup, work, planned.contents, patterns, notes)
            rewrite.delete_unreachable(store.history, work)
            backup = _merge_backups(store, backup) if not rewrote else backup
        with store.revision("purge", door=self._door) as draft:
            draft.even_if_empty = True
            number = len(planned.ids)
            draft.subject = f"purge: {counted(number, 'forgotten statement')} from the history"
            draft.trailers[tombstones.PURGED] = [f"^{block}" for block in planned.ids]
            draft.trailers[REWROTE_TRAILER] = [f"{name} {old} {new}" for name, (old, new) in rewrote.items()]
            words = [needle.text for needle in planned.needles]
            draft.trailers[tombstones.PURGED_WORDS] = tombstones.hash_rows(words, tombstones.read(store).salt)
        proof = traces.search_everything(store, planned.needles, objects=True)
        record_purge(store, Unfinished(str(backup), f"{store.now():%Y-%m-%d}", proof.is_clean))
        return PurgeResult(planned.ids, rewrote, str(backup), draft.result.revision, proof)

    def unfinished(self) -> Sequence[Unfinished]:
        """Purges that were interrupted, or whose backup still exists."""
        return open_purges(self._store)
