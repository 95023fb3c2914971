"""Base class of support vector losses, which depend on the margins of one-versus-rest scores."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.exact_sums import empty_sums, is_whole, prefix_sums, sums_of_groups
from hilboost.core.dtypes import Floats, Ints
from hilboost.core.leaf_loss import LeafLoss
from hilboost.core.link import ScoresLink
from hilboost.core.target import Target
from hilboost.reductions.rows import of_all_workers


@dataclass(frozen=True)
class SortedLeaves:
    """Kinks of a loss, sorted by leaf and by value; rows without weight are left out.

    The loss of row i in a leaf, as a function of the constant ``v`` that is added there, is zero
    from its kink ``t_i = s_i - F_i`` on: for ``v >= t_i`` if ``s_i = 1``, else for ``v <= t_i``.
    """

    kinks: Floats  # (m,) float64
    weight: Floats  # (m,) float64
    positive: NDArray[np.bool_]  # (m,) bool: whether the sign of the row is 1
    leaf: NDArray[np.int32]  # (m,) int32
    # (n_leaves + 1,) int64: the rows of leaf k are ``starts[k] … starts[k + 1] - 1``
    starts: Ints

    @classmethod
    def of(
        cls, signs: Floats, raw: Floats, weight: Floats, leaves: NDArray[np.int32], n_leaves: int
    ) -> SortedLeaves:
        """Sort the rows of one column; ``signs``, ``raw``, ``weight`` and ``leaves`` are (n,).

        Only equal rows may change places: sums over the sorted rows do not depend on the order in
        which these were given.
        """
        inside = np.flatnonzero((leaves >= 0) & (weight > 0))
        kinks = (signs - raw)[inside]
        order = np.lexsort((weight[inside], signs[inside], kinks, leaves[inside]))
        rows = inside[order]
        starts = np.searchsorted(leaves[rows], np.arange(n_leaves + 1))
        return cls(kinks[order], weight[rows], signs[rows] > 0, leaves[rows], starts)

    def sums_before(self, values: Floats, weight: Floats | None = None) -> Floats:
        """Exact sum of the values (m,) of the preceding rows of the same leaf, (m,)."""
        weights = np.empty(0) if weight is None else weight
        result, total = np.empty(len(values)), empty_sums(1)
        prefix_sums(values, weights, is_whole(weights), self.starts, total, result)
        return result

    def sums(self, values: Floats, weight: Floats | None = None) -> Floats:
        """Exact sum of the values (m,) in every leaf, (n_leaves,)."""
        return sums_of_groups(self.leaf, values, weight, len(self.starts) - 1)

    @property
    def ties(self) -> Ints:
        """First row with the kink of a row, in the same leaf, (m,)."""
        is_new = (self.kinks[1:] != self.kinks[:-1]) | (self.leaf[1:] != self.leaf[:-1])
        rows = np.arange(len(self.kinks))
        return np.maximum.accumulate(np.where(np.concatenate([[True], is_new]), rows, 0))

    def first(self, condition: NDArray[np.bool_]) -> Ints:
        """First row of every leaf where the condition (m,) holds, else its last, (n_leaves,)."""
        holds = np.append(np.flatnonzero(condition), len(condition))
        found = holds[np.searchsorted(holds, self.starts[:-1])]
        return np.maximum(np.minimum(found, self.starts[1:] - 1), 0)

    def without_loss(self) -> tuple[NDArray[np.bool_], Floats]:
        """Whether some constant has no loss in a leaf, and the middle of all such constants.

        Where they have a single end, that end; (n_leaves,) both.
        """
        ends = np.array([[-np.inf], [np.inf]]).repeat(len(self.starts) - 1, axis=1)
        np.maximum.at(ends[0], self.leaf[self.positive], self.kinks[self.positive])
        np.minimum.at(ends[1], self.leaf[~self.positive], self.kinks[~self.positive])
        is_end = np.isfinite(ends)
        middle = np.where(is_end, ends, 0.0).sum(axis=0) / np.maximum(is_end.sum(axis=0), 1)
        return ends[0] <= ends[1], middle

    @property
    def is_empty(self) -> NDArray[np.bool_]:
        """Leaves without rows, (n_leaves,)."""
        return self.starts[1:] == self.starts[:-1]


class MarginLoss(LeafLoss):
    """A sum over columns of a function of the margins ``s F``, where ``s = ±1``.

    Two classes have one column, whose sign is 1 for class 1.  More classes have one column each,
    whose sign is 1 for its own class (one-versus-rest).
    """

    n_classes_range = (2, None)

    def __init__(self, n_classes: int) -> None:
        self.n_classes = n_classes

    def _signs(self, target: Target) -> Floats:
        """Convert class codes to signs ``s``, (n, r)."""
        classes = [1] if self.n_classes == 2 else np.arange(self.n_classes)
        return np.where(target.y == classes, 1.0, -1.0)

    @abstractmethod
    def _constants(self, rows: SortedLeaves) -> Floats:
        """Best constants of one column, (n_leaves,); any number for a leaf without rows."""

    def leaf_values(
        self, target: Target, raw: Floats, leaves: NDArray[np.int32], n_leaves: int, columns: slice
    ) -> Floats:
        """Compute the minimizer in closed form, from the sorted kinks; cost O(n log n)."""
        weight = np.ones(len(raw)) if target.weight is None else target.weight
        found = []
        for signs, own in zip(self._signs(target)[:, columns].T, raw[:, columns].T, strict=True):
            # The kinks of the rows of all workers are sorted together.
            here = np.stack([signs, own, weight, leaves], axis=1).astype(np.float64)
            s, outputs, weights, numbers = np.ascontiguousarray(of_all_workers(here, target).T)
            rows = SortedLeaves.of(s, outputs, weights, numbers.astype(np.int32), n_leaves)
            if len(rows.kinks):
                found.append(np.where(rows.is_empty, 0.0, self._constants(rows)))
            else:
                found.append(np.zeros(n_leaves))
        return np.column_stack(found)

    @property
    def link(self) -> ScoresLink:
        """Scores: these losses do not estimate probabilities."""
        return ScoresLink(self.n_classes)

    def inverse_link(self, raw: Floats) -> Floats:
        """Scores (n, n_classes), highest for the predicted class."""
        return np.hstack([-raw, raw]) if self.n_classes == 2 else raw
