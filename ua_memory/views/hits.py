"""Search hits, lists, days, recall blocks, answers and sessions: as text and as JSON."""

from __future__ import annotations

import contextlib
import re
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from ua_memory.markdown.lines import FileKind, kind_of
from ua_memory.recall.calibration import ANSWER_THRESHOLD
from ua_memory.text.wording import counted, shorten
from ua_memory.views.knowledge import CONFIDENCE, opinion_change_json, show_opinion_change
from ua_memory.views.output import Screen, Styled, ago_day, count, day_title, dumps, fields, id_label

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ua_memory.index.items import IndexItem
    from ua_memory.index.words import DayCount, ItemCounts
    from ua_memory.knowledge.sessions import SessionFile
    from ua_memory.recall.arms import DateRange, QueryExplanation
    from ua_memory.recall.search import Hit, ListResult, RecallResult, SearchResult, SearchTrace
    from ua_memory.reflect.evidence import EvidencePiece
    from ua_memory.reflect.reflection import Reflection


# -- search ------------------------------------------------------------------------------------------------


SNIPPET_LINES = 6
"""Lines of a snippet that are shown; `get` shows the rest."""
LONGEST_OLD_VALUE = 160
"""Characters that are shown of the older value that a hit replaces."""
SHOWN_FOLDED = 5
"""Folded items (duplicates, sources) that are shown of a hit; `--json` has all."""
ENDING_LENGTH = 3
"""Letters by which the endings of two forms of a word may differ."""

_WORD = re.compile(r"[^\W_]+")
_TABLE_RULE = re.compile(r"\s*\|[\s|:-]*-[\s|:-]*")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")


def show_hits(
    screen: Screen, query: str, answer: SearchResult, today: date, *, explain: bool, filtered: bool,
    root: str = "",
) -> None:  # fmt: skip
    """Print the hits of a query, and its notes on standard error. Paths below the bank's `root`, which
    `extraPaths` gives in full, are printed relative to it."""
    elsewhere = answer.days and answer.hits and answer.hits[0].outside
    if answer.hits and not answer.answered and not elsewhere:
        screen.line("Nothing found.")
        screen.line(("Closest matches:", "faint"))
        screen.line()
    for rank, hit in enumerate(answer.hits, 1):
        if rank > 1:
            screen.line()
        if answer.days and hit.outside and not any(one.outside for one in answer.hits[: rank - 1]):
            screen.line((_other_days_heading(answer.days, first=rank == 1), "faint"))
            screen.line()
        _show_hit(screen, rank, hit, query, today, root)
        if explain:
            _show_scores(screen, hit)
    if not answer.hits and answer.stale.get("files"):
        screen.line("The index is not ready. Try again in a moment.")
    elif not answer.hits:
        advice = "without the filters" if filtered else "other or fewer words"
        screen.line(f"Nothing found for “{shorten(query, 80)}”. Try {advice}.")
    screen.note(*answer.notes)


def _other_days_heading(days: DateRange, *, first: bool) -> str:
    """The heading above hits from outside the query's days; `first`: no hit is from these days, which have
    other items unless the query asks for nothing else."""
    if not first:
        return f"From other days than {days.text}:"
    if days.only:
        return f"Nothing from {days.text}. From other days:"
    last = (date.fromisoformat(days.end) - timedelta(days=1)).isoformat() if days.end else ""
    options = [f"--since {days.start}"] * bool(days.start) + [f"--until {last}"] * bool(last)
    return f"No match from {days.text} (all: ua-memory list {' '.join(options)}). From other days:"


