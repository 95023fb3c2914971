"""Series whose index is that of the table in another order: rows are matched by position."""

import warnings

import numpy as np
import pandas as pd
import pytest

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


def warned(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    texts = {str(one.message) for one in caught if one.category is DataWarning}
    return {text.partition(" ")[0] for text in texts if "in a different order" in text}


@pytest.mark.parametrize(("name", "method", "given"), CALLS)
def test_another_order_of_rows_warns(name, method, given, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    model = MODELS[name]()
    assert not warned(lambda: getattr(model, method)(X, **given))
    for argument, values in given.items():
        moved = given | {argument: values.iloc[OTHER_ORDER]}
        assert argument in warned(lambda given=moved: getattr(MODELS[name](), method)(X, **given))


def test_scores_of_reports_warn():
    model = MODELS["regressor"]()
    assert warned(lambda: scores(model, X, SERIES.iloc[OTHER_ORDER])) == {"y"}
    assert not warned(lambda: scores(model, X, SERIES))
