"""``hilboost demo``: fits, tables, and plots on data bundled with scikit-learn."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from rich.box import ROUNDED
from rich.console import Console
from rich.table import Table

from hilboost.cli.demo_models import (
    COVERAGE,
    CurveRun,
    DemoSize,
    Intervals,
    Score,
    SpacesRun,
    run_curve,
    run_defaults,
    run_intervals,
    run_spaces,
)
from hilboost.cli.errors import CliError
from hilboost.cli.progress import StageProgress
from hilboost.cli.warmup import run_uses
from hilboost.persistence.atomic import atomic_path

COMPILED = (
    "regression: default settings",
    "several outputs",
    "three classes: default settings",
    "losses",
    "output spaces",
)
"""What of ``USES`` the demo needs."""


def run_demo(folder: Path, *, quick: bool = False) -> list[Path]:  # paths of the plots
    """Run all fits, print the tables, and draw the plots.

    ``folder``: output folder for the plots; created if it does not exist. ``quick``: use few rounds
    and few rows.
    """
    if folder.exists() and not folder.is_dir():
        raise CliError(f"'{folder}' is a file; choose a folder for the plots.")
    folder.mkdir(parents=True, exist_ok=True)
    size = DemoSize.quick() if quick else DemoSize()
    start = time.perf_counter()
    with StageProgress("compiling", total=len(COMPILED) + size.total_rounds) as progress:
        list(run_uses(progress, COMPILED))
        compiling = time.perf_counter() - start
        scores = run_defaults(size, progress)
        intervals = run_intervals(size, progress)
        progress.describe("images")
        spaces = run_spaces(size)
        curve = run_curve(size, progress)
        progress.describe("drawing")
        pictures = draw_all(folder, intervals, curve, spaces)
    console = Console()
    _print_scores(console, scores)
    _print_intervals(console, intervals)
    _print_spaces(console, spaces)
    # Plain print, so that long paths are not wrapped and can be copied.
    print("\nPlots:")
    for picture in pictures:
        print(f"  {picture}")
    seconds = time.perf_counter() - start
    print(f"\nFinished in {seconds:.0f} s, including {compiling:.1f} s for compilation.")
    return pictures


def _print_scores(console: Console, scores: Sequence[Score]) -> None:
    table = Table(box=ROUNDED, header_style="bold")
    for name in ("table", "library", "measure"):
        table.add_column(name)
    for name in ("test rows", "fit (s)"):
        table.add_column(name, justify="right")
    for one in scores:
        table.add_row(one.table, one.library, one.measure, f"{one.value:.4f}", f"{one.seconds:.2f}")
    console.print("\n[bold]Both libraries at their defaults, on one thread[/bold]")
    console.print(table)
    console.print(
        "hilboost adds a kernel machine to the trees where held-out rows show a gain.", style="dim"
    )


def _print_intervals(console: Console, runs: Sequence[Intervals]) -> None:
    table = Table(box=ROUNDED, header_style="bold")
    for name in ("table", "intervals"):
        table.add_column(name)
    for name in ("test rows inside", "mean width"):
        table.add_column(name, justify="right")
    kinds = {"hilboost": "hilboost, from one fit", "scikit-learn": "scikit-learn, two quantiles"}
    for one in runs:
        inside = f"{100 * one.coverage:.1f} %"
        table.add_row(one.table, kinds[one.library], inside, f"{one.width:.3g}")
    console.print(f"\n[bold]Intervals of {100 * COVERAGE:.0f} %[/bold]")
    console.print(table)


def _print_spaces(console: Console, run: SpacesRun) -> None:
    console.print("\n[bold]Images as targets: lower halves of digits from the upper halves[/bold]")
    console.print(
        f"mean squared error {run.error:.4f}, of the mean image {run.baseline:.4f}; fitted in "
        f"{run.image_seconds:.1f} s",
        highlight=False,
    )


# The Okabe-Ito palette, which is safe for color-blind readers.
BLUE, ORANGE, GREEN, VERMILLION, PURPLE = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7"
GRAY, INK = "#B0B0B0", "#222222"

STYLE: dict[str, Any] = {
    "font.size": 11,
    "axes.titlesize": 12,
    "axes.labelsize": 11,
    "figure.titlesize": 14,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#666666",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E4E4E4",
    "legend.frameon": False,
    "lines.linewidth": 2.0,
    "text.color": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}

LOSS_TITLES = {
    "squared_error": "Squared error",
    "absolute_error": "Absolute error",
    "huber": "Huber",
    "quantile": "Quantiles 0.05, 0.5, 0.95",
}


def draw_all(
    folder: Path, intervals: Sequence[Intervals], curve: CurveRun, spaces: SpacesRun
) -> list[Path]:
    """Draw all plots of the demo into a folder, and return their paths."""
    pictures: dict[str, Callable[[], Figure]] = {
        "images_completed.png": lambda: _completed(spaces),
        "intervals.png": lambda: _intervals(intervals),
        "outliers.png": lambda: _outliers(curve),
    }
    paths = []
    with rc_context(STYLE):
        for name, draw in pictures.items():
            path = folder / name
            with atomic_path(path) as temporary:
                draw().savefig(temporary, dpi=110)
            paths.append(path)
    return paths


def _completed(run: SpacesRun) -> Figure:
    n_shown = len(run.upper)
    figure = Figure(figsize=(1.2 * n_shown + 1, 4), layout="constrained")
    figure.suptitle("Lower halves of digits, completed from the upper halves")
    parts = {
        "given": np.full_like(run.lower, 0.5),
        "completed": run.completed,
        "true": run.lower,
    }
    tiles = figure.subplots(len(parts), n_shown)
    for row, (name, below) in zip(tiles, parts.items(), strict=True):
        for axes, top, bottom in zip(row, run.upper, below, strict=True):
            axes.imshow(np.vstack([top, bottom]), cmap="gray_r", vmin=0, vmax=1)
            axes.set_xticks([])
            axes.set_yticks([])
            axes.grid(False)
        row[0].set_ylabel(name)
    return figure


def _intervals(runs: Sequence[Intervals]) -> Figure:
    figure = Figure(figsize=(11, 3.8 * len(runs) / 2 + 0.6), layout="constrained")
    for axes, run in zip(figure.subplots(len(runs) // 2, 2).ravel(), runs, strict=True):
        order = np.argsort(run.ends.mean(axis=1))
        low, high = run.ends[order].T
        true, rows = run.true[order], np.arange(len(order))
        inside = (low <= true) & (true <= high)
        axes.fill_between(rows, low, high, color=BLUE, alpha=0.25, linewidth=0, step="mid")
        axes.scatter(rows[inside], true[inside], s=8, color=GRAY)
        axes.scatter(
            rows[~inside], true[~inside], s=22, marker="x", linewidth=1.2, color=VERMILLION
        )
        axes.set_title(f"{run.table}, {run.library}: {100 * run.coverage:.0f} % inside")
        axes.set_ylabel("target")
        axes.set_xlabel("test rows, in the order of the predictions")
    figure.suptitle("Intervals of 90 %")
    return figure


def _outliers(run: CurveRun) -> Figure:
    figure = Figure(figsize=(11, 8.5), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True, sharey=True)
    for axes in (upper, lower):
        _points(axes, run)
        axes.set_ylabel("y")
    lower.set_xlabel("x")
    for loss, color, style in (
        ("squared_error", VERMILLION, "-"),
        ("absolute_error", GREEN, (0, (5, 1.2))),
        ("huber", BLUE, "-"),
    ):
        name = f"{LOSS_TITLES[loss].lower() if loss != 'huber' else 'Huber'} loss"
        upper.plot(run.grid, run.fits[loss], color=color, linestyle=style, label=name)
    upper.set_title("Squared error follows the outliers; absolute error and Huber hardly do")
    low, median, high = run.fits["quantile"].T
    lower.fill_between(
        run.grid, low, high, color=BLUE, alpha=0.25, linewidth=0, label="quantiles 0.1 to 0.9"
    )
    lower.plot(run.grid, median, color=BLUE, label="quantile 0.5 (median)")
    lower.set_title("Quantile loss: a band with 80 % nominal coverage")
    for axes in (upper, lower):
        # Next to the axes, so that the legend hides no points.
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.suptitle("A noisy sine with outliers")
    return figure


def _points(axes: Any, run: CurveRun) -> None:
    clean = ~run.is_outlier
    axes.scatter(run.x[clean], run.y[clean], s=10, color=GRAY, label="training points")
    axes.scatter(
        run.x[run.is_outlier],
        run.y[run.is_outlier],
        s=26,
        marker="x",
        linewidth=1.2,
        color=PURPLE,
        label="outliers",
    )
    axes.plot(run.grid, run.truth, color=INK, linewidth=1.4, linestyle=":", label="true function")
