"""Hinge and squared hinge loss; several classes are handled one versus the rest."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.exact_sums import empty_sums, is_whole, prefix_sums, sums_of_groups
from hilboost.core.dtypes import Floats, Ints
from hilboost.core.gradients import Gradients, Structure
from hilboost.core.link import ScoresLink
from hilboost.core.loss import Loss
from hilboost.core.loss_kinds import LeafLoss
from hilboost.core.target import Target
from hilboost.losses._columns import row_sums
from hilboost.losses._location import Majorized, width_of_kink
from hilboost.reductions.quantiles import quantile
from hilboost.reductions.rows import of_all_workers
from hilboost.reductions.sums import count_rows, mean


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
        weight = target.row_weights
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


_TIE = 1e-12  # of the weight of a leaf
_AT_KINK = 1e-5  # of the smallest width
_SHARE_NEAR_KINK = 0.01


class Hinge(MarginLoss):
    """``max(0, 1 - s F)`` for signs ``s = ±1``, as in L1-loss support vector machines.

    Parameters
    ----------
    n_classes : int
        Two classes have one column, positive for class 1.  More classes have one column each, and
        the loss is the sum over columns (one-versus-rest, as in ``sklearn.svm.LinearSVC``).

    Notes
    -----
    With the residual ``r = s - F``, the loss is ``½ |r| + ½ s r``, a pinball loss whose level is 1
    for positive rows and 0 for the others.  The best constant of a leaf is therefore the quantile
    of the residuals whose level is the share of positive rows in its weight.

    References
    ----------
    Cortes & Vapnik, *Support-vector networks*, Machine Learning 20, 1995.
    """

    classifier_name = "hinge"
    divides_rows = True

    def initial_raw(self, target: Target) -> Floats:
        """The sign of the majority, 0 if both signs have the same weight."""
        balance = mean(target.with_y(self._signs(target)))
        return np.where(np.abs(balance) <= _TIE, 0.0, np.sign(balance))

    def value(self, target: Target, raw: Floats) -> Floats:
        """Loss of every row, (n,)."""
        return row_sums(np.maximum(1 - self._signs(target) * raw, 0.0))

    def gradients(self, target: Target, raw: Floats) -> Gradients:
        """``s`` within the margin, else 0; the hessian, which is zero, is replaced by one."""
        signs = self._signs(target)
        return Gradients(np.where(signs * raw < 1, signs, 0.0))

    def with_curvature(self, target: Target, raw: Floats) -> Loss:
        """Smooth the kink and use the curvature of reweighted least squares."""
        return _MajorizedHinge(self, self._width(target, raw))

    def _width(self, target: Target, raw: Floats) -> float:
        """Half the 1 % quantile of the distances to the kink, apart from rows that are at it.

        It falls from stage to stage as support vectors settle at the kink.  A width that is narrow
        from the beginning holds rows at the kink that have to cross it.
        """
        signs = target.with_y(self._signs(target))
        size = np.abs(signs.y - raw)
        least = width_of_kink(signs, raw)
        is_far = size > _AT_KINK * least
        if not count_rows(is_far.any(axis=1), target):
            return least
        weight = None
        if target.weight is not None:
            weight = np.broadcast_to(target.weight[:, None], size.shape)[is_far]
        of_far = replace(target, weight=weight)
        return max(least, 0.5 * quantile(size[is_far], _SHARE_NEAR_KINK, of_far))

    def _constants(self, rows: SortedLeaves) -> Floats:
        """Weighted quantiles of the kinks; the middle where the minimizer is an interval."""
        total = rows.sums(rows.weight)
        wanted, tolerance = rows.sums(rows.weight * rows.positive), _TIE * total
        mass = rows.sums_before(rows.weight) + rows.weight
        at = rows.first(mass >= (wanted - tolerance)[rows.leaf])
        is_flat = (mass[at] <= wanted + tolerance) & (at < rows.starts[1:] - 1)
        return 0.5 * (rows.kinks[at] + rows.kinks[at + is_flat])


class _MajorizedHinge(Majorized):
    """The hinge loss as half the absolute residual ``s - F`` with a tilt of half the sign."""

    def __init__(self, loss: Hinge, width: float) -> None:
        super().__init__(loss, width, 0.5)
        self._hinge = loss

    def gradients(self, target: Target, raw: Floats) -> Gradients:
        """Gradients of the smoothed loss, with the curvature of the parabolas."""
        signs = self._hinge._signs(target)
        return self._gradients(signs - raw, 0.5 * signs)


class SquaredHinge(MarginLoss):
    """``½ max(0, 1 - s F)²`` for signs ``s = ±1``, as in L2-loss support vector machines.

    Parameters
    ----------
    n_classes : int
        Two classes have one column, positive for class 1.  More classes have one column each, and
        the loss is the sum over columns (one-versus-rest, as in ``sklearn.svm.LinearSVC``).
    shares_curvature : bool, default False
        Whether to declare the bound 1 on the hessian, with which kernel machines need one linear
        system for all classes; without it, their steps are Newton's on the rows within the margin.

    Notes
    -----
    This is the soft margin loss of SY2006, section 1, with a factor of one half.

    References
    ----------
    Keerthi & DeCoste, *A modified finite Newton method for fast solution of large scale linear
    SVMs*, 2005.
    """

    classifier_name = "squared_hinge"
    divides_rows = True

    def __init__(self, n_classes: int, shares_curvature: bool = False) -> None:
        super().__init__(n_classes)
        self.shares_curvature = shares_curvature

    def initial_raw(self, target: Target) -> Floats:
        """The mean sign: every row is within the margin of any constant between -1 and 1."""
        return mean(target.with_y(self._signs(target)))

    def value(self, target: Target, raw: Floats) -> Floats:
        """Loss of every row, (n,)."""
        missing = np.maximum(1 - self._signs(target) * raw, 0.0)
        return 0.5 * row_sums(missing * missing)

    def gradients(self, target: Target, raw: Floats) -> Gradients:
        """Negative gradient ``s max(0, 1 - s F)``; the hessian is one within the margin."""
        signs = self._signs(target)
        missing = np.maximum(1 - signs * raw, 0.0)
        hessian = (missing > 0).astype(np.float64)
        return Gradients(
            signs * missing, hessian, Structure(bound=1.0 if self.shares_curvature else None)
        )

    def _constants(self, rows: SortedLeaves) -> Floats:
        """Root of the slope, which is linear between kinks.

        Where several constants have no loss, the middle of their interval, or its only end.
        """
        positive, negative = rows.weight * rows.positive, rows.weight * ~rows.positive
        t = rows.kinks
        # Negative rows below a constant and positive rows from it on are within the margin.
        mass = rows.sums_before(negative)[rows.ties]
        mass += rows.sums(positive)[rows.leaf] - rows.sums_before(positive)[rows.ties]
        moment = rows.sums_before(t, negative)[rows.ties]
        moment += rows.sums(t, positive)[rows.leaf] - rows.sums_before(t, positive)[rows.ties]
        at = rows.first(t * mass >= moment)
        root = np.divide(moment[at], mass[at], out=np.zeros(len(at)), where=mass[at] > 0)
        is_separated, middle = rows.without_loss()
        return np.where(is_separated, middle, root)
