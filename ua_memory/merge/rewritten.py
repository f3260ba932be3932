"""A history from before a purge held against the one from after it: which commit became which, and whether
what the new one lacks is covered by the records of the purge. Anything else is refused, and named."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ua_memory.errors import Conflict
from ua_memory.forgetting.recorded import Records, covered
from ua_memory.forgetting.words import MARK, Needle
from ua_memory.history import History
from ua_memory.history.replaying import NAME, Entry, Node, brought, contents, differences, nodes, replay
from ua_memory.history.revisions import NOBODY

MEND = "nothing was changed here; docs/sync.md, A rewritten history, tells what to do"


@dataclass(frozen=True)
class Pairing:
    """Two histories side by side: what the old commits are now, and those that only the old one has."""

    new: str
    """Where the new history stands."""
    mapped: Mapping[str, str]
    own: Sequence[Node]
    contents: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """{(path, old blob): new blob} of what was seen to be covered."""
    walked: Sequence[Node] = ()


def pair(history: History, old: str, new: str, must: str | None, records: Records) -> Pairing:
    """Find for each commit of an old history what it is in the new one. Of those that `must` leads to each
    has to be there; the others may be nobody else's yet, and are not what another machine did in the same
    second. Conflict names the commit, and the path where it is one, that no record covers."""
    walked = nodes(history, old, new)
    # Not only what `old` has not: who was killed after both were joined has all of it.
    there = nodes(history, new, walked[0].parents[0] if walked and walked[0].parents else None)
    needed = {node.id for node in nodes(history, must, new)} if must else set[str]()
    offered: dict[tuple[tuple[str, ...], bytes, bytes], list[Node]] = {}
    for node in there:
        offered.setdefault((node.parents, node.author, node.committer), []).append(node)
    mapped: dict[str, str] = {}
    pairs: list[tuple[Node, Node]] = []
    own: list[Node] = []
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


def _may_be(history: History, old: Node, new: Node, records: Records) -> bool:
    """Whether one commit can have become another by what is recorded."""
    try:
        _covered(history, [(old, new)], records)
    except Conflict:
        return False
    return True


def _subject(node: Node) -> str:
    return node.message.partition(b"\n")[0].decode("utf-8", "replace")[:60]


def _says_the_same(old: bytes, new: bytes, mapped: Mapping[str, str], records: Records) -> bool:
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
    history: History, pairs: Sequence[tuple[Node, Node]], records: Records
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


def _is_covered(each: Entry, data: Mapping[str, bytes], paths: set[str], records: Records) -> bool:
    if NOBODY in each.blobs or each.modes[0] != each.modes[1] or each.modes[0][:3] != "100":
        return False
    before, after = (data[blob] for blob in each.blobs)
    return records.covers(before, after, [each.path, *sorted(paths - {each.path})])


def onward(
    history: History, pairing: Pairing, records: Records, sought: Sequence[Needle],
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


def needles(history: History, pairing: Pairing, records: Records, agreed: str | None = None) -> list[Needle]:
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
