"""Histogram trees: bin once, grow best first, predict from flat arrays."""

from hilboost.learners.tree.learner import TreeLearner
from hilboost.learners.tree.tree import Forest, Tree

__all__ = ["Forest", "Tree", "TreeLearner"]
