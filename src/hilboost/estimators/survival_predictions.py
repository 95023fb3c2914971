"""Predictions of survival models, which are step functions, and their scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.boosting import metric_value
from hilboost.core.dtypes import Floats, PerRow
from hilboost.core.errors import InvalidData, counted, unknown_name
from hilboost.core.packages import required
from hilboost.core.target import Target
from hilboost.distributions import Distribution
from hilboost.estimators.fitted_properties import FittedProperties
from hilboost.estimators.signatures import public_methods, public_prediction
from hilboost.metrics import Concordance
from hilboost.metrics.registry import same_metric
from hilboost.model.survival import SurvivalCurves
from hilboost.validation.survival import SurvivalLabels, check_at, check_times
from hilboost.validation.weights import check_weights


@dataclass(frozen=True)
class StepFunction:
    """A survival or cumulative hazard function, with the attributes of scikit-survival's.

    The function of a Cox model is constant between its steps, and after the last event.  Other
    losses know its values at all times, as predictions with ``times`` return them.

    Attributes
    ----------
    x : (u,) float64
        Times of the steps, ascending.
    y : (u,) float64
        Values from these times on.
    start : float
        Value before the first step.
    """

    x: Floats
    y: Floats
    start: float = 1.0
    # values at any times (m,), if they are not constant between the steps
    exact: Callable[[Floats], Floats] | None = None

    def __repr__(self) -> str:
        """Return the number of steps, and their range."""
        steps = counted(len(self.x), "time")
        return f"StepFunction({steps} from {self.x[0]:g} to {self.x[-1]:g})"

    def __call__(self, x: Any) -> Any:  # float or (m,) float64
        """Evaluate the function at times, a float or (m,)."""
        if self.exact is not None:
            return self.exact(np.ravel(x)).reshape(np.shape(x))
        place = np.searchsorted(self.x, x, side="right")
        return np.append(self.start, self.y)[place]

    @property
    def domain(self) -> tuple[float, float]:
        """Range of times in which the function is estimated."""
        return 0.0, float(self.x[-1])


CONCORDANCE, IPCW, BRIER = "concordance", "concordance_ipcw", "neg_integrated_brier"
METRICS = (CONCORDANCE, IPCW, BRIER)
_N_TIMES, _BEFORE = 50, 1e-9


def score_of_times(
    metric: str, train: Floats, y: Floats, risk: Floats, survival: Callable[[Floats], Floats]
) -> float:  # A larger one is better
    """Compute a metric that weighs rows by the probability of not being censored.

    ``train`` (m, c) and ``y`` (n, c) are bounds of times; the censoring is estimated from
    ``train``.
    """
    metrics: Any = required("sksurv.metrics", f"metric={metric!r}")
    (event, time), (event_train, time_train) = _exact(metric, y), _exact(metric, train)
    end = time_train.max()
    # A row is at risk as long as the training rows tell about the censoring.
    event, time = event & (time <= end), np.minimum(time, end)
    seen, seen_train = _structured(event, time), _structured(event_train, time_train)
    if metric == IPCW:
        return float(metrics.concordance_index_ipcw(seen_train, seen, risk, tau=end)[0])
    levels = np.linspace(0.1, 0.9, _N_TIMES)
    if len(np.unique(time[event])) < 2:
        raise InvalidData(
            f"metric={metric!r} requires events at two different times; pass more rows."
        )
    latest = min(time.max(), end) * (1 - _BEFORE)
    times = np.unique(np.minimum(np.quantile(time[event], levels), latest))
    return -float(metrics.integrated_brier_score(seen_train, seen, survival(times), times))


def _exact(metric: str, y: Floats) -> tuple[NDArray[np.bool_], Floats]:
    """Whether there was an event, and its time or that of the censoring, (n,) each."""
    lower, upper = y[:, 0], y[:, 1]
    interval = (lower != upper) & np.isfinite(upper)
    if interval.any():
        raise InvalidData(
            f"metric={metric!r} requires exact or right-censored times, but row "
            f"{int(np.argmax(interval))} of y has bounds of an interval; use metric='concordance'."
        )
    return lower == upper, lower


def _structured(event: NDArray[np.bool_], time: Floats) -> NDArray[Any]:
    """Events and times as scikit-survival expects them, (n,)."""
    found = np.empty(len(time), dtype=[("event", bool), ("time", np.float64)])
    found["event"], found["time"] = event, time
    return found


def _survival_of(hazard: Floats) -> Floats:
    return np.exp(-hazard)


def _at(
    curves: SurvivalCurves,
    raw: Floats,
    stratum: Floats,
    convert: Callable[[Floats], Floats],
    times: Floats,
) -> Floats:
    """Values (m,) of the function of a row, given by its ``raw`` and stratum, at some times."""
    return convert(curves.cumulative_hazard(raw, stratum, check_at(times)))[0]


@public_methods
class SurvivalPredictions(FittedProperties):
    """Mixin for survival functions, risks, and their scores."""

    @property
    def event_times_(self) -> Floats:
        """Times of the events in the training rows, (u,)."""
        return self._survival().times

    @property
    def _predict_risk_score(self) -> bool:
        """Whether ``predict`` returns risks rather than times; scikit-survival reads it."""
        return self._survival().distribution is None

    def _survival(self) -> SurvivalCurves:
        curves = self.fitted_.survival
        assert curves is not None
        return curves

    @public_prediction
    def predict(self, X: object, offset: PerRow = None) -> Floats:
        """Predict the logarithm of the relative hazard, or the median time with ``loss="aft"``.

        With ``loss="discrete_hazard"``, the mean cumulative hazard of the ends of the intervals.

        Parameters
        ----------
        X : array-like (n, d)
        offset : array-like (n,) or (n, r), optional
            Added to ``predict_raw``.

        Returns
        -------
        (n,) float64
        """
        raw = self._raw_beside(X, offset)
        risk = self.loss_.inverse_link(raw)[:, 0]
        return risk if self._predict_risk_score else self._survival().median(risk)

    @public_prediction
    def predict_median(self, X: object, *, strata: PerRow = None, offset: PerRow = None) -> Floats:
        """Predict median times, which ``predict`` returns with ``loss="aft"``.

        With other losses, the first of ``event_times_`` at which the survival function is at most
        .5, and infinity if there is none.

        Parameters
        ----------
        X : array-like (n, d)
        strata : array-like (n,), optional
            Required if the model was fitted with strata.
        offset : array-like (n,) or (n, r), optional
            Added to ``predict_raw``.

        Returns
        -------
        (n,) float64
        """
        if not self._predict_risk_score:
            return self.predict(X, offset)
        times = self.event_times_
        later = self.predict_survival_function(X, times, strata=strata, offset=offset) > 0.5
        found: Floats = np.append(times, np.inf)[later.sum(axis=1)]
        return found

    @public_prediction
    def predict_distribution(
        self, X: object, *, strata: PerRow = None, offset: PerRow = None
    ) -> Distribution:
        """Predict the distribution of the time of each row.

        Between the times of events, the distribution function is interpolated, except with
        ``loss="aft"``; after the last of them, the hazard of a row remains at its mean.

        Parameters
        ----------
        X : array-like (n, d)
        strata : array-like (n,), optional
            Required if the model was fitted with strata.
        offset : array-like (n,) or (n, r), optional
            Added to ``predict_raw``.

        Returns
        -------
        hilboost.distributions.Distribution
        """
        raw = self._raw_beside(X, offset)
        numbers = self.fitted_.codec.of_survival().strata_numbers(strata, len(raw))
        return self._survival().distribution_of(raw, numbers)

    @public_prediction
    def predict_cumulative_hazard_function(
        self, X: object, times: object = None, *, strata: PerRow = None, offset: PerRow = None
    ) -> Any:
        """Predict cumulative hazards.

        Parameters
        ----------
        X : array-like (n, d)
        times : array-like (m,), optional
            Times at which the functions are evaluated.  After the last of ``event_times_``, they
            are constant, except with ``loss="aft"``.
        strata : array-like (n,), optional
            Required if the model was fitted with strata.
        offset : array-like (n,) or (n, r), optional
            Added to ``predict_raw``.

        Returns
        -------
        (n,) array of StepFunction, or (n, m) float64
            Functions with steps at ``event_times_``, or their values at ``times``.
        """
        return self._functions(X, offset, times, strata, np.positive, 0.0)

    @public_prediction
    def predict_survival_function(
        self, X: object, times: object = None, *, strata: PerRow = None, offset: PerRow = None
    ) -> Any:
        """Predict probabilities that the event happens after some times.

        Parameters
        ----------
        X : array-like (n, d)
        times : array-like (m,), optional
            Times at which the functions are evaluated.  After the last of ``event_times_``, they
            are constant, except with ``loss="aft"``.
        strata : array-like (n,), optional
            Required if the model was fitted with strata.
        offset : array-like (n,) or (n, r), optional
            Added to ``predict_raw``.

        Returns
        -------
        (n,) array of StepFunction, or (n, m) float64
            Functions with steps at ``event_times_``, or their values at ``times``.
        """
        return self._functions(X, offset, times, strata, _survival_of, 1.0)

    @public_prediction
    def predict_cumulative_incidence_function(
        self, X: object, times: object, offset: PerRow = None
    ) -> Floats:
        """Predict probabilities that an event of each cause happens until some times.

        Parameters
        ----------
        X : array-like (n, d)
        times : array-like (m,)
            After the last of ``event_times_``, the incidences are constant.
        offset : array-like (n, r), optional
            As in ``fit``.

        Returns
        -------
        (n, n_causes, m) float64
            The sum over the causes is one minus the survival function.

        Raises
        ------
        InvalidData
            The loss is not ``"discrete_hazard"``, or a time is negative or missing.
        """
        raw, curves = self._raw_beside(X, offset), self._survival()
        if curves.discrete is None:
            raise InvalidData(
                "predict_cumulative_incidence_function requires loss='discrete_hazard'."
            )
        return curves.cumulative_incidence(raw, check_at(times))

    def _functions(
        self, X: object, offset: PerRow, times: object, strata: PerRow, convert: Any, start: float
    ) -> Any:
        raw, curves = self._raw_beside(X, offset), self._survival()
        numbers = self.fitted_.codec.of_survival().strata_numbers(strata, len(raw))
        if times is not None:
            return convert(curves.cumulative_hazard(raw, numbers, check_at(times)))
        values = convert(curves.cumulative_hazard(raw, numbers, curves.times))
        functions = np.empty(len(raw), dtype=object)
        for k, row in enumerate(values):
            exact, here = None, slice(k, k + 1)
            if curves.hazard is None:
                exact = partial(_at, curves, raw[here], numbers[here], convert)
            functions[k] = StepFunction(curves.times, row, start, exact)
        return functions

    @public_prediction
    def score(
        self,
        X: object,
        y: object,
        sample_weight: PerRow = None,
        *,
        metric: str = CONCORDANCE,
        y_train: Any = None,
        strata: PerRow = None,
        offset: PerRow = None,
    ) -> float:
        """Compute Harrell's C of the predicted risks, or another metric; larger is better.

        With several causes, events of any cause count.

        Parameters
        ----------
        X : array-like (n, d)
        y : structured array (n,), or array-like (n, 2)
            See :meth:`fit`.
        sample_weight : array-like (n,), optional
            For ``metric="concordance"``.
        metric : str, default="concordance"
            ``"concordance"`` compares rows within their stratum.  ``"concordance_ipcw"``, Uno's C,
            and ``"neg_integrated_brier"``, minus the integrated Brier score between the 10th and
            90th percentile of the times of events, require scikit-survival (extra ``survival``).
        y_train : optional
            Times of the training rows in the form of ``y``, by which the last two metrics estimate
            the distribution of the censoring; ``y`` by default.
        strata : array-like (n,), optional
            Required if the model was fitted with strata.
        offset : array-like (n,) or (n, r), optional
            As in ``fit``.

        Returns
        -------
        float

        Raises
        ------
        InvalidParameter
            The metric is not known.
        InvalidData
            The metric does not support these rows.
        MissingPackage
            The metric requires scikit-survival.
        """
        if metric not in METRICS:
            raise unknown_name("metric", metric, METRICS, same_metric(metric, METRICS))
        raw = self._raw_beside(X, offset)
        codec = self.fitted_.codec.of_survival()
        encoded = codec.encode(SurvivalLabels(y, None, strata), len(raw))
        if metric == CONCORDANCE:
            target = Target(encoded, check_weights(sample_weight, raw))
            return metric_value(Concordance(), self.loss_, None, [(target, raw)])
        if sample_weight is not None:
            raise InvalidData(f"metric={metric!r} does not support sample_weight; omit it.")
        train = encoded
        if y_train is not None:
            train = np.column_stack(check_times(y_train, len(y_train), codec.intervals))
        return score_of_times(
            *(metric, train, encoded, self.loss_.inverse_link(raw)[:, 0]),
            lambda at: self.predict_survival_function(X, at, strata=strata, offset=offset),
        )
