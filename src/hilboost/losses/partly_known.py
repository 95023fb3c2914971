"""Several targets, each of which is known in some rows only."""

from __future__ import annotations

import numpy as np

from hilboost.core.contracts import Loss
from hilboost.core.errors import InvalidData
from hilboost.core.records import Floats, Gradients, Target
from hilboost.losses._log_link import LogLinkLoss
from hilboost.losses.squared_error import SquaredError

ColumnLoss = SquaredError | LogLinkLoss
"""Losses that are sums over the columns of the target, each of which has a ``raw`` of its own."""


class PartlyKnown(Loss):
    """The loss of what is known: where ``y`` is NaN there is neither loss nor gradient.

    Parameters
    ----------
    loss : ColumnLoss
    """

    def __init__(self, loss: ColumnLoss) -> None:
        self.loss = loss

    def check(self, target: Target) -> None:
        """Refuse a target that is known nowhere, and what the loss itself refuses."""
        nowhere = np.flatnonzero(np.isnan(target.y).all(axis=0))
        if len(nowhere):
            raise InvalidData(
                f"target {nowhere[0]} of y is missing in every row (of positive weight); leave it "
                "out."
            )
        # The mean of a column is a value that it may have.
        self.loss.check(Target(_filled(target.y, np.nanmean(target.y, axis=0)), target.weight))

    def start(self, target: Target) -> Floats:
        """The best constants, each for the rows where its target is known."""
        found = []
        for column in range(target.y.shape[1]):
            alone = _column(target, column)
            found.append(self.loss.start(alone.rows(~np.isnan(alone.y[:, 0]))))
        return np.concatenate(found)

    def value(self, target: Target, raw: Floats) -> Floats:
        """(n,)"""
        known, filled = ~np.isnan(target.y), Target(_filled(target.y, 1.0))
        total = np.zeros(len(raw))
        for k in range(raw.shape[1]):
            total += known[:, k] * self.loss.value(_column(filled, k), raw[:, k : k + 1])
        return total

    def gradients(self, target: Target, raw: Floats) -> Gradients:
        """The loss's own, and zeros."""
        known = (~np.isnan(target.y)).astype(np.float64)
        found = self.loss.gradients(Target(_filled(target.y, 1.0)), raw)
        hessian = known if found.hessian is None else known * found.hessian
        return Gradients(known * found.negative, hessian, found.bound)

    def inverse_link(self, raw: Floats) -> Floats:
        """The loss's own."""
        return self.loss.inverse_link(raw)


def _column(target: Target, k: int) -> Target:
    return Target(target.y[:, k : k + 1], target.weight)


def _filled(y: Floats, values: Floats | float) -> Floats:
    """Numbers in the place of NaN."""
    return np.where(np.isnan(y), values, y)
