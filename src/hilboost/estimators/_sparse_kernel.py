"""What single sparse kernel machines for regression and classification share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import groupby
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from hilboost.boosting import EarlyStopping, Plan, Progress
from hilboost.core.contracts import Learner, Loss, Rule
from hilboost.core.records import Part, Stage
from hilboost.estimators._kernel import BaseKernelBoosting
from hilboost.learners.kernel_machine import KernelExpansion, SparseLearner
from hilboost.learners.kernel_machine.expansion import merge
from hilboost.learners.kernel_machine.nested import NestedLearner
from hilboost.losses import OneHotSquaredError, SquaredError
from hilboost.rules import PenalisedLineSearch

_ENDLESS = 2**31 - 1  # stages: the learner knows when it is done


class BaseSparseKernel(BaseKernelBoosting):
    """One machine, fitted by the loop of kernel boosting; not to be used by itself."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{
            name: BaseKernelBoosting._parameter_constraints[name]
            for name in (
                "regularization",
                "tuning",
                "selection",
                "n_candidates",
                "subset_size",
                "standardise",
                "categorical_features",
                "memory_budget",
                "precision",
                "time_budget",
                "random_state",
                "n_jobs",
            )
        },
        "n_basis": [Interval(Integral, 1, None, closed="left")],
    }
    _regularize: Callable[..., float] | None = None

    def __init__(self, loss: str, **parameters: Any) -> None:
        super().__init__(loss, stages="sparse", **parameters)
        del self.n_iter_no_change  # no parameter here: scikit-learn would try to set it

    def _stopping(self, held_out: bool) -> EarlyStopping | None:
        """Steps on one machine are no reason to stop."""
        return EarlyStopping(_ENDLESS, 0.0) if held_out else None

    def _make_learner(self, n: int, categorical: tuple[int, ...]) -> Any:
        sparse = super()._make_learner(n, categorical)
        assert isinstance(sparse, SparseLearner)
        return NestedLearner(
            sparse, float(self.tol), int(getattr(self, "max_iter", 1)), self._regularize
        )

    def _make_rules(self, loss: Loss, learner: Learner) -> list[Rule]:
        return (
            [] if isinstance(loss, SquaredError | OneHotSquaredError) else [PenalisedLineSearch()]
        )

    def _n_stages(self, loss: Loss, learner: Learner) -> int:
        return _ENDLESS

    def _keep(self, plan: Plan, progress: Progress) -> None:
        """Steps on one machine become one stage: stages are nested machines."""
        stages = progress.members[0].stages
        sizes = np.array([_size(stage) for stage in stages])
        ends = np.flatnonzero(np.diff(sizes, append=0)) + 1
        self.n_iter_ = len(stages)
        stages[:] = [_together(list(group)) for _, group in groupby(stages, key=_size)]
        for losses in (progress.train, progress.validation):
            if losses:
                losses[:] = [losses[0], *(losses[end] for end in ends)]
        assert isinstance(plan.learner, NestedLearner)
        super()._keep(replace(plan, learner=replace(plan.learner, regularize=None)), progress)
        self.path_ = sizes[ends - 1][: self.n_estimators_]
        self.n_basis_ = int(self.path_[-1]) if len(self.path_) else 0


def _size(stage: Stage) -> int:
    model = stage.parts[0].model
    assert isinstance(model, KernelExpansion)
    return len(model.basis)


def _together(stages: list[Stage]) -> Stage:
    """The sum of some stages with the same basis."""
    if len(stages) == 1:
        return stages[0]
    ((model, columns),) = merge([part for stage in stages for part in stage.parts])
    return Stage((Part.of(model, columns),))
