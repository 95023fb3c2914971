"""Model files: safetensors arrays and a JSON header; nothing in them is ever executed.

Format 1
--------
Metadata: ``format`` (the number), ``header`` (JSON).  Arrays: ``start`` (r,) and, for the trees one
behind the other, ``stage``, ``n_nodes``, ``n_leaves``, ``first_column``, ``n_columns``, ``depth``
(n_trees,), the node arrays of :class:`~hilboost.learners.tree.Tree`, ``values`` and ``coefficient``
(flat).
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from hilboost.core.errors import IncompatibleParts, InvalidModelFile
from hilboost.core.records import Part, Stage
from hilboost.learners.tree import Tree
from hilboost.model.additive import AdditiveModel
from hilboost.model.atomic import atomic_path

FORMAT = 1
_NODE_ARRAYS = {
    "column": np.int32,
    "threshold": np.float64,
    "missing_right": np.bool_,
    "child": np.int32,
    "gain": np.float64,
    "leaf_number": np.int32,
}
_TREE_ARRAYS = ("stage", "n_nodes", "n_leaves", "first_column", "n_columns", "depth")

Arrays = dict[str, np.ndarray]


def write(path: str | Path, model: AdditiveModel, header: dict[str, Any]) -> None:
    """Write a model of trees, all of it or nothing: the old file stays until the new one is done.

    Raises
    ------
    IncompatibleParts
        A base model is not a tree.
    OSError
        The file cannot be written.
    """
    from safetensors.numpy import save

    metadata = {"format": str(FORMAT), "header": json.dumps(header)}
    content = save(_to_arrays(model), metadata=metadata)
    with atomic_path(Path(path)) as temporary, temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def read(path: str | Path) -> tuple[AdditiveModel, dict[str, Any]]:
    """Read a model and its header: parse, check every bound, then build.

    Raises
    ------
    InvalidModelFile
        The file is damaged, of another kind, or of a newer format.
    OSError
        The file cannot be read.
    """
    from safetensors import SafetensorError, safe_open

    with Path(path).open("rb"):
        pass  # a missing file is an OSError, not a damaged model
    try:
        with safe_open(path, framework="np") as file:
            metadata = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, ValueError, TypeError) as error:
        raise InvalidModelFile(f"{path} is not a hilboost model file: {error}") from error
    if metadata.get("format") != str(FORMAT):
        raise InvalidModelFile(
            f"{path} has format {metadata.get('format')!r}; this version reads format {FORMAT}. "
            "Update hilboost, or save the model again."
        )
    try:
        header = json.loads(metadata["header"])
        if not isinstance(header, dict):
            raise ValueError("the header is not an object")
        return _from_arrays(arrays, int(header["n_features_in"])), header
    except (KeyError, ValueError, TypeError, IndexError, OverflowError) as error:
        raise InvalidModelFile(f"{path} is damaged: {error}") from error


def _to_arrays(model: AdditiveModel) -> Arrays:
    trees: list[Tree] = []
    rows: list[tuple[int, ...]] = []
    coefficients: list[np.ndarray] = []
    for number, stage in enumerate(model.stages):
        for part in stage.parts:
            tree = part.model
            if not isinstance(tree, Tree):
                raise IncompatibleParts(
                    f"model files hold trees; this model has a {type(tree).__name__}. "
                    "Keep such a model with pickle or joblib, where you trust the file."
                )
            trees.append(tree)
            coefficients.append(part.coefficient)
            first, last = part.columns.start, part.columns.stop
            rows.append(
                (number, len(tree.column), len(tree.values), first, last - first, tree.depth)
            )
    table = np.array(rows, dtype=np.int64).reshape(-1, len(_TREE_ARRAYS))
    arrays: Arrays = {
        "start": model.start,
        "coefficient": np.concatenate(coefficients or [np.empty(0)]),
        "values": np.concatenate([t.values.ravel() for t in trees] or [np.empty(0)]),
    }
    for k, name in enumerate(_TREE_ARRAYS):
        arrays[name] = np.ascontiguousarray(table[:, k])
    for name, dtype in _NODE_ARRAYS.items():
        parts = [getattr(tree, name) for tree in trees]
        arrays[name] = np.concatenate(parts or [np.empty(0)]).astype(dtype)
    return arrays


def _from_arrays(arrays: Arrays, n_features: int) -> AdditiveModel:
    start, coefficient = arrays["start"], arrays["coefficient"]
    _require(arrays["values"].dtype == np.float64 and arrays["values"].ndim == 1, "values")
    _require(start.ndim == 1 and len(start) > 0 and start.dtype == np.float64, "start")
    _require(coefficient.ndim == 1 and coefficient.dtype == np.float64, "coefficient")
    _require(bool(np.isfinite(start).all() and np.isfinite(coefficient).all()), "start")
    for name in _TREE_ARRAYS:
        _require(arrays[name].dtype == np.int64 and arrays[name].ndim == 1, name)
    for name, dtype in _NODE_ARRAYS.items():
        _require(arrays[name].dtype == dtype and arrays[name].ndim == 1, name)
    table = np.column_stack([arrays[name] for name in _TREE_ARRAYS])
    _require(bool((table >= 0).all() and (table[:, 1] < 2**31).all()), "tree sizes")
    _require(int(table[:, 1].sum()) == len(arrays["column"]), "node counts")
    n_stages = int(arrays["stage"].max(initial=-1)) + 1
    _require(n_stages <= len(table), "stage")
    stages: list[list[Part]] = [[] for _ in range(n_stages)]
    node, value, output = 0, 0, 0
    for number, n_nodes, n_leaves, first, width, depth in table.tolist():
        _require(first + width <= len(start) and width > 0, "first_column")
        tree_arrays = {name: arrays[name][node : node + n_nodes] for name in _NODE_ARRAYS}
        size = n_leaves * width
        values = arrays["values"][value : value + size]
        _require(len(values) == size, "values")
        tree = Tree(**tree_arrays, depth=depth, leaf_values=values.reshape(n_leaves, width))
        _check_tree(tree, n_features)
        factors = coefficient[output : output + width]
        _require(len(factors) == width, "coefficient")
        stages[number].append(Part(tree, slice(first, first + width), factors))
        node, value, output = node + n_nodes, value + size, output + width
    _require(value == len(arrays["values"]) and output == len(coefficient), "values")
    return AdditiveModel(start, tuple(Stage(tuple(parts)) for parts in stages))


def _check_tree(tree: Tree, n_features: int) -> None:
    """Every walk ends in a leaf and reads no column or value that is not there."""
    n = len(tree.column)
    number = np.arange(n)
    is_leaf = tree.child == number
    _require(n > 0, "an empty tree")
    _require(bool(((tree.column >= 0) & (tree.column < n_features)).all()), "column")
    # Children behind their parent: no walk can turn in a circle.
    _require(bool((is_leaf | ((tree.child > number) & (tree.child < n - 1))).all()), "child")
    first = tree.child[~is_leaf]
    _require(np.array_equal(np.sort(np.concatenate([[0], first, first + 1])), number), "child")
    _require(bool((tree.leaf_number[~is_leaf] == -1).all()), "leaf_number")
    _require(bool((tree.threshold[is_leaf] == np.inf).all()), "threshold")
    _require(not bool(tree.missing_right[is_leaf].any()), "missing_right")
    _require(not bool(np.isnan(tree.threshold).any()), "threshold")
    leaves = tree.leaf_number[is_leaf]
    _require(bool(np.array_equal(np.sort(leaves), np.arange(len(tree.values)))), "leaf_number")
    _require(bool(np.isfinite(tree.values).all()), "values")
    depth = np.zeros(n, dtype=np.int64)
    for i in np.flatnonzero(~is_leaf):
        depth[tree.child[i] : tree.child[i] + 2] = depth[i] + 1
    _require(int(depth.max()) == tree.depth, "depth")


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise ValueError(f"{what} is inconsistent")
