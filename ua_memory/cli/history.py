"""`log`, `diff`, `undo`, `redo`, `blame`, `why`, `git`, `forget`, `scan`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ua_memory import paths
from ua_memory.caller import Call, is_person
from ua_memory.cli import app
from ua_memory.cli.app import argument, flag, option
from ua_memory.cli.search import Since, Until
from ua_memory.errors import Conflict, ProblemsFound, StillThere, Usage
from ua_memory.index.filters import parse_since, parse_until
from ua_memory.knowledge.statements import strip_target
from ua_memory.upkeep import audit
from ua_memory.upkeep.forget import is_forgotten
from ua_memory.views import history as views
from ua_memory.views import output
from ua_memory.views.output import Screen, confirm, count, emit_json, note, progress, show_result

if TYPE_CHECKING:
    from ua_memory.git.repository import Revision
    from ua_memory.memory import Memory
    from ua_memory.upkeep.forget import ForgetResult
    from ua_memory.upkeep.undo import UndoPlan, UndoResult
    from ua_memory.views.history import DiaryEntry


# -- log ---------------------------------------------------------------------------------------------------
# `ua-memory log`: what was done, read like a diary.


SEARCH_DEPTH = 2000
"""Revisions that are looked through for a text or an author."""
GROUP_SIZE = 10
"""So many revisions are read for each entry that is shown: those in a row that are alike are one."""


@app.verb()
def log(
    call: Call,
    memory: Memory,
    about: str | None = argument("[PATH | ^ID]", "Only changes to this file or fact.", None),
    number: int = option("-n --limit N", "Number of entries (with --json: revisions).", 20, min=1),
    op: str | None = option("WORD", "Only this operation: insert, adopt, undo, …"),
    since: str | None = Since,
    until: str | None = Until,
    before: str | None = option("REV", "Only entries older than this revision: the next page."),
    by: str = option("NAME", "Only by authors whose name contains this.", ""),
    text: str = option("TEXT", "Only entries that contain this, also in a file's name.", ""),
    each: bool = flag("--each", "One entry per revision."),
    no_pager: bool = app.NoPager,
) -> None:
    """Show the history, newest first, as a diary.

    Each entry has the id that `undo` and `diff` take; facts that one client inserted in a row are one
    entry, with the id of the last. Hand edits are listed under the name of the person who made them.
    """
    now = memory.store.now()
    done = partial(
        memory.history.log, about, op=op, since=parse_since(since, now), until=parse_until(until, now),
        before=before,
    )  # fmt: skip
    if call.as_json or by or text:
        found = find_revisions(memory, done, about, number, by.casefold(), text.casefold())
        if not call.as_json:
            return views.show_log(Screen(call), [entry for _, entry in found], now.date())
        return emit_json(call, {"revisions": [views.log_row(*pair) for pair in found]})
    return views.show_log(Screen(call), list_entries(memory, done, about, number, separate=each), now.date())


def find_revisions(
    memory: Memory, log: Callable[..., Sequence[Revision]], about: str | None, number: int, by: str, text: str
) -> list[tuple[Revision, DiaryEntry]]:
    """The newest of the last SEARCH_DEPTH revisions whose author has `by`, and whose entry, subject or paths
    have `text`."""
    found: list[tuple[Revision, DiaryEntry]] = []
    undone, searched, older = memory.store.history.undone_revisions(), 0, dict[str, str]()
    batch = max(number, GROUP_SIZE * GROUP_SIZE) if by or text else number
    while len(found) < number and searched < SEARCH_DEPTH:
        revisions = log(limit=batch, **older)
        theirs = [one for one in revisions if by in one.author.casefold()]
        pairs = zip(theirs, entries(memory, theirs, about, undone, separate=True), strict=True)
        found += [
            (one, entry) for one, entry in pairs
            if text in "\n".join((entry.sentence, one.subject, *one.paths)).casefold()
        ]  # fmt: skip
        if len(revisions) < batch or not (by or text):
            break
        searched, older = searched + len(revisions), {"before": revisions[-1].id}
    return found[:number]


def list_entries(
    memory: Memory, log: Callable[..., Sequence[Revision]], about: str | None, number: int, *, separate: bool
) -> list[DiaryEntry]:
    """The newest `number` entries. More revisions are read until the last entry's group is complete."""
    zone, undone, wanted = memory.store.now().tzinfo, memory.store.history.undone_revisions(), number
    while True:
        limit = wanted if separate else wanted * GROUP_SIZE
        revisions = log(limit=limit)
        # Groups are found without the records' texts, so these are read only for the revisions shown.
        after = views.diary_entries(revisions, {}, undone, zone, separate=separate)[wanted:]
        starts = {one.revision for one in after[:1]}
        end = next((n + 1 for n, one in enumerate(revisions) if one.id in starts), len(revisions))
        found = entries(memory, revisions[:end], about, undone, separate=separate)
        if separate or len(found) > number or (end == len(revisions) and len(revisions) < limit):
            return found[:number]
        wanted *= 2


