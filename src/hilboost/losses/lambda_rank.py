"""LambdaMART: pairs weighted by the change of NDCG."""

from __future__ import annotations

import numpy as np

from hilboost.backends.ranking import lambda_gradients
from hilboost.core.dtypes import Floats
from hilboost.core.gradients import Gradients
from hilboost.core.target import Target
from hilboost.losses._ranking import (
    RankingLoss,
    checked_gain,
    checked_positions,
    discounts,
    ndcg_losses,
    ranking_memory,
    scores_of,
    spread,
)


class LambdaRank(RankingLoss):
    """Logistic loss of pairs, weighted by the change of NDCG@k if the rows are exchanged.

    Only pairs that touch the first ``k`` positions count.  Rows with equal scores have their
    positions in random order, and the weights are means over all orders.

    Parameters
    ----------
    k : int, default=10
        Number of positions that count.
    gain : {"exponential", "linear"}, default="exponential"
        Gain of a label ``y``: ``2 ** y - 1`` or ``y``.

    Raises
    ------
    InvalidParameter
        If ``k`` is less than 1, or the gain has another name.

    Notes
    -----
    The weights depend on the scores, so that the gradients are not derivatives of a loss; the value
    is ``1 - NDCG@k`` of the group.  As in LightGBM, a weight is divided by the distance of the
    scores, and the gradients of a group with total ``s`` are multiplied by ``log2(1 + s) / s``.
    The cost for a group of m rows is O(k m + m log m).

    References
    ----------
    Burges, *From RankNet to LambdaRank to LambdaMART*, Microsoft Research, 2010.
    Hu et al., *Unbiased LambdaMART*, WWW 2019.
    """

    ranker_name = "lambdarank"
    evaluates_both = True
    counts_positions = True

    def __init__(self, k: int = 10, gain: str = "exponential") -> None:
        self.k, self.gain = checked_positions(k), checked_gain(gain)

    def value(self, target: Target, raw: Floats) -> Floats:
        """``1 - NDCG@k`` of the group, divided equally among its rows, (n,)."""
        return ndcg_losses(target, raw, self.k, self.gain)

    def gradients(self, target: Target, raw: Floats) -> Gradients:
        """Sums over the pairs of each row."""
        return self._computed(target, self._shown(target, raw))[1]

    def value_and_gradients(
        self, target: Target, raw: Floats, memory: Gradients | None = None
    ) -> tuple[Floats, Gradients]:
        """Both by the same order of the rows, unless positions have effects on the gradients."""
        if self._shown(target, raw) is not raw:
            return super().value_and_gradients(target, raw)
        ndcg, found = self._computed(target, raw)
        return spread(target, 1 - ndcg), found

    def _computed(self, target: Target, raw: Floats) -> tuple[Floats, Gradients]:
        """NDCG@k of the groups, (q,), and the gradients of the rows."""
        n, ndcg = len(raw), np.empty(len(target.starts) - 1)
        negative, hessian = np.empty((n, 1)), np.empty((n, 1))
        with ranking_memory(target, self.gain, self.k) as memory:
            scratch = memory.order, memory.ideals, memory.by_row, *memory.by_place
            lambda_gradients(
                *(memory.gains, scores_of(raw), target.starts, self.k, discounts(target)),
                *(True, scratch, negative[:, 0], hessian[:, 0], ndcg),
            )
        return ndcg, Gradients(negative, hessian)
