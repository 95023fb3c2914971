"""Weighted reports, comparison with training rows, and Shapley values of reports."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ks_2samp
from sklearn.datasets import make_classification, make_friedman1
from tests.cases import PLAIN
from tests.refusals import refused

from hilboost import (
    AdaBoostKernelClassifier,
    AveragedKernelRidge,
    BoostingClassifier,
    BoostingRegressor,
    ConvexKernelRidge,
    MixtureOfKernelExperts,
    OutputKernelBoostingRegressor,
)
from hilboost.core.errors import InvalidData
from hilboost.report import facts, render, scores

RNG = np.random.default_rng(0)
X, Y = make_friedman1(160, n_features=5, noise=0.5, random_state=0)
A, LABELS = make_classification(160, 5, n_informative=4, n_redundant=0, flip_y=0.2, random_state=0)
SETS = [{"low"} if x < 0.4 else {"high", "far"} for x in X[:, 0] + 0.2 * RNG.normal(size=160)]
FIT, NEW = slice(0, 80), slice(80, 160)
WEIGHTS = RNG.integers(0, 4, 80)
CASES = {
    "regression": (BoostingRegressor(**PLAIN), X, Y),
    "quantiles": (BoostingRegressor("quantile", quantile=[0.1, 0.9], **PLAIN), X, Y),
    "classes": (BoostingClassifier(**PLAIN), A, LABELS),
    "three classes": (BoostingClassifier(**PLAIN), A, LABELS + (A[:, 0] > 1)),
    "sets": (OutputKernelBoostingRegressor("label_set", n_estimators=5), X, SETS),
}


def values(listed):
    found = {one["key"]: one["value"] for one in listed}
    guesses = {f"guess {one['key']}": one["guess"] for one in listed if one["guess"] is not None}
    return found | guesses


@pytest.mark.parametrize("name", CASES)
def test_weights_count_rows_several_times(name):
    model, X, y = CASES[name]
    model.fit(X[FIT], y[FIT])
    repeated = np.repeat(np.arange(80, 160), WEIGHTS)
    expected = facts(model, X[repeated], [y[k] for k in repeated])
    found = facts(model, X[NEW], y[NEW], sample_weight=WEIGHTS)
    assert values(found["scores"]) == pytest.approx(values(expected["scores"]), rel=1e-12)
    assert (
        values(scores(model, X[NEW], y[NEW], sample_weight=WEIGHTS)).items()
        <= values(found["scores"]).items()
    )
    assert found["data"]["weight"] == WEIGHTS.sum()
    assert "Rows have weights" in render(found)
    if found["classes"] is not None:
        for part in ("confusion", "by_class", "curves"):
            assert str(found["classes"][part]) == str(expected["classes"][part])
    if found["quantiles"] is not None:
        for part in ("inside", "width"):
            assert found["quantiles"]["interval"][part] == pytest.approx(
                expected["quantiles"]["interval"][part]
            )
    if found["regression"] is not None:  # rows have the numbers of the user's table
        (worst, *_) = found["regression"][0]["worst"]["numbers"]
        assert WEIGHTS[worst] > 0
        assert found["regression"][0]["worst"]["true"][0] == y[80 + worst]


def test_bad_weights_are_told():
    model = BoostingRegressor(**PLAIN).fit(X, Y)
    with pytest.raises(InvalidData, match="sample_weight must not be negative; row 0 has -1"):
        model.report(X, Y, sample_weight=-np.ones(160))
    refused(ValueError, "sample_weight", model.report, X, Y, sample_weight=np.ones(10))


@pytest.mark.slow
def test_drift_finds_the_columns_that_moved():
    frame = pd.DataFrame(X, columns=list("abcde")).assign(f=["x", "y"] * 80)
    moved = frame.copy()
    moved["b"] += 0.5
    moved.loc[::4, "c"] = np.nan
    moved.loc[::3, "f"] = "z"
    train = frame.drop(columns="f").assign(f=frame["f"])
    model = BoostingRegressor(**PLAIN).fit(train, Y)
    found = facts(model, moved.iloc[NEW], Y[NEW], X_train=frame.iloc[FIT])
    drift = found["drift"]
    by_name = {one["name"]: one for one in drift["columns"]}
    assert {name for name, one in by_name.items() if one["differs"]} == {"b", "f"}
    expected = ks_2samp(frame["b"].iloc[FIT], moved["b"].iloc[NEW])
    assert by_name["b"]["distance"] == pytest.approx(expected.statistic)
    assert by_name["b"]["new"] == (moved["b"].iloc[NEW] > frame["b"].iloc[FIT].max()).mean()
    shares = [part["f"].value_counts(normalize=True) for part in (frame[FIT], moved[NEW])]
    difference = shares[1].sub(shares[0], fill_value=0.0).abs().sum() / 2
    assert by_name["f"]["distance"] == pytest.approx(difference)
    assert by_name["f"]["new"] == (moved["f"].iloc[NEW] == "z").mean()
    assert by_name["c"]["missing"] == [0.0, moved["c"].iloc[NEW].isna().mean()]
    assert (drift["n_rows"], drift["in_both"]) == (80, 0)
    page = render(found)
    assert "2 of 6 columns, in bold, differ by more than chance explains" in page
    assert "None of them occurs in the training data" in page
    assert facts(model, frame, Y)["drift"] is None


@pytest.mark.parametrize("values", [[1e17, 1e17 + 16], [-3e16, -3e16], [0, 5e-324]])
def test_columns_whose_values_are_hardly_apart(values):
    table = np.column_stack([X, np.resize(values, len(X))])
    model = BoostingRegressor(**PLAIN).fit(table[FIT], Y[FIT])
    found = facts(model, table[NEW], Y[NEW], X_train=table[FIT])
    assert sum(found["data"]["columns"][-1]["histogram"]["counts"]) == 80
    assert len(found["drift"]["columns"]) == 6


def test_training_rows_are_counted():
    model = BoostingRegressor(**PLAIN).fit(X[FIT], Y[FIT])
    some = np.r_[40:120]
    found = facts(model, X[some], Y[some] + 1.0, X_train=X[FIT].astype(np.float64))
    assert found["drift"]["in_both"] == 40
    assert not any(one["differs"] for one in found["drift"]["columns"])
    assert "50% of these 80 rows also occur in the training data." in found["warnings"][0]
    refused(InvalidData, "X_train has 3 columns, but X has 5", model.report, X, Y, X_train=X[:, :3])


@pytest.mark.parametrize("positive", [0, 1])
def test_contributions_are_shapley_values(positive):
    model = BoostingClassifier(**PLAIN).fit(A[FIT], LABELS[FIT])
    found = facts(model, A[NEW], LABELS[NEW], positive_class=positive)["contributions"]
    expected = model.shap_values(A[NEW], A[NEW]).values * (1 if positive else -1)
    assert found["output"] == f"the raw score of class {positive}"
    for one in found["columns"]:
        j = int(one["name"].removeprefix("column "))
        np.testing.assert_allclose(one["values"], expected[:, j], atol=1e-12)
        assert one["mean_size"] == pytest.approx(np.abs(expected[:, j]).mean())
        assert np.bincount(one["shade"]).tolist() == [16] * 5


def test_only_mistakes_are_listed_as_such():
    model, X, y = CASES["three classes"]
    model.fit(X[FIT], y[FIT])
    worst = facts(model, X[NEW], y[NEW])["classes"]["worst"]
    proba = model.predict_proba(X[NEW])
    wrong = proba.argmax(axis=1) != y[NEW]
    assert wrong[worst["numbers"]].all()
    assert worst["confidence"] == np.sort(proba.max(axis=1)[wrong])[::-1][:6].tolist()
    exact = BoostingRegressor(**PLAIN).fit(X, np.zeros(160))
    assert facts(exact, X, np.zeros(160))["regression"][0]["worst"]["numbers"] == []


@pytest.mark.parametrize("estimator", [AdaBoostKernelClassifier, MixtureOfKernelExperts])
def test_weights_count_in_baselines_of_ensembles(estimator):
    y = LABELS if estimator is AdaBoostKernelClassifier else Y
    model = estimator(n_estimators=2, random_state=0).fit(A[FIT], y[FIT])
    repeated = np.repeat(np.arange(80, 160), WEIGHTS)
    expected = values(scores(model, A[repeated], y[repeated]))
    found = values(scores(model, A[NEW], y[NEW], sample_weight=WEIGHTS))
    assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("estimator", [AveragedKernelRidge, ConvexKernelRidge])
def test_sums_of_kernel_machines_have_reports(estimator):
    model = estimator(n_estimators=2, random_state=0).fit(A[FIT], Y[FIT])
    assert facts(model, A[NEW], Y[NEW])["contributions"] is not None


def test_targets_known_only_without_weight_are_told():
    model = BoostingRegressor(**PLAIN).fit(A[FIT], np.c_[Y, Y][FIT])
    targets = np.c_[Y, Y][NEW]
    targets[1:, 1] = np.nan
    with pytest.raises(InvalidData, match="target 1 of y is missing in every row"):
        facts(model, A[NEW], targets, sample_weight=np.arange(80.0))
