"""The inputs of compiled growth, from the parameters of trees."""

from __future__ import annotations

import numpy as np

from hilboost.engine.buffers import TreeBuffers
from hilboost.engine.category_columns import marked_columns
from hilboost.engine.constraints import constraints_of
from hilboost.engine.gradients import Packed
from hilboost.engine.ops.cpu.category_splits import CategorySplits
from hilboost.engine.ops.cpu.column_splits import SplitLimits
from hilboost.engine.ops.cpu.growth import Growth, GrowthLimits
from hilboost.engine.ops.cpu.split_search import SplitRules
from hilboost.engine.separate import drawn_columns
from hilboost.engine.settings import TreeSettings
from hilboost.engine.table import BinnedTable
from hilboost.engine.tree_data import TreeData

_UNLIMITED = 2**31


def growth_of(
    settings: TreeSettings,
    data: TreeData,
    space: TreeBuffers,
    packed: Packed,
    rng: np.random.Generator,
) -> Growth:
    """Collect the inputs of compiled growth for one tree.

    What a tree does not have is None, so that its code is not compiled.
    """
    table = data.table
    d, n_channels = len(table.n_values), len(packed.totals)
    allowed = drawn_columns(d, settings.max_features_per_tree, rng)
    categories = category_splits(settings, table, space)
    constraints = None
    if settings.categorical or settings.monotonic or settings.groups:
        constraints = constraints_of(
            settings.monotonic, settings.groups, allowed, space.n_nodes, packed.n_outputs
        )
    sums, scratch = space.start(allowed, packed.totals)
    return Growth(
        table=table.bins,
        packed=packed.values,
        rules=SplitRules(
            n_values=table.n_values,
            n_bins=table.n_bins,
            n_outputs=packed.n_outputs if n_channels > 1 or settings.symmetric else None,
            packing=packed.packing,
            limits=_split_limits(settings),
            monotonic=np.array(settings.monotonic, dtype=np.int64),
            is_category=categories.is_category,
        ),
        limits=_growth_limits(settings, space, packed, int(allowed.sum())),
        constraints=constraints,
        nodes=space.nodes,
        sums=sums,
        categories=categories if settings.categorical else None,
        buffers=space.row_buffers(n_channels, packed.compact),
        histograms=space.histograms(n_channels),
        scratch=scratch,
        joint=None if n_channels > 1 else space.joint(data.joint),
        batch=space.batch,
    )


def category_splits(
    settings: TreeSettings, table: BinnedTable, space: TreeBuffers
) -> CategorySplits:
    """Return which columns are categories, and room for their splits."""
    return CategorySplits(
        marked_columns(settings.categorical, len(table.n_values)), space.left_sets
    )


def n_levels(settings: TreeSettings) -> int:
    """Return the largest depth of a leaf."""
    depth = _UNLIMITED if settings.max_depth is None else int(settings.max_depth)
    return min(depth, settings.max_leaf_nodes.bit_length() - 1) if settings.symmetric else depth


def _growth_limits(
    settings: TreeSettings, space: TreeBuffers, packed: Packed, n_allowed: int
) -> GrowthLimits:
    per_node = 0
    if settings.max_features < 1:
        per_node = max(1, int(np.ceil(settings.max_features * n_allowed)))
    # A node with fewer rows cannot be split, because a row has at most weight max_weight.
    fewest = min(2 * settings.min_samples_leaf / packed.max_weight, _UNLIMITED)
    return GrowthLimits(
        max_leaves=space.max_leaves,
        max_depth=n_levels(settings),
        min_rows=max(2, int(fewest)),
        columns_per_node=per_node,
        batch_size=len(space.batch.divided),
    )


def _split_limits(settings: TreeSettings) -> SplitLimits:
    # Use floats: another type would compile the growth again.
    return SplitLimits(
        l2=float(settings.l2_regularization),
        min_count=float(settings.min_samples_leaf),
        min_hessian=float(settings.min_hessian),
        min_gain=float(settings.min_gain),
        level_smoothing=float(settings.level_smoothing),
        level_count=float(settings.min_samples_level),
        level_l2=float(settings.level_l2),
    )
