"""A fitted step that knows what it does to the penalty."""

from __future__ import annotations

from dataclasses import dataclass

from hilboost.core.learner import FittedTerm


@dataclass(frozen=True)
class Descending(FittedTerm):
    """A step, and what the penalized loss does along it besides what the loss does.

    Attributes
    ----------
    slope, curvature : float
        Of the penalty: a part ``c`` of the step adds ``slope c + ½ curvature c²``.
    descent : float
        How fast the penalized loss falls at the beginning of the step.
    """

    slope: float = 0.0
    curvature: float = 0.0
    descent: float = 0.0
