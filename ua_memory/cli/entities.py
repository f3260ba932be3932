"""`ua-memory entities`: the names of the bank, and the decisions about who is who."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ua_memory.cli import context, verbs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ua_memory.cli.call import Call
    from ua_memory.cli.format import Screen
    from ua_memory.memory import Decision, Known, Portrait, Suggestion

entities_app = verbs.new(no_args_is_help=True, help="Who is who: names, and what else they are called.")

SHOWN = 220
"""Characters of a text that are shown around a name."""

Name = Annotated[str, typer.Argument(metavar="NAME", help="A name.", show_default=False)]
Limit = Annotated[int, typer.Option("-n", "--limit", metavar="N", min=1, help="At most so many.")]


@entities_app.command("list", cls=verbs.Verb)
def entities_list(
    ctx: typer.Context,
    suggest: Annotated[
        bool, typer.Option("--suggest", help="Pairs of names that may be one, and why.")
    ] = False,
    every: Annotated[
        bool, typer.Option("--all", help="Paths, handles, identifiers and doubtful words too.")
    ] = False,
    limit: Limit = 30,
    as_json: verbs.Json = False,
    bank: verbs.Bank = None,
) -> None:
    """List the names, the most frequent first.

    Nothing is merged by `--suggest`: it prints the commands that would.
    """
    from ua_memory.cli.format import emit

    with context.opened(ctx) as (call, memory):
        if suggest:
            pairs = memory.suggested(limit)
            shapes = [{"name": p.name, "other": p.other, "how": p.how, "reason": p.reason} for p in pairs]
            emit(call, {"suggestions": shapes}) if call.as_json else _suggest(call, pairs)
            return
        found = memory.entities(limit, every=every)
        emit(call, {"entities": [_known(one) for one in found]}) if call.as_json else _list(call, found)


def _list(call: Call, found: list[Known]) -> None:
    from ua_memory.cli.format import Screen

    screen = Screen(call)
    if not found:
        screen.line("No names yet.")
    rows: list[list[Any]] = []
    for one in found:
        seen = one.first if one.first == one.last else f"{one.first} to {one.last}"
        rows.append([(f"{one.count:>5}", "faint"), (one.name, "strong"), seen, (_also(one), "faint")])
    screen.rows(rows)


def _also(one: Known) -> str:
    also = [f"also {', '.join(one.aliases)}"] if one.aliases else []
    return "; ".join(also + ([f"not {', '.join(one.nots)}"] if one.nots else []))


def _suggest(call: Call, pairs: list[Suggestion]) -> None:
    import shlex

    from ua_memory.cli.format import Screen

    screen = Screen(call)
    if not pairs:
        screen.line("No two names look like one.")
    for one in pairs:
        screen.item("", (one.name, "strong"), " and ", (one.other, "strong"), f": {one.reason}")
        names = f"{shlex.quote(one.name)} {shlex.quote(one.other)}"
        screen.line((f"  ua-memory entities merge {names}", "faint"))
    if pairs:
        screen.line(
            "\nWhere two are not one, ",
            ("ua-memory entities split NAME OTHER", "strong"),
            " says so for good.",
        )


@entities_app.command("show", cls=verbs.Verb)
def entities_show(
    ctx: typer.Context, name: Name, limit: Limit = 10, as_json: verbs.Json = False, bank: verbs.Bank = None
) -> None:
    """Show what is known of a name: facts, names beside it, a timeline."""
    from ua_memory.cli.format import emit

    with context.opened(ctx) as (call, memory):
        found = memory.entity(name)
        if call.as_json:
            emit(call, _portrait(found, limit))
        else:
            _tell(call, found, limit)


def _tell(call: Call, found: Portrait, limit: int) -> None:
    from ua_memory.cli.format import Screen, count

    screen, one = Screen(call), found.known
    seen = one.first if one.first == one.last else f"{one.first} to {one.last}"
    screen.line((one.name, "strong"), f"  {count(one.count, 'place')}" + (f", {seen}" if seen else ""))
    if _also(one):
        screen.item("", _also(one))
    if found.beside:
        screen.item([("beside  ", "faint")], ", ".join(f"{n} ({k})" for n, k in [*found.beside.items()][:12]))
    if len(found.timeline) > 1:
        screen.line()
        _draw(screen, found.timeline)
    if found.items:
        screen.line()
    for item in [*reversed(found.items)][:limit]:
        day = item.day or item.date or " " * 10
        cited = f"^{item.id}" if item.id else f"{item.path}:{item.line}"
        text = _around(" ".join(item.text.split()), (one.name, *one.aliases))
        screen.item([(day, "faint"), "  "], text, "  ", (cited, "id" if item.id else "path"))
    if len(found.items) > limit:
        screen.line((f"and {len(found.items) - limit} before these: --limit {len(found.items)}", "faint"))


def _around(text: str, names: tuple[str, ...]) -> str:
    """A long text where it has one of the names first."""
    at = min((at for name in names if (at := text.casefold().find(name.casefold())) >= 0), default=0)
    start = max(0, min(at - SHOWN // 3, len(text) - SHOWN))
    cut = text[start : start + SHOWN]
    return f"{'…' if start else ''}{cut}{'…' if start + SHOWN < len(text) else ''}"


def _draw(screen: Screen, timeline: Mapping[str, int]) -> None:
    most, room = max(timeline.values()), max(10, min(40, screen.width - 30))
    rows: list[list[Any]] = []
    for when, number in timeline.items():
        bar = "█" * max(1, round(number / most * room)) if screen.fancy else ""
        rows.append([(when, "faint"), f"{number:>4}", (bar, "good")])
    screen.rows(rows)


# -- decisions ---------------------------------------------------------------------------------------------


@entities_app.command("alias", cls=verbs.Verb)
def entities_alias(
    ctx: typer.Context,
    name: Name,
    alias: Annotated[
        str, typer.Argument(metavar="ALIAS", help="What else it is called.", show_default=False)
    ],
    as_json: verbs.Json = False,
    bank: verbs.Bank = None,
) -> None:
    """Say what else somebody or something is called."""
    _decide(ctx, "entity_alias", name, alias)


@entities_app.command("merge", cls=verbs.Verb)
def entities_merge(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name that stays.", show_default=False)],
    other: Annotated[
        str, typer.Argument(metavar="OTHER", help="The name that becomes an alias.", show_default=False)
    ],
    as_json: verbs.Json = False,
    bank: verbs.Bank = None,
) -> None:
    """Say that two names are one's.

    Only memory/entities.md changes: facts keep their words, and `undo` or `split` lead back.
    """
    _decide(ctx, "entity_merge", name, other)


@entities_app.command("split", cls=verbs.Verb)
def entities_split(
    ctx: typer.Context,
    name: Name,
    alias: Annotated[str, typer.Argument(metavar="OTHER", help="Who it is not.", show_default=False)],
    as_json: verbs.Json = False,
    bank: verbs.Bank = None,
) -> None:
    """Say that two names are not one's, so that nothing merges them again."""
    _decide(ctx, "entity_split", name, alias)


