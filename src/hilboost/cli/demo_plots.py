"""Plots of ``hilboost demo``."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from hilboost.persistence.atomic import atomic_path

if TYPE_CHECKING:
    from hilboost.cli.demo_digits import DigitsRun
    from hilboost.cli.demo_regression import CurveRun, RegressionRun
    from hilboost.cli.demo_spaces import SpacesRun

__all__ = ["draw_all"]

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
    folder: Path,
    digits: "DigitsRun",
    tables: Sequence["RegressionRun"],
    curve: "CurveRun",
    spaces: "SpacesRun",
) -> list[Path]:
    """Draw all plots of the demo.

    Parameters
    ----------
    folder : Path
        Output folder.
    digits : DigitsRun
        The fit of the handwritten digits.
    tables : sequence of RegressionRun
        The fits of the regression data sets.
    curve : CurveRun
        The fits of the noisy sine.
    spaces : SpacesRun
        The completed images.

    Returns
    -------
    list of Path
        Paths of the plots.
    """
    pictures: dict[str, Callable[[], Figure]] = {
        "digits_learning_curve.png": lambda: _digits_curve(digits),
        "digits_probabilities.png": lambda: _probabilities(digits),
        "regression_learning_curves.png": lambda: _regression_curves(tables),
        "outliers.png": lambda: _outliers(curve),
        "images_completed.png": lambda: _completed(spaces),
    }
    paths = []
    with rc_context(STYLE):
        for name, draw in pictures.items():
            path = folder / name
            with atomic_path(path) as temporary:
                draw().savefig(temporary, dpi=110)
            paths.append(path)
    return paths


def _completed(run: "SpacesRun") -> Figure:
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


def _digits_curve(run: "DigitsRun") -> Figure:
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot()
    _two_curves(axes, run.train_loss, run.held_out_loss)
    axes.set_yscale("log")
    axes.set_title("Handwritten digits: log-loss after each boosting round")
    axes.set_xlabel("boosting round")
    axes.set_ylabel("log-loss [nats per digit], log scale")
    axes.legend()
    return figure


def _two_curves(axes: Any, train: Any, held_out: Any) -> None:
    # Entry 0 of a history is the loss of the initial constant.
    rounds = np.arange(len(train))
    # Dashes as well as color, for grayscale prints.
    axes.plot(rounds, train, color=BLUE, label="training rows")
    axes.plot(rounds, held_out, color=VERMILLION, linestyle=(0, (5, 1.5)), label="held-out rows")
    axes.set_xlim(left=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))


def _probabilities(run: "DigitsRun") -> Figure:
    n_tiles = len(run.rounds) + 1
    columns = min(5, n_tiles)
    n_rows = -(-n_tiles // columns)
    figure = Figure(figsize=(2.5 * columns, 2.7 * n_rows + 0.5), layout="constrained")
    tiles = figure.subplots(n_rows, columns, squeeze=False).ravel()
    for number, proba in enumerate(run.probabilities):
        axes = tiles[number]
        _bars(axes, proba, run.true_class)
        stage = run.rounds[number]
        name = "round 0 (class frequencies)" if stage == 0 else f"round {stage}"
        axes.set_title(f"{name}\np({run.true_class}) = {100 * proba[run.true_class]:.0f} %")
        if number % columns == 0:
            axes.set_ylabel("predicted probability")
        else:
            axes.tick_params(labelleft=False)
        if number + columns >= n_tiles - 1:
            axes.set_xlabel("class (digit)")
    _digit_tile(tiles[n_tiles - 1], run)
    for axes in tiles[n_tiles:]:
        axes.set_visible(False)
    figure.suptitle(
        "A test digit that is difficult at first: class probabilities by boosting round"
    )
    return figure


def _bars(axes: Any, proba: Any, true_class: int) -> None:
    colors = [VERMILLION if label == true_class else BLUE for label in range(len(proba))]
    axes.bar(range(len(proba)), proba, color=colors, width=0.8)
    axes.set_ylim(0, 1)
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1.0])
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, symbol=" %"))
    axes.set_xticks(range(len(proba)))
    axes.grid(visible=False, axis="x")
    # Do not rely on color alone: the label of the true class is also bold.
    true_label = axes.get_xticklabels()[true_class]
    true_label.set(color=VERMILLION, fontweight="bold")


def _digit_tile(axes: Any, run: "DigitsRun") -> None:
    axes.imshow(run.image, cmap="gray_r", interpolation="nearest")
    axes.set_title(f"the digit\ntrue class {run.true_class}", color=VERMILLION)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(True)


def _regression_curves(tables: Sequence["RegressionRun"]) -> Figure:
    n_losses = len(tables[0].losses)
    figure = Figure(figsize=(3.3 * n_losses, 3.2 * len(tables) + 0.9), layout="constrained")
    grid = figure.subplots(len(tables), n_losses, squeeze=False)
    for row, run in zip(grid, tables, strict=True):
        for axes, fit in zip(row, run.losses, strict=True):
            _two_curves(axes, fit.train_loss, fit.held_out_loss)
            axes.set_ylim(bottom=0)
            axes.set_title(f"{run.data.name}\n{LOSS_TITLES[fit.loss]}")
            axes.set_ylabel(_loss_label(run.data.name, fit.loss))
    for axes in grid[-1]:
        axes.set_xlabel("boosting round")
    figure.suptitle("Loss after each round (5 % outliers in training rows, none in held-out rows)")
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return figure


def _loss_label(table: str, loss: str) -> str:
    if table != "Diabetes":
        return "mean loss"
    # The target of the diabetes data is a disease progression score.
    return "mean loss [score²]" if loss in ("squared_error", "huber") else "mean loss [score]"


def _outliers(run: "CurveRun") -> Figure:
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


def _points(axes: Any, run: "CurveRun") -> None:
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
