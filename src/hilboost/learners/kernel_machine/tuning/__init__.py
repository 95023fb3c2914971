"""Kernel, length scales and λ of a fit, chosen from its first gradients."""

from hilboost.learners.kernel_machine.tuning.choose import choose

__all__ = ["choose"]
