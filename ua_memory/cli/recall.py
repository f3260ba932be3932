"""`ua-memory recall`: what search finds, as a block for a prompt."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from ua_memory.cli import context, verbs
from ua_memory.cli.search import Kinds, Limit, MinScore, Query, Since, Sources, Tags, Until

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ua_memory.memory import Answer

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
    from ua_memory.cli.search import asked, chosen, one, shape

    with context.opened(ctx) as (call, memory):
        filters = chosen(memory, since, until, tag, kind, source)
        answer = asked(call, memory, [one(query)], limit, min_score, filters)[0]
        text, left = block(answer)
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


def block(answer: Answer) -> tuple[str, Sequence[str]]:
    """(the hits as a block for a prompt, '' where there are none; the lines that found no room in it)."""
    from ua_memory import fence, glance

    rows = []
    for hit in answer.hits:
        item = hit.item
        source = glance.source(item.path, item.line, item.end, item.id, item.retired)
        rows.append(fence.row(item.date, hit.snippet, source))
    return fence.block("search", glance.HEAD if answer.mode == "hybrid" else glance.BY_WORDS, rows)
