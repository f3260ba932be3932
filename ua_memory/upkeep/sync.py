"""`sync` and `clone`: fetch, merge and push; and follow a purge that was made on another machine."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ua_memory.discovery import CORE_NAMES, LOGS, SETTINGS, is_blank, is_dated
from ua_memory.errors import (
    Busy,
    Conflict,
    GitFailed,
    NoBank,
    NotFound,
    StillThere,
    UaMemoryError,
    Usage,
    writing,
)
from ua_memory.git import process, rewrite
from ua_memory.git.history import History
from ua_memory.git.remotes import REMOTE, printable
from ua_memory.knowledge import statements, tombstones
from ua_memory.knowledge.sessions import SessionFiles
from ua_memory.knowledge.tombstones import PATH, PURGED, Tombstones, parse
from ua_memory.markdown import document
from ua_memory.records import Tombstone, written_id
from ua_memory.store.lock import locked
from ua_memory.store.store import Store
from ua_memory.upkeep import purge, traces
from ua_memory.upkeep.merge import (
    JoinResult,
    Merge,
    join_history,
    parse_settings,
    prepare,
    require_mergeable,
    require_pushable,
)
from ua_memory.upkeep.traces import RECORD_PREFIX, Cleanup, Needle, TraceReport, make_needles, needles_not_in

if TYPE_CHECKING:
    from ua_memory.index.sync import Index


# -- cloning -----------------------------------------------------------------------------------------------
# The clone is made in a folder beside the target and renamed at the end: if killed, it starts again.


BRANCHES = 20
"""So many branches are searched for a bank, the default branch first."""
PART_SUFFIX = ".ua-memory-part"
AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class CloneResult:
    """What was cloned. `notes` name the files that could not be checked out."""

    address: str
    branch: str
    revisions: int
    files: int
    notes: tuple[str, ...] = ()


def clone(root: Path, address: str) -> CloneResult | None:
    """Clone a remote's bank into the folder `root`; None if that was done before.

    Usage if the folder is not empty, NoBank if the remote has no bank, Conflict for a bank that is kept
    beside code, GitFailed.
    """
    History.address(address)
    if _is_clone(root, address):
        return None
    with writing(root, "name another folder"):
        if root.is_dir() and any(root.iterdir()):
            hint = "choose an empty folder; to connect an existing bank: ua-memory sync --remote"
            raise Usage("the folder is not empty", where=str(root), hint=hint)
        root.parent.mkdir(parents=True, exist_ok=True)
        part = root.with_name(f".{root.name}{PART_SUFFIX}")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        try:
            done = _clone_into(History(part / ".git", part, own=True), address)
            part.replace(root)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return done


def _is_clone(root: Path, address: str) -> bool:
    """Whether an earlier run has finished."""
    history = History(root / ".git", root, own=True)
    try:
        return history.exists and history.remote() == (REMOTE, address)
    except UaMemoryError:
        return False


def _clone_into(history: History, address: str) -> CloneResult:
    history.create()
    branch, sha = _find_branch(history, address)
    known = parse_settings(history.read(sha, SETTINGS)) or {}
    if known.get("trail") == "beside":
        hint = "in a checkout of that code: ua-memory init, then ua-memory sync --remote ADDRESS"
        raise Conflict(
            "this bank has its history separate from a code repository", where=printable(address), hint=hint
        )
    there = history.differing(None, sha)
    require_mergeable(history, sha, there)
    history.run("symbolic-ref", "HEAD", f"refs/heads/{branch}")
    history.run("update-ref", f"refs/heads/{branch}", sha)
    history.set_remote(address)
    history.run("config", f"branch.{branch}.remote", REMOTE)
    history.run("config", f"branch.{branch}.merge", f"refs/heads/{branch}")
    history.run("update-ref", f"refs/remotes/{REMOTE}/{branch}", sha)
    history.agree(REMOTE, sha)
    plain = {path: entry for path, entry in there.items() if entry[0].startswith("100")}
    _check_out(history, plain)
    odd = sorted(there.keys() - plain.keys())
    notes = tuple(f"{path} is not a regular file, and was not checked out" for path in odd)
    return CloneResult(printable(address), branch, history.number(None, sha), len(plain), notes)


def _find_branch(history: History, address: str) -> tuple[str, str]:
    """The first branch with a bank, and its newest commit, which is fetched. NoBank."""
    default, heads = history.heads(address)
    if not heads:
        hint = "on the machine that has the bank: ua-memory sync --remote ADDRESS"
        raise NoBank("the remote is empty", where=printable(address), hint=hint)
    order = dict.fromkeys((default, "main", "master", *heads))
    for branch in [name for name in order if name in heads][:BRANCHES]:
        sha = history.fetch_objects(address, f"refs/heads/{branch}")
        if any(map(_marks_bank, history.blobs(rev=sha))):
            return branch, sha
    what = f"no branch of the remote has a memory bank ({', '.join(list(heads)[:5])})"
    hint = "create one with ua-memory init, and push it to its own remote with ua-memory sync --remote"
    raise NoBank(what, where=printable(address), hint=hint)


def _marks_bank(path: str) -> bool:
    """Whether a file makes its folder a bank, as in `paths.is_bank`."""
    folder, _, name = path.rpartition("/")
    return path in (SETTINGS, *CORE_NAMES) or bool(folder == LOGS and name.endswith(".md") and is_dated(name))


def _check_out(history: History, files: dict[str, tuple[str, str]]) -> None:
    """Write {path: (mode, blob id)} to disk and update git's index. No git filter is run."""
    paths = sorted(files)
    for start in range(0, len(paths), AT_ONCE):
        some = paths[start : start + AT_ONCE]
        for path, data in zip(some, history.read_all([(files[p][1], "") for p in some]), strict=True):
            if {part.casefold() for part in path.split("/")} & {"..", ".", ".git", ""}:
                raise Conflict("not a file name", where=repr(path)[:200])
            file = history.root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data or b"")
            if files[path][0] == "100755":
                file.chmod(file.stat().st_mode | 0o100)
    history.run("read-tree", "HEAD")
    history.run("update-index", "-q", "--refresh", ok=(0, 1))


