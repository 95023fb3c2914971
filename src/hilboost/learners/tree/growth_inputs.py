"""The inputs of compiled growth, from the parameters of a learner of trees."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hilboost.backends.trees.category_splits import CategorySplits
from hilboost.backends.trees.column_splits import SplitLimits
from hilboost.backends.trees.grow import Growth, GrowthLimits
from hilboost.backends.trees.split_search import SplitRules
from hilboost.learners.tree.binning import BinnedTable
from hilboost.learners.tree.buffers import TreeBuffers, TreeData
from hilboost.learners.tree.category_columns import marked_columns
from hilboost.learners.tree.constraints import constraints_of
from hilboost.learners.tree.packing import Packed
from hilboost.learners.tree.separate import drawn_columns

if TYPE_CHECKING:
    from hilboost.learners.tree.learner import TreeLearner

_UNLIMITED = 2**31


def growth_of(
    learner: TreeLearner,
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
    allowed = drawn_columns(d, learner.max_features_per_tree, rng)
    categories = category_splits(learner, table, space)
    constraints = None
    if learner.categorical or learner.monotonic or learner.groups:
        constraints = constraints_of(
            learner.monotonic, learner.groups, allowed, space.n_nodes, packed.n_outputs
        )
    sums, scratch = space.start(allowed, packed.totals)
    return Growth(
        table=table.bins,
        packed=packed.values,
        rules=SplitRules(
            n_values=table.n_values,
            n_bins=table.n_bins,
            n_outputs=packed.n_outputs if n_channels > 1 or learner.symmetric else None,
            packing=packed.packing,
            limits=_split_limits(learner),
            monotonic=np.array(learner.monotonic, dtype=np.int64),
            is_category=categories.is_category,
        ),
        limits=_growth_limits(learner, space, packed, int(allowed.sum())),
        constraints=constraints,
        nodes=space.nodes,
        sums=sums,
        categories=categories if learner.categorical else None,
        buffers=space.row_buffers(n_channels, packed.compact),
        histograms=space.histograms(n_channels),
        scratch=scratch,
        joint=None if n_channels > 1 else space.joint(data.joint),
    )


def category_splits(learner: TreeLearner, table: BinnedTable, space: TreeBuffers) -> CategorySplits:
    """Return which columns are categories, and room for their splits."""
    return CategorySplits(marked_columns(learner.categorical, len(table.n_values)), space.left_sets)


def n_levels(learner: TreeLearner) -> int:
    """Return the largest depth of a leaf."""
    depth = _UNLIMITED if learner.max_depth is None else int(learner.max_depth)
    return min(depth, learner.max_leaf_nodes.bit_length() - 1) if learner.symmetric else depth


def _growth_limits(
    learner: TreeLearner, space: TreeBuffers, packed: Packed, n_allowed: int
) -> GrowthLimits:
    per_node = 0
    if learner.max_features < 1:
        per_node = max(1, int(np.ceil(learner.max_features * n_allowed)))
    # A node with fewer rows cannot be split, because a row has at most weight max_weight.
    fewest = min(2 * learner.min_samples_leaf / packed.max_weight, _UNLIMITED)
    return GrowthLimits(
        max_leaves=space.max_leaves,
        max_depth=n_levels(learner),
        min_rows=max(2, int(fewest)),
        columns_per_node=per_node,
        in_turn=False,
    )


def _split_limits(learner: TreeLearner) -> SplitLimits:
    # Use floats: another type would compile the growth again.
    return SplitLimits(
        l2=float(learner.l2_regularization),
        min_count=float(learner.min_samples_leaf),
        min_hessian=float(learner.min_hessian),
        min_gain=float(learner.min_gain),
        level_smoothing=float(learner.level_smoothing),
        level_count=float(learner.min_samples_level),
        level_l2=float(learner.level_l2),
    )
