"""`import`, `export` and `sync`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from ua_memory import caller, discovery, paths
from ua_memory.bench import compare
from ua_memory.caller import Call, given
from ua_memory.cli import app
from ua_memory.cli.app import argument, flag, option
from ua_memory.cli.history import backup_file
from ua_memory.clients.transcripts import (
    READABLE_CLIENTS,
    all_transcripts,
    folder_names,
    require_readable,
    transcripts_in,
)
from ua_memory.errors import NotFound, StillThere, Usage
from ua_memory.hooks import context
from ua_memory.hooks.capture import queue_ended_sessions
from ua_memory.index.filters import parse_since
from ua_memory.memory import Memory
from ua_memory.upkeep import import_sources
from ua_memory.upkeep.import_ import ask_backend, import_contents
from ua_memory.views import history, output
from ua_memory.views import retain as views_retain
from ua_memory.views.output import Screen, count, emit_json, note, progress, show_result

if TYPE_CHECKING:
    from ua_memory.retain.flush import FlushedSession
    from ua_memory.retain.survey import FoundSession, Survey
    from ua_memory.upkeep.import_sources import Files, SourceContents


# -- imports ---------------------------------------------------------------------------------------------
# `ua-memory import`: what other tools remembered, into this bank.


DEFAULT_DAYS = 7
SINCE = "30d"


@app.verb()
def import_(
    call: Call,
    memory: Memory,
    source: Literal[
        "sessions", "openclaw", "claude-code", "basic-memory", "markdown", "hindsight", "archive"
    ] = argument("SOURCE", "sessions, openclaw, claude-code, basic-memory, markdown, hindsight or archive."),
    path: str | None = argument(
        "PATH", "The folder or file (default for sessions: where clients keep them).", None
    ),
    days: int | None = option("N", "The newest N days of the source (default: 7).", min=0),
    everything: bool = flag("--all", "Everything, whatever its date."),
    since: str | None = option("DATE", "Sessions with turns since: 30d (default), 2w, 2026-11-21."),
    client: list[str] | None = option("--client NAME", "Sessions of this client; repeatable."),
    project: str | None = option("NAME", "Sessions of this project, or in this folder and below."),
    dry_run: bool = flag("--dry-run", "Show what would be imported; change nothing."),
    compare: str | None = option(
        "FILE", "Compare the old index with ours on the queries in FILE, one a line."
    ),
    old: str | None = option("INDEX", "The old index: its SQLite file, or the URL of a bank of Hindsight."),
) -> None:
    """Import what another tool remembered.

    Curated memory comes first, then the newest days; --all takes the rest. Text is copied verbatim, the
    source is never written, and a second run adds nothing twice. It is one commit; undo reverses it. With
    --compare nothing is imported: both indexes answer, over everything the source has. For `sessions` the
    transcripts that clients keep on this machine are flushed, one commit each. An `archive` is what `export`
    wrote: verified, then merged by id. See docs/import.md.
    """
    given = {
        "--days": days is not None, "--all": everything, "--since": since, "--client": client,
        "--project": project, "--compare": compare, "--old": old,
    }  # fmt: skip
    for name, value in given.items():
        if value and name not in SOURCE_OPTIONS.get(source, ("--days", "--all", "--compare", "--old")):
            raise Usage(f"{name} does not apply to {source}", hint="ua-memory import --help")
    if source == "sessions":
        if everything and since:
            raise Usage("--all and --since cannot be used together")
        past = None if everything else since or SINCE
        return _import_sessions(call, memory, path, past, client or (), project, dry_run=dry_run)
    if path is None:
        what = "FILE" if source == "archive" else "PATH"
        raise Usage(f"{what} is missing", hint=f"ua-memory import {source} {what}")
    if source == "archive":
        return _import_archive(call, memory, path, dry_run)
    root, ours = paths.absolute(call, path), memory.store.bank.root
    if ours in (root.resolve(), *root.resolve().parents):
        raise Usage("this is the bank itself; its notes are searched already", where=str(root.resolve()))
    files, unread = import_sources.files_of(root, ours, source)
    found = import_sources.read_source(source, root.resolve().name, files)
    if compare or old:
        return _compare_searches(call, found, root, files, compare, old)
    within = found.within(None if everything else DEFAULT_DAYS if days is None else days)
    done = import_contents(memory.store, within, door=memory.door, dry_run=dry_run)
    return show_result(call, done, views_retain.import_json, views_retain.show_import, unread)


SOURCE_OPTIONS = {"sessions": ("--all", "--since", "--client", "--project"), "archive": ()}
"""The options that a source takes; sources that are not listed take the rest."""


def _import_archive(call: Call, memory: Memory, path: str, dry_run: bool) -> None:
    done = memory.remote.restore(paths.absolute(call, path), dry_run=dry_run)
    show_result(call, done, history.restore_json, history.show_restore)
    if done.forgotten and not done.forgotten.proof.is_clean:
        raise typer.Exit(StillThere.exit_code)


def _compare_searches(
    call: Call, found: SourceContents, root: Path, files: Files, queries: str | None, old: str | None
) -> None:
    if not queries:
        raise Usage("--old needs --compare", hint="add --compare FILE, with one query a line")
    asked = read_queries(call, queries)
    index = old if old is None or re.match(r"https?://", old) else paths.absolute(call, old)
    backend = ask_backend(found, root, files, index, call.home)
    done = compare(found, backend, asked, now=call.now, progress=progress(call, "Embedding"))
    show_result(call, done, views_retain.comparison_json, views_retain.show_comparison)


# -- import sessions -------------------------------------------------------------------------------------
# `ua-memory import sessions`: find transcripts on this machine, show what is in them, flush what is new.


def _import_sessions(
    call: Call, memory: Memory, path: str | None, since: str | None, clients: Sequence[str],
    project: str | None, *, dry_run: bool,
) -> None:  # fmt: skip
    """Find sessions below `path`, by default on this machine, show them, and flush them unless it is a dry
    run. `since`, clients and project restrict them."""
    require_readable(clients)
    if not memory.config.enabled:
        off = memory.flush().notes  # that memory is switched off
        emit_json(call, views_retain.survey_json(dry_run, notes=off))
        return Screen(call).note(*off)
    day = parse_since(since, memory.store.now())
    if not dry_run:  # turns that hooks captured go before those of the transcripts
        queue_ended_sessions(memory, lambda text: note(call, text), model=bool(call.model(memory)))
    if path is None:
        transcripts = all_transcripts(call, clients or READABLE_CLIENTS)
        places = folder_names(call, clients)
    else:
        transcripts, places = transcripts_in(paths.absolute(call, path)), [path]
    there = list(transcripts)
    with progress(call, "Reading sessions") as tell:
        open_ones = context.open_sessions(memory.store.bank.pending)
        found = memory.transcripts.survey(there, since=day, going=open_ones, tell=tell)
    of_clients = [one for one in found.sessions if not clients or one.family in clients]
    chosen = [one for one in of_clients if project is None or _is_of_project(call, one, project)]
    fresh = [one for one in chosen if one.new or one.queued]
    views_retain.show_survey(Screen(call), found, chosen, f"{day:%Y-%m-%d}" if day else None, places)
    if dry_run:
        return _preview_sessions(call, memory, found, chosen, fresh)
    return _flush_sessions(call, memory, found, chosen, fresh)


def _is_of_project(call: Call, one: FoundSession, project: str) -> bool:
    """Whether a session belongs to a project, given by its name or a folder above it."""
    folder = Path(one.session.cwd) if one.session.cwd else None
    named = paths.absolute(call, project).resolve()
    names = (one.project, folder.name if folder else "")
    below = folder is not None and named in (folder, *folder.parents)
    return below or project.casefold() in map(str.casefold, names)


def _preview_sessions(
    call: Call, memory: Memory, found: Survey, chosen: list[FoundSession], fresh: list[FoundSession]
) -> None:
    kept, cost = memory.transcripts.preview(fresh, model=call.model(memory))
    shape = views_retain.survey_json(True, chosen, found)
    emit_json(call, {**shape, "preview": kept, **output.estimate_json(cost)})
    screen = Screen(call)
    if fresh:
        screen.line(f"Without a model {count(kept, 'fact')} would be saved.")
        if cost:
            screen.line(output.estimate_text(cost))
        screen.line(("Nothing was changed. Without --dry-run they are flushed, one commit each.", "faint"))


def _flush_sessions(
    call: Call, memory: Memory, found: Survey, chosen: list[FoundSession], fresh: list[FoundSession]
) -> None:
    done: list[FlushedSession] = []
    screen = Screen(call)
    try:
        for one, flushed in memory.transcripts.flush(fresh, model=call.model(memory)):
            done.append(flushed)
            # A line as each is done, which is all the progress one needs to see.
            views_retain.show_survey_flush(screen, one, flushed)
            call.stdout.flush()
    finally:  # also print what was flushed before an error
        emit_json(call, views_retain.survey_json(False, chosen, found, done))
        if done:
            views_retain.conclude_survey(screen, done)
            if not call.model(memory):
                note(call, views_retain.NO_MODEL)


# -- import --compare ------------------------------------------------------------------------------------


def read_queries(call: Call, path: str) -> list[str]:
    """The queries of a file, one a line; `-` reads standard input. Usage if there are none; NotFound."""
    try:
        data = given(call) if path == "-" else discovery.read(paths.absolute(call, path))
    except OSError as error:
        hint = "name a file with one query a line"
        raise NotFound(error.strerror or str(error), where=path, hint=hint) from error
    queries = [line.strip() for line in data.decode("utf-8-sig", "replace").splitlines() if line.strip()]
    if not queries:
        raise Usage("the file contains no queries", where=path, hint="write one query a line")
    return queries


# -- sync ------------------------------------------------------------------------------------------------


@app.verb()
def sync(
    call: Call,
    memory: Memory,
    remote: str | None = option("ADDRESS", "The remote's address, as for git; needed once."),
    dry_run: bool = flag("--dry-run", "Fetch and show what would be done; change nothing."),
) -> None:
    """Sync with the remote.

    Pulls, merges by id and pushes. What either machine added stays, what one deleted is deleted unless the
    other changed it, what was forgotten does not return, and two versions of one fact are both kept. A purge
    on one machine is applied on the others. See docs/sync.md.
    """
    remote = remote and caller.remote_address(call, remote)
    done = memory.remote.sync(remote, dry_run=dry_run, backup=backup_file(call, memory, None))
    show_result(call, done, history.sync_json, history.show_sync)
    if any(one and not one.proof.is_clean for one in (done.followed, done.forgotten)):
        raise typer.Exit(StillThere.exit_code)


@app.verb()
def export(
    call: Call,
    memory: Memory,
    file: str = argument("FILE", "The archive to write: a .tar outside the bank."),
    sessions: bool = flag("--sessions", "Include the saved sessions."),
    dry_run: bool = flag("--dry-run", "Show what it would contain; write nothing."),
) -> None:
    """Export the whole bank to one file.

    Its files, its history as a git bundle, and a manifest with the hash of each; with --sessions also what
    was said in sessions. No index, keys or queue.
    `import archive FILE` verifies everything before it imports it. See docs/sync.md.
    """
    if file == "-":
        raise Usage("an archive is not written to standard output", hint="ua-memory export FILE.tar")
    where = paths.absolute(call, file)
    with progress(call, "Writing files") as tell:
        done = memory.remote.export(where, sessions=sessions, dry_run=dry_run, tell=tell)
    keys = ("file", "bank", "revision", "revisions", "files", "sessions", "bytes")
    emit_json(call, {**output.fields(done, *keys), "dry_run": dry_run, **output.fields(done, "notes")})
    said = [count(done.sessions, "session")] if done.sessions else []
    parts = (count(done.files, "file"), count(done.revisions, "revision"), *said, f"{done.bytes:,} bytes")
    what = ", ".join(parts)
    Screen(call).line("Would write " if dry_run else "Wrote ", (done.file, "path"), f": {what}")
    for text in done.notes:
        note(call, text)
