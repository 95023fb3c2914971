"""Trees of one or several stages: gradients to fixed point, growth, leaf values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from hilboost.core import dtypes
from hilboost.core.dtypes import Floats
from hilboost.core.gradients import Gradients
from hilboost.core.row_sample import RowSample
from hilboost.engine.driver import grow_tree
from hilboost.engine.gradients import pack
from hilboost.engine.growth_inputs import borrowed, growth_of, projected, skip_one
from hilboost.engine.leaves import as_tree, grown_tree, leaf_of_rows, newton_steps
from hilboost.engine.next_root import NextRoot
from hilboost.engine.ops.cpu.fixed_point import WeightedGradients
from hilboost.engine.ops.cpu.growth import Growth
from hilboost.engine.ops.cpu.leaf_rounding import round_values, steps_of_totals, unit_of_outputs
from hilboost.engine.ops.cpu.nodes import BIN, COLUMN, N_NODES
from hilboost.engine.ops.cpu.stage_series import ONE_STAGE, Series
from hilboost.engine.row_order import ranks_of_leaves
from hilboost.engine.separate import Generators, fewest_rounded, fit_separately
from hilboost.engine.settings import TreeSettings, VectorSettings
from hilboost.engine.table import BinnedTable
from hilboost.engine.tree import Tree
from hilboost.engine.tree_data import TreeData

_Arrays = TypeVar("_Arrays", Gradients, RowSample)


def fit_stages(
    settings: TreeSettings | VectorSettings,
    data: TreeData,
    gradients: Gradients,
    sample: RowSample,
    generators: Generators,
    series: Series = ONE_STAGE,
) -> tuple[list[Tree], NDArray[np.int32]]:
    """Fit one shared tree, or one tree for each output, in one stage or a series of stages.

    Returns the trees, one stage after the other, and the leaf of each row in the trees of the last
    stage, (n_trees, n).  A series computes its gradients in the memory of the given ones.
    """
    gradients = _writable(gradients, "negative_gradient", "hessian")
    sample = _writable(sample, "rows", "weight")
    n, r = gradients.negative_gradient.shape
    leaves = np.empty((1 if settings.shared else r, n), dtype=dtypes.LEAF)
    is_alone = data.plan.separates(r) and not data.sorts(sample, r)
    if series is not ONE_STAGE or is_alone:
        own = cast("TreeSettings", settings)
        return fit_separately(own, data, gradients, sample, generators, leaves, series), leaves
    groups = [slice(0, r)] if settings.shared else [slice(k, k + 1) for k in range(r)]
    rng = generators[0]()
    fit: Callable[..., Tree] = data.plan.fit_tree or fit_tree
    trees = [
        fit(settings, data, gradients, columns, sample, rng, leaf_of_row)
        for columns, leaf_of_row in zip(groups, leaves, strict=True)
    ]
    return trees, leaves


def _writable(given: _Arrays, *names: str) -> _Arrays:
    """Copy read-only arrays, whose type is another one, for which code would be compiled again."""
    arrays = {name: getattr(given, name) for name in names}
    read_only = {k: a.copy() for k, a in arrays.items() if a is not None and not a.flags.writeable}
    return replace(given, **read_only) if read_only else given


def _values(
    settings: TreeSettings,
    data: TreeData,
    growth: Growth,
    leaves: NDArray[np.int64],
    newton: Callable[[], Floats],  # the exact Newton steps
    fewest_rounded: float,
    rate: float | None,
) -> Floats:
    """The values of the leaves with these node numbers, rounded if there are many rows."""
    packing, totals = growth.rules.packing, growth.sums.totals
    unit = unit_of_outputs(packing, totals[0, 0], fewest_rounded)
    values, multiples = np.empty((len(leaves), 1)), np.empty(len(leaves))
    l2 = float(settings.l2_regularization)
    if not steps_of_totals(packing, leaves, totals, l2, unit, values):
        values = newton().copy()
    if settings.monotonic:
        assert growth.constraints is not None
        lower, upper = growth.constraints.bounds[leaves].swapaxes(0, 1)
        values = np.clip(values, lower, upper)
    is_rounded = rate is not None and round_values(unit, rate, values, multiples)
    if is_rounded and data.next_root is not None:
        data.next_root.note_steps(2 * multiples)
    return values


def fit_tree(
    settings: TreeSettings,
    data: TreeData,
    gradients: Gradients,
    columns: slice,
    sample: RowSample,
    rng: np.random.Generator,
    leaf_of_row: NDArray[np.int32],
) -> Tree:
    """Fit one tree to some outputs on all threads, and write the leaf of each row."""
    rng = np.random.default_rng(int(rng.integers(2**62)))
    if sample.rows is not None:
        data.bring_rows_back()
    next_root = _next_root(settings, data, gradients, sample)
    learned, team = _learned(gradients, columns, sample), data.team
    space = borrowed(settings, data, team.n_threads, sample)
    try:
        space.write_rows(sample.rows, team)
        sketched, salt = _sketched(settings, learned, rng), data.salt(columns.start, sample.stage)
        of_probabilities = gradients.structure.of_probabilities
        packed = pack(space, sketched, of_probabilities, salt, data, next_root)
        growth = growth_of(settings, data, space, packed, rng)
        if packed.compact is None:
            next_root = None
        elif next_root is not None:
            growth = next_root.carried(growth, space, team)
        _grow(settings, growth, data, sample)
        thresholds, is_category = _thresholds(growth, data.table), growth.rules.is_category
        grown, depth = grown_tree(growth.nodes, thresholds, is_category)
        leaves = grown.leaves
        leaf_at = None if next_root is None or not next_root.by_leaves else space.flags
        in_order = data.operations.in_order
        if in_order:
            leaf_of_rows(team, growth, leaves, leaf_of_row, data.order, leaf_at)
        else:
            leaf_of_row[:] = -1
        if next_root is not None:
            next_root.note_tree(growth, leaves, space.flags, space)
        if sample.rows is not None or not in_order:
            data.operations.walk(growth, grown, leaf_of_row)
        fewest, l2 = fewest_rounded(data, gradients, sample), settings.l2_regularization
        newton = partial(newton_steps, data.operations, growth, leaves, learned, l2, data.share)
        values = _values(settings, data, growth, leaves, newton, fewest, sample.rate)
        tree = as_tree(grown, depth, values, growth.categories)
    finally:
        space.release()
    if sample.rows is None:
        data.sort_rows(leaf_of_row, ranks_of_leaves(growth.nodes.fields, leaves))
    return tree


def _next_root(
    settings: TreeSettings, data: TreeData, gradients: Gradients, sample: RowSample
) -> NextRoot | None:
    """Return what carries the histogram of the root to the next tree, if that saves time."""
    next_root = data.next_root
    if next_root is None:
        return None
    next_root.by_leaves = gradients.structure.residual
    is_plain = data.n_sorts == 0 and sample.weight is None and sample.rows is None
    alone = gradients.negative_gradient.shape[1] == 1
    if is_plain and alone and next_root.suits(data.n_rows, settings.max_leaf_nodes):
        return next_root
    next_root.forget()
    return None


def _learned(gradients: Gradients, columns: slice, sample: RowSample) -> WeightedGradients:
    """Gradients, hessians and weights of some outputs, contiguous.

    Hessians that are derived from the gradients are these.
    """
    negative = np.ascontiguousarray(gradients.negative_gradient[:, columns])
    logistic = gradients.structure.logistic
    hessian = negative if logistic else np.empty((len(negative), 0))
    if gradients.hessian is not None and not logistic:
        hessian = np.ascontiguousarray(gradients.hessian[:, columns])
    weight = np.empty(0) if sample.weight is None else sample.weight
    rows = np.empty(0, dtype=dtypes.ROW) if sample.rows is None else sample.rows
    return WeightedGradients(negative, hessian, weight, rows, logistic)


def _sketched(
    settings: TreeSettings, learned: WeightedGradients, rng: np.random.Generator
) -> WeightedGradients:
    """Return the gradients on which a tree is grown: the given ones, or projections of them."""
    sketch = settings.sketch if settings.shared else None
    gradients = projected(learned.gradients, sketch, rng)
    skip_one(rng)
    if gradients is learned.gradients:
        return learned
    return learned._replace(gradients=gradients, hessians=learned.hessians[:, :0])


def _grow(settings: TreeSettings, growth: Growth, data: TreeData, sample: RowSample) -> None:
    """Grow the tree from its root, in the order of the settings."""
    if data.plan.operations is None:
        data.processor.grow(growth, settings.symmetric)
        return
    counted = sample.weight is None and growth.rules.packing.count_step == 1.0
    grow_tree(growth, data.plan.operations, data.share, counted)


def _thresholds(growth: Growth, table: BinnedTable) -> Floats:
    """The thresholds at the cuts of the nodes, (n_nodes,)."""
    fields = growth.nodes.fields[: growth.nodes.control[N_NODES]]
    return table.thresholds[fields[:, COLUMN], fields[:, BIN]]
