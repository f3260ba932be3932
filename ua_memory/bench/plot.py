"""The plots: recall against tokens, and what models cost by day. matplotlib comes with `ua-memory[plot]`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ua_memory.bench.report import Report
from ua_memory.errors import CannotWrite, Usage

if TYPE_CHECKING:
    from ua_memory.memory import Spent, Totals

SUFFIXES = (".png", ".svg", ".pdf")


def drawable(file: Path) -> None:
    """Raise what `draw` would, before the long part. Usage without matplotlib or for another kind of file."""
    if file.suffix.lower() not in SUFFIXES:
        raise Usage("a plot is a .png, .svg or .pdf", where=str(file), mend="--plot recall.png")
    if not file.parent.is_dir():
        raise CannotWrite("no such folder", where=str(file.parent), mend=f"mkdir -p {file.parent}")
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise Usage("matplotlib is not installed", mend="pip install 'ua-memory[plot]'") from error


def draw(report: Report, file: Path) -> None:
    """Draw a line for each ranking: tokens returned across, the share of the evidence in them upwards.

    CannotWrite where the file system refuses.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), dpi=150, layout="constrained")
    axes = figure.add_subplot()
    for ranking in report.rankings:
        tokens, recall = zip(*ranking.curve, strict=True)
        axes.plot(tokens, recall, marker="o", markersize=3, label=f"{ranking.name} ({ranking.ms:g} ms)")
    axes.set_xscale("log")
    ticks = [budget for budget, _ in report.rankings[0].curve]
    axes.set_xticks(ticks, [f"{budget:,}" for budget in ticks], rotation=45)
    axes.minorticks_off()
    axes.set_ylim(0, 100)
    axes.set_xlabel("tokens returned (characters / 4)")
    axes.set_ylabel("evidence among them, %")
    axes.set_title(f"{report.rankings[0].rows[0].n:,} questions, {report.turns:,} turns")
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right")
    _save(figure, file)


def draw_cost(spent: Spent, file: Path) -> None:
    """Draw a bar for each day from the first to the last, in parts by purpose: dollars, or thousands of
    tokens where no model sent a bill. CannotWrite where the file system refuses."""
    from matplotlib.figure import Figure

    days = _days(spent.by_both)
    priced = spent.total.usd > 0
    figure = Figure(figsize=(7, 4), dpi=150, layout="constrained")
    axes = figure.add_subplot()
    below = [0.0] * len(days)
    for purpose in sorted(spent.by_purpose, key=lambda name: -_height(spent.by_purpose[name], priced)):
        heights = [_height(spent.by_both.get(day, {}).get(purpose), priced) for day in days]
        axes.bar(range(len(days)), heights, bottom=below, label=purpose, width=0.8)
        below = [low + high for low, high in zip(below, heights, strict=True)]
    step = max(1, len(days) // 12)
    axes.set_xticks(range(0, len(days), step), [day[5:] for day in days[::step]], rotation=45)
    axes.set_ylabel("dollars" if priced else "thousand tokens")
    axes.set_title(f"{days[0]} to {days[-1]}" if len(days) > 1 else days[0])
    axes.grid(axis="y", alpha=0.3)
    axes.legend()
    _save(figure, file)


def _days(found: Mapping[str, object]) -> list[str]:
    """Every day from the first to the last, those on which nothing was asked, too."""
    first, last = date.fromisoformat(min(found)), date.fromisoformat(max(found))
    return [(first + timedelta(days=n)).isoformat() for n in range((last - first).days + 1)]


def _height(one: Totals | None, priced: bool) -> float:
    return 0.0 if one is None else one.usd if priced else one.usage.total / 1000


def _save(figure: Any, file: Path) -> None:
    try:
        figure.savefig(file)
    except OSError as error:
        raise CannotWrite(error.strerror or str(error), where=str(file)) from error
