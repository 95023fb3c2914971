"""Tree nodes as a data frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hilboost.core.packages import required
from hilboost.export.columns import Columns
from hilboost.export.scalar_trees import ScalarTree, fitted_trees, leaf_counts

if TYPE_CHECKING:
    import pandas


def tree_table(model: Any, X: object = None) -> pandas.DataFrame:
    """Return a data frame with one row for every node of every tree.

    Parameters
    ----------
    model : BoostingRegressor or BoostingClassifier
        Fitted, with trees.
    X : array-like or data frame (n, d), optional
        Rows to count in the nodes, such as the training rows.

    Returns
    -------
    pandas.DataFrame
        All nodes: ``stage``, ``tree`` (number within the stage), ``output``, ``node`` (0 is the
        root), ``depth``.  Inner nodes: ``column`` (its name if ``X`` had names, otherwise its
        number), ``threshold`` (rows with at most this value go left) or ``levels`` (a tuple: rows
        with these categories go left), ``missing`` and ``unseen`` ("left" or "right": the side of
        missing values, and of categories that did not occur in fit), ``left``, ``right`` (nodes),
        ``gain``.  Leaves: ``value``, the contribution to the raw output.  Entries that do not apply
        to a node are missing.  With ``X``, ``rows`` is the number of rows in the
        node.  A tree with vector leaves is included once for every output.
        Columns derived from categories are named "mean by town" (target encoding), "mean by town ×
        street", "mean 2 by town" (for target 2, or the third class; only the five most frequent
        classes are counted) and "share of town" (the frequency of the category of the row).

    Raises
    ------
    InvalidType
        The estimator is not supported.
    IncompatibleParts
        The base models are not trees.
    MissingPackage
        The package pandas is not installed.
    """
    pd = required("pandas", "tree_table")
    trees = fitted_trees(model, "tree_table", numbers_only=False)
    seen = Columns.of(model.fitted_)
    frames = [_rows(tree, seen) for tree in trees]
    counted = {} if X is None else {"rows": "int64"}
    if X is not None:
        counts = leaf_counts(model, trees, X)
        for tree, frame in zip(trees, frames, strict=True):
            frame["rows"] = tree.tree.node_sums(counts[tree.stage, tree.number])
    types = {
        **dict.fromkeys(("stage", "tree", "output", "node", "depth"), "int64"),
        "column": "object",
        "threshold": "float64",
        **dict.fromkeys(("levels", "missing", "unseen"), "object"),
        **dict.fromkeys(("left", "right"), "Int64"),
        **dict.fromkeys(("gain", "value"), "float64"),
        **counted,
    }
    columns: dict[str, Any] = {
        name: np.concatenate([frame[name] for frame in frames]) if frames else [] for name in types
    }
    return pd.DataFrame({name: pd.array(columns[name], dtype=types[name]) for name in types})


def depths(tree: ScalarTree) -> np.ndarray:
    """Return the number of splits between the root and each node, (n_nodes,)."""
    depth = np.zeros(len(tree.is_leaf), dtype=np.int64)
    for node in np.flatnonzero(~tree.is_leaf):  # children come after their parents
        child = tree.tree.child[node]
        depth[child : child + 2] = depth[node] + 1
    return depth


def _rows(tree: ScalarTree, seen: Columns) -> dict[str, np.ndarray]:
    nodes, inner = tree.tree, ~tree.is_leaf
    n = len(inner)
    columns, levels, missing, unseen, left, right = np.full((6, n), None, dtype=object)
    columns[inner] = np.array([*seen.names, None], dtype=object)[nodes.column[inner]]
    missing[inner] = np.where(nodes.missing_right[inner], "right", "left")
    left[inner] = nodes.child[inner].tolist()
    right[inner] = (nodes.child[inner] + 1).tolist()
    by_level = np.zeros(n, dtype=bool)
    by_level[: len(nodes.by_level)] = nodes.by_level
    for node in np.flatnonzero(by_level):
        levels[node], goes_left = seen.left_levels(nodes, int(node))
        unseen[node] = "left" if goes_left else "right"
    return {
        "stage": np.full(n, tree.stage),
        "tree": np.full(n, tree.number),
        "output": np.full(n, tree.output),
        "node": np.arange(n),
        "depth": depths(tree),
        "column": columns,
        "threshold": np.where(inner & ~by_level, nodes.threshold, np.nan),
        "levels": levels,
        "missing": missing,
        "unseen": unseen,
        "left": left,
        "right": right,
        "gain": np.where(inner, nodes.gain, np.nan),
        "value": tree.node_values,
    }
