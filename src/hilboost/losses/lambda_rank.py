"""LambdaMART: pairs weighted by the change of NDCG."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any, Self

import numpy as np

from hilboost.backends.ranking import lambda_gradients
from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidParameter
from hilboost.core.gradients import Gradients
from hilboost.core.target import Target
from hilboost.losses._positions import position_effects
from hilboost.losses._ranking import GainLoss, discounts, ndcg_losses, ranking_memory, scores_of


class LambdaRank(GainLoss):
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
    The cost for a group of m rows is O(k m + m log m).  If the target has positions, their
    effects on the labels are estimated before each stage, at five times this cost.

    References
    ----------
    Burges, *From RankNet to LambdaRank to LambdaMART*, Microsoft Research, 2010.
    Hu et al., *Unbiased LambdaMART*, WWW 2019.
    """

    ranker_name = "lambdarank"
    adaptive = True
    effects: Floats | None = None
    """What each position adds to the scores, (n_positions,), if the target has positions."""

    corrects_positions = True

    def __init__(self, k: int = 10, gain: str = "exponential") -> None:
        super().__init__(gain)
        if k < 1:
            raise InvalidParameter(f"k must be at least 1; got {k!r}.")
        self.k = int(k)

    @classmethod
    def for_regressor(cls, parameters: Mapping[str, Any]) -> Self:
        """Create the loss for the parameters ``k`` and ``gain``."""
        return cls(parameters.get("k", 10), parameters.get("gain", "exponential"))

    def value(self, target: Target, raw: Floats) -> Floats:
        """``1 - NDCG@k`` of the group, divided equally among its rows, (n,)."""
        return ndcg_losses(target, raw, self.k, self.gain)

    def adapted(self, target: Target, raw: Floats) -> Self:
        """Return the loss with the effects of the positions, if the target has any."""
        if target.positions is None:
            return self
        plain, found = copy(self), copy(self)
        plain.effects = None
        found.effects = position_effects(plain.gradients, target, raw)
        return found

    def gradients(self, target: Target, raw: Floats) -> Gradients:
        """Sums over the pairs of each row."""
        if self.effects is not None and target.positions is not None:
            # Positions that no training row has are those of rows with zero weight.
            places = np.minimum(target.positions, len(self.effects) - 1)
            raw = raw + self.effects[places][:, None]
        n = len(raw)
        negative, hessian = np.empty(n), np.empty(n)
        with ranking_memory(target, self.gain, self.k) as memory:
            scratch = memory.order, memory.ideals, memory.by_row, *memory.by_place
            lambda_gradients(
                *(memory.gains, scores_of(raw), target.starts, self.k, discounts(target)),
                *(True, scratch, negative, hessian),
            )
        return Gradients(negative[:, None], hessian[:, None])
