"""Errors of kernels on rows that their length scales were not fitted to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from hilboost.backends import array_api
from hilboost.backends.threads import ThreadTeam
from hilboost.core.dtypes import Floats, Ints
from hilboost.kernels import Kernel
from hilboost.kernels.gram import evaluate
from hilboost.learners.kernel_machine.tuning.scoring import Sampled
from hilboost.learners.kernel_machine.tuning.table_kernel import TableKernel


@dataclass(frozen=True, eq=False)
class FoldErrors:
    """Errors of kernels on folds that their length scales were not fitted to."""

    kernels: tuple[TableKernel, ...]  # one for each fold
    # (l, n) float64: squared error of each row for each λ of an ascending grid; infinite if the
    # system has no solution
    errors: Floats
    predicted: Floats  # (l, n, r) float64
    held: Sampled  # these rows, fold by fold

    @classmethod
    def of(
        cls,
        kernels: Sequence[TableKernel],  # one for each fold
        rows: Sampled,
        # sequence of (m,) int64: positions of the rows of each fold
        places: Sequence[Ints],
        grid: Floats,  # (l,) float64
        team: ThreadTeam,
    ) -> Self:
        """Fit a machine without each fold, for every λ of the grid."""

        def of_fold(k: int) -> Floats:
            return predictions(kernels[k], rows.without(places[k]), rows.X[places[k]], grid)

        predicted = np.concatenate(team.map(of_fold, range(len(places))), axis=1)
        held = rows.part(np.concatenate(places))
        errors = ((predicted - held.Y) ** 2).sum(axis=2)
        errors = np.where(np.isfinite(errors), errors, np.inf)
        return cls(tuple(kernels), errors, predicted, held)

    @property
    def error(self) -> float:
        """Mean error with the best λ."""
        return float(np.average(self.errors[self.best], weights=self.held.weight))

    @property
    def best(self) -> int:
        """Position of the best λ in the grid."""
        return int(np.argmin(np.average(self.errors, axis=1, weights=self.held.weight)))

    @property
    def cautious(self) -> int:
        """Position of the largest λ that is worse than the best by at most a standard error."""
        for k in range(len(self.errors) - 1, self.best, -1):
            mean, error = self._excess(k, self)
            if mean <= error:
                return k
        return self.best

    def exceeds(self, other: FoldErrors, n_errors: float = 1.0) -> bool:
        """Whether the errors exceed another's errors by more than some standard errors."""
        mean, error = self._excess(self.best, other)
        return mean > n_errors * error

    def _excess(self, k: int, other: FoldErrors) -> tuple[float, float]:
        """Mean difference to the best errors of another, and its standard error."""
        with np.errstate(invalid="ignore"):  # neither kernel has a solution
            excess = self.errors[k] - other.errors[other.best]
            return mean_and_standard_error(excess, self.held.weight)


def predictions(kernel: Kernel, learn: Sampled, X: Floats, grid: Floats) -> Floats:
    """Predictions (l, m, r) of some rows for every λ of a grid; NaN without a solution."""
    K, K_held = evaluate(kernel, learn.X, learn.X), evaluate(kernel, X, learn.X)
    found = np.full((len(grid), len(X), learn.Y.shape[1]), np.nan)
    for predicted, lam in zip(found, grid, strict=True):
        try:
            factor = array_api.cholesky(array_api.add_to_diagonal(K.copy(), lam / learn.weight))
        except ArithmeticError:
            continue
        predicted[...] = K_held @ array_api.solve_cholesky(factor, learn.Y.copy())
    return found


def mean_and_standard_error(values: Floats, weight: Floats | None) -> tuple[float, float]:
    """Mean of some values (n,) with sample weights (n,), and its standard error."""
    share = np.full(len(values), 1.0) if weight is None else weight
    share = share / share.sum()
    mean = float(share @ values)
    return mean, float(np.sqrt((share**2) @ (values - mean) ** 2))
