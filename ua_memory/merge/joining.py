"""Bringing another copy of the bank in: its history joined to this one's, its files merged into these.

One revision, as any other: recorded before a file is touched, finished by the next command if it is killed.
"""

from __future__ import annotations

import contextlib
import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

from ua_memory import bank
from ua_memory.errors import ChangedOnDisk, Conflict, Held, NotFound
from ua_memory.merge.along import Along, along
from ua_memory.merge.banks import Files, Merge, merge
from ua_memory.merge.burying import Dropped, buried
from ua_memory.merge.carrying import brought_along, carried
from ua_memory.merge.refusing import refuse
from ua_memory.merge.units import read as read_units
from ua_memory.paths import CORE_NAMES, SETTINGS, is_truth
from ua_memory.store import Result, Store

OP = "sync"
SHOWN = 3
_SEE = "docs/sync.md tells what to do"


@dataclass(frozen=True, slots=True)
class Joined:
    """What came in: the merge, how many revisions, and what brought it (None: nothing was to be brought)."""

    merge: Merge
    revisions: int = 0
    result: Result | None = None
    notes: tuple[str, ...] = ()
    along: Along = field(default_factory=Along)
    """What went along with what one of the machines has forgotten."""


@dataclass(frozen=True)
class Meeting:
    """Where this history and another part, and what each has otherwise since."""

    store: Store
    other: str
    fresh: bool = field(default=False)
    """This bank is as `init` made it, and becomes the other one."""
    base: str | None = None
    """What both have in common, where the history that was rewritten cannot tell."""

    @property
    def fork(self) -> str | None:
        return self.base or self.store.history.fork(self.store.history.head() or self.other, self.other)

    def merged(
        self, ours: Callable[[str], bytes | None], edited: Collection[str]
    ) -> tuple[Merge, Mapping[str, str], Along]:
        """The files merged, {path: blob id} of what the other has otherwise and is no memory, and what went
        along with what one of them has forgotten."""
        history, fork = self.store.history, self.fork
        head = history.head()
        there = history.differing(fork, self.other)
        here = history.differing(fork, head) if head else {}
        refuse(history, self.other, there)
        paths = sorted({path for path in (*there, *here, *edited) if is_truth(path)})
        went = along(self.store, fork, self.other, ours, edited)
        paths = sorted({*paths, *went.paths})
        old = history.blobs(paths, rev=fork) if fork and paths else {}
        new = {path: there[path][1] if path in there else old.get(path, "") for path in paths}
        wanted = sorted({blob for blob in (*old.values(), *new.values()) if blob})
        read = dict(zip(wanted, history.read_all([(blob, "") for blob in wanted]), strict=True))
        base = {path: read[blob] or b"" for path, blob in old.items()}
        theirs = {path: read[blob] or b"" for path, blob in new.items() if blob}
        mine = {path: data for path in paths if (data := ours(path)) is not None}
        done = together(base, mine, theirs, went, self.store.config.redact, self.other, fresh=self.fresh)
        return done, {path: blob for path, (_, blob) in there.items() if not is_truth(path)}, went


def together(
    base: Files, mine: Files, theirs: Files, went: Along, redact: Mapping[str, str], other: str = "", *,
    fresh: bool = False,
) -> Merge:  # fmt: skip
    """Both sides made one: without what either has forgotten, and what went along; then by id. `other` is the
    revision of theirs."""
    left, right, dropped = buried(base, mine, theirs, redact)
    if went.paths:
        left, right, _ = buried(base, went.here.without(mine), went.there.without(theirs), redact)
    done = merge(left if fresh else base, left, right, other)
    # A file that goes whole along, and that nobody else has, is in no merge.
    done = replace(done, files={**dict.fromkeys(mine.keys() - done.files), **done.files})
    # What was taken out before it came to the merge is told as well.
    there_now = {path: data for path, data in done.files.items() if data is not None}
    had, has, now = (set(read_units(files).units) for files in (mine, left, there_now))
    gone = [name for kind, name in sorted(had - has - now) if kind == "id"]
    gone = [*done.forgotten, *(name for name in gone if name not in done.forgotten)]
    number = done.went + len(gone) - len(done.forgotten)
    gone += sorted(went.ids(done.files) - {*gone})
    dropped += went.dropped(dropped)
    dropped = [each for each in dropped if ("id", each.id) not in now]  # its forgetting was taken back
    return replace(done, went=number, forgotten=(*gone,), dropped=(*dropped,))


def prepare(store: Store, *, look: bool = False) -> tuple[str, ...]:
    """Commit what people changed and finish what is owed, so that all of this machine's memory takes part;
    what there is to tell of it. Held where facts disappeared and nobody said whether that was meant."""
    if store.survey().held:
        raise Held(
            "facts disappeared here all at once", where=", ".join(sorted(store.survey().held)[:SHOWN]),
            mend="ua-memory undo brings them back, ua-memory status --accept lets them go",
        )  # fmt: skip
    if look:
        return ()
    store.require_settled()
    return store.adopt().notes


