"""The metric of output kernel models: decoding, scores, early stopping, files, reports."""

import numpy as np
import pytest
from tests.reloaded import reloaded

from hilboost import (
    OutputKernelBoostingRegressor,
    OutputKernelForestRegressor,
    OutputKernelTreeRegressor,
)
from hilboost.core.errors import InvalidParameter
from hilboost.outputs import LabelSets

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
SETS = (X @ RNG.normal(size=(3, 6)) + RNG.normal(size=(120, 6)) > 0.7).astype(int)
SETS[0] = 1
RANKS = np.argsort(np.argsort(X + RNG.normal(size=X.shape), axis=1), axis=1) + 1
WORDS = ["ab" * int(2 + x[0] > 2) + "c" * int(2 + x[1] > 2) + "d" for x in X]
MODELS = {
    "boosting": lambda *args, **more: OutputKernelBoostingRegressor(
        *args, n_estimators=10, learner="ok3", random_state=0, **more
    ),
    "forest": lambda *args, **more: OutputKernelForestRegressor(
        *args, n_estimators=10, min_samples_leaf=3, random_state=0, **more
    ),
    "tree": lambda *args, **more: OutputKernelTreeRegressor(*args, min_samples_leaf=3, **more),
}
models = pytest.mark.parametrize("name", MODELS)


@pytest.mark.parametrize(
    ("name", "output", "labels", "metric", "way"),
    [
        ("boosting", "label_set", SETS, "f1", "f1"),
        ("forest", "label_set", SETS, "hamming", "threshold"),
        ("tree", "ranking", RANKS, "spearman", "borda"),
        ("tree", "string", WORDS, "edit", "nearest"),
    ],
)
def test_the_metric_selects_the_decoding_method_and_the_score(name, output, labels, metric, way):
    plain = MODELS[name](output).fit(X[:80], labels[:80])
    model = MODELS[name](output, metric=metric).fit(X[:80], labels[:80])
    raw = plain.predict_raw(X[80:])
    np.testing.assert_array_equal(model.predict_raw(X[80:]), raw)
    found, expected = model.predict(X[80:]), plain.output_.decode(raw, way)
    np.testing.assert_array_equal(found, expected)
    weight = np.arange(40.0)
    values = model.output_.metrics()[metric].agreement(labels[80:], expected)
    assert model.score(X[80:], labels[80:]) == pytest.approx(values.mean())
    weighted = model.score(X[80:], labels[80:], weight)
    assert weighted == pytest.approx(np.average(values, weights=weight))
    assert model.explained_variance(X[80:], labels[80:]) == plain.score(X[80:], labels[80:])


def test_the_metric_may_be_set_after_the_fit():
    model = MODELS["forest"]("label_set").fit(X[:80], SETS[:80])
    scores = {}
    for metric in ("f1", "hamming", "subset_accuracy"):
        for decode in ("auto", "threshold", "f1"):
            model.set_params(metric=metric, decode=decode)
            scores[metric, decode] = model.score(X[80:], SETS[80:])
    assert scores["f1", "auto"] == scores["f1", "f1"] > scores["f1", "threshold"]
    assert scores["hamming", "auto"] == scores["hamming", "threshold"] > scores["hamming", "f1"]


@models
def test_the_score_of_decoded_labels(name):
    model = MODELS[name]("label_set", metric="preimage").fit(X, SETS)
    mean = ((SETS - SETS.mean(axis=0)) ** 2).sum(axis=1).mean()
    expected = 1 - model.preimage_loss(X, SETS) / mean
    assert model.score(X, SETS) == pytest.approx(expected)
    assert model.set_params(metric="embedding").score(X, SETS) == model.explained_variance(X, SETS)


@models
def test_unknown_metrics_are_refused(name):
    for output, metric, message in (
        (
            "label_set",
            "f2",
            "'f2' is not known. .*values: embedding, f1, hamming, preimage, subset",
        ),
        ("label_set", "accuracy_score", ".*Did you mean 'subset_accuracy'"),
        ("linear", "f1", "'f1' is not known."),
    ):
        with pytest.raises(InvalidParameter, match=f"metric={message}"):
            MODELS[name](output, metric=metric).fit(X, SETS)
    with pytest.raises(ValueError, match="metric"):
        MODELS[name]("linear", metric=3).fit(X, SETS)


@models
def test_unknown_metrics_are_refused_after_the_fit(name):
    model = MODELS[name]("label_set").fit(X, SETS).set_params(metric="kendall")
    for use in (model.predict, lambda X: model.score(X, SETS)):
        with pytest.raises(InvalidParameter, match="metric='kendall' is not known."):
            use(X)


@pytest.mark.parametrize(
    ("output", "labels", "metric", "loss"),
    [
        (LabelSets("inverse_frequency"), SETS, "f1", "squared_error"),
        ("ranking", RANKS, "kendall", "huber"),
    ],
    ids=["weighted sets", "rankings"],
)
def test_early_stopping_monitors_the_metric(output, labels, metric, loss):
    held = {"X_val": X[80:], "y_val": labels[80:]}
    model = MODELS["boosting"](output, metric=metric, loss=loss)
    model.fit(X[:80], labels[:80], **held)
    losses = model.history_.validation
    assert model.n_estimators_ == int(np.argmin(losses))
    assert losses.min() == pytest.approx(-model.score(X[80:], labels[80:]))


def test_early_stopping_where_points_do_not_determine_labels():
    held = {"X_val": X[80:], "y_val": WORDS[80:]}
    one, other = (
        MODELS["boosting"]("string", metric=metric).fit(X[:80], WORDS[:80], **held)
        for metric in ("edit", "preimage")
    )
    np.testing.assert_array_equal(one.history_.validation, other.history_.validation)
    assert one.predict(X) == other.predict(X)


@models
def test_files_and_reports_know_the_metric(name):
    model = MODELS[name]("label_set", metric="f1").fit(X, SETS)
    loaded = reloaded(model)
    assert loaded.metric == "f1"
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    facts = model.report_facts(X, SETS)
    scores = {entry["key"]: entry["value"] for entry in facts["scores"]}
    assert scores["f1"] == pytest.approx(model.score(X, SETS))
    assert scores["explained"] == pytest.approx(model.explained_variance(X, SETS))
