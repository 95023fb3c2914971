"""Forms in which survival models take events and times."""

import importlib.util
import re

import numpy as np
import pandas as pd
import pytest
from tests.estimators.test_survival import SHORT, X, Y
from tests.reloaded import reloaded

from hilboost import BoostingSurvival
from hilboost.core.errors import DataWarning, InvalidData
from hilboost.validation.survival import check_times

DAYS = np.ceil(100 * Y["time"])  # (300,) whole numbers
EVENT = Y["event"].astype(int)


def fields(index=False, **columns):
    return pd.DataFrame(columns).to_records(index=index)


@pytest.mark.parametrize(
    ("y", "places"),
    [
        (fields(event=EVENT * 1.0, time=DAYS.astype(int)), (0, 1)),
        (fields(a=DAYS.astype(int), b=EVENT * 1.0), (1, 0)),
        (fields(a=DAYS.astype(int), b=EVENT), (1, 0)),
        (fields(cause=EVENT * 2.0, months=EVENT + 1), (0, 1)),
        (fields(a=EVENT, months=EVENT + 1), (0, 1)),
        (fields(a=2 * EVENT, b=Y["time"]), (0, 1)),
        (fields(e=pd.array(Y["event"], "boolean"), t=pd.array(DAYS, "Int64")), (0, 1)),
        (pd.DataFrame({"time": DAYS, "status": EVENT}), (1, 0)),
        (pd.DataFrame({"a": DAYS, "b": EVENT}), (1, 0)),
        (pd.DataFrame({"a": DAYS, "b": Y["event"]}), (1, 0)),
        (pd.DataFrame({"a": EVENT + 1, "b": Y["time"]}), (0, 1)),
        (pd.DataFrame({"a": DAYS, "b": 3 * EVENT}), (1, 0)),
        (pd.DataFrame({"a": 1, "days": DAYS}), (0, 1)),
        (pd.DataFrame({"a": EVENT, "follow_up_minutes": DAYS}), (0, 1)),
    ],
)
def test_events_are_known_by_their_type_name_or_values(y, places):
    lower, upper, cause = check_times(y, 300)
    columns = y.to_numpy().T if hasattr(y, "iloc") else [y[name] for name in y.dtype.names]
    event, time = (np.asarray(columns[place], dtype=float) for place in places)
    np.testing.assert_array_equal(lower, time)
    np.testing.assert_array_equal(cause, event)
    np.testing.assert_array_equal(np.isinf(upper), event == 0)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (fields(a=2 * EVENT, b=EVENT + 1), "not clear which of the fields 'a' and 'b' is the"),
        (fields(True, event=EVENT, time=DAYS), r"such as y\[\['event', 'time'\]\]"),
        (pd.DataFrame({"x": "text", "event": EVENT, "time": DAYS}), "3 columns, 'x', 'event', 't"),
        (fields(event=EVENT, time=pd.to_timedelta(DAYS, "D")), r"y\['time'\] contains durations"),
        (fields(status=["dead"] * 300, time=DAYS), "'status' of y contains text .*'dead' in row 0"),
        (fields(event=EVENT * 181500, time=DAYS), "number the causes .*; y contains 181500"),
        (fields(event=EVENT * 1.5, time=DAYS), "row [0-9]+ .* is not a whole number"),
        (fields(event=EVENT * np.nan, time=DAYS), "row 0 .* is missing"),
        (fields(event=-EVENT, time=DAYS), "row [0-9]+ .* is negative; causes"),
        (np.zeros(300, dtype=[("event", int, (2,)), ("time", float)]), r"the shape \(300, 2\)"),
        ((DAYS, Y["event"]), r"zip\(\*y\)\), dtype=\[\('time', float\), \('event', bool\)\]"),
        ([list(EVENT), list(DAYS)], r"zip\(\*y\)\), dtype=\[\('event', bool\), \('time', float\)"),
        (list(zip(DAYS, Y["event"], strict=True)), r"list .*dtype=\[\('time', float\), \('event'"),
        (pd.Series(list(zip(Y["event"], DAYS, strict=True))), r"dtype=\[\('event', bool\), \('tim"),
    ],
)
def test_forms_that_are_not_known(y, message):
    with pytest.raises(InvalidData, match=message):
        check_times(y, 300)


def test_frames_of_bounds():
    for columns in (
        {"lower": EVENT, "upper": EVENT + 1.0},
        {"lower": EVENT + 1, "upper": DAYS + 2},
        {"a": EVENT, "b": np.where(EVENT, np.inf, DAYS)},
        {"a": EVENT + 1, "b": EVENT + 2},
        {"a": DAYS, "b": DAYS + 1},
    ):
        found = check_times(pd.DataFrame(columns), 300)
        np.testing.assert_array_equal(found[:2], list(columns.values()))


