"""Models of the first stages of a fitted model."""

import numpy as np
import pytest
from tests.cases import PLAIN

from hilboost import (
    BayesianCommitteeMachine,
    BoostingClassifier,
    BoostingRegressor,
    BoostingSurvival,
    KernelBoostingRegressor,
    load,
)
from hilboost.core.errors import InvalidParameter, InvalidType

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4))
Y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * RNG.normal(size=300)
LABELS = np.digitize(Y, [-0.5, 0.5])


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (BoostingRegressor(**PLAIN), Y),
        (BoostingRegressor(n_estimators=30, random_state=0), Y),  # a mixture, by folds
        (BoostingClassifier(**PLAIN), LABELS),
        (KernelBoostingRegressor(stages="sparse", n_estimators=5), Y),
    ],
)
def test_predictions_are_those_after_a_stage(model, y, tmp_path):
    staged = list(model.fit(X, y).staged_predict(X))
    for n in {1, min(3, len(staged)), len(staged)}:
        part = model.first_stages(n)
        assert part.n_estimators_ == n
        np.testing.assert_allclose(part.predict(X), staged[n - 1], rtol=1e-12, atol=1e-12)
        assert len(part.history_.train) == n + 1
    part = model.first_stages(1)
    part.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict(X), part.predict(X))
    assert model.n_estimators_ == len(staged)


def test_no_stage_at_all():
    part = BoostingRegressor(**PLAIN).fit(X, Y).first_stages(0)
    np.testing.assert_allclose(part.predict(X), Y.mean())


def test_the_calibration_belongs_to_all_stages():
    model = BoostingRegressor(**PLAIN).fit(X, Y).calibrate(X, Y)
    with pytest.raises(ValueError, match="calibrate"):
        model.first_stages(2).predict_interval(X)


def test_wrong_numbers_of_stages():
    model = BoostingRegressor(**PLAIN).fit(X, Y)
    n = model.n_estimators_
    for wrong in (-1, n + 1):
        with pytest.raises(InvalidParameter, match=f"between 0 and {n}, .* got {wrong}"):
            model.first_stages(wrong)
    with pytest.raises(InvalidType, match="must be an integer; got 2.5"):
        model.first_stages(2.5)


def test_models_without_such_stages():
    survival = BoostingSurvival(n_estimators=3, early_stopping=False)
    times = np.array([(True, t) for t in np.exp(Y)], dtype=[("event", bool), ("time", float)])
    with pytest.raises(InvalidParameter, match="fit it with n_estimators=2"):
        survival.fit(X, times).first_stages(2)
    assert not hasattr(BayesianCommitteeMachine(), "first_stages")
