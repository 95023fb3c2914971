"""Contract tests of losses that couple rows."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from hilboost.core.dtypes import Floats, Ints
from hilboost.core.loss import Loss
from hilboost.core.target import Target
from hilboost.testing.contract import ensure, ensure_close
from hilboost.testing.losses import GradientContract

_SIZES = (1, 5, 2, 9, 4, 7, 3, 9)
_STEP = 1e-5
_TOLERANCE: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-12}


class GroupLossContract(GradientContract):
    """Tests of a :class:`hilboost.GroupLoss`: derivatives, groups, order of the rows, and weights.

    Attributes
    ----------
    has_groups : bool
        Whether targets have groups; otherwise, all rows are coupled.
    differentiable : bool
        Whether the negative gradient is that of the sum of the values.

    Examples
    --------
    >>> from hilboost.losses import QueryRMSE
    >>> from hilboost.testing import GroupLossContract
    >>> class TestQueryRMSE(GroupLossContract):
    ...     def make(self):
    ...         return QueryRMSE()
    """

    has_groups: ClassVar[bool] = True
    differentiable: bool = True

    def targets(self, rng: np.random.Generator, n: int) -> Any:
        """Draw valid targets; by default integers from 0 to 3.

        Parameters
        ----------
        rng : numpy.random.Generator
        n : int

        Returns
        -------
        (n,) or (n, c) array
        """
        if drawn := self._drawn(rng, n):
            return np.asarray(drawn[0])
        return rng.integers(4, size=n)

    def draw(self) -> tuple[Loss, Target, Floats]:
        """Return a loss, a target, and ``raw``, with ties.

        Returns
        -------
        tuple
            Loss, Target, and ``raw`` (n, r).
        """
        rng, n = np.random.default_rng(7), sum(_SIZES)
        loss, y = self.make(), np.asarray(self.targets(rng, n), dtype=np.float64)
        groups = np.repeat(np.arange(len(_SIZES)), _SIZES)
        target = Target(y.reshape(n, -1), None, groups if self.has_groups else None)
        start = loss.initial_raw(target)
        return loss, target, start + np.round(rng.normal(size=(n, len(start))), 1)

    def test_the_declaration(self) -> None:
        """The loss declares that it couples rows."""
        ensure(self.make().couples_rows, "A GroupLoss must declare couples_rows = True.")

    def test_gradient_is_the_derivative_of_the_sum(self) -> None:
        """The negative gradient agrees with central differences of the sum of the values."""
        if not self.differentiable:
            return
        loss, target, raw = self.draw()
        raw = raw + np.random.default_rng(1).normal(size=raw.shape)  # no ties
        negative, slopes = loss.gradients(target, raw).negative_gradient, np.empty_like(raw)
        for entry in np.ndindex(*raw.shape):
            step = np.zeros_like(raw)
            step[entry] = _STEP
            fall = loss.value(target, raw - step).sum() - loss.value(target, raw + step).sum()
            slopes[entry] = fall / (2 * _STEP)
        said = "negative_gradient must be minus the derivative of the sum of value."
        ensure_close(negative, slopes, said, 1e-5, 1e-6)

    def test_a_group_depends_on_itself_alone(self) -> None:
        """Values and gradients of a group do not depend on other groups."""
        loss, target, raw = self.draw()
        if target.groups is None:
            return
        some = target.groups % 2 == 1
        part = self._all(loss, target.rows(some), raw[some])
        whole = self._all(loss, target, raw)[some]
        ensure_close(part, whole, "A group must not depend on other groups.", **_TOLERANCE)

    def test_order_of_the_rows_has_no_effect(self) -> None:
        """Values and gradients of the rows do not depend on the order within a group."""
        loss, target, raw = self.draw()
        order = self._shuffled(target)
        moved = self._all(loss, target.rows(order), raw[order])
        whole = self._all(loss, target, raw)[order]
        ensure_close(moved, whole, "The order of the rows must not matter.", **_TOLERANCE)

    def test_rows_of_zero_weight_have_no_effect(self) -> None:
        """Without groups, rows of zero weight do not change the other rows' gradients."""
        loss, target, raw = self.draw()
        if target.groups is not None:
            return
        keep = np.arange(len(raw)) % 3 > 0
        without = self._all(loss, target.rows(keep), raw[keep])
        zeros = Target(target.y, keep.astype(np.float64))
        said = "Rows of zero weight must not have an effect on others."
        ensure_close(self._all(loss, zeros, raw)[keep], without, said, **_TOLERANCE)

    @staticmethod
    def _all(loss: Loss, target: Target, raw: Floats) -> Floats:
        """Values, gradients and hessians in the columns of one array."""
        found = loss.gradients(target, raw)
        hessian = np.ones_like(raw) if found.hessian is None else found.hessian
        return np.column_stack([loss.value(target, raw), found.negative_gradient, hessian])

    @staticmethod
    def _shuffled(target: Target) -> Ints:
        rng, starts = np.random.default_rng(2), target.starts
        parts = pairwise(starts)
        return np.concatenate([rng.permutation(np.arange(a, b)) for a, b in parts])
