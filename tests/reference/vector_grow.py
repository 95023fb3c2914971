"""Naive twins of :mod:`hilboost.engine.ops.cpu.vector_grow`: every cut tried, every sum afresh."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from tests.reference.nodes import child_seed
from tests.reference.random_bits import mix
from tests.reference.vector_cuts import NO_GAIN, score_of, weights_of
from tests.reference.vector_levels import best_subset, drawn_subset, settled_subset

from hilboost.engine.ops.cpu.nodes import N_ROWS


def sum_rows(node, growth):
    begin, end = growth.nodes.fields[node, :2]
    here, gradients = growth.buffers.rows[0, begin:end], growth.gradients
    growth.sums.totals[node] = gradients.values[here].sum(axis=0)
    weight, squares = weights_of(gradients.weights, here).sum(), gradients.squares[here].sum()
    growth.sums.masses[node, :2] = weight, squares


def set_priority(node, growth):
    """Of the root, whose priority depends on the limits alone."""
    limits, masses, totals = growth.limits, growth.sums.masses[node], growth.sums.totals[node]
    weight, squares, _ = masses
    masses[2] = variance = squares - (totals**2).sum() / weight
    n_rows = growth.nodes.fields[node, N_ROWS]
    split = n_rows >= 2 and variance > limits.pure and weight >= 2 * limits.min_weight
    growth.nodes.priority[node] = variance if split and limits.max_depth > 0 else NO_GAIN


@dataclass
class Node:
    """A node; the split is there where it was taken."""

    rows: np.ndarray
    depth: int
    seed: int
    variance: float
    split: tuple[int, object, bool, float] | None = None
    gain: float = 0.0
    left: int | None = None


@dataclass(frozen=True)
class Limits:
    """As in the compiled module, by name; ``tie`` and ``pure`` are relative and absolute."""

    min_weight: float
    tie: float
    pure: float
    max_leaves: int
    max_depth: int
    n_columns: int
    random_cuts: bool


@dataclass(frozen=True)
class Table:
    """Bins (n, d) and the values (n, d) in them, and which columns are categories.

    A cut of numbers is a bin, one of categories the set of the levels that go left.
    """

    bins: np.ndarray
    X: np.ndarray
    missing: int
    categories: frozenset = frozenset()

    def goes_left(self, rows, column, cut, side):
        """Which rows a split sends left."""
        b = self.bins[rows, column]
        if column in self.categories:
            present = np.isin(b, list(cut - {self.missing}))
            return np.where(b == self.missing, side, present)
        return (b <= cut) | (side & (b == self.missing))

    def values(self, rows, column):
        """Values of the rows that have one."""
        here = self.X[rows, column].astype(np.float64)
        return here[~np.isnan(here)]


def _candidates(table, rows, limits, seed):
    """Columns, with a cut (bin, side, value) where these are random."""
    d = table.X.shape[1]
    if limits.n_columns >= d and not limits.random_cuts:
        return [(column, None) for column in range(d)]
    left, chosen, state = list(range(d)), [], seed
    while left and len(chosen) < limits.n_columns:
        state = mix(state)
        place = int((state >> 11) * 2.0**-53 * len(left))
        state = mix(state)
        cut = None
        if limits.random_cuts:
            number = (state >> 11) * 2.0**-53
            if left[place] in table.categories:
                cut = random_levels(table, rows, left[place], state ^ 0xA0761D6478BD642F)
            else:
                cut = random_cut(table, rows, left[place], number)
        if cut is None and limits.random_cuts:
            left[place] = left[-1]
            left.pop()
        else:
            chosen.append((left[place], cut))
            left[place] = left[0]
            left.pop(0)
    return chosen


def random_levels(table, rows, column, seed):
    """Any levels of a node, neither none nor all of them."""
    chosen = drawn_subset(table.bins[rows, column], table.missing, seed)
    return None if chosen is None else (chosen, table.missing in chosen, 0.0)


def random_cut(table, rows, column, number):
    """A cut between the least and the greatest bin of a node, moved to the edge of a bin."""
    everywhere, whole = table.bins[:, column], table.X[:, column].astype(np.float64)
    here = everywhere[rows]
    present = np.unique(here[here < table.missing])
    if len(present) == 0 or (len(present) == 1 and (here < table.missing).all()):
        return None
    first, last = int(present[0]), int(present[-1])
    low = {b: whole[everywhere == b].min() for b in range(first, last + 1)}
    high = {b: whole[everywhere == b].max() for b in range(first, last + 1)}
    if first == last:
        return last, False, high[last]
    value = low[first] + number * (high[last] - low[first])
    cut = max([first] + [b for b in range(first + 1, last) if low[b] <= value])
    value = max(value, high[cut])
    return cut, False, value if value < low[cut + 1] else high[cut]


def _best_split(table, rows, gradients, weights, limits, seed, tie):
    best, best_score = None, NO_GAIN
    for column, drawn in _candidates(table, rows, limits, seed):
        b = table.bins[rows, column]
        if drawn is None and column in table.categories:
            _, chosen = best_subset(b, rows, gradients, weights, limits.min_weight, tie)
            cuts = [(chosen, table.missing in chosen, 0.0)] if chosen else []
        elif drawn is None:
            some = (b == table.missing).any()
            cuts = [
                (int(cut), side, None)
                for side in ((False, True) if some else (False,))
                for cut in np.unique(b[b < table.missing])
            ]
        else:
            cuts = [drawn]
        own, own_score = None, NO_GAIN
        for cut, side, value in cuts:
            goes_left = table.goes_left(rows, column, cut, side)
            score = score_of(rows, goes_left, gradients, weights, limits.min_weight)
            if score > own_score + (0 if own is None else tie):
                own, own_score = (column, cut, side, value), score
        if own is not None and (best is None or own_score > best_score + tie):
            best, best_score = own, own_score
    return best, best_score


def _finished(table, rows, split, weights):
    """The side of missing values that none has, and the value of a cut between two bins."""
    column, cut, side, value = split
    b = table.bins[rows, column]
    if column in table.categories:
        return column, *settled_subset(b, rows, table.missing, weights, cut), value
    if not (b == table.missing).any():
        weight = weights_of(weights, rows)
        side = bool(2 * weight[b <= cut].sum() >= (1 - 1e-6) * weight.sum())
    if value is None:
        whole = table.X[:, column].astype(np.float64)
        value = whole[table.bins[:, column] == cut].max()
        above = b[(b > cut) & (b < table.missing)]
        if len(above):
            following = whole[table.bins[:, column] == above.min()].min()
            middle = value + (0.5 * following - 0.5 * value)
            value = middle if value <= middle < following else value
    return column, cut, side, value


def grow_vector(table, gradients, weights, row_squares, rows, limits, seed):
    """Nodes in order of creation; ``gradients`` and ``row_squares`` are weighted already."""

    def node_of(rows, depth, seed):
        total, weight = gradients[rows].sum(axis=0), weights_of(weights, rows).sum()
        return Node(rows, depth, seed, row_squares[rows].sum() - (total @ total) / weight)

    def is_open(i):
        node = nodes[i]
        return i not in closed and not (
            len(node.rows) < 2
            or node.variance <= limits.pure
            or node.depth >= limits.max_depth
            or weights_of(weights, node.rows).sum() < 2 * limits.min_weight
        )

    nodes, closed = [node_of(rows, 0, seed)], set()
    root_weight = weights_of(weights, rows).sum()
    while (len(nodes) + 1) // 2 < limits.max_leaves:
        waiting = [i for i in range(len(nodes)) if is_open(i)]
        if not waiting:
            break
        in_turn = limits.max_leaves >= len(rows)
        i = waiting[0] if in_turn else max(waiting, key=lambda i: (nodes[i].variance, -i))
        closed.add(i)
        node = nodes[i]
        weight = weights_of(weights, node.rows).sum()
        tie = limits.tie * nodes[0].variance / root_weight * weight
        split, score = _best_split(table, node.rows, gradients, weights, limits, node.seed, tie)
        if split is None:
            continue
        column, cut, side, value = _finished(table, node.rows, split, weights)
        total = gradients[node.rows].sum(axis=0)
        node.split = column, cut, side, value
        node.gain = max(score - (total @ total) / weight, 0.0)
        node.left = len(nodes)
        goes_left = table.goes_left(node.rows, column, cut, side)
        for side, part in enumerate((node.rows[goes_left], node.rows[~goes_left])):
            nodes.append(node_of(part, node.depth + 1, child_seed(node.seed, side)))
    return nodes
