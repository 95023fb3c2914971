"""Paths to the leaves of a tree."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.compiled import compiled


class LeafPaths(NamedTuple):
    """Conditions on the paths to the leaves of one tree."""

    # (n_conditions,) int32: the split; from the leaf up, for leaves in the order of their nodes
    node: NDArray[np.int32]
    right: NDArray[np.bool_]  # (n_conditions,) bool: whether the path goes right
    slot: NDArray[np.int32]  # (n_conditions,) int32: place of the player among the leaf's players
    start: NDArray[np.int64]  # (n_leaves + 1,) int64: first condition of each leaf
    player: NDArray[np.int32]  # (n_slots,) int32
    first_slot: NDArray[np.int64]  # (n_leaves + 1,) int64


@compiled
def leaf_paths(trees, tree, player_of_column, parent, paths):
    """Write the paths of one tree.

    ``player_of_column``: (d,) int32. ``parent``: (n_nodes of the tree,) int64, scratch.
    """
    root, end = trees.roots[tree], trees.roots[tree + 1]
    for node in range(root, end):
        child = trees.child[node]
        if child != node:
            parent[child - root], parent[child + 1 - root] = node, node
    leaf, at, n_slots = 0, 0, 0
    for node in range(root, end):
        if trees.child[node] != node:
            continue
        paths.start[leaf], paths.first_slot[leaf] = at, n_slots
        first, here = n_slots, node
        while here != root:
            above = parent[here - root]
            player = player_of_column[trees.column[above]]
            slot = first
            while slot < n_slots and paths.player[slot] != player:
                slot += 1
            if slot == n_slots:
                paths.player[slot] = player
                n_slots += 1
            paths.node[at], paths.slot[at] = above, slot - first
            paths.right[at] = here == trees.child[above] + 1
            at, here = at + 1, above
        leaf += 1
    paths.start[leaf], paths.first_slot[leaf] = at, n_slots
