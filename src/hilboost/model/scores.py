"""Scores of labels: how badly they agree with predictions, and expected distances."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from hilboost.core.dtypes import Floats
from hilboost.core.errors import DataWarning, IncompatibleParts, warn_caller
from hilboost.core.loss import Loss
from hilboost.core.target import Target

_CELLS_AT_ONCE = 2**22
_MOST_COMPARED = 1000
_FACTORS = 2.0 ** np.arange(-8, 3)
_SHRINKAGE = 0.1
_LEAST = 1e-6  # of the mean squared distance


@dataclass(frozen=True)
class DistanceScale:
    """Kernel regression of squared distances on the predicted points.

    The estimate is ``s²(x) = Σ_i k_i d_i² / Σ_i k_i`` with ``k_i = w_i k(F(x), F(x_i))``, where one
    more row with ``k = 0.1`` and the mean of ``d²`` counts, so that it tends to the mean far from
    all rows.  The points suffice where ``F`` is the mean of the embedded label: then
    ``E|φ(y) - F(x)|² = E k(y, y) - |F(x)|²``.
    """

    # (n, r) float64: predicted points ``F(x_i)`` of the calibration rows
    points: Floats = field(repr=False)
    # (n,) float64: squared distances ``d_i² = |φ(y_i) - F(x_i)|²``
    squares: Floats = field(repr=False)
    weight: Floats = field(repr=False)  # (n,) float64: the number of rows that each row counts as
    width: float  # length scale of the Gaussian kernel ``k``; infinite for a constant

    @classmethod
    def of(cls, points: Floats, squares: Floats, weight: Floats | None) -> DistanceScale:
        """Choose the width with the smallest leave-one-out loss ``log s² + d² / s²``.

        The cost is O(n² r); widths are compared on at most 1,000 rows.
        """
        points, squares, weight = _distinct(points, squares, weight)
        rows = np.unique(np.linspace(0, len(points) - 1, _MOST_COMPARED).astype(np.int64))
        some = cls(points[rows], squares[rows], weight[rows], np.inf)
        apart = _squared_distances(some.points, some.points)
        typical = float(np.median(apart))
        best, width = some._loss_left_out(apart), np.inf
        if typical > 0:
            for factor in _FACTORS:
                tried = replace(some, width=float(np.sqrt(factor * typical)))
                loss = tried._loss_left_out(apart)
                if loss < best:
                    best, width = loss, tried.width
        return cls(points, squares, weight, width)

    @property
    def mean(self) -> float:
        """Mean of all squared distances."""
        return float(np.average(self.squares, weights=self.weight))

    def __call__(self, points: Floats) -> Floats:
        """Estimate the squared distance (m,) at predicted points (m, r), in O(m n r)."""
        found = np.empty(len(points))
        size = max(1, _CELLS_AT_ONCE // len(self.points))
        for begin in range(0, len(points), size):
            some = slice(begin, begin + size)
            found[some] = self._smoothed(_squared_distances(points[some], self.points))
        return found

    def _smoothed(self, apart: Floats, left_out: bool = False) -> Floats:
        """Weighted means of the squares, from squared distances between points (m, n)."""
        mean = self.mean
        kernel = np.exp(apart * (-0.5 / self.width**2)) * self.weight
        if left_out:
            np.fill_diagonal(kernel, 0.0)
        found = (kernel @ self.squares + _SHRINKAGE * mean) / (kernel.sum(axis=1) + _SHRINKAGE)
        return np.maximum(found, max(_LEAST * mean, np.finfo(np.float64).tiny))

    def _loss_left_out(self, apart: Floats) -> float:
        found = self._smoothed(apart, left_out=True)
        return float(np.average(np.log(found) + self.squares / found, weights=self.weight))


def _distinct(
    points: Floats, squares: Floats, weight: Floats | None
) -> tuple[Floats, Floats, Floats]:
    """Merge equal rows, and sort the others, so that repetition and order have no effect."""
    mass = np.ones(len(points)) if weight is None else weight
    rows, number = np.unique(np.column_stack([points, squares]), axis=0, return_inverse=True)
    total = np.bincount(number.ravel(), mass).astype(np.float64)
    return np.ascontiguousarray(rows[:, :-1]), rows[:, -1].copy(), total


def _squared_distances(A: Floats, B: Floats) -> Floats:
    """Squared distances (m, n) between the rows of A (m, r) and B (n, r)."""
    apart = A @ (-2 * B.T)
    apart += np.einsum("ij,ij->i", A, A)[:, None]
    apart += np.einsum("ij,ij->i", B, B)
    return np.maximum(apart, 0.0, out=apart)


_TINY = np.finfo(np.float64).tiny
_FAR = 0.15  # from the coverage, for the difference of two quantile levels


def levels_of(loss: Loss) -> tuple[float, ...]:
    """Quantile levels that the loss predicts, if it predicts several; else none."""
    levels = () if loss.link is None else loss.link.levels
    return levels if len(levels) > 1 else ()


def n_columns(loss: Loss, n_targets: int) -> int:
    """Number of intervals that are calibrated: pairs of quantile levels, or targets."""
    levels = levels_of(loss)
    return len(levels) // 2 if levels else n_targets


def interval_ends(loss: Loss, raw: Floats, n_targets: int) -> tuple[Floats, Floats]:
    """Compute lower and upper ends of intervals (n, k) before calibration.

    With several quantile levels, these are the lowest and the highest, the second lowest and the
    second highest and so on.  Otherwise the prediction of each target, twice.
    """
    predicted = np.asarray(loss.inverse_link(raw), dtype=np.float64)
    levels = levels_of(loss)
    if levels:
        order = np.argsort(levels)
        half = len(levels) // 2
        return predicted[:, order[:half]], predicted[:, order[::-1][:half]]
    if predicted.shape != (len(raw), n_targets):
        raise IncompatibleParts(
            f"{type(loss).__name__}.inverse_link returned an array of shape {predicted.shape} for "
            f"{len(raw)} rows with {n_targets} targets, so that there is nothing to put an "
            "interval around; return one number per target, or declare the quantile levels of "
            "the link."
        )
    return predicted, predicted


def warn_of_one_level(loss: Loss, coverage: float) -> None:
    """Warn of symmetric intervals around a single quantile that is not the median."""
    levels = () if loss.link is None else loss.link.levels
    if len(levels) == 1 and levels[0] != 0.5:
        outer = (1 - coverage) / 2
        warn_caller(
            f"intervals around the quantile {levels[0]:.3g} alone reach equally far above and "
            "below it, so that they are wider than necessary; fit with the levels "
            f"{outer:.3g} and {1 - outer:.3g} instead.",
            DataWarning,
        )


def nearest_pair(loss: Loss, coverage: float) -> int:
    """Return the number of the pair of quantile levels whose difference is nearest to coverage.

    A pair far from it warns: moved by one number, its quantiles cover too much of some rows and too
    little of others.
    """
    levels = np.sort(levels_of(loss))
    half = len(levels) // 2
    differences = levels[::-1][:half] - levels[:half]
    pair = int(np.argmin(np.abs(differences - coverage)))
    if abs(differences[pair] - coverage) > _FAR:
        outer = (1 - coverage) / 2
        warn_caller(
            f"intervals that cover {coverage:.3g} start from the quantiles {levels[pair]:.3g} and "
            f"{levels[::-1][pair]:.3g}, which are meant to cover {differences[pair]:.3g}: they "
            "cover enough rows in total, but too few of some kinds. Fit with the levels "
            f"{outer:.3g} and {1 - outer:.3g} as well.",
            DataWarning,
        )
    return pair


def interval_scores(y: Floats, lower: Floats, upper: Floats, scale: Floats | None = None) -> Floats:
    """Compute how far targets (n, c) lie outside: ``max(lower - y, y - upper) / scale``.

    Negative inside of the interval (conformalized quantile regression of Romano, Patterson & Candès
    2019).  If both ends are the prediction ``f``, this is ``|y - f| / scale``.  The scale is the
    unit of each row, such as the standard deviation of its target.
    """
    outside = np.maximum(lower - y, y - upper)
    return outside if scale is None else outside / positive_scale(scale)[:, None]


def positive_scale(scale: Floats) -> Floats:
    """Replace zeros, which cannot be divided by, by the smallest positive number."""
    return np.maximum(scale, _TINY)


def class_scores(loss: Loss, raw: Floats, n_classes: int) -> Floats:
    """Compute the scores of all classes, (n, n_classes).

    The score is the sum of the probabilities of all classes that are more probable (adaptive
    prediction sets of Romano, Sesia & Candès 2020, with the random number ``u = 0``).  Without
    probabilities, it is the difference to the highest score.  The most probable class has score 0.
    """
    values = np.asarray(loss.inverse_link(raw), dtype=np.float64)
    if values.shape != (len(raw), n_classes):
        raise IncompatibleParts(
            f"{type(loss).__name__}.inverse_link returned an array of shape {values.shape} for "
            f"{len(raw)} rows and {n_classes} classes; return one probability per class."
        )
    if loss.link is not None and not loss.link.gives_probabilities:
        return values.max(axis=1, keepdims=True) - values
    order = np.argsort(-values, axis=1, kind="stable")
    descending = np.take_along_axis(values, order, axis=1)
    before = np.zeros_like(descending)
    np.cumsum(descending[:, :-1], axis=1, out=before[:, 1:])
    # Equally probable classes share the score of the first of them.
    first = np.ones(descending.shape, dtype=bool)
    first[:, 1:] = descending[:, 1:] < descending[:, :-1]
    before = np.maximum.accumulate(np.where(first, before, 0.0), axis=1)
    scores = np.empty_like(before)
    np.put_along_axis(scores, order, before, axis=1)
    return scores


def explained(loss: Loss, target: Target, raw: Floats) -> float:
    """Compute D²: the part of the loss of the best constant that predictions remove.

    If no constant has a loss, 1 for predictions without loss and 0 for others.
    """
    constant = np.broadcast_to(loss.initial_raw(target), raw.shape)
    of_model = float(np.average(loss.value(target, raw), weights=target.weight))
    of_constant = float(np.average(loss.value(target, constant), weights=target.weight))
    if of_constant == 0:
        return float(of_model == 0)
    return 1 - of_model / of_constant
