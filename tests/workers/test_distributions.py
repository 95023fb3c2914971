"""Distributions and bounds of targets among workers, whose own rows decide nothing."""

import numpy as np
import pytest
from tests.cases import PLAIN
from tests.workers.together import fit_together, partitions_of, saved

from hilboost import BoostingRegressor
from hilboost.workers.partitions import Partition

RNG = np.random.default_rng(0)
N = 120
X = RNG.normal(size=(N, 3)).round(1)
Y = RNG.normal(size=N)
PARAMETERS = PLAIN | {"n_estimators": 3, "learner": "tree", "random_state": 0}


def bounds(lower, upper):
    found = np.empty(len(lower), dtype=[("lower", float), ("upper", float)])
    found["lower"], found["upper"] = lower, upper
    return found


def assert_same_model(loss, y, parts, owners=(0, 1), held_out=()):
    parameters = PARAMETERS | {"early_stopping": bool(held_out)}
    beside = {}
    if held_out:
        beside = {
            "X_val": np.concatenate([one.X for one in held_out]),
            "y_val": np.concatenate([one.y for one in held_out]),
        }
    alone = saved(BoostingRegressor(loss, **parameters).fit(X, y, **beside))
    together = fit_together(BoostingRegressor(loss, **parameters), parts, owners, held_out)
    assert {saved(one) for one in together} == {alone}


@pytest.mark.parametrize("loss", ["student_t", "mixture_of_normals", "normal"])
def test_the_smallest_scale_is_that_of_all_rows(loss):
    """Half of the targets are far apart, and the other half close to each other."""
    few = np.where(RNG.uniform(size=60) < 0.06, 1000.0, 0.0)
    y = np.concatenate([few, 0.01 * RNG.standard_t(1.2, size=60)])
    assert_same_model(loss, y, partitions_of(X, y, cuts=[60]))


@pytest.mark.parametrize(
    ("loss", "lower", "upper"),
    [
        ("normal", np.where(Y < -0.5, -np.inf, Y), np.maximum(Y, -0.5)),
        ("lognormal", np.where(Y < -0.5, 0, np.exp(Y)), np.exp(np.maximum(Y, -0.5))),
    ],
)
def test_censored_rows_of_both_sides(loss, lower, upper):
    y = bounds(lower, upper)
    assert_same_model(loss, y, partitions_of(X, y, cuts=[60]))


@pytest.mark.parametrize("owners", [(0, 1, 1), (1, 0, 0), (0, 0, 0)])
def test_some_partitions_hold_numbers_or_nothing(owners):
    y = bounds(np.minimum(Y, 0.5), np.where(Y > 0.5, np.inf, Y))
    y["upper"][:60] = y["lower"][:60]
    parts = partitions_of(X, y, cuts=[60, 60])
    parts[0] = Partition(0, X[:60], y["lower"][:60])
    alone = saved(BoostingRegressor("normal", **PARAMETERS).fit(X, y))
    together = fit_together(BoostingRegressor("normal", **PARAMETERS), parts, owners, n_workers=2)
    assert {saved(one) for one in together} == {alone}


def test_held_out_rows_of_one_worker_have_bounds():
    y = bounds(np.minimum(Y, 0.5), np.where(Y > 0.5, np.inf, Y))
    held_out = [Partition(0, X[:20] + 0.01, y[:20])]
    assert_same_model("normal", Y, partitions_of(X, Y, cuts=[60]), held_out=held_out)


def test_levels_of_counts_do_not_depend_on_the_division():
    """They are drawn, row by row of the whole table, to calibrate by the folds of the fit."""
    model = BoostingRegressor("negative_binomial", **PARAMETERS)
    model.set_params(early_stopping=True, cv_folds=3)
    counts = RNG.poisson(np.exp(Y)).astype(float)
    (alone,) = fit_together(model, partitions_of(X, counts), [0])
    assert alone.fitted_.calibration.levels is not None
    for cuts, owners in (([50], [0, 1]), ([30, 60], [1, 0, 1])):
        together = fit_together(model, partitions_of(X, counts, cuts=cuts), owners)
        assert {saved(one) for one in together} == {saved(alone)}
