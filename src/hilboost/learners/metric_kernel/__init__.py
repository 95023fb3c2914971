"""A kernel machine for any table, with a metric that is learned from gradients in seconds."""

from hilboost.learners.metric_kernel.learner import MetricKernelLearner, MetricSpace
from hilboost.learners.metric_kernel.model import MetricExpansion
from hilboost.learners.metric_kernel.systems import NormalEquations, Rows, System

__all__ = [
    "MetricExpansion",
    "MetricKernelLearner",
    "MetricSpace",
    "NormalEquations",
    "Rows",
    "System",
]
