"""hilboost as a model of AutoGluon, for AutoGluon itself and for TabArena."""

from __future__ import annotations

import time
import warnings
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from autogluon.core.models import AbstractModel
from autogluon.core.utils.exceptions import TimeLimitExceeded

SHARE_OF_LIMIT = 0.8
"""hilboost keeps its budget within 20 %."""

KERNEL_ROWS = 100_000
"""Larger tables have no kernel machine."""

WARM_UP_ROWS = (600, 3_000)


class HilboostModel(AbstractModel):
    """Trees and kernel machines with hilboost's defaults.

    Hyperparameters are parameters of ``hilboost.BoostingRegressor`` or
    ``hilboost.BoostingClassifier``.  Frames are passed as they come: hilboost splits on categories,
    takes missing values, and stops early by ``X_val`` or, without it, by folds of the training
    rows.
    """

    ag_key = "HILBOOST"
    ag_name = "hilboost"
    seed_name = "random_state"
    _supported_problem_types = ("binary", "multiclass", "regression")
    _default_auxiliary_params_extra: ClassVar = {
        "valid_raw_types": ["bool", "int", "float", "category"]
    }
    default_resources_physical_cores_only = True

    def _fit(
        self,
        X: pd.DataFrame,
        y: pd.Series,
        X_val: pd.DataFrame | None = None,
        y_val: pd.Series | None = None,
        time_limit: float | None = None,
        num_cpus: int = 1,
        **kwargs: Any,
    ) -> None:
        start = time.monotonic()
        X = self.preprocess(X, is_train=True)
        held_out = {}
        if X_val is not None:
            held_out = {"X_val": self.preprocess(X_val), "y_val": y_val}
            held_out["sample_weight_val"] = kwargs.get("sample_weight_val")
        parameters = {"n_jobs": num_cpus, **self._get_model_params()}
        if time_limit is not None:
            time_left = time_limit - (time.monotonic() - start)
            if time_left <= 0:
                raise TimeLimitExceeded
            parameters.setdefault("time_budget", SHARE_OF_LIMIT * time_left)
        self.model = _estimator(self.problem_type)(**parameters)
        self.model.fit(X, y, kwargs.get("sample_weight"), **held_out)

    @classmethod
    def warmup(
        cls, *, problem_type: str | None = None, num_cpus: int | None = None, **_: Any
    ) -> None:
        """Load the compiled code, or compile it, by small fits to random numbers."""
        rng = np.random.default_rng(0)
        cuts = {"binary": [0.0], "multiclass": [-0.5, 0.5]}.get(problem_type)
        for rows in WARM_UP_ROWS:
            X = pd.DataFrame(rng.normal(size=(rows, 4))).add_prefix("x")
            y = X.x0 if cuts is None else pd.Series(np.digitize(X.x0, cuts))
            X["level"] = pd.Categorical(rng.integers(0, 9, rows))
            X.loc[::9, "x1"] = np.nan
            with warnings.catch_warnings(action="ignore"):
                model = _estimator(problem_type)(n_jobs=num_cpus, random_state=0, n_estimators=50)
                model.fit(X[50:], y[50:], X_val=X[:50], y_val=y[:50])
                model.predict(X)

    @classmethod
    def _estimate_memory_usage_static(
        cls, *, X: pd.DataFrame, num_classes: int | None = 1, **_: Any
    ) -> int:
        """Bytes, on the safe side: most are those of the kernel machine, and of its outputs."""
        rows, columns = X.shape
        outputs = num_classes if num_classes is not None and num_classes > 2 else 1
        of_kernel = 40_000 * min(rows, KERNEL_ROWS)
        return int(1e9 + of_kernel + rows * (20 * columns + 4_000 * outputs))

    def _more_tags(self) -> dict[str, bool]:
        return {"can_refit_full": True}


def _estimator(problem_type: str | None) -> type:
    """The class of hilboost, which is imported when a fit begins."""
    import hilboost

    classes = problem_type in ("binary", "multiclass")
    return hilboost.BoostingClassifier if classes else hilboost.BoostingRegressor
