"""Trees of one stage: gradients to fixed point, growth, leaf values."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hilboost.core import dtypes
from hilboost.core.base_model import Term
from hilboost.core.dtypes import Floats
from hilboost.core.fitted_term import FittedTerm
from hilboost.core.gradients import Gradients
from hilboost.core.row_sample import RowSample
from hilboost.engine.buffer_pool import borrowed, fit_separately
from hilboost.engine.buffers import TreeBuffers
from hilboost.engine.constraints import MonotonicOrder
from hilboost.engine.driver import arrays_by_node, grow_tree, renumber
from hilboost.engine.gradients import columns_of, pack
from hilboost.engine.growth_inputs import category_splits, growth_of
from hilboost.engine.leaves import (
    leaf_gradients,
    leaf_of_rows,
    leaves_of_others,
    newton_steps,
    tree_of,
)
from hilboost.engine.next_root import NextRoot, rounded_values, steps_of_totals, unit_of_outputs
from hilboost.engine.ops.cpu.batch import N_TREE
from hilboost.engine.ops.cpu.column_splits import Packing
from hilboost.engine.ops.cpu.fixed_point import WeightedGradients
from hilboost.engine.ops.cpu.growth import Growth
from hilboost.engine.ops.cpu.nodes import BIN, COLUMN, N_NODES, ROOT_GIVEN, SPARE, open_root
from hilboost.engine.ops.cpu.operations import CpuOperations
from hilboost.engine.row_order import ranks_of_leaves
from hilboost.engine.separate import (
    SeparateTask,
    TreeGrower,
    skip_one,
    within_bounds,
)
from hilboost.engine.settings import TreeSettings
from hilboost.engine.tree import Tree
from hilboost.engine.tree_data import TreeData


def fit_trees(
    settings: TreeSettings,
    data: TreeData,
    gradients: Gradients,
    sample: RowSample,
    seeds: list[int],
) -> list[FittedTerm]:
    """Fit one shared tree, or one tree for each output, with a seed each."""
    r = gradients.negative_gradient.shape[1]
    alone = data.plan.separates(r)
    if _next_root(settings, data, gradients, sample) is None:
        data.forget_tree()
    by_position = data.may_be_sorted and sample.rows is None and not (alone and r > 1)
    if not by_position:
        data.bring_rows_back()
    if alone and not by_position:
        return _fit_separately(settings, data, gradients, sample, seeds)
    groups = [slice(0, r)] if settings.shared else [slice(k, k + 1) for k in range(r)]
    return [
        fit_tree(settings, data, gradients, columns, sample, seed)
        for columns, seed in zip(groups, seeds, strict=True)
    ]


def _rounds(data: TreeData, gradients: Gradients, sample: RowSample) -> bool:
    """Return whether leaf values may be rounded."""
    alone = gradients.structure.residual and gradients.negative_gradient.shape[1] == 1
    return data.plan.rounds and alone and sample.rows is None


def _next_root(
    settings: TreeSettings, data: TreeData, gradients: Gradients, sample: RowSample
) -> NextRoot | None:
    """Return what carries the histogram of the root to the next tree, if that saves time."""
    found = data.next_root
    if found is None or data.n_sorts > 0 or sample.weight is not None:
        return None
    if sample.rows is not None or gradients.negative_gradient.shape[1] > 1:
        return None
    found.by_leaves = gradients.structure.residual
    return found if found.suits(data.n_rows, settings.max_leaf_nodes) else None


def _fit_separately(
    settings: TreeSettings,
    data: TreeData,
    gradients: Gradients,
    sample: RowSample,
    seeds: list[int],
) -> list[FittedTerm]:
    """Fit one tree for each output, each on one thread."""
    task = SeparateTask.of(gradients, sample)
    leaves = np.empty((len(seeds), data.table.n_rows), dtype=dtypes.LEAF)
    trees, grower = fit_separately(settings, data, sample, task, lambda: seeds, leaves)
    if _rounds(data, gradients, sample):
        trees = [_rounded(settings, trees[0], grower, task.layout.packing, sample, data)]
    return [_fitted(settings, k, tree, leaves[k]) for k, tree in enumerate(trees)]


def _rounded(
    settings: TreeSettings,
    tree: Tree,
    grower: TreeGrower,
    packing: Packing,
    sample: RowSample,
    data: TreeData,
) -> Tree:
    """Return the only tree of a stage with values by the packed sums of its leaves, if possible."""
    grown, totals = grower.memory_of(1).grown, grower.growth.sums.totals[:, 0]
    packing = packing._replace(gradient_step=float(grown.steps[0]))
    unit = unit_of_outputs(packing, int(totals[0]))
    of_leaves = totals[grown.trees.leaves[0, : len(tree.leaf_values)]]
    values = steps_of_totals(packing, of_leaves, settings.l2_regularization, unit)
    if values is None:
        values = tree.values
    else:
        values = within_bounds(values, grown.bounds[0, : len(values)])
    return tree.with_values(rounded_values(values, unit, sample.rate, data.next_root))


def _fitted(
    settings: TreeSettings, k: int, tree: Tree, leaf_of_row: NDArray[np.int32]
) -> FittedTerm:
    """Return the term of output ``k``."""
    order = MonotonicOrder.of(tree, settings.monotonic) if settings.monotonic else None
    term = Term.of(tree, slice(k, k + 1))
    return FittedTerm(term, leaves=leaf_of_row, order=order, newton=True)


def fit_tree(
    settings: TreeSettings,
    data: TreeData,
    gradients: Gradients,
    columns: slice,
    sample: RowSample,
    seed: int,
) -> FittedTerm:
    """Fit one tree to some outputs, on all threads."""
    table, team = data.table, data.team
    negative, hessian = columns_of(gradients, columns)
    logistic, of_probabilities = gradients.structure.logistic, gradients.structure.of_probabilities
    weight = np.empty(0) if sample.weight is None else sample.weight
    rng = np.random.default_rng(seed)
    space = borrowed(settings, data, team.n_threads, sample)
    next_root = _next_root(settings, data, gradients, sample)
    try:
        salt = data.salt(columns.start, sample.stage)
        weighted = _projected(
            settings, space, (negative, hessian, logistic), weight, sample, data, rng
        )
        packed = pack(
            space, weighted, of_probabilities, salt, team, data.share, data.order, next_root
        )
        growth = growth_of(settings, data, space, packed, rng)
        next_root = next_root if packed.compact is not None else None
        is_given, n_spare = False, 0
        if next_root is not None:
            growth = next_root.keeping(growth)
            is_given = next_root.write(growth, space, team)
            n_spare = next_root.spare_rows(growth)
        open_root(space.nodes, len(space.rows), int(rng.integers(2**62)))
        space.nodes.control[[ROOT_GIVEN, SPARE]] = is_given, n_spare
        _grow(settings, growth, space, data, sample)
        nodes = space.nodes.fields[: int(space.nodes.control[N_NODES])]
        thresholds = table.thresholds[nodes[:, COLUMN], nodes[:, BIN]]
        categories = category_splits(settings, table, space)
        tree, leaves = tree_of(nodes, space.nodes.gains, thresholds, categories)
        leaf_of_row = np.empty(table.n_rows, dtype=dtypes.LEAF)
        leaf_at = None if next_root is None or not next_root.by_leaves else space.flags
        leaf_of_rows(team, nodes, leaves, space.places, leaf_of_row, data.order, leaf_at)
        if next_root is not None:
            next_root.note_tree(nodes, leaves, space.flags, packed.packing, space)
        if sample.rows is not None:
            leaves_of_others(team, table.bins, nodes, tree, categories, leaf_of_row)
        unit, l2 = 0.0, settings.l2_regularization
        if _rounds(data, gradients, sample):
            unit = unit_of_outputs(packed.packing, int(packed.totals[0]))
        values = steps_of_totals(packed.packing, growth.sums.totals[leaves, 0], l2, unit)
        if values is None:
            exact = leaf_gradients(negative, hessian, logistic, weight, l2, data.share)
            values = newton_steps(team, nodes, leaves, space.places, exact, data.share)
        order = None
        if settings.monotonic:
            order = MonotonicOrder.of(tree, settings.monotonic)
            assert growth.constraints is not None
            lower, upper = growth.constraints.bounds[leaves].swapaxes(0, 1)
            values = np.clip(values, lower, upper)
    finally:
        space.release()
    if sample.rows is None:
        data.sort_rows(leaf_of_row, ranks_of_leaves(nodes, leaves))
    values = rounded_values(values, unit, sample.rate, data.next_root)
    term = Term.of(tree.with_values(values), columns)
    return FittedTerm(term, leaves=leaf_of_row, order=order, newton=True)


def _grow(
    settings: TreeSettings, growth: Growth, space: TreeBuffers, data: TreeData, sample: RowSample
) -> None:
    """Grow the tree from its root, in the order of the settings."""
    if data.plan.operations is None:
        CpuOperations(data.team, space.n_threads).grow(growth, settings.symmetric)
        if len(space.batch.divided) > 1 and not settings.symmetric:
            order = space.batch.tree[: space.batch.state[N_TREE]]
            renumber(space.nodes, arrays_by_node(growth), order)
        return
    counted = sample.weight is None and growth.rules.packing.count_step == 1.0
    grow_tree(growth, data.plan.operations, data.share, counted)


def _projected(
    settings: TreeSettings,
    space: TreeBuffers,
    learned: tuple[Floats, Floats, bool],
    weight: Floats,
    sample: RowSample,
    data: TreeData,
    rng: np.random.Generator,
) -> WeightedGradients:
    """Return the gradients of the training rows, or projections of them.

    ``learned`` are gradients, hessians, and whether the latter are derived from gradients.
    """
    negative, hessian, logistic = learned
    r = negative.shape[1]
    k = r if settings.sketch is None or not settings.shared else min(r, settings.sketch)
    if k < r:
        projection = rng.normal(size=(r, k)) / np.sqrt(k)
        negative, hessian = np.ascontiguousarray(negative @ projection), hessian[:, :0]
    if sample.rows is None:
        space.learn_from_all(data.team)
    else:
        space.rows[:] = sample.rows
    skip_one(rng)
    rows = space.rows[:0] if sample.rows is None else space.rows
    return WeightedGradients(negative, hessian, weight, rows, logistic)
