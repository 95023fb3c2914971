"""Mean losses and gradients over blocks of rows."""

from dataclasses import replace

import numpy as np
import pytest

from hilboost import BoostingClassifier
from hilboost.backends.threads import ThreadTeam
from hilboost.boosting.evaluate import gradients, mean_loss, mean_loss_and_gradients
from hilboost.core.target import Target
from hilboost.learners.tree.learner import TreeLearner
from hilboost.losses import BinomialLogLoss, Cox, LambdaRank, MultinomialLogLoss, SquaredError

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("loss", "r"),
    [(MultinomialLogLoss(5), 5), (BinomialLogLoss(), 1), (SquaredError(), 1), (SquaredError(), 5)],
)
@pytest.mark.parametrize("n", [200, 150_000])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("order", ["C", "F"])
def test_one_pass_gives_the_bits_of_two(loss, r, n, weighted, order):
    y = RNG.normal(size=(n, r))
    if loss.classifier_name is not None:
        y = RNG.integers(max(r, 2), size=(n, 1)).astype(float)
    target = Target(y, RNG.uniform(size=n) if weighted else None)
    raw, team = np.array(RNG.normal(size=(n, r)), order=order), ThreadTeam(1)
    mean, found = mean_loss_and_gradients(loss, target, raw, team, None)
    expected = gradients(loss, target, raw, team)
    assert mean == mean_loss(loss, target, raw, team)
    assert np.array_equal(found.negative_gradient, expected.negative_gradient)
    assert np.array_equal(found.hessian, expected.hessian)
    assert found.structure.bound == expected.structure.bound


@pytest.mark.parametrize("parameters", [{}, {"cv_folds": 2}, {"n_shards": 2}, {"subsample": 0.5}])
def test_gradients_computed_ahead_give_the_same_model(parameters):
    X, y = RNG.normal(size=(300, 4)), RNG.integers(3, size=300)
    model = BoostingClassifier(n_estimators=6, early_stopping=False, random_state=0, **parameters)
    model = model.fit(X, y).set_params(n_estimators=9, warm_start=True).fit(X, y)

    class InTwoPasses(MultinomialLogLoss):
        """Does not inherit that it evaluates both at once."""

    assert not InTwoPasses.evaluates_both
    other = BoostingClassifier(**model.get_params() | {"warm_start": False, "loss": InTwoPasses})
    other.fit(X, y)
    assert np.array_equal(model.predict_proba(X), other.predict_proba(X))
    assert np.array_equal(model.history_.train, other.history_.train)


@pytest.mark.parametrize("loss", [LambdaRank(), Cox(), Cox("efron")])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_one_pass_over_groups_gives_the_bits_of_two(loss, n_threads):
    rng, n = np.random.default_rng(0), 9000
    target = Target(rng.integers(4, size=(n, 1)).astype(float), None, np.arange(n) // 6)
    if loss.survival_name is not None:
        time, event = rng.integers(1, 50, size=n), rng.uniform(size=n) < 0.5
        y = np.column_stack([time, np.where(event, time, np.inf), np.zeros(n), np.zeros(n)])
        target = Target(y)
    raw, team = rng.normal(size=(n, 1)), ThreadTeam(n_threads)
    with team:
        mean, found = mean_loss_and_gradients(loss, target, raw, team, None)
    other, alone = Target(target.y, None, target.groups), ThreadTeam(1)
    expected = gradients(loss, other, raw, alone)
    assert mean == mean_loss(loss, other, raw, alone)
    assert np.array_equal(found.negative_gradient, expected.negative_gradient)
    assert np.array_equal(found.hessian, expected.hessian)


class StageByStage(TreeLearner):
    """Trees that need hessians, whose stages are fitted one by one."""

    capabilities = replace(TreeLearner.capabilities, derives_hessian=False)

    def fit(self, data, gradients, *rest):
        STORED.append(gradients.hessian is not None)
        return super().fit(data, gradients, *rest)

    def fit_stages(self, data, request):
        return None


class DerivingHessians(StageByStage):
    capabilities = replace(TreeLearner.capabilities, derives_hessian=True)


STORED = []  # whether there was a hessian, for each stage


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("weighted", [False, True])
def test_hessians_that_are_not_stored_change_nothing(n_jobs, weighted):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 4))
    y, weight = X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=6000) > 0, rng.uniform(size=6000)
    outputs = []
    STORED.clear()
    for learner in StageByStage(), DerivingHessians():
        model = BoostingClassifier(
            learner=learner, n_estimators=6, early_stopping=False, random_state=0, n_jobs=n_jobs
        )
        model.fit(X, y, sample_weight=weight if weighted else None)
        outputs.append(model.decision_function(X))
    assert STORED == [True] * 6 + [False] * 6
    np.testing.assert_array_equal(*outputs)
