"""Facts about models of survival times, and of competing causes of events."""

from __future__ import annotations

from collections.abc import Callable
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
from hilboost.report.table import Columns

_GRID = 60  # times of a curve
_BRIER = 50  # times of the integrated Brier score
_GROUPS = 4
_BINS, _ROWS_OF_BIN, _EVENTS_OF_BIN = 10, 25, 5
FEWEST = 20  # rows of a curve
_HORIZONS = (0.25, 0.5, 0.75)  # quantiles of the times of events

Incidence = Callable[[Floats], Floats]
"""Maps times (k,) to the predicted probabilities (m, k) of an event until then."""


class Seen:
    """Rows with exact or right-censored times (m,), causes from 1 on or 0, and entry times.

    ``horizons`` (k,) are the times of calibration: by default, quartiles of the times of events.
    """

    def __init__(
        self, time: Floats, cause: NDArray[Any], entry: Floats, horizons: Floats | None = None
    ) -> None:
        self.time, self.cause, self.entry = time, np.asarray(cause, dtype=np.int64), entry
        self.horizons = horizons

    def rows(self, index: Any) -> Seen:
        """Select rows."""
        return Seen(self.time[index], self.cause[index], self.entry[index])

    def events(self, cause: int | None) -> NDArray[np.bool_]:
        """Rows (m,) with an event of a cause, or of any."""
        return self.cause > 0 if cause is None else self.cause == cause

    def survival(self, at: Floats) -> Floats:
        """Estimate of Kaplan and Meier at some times, (k,)."""
        times, rates = self._rates(self.cause > 0, None)
        return _steps(times, np.cumprod(1 - rates), 1.0, at)

    def not_censored(self, at: Floats) -> Floats:
        """Probability that a row is not censored until some times, (k,)."""
        times, rates = self._rates(self.cause == 0, self.cause > 0)
        return _steps(times, np.cumprod(1 - rates), 1.0, at)

    def incidence(self, at: Floats, cause: int | None) -> Floats:
        """Estimate of Aalen and Johansen at some times, (k,): events of a cause, or of any."""
        if cause is None:
            return 1 - self.survival(at)
        times, rates = self._rates(self.cause == cause, None)
        before = np.nextafter(times, -np.inf)
        return _steps(times, np.cumsum(self.survival(before) * rates), 0.0, at)

    def _rates(
        self, ends: NDArray[np.bool_], leave_first: NDArray[np.bool_] | None
    ) -> tuple[Floats, Floats]:
        """Times where rows end, and the share of the rows at risk that do.

        The rows ``leave_first`` are not at risk at the times of their own ends.
        """
        times, deaths = np.unique(self.time[ends], return_counts=True)
        at_risk = len(self.time) - np.searchsorted(np.sort(self.time), times, side="left")
        entry = np.where(self.entry > 0, self.entry, -1.0)  # at risk at time 0, too
        at_risk -= len(self.time) - np.searchsorted(np.sort(entry), times, side="left")
        if leave_first is not None:
            left = np.sort(self.time[leave_first])
            at_risk -= np.searchsorted(left, times, "right") - np.searchsorted(left, times, "left")
        rates: Floats = deaths / np.maximum(at_risk, 1)
        return times, rates


def _steps(times: Floats, values: NDArray[Any], start: float, at: Floats) -> Floats:
    """Evaluate a function with steps at ``times``."""
    return np.append(start, values)[np.searchsorted(times, at, side="right")]


def grid(seen: Seen) -> Floats:
    """Times (60,) of the curves."""
    return np.linspace(0.0, float(np.quantile(seen.time, 0.9)), _GRID)


def horizons_of(seen: Seen, cause: int | None) -> Floats:
    """Times (k,) of calibration: by default, quartiles of the times of events."""
    if seen.horizons is not None:
        return seen.horizons
    times = seen.time[seen.events(cause)]
    return np.unique(np.quantile(times, _HORIZONS, method="inverted_cdf"))


def brier_times(seen: Seen, cause: int | None) -> Floats:
    """Times (at most 50,) of the integrated Brier score."""
    low, high = np.quantile(seen.time[seen.events(cause)], [0.1, 0.9])
    times = np.unique(np.linspace(low, high, _BRIER))
    # Until here, the weights are finite.
    before = times[(times < seen.time.max()) & (seen.not_censored(times) > 0)]
    return before if len(before) else times[:1]