@entities_app.command("rename", cls=verbs.Verb)
def entities_rename(
    ctx: typer.Context,
    old: Annotated[str, typer.Argument(metavar="OLD", help="What it was called.", show_default=False)],
    new: Annotated[str, typer.Argument(metavar="NEW", help="What it is called.", show_default=False)],
    as_json: verbs.Json = False,
    bank: verbs.Bank = None,
) -> None:
    """Call it by another name; the old one stays as an alias."""
    _decide(ctx, "entity_rename", old, new)


def _decide(ctx: typer.Context, what: str, one: str, other: str) -> None:
    from ua_memory.cli.format import Screen, commit, emit, outcome
    from ua_memory.cli.origin import is_person

    with context.opened(ctx) as (call, memory):
        done: Decision = getattr(memory, what)(one, other, by_person=is_person(call))
        if call.as_json:
            emit(call, _decision(done))
            return
        screen = Screen(call)
        for each in done.entities:
            also = f"  also {', '.join(each.aliases)}" if each.aliases else ""
            nots = f"  not {', '.join(each.nots)}" if each.nots else ""
            screen.item("", (each.name, "strong"), also, nots)
        screen.line((f"{done.path}", "path"), "  ", commit(done.result.revision))
        outcome(call, done.result)


# -- JSON --------------------------------------------------------------------------------------------------


def _known(one: Known) -> dict[str, Any]:
    from ua_memory.cli import shapes

    known = {"first": one.first, "last": one.last, "aliases": list(one.aliases), "not": list(one.nots)}
    return {"name": one.name, "count": one.count, "settled": one.settled, **shapes.without_empty(known)}


def _portrait(found: Portrait, limit: int) -> dict[str, Any]:
    from ua_memory.cli import shapes

    items = [*reversed(found.items)][:limit]
    return {
        **_known(found.known),
        "beside": [{"name": name, "count": number} for name, number in found.beside.items()],
        "timeline": [{"when": when, "count": number} for when, number in found.timeline.items()],
        "facts": [
            {"text": item.text, "day": item.day or item.date, "record": item.record, "kind": item.kind}
            | shapes.place(item.place, item.id)
            for item in items
        ],
    }


def _decision(done: Decision) -> dict[str, Any]:
    return {
        "entities": [
            {"name": e.name, "aliases": list(e.aliases), "not": list(e.nots), "line": e.place.line}
            for e in done.entities
        ],
        "path": done.path,
        "revision": done.result.revision,
        "notes": list(done.result.notes),
    }