def _show_hit(screen: Screen, rank: int, hit: Hit, query: str, today: date, root: str) -> None:
    item = replace(hit.item, path=hit.item.path.removeprefix(f"{root}/"))
    day = f"  {_relative_day(item.date, today)}" if item.date and screen.is_terminal else ""
    day += f"  about {item.when}" if item.when and item.when != item.day else ""
    more = "".join(f"  {each}" for each in (_headings(item), *_shown_tags(item)) if each)
    front: list[Styled] = [(f"{rank}. ", "strong"), (f"{hit.score:.2f}  ", "faint")]
    screen.item(front, (_location(item), "path"), day, id_label(item.id), (more, "faint"))
    screen.item("   ", *highlight(shown_lines(hit.snippet.strip().split("\n"), query), query))
    if item.retired:
        screen.item([("   retired   ", "faint")], (item.retired, "faint"))
    if item.flag:
        screen.item([("   flag      ", "faint")], (item.flag, "warn"))
    if old := hit.replaces:
        text = next(iter(old.text.splitlines()), "")[:LONGEST_OLD_VALUE]
        named = (f"^{old.id}", "id") if old.id else (_location(old).removeprefix(f"{root}/"), "path")
        said = (f"{_relative_day(old.date, today) if old.date else 'undated'}: {text}  ", "faint")
        screen.item([("   before    ", "faint")], said, named)
    if hit.folded:
        places = [f"^{one.id}" if one.id else _citation(one) for one in hit.folded]
        more = f" … ({len(places)})" if len(places) > SHOWN_FOLDED else ""
        says = "also      " if item.record != "observation" else "based on  "
        screen.item([(f"   {says}", "faint")], (", ".join(places[:SHOWN_FOLDED]) + more, "faint"))


def shown_lines(lines: list[str], query: str) -> str:
    """At most SNIPPET_LINES lines of a snippet, those that have most of the query's words; of a table, which
    may be long, with its head."""
    if len(lines) <= SNIPPET_LINES:
        return "\n".join(lines)
    head = lines[:2] if _TABLE_RULE.fullmatch(lines[1]) else []
    room = SNIPPET_LINES - len(head)
    found = [len(match_positions(line, query)) for line in lines[len(head) :]]
    starts = range(max(len(found) - room, 0) + 1)
    start = len(head) + max(starts, key=lambda n: (sum(found[n : n + room]), -n))
    shown = [*head, *["…"] * (start > len(head)), *lines[start : start + room]]
    return "\n".join(shown) + ("\n…" if start + room < len(lines) else "")


def _headings(item: IndexItem) -> str:
    """The headings above an item, without the date, which the path has; of a document its name and its own,
    without when it was read."""
    if kind_of(item.path) is FileKind.DOCUMENT:
        name, *rest = item.heading.split(" > ")
        return " > ".join([name.rpartition("/")[2], *rest[1:]])
    return re.sub(r"^\d{4}-\d\d-\d\d( > |$)", "", item.heading)


def _shown_tags(item: IndexItem) -> list[str]:
    """An item's tags, without scopes (`harness:codex`) and those that its text has."""
    said = item.text.casefold()
    return [f"#{tag}" for tag in item.tags if ":" not in tag and f"#{tag}" not in said]


def _location(item: IndexItem) -> str:
    """`path:from-to` of an item, as `get` takes it. A session's file lies in the state folder."""
    path = f"sessions/{item.path.rpartition('/')[2]}" if item.record == "session" else item.path
    return f"{path}:{item.line}" + (f"-{item.end}" if item.end > item.line else "")


def _citation(item: IndexItem) -> str:
    return _location(item) if item.record == "session" else item.place.citation


def _relative_day(day: str, today: date) -> str:
    try:
        return ago_day(date.fromisoformat(day), today)
    except ValueError:  # a month or a year
        return day


def _show_scores(screen: Screen, hit: Hit) -> None:
    arms = [f"{name} rank {rank} ({raw:.3f})" for name, (rank, raw) in hit.arms.items()]
    parts = [f"{name} {value:.3f}" for name, value in hit.parts.items()]
    screen.item([("   found by  ", "faint")], (", ".join(arms) or "its neighbours", "faint"))
    screen.item([("   match     ", "faint")], (f"{hit.match:.3f}: {', '.join(parts)}".rstrip(": "), "faint"))


def highlight(text: str, query: str) -> list[Styled]:
    """Split a text into pieces; those that match the query have the style `match`."""
    pieces: list[Styled] = []
    at = 0
    for start, end in match_positions(text, query):
        pieces += [text[at:start], (text[start:end], "match")]
        at = end
    return [piece for piece in (*pieces, text[at:]) if piece and piece[0]]


