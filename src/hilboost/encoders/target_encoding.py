"""Target encoding: a level of a category, or of a pair of them, by the mean target of its rows.

A row never sees its own target.  The rows that a model learns from are dealt into ten parts, and
each part is encoded by the other nine; every other row (held out, or to be predicted) is encoded by
all rows learned from, and by none else::

    rows      learned from                     held out
    parts     0  1  2 …  9
    encoded   by the nine other parts         by parts 0 to 9
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats

N_PARTS = 10


@dataclass(frozen=True)
class LevelKeys:
    """The levels of one category, or pairs of levels of two.

    Attributes
    ----------
    columns : tuple of int
        One column of codes, or two.
    sizes : tuple of int
        Levels of each, not counting the one of missing values.
    keys : (n_keys,) int64, ascending
    """

    columns: tuple[int, ...]
    sizes: tuple[int, ...]
    keys: NDArray[np.int64]

    @classmethod
    def of(cls, codes: Floats, columns: tuple[int, ...], sizes: tuple[int, ...]) -> Self:
        """All keys of a table of codes, (n, d) with NaN for missing and -1 for unseen levels."""
        keys = np.sort(_keys(codes, columns, sizes))
        # Sorting takes a tenth of the time of ``np.unique``, which hashes.
        return cls(columns, sizes, keys[np.diff(keys, prepend=-1) > 0])

    def numbers(self, codes: Floats) -> NDArray[np.int64]:
        """Number of the key of every row, (n,); the number of keys where it is not among them."""
        keys = _keys(codes, self.columns, self.sizes)
        if not len(self.keys):
            return np.zeros(len(keys), dtype=np.int64)
        found = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[found] == keys, found, len(self.keys))


def _keys(codes: Floats, columns: tuple[int, ...], sizes: tuple[int, ...]) -> NDArray[np.int64]:
    """``code_0 * (size_1 + 1) + code_1``, missing values the last code, -1 where one is unseen."""
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
    """Sums of weight and target of every key, for one model.

    Attributes
    ----------
    sources : tuple of LevelKeys
    weights : tuple of (n_keys + 1,) float64
        The last entry, of unknown keys, is zero.
    sums : tuple of (n_keys + 1, q) float64
    prior : (q,) float64
        Weighted mean of the targets.
    strength : float
        Weight of the prior in a mean.
    """

    sources: tuple[LevelKeys, ...]
    weights: tuple[Floats, ...]
    sums: tuple[Floats, ...]
    prior: Floats
    strength: float

    @property
    def width(self) -> int:
        """Columns it makes: a mean for each source and target."""
        return len(self.prior) * len(self.sources)

    @property
    def origins(self) -> list[tuple[int, ...]]:
        """The columns of codes that each column it makes comes from."""
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
        rng: np.random.Generator,
    ) -> tuple[Self, Floats]:
        """The statistics of some rows, and the encoding of all.

        Parameters
        ----------
        sources : sequence of LevelKeys
        numbers : sequence of (n,) int64
            Of the keys of all rows.
        y : (n, q) float64
        weight : (n,) float64 or None
        rows : (m,) or None
            To learn from; nothing is read of the targets of others.  ``None`` is all rows.
        strength : float
        rng : Generator
            Deals the rows into parts.

        Returns
        -------
        statistics, encoded : TargetEncoding, (n, width) float64
            Cost O(n q) a source and part.
        """
        inside = np.arange(len(y)) if rows is None else rows.astype(np.int64)
        w = np.ones(len(inside)) if weight is None else weight[inside]
        known, target = [number[inside] for number in numbers], y[inside]
        prior = np.average(target, axis=0, weights=w)
        statistics = cls._of(sources, known, target, w, prior, strength)
        encoded = statistics.encode(numbers)
        parts = rng.permutation(len(inside)) % N_PARTS
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
        """Sums over rows, all of which are learned from."""
        weights: list[Floats] = []
        sums: list[Floats] = []
        for source, keys in zip(sources, numbers, strict=True):
            size = len(source.keys) + 1
            weights.append(np.bincount(keys, weight, size).astype(np.float64))
            sums.append(
                np.column_stack([np.bincount(keys, weight * column, size) for column in y.T])
            )
        return cls(tuple(sources), tuple(weights), tuple(sums), prior, strength)

    def encode(self, numbers: Sequence[NDArray[np.int64]]) -> Floats:
        """Columns of rows that were not learned from, (n, width).

        ``numbers`` are the rows' keys, (n,) for each source, as :meth:`LevelKeys.numbers` has them.
        Cost O(n width).
        """
        columns = []
        for keys, weight, sums in zip(numbers, self.weights, self.sums, strict=True):
            # Looked up before they are divided: one row must not cost as much as all keys.
            prior = self.strength * self.prior
            columns.append((sums[keys] + prior) / (weight[keys] + self.strength)[:, None])
        return np.column_stack(columns)
