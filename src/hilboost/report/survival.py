"""Facts about models of survival times, and of competing causes of events."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.boosting import metric_value
from hilboost.core.dtypes import Floats
from hilboost.core.target import Target
from hilboost.losses._survival import CAUSE, is_event
from hilboost.metrics import Concordance
from hilboost.report.evaluation import Asides
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


def survival_facts(
    model: Any, columns: Columns, target: Target, raw: Floats, asides: Asides
) -> dict[str, Any]:
    """Collect concordance, Brier score, curves of risk groups, and calibration at some times.

    There are no curves of fewer than 20 rows, or of fewer than two different event times.
    """
    lower, upper, entry = target.y[:, :3].T
    event = lower == upper
    known = np.flatnonzero(event | np.isinf(upper))
    n_causes = model.fitted_.codec.n_causes
    n_events = int(np.isfinite(upper).sum())
    found: dict[str, Any] = {"n_events": n_events, "n_causes": n_causes, "curves": None}
    exact = np.unique(lower[event])
    seen = Seen(lower[known], event[known], entry[known], asides.horizons())
    per_row: tuple[Floats, Floats] | None = None
    if len(known) >= FEWEST and len(exact) > 1:

        def predicted(times: Floats) -> Floats:
            values = model.predict_survival_function(
                columns.source, times, strata=asides.strata, offset=target.offset
            )
            return 1 - np.asarray(values)[known]

        found["curves"] = _without_event(curves(seen, predicted, None))
        per_row = brier(seen, predicted, None)
    found["scores"] = _scores(model, target, raw, known, per_row)
    return found


def _without_event(found: dict[str, Any]) -> dict[str, Any]:
    """Turn the incidences of risk groups into survival functions."""

    def survival(group: dict[str, Any], key: str) -> list[float]:
        return [1 - value for value in group[key]]

    groups = [
        {**one, **{k: survival(one, k) for k in ("observed", "predicted")}}
        for one in found["groups"]
    ]
    return {**found, "groups": groups}


def _scores(
    model: Any,
    target: Target,
    raw: Floats,
    known: NDArray[np.intp],
    per_row: tuple[Floats, Floats] | None,
) -> list[dict[str, Any]]:
    comparable = _comparable(target)

    def measured(rows: Any, brier: Any) -> list[dict[str, Any]]:
        found = []
        if comparable:
            parts = [(target.rows(rows), raw[rows])]
            value = metric_value(Concordance(), model.loss_, None, parts)
            says = "share of the pairs of rows whose order the risks predict; 1 is best"
            found.append(score("concordance", value, 0.5, "higher", says))
        if per_row is not None:
            own, guess = (float(values[brier].mean()) for values in per_row)
            found.append(ibs_score(own, guess, "survival functions"))
        return found

    place = np.full(len(raw), -1)
    place[known] = np.arange(len(known))

    def resampled(rows: NDArray[np.intp]) -> list[dict[str, Any]]:
        inside = place[rows]
        return measured(rows, inside[inside >= 0])

    everything = slice(None)
    return with_intervals(measured(everything, everything), len(raw), resampled)


def _comparable(target: Target) -> bool:
    """Whether one of two rows of some stratum is known to fail first."""
    lower, upper, strata = target.y[:, 0], target.y[:, 1], target.y[:, 3]
    return any(
        bool((lower[here & (lower == upper)] < lower[here].max()).any())
        for here in (strata == s for s in np.unique(strata))
    )


_NEVER = np.finfo(np.float64).max


def cause_facts(
    model: Any, columns: Columns, target: Target, asides: Asides
) -> list[dict[str, Any]]:
    """Collect incidence, calibration and scores of each of several causes.

    Causes of fewer than 20 rows, or with events at fewer than two times, have none.
    """
    n_causes = model.fitted_.codec.n_causes
    if n_causes == 1:
        return []
    cause = np.where(is_event(target), target.y[:, CAUSE], 0)
    seen = Seen(target.y[:, 0], cause, target.y[:, 2], asides.horizons())
    causes = range(1, n_causes + 1)
    events = {cause: seen.events(cause) for cause in causes}
    shown = [k for k, of_cause in events.items() if len(np.unique(seen.time[of_cause])) >= 2]
    shown = shown if len(seen.time) >= FEWEST else []
    incidences = _incidences(model, columns, target, seen, shown)
    return [_facts_of(seen, incidences.get(cause), cause) for cause in causes]


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
        listed = []
        pairs = Concordance().parts(ordered.rows(rows), risk[rows])
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
