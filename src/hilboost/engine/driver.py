"""The growth loop: which nodes of a tree are split next.

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

from abc import ABC, abstractmethod
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hilboost.core.exchange import RowShare
from hilboost.engine.ops.cpu.column_splits import NO_GAIN
from hilboost.engine.ops.cpu.growth import Growth, inherit
from hilboost.engine.ops.cpu.nodes import (
    DEPTH,
    LEFT,
    N_LEFT,
    N_LEFT_HERE,
    N_NODES,
    N_ROWS,
    NODE,
    RIGHT,
    SLOT,
    GrownTree,
    NodeStore,
    draw_columns,
    open_children,
)
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
        """Find the leaves of the rows that are marked with -1."""


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
    steps = _HistogramSteps(growth, operations, share, counted)
    if growth.rules.symmetric:
        _grow_by_levels(growth, steps)
    else:
        _HistogramLoop(growth, operations, steps).run()


def renumber(nodes: NodeStore, by_node: list[NDArray[Any]], order: NDArray[np.int64]) -> None:
    """Number the nodes in the order in which the tree was split."""
    numbers = np.full(len(nodes.fields) + 1, -1)  # the last one of no child
    numbers[order] = np.arange(len(order))
    for array in by_node:
        array[: len(order)] = array[order]
    here = nodes.fields[: len(order)]
    here[:, [LEFT, RIGHT]] = numbers[here[:, [LEFT, RIGHT]]]
    nodes.control[N_NODES] = len(order)


def arrays_by_node(growth: Growth) -> list[NDArray[Any]]:
    """Return the arrays with an entry for each node."""
    arrays: list[NDArray[Any]] = [growth.nodes.fields, growth.nodes.gains]
    arrays += [growth.sums.totals, growth.sums.left_totals]
    if growth.categories is not None and len(growth.categories.left_sets):
        arrays.append(growth.categories.left_sets)
    if growth.constraints is not None:
        arrays.append(growth.constraints.bounds)
    return arrays


def open_nodes(
    nodes: NodeStore, batch: NDArray[np.int64], here: NDArray[np.int64], n_left: NDArray[np.int64]
) -> None:
    """Open the children of divided nodes; ``n_left`` counts the rows of all workers."""
    for node, n_here, n_all in zip(batch, here, n_left, strict=True):
        nodes.control[[NODE, N_LEFT_HERE, N_LEFT]] = node, n_here, n_all
        open_children(nodes)


class GrowthLoop(ABC):
    """Best-first growth of one tree; its nodes belong to all workers, and the rows are local.

    ``by_node`` are the arrays with an entry for each node.
    """

    def __init__(
        self, growth: Growth | VectorGrowth, operations: Operations, by_node: list[NDArray[Any]]
    ) -> None:
        self._operations, self._batch = operations, len(growth.batch.divided)
        self._nodes, self._fields = growth.nodes, growth.nodes.fields
        self._n_splits, self._by_node = growth.limits.max_leaves - 1, by_node
        self._room = len(self._fields) // 2  # expansions, some of which may be undone
        self._tree = [0]  # nodes by their number in the tree
        self._open: list[tuple[float, int]] = []  # priorities and numbers of open nodes

    def run(self) -> None:
        """Split the node of the largest gain until there are enough leaves."""
        self._start()
        self._note_open(0)
        n_splits = 0
        while self._open and n_splits < self._n_splits:
            node = self._tree[self._open[0][1]]
            if self._may_be_divided(node):
                self._expand(self._next_nodes(self._n_splits - n_splits), n_splits + 1)
            heappop(self._open)
            if self._fields[node, LEFT] < 0:  # no split is allowed
                continue
            for child in self._fields[node, [LEFT, RIGHT]].tolist():
                self._tree.append(child)
                self._note_open(len(self._tree) - 1)
            n_splits += 1
        self._undo()
        renumber(self._nodes, self._by_node, np.array(self._tree))

    def _note_open(self, number: int) -> None:
        """Put a node of the tree among those that may be split."""
        priority = float(self._nodes.priority[self._tree[number]])
        if priority > NO_GAIN:
            heappush(self._open, (-priority, number))  # the first of equals is split first

    def _may_be_divided(self, node: int) -> bool:
        return self._fields[node, LEFT] < 0 and self._nodes.priority[node] > NO_GAIN

    def _next_nodes(self, n_splits: int) -> NDArray[np.int64]:
        """The next nodes to expand, as many as are useful if so many splits are left."""
        n_expanded = int(self._nodes.control[N_NODES]) // 2
        most = min(self._batch, n_splits, 1 + self._room - n_expanded - n_splits)
        nodes = [self._tree[number] for _, number in sorted(self._open)]
        return np.array([node for node in nodes if self._may_be_divided(node)][:most])

    @abstractmethod
    def _start(self) -> None:
        """Prepare the root."""

    @abstractmethod
    def _expand(self, batch: NDArray[np.int64], n_splits: int) -> None:
        """Divide nodes and prepare their children; ``n_splits`` is the number of splits so far."""

    def _undo(self) -> None:
        """Make leaves of the nodes whose expansions are not part of the tree."""
        is_node = np.zeros(len(self._fields), dtype=bool)
        is_node[self._tree] = True
        for node in self._tree:
            left = self._fields[node, LEFT]
            if left >= 0 and not is_node[left]:
                self._fields[node, [LEFT, RIGHT]] = -1


class _HistogramLoop(GrowthLoop):
    """Best-first growth by histograms of fixed-point gradients."""

    def __init__(self, growth: Growth, operations: Operations, steps: _HistogramSteps) -> None:
        super().__init__(growth, operations, arrays_by_node(growth))
        self._steps = steps
        if steps.keeps_parents:
            self._room = min(len(growth.histograms.slots) - 1, self._room)
        else:
            self._batch, self._room = 1, 2**62

    def _start(self) -> None:
        self._find_splits(np.zeros(0, dtype=np.int64), 0)

    def _expand(self, batch: NDArray[np.int64], n_splits: int) -> None:
        """Divide nodes, open their children and find the best splits of these."""
        self._steps.divide(batch)
        self._find_splits(batch, n_splits)

    def _find_splits(self, parents: NDArray[np.int64], n_splits: int) -> None:
        if n_splits < self._n_splits:
            children = self._steps.sum_children(parents)
            self._steps.search(children, children)


def _grow_by_levels(growth: Growth, steps: _HistogramSteps) -> None:
    """Split the nodes of a level at one cut of one column; a node may remain for the next level."""
    nodes, divided = growth.nodes, np.zeros(0, dtype=np.int64)
    opened = divided
    for _ in range(growth.limits.max_depth):
        opened = np.union1d(opened, steps.sum_children(divided))
        last = int(nodes.control[N_NODES]) - 1
        steps.search(opened, np.full(len(opened), last))  # all on the same columns
        is_divided = nodes.gains[opened] > NO_GAIN
        divided, opened = opened[is_divided], opened[~is_divided]
        if not len(divided):
            return
        steps.divide(divided)


class _HistogramSteps:
    """Rows, histograms and constraints of the nodes of a tree, over the rows of all workers."""

    def __init__(
        self, growth: Growth, operations: Operations, share: RowShare | None, counted: bool
    ) -> None:
        self._growth, self._operations = growth, operations
        self._share, self._counted = share, counted
        # With two slots, histograms of parents and of other open nodes are not kept.
        self.keeps_parents = len(growth.histograms.slots) >= growth.limits.max_leaves
        self._permitted = {0: growth.scratch.permitted.copy()}  # columns of a node
        fields = growth.nodes.fields
        fields[0, N_ROWS] = count(int(fields[0, N_ROWS]), share)

    def divide(self, batch: NDArray[np.int64]) -> None:
        """Divide nodes, and give their children their sums and constraints."""
        here = self._operations.partition(self._growth, batch)
        open_nodes(self._growth.nodes, batch, here, self._n_left(batch, here))
        for node in batch.tolist():
            permitted = self._permitted[node].copy()
            inherit(node, self._growth, permitted)
            for child in self._growth.nodes.fields[node, [LEFT, RIGHT]].tolist():
                self._permitted[child] = permitted

    def _n_left(self, batch: NDArray[np.int64], here: NDArray[np.int64]) -> NDArray[np.int64]:
        """Rows of all workers that go left in each node."""
        if self._share is None:
            return here
        if not self._counted:
            return self._share.exchange.sum(here)
        packed, mask = self._growth.sums.left_totals[batch], self._growth.rules.packing.count_mask
        return packed[:, 0] & mask if mask else packed[:, -1]

    def sum_children(self, parents: NDArray[np.int64]) -> NDArray[np.int64]:
        """Sum the children of nodes, or the root if there are none; return which may be split."""
        fields, limits, is_root = self._growth.nodes.fields, self._growth.limits, not len(parents)
        pairs = np.zeros((1, 2), np.int64) if is_root else fields[parents][:, [LEFT, RIGHT]]
        by_size = np.argsort(fields[pairs, N_ROWS], axis=1, kind="stable")
        pairs = np.take_along_axis(pairs, by_size, axis=1)  # the smaller one first
        is_large = fields[pairs[:, 1], N_ROWS] >= limits.min_rows
        is_summed = is_large & (fields[pairs[:, 1], DEPTH] < limits.max_depth)
        pairs = pairs[is_summed]
        if not len(pairs):
            return pairs[:, 0]
        smaller, larger = pairs.T
        if self.keeps_parents:
            fields[smaller, SLOT] = (smaller + 1) // 2
            fields[larger, SLOT] = 0 if is_root else fields[parents[is_summed], SLOT]
        else:
            fields[smaller, SLOT], fields[larger, SLOT] = 0, np.int64(not is_root)
        subtracts = self.keeps_parents and not is_root
        self._sum(smaller if subtracts else np.unique(pairs))
        if subtracts:
            slots = self._growth.histograms.slots
            for small, large in pairs:
                slots[fields[large, SLOT]] -= slots[fields[small, SLOT]]
        children = np.unique(pairs)
        return children[fields[children, N_ROWS] >= limits.min_rows]

    def _sum(self, nodes: NDArray[np.int64]) -> None:
        """Fill the histograms of some nodes with sums over the rows of all workers."""
        self._operations.histogram(self._growth, nodes)
        if self._share is not None:
            slots, places = self._growth.histograms.slots, self._growth.nodes.fields[nodes, SLOT]
            slots[places] = self._share.exchange.sum(slots[places])

    def search(self, nodes: NDArray[np.int64], drawn_for: NDArray[np.int64]) -> None:
        """Search nodes, each on the columns that are drawn for a node."""
        if not len(nodes):
            return
        columns = np.array([self._permitted[node] for node in nodes.tolist()])
        n_drawn = self._growth.limits.columns_per_node
        if n_drawn:
            seeds = self._growth.nodes.seeds[drawn_for]
            for seed, drawn in zip(seeds, columns, strict=True):
                draw_columns(drawn.copy(), n_drawn, seed, drawn)
        self._operations.search(self._growth, nodes, columns)
