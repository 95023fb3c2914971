"""Kinds of the parameters of distributions, and the units and bounds of their fits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.special import expit, logit

from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData, InvalidParameter, shown
from hilboost.core.gradients import Gradients
from hilboost.core.loss import Loss
from hilboost.core.target import Target
from hilboost.distributions.bounds import SUPPORTS
from hilboost.losses.log_link import Poisson
from hilboost.losses.squared_error import SquaredError
from hilboost.reductions.quantiles import quantile
from hilboost.reductions.rows import union
from hilboost.reductions.sums import count_rows, extremes, mean

FARTHEST = 150.0
"""Bound of logarithms, so that products of parameters stay finite."""
_FARTHEST_SIZE = 60 * np.log(10)  # logarithm of the unit of a fit, beside which there is room
LARGEST_LOGIT = 30.0
_LEAST_SCALE = 1e-3  # of a row, as a fraction of the spread of the target
_SMALLEST_INFORMATION = 1e-12
_ROUNDING = 0.29  # standard deviation of a rounding error, in units of the last digit


@dataclass(frozen=True)
class Kind:
    """Link of a parameter, and how it depends on the unit of the target."""

    link: Literal["identity", "log", "logit"]
    has_unit: bool = False  # whether it is multiplied if the target is
    least: float = 0.0  # what a parameter with a logarithm exceeds
    # range of ``raw`` in a fit, with targets in units of their spread
    low: float = -np.inf
    high: float = np.inf

    def value(self, raw: Floats) -> Floats:
        """Convert ``raw`` (n,) to the parameter."""
        if self.link == "identity":
            return raw
        if self.link == "log":
            return self.least + np.exp(np.clip(raw, -FARTHEST, FARTHEST))
        return expit(np.clip(raw, -LARGEST_LOGIT, LARGEST_LOGIT))

    def raw(self, value: Floats) -> Floats:
        """Convert the parameter to ``raw``."""
        if self.link == "identity":
            return value
        if self.link == "log":
            return np.log(np.maximum(value - self.least, np.finfo(np.float64).tiny))
        return logit(value)


KINDS = {
    "location": Kind("identity", has_unit=True),
    "scale": Kind("log", has_unit=True),
    "level": Kind("log", has_unit=True),
    "rate": Kind("log"),
    "positive": Kind("log", low=np.log(1e-3), high=np.log(1e6)),
    "above_one": Kind("log", least=1.0, low=np.log(1e-2), high=np.log(1e3)),
    "probability": Kind("logit", low=-12.0, high=12.0),
    "number": Kind("identity", low=-10.0, high=10.0),
}


def least_scale(values: Floats, target: Target) -> float:
    """Return the smallest scale of rows, for values (n,) in units of their spread."""
    own = np.unique(values)
    if count_rows(_ROUNDING * np.diff(own) <= _LEAST_SCALE, target):
        return _LEAST_SCALE
    steps = np.diff(union(own, target))
    rounding = _ROUNDING * float(steps.min()) if len(steps) else 0.0
    return max(_LEAST_SCALE, min(rounding, 1.0))


def damping(steps: Floats) -> Floats:
    """Factors of hessians that shorten steps of logarithms, ``s``, to ``log(1 + s)``."""
    size = np.abs(steps)
    tiny = size <= 1e-6
    size[tiny] = 1e-6
    factor = size / np.log1p(size)
    factor[tiny] = 1.0
    return np.asarray(factor)


def damped(
    scores: Floats,  # (n, r): overwritten
    information: Floats,  # (n, r): overwritten
    raw: Floats,  # (n, r)
    kinds: Sequence[Kind],
    bounds: tuple[Floats, Floats] | None,
) -> Gradients:
    """Return scores that do not point out of the bounds, with more information for short steps."""
    np.maximum(information, _SMALLEST_INFORMATION, out=information)
    for k, kind in enumerate(kinds):
        if kind.link != "identity":
            information[:, k] *= damping(scores[:, k] / information[:, k])
    if bounds is not None:
        low, high = bounds
        scores[np.where(scores < 0, raw <= low, raw >= high)] = 0.0
    return Gradients(scores, information)


def center_and_spread(target: Target) -> tuple[float, float]:
    """Median and mean absolute deviation, which is positive."""
    y = target.y[:, 0]
    center = quantile(y, 0.5, target)
    spread = float(mean(target.with_y(np.abs(target.y - center)))[0])
    return center, spread if spread > 0 else abs(center) or 1.0


def size_of(target: Target, support: str) -> float:
    """Return the unit of a fit, and refuse targets whose scales are not between the bounds."""
    size = _size_of(target, support)
    if not abs(np.log(size)) <= _FARTHEST_SIZE:
        raise InvalidData(
            f"y has the size {size:.3g}, but predicted distributions require sizes from 1e-60 to "
            "1e+60; divide y by a constant."
        )
    return size


def _size_of(target: Target, support: str) -> float:
    """Half of the range of the middle nine tenths; never zero."""
    y = target.y[:, 0]
    center = quantile(y, 0.5, target)
    if support == "positive":
        return center
    spread = 0.5 * (quantile(y, 0.95, target) - quantile(y, 0.05, target))
    if spread <= 1e-12 * abs(center):
        low, high = extremes(y, target)
        spread = high - low
    return float(spread) if spread > 1e-12 * abs(center) else abs(center) or 1.0


LOCATIONS: Mapping[str, tuple[Loss, Callable[[Floats], Floats]]] = {
    "location": (SquaredError(), np.positive),
    "level": (SquaredError(), np.log),
    "rate": (Poisson(), np.positive),
    "probability": (SquaredError(), logit),
}
"""Loss and function of the target by which a parameter of this kind is fitted first."""


def check_declared(loss: Any) -> None:
    """Reject a class of the user whose declarations and formulas contradict each other."""
    if loss.regressor_name is not None:
        return
    name, declared = type(loss).__name__, loss.parameters
    try:
        kinds = list(dict(declared).values())
    except (TypeError, ValueError):
        kinds = []
    if not kinds or not set(kinds) <= set(KINDS):
        raise InvalidParameter(
            f"{name} declares parameters = {shown(declared)}, but it must map names to kinds, such "
            f"as {{'location': 'location'}}; kinds are {', '.join(KINDS)}."
        )
    if loss.support not in SUPPORTS:
        raise InvalidParameter(
            f"{name} declares support = {shown(loss.support)}; valid values: {', '.join(SUPPORTS)}."
        )
    p = tuple(KINDS[kind].value(np.array([0.3 + 0.1 * k])) for k, kind in enumerate(kinds))
    with np.errstate(all="ignore"):
        y = loss.quantile(np.array([0.3]), p)
        density, scores = loss.log_density(y, p), loss.score(y, p)
        information = loss.information(p)
    at = ", ".join(f"{key}={one[0]:.3g}" for key, one in zip(declared, p, strict=True))
    for method, found in (("score", scores), ("information", information)):
        if len(found) != len(p):
            raise InvalidParameter(
                f"{name}.{method} must return {len(p)} arrays, one for each parameter; got "
                f"{len(found)}."
            )
    if np.isnan(density).any():
        raise InvalidParameter(
            f"{name} has no density at {at}; correct scipy or log_density for these parameters."
        )
    for key, one in zip(declared, information, strict=True):
        if not np.any(one):
            raise InvalidParameter(
                f"{name} has a density that does not depend on {key!r} at {at}; its scipy must "
                "return a frozen distribution with this parameter."
            )
