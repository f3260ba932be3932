"""`ua-memory recall`: what search finds, as a block for a prompt."""

from __future__ import annotations

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


@recall_app.command(cls=verbs.Verb)
def recall(
    ctx: typer.Context,
    query: Query = None,
    limit: Limit = None,
    min_score: MinScore = None,
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

    It is marked as data, with date and place of every line, and no longer than
    9,500 characters. Nothing is printed where nothing is found.
    """
    from ua_memory.cli.format import Screen, emit, note
    from ua_memory.cli.search import asked, chosen, one, scope, shape
    from ua_memory.glance import hits_block

    with context.opened(ctx) as (call, memory):
        tags = scope(call, tag, tags_match, tag_groups)
        filters = chosen(memory, since, until, tags, kind, source)
        answer = asked(call, memory, [one(query)], limit, min_score, filters)[0]
        text, left = hits_block(answer)
        if call.as_json:
            return emit(call, {"block": text, "left_out": len(left), **shape(answer)})
        if text:
            Screen(call).raw(text)
        else:
            note(call, "nothing found")
        for said in answer.notes:
            note(call, said)
        if left:
            note(call, f"{len(left)} left out: no room in 9,500 characters")
    return None
