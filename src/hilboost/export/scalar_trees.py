"""Trees with one output each, as in other libraries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.core.base_model import Term
from hilboost.core.dtypes import Floats
from hilboost.core.errors import IncompatibleParts
from hilboost.engine import Tree
from hilboost.export.estimators import fitted_record
from hilboost.model.fitted import FittedModel
from hilboost.model.summary import not_of_trees


@dataclass(frozen=True)
class ScalarTree:
    """One output of one tree."""

    stage: int
    number: int  # of the tree within its stage
    output: int
    tree: Tree
    # (n_leaves,) float64: contributions of the leaves to the raw output, including the coefficient
    values: Floats

    @property
    def is_leaf(self) -> NDArray[np.bool_]:
        """Whether each node is a leaf, (n_nodes,)."""
        return self.tree.leaf_number >= 0

    @property
    def node_values(self) -> Floats:
        """Values of the nodes, (n_nodes,) float64, NaN at inner nodes."""
        return np.where(self.is_leaf, self.values[self.tree.leaf_number], np.nan)


def fitted_trees(model: Any, purpose: str, numbers_only: bool = True) -> list[ScalarTree]:
    """Return all trees of a fitted estimator by stage, one for each output of vector leaves."""
    kinds = "a BoostingRegressor or BoostingClassifier with trees"
    fitted = fitted_record(model, purpose, kinds, getattr(model, "is_tabular", False))
    if numbers_only:
        require_numbers(fitted, purpose)
    trees = []
    for i, stage in enumerate(fitted.model.stages):
        for number, term in enumerate(stage.terms):
            if term.model.family != "trees":
                raise IncompatibleParts(
                    f"{purpose} requires a model of trees, but {not_of_trees(fitted)}; fit "
                    "with learner='tree'."
                )
            trees += scalar_trees(i, number, term)
    return trees


def leaf_counts(
    model: Any, trees: list[ScalarTree], X: object
) -> dict[tuple[int, int], NDArray[np.int64]]:
    """Count rows in the leaves of each tree, (n_leaves,), by its stage and number."""
    sizes = {(tree.stage, tree.number): len(tree.values) for tree in trees}
    columns = zip(sizes.items(), model.apply(X).T, strict=True)
    return {place: np.bincount(leaves, minlength=n) for (place, n), leaves in columns}


def scalar_trees(stage: int, number: int, term: Term) -> list[ScalarTree]:
    """Return one tree for each output of a term whose model is a :class:`Tree`."""
    tree: Any = term.model
    values = term.coefficient * tree.values
    outputs = enumerate(range(term.columns.start, term.columns.stop))
    return [ScalarTree(stage, number, output, tree, values[:, k]) for k, output in outputs]


def constant_tree(output: int) -> ScalarTree:
    """Create a single leaf of value 0, placed before the trees of the first stage."""
    tree = Tree(
        column=np.zeros(1, dtype=np.int32),
        threshold=np.full(1, np.inf),
        missing_right=np.zeros(1, dtype=np.bool_),
        child=np.zeros(1, dtype=np.int32),
        gain=np.zeros(1),
        leaf_number=np.zeros(1, dtype=np.int32),
        depth=0,
        leaf_values=np.ones((1, 1)),
    )
    return ScalarTree(0, -1, output, tree, np.zeros(1))


def require_numbers(fitted: FittedModel, purpose: str) -> None:
    """Reject models with categories, for formats that support splits ``x <= threshold`` only."""
    remedy = "Encode them as numbers before fit, or use to_onnx."
    if fitted.schema.categories:
        column = fitted.schema.columns[fitted.schema.categories[0]]
        raise IncompatibleParts(
            f"{purpose} supports only numeric columns, but column {column.name!r} contains "
            f"categories. {remedy}"
        )
    terms: list[Any] = [term.model for stage in fitted.model.stages for term in stage.terms]
    if any(term.family == "trees" and len(term.left_sets) for term in terms):
        raise IncompatibleParts(
            f"{purpose} supports only splits on thresholds, but trees of this model split on "
            f"category levels. {remedy}"
        )
