"""Several targets, each of which is known in some rows only."""

from __future__ import annotations

import numpy as np

from hilboost.core.contracts import Loss
from hilboost.core.errors import InvalidData
from hilboost.core.records import Floats, Gradients, Target
from hilboost.losses.gamma import Gamma
from hilboost.losses.poisson import Poisson
from hilboost.losses.squared_error import SquaredError
from hilboost.losses.tweedie import Tweedie

_OF_COLUMNS = (SquaredError, Poisson, Gamma, Tweedie)


def takes_gaps(loss: Loss) -> bool:
    """Whether it is a sum over the columns of the target, each with a ``raw`` of its own.

    Classes derived from these may be anything.
    """
    return type(loss) in _OF_COLUMNS


def of_known(loss: Loss, *ys: Floats) -> Loss:
    """The loss, or :class:`PartlyKnown` where some target (n, c) is missing."""
    gaps = takes_gaps(loss) and any(np.isnan(y).any() for y in ys)
    return PartlyKnown(loss) if gaps else loss


class PartlyKnown(Loss):
    """The loss of what is known: where ``y`` is NaN there is neither loss nor gradient.

    Parameters
    ----------
    loss : Loss
        One that :func:`takes_gaps`.
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

    def start(self, target: Target) -> Floats:
        """The best constants, each for the rows where its target is known."""
        columns = range(target.y.shape[1])
        return np.concatenate([self.loss.start(_known(target, k)) for k in columns])

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


def _known(target: Target, k: int) -> Target:
    """A column, its gaps left out."""
    alone = _column(target, k)
    return alone.rows(~np.isnan(alone.y[:, 0]))


def _column(target: Target, k: int) -> Target:
    return Target(target.y[:, k : k + 1], target.weight)


def _filled(y: Floats, value: float) -> Floats:
    """A number in the place of NaN."""
    return np.where(np.isnan(y), value, y)
