"""`log`, `diff`, `undo`, `redo`, `blame`, `why`, `git`, `forget`, `scan`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ua_memory import caller
from ua_memory.cli import app
from ua_memory.errors import GitFailed, NotFound, ProblemsFound, StillThere, Usage
from ua_memory.upkeep import audit
from ua_memory.upkeep.forget import is_forgotten
from ua_memory.views import history as views_history
from ua_memory.views import output
from ua_memory.views.output import Screen, agrees, commit, count, emit, note, outcome

if TYPE_CHECKING:
    from ua_memory.caller import Call
    from ua_memory.git.repository import Revision
    from ua_memory.memory import Memory
    from ua_memory.upkeep.forget import ForgetResult
    from ua_memory.upkeep.undo import UndoResult
    from ua_memory.views.history import DiaryEntry


# -- log ---------------------------------------------------------------------------------------------------
# `ua-memory log`: what was done, read like a diary.


log_app = app.new()
FOLDED = 10
"""So many revisions are read for each entry that is shown: those in a row that are alike are one."""


@app.verb(log_app)
def log(
    call: Call,
    memory: Memory,
    about: Annotated[
        str | None,
        typer.Argument(metavar="[PATH | ^ID]", help="Only changes of this file or fact.", show_default=False),
    ] = None,
    number: Annotated[
        int,
        typer.Option("-n", "--limit", metavar="N", min=1, help="Number of entries (with --json: revisions)."),
    ] = 20,
    op: Annotated[
        str | None, typer.Option(metavar="WORD", help="Only this operation: insert, adopt, undo, …")
    ] = None,
    each: Annotated[bool, typer.Option("--each", help="One entry per revision.")] = False,
) -> None:
    """Show the history, newest first, as a diary.

    Each entry has the id that `undo` and `diff` take; facts that one client inserted in a row are one
    entry, with the id of the last. Hand edits are listed under the name of the person who made them.
    """
    if call.as_json:
        done = memory.history.log(about, op=op, limit=number)
        return emit(call, {"revisions": [output.revision(one) for one in done]})
    views_history.show_log(call, _entries(memory, about, op, number, each=each), memory.store.now().date())


def _entries(
    memory: Memory, about: str | None, op: str | None, number: int, *, each: bool
) -> list[DiaryEntry]:
    """The newest entries, each of them whole: it ends where another begins, not where reading did."""
    zone, gone, shown = memory.store.now().tzinfo, memory.store.history.taken_back(), number
    while True:
        limit = shown if each else shown * FOLDED
        done = memory.history.log(about, op=op, limit=limit)
        # Which go together at most is known without their words; these are read of little more than is shown.
        starts = {one.revision for one in views_history.entries(done, {}, gone, zone, each=each)[shown:][:1]}
        end = next((n + 1 for n, one in enumerate(done) if one.id in starts), len(done))
        found = entries(memory, done[:end], about, gone, each=each)
        if each or len(found) > number or (end == len(done) and len(done) < limit):
            return found[:number]
        shown *= 2


def entries(
    memory: Memory, done: Sequence[Revision], about: str | None, gone: set[str], *, each: bool = False
) -> list[DiaryEntry]:
    """Revisions as the diary tells of them, with what they took back, however long ago."""
    others = _taken(memory, done)
    brought = memory.history.changes([*done, *others], about)
    return views_history.entries(done, brought, gone, memory.store.now().tzinfo, each=each, others=others)


def _taken(memory: Memory, done: Sequence[Revision]) -> list[Revision]:
    """What these took or brought back, and what that had; without those that the history has no more."""
    found: dict[str, Revision] = {one.id: one for one in done}
    left = [name for one in done for name in one.trailers.get("Undoes", ())]
    while left:
        name = left.pop()
        if name not in found:
            with contextlib.suppress(NotFound):
                found[name] = memory.store.history.show(name)
                left += found[name].trailers.get("Undoes", ())
    return list(found.values())[len(done) :]


# -- diff --------------------------------------------------------------------------------------------------
# `ua-memory diff`: what a revision changed.


diff_app = app.new()


@app.verb(diff_app)
def diff(
    call: Call,
    memory: Memory,
    revision: Annotated[
        str | None,
        typer.Argument(
            metavar="[REVISION]",
            help="A revision from the log (default: hand edits that are not committed yet).",
            show_default=False,
        ),
    ] = None,
    raw: app.Raw = False,
) -> None:
    """Show what a revision changed."""
    text = memory.history.diff(revision)
    if call.as_json:
        emit(call, {**({"revision": revision} if revision else {}), "diff": text})
    elif text:
        Screen(call).diff(text, exact=raw)
    elif call.on_terminal:
        Screen(call).line("No hand edits that are not committed." if revision is None else "No file changed.")


# -- undo --------------------------------------------------------------------------------------------------
# `ua-memory undo` and `redo`: take back a revision, and take that back.


undo_app, redo_app = app.new(), app.new()


@app.verb(undo_app)
def undo(
    call: Call,
    memory: Memory,
    revision: Annotated[
        str | None,
        typer.Argument(
            metavar="[REVISION]", help="A revision from the log (default: the newest).", show_default=False
        ),
    ] = None,
) -> None:
    """Reverse a revision.

    Later changes stay. If the same lines changed again, both sides are shown and nothing is written. If
    facts disappeared all at once and are held, plain `undo` restores them.
    """
    held = revision is None and bool(memory.status().held)
    done = memory.history.undo(revision)
    _tell_undo(call, memory, done, "" if held else "ua-memory redo")


@app.verb(redo_app)
def redo(call: Call, memory: Memory) -> None:
    """Reverse the newest undo."""
    _tell_undo(call, memory, memory.history.redo(), "ua-memory undo")


def _tell_undo(call: Call, memory: Memory, done: UndoResult, back: str) -> None:
    """Say what was done, as `log` does; `back` is the command that reverses it, empty where held facts were
    restored."""
    if call.as_json:
        return emit(call, shape(done))
    screen, result = Screen(call), done.result
    if back:
        said = _said(memory, done, "undo" if back.endswith("redo") else "redo")
        screen.line(f"{said}, ", commit(result.revision))
        screen.line((f"To reverse this: {back}", "faint"))
    else:
        where = ", ".join(result.paths)
        screen.line(
            "Restored what had disappeared from ", (where, "path"), " (", commit(result.revision), ")"
        )
    outcome(call, result)


def _said(memory: Memory, done: UndoResult, op: str) -> str:
    """The diary's words for it, also while its commit is owed."""
    named = {"Memory-Op": (op,), "Undoes": (done.revision.id,)}
    subject = f"{op}: {done.revision.subject}"
    own = replace(done.revision, id="", author=views_history.OURS, subject=subject, trailers=named, paths=())
    (entry,) = entries(memory, [own], None, set())
    return entry.says


