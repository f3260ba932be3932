"""What all verbs share: their options of the same name, and the class that reads their arguments."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from ua_memory.cli.call import Call


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
Raw = Annotated[bool, typer.Option("--raw", help="Print control characters as they are, as for a file.")]

Session = Annotated[str | None, typer.Option(metavar="ID", help="The session it was said in.")]
Request = Annotated[
    str | None, typer.Option(metavar="ID", help="An id of this request: repeating it changes nothing.")
]


def _show_help(ctx: Any, _param: Any, value: bool) -> None:
    """Print help to the caller's output, which need not be this process's."""
    if value and not ctx.resilient_parsing:
        call = ctx.find_object(Call)
        call.stdout.write(ctx.get_help() + "\n")
        ctx.exit()


class Verb(TyperCommand):
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

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            # An option without its value is refused without saying whose option it is.
            if getattr(error, "ctx", ctx) is None:
                error.ctx = ctx  # type: ignore[attr-defined]
            raise

    def get_help_option(self, ctx: Any) -> Any:
        option = super().get_help_option(ctx)
        if option is not None:
            option.callback = _show_help
        return option


ALIKE = (
    ("get", "show"),
    ("create", "add"),
    ("update", "revise", "replace"),
    ("delete", "remove", "drop", "retire"),
)
"""Words for one thing. A family shows the one that says best what is done to its kind; who comes from another
family need not know which."""


class Family(TyperGroup):
    """A group of commands whose help goes to the caller, and which are known by words alike, too."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        words = next((alike for alike in ALIKE if cmd_name in alike), ())
        return next((self.commands[word] for word in (cmd_name, *words) if word in self.commands), None)

    def get_help_option(self, ctx: Any) -> Any:
        option = super().get_help_option(ctx)
        if option is not None:
            option.callback = _show_help
        return option


def new(**more: Any) -> typer.Typer:
    """A typer app of the house: no rich in help, no pretty exceptions, no completion options."""
    more.setdefault("cls", Family)
    return typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False, **more)