def entries(
    memory: Memory, revisions: Sequence[Revision], about: str | None = None,
    undone: Collection[str] = (), *, separate: bool = False,
) -> list[DiaryEntry]:  # fmt: skip
    """The diary's entries of revisions, with the records that they added and the revisions that they
    undid."""
    referenced = memory.history.undone_by(revisions)
    records = memory.history.statements_by_revision([*revisions, *referenced], about)
    zone = memory.store.now().tzinfo
    return views.diary_entries(revisions, records, undone, zone, separate=separate, referenced=referenced)


# -- diff --------------------------------------------------------------------------------------------------
# `ua-memory diff`: what a revision changed.


@app.verb()
def diff(
    call: Call,
    memory: Memory,
    revision: str | None = argument(
        "[REVISION]", "A revision from the log (default: hand edits that are not committed yet).", None
    ),
    number: int | None = option("-n --limit N", "With --json: so many of the changed statements.", min=1),
    raw: bool = app.Raw,
    no_pager: bool = app.NoPager,
) -> None:
    """Show what a revision changed.

    On a terminal a pager shows it, as it does the log: UA_MEMORY_PAGER, else PAGER, else less.
    """
    text = memory.history.diff(revision)
    if call.as_json:
        shown = [memory.store.history.show(strip_target(revision))] if revision else []
        rows = map(views.log_row, shown, entries(memory, shown, separate=True))
        changes = memory.history.changes(revision, number)
        emit_json(call, views.diff_json(revision, text, changes, next(rows, None)))
    elif text:
        Screen(call).diff(text, exact=raw)
    elif call.on_terminal:
        Screen(call).line("No hand edits that are not committed." if revision is None else "No file changed.")


# -- undo --------------------------------------------------------------------------------------------------
# `ua-memory undo` and `redo`: take back a revision, and take that back.


DryRun = flag("--dry-run", "Show what would change against now, and conflicts; change nothing.")


@app.verb()
def undo(
    call: Call,
    memory: Memory,
    revision: str | None = argument(
        "[REVISION]", "A revision from the log (default: this machine's newest).", None
    ),
    dry_run: bool = DryRun,
) -> None:
    """Reverse a revision.

    Later changes stay. If the same lines changed again, both sides are shown and nothing is written. If
    facts disappeared all at once and are held, plain `undo` restores them.
    """
    if dry_run:
        return _show_undo_plan(call, memory, memory.history.plan_undo(revision))
    held = revision is None and bool(memory.status(quick=True).held)
    done = memory.history.undo(revision, by_person=is_person(call))
    return _show_undo(call, memory, done, "" if held else "ua-memory redo")


@app.verb()
def redo(call: Call, memory: Memory, dry_run: bool = DryRun) -> None:
    """Reverse the newest undo."""
    if dry_run:
        return _show_undo_plan(call, memory, memory.history.plan_redo())
    done = memory.history.redo(by_person=is_person(call))
    return _show_undo(call, memory, done, f"ua-memory undo {(done.result.revision or '')[:7]}".rstrip())


def _show_undo_plan(call: Call, memory: Memory, plan: UndoPlan) -> None:
    """Print what an undo would change, or its conflicts, and exit with the code of the undo."""
    if call.as_json:
        emit_json(call, views.undo_plan_json(plan))
    else:
        said = "" if plan.op == "restore" else entries(memory, [plan.revision])[0].sentence
        views.show_undo_plan(Screen(call), plan, said)
    if plan.conflicts:
        raise typer.Exit(Conflict.exit_code)


def _show_undo(call: Call, memory: Memory, done: UndoResult, back: str) -> None:
    """Print what was undone, as `log` says it. `back` is the command that reverses it, empty if disappeared
    facts were restored."""
    if call.as_json:
        return emit_json(call, views.undo_json(done))
    said = ""
    if back:  # the log's own entry, without the author, which also exists before the commit
        op = "undo" if back.endswith("redo") else "redo"
        named = {"Memory-Op": (op,), "Undoes": (done.revision.id,)}
        own = replace(done.revision, id="", author=views.OUR_AUTHOR, subject=f"{op}: {done.revision.subject}",
                      trailers=named, paths=())  # fmt: skip
        said = entries(memory, [own])[0].sentence
    return views.show_undo(Screen(call), done, said, back)


