"""Targets: encoded labels with sample weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats
from hilboost.core.exchange import RowShare


@dataclass(frozen=True)
class Target:
    """Encoded labels with sample weights.

    Attributes
    ----------
    y : (n, c) float64
        Encoded labels: target values, or class codes (c = 1).
    weight : (n,) float64 or None
        Sample weights; ``None`` means one for each row.
    groups : (n,) int64 or None
        Number of the group of each row, ascending: the rows of a group follow each other.  ``None``
        if rows are not grouped.  The rows of a group have the same weight.
    share : RowShare or None
        Which rows of the table these are, if other workers have the others; ``None`` if all rows
        are here.
    """

    y: Floats
    weight: Floats | None = None
    groups: NDArray[np.int64] | None = None
    share: RowShare | None = None

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """First row of each group, and the number of rows, (q + 1,); one group without groups."""
        n = len(self.y)
        if self.groups is None:
            return np.array([0, n])
        first = np.flatnonzero(np.diff(self.groups, prepend=-1))
        return np.append(first, n)

    @property
    def n_units(self) -> int:
        """Number of groups, or of rows without groups: what folds and samples consist of."""
        return len(self.y) if self.groups is None else len(self.starts) - 1

    def of_units(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the value of the unit of each row.

        Parameters
        ----------
        values : (n_units,) array
            One value for each group, or for each row without groups.

        Returns
        -------
        (n,) array
        """
        return values if self.groups is None else np.repeat(values, np.diff(self.starts))

    @property
    def n_rows(self) -> int:
        """Number of rows of the whole table."""
        return len(self.y) if self.share is None else self.share.n_rows

    def with_y(self, y: Floats) -> Target:
        """Return a target of the same rows with other labels.

        Parameters
        ----------
        y : (n, c) float64

        Returns
        -------
        Target
        """
        return replace(self, y=y)

    def rows(self, index: Any) -> Target:
        """Return the target of a subset of the rows.

        Parameters
        ----------
        index : slice or index array
            Ascending, and with all rows of a group or none, if rows are grouped.

        Returns
        -------
        Target
        """
        return Target(
            self.y[index],
            None if self.weight is None else self.weight[index],
            None if self.groups is None else self.groups[index],
            self.share and self.share.rows(index),
        )

    def followed_by(self, other: Target) -> Target:
        """Return the target of the rows of both, all of which are here.

        Parameters
        ----------
        other : Target
            With weights if and only if this one has weights.  Neither has groups.

        Returns
        -------
        Target
        """
        y = np.concatenate([self.y, other.y])
        if self.weight is None or other.weight is None:
            return Target(y)
        return Target(y, np.concatenate([self.weight, other.weight]))
