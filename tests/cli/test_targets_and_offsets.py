"""Several targets, targets that are not what they seem, and offsets on the command line."""

import json

import numpy as np
import pandas as pd
import pytest
from tests.cli.commands import passed, run

import hilboost

pytestmark = pytest.mark.usefixtures("folder")
FAST = ("--n-estimators", 5, "--set", "learner=tree")


def notes(*arguments):
    return passed(*arguments).stderr


def refused(*arguments, code=1):
    result = run(*arguments)
    assert result.exit_code == code, result.output
    return result.stderr.splitlines()[-1]


def write(frame, name="t.csv"):
    frame.to_csv(name, index=False)
    return name


def boxes(n=80):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(n, 2)).round(3), columns=["area", "age"])
    return frame.assign(width=frame["area"] * 2, height=frame["age"] - frame["area"])


def test_fit_of_several_targets_equals_the_fit_in_python():
    frame = boxes()
    frame.loc[3, "width"] = np.nan
    path = write(frame)
    text = notes("fit", path, "--target", "width,height", "--out", "m", "--valid", path, *FAST)
    assert "regression, because --target names several columns" in text
    y = frame[["width", "height"]]
    X = frame[["area", "age"]]
    model = hilboost.BoostingRegressor(learner="tree", n_estimators=5, random_state=0)
    model.fit(X, y, X_val=X + 1e-9, y_val=y)
    loaded = hilboost.load("m")
    assert list(loaded.feature_names_in_) == ["area", "age"]
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    shown = run("evaluate", "m", path, "--target", "width,height", "--json")
    assert {"r2_of_width", "r2_of_height"} <= set(json.loads(shown.stdout)["scores"])


def test_columns_of_predictions_have_the_names_of_the_targets():
    X, y = (boxes(300)[names] for names in (["area", "age"], ["width", "height"]))
    model = hilboost.BoostingRegressor(learner="tree", n_estimators=5).fit(X[:200], y[:200])
    model.calibrate(X[200:], y[200:]).save("m")
    run("predict", "m", write(X), "--out", "out.csv", "--coverage", "0.9")
    found = pd.read_csv("out.csv")
    assert list(found.columns) == [
        *("prediction_width", "prediction_height"),
        *("lower_width", "upper_width", "lower_height", "upper_height"),
    ]
    np.testing.assert_allclose(found["prediction_height"], model.predict(X)[:, 1])
    ends = found[["lower_height", "upper_height"]]
    np.testing.assert_allclose(ends, model.predict_interval(X, 0.9)[:, 1])


def test_a_column_whose_name_contains_a_comma_is_one_target():
    path = write(boxes().rename(columns={"width": "a,b"}).drop(columns="height"))
    notes("fit", path, "--target", "a,b", "--out", "m", *FAST)
    assert hilboost.load("m").predict(boxes()[["area", "age"]]).ndim == 1


def counts(n):
    frame = boxes(n).drop(columns=["width", "height"])
    rng = np.random.default_rng(1)
    return frame.assign(claims=rng.poisson(3, len(frame)), exposure=rng.normal(size=len(frame)))


@pytest.mark.slow
def test_commands_say_that_the_offset_of_the_fit_is_missing():
    path, offset = write(counts(240)), ("--offset", "exposure")
    poisson = ("--target", "claims", "--loss", "poisson", *offset)
    notes("fit", path, *poisson, "--out", "m", "--n-estimators", 40)
    for command in (
        ("predict", "m", path, "--coverage", 0.9),
        ("evaluate", "m", path, "--target", "claims"),
        ("report", "m", path, "--target", "claims", "--out", "r.html"),
    ):
        assert notes(*command).count("add --offset COLUMN") == 1
        assert "offset" not in notes(*command, *offset)


@pytest.mark.parametrize("unit", [" min", "min", " µg/m³", "%", "€"])
def test_a_target_with_units_must_become_numbers(unit):
    frame = boxes(130)
    path = write(frame.assign(width=[f"{value:g}{unit}" for value in frame["width"]]))
    command = ("fit", path, "--target", "width", "--ignore", "height", "--out", "m")
    message = refused(*command)
    assert "text of numbers with units with 128 different values in 130 rows ('0.252" in message
    assert "or add --task classification if these are classes" in message
    short = "--n-estimators", 1, "--set", "learner=tree", "--task", "classification"
    assert "has 128 classes in 130 rows, which takes long" in notes(*command, *short)


def test_events_of_one_and_two_may_be_those_of_r():
    frame = boxes().assign(hours=np.arange(80) + 1.0, status=1 + np.arange(80) % 2)
    command = ("fit", write(frame), "--target", "hours", "--event", "status", "--out", "m")
    assert "subtract 1 from the events of y, which are 1 and 2" in refused(*command)
    text = notes(*command, "--loss", "discrete_hazard", "--n-estimators", 2)
    assert "no row is censored (0)" in text
