"""`import --compare`: what the old index and ours answer, side by side, before anybody switches.

Ours is a bank in a temporary folder that holds everything the source has; nothing of it is kept.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ua_memory import regular
from ua_memory.errors import NotFound, Usage

if TYPE_CHECKING:
    from ua_memory.cli.call import Call
    from ua_memory.cli.format import Screen
    from ua_memory.cli.olds import Asked, Old
    from ua_memory.importers import Found
    from ua_memory.memory import Hit, Memory

LIMIT = 6
NEAR = 40
SECONDS = 6.0
"""What words find is embedded first, so many of each query, and then the rest for so long: a model reads some
200 facts a second on two cores, and what is far from all queries would not be shown."""
SHOWN = 3
"""Results of each side that a person sees; `--json` has all."""
ROWS = 3
"""Lines of each result."""
NARROW = 70
"""Columns below which the sides stand one after the other."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One query and what both sides found."""

    query: str
    old: Sequence[Old]
    ours: Sequence[Hit]


@dataclass(frozen=True, slots=True)
class Compared:
    """All pairs, who answered for the old side, where our copies come from, the seconds a query took, and
    how many texts there was no time to embed: these are found by words alone."""

    pairs: Sequence[Pair]
    old: Asked
    sources: dict[str, str]
    seconds: tuple[float, float]
    by_words: int = 0

    def source(self, hit: Hit) -> str:
        return self.sources.get(hit.item.path, hit.item.path)


def queries_of(call: Call, path: str) -> list[str]:
    """The queries of a file, one a line; `-` reads standard input. Usage where there is none, NotFound."""
    from ua_memory.cli import context
    from ua_memory.cli.origin import given

    try:
        data = given(call) if path == "-" else regular.read(context.absolute(call, path))
    except OSError as error:
        raise NotFound(
            error.strerror or str(error), where=path, mend="name a file with one query a line"
        ) from error
    queries = [line.strip() for line in data.decode("utf-8-sig", "replace").splitlines() if line.strip()]
    if not queries:
        raise Usage("there are no queries", where=path, mend="write one query a line")
    return queries


def compare(call: Call, found: Found, old: Asked, queries: Sequence[str]) -> Compared:
    """Ask both sides."""
    started = time.perf_counter()
    before = [old.ask(query, LIMIT) for query in queries]
    asked = time.perf_counter()
    with (
        tempfile.TemporaryDirectory(prefix="ua-memory-compare-") as folder,
        _empty(Path(folder), call) as memory,
    ):
        done = memory.bring_in(found)
        left = _embed(call, memory, queries)
        memory.search_many(queries[:1], limit=LIMIT)  # models are loaded once, not with each query
        ready = time.perf_counter()
        answers = memory.search_many(queries, limit=LIMIT)
        took = time.perf_counter() - ready
    sources = {each.path: each.source for each in done.taken if each.what == "note"}
    pairs = [Pair(q, b, a.hits) for q, b, a in zip(queries, before, answers, strict=True)]
    return Compared(pairs, old, sources, ((asked - started) / len(queries), took / len(queries)), left)


def _embed(call: Call, memory: Memory, queries: Sequence[str]) -> int:
    """Embed what may be an answer, then what else there is time for; how many texts are left."""
    from ua_memory.cli.progress import progress

    memory.refresh(vectors=False)
    found = memory.search_many(queries, limit=NEAR, by_words=True)
    first = sorted({hit.item.vhash for answer in found for hit in answer.hits if hit.item.vhash})
    with progress(call, "Embedding") as tell:
        memory.index.embed_first(first, tell)
        until = time.perf_counter() + SECONDS
        return memory.refresh(tell, stop=lambda: time.perf_counter() > until).left_texts


def _empty(folder: Path, call: Call) -> Memory:
    """A bank whose core memory is empty: the words of a new one are nobody's answer."""
    from ua_memory.memory import Memory

    (folder / "MEMORY.md").touch()
    return Memory.init(folder, now=call.now, door="import")


def shape(done: Compared) -> dict[str, Any]:
    """The JSON of a comparison."""
    return {
        "old": {"name": done.old.name, "note": done.old.note},
        "seconds": {"old": round(done.seconds[0], 4), "ours": round(done.seconds[1], 4)},
        "byWordsAlone": done.by_words,
        "compared": [
            {
                "query": pair.query,
                "old": [
                    _result(o.path, o.line, o.end, o.score, o.text) for o in pair.old
                ],
                "ours": [
                    _result(done.source(h), h.item.line, h.item.end, h.score, h.snippet) for h in pair.ours
                ],
            }
            for pair in done.pairs
        ],
    }  # fmt: skip


