"""How a query is read before anything is searched: its time, whom it names, the terms it is looked up by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, tzinfo

from ua_memory import dates
from ua_memory.index.terms import clean, read_query
from ua_memory.index.words import Words
from ua_memory.names import entities
from ua_memory.queries import Wanted
from ua_memory.recall.asked import misspelt


@dataclass(frozen=True, slots=True)
class Explained:
    """What was understood.

    `time` is what the dates say, `entities` the names as the query writes them, `terms` what the keyword arm
    looks for (OR-ed), `phrases` what was quoted and is required. `meant` is {term that the bank does not
    have: the word it is taken for}; `why` says why the query was skipped or condensed, if it was.
    """

    time: dates.Reading
    entities: tuple[str, ...]
    terms: tuple[str, ...]
    phrases: tuple[str, ...] = ()
    meant: Mapping[str, str] = field(default_factory=dict)
    why: str = ""


def explain(
    wanted: Wanted, now: datetime, zone: tzinfo | None = None, words: Words | None = None
) -> Explained:
    """Read a query that is asked at `now`; days are those of `zone`, else of `now`. What is misspelt is told
    by what the index `words` has."""
    query = clean(wanted.text)
    time = dates.read(query, now, zone)
    rest = query
    for at, to in time.at:  # what was read as a date names nobody
        rest = rest[:at] + "\0" * (to - at) + rest[to:]
    read = read_query(query)
    phrases = tuple(" ".join(each) for each in read.phrases)
    meant = misspelt(words, read) if words else {}
    return Explained(time, entities(rest), read.terms, phrases, meant, wanted.why)
