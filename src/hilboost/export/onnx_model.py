"""Export of fitted estimators to ONNX, with inverse links and kernels as operators."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from hilboost.core.base_model import Term
from hilboost.core.errors import IncompatibleParts, InvalidParameter, InvalidType, shown
from hilboost.core.link import (
    DistributionLink,
    IdentityLink,
    Link,
    LogitLink,
    LogLink,
    ScoresLink,
    SoftmaxLink,
    SortedLink,
)
from hilboost.core.loss import Loss
from hilboost.core.packages import required
from hilboost.core.plain_values import all_text
from hilboost.core.version import __version__
from hilboost.export.columns import Columns
from hilboost.export.estimators import fitted_record
from hilboost.export.onnx_columns import add_table, inputs_of, require_levels
from hilboost.export.onnx_graph import (
    IR_VERSION,
    ML,
    ML_OPSET,
    OPSET,
    Graph,
    add_trees,
    constants_of,
)
from hilboost.export.scalar_trees import scalar_trees
from hilboost.learners.kernel_machine.expansion import merge
from hilboost.losses._parameter_kinds import FARTHEST, LARGEST_LOGIT
from hilboost.model import AdditiveModel
from hilboost.model.fitted import FittedModel
from hilboost.persistence.atomic import as_path, atomic_path


def add_inverse_link(graph: Graph, raw: str, loss: Loss) -> str:
    """Add the operators of ``loss.inverse_link(raw)``."""
    link = loss.link
    write = None if link is None else _LINKS.get(type(link))
    if write is None:
        raise IncompatibleParts(
            f"to_onnx cannot convert {type(loss).__name__}.inverse_link, which is Python code; "
            "declare link in the class, fit with a built-in loss, or remove inverse_link and apply "
            "it to the exported raw outputs."
        )
    return write(graph, raw, link)


def _exponential_mean(graph: Graph, raw: str, link: LogLink) -> str:
    bound = graph.constant(link.bound)
    clipped = graph.add("Clip", raw, graph.add("Neg", bound), bound)
    return graph.add("Exp", clipped)


def _two_classes(graph: Graph, raw: str, link: LogitLink) -> str:
    logits = graph.add("Mul", raw, graph.constant([[-link.factor, link.factor]]))
    return graph.add("Sigmoid", logits)


def _softmax(graph: Graph, raw: str, link: SoftmaxLink) -> str:
    if link.factor != 1:
        raw = graph.add("Mul", raw, graph.constant(link.factor))
    return graph.add("Softmax", raw, axis=1)


def _sorted(graph: Graph, raw: str, link: SortedLink) -> str:
    """Sort each row and reorder it by level, so that quantiles never cross."""
    k = len(link.quantiles)
    graph.add("TopK", raw, graph.integers(k), n_outputs=2, axis=1, largest=0, sorted=1)
    ascending = graph.nodes[-1][2][0]
    rank = np.argsort(np.argsort(link.quantiles))
    return graph.add("Gather", ascending, graph.integers(*rank.tolist()), axis=1)


def _parameters(graph: Graph, raw: str, link: DistributionLink) -> str:
    """Convert each column of ``raw`` to its parameter."""
    parts = []
    for k, (name, least) in enumerate(link.kinds):
        column = graph.add("Gather", raw, graph.integers(k), axis=1)
        if name != "identity":
            bound = FARTHEST if name == "log" else LARGEST_LOGIT
            column = graph.add("Clip", column, graph.constant(-bound), graph.constant(bound))
            column = graph.add("Exp" if name == "log" else "Sigmoid", column)
        parts.append(graph.plus(column, least) if least else column)
    return graph.add("Concat", *parts, axis=1) if len(parts) > 1 else parts[0]


def _scores(graph: Graph, raw: str, link: ScoresLink) -> str:
    if link.n_classes == 2:
        return graph.add("Mul", raw, graph.constant([[-1.0, 1.0]]))
    return raw


_LINKS: dict[type[Link], Callable[[Graph, str, Any], str]] = {
    DistributionLink: _parameters,
    IdentityLink: lambda graph, raw, link: raw,
    LogLink: _exponential_mean,
    LogitLink: _two_classes,
    ScoresLink: _scores,
    SoftmaxLink: _softmax,
    SortedLink: _sorted,
}


_KINDS = (
    "BoostingRegressor",
    "BoostingClassifier",
    "BoostingRanker",
    "BoostingSurvival",
    "KernelBoostingRegressor",
    "KernelBoostingClassifier",
    "SparseKernelRidge",
    "SparseKernelClassifier",
)


def to_onnx(model: Any, path: str | Path | None = None, *, dtype: str = "float64") -> Any:
    """Convert a fitted estimator to an ONNX model, which predicts without hilboost.

    Parameters
    ----------
    model : estimator
        Fitted: ``BoostingRegressor``, ``BoostingClassifier``, ``BoostingRanker`` or
        ``BoostingSurvival`` with trees or ``learner="kernel"``, ``KernelBoostingRegressor``,
        ``KernelBoostingClassifier``, ``SparseKernelRidge`` or ``SparseKernelClassifier`` with
        hilboost's own kernels.  The loss is a built-in one, or a custom one that declares its
        ``link`` or does not define ``inverse_link``.
    path : str or Path, optional
        File to write atomically.
    dtype : {"float64", "float32"}, default="float64"
        Dtype of the input.  Arithmetic is in float64 in either case, so that float32 rows reach the
        same leaves as in hilboost.  Kernel machines, except in default fits, compute kernel
        values in float32 above 4,096 rows in hilboost by default, and then differ by rounding.

    Returns
    -------
    onnx.ModelProto
        Input ``X`` (n, d) of ``dtype``, NaN for missing.  If ``X`` contained text in ``fit``, each
        column has its own input (n, 1) instead, of text or of ``dtype``.  Its name is that of the
        column, or, for example, ``x3`` for a column without a name.  The prefix ``"column "``, as
        in ``"column label"``, is added to names of outputs such as ``"label"``, empty names and
        names that begin with a slash.  The empty string is a missing value, unless it was a level
        in ``fit``; missing text cannot be represented then.  The property ``feature_names``
        contains the column names as JSON.

        Regressors have the output ``prediction``, (n,) or (n, c) float64, as ``predict`` returns.
        Classifiers have ``label`` (n,) and ``probabilities`` (n, n_classes) float64, or ``scores``
        with ``loss="hinge"`` or ``"squared_hinge"``.  Survival models have ``risk``, (n,) float64,
        the column that ``predict_raw`` returns.

    Raises
    ------
    MissingPackage
        The package onnx is not installed.
    InvalidType
        The estimator is not supported, or its class labels are neither numbers nor strings.
    IncompatibleParts
        A base model, a kernel or a link has no ONNX operators, or a category level is invalid text
        or a number that ``dtype`` cannot represent.
    InvalidParameter
        The dtype is not supported.
    OSError
        The file cannot be written.

    Notes
    -----
    The model uses operators of ai.onnx 18 and ai.onnx.ml 5 (``TreeEnsemble``).  A tree with vector
    leaves is written once for each output.  A kernel machine computes its whole block (n, m) of
    kernel values at once, so predict in batches of rows.  Inputs are not validated.  For a row with
    NaN, a kernel machine returns NaN, and a kernel classifier a meaningless label.
    """
    if dtype not in ("float32", "float64"):
        raise InvalidParameter(f"dtype must be 'float32' or 'float64'; got {shown(dtype)}.")
    fitted = fitted_record(model, "to_onnx", ", ".join(_KINDS), type(model).__name__ in _KINDS)
    onnx = required("onnx", "to_onnx")
    schema = fitted.schema
    require_levels(schema, dtype)
    graph = Graph()
    inputs = inputs_of(schema)
    in_float64 = [
        one if one.is_text or dtype == "float64" else replace(one, name=graph.as_numbers(one.name))
        for one in inputs
    ]
    X = add_table(graph, in_float64, schema, fitted.encoding)
    sizes = {column: len(levels) for column, levels in Columns.of(fitted).levels.items()}
    raw = _add_raw(graph, X, fitted.model, sizes)
    predicted = add_inverse_link(graph, raw, fitted.loss)
    outputs = _add_outputs(graph, predicted, fitted)
    helper = onnx.helper
    kinds = helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), onnx.TensorProto.STRING
    info = helper.make_tensor_value_info
    sources = [info(one.name, kinds[one.is_text], ["n", one.width]) for one in inputs]
    proto = helper.make_model(
        graph.proto(type(model).__name__, sources, outputs),
        opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid(ML, ML_OPSET)],
        ir_version=IR_VERSION,
        producer_name="hilboost",
        producer_version=__version__,
    )
    if schema.names is not None:
        helper.set_model_props(proto, {"feature_names": json.dumps(schema.names)})
    if path is not None:
        with atomic_path(as_path(path, "to_onnx")) as temporary:
            temporary.write_bytes(proto.SerializeToString())
    return proto


def _add_raw(graph: Graph, X: str, model: AdditiveModel, n_codes: Mapping[int, int]) -> str:
    """Add the sum of the initial prediction and all stages, (n, r)."""
    trees, expansions, others = [], [], []
    for i, stage in enumerate(model.stages):
        for number, term in enumerate(stage.terms):
            if term.model.family == "trees":
                trees += scalar_trees(i, number, term)
            elif term.model.family == "expansions":
                expansions.append(term)
            else:
                others.append(_add_term(graph, X, term, len(model.initial_raw)))
    r = len(model.initial_raw)
    sums = [graph.constant((model.initial_raw + constants_of(trees, r))[None, :])]
    forest = add_trees(graph, X, trees, r, n_codes)
    if forest is not None:
        sums.append(forest)
    for expansion, columns in merge(expansions):
        outputs = np.zeros((len(expansion.basis), r))
        outputs[:, columns] = expansion.weights
        sums.append(replace(expansion, weights=outputs).operators(graph, X))
    sums += others
    if any(term.model.inputs.numbers is None for term in expansions):
        # Make the whole row NaN, because clipping and comparisons would remove NaN.
        sums.append(graph.row_sums(graph.add("Mul", X, graph.constant(0.0))))
    elif forest is None and not others:
        n_rows = graph.add("Shape", X, start=0, end=1)
        shape = graph.add("Concat", n_rows, graph.integers(1), axis=0)
        sums[0] = graph.add("Tile", sums[0], shape)
    total = sums[0]
    for addend in sums[1:]:
        total = graph.add("Add", total, addend)
    return total


def _add_term(graph: Graph, X: str, term: Term, r: int) -> str:
    """Add the output of a base model that writes its own operators, (n, r)."""
    kind = type(term.model)
    # A subclass may compute something other than the inherited operators.
    written = term.model.operators(graph, X) if "operators" in vars(kind) else None
    if written is None:
        raise IncompatibleParts(
            f"to_onnx does not support base models of type {kind.__name__}, which do not define "
            "`operators`; fit with learner='tree' or learner='kernel'."
        )
    places = np.zeros((len(term.coefficient), r))
    places[:, term.columns] = np.diag(term.coefficient)
    return graph.add("MatMul", written, graph.constant(places))


def _add_outputs(graph: Graph, predicted: str, fitted: FittedModel) -> list[Any]:
    """Add the public outputs and their types."""
    from onnx import TensorProto, helper

    info, double = helper.make_tensor_value_info, TensorProto.DOUBLE
    if fitted.codec.kind == "survival":
        graph.rename(graph.add("Squeeze", predicted, graph.integers(1)), "risk")
        return [info("risk", double, ["n"])]
    if fitted.codec.kind == "numbers":
        r = len(fitted.model.initial_raw)
        flat = r == 1 and fitted.numbers.flat and not fitted.loss.has_distribution
        name = "parameters" if fitted.loss.has_distribution else "prediction"
        if flat:
            predicted = graph.add("Squeeze", predicted, graph.integers(1))
        graph.rename(predicted, name)
        return [info(name, double, ["n"] if flat else ["n", r])]
    classes = _labels(fitted.classes)
    best = graph.add("ArgMax", predicted, axis=1, keepdims=0)
    labels = graph.constant(classes, classes.dtype)
    graph.rename(graph.add("Gather", labels, best, axis=0), "label")
    link = fitted.loss.link
    name = "probabilities" if link is None or link.gives_probabilities else "scores"
    graph.rename(predicted, name)
    text = classes.dtype == object
    kind = TensorProto.STRING if text else helper.np_dtype_to_tensor_dtype(classes.dtype)
    return [info("label", kind, ["n"]), info(name, double, ["n", len(classes)])]


def _labels(classes: np.ndarray) -> np.ndarray:
    """Convert class labels to a dtype of ONNX: int64, bool, float64 or text."""
    if classes.dtype.kind == "b":
        return classes
    if classes.dtype.kind in "iu":
        return classes.astype(np.int64)
    if classes.dtype.kind == "f":
        return classes.astype(np.float64)
    labels = classes.tolist()
    if not all_text(labels):
        raise InvalidType(
            "to_onnx supports class labels that are numbers or text; got "
            f"{sorted({type(label).__name__ for label in labels})}. Fit with numbers or text as "
            "labels."
        )
    return np.array(labels, dtype=object)


FORMATS = {"onnx": to_onnx}
