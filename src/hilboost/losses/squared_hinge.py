"""Squared hinge loss; several classes are handled one versus the rest."""

from __future__ import annotations

import numpy as np

from hilboost.core.dtypes import Floats
from hilboost.core.link import ScoresLink
from hilboost.core.loss import Gradients, Loss, Target


class SquaredHinge(Loss):
    """``½ max(0, 1 - s F)²`` for signs ``s = ±1``, as in L2-loss support vector machines.

    Parameters
    ----------
    n_classes : int
        Two classes have one column, positive for class 1.  More classes have one column each, and
        the loss is the sum over columns.
    """

    def __init__(self, n_classes: int) -> None:
        self.n_classes = n_classes

    def _signs(self, target: Target) -> Floats:
        """Convert class codes to signs ``s``, (n, r)."""
        classes = [1] if self.n_classes == 2 else np.arange(self.n_classes)
        return np.where(target.y == classes, 1.0, -1.0)

    def initial_raw(self, target: Target) -> Floats:
        """The mean sign: every row is within the margin of any constant between -1 and 1."""
        return np.average(self._signs(target), axis=0, weights=target.weight)

    def value(self, target: Target, raw: Floats) -> Floats:
        """Loss of every row, (n,)."""
        missing = np.maximum(1 - self._signs(target) * raw, 0.0)
        return 0.5 * (missing * missing).sum(axis=1)

    def gradients(self, target: Target, raw: Floats) -> Gradients:
        """Negative gradient ``s max(0, 1 - s F)``; the hessian is one within the margin."""
        signs = self._signs(target)
        missing = np.maximum(1 - signs * raw, 0.0)
        return Gradients(signs * missing, (missing > 0).astype(np.float64), bound=1.0)

    @property
    def link(self) -> ScoresLink:
        """Scores."""
        return ScoresLink(self.n_classes)

    def inverse_link(self, raw: Floats) -> Floats:
        """Scores (n, n_classes), highest for the predicted class."""
        return np.hstack([-raw, raw]) if self.n_classes == 2 else raw
