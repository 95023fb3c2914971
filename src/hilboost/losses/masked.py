"""Several targets, each of which is known in some rows only."""

from __future__ import annotations

import numpy as np

from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData
from hilboost.core.loss import Gradients, Loss, Target


def with_missing_targets(loss: Loss, *ys: Floats) -> Loss:
    """The loss, or :class:`MaskedLoss` where some target (n, c) is missing."""
    missing = loss.additive_over_targets and any(np.isnan(y).any() for y in ys)
    return MaskedLoss(loss) if missing else loss


def without_mask(loss: Loss) -> Loss:
    """The loss of complete targets."""
    return loss.loss if isinstance(loss, MaskedLoss) else loss


class MaskedLoss(Loss):
    """The loss of what is known: where ``y`` is NaN there is neither loss nor gradient.

    Parameters
    ----------
    loss : Loss
        One that is ``additive_over_targets``.
    """

    def __init__(self, loss: Loss) -> None:
        self.loss = loss

    def check(self, target: Target) -> None:
        """Refuse a target that is known nowhere, and what the loss itself refuses."""
        nowhere = np.flatnonzero(np.isnan(target.y).all(axis=0))
        if len(nowhere):
            raise InvalidData(
                f"target {nowhere[0]} of y is missing in every row (of positive weight); leave it "
                "out."
            )
        # All rows first, so that their numbers are right; no loss refuses a one.
        self.loss.check(Target(_filled(target.y, 1.0), target.weight))
        for column in range(target.y.shape[1]):
            self.loss.check(_known(target, column))

    def initial_raw(self, target: Target) -> Floats:
        """The best constants, each for the rows where its target is known."""
        columns = range(target.y.shape[1])
        return np.concatenate([self.loss.initial_raw(_known(target, k)) for k in columns])

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
        return Gradients(known * found.negative_gradient, hessian, found.bound)

    def inverse_link(self, raw: Floats) -> Floats:
        """The loss's own."""
        return self.loss.inverse_link(raw)


def _known(target: Target, k: int) -> Target:
    """A column, its gaps left out."""
    alone = _column(target, k)
    return alone.rows(~np.isnan(alone.y[:, 0]))


def _column(target: Target, k: int) -> Target:
    return Target(target.y[:, k : k + 1], target.weight)


def _filled(y: Floats, value: float) -> Floats:
    """A number in the place of NaN."""
    return np.where(np.isnan(y), value, y)
