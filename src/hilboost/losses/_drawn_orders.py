"""Common parts of the losses of rankings whose orders are drawn at random."""

from __future__ import annotations

from copy import copy
from typing import Self

import numpy as np

from hilboost.core.errors import InvalidParameter
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
