"""`ua-memory insert`: remember one fact."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ua_memory.cli import context, verbs

if TYPE_CHECKING:
    from ua_memory.cli.call import Call
    from ua_memory.memory import Inserted

insert_app = verbs.new()


Text = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="TEXT...", help="The fact; `-` or nothing reads it from standard input.", show_default=False
    ),
]
Tags = Annotated[
    list[str] | None,
    typer.Option("--tag", metavar="TAG", help="A tag; may be given several times.", show_default=False),
]
Kind = Annotated[
    Literal["world", "experience", "preference"],
    typer.Option(metavar="KIND", help="world, experience or preference."),
]
When = Annotated[
    str | None, typer.Option(metavar="DATE", help="The day or time it is about, if not today: 2026-11-19.")
]
Entities = Annotated[
    list[str] | None,
    typer.Option(
        "--entity",
        metavar="NAME",
        help="Whom or what it is about; may be given several times.",
        show_default=False,
    ),
]
Came = Annotated[
    Literal["person", "agent", "tool", "web", "import"] | None,
    typer.Option(
        metavar="WORD",
        help="person, agent, tool, web or import; else person at a terminal, agent for programs.",
        show_default=False,
    ),
]
Client = Annotated[
    str | None, typer.Option(metavar="NAME", help="The program it came through.", show_default=False)
]


@insert_app.command(cls=verbs.Verb)
def insert(
    ctx: typer.Context,
    text: Text = None,
    tag: Tags = None,
    kind: Kind = "world",
    when: When = None,
    entity: Entities = None,
    origin: Came = None,
    client: Client = None,
    session: verbs.Session = None,
    request: verbs.Request = None,
    as_json: verbs.Json = False,
    bank: verbs.Bank = None,
) -> None:
    """Remember one fact, verbatim.

    It goes to the end of today's log and is committed before the command returns. Secrets are taken out
    first. A text that is known already is noted as seen again.
    """
    from ua_memory.cli.format import emit
    from ua_memory.cli.origin import caller, read_text

    with context.opened(ctx) as (call, memory):
        who, through = caller(call)
        done = memory.insert(
            read_text(call, text),
            tags=tag or (),
            kind=kind,
            when=when,
            entities=entity or (),
            origin=origin or who,
            client=client or through,
            session=session,
            request=request,
        )
        emit(call, shape(done)) if call.as_json else _tell(call, done)


def shape(done: Inserted) -> dict[str, Any]:
    from ua_memory.cli import shapes

    return {
        **shapes.place(done.fact.place, done.fact.id),
        "revision": done.result.revision,
        "sighting": done.sighting,
        "repeated": done.repeated,
        "redacted": dict(done.result.redacted),
        "notes": list(done.result.notes),
    }


def _tell(call: Call, done: Inserted) -> None:
    from ua_memory.cli.format import Piece, Screen, commit, outcome

    did = "Remembered in"
    if done.repeated:
        did = "This request was answered before:"
    elif done.sighting:
        did = "Seen again:"
    fact = done.fact
    block: list[Piece] = [(f"^{fact.id}", "id"), ", "] if fact.id else []
    place: list[Piece] = (
        [(f"{fact.place.path}:{fact.place.line}", "path")] if fact.place.path else ["gone since"]
    )
    Screen(call).line(f"{did} ", *place, " (", *block, commit(done.result.revision), ")")
    outcome(call, done.result)
