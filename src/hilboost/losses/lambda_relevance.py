"""LambdaMART for metrics of relevant rows: average precision, and the first relevant row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

import numpy as np

from hilboost.backends.drawn_orders import exchange_gradients
from hilboost.backends.relevance import group_average_precision, group_reciprocal_rank
from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData
from hilboost.core.gradients import Gradients
from hilboost.core.target import Target
from hilboost.losses._ranking import (
    RELEVANT,
    DrawnOrderLoss,
    RankingLoss,
    numbers_of_groups,
    ranking_memory,
    scores_of,
    spread,
)


class _LambdaOfRelevance(DrawnOrderLoss):
    """Base class: pairs weighted by the change of a metric of the rows with a positive label."""

    _metric: ClassVar[Callable[..., None]]
    _only_first: ClassVar[bool]
    ranker_name: ClassVar[str]

    def __init__(self, k: int = 10) -> None:
        super().__init__(k, "linear")

    @classmethod
    def for_regressor(cls, parameters: Mapping[str, Any]) -> Self:
        """Create the loss for the parameter ``k``."""
        return cls(parameters.get("k", 10))

    def check(self, target: Target) -> None:
        """Check that no label is negative, and that labels are not all relevant."""
        RankingLoss.check(self, target)
        y = target.y[:, 0]
        if y.min(initial=0) < 0:
            row = int(np.flatnonzero(y < 0)[0])
            raise InvalidData(
                f"y contains {y[row]:g}, but labels must not be negative with "
                f"loss={self.ranker_name!r}; set the labels of rows that are not relevant to 0."
            )
        if len(y) and 0 < y.min() < y.max():
            raise InvalidData(
                f"loss={self.ranker_name!r} compares rows with a positive label to rows with label "
                f"0, but the smallest label in y is {y.min():g}; set the labels of rows that are "
                "not relevant to 0, or use loss='lambdarank'."
            )

    def value(self, target: Target, raw: Floats) -> Floats:
        """One minus the metric of the group, divided equally among its rows, (n,)."""
        found = np.empty(len(target.starts) - 1)
        with ranking_memory(target, RELEVANT) as memory:
            scores, metric = scores_of(raw), type(self)._metric
            metric(memory.gains, scores, target.starts, self.k, memory.order, found)
        return spread(target, 1 - found)

    def gradients(self, target: Target, raw: Floats) -> Gradients:
        """Sums over the pairs of each row."""
        raw, negative, hessian = self._shown(target, raw), np.empty(len(raw)), np.empty(len(raw))
        with ranking_memory(target, RELEVANT) as memory:
            places = np.empty(len(memory.by_place[0]), dtype=np.int64)
            exchange_gradients(
                *(memory.gains, scores_of(raw), target.starts, self.k, self._only_first),
                *(self._key, numbers_of_groups(target)),
                *((memory.order, places, *memory.by_place), negative, hessian),
            )
        return Gradients(negative[:, None], hessian[:, None])


class LambdaMAP(_LambdaOfRelevance):
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
    _metric = staticmethod(group_average_precision)
    _only_first = False


class LambdaMRR(_LambdaOfRelevance):
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
    _metric = staticmethod(group_reciprocal_rank)
    _only_first = True
