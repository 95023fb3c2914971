"""Facts about models of competing causes of events, by cause."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.core.target import Target
from hilboost.losses._survival import CAUSE, is_event
from hilboost.metrics import Concordance
from hilboost.report.figures import score, with_intervals
from hilboost.report.observed import (
    FEWEST,
    Incidence,
    Seen,
    brier,
    brier_times,
    curves,
    grid,
    horizons_of,
    ibs_score,
)
from hilboost.report.table import Columns

_NEVER = np.finfo(np.float64).max


def cause_facts(model: Any, columns: Columns, target: Target) -> list[dict[str, Any]]:
    """Collect incidence, calibration and scores of each cause.

    ``target``: times and causes of the rows.

    Returns list of dict: ``cause``, ``n_events``, ``curves`` and ``scores``; the last two are
    ``None`` and empty if there are fewer than 20 rows, or events at fewer than two times.  The list
    is empty if the model has one cause.
    """
    n_causes = model.fitted_.codec.n_causes
    if n_causes == 1:
        return []
    seen = Seen(target.y[:, 0], np.where(is_event(target), target.y[:, CAUSE], 0), target.y[:, 2])
    causes = range(1, n_causes + 1)
    shown = [cause for cause in causes if _has_curves(seen, cause)]
    incidences = _incidences(model, columns, target, seen, shown)
    return [_facts_of(seen, incidences.get(cause), cause) for cause in causes]


def _has_curves(seen: Seen, cause: int) -> bool:
    events = seen.events(cause)
    return len(events) >= FEWEST and len(np.unique(seen.time[events])) >= 2


def _incidences(
    model: Any, columns: Columns, target: Target, seen: Seen, causes: list[int]
) -> dict[int, Incidence]:
    """Predicted incidences of some causes at all times of their facts: one prediction."""
    if not causes:
        return {}
    own = [of(seen, cause) for cause in causes for of in (horizons_of, brier_times)]
    times = np.unique(np.concatenate([grid(seen), *own]))
    found = model.predict_cumulative_incidence_function(columns.source, times, offset=target.offset)

    def of(cause: int) -> Incidence:
        return lambda wanted: found[:, cause - 1, np.searchsorted(times, wanted)]

    return {cause: of(cause) for cause in causes}


def _facts_of(seen: Seen, predicted: Incidence | None, cause: int) -> dict[str, Any]:
    found: dict[str, Any] = {
        "cause": cause,
        "n_events": int(seen.events(cause).sum()),
        "curves": None,
        "scores": [],
    }
    if predicted is None:
        return found
    risk = predicted(grid(seen)).mean(axis=1, keepdims=True)
    own, guess = brier(seen, predicted, cause)
    ordered = _ordered(seen, cause)

    def measured(rows: Any) -> list[dict[str, Any]]:
        part = ordered if isinstance(rows, slice) else ordered.rows(rows)
        listed = []
        pairs = Concordance().parts(part, risk[rows])
        if len(pairs.values):
            says = "share of the pairs of rows whose order the predicted incidences give"
            listed.append(score("concordance", pairs.values[0], 0.5, "higher", says))
        value, of_guess = float(own[rows].mean()), float(guess[rows].mean())
        return [*listed, ibs_score(value, of_guess, "predicted incidences")]

    scores = with_intervals(measured(slice(None)), len(risk), measured)
    return {**found, "curves": curves(seen, predicted, cause), "scores": scores}


def _ordered(seen: Seen, cause: int) -> Target:
    """Times of a cause: rows with an event of another one never have it (Wolbers et al. 2009)."""
    events: NDArray[np.bool_] = seen.events(cause)
    lower = np.where(events | (seen.cause == 0), seen.time, _NEVER)
    upper = np.where(events, seen.time, np.inf)
    return Target(np.column_stack([lower, upper, seen.entry, np.zeros(len(lower))]))
