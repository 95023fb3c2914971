"""The separate trees of a stage, one for each output, beside each other on the threads of a fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.exact_sums import CHUNK, FIELDS, empty_sums, is_whole, rounded, sum_of
from hilboost.backends.fixed_point import TreeGradients
from hilboost.backends.sync import Threads
from hilboost.backends.threads import ThreadTeam
from hilboost.backends.trees.binned_leaves import WalkScratch, walk_scratch
from hilboost.backends.trees.category_splits import SET_WORDS, CategorySplits
from hilboost.backends.trees.grow import Growth
from hilboost.backends.trees.grown_tree import GrownTree, empty_tree
from hilboost.backends.trees.nodes import N_NODE_FIELDS
from hilboost.backends.trees.separate_trees import (
    GrownTrees,
    SeparateTrees,
    StageScratch,
    find_other_leaves,
    grow_separate_trees,
)
from hilboost.core import dtypes
from hilboost.core.dtypes import Floats
from hilboost.core.gradients import Gradients
from hilboost.core.row_sample import RowSample
from hilboost.learners.tree.binning import BinnedTable
from hilboost.learners.tree.buffers import TreeBuffers
from hilboost.learners.tree.growth import MOST_BINS
from hilboost.learners.tree.leaves import as_tree
from hilboost.learners.tree.packing import Packed, TreeLayout, layout_of_trees
from hilboost.learners.tree.tree import Tree


@dataclass(frozen=True)
class SeparateTask:
    """Gradients of all outputs, and the rows to learn from.

    Attributes
    ----------
    learned : TreeGradients
    weight : (n,) or (0,) float64
    rows : (m,) uint32
        (0,) for all rows.
    layout : TreeLayout
    max_weight : float
        Maximum weight of a row.
    """

    learned: TreeGradients
    weight: Floats
    rows: NDArray[np.uint32]
    layout: TreeLayout
    max_weight: float

    @classmethod
    def of(cls, gradients: Gradients, sample: RowSample) -> SeparateTask:
        """Arrange the gradients by output, and choose the layout."""
        n, r = gradients.negative_gradient.shape
        hessian = np.empty((r, n, 0))
        if gradients.hessian is not None:
            hessian = np.ascontiguousarray(gradients.hessian.T)[..., None]
        negative = np.ascontiguousarray(gradients.negative_gradient.T)[..., None]
        rows, m = _NO_ROWS, n
        if sample.rows is not None:
            rows = np.ascontiguousarray(sample.rows, dtype=dtypes.ROW)
            m = len(rows)
        curved, weight = gradients.hessian is not None, sample.weight
        if weight is None:
            layout = layout_of_trees(curved, False, float(m), True, m)
            return cls(TreeGradients(negative, hessian, True), np.empty(0), rows, layout, 1.0)
        whole = is_whole(weight)
        total = float(rounded(sum_of(weight if sample.rows is None else weight[rows])))
        layout = layout_of_trees(curved, True, total, whole, m)
        learned = TreeGradients(negative, hessian, whole)
        return cls(learned, weight, rows, layout, float(weight.max()))

    def packed(self, space: TreeBuffers) -> Packed:
        """Memory for the packed gradients of one tree, in the layout of all."""
        n_channels = self.layout.n_channels
        totals = np.zeros(n_channels, dtype=dtypes.PACKED)
        values = space.packed(n_channels, self.layout.width)
        return Packed(values, totals, 1, self.layout.packing, self.max_weight)


@dataclass(frozen=True)
class TreeDraws:
    """What is drawn for each of several trees.

    Attributes
    ----------
    salts : (n_trees,) uint64
        Of random rounding; 0 without.
    seeds : (n_trees,) int64
        Of the columns of nodes.
    allowed : (n_trees, d) uint8
        Columns of the trees.
    """

    salts: NDArray[np.uint64]
    seeds: NDArray[np.int64]
    allowed: NDArray[np.uint8]

    @classmethod
    def none(cls, n_trees: int, d: int) -> TreeDraws:
        """Return the draws of trees that do not depend on any."""
        return cls(
            np.zeros(n_trees, dtype=np.uint64),
            np.zeros(n_trees, dtype=np.int64),
            np.ones((n_trees, d), dtype=np.uint8),
        )

    @classmethod
    def of(cls, seeds: list[int], at_random: bool, part: float, d: int) -> TreeDraws:
        """Draw for each tree from its own seed."""
        drawn = cls.none(len(seeds), d)
        for k, seed in enumerate(seeds):
            rng = np.random.default_rng(seed)
            salt = int(rng.integers(2**62)) | 1
            drawn.salts[k] = salt if at_random else 0
            drawn.allowed[k] = drawn_columns(d, part, rng)
            drawn.seeds[k] = rng.integers(2**62)
        return drawn


_NO_ROWS = np.empty(0, dtype=dtypes.ROW)


def drawn_columns(d: int, part: float, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Draw a fraction of the columns for a tree, (d,)."""
    allowed = np.ones(d, dtype=np.uint8)
    if part < 1:
        allowed[:] = 0
        allowed[rng.choice(d, max(1, round(part * d)), replace=False)] = 1
    return allowed


