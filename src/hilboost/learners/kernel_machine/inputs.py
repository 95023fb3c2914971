"""Scaling of the columns before kernels are evaluated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hilboost.backends import array_api as dense
from hilboost.backends.array_api import Array
from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData


def require_complete(X: Floats) -> None:
    """Reject missing values.

    Raises
    ------
    InvalidData
        If ``X`` contains NaN.
    """
    if np.isnan(X).any():
        column = int(np.flatnonzero(np.isnan(X).any(axis=0))[0])
        raise InvalidData(
            f"X contains NaN in column {column}, which kernels do not support. Impute missing "
            "values, for instance numbers with scikit-learn's SimpleImputer and text with "
            ".fillna('missing'), or use trees."
        )


def extreme_exponents(X: Floats) -> NDArray[np.int64]:
    """Return binary exponents (d,) of columns whose squares may overflow float64; 0 for others.

    Raises
    ------
    InvalidData
        If differences of values in a column overflow.
    """
    largest = np.abs(X).max(axis=0, initial=0.0)
    if (largest > _LARGEST).any():
        column = int(np.flatnonzero(largest > _LARGEST)[0])
        raise InvalidData(
            f"X contains {largest[column]:.3g} in column {column}, and differences of such numbers "
            "overflow; divide the column by a constant."
        )
    exponent = np.frexp(largest)[1].astype(np.int64)
    exponent[np.abs(exponent) <= _USUAL_EXPONENT] = 0
    return exponent


_LARGEST = 2.0**1022
_USUAL_EXPONENT = 400
_FARTHEST = 1e15  # in scaled units; its square is finite in float32


@dataclass(frozen=True, eq=False)
class Inputs:
    """Scaling ``(x - center) / scale`` of each column.

    Attributes
    ----------
    center, scale : (d,) float64
        ``scale`` is 1 for columns that are constant or contain categories.
    """

    center: Floats
    scale: Floats

    @classmethod
    def of(
        cls,
        X: Floats,
        weight: Floats | None,
        untouched: tuple[int, ...] = (),
        common: bool = False,
    ) -> Inputs:
        """Standardize all columns except ``untouched`` by weighted mean and standard deviation.

        With ``common``, all columns are divided by the same number, the root of their mean
        variance.  This suits the pixels of images, where columns that hardly vary (near the edges)
        carry little information.
        """
        exponent = extreme_exponents(X)
        columns = list(untouched)
        exponent[columns] = 0
        if common and exponent.any():
            exponent[:] = exponent[np.abs(X).max(axis=0).argmax()]
        if exponent.any():
            X = np.ldexp(X, -exponent)
        center = np.average(X, axis=0, weights=weight)
        scale = np.sqrt(np.average((X - center) ** 2, axis=0, weights=weight))
        # Due to rounding, a constant column has a tiny spread, by which it must not be divided.
        varies = scale > 1e-10 * np.abs(center)
        varies[columns] = False
        scale[~varies] = 1.0
        if common and varies.any():
            scale[:] = np.sqrt((scale[varies] ** 2).mean())
        center[columns], scale[columns] = 0.0, 1.0
        if exponent.any():
            center, scale = np.ldexp(center, exponent), np.ldexp(scale, exponent)
        return cls(center, scale)

    @classmethod
    def unchanged(cls, n_columns: int) -> Inputs:
        """Create the identity, which leaves all columns unchanged."""
        return cls(np.zeros(n_columns), np.ones(n_columns))

    def __call__(self, X: Floats, beside: Array | None = None, dtype: str = "float64") -> Array:
        """Scale rows, (n, d), as an array of the library of ``beside``, or a NumPy array."""
        with np.errstate(over="ignore"):  # overflowing values are clipped
            scaled = np.clip((X - self.center) / self.scale, -_FARTHEST, _FARTHEST)
        scaled = np.ascontiguousarray(scaled, dtype=dtype)
        return scaled if beside is None else dense.like(scaled, beside, dtype)
