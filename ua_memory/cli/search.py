"""`ua-memory search`: find facts and notes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ua_memory.cli import context, verbs

if TYPE_CHECKING:
    from ua_memory.cli.call import Call
    from ua_memory.memory import Answer, Filters, Hit, Memory

search_app = verbs.new()


Query = Annotated[
    list[str] | None,
    typer.Argument(metavar="QUERY...", help='Words, a question, or a "phrase".', show_default=False),
]
Limit = Annotated[
    int | None,
    typer.Option(
        "--limit",
        "-n",
        metavar="N",
        min=1,
        max=1000,
        help="At most so many hits; else the setting search.limit.",
        show_default=False,
    ),
]
MinScore = Annotated[
    float | None,
    typer.Option(
        metavar="SCORE",
        min=0,
        max=1,
        help="Leave out weaker hits; else the setting search.min_score.",
        show_default=False,
    ),
]
Since = Annotated[
    str | None,
    typer.Option(
        metavar="DATE", help="From this day on: 2026-11-21, 2026-11, 2026, 30d, today or yesterday."
    ),
]
Until = Annotated[str | None, typer.Option(metavar="DATE", help="Up to this day, which counts.")]
Batch = Annotated[
    bool,
    typer.Option("--batch", help="Read one query a line from standard input; print a line of JSON for each."),
]
Explain = Annotated[bool, typer.Option("--explain", help="Say how each hit was found and scored.")]


def _several(option: str, metavar: str, says: str) -> Any:
    return typer.Option(option, metavar=metavar, help=says, show_default=False)


Tags = Annotated[
    list[str] | None,
    _several("--tag", "TAG", "With this tag or one below it; {project}, {cwd} … are filled in."),
]
TagsMatch = Annotated[
    str,
    typer.Option(
        "--tags-match",
        metavar="MODE",
        help="any_strict or all_strict: any or all of the tags; any, all: or none at all.",
    ),
]
TagGroups = Annotated[
    str,
    typer.Option(metavar="JSON", help="Tags joined by and, or, not: docs/recall.md.", show_default=False),
]
Kinds = Annotated[
    list[str] | None,
    _several("--kind", "KIND", "Of this kind: world, experience, preference, passage, core, …"),
]
Sources = Annotated[
    list[str] | None, _several("--source", "WORD", "Of this origin (person, agent, web, …) or client.")
]


@search_app.command(cls=verbs.Verb)
def search(
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
    explain: Explain = False,
    batch: Batch = False,
    as_json: verbs.Json = False,
    bank: verbs.Bank = None,
) -> None:
    """Find facts and notes by words and by meaning.

    The index is brought up to date with the files first, so what was just written or edited is found.
    """
    from ua_memory.cli.format import emit

    with context.opened(ctx) as (call, memory):
        tags = scope(call, tag, tags_match, tag_groups)
        filters = chosen(memory, since, until, tags, kind, source)
        queries = _lines(call) if batch else [one(query)]
        answers = asked(call, memory, queries, limit, min_score, filters)
        if not (batch or call.as_json):
            from ua_memory.cli.hits import show

            return show(call, memory, queries[0], answers[0], explain, bool(filters) or bool(min_score))
        for answer in answers:
            emit(call, shape(answer, explain), line=batch)
    return None


def one(words: list[str] | None) -> str:
    """The query that the words of a call are. Usage if they say nothing."""
    from ua_memory.errors import Usage

    if not words or not " ".join(words).strip():
        raise Usage("there is nothing to search for", mend='ua-memory search "why did we leave Heroku"')
    return " ".join(words)


def _lines(call: Call) -> list[str]:
    """The queries of a batch. The end of the last line begins no query of its own. TooLarge."""
    from ua_memory.cli.origin import given

    rows = given(call).decode("utf-8", "replace").split("\n")
    return [row.removesuffix("\r") for row in (rows[:-1] if not rows[-1] else rows)]


def scope(call: Call, tags: list[str] | None, match: str, groups: str) -> dict[str, Any]:
    """What the options say of tags, with the caller's places filled in. Usage for groups that are no JSON."""
    import json

    from ua_memory.cli.places import places
    from ua_memory.errors import Usage
    from ua_memory.places import filled, filled_groups

    if not tags and not groups:
        return {"match": match}
    known = places(call)
    try:
        read = json.loads(groups or "[]")
    except (ValueError, RecursionError) as error:
        raise Usage(f"--tag-groups is no JSON: {error}", mend='--tag-groups \'[{"tags": ["a"]}]\'') from error
    return {"tags": filled(tags or (), known), "match": match, "groups": filled_groups(read, known)}


def chosen(
    memory: Memory,
    since: str | None,
    until: str | None,
    tags: dict[str, Any],
    kind: list[str] | None,
    source: list[str] | None,
) -> Filters:
    """What the options let through. Usage for a date that is none, and for no such kind or mode."""
    from ua_memory.cli.times import parse_day

    today = memory.store.now().date()
    return memory.filters(
        since=parse_day(since, "--since", today),
        until=parse_day(until, "--until", today, end=True),
        kinds=kind or (),
        sources=source or (),
        **tags,
    )


def asked(
    call: Call,
    memory: Memory,
    queries: list[str],
    limit: int | None,
    min_score: float | None,
    filters: Filters,
    depth: int = 0,
) -> list[Answer]:
    """The answers, with a bar of progress where somebody waits and the index is behind."""
    from ua_memory.cli.progress import progress

    with progress(call, "Indexing") as tell:
        return memory.search_many(
            queries, limit=limit, min_score=min_score, filters=filters, progress=tell, depth=depth
        )


def shape(answer: Answer, explain: bool = False) -> dict[str, Any]:
    """The answer as JSON, with OpenClaw's keys."""
    return {
        "results": [_hit(hit, explain) for hit in answer.hits],
        "mode": answer.mode,
        **({"stale": dict(answer.stale)} if answer.stale else {}),
        "notes": list(answer.notes),
    }


def _folded(hit: Hit) -> list[dict[str, Any]]:
    """What a hit stands for."""
    from ua_memory.cli import shapes

    rows = [
        ({"kind": one.kind, "day": one.day, "when": one.when}, shapes.place(one.place, one.id))
        for one in hit.folded
    ]
    return [{**place, **shapes.without_empty(more)} for more, place in rows]


def _hit(hit: Hit, explain: bool) -> dict[str, Any]:
    from ua_memory.cli import shapes

    item = hit.item
    more = {
        "kind": item.kind,
        "record": item.record,
        "day": item.day,
        "when": item.when,
        "origin": item.origin,
        "client": item.client,
        "session": item.session,
        "heading": item.heading,
        "tags": list(item.tags),
        "entities": list(item.entities),
        "retired": item.retired,
        "proofs": list(item.proofs),
        "folded": _folded(hit),
    }
    found = {
        **shapes.place(item.place, item.id),
        "score": round(hit.score, 4),
        "snippet": hit.snippet,
        "source": "memory",
        **shapes.without_empty(more),
    }
    if explain:
        found["arms"] = {
            name: {"rank": rank, "score": round(raw, 4)} for name, (rank, raw) in hit.arms.items()
        }
        found["parts"] = {name: round(value, 4) for name, value in hit.parts.items()}
    return found
