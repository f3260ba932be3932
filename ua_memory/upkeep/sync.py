"""`sync`: fetch, merge, push; a second machine; and a purge that another machine made."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ua_memory.discovery import CORE_NAMES, DATED, LOGS, SETTINGS
from ua_memory.errors import (
    Busy,
    CannotWrite,
    Conflict,
    GitFailed,
    NoBank,
    NotFound,
    StillThere,
    UaMemoryError,
    Usage,
)
from ua_memory.git import process, rewrite
from ua_memory.git.remotes import REMOTE, shown
from ua_memory.git.repository import NOBODY
from ua_memory.git.rewrite import (
    NAME,
    Quarantine,
    RawCommit,
    TreeChange,
    brought,
    contents,
    differences,
    hand_over,
    nodes,
    replay,
    trees,
    unmarked,
)
from ua_memory.git.trail import History
from ua_memory.knowledge import statements
from ua_memory.knowledge.statements import Statement
from ua_memory.knowledge.tombstones import PATH, PURGED, Tombstones, stones
from ua_memory.markdown import document
from ua_memory.records import Tombstone, written_id
from ua_memory.store import swap
from ua_memory.store.lock import locked
from ua_memory.store.store import Store
from ua_memory.upkeep import forget, purge, traces
from ua_memory.upkeep.forget import Changing, Deriving, Owners
from ua_memory.upkeep.merge import (
    Cleaned,
    Dropped,
    Joined,
    Merge,
    join,
    prepare,
    refuse,
    refuse_push,
    settings,
)
from ua_memory.upkeep.purge import PurgeRecords, covered
from ua_memory.upkeep.traces import BEGUN, MARK, Clearing, Needle, Searched, unsaid
from ua_memory.upkeep.traces import needles as needles_words

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
class Cloned:
    """What was cloned: from where, which branch, and how much. `notes` name what could not be."""

    address: str
    branch: str
    revisions: int
    files: int
    notes: tuple[str, ...] = ()


def clone(root: Path, address: str) -> Cloned | None:
    """Make `root` the bank that a remote has; None where it is already. Usage where something else is there,
    NoBank where the remote has none, Conflict for one that belongs beside code, GitFailed."""
    History.address(address)
    if _is_clone(root, address):
        return None
    try:
        if root.is_dir() and any(root.iterdir()):
            mend = (
                "name an empty folder; a bank that is there already takes it in with ua-memory sync --remote"
            )
            raise Usage("the folder is not empty", where=str(root), mend=mend)
        root.parent.mkdir(parents=True, exist_ok=True)
        part = root.with_name(f".{root.name}{PART}")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
    except OSError as error:
        raise CannotWrite(
            error.strerror or str(error), where=str(root), mend="name another folder"
        ) from error
    try:
        done = _made(History(part / ".git", part, own=True), address)
        part.replace(root)
    except OSError as error:
        raise CannotWrite(
            error.strerror or str(error), where=str(root), mend="name another folder"
        ) from error
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


def _made(history: History, address: str) -> Cloned:
    history.create()
    branch, sha = _found(history, address)
    known = settings(history.read(sha, SETTINGS)) or {}
    if known.get("trail") == "beside":
        raise Conflict(
            "this memory is kept beside code", where=shown(address),
            mend="in a checkout of that code: ua-memory init, then ua-memory sync --remote ADDRESS",
        )  # fmt: skip
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
        f"{path} is no plain file, and was not checked out" for path in sorted(there.keys() - plain.keys())
    )
    return Cloned(shown(address), branch, history.number(None, sha), len(plain), notes)


def _found(history: History, address: str) -> tuple[str, str]:
    """The branch that has a bank, and its newest revision, which is here then."""
    default, heads = history.heads(address)
    if not heads:
        raise NoBank(
            "nothing is there yet", where=shown(address),
            mend="on the machine that has the bank: ua-memory sync --remote ADDRESS",
        )  # fmt: skip
    order = dict.fromkeys((default, "main", "master", *heads))
    for branch in [name for name in order if name in heads][:BRANCHES]:
        sha = history.fetch_objects(address, f"refs/heads/{branch}")
        if any(map(_is_sign, history.blobs(rev=sha))):
            return branch, sha
    raise NoBank(
        f"no branch there holds a memory bank ({', '.join(list(heads)[:5])})", where=shown(address),
        mend="ua-memory init makes one, and ua-memory sync --remote puts it into a remote of its own",
    )  # fmt: skip


def _is_sign(path: str) -> bool:
    """Whether a file marks a folder as a bank, as `paths.is_bank` has it."""
    folder, _, name = path.rpartition("/")
    log = folder == LOGS and name.endswith(".md") and DATED.match(name)
    return path in (SETTINGS, *CORE_NAMES) or bool(log)


def _check_out(history: History, files: dict[str, tuple[str, str]]) -> None:
    """Write a revision's files as they are in it, and git's index with them; no filter is run."""
    paths = sorted(files)
    for start in range(0, len(paths), AT_ONCE):
        some = paths[start : start + AT_ONCE]
        for path, data in zip(some, history.read_all([(files[p][1], "") for p in some]), strict=True):
            if {part.casefold() for part in path.split("/")} & {"..", ".", ".git", ""}:
                raise Conflict("no name of a file", where=repr(path)[:200])
            file = history.root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data or b"")
            if files[path][0] == "100755":
                file.chmod(file.stat().st_mode | 0o100)
    history.run("read-tree", "HEAD")
    history.run("update-index", "-q", "--refresh", ok=(0, 1))


# -- rewritten ---------------------------------------------------------------------------------------------
# A history from before a purge held against the one from after it: which commit became which, and whether
# what the new one lacks is covered by the records of the purge. Anything else is refused, and named.


MEND = "nothing was changed here; docs/sync.md, A rewritten history, tells what to do"


@dataclass(frozen=True)
class Pairing:
    """Two histories side by side: what the old commits are now, and those that only the old one has."""

    new: str
    """Where the new history stands."""
    mapped: Mapping[str, str]
    own: Sequence[RawCommit]
    contents: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """{(path, old blob): new blob} of what was seen to be covered."""
    walked: Sequence[RawCommit] = ()


def pair(history: History, old: str, new: str, must: str | None, records: PurgeRecords) -> Pairing:
    """Find for each commit of an old history what it is in the new one. Of those that `must` leads to each
    has to be there; the others may be nobody else's yet, and are not what another machine did in the same
    second. Conflict names the commit, and the path where it is one, that no record covers."""
    walked = nodes(history, old, new)
    # Not only what `old` has not: who was killed after both were joined has all of it.
    there = nodes(history, new, walked[0].parents[0] if walked and walked[0].parents else None)
    needed = {node.id for node in nodes(history, must, new)} if must else set[str]()
    offered: dict[tuple[tuple[str, ...], bytes, bytes], list[RawCommit]] = {}
    for node in there:
        offered.setdefault((node.parents, node.author, node.committer), []).append(node)
    mapped: dict[str, str] = {}
    pairs: list[tuple[RawCommit, RawCommit]] = []
    own: list[RawCommit] = []
    for node in walked:
        parents = tuple(mapped.get(name, name) for name in node.parents)
        alike = offered.get((parents, node.author, node.committer), [])
        same = (n for n in alike if _says_the_same(node.message, n.message, mapped, records))
        if must and node.id not in needed:
            same = (n for n in same if _may_be(history, node, n, records))
        found = next(same, None)
        if found is not None:
            alike.remove(found)
            mapped[node.id] = found.id
            pairs.append((node, found))
        elif node.id in needed:
            raise Conflict(
                "the history was rewritten, and a revision is missing from it that no purge accounts for",
                where=f"{node.id[:10]} ({_subject(node)})", mend=MEND,
            )  # fmt: skip
        else:
            own.append(node)
    return Pairing(new, mapped, own, _covered(history, pairs, records), walked)


def _may_be(history: History, old: RawCommit, new: RawCommit, records: PurgeRecords) -> bool:
    """Whether one commit can have become another by what is recorded."""
    try:
        _covered(history, [(old, new)], records)
    except Conflict:
        return False
    return True


def _subject(node: RawCommit) -> str:
    return node.message.partition(b"\n")[0].decode("utf-8", "replace")[:60]


def _says_the_same(old: bytes, new: bytes, mapped: Mapping[str, str], records: PurgeRecords) -> bool:
    return old == new or any(covered(each, new, records.knows) for each in (renamed(old, mapped), old))


def renamed(message: bytes, mapped: Mapping[str, str]) -> bytes:
    """A message with the new names of the commits that it names."""

    def name(found: re.Match[bytes]) -> bytes:
        said = found[0].decode()
        if len(said) == 40:
            return mapped.get(said, said).encode()
        meant = {new for old, new in mapped.items() if old.startswith(said)}
        return (meant.pop()[: len(said)] if len(meant) == 1 else said).encode()

    return NAME.sub(name, message)


def _covered(
    history: History, pairs: Sequence[tuple[RawCommit, RawCommit]], records: PurgeRecords
) -> dict[tuple[str, str], str]:
    """{(path, old blob): new blob} of all that the pairs have otherwise. Conflict where it is no purge's
    doing."""
    found = differences(history, [(old.tree, new.tree) for old, new in pairs])
    places: dict[str, set[str]] = {}
    for entries in found:
        for each in entries:
            places.setdefault(each.blobs[0], set()).add(each.path)
    names = sorted({blob for entries in found for each in entries for blob in each.blobs} - {NOBODY})
    data = dict(zip(names, contents(history, names), strict=True)) if names else {}
    seen: dict[tuple[str, str], str] = {}
    for (old, _), entries in zip(pairs, found, strict=True):
        for each in entries:
            key = (each.path, each.blobs[0])
            if seen.get(key) == each.blobs[1] and each.modes[0] == each.modes[1]:
                continue
            if not _is_covered(each, data, places[each.blobs[0]], records):
                raise Conflict(
                    "the history was rewritten, and a file differs by more than what was purged",
                    where=f"{old.id[:10]} {each.path}", mend=MEND,
                )  # fmt: skip
            seen[key] = each.blobs[1]
    return seen


def _is_covered(each: TreeChange, data: Mapping[str, bytes], paths: set[str], records: PurgeRecords) -> bool:
    if NOBODY in each.blobs or each.modes[0] != each.modes[1] or each.modes[0][:3] != "100":
        return False
    before, after = (data[blob] for blob in each.blobs)
    return records.covers(before, after, [each.path, *sorted(paths - {each.path})])


def onward(
    history: History, pairing: Pairing, records: PurgeRecords, sought: Sequence[Needle],
    keep: Mapping[str, str] | None = None,
) -> dict[str, str]:  # fmt: skip
    """Write what only the old history has anew on top of the new one, without what was purged; {old: new} of
    all commits that were walked. `keep` are files ({path: blob}) that stay as they are."""
    kept = set((keep or {}).items())

    def change(data: bytes, path: str, blob: str) -> bytes:
        if (path, blob) in kept:
            return data
        known = pairing.contents.get((path, blob))
        return history.blob(known) if known else records.applied(data, path, sought)

    def said(message: bytes, mapped: Mapping[str, str]) -> bytes:
        for needle in sought:
            message = needle.pattern.sub(MARK.encode(), message)
        return renamed(message, mapped)

    return {**pairing.mapped, **replay(history, pairing.own, pairing.mapped, change, said)}


def needles(
    history: History, pairing: Pairing, records: PurgeRecords, agreed: str | None = None
) -> list[Needle]:
    """The texts that left the new history, as the old one has them (up to `agreed` at least), and as its own
    commits worded them."""
    mine = {node.id for node in pairing.own}
    shared = [node.id for node in pairing.walked if node.id not in mine] + ([agreed] if agreed else [])
    tips = [*[node.id for node in pairing.walked][-1:], *([agreed] if agreed else [])]
    own = brought(history, tips, [pairing.new, *shared])
    rest = {name: path for name, path in brought(history, tips, [pairing.new]).items() if name not in own}
    return records.sought(_texts(history, rest), _texts(history, own))


def _texts(history: History, places: Mapping[str, str]) -> list[tuple[str, bytes]]:
    names = list(places)
    data = contents(history, names) if names else []
    return [(places[name], text) for name, text in zip(names, data, strict=True)]


# -- following ---------------------------------------------------------------------------------------------
# A purge on one machine, and the others: who has the history from before it follows, who purged carries
# what the others pushed meanwhile over to the new one.
#
# Nothing is believed: every revision that the remote had is held against what it is said to have become,
# and what no record of a purge covers is refused before anything is changed. What was here before lies in a
# bundle afterwards.


WORK = "sync-work"


@dataclass(frozen=True, slots=True)
class Followed:
    """A purge of another machine that was done here, too: the ids, where this history stood and stands, the
    bundle with what it was, the search that proves it, and what still leads to the old history."""

    ids: tuple[str, ...]
    old: str
    new: str = ""
    backup: str = ""
    proof: Searched = field(default_factory=Searched)
    holding: tuple[str, ...] = ()


@dataclass(frozen=True)
class Following:
    """What it takes to follow a purge: the bank, its index, and where the old history may be put."""

    store: Store
    index: Callable[[], Index]
    backup: Path | None
    door: str

    # -- a remote that was rewritten ---------------------------------------------------------------------

    def follow(self, name: str, other: str, subject: str, *, trial: bool) -> tuple[Joined, Followed]:
        """Join a history that was rewritten by a purge, and take what it lacks out of this one. Conflict
        where it lacks anything else, StillThere where a person's lines have the words; nothing is changed
        then."""
        history = self.store.history
        head, agreed = str(history.head()), history.agreed(name)
        records = self._records(other, agreed)
        pairing = pair(history, head, other, agreed, records)
        sought = needles(history, pairing, records, agreed)
        if trial:
            base = next(
                (pairing.mapped[n.id] for n in reversed(pairing.walked) if n.id in pairing.mapped), None
            )
            cleaned = self._cleaned(records, sought, base)
            return join(
                self.store, other, door=self.door, subject=subject, look=True, cleaned=cleaned
            ), Followed(tuple(sorted(records.ids)), head)
        mapped = onward(history, pairing, records, sought)
        cleaned = self._cleaned(records, sought, history.fork(mapped.get(head, head), other))
        backup = self._backed_up()
        done = join(self.store, other, door=self.door, subject=subject, cleaned=cleaned)
        self.store.require_settled()  # what is not joined yet is not to be let go of
        went = (replace(each, revision=str(backup)) for each in cleaned.went)
        done = replace(done, merge=replace(done.merge, dropped=(*done.merge.dropped, *went)))
        new = self._moved(name, other, agreed, records, sought)
        return done, self._cleared(
            name, other, Followed(tuple(sorted(records.ids)), head, new, str(backup)), sought
        )

    def _records(self, other: str, agreed: str | None) -> PurgeRecords:
        history = self.store.history
        history.require_whole()
        records = purge.records(history, other, agreed, self.store.config.redact)
        if not records:
            lost = nodes(history, agreed, other) if agreed else []
            where = f"it lacks {lost[0].id[:10]}" if lost else other[:10]
            raise Conflict(
                "the remote's history was rewritten, and no purge accounts for it", where=where, mend=MEND
            )
        return records

    def _cleaned(self, records: PurgeRecords, sought: list[Needle], base: str | None) -> Cleaned:
        """This machine's files without what was purged, and what was derived from it here."""
        store = self.store
        texts = dict(statements.texts(store))
        targets = [
            forget.of(record)
            for path, data in texts.items()
            if any(f"^{written_id(block)}".encode() in data for block in records.ids)
            for record in document.parse(data, path).records
            if isinstance(record, Statement) and record.ref in records.ids
        ]
        deriving = Deriving(
            texts, targets, Owners(store, texts).ours, store.now().date(), take=False,
            patterns=store.config.redact, ids=records.ids,
        )  # fmt: skip
        plan = Changing(deriving).plan()
        went = tuple(
            Dropped(piece.id or "", piece.place.path, piece.place.line, "here")
            for piece in plan.gone
            if piece.by_person
        )

        def look(merged: Mapping[str, bytes | None]) -> None:
            for path, data in {**texts, **merged}.items():
                if data and any(needle.within(data) for needle in sought):
                    raise StillThere(
                        "it was purged on another machine, and is worded here still", where=path,
                        mend=f"take it out of {path} (ua-memory scan and search find lines), then sync",
                    )  # fmt: skip

        return Cleaned(plan.files, base, look, went)

    def _backed_up(self) -> Path:
        store, backup = self.store, self.backup
        if backup is None:
            raise Conflict(
                "another machine purged its history, and this one's has to lie somewhere before it follows",
                where=str(store.bank.root), mend="name a file outside the bank: sync(backup=…)",
            )  # fmt: skip
        purge.outside(store, backup)
        store.require_settled()
        with store.locked():
            unmarked(store.history)
        rewrite.back_up(store.history, backup)
        purge.note(store, self._unfinished(backup, False))
        return backup

    def _unfinished(self, backup: Path, done: bool) -> purge.Unfinished:
        return purge.Unfinished(str(backup), f"{self.store.now():%Y-%m-%d}", done, sync=True)

    def _moved(
        self, name: str, other: str, agreed: str | None, records: PurgeRecords, sought: list[Needle]
    ) -> str:  # fmt: skip
        """Put this machine's own revisions on the new history; where the branch stands then."""
        history = self.store.history
        with self.store.locked():
            head = str(history.head())
            pairing = pair(history, head, other, agreed, records)
            new = onward(history, pairing, records, sought, history.blobs()).get(head, head)
            of = trees(history, [head, new, other])
            if of[head] != of[new]:
                raise GitFailed("the new history does not end where the old one does", where=new[:10])
            if of[head] == of[other] and _adds_nothing(pairing, head):
                new = other
            history.run("update-ref", history.ref(), new, head)
            rewrite.let_go(history, self.store.bank.state / WORK)
            history.agree(name, other)
        return new

    def _cleared(self, name: str, other: str, done: Followed, sought: list[Needle]) -> Followed:
        """Beside the files, too, and the proof."""
        store, cleared = self.store, traces.Cleared()
        with swap.told(store.bank.state):
            traces.clear(store, sought, done.ids, cleared)
            traces.reindex(store, self.index(), store.config.search_seconds, cleared)
        proof = traces.look(store, sought, objects=True)
        purge.note(store, self._unfinished(Path(done.backup), proof.holds))
        holding = () if proof.holds else tuple(self._holding(done.old))
        return Followed(done.ids, done.old, done.new, done.backup, proof, holding)

    def _holding(self, old: str) -> list[str]:
        """What of the owner's leads to the history from before."""
        history = self.store.history
        named = rewrite.refs(history, [*rewrite.REWRITTEN, "refs/stash"])
        return [ref.short for ref in named if ref.name != history.ref()]

    def finish(self) -> None:
        """A sync that was killed after the branch had moved has left old objects: let go of them."""
        left = [one for one in purge.unfinished(self.store) if one.sync and not one.done]
        for one in left:
            with self.store.locked():
                unmarked(self.store.history)
                rewrite.let_go(self.store.history, self.store.bank.state / WORK)
            purge.note(self.store, replace(one, done=True))

    # -- a remote that has still what was purged here ----------------------------------------------------

    def pending(self, name: str, offered: str) -> bool:
        """Whether something was purged here that the remote has not heard of."""
        history = self.store.history
        if history.holds(offered):
            return False
        agreed = history.agreed(name)
        done = [each.id for each in history.log(grep=[f"{PURGED}: "]) if each.trailers.get(PURGED)]
        return bool(done) and not (agreed and history.is_within(done[0], agreed))

    def carry(self, name: str, url: str, offered: str, *, trial: bool) -> tuple[str, int, bool] | None:
        """What others pushed onto the history from before a purge here, written anew on top of the one from
        after it: (where that ends, its number of revisions, whether it was purged there, too). Nothing of
        what was purged gets in. None where the remote has heard of the purge, or moved meanwhile."""
        history, work = self.store.history, self.store.bank.state / WORK
        head = str(history.head())
        shutil.rmtree(work, ignore_errors=True)
        try:
            aside = Quarantine(history, work)
            aside.fetch_objects(url)
            mine = (
                purge.records(aside, head, offered, self.store.config.redact) if aside.has(offered) else None
            )
            if not mine:
                return None
            theirs = purge.records(aside, offered, head, self.store.config.redact)
            if theirs:
                walked = nodes(aside, offered, head)
                pairing = Pairing(head, {}, walked, walked=walked)
            else:
                pairing = pair(aside, offered, head, self._stood(aside, offered), mine)
            tip = offered
            if not trial:
                tip = onward(aside, pairing, mine, needles(aside, pairing, mine)).get(offered, offered)
                hand_over(aside, history, tip, head)
            return tip, len(pairing.own), bool(theirs)
        finally:
            shutil.rmtree(work, ignore_errors=True)

    def _stood(self, aside: Quarantine, offered: str) -> str | None:
        """Where the remote stood when something was purged here, if it has that still."""
        rows = [
            row for each in aside.log(grep=[f"{PURGED}: "]) for row in each.trailers.get(purge.REWROTE, ())
        ]
        old = [row.split()[1] for row in rows if row.startswith("refs/remotes/")]
        return next((sha for sha in old if aside.has(sha) and aside.is_within(sha, offered)), None)


