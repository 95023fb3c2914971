"""Validation of offsets."""

from __future__ import annotations

import numpy as np

from hilboost.core.dtypes import Floats, PerRow
from hilboost.core.errors import DataWarning, InvalidData, counted, warn_caller
from hilboost.tables.reading import as_array
from hilboost.validation.weights import as_numbers

_SAME_ENDS = 0.15  # of the range of the offsets of a fit


def check_offset(offset: PerRow, n: int) -> Floats | None:
    """Return offsets (n, r) float64, or ``None`` if there are none."""
    if offset is None:
        return None
    given = as_array(offset, "offset")
    try:
        given = np.asarray(given)
    except ValueError:
        raise InvalidData(
            "offset must have the same number of values in each row; got rows of different lengths."
        ) from None
    found = as_numbers(given, "offset")
    if found.ndim not in (1, 2) or len(found) != n:
        raise InvalidData(
            f"offset must hold one number for each of the {n} rows of X, or one for each row and "
            f"output; got an array of shape {found.shape}."
        )
    found = found.reshape(n, -1)
    if not np.isfinite(found).all():
        row, column = np.argwhere(~np.isfinite(found))[0].tolist()
        value = found[row, column]
        why = ", as for an exposure of 0: leave out such rows" if value == -np.inf else ""
        raise InvalidData(f"offset must be finite; row {row} has {value:g}{why}.")
    return found


def offset_of(offset: PerRow, n: int, r: int) -> Floats | None:
    """Return offsets (n, r) float64 of n predictions with r outputs, if there are any."""
    found = check_offset(offset, n)
    check_outputs(found, r)
    return found


def warn_without(offset: PerRow, expected: bool) -> None:
    """Warn if there are no offsets where the fit had some."""
    if offset is None and expected:
        warn_caller(
            "The model was fitted with offsets, but offset is not given and counts as zero; pass "
            "offset, or zeros to accept this.",
            DataWarning,
        )


def warn_of_exposures(least: float, largest: float) -> None:
    """Warn that offsets of a loss with a log link look like exposures, not their logarithms."""
    warn_caller(
        f"offset is between {least:.3g} and {largest:.3g}, as exposures are; this loss adds it "
        "to the logarithm of the mean, so pass the logarithms of exposures.",
        DataWarning,
    )


def warn_of_new_exposures(offset: Floats, of_fit: tuple[float, float]) -> None:
    """Warn of offsets of predictions that exceed the fit's, but whose logarithms have their range.

    Both ends have to agree, because a fit to short exposures may also predict long ones.
    """
    least, most = offset.min(initial=np.inf), offset.max(initial=-np.inf)
    if not 0 < least < most or most <= of_fit[1]:
        return
    ends = np.log([least, most])
    if (np.abs(ends - of_fit) <= _SAME_ENDS * (of_fit[1] - of_fit[0])).all():
        warn_of_exposures(least, most)


def check_outputs(offset: Floats | None, r: int) -> None:
    """Check that there is an offset for each of the r outputs."""
    if offset is not None and offset.shape[1] != r:
        raise InvalidData(
            f"offset must have {counted(r, 'column')}, one for each output; it has "
            f"{offset.shape[1]}."
        )
