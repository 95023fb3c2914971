"""Re-estimation of leaf values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from hilboost.core.base_model import Stage
from hilboost.core.errors import IncompatibleParts
from hilboost.core.learner import Learner
from hilboost.core.loss import Loss
from hilboost.core.rule import State
from hilboost.reductions.sums import masses_of_groups


@dataclass(frozen=True)
class ReestimateLeaves:
    """Replace leaf values by the best constants of the loss (Friedman 2001, Algorithm 3, step 5).

    Terms without leaves are unchanged.  Only the rows to which the stage was fitted are used.
    Under an order constraint, the values are replaced by the nearest ordered ones, with leaves
    weighted by their rows.
    """

    factor: ClassVar[None] = None

    def check(self, loss: Loss, learner: Learner) -> None:
        """Check that the loss can compute the best constant of a leaf."""
        if not loss.has_leaf_values:
            raise IncompatibleParts(
                f"leaf re-estimation requires a loss that computes leaf values (LeafLoss); "
                f"{type(loss).__name__} does not."
            )

    def __call__(self, stage: Stage, state: State) -> Stage:
        """Return the stage with new leaf values."""
        target = replace(state.target, weight=state.sample.weight)
        terms = []
        for term, fitted in zip(stage.terms, state.fitted, strict=True):
            model = term.model.on_leaves()
            if model is None or fitted.leaves is None:
                terms.append(term)
                continue
            leaves = fitted.leaves
            if state.sample.rows is not None:
                leaves = np.full_like(fitted.leaves, -1)
                leaves[state.sample.rows] = fitted.leaves[state.sample.rows]
            values = state.loss.leaf_values(
                target, state.raw, leaves, len(model.values), term.columns
            )
            if fitted.order is not None:
                mass = masses_of_groups(leaves, len(values), target)
                values = fitted.order.nearest(values, mass[:, None])
            terms.append(term.with_model(model.with_values(values)))
        return Stage(tuple(terms))
