"""A single tree, and forests of concatenated trees."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.threads import ThreadTeam
from hilboost.core import dtypes
from hilboost.core.base_model import LeafModel, Summation, Term
from hilboost.core.dtypes import Floats
from hilboost.engine.ops.cpu.category_splits import SET_WORDS
from hilboost.engine.ops.cpu.leaf_words import BLOCK
from hilboost.engine.ops.cpu.traverse import (
    CHILD,
    FEWEST_ROWS_FOR_BITS,
    MISSING_RIGHT,
    N_LINKS,
    SET_OR_VALUES,
    SPLIT_COLUMN,
    FlatForest,
    FlatLeaves,
    FlatTrees,
    LeafMasks,
    add_forest,
    forest_leaves,
    mark_left_leaves,
    walk_rows,
)
from hilboost.tables.blocks import BlockTable

MOST_COPIED = 2**24
"""Leaf values of more numbers than this are not copied into flat arrays."""

_WALKS_WORTH_A_THREAD = 2**20  # of a row through a tree
_MOST_BLOCKS, _BLOCKS_PER_THREAD = 64, 3


_NO_NODES = np.empty(0, dtype=np.bool_)
_NO_SETS = np.empty((0, SET_WORDS), dtype=np.uint64)


@dataclass(frozen=True)
class Tree(LeafModel):
    """A binary tree with vector leaves.

    Attributes
    ----------
    column : (n_nodes,) int32
    threshold : (n_nodes,) float64
        Rows with ``x <= threshold`` go left; ``inf`` at leaves.
    missing_right : (n_nodes,) bool
    child : (n_nodes,) int32
        The left child; the right child follows it.  A leaf is its own child.
    gain : (n_nodes,) float64
        Gain of the split, 0 at leaves.
    leaf_number : (n_nodes,) int32
        -1 at inner nodes.
    depth : int
    leaf_values : (n_leaves, r) float64
    by_level : (n_nodes,) bool
        Whether the node splits on category levels (threshold 0); (0,) if no node does.
    left_sets : (n_sets, 4) uint64
        For each of these nodes in order, one bit for each level (codes 0 to 254) that goes left;
        the last bit is for levels that were not seen in fit.
    """

    family: ClassVar[Literal["trees"]] = "trees"

    column: NDArray[np.int32]
    threshold: Floats
    missing_right: NDArray[np.bool_]
    child: NDArray[np.int32]
    gain: Floats
    leaf_number: NDArray[np.int32]
    depth: int
    leaf_values: Floats
    by_level: NDArray[np.bool_] = field(default_factory=lambda: _NO_NODES)
    left_sets: NDArray[np.uint64] = field(default_factory=lambda: _NO_SETS)

    @property
    def values(self) -> Floats:
        """Leaf values, (n_leaves, r)."""
        return self.leaf_values

    def with_values(self, values: Floats) -> Self:
        """Return the tree with other leaf values."""
        return replace(self, leaf_values=values)

    def placed(self, columns: NDArray[np.intp], width: int, shared: dict[int, Any]) -> Tree:
        """Return the same tree, with splits in the given columns of a wider table."""
        return replace(self, column=columns[self.column].astype(np.int32))

    def leaves(self, X: Floats) -> NDArray[np.int32]:
        """Leaf of every row, (n,) int32."""
        return Forest.of([Term.of(self, slice(0, self.leaf_values.shape[1]))]).leaves(X, 1)[:, 0]

    def node_counts(self, leaf_of_row: NDArray[np.int32]) -> NDArray[np.int64]:
        """Count the rows that reach each node, (n_nodes,), by the leaf of each row (n,)."""
        return self.node_sums(np.bincount(leaf_of_row, minlength=len(self.leaf_values)))

    def node_sums(self, of_leaves: NDArray[Any]) -> NDArray[Any]:
        """Sum numbers of the leaves, (n_leaves,), over the leaves below each node, (n_nodes,)."""
        is_leaf = self.leaf_number >= 0
        sums = np.where(is_leaf, of_leaves[self.leaf_number], 0)
        for node in np.flatnonzero(~is_leaf)[::-1]:  # children come after their parents
            child = self.child[node]
            sums[node] = sums[child] + sums[child + 1]
        return sums

    def has_shape(self, n_features: int, n_outputs: int) -> bool:
        """Return whether splits only use these columns, and leaves have this number of outputs."""
        width = self.leaf_values.shape[1]
        return bool(self.column.max() < n_features) and width == n_outputs

    def predict_raw(self, X: Floats) -> Floats:
        """Raw predictions (n, r)."""
        return self.leaf_values[self.leaves(X)]

    @classmethod
    def sum_of(cls, terms: Sequence[Term]) -> Summation:
        """Combine all trees into one forest; large leaf values are not copied."""
        trees: list[Any] = [term.model for term in terms]
        if sum(tree.leaf_values.size for tree in trees) > MOST_COPIED:
            return WideForest.of(terms)
        return Forest.of(terms)


@dataclass(frozen=True)
class Forest(Summation):
    """Trees as flat arrays."""

    trees: FlatTrees
    leaf_masks: LeafMasks
    flat_leaves: FlatLeaves

    @property
    def cost_per_row(self) -> int:
        """Cost per row: one operation for each tree."""
        return len(self.trees.depths)

    @classmethod
    def of(cls, terms: Sequence[Term]) -> Forest:
        """Concatenate the trees of the terms."""
        models: list[Any] = [term.model for term in terms]
        trees = flat_trees(models)
        order = np.empty(len(trees.child), dtype=np.int64)
        masks = np.empty(len(trees.child), dtype=np.uint64)
        mark_left_leaves(trees.roots, trees.child, order, masks)
        inner = np.flatnonzero(trees.child != np.arange(len(trees.child)))
        n_inner = [len(t.column) - len(t.leaf_values) for t in models]
        part = 3 * np.repeat(np.arange(len(models)), n_inner)
        on_levels = trees.set_numbers[inner] >= 0 if len(trees.set_numbers) else False
        part += np.where(on_levels, 2, trees.missing_right[inner])
        ends = np.cumsum(np.bincount(part, minlength=3 * len(models))).reshape(-1, 3)
        start = np.column_stack([np.append(0, ends[:-1, 2]), ends])
        in_parts = inner.astype(np.int32)[np.argsort(part, kind="stable")]
        leaf_masks = LeafMasks(in_parts, start, masks, masks.astype(np.uint32))
        return cls(trees, leaf_masks, _flat_leaves(terms, trees.roots, order))

    def add_to(self, raw: Floats, X: Floats | BlockTable, n_threads: int) -> None:
        """Add the outputs of all trees to ``raw`` (n, r).

        ``X`` is (n, d) float32 or float64, or a table that is read in blocks of rows, which
        contain only the columns in use.
        """
        if isinstance(X, BlockTable):
            used, trees = on_used_columns(self.trees)
            narrow = replace(self, trees=trees)
            for rows, block in X.row_blocks(used):
                narrow.add_to(raw[rows], block, n_threads)
            return
        n = len(X)
        if n < FEWEST_ROWS_FOR_BITS:
            walk_rows(X, *self.walked, raw)
            return
        walks = bool((self.flat_leaves.per_tree > 64).any())
        has_missing = walks and bool(np.isnan(X).any())
        trees = self._single_trees if X.dtype == np.float32 else self.trees
        forest = FlatForest(trees, self.leaf_masks, self.flat_leaves)

        def work(rows: slice) -> None:
            add_forest(X, forest, rows.start, rows.stop, has_missing, raw)

        work_in_blocks(work, n, len(trees.depths), n_threads)

    @cached_property
    def _single_trees(self) -> FlatTrees:
        """Trees for rows of float32: twice as many values are compared at a time.

        ``x > threshold`` is the same for the next float32 that is not above the threshold.
        """
        exact = self.trees.threshold
        with np.errstate(over="ignore"):
            single = exact.astype(np.float32)
            below = np.nextafter(single, np.float32(-np.inf))
        return self.trees._replace(threshold=np.where(single > exact, below, single))

    @cached_property
    def walked(self) -> tuple[NDArray[Any], ...]:
        """The arguments of :func:`walk_rows` between ``X`` and ``raw``."""
        trees, leaves = self.trees, self.flat_leaves
        links = np.empty((len(trees.child), N_LINKS), dtype=np.int32)
        links[:, SPLIT_COLUMN] = trees.column
        links[:, CHILD] = trees.child
        links[:, MISSING_RIGHT] = trees.missing_right
        sets = trees.set_numbers if len(trees.set_numbers) else -1
        links[:, SET_OR_VALUES] = np.where(leaves.number >= 0, leaves.offset, sets)
        shape = np.column_stack([trees.roots[:-1], leaves.first_output, leaves.widths])
        of_trees = shape.astype(np.int32)
        return of_trees, trees.threshold, links, trees.left_sets, leaves.values

    def leaves(self, X: Floats | BlockTable, n_threads: int) -> NDArray[np.int32]:
        """Leaf numbers, (n, n_trees)."""
        return _leaves_of_rows(self.trees, self.flat_leaves.number, X, n_threads)


@dataclass(frozen=True)
class WideForest(Summation):
    """Trees whose leaf values are too large to copy: only their nodes are concatenated.

    Outputs equal the outputs of a :class:`Forest`, bit for bit.
    """

    trees: FlatTrees
    leaf_number: NDArray[np.int32]  # (n_nodes,) int32
    terms: Sequence[Term]

    @classmethod
    def of(cls, terms: Sequence[Term]) -> WideForest:
        """Concatenate the nodes of the trees."""
        models: list[Any] = [term.model for term in terms]
        return cls(flat_trees(models), np.concatenate([t.leaf_number for t in models]), terms)

    @property
    def cost_per_row(self) -> int:
        """Cost per row: one operation for each tree."""
        return len(self.trees.depths)

    def leaves(self, X: Floats | BlockTable, n_threads: int) -> NDArray[np.int32]:
        """Leaf numbers, (n, n_trees)."""
        return _leaves_of_rows(self.trees, self.leaf_number, X, n_threads)

    def add_to(self, raw: Floats, X: Floats | BlockTable, n_threads: int) -> None:
        """Add the outputs of all trees to ``raw`` (n, r), one tree after the other."""
        leaf_of_row = self.leaves(X, n_threads)

        def work(rows: slice) -> None:
            for t, term in enumerate(self.terms):
                tree: Any = term.model
                raw[rows, term.columns] += term.coefficient * tree.values[leaf_of_row[rows, t]]

        work_in_blocks(work, len(raw), len(self.terms), n_threads)


def on_used_columns(trees: FlatTrees) -> tuple[NDArray[np.int64], FlatTrees]:
    """Return the columns that splits use, and the trees for a table of these columns only."""
    used, column = np.unique(trees.column, return_inverse=True)
    return used.astype(np.int64), trees._replace(column=column.astype(np.int32))


def _leaves_of_rows(
    trees: FlatTrees, leaf_number: NDArray[np.int32], X: Floats | BlockTable, n_threads: int
) -> NDArray[np.int32]:
    """Leaf numbers, (n, n_trees); other tables than arrays are read in blocks."""
    if isinstance(X, BlockTable):
        used, narrow = on_used_columns(trees)
        blocks = (block for _, block in X.row_blocks(used))
        return np.concatenate(
            [_leaves_of_rows(narrow, leaf_number, block, n_threads) for block in blocks]
        )
    n = len(X)
    leaf_of_row = np.empty((n, len(trees.depths)), dtype=dtypes.LEAF)

    def work(rows: slice) -> None:
        forest_leaves(X, trees, leaf_number, rows.start, rows.stop, leaf_of_row)

    work_in_blocks(work, n, len(trees.depths), n_threads)
    return leaf_of_row


def work_in_blocks(work: Callable[[slice], None], n: int, n_trees: int, n_threads: int) -> None:
    """Work on blocks of ``n`` rows, which threads claim if there is enough work for them."""
    n_threads = min(n_threads, 1 + n * n_trees // _WALKS_WORTH_A_THREAD)
    n_blocks = 1 if n_threads == 1 else _BLOCKS_PER_THREAD * n_threads
    size = min(_MOST_BLOCKS, -(-n // (n_blocks * BLOCK))) * BLOCK
    blocks = [slice(begin, min(begin + size, n)) for begin in range(0, n, size or 1)]
    with ThreadTeam(n_threads) as team:
        team.map(work, blocks)


def flat_trees(trees: Sequence[Tree]) -> FlatTrees:
    """Concatenate the nodes of the trees."""
    sizes = [len(t.column) for t in trees]
    roots = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    child = np.concatenate([t.child for t in trees]) + np.repeat(roots[:-1], sizes)
    return FlatTrees(
        roots=roots,
        depths=np.array([t.depth for t in trees], dtype=np.int32),
        column=np.concatenate([t.column for t in trees]),
        threshold=np.concatenate([t.threshold for t in trees]),
        missing_right=np.concatenate([t.missing_right for t in trees]),
        child=child.astype(np.int32),
        set_numbers=_set_numbers(trees),
        left_sets=np.concatenate([t.left_sets for t in trees]),
    )


def _flat_leaves(
    terms: Sequence[Term], roots: NDArray[np.int64], order: NDArray[np.int64]
) -> FlatLeaves:
    """Concatenate the leaf values; ``order`` (n_nodes,) numbers leaves from left to right."""
    trees: list[Any] = [term.model for term in terms]
    sizes = np.diff(roots)
    widths = np.array([t.leaf_values.shape[1] for t in trees], dtype=np.int32)
    per_tree = np.array([len(t.leaf_values) for t in trees], dtype=np.int32)
    start = np.concatenate([[0], np.cumsum(widths * per_tree)[:-1]]).astype(np.int64)
    number = np.concatenate([t.leaf_number for t in trees])
    first, width = np.repeat(start, sizes), np.repeat(widths, sizes)
    leaves = np.flatnonzero(number >= 0)
    # One output of a leaf after the other, where it was and where it is from left to right.
    of_leaf, n_outputs = np.repeat(leaves, width[leaves]), np.cumsum(width[leaves])
    output = np.arange(len(of_leaf)) - np.repeat(n_outputs - width[leaves], width[leaves])
    before = np.concatenate([t.leaf_values.ravel() for t in trees])
    coefficients = np.concatenate([term.coefficient for term in terms])
    factor = np.repeat(np.cumsum(widths) - widths, sizes)
    values = np.empty_like(before)
    offset = first + order * width
    values[offset[of_leaf] + output] = (
        before[(first + number * width)[of_leaf] + output] * coefficients[factor[of_leaf] + output]
    )
    return FlatLeaves(
        number=number,
        offset=offset,
        values=values,
        start=start,
        per_tree=per_tree,
        widths=widths,
        first_output=np.array([term.columns.start for term in terms], dtype=np.int32),
    )


def _set_numbers(trees: Sequence[Tree]) -> NDArray[np.int32]:
    """Index of the level set of each node, -1 for none; empty if no tree has sets."""
    if not any(len(t.left_sets) for t in trees):
        return np.empty(0, dtype=np.int32)
    by_level = np.concatenate(
        [t.by_level if len(t.by_level) else np.zeros(len(t.column), dtype=bool) for t in trees]
    )
    return np.where(by_level, np.cumsum(by_level) - 1, -1).astype(np.int32)
