"""The command line itself: the table of verbs, loaded one at a time, and the daemon's side of it."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import cache
from importlib import import_module
from inspect import Parameter, Signature, signature
from types import SimpleNamespace
from typing import Annotated, Any, NamedTuple, NoReturn, TypeVar, get_type_hints

import typer
from typer import Option
from typer.core import TyperCommand, TyperGroup

from ua_memory.caller import Call, call_of, of_process, opened
from ua_memory.views.output import run_reporting_errors

# -- verbs -------------------------------------------------------------------------------------------------
# What all verbs share: their options of the same name, and the class that reads their arguments.


def chose_bank(ctx: typer.Context, value: str | None) -> None:
    call = ctx.find_object(Call)
    if value is not None and call is not None:
        call.bank = value


Bank = Annotated[
    str | None,
    typer.Option("--bank", metavar="PATH", help="The bank's folder.", hidden=True, callback=chose_bank),
]
"""`--bank` also after the verb, where one remembers it. It is listed once, by `ua-memory --help`."""
Json = Annotated[bool, typer.Option("--json", help="Print JSON, as docs/json.md describes it.")]
NoPager = Option(False, "--no-pager", help="Do not show it by a pager.")
"""Read by `cli.fast`, which has started the pager by the time the verb is called."""
Raw = Option(False, "--raw", help="Print control characters as they are.")

Session = Option(None, metavar="ID", help="The session it was said in.")
Request = Option(None, metavar="ID", help="Id of this request; repeating it changes nothing.")


def _show_help(ctx: Any, _param: Any, value: bool) -> None:
    """Print help to the caller's output, which need not be this process's."""
    if value and not ctx.resilient_parsing:
        call_of(ctx).stdout.write(ctx.get_help() + "\n")
        ctx.exit()


class _HelpToCaller:
    """What has its help go to the caller."""

    def get_help_option(self, ctx: Any) -> Any:
        option = super().get_help_option(ctx)  # type: ignore[misc]
        if option is not None:
            option.callback = _show_help
        return option


class Verb(_HelpToCaller, TyperCommand):
    """A command whose help goes to the caller, and to which `- buy milk` is words and no option."""

    def make_parser(self, ctx: Any) -> Any:
        parser = super().make_parser(ctx)
        as_option = parser._process_opts

        def as_words(arg: str, state: Any) -> None:
            # No option has white space in its name; a list item that somebody wants remembered has.
            if any(c.isspace() for c in arg.partition("=")[0]):
                state.largs.append(arg)
            else:
                as_option(arg, state)

        parser._process_opts = as_words  # type: ignore[method-assign]
        return parser

    def collect_usage_pieces(self, ctx: Any) -> Any:
        return [piece for piece in super().collect_usage_pieces(ctx) if piece != "[]"]  # a hidden argument's

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            # An option without its value is refused without saying whose option it is.
            if getattr(error, "ctx", ctx) is None:
                error.ctx = ctx  # type: ignore[attr-defined]
            raise


ALIKE = (
    ("get", "show"),
    ("create", "add"),
    ("update", "revise", "replace"),
    ("delete", "remove", "drop", "retire"),
)
"""Words for one thing. A family shows the one that says best what is done to its kind; who comes from another
family need not know which."""


class Family(_HelpToCaller, TyperGroup):
    """A group of commands whose help goes to the caller, and which are known by words alike, too."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        words = next((alike for alike in ALIKE if cmd_name in alike), ())
        return next((self.commands[word] for word in (cmd_name, *words) if word in self.commands), None)


def new(**more: Any) -> typer.Typer:
    """A typer app of the house: no rich in help, no pretty exceptions, no completion options."""
    more.setdefault("cls", Family)
    return typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False, **more)


Work = TypeVar("Work", bound=Callable[..., None])


