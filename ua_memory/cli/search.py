"""`search`, `list`, `today`, `yesterday`, `sessions`, `recall`, `explain`, `get`, `edit`, `open`."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from ua_memory.caller import Call, given, is_person, parse_moment, tell_default_bank
from ua_memory.cli import app
from ua_memory.cli.app import argument, flag, option
from ua_memory.errors import Usage
from ua_memory.hooks.context import placeholder_values
from ua_memory.index.filters import parse_day
from ua_memory.paths import is_memory_file, vault_of
from ua_memory.records import Place
from ua_memory.store import files
from ua_memory.text.wording import counted, fill_groups, fill_tags
from ua_memory.views import hits as views
from ua_memory.views import output
from ua_memory.views.output import Screen, confirm, emit_json, print_json, progress, show_result

if TYPE_CHECKING:
    from ua_memory.index.filters import Filters
    from ua_memory.memory import Memory


# -- search ------------------------------------------------------------------------------------------------


Query = argument("QUERY...", 'Words, a question, or a "phrase".', None)
Limit = option("--limit -n N", "Number of hits (default: search.limit).", min=1, max=1000)
MinScore = option("SCORE", "Leave out weaker hits (default: search.min_score).", min=0, max=1)
Since = option("DATE", "From this day on: 2026-11-21, 2026-11, 30d, yesterday, last week, May.")
Until = option("DATE", "Up to and including this day.")


Now = option("TIME", "Time of the query: 2026-11-21 or 2026-11-21T14:00 (default: now).")


@dataclass(frozen=True, kw_only=True)
class ScopeOptions:
    """The options for days and tags."""

    since: str | None = Since
    until: str | None = Until
    tag: list[str] | None = option(
        "--tag TAG", "With this tag or one below it; {project}, {cwd} … are filled in."
    )
    tags_match: str = option(
        "--tags-match MODE",
        "any, all: any or all of the tags, or none; any_strict, all_strict: the tags are required; exact: "
        "these and no other.",
        "any_strict",
    )
    tag_groups: str = option("JSON", "Tags combined by and, or, not; see docs/recall.md.", "")

    def filters(self, call: Call, memory: Memory, asked_at: datetime | None = None, **more: Any) -> Filters:
        """The search filters that the options ask for, with placeholders filled in, and `more`. Usage for an
        invalid date, kind, mode or JSON."""
        now = asked_at or memory.store.now()
        since = parse_day(self.since, "--since", now)
        until = parse_day(self.until, "--until", now, end=True)
        known = placeholder_values(call) if self.tag or self.tag_groups else {}
        groups = fill_groups(_read_groups(self.tag_groups), known) if self.tag_groups else ()
        return memory.filters(
            since=since, until=until, tags=fill_tags(self.tag or (), known), groups=groups,
            match=self.tags_match, asked_at=asked_at, **more,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class FilterOptions(ScopeOptions):
    """The options for days, tags and kinds."""

    kind: list[str] | None = option(
        "--kind KIND", "Of this kind: world, experience, preference, passage, core, todo, …"
    )
    source: list[str] | None = option("--source WORD", "Of this origin (person, agent, web, …) or client.")
    retired: bool = flag("--retired", "Include retired facts.")

    def filters(self, call: Call, memory: Memory, asked_at: datetime | None = None, **more: Any) -> Filters:
        more |= {"kinds": self.kind or (), "sources": self.source or (), "retired": self.retired or None}
        return super().filters(call, memory, asked_at, **more)


def _read_groups(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        hint = '--tag-groups \'[{"tags": ["a"]}]\''
        raise Usage(f"--tag-groups is not JSON: {error}", hint=hint) from error


@app.verb()
def search(
    call: Call,
    memory: Memory,
    *,
    query: list[str] | None = Query,
    limit: int | None = Limit,
    min_score: float | None = MinScore,
    where: FilterOptions,
    now: str | None = Now,
    explain: bool = flag("--explain", "Show how each hit was found and scored."),
    interactive: bool = flag("--interactive -i", "Search as you type, and choose with the arrow keys."),
    why_not: str = option(
        "^ID|PATH:LINE", "Explain why this was not found: its rank in each retriever, what removed it.", ""
    ),
    batch: bool = flag(
        "--batch", "Read one query a line from standard input; print a line of JSON for each."
    ),
) -> None:
    """Find facts and notes by keywords and meaning.

    The index is updated first, so what was just written or edited is found. With filters and no query it
    lists what passes them, as `ua-memory list` does.
    """
    filters = where.filters(call, memory, query_time(memory, now))
    chosen: dict[str, Any] = {"limit": limit, "min_score": min_score, "filters": filters}
    if interactive:
        from ua_memory.cli.web import pick

        first = {name: (getattr(where, name) or [""])[0] for name in ("tag", "kind", "source")}
        given = {"since": filters.since, "until": filters.until, **first}
        named = {name: value for name, value in given.items() if value}
        memory.close()  # each search thread opens the bank itself
        return pick(call, memory.store.bank.root, " ".join(query or ()), named)
    if why_not:
        text = join_query(query)
        found = memory.searching.why_not(text, why_not, **chosen)
        emit_json(call, views.trace_json(text, found))
        return views.show_trace(Screen(call), found)
    if filters and not batch and not " ".join(query or ()).strip():
        return show_list(call, memory, filters, limit or LIST_LIMIT)
    queries = _read_batch(call) if batch else [join_query(query)]
    with progress(call, "Indexing") as tell:
        answers = memory.search_many(queries, progress=tell, **chosen)
    if not (batch or call.as_json):
        today, filtered = memory.store.now().date(), bool(filters) or bool(min_score)
        views.show_hits(
            Screen(call), queries[0], answers[0], today, explain=explain, filtered=filtered,
            root=str(memory.store.bank.root),
        )  # fmt: skip
        return None if answers[0].answered else tell_default_bank(call)
    for answer in answers:
        print_json(call, views.search_json(answer, explain), line=batch)
    return None


def query_time(memory: Memory, now: str | None) -> datetime | None:
    """Parse the option `--now`; None if it is not given. Usage."""
    return parse_moment(now, memory.store.now()) if now else None


def join_query(words: list[str] | None, verb: str = "search") -> str:
    """Join a query's words. Usage if there are none."""
    if not words or not " ".join(words).strip():
        raise Usage("the query is empty", hint=f'ua-memory {verb} "why did we leave Heroku"')
    return " ".join(words)


