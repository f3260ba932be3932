"""`sync`: fetch, merge, push, and again where somebody else was faster. Nothing is ever forced.

The network is waited for without the bank's lock: only the merge is a revision.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ua_memory.errors import Busy, Conflict, NotFound, Usage
from ua_memory.history import History
from ua_memory.history.remotes import REMOTE
from ua_memory.merge.banks import Merge
from ua_memory.merge.joining import Joined, join, prepare
from ua_memory.store import Store
from ua_memory.store.lock import locked

TRIES = 5
REWROTE = "Rewrote"
"""The trailer of a purge that names each ref it rewrote."""
_SECRET = re.compile(r"(?<=://)[^/@\s]*@")


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


def sync(store: Store, address: str | None = None, *, door: str, trial: bool = False) -> Synced:
    """Bring this bank and its remote together. `address` sets the remote, once; with `trial` nothing but
    what was fetched is written. NotFound without a remote, Conflict where histories do not belong together,
    Busy where another sync is at work, GitFailed where the remote cannot be reached or refuses."""
    store.make_state()
    with locked(store.bank.state / "sync.lock", store.config.lock_seconds):
        name, url = _remote(store, address, trial)
        return _together(store, name, url, door, trial)


def shown(address: str) -> str:
    """An address without the name and password that may stand in it."""
    return _SECRET.sub("", address)


def _remote(store: Store, address: str | None, trial: bool) -> tuple[str, str]:
    store.require_settled()
    history = store.history
    if not history.exists:
        store.adopt()
    there = history.remote()
    if address and there and there[1] != address:
        raise Usage(
            "this bank has a remote already", where=shown(there[1]),
            mend=f"ua-memory git remote set-url {there[0]} ADDRESS",
        )  # fmt: skip
    if address and not there:
        if trial:
            return REMOTE, history.address(address)
        history.set_remote(address)
        there = history.remote()
    if not there:
        raise NotFound("this bank has no remote", mend="ua-memory sync --remote ADDRESS")
    return there


def _together(store: Store, name: str, url: str, door: str, trial: bool) -> Synced:
    history, received, sent = store.history, 0, 0
    merge, notes = Merge({}), list(prepare(store, look=trial))
    for _ in range(TRIES):
        offered = history.offered(url)
        refuse_purged(history, name, offered)
        if offered and (not history.holds(offered) or _rewritten(history, name, offered)):
            done = _received(store, name, url, door, trial)
            received += done.revisions
            merge = done.merge if done.merge.files or not merge.files else merge
            notes += [*done.notes, *(done.result.notes if done.result else ())]
        head = history.head()
        if head == offered and head and not trial and history.agreed(name) != head:
            history.agree(name, head)
        if head is None or trial or head == offered:
            sent = (
                history.number(offered if offered and history.has(offered) else None, head)
                if trial and head
                else sent
            )
            break
        sent += history.number(offered, head)
        if history.push(name, head):
            break
        sent = 0
    else:
        raise Busy("others push at the same moment, again and again", where=shown(url), mend="try again")
    return Synced(name, shown(url), merge, received, sent, None if trial else head, tuple(notes), trial)


def _received(store: Store, name: str, url: str, door: str, trial: bool) -> Joined:
    history = store.history
    with history.fetched(url, name=name) as other:
        if _rewritten(history, name, other):
            raise Conflict(
                "the remote's history was rewritten: it lacks revisions that this machine had from it",
                where=f"{name}, {other[:10]}",
                mend="nothing was changed here; docs/sync.md, A rewritten history, tells what to do",
            )  # fmt: skip
        done = join(store, other, door=door, subject=f"sync: bring in {name}", look=trial)
        if not trial:
            history.agree(name, other)
    return done


def _rewritten(history: History, name: str, other: str) -> bool:
    agreed = history.agreed(name)
    return agreed is not None and history.has(other) and not history.is_within(agreed, other)


def refuse_purged(history: History, name: str, offered: str | None) -> None:
    """Stop where the remote has still what was purged here: it would come back. Conflict."""
    if not offered or history.holds(offered):
        return
    purges = [done.id for done in history.log(grep=[f"{REWROTE}: "]) if done.trailers.get(REWROTE)]
    agreed = history.agreed(name)
    if purges and not (agreed and history.is_within(purges[0], agreed)):
        raise Conflict(
            "the remote still has the history that was purged here", where=name,
            mend=f"once nobody needs it, replace it yourself: ua-memory git push --force {name} HEAD",
        )  # fmt: skip
