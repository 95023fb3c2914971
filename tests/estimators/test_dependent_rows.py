"""Rows of a group are held out together, and by time the latest ones."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    PredefinedSplit,
    RepeatedKFold,
    TimeSeriesSplit,
    cross_val_score,
)
from tests.reloaded import reloaded

import hilboost
from hilboost import BoostingClassifier, BoostingRanker, BoostingRegressor
from hilboost.callbacks import Checkpoint
from hilboost.core.errors import DataWarning, InvalidData, InvalidParameter, InvalidType
from hilboost.validation.order import told_of_ordered_rows
from hilboost.workers.fit import check_supported

N = 300
RNG = np.random.default_rng(0)
GROUPS = RNG.permutation(np.arange(N) % 20)
EFFECT = RNG.normal(size=20)
X = np.column_stack([RNG.normal(size=(N, 2)), RNG.normal(size=20)[GROUPS]])
Y = X[:, 0] + EFFECT[GROUPS] + 0.3 * RNG.normal(size=N)
TIME = RNG.permutation(N)
DAYS = np.datetime64("2024-01-01") + TIME
FIRST_GROUPS = PredefinedSplit(np.where(GROUPS < 4, 0, -1))


def regressor(**given):
    return BoostingRegressor(**{"learner": "tree", "n_estimators": 12, "random_state": 0} | given)


def same(a, b):
    return np.array_equal(a.predict(X), b.predict(X))


def test_a_model_of_groups_stops_earlier():
    at_random = regressor(n_estimators=200).fit(X, Y)
    of_groups = regressor(n_estimators=200).fit(X, Y, groups=GROUPS)
    assert of_groups.n_estimators_ < at_random.n_estimators_
    assert min(of_groups.history_.validation) > min(at_random.history_.validation)


def test_intervals_are_calibrated_with_whole_groups():
    model = regressor().fit(X, Y, groups=GROUPS)
    folds = model.fitted_.calibration.folds
    assert all(len(set(folds[group == GROUPS])) == 1 for group in range(20))
    assert set(folds) == {0, 1, 2, 3}


def test_the_final_model_learns_from_all_rows():
    model = regressor().fit(X, Y, time=TIME)
    plain = regressor(**model.resolved_.fill(model.get_params()) | {"early_stopping": False})
    plain = plain.set_params(n_estimators=model.n_estimators_, subsample=1.0).fit(X, Y)
    found = regressor(subsample=1.0).fit(X, Y, time=TIME)
    assert np.allclose(found.predict(X), plain.first_stages(found.n_estimators_).predict(X))


def test_intervals_are_calibrated_with_the_latest_rows():
    model = regressor(validation_fraction=0.2).fit(X, Y, time=TIME)
    calibration = model.fitted_.calibration
    assert len(calibration.scores) == 0.4 * N
    assert model.predict_interval(X).shape == (N, 2)


def test_the_automatic_learner_weighs_losses_other_than_squares():
    model = BoostingClassifier(n_estimators=20, random_state=0).fit(X, Y > 0, time=TIME)
    assert set(model.parts_) == {"tree", "kernel"}


@pytest.mark.parametrize(
    "arguments",
    [{"groups": np.arange(N) % 2}, {"groups": np.arange(N) == 7}, {"time": np.arange(N) % 3}],
)
def test_the_automatic_learner_with_few_groups_or_times(arguments):
    model = BoostingClassifier(n_estimators=10, random_state=0, early_stopping=True)
    assert np.isfinite(model.fit(X, Y > 0, **arguments).predict_proba(X)).all()


def test_rankings_hold_out_the_latest_groups():
    query, labels = np.arange(N) // 10, (Y > 0).astype(int)
    model = BoostingRanker(n_estimators=20, early_stopping=True, cv_folds=1, random_state=0)
    found = model.fit(X, labels, groups=query, time=TIME)
    latest = [TIME[query == q].max() for q in range(30)]
    held = np.isin(query, np.argsort(latest)[-3:])
    start = BoostingRanker(n_estimators=1).fit(X, labels, groups=query).first_stages(0)
    loss = 1 - start.score(X[held], labels[held], groups=query[held])
    assert len(found.fitted_.members) == 2
    assert np.isclose(found.history_.validation[0], loss)
    assert same(found, BoostingRanker(**model.get_params()).fit(X, labels, groups=query, time=DAYS))


@pytest.mark.parametrize(
    "time",
    [
        *(DAYS.tolist(), pd.Series(DAYS), 2.5 * TIME, np.array(TIME.tolist(), dtype=object)),
        pd.Series(DAYS).dt.tz_localize("UTC"),
        [datetime(2024, 1, 1, tzinfo=UTC) + timedelta(int(t)) for t in TIME],
    ],
)
def test_kinds_of_times(time):
    assert np.array_equal(losses(time), losses(DAYS))


def losses(time, **given):
    return regressor(**given).fit(X, Y, time=time).history_.validation


def test_polars_and_arrow():
    frame = pl.DataFrame({"group": GROUPS.astype(str), "day": DAYS})
    of_arrays = regressor().fit(X, Y, groups=GROUPS.astype(str))
    assert same(regressor().fit(X, Y, groups=frame["group"]), of_arrays)
    assert np.array_equal(losses(frame["day"]), losses(TIME))
    assert not np.array_equal(losses(-TIME), losses(TIME))


def test_a_gap_in_the_unit_of_time():
    found = losses(TIME, validation_gap=30)
    assert not np.array_equal(found, losses(TIME))
    for gap in (30, timedelta(days=30), np.timedelta64(30, "D")):
        assert np.array_equal(found, losses(DAYS, validation_gap=gap))
    month = losses(DAYS, validation_gap=np.timedelta64(1, "M"))
    assert np.array_equal(month, losses(DAYS, validation_gap=365.2425 / 12))


def test_splitters():
    shuffled = KFold(3, shuffle=True, random_state=0)
    assert len(regressor(validation=shuffled).fit(X, Y).fitted_.members) == 3
    forward = regressor(validation=TimeSeriesSplit(3, gap=5)).fit(X, Y, time=TIME)
    sorted_rows = np.argsort(TIME)
    again = regressor(validation=TimeSeriesSplit(3, gap=5)).fit(X[sorted_rows], Y[sorted_rows])
    assert np.isclose(forward.history_.validation[0], again.history_.validation[0])
    held = GROUPS < 3
    single = regressor(validation=PredefinedSplit(np.where(held, 0, -1))).fit(X, Y)
    start = single.first_stages(0).predict(X[held])
    assert len(single.fitted_.members) == 1
    assert np.isclose(single.history_.validation[0], np.mean((Y[held] - start) ** 2) / 2)


def test_a_splitter_needs_no_fraction():
    found = regressor(validation=KFold(3), validation_fraction=None).fit(X, Y)
    assert same(found, regressor(validation=KFold(3)).fit(X, Y))


def test_splitters_see_the_rows_of_the_user():
    """Rows of zero weight are left out after the splits."""
    weight, fold = np.ones(N), np.where(np.arange(N) < 60, 0, -1)
    weight[::7] = 0
    kept = weight > 0
    found = regressor(validation=PredefinedSplit(fold)).fit(X, Y, weight)
    again = regressor(validation=PredefinedSplit(fold[kept])).fit(X[kept], Y[kept])
    assert same(found, again)


@pytest.mark.parametrize(
    ("kept", "arguments", "validation", "message"),
    [
        (GROUPS == 3, {"groups": GROUPS}, "auto", "not zero have the same group, .* omit groups"),
        (TIME == 7, {"time": TIME}, "auto", "not zero have the same time, .* omit time"),
        (GROUPS < 4, {}, FIRST_GROUPS, "split 0 .* learns from only rows of zero weight"),
        (GROUPS > 3, {}, FIRST_GROUPS, "split 0 .* holds out only rows of zero weight"),
    ],
)
def test_rows_with_weight_that_cannot_be_divided(kept, arguments, validation, message):
    model = regressor(validation=validation, early_stopping=True)
    with pytest.raises(InvalidData, match=message):
        model.fit(X, Y, kept.astype(float), **arguments)


def test_target_encoding_leaves_out_groups():
    level = pd.Series(GROUPS % 7).astype("category")
    frame = pd.DataFrame({"level": level, "x": X[:, 0]})
    model = regressor(target_encoding=True).fit(frame, Y, groups=GROUPS)
    assert not np.array_equal(
        model.predict(frame), regressor(target_encoding=True).fit(frame, Y).predict(frame)
    )


def test_random_validation_ignores_groups():
    assert same(regressor(validation="random").fit(X, Y, groups=GROUPS), regressor().fit(X, Y))


def test_warm_start_continues_with_the_same_groups():
    whole = regressor(n_estimators=9).fit(X, Y, groups=GROUPS)
    model = regressor(n_estimators=4, warm_start=True).fit(X, Y, groups=GROUPS)
    model.set_params(n_estimators=9).fit(X, Y, groups=GROUPS)
    assert np.allclose(model.predict(X), whole.predict(X))


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ({"groups": GROUPS}, {}),
        ({}, {"groups": GROUPS}),
        ({"groups": GROUPS}, {"groups": GROUPS[::-1]}),
        ({"time": TIME}, {"time": -TIME}),
    ],
)
def test_warm_start_refuses_other_groups_and_times(first, then):
    by = next(iter(first), "chance")
    model = regressor(n_estimators=4, warm_start=True).fit(X, Y, **first)
    with pytest.raises(InvalidData, match=f"the first fit were held out by {by}, so"):
        model.set_params(n_estimators=12).fit(X, Y, **then)
    learner = hilboost.KernelBoostingRegressor(kernel="gaussian", regularization=0.1)
    machine = regressor(learner=learner, n_estimators=1, warm_start=True).fit(X, Y, **first)
    with pytest.raises(InvalidData, match="this fit has another (groups|time); pass the same"):
        machine.set_params(n_estimators=2).fit(X, Y, **then)


def test_warm_start_ignores_groups_and_times_by_which_no_rows_are_held_out():
    model = regressor(n_estimators=4, warm_start=True, early_stopping=False).fit(X, Y)
    assert model.set_params(n_estimators=6).fit(X, Y, groups=GROUPS).n_estimators_ == 6
    model = regressor(n_estimators=4, warm_start=True)
    held_out = {"X_val": X + 1, "y_val": Y}
    model.fit(X, Y, groups=GROUPS, **held_out)
    assert model.set_params(n_estimators=6).fit(X, Y, **held_out).n_estimators_ > 4


def test_a_checkpoint_belongs_to_its_groups(tmp_path):
    checkpoint = Checkpoint(tmp_path / "fit", every_stages=1)
    regressor().fit(X, Y, groups=GROUPS, callbacks=[checkpoint, lambda event: event.stage == 3])
    with pytest.raises(InvalidData, match=r"a fit to different data \(groups\)"):
        regressor().fit(X, Y, groups=GROUPS[::-1], callbacks=[checkpoint])


def test_files_and_clones():
    model = regressor(validation=GroupKFold(3), validation_gap=None).fit(X, Y, groups=GROUPS)
    loaded = reloaded(model)
    assert loaded.validation == "auto"
    assert np.array_equal(loaded.predict_interval(X), model.predict_interval(X))


def test_scikit_learn_routes_groups_and_times():
    with sklearn.config_context(enable_metadata_routing=True):
        model = regressor().set_fit_request(groups=True, time=True)
        model = model.set_params(validation="time")
        params = {"groups": GROUPS, "time": TIME}
        assert len(cross_val_score(model, X, Y, params=params, cv=GroupKFold(3))) == 3


class Given(KFold):
    def __init__(self, pairs):
        super().__init__()
        self.pairs = pairs

    def split(self, X, y=None, groups=None):  # noqa: N803
        yield from self.pairs


FULL = hilboost.KernelBoostingRegressor(stages="full")
ABOUT = np.arange(N), np.arange(20)  # all rows are learned from, too
_MISSING = np.where(TIME == 7, np.datetime64("NaT"), DAYS)


@pytest.mark.parametrize(
    ("parameters", "arguments", "message"),
    [
        ({}, {"groups": GROUPS, "time": TIME}, "groups and time were both passed; set validation="),
        ({"validation": "groups"}, {}, "requires the groups of the rows; pass groups=... to fit"),
        ({"validation": "time"}, {}, "requires the time of the rows; pass time=... to fit"),
        ({}, {"groups": np.zeros(N)}, "groups has a single label"),
        ({}, {"groups": GROUPS[1:]}, "groups must hold one label for each of the 300 rows"),
        ({}, {"groups": np.where(TIME == 7, np.nan, GROUPS)}, "row .* of groups is missing"),
        ({}, {"time": np.zeros(N)}, "time is the same in all rows"),
        ({}, {"time": TIME[1:]}, "time must hold one value for each of the 300 rows"),
        ({}, {"time": _MISSING}, f"row {np.argmax(TIME == 7)} of time is missing"),
        ({}, {"time": np.where(TIME == 7, np.inf, TIME)}, "of time is missing or infinite"),
        ({}, {"time": [*pd.Series(DAYS)[1:], pd.NaT]}, "row 299 of time is missing"),
        ({}, {"time": np.ma.masked_array(TIME, TIME == 7)}, "of time is missing or infinite"),
        ({}, {"time": DAYS.astype(str)}, "time must hold numbers or dates; got .*pandas.to_datet"),
        ({}, {"time": pd.PeriodIndex(DAYS, freq="D")}, "got Period. Convert .* by to_timestamp"),
        ({}, {"time": iter(DAYS)}, "time is an? .*iterator; pass the values of the rows as a list"),
        ({}, {"time": "day"}, "time is the text 'day'; pass the values of the rows, such as a col"),
        ({"validation_gap": 3}, {}, "validation_gap is the time before .*; pass time=... to fit"),
        ({"validation_gap": timedelta(1)}, {"time": TIME}, "a duration, but time holds numbers"),
        ({"validation_gap": timedelta(-1)}, {"time": DAYS}, "validation_gap must be a positive"),
        ({"validation_gap": np.timedelta64("NaT")}, {"time": DAYS}, "a positive .* got .*NaT"),
        ({"validation_gap": 1e20}, {"time": DAYS}, "validation_gap leaves out all rows"),
        ({"validation_gap": 10**4}, {"time": DAYS}, "validation_gap leaves out all rows"),
        ({"validation": Given([ABOUT, ABOUT])}, {}, "split 0 .* learns from rows that it holds"),
        ({"validation": Given([([], [0, 1])])}, {}, "split 0 of .* learns from no rows"),
        ({"validation": Given([])}, {}, "validation=Given returned no splits"),
        ({"validation": Given([([0, 1], [10**6])])}, {}, "Given must return pairs of arrays of"),
        ({"validation": Given([(1, 2)])}, {}, "Given must return pairs of arrays of row indices"),
        ({"validation": Given([1, 2])}, {}, "must return pairs .*: cannot unpack"),
        ({"validation": Given([("a", "b")])}, {}, "must return pairs of arrays of row indices"),
        ({}, {"groups": DAYS}, "groups contains dates or times; convert them to num"),
        ({"validation": RepeatedKFold()}, {}, "several splits .* hold out the same row"),
        ({"validation": GroupKFold(3)}, {}, "validation: The 'groups' parameter should not be"),
        ({"validation": KFold(301)}, {}, "validation: Cannot have number of splits"),
        ({"validation": KFold(3), "cv_folds": 2}, {}, "cv_folds=2 and a splitter both set"),
        (
            {"validation": KFold(3), "learner": FULL},
            {},
            "validation has 3 splits, but this fit holds out rows once",
        ),
    ],
)
def test_bad_input(parameters, arguments, message):
    with pytest.raises((InvalidData, InvalidParameter), match=message):
        regressor(**{"early_stopping": True} | parameters).fit(X, Y, **arguments)


@pytest.mark.parametrize("value", ["group", 5, None])
def test_other_values_of_validation(value):
    with pytest.raises((InvalidParameter, ValueError, TypeError), match="validation"):
        regressor(validation=value).fit(X, Y)
    with pytest.raises(InvalidType, match=r"is a class; write GroupKFold\(\)"):
        regressor(validation=GroupKFold).fit(X, Y, groups=GROUPS)


def test_rankings_refuse_splits_of_a_group():
    with pytest.raises(InvalidData, match="validation divides the rows of a group"):
        BoostingRanker(validation=KFold(3)).fit(X, Y > 0, groups=GROUPS)


def test_workers_take_no_splitters():
    for kind in (regressor, hilboost.KernelBoostingRegressor):
        check_supported(kind(validation="time"))
        with pytest.raises(InvalidParameter, match=r"validation=.* is not supported by several"):
            check_supported(kind(validation=KFold(3)))


def _drifting(n):
    return np.cumsum(np.random.default_rng(1).normal(size=n)), np.random.default_rng(2).normal(
        size=(n, 2)
    )


@pytest.mark.parametrize("of_classes", [False, True])
def test_rows_in_order_of_time_are_noted_once(of_classes):
    y, features = _drifting(600)
    model, y = (BoostingClassifier, y > np.median(y)) if of_classes else (BoostingRegressor, y)
    few = {"n_estimators": 2, "learner": "tree"}
    with pytest.warns(
        DataWarning, match=r"neighboring rows agree far .* pass time=... or grou"
    ) as w:
        model(**few).fit(features, y)
    assert len(w) == 1
    model(**few, validation="random").fit(features, y)
    model(**few).fit(features, y, time=np.arange(600))
    model(**few, early_stopping=False).fit(features, y)
    model(**few).fit(features, y, X_val=features + 1, y_val=y)
    order = np.random.default_rng(0).permutation(600)
    model(**few).fit(features[order], y[order])


def test_columns_of_dates_name_the_argument():
    with pytest.raises(InvalidData, match=r"column 'day' contains dates.*; pass time=... to fit"):
        regressor().fit(pd.DataFrame({"x": X[:, 0], "day": DAYS}), Y)
    with pytest.raises(InvalidData, match=r"contains durations; .* or drop the column\.$"):
        regressor().fit(pd.DataFrame({"day": DAYS - DAYS[0]}), Y)


def test_sorted_rows_are_not_noted():
    grid = np.linspace(0, 10, 500)
    model = regressor(n_estimators=2)
    order = np.argsort(Y)
    model.fit(grid[:, None], np.sin(grid))
    model.fit(X[order], Y[order])


@given(st.integers(0, 2**32 - 1), st.sampled_from(["numbers", "classes", "rare", "constant"]))
def test_shuffled_rows_are_never_noted(seed, kind):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 3000))
    y = {
        "numbers": rng.standard_cauchy(n),
        "classes": rng.integers(0, rng.integers(1, 9), n),
        "rare": (rng.random(n) < 0.02).astype(int),
        "constant": np.zeros(n),
    }[kind]
    assert told_of_ordered_rows(rng.normal(size=(n, 2)), y, kind in ("classes", "rare")) == []
