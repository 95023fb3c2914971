"""A loss with corners on the distinct rows of a kernel machine, and its smooth versions.

``max(lower r, upper r)`` is the largest ``v r`` for ``v`` between the two slopes.  A smooth version
subtracts ``½ width (v - u)²`` for multipliers ``u``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hilboost.core.dtypes import Floats
from hilboost.core.gradients import Corners, Gradients
from hilboost.learners.kernel_machine.merging import DistinctRows


@dataclass(frozen=True, eq=False)
class CornerRows:
    """The corners of all rows, as a function of the outputs of the distinct rows."""

    corners: Corners  # of all rows
    weight: Floats | None  # (n,) float64 or None: sample weights of all rows
    distinct: DistinctRows | None

    def left(self, outputs: Floats) -> Floats:
        """Residuals (n, r) that outputs (m, r) of the distinct rows leave."""
        return self.corners.residual - self._on_all(outputs)

    def slopes(self, left: Floats, multipliers: Floats, width: Floats) -> Floats:
        """The slopes ``v`` (n, r) of the smooth loss."""
        found: Floats = np.clip(multipliers + left / width, self.corners.lower, self.corners.upper)
        return found

    def gradients(self, left: Floats, multipliers: Floats, width: Floats) -> Gradients:
        """Gradients of the smooth loss, of the distinct rows."""
        slopes = self.slopes(left, multipliers, width)
        is_curved = (slopes > self.corners.lower) & (slopes < self.corners.upper)
        found = Gradients(slopes, is_curved / width)
        return found if self.distinct is None else self.distinct.merged(found, self.weight)[0]

    def smooth_loss(self, left: Floats, multipliers: Floats, width: Floats) -> Floats:
        """Sum of the smooth loss, (r,)."""
        slopes = self.slopes(left, multipliers, width)
        return self._sum(slopes * left - 0.5 * width * (slopes - multipliers) ** 2)

    def loss(self, left: Floats) -> Floats:
        """Sum of the loss, (r,)."""
        return self._sum(np.maximum(self.corners.lower * left, self.corners.upper * left))

    def gap(self, left: Floats, slopes: Floats) -> Floats:
        """How far the penalized loss may lie above its minimum, at one of the smooth loss, (r,)."""
        return self.loss(left) - self._sum(slopes * left)

    def multipliers(self, alpha: Floats, regularization: float) -> Floats:
        """The slopes of the residuals (n, r) at the minimum, if it has these weights (m, r)."""
        w = 1.0 if self.weight is None else self.weight[:, None]
        if self.distinct is not None:
            w = np.broadcast_to(w, (len(self.distinct.group), 1))
            w = self.distinct.sums(w)[self.distinct.group]
        found: Floats = np.clip(
            regularization * self._on_all(alpha) / np.maximum(w, 1e-300),
            self.corners.lower,
            self.corners.upper,
        )
        return found

    @property
    def width(self) -> Floats:
        """Mean residual over the mean length of the interval of slopes, (r,)."""
        size = np.abs(self.corners.residual).mean(axis=0)
        width = size / (self.corners.upper - self.corners.lower).mean(axis=0)
        return np.where(width > 0, width, 1.0)

    def _on_all(self, values: Floats) -> Floats:
        return values if self.distinct is None else values[self.distinct.group]

    def _sum(self, values: Floats) -> Floats:
        total: Floats = values.sum(axis=0) if self.weight is None else self.weight @ values
        return total
