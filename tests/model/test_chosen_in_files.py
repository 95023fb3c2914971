"""A model that was read from a file knows what its automatic parameters became."""

from pathlib import Path

import numpy as np
import pytest
from tests.model.editing import assert_refused, header_of
from tests.reloaded import reloaded

from hilboost import BoostingRegressor, KernelBoostingRegressor, load
from hilboost.report.about import parameter_facts


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(250, 3))
    y = X[:, 0] + rng.normal(size=250)  # few stages, which noise stops early
    return BoostingRegressor(learner="tree", max_leaf_nodes=None, random_state=0).fit(X, y)


def became(model):
    return {fact["name"]: fact["became"] for fact in parameter_facts(model)}


def test_a_loaded_model_says_what_was_chosen(model):
    loaded = reloaded(model)
    assert became(loaded) == became(model)
    assert became(loaded)["l2_regularization"] == 10
    assert loaded.learner_ == model.learner_
    assert became(reloaded(loaded)) == became(model)


def test_other_learners_know_it_too(tmp_path):
    X = np.arange(60.0)[:, None]
    for model in BoostingRegressor(learner="kernel", n_estimators=3), KernelBoostingRegressor():
        model.set_params(random_state=0).fit(X, np.sin(X[:, 0] / 9)).save(
            tmp_path / "m", training_data=True
        )
        assert became(load(tmp_path / "m")) == became(model)


def test_an_old_file_tells_nothing_that_it_does_not_know():
    loaded = load(Path(__file__).parent / "golden" / "trees_format_1.hilboost")
    assert set(became(loaded).values()) == {None}


@pytest.mark.parametrize(
    "change",
    [
        {"learning_rate": "fast"},
        {"learning_rate": float("nan")},
        {"max_leaf_nodes": 3.5},
        {"max_leaf_nodes": -1},
        {"early_stopping": 1},
        {"subsample": None},
        {"more": 1},
    ],
)
def test_a_damaged_choice_is_refused(model, tmp_path, change):
    model.save(tmp_path / "m")
    chosen = header_of(tmp_path / "m")["chosen"]
    assert_refused(tmp_path / "m", header={"chosen": chosen | change}, match="chosen")
    assert_refused(tmp_path / "m", header={"chosen": [1, 2]}, match="chosen")
