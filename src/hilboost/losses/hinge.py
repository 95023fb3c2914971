"""Hinge loss, as in support vector machines; several classes are handled one versus the rest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hilboost.core.dtypes import Floats
from hilboost.core.gradients import Gradients
from hilboost.core.loss import Loss
from hilboost.core.target import Target
from hilboost.losses._columns import row_sums
from hilboost.losses._location import Majorized, width_of_kink
from hilboost.losses._margin import MarginLoss, SortedLeaves
from hilboost.reductions.quantiles import quantile
from hilboost.reductions.sums import count_rows, mean

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
