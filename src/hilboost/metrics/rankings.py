"""Metrics of rankings, means over groups and over all orders of equal scores."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from hilboost.backends.ranking import GroupedRows, Positions, group_ndcg
from hilboost.backends.relevance import group_average_precision, group_reciprocal_rank
from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData, InvalidParameter, shown
from hilboost.core.metric import Metric, MetricParts
from hilboost.core.plain_values import is_integer, is_one_of
from hilboost.core.target import Target

_GAINS = ("exponential", "linear")


class _OfGroups(Metric):
    """Mean of a number of each group."""

    kind = "groups"
    higher_is_better = True
    couples_rows = True

    def __init__(self, k: int | None = None) -> None:
        if k is not None and not (is_integer(k) and k >= 1):
            raise InvalidParameter(f"k must be an integer of at least 1, or None; got {shown(k)}.")
        self.k = k

    @property
    def name(self) -> str:
        """Name in the history, such as "ndcg@10"."""
        return self.names[0] if self.k is None else f"{self.names[0]}@{self.k}"

    def parts(self, target: Target, predicted: Floats) -> MetricParts:
        """Number of each group, with the weights of the groups."""
        starts, result = target.starts, np.empty(len(target.starts) - 1)
        gains = self._gains(np.ascontiguousarray(target.y[:, 0]))
        scores = np.ascontiguousarray(predicted[:, 0])
        rows = GroupedRows(gains, scores, starts, np.arange(len(scores)))
        self._compute(rows, len(scores) if self.k is None else self.k, result)
        weight = target.weight
        return MetricParts(result, None if weight is None else weight[starts[:-1]])

    def _gains(self, y: Floats) -> Floats:
        """Gains of labels (n,): whether they are relevant."""
        return (y > 0).astype(np.float64)

    @abstractmethod
    def _compute(self, rows: GroupedRows, k: int, result: Floats) -> None:
        """Write the number of each group."""


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
        if not is_one_of(gain, _GAINS):
            raise InvalidParameter(f"gain must be 'exponential' or 'linear'; got {shown(gain)}.")
        self.gain = gain

    def _gains(self, y: Floats) -> Floats:
        if y.min(initial=0) < 0:
            raise InvalidData(
                f"eval_metric={self.name!r} requires labels that are not negative; y contains "
                f"{y.min():g}. Add a constant to all labels."
            )
        return y if self.gain == "linear" else np.exp2(y) - 1

    def _compute(self, rows: GroupedRows, k: int, result: Floats) -> None:
        discounts = 1 / np.log2(2 + np.arange(np.diff(rows.starts).max(initial=0)))
        ideals = np.full(len(result), np.nan)
        group_ndcg(rows, Positions(k, discounts, ideals, np.empty(len(rows.gains))), result)


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

    def _compute(self, rows: GroupedRows, k: int, result: Floats) -> None:
        group_average_precision(rows, k, result)


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

    def _compute(self, rows: GroupedRows, k: int, result: Floats) -> None:
        group_reciprocal_rank(rows, k, result)
