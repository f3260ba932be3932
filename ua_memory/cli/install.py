"""`ua-memory install`: memory set up in the clients that people use, and taken out again (`uninstall`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ua_memory.cli import context, targets, verbs

if TYPE_CHECKING:
    from ua_memory.cli.call import Call
    from ua_memory.clients.settings import Target

IN = """Set memory up in an agent's client.

It stands beside what is in the client's settings already: nothing else there changes, to the byte. Run it
again after an update; `ua-memory uninstall` takes out exactly what it put in."""
OUT = """Take memory out of an agent's client: exactly what install put in, and nothing that you wrote."""
install_app = verbs.new(no_args_is_help=True, help=IN)
uninstall_app = verbs.new(no_args_is_help=True, help=OUT)

DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would change, as a diff; change nothing.")]
Check = Annotated[
    bool, typer.Option("--check", help="Only say whether all is in place; exit code 12 if not.")
]
Agents = Annotated[
    str | None,
    typer.Option("--agents-md", metavar="FILE", help="Also the line in FILE that has agents use it."),
]
Project = Annotated[
    bool, typer.Option("--project", help="In this folder's settings, for all who work in it.")
]
Plugin = Annotated[
    str | None, typer.Option("--plugin", metavar="DIR", help="As a plugin, in a marketplace in DIR.")
]

OwnMemory = Annotated[
    bool, typer.Option("--auto-memory", help="Also what it notes by itself, into memory/claude-code.")
]


def _both(name: str, does: str, where: Any) -> None:
    """Add a client that has no options of its own to install and uninstall."""

    def put(
        ctx: typer.Context,
        agents_md: Agents = None,
        dry_run: DryRun = False,
        check: Check = False,
        as_json: verbs.Json = False,
        bank: verbs.Bank = None,
    ) -> None:
        call = context.call_of(ctx)
        _install(call, where(call), agents_md, dry_run, check)

    def take(
        ctx: typer.Context,
        agents_md: Agents = None,
        dry_run: DryRun = False,
        as_json: verbs.Json = False,
        bank: verbs.Bank = None,
    ) -> None:
        call = context.call_of(ctx)
        _uninstall(call, where(call), agents_md, dry_run)

    install_app.command(name, cls=verbs.Verb, help=f"Set up {does}.")(put)
    uninstall_app.command(name, cls=verbs.Verb, help=f"Take out {does}.")(take)


@install_app.command("claude-code", cls=verbs.Verb)
def install_claude_code(
    ctx: typer.Context,
    project: Project = False,
    plugin: Plugin = None,
    auto_memory: OwnMemory = False,
    agents_md: Agents = None,
    dry_run: DryRun = False,
    check: Check = False,
    as_json: verbs.Json = False,
    bank: verbs.Bank = None,
) -> None:
    """Set up hooks and the MCP server of Claude Code."""
    call = context.call_of(ctx)
    _install(
        call,
        targets.claude_code(call, project=project, plugin=plugin, own=auto_memory),
        agents_md,
        dry_run,
        check,
    )


@uninstall_app.command("claude-code", cls=verbs.Verb)
def uninstall_claude_code(
    ctx: typer.Context,
    project: Project = False,
    plugin: Plugin = None,
    auto_memory: OwnMemory = False,
    agents_md: Agents = None,
    dry_run: DryRun = False,
    as_json: verbs.Json = False,
    bank: verbs.Bank = None,
) -> None:
    """Take out hooks and the MCP server of Claude Code."""
    call = context.call_of(ctx)
    _uninstall(
        call, targets.claude_code(call, project=project, plugin=plugin, own=auto_memory), agents_md, dry_run
    )


_both("codex", "hooks and the MCP server of Codex", targets.codex)
_both("pi", "the extension and the MCP server of pi", targets.pi)
_both("openclaw", "the plugin and the MCP server of OpenClaw", targets.openclaw)
_both("gemini", "hooks and the MCP server of Gemini CLI", targets.gemini)
_both("hermes", "the memory provider of Hermes", targets.hermes)


@install_app.command("cron", cls=verbs.Verb)
def install_cron(
    ctx: typer.Context,
    at: Annotated[
        str | None,
        typer.Option("--at", metavar="HH:MM", help="The time of day (03:30).", show_default=False),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(metavar="KIND", help="cron, systemd or launchd; else what runs jobs here."),
    ] = None,
    write: Annotated[bool, typer.Option("--write", help="Set it up; else it is only shown.")] = False,
    check: Check = False,
    as_json: verbs.Json = False,
    bank: verbs.Bank = None,
) -> None:
    """Show a nightly job that consolidates the bank, or set it up."""
    from ua_memory.cli import cron, installing

    call = context.call_of(ctx)
    if check and not at:
        job = cron.in_place(call, kind)
    else:
        job = cron.target(call, kind or cron.kind_here(call), at or cron.DEFAULT)
    if not write and not check:
        _shown(call, job, cron.shown(call, job))
        return
    steps = cron.plan(call, job)
    if check:
        installing.check(call, job, steps)
        return
    cron.carry_out(call, job, steps)
    installing.show(call, job, steps)


@uninstall_app.command("cron", cls=verbs.Verb)
def uninstall_cron(
    ctx: typer.Context, dry_run: DryRun = False, as_json: verbs.Json = False, bank: verbs.Bank = None
) -> None:
    """Take out the bank's nightly job, of whatever kind."""
    from ua_memory.cli import cron, installing
    from ua_memory.clients.schedule import KINDS

    call = context.call_of(ctx)
    done = []
    for kind in KINDS:
        job = cron.target(call, kind)
        steps = [step for step in cron.plan(call, job, out=True) if step.does != "keep"]
        if not dry_run:
            cron.carry_out(call, job, steps, out=True)
        done += steps
    installing.show(call, job._replace(notes=()), done, dry=dry_run)


def _shown(call: Call, job: Target, text: str) -> None:
    from ua_memory.cli.format import Screen, emit, note

    if call.as_json:
        files = [{"path": piece.file, "what": piece.what, "text": piece.put(None)} for piece in job.pieces]
        emit(call, {"client": job.client, "files": files, "notes": list(job.notes)})
        return
    Screen(call).raw(text)
    for each in ("to set it up: the same with --write", *job.notes):
        note(call, each)


def _install(call: Call, target: Target, agents_md: str | None, dry: bool, check: bool) -> None:
    from ua_memory.cli import installing

    target = _with_line(call, target, agents_md)
    steps = installing.plan(target.pieces)
    if check:
        installing.check(call, target, steps)
        return
    if not dry:
        installing.carry_out(steps)
    installing.show(call, target, steps, dry=dry, line=agents_md is None)
    _without_bank(call)


def _uninstall(call: Call, target: Target, agents_md: str | None, dry: bool) -> None:
    from ua_memory.cli import installing

    target = _with_line(call, target, agents_md)._replace(notes=())
    pieces = (*target.pieces, *target.left)
    steps = [step for step in installing.plan(pieces, out=True) if step.does != "keep"]
    if not dry:
        installing.carry_out(steps)
    installing.show(call, target, steps, dry=dry)


def _with_line(call: Call, target: Target, agents_md: str | None) -> Target:
    from ua_memory.clients.settings import agents_line

    if agents_md is None:
        return target
    line = agents_line(str(context.absolute(call, agents_md)))
    return target._replace(pieces=(*target.pieces, line))


def _without_bank(call: Call) -> None:
    from ua_memory.cli.format import note
    from ua_memory.errors import NoBank

    try:
        context.bank_root(call)
    except NoBank as none:
        note(call, f"{none.what}; until there is one, nothing is kept: {none.mend}")
