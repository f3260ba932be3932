"""`import`, `export` and `sync`: what other tools and other machines remembered."""

from __future__ import annotations

import json
import re
import sqlite3
import tempfile
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import date, datetime, time
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ua_memory import caller, discovery
from ua_memory.caller import given
from ua_memory.cli import app
from ua_memory.cli.history import backup_file
from ua_memory.clients import sessions
from ua_memory.errors import NotFound, StillThere, Usage
from ua_memory.hooks import context
from ua_memory.hooks.capture import queue_ended_sessions
from ua_memory.memory import Memory
from ua_memory.upkeep import import_sources
from ua_memory.upkeep.import_ import import_contents
from ua_memory.views import flushed as views_flushed
from ua_memory.views import history
from ua_memory.views.flushed import costs, estimate
from ua_memory.views.output import Screen, cells, count, emit, note, parse_day, progress, visible

if TYPE_CHECKING:
    from ua_memory.caller import Call
    from ua_memory.recall.search import Hit
    from ua_memory.retain.flush import FlushedSession
    from ua_memory.retain.survey import FoundSession, Survey
    from ua_memory.upkeep.import_sources import Files, SourceContents


# -- imports -----------------------------------------------------------------------------------------------
# `ua-memory import`: what other tools remembered, into this bank.


import_app, sync_app, export_app = app.new(), app.new(), app.new()

Source = Annotated[
    Literal["sessions", "openclaw", "claude-code", "basic-memory", "markdown", "hindsight", "archive"],
    typer.Argument(
        metavar="SOURCE",
        help="sessions, openclaw, claude-code, basic-memory, markdown, hindsight or archive.",
        show_default=False,
    ),
]
From = Annotated[
    str | None,
    typer.Argument(
        metavar="PATH",
        help="The folder or file (default for sessions: where clients keep them).",
        show_default=False,
    ),
]
Days = Annotated[
    int | None,
    typer.Option(
        metavar="N", min=0, help="The newest N days of the source (default: 7).",
        show_default=False,
    ),
]  # fmt: skip
DAYS = 7
SINCE = "30d"
Since = Annotated[
    str | None,
    typer.Option(
        metavar="DATE", help="Sessions with turns since: 30d (default), 2w, 2026-11-21.",
        show_default=False,
    ),
]  # fmt: skip
Clients = Annotated[
    list[str] | None,
    typer.Option("--client", metavar="NAME", help="Sessions of this client; repeatable.", show_default=False),
]
Project = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Sessions of this project, or in this folder and below.", show_default=False
    ),
]


@import_app.command(name="import", cls=app.Verb)
def import_(
    ctx: typer.Context,
    source: Source,
    path: From = None,
    days: Days = None,
    everything: Annotated[bool, typer.Option("--all", help="Everything, regardless of its day.")] = False,
    since: Since = None,
    client: Clients = None,
    project: Project = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be imported; change nothing.")
    ] = False,
    compare: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Compare the old index with ours on the queries in FILE, one a line.",
            show_default=False,
        ),
    ] = None,
    old: Annotated[
        str | None,
        typer.Option(
            metavar="INDEX",
            help="The old index: its SQLite file, or the URL of a bank of Hindsight.",
            show_default=False,
        ),
    ] = None,
    as_json: app.Json = False,
    bank: app.Bank = None,
) -> None:
    """Import what another tool remembered.

    Curated memory comes first, then the newest days; --all takes the rest. Text is copied verbatim, the
    source is never written, and a second run adds nothing twice. It is one commit; undo reverses it. With
    --compare nothing is imported: both indexes answer, over everything the source has. For `sessions` the
    transcripts that clients keep on this machine are flushed, one commit each. An `archive` is what `export`
    wrote: verified, then merged by id. See docs/import.md.
    """
    if source == "sessions":
        _refuse({"--days": days is not None, "--compare": compare, "--old": old}, source)
        _sessions(ctx, path, since, everything, tuple(client or ()), project, dry_run)
    elif source == "archive":
        given = {"--since": since, "--client": client, "--project": project, "--days": days is not None}
        _refuse({**given, "--all": everything, "--compare": compare, "--old": old}, source)
        _archive(ctx, path, dry_run)
    else:
        _refuse({"--since": since, "--client": client, "--project": project}, source)
        _remembered(
            ctx, source, path, None if everything else DAYS if days is None else days, dry_run, compare, old
        )


def _refuse(given: dict[str, Any], source: str) -> None:
    """Usage for an option that says nothing of this source."""
    for option, value in given.items():
        if value:
            raise Usage(f"{option} says nothing of {source}", hint="ua-memory import --help")


