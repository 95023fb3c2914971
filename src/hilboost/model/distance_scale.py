"""Expected squared distances of labels from predicted points, estimated on calibration rows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from hilboost.core.dtypes import Floats

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
