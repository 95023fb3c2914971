"""Every loss with every learner."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from tests.cases import LEARNERS, LOSSES, PLAIN, TREES, ids

from hilboost.core.errors import InvalidData
from hilboost.testing import BoostingContract, ModelContract


def draw(loss, n=80):
    rng = np.random.default_rng(3)
    y = loss.target(rng, n).y
    return np.column_stack(
        [y + rng.normal(size=y.shape) / 2, rng.normal(size=(n, 2))]
    ), loss.labels(y)


def build(loss, learner, **parameters):
    return loss.build(**PLAIN | {"n_estimators": 5} | learner.parameters | parameters)


class OfCases(BoostingContract):
    def __init__(self, loss, learner):
        self.loss, self.learner = loss, learner
        self.takes_weights = learner.takes_weights
        # Huber's delta, and so its loss, changes from stage to stage.
        self.monotone = loss.name != "huber"

    def build(self, **parameters):
        return build(self.loss, self.learner, **parameters)

    def table(self, n=80):
        return draw(self.loss, n)


def checks(names, every):
    """A test of one pair of a loss and a learner in some: each part is in several."""
    pairs = [
        pytest.param(loss, learner, id="-".join(ids([loss, learner])))
        for i, loss in enumerate(LOSSES)
        for j, learner in enumerate(LEARNERS)
        if (i + j) % every == 0
    ]

    @pytest.mark.parametrize(("loss", "learner"), pairs)
    @pytest.mark.parametrize("check", names)
    def test(check, loss, learner):
        getattr(OfCases(loss, learner), check)()

    return test


MORE = ("test_training_loss_falls", "test_predictions")
MANY = ("test_fits_repeat_and_warm_starts_continue",)
SOME = ("test_weights_count", "test_early_stopping_keeps_the_best_stage")
test_contract_of_more_pairs = checks(MORE, every=3)
test_contract_of_many_pairs = checks(MANY, every=4)
test_contract_of_some_pairs = checks(SOME, every=8)


def test_every_check_of_boosting_is_run():
    # Copies, files, reports and exports are checks of each loss and of each learner.
    assert {*MORE, *MANY, *SOME} == {*BoostingContract.checks()} - {*ModelContract.checks()}


@pytest.mark.parametrize("loss", LOSSES[1::7], ids=ids(LOSSES[1::7]))
@pytest.mark.parametrize("learner", TREES, ids=ids(TREES))
def test_bootstrap_and_column_draws(loss, learner):
    X, y = draw(loss)
    parameters = {"bootstrap": True, "max_features": 0.5, "max_features_per_tree": 0.7}
    models = [build(loss, learner, random_state=seed, **parameters).fit(X, y) for seed in (0, 0, 1)]
    raws = [model.model_.predict_raw(X) for model in models]
    np.testing.assert_array_equal(raws[0], raws[1])
    assert not np.array_equal(raws[0], raws[2])


@pytest.mark.parametrize("learner", LEARNERS, ids=ids(LEARNERS))
def test_leaves_and_importances_need_trees(learner):
    loss = LOSSES[0]
    X, y = draw(loss)
    model = build(loss, learner).fit(X, y)
    if not learner.grows_trees:
        with pytest.raises(InvalidData, match="require a model of trees"):
            model.apply(X)
        with pytest.raises(InvalidData, match="require a model of trees"):
            _ = model.feature_importances_
        return
    leaves = model.apply(X)
    assert leaves.shape == (len(X), 5)
    assert leaves.max() < 8
    importances = model.feature_importances_
    assert importances.argmax() == 0
    assert importances.sum() == pytest.approx(1)


@pytest.mark.parametrize("loss", LOSSES[::7], ids=ids(LOSSES[::7]))
def test_nothing_is_predicted_before_fit(loss):
    with pytest.raises(NotFittedError):
        loss.build().predict(np.zeros((2, 2)))