def _adds_nothing(pairing: Pairing, head: str) -> bool:
    """Whether only the revision that joined both is this machine's own."""
    return [node.id for node in pairing.own] in ([], [head])


# -- heard -------------------------------------------------------------------------------------------------
# What another machine has forgotten and this one hears of by a sync: cleared away beside the files, too,
# and sought in everything, as `forget` does. A person's prose that has the words stays, and is named.


@dataclass(frozen=True, slots=True)
class RemoteTombstones:
    """The ids that are forgotten here now, too, and the search for what they said here."""

    ids: tuple[str, ...]
    proof: Searched


def joined(
    store: Store, other: str, index: Callable[[], Index], *, door: str, subject: str, look: bool = False
) -> tuple[Joined, RemoteTombstones | None]:
    """Join another history, and clear away what it has forgotten. Killed in the midst of it, the next sync or
    `forget` brings that to its end. With `look` say what would be, and where the words would stand still."""
    head = store.history.head()
    fork = store.history.fork(head, other) if head else None
    new = _new(store.history, other, [rev for rev in (head, fork) if rev])
    foreseen = join(store, other, door=door, subject=subject, look=True) if look or new else Joined(Merge({}))
    files = _after(store, foreseen) if new else {}
    sought = _sought(store, fork, new) if new else ()
    sought += unsaid(foreseen.along.texts, sought, files.values(), store.config.redact)
    if look:
        heard = RemoteTombstones(tuple(sorted(new)), traces.within(files, sought)) if sought else None
        return foreseen, heard
    if not sought:
        return join(store, other, door=door, subject=subject), None
    ids = {*new, *foreseen.along.ids(files)}
    clearing = Clearing(store, index)
    with clearing.alone():
        begun = clearing.begin(new, ids, sought)
        try:
            done = join(store, other, door=door, subject=subject)
        except UaMemoryError:
            begun.unlink(missing_ok=True)
            raise
        return done, RemoteTombstones(tuple(sorted(new)), clearing.end(begun, sought, ids)[1])


