"""Squared error without the mean of each group."""

from __future__ import annotations

import numpy as np

from hilboost.backends.exact_sums import sums_of_groups
from hilboost.core.dtypes import Floats
from hilboost.core.gradients import Gradients, Structure
from hilboost.core.target import Target
from hilboost.losses._ranking import RankingLoss


class QueryRMSE(RankingLoss):
    """``(r - mean of r in the group)² / 2`` with the residual ``r = y - F``.

    A constant for all rows of a group changes nothing, so that only differences are learned.

    Notes
    -----
    The hessian of a group, the projection on vectors with mean zero, is bounded by one.  The cost
    is O(n).
    """

    ranker_name = "query_rmse"
    bounded_hessian = True

    def value(self, target: Target, raw: Floats) -> Floats:
        """Loss of every row, (n,)."""
        return 0.5 * _centered(target, raw) ** 2

    def gradients(self, target: Target, raw: Floats) -> Gradients:
        """The centered residuals; the hessian is one."""
        residual = _centered(target, self._shown(target, raw))[:, None]
        return Gradients(residual, structure=Structure(bound=1.0))


def _centered(target: Target, raw: Floats) -> Floats:
    """Residuals minus the mean of their group, (n,)."""
    residual = target.y[:, 0] - raw[:, 0]
    sizes = np.diff(target.starts)
    sums = sums_of_groups(np.repeat(np.arange(len(sizes)), sizes), residual, None, len(sizes))
    return residual - np.repeat(sums / sizes, sizes)
