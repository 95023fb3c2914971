"""Linear base models stored as numbers, without the regressors that were fitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from hilboost.core.base_model import BaseModel
from hilboost.core.dtypes import Floats

LINEAR_REGRESSORS = ("LinearRegression", "Ridge")
"""Classes of ``sklearn.linear_model`` whose predictions are ``X @ coef_.T + intercept_``."""


@dataclass(frozen=True)
class LinearModel(BaseModel):
    """Reproduces the predictions of fitted linear regressors, bit for bit."""

    in_files = True

    # tuple of (coefficients, intercept): one pair per regressor, float64: (d,) or (k, d), and (k,)
    # or a number
    terms: tuple[tuple[Any, Any], ...]

    @classmethod
    def of(cls, regressors: Sequence[Any]) -> Self | None:
        """Extract the numbers of fitted regressors; ``None`` unless all of them are linear."""
        if not all(is_linear(regressor) for regressor in regressors):
            return None
        return cls(
            tuple(
                (np.asarray(regressor.coef_, dtype=np.float64), _intercept(regressor))
                for regressor in regressors
            )
        )

    def predict_raw(self, X: Floats) -> Floats:
        """Raw predictions (n, r); cost O(n d r)."""
        outputs = [(X @ w.T + b).reshape(len(X), -1) for w, b in self.terms]
        return outputs[0] if len(outputs) == 1 else np.hstack(outputs)

    def has_shape(self, n_features: int, n_outputs: int) -> bool:
        """Whether the model has these numbers of features and outputs, and is finite."""
        width = 0
        for w, b in self.terms:
            if not (isinstance(w, np.ndarray) and isinstance(b, np.ndarray | float)):
                return False
            k = w.shape[0] if w.ndim == 2 else 1
            shaped = w.ndim in (1, 2) and w.shape[-1] == n_features and np.shape(b) in ((), (k,))
            if not (shaped and w.dtype == np.asarray(b).dtype == np.float64):
                return False
            if not (np.isfinite(w).all() and np.isfinite(b).all()):
                return False
            width += k
        return width == n_outputs


def is_linear(regressor: object) -> bool:
    """Whether a regressor is an instance of one of ``LINEAR_REGRESSORS``, not of a subclass."""
    own = type(regressor)
    return own.__module__.startswith("sklearn.linear_model.") and own.__name__ in LINEAR_REGRESSORS


def _intercept(regressor: Any) -> Any:
    found = np.asarray(regressor.intercept_, dtype=np.float64)
    return found if found.ndim else float(found)
