"""Draw the picture of the home page: ``python docs/tools/home_picture.py``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.image import imread, imsave
from sklearn.datasets import load_digits

from hilboost import BoostingClassifier, BoostingRegressor, OutputKernelBoostingRegressor

PICTURE = Path(__file__).parent.parent / "images" / "home.png"
PARTS = ("bands", "classes", "images")  # side by side, on a phone below each other
WIDTHS = (1.1, 1.1, 1.0)
BLUE, ORANGE, GREEN, GRAY = "#2460c8", "#c0560a", "#18794e", "#8a8f98"
N_POINTS, N_TRAIN, N_SHOWN = 2000, 1500, 5


def draw_bands(ax: Any) -> None:
    """Three quantiles of one model, on data with outliers."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0, 6, size=N_POINTS))
    y = np.sin(2 * x) + 0.25 * x + rng.normal(scale=0.12 + 0.12 * x)
    outliers = rng.choice(N_POINTS, 40, replace=False)
    y[outliers] += rng.choice([-1, 1], size=40) * rng.uniform(2, 4, size=40)
    model = BoostingRegressor("quantile", quantile=[0.1, 0.5, 0.9], random_state=0)
    low, median, high = model.fit(x[:, None], y).predict(x[:, None]).T
    ax.scatter(x, y, s=2, color=GRAY, linewidths=0)
    ax.fill_between(x, low, high, color=BLUE, alpha=0.2, linewidth=0)
    ax.plot(x, median, color=BLUE, linewidth=1.8)
    ax.set(title="Quantiles that never cross", xlabel="x", ylabel="y")


def draw_classes(ax: Any) -> None:
    """Probabilities of one image, stage by stage."""
    X, y = load_digits(return_X_y=True)
    model = BoostingClassifier(n_estimators=60, early_stopping=False, random_state=0)
    model.fit(X[:N_TRAIN], y[:N_TRAIN])
    margin = np.sort(model.predict_proba(X[N_TRAIN:]), axis=1)
    right = model.predict(X[N_TRAIN:]) == y[N_TRAIN:]
    row = N_TRAIN + int(np.argmin(np.where(right, margin[:, -1] - margin[:, -2], 1)))
    stages = np.array([p[0] for p in model.staged_predict_proba(X[[row]])])
    for k, color in zip(np.argsort(-stages[-1])[:3], (BLUE, ORANGE, GREEN), strict=True):
        ax.plot(np.arange(1, len(stages) + 1), stages[:, k], color=color, label=f"“{k}”")
    ax.legend(frameon=False, loc="upper left")
    ax.set_ylim(0, 0.8)
    ax.set(title="Class probabilities, stage by stage", xlabel="stage", ylabel="probability")
    inset = ax.inset_axes((0.72, 0.66, 0.24, 0.34))
    inset.imshow(X[row].reshape(8, 8), cmap="gray_r", interpolation="nearest")
    inset.set(xticks=[], yticks=[])


def draw_images(axes: Any) -> None:
    """Lower halves of digits, completed from the upper halves."""
    images = load_digits().images / 16
    upper, lower = images[:, :4].reshape(len(images), -1), images[:, 4:]
    model = OutputKernelBoostingRegressor("gaussian", n_estimators=150, random_state=0)
    model.fit(upper[:N_TRAIN], lower[:N_TRAIN])
    shown = slice(N_TRAIN, N_TRAIN + N_SHOWN)
    completed = model.predict(upper[shown])
    nothing = np.full_like(lower[shown], 0.5)
    parts = {"given": nothing, "completed": completed, "true": lower[shown]}
    for row, (name, below) in zip(axes, parts.items(), strict=True):
        for ax, top, bottom in zip(row, images[shown, :4], below, strict=True):
            ax.imshow(np.vstack([top, bottom]), cmap="gray_r", vmin=0, vmax=1)
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set_visible(False)
        row[0].set_ylabel(name)


def main() -> None:
    """Draw the three parts side by side."""
    figure = Figure(figsize=(13, 3.9), dpi=110, layout="constrained")
    first, second, third = figure.subfigures(1, 3, width_ratios=WIDTHS)
    for part, draw in ((first, draw_bands), (second, draw_classes)):
        ax = part.subplots()
        draw(ax)
        ax.spines[["top", "right"]].set_visible(False)
    third.suptitle("Images as targets")
    draw_images(third.subplots(3, N_SHOWN))
    figure.savefig(PICTURE)
    divide()


def divide() -> None:
    """Save each part of the picture as a file of its own."""
    pixels = imread(PICTURE)
    ends = np.cumsum((0.0, *WIDTHS)) / sum(WIDTHS) * pixels.shape[1]
    for name, begin, end in zip(PARTS, ends[:-1], ends[1:], strict=True):
        path = PICTURE.with_name(f"home_{name}.png")
        imsave(path, np.ascontiguousarray(pixels[:, round(begin) : round(end)]))


if __name__ == "__main__":
    main()
