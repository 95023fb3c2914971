"""A twin of :mod:`hilboost.engine.ops.cpu.grow` whose sums are float64 instead of fixed-point.

Trees of one output, without weights, samples, constraints and categories.  The search is vectorized
over columns and bins, so that whole models can be compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import get_ident

import numpy as np
from tests.reference.histogram import table_of

from hilboost.engine.ops.cpu.nodes import (
    BEGIN,
    BIN,
    COLUMN,
    DEPTH,
    END,
    LEFT,
    MISSING_LEFT,
    N_NODES,
    N_ROWS,
    RIGHT,
)
from hilboost.engine.ops.reference.criterion import leaf_score, score_of_sides, split_gain


@dataclass
class Node:
    """A node; ``split`` is the best one found (column, bin, missing_left), taken where ``left``."""

    rows: np.ndarray
    depth: int
    gain: float = -np.inf
    split: tuple[int, int, bool] = (0, 0, False)
    left: int = -1


def best_split(node, bins, n_values, gradient, hessian, limits):
    """Find the split with the largest gain; the first of equals, in the order of the loops."""
    d, n_bins = len(n_values), 256
    flat = (bins[node.rows] + n_bins * np.arange(d)).ravel()

    def histogram(values):
        weights = None if values is None else np.repeat(values[node.rows], d)
        return np.bincount(flat, weights, minlength=d * n_bins).reshape(d, n_bins)

    def sides(sums):
        """Sums left of every cut, with missing values right and left, and those right of it."""
        left = np.cumsum(sums[:, :-1], axis=1)
        left = np.stack([left, left + sums[:, -1:]], axis=1)  # (d, 2, 255)
        return left, left[:, 1:, -1:] - left

    counts = histogram(None)
    (cl, cr), (gl, gr), (hl, hr) = (
        sides(sums) for sums in (counts, histogram(gradient), histogram(hessian))
    )
    some_missing = counts[:, -1:, None] > 0  # (d, 1, 1)
    missing_left = np.array([False, True])[:, None]
    is_last = np.arange(n_bins - 1) >= (n_values - 1)[:, None, None]
    permitted = (counts[:, None, :-1] > 0) & (some_missing | ~missing_left)
    permitted &= ~is_last | (some_missing & ~missing_left)
    permitted &= np.minimum(cl, cr) >= max(limits.min_count, 1)
    permitted &= np.minimum(hl, hr) >= limits.min_hessian
    g, h = gradient[node.rows].sum(), hessian[node.rows].sum()
    sides = score_of_sides((gl, hl), (gr, hr), limits.l2)
    gains = split_gain(sides, leaf_score(g, h, limits.l2), cl, cr)
    gains = np.where(permitted, gains, -np.inf)
    column, missing, cut = np.unravel_index(int(gains.argmax()), gains.shape)
    node.gain = float(gains[column, missing, cut])
    if node.gain <= 0 or node.gain < limits.min_gain:
        node.gain = -np.inf
        return
    following = np.flatnonzero(counts[column, cut + 1 : n_values[column]])
    middle = cut + following[0] // 2 if len(following) else n_values[column] - 1
    if not some_missing[column, 0, 0]:
        missing = 2 * cl[column, 0, cut] >= len(node.rows)
    node.split = int(column), int(middle), bool(missing)


def grow(growth, gradient, hessian):
    """Grow a tree into the arrays of ``growth``.

    gradient, hessian : (n,) float64
    """
    table, limits = growth.table, growth.limits
    bins = table_of(table.words, len(table.n_values))
    bins[bins == table.n_bins - 1] = 255  # the bin of missing values

    def opened(rows, depth):
        node = Node(rows, depth)
        if depth < limits.max_depth:
            of_split = growth.rules.limits
            best_split(node, bins, table.n_values, gradient, hessian, of_split)
        return node

    nodes = [opened(growth.buffers.rows[0, : len(growth.buffers.flags)].copy(), 0)]
    for _ in range(limits.max_leaves - 1):
        node = max((node for node in nodes if node.left < 0), key=lambda node: node.gain)
        if node.gain == -np.inf:
            break
        column, cut, missing_left = node.split
        here = bins[node.rows, column]
        goes_left = np.where(here == 255, missing_left, here <= cut)
        node.left = len(nodes)
        nodes += [opened(node.rows[side], node.depth + 1) for side in (goes_left, ~goes_left)]
    _write(nodes, growth)


def _write(nodes, growth):
    fields, end = growth.nodes.fields, 0
    fields[:] = 0
    for number, node in enumerate(nodes):
        right = node.left + 1 if node.left >= 0 else -1
        found = (node.depth, *node.split, node.left, right, len(node.rows))
        fields[number, [DEPTH, COLUMN, BIN, MISSING_LEFT, LEFT, RIGHT, N_ROWS]] = found
        growth.nodes.gains[number] = node.gain
        if node.left < 0:
            begin, end = end, end + len(node.rows)
            fields[number, [BEGIN, END]] = begin, end
            growth.buffers.rows[0, begin:end] = node.rows
    growth.nodes.control[N_NODES] = len(nodes)


class Float64Growth:
    """Functions that replace the packing of gradients and the growth of trees.

    pack : the function that is replaced
    """

    def __init__(self, pack):
        self._pack = pack
        self._gradients = None
        self._thread = get_ident()

    def pack(self, space, learned, *rest):
        """Keep the exact gradients of this thread; a fit of another test may not have ended."""
        if get_ident() != self._thread:
            return self._pack(space, learned, *rest)
        gradient, hessian = learned.gradients[:, 0], learned.hessians
        self._gradients = gradient, hessian[:, 0] if hessian.size else np.ones(len(gradient))
        return self._pack(space, learned, *rest)

    def grow(self, growth):
        """Grow the tree from them."""
        grow(growth, *self._gradients)
