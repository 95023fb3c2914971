"""Cross-entropy of the distribution of the gains within a group."""

from __future__ import annotations

import numpy as np

from hilboost.backends.ranking import listwise_gradients
from hilboost.core.dtypes import Floats
from hilboost.core.gradients import Gradients
from hilboost.core.target import Target
from hilboost.losses._ranking import (
    RankingLoss,
    checked_gain,
    numbers_of_groups,
    ranking_memory,
    scores_of,
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
        _, negative, hessian = self._computed(target, self._shown(target, raw), self._key)
        return Gradients(negative[:, None], hessian[:, None])

    def _computed(
        self, target: Target, raw: Floats, key: np.uint64 | None
    ) -> tuple[Floats, Floats, Floats]:
        n, drawn = len(raw), key is not None
        found = np.empty(n), np.empty(n), np.empty(n)
        with ranking_memory(target, self.gain) as memory:
            listwise_gradients(
                *(memory.gains, scores_of(raw), target.starts, np.uint64(key or 0)),
                *(numbers_of_groups(target), drawn, memory.order, *found),
            )
        return found
