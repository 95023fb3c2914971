"""Bad partitions and unsupported parameters: one sentence, and the same error for all workers."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from tests.cases import PLAIN
from tests.workers.together import fit_together, partitions_of

from hilboost import (
    BoostingClassifier,
    BoostingRanker,
    BoostingRegressor,
    BoostingSurvival,
    KernelBoostingRegressor,
    OutputKernelBoostingRegressor,
    OutputKernelForestRegressor,
)
from hilboost.core.errors import HilboostError
from hilboost.losses import SquaredError
from hilboost.workers.partitions import Partition

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(60, 3)), RNG.normal(size=60)
MODEL = BoostingRegressor(**PLAIN | {"n_estimators": 2, "random_state": 0})


class OwnLoss(SquaredError):
    """A loss that does not say how its sums are divided."""


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (OutputKernelForestRegressor(), "only fit BoostingRegressor, BoostingClassifier, kernel"),
        (LinearRegression(), "OutputKernelBoostingRegressor, not LinearRegression"),
        (OutputKernelBoostingRegressor(learner="linear"), "learner='linear' is not supported"),
        (OutputKernelBoostingRegressor(loss="huber"), "set loss='squared_error'"),
        (BoostingRanker(), "only fit BoostingRegressor, BoostingClassifier, kernel"),
        (BoostingSurvival(), "only fit BoostingRegressor, BoostingClassifier, kernel"),
        (KernelBoostingRegressor(time_budget=9), "time_budget=9 is not supported"),
        (BoostingRegressor(learner="linear"), "set learner='tree'"),
        (BoostingRegressor(n_shards="auto"), "n_shards='auto' is not supported"),
        (BoostingRegressor(warm_start=True), "warm_start=True is not supported"),
        (BoostingRegressor(time_budget=9), "time_budget=9 is not supported"),
        (BoostingRegressor(multi_output="shared", sketch=1), "sketch=1 is not supported"),
        (BoostingRegressor(OwnLoss(), random_state=0), "OwnLoss does not declare"),
    ],
)
def test_unsupported(model, message):
    with pytest.raises((HilboostError, ValueError), match=message):
        fit_together(model, partitions_of(X, Y, cuts=[20, 40]), [0, 1, 0])


def changed(**columns):
    """Three partitions of a table, the last of which is different."""
    frame = pd.DataFrame(X, columns=list("abc"))
    parts = partitions_of(frame, Y, cuts=[20, 40])
    last = parts[2]
    return [*parts[:2], Partition(2, columns.get("X", last.X), columns.get("y", last.y))]


FRAME = pd.DataFrame(X[40:], columns=list("abc"))
BAD_Y = np.where(np.arange(20) == 3, np.nan, Y[40:])


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (changed(X=FRAME[["a", "b"]]), "partition 2: X has 2 columns, but partition 0 has 3"),
        (changed(X=FRAME[["a", "c", "b"]]), "partition 2: the columns of X are"),
        (changed(X=FRAME.assign(c="red")), "partition [012]: column 'c' contains numbers"),
        (
            changed(X=FRAME.assign(c=pd.Timestamp("2020-01-01"))),
            "partition 2: column 'c' contains dates",
        ),
        (changed(y=BAD_Y), "partition 2: Input y contains NaN in row 3"),
        (changed(y=Y[:19]), "partition 2: X and y have inconsistent"),
        (changed(y=np.stack([Y[:20]] * 2, axis=1)), "partition 2: y has 2 target columns"),
        ([Partition(0, X[:0], Y[:0]), Partition(1, X[:0], Y[:0])], "all partitions are empty"),
    ],
)
def test_bad_partitions(parts, message):
    for owners in ([0, 1, 0], [1, 0, 2]):
        with pytest.raises(HilboostError, match=message):
            fit_together(MODEL, parts, owners[: len(parts)], n_workers=3)


def test_rows_that_the_loss_rejects():
    """Rows of zero weight do not count, and missing targets are not compared."""
    model = BoostingRegressor("poisson", **PLAIN | {"n_estimators": 2, "random_state": 0})
    y = np.abs(Y)
    y[[21, 45]] = -1.0
    with pytest.raises(HilboostError, match="partition 1: the poisson loss requires .* row 1 has"):
        fit_together(model, partitions_of(X, y, cuts=[20, 40]), [0, 1, 0])
    weight = np.where(np.arange(60) == 21, 0.0, 1.0)
    with pytest.raises(HilboostError, match="partition 2: the poisson loss requires .* row 5 has"):
        fit_together(model, partitions_of(X, y, weight, cuts=[20, 40]), [0, 1, 0])
    several = np.stack([np.where(y < 0, np.nan, y), y], axis=1)
    with pytest.raises(HilboostError, match="partition 1: the poisson loss requires .* row 1 has"):
        fit_together(model, partitions_of(X, several, cuts=[20, 40]), [0, 1, 0])
    with pytest.raises(HilboostError, match="requires a target that is not zero in every row"):
        fit_together(model, partitions_of(X, 0 * Y, cuts=[20, 40]), [0, 1, 0])


LABELS = np.where(Y > 0, "up", "down")
LEFT = np.where(np.arange(20) == 7, "left", LABELS[:20])
VALIDATION = [
    (X[:20], LEFT, None, "y contains the class 'left'"),
    (X[:20, :2], LABELS[:20], None, "X has 2 features, but .* expecting 3"),
    (X[:20], LABELS[:19], None, "X and y have inconsistent|y has 19"),
    (X[:20], LABELS[:20], -np.ones(20), "sample_weight must not be negative"),
]


@pytest.mark.parametrize(("x", "y", "weight", "message"), VALIDATION)
def test_bad_validation_rows(x, y, weight, message):
    model = BoostingClassifier(**PLAIN | {"n_estimators": 2, "random_state": 0})
    held = [
        Partition(0, X[40:], LABELS[40:], None if weight is None else np.ones(20)),
        Partition(1, x, y, weight),
    ]
    with pytest.raises(HilboostError, match=f"partition 1 of X_val: .*({message})"):
        fit_together(model, partitions_of(X, LABELS, cuts=[20, 40]), [0, 1, 0], held)


def test_weights_of_validation_rows():
    model = BoostingClassifier(**PLAIN | {"n_estimators": 2, "random_state": 0})
    held = partitions_of(X, LABELS, np.zeros(60), cuts=[20])
    with pytest.raises(HilboostError, match="sample_weight_val: sample_weight is zero for"):
        fit_together(model, partitions_of(X, LABELS, cuts=[30]), [0, 1], held)


def test_levels_of_one_dtype():
    frame = pd.DataFrame({"a": ["x", "y"] * 30})
    parts = partitions_of(frame, Y, cuts=[30])
    bad = Partition(1, pd.DataFrame({"a": pd.Categorical([1, 2] * 15)}), Y[30:])
    with pytest.raises(HilboostError, match="partition 1: the categories of column 'a' are text"):
        fit_together(MODEL, [parts[0], bad], [0, 1])


def test_classes_of_one_kind():
    model = BoostingClassifier(**PLAIN | {"n_estimators": 2, "random_state": 0})
    y = np.array(["a", "b"] * 15)
    with pytest.raises(HilboostError, match="partition 1: the classes of y are text"):
        fit_together(
            model, [Partition(0, X[:30], y), Partition(1, X[30:], (Y[30:] > 0) * 1)], [0, 1]
        )


def test_weights():
    with pytest.raises(HilboostError, match="sample_weight is zero for every row"):
        fit_together(MODEL, partitions_of(X, Y, np.zeros(60), cuts=[20]), [0, 1])
    with pytest.raises(HilboostError, match="partition 0: sample_weight must not be negative"):
        fit_together(MODEL, partitions_of(X, Y, -np.ones(60), cuts=[20]), [0, 1])


def test_bad_offsets():
    wide = partitions_of(X, Y, cuts=[20], offset=np.zeros((60, 2)))
    narrow = partitions_of(X, Y, cuts=[20], offset=np.zeros(60))
    with pytest.raises(HilboostError, match="offset has 1 and 2 columns in different partitions"):
        fit_together(MODEL, [narrow[0], wide[1]], [0, 1])
    bad = partitions_of(X, Y, cuts=[20], offset=np.where(np.arange(60) == 25, np.nan, 0.0))
    with pytest.raises(HilboostError, match="partition 1: offset must be finite; row 5"):
        fit_together(MODEL, bad, [0, 1])
    with pytest.raises(HilboostError, match="offset_val: .*1 column, one for each output; it has"):
        fit_together(MODEL, narrow, [0, 1], wide)
