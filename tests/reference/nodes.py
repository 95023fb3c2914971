"""Naive twins of :mod:`hilboost.backends.nodes`."""

import math

from hilboost.backends.nodes import BEGIN, BUFFER, DEPTH, END, LEFT, N_NODES, RIGHT, SLOT


def choose_node(nodes, gains, n_nodes, max_leaves):
    is_open = [i for i in range(n_nodes) if nodes[i, LEFT] < 0 and gains[i] > -math.inf]
    if not is_open or (n_nodes + 1) // 2 >= max_leaves:
        return -1
    return max(is_open, key=lambda i: gains[i])  # the first of equals


def open_children(node, n_left, nodes, gains, totals, left_totals, control):
    left = int(control[N_NODES])
    begin, end = nodes[node, [BEGIN, END]]
    sides = [
        (left, begin, begin + n_left, left_totals[node]),
        (left + 1, begin + n_left, end, totals[node] - left_totals[node]),
    ]
    for child, first, last, sums in sides:
        fields = [BEGIN, END, BUFFER, DEPTH, SLOT, LEFT, RIGHT]
        buffer, depth = 1 - nodes[node, BUFFER], nodes[node, DEPTH] + 1
        nodes[child, fields] = [first, last, buffer, depth, -1, -1, -1]
        gains[child], totals[child] = -math.inf, sums
    nodes[node, [LEFT, RIGHT]] = left, left + 1
    control[N_NODES] += 2
