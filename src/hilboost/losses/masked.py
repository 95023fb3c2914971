"""Losses of several targets with missing values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData
from hilboost.core.gradients import Gradients
from hilboost.core.loss import Loss
from hilboost.core.target import Target, TargetUnits
from hilboost.losses._columns import known_column
from hilboost.reductions.sums import count_rows


def with_missing_targets(loss: Loss, targets: Iterable[Target]) -> Loss:
    """Return the loss, wrapped in :class:`MaskedLoss` if any target (n, c) is missing."""
    if not loss.additive_over_targets:
        return loss
    n_missing = [count_rows(np.isnan(target.y).any(axis=1), target) for target in targets]
    return MaskedLoss(loss) if any(n_missing) else loss


class MaskedLoss(Loss):
    """Ignore missing targets: where ``y`` is NaN, the loss and its gradient are zero."""

    def __init__(self, loss: Loss) -> None:  # must be ``additive_over_targets``
        self.loss = loss
        self.divides_rows = loss.divides_rows
        self.hessian_counts_targets = loss.quadratic

    @property
    def of_complete_targets(self) -> Loss:
        """The underlying loss."""
        return self.loss

    def units(self, target: Target) -> TargetUnits | None:
        """Units of each column, from the rows where its target is known."""
        found = self.loss.units(target)
        return found and replace(found, plain=self, loss=MaskedLoss(found.loss))

    def check_rows(self, y: Floats) -> None:
        """Reject the rows that the loss itself rejects."""
        self.loss.check_rows(y)

    def check(self, target: Target) -> None:
        """Reject columns without any known target, and whatever the loss itself rejects."""
        n_known = [count_rows(known, target) for known in ~np.isnan(target.y.T)]
        nowhere = np.flatnonzero(np.array(n_known) == 0)
        if len(nowhere):
            raise InvalidData(
                f"target {nowhere[0]} of y is missing in every row of positive weight; remove it "
                "from y."
            )
        # Check all rows first so that messages have the right row numbers; every loss accepts 1.
        self.loss.check(target.with_y(_filled(target.y, 1.0)))
        for column in range(target.y.shape[1]):
            self.loss.check(known_column(target, column))

    def initial_raw(self, target: Target) -> Floats:
        """Best constant of each column, from the rows where its target is known."""
        columns = range(target.y.shape[1])
        return np.concatenate([self.loss.initial_raw(known_column(target, k)) for k in columns])

    def value(self, target: Target, raw: Floats) -> Floats:
        """Loss of every row, (n,)."""
        known, filled = ~np.isnan(target.y), Target(_filled(target.y, 1.0))
        total = np.zeros(len(raw))
        for k in range(raw.shape[1]):
            total += known[:, k] * self.loss.value(_column(filled, k), raw[:, k : k + 1])
        return total

    def gradients(self, target: Target, raw: Floats) -> Gradients:
        """Gradients of the loss, with zeros for missing targets."""
        known = (~np.isnan(target.y)).astype(np.float64)
        found = self.loss.gradients(Target(_filled(target.y, 1.0)), raw)
        hessian = known if found.hessian is None else known * found.hessian
        negative = known * found.negative_gradient
        structure = replace(found.structure, isotropic=False, residual=False, logistic=False)
        return Gradients(negative, hessian, structure)

    def inverse_link(self, raw: Floats) -> Floats:
        """Inverse link of the loss."""
        return self.loss.inverse_link(raw)


def _column(target: Target, k: int) -> Target:
    return target.with_y(target.y[:, k : k + 1])


def _filled(y: Floats, value: float) -> Floats:
    """Replace NaN by a number."""
    return np.where(np.isnan(y), value, y)