def match_positions(text: str, query: str) -> list[tuple[int, int]]:
    """(start, end) of each word of the text that the query has, also in another form. CJK text, which has no
    spaces, is compared by pairs of characters."""
    words = [w.casefold() for w in _WORD.findall(query)]
    content_words = [w for w in words if w not in STOP_WORDS and (len(w) > 2 or w.isdigit())] or words
    latin_words = [w for w in content_words if not _CJK.search(w)]
    cjk_pairs = {w[n : n + 2] for w in words if _CJK.search(w) for n in range(max(len(w) - 1, 1))}
    spans = []
    for found in _WORD.finditer(text):
        word = found[0].casefold()
        if any(_are_word_forms(word, other) for other in latin_words):
            spans.append(found.span())
        elif cjk_pairs and _CJK.search(word):
            spans += _pair_positions(found[0], cjk_pairs, found.start())
    return spans


def _are_word_forms(word: str, other: str) -> bool:
    stem = max(3, len(other) - ENDING_LENGTH)
    same = len(other) > 3 and word[:stem] == other[:stem] and abs(len(word) - len(other)) <= ENDING_LENGTH
    return word == other or (same and word not in STOP_WORDS)


_COMMON = "the and for was were are did does why what when who how with from that this have has had"
STOP_WORDS = frozenset(_COMMON.split())
"""Highlighted only if the query has no other words."""


def _pair_positions(text: str, pairs: set[str], offset: int) -> list[tuple[int, int]]:
    """(start, end) of the runs of pairs in a text that begins at `offset`; overlapping ones are merged."""
    spans: list[tuple[int, int]] = []
    found = ((n, n + len(pair)) for pair in pairs for n in range(len(text)) if text.startswith(pair, n))
    for start, end in sorted((offset + start, offset + end) for start, end in found):
        if spans and start <= spans[-1][1]:
            spans[-1] = spans[-1][0], max(spans[-1][1], end)
        else:
            spans.append((start, end))
    return spans


def search_json(answer: SearchResult, explain: bool = False) -> dict[str, Any]:
    """A search's result as JSON, with OpenClaw's keys."""
    results = [_hit_json(hit, explain) for hit in answer.hits]
    return {"results": results, **fields(answer, "answered", "mode", "stale?", "notes")}


# -- search --why-not ------------------------------------------------------------------------------------


def show_trace(screen: Screen, found: SearchTrace) -> None:
    """Print why a search has or does not have an item, and its rank by each retriever."""
    item = found.item
    if item:
        screen.line((_location(item), "path"), id_label(item.id))
        screen.item("  ", " ".join(item.text.split())[:LONGEST_OLD_VALUE])
    screen.line((_cause_text(found), "good" if found.cause == "shown" else "strong"))
    for each, why in ((found.by, ""), *found.newer):
        if each:
            text, more = " ".join(each.text.split())[:LONGEST_OLD_VALUE], f"  (newer; {why})" if why else ""
            screen.item("  ", (_location(each), "path"), f"  {text}", (more, "faint"))
    rows: list[list[Styled]] = []
    for name_, (rank, raw) in found.arms.items():
        late = f", beyond the first {found.depth}" if rank > found.depth else ""
        rows.append([(f"  {name_}", "faint"), f"rank {rank} ({raw:.3f}){late}"])
    if found.score is not None:
        said = ", ".join(f"{name_} {value:.3f}" for name_, value in found.parts.items())
        rows.append([("  score", "faint"), f"{found.score:.2f}" + (f" ({said})" if said else "")])
    screen.rows(rows)
    screen.note(*found.answer.notes)


