"""Base class of single sparse kernel machines."""

from __future__ import annotations

from dataclasses import KW_ONLY
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval

from hilboost.core.dtypes import Seed
from hilboost.core.learner import Learner
from hilboost.core.loss import Loss
from hilboost.estimators.kernel_boosting import KernelBoosting, KernelMachineEstimator
from hilboost.estimators.shapley import ShapleyValues
from hilboost.estimators.signatures import with_parameters
from hilboost.model.codecs import TargetCodec
from hilboost.persistence.stored import StoredModel
from hilboost.training.continuation import Continuation
from hilboost.training.data import TrainingData
from hilboost.training.recipe import Recipe
from hilboost.training.recipes.kernel_machines import (
    KernelParameters,
    nested_learner,
    nested_recipe,
)


@with_parameters
class SparseKernelMachine(ShapleyValues, KernelMachineEstimator):
    """Base class of a kernel machine with nested bases, fitted by the boosting loop."""

    divides = "kernel values"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelBoosting._parameter_constraints,
        "n_basis": [Interval(Integral, 1, None, closed="left")],
    }

    _: KW_ONLY
    kernel: Any = "auto"
    regularization: float | str = "auto"
    tuning: str = "auto"
    n_basis: int = 500
    selection: str = "forward"
    n_candidates: int | None = 59
    subset_size: int | None = None
    standardize: bool | str = "auto"
    categorical_features: Any = "from_dtype"
    memory_budget: float | str = "auto"
    precision: str = "auto"
    time_budget: float | None = None
    validation: Any = "auto"
    validation_gap: Any = None
    random_state: Seed = None
    n_jobs: int | None = None

    def _recipe(self, data: TrainingData, seed: int, continuation: Continuation | None) -> Recipe:
        p = KernelParameters.of(self.get_params(deep=False), stages="sparse")
        return nested_recipe(p, self._make_loss(data.codec), data, seed)

    def _parts(
        self, codec: TargetCodec, n_outputs: int, stored: StoredModel
    ) -> tuple[Loss, Learner]:
        p = KernelParameters.of(self.get_params(deep=False), stages="sparse")
        learner = nested_learner(p, stored.schema.categories)
        return self._make_loss(codec), learner

    @property
    def path_(self) -> NDArray[np.int64]:
        """Numbers of basis vectors of the nested models."""
        path = self._summary.path
        return np.empty(0, dtype=np.int64) if path is None else path

    @property
    def n_basis_(self) -> int:
        """Number of basis vectors of the model."""
        return int(self.path_[-1]) if len(self.path_) else 0

    @property
    def n_iter_(self) -> int:
        """Total number of steps over all nested models."""
        return int(self._summary.n_iter or 0)
