"""Memory of a fit per row, beyond the input and the binned table."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest

from hilboost import BoostingClassifier, BoostingRegressor
from hilboost.training import data

N, D = 1_100_000, 4  # more than 8 MiB of bins: rows are sorted
TABLE = 8  # bytes of the bins of a row


def draw():
    return np.random.default_rng(0).normal(scale=100, size=(N, D)).astype(np.float32)


def mixed(values):
    whole = values.astype(np.int32)
    return pd.DataFrame(
        {"a": values[:, 0], "b": whole[:, 1], "c": whole[:, 2] > 0, "d": whole[:, 3]}
    )


TABLES = {"Fortran order": np.asfortranarray, "mixed frame": mixed}


def added(model, X, y):
    """Bytes per row that a fit allocates at most, once all that it runs is compiled."""
    model.fit(X, y)
    tracemalloc.start()
    try:
        model.fit(X, y)
        return tracemalloc.get_traced_memory()[1] / N - TABLE
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", TABLES)
def test_inputs_are_not_copied(kind):
    X = TABLES[kind](draw())
    y = -np.asarray(X)[:, 0].astype(np.float64)
    model = BoostingRegressor(n_estimators=3, max_leaf_nodes=7, early_stopping=False, n_jobs=2)
    assert added(model, X, y) < 45


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*which the model then predicts from itself")
def test_held_out_rows(monkeypatch):
    """Row numbers, targets and scores of the trial runs, and the bins of the held-out tenth."""
    monkeypatch.setattr(data, "CELLS_WORTH_LEAVING", 0)  # compiles what evaluates them
    X = draw()
    y = X[:, 0].astype(np.float64)
    model = BoostingRegressor(
        n_estimators=2, max_leaf_nodes=7, cv_folds=1, early_stopping=True, n_jobs=1
    )
    assert added(model, X, y) < 52


def test_held_out_rows_of_large_tables_are_evaluated_by_their_bins(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 5)).astype(np.float32)
    X[rng.uniform(size=X.shape) < 0.1] = np.nan
    y = np.nan_to_num(X[:, 0]) + rng.normal(size=600)
    model = BoostingRegressor(
        loss="huber", n_estimators=20, cv_folds=1, early_stopping=True, random_state=0
    )
    histories = []
    for cells in (0, 2**40):
        monkeypatch.setattr(data, "CELLS_WORTH_LEAVING", cells)
        found = model.fit(X, y)
        histories.append([*found.history_.validation, *found.predict(X)])
    np.testing.assert_array_equal(*histories)


def test_two_classes():
    """Class codes and second derivatives besides."""
    X = draw()
    model = BoostingClassifier(n_estimators=2, max_leaf_nodes=7, early_stopping=False, n_jobs=1)
    assert added(model, X, X[:, 0] > 0) < 51
