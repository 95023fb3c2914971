"""Interface of order constraints on leaf values."""

from __future__ import annotations

from abc import ABC, abstractmethod

from hilboost.core.dtypes import Floats


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