def shape(done: UndoResult) -> dict[str, Any]:
    return {
        "undone": output.revision(done.revision),
        "revision": done.result.revision,
        "paths": list(done.result.paths),
        "notes": list(done.result.notes),
    }


# -- blame -------------------------------------------------------------------------------------------------
# `ua-memory blame`: who wrote each line.


blame_app = app.new()


@app.verb(blame_app)
def blame(
    call: Call,
    memory: Memory,
    target: Annotated[
        str,
        typer.Argument(
            metavar="PATH[:FROM-TO] | ^ID", help="A file, lines of it, or a fact's id.", show_default=False
        ),
    ],
) -> None:
    """Show who wrote each line, and when."""
    lines = memory.history.blame(target)
    if call.as_json:
        emit(call, {"lines": [output.blame(line) for line in lines]})
    else:
        views_history.show_blame(call, lines, memory.store.now())


# -- why ---------------------------------------------------------------------------------------------------
# `ua-memory why`: what a sentence rests on, down to somebody's own words.


why_app = app.new()


@app.verb(why_app)
def why(
    call: Call,
    memory: Memory,
    target: Annotated[
        str,
        typer.Argument(
            metavar="PAGE:LINE | PATH:LINE | ^ID",
            help="A line of a page or file, or an id.",
            show_default=False,
        ),
    ],
) -> None:
    """Trace a statement to its sources: observations, facts, quotes, session, commit.

    Broken links are reported in their place; the exit code is then 4 (a cited id does not exist) or 12.
    """
    chain = memory.history.why(target)
    if call.as_json:
        emit(call, views_history.chain_shape(chain))
    else:
        views_history.show_chain(call, chain, memory.store.now())
    if chain.breaks:
        broken = count(len(chain.breaks), "link")
        note(
            call,
            f"{broken} {'link' if len(chain.breaks) == 1 else 'links'} of this chain "
            f"{'is' if len(chain.breaks) == 1 else 'are'} broken",
        )
        raise typer.Exit(chain.exit_code)


