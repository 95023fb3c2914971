"""``hilboost demo``: fits, tables, and plots on data bundled with scikit-learn."""

import time
from pathlib import Path

import numpy as np
from rich.box import ROUNDED
from rich.console import Console
from rich.table import Table
from sklearn.metrics import mean_absolute_error, root_mean_squared_error

from hilboost.cli.demo_digits import DigitsRun, run_digits
from hilboost.cli.demo_plots import draw_all
from hilboost.cli.demo_regression import (
    LEVELS,
    RegressionData,
    RegressionRun,
    regression_data,
    run_curve,
    run_regression,
)
from hilboost.cli.demo_setup import DemoSize, Floats
from hilboost.cli.demo_spaces import SpacesRun, run_spaces
from hilboost.cli.errors import CliError
from hilboost.cli.progress import StageProgress
from hilboost.cli.warmup import FITS_OF_TABLES, warm_up

__all__ = ["run_demo"]

LOSS_NAMES = {
    "squared_error": "squared error",
    "absolute_error": "absolute error",
    "huber": "Huber",
    "quantile": "quantile 0.5",
}


def run_demo(folder: Path, *, quick: bool = False) -> list[Path]:
    """Run all fits, print the tables, and draw the plots.

    Parameters
    ----------
    folder : Path
        Output folder for the plots; created if it does not exist.
    quick : bool, default=False
        Use few rounds and few rows.

    Returns
    -------
    list of Path
        Paths of the plots.
    """
    if folder.exists() and not folder.is_dir():
        raise CliError(f"'{folder}' is a file; choose a folder for the plots.")
    folder.mkdir(parents=True, exist_ok=True)
    size = DemoSize.quick() if quick else DemoSize()
    start = time.perf_counter()
    with StageProgress("compiling", total=FITS_OF_TABLES + size.total_rounds) as progress:
        compiling = warm_up(progress, groups_and_times=False)
        digits = run_digits(size, progress)
        tables = [run_regression(data, size, progress) for data in regression_data(size)]
        curve = run_curve(size, progress)
        progress.describe("images and a kernel machine")
        spaces = run_spaces(size)
        progress.describe("drawing")
        pictures = draw_all(folder, digits, tables, curve, spaces)
    console = Console()
    _print_digits(console, digits)
    for run in tables:
        _print_regression(console, run)
    _print_spaces(console, spaces)
    # Plain print, so that long paths are not wrapped and can be copied.
    print("\nPlots:")
    for picture in pictures:
        print(f"  {picture}")
    seconds = time.perf_counter() - start
    print(f"\nFinished in {seconds:.0f} s, including {compiling:.1f} s for compilation.")
    return pictures


def _print_digits(console: Console, run: DigitsRun) -> None:
    table = Table(box=ROUNDED, header_style="bold")
    table.add_column("library")
    for name in ("accuracy", "log-loss", "fit (s)"):
        table.add_column(name, justify="right")
    for score in run.scores:
        table.add_row(
            score.library,
            f"{100 * score.accuracy:.1f} %",
            f"{score.log_loss:.4f}",
            f"{score.seconds:.2f}",
        )
    console.print("\n[bold]Handwritten digits: which of 10 digits do 8 x 8 pixels show?[/bold]")
    console.print(table)
    console.print(
        f"{run.n_train} training and {run.n_test} test rows, "
        f"{len(run.train_loss) - 1} rounds, one thread, same settings for both libraries.",
        style="dim",
        highlight=False,
    )


def _print_regression(console: Console, run: RegressionRun) -> None:
    table = Table(box=ROUNDED, header_style="bold")
    table.add_column("\nloss", no_wrap=True)
    for library in ("hilboost", "scikit-learn"):
        for name in (f"{library}\nMAE", "\nRMSE", "\nfit (s)"):
            table.add_column(name, justify="right")
    for fit in run.losses:
        table.add_row(
            LOSS_NAMES[fit.loss],
            *_errors(fit.ours, run.data.y_test),
            f"{fit.our_seconds:.2f}",
            *_errors(fit.theirs, run.data.y_test),
            f"{fit.their_seconds:.2f}",
        )
    data, quantiles = run.data, run.losses[-1]
    console.print(f"\n[bold]{data.name}: 5 % of the training targets are outliers[/bold]")
    console.print(table)
    nominal = 100 * (LEVELS[-1] - LEVELS[0])
    console.print(
        f"Interval from quantile 0.05 to 0.95, nominal coverage {nominal:.0f} %:\n"
        f"  hilboost     {_coverage(quantiles.ours, data)}\n"
        f"  scikit-learn {_coverage(quantiles.theirs, data)}",
        highlight=False,
    )
    console.print(
        f"{len(data.y_train)} training rows; errors on {len(data.y_test)} test rows without "
        f"outliers; {len(quantiles.train_loss) - 1} rounds, one thread. The time of quantile 0.5 "
        "includes all three levels. For scikit-learn, Huber uses GradientBoostingRegressor, and "
        "the other losses use HistGradientBoostingRegressor.",
        style="dim",
        highlight=False,
    )


def _print_spaces(console: Console, run: SpacesRun) -> None:
    console.print("\n[bold]Images as targets: lower halves of digits from the upper halves[/bold]")
    console.print(
        f"mean squared error {run.error:.4f}, of the mean image {run.baseline:.4f}; fitted in "
        f"{run.image_seconds:.1f} s",
        highlight=False,
    )
    console.print(f"\n[bold]A smooth function of 10 columns, {run.smooth_rows} rows[/bold]")
    for name, (score, seconds) in (("kernel machine", run.kernel), ("trees", run.trees)):
        console.print(f"{name:14}  R² {score:.3f}, fitted in {seconds:.1f} s", highlight=False)


def _errors(predicted: Floats, y_test: Floats) -> tuple[str, str]:
    # The quantile fit has one column per level, with the median in the middle.
    center = predicted[:, predicted.shape[1] // 2]
    mae = mean_absolute_error(y_test, center)
    return f"{mae:#.4g}", f"{root_mean_squared_error(y_test, center):#.4g}"


def _coverage(predicted: Floats, data: RegressionData) -> str:
    low, high = predicted[:, 0], predicted[:, -1]
    covered = np.mean((low <= data.y_test) & (data.y_test <= high))
    return f"covers {100 * covered:.1f} %, mean width {np.mean(high - low):.3g}"