def _sessions(
    ctx: typer.Context,
    path: str | None,
    since: str | None,
    everything: bool,
    clients: tuple[str, ...],
    project: str | None,
    dry_run: bool,
) -> None:
    if everything and since:
        raise Usage("--all and --since contradict one another")
    with caller.opened(ctx) as (call, memory):
        asked = views_flushed.SurveyRequest(
            path, "" if everything else since or SINCE, clients, project, dry_run
        )
        run(call, memory, asked)


def _archive(ctx: typer.Context, path: str | None, dry_run: bool) -> None:
    if path is None:
        raise Usage("there is no FILE", hint="ua-memory import archive FILE")
    with caller.opened(ctx) as (call, memory):
        done = memory.remote.restore(caller.absolute(call, path), dry_run=dry_run)
        history.show_restored(call, done)
        if done.heard and not done.heard.proof.holds:
            raise typer.Exit(StillThere.exit_code)


def _remembered(
    ctx: typer.Context,
    source: str,
    path: str | None,
    days: int | None,
    dry_run: bool,
    compare: str | None,
    old: str | None,
) -> None:
    if path is None:
        raise Usage("there is no PATH", hint=f"ua-memory import {source} PATH")
    with caller.opened(ctx) as (call, memory):
        root, ours = caller.absolute(call, path), memory.store.bank.root
        _not_ours(root.resolve(), ours)
        files, unread = views_flushed.files_of(root, ours, source)
        found = import_sources.read(source, root.resolve().name, files)
        if compare or old:
            _compare(call, found, root, files, compare, old)
            return
        done = import_contents(memory.store, found.within(days), door=memory.door, dry_run=dry_run)
        if call.as_json:
            emit(call, views_flushed.import_shape(done, unread))
        else:
            views_flushed.tell(call, done, unread)


def _compare(
    call: Call, found: SourceContents, root: Path, files: Files, queries: str | None, old: str | None
) -> None:
    if not queries:
        raise Usage("--old is for a comparison", hint="add --compare FILE, with one query a line")
    asked = queries_of(call, queries)
    done = compare(call, found, ask_backend(call, found, root, files, old), asked)
    emit(call, shape(done)) if call.as_json else tell(call, done)


def _not_ours(root: Path, ours: Path) -> None:
    if ours in (root, *root.parents):
        raise Usage("this is the bank itself, which is searched as it stands", where=str(root))


# -- bringing ----------------------------------------------------------------------------------------------
# `ua-memory import sessions`: find transcripts on this machine, tell what is in them, flush what is new.


def run(call: Call, memory: Memory, asked: views_flushed.SurveyRequest) -> None:
    """Find, tell and, unless it is a dry run, flush."""
    unknown = set(asked.clients) - set(sessions.CLIENTS)
    if unknown:
        known = ", ".join(sessions.CLIENTS)
        if "gemini" in unknown:
            raise Usage(
                "Gemini CLI's transcripts are not read: hooks capture its sessions as they happen",
                hint="ua-memory install gemini",
            )
        raise Usage(f"no client {min(unknown)!r} whose sessions are known", hint=f"known are: {known}")
    if not memory.config.enabled:
        _off(call, memory, asked)
        return
    now = memory.store.now()
    day = parse_day(asked.since or None, "--since", now.date())
    since = datetime.combine(date.fromisoformat(day), time(), now.tzinfo) if day else None
    if not asked.dry_run:  # what hooks heard of ended sessions goes before what their transcripts have
        queue_ended_sessions(memory, lambda text: note(call, text), model=bool(call.endpoint))
    found = _survey(call, memory, asked, since)
    chosen = [one for one in found.sessions if _fits(call, one, asked)]
    fresh = [one for one in chosen if one.new or one.waits]
    if not call.as_json:
        views_flushed.show_survey(call, asked, found, chosen, day)
    if asked.dry_run:
        _preview(call, memory, asked, found, chosen, fresh)
    else:
        _flush(call, memory, asked, found, chosen, fresh)


def _off(call: Call, memory: Memory, asked: views_flushed.SurveyRequest) -> None:
    off = memory.flush().notes  # it says so, and does nothing
    if call.as_json:
        emit(call, views_flushed.survey_shape(asked, (), None, (), off))
    for text in off:
        note(call, text)


