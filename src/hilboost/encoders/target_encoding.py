"""Target encoding: replace a level, or a pair of levels, by the mean target of its rows.

With cross-fitting, the encoding of a training row does not depend on its own target.  The training
rows are split at random into ten folds, and each fold is encoded from the other nine.  All other
rows (held-out rows and new rows) are encoded from all training rows::

    rows      training                        held out
    folds     0  1  2 …  9
    encoded   from the nine other folds       from folds 0 to 9
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.exact_sums import masses_of_groups, quotient, sum_of, sums_of_groups
from hilboost.backends.row_draws import assign_folds
from hilboost.core.dtypes import Floats

N_PARTS = 10


@dataclass(frozen=True)
class LevelKeys:
    """The levels of one category column, or the pairs of levels of two columns.

    Attributes
    ----------
    columns : tuple of int
        One or two code columns.
    sizes : tuple of int
        Number of levels of each column, without the level for missing values.
    keys : (n_keys,) int64, ascending
    """

    columns: tuple[int, ...]
    sizes: tuple[int, ...]
    keys: NDArray[np.int64]

    @classmethod
    def of(cls, codes: Floats, columns: tuple[int, ...], sizes: tuple[int, ...]) -> Self:
        """Collect the keys of codes (n, d), where NaN is missing and -1 is an unseen level."""
        keys = np.sort(_keys(codes, columns, sizes))
        # Sorting takes a tenth of the time of ``np.unique``, which uses hashing.
        return cls(columns, sizes, keys[np.diff(keys, prepend=-1) > 0])

    def numbers(self, codes: Floats) -> NDArray[np.int64]:
        """Index of each row's key, (n,); an unknown key has the index ``len(self.keys)``."""
        keys = _keys(codes, self.columns, self.sizes)
        if not len(self.keys):
            return np.zeros(len(keys), dtype=np.int64)
        found = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[found] == keys, found, len(self.keys))


def _keys(codes: Floats, columns: tuple[int, ...], sizes: tuple[int, ...]) -> NDArray[np.int64]:
    """Return ``code_0 * (size_1 + 1) + code_1``; missing is the last code, and -1 means unseen."""
    keys = np.zeros(len(codes), dtype=np.int64)
    unseen = np.zeros(len(codes), dtype=bool)
    for column, size in zip(columns, sizes, strict=True):
        column_codes = codes[:, column]
        missing = np.isnan(column_codes)
        whole = np.where(missing, size, column_codes).astype(np.int64)
        unseen |= whole < 0
        keys = keys * (size + 1) + whole
    return np.where(unseen, -1, keys)


@dataclass(frozen=True)
class TargetEncoding:
    """Sums of weights and targets per key, for one model.

    Attributes
    ----------
    sources : tuple of LevelKeys
    weights : tuple of (n_keys + 1,) float64
        The last entry, for unknown keys, is zero.
    sums : tuple of (n_keys + 1, q) float64
    prior : (q,) float64
        Weighted mean of the targets.
    strength : float
        Weight of the prior in each mean.
    """

    sources: tuple[LevelKeys, ...]
    weights: tuple[Floats, ...]
    sums: tuple[Floats, ...]
    prior: Floats
    strength: float

    @property
    def width(self) -> int:
        """Number of encoded columns: one mean per source and target."""
        return len(self.prior) * len(self.sources)

    @property
    def origins(self) -> list[tuple[int, ...]]:
        """The code columns from which each encoded column is computed."""
        return [source.columns for source in self.sources for _ in range(len(self.prior))]

    @classmethod
    def learn(
        cls,
        sources: Sequence[LevelKeys],
        numbers: Sequence[NDArray[np.int64]],
        y: Floats,
        weight: Floats | None,
        rows: NDArray[np.uint32] | None,
        strength: float,
        key: np.uint64,
    ) -> tuple[Self, Floats]:
        """Learn the encoding from the training rows, and encode all rows.

        Parameters
        ----------
        sources : sequence of LevelKeys
        numbers : sequence of (n,) int64
            Key indices of all rows, one array per source.
        y : (n, q) float64
        weight : (n,) float64 or None
        rows : (m,) or None
            Training rows; the targets of other rows are not read.  ``None`` means all rows.
        strength : float
        key : uint64
            Of the hashes that assign the rows to folds.

        Returns
        -------
        statistics, encoded : TargetEncoding, (n, width) float64
            Cost O(n q) per source and fold.
        """
        inside = np.arange(len(y)) if rows is None else rows.astype(np.int64)
        w = np.ones(len(inside)) if weight is None else weight[inside]
        known, target = [number[inside] for number in numbers], y[inside]
        prior = np.array([quotient(sum_of(y, w), sum_of(w)) for y in target.T])
        statistics = cls._of(sources, known, target, w, prior, strength)
        encoded = statistics.encode(numbers)
        parts = assign_folds(key, np.zeros(len(inside)), N_PARTS, inside)
        for part in range(N_PARTS):
            here, others = parts == part, parts != part
            rest = cls._of(
                sources, [k[others] for k in known], target[others], w[others], prior, strength
            )
            encoded[inside[here]] = rest.encode([k[here] for k in known])
        return statistics, encoded

    @classmethod
    def _of(
        cls,
        sources: Sequence[LevelKeys],
        numbers: Sequence[NDArray[np.int64]],
        y: Floats,
        weight: Floats,
        prior: Floats,
        strength: float,
    ) -> Self:
        """Sum over the given rows, all of which are training rows."""
        weights: list[Floats] = []
        sums: list[Floats] = []
        for source, keys in zip(sources, numbers, strict=True):
            size = len(source.keys) + 1
            weights.append(masses_of_groups(keys, weight, size))
            sums.append(np.column_stack([sums_of_groups(keys, c, weight, size) for c in y.T]))
        return cls(tuple(sources), tuple(weights), tuple(sums), prior, strength)

    def encode(self, numbers: Sequence[NDArray[np.int64]]) -> Floats:
        """Encode rows that are not training rows, (n, width).

        ``numbers`` contains the key indices of the rows, (n,) per source, as returned by
        :meth:`LevelKeys.numbers`.  Cost O(n width).
        """
        columns = []
        for keys, weight, sums in zip(numbers, self.weights, self.sums, strict=True):
            # Look up first, then divide: encoding one row must not cost as much as all keys.
            prior = self.strength * self.prior
            columns.append((sums[keys] + prior) / (weight[keys] + self.strength)[:, None])
        return np.column_stack(columns)
