"""Columns of few values that share tables of sums: the same trees in less time."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import hilboost.stream
from hilboost import BoostingClassifier, BoostingRegressor
from hilboost.backends.threads import ThreadTeam
from hilboost.engine import buffers
from hilboost.engine.ops.cpu.joint_columns import NO_GROUPS
from hilboost.engine.tree_data import joint_columns

RNG = np.random.default_rng(0)
N = 9000
X = RNG.integers(6, size=(N, 9)).astype(float)
X[:, 8] = RNG.normal(size=N)
X[RNG.uniform(size=X.shape) < 0.05] = np.nan
Y = np.nan_to_num(X[:, 0] * X[:, 1] - X[:, 2] * X[:, 8]) + RNG.normal(size=N)
WEIGHT = RNG.uniform(0.5, 2, size=N)
NAMES = [f"x{k}" for k in range(9)]


@pytest.mark.parametrize(
    ("classes", "weight", "parameters"),
    [
        (False, None, {}),
        (False, WEIGHT, {}),
        (True, None, {"categorical_features": [0, 1]}),
        (True, WEIGHT, {"subsample": 0.7}),
    ],
)
def test_models_are_the_same_as_on_disk_where_no_columns_are_joined(classes, weight, parameters):
    kind, y = (BoostingClassifier, np.digitize(Y, [-3, 3])) if classes else (BoostingRegressor, Y)
    settings = {"learner": "tree", "n_estimators": 5, "early_stopping": False, "random_state": 0}
    joint, separate = (kind(**settings, n_jobs=1, **parameters) for _ in range(2))
    joint.fit(pd.DataFrame(X, columns=NAMES), y, sample_weight=weight)
    frame = pd.DataFrame(X, columns=NAMES).assign(y=y, w=1.0 if weight is None else weight)
    table = pa.Table.from_pandas(frame if weight is not None else frame.drop(columns="w"))
    weights = None if weight is None else "w"
    separate = hilboost.stream.fit(separate, table, target="y", sample_weight=weights)
    raw = (model.model_.predict_raw(X) for model in (joint, separate))
    np.testing.assert_array_equal(*raw)


def bins(n, *n_values):
    """A table of one word in which all bins of some columns occur, but no missing values."""
    words = np.zeros((1, n), dtype=np.uint64)
    for k, size in enumerate(n_values):
        words[0] |= (np.arange(n) % size).astype(np.uint64) << np.uint64(8 * k)
    return words, np.array(n_values), 256, ThreadTeam(1)


def test_columns_are_joined_where_this_halves_the_additions():
    assert joint_columns(*bins(2000, 16, 16, 16, 16)).n_codes.tolist() == [256, 256]
    assert joint_columns(*bins(2000, 2, 2, 2, 200)).n_codes.tolist() == [200, 8]
    assert joint_columns(*bins(2000, 17, 16, 16, 16)) is NO_GROUPS
    assert joint_columns(*bins(2000, 200, 200, 2, 2)) is NO_GROUPS


def test_codes_number_the_combinations_of_bins():
    """There are three blocks of rows, of which the last one alone has a missing value."""
    words, n_values, _, team = bins(40_000, 6, 5, 4, 3, 2)
    words[0, 39_990] |= np.uint64(255)
    codes, n_codes, begins, columns, strides, *_ = joint_columns(words, n_values, 256, team)
    bytes_of_rows, found = (part[0].view(np.uint8).reshape(-1, 8) for part in (words, codes))
    values = np.where(bytes_of_rows == 255, 6, bytes_of_rows)
    assert len(n_codes) == 2
    for k in range(2):
        group = slice(begins[k], begins[k + 1])
        expected = (values[:, columns[group]] * strides[group]).sum(axis=1)
        np.testing.assert_array_equal(found[:, k], expected)


def test_memory_for_sums_grows_with_the_number_of_groups():
    sizes = {"n_rows": 2000, "n_columns": 4, "n_bins": 256, "n_threads": 1, "max_leaves": 2}
    space = buffers.TreeBuffers.borrow({}, **sizes)
    few, many = joint_columns(*bins(2000, 2, 2, 2, 2)), joint_columns(*bins(2000, 16, 16, 16, 16))
    assert space.joint(few).sums.shape == (1, 2, 256)
    assert space.joint(many).sums.shape == (1, 2, 512)
    assert space.joint(few).sums.shape == (1, 2, 512)
