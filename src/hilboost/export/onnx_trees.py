"""Trees as one ``TreeEnsemble`` operator of ai.onnx.ml 5, in float64."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hilboost.core.dtypes import Floats
from hilboost.export.columns import left_codes
from hilboost.export.onnx_graph import ML, Graph
from hilboost.export.scalar_trees import ScalarTree

_LESS_OR_EQUAL, _MEMBER, _SUM = 0, 6, 1


def add_trees(
    graph: Graph, X: str, trees: list[ScalarTree], n_outputs: int, n_codes: Mapping[int, int]
) -> str | None:
    """Add the sum of all trees with splits, (n, n_outputs); ``None`` if there are none.

    ``n_codes`` contains the numbers of levels of the columns with splits on levels.
    """
    columns: dict[str, list[Any]] = {name: [] for name in _NODES}
    roots, weights, targets = [], [], []
    n_nodes = n_leaves = 0
    for tree in trees:
        if len(tree.values) == 1:
            continue  # a constant, see constants_of
        roots.append(n_nodes)
        for name, values in _nodes(tree, n_nodes, n_leaves, n_codes).items():
            columns[name].append(values)
        weights.append(tree.values)
        targets.append(np.full(len(tree.values), tree.output))
        n_nodes += len(tree.values) - 1
        n_leaves += len(tree.values)
    if not roots:
        return None
    flat = {name: np.concatenate(values) for name, values in columns.items()}
    arrays: dict[str, Any] = {name: flat.pop(name) for name in ("nodes_splits", "nodes_modes")}
    members = flat.pop("membership_values")
    if len(members):
        arrays["membership_values"] = members
    return graph.add(
        "TreeEnsemble",
        X,
        domain=ML,
        n_targets=n_outputs,
        aggregate_function=_SUM,
        tree_roots=roots,
        **arrays,
        leaf_weights=np.concatenate(weights),
        leaf_targetids=np.concatenate(targets).tolist(),
        **{name: values.tolist() for name, values in flat.items()},
    )


def constants_of(trees: list[ScalarTree], n_outputs: int) -> Floats:
    """Sum the values of the trees with a single leaf, (n_outputs,)."""
    total = np.zeros(n_outputs)
    for tree in trees:
        if len(tree.values) == 1:
            total[tree.output] += tree.values[0]
    return total


_NODES = (
    "nodes_featureids",
    "nodes_splits",
    "nodes_modes",
    "membership_values",
    "nodes_missing_value_tracks_true",
    "nodes_truenodeids",
    "nodes_trueleafs",
    "nodes_falsenodeids",
    "nodes_falseleafs",
)


def _nodes(
    tree: ScalarTree, first_node: int, first_leaf: int, n_codes: Mapping[int, int]
) -> dict[str, np.ndarray]:
    """List the inner nodes in order; "true" is the left child, ``x <= threshold``.

    Splits on levels do not list unknown levels: "true" is then the side without them.
    """
    nodes, is_leaf = tree.tree, tree.is_leaf
    inner = np.flatnonzero(~is_leaf)
    number = np.where(is_leaf, first_leaf + nodes.leaf_number, first_node + np.cumsum(~is_leaf) - 1)
    true, false = nodes.child[inner], nodes.child[inner] + 1
    with_true = ~nodes.missing_right[inner]
    splits, by_level = nodes.threshold[inner], np.zeros(len(inner), dtype=bool)
    members: list[float] = []
    if len(nodes.by_level):
        by_level = nodes.by_level[inner]
    for i in np.flatnonzero(by_level):
        node = int(inner[i])
        goes_left, unseen_left = left_codes(nodes, node, n_codes[int(nodes.column[node])])
        if unseen_left:
            true[i], false[i], with_true[i] = false[i], true[i], not with_true[i]
        listed = np.flatnonzero(goes_left != unseen_left).tolist()
        if listed:
            members += [*listed, np.nan]
        else:  # the split separates missing values from all others
            by_level[i], splits[i] = False, -np.inf
    return {
        "nodes_featureids": nodes.column[inner],
        "nodes_splits": splits,
        "nodes_modes": np.where(by_level, _MEMBER, _LESS_OR_EQUAL).astype(np.uint8),
        "membership_values": np.array(members),
        "nodes_missing_value_tracks_true": with_true.astype(np.int64),
        "nodes_truenodeids": number[true],
        "nodes_trueleafs": is_leaf[true].astype(np.int64),
        "nodes_falsenodeids": number[false],
        "nodes_falseleafs": is_leaf[false].astype(np.int64),
    }