def curves(seen: Seen, predicted: Incidence, cause: int | None) -> dict[str, Any]:
    """Observed and predicted incidence of risk groups, and calibration at some times."""
    times = grid(seen)
    incidence = predicted(times)
    events = seen.events(cause)
    by_risk = np.argsort(incidence.mean(axis=1), kind="stable")
    n_groups = min(_GROUPS, max(1, len(by_risk) // FEWEST))
    groups = [np.sort(part) for part in np.array_split(by_risk, n_groups)]
    horizons = horizons_of(seen, cause)
    at = predicted(horizons)
    return {
        "times": times.tolist(),
        "groups": [
            {
                "rows": len(rows),
                "events": int(events[rows].sum()),
                "observed": seen.rows(rows).incidence(times, cause).tolist(),
                "predicted": incidence[rows].mean(axis=0).tolist(),
            }
            for rows in groups
        ],
        "horizons": [
            {
                "time": float(time),
                "predicted": float(at[:, k].mean()),
                "observed": float(seen.incidence(horizons[[k]], cause)[0]),
                "bins": _calibration(seen, at[:, k], horizons[[k]], cause),
            }
            for k, time in enumerate(horizons)
        ],
    }


def _calibration(
    seen: Seen, incidence: Floats, time: Floats, cause: int | None
) -> list[dict[str, Any]]:
    """Observed frequency of an event until a time (1,), by its predicted probability."""
    order = np.argsort(incidence, kind="stable")
    events = int((seen.events(cause) & (seen.time <= time)).sum())
    n_bins = min(_BINS, len(order) // _ROWS_OF_BIN, events // _EVENTS_OF_BIN)
    parts = np.array_split(order, max(1, n_bins))
    return [
        {
            "stated": float(incidence[rows].mean()),
            "observed": float(seen.rows(rows).incidence(time, cause)[0]),
            "count": len(rows),
        }
        for rows in parts
    ]


def brier(seen: Seen, predicted: Incidence, cause: int | None) -> tuple[Floats, Floats]:
    """Integrated Brier score of each row, of the model and of the estimate of all rows, (m,).

    Rows are weighted by the inverse probability that they are not censored (Graf et al. 1999).
    Scores are NaN if this probability is 0 before the first time.
    """
    times = brier_times(seen, cause)
    with np.errstate(divide="ignore"):
        of_event = 1 / seen.not_censored(seen.time)
        later = 1 / seen.not_censored(times)
    of_event[~np.isfinite(of_event)] = 0.0
    later[~np.isfinite(later)] = np.nan
    until = seen.time[:, None] <= times
    others = np.where(until, 0.0, later)
    weight = np.where(until & (seen.cause > 0)[:, None], of_event[:, None], others)
    happened = until & seen.events(cause)[:, None]

    def integrated(incidence: Floats) -> Floats:
        error = weight * (happened - incidence) ** 2
        if len(times) == 1:
            return error[:, 0]
        return np.trapezoid(error, times, axis=1) / (times[-1] - times[0])

    return integrated(predicted(times)), integrated(seen.incidence(times, cause)[None])


def ibs_score(own: float, guess: float, of: str) -> dict[str, Any]:
    """Describe the mean of :func:`brier` over some rows, ``of`` functions of this name."""
    says = f"integrated Brier score: squared error of the {of}"
    if np.isnan(own):
        says += "; undefined, because all rows at risk are censored before its first time"
    return score("IBS", own, guess, "lower", says)


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

        found["curves"] = curves(seen, predicted, None)
        for group in found["curves"]["groups"]:  # survival functions instead of incidences
            for key in ("observed", "predicted"):
                group[key] = [1 - value for value in group[key]]
        per_row = brier(seen, predicted, None)
    found["scores"] = _scores(model, target, raw, known, per_row)
    return found


def _scores(
    model: Any,
    target: Target,
    raw: Floats,
    known: NDArray[np.intp],
    per_row: tuple[Floats, Floats] | None,
) -> list[dict[str, Any]]:
    comparable = _comparable(target)
    place = np.full(len(raw), -1)
    place[known] = np.arange(len(known))

    def measured(rows: Any) -> list[dict[str, Any]]:
        found = []
        if comparable:
            parts = [(target.rows(rows), raw[rows])]
            value = metric_value(Concordance(), model.loss_, None, parts)
            says = "share of the pairs of rows whose order the risks predict; 1 is best"
            found.append(score("concordance", value, 0.5, "higher", says))
        if per_row is not None:
            inside = place[rows][place[rows] >= 0]
            own, guess = (float(values[inside].mean()) for values in per_row)
            found.append(ibs_score(own, guess, "survival functions"))
        return found

    return with_intervals(measured(slice(None)), len(raw), measured)


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
    n = int(seen.events(cause).sum())
    found: dict[str, Any] = {"cause": cause, "n_events": n, "curves": None, "scores": []}
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
