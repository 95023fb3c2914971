"""Validation of the estimators that exports support."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from hilboost.core.errors import InvalidType, refuse_class
from hilboost.model.fitted import FittedModel


def fitted_record(model: Any, purpose: str, kinds: str, accepted: bool) -> FittedModel:
    """Return the record of a fitted estimator."""
    refuse_class("model", model)
    if not accepted:
        remedy = remedy_of(
            model, "pass its last step, pipeline[-1], and apply the transformers before predicting"
        )
        raise InvalidType(f"{purpose} supports only {kinds}; got {type(model).__name__}{remedy}.")
    check_is_fitted(model)
    return model.fitted_


def remedy_of(model: Any, of_pipeline: str) -> str:
    """Return the end of a message about what is not an estimator of ours."""
    if not isinstance(model, BaseEstimator):
        return ": pass the fitted model first"
    from sklearn.model_selection._search import BaseSearchCV
    from sklearn.pipeline import Pipeline

    if isinstance(model, Pipeline):
        return f": {of_pipeline}"
    return ": pass its best_estimator_" if isinstance(model, BaseSearchCV) else ""
