"""``hilboost demo``: fits, tables, and plots on data bundled with scikit-learn."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from numpy.typing import NDArray
from rich.box import ROUNDED
from rich.console import Console
from rich.status import Status
from rich.table import Table
from sklearn.datasets import load_diabetes, load_digits, make_friedman1
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import log_loss, r2_score
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from hilboost import BoostingClassifier, BoostingRegressor, OutputKernelBoostingRegressor
from hilboost.cli.errors import CliError
from hilboost.cli.warmup import run_use, run_uses
from hilboost.persistence.atomic import atomic_path

COMPILED = "small digits", "small images", "small tables"
"""The ``USES`` that the demo needs; the first two share few functions and compile side by side."""

Floats = NDArray[np.float64]

_SEED, _COVERAGE = 0, 0.9
_OURS: dict[str, Any] = {"random_state": _SEED, "n_jobs": 1}
_N_TEST, _N_SHOWN = 200, 8  # images
# The Okabe-Ito palette, which is safe for color-blind readers.
_BLUE, _GREEN, _VERMILLION, _PURPLE = "#0072B2", "#009E73", "#D55E00", "#CC79A7"
_GRAY, _INK = "#B0B0B0", "#222222"
_STYLE: dict[str, Any] = {
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
    **dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color"), _INK),
}


@dataclass(frozen=True)
class DemoSize:
    """Numbers of rows and rounds."""

    digits_rows: int = 1797
    curve_rounds: int = 100
    friedman_rows: int = 1200
    image_rounds: int = 60
    image_rows: int = 800
    smooth_rows: int = 400


_QUICK = DemoSize(300, 30, 350, 5, 200, 200)
# Fits of a noisy sine: their losses, colors and line styles.
_LOSSES: dict[str, Any] = {
    "squared_error": {"color": _VERMILLION, "label": "squared error loss"},
    "absolute_error": {"color": _GREEN, "linestyle": (0, (5, 1.2)), "label": "absolute error loss"},
    "huber": {"color": _BLUE, "label": "Huber loss"},
}


def run_demo(folder: Path, *, quick: bool = False) -> None:
    """Run all fits, draw the plots into a folder, and print the tables."""
    if folder.exists() and not folder.is_dir():
        raise CliError(f"'{folder}' is a file; choose a folder for the plots.")
    folder.mkdir(parents=True, exist_ok=True)
    size = _QUICK if quick else DemoSize()
    start = time.perf_counter()
    with Console(stderr=True).status("compiling") as progress, rc_context(_STYLE):
        list(run_uses([name for name in COMPILED if run_use(name, check=True).n_compiled]))
        compiling = time.perf_counter() - start
        scores = _compare_defaults(size, progress)
        intervals, plot_of_intervals = _compare_intervals(size, progress)
        progress.update("images")
        images, plot_of_images = _complete_images(size)
        plots = {
            "images_completed.png": plot_of_images,
            "intervals.png": plot_of_intervals,
            "outliers.png": _fit_outliers(size, progress),
        }
        progress.update("drawing")
        for name, figure in plots.items():
            with atomic_path(folder / name) as temporary:
                figure.savefig(temporary, dpi=110)
    _print_tables(scores, intervals, images)
    # Plain print, so that long paths are not wrapped and can be copied.
    print("\nPlots:")
    for name in plots:
        print(f"  {folder / name}")
    seconds = time.perf_counter() - start
    print(f"\nFinished in {seconds:.0f} s, including {compiling:.1f} s for compilation.")


def _print_tables(scores: list[list[str]], intervals: list[list[str]], images: str) -> None:
    console = Console()
    console.print("\n[bold]Both libraries at their defaults, on one thread[/bold]")
    console.print(_table(["table", "library", "measure"], ["test rows", "fit (s)"], scores))
    console.print(
        "hilboost adds a kernel machine to the trees where held-out rows show a gain.", style="dim"
    )
    console.print(f"\n[bold]Intervals of {100 * _COVERAGE:.0f} %[/bold]")
    console.print(_table(["table", "intervals"], ["test rows inside", "mean width"], intervals))
    console.print("\n[bold]Images as targets: lower halves of digits from the upper halves[/bold]")
    console.print(images, highlight=False)


def _table(texts: list[str], numbers: list[str], rows: Sequence[Sequence[str]]) -> Table:
    """Make a table with columns of texts and of numbers."""
    table = Table(box=ROUNDED, header_style="bold")
    for name in texts:
        table.add_column(name)
    for name in numbers:
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(*row)
    return table


def _compare_defaults(size: DemoSize, progress: Status) -> list[list[str]]:
    """Fit digits and a smooth function with both libraries at their defaults."""
    pixels, digits = load_digits(return_X_y=True)
    n = size.digits_rows
    smooth = make_friedman1(2 * size.smooth_rows, noise=0.5, random_state=_SEED)
    classifiers = BoostingClassifier(**_OURS), HistGradientBoostingClassifier(random_state=_SEED)
    regressors = BoostingRegressor(**_OURS), HistGradientBoostingRegressor(random_state=_SEED)
    rows = []
    for table, measure, (X, y), models in (
        ("digits, 8 x 8 pixels", "log-loss", (pixels[:n], digits[:n]), classifiers),
        ("smooth function", "R²", smooth, regressors),
    ):
        X, X_test, y, y_test = train_test_split(X, y, random_state=_SEED)
        for library, model in zip(("hilboost", "scikit-learn"), models, strict=True):
            progress.update(f"{table}: {library}")
            start = time.perf_counter()
            fitted = _fitted(model, X, y)
            seconds = time.perf_counter() - start
            if measure == "R²":
                value = r2_score(y_test, fitted.predict(X_test))
            else:
                value = log_loss(y_test, fitted.predict_proba(X_test))
            rows.append([table, library, measure, f"{value:.4f}", f"{seconds:.2f}"])
    return rows


def _fitted(model: Any, X: object, y: object) -> Any:
    """Fit on one thread, like hilboost with ``n_jobs=1``.

    Data this small does not benefit from more threads.  On busy machines, more threads cost
    minutes, because OpenMP threads spin while they wait.
    """
    with threadpool_limits(limits=1):
        return model.fit(X, y)


def _compare_intervals(size: DemoSize, progress: Status) -> tuple[list[list[str]], Figure]:
    """Predict intervals of 90 %: calibrated ones, and quantiles of scikit-learn."""
    tables = {
        "diabetes": load_diabetes(return_X_y=True),
        "Friedman 1": make_friedman1(size.friedman_rows, noise=1.0, random_state=_SEED),
    }
    rows = []
    figure = Figure(figsize=(11, 3.8 * len(tables) + 0.6), layout="constrained")
    figure.suptitle("Intervals of 90 %")
    for (table, (X, y)), pair in zip(tables.items(), figure.subplots(2, 2), strict=True):
        progress.update(f"{table}: intervals")
        X, X_test, y, y_test = train_test_split(X, y, test_size=0.4, random_state=_SEED)
        levels = 0.5 - _COVERAGE / 2, 0.5 + _COVERAGE / 2
        others = (
            HistGradientBoostingRegressor(loss="quantile", quantile=level, random_state=_SEED)
            for level in levels
        )
        theirs = np.column_stack([_fitted(other, X, y).predict(X_test) for other in others])
        ours = BoostingRegressor(**_OURS).fit(X, y).predict_interval(X_test, _COVERAGE)
        for axes, library, how, ends in (
            (pair[0], "hilboost", "from one fit", ours),
            (pair[1], "scikit-learn", "two quantiles", theirs),
        ):
            coverage = 100 * np.mean((ends[:, 0] <= y_test) & (y_test <= ends[:, 1]))
            width = np.mean(ends[:, 1] - ends[:, 0])
            rows.append([table, f"{library}, {how}", f"{coverage:.1f} %", f"{width:.3g}"])
            axes.set_title(f"{table}, {library}: {coverage:.0f} % inside")
            _draw_intervals(axes, ends, y_test)
    return rows, figure


def _draw_intervals(axes: Any, ends: Floats, true: Floats) -> None:
    order = np.argsort(ends.mean(axis=1))
    low, high = ends[order].T
    true, rows = true[order], np.arange(len(order))
    inside = (low <= true) & (true <= high)
    axes.fill_between(rows, low, high, color=_BLUE, alpha=0.25, linewidth=0, step="mid")
    axes.scatter(rows[inside], true[inside], s=8, color=_GRAY)
    outside = {"s": 22, "marker": "x", "linewidth": 1.2, "color": _VERMILLION}
    axes.scatter(rows[~inside], true[~inside], **outside)
    axes.set_ylabel("target")
    axes.set_xlabel("test rows, in the order of the predictions")


def _complete_images(size: DemoSize) -> tuple[str, Figure]:
    """Complete lower halves of digits."""
    n = size.image_rows
    images = load_digits().images / 16
    upper, lower = images[:, :4], images[:, 4:]
    X = upper.reshape(len(images), -1)
    model = OutputKernelBoostingRegressor("gaussian", n_estimators=size.image_rounds, **_OURS)
    start = time.perf_counter()
    model.fit(X[:n], lower[:n])
    seconds = time.perf_counter() - start
    truth, completed = lower[n : n + _N_TEST], model.predict(X[n : n + _N_TEST])
    error = np.mean((completed - truth) ** 2)
    baseline = np.mean((lower[:n].mean(axis=0) - truth) ** 2)
    figure = Figure(figsize=(1.2 * _N_SHOWN + 1, 4), layout="constrained")
    figure.suptitle("Lower halves of digits, completed from the upper halves")
    halves = {"given": np.full_like(truth, 0.5), "completed": completed, "true": truth}
    for row, (name, below) in zip(figure.subplots(3, _N_SHOWN), halves.items(), strict=True):
        for k, axes in enumerate(row):
            axes.imshow(np.vstack([upper[n + k], below[k]]), cmap="gray_r", vmin=0, vmax=1)
            axes.set(xticks=[], yticks=[])
            axes.grid(False)
        row[0].set_ylabel(name)
    return (
        f"mean squared error {error:.4f}, of the mean image {baseline:.4f}; fitted in "
        f"{seconds:.1f} s",
        figure,
    )


def _noisy_sine() -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Draw the points, and tell which are outliers."""
    rng = np.random.default_rng(_SEED)
    x = np.sort(rng.uniform(0.0, 10.0, size=500))
    y = np.sin(x) + rng.normal(scale=0.25, size=len(x))
    # All outliers are on one side, because outliers on both sides would cancel out in the
    # squared-error fit. They are evenly spread, because the band would follow a dense cluster.
    is_outlier = np.zeros(len(x), dtype=bool)
    is_outlier[rng.permuted(np.arange(len(x)).reshape(-1, 20), axis=1)[:, 0]] = True
    y[is_outlier] += rng.uniform(2.5, 5.0, size=int(is_outlier.sum()))
    return x, y, is_outlier


