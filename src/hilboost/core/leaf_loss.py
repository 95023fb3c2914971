"""Interface of losses with a best constant in each leaf."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats
from hilboost.core.loss import Loss
from hilboost.core.target import Target


class LeafLoss(Loss):
    """Base class of losses that compute the best constant to add to ``raw`` in a leaf."""

    has_leaf_values = True

    @abstractmethod
    def leaf_values(
        self,
        target: Target,
        raw: Floats,
        leaves: NDArray[np.int32],
        n_leaves: int,
        columns: slice,
    ) -> Floats:
        """Compute the best constants to add to some columns of ``raw`` in each leaf."""
