"""Rows that are divided among workers, and what the workers exchange."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats


class Exchange(ABC):
    """Base class of the exchange between workers that train one model together.

    All workers run the same program, each on its own rows, and call the same methods in the same
    order.  Each method returns the same result to every worker.
    """

    @property
    @abstractmethod
    def rank(self) -> int:
        """Number of this worker."""

    @property
    @abstractmethod
    def n_workers(self) -> int:
        """Number of workers."""

    @abstractmethod
    def sum(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the sum of an array, which has the same shape in every worker."""

    @abstractmethod
    def merged(self, sums: NDArray[np.int64]) -> NDArray[np.int64]:
        """Add exact sums (..., 5) of all workers; see :mod:`hilboost.backends.exact_sums`."""

    @abstractmethod
    def largest(self, values: Floats) -> Floats:
        """Return the largest values of an array, which has the same shape in every worker."""

    @abstractmethod
    def added(self, values: Floats) -> Floats:
        """Return the sum of an array over all workers, whose rounding depends on their number."""

    @abstractmethod
    def first(self, own: object) -> Any:
        """Return the object of worker 0."""

    @abstractmethod
    def gathered(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return the rows (m, ...) of all workers in the order of the workers, (n, ...)."""


@dataclass(frozen=True)
class RowShare:
    """The rows of a table that are here, where other workers have the others.

    Attributes
    ----------
    exchange : Exchange
    n_rows : int
        Number of rows of the whole table.
    numbers : (n,) uint32
        Numbers of the rows that are here, ascending.
    """

    exchange: Exchange
    n_rows: int
    numbers: NDArray[np.uint32]

    @classmethod
    def block(cls, n_rows: int, exchange: Exchange) -> RowShare:
        """Return one of the equal blocks into which workers divide rows that all of them have."""
        rank, n_workers = exchange.rank, exchange.n_workers
        begin, end = n_rows * rank // n_workers, n_rows * (rank + 1) // n_workers
        return cls(exchange, n_rows, np.arange(begin, end, dtype=np.uint32))

    def rows(self, index: Any) -> RowShare:
        """Return the share of some of the rows, which keep their numbers."""
        return replace(self, numbers=self.numbers[index])
