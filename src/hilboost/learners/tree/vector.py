"""Trees with vector leaves for many outputs, grown by exact squared error (OK3 of G2007)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.sync import ABORT, SYNC_SIZE, Threads
from hilboost.backends.threads import ThreadTeam
from hilboost.backends.trees.category_splits import SET_WORDS, CategorySplits
from hilboost.backends.trees.nodes import N_NODES, empty_nodes, open_root
from hilboost.backends.trees.partition import RowBuffers, n_spare
from hilboost.backends.trees.vector_candidates import (
    ValueRanges,
    empty_candidates,
    empty_ranges,
    value_ranges,
)
from hilboost.backends.trees.vector_cuts import ALMOST, VectorGradients
from hilboost.backends.trees.vector_grow import grow_vector
from hilboost.backends.trees.vector_levels import LevelScratch, empty_levels
from hilboost.backends.trees.vector_state import (
    VectorGrowth,
    VectorLimits,
    VectorScratch,
    empty_sums,
)
from hilboost.core import dtypes
from hilboost.core.base_model import Term
from hilboost.core.dtypes import Floats
from hilboost.core.exchange import RowShare
from hilboost.core.fitted_term import FittedTerm
from hilboost.core.gradients import Gradients
from hilboost.core.row_division import AmongWorkers
from hilboost.core.row_sample import RowSample
from hilboost.core.splitting_learner import SplittingLearner
from hilboost.learners.tree.binning import BinnedTable, bin_table
from hilboost.learners.tree.category_columns import check_levels, marked_columns
from hilboost.learners.tree.leaves import leaf_gradients, leaf_of_rows, newton_steps, tree_of
from hilboost.learners.tree.tree import Tree
from hilboost.learners.tree.vector_workers import grow_among_workers
from hilboost.reductions.sums import added, count

_TIE = 1e-10
_PURE = 1e-12
_UNLIMITED = 2**31


@dataclass
class VectorTreeData:
    """A binned table, the values in its bins, and the threads of a fit."""

    X: Floats  # (n, d)
    table: BinnedTable
    ranges: ValueRanges
    team: ThreadTeam
    share: RowShare | None = None  # which rows these are, if other workers have the others


@dataclass(frozen=True)
class VectorTreeLearner(SplittingLearner, AmongWorkers):
    """Learner of one tree per stage for all outputs, with squared error on the negative gradients.

    If the outputs are points in the feature space of an output kernel, these are output kernel
    trees (OK3) or, with random cuts, output kernel extra-trees (OK3-et).

    Notes
    -----
    A split on categories sends a subset of the levels to the left child.  Missing values are a
    level.  With random cuts, the subset is drawn: each one except the empty and the whole set of
    the levels of the node has the same probability.  Otherwise, it is the best of all subsets if
    the node has at most ten levels.  With more levels, these are sorted along the first principal
    component of their mean gradients, and it is the best cut of this order.  For one output this
    is also the best of all subsets (Fisher 1958).  Levels without rows in the node, and unknown
    ones, go to the child with the larger weight.

    Cost O(n d r log J) per stage for J splits.  With ``max_features``, ``d`` is that fraction of
    the columns; with ``sketch``, its columns replace the ``r`` outputs, plus O(n r) for the leaves.
    The hessian is not used.  A category column with ``l`` levels costs O(l² r) more per node.
    """

    in_files: ClassVar[bool] = True
    name: ClassVar[str] = "vector_tree"
    base_model: ClassVar[type[Tree]] = Tree
    layout: ClassVar[Literal["F", "C"]] = "C"
    constant_on_leaves: ClassVar[bool] = True
    takes_missing_values: ClassVar[bool] = True
    resumable: ClassVar[bool] = True

    # maximum number of splits; the node with the largest total variance is split first.  ``None``
    # grows until the leaves are pure or cannot be split further.
    max_splits: int | None = 20
    max_depth: int | None = None
    # minimum sum of weights (number of rows without weights) in a leaf.  A sum that misses
    # it by a millionth, as rounded sums may, is enough.
    min_samples_leaf: float = 1
    # float in (0, 1], or "sqrt": fraction of the columns that are considered in a node.  With
    # random cuts, columns that are constant in the node are not considered.
    max_features: float | str = 1.0
    # whether to draw one cut for each column, uniformly between its minimum and maximum in the node
    # (Geurts, Ernst and Wehenkel 2006), instead of searching for the best one
    random_cuts: bool = False
    # number of columns of a random projection of the gradients on which trees are grown; leaf
    # values use all outputs (Iosipoi and Vakhrushev 2022)
    sketch: int | None = None
    max_bins: int = 255  # columns with more distinct values are cut only between quantiles
    # sequence of (int, int): category columns and their numbers of levels, at most 255.  Such a
    # column contains codes 0, 1, …, NaN for missing values and, in prediction, -1 for unknown
    # levels.
    categorical: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        """Reject columns with too many levels."""
        check_levels(self.categorical)

    @property
    def takes_categories(self) -> bool:
        """Category columns are supported, as codes."""
        return True

    def counting(self, row: float) -> Self:
        """Return the learner itself: it has no constants in numbers of rows."""
        return self

    def counting_targets(self) -> Self:
        """Return the learner itself: it does not support missing targets."""
        return self

    def for_trial(self, max_features: float, l2_factor: float, max_leaf_nodes: int) -> Self:
        """Return the learner with other settings; it has no penalty."""
        return replace(self, max_features=max_features, max_splits=max_leaf_nodes - 1)

    def with_columns(
        self,
        categorical: tuple[tuple[int, int], ...],
        monotonic: tuple[int, ...],
        groups: tuple[tuple[int, ...], ...],
    ) -> Self:
        """Return the learner with other category columns; it supports no constraints."""
        return replace(self, categorical=categorical)

    def share_of_columns(self, d: int) -> float:
        """``max_features``, as a number."""
        return 1 / np.sqrt(d) if isinstance(self.max_features, str) else self.max_features

    def prepare(
        self, X: Floats, weight: Floats | None, seed: int, n_threads: int
    ) -> VectorTreeData:
        """Bin the table."""
        return self._prepared(X, weight, seed, n_threads, None)

    def among_workers(self) -> AmongWorkers:
        """Return the learner itself."""
        return self

    def prepared(
        self, X: Floats, weight: Floats | None, seed: int, n_threads: int, share: RowShare
    ) -> VectorTreeData:
        """Bin the rows that are here, by the quantiles and values of the rows of all workers."""
        return self._prepared(X, weight, seed, n_threads, share)

    def _prepared(
        self, X: Floats, weight: Floats | None, seed: int, n_threads: int, share: RowShare | None
    ) -> VectorTreeData:
        team = ThreadTeam(n_threads)
        table = bin_table(X, weight, self.max_bins, seed, team, dict(self.categorical), share)
        ranges = empty_ranges(table.bins)
        value_ranges(table.bins, X, ranges)
        if share is not None:
            low, high = -share.exchange.largest(-ranges.low), share.exchange.largest(ranges.high)
            ranges = ValueRanges(low, high)
        return VectorTreeData(X, table, ranges, team, share)

    def close(self, data: VectorTreeData) -> None:
        """Stop the threads."""
        data.team.__exit__()

    def fit(
        self,
        data: VectorTreeData,
        gradients: Gradients,
        sample: RowSample,
        rng: np.random.Generator,
    ) -> list[FittedTerm]:
        """Fit one tree."""
        return [self.fit_tree(data, gradients.negative_gradient, sample, rng, data.team)]

    def fit_tree(
        self,
        data: VectorTreeData,
        negative: Floats,
        sample: RowSample,
        rng: np.random.Generator,
        team: ThreadTeam,
    ) -> FittedTerm:
        """Grow one tree on the threads of ``team``; several trees may be grown in parallel."""
        negative = np.ascontiguousarray(negative, dtype=np.float64)
        weight = np.empty(0) if sample.weight is None else sample.weight
        n, r = negative.shape
        rows = np.arange(n, dtype=dtypes.ROW) if sample.rows is None else sample.rows
        learned = negative
        if self.sketch is not None and self.sketch < r:
            learned = negative @ (rng.normal(size=(r, self.sketch)) / np.sqrt(self.sketch))
        growth = self._growth(data, learned, weight, rows, rng, team)
        if data.share is None:
            _grow_together(growth, team)
        else:
            grow_among_workers(growth, data.share.exchange)
        found = int(growth.nodes.control[N_NODES])
        nodes = growth.nodes.fields[:found]
        values, categories = growth.sums.values[:found], growth.categories
        tree, leaves = tree_of(nodes, growth.nodes.gains, values, categories)
        leaf_of_row = np.empty(n, dtype=dtypes.LEAF)
        rows = growth.buffers.rows[: len(rows)]  # in the order of the leaves
        leaf_of_rows(team, nodes, leaves, rows, leaf_of_row)
        exact = leaf_gradients(negative, np.empty((n, 0)), False, weight, 0.0, data.share)
        tree = tree.with_values(newton_steps(team, nodes, leaves, rows, exact, data.share))
        if sample.rows is not None:
            others = np.flatnonzero(leaf_of_row < 0)
            if len(others):
                leaf_of_row[others] = tree.leaves(data.X[others])
        return FittedTerm(Term.of(tree, slice(0, r)), leaves=leaf_of_row)

    def _category_splits(self, d: int, n_nodes: int) -> CategorySplits:
        sets = np.zeros((n_nodes if self.categorical else 0, SET_WORDS), dtype=np.uint64)
        return CategorySplits(marked_columns(self.categorical, d), sets)

    def _growth(
        self,
        data: VectorTreeData,
        learned: Floats,
        weight: Floats,
        rows: NDArray[np.uint32],
        rng: np.random.Generator,
        team: ThreadTeam,
    ) -> VectorGrowth:
        """Collect the inputs of compiled growth for one tree."""
        d, n_bins = len(data.table.n_values), data.table.n_bins
        m, k = len(rows), learned.shape[1]
        gradients, pure = _centered(learned, weight, rows, data.share)
        limits = self._limits(d, count(m, data.share), pure)
        n_nodes, n_threads = 2 * limits.max_leaves - 1, min(team.n_threads, limits.n_columns)
        nodes = empty_nodes(n_nodes, by_gain=False)
        open_root(nodes, m, int(rng.integers(2**62)))
        spare = np.empty(n_spare(m, n_threads), dtype=dtypes.ROW)
        return VectorGrowth(
            table=data.table.bins,
            ranges=data.ranges,
            gradients=gradients,
            limits=limits,
            nodes=nodes,
            sums=empty_sums(n_nodes, k),
            categories=self._category_splits(d, n_nodes),
            buffers=RowBuffers(
                np.concatenate([rows, spare], dtype=dtypes.ROW),
                np.zeros(0, dtype=np.int64),
                np.empty(m, dtype=np.uint8),
                np.zeros(8 * n_threads, dtype=np.int64),
            ),
            candidates=empty_candidates(d, bool(self.categorical)),
            scratch=VectorScratch(
                np.empty((n_threads, n_bins + 1), dtype=np.int64),
                np.empty((n_threads, m), dtype=dtypes.ROW),
                np.empty((n_threads, k)),
                self._level_scratch(n_threads, k),
            ),
        )

    def _level_scratch(self, n_threads: int, k: int) -> LevelScratch:
        """Memory for the levels of a node, missing values among them; none for random subsets."""
        most = max((n_levels for _, n_levels in self.categorical), default=-1)
        return empty_levels(n_threads, 0 if self.random_cuts else most + 1, k)

    def _limits(self, d: int, m: int, pure: float) -> VectorLimits:
        most = m if self.max_splits is None else min(m, int(self.max_splits) + 1)
        return VectorLimits(
            min_weight=ALMOST * float(self.min_samples_leaf),
            tie=_TIE,
            pure=pure,
            max_leaves=most,
            max_depth=_UNLIMITED if self.max_depth is None else int(self.max_depth),
            n_columns=max(1, round(self.share_of_columns(d) * d)),
            random_cuts=bool(self.random_cuts),
            in_turn=most >= m,  # one leaf per row: the order does not matter
        )


def _grow_together(growth: VectorGrowth, team: ThreadTeam) -> None:
    """Grow one tree in a single compiled call, on as many threads of the team as are useful."""
    n_threads = len(growth.scratch.sums)
    sync = np.zeros(SYNC_SIZE, dtype=np.int64)

    def abort() -> None:
        sync[ABORT] = 1

    def work(thread: int) -> None:
        if thread < n_threads:
            grow_vector(Threads(thread, n_threads, sync), growth)

    if n_threads == 1:
        work(0)
    else:
        team.run(work, on_error=abort)


def _centered(
    learned: Floats, weight: Floats, rows: NDArray[np.uint32], share: RowShare | None
) -> tuple[VectorGradients, float]:
    """Center gradients over ``rows``, which avoids cancellation in sums of squares.

    Returns
    -------
    gradients : VectorGradients
    pure : float
        Total variance that is due to rounding only.
    """
    own = learned if len(rows) == len(learned) else learned[rows]
    drawn = np.ones(len(rows)) if len(weight) == 0 else weight[rows]
    totals = added((own * drawn[:, None] if len(weight) else own).sum(axis=0), share)
    mass = float(added(np.array([drawn.sum()]), share)[0])
    mean = totals / mass
    learned = learned - mean
    squares = np.einsum("ij,ij->i", learned, learned)
    rounding = (2 * np.finfo(float).eps) ** 2 * float(mass * (mean**2).sum())
    if len(weight):
        learned *= weight[:, None]
        squares *= weight
    pure = _PURE * float(added(squares[rows].sum(keepdims=True), share)[0]) + rounding
    return VectorGradients(learned, weight, squares), pure