@dataclass(frozen=True, slots=True)
class Cleaned:
    """This machine's files without what another has purged: {path: (before, after)}, the revision that both
    have in common then, what looks at the files that come out before anything is written, and the lines of a
    person's that went."""

    files: Mapping[str, tuple[bytes, bytes | None]]
    base: str | None
    look: Callable[[Mapping[str, bytes | None]], None]
    went: tuple[Dropped, ...] = ()


def join(
    store: Store, other: str, *, door: str, subject: str, look: bool = False, cleaned: Cleaned | None = None
) -> Joined:
    """Bring in another history that was fetched; with `look` only say what would be. Conflict where the two
    are no copies of one bank."""
    history = store.history
    meeting = Meeting(store, other, _compared(store, other), cleaned.base if cleaned else None)
    number = history.number(history.head(), other)
    if look:
        changed = {*store.survey().changed, *(cleaned.files if cleaned else ())}
        done, _, went = meeting.merged(lambda path: _clean(path, _read(store, path), cleaned), changed)
        if cleaned:
            cleaned.look(done.files)
        return Joined(_placed(store, done, other), number, notes=tuple(went.notes()), along=went)
    with store.revision(OP, door=door) as draft:
        if history.holds(other):
            return Joined(Merge({}))
        edited = {*store.survey().changed, *(cleaned.files if cleaned else ())}

        def ours(path: str) -> bytes | None:
            return _clean(path, draft.read(path) if draft.exists(path) else None, cleaned)

        done, strange, went = meeting.merged(ours, edited)
        if cleaned:
            # A file that goes whole, and that nobody else has, is in no merge.
            whole = {path: None for path, (_, after) in cleaned.files.items() if after is None}
            done = replace(done, files={**whole, **done.files})
            cleaned.look(done.files)
        held = [path for path, touched in draft.touched.items() if touched.held]
        if held:
            raise Held("facts disappeared here all at once", where=held[0], mend="ua-memory status")
        draft.carried, notes = carried(store, strange, meeting.fork, other)
        was = history.blobs(sorted(draft.carried)) if draft.carried else {}
        for path, data in done.files.items():
            if data is not None:
                draft.write(path, data, restored=True)
            elif draft.exists(path):
                draft.delete(path)
        went.buried(store, draft)
        draft.joins, draft.even_if_empty, draft.subject = other, True, subject
        draft.trailers["Joins"] = [other]
    notes += [*brought_along(store, draft.carried, was), *went.notes()]
    done = _placed(store, done, other, draft.result.revision)
    return Joined(done, number, draft.result, tuple(notes), went)


def _placed(store: Store, done: Merge, other: str, merged: str | None = None) -> Merge:
    """A merge with the revisions that have what it dropped: this machine's is the one before."""
    here = ""
    with contextlib.suppress(NotFound):
        here = store.history.resolve(f"{merged}^" if merged else "HEAD") if done.dropped else ""
    changed = set() if merged else set(store.survey().changed)

    def has(each: Dropped) -> str:
        return other if each.side == "there" else "" if each.path in changed else here

    return replace(done, dropped=tuple(replace(each, revision=has(each)) for each in done.dropped))


def _clean(path: str, data: bytes | None, cleaned: Cleaned | None) -> bytes | None:
    if cleaned is None or path not in cleaned.files:
        return data
    before, after = cleaned.files[path]
    if data != before:
        raise ChangedOnDisk("it was saved meanwhile", where=path, mend="try again")
    return after


def _read(store: Store, path: str) -> bytes | None:
    with contextlib.suppress(NotFound):
        return store.read(path)
    return None


# -- whether they are one bank ---------------------------------------------------------------------------


def _compared(store: Store, other: str) -> bool:
    """See that another history is of this bank; whether this one is new, and becomes that one."""
    history = store.history
    there = settings(history.read(other, SETTINGS))
    if there is None:
        raise Conflict("that is no memory bank: it has no ua-memory.toml", where=other[:10], mend=_SEE)
    here = {"id": store.config.id, "trail": store.config.trail}
    alike = all(there.get(key, here[key]) == value for key, value in here.items())
    if alike:
        return False
    if there.get("trail", "beside") != store.config.trail:
        raise Conflict(
            "one is a git repository of its own, the other is kept beside somebody's code", where=SETTINGS,
            mend='make `trail = "…"` the same in both, which `ua-memory init` sets up; ' + _SEE,
        )  # fmt: skip
    if store.bank.own and _new(store):
        return True
    raise Conflict(
        f"these are two banks: {store.config.id} here, {there.get('id')} there", where=SETTINGS,
        mend=f'to make them one, write `id = "{there.get("id")}"` here, run `ua-memory init .`, sync again',
    )  # fmt: skip


def settings(data: bytes | None) -> dict[str, object] | None:
    """The settings of a bank as a file has them, None where it cannot be read."""
    try:
        return None if data is None else tomllib.loads(data.decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        return None


def _new(store: Store) -> bool:
    """Whether a bank is as `init` made it."""
    log = store.history.log(limit=2)
    files = {file.path for file in store.survey().files}
    made = len(log) == 1 and log[0].trailer("Memory-Op") == "init"
    return made and files <= {CORE_NAMES[0], SETTINGS} and _read(store, CORE_NAMES[0]) in (None, bank.CORE)