def _read_batch(call: Call) -> list[str]:
    """The queries of a batch, one a line of standard input. TooLarge."""
    rows = given(call).decode("utf-8", "replace").split("\n")
    return [row.removesuffix("\r") for row in (rows[:-1] if not rows[-1] else rows)]


# -- list --------------------------------------------------------------------------------------------------
# `ua-memory list`, `today` and `yesterday`: items without a query.


LIST_LIMIT = 20
"""The default of `list --limit`."""


@app.verb()
def list_(
    call: Call,
    memory: Memory,
    *,
    query: list[str] | None = argument("", "", None, hidden=True),
    limit: int = option("--limit -n N", "Number of items.", LIST_LIMIT, min=1),
    where: FilterOptions,
    person: str = option("NAME", "About somebody or something, by name or alias.", ""),
    session: str = option("ID", "From this session.", ""),
    day: str | None = option("DATE", "From this day, or about it."),
    by_date: bool = flag("--by-date", "Begin with the latest day to come."),
    days: bool = flag("--days", "Count the facts of each day; --limit counts days."),
    counts: bool = flag("--counts", "Count the items by kind, origin, client, session and tag."),
) -> None:
    """List facts and notes by day, the latest first.

    Each stands under the day it is about, else the day it was said, which is what --since and --until
    compare. Without these and --by-date, what is about a later day stands under the day it was said. With
    --kind other records are listed: observation, opinion, page, core, session.
    """
    if query:
        raise Usage("list takes no query", hint=shlex.join(["ua-memory", "search", *query]))
    filters = where.filters(call, memory)
    if days or counts:
        if person or session or day:
            what = "--days counts" if days else "--counts is"
            raise Usage(f"{what} for no person, session or day", hint="--tag, --kind, --source")
        if counts:
            return show_result(
                call, memory.facts.counts(filters), views.counts_json, views.show_counts, limit
            )
        return show_result(call, memory.facts.days(filters=filters)[:limit], views.days_json, views.show_days)
    now = memory.store.now()
    on, last = (parse_day(day, "--day", now, end=end) for end in (False, True))
    if on != last:
        raise Usage(f"{day!r} is not a single day", where="--day", hint=f"--since {on} --until {last}")
    of = {"person": person, "session": session, "day": on or ""}
    return show_list(call, memory, filters, limit, by_date, **of)


