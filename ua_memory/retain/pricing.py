"""What retaining a text would keep and cost, before anything is sent: tokens times the dated table."""

from __future__ import annotations

import json
from dataclasses import dataclass

from ua_memory import tokens
from ua_memory.llm import THEIRS, Endpoint, Estimate, Model, Usage, is_on_this_network, price
from ua_memory.records import Fact
from ua_memory.retain import asked, documents
from ua_memory.retain.asked import Brief
from ua_memory.retain.chunks import cut
from ua_memory.retain.drawing import TOGETHER
from ua_memory.retain.items import Item
from ua_memory.retain.own_words import own_words
from ua_memory.store import Store

_TOOL_WORDS = 350
"""Tokens that the API adds where there is a tool."""


@dataclass(frozen=True, slots=True)
class Priced:
    """A text as it would be retained: its chunks, how many of them would be read, what would be kept of
    these without a model, and, where there is a model, what it would cost."""

    item: Item
    chunks: int
    read: int
    facts: tuple[Fact, ...]
    cost: Estimate | None


def priced(store: Store, brief: Brief, item: Item, model: Endpoint | Model | None) -> Priced:
    """What one text would keep and cost. Upwards rather than down."""
    chunks = cut(item.text)
    known = documents.find(store, item.document_id) if item.document_id else None
    stands = () if known is None or item.redo or known.mode != item.mode else known.chunks
    todo = [chunk for chunk in chunks if chunk.name not in stands]
    facts = tuple(fact for chunk in todo for fact in own_words(chunk, brief).facts)
    asks = model is not None and item.mode != "chunks" and bool(todo)
    cost = _cost([chunk.text for chunk in todo], brief, model) if asks and model else None
    return Priced(item, len(chunks), len(todo), facts, cost)


def _cost(texts: list[str], brief: Brief, model: Endpoint | Model) -> Estimate:
    schema = asked.DESCRIBE if brief.mode == "verbatim" else asked.KEEP
    head = tokens.count(asked.directive(brief)) + tokens.count(json.dumps(schema)) + _TOOL_WORDS
    total, behind, grown, used, known = 0, 0, 0, Usage(), price(model.name)
    for text in texts:
        size = int(tokens.count(asked.shown(text, brief)) * THEIRS)
        if grown + 2 * len(text) > TOGETHER:
            behind = grown = 0
        fresh = size if behind else size + int(head * THEIRS)
        total += behind + fresh
        used += Usage(cache_read=behind, cache_write=fresh, output=size)
        behind += fresh + size  # the answer, about as long as the text, goes back with the next
        grown += 2 * len(text)
    free = isinstance(model, Endpoint) and is_on_this_network(model.url)
    return Estimate(model.name, total, len(texts), 0.0 if free else known.of(used) if known else None)
