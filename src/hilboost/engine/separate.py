"""The separate trees of a stage, one for each output, beside each other on the threads of a fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.exact_sums import CHUNK, FIELDS, empty_sums, is_whole, rounded, sum_of
from hilboost.core import dtypes
from hilboost.core.gradients import Gradients
from hilboost.core.row_sample import RowSample
from hilboost.engine import next_root
from hilboost.engine.buffers import TreeBuffers
from hilboost.engine.gradients import Packed, layout_of
from hilboost.engine.growth_inputs import borrowed, drawn_columns, growth_of
from hilboost.engine.leaves import as_tree
from hilboost.engine.ops.cpu.batch import DONE, STEP, empty_batch
from hilboost.engine.ops.cpu.binned_leaves import other_rows
from hilboost.engine.ops.cpu.category_splits import SET_WORDS, CategorySplits
from hilboost.engine.ops.cpu.fixed_point import Layout, WeightedGradients
from hilboost.engine.ops.cpu.grow_stages import grow_stages
from hilboost.engine.ops.cpu.growth import Growth
from hilboost.engine.ops.cpu.leaves import LeafRule
from hilboost.engine.ops.cpu.nodes import GrownTree, GrownTrees, empty_trees
from hilboost.engine.ops.cpu.operations import MOST_BINS
from hilboost.engine.ops.cpu.row_order import ROWS_PER_BLOCK
from hilboost.engine.ops.cpu.separate_trees import (
    SeparateTrees,
    StageScratch,
    TreeDraws,
    TreeMemory,
)
from hilboost.engine.ops.cpu.stage_series import ONE_STAGE, Series
from hilboost.engine.ops.cpu.sync import Threads, new_sync
from hilboost.engine.row_order import offsets_of, ranks_of_leaves
from hilboost.engine.settings import TreeSettings
from hilboost.engine.table import BinnedTable
from hilboost.engine.tree import Tree
from hilboost.engine.tree_data import TreeData

Generators = Sequence[Callable[[], np.random.Generator]]
"""The random numbers of each stage."""


@dataclass(frozen=True)
class TreeGrower:
    """Memory in which one thread, or all together, grow trees, one after the other."""

    settings: object
    table: BinnedTable  # shards, which have tables of their own, share memory
    layout: tuple[Any, ...]  # the layout and width of the gradients, and the maximum weight
    inputs: TreeMemory
    # memory for the trees of one or more stages, by their number
    memory: dict[int, tuple[GrownTrees, TreeDraws]] = field(default_factory=dict)

    @property
    def growth(self) -> Growth:
        """The growth of the last tree, but for its packing."""
        return self.inputs.growth

    def suits(self, settings: object, table: BinnedTable, layout: tuple[Any, ...]) -> bool:
        """Whether it can grow such trees from this table, with gradients so arranged."""
        return self.settings is settings and self.table is table and self.layout == layout

    def from_rows_of(self, space: TreeBuffers) -> TreeGrower:
        """Return a grower of trees from as many rows as there are in the memory now."""
        if len(self.growth.buffers.flags) == len(space.rows):
            return self
        n_channels = self.growth.sums.totals.shape[1]
        growth = self.growth._replace(buffers=space.row_buffers(n_channels))
        return replace(self, inputs=self.inputs._replace(growth=growth))

    def memory_of(self, n_trees: int) -> tuple[GrownTrees, TreeDraws]:
        """Memory for so many trees, which are copied out of it, and draws that do not matter."""
        if n_trees not in self.memory:
            undrawn = _no_draws(n_trees, len(self.table.n_values))
            self.memory[n_trees] = _empty_trees(n_trees, self.growth), undrawn
        return self.memory[n_trees]


def fewest_rounded(data: TreeData, gradients: Gradients, sample: RowSample) -> float:
    """Weight of the rows from which on the leaf values of a stage are rounded, or infinity."""
    alone = gradients.structure.residual and gradients.negative_gradient.shape[1] == 1
    may_round = data.plan.rounds and alone and sample.rows is None
    return float(next_root.FEWEST_ROWS) if may_round else np.inf


def fit_separately(
    settings: TreeSettings,
    data: TreeData,
    gradients: Gradients,
    sample: RowSample,
    generators: Generators,
    leaf_of_row: NDArray[np.int32],
    series: Series = ONE_STAGE,
) -> list[Tree]:
    """Fit one tree for each output, in one stage or a series of stages.

    Each grows on one thread, or on all of them where a series has too few trees for that.
    ``leaf_of_row`` (r, n) is written.
    """
    sorts = data.sorts(sample, len(leaf_of_row))
    if not sorts:
        data.bring_rows_back()
    data.forget_tree()
    n_threads, r = data.team.n_threads, len(leaf_of_row)
    n_growers = n_threads if series is ONE_STAGE or data.plan.separates(r) else 1
    stage = _stage(data, gradients, sample, n_growers < n_threads)
    spaces = [borrowed(settings, data, n_threads // n_growers, sample) for _ in range(n_growers)]
    try:
        growers = [_grower(settings, data, space, stage) for space in spaces]
        grown, undrawn = growers[0].memory_of(series.n_stages * r)
        draws = _draws_for(settings, data, stage.layout, r, sample.stage, generators)
        stage = stage._replace(draws=draws or undrawn)

        def work(threads: Threads) -> None:
            memory = growers[threads.number % n_growers].inputs
            grow_stages(threads, series, stage, memory, grown, leaf_of_row)

        data.processor.cooperate(work)
        n_trees = r * int(series.n_fitted[0])
        if sorts:
            growth = growers[0].growth
            leaves = grown.trees.leaves[n_trees - 1, : (int(grown.sizes[n_trees - 1]) + 1) // 2]
            data.sort_rows(leaf_of_row[0], ranks_of_leaves(growth.nodes.fields, leaves))
        return trees_of(grown, n_trees, growers[0].growth.rules.is_category)
    finally:
        for space in spaces:
            space.release()


def _grower(
    settings: TreeSettings, data: TreeData, space: TreeBuffers, stage: SeparateTrees
) -> TreeGrower:
    """Return what a thread grows trees with: the same for all trees of a table and a layout."""
    packing, weights = stage.layout.packing, stage.learned.weights
    width = stage.layout.width(1, weighted=len(weights) > 0)
    max_weight = float(weights.max()) if len(weights) else 1.0
    layout = packing[:-1], width, max_weight, len(stage.offsets) > 0
    found = space.grower
    if found is None or not found.suits(settings, data.table, layout):
        n_threads, n_channels = space.n_threads, stage.layout.n_channels(1)
        totals = np.zeros(n_channels, dtype=dtypes.PACKED)
        packing = packing._replace(steps=packing.steps.copy())  # each tree writes its own
        packed = Packed(space.packed(n_channels, width), totals, 1, packing, max_weight)
        # Columns and seeds of any tree: each tree replaces them by its own.
        growth = growth_of(settings, data, space, packed, np.random.default_rng(0))
        scratch = StageScratch(
            np.empty((n_threads, 2, CHUNK)),
            np.empty((2, space.max_leaves, 1, FIELDS), dtype=np.int64),
            empty_sums(n_threads, 3),
            np.empty((n_threads, 2, n_channels), dtype=np.int64),
            np.empty(space.n_nodes),
            np.empty((n_threads, ROWS_PER_BLOCK if len(stage.offsets) else 0, width), np.int64),
        )
        summed = np.empty((n_threads, MOST_BINS)) if settings.symmetric else None
        others = other_rows(n_threads, data.table.n_rows, space.n_nodes)
        alone = Threads(0, 1, new_sync())
        bounds = None if growth.constraints is None else growth.constraints.bounds
        rule = LeafRule(growth.rules.limits.criterion, packing, growth.sums.totals, bounds)
        inputs = TreeMemory(alone, growth, rule, np.ones(1), scratch, others, summed)
        found = TreeGrower(settings, data.table, layout, inputs)
    space.grower = found = found.from_rows_of(space)
    return found


def _no_draws(n_trees: int, d: int) -> TreeDraws:
    """Return the draws of trees that do not depend on any."""
    salts, seeds = np.zeros(n_trees, dtype=np.uint64), np.zeros(n_trees, dtype=np.int64)
    return TreeDraws(salts, seeds, np.ones((n_trees, d), dtype=np.uint8))


def _draws_for(
    settings: TreeSettings,
    data: TreeData,
    layout: Layout,
    r: int,
    first_stage: int,
    generators: Generators,
) -> TreeDraws | None:
    """Draw for trees with a seed each, or return ``None`` if they do not depend on any."""
    part, d = settings.max_features_per_tree, len(data.table.n_values)
    draws_columns = settings.max_features < 1 or part < 1
    if not (layout.at_random or draws_columns):
        return None
    drawn = _no_draws(len(generators) * r, d)
    if layout.at_random:
        stages = first_stage + np.arange(len(generators))
        drawn.salts[:] = [data.salt(k, stage) for stage in stages.tolist() for k in range(r)]
    if not draws_columns:
        return drawn
    # Raw bits without the last two are what ``integers(2**62)`` returns, in a fifth of its time.
    raw = np.concatenate([generator().bit_generator.random_raw(r) for generator in generators])
    for place, seed in enumerate((raw >> np.uint64(2)).tolist()):
        bits = np.random.PCG64(seed)
        bits.random_raw()  # see skip_one
        if part < 1:
            drawn.allowed[place] = drawn_columns(d, part, np.random.Generator(bits))
        drawn.seeds[place] = bits.random_raw() >> 2
    return drawn


def _stage(data: TreeData, gradients: Gradients, sample: RowSample, in_turn: bool) -> SeparateTrees:
    """Arrange the gradients by output, and choose the layout; draws are yet to come."""
    n, r = gradients.negative_gradient.shape
    structure = gradients.structure
    negative = np.ascontiguousarray(gradients.negative_gradient.T)[..., None]
    hessian = negative if structure.logistic else np.empty((r, n, 0))
    if gradients.hessian is not None:
        hessian = np.ascontiguousarray(gradients.hessian.T)[..., None]
    rows, m = np.empty(0, dtype=dtypes.ROW), n
    if sample.rows is not None:
        rows = np.ascontiguousarray(sample.rows, dtype=dtypes.ROW)
        m = len(rows)
    weights, whole, total = np.empty(0), True, float(m)
    if sample.weight is not None:
        weights, whole = sample.weight, is_whole(sample.weight)
        total = float(rounded(sum_of(weights if sample.rows is None else weights[rows])))
    curved, of_probabilities = hessian.shape[2] > 0, structure.of_probabilities
    batch = empty_batch(1, 0, 1, 0, 0)  # for the steps between trees, which have no nodes
    batch.state[STEP] = DONE
    return SeparateTrees(
        learned=WeightedGradients(negative, hessian, weights, rows, whole, structure.logistic),
        offsets=offsets_of(data.order),
        layout=layout_of(curved, of_probabilities, total, whole, m),
        draws=_no_draws(0, 0),
        thresholds=data.table.thresholds,
        rate=sample.rate or 0.0,  # without one, no value is rounded
        fewest_rounded=fewest_rounded(data, gradients, sample),
        in_turn=in_turn,
        n_begun=np.zeros(1, dtype=np.int64),
        batch=batch,
    )


def _empty_trees(n_trees: int, growth: Growth) -> GrownTrees:
    """Memory for so many trees."""
    n_nodes, n_leaves = len(growth.nodes.fields), growth.limits.max_leaves
    n_sets = 0 if growth.categories is None else len(growth.categories.left_sets)
    return GrownTrees(
        trees=empty_trees(n_trees, n_nodes),
        sizes=np.empty(n_trees, dtype=np.int64),
        depths=np.empty(n_trees, dtype=np.int64),
        left_sets=np.empty((n_trees, n_sets, SET_WORDS), dtype=np.uint64),
        values=np.empty((n_trees, n_leaves, 1)),
    )


def trees_of(grown: GrownTrees, n_trees: int, is_category: NDArray[np.uint8]) -> list[Tree]:
    """Copy the first trees out of the memory in which the next ones grow, all at once."""
    most, trees = int(grown.sizes[:n_trees].max()), []
    arrays = [array[:n_trees, :most].copy() for array in grown.trees]
    leaf_values = grown.values[:n_trees, : (most + 1) // 2].copy()
    for k, size in enumerate(grown.sizes[:n_trees].tolist()):
        tree = GrownTree._make([array[k, :size] for array in arrays])
        values = leaf_values[k, : (size + 1) // 2]
        categories = CategorySplits(is_category, grown.left_sets[k])
        trees.append(as_tree(tree, int(grown.depths[k]), values, categories))
    return trees
