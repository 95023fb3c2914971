"""Naive twins of :mod:`hilboost.backends.grow`: best-first growth by exhaustive search."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

_WORD = 2**64 - 1


def mix(x):
    x = (x + 0x9E3779B97F4A7C15) & _WORD
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _WORD
    return x ^ (x >> 31)


def draw_columns(allowed, n_draw, seed, node, drawn):
    """Selection sampling with a counter-based generator."""
    left = int(np.sum(allowed))
    wanted = min(n_draw, left)
    state = mix((seed ^ ((node + 1) * 0xD1342543DE82EF95)) & _WORD)
    for f, is_allowed in enumerate(allowed):
        drawn[f] = 0
        if is_allowed:
            state = mix(state)
            if (state >> 11) * 2.0**-53 * left < wanted:
                drawn[f] = 1
                wanted -= 1
            left -= 1


@dataclass
class Node:
    """A node; ``split`` is the best one found, taken where ``left`` is there."""

    rows: np.ndarray
    depth: int
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


def _score(g, h, l2):
    return 0.0 if h <= 0 else g * g / (h + l2)


def _gain(left, right, whole, limits, together):
    (gl, hl, cl), (gr, hr, cr), (g, h, _) = left, right, whole
    if min(cl, cr) < limits.min_count or min(cl, cr) <= 0:
        return -math.inf
    if min(sum(hl), sum(hr)) < limits.min_hessian:
        return -math.inf
    parent = sum(_score(a, b, limits.l2) for a, b in zip(g, h, strict=True))
    if together:  # one output: over a common denominator
        a, c = hl[0] + limits.l2, hr[0] + limits.l2
        return (
            (gl[0] * gl[0] * c + gr[0] * gr[0] * a) / (a * c) - parent if a * c > 0 else -math.inf
        )
    parts = [
        sum(_score(a, b, limits.l2) for a, b in zip(x, y, strict=True))
        for x, y in ((gl, hl), (gr, hr))
    ]
    return parts[0] + parts[1] - parent


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

    def open_node(chosen, depth):
        node = Node(chosen, depth)
        drawn = allowed.copy()
        if limits.columns_per_node:
            draw_columns(allowed, limits.columns_per_node, limits.seed, len(nodes), drawn)
        if depth < limits.max_depth:
            _best_split(node, bins, n_values, missing_bin, numbers, limits, drawn)
        nodes.append(node)
        return len(nodes) - 1

    open_node(np.asarray(rows), 0)
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
        node.left = open_node(node.rows[goes_left], node.depth + 1)
        node.right = open_node(node.rows[~goes_left], node.depth + 1)
        n_leaves += 1
    return nodes


def leaves(nodes):
    """Leaves in the order of their nodes."""
    return [node for node in nodes if node.left is None]