# -- git ---------------------------------------------------------------------------------------------------
# `ua-memory git …`: git itself, on the bank's history.


git_app = app.new()

DELETES_OTHERS = ("clean",)
"""What would remove files that are not the bank's where the bank lies inside somebody's repository."""

OWN = ("GIT_TERMINAL_PROMPT", "GIT_LITERAL_PATHSPECS", "GIT_ALLOW_PROTOCOL", "GIT_NO_LAZY_FETCH")
"""What our own git is not allowed, and a person's is: to ask, to match, to reach a remote."""


@git_app.command(
    cls=app.Verb,
    context_settings={
        "ignore_unknown_options": True,
        "allow_extra_args": True,
        "allow_interspersed_args": False,
    },
)
def git(
    ctx: typer.Context,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ARGS...",
            help="git's own arguments: log --stat, show HEAD, remote add, …",
            show_default=False,
        ),
    ] = None,
    bank: app.Bank = None,
) -> None:
    """Run git on the bank's history.

    Where the bank is a repository of its own, plain git does the same. Inside another repository the history
    is kept apart, and this gives access to it.
    """
    import subprocess

    with caller.opened(ctx) as (call, memory):
        if not memory.store.history.exists:
            raise GitFailed(
                "there is no history yet", where=str(memory.store.bank.git_dir), hint="ua-memory init"
            )
        own = memory.store.bank.own
        if not own and words and words[0] in DELETES_OTHERS:
            raise Usage(f"git {words[0]} would delete files outside of the bank", hint="delete them by hand")
        env = _environment(memory, dict(call.env))
        call.stdout.flush()
        try:
            if not own:
                # The trail is written without an index; git's own commands compare with one.
                subprocess.run(["git", "read-tree", "HEAD"], cwd=memory.store.bank.root, env=env, check=False)
            done = subprocess.run(
                ["git", *(words or ["help"])], cwd=memory.store.bank.root, env=env, check=False
            )
        except FileNotFoundError as error:
            raise GitFailed("git is not installed", hint="install git") from error
        except ValueError as error:  # NUL, or half a character: from a socket, not from a shell
            raise Usage(f"not an argument for git: {error}", hint="ua-memory git log") from error
    raise typer.Exit(done.returncode if done.returncode >= 0 else 128 - done.returncode)


def _environment(memory: Memory, env: dict[str, str]) -> dict[str, str]:
    """The caller's variables, pinned to the trail. Unlike our own git this one may ask for a password."""
    pinned = memory.store.history.environment()
    for name in OWN:
        pinned.pop(name, None)
    if not memory.store.bank.own:
        number = int(pinned["GIT_CONFIG_COUNT"])
        # Everything around the bank is somebody's work, not files that were forgotten.
        pinned |= {
            f"GIT_CONFIG_KEY_{number}": "status.showUntrackedFiles",
            f"GIT_CONFIG_VALUE_{number}": "no",
        }
        pinned["GIT_CONFIG_COUNT"] = str(number + 1)
    pinned = {
        name: value
        for name, value in pinned.items()
        if value or name not in ("GIT_CONFIG_PARAMETERS", "GIT_NAMESPACE")
    }
    env = {name: value for name, value in env.items() if not name.startswith("GIT_DIR")}
    return {**env, **pinned, "PWD": os.fspath(memory.store.bank.root)}


