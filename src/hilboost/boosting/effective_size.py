"""The effective number of rows of weighted data, which automatic settings are based on.

It depends on the weights alone, so that equal rows count like any others:

* Whole numbers are frequencies: a weight of 3 is equivalent to repeating the row three times, and a
  row without a weight counts once.
* Other weights are proportions: their unit means nothing, and the data count as
  ``(sum w)² / sum w²`` rows (Kish 1965).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hilboost.backends.exact_sums import quotient
from hilboost.core.dtypes import Floats
from hilboost.core.errors import DataWarning
from hilboost.core.exchange import RowShare
from hilboost.core.target import Target
from hilboost.reductions.sums import (
    is_whole,
    largest,
    mass_of,
    on_any_worker,
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
        differs = bool((np.abs(weight - 1) > 10.0**-_DIGITS).any())
        return replace(target, weight=weight if on_any_worker(differs, target.share) else None)

    def in_rows(self, mass: Any) -> Any:
        """Convert a mass from original weights to a number of rows; ``"auto"`` is kept."""
        return mass if isinstance(mass, str) else _quotient(mass, self.plain_row)

    def of_rows(self, rows: float) -> float:
        """Convert a number of rows to a mass in original weights."""
        return rows if self.plain_row == 1 else rows * self.plain_row

    def in_fit(self, mass: float) -> float:
        """Convert a mass from original to divided weights."""
        return _quotient(mass, self.divisor)


def _quotient(mass: float, by: float) -> float:
    # Round, so that five times a unit divided by the unit is exactly five.
    return mass if by == 1 else float(f"{mass / by:.{_DIGITS}g}")


def row_weight(weight: Floats | None, share: RowShare | None = None) -> float:
    """Return the weight that counts as one row, from positive weights (n,)."""
    if weight is None or is_whole(weight, share):
        return 1.0
    top = largest(float(weight.max(initial=0.0)), share)
    scaled = weight / top  # squares of large weights may overflow
    return top * quotient(total_of(scaled, scaled, share), mass_of(scaled, len(scaled), share))


def row_weight_with_classes(target: Target, weight: Floats | None) -> float:
    """Return the weight of a target that counts as one row.

    ``weight`` (n,) is without the weights of the classes, which do not change the number of rows.
    """
    if target.weight is None or is_whole(target.weight, target.share):
        return 1.0
    factor = _quotient(total_weight(target), total_weight(replace(target, weight=weight)))
    return row_weight(weight, target.share) * factor


def warn_of_uneven_weights(scale: WeightScale, target: Target, min_samples_leaf: float) -> None:
    """Warn if there are enough rows for two leaves but their effective number is too small."""
    rows = total_weight(target) / scale.row
    if target.weight is not None and rows < 2 * min_samples_leaf <= target.n_rows:
        warnings.warn(
            f"sample_weight is so uneven that the effective number of rows is {rows:.3g}, not "
            f"{target.n_rows}, and the model is a constant. Use weights that differ less, or set "
            "min_samples_leaf.",
            DataWarning,
            stacklevel=4,
        )
