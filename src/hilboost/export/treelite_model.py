"""Export of fitted trees to treelite, whose tools compile them or predict without hilboost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hilboost.core.errors import IncompatibleParts
from hilboost.core.link import IdentityLink, Link, LogitLink, LogLink, SoftmaxLink, SortedLink
from hilboost.core.packages import required
from hilboost.export.scalar_trees import ScalarTree, constant_tree, fitted_trees
from hilboost.model.fitted import FittedModel
from hilboost.persistence.atomic import as_path, atomic_path

_FUNCTIONS: dict[type[Link], str] = {
    IdentityLink: "identity",
    SortedLink: "identity",
    LogLink: "exponential",
    LogitLink: "sigmoid",
    SoftmaxLink: "softmax",
}
_TASKS = {"sigmoid": "kBinaryClf", "softmax": "kMultiClf"}


def to_treelite(model: Any, path: str | Path | None = None) -> Any:
    """Convert fitted trees to a treelite model, for its predictor and for tl2cgen, which writes C.

    Parameters
    ----------
    model : BoostingRegressor, BoostingClassifier, BoostingRanker or BoostingSurvival
        Fitted, with trees on numeric columns and at most one quantile level.  The loss is a
        built-in one, or a custom one that declares its ``link``.
    path : str or Path, optional
        File to write atomically, for ``treelite.Model.deserialize``.

    Returns
    -------
    treelite.Model
        With thresholds and leaf values in float64, as in hilboost.

    Raises
    ------
    InvalidType
        The estimator is not supported.
    IncompatibleParts
        The base models are not trees on numeric columns, or treelite cannot compute the predictions
        of the loss from their sum.
    MissingPackage
        The package treelite is not installed.
    OSError
        The file cannot be written.

    Notes
    -----
    The model predicts what ``predict`` returns, or probabilities of the classes in the order of
    ``classes_`` (of the second class, if there are two).  For survival models, it predicts
    ``predict_raw``.  A tree with vector leaves is written once for every output.
    """
    trees = fitted_trees(model, "to_treelite")
    fitted: FittedModel = model.fitted_
    trees = trees or [constant_tree(k) for k in range(len(fitted.model.initial_raw))]
    builder_of = required("treelite.model_builder", "to_treelite")
    builder = _builder(builder_of, fitted, [tree.output for tree in trees])
    factor = getattr(fitted.loss.link, "factor", 1.0)
    for tree in trees:
        _add_tree(builder, tree, factor)
    built = builder.commit()
    if path is not None:
        with atomic_path(as_path(path, "to_treelite")) as temporary:
            built.serialize(temporary)
    return built


def _builder(module: Any, fitted: FittedModel, outputs: list[int]) -> Any:
    """Begin a model of trees with these outputs."""
    function, link = _function(fitted), fitted.loss.link
    start, zeros = fitted.model.initial_raw, [0] * len(outputs)
    r, by_class = len(start), function == "softmax"
    return module.ModelBuilder(
        threshold_type="float64",
        leaf_output_type="float64",
        metadata=module.Metadata(
            num_feature=fitted.schema.n_columns,
            task_type=_TASKS.get(function, "kRegressor"),
            average_tree_output=False,
            num_target=1 if by_class else r,
            num_class=[r] if by_class else [1] * r,
            leaf_vector_shape=(1, 1),
        ),
        tree_annotation=module.TreeAnnotation(
            num_tree=len(outputs),
            target_id=zeros if by_class else outputs,
            class_id=outputs if by_class else zeros,
        ),
        postprocessor=module.PostProcessorFunc(name=function),
        base_scores=(getattr(link, "factor", 1.0) * start).tolist(),
    )


def _function(fitted: FittedModel) -> str:
    """Return treelite's name of the inverse link."""
    link = fitted.loss.link
    if link is not None and len(link.levels) > 1:
        raise IncompatibleParts(
            f"to_treelite does not support the {len(link.levels)} quantile levels of this model, "
            "because treelite cannot sort them. Fit one model per level, or use to_onnx."
        )
    function = None if link is None else _FUNCTIONS.get(type(link))
    of_classes = fitted.codec.kind == "classes"
    if function is None or of_classes != (function in _TASKS):
        raise IncompatibleParts(
            f"to_treelite does not support the link of {type(fitted.loss).__name__}; fit with a "
            "loss that predicts numbers or probabilities, or use to_onnx."
        )
    return function


def _add_tree(builder: Any, tree: ScalarTree, factor: float) -> None:
    nodes, values = tree.tree, factor * tree.node_values
    builder.start_tree()
    for number in range(len(values)):
        builder.start_node(number)
        if tree.is_leaf[number]:
            builder.leaf(float(values[number]))
        else:
            builder.numerical_test(
                int(nodes.column[number]),
                float(nodes.threshold[number]),
                default_left=not nodes.missing_right[number],
                opname="<=",
                left_child_key=int(nodes.child[number]),
                right_child_key=int(nodes.child[number]) + 1,
            )
        builder.end_node()
    builder.end_tree()


FORMATS = {"treelite": to_treelite}
