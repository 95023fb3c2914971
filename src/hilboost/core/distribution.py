"""Interface of predicted distributions, one for each row."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cache
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state, check_scalar

from hilboost.core.dtypes import Floats, Seed
from hilboost.core.errors import InvalidData, InvalidParameter, shown
from hilboost.core.plain_values import as_floats, real

_NODES = 64
_MOST_COUNTS, _PARTS = 2000, 16  # counts that are summed one by one, and parts of larger steps


@cache
def unit_nodes() -> tuple[Floats, Floats]:
    """Nodes and weights on [0, 1], dense at both ends, where quantiles may be infinite."""
    x, w = np.polynomial.legendre.leggauss(_NODES)
    s, ds = 0.5 * (x + 1), 0.5 * w
    return s**3 * (10 - 15 * s + 6 * s**2), ds * 30 * (s * (1 - s)) ** 2


def crps_of_quantiles(y: Floats, below: Floats, quantile: Callable[[Floats], Floats]) -> Floats:
    """Compute the CRPS from quantiles, (n,): twice the integral of pinball losses.

    ``y`` (n, 1) has the levels ``below`` (n, 1), at which the pinball loss has a kink.
    """
    s, w = unit_nodes()
    lower, upper = below * s, below + (1 - below) * s
    with np.errstate(invalid="ignore"):  # infinite quantiles of levels 0 and 1
        under = np.where(lower > 0, lower * (y - quantile(lower)), 0.0) * below
        over = np.where(upper < 1, (1 - upper) * (quantile(upper) - y), 0.0) * (1 - below)
    return 2 * (under + over) @ w


def crps_of_counts(
    y: Floats, cdf: Callable[[Floats], Floats], quantile: Callable[[Floats], Floats]
) -> Floats:
    """Compute the CRPS of counts for ``y`` (n, 1), (n,): sums of squares of probabilities.

    They are exact for small counts.  Otherwise, squares are straight lines between nodes.
    """
    inside = np.maximum(y, 0.0)
    first = np.ceil(inside)
    nodes = np.sort(np.append(_nodes(quantile, len(y)), first, axis=1), axis=1)
    level, steps, below = cdf(nodes), np.diff(nodes, axis=1), nodes[:, :-1] < first
    begins, ends = (np.where(below, one, 1 - one) ** 2 for one in (level[:, :-1], level[:, 1:]))
    sums = 0.5 * (steps * (begins + ends) + (begins - ends) * (steps > 0))
    between = (first - inside) * (1 - 2 * cdf(np.floor(inside)))  # for targets between counts
    return sums.sum(axis=1) + (between + inside - y)[:, 0]


def _nodes(quantile: Callable[[Floats], Floats], n: int) -> Floats:
    """Ascending counts from 0 with nearly all probability, (n, m): all, unless there are many."""
    top = quantile(np.full((n, 1), 1 - 1e-9))
    largest = float(top.max(initial=0.0))
    if largest <= _MOST_COUNTS:
        return np.tile(np.arange(largest + 2), (n, 1))
    ends = np.column_stack([np.zeros(n), quantile(np.tile(unit_nodes()[0], (n, 1))), top])
    parts = np.sin(0.5 * np.pi * np.arange(1, _PARTS + 1) / _PARTS) ** 2  # dense at both ends
    steps = np.diff(ends, axis=1)[:, :, None] * parts
    inside = np.rint(ends[:, :-1, None] + steps).reshape(n, -1)
    return np.append(ends[:, :1], inside, axis=1)


_SMALLEST_DENSITY = 1e-300
_RELATIVE_WIDTH = 1e-4  # of the differences of the distribution function, between its quartiles


class Distribution(ABC):
    """Base class of predicted distributions: n distributions, one for each row.

    A subclass defines ``__len__``, :meth:`_cdf` and :meth:`_quantile`, and overrides what it can
    compute faster or more accurately than from quantiles.
    """

    parameters: Mapping[str, Floats]
    """Parameters of each row by name, (n,) each; only families have them."""

    has_counts: bool = False
    """Whether targets are counts, at which the distribution function jumps."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of rows."""

    @abstractmethod
    def _cdf(self, y: Floats) -> Floats:
        """Probabilities of at most ``y`` (n, k), (n, k)."""

    @abstractmethod
    def _quantile(self, levels: Floats) -> Floats:
        """Quantiles of levels (n, k) in [0, 1], (n, k)."""

    def _density(self, y: Floats) -> Floats:
        """Densities at ``y`` (n, k), (n, k)."""
        low, high = self._quantile(np.tile([0.25, 0.75], (len(self), 1))).T[:, :, None]
        width = _RELATIVE_WIDTH * np.maximum(high - low, np.finfo(np.float64).tiny)
        return (self._cdf(y + width) - self._cdf(y - width)) / (2 * width)

    def _log_density(self, y: Floats) -> Floats:
        """Logarithms of densities at ``y`` (n, k), (n, k), which finite targets all have."""
        least = np.where(np.isinf(y), 0.0, _SMALLEST_DENSITY)
        return np.log(np.maximum(self._density(y), least))

    def _crps(self, y: Floats) -> Floats:
        """Continuous ranked probability scores of ``y`` (n, 1), (n,)."""
        if self.has_counts:
            return crps_of_counts(y, self._cdf, self._quantile)
        return crps_of_quantiles(y, self._cdf(y), self._quantile)

    @property
    def mean(self) -> Floats:
        """Mean of each row, (n,)."""
        levels, weights = unit_nodes()
        return np.asarray(self._quantile(np.tile(levels, (len(self), 1))) @ weights)

    @property
    def std(self) -> Floats:
        """Standard deviation of each row, (n,)."""
        levels, weights = unit_nodes()
        centered = self._quantile(np.tile(levels, (len(self), 1))) - self.mean[:, None]
        return np.sqrt(centered**2 @ weights)

    def quantile(self, q: ArrayLike) -> Floats:
        """Compute quantiles.

        Parameters
        ----------
        q : float, (k,) or (n, k) array-like
            Levels between 0 and 1, for all rows or for each row.

        Returns
        -------
        (n,) float64, or (n, k) for several levels

        Raises
        ------
        InvalidParameter
            A level is not between 0 and 1.
        """
        levels = _numbers(q, "q")
        own = levels.ndim == 2 and len(levels) == len(self)
        if (levels.ndim > 1 and not own) or not ((levels >= 0) & (levels <= 1)).all():
            raise InvalidParameter(
                f"q must be a number between 0 and 1, or a list of them; got {shown(q)}."
            )
        with np.errstate(all="ignore"):
            found = self._quantile(levels if own else np.tile(levels, (len(self), 1)))
        return found if levels.ndim else found[:, 0]

    def cdf(self, y: ArrayLike) -> Floats:
        """Compute the probability of a target of at most ``y``.

        Parameters
        ----------
        y : float, (n,) or (n, k) array-like
            A number for all rows, or one or k numbers for each row.

        Returns
        -------
        (n,) or (n, k) float64
        """
        return self._at(y, self._cdf)

    def pdf(self, y: ArrayLike) -> Floats:
        """Compute the density at ``y``, for counts the probability of ``y``.

        Parameters
        ----------
        y : float, (n,) or (n, k) array-like
            A number for all rows, or one or k numbers for each row.

        Returns
        -------
        (n,) or (n, k) float64
        """
        return self._at(y, self._density)

    def pit(self, y: ArrayLike) -> Floats:
        """Compute the probability integral transform, the level of each target.

        Uniform between 0 and 1 if the distributions are calibrated.  Where a distribution function
        jumps, as that of counts, a level of the jump is drawn.

        Parameters
        ----------
        y : (n,) array-like

        Returns
        -------
        (n,) float64
        """
        true = self._targets(y)
        below, level = (self._at(y, self._cdf) for y in (np.nextafter(true, -np.inf), true))
        drawn = np.random.default_rng(0).uniform(size=true.shape)
        return (below + drawn * (level - below))[:, 0]

    def interval(self, coverage: float = 0.9) -> Floats:
        """Compute central intervals, which leave the same probability on both sides.

        Parameters
        ----------
        coverage : float in (0, 1), default 0.9

        Returns
        -------
        (n, 2) float64
            Lower and upper bounds.

        Raises
        ------
        InvalidParameter
            ``coverage`` is not between 0 and 1.
        """
        outside = (1 - check_coverage(coverage)) / 2
        return self.quantile([outside, 1 - outside])

    def sample(self, n: int = 1, random_state: Seed = None) -> Floats:
        """Draw independent targets of each row.

        Parameters
        ----------
        n : int, default 1
            Number of draws for each row.
        random_state : int, RandomState or None, default None

        Returns
        -------
        (rows, n) float64

        Raises
        ------
        TypeError
            ``n`` is not an integer.
        ValueError
            ``n`` is negative, or ``random_state`` is not a seed.
        """
        check_scalar(n, "n", Integral, min_val=0)
        levels = check_random_state(random_state).uniform(size=(len(self), n))
        return self.quantile(levels)

    def crps(self, y: ArrayLike) -> Floats:
        """Compute the continuous ranked probability score of each row; less is better.

        ``E|Y - y| - E|Y - Y'| / 2`` for independent ``Y`` and ``Y'`` of the predicted distribution
        (Gneiting & Raftery 2007), in units of the target.  For a distribution without spread, it is
        the absolute error.

        Parameters
        ----------
        y : (n,) array-like

        Returns
        -------
        (n,) float64
        """
        true = self._targets(y)
        found = self._at(true, lambda places: self._crps(places)[:, None])
        return np.where(np.isinf(true), np.inf, found)[:, 0]

    def log_score(self, y: ArrayLike) -> Floats:
        """Compute the negative logarithm of the density at the target; less is better.

        Parameters
        ----------
        y : (n,) array-like

        Returns
        -------
        (n,) float64
        """
        return -self._at(self._targets(y), self._log_density)[:, 0]

    def interval_score(self, y: ArrayLike, coverage: float = 0.9) -> Floats:
        """Compute the score of central intervals; less is better.

        The width, plus ``2 / (1 - coverage)`` times the distance of the target from the interval
        (Gneiting & Raftery 2007).

        Parameters
        ----------
        y : (n,) array-like
        coverage : float in (0, 1), default 0.9

        Returns
        -------
        (n,) float64
        """
        true = self._targets(y)[:, 0]
        low, high = self.interval(coverage).T
        outside = np.maximum(np.maximum(low - true, true - high), 0.0)
        return high - low + 2 / (1 - coverage) * outside

    def _targets(self, y: ArrayLike) -> Floats:
        """Targets of the rows, (n, 1)."""
        names = np.asarray(y).dtype.names
        if names is not None:
            raise InvalidData(
                f"y must contain one number for each of the {len(self)} rows; got fields "
                f"{', '.join(names)}, of which only the distributions of a loss have a log_score; "
                "calibrated ones have them as .base."
            )
        found = _numbers(y, "y")
        found = found[:, 0] if found.ndim == 2 and found.shape[1] == 1 else found
        if found.shape != (len(self),):
            raise InvalidData(
                f"y must contain one number for each of the {len(self)} rows; got an array of "
                f"shape {found.shape}."
            )
        return found[:, None]

    def _at(self, y: ArrayLike, function: Callable[[Floats], Floats]) -> Floats:
        places = _numbers(y, "y")
        places = np.full(len(self), places) if places.ndim == 0 else places
        if places.ndim > 2 or len(places) != len(self):
            raise InvalidData(
                f"y must be a number, or contain one or several for each of the {len(self)} rows; "
                f"got an array of shape {places.shape}."
            )
        columns = places[:, None] if places.ndim == 1 else places
        with np.errstate(all="ignore"):  # far out, where densities are too small for numbers
            found = np.where(np.isnan(columns), np.nan, function(columns))
        return found[:, 0] if places.ndim == 1 else found


def check_coverage(coverage: object) -> float:
    """Return the coverage as a float."""
    if not 0 < real(coverage) < 1:
        raise InvalidParameter(
            f"coverage must be between 0 and 1, such as 0.9 for 90 %; got {shown(coverage)}."
        )
    return real(coverage)


def _numbers(values: ArrayLike, name: str) -> Floats:
    """Convert an argument to floats."""
    if (found := as_floats(values)) is None:
        raise InvalidData(f"{name} must contain numbers; got {shown(values)}.")
    return found
