"""Several models on one page: the figures of each one's report, and paired differences."""

import json

import numpy as np
import pytest
from sklearn.datasets import make_classification, make_friedman1
from tests.cases import PLAIN

from hilboost import BoostingClassifier, BoostingRegressor, OutputKernelBoostingRegressor
from hilboost.core.errors import InvalidData, InvalidParameter, InvalidType
from hilboost.report import compare, render, scores

X, Y = make_friedman1(160, n_features=5, noise=0.5, random_state=0)
LABELS = np.where(make_classification(160, 5, flip_y=0.2, random_state=0)[1], "<b>yes</b>", "no")
FIT, NEW = slice(0, 80), slice(80, 160)


def pair(estimator, y, **second):
    parameters = [PLAIN, PLAIN | {"n_estimators": 1}]
    return {
        name: estimator(**p | second).fit(X[FIT], y[FIT])
        for name, p in zip(("many <i>", "one"), parameters, strict=True)
    }


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["numbers", "classes", "quantiles"])
def test_scores_are_those_of_the_reports(kind, tmp_path):
    y = LABELS if kind == "classes" else Y
    estimator = BoostingClassifier if kind == "classes" else BoostingRegressor
    options = {"loss": "quantile", "quantile": [0.1, 0.5, 0.9]} if kind == "quantiles" else {}
    models = pair(estimator, y, **options)
    page = compare(models, X[NEW], y[NEW], tmp_path / "page.html", title="</title>")
    found = page.facts
    assert page.path.read_text(encoding="utf-8") == page.html
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert "many &lt;i&gt;" in page.html
    assert "<b>yes</b>" not in page.html
    for k, model in enumerate(models.values()):
        single = {one["key"]: one["value"] for one in scores(model, X[NEW], y[NEW])}
        assert {one["key"]: one["values"][k] for one in found["scores"]} == single
    first = found["scores"][0]
    assert first["best"] == 0
    assert first["differences"][0] is None
    assert first["differences"][1]["clear"] == (kind != "classes")
    assert ('<small class="clear">' in page.html) == any(
        one and one["clear"] for score in found["scores"] for one in score["differences"]
    )
    assert (found["curves"] is not None) == (kind == "classes")
    predicted = [model.predict(X[NEW]) for model in models.values()]
    if kind == "numbers":
        widest = np.abs(predicted[0] - predicted[1]).argmax()
        assert found["apart"]["numbers"][0] == widest
        assert found["apart"]["predicted"][0] == [p[widest] for p in predicted]
        assert found["correlations"][0][1] == pytest.approx(np.corrcoef(predicted)[0, 1])


def test_differences_are_of_the_same_resamples():
    models = pair(BoostingRegressor, Y)
    same = {"a": models["one"], "b": models["one"]}
    page = compare(same, X[NEW], Y[NEW])
    assert '<small class="clear">' not in page.html
    for score in page.facts["scores"]:
        assert score["differences"][1] == {"low": 0.0, "high": 0.0, "clear": False}


def test_structured_outputs_have_scores():
    sets = [{"low"} if x < 0.4 else {"high"} for x in X[:, 0]]
    models = {
        str(n): OutputKernelBoostingRegressor("label_set", n_estimators=n).fit(X[FIT], sets[FIT])
        for n in (1, 5)
    }
    found = compare(models, X[NEW], sets[NEW], sample_weight=np.arange(80)).facts
    assert found["scores"][0]["key"] == "explained"
    assert found["apart"] is None
    assert "weights of sum" in render(found)


def test_mistakes_are_told():
    models = pair(BoostingRegressor, Y)
    with pytest.raises(InvalidType, match="must be a dict .* such as .*; got list"):
        compare(list(models.values()), X, Y)
    with pytest.raises(InvalidParameter, match="requires 2 to 8 models; got 1"):
        compare({"one": models["one"]}, X, Y)
    others = {"numbers": models["one"], "pairs": BoostingRegressor(**PLAIN).fit(X, np.c_[Y, Y])}
    with pytest.raises((InvalidData, ValueError)):
        compare(others, X, Y)
    classes = {
        "two": BoostingClassifier(**PLAIN).fit(X, LABELS),
        "three": BoostingClassifier(**PLAIN).fit(X, np.r_[["a"], LABELS[1:]]),
    }
    with pytest.raises(InvalidData, match="'two' and 'three' have different labels"):
        compare(classes, X[1:], LABELS[1:])


def test_names_of_models_are_not_those_of_fields():
    models = dict(zip(("count", "label"), pair(BoostingRegressor, Y).values(), strict=True))
    page = compare(models, X[NEW], Y[NEW])
    first = page.facts["by_column"][0]["bins"]
    assert sum(one["count"] for one in first) == 80
    assert isinstance(first[0]["label"], str)
    with pytest.raises(InvalidParameter, match="must have different names as text"):
        compare({1: models["count"], "1": models["label"]}, X, Y)
