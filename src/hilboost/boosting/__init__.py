"""The loop: functional gradient descent, stage by stage."""

from hilboost.boosting.loop import Plan, Progress, Validation, boost
from hilboost.boosting.sampling import RowSampling
from hilboost.boosting.stopping import EarlyStopping

__all__ = ["EarlyStopping", "Plan", "Progress", "RowSampling", "Validation", "boost"]