@dataclass(frozen=True)
class StageMemory:
    """What the stages of so many trees reuse.

    Attributes
    ----------
    grown : GrownTrees
    undrawn : TreeDraws
        For trees that do not depend on draws.
    """

    grown: GrownTrees
    undrawn: TreeDraws


@dataclass(frozen=True)
class TreeGrower:
    """What one thread grows trees with, one after the other.

    Attributes
    ----------
    learner : object
    table : BinnedTable
        Shards, which have tables of their own, share memory.
    layout : tuple
        The layout and width of the gradients, and the maximum weight.
    alone : Threads
    growth : Growth
    scratch : StageScratch
    walk : WalkScratch
    summed : (1, MOST_BINS) float64 or None
        For symmetric trees.
    memory : dict
        Memory for the trees of a stage, by their number and whether they learn from a sample.
    """

    learner: object
    table: BinnedTable
    layout: tuple[Any, ...]
    alone: Threads
    growth: Growth
    scratch: StageScratch
    walk: WalkScratch
    summed: Floats | None
    memory: dict[tuple[int, bool], StageMemory] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        learner: object,
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
        alone, walk = Threads(0, 1, space.sync), walk_scratch(space.n_nodes)
        return cls(learner, table, layout, alone, growth, scratch, walk, summed)

    def suits(self, learner: object, table: BinnedTable, layout: tuple[Any, ...]) -> bool:
        """Whether it can grow trees of this learner from this table, with gradients so arranged."""
        return self.learner is learner and self.table is table and self.layout == layout

    def from_rows_of(self, space: TreeBuffers) -> TreeGrower:
        """Return a grower of trees from as many rows as there are in the memory now."""
        if len(self.growth.buffers.flags) == len(space.rows):
            return self
        n_channels = self.growth.sums.totals.shape[1]
        return replace(self, growth=self.growth._replace(buffers=space.row_buffers(n_channels)))

    def memory_of(self, n_trees: int, sampled: bool) -> StageMemory:
        """Memory for the trees of a stage, which are copied out of it."""
        found = self.memory.get((n_trees, sampled))
        if found is None:
            grown = _empty_trees(n_trees, self.growth, sampled)
            undrawn = TreeDraws.none(n_trees, len(self.table.n_values))
            found = self.memory[n_trees, sampled] = StageMemory(grown, undrawn)
        return found

    def grow(self, stage: SeparateTrees, grown: GrownTrees, leaf_of_row: NDArray[np.int32]) -> None:
        """Grow trees of a stage until all have been taken."""
        memory = self.growth, self.scratch, self.summed
        grow_separate_trees(self.alone, stage, *memory, grown, leaf_of_row)


