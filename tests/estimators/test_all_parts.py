"""Every loss with every learner."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from tests.cases import LEARNERS, LOSSES, PLAIN, TREES, ids

from hilboost import BoostingClassifier
from hilboost.core.errors import InvalidData

all_losses = pytest.mark.parametrize("loss", LOSSES, ids=ids(LOSSES))
all_learners = pytest.mark.parametrize("learner", LEARNERS, ids=ids(LEARNERS))
some_losses = pytest.mark.parametrize("loss", LOSSES[::3], ids=ids(LOSSES[::3]))


def draw(loss, n=80):
    rng = np.random.default_rng(3)
    y = loss.target(rng, n).y
    return np.column_stack(
        [y + rng.normal(size=y.shape) / 2, rng.normal(size=(n, 2))]
    ), loss.labels(y)


def build(loss, learner, **parameters):
    return loss.build(**PLAIN | {"n_estimators": 5} | learner.parameters | parameters)


@all_losses
@all_learners
def test_training_loss_falls(loss, learner):
    X, y = draw(loss)
    model = build(loss, learner).fit(X, y)
    train = model.history_.train
    assert len(train) == 6
    assert model.n_estimators_ == len(model.model_.stages) == 5
    assert model.history_.validation is None
    assert train[-1] < train[0]
    if loss.name != "huber":  # whose delta, and so whose loss, changes from stage to stage
        assert (np.diff(train) <= 1e-9 * abs(train[0])).all()


@all_losses
@all_learners
def test_predictions(loss, learner):
    X, y = draw(loss)
    model = build(loss, learner).fit(X, y)
    predicted = model.predict(X)
    assert np.isfinite(predicted).all()
    staged = list(model.staged_predict(X))
    assert len(staged) == 5
    np.testing.assert_array_equal(staged[-1], predicted)
    if isinstance(model, BoostingClassifier):
        assert predicted.shape == (len(X),)
        probabilities = model.predict_proba(X)
        np.testing.assert_array_equal(model.classes_[probabilities.argmax(axis=1)], predicted)
        *_, last = model.staged_predict_proba(X)
        np.testing.assert_array_equal(last, probabilities)
        scores = model.decision_function(X)
        assert scores.shape == ((len(X),) if loss.n_outputs == 1 else probabilities.shape)
    else:
        assert predicted.shape == ((len(X),) if loss.n_outputs == 1 else (len(X), loss.n_outputs))


@all_losses
@all_learners
def test_runs_repeat_and_warm_starts_go_on(loss, learner):
    X, y = draw(loss)
    whole = build(loss, learner, subsample=0.7).fit(X, y)
    again = clone(whole).fit(X, y)
    halves = build(loss, learner, subsample=0.7, n_estimators=2, warm_start=True).fit(X, y)
    halves.set_params(n_estimators=5).fit(X, y)
    for other in (again, halves):
        np.testing.assert_array_equal(other.predict(X), whole.predict(X))
        np.testing.assert_array_equal(other.history_.train, whole.history_.train)


@some_losses
@all_learners
def test_weights_count(loss, learner):
    X, y = draw(loss)
    weight = np.random.default_rng(0).uniform(0.5, 2, size=len(X))
    model = build(loss, learner)
    if not learner.takes_weights:
        with pytest.raises(InvalidData, match="takes no sample weights.*choose a learner"):
            model.fit(X, y, sample_weight=weight)
        return
    plain = clone(model).fit(X, y)
    weighted = model.fit(X, y, sample_weight=weight)
    assert not np.array_equal(weighted.model_.predict_raw(X), plain.model_.predict_raw(X))


@some_losses
@all_learners
@pytest.mark.parametrize("cv_folds", [1, 3])
def test_early_stopping_keeps_the_best_stage(loss, learner, cv_folds):
    X, y = draw(loss, 120)
    parameters = {"early_stopping": True, "n_estimators": 12, "n_iter_no_change": 3}
    model = build(loss, learner, cv_folds=cv_folds, validation_fraction=0.3, **parameters)
    losses = model.fit(X, y).history_.validation
    assert len(losses) == len(model.history_.train)
    assert model.n_estimators_ == int(np.argmin(losses)) == len(model.model_.stages)
    assert np.isfinite(model.predict(X)).all()


@all_losses
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
    if not learner.is_tree:
        with pytest.raises(InvalidData, match="needs a model of trees"):
            model.apply(X)
        with pytest.raises(InvalidData, match="needs a model of trees"):
            _ = model.feature_importances_
        return
    leaves = model.apply(X)
    assert leaves.shape == (len(X), 5)
    assert leaves.max() < 8
    importances = model.feature_importances_
    assert importances.argmax() == 0
    assert importances.sum() == pytest.approx(1)


@all_losses
def test_nothing_is_predicted_before_fit(loss):
    with pytest.raises(NotFittedError):
        loss.build().predict(np.zeros((2, 2)))
