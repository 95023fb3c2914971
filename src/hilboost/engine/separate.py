"""The separate trees of a stage, one for each output, beside each other on the threads of a fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.exact_sums import CHUNK, FIELDS, empty_sums, is_whole, rounded, sum_of
from hilboost.backends.threads import ThreadTeam
from hilboost.core import dtypes
from hilboost.core.dtypes import Floats
from hilboost.core.gradients import Gradients
from hilboost.core.row_sample import RowSample
from hilboost.engine.buffers import TreeBuffers
from hilboost.engine.gradients import Layout, Packed, layout_of
from hilboost.engine.leaves import as_tree
from hilboost.engine.ops.cpu.binned_leaves import WalkScratch, walk_scratch
from hilboost.engine.ops.cpu.category_splits import SET_WORDS, CategorySplits
from hilboost.engine.ops.cpu.fixed_point import TreeGradients
from hilboost.engine.ops.cpu.grown_tree import GrownTree, empty_tree
from hilboost.engine.ops.cpu.growth import Growth
from hilboost.engine.ops.cpu.operations import MOST_BINS
from hilboost.engine.ops.cpu.separate_trees import (
    GrownTrees,
    SeparateTrees,
    StageScratch,
    TreeMemory,
    grow_separate_trees,
)
from hilboost.engine.ops.cpu.stage_series import Series
from hilboost.engine.ops.cpu.sync import ABORT, Threads, new_sync
from hilboost.engine.table import BinnedTable
from hilboost.engine.tree import Tree


@dataclass(frozen=True)
class SeparateTask:
    """Gradients of all outputs, and the rows to learn from."""

    learned: TreeGradients
    weight: Floats  # (n,) or (0,) float64
    rows: NDArray[np.uint32]  # (m,) uint32: (0,) for all rows
    layout: Layout
    max_weight: float  # maximum weight of a row

    @classmethod
    def of(cls, gradients: Gradients, sample: RowSample) -> SeparateTask:
        """Arrange the gradients by output, and choose the layout."""
        n, r = gradients.negative_gradient.shape
        structure = gradients.structure
        logistic, of_probabilities = structure.logistic, structure.of_probabilities
        negative = np.ascontiguousarray(gradients.negative_gradient.T)[..., None]
        hessian = negative if logistic else np.empty((r, n, 0))
        if gradients.hessian is not None:
            hessian = np.ascontiguousarray(gradients.hessian.T)[..., None]
        rows, m = _NO_ROWS, n
        if sample.rows is not None:
            rows = np.ascontiguousarray(sample.rows, dtype=dtypes.ROW)
            m = len(rows)
        curved, weight = hessian.shape[2] > 0, sample.weight
        if weight is None:
            layout = layout_of(curved, of_probabilities, float(m), True, m)
            learned = TreeGradients(negative, hessian, True, logistic)
            return cls(learned, np.empty(0), rows, layout, 1.0)
        whole = is_whole(weight)
        total = float(rounded(sum_of(weight if sample.rows is None else weight[rows])))
        layout = layout_of(curved, of_probabilities, total, whole, m)
        learned = TreeGradients(negative, hessian, whole, logistic)
        return cls(learned, weight, rows, layout, float(weight.max()))

    @property
    def width(self) -> int:
        """How many channels of the gradients of a row are stored."""
        return self.layout.width(1, weighted=len(self.weight) > 0)

    def packed(self, space: TreeBuffers) -> Packed:
        """Memory for the packed gradients of one tree, in the layout of all."""
        n_channels = self.layout.n_channels(1)
        totals = np.zeros(n_channels, dtype=dtypes.PACKED)
        values = space.packed(n_channels, self.width)
        return Packed(values, totals, 1, self.layout.packing, self.max_weight)


@dataclass(frozen=True)
class TreeDraws:
    """Random draws for each of several trees."""

    salts: NDArray[np.uint64]  # (n_trees,) uint64: of random rounding; 0 without
    seeds: NDArray[np.int64]  # (n_trees,) int64: of the columns of nodes
    allowed: NDArray[np.uint8]  # (n_trees, d) uint8: columns of the trees

    @classmethod
    def none(cls, n_trees: int, d: int) -> TreeDraws:
        """Return the draws of trees that do not depend on any."""
        return cls(
            np.zeros(n_trees, dtype=np.uint64),
            np.zeros(n_trees, dtype=np.int64),
            np.ones((n_trees, d), dtype=np.uint8),
        )

    @classmethod
    def of(cls, seeds: list[int], salts: list[np.uint64], part: float, d: int) -> TreeDraws:
        """Draw columns for each tree from its own seed."""
        drawn = cls.none(len(seeds), d)
        drawn.salts[:] = salts
        for k, seed in enumerate(seeds):
            rng = np.random.default_rng(seed)
            skip_one(rng)
            drawn.allowed[k] = drawn_columns(d, part, rng)
            drawn.seeds[k] = rng.integers(2**62)
        return drawn


_NO_ROWS = np.empty(0, dtype=dtypes.ROW)


def skip_one(rng: np.random.Generator) -> None:
    """Skip the number by which gradients were once rounded: later draws remain as they were."""
    rng.integers(2**62)


def drawn_columns(d: int, part: float, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Draw a fraction of the columns for a tree, (d,)."""
    allowed = np.ones(d, dtype=np.uint8)
    if part < 1:
        allowed[:] = 0
        allowed[rng.choice(d, max(1, round(part * d)), replace=False)] = 1
    return allowed


