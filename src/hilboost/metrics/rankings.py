"""Metrics of rankings: means over groups, and over all orders of rows with equal scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.ranking import group_ndcg
from hilboost.backends.relevance import group_average_precision, group_reciprocal_rank
from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData, InvalidParameter
from hilboost.core.metric import Metric, MetricParts
from hilboost.core.target import Target

_GAINS = ("exponential", "linear")


def _order(rows: Floats) -> NDArray[np.int64]:
    """An order of the rows, (n,)."""
    return np.arange(len(rows))


class _OfGroups(Metric):
    """Mean of a number of each group."""

    kind = "groups"
    higher_is_better = True
    couples_rows = True

    def __init__(self, k: int | None = None) -> None:
        if k is not None and k < 1:
            raise InvalidParameter(f"k must be at least 1, or None; got {k!r}.")
        self.k = k

    @property
    def name(self) -> str:
        """Name in the history, such as "ndcg@10"."""
        return self.names[0] if self.k is None else f"{self.names[0]}@{self.k}"

    def _parts(
        self,
        target: Target,
        predicted: Floats,
        compute: Callable[..., Any],
        values: Floats,
        *arrays: Any,
    ) -> MetricParts:
        """Call ``compute`` with one number of each row, and use the weights of the groups."""
        starts, result = target.starts, np.empty(len(target.starts) - 1)
        k = len(predicted) if self.k is None else self.k
        scores = np.ascontiguousarray(predicted[:, 0])
        compute(values, scores, starts, k, *arrays, result)
        weight = target.weight
        return MetricParts(result, None if weight is None else weight[starts[:-1]])


class NDCG(_OfGroups):
    """Normalized discounted cumulative gain, 1 for groups in which no row has a gain.

    Parameters
    ----------
    k : int or None, default=None
        Number of positions that count; ``None`` means all.
    gain : {"exponential", "linear"}, default="exponential"
        Gain of a label ``y``: ``2 ** y - 1`` or ``y``.

    Raises
    ------
    InvalidParameter
        If ``k`` is less than 1, or the gain has another name.

    Notes
    -----
    The position ``i = 1, 2, …`` has the discount ``1 / log2(1 + i)``.
    """

    names = ("ndcg", "ndcg@k")

    def __init__(self, k: int | None = None, gain: str = "exponential") -> None:
        super().__init__(k)
        if gain not in _GAINS:
            raise InvalidParameter(f"gain must be 'exponential' or 'linear'; got {gain!r}.")
        self.gain = gain

    def parts(self, target: Target, predicted: Floats) -> MetricParts:
        """NDCG of each group."""
        y = np.ascontiguousarray(target.y[:, 0])
        if y.min(initial=0) < 0:
            raise InvalidData(
                f"eval_metric={self.name!r} requires labels that are not negative; y contains "
                f"{y.min():g}. Add a constant to all labels."
            )
        gains = y if self.gain == "linear" else np.exp2(y) - 1
        discounts = 1 / np.log2(2 + np.arange(np.diff(target.starts).max(initial=0)))
        ideals = np.full(len(target.starts) - 1, np.nan)
        return self._parts(
            target, predicted, group_ndcg, gains, discounts, (_order(y), ideals, np.empty(len(y)))
        )


class MeanAveragePrecision(_OfGroups):
    """Mean average precision; rows with a positive label are relevant.

    Parameters
    ----------
    k : int or None, default=None
        Number of positions that count; ``None`` means all.

    Raises
    ------
    InvalidParameter
        If ``k`` is less than 1.

    Notes
    -----
    1 for groups in which no row is relevant.  The sum of precisions is divided by the number of
    relevant rows, or by ``k`` if that is smaller.
    """

    names = ("map", "map@k")

    def parts(self, target: Target, predicted: Floats) -> MetricParts:
        """Average precision of each group."""
        relevant = (target.y[:, 0] > 0).astype(np.float64)
        return self._parts(target, predicted, group_average_precision, relevant, _order(relevant))


class MeanReciprocalRank(_OfGroups):
    """Mean of one over the position of the first relevant row, which has a positive label.

    Parameters
    ----------
    k : int or None, default=None
        Number of positions that count; ``None`` means all.

    Raises
    ------
    InvalidParameter
        If ``k`` is less than 1.

    Notes
    -----
    0 for groups with no relevant row among the first ``k``, and 1 for groups without any.
    """

    names = ("mrr", "mrr@k")

    def parts(self, target: Target, predicted: Floats) -> MetricParts:
        """Reciprocal rank of each group."""
        relevant = (target.y[:, 0] > 0).astype(np.float64)
        return self._parts(target, predicted, group_reciprocal_rank, relevant, _order(relevant))
