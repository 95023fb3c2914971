"""The components of a fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hilboost.boosting.sampling import RowSampling
from hilboost.boosting.state import TrainingState
from hilboost.boosting.stopping import EarlyStopping
from hilboost.core.callback import Callback
from hilboost.core.exchange import RowShare
from hilboost.core.learner import Learner
from hilboost.core.loss import Loss, TargetUnits
from hilboost.core.metric import Metric
from hilboost.core.rule import Rule


@dataclass(frozen=True)
class BoostingConfig:
    """The components of a fit and its stopping criteria.

    If ``units`` is given, the loss, targets and stages are expressed in them until the fit ends.
    ``metric`` is the loss by which stages are compared, if it is another one.  The first of
    ``metrics`` decides when to stop, if there are any.  With ``takes_snapshots``, the state
    contains what its stages do not determine.
    ``division`` names workers that have the same rows.
    """

    loss: Loss
    learner: Learner
    rules: Sequence[Rule]
    n_stages: int
    sampling: RowSampling
    stopping: EarlyStopping | None
    callbacks: Sequence[Callback]
    seed: int
    units: TargetUnits | None = None
    metric: Loss | None = None
    takes_snapshots: bool = False
    metrics: tuple[Metric, ...] = ()
    division: RowShare | None = None
    own_callbacks: Sequence[Callback] = ()

    @property
    def rate(self) -> float | None:
        """The factor of all stages, or ``None`` if rules do more than multiply."""
        rate = 1.0
        for rule in self.rules:
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
