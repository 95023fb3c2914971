"""Pairs of neighbors in random orders, weighted by the change of NDCG."""

from __future__ import annotations

from hilboost.backends.drawn_orders import neighbor_gradients
from hilboost.core.dtypes import Floats
from hilboost.core.gradients import Gradients
from hilboost.core.target import Target
from hilboost.losses._ranking import (
    RankingLoss,
    checked_gain,
    checked_positions,
    draws_of,
    empty_gradients,
    in_columns,
    ndcg_losses,
    ranking_memory,
)


class YetiRank(RankingLoss):
    """Logistic loss of neighbors in random orders of the rows, weighted by gains and position.

    Each stage draws ten orders of every group, of the scores plus logistic noise.  Two rows that
    follow each other at the positions ``p`` and ``p + 1``, counted from 0 on, have the weight
    ``|gain - gain| / log2(2 + p)``; only the first ``k`` positions count.

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
    is ``1 - NDCG@k`` of the group.  As for NDCG, gains are divided by the largest DCG of the group;
    the gradients are multiplied by the square root of its number of rows, which gave the best
    rankings of the training queries in cross-validation.  The cost for a group of m rows is
    O(m log m).

    References
    ----------
    Gulin, Kuralenok and Pavlov, *Winning the transfer learning track of Yahoo!'s learning to rank
    challenge with YetiRank*, 2011.
    Lyzhin et al., *Which tricks are important for learning to rank?*, ICML 2023.
    """

    ranker_name = "yetirank"
    counts_positions = True
    _N_ORDERS = 10

    def __init__(self, k: int = 10, gain: str = "exponential") -> None:
        self.k, self.gain = checked_positions(k), checked_gain(gain)

    def value(self, target: Target, raw: Floats) -> Floats:
        """``1 - NDCG@k`` of the group, divided equally among its rows, (n,)."""
        return ndcg_losses(target, raw, self.k, self.gain)

    def gradients(self, target: Target, raw: Floats) -> Gradients:
        """Sums over the pairs of each row."""
        raw, draws = self._shown(target, raw), draws_of(target, self._key)
        written = empty_gradients(raw)
        with ranking_memory(target, self.gain, self.k) as memory:
            rows, positions, ranked = memory.rows(raw), memory.positions, memory.by_place
            drawn, n_orders = memory.drawn, self._N_ORDERS
            neighbor_gradients(rows, positions, draws, n_orders, ranked, drawn, written)
        return in_columns(written)