# -- blame -------------------------------------------------------------------------------------------------
# `ua-memory blame`: who wrote each line.


@app.verb()
def blame(
    call: Call,
    memory: Memory,
    target: str = argument("PATH[:FROM-TO] | ^ID", "A file, lines of it, or a fact's id."),
) -> None:
    """Show who wrote each line, and when."""
    lines = memory.history.blame(target)
    emit_json(call, {"lines": [output.blame_json(line) for line in lines]})
    views.show_blame(Screen(call), lines, memory.store.now())


# -- why ---------------------------------------------------------------------------------------------------
# `ua-memory why`: trace a statement to its sources.


@app.verb()
def why(
    call: Call,
    memory: Memory,
    target: str = argument("PAGE:LINE | PATH:LINE | ^ID", "A line of a page or file, or an id."),
    up: bool = flag("--up", "Show what cites it instead: observations, opinions, pages."),
) -> None:
    """Trace a statement to its sources: observations, facts, quotes, session, commit.

    Broken links are reported in their place; the exit code is then 4 (a cited id does not exist) or 12.
    """
    if up:
        found = memory.facts.cited_by(target)
        emit_json(call, views.citing_json(target, found))
        return views.show_citing(Screen(call), found)
    chain = memory.history.why(target)
    emit_json(call, views.chain_json(chain))
    views.show_chain(Screen(call), chain, memory.store.now())
    if chain.breaks:
        broken = count(len(chain.breaks), "link of this chain is", "links of this chain are")
        note(call, f"{broken} broken")
        raise typer.Exit(chain.exit_code)
    return None


# -- git ---------------------------------------------------------------------------------------------------
# `ua-memory git …`: git itself, on the bank's history.


_GITS_OWN = {"ignore_unknown_options": True, "allow_extra_args": True, "allow_interspersed_args": False}


@app.verb(json=False, context_settings=_GITS_OWN)
def git(
    call: Call,
    memory: Memory,
    words: list[str] | None = argument(
        "ARGS...", "git's own arguments: log --stat, show HEAD, remote add, …", None
    ),
) -> None:
    """Run git on the bank's history.

    Where the bank is a repository of its own, plain git does the same. Inside another repository the history
    is kept apart, and this gives access to it.
    """
    call.stdout.flush()
    raise typer.Exit(memory.history.git(words or ["help"], call.env))


# -- forget ------------------------------------------------------------------------------------------------
# `ua-memory forget`: remove statements and what was derived from them, then search for what is left.


@app.verb()
def forget(
    call: Call,
    memory: Memory,
    target: list[str] | None = argument("[^ID|PATH:LINE]...", "Ids, or lines of a file.", None),
    query: str = option("--query QUERY", "Statements with all of these words.", ""),
    limit: int | None = option("N", "Only the N best of these.", min=1),
    session: str = option("--session ID", "Everything from a session.", ""),
    entity: str = option("--entity NAME", "Everything about somebody.", ""),
    dry_run: bool = flag("--dry-run", "Show exactly what would be removed and revised; change nothing."),
    yes: bool = flag("--yes", "Do not ask for confirmation. Your own lines that quote it stay."),
    own_lines: bool = flag("--own-lines", "Remove your own lines that quote it too."),
    purge: bool = flag("--purge", "Rewrite the history too; without ids, for everything forgotten."),
    backup: str | None = option("FILE", "Where a purge saves the old history."),
) -> None:
    """Remove a fact and what was derived from it.

    It is removed from the files, the index, the caches and the queue; what also rests on something else is
    revised. Then everything is searched for the words. The history keeps them, and `undo` restores them. A
    tombstone (id and salted hash) keeps imports, flushes and other machines from bringing them back.

    With --purge the history is rewritten too. The old one is saved to a bundle outside of the bank; the
    purge is finished when you delete that.
    """
    only_purge = purge and (target or not (query or session or entity))
    if only_purge and all(is_forgotten(memory.store, one) for one in target or ()):
        code = _purge_history(call, memory, target or (), None, backup, dry_run=dry_run, yes=yes)
        raise typer.Exit(code)
    named = {"query": query, "session": session, "entity": entity, "limit": limit}
    found = memory.forget(*(target or ()), **named, dry_run=True, take=own_lines)  # type: ignore[arg-type]
    if dry_run:
        return _show_forget_plan(call, memory, found, purge)
    confirmed, with_own_lines = (True, False) if yes else _confirm_forget(call, memory, found, purge)
    if not confirmed:
        return None
    take = own_lines or with_own_lines
    done = memory.forget(*(target or ()), **named, take=take, by_person=is_person(call))  # type: ignore[arg-type]
    if purge:
        raise typer.Exit(_purge_history(call, memory, (), done, backup, dry_run=False, yes=yes))
    emit_json(call, views.forget_json(done, memory.config.redact))
    views.show_forget(Screen(call), done)
    raise typer.Exit(0 if done.proof.is_clean else StillThere.exit_code)


