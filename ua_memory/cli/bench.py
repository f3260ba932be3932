"""`ua-memory bench`: how good the search is, on the user's own copies of data sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ua_memory.cli import context, verbs

if TYPE_CHECKING:
    from ua_memory.bench import Ranking, Report, Row
    from ua_memory.cli.format import Screen

bench_app = verbs.new(no_args_is_help=True, help="Measure search on conversations of yours.")

SHARES = ("R@5", "tokens@5", "R@10", "tokens@10", "R@20", "tokens@20", "R@2000t", "tokens@2000t")
RANKS = ("ses@5", "nDCG@10", "MRR@10")
STRICT = tuple(f"{what}@{depth}" for depth in ("5", "10", "20", "2000t") for what in ("all", "hit"))


@bench_app.callback()
def _group() -> None:
    """A family although it has one member yet."""


@bench_app.command(cls=verbs.Verb)
def recall(
    ctx: typer.Context,
    file: Annotated[
        list[str],
        typer.Argument(metavar="FILE...", help="LoCoMo, LongMemEval, or JSON lines.", show_default=False),
    ],
    limit: Annotated[
        int, typer.Option("--limit", "-n", metavar="N", min=1, max=1000, help="Results asked for a question.")
    ] = 50,
    sample: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Ask at most N questions of each file, evenly spread.",
            show_default=False,
        ),
    ] = None,
    plot: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Draw recall against tokens: .png, .svg or .pdf.", show_default=False
        ),
    ] = None,
    as_json: verbs.Json = False,
    bank: verbs.Bank = None,
) -> None:
    """Score search on conversations whose questions name their evidence.

    Each conversation becomes a bank of its own in a temporary folder; yours is not touched. BM25 and grep
    answer the same questions beside ours. Formats and figures: docs/bench.md.
    """
    from ua_memory import bench
    from ua_memory.cli.format import Screen, emit, note
    from ua_memory.cli.progress import progress

    call = context.call_of(ctx)
    picture = context.absolute(call, plot) if plot else None
    if picture:
        bench.drawable(picture)
    files = [bench.read(context.absolute(call, each)) for each in file]
    with progress(call, "Asking") as tell:
        report = bench.measure(files, limit=limit, sample=sample, now=call.now, progress=tell)
    if picture:
        bench.draw(report, picture)
    if call.as_json:
        emit(call, shape(report))
        return
    _show(Screen(call), report)
    for text in report.notes:
        note(call, text)
    if picture:
        note(call, f"drawn: {picture}")


def shape(report: Report) -> dict[str, Any]:
    """The report as JSON."""
    return {
        "conversations": report.conversations,
        "turns": report.turns,
        "questions": report.questions,
        "unanswered": report.unanswered,
        "limit": report.limit,
        "indexSeconds": report.index_seconds,
        "rankings": [_ranking(one) for one in report.rankings],
        "notes": list(report.notes),
    }


def _ranking(one: Ranking) -> dict[str, Any]:
    return {
        "name": one.name,
        "ms": one.ms,
        "rows": [{"name": row.name, "n": row.n, **row.figures} for row in one.rows],
        "curve": [{"tokens": tokens, "R": recall} for tokens, recall in one.curve],
    }


# -- for people ----------------------------------------------------------------------------------------


def _show(screen: Screen, report: Report) -> None:
    from ua_memory.cli.format import count

    said = [
        count(report.conversations, "conversation"),
        count(report.turns, "turn"),
        f"indexed in {report.index_seconds:.1f} s",
    ]
    left = f"; {count(report.unanswered, 'question')} without evidence left out" if report.unanswered else ""
    screen.line(", ".join(said) + left)
    screen.line()
    _table(screen, report, [*SHARES, *RANKS], len(report.rankings[0].rows))
    totals = [row.name for row in report.rankings[0].rows if row.name in ("all", "adversarial")]
    screen.line()
    screen.line(("All of the evidence (all@), any of it (hit@)", "strong"))
    _table(screen, report, list(STRICT), len(totals))


def _table(screen: Screen, report: Report, figures: list[str], rows: int) -> None:
    """The first rows of each ranking, a row of all rankings together; tokens and time beside the figures."""
    heads = ["tok" if name.startswith("tokens") else name for name in figures]
    heads = [head.removesuffix("@10") if head in RANKS else head for head in heads]
    widths = [4 if head == "tok" else max(len(head), 5) for head in heads]
    cells = [f"{head:>{width}}" for head, width in zip(heads, widths, strict=True)]
    screen.line((" ".join([" " * 9, *cells, f"{'ms':>6}"]), "faint"))
    for number in range(rows):
        row = report.rankings[0].rows[number]
        screen.line((row.name, "strong"), (f", {row.n:,} question{'s' if row.n > 1 else ''}", "faint"))
        for one in report.rankings:
            shown = [_cell(one.rows[number], name) for name in figures]
            cells = [f"{cell:>{width}}" for cell, width in zip(shown, widths, strict=True)]
            screen.line(" ".join([f"{one.name:9}", *cells, f"{one.ms:>6.{2 if one.ms < 100 else 0}f}"]))


def _cell(row: Row, name: str) -> str:
    value = row.figures[name]
    return str(value) if name.startswith("tokens") else f"{value:.1f}"
