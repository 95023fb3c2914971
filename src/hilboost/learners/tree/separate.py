"""The separate trees of a stage, one for each output, beside each other on the threads of a fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.exact_sums import CHUNK, FIELDS, is_whole
from hilboost.backends.fixed_point import TreeGradients
from hilboost.backends.sync import Threads
from hilboost.backends.threads import ThreadTeam
from hilboost.backends.trees.category_splits import SET_WORDS, CategorySplits
from hilboost.backends.trees.grow import Growth
from hilboost.backends.trees.grown_tree import GrownTree, empty_tree
from hilboost.backends.trees.nodes import N_NODE_FIELDS
from hilboost.backends.trees.separate_trees import (
    GrownTrees,
    SeparateTrees,
    StageScratch,
    grow_separate_trees,
)
from hilboost.core import dtypes
from hilboost.core.dtypes import Floats
from hilboost.core.gradients import Gradients
from hilboost.core.row_sample import RowSample
from hilboost.learners.tree.binning import BinnedTable
from hilboost.learners.tree.buffers import TreeBuffers
from hilboost.learners.tree.growth import MOST_BINS
from hilboost.learners.tree.leaves import as_tree, leaves_of_others
from hilboost.learners.tree.packing import Packed, TreeScales, scales_of_trees
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
    n_learned : int
    scales : TreeScales
    """

    learned: TreeGradients
    weight: Floats
    rows: NDArray[np.uint32]
    n_learned: int
    scales: TreeScales

    @classmethod
    def of(cls, gradients: Gradients, sample: RowSample, team: ThreadTeam) -> SeparateTask:
        """Arrange the gradients by output, and choose the scales."""
        n, r = gradients.negative_gradient.shape
        weight = np.empty(0) if sample.weight is None else sample.weight
        hessian = np.empty((r, n, 0))
        if gradients.hessian is not None:
            hessian = np.ascontiguousarray(gradients.hessian.T)[..., None]
        negative = np.ascontiguousarray(gradients.negative_gradient.T)[..., None]
        learned = TreeGradients(negative, hessian, is_whole(weight))
        rows = np.empty(0) if sample.rows is None else sample.rows
        rows = np.ascontiguousarray(rows, dtype=dtypes.ROW)
        m = n if sample.rows is None else len(rows)
        return cls(learned, weight, rows, m, scales_of_trees(learned, weight, rows, m, team))

    @property
    def max_weight(self) -> float:
        """Maximum weight of a row."""
        return float(self.weight.max()) if len(self.weight) else 1.0

    def packed(self, space: TreeBuffers) -> Packed:
        """Memory for the packed gradients of one tree, in the layout of all."""
        n_channels = self.scales.n_channels
        totals = np.zeros(n_channels, dtype=dtypes.PACKED)
        values = space.packed(n_channels, self.scales.width)
        return Packed(values, totals, 1, self.scales.packing, self.max_weight)


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
    def of(
        cls, seeds: list[int], task: SeparateTask, draws_columns: bool, part: float, d: int
    ) -> TreeDraws:
        """Draw for each tree from its own seed; nothing where nothing depends on it."""
        n_trees, at_random = len(seeds), task.scales.at_random
        salts, of_nodes = np.zeros(n_trees, dtype=np.uint64), np.zeros(n_trees, dtype=np.int64)
        allowed = np.ones((n_trees, d), dtype=np.uint8)
        if at_random or draws_columns:
            for k, seed in enumerate(seeds):
                rng = np.random.default_rng(seed)
                salt = int(rng.integers(2**62)) | 1
                salts[k] = salt if at_random else 0
                allowed[k] = drawn_columns(d, part, rng)
                of_nodes[k] = rng.integers(2**62)
        return cls(salts, of_nodes, allowed)


