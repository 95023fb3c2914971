"""Export of fitted trees to XGBoost's JSON model format."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from hilboost.core.dtypes import Floats
from hilboost.core.errors import IncompatibleParts
from hilboost.core.link import IdentityLink, Link, LogitLink, LogLink, SoftmaxLink, SortedLink
from hilboost.core.loss import Loss
from hilboost.export.scalar_trees import ScalarTree, constant_tree, fitted_trees, leaf_counts
from hilboost.model.fitted import FittedModel
from hilboost.persistence.atomic import as_path, atomic_path

_NO_PARENT = 2147483647
_EMPTY_LEAF = 1e-6
"""Number of rows in a leaf without background rows: negligible, but avoids division by zero."""


def to_xgboost_json(
    model: Any, path: str | Path | None = None, *, background: object = None
) -> str:
    """Convert fitted trees to an XGBoost model, for XGBoost and tools that read its files.

    Parameters
    ----------
    model : BoostingRegressor or BoostingClassifier
        Fitted, with trees and at most one quantile level.  The loss is a built-in one, or a custom
        one that declares its ``link`` or, for regression, does not define ``inverse_link``.
    path : str or Path, optional
        File to write atomically; XGBoost expects a name that ends in ``.json``.
    background : array-like (n, d), optional
        Rows to count in every leaf, such as the training rows.  Path-dependent SHAP values
        (XGBoost's ``pred_contribs``, ``shap.TreeExplainer`` without its own data) weight leaves by
        these counts; without counts they are NaN.

    Returns
    -------
    str
        For ``xgboost.Booster(model_file=path)``, or
        ``booster.load_model(bytearray(text, "utf-8"))``.

    Raises
    ------
    InvalidType
        The estimator is not supported.
    IncompatibleParts
        The base models are not trees, or XGBoost cannot compute the predictions of the loss from
        their sum.
    OSError
        The file cannot be written.

    Notes
    -----
    XGBoost stores rows, thresholds and leaf values in float32.  Float32 rows reach the same leaves
    as in hilboost; float64 rows within half a float32 step of a threshold may take the other
    branch, and predictions agree to about seven digits.  Classes are numbered in the order of
    ``classes_``.  A round (``iteration_range``) is a stage or, for a cross-validated ensemble, the
    part of a stage from one member.  Raw outputs (``output_margin=True``) equal hilboost's outputs,
    except for the losses ``"exponential"`` and ``"squared_error"`` of a classifier, where they are
    multiplied by a factor that makes them logits.  A tree with vector leaves is written once for
    every output.  Feature names are omitted if XGBoost would reject one of them (``[``, ``]``,
    ``<``, line breaks and similar characters).
    """
    trees = fitted_trees(model, "to_xgboost_json")
    counts = None if background is None else leaf_counts(model, trees, background)
    # XGBoost does not decode \\u escapes.
    text = json.dumps(_document(model.fitted_, trees, counts), ensure_ascii=False)
    if path is not None:
        with atomic_path(as_path(path, "to_xgboost_json")) as temporary:
            temporary.write_text(text, encoding="utf-8")
    return text


def _document(
    fitted: FittedModel, trees: list[ScalarTree], counts: dict[tuple[int, int], Any] | None
) -> dict[str, Any]:
    objective, base_score, factor = _objective(fitted.loss, fitted.codec.kind == "classes")
    start = fitted.model.initial_raw
    r = len(start)
    rounds = _rounds(trees, start)
    ordered = [tree for several in rounds for tree in several]
    written = []
    for number, tree in enumerate(ordered):
        scaled = replace(tree, values=factor * tree.values)
        count = None if counts is None else counts.get((tree.stage, tree.number))
        written.append(_tree(scaled, number, fitted.schema.n_columns, count))
    booster = {
        "gbtree_model_param": {"num_parallel_tree": "1", "num_trees": str(len(written))},
        "iteration_indptr": np.cumsum([0, *map(len, rounds)]).tolist(),
        "tree_info": [tree.output for tree in ordered],
        "trees": written,
    }
    by_class = objective["name"] == "multi:softprob"
    return {
        "learner": {
            "attributes": {},
            "feature_names": _feature_names(fitted),
            "feature_types": [],
            "gradient_booster": {"model": booster, "name": "gbtree"},
            "learner_model_param": {
                "base_score": base_score,
                "boost_from_average": "0",
                "num_class": str(r if by_class else 0),
                "num_feature": str(fitted.schema.n_columns),
                "num_target": str(1 if by_class else r),
            },
            "objective": objective,
        },
        "version": [3, 0, 0],
    }


def _objective(loss: Loss, of_classes: bool) -> tuple[dict[str, Any], str, float]:
    """Return XGBoost's objective, the neutral base score, and a factor of the raw outputs."""
    link = loss.link
    if link is not None and len(link.levels) > 1:
        raise IncompatibleParts(
            f"to_xgboost_json does not support the {len(link.levels)} quantile levels of this "
            "model, because XGBoost cannot sort them. Fit one model per level, or use "
            "to_onnx."
        )
    known = _OF_CLASSES if of_classes else _OF_NUMBERS
    if link is not None and not link.gives_probabilities:
        raise IncompatibleParts(
            f"to_xgboost_json: {type(loss).__name__} has one score for each class and no "
            "probabilities, and XGBoost has no such objective. Use to_onnx, or fit with "
            "loss='log_loss'."
        )
    describe = None if link is None else known.get(type(link))
    if describe is None:
        raise IncompatibleParts(
            f"to_xgboost_json does not support the link of {type(loss).__name__}, because XGBoost "
            "has no objective with this link; use to_onnx, fit with another loss, or declare link "
            "in the class."
        )
    objective, base_score, factor = describe(link)
    return loss.xgboost_objective or objective, base_score, factor


_PLAIN = {"reg_loss_param": {"scale_pos_weight": "1"}}


def _softmax(link: SoftmaxLink) -> tuple[dict[str, Any], str, float]:
    classes = {"num_class": str(link.n_classes)}
    objective = {"name": "multi:softprob", "softmax_multiclass_param": classes}
    return objective, "0E0", link.factor


_Described = dict[type[Link], Callable[[Any], tuple[dict[str, Any], str, float]]]
_OF_NUMBERS: _Described = {
    IdentityLink: lambda link: ({"name": "reg:squarederror", **_PLAIN}, "0E0", 1.0),
    LogLink: lambda link: ({"name": "reg:gamma", **_PLAIN}, "1E0", 1.0),
    SortedLink: lambda link: ({"name": "reg:squarederror", **_PLAIN}, "0E0", 1.0),
}
_OF_CLASSES: _Described = {
    LogitLink: lambda link: ({"name": "binary:logistic", **_PLAIN}, "5E-1", link.factor),
    SoftmaxLink: _softmax,
}


def _rounds(trees: list[ScalarTree], start: Floats) -> list[list[ScalarTree]]:
    """Group trees into rounds of one per output; the first tree includes the initial prediction.

    XGBoost's own base score is on the scale of the mean, and a single number in older versions.
    """
    by_output: list[list[ScalarTree]] = [[] for _ in start]
    for tree in trees:
        by_output[tree.output].append(tree)
    for output, value in enumerate(start):
        own = by_output[output] or [constant_tree(output)]
        by_output[output] = [replace(own[0], values=own[0].values + value), *own[1:]]
    return [[tree for tree in several if tree] for several in zip_longest(*by_output)]


def _tree(tree: ScalarTree, number: int, n_features: int, counts: Floats | None) -> dict[str, Any]:
    nodes, is_leaf = tree.tree, tree.is_leaf
    n = len(is_leaf)
    inner = np.flatnonzero(~is_leaf)
    left = np.where(is_leaf, -1, nodes.child)
    right = np.where(is_leaf, -1, nodes.child + 1)
    parents = np.full(n, _NO_PARENT)
    parents[left[inner]] = parents[right[inner]] = inner
    weights = np.where(is_leaf, tree.node_values, 0.0)
    covers = np.zeros(n)
    if counts is not None:
        covers = nodes.node_sums(np.maximum(counts, _EMPTY_LEAF))
    return {
        "base_weights": _single(weights),
        "categories": [],
        "categories_nodes": [],
        "categories_segments": [],
        "categories_sizes": [],
        "default_left": np.where(is_leaf | nodes.missing_right, 0, 1).tolist(),
        "id": number,
        "left_children": left.tolist(),
        "loss_changes": _single(nodes.gain),
        "parents": parents.tolist(),
        "right_children": right.tolist(),
        "split_conditions": _single(np.where(is_leaf, weights, _first_above(nodes.threshold))),
        "split_indices": np.where(is_leaf, 0, nodes.column).tolist(),
        "split_type": [0] * n,
        "sum_hessian": _single(covers),
        "tree_param": {
            "num_deleted": "0",
            "num_feature": str(n_features),
            "num_nodes": str(n),
            "size_leaf_vector": "1",
        },
    }


def _first_above(threshold: Floats) -> Floats:
    """Find the next larger float32 ``t``: ``x <= threshold`` equals ``x < t`` for float32 ``x``."""
    with np.errstate(over="ignore"):
        near = threshold.astype(np.float32)
        above = np.nextafter(near, np.float32(np.inf))
    return np.where(near > threshold, near, above).astype(np.float64)


def _single(values: Floats) -> list[float]:
    """Convert float32 numbers to the fewest digits that identify them."""
    with np.errstate(over="ignore"):
        return [float(str(value)) for value in np.asarray(values).astype(np.float32)]


def _feature_names(fitted: FittedModel) -> list[str]:
    names = list(fitted.schema.names or ())
    taken = all(name.isprintable() and not set(name) & set("[]<") for name in names)
    return names if taken else []


FORMATS = {"xgboost-json": to_xgboost_json}
