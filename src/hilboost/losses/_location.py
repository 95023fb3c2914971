"""Units of location losses."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData
from hilboost.core.loss import Loss, TargetUnits
from hilboost.core.target import Target
from hilboost.losses._columns import known_column
from hilboost.reductions.sums import extremes, mean

_LARGEST_EXPONENT = 256
"""Targets with an absolute value between 2^-256 and 2^256 are not scaled."""
_LARGEST_VALUE = 1016
"""Logarithm to base 2 of the largest loss of a row, with some room for several columns."""


def location_units(
    loss: Loss, target: Target, scaled: Callable[[Floats], Loss]
) -> TargetUnits | None:
    """Find units for a location loss: powers of two for a target that is too extreme to be squared.

    Several targets are divided by their spreads, so that no unit makes one count more than another.

    ``loss``: its own class must declare its ``degree``; a derived class may compute anything.
    ``target``: with several targets, NaN marks missing ones. ``scaled``: maps the units (c,) to the
    loss of ``y / units``.
    """
    if "degree" not in vars(type(loss)) or loss.degree is None:
        return None
    columns = range(target.y.shape[1])
    if len(columns) > 1:
        size = np.array([_spread(loss, known_column(target, k)) for k in columns])
        return TargetUnits(loss, scaled(size), size, factor=size)
    exponent = _exponent(loss, known_column(target, 0))
    if abs(exponent) <= _LARGEST_EXPONENT:
        return None
    unit = 2.0**exponent
    size = np.array([unit])
    return TargetUnits(loss, scaled(size), size, factor=unit, value=unit ** (loss.degree or 0))


def _exponent(loss: Loss, target: Target) -> int:
    """Return the exponent of the largest absolute value of a target, 0 if all are zero."""
    low, high = extremes(target.y.ravel(), target)
    largest = max(-low, high)
    exponent = int(np.frexp(largest)[1])
    if (loss.degree or 0) * exponent > _LARGEST_VALUE:
        raise InvalidData(
            f"y contains absolute values up to {largest:.3g}, for which {type(loss).__name__} "
            "exceeds the range of float64. Divide y by a constant."
        )
    return exponent


def _spread(loss: Loss, target: Target) -> float:
    """Return the spread of a target; the order of its size if it is constant.

    For squared error, the spread is the standard deviation, for absolute error the mean absolute
    deviation: the size of the residuals of the best constant.
    """
    unit = 2.0 ** _exponent(loss, target)
    target = target.with_y(target.y / unit)
    losses = loss.value(target, target.starting_raw(loss.initial_raw(target)))
    degree = loss.degree or 1.0
    size = (degree * float(mean(target.with_y(losses[:, None]))[0])) ** (1 / degree)
    return unit * (size if size > 0 else 1.0)
