"""Checks of parameters that can be a name or an object."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from numpy.typing import NDArray
from sklearn.base import is_classifier

from hilboost.core.errors import InvalidData, InvalidParameter, InvalidType, refuse_class, shown


def check_supported_values(
    parameters: Mapping[str, Any], supported: Mapping[str, tuple[Any, ...]], by: str
) -> None:
    """Reject values of parameters that ``by`` does not support; the first supported one named."""
    for name, values in supported.items():
        value = parameters.get(name, values[0])
        if value not in values:
            raise InvalidParameter(
                f"{name}={shown(value)} is not supported by {by}; set {name}={values[0]!r}."
            )


def check_regressor(learner: object, names: Iterable[str]) -> None:
    """Check that a learner is a scikit-learn regressor; ``names`` lists other learners."""
    refuse_class("learner", learner)
    if not all(hasattr(learner, method) for method in ("fit", "predict")):
        raise InvalidType(
            f"learner must be {', '.join(map(repr, names))}, a Learner, a scikit-learn regressor, "
            f"or a list of these; got {shown(learner)}."
        )
    if hasattr(learner, "__sklearn_tags__") and is_classifier(learner):
        raise InvalidType(
            f"learner={type(learner).__name__}() is a classifier, but learners are fitted to the "
            "gradients, which are numbers; use a regressor."
        )


def check_one_per_row(values: NDArray[Any], n: int, must: str, advice: str = "") -> None:
    """Check the shape of values (n,); ``must`` begins the message."""
    if values.shape != (n,):
        raise InvalidData(
            f"{must} for each of the {n} rows of X; got an array of shape {values.shape}.{advice}"
        )
