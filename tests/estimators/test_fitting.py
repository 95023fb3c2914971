"""What a fit holds out, where it begins and what it keeps."""

import numpy as np
import pytest
from sklearn.base import clone

from hilboost import BoostingClassifier, BoostingRegressor, Loss
from hilboost.core.errors import IncompatibleParts, InvalidData, InvalidParameter
from hilboost.core.gradients import Gradients
from hilboost.core.target import Target
from hilboost.learners.tree import TreeLearner
from hilboost.losses import Huber


def table(n=300, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X[:, 0] + rng.normal(size=n)


def test_huber_stages_are_compared_by_one_loss():
    """A delta that shrinks with the training residuals must not look like progress."""
    X, y = table()
    X_val, y_val = table(seed=1)
    model = BoostingRegressor("huber", n_estimators=200, learning_rate=0.3, random_state=0)
    model.fit(X, y, X_val=X_val, y_val=y_val)
    start = float(model.model_.initial_raw[0])
    delta = Huber().adapted_delta(np.abs(y - start), Target(y[:, None]))
    size = np.abs(y_val - model.predict(X_val))
    expected = np.where(size <= delta, size**2 / 2, delta * (size - delta / 2)).mean()
    assert model.history_.validation[model.n_estimators_] == pytest.approx(expected)
    assert model.n_estimators_ < 200


def test_held_out_rows_cannot_begin_in_the_second_half():
    X, y = table()
    model = BoostingRegressor(n_estimators=20, early_stopping=False, warm_start=True).fit(X, y)
    with pytest.raises(InvalidData, match="fitted without held-out rows"):
        model.set_params(n_estimators=30, early_stopping=True).fit(X, y, X_val=X + 1e-9, y_val=y)
    assert len(model.model_.stages) == 20


def test_held_out_rows_may_end_with_the_first_half():
    X, y = table()
    model = BoostingRegressor(n_estimators=20, cv_folds=1, warm_start=True)
    model.fit(X, y, X_val=X + 1e-9, y_val=y)
    model.set_params(n_estimators=30, early_stopping=False).fit(X, y)
    assert model.n_estimators_ == 30
    assert model.history_.validation is None


def test_folds_may_lack_all_positive_counts():
    X, _ = table(n=400)
    y = np.zeros(400)
    y[7] = 3.0
    assert np.isfinite(BoostingRegressor("poisson", random_state=0).fit(X, y).predict(X)).all()


def test_held_out_counts_may_all_be_zero():
    X, _ = table()
    y = np.random.default_rng(0).poisson(1.0, size=len(X)).astype(float)
    model = BoostingRegressor("poisson", n_estimators=5)
    model.fit(X, y, X_val=X[:10] + 1e-9, y_val=np.zeros(10))
    assert np.isfinite(model.history_.validation).all()


def test_balanced_classes_count_weights_as_repetitions():
    X, y = table()
    labels = (y > 0.5).astype(int)
    weight = np.random.default_rng(1).integers(0, 4, size=len(X))
    model = BoostingClassifier(class_weight="balanced", n_estimators=5, early_stopping=False)
    weighted, repeated = model.set_params(max_leaf_nodes=4), clone(model)
    weighted.fit(X, labels, sample_weight=weight)
    repeated.fit(np.repeat(X, weight, 0), labels.repeat(weight))
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), rtol=1e-8)


def test_a_learner_of_the_users_own_is_left_as_it_is():
    X, y = table()
    learner = TreeLearner(max_features=0.3)
    model = BoostingRegressor(learner=learner, n_estimators=5, early_stopping=True).fit(X, y)
    assert model.learner_ == learner


@pytest.mark.filterwarnings("ignore:sample_weight sums to")
def test_vanishing_weights_give_a_constant():
    X, y = table()
    model = BoostingRegressor(n_estimators=5, early_stopping=False, min_samples_leaf=5)
    model.fit(X, y, sample_weight=np.full(len(X), 1e-20))
    assert np.ptp(model.predict(X)) == 0


def test_buffers_do_not_pile_up_under_bootstrap():
    X, y = table()
    learner = TreeLearner(max_leaf_nodes=4)
    seen = []
    prepare = TreeLearner.prepare

    class Watching(TreeLearner):
        def prepare(self, *arguments):
            seen.append(prepare(self, *arguments))
            return seen[-1]

    watching = Watching(**vars(learner))
    model = BoostingRegressor(learner=watching, n_estimators=20, bootstrap=True, subsample=1.0)
    model.fit(X, y)
    assert sum(len(free) for free in seen[0].buffers.values()) == 1


def test_more_folds_than_rows_are_as_many_as_rows():
    X, y = table(n=5)
    model = BoostingRegressor(n_estimators=3, early_stopping=True, cv_folds=8).fit(X, y)
    assert len(model.fitted_.members) == 5


def test_a_sketch_needs_shared_trees():
    X, y = table()
    with pytest.raises(InvalidParameter, match="multi_output='shared'"):
        BoostingRegressor(sketch=2).fit(X, np.column_stack([y, y, y]))


class Broken(Loss):
    """Squared errors of class codes whose values are no numbers."""

    def initial_raw(self, target):
        return np.array([0.5, 0.5])

    def value(self, target, raw):
        return np.full(len(raw), np.nan)

    def gradients(self, target, raw):
        return Gradients(target.y - raw)


def test_a_loss_that_is_not_a_number_is_refused():
    X, y = table()
    with pytest.raises(IncompatibleParts, match="Broken.value returned NaN"):
        BoostingClassifier(Broken(), n_estimators=4).fit(X, y > 0)
