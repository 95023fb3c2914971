"""Kernel stages of every loss lower ``Σ w_i loss_i + ½ λ |f|²`` and end at its optimum."""

import numpy as np
import pytest
from scipy.special import expit
from tests.cases import LOSSES, ids
from tests.reference.penalized import in_units_of_fit, least, objective
from tests.reference.penalized_fits import (
    KERNEL,
    STAGES,
    fitted,
    objectives,
    relative_distances,
    table,
)

from hilboost import BoostingRegressor, KernelBoostingRegressor, Loss
from hilboost.core.gradients import Gradients
from hilboost.kernels import Gaussian
from hilboost.learners.kernel_machine.config import KernelMachineConfig
from hilboost.learners.kernel_machine.full import FullLearner
from hilboost.learners.kernel_machine.kernel_learner import BlockLearner
from hilboost.learners.kernel_machine.sparse import SparseLearner
from hilboost.losses import Huber, Poisson

N = 60
ROUNDING = 1e-8  # of the optimum
ALL_STAGES = "huber", "poisson", "quantile-3", "log_loss-3"  # losses that are fitted by each
CELLS = [
    (case, stages)
    for number, case in enumerate(LOSSES)
    for place, stages in enumerate(STAGES)
    if case.id in ALL_STAGES or number % 3 == place
]
SQUARES = [case for case in LOSSES if case.name == "squared_error"]
SEARCHED = [case for case in LOSSES if case.name not in ("squared_error", "log_loss")]
BY_ID = {case.id: case for case in LOSSES}


def smooth():
    X = np.random.default_rng(0).uniform(-2, 2, size=(200, 1))
    return X, np.sin(2 * X[:, 0])


@pytest.mark.parametrize(
    ("case", "stages"), CELLS, ids=[f"{case.id}-{stages}" for case, stages in CELLS]
)
def test_the_objective_never_rises_and_ends_at_the_optimum(case, stages):
    weighted = (LOSSES.index(case) + STAGES.index(stages)) % 2 == 1
    distances = relative_distances(case, stages, N, 0.3, weighted)
    if not (stages == "block" and case in SQUARES):  # these descend on the dual objective
        assert np.diff(distances).max() < ROUNDING
    assert -ROUNDING < distances[-1] < 1e-3
    assert distances[0] > 0.1


