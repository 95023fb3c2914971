"""Kernel ridge regression with a learned metric: the kernel part of the automatic choice."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hilboost.backends import array_api
from hilboost.backends.random_bits import Purpose, key_of
from hilboost.backends.row_draws import draw_rows
from hilboost.backends.threads import ThreadTeam
from hilboost.core.base_model import Term
from hilboost.core.capabilities import Capabilities, SplitSettings
from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidParameter, unknown_name
from hilboost.core.fitted_term import FittedTerm
from hilboost.core.gradients import Gradients
from hilboost.core.learner import Learner
from hilboost.core.row_sample import RowSample
from hilboost.kernels import Kernel
from hilboost.learners.kernel_machine.expansion import KernelExpansion, kernel_with
from hilboost.learners.kernel_machine.feature_map import FeatureMap
from hilboost.learners.kernel_machine.inputs import encoded_features, learned_warps
from hilboost.learners.kernel_machine.metric_systems import NormalEquations, System
from hilboost.learners.kernel_machine.tuning.metric import KERNEL, Path, Problem, learned_metric
from hilboost.learners.kernel_machine.tuning.refined_metrics import refined_metrics
from hilboost.learners.kernel_machine.tuning.scoring import Rows

_MOST_FEATURES = 256
_ROTATED_PER_SEARCHED = 2.5  # rows of the search for a rotation, which has more to learn
_WORTH_WARPS = 0.95  # by which they must decrease the error
_ROWS_PER_SEARCHED = 2  # of a table whose other rows warps are learned from
_MOST_WARPED = 8000  # of these rows
_PARTS = 5  # of the rows; one of them compares ridges


@dataclass(frozen=True)
class MetricSpace:
    """Features whose scales contain the metric, the kernel of these, and the ridge."""

    features: FeatureMap
    ridge: float
    kernel: Kernel = KERNEL  # of the features
    path: Path | None = None  # of the search for the diagonal metric

    @property
    def is_additive(self) -> bool:
        """Whether the kernel is a sum of functions of few features."""
        return self.kernel is not KERNEL

    @property
    def kernel_name(self) -> str:
        """Short name of the kernel, and how it reads the columns."""
        if self.is_additive:
            return "additive"
        return "matern52" if self.features.rotation is None else "rotated matern52"

    def expansion(self, centers: NDArray[Any], weights: Floats) -> KernelExpansion:
        """Create an expansion in these centers."""
        return KernelExpansion(self.kernel, self.features, centers, weights, in_float64=True)

    def left_out(self, rows: Rows) -> Floats:
        """Compute the outputs (m, r) for each row by a fit to all others."""
        Z = self.features(rows.X)
        problem = Problem(Z, rows.Y, rows.weight)
        return rows.Y - problem.residuals(self.kernel.block(Z, Z), self.ridge, np.float64)[0]

    def longer(self, factor: float) -> MetricSpace:
        """Return the space with a longer length scale."""
        features = self.features
        return replace(self, features=features.scaled(np.full(features.width, 1 / factor)))


@dataclass(frozen=True)
class MetricKernelLearner(Learner):
    """Kernel ridge regression for any table, with a metric that is learned in about a second.

    The kernel is a Matérn-5/2 kernel of features that are bounded, so that outlying cells have a
    limited effect, and complete: missing cells are imputed by column means, with an indicator for
    each column that often has some, and category levels are replaced by their mean targets.  Warps
    of the features are kept if they lower the error by a twentieth.  The
    scales of the features come from the gradients of the fitted function on some hundred rows, or
    from the marginal likelihood where the function is smooth.  Where it predicts held-out rows
    clearly better, the kernel is the sum of functions of single features and of pairs of them
    (:class:`~hilboost.kernels.Additive`).

    The cost is O(n n_centers² + n_searched³).
    """

    # maximum number of training rows in the model.  With more rows, the coefficients are fitted to
    # all rows by least squares.
    n_centers: int = 3000
    n_searched: int = 600  # number of rows by which the metric is learned
    # tuple of (int, int): category columns and their numbers of levels
    categorical: tuple[tuple[int, int], ...] = ()
    # of the features of the training rows in the model
    precision: str = "float32"
    most_additive: int = 24  # maximum number of features of an additive kernel; 0 for none

    in_files: ClassVar[bool] = True
    name: ClassVar[str] = "metric_kernel"
    capabilities = Capabilities(
        base_model=KernelExpansion,
        takes_missing_values=True,
        takes_infinity=True,
        takes_categories=True,
        encodes_categories=True,
        in_checkpoints=True,
    )

    def __post_init__(self) -> None:
        """Reject sizes that are too small, and unknown precisions."""
        if self.precision not in ("float32", "float64"):
            raise unknown_name("precision", self.precision, ("float32", "float64"))
        for name in ("n_centers", "n_searched"):
            if getattr(self, name) < 1:
                raise InvalidParameter(f"{name} must be positive; got {getattr(self, name)!r}.")

    def for_table(self, splits: SplitSettings) -> MetricKernelLearner:
        """Return the learner for a table with these category columns."""
        return replace(self, categorical=splits.categorical)

    def prepare(self, X: Floats, weight: Floats | None, seed: int, n_threads: int) -> Floats:
        """Return the inputs unchanged: features depend on the rows of each stage."""
        return X

    def fit(
        self, data: Floats, gradients: Gradients, sample: RowSample, rng: np.random.Generator
    ) -> list[FittedTerm]:
        """Fit one expansion for all outputs to the negative gradients of the rows."""
        seed, team = int(rng.integers(2**31)), ThreadTeam()
        every = np.arange(len(data), dtype=np.uint32) if sample.rows is None else sample.rows
        rows = Rows.of(data, gradients.negative_gradient, sample.weight)
        with array_api.one_blas_thread():
            space = self.space(rows, every, None, seed, team)
            model = self.expansion(space, rows.part(every), seed, team)
        term = Term.of(model, slice(0, rows.Y.shape[1]))
        return [FittedTerm(term, outputs=model.predict_raw(data))]

    def space(
        self,
        table: Rows,
        rows: NDArray[np.uint32],  # (m,) uint32: the rows to learn from
        # (d,) float64 or None: how important the columns are to another learner
        priorities: Floats | None,
        seed: int,
        team: ThreadTeam,
        # of other rows: its search is repeated, and kernels like its own are tried
        like: MetricSpace | None = None,
    ) -> MetricSpace:
        """Learn the features and the metric from some of the rows."""
        learned = table.part(rows)
        features = encoded_features(learned.X, learned.Y, learned.weight, self.categorical)
        features = _screened(features, learned, priorities)
        key = key_of(seed, Purpose.ROWS_OF_METRIC)

        def drawn(size: int, seen: FeatureMap) -> Rows:
            part = table.part(draw_rows(key, rows, min(size, len(rows)), team))
            return replace(part, X=seen(part.X))

        if not features.width:
            return MetricSpace(features, 1.0)
        own = None if priorities is None else priorities[features.origins]
        path = None if like is None else like.path
        maps = [features]
        if (like is None or like.features.warps) and len(
            rows
        ) >= _ROWS_PER_SEARCHED * self.n_searched:
            others = np.setdiff1d(rows, draw_rows(key, rows, self.n_searched, team))
            others = draw_rows(key, others, min(_MOST_WARPED, len(others)), team)
            some = table.part(others)
            warps = learned_warps(replace(some, X=features(some.X)), range(features.width))
            maps.append(replace(features, warps=warps))
        if like is not None:
            maps = maps[-1:]
        metrics = [learned_metric(drawn(self.n_searched, one), own, team, path) for one in maps]
        is_better = metrics[-1].error < _WORTH_WARPS * metrics[0].error
        features, metric = (maps[-1], metrics[-1]) if is_better else (maps[0], metrics[0])
        rotates = like is None or like.features.rotation is not None
        most_additive = self.most_additive if like is None or like.is_additive else 0
        many = drawn(int(_ROTATED_PER_SEARCHED * self.n_searched), features)
        best = [metric, *refined_metrics(many, metric, most_additive, team, rotates)][-1]
        is_map = best.axes.ndim > 1
        features = replace(features, rotation=best.axes) if is_map else features.scaled(best.axes)
        return MetricSpace(features, best.ridge, kernel_with(best.shares), metric.path)

    def centers(self, rows: NDArray[np.uint32], seed: int, team: ThreadTeam) -> NDArray[np.uint32]:
        """Draw the centers from ``rows`` if there are more than the maximum."""
        if len(rows) <= self.n_centers:
            return rows
        return draw_rows(key_of(seed, Purpose.CENTERS), rows, self.n_centers, team)

    def expansion(
        self, space: MetricSpace, rows: Rows, seed: int, team: ThreadTeam
    ) -> KernelExpansion:
        """Fit an expansion in centers among the rows to all of them."""
        every = np.arange(len(rows), dtype=np.uint32)
        chosen = self.centers(every, seed, team)
        centers = space.features(rows.X[chosen], self.precision)
        if len(chosen) < len(rows):
            parts = [every[k::_PARTS] for k in range(_PARTS)]
            equations = NormalEquations.of(
                space.features, centers, rows, parts, team, space.kernel, space.ridge
            )
            weights = equations.solved(None, equations.better_ridge(space.ridge))
            return space.expansion(centers, weights)
        system = System.of(centers, rows, team, space.kernel)
        ridge = space.ridge
        if len(rows) > self.n_searched:
            ridge, _ = system.judged_by(every[::_PARTS]).better_ridge(ridge)
        return space.expansion(centers, system.solved(every, ridge))


def _screened(features: FeatureMap, rows: Rows, priorities: Floats | None) -> FeatureMap:
    """Keep the features that matter most, if there are too many."""
    if features.width <= _MOST_FEATURES:
        return features
    if priorities is not None and priorities.max(initial=0.0) > 0:
        order = priorities[features.origins]
    else:
        Z = features(rows.X)
        order = np.abs(Z.T @ (rows.Y - rows.Y.mean(axis=0))).max(axis=1)
    kept = np.zeros(features.width)
    kept[np.argsort(-order, kind="stable")[:_MOST_FEATURES]] = 1.0
    return features.scaled(kept)
