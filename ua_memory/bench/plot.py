"""The plot of recall against tokens. matplotlib comes with the extra `ua-memory[plot]`."""

from __future__ import annotations

from pathlib import Path

from ua_memory.bench.report import Report
from ua_memory.errors import CannotWrite, Usage

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
    try:
        figure.savefig(file)
    except OSError as error:
        raise CannotWrite(error.strerror or str(error), where=str(file)) from error