def show_list(
    call: Call, memory: Memory, filters: Filters, limit: int, by_date: bool = False, **of: str
) -> None:
    """Print the items that pass the filters, the latest day first; `of` goes to `memory.list`."""
    with progress(call, "Indexing") as tell:
        found = memory.list(filters=filters, limit=limit, by_date=by_date, progress=tell, **of)
    today, filtered = memory.store.now().date(), bool(filters or any(of.values()))
    emit_json(call, views.list_json(found))
    views.show_list(Screen(call), found, today, str(memory.store.bank.root), filtered=filtered)


@app.verb()
def today(call: Call, memory: Memory) -> None:
    """Show what was remembered today.

    The day's log, in its order, with times, clients and sessions; then what else is about today.
    """
    _show_day(call, memory, 0)


@app.verb()
def yesterday(call: Call, memory: Memory) -> None:
    """Show what was remembered yesterday, as `ua-memory today` does."""
    _show_day(call, memory, 1)


def _show_day(call: Call, memory: Memory, ago: int) -> None:
    today = memory.store.now().date()
    day = today - timedelta(days=ago)
    with progress(call, "Indexing") as tell:
        found = memory.list(day=day.isoformat(), progress=tell)
    emit_json(call, {"day": day.isoformat(), **views.list_json(found)})
    views.show_day(Screen(call), found, day, today, str(memory.store.bank.root))


# -- sessions ----------------------------------------------------------------------------------------------
# `ua-memory sessions`: what was said, session by session.


sessions_app = app.family("sessions")

Project = option("NAME", "Only of this project.", "", show_default=False)
Begun = option("DATE", "Started on this day or later: 2026-11-21, 30d.", show_default=False)
SessionName = argument("NAME", "A name from the list, or a session's id.", show_default=False)


@app.verb(sessions_app, "list")
def sessions_list(call: Call, memory: Memory, project: str = Project, since: str | None = Begun) -> None:
    """List the saved sessions, the newest first."""
    day = parse_day(since, "--since", memory.store.now()) or ""
    found = [one for one in memory.sessions.all(project=project) if one.day >= day]
    none = "No sessions yet: hooks and flushes write them."
    if not memory.config.sessions_keep:
        none = "No sessions are saved: sessions.keep is false."
    output.show_list(call, "sessions", found, views.session_json, views.show_session_row, none)


@app.verb(sessions_app, "get")
def sessions_get(call: Call, memory: Memory, name: str = SessionName) -> None:
    """Print a session: who said what, and when."""
    show_result(call, memory.sessions.get(name), views.full_session_json, views.show_session)


@app.verb(sessions_app, "search")
def sessions_search(
    call: Call,
    memory: Memory,
    query: list[str] | None = Query,
    project: str = Project,
    since: str | None = Since,
    until: str | None = Until,
    limit: int | None = Limit,
) -> None:
    """Search the saved sessions by keywords and meaning."""
    tag = [f"project:{project}"] if project else None
    where = ScopeOptions(since=since, until=until, tag=tag, tags_match="all_strict", tag_groups="")
    filters = where.filters(call, memory, kinds=["session"])
    text = join_query(query, "sessions search")
    with progress(call, "Indexing") as tell:
        (answer,) = memory.search_many([text], limit=limit, filters=filters, progress=tell)
    emit_json(call, views.search_json(answer))
    today, filtered = memory.store.now().date(), bool(project or since or until)
    views.show_hits(Screen(call), text, answer, today, explain=False, filtered=filtered)


@app.verb(sessions_app, "forget")
def sessions_forget(call: Call, memory: Memory, name: str = SessionName, yes: bool = app.Yes) -> None:
    """Delete a saved session from the files and the index. Facts from it stay."""
    found = memory.sessions.get(name)
    if not yes and not confirm(call, f"Delete the {counted(len(found.turns), 'turn')} of {found.name}?"):
        return
    memory.sessions.delete(found)
    memory.refresh(vectors=False)
    emit_json(call, {"deleted": found.name})
    Screen(call).line("Deleted: ", (found.name, "path"))


