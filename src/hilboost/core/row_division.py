"""Division of the prepared data of a learner by rows: among shards, and among workers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from hilboost.core.base_model import Term
from hilboost.core.dtypes import Floats
from hilboost.core.exchange import RowShare


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

    @abstractmethod
    def prepared_like(self, data: Any, X: Any) -> Any:
        """Prepare other rows as the rows of ``data`` are.

        Parameters
        ----------
        data : object
            Result of ``prepare`` of the learner.
        X : (m, d) float64, or a table that is read in blocks

        Returns
        -------
        object
            For :meth:`add_outputs`.
        """

    @abstractmethod
    def add_outputs(self, data: Any, terms: Sequence[Term], raw: Floats, n_threads: int) -> None:
        """Add the outputs of base models to ``raw``, for the rows of a part of the data.

        The same bits as with ``sum_of`` of the base models on the inputs.

        Parameters
        ----------
        data : object
            A result of :meth:`divided`, :meth:`joined` or :meth:`prepared_like`.
        terms : sequence of Term
            Base models that the learner has fitted, with their coefficients.
        raw : (n, r) float64
            Modified in place.
        n_threads : int
        """


PrepareAmongWorkers = Callable[[Any, Any, Floats | None, int, int, RowShare], Any]
"""Takes a learner, the arguments of its ``prepare``, and what connects the workers.

The rows are those that are here, or all rows if workers divide kernel values.
"""