# -- joining ------------------------------------------------------------------------------------------------
# Merging another history, and removing what it has forgotten from pending and derived data, as `forget` does.
# A person's prose with a forgotten text stays and is reported.


@dataclass(frozen=True, slots=True)
class RemoteTombstones:
    """The ids that were forgotten on another machine, now here too, and the search for their texts."""

    ids: tuple[str, ...]
    proof: TraceReport


@dataclass(frozen=True, slots=True)
class _JoinPreview:
    """A dry run of joining another history: the ids that only the other has forgotten, the texts to remove
    with them, and the files afterwards."""

    joined: JoinResult
    forgotten: tuple[str, ...] = ()
    needles: tuple[Needle, ...] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def ids(self) -> set[str]:
        """All ids that are removed."""
        return {*self.forgotten, *self.joined.forgotten_plans.ids(self.files)}


def join_and_clean(
    store: Store, other: str, index: Callable[[], Index], *, door: str, subject: str, dry_run: bool = False
) -> tuple[JoinResult, RemoteTombstones | None]:
    """Join another history, and remove what it has forgotten from pending and derived data.

    If killed, the next sync or `forget` finishes it. With `dry_run` nothing is written, and the search covers
    the merged files.
    """
    found = _preview_join(store, other, always=dry_run)
    if dry_run:
        proof = traces.search_files(found.files, found.needles)
        return found.joined, RemoteTombstones(found.forgotten, proof) if found.needles else None
    if not found.needles:
        done = join_history(store, other, door=door, subject=subject)
        if found.forgotten:  # no file here has it, but a session may
            known = tombstones.read(store)
            SessionFiles(store).forget(lambda turn: known.has_sentence_of(turn.text))
        return done, None
    clearing = Cleanup(store, index)
    with clearing.with_record(found.forgotten, found.ids, found.needles) as begun:
        done = join_history(store, other, door=door, subject=subject)
        return done, RemoteTombstones(found.forgotten, clearing.clean_up(begun, found.needles, found.ids)[1])


def _preview_join(store: Store, other: str, *, base: str | None = None, always: bool = True) -> _JoinPreview:
    """Compute a join without writing; unless `always`, only if the other has forgotten something.

    `base` overrides the merge base.
    """
    history = store.history
    head = history.head()
    base = base or (history.fork(head, other) if head else None)
    known = {block for rev in (head, base) if rev for block in parse(history.read(rev, PATH))}
    new = {name: stone for name, stone in parse(history.read(other, PATH)).items() if name not in known}
    if not new and not always:
        return _JoinPreview(JoinResult(Merge({})))
    seen = join_history(store, other, door="", subject="", dry_run=True, base=base)
    after = {**dict(statements.texts(store)), **seen.merge.files}
    files = {path: data for path, data in after.items() if data is not None}
    sought = _texts_to_remove(store, base, new) if new else ()
    derived = seen.forgotten_plans.ours.derived_texts
    sought += needles_not_in(derived, sought, files.values(), store.config.redact)
    return _JoinPreview(seen, tuple(sorted(new)), sought, files)


