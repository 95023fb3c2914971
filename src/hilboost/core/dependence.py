"""Rows that depend on each other, so that validation must not divide them at random."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

LEARNED, HELD = 1, 2


@dataclass(frozen=True)
class Dependence:
    """By what rows are held out; the arrays that are not ``None`` have one value per row.

    Attributes
    ----------
    groups : (n,) int64 or None
        Number of the group of each row; a group is held out as a whole.
    times : (n,) int64, float64 or None
        Time of each row; the latest rows are held out.
    gap : float
        Time before the held-out rows whose rows are left out.
    roles : (n, k) int8 or None
        Role of each row in each of the user's splits: ``LEARNED``, ``HELD`` or 0 for neither.
    """

    groups: NDArray[np.int64] | None = None
    times: NDArray[Any] | None = None
    gap: float = 0
    roles: NDArray[np.int8] | None = None

    @property
    def kind(self) -> str:
        """The kind of validation, in a word."""
        if self.roles is not None:
            return "a splitter"
        return "groups" if self.times is None else "time"

    @property
    def divides(self) -> bool:
        """Whether rows differ in their group or, without groups, in their time."""
        of_rows = self.times if self.groups is None else self.groups
        return of_rows is not None and bool((of_rows != of_rows[:1]).any())

    @property
    def arrays(self) -> tuple[NDArray[Any] | None, ...]:
        """The arrays of the rows."""
        return self.groups, self.times, self.roles

    def rows(self, index: Any) -> Dependence:
        """Return the record of a subset of the rows.

        Parameters
        ----------
        index : slice or index array

        Returns
        -------
        Dependence
        """
        groups, times, roles = (None if one is None else one[index] for one in self.arrays)
        return Dependence(groups, times, self.gap, roles)

    def followed_by(self, other: Dependence) -> Dependence:
        """Return the record of the rows of both.

        Parameters
        ----------
        other : Dependence
            With the same arrays.

        Returns
        -------
        Dependence
        """
        pairs = zip(self.arrays, other.arrays, strict=True)
        groups, times, roles = (
            None if a is None or b is None else np.concatenate([a, b]) for a, b in pairs
        )
        return Dependence(groups, times, self.gap, roles)