def _survey(call: Call, memory: Memory, asked: views_flushed.SurveyRequest, since: datetime | None) -> Survey:
    if asked.path is None:
        transcripts = list(sessions.on_machine(call, asked.clients or sessions.CLIENTS))
    else:
        transcripts = list(sessions.below(caller.absolute(call, asked.path)))
    listed = context.session_records(memory.store.bank.pending)
    going = {
        (str(each.get("client")), str(each.get("session")))
        for path, each in listed
        if not context.has_ended(path, each)
    }
    with progress(call, "Reading sessions") as tell:
        return memory.sessions.survey(transcripts, since=since, going=going, tell=tell)


def _fits(call: Call, one: FoundSession, asked: views_flushed.SurveyRequest) -> bool:
    if asked.clients and views_flushed.family(one) not in asked.clients:
        return False
    if asked.project is None:
        return True
    folder = Path(one.session.cwd) if one.session.cwd else None
    named = caller.absolute(call, asked.project).resolve()
    below = folder is not None and named in (folder, *folder.parents)
    return below or asked.project.casefold() in (
        views_flushed.project(one).casefold(),
        folder.name.casefold() if folder else "",
    )


def _preview(
    call: Call,
    memory: Memory,
    asked: views_flushed.SurveyRequest,
    found: Survey,
    chosen: list[FoundSession],
    fresh: list[FoundSession],
) -> None:
    kept, cost = memory.sessions.preview(fresh, model=call.endpoint)
    if call.as_json:
        more = {"preview": kept, **({"estimate": estimate(cost)} if cost else {})}
        emit(call, {**views_flushed.survey_shape(asked, chosen, found, (), ()), **more})
        return
    screen = Screen(call)
    if fresh:
        screen.line(f"Without a model {count(kept, 'fact')} would be kept.")
        if cost:
            screen.line(costs(cost))
        screen.line(("Nothing was changed. Without --dry-run they are flushed, one commit each.", "faint"))


def _flush(
    call: Call,
    memory: Memory,
    asked: views_flushed.SurveyRequest,
    found: Survey,
    chosen: list[FoundSession],
    fresh: list[FoundSession],
) -> None:
    done: list[FlushedSession] = []
    screen = Screen(call)
    try:
        for one, flushed in memory.sessions.flush(fresh, model=call.endpoint):
            done.append(flushed)
            if not call.as_json:  # a line as each is done, which is all the progress one needs to see
                views_flushed.show_one_flushed(call, screen, one, flushed)
                call.stdout.flush()
    finally:  # what was flushed before another one failed is told in any case
        if call.as_json:
            emit(call, views_flushed.survey_shape(asked, chosen, found, done, ()))
        elif done:
            views_flushed.conclude_survey(screen, done)
            if not call.endpoint:
                note(call, views_flushed.NO_MODEL)


# -- olds --------------------------------------------------------------------------------------------------
# How the tool that one comes from answers a query: by its own index, read only, or by a plain look.
#
# OpenClaw's and basic-memory's indexes are SQLite with FTS5, and their tables are asked as those tools ask
# them. Their vectors are not: that would take the model they were made with.


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
    call: Call, found: SourceContents, root: Path, files: Mapping[str, bytes], old: str | None
) -> Comparison:
    """The old side of a comparison: what `old` names, else the index that is found, else the files."""
    if old and re.match(r"https?://", old):
        return Comparison("Hindsight", f"asked at {old}", _recalled(old))
    if old:
        path = caller.absolute(call, old)
        if not path.is_file():
            raise NotFound("there is no index", where=str(path), hint="name the other tool's SQLite file")
        asking = _index(path)
        if asking is None:
            raise Usage("no index of OpenClaw or basic-memory", where=str(path), hint="name its SQLite file")
        return asking
    for path in _places(found.source, call.home, root):
        asking = _index(path)
        if asking and _of_this(path, files):
            return asking
    if found.source == "hindsight":
        return Comparison(
            "words", "Hindsight itself is not asked: name its bank with --old URL", _looked(found)
        )
    note = (
        "" if found.source in ("markdown", "claude-code") else "no index of it was found (--old names one); "
    )
    return Comparison("grep", f"{note}lines by how many of the query's words they have", _grepped(files))


# -- indexes ---------------------------------------------------------------------------------------------


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
    words = "by words alone: its vectors need the model they were made with"
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


# -- others ----------------------------------------------------------------------------------------------


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


# -- compared ----------------------------------------------------------------------------------------------
# `import --compare`: what the old index and ours answer, side by side, before anybody switches.
#
# Ours is a bank in a temporary folder that holds everything the source has; nothing of it is kept.


