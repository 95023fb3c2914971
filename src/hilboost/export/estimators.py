"""Which estimators the exports take."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from hilboost.core.errors import InvalidType
from hilboost.model.fitted import FittedModel


def fitted_record(model: Any, purpose: str, kinds: str, accepted: bool) -> FittedModel:
    """The record of a fitted estimator.

    Parameters
    ----------
    model : estimator
    purpose : str
        The name of the export, for messages.
    kinds : str
        Names of the estimators that it takes, for messages.
    accepted : bool
        Whether this estimator is one of them.

    Raises
    ------
    InvalidType
        It is no estimator of hilboost.
    sklearn.exceptions.NotFittedError
        It is not fitted.
    """
    if not accepted:
        raise InvalidType(f"{purpose} takes {kinds}; got {type(model).__name__}.")
    check_is_fitted(model)
    fitted: FittedModel = model.fitted_
    return fitted
