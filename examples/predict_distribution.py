"""Predict a distribution: the label is a sample, the prediction a quantile function.

The data are simulated.  At input x the distribution has two modes, which move apart as x grows, and
a growing spread.  Each of the 400 inputs has a sample of 20 to 60 numbers as its label.
``Distributions`` represents labels as quantile functions, whose distance is the Wasserstein-2
distance, and a kernel machine predicts the quantile function at any x.  The figure shows predicted
quantiles along x, and quantile functions and densities at three inputs, with the true ones.

Each sample has only about 40 numbers, so the share of each mode varies between samples.  An average
of such quantile functions puts some mass between the modes.  There the predicted median is
uncertain.

Run::

    python examples/predict_distribution.py

No data set is required.  Takes a few seconds.
"""

import numpy as np
from _shared import BLUE, GRAY, GREEN, INK, VERMILLION, plt, save
from scipy.stats import gaussian_kde, norm

from hilboost import OutputKernelBoostingRegressor
from hilboost.outputs import Distributions

INPUTS, COLORS = np.array([0.15, 0.5, 0.9]), (BLUE, GREEN, VERMILLION)
GRID, SMOOTHING = np.linspace(-5, 6, 4_401), 0.3


def modes(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the lower mode, the upper mode, and the standard deviation around each."""
    middle, apart = 2 * np.sin(3 * x), 4 * np.clip(x - 0.3, 0, None)
    return middle - apart, middle + apart, 0.25 + 0.6 * x


def density(x: np.ndarray, smoothing: float = 0.0) -> np.ndarray:
    """Return the true densities on the grid, (len(x), len(GRID)), smoothed by a Gaussian."""
    lower, upper, spread = (part[:, None] for part in modes(x))
    spread = np.hypot(spread, smoothing)
    return (norm.pdf(GRID, lower, spread) + norm.pdf(GRID, upper, spread)) / 2


def quantiles(x: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Return the true quantiles, (len(x), len(levels))."""
    total = np.cumsum(density(x), axis=1) * (GRID[1] - GRID[0])
    return np.array([np.interp(levels, row, GRID) for row in total])


def main() -> None:
    """Simulate samples, fit the model, and compare it with the true distributions."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, 400)
    samples = []
    for lower, upper, spread in zip(*modes(x), strict=True):
        size = rng.integers(20, 61)
        samples.append(rng.normal(rng.choice((lower, upper), size), spread))

    model = OutputKernelBoostingRegressor(Distributions(64), learner="kernel", random_state=0)
    model.fit(x[:, None], samples)
    levels = model.output_.levels
    along = np.linspace(0.01, 0.99, 99)
    gap = model.predict(along[:, None]) - quantiles(along, levels)
    print(
        f"Wasserstein-2 distance to the truth, mean over x: {np.sqrt((gap**2).mean(1)).mean():.3f}"
    )
    each = model.output_.encode(samples) * np.sqrt(64) - quantiles(x, levels)
    print(
        f"of the samples themselves:                        {np.sqrt((each**2).mean(1)).mean():.3f}"
    )
    draw(model, along, x, samples)


def draw(
    model: OutputKernelBoostingRegressor, along: np.ndarray, x: np.ndarray, samples: list
) -> None:
    """Draw three views of the predicted distributions; the truth is dashed."""
    figure, (left, center, right) = plt.subplots(1, 3, figsize=(10, 4.3), layout="constrained")
    levels = model.output_.levels
    for position, sample in zip(x, samples, strict=True):
        left.plot(np.full(len(sample), position), sample, ".", color=GRAY, ms=1.5, alpha=0.35)
    fan, shown = model.predict(along[:, None]), [3, 15, 31, 48, 60]
    true = quantiles(along, levels[shown])
    left.plot(along, fan[:, shown], color=BLUE, linewidth=2)
    left.plot(along, true, color=INK, linewidth=1.4, linestyle=(0, (4, 3)))
    left.set(title="Quantiles 5 … 95 %", xlabel="x", ylabel="y", ylim=(-4.5, 6))
    left.set_xlim(0, 1)

    steps = np.linspace(0.005, 0.995, 199)
    functions = model.predict(INPUTS[:, None])
    true = (quantiles(INPUTS, steps), density(INPUTS, SMOOTHING))
    for position, color, found, truth, height in zip(INPUTS, COLORS, functions, *true, strict=True):
        center.plot(levels, found, color=color, label=f"x = {position:g}")
        center.plot(steps, truth, color=INK, linewidth=1.4, linestyle=(0, (4, 3)))
        right.plot(GRID, gaussian_kde(found, SMOOTHING / found.std(ddof=1))(GRID), color=color)
        right.plot(GRID, height, color=INK, linewidth=1.4, linestyle=(0, (4, 3)))
    center.plot([], [], color=INK, linewidth=1.4, linestyle=(0, (4, 3)), label="true")
    center.set(title="Quantile functions", xlabel="probability", ylim=(-4.5, 6))
    center.legend(loc="upper left", handlelength=1.4)
    right.set(title="Densities, smoothed alike", xlabel="y", yticks=[], xlim=(-4.5, 6))
    figure.suptitle("Whole distributions predicted (simulated data)")
    save(figure, "predict_distribution")


if __name__ == "__main__":
    main()
