"""Histogram trees, grown best first from binned columns, and output kernel trees."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hilboost.core.discovery import names_of

if TYPE_CHECKING:
    from hilboost.learners.tree.learner import TreeLearner
    from hilboost.learners.tree.vector import VectorTreeLearner

# Imported on first use: trees with scalar leaves do not need those with vector leaves.
_MODULES = {"learner": "TreeLearner", "vector": "VectorTreeLearner"}

__all__ = ["TreeLearner", "VectorTreeLearner"]

__getattr__ = names_of(__name__, _MODULES)
