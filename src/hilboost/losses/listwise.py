"""Losses of rankings without positions: cross-entropy, pairs, and squared error in groups."""

from __future__ import annotations

import numpy as np

from hilboost.backends.drawn_orders import listwise_gradients
from hilboost.backends.exact_sums import sums_of_groups
from hilboost.backends.logistic_pairs import pairwise_gradients
from hilboost.backends.ranking import RowGradients
from hilboost.core.dtypes import Floats
from hilboost.core.gradients import Gradients, Structure
from hilboost.core.target import Target
from hilboost.losses._ranking import (
    RankingLoss,
    checked_gain,
    draws_of,
    empty_gradients,
    in_columns,
    ranking_memory,
)


class CrossEntropyNDCG(RankingLoss):
    """Cross-entropy between shares of the gains and a softmax of the scores of a group.

    The share of a row is that of ``gain + 1 - u``, with random numbers ``u`` between 0 and 1 that
    are drawn for each stage; the loss is a bound of NDCG on average.  The value is computed with
    ``u = 1 / 2``.

    Parameters
    ----------
    gain : {"exponential", "linear"}, default="exponential"
        Gain of a label ``y``: ``2 ** y - 1`` or ``y``.

    Raises
    ------
    InvalidParameter
        If the gain has another name.

    Notes
    -----
    Groups whose labels are all equal have no loss.  The cost for a group of m rows is O(m log m).

    References
    ----------
    Bruch, *An alternative cross entropy loss for learning-to-rank*, WWW 2021.
    """

    ranker_name = "xendcg"

    def __init__(self, gain: str = "exponential") -> None:
        self.gain = checked_gain(gain)

    def value(self, target: Target, raw: Floats) -> Floats:
        """Term of each row, (n,)."""
        return self._computed(target, raw, None)[0]

    def gradients(self, target: Target, raw: Floats) -> Gradients:
        """Difference between share and probability, and ``p (1 - p)``, or more for short steps."""
        return in_columns(self._computed(target, self._shown(target, raw), self._key)[1])

    def _computed(
        self, target: Target, raw: Floats, key: np.uint64 | None
    ) -> tuple[Floats, RowGradients]:
        values, written, draws = np.empty(len(raw)), empty_gradients(raw), draws_of(target, key)
        with ranking_memory(target, self.gain) as memory:
            listwise_gradients(memory.rows(raw), draws, key is not None, values, written)
        return values, written


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
        return in_columns(self._computed(target, self._shown(target, raw), False)[1])

    def _computed(
        self, target: Target, raw: Floats, with_values: bool
    ) -> tuple[Floats, RowGradients]:
        values, written = np.empty(len(raw)), empty_gradients(raw)
        with ranking_memory(target, "linear") as memory:
            rows, ranked = memory.rows(raw), memory.by_place
            pairwise_gradients(rows, _MOST, with_values, ranked, values, written)
        return values, written


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