@pytest.mark.parametrize("time", [Y["time"] / 10, Y["time"] * 365, DAYS])
def test_events_and_times_in_an_array_are_no_bounds(time):
    model = BoostingSurvival("aft", **SHORT)
    expected = model.fit(X, fields(event=EVENT > 0, time=time)).predict(X)
    for y in (np.column_stack([EVENT, time]), np.column_stack([time, EVENT])):
        for use in (model.fit, model.score):
            for one in (y, list(map(list, y))):
                with pytest.raises(InvalidData, match="seem to be .*not bounds of times") as caught:
                    use(X, one)
        remedy = re.search(r"pass (np\.array\(.*\)), or bounds", str(caught.value))[1]
        as_told = model.fit(X, eval(remedy, {"np": np, "y": y})).predict(X)
        np.testing.assert_array_equal(as_told, expected)


@pytest.mark.parametrize("event", [EVENT + 1, 3 * EVENT, 0 * EVENT + 1])
def test_other_codes_of_events_in_an_array_are_no_bounds(event):
    for time in (Y["time"], np.where(DAYS > 5, DAYS, np.nan)):
        for columns in ((event, time), (time, event)):
            with pytest.raises(InvalidData, match="seem to be .*not bounds of times"):
                check_times(np.column_stack(columns), 300)


def test_codes_of_events_that_aft_does_not_have():
    for event, message in (
        (EVENT + 1, "^if 1 means censored, subtract 1 .*; name columns of bounds 'lower' and 'u"),
        (EVENT * 2, "pass whether there was an event .*; name columns of bounds 'lower' and 'u"),
        (1, "name them 'time' and 'event', or 'lower' and 'upper'"),
    ):
        with pytest.raises(InvalidData, match=message):
            BoostingSurvival("aft", **SHORT).fit(X, pd.DataFrame({"a": DAYS, "b": event}))


def test_bounds_of_0_and_1_in_a_data_frame():
    frame = pd.DataFrame({"lower": EVENT, "upper": DAYS + 1})
    within = BoostingSurvival("aft", **SHORT).fit(X, frame).predict(X)
    exact = pd.DataFrame({"lower": DAYS + 1, "upper": DAYS + 1})
    assert np.median(within) < np.median(BoostingSurvival("aft", **SHORT).fit(X, exact).predict(X))


@pytest.mark.parametrize("whole", [True, False])
def test_events_and_times_that_are_exchanged(whole):
    time = np.ceil(Y["time"]) if whole else Y["time"]
    model = BoostingSurvival(**SHORT).fit(X, Y)
    for y in (
        pd.DataFrame({"time": EVENT, "event": time}),
        pd.DataFrame({"cause": time, "x": EVENT}),
        fields(event=time, time=EVENT.astype(float)),
    ):
        for use in (model.score, BoostingSurvival(**SHORT).fit):
            with pytest.raises(InvalidData, match="seem to be exchanged: '(time|x)' holds only 0"):
                use(X, y)
    all_true = fields(event=time.astype(bool), time=EVENT.astype(float))
    with pytest.warns(DataWarning, match="if events and times are exchanged, pass"):
        model.score(X, all_true)
    with pytest.warns(DataWarning, match="if events and times are exchanged, pass") as record:
        BoostingSurvival(**SHORT).fit(X, all_true)
    assert {warning.filename for warning in record} == {__file__}


def test_a_fit_to_a_data_frame_of_events_and_times():
    frame = pd.DataFrame({"time": Y["time"], "event": EVENT})
    expected = BoostingSurvival(**SHORT).fit(X, Y)
    model = BoostingSurvival(**SHORT).fit(X, frame)
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))
    assert model.score(X, frame) == expected.score(X, Y)


@pytest.mark.parametrize("loss", ["cox", "discrete_hazard"])
@pytest.mark.parametrize("time", [Y["time"] / 10, DAYS])
def test_events_and_times_in_an_array_where_bounds_cannot_differ(loss, time):
    model, y = BoostingSurvival(loss, **SHORT), fields(event=EVENT > 0, time=time)
    expected, score = model.fit(X, y).predict(X), model.score(X, y)
    for one in (np.column_stack([EVENT, time]), np.column_stack([time, EVENT]).tolist()):
        np.testing.assert_array_equal(model.fit(X, one).predict(X), expected)
        assert reloaded(model).score(X, one) == score
    brier = "neg_integrated_brier"
    if importlib.util.find_spec("sksurv"):
        assert model.score(X, y, brier, y_train=np.column_stack([EVENT, time])) <= 0


def test_causes_in_an_array():
    cause = EVENT * (1 + np.arange(300) % 2)
    model = BoostingSurvival("discrete_hazard", **SHORT)
    expected = model.fit(X, fields(event=cause, time=DAYS)).predict(X)
    np.testing.assert_array_equal(model.fit(X, np.column_stack([DAYS, cause])).predict(X), expected)


@pytest.mark.parametrize(
    "columns",
    [(EVENT, EVENT + 1), (EVENT + 1, DAYS), (0 * EVENT + 1, DAYS), (EVENT, np.minimum(DAYS, 9))],
)
def test_events_in_an_array_that_are_not_certain(columns):
    with pytest.raises(InvalidData, match="seem to be events and times, not bounds"):
        BoostingSurvival(**SHORT).fit(X, np.column_stack(columns))
