"""Growth of trees with vector leaves by exact squared error (OK3 of G2007)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.threads import ThreadTeam
from hilboost.core import dtypes
from hilboost.core.dtypes import Floats
from hilboost.core.exchange import RowShare
from hilboost.core.gradients import Gradients
from hilboost.core.row_sample import RowSample
from hilboost.engine.driver import batch_size, n_spare_leaves
from hilboost.engine.growth_inputs import projected
from hilboost.engine.leaves import as_tree, grown_tree, leaf_of_rows, newton_steps
from hilboost.engine.ops.cpu.batch import empty_batch
from hilboost.engine.ops.cpu.category_splits import SET_WORDS, CategorySplits
from hilboost.engine.ops.cpu.criterion import criterion_of
from hilboost.engine.ops.cpu.fixed_point import WeightedGradients
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
from hilboost.engine.ops.cpu.vector_levels import empty_levels
from hilboost.engine.ops.cpu.vector_state import (
    WEIGHT,
    VectorGrowth,
    VectorLimits,
    VectorScratch,
    empty_sums,
)
from hilboost.engine.plan import Plan
from hilboost.engine.settings import VectorSettings, marked_columns
from hilboost.engine.table import bin_table
from hilboost.engine.tree import Tree
from hilboost.engine.tree_data import ColumnValues, TreeData
from hilboost.engine.vector_workers import VectorLoop
from hilboost.reductions.sums import added, count, is_whole

_TIE = 1e-10
_PURE = 1e-12
_UNLIMITED = 2**31
_BATCH_OF_ALL = 32  # nodes that are divided together where every node that can be split is


def prepare_vector_trees(
    settings: VectorSettings,
    X: Floats,
    weight: Floats | None,
    seed: int,
    n_threads: int,
    share: RowShare | None = None,
) -> TreeData:
    """Bin a table, or one worker's share of it, by the quantiles and values of all rows."""
    team = ThreadTeam(n_threads)
    table = bin_table(X, weight, settings.max_bins, seed, team, dict(settings.categorical), share)
    ranges = empty_ranges(table.bins)
    value_ranges(table.bins, X, ranges)
    if share is not None:
        low, high = -share.exchange.largest(-ranges.low), share.exchange.largest(ranges.high)
        ranges = ValueRanges(low, high)
    plan, values = Plan(fit_tree=fit_tree), ColumnValues(X, ranges)
    return TreeData(table, team, {}, share, plan, values=values)


def fit_tree(
    settings: VectorSettings,
    data: TreeData,
    gradients: Gradients,
    columns: slice,
    sample: RowSample,
    rng: np.random.Generator,
    leaf_of_row: NDArray[np.int32],
) -> Tree:
    """Fit one tree to some outputs on all threads, and write the leaf of each row."""
    negative = np.ascontiguousarray(gradients.negative_gradient[:, columns], dtype=np.float64)
    weight = np.empty(0) if sample.weight is None else sample.weight
    rows = np.arange(len(negative), dtype=dtypes.ROW) if sample.rows is None else sample.rows
    whole = is_whole(weight, data.share)
    learned = WeightedGradients(negative, np.empty((len(negative), 0)), weight, rows, whole)
    growth = _growth(settings, data, learned, rng)
    operations = CpuOperations(data.team, len(growth.scratch.sums))
    if data.share is None:
        operations.cooperate(lambda threads: grow_vector(threads, growth))
    else:
        VectorLoop(growth, operations, data.share.exchange).run()
    cuts, categories = growth.sums.values[: int(growth.nodes.control[N_NODES])], growth.categories
    grown, depth = grown_tree(growth.nodes, cuts, categories.is_category)
    leaf_of_rows(data.team, growth, grown.leaves, leaf_of_row)
    weights = growth.sums.masses[grown.leaves, WEIGHT]
    values = newton_steps(data, growth, grown.leaves, learned, weights, criterion_of(0.0), None)
    tree = as_tree(grown, depth, values, categories)
    others = np.flatnonzero(leaf_of_row < 0)
    if len(others):
        assert data.values is not None
        leaf_of_row[others] = tree.leaves(data.values.X[others])
    return tree


def _growth(
    settings: VectorSettings, data: TreeData, learned: WeightedGradients, rng: np.random.Generator
) -> VectorGrowth:
    """Collect the inputs of compiled growth for one tree."""
    assert data.values is not None
    rows, gradients = learned.rows, projected(learned.gradients, settings.sketch, rng)
    d, n_bins = len(data.table.n_values), data.table.n_bins
    m, k = len(rows), gradients.shape[1]
    centered, pure = _centered(gradients, learned.weights, rows, data.share)
    limits = _limits(settings, d, count(m, data.share), pure)
    n_threads = min(data.team.n_threads, limits.n_columns)
    is_limited = data.share is not None and not limits.in_turn
    spare_leaves = n_spare_leaves(limits.max_leaves) if is_limited else 0
    n_nodes = 2 * (limits.max_leaves + spare_leaves) - 1
    nodes = empty_nodes(n_nodes, by_gain=False)
    open_root(nodes, m, int(rng.integers(2**62)))
    places = np.empty((2, m), dtype=dtypes.ROW)
    places[0] = rows
    sets = np.zeros((n_nodes if settings.categorical else 0, SET_WORDS), dtype=np.uint64)
    n_levels = max((n for _, n in settings.categorical), default=-1) + 1  # with missing values
    return VectorGrowth(
        table=data.table.bins,
        ranges=data.values.ranges,
        gradients=centered,
        limits=limits,
        nodes=nodes,
        sums=empty_sums(n_nodes, k),
        categories=CategorySplits(marked_columns(settings.categorical, d), sets),
        buffers=RowBuffers(places, np.zeros((2, 0), dtype=np.int64), np.empty(m, dtype=np.uint8)),
        candidates=empty_candidates(d),
        scratch=VectorScratch(
            np.empty((n_threads, n_bins + 1), dtype=np.int64),
            np.empty((n_threads, max(m, n_bins)), dtype=dtypes.ROW),
            np.empty((n_threads, k)),
            empty_levels(n_threads, 0 if settings.random_cuts else n_levels, k),
        ),
        batch=empty_batch(_batch_size(limits, data.share), m, n_threads, d, n_nodes),
    )


def _batch_size(limits: VectorLimits, share: RowShare | None) -> int:
    """Return how many nodes are divided together at most."""
    if share is None:
        return 1
    return _BATCH_OF_ALL if limits.in_turn else batch_size(limits.max_leaves)


def _limits(settings: VectorSettings, d: int, m: int, pure: float) -> VectorLimits:
    most = m if settings.max_splits is None else min(m, int(settings.max_splits) + 1)
    share = 1 / np.sqrt(d) if settings.max_features == "sqrt" else float(settings.max_features)
    return VectorLimits(
        min_weight=ALMOST * float(settings.min_samples_leaf),
        tie=_TIE,
        pure=pure,
        max_leaves=most,
        max_depth=_UNLIMITED if settings.max_depth is None else int(settings.max_depth),
        n_columns=max(1, round(share * d)),
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
