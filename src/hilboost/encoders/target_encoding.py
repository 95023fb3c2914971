"""Target encoding: replace a level, or a pair of levels, by the mean target of its rows.

With cross-fitting, the encoding of a training row does not depend on its own target.  The training
rows are split into ten folds, at random, of whole groups or of blocks of time, and each fold is
encoded from the other nine.  A row with a whole weight stands for so many equal rows, nine tenths
of which are in other random folds than each.  All other rows (held-out rows and new rows) are
encoded from all training rows::

    rows      training                        held out
    folds     0  1  2 …  9
    encoded   from the nine other folds       from folds 0 to 9
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats, Ints
from hilboost.core.target import Target
from hilboost.reductions.row_splits import parts
from hilboost.reductions.rows import union
from hilboost.reductions.sums import count_rows, masses_of_groups, mean, sums_of_groups
from hilboost.tables.files import column_of

N_PARTS = 10


@dataclass(frozen=True)
class LevelKeys:
    """The levels of one category column, or the pairs of levels of two columns."""

    columns: tuple[int, ...]  # one or two code columns
    sizes: tuple[int, ...]  # number of levels of each column, without the level for missing values
    keys: Ints  # (n_keys,) int64, ascending

    @classmethod
    def of(
        cls, codes: Floats, columns: tuple[int, ...], sizes: tuple[int, ...], target: Target
    ) -> Self:
        """Collect the keys of codes (n, d), where NaN is missing and -1 is an unseen level."""
        keys = np.sort(_keys(codes, columns, sizes))
        # Sorting takes a tenth of the time of ``np.unique``, which uses hashing.
        return cls(columns, sizes, union(keys[np.diff(keys, prepend=-1) > 0], target))

    def numbers(self, codes: Floats) -> Ints:
        """Index of each row's key, (n,); an unknown key has the index ``len(self.keys)``."""
        keys = _keys(codes, self.columns, self.sizes)
        if not len(self.keys):
            return np.zeros(len(keys), dtype=np.int64)
        found = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[found] == keys, found, len(self.keys))


def _keys(codes: Floats, columns: tuple[int, ...], sizes: tuple[int, ...]) -> Ints:
    """Return ``code_0 * (size_1 + 1) + code_1``; missing is the last code, and -1 means unseen."""
    keys = np.zeros(len(codes), dtype=np.int64)
    unseen = np.zeros(len(codes), dtype=bool)
    for column, size in zip(columns, sizes, strict=True):
        column_codes = column_of(codes, column)
        missing = np.isnan(column_codes)
        whole = np.where(missing, size, column_codes).astype(np.int64)
        unseen |= whole < 0
        keys = keys * (size + 1) + whole
    return np.where(unseen, -1, keys)


@dataclass(frozen=True)
class TargetEncoding:
    """Sums of weights and targets per key, for one model."""

    sources: tuple[LevelKeys, ...]
    weights: tuple[Floats, ...]  # the last entry, for unknown keys, is zero
    sums: tuple[Floats, ...]
    prior: Floats  # (q,) float64: weighted mean of the targets
    strength: float  # weight of the prior in each mean

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
        # sequence of (n,) int64: key indices of all rows, one array per source
        numbers: Sequence[Ints],
        target: Target,  # with the values to be averaged, (n, q)
        # (m,) or None: training rows; the targets of other rows are not read.  ``None`` means all
        # rows.
        rows: NDArray[np.uint32] | None,
        strength: float,
        key: np.uint64,  # of the hashes that assign the rows to folds
    ) -> tuple[Self, Floats]:  # targetEncoding, (n, width) float64: cost O(n q) per source and fold
        """Learn the encoding from the training rows, and encode all rows."""
        inside = np.arange(len(target.y)) if rows is None else rows.astype(np.int64)
        weight = np.ones(len(inside)) if target.weight is None else target.weight[inside]
        learned = replace(target.rows(inside), weight=weight)
        known = [number[inside] for number in numbers]
        prior = mean(learned)
        statistics = cls._of(sources, known, learned, prior, strength)
        encoded = statistics.encode(numbers)
        part_of = parts(key, N_PARTS, learned, inside)
        is_count = not count_rows(weight != np.rint(weight), learned) and not learned.dependence
        twins = np.maximum(weight - 1, 0) * (1 - 1 / N_PARTS) if is_count else np.zeros(len(inside))
        for part in range(N_PARTS):
            here, others = part_of == part, part_of != part
            rest = cls._of(
                sources, [k[others] for k in known], learned.rows(others), prior, strength
            )
            keys, mass = [k[here] for k in known], twins[here]
            encoded[inside[here]] = rest.encode(keys, mass[:, None], learned.y[here])
        return statistics, encoded

    @classmethod
    def _of(
        cls,
        sources: Sequence[LevelKeys],
        numbers: Sequence[Ints],
        target: Target,
        prior: Floats,
        strength: float,
    ) -> Self:
        """Sum over the given rows, all of which are training rows, with their weights."""
        weights: list[Floats] = []
        sums: list[Floats] = []
        for source, keys in zip(sources, numbers, strict=True):
            size = len(source.keys) + 1
            weights.append(masses_of_groups(keys, size, target))
            found = [sums_of_groups(keys, y, size, target) for y in target.y.T]
            sums.append(np.column_stack(found))
        return cls(tuple(sources), tuple(weights), tuple(sums), prior, strength)

    def encode(
        self, numbers: Sequence[Ints], mass: Floats | float = 0.0, values: Floats | float = 0.0
    ) -> Floats:
        """Encode rows that are not training rows, (n, width).

        ``numbers`` contains the key indices of the rows, (n,) per source, as returned by
        :meth:`LevelKeys.numbers`.  Each row adds ``mass`` (n, 1) with its own ``values`` (n, q).
        Cost O(n width).
        """
        columns = []
        for keys, weight, sums in zip(numbers, self.weights, self.sums, strict=True):
            # Look up first, then divide: encoding one row must not cost as much as all keys.
            total = sums[keys] + self.strength * self.prior + mass * values
            columns.append(total / (weight[keys][:, None] + self.strength + mass))
        return np.column_stack(columns)


def leading(
    sources: Sequence[LevelKeys],
    numbers: Sequence[Ints],
    target: Target,
    rows: NDArray[np.uint32] | None,
    n_components: int,
) -> Floats:
    """Project targets (n, q) on the leading principal components of the means of all levels.

    ``numbers`` and ``rows`` are as in :meth:`TargetEncoding.learn`.
    """
    inside = np.arange(len(target.y)) if rows is None else rows.astype(np.int64)
    learned = target.rows(inside)
    prior = mean(learned)
    means = TargetEncoding._of(sources, [k[inside] for k in numbers], learned, prior, 0.0)
    weight = np.concatenate(means.weights)[:, None]
    deviations = (np.concatenate(means.sums) - weight * prior) / np.sqrt(np.maximum(weight, 1e-300))
    directions = np.linalg.svd(deviations, full_matrices=False)[2][:n_components]
    # Unlike a product by BLAS, the last bits do not depend on the number of rows.
    return np.einsum("ij,kj->ik", target.y, directions, order="C")
