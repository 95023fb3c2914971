"""Common parts of the losses of rankings."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from hilboost.backends.ranking import group_ndcg
from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData, InvalidParameter
from hilboost.core.group_loss import GroupLoss
from hilboost.core.target import Target

GAINS = ("exponential", "linear")
_LARGEST_EXPONENT = 500.0


def discounts(target: Target) -> Floats:
    """``1 / log2(2 + position)`` for the positions of the longest group."""
    return _discounts_of(int(np.diff(target.starts).max(initial=0)))


@lru_cache(maxsize=16)
def _discounts_of(n_positions: int) -> Floats:
    return 1 / np.log2(2 + np.arange(n_positions))


def gains_of(target: Target, kind: str) -> Floats:
    """Gains of the rows: ``2 ** y - 1``, or ``y``, (n,)."""
    y = np.ascontiguousarray(target.y[:, 0])
    return y if kind == "linear" else np.exp2(y) - 1


def check_gains(y: Floats, kind: str) -> None:
    """Check that labels are not negative, and that their gains are finite.

    Raises
    ------
    InvalidData
    """
    if y.min(initial=0) < 0:
        row = int(np.flatnonzero(y[:, 0] < 0)[0])
        raise InvalidData(
            f"y contains {y[row, 0]:g}, but relevance labels must not be negative; add a constant "
            "to all labels, or use loss='pairwise_logistic' or 'query_rmse'."
        )
    if kind == "exponential" and y.max(initial=0) > _LARGEST_EXPONENT:
        raise InvalidData(
            f"y contains {y.max():g}, and the gain 2**y - 1 is too large; set gain='linear'."
        )


def ndcg_losses(target: Target, raw: Floats, k: int, gain: str) -> Floats:
    """``1 - NDCG@k`` of each group, divided equally among its rows, (n,)."""
    n, result = len(raw), np.empty(len(target.starts) - 1)
    scratch = np.empty(n, dtype=np.int64), np.empty(n)
    gains, scores = gains_of(target, gain), scores_of(raw)
    group_ndcg(gains, scores, target.starts, k, discounts(target), scratch, result)
    return spread(target, 1 - result)


class RankingLoss(GroupLoss):
    """Base class of losses that compare the rows of a group; only differences of ``raw`` count."""

    corrects_positions = False
    """Whether the effects of the positions at which rows were shown are estimated."""

    def check(self, target: Target) -> None:
        """Check that there is a single column of labels, and no positions without use."""
        if target.positions is not None and not self.corrects_positions:
            raise InvalidData("positions requires loss='lambdarank'; set it, or omit positions.")
        if target.y.shape[1] != 1:
            raise InvalidData(
                f"rankings support one column of relevance labels; y has {target.y.shape[1]}."
            )

    def initial_raw(self, target: Target) -> Floats:
        """Zero."""
        return np.zeros(1)


class GainLoss(RankingLoss):
    """Base class of losses of relevance labels that are not negative.

    Parameters
    ----------
    gain : {"exponential", "linear"}, default="exponential"
        Gain of a label ``y``: ``2 ** y - 1`` or ``y``.

    Raises
    ------
    InvalidParameter
        If the gain has another name.
    """

    def __init__(self, gain: str = "exponential") -> None:
        if gain not in GAINS:
            raise InvalidParameter(f"gain must be 'exponential' or 'linear'; got {gain!r}.")
        self.gain = gain

    def check(self, target: Target) -> None:
        """Check that labels are not negative."""
        super().check(target)
        check_gains(target.y, self.gain)


def scores_of(raw: Floats) -> Floats:
    """The single column of ``raw``."""
    return np.ascontiguousarray(raw[:, 0])


def spread(target: Target, values: Floats) -> Floats:
    """Divide the value of each group (q,) equally among its rows, (n,)."""
    return np.repeat(values / np.diff(target.starts), np.diff(target.starts))