LIMIT = 6
NEAR = 40
SECONDS_A_QUERY = 6.0
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
    old: Comparison
    sources: dict[str, str]
    seconds: tuple[float, float]
    by_words: int = 0

    def source(self, hit: Hit) -> str:
        return self.sources.get(hit.item.path, hit.item.path)


def queries_of(call: Call, path: str) -> list[str]:
    """The queries of a file, one a line; `-` reads standard input. Usage where there is none, NotFound."""
    try:
        data = given(call) if path == "-" else discovery.read(caller.absolute(call, path))
    except OSError as error:
        raise NotFound(
            error.strerror or str(error), where=path, hint="name a file with one query a line"
        ) from error
    queries = [line.strip() for line in data.decode("utf-8-sig", "replace").splitlines() if line.strip()]
    if not queries:
        raise Usage("there are no queries", where=path, hint="write one query a line")
    return queries


def compare(call: Call, found: SourceContents, old: Comparison, queries: Sequence[str]) -> Compared:
    """Ask both sides."""
    started = perf_counter()
    before = [old.ask(query, LIMIT) for query in queries]
    asked = perf_counter()
    with (
        tempfile.TemporaryDirectory(prefix="ua-memory-compare-") as folder,
        _empty(Path(folder), call) as memory,
    ):
        done = import_contents(memory.store, found, door=memory.door)
        left = _embed(call, memory, queries)
        memory.search_many(queries[:1], limit=LIMIT)  # models are loaded once, not with each query
        ready = perf_counter()
        answers = memory.search_many(queries, limit=LIMIT)
        took = perf_counter() - ready
    sources = {each.path: each.source for each in done.taken if each.what == "note"}
    pairs = [Pair(q, b, a.hits) for q, b, a in zip(queries, before, answers, strict=True)]
    return Compared(pairs, old, sources, ((asked - started) / len(queries), took / len(queries)), left)


def _embed(call: Call, memory: Memory, queries: Sequence[str]) -> int:
    """Embed what may be an answer, then what else there is time for; how many texts are left."""
    memory.refresh(vectors=False)
    found = memory.search_many(queries, limit=NEAR, by_words=True)
    first = sorted({hit.item.vhash for answer in found for hit in answer.hits if hit.item.vhash})
    with progress(call, "Embedding") as tell:
        memory.index.embed_first(first, tell)
        until = perf_counter() + SECONDS_A_QUERY
        return memory.refresh(tell, stop=lambda: perf_counter() > until).left_texts


def _empty(folder: Path, call: Call) -> Memory:
    """A bank whose core memory is empty: the words of a new one are nobody's answer."""
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
    return text + " " * (width - cells(text) + 1)


def _sum(screen: Screen, done: Compared) -> None:
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


# -- sync ------------------------------------------------------------------------------------------------


@app.verb(sync_app)
def sync(
    call: Call,
    memory: Memory,
    remote: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="The remote's address, as for git; needed once.",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Fetch and show what would be done; change nothing.")
    ] = False,
) -> None:
    """Sync with the remote.

    Pulls, merges by id and pushes. What either machine added stays, what one deleted is deleted unless the
    other changed it, what was forgotten does not return, and two versions of one fact are both kept. A purge
    on one machine is applied on the others. See docs/sync.md.
    """
    done = memory.remote.sync(remote, dry_run=dry_run, backup=backup_file(call, memory, None))
    history.show_synced(call, done)
    if any(one and not one.proof.holds for one in (done.followed, done.heard)):
        raise typer.Exit(StillThere.exit_code)


@app.verb(export_app)
def export(
    call: Call,
    memory: Memory,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="The archive to write: a .tar outside the bank.")
    ],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what it would contain; write nothing.")
    ] = False,
) -> None:
    """Export the whole bank to one file.

    Its files, its history as a git bundle, and a manifest with the hash of each. No index, keys or queue.
    `import archive FILE` verifies everything before it imports it. See docs/sync.md.
    """
    done = memory.remote.export(caller.absolute(call, file), dry_run=dry_run)
    if call.as_json:
        keys = ("file", "bank", "revision", "revisions", "files", "bytes")
        emit(
            call,
            {**{key: getattr(done, key) for key in keys}, "dry_run": dry_run, "notes": list(done.notes)},
        )
        return
    what = f"{count(done.files, 'file')}, {count(done.revisions, 'revision')}, {done.bytes:,} bytes"
    Screen(call).line("Would write " if dry_run else "Wrote ", (done.file, "path"), f": {what}")
    for text in done.notes:
        note(call, text)
