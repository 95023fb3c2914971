"""Growth of trees with vector leaves by exact squared error (OK3 of G2007)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.threads import ThreadTeam
from hilboost.core import dtypes
from hilboost.core.base_model import Term
from hilboost.core.dtypes import Floats
from hilboost.core.exchange import RowShare
from hilboost.core.fitted_term import FittedTerm
from hilboost.core.row_sample import RowSample
from hilboost.engine.category_columns import marked_columns
from hilboost.engine.driver import batch_size, n_spare_leaves
from hilboost.engine.leaves import leaf_gradients, leaf_of_rows, newton_steps, tree_of
from hilboost.engine.ops.cpu.batch import empty_batch
from hilboost.engine.ops.cpu.category_splits import SET_WORDS, CategorySplits
from hilboost.engine.ops.cpu.nodes import N_NODES, empty_nodes, open_root
from hilboost.engine.ops.cpu.operations import CpuOperations
from hilboost.engine.ops.cpu.partition import RowBuffers
from hilboost.engine.ops.cpu.vector_candidates import (
    ValueRanges,
    empty_candidates,
    empty_ranges,
    value_ranges,
)
from hilboost.engine.ops.cpu.vector_cuts import ALMOST, VectorGradients
from hilboost.engine.ops.cpu.vector_grow import grow_vector
from hilboost.engine.ops.cpu.vector_levels import LevelScratch, empty_levels
from hilboost.engine.ops.cpu.vector_state import (
    VectorGrowth,
    VectorLimits,
    VectorScratch,
    empty_sums,
)
from hilboost.engine.settings import VectorSettings
from hilboost.engine.table import BinnedTable, bin_table
from hilboost.engine.vector_workers import VectorLoop
from hilboost.reductions.sums import added, count

_TIE = 1e-10
_PURE = 1e-12
_UNLIMITED = 2**31
_BATCH_OF_ALL = 32  # nodes that are divided together where every node that can be split is


@dataclass
class VectorTreeData:
    """A binned table, the values in its bins, and the threads of a fit."""

    X: Floats  # (n, d)
    table: BinnedTable
    ranges: ValueRanges
    team: ThreadTeam
    share: RowShare | None = None  # which rows these are, if other workers have the others

    def close(self) -> None:
        """Stop the threads."""
        self.team.__exit__()


def prepare_vector_trees(
    settings: VectorSettings,
    X: Floats,
    weight: Floats | None,
    seed: int,
    n_threads: int,
    share: RowShare | None = None,
) -> VectorTreeData:
    """Bin a table, or one worker's share of it, by the quantiles and values of all rows."""
    team = ThreadTeam(n_threads)
    table = bin_table(X, weight, settings.max_bins, seed, team, dict(settings.categorical), share)
    ranges = empty_ranges(table.bins)
    value_ranges(table.bins, X, ranges)
    if share is not None:
        low, high = -share.exchange.largest(-ranges.low), share.exchange.largest(ranges.high)
        ranges = ValueRanges(low, high)
    return VectorTreeData(X, table, ranges, team, share)


def fit_vector_tree(
    settings: VectorSettings,
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
    if settings.sketch is not None and settings.sketch < r:
        learned = negative @ (rng.normal(size=(r, settings.sketch)) / np.sqrt(settings.sketch))
    growth = _growth(settings, data, learned, weight, rows, rng, team)
    operations = CpuOperations(team, len(growth.scratch.sums))
    if data.share is None:
        operations.cooperate(lambda threads: grow_vector(threads, growth))
    else:
        VectorLoop(growth, operations, data.share.exchange).run()
    found = int(growth.nodes.control[N_NODES])
    nodes = growth.nodes.fields[:found]
    values, categories = growth.sums.values[:found], growth.categories
    tree, leaves = tree_of(nodes, growth.nodes.gains, values, categories)
    leaf_of_row = np.empty(n, dtype=dtypes.LEAF)
    rows = growth.buffers.rows  # in the order of the leaves
    leaf_of_rows(team, nodes, leaves, rows, leaf_of_row)
    exact = leaf_gradients(negative, np.empty((n, 0)), False, weight, 0.0, data.share)
    tree = tree.with_values(newton_steps(team, nodes, leaves, rows, exact, data.share))
    if sample.rows is not None:
        others = np.flatnonzero(leaf_of_row < 0)
        if len(others):
            leaf_of_row[others] = tree.leaves(data.X[others])
    return FittedTerm(Term.of(tree, slice(0, r)), leaves=leaf_of_row)


def _category_splits(settings: VectorSettings, d: int, n_nodes: int) -> CategorySplits:
    sets = np.zeros((n_nodes if settings.categorical else 0, SET_WORDS), dtype=np.uint64)
    return CategorySplits(marked_columns(settings.categorical, d), sets)


def _growth(
    settings: VectorSettings,
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
    limits = _limits(settings, d, count(m, data.share), pure)
    n_threads = min(team.n_threads, limits.n_columns)
    is_limited = data.share is not None and not limits.in_turn
    spare_leaves = n_spare_leaves(limits.max_leaves) if is_limited else 0
    n_nodes = 2 * (limits.max_leaves + spare_leaves) - 1
    nodes = empty_nodes(n_nodes, by_gain=False)
    open_root(nodes, m, int(rng.integers(2**62)))
    places = np.empty((2, m), dtype=dtypes.ROW)
    places[0] = rows
    return VectorGrowth(
        table=data.table.bins,
        ranges=data.ranges,
        gradients=gradients,
        limits=limits,
        nodes=nodes,
        sums=empty_sums(n_nodes, k),
        categories=_category_splits(settings, d, n_nodes),
        buffers=RowBuffers(places, np.zeros((2, 0), dtype=np.int64), np.empty(m, dtype=np.uint8)),
        candidates=empty_candidates(d, bool(settings.categorical)),
        scratch=VectorScratch(
            np.empty((n_threads, n_bins + 1), dtype=np.int64),
            np.empty((n_threads, max(m, n_bins)), dtype=dtypes.ROW),
            np.empty((n_threads, k)),
            _level_scratch(settings, n_threads, k),
        ),
        batch=empty_batch(_batch_size(limits, data.share), m, n_threads, d, n_nodes),
    )


def _batch_size(limits: VectorLimits, share: RowShare | None) -> int:
    """Return how many nodes are divided together at most."""
    if share is None:
        return 1
    return _BATCH_OF_ALL if limits.in_turn else batch_size(limits.max_leaves)


def _level_scratch(settings: VectorSettings, n_threads: int, k: int) -> LevelScratch:
    """Memory for the levels of a node, missing values among them; none for random subsets."""
    most = max((n_levels for _, n_levels in settings.categorical), default=-1)
    return empty_levels(n_threads, 0 if settings.random_cuts else most + 1, k)


def _limits(settings: VectorSettings, d: int, m: int, pure: float) -> VectorLimits:
    most = m if settings.max_splits is None else min(m, int(settings.max_splits) + 1)
    return VectorLimits(
        min_weight=ALMOST * float(settings.min_samples_leaf),
        tie=_TIE,
        pure=pure,
        max_leaves=most,
        max_depth=_UNLIMITED if settings.max_depth is None else int(settings.max_depth),
        n_columns=max(1, round(settings.share_of_columns(d) * d)),
        random_cuts=bool(settings.random_cuts),
        in_turn=most >= m,  # one leaf per row: the order does not matter
    )


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
