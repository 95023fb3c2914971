"""Division of the prepared data of a learner by rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any


class RowDivision(ABC):
    """Base class of what divides the prepared data of a learner by rows.

    Stages can then learn from shards of the rows (``n_shards``).
    """

    @abstractmethod
    def divided(self, data: Any, ranges: Sequence[slice]) -> list[Any]:
        """Return the ``data`` of each of several ranges of the rows.

        Parameters
        ----------
        data : object
            Result of ``prepare`` of the learner; not used afterwards.
        ranges : sequence of slice
            Consecutive ranges that cover all rows.

        Returns
        -------
        list of object
        """

    @abstractmethod
    def joined(self, parts: Sequence[Any]) -> Any:
        """Return the ``data`` of neighboring ranges together.

        Parameters
        ----------
        parts : sequence of object
            Some results of :meth:`divided`, or of this method, in their order.

        Returns
        -------
        object
        """
