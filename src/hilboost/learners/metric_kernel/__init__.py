"""A kernel machine for any table, with a metric that is learned from gradients in seconds."""

from hilboost.learners.metric_kernel.learner import MetricKernelLearner, Rows, Space, System
from hilboost.learners.metric_kernel.model import MetricExpansion

__all__ = ["MetricExpansion", "MetricKernelLearner", "Rows", "Space", "System"]
