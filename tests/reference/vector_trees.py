"""Trees with vector leaves, naively: every split tried, every sum afresh.

A split is a column, the set of the bins that go left, and the threshold of numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from tests.reference.nodes import child_seed
from tests.reference.random_bits import mix

UNSEEN = 255  # the number of levels that the fit did not see
MOST_TRIED = 10  # levels, whose subsets are all tried
NO_GAIN = -math.inf


class Split(NamedTuple):
    column: int
    left: frozenset
    threshold: float = 0.0


@dataclass
class Node:
    rows: np.ndarray
    depth: int
    seed: int
    variance: float
    split: Split | None = None
    gain: float = 0.0
    left: int | None = None  # number of the left child


class VectorTree:
    """The nodes in the order of their numbers, grown from bins (n, d) of the values ``X``.

    ``missing`` is the bin of missing values; ``gradients`` (n, r) are those to learn from.
    """

    def __init__(self, settings, X, bins, missing, gradients, sample, seed):
        n, d = X.shape
        self.X, self.bins, self.missing, self.settings = (
            X.astype(np.float64),
            bins,
            missing,
            settings,
        )
        self.levels = {column for column, _ in settings.categorical}
        rows = np.arange(n) if sample.rows is None else sample.rows.astype(int)
        self.weights = np.ones(n) if sample.weight is None else sample.weight
        mass = self.weights[rows].sum()
        mean = self.weights[rows] @ gradients[rows] / mass
        self.sums = self.weights[:, None] * (gradients - mean)
        self.squares = self.weights * ((gradients - mean) ** 2).sum(axis=1)
        rounding = (2 * np.finfo(float).eps) ** 2 * mass * (mean**2).sum()
        self.pure = 1e-12 * self.squares[rows].sum() + rounding
        self.min_weight = (1 - 1e-6) * settings.min_samples_leaf
        share = settings.max_features
        self.n_columns = max(1, round((1 / np.sqrt(d) if share == "sqrt" else share) * d))
        self.nodes = [self.node(rows, 0, seed)]
        self.tie = 1e-10 * self.nodes[0].variance / mass
        self.grow()

    def node(self, rows, depth, seed):
        total, mass = self.sums[rows].sum(axis=0), self.weights[rows].sum()
        return Node(rows, depth, seed, self.squares[rows].sum() - total @ total / mass)

    def grow(self):
        """Split the node of largest variance, or any where each row may have a leaf."""
        root, settings = self.nodes[0], self.settings
        most = len(root.rows) if settings.max_splits is None else settings.max_splits + 1
        depth = math.inf if settings.max_depth is None else settings.max_depth
        closed = set()
        while (len(self.nodes) + 1) // 2 < most:
            waiting = [
                i
                for i, node in enumerate(self.nodes)
                if i not in closed
                and len(node.rows) > 1
                and node.variance > self.pure
                and node.depth < depth
                and self.weights[node.rows].sum() >= 2 * self.min_weight
            ]
            if not waiting:
                return
            best = max(waiting, key=lambda i: (self.nodes[i].variance, -i))
            chosen = waiting[0] if most >= len(root.rows) else best
            closed.add(chosen)
            self.divide(self.nodes[chosen])

    def divide(self, node):
        best, best_score = None, NO_GAIN
        tie = self.tie * self.weights[node.rows].sum()
        for column, drawn in self.candidates(node):
            own, own_score = None, NO_GAIN
            for split in self.splits(node, column) if drawn is None else [drawn]:
                score = self.score(node.rows, split)
                if score > own_score + tie:
                    own, own_score = split, score
            if own_score > best_score + tie:
                best, best_score = own, own_score
        if best is None:
            return
        total, mass = self.sums[node.rows].sum(axis=0), self.weights[node.rows].sum()
        node.split, node.gain = self.settled(node, best), max(best_score - total @ total / mass, 0)
        node.left = len(self.nodes)
        goes_left = self.goes_left(node.rows, node.split)
        for side, rows in enumerate((node.rows[goes_left], node.rows[~goes_left])):
            self.nodes.append(self.node(rows, node.depth + 1, child_seed(node.seed, side)))

    def goes_left(self, rows, split):
        return np.isin(self.bins[rows, split.column], list(split.left))

    def score(self, rows, split):
        """``|S_l|²/W_l + |S_r|²/W_r``, or no gain where a side is too light."""
        score, goes_left = 0.0, self.goes_left(rows, split)
        for side in (rows[goes_left], rows[~goes_left]):
            mass = self.weights[side].sum()
            if mass < self.min_weight or mass <= 0:
                return NO_GAIN
            score += (self.sums[side].sum(axis=0) ** 2).sum() / mass
        return score

    def splits(self, node, column):
        """All that are tried, in this order."""
        present = np.unique(self.bins[node.rows, column]).tolist()
        if column not in self.levels:
            for missing in (set(), {self.missing}) if self.missing in present else (set(),):
                for cut in (b for b in present if b < self.missing):
                    yield Split(column, missing | set(range(cut + 1)))
        elif len(present) <= MOST_TRIED:  # without the last level, in the order of binary numbers
            for number in range(1, 2 ** (len(present) - 1)):
                yield Split(column, {b for i, b in enumerate(present) if number >> i & 1})
        else:
            ranked = self.along_first_component(node, column, present)
            yield from (Split(column, set(ranked[:end])) for end in range(1, len(ranked)))

    def along_first_component(self, node, column, levels):
        here = [node.rows[self.bins[node.rows, column] == level] for level in levels]
        mass = np.array([self.weights[rows].sum() for rows in here])
        sums = np.array([self.sums[rows].sum(axis=0) for rows in here])
        means = sums / mass[:, None] - sums.sum(axis=0) / mass.sum()
        _, _, directions = np.linalg.svd(np.sqrt(mass)[:, None] * means, full_matrices=False)
        return [levels[i] for i in np.argsort(means @ directions[0])]

    def candidates(self, node):
        """Columns, each with a split where these are random."""
        d, random_cuts = self.X.shape[1], self.settings.random_cuts
        if self.n_columns >= d and not random_cuts:
            return [(column, None) for column in range(d)]
        left, chosen, state = list(range(d)), [], node.seed
        while left and len(chosen) < self.n_columns:
            state = mix(state)
            place = int((state >> 11) * 2.0**-53 * len(left))
            state, column = mix(state), left[place]
            split = self.drawn(node, column, state) if random_cuts else None
            if split is None and random_cuts:
                left[place] = left[-1]
                left.pop()
            else:
                chosen.append((column, split))
                left[place] = left[0]
                left.pop(0)
        return chosen

    def drawn(self, node, column, state):
        """A random split, or none where all values are equal."""
        present = set(np.unique(self.bins[node.rows, column]).tolist())
        values = sorted(present - {self.missing})
        if len(present) < 2:
            return None
        if column in self.levels:
            return Split(column, drawn_levels(present, self.missing, state ^ 0xA0761D6478BD642F))
        first, last = values[0], values[-1]
        low, high = self.ranges(column, first, last)
        if first == last:
            return Split(column, set(range(last + 1)), high[last])
        value = low[first] + (state >> 11) * 2.0**-53 * (high[last] - low[first])
        cut = max([first] + [b for b in range(first + 1, last) if low[b] <= value])
        value = max(value, high[cut])  # between the values of the bins on both sides
        value = value if value < low[cut + 1] else high[cut]
        return Split(column, set(range(cut + 1)), value)

    def ranges(self, column, first, last):
        """Least and greatest value of some bins, over all rows of the table."""
        here = {b: self.X[self.bins[:, column] == b, column] for b in range(first, last + 1)}
        low, high = ({b: end(v) for b, v in here.items() if len(v)} for end in (np.min, np.max))
        return low, high

    def settled(self, node, split):
        """What no row of the node has goes to the heavier side; thresholds lie between bins."""
        column, left, threshold = split
        b, mass = self.bins[node.rows, column], self.weights[node.rows]
        present = set(np.unique(b).tolist())
        heavier = 2 * mass[np.isin(b, list(left))].sum() >= (1 - 1e-6) * mass.sum()
        if column in self.levels:
            absent = set(range(UNSEEN + 1)) - present
            return Split(column, left | absent if heavier else left)
        if self.missing not in present:
            left = left | ({self.missing} if heavier else set())
        if not self.settings.random_cuts:
            cut = max(left - {self.missing})
            above = [x for x in present if cut < x < self.missing]
            low, high = self.ranges(column, cut, min(above, default=cut))
            threshold = high[cut]
            if above:
                middle = threshold + (0.5 * low[min(above)] - 0.5 * threshold)
                threshold = middle if threshold <= middle < low[min(above)] else threshold
        return Split(column, left, threshold)


def drawn_levels(present, missing, state):
    """Neither none nor all of some levels; the bit of missing values is the highest of a word."""
    while True:
        state = mix(state)
        left = {missing} & present if state >> 63 else set()
        for w in range(4):
            state = mix(state)
            left |= {x for x in present - {missing} if x >> 6 == w and state >> (x & 63) & 1}
        if left and left != present:
            return left
