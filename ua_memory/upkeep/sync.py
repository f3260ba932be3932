"""`sync`: fetch, merge, push; a second machine; and a purge that another machine made."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ua_memory.discovery import CORE_NAMES, LOGS, SETTINGS, is_dated
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
from ua_memory.git.remotes import REMOTE, shown
from ua_memory.knowledge import statements, tombstones
from ua_memory.knowledge.sessions import SessionFiles
from ua_memory.knowledge.tombstones import PATH, PURGED, Tombstones, parse
from ua_memory.markdown import document
from ua_memory.records import Tombstone, written_id
from ua_memory.store.lock import locked
from ua_memory.store.store import Store
from ua_memory.upkeep import purge, traces
from ua_memory.upkeep.merge import JoinResult, Merge, join, prepare, refuse, refuse_push, settings
from ua_memory.upkeep.traces import (
    RECORD_PREFIX,
    Cleanup,
    Needle,
    TraceReport,
    make_needles,
    needles_unless_mentioned,
)

if TYPE_CHECKING:
    from ua_memory.index.sync import Index


# -- cloning -----------------------------------------------------------------------------------------------
# A second machine: a new folder becomes what a remote has, whatever branch of it the bank is on.
#
# All of it is made beside the folder and put in its place at the end: killed on the way, it is begun anew.


BRANCHES = 20
"""So many branches are looked at for a bank, the remote's own first."""
PART = ".ua-memory-part"
AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class CloneResult:
    """What was cloned: from where, which branch, and how much. `notes` name what could not be."""

    address: str
    branch: str
    revisions: int
    files: int
    notes: tuple[str, ...] = ()


def clone(root: Path, address: str) -> CloneResult | None:
    """Make `root` the bank that a remote has; None where it is already. Usage where something else is there,
    NoBank where the remote has none, Conflict for one that belongs beside code, GitFailed."""
    History.address(address)
    if _is_clone(root, address):
        return None
    with writing(root, "name another folder"):
        if root.is_dir() and any(root.iterdir()):
            hint = "choose an empty folder; to connect an existing bank: ua-memory sync --remote"
            raise Usage("the folder is not empty", where=str(root), hint=hint)
        root.parent.mkdir(parents=True, exist_ok=True)
        part = root.with_name(f".{root.name}{PART}")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        try:
            done = _made(History(part / ".git", part, own=True), address)
            part.replace(root)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return done


def _is_clone(root: Path, address: str) -> bool:
    """Whether an earlier run came to its end."""
    history = History(root / ".git", root, own=True)
    try:
        return history.exists and history.remote() == (REMOTE, address)
    except UaMemoryError:
        return False


def _made(history: History, address: str) -> CloneResult:
    history.create()
    branch, sha = _found(history, address)
    known = settings(history.read(sha, SETTINGS)) or {}
    if known.get("trail") == "beside":
        hint = "in a checkout of that code: ua-memory init, then ua-memory sync --remote ADDRESS"
        raise Conflict("this bank is kept beside code", where=shown(address), hint=hint)
    there = history.differing(None, sha)
    refuse(history, sha, there)
    history.run("symbolic-ref", "HEAD", f"refs/heads/{branch}")
    history.run("update-ref", f"refs/heads/{branch}", sha)
    history.set_remote(address)
    history.run("config", f"branch.{branch}.remote", REMOTE)
    history.run("config", f"branch.{branch}.merge", f"refs/heads/{branch}")
    history.run("update-ref", f"refs/remotes/{REMOTE}/{branch}", sha)
    history.agree(REMOTE, sha)
    plain = {path: entry for path, entry in there.items() if entry[0].startswith("100")}
    _check_out(history, plain)
    notes = tuple(
        f"{path} is not a regular file, and was not checked out"
        for path in sorted(there.keys() - plain.keys())
    )
    return CloneResult(shown(address), branch, history.number(None, sha), len(plain), notes)