def _texts_to_remove(store: Store, base: str | None, new: dict[str, Tombstone]) -> tuple[Needle, ...]:
    """The texts of statements that these tombstones forbid, in the present files and in the merge base."""
    history, forgotten = store.history, Tombstones(new, store.config.redact)
    here = list(statements.texts(store))
    before = [path for path, data in here if any(f"^{written_id(block)}".encode() in data for block in new)]
    old = zip(before, history.read_all([(base, path) for path in before]), strict=True) if base else ()
    files = (document.parse(data, path) for path, data in (*here, *old) if data)
    said = (record.text for file in files for record in file.statements if forgotten.matches(record))
    return make_needles(dict.fromkeys(said), store.config.redact)


# -- run -----------------------------------------------------------------------------------------------
# Fetch, merge, push, and again if somebody else pushed first. Nothing is force-pushed, with one exception,
# which is reported: the history after a purge replaces the one before it.
#
# Network calls are made without holding the bank's lock; only the merge is a revision.


ATTEMPTS = 5
WORK_FOLDER = "sync-work"
LOCK_REASON = "lock"
"""Occurs in git's message if a push failed because of a lock file, which a killed git may have left."""


@dataclass(frozen=True, slots=True)
class FollowedPurge:
    """A purge of another machine that was repeated here.

    `old` and `new` are the branch's commits, `backup` is the bundle with the old history, `proof` the final
    search; `holding` are refs that still contain the old history.
    """

    ids: tuple[str, ...]
    old: str
    new: str = ""
    backup: str = ""
    proof: TraceReport = field(default_factory=TraceReport)
    holding: tuple[str, ...] = ()


@dataclass(slots=True)
class SyncResult:
    """What a sync did: the merge, how many revisions were received and sent, and the newest one.

    `revision` is None after a dry run, or while a commit is pending.
    """

    remote: str
    address: str
    trial: bool = False
    merge: Merge = field(default_factory=lambda: Merge({}))
    received: int = 0
    sent: int = 0
    revision: str | None = None
    notes: list[str] = field(default_factory=list)
    forced: tuple[str, str] | None = None
    """(old, new) commit of the remote's branch, if it was force-pushed after a purge here."""
    followed: FollowedPurge | None = None
    """A purge of another machine that was repeated here."""
    forgotten: RemoteTombstones | None = None
    """What another machine has forgotten, now forgotten here too."""


def sync(
    store: Store, address: str | None = None, *, door: str, index: Callable[[], Index], trial: bool = False,
    backup: Path | None = None,
) -> SyncResult:  # fmt: skip
    """Fetch, merge and push.

    `address` sets the remote, once. With `trial` only fetched objects are written. `backup` is a file outside
    the bank for the old history, needed if another machine has purged it. NotFound without a remote, Conflict
    for a history of another bank, Busy while another sync runs, GitFailed if the remote fails or refuses.
    """
    if is_blank(str(store.bank.root / SETTINGS)):  # elsewhere its deletion would be that of the bank
        hint = "ua-memory doctor" if store.bank.own else "ua-memory init ."
        raise Conflict("is gone", where=SETTINGS, hint=hint)
    store.make_state()
    busy = "another sync is running, and may wait for the network"
    with locked(store.bank.state / "sync.lock", store.config.lock_seconds, busy):
        name, url, first = _remote(store, address)
        run = _SyncRun(store, name, url, first, door, trial, index, backup)
        try:
            done = run.run()
        except BaseException:
            # The remote's history is merged already, so it is this bank's remote, whatever failed after that.
            if first and not trial and store.history.agreed(name):
                store.history.set_remote(url)
            raise
        if first and not trial:
            store.history.set_remote(url)
        return done


def _remote(store: Store, address: str | None) -> tuple[str, str, bool]:
    """(name, address, whether it is new). A new address is only saved once it turns out to be the bank's."""
    store.require_settled()
    history = store.history
    if not history.exists:
        store.adopt()
    there = history.remote()
    if address and there and address not in (there[1], str(Path(store.bank.root, there[1]).resolve())):
        hint = f"ua-memory git remote set-url {there[0]} {shlex.quote(printable(address))}"
        raise Usage("this bank already has a remote", where=printable(there[1]), hint=hint)
    if address and not there:
        return REMOTE, history.address(address), True
    if not there:
        where = str(store.bank.root)  # maybe the default bank
        raise NotFound("this bank has no remote", where=where, hint="ua-memory sync --remote ADDRESS")
    return *there, False


