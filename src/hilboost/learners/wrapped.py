"""Any scikit-learn regressor as a base learner; linear ones become numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from hilboost.core.base_model import BaseModel, Term
from hilboost.core.capabilities import Capabilities
from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData
from hilboost.core.fitted_term import FittedTerm
from hilboost.core.gradients import Gradients
from hilboost.core.learner import Learner
from hilboost.core.row_sample import RowSample


@dataclass(frozen=True)
class WrappedModel(BaseModel):
    """Base model of one fitted regressor for all outputs, or one for each output."""

    regressors: tuple[Any, ...]

    def predict_raw(self, X: Floats) -> Floats:
        """Raw predictions (n, r)."""
        outputs = [
            np.asarray(regressor.predict(X), dtype=np.float64).reshape(len(X), -1)
            for regressor in self.regressors
        ]
        return outputs[0] if len(outputs) == 1 else np.hstack(outputs)

    def for_files(self) -> BaseModel:
        """Return the coefficients of linear regressors; otherwise, the model itself."""
        return LinearModel.of(self.regressors) or self

    def described(self) -> str:
        """Return the class name of the regressors."""
        return type(self.regressors[0]).__name__


def _weight_arguments(regressor: object, weight: Floats) -> dict[str, Floats] | None:
    """Arguments that pass sample weights to ``fit``; ``None`` if it accepts none."""
    from sklearn.pipeline import Pipeline  # slow to import

    if isinstance(regressor, Pipeline):
        name, last = regressor.steps[-1]
        return (
            {f"{name}__sample_weight": weight} if has_fit_parameter(last, "sample_weight") else None
        )
    return {"sample_weight": weight} if has_fit_parameter(regressor, "sample_weight") else None


@dataclass(frozen=True)
class WrappedLearner(Learner):
    """Learner that fits clones of a scikit-learn regressor to the negative gradient.

    Friedman 2001, Algorithm 1, step 4.  The hessian is not used; a line search along the stage
    (step 5) compensates for this.
    """

    # cloned for each stage and output.  Sample weights are passed on if its ``fit`` accepts them
    # and rejected otherwise.  A ``random_state`` parameter is set from the generator of the stage.
    regressor: Any
    # whether to fit one clone to all outputs, for regressors with multi-output support
    together: bool = False

    @property
    def capabilities(self) -> Capabilities:
        """Files store only linear regressors."""
        return Capabilities(in_checkpoints=is_linear(self.regressor))

    def prepare(self, X: Floats, weight: Floats | None, seed: int, n_threads: int) -> Floats:
        """Return the inputs unchanged."""
        if weight is not None and _weight_arguments(self.regressor, weight) is None:
            raise InvalidData(
                f"learner {type(self.regressor).__name__} does not support sample weights; fit "
                "without sample_weight and class_weight, or use a learner whose fit method has the "
                "parameter sample_weight."
            )
        return X

    def fit(
        self, data: Floats, gradients: Gradients, sample: RowSample, rng: np.random.Generator
    ) -> list[FittedTerm]:
        """Fit one clone for each output, or one for all."""
        rows: Any = slice(None) if sample.rows is None else sample.rows
        arguments: dict[str, Floats] = {}
        if sample.weight is not None:
            accepted = _weight_arguments(self.regressor, sample.weight[rows])
            if accepted is None:  # weights are then bootstrap multiplicities
                rows = np.repeat(rows, sample.weight[rows].astype(np.intp))
            else:
                arguments = accepted
        outputs = gradients.negative_gradient
        several = (
            self.together
            and outputs.shape[1] > 1
            and get_tags(self.regressor).target_tags.multi_output
        )
        fitted = []
        for negative in [outputs] if several else outputs.T:
            regressor = clone(self.regressor)
            parameters = regressor.get_params()
            seeds = {
                name: int(rng.integers(2**31 - 1))
                for name in sorted(parameters)
                if name == "random_state" or name.endswith("__random_state")
            }
            regressor.set_params(**seeds)
            fitted.append(regressor.fit(data[rows], negative[rows], **arguments))
        model = WrappedModel(tuple(fitted))
        term = Term.of(model, slice(0, gradients.negative_gradient.shape[1]))
        return [FittedTerm(term, outputs=model.predict_raw(data))]


LINEAR_REGRESSORS = ("LinearRegression", "Ridge")
"""Classes of ``sklearn.linear_model`` whose predictions are ``X @ coef_.T + intercept_``."""


@dataclass(frozen=True)
class LinearModel(BaseModel):
    """Reproduces the predictions of fitted linear regressors, bit for bit."""

    in_files = True

    # tuple of (coefficients, intercept): one pair per regressor, float64, or float32 if the inputs
    # were: (d,) or (k, d), and (k,) or a number
    terms: tuple[tuple[Any, Any], ...]

    @classmethod
    def of(cls, regressors: Sequence[Any]) -> Self | None:
        """Extract the numbers of fitted regressors; ``None`` unless all of them are linear."""
        if not all(is_linear(regressor) for regressor in regressors):
            return None
        return cls(
            tuple((np.asarray(regressor.coef_), _intercept(regressor)) for regressor in regressors)
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
            b_dtype = getattr(b, "dtype", w.dtype)
            if not (shaped and w.dtype == b_dtype and w.dtype in (np.float32, np.float64)):
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
    found = np.asarray(regressor.intercept_)
    return found if found.ndim else float(found)