def _found(history: History, address: str) -> tuple[str, str]:
    """The branch that has a bank, and its newest revision, which is here then."""
    default, heads = history.heads(address)
    if not heads:
        hint = "on the machine that has the bank: ua-memory sync --remote ADDRESS"
        raise NoBank("the remote is empty", where=shown(address), hint=hint)
    order = dict.fromkeys((default, "main", "master", *heads))
    for branch in [name for name in order if name in heads][:BRANCHES]:
        sha = history.fetch_objects(address, f"refs/heads/{branch}")
        if any(map(_is_sign, history.blobs(rev=sha))):
            return branch, sha
    what = f"no branch of the remote has a memory bank ({', '.join(list(heads)[:5])})"
    hint = "create one with ua-memory init, and push it to its own remote with ua-memory sync --remote"
    raise NoBank(what, where=shown(address), hint=hint)


def _is_sign(path: str) -> bool:
    """Whether a file marks a folder as a bank, as `paths.is_bank` has it."""
    folder, _, name = path.rpartition("/")
    return path in (SETTINGS, *CORE_NAMES) or bool(folder == LOGS and name.endswith(".md") and is_dated(name))


def _check_out(history: History, files: dict[str, tuple[str, str]]) -> None:
    """Write a revision's files as they are in it, and git's index with them; no filter is run."""
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
# Another history comes in. What it has forgotten is cleared away beside the files, too, and sought in
# everything, as `forget` does. A person's prose that has the words stays, and is named.


@dataclass(frozen=True, slots=True)
class RemoteTombstones:
    """The ids that are forgotten here now, too, and the search for what they said here."""

    ids: tuple[str, ...]
    proof: TraceReport


@dataclass(frozen=True, slots=True)
class _JoinPreview:
    """What joining another history comes to: what both histories have in common (`base`), the ids that are
    forgotten there and not here, the texts that go with them, and the files afterwards where any do."""

    base: str | None
    joined: JoinResult
    forgotten: tuple[str, ...] = ()
    sought: tuple[Needle, ...] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def ids(self) -> set[str]:
        """All ids that go."""
        return {*self.forgotten, *self.joined.losses.ids(self.files)}


def joined(
    store: Store, other: str, index: Callable[[], Index], *, door: str, subject: str, look: bool = False
) -> tuple[JoinResult, RemoteTombstones | None]:
    """Join another history, and clear away what it has forgotten. Killed in the midst of it, the next sync or
    `forget` brings that to its end. With `look` say what would be, and where the words would stand still."""
    seen = _foreseen(store, other, always=look)
    if look:
        proof = traces.search_files(seen.files, seen.sought)
        return seen.joined, RemoteTombstones(seen.forgotten, proof) if seen.sought else None
    if not seen.sought:
        done = join(store, other, door=door, subject=subject)
        if seen.forgotten:  # no file here has it, but it may have been said here
            known = tombstones.read(store)
            SessionFiles(store).forget(lambda turn: known.said_in(turn.text))
        return done, None
    clearing = Cleanup(store, index)
    with clearing.with_record(seen.forgotten, seen.ids, seen.sought) as begun:
        done = join(store, other, door=door, subject=subject)
        return done, RemoteTombstones(seen.forgotten, clearing.clean_up(begun, seen.sought, seen.ids)[1])


def _foreseen(store: Store, other: str, *, base: str | None = None, always: bool = True) -> _JoinPreview:
    """Work out what joining another history comes to; unless `always`, only where it has forgotten something.
    Of a `base` that is given nothing else is held to be in common."""
    history = store.history
    head = history.head()
    base = base or (history.fork(head, other) if head else None)
    known = {block for rev in (head, base) if rev for block in parse(history.read(rev, PATH))}
    new = {name: stone for name, stone in parse(history.read(other, PATH)).items() if name not in known}
    if not new and not always:
        return _JoinPreview(base, JoinResult(Merge({})))
    seen = join(store, other, door="", subject="", look=True, base=base)
    after = {**dict(statements.texts(store)), **seen.merge.files}
    files = {path: data for path, data in after.items() if data is not None}
    sought = _sought(store, base, new) if new else ()
    sought += needles_unless_mentioned(
        seen.losses.ours.derived_texts, sought, files.values(), store.config.redact
    )
    return _JoinPreview(base, seen, tuple(sorted(new)), sought, files)


