"""Reports on several numeric targets: a row of scores for each, under its name."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.metrics import (
    mean_absolute_error,
    mean_poisson_deviance,
    r2_score,
    root_mean_squared_error,
)
from tests.cases import PLAIN

from hilboost import BoostingRegressor
from hilboost.report import compare, facts, report, scores

RNG = np.random.default_rng(3)
X = RNG.normal(size=(300, 3))
NAMES = ["price", "weight & size", "noise"]
Y = np.column_stack([100 * X[:, 0], X[:, 1] ** 2, RNG.normal(size=300)])
FRAME = pd.DataFrame(Y, columns=NAMES)
MODEL = BoostingRegressor(**PLAIN).fit(X[:200], Y[:200])


@pytest.mark.parametrize(
    ("convert", "names"),
    [
        (np.asarray, ["target 0", "target 1", "target 2"]),
        (lambda frame: frame, NAMES),
        (pl.from_pandas, NAMES),
        (pa.Table.from_pandas, NAMES),
    ],
)
def test_each_target_has_its_name_and_its_scores(convert, names):
    found = facts(MODEL, X[200:], convert(FRAME[200:]))
    predicted = MODEL.predict(X[200:])
    assert [one["name"] for one in found["regression"]] == names
    for k, one in enumerate(found["regression"]):
        values = {score["key"]: score["value"] for score in one["scores"]}
        assert values["r2"] == pytest.approx(r2_score(Y[200:, k], predicted[:, k]))
        assert values["rmse"] == pytest.approx(root_mean_squared_error(Y[200:, k], predicted[:, k]))
        assert values["mae"] == pytest.approx(mean_absolute_error(Y[200:, k], predicted[:, k]))
    assert [score["name"] for score in found["scores"]] == ["R²", *map("R² of {}".format, names)]
    assert found["scores"][0]["value"] == pytest.approx(MODEL.score(X[200:], Y[200:]))
    assert all(one["low"] < one["value"] < one["high"] for one in found["scores"])
    assert [one["name"] for one in found["dependence"][0]["curves"]] == names
    assert found["target"]["of"] == found["contributions"]["output"] == names[0]


def test_the_page_has_a_row_for_each_target():
    page = report(MODEL, X[200:], FRAME[200:]).html
    for k, name in enumerate(["price", "weight &amp; size", "noise"]):
        value = r2_score(Y[200:, k], MODEL.predict(X[200:])[:, k])
        assert (
            f'<th scope="row">{name}</th><td class="n">{value:.3g}'.replace("-", "−")[:-1] in page
        )
    assert page.count('<div class="card">') == 1


def test_targets_beyond_the_plots_have_scores():
    many = np.column_stack([X[:, 0] - k * X[:, 1] for k in range(1, 7)])
    model = BoostingRegressor(**PLAIN).fit(X[:200], many[:200])
    found = report(model, X[200:], many[200:])
    assert len(found.facts["regression"]) == 6
    assert '<th scope="row">target 5</th>' in found.html
    assert "Plots show only the first 4 of 6 targets." in found.html


def test_missing_and_constant_targets():
    holed = FRAME[200:].assign(noise=1.0)
    holed.iloc[::2, 0] = np.nan
    found = scores(MODEL, X[200:], holed)
    assert [one["name"] for one in found[:3]] == ["R²", "R² of price", "R² of weight & size"]
    assert found[0]["value"] == pytest.approx(np.mean([one["value"] for one in found[1:3]]))
    known = slice(201, None, 2)
    expected = r2_score(Y[known, 0], MODEL.predict(X[known])[:, 0])
    assert found[1]["value"] == pytest.approx(expected)
    values = {one["key"]: one["value"] for one in found}
    expected = mean_absolute_error(Y[known, 0], MODEL.predict(X[known])[:, 0])
    assert values["mae_of_price"] == pytest.approx(expected)
    assert "rmse_of_noise" in values
    assert "r2_of_noise" not in values


def test_deviances_of_each_target():
    counts = RNG.poisson(np.exp(X[:, :2]))
    model = BoostingRegressor("poisson", **PLAIN).fit(X, counts)
    values = {one["key"]: one["value"] for one in scores(model, X, counts)}
    for k, predicted in enumerate(model.predict(X).T):
        expected = mean_poisson_deviance(counts[:, k], predicted)
        assert values[f"mean_poisson_deviance_of_target {k}"] == pytest.approx(expected)


def test_intervals_of_each_target():
    model = BoostingRegressor(**PLAIN).fit(X[:100], FRAME[:100])
    model.calibrate(X[100:200], FRAME[100:200])
    page = report(model, X[200:], FRAME[200:])
    row = page.facts["intervals"]["coverage"][2]
    low, high = np.moveaxis(model.predict_interval(X[200:], coverage=0.9), 2, 0)
    for k, one in enumerate(row["of_targets"]):
        assert one["inside"] == np.mean((low[:, k] <= Y[200:, k]) & (Y[200:, k] <= high[:, k]))
        assert one["width"] == pytest.approx(np.mean(high[:, k] - low[:, k]))
    assert row["width"] is None  # targets have different units
    assert "observed coverage, and mean width, of calibrated intervals" in page.html


def test_comparisons_name_the_targets():
    other = BoostingRegressor(**PLAIN | {"max_leaf_nodes": 2}).fit(X[:200], Y[:200])
    page = compare({"deep": MODEL, "shallow": other}, X[200:], FRAME[200:])
    assert [one["name"] for one in page.facts["scores"]] == ["R²", *map("R² of {}".format, NAMES)]
    assert "Mean absolute error of price by column" in page.html


def test_keys_contain_the_names_of_the_targets():
    names = ["Price", "price", "a long name of the third target"]
    similar = FRAME.set_axis(names, axis=1)
    keys = [one["key"] for one in scores(MODEL, X[200:], similar[200:])]
    assert len(set(keys)) == len(keys)
    assert keys[1:4] == [f"r2_of_{name}" for name in names]