@dataclass(frozen=True)
class StageMemory:
    """Memory that stages of the same number of trees reuse."""

    grown: GrownTrees
    undrawn: TreeDraws  # for trees that do not depend on draws


@dataclass(frozen=True)
class TreeGrower:
    """Memory in which one thread grows trees, one after the other."""

    settings: object
    table: BinnedTable  # shards, which have tables of their own, share memory
    layout: tuple[Any, ...]  # the layout and width of the gradients, and the maximum weight
    alone: Threads
    growth: Growth
    scratch: StageScratch
    walk: WalkScratch  # for rows that trees do not learn from
    summed: Floats | None  # (1, MOST_BINS) float64 or None: for symmetric trees
    # memory for the trees of one or more stages, by their number
    memory: dict[int, StageMemory] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        settings: object,
        table: BinnedTable,
        layout: tuple[Any, ...],
        growth: Growth,
        space: TreeBuffers,
        symmetric: bool,
    ) -> TreeGrower:
        """Allocate the memory that a growth does not contain."""
        scratch = StageScratch(
            np.empty((1, 2, CHUNK)),
            np.empty((2, space.max_leaves, 1, FIELDS), dtype=np.int64),
            empty_sums(3),
            np.empty(space.n_nodes),
        )
        summed = np.empty((1, MOST_BINS)) if symmetric else None
        alone = Threads(0, 1, new_sync())
        walk = walk_scratch(space.n_nodes)
        return cls(settings, table, layout, alone, growth, scratch, walk, summed)

    def suits(self, settings: object, table: BinnedTable, layout: tuple[Any, ...]) -> bool:
        """Whether it can grow such trees from this table, with gradients so arranged."""
        return self.settings is settings and self.table is table and self.layout == layout

    def from_rows_of(self, space: TreeBuffers) -> TreeGrower:
        """Return a grower of trees from as many rows as there are in the memory now."""
        if len(self.growth.buffers.flags) == len(space.rows):
            return self
        n_channels = self.growth.sums.totals.shape[1]
        return replace(self, growth=self.growth._replace(buffers=space.row_buffers(n_channels)))

    def memory_of(self, n_trees: int) -> StageMemory:
        """Memory for so many trees, which are copied out of it."""
        found = self.memory.get(n_trees)
        if found is None:
            grown = _empty_trees(n_trees, self.growth)
            undrawn = TreeDraws.none(n_trees, len(self.table.n_values))
            found = self.memory[n_trees] = StageMemory(grown, undrawn)
        return found

    def grow(
        self,
        team: Threads,
        series: Series | None,
        stage: SeparateTrees,
        grown: GrownTrees,
        leaf_of_row: NDArray[np.int32],
    ) -> None:
        """Grow trees until all of the stage have been taken, or of a series of stages."""
        walk = self.walk if len(stage.rows) else None
        memory = TreeMemory(self.alone, self.growth, self.scratch, walk, self.summed)
        grow_separate_trees(team, series, stage, memory, grown, leaf_of_row)