# -- forget ------------------------------------------------------------------------------------------------
# `ua-memory forget`: remove statements, and what was derived from them, and prove that they are gone.


forget_app = app.new(no_args_is_help=True)


@app.verb(forget_app)
def forget(
    call: Call,
    memory: Memory,
    target: Annotated[
        list[str] | None,
        typer.Argument(metavar="[^ID|PATH:LINE]...", help="Ids, or lines of a file.", show_default=False),
    ] = None,
    query: Annotated[
        str,
        typer.Option(
            "--query", metavar="QUERY", help="Statements with all of these words.", show_default=False
        ),
    ] = "",
    limit: Annotated[int | None, typer.Option(metavar="N", min=1, help="Only the N best of these.")] = None,
    session: Annotated[
        str,
        typer.Option("--session", metavar="ID", help="Everything said in a session.", show_default=False),
    ] = "",
    entity: Annotated[
        str, typer.Option("--entity", metavar="NAME", help="Everything about somebody.", show_default=False)
    ] = "",
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Show exactly what would be removed and revised; change nothing."),
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask. Your own lines that quote it stay.")
    ] = False,
    own_lines: Annotated[
        bool, typer.Option("--own-lines", help="Remove your own lines that quote it too.")
    ] = False,
    purge: Annotated[
        bool, typer.Option("--purge", help="Rewrite the history too; without ids, for everything forgotten.")
    ] = False,
    backup: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Where a purge saves the old history.", show_default=False),
    ] = None,
) -> None:
    """Remove a fact and what was derived from it.

    It is removed from the files, the index, the caches and the queue; what also rests on something else is
    revised. Then everything is searched for the words. The history keeps them, and `undo` restores them. A
    tombstone (id and salted hash) keeps imports, flushes and other machines from bringing them back.

    With --purge the history is rewritten too. The old one is saved to a bundle outside of the bank; the
    purge is finished when you delete that.
    """
    old = purge and (target or not (query or session or entity))
    if old and _nothing_left(memory, target or ()):
        code = _purge(call, memory, target or (), None, backup, dry_run=dry_run, yes=yes)
        raise typer.Exit(code)
    named = {"query": query, "session": session, "entity": entity, "limit": limit}
    found = memory.forget(*(target or ()), **named, dry_run=True, take=own_lines)  # type: ignore[arg-type]
    if dry_run:
        return views_history.preview(call, found, memory.config.redact)
    go, more = (True, False) if yes else _agreed(call, memory, found)
    if not go:
        return
    take = own_lines or more
    done = memory.forget(*(target or ()), **named, take=take)  # type: ignore[arg-type]
    if purge:
        code = _purge(call, memory, (), done, backup, dry_run=False, yes=yes)
        raise typer.Exit(code)
    raise typer.Exit(views_history.show_forgotten(call, done, memory.config.redact))


def _agreed(call: Call, memory: Memory, found: ForgetResult) -> tuple[bool, bool]:
    """Whether it is to be done, and whether a person's own lines go, too. Usage where nobody can be asked."""
    many = len(found.plan.asked) + len(found.waiting) > 1
    mine = views_history.quoting(found)
    if not call.reads_terminal or call.as_json:
        if many:
            raise Usage(
                f"{count(len(found.plan.asked), 'statement')} would be forgotten",
                hint="review them with --dry-run, then pass --yes",
            )
        return True, False
    if not many and not mine:
        return True, False
    views_history.preview(call, found, memory.config.redact)
    if many and not agrees(call, f"Forget these {len(found.plan.asked)}?"):
        return False, False
    lines = f"the {len(mine)} lines of yours that quote" if len(mine) > 1 else "the line of yours that quotes"
    return True, bool(mine) and agrees(call, f"Also remove {lines} it?")


