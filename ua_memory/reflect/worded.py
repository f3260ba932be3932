"""Whose words an observation has: those that a person wrote over a machine's are the person's.

Nothing in the file says so. The trail does: a revision of a person that changed the text of an id, and the
text that stands there still. A file that a person brought as it was, or moved, made nobody's words theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ua_memory import markdown
from ua_memory.errors import NotFound
from ua_memory.history import MACHINE
from ua_memory.observations import FOLDER, by_person
from ua_memory.records import Observation
from ua_memory.store import Store

_Texts = Mapping[str, str]
"""Texts by id."""


def persons(store: Store, live: Iterable[Observation]) -> frozenset[Observation]:
    """Those of these observations that a person worded: no machine rewords them."""
    theirs = [*_wordings(store)]
    return frozenset(one for one in live if by_person(one) or (one.id, one.text) in theirs)


def _wordings(store: Store) -> Iterator[tuple[str, str]]:
    """(id, text) wherever a person has changed the text of an id, on disk or in the trail."""
    changed = [path for path in store.survey().changed if path.startswith(f"{FOLDER}/")]
    yield from _between(
        _texts((path, store.history.read("HEAD", path)) for path in changed),
        _texts((path, _now(store, path)) for path in changed),
    )
    for done in store.history.log([FOLDER]):
        if done.author != MACHINE[0]:
            paths = [path for path in done.paths if path.startswith(f"{FOLDER}/")]
            before = store.history.read_all([(f"{done.id}^", path) for path in paths])
            after = store.history.read_all([(done.id, path) for path in paths])
            yield from _between(
                _texts(zip(paths, before, strict=True)), _texts(zip(paths, after, strict=True))
            )


def _between(before: _Texts, after: _Texts) -> Iterator[tuple[str, str]]:
    yield from ((block, said) for block, said in after.items() if before.get(block, said) != said)


def _texts(files: Iterable[tuple[str, bytes | None]]) -> _Texts:
    found = (markdown.parse(data, path).of(Observation) for path, data in files if data)
    return {one.id: one.text for each in found for one in each if one.id}


def _now(store: Store, path: str) -> bytes | None:
    try:
        return store.truth(path)
    except NotFound:
        return None
