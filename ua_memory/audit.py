"""The audit trail: what was done, by whom; taking it back; and checking that every promise holds."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from ua_memory import facts, markdown, redaction
from ua_memory.errors import Conflict, GitFailed, Malformed, NotFound, Usage
from ua_memory.history import BlameLine, Revision
from ua_memory.paths import LOGS
from ua_memory.records import Fact, Observation, Opinion, Place, Problem, Tombstone
from ua_memory.store import Store, saves
from ua_memory.store.draft import Draft, Result
from ua_memory.store.survey import scan
from ua_memory.store.threeway import Clash, merge


@dataclass(frozen=True, slots=True)
class Undone:
    """A revision that was taken back, and the one that did it."""

    revision: Revision
    result: Result


def log(
    store: Store, *, about: str | None = None, op: str | None = None, limit: int | None = 20
) -> list[Revision]:
    """Revisions, newest first: all, those of a file, or those that name a fact (`^id`)."""
    grep = [f"Memory-Op: {op}"] if op else []
    if about and about.startswith("^"):
        place = facts.find(store, about).place
        named = {r.id for r in store.history.log(grep=[*grep, f"Facts: {about}"])}
        wrote = {
            b.revision
            for b in store.history.blame(place.path, store.read(place.path), lines=(place.line, place.end))
        }
        return [r for r in store.history.log([place.path], grep=grep) if r.id in named | wrote][:limit]
    return store.history.log([about] if about else [], grep=grep, limit=limit)


def diff(store: Store, revision: str | None = None) -> str:
    """What a revision changed; without one, what people changed by hand that is not committed yet."""
    if revision is None:
        changed = sorted(store.survey().changed)
        return store.history.diff("HEAD", None, changed) if changed and store.history.head() else ""
    sha = store.history.resolve(revision)
    return store.history.diff(_parent(store, sha), sha)


def blame(store: Store, target: str) -> list[BlameLine]:
    """Who wrote each line of `PATH`, `PATH:LINE`, `PATH:FROM-TO` or the fact `^id`."""
    if target.startswith("^"):
        place = facts.find(store, target).place
        return store.history.blame(place.path, store.read(place.path), lines=(place.line, place.end))
    path, _, span = target.partition(":")
    data = store.read(path)
    if not store.history.blobs([path]):
        raise NotFound("no revision has this file yet", where=path, mend="ua-memory status")
    return store.history.blame(path, data, lines=line_span(span, data.count(b"\n") + 1) if span else None)


def line_span(span: str, last: int) -> tuple[int, int]:
    """`12` or `12-20` as a range of lines, its end cut at `last`. Usage for anything else."""
    match = re.fullmatch(r"(\d+)(?:-(\d+))?", span)
    if not match or not 1 <= int(match[1]) <= int(match[2] or match[1]):
        raise Usage(f"{span!r} is no line or range of lines", mend="use PATH:12 or PATH:12-20")
    if int(match[1]) > last:
        raise NotFound(f"the file has {last} lines", where=span)
    return int(match[1]), min(int(match[2] or match[1]), last)


def undo(store: Store, revision: str | None = None, *, door: str) -> Undone:
    """Take back any revision, also an old one: what came later stays. Conflict shows both sides, and
    nothing is written.

    Without a revision: restore what disappeared and is held, else take back the newest revision.
    """
    if revision is None and store.survey().held:
        return _restore_held(store, door)
    done = store.history.show(revision or "HEAD")
    return _take_back(store, done, "undo", door)


def redo(store: Store, *, door: str) -> Undone:
    """Take back the newest undo that was not redone yet."""
    for done in store.history.log(grep=["Memory-Op: undo"]):
        redone = store.history.log(grep=["Memory-Op: redo", f"Undoes: {done.id}"], limit=1)
        if not redone:
            return _take_back(store, done, "redo", door)
    raise NotFound("nothing was undone", mend="ua-memory log")


def _take_back(store: Store, done: Revision, op: str, door: str) -> Undone:
    parent = _parent(store, done.id)
    with store.revision(op, door=door) as draft:
        clashes: list[tuple[str, Clash]] = []
        for path in done.paths:
            clashes += [(path, c) for c in _take_back_file(store, draft, path, parent, done.id)]
        if clashes:
            raise Conflict(
                _shown(clashes),
                where=done.id[:10],
                mend="change the file by hand, or undo the later revision first",
            )
        if not draft.changed():
            raise Conflict("nothing of it is left to take back", where=done.id[:10], mend="ua-memory log")
        draft.trailers["Undoes"] = [done.id]
        draft.facts = list(done.trailers.get("Facts", ()))
        draft.subject = f"{op}: {done.subject}"
    return Undone(done, draft.result)


def _take_back_file(store: Store, draft: Draft, path: str, parent: str | None, sha: str) -> tuple[Clash, ...]:
    """Write into the draft what a file is without one revision's change of it."""
    then = store.history.read(sha, path)
    before = store.history.read(parent, path) if parent else None
    now = draft.read(path)
    if now == (then or b"") and before is None:
        draft.delete(path)
        return ()
    if before is None and then:
        # The day's log goes on without this revision, and keeps its title.
        before = b"".join(
            line for line in then.splitlines(keepends=True)[:2] if line.startswith(b"# ") or not line.strip()
        )
    merged = merge(then or b"", now, before or b"")
    new = merged.data
    if not merged.clashes and _headings_lost(now, new, path):
        # The revision had opened a heading that later facts came to stand under: take only its facts.
        merged = merge(then or b"", now, _without_new_facts(then or b"", before or b"", path))
        new = merged.data
    draft.write(path, new, restored=True)
    return merged.clashes


