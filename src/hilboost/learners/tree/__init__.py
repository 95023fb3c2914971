"""Histogram trees, grown best first from binned columns, and output kernel trees."""

from hilboost.backends.trees.category_splits import MAX_LEVELS
from hilboost.learners.tree.learner import TreeLearner
from hilboost.learners.tree.tree import Forest, Tree
from hilboost.learners.tree.vector import VectorTreeLearner

__all__ = ["MAX_LEVELS", "Forest", "Tree", "TreeLearner", "VectorTreeLearner"]
