"""Statements: what has a block id, found by it, and given one where something must cite it."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TypeVar

from ua_memory import markdown
from ua_memory.errors import CannotWrite, Malformed, NotFound, TooLarge, Usage
from ua_memory.records import Fact, Observation, Opinion, Proof, written_id
from ua_memory.store import Draft, Store

ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"

Statement = Fact | Observation | Opinion
"""What has a block id."""
S = TypeVar("S", Fact, Observation, Opinion, Statement)


def new_id() -> str:
    """Ten base32 characters: 50 bits, never used again."""
    bits = secrets.randbits(50)
    return "".join(ALPHABET[bits >> shift & 31] for shift in range(0, 50, 5))


def name_of(fact: Fact) -> str:
    """What a trailer calls a fact: `^id`, or `path#texthash` while it has no id (a person's line)."""
    return f"^{fact.ref}" if fact.ref else f"{fact.place.path}#{markdown.texthash(fact.text)}"


def cited(draft: Draft, fact: Fact) -> Fact:
    """The fact as it stands in the draft now, with an id that it is given if it has none.

    Appending ` ^id` is the one change that is made to a person's line, and below an agent's heading the word
    that it is a person's, which having no id said until then. Malformed where the line is not there
    any more, or cannot take one.
    """
    path = fact.place.path
    there = [f for f in markdown.parse(draft.read(path), path).of(Fact) if f.text == fact.text]
    if fact.id:
        there = [f for f in there if f.id == fact.id]
    if not there:
        raise Malformed("this line has changed meanwhile", where=fact.place.citation, mend="try again")
    found = next((f for f in there if f.id), there[0])
    if found.id:
        return found
    block = new_id()
    named = _placed(markdown.with_id(draft.read(path), found, block), path, block)
    draft.write(path, named[0], removes=[found])
    if named[1].said_by != found.said_by:  # typed below an agent's heading, which would now speak for it
        line = named[1].place.line
        indent = re.match(r"\s*(?:\S+\s+)", markdown.parse(named[0], path).lines[line - 1])
        said = f"{' ' * len(indent[0] if indent else '  ')}- origin: {found.said_by}"
        draft.write(path, markdown.insert_after(named[0], named[1].place.end, [said]), removes=[named[1]])
    return _placed(draft.read(path), path, block)[1]


def _placed(data: bytes, path: str, block: str) -> tuple[bytes, Fact]:
    return data, next(f for f in markdown.parse(data, path).of(Fact) if f.id == block)


def texts(store: Store) -> Iterator[tuple[str, bytes]]:
    """Path and bytes of every markdown file that may be searched; what cannot be read is left out, and
    `audit.file_problems` names it."""
    seen = store.survey()
    for path in (file.path for file in seen.files if file.path.endswith(".md")):
        try:
            yield path, store.history.blob(seen.held[path]) if path in seen.held else store.read(path)
        except (CannotWrite, NotFound, TooLarge, Usage, OSError):  # no permission, gone, no name of ours
            continue


def having(store: Store, block: str, paths: Sequence[str] | None = None) -> Iterator[Statement]:
    """All that has a block id, as it stands in a file or by its `ref`, in the given files, else in all."""
    written = written_id(block)
    for path, data in texts(store) if paths is None else some(store, paths):
        if written and written.encode("utf-8", "replace") in data:
            for record in markdown.parse(data, path).records:
                if isinstance(record, Statement) and record.id and block in (record.ref, record.id):
                    yield record


def find(store: Store, block: str, paths: Sequence[str] | None = None) -> Statement:
    """What has a block id (`^id`, `id` or a `ref`), looked for in the given files, else in all: the first.
    NotFound. What a person means by an id, `excerpts.find` tells."""
    wanted = block.removeprefix("^")
    for record in having(store, wanted, paths):
        return record
    raise NotFound("nothing has this id", where=f"^{wanted}", mend="ua-memory search")


def by_ref(records: Iterable[S]) -> dict[str, S]:
    """{ref: the statement} of those that have an id. An id that a person typed is there by itself, too, where
    it stands in one file alone: the file in a link to it is a hint then."""
    found: dict[str, S] = {}
    files: dict[str, set[str]] = {}
    for one in records:
        if one.id and one.ref:
            found[one.ref] = one
            files.setdefault(one.id, set()).add(one.place.path)
    return found | {str(one.id): one for one in list(found.values()) if len(files[str(one.id)]) == 1}


def linked(link: Proof | markdown.Citation, found: Mapping[str, S]) -> S | None:
    """What a link means, of `by_ref`."""
    return found.get(link.ref) or found.get(link.id)


def hearsay(record: object, find: Callable[[str], Statement]) -> bool:
    """Whether nobody of the house has said it: an untrusted fact, or an observation, worded by no person, of
    which all facts that still stand are untrusted."""
    if isinstance(record, Fact):
        return record.untrusted
    if not isinstance(record, Observation) or record.origin == "person":
        return False
    there = []
    for proof in record.proofs:
        with suppress(NotFound):
            there.append(find(f"^{proof.ref}"))
    return bool(there) and all(isinstance(fact, Fact) and fact.untrusted for fact in there)


def some(store: Store, paths: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """Path and bytes of these files, as far as they are there."""
    for path in paths:
        try:
            yield path, store.truth(path)
        except NotFound:
            continue
