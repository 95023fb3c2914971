"""What reports say: figures against scikit-learn's, all kinds of models, beginners' mistakes."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics
from sklearn.datasets import load_digits, make_classification, make_friedman1
from sklearn.exceptions import NotFittedError
from sklearn.inspection import partial_dependence
from sklearn.linear_model import Ridge
from tests.cases import PLAIN
from tests.refusals import refused

import hilboost
from hilboost import (
    BoostingClassifier,
    BoostingRegressor,
    KernelBoostingClassifier,
    KernelBoostingRegressor,
    OutputKernelBoostingRegressor,
    OutputKernelForestRegressor,
    SparseKernelRidge,
)
from hilboost.core.errors import InvalidData, InvalidParameter, InvalidType
from hilboost.estimators import (
    AdaBoostKernelClassifier,
    BayesianCommitteeMachine,
    MixtureOfKernelExperts,
    StackedKernelRidge,
)
from hilboost.kernels import Gaussian, Matern
from hilboost.outputs import PrecomputedOutput
from hilboost.report import facts as report_facts
from hilboost.report import render, report
from hilboost.report.about import kernel_facts, model_facts

KERNEL = {"kernel": Matern(np.full(5, 2.0), 1.5), "regularization": 0.1, "random_state": 0}
OUTPUT = {"n_estimators": 5, "random_state": 0}


def friedman(n=160, seed=0):
    X, y = make_friedman1(n, n_features=5, noise=0.5, random_state=seed)
    return X, y


def classes(n=160, n_classes=3):
    X, y = make_classification(
        n, 6, n_informative=4, n_classes=n_classes, class_sep=1.5, random_state=0
    )
    return X, np.array(["ant", "bee", "<b>cow</b>"])[y]


def structures(kind, n=60):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(n, 4))
    first = 1 - X[:, 0]
    if kind == "label_set":
        return X, [{"low"} if x < 0.4 else {"high", "far"} if x < 0.9 else set() for x in first]
    if kind == "ranking":
        return X, np.where(first[:, None] < 0.5, [[1, 2, 3]], [[3, 1, 2]])
    if kind == "string":
        return X, ["abba" if x < 0.5 else "caba" for x in first]
    if kind == "distribution":
        return X, [rng.normal(x, 0.1, rng.integers(3, 9)) for x in first]
    if kind == "positive_matrix":
        return X, np.array([np.eye(2) * (1 + x) for x in first])
    if kind == "gaussian":
        return X, rng.normal(size=(n, 2, 2)) * 0.1 + first[:, None, None]
    return X, np.column_stack([first, 2 - first, first**2])  # linear


MODELS = {
    "trees": (BoostingRegressor(**PLAIN), friedman),
    "automatic": (BoostingRegressor(n_estimators=20, random_state=0), lambda: friedman(260)),
    "quantiles": (BoostingRegressor("quantile", quantile=[0.1, 0.5, 0.9], **PLAIN), friedman),
    "ridge": (BoostingRegressor(learner=Ridge(), n_estimators=5), friedman),
    "poisson": (BoostingRegressor("poisson", **PLAIN), friedman),
    "two classes": (BoostingClassifier(**PLAIN), lambda: classes(n_classes=2)),
    "three classes": (BoostingClassifier(**PLAIN), classes),
    "kernel": (KernelBoostingRegressor(**KERNEL), friedman),
    "kernel classes": (
        KernelBoostingClassifier(kernel=Gaussian(2.0), regularization=0.1, random_state=0),
        classes,
    ),
    "sparse": (SparseKernelRidge(n_basis=20, **KERNEL), friedman),
    "committee": (BayesianCommitteeMachine(n_estimators=3, subset_size=40, **KERNEL), friedman),
    "experts": (
        MixtureOfKernelExperts(n_estimators=3, subset_size=40, n_rounds=2, **KERNEL),
        friedman,
    ),
    "stacked": (StackedKernelRidge(n_estimators=3, subset_size=40, **KERNEL), friedman),
    "votes": (
        AdaBoostKernelClassifier(
            n_estimators=3, subset_size=0.3, kernel=Gaussian(2.0), regularization=0.1
        ),
        classes,
    ),
    **{
        kind: (OutputKernelBoostingRegressor(kind, **OUTPUT), lambda kind=kind: structures(kind))
        for kind in (
            "linear",
            "gaussian",
            "label_set",
            "ranking",
            "string",
            "distribution",
            "positive_matrix",
        )
    },
    "forest": (OutputKernelForestRegressor(n_estimators=3), lambda: structures("linear")),
}


@pytest.mark.parametrize("name", MODELS)
def test_every_model_has_a_report(name):
    model, make = MODELS[name]
    X, y = make()
    half = len(X) // 2
    report = model.fit(X[:half], y[:half]).report(X[half:], y[half:])
    # As JSON and back: nothing is lost, no number is infinite.
    assert json.loads(json.dumps(report.facts, allow_nan=False)) == report.facts
    assert all(score["value"] is not None for score in report.facts["scores"])
    assert report.html == render(report.facts)
    assert "<b>cow</b>" not in report.html
    assert (report.facts["structured"] is not None) == hasattr(model, "output_")
    assert model.report_facts(X[half:], y[half:]) == report.facts  # the same in every run


def facts_of(model, X, y, n_train=100):
    return model.fit(X[:n_train], y[:n_train]).report_facts(X[n_train:], y[n_train:])


def scores(facts):
    return {score["name"]: score["value"] for score in facts["scores"]}


@pytest.fixture(scope="module")
def regression():
    """A model of the first 100 rows, and what a report says of the others."""
    X, y = friedman()
    model = BoostingRegressor(**PLAIN)
    return facts_of(model, X, y), model, X, y


def test_scores_of_a_regression_are_scikit_learns(regression):
    facts, model, X, y = regression
    truth, predicted = y[100:], model.predict(X[100:])
    found = scores(facts)
    assert found["R²"] == pytest.approx(metrics.r2_score(truth, predicted))
    assert found["RMSE"] == pytest.approx(metrics.root_mean_squared_error(truth, predicted))
    assert found["MAE"] == pytest.approx(metrics.mean_absolute_error(truth, predicted))
    assert found["bias"] == pytest.approx((truth - predicted).mean())
    (guess,) = (score["guess"] for score in facts["scores"] if score["name"] == "RMSE")
    assert guess == pytest.approx(np.sqrt(((truth - y[:100].mean()) ** 2).mean()))
    worst = facts["regression"][0]["worst"]
    assert worst["numbers"][0] == np.abs(truth - predicted).argmax()
    assert facts["importance"]["bars"][0]["name"] == "column 3"  # the strongest of Friedman's


@pytest.mark.parametrize(("loss", "power"), [("poisson", 1), ("gamma", 2), ("tweedie", 1.5)])
def test_mean_deviances_are_scikit_learns(loss, power):
    X, y = make_friedman1(200, random_state=0)
    y = np.ceil(y) if loss == "gamma" else np.maximum(np.round(y) - 8, 0)
    weight = np.where(np.arange(200) % 2, 1.0, 3.0)
    model = BoostingRegressor(loss, **PLAIN).fit(X, y)
    found = {one["key"]: one for one in report_facts(model, X, y, sample_weight=weight)["scores"]}
    found = found[f"mean_{loss}_deviance"]
    args = {"sample_weight": weight, "power": power}
    expected = metrics.mean_tweedie_deviance(y, model.predict(X), **args)
    guess = metrics.mean_tweedie_deviance(y, np.full(200, y.mean()), **args)
    assert (found["value"], found["guess"]) == pytest.approx((expected, guess))
    assert found["low"] < found["value"] < found["high"] < guess


def test_brier_scores_of_three_classes_are_scikit_learns():
    X, y = classes()
    model = BoostingClassifier(**PLAIN)
    facts = facts_of(model, X, y)
    (found,) = [s for s in facts["classes"]["scores"] if s["name"] == "Brier score"]
    expected = metrics.brier_score_loss(y[100:], model.predict_proba(X[100:]))
    assert found["value"] == pytest.approx(expected)
    assert "summed over the classes" in found["says"]


def test_scores_of_a_classification_are_scikit_learns():
    X, y = classes(n_classes=2)
    model = BoostingClassifier(**PLAIN)
    facts = facts_of(model, X, y)
    truth, proba = y[100:], model.predict_proba(X[100:])
    found = scores(facts)
    assert found["accuracy"] == pytest.approx(model.score(X[100:], truth))
    assert found["log loss"] == pytest.approx(metrics.log_loss(truth, proba))
    assert found["Brier score"] == pytest.approx(metrics.brier_score_loss(truth, proba))
    assert "summed over the classes" not in str(facts["classes"]["scores"])
    assert found["ROC AUC"] == pytest.approx(metrics.roc_auc_score(truth, proba[:, 1]))
    predicted = model.predict(X[100:])
    assert found["balanced accuracy"] == pytest.approx(
        metrics.balanced_accuracy_score(truth, predicted)
    )
    matrix = facts["classes"]["confusion"]["matrix"]
    np.testing.assert_array_equal(matrix, metrics.confusion_matrix(truth, predicted))
    bins = facts["classes"]["calibration"]["bins"]
    assert sum(b["count"] for b in bins) == 60
    assert np.average([b["stated"] for b in bins], weights=[b["count"] for b in bins]) == (
        pytest.approx(proba[:, 1].mean())
    )


def test_coverage_of_quantiles_is_counted():
    X, y = friedman()
    model = BoostingRegressor("quantile", quantile=[0.1, 0.5, 0.9], **PLAIN)
    facts = facts_of(model, X, y)["quantiles"]
    low, middle, high = model.predict(X[100:]).T
    truth = y[100:]
    assert facts["interval"]["inside"] == ((low <= truth) & (truth <= high)).mean()
    assert [q["below"] for q in facts["levels"]] == [
        (truth <= q).mean() for q in (low, middle, high)
    ]
    assert facts["interval"]["width"] == pytest.approx((high - low).mean())


def test_intervals_of_a_kernel_machine_are_counted():
    X, y = friedman()
    model = KernelBoostingRegressor(**KERNEL).fit(X[:80], y[:80]).calibrate(X[80:100], y[80:100])
    facts = model.report_facts(X[100:], y[100:])
    row = next(row for row in facts["intervals"]["coverage"] if row["nominal"] == 0.9)
    low, high = model.predict_interval(X[100:], 0.9).T
    assert row["calibrated"] == ((low <= y[100:]) & (y[100:] <= high)).mean()
    mean, std = model.predict(X[100:], return_std=True)
    assert row["gaussian"] == (np.abs(y[100:] - mean) <= 1.6448536 * std).mean()
    assert "mean ± std" in render(facts)
    scales = facts["model"]["kernel"]["scales"]
    assert len(scales) == 5
    assert {one["scale"] for one in scales} == {2.0}


def test_dependence_is_scikit_learns(regression):
    facts, model, X, _ = regression
    for one in facts["dependence"]:
        column = int(one["column"].removeprefix("column "))
        theirs = partial_dependence(
            model, X[100:], [column], custom_values={column: np.array(one["grid"])}, method="brute"
        )
        np.testing.assert_allclose(one["curves"][0]["mean"], theirs["average"][0], rtol=1e-12)


def test_means_by_column_are_those_of_groups():
    X, y = friedman()
    X = np.column_stack([X, np.arange(160) % 3])
    model = BoostingRegressor(**PLAIN)
    found = facts_of(model, X, y)["regression"][0]["by_column"]
    error = pd.Series(np.abs(y[100:] - model.predict(X[100:])))
    by_column = {one["name"]: one["bins"] for one in found}
    by_column |= {"column 5": by_column.get("column 5", [])}
    for number, bins in ((int(name[-1]), bins) for name, bins in by_column.items()):
        if number == 5 and bins:
            means = error.groupby(X[100:, 5]).mean()
            assert [b["error"] for b in bins] == pytest.approx(means.tolist())
        assert not bins or sum(b["count"] for b in bins) == 60


@pytest.mark.slow
def test_parameters_tell_what_was_chosen_and_what_auto_became():
    X, y = friedman(260)
    model = BoostingRegressor(n_estimators=20, random_state=0).fit(X, y)
    facts = {one["name"]: one for one in model.report_facts(X, y)["model"]["parameters"]}
    assert [name for name, one in facts.items() if one["chosen"]] == [
        "n_estimators",
        "random_state",
    ]
    assert facts["learning_rate"]["value"] == "auto"
    assert facts["learning_rate"]["became"] == model.fitted_.resolved.learning_rate
    machine = KernelBoostingRegressor(random_state=0, regularization=0.5).fit(X[:60], y[:60])
    facts = {one["name"]: one for one in machine.report_facts(X, y)["model"]["parameters"]}
    assert facts["stages"]["became"] == "full"
    assert facts["kernel"]["became"] == kernel_facts(machine)["text"]


def test_lists_of_plain_values_are_whole_and_others_short():
    X, y = friedman(50)
    levels, sets, learners = [k / 20 for k in range(1, 20)], [[0, 1]] * 100, [Ridge(5.0)] * 20
    for own in (
        {"interaction_cst": sets},
        {"learner": learners},
        {"loss": "quantile", "quantile": levels},
    ):
        model = BoostingRegressor(n_estimators=1, **own).fit(X, y)
        facts = {one["name"]: one["value"] for one in model_facts(model)["parameters"]}
        assert facts["quantile"] == own.get("quantile", 0.5)
        assert "quantile" in own or [len(facts[name]) for name in own] == [120]


def test_a_model_of_a_file_has_the_same_report(tmp_path):
    X, y = friedman()
    model = BoostingRegressor(**PLAIN).fit(X, y)
    hilboost.save(model, tmp_path / "model")
    again = hilboost.load(tmp_path / "model").report_facts(X[:50], y[:50])
    facts = model.report_facts(X[:50], y[:50])
    assert again["model"]["history"]["seconds"] is None  # not how long it took
    assert "rows also occur in the training data" in again["warnings"][0]
    facts["model"]["history"] |= {"seconds": None, "slowest": []}
    assert again == facts


def test_times_of_stages_are_those_of_one_fit():
    X, y = friedman()
    model = BoostingRegressor(**{**PLAIN, "n_estimators": 4}).fit(X, y)
    assert model.history_.seconds.shape == (4,)
    history = model.report_facts(X, y)["model"]["history"]
    assert history["seconds"] == pytest.approx(model.history_.seconds.sum())
    slowest = int(model.history_.seconds.argmax())
    assert history["slowest"][0]["stage"] == slowest + 1
    model.set_params(warm_start=True, n_estimators=6).fit(X, y)
    assert np.isnan(model.history_.seconds).tolist() == [True] * 4 + [False] * 2
    assert model.report_facts(X, y)["model"]["history"]["seconds"] is None


def test_rows_of_the_training_are_told(regression):
    facts, model, X, y = regression
    assert "too good" in model.report_facts(X[:100], y[:100])["warnings"][0]
    assert facts["warnings"] == []
    assert "Only 5 rows" in model.report_facts(X[100:105], y[100:105])["warnings"][0]


@pytest.mark.parametrize("name", ["trees", "quantiles", "two classes", "kernel", "label_set"])
def test_a_few_rows_are_enough(name):
    model, make = MODELS[name]
    X, y = make()
    model.fit(X, y)
    for n in (1, 2, 3):
        assert "Only" in model.report(X[:n], y[:n]).facts["warnings"][0]


def test_gaps_constants_and_classes_that_are_absent():
    X, y = classes()
    X[::3, 0] = np.nan
    X[:, 1] = 7.0
    model = BoostingClassifier(**PLAIN).fit(X, y)
    rows = np.flatnonzero(y != "ant")
    facts = model.report(X[rows], y[rows]).facts
    column = facts["data"]["columns"][0]
    assert column["missing"] == np.isnan(X[rows, 0]).sum()
    (ant,) = (one for one in facts["classes"]["by_class"] if one["name"] == "ant")
    assert (ant["rows"], ant["recall"]) == (0, None)
    X[:, 0] = np.nan
    assert "all values missing" in model.report(X, y).html


def test_frames_keep_their_names():
    X, y = friedman()
    frame = pd.DataFrame(X, columns=["<i>a</i>", "b & c", "d", "e", "f"])
    frame["flag"] = np.arange(160) % 2 == 0
    frame["count"] = np.arange(160) % 4
    model = BoostingRegressor(**PLAIN).fit(frame, y)
    report = model.report(frame.iloc[100:], y[100:], title="</title><script>alert(1)</script>")
    assert "<i>a</i>" not in report.html
    assert "<script>alert" not in report.html
    assert "b &amp; c" in report.html
    assert [one["name"] for one in report.facts["data"]["columns"]] == list(frame.columns)


def test_days_since_1970_are_shown_as_dates_beside_their_year():
    days = np.arange(19000, 19160.0)  # from 2022-01-08 to 2022-06-16
    X = pd.DataFrame({"sold: year": 2022 + 0 * days, "sold: days": days, "rest: days": days[::-1]})
    X.iloc[3, 1] = np.nan
    model = BoostingRegressor(**PLAIN).fit(X, days % 30)
    of_training = report_facts(model, X, days % 30, X_train=X)
    kinds = {one["name"]: one["kind"] for one in of_training["data"]["columns"]}
    assert kinds == {"sold: year": "number", "sold: days": "date", "rest: days": "number"}
    assert "19\u202f159" in render(of_training)
    dated = X.iloc[:, :2]
    model.fit(dated, days % 30)
    page = render(report_facts(model, dated, days % 30, X_train=dated))
    assert all(text in page for text in ("2022-01-08", "2022-06-16", ">2022-03<"))
    assert not re.search("19\u202f[01]", page)


def test_a_gram_matrix_of_outputs_has_no_gallery():
    X, Y = structures("linear")
    gram = Y @ Y.T
    model = OutputKernelBoostingRegressor(PrecomputedOutput(), **OUTPUT).fit(X, gram)
    assert model.report_facts(X, gram)["structured"]["gallery"] is None


def test_the_gallery_begins_with_the_worst():
    images = load_digits().images[:120] / 16
    X, Y = images[:, :4].reshape(120, -1), images[:, 4:]
    model = OutputKernelBoostingRegressor("gaussian", **OUTPUT).fit(X[:60], Y[:60])
    gallery = model.report_facts(X[60:], Y[60:])["structured"]["gallery"]
    assert gallery["kind"] == "image"
    assert gallery["input_shape"] == [4, 8]
    worst, _, best = gallery["parts"]
    assert worst["items"][0]["error"] >= worst["items"][-1]["error"] > best["items"][0]["error"]
    item = best["items"][0]
    np.testing.assert_array_equal(item["true"], np.round(255 * Y[60 + item["row"]]))


@pytest.mark.slow
def test_many_classes_and_large_pictures_keep_the_page_small():
    rng = np.random.default_rng(0)
    y = np.arange(240) % 60
    X = y[:, None] + rng.normal(scale=0.1, size=(240, 2))
    model = BoostingClassifier(**{**PLAIN, "n_estimators": 2}).fit(X, y)
    report = model.report(X, y)
    assert "The 40 most frequent of 60 classes." in report.html
    assert report.facts["classes"]["confusion"]["matrix"] is None
    Y = np.broadcast_to(-X[:40, 0, None, None], (40, 260, 10))
    model = OutputKernelBoostingRegressor("linear", n_estimators=2, random_state=0)
    gallery = model.fit(X[:40], Y.reshape(40, -1)).report_facts(X[:40], Y.reshape(40, -1))
    item = gallery["structured"]["gallery"]["parts"][0]["items"][0]
    assert len(item["true"]) == 400
    model = OutputKernelBoostingRegressor("gaussian", n_estimators=2, random_state=0)
    gallery = model.fit(X[:40], Y).report_facts(X[:40], Y)["structured"]["gallery"]
    assert np.shape(gallery["parts"][0]["items"][0]["true"]) == (87, 4)


def test_mistakes_are_told(tmp_path):
    X, y = friedman()
    with pytest.raises(NotFittedError):
        BoostingRegressor().report(X, y)
    model = BoostingRegressor(**PLAIN).fit(X, y)
    refused(InvalidData, "inconsistent numbers of rows: 160 and 10", model.report, X, y[:10])
    refused(InvalidData, "pass y", model.report, X, None)
    refused(InvalidData, "X and y seem to be swapped", model.report, y, X)
    refused(ValueError, "5 features", model.report, X[:, :2], y)
    refused(InvalidParameter, "is a folder", model.report, X, y, tmp_path)
    with pytest.raises(InvalidData, match=r"X is the path 'r\.html', which comes after the rows"):
        model.report("r.html", X, y)
    refused(InvalidParameter, "no folder", model.report, X, y, tmp_path / "nowhere" / "report.html")
    with pytest.raises(InvalidType, match="hilboost estimator as .*; got Ridge"):
        hilboost.report.report(Ridge().fit(X, y), X, y)
    X, y = classes()
    with pytest.raises(InvalidData, match="'dog', which is not one of"):
        BoostingClassifier(**PLAIN).fit(X, y).report(X, np.full(160, "dog"))


@pytest.mark.slow
def test_thresholds_count_the_rows_above_them():
    X = np.random.default_rng(0).normal(size=(200, 3))
    y = np.where(X[:, 0] + X[:, 1] > 0.8, "ill", "well")
    model = BoostingClassifier(**PLAIN).fit(X[:100], y[:100])
    for positive in ("ill", "well"):
        found = report_facts(model, X[100:], y[100:], positive_class=positive)
        facts, scores = found["classes"], {one["key"]: one["value"] for one in found["scores"]}
        assert f"curve of class {positive}" in str(found["scores"])
        p = model.predict_proba(X[100:])[:, facts["positive"]]
        assert facts["classes"][facts["positive"]] == positive
        hits = y[100:] == positive
        expected = metrics.average_precision_score(hits, p)
        assert scores["average_precision"] == pytest.approx(expected)
        for one in facts["thresholds"]:
            selected = p >= one["threshold"]
            assert one["share"] == selected.mean()
            assert one["precision"] == pytest.approx(hits[selected].mean())
            assert one["recall"] == pytest.approx(metrics.recall_score(hits, selected))
            assert one["lift"] == pytest.approx(hits[selected].mean() / hits.mean())
    page = model.report(X[100:], y[100:], positive_class="ill").html
    assert "probability of class ill is at least the threshold" in page
    for chosen, said in (("sick", "is not a class of the model; set it to 'ill' or 'well'"),):
        refused(InvalidParameter, said, model.report, X, y, positive_class=chosen)
    numbers = BoostingRegressor(**PLAIN).fit(X, -X[:, 0])
    with pytest.raises(InvalidParameter, match="requires a model of two classes"):
        numbers.report(X, X[:, 0], positive_class=1)


@pytest.mark.parametrize("function", [report_facts, hilboost.report.scores, report])
def test_unknown_arguments_are_those_of_public_functions(function):
    X, y = friedman()
    model = BoostingRegressor(**PLAIN).fit(X, y)
    with pytest.raises(TypeError, match=r"^(facts|scores)\(\) got an unexpected .*'weights'"):
        function(model, X, y, weights=y)