def _cause_text(found: SearchTrace) -> str:
    """Why the item was found or not, as a sentence."""
    at = {hit.item.key: n for n, hit in enumerate(found.answer.hits, 1)}
    place = found.rank or (at.get(found.item.key) if found.item else 0)
    above = at.get(found.by.key) if found.by else 0
    stands = f"hit {above}" if above else "a hit that is not shown"
    unsure = (
        "" if found.answer.answered else f"; not an answer: the first hit scores less than {ANSWER_THRESHOLD}"
    )
    return {
        "shown": f"Found: hit {at.get(found.item.key) if found.item else 0}{unsure}.",
        "folded": f"Folded under {stands}, which says the same or was derived from it.",
        "min_score": f"Below the minimum score: {found.score or 0:.2f}, minimum {found.min_score:.2f}.",
        "older": f"At rank {place} of {found.limit}: a newer fact gives another value.",
        "limit": f"At rank {place}, beyond the limit of {count(found.limit, 'hit')}.",
        "displaced": "Hits about the person that the query describes took its place.",
        "filter": f"Excluded by filters: {', '.join(found.filters)}.",
        "phrase": "It does not contain the quoted phrase.",
        "retired": "It is retired; --retired includes it.",
        "no_arm": f"Not among the first {count(found.depth, 'candidate')} of any retriever.",
        "no_match": "Its score is 0: what it shares with the query does not count.",
        "changed": "Its lines have changed in the file.",
        "held": "The edit of its file awaits confirmation; search reads the committed version.",
        "not_indexed": "These lines are not in the index.",
    }[found.cause]


def trace_json(query: str, found: SearchTrace) -> dict[str, Any]:
    """Why a search has or does not have an item, as JSON."""
    arms = ("arms", lambda arm: {"rank": arm[0], "score": arm[1]})
    newer = ("newer?", lambda row: {**_item_text_json(row[0]), "why": row[1]})
    known = ("rank", "score", "limit", "min_score", "depth", arms, "parts", ("by", _item_text_json))
    return {
        "query": query,
        **fields(found, ("item as target?", _item_text_json), "cause"),
        "says": _cause_text(found),
        **fields(found, *known, "filters", newer, "answer.answered", "answer.mode", "answer.notes"),
    }


ITEM_FIELDS = (
    *("kind?", "record?", "day?", "when?", "origin?", "client?", "session?", "heading?", "tags?"),
    *("entities?", "retired?", "flag?", "proofs?"),
)
"""An item's fields in JSON besides its place and text."""


def _item_json(item: IndexItem, *more: str) -> dict[str, Any]:
    source = {"source": "sessions" if item.record == "session" else "memory"}
    return fields(item, "place") | source | fields(item, *more)


def _item_text_json(item: IndexItem) -> dict[str, Any]:
    return _item_json(item, "text")


def _hit_json(hit: Hit, explain: bool) -> dict[str, Any]:
    folded = ("folded?", lambda one: _item_json(one, "kind?", "day?", "when?"))
    arms = ("arms", lambda arm: {"rank": arm[0], "score": round(arm[1], 4)})
    scores = (arms, ("parts", lambda value: round(value, 4))) if explain else ()
    return {
        **_item_json(hit.item),
        **fields(hit, ("score", lambda score: round(score, 4)), "snippet"),
        **fields(hit.item, *ITEM_FIELDS),
        **fields(hit, "outside?", folded, ("replaces?", _item_json), *scores),
    }


def explanation_json(found: QueryExplanation) -> dict[str, Any]:
    """How a query was parsed, as JSON."""
    return {
        "time": fields(found.time, "start", "end") if found.time else None,
        **fields(found, "entities", "terms", "time.order?", "phrases?", "meant?", "why?"),
    }


def show_explanation(screen: Screen, found: QueryExplanation, asked: datetime) -> None:
    rows: list[tuple[Styled, Styled]] = [(("time", "faint"), _date_range_text(found, asked))]
    if found.time.order:
        rows.append((("order", "faint"), f"the {found.time.order} first"))
    for title, words in (("names", found.entities), ("terms", found.terms), ("phrases", found.phrases)):
        if words or title != "phrases":
            rows.append(((title, "faint"), ", ".join(words) or "none"))
    taken = [f"{typed} for {word or 'a common word'}" for typed, word in found.meant.items()]
    rows += [(("taken", "faint"), ", ".join(taken))] if taken else []
    screen.rows(rows)
    if found.why:
        screen.note(found.why)


