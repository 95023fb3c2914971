"""Reports show the coverage and the size of calibrated intervals and sets."""

import json

import numpy as np
import pytest
from tests.cases import PLAIN

from hilboost import (
    BoostingClassifier,
    BoostingRegressor,
    KernelBoostingRegressor,
    OutputKernelForestRegressor,
)
from hilboost.kernels import Gaussian
from hilboost.report import render

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 2))
Y = X[:, 0] + 0.5 * RNG.normal(size=300)
LABELS = np.digitize(Y, [-0.5, 0.5])
FIT, HELD, NEW = slice(0, 100), slice(100, 200), slice(200, 300)


def facts_of(model, y):
    facts = model.report_facts(X[NEW], y[NEW])
    assert json.loads(json.dumps(facts)) == facts
    return facts


def test_intervals_of_trees():
    model = BoostingRegressor(**PLAIN).fit(X[FIT], Y[FIT])
    assert facts_of(model, Y)["intervals"] is None
    facts = facts_of(model.calibrate(X[HELD], Y[HELD]), Y)
    low, high = model.predict_interval(X[NEW], 0.9).T
    (row,) = [row for row in facts["intervals"]["coverage"] if row["nominal"] == 0.9]
    assert row["gaussian"] is None
    assert row["calibrated"] == ((low <= Y[NEW]) & (Y[NEW] <= high)).mean()
    assert np.isclose(row["width"], (high - low).mean())
    assert facts["intervals"]["text"] == "calibrated with 100 held-out rows"
    page = render(facts)
    assert "Coverage of prediction intervals" in page
    assert "mean ± std" not in page
    assert "Calibrated with 100 held-out rows" in page


def test_intervals_of_ensembles_with_missing_targets():
    y = np.column_stack([Y, -Y])
    y[::3, 1] = np.nan
    model = BoostingRegressor(**PLAIN | {"early_stopping": True}).fit(X[FIT], y[FIT])
    facts = facts_of(model, y)
    assert facts["intervals"]["text"] == "calibrated with 100 out-of-fold rows"
    assert 0.8 < facts["intervals"]["coverage"][2]["calibrated"] <= 1
    render(facts)


def test_intervals_of_quantiles():
    parameters = PLAIN | {"loss": "quantile", "quantile": [0.1, 0.9]}
    model = BoostingRegressor(**parameters).fit(X[FIT], Y[FIT]).calibrate(X[HELD], Y[HELD])
    facts = facts_of(model, Y)
    assert 0.6 < facts["intervals"]["coverage"][1]["calibrated"] < 0.95
    page = render(facts)
    assert page.count('id="coverage"') == page.count('id="intervals"') == 1


def test_sets_of_classes():
    model = BoostingClassifier(**PLAIN).fit(X[FIT], LABELS[FIT])
    assert facts_of(model, LABELS)["sets"] is None
    facts = facts_of(model.calibrate(X[HELD], LABELS[HELD], groups="class"), LABELS)
    sets = model.predict_set(X[NEW], 0.8)
    (row,) = [row for row in facts["sets"]["coverage"] if row["nominal"] == 0.8]
    assert row["observed"] == sets[np.arange(100), LABELS[NEW]].mean()
    assert row["size"] == sets.sum(axis=1).mean()
    assert "Prediction sets" in render(facts)


def test_distances_of_candidates():
    ranks = np.where(X[:, :1] + 0.3 * RNG.normal(size=(300, 1)) < 0, [[1, 2, 3]], [[3, 1, 2]])
    model = OutputKernelForestRegressor("ranking", n_estimators=5, random_state=0)
    model.fit(X[FIT], ranks[FIT])
    assert facts_of(model, ranks)["sets"] is None
    facts = facts_of(model.calibrate(X[HELD], ranks[HELD]), ranks)
    row = facts["sets"]["coverage"][1]
    assert row["nominal"] == 0.8
    assert row["distance"] == model.fitted_.calibration.threshold(0.8)
    assert abs(row["observed"] - 0.8) < 0.15
    assert "Candidate sets" in render(facts)


@pytest.mark.slow
def test_calibrations_by_group_and_with_few_rows_are_left_out():
    model = BoostingRegressor(**PLAIN).fit(X[FIT], Y[FIT])
    model.calibrate(X[HELD], Y[HELD], groups=LABELS[HELD])
    assert facts_of(model, Y)["intervals"] is None
    rows = facts_of(model.calibrate(X[HELD][:8], Y[HELD][:8]), Y)["intervals"]["coverage"]
    assert [row["calibrated"] is None for row in rows] == [False, False, True, True]
    render(facts_of(model, Y))


@pytest.mark.parametrize("name", ["intervals", "sets"])
def test_facts_of_earlier_versions_are_rendered(name):
    model = BoostingClassifier(**PLAIN).fit(X[FIT], LABELS[FIT])
    if name == "intervals":
        model = KernelBoostingRegressor(kernel=Gaussian(1.0), regularization=0.3)
        model.fit(X[FIT], Y[FIT]).calibrate(X[HELD], Y[HELD])
    facts = facts_of(model, Y if name == "intervals" else LABELS)
    for key in ("sets", "drift", "contributions", "ranking", "survival"):
        del facts[key]
    del facts["data"]["weight"]
    for row in (facts["intervals"] or {"coverage": []})["coverage"]:
        del row["width"]
    assert "</html>" in render(facts)
