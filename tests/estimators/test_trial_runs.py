"""Settings of trees that are chosen by short trial runs."""

import numpy as np
import pytest
from tests.cases import assert_same_model

from hilboost import BoostingClassifier, BoostingRegressor

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 9))
Y = X[:, 0] + X[:, 1] * X[:, 2]
CLASSES = np.digitize(Y, [-1, 0, 1])
TREES = {"learner": "tree", "n_estimators": 80, "early_stopping": True, "random_state": 0}


def grid(*lists):
    mesh = np.meshgrid(*lists, indexing="ij")
    return set(zip(*(axis.ravel().tolist() for axis in mesh), strict=True))


@pytest.mark.parametrize(
    ("make", "target", "expected"),
    [
        (BoostingRegressor, Y, grid([0.25, 0.5, 1], [10], [8, 31])),
        (BoostingClassifier, Y > 0, grid([0.25, 1], [1], [8, 15])),
        (BoostingClassifier, CLASSES, grid([0.25, 0.5, 1], [10, 1, 0.3], [8, 31])),
    ],
)
def test_small_tables_try_many_settings(make, target, expected, runs):
    model = make(**TREES).fit(X, target)
    assert {settings for settings, *_ in runs} == expected
    stages = [reached for *_, reached in runs]
    assert len(stages) == len(expected) + 2
    assert all(15 < n <= 50 for n in stages[:-2])  # early stopping may end a run
    assert all(15 < n <= 80 for n in stages[-2:])
    assert max(stages) > 50
    chosen = model.fitted_.resolved
    settings = {
        name: getattr(chosen, name)
        for name in ("max_features", "l2_regularization", "max_leaf_nodes")
    }
    runs.clear()
    assert_same_model(model, make(**TREES, **settings).fit(X, target))
    assert not runs


def test_larger_tables_try_few_settings(runs):
    table, target, classes = np.tile(X, (5, 1)), np.tile(Y, 5), np.tile(CLASSES, 5)
    BoostingRegressor(**TREES).fit(table, target)
    assert [settings for settings, *_ in runs] == [(0.5, 10, 31), (1.0, 10, 31)]
    runs.clear()
    BoostingClassifier(**TREES, max_features=1.0, l2_regularization=2.0).fit(table, classes)
    assert not runs


def share_chosen(target, n_columns):
    table = RNG.normal(size=(400, n_columns))
    model = BoostingClassifier(**TREES, max_leaf_nodes=15).fit(table, target(table))
    return model.fitted_.resolved.max_features


def test_two_classes_draw_a_quarter_of_the_columns_unless_all_are_far_better():
    def of_noise(table):
        return table[:, :4].sum(axis=1) + 3 * RNG.normal(size=len(table)) > 0

    def of_one_interaction(table):
        return np.where(table[:, 0] > 0, table[:, 1] > 0, table[:, 2] > 0)

    assert share_chosen(of_noise, 12) == 0.25
    assert share_chosen(of_one_interaction, 40) == 1


def test_two_classes_draw_a_tenth_of_many_columns_that_repeat_each_other(runs):
    hidden = RNG.normal(size=(1600, 6))
    table = hidden @ RNG.normal(size=(6, 80)) + RNG.normal(size=(1600, 80))
    target = hidden.sum(axis=1) + RNG.normal(size=1600)
    model = BoostingClassifier(**TREES).fit(table, target > 0)
    lowest = {settings[0]: min(losses) for settings, _, losses, _ in runs}
    assert set(lowest) == {0.1, 1.0}
    assert lowest[0.1] < lowest[1.0]
    assert model.resolved_.max_features == 0.1
    runs.clear()
    BoostingRegressor(**TREES).fit(table, target)  # others draw half or all of them
    assert {settings[0] for settings, *_ in runs} == {0.5, 1.0}


def test_two_classes_draw_all_of_many_columns_if_few_matter():
    assert share_chosen(lambda table: table[:, 0] * table[:, 1] > table[:, 2], 80) == 1


def test_given_settings_are_not_tried(runs):
    BoostingClassifier(**TREES, max_leaf_nodes=12, l2_regularization=2.0).fit(X, CLASSES)
    assert {settings[1:] for settings, *_ in runs} == {(2.0, 12)}


def test_runs_beside_each_other_are_as_alone(runs, one_by_one, threads_at_once):
    BoostingRegressor(**TREES, n_jobs=1).fit(X, Y)
    alone = sorted(runs)
    runs.clear()
    BoostingRegressor(**TREES, n_jobs=4).fit(X, Y)
    assert sorted(runs) == alone
