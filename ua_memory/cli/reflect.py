"""`ua-memory reflect`: a question answered from memory, with its proofs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ua_memory import regular
from ua_memory.cli import context, verbs
from ua_memory.cli.search import Since, TagGroups, Tags, TagsMatch, Until

if TYPE_CHECKING:
    from ua_memory.cli.call import Call

reflect_app = verbs.new()

Question = Annotated[
    list[str] | None, typer.Argument(metavar="QUESTION...", help="What is asked.", show_default=False)
]
Budget = Annotated[
    str, typer.Option("--budget", metavar="SIZE", help="low, mid or high: how far and how long it looks.")
]
MaxTokens = Annotated[
    int | None,
    typer.Option(
        "--max-tokens", metavar="N", min=20, max=20_000, show_default=False,
        help="At most so many tokens of answer; else 500, 1,000 or 2,000.",
    ),
]  # fmt: skip
Schema = Annotated[
    str | None,
    typer.Option(
        "--schema", metavar="FILE", show_default=False,
        help="A JSON schema for a structured answer beside the text; - for standard input.",
    ),
]  # fmt: skip
Context = Annotated[
    str, typer.Option("--context", metavar="TEXT", help="What the question is asked for.", show_default=False)
]
Keep = Annotated[bool, typer.Option("--keep", help="Form or revise opinions, in memory/opinions.md.")]
Explain = Annotated[bool, typer.Option("--explain", help="Show the path: what was asked, and found.")]


@reflect_app.command(cls=verbs.Verb)
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
    as_json: verbs.Json = False,
    bank: verbs.Bank = None,
) -> None:
    """Answer a question from memory, with proofs.

    An agent asks mental models first, then observations, then facts; every sentence of its answer must
    stand in what it cites. Without a model (ANTHROPIC_API_KEY or ANTHROPIC_BASE_URL) the evidence is
    printed in that order. Nothing is written, unless with --keep.
    """
    from ua_memory.cli import answers
    from ua_memory.cli.format import emit
    from ua_memory.cli.progress import progress
    from ua_memory.cli.search import chosen, scope
    from ua_memory.errors import Usage

    if not question or not " ".join(question).strip():
        raise Usage("there is no question", mend='ua-memory reflect "why did we leave Heroku"')
    with context.opened(ctx) as (call, memory):
        filters = chosen(memory, since, until, scope(call, tag, tags_match, tag_groups), None, None)
        with progress(call, "Thinking"):
            found = memory.reflect(
                " ".join(question), model=call.endpoint, budget=budget, max_tokens=max_tokens or 0,
                schema=_schema(call, schema), context=context_of, filters=filters, keep_opinion=keep,
            )  # fmt: skip
        if call.as_json:
            emit(call, answers.shape(found, explain))
        else:
            answers.show(call, found, explain)


def _schema(call: Call, given: str | None) -> Any:
    """The JSON of a schema file. Usage where it is none."""
    import json

    from ua_memory.errors import NotFound, Usage

    if given is None:
        return None
    try:
        data = call.stdin.read() if given == "-" else regular.read(context.absolute(call, given))
        return json.loads(data)
    except FileNotFoundError as error:
        raise NotFound("no such file", where=given, mend="--schema FILE, or - for standard input") from error
    except (OSError, ValueError, RecursionError) as error:
        raise Usage(f"the schema cannot be read: {error}", where=given) from error
