"""Hits as a person reads them: ranked, dated, with the query's words standing out."""

from __future__ import annotations

import re
from datetime import date
from typing import TYPE_CHECKING

from ua_memory.cli.format import Piece, Screen, note
from ua_memory.cli.times import ago_day

if TYPE_CHECKING:
    from ua_memory.cli.call import Call
    from ua_memory.memory import Answer, Hit, Memory

LINES = 6
"""Lines of a snippet that are shown; `get` shows the rest."""
FOLDED = 5
"""Places of folded items that are shown; `--json` has all."""
ENDING = 3
"""Letters by which two words may differ at their ends and still be taken for forms of one."""

_WORD = re.compile(r"[^\W_]+")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")


def show(call: Call, memory: Memory, query: str, answer: Answer, explain: bool, filtered: bool) -> None:
    """Print the hits of one query, and on standard error what has to be said about them."""
    screen, today = Screen(call), memory.store.now().date()
    for rank, hit in enumerate(answer.hits, 1):
        if rank > 1:
            screen.line()
        _one(screen, rank, hit, query, today)
        if explain:
            _explained(screen, hit)
    if not answer.hits:
        advice = "without the filters" if filtered else "other words, or fewer of them"
        shown = query if len(query) <= 80 else f"{query[:79]}…"
        screen.line(f"Nothing found for “{shown}”. Try {advice}.")
    for text in answer.notes:
        note(call, text)


def _one(screen: Screen, rank: int, hit: Hit, query: str, today: date) -> None:
    item = hit.item
    head: list[Piece] = [
        (f"{item.path}:{item.line}" + (f"-{item.end}" if item.end > item.line else ""), "path")
    ]
    head += [f"  {_when(item.date, today)}" if item.date and screen.fancy else ""]
    head += [("  ^" + item.id, "id")] if item.id else []
    heading = re.sub(r"^\d{4}-\d\d-\d\d( > |$)", "", item.heading)  # the day's title says what the path says
    head += [(f"  {heading}", "faint")] if heading else []
    screen.item([(f"{rank}. ", "strong"), (f"{hit.score:.2f}  ", "faint")], *head)
    lines = hit.snippet.strip().split("\n")
    shown = "\n".join(lines[:LINES]) + ("\n…" if len(lines) > LINES else "")
    screen.item("   ", *highlighted(shown, query))
    if hit.folded:
        places = [f"^{one.id}" if one.id else one.place.citation for one in hit.folded]
        more = f" … ({len(places)})" if len(places) > FOLDED else ""
        says = "also      " if item.record != "observation" else "rests on  "
        screen.item([(f"   {says}", "faint")], (", ".join(places[:FOLDED]) + more, "faint"))


def _when(day: str, today: date) -> str:
    try:
        return ago_day(date.fromisoformat(day), today)
    except ValueError:  # a month or a year
        return day


def _explained(screen: Screen, hit: Hit) -> None:
    arms = [f"{name} rank {rank} ({raw:.3f})" for name, (rank, raw) in hit.arms.items()]
    parts = [f"{name} {value:.3f}" for name, value in hit.parts.items()]
    screen.item([("   found by  ", "faint")], (", ".join(arms) or "its neighbours", "faint"))
    screen.item([("   score     ", "faint")], (", ".join(parts) or f"{hit.score:.3f}", "faint"))


def highlighted(text: str, query: str) -> list[Piece]:
    """The text in pieces, those that match the query marked as such."""
    pieces: list[Piece] = []
    at = 0
    for start, end in matches(text, query):
        pieces += [text[at:start], (text[start:end], "match")]
        at = end
    return [piece for piece in (*pieces, text[at:]) if piece and piece[0]]


def matches(text: str, query: str) -> list[tuple[int, int]]:
    """Where words of the query, or other forms of them, stand in a text: (start, end), in order."""
    asked = [w.casefold() for w in _WORD.findall(query)]
    telling = [w for w in asked if w not in STOP and (len(w) > 2 or w.isdigit())] or asked
    wanted = [w for w in telling if not _CJK.search(w)]
    pairs = {w[n : n + 2] for w in asked if _CJK.search(w) for n in range(max(len(w) - 1, 1))}
    spans = []
    for found in _WORD.finditer(text):
        word = found[0].casefold()
        if any(_akin(word, other) for other in wanted):
            spans.append(found.span())
        elif pairs and _CJK.search(word):
            spans += _runs(found[0], pairs, found.start())
    return spans


def _akin(word: str, other: str) -> bool:
    if word == other:
        return True
    stem = max(3, len(other) - ENDING)
    same = len(other) > 3 and word[:stem] == other[:stem]
    return same and abs(len(word) - len(other)) <= ENDING and word not in STOP


_COMMON = "the and for was were are did does why what when who how with from that this have has had"
STOP = frozenset(_COMMON.split())
"""Words that every text has; they are marked only where nothing else was asked."""


def _runs(text: str, pairs: set[str], offset: int) -> list[tuple[int, int]]:
    marked = [False] * len(text)
    for n in range(len(text)):
        for pair in pairs:
            if text.startswith(pair, n):
                marked[n : n + len(pair)] = [True] * len(pair)
    spans, start = [], None
    for n, on in enumerate([*marked, False]):
        if on and start is None:
            start = n
        elif not on and start is not None:
            spans.append((offset + start, offset + n))
            start = None
    return spans
