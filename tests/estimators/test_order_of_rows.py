"""Series whose index is that of the table in another order: rows are matched by position."""

import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import KFold, ShuffleSplit, cross_val_score, train_test_split
from sklearn.preprocessing import StandardScaler

from hilboost import (
    BoostingClassifier,
    BoostingRanker,
    BoostingRegressor,
    BoostingSurvival,
    KernelBoostingRegressor,
    OutputKernelBoostingRegressor,
)
from hilboost.core.errors import DataWarning
from hilboost.report import scores
from hilboost.validation.order import check_order

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(60, 3)), columns=list("abc"))
SERIES = (X["a"] + X["b"]).rename("y")
CLASSES = (SERIES > 0).astype(int)
GROUPS = pd.Series(np.arange(60) // 10)
TIMES = pd.DataFrame({"event": np.ones(60, dtype=bool), "time": np.exp(SERIES)})
ZERO = pd.Series(np.zeros(60))
OTHER_ORDER = RNG.permutation(60)
TREES = {"learner": "tree", "n_estimators": 2, "random_state": 0}

MODELS = {
    "regressor": lambda: BoostingRegressor(**TREES).fit(X, SERIES),
    "counts": lambda: BoostingRegressor("poisson", **TREES).fit(X, np.exp(SERIES), offset=-SERIES),
    "classifier": lambda: BoostingClassifier(**TREES).fit(X, CLASSES),
    "ranker": lambda: BoostingRanker(**TREES).fit(X, CLASSES, groups=GROUPS),
    "survival": lambda: BoostingSurvival(**TREES).fit(X, TIMES, strata=CLASSES),
    "kernel": lambda: KernelBoostingRegressor(kernel="gaussian", regularization=1.0).fit(X, SERIES),
    "output kernel": lambda: OutputKernelBoostingRegressor("gaussian", n_estimators=2).fit(
        X, SERIES.to_frame()
    ),
}
CALLS = [
    ("regressor", "fit", {"y": SERIES}),
    ("regressor", "fit", {"y": SERIES, "sample_weight": ZERO + 1}),
    ("regressor", "score", {"y": SERIES, "sample_weight": ZERO + 1}),
    ("regressor", "calibrate", {"y": SERIES, "groups": GROUPS}),
    ("regressor", "refit_leaves", {"y": SERIES}),
    ("regressor", "report", {"y": SERIES}),
    ("counts", "predict", {"offset": -SERIES}),
    ("counts", "staged_predict", {"offset": -SERIES}),
    ("classifier", "fit", {"y": CLASSES}),
    ("classifier", "score", {"y": CLASSES}),
    ("classifier", "calibrate", {"y": CLASSES}),
    ("ranker", "fit", {"y": CLASSES, "groups": GROUPS}),
    ("ranker", "score", {"y": CLASSES, "groups": GROUPS}),
    ("survival", "fit", {"y": TIMES, "entry": ZERO, "strata": CLASSES}),
    ("survival", "score", {"y": TIMES, "strata": CLASSES}),
    ("survival", "refit_leaves", {"y": TIMES, "strata": CLASSES}),
    ("kernel", "fit", {"y": SERIES}),
    ("kernel", "score", {"y": SERIES}),
    ("output kernel", "fit", {"y": SERIES.to_frame()}),
    ("output kernel", "score", {"y": SERIES.to_frame()}),
]


def warned(call, by="in a different order", n_calls=1):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    texts = [str(one.message) for one in caught if one.category is DataWarning]
    names = [text.partition(" ")[0] for text in texts if by in text]
    assert len(names) <= n_calls * len(set(names))  # each warning once in a call
    return set(names)


@pytest.mark.parametrize(("name", "method", "rows"), CALLS)
def test_another_order_of_rows_warns(name, method, rows, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    model, first = MODELS[name](), X.iloc[OTHER_ORDER[::-1]][:45]
    same = {argument: values.loc[first.index] for argument, values in rows.items()}
    assert not warned(lambda: getattr(model, method)(first, **same))
    for argument, values in rows.items():
        moved = same | {argument: values.iloc[OTHER_ORDER][:45]}
        assert argument in warned(lambda rows=moved: getattr(model, method)(first, **rows))


def test_scores_of_reports_warn():
    model, some = MODELS["regressor"](), X.iloc[OTHER_ORDER][:45]
    assert warned(lambda: scores(model, some, SERIES[:45])) == {"y"}
    assert warned(lambda: scores(model, X, SERIES.iloc[OTHER_ORDER])) == {"y"}
    assert not warned(lambda: scores(model, X, SERIES))


def frame_of(n, labels):
    index = {
        "numbers": np.arange(n),
        "text": [f"row {k}" for k in range(n)],
        "dates": pd.date_range("2024", periods=n),
        "pairs": pd.MultiIndex.from_arrays([np.arange(n) // 3, np.arange(n)]),
    }
    return pd.DataFrame({"a": np.arange(n), "y": np.arange(n)}, index=index[labels])


LABELS = st.sampled_from(["numbers", "text", "dates", "pairs"])


@given(st.integers(60, 3000), st.floats(0.4, 0.95), st.integers(0, 99), LABELS)
def test_rows_of_another_draw_warn(n, part, seed, labels):
    frame = frame_of(n, labels)
    X_train, X_test = train_test_split(frame[["a"]], train_size=part, random_state=seed)
    y_train, y_test = train_test_split(frame["y"], train_size=part, random_state=seed)
    _, y_other, *_ = train_test_split(frame["y"], test_size=len(X_train), random_state=seed + 1)
    assert not warned(lambda: check_order(X_train, y=y_train))
    assert not warned(lambda: check_order(X_test, y=y_test))
    assert warned(lambda: check_order(X_train, y=y_other)) == {"y"}
    first = frame["y"][: len(X_train)]
    assert warned(lambda: check_order(X_train, "_val", y=first)) == {"y_val"}


@given(st.integers(2, 300), st.integers(1, 9), st.integers(1, 5), st.integers(0, 9), LABELS)
def test_rows_ahead_and_new_or_repeated_labels_do_not_warn(n, n_groups, ahead, seed, labels):
    frame = frame_of(n * n_groups, labels)
    group = np.repeat(np.arange(n_groups), n)
    steps = np.random.default_rng(seed).integers(1, min(ahead, n - 1) + 1, n_groups)[group]
    place = np.tile(np.arange(n), n_groups)
    X, y = frame.loc[place < n - steps, ["a"]], frame.loc[place >= steps, "y"]
    mixed = y.sample(frac=1, random_state=seed)
    for table, values in (
        (X, y),
        (X.reset_index(drop=True), mixed),
        (X.iloc[-40:].reset_index(drop=True), mixed[-40:]),
        (X.iloc[[*range(len(X) - 1, 0, -1), -1]], mixed),
        (X.set_axis([f"other {k}" for k in range(len(X))]), mixed),
        (X.to_numpy(), mixed),
        (X, mixed.to_numpy()),
    ):
        assert not warned(lambda table=table, values=values: check_order(table, y=values))


def test_tables_of_new_arrays_do_not_warn():
    frame = pd.DataFrame(RNG.normal(size=(60, 3)), columns=[*"ab", "y"])
    train = frame.sample(frac=0.75, random_state=0)
    scaled = pd.DataFrame(StandardScaler().fit_transform(train[["a", "b"]]), columns=["a", "b"])
    model = BoostingRegressor(**TREES)
    assert not warned(lambda: cross_val_score(model, scaled, train["y"], cv=3))
    assert not warned(lambda: model.fit(train[["a", "b"]], pd.Series(train["y"].to_numpy())))
    mixed = train[["a", "b"]], frame["y"][:45]
    assert warned(lambda: cross_val_score(model, *mixed, cv=3), n_calls=6) == {"y"}


def rows_of_others(call):
    return warned(call, "has almost no label of the index of X")


def test_rows_of_the_other_split_warn_in_validation_sets_and_as_targets():
    X_train, X_test, y_train, y_test = train_test_split(X, SERIES, test_size=0.5, random_state=0)
    model = BoostingRegressor(**TREES)
    held_out = {"X_val": X_test, "y_val": y_train}
    assert rows_of_others(lambda: model.fit(X_train, y_train, **held_out)) == {"y_val"}
    assert rows_of_others(lambda: model.fit(X_train, X_test)) == {"y"}
    assert not rows_of_others(lambda: model.fit(X_train, y_train, X_val=X_test, y_val=y_test))


@given(st.integers(30, 3000), st.integers(0, 99), LABELS)
def test_labels_of_other_rows_warn_unless_they_are_other_keys(n, seed, labels):
    frame = frame_of(2 * n, labels)
    X_some, X_other, y_some, y_other = train_test_split(
        frame[["a"]], frame["y"], test_size=0.5, random_state=seed
    )
    fresh = y_other.reset_index(drop=True)
    assert rows_of_others(lambda: check_order(X_some, y=y_other)) == {"y"}
    ordered = X_some.sort_index(), y_other.sort_index()
    assert rows_of_others(lambda: check_order(ordered[0], y=ordered[1])) == {"y"}
    for table, values in (
        (X_some, y_some),
        (X_some, fresh),
        (X_some, fresh.rename(None)),
        (X_other.reset_index(drop=True), y_some),
        (X_some, y_other.to_numpy()),
        (
            X_some.rename_axis([f"key {k}" for k in range(X_some.index.nlevels)]),
            y_other.rename_axis([f"id {k}" for k in range(X_some.index.nlevels)]),
        ),
        (X_some.set_axis(X_some["a"] + 0.5), y_other),
        (X_some, frame_of(n, "pairs" if labels == "dates" else "dates")["y"]),
        (X_some, pd.concat([y_other[: n // 2]] * 2)[:n]),
    ):
        assert not rows_of_others(lambda table=table, values=values: check_order(table, y=values))


@pytest.mark.parametrize("labels", ["numbers", "text", "dates", "pairs"])
def test_rows_of_two_small_draws_warn(labels):
    frame = frame_of(4000, labels)
    first, second = (frame.sample(frac=0.05, random_state=k) for k in range(2))
    assert first.index.isin(second.index).any()
    assert rows_of_others(lambda: check_order(first[["a"]], y=second["y"])) == {"y"}


def test_scaled_tables_of_some_rows_do_not_warn():
    frame = pd.DataFrame(RNG.normal(size=(900, 3)), columns=[*"ab", "y"])
    train = frame.sample(frac=0.05, random_state=0)
    scaled = pd.DataFrame(StandardScaler().fit_transform(train[["a", "b"]]), columns=["a", "b"])
    model = BoostingRegressor(**TREES)
    for folds in (KFold(3), ShuffleSplit(3, random_state=0)):
        assert not rows_of_others(partial(cross_val_score, model, scaled, train["y"], cv=folds))


IDS = st.sampled_from(["numbers", "text", "dates", "days"])


def table_of_ids(n, labels, is_sorted, seed):
    drawn = np.random.default_rng(seed).choice(30 * n, n, replace=False)
    index = {
        "numbers": 70 + drawn,
        "text": [f"id {k:06d}" for k in drawn],
        "dates": pd.Timestamp("1990") + pd.to_timedelta(drawn, unit="h"),
        "days": pd.date_range("1990", periods=n)[np.argsort(drawn)],
    }
    table = pd.DataFrame({"a": np.arange(n), "y": np.arange(n)}, index=index[labels])
    return table.sort_index() if is_sorted else table


def matched_by_position(X, y):
    return bool(warned(lambda: check_order(X, y=y), "rows are matched by position"))


def folds_of(X, y, seed):
    for folds in (KFold(4), KFold(4, shuffle=True, random_state=seed)):
        for train, test in folds.split(X):
            yield from ((X.iloc[rows], y.iloc[rows]) for rows in (train, test))


@given(st.integers(100, 1500), st.floats(0.01, 0.3), IDS, st.booleans(), st.integers(0, 999))
def test_rows_dropped_separately_and_parts_and_draws_warn(n, part, labels, is_sorted, seed):
    table = table_of_ids(n, labels, is_sorted, seed)
    rng, n_dropped = np.random.default_rng(seed + 1), max(1, round(part * n))
    kept = [np.delete(np.arange(n), 1 + rng.choice(n - 2, n_dropped, False)) for _ in range(2)]
    drawn = [rng.permutation(n)[: n // 2] for _ in range(2)]
    if is_sorted:
        drawn = [np.sort(rows) for rows in drawn]
    halves = np.arange(n // 2), np.arange(n - n // 2, n)
    for ours, theirs in (kept, drawn, halves):
        X, y = table[["a"]].iloc[ours], table["y"].iloc[theirs]
        assert not matched_by_position(X, table["y"].iloc[ours])
        if np.mean(X.index != y.index) > 0.05:  # the same rows may be dropped from both
            assert matched_by_position(X, y)
            assert matched_by_position(X, y.to_frame())


@given(st.integers(40, 1500), st.integers(1, 9), IDS, st.booleans(), st.integers(0, 999))
def test_rows_ahead_and_new_numbers_do_not_warn(n, ahead, labels, is_sorted, seed):
    table = table_of_ids(n, labels, is_sorted, seed)
    X, y = table[["a"]], table["y"]
    assert not matched_by_position(X[:-ahead], y[ahead:])
    for some, values in folds_of(X.reset_index(drop=True), y, seed):
        assert not matched_by_position(some, values)
    for some, values in folds_of(X, pd.Series(y.to_numpy()), seed):
        assert not matched_by_position(some, values)
    assert not matched_by_position(X, y.reset_index(drop=True))
    if labels in ("dates", "days"):
        later = y.set_axis(y.index + pd.Timedelta(hours=ahead))
        assert not matched_by_position(X, later)


@given(st.integers(100, 1500), st.integers(1, 9), st.integers(2, 5), LABELS, st.integers(0, 9))
def test_rows_ahead_in_groups_do_not_warn(n, n_groups, ahead, labels, seed):
    frame, place = frame_of(n * n_groups, labels), np.tile(np.arange(n), n_groups)
    steps = np.random.default_rng(seed).integers(1, ahead + 1, n_groups).repeat(n)
    X, y = frame.loc[place < n - steps, ["a"]], frame.loc[place >= steps, "y"]
    newest_first = slice(None, None, -1)
    assert not matched_by_position(X, y)
    assert not matched_by_position(X[newest_first], y[newest_first])


@given(st.integers(40, 1500), st.integers(1, 9), IDS, st.booleans(), st.integers(0, 999))
def test_a_target_behind_the_table_warns(n, behind, labels, is_sorted, seed):
    table = table_of_ids(n, labels, is_sorted, seed)
    X, y = table[["a"]], table["y"]
    if not (labels == "numbers" and is_sorted):  # may be numbered anew
        assert matched_by_position(X[behind:], y[:-behind])
        assert matched_by_position(X[behind:], y[:-behind].to_frame())
    for name in ("sample_weight", "groups", "offset"):
        some = {name: y[:-behind]}
        assert not warned(lambda some=some: check_order(X[behind:], **some), "by position")
    if is_sorted:
        assert not matched_by_position(X[behind:][::-1], y[:-behind][::-1].to_numpy())
    if is_sorted and labels != "numbers":
        assert matched_by_position(X[behind:][::-1], y[:-behind][::-1])
        assert not matched_by_position(X[:-behind][::-1], y[behind:][::-1])


@given(st.integers(100, 1500), st.integers(1, 9), st.integers(2, 5), st.integers(0, 9))
def test_a_target_behind_the_table_in_groups_warns(n, n_groups, behind, seed):
    frame, place = frame_of(n * n_groups, "pairs"), np.tile(np.arange(n), n_groups)
    group = np.repeat(np.arange(n_groups), n)
    frame.index = pd.MultiIndex.from_arrays([group, place])
    steps = np.random.default_rng(seed).integers(1, behind + 1, n_groups).repeat(n)
    X, y = frame.loc[place >= steps, ["a"]], frame.loc[place < n - steps, "y"]
    assert matched_by_position(X, y)
    newest_first = np.lexsort([-place, group])
    X = frame.iloc[newest_first][(place >= steps)[newest_first]][["a"]]
    y = frame.iloc[newest_first][(place < n - steps)[newest_first]]["y"]
    assert matched_by_position(X, y)
    assert not matched_by_position(y.to_frame(), X["a"].rename("y"))


@given(st.integers(40, 2000), st.sampled_from(["h", "D", "MS", "QS"]), st.integers(1, 3))
def test_a_target_of_the_same_period_does_not_warn(n, freq, n_earlier):
    starts = pd.period_range("1990", periods=n + n_earlier, freq=freq.removesuffix("S"))
    ends, starts = starts.to_timestamp(how="end").floor("s"), starts.to_timestamp()
    X = pd.DataFrame({"a": range(n)}, index=ends[n_earlier:])
    y = pd.Series(range(n), name="y")
    assert not matched_by_position(X, y.set_axis(starts[n_earlier:]))
    assert matched_by_position(X, y.set_axis(starts[:n]))


@pytest.mark.parametrize("y_starts", ["MS", "ME"])
def test_months_ahead_do_not_warn(y_starts):
    X = pd.DataFrame({"a": range(60)}, index=pd.date_range("2020", periods=60, freq="MS"))
    later = pd.date_range("2020-04", periods=60, freq=y_starts)
    assert not matched_by_position(X, pd.Series(range(60), index=later, name="y"))


def test_a_few_other_labels_do_not_warn():
    corrected = [*range(70, 129), 5000]
    X = pd.DataFrame({"a": range(60)}, index=[f"id {k}" for k in range(70, 130)])
    assert not matched_by_position(X, pd.Series(range(60), index=[f"id {k}" for k in corrected]))