def _date_range_text(found: QueryExplanation, asked: datetime) -> str:
    """`Sunday 1 March 2026 to Sunday 31 May 2026`. `end`, which is exclusive, becomes the last day."""
    first = date.fromisoformat(found.time.start) if found.time.start else None
    last = date.fromisoformat(found.time.end) - timedelta(days=1) if found.time.end else None
    if first and last:
        title = day_title(first, asked.date())
        return title if first == last else f"{title} to {day_title(last, asked.date())}"
    if first:
        return f"from {day_title(first, asked.date())} on"
    return f"up to {day_title(last, asked.date())}" if last else "none"


# -- list, today, days -------------------------------------------------------------------------------------


def list_json(found: ListResult) -> dict[str, Any]:
    """Items as JSON, with the keys of search's hits and their whole text."""
    rows = [_item_json(item, "text", *ITEM_FIELDS) for item in found.items]
    return {"results": rows, **fields(found, "total", "notes")}


def _items_below(root: str, found: ListResult) -> list[IndexItem]:
    """The items; paths below the bank's `root` without it, as a search shows them."""
    return [replace(item, path=item.path.removeprefix(f"{root}/")) for item in found.items]


def show_list(screen: Screen, found: ListResult, today: date, root: str, *, filtered: bool) -> None:
    """Print items by the day that they are about, a later one by the day it was noted, the latest first."""
    last = None
    for item in _items_below(root, found):
        day = item.listed_day(found.today)
        if day != last:
            screen.line() if last is not None else None
            screen.line((_day_heading(day, today), "strong"))
            last = day
        _show_item(screen, item, _noted_day(item) if day == item.date else f"about {item.date}")
    if not found.items:
        screen.line("Nothing found. Try without the filters." if filtered else "Nothing is remembered yet.")
    if len(found.items) < found.total:
        screen.note(f"{len(found.items):,} of {found.total:,} shown; -n {found.total} shows all")
    screen.note(*found.notes)


def show_day(screen: Screen, found: ListResult, day: date, today: date, root: str) -> None:
    """Print a day: its log, then what other days' logs say about it."""
    items = _items_below(root, found)
    said_that_day = [item for item in items if item.day == day.isoformat()]
    said_that_day.sort(key=lambda item: (item.path, item.line))
    about_day = [item for item in items if item.day != day.isoformat()]
    title = day_title(day, today)
    if not found.items:
        screen.line(f"Nothing for {title}.")
    else:
        screen.line((title, "strong"))
    last: tuple[str, str] | None = None
    for item in said_that_day:
        if (item.path, _headings(item)) != last:
            last = item.path, _headings(item)
            screen.heading((last[1] or item.path, "path"))
        _show_item(screen, item, f"about {item.date}" if item.date != item.day else "")
    if about_day:
        screen.heading(("About this day", "path"))
    for item in reversed(about_day):
        _show_item(screen, item, _noted_day(item))
    screen.note(*found.notes)


def show_days(screen: Screen, found: Sequence[DayCount]) -> None:
    """Print how many facts were said on each day."""
    most = max((one.facts for one in found), default=1)
    rows: list[list[Styled]] = []
    for one in found:
        origins = ", ".join(f"{number:,} {name}" for name, number in one.origins.items())
        sessions = f", {count(one.sessions, 'session')}" if one.sessions else ""
        day: list[Styled] = [(one.day, "strong"), f"{date.fromisoformat(one.day):%a}", f"{one.facts:>6,}"]
        bar = ("▇" * max(1, round(20 * one.facts / most)), "good")
        rows.append([*day, *([bar] if screen.is_terminal else []), (f"{origins}{sessions}", "faint")])
    screen.rows(rows)
    if not rows:
        screen.line("No facts.")


def show_counts(screen: Screen, found: ItemCounts, limit: int) -> None:
    """Print how many items there are of each kind, origin, client, session and tag."""
    screen.line(count(found.total, "item"))
    for name, values in counts_json(found, limit).items():
        if name != "total" and values:
            each = ", ".join(f"{value} {number:,}" for value, number in values.items())
            screen.item([(f"{name}: ", "faint")], each)


def counts_json(found: ItemCounts, limit: int) -> dict[str, Any]:
    """The counts as JSON, of each at most `limit` values, the most frequent first."""
    return {
        "total": found.total,
        **{name: dict(each.most_common(limit)) for name, each in found.each.items()},
    }


