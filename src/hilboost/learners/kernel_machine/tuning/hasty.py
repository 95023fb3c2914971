"""The choice of a kernel in a fraction of a second.

Leave-one-out errors on a few hundred rows choose a family and one length scale for all columns.  In
the time that is left, the likelihood fits length scales of their own, and λ is corrected.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from hilboost.backends.threads import ThreadTeam
from hilboost.learners.kernel_machine.tuning.clock import Clock
from hilboost.learners.kernel_machine.tuning.likelihood import START_NOISE, more_likely
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
    columns: Columns, rows: Sampled, floor: float, team: ThreadTeam, clock: Clock
) -> tuple[Candidate[TableKernel], int]:
    """Choose a kernel and λ; also return the number of rows that they suit.

    Parameters
    ----------
    columns : Columns
    rows : Sampled
        The first few hundred are used.
    floor : float
        Smallest λ.
    team : ThreadTeam
        Evaluates candidates in parallel.
    clock : Clock

    Returns
    -------
    best : Candidate
    n_rows : int
    """
    rows = rows.first(_ROWS if clock.allows(_SECONDS_OF_FEWER_ROWS) else _FEWER_ROWS)
    best = leave_one_out(_usual(columns, floor), rows)
    families = sorted(MAIN_FAMILIES, key=lambda family: family != _USUAL_FAMILY)
    for family in families:
        for scale in _SCALES:
            if clock.has(0.5):
                kernel = columns.kernel(family, scale)
                tried = leave_one_out(Candidate(kernel, best.regularization), rows)
                best = min(best, tried, key=by_error)
    if clock.has(0.5):
        refined = more_likely(best, rows, goes_on=partial(clock.has, _LEFT_FOR_SCALES))
        refined = replace(refined, regularization=max(refined.regularization, floor))
        tried = best_scale(refined, rows)
        if tried.error < _WORTH_SCALES * best.error:
            best = tried
    if clock.has(_LEFT_FOR_LAMBDA):
        best = best_lambda(best, rows, leave_one_out, floor, team)
    return best, len(rows)


def _usual(columns: Columns, floor: float) -> Candidate[TableKernel]:
    return Candidate(columns.kernel(_USUAL_FAMILY, _SCALES[0]), max(START_NOISE, floor))
