"""How the tool that one comes from answers a query: by its own index, read only, or by a plain look.

OpenClaw's and basic-memory's indexes are SQLite with FTS5, and their tables are asked as those tools ask
them. Their vectors are not: that would take the model they were made with.
"""

from __future__ import annotations

import json
import re
import sqlite3
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ua_memory.errors import NotFound, Usage
from ua_memory.upkeep.import_sources import SourceContents

SMALL = frozenset((
    "a", "about", "an", "and", "are", "at", "be", "been", "by", "can", "did", "do", "does", "for",
    "from", "had", "has", "have", "how", "i", "in", "is", "it", "its", "me", "my", "of", "on", "or",
    "our", "should", "that", "the", "their", "them", "there", "they", "this", "to", "us", "was", "we",
    "were", "what", "when", "where", "which", "who", "whom", "why", "will", "with", "you",
))  # fmt: skip
"""Words that say nothing of what is looked for."""

OPENCLAW_TERMS = 6

SECONDS = 30.0
"""For so long Hindsight may think about one query."""


Ask = Callable[[str, int], "list[Old]"]


@dataclass(frozen=True, slots=True)
class Old:
    """What the other tool found: where, in its own terms, and the text."""

    path: str
    text: str
    line: int = 0
    end: int = 0
    score: float = 0.0


@dataclass(frozen=True, slots=True)
class Comparison:
    """Who answers for the old side, what is to be said about that, and how to ask."""

    name: str
    note: str
    ask: Ask


def ask_backend(
    found: SourceContents, root: Path, files: Mapping[str, bytes], old: str | Path | None, home: Path
) -> Comparison:
    """The old side of a comparison: what `old` names, a URL or a file, else the index that is found, else the
    files. NotFound, Usage for a file that is no index."""
    if isinstance(old, str):
        return Comparison("Hindsight", f"asked at {old}", _recalled(old))
    if old is not None:
        if not old.is_file():
            raise NotFound("no such index", where=str(old), hint="give the other tool's SQLite file")
        asking = _index(old)
        if asking is None:
            raise Usage("no index of OpenClaw or basic-memory", where=str(old), hint="give its SQLite file")
        return asking
    for path in _places(found.source, home, root):
        asking = _index(path)
        if asking and _of_this(path, files):
            return asking
    if found.source == "hindsight":
        return Comparison(
            "words", "to compare with Hindsight itself, give its bank with --old URL", _looked(found)
        )
    note = (
        ""
        if found.source in ("markdown", "claude-code")
        else "no index of it was found (give one with --old); "
    )
    return Comparison(
        "grep", f"{note}lines ordered by how many of the query's words they have", _grepped(files)
    )


def _places(source: str, home: Path, root: Path) -> Iterator[Path]:
    """Where the indexes of a tool lie."""
    if source == "openclaw":
        for state in (root, root.parent, home / ".openclaw", home / ".clawdbot"):
            for pattern in ("agents/*/agent/*.sqlite", "memory/*.sqlite", "*.sqlite"):
                yield from sorted(state.glob(pattern))
    if source == "basic-memory":
        yield home / ".basic-memory" / "memory.db"


def _index(path: Path) -> Comparison | None:
    """How to ask the index in a file, or None where it is none that is known."""
    tables = _rows(path, "SELECT name FROM sqlite_master WHERE type = 'table'", ())
    names = {str(row[0]) for row in tables or ()}
    words = "keywords only: its vectors need the model that made them"
    if "memory_index_chunks_fts" in names:
        return Comparison("OpenClaw", f"{path}, {words}", _openclaw(path, "memory_index_chunks_fts", _some))
    if "chunks_fts" in names:
        return Comparison("Clawdbot", f"{path}, {words}", _openclaw(path, "chunks_fts", _all))
    if "search_index" in names:
        return Comparison("basic-memory", f"{path}, {words}", _basic_memory(path))
    return None


def _of_this(path: Path, files: Mapping[str, bytes]) -> bool:
    """Whether an index that lay about is of these files: it names at least one of them."""
    for query in (
        "SELECT DISTINCT path FROM memory_index_chunks_fts", "SELECT DISTINCT path FROM chunks_fts",
        "SELECT DISTINCT file_path FROM search_index",
    ):  # fmt: skip
        if any(str(row[0]) in files for row in _rows(path, query, ()) or ()):
            return True
    return False


