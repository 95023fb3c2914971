"""Histogram trees, grown best first from binned columns, and output kernel trees."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hilboost.core.lazy import names_of

if TYPE_CHECKING:
    from hilboost.backends.trees.category_splits import MAX_LEVELS
    from hilboost.learners.tree.learner import TreeLearner
    from hilboost.learners.tree.tree import Forest, Tree
    from hilboost.learners.tree.vector import VectorTreeLearner

# Imported on first use: trees with scalar leaves do not need those with vector leaves.
_HOMES = {
    "MAX_LEVELS": "category_columns",
    "Forest": "tree",
    "Tree": "tree",
    "TreeLearner": "learner",
    "VectorTreeLearner": "vector",
}

__all__ = ["MAX_LEVELS", "Forest", "Tree", "TreeLearner", "VectorTreeLearner"]

__getattr__ = names_of(__name__, _HOMES)
