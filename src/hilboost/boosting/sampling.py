"""Random samples of the rows, to which stages are fitted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.random_bits import Purpose, key_of
from hilboost.backends.threads import ThreadTeam
from hilboost.core import dtypes
from hilboost.core.row_sample import RowSample
from hilboost.core.target import Target
from hilboost.reductions.draws import draw_rows, draw_with_replacement
from hilboost.reductions.sums import count

_LOW_BITS = 2**32 - 1


@dataclass(frozen=True)
class StageKey:
    """A stage of one member of an ensemble, by which its random numbers are found.

    They depend on nothing else, so that members may be fitted in any order, and a fit in two parts
    is the same as an uninterrupted one.
    """

    seed: int
    stage: int
    member: int = 0

    def generator(self) -> np.random.Generator:
        """Random numbers for the learner."""
        return np.random.default_rng(_words(self.seed, self.stage, self.member))

    def key(self, purpose: Purpose) -> np.uint64:
        """Key of the hashes of rows."""
        return key_of(self.seed, purpose, self.stage, self.member)


def _words(*numbers: int) -> NDArray[np.uint32]:
    """Return the seed that NumPy makes of several numbers: 32 bits after the other, (n_words,)."""
    words = []
    for number in numbers:
        words.append(number & _LOW_BITS)
        while number := number >> 32:
            words.append(number & _LOW_BITS)
    return np.array(words, dtype=np.uint32)


@dataclass(frozen=True)
class RowSampling:
    """Random sampling of the rows to which each stage is fitted (Friedman 2002)."""

    fraction: float = 1.0  # float in (0, 1]: number of drawn rows divided by the number of rows
    # whether to draw with replacement; a row drawn twice has twice the weight
    bootstrap: bool = False

    def n_drawn(self, n_rows: int) -> int:
        """Return how many of ``n`` rows a stage draws."""
        return max(1, round(self.fraction * n_rows))

    def draw(
        self, target: Target, rows: NDArray[np.uint32] | None, turn: StageKey, team: ThreadTeam
    ) -> RowSample:
        """Draw the rows and weights of one stage from ``rows`` (``None``: all); cost O(n)."""
        if target.groups is not None:
            return self._draw_groups(target, rows, turn, team)
        n = len(target.y)
        size_of_pool = count(n if rows is None else len(rows), target.share)
        size = self.n_drawn(size_of_pool)
        if size == size_of_pool and not self.bootstrap:
            return RowSample(rows, target.weight)
        key = turn.key(Purpose.ROWS_OF_STAGE)
        if self.bootstrap:
            counts = draw_with_replacement(key, n, rows, size, team, target.share)
            weight = counts if target.weight is None else counts * target.weight
            return RowSample(np.flatnonzero(counts).astype(dtypes.ROW), weight.astype(dtypes.RAW))
        return RowSample(draw_rows(key, n, rows, size, team, target.share), target.weight)

    def _draw_groups(
        self, target: Target, rows: NDArray[np.uint32] | None, turn: StageKey, team: ThreadTeam
    ) -> RowSample:
        """Draw whole groups, with the rows of each."""
        if self.fraction == 1 and not self.bootstrap:
            return RowSample(rows, target.weight)
        n_groups, pool = target.n_units, None
        if rows is not None:
            is_here = np.zeros(len(target.y), dtype=bool)
            is_here[rows] = True
            pool = np.flatnonzero(is_here[target.starts[:-1]]).astype(dtypes.ROW)
        units = Target(np.empty((n_groups, 0)), np.ones(n_groups) if self.bootstrap else None)
        drawn = self.draw(units, pool, turn, team)
        if drawn.rows is None:
            return RowSample(rows, target.weight)
        is_drawn = np.zeros(n_groups, dtype=bool)
        is_drawn[drawn.rows] = True
        chosen = np.flatnonzero(target.of_units(is_drawn)).astype(dtypes.ROW)
        if drawn.weight is None:
            return RowSample(chosen, target.weight)
        counts = target.of_units(drawn.weight)
        return RowSample(chosen, counts if target.weight is None else counts * target.weight)
