"""The components of a fit, with its early stopping."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from hilboost.boosting.sampling import RowSampling
from hilboost.boosting.state import TrainingState
from hilboost.core.callback import Callback
from hilboost.core.exchange import RowShare
from hilboost.core.learner import Learner
from hilboost.core.loss import Loss
from hilboost.core.metric import Metric
from hilboost.core.rule import Rule
from hilboost.core.target import TargetUnits
from hilboost.rules import Shrinkage


@dataclass(frozen=True)
class EarlyStopping:
    """Stop when the loss no longer decreases, and keep the best stage."""

    patience: int  # number of stages without an improvement of more than ``tolerance``
    tolerance: float  # relative to the loss of the initial prediction
    # whether the loss is that of the training rows, rather than of held-out rows
    on_training_rows: bool = False
    # how many stages are kept, as a multiple of the best number
    extension: float = 1.0

    def should_stop(self, losses: list[float]) -> bool:
        """Whether none of the last ``patience`` losses improves on the best one before them.

        Stages with an undefined loss (NaN) count as stages without an improvement.
        """
        if len(losses) <= self.patience:
            return False
        first, known = next(filter(math.isfinite, losses), 0.0), np.array(losses, np.float64)
        parts = known[: -self.patience], known[-self.patience :]
        before, recent = (float(np.fmin.reduce(part, initial=np.inf)) for part in parts)
        return not recent < before - self.tolerance * abs(first)

    @staticmethod
    def best_stage(losses: list[float]) -> int:
        """Number of stages with the lowest loss; the smallest number in case of ties."""
        return int(np.nan_to_num(losses, nan=np.inf, posinf=np.inf, neginf=-np.inf).argmin())

    def kept_stages(self, losses: list[float]) -> int:
        """Number of stages that the model keeps."""
        return min(len(losses) - 1, int(self.extension * self.best_stage(losses)))


@dataclass(frozen=True)
class BoostingConfig:
    """The components of a fit and its stopping criteria.

    If ``units`` is given, the loss, targets and stages are expressed in them until the fit ends.
    ``rules`` set step lengths and leaf values; the learning rate comes last.
    ``metric`` is the loss of the history and of early stopping, if it is another one.  The first of
    ``metrics``, computed on the held-out rows, decides when to stop, if there are any.  With
    ``takes_snapshots``, the state contains what its stages do not determine.
    ``division`` names workers that have the same rows, among which kernel values are divided.
    """

    loss: Loss
    learner: Learner
    n_stages: int
    seed: int
    rules: tuple[Rule, ...] = ()
    learning_rate: float = 1.0
    sampling: RowSampling = field(default_factory=RowSampling)
    stopping: EarlyStopping | None = None
    callbacks: Sequence[Callback] = ()
    units: TargetUnits | None = None
    metric: Loss | None = None
    takes_snapshots: bool = False
    metrics: tuple[Metric, ...] = ()
    division: RowShare | None = None
    own_callbacks: Sequence[Callback] = ()

    @property
    def steps(self) -> tuple[Rule, ...]:
        """The rules that set the steps, with the learning rate last."""
        rate = self.learning_rate
        return self.rules if rate == 1 else (*self.rules, Shrinkage(rate))

    @property
    def rate(self) -> float | None:
        """The factor of all stages, or ``None`` if rules do more than multiply."""
        rate = 1.0
        for rule in self.steps:
            if rule.factor is None:
                return None
            rate *= rule.factor
        return rate

    def watched(self, state: TrainingState) -> list[float]:
        """The loss that early stopping minimizes, after each stage; empty without rows for it."""
        if self.stopping is not None and self.stopping.on_training_rows:
            return state.train
        if not self.metrics or not state.validation:
            return state.validation
        first = self.metrics[0]
        values = state.metrics[first.name]
        return [-value for value in values] if first.higher_is_better else values
