"""Tables with columns of categories: from codes to what trees learn from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Self

import joblib
import numpy as np
from numpy.typing import NDArray

from hilboost.backends.category_splits import MAX_LEVELS
from hilboost.core.dtypes import Floats
from hilboost.core.loss import Target
from hilboost.encoders.rare_levels import kept_levels, level_weights
from hilboost.encoders.target_encoding import LevelKeys, TargetEncoding

_MANY_LEVELS = 32  # columns with more have target encoding
_MOST_STATISTICS = 64
_PRIOR_STRENGTH = 3.0


@dataclass(frozen=True)
class Encoding:
    """From codes to the columns that trees see.

    ::

        codes (n, d)  ->  codes or shares (n, d) | statistics of member 0 | of member 1 | …

    A member learns from its own statistics, which know the rows it learns from and no others.

    Attributes
    ----------
    n_columns : int
        Of the codes.
    kept : tuple of (column, new codes of its levels)
        Columns with more levels than trees tell apart.
    shares : tuple of (column, part of the rows that each level has)
        Columns with target encoding.
    statistics : tuple of TargetEncoding
        One a member, or none at all.
    """

    n_columns: int
    kept: tuple[tuple[int, NDArray[np.int64]], ...]
    shares: tuple[tuple[int, Floats], ...]
    statistics: tuple[TargetEncoding, ...] = ()

    @property
    def full_width(self) -> int:
        """Columns of the model, the mean of all members."""
        return self.n_columns + sum(statistics.width for statistics in self.statistics)

    def merged(self, codes: Floats) -> Floats:
        """The codes with rare levels merged, and shares of levels for codes of many."""
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
        """What the model sees of rows to be predicted, (n, full_width)."""
        if not self.statistics:
            return self.merged(codes)
        # Members have the same sources.
        numbers = [source.numbers(codes) for source in self.statistics[0].sources]
        return np.column_stack([self.merged(codes), *(s.encode(numbers) for s in self.statistics)])

    def equals(self, other: Encoding | None) -> bool:
        """Whether the other encodes alike."""
        return other is not None and joblib.hash(self) == joblib.hash(other)

    def attributed(self, gains: Floats) -> Floats:
        """Gains of the model's columns as those of the columns of codes they come from."""
        own = gains[: self.n_columns].copy()
        origins = [origin for statistics in self.statistics for origin in statistics.origins]
        for gain, origin in zip(gains[self.n_columns :], origins, strict=True):
            own[list(origin)] += gain / len(origin)
        return own


