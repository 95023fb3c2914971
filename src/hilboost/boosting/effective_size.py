"""The effective number of rows of weighted data, which automatic settings are based on.

It depends on the weights alone, so that equal rows count like any others:

* Whole numbers are frequencies: a weight of 3 is equivalent to repeating the row three times, and a
  row without a weight counts once.
* Other weights are proportions: their unit means nothing, and the data count as
  ``(sum w)² / sum w²`` rows (Kish 1965).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hilboost.backends.exact_sums import quotient
from hilboost.core.dtypes import Floats
from hilboost.core.errors import DataWarning, warn_caller
from hilboost.core.plain_values import is_auto
from hilboost.core.target import Target
from hilboost.reductions.sums import (
    count_rows,
    extremes,
    has_whole_weights,
    mass_of,
    total_of,
    total_weight,
)

_DIGITS = 12


@dataclass(frozen=True)
class WeightScale:
    """The divisor of the weights of a fit, and the weight that counts as one row."""

    divisor: float = 1.0
    row: float = 1.0  # the weight that counts as one row, in divided weights

    @property
    def plain_row(self) -> float:
        """The weight that counts as one row, in the original weights."""
        return self.divisor * self.row

    def divided(self, target: Target) -> Target:
        """Return the target with divided weights, or without weights if all of them are one."""
        if self.divisor == 1 or target.weight is None:
            return target
        weight = target.weight / self.divisor
        differs = count_rows(np.abs(weight - 1) > 10.0**-_DIGITS, target)
        return replace(target, weight=weight if differs else None)

    def in_rows(self, mass: Any) -> Any:
        """Convert a mass from original weights to a number of rows; ``"auto"`` is kept."""
        return mass if is_auto(mass) else _quotient(mass, self.plain_row)

    def of_rows(self, rows: float) -> float:
        """Convert a number of rows to a mass in original weights."""
        return rows if self.plain_row == 1 else rows * self.plain_row

    def in_fit(self, mass: float) -> float:
        """Convert a mass from original to divided weights."""
        return _quotient(mass, self.divisor)


def _quotient(mass: float, by: float) -> float:
    # Round, so that five times a unit divided by the unit is exactly five.
    return mass if by == 1 else float(f"{mass / by:.{_DIGITS}g}")


def row_weight(target: Target) -> float:
    """Return the weight that counts as one row, from positive weights."""
    weight = target.weight
    if weight is None or has_whole_weights(target):
        return 1.0
    top = extremes(weight, target)[1]
    scaled = replace(target, weight=weight / top)  # squares of large weights may overflow
    return top * quotient(total_of(weight / top, scaled), mass_of(scaled))


def row_weight_with_classes(target: Target, weight: Floats | None) -> float:
    """Return the weight of a target that counts as one row.

    ``weight`` (n,) is without the weights of the classes, which do not change the number of rows.
    """
    if has_whole_weights(target):
        return 1.0
    plain = replace(target, weight=weight)
    return row_weight(plain) * _quotient(total_weight(target), total_weight(plain))


def warn_of_uneven_weights(scale: WeightScale, target: Target, min_samples_leaf: float) -> None:
    """Warn if there are enough rows for two leaves but their effective number is too small."""
    rows = total_weight(target) / scale.row
    if target.weight is not None and rows < 2 * min_samples_leaf <= target.n_rows:
        warn_caller(
            f"sample_weight is so uneven that the effective number of rows is {rows:.3g}, not "
            f"{target.n_rows}, and the model is a constant. Use weights that differ less, or set "
            "min_samples_leaf.",
            DataWarning,
        )
