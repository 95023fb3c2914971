"""Distributions of a family, with parameters for each row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from hilboost.core.distribution import Distribution
from hilboost.core.dtypes import Floats
from hilboost.distributions.bounds import ENDS, SUPPORTS, Tails, are_possible, log_likelihood
from hilboost.tables.bounds import check_bounds, holds_bounds, refuse_bounds


class Family(Tails, Protocol):
    """Formulas of a family; its parameters ``p`` are arrays that broadcast with ``y``."""

    @property
    def support(self) -> str:
        """Key of :data:`hilboost.distributions.bounds.SUPPORTS`."""

    def mean(self, p: tuple[Floats, ...]) -> Floats:
        """Mean."""

    def std(self, p: tuple[Floats, ...]) -> Floats:
        """Standard deviation."""

    def cdf(self, y: Floats, p: tuple[Floats, ...]) -> Floats:
        """Probability of at most ``y``."""

    def quantile(self, levels: Floats, p: tuple[Floats, ...]) -> Floats:
        """Quantiles of the levels."""

    def crps(self, y: Floats, p: tuple[Floats, ...]) -> Floats:
        """Continuous ranked probability score."""


@dataclass(frozen=True)
class ParametricDistribution(Distribution):
    """Distributions of a family.

    Attributes
    ----------
    family : Family
        Such as ``hilboost.losses.Normal()``.
    parameters : dict of str to (n,) float64
        Parameters of each row by name.
    """

    family: Family
    parameters: dict[str, Floats]

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(next(iter(self.parameters.values())))

    @property
    def has_counts(self) -> bool:  # type: ignore[override]
        """Whether the support is counts."""
        return self.family.support == "counts"

    @property
    def _rows(self) -> tuple[Floats, ...]:
        """The parameters as columns, (n, 1) each."""
        return tuple(one[:, None] for one in self.parameters.values())

    @property
    def mean(self) -> Floats:
        """Mean of each row, (n,)."""
        return self.family.mean(tuple(self.parameters.values()))

    @property
    def std(self) -> Floats:
        """Standard deviation of each row, (n,)."""
        return self.family.std(tuple(self.parameters.values()))

    def _cdf(self, y: Floats) -> Floats:
        """Probabilities; formulas overflow, as NaN, only far from the median."""
        least, most = ENDS[self.family.support]
        found = np.clip(self.family.cdf(np.clip(y, least, most), self._rows), 0.0, 1.0)
        found = np.where(np.isnan(found), y > self._medians, found)
        return np.where(y < least, 0.0, np.where(y >= most, 1.0, found))

    def _quantile(self, levels: Floats) -> Floats:
        return self.family.quantile(levels, self._rows)

    @property
    def _medians(self) -> Floats:
        return self._quantile(np.full((len(self), 1), 0.5))

    def _density(self, y: Floats) -> Floats:
        return np.exp(self._log_density(y))

    def _log_density(self, y: Floats) -> Floats:
        """Logarithm of the density (n, k), minus infinity for targets that are not possible."""
        found = self.family.log_density(y, self._rows)
        return np.where(SUPPORTS[self.family.support][0](y), found, -np.inf)

    def _targets(self, y: object) -> Floats:
        refuse_bounds(y)
        return super()._targets(y)  # type: ignore[arg-type]

    def _crps(self, y: Floats) -> Floats:
        """Scores; formulas overflow only so far from the median that the spread does not count."""
        inside = np.clip(y, *ENDS[self.family.support])
        found = self.family.crps(inside, self._rows) + np.abs(y - inside)
        found = np.where(np.isfinite(found), found, np.abs(y - self._medians))
        return found[:, 0]

    def log_score(self, y: object) -> Floats:
        """Compute the negative logarithm of the density at the target, (n,); less is better.

        Parameters
        ----------
        y : (n,) array-like, structured array or data frame
            Of censored rows, bounds as in :meth:`hilboost.BoostingRegressor.fit`: the score is
            minus the logarithm of the probability between them.  It is infinite for a target
            outside of the support.

        Returns
        -------
        (n,) float64
        """
        if holds_bounds(y):
            bounds = check_bounds(y, len(self))
            with np.errstate(all="ignore"):
                found = log_likelihood(self.family, bounds, tuple(self.parameters.values()))
            return np.where(are_possible(self.family.support, bounds), -found, np.inf)
        return super().log_score(y)  # type: ignore[arg-type]
