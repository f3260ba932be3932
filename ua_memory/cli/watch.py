"""`ua-memory watch`: files and folders outside the bank that are retained when they change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ua_memory.cli import context, verbs

if TYPE_CHECKING:
    from ua_memory.cli.call import Call
    from ua_memory.memory import Caught, Look, Memory, Watched

watch_app = verbs.new(no_args_is_help=True, help="Files outside the bank, retained when they change.")

Paths = Annotated[
    list[str],
    typer.Argument(metavar="PATH...", help="Folders or files outside the bank.", show_default=False),
]
Accept = Annotated[bool, typer.Option("--accept", help="Let go of the facts of files that are gone.")]
Now = Annotated[bool, typer.Option("--now", help="Also what was saved a moment ago.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would be kept, and the price.")]


@watch_app.command("add", cls=verbs.Verb)
def watch_add(ctx: typer.Context, path: Paths, as_json: verbs.Json = False, bank: verbs.Bank = None) -> None:
    """Watch folders or files: each file becomes a document, brought up to date when it was saved.

    The daemon does it, 30 seconds after a save (watch.quiet_seconds); without a daemon: ua-memory watch run.
    """
    from ua_memory.cli.format import Screen, count, emit

    with context.opened(ctx) as (call, memory):
        added = [memory.watch_add(context.absolute(call, each), model=call.endpoint) for each in path]
        runs = _daemon(call, memory)
        if call.as_json:
            emit(call, {"watched": [shape(one, look) for one, look in added]})
            return
        for one, look in added:
            files = count(len(look.ready) + len(look.young), "file")
            Screen(call).line("Watching ", (one.path, "path"), f": {files} to be read.")
        screen = Screen(call)
        if runs:
            quiet = f"{memory.config.watch_seconds:g} seconds"
            screen.line(f"The daemon reads them, and again {quiet} after each save.")
        screen.line("Now, or without a daemon: ua-memory watch run; --dry-run shows the price.")


def _daemon(call: Call, memory: Memory) -> bool:
    """Have a daemon, if the caller lets us; whether there is one."""
    from ua_memory.cli.starting import in_background
    from ua_memory.daemon.service import runs

    if (call.env.get("UA_MEMORY_DAEMON") or "auto") == "off":
        return False
    return in_background(memory.store.bank, call.env) or runs(memory.store.bank.local)


@watch_app.command("list", cls=verbs.Verb)
def watch_list(ctx: typer.Context, as_json: verbs.Json = False, bank: verbs.Bank = None) -> None:
    """List what is watched, and what has changed there."""
    from ua_memory.cli.format import Screen, count, emit

    with context.opened(ctx) as (call, memory):
        found = memory.watched()
        if call.as_json:
            emit(call, {"watched": [shape(one, look) for one, look in found]})
            return
        screen = Screen(call)
        if not found:
            screen.line("Nothing is watched. Add a path: ua-memory watch add PATH")
        for one, look in found:
            changed = len(look.ready) + len(look.young)
            told = f"  {count(len(one.files), 'document')}" + (
                f", {changed} new or changed" if changed else ""
            )
            screen.line((one.path, "path"), told)
            if look.missing:
                screen.line("  ", ("it is not there; what was read of it stays", "warn"))
            for name, stood in one.files.items():
                if stood.error:
                    screen.item("  ", (f"{name}: {stood.error}", "warn"))
            for name in look.gone:
                screen.item(
                    "  ", (f"{name} is gone; its facts stay until: ua-memory watch run --accept", "warn")
                )


@watch_app.command("remove", cls=verbs.Verb)
def watch_remove(
    ctx: typer.Context, path: Paths, as_json: verbs.Json = False, bank: verbs.Bank = None
) -> None:
    """Watch paths no longer. Their documents stay."""
    from ua_memory.cli.format import Screen, emit

    with context.opened(ctx) as (call, memory):
        gone = [memory.watch_remove(str(context.absolute(call, each))) for each in path]
        if call.as_json:
            emit(call, {"removed": [one.path for one in gone]})
        for one in () if call.as_json else gone:
            Screen(call).line("No longer watching ", (one.path, "path"), "; its documents stay.")


@watch_app.command("run", cls=verbs.Verb)
def watch_run(
    ctx: typer.Context,
    accept: Accept = False,
    now: Now = False,
    dry_run: DryRun = False,
    as_json: verbs.Json = False,
    bank: verbs.Bank = None,
) -> None:
    """Take in what has changed, as the daemon does."""
    from ua_memory.cli import retained
    from ua_memory.cli.format import emit
    from ua_memory.cli.progress import progress

    with context.opened(ctx) as (call, memory):
        model = call.endpoint
        if dry_run:
            retained.show_priced(call, memory.priced_watch(model=model))
            return
        with progress(call, "Reading chunks") as tell:
            caught = memory.watch_run(model=model, accept=accept, now=now, tell=tell)
        if call.as_json:
            emit(call, shape_of_run(caught))
        else:
            _told(call, caught, bool(model))


def _told(call: Call, caught: Caught, modelled: bool) -> None:
    from ua_memory.cli import retained
    from ua_memory.cli.format import Screen, count, note

    retained.show(call, caught.done, modelled=modelled)
    if not caught.done:
        Screen(call).line("Nothing has changed." if not caught.young else "Nothing rests yet.")
    if caught.young:
        note(
            call, f"{count(len(caught.young), 'file')} saved a moment ago; at once: ua-memory watch run --now"
        )
    for name, why in caught.failed:
        note(call, f"not read: {name}: {why}")
    for name in caught.gone:
        note(call, f"{name} is gone; its facts stay until: ua-memory watch run --accept")
    for name in caught.missing:
        note(call, f"{name} is not there (an unmounted disk?); what was read of it stays")


def shape(one: Watched, look: Look) -> dict[str, Any]:
    """A watched path; `missing` and `failed` only where there is such."""
    failed = [{"path": name, "reason": stood.error} for name, stood in one.files.items() if stood.error]
    return {
        "path": one.path,
        "files": len(one.files),
        "changed": sorted((*look.ready, *look.young)),
        "gone": list(look.gone),
        **({"failed": failed} if failed else {}),
        **({"missing": True} if look.missing else {}),
    }


def shape_of_run(caught: Caught) -> dict[str, Any]:
    from ua_memory.cli import retained

    return {
        "retained": [retained.shape(one) for one in caught.done],
        "young": list(caught.young),
        "failed": [{"path": name, "reason": why} for name, why in caught.failed],
        "gone": list(caught.gone),
        "missing": list(caught.missing),
    }
