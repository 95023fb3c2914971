"""Trees with vector leaves for many outputs, grown by exact squared error (OK3 of G2007)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.nodes import BEGIN, BUFFER, DEPTH, END, LEFT, N_NODE_FIELDS, N_NODES, NODE
from hilboost.backends.sync import ABORT, SYNC_SIZE
from hilboost.backends.threads import ThreadTeam
from hilboost.backends.vector_grow import CONTROL_SIZE, FOUND_SIZE, grow_vector, value_ranges
from hilboost.core import dtypes
from hilboost.core.base_model import Term
from hilboost.core.dtypes import Floats
from hilboost.core.learner import FittedTerm, Learner, RowSample
from hilboost.core.loss import Gradients
from hilboost.learners.tree.binning import BinnedTable, bin_table
from hilboost.learners.tree.leaves import leaf_of_rows, newton_steps, sums_in_leaves, tree_of
from hilboost.learners.tree.tree import Tree

_TIE = 1e-10
_PURE = 1e-12
_UNLIMITED = 2**31


@dataclass
class VectorTreeData:
    """A binned table, the values in its bins, and the threads of this fit.

    Attributes
    ----------
    X : (n, d)
    table : BinnedTable
    low, high : (d, n_bins) float64
        Least and greatest value in every bin.
    team : ThreadTeam
    """

    X: Floats
    table: BinnedTable
    low: Floats
    high: Floats
    team: ThreadTeam


@dataclass(frozen=True)
class VectorTreeLearner(Learner):
    """One tree a stage for all outputs, by squared error on the negative gradients.

    With the outputs' points in the feature space of an output kernel these are output kernel trees
    (OK3), and with random cuts their extra-trees (OK3-et).

    Parameters
    ----------
    max_splits : int or None
        The node of largest total variance is split first.  ``None`` grows until the leaves are
        pure or as small as they may be.
    max_depth : int or None
    min_samples_leaf : float
        Smallest sum of weights (number of rows, where there are no weights) in a leaf.
    max_features : float in (0, 1], or "sqrt"
        Part of the columns that a node may choose from.  With random cuts, columns that are
        constant in the node do not count.
    random_cuts : bool
        One cut a column, uniform between its least and greatest value in the node (Geurts, Ernst
        and Wehenkel 2006), in place of the best one.
    sketch : int or None
        Grow on a random projection of the gradients to so many columns; leaf values come from all
        outputs (Iosipoi and Vakhrushev 2022).
    max_bins : int
        Columns with more distinct values are cut between quantiles only.

    Notes
    -----
    Cost O(n d r log J) a stage for J splits: with ``max_features`` a part of ``d``, with ``sketch``
    so many columns in place of ``r`` outputs and O(n r) for the leaves.  The hessian is not used.
    """

    in_files: ClassVar[bool] = True
    name: ClassVar[str] = "vector_tree"
    base_model: ClassVar[type[Tree]] = Tree
    layout: ClassVar[Literal["F", "C"]] = "C"
    constant_on_leaves: ClassVar[bool] = True
    takes_missing_values: ClassVar[bool] = True

    max_splits: int | None = 20
    max_depth: int | None = None
    min_samples_leaf: float = 1
    max_features: float | str = 1.0
    random_cuts: bool = False
    sketch: int | None = None
    max_bins: int = 255

    def prepare(
        self, X: Floats, weight: Floats | None, seed: int, n_threads: int
    ) -> VectorTreeData:
        """Bin the table."""
        team = ThreadTeam(n_threads)
        table = bin_table(X, weight, self.max_bins, seed, team)
        d = X.shape[1]
        low, high = np.full((d, table.n_bins), np.inf), np.full((d, table.n_bins), -np.inf)
        value_ranges(table.bytes, table.n_rows, d, table.n_bins, X, low, high)
        return VectorTreeData(X, table, low, high, team)

    def close(self, data: VectorTreeData) -> None:
        """End the threads."""
        data.team.__exit__()

    def fit(
        self,
        data: VectorTreeData,
        gradients: Gradients,
        sample: RowSample,
        rng: np.random.Generator,
    ) -> list[FittedTerm]:
        """One tree."""
        return [self.fit_tree(data, gradients.negative_gradient, sample, rng, data.team)]

    def fit_tree(
        self,
        data: VectorTreeData,
        negative: Floats,
        sample: RowSample,
        rng: np.random.Generator,
        team: ThreadTeam,
    ) -> FittedTerm:
        """One tree, grown by the threads of ``team``; several may be grown side by side."""
        negative = np.ascontiguousarray(negative, dtype=np.float64)
        weight = np.empty(0) if sample.weight is None else sample.weight
        n, r = negative.shape
        rows = np.empty((2, n if sample.rows is None else len(sample.rows)), dtype=dtypes.ROW)
        rows[0] = np.arange(n) if sample.rows is None else sample.rows
        learned = negative
        if self.sketch is not None and self.sketch < r:
            learned = negative @ (rng.normal(size=(r, self.sketch)) / np.sqrt(self.sketch))
        nodes, gains, thresholds = self._grow(data, learned, weight, rows, rng, team)
        tree = tree_of(nodes, gains, thresholds)
        leaf_of_row = leaf_of_rows(team, nodes, rows, n)
        sums = sums_in_leaves(team, nodes, rows, negative, np.empty((n, 0)), weight)
        tree = tree.with_values(newton_steps(*sums, 0.0))
        if sample.rows is not None:
            others = np.flatnonzero(leaf_of_row < 0)
            if len(others):
                leaf_of_row[others] = tree.leaves(data.X[others])
        return FittedTerm(Term.of(tree, slice(0, r)), leaves=leaf_of_row)

    def _grow(
        self,
        data: VectorTreeData,
        learned: Floats,
        weight: Floats,
        rows: NDArray[np.uint32],
        rng: np.random.Generator,
        team: ThreadTeam,
    ) -> tuple[NDArray[np.int64], Floats, Floats]:
        table = data.table
        d, m = len(table.n_values), rows.shape[1]
        k = learned.shape[1]
        learned, squares, pure = _centred(learned, weight, rows[0])
        most = m if self.max_splits is None else min(m, self.max_splits + 1)
        n_nodes = 2 * most - 1
        part = 1 / np.sqrt(d) if isinstance(self.max_features, str) else self.max_features
        drawn = round(part * d)
        nodes = np.zeros((n_nodes, N_NODE_FIELDS), dtype=np.int64)
        nodes[0, [BEGIN, END, BUFFER, DEPTH]] = 0, m, 0, 0
        nodes[0, LEFT] = -1
        gains, thresholds = np.zeros(n_nodes), np.zeros(n_nodes)
        n_threads = min(team.n_threads, max(1, drawn))
        sync = np.zeros(SYNC_SIZE, dtype=np.int64)
        control = np.zeros(CONTROL_SIZE, dtype=np.int64)
        control[[NODE, N_NODES]] = -1, 1
        arguments = (
            sync,
            table.bytes,
            table.n_rows,
            table.n_bins,
            data.low,
            data.high,
            learned,
            weight,
            squares,
            rows,
            np.empty(m, dtype=np.uint8),
            nodes,
            np.full(n_nodes, rng.integers(2**62), dtype=np.uint64),
            gains,
            thresholds,
            np.empty((n_nodes, k)),
            np.empty((n_nodes, 3)),
            np.empty(d, dtype=np.int64),
            np.zeros((FOUND_SIZE, d)),
            np.empty((n_threads, table.n_bins + 1), dtype=np.int64),
            np.empty((n_threads, m), dtype=dtypes.ROW),
            np.empty((n_threads, k)),
            control,
            np.array([self.min_samples_leaf, _TIE, pure]),
            np.array(
                [
                    most,
                    _UNLIMITED if self.max_depth is None else self.max_depth,
                    max(1, drawn),
                    self.random_cuts,
                ],
                dtype=np.int64,
            ),
        )

        def abort() -> None:
            sync[ABORT] = 1

        def work(thread: int) -> None:
            if thread < n_threads:
                grow_vector(thread, n_threads, *arguments)

        if n_threads == 1:
            work(0)
        else:
            team.run(work, on_error=abort)
        found = int(control[N_NODES])
        return nodes[:found], gains, thresholds[:found]


def _centred(
    learned: Floats, weight: Floats, rows: NDArray[np.uint32]
) -> tuple[Floats, Floats, float]:
    """Gradients about their mean over ``rows``, ready for sums of squares, which would cancel else.

    Returns
    -------
    weighted : (n, k) float64
        Multiplied by the weights.
    squares : (n,) float64
        Weight times squared length.
    pure : float
        Total variance that is nothing but rounding.
    """
    drawn = np.ones(len(rows)) if len(weight) == 0 else weight[rows]
    mean = np.average(learned[rows], axis=0, weights=drawn)
    learned = learned - mean
    squares = np.einsum("ij,ij->i", learned, learned)
    rounding = (2 * np.finfo(float).eps) ** 2 * float(drawn.sum() * (mean**2).sum())
    if len(weight):
        learned *= weight[:, None]
        squares *= weight
    return learned, squares, _PURE * float(squares[rows].sum()) + rounding