@pytest.mark.parametrize("case", SEARCHED[::3], ids=ids(SEARCHED[::3]))
def test_rows_equal_in_the_inputs_end_at_the_optimum_of_all_rows(case):
    stages = STAGES[SEARCHED.index(case) // 3 % 3]
    X, target = table(case, N)
    X = X[np.arange(N) // 2]
    model = fitted(case, stages, X, target, 0.3)
    of_fit = in_units_of_fit(case.make(), target, model.model_.initial_raw)
    lowest = least(*of_fit[:2], KERNEL.block(X, X), of_fit[2], 0.3)
    distances = objectives(case, model, X, target, 0.3) / lowest - 1
    assert -ROUNDING < distances[-1] < 1e-3
    assert len(model.model_.stages[0].terms[0].model.basis) <= N // 2


@pytest.mark.parametrize("case", SEARCHED, ids=ids(SEARCHED))
def test_small_and_large_penalties(case):
    number = SEARCHED.index(case)
    stages, lam = ("full", "sparse")[number % 2], (1e-2, 30.0)[number // 2 % 2]
    distances = relative_distances(case, stages, 40, lam)
    assert np.diff(distances).max() < ROUNDING
    assert -ROUNDING < distances[-1] < 1e-3


@pytest.mark.parametrize("case", SQUARES, ids=ids(SQUARES))
def test_blocks_of_squares_lower_the_dual_objective(case):
    X, target = table(case, N)
    model = fitted(case, "block", X, target, 0.3, n_basis=20)
    K, start = KERNEL.block(X, X), model.model_.initial_raw
    residual = case.make().gradients(target, np.tile(start, (N, 1))).negative_gradient
    alpha = np.zeros((N, len(start)))
    values = [0.0]
    for stage in model.model_.stages:
        (part,) = stage.terms
        np.add.at(alpha, part.model.rows, part.coefficient * part.model.weights)
        values.append(np.sum(alpha * (0.5 * (K @ alpha) + 0.15 * alpha - residual)))
    assert np.diff(values).max() < ROUNDING


@pytest.mark.parametrize(("stages", "rate"), [("full", 0.1), ("sparse", 0.7), ("block", 0.1)])
@pytest.mark.parametrize("name", ["quantile-3", "exponential"])
def test_shrinkage_keeps_the_descent(name, stages, rate):
    distances = relative_distances(BY_ID[name], stages, N, 0.1, learning_rate=rate, n_estimators=30)
    assert np.diff(distances).max() < ROUNDING
    assert distances[-1] < 0.5 * distances[0]


@pytest.mark.parametrize("learner", [FullLearner, SparseLearner, BlockLearner])
@pytest.mark.parametrize("loss", ["huber", "poisson"])
def test_the_boosting_estimator_searches_with_the_penalty(learner, loss):
    X, y = smooth()
    setting = KernelMachineConfig(Gaussian(1.0), 1e4)
    model = BoostingRegressor(
        loss, learner=learner(setting), learning_rate=1.0, n_estimators=8, early_stopping=False
    ).fit(X, y + 2)
    assert np.ptp(model.predict(X)) < 0.05


class LogCosh(Loss):
    """A user's own loss, which leaves its hessian out."""

    def initial_raw(self, target):
        return target.y.mean(axis=0)

    def value(self, target, raw):
        r = target.y - raw
        return (np.logaddexp(r, -r) - np.log(2)).sum(axis=1)

    def gradients(self, target, raw):
        return Gradients(np.tanh(target.y - raw))


class Steep(Loss):
    """A user's own loss whose hessian is too small for whole steps."""

    def initial_raw(self, target):
        return np.zeros(target.y.shape[1])

    def value(self, target, raw):
        return np.logaddexp(0, 5 * (raw - target.y)).sum(axis=1) - 2 * (raw - target.y).sum(axis=1)

    def gradients(self, target, raw):
        p = expit(5 * (raw - target.y))
        return Gradients(2 - 5 * p, 0.1 + p * (1 - p))


@pytest.mark.parametrize("loss", [LogCosh(), Steep()])
@pytest.mark.parametrize(("stages", "columns"), [("full", 2), ("sparse", 1), ("block", 2)])
def test_own_losses_never_rise(loss, stages, columns):
    case = BY_ID["huber" if columns == 1 else "huber-2"]
    X, target = table(case, N)
    y = target.y[:, 0] if columns == 1 else target.y
    settings = {"kernel": KERNEL, "regularization": 0.1, "standardize": False, "random_state": 0}
    n_basis = 30 if stages != "full" else "auto"
    model = KernelBoostingRegressor(
        loss, stages=stages, n_basis=n_basis, n_estimators=15, **settings
    ).fit(X, y)
    found = objectives(_Own(loss), model, X, target, 0.1)
    assert np.diff(found).max() < ROUNDING * found[0]
    assert found[-1] < 0.9 * found[0]


class _Own:
    def __init__(self, loss):
        self.make = lambda: loss


@pytest.mark.parametrize("stages", STAGES)
def test_a_width_of_huber_that_adapts_never_raises_the_stage_s_objective(stages):
    X, target = table(BY_ID["huber"], N)
    model = fitted(BY_ID["huber"], stages, X, target, 0.1).set_params(loss="huber")
    model.fit(X, target.y[:, 0])
    K, start, alpha = KERNEL.block(X, X), model.model_.initial_raw, np.zeros((N, 1))
    for stage in model.model_.stages:
        (part,) = stage.terms
        loss = Huber().adapted(target, start + K @ alpha)
        before = objective(loss, target, start + K @ alpha, np.sum(alpha * (K @ alpha)), 0.1)
        np.add.at(alpha, part.model.rows, part.coefficient * part.model.weights)
        after = objective(loss, target, start + K @ alpha, np.sum(alpha * (K @ alpha)), 0.1)
        assert after < before * (1 + ROUNDING)


@pytest.mark.parametrize(
    ("penalty", "refit_every"), [("ensemble", None), ("stage", None), ("ensemble", 2)]
)
def test_sparse_stages_in_all_their_forms_lower_the_loss(penalty, refit_every):
    X, target = table(BY_ID["poisson"], N)
    more = {"penalty": penalty, "refit_every": refit_every, "n_basis": 10, "n_estimators": 9}
    more["length_scale_factors"] = None if refit_every else (1.3, 1.0, 0.7)
    model = fitted(BY_ID["poisson"], "sparse", X, target, 0.1, **more)
    assert model.history_.train[-1] < 0.5 * model.history_.train[0]
    if penalty == "stage":
        assert (np.diff(model.history_.train) < 1e-9).all()
    if refit_every:
        found = objectives(BY_ID["poisson"], model, X, target, 0.1)
        assert np.diff(found).max() < ROUNDING * found[0]


def test_fits_end_where_the_objective_no_longer_falls():
    X, target = table(BY_ID["poisson"], N)
    for stages in ("full", "sparse"):
        model = fitted(BY_ID["poisson"], stages, X, target, 0.1, n_estimators=50)
        assert model.n_estimators_ < 12


@pytest.mark.parametrize("loss", [Poisson(), Huber(0.7)])
@pytest.mark.usefixtures("iterative")
def test_conjugate_gradients_reach_the_optimum_too(loss):
    case = BY_ID["poisson" if isinstance(loss, Poisson) else "huber-2"]
    distances = relative_distances(case, "full", 150, 0.1)
    assert np.diff(distances).max() < ROUNDING
    assert distances[-1] < 1e-3