@app.verb(sessions_app, "off")
def sessions_off(call: Call, memory: Memory, yes: bool = app.Yes) -> None:
    """Stop saving sessions in this bank, and delete the saved ones.

    It sets sessions.keep to 0. Facts stay.
    """
    from ua_memory.upkeep.init import set_setting  # with the store, which `--help` need not load

    found = list(memory.sessions.all())
    sessions = counted(len(found), "session")
    if not yes and found and not confirm(call, f"Delete {sessions}, and save none from now on?"):
        return
    set_setting(memory.store, "sessions.keep", False, by_person=is_person(call))
    for one in found:
        memory.sessions.delete(one)
    memory.refresh(vectors=False)
    emit_json(call, {"keep": False, "deleted": [one.name for one in found]})
    Screen(call).line(f"Deleted {sessions}. To save sessions again: ua-memory config set sessions.keep true")


# -- recall ------------------------------------------------------------------------------------------------


@app.verb()
def recall(
    call: Call,
    memory: Memory,
    *,
    query: list[str] | None = Query,
    limit: int | None = Limit,
    min_score: float | None = MinScore,
    budget: str = option(
        "SIZE", "low, mid or high: 600, 2,000 or 6,000 tokens (default: recall.budget).", ""
    ),
    max_tokens: int | None = option(
        "--max-tokens N", "Token limit, marks included (default: recall.max_tokens).", min=1, max=1_000_000
    ),
    where: FilterOptions,
    now: str | None = Now,
) -> None:
    """Format search hits as a block for a prompt.

    It is marked as data, with date and place of every line. By default it has as many lines as search has
    hits, and at most 9,500 characters; with a budget, as many as its tokens hold. If nothing is found,
    nothing is printed.
    """
    filters = where.filters(call, memory, query_time(memory, now))
    with progress(call, "Indexing") as tell:
        found = memory.recall(
            join_query(query, "recall"), budget=budget, max_tokens=max_tokens, limit=limit,
            min_score=min_score, filters=filters, progress=tell,
        )  # fmt: skip
    show_result(call, found, views.recall_json, views.show_recall)


# -- explain -----------------------------------------------------------------------------------------------


@app.verb()
def explain(
    call: Call,
    memory: Memory,
    query: list[str] = argument("QUERY...", "As for search."),
    now: str | None = Now,
) -> None:
    """Show how a query is interpreted: its time, its names, its search terms.

    Nothing is searched or indexed. Time words are described in docs/time.md.
    """
    asked = parse_moment(now, memory.store.now())
    found = memory.explain(" ".join(query), asked)
    emit_json(call, views.explanation_json(found))
    views.show_explanation(Screen(call), found, asked)


# -- get ---------------------------------------------------------------------------------------------------


@app.verb()
def get(
    call: Call,
    memory: Memory,
    target: str = argument(
        "PATH[:FROM-TO] | ^ID | DAY",
        "A file such as memory/2026-11-21.md, optionally with lines, an id, or a day such as "
        "2026-11-21 or yesterday; any form that a command prints.",
    ),
    raw: bool = app.Raw,
) -> None:
    """Read a file, some of its lines, or a fact."""
    read = memory.get(target)
    at = output.place_json(Place(read.path, read.line, read.end), read.id)
    emit_json(call, {**at, "lines": read.lines, "text": read.text})
    if read.text:
        Screen(call).raw(read.text, exact=raw)


# -- edit and open -----------------------------------------------------------------------------------------
# `ua-memory edit` and `open`: a note in the editor, in Obsidian, or in the system's default program.


Target = argument("[TARGET]", "A file, a page, a line, an id or a day, as for get.", "", show_default=False)
PLUS_LINE_EDITORS = frozenset(
    "vi vim nvim gvim view nano pico emacs emacsclient micro kak joe mg ne jed gedit".split()  # noqa: SIM905
)
"""Editors that open a line by `+LINE FILE`."""
GOTO_EDITORS = frozenset("code code-insiders code-oss codium vscodium cursor windsurf".split())  # noqa: SIM905
"""Editors that open a line by `-g FILE:LINE`."""
COLON_EDITORS = frozenset("hx helix subl sublime_text zed zeditor".split())  # noqa: SIM905
"""Editors that open a line by `FILE:LINE`."""
OPEN_TIMEOUT = 10.0
"""Seconds after which a program that is still running is assumed to show the file."""


