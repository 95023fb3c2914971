"""Naive twins of :mod:`hilboost.engine.ops.cpu.binned_leaves`: one row, one step at a time."""

import numpy as np
from tests.reference import traverse
from tests.reference.category_splits import level_goes_left
from tests.reference.histogram import table_of

from hilboost.engine.ops.cpu.nodes import BIN, COLUMN, LEFT, MISSING_LEFT, RIGHT


def order_leaves(child, leaf_number, scratch):
    def below(node):
        """Leaf nodes of a subtree from left to right."""
        left = int(child[node])
        return [node] if left == node else below(left) + below(left + 1)

    leaves = below(0)
    scratch.in_order[: len(leaves)] = leaf_number[leaves]
    for node in np.flatnonzero(leaf_number < 0):
        places = [leaves.index(leaf) for leaf in below(int(child[node]))]
        mask = (1 << 64) - 1 - sum(1 << place for place in places)
        scratch.masks[node] = mask % (1 << 64)


def binned_leaves(table, tree, categories, words, begin, end, leaf_of_row):
    bins = table_of(table.words, len(table.n_values))
    is_category, left_sets = categories
    nodes = tree.nodes
    for row in range(begin, end):
        if leaf_of_row[row] >= 0:
            continue
        node = 0
        while nodes[node, LEFT] >= 0:
            column, cut, missing_left = nodes[node, [COLUMN, BIN, MISSING_LEFT]]
            b = bins[row, column]
            if b == table.n_bins - 1:
                goes_left = bool(missing_left)
            elif len(is_category) and is_category[column]:
                goes_left = level_goes_left(left_sets, node, b)
            else:
                goes_left = b <= cut
            node = nodes[node, LEFT if goes_left else RIGHT]
        leaf_of_row[row] = tree.leaf_number[node]


def add_forest_on_bins(words, last_bin, forest, begin, end, raw):
    bins = table_of(words, 8 * len(words)).astype(float)
    bins[bins == last_bin] = np.nan
    traverse.add_forest(bins, forest, begin, end, True, raw)
