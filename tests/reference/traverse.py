"""Naive twins of :mod:`hilboost.engine.ops.cpu.traverse`: one row, one tree, one step at a time."""

import numpy as np
from tests.reference.category_splits import level_goes_left

from hilboost.engine.ops.cpu.traverse import CHILD, SET_OR_VALUES


def goes_right(value, node, trees):
    if np.isnan(value):
        return int(trees.missing_right[node])
    if len(trees.set_numbers) and trees.set_numbers[node] >= 0:
        return int(not level_goes_left(trees.left_sets, trees.set_numbers[node], value))
    return int(value > trees.threshold[node])


def leaf_of(x, node, trees):
    while trees.child[node] != node:
        node = trees.child[node] + goes_right(x[trees.column[node]], node, trees)
    return node


def add_forest(X, forest, begin, end, has_missing, raw):
    trees, leaves = forest.trees, forest.leaves
    for i in range(begin, end):
        for tree, (width, first) in enumerate(zip(leaves.widths, leaves.first_output, strict=True)):
            at = leaves.offset[leaf_of(X[i], trees.roots[tree], trees)]
            raw[i, first : first + width] += leaves.values[at : at + width]


def walk_rows(X, trees, thresholds, links, left_sets, values, raw):
    for i, x in enumerate(X):
        for node, first, width in trees:
            while links[node, CHILD] != node:
                column, child, missing_right, number = links[node]
                if np.isnan(x[column]):
                    right = missing_right
                elif len(left_sets) and number >= 0:
                    right = not level_goes_left(left_sets, number, x[column])
                else:
                    right = x[column] > thresholds[node]
                node = child + int(right)
            at = links[node, SET_OR_VALUES]
            raw[i, first : first + width] += values[at : at + width]


def forest_leaves(X, trees, leaf_number, begin, end, leaf_of_row):
    for i in range(begin, end):
        for tree in range(leaf_of_row.shape[1]):
            leaf_of_row[i, tree] = leaf_number[leaf_of(X[i], trees.roots[tree], trees)]


def mark_left_leaves(roots, children, order, masks):
    def leaves(node):
        if children[node] == node:
            return [node]
        return leaves(children[node]) + leaves(children[node] + 1)

    for first, last in zip(roots[:-1], roots[1:], strict=True):
        from_left = leaves(first)
        for node in range(first, last):
            below = leaves(node)
            order[node] = from_left.index(below[0])
            if len(below) > 1:
                excluded = {from_left.index(leaf) for leaf in leaves(children[node])}
                masks[node] = sum(1 << i for i in range(64) if i not in excluded)
