"""Fits in other processes: workers of joblib, spawned ones, and one thread of Numba."""

import multiprocessing
import threading

import joblib
import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hilboost import BoostingRegressor
from hilboost.backends import threads as team

RNG = np.random.default_rng(0)
X = RNG.normal(size=(27_000, 20))  # half of it is worth a second thread
Y = X[:, 0] * X[:, 1] + X[:, 2]
SHORT = {"n_estimators": 3, "early_stopping": False, "max_features": 1.0, "random_state": 0}
MODEL = BoostingRegressor(**SHORT)
PIPELINE = make_pipeline(StandardScaler(), MODEL)
GRID = {"boostingregressor__max_leaf_nodes": [4, 8]}


LIMITS = [  # of OMP_NUM_THREADS and NUMBA_NUM_THREADS, and the threads of a fit
    *(({}, 16), ({"OMP": "3"}, 3), ({"NUMBA": "1"}, 1), ({"OMP": "8", "NUMBA": "5"}, 5)),
    *(({"OMP": "64"}, 16), ({"OMP": "4,2"}, 4), ({"OMP": ""}, 16), ({"OMP": "0"}, 16)),
    ({"OMP": "all"}, 16),
]


@pytest.mark.parametrize(("given", "expected"), LIMITS)
@pytest.mark.usefixtures("sixteen_cores")
def test_threads_follow_the_limits_of_the_environment(given, expected, monkeypatch):
    for name, value in given.items():
        monkeypatch.setenv(f"{name}_NUM_THREADS", value)
    assert team.available_cores() == expected
    found = [team.threads_for(n_jobs, 10**9) for n_jobs in (None, -1, 7)]
    assert found == [expected, expected, 7]


@pytest.mark.usefixtures("sixteen_cores")
def test_there_are_no_more_threads_than_cores(monkeypatch):
    assert team.threads_for(64, 10**9) == 16
    monkeypatch.setenv("HILBOOST_CORES", "40")
    assert [team.threads_for(n_jobs, 10**10) for n_jobs in (64, 3, None, -2)] == [40, 3, 40, 39]


def crowd(event):
    """Fails where a worker has more threads than its share of the cores."""
    others = sum(thread.name.endswith("(_serve)") for thread in threading.enumerate())
    assert 1 + others <= max(1, joblib.cpu_count() // 2)


def test_a_search_through_a_pipeline_in_two_workers_shares_the_cores():
    """And it ends in the model of a search without workers."""
    settings = {"cv": 2, "refit": False, "error_score": "raise"}
    found = [GridSearchCV(PIPELINE, GRID, n_jobs=n, **settings) for n in (1, 2)]
    found[0].fit(X, Y)
    found[1].fit(X, Y, boostingregressor__callbacks=[crowd])
    one, two = (search.cv_results_["mean_test_score"] for search in found)
    np.testing.assert_array_equal(one, two)


def fit_and_predict(_):
    return MODEL.fit(X, Y).predict(X[:50])


@pytest.mark.slow
def test_spawned_processes_and_one_thread_of_numba(monkeypatch):
    expected = fit_and_predict(None)
    monkeypatch.setenv("NUMBA_NUM_THREADS", "1")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        np.testing.assert_array_equal(pool.apply(fit_and_predict, (None,)), expected)
