"""Separate trees on the threads of a fit, and the memory of growth."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hilboost.core.row_sample import RowSample
from hilboost.engine.buffers import TreeBuffers
from hilboost.engine.driver import batch_size, n_spare_leaves
from hilboost.engine.growth_inputs import growth_of, n_levels
from hilboost.engine.ops.cpu.stage_series import Series
from hilboost.engine.separate import (
    SeparateTask,
    TreeDraws,
    TreeGrower,
    grow_separately,
    trees_of,
)
from hilboost.engine.settings import TreeSettings
from hilboost.engine.tree import Tree
from hilboost.engine.tree_data import TreeData


def borrowed(
    settings: TreeSettings, data: TreeData, n_threads: int, sample: RowSample
) -> TreeBuffers:
    """Return working memory for one tree by some threads."""
    table = data.table
    m = table.n_rows if sample.rows is None else len(sample.rows)
    leaves = min(settings.max_leaf_nodes, data.n_rows, 2 ** min(n_levels(settings), 31))
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


def fit_separately(
    settings: TreeSettings,
    data: TreeData,
    sample: RowSample,
    task: SeparateTask,
    seeds: Callable[[], list[int]],
    leaf_of_row: NDArray[np.int32],
    series: Series | None = None,
) -> tuple[list[Tree], TreeGrower]:
    """Fit one tree for each output, each on one thread, in one stage or a series of stages.

    ``leaf_of_row`` (r, n) is written.  The trees lie in the memory of the grower, too.
    """
    spaces = [borrowed(settings, data, 1, sample) for _ in range(data.team.n_threads)]
    try:
        growers = [_grower(settings, data, space, task) for space in spaces]
        draws = _draws_for(settings, data, task, sample.stage, seeds)
        l2 = settings.l2_regularization
        grown = grow_separately(
            task, data.table, draws, l2, growers, data.team, leaf_of_row, series
        )
        n_trees = len(leaf_of_row) * (1 if series is None else int(series.n_fitted[0]))
        return trees_of(grown, n_trees, growers[0].growth.rules.is_category), growers[0]
    finally:
        for space in spaces:
            space.release()


def _grower(
    settings: TreeSettings, data: TreeData, space: TreeBuffers, task: SeparateTask
) -> TreeGrower:
    """Return what a thread grows trees with: the same for all trees of a table and a layout."""
    layout = task.layout.packing, task.width, task.max_weight
    found = space.grower
    if found is None or not found.suits(settings, data.table, layout):
        # Columns and seeds of any tree: each tree replaces them by its own.
        growth = growth_of(settings, data, space, task.packed(space), np.random.default_rng(0))
        found = TreeGrower.of(settings, data.table, layout, growth, space, settings.symmetric)
    space.grower = found = found.from_rows_of(space)
    return found


def _draws_for(
    settings: TreeSettings,
    data: TreeData,
    task: SeparateTask,
    first_stage: int,
    seeds: Callable[[], list[int]],
) -> TreeDraws | None:
    """Draw for trees with a seed each, or return ``None`` if they do not depend on any."""
    part, at_random = settings.max_features_per_tree, task.layout.at_random
    if not (at_random or settings.max_features < 1 or part < 1):
        return None
    found = seeds()
    r = len(task.learned.gradients)
    places = [divmod(number, r) for number in range(len(found))]
    salts = [data.salt(k, first_stage + i) if at_random else np.uint64(0) for i, k in places]
    return TreeDraws.of(found, salts, part, len(data.table.n_values))
