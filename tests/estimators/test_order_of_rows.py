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
SERIES = X["a"].rename("y")
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


def warned(call, by="in a different order"):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    texts = {str(one.message) for one in caught if one.category is DataWarning}
    return {text.partition(" ")[0] for text in texts if by in text}


@pytest.mark.parametrize(("name", "method", "rows"), CALLS)
@pytest.mark.parametrize("n", [60, 45])
def test_another_order_of_rows_warns(name, method, rows, n, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    model, first = MODELS[name](), X.iloc[OTHER_ORDER[::-1]][:n] if n < 60 else X
    same = {argument: values.loc[first.index] for argument, values in rows.items()}
    assert not warned(lambda: getattr(model, method)(first, **same))
    for argument, values in rows.items():
        moved = same | {argument: values.iloc[OTHER_ORDER][:n]}
        assert argument in warned(lambda rows=moved: getattr(MODELS[name](), method)(first, **rows))


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
    assert warned(lambda: cross_val_score(model, train[["a", "b"]], frame["y"][:45], cv=3)) == {"y"}


def rows_of_others(call):
    return warned(call, "has almost no label of the index of X")


@pytest.mark.parametrize(("name", "method", "rows"), CALLS)
def test_rows_of_the_other_split_warn(name, method, rows, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    first, second = OTHER_ORDER[:30], OTHER_ORDER[30:]
    model, same = MODELS[name](), {key: values.iloc[first] for key, values in rows.items()}
    assert not rows_of_others(lambda: getattr(model, method)(X.iloc[first], **same))
    for argument, values in rows.items():
        moved = same | {argument: values.iloc[second]}
        fresh = MODELS[name]()
        called = rows_of_others(lambda m=fresh, r=moved: getattr(m, method)(X.iloc[first], **r))
        assert called == {argument}


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
        (frame[["a"]][:n], frame_of(2 * n, "dates")["y"][n:]),
        (X_some, pd.concat([y_other[: n // 2]] * 2)[:n]),
        (X_some.sort_index(), y_other.sort_index()),
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
        scored = partial(cross_val_score, model, scaled, train["y"], cv=folds)
        assert not rows_of_others(scored)