def _result(path: str, line: int, end: int, score: float, text: str) -> dict[str, Any]:
    where = {"startLine": line, "endLine": end} if line else {}
    return {"path": path, **where, "score": round(score, 4), "snippet": text[:700]}


# -- for a person ----------------------------------------------------------------------------------------


def tell(call: Call, done: Compared) -> None:
    """Both sides of each query, and what that comes to."""
    from ua_memory.cli.format import Screen

    screen = Screen(call)
    screen.item([("Old:  ", "strong")], f"{done.old.name} ({done.old.note})")
    less = f" ({done.by_words:,} texts, far from all queries, by words alone)" if done.by_words else ""
    how = f"ua-memory, by words and meaning{less}, from a copy that is gone again"
    screen.item([("Ours: ", "strong")], how)
    for pair in done.pairs:
        screen.line("")
        screen.item([("? ", "strong")], (pair.query, "strong"))
        _sides(screen, *_told(done, pair))
    screen.line("")
    _sum(screen, done)


def _told(done: Compared, pair: Pair) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    old = [(f"{o.path}:{o.line}" if o.line else o.path, o.text) for o in pair.old[:SHOWN]]
    ours = [(done.source(hit), hit.snippet) for hit in pair.ours[:SHOWN]]
    return old, ours


def _sides(screen: Screen, old: list[tuple[str, str]], ours: list[tuple[str, str]]) -> None:
    width = min(screen.width, 160)
    if width < NARROW:
        for name, side in (("old", old), ("ours", ours)):
            for row in _column(side, width - 6):
                screen.line(f"{name:5}", row)
        return
    half = (width - 3) // 2
    left, right = _column(old, half), _column(ours, half)
    for n in range(max(len(left), len(right))):
        one = left[n] if n < len(left) else ""
        screen.line(_padded(one, half), ("│ ", "faint"), right[n] if n < len(right) else "")


def _column(side: list[tuple[str, str]], width: int) -> list[str]:
    """Results as rows of at most `width` columns: where it stands, then some rows of its text."""
    if not side:
        return ["(nothing)"]
    rows: list[str] = []
    for number, (place, text) in enumerate(side, 1):
        rows += [_cut(f"{number}. {place}", width, front=False), *_wrapped(text, width - 3)]
    return rows


def _wrapped(text: str, width: int) -> list[str]:
    from ua_memory.cli.format import cells, visible

    rows, row = [], ""
    for word in visible(" ".join(text.split())).split(" "):
        if row and cells(row) + 1 + cells(word) > width:
            rows.append(row)
            row = ""
        row = f"{row} {word}" if row else _cut(word, width)
    rows.append(row)
    more = len(rows) > ROWS
    rows = rows[:ROWS]
    if more:
        rows[-1] = _cut(rows[-1], width - 2) + " …"
    return [f"   {each}" for each in rows]


def _cut(text: str, width: int, *, front: bool = True) -> str:
    """At most so many columns of a text: its front, or with `…` in between its front and its end."""
    from ua_memory.cli.format import cells

    if cells(text) <= width:
        return text
    if front:
        while cells(text) > width:
            text = text[:-1]
        return text
    end = text
    while cells(end) > width - 6:
        end = end[1:]
    return f"{text[:5]}…{end}"


def _padded(text: str, width: int) -> str:
    from ua_memory.cli.format import cells

    return text + " " * (width - cells(text) + 1)


def _sum(screen: Screen, done: Compared) -> None:
    from ua_memory.cli.format import count

    both = sum(bool(p.old) and bool(p.ours) for p in done.pairs)
    alone = sum(bool(p.old) and not p.ours for p in done.pairs)
    ours = sum(bool(p.ours) and not p.old for p in done.pairs)
    same = sum(p.old[0].path == done.source(p.ours[0]) for p in done.pairs if p.old and p.ours)
    screen.line(
        f"{count(len(done.pairs), 'query', 'queries')}: both found something for {both:,} "
        f"(the same file first: {same:,}), only the old for {alone:,}, only ours for {ours:,}."
    )
    milliseconds = [f"{1000 * each:,.0f} ms" for each in done.seconds]
    screen.line((f"A query took {milliseconds[0]} there, {milliseconds[1]} here. Nothing was kept.", "faint"))