@app.verb(json=False)
def edit(call: Call, memory: Memory, target: str = Target) -> None:
    """Open a note or a fact in your editor, at its line; MEMORY.md without TARGET.

    The editor is $VISUAL, else $EDITOR, else vi; it may have arguments ("code --wait"). What you save is
    committed under your name when the editor ends, except of a note outside of memory/. A day without a
    log (`edit today`) gets one when you save it.
    """
    words = editor_command(call)
    file, line = memory.locate(target)
    path = os.path.relpath(file, memory.store.bank.root)
    before = files.read(file) if is_memory_file(path) else None
    memory.close()  # the editor may stay open for hours
    run_editor(call, [*words, *open_at_line(words[0], str(file), line)])
    if is_memory_file(path) and files.read(file) != before:
        done, screen = memory.store.adopt([path]), Screen(call)
        if path not in memory.store.survey().changed:
            screen.line("Saved ", (path, "path"), " (", output.commit_label(done.revision), ")")
        screen.note(*done.notes)


def editor_command(call: Call) -> list[str]:
    """The caller's editor with its arguments, vi at a terminal if none is set. Usage."""
    default = "vi" if call.reads_terminal else ""
    named = next((one for one in map(call.env.get, ("VISUAL", "EDITOR")) if one and one.strip()), default)
    try:
        words = shlex.split(named)
    except ValueError as error:
        raise Usage(f"the editor {named!r} cannot be read: {error}", hint="set EDITOR") from error
    if not words:
        hint = "export EDITOR=nano, or vim, or 'code --wait'"
        raise Usage("no editor is set, and this is no terminal", hint=hint)
    return words


def open_at_line(editor: str, file: str, line: int) -> list[str]:
    """The editor's arguments that open a file at a line (0 for none), or only the file for unknown
    editors."""
    name = editor.rpartition("/")[2].removesuffix(".exe")
    if line and name in PLUS_LINE_EDITORS:
        return [f"+{line}", file]
    if line and name in GOTO_EDITORS:
        return ["-g", f"{file}:{line}"]
    return [f"{file}:{line}" if line and name in COLON_EDITORS else file]


def run_editor(call: Call, words: list[str]) -> None:
    """Run an editor and wait for it. Usage if it cannot be started or fails."""
    call.stdout.flush()
    try:
        code = subprocess.run(words, env=dict(call.env), check=False).returncode
    except OSError as error:
        what = f"the editor {words[0]!r} cannot be started: {error.strerror}"
        raise Usage(what, hint="set EDITOR") from error
    if code:
        raise Usage(f"the editor {words[0]!r} ended with {code}", hint="VISUAL or EDITOR sets which one runs")


@app.verb(json=False)
def open_(
    call: Call,
    memory: Memory,
    target: str = Target,
    only: bool = flag("--print", "Print what would be opened, and open nothing."),
) -> None:
    """Open the bank or a note in another program.

    In a vault (.obsidian in the bank or above it) the note is opened in Obsidian, MEMORY.md without TARGET.
    Elsewhere it is opened by the program that the system has for it, and without TARGET the bank's folder by
    the file manager. Where nothing can open it, its path is printed.
    """
    root, (file, _) = memory.store.bank.root, memory.locate(target)
    vault = vault_of(file.parent)
    if vault and not any(part.startswith(".") for part in file.relative_to(vault).parts):
        address = f"obsidian://open?path={quote(str(file), safe='')}"
    else:
        address = str(file if target else root)
    if only or not _open_with_system(call, address):
        Screen(call).raw(address)
    else:
        Screen(call).line("Opened ", (address, "path"))


def _open_with_system(call: Call, address: str) -> bool:
    """Open a file, folder or link with the system's default program. True if that worked."""
    tool = shutil.which("open" if sys.platform == "darwin" else "xdg-open", path=call.env.get("PATH"))
    if not tool:
        return False
    quiet = subprocess.DEVNULL
    try:
        running = subprocess.Popen(
            [tool, address], env=dict(call.env), stdin=quiet, stdout=quiet, stderr=quiet,
            start_new_session=True,
        )  # fmt: skip
        return running.wait(OPEN_TIMEOUT) == 0
    except subprocess.TimeoutExpired:
        return True
    except OSError:
        return False
