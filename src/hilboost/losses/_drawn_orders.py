"""Common parts of the losses of rankings whose orders are drawn at random."""

from __future__ import annotations

from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.random_bits import bits_of
from hilboost.core.errors import InvalidParameter
from hilboost.core.target import Target
from hilboost.losses._ranking import GainLoss


class DrawnOrderLoss(GainLoss):
    """Base class of losses of the first ``k`` positions in random orders.

    Parameters
    ----------
    k : int
        Number of positions that count.
    gain : {"exponential", "linear"}
        Gain of a label ``y``: ``2 ** y - 1`` or ``y``.

    Raises
    ------
    InvalidParameter
        If ``k`` is less than 1, or the gain has another name.
    """

    def __init__(self, k: int, gain: str) -> None:
        super().__init__(gain)
        if k < 1:
            raise InvalidParameter(f"k must be at least 1; got {k!r}.")
        self.k = int(k)
        self._key = np.uint64(0)

    def drawn(self, key: np.uint64) -> Self:
        """Return the loss with the random orders of a stage."""
        found = copy(self)
        found._key = key
        return found

    def _keys(self, target: Target) -> NDArray[np.uint64]:
        """Keys of the random numbers of the groups, (q,)."""
        starts = target.starts
        numbers = np.zeros(1) if target.groups is None else target.groups[starts[:-1]]
        return np.array([bits_of(self._key, int(number)) for number in numbers], dtype=np.uint64)


def scratch_of(target: Target, n_by_row: int, n_by_place: int) -> tuple[NDArray[Any], ...]:
    """Working memory of the loops: order and arrays by row, places and arrays by place."""
    n, longest = len(target.y), int(np.diff(target.starts).max(initial=0))
    return (
        np.empty(n, dtype=np.int64),
        *(np.empty(n) for _ in range(n_by_row)),
        np.empty(longest, dtype=np.int64),
        *(np.empty(longest) for _ in range(n_by_place)),
    )
