"""Boosted kernel machines from the outside."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_friedman1
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.gaussian_process.kernels import Matern as TheirMatern
from tests.cases import LOSSES
from tests.reference.penalized import in_units_of_fit
from tests.reloaded import reloaded

from hilboost import (
    BoostingClassifier,
    BoostingRegressor,
    KernelBoostingClassifier,
    KernelBoostingRegressor,
)
from hilboost.kernels import Delta, Gaussian, Matern, OnColumns, Precomputed
from hilboost.training.recipes.kernel_machines import KernelParameters, kernel_learner

STAGES = ["full", "sparse", "block"]
all_stages = pytest.mark.parametrize("stages", STAGES)
devices = pytest.mark.parametrize("device", ["cpu", "cuda"])
RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
Y = np.sin(2 * X[:, 0]) + X[:, 1] + RNG.normal(0, 0.1, 120)
NEW = RNG.normal(size=(30, 3))
LABELS = np.digitize(Y, [-0.6, 0.6])
BINARY = np.array(["no", "yes"])[(Y > 0).astype(int)]
PLAIN = {
    "kernel": Matern(1.5, 2.5),
    "regularization": 0.1,
    "n_basis": 120,
    "random_state": 0,
    "n_estimators": 3,
}
AUTOMATIC = {"kernel": "auto", "regularization": "auto"}


def build(**parameters):
    return KernelBoostingRegressor(**PLAIN | parameters)


def require(device):
    torch = pytest.importorskip("torch")
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("no GPU")


def classifier(loss="squared_error", **parameters):
    return KernelBoostingClassifier(loss, **PLAIN | parameters)


@all_stages
def test_machines_of_full_rank_are_gaussian_processes(stages):
    theirs = GaussianProcessRegressor(
        TheirMatern(1.5, "fixed", nu=2.5), alpha=0.1, optimizer=None
    ).fit(X, Y - Y.mean())
    model = build(stages=stages, standardize=False).fit(X, Y)
    np.testing.assert_allclose(model.predict(NEW), Y.mean() + theirs.predict(NEW), atol=1e-6)


@all_stages
@pytest.mark.parametrize("loss", ["absolute_error", "poisson", "log_loss"])
def test_weights_are_repetitions(stages, loss):
    weight = np.random.default_rng(1).integers(0, 4, size=120)
    repeated = np.repeat(np.arange(120), weight)
    y = {"poisson": np.round(np.exp(Y)), "log_loss": LABELS}.get(loss, Y)
    make = classifier if loss == "log_loss" else build
    model = make(loss=loss, stages=stages, n_basis=500)
    weighted = model.fit(X, y, weight).predict_raw(NEW)
    other = model.fit(X[repeated], y[repeated]).predict_raw(NEW)
    np.testing.assert_allclose(weighted, other, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("case", "stages"),
    [pytest.param(case, STAGES[i % 3], id=case.id) for i, case in enumerate(LOSSES)],
)
def test_every_loss(case, stages):
    rng = np.random.default_rng(3)
    target = case.target(rng, 120)
    inputs = np.column_stack([target.y + rng.normal(size=target.y.shape) / 2, X[:, :2]])
    is_class = case.estimator is BoostingClassifier
    estimator = KernelBoostingClassifier if is_class else KernelBoostingRegressor
    settings = PLAIN | {"n_basis": 40, "n_estimators": 5, "regularization": 1.0}
    model = estimator(case.name, stages=stages, **case.parameters, **settings)
    model.fit(inputs, case.labels(target.y))
    loss, raw = model.loss_, model.model_.predict_raw(inputs)
    assert np.isfinite(raw).all()
    assert np.isfinite(model.predict(NEW[:, :1] + np.zeros((1, inputs.shape[1])))).all()
    constant = np.broadcast_to(model.model_.initial_raw, raw.shape)
    if case.name != "huber":
        assert loss.value(target, raw).mean() < 0.98 * loss.value(target, constant).mean()
        loss, target, raw = in_units_of_fit(loss, target, raw)
        np.testing.assert_allclose(
            loss.value(target, raw).mean(), model.history_.train[-1], rtol=1e-6
        )
    assert model.history_.train[-1] < model.history_.train[0]


@all_stages
def test_classes(stages):
    for loss, labels in (("squared_error", LABELS), ("log_loss", LABELS), ("exponential", BINARY)):
        model = classifier(loss, stages=stages).fit(X, labels)
        assert model.score(X, labels) > 0.8
        p = model.predict_proba(NEW)
        assert p.shape == (30, len(np.unique(labels)))
        np.testing.assert_allclose(p.sum(axis=1), 1)
        np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(NEW))
        *_, last = model.staged_predict_proba(NEW)
        np.testing.assert_allclose(last, p, atol=1e-9)


@all_stages
def test_several_targets_are_fitted_side_by_side(stages):
    both = np.column_stack([Y, X[:, 2] ** 2])
    model = build(stages=stages).fit(X, both)
    assert model.predict(NEW).shape == (30, 2)
    for k in range(2):
        alone = build(stages=stages).fit(X, both[:, k])
        np.testing.assert_allclose(model.predict(NEW)[:, k], alone.predict(NEW), atol=1e-6)


@all_stages
def test_the_last_staged_prediction_is_the_prediction(stages):
    model = build(stages=stages, n_basis=30, n_estimators=4, learning_rate=0.7).fit(X, Y)
    staged = list(model.staged_predict(NEW))
    assert len(staged) == model.n_estimators_ == len(model.history_.train) - 1
    np.testing.assert_allclose(staged[-1], model.predict(NEW), atol=1e-9)
    losses = [0.5 * np.mean((Y - p) ** 2) for p in model.staged_predict(X)]
    np.testing.assert_allclose(losses, model.history_.train[1:], rtol=1e-6)


def test_early_stopping():
    model = build(
        stages="sparse",
        kernel=Matern(0.2, 0.5),
        regularization=1e-6,
        n_basis=10,
        n_estimators=40,
        early_stopping=True,
        n_iter_no_change=3,
    ).fit(X, Y)
    best = int(np.argmin(model.history_.validation))
    assert model.n_estimators_ == best
    assert len(model.history_.validation) <= best + 4
    assert len(list(model.staged_predict(NEW))) == best
    model = build(stages="sparse", n_basis=5, n_estimators=4)
    model.fit(X, Y, X_val=NEW, y_val=np.sin(2 * NEW[:, 0]) + NEW[:, 1])
    assert len(model.history_.validation) == 5
    predicted = list(model.staged_predict(NEW))[-1]
    mean = 0.5 * np.mean((np.sin(2 * NEW[:, 0]) + NEW[:, 1] - predicted) ** 2)
    np.testing.assert_allclose(model.history_.validation[-1], mean, rtol=1e-6)


def test_the_preset_has_the_published_numbers():
    parameters = KernelBoostingRegressor.sun_yao_2006().get_params()
    published = {
        "tuning": "marginal_likelihood",
        "stages": "sparse",
        "n_estimators": 150,
        "n_basis": 200,
        "subset_size": 2000,
        "selection": "information_gain",
        "solver": "conjugate_gradient",
        "cg_iterations": 50,
        "penalty": "ensemble",
        "reweight": True,
        "loss": "squared_error",
        "learning_rate": 1.0,
    }
    assert {name: parameters[name] for name in published} == published
    assert KernelBoostingRegressor.sun_yao_2006(n_basis=7).n_basis == 7


def test_the_preset_improves_stage_by_stage():
    inputs, y = make_friedman1(500, noise=0.5, random_state=0)
    model = KernelBoostingRegressor.sun_yao_2006(
        n_estimators=8, n_basis=20, subset_size=100, random_state=0, kernel=Gaussian(3.0)
    ).fit(inputs[:300], y[:300])
    errors = [np.mean((p - y[300:]) ** 2) for p in model.staged_predict(inputs[300:])]
    assert errors[-1] < 0.9 * errors[0]
    assert (np.diff(model.history_.train) < 0).all()
    assert errors[-1] < 0.25 * y.var()


@all_stages
def test_categorical_features(stages):
    rng = np.random.default_rng(0)
    codes = rng.integers(4, size=150).astype(float)
    inputs = np.column_stack([rng.normal(size=150), codes])
    y = np.array([3.0, -1.0, 2.0, -4.0])[codes.astype(int)] * np.cos(inputs[:, 0])
    kernel = OnColumns(Gaussian(1.0), [0]) * OnColumns(Delta(1.0), [1])
    model = build(kernel=kernel, categorical_features=[1], stages=stages, n_basis=150)
    assert model.fit(inputs, y).score(inputs, y) > 0.9
    relabeled = inputs.copy()
    relabeled[:, 1] = np.array([7.0, 100.0, -3.0, 0.5])[codes.astype(int)]
    mask = build(kernel=kernel, categorical_features=[False, True], stages=stages, n_basis=150)
    mask.fit(relabeled, y)
    np.testing.assert_allclose(mask.predict(relabeled), model.predict(inputs), atol=1e-8)


@all_stages
def test_kernels_in_every_form(stages):
    expected = build(kernel=Gaussian(1.3), standardize=False, stages=stages).fit(X, Y)

    def function(A, B):
        squares = ((A[:, None] - B[None]) ** 2).sum(axis=2)
        return np.exp(-squares / (2 * 1.3**2))

    for kernel in (RBF(1.3), function):
        model = build(kernel=kernel, standardize=False, stages=stages).fit(X, Y)
        np.testing.assert_allclose(model.predict(NEW), expected.predict(NEW), atol=1e-7)
    everything = np.vstack([X, NEW])
    table = Precomputed(function(everything, everything))
    numbers = np.arange(150.0)[:, None]
    model = build(kernel=table, standardize=False, stages=stages).fit(numbers[:120], Y)
    np.testing.assert_allclose(model.predict(numbers[120:]), expected.predict(NEW), atol=1e-7)


@pytest.mark.parametrize(
    "settings",
    [
        {"stages": "full"},
        {"stages": "sparse", "subset_size": 60},
        {"stages": "sparse", "subset_size": 60, "subsample": 0.6},
        {"stages": "block", "subsample": 0.6},
    ],
    ids=str,
)
def test_the_same_seed_gives_the_same_bits(settings):
    settings = {"n_basis": 25, "n_jobs": 1} | settings
    one, other = (build(**settings).fit(X, Y).predict(NEW) for _ in range(2))
    np.testing.assert_array_equal(one, other)
    two = build(**settings | {"n_jobs": 2}).fit(X, Y).predict(NEW)
    np.testing.assert_allclose(two, one, atol=1e-6)
    another = build(**settings | {"random_state": 1}).fit(X, Y).predict(NEW)
    assert (another != one).any() == (settings["stages"] != "full")


@pytest.mark.parametrize(
    ("model", "n_entries"),
    [
        (build(stages="full"), len(X)),
        (build(stages="sparse", n_estimators=1, n_basis=7), 7),
        (BoostingRegressor(learner="kernel", n_estimators=1), len(X)),
    ],
    ids=["full", "sparse", "learner"],
)
def test_threads_are_chosen_by_the_number_of_basis_vectors(model, n_entries, monkeypatch):
    model, asked = clone(model).fit(X, Y), []
    name = "hilboost.estimators.base.threads_for"
    monkeypatch.setattr(name, lambda _, n: asked.append(n) or 1)
    for predicted in (model.predict, lambda rows: list(model.staged_predict(rows))):
        predicted(NEW)
        assert asked.pop() == len(NEW) * n_entries
        assert not asked


@pytest.mark.parametrize("tuning", ["marginal_likelihood", "mean_distance"])
def test_other_tunings(tuning):
    model = build(**AUTOMATIC, tuning=tuning).fit(X, Y)
    truth = np.sin(2 * NEW[:, 0]) + NEW[:, 1]
    assert np.mean((model.predict(NEW) - truth) ** 2) < 0.2 * truth.var()


def test_the_stages_of_the_automatic_choice_depend_on_size():
    assert "Full" in type(build(stages="auto", n_basis="auto").fit(X, Y).learner_).__name__
    large = KernelParameters(memory_budget=2.0**30)
    names = [kernel_learner(large, n, ()).name for n in (100, 15_000, 200_000)]
    assert names == ["full", "full", "sparse"]
    small = KernelParameters(memory_budget=2.0**28)
    assert [kernel_learner(small, n, ()).name for n in (100, 15_000)] == ["full", "sparse"]


@devices
@pytest.mark.parametrize("stages", STAGES)
def test_torch_gives_the_same_numbers(stages, device):
    require(device)
    models = [build(stages=stages, n_basis=30, device=where).fit(X, Y) for where in (None, device)]
    np.testing.assert_allclose(*(model.predict(NEW) for model in models), atol=1e-7)
    if stages == "full":
        std = (model.predict(NEW, return_std=True)[1] for model in models)
        np.testing.assert_allclose(*std, rtol=1e-6)


@devices
@pytest.mark.parametrize(
    ("parameters", "atol"), [({"loss": "poisson"}, 0), (AUTOMATIC, 1e-5)], ids=["newton", "auto"]
)
def test_torch_takes_the_same_steps_and_makes_the_same_choice(parameters, atol, device):
    require(device)
    y = np.round(np.exp(Y)) if "loss" in parameters else Y
    ours, theirs = (
        build(stages="full", device=where, **parameters).fit(X, y) for where in (None, device)
    )
    assert theirs.regularization_ == pytest.approx(ours.regularization_)
    np.testing.assert_allclose(theirs.predict(NEW), ours.predict(NEW), rtol=1e-7, atol=atol)


@devices
@pytest.mark.usefixtures("iterative")
def test_torch_gives_the_same_numbers_by_conjugate_gradients(device):
    require(device)
    ours, theirs = (
        build(tol=1e-9, n_estimators=30, device=where).fit(X, Y) for where in (None, device)
    )
    np.testing.assert_allclose(theirs.predict(NEW), ours.predict(NEW), atol=1e-7)


@devices
@pytest.mark.parametrize("stages", STAGES)
def test_torch_gives_the_same_classes_and_files(stages, device):
    require(device)
    settings = {"stages": stages, "n_basis": 30}
    ours, theirs = (
        classifier("log_loss", **settings, device=where).fit(X, LABELS) for where in (None, device)
    )
    expected = ours.predict_proba(NEW)
    np.testing.assert_allclose(theirs.predict_proba(NEW), expected, atol=1e-6)
    np.testing.assert_allclose(reloaded(theirs).predict_proba(NEW), expected, atol=1e-6)
