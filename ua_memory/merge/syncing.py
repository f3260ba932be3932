"""`sync`: fetch, merge, push, and again where somebody else was faster. Nothing is forced, but for one thing:
the history from after a purge takes the place of the one from before it, which is told.

The network is waited for without the bank's lock: only the merge is a revision.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ua_memory.errors import Busy, Conflict, NotFound, UaMemoryError, Usage
from ua_memory.forgetting import purging
from ua_memory.forgetting.clearing import BEGUN, Clearing
from ua_memory.history import History, locks
from ua_memory.history.remotes import REMOTE, shown
from ua_memory.merge.banks import Merge
from ua_memory.merge.following import Followed, Following
from ua_memory.merge.heard import Heard, joined
from ua_memory.merge.joining import Joined, prepare
from ua_memory.merge.refusing import refuse_push
from ua_memory.store import Store
from ua_memory.store.lock import locked

if TYPE_CHECKING:
    from ua_memory.index.sync import Index

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
    heard: Heard | None = None
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
    heard: Heard | None = None

    def together(self) -> Synced:
        store, history = self.store, self.store.history
        if any(not one.done and not one.sync for one in purging.unfinished(store)):
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
        gone = locks.remove(self.store.history.locks(address))
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
