"""`ua-memory recall`: what search finds, as a block for a prompt."""

from __future__ import annotations

from typing import Annotated

import typer

from ua_memory.cli import context, verbs
from ua_memory.cli.search import (
    Kinds,
    Limit,
    MinScore,
    Query,
    Since,
    Sources,
    TagGroups,
    Tags,
    TagsMatch,
    Until,
)

recall_app = verbs.new()

Budget = Annotated[
    str,
    typer.Option(
        "--budget",
        metavar="SIZE",
        help="low, mid or high: 600, 2,000 or 6,000 tokens; else recall.budget.",
        show_default=False,
    ),
]
MaxTokens = Annotated[
    int | None,
    typer.Option(
        "--max-tokens",
        metavar="N",
        min=1,
        max=1_000_000,
        help="At most so many tokens, marks and all; else recall.max_tokens.",
        show_default=False,
    ),
]


@recall_app.command(cls=verbs.Verb)
def recall(
    ctx: typer.Context,
    query: Query = None,
    limit: Limit = None,
    min_score: MinScore = None,
    budget: Budget = "",
    max_tokens: MaxTokens = None,
    since: Since = None,
    until: Until = None,
    tag: Tags = None,
    tags_match: TagsMatch = "any_strict",
    tag_groups: TagGroups = "",
    kind: Kinds = None,
    source: Sources = None,
    as_json: verbs.Json = False,
    bank: verbs.Bank = None,
) -> None:
    """What search finds, as a block for a prompt.

    It is marked as data, with date and place of every line. By itself it has as
    many lines as search has hits and no more than 9,500 characters; with a budget
    as many as its tokens hold. Nothing is printed where nothing is found.
    """
    from ua_memory.cli.format import Screen, emit, note
    from ua_memory.cli.progress import progress
    from ua_memory.cli.search import chosen, one, scope, shape

    with context.opened(ctx) as (call, memory):
        tags = scope(call, tag, tags_match, tag_groups)
        filters = chosen(memory, since, until, tags, kind, source)
        with progress(call, "Indexing") as tell:
            found = memory.recall(
                one(query), budget=budget, max_tokens=max_tokens or 0, limit=limit, min_score=min_score,
                filters=filters, progress=tell,
            )  # fmt: skip
        if call.as_json:
            return emit(call, {"block": found.block, "left_out": len(found.left), **shape(found.answer)})
        if found.block:
            Screen(call).raw(found.block)
        else:
            note(call, f"nothing fits into {found.most} tokens" if found.left else "nothing found")
        for said in found.answer.notes:
            note(call, said)
        if found.left and not found.most:
            note(call, f"{len(found.left)} left out: no room in 9,500 characters")
    return None
