"""Discrete hazards: the probability of an event in each of several intervals of time."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Self

import numpy as np

from hilboost.backends.exact_sums import rounded, sum_of
from hilboost.backends.survival import row_products
from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidParameter, shown
from hilboost.core.gradients import Gradients
from hilboost.core.link import Link
from hilboost.core.loss import Loss
from hilboost.core.plain_values import is_integer
from hilboost.core.target import Target
from hilboost.losses._columns import are_numbers, row_sums
from hilboost.losses._survival import (
    CAUSE,
    LOWER,
    check_columns,
    check_events,
    check_no_entry,
    check_right_censored,
    is_event,
)
from hilboost.losses.log_link import with_bounded_steps

_SMALLEST_HAZARD = 1e-6


class DiscreteHazard(Loss):
    """Negative log likelihood of events in intervals of time, of one or several competing causes.

    A row that is at risk in interval j has an event of cause k with probability ``p_kj``, a softmax
    of ``(0, F_1j, …, F_Kj)``.  The scores ``F_k1, …, F_km`` are a sum of m cosines over the
    intervals, whose coefficients are learned.

    Parameters
    ----------
    ends : (m,) array-like
        Ends of the intervals, ascending; the first one begins at 0.
    n_causes : int, default=1

    Raises
    ------
    InvalidParameter
        If the ends are not positive and ascending.

    Notes
    -----
    Columns of ``raw`` are the coefficients of the first cause, then of the second one.  The
    cosine of frequency q is divided by ``(1 + q)²``: steps of the same size in all coefficients
    change the level of the hazard most, and its course the less the faster it changes.  Otherwise,
    every interval would be learned from its own few events.  A row counts in an interval in which
    it is censored as much as the part of it that was observed.  Events after the last end count as
    censored there.

    References
    ----------
    Tutz and Schmid, *Modeling Discrete Time-to-Event Data*, Springer, 2016, sections 3.1 and 8.1.
    """

    survival_name = "discrete_hazard"

    def __init__(self, ends: object = (1.0,), n_causes: int = 1) -> None:
        if not are_numbers(ends):
            raise InvalidParameter(f"ends must contain numbers; got {shown(ends)}.")
        self.ends = np.asarray(ends, dtype=np.float64)
        if (
            self.ends.ndim != 1
            or not len(self.ends)
            or not (np.diff(self.ends, prepend=0) > 0).all()
        ):
            raise InvalidParameter("ends must contain positive numbers in ascending order.")
        if not (is_integer(n_causes) and n_causes >= 1):
            raise InvalidParameter(f"n_causes must be a positive integer; got {shown(n_causes)}.")
        self.n_causes = int(n_causes)

    @classmethod
    def for_regressor(cls, parameters: Mapping[str, Any]) -> Self:
        """Create the loss for the ``ends`` and ``n_causes`` of a survival model."""
        return cls(parameters.get("ends", (1.0,)), parameters.get("n_causes", 1))

    @property
    def link(self) -> Link | None:
        """``None``: no other library computes :meth:`inverse_link`."""
        return None

    def check(self, target: Target) -> None:
        """Check that there are exact and right-censored times from 0 on, and an event."""
        check_columns(target, self.n_causes)
        self.check_rows(target.y)
        check_events(target)
        check_no_entry(target, "discrete_hazard")

    def check_rows(self, y: Floats) -> None:
        """Reject intervals of times."""
        check_right_censored(y, "discrete_hazard")

    def initial_raw(self, target: Target) -> Floats:
        """Maximum likelihood: events of each cause in an interval, relative to the rows at risk."""
        at_risk, cause = self._observed(target)
        m = len(self.ends)
        events = np.zeros((self.n_causes, m))
        for k in range(self.n_causes):
            for j in range(m):
                here = (cause[:, j] == k + 1).astype(np.float64)
                events[k, j] = rounded(sum_of(here, target.weight))
        risk = np.array([rounded(sum_of(at_risk[:, j].copy(), target.weight)) for j in range(m)])
        hazards = np.maximum(events / np.maximum(risk, 1e-300), _SMALLEST_HAZARD)
        without = np.maximum(1 - hazards.sum(axis=0), _SMALLEST_HAZARD)
        scores = np.log(hazards) - np.log(without)
        return _product(scores, self._inverse).ravel()

    def value(self, target: Target, raw: Floats) -> Floats:
        """Sum over the intervals of each row, (n,)."""
        at_risk, cause = self._observed(target)
        logits = self._logits(raw)
        chosen = np.take_along_axis(logits, cause[:, None], axis=1)[:, 0]
        top = logits.max(axis=1)
        normalizer = top + np.log(np.exp(logits - top[:, None]).sum(axis=1))
        return row_sums(at_risk * (normalizer - chosen))

    def gradients(self, target: Target, raw: Floats) -> Gradients:
        """Events minus probabilities where at risk, times the cosines; hessians for short steps."""
        at_risk, cause = self._observed(target)
        p = self.hazards(raw)
        event = cause[:, None] == np.arange(1, self.n_causes + 1)[:, None]
        slope = at_risk[:, None] * (event - p)
        curvature = with_bounded_steps(at_risk[:, None] * p * (1 - p), slope)
        negative = _product(slope, self._cosines)
        hessian = _product(curvature, self._cosines**2)
        return Gradients(negative.reshape(raw.shape), hessian.reshape(raw.shape))

    def inverse_link(self, raw: Floats) -> Floats:
        """Mean of the cumulative hazard of all causes at the ends of the intervals, (n, 1)."""
        return self.cumulative_hazards(raw).mean(axis=1, keepdims=True)

    def hazards(self, raw: Floats) -> Floats:
        """Compute the probabilities of events.

        Parameters
        ----------
        raw : (n, n_causes * m) float64

        Returns
        -------
        (n, n_causes, m) float64
        """
        logits = self._logits(raw)
        power = np.exp(logits - logits.max(axis=1, keepdims=True))
        return power[:, 1:] / power.sum(axis=1, keepdims=True)

    def cumulative_hazards(self, raw: Floats) -> Floats:
        """Compute minus the logarithm of the probability of no event until each end.

        Parameters
        ----------
        raw : (n, n_causes * m) float64

        Returns
        -------
        (n, m) float64
        """
        logits = self._logits(raw)
        top = logits.max(axis=1)
        return np.cumsum(top + np.log(np.exp(logits - top[:, None]).sum(axis=1)), axis=1)

    @cached_property
    def _cosines(self) -> Floats:
        """Values of the cosines in each interval, (m intervals, m frequencies)."""
        m = len(self.ends)
        places, frequencies = np.arange(m) + 0.5, np.arange(m)
        return np.cos(np.pi / m * np.outer(places, frequencies)) / (1 + frequencies) ** 2

    @cached_property
    def _inverse(self) -> Floats:
        """Coefficients of the scores 1 in one interval and 0 in others, (m, m frequencies)."""
        m = len(self.ends)
        norms = np.where(np.arange(m) == 0, 1.0, 2.0) / m
        return self._cosines * norms * (1 + np.arange(m)) ** 4

    def _logits(self, raw: Floats) -> Floats:
        """``F`` of no event and of each cause, (n, n_causes + 1, m)."""
        coefficients = raw.reshape(len(raw), self.n_causes, len(self.ends))
        scores = _product(coefficients, self._cosines.T)
        return np.concatenate([np.zeros((len(raw), 1, len(self.ends))), scores], axis=1)

    def _observed(self, target: Target) -> tuple[Floats, np.ndarray]:
        """Part of each interval in which a row is at risk, (n, m), and its event there, or 0."""
        time, event = target.y[:, LOWER, None], is_event(target)[:, None]
        begins = np.append(0.0, self.ends[:-1])
        at_risk = np.clip((time - begins) / (self.ends - begins), 0.0, 1.0)
        # An event at time 0 is one of the first interval.
        inside = event & (time <= self.ends) & ((time > begins) | (begins == 0.0))
        at_risk[inside] = 1.0
        causes = target.y[:, CAUSE].astype(np.int64) if target.y.shape[1] > CAUSE else 1
        return at_risk, np.where(inside, np.broadcast_to(causes, len(target.y))[:, None], 0)


def _product(values: Floats, matrix: Floats) -> Floats:
    """Matrix product (..., m) x (m, q), with the same bits for a row wherever it is."""
    rows = np.ascontiguousarray(values).reshape(-1, len(matrix))
    found = np.empty((len(rows), matrix.shape[1]))
    row_products(rows, np.ascontiguousarray(matrix), found)
    return found.reshape(*values.shape[:-1], -1)
