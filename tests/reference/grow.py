"""Naive twins of :mod:`hilboost.engine.ops.cpu.grow`: best-first growth by exhaustive search."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from tests.reference.nodes import child_seed, draw_columns

from hilboost.engine.ops.reference.criterion import (
    leaf_score,
    leaf_value,
    score_of_sides,
    score_of_value,
    split_gain,
)


@dataclass
class Node:
    """A node; ``split`` is the best one found, taken where ``left`` is there.

    ``bounds`` are the (lower, upper) of every output, ``used`` the columns split on above.
    """

    rows: np.ndarray
    depth: int
    bounds: list[tuple[float, float]]
    seed: int
    used: frozenset[int] = frozenset()
    gain: float = -math.inf
    split: tuple[int, int, bool] | None = None
    left: int | None = None
    right: int | None = None


@dataclass(frozen=True)
class Limits:
    max_leaves: int
    max_depth: int = 2**31
    min_count: float = 1.0
    min_hessian: float = 0.0
    min_gain: float = 0.0
    l2: float = 0.0
    columns_per_node: int = 0
    seed: int = 0
    monotonic: tuple[int, ...] = ()
    groups: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True)
class Numbers:
    """Gradients (m, r), hessians (m, r) or None, and counts (m,) as integers, and their steps."""

    gradient: np.ndarray
    hessian: np.ndarray | None
    count: np.ndarray
    scales: tuple[float, float, float] = (1.0, 1.0, 1.0)
    together: bool = field(default=True)

    def sums(self, rows):
        """Sums of gradient (r,), hessian (r,) and count over some rows, as Python numbers."""
        g = [int(x) * self.scales[0] for x in self.gradient[rows].sum(axis=0)]
        count = int(self.count[rows].sum()) * self.scales[2]
        if self.hessian is None:
            return g, [count] * len(g), count
        return g, [int(x) * self.scales[1] for x in self.hessian[rows].sum(axis=0)], count

    def is_empty(self, rows):
        """Rows that weigh so little that they leave no trace in a histogram."""
        sums = [self.gradient[rows].sum(axis=0), self.count[rows].sum()]
        if self.hessian is not None:
            sums.append(self.hessian[rows].sum(axis=0))
        return not any(np.any(s) for s in sums)


def _values(sums, l2, bounds):
    """Newton steps of all outputs, kept in bounds."""
    g, h, _ = sums
    return [
        min(max(leaf_value(a, b, l2) if b > 0 else 0.0, lower), upper)
        for a, b, (lower, upper) in zip(g, h, bounds, strict=True)
    ]


def _bounded_scores(sums, l2, bounds):
    g, h, _ = sums
    values = _values(sums, l2, bounds)
    return [
        score_of_value(w, a, b, l2) if b > 0 else 0.0 for w, a, b in zip(values, g, h, strict=True)
    ]


def _bounded_gain(left, right, whole, l2, direction, bounds):
    sides = _values(left, l2, bounds), _values(right, l2, bounds)
    if any(direction * (high - low) < 0 for low, high in zip(*sides, strict=True)):
        return -math.inf
    scores = _bounded_scores(left, l2, bounds), _bounded_scores(right, l2, bounds)
    sides = sum(a + b for a, b in zip(*scores, strict=True))
    return split_gain(sides, sum(_bounded_scores(whole, l2, bounds)), left[2], right[2])


def _gain(left, right, whole, limits, together):
    (gl, hl, cl), (gr, hr, cr), (g, h, _) = left, right, whole
    if min(cl, cr) < limits.min_count or min(cl, cr) <= 0:
        return -math.inf
    if min(sum(hl), sum(hr)) < limits.min_hessian:
        return -math.inf
    parent = sum(leaf_score(a, b, limits.l2) for a, b in zip(g, h, strict=True))
    if together:  # one output: over a common denominator
        sides = score_of_sides((gl[0], hl[0]), (gr[0], hr[0]), limits.l2)
        return split_gain(sides, parent, cl, cr)
    parts = [
        sum(leaf_score(a, b, limits.l2) for a, b in zip(x, y, strict=True))
        for x, y in ((gl, hl), (gr, hr))
    ]
    return split_gain(parts[0] + parts[1], parent, cl, cr)


def _best_split(node, bins, n_values, missing_bin, numbers, limits, drawn):
    whole = numbers.sums(node.rows)
    for column in np.flatnonzero(drawn):
        here = bins[node.rows, column]
        is_missing = here == missing_bin
        some_missing = not numbers.is_empty(node.rows[is_missing])
        for missing_left in (False, True) if some_missing else (False,):
            last = n_values[column] - (not (some_missing and not missing_left))
            for cut in range(last):
                if numbers.is_empty(node.rows[here == cut]):
                    continue
                goes_left = (here <= cut) & ~is_missing | (is_missing & missing_left)
                left, right = node.rows[goes_left], node.rows[~goes_left]
                sums = numbers.sums(left), numbers.sums(right)
                gain = _gain(*sums, whole, limits, numbers.together)
                if limits.monotonic and gain > -math.inf:
                    only_missing = is_missing[~goes_left].all()
                    direction = 0 if only_missing else limits.monotonic[column]
                    gain = _bounded_gain(*sums, whole, limits.l2, direction, node.bounds)
                if gain > node.gain:
                    node.gain, node.split = gain, (int(column), cut, missing_left)
    if node.gain <= 0 or node.gain < limits.min_gain:
        node.gain, node.split = -math.inf, None
    if node.split is not None:
        node.split = _settled(node, bins, n_values, missing_bin, numbers, whole[2])


def _settled(node, bins, n_values, missing_bin, numbers, count):
    """The middle of the gap of empty bins; missing values follow the larger side if unseen."""
    column, cut, missing_left = node.split
    here = bins[node.rows, column]
    is_missing = here == missing_bin
    following = [
        b for b in range(cut + 1, n_values[column]) if not numbers.is_empty(node.rows[here == b])
    ]
    if numbers.is_empty(node.rows[is_missing]):
        left = numbers.sums(node.rows[(here <= cut) & ~is_missing])
        missing_left = 2 * left[2] >= count
    middle = (cut + following[0] - 1) // 2 if following else int(n_values[column]) - 1
    return column, middle, bool(missing_left)


def grow(bins, n_values, missing_bin, rows, numbers, limits, allowed=None):
    """Grow one tree; returns its nodes, in the order in which they were opened.

    bins : (n, d) integers; ``numbers`` are in the table's row order
    """
    allowed = np.ones(bins.shape[1], dtype=np.uint8) if allowed is None else allowed
    nodes = []

    def open_node(chosen, depth, bounds, seed, used):
        node = Node(chosen, depth, bounds, seed, used)
        permitted = allowed.copy()
        if limits.groups and used:
            together = set().union(*(group for group in limits.groups if used <= set(group)))
            permitted[[column not in together for column in range(len(allowed))]] = 0
        drawn = permitted.copy()
        if limits.columns_per_node:
            draw_columns(permitted, limits.columns_per_node, seed, drawn)
        if depth < limits.max_depth:
            _best_split(node, bins, n_values, missing_bin, numbers, limits, drawn)
        nodes.append(node)
        return len(nodes) - 1

    r = numbers.gradient.shape[1]
    open_node(np.asarray(rows), 0, [(-math.inf, math.inf)] * r, limits.seed, frozenset())
    n_leaves = 1
    while n_leaves < limits.max_leaves:
        candidates = [node for node in nodes if node.left is None and node.split is not None]
        if not candidates:
            break
        node = max(candidates, key=lambda candidate: candidate.gain)  # the first of equals
        column, cut, missing_left = node.split
        here = bins[node.rows, column]
        is_missing = here == missing_bin
        goes_left = (here <= cut) & ~is_missing | (is_missing & missing_left)
        left, right = node.rows[goes_left], node.rows[~goes_left]
        direction = limits.monotonic[column] if limits.monotonic else 0
        bounds = node.bounds, node.bounds
        if direction and cut < n_values[column] - 1:
            sides = [_values(numbers.sums(side), limits.l2, node.bounds) for side in (left, right)]
            middles = [0.5 * (a + b) for a, b in zip(*sides, strict=True)]
            lower = [(old[0], m) for old, m in zip(node.bounds, middles, strict=True)]
            upper = [(m, old[1]) for old, m in zip(node.bounds, middles, strict=True)]
            bounds = (lower, upper)[::direction]
        used = node.used | {column}
        seeds = child_seed(node.seed, 0), child_seed(node.seed, 1)
        node.left = open_node(left, node.depth + 1, bounds[0], seeds[0], used)
        node.right = open_node(right, node.depth + 1, bounds[1], seeds[1], used)
        n_leaves += 1
    return nodes


def leaves(nodes):
    """Leaves in the order of their nodes."""
    return [node for node in nodes if node.left is None]