@dataclass(frozen=True)
class Encoder:
    """How to encode the rows of a fit, before it is known which rows members learn from.

    Attributes
    ----------
    encoding : Encoding
        Without statistics.
    categorical : tuple of (column, number of levels)
        As trees see them.
    sources : tuple of LevelKeys
        What has target encoding.
    n_classes : int or None
        Where targets are classes.
    n_targets : int
        Means of every source.
    """

    encoding: Encoding
    categorical: tuple[tuple[int, int], ...]
    sources: tuple[LevelKeys, ...]
    n_classes: int | None
    n_targets: int

    @classmethod
    def of(
        cls,
        codes: Floats,
        columns: Sequence[tuple[int, int]],
        target: Target,
        n_classes: int | None,
        statistics: str | bool,
        groups: Sequence[Sequence[int]] = (),
    ) -> Self:
        """For codes (n, d) and the category columns with their numbers of levels.

        ``statistics`` says where there are target encoding, and ``groups`` which columns may
        meet in a pair; all where it is empty.

        Trees divide the levels of a column without; with them they see the levels' shares of the
        rows in its place.
        """
        weight = target.weight
        sizes = dict(columns)
        most = {"auto": _MANY_LEVELS, True: 0, False: np.inf}[statistics]
        many = [k for k, size in sizes.items() if size > most]
        few = [k for k in sizes if k not in many]
        kept = tuple(
            (k, kept_levels(codes[:, k], sizes[k], MAX_LEVELS, weight))
            for k in few
            if sizes[k] > MAX_LEVELS
        )
        categorical = tuple((k, min(sizes[k], MAX_LEVELS)) for k in few)
        shares = tuple((k, _shares(codes[:, k], sizes[k], weight)) for k in many)
        n_targets = _statistic_targets(target, n_classes).shape[1]
        pairs = [p for p in combinations(many, 2) if not groups or meet(p, groups)]
        pairs.sort(key=lambda pair: -sizes[pair[0]] * sizes[pair[1]])
        room = max(0, _MOST_STATISTICS // n_targets - len(many))
        chosen: list[tuple[int, ...]] = sorted([*((k,) for k in many), *pairs[:room]])
        sources = tuple(LevelKeys.of(codes, c, tuple(sizes[k] for k in c)) for c in chosen)
        encoding = Encoding(codes.shape[1], kept, shares)
        return cls(encoding, categorical, sources, n_classes, n_targets)

    @property
    def width(self) -> int:
        """Columns that a member sees."""
        return self.encoding.n_columns + len(self.origins)

    @property
    def origins(self) -> list[tuple[int, ...]]:
        """The columns of codes that each column of statistics comes from."""
        return [source.columns for source in self.sources for _ in range(self.n_targets)]

    def learn(
        self,
        codes: Floats,
        target: Target,
        rows: Sequence[NDArray[np.uint32] | None],
        seed: int,
    ) -> tuple[Encoding, list[Floats]]:
        """The encoding, and what every member sees of all rows.

        Parameters
        ----------
        codes : (n, d)
        target : Target
        rows : sequence of (m,) or None
            Those that each member learns from.
        seed : int
        """
        merged = self.encoding.merged(codes)
        if not self.sources:
            return self.encoding, [merged] * len(rows)
        numbers = [source.numbers(codes) for source in self.sources]
        statistics, seen = [], []
        for member, learned in enumerate(rows):
            y = _statistic_targets(target, self.n_classes, learned)
            rng = np.random.default_rng((seed, member))
            found, columns = TargetEncoding.learn(
                self.sources, numbers, y, target.weight, learned, _PRIOR_STRENGTH, rng
            )
            statistics.append(found)
            seen.append(np.column_stack([merged, columns]))
        return replace(self.encoding, statistics=tuple(statistics)), seen


def meet(columns: Sequence[int], groups: Sequence[Sequence[int]]) -> bool:
    """Whether some group holds them all."""
    return any(set(columns) <= set(group) for group in groups)


def _shares(codes: Floats, n_levels: int, weight: Floats | None) -> Floats:
    """Part of the rows that each level has."""
    mass = level_weights(codes, n_levels, weight)
    return mass / max(mass.sum(), np.finfo(float).tiny)


def _statistic_targets(
    target: Target, n_classes: int | None, rows: NDArray[np.uint32] | None = None
) -> Floats:
    """What target encoding are means of, (n, q): the targets, or indicators of the classes.

    Two classes have one indicator, and more one each for the most frequent, at most five.  A target
    that is missing counts as the mean of the others, of ``rows`` where these are given.
    """
    if n_classes is None:
        known = ~np.isnan(target.y)
        if known.all():
            return target.y
        learned = target if rows is None else target.rows(rows)
        weight = ~np.isnan(learned.y) * (1.0 if learned.weight is None else learned.weight[:, None])
        total, mass = (weight * np.nan_to_num(learned.y)).sum(axis=0), weight.sum(axis=0)
        mean = np.divide(total, mass, out=np.zeros_like(total), where=mass > 0)
        return np.where(known, target.y, mean)
    if n_classes == 2:
        return target.y[:, :1]
    counts = np.bincount(target.y[:, 0].astype(np.int64), target.weight, n_classes)
    chosen = np.sort(np.argsort(-counts, kind="stable")[:5])
    return (target.y[:, :1] == chosen).astype(np.float64)
