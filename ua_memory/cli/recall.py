"""`ua-memory recall`: what search finds, as a block for a prompt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

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

if TYPE_CHECKING:
    from ua_memory.config import Config

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
    from ua_memory.cli.search import asked, chosen, one, scope, shape
    from ua_memory.glance import hits_block

    with context.opened(ctx) as (call, memory):
        tags = scope(call, tag, tags_match, tag_groups)
        filters = chosen(memory, since, until, tags, kind, source)
        most, depth, lines = _room(memory.config, budget, max_tokens)
        found = asked(call, memory, [one(query)], limit or lines, min_score, filters, depth)[0]
        text, left = hits_block(found, most)
        if call.as_json:
            return emit(call, {"block": text, "left_out": len(left), **shape(found)})
        if text:
            Screen(call).raw(text)
        else:
            note(call, f"nothing fits into {most} tokens" if left else "nothing found")
        for said in found.notes:
            note(call, said)
        if left and not most:
            note(call, f"{len(left)} left out: no room in 9,500 characters")
    return None


def _room(config: Config, budget: str, max_tokens: int | None) -> tuple[int, int, int | None]:
    """(tokens, or 0 where characters count; candidates of each arm, or 0 for as many as usual; lines that may
    find room, or None for as many as search prints): by the options, else by the settings."""
    from ua_memory.glance import preset

    budget = budget or config.recall_budget
    max_tokens = max_tokens or config.recall_max_tokens
    if not budget and not max_tokens:
        return 0, 0, None
    chosen = preset(budget, max_tokens)
    return chosen.tokens, chosen.depth, min(chosen.lines, 1000)