def drawn_columns(d: int, part: float, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Draw a fraction of the columns for a tree, (d,)."""
    allowed = np.ones(d, dtype=np.uint8)
    if part < 1:
        allowed[:] = 0
        allowed[rng.choice(d, max(1, round(part * d)), replace=False)] = 1
    return allowed


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
    summed : (1, MOST_BINS) float64 or None
        For symmetric trees.
    """

    learner: object
    table: BinnedTable
    layout: tuple[Any, ...]
    alone: Threads
    growth: Growth
    scratch: StageScratch
    summed: Floats | None

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
            np.empty(space.n_nodes),
        )
        summed = np.empty((1, MOST_BINS)) if symmetric else None
        return cls(learner, table, layout, Threads(0, 1, space.sync), growth, scratch, summed)

    def suits(self, learner: object, table: BinnedTable, layout: tuple[Any, ...]) -> bool:
        """Whether it can grow trees of this learner from this table, with gradients so arranged."""
        return self.learner is learner and self.table is table and self.layout == layout

    def from_rows_of(self, space: TreeBuffers) -> TreeGrower:
        """Return a grower of trees from as many rows as there are in the memory now."""
        if len(self.growth.buffers.flags) == len(space.rows):
            return self
        n_channels = self.growth.sums.totals.shape[1]
        return replace(self, growth=self.growth._replace(buffers=space.row_buffers(n_channels)))

    def grow(self, stage: SeparateTrees, grown: GrownTrees) -> None:
        """Grow trees of a stage until all have been taken."""
        grow_separate_trees(self.alone, stage, self.growth, self.scratch, self.summed, grown)


def one_thread_each(n_trees: int, n_threads: int) -> bool:
    """Whether each tree is grown by one thread, and not by all of them together."""
    return n_trees >= n_threads


def grow_separately(
    task: SeparateTask,
    table: BinnedTable,
    draws: TreeDraws,
    l2: float,
    growers: Sequence[TreeGrower],
    team: ThreadTeam,
    leaf_of_row: NDArray[np.int32] | None = None,
) -> tuple[list[Tree], NDArray[np.int32]]:
    """Grow one tree for each output; each thread has a grower.

    ``leaf_of_row`` (n_trees, n) is memory for the leaves of the rows.

    Returns
    -------
    trees : list of Tree
    leaf_of_row : (n_trees, n) int32
    """
    sampled = len(task.rows) > 0
    stage = _stage(task, table, draws, l2)
    if leaf_of_row is None:
        leaf_of_row = np.empty((len(draws.seeds), table.n_rows), dtype=dtypes.LEAF)
    grown = _empty_trees(leaf_of_row, growers[0].growth, sampled)

    def work(thread: int) -> None:
        if thread < len(growers):
            growers[thread].grow(stage, grown)

    def take_no_more() -> None:
        stage.next_tree[0] = len(grown.sizes)

    team.run(work, on_error=take_no_more)
    is_category = growers[0].growth.rules.is_category
    trees = [_tree(grown, k, is_category) for k in range(len(grown.sizes))]
    if sampled:
        _find_other_leaves(table, grown, trees, is_category, team)
    return trees, grown.leaf_of_row


def _stage(task: SeparateTask, table: BinnedTable, draws: TreeDraws, l2: float) -> SeparateTrees:
    weights = task.weight[:, None]
    return SeparateTrees(
        learned=task.learned,
        weights=task.weight,
        column_weights=weights,
        ones=weights[:0],
        rows=task.rows,
        rounding=task.scales.rounding,
        gradient_factors=task.scales.gradient_factors,
        hessian_factors=task.scales.hessian_factors,
        salts=draws.salts,
        seeds=draws.seeds,
        allowed=draws.allowed,
        thresholds=table.thresholds,
        l2=float(l2),
        next_tree=np.zeros(1, dtype=np.int64),
    )


def _empty_trees(leaf_of_row: NDArray[np.int32], growth: Growth, sampled: bool) -> GrownTrees:
    """Memory for the trees of a stage."""
    n_trees = len(leaf_of_row)
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
        leaf_of_row=leaf_of_row,
        values=np.empty((n_trees, n_leaves, 1)),
        bounds=np.empty((n_trees, n_bounds, 2)),
    )


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
    values = grown.values[k, :n_leaves].copy()
    if grown.bounds.shape[1]:
        bounds = grown.bounds[k, :n_leaves]
        values = np.clip(values, bounds[:, :1], bounds[:, 1:])
    categories = CategorySplits(is_category, grown.left_sets[k])
    return as_tree(tree, int(grown.depths[k]), values, categories)


def _find_other_leaves(
    table: BinnedTable,
    grown: GrownTrees,
    trees: list[Tree],
    is_category: NDArray[np.uint8],
    team: ThreadTeam,
) -> None:
    """Find the leaves of the rows that the trees have not learned from."""

    def work(k: int) -> None:
        categories = CategorySplits(is_category, grown.left_sets[k])
        nodes = grown.nodes[k, : grown.sizes[k]]
        leaves_of_others(
            ThreadTeam(1), table.bins, nodes, trees[k], categories, grown.leaf_of_row[k]
        )

    team.map(work, range(len(trees)))