@dataclass
class _SyncRun:
    """The state of one sync."""

    store: Store
    name: str
    url: str
    first: bool
    door: str
    trial: bool
    index: Callable[[], Index]
    backup: Path | None
    """The file for the old history, if there is a purge to follow."""

    def __post_init__(self) -> None:
        self.done = SyncResult(self.name, printable(self.url), self.trial)
        self.subject = f"sync: bring in {self.name}"

    def run(self) -> SyncResult:
        store, history = self.store, self.store.history
        if any(not one.done and not one.sync for one in purge.open_purges(store)):
            where = str(store.bank.root)
            raise Conflict("a purge was interrupted here", where=where, hint="ua-memory forget --purge")
        self.done.notes += prepare(store, dry_run=self.trial)
        if not self.trial and any(store.bank.pending.glob(f"{RECORD_PREFIX}*.json")):
            Cleanup(store, self.index).finish()
        if not self.trial:
            self._remove_locks()
        for _ in range(ATTEMPTS):
            if not (why := self._exchange()):
                break
            if LOCK_REASON in why:
                self._remove_locks(self.url)
        else:
            raise self._push_error(why)
        if not self.trial:
            self._finish_purges()
            if self.first and (said := history.set_head(self.url)):
                self.done.notes.append(said)
        self.done.revision = None if self.trial else history.head()
        return self.done

    def _remove_locks(self, address: str = "") -> None:
        """Remove lock files that a killed git left here, or in a remote that is a local folder."""
        gone = process.remove_locks(self.store.history.locks(address))
        self.done.notes += [f"removed a lock left by an interrupted git: {file}" for file in gone]

    def _push_error(self, why: str) -> UaMemoryError:
        """The error for git's reason `why` the last push failed."""
        there = printable(self.url)
        if LOCK_REASON not in why:
            return Busy("other machines keep pushing", where=there, hint="try again")
        found = re.search(r"'([^']*\.lock)'", why)
        name = found[1] if found else f"{self.store.history.ref()}.lock"
        if held := [lock for lock in self.store.history.locks(self.url) if lock.held]:
            hint = f"try again ({held[0].held}); ua-memory sync removes it once no git can be running there"
        else:
            hint = f"on the machine of the remote, if no git is running there: rm {shlex.quote(name)}"
        return Busy(f"the remote's branch is locked: {why}", where=there, hint=hint)

    def _exchange(self) -> str:
        """Fetch, merge and push once. Returns '', or git's reason why the push failed and may be retried."""
        history, lease = self.store.history, ""
        theirs = history.offered(self.url)
        if theirs and self._purged_here(theirs):
            lease = self._carry_over()
            theirs = lease or theirs
        if not lease and theirs and (not history.holds(theirs) or _is_rewritten(history, self.name, theirs)):
            with history.fetched(self.url, name=self.name) as other:
                followed = _is_rewritten(history, self.name, other)
                done = self._follow_purge(other) if followed else self._join(other)
                if not self.trial and not followed:
                    history.agree(self.name, other)
            self._add_result(done)
        head = history.head()
        if head == theirs and head and not self.trial and history.agreed(self.name) != head:
            history.agree(self.name, head)
        if head is None or head == theirs:
            return ""
        known = theirs if theirs and history.has(theirs) else None
        require_pushable(history, known, head)
        new = history.number(known, head)
        if self.trial:
            self.done.sent = self.done.sent if lease else new
            self.done.forced = (lease, head) if lease else None
            return ""
        if why := history.push(self.name, head, to=self.url if self.first else "", instead=lease):
            self.done.sent = 0
            return why
        self.done.sent += new
        self.done.forced = (lease, head) if lease else self.done.forced
        return ""

    def _add_result(self, joined: JoinResult) -> None:
        done, merge = self.done, joined.merge
        done.received += joined.revisions
        known = merge if merge.files or not done.merge.files else done.merge
        done.merge = replace(known, dropped=(*done.merge.dropped, *merge.dropped))
        done.notes += [*joined.notes, *(joined.result.notes if joined.result else ())]

    def _join(self, other: str) -> JoinResult:
        own = {"door": self.door, "subject": self.subject}
        done, newly_forgotten = join_and_clean(self.store, other, self.index, **own, dry_run=self.trial)
        self.done.forgotten = newly_forgotten or self.done.forgotten
        return done

    # -- purges ------------------------------------------------------------------------------------------
    # A rewritten history is verified first: up to the last commit that both agreed on, it may differ from
    # ours only by what the purge's records name; else it is refused before anything is changed. Then both are
    # merged as usual, and our own commits are rebased onto it. The old history is saved in a bundle.

    def _follow_purge(self, other: str) -> JoinResult:
        """Join a history that was rewritten by a purge, and remove what was purged from this one.

        Conflict if it lacks anything else, StillThere if a person's lines here have a purged text; then
        nothing is changed.
        """
        history, redact = self.store.history, self.store.config.redact
        head, agreed = str(history.head()), history.agreed(self.name)
        history.require_whole()
        purged = purge.purges_since(history, other, agreed, redact)
        if not purged:
            lost = history.run("rev-list", "-1", agreed or head, f"^{other}").decode()
            what = "the remote's history was rewritten, but not by a purge"
            there = self.done.address
            again = f"ua-memory git remote remove {self.name}; ua-memory sync --remote {shlex.quote(there)}"
            hint = f"if it was an accident, this merges both again: {again}"
            raise Conflict(what, where=f"{there}: it lacks {lost[:10]}", hint=hint)
        base, parents = purge.match_rewritten(history, agreed or head, other, purged, at=agreed)
        preview = _preview_join(self.store, other, base=base)
        sought = self._purged_texts(purged, [head, other], preview.files)
        ids = tuple(sorted(purged.ids))
        if self.trial:
            self.done.followed = FollowedPurge(ids, head)
            return preview.joined
        backup = self._back_up()
        clearing = Cleanup(self.store, self.index)
        everything, gone = tuple(dict.fromkeys((*sought, *preview.needles))), {*ids, *preview.ids}
        with clearing.with_record(ids, gone, everything) as begun:
            done = join_history(self.store, other, door=self.door, subject=self.subject, base=base)
            self.store.require_settled()  # a commit that is not joined yet would be lost
            new = self._move_branch(other, base, parents, purged, sought)
            _, proof = clearing.clean_up(begun, everything, gone, objects=True)
        self._record_purge(backup, proof.is_clean)
        # The commits with the dropped lines exist only in the backup now.
        dropped = (replace(d, revision=str(backup)) if d.side == "here" else d for d in done.merge.dropped)
        named = [] if proof.is_clean else rewrite.refs(history, [*rewrite.REWRITTEN, "refs/stash"])
        holding = tuple(ref.short for ref in named if ref.name != history.ref())
        self.done.followed = FollowedPurge(ids, head, new, str(backup), proof, holding)
        return replace(done, merge=replace(done.merge, dropped=tuple(dropped)))

    def _purged_texts(
        self, purged: purge.Purges, revs: list[str], files: Mapping[str, bytes]
    ) -> tuple[Needle, ...]:
        """All texts that the purged ids ever had here. StillThere if the merged files have one."""
        history, redact = self.store.history, self.store.config.redact
        try:
            paths = rewrite.blob_paths(history, revs)
            return purge.forgotten_needles(history, paths, purged.tombstones, files, redact)[0]
        except StillThere as error:
            what = "it was purged on another machine, but is still in a file here"
            hint = f"ua-memory forget {error.where}, or take it out of the file; then sync"
            raise StillThere(what, where=error.where, hint=hint) from error

    def _back_up(self) -> Path:
        store, backup = self.store, self.backup
        if backup is None:
            what = "another machine purged its history; the old history here needs a backup first"
            hint = "give a file outside the bank: sync(backup=…)"
            raise Conflict(what, where=str(store.bank.root), hint=hint)
        purge.require_outside(store, backup)
        store.require_settled()
        with store.locked():
            rewrite.remove_keep_files(store.history)
        rewrite.back_up(store.history, backup)
        self._record_purge(backup, False)
        return backup

    def _record_purge(self, backup: Path, done: bool) -> None:
        """Record how far following a purge has come."""
        one = purge.Unfinished(str(backup), f"{self.store.now():%Y-%m-%d}", done, sync=True)
        purge.record_purge(self.store, one)

    def _move_branch(
        self, other: str, base: str, parents: Mapping[str, str], purged: purge.Purges,
        sought: Sequence[Needle],
    ) -> str:  # fmt: skip
        """Move the branch to the other history with our own commits on top, and delete the old one's objects.
        Returns the branch's new commit."""
        history = self.store.history
        with self.store.locked(), self._workspace() as space:
            head = str(history.head())
            own = history.run("rev-list", head, f"^{base}", f"^{other}").decode().split()
            new = other
            if own not in ([], [head]) or history.differing(head, other):  # more than joining both
                new = self._rebase_without_purged(space, head, [base, other], parents, purged, sought)
            if history.differing(head, new):
                raise GitFailed("the new history does not end where the old one does", where=new[:10])
            to = [rewrite.Ref(history.ref(), new), rewrite.Ref(history.agreement(self.name), other)]
            rewrite.move_refs(history, to, {history.ref(): head})
            rewrite.delete_unreachable(history, self.store.bank.state / WORK_FOLDER)
        return new

    @contextmanager
    def _workspace(self) -> Iterator[History]:
        work = self.store.bank.state / WORK_FOLDER
        shutil.rmtree(work, ignore_errors=True)
        try:
            yield rewrite.workspace(self.store.history, work)
        finally:
            shutil.rmtree(work, ignore_errors=True)

    def _rebase_without_purged(
        self, space: History, tip: str, without: list[str], parents: Mapping[str, str], purged: purge.Purges,
        sought: Sequence[Needle],
    ) -> str:  # fmt: skip
        """Rebase commits, without the purged texts, onto the rewritten `parents`; the new tip.

        Blobs that the present files use are not changed.
        """
        if tip in parents:  # there are no commits of our own
            return parents[tip]
        history, redact = self.store.history, self.store.config.redact
        here, paths = set(history.blobs().values()), rewrite.blob_paths(space, [tip])
        changes = purge.changed_blobs(space, paths, purged.ids, sought, redact)
        contents = {blob: new for blob, _, new in changes if blob not in here}
        rewrite.rebase_filtered(space, tip, without, parents, contents, [needle.pattern for needle in sought])
        return history.fetch_objects(str(space.git_dir), history.ref())

    def _finish_purges(self) -> None:
        """Delete old objects that a sync left if it was killed after it had moved the branch."""
        left = [one for one in purge.open_purges(self.store) if one.sync and not one.done]
        for one in left:
            with self.store.locked():
                rewrite.remove_keep_files(self.store.history)
                rewrite.delete_unreachable(self.store.history, self.store.bank.state / WORK_FOLDER)
            purge.record_purge(self.store, replace(one, done=True))

    def _purged_here(self, offered: str) -> bool:
        """Whether there was a purge here that the remote does not have."""
        history = self.store.history
        if history.holds(offered):
            return False
        agreed = history.agreed(self.name)
        done = [each.id for each in history.with_trailer(PURGED)]
        return bool(done) and not (agreed and history.is_within(done[0], agreed))

    def _carry_over(self) -> str:
        """Rebase what others pushed onto the old history, without the purged texts, onto the purged one.

        Returns the remote's commit that a push has to replace; '' if the remote has the purge already.
        """
        history, redact = self.store.history, self.store.config.redact
        head, agreed = str(history.head()), history.agreed(self.name)
        with self._workspace() as space:
            # A relative address is resolved from the bank's folder.
            offered = History(space.git_dir, history.root, own=False).fetch_objects(self.url, history.ref())
            mine = purge.purges_since(space, head, offered, redact)
            if not mine:
                return ""
            # Of their purges, those made here before have been rewritten by the newest one.
            theirs = purge.purges_since(space, offered, head, redact).ids - mine.ids
            without, parents = [head], dict[str, str]()
            if not theirs and not (agreed and space.is_within(agreed, offered)):
                base, parents = purge.match_rewritten(space, offered, head, mine, to=agreed)
                without.append(base)
            number = len(space.run("rev-list", offered, *(f"^{each}" for each in without)).split())
            tip = offered
            if not self.trial:
                paths = rewrite.blob_paths(space, [offered])
                sought, _ = purge.forgotten_needles(space, paths, mine.tombstones, {}, redact)
                tip = self._rebase_without_purged(space, offered, without, parents, mine, sought)
        if self.trial:
            self.done.received, self.done.sent = number, history.number(None, head)
        elif theirs and agreed != tip:
            self._add_result(self._follow_purge(tip))
        elif not history.holds(tip):
            self._add_result(self._join(tip))
        return offered


def _is_rewritten(history: History, name: str, other: str) -> bool:
    agreed = history.agreed(name)
    return agreed is not None and history.has(other) and not history.is_within(agreed, other)
