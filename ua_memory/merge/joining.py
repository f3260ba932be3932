"""Bringing another copy of the bank in: its history joined to this one's, its files merged into these.

One revision, as any other: recorded before a file is touched, finished by the next command if it is killed.
"""

from __future__ import annotations

import contextlib
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from ua_memory import bank
from ua_memory.errors import CannotWrite, ChangedOnDisk, Conflict, Held, NotFound
from ua_memory.history import blob_id
from ua_memory.merge.banks import Merge, merge
from ua_memory.merge.burying import Dropped, buried
from ua_memory.merge.refusing import refuse
from ua_memory.merge.units import read as read_units
from ua_memory.paths import BESIDE, CORE_NAMES, SETTINGS, is_truth
from ua_memory.store import Result, Store, swap

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
        self, ours: Callable[[str], bytes | None], edited: Iterable[str]
    ) -> tuple[Merge, Mapping[str, str]]:
        """The files merged, and {path: blob id} of what the other has otherwise and is no memory."""
        history, fork = self.store.history, self.fork
        head = history.head()
        there = history.differing(fork, self.other)
        here = history.differing(fork, head) if head else {}
        refuse(history, self.other, there)
        paths = sorted({path for path in (*there, *here, *edited) if is_truth(path)})
        old = history.blobs(paths, rev=fork) if fork and paths else {}
        new = {path: there[path][1] if path in there else old.get(path, "") for path in paths}
        wanted = sorted({blob for blob in (*old.values(), *new.values()) if blob})
        read = dict(zip(wanted, history.read_all([(blob, "") for blob in wanted]), strict=True))
        base = {path: read[blob] or b"" for path, blob in old.items()}
        theirs = {path: read[blob] or b"" for path, blob in new.items() if blob}
        mine = {path: data for path in paths if (data := ours(path)) is not None}
        left, right, dropped = buried(base, mine, theirs, self.store.config.redact)
        done = merge(left if self.fresh else base, left, right, self.other)
        # What was taken out before it came to the merge is told as well.
        had, has = (set(read_units(files).units) for files in (mine, left))
        gone = [name for kind, name in sorted(had - has) if kind == "id"]
        gone = [*done.forgotten, *(name for name in gone if name not in done.forgotten)]
        went = done.went + len(gone) - len(done.forgotten)
        done = replace(done, went=went, forgotten=(*gone,), dropped=(*dropped,))
        return done, {path: blob for path, (_, blob) in there.items() if not is_truth(path)}


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
        done, _ = meeting.merged(lambda path: _clean(path, _read(store, path), cleaned), changed)
        return Joined(_placed(store, done, other), number)
    with store.revision(OP, door=door) as draft:
        if history.holds(other):
            return Joined(Merge({}))
        edited = {*store.survey().changed, *(cleaned.files if cleaned else ())}

        def ours(path: str) -> bytes | None:
            return _clean(path, draft.read(path) if draft.exists(path) else None, cleaned)

        done, strange = meeting.merged(ours, edited)
        if cleaned:
            # A file that goes whole, and that nobody else has, is in no merge.
            whole = {path: None for path, (_, after) in cleaned.files.items() if after is None}
            done = replace(done, files={**whole, **done.files})
            cleaned.look(done.files)
        held = [path for path, touched in draft.touched.items() if touched.held]
        if held:
            raise Held("facts disappeared here all at once", where=held[0], mend="ua-memory status")
        draft.carried, notes = _carried(store, strange, meeting)
        was = history.blobs(sorted(draft.carried)) if draft.carried else {}
        for path, data in done.files.items():
            if data is not None:
                draft.write(path, data, restored=True)
            elif draft.exists(path):
                draft.delete(path)
        draft.joins, draft.even_if_empty, draft.subject = other, True, subject
        draft.trailers["Joins"] = [other]
    notes += _brought_along(store, draft.carried, was)
    done = _placed(store, done, other, draft.result.revision)
    return Joined(done, number, draft.result, tuple(notes))


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
    there = _settings(history.read(other, SETTINGS))
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


def _settings(data: bytes | None) -> dict[str, object] | None:
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


# -- files that are no memory ------------------------------------------------------------------------------


def _carried(
    store: Store, strange: Mapping[str, str], meeting: Meeting
) -> tuple[dict[str, bytes | None], list[str]]:
    """What else a bank of its own has in its repository: taken where only the other changed it."""
    if not strange:
        return {}, []
    if not store.bank.own:
        raise Conflict(
            "the other history has files that are no memory", where=", ".join(sorted(strange)[:SHOWN]),
            mend="give the trail a remote of its own: ua-memory git remote set-url origin ADDRESS",
        )  # fmt: skip
    history, fork = store.history, meeting.fork
    head = history.head()
    here = history.differing(fork, head) if head else {}
    there = history.differing(fork, meeting.other)
    plain = not head or history.is_within(head, meeting.other)
    linked = [path for path in strange if there[path][0][:3] not in ("100", "")]
    if linked and not plain:
        raise Conflict("links and submodules are not merged here", where=linked[0], mend="git pull")
    both = sorted(path for path in strange if path in here and here[path] != there[path])
    data = {
        path: history.blob(blob) if blob else None
        for path, blob in strange.items()
        if there[path][0] != "160000"
    }
    notes = [
        f"{path} was changed on both machines; this one's stands, {meeting.other[:10]} has the other"
        for path in both
    ]
    return {path: each for path, each in data.items() if path not in both}, notes


def _brought_along(store: Store, carried: Mapping[str, bytes | None], was: Mapping[str, str]) -> list[str]:
    """Bring files in the folder along that are no memory, where nobody has changed them; what was not."""
    notes = []
    for path, data in carried.items():
        file = store.bank.root / path
        if not _ours(store.bank.root, path):
            notes.append(f"{path} was not written")
            continue
        here = file.read_bytes() if file.is_file() else None
        if (here is None) != (path not in was) or (here is not None and blob_id(here) != was[path]):
            if here != data:
                notes.append(f"{path} differs from the repository's: see git status")
            continue
        try:
            if data is None:
                file.unlink(missing_ok=True)
            else:
                file.parent.mkdir(parents=True, exist_ok=True)
                fresh = file.with_name(f".ua-{file.name[:100]}.fresh")
                fresh.unlink(missing_ok=True)
                swap.write(fresh, data)
                fresh.replace(file)
        except OSError as error:
            raise CannotWrite(error.strerror or str(error), where=str(file), mend="git status") from error
    return notes


def _ours(root: Path, path: str) -> bool:
    """Whether a path stays in the folder, outside of what git and we keep there."""
    here = root
    for part in path.split("/"):
        here = here / part
        if part in ("", ".", "..", BESIDE) or part.lower() == ".git" or here.is_symlink():
            return False
    return True