def _after(store: Store, foreseen: Joined) -> dict[str, bytes]:
    """The files as they would be."""
    there = {**dict(statements.texts(store)), **foreseen.merge.files}
    return {path: data for path, data in there.items() if data is not None}


def _new(history: History, other: str, ours: Sequence[str]) -> dict[str, Tombstone]:
    """What the other has forgotten since both last met. What was forgotten and taken back here is not."""
    known = {block for rev in ours for block in stones(history.read(rev, PATH))}
    return {name: stone for name, stone in stones(history.read(other, PATH)).items() if name not in known}


def _sought(store: Store, fork: str | None, new: dict[str, Tombstone]) -> tuple[Needle, ...]:
    """What was said here under these ids, now and when both last met, and what says the same."""
    history, forgotten = store.history, Tombstones(new, store.config.redact)
    here = list(statements.texts(store))
    before = [path for path, data in here if any(f"^{written_id(block)}".encode() in data for block in new)]
    old = zip(before, history.read_all([(fork, path) for path in before]), strict=True) if fork else ()
    said = [
        record.text
        for path, data in (*here, *old)
        if data
        for record in document.parse(data, path).records
        if isinstance(record, Statement) and forgotten.forbid(record)
    ]
    return needles_words(dict.fromkeys(said), store.config.redact)


