"""Naive twins of :mod:`hilboost.engine.ops.cpu.nodes`."""

import math

import numpy as np
from tests.reference.random_bits import mix

from hilboost.engine.ops.cpu.nodes import (
    ARRAY,
    BEGIN,
    COLUMN,
    DEPTH,
    END,
    LEFT,
    LEFT_ARRAY,
    MISSING_LEFT,
    N_NODES,
    N_ROWS,
    NODE,
    RIGHT,
    SLOT,
)


def open_root(nodes, n_rows, seed):
    nodes.fields[0] = 0
    nodes.fields[0, [END, N_ROWS]] = n_rows
    nodes.fields[0, [SLOT, LEFT, RIGHT]] = -1
    nodes.gains[0] = nodes.priority[0] = -math.inf
    nodes.control[:] = 0
    nodes.control[NODE], nodes.control[N_NODES] = -1, 1
    nodes.seeds[0] = seed


def choose_node(nodes, max_leaves, in_turn):
    n_nodes, last = int(nodes.control[N_NODES]), int(nodes.control[NODE])
    is_open = [
        i for i in range(n_nodes) if nodes.fields[i, LEFT] < 0 and nodes.priority[i] > -math.inf
    ]
    if in_turn:
        is_open = [i for i in is_open if i >= last][:1]
    if not is_open or (n_nodes + 1) // 2 >= max_leaves:
        return -1
    return max(is_open, key=lambda i: nodes.priority[i])  # the first of equals


def child_seed(seed, side):
    """Of the left child (0) or the right one (1)."""
    return mix(seed ^ (0xD1342543DE82EF95, 0x9FB21C651E98DF25)[side])


def open_children(node, n_left_here, n_left, nodes):
    table, left = nodes.fields, int(nodes.control[N_NODES])
    begin, end, n_rows = table[node, [BEGIN, END, N_ROWS]]
    middle = begin + n_left_here
    depth, array, left_array = table[node, [DEPTH, ARRAY, LEFT_ARRAY]]
    sides = [
        (left, begin, middle, n_left, left_array),
        (left + 1, middle, end, n_rows - n_left, 1 - array),
    ]
    for child, first, last, rows, its_array in sides:
        fields = [BEGIN, END, DEPTH, SLOT, LEFT, RIGHT, N_ROWS, ARRAY]
        table[child, fields] = [first, last, depth + 1, -1, -1, -1, rows, its_array]
        nodes.gains[child] = nodes.priority[child] = -math.inf
    table[node, [LEFT, RIGHT]] = left, left + 1
    seed = int(nodes.seeds[node])
    nodes.seeds[[left, left + 1]] = [child_seed(seed, side) for side in (0, 1)]
    nodes.control[N_NODES] += 2


def write_tree(nodes, n_nodes, gains, thresholds, is_category, trees, place):
    nodes, here = nodes[:n_nodes], slice(n_nodes)
    tree = type(trees)(*[array[place] for array in trees])
    is_leaf = nodes[:, LEFT] < 0
    by_level = is_category[nodes[:, COLUMN]] != 0 if len(is_category) else np.zeros(n_nodes, bool)
    leaves = np.flatnonzero(is_leaf)
    tree.column[here] = np.where(is_leaf, 0, nodes[:, COLUMN])
    tree.threshold[here] = np.where(is_leaf, np.inf, np.where(by_level, 0.0, thresholds[here]))
    tree.missing_right[here] = ~is_leaf & (nodes[:, MISSING_LEFT] == 0)
    tree.child[here] = np.where(is_leaf, np.arange(n_nodes), nodes[:, LEFT])
    tree.gain[here] = np.where(is_leaf, 0.0, gains[here])
    tree.leaf_number[here] = np.where(is_leaf, np.cumsum(is_leaf) - 1, -1)
    tree.leaves[: len(leaves)] = leaves
    return nodes[:, DEPTH].max()


def draw_columns(allowed, n_draw, seed, drawn):
    """Selection sampling with a counter-based generator."""
    left = int(np.sum(allowed))
    wanted = min(n_draw, left)
    state = int(seed)
    for f, is_allowed in enumerate(allowed):
        drawn[f] = 0
        if is_allowed:
            state = mix(state)
            if (state >> 11) * 2.0**-53 * left < wanted:
                drawn[f] = 1
                wanted -= 1
            left -= 1
