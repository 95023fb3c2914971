"""Kernels and λ with the highest marginal likelihood on some rows, and their choice for few rows.

A few hundred rows do not determine a length scale for each of many columns.  Scales fitted by the
likelihood then fit the noise, and leave-one-out errors on the same rows hide it.  Here, the scales
are fitted without each third of the rows, and length scales of their own must predict that third
better than length scales that a prior keeps alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from hilboost.backends.threads import ThreadTeam
from hilboost.core.dtypes import Floats
from hilboost.kernels import Constant, Gaussian, Kernel
from hilboost.kernels.marginal_likelihood import (
    Effort,
    LogScalePrior,
    maximize,
    mean_squared_distance,
)
from hilboost.learners.kernel_machine.tuning.scoring import (
    Candidate,
    FoldKernels,
    Rows,
    by_error,
    mean_and_standard_error,
    predictions,
)
from hilboost.learners.kernel_machine.tuning.table_kernel import (
    MAIN_FAMILIES,
    USUAL_FAMILY,
    Columns,
    TableKernel,
)
from hilboost.reductions.row_splits import Split

ROWS_FIRST, ROWS_PER_SCALE = 300, 10
ROWS_OF_LIKELIHOOD = 1000
SMALLEST_LAMBDA = 1e-7
ROUGH = 1e-4  # tolerance: families are compared by rough length scales
_STARTS = (0.5, 1.5)  # length scales
START_NOISE = 0.1
_STEPS_FROM_A_START = 30
_STEPS_OF_A_MAP = 16
_SPREAD_OF_SCALES = 0.5  # of their logarithms; about the best of .5, 1 and ∞ on small mixed tables
FOLDS = 3
_FEWEST_ROWS = 12
_STEPS_OF_A_FOLD = 20
_CLEARLY = 2.0  # standard errors


def by_likelihood(given: Kernel | None, columns: Columns, sampled: Rows) -> Candidate[Kernel]:
    """All hyperparameters of SY2006's kernel (23), or of the given one, and λ as the noise."""
    rows = sampled.first(ROWS_OF_LIKELIHOOD)
    starts = [given] if given is not None else [_sun_yao(columns, scale) for scale in _STARTS]
    found = [maximize(kernel, START_NOISE, rows.X, rows.Y) for kernel in starts]
    best = min(found, key=lambda evidence: evidence.value)
    return Candidate(best.kernel, best.noise)


def _sun_yao(columns: Columns, scale: float) -> Kernel:
    """SY2006, eq. (23): a Gaussian kernel times a factor, plus a constant."""
    return 1.0 * columns.kernel("gaussian", scale).plain + Constant(0.1)


def by_mean_distance(sampled: Rows) -> Kernel:
    """``exp(-|x - x'|²/θ)`` with θ the mean squared distance (SY2006, section 4)."""
    theta = max(mean_squared_distance(sampled.X), 1e-12)
    return Gaussian(np.sqrt(theta / 2))


def starts_of(columns: Columns, family: str) -> list[Candidate[TableKernel]]:
    """Kernels of a family from which the search starts."""
    return [Candidate(columns.kernel(family, scale), START_NOISE) for scale in _STARTS]


def most_likely(
    starts: Sequence[Candidate[TableKernel]],
    rows: Rows,
    team: ThreadTeam,
    goes_on: Callable[[], bool] | None = None,
) -> Candidate[TableKernel]:
    """The most likely of the rough maxima that are found from some starts, or that so far."""
    effort = Effort(_STEPS_FROM_A_START, ROUGH, goes_on)
    found = team.map(lambda start: more_likely(start, rows, effort), starts)
    return min(found, key=by_error)


def most_likely_alike(start: Candidate[TableKernel], rows: Rows) -> Candidate[TableKernel]:
    """Rough length scales with a prior that keeps them alike."""
    prior = LogScalePrior(start.kernel.scale_groups, _SPREAD_OF_SCALES)
    return more_likely(start, rows, Effort(_STEPS_FROM_A_START, ROUGH), prior)


def more_likely(
    start: Candidate[TableKernel],
    rows: Rows,
    effort: Effort,
    prior: LogScalePrior | None = None,
) -> Candidate[TableKernel]:
    """The maximum on some rows, or the best so far when it ends.

    Its error is the negative log likelihood, which compares candidates on the same rows.
    """
    noise, effort = max(start.regularization, SMALLEST_LAMBDA), replace(effort, any_amplitude=True)
    weight = rows.weight if rows.weighs_noise else None
    found = maximize(start.kernel, noise, rows.X, rows.Y, effort, prior, weight)
    return Candidate(found.kernel, max(found.noise, SMALLEST_LAMBDA), found.value)


def most_likely_map(
    candidate: Candidate[TableKernel], rows: Rows, team: ThreadTeam
) -> Candidate[TableKernel]:
    """The most likely linear map in place of the length scales, from which it starts.

    A map has d² numbers, and later steps fit them to the noise, so there are only a few.  The
    columns are divided by their length scales, so that those that mattered little change little.
    """
    kernel = candidate.kernel
    assert kernel.numeric is not None
    numeric = list(kernel.columns.numeric)
    scales = np.ones(rows.X.shape[1])
    scales[numeric] = kernel.numeric.length_scale
    start = kernel.mapped(np.eye(len(numeric)))
    divided, effort = replace(rows, X=rows.X / scales), Effort(_STEPS_OF_A_MAP, team=team)
    found = more_likely(replace(candidate, kernel=start), divided, effort)
    mapped: Any = found.kernel.numeric
    matrix = mapped.matrix / scales[numeric][:, None]
    numbers = replace(mapped, matrix=matrix)
    return replace(found, kernel=replace(found.kernel, numeric=numbers))


