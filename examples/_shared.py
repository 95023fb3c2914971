"""Shared by the examples: location of the data, style of the figures, saving."""

from __future__ import annotations

import os
from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # draw to files, with or without a display

import numpy as np
from matplotlib import pyplot as plt

ROOT = Path(__file__).resolve().parent.parent

# The palette of Okabe and Ito, which is safe for color-blind readers.
BLUE, ORANGE, GREEN, VERMILLION, PURPLE = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7"
GRAY, INK = "#9A9A9A", "#222222"

plt.rcParams.update(
    {
        "figure.dpi": 120,
        "font.size": 13,
        "axes.titlesize": 14,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": "#666666",
        "axes.axisbelow": True,
        "axes.grid": True,
        "grid.color": "#E6E6E6",
        "legend.frameon": False,
        "lines.linewidth": 2.4,
        "text.color": INK,
        "axes.labelcolor": INK,
        "xtick.color": INK,
        "ytick.color": INK,
    }
)


def data(name: str) -> dict[str, np.ndarray]:
    """Load the arrays of a data set from ``$HILBOOST_DATA``, or from ``../shared/data``.

    Parameters
    ----------
    name : str
        Name of the file without ``.npz``.
    """
    named = os.environ.get("HILBOOST_DATA")
    path = (Path(named) if named else ROOT.parent / "shared" / "data") / f"{name}.npz"
    if not path.is_file():
        raise SystemExit(f"{path} is not there: set HILBOOST_DATA to the folder with {name}.npz.")
    with np.load(path, allow_pickle=False) as file:
        return {key: file[key] for key in file.files}


def save(figure: plt.Figure, name: str) -> None:
    """Save a figure in ``docs/images`` and print its path and size.

    Parameters
    ----------
    figure : Figure
        Ten inches wide, which gives 1,200 pixels.
    name : str
        Name of the file without ``.png``.
    """
    path = ROOT / "docs" / "images" / f"{name}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, pil_kwargs={"optimize": True})
    plt.close(figure)
    print(f"{path.relative_to(ROOT)} written, {path.stat().st_size / 1000:.0f} kB")


def picture_rows(
    rows: dict[str, np.ndarray], upper: np.ndarray, shape: tuple[int, int], title: str
) -> plt.Figure:
    """Draw rows of images that share their upper halves; the lower halves are tinted.

    Parameters
    ----------
    rows : mapping of str to (c, p) array
        Lower halves in [0, 1] by name of the row; 0 is black.
    upper : (c, p) array
        Upper halves.
    shape : (int, int)
        Shape of a whole image.
    title : str
        Title of the figure.
    """
    n_columns = len(upper)
    side, left = 8.4 / n_columns, 1.6
    size = (10.0, len(rows) * side * shape[0] / shape[1] + 0.42)
    figure, axes = plt.subplots(len(rows), n_columns, figsize=size, squeeze=False)
    figure.subplots_adjust(left / 10, 0.01, 0.995, 1 - 0.4 / size[1], wspace=0.06, hspace=0.06)
    tint = np.array([0.84, 0.94, 1.0])
    for line, (name, lower) in zip(axes, rows.items(), strict=True):
        for axis, above, below in zip(line, upper, lower, strict=True):
            whole = np.concatenate([above, below]).reshape(shape).clip(0, 1)
            colors = np.repeat(whole[:, :, None], 3, axis=2)
            colors[shape[0] // 2 :] *= tint
            axis.imshow(colors, vmin=0, vmax=1, interpolation="nearest")
            axis.set_axis_off()
        line[0].text(
            -0.15, 0.5, name, ha="right", va="center", fontsize=13, transform=line[0].transAxes
        )
    figure.suptitle(title, x=left / 10 + 0.42, y=1 - 0.1 / size[1], va="top", fontsize=15)
    return figure
