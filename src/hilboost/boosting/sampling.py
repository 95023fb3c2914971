"""Random samples of the rows, to which stages are fitted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.random_bits import Purpose, key_of
from hilboost.backends.row_draws import draw_rows, draw_with_replacement
from hilboost.backends.threads import ThreadTeam
from hilboost.core import dtypes
from hilboost.core.row_sample import RowSample
from hilboost.core.target import Target


@dataclass(frozen=True)
class Turn:
    """A stage of one member of an ensemble, by which its random numbers are found.

    They depend on nothing else, so that members may be fitted in any order, and a fit in two parts
    is the same as an uninterrupted one.
    """

    seed: int
    stage: int
    member: int = 0

    def generator(self) -> np.random.Generator:
        """Random numbers for the learner."""
        return np.random.default_rng((self.seed, self.stage, self.member))

    def key(self, purpose: Purpose) -> np.uint64:
        """Key of the hashes of rows."""
        return key_of(self.seed, purpose, self.stage, self.member)


@dataclass(frozen=True)
class RowSampling:
    """Random sampling of the rows to which each stage is fitted (Friedman 2002).

    Parameters
    ----------
    fraction : float in (0, 1]
        Number of drawn rows divided by the number of rows.
    bootstrap : bool
        Whether to draw with replacement; a row drawn twice has twice the weight.
    """

    fraction: float = 1.0
    bootstrap: bool = False

    def draw(
        self, target: Target, rows: NDArray[np.uint32] | None, turn: Turn, team: ThreadTeam
    ) -> RowSample:
        """Draw the rows and weights of one stage from ``rows`` (``None``: all); cost O(n)."""
        n = len(target.y)
        size_of_pool = n if rows is None else len(rows)
        size = max(1, round(self.fraction * size_of_pool))
        key = turn.key(Purpose.ROWS_OF_STAGE)
        if self.bootstrap:
            counts = draw_with_replacement(key, size_of_pool, size, team)
            if rows is not None:
                counts = np.bincount(rows, counts, n)
            weight = counts if target.weight is None else counts * target.weight
            return RowSample(np.flatnonzero(counts).astype(dtypes.ROW), weight.astype(dtypes.RAW))
        if size == size_of_pool:
            return RowSample(rows, target.weight)
        return RowSample(draw_rows(key, n if rows is None else rows, size, team), target.weight)
