"""Trees as one operator TreeEnsemble of ai.onnx.ml 5, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np

from hilboost.core.records import Floats
from hilboost.export.onnx_graph import ML, Graph
from hilboost.export.scalar_trees import ScalarTree

_LESS_OR_EQUAL, _SUM = 0, 1


def add_trees(graph: Graph, X: str, trees: list[ScalarTree], n_outputs: int) -> str | None:
    """The sum of all trees that split, (n, n_outputs); ``None`` where there are none."""
    columns: dict[str, list[Any]] = {name: [] for name in _NODES}
    roots, weights, targets = [], [], []
    n_nodes = n_leaves = 0
    for tree in trees:
        if len(tree.values) == 1:
            continue  # a constant, see constants_of
        roots.append(n_nodes)
        for name, values in _nodes(tree, n_nodes, n_leaves).items():
            columns[name].append(values)
        weights.append(tree.values)
        targets.append(np.full(len(tree.values), tree.output))
        n_nodes += len(tree.values) - 1
        n_leaves += len(tree.values)
    if not roots:
        return None
    flat = {name: np.concatenate(values) for name, values in columns.items()}
    splits = flat.pop("nodes_splits")
    return graph.add(
        "TreeEnsemble",
        X,
        domain=ML,
        n_targets=n_outputs,
        aggregate_function=_SUM,
        tree_roots=roots,
        nodes_splits=splits,
        nodes_modes=np.full(n_nodes, _LESS_OR_EQUAL, dtype=np.uint8),
        leaf_weights=np.concatenate(weights),
        leaf_targetids=np.concatenate(targets).tolist(),
        **{name: values.tolist() for name, values in flat.items()},
    )


def constants_of(trees: list[ScalarTree], n_outputs: int) -> Floats:
    """What trees of a single leaf add to every output, (n_outputs,)."""
    total = np.zeros(n_outputs)
    for tree in trees:
        if len(tree.values) == 1:
            total[tree.output] += tree.values[0]
    return total


_NODES = (
    "nodes_featureids",
    "nodes_splits",
    "nodes_missing_value_tracks_true",
    "nodes_truenodeids",
    "nodes_trueleafs",
    "nodes_falsenodeids",
    "nodes_falseleafs",
)


def _nodes(tree: ScalarTree, first_node: int, first_leaf: int) -> dict[str, np.ndarray]:
    """Inner nodes in their order; "true" is the left child, ``x <= threshold``."""
    nodes, is_leaf = tree.tree, tree.is_leaf
    inner = np.flatnonzero(~is_leaf)
    number = np.where(is_leaf, first_leaf + nodes.leaf_number, first_node + np.cumsum(~is_leaf) - 1)
    left, right = nodes.child[inner], nodes.child[inner] + 1
    return {
        "nodes_featureids": nodes.column[inner],
        "nodes_splits": nodes.threshold[inner],
        "nodes_missing_value_tracks_true": (~nodes.missing_right[inner]).astype(np.int64),
        "nodes_truenodeids": number[left],
        "nodes_trueleafs": is_leaf[left].astype(np.int64),
        "nodes_falsenodeids": number[right],
        "nodes_falseleafs": is_leaf[right].astype(np.int64),
    }