def _show_forget_plan(call: Call, memory: Memory, found: ForgetResult, purge: bool) -> None:
    show = partial(views.show_forget_plan, purging=purge)
    show_result(call, found, views.forget_json, show, memory.config.redact)


def _confirm_forget(call: Call, memory: Memory, found: ForgetResult, purge: bool) -> tuple[bool, bool]:
    """Ask whether to forget, and whether also the person's own lines. Usage if nobody can be asked."""
    several = len(found.plan.requested) + len(found.waiting) > 1
    quoting = views.quoting_lines(found)
    if not call.reads_terminal or call.as_json:
        if several:
            hint = "review them with --dry-run, then pass --yes"
            raise Usage(f"{count(len(found.plan.requested), 'statement')} would be forgotten", hint=hint)
        return True, False
    if not several and not quoting:
        return True, False
    _show_forget_plan(call, memory, found, purge)
    if several and not confirm(call, f"Forget these {len(found.plan.requested)}?"):
        return False, False
    many = len(quoting) > 1
    lines = f"the {len(quoting)} lines of yours that quote" if many else "the line of yours that quotes"
    return True, bool(quoting) and confirm(call, f"Also remove {lines} it?", "Your own stay.")


def _purge_history(
    call: Call, memory: Memory, ids: Sequence[str], done: ForgetResult | None, backup: str | None, *,
    dry_run: bool, yes: bool,
) -> int:  # fmt: skip
    """Show what would be rewritten, ask, and rewrite the history. Returns the exit code."""
    screen, code = Screen(call), 0 if done is None or done.proof.is_clean else StillThere.exit_code
    planned = memory.purges.plan(*ids, after=done)
    if done:
        views.show_forget(screen, done, purging=True)
    views.show_purge_plan(screen, planned)
    if dry_run:
        emit_json(call, {"dryRun": True, "purge": views.purge_plan_json(planned)})
        return code
    if not yes:
        if not call.reads_terminal or call.as_json:
            what = f"{count(len(planned.refs), 'branch or tag', 'branches and tags')} would be rewritten"
            raise Usage(what, hint="review them with --dry-run, then pass --yes")
        if not confirm(call, f"Rewrite {'these' if len(planned.refs) > 1 else 'it'}?", "The history stays."):
            return code
    made = memory.purges.run(planned, backup_file(call, memory, backup))
    known = views.forget_json(done, memory.config.redact) if done else {"dryRun": False}
    emit_json(call, {**known, "purge": {**views.purge_plan_json(planned), **views.purge_json(made)}})
    views.show_purge(screen, planned, made)
    return code if made.proof.is_clean else StillThere.exit_code


def backup_file(call: Call, memory: Memory, given: str | None) -> Path:
    """The file for a backup of the old history, outside of the bank so that it is never pushed."""
    if given:
        return paths.absolute(call, given)
    base = paths.absolute(call, call.env.get("XDG_DATA_HOME") or "~/.local/share")
    name = f"{memory.store.bank.root.name}-{memory.store.now():%Y%m%d-%H%M%S}.bundle"
    return base / "ua-memory" / "purged" / name


# -- scan --------------------------------------------------------------------------------------------------
# `ua-memory scan`: find secrets in the files or in the history.


@app.verb()
def scan(call: Call, memory: Memory, history: bool = flag("--history", "Search every revision too.")) -> None:
    """Find secrets in the files.

    What people write is never changed, so a secret in a hand-written note stays until they remove it; search
    and agents see it masked. Prints `file:line: kind`, never the secret; what only the history has begins
    with its revision. The exit code is 12 if there are any.
    """
    with progress(call, "Reading files") as tell:
        found = audit.find_secrets(memory.store, tell)
        past = audit.find_past_secrets(memory.store) if history else []
    show_result(call, (found, past if history else None), views.secrets_json, views.show_secrets)
    if found or past:
        raise typer.Exit(ProblemsFound.exit_code)
