"""Facts about models of survival times."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.boosting import metric_value
from hilboost.core.dtypes import Floats
from hilboost.core.target import Target
from hilboost.metrics import Concordance
from hilboost.report.figures import score, with_intervals
from hilboost.report.table import Columns

_GRID = 60  # times of a curve
_BRIER = 50  # times of the integrated Brier score
_GROUPS = 4
_BINS, _ROWS_OF_BIN = 10, 25
_FEWEST = 20  # rows of a curve
_HORIZONS = (0.25, 0.5, 0.75)  # quantiles of the times of events


def survival_facts(
    model: Any, columns: Columns, target: Target, raw: Floats, strata: Any
) -> dict[str, Any]:
    """Collect concordance, Brier score, curves of risk groups, and calibration at some times.

    Parameters
    ----------
    model : estimator
    columns : Columns
    target : Target
        Bounds and entry times of the rows.
    raw : (n, r) float64
    strata : (n,) array or None
        As the user passed them.

    Returns
    -------
    dict
        ``scores``, ``n_events``, ``n_causes``, and ``curves``, which is ``None`` if there are fewer
        than 20 rows with exact or right-censored times, or fewer than two different event times.
    """
    lower, upper, entry = target.y[:, :3].T
    event = lower == upper
    known = np.flatnonzero(event | np.isinf(upper))
    n_causes = model.fitted_.codec.n_causes
    n_events = int(np.isfinite(upper).sum())
    found: dict[str, Any] = {"n_events": n_events, "n_causes": n_causes, "curves": None}
    exact = np.unique(lower[event])
    seen = _Seen(lower[known], event[known], entry[known])
    per_row: tuple[Floats, Floats] | None = None
    if len(known) >= _FEWEST and len(exact) > 1:

        def predicted(times: Floats) -> Floats:
            values = model.predict_survival_function(
                columns.source, times, strata=strata, offset=target.offset
            )
            return np.asarray(values)[known]

        found["curves"] = _curves(seen, predicted)
        per_row = _brier(seen, predicted)
    found["scores"] = _scores(model, target, raw, known, per_row)
    return found


class _Seen:
    """Times (m,) of rows, whether they ended with an event (m,) bool, and entry times (m,)."""

    def __init__(self, time: Floats, event: NDArray[np.bool_], entry: Floats) -> None:
        self.time, self.event, self.entry = time, event, entry

    def rows(self, index: Any) -> _Seen:
        return _Seen(self.time[index], self.event[index], self.entry[index])

    def survival(self, at: Floats) -> Floats:
        """Estimate of Kaplan and Meier at some times, (k,)."""
        return _product(self.time, self.event, self.entry, None, at)

    def not_censored(self, at: Floats) -> Floats:
        """Probability that a row is not censored until some times, (k,)."""
        return _product(self.time, ~self.event, self.entry, self.event, at)


def _product(
    time: Floats,
    ends: NDArray[np.bool_],
    entry: Floats,
    leave_first: NDArray[np.bool_] | None,
    at: Floats,
) -> Floats:
    """Product of one minus the rates at the times where rows end; ties leave first or last."""
    times, deaths = np.unique(time[ends], return_counts=True)
    at_risk = len(time) - np.searchsorted(np.sort(time), times, side="left")
    at_risk -= len(time) - np.searchsorted(np.sort(entry), times, side="left")
    if leave_first is not None:
        left = np.sort(time[leave_first])
        at_risk -= np.searchsorted(left, times, "right") - np.searchsorted(left, times, "left")
    kept = np.cumprod(1 - deaths / np.maximum(at_risk, 1))
    found: Floats = np.append(1.0, kept)[np.searchsorted(times, at, side="right")]
    return found


def _curves(seen: _Seen, predicted: Any) -> dict[str, Any]:
    """Observed and predicted survival of risk groups, and calibration at some times."""
    times = np.linspace(0.0, float(np.quantile(seen.time, 0.9)), _GRID)
    survival = predicted(times)
    by_risk = np.argsort(survival.mean(axis=1), kind="stable")[::-1]
    n_groups = min(_GROUPS, max(1, len(by_risk) // _FEWEST))
    groups = [np.sort(part) for part in np.array_split(by_risk, n_groups)]
    exact = seen.time[seen.event]
    horizons = np.unique(np.quantile(exact, _HORIZONS, method="inverted_cdf"))
    at = predicted(horizons)
    return {
        "times": times.tolist(),
        "groups": [
            {
                "rows": len(rows),
                "events": int(seen.event[rows].sum()),
                "observed": seen.rows(rows).survival(times).tolist(),
                "predicted": survival[rows].mean(axis=0).tolist(),
            }
            for rows in groups
        ],
        "horizons": [
            {
                "time": float(time),
                "predicted": float(1 - at[:, k].mean()),
                "observed": float(1 - seen.survival(horizons[[k]])[0]),
                "bins": _calibration(seen, at[:, k], horizons[[k]]),
            }
            for k, time in enumerate(horizons)
        ],
    }


def _calibration(seen: _Seen, survival: Floats, time: Floats) -> list[dict[str, Any]]:
    """Observed frequency of an event until a time (1,), by its predicted probability."""
    order = np.argsort(-survival, kind="stable")
    parts = np.array_split(order, min(_BINS, max(1, len(order) // _ROWS_OF_BIN)))
    return [
        {
            "stated": float(1 - survival[rows].mean()),
            "observed": float(1 - seen.rows(rows).survival(time)[0]),
            "count": len(rows),
        }
        for rows in parts
    ]


def _brier(seen: _Seen, predicted: Any) -> tuple[Floats, Floats]:
    """Integrated Brier score of each row, of the model and of Kaplan and Meier's estimate, (m,).

    Rows are weighted by the inverse probability that they are not censored (Graf et al. 1999).
    """
    low, high = np.quantile(seen.time[seen.event], [0.1, 0.9])
    times = np.unique(np.linspace(low, high, _BRIER))
    # Until here, the weights are finite.
    last = seen.time.max()
    times = times[times < last] if (times < last).any() else times[:1]
    with np.errstate(divide="ignore"):
        of_event = 1 / seen.not_censored(seen.time)
        later = 1 / seen.not_censored(times)
    of_event[~np.isfinite(of_event)] = 0.0
    ended = (seen.time[:, None] <= times) & seen.event[:, None]
    after = seen.time[:, None] > times
    weight = np.where(ended, of_event[:, None], np.where(after, later, 0.0))

    def integrated(survival: Floats) -> Floats:
        error = weight * (after - survival) ** 2
        if len(times) == 1:
            return error[:, 0]
        found: Floats = np.trapezoid(error, times, axis=1) / (times[-1] - times[0])
        return found

    return integrated(predicted(times)), integrated(seen.survival(times)[None])


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
            part = target if isinstance(rows, slice) else target.rows(rows)
            value = metric_value(Concordance(), model.loss_, None, [(part, raw[rows])])
            says = "share of the pairs of rows whose order the risks predict; 1 is best"
            found.append(score("concordance", value, 0.5, "higher", says))
        if per_row is not None:
            own, guess = (float(values[brier].mean()) for values in per_row)
            says = "integrated Brier score: squared error of the survival functions"
            found.append(score("IBS", own, guess, "lower", says))
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
