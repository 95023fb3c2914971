"""Naive twin of :mod:`hilboost.engine.ops.cpu.symmetric`: each level by exhaustive search."""

from __future__ import annotations

import math

import numpy as np
from tests.reference import grow as best_first
from tests.reference.nodes import child_seed, draw_columns


def _sides(node, bins, missing_bin, column, cut, missing_left):
    here = bins[node.rows, column]
    goes_left = (here <= cut) & (here != missing_bin) | (here == missing_bin) & missing_left
    return node.rows[goes_left], node.rows[~goes_left]


def _gain(node, sides, numbers, limits):
    left, right = (numbers.sums(side) for side in sides)
    return best_first._gain(left, right, numbers.sums(node.rows), limits, numbers.together)


def _best_cut(nodes, bins, n_values, missing_bin, numbers, limits, drawn):
    """The cut of the largest sum of gains: (column, cut, missing_left), or ``None``."""
    best, chosen = -math.inf, None
    for column in np.flatnonzero(drawn):
        some_missing = any(
            not numbers.is_empty(node.rows[bins[node.rows, column] == missing_bin])
            for node in nodes
        )
        for missing_left in (False, True) if some_missing else (False,):
            beyond = some_missing and not missing_left
            gains = []
            for cut in range(n_values[column] - (not beyond)):
                sums = 0.0
                for node in nodes:
                    sides = _sides(node, bins, missing_bin, column, cut, missing_left)
                    gain = _gain(node, sides, numbers, limits)
                    sums += gain if gain > -math.inf else 0.0
                gains.append(sums)
            if not gains or max(gains) <= best:
                continue
            best, cut = max(gains), int(np.argmax(gains))
            end = cut
            while end + 1 < len(gains) and gains[end + 1] == best:
                end += 1
            whole = beyond and end == len(gains) - 1
            chosen = int(column), end if whole else (cut + end) // 2, missing_left, some_missing
    return (best, chosen) if best > 0 and best >= limits.min_gain else (best, None)


def grow_symmetric(bins, n_values, missing_bin, rows, numbers, limits, allowed, min_rows):
    """Grow one symmetric tree; returns its nodes, in the order in which they were opened."""
    root = best_first.Node(np.asarray(rows), 0, [], limits.seed)
    nodes = [root]
    for _ in range(limits.max_depth):
        drawn = allowed.copy()
        if limits.columns_per_node:
            draw_columns(allowed, limits.columns_per_node, nodes[-1].seed, drawn)
        leaves = [node for node in nodes if node.left is None and len(node.rows) >= min_rows]
        if len([node for node in nodes if node.left is None]) >= limits.max_leaves:
            break
        _, split = _best_cut(leaves, bins, n_values, missing_bin, numbers, limits, drawn)
        if split is None:
            break
        column, cut, missing_left, some_missing = split
        sides = [_sides(node, bins, missing_bin, column, cut, missing_left) for node in leaves]
        if not some_missing:
            on_left = sum(numbers.sums(left)[2] for left, _ in sides)
            missing_left = 2 * on_left >= sum(numbers.sums(node.rows)[2] for node in leaves)
        for node, (left, right) in zip(leaves, sides, strict=True):
            gain = _gain(node, (left, right), numbers, limits)
            if gain == -math.inf:
                continue
            node.gain, node.split = max(gain, 0.0), (column, cut, bool(missing_left))
            node.left, node.right = len(nodes), len(nodes) + 1
            for side, chosen in enumerate((left, right)):
                seed = child_seed(node.seed, side)
                nodes.append(best_first.Node(chosen, node.depth + 1, [], seed))
    return nodes
