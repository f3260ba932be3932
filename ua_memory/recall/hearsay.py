"""Beliefs that rest on what nobody of the house has said: they are no better than what they rest on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from ua_memory import trust
from ua_memory.index.tables import chunks, marks
from ua_memory.recall.arms import Ranked
from ua_memory.records import ref_of, written_id

if TYPE_CHECKING:
    from ua_memory.index.items import Item
    from ua_memory.index.words import Words


def told(words: Words, found: list[Ranked]) -> list[Ranked]:
    """The candidates; an observation of untrusted facts alone, and an opinion that cites any, have the origin
    of such a fact, and with it its label and its place. What a person worded is the person's."""
    believed = {one.item.key: one.item for one in found if one.item.proofs and one.item.origin != "person"}
    if not believed:
        return found
    whose = _whose(words, {proof for item in believed.values() for proof in item.proofs})
    origins = {key: origin for key, item in believed.items() if (origin := _origin(item, whose))}
    return [
        one._replace(item=_told(one.item, *origins[one.item.key])) if one.item.key in origins else one
        for one in found
    ]


def _told(item: Item, origin: str, client: str | None) -> Item:
    return replace(item, origin=origin, client=client)


Whose = tuple[str, str | None]
"""An origin and a client."""


def _whose(words: Words, ids: Iterable[str]) -> dict[str, Whose | None]:
    """{id: whose an untrusted fact is, None where the house has said it} of those that there are."""
    found: dict[str, Whose | None] = {}
    refs = frozenset(ids)
    for part in chunks(sorted({written_id(ref) for ref in refs})):
        query = f"SELECT id, origin, client, path FROM items WHERE id IN ({marks(part)})"
        for written, origin, client, path in words.db.execute(query, part):
            if (block := ref_of(path, written)) not in refs:
                continue
            if not trust.untrusted(origin, client or None, path):
                found[block] = None
            else:
                found.setdefault(block, (origin, client or None))
    return found


def _origin(item: Item, whose: dict[str, Whose | None]) -> Whose | None:
    there = [whose[proof] for proof in item.proofs if proof in whose]
    bad = [each for each in there if each]
    return bad[0] if bad and (item.record == "opinion" or len(bad) == len(there)) else None
