"""`reflect` and `consolidate`."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ua_memory import caller, discovery
from ua_memory.cli import app
from ua_memory.cli.search import Since, TagGroups, Tags, TagsMatch, Until, chosen, scope
from ua_memory.daemon.spawn import Lines, Log
from ua_memory.errors import NotFound, Usage
from ua_memory.views import hits
from ua_memory.views import knowledge as views
from ua_memory.views.output import Screen, emit, note, progress, show

if TYPE_CHECKING:
    from ua_memory.caller import Call
    from ua_memory.llm.model import Model
    from ua_memory.memory import Memory
    from ua_memory.reflect.consolidate import ConsolidationResult
    from ua_memory.reflect.refresh import RefreshResult


# -- reflect -----------------------------------------------------------------------------------------------
# `ua-memory reflect`: a question answered from memory, with its proofs.


reflect_app = app.new()

Question = Annotated[
    list[str] | None, typer.Argument(metavar="QUESTION...", help="The question.", show_default=False)
]
Budget = Annotated[
    str, typer.Option("--budget", metavar="SIZE", help="low, mid or high: how much to search.")
]
MaxTokens = Annotated[
    int | None,
    typer.Option(
        "--max-tokens", metavar="N", min=20, max=20_000, show_default=False,
        help="Token limit of the answer (default: 500, 1,000 or 2,000).",
    ),
]  # fmt: skip
Schema = Annotated[
    str | None,
    typer.Option(
        "--schema", metavar="FILE", show_default=False,
        help="A JSON schema for an additional structured answer; - reads standard input.",
    ),
]  # fmt: skip
Context = Annotated[
    str, typer.Option("--context", metavar="TEXT", help="Why the question is asked.", show_default=False)
]
Keep = Annotated[bool, typer.Option("--keep", help="Form or revise opinions, in memory/opinions.md.")]
Explain = Annotated[bool, typer.Option("--explain", help="Show each step and what it found.")]


@reflect_app.command(cls=app.Verb)
def reflect(
    ctx: typer.Context,
    question: Question = None,
    budget: Budget = "low",
    max_tokens: MaxTokens = None,
    schema: Schema = None,
    context_of: Context = "",
    keep: Keep = False,
    explain: Explain = False,
    since: Since = None,
    until: Until = None,
    tag: Tags = None,
    tags_match: TagsMatch = "any_strict",
    tag_groups: TagGroups = "",
    as_json: app.Json = False,
    bank: app.Bank = None,
) -> None:
    """Answer a question from memory, with sources.

    An agent searches mental models first, then observations, then facts; every sentence of its answer must
    be supported by what it cites. Without a model (ANTHROPIC_API_KEY or ANTHROPIC_BASE_URL) the evidence is
    printed in that order. Nothing is written, except with --keep.
    """
    if not question or not " ".join(question).strip():
        raise Usage("no question given", hint='ua-memory reflect "why did we leave Heroku"')
    with caller.opened(ctx) as (call, memory):
        filters = chosen(memory, since, until, scope(call, tag, tags_match, tag_groups), None, None)
        with progress(call, "Thinking"):
            found = memory.reflect(
                " ".join(question), model=call.endpoint, budget=budget, max_tokens=max_tokens or 0,
                schema=_schema(call, schema), context=context_of, filters=filters, keep_opinion=keep,
            )  # fmt: skip
        show(
            call, found, lambda found: hits.shape(found, explain),
            lambda screen, found: hits.show_answer(screen, found, explain),
        )  # fmt: skip


def _schema(call: Call, given: str | None) -> Any:
    """The JSON of a schema file. Usage where it is none."""
    import json

    if given is None:
        return None
    try:
        data = call.stdin.read() if given == "-" else discovery.read(caller.absolute(call, given))
        return json.loads(data)
    except FileNotFoundError as error:
        raise NotFound("no such file", where=given, hint="--schema FILE, or - for standard input") from error
    except (OSError, ValueError, RecursionError) as error:
        raise Usage(f"the schema cannot be read: {error}", where=given) from error


# -- consolidate -------------------------------------------------------------------------------------------
# `ua-memory consolidate`: facts into observations, by hand or every night.


consolidate_app = app.new()

LOG = "consolidate.log"


@app.verb(consolidate_app)
def consolidate(
    call: Call,
    memory: Memory,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the diff without a model, and the price of one.")
    ] = False,
    limit: Annotated[int | None, typer.Option(metavar="N", min=1, help="Only the N oldest facts.")] = None,
    max_usd: Annotated[
        float | None, typer.Option(metavar="USD", min=0, help="Cost limit of this run.")
    ] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Retry facts that were set aside.")] = False,
    accept: Annotated[
        bool, typer.Option("--accept", help="Allow more than a quarter of the observations to be retired.")
    ] = False,
    batch_api: Annotated[
        bool,
        typer.Option(
            "--batch-api", help="Use the batch API at half the price; a later run collects the answers."
        ),
    ] = False,
    log: Annotated[
        bool, typer.Option("--log", help="Write to local/consolidate.log in the state folder instead.")
    ] = False,
) -> None:
    """Create observations from facts that no run has considered.

    With a model (ANTHROPIC_API_KEY or ANTHROPIC_BASE_URL) facts are compared with the observations, which
    are created, strengthened, revised, merged or retired, each with verbatim proofs. Without one, only what
    several days repeat becomes an observation. One run is one commit. Then stale pages are refreshed. If
    there is nothing to do and no terminal, as from cron, nothing is printed.
    """
    with ExitStack() as bar:
        if log:
            _to_log(call, memory)
        if dry_run:
            _preview(call, memory, limit, batch_api)
            return
        if batch_api and call.endpoint is None:
            raise Usage("no model is configured", hint="set ANTHROPIC_API_KEY")
        told: dict[str, Any] = {}

        def after(done: ConsolidationResult, model: Model | None) -> None:
            bar.close()
            told.update(views.consolidated_shape(done), pages=[])
            if not call.as_json:
                views.show_consolidated(Screen(call), done)
            if not done.ended:
                memory.pages.refresh_stale(model, done=lambda page: _refreshed(call, page, told["pages"]))

        tell = bar.enter_context(progress(call, "Considering facts"))
        try:
            done = memory.consolidate(
                model=call.endpoint, limit=limit, usd=max_usd, retry=retry, accept=accept,
                batch_api=batch_api, tell=tell, after=after,
            )  # fmt: skip
        except KeyboardInterrupt:
            note(call, "interrupted; the answers are kept, and the next run continues from there")
            raise
        finally:
            if call.as_json and told:
                emit(call, told)
        if done.ended:
            raise done.ended


def _to_log(call: Call, memory: Memory) -> None:
    """From here on, whatever is said goes into a log: cron would mail it, or drop it."""
    memory.store.make_state()
    memory.store.bank.local.mkdir(mode=0o700, exist_ok=True)
    found = Log(memory.store.bank.local, LOG)
    found.say("consolidate")
    call.stdout = call.stderr = Lines(found)


def _refreshed(call: Call, page: RefreshResult, shapes: list[Any]) -> None:
    """A page that was stale, as `pages refresh` tells it."""
    shapes.append(views.refreshed_shape(page, None))
    if not call.as_json:
        views.show_refreshed(Screen(call), page)


def _preview(call: Call, memory: Memory, limit: int | None, batch_api: bool) -> None:
    found = memory.observations.preview(model=call.endpoint, limit=limit, batch_api=batch_api)
    show(call, found, views.preview_shape, views.show_preview)
