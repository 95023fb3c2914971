"""Interface of losses that predict the parameters of a distribution."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np

from hilboost.core.distribution import crps_of_counts, crps_of_quantiles, unit_nodes
from hilboost.core.dtypes import Floats
from hilboost.core.errors import IncompatibleParts, InvalidData
from hilboost.core.gradients import Gradients
from hilboost.core.link import DistributionLink
from hilboost.core.loss import Loss
from hilboost.core.target import Target, TargetUnits
from hilboost.distributions.bounds import refuse_outside
from hilboost.distributions.parametric import ParametricDistribution
from hilboost.losses._columns import arrays_for
from hilboost.losses._maximum_likelihood import best_raw, unbounded
from hilboost.losses._parameter_kinds import (
    KINDS,
    LOCATIONS,
    Kind,
    center_and_spread,
    check_declared,
    damped,
    least_scale,
    size_of,
)
from hilboost.reductions.sums import mean

_STEP = 1e-5  # of differences

Parameters = tuple[Floats, ...]
"""Parameters of distributions, arrays that broadcast."""


class DistributionLoss(Loss):
    """Base class of losses that are negative log densities, with one output per parameter.

    A subclass declares :attr:`parameters` and :attr:`support`, and defines :meth:`scipy`, a
    distribution of ``scipy.stats`` with these parameters.  It may override any other method by a
    formula; :meth:`score` and :meth:`information` save the most time.  Arguments of the
    methods are ``y`` and the parameters in their order, as arrays that broadcast.
    With ``learner="auto"``, the first parameter is fitted first if :attr:`has_location`.

    Steps are Newton steps with the Fisher information in place of the hessian, damped where
    they change a logarithm by much.  A fit uses targets in units of their spread, so that the model
    does not depend on the unit of the target, and no scale becomes far smaller than the spread.
    """

    has_distribution = True

    parameters: ClassVar[Mapping[str, str]] = {}
    """Names and kinds of the parameters.

    ``"location"`` and ``"scale"`` have the unit of the target, and so has ``"level"``, a positive
    location such as a mean.  ``"rate"``, ``"positive"``, ``"above_one"``, ``"probability"`` and
    ``"number"`` do not depend on it.
    """

    support: ClassVar[Literal["numbers", "positive", "counts", "fractions"]] = "numbers"
    """Targets that are possible: numbers, positive ones, counts, or those between 0 and 1."""

    has_location: ClassVar[bool] = True
    """Whether the first parameter follows the mean, so that it may be fitted first.

    It then is a ``"location"``, ``"level"``, ``"rate"`` or ``"probability"``.
    """

    bounds: tuple[Floats, Floats] | None = None
    """Range of ``raw`` during a fit, (r,) each, beyond which steps do not go."""

    @property
    def kinds(self) -> list[Kind]:
        """Kinds of the parameters."""
        return [KINDS[kind] for kind in self.parameters.values()]

    # What a subclass defines or overrides

    def scipy(self, p: Parameters) -> Any:
        """Return a frozen distribution of ``scipy.stats``.

        Parameters
        ----------
        p : tuple of float64 arrays

        Returns
        -------
        scipy.stats.rv_frozen

        Raises
        ------
        IncompatibleParts
            The class does not define it, and no formula in place of it.
        """
        raise IncompatibleParts(
            f"{type(self).__name__} does not define scipy, which the default of a method needs; "
            "return a frozen distribution of scipy.stats."
        )

    def log_density(self, y: Floats, p: Parameters) -> Floats:
        """Logarithm of the density, or of the probability of a count.

        Parameters
        ----------
        y : float64 array
        p : tuple of float64 arrays

        Returns
        -------
        float64 array
        """
        frozen = self.scipy(p)
        found = frozen.logpmf(y) if self.support == "counts" else frozen.logpdf(y)
        return np.maximum(found, -1e300)

    def score(self, y: Floats, p: Parameters) -> tuple[Floats, ...]:
        """Derivative of the log density by ``raw``, for each parameter; by default, differences.

        For a positive parameter, it is the derivative by its logarithm, and for a probability the
        one by its logit.

        Parameters
        ----------
        y : float64 array
        p : tuple of float64 arrays

        Returns
        -------
        tuple of float64 arrays
        """
        found = []
        for k, kind in enumerate(self.kinds):
            raw = kind.raw(p[k])
            step = _STEP * np.maximum(1.0, np.abs(raw)) if kind.link == "identity" else _STEP
            above, below = (
                self.log_density(y, (*p[:k], kind.value(raw + one), *p[k + 1 :]))
                for one in (step, -step)
            )
            found.append((above - below) / (2 * step))
        return tuple(found)

    def information(self, p: Parameters) -> tuple[Floats, ...]:
        """Fisher information: the expected square of each score; by default, from quantiles.

        Parameters
        ----------
        p : tuple of float64 arrays

        Returns
        -------
        tuple of float64 arrays
        """
        levels, weights = unit_nodes()
        rows = tuple(np.asarray(one)[..., None] for one in p)
        y = self.quantile(levels, rows)
        return tuple(one**2 @ weights for one in self.score(y, rows))

    def guess(self, target: Target) -> tuple[float, ...]:
        """Parameters from which the search for the best constant starts.

        Parameters
        ----------
        target : Target

        Returns
        -------
        tuple of float
        """
        center, spread = center_and_spread(target)
        values = {
            "location": center,
            "scale": spread,
            "level": max(float(mean(target)[0]), np.finfo(np.float64).tiny),
            "rate": max(float(mean(target)[0]), 1e-6),
            "above_one": 5.0,
            "probability": 0.5,
            "number": 0.0,
        }
        return tuple(values.get(kind, 1.0) for kind in self.parameters.values())

    def mean(self, p: Parameters) -> Floats:
        """Mean.

        Parameters
        ----------
        p : tuple of float64 arrays

        Returns
        -------
        float64 array
        """
        return np.asarray(self.scipy(p).mean())

    def std(self, p: Parameters) -> Floats:
        """Standard deviation.

        Parameters
        ----------
        p : tuple of float64 arrays

        Returns
        -------
        float64 array
        """
        return np.asarray(self.scipy(p).std())

    def cdf(self, y: Floats, p: Parameters) -> Floats:
        """Probability of at most ``y``.

        Parameters
        ----------
        y : float64 array
        p : tuple of float64 arrays

        Returns
        -------
        float64 array
        """
        return np.asarray(self.scipy(p).cdf(y))

    def quantile(self, levels: Floats, p: Parameters) -> Floats:
        """Quantiles of the levels.

        Parameters
        ----------
        levels : float64 array
        p : tuple of float64 arrays

        Returns
        -------
        float64 array
        """
        return np.maximum(self.scipy(p).ppf(levels), self.link.smallest)  # SciPy has counts of -1

    def log_tail(self, y: Floats, p: Parameters, upper: bool) -> Floats:
        """Logarithm of the probability of more than ``y``, or of at most ``y``; of censored rows.

        Parameters
        ----------
        y : float64 array
        p : tuple of float64 arrays
        upper : bool

        Returns
        -------
        float64 array
        """
        try:
            frozen = self.scipy(p)
        except IncompatibleParts:  # a class with formulas instead
            below = self.cdf(y, p)
            return np.log1p(-below) if upper else np.log(below)
        return np.asarray(frozen.logsf(y) if upper else frozen.logcdf(y))

    def crps(self, y: Floats, p: Parameters) -> Floats:
        """Continuous ranked probability score of ``y`` (n, 1), (n, 1).

        No ``y`` is outside of the ends of the support.

        Parameters
        ----------
        y : float64 array
        p : tuple of float64 arrays

        Returns
        -------
        (n, 1) float64
        """

        def quantile(levels: Floats) -> Floats:
            return self.quantile(levels, p)

        if self.support == "counts":
            return crps_of_counts(y, lambda k: self.cdf(k, p), quantile)[:, None]
        return crps_of_quantiles(y, self.cdf(y, p), quantile)[:, None]

    # The loss

    @property
    def link(self) -> DistributionLink:
        """The parameters; ``inverse_link`` gives the mean."""
        least = -np.inf if self.support == "numbers" else 0.0
        kinds = tuple((kind.link, kind.least) for kind in self.kinds)
        return DistributionLink(tuple(self.parameters), kinds, least)

    def values_of(self, raw: Floats) -> tuple[Floats, ...]:
        """Convert ``raw`` (n, r) to parameters, (n,) each.

        Parameters
        ----------
        raw : (n, r) float64

        Returns
        -------
        tuple of (n,) float64
        """
        return tuple(kind.value(raw[:, k]) for k, kind in enumerate(self.kinds))

    def distribution_of(self, raw: Floats) -> ParametricDistribution:
        """Return the distributions with these outputs.

        Parameters
        ----------
        raw : (n, r) float64

        Returns
        -------
        ParametricDistribution
        """
        values = dict(zip(self.parameters, self.values_of(raw), strict=True))
        return ParametricDistribution(self, values)

    def inverse_link(self, raw: Floats) -> Floats:
        """Means, (n, 1)."""
        return self.mean(self.values_of(raw))[:, None]

    def value(self, target: Target, raw: Floats) -> Floats:
        """Negative log density of every row, (n,)."""
        return -self.log_density(target.y[:, 0], self.values_of(raw))

    def gradients(self, target: Target, raw: Floats) -> Gradients:
        """Scores, and Fisher informations, or more for short steps."""
        return self._gradients(target, raw, self.values_of(raw), None)

    def value_and_gradients(
        self, target: Target, raw: Floats, memory: Gradients | None = None
    ) -> tuple[Floats, Gradients]:
        """Both from the same parameters."""
        values = self.values_of(raw)
        value = -self.log_density(target.y[:, 0], values)
        return value, self._gradients(target, raw, values, memory)

    def _gradients(
        self, target: Target, raw: Floats, values: Parameters, memory: Gradients | None
    ) -> Gradients:
        scores, information = arrays_for(raw, memory)
        pairs = zip(self.score(target.y[:, 0], values), self.information(values), strict=True)
        for k, pair in enumerate(pairs):
            scores[:, k], information[:, k] = pair
        return damped(scores, information, raw, self.kinds, self.bounds)

    def initial_raw(self, target: Target) -> Floats:
        """Maximum likelihood, beside offsets if there are any."""
        if target.offset is None:
            return self.best_constant(target)
        start = self.best_constant(replace(target, offset=None))
        start -= mean(target.with_y(target.offset))
        return best_raw(unbounded(self), target, start, self.bounds)

    def best_constant(self, target: Target) -> Floats:
        """Return the parameters of maximum likelihood, without offsets.

        Parameters
        ----------
        target : Target

        Returns
        -------
        (r,) float64
        """
        pairs = zip(self.kinds, self.guess(target), strict=True)
        start = np.array([float(kind.raw(np.array(one))) for kind, one in pairs])
        return best_raw(unbounded(self), target, start, self.bounds)

    def check(self, target: Target) -> None:
        """Check that there is a single target column with possible targets."""
        check_declared(self)
        if target.y.shape[1] != 1:
            raise InvalidData(
                f"loss={self._name!r} supports one target column; got {target.y.shape[1]}. Fit one "
                "model per column."
            )
        self.check_rows(target.y)

    def check_rows(self, y: Floats) -> None:
        """Reject targets outside of the support."""
        refuse_outside(self.support, self._name, y[:, 0])

    @property
    def _name(self) -> str:
        return self.regressor_name or type(self).__name__

    def units(self, target: Target) -> TargetUnits:
        """The spread of the target, and the bounds of a fit."""
        first, *others = self.parameters.values()
        has_unit = np.array([kind.has_unit for kind in self.kinds])
        size = size_of(target, self.support) if has_unit.any() else 1.0
        fitted = copy(self)
        fitted.bounds = self.bounds_of(target.with_y(target.y / size))
        logarithms = np.array([kind.link == "log" for kind in self.kinds])
        return TargetUnits(
            self,
            fitted,
            np.array([size]),
            shift=np.where(has_unit & logarithms, np.log(size), 0.0),
            factor=np.where(has_unit & ~logarithms, size, 1.0),
            constant=float(np.log(size)),
            location=LOCATIONS[first] if self.has_location and others and target.y.any() else None,
        )

    def bounds_of(self, target: Target) -> tuple[Floats, Floats]:
        """Range of ``raw`` for a target in units of its spread, (r,) each.

        Parameters
        ----------
        target : Target

        Returns
        -------
        low, high : (r,) float64
        """
        least = np.log(least_scale(target.y[:, 0], target))
        low = [least if kind == "scale" else KINDS[kind].low for kind in self.parameters.values()]
        return np.array(low), np.array([kind.high for kind in self.kinds])
