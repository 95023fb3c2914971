"""Losses specified by the parameters of estimators."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from inspect import isfunction, signature
from typing import Any

import numpy as np

from hilboost import losses
from hilboost.core.errors import InvalidParameter, InvalidType, shown, unknown_name
from hilboost.core.loss import Loss
from hilboost.core.plain_values import is_class
from hilboost.estimators.peer_names import peers, same_loss
from hilboost.losses.registry import (
    SCIPY,
    classification_losses,
    distance_losses,
    make_classification_loss,
    ranking_losses,
    regression_loss,
    regression_losses,
    survival_losses,
)

_OF_SCIKIT_LEARN: dict[str, Callable[[Any], Loss]] = {
    "PinballLoss": lambda loss: losses.Quantile(float(loss.closs.quantile)),
    "HuberLoss": lambda loss: losses.Huber(alpha=float(loss.quantile)),
    "HalfTweedieLoss": lambda loss: losses.Tweedie(float(loss.closs.power)),
}


def _of_scikit_learn(loss: Any) -> Any:  # other objects are returned unchanged
    """Return the name or the loss that equals an object of ``sklearn._loss``."""
    kind = type(loss)
    if not kind.__module__.startswith("sklearn._loss"):
        return loss
    make = _OF_SCIKIT_LEARN.get(kind.__name__)
    return peers("losses").get(kind.__name__.lower(), loss) if make is None else make(loss)


def number_loss(loss: Any, parameters: Mapping[str, Any]) -> Loss:
    """Create the loss of a regressor from its parameters."""
    loss = _of_scikit_learn(loss)
    if isinstance(loss, SCIPY):
        from hilboost.losses.scipy_distribution import ScipyDistribution

        return ScipyDistribution.of(loss)
    if callable(loss) and not isinstance(loss, type | Loss):
        from hilboost.losses.from_function import FunctionLoss

        return FunctionLoss(loss)

    def named(name: str) -> Any:
        found = regression_loss(name)
        if found is None:
            _refuse(name)
        _check_quantile(name, parameters.get("quantile", 0.5))
        return found

    return _made(loss, named, lambda cls: cls.for_regressor(parameters))


def loss_among(known: Mapping[str, type[Loss]], loss: Any, parameters: Mapping[str, Any]) -> Loss:
    """Create the loss of a ranker or a survival model from its parameters."""
    return _made(
        loss, lambda name: known[_known(name, known)], lambda cls: cls.for_regressor(parameters)
    )


def class_loss(loss: Any, n_classes: int) -> Loss:
    """Create the loss of a classifier; with one class, every loss has the same constant."""
    if n_classes == 1:
        from hilboost.losses.log_loss import OneClass

        return OneClass()
    loss = _of_scikit_learn(loss)

    def named(name: str) -> Loss:
        return make_classification_loss(_known(name, classification_losses()), n_classes)

    return _made(loss, named, lambda cls: cls.for_classifier(n_classes))


def distance_loss(loss: Any) -> Loss:
    """Create the loss of points: squared error itself, or another loss of their distance."""

    def named(name: str) -> type[Loss]:
        found = regression_loss(name)
        if found is None:
            raise unknown_name("loss", name, distance_losses(), same_loss(name, distance_losses()))
        return found

    own = _made(loss, named, lambda cls: cls.for_regressor({}))
    if not own.symmetric:
        raise InvalidParameter(_why_not_of_distance(own))
    if own.quadratic:
        return own
    from hilboost.losses.radial import RadialLoss

    return RadialLoss(own, outside=True)


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


def _check_quantile(name: str, given: object) -> None:
    """Reject levels that are not numbers, and those that the loss would ignore."""
    try:
        levels = np.atleast_1d(np.asarray(given))
    except ValueError:  # rows of different lengths
        levels = np.array([None])
    if levels.dtype.kind not in "iuf":
        raise InvalidParameter(
            f"quantile must be a number between 0 and 1, or a list of them; got {shown(given)}."
        )
    if name != "quantile" and levels.tolist() != [0.5]:
        raise InvalidParameter(
            f"quantile={shown(given)} requires loss='quantile'; loss={name!r} has no levels."
        )


def _refuse(name: str) -> None:
    """Reject a name that is not one of a loss of numbers."""
    if same_loss(name, classification_losses()) and not same_loss(name, regression_losses()):
        raise InvalidParameter(
            f"loss={name!r} is a loss of classes; use a classifier, such as BoostingClassifier."
        )
    _known(name, regression_losses())


def _known(name: str, names: Collection[str]) -> str:
    """Reject unknown names."""
    if name not in names:
        for others, estimator in (
            (ranking_losses(), "BoostingRanker"),
            (survival_losses(), "BoostingSurvival"),
        ):
            if others.keys() != set(names) and same_loss(name, others):
                raise InvalidParameter(f"loss={name!r} is a loss of {estimator}; use it instead.")
        own, colon, _ = name.partition(":")
        made = regression_losses().get(own.lower()) if colon else None
        arguments = ", ".join(f"{one}=..." for one in signature(made).parameters) if made else ""
        if made and arguments:
            raise InvalidParameter(
                f"loss={name!r} is not known; pass parameters of a loss to its class, as in "
                f"loss=hilboost.losses.{made.__name__}({arguments})."
            )
        raise unknown_name("loss", name, names, same_loss(name, names))
    return name


def _made(loss: object, named: Callable[[str], Any], make: Callable[[type[Loss]], Loss]) -> Loss:
    """Create the loss from its name or class, or return the object passed by the user."""
    if isinstance(loss, str):
        loss = named(loss)
    if is_class(loss, Loss):
        try:
            return make(loss)
        except TypeError as error:
            raise InvalidType(
                f"loss={loss.__name__} cannot be created ({error}); pass an object, or a class "
                "that needs no arguments."
            ) from error
    if not isinstance(loss, Loss):
        but = ", and only regressors take functions" if isfunction(loss) else ""
        raise InvalidType(
            "loss must be a name, a Loss object or a subclass of hilboost.Loss; got "
            f"{shown(loss)}{but}."
        )
    return loss
