"""Histogram trees, grown best first from binned columns, and output kernel trees."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hilboost.core.discovery import by_word, names_of

if TYPE_CHECKING:
    from hilboost.learners.tree.learner import TreeLearner as TreeLearner
    from hilboost.learners.tree.vector import VectorTreeLearner as VectorTreeLearner

# Imported on first use: trees with scalar leaves do not need those with vector leaves.
_MODULES = {"learner": "TreeLearner", "vector": "VectorTreeLearner"}

__all__ = sorted(by_word(_MODULES))

__getattr__ = names_of(__name__, _MODULES)