def _fit_outliers(size: DemoSize, progress: Status) -> Figure:
    """Fit a noisy sine with outliers."""
    x, y, is_outlier = _noisy_sine()
    grid = np.linspace(0.0, 10.0, 500)

    def fitted(loss: str, **settings: Any) -> Any:
        settings |= {"max_leaf_nodes": 4, "min_samples_leaf": 30, "early_stopping": False, **_OURS}
        model = BoostingRegressor(loss, n_estimators=size.curve_rounds, **settings)
        progress.update(f"noisy sine: {loss}")
        model.fit(x[:, None], y)
        return model.predict(grid[:, None])

    figure = Figure(figsize=(11, 8.5), layout="constrained")
    figure.suptitle("A noisy sine with outliers")
    upper, lower = figure.subplots(2, 1, sharex=True, sharey=True)
    clean, crosses = ~is_outlier, {"s": 26, "marker": "x", "linewidth": 1.2, "color": _PURPLE}
    for axes in (upper, lower):
        axes.scatter(x[clean], y[clean], s=10, color=_GRAY, label="training points")
        axes.scatter(x[is_outlier], y[is_outlier], label="outliers", **crosses)
        axes.plot(grid, np.sin(grid), ":", color=_INK, linewidth=1.4, label="true function")
        axes.set_ylabel("y")
    lower.set_xlabel("x")
    for loss, style in _LOSSES.items():
        upper.plot(grid, fitted(loss), **style)
    upper.set_title("Squared error follows the outliers; absolute error and Huber hardly do")
    # Narrow enough to exclude the outliers, so that the band shows the noise only.
    low, median, high = fitted("quantile", quantile=(0.1, 0.5, 0.9)).T
    band = {"color": _BLUE, "alpha": 0.25, "linewidth": 0, "label": "quantiles 0.1 to 0.9"}
    lower.fill_between(grid, low, high, **band)
    lower.plot(grid, median, color=_BLUE, label="quantile 0.5 (median)")
    lower.set_title("Quantile loss: a band with 80 % nominal coverage")
    for axes in (upper, lower):
        # Next to the axes, so that the legend hides no points.
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure
