"""The learner that output kernel boosting chooses by itself."""

from dataclasses import replace

import numpy as np
import pytest
from tests.reloaded import reloaded

from hilboost import OutputKernelBoostingRegressor
from hilboost.core.errors import InvalidParameter
from hilboost.learners.tree import VectorTreeLearner
from hilboost.training import learner_choice


def smooth(n=160, seed=0):
    """Sines of one input, which kernels find at once."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 1))
    return X, np.sin(12 * X + np.arange(3)) + 0.05 * rng.normal(size=(n, 3))


def steps(n=160, seed=0):
    """Steps in two inputs over many orders of magnitude, which trees find at once."""
    rng = np.random.default_rng(seed)
    places = rng.normal(size=(n, 2))
    Y = np.column_stack([places[:, 0] > -0.5, places[:, 0] > 0.5, places[:, 1] > 0])
    return np.exp(10 * places), Y + 0.05 * rng.normal(size=(n, 3))


DRAWN = {"kernel": smooth, "extra_trees": steps}


def has_trees(model):
    return isinstance(model.learner_, VectorTreeLearner)


@pytest.mark.parametrize(("name", "loss"), [("kernel", "huber"), ("extra_trees", "squared_error")])
def test_the_better_learner_is_chosen_and_fits_as_if_it_was_named(name, loss):
    X, Y = DRAWN[name]()
    settings = {"loss": loss, "random_state": 0}
    if name == "extra_trees":
        settings["n_estimators"] = 100
    model = OutputKernelBoostingRegressor(**settings).fit(X, Y)
    assert has_trees(model) == (name == "extra_trees")
    named = OutputKernelBoostingRegressor(learner=name, **settings).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), named.predict(X))
    loaded = reloaded(model)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert has_trees(loaded) == has_trees(model)


@pytest.mark.parametrize("name", DRAWN)
def test_the_choice_does_not_depend_on_threads_or_validation_rows(name):
    X, Y = DRAWN[name](110)
    settings = {"n_estimators": 20, "random_state": 3}
    one = OutputKernelBoostingRegressor(n_jobs=1, **settings).fit(X, Y)
    two = OutputKernelBoostingRegressor(n_jobs=2, **settings).fit(X, Y)
    np.testing.assert_array_equal(one.predict(X), two.predict(X))
    held = OutputKernelBoostingRegressor(**settings).fit(X, Y, X_val=X[:50] + 1e-9, y_val=Y[:50])
    assert has_trees(held) == has_trees(one)


def test_trees_are_taken_where_kernels_are_not_an_option():
    X, Y = smooth()
    settings = {"n_estimators": 5, "random_state": 0}
    gaps = X.copy()
    gaps[3] = np.nan
    assert not has_trees(OutputKernelBoostingRegressor(**settings).fit(gaps, Y))
    assert has_trees(OutputKernelBoostingRegressor(**settings).fit(X[:99], Y[:99]))
    assert has_trees(OutputKernelBoostingRegressor(max_splits=5, **settings).fit(X, Y))
    assert has_trees(OutputKernelBoostingRegressor(**settings).fit(*smooth(20_001)))
    assert not has_trees(OutputKernelBoostingRegressor(**settings).fit(X, Y))


@pytest.mark.slow
def test_many_rows_are_compared_on_a_sample_with_their_weights():
    X, Y = smooth(1100)
    weight = np.random.default_rng(0).uniform(0.5, 2, size=1100)
    model = OutputKernelBoostingRegressor(random_state=0).fit(X, Y, sample_weight=weight)
    assert not has_trees(model)


def test_an_unknown_learner_names_the_choices():
    with pytest.raises(InvalidParameter, match="auto, extra_trees, kernel, linear, ok3"):
        OutputKernelBoostingRegressor(learner="trees").fit(*smooth())


def test_an_interrupt_ends_the_comparison(monkeypatch):
    X, Y = smooth()
    train = learner_choice.train

    def interrupted(*arguments):
        return replace(train(*arguments), interrupt=KeyboardInterrupt())

    monkeypatch.setattr(learner_choice, "train", interrupted)
    model = OutputKernelBoostingRegressor(n_estimators=5, random_state=0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert not hasattr(model, "fitted_")
