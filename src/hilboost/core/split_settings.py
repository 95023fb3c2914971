"""Settings of trees that recipes adapt to the table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SplitSettings:
    """Settings of a learner that depend on the columns and the target of a table.

    Trees declare theirs by ``Capabilities(splits=...)``.  A recipe replaces them, and passes them
    to :meth:`hilboost.core.learner.Learner.for_table`.

    Attributes
    ----------
    categorical : tuple of (int, int)
        Columns of category codes with their numbers of levels.
    monotonic : tuple of int
        Monotonic direction of each column; empty if no column has one.
    groups : tuple of tuple of int
        Groups of columns that may interact; empty if all may.
    min_samples_leaf : float
        Minimum sum of weights in a leaf.
    min_hessian : float
        Minimum sum of hessians in a leaf.  Hessians may count known targets; then a recipe sets it
        to at least ``min_samples_leaf``.
    splits_levels : bool
        Whether splits on levels are supported; otherwise, categories are target-encoded.
    """

    categorical: tuple[tuple[int, int], ...] = ()
    monotonic: tuple[int, ...] = ()
    groups: tuple[tuple[int, ...], ...] = ()
    min_samples_leaf: float = 0.0
    min_hessian: float = 0.0
    splits_levels: bool = True