def _headings_lost(now: bytes, new: bytes, path: str) -> bool:
    """Whether some fact that stays would lose the heading that says who said it."""
    then, after = saves.keys(now, path), saves.keys(new, path)

    def said(record: object) -> object:
        return (h.client, h.session, h.origin) if (h := getattr(record, "heading", None)) else None

    return any(key in after and said(record) != said(after[key]) for key, record in then.items())


def _without_new_facts(then: bytes, before: bytes, path: str) -> bytes:
    old = saves.keys(before, path)
    for key, record in reversed(saves.keys(then, path).items()):
        if key not in old:
            then = markdown.replace_lines(then, record.place, [])
    return then


def _restore_held(store: Store, door: str) -> Undone:
    held = store.survey().held
    newest = store.history.show("HEAD")
    with store.revision("restore", door=door) as draft:
        for path, blob in held.items():
            draft.read(path)
            kept = store.history.blob(blob)
            disk = draft.touched[path].disk or b""
            # Lines the person added in the same save are kept; only what disappeared comes back.
            draft.write(path, _with_both(kept, disk), restored=True)
        draft.subject = f"restore: what disappeared from {len(held)} file{'s' if len(held) > 1 else ''}"
    return Undone(newest, draft.result)


def _with_both(trail: bytes, disk: bytes) -> bytes:
    """The trail's lines, and at their places those that only the disk has."""
    return merge(b"", trail, disk).data if not disk.strip() else _insertions_only(trail, disk)


def _insertions_only(trail: bytes, disk: bytes) -> bytes:
    from difflib import SequenceMatcher

    a, b = trail.splitlines(keepends=True), disk.splitlines(keepends=True)
    out: list[bytes] = []
    for tag, i, j, k, m in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        out += a[i:j]
        out += b[k:m] if tag in ("insert", "replace") else []
    return b"".join(line if line.endswith(b"\n") else line + b"\n" for line in out)


def _parent(store: Store, sha: str) -> str | None:
    try:
        return store.history.resolve(f"{sha}^")
    except NotFound:
        return None


def _shown(clashes: list[tuple[str, Clash]]) -> str:
    parts = [f"{len(clashes)} place{'s were' if len(clashes) > 1 else ' was'} changed again since:"]
    for path, clash in clashes[:5]:
        parts.append(f"{path}:{clash.line}")
        parts += [f"  now:    {line.decode('utf-8', 'replace').rstrip()}" for line in clash.ours]
        parts += [f"  wanted: {line.decode('utf-8', 'replace').rstrip()}" for line in clash.theirs]
    return "\n".join(parts)


def verify(store: Store) -> list[Problem]:
    """Every invariant that can be checked from the files: syntax, ids, tombstones, held files, the trail."""
    return [*_file_problems(store), *_trail_problems(store)]


def _file_problems(store: Store) -> Iterator[Problem]:
    seen: dict[str, tuple[str, Place]] = {}
    buried: set[str] = set()
    living: dict[str, Place] = {}
    for stat in store.files():
        if not stat.path.endswith(".md"):
            continue
        document = markdown.parse(store.truth(stat.path), stat.path)
        yield from document.problems
        buried |= {t.id for t in document.of(Tombstone)}
        for record in document.records:
            if not isinstance(record, Fact | Observation | Opinion) or not record.id:
                continue
            text, place = seen.setdefault(record.id, (record.text, record.place))
            living[record.id] = record.place
            if text != record.text and place.path != record.place.path:
                yield Problem(
                    stat.path,
                    record.place.line,
                    f"^{record.id} is also {place.path}:{place.line}, with another text",
                )
    for block in sorted(buried & living.keys()):
        yield Problem(living[block].path, living[block].line, f"^{block} was forgotten and is here again")
    for name in _links(store):
        yield Problem(name, 1, "a symbolic link is not read; put the file itself here")


def _links(store: Store) -> list[str]:
    root = store.bank.root
    regular = {stat.path for stat in scan(root)}
    below = [p.relative_to(root).as_posix() for p in (root / LOGS).rglob("*") if p.is_symlink()]
    return sorted(p for p in below if p not in regular)


def _trail_problems(store: Store) -> Iterator[Problem]:
    for path in sorted(store.survey().held):
        yield Problem(
            path,
            1,
            "facts disappeared all at once: `ua-memory status --accept`, or `ua-memory undo` to restore them",
        )
    if not store.history.exists:
        return
    try:
        store.history.run("fsck", "--no-dangling", "--no-progress", "--connectivity-only")
    except GitFailed as error:
        yield Problem(str(store.bank.git_dir), 1, error.what)


def secrets(store: Store) -> list[tuple[str, int, str]]:
    """(path, line, kind) of every secret in the files: people's own lines are committed as they stand."""
    found: Counter[tuple[str, int, str]] = Counter()
    for stat in store.files():
        text = store.truth(stat.path).decode("utf-8", "replace")
        for secret in redaction.find(text, store.config.redact):
            found[stat.path, text.count("\n", 0, secret.start) + 1, secret.kind] += 1
    return sorted(found)


__all__ = ["Malformed", "Undone", "blame", "diff", "line_span", "log", "redo", "secrets", "undo", "verify"]