def one_thread_each(n_trees: int, n_threads: int) -> bool:
    """Whether each tree is grown by one thread, and not by all of them together."""
    return n_trees >= n_threads


def grow_separately(
    task: SeparateTask,
    table: BinnedTable,
    draws: TreeDraws | None,
    l2: float,
    growers: Sequence[TreeGrower],
    team: ThreadTeam,
    leaf_of_row: NDArray[np.int32],
) -> list[Tree]:
    """Grow one tree for each output; each thread has a grower.

    ``draws`` is ``None`` for trees that do not depend on any.  ``leaf_of_row`` (n_trees, n) is
    written.
    """
    first, sampled = growers[0], len(task.rows) > 0
    memory = first.memory_of(len(leaf_of_row), sampled)
    stage = _stage(task, table, draws or memory.undrawn, l2)
    grown = memory.grown
    is_category = first.growth.rules.is_category

    def work(thread: int) -> None:
        growers[thread].grow(stage, grown, leaf_of_row)

    def walk(thread: int) -> None:
        given = table.bins, is_category, growers[thread].walk, grown, leaf_of_row
        find_other_leaves(thread, team.n_threads, *given)

    def take_no_more() -> None:
        stage.next_tree[0] = len(grown.sizes)

    team.run(work, on_error=take_no_more)
    if sampled:
        team.run(walk)
    return [_tree(grown, k, is_category) for k in range(len(grown.sizes))]


def _stage(task: SeparateTask, table: BinnedTable, draws: TreeDraws, l2: float) -> SeparateTrees:
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


def _empty_trees(n_trees: int, growth: Growth, sampled: bool) -> GrownTrees:
    """Memory for the trees of a stage."""
    n_nodes, n_leaves = len(growth.nodes.fields), growth.limits.max_leaves
    categories, constraints = growth.categories, growth.constraints
    n_sets = 0 if categories is None else len(categories.left_sets)
    n_bounds = 0 if constraints is None or not constraints.bounds.shape[1] else n_leaves
    return GrownTrees(
        trees=empty_tree(n_trees, n_nodes),
        sizes=np.empty(n_trees, dtype=np.int64),
        depths=np.empty(n_trees, dtype=np.int64),
        nodes=np.empty((n_trees, n_nodes if sampled else 0, N_NODE_FIELDS), dtype=np.int64),
        left_sets=np.empty((n_trees, n_sets, SET_WORDS), dtype=np.uint64),
        values=np.empty((n_trees, n_leaves, 1)),
        steps=np.empty(n_trees),
        bounds=np.empty((n_trees, n_bounds, 2)),
    )


def within_bounds(values: Floats, grown: GrownTrees, k: int) -> Floats:
    """The values (n_leaves, 1) of the leaves of one of the trees, within their bounds, if any."""
    if not grown.bounds.shape[1]:
        return values
    bounds = grown.bounds[k, : len(values)]
    return np.clip(values, bounds[:, :1], bounds[:, 1:])


def _tree(grown: GrownTrees, k: int, is_category: NDArray[np.uint8]) -> Tree:
    """One of the trees, in memory of its own."""
    size = int(grown.sizes[k])
    n_leaves = (size + 1) // 2
    all_trees = grown.trees
    tree = GrownTree(
        column=all_trees.column[k, :size].copy(),
        threshold=all_trees.threshold[k, :size].copy(),
        missing_right=all_trees.missing_right[k, :size].copy(),
        child=all_trees.child[k, :size].copy(),
        gain=all_trees.gain[k, :size].copy(),
        leaf_number=all_trees.leaf_number[k, :size].copy(),
        leaves=all_trees.leaves[k, :n_leaves],
    )
    values = within_bounds(grown.values[k, :n_leaves].copy(), grown, k)
    categories = CategorySplits(is_category, grown.left_sets[k])
    return as_tree(tree, int(grown.depths[k]), values, categories)
