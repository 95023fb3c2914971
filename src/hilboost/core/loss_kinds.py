"""Interfaces of losses that set leaf values, adapt before each stage, or have groups of rows."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats
from hilboost.core.loss import Loss
from hilboost.core.target import Target


class LeafOrder(ABC):
    """Base class of order constraints on the leaf values of a model."""

    @abstractmethod
    def nearest(self, values: Floats, weight: Floats) -> Floats:
        """Return the ordered values with the smallest weighted squared distance to ``values``.

        Parameters
        ----------
        values : (n_leaves, r) float64
        weight : (n_leaves, r) float64, or (n_leaves, 1) for all outputs

        Returns
        -------
        (n_leaves, r) float64
        """


class LeafLoss(Loss):
    """Base class of losses that compute the best constant to add to ``raw`` in a leaf."""

    has_leaf_values = True

    @abstractmethod
    def leaf_values(
        self, target: Target, raw: Floats, leaves: NDArray[np.int32], n_leaves: int, columns: slice
    ) -> Floats:
        """Compute the best constants to add to some columns of ``raw`` in each leaf."""


class AdaptiveLoss(Loss):
    """Base class of losses with a parameter that is estimated from all rows before each stage."""

    adaptive = True

    @abstractmethod
    def adapted(self, target: Target, raw: Floats) -> Loss:
        """Return the loss for the next stage."""


class GroupLoss(Loss):
    """Base class of losses in which the loss of a row depends on other rows.

    These are the rows of its group, or all rows if the target has no groups.  Blocks of rows
    consist of whole groups.  The sum of ``value`` over the rows of a group is the loss of the
    group, and the mean loss is that of the groups.  Rows of zero weight must not have an effect on
    others.
    """

    couples_rows = True
