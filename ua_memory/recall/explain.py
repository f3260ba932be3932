"""How a query is read before anything is searched: its time, whom it names, the terms it is looked up by."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, tzinfo

from ua_memory import dates
from ua_memory.index.terms import clean, read_query
from ua_memory.names import entities


@dataclass(frozen=True, slots=True)
class Explained:
    """What was understood.

    `time` is what the dates say, `entities` the names as the query writes them, `terms` what the keyword arm
    looks for (OR-ed), `phrases` what was quoted and is required.
    """

    time: dates.Reading
    entities: tuple[str, ...]
    terms: tuple[str, ...]
    phrases: tuple[str, ...] = ()


def explain(query: str, now: datetime, zone: tzinfo | None = None) -> Explained:
    """Read a query that is asked at `now`; days are those of `zone`, else of `now`."""
    query = clean(query)
    time = dates.read(query, now, zone)
    rest = query
    for at, to in time.at:  # what was read as a date names nobody
        rest = rest[:at] + "\0" * (to - at) + rest[to:]
    read = read_query(query)
    return Explained(time, entities(rest), read.terms, tuple(" ".join(each) for each in read.phrases))
