"""The effective number of rows of weighted data, which automatic settings are based on.

It satisfies two requirements.  An integer weight is equivalent to repeating the row, and
multiplying all weights by a constant changes nothing.  The effective size is therefore a function
of the masses of the *distinct* rows that is invariant to a common factor:

* If the masses are integer multiples of the smallest one, they are frequencies, and the row of the
  smallest mass counts as one row.  Unweighted data in which some row occurs once thus count as
  their number of rows.
* Otherwise the masses are proportions, and the data count as ``(sum m)² / sum m²`` rows (Kish
  1965).
* For a table of a few distinct rows, this number is not informative.  Such a table counts as the
  smallest number of equally weighted rows that represent it, if there is one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.exact_sums import masses_of_groups, quotient, rounded, sum_of
from hilboost.backends.row_hashes import hash_rows, hash_sparse_rows
from hilboost.core.dtypes import Floats
from hilboost.core.errors import DataWarning
from hilboost.core.target import Target
from hilboost.reductions.sums import anywhere, counts, total_weight
from hilboost.tables import BlockTable, SparseTable

_PROBES = 8
_FEWEST_FOR_PROPORTIONS = 50.0
_FIRST_COLUMNS = 4
_FIRST_STATE = 0x243F6A8885A308D3
_LARGEST_MULTIPLE = 1e6
_NEARLY_WHOLE = 1e-3
_WHOLE = 1e-6
_DIGITS = 12


@dataclass(frozen=True)
class WeightScale:
    """The divisor of the weights of a fit, and the mass that counts as one row.

    Attributes
    ----------
    divisor : float
    row : float
        The mass that counts as one row, in divided weights: 1, unless all rows are repeated.
    """

    divisor: float = 1.0
    row: float = 1.0

    @property
    def plain_row(self) -> float:
        """The mass that counts as one row, in the original weights."""
        return self.divisor * self.row

    def divided(self, target: Target) -> Target:
        """Return the target with divided weights, or without weights if all of them are one."""
        if self.divisor == 1 or target.weight is None:
            return target
        weight = target.weight / self.divisor
        whole = np.rint(weight)
        if not anywhere(bool((np.abs(weight - whole) > _WHOLE).any()), target.share):
            weight = whole
        is_plain = not anywhere(bool((weight != 1).any()), target.share)
        return replace(target, weight=None if is_plain else weight)

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


def weight_scale(X: Floats | BlockTable, target: Target, balanced: bool = False) -> WeightScale:
    """Determine the scale of the weights of a target without rows of zero weight.

    Parameters
    ----------
    X : (n, d) array or sparse table
    target : Target
    balanced : bool
        Whether weights balance the classes ``y[:, 0]``.  The effective number of rows is then
        computed for each class separately, and summed.

    Notes
    -----
    Cost O(n) if a few rows suffice to show that the unit is 1, as in most unweighted data;
    otherwise O(n d + n log n).
    """
    weight, share = target.weight, target.share
    if weight is None or not balanced:
        fractional = weight is not None and bool((weight != np.rint(weight)).any())
        if not anywhere(fractional, share) and _unit_is_one(X, target):
            return WeightScale()
    hashes, all_differ, codes, weight = _of_all_rows(X, target)
    if balanced and target.weight is not None:
        return _scale_of_classes(hashes, codes, weight)
    masses = weight if all_differ else _masses(hashes, weight)
    scale = _scale(masses, weight)
    return scale if target.weight is not None else WeightScale(row=scale.plain_row)


def _scale_of_classes(hashes: NDArray[np.uint64], codes: Floats, weight: Floats) -> WeightScale:
    """Sum the effective numbers of rows of the classes."""
    total = 0.0
    for code in np.unique(codes):
        rows = codes == code
        masses = _masses(hashes[rows], weight[rows])
        total += _total(masses) / _scale(masses, weight[rows]).plain_row
    unit = _total(weight) / total
    return WeightScale(1.0 if abs(unit - 1) < _WHOLE else unit)


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


def _of_all_rows(
    X: Floats | BlockTable, target: Target
) -> tuple[NDArray[np.uint64], bool, Floats, Floats]:
    """Hashes of all workers' rows, whether all are known to differ, first labels, and weights."""
    y, share = target.y.astype(np.float64, copy=False), target.share
    weight = np.ones(len(y)) if target.weight is None else target.weight
    hashes, all_differ = _row_hashes(X, y, share is not None)
    if share is None:
        return hashes, all_differ, y[:, 0], weight
    found = (share.exchange.gathered(values) for values in (hashes, y[:, 0], weight))
    hashes, codes, weight = found
    return hashes, False, codes, weight


def _unit_is_one(X: Floats | BlockTable, target: Target) -> bool:
    """Whether one of a few rows has weight 1 and no duplicate; weights are integers."""
    y, weight, share = target.y, target.weight, target.share
    rows = np.arange(len(y)) if weight is None else np.flatnonzero(weight == 1)
    probes = np.empty(0, dtype=np.intp)
    if len(rows):
        probes = rows[np.unique(np.linspace(0, len(rows) - 1, _PROBES).astype(np.intp))]
    if share is None:
        return any(_n_alike(X, y, partial(_of_row, int(row)), 1) == 1 for row in probes)
    if isinstance(X, SparseTable):
        return False
    own = np.stack([column[probes] for column in _columns(X, y)], axis=1)
    found = share.exchange.gathered(own.astype(np.float64))
    here = [_n_alike(X, y, partial(_of_column, row), 0) for row in found]
    n_alike = counts(np.array(here, dtype=np.int64), share)
    return bool((n_alike == 1).any())


