"""Growth of a tree among workers or on a device, step by step as compiled code decides.

Symmetric trees grow by levels.  In other trees, the open node of the largest gain is split first.
Nodes are expanded in batches, because each step costs a message among workers, or a launch on a
device, whatever the number of its nodes::

    open nodes by gain      9   7   4          expand 9 and 7 together
    children of 9           8   2              8 is split before 7, which is expanded already
    children of 7           6   1

An expansion that is not among the first splits of the tree is undone, so that the size of the
batches changes no bit of the tree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from hilboost.core.exchange import RowShare
from hilboost.engine.ops.cpu.batch import (
    BEGIN_TREE,
    DONE,
    FLAG,
    MOVE,
    N_DIVIDED,
    N_ITEMS,
    N_PAIRS,
    N_SUMMED,
    SEARCHED,
    STEP,
    SUM,
)
from hilboost.engine.ops.cpu.growth import Growth
from hilboost.engine.ops.cpu.nodes import N_ROWS, SLOT, GrownTree
from hilboost.engine.ops.cpu.operations import decide
from hilboost.reductions.sums import count

if TYPE_CHECKING:
    from hilboost.engine.ops.cpu.fixed_point import Layout, WeightedGradients
    from hilboost.engine.ops.cpu.vector_state import VectorGrowth


class Operations(Protocol):
    """Operations of a device on the rows and histograms of a tree, for a batch of its nodes."""

    @property
    def in_order(self) -> bool:
        """Whether the rows of a leaf ascend, and are in the host's memory."""

    def quantize(
        self,
        learned: WeightedGradients,
        layout: Layout,
        numbers: NDArray[np.uint32] | None,
        into: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """Round gradients to packed integers and return their sums, (n_channels,).

        ``into`` is written: (m, 1) of the learned rows in their order if there is one channel, or
        else (n, width).  ``numbers`` (n,) of the rows in the table of all workers are needed for
        random rounding alone.  A device may write to its own memory instead.
        """

    def partition(
        self, growth: Growth | VectorGrowth, nodes: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Divide the rows of each node by its split, which moves them to the other array.

        Returns (n_nodes,): how many of the rows that are here go left.
        """

    def histogram(self, growth: Growth, nodes: NDArray[np.int64]) -> None:
        """Sum the rows of each node that are here into its slot."""

    def search(self, growth: Growth, nodes: NDArray[np.int64], columns: NDArray[np.uint8]) -> None:
        """Note the best split of each node on its columns, (n_nodes, d).

        The nodes of a symmetric tree have one split, the cut of the largest sum of their gains.
        """

    def leaves(
        self, growth: Growth | VectorGrowth, leaves: NDArray[np.int64], learned: WeightedGradients
    ) -> NDArray[np.int64]:
        """Sum the rows of each leaf exactly, (n_leaves, r + k, 5).

        There are sums of ``r`` gradients, and of their hessians, or else of weights or ones.
        """

    def walk(self, growth: Growth, tree: GrownTree, leaf_of_row: NDArray[np.int32]) -> None:
        """Write the leaf of each row that is marked with -1: of all, unless rows are in order."""


_MANY_LEAVES = 64


def batch_size(max_leaves: int) -> int:
    """Return how many nodes are expanded together.

    Counted on trees of many tables: with 31 leaves, pairs halve the steps for 1 % more expansions;
    with 255 leaves, fours quarter the steps for 2 % more.
    """
    return 2 if max_leaves < _MANY_LEAVES else 4


def n_spare_leaves(max_leaves: int) -> int:
    """Return how many expansions may be undone."""
    return 2 + max_leaves // 8


def grow_tree(
    growth: Growth, operations: Operations, share: RowShare | None = None, counted: bool = True
) -> None:
    """Grow one tree from its open root; ``counted`` says whether histograms count the rows."""
    growth = growth._replace(limits=growth.limits._replace(few_rows=0))
    fields, state = growth.nodes.fields, growth.batch.state
    fields[0, N_ROWS] = count(int(fields[0, N_ROWS]), share)
    state[STEP] = BEGIN_TREE
    while (step := decide(growth)) != DONE:
        if step == FLAG:
            _divide(growth, operations, share, counted)
            state[STEP] = MOVE
        elif step == SUM:
            _sum(growth, operations, share)
            state[STEP] = SUM
        else:
            _search(growth, operations)
            state[STEP] = SEARCHED


def _divide(growth: Growth, operations: Operations, share: RowShare | None, counted: bool) -> None:
    """Divide the rows of the nodes of a batch, and count the rows of all workers on the left."""
    batch = growth.batch
    n, nodes = batch.state[N_DIVIDED], batch.divided[: batch.state[N_DIVIDED]].copy()
    here = n_left = operations.partition(growth, nodes)
    if share is not None and counted:
        packed, mask = growth.sums.left_totals[nodes], growth.rules.packing.count_mask
        n_left = packed[:, 0] & mask if mask else packed[:, -1]
    elif share is not None:
        n_left = share.exchange.sum(here)
    batch.n_left_here[:n], batch.n_left[:n] = here, n_left


def _sum(growth: Growth, operations: Operations, share: RowShare | None) -> None:
    """Fill the histograms of the children of a batch, over the rows of all workers."""
    batch, slots, of_node = growth.batch, growth.histograms.slots, growth.nodes.fields[:, SLOT]
    n_pairs = batch.state[N_PAIRS]
    pairs, modes = batch.pairs[:n_pairs].copy(), batch.modes[:n_pairs].copy()
    summed = batch.summed[: batch.state[N_ITEMS]].copy()
    operations.histogram(growth, summed)
    if share is not None:
        slots[of_node[summed]] = share.exchange.sum(slots[of_node[summed]])
    for small, large in pairs:
        if small != large and large not in summed:
            slots[of_node[large]] -= slots[of_node[small]]
    batch.pairs[:n_pairs], batch.modes[:n_pairs] = pairs, modes
    batch.state[N_SUMMED] = 0


def _search(growth: Growth, operations: Operations) -> None:
    """Note the best splits of the children of a batch, or of the open nodes of a level."""
    batch, drawn = growth.batch, growth.scratch.drawn
    if growth.rules.symmetric:
        nodes = batch.divided[: batch.state[N_DIVIDED]].copy()
        columns = np.repeat(drawn[:1, 0], len(nodes), axis=0)
    else:
        pairs = batch.pairs[: batch.state[N_PAIRS]]
        is_large = growth.nodes.fields[pairs, N_ROWS] >= growth.limits.min_rows
        is_large[:, 1] &= pairs[:, 1] != pairs[:, 0]
        nodes, columns = pairs[is_large], drawn[: len(pairs)][is_large]
    if len(nodes):
        operations.search(growth, nodes, columns)
