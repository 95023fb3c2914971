"""The inputs of compiled growth, from the parameters of trees."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats
from hilboost.core.row_sample import RowSample
from hilboost.engine import next_root
from hilboost.engine.buffers import TreeBuffers
from hilboost.engine.driver import batch_size, n_spare_leaves
from hilboost.engine.gradients import Packed
from hilboost.engine.ops.cpu.category_splits import CategorySplits
from hilboost.engine.ops.cpu.column_splits import SplitLimits
from hilboost.engine.ops.cpu.criterion import criterion_of
from hilboost.engine.ops.cpu.growth import Growth, GrowthLimits
from hilboost.engine.ops.cpu.joint_columns import NO_GROUPS
from hilboost.engine.ops.cpu.nodes import open_root
from hilboost.engine.ops.cpu.split_search import SplitRules
from hilboost.engine.settings import TreeSettings, constraints_of, marked_columns
from hilboost.engine.table import BinnedTable
from hilboost.engine.tree_data import TreeData

_UNLIMITED = 2**31
_OF_BIN, _OF_SEARCH, _OF_ROW = 0.3, 0.6, 1.7
"""Nanoseconds for a bin of two siblings to be summed and subtracted, and to be searched; and for a
row of a column to be summed without histograms."""


def borrowed(
    settings: TreeSettings, data: TreeData, n_threads: int, sample: RowSample
) -> TreeBuffers:
    """Return working memory for one tree by some threads."""
    table = data.table
    m = table.n_rows if sample.rows is None else len(sample.rows)
    leaves = min(settings.max_leaf_nodes, data.n_rows, 2 ** min(_n_levels(settings), 31))
    # Threads and devices divide several nodes at once, some of them in vain.
    several = n_threads > 1 or data.plan.operations is not None
    space = TreeBuffers.borrow(
        data.buffers,
        n_rows=table.n_rows,
        n_columns=len(table.n_values),
        n_bins=table.n_bins,
        n_threads=n_threads,
        max_leaves=leaves,
        spare_leaves=n_spare_leaves(leaves) if several and not settings.symmetric else 0,
        has_sets=int(bool(settings.categorical)),
        keeps_all=int(settings.symmetric),
        batch_size=_batch_size(settings, leaves, several),
    )
    space.learn_from(m)
    return space


def _batch_size(settings: TreeSettings, leaves: int, several: bool) -> int:
    """Return how many nodes are divided together at most."""
    if settings.symmetric:
        return max(1, leaves // 2)
    return batch_size(leaves) if several else 1


def skip_one(rng: np.random.Generator) -> None:
    """Skip the number by which gradients were once rounded: later draws remain as they were."""
    rng.integers(2**62)


def projected(gradients: Floats, sketch: int | None, rng: np.random.Generator) -> Floats:
    """Project the gradients (n, r) at random to ``sketch`` columns, if these are fewer."""
    r = gradients.shape[1]
    if sketch is None or sketch >= r:
        return gradients
    return np.ascontiguousarray(gradients @ (rng.normal(size=(r, sketch)) / np.sqrt(sketch)))


def drawn_columns(d: int, part: float, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Draw a fraction of the columns for a tree, (d,)."""
    allowed = np.ones(d, dtype=np.uint8)
    if part < 1:
        allowed[:] = 0
        allowed[rng.choice(d, max(1, round(part * d)), replace=False)] = 1
    return allowed


def growth_of(
    settings: TreeSettings,
    data: TreeData,
    space: TreeBuffers,
    packed: Packed,
    rng: np.random.Generator,
) -> Growth:
    """Collect the inputs of growth for one tree, with an open root.

    Inputs that few trees need are None in all others, so that their code is not compiled.
    """
    table = data.table
    d, n_channels = len(table.n_values), len(packed.totals)
    allowed = drawn_columns(d, settings.max_features_per_tree, rng)
    is_category = marked_columns(settings.categorical, d)
    constraints = None
    if settings.categorical or settings.monotonic or settings.groups:
        constraints = constraints_of(
            settings.monotonic, settings.groups, allowed, space.n_nodes, packed.n_outputs
        )
    sums, scratch = space.start(allowed, packed.totals)
    open_root(space.nodes, len(space.rows), int(rng.integers(2**62)))
    return Growth(
        table=table.bins,
        packed=packed.values,
        rules=SplitRules(
            n_values=table.n_values,
            n_bins=table.n_bins,
            n_outputs=packed.n_outputs if n_channels > 1 else None,
            packing=packed.packing,
            limits=_split_limits(settings),
            monotonic=np.array(settings.monotonic, dtype=np.int64),
            is_category=is_category,
            symmetric=settings.symmetric,
        ),
        limits=_growth_limits(settings, table, space, packed, int(allowed.sum())),
        constraints=constraints,
        nodes=space.nodes,
        sums=sums,
        categories=None if constraints is None else CategorySplits(is_category, space.left_sets),
        buffers=space.row_buffers(n_channels, packed.compact),
        histograms=space.histograms(n_channels),
        scratch=scratch,
        joint=NO_GROUPS if n_channels > 1 else space.joint(data.joint),
        batch=space.batch,
    )


def _n_levels(settings: TreeSettings) -> int:
    """Return the largest depth of a leaf."""
    depth = _UNLIMITED if settings.max_depth is None else int(settings.max_depth)
    return min(depth, settings.max_leaf_nodes.bit_length() - 1) if settings.symmetric else depth


def _growth_limits(
    settings: TreeSettings, table: BinnedTable, space: TreeBuffers, packed: Packed, n_allowed: int
) -> GrowthLimits:
    per_node = 0
    if settings.max_features < 1:
        per_node = max(1, int(np.ceil(settings.max_features * n_allowed)))
    # Symmetric trees and the next root need the histograms of all leaves, and rows of several
    # channels are summed to histograms alone.
    keeps_all = settings.symmetric or table.n_rows >= next_root.FEWEST_ROWS
    keeps_all = keeps_all or packed.values is not None
    # A node with fewer rows cannot be split, because a row has at most weight max_weight.
    fewest = min(2 * settings.min_samples_leaf / packed.max_weight, _UNLIMITED)
    return GrowthLimits(
        max_leaves=space.max_leaves,
        max_depth=_n_levels(settings),
        min_rows=max(2, int(fewest)),
        columns_per_node=per_node,
        few_rows=0 if keeps_all else _few_rows(table, (per_node or n_allowed) / n_allowed),
    )


def _few_rows(table: BinnedTable, part: float) -> int:
    """Return up to how many rows two siblings are searched in less time without histograms."""
    of_bins = table.n_values.mean() * (_OF_BIN + _OF_SEARCH * part)
    return int(of_bins / max(0.1, _OF_ROW * part - _OF_BIN))


def _split_limits(settings: TreeSettings) -> SplitLimits:
    # Use floats: another type would compile the growth again.
    return SplitLimits(
        criterion=criterion_of(settings.l2_regularization),
        min_count=float(settings.min_samples_leaf),
        min_hessian=float(settings.min_hessian),
        min_gain=float(settings.min_gain),
        level_smoothing=float(settings.level_smoothing),
        level_count=float(settings.min_samples_level),
        level_l2=float(settings.level_l2),
    )
