"""Kernel ridge regression with a learned metric: the kernel part of the automatic choice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hilboost.backends import array_api
from hilboost.backends.random_bits import Purpose, key_of
from hilboost.backends.row_draws import draw_rows
from hilboost.backends.threads import ThreadTeam
from hilboost.core.base_model import Term
from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidParameter, unknown_name
from hilboost.core.fitted_term import FittedTerm
from hilboost.core.gradients import Gradients
from hilboost.core.learner import Learner
from hilboost.core.row_sample import RowSample
from hilboost.kernels.gram import Gram
from hilboost.learners.metric_kernel.features import Features
from hilboost.learners.metric_kernel.metric import SMALLEST_RIDGE, learned_metric
from hilboost.learners.metric_kernel.model import KERNEL, MetricExpansion

_MOST_FEATURES = 256
_SMALLER_RIDGES = (0.3, 0.1)
_BETTER = 0.998  # a smaller ridge must decrease the error by this factor
_APART = 5  # one of these parts of the centers compares ridges


@dataclass(frozen=True)
class Rows:
    """The rows of a table with targets and weights.

    Attributes
    ----------
    X : (n, d) float64
    target : (n, r) float64
    weight : (n,) float64 or None
    """

    X: Floats
    target: Floats
    weight: Floats | None = None

    def some(self, rows: Any) -> Rows:
        """Return some of the rows."""
        weight = None if self.weight is None else self.weight[rows]
        return Rows(self.X[rows], self.target[rows], weight)

    def __len__(self) -> int:
        return len(self.X)


@dataclass(frozen=True)
class Space:
    """Features whose scales contain the metric, and the ridge found with it."""

    features: Features
    ridge: float


@dataclass(frozen=True)
class System:
    """The kernel values between centers, and their targets and weights.

    Attributes
    ----------
    K : (m, m) float64
    target : (m, r) float64
    weight : (m,) float64
    """

    K: NDArray[Any]
    target: Floats
    weight: Floats

    @classmethod
    def of(cls, centers: NDArray[Any], rows: Rows, team: ThreadTeam) -> System:
        """Evaluate the kernel values in float64: small ridges need them."""
        Z = centers.astype(np.float64)
        K = Gram(KERNEL, Z, Z, memory=np.inf, team=team).whole()
        return cls(K, rows.target, np.ones(len(Z)) if rows.weight is None else rows.weight)

    @property
    def spread(self) -> float:
        """Root mean squared target, of all columns."""
        return float(np.sqrt((self.target**2).mean()))

    def solved(self, rows: NDArray[Any], ridge: float) -> tuple[Floats, Floats]:
        """Return weights (m, r), zero except for ``rows``, and the mean target (r,) of these."""
        mean = np.average(self.target[rows], axis=0, weights=self.weight[rows])
        A = array_api.add_to_diagonal(self.K[np.ix_(rows, rows)], ridge / self.weight[rows])
        factor = array_api.cholesky(A, jitter=1e-12)
        weights = np.zeros_like(self.target)
        weights[rows] = array_api.solve_cholesky(factor, self.target[rows] - mean)
        return weights, mean

    def better_ridge(self, rows: NDArray[Any], ridge: float) -> float:
        """Compare the ridge with smaller ones on a fifth of ``rows``; more rows need less."""
        held = rows[::_APART]
        learned = np.setdiff1d(rows, held, assume_unique=True)
        best, lowest = ridge, np.inf
        for factor in (1.0, *_SMALLER_RIDGES):
            if ridge * factor < SMALLEST_RIDGE:
                break
            weights, mean = self.solved(learned, ridge * factor)
            residual = self.target[held] - mean - self.K[held] @ weights
            error = float(np.average((residual**2).sum(axis=1), weights=self.weight[held]))
            if error > lowest * _BETTER:
                break
            best, lowest = ridge * factor, error
        return best


@dataclass(frozen=True)
class MetricKernelLearner(Learner):
    """Kernel ridge regression for any table, with a metric that is learned in about a second.

    The kernel is a Matérn-5/2 kernel of features that are bounded, so that outlying cells have a
    limited effect, and complete: missing cells are imputed by column means, with an indicator for
    each column that often has some, and category levels are replaced by their mean targets.  The
    scales of the features come from the gradients of the fitted function on some hundred rows
    (:func:`~hilboost.learners.metric_kernel.metric.learned_metric`).

    Parameters
    ----------
    n_centers : int
        Maximum number of training rows.
    n_searched : int
        Number of rows by which the metric is learned.
    categorical : tuple of (int, int)
        Category columns and their numbers of levels.
    precision : {"float32", "float64"}
        Of the kernel values in predictions; float32 becomes float64 where rounding errors would be
        visible.

    Notes
    -----
    The cost is O(n_centers³ + n_searched³), whatever the number of rows.
    """

    n_centers: int = 4500
    n_searched: int = 600
    categorical: tuple[tuple[int, int], ...] = ()
    precision: str = "float32"

    in_files: ClassVar[bool] = True
    name: ClassVar[str] = "metric_kernel"
    base_model: ClassVar[type[MetricExpansion]] = MetricExpansion
    takes_missing_values: ClassVar[bool] = True
    encodes_categories: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Reject sizes that are too small, and unknown precisions."""
        if self.precision not in ("float32", "float64"):
            raise unknown_name("precision", self.precision, ("float32", "float64"))
        for name in ("n_centers", "n_searched"):
            if getattr(self, name) < 1:
                raise InvalidParameter(f"{name} must be positive; got {getattr(self, name)!r}.")

    @property
    def in_checkpoints(self) -> bool:
        """Whether files support the learner; they do."""
        return True

    @property
    def takes_categories(self) -> bool:
        """Category columns are supported, as codes."""
        return True

    def seeing_categories(self, columns: Sequence[tuple[int, int]]) -> MetricKernelLearner:
        """Return the learner for a table with these columns of codes."""
        return replace(self, categorical=tuple(columns))

    def prepare(self, X: Floats, weight: Floats | None, seed: int, n_threads: int) -> Floats:
        """Return the inputs unchanged: features depend on the rows of each stage."""
        return X

    def fit(
        self, data: Floats, gradients: Gradients, sample: RowSample, rng: np.random.Generator
    ) -> list[FittedTerm]:
        """Fit one expansion for all outputs to the negative gradients of the rows."""
        seed, team = int(rng.integers(2**31)), ThreadTeam()
        every = np.arange(len(data), dtype=np.uint32) if sample.rows is None else sample.rows
        rows = Rows(data, gradients.negative_gradient, sample.weight)
        with array_api.blas_threads(1):
            space = self.space(rows, every, None, seed, team)
            chosen = self.centers(every, seed, team)
            centers = space.features(data[chosen], self.precision)
            system = System.of(centers, rows.some(chosen), team)
            inside = np.arange(len(chosen))
            ridge = self.ridge(system, inside, space)
            weights, _ = system.solved(inside, ridge)
        model = MetricExpansion.of(space.features, centers, weights, system.spread)
        term = Term.of(model, slice(0, rows.target.shape[1]))
        return [FittedTerm(term, outputs=model.predict_raw(data))]

    def space(
        self,
        table: Rows,
        rows: NDArray[np.uint32],
        priorities: Floats | None,
        seed: int,
        team: ThreadTeam,
    ) -> Space:
        """Learn the features and the metric from some of the rows.

        Parameters
        ----------
        table : Rows
        rows : (m,) uint32
            The rows to learn from.
        priorities : (d,) float64 or None
            How important the columns are to another learner.
        seed : int
        team : ThreadTeam
        """
        learned = table.some(rows)
        features = Features.of(learned.X, learned.target, learned.weight, self.categorical)
        features = _screened(features, learned, priorities)
        key = key_of(seed, Purpose.ROWS_OF_METRIC)
        part = table.some(draw_rows(key, rows, min(self.n_searched, len(rows)), team))
        Z = features(part.X)
        if not Z.shape[1]:
            return Space(features, 1.0)
        own = None if priorities is None else priorities[features.origins]
        metric = learned_metric(Z, part.target, part.weight, own)
        return Space(features.scaled(metric.scales), metric.ridge)

    def centers(self, rows: NDArray[np.uint32], seed: int, team: ThreadTeam) -> NDArray[np.uint32]:
        """Draw the centers from ``rows`` if there are more than the maximum."""
        if len(rows) <= self.n_centers:
            return rows
        return draw_rows(key_of(seed, Purpose.CENTERS), rows, self.n_centers, team)

    def ridge(self, system: System, rows: NDArray[Any], space: Space) -> float:
        """Choose the ridge for these centers, if they are more than the rows of the search."""
        if len(rows) <= self.n_searched:
            return space.ridge
        return system.better_ridge(rows, space.ridge)


def _screened(features: Features, rows: Rows, priorities: Floats | None) -> Features:
    """Keep the features that matter most, if there are too many."""
    if features.width <= _MOST_FEATURES:
        return features
    if priorities is not None and priorities.max(initial=0.0) > 0:
        order = priorities[features.origins]
    else:
        Z = features(rows.X)
        order = np.abs(Z.T @ (rows.target - rows.target.mean(axis=0))).max(axis=1)
    kept = np.zeros(features.width)
    kept[np.argsort(-order, kind="stable")[:_MOST_FEATURES]] = 1.0
    return features.scaled(kept)
