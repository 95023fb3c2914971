"""Common parts of the losses of rankings whose orders are drawn at random."""

from __future__ import annotations

from copy import copy
from typing import Self

import numpy as np

from hilboost.losses._ranking import FirstPositionsLoss


class DrawnOrderLoss(FirstPositionsLoss):
    """Base class of losses of the first ``k`` positions in random orders."""

    _key = np.uint64(0)

    def drawn(self, key: np.uint64) -> Self:
        """Return the loss with the random orders of a stage."""
        found = copy(self)
        found._key = key
        return found
