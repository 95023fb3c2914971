"""Columns of few values that share tables of sums: the same trees in less time."""

import numpy as np
import pandas as pd
import pytest

import hilboost.stream
from hilboost import BoostingClassifier, BoostingRegressor
from hilboost.backends.threads import ThreadTeam
from hilboost.engine import buffers, plan, tree_data
from hilboost.engine import joint_columns as grouping
from hilboost.engine.joint_columns import joint_columns

RNG = np.random.default_rng(0)
N = 3000
X = RNG.integers(6, size=(N, 9)).astype(float)
X[:, 8] = RNG.normal(size=N)
X[RNG.uniform(size=X.shape) < 0.05] = np.nan
Y = np.nan_to_num(X[:, 0] * X[:, 1] - X[:, 2] * X[:, 8]) + RNG.normal(size=N)
WEIGHT = RNG.uniform(0.5, 2, size=N)


@pytest.mark.parametrize(
    ("classes", "weight", "parameters"),
    [
        (False, None, {}),
        (False, WEIGHT, {}),
        (True, None, {"categorical_features": [0, 1]}),
        (True, WEIGHT, {"subsample": 0.7}),
    ],
)
def test_models_are_the_same_bit_for_bit(classes, weight, parameters, monkeypatch):
    monkeypatch.setattr(plan, "_ROWS_WORTH_JOINING", 1000)
    kind, y = (BoostingClassifier, np.digitize(Y, [-3, 3])) if classes else (BoostingRegressor, Y)
    model = kind(n_estimators=5, early_stopping=False, n_jobs=1, random_state=0, **parameters)
    joint = model.fit(X, y, sample_weight=weight).model_.predict_raw(X)
    monkeypatch.setattr(plan, "_ROWS_WORTH_JOINING", N + 1)
    assert np.array_equal(joint, model.fit(X, y, sample_weight=weight).model_.predict_raw(X))


def bins(n, *n_values):
    """A table of one word in which all bins of some columns occur, but no missing values."""
    words = np.zeros((1, n), dtype=np.uint64)
    for k, size in enumerate(n_values):
        words[0] |= (np.arange(n) % size).astype(np.uint64) << np.uint64(8 * k)
    return words, np.array(n_values), 256, ThreadTeam(1)


def test_columns_are_joined_where_this_halves_the_additions():
    assert joint_columns(*bins(2000, 16, 16, 16, 16)).n_codes.tolist() == [256, 256]
    assert joint_columns(*bins(2000, 2, 2, 2, 200)).n_codes.tolist() == [200, 8]
    assert joint_columns(*bins(2000, 17, 16, 16, 16)) is None
    assert joint_columns(*bins(2000, 200, 200, 2, 2)) is None


def test_codes_are_the_same_in_blocks_of_rows(monkeypatch):
    words, n_values, _, team = bins(2000, 6, 5, 4, 3, 2)
    words[0, 1990] |= np.uint64(255)  # the last block alone has a missing value
    whole = joint_columns(words, n_values, 256, team)
    monkeypatch.setattr(grouping, "_BLOCK_ROWS", 64)
    for found, expected in zip(joint_columns(words, n_values, 256, team), whole, strict=True):
        assert np.array_equal(found, expected)


def test_memory_for_sums_grows_with_the_number_of_groups():
    sizes = {"n_rows": 2000, "n_columns": 4, "n_bins": 256, "n_threads": 1, "max_leaves": 2}
    space = buffers.TreeBuffers.borrow({}, **sizes)
    few, many = joint_columns(*bins(2000, 2, 2, 2, 2)), joint_columns(*bins(2000, 16, 16, 16, 16))
    assert space.joint(few).sums.shape == (1, 2, 256)
    assert space.joint(many).sums.shape == (1, 2, 512)
    assert space.joint(few).sums.shape == (1, 2, 512)


@pytest.fixture
def groupings(monkeypatch):
    """Numbers of rows of the tables whose columns are grouped."""
    monkeypatch.setattr(plan, "_ROWS_WORTH_JOINING", 1000)
    found = []

    def grouped(words, *rest):
        found.append(words.shape[1])
        return joint_columns(words, *rest)

    monkeypatch.setattr(tree_data, "joint_columns", grouped)
    return found


SETTINGS = {"learner": "tree", "n_estimators": 3, "early_stopping": False, "random_state": 0}


def test_all_trees_share_the_groups_of_a_table(groupings):
    BoostingClassifier(**SETTINGS, n_jobs=1).fit(X, np.digitize(Y, [-3, 3]))
    assert groupings == [N]


def test_shards_have_no_groups(groupings):
    """Missing values in one shard alone would give shards of equal size different groups."""
    missing = X.copy()
    missing[0, :8] = np.nan
    BoostingRegressor(**SETTINGS, n_jobs=1, n_shards=2).fit(missing, Y)
    assert groupings == []


def test_tables_on_disk_have_no_groups(groupings, tmp_path):
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(9)]).assign(y=Y)
    frame.to_parquet(tmp_path / "t.parquet")
    model = BoostingRegressor(**SETTINGS, n_jobs=1)
    hilboost.stream.fit(model, tmp_path / "t.parquet", target="y")
    assert groupings == []


def test_trees_that_cannot_use_groups_find_none(groupings):
    """Gradients, hessians and weights have two channels."""
    BoostingClassifier(**SETTINGS, n_jobs=1).fit(X, Y > 0, sample_weight=WEIGHT)
    assert groupings == []
