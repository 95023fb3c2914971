"""Negative partial log likelihood of the proportional hazards model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidParameter, shown
from hilboost.core.gradients import Gradients
from hilboost.core.loss_kinds import GroupLoss
from hilboost.core.plain_values import is_one_of
from hilboost.core.target import Target
from hilboost.losses._risk_sets import Risks
from hilboost.losses._survival import check_columns, check_events, check_right_censored
from hilboost.losses.log_link import with_bounded_steps

TIES = ("breslow", "efron")


class Cox(GroupLoss):
    """Negative partial log likelihood of Cox (1972); ``F`` is the logarithm of the relative hazard.

    Parameters
    ----------
    ties : {"breslow", "efron"}, default="breslow"
        Approximation for events at the same time.

    Raises
    ------
    InvalidParameter
        If the approximation has another name.

    Notes
    -----
    Rows compete with the rows of their stratum that are at risk at the time of an event, from their
    entry on.  Weights count rows: with ``"breslow"``, a row of weight 2 is equivalent to two rows.
    The hessian is that of independent rows, which bounds the hessian matrix, or more where steps
    would be too long.  Sums over risk sets
    are exact.  The cost is O(n log n), or O(n) for rows in descending order of time.
    """

    survival_name = "cox"
    evaluates_both = True

    def __init__(self, ties: str = "breslow") -> None:
        if not is_one_of(ties, TIES):
            raise InvalidParameter(f"ties must be 'breslow' or 'efron'; got {shown(ties)}.")
        self.ties = ties

    @classmethod
    def for_regressor(cls, parameters: Mapping[str, Any]) -> Self:
        """Create the loss for the parameter ``ties``."""
        return cls(parameters.get("ties", "breslow"))

    def check(self, target: Target) -> None:
        """Check that there are exact and right-censored times, and an event."""
        check_columns(target)
        self.check_rows(target.y)
        check_events(target)

    def check_rows(self, y: Floats) -> None:
        """Reject intervals of times."""
        check_right_censored(y, "cox")

    def initial_raw(self, target: Target) -> Floats:
        """Zero: the partial likelihood does not depend on a constant."""
        return np.zeros(1)

    def value(self, target: Target, raw: Floats) -> Floats:
        """Term of each row, (n,): zero for censored rows."""
        return _terms(Risks.of(target, raw[:, 0], self.ties), raw)

    def gradients(self, target: Target, raw: Floats) -> Gradients:
        """Event minus expected number of events; the hessian is the expected number."""
        return _gradients(Risks.of(target, raw[:, 0], self.ties))

    def value_and_gradients(
        self, target: Target, raw: Floats, memory: Gradients | None = None
    ) -> tuple[Floats, Gradients]:
        """Both by the same sums over risk sets."""
        found = Risks.of(target, raw[:, 0], self.ties)
        return _terms(found, raw), _gradients(found)


def _terms(risks: Risks, raw: Floats) -> Floats:
    """Term of each row in the negative log likelihood, (n,)."""
    sets, values = risks.sets, np.zeros(len(raw))
    rows = sets.event_rows
    values[rows] = risks.log_risk[sets.tie_of_events] - raw[rows, 0]
    return values


def _gradients(risks: Risks) -> Gradients:
    sets, n = risks.sets, len(risks.power)
    negative, expected = np.empty((n, 1)), np.empty((n, 1))
    expected[sets.order, 0] = risks.power * risks.hazard_of_rows()
    np.negative(expected, out=negative)
    negative[sets.event_rows] += 1.0
    return Gradients(negative, with_bounded_steps(expected, negative))
