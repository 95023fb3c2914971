"""Cross-entropy of the distribution of the gains within a group."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any, Self

import numpy as np

from hilboost.backends.random_bits import bits_of
from hilboost.backends.ranking import listwise_gradients
from hilboost.core.dtypes import Floats
from hilboost.core.gradients import Gradients
from hilboost.core.target import Target
from hilboost.losses._ranking import GainLoss, gains_of, scores_of


class CrossEntropyNDCG(GainLoss):
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
        super().__init__(gain)
        self._key: np.uint64 | None = None

    @classmethod
    def for_regressor(cls, parameters: Mapping[str, Any]) -> Self:
        """Create the loss for the parameter ``gain``."""
        return cls(parameters.get("gain", "exponential"))

    def drawn(self, key: np.uint64) -> CrossEntropyNDCG:
        """Return the loss with the random numbers of a stage."""
        found = copy(self)
        found._key = key
        return found

    def value(self, target: Target, raw: Floats) -> Floats:
        """Term of each row, (n,)."""
        return self._computed(target, raw, np.zeros(len(target.starts) - 1, dtype=np.uint64))[0]

    def gradients(self, target: Target, raw: Floats) -> Gradients:
        """Difference between share and probability, and ``p (1 - p)``."""
        starts = target.starts
        keys = np.zeros(len(starts) - 1, dtype=np.uint64)
        if self._key is not None:
            numbers = np.zeros(1) if target.groups is None else target.groups[starts[:-1]]
            keys[:] = [bits_of(self._key, int(number)) | np.uint64(1) for number in numbers]
        _, negative, hessian = self._computed(target, raw, keys)
        return Gradients(negative[:, None], hessian[:, None])

    def _computed(
        self, target: Target, raw: Floats, keys: np.ndarray
    ) -> tuple[Floats, Floats, Floats]:
        n = len(raw)
        found = np.empty(n), np.empty(n), np.empty(n)
        order, gains = np.empty(n, dtype=np.int64), gains_of(target, self.gain)
        listwise_gradients(gains, scores_of(raw), target.starts, keys, order, *found)
        return found
