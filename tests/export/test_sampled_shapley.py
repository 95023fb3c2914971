"""Estimated Shapley values of any function."""

import numpy as np
import pytest

from hilboost.export.sampled_shapley import sampled_values

RNG = np.random.default_rng(0)
BACKGROUND = RNG.normal(size=(60, 4))
BACKGROUND[:, 3] = 7.0
OWN = np.arange(4, dtype=np.int32)


def bounded(X):
    return np.clip(np.nan_to_num(X), -3, 3)


def test_rows_with_missing_infinite_and_large_values_add_up():
    X = BACKGROUND[:12].copy()
    X[0, 0], X[1, 1], X[2, 2], X[3, 0] = np.inf, np.nan, 1e300, -np.inf
    background = BACKGROUND.copy()
    background[5, 0], background[6, 1], background[7, 2] = np.inf, np.nan, -1e300

    def function(rows):
        Z = bounded(rows)
        return np.column_stack([Z[:, 0] * Z[:, 1] + Z[:, 2], Z[:, 2] ** 2])

    found = sampled_values(function, X, background, OWN, (8, 8), np.zeros(1), 0)
    assert np.isfinite(found.values).all()
    total = function(X) - function(background).mean(axis=0)
    np.testing.assert_allclose(found.values.sum(axis=1), total, atol=1e-12)
    np.testing.assert_allclose(found.values[:, 3], 0, atol=1e-12)


def test_sums_of_functions_of_single_columns_have_small_errors():
    def function(rows):
        return (rows[:, 0] ** 2 - rows[:, 1] + np.tanh(rows[:, 2]))[:, None]

    found = sampled_values(function, BACKGROUND[:20], BACKGROUND, OWN, (4, 4), np.zeros(1), 0)
    exact = [BACKGROUND[:, 0] ** 2, -BACKGROUND[:, 1], np.tanh(BACKGROUND[:, 2])]
    for column, values in enumerate(exact):
        expected = values[:20] - values.mean()
        np.testing.assert_allclose(found.values[:, column, 0], expected, atol=0.15)
    assert np.sqrt(found.variances.max()) < 0.15


@pytest.mark.parametrize("n_columns", [2, 3])
def test_columns_of_one_player_move_together(n_columns):
    players = np.array([0, 0, 1, 1], dtype=np.int32)

    def function(rows):
        return (rows[:, 0] * rows[:, 1] + rows[:, n_columns])[:, None]

    found = sampled_values(function, BACKGROUND[:10], BACKGROUND, players, (60, 60), np.zeros(1), 0)
    product = BACKGROUND[:, 0] * BACKGROUND[:, 1]
    expected = product[:10] - product.mean()
    np.testing.assert_allclose(found.values[:, 0, 0], expected, atol=1e-9)