def days_json(found: Sequence[DayCount]) -> dict[str, Any]:
    """The days as JSON."""
    return {"days": [fields(one, "day", "facts", "sessions", "origins") for one in found]}


def _day_heading(day: str, today: date) -> str:
    """The heading of a day (`2026-11-21`) or a month (`2026-11`: `November 2026`)."""
    with contextlib.suppress(ValueError):
        return day_title(date.fromisoformat(day), today)
    with contextlib.suppress(ValueError):
        return f"{date.fromisoformat(f'{day}-01'):%B %Y}"
    return day or "Undated"


def _noted_day(item: IndexItem) -> str:
    """`noted 2026-11-21` for an item about another day."""
    return f"noted {item.day}" if item.day and item.day != item.date else ""


def _show_item(screen: Screen, item: IndexItem, note: str) -> None:
    """Print an item: text, tags, and the id or place that other commands take."""
    text = " ".join(item.text.split()).removeprefix("- ")  # a list in core memory is one item
    if screen.is_terminal and len(text) > LONGEST:
        text = f"{text[:LONGEST]}…"
    kind = "" if item.record in ("fact", "passage") else item.record
    retired = f"retired {item.retired}" if item.retired else ""
    more = [each for each in (*_shown_tags(item), kind, note, retired) if each]
    named = (f"^{item.id}", "id") if item.id else (_location(item), "path")
    screen.item(("- ", "faint"), text, ("  " + "  ".join(more) if more else "", "faint"), "  ", named)


# -- recall ----------------------------------------------------------------------------------------------


def recall_json(found: RecallResult) -> dict[str, Any]:
    """A block for a prompt as JSON, with its hits."""
    return {"block": found.block, "left_out": len(found.left), **search_json(found.answer)}


def show_recall(screen: Screen, found: RecallResult) -> None:
    """Print only the block on standard output, so that it can be piped into a prompt."""
    if found.block:
        screen.raw(found.block)
    else:
        screen.note(f"nothing fits in {found.most} tokens" if found.left else "nothing found")
    screen.note(*found.answer.notes)
    if found.left and not found.most:
        screen.note(f"{len(found.left)} left out: no room in 9,500 characters")


# -- reflect: answers with citations -----------------------------------------------------------------------


LONGEST = 300
"""Characters of a footnote; `get` shows the rest, `--json` has all."""
LAYER_TITLES = {"models": "Mental models", "observations": "Observations", "facts": "Facts and notes"}
_CITATION_NUMBERS = re.compile(r"(\[[\d, ]+\])")


def show_answer(screen: Screen, found: Reflection, explain: bool) -> None:
    """Print an answer, its confidence and its citations; without a model the evidence by layer."""
    if found.text:
        for line in found.text.split("\n"):
            screen.item(_list_marker(line), *_style_citation_numbers(line.strip()))
    if found.citations:
        screen.heading(*_confidence_line(found))
        screen.line()
        for piece in found.citations:
            _show_footnote(screen, piece)
    elif not found.model:
        _show_evidence(screen, found)
    if found.structured is not None:
        screen.line()
        screen.raw(dumps(found.structured, screen.call.stdout, indent=2))
    for one in found.opinions:
        screen.line()
        show_opinion_change(screen, one)
    if explain:
        _show_path(screen, found)
    screen.note(*found.notes)


def _list_marker(line: str) -> str:
    """A line's indentation and list marker. Its wrapped lines are indented by the same."""
    found = re.match(r"\s*(?:[-*+•]|\d+[.)])?\s*", line)
    return found[0] if found else ""


def _style_citation_numbers(line: str) -> list[Styled]:
    rest = line[len(_list_marker(line)) :] if _list_marker(line).strip() else line
    parts = filter(None, _CITATION_NUMBERS.split(rest))
    return [(part, "id") if _CITATION_NUMBERS.fullmatch(part) else part for part in parts]


def _confidence_line(found: Reflection) -> list[Styled]:
    proofs = {proof for piece in found.citations for proof in piece.proofs}
    said: list[Styled] = [("Confidence: ", "faint"), (found.level, CONFIDENCE[found.level])]
    said += [(f" ({found.confidence:g}), {count(len(proofs), 'proof')}", "faint")]
    stale = sum(piece.stale for piece in found.citations)
    return [*said, (f", {stale} stale", "warn")] if stale else said


