"""Re-estimation of leaf values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hilboost.core.contracts import CellLoss, CellModel, Learner, Loss, State
from hilboost.core.errors import IncompatibleParts
from hilboost.core.records import Stage, Target


@dataclass(frozen=True)
class ReestimateCells:
    """Replace cell values by the loss's own best constants (Friedman 2001, Algorithm 3, step 5).

    Only rows the stage learnt from count.  Values that must keep an order become the nearest ones
    that do, each cell counting by the weight of its rows.
    """

    def check(self, loss: Loss, learner: Learner) -> None:
        """The loss must know the best constant of a cell."""
        if not isinstance(loss, CellLoss):
            raise IncompatibleParts(
                f"leaf re-estimation needs a loss with cell values; {type(loss).__name__} has none."
            )

    def __call__(self, stage: Stage, state: State) -> Stage:
        """The same cells with other values."""
        if not isinstance(state.loss, CellLoss):
            raise IncompatibleParts(f"{type(state.loss).__name__} has no cell values.")
        target = Target(state.target.y, state.sample.weight)
        parts = []
        for part, fitted in zip(stage.parts, state.fitted, strict=True):
            if not isinstance(part.model, CellModel) or fitted.cells is None:
                raise IncompatibleParts(
                    f"leaf re-estimation needs a learner with cells; {type(part.model).__name__} "
                    "has none. Use a tree, or a line search."
                )
            cells = fitted.cells
            if state.sample.rows is not None:
                cells = np.full_like(fitted.cells, -1)
                cells[state.sample.rows] = fitted.cells[state.sample.rows]
            values = state.loss.cell_values(
                target, state.raw, cells, len(part.model.values), part.columns
            )
            if fitted.order is not None:
                inside = cells >= 0
                weight = None if target.weight is None else target.weight[inside]
                mass = np.bincount(cells[inside], weights=weight, minlength=len(values))
                values = fitted.order.nearest(values, mass[:, None].astype(np.float64))
            parts.append(part.with_model(part.model.with_values(values)))
        return Stage(tuple(parts))
