"""Histogram trees as a base learner."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from hilboost.core.base_model import Term
from hilboost.core.capabilities import Capabilities, RowDivision, SplitSettings
from hilboost.core.dtypes import Floats
from hilboost.core.fitted_term import FittedTerm
from hilboost.core.gradients import Gradients
from hilboost.core.learner import Learner
from hilboost.core.row_sample import RowSample
from hilboost.core.several_stages import FittedStages, StageRequest
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
from hilboost.tables.blocks import BlockTable


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


def split_settings(trees: TreeSettings) -> SplitSettings:
    """Return the settings that depend on the table."""
    return SplitSettings(
        categorical=trees.categorical,
        monotonic=trees.monotonic,
        groups=trees.groups,
        min_samples_leaf=trees.min_samples_leaf,
        min_hessian=trees.min_hessian,
        splits_levels=not trees.shared and not trees.symmetric,
    )


@dataclass(frozen=True)
class TreeLearner(TreeSettings, Learner):
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
        on_threads=TreeData.on_threads,
        splits=split_settings,
    )

    def for_table(self, splits: SplitSettings) -> Self:
        """Return the learner with these constraints and category columns."""
        return replace(
            self,
            categorical=splits.categorical,
            monotonic=splits.monotonic,
            groups=splits.groups,
            min_hessian=splits.min_hessian,
        )

    def prepare(
        self, X: Floats | BlockTable, weight: Floats | None, seed: int, n_threads: int
    ) -> TreeData:
        """Bin the table."""
        return prepare_trees(self, X, weight, seed, n_threads)

    def for_members(
        self,
        data: TreeData,
        n_members: int,
        choose_penalty: Callable[..., tuple[float, float]] | None,
    ) -> list[TreeData]:
        """Return the same data, without what trees of one member leave to its next ones."""
        return [data, *(data.without_memory() for _ in range(n_members - 1))]

    def close(self, data: TreeData) -> None:
        """Stop the threads."""
        data.close()

    def fit(
        self, data: TreeData, gradients: Gradients, sample: RowSample, rng: np.random.Generator
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
