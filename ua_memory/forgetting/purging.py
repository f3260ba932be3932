"""Purging: what was forgotten, out of the history as well. A backup lies outside of the bank until its owner
deletes it; so long the purge is not finished, and `status` says so."""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from ua_memory import markdown, tombstones
from ua_memory.errors import NotFound, StillThere, Usage
from ua_memory.forgetting import searching
from ua_memory.forgetting.changing import Changing
from ua_memory.forgetting.derived import Deriving
from ua_memory.forgetting.plan import Target
from ua_memory.forgetting.words import MARK, Needle, needles
from ua_memory.history import History, rewriting
from ua_memory.history.kept import unmarked
from ua_memory.paths import CORE_NAMES, LOGS, git_around, is_truth
from ua_memory.records import Fact, Tombstone, written_id
from ua_memory.statements import Statement
from ua_memory.store import Store, aside, swap
from ua_memory.wording import counted

if TYPE_CHECKING:
    from ua_memory.forgetting.searching import Searched

RECORD = "purges.json"
WORK = "purge-work"
REWROTE = "Rewrote"
"""The trailer of a purge with `REF OLD NEW` for each ref that was rewritten."""


@dataclass(frozen=True, slots=True)
class Purging:
    """What a purge would do: the ids that leave the history, the refs that are rewritten, the contents that
    change, and what of the owner's is let go of: remotes' branches, which a fetch brings again."""

    ids: tuple[str, ...]
    refs: tuple[rewriting.Ref, ...]
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
        return rewriting.Ref(name, "").short


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
    rewriting.refuse(store.history)
    paths = rewriting.named_objects(store.history)
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
    for name, kind, data in rewriting.all_objects(store.history):
        if kind == b"blob" and name in paths:
            new = without(data, paths[name], chosen, sure, store.config.redact)
            if new != data and name in here:
                if any(needle.within(data) for needle in sure):  # another file of the owner's repository
                    raise _still(paths[name])
                citing.add(paths[name])
            elif new != data:
                contents[name] = new
    remotes = [
        ref.name.removeprefix("refs/remotes/") for ref in rewriting.refs(store.history, ["refs/remotes/*"])
    ]
    refs = rewriting.refs(store.history)
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
    for name, kind, data in rewriting.all_objects(store.history):
        path = paths.get(name, "")
        if kind == b"blob" and (not path or is_truth(path)) and path != tombstones.PATH:
            lines.update(data.split(b"\n"))
            if any(mark in data for mark in marks):
                for record in markdown.parse(data, path or "memory/unknown.md").records:
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
        items = markdown.parse(line, "memory/unknown.md").of(Fact) if text[:1] in "-*+0123456789" else ()
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
        records = (r for r in markdown.parse(data, path).records if isinstance(r, Statement))
        targets = [Target(r.place, r.text, r) for r in records if not _names(r).isdisjoint(ids)]
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
        aside.sweep(store.bank.state)
        rewriting.back_up(store.history, backup)
        note(store, Unfinished(str(backup), f"{store.now():%Y-%m-%d}", False))
        patterns = [(needle.pattern.pattern, int(needle.pattern.flags)) for needle in planned.needles]
        met = rewriting.refs(store.history, ["refs/remotes/*"])
        rewrote = rewriting.rewrite(store.history, backup, work, planned.contents, patterns)
        became = rewriting.became(work)
        rewriting.let_go(store.history, work)
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
    proof = searching.look(store, planned.needles, objects=True)
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
