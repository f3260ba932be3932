"""`ua-memory models`: mental models, which a person writes and no machine changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ua_memory.cli import context, verbs

if TYPE_CHECKING:
    from ua_memory.cli.call import Call

models_app = verbs.new(
    no_args_is_help=True, help="Mental models: texts of your own that come before all else memory knows."
)

Id = Annotated[str, typer.Argument(metavar="ID", help="The model's id: its file's name.", show_default=False)]
Name = Annotated[str | None, typer.Option(help="What it is called.", show_default=False)]
Text = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[TEXT...]",
        help="Its text; `-` or a pipe: standard input; else your editor opens.",
        show_default=False,
    ),
]


@models_app.command("list", cls=verbs.Verb)
def models_list(ctx: typer.Context, as_json: verbs.Json = False, bank: verbs.Bank = None) -> None:
    """List the mental models."""
    from ua_memory.cli.format import Screen, emit
    from ua_memory.cli.pages import shape

    with context.opened(ctx) as (call, memory):
        there = memory.list_models()
        if call.as_json:
            emit(call, {"models": [shape(one) for one in there]})
            return
        screen = Screen(call)
        if not there:
            screen.line("No mental models yet. Write one: ua-memory models create ID")
        for one in there:
            first = " ".join(one.body.split())
            screen.item([(one.id, "id"), "  "], (one.name, "strong"), (f"  {first[:160]}", "faint"))


@models_app.command("get", cls=verbs.Verb)
def models_get(ctx: typer.Context, id: Id, as_json: verbs.Json = False, bank: verbs.Bank = None) -> None:
    """Read a mental model."""
    from ua_memory.cli.pages import show

    with context.opened(ctx) as (call, memory):
        show(call, memory.get_model(id))


@models_app.command("create", cls=verbs.Verb)
def models_create(
    ctx: typer.Context,
    id: Id,
    text: Text = None,
    name: Name = None,
    tag: Annotated[
        list[str] | None, typer.Option(metavar="TAG", help="A tag; repeatable.", show_default=False)
    ] = None,
    as_json: verbs.Json = False,
    bank: verbs.Bank = None,
) -> None:
    """Write a mental model.

    It is a person's: an agent is refused, and may propose one to you.
    """
    from ua_memory.cli.pages import tell

    with context.opened(ctx) as (call, memory):
        body = _text(call, text, "")
        tell(call, "Wrote", memory.create_model(id, name or id, body, tag or (), by_person=_by_person(call)))


@models_app.command("update", cls=verbs.Verb)
def models_update(
    ctx: typer.Context,
    id: Id,
    text: Text = None,
    name: Name = None,
    as_json: verbs.Json = False,
    bank: verbs.Bank = None,
) -> None:
    """Change a mental model's text or name.

    The file in memory/models/ may be edited as well.
    """
    from ua_memory.cli.pages import tell

    with context.opened(ctx) as (call, memory):
        before = memory.get_model(id)
        body = None if name and not text else _text(call, text, before.body)
        tell(call, "Changed", memory.update_model(id, name=name, body=body, by_person=_by_person(call)))


@models_app.command("delete", cls=verbs.Verb)
def models_delete(ctx: typer.Context, id: Id, as_json: verbs.Json = False, bank: verbs.Bank = None) -> None:
    """Let a mental model go; `ua-memory undo` brings it back."""
    from ua_memory.cli.pages import tell

    with context.opened(ctx) as (call, memory):
        tell(call, "Deleted", memory.delete_model(id, by_person=_by_person(call)))


@models_app.command("refresh", cls=verbs.Verb)
def models_refresh(ctx: typer.Context, id: Id, as_json: verbs.Json = False, bank: verbs.Bank = None) -> None:
    """Propose changes to a mental model, as a diff with sources. Nothing is written."""
    from ua_memory.cli import refreshed
    from ua_memory.cli.format import emit

    with context.opened(ctx) as (call, memory):
        done = memory.propose_model(id, model=call.endpoint)
        if call.as_json:
            emit(call, refreshed.proposal(done))
        else:
            refreshed.show_proposal(call, done)


def _by_person(call: Call) -> bool:
    """A pipe of a person's is theirs; a shell that an agent runs says so in its environment."""
    from ua_memory.cli.origin import caller

    return caller(call)[1] in ("terminal", "cli")


def _text(call: Call, words: list[str] | None, before: str) -> str:
    """The text: words, standard input, or what an editor leaves, which begins with what there was."""
    from ua_memory.cli.origin import read_text
    from ua_memory.errors import Usage

    if words or not call.reads_terminal:
        return read_text(call, words)
    edited = _edited(call, before) if _by_person(call) else before
    if edited == before:
        raise Usage("nothing was saved in the editor", mend="give the text as an argument, or by a pipe")
    return edited


def _edited(call: Call, before: str) -> str:
    """What the caller's editor makes of a text. Usage where there is none, or where it fails."""
    import shlex
    import subprocess
    import tempfile
    from pathlib import Path

    from ua_memory.errors import Usage

    editor = call.env.get("VISUAL") or call.env.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory(prefix="ua-memory-") as folder:  # only its owner may look into it
        file = Path(folder) / "model.md"
        file.write_text(before, encoding="utf-8")
        try:
            code = subprocess.run(
                [*shlex.split(editor), str(file)], env=dict(call.env), check=False
            ).returncode
        except OSError as error:
            raise Usage(f"the editor cannot be started: {error}", mend="set EDITOR") from error
        if code:
            raise Usage(
                f"the editor {editor!r} ended with {code}", mend="set EDITOR, or give the text by a pipe"
            )
        return file.read_text(encoding="utf-8", errors="replace")
