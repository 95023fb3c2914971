"""Losses specified by the parameters of estimators."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from hilboost.core.errors import InvalidParameter, InvalidType, unknown_name
from hilboost.core.loss import Loss
from hilboost.losses.radial import RadialLoss
from hilboost.losses.registry import (
    classification_losses,
    distance_losses,
    make_classification_loss,
    make_regression_loss,
    regression_losses,
)


def number_loss(loss: Any, parameters: Mapping[str, Any]) -> Loss:
    """Create the loss of a regressor from its parameters.

    Raises
    ------
    InvalidParameter, InvalidType
    """
    return _named_or_own(
        loss, regression_losses(), lambda name: make_regression_loss(name, parameters)
    )


def class_loss(loss: Any, n_classes: int) -> Loss:
    """Create the loss of a classifier.

    Raises
    ------
    InvalidParameter, InvalidType
    """
    return _named_or_own(
        loss, classification_losses(), lambda name: make_classification_loss(name, n_classes)
    )


def distance_loss(loss: Any) -> Loss:
    """Create the loss of points: squared error itself, or another loss of their distance.

    Raises
    ------
    InvalidParameter, InvalidType
    """
    if isinstance(loss, str) and loss in regression_losses():
        loss = regression_losses()[loss]
    own = _named_or_own(loss, distance_losses(), lambda name: make_regression_loss(name, {}))
    if not own.symmetric:
        raise InvalidParameter(_why_not_of_distance(own))
    return own if own.quadratic else RadialLoss(own, outside=True)


def _why_not_of_distance(loss: Loss) -> str:
    if loss.regressor_name == "quantile":
        return (
            "loss='quantile' has no meaning here: a distance is never negative, so that every "
            "level only multiplies the absolute error; set loss='absolute_error'."
        )
    own = "" if loss.regressor_name else " If it does, declare symmetric = True in its class."
    return (
        f"loss={loss.regressor_name or type(loss).__name__!r} must depend on the distance "
        f"|φ(y) - F(x)| alone and rise with it; set loss to one of {', '.join(distance_losses())}."
        f"{own}"
    )


def _named_or_own(loss: Any, names: Collection[str], make: Callable[[str], Loss]) -> Loss:
    """Create a built-in loss from its name, or use an object or a class passed by the user."""
    if isinstance(loss, str):
        if loss not in names:
            raise unknown_name("loss", loss, names)
        return make(loss)
    if isinstance(loss, type) and issubclass(loss, Loss):
        loss = loss()
    if not isinstance(loss, Loss):
        raise InvalidType(
            f"loss must be a name, a Loss object or a subclass of hilboost.Loss; got {loss!r}."
        )
    return loss