def _rows(path: Path, query: str, values: Sequence[object]) -> list[tuple[Any, ...]] | None:
    """What a query gives, or None where the file cannot be asked so. It is never written, nor is its log."""
    name = urllib.parse.quote(str(path))
    for how in ("mode=ro", "mode=ro&immutable=1"):  # a log that may not be opened is left aside
        try:
            with closing(sqlite3.connect(f"file:{name}?{how}", uri=True)) as there:
                return there.execute(query, values).fetchall()
        except sqlite3.Error:
            continue
    return None


def words_of(query: str) -> list[str]:
    """A query's words, small letters, each once, in order."""
    return list(dict.fromkeys(re.findall(r"\w+", query.casefold())))


def _telling(query: str) -> list[str]:
    return [word for word in words_of(query) if word not in SMALL] or words_of(query)


def _all(query: str) -> str:
    return " AND ".join(f'"{word}"' for word in re.findall(r"[A-Za-z0-9_]+", query))


def _some(query: str) -> str:
    return " OR ".join(f'"{word}"' for word in _telling(query)[:OPENCLAW_TERMS])


def _openclaw(path: Path, table: str, match: Callable[[str], str]) -> Ask:
    sql = (
        f"SELECT path, text, start_line, end_line, bm25({table}) FROM {table} "
        f"WHERE {table} MATCH ? ORDER BY bm25({table}) LIMIT ?"
    )

    def ask(query: str, limit: int) -> list[Old]:
        rows = _rows(path, sql, (match(query), limit)) if words_of(query) else []
        return [
            Old(str(at), str(text), int(start), int(end), -rank / (1 - rank))
            for at, text, start, end, rank in rows or ()
        ]

    return ask


def _basic_memory(path: Path) -> Ask:
    sql = (
        "SELECT file_path, title, content_snippet, bm25(search_index) FROM search_index "
        "WHERE search_index MATCH ? ORDER BY bm25(search_index) LIMIT ?"
    )

    def ask(query: str, limit: int) -> list[Old]:
        for joined, words in ((" AND ", words_of(query)), (" OR ", _telling(query))):
            rows = _rows(path, sql, (joined.join(f'"{word}"*' for word in words), limit)) if words else []
            if rows:
                return [Old(str(at), str(text or title), score=-rank) for at, title, text, rank in rows]
        return []

    return ask


def _recalled(url: str) -> Ask:
    """Hindsight's recall over HTTP; `url` is that of a bank: http://HOST/v1/default/banks/ID."""

    def ask(query: str, limit: int) -> list[Old]:
        body = json.dumps({"query": query, "budget": "mid", "max_tokens": 2048}).encode()
        request = urllib.request.Request(
            f"{url.rstrip('/')}/memories/recall", body, {"Content-Type": "application/json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=SECONDS) as reply:
                results = json.load(reply).get("results") or []
        except (OSError, ValueError, AttributeError) as error:
            raise NotFound(
                f"Hindsight does not answer: {error}", where=url, hint="give http://HOST/v1/default/banks/ID"
            ) from error
        return [Old(str(r.get("document_id") or r.get("id")), str(r.get("text"))) for r in results[:limit]]

    return ask


def _grepped(files: Mapping[str, bytes]) -> Ask:
    lines = [
        (path, number, line)
        for path, data in files.items()
        for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1)
        if line.strip()
    ]
    return _most_words(lines)


def _looked(found: SourceContents) -> Ask:
    return _most_words([(f"^{item.id}", 0, item.record.text) for item in found.items])


def _most_words(lines: Sequence[tuple[str, int, str]]) -> Ask:
    """Lines by how many of the query's words they have, the shortest of equals first."""
    known = [(path, number, line, set(words_of(line))) for path, number, line in lines]

    def ask(query: str, limit: int) -> list[Old]:
        wanted = set(_telling(query))
        ranked = sorted(
            ((len(wanted & has), -len(line), n) for n, (_, _, line, has) in enumerate(known) if wanted & has),
            key=lambda each: (-each[0], -each[1], each[2]),
        )
        chosen = [(known[n], many) for many, _, n in ranked[:limit]]
        return [Old(p, text.strip(), at, at, many / len(wanted)) for (p, at, text, _), many in chosen]

    return ask
