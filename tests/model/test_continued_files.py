"""Models read from files are continued as those in memory are."""

import numpy as np
import pandas as pd
import pytest
from tests.cases import PLAIN
from tests.reloaded import reloaded

from hilboost import BoostingClassifier, BoostingRanker, BoostingRegressor, load
from hilboost.core.errors import InvalidData

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(120, 3)), columns=list("abc"))
X["kind"] = RNG.choice(["x", "y", "z"], size=120)
Y = X["a"] * X["b"] + (X["kind"] == "x")
SETTING = PLAIN | {"target_encoding": False, "subsample": 0.7}
NUMBERS_ONLY = (
    BoostingClassifier(multi_output="shared", **SETTING),
    BoostingRanker(**PLAIN | {"subsample": 0.7}),
)
GROUPS = {"groups": np.arange(120) // 10}


@pytest.mark.parametrize(
    ("model", "y", "more"),
    [
        (BoostingRegressor(**SETTING), 1000 * Y, {}),
        (BoostingRegressor("absolute_error", **SETTING), Y, {}),
        (BoostingRegressor("quantile", quantile=[0.2, 0.8], **SETTING), Y, {}),
        (BoostingClassifier(**SETTING), np.digitize(Y, [-0.5, 0.5]), {}),
        (NUMBERS_ONLY[0], np.digitize(Y, [-0.5, 0.5]), {}),
        (NUMBERS_ONLY[1], np.digitize(Y, [-0.5, 0.5]), GROUPS),
    ],
    ids=["numbers", "medians", "quantiles", "classes", "shared", "groups"],
)
def test_a_fit_in_two_parts_is_a_whole_one(model, y, more, tmp_path):
    rows = X[["a", "b", "c"]] if model in NUMBERS_ONLY else X
    whole = model.set_params(n_estimators=8, warm_start=False).fit(rows, y, **more)
    expected = whole.predict_raw(rows)
    model.set_params(n_estimators=5).fit(rows, y, **more).save(tmp_path / "model")
    loaded = load(tmp_path / "model").set_params(n_estimators=8, warm_start=True)
    np.testing.assert_array_equal(loaded.fit(rows, y, **more).predict_raw(rows), expected)
    loaded.save(tmp_path / "model")
    assert load(tmp_path / "model").n_estimators_ == 8


def test_what_held_rows_out_or_encoded_categories_is_refused():
    held = {"early_stopping": True, "n_estimators": 5}
    stops, encodes = "early_stopping=False", "target_encoding=False"
    many = np.array([f"level {k % 60}" for k in range(120)])  # encoded by default
    for parameters, levels, remedy in (
        (held | {"cv_folds": 1}, X["kind"], stops),
        (held | {"cv_folds": 2}, X["kind"], stops),
        ({"target_encoding": True}, X["kind"], encodes),
        ({}, many, encodes),
        (held, many, f"{stops} and {encodes}"),
    ):
        rows = X.assign(kind=levels)
        model = BoostingRegressor(**PLAIN | parameters, learner="tree").fit(rows, Y)
        loaded = reloaded(model).set_params(warm_start=True, n_estimators=20)
        said = "held rows out or encoded categories by the target; fit it with"
        with pytest.raises(InvalidData, match=f"{said} {remedy}, "):
            loaded.fit(rows, Y)


def test_kernel_stages_need_their_state(tmp_path):
    model = BoostingRegressor(learner="kernel", n_estimators=2, random_state=0)
    model.fit(X[["a", "b"]], Y).save(tmp_path / "model", training_data=True)
    loaded = load(tmp_path / "model").set_params(warm_start=True, n_estimators=3)
    with pytest.raises(InvalidData, match="cannot be continued from the stages alone"):
        loaded.fit(X[["a", "b"]], Y)
