"""Concatenated trees in model files.

``stage``, ``n_nodes``, ``n_leaves``, ``first_column``, ``n_columns``, ``depth`` (n_trees,), the
node arrays of :class:`~hilboost.engine.Tree`, ``values`` and ``coefficient`` (flat).  If
any tree splits on categories, also ``by_level`` (all nodes) and ``left_sets`` (n_sets, 4).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from hilboost.core.base_model import Term
from hilboost.engine import SET_WORDS, Tree
from hilboost.persistence.require import Arrays, require, require_array, require_finite

_NODE_ARRAYS = {
    "column": np.int32,
    "threshold": np.float64,
    "missing_right": np.bool_,
    "child": np.int32,
    "gain": np.float64,
    "leaf_number": np.int32,
}
_TREE_ARRAYS = ("stage", "n_nodes", "n_leaves", "first_column", "n_columns", "depth")
_SETS = ("by_level", "left_sets")
NAMES = frozenset({*_TREE_ARRAYS, *_NODE_ARRAYS, *_SETS, "values", "coefficient"})


def to_arrays(terms: list[tuple[int, Term]]) -> Arrays:
    """Convert the stage number and term of every tree to arrays."""
    trees: list[Tree] = []
    rows: list[tuple[int, ...]] = []
    for number, term in terms:
        tree: Any = term.model
        trees.append(tree)
        first, last = term.columns.start, term.columns.stop
        rows.append((number, len(tree.column), len(tree.values), first, last - first, tree.depth))
    table = np.array(rows, dtype=np.int64).reshape(-1, len(_TREE_ARRAYS))
    arrays: Arrays = {
        "coefficient": np.concatenate([term.coefficient for _, term in terms] or [np.empty(0)]),
        "values": np.concatenate([t.values.ravel() for t in trees] or [np.empty(0)]),
    }
    for k, name in enumerate(_TREE_ARRAYS):
        arrays[name] = np.ascontiguousarray(table[:, k])
    for name, dtype in _NODE_ARRAYS.items():
        nodes = [getattr(tree, name) for tree in trees]
        arrays[name] = np.concatenate(nodes or [np.empty(0)]).astype(dtype)
    if any(len(tree.left_sets) for tree in trees):
        by_level = [t.by_level if len(t.by_level) else np.zeros(len(t.column), bool) for t in trees]
        arrays["by_level"] = np.concatenate(by_level)
        arrays["left_sets"] = np.concatenate([tree.left_sets for tree in trees])
    return arrays


def from_arrays(arrays: Arrays, n_outputs: int, n_features: int) -> list[tuple[int, Term]]:
    """Read the stage number and term of every tree."""
    coefficient = require_finite(arrays, "coefficient")
    all_values = require_array(arrays, "values", np.float64)
    for name in _TREE_ARRAYS:
        require_array(arrays, name, np.int64)
    for name, dtype in _NODE_ARRAYS.items():
        require_array(arrays, name, dtype)
    table = np.column_stack([arrays[name] for name in _TREE_ARRAYS])
    require(bool((table >= 0).all() and (table[:, 1] < 2**31).all()), "tree sizes")
    require(int(table[:, 1].sum()) == len(arrays["column"]), "node counts")
    by_level, left_sets = _sets(arrays)
    terms: list[tuple[int, Term]] = []
    node, value, output, first_set = 0, 0, 0, 0
    for number, n_nodes, n_leaves, first, width, depth in table.tolist():
        require(first + width <= n_outputs and width > 0, "first_column")
        tree_arrays = {name: arrays[name][node : node + n_nodes] for name in _NODE_ARRAYS}
        size = n_leaves * width
        values = all_values[value : value + size]
        require(len(values) == size, "values")
        tree = Tree(**tree_arrays, depth=depth, leaf_values=values.reshape(n_leaves, width))
        here = by_level[node : node + n_nodes]
        if here.any():
            last_set = first_set + int(here.sum())
            tree = replace(tree, by_level=here, left_sets=left_sets[first_set:last_set])
            first_set = last_set
        _check_tree(tree, n_features)
        factors = coefficient[output : output + width]
        require(len(factors) == width, "coefficient")
        terms.append((number, Term(tree, slice(first, first + width), factors)))
        node, value, output = node + n_nodes, value + size, output + width
    require(value == len(all_values) and output == len(coefficient), "values")
    return terms


def _sets(arrays: Arrays) -> tuple[np.ndarray, np.ndarray]:
    """Read which nodes split on levels, and their level sets."""
    if "by_level" not in arrays and "left_sets" not in arrays:
        return np.zeros(len(arrays["column"]), bool), np.empty((0, SET_WORDS), np.uint64)
    by_level = require_array(arrays, "by_level", np.bool_)
    left_sets = require_array(arrays, "left_sets", np.uint64, 2)
    require(len(by_level) == len(arrays["column"]), "by_level")
    require(left_sets.shape == (int(by_level.sum()), SET_WORDS), "left_sets")
    return by_level, left_sets


def _check_tree(tree: Tree, n_features: int) -> None:
    """Check that every path ends in a leaf and all columns and values that it reads exist."""
    n = len(tree.column)
    number = np.arange(n)
    is_leaf = tree.child == number
    require(n > 0, "an empty tree")
    for name in _NODE_ARRAYS:
        require(len(getattr(tree, name)) == n, name)
    require(bool(((tree.column >= 0) & (tree.column < n_features)).all()), "column")
    # Children come after their parents, so there are no cycles.
    require(bool((is_leaf | ((tree.child > number) & (tree.child < n - 1))).all()), "child")
    first = tree.child[~is_leaf]
    require(np.array_equal(np.sort(np.concatenate([[0], first, first + 1])), number), "child")
    require(bool((tree.leaf_number[~is_leaf] == -1).all()), "leaf_number")
    require(bool((tree.threshold[is_leaf] == np.inf).all()), "threshold")
    require(not bool(tree.missing_right[is_leaf].any()), "missing_right")
    require(not bool(np.isnan(tree.threshold).any()), "threshold")
    require(not bool(np.isnan(tree.gain).any()), "gain")
    require(not bool(tree.by_level.any()) or not bool(is_leaf[tree.by_level].any()), "by_level")
    leaves = tree.leaf_number[is_leaf]
    require(bool(np.array_equal(np.sort(leaves), np.arange(len(tree.values)))), "leaf_number")
    require(bool(np.isfinite(tree.values).all()), "values")
    depth = np.zeros(n, dtype=np.int64)
    for i in np.flatnonzero(~is_leaf):
        depth[tree.child[i] : tree.child[i] + 2] = depth[i] + 1
    require(int(depth.max()) == tree.depth, "depth")
