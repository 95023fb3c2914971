"""hilboost's estimators under the names of scikit-learn's classes and parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn import ensemble
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from hilboost import BoostingClassifier, BoostingRegressor
from hilboost.losses import Huber

_ROWS_OF_EARLY_STOPPING = 10_000


class NotInHilboost(NotImplementedError):
    """A parameter or value that hilboost does not have."""

    def __init__(self, name: str, value: Any) -> None:
        super().__init__(f"{name}={value!r} is not in hilboost")


class Shim(BaseEstimator):
    """Passes parameters under their own names, and forwards everything else."""

    _class: type
    _score: str
    _refused: dict[str, Any] = {}  # noqa: RUF012
    _names: dict[str, str] = {}  # noqa: RUF012
    _constant: dict[str, Any] = {}  # noqa: RUF012

    def _translated(self, n: int) -> dict[str, Any]:
        given = self.get_params(deep=False)
        for name, default in self._refused.items():
            if given.pop(name) is not default and getattr(self, name) != default:
                raise NotInHilboost(name, getattr(self, name))
        if given.get("early_stopping") == "auto":
            given["early_stopping"] = n > _ROWS_OF_EARLY_STOPPING
        if "scoring" in given:
            # None is the score of the estimator; without held-out rows, it has no effect.
            scoring = given.pop("scoring")
            if given["early_stopping"] and scoring != "loss":
                given["eval_metric"] = self._score if scoring is None else scoring
        named = {self._names.get(name, name): value for name, value in given.items()}
        return {**self._constant, **named}

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **others: Any) -> Any:
        """Fit hilboost's estimator."""
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        parameters = self._translated(n)
        if "model_" in self.__dict__ and parameters.get("warm_start"):
            self.model_.set_params(**parameters)
        else:
            self.model_ = self._class(**parameters)
        self.model_.fit(X, y, sample_weight, **others)
        self.n_features_in_ = self.model_.n_features_in_
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return "model_" in self.__dict__

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "model_" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return getattr(self.model_, name)

    def predict(self, X: Any) -> Any:
        """Predict."""
        return self._fitted().predict(X)

    def _fitted(self) -> Any:
        return self.model_ if "model_" in self.__dict__ else self._class()

    def staged_predict(self, X: Any) -> Any:
        """Predict after each stage."""
        return self._fitted().staged_predict(X)

    @property
    def is_categorical_(self) -> Any:
        """Mask of the category columns, or ``None`` without any."""
        schema = self.model_.fitted_.schema
        mask = np.isin(np.arange(schema.n_columns), schema.categories)
        return mask if mask.any() else None

    @property
    def estimators_(self) -> Any:
        """One entry for each tree, (n_stages, n_trees)."""
        stages = self.model_.model_.stages
        return np.array([[term.model for term in stage.terms] for stage in stages], dtype=object)

    @property
    def n_iter_(self) -> int:
        """Number of stages."""
        return int(self.model_.n_estimators_)

    @property
    def train_score_(self) -> Any:
        """Negative training loss."""
        return -np.asarray(self.model_.history_.train)

    @property
    def validation_score_(self) -> Any:
        """Negative validation loss."""
        found = self.model_.history_.validation
        return np.empty(0) if found is None else -np.asarray(found)


def parameters_of(peer: type) -> Callable[..., None]:
    """An ``__init__`` with the parameters and defaults of a class of scikit-learn."""
    signature = inspect.signature(peer.__init__)

    def __init__(self, *arguments, **named):
        bound = signature.bind(self, *arguments, **named)
        bound.apply_defaults()
        for name in self._get_param_names():
            setattr(self, name, bound.arguments[name])

    __init__.__signature__ = signature
    return __init__


class OfClasses(ClassifierMixin, Shim):
    """Classifiers."""

    _class = BoostingClassifier
    _score = "accuracy"

    def predict_proba(self, X: Any) -> Any:
        """Predict probabilities."""
        return self._fitted().predict_proba(X)

    def staged_predict_proba(self, X: Any) -> Any:
        """Predict probabilities after each stage."""
        return self._fitted().staged_predict_proba(X)

    def decision_function(self, X: Any) -> Any:
        """Predict scores."""
        return self._fitted().decision_function(X)


class OfNumbers(RegressorMixin, Shim):
    """Regressors."""

    _class = BoostingRegressor
    _score = "r2"


_HIST = {"learner": "tree", "subsample": 1.0, "cv_folds": 1, "target_encoding": False}
_GRADIENT = {
    "learner": "tree",
    "cv_folds": 1,
    "early_stopping": False,
    "target_encoding": False,
    "max_leaf_nodes": None,
}
_GRADIENT_NAMES = {"min_impurity_decrease": "min_gain"}
_GRADIENT_REFUSED = {
    "criterion": "deprecated",
    "min_samples_split": 2,
    "min_weight_fraction_leaf": 0.0,
    "init": None,
    "ccp_alpha": 0.0,
}


class HistGradientBoostingRegressor(OfNumbers):
    """hilboost's regressor."""

    _names = {"max_iter": "n_estimators"}  # noqa: RUF012
    _constant = _HIST

    __init__ = parameters_of(ensemble.HistGradientBoostingRegressor)

    def _translated(self, n: int) -> dict[str, Any]:
        found = super()._translated(n)
        if found["quantile"] is None:
            found["quantile"] = 0.5
        return found


class HistGradientBoostingClassifier(OfClasses):
    """hilboost's classifier."""

    _names = {"max_iter": "n_estimators"}  # noqa: RUF012
    _constant = _HIST

    __init__ = parameters_of(ensemble.HistGradientBoostingClassifier)


class OfLosses:
    """Training scores that are losses, one for each stage."""

    model_: Any

    @property
    def train_score_(self) -> Any:
        """Training loss after each stage."""
        return np.asarray(self.model_.history_.train)[1:]


class GradientBoostingRegressor(OfLosses, OfNumbers):
    """hilboost's regressor."""

    _names = _GRADIENT_NAMES
    _refused = _GRADIENT_REFUSED
    _constant = _GRADIENT

    __init__ = parameters_of(ensemble.GradientBoostingRegressor)

    def _translated(self, n: int) -> dict[str, Any]:
        return _of_gradient(super()._translated(n))


class GradientBoostingClassifier(OfLosses, OfClasses):
    """hilboost's classifier."""

    _names = _GRADIENT_NAMES
    _refused = _GRADIENT_REFUSED
    _constant = _GRADIENT

    __init__ = parameters_of(ensemble.GradientBoostingClassifier)

    def _translated(self, n: int) -> dict[str, Any]:
        return _of_gradient(super()._translated(n))


def _of_gradient(found: dict[str, Any]) -> dict[str, Any]:
    """Early stopping is on with ``n_iter_no_change``; all columns by default."""
    alpha = found.pop("alpha", None)
    if found["loss"] == "quantile":
        found["quantile"] = alpha
    if found["loss"] == "huber":
        found["loss"] = Huber(alpha=alpha)
    found["early_stopping"] = found["n_iter_no_change"] is not None
    if not found["early_stopping"]:
        found["n_iter_no_change"] = "auto"
    if found["max_features"] is None:
        found["max_features"] = 1.0
    return found