def grow_separately(
    task: SeparateTask,
    table: BinnedTable,
    draws: TreeDraws | None,
    l2: float,
    growers: Sequence[TreeGrower],
    team: ThreadTeam,
    leaf_of_row: NDArray[np.int32],
    series: Series | None = None,
) -> GrownTrees:
    """Grow one tree for each output, of one stage or of a series; each thread has a grower.

    ``draws`` is ``None`` for trees that do not depend on any.  ``leaf_of_row`` (r, n) is written.
    The trees lie in memory of the first grower.
    """
    n_stages = 1 if series is None else series.n_stages
    memory = growers[0].memory_of(n_stages * len(leaf_of_row))
    stage = _stage(task, table, draws or memory.undrawn, l2)
    sync = new_sync()

    def work(thread: int) -> None:
        threads = Threads(thread, team.n_threads, sync)
        growers[thread].grow(threads, series, stage, memory.grown, leaf_of_row)

    def give_up() -> None:
        sync[ABORT] = 1
        stage.next_tree[0] = len(leaf_of_row)

    team.run(work, on_error=give_up)
    return memory.grown


def _stage(task: SeparateTask, table: BinnedTable, draws: TreeDraws, l2: float) -> SeparateTrees:
    """Inputs from which compiled code grows the trees."""
    weights = task.weight[:, None]
    return SeparateTrees(
        learned=task.learned,
        weights=task.weight,
        column_weights=weights,
        ones=weights[:0],
        rows=task.rows,
        rounding=task.layout.rounding,
        gradient_room=task.layout.gradient_room,
        hessian_room=task.layout.hessian_room,
        salts=draws.salts,
        seeds=draws.seeds,
        allowed=draws.allowed,
        thresholds=table.thresholds,
        l2=float(l2),
        next_tree=np.zeros(1, dtype=np.int64),
    )


def _empty_trees(n_trees: int, growth: Growth) -> GrownTrees:
    """Memory for so many trees."""
    n_nodes, n_leaves = len(growth.nodes.fields), growth.limits.max_leaves
    categories, constraints = growth.categories, growth.constraints
    n_sets = 0 if categories is None else len(categories.left_sets)
    n_bounds = 0 if constraints is None or not constraints.bounds.shape[1] else n_leaves
    return GrownTrees(
        trees=empty_tree(n_trees, n_nodes),
        sizes=np.empty(n_trees, dtype=np.int64),
        depths=np.empty(n_trees, dtype=np.int64),
        left_sets=np.empty((n_trees, n_sets, SET_WORDS), dtype=np.uint64),
        values=np.empty((n_trees, n_leaves, 1)),
        steps=np.empty(n_trees),
        bounds=np.empty((n_trees, n_bounds, 2)),
    )


def within_bounds(values: Floats, bounds: Floats) -> Floats:
    """Values (n_leaves, 1) within the bounds of their leaves, (n_leaves, 2), or (0, 2) for none."""
    return np.clip(values, bounds[:, :1], bounds[:, 1:]) if len(bounds) else values


def trees_of(grown: GrownTrees, n_trees: int, is_category: NDArray[np.uint8]) -> list[Tree]:
    """The first trees, copied at once, which takes less time than one by one.

    Their nodes follow each other: ``■■■■■··|■■■····|■■■■■■·`` becomes ``■■■■■|■■■|■■■■■■``.
    """
    sizes = grown.sizes[:n_trees]
    n_leaves = (sizes + 1) // 2
    is_node = np.arange(grown.trees.column.shape[1]) < sizes[:, None]
    is_leaf = np.arange(grown.values.shape[1]) < n_leaves[:, None]
    nodes = [array[:n_trees][is_node] for array in _of_nodes(grown.trees)]
    bounds = grown.bounds[:n_trees]
    bounds = bounds[is_leaf] if bounds.shape[1] else bounds.reshape(-1, 2)
    values = within_bounds(grown.values[:n_trees][is_leaf], bounds)
    ends, leaf_ends = _ends(sizes), _ends(n_leaves)
    trees = []
    for k in range(n_trees):
        here, leaves = slice(ends[k], ends[k + 1]), slice(leaf_ends[k], leaf_ends[k + 1])
        tree = GrownTree._make([*(array[here] for array in nodes), grown.trees.leaves[k]])
        categories = CategorySplits(is_category, grown.left_sets[k])
        trees.append(as_tree(tree, int(grown.depths[k]), values[leaves], categories))
    return trees


def _of_nodes(trees: GrownTree) -> tuple[NDArray[Any], ...]:
    """The arrays with an entry for each node: all but the last one."""
    return trees[:-1]


def _ends(sizes: NDArray[np.int64]) -> list[int]:
    return [0, *np.cumsum(sizes).tolist()]
