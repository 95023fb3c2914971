"""Histogram trees as a base learner."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from hilboost.core.base_model import Term
from hilboost.core.capabilities import Capabilities
from hilboost.core.dtypes import Floats
from hilboost.core.fitted_term import FittedTerm
from hilboost.core.gradients import Gradients
from hilboost.core.row_division import RowDivision
from hilboost.core.row_sample import RowSample
from hilboost.core.several_stages import FittedStages, StageRequest
from hilboost.core.splitting_learner import SplittingLearner
from hilboost.engine import (
    MonotonicOrder,
    RequestedStages,
    Tree,
    TreeData,
    TreeSettings,
    add_trees_on_bins,
    fit_stages,
    prepare_trees,
)
from hilboost.tables import BlockTable


class TreeRows(RowDivision):
    """Division of the bins of trees by rows."""

    def divided(self, data: TreeData, ranges: Sequence[slice]) -> list[TreeData]:
        """Copy the bins of each range, so that they are contiguous; threads are shared."""
        return data.divided(ranges)

    def joined(self, parts: Sequence[TreeData]) -> TreeData:
        """Put the bins of the parts together."""
        first, *others = parts
        return first.joined(others)

    def prepared_like(self, data: TreeData, X: Floats | BlockTable) -> TreeData:
        """Bin other rows by the same thresholds."""
        return data.of_rows(X)

    def add_outputs(
        self, data: TreeData, terms: Sequence[Term], raw: Floats, n_threads: int
    ) -> None:
        """Evaluate the trees on the bins."""
        add_trees_on_bins(data.table, terms, raw, n_threads)


@dataclass(frozen=True)
class TreeLearner(TreeSettings, SplittingLearner):
    """Learner of histogram trees, grown best first.

    Notes
    -----
    A split on a column with a direction is rejected if the values of its children are in the wrong
    order.  All values below an accepted split are bounded by the midpoint of its children.  If two
    rows differ only in this column, and neither value is missing, the row with the larger value
    therefore never has the lower output (direction 1).  A rule that sets other leaf values projects
    them onto the same order.

    References
    ----------
    Iosipoi and Vakhrushev, *SketchBoost*, 2022 (random projection).
    """

    in_files: ClassVar[bool] = True
    name: ClassVar[str] = "tree"
    capabilities = Capabilities(
        base_model=Tree,
        constant_on_leaves=True,
        takes_missing_values=True,
        takes_infinity=True,
        takes_missing_targets=True,
        takes_categories=True,
        takes_sparse=True,
        encodes_categories=True,
        reads_blocks=True,
        newton_steps=True,
        keeps_gradients=False,
        derives_hessian=True,
        resumable=True,
        row_division=TreeRows(),
        prepare_among_workers=prepare_trees,
    )

    @property
    def divides_levels(self) -> bool:
        """Whether splits on levels are supported; only in separate trees grown best first."""
        return not self.shared and not self.symmetric

    def counting(self, row: float) -> Self:
        """Return a learner whose constants are adapted to rows of this weight.

        ``min_samples_leaf`` and ``l2_regularization`` are sums of weights and remain unchanged.
        """
        if row == 1:
            return self
        return replace(
            self,
            min_hessian=self.min_hessian * row,
            level_smoothing=self.level_smoothing * row,
            min_samples_level=self.min_samples_level * row,
            level_l2=self.level_l2 * row,
        )

    def counting_targets(self) -> Self:
        """Return a learner that requires as much hessian as weight in each leaf."""
        return replace(self, min_hessian=max(self.min_hessian, float(self.min_samples_leaf)))

    def share_of_columns(self, d: int) -> float:
        """``max_features``."""
        return self.max_features

    def for_trial(self, max_features: float, l2_factor: float, max_leaf_nodes: int) -> Self:
        """Return the learner with other settings."""
        return replace(
            self,
            max_features=max_features,
            l2_regularization=self.l2_regularization * l2_factor,
            max_leaf_nodes=max_leaf_nodes,
        )

    def with_columns(
        self,
        categorical: tuple[tuple[int, int], ...],
        monotonic: tuple[int, ...],
        groups: tuple[tuple[int, ...], ...],
    ) -> Self:
        """Return the learner with other constraints and category columns."""
        return replace(self, categorical=categorical, monotonic=monotonic, groups=groups)

    def prepare(
        self, X: Floats | BlockTable, weight: Floats | None, seed: int, n_threads: int
    ) -> TreeData:
        """Bin the table."""
        return prepare_trees(self, X, weight, seed, n_threads)

    def for_members(
        self, data: TreeData, n_members: int, choose_penalty: Callable[..., float] | None
    ) -> list[TreeData]:
        """Return the same data, without what trees of one member leave to its next ones."""
        return [data, *(data.without_memory() for _ in range(n_members - 1))]

    def close(self, data: TreeData) -> None:
        """Stop the threads."""
        data.close()

    def fit(
        self,
        data: TreeData,
        gradients: Gradients,
        sample: RowSample,
        rng: np.random.Generator,
    ) -> list[FittedTerm]:
        """Fit one shared tree, or one tree for each output.

        Separate trees are grown in parallel, one per thread, if there are enough of them.
        """
        trees, leaf_of_row = fit_stages(self, data, gradients, sample, [lambda: rng])
        r = gradients.negative_gradient.shape[1]
        groups = [slice(0, r)] if self.shared else [slice(k, k + 1) for k in range(r)]
        return [
            FittedTerm(
                Term.of(tree, columns),
                leaves=leaves,
                order=MonotonicOrder.of(tree, self.monotonic) if self.monotonic else None,
                newton=True,
            )
            for tree, columns, leaves in zip(trees, groups, leaf_of_row, strict=True)
        ]

    def fit_stages(self, data: TreeData, request: StageRequest) -> FittedStages | None:
        """Fit stages in one call, if there is one tree for each output."""
        given = RequestedStages.of(self, data, request)
        if given is None:
            return None
        trees, _ = fit_stages(
            self, data, given.gradients, given.sample, given.generators, given.compiled
        )
        return given.fitted(trees)
