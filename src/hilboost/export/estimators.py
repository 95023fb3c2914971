"""Validation of the estimators that exports support."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from hilboost.core.errors import InvalidType
from hilboost.model.fitted import FittedModel


def fitted_record(model: Any, purpose: str, kinds: str, accepted: bool) -> FittedModel:
    """Return the record of a fitted estimator.

    ``purpose``: the name of the export, for messages. ``kinds``: names of the supported estimators,
    for messages. ``accepted``: whether this estimator is supported.
    """
    if not accepted:
        raise InvalidType(f"{purpose} supports only {kinds}; got {type(model).__name__}.")
    check_is_fitted(model)
    fitted: FittedModel = model.fitted_
    return fitted
