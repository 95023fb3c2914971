"""The nodes of all trees as a data frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hilboost.export.scalar_trees import ScalarTree, fitted_trees

if TYPE_CHECKING:
    import pandas


def tree_table(model: Any) -> pandas.DataFrame:
    """Every node of every tree, a row each.

    Parameters
    ----------
    model : BoostingRegressor or BoostingClassifier
        Fitted, with trees.

    Returns
    -------
    pandas.DataFrame
        ``stage``, ``tree`` (number within the stage), ``output``, ``node`` (0 is the root),
        ``depth``; of inner nodes ``column`` (its name where ``X`` had names, else its number),
        ``threshold`` (a row goes left where its value is at most this), ``missing`` ("left" or
        "right"), ``left``, ``right`` (nodes), ``gain``; of leaves ``value``, what is added to the
        raw output.  What a node does not have is missing.  A tree with vector leaves is there once
        for every output.

    Raises
    ------
    InvalidType
        It is another estimator.
    IncompatibleParts
        The base models are not trees.
    """
    import pandas as pd

    trees = fitted_trees(model, "tree_table")
    names = feature_names(model)
    frames = [_rows(tree, names) for tree in trees]
    types = {
        **dict.fromkeys(("stage", "tree", "output", "node", "depth"), "int64"),
        "column": "object",
        "threshold": "float64",
        "missing": "object",
        **dict.fromkeys(("left", "right"), "Int64"),
        **dict.fromkeys(("gain", "value"), "float64"),
    }
    columns: dict[str, Any] = {
        name: np.concatenate([frame[name] for frame in frames]) if frames else [] for name in types
    }
    return pd.DataFrame({name: pd.array(columns[name], dtype=types[name]) for name in types})


def feature_names(model: Any) -> list[Any]:
    """Names of the columns, or their numbers."""
    if hasattr(model, "feature_names_in_"):
        return [str(name) for name in model.feature_names_in_]
    return list(range(model.n_features_in_))


def depths(tree: ScalarTree) -> np.ndarray:
    """Splits between the root and each node, (n_nodes,)."""
    depth = np.zeros(len(tree.is_leaf), dtype=np.int64)
    for node in np.flatnonzero(~tree.is_leaf):  # children stand behind their parents
        child = tree.tree.child[node]
        depth[child : child + 2] = depth[node] + 1
    return depth


def _rows(tree: ScalarTree, names: list[Any]) -> dict[str, np.ndarray]:
    nodes, inner = tree.tree, ~tree.is_leaf
    n = len(inner)
    columns, sides = np.empty(n, dtype=object), np.empty(n, dtype=object)
    columns[inner] = np.array([*names, None], dtype=object)[nodes.column[inner]]
    sides[inner] = np.where(nodes.missing_right[inner], "right", "left")
    left = np.full(n, None, dtype=object)
    left[inner] = nodes.child[inner].tolist()
    right = np.full(n, None, dtype=object)
    right[inner] = (nodes.child[inner] + 1).tolist()
    return {
        "stage": np.full(n, tree.stage),
        "tree": np.full(n, tree.number),
        "output": np.full(n, tree.output),
        "node": np.arange(n),
        "depth": depths(tree),
        "column": columns,
        "threshold": np.where(inner, nodes.threshold, np.nan),
        "missing": sides,
        "left": left,
        "right": right,
        "gain": np.where(inner, nodes.gain, np.nan),
        "value": tree.node_values,
    }
