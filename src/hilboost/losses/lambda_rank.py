"""LambdaMART: pairs weighted by the change of NDCG, average precision or reciprocal rank."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hilboost.backends.drawn_orders import GroupDraws, exchange_gradients
from hilboost.backends.ranking import lambda_gradients
from hilboost.backends.relevance import group_average_precision, group_reciprocal_rank
from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData
from hilboost.core.gradients import Gradients
from hilboost.core.target import Target
from hilboost.losses._ranking import (
    RELEVANT,
    RankingLoss,
    checked_gain,
    checked_positions,
    draws_of,
    empty_gradients,
    in_columns,
    ndcg_losses,
    ranking_memory,
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
        ndcg, written = np.empty(len(target.starts) - 1), empty_gradients(raw)
        with ranking_memory(target, self.gain, self.k) as memory:
            rows, positions = memory.rows(raw), memory.positions
            lambda_gradients(rows, positions, True, memory.by_place, written, ndcg)
        return ndcg, in_columns(written)


class LambdaMAP(RankingLoss):
    """Logistic loss of pairs, weighted by the change of the average precision if exchanged.

    Rows with a positive label are relevant.  Only pairs that touch the first ``k`` positions count.
    Rows with equal scores have their positions in random order, which is drawn for each stage.

    Parameters
    ----------
    k : int, default=10
        Number of positions that count.

    Raises
    ------
    InvalidParameter
        If ``k`` is less than 1.

    Notes
    -----
    The value is ``1 - MAP@k`` of the group.  As in :class:`LambdaRank`, a weight is divided by the
    distance of the scores, and the gradients of a group with total ``s`` are multiplied by
    ``log2(1 + s) / s``.  The cost for a group of m rows is O(k m + m log m).
    """

    ranker_name = "lambdamap"
    counts_positions = True

    def __init__(self, k: int = 10) -> None:
        self.k = checked_positions(k)

    def check(self, target: Target) -> None:
        """Check that no label is negative, and that labels are not all relevant."""
        super().check(target)
        _check_relevance(target.y[:, 0], "lambdamap")

    def value(self, target: Target, raw: Floats) -> Floats:
        """One minus the metric of the group, divided equally among its rows, (n,)."""
        return _losses(group_average_precision, target, raw, self.k)

    def gradients(self, target: Target, raw: Floats) -> Gradients:
        """Sums over the pairs of each row."""
        draws = draws_of(target, self._key)
        return _gradients(target, self._shown(target, raw), self.k, False, draws)


class LambdaMRR(RankingLoss):
    """Logistic loss of pairs, weighted by the change of the first relevant position's inverse.

    Rows with a positive label are relevant.  Rows with equal scores have their positions in random
    order, which is drawn for each stage.

    Parameters
    ----------
    k : int, default=10
        Number of positions that count.

    Raises
    ------
    InvalidParameter
        If ``k`` is less than 1.

    Notes
    -----
    The value is ``1 - MRR@k`` of the group; the weights are as in :class:`LambdaMAP`, for this
    metric.  Only pairs at or before the first relevant row have gradients.
    """

    ranker_name = "lambdamrr"
    counts_positions = True

    def __init__(self, k: int = 10) -> None:
        self.k = checked_positions(k)

    def check(self, target: Target) -> None:
        """Check that no label is negative, and that labels are not all relevant."""
        super().check(target)
        _check_relevance(target.y[:, 0], "lambdamrr")

    def value(self, target: Target, raw: Floats) -> Floats:
        """One minus the metric of the group, divided equally among its rows, (n,)."""
        return _losses(group_reciprocal_rank, target, raw, self.k)

    def gradients(self, target: Target, raw: Floats) -> Gradients:
        """Sums over the pairs of each row."""
        draws = draws_of(target, self._key)
        return _gradients(target, self._shown(target, raw), self.k, True, draws)


def _check_relevance(y: Floats, name: str) -> None:
    """Check that no label is negative, and that labels are not all relevant."""
    if y.min(initial=0) < 0:
        row = int(np.flatnonzero(y < 0)[0])
        raise InvalidData(
            f"y contains {y[row]:g}, but labels must not be negative with loss={name!r}; set the "
            "labels of rows that are not relevant to 0."
        )
    if len(y) and 0 < y.min() < y.max():
        raise InvalidData(
            f"loss={name!r} compares rows with a positive label to rows with label 0, but the "
            f"smallest label in y is {y.min():g}; set the labels of rows that are not relevant to "
            "0, or use loss='lambdarank'."
        )


def _losses(metric: Callable[..., None], target: Target, raw: Floats, k: int) -> Floats:
    """One minus the metric of the group, divided equally among its rows, (n,)."""
    found = np.empty(len(target.starts) - 1)
    with ranking_memory(target, RELEVANT) as memory:
        metric(memory.rows(raw), k, found)
    return spread(target, 1 - found)


def _gradients(
    target: Target, raw: Floats, k: int, only_first: bool, draws: GroupDraws
) -> Gradients:
    """Sums over the pairs of each row, weighted by the change of the metric."""
    written = empty_gradients(raw)
    with ranking_memory(target, RELEVANT) as memory:
        rows, ranked, drawn = memory.rows(raw), memory.by_place, memory.drawn
        exchange_gradients(rows, k, only_first, draws, ranked, drawn, written)
    return in_columns(written)
