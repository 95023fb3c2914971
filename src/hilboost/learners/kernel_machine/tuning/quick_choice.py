"""The choice of a kernel in a fraction of a second.

Leave-one-out errors on a few hundred rows choose a family and one length scale for all columns.  In
the time that is left, the likelihood fits length scales of their own, and λ is corrected.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from hilboost.backends.threads import ThreadTeam
from hilboost.learners.kernel_machine.tuning.clock import Clock
from hilboost.learners.kernel_machine.tuning.likelihood import (
    ROWS_FIRST,
    ROWS_OF_LIKELIHOOD,
    ROWS_PER_SCALE,
    START_NOISE,
    more_likely,
    most_likely,
)
from hilboost.learners.kernel_machine.tuning.scoring import (
    Candidate,
    Sampled,
    best_lambda,
    best_scale,
    by_error,
    leave_one_out,
)
from hilboost.learners.kernel_machine.tuning.table_kernel import (
    MAIN_FAMILIES,
    MOST_COLUMNS_WITH_OWN_SCALES,
    Columns,
    TableKernel,
)

_ROWS, _FEWER_ROWS = 400, 200
_SCALES = (1.0, 0.5, 2.0, 0.25, 4.0)  # the usual one first
_USUAL_FAMILY = "matern52"
_WORTH_SCALES = 0.95  # leave-one-out errors favor scales that were fitted to the same rows
_SECONDS_OF_FEWER_ROWS = 0.2
_LEFT_FOR_SCALES, _LEFT_FOR_LAMBDA = 0.3, 0.1


def hasty_kernel(
    columns: Columns, sampled: Sampled, floor: float, team: ThreadTeam, clock: Clock
) -> tuple[Candidate[TableKernel], int]:
    """Choose a kernel and λ; also return the number of rows that they suit.

    ``sampled``: leave-one-out errors use the first few hundred. ``floor``: smallest λ.
    ``team``: evaluates candidates in parallel.

    Returns best; n_rows.
    """
    rows = sampled.first(_ROWS if clock.allows(_SECONDS_OF_FEWER_ROWS) else _FEWER_ROWS)
    best = leave_one_out(_usual(columns, floor), rows)
    families = sorted(MAIN_FAMILIES, key=lambda family: family != _USUAL_FAMILY)
    for family in families:
        for scale in _SCALES:
            if clock.has(0.5):
                kernel = columns.kernel(family, scale)
                tried = leave_one_out(Candidate(kernel, best.regularization), rows)
                best = min(best, tried, key=by_error)
    if clock.has(0.5):
        for likely in _with_own_scales(columns, sampled, best.kernel.family, clock):
            raised = replace(likely, regularization=max(likely.regularization, floor))
            tried = best_scale(raised, rows)
            if tried.error < _WORTH_SCALES * best.error:
                best = tried
    if clock.has(_LEFT_FOR_LAMBDA):
        best = best_lambda(best, rows, leave_one_out, floor, team)
    return best, len(rows)


def _with_own_scales(
    columns: Columns, sampled: Sampled, family: str, clock: Clock
) -> Iterator[Candidate[TableKernel]]:
    """Length scales of a family by the likelihood of few rows, and if there is time, of more."""
    goes_on = partial(clock.has, _LEFT_FOR_SCALES)
    d = sampled.X.shape[1]
    n_scales = d if d <= MOST_COLUMNS_WITH_OWN_SCALES else 1
    enough = clock.allows(_SECONDS_OF_FEWER_ROWS)
    n_rows = ROWS_FIRST + ROWS_PER_SCALE * n_scales if enough else _FEWER_ROWS
    found = most_likely(columns, sampled.first(n_rows), family, goes_on)
    yield found
    if len(sampled) > n_rows and goes_on():
        yield more_likely(found, sampled.first(ROWS_OF_LIKELIHOOD), goes_on=goes_on)


def _usual(columns: Columns, floor: float) -> Candidate[TableKernel]:
    return Candidate(columns.kernel(_USUAL_FAMILY, _SCALES[0]), max(START_NOISE, floor))
