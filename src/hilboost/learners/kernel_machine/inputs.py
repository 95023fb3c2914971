"""Completion and scaling of the columns for kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hilboost.backends import array_api
from hilboost.backends.array_api import Array
from hilboost.core.dtypes import Floats, Ints
from hilboost.core.errors import InvalidColumn
from hilboost.core.operators import OperatorGraph

_LARGEST = 2.0**1022
_USUAL_EXPONENT = 400
_FARTHEST = 1e15  # in scaled units; squares of it are finite in float32
_FEW_COLUMNS = 64
_LARGEST_FLOAT = float(np.finfo(np.float64).max)
_TAIL = 0.01  # a column's range is that of its values without these shares on both sides
_OUTLYING = 100.0  # ranges beyond
_KEPT = 1.0  # ranges beyond, to which outlying values are moved
_LIKE = 10.0  # times the median spread
_FEWEST_MISSING = 0.01  # share of the rows with, and without, a value
_MISSING_LEVEL = -2.0  # code; -1 stands for unknown levels


def require_complete(X: Floats) -> None:
    """Reject missing values."""
    if np.isnan(X).any():
        column = int(np.flatnonzero(np.isnan(X).any(axis=0))[0])
        raise InvalidColumn(
            "X contains NaN in {}, which is supported only with kernel='auto'. Impute missing "
            "values, for instance numbers with scikit-learn's SimpleImputer and text with "
            ".fillna('missing'), or use trees.",
            column,
        )


def extreme_exponents(X: Floats) -> Ints:
    """Return binary exponents (d,) of columns whose squares may overflow float64; 0 for others."""
    largest = np.abs(X).max(axis=0, initial=0.0)
    if (largest > _LARGEST).any():
        column = int(np.flatnonzero(largest > _LARGEST)[0])
        raise InvalidColumn(
            f"X contains {largest[column]:.3g} in {{}}, and differences of such numbers overflow; "
            "divide the column by a constant.",
            column,
        )
    exponent = np.frexp(largest)[1].astype(np.int64)
    exponent[np.abs(exponent) <= _USUAL_EXPONENT] = 0
    return exponent


def have_like_spreads(X: Floats) -> bool:
    """Whether there are many columns, and the spread of none is much larger than the median."""
    if X.shape[1] <= _FEW_COLUMNS:
        return False
    exponent = extreme_exponents(X)
    if exponent.any():
        X = np.ldexp(X, -exponent[np.abs(X).max(axis=0).argmax()])
    spread = X.std(axis=0)
    return bool(spread.max() <= _LIKE * np.median(spread))


@dataclass(frozen=True, eq=False)
class Bounds:
    """Bounds of columns; values beyond are moved to them.

    A few wrong cells, such as 10⁶ for a missing number, would otherwise determine the scale of
    their column.
    """

    low: Floats  # (d,) float64: the largest floats for columns without outlying values
    high: Floats  # (d,) float64: the largest floats for columns without outlying values

    @classmethod
    def of(cls, X: Floats, weight: Floats | None, untouched: tuple[int, ...] = ()) -> Bounds | None:
        """Bound the columns with outlying values; ``None`` if there are none.

        A value is outlying if it is more than a hundred ranges outside the middle 98 % of its
        column.
        The bounds are one range outside.
        """
        found = cls.none(X.shape[1])
        with np.errstate(over="ignore"):
            for column in set(range(X.shape[1])) - set(untouched):
                bottom, top = quantiles(X[:, column], weight, (_TAIL, 1 - _TAIL))
                width = top - bottom
                beyond = max(bottom - X[:, column].min(), X[:, column].max() - top)
                if width > 0 and np.isfinite(width) and beyond > _OUTLYING * width:
                    found.low[column] = bottom - _KEPT * width
                    found.high[column] = top + _KEPT * width
        return found if (found.low > -_LARGEST_FLOAT).any() else None

    @classmethod
    def none(cls, d: int) -> Bounds:
        """Create bounds that change nothing."""
        return cls(np.full(d, -_LARGEST_FLOAT), np.full(d, _LARGEST_FLOAT))

    def placed(self, widened: Callable[[Floats, float], Floats]) -> Bounds:
        """Return the bounds for a wider table."""
        return Bounds(widened(self.low, -_LARGEST_FLOAT), widened(self.high, _LARGEST_FLOAT))

    def first(self, n_columns: int) -> Bounds:
        """Return the bounds of the first columns."""
        return Bounds(self.low[:n_columns], self.high[:n_columns])

    def __call__(self, X: Floats) -> Floats:
        """Rows (n, d) with values within the bounds."""
        return np.clip(X, self.low, self.high)


def quantiles(
    values: Floats, weight: Floats | None, shares: tuple[float, float]
) -> tuple[float, float]:
    """Smallest values that at least these shares of the weight do not exceed."""
    order = np.argsort(values, kind="stable")
    mass = np.cumsum(np.ones(len(values)) if weight is None else weight[order])
    # Shares refer to whole rows, whatever the rounding errors of the sum.
    places = np.searchsorted(mass, np.array(shares) * mass[-1] * (1 - 1e-12))
    low, high = values[order][places]
    return float(low), float(high)


@dataclass(frozen=True, eq=False)
class Completion:
    """Replaces missing values, and appends an indicator for each column that often has some."""

    numbers: Floats  # (d,) float64: medians, or a code of its own in category columns
    indicated: Ints  # (p,) int64: columns with an indicator

    @classmethod
    def of(cls, X: Floats, weight: Floats | None, categorical: tuple[int, ...] = ()) -> Completion:
        """Learn the medians of a table (n, d)."""
        missing = np.isnan(X)
        share = np.average(missing, axis=0, weights=weight)
        often = (share >= _FEWEST_MISSING) & (share <= 1 - _FEWEST_MISSING)
        often[list(categorical)] = False  # a level of their own
        numbers = np.array([_median(column, weight) for column in X.T])
        numbers[list(categorical)] = _MISSING_LEVEL
        return cls(numbers, np.flatnonzero(often))

    @property
    def n_columns(self) -> int:
        """Number of columns of complete tables."""
        return len(self.numbers) + len(self.indicated)

    def __call__(self, X: Floats) -> Floats:
        """Complete tables (n, d + p) of numbers and indicators."""
        missing = np.isnan(X)
        if not missing.any() and not len(self.indicated):
            return X
        return np.hstack([np.where(missing, self.numbers, X), missing[:, self.indicated]])

    def places(self, columns: NDArray[np.intp], width: int) -> NDArray[np.intp]:
        """Columns of a wider complete table, for columns of a wider table."""
        return np.concatenate([columns, width + np.arange(len(self.indicated))])

    def placed(self, columns: NDArray[np.intp], width: int) -> Completion:
        """Return the same completion for a wider table."""
        numbers = np.zeros(width)
        numbers[columns] = self.numbers
        return Completion(numbers, columns[self.indicated].astype(np.int64))

    def operators(self, graph: OperatorGraph, X: str) -> str:
        """Add the operators of the completion."""
        missing = graph.add("IsNaN", X)
        complete = graph.add("Where", missing, graph.constant(self.numbers[None, :]), X)
        if not len(self.indicated):
            return complete
        columns = graph.integers(*self.indicated.tolist())
        indicators = graph.add("Gather", graph.as_numbers(missing), columns, axis=1)
        return graph.add("Concat", complete, indicators, axis=1)


def _median(values: Floats, weight: Floats | None) -> float:
    """Weighted median of the values that are not missing; 0 without any."""
    known = ~np.isnan(values)
    if not known.any():
        return 0.0
    return quantiles(values[known], None if weight is None else weight[known], (0.5, 0.5))[0]


@dataclass(frozen=True, eq=False)
class Inputs:
    """Scaling ``(x - center) / scale`` of each column."""

    # (d,) float64 each; ``scale`` is 1 for columns that are constant or contain categories
    center: Floats
    scale: Floats
    bounds: Bounds | None = None  # limits of the values before they are scaled
    # replaces missing values, before all else; ``None`` if they are refused
    completion: Completion | None = None

    @classmethod
    def of(
        cls,
        X: Floats,  # complete
        weight: Floats | None,
        untouched: tuple[int, ...] = (),
        common: bool = False,
        bounds: Bounds | None = None,
    ) -> Inputs:
        """Standardize all columns except ``untouched`` by weighted mean and standard deviation.

        With ``common`` all columns are divided by one number, the root of their mean variance:
        suitable for the pixels of an image, whose edges hardly vary and carry little information.
        Values beyond ``bounds`` are moved to them first.
        """
        X = X if bounds is None else bounds(X)
        exponent = extreme_exponents(X)
        columns = list(untouched)
        exponent[columns] = 0
        if common and exponent.any():
            exponent[:] = exponent[np.abs(X).max(axis=0).argmax()]
        if exponent.any():
            X = np.ldexp(X, -exponent)
        center = np.average(X, axis=0, weights=weight)
        scale = np.sqrt(np.average((X - center) ** 2, axis=0, weights=weight))
        # A constant column has a tiny spread of rounding errors, which must not be amplified.
        varies = scale > 1e-10 * np.abs(center)
        varies[columns] = False
        scale[~varies] = 1.0
        if common and varies.any():
            scale[:] = np.sqrt((scale[varies] ** 2).mean())
        center[columns], scale[columns] = 0.0, 1.0
        if exponent.any():
            center, scale = np.ldexp(center, exponent), np.ldexp(scale, exponent)
        return cls(center, scale, bounds)

    @classmethod
    def unchanged(cls, n_columns: int) -> Inputs:
        """Create the identity, which leaves all columns unchanged."""
        return cls(np.zeros(n_columns), np.ones(n_columns))

    def placed(
        self,
        widened: Callable[[Floats, float], Floats],  # adds a number for the other columns
        completion: Completion | None,
    ) -> Inputs:
        """Return the scaling for a wider table."""
        bounds = None if self.bounds is None else self.bounds.placed(widened)
        return Inputs(widened(self.center, 0.0), widened(self.scale, 1.0), bounds, completion)

    def __call__(self, X: Floats, beside: Array | None = None, dtype: str = "float64") -> Array:
        """Scaled complete rows; an array of the library of ``beside``, NumPy without one."""
        if self.completion is None:
            require_complete(X)
        else:
            X = self.completion(X)
        X = X if self.bounds is None else self.bounds(X)
        with np.errstate(over="ignore"):  # clipped to the largest distance
            scaled = np.clip((X - self.center) / self.scale, -_FARTHEST, _FARTHEST)
        scaled = np.ascontiguousarray(scaled, dtype=dtype)
        return scaled if beside is None else array_api.like(scaled, beside, dtype)
