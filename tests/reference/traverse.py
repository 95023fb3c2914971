"""Naive twins of :mod:`hilboost.backends.traverse`: one row, one tree, one step at a time."""

import numpy as np
from tests.reference.levels import level_goes_left


def binned_leaves(
    bins, n, nodes, leaf_of, levels, left_sets, missing_bin, rows, begin, end, leaf_of_row
):
    table = bins.reshape(-1, n, 8)
    for row in rows[begin:end]:
        node = 0
        while nodes[node, 8] >= 0:
            column, cut, missing_left, left, right = nodes[node, 5:10]
            b = table[column // 8, row, column % 8]
            if b == missing_bin:
                goes_left = bool(missing_left)
            elif len(levels) and levels[column]:
                goes_left = level_goes_left(left_sets, node, b)
            else:
                goes_left = b <= cut
            node = left if goes_left else right
        leaf_of_row[row] = leaf_of[node]


def _leaf(x, node, columns, thresholds, missing_right, children, set_numbers, left_sets):
    while children[node] != node:
        value = x[columns[node]]
        if np.isnan(value):
            right = missing_right[node]
        elif len(set_numbers) and set_numbers[node] >= 0:
            right = not level_goes_left(left_sets, set_numbers[node], value)
        else:
            right = value > thresholds[node]
        node = children[node] + int(right)
    return node


def add_forest(
    *,
    X,
    roots,
    columns,
    thresholds,
    missing_right,
    children,
    set_numbers,
    left_sets,
    value_offset,
    values,
    widths,
    first_output,
    begin,
    end,
    raw,
    **_,
):
    for i in range(begin, end):
        for tree, (width, first) in enumerate(zip(widths, first_output, strict=True)):
            leaf = _leaf(
                X[i],
                roots[tree],
                columns,
                thresholds,
                missing_right,
                children,
                set_numbers,
                left_sets,
            )
            at = value_offset[leaf]
            raw[i, first : first + width] += values[at : at + width]


def forest_leaves(
    X,
    roots,
    columns,
    thresholds,
    missing_right,
    children,
    set_numbers,
    left_sets,
    leaf_number,
    begin,
    end,
    leaf_of_row,
):
    for i in range(begin, end):
        for tree in range(leaf_of_row.shape[1]):
            leaf = _leaf(
                X[i],
                roots[tree],
                columns,
                thresholds,
                missing_right,
                children,
                set_numbers,
                left_sets,
            )
            leaf_of_row[i, tree] = leaf_number[leaf]


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