def _sought(store: Store, base: str | None, new: dict[str, Tombstone]) -> tuple[Needle, ...]:
    """What was said here under these ids, now and when both last met, and what says the same."""
    history, forgotten = store.history, Tombstones(new, store.config.redact)
    here = list(statements.texts(store))
    before = [path for path, data in here if any(f"^{written_id(block)}".encode() in data for block in new)]
    old = zip(before, history.read_all([(base, path) for path in before]), strict=True) if base else ()
    said = [
        record.text
        for path, data in (*here, *old)
        if data
        for record in document.parse(data, path).statements
        if forgotten.forbid(record)
    ]
    return make_needles(dict.fromkeys(said), store.config.redact)


# -- syncing -----------------------------------------------------------------------------------------------
# `sync`: fetch, merge, push, and again where somebody else was faster. Nothing is forced, but for one
# thing: the history from after a purge takes the place of the one from before it, which is told.
#
# The network is waited for without the bank's lock: only the merge is a revision.


TRIES = 5
WORK = "sync-work"
LOCKED = "lock"
"""Of git's reasons those that a file is the cause of, which a killed git may have left."""


@dataclass(frozen=True, slots=True)
class FollowedPurge:
    """A purge of another machine that was done here, too: the ids, where this history stood and stands, the
    bundle with what it was, the search that proves it, and what still leads to the old history."""

    ids: tuple[str, ...]
    old: str
    new: str = ""
    backup: str = ""
    proof: TraceReport = field(default_factory=TraceReport)
    holding: tuple[str, ...] = ()


@dataclass(slots=True)
class SyncResult:
    """What a sync did: what came in and from how many revisions, how many went out, where both stand now.

    `revision` is None where a trial changed nothing, or while a commit is owed.
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
    """The revision that the remote's branch was taken back from, and the one it has now: after a purge
    here."""
    followed: FollowedPurge | None = None
    """A purge of another machine that was done here, too."""
    heard: RemoteTombstones | None = None
    """What another machine has forgotten, and this one now, too."""


def sync(
    store: Store, address: str | None = None, *, door: str, index: Callable[[], Index], trial: bool = False,
    backup: Path | None = None,
) -> SyncResult:  # fmt: skip
    """Sync with the remote. `address` sets the remote, once; with `trial` nothing but
    what was fetched is written. `backup` is a file outside the bank for the history as it was, where another
    machine has purged it. NotFound without a remote, Conflict where histories do not belong together,
    Busy where another sync is at work, GitFailed where the remote cannot be reached or refuses."""
    store.make_state()
    with locked(store.bank.state / "sync.lock", store.config.lock_seconds):
        name, url, first = _remote(store, address)
        syncing = _Syncing(store, name, url, first, door, trial, index, backup)
        try:
            done = syncing.together()
        except BaseException:
            # Something of that remote is in this history: it is the one, whatever came after.
            if first and not trial and store.history.agreed(name):
                store.history.set_remote(url)
            raise
        if first and not trial:
            store.history.set_remote(url)
        return done


def _remote(store: Store, address: str | None) -> tuple[str, str, bool]:
    """The remote's name and address, and whether it is the first time: what turns out to be none of this
    bank's is not remembered."""
    store.require_settled()
    history = store.history
    if not history.exists:
        store.adopt()
    there = history.remote()
    if address and there and there[1] != address:
        hint = f"ua-memory git remote set-url {there[0]} {shlex.quote(shown(address))}"
        raise Usage("this bank already has a remote", where=shown(there[1]), hint=hint)
    if address and not there:
        return REMOTE, history.address(address), True
    if not there:
        where = str(store.bank.root)  # maybe the default bank
        raise NotFound("this bank has no remote", where=where, hint="ua-memory sync --remote ADDRESS")
    return *there, False