def _columns(X: Floats | BlockTable, y: Floats) -> Iterator[Any]:
    """The columns of ``y`` and ``X``, (n,) each; for a sparse table those of ``y`` only."""
    for values in (y,) if isinstance(X, SparseTable) else (y, X):
        for k in range(values.shape[1]):
            yield values.column(k) if isinstance(values, BlockTable) else values[:, k]


def _of_row(row: int, column: Floats, _: int) -> float:
    return float(column[row])


def _of_column(values: Floats, _: Floats, k: int) -> float:
    return float(values[k])


def _n_alike(
    X: Floats | BlockTable, y: Floats, value: Callable[[Floats, int], float], enough: int
) -> int:
    """Number of rows with given values, by column and its number; once it is ``enough``, that."""
    alike: NDArray[np.intp] | slice = slice(None)
    n_alike = len(y)
    for k, column in enumerate(_columns(X, y)):
        found = np.flatnonzero(_equal(column[alike], value(column, k)))
        alike = found if isinstance(alike, slice) else alike[found]
        n_alike = len(alike)
        if n_alike <= enough:
            break
    return n_alike


def _equal(values: Floats, value: float) -> NDArray[np.bool_]:
    return np.isnan(values) if np.isnan(value) else values == value


def _row_hashes(
    X: Floats | BlockTable, y: Floats, of_all_columns: bool = False
) -> tuple[NDArray[np.uint64], bool]:
    """Hash rows so that distinct rows differ, (n,), with as few columns as possible.

    Also returns whether all of them are known to differ.
    """
    hashes, y = np.full(len(y), _FIRST_STATE, dtype=np.uint64), np.ascontiguousarray(y)
    hash_rows(y, _bits(y), 0, y.shape[1], hashes)
    if not of_all_columns and _all_differ(hashes):
        return hashes, True
    if isinstance(X, SparseTable):
        values, columns, starts = X.arrays
        hash_sparse_rows(values, _bits(values), columns, starts, hashes)
        return hashes, False
    for first, last in ((0, min(_FIRST_COLUMNS, X.shape[1])), (_FIRST_COLUMNS, X.shape[1])):
        if first < last:
            for rows, block in _blocks(X):
                hash_rows(block, _bits(block), first, last, hashes[rows])
            if not of_all_columns and last < X.shape[1] and _all_differ(hashes):
                return hashes, True
    return hashes, False


def _blocks(X: Floats | BlockTable) -> Iterator[tuple[slice, Floats]]:
    if isinstance(X, BlockTable):
        return X.row_blocks(np.arange(X.shape[1]))
    return iter([(slice(0, len(X)), np.ascontiguousarray(X))])


def _all_differ(hashes: NDArray[np.uint64]) -> bool:
    ascending = np.sort(hashes)
    return not (ascending[1:] == ascending[:-1]).any()


def _bits(values: NDArray[Any]) -> NDArray[Any]:
    return values.view(np.uint64 if values.dtype == np.float64 else np.uint32)


def _masses(hashes: NDArray[np.uint64], weight: Floats) -> Floats:
    """Sum the weights of each distinct row."""
    if _all_differ(hashes):
        return weight
    order = np.argsort(hashes)
    ascending = hashes[order]
    groups = np.empty(len(order), dtype=np.int64)
    groups[order] = np.cumsum(np.concatenate([[False], ascending[1:] != ascending[:-1]]))
    return masses_of_groups(groups, weight, int(groups[order[-1]]) + 1)


def _total(values: Floats) -> float:
    return float(rounded(sum_of(values)))


def _scale(masses: Floats, weight: Floats) -> WeightScale:
    scaled = masses / masses.max()  # squares of large weights may overflow
    proportion = float(masses.max()) * quotient(sum_of(scaled * scaled), sum_of(scaled))
    unit = float(masses.min())
    multiples = masses / unit
    if (np.abs(multiples - np.rint(multiples)) > _WHOLE).any():
        few = _total(masses) < _FEWEST_FOR_PROPORTIONS * proportion
        found = common_unit(masses) if few else None
        if found is None:
            return WeightScale(proportion)
        unit = found
    own = common_unit(weight)
    return WeightScale(unit) if own is None else WeightScale(own, float(np.rint(unit / own)))


def common_unit(masses: Floats) -> float | None:
    """Find the largest number of which all masses are integer multiples, up to rounding.

    Parameters
    ----------
    masses : (m,) float64, positive

    Returns
    -------
    float or None
        ``None`` if there is none, or if multiples exceed a million, which makes them unreliable.
    """
    masses = np.unique(masses)
    largest = float(masses[-1])
    if largest < 2.0**53 and (masses == np.rint(masses)).all():
        return float(np.gcd.reduce(masses.astype(np.int64)))
    # Euclid's algorithm, vectorized over the masses.
    unit = float(masses[0])
    while unit * _LARGEST_MULTIPLE >= largest:
        multiples = masses / unit
        rest = np.abs(multiples - np.rint(multiples))
        rest = rest[rest > _NEARLY_WHOLE]
        if not len(rest):
            # The smallest mass has the smallest absolute rounding error.
            unit = float(masses[0] / np.rint(masses[0] / unit))
            multiples = masses / unit
            exact = np.abs(multiples - np.rint(multiples)) <= _WHOLE
            return unit if exact.all() else None
        unit *= float(rest.min())
    return None
