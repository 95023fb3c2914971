"""The loop: functional gradient descent, stage by stage."""

from hilboost.boosting.evaluate import checked_start
from hilboost.boosting.loop import Member, Plan, Progress, Validation, boost
from hilboost.boosting.sampling import RowSampling, assign_folds
from hilboost.boosting.stopping import EarlyStopping

__all__ = [
    "EarlyStopping",
    "Member",
    "Plan",
    "Progress",
    "RowSampling",
    "Validation",
    "assign_folds",
    "boost",
    "checked_start",
]