_LAMBDAS = 4.0 ** np.arange(-9, 3)

Kernels = list[Candidate[TableKernel]]


@dataclass(frozen=True, eq=False)
class FoldErrors:
    """Errors of kernels on folds that their length scales were not fitted to."""

    kernels: tuple[TableKernel, ...]  # one for each fold
    # (l, n) float64: squared error of each row for each λ of an ascending grid; infinite if the
    # system has no solution
    errors: Floats
    predicted: Floats  # (l, n, r) float64
    held: Rows  # these rows, fold by fold

    @classmethod
    def of(
        cls,
        kernels: Sequence[TableKernel],  # one for each fold
        rows: Rows,
        splits: Sequence[Split],
        grid: Floats,  # (l,) float64
        team: ThreadTeam,
    ) -> Self:
        """Fit a machine without each fold, for every λ of the grid."""

        def of_fold(k: int) -> Floats:
            learned, held = splits[k]
            return predictions(kernels[k], rows.part(learned), rows.X[held], grid)

        predicted = np.concatenate(team.map(of_fold, range(len(splits))), axis=1)
        held = rows.part(np.concatenate([split.held for split in splits]))
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


@dataclass(frozen=True, eq=False)
class FewRows:
    """A comparison of length scales that are alike with scales of their own, by folds."""

    columns: Columns
    rows: Rows
    floor: float  # smallest λ
    team: ThreadTeam  # fits the folds in parallel

    @cached_property
    def _splits(self) -> tuple[Split, ...]:
        return tuple(self.rows.splits(FOLDS))

    @cached_property
    def _learned(self) -> tuple[Rows, ...]:
        return tuple(self.rows.part(split.learned) for split in self._splits)

    @cached_property
    def _grid(self) -> Floats:
        return np.unique(np.maximum(_LAMBDAS, self.floor))

    def compared(self) -> Candidate[TableKernel] | None:
        """The best kernel with alike length scales, or rough ones of its own if these are better.

        Scales of their own must be better by two standard errors on the first fold, which saves
        the others, or by one standard error on all folds.  Such a kernel is fitted to a part of
        the rows and has no folds.  ``None`` if nothing can be compared.
        """
        has_scales = bool(self.columns.kernel(USUAL_FAMILY, 1.0).scale_groups)
        if not has_scales or len(self.rows) < _FEWEST_ROWS:
            return None
        first = self._alike(USUAL_FAMILY, self._starts, range(1))
        free = self._free(first)
        if self._errors(first).exceeds(self._errors(free), _CLEARLY):
            return free[0]
        usual = [*first, *self._alike(USUAL_FAMILY, self._starts, range(1, len(self._splits)))]
        found = [
            usual
            if family == USUAL_FAMILY
            else self._alike(family, usual, range(len(self._splits)))
            for family in MAIN_FAMILIES
        ]
        errors = [self._errors(kernels) for kernels in found]
        k = int(np.argmin([each.error for each in errors]))
        free = self._free(found[k])
        return free[0] if errors[k].exceeds(self._errors(free)) else self._best(errors[k])

    def folds_of(self, family: str) -> FoldKernels:
        """Kernels with scales of their own, each fitted without one of the folds."""
        alike = self._alike(family, self._starts, range(len(self._splits)))
        return self._fold_kernels([each.kernel for each in self._free(alike)])

    @property
    def _starts(self) -> Kernels:
        """The usual kernel, once for each fold."""
        return [Candidate(self.columns.kernel(USUAL_FAMILY, 1.0), START_NOISE)] * FOLDS

    def _alike(self, family: str, starts: Kernels, folds: range) -> Kernels:
        """Kernels of a family with alike length scales for some folds."""

        def alike(k: int) -> Candidate[TableKernel]:
            start = replace(starts[k], kernel=starts[k].kernel.like(family))
            return most_likely_alike(start, self._learned[k])

        return self.team.map(alike, folds)

    def _free(self, alike: Kernels) -> Kernels:
        """Kernels with length scales of their own, starting from alike ones."""
        effort, rows = Effort(_STEPS_OF_A_FOLD), range(len(alike))
        return self.team.map(lambda k: more_likely(alike[k], self._learned[k], effort), rows)

    def _errors(self, found: Kernels) -> FoldErrors:
        kernels = [each.kernel for each in found]
        return FoldErrors.of(kernels, self.rows, self._splits[: len(found)], self._grid, self.team)

    def _best(self, errors: FoldErrors) -> Candidate[TableKernel]:
        """The kernel of all rows, with the largest λ that the folds do not speak against."""
        lam = float(self._grid[errors.cautious])
        return Candidate(
            most_likely_alike(Candidate(errors.kernels[0], lam), self.rows).kernel,
            lam,
            errors.error,
            errors.predicted[errors.cautious],
            errors.held.rows,
            self._fold_kernels(errors.kernels),
        )

    def _fold_kernels(self, kernels: Sequence[TableKernel]) -> FoldKernels:
        folds = tuple(self.rows.rows[split.held] for split in self._splits)
        return FoldKernels(folds, tuple(kernel.plain for kernel in kernels))
