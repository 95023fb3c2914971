"""Histogram trees as a base learner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from hilboost.backends.threads import ThreadTeam
from hilboost.core.base_model import Stage, Term
from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidParameter
from hilboost.core.exchange import RowShare
from hilboost.core.fitted_term import FittedTerm
from hilboost.core.gradients import Gradients
from hilboost.core.row_division import AmongWorkers, RowDivision
from hilboost.core.row_sample import RowSample
from hilboost.core.splitting_learner import SplittingLearner
from hilboost.core.stage_series import FitsSeries, FittedSeries, StageSeries
from hilboost.learners.tree.binned_outputs import add_trees_on_bins
from hilboost.learners.tree.binning import bin_table
from hilboost.learners.tree.buffers import TreeData
from hilboost.learners.tree.category_columns import check_levels
from hilboost.learners.tree.fitting import fit_trees
from hilboost.learners.tree.next_root import NextRoot, rounded_stage
from hilboost.learners.tree.row_order import n_sorts_worthwhile
from hilboost.learners.tree.series import fit_series, takes_series
from hilboost.learners.tree.tree import Tree
from hilboost.tables import BlockTable, FileTable

_ROWS_WORTH_JOINING = 2**13
"""Fits to fewer rows need no code for groups of columns, and save little time by them."""


@dataclass(frozen=True)
class TreeLearner(SplittingLearner, RowDivision, AmongWorkers, FitsSeries):
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

    max_leaf_nodes: int = 31
    max_depth: int | None = None
    # minimum sum of weights (number of rows without weights) in a leaf
    min_samples_leaf: float = 20
    min_hessian: float = 1e-3  # minimum sum of hessians in a leaf, over its outputs
    l2_regularization: float = 0.0  # added to the hessian of a leaf, in its value and in the gain
    min_gain: float = 0.0  # minimum gain of a split
    # float in (0, 1]: fraction of the columns that are considered in a node, or in a tree
    max_features: float = 1.0
    # float in (0, 1]: fraction of the columns that are considered in a node, or in a tree
    max_features_per_tree: float = 1.0
    max_bins: int = 255
    # whether all nodes of a level are split on the same column at the same cut, instead of growth
    # best first.  The number of levels is the largest that ``max_leaf_nodes`` and ``max_depth``
    # permit.  Cannot be combined with ``monotonic``, ``groups`` or ``categorical``.
    symmetric: bool = False
    # whether to grow one tree with vector leaves for all outputs, or one tree for each output
    shared: bool = False
    # number of columns of a random projection of the gradients on which shared trees are grown;
    # leaf values use all outputs
    sketch: int | None = None
    # for every column 1 if outputs must not decrease in it, -1 if they must not increase, 0
    # otherwise; empty for no constraints.  Cannot be combined with ``sketch``.
    monotonic: tuple[int, ...] = ()
    # columns that may interact: all splits on a path from the root are in columns of one group.
    # Empty if all columns may interact.
    groups: tuple[tuple[int, ...], ...] = ()
    # sequence of (int, int): category columns and their numbers of levels, at most 255.  Such a
    # column contains codes 0, 1, …, NaN for missing values and, in prediction, -1 for unknown
    # levels.  Requires one tree for each output, and no direction in such columns.
    categorical: tuple[tuple[int, int], ...] = ()
    # levels are sorted by their Newton steps, each shrunk toward that of the node as if it had this
    # many additional rows
    level_smoothing: float = 10.0
    # levels with a smaller weight in a node are not distinguished there
    min_samples_level: float = 10.0
    level_l2: float = 1.0  # added to the hessian of both sides in the gain of a split on categories

    in_files: ClassVar[bool] = True
    name: ClassVar[str] = "tree"
    base_model: ClassVar[type[Tree]] = Tree
    constant_on_leaves: ClassVar[bool] = True
    takes_missing_values: ClassVar[bool] = True
    takes_infinity: ClassVar[bool] = True
    takes_missing_targets: ClassVar[bool] = True
    newton_steps: ClassVar[bool] = True
    resumable: ClassVar[bool] = True
    reads_blocks: ClassVar[bool] = True
    keeps_gradients: ClassVar[bool] = False
    derives_hessian: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Reject incompatible parameters."""
        if self.symmetric and (any(self.monotonic) or self.groups or self.categorical):
            raise InvalidParameter(
                "symmetric trees do not support monotonic columns, interaction groups or splits on "
                "categories; set growth='best_first', or encode the categories as numbers."
            )
        if not self.categorical:
            return
        if self.shared:
            raise InvalidParameter(
                "trees with vector leaves do not support splits on categories; set "
                "multi_output='separate', or encode the categories as numbers."
            )
        check_levels(self.categorical)
        for column, _ in self.categorical:
            if self.monotonic and self.monotonic[column] != 0:
                raise InvalidParameter(
                    f"monotonic is not supported for column {column}, because categories have no "
                    "order; set its direction to 0."
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

    @property
    def takes_categories(self) -> bool:
        """Category columns are supported, as codes."""
        return True

    @property
    def takes_sparse(self) -> bool:
        """Sparse tables are supported; binning and prediction process them in blocks."""
        return True

    def prepare(
        self, X: Floats | BlockTable, weight: Floats | None, seed: int, n_threads: int
    ) -> TreeData:
        """Bin the table."""
        team = ThreadTeam(n_threads)
        levels = dict(self.categorical)
        table = bin_table(X, weight, self.max_bins, seed, team, levels)
        # Trees with vector leaves have no use for groups, and trees of a table on disk no room.
        small = table.n_rows < _ROWS_WORTH_JOINING
        joins = not (self.shared or small or isinstance(X, FileTable))
        n_sorts = 0 if isinstance(X, FileTable) else n_sorts_worthwhile(table.words)
        next_root = None if self.symmetric or isinstance(X, FileTable) else NextRoot()
        rounds = not self.symmetric
        return TreeData(
            table,
            team,
            {},
            joins=joins,
            n_sorts=n_sorts,
            rounds=rounds,
            next_root=next_root,
            seed=seed,
        )

    def for_member(self, data: TreeData) -> TreeData:
        """Return the same data, whose rows stay in place: several members read them at a time."""
        data.n_sorts, data.rounds, data.next_root = 0, False, None
        return data

    def among_workers(self) -> AmongWorkers | None:
        """Return the learner itself; random projections round differently for other rows.

        Symmetric trees are grown by one worker only.
        """
        return self if self.sketch is None and not self.symmetric else None

    def prepared(
        self,
        X: Floats | BlockTable,
        weight: Floats | None,
        seed: int,
        n_threads: int,
        share: RowShare,
    ) -> TreeData:
        """Bin the rows that are here, by the quantiles of the rows of all workers."""
        team = ThreadTeam(n_threads)
        levels = dict(self.categorical)
        table = bin_table(X, weight, self.max_bins, seed, team, levels, share)
        return TreeData(table, team, {}, share, rounds=True, seed=seed)

    def row_division(self) -> RowDivision:
        """Return the learner itself."""
        return self

    def divided(self, data: TreeData, ranges: Sequence[slice]) -> list[TreeData]:
        """Copy the bins of each range, so that they are contiguous; threads are shared."""
        parts = [data.table.part(rows) for rows in ranges]
        apart = replace(data, joins=False, n_sorts=0, rounds=False, next_root=None)
        return [replace(apart, table=part) for part in parts]

    def joined(self, parts: Sequence[TreeData]) -> TreeData:
        """Put the bins of the parts together."""
        first, *others = (part.table for part in parts)
        return replace(parts[0], table=first.followed_by(others))

    def prepared_like(self, data: TreeData, X: Floats | BlockTable) -> TreeData:
        """Bin other rows by the same thresholds."""
        return TreeData(data.table.of_rows(X, data.team), data.team, {})

    def add_outputs(
        self, data: TreeData, terms: Sequence[Term], raw: Floats, n_threads: int
    ) -> None:
        """Evaluate the trees on the bins."""
        add_trees_on_bins(data.table, terms, raw, n_threads)

    def close(self, data: TreeData) -> None:
        """Stop the threads."""
        data.team.__exit__()

    def draws(self, data: TreeData, sample: RowSample) -> bool:
        """Return whether columns are drawn or gradients projected."""
        all_columns = self.max_features == 1 and self.max_features_per_tree == 1
        return not all_columns or self.sketch is not None

    def fit(
        self,
        data: TreeData,
        gradients: Gradients,
        sample: RowSample,
        rng: np.random.Generator | None,
    ) -> list[FittedTerm]:
        """Fit one shared tree, or one tree for each output.

        Separate trees are grown in parallel, one per thread, if there are enough of them.
        """
        r = gradients.negative_gradient.shape[1]
        seeds = [0] * (1 if self.shared else r)
        if rng is not None:
            seeds = rng.integers(2**62, size=len(seeds)).tolist()
        return fit_trees(self, data, gradients, sample, seeds)

    def in_series(self) -> FitsSeries:
        """Return the learner itself."""
        return self

    def takes_series(self, data: TreeData, series: StageSeries) -> bool:
        """Return whether there is one tree for each output, and nothing but all rows counts."""
        return takes_series(self, data, series)

    def fit_series(self, data: TreeData, series: StageSeries) -> FittedSeries:
        """Fit all stages on one thread."""
        return fit_series(self, data, series)

    def rounded(self, data: TreeData, stage: Stage, fitted: tuple[FittedTerm, ...]) -> Stage:
        """Return the stage with rounded leaf values, if the learner permits it."""
        if fitted[0].unit == 0:
            return stage
        return rounded_stage(stage, fitted, data.next_root)