def verb(
    family: typer.Typer | None = None, name: str | None = None, *, opens: bool = True, lenient: bool = False,
    json: bool = True, **more: Any,
) -> Callable[[Work], Work]:  # fmt: skip
    """Register a function `(call, memory, options…)` as a command, or `(call, options…)` without `opens`: in
    a family, or by itself, where `Verbs` finds it as the function's `app`.

    The bank is open while it runs, `lenient` as `caller.opened` has it. The command has `--bank` and, unless
    `json` is false, `--json` besides the function's own options; `more` goes to typer. A parameter of a
    dataclass's type stands for an option for each of its fields. The function itself stays as it is.
    """

    def register(work: Work) -> Work:
        own = list(signature(work).parameters.values())[1 + opens :]
        named = SimpleNamespace(__annotations__={one.name: one.annotation for one in own})
        # Only those of the options: Call and Memory need not be imported to read them.
        hints = get_type_hints(named, getattr(work, "__globals__", {}), include_extras=True)
        options = {one.name: _options(one, hints[one.name]) for one in own}
        common = {"as_json": (Json, False), "bank": (Bank, None)} if json else {"bank": (Bank, None)}

        def run_verb(ctx: typer.Context, **values: Any) -> None:
            given = {}
            for one, each in options.items():
                taken = {option.name: values[option.name] for option in each}
                given[one] = hints[one](**taken) if is_dataclass(hints[one]) else taken[one]
            call = call_of(ctx)
            if not opens:
                work(call, **given)
                return
            with opened(call, lenient=lenient) as memory:
                work(call, memory, **given)

        parameters = [Parameter("ctx", Parameter.KEYWORD_ONLY, annotation=typer.Context)]
        parameters += [option for each in options.values() for option in each]
        parameters += [
            Parameter(one, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
            for one, (annotation, default) in common.items()
        ]
        run_verb.__name__, run_verb.__doc__ = work.__name__, work.__doc__
        run_verb.__annotations__ = {one.name: one.annotation for one in parameters}
        run_verb.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        where = new() if family is None else family
        where.command(name, cls=Verb, **more)(run_verb)
        work.app = where  # type: ignore[attr-defined]
        return work

    return register


def _options(one: Parameter, hint: Any) -> list[Parameter]:
    """The options that a parameter stands for: itself, or the fields of a dataclass."""
    if not is_dataclass(hint):
        return [one.replace(annotation=hint, kind=Parameter.KEYWORD_ONLY)]
    hints = get_type_hints(hint, include_extras=True)
    return [
        Parameter(each.name, Parameter.KEYWORD_ONLY, default=each.default, annotation=hints[each.name])
        for each in fields(hint)
    ]


# -- app ---------------------------------------------------------------------------------------------------
# The command line itself: the table of verbs, loaded one at a time, and the way in and out of a process.
#
# `ua-memory --help` must cost little more than starting Python, so the table says in one line what each
# verb does, and its module is imported when the verb is called.


class Listed(NamedTuple):
    """A verb in the table: the module below `cli` it lives in, and what it does in one line."""

    module: str
    does: str


VERBS: dict[str, dict[str, Listed]] = {
    "Remember and find": {
        "insert": Listed("insert", "Remember one fact, verbatim."),
        "retain": Listed("retain", "Extract facts from a text."),
        "ingest": Listed("retain", "Extract facts from files."),
        "search": Listed("search", "Find facts and notes by keywords and meaning."),
        "list": Listed("search", "List facts and notes by day, the latest first."),
        "today": Listed("search", "Show what was remembered today."),
        "yesterday": Listed("search", "Show what was remembered yesterday."),
        "recall": Listed("search", "Format search hits as a block for a prompt."),
        "explain": Listed("search", "Show how a query is interpreted."),
        "flush": Listed("retain", "Save what matters from a conversation."),
        "sessions": Listed("search", "What was said, session by session."),
        "get": Listed("search", "Read a file, some of its lines, or a fact."),
        "edit": Listed("search", "Open a note or a fact in your editor."),
        "open": Listed("search", "Open the bank or a note outside of the terminal."),
        "web": Listed("web", "Look at the bank in a browser."),
        "retire": Listed("insert", "Note that a fact no longer holds."),
        "vouch": Listed("insert", "Stand by what an agent, a tool or the web said."),
        "core": Listed("insert", "Core memory: the blocks of MEMORY.md."),
    },
    "What is known": {
        "reflect": Listed("knowledge", "Answer a question from memory, with sources."),
        "consolidate": Listed("knowledge", "Create observations from new facts."),
        "observations": Listed("knowledge", "Observations: what follows from several facts."),
        "opinions": Listed("knowledge", "The agent's opinions and their reasons."),
        "pages": Listed("knowledge", "Knowledge pages: you say what one tracks."),
        "models": Listed("knowledge", "Mental models: texts that only you change."),
        "entities": Listed("knowledge", "Names and their aliases."),
        "directives": Listed("knowledge", "The hard rules of reflect."),
    },
    "What happened": {
        "why": Listed("history", "Trace a statement to its sources."),
        "log": Listed("history", "Show the history, newest first."),
        "diff": Listed("history", "Show what a revision changed."),
        "undo": Listed("history", "Reverse a revision."),
        "redo": Listed("history", "Reverse the newest undo."),
        "blame": Listed("history", "Show who wrote each line, and when."),
        "forget": Listed("history", "Remove a fact and what was derived from it."),
        "git": Listed("history", "Run git on the bank's history."),
    },
    "Maintain a bank": {
        "init": Listed("bank", "Create a memory bank."),
        "status": Listed("bank", "Show the state of the bank."),
        "stats": Listed("bank", "Show counts, and what models cost."),
        "queue": Listed("retain", "Conversations and texts that wait for a model."),
        "watch": Listed("retain", "Retain outside files when they change."),
        "verify": Listed("bank", "Check the files, the ids, the history and the index."),
        "doctor": Listed("bank", "Find and repair problems around the bank."),
        "scan": Listed("history", "Find secrets in the files."),
        "config": Listed("bank", "Settings and their sources."),
        "model": Listed("knowledge", "Try the model."),
        "trust": Listed("bank", "Trust the sensitive settings of a bank."),
        "index": Listed("bank", "The search index."),
        "daemon": Listed("daemon", "The background process."),
        "hook": Listed("hook", "Handle an event of an agent's client."),
        "install": Listed("install", "Set up memory in an agent's client."),
        "uninstall": Listed("install", "Remove memory from an agent's client."),
        "prune-recall-messages": Listed("install", "Strip recalled memory from session files."),
        "completion": Listed("hook", "Print shell completions."),
        "mcp": Listed("daemon", "Run the MCP server with memory's tools."),
        "import": Listed("imports", "Import what another tool remembered."),
        "export": Listed("imports", "Export the whole bank to one file."),
        "sync": Listed("imports", "Sync with the remote."),
        "bench": Listed("bank", "Measure search on your own conversations."),
    },
}


LISTED = {name: listed for section in VERBS.values() for name, listed in section.items()}
"""The same without the sections."""


MEANT = {
    "find": "search", "show": "get", "ask": "reflect", "history": "log", "restore": "undo",
    **dict.fromkeys(("add", "remember", "save", "note"), "insert"),
    **dict.fromkeys(("delete", "rm", "remove"), "forget"),
}  # fmt: skip
"""Words that somebody may try for a verb; no spelling leads from one to the other."""


class Verbs(Family):
    """The group of all verbs, which knows their names and loads them when they are called."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [*LISTED]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in self.commands:
            if cmd_name not in LISTED:
                return None
            module = import_module(f"ua_memory.cli.{LISTED[cmd_name].module}")
            name = cmd_name.replace("-", "_")
            if (app := getattr(module, f"{name}_app", None)) is None:  # a verb by itself: `get`, `list_`
                app = getattr(module, name if hasattr(module, name) else f"{name}_").app
            command = typer.main.get_command(app)
            command.name = cmd_name
            self.commands[cmd_name] = command
        return self.commands[cmd_name]

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        if args[:1] == ["help"]:  # as git, cargo and gh have it
            args = [*args[1:], "--help"]
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        names = self.list_commands(ctx)
        if args and args[0] not in names and not ctx.resilient_parsing:
            from difflib import get_close_matches

            near = MEANT.get(args[0]) or next(iter(get_close_matches(args[0], names, 1)), "")
            ctx.fail(f"No such command {args[0]!r}" + (f"; did you mean {near!r}?" if near else ""))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        for title, section in VERBS.items():
            with formatter.section(title):
                formatter.write_dl([(name, each.does) for name, each in section.items()])


def _version(ctx: typer.Context, value: bool) -> None:
    if value:
        from ua_memory import __version__

        call_of(ctx).stdout.write(f"ua-memory {__version__}\n")
        raise typer.Exit()


HELP: dict[str, Any] = {"help_option_names": ["-h", "--help"]}
"""Whoever asks a command for its options first decides which of them is help: it is kept there."""
EPILOG = "ua-memory VERB -h, or ua-memory help VERB, shows what a verb takes."
_WHICH = "The bank's folder (default: UA_MEMORY_BANK, the nearest bank upwards, or ~/ua-memory)."


def ua_memory(
    ctx: typer.Context,
    bank: str | None = Option(None, "--bank", metavar="PATH", callback=chose_bank, help=_WHICH),
    version: bool = Option(
        False, "--version", help="Print the version and exit.", is_eager=True, callback=_version
    ),
) -> None:
    """An agent's memory as markdown you own."""
    if ctx.invoked_subcommand is None:
        import_module(f"ua_memory.cli.{LISTED['status'].module}").overview(call_of(ctx))


@cache
def group() -> Any:
    """The whole command line as typer builds it, once: a daemon runs many commands."""
    app = new(cls=Verbs, help=ua_memory.__doc__, epilog=EPILOG)
    app.callback(invoke_without_command=True)(ua_memory)
    return typer.main.get_command(app)


def run(call: Call) -> int:
    """Do what a call asks, in this process, and return the exit code. Touches no stream but the call's."""

    def work() -> int:
        # Not `main`: it would speak to this process's streams, and swallow a closed pipe or an interrupt.
        width = min(call.width, 100)
        try:
            how: dict[str, Any] = {"terminal_width": width, **HELP}
            with group().make_context("ua-memory", list(call.argv), obj=call, **how) as ctx:
                ctx.command.invoke(ctx)
        except typer.Exit as done:
            return done.exit_code
        return 0

    code = run_reporting_errors(call, work)
    with contextlib.suppress(OSError, ValueError):  # full, or closed
        call.stderr.flush()
    return code


def main(argv: list[str] | None = None) -> NoReturn:
    """Run as a process: the arguments, streams and environment are this process's own."""
    leave(run(of_process(argv)))


def in_process(argv: list[str], data: bytes | None = None, *, then: bool = False) -> NoReturn:
    """Run as a process for the fast path, which found no daemon, or none that takes the command.

    `data` is standard input that was read already. With `then` a daemon is started for the next command.
    """
    from ua_memory.daemon.spawn import InProcess, in_background

    call = of_process(argv, data)
    call.opener = opener = InProcess(call.env)
    code = run(call)
    if then and opener.bank is not None:
        in_background(opener.bank, call.env)
    leave(code)


def bring_up(argv: list[str], data: bytes | None) -> None:
    """Have the daemon of the bank that a command is about. Only a command that needs no bank is run here."""
    from ua_memory.daemon.spawn import BroughtUp, InProcess

    call = of_process(argv, data)
    call.opener = InProcess(call.env, insist=True)
    with contextlib.suppress(BroughtUp):
        leave(run(call))


def fail(argv: list[str], error: Exception) -> NoReturn:
    """End as a command that has met this error."""

    def work() -> int:
        raise error

    _print_or_drop()
    leave(run_reporting_errors(of_process(argv), work))


def leave(code: int) -> NoReturn:
    """End the process. What is registered for its end is done; to take Chroma's modules apart one by one
    would cost a third of a second of processor time more."""
    _print_or_drop()
    if "chromadb" in sys.modules and threading.active_count() == 1:
        atexit._run_exitfuncs()
        _print_or_drop()
        os._exit(code)
    sys.exit(code)


def _print_or_drop() -> None:
    """Print what is left to print, or let go of it where that fails: a closed pipe, a full disk. Otherwise it
    is tried again by whatever touches the stream next, at last by the interpreter, which exits with 120."""
    if out := sys.stdout:
        try:
            out.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())
