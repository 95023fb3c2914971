"""Squared hinge loss; several classes are handled one versus the rest."""

from __future__ import annotations

import numpy as np

from hilboost.core.dtypes import Floats
from hilboost.core.gradients import Gradients, Structure
from hilboost.core.target import Target
from hilboost.losses._columns import row_sums
from hilboost.losses._margin import MarginLoss, SortedLeaves
from hilboost.reductions.sums import mean


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
