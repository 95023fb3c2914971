"""Confidence intervals of scores, ranges of partial dependence, galleries of wrong predictions."""

import re

import numpy as np
import pandas as pd
import pytest
from tests.cases import PLAIN

from hilboost import BoostingClassifier, BoostingRegressor, OutputKernelForestRegressor
from hilboost.report.figures import score, with_intervals


@pytest.mark.parametrize("n", [400, 50_000])
def test_the_interval_of_a_mean(n):
    """As by the normal distribution, also where resamples are smaller than the data."""
    hits = np.random.default_rng(0).uniform(size=n) < 0.8

    def measured(rows):
        return [score("accuracy", hits[rows].mean(), None, "higher", "")]

    (found,) = with_intervals(measured(np.arange(n)), n, measured)
    half = 1.96 * np.sqrt(hits.mean() * (1 - hits.mean()) / n)
    assert found["low"] == pytest.approx(hits.mean() - half, abs=0.35 * half)
    assert found["high"] == pytest.approx(hits.mean() + half, abs=0.35 * half)
    assert with_intervals(measured(np.arange(n)), n, measured) == [found]


def test_scores_that_few_resamples_have_get_no_interval():
    scores = [score("ROC AUC", 0.5, None, "higher", "")]
    (found,) = with_intervals(scores, 10, lambda rows: [])
    assert found["low"] is None
    assert found["high"] is None


@pytest.mark.slow
def test_pages_show_intervals_once_and_ranges_of_categories():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"town": rng.choice(["a", "b"], 120), "size": rng.normal(size=120)})
    y = X["size"] + (X["town"] == "a")
    page = BoostingRegressor(**PLAIN).fit(X[:80], y[:80]).report(X[80:], y[80:])
    for one in page.facts["scores"]:
        assert one["low"] <= one["value"] <= one["high"]
    assert page.html.count("root mean squared error") == 1
    assert 'class="spread"' in page.html
    places = [float(at) for at in re.findall(r"(?:left|width):([\d.]+)%", page.html)]
    assert all(0 <= at <= 100 for at in places)
    labels = np.where(y > 0, "yes", "no")
    page = BoostingClassifier(**PLAIN).fit(X[:80], labels[:80]).report(X[80:], labels[80:])
    assert page.html.count('class="band') == 1  # that of the numeric column
    assert "Bands and lines contain the middle 80 %" in page.html
    three = np.where(X["size"] > 1, "maybe", labels)
    of_three = BoostingClassifier(**PLAIN).fit(X[:80], three[:80]).report(X[80:], three[80:]).html
    assert 'class="band' not in of_three
    assert "Bands and lines" not in of_three
    assert page.facts["scores"][0]["low"] <= page.facts["scores"][0]["value"]


def test_the_worst_predictions_are_wrong_ones():
    X = np.repeat(np.eye(3), 20, axis=0)
    tags = [{"abc"[k]} for k in X.argmax(axis=1)]
    tags[0] = {"c"}
    model = OutputKernelForestRegressor("label_set", n_estimators=3, random_state=0).fit(X, tags)
    (worst, *_) = model.report(X, tags).facts["structured"]["gallery"]["parts"]
    assert worst["name"] == "worst"
    assert all(item["error"] > 0 for item in worst["items"])
