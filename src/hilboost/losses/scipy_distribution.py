"""Continuous distributions of ``scipy.stats`` with a location and a scale of each row."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Self, cast

import numpy as np
from scipy import stats

from hilboost.core.distribution import unit_nodes
from hilboost.core.dtypes import Floats
from hilboost.core.errors import IncompatibleParts, InvalidParameter
from hilboost.losses.distribution_loss import DistributionLoss, Parameters

_STEP = 1e-5  # of differences
_OWN = "or derive a class from hilboost.losses.DistributionLoss whose scipy returns it"


class ScipyDistribution(DistributionLoss):
    """Negative log density of a distribution of ``scipy.stats`` with given shapes.

    Parameters
    ----------
    name : str
        Name in ``scipy.stats``.
    shapes : tuple of float, default=()
        Shape parameters, in the order of SciPy.

    Raises
    ------
    InvalidParameter
        SciPy has no such distribution, or its shapes are not possible.
    IncompatibleParts
        Its derivatives, mean or information cannot be had.

    Notes
    -----
    A distribution of all numbers has a location and a scale, one of positive numbers a scale.  The
    derivatives of the log density are differences, and the information is integrated once.
    """

    in_files = True
    divides_rows = True
    evaluates_both = True

    def __init__(self, name: str, shapes: tuple[float, ...] = ()) -> None:
        self.name, self.shapes = name, tuple(map(float, shapes))
        _standard(self.name, self.shapes)

    @classmethod
    def of(cls, given: Any) -> Self:  # one of ``SCIPY``
        """Create the loss of a distribution, which is frozen if it has shapes."""
        family = cast(Any, getattr(given, "dist", given))
        frozen = family is not given
        if isinstance(family, stats.rv_discrete):
            raise InvalidParameter(
                f"loss=scipy.stats.{family.name} is discrete; pass a continuous distribution, "
                f"{_OWN}."
            )
        if not isinstance(vars(stats).get(family.name), type(family)):
            raise InvalidParameter(
                f"loss={family.name!r} is not in scipy.stats; pass one that is, {_OWN}."
            )
        names = [name.strip() for name in (family.shapes or "").split(",") if name.strip()]
        values = dict(zip([*names, "loc", "scale"], given.args, strict=False)) if frozen else {}
        values |= given.kwds if frozen else {}
        missing = [name for name in names if name not in values]
        if missing:
            example = ", ".join(f"{name}=..." for name in names)
            raise InvalidParameter(
                f"loss=scipy.stats.{family.name} requires its shapes; pass "
                f"scipy.stats.{family.name}({example})."
            )
        if any(np.ndim(value) for value in values.values()):
            raise InvalidParameter(
                f"loss=scipy.stats.{family.name} has arrays as parameters; pass numbers."
            )
        if values.get("loc", 0) != 0 or values.get("scale", 1) != 1:
            raise InvalidParameter(
                f"loss=scipy.stats.{family.name} has a given loc or scale, but both are learned; "
                "pass shapes alone."
            )
        return cls(family.name, tuple(values[name] for name in names))

    @property
    def _standard(self) -> _Standard:
        return _standard(self.name, self.shapes)

    @property
    def _name(self) -> str:
        return f"scipy.stats.{self.name}"

    @property
    def support(self) -> str:  # type: ignore[override]
        """Positive numbers, or all."""
        return "positive" if self._standard.positive else "numbers"

    @property
    def parameters(self) -> dict[str, str]:  # type: ignore[override]
        """Location and scale, or the scale of a distribution of positive numbers."""
        if self._standard.positive:
            return {"scale": "level"}
        return {"location": "location", "scale": "scale"}

    def _z(self, y: Floats, p: Parameters) -> Floats:
        return (y - p[0]) / p[1] if len(p) > 1 else y / p[0]

    def _in_units(self, values: Floats | float, p: Parameters) -> Floats:
        return p[0] + p[1] * values if len(p) > 1 else p[0] * values

    def scipy(self, p: Parameters) -> Any:
        """Distribution of SciPy."""
        location = {"loc": p[0]} if len(p) > 1 else {}
        return self._standard.frozen.dist(*self.shapes, scale=p[-1], **location)

    def log_density(self, y: Floats, p: Parameters) -> Floats:
        """Logarithm of the density."""
        return self._standard.log_density(self._z(y, p)) - np.log(p[-1])

    def score(self, y: Floats, p: Parameters) -> tuple[Floats, ...]:
        """Derivatives by the location and the logarithm of the scale."""
        slope, by_logarithm = self._standard.slopes(self._z(y, p))
        return (-slope / p[-1], -1 - by_logarithm)[-len(p) :]

    def information(self, p: Parameters) -> tuple[Floats, ...]:
        """Its diagonal, from integrals over the standard distribution."""
        of_location, of_scale = self._standard.information
        return (of_location / p[-1] ** 2, np.full_like(p[-1], of_scale))[-len(p) :]

    def mean(self, p: Parameters) -> Floats:
        """Mean."""
        return self._in_units(self._standard.mean, p)

    def std(self, p: Parameters) -> Floats:
        """Standard deviation, which may be infinite."""
        return self._standard.std * p[-1]

    def cdf(self, y: Floats, p: Parameters) -> Floats:
        """Probability of at most ``y``."""
        return np.asarray(self._standard.frozen.cdf(self._z(y, p)))

    def quantile(self, levels: Floats, p: Parameters) -> Floats:
        """Quantiles of the levels."""
        return self._in_units(self._standard.frozen.ppf(levels), p)

    def log_tail(self, y: Floats, p: Parameters, upper: bool) -> Floats:
        """Logarithm of the probability of more than ``y``, or of at most ``y``."""
        frozen, z = self._standard.frozen, self._z(y, p)
        return np.asarray(frozen.logsf(z) if upper else frozen.logcdf(z))


@dataclass(frozen=True)
class _Standard:
    """A distribution with the location 0 and the scale 1, its moments and information.

    Beyond ``ends``, numbers, or logarithms of positive ones, the log density is a straight line.
    """

    frozen: Any
    positive: bool
    ends: tuple[float, float]
    mean: float
    std: float
    information: tuple[float, float] = (np.nan, np.nan)

    def _log_density(self, u: Floats) -> Floats:
        """Log density at numbers or logarithms within the ends."""
        return np.asarray(self.frozen.logpdf(np.exp(u) if self.positive else u))

    def _inside(self, z: Floats) -> tuple[Floats, Floats]:
        """Numbers or logarithms of them, and the nearest ones within the ends."""
        with np.errstate(divide="ignore", invalid="ignore"):
            u = np.log(z) if self.positive else np.asarray(z)
        return u, np.clip(u, *self.ends)

    def _slope(self, inside: Floats) -> Floats:
        step = _STEP * np.maximum(1.0, np.abs(inside))
        above, below = self._log_density(inside + step), self._log_density(inside - step)
        return (above - below) / (2 * step)

    def log_density(self, z: Floats) -> Floats:
        """Log density."""
        u, inside = self._inside(z)
        found, far = self._log_density(inside), u != inside
        if far.any():
            found = np.where(far, found + self._slope(inside) * (u - inside), found)
        return np.maximum(found, -1e300)

    def slopes(self, z: Floats) -> tuple[Floats, Floats]:
        """Derivatives of the log density by ``z``, and by ``log z``."""
        slope = self._slope(self._inside(z)[1])
        return (slope / z, slope) if self.positive else (slope, slope * z)


@cache
def _standard(name: str, shapes: tuple[float, ...]) -> _Standard:
    """Check a distribution, and integrate its information."""
    family = getattr(stats, name, None)
    if not isinstance(family, stats.rv_continuous) or family.numargs != len(shapes):
        raise InvalidParameter(
            f"scipy.stats has no continuous distribution {name!r} with {len(shapes)} shapes."
        )
    frozen, listed = family(*shapes), ", ".join(map("{:g}".format, shapes))
    low, high = frozen.support()
    if np.isnan(low):
        raise InvalidParameter(f"the shapes of scipy.stats.{name}({listed}) are not possible.")
    if high != np.inf or low not in (-np.inf, 0):
        raise IncompatibleParts(
            f"loss=scipy.stats.{name} has targets from {low:g} to {high:g}, but must have all "
            f"numbers or all positive ones; pass another distribution, {_OWN}."
        )
    try:
        found = _integrated(frozen, bool(low == 0))
    except (ValueError, RuntimeError):  # SciPy finds no quantiles
        found = None
    if found is None or not np.isfinite([found.mean, *found.information[int(low == 0) :]]).all():
        raise IncompatibleParts(
            f"loss=scipy.stats.{name}({listed}) has no finite mean, or no finite information; "
            "pass another distribution."
        )
    return found


def _integrated(frozen: Any, positive: bool) -> _Standard:
    """Compute ends, moments and information."""
    with np.errstate(all="ignore"):
        mean, std = float(frozen.mean()), float(frozen.std())
        found = _Standard(frozen, positive, _ends(frozen, positive), mean, std)
        levels, weights = unit_nodes()
        slope, by_logarithm = found.slopes(frozen.ppf(levels))
        information = float(slope**2 @ weights), float((1 + by_logarithm) ** 2 @ weights)
    return replace(found, information=information)


def _ends(frozen: Any, positive: bool) -> tuple[float, float]:
    """The farthest numbers, or logarithms, at which the log density and its slope are finite."""
    middle = float(np.log(frozen.median()) if positive else frozen.median())
    found = []
    for sign in (-1, 1):
        end = middle
        for distance in 2.0 ** np.arange(-3, 9 if positive else 40):
            u = middle + sign * distance
            nearby = u + _STEP * max(1.0, abs(u)) * np.array([-1, 0, 1])
            density = frozen.logpdf(np.exp(nearby) if positive else nearby)
            if not np.isfinite(density).all() or density.min() < -1e6:
                break
            end = u
        found.append(float(end))
    return found[0], found[1]
