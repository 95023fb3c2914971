"""Encoding of category columns: level frequencies, encoded means, and the input matrix of trees."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Self

import joblib
import numpy as np
from numpy.typing import NDArray

from hilboost.backends.random_bits import Purpose, key_of
from hilboost.core.dtypes import Floats, Ints
from hilboost.core.target import Target
from hilboost.encoders.target_encoding import LevelKeys, TargetEncoding, leading
from hilboost.engine import MAX_LEVELS
from hilboost.reductions.sums import count_rows, masses_of_groups, mean, total_weight
from hilboost.tables.files import column_of, encoded_table

_MOST_CLASSES = 5

Averaged = Callable[[Target, NDArray[np.uint32] | None], Target]
"""Maps a target and the training rows, or ``None`` for all, to values (n, q) and their weights."""


def known_numbers(target: Target, rows: NDArray[np.uint32] | None = None) -> Target:
    """Return the targets (n, q); missing ones are replaced by the mean over the rows."""
    known = ~np.isnan(target.y)
    if not count_rows(~known.all(axis=1), target):
        return target
    learned = target if rows is None else target.rows(rows)
    mean = np.array([_mean_of_known(y, learned) for y in learned.y.T])
    return target.with_y(np.where(known, target.y, mean))


def class_indicators(target: Target, n_classes: int) -> Floats:  # (n, 1) or (n, 5) float64
    """Return the indicator of the second of two classes, or of the five most frequent ones."""
    if n_classes == 2:
        return target.y[:, :1].astype(np.float64, copy=False)
    codes = target.y[:, 0].astype(np.int64)
    counts = masses_of_groups(codes, n_classes, target)
    chosen = np.sort(np.argsort(-counts, kind="stable")[:_MOST_CLASSES])
    return (target.y[:, :1] == chosen).astype(np.float64)


def _mean_of_known(y: Floats, target: Target) -> float:
    known = np.flatnonzero(~np.isnan(y))
    seen = target.with_y(y[:, None]).rows(known)
    return float(mean(seen)[0]) if total_weight(seen) > 0 else 0.0


def level_weights(codes: Floats, n_levels: int, target: Target) -> Floats:
    """Total weight of the rows in each level, (n_levels,); see :func:`kept_levels`.

    Cost O(n).
    """
    levels = np.where(codes >= 0, codes, -1).astype(np.int64)
    return masses_of_groups(levels, n_levels, target)


def kept_levels(codes: Floats, n_levels: int, most: int, target: Target) -> Ints:
    """New codes (n_levels,): the ``most`` frequent levels keep their order, others share the last.

    ``codes`` (n,) of missing (NaN) and unseen levels (-1) are ignored, and ties go to the lower
    code.
    """
    if n_levels <= most:
        return np.arange(n_levels)
    mass = level_weights(codes, n_levels, target)
    kept = np.sort(np.argsort(-mass, kind="stable")[: most - 1])
    new = np.full(n_levels, most - 1)
    new[kept] = np.arange(most - 1)
    return new


_MANY_LEVELS = 32  # columns with more have target encoding
_MOST_STATISTICS = 64
_MOST_TARGETS = 8
_PRIOR_STRENGTH = 3.0


@dataclass(frozen=True)
class Encoding:
    """Map category codes to the input columns of trees.

    ::

        codes (n, d)  ->  codes or shares (n, d) | encoding of member 0 | of member 1 | …

    Each ensemble member uses its own target encoding, computed only from its training rows.
    """

    n_columns: int  # number of code columns
    # tuple of (column, new codes of its levels): columns with more levels than trees can
    # distinguish
    kept: tuple[tuple[int, Ints], ...]
    # tuple of (column, fraction of the rows in each level): columns with target encoding
    shares: tuple[tuple[int, Floats], ...]
    # one per ensemble member; empty without target encoding
    statistics: tuple[TargetEncoding, ...] = ()

    @property
    def full_width(self) -> int:
        """Number of columns of the whole model, which averages all members."""
        return self.n_columns + sum(statistics.width for statistics in self.statistics)

    def merged(self, codes: Floats) -> Floats:
        """Merge rare levels; replace the codes of target-encoded columns by level frequencies."""
        if not self.kept and not self.shares:
            return codes
        codes = codes.copy()
        for column, new in self.kept:
            known = codes[:, column] >= 0
            codes[known, column] = new[codes[known, column].astype(np.int64)]
        for column, share in self.shares:
            known = codes[:, column] >= 0
            codes[known, column] = share[codes[known, column].astype(np.int64)]
            codes[~known & ~np.isnan(codes[:, column]), column] = 0.0
        return codes

    def encode(self, codes: Floats) -> Floats:
        """Encode rows for prediction, (n, full_width)."""
        if not self.statistics:
            return self.merged(codes)
        # All members have the same sources.
        numbers = [source.numbers(codes) for source in self.statistics[0].sources]
        return np.column_stack([self.merged(codes), *(s.encode(numbers) for s in self.statistics)])

    def equals(self, other: Encoding | None) -> bool:
        """Return whether the other encoding is identical."""
        return other is not None and joblib.hash(self) == joblib.hash(other)

    def attributed(self, gains: Floats) -> Floats:
        """Attribute the gains of encoded columns to their code columns."""
        own = gains[: self.n_columns].copy()
        origins = [origin for statistics in self.statistics for origin in statistics.origins]
        for gain, origin in zip(gains[self.n_columns :], origins, strict=True):
            own[list(origin)] += gain / len(origin)
        return own


@dataclass(frozen=True)
class Encoder:
    """Encoding of a fit before the rows of each ensemble member are known."""

    encoding: Encoding  # without target encoding
    # tuple of (column, number of levels): columns whose levels are split by trees
    categorical: tuple[tuple[int, int], ...]
    sources: tuple[LevelKeys, ...]  # columns and pairs of columns with target encoding
    # maps a target and training rows to the values (n, q) whose weighted means encode a level
    averaged: Averaged
    n_targets: int  # number of encoded columns per source

    @classmethod
    def of(
        cls,
        codes: Floats,
        columns: Sequence[tuple[int, int]],
        target: Target,
        averaged: Averaged,
        statistics: str | bool,
        groups: Sequence[Sequence[int]] = (),
    ) -> Self:
        """Choose the encoding of each category column of the codes (n, d).

        ``columns`` gives the category columns with their numbers of levels, and ``statistics``
        those with target encoding, where level frequencies replace the codes; of more than eight
        targets, the leading principal components of their means are encoded.  ``groups`` restricts
        which columns may form a pair; an empty sequence allows all.  Trees partition the levels of
        other columns.
        """
        sizes = dict(columns)
        most = {"auto": _MANY_LEVELS, True: 0, False: np.inf}[statistics]
        many = [k for k, size in sizes.items() if size > most]
        few = [k for k in sizes if k not in many]
        kept = tuple(
            (k, kept_levels(column_of(codes, k), sizes[k], MAX_LEVELS, target))
            for k in few
            if sizes[k] > MAX_LEVELS
        )
        categorical = tuple((k, min(sizes[k], MAX_LEVELS)) for k in few)
        shares = tuple((k, _shares(column_of(codes, k), sizes[k], target)) for k in many)
        n_values = averaged(target, None).y.shape[1]
        pairs = [p for p in combinations(many, 2) if not groups or meet(p, groups)]
        pairs.sort(key=lambda pair: -sizes[pair[0]] * sizes[pair[1]])
        n_pairs = max(0, _MOST_STATISTICS // n_values - len(many))
        chosen: list[tuple[int, ...]] = sorted([*((k,) for k in many), *pairs[:n_pairs]])
        sources = tuple(LevelKeys.of(codes, c, tuple(sizes[k] for k in c), target) for c in chosen)
        encoding = Encoding(codes.shape[1], kept, shares)
        n_targets = min(n_values, _MOST_TARGETS)
        if n_targets < n_values:
            n_targets = min(n_targets, sum(len(source.keys) + 1 for source in sources))
        return cls(encoding, categorical, sources, averaged, n_targets)

    @property
    def width(self) -> int:
        """Number of input columns of each ensemble member."""
        return self.encoding.n_columns + len(self.origins)

    @property
    def origins(self) -> list[tuple[int, ...]]:
        """The code columns from which each target-encoded column is computed."""
        return [source.columns for source in self.sources for _ in range(self.n_targets)]

    def learn(
        self,
        codes: Floats,  # (n, d)
        target: Target,
        # sequence of (m,) or None: training rows of each member; ``None`` means all rows
        rows: Sequence[NDArray[np.uint32] | None],
        seed: int,
    ) -> tuple[Encoding, list[Floats]]:
        """Learn the encoding, and encode all rows for each ensemble member."""
        encode_block = self.encoding.merged
        if not self.sources:
            changes = self.encoding.kept or self.encoding.shares
            none = np.empty((len(codes), 0))
            merged = encoded_table(codes, encode_block, none) if changes else codes
            return self.encoding, [merged] * len(rows)
        numbers = [source.numbers(codes) for source in self.sources]
        statistics, seen = [], []
        for member, learned in enumerate(rows):
            values = self.averaged(target, learned)
            if values.y.shape[1] > self.n_targets:
                y = leading(self.sources, numbers, values, learned, self.n_targets)
                values = values.with_y(y)
            key = key_of(seed, Purpose.PARTS_OF_ENCODING, member=member)
            found, columns = TargetEncoding.learn(
                self.sources, numbers, values, learned, _PRIOR_STRENGTH, key
            )
            statistics.append(found)
            seen.append(encoded_table(codes, encode_block, columns))
        return replace(self.encoding, statistics=tuple(statistics)), seen


def meet(columns: Sequence[int], groups: Sequence[Sequence[int]]) -> bool:
    """Return whether one of the groups contains all columns."""
    return any(set(columns) <= set(group) for group in groups)


def _shares(codes: Floats, n_levels: int, target: Target) -> Floats:
    """Weighted fraction of the rows in each level."""
    mass = level_weights(codes, n_levels, target)
    return mass / max(mass.sum(), np.finfo(float).tiny)