def _nothing_left(memory: Memory, targets: Sequence[str]) -> bool:
    """Whether nothing is left to forget: no target, or all of them forgotten before."""
    return all(is_forgotten(memory.store, target) for target in targets)


def _purge(
    call: Call, memory: Memory, ids: Sequence[str], done: ForgetResult | None, backup: str | None, *,
    dry_run: bool, yes: bool,
) -> int:  # fmt: skip
    """Show what would be rewritten, ask, and do it; the exit code."""
    code = (
        views_history.show_forgotten(call, done, memory.config.redact, purging=True)
        if done and not call.as_json
        else 0
    )
    planned = memory.purges.plan(*ids, after=done)
    if not call.as_json:
        views_history.show_purge(call, planned)
    if dry_run:
        if call.as_json:
            emit(call, {"dryRun": True, "purge": views_history.purge_shape(planned)})
        return code
    if not yes:
        if not call.reads_terminal or call.as_json:
            raise Usage(
                f"{count(len(planned.refs), 'branch or tag', 'branches and tags')} would be rewritten",
                hint="review them with --dry-run, then pass --yes",
            )
        if not agrees(call, f"Rewrite {'these' if len(planned.refs) > 1 else 'it'}?"):
            return code
    made = memory.purges.run(planned, backup_file(call, memory, backup))
    if call.as_json:
        first = (
            views_history.forgotten_shape(done, memory.config.redact, words=False)
            if done
            else {"dryRun": False}
        )
        emit(
            call,
            {**first, "purge": {**views_history.purge_shape(planned), **views_history.purged_shape(made)}},
        )
    else:
        views_history.show_purged(call, planned, made)
    return code if made.proof.holds else StillThere.exit_code


def backup_file(call: Call, memory: Memory, given: str | None) -> Path:
    """Where the old history goes: a new file outside of the bank, where nothing is synchronised or pushed."""
    if given:
        return call.cwd / Path(given).expanduser()
    base = Path(call.env.get("XDG_DATA_HOME") or call.home / ".local" / "share")
    name = f"{memory.store.bank.root.name}-{memory.store.now():%Y%m%d-%H%M%S}.bundle"
    return base / "ua-memory" / "purged" / name


# -- scan --------------------------------------------------------------------------------------------------
# `ua-memory scan`: secrets that stand in the files already, or in their history.


scan_app = app.new()
History = Annotated[bool, typer.Option("--history", help="Search every revision too.")]


@app.verb(scan_app)
def scan(call: Call, memory: Memory, history: History = False) -> None:
    """Find secrets in the files.

    What people write is never changed, so a secret in a hand-written note stays until they remove it; search
    and agents see it masked. Prints `file:line: kind`, never the secret; what only the history has begins
    with its revision. The exit code is 12 if there are any.
    """
    found = audit.secrets(memory.store)
    past = audit.past_secrets(memory.store) if history else []
    if call.as_json:
        printed = {"secrets": [{"path": path, "line": line, "kind": kind} for path, line, kind in found]}
        then = [{"revision": r, "path": path, "line": line, "kind": kind} for r, path, line, kind in past]
        emit(call, {**printed, **({"history": then} if history else {})})
    else:
        _print(call, found, past)
    if found or past:
        raise typer.Exit(ProblemsFound.exit_code)


def _print(call: Call, found: list[tuple[str, int, str]], past: list[tuple[str, str, int, str]]) -> None:
    screen = Screen(call)
    for path, line, kind in found:
        screen.item([(f"{path}:{line}:", "path"), " "], kind)
    for revision, path, line, kind in past:
        screen.item([(f"{revision[:10]}:{path or 'message'}:{line}:", "path"), " "], kind)
    if not found and not past:
        screen.line(("No secrets", "good"), " found.")
    if found:
        hint = "forget PATH:LINE removes a line everywhere; change the secrets where they are used"
        note(call, f"{count(len(found), 'secret')} in the files; {hint}")
    if past:
        hint = "change them where they are used; forget --purge removes a line from it"
        note(call, f"{count(len(past), 'secret')} in the history; {hint}")
