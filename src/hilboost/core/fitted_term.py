"""Result of a learner: a term, with its outputs on the training rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic

import numpy as np
from numpy.typing import NDArray

from hilboost.core.base_model import AnyModel, Term
from hilboost.core.dtypes import Floats
from hilboost.core.loss_kinds import LeafOrder


@dataclass(frozen=True)
class FittedTerm(Generic[AnyModel]):
    """Result of a learner: a term, and its outputs on the training rows.

    Exactly one of ``leaves`` and ``outputs`` is not ``None``.

    Attributes
    ----------
    term : Term
    leaves : (n,) int32 or None
        Leaf number of each row, if the model is a :class:`~hilboost.core.base_model.LeafModel`.
    outputs : (n, r) float64 or None
        Outputs of other base models.
    order : LeafOrder or None
        Order constraint on the leaf values.  A rule that changes the values replaces them by the
        nearest values in this order.
    newton : bool
        Whether the outputs are Newton steps, which need no line search.
    """

    term: Term[AnyModel]
    leaves: NDArray[np.int32] | None = None
    outputs: Floats | None = None
    order: LeafOrder | None = None
    newton: bool = False

    @property
    def penalized(self) -> bool:
        """Whether it lowers a penalized objective, and tells what it does to the penalty."""
        return False

    @property
    def penalty(self) -> tuple[float, float]:
        """Slope and curvature of the penalty along the step."""
        return 0.0, 0.0