@dataclass
class _Syncing:
    """One sync while it goes on."""

    store: Store
    name: str
    url: str
    first: bool
    door: str
    trial: bool
    index: Callable[[], Index]
    backup: Path | None
    """Where the old history may be put, if there is a purge to follow."""

    def __post_init__(self) -> None:
        self.done = SyncResult(self.name, shown(self.url), self.trial)

    def together(self) -> SyncResult:
        store, history = self.store, self.store.history
        if any(not one.done and not one.sync for one in purge.unfinished_purges(store)):
            where = str(store.bank.root)
            raise Conflict("a purge was interrupted here", where=where, hint="ua-memory forget --purge")
        self.done.notes += prepare(store, look=self.trial)
        if not self.trial and any(store.bank.pending.glob(f"{RECORD_PREFIX}*.json")):
            Cleanup(store, self.index).finish()
        if not self.trial:
            self._unlock()
        for _ in range(TRIES):
            if not (why := self._once()):
                break
            if LOCKED in why:
                self._unlock(self.url)
        else:
            raise self._refused(why)
        if not self.trial:
            self._finish()
            if self.first and (said := history.set_head(self.url)):
                self.done.notes.append(said)
        self.done.revision = None if self.trial else history.head()
        return self.done

    def _unlock(self, address: str = "") -> None:
        """Remove what a killed git has left locked here, or in a folder that is pushed to."""
        gone = process.remove(self.store.history.locks(address))
        self.done.notes += [f"removed a lock left by an interrupted git: {file}" for file in gone]

    def _refused(self, why: str) -> UaMemoryError:
        """Why nothing could be pushed, at the last attempt."""
        there = shown(self.url)
        if LOCKED not in why:
            return Busy("other machines keep pushing", where=there, hint="try again")
        found = re.search(r"'([^']*\.lock)'", why)
        name = found[1] if found else f"{self.store.history.ref()}.lock"
        if held := [lock for lock in self.store.history.locks(self.url) if lock.held]:
            hint = f"try again ({held[0].held}); ua-memory sync removes it once no git can be running there"
        else:
            hint = f"on the machine of the remote, if no git is running there: rm {shlex.quote(name)}"
        return Busy(f"the remote's branch is locked: {why}", where=there, hint=hint)

    def _once(self) -> str:
        """Bring in what the remote offers and push; git's reason where it would not take it just now."""
        history, lease = self.store.history, ""
        offered = history.offered(self.url)
        if offered and self._purged_here(offered):
            lease = self._carried()
            offered = lease or offered
        if not lease and offered and (not history.holds(offered) or _rewritten(history, self.name, offered)):
            with history.fetched(self.url, name=self.name) as other:
                followed = _rewritten(history, self.name, other)
                done = self._follow(other) if followed else self._joined(other)
                if not self.trial and not followed:
                    history.agree(self.name, other)
            self._take(done)
        head = history.head()
        if head == offered and head and not self.trial and history.agreed(self.name) != head:
            history.agree(self.name, head)
        if head is None or head == offered:
            return ""
        known = offered if offered and history.has(offered) else None
        refuse_push(history, known, head)
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

    def _take(self, joined: JoinResult) -> None:
        done, merge = self.done, joined.merge
        done.received += joined.revisions
        known = merge if merge.files or not done.merge.files else done.merge
        done.merge = replace(known, dropped=(*done.merge.dropped, *merge.dropped))
        done.notes += [*joined.notes, *(joined.result.notes if joined.result else ())]

    def _joined(self, other: str) -> JoinResult:
        subject, look = self._subject, self.trial
        done, heard = joined(self.store, other, self.index, door=self.door, subject=subject, look=look)
        self.done.heard = heard or self.done.heard
        return done

    @property
    def _subject(self) -> str:
        return f"sync: bring in {self.name}"

    # -- purges ------------------------------------------------------------------------------------------
    # The other's history is not believed: where both last agreed it must have what this machine has, but for
    # what the records of the purge name; anything else is refused before something is changed. Then both are
    # merged against that revision as ever, and this machine's own revisions are put on the other history.
    # What was here before lies in a bundle afterwards.

    def _follow(self, other: str) -> JoinResult:
        """Join a history that was rewritten by a purge, and take what it lacks out of this one. Conflict
        where it lacks anything else, StillThere where a person's lines have the words; nothing is changed
        then."""
        history, redact = self.store.history, self.store.config.redact
        head, agreed = str(history.head()), history.agreed(self.name)
        history.require_whole()
        purged = purge.purges_since(history, other, agreed, redact)
        if not purged:
            lost = history.run("rev-list", "-1", agreed or head, f"^{other}").decode()
            what = "the remote's history was rewritten, but not by a purge"
            raise Conflict(what, where=f"it lacks {lost[:10]}", hint=purge.REWRITTEN_HINT)
        base, parents = purge.match_rewritten(history, agreed or head, other, purged, at=agreed)
        seen = _foreseen(self.store, other, base=base)
        sought = self._words(purged, [head, other], seen.files)
        ids = tuple(sorted(purged.ids))
        if self.trial:
            self.done.followed = FollowedPurge(ids, head)
            return seen.joined
        backup = self._backed_up()
        clearing = Cleanup(self.store, self.index)
        everything, gone = tuple(dict.fromkeys((*sought, *seen.sought))), {*ids, *seen.ids}
        with clearing.with_record(ids, gone, everything) as begun:
            done = join(self.store, other, door=self.door, subject=self._subject, base=base)
            self.store.require_settled()  # what is not joined yet is not to be let go of
            new = self._moved(other, base, parents, purged, sought)
            _, proof = clearing.clean_up(begun, everything, gone, objects=True)
        self._note(backup, proof.is_clean)
        # What was dropped here was in revisions that are no more.
        dropped = (replace(d, revision=str(backup)) if d.side == "here" else d for d in done.merge.dropped)
        named = [] if proof.is_clean else rewrite.refs(history, [*rewrite.REWRITTEN, "refs/stash"])
        holding = tuple(ref.short for ref in named if ref.name != history.ref())
        self.done.followed = FollowedPurge(ids, head, new, str(backup), proof, holding)
        return replace(done, merge=replace(done.merge, dropped=tuple(dropped)))

    def _words(self, purged: purge.Purges, revs: list[str], files: Mapping[str, bytes]) -> tuple[Needle, ...]:
        """What the purged ids ever said here. StillThere where the files would have it still."""
        history = self.store.history
        try:
            paths = rewrite.named_objects(history, revs)
            return purge.forgotten_needles(
                history, paths, purged.tombstones, files, self.store.config.redact
            )[0]
        except StillThere as error:
            what = "it was purged on another machine, but is still in a file here"
            hint = f"ua-memory forget {error.where}, or take it out of the file; then sync"
            raise StillThere(what, where=error.where, hint=hint) from error

    def _backed_up(self) -> Path:
        store, backup = self.store, self.backup
        if backup is None:
            what = "another machine purged its history; the old history here needs a backup first"
            hint = "give a file outside the bank: sync(backup=…)"
            raise Conflict(what, where=str(store.bank.root), hint=hint)
        purge.require_outside(store, backup)
        store.require_settled()
        with store.locked():
            rewrite.unmarked(store.history)
        rewrite.back_up(store.history, backup)
        self._note(backup, False)
        return backup

    def _note(self, backup: Path, done: bool) -> None:
        """Note how far following a purge has come."""
        one = purge.Unfinished(str(backup), f"{self.store.now():%Y-%m-%d}", done, sync=True)
        purge.record_purge(self.store, one)

    def _moved(
        self, other: str, base: str, parents: Mapping[str, str], purged: purge.Purges,
        sought: Sequence[Needle],
    ) -> str:  # fmt: skip
        """Put this machine's own revisions on the other history, and let go of the old one; where the branch
        stands then."""
        history = self.store.history
        with self.store.locked(), self._workspace() as space:
            head = str(history.head())
            own = history.run("rev-list", head, f"^{base}", f"^{other}").decode().split()
            new = other
            if own not in ([], [head]) or history.differing(head, other):  # more than joining both
                new = self._replanted(space, head, [base, other], parents, purged, sought)
            if history.differing(head, new):
                raise GitFailed("the new history does not end where the old one does", where=new[:10])
            to = [rewrite.Ref(history.ref(), new), rewrite.Ref(history.agreement(self.name), other)]
            rewrite.move(history, to, {history.ref(): head})
            rewrite.let_go(history, self.store.bank.state / WORK)
        return new

    @contextmanager
    def _workspace(self) -> Iterator[History]:
        work = self.store.bank.state / WORK
        shutil.rmtree(work, ignore_errors=True)
        try:
            yield rewrite.workspace(self.store.history, work)
        finally:
            shutil.rmtree(work, ignore_errors=True)

    def _replanted(
        self, space: History, tip: str, without: list[str], parents: Mapping[str, str], purged: purge.Purges,
        sought: Sequence[Needle],
    ) -> str:  # fmt: skip
        """Revisions as they are without what was purged, on what their parents were rewritten to. Files that
        stand here now stay as they are."""
        if tip in parents:  # nothing is on top of what was rewritten
            return parents[tip]
        history, redact = self.store.history, self.store.config.redact
        here, paths = set(history.blobs().values()), rewrite.named_objects(space, [tip])
        changes = purge.changed_blobs(space, paths, purged.ids, sought, redact)
        contents = {blob: new for blob, _, new in changes if blob not in here}
        rewrite.replant(space, tip, without, parents, contents, [needle.pattern for needle in sought])
        return history.fetch_objects(str(space.git_dir), history.ref())

    def _finish(self) -> None:
        """A sync that was killed after the branch had moved has left old objects: let go of them."""
        left = [one for one in purge.unfinished_purges(self.store) if one.sync and not one.done]
        for one in left:
            with self.store.locked():
                rewrite.unmarked(self.store.history)
                rewrite.let_go(self.store.history, self.store.bank.state / WORK)
            purge.record_purge(self.store, replace(one, done=True))

    def _purged_here(self, offered: str) -> bool:
        """Whether something was purged here that the remote does not know of."""
        history = self.store.history
        if history.holds(offered):
            return False
        agreed = history.agreed(self.name)
        done = [each.id for each in history.with_trailer(PURGED)]
        return bool(done) and not (agreed and history.is_within(done[0], agreed))

    def _carried(self) -> str:
        """Bring in what others pushed onto the history from before a purge here, made anew on top of the one
        from after it. Nothing of what was purged gets in. The revision of the remote that this history takes
        the place of, empty where the remote knows of the purge."""
        history, redact = self.store.history, self.store.config.redact
        head, agreed = str(history.head()), history.agreed(self.name)
        with self._workspace() as space:
            # An address may be a path as seen from the bank.
            offered = History(space.git_dir, history.root, own=False).fetch_objects(self.url, history.ref())
            mine = purge.purges_since(space, head, offered, redact)
            if not mine:
                return ""
            theirs = purge.purges_since(space, offered, head, redact)
            without, parents = [head], dict[str, str]()
            if not theirs and not (agreed and space.is_within(agreed, offered)):
                base, parents = purge.match_rewritten(space, offered, head, mine, to=agreed)
                without.append(base)
            number = len(space.run("rev-list", offered, *(f"^{each}" for each in without)).split())
            tip = offered
            if not self.trial:
                paths = rewrite.named_objects(space, [offered])
                sought, _ = purge.forgotten_needles(space, paths, mine.tombstones, {}, redact)
                tip = self._replanted(space, offered, without, parents, mine, sought)
        if self.trial:
            self.done.received, self.done.sent = number, history.number(None, head)
        elif theirs and agreed != tip:
            self._take(self._follow(tip))
        elif not history.holds(tip):
            self._take(self._joined(tip))
        return offered


def _rewritten(history: History, name: str, other: str) -> bool:
    agreed = history.agreed(name)
    return agreed is not None and history.has(other) and not history.is_within(agreed, other)