def _show_footnote(screen: Screen, piece: EvidencePiece) -> None:
    number, about = f"[{piece.number}]", (f"  {piece.about}", "warn" if piece.stale else "faint")
    front: list[Styled] = [(number, "id"), " " * (5 - len(number))]
    screen.item(front, (piece.citation, "path"), about, id_label(piece.id))
    flat = " ".join(piece.text.split())
    screen.item("     ", flat if len(flat) <= LONGEST else f"{flat[:LONGEST]}…")


def _show_evidence(screen: Screen, found: Reflection) -> None:
    for layer, pieces in found.based_on.items():
        if pieces:
            screen.line() if pieces[0] is not found.evidence[0] else None
            screen.line((LAYER_TITLES[layer], "strong"))
            for piece in pieces:
                _show_footnote(screen, piece)


def _show_path(screen: Screen, found: Reflection) -> None:
    screen.heading(("Path", "strong"))
    for number, step in enumerate(found.path, 1):
        brought = f"{step.found} found, {step.tokens:,} tokens" if step.found or not step.said else ""
        said = "; ".join(filter(None, (brought, f"refused: {step.said}" if step.said else "")))
        asked = "the question" if step.asked == found.question else step.asked
        front: list[Styled] = [(f"{number:>2}. ", "faint"), (step.what, "strong"), "  "]
        screen.item(front, asked, (f"  {said}" if asked else said, "faint"))
    used = found.usage
    if found.model:
        details = f"{used.prompt:,} tokens in, {used.cache_read:,} of them cached, {used.output:,} out"
        screen.line((f"{found.model}: {details}", "faint"))


def answer_json(found: Reflection, explain: bool) -> dict[str, Any]:
    """An answer as JSON, with `evidence` if there is no model or `explain`, with `path` if `explain`."""
    evidence = [("evidence", _evidence_json)] if explain or not found.model else []
    step = ("what as step", "asked", "found", "tokens", "by", "said as refused?")
    return {
        **fields(found, "question", "answered", "text"),
        "confidence": {"number": found.confidence, "word": found.level},
        **fields(found, ("citations", _evidence_json), ("based_on", len), "model?"),
        **({"structured": found.structured} if found.structured is not None else {}),
        **fields(found, ("opinions", opinion_change_json), "usage", "notes", *evidence),
        **(fields(found, ("path", step)) if explain else {}),
    }


def _evidence_json(piece: EvidencePiece) -> dict[str, Any]:
    stale = fields(piece, "stale") if piece.layer != "facts" else {}
    known = ("day?", "origin?", "about?", "disputed?")
    return fields(piece, "number", "layer", "place", "text", *known) | stale


# -- sessions ----------------------------------------------------------------------------------------------


def session_json(one: SessionFile) -> dict[str, Any]:
    """A session as JSON, without its turns."""
    about = ("project?", "started?", "title?", "outcome?", "open?", "read_by?", "parent?")
    known = {"name": one.name, "path": str(one.path), **fields(one, "session", "client", *about)}
    return known | {"turns": len(one.turns)}


def full_session_json(one: SessionFile) -> dict[str, Any]:
    """A session as JSON, with its turns."""
    turn = ("id", "speaker", "at", "text", "line as startLine", "end as endLine")
    return session_json(one) | fields(one, ("turns", turn))


def show_session_row(screen: Screen, one: SessionFile) -> None:
    """Print a session in one line: name, client, project, number of turns, title."""
    where = f"  {one.client}{f' · {one.project}' if one.project else ''}  "
    turns = f"{counted(len(one.turns), 'turn')}  "
    screen.item((one.name, "path"), (where, "faint"), turns, (one.title, "strong"))


def show_session(screen: Screen, one: SessionFile) -> None:
    """Print a session, turn by turn."""
    show_session_row(screen, one)
    for turn in one.turns:
        screen.heading((turn.speaker.title(), "strong"), (f"  {turn.at}", "faint"))
        for line in turn.text.split("\n"):
            screen.line(line)
