"""``hilboost demo``: fits, tables, and plots on data bundled with scikit-learn."""

import time
from collections.abc import Sequence
from pathlib import Path

from rich.box import ROUNDED
from rich.console import Console
from rich.table import Table

from hilboost.cli.demo_models import (
    COVERAGE,
    DemoSize,
    Intervals,
    Score,
    SpacesRun,
    run_curve,
    run_defaults,
    run_intervals,
    run_spaces,
)
from hilboost.cli.demo_plots import draw_all
from hilboost.cli.errors import CliError
from hilboost.cli.progress import StageProgress
from hilboost.cli.warmup import FITS_OF_TABLES, warm_up


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
    with StageProgress("compiling", total=FITS_OF_TABLES + size.total_rounds) as progress:
        compiling = warm_up(progress, groups_and_times=False)
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