# -- syncing -----------------------------------------------------------------------------------------------
# `sync`: fetch, merge, push, and again where somebody else was faster. Nothing is forced, but for one
# thing: the history from after a purge takes the place of the one from before it, which is told.
#
# The network is waited for without the bank's lock: only the merge is a revision.


TRIES = 5
LOCKED = "lock"
"""Of git's reasons those that a file is the cause of, which a killed git may have left."""


@dataclass(frozen=True, slots=True)
class Synced:
    """What a sync did: what came in and from how many revisions, how many went out, where both stand now.

    `revision` is None where a trial changed nothing, or while a commit is owed.
    """

    remote: str
    address: str
    merge: Merge
    received: int
    sent: int
    revision: str | None
    notes: tuple[str, ...] = ()
    trial: bool = False
    forced: tuple[str, str] | None = None
    """The revision that the remote's branch was taken back from, and the one it has now: after a purge
    here."""
    followed: Followed | None = None
    """A purge of another machine that was done here, too."""
    heard: RemoteTombstones | None = None
    """What another machine has forgotten, and this one now, too."""


def sync(
    store: Store, address: str | None = None, *, door: str, index: Callable[[], Index], trial: bool = False,
    backup: Path | None = None,
) -> Synced:  # fmt: skip
    """Bring this bank and its remote together. `address` sets the remote, once; with `trial` nothing but
    what was fetched is written. `backup` is a file outside the bank for the history as it was, where another
    machine has purged it. NotFound without a remote, Conflict where histories do not belong together,
    Busy where another sync is at work, GitFailed where the remote cannot be reached or refuses."""
    store.make_state()
    with locked(store.bank.state / "sync.lock", store.config.lock_seconds):
        name, url, first = _remote(store, address)
        syncing = _Syncing(store, name, url, first, door, trial, Following(store, index, backup, door))
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
        raise Usage(
            "this bank has a remote already", where=shown(there[1]),
            mend=f"ua-memory git remote set-url {there[0]} {shlex.quote(shown(address))}",
        )  # fmt: skip
    if address and not there:
        return REMOTE, history.address(address), True
    if not there:
        raise NotFound("this bank has no remote", mend="ua-memory sync --remote ADDRESS")
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
    following: Following
    received: int = 0
    sent: int = 0
    merge: Merge = field(default_factory=lambda: Merge({}))
    notes: list[str] = field(default_factory=list)
    forced: tuple[str, str] | None = None
    followed: Followed | None = None
    heard: RemoteTombstones | None = None

    def together(self) -> Synced:
        store, history = self.store, self.store.history
        if any(not one.done and not one.sync for one in purge.unfinished(store)):
            raise Conflict(
                "a purge was cut short here", where=str(store.bank.root), mend="ua-memory forget --purge"
            )
        self.notes += prepare(store, look=self.trial)
        if not self.trial and any(store.bank.pending.glob(f"{BEGUN}*.json")):
            Clearing(store, self.following.index).finish()
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
            self.following.finish()
            if self.first and (said := history.set_head(self.url)):
                self.notes.append(said)
        head = None if self.trial else history.head()
        return Synced(
            self.name, shown(self.url), self.merge, self.received, self.sent, head, tuple(self.notes),
            self.trial, self.forced, self.followed, self.heard,
        )  # fmt: skip

    def _unlock(self, address: str = "") -> None:
        """Remove what a killed git has left locked here, or in a folder that is pushed to."""
        gone = process.remove(self.store.history.locks(address))
        self.notes += [f"removed a lock that a killed git had left: {file}" for file in gone]

    def _refused(self, why: str) -> UaMemoryError:
        """Why nothing could be pushed, at the last attempt."""
        there = shown(self.url)
        if LOCKED not in why:
            return Busy("others push at the same moment, again and again", where=there, mend="try again")
        found = re.search(r"'([^']*\.lock)'", why)
        name = found[1] if found else f"{self.store.history.ref()}.lock"
        if held := [lock for lock in self.store.history.locks(self.url) if lock.held]:
            mend = f"try again ({held[0].held}); ua-memory sync removes it once no git can be at work there"
        else:
            mend = f"on the machine that has it, if no git is at work there: rm {shlex.quote(name)}"
        return Busy(f"the remote's branch is locked: {why}", where=there, mend=mend)

    def _once(self) -> str:
        """Bring in what the remote offers and push; git's reason where it would not take it just now."""
        history, lease = self.store.history, ""
        offered = history.offered(self.url)
        if offered and self.following.pending(self.name, offered):
            lease = offered if self._carried(offered) else ""
        if not lease and offered and (not history.holds(offered) or _rewritten(history, self.name, offered)):
            self._take(self._received())
        head = history.head()
        if head == offered and head and not self.trial and history.agreed(self.name) != head:
            history.agree(self.name, head)
        if head is None or head == offered:
            return ""
        known = offered if offered and history.has(offered) else None
        refuse_push(history, known, head)
        new = history.number(known, head)
        if self.trial:
            self.sent = self.sent if lease else new
            self.forced = (lease, head) if lease else None
            return ""
        if why := history.push(self.name, head, to=self.url if self.first else "", instead=lease):
            self.sent = 0
            return why
        self.sent += new
        self.forced = (lease, head) if lease else self.forced
        return ""

    def _take(self, done: Joined) -> None:
        self.received += done.revisions
        dropped = (*self.merge.dropped, *done.merge.dropped)
        self.merge = done.merge if done.merge.files or not self.merge.files else self.merge
        self.merge = replace(self.merge, dropped=dropped)
        self.notes += [*done.notes, *(done.result.notes if done.result else ())]

    def _received(self) -> Joined:
        history = self.store.history
        with history.fetched(self.url, name=self.name) as other:
            if _rewritten(history, self.name, other):
                done, self.followed = self.following.follow(self.name, other, self._subject, trial=self.trial)
                return done
            done = self._joined(other)
            if not self.trial:
                history.agree(self.name, other)
        return done

    def _carried(self, offered: str) -> bool:
        """Bring in what the remote has on top of a history that was purged here; whether that takes its
        place."""
        found = self.following.carry(self.name, self.url, offered, trial=self.trial)
        if found is None:
            return False
        tip, number, purged = found
        if self.trial:
            self.received, self.sent = number, self.store.history.number(None, str(self.store.history.head()))
        elif purged:
            done, self.followed = self.following.follow(self.name, tip, self._subject, trial=False)
            self._take(done)
        elif not self.store.history.holds(tip):
            self._take(self._joined(tip))
        return True

    def _joined(self, other: str) -> Joined:
        index = self.following.index
        done, heard = joined(self.store, other, index, door=self.door, subject=self._subject, look=self.trial)
        self.heard = heard or self.heard
        return done

    @property
    def _subject(self) -> str:
        return f"sync: bring in {self.name}"


def _rewritten(history: History, name: str, other: str) -> bool:
    agreed = history.agreed(name)
    return agreed is not None and history.has(other) and not history.is_within(agreed, other)
