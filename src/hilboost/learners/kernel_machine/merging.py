"""Merging of rows for kernel machines that are equal but for rounding.

Such rows share a basis vector: two of them would make systems singular.  They have the same output,
so the quadratic model of their losses depends only on their weighted mean gradient and the sum of
their weights.  The losses themselves are evaluated on all rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.exact_sums import is_whole
from hilboost.core.dtypes import Floats, Ints
from hilboost.core.gradients import Gradients
from hilboost.reductions.rows import first_rows, row_ranks

_OFTEN, _FEW_DISTINCT = 10, 200


def repetitions(
    weight: Floats | None, row_weight: float, n_rows: int, distinct: DistinctRows | None
) -> Ints | None:
    """How often each row was observed, (n_rows,), if distinct rows do not tell the noise.

    ``None`` unless inputs were observed ten times on average, and with different targets if there
    are many inputs: then their smoothness tells the noise.  Weights are rounded to whole rows of
    ``row_weight`` so that their sums remain.
    """
    n_distinct = n_rows if distinct is None else len(distinct.first)
    if distinct is None and n_distinct > _FEW_DISTINCT:
        return None
    counts = np.ones(n_rows, np.int64)
    if weight is not None:
        if row_weight == 1 and not is_whole(weight):
            return None
        counts = np.diff(np.rint(np.cumsum(weight / row_weight)), prepend=0.0).astype(np.int64)
    return counts if counts.sum() >= _OFTEN * n_distinct else None


def draw_observations(counts: Ints, size: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Draw rows in random order, without replacement from rows that were observed so often."""
    ends = np.cumsum(counts)
    total = int(ends[-1])
    drawn = rng.choice(total, min(size, total), replace=False)
    return np.searchsorted(ends, drawn, side="right")


@dataclass(frozen=True, eq=False)
class DistinctRows:
    """Grouping of the rows of a table by equality but for rounding."""

    first: Ints  # (m,) int64: first occurrence of each distinct row, ascending
    group: Ints  # (n,) int64: for each row, the number of its distinct row
    weight: Floats  # (n,) float64: sample weights of all rows

    @classmethod
    def of(cls, X: Floats, weight: Floats | None) -> DistinctRows | None:
        """Group rows that are equal but for rounding; ``None`` if all are distinct."""
        rank = row_ranks(X, exactly=False)
        m = int(rank.max(initial=-1)) + 1
        if m == len(X):
            return None
        by_rank = first_rows(rank, m)
        first = np.sort(by_rank)
        number = np.empty(m, dtype=np.int64)
        number[rank[first]] = np.arange(m)
        return cls(first, number[rank], np.ones(len(X)) if weight is None else weight)

    def sums(self, values: Floats) -> Floats:
        """Sum values (n, …) over equal rows, (m, …)."""
        if values.ndim == 1:
            total = np.bincount(self.group, values, minlength=len(self.first))
            return total.astype(np.float64)
        return np.column_stack([self.sums(column) for column in values.T])

    def means(self, values: Floats, weight: Floats) -> Floats:
        """Average values (n, r) over equal rows with weights, (m, r); 0 if the weights are zero."""
        total = self.sums(weight)[:, None]
        return np.divide(
            self.sums(weight[:, None] * values),
            total,
            out=np.zeros((len(self.first), values.shape[1])),
            where=total > 0,
        )

    def merged(self, gradients: Gradients, weight: Floats | None) -> tuple[Gradients, Floats]:
        """Return the mean gradients and total weights of the distinct rows, for weights (n,)."""
        weight = np.ones(len(self.group)) if weight is None else weight
        hessian = gradients.hessian
        return (
            Gradients(
                self.means(gradients.negative_gradient, weight),
                None if hessian is None else self.means(hessian, weight),
                gradients.structure,
            ),
            self.sums(weight),
        )

    def members(self, distinct: Ints) -> tuple[Ints, Ints]:
        """Find all rows that are equal to one of some different distinct rows (k,).

        Returns the rows (l,), and for each of them, the index of its distinct row.
        """
        place = np.full(len(self.first), -1)
        place[distinct] = np.arange(len(distinct))
        rows = np.flatnonzero(place[self.group] >= 0)
        return rows, place[self.group[rows]]

    def scatter(self, residual: Floats, weight: Floats) -> float:
        """Weighted sum of squared deviations of residuals (n, r) from the means of equal rows."""
        spread = residual - self.means(residual, weight)[self.group]
        return float((weight[:, None] * spread * spread).sum())
