"""Buffer pool for tree growth."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from hilboost.core.row_sample import RowSample
from hilboost.engine.buffers import TreeBuffers
from hilboost.engine.driver import n_spare_leaves
from hilboost.engine.growth_inputs import growth_of, n_levels
from hilboost.engine.separate import SeparateTask, TreeDraws, TreeGrower
from hilboost.engine.settings import TreeSettings
from hilboost.engine.tree_data import TreeData


def one_thread_each(n_trees: int, n_threads: int) -> bool:
    """Whether each tree is grown by one thread, and not by all of them together."""
    return n_trees >= n_threads


def each_by_one_thread(settings: TreeSettings, data: TreeData, r: int) -> bool:
    """Return whether each tree is grown by one thread, and not by all of them together.

    Symmetric trees keep histograms of all leaves, for which several at once need more memory.
    """
    n_threads = data.team.n_threads
    if settings.shared or data.operations or (settings.symmetric and n_threads > 1):
        return False
    return one_thread_each(r, n_threads)


def borrowed(
    settings: TreeSettings, data: TreeData, n_threads: int, sample: RowSample
) -> TreeBuffers:
    """Return working memory for one tree by some threads."""
    table = data.table
    m = table.n_rows if sample.rows is None else len(sample.rows)
    leaves = min(settings.max_leaf_nodes, data.n_rows, 2 ** min(n_levels(settings), 31))
    space = TreeBuffers.borrow(
        data.buffers,
        n_rows=table.n_rows,
        n_columns=len(table.n_values),
        n_bins=table.n_bins,
        n_threads=min(n_threads, len(table.n_values)),
        max_leaves=leaves,
        spare_leaves=0 if data.operations is None else n_spare_leaves(leaves),
        has_sets=int(bool(settings.categorical)),
        keeps_all=int(settings.symmetric),
    )
    space.learn_from(m)
    return space


@contextmanager
def borrowed_growers(
    settings: TreeSettings, data: TreeData, sample: RowSample, task: SeparateTask
) -> Iterator[list[TreeGrower]]:
    """Lend every thread a grower of separate trees."""
    spaces = [borrowed(settings, data, 1, sample) for _ in range(data.team.n_threads)]
    try:
        yield [_grower(settings, data, space, task) for space in spaces]
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


def draws_for(
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
