"""Queries as they came to a door: each searched for as it was read, or skipped and told why."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from ua_memory.config import Config
from ua_memory.index.current import broken
from ua_memory.index.reading import Refresh
from ua_memory.index.sync import Index
from ua_memory.index.words import Words
from ua_memory.queries import Wanted, read_query
from ua_memory.recall.explain import Explained, explain
from ua_memory.recall.search import Answer, search_many


def wanted(query: str, config: Config) -> Wanted:
    """What of a query a person asked, by a bank's settings."""
    return read_query(query, config.long_query, config.longest_query)


def answered(
    index: Index,
    queries: Sequence[str],
    config: Config,
    limit: int | None = None,
    min_score: float | None = None,
    **how: Any,
) -> list[Answer]:
    """An Answer for each query, in order, as `search_many` gives it; what is skipped has no hits. `limit` and
    `min_score` are the settings' where they are not given."""
    how["limit"] = config.search_limit if limit is None else limit
    how["min_score"] = config.min_score if min_score is None else min_score
    every = [wanted(query, config) for query in queries]
    texts = [one.text for one in every if not one.skipped]
    try:
        found = iter(search_many(index, texts, **how))
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        if not broken(error):
            raise
        why = str(error)
        found = iter(search_many(index, texts, **{**how, "refresh": lambda: _anew(index, why)}))
    answers = [Answer(()) if one.skipped else next(found) for one in every]
    return [
        replace(answer, notes=(one.why, *answer.notes)) if one.why else answer
        for one, answer in zip(every, answers, strict=True)
    ]


def _anew(index: Index, why: str) -> Refresh:
    """Words made anew from the files: they are damaged in a place that the refresh had no reason to read."""
    with index.turn:
        index.close()
        index.shelf.discard()
        done = index.refresh(vectors=False)
    return replace(done, notes=(*done.notes, f"the word index was damaged ({why}); rebuilt"))


def explained(query: str, config: Config, now: datetime, words: Words | None) -> Explained:
    """How what is asked in a query is read at `now`."""
    return explain(wanted(query, config), now, config.zone, words)
