"""Built-in losses by name.  Each class declares its own names."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Any

from scipy import stats
from scipy.stats.distributions import rv_frozen

from hilboost.core.discovery import by_name, classes_in
from hilboost.core.errors import InvalidParameter
from hilboost.core.loss import Loss
from hilboost.core.plain_values import is_class

SCIPY = (stats.rv_continuous, stats.rv_discrete, rv_frozen)
"""Types of the distributions of SciPy, of which ``ScipyDistribution`` makes losses."""


@cache
def loss_classes() -> Mapping[str, type[Loss]]:  # classes that may appear in model files
    """Losses that declare their own name, by class name."""
    named = (
        (loss.__name__, loss)
        for loss in classes_in("hilboost.losses", Loss)  # type: ignore[type-abstract]
        if loss.regressor_name or loss.classifier_name or loss.ranker_name or loss.survival_name
    )
    return by_name(named, "losses are called")


@cache
def regression_losses() -> Mapping[str, type[Loss]]:
    """Losses that regressors accept by name."""
    return _by("regressor_name")


@cache
def regression_loss(name: str) -> type[Loss] | None:
    """Find a loss by its name in the module of this name, which needs no others, or in all."""
    with suppress(ModuleNotFoundError):
        for value in vars(import_module(f"hilboost.losses.{name}")).values():
            if getattr(value, "regressor_name", None) == name:
                found: type[Loss] = value
                return found
    return regression_losses().get(name)


@cache
def ranking_losses() -> Mapping[str, type[Loss]]:
    """Losses that rankers accept by name."""
    return _by("ranker_name")


@cache
def survival_losses() -> Mapping[str, type[Loss]]:
    """Losses that survival models accept by name."""
    return _by("survival_name")


def _by(declaration: str) -> Mapping[str, type[Loss]]:
    """Losses by the name that they declare."""
    named = ((getattr(loss, declaration), loss) for loss in loss_classes().values())
    return by_name(named, f"losses have the {declaration}")


@cache
def distance_losses() -> Mapping[str, type[Loss]]:
    """Losses by name that can be taken of the distance between points."""
    return {name: loss for name, loss in regression_losses().items() if loss.symmetric}


@cache
def classification_losses() -> Mapping[str, tuple[type[Loss], ...]]:
    """Losses that classifiers accept by name; the class may depend on the number of labels."""
    found: dict[str, tuple[type[Loss], ...]] = {}
    for loss in loss_classes().values():
        name = loss.classifier_name
        if name is not None:
            found[name] = (*found.get(name, ()), loss)
    return MappingProxyType(found)


def make_classification_loss(name: str, n_classes: int) -> Loss:
    """Create the loss of a classifier by its name in :func:`classification_losses`."""
    ranges = []
    for loss in classification_losses()[name]:
        least, most = loss.n_classes_range
        if least <= n_classes and (most is None or n_classes <= most):
            return loss.for_classifier(n_classes)
        ranges.append("two" if (least, most) == (2, 2) else f"{least} to {most or 'many'}")
    raise InvalidParameter(
        f"loss={name!r} supports {' or '.join(ranges)} classes; y has {n_classes}. Use 'log_loss'."
    )


def gives_probabilities(loss: Any) -> bool:  # true where nothing else is declared
    """Whether classifiers with this loss predict probabilities rather than scores."""
    if isinstance(loss, str) and loss in classification_losses():
        loss = classification_losses()[loss][0]
    if is_class(loss, Loss) and loss.classifier_name is not None:
        loss = loss.for_classifier(loss.n_classes_range[0])
    link = loss.link if isinstance(loss, Loss) else None
    return link is None or link.gives_probabilities
