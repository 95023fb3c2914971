"""Logistic loss of the pairs of a group."""

from __future__ import annotations

import numpy as np

from hilboost.backends.logistic_pairs import pairwise_gradients
from hilboost.core.dtypes import Floats
from hilboost.core.gradients import Gradients
from hilboost.core.target import Target
from hilboost.losses._ranking import RankingLoss, ranking_memory, scores_of

_MOST = 1000


class PairwiseLogistic(RankingLoss):
    """``log(1 + exp(F_j - F_i))`` for all pairs of a group with ``y_i > y_j``, over its rows.

    The sum over the pairs is divided by the number of rows of the group.

    Notes
    -----
    The cost for a group of m rows is O(m²) up to 2,001 rows.  In longer groups, each row is
    compared with 2,000 others, at distances that are spread over the order of the scores.
    Rows with equal scores and labels have equal gradients, so that the order of the rows has no
    effect.

    References
    ----------
    Burges et al., *Learning to rank using gradient descent*, ICML 2005.
    """

    ranker_name = "pairwise_logistic"

    def value(self, target: Target, raw: Floats) -> Floats:
        """Loss of the group, divided equally among its rows, (n,)."""
        return self._computed(target, raw, True)[0]

    def gradients(self, target: Target, raw: Floats) -> Gradients:
        """Sums over the pairs of each row."""
        _, negative, hessian = self._computed(target, self._shown(target, raw), False)
        return Gradients(negative[:, None], hessian[:, None])

    def _computed(
        self, target: Target, raw: Floats, with_values: bool
    ) -> tuple[Floats, Floats, Floats]:
        arrays = np.empty(len(raw)), np.empty(len(raw)), np.empty(len(raw))
        with ranking_memory(target, "linear") as memory:
            scratch = memory.order, *memory.by_place[:6]
            pairwise_gradients(
                *(memory.gains, scores_of(raw), target.starts, _MOST, with_values, scratch), *arrays
            )
        return arrays
