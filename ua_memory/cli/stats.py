"""`ua-memory stats`: what there is, how it grew, and what models cost."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ua_memory.cli import context, shapes, verbs
from ua_memory.money import dollars

if TYPE_CHECKING:
    from ua_memory.cli.call import Call
    from ua_memory.cli.format import Screen
    from ua_memory.memory import Memory, Spent, Stats, Totals

stats_app = verbs.new()
NAMED = 12
"""Rows of a table that are shown; JSON has all."""


@stats_app.command(cls=verbs.Verb)
def stats(
    ctx: typer.Context,
    cost: Annotated[bool, typer.Option("--cost", help="Tokens and money that models took.")] = False,
    since: Annotated[
        str | None, typer.Option(metavar="DATE", help="With --cost: from this day on.", show_default=False)
    ] = None,
    plot: Annotated[
        str | None,
        typer.Option(
            "--plot",
            metavar="FILE",
            help="With --cost: draw each day by purpose: .png, .svg or .pdf.",
            show_default=False,
        ),
    ] = None,
    as_json: verbs.Json = False,
    bank: verbs.Bank = None,
) -> None:
    """Count what there is, and what models cost."""
    from ua_memory.cli.format import Screen, emit

    with context.opened(ctx) as (call, memory):
        if cost or plot:
            spent = memory.spent(_since(memory, since))
            _draw(call, spent, plot)
            emit(call, shape_of_cost(memory, spent)) if call.as_json else _tell_cost(
                Screen(call), memory, spent
            )
        else:
            found = memory.stats()
            emit(call, shape(found)) if call.as_json else _tell(Screen(call), found)


def _draw(call: Call, spent: Spent, plot: str | None) -> None:
    """Draw what was spent, if that is wanted and there is any. Usage without matplotlib."""
    if plot is None:
        return
    from ua_memory.bench.plot import draw_cost, drawable

    file = context.absolute(call, plot)
    drawable(file)
    if spent.by_both:
        draw_cost(spent, file)


def _since(memory: Memory, given: str | None) -> datetime | None:
    from datetime import date

    from ua_memory.cli.times import parse_day

    now = memory.store.now()
    day = parse_day(given, "--since", now.date())
    return datetime.combine(date.fromisoformat(day), time(), now.tzinfo) if day else None


def shape(found: Stats) -> dict[str, Any]:
    return {
        "files": found.files,
        "bytes": found.bytes,
        "facts": found.facts,
        "revisions": found.revisions,
        **({"first": found.first, "last": found.last} if found.first else {}),
        "kinds": dict(found.kinds),
        "origins": dict(found.origins),
        "clients": dict(found.clients),
        "months": dict(found.months),
        "ops": dict(found.ops),
    }


def _tell(screen: Screen, found: Stats) -> None:
    span = f", from {found.first} to {found.last}" if found.first else ""
    screen.line(f"{found.facts:,} facts in {found.files:,} files ({_size(found.bytes)}){span}")
    screen.line(f"{found.revisions:,} revisions")
    tables = {"Month": found.months, "Kind": found.kinds, "Origin": found.origins, "Client": found.clients}
    for title, counts in {**tables, "Revisions": found.ops}.items():
        _table(screen, title, counts)


def _table(screen: Screen, title: str, counts: Mapping[str, int]) -> None:
    if not counts:
        return
    screen.line()
    screen.line((title, "strong"))
    rows = list(counts.items())
    shown = rows[-NAMED:] if title == "Month" else rows[:NAMED]
    most = max(counts.values())
    screen.rows(
        [["  " + name, *screen.bar(min(number / most, 0.79))[:1], f"{number:,}"] for name, number in shown]
    )
    if len(rows) > len(shown):
        screen.line((f"  and {len(rows) - len(shown)} more", "faint"))


def _size(size: int) -> str:
    return f"{size / 1_000_000:.1f} MB" if size >= 100_000 else f"{size / 1000:.1f} kB"


# -- money ---------------------------------------------------------------------------------------------


def shape_of_cost(memory: Memory, spent: Spent) -> dict[str, Any]:
    config = memory.config
    limits = {name: getattr(config, name) for name in ("run_tokens", "run_usd", "day_tokens", "day_usd")}
    return {
        "total": _totals(spent.total),
        "purposes": {name: _totals(each) for name, each in spent.by_purpose.items()},
        "days": {name: _totals(each) for name, each in spent.by_day.items()},
        "models": {name: _totals(each) for name, each in spent.by_model.items()},
        "limits": limits,
        "pricesAsOf": memory.prices_as_of(),
    }


def _totals(one: Totals) -> dict[str, Any]:
    used = one.usage
    return {
        "requests": one.requests,
        "failed": one.failed,
        **shapes.usage(used),
        "usd": round(one.usd, 6),
        "unpriced": one.unpriced,
    }


def _tell_cost(screen: Screen, memory: Memory, spent: Spent) -> None:
    if not spent.total.requests:
        screen.line("No model was asked yet.")
        return
    for title, groups in {"Purpose": spent.by_purpose, "Model": spent.by_model, "Day": spent.by_day}.items():
        head = [(title, "strong"), "requests", "in", "cached", "out", "dollars"]
        most = max(_weight(each, spent) for each in groups.values())
        shown = list(groups.items())[-NAMED:]
        body = [_row(f"  {name}", each) for name, each in shown]
        rows = [[f"{cell:>9}" if n and isinstance(cell, str) else cell for n, cell in enumerate(row)]
                for row in [head, *body]]  # fmt: skip
        bars = [[], *(screen.bar(min(_weight(each, spent) / (most or 1), 0.79), 8)[:1] for _, each in shown)]
        screen.rows([[*row, *bar] for row, bar in zip(rows, bars, strict=True)], gap=1)
        screen.line()
    screen.rows([_row("All", spent.total)])
    config = memory.config
    screen.line()
    limits = f"{dollars(config.run_usd)} a run, {dollars(config.day_usd)} a day"
    screen.line(f"Limits: {limits}. Prices of {memory.prices_as_of()}.")
    if spent.total.unpriced:
        screen.line(
            (f"{spent.total.unpriced} requests went to models the price table does not know.", "faint")
        )


def _weight(one: Totals, spent: Spent) -> float:
    """What a bar shows: dollars, or tokens where nobody sends a bill."""
    return one.usd if spent.total.usd else float(one.usage.total)


def _row(name: str, one: Totals) -> list[Any]:
    used = one.usage
    new = used.input + used.cache_write
    return [
        name,
        f"{one.requests:,}",
        f"{new:,}",
        f"{used.cache_read:,}",
        f"{used.output:,}",
        dollars(one.usd).removeprefix("$"),
    ]
