"""A list of kernels: each stage is that of the kernel with the largest decrease."""

import pickle
from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from tests.reference.several_kernels import boosted
from tests.reloaded import reloaded

from hilboost import (
    KernelBoostingClassifier,
    KernelBoostingRegressor,
    OutputKernelBoostingRegressor,
    SparseKernelRidge,
    to_onnx,
)
from hilboost.core.errors import IncompatibleParts, InvalidParameter, InvalidType
from hilboost.kernels import (
    Constant,
    Delta,
    Gaussian,
    Linear,
    Matern,
    OnColumns,
    Sum,
    Tanimoto,
)

RNG = np.random.default_rng(0)
N = 80
X = RNG.normal(size=(N, 6))
Y = np.sin(2 * X[:, 0]) + X[:, 1] * 0.5 + X[:, 2:4] @ [1.0, -0.6] + 0.2 * RNG.normal(size=N)
CLASSES = (np.median(Y) < Y).astype(int)
NEW = RNG.normal(size=(30, 6))
KERNELS = [
    OnColumns(Gaussian(1.0), [0, 1]),
    OnColumns(Linear(), [2, 3]),
    OnColumns(Matern(2.0, 1.5), [4, 5]),
]
STAGES = ("full", "sparse", "block")
all_stages = pytest.mark.parametrize("stages", STAGES)
chosen_or_given = pytest.mark.parametrize(
    ("stages", "regularization"), [("full", "auto"), ("sparse", "auto"), ("block", 0.1)]
)


def build(kernel=KERNELS, **parameters):
    defaults = {"regularization": 0.1, "random_state": 0, "n_jobs": 1}
    return KernelBoostingRegressor(kernel=list(kernel), **defaults | parameters)


def small(stages):
    """Parameters of short stages that differ from full ones."""
    return {"stages": stages} | ({} if stages == "full" else {"n_basis": 25})


@cache
def fitted(stages, regularization=0.1):
    return build(regularization=regularization, **small(stages)).fit(X, Y)


# Oracles


def test_squared_error_is_the_naive_loop():
    weight = RNG.uniform(0.5, 2.0, N)
    model = build(stages="full", standardize=False, n_estimators=12)
    model.fit(X, Y, sample_weight=weight)
    grams = [kernel.block(X, X) for kernel in KERNELS]
    F, chosen, _, functions = boosted(grams, Y, 0.1, 12, weight=weight)
    np.testing.assert_array_equal(model.kernels_, chosen[: model.n_estimators_])
    np.testing.assert_allclose(model.predict(X), F, atol=1e-7)
    squares = (functions**2 * weight).sum(axis=1)
    np.testing.assert_allclose(model.kernel_weights_, squares / squares.sum(), atol=1e-7)


def test_log_loss_is_the_naive_loop():
    model = KernelBoostingClassifier(
        "log_loss", kernel=KERNELS, regularization=0.1, standardize=False, n_estimators=10
    ).fit(X, CLASSES)
    grams = [kernel.block(X, X) for kernel in KERNELS]
    F, chosen, _, _ = boosted(grams, CLASSES, 0.1, 10, loss="log_loss")
    np.testing.assert_array_equal(model.kernels_, chosen)
    np.testing.assert_allclose(model.predict_raw(X)[:, 0], F, atol=1e-7)


def test_sparse_stages_on_all_rows_choose_as_full_ones():
    full = build(stages="full", n_estimators=12).fit(X, Y)
    sparse = build(stages="sparse", n_basis=N, n_estimators=12).fit(X, Y)
    np.testing.assert_array_equal(full.kernels_, sparse.kernels_)
    np.testing.assert_allclose(full.predict(NEW), sparse.predict(NEW), atol=1e-6)


@all_stages
def test_the_penalized_objective_converges_to_that_of_the_sum(stages):
    size = {} if stages == "full" else {"n_basis": 50}
    model = build(stages=stages, n_estimators=1500, standardize=False, **size).fit(X, Y)
    grams, alpha, left = [k.block(X, X) for k in KERNELS], np.zeros((3, N)), Y - Y.mean()
    found = []
    for term, kernel in _terms(model):
        alpha[kernel, term.model.rows] += term.coefficient * term.model.weights[:, 0]
        functions = [K @ a for K, a in zip(grams, alpha, strict=True)]
        penalty = sum(a @ f for a, f in zip(alpha, functions, strict=True))
        found.append(0.5 * ((left - sum(functions)) ** 2).sum() + 0.05 * penalty)
    assert (np.diff(found) <= 1e-9 * found[0]).all()
    least = 0.05 * left @ np.linalg.solve(sum(grams) + 0.1 * np.eye(N), left)
    np.testing.assert_allclose(found[-1], least, rtol=1e-3)


def test_standard_deviations_are_those_of_the_sum():
    model = build(stages="full", n_estimators=500).fit(X, Y)
    total = KernelBoostingRegressor(kernel=Sum(KERNELS), regularization=0.1, stages="full")
    expected = total.fit(X, Y).predict(NEW, return_std=True)[1]
    np.testing.assert_allclose(model.predict(NEW, return_std=True)[1], expected, rtol=1e-9)


def test_the_amplitude_is_that_of_the_sum():
    rows = np.r_[np.arange(N), np.arange(10)]  # equal inputs, other targets
    y, weight = Y[rows] + 0.1 * RNG.normal(size=len(rows)), RNG.uniform(0.5, 2.0, len(rows))
    model = build(regularization="auto", n_estimators=500).fit(X[rows], y, weight)
    total = KernelBoostingRegressor(
        kernel=Sum(model.kernel_), regularization=model.regularization_, stages="full"
    ).fit(X[rows], y, weight)
    machine = total.fitted_.kernel_machine
    assert machine.amplitude == 1.0  # both are given
    K = Sum(model.kernel_).block(*2 * (model.model_.stages[0].terms[0].model.inputs(X[rows]),))
    left, noise = y - np.average(y, weights=weight), np.diag(model.regularization_ / weight)
    expected = left @ np.linalg.solve(K + noise, left) / len(rows)
    # The fit ends when a stage decreases the penalized loss by less than 1e-7.
    np.testing.assert_allclose(model.amplitude_, expected, rtol=1e-3)


# Invariants


@chosen_or_given
def test_a_list_of_one_kernel_is_that_kernel(stages, regularization):
    settings = {"regularization": regularization, "random_state": 0} | small(stages)
    one = build([KERNELS[0]], **settings).fit(X, Y)
    alone = KernelBoostingRegressor(kernel=KERNELS[0], **settings).fit(X, Y)
    np.testing.assert_array_equal(one.predict(NEW), alone.predict(NEW))
    np.testing.assert_array_equal(one.kernels_, np.zeros(one.n_estimators_))
    np.testing.assert_array_equal(one.kernel_weights_, alone.kernel_weights_)
    assert repr(one.kernel_) == repr((alone.kernel_,))


@chosen_or_given
def test_the_order_of_the_list_changes_labels_only(stages, regularization):
    order = np.array([2, 0, 1])
    model = fitted(stages, regularization)
    other = build([KERNELS[k] for k in order], regularization=regularization, **small(stages))
    other.fit(X, Y)
    np.testing.assert_array_equal(model.predict(NEW), other.predict(NEW))
    np.testing.assert_array_equal(model.kernels_, order[other.kernels_])
    np.testing.assert_array_equal(model.kernel_weights_[order], other.kernel_weights_)


def test_repeated_kernels_count_once_and_the_first_wins():
    model = fitted("full", "auto")
    again = [KERNELS[0], OnColumns(Gaussian(1.0), [0, 1]), *KERNELS[1:], KERNELS[1]]
    other = build(again, regularization="auto").fit(X, Y)
    np.testing.assert_array_equal(model.predict(NEW), other.predict(NEW))
    np.testing.assert_array_equal(np.array([0, 2, 3])[model.kernels_], other.kernels_)
    np.testing.assert_array_equal(other.kernel_weights_[[1, 4]], 0.0)
    assert len(other.kernel_) == 5
    twice = build([KERNELS[1], KERNELS[1]]).fit(X, Y)
    alone = build([KERNELS[1]]).fit(X, Y)
    np.testing.assert_array_equal(twice.predict(NEW), alone.predict(NEW))
    np.testing.assert_array_equal(twice.kernel_weights_, [1.0, 0.0])


@all_stages
def test_the_number_of_threads_changes_nothing(stages):
    one, two = fitted(stages), build(n_jobs=2, **small(stages)).fit(X, Y)
    np.testing.assert_array_equal(one.kernels_, two.kernels_)
    np.testing.assert_allclose(one.predict(NEW), two.predict(NEW), rtol=1e-12)


@all_stages
def test_weights_are_repetitions(stages):
    count = RNG.integers(1, 4, N)
    weighted = build(**small(stages)).fit(X, Y, sample_weight=count)
    repeated = build(**small(stages)).fit(np.repeat(X, count, axis=0), np.repeat(Y, count))
    np.testing.assert_array_equal(weighted.kernels_, repeated.kernels_)
    np.testing.assert_allclose(weighted.predict(NEW), repeated.predict(NEW), rtol=1e-10)
    np.testing.assert_allclose(weighted.kernel_weights_, repeated.kernel_weights_, rtol=1e-10)


def test_the_unit_of_the_targets_changes_nothing():
    one, unit = fitted("full", "auto"), 2.0**-20
    other = build(regularization="auto").fit(X, Y * unit)
    expected = one.predict(NEW) * unit
    np.testing.assert_allclose(other.predict(NEW), expected, rtol=1e-5, atol=1e-5 * unit)
    np.testing.assert_allclose(one.kernel_weights_, other.kernel_weights_, atol=1e-4)


# The main use: kernels on groups of columns


def test_the_choice_finds_the_blocks():
    model = fitted("full", "auto")
    assert model.kernel_weights_[:2].min() > 0.2
    assert model.kernel_weights_[2] < 0.05
    np.testing.assert_allclose(model.kernel_weights_.sum(), 1.0)
    for kernel in KERNELS:
        alone = KernelBoostingRegressor(kernel=kernel, random_state=0).fit(X, Y)
        truth = np.sin(2 * NEW[:, 0]) + NEW[:, 1] * 0.5 + NEW[:, 2:4] @ [1.0, -0.6]
        errors = [((m.predict(NEW) - truth) ** 2).mean() for m in (model, alone)]
        assert errors[0] < errors[1]


def test_raw_columns_are_not_scaled_and_others_are():
    bits = (RNG.uniform(size=(N, 8)) < 0.3).astype(float)
    codes = RNG.integers(0, 3, (N, 1)).astype(float)
    table = np.hstack([1000 * X[:, :2], codes, bits])
    kernels = [
        OnColumns(Gaussian(1.0), [0, 1]),
        OnColumns(Delta(), [2]),
        2.0 * OnColumns(Tanimoto(), range(3, 11)) + Constant(0.1),
    ]
    y = Y + codes[:, 0] + bits[:, 0]
    model = build(kernels, regularization="auto").fit(table, y)
    inputs = model.model_.stages[0].terms[0].model.inputs
    np.testing.assert_allclose(inputs.scale[:2], table[:, :2].std(axis=0))
    # Constant reads no column, but belongs to a kernel of fingerprints.
    np.testing.assert_array_equal(inputs.scale[2:], 1.0)
    np.testing.assert_array_equal(inputs.center[2:], 0.0)


def test_tables_with_text_and_named_columns():
    table = pd.DataFrame(X, columns=list("abcdef"))
    table["kind"] = np.where(X[:, 0] > 0, "x", "y")
    kernels = [*KERNELS, OnColumns(Delta(), [6])]
    model = build(kernels, categorical_features=["kind"]).fit(table, Y + 2 * (X[:, 0] > 0))
    assert model.kernel_weights_[3] > 0
    with pytest.raises(IncompatibleParts, match="categorical_features"):
        build(kernels).fit(table, Y)


# Everything that a fitted model does


@chosen_or_given
def test_files_pickles_and_clones(stages, regularization):
    model = fitted(stages, regularization)
    loaded = reloaded(model)
    for other in (loaded, pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(model.predict(NEW), other.predict(NEW))
        np.testing.assert_array_equal(model.kernels_, other.kernels_)
        np.testing.assert_array_equal(model.kernel_weights_, other.kernel_weights_)
        assert repr(model.kernel_) == repr(other.kernel_)
        if stages == "full":
            deviations = [m.predict(NEW, return_std=True)[1] for m in (model, other)]
            np.testing.assert_allclose(*deviations, rtol=1e-12)
    assert repr(loaded.get_params()["kernel"]) == repr(model.get_params()["kernel"])
    assert clone(model).set_params(kernel=Gaussian(1.0)).fit(X, Y).kernel_weights_.tolist() == [1.0]


@all_stages
def test_staged_predictions_and_history(stages):
    model = fitted(stages)
    staged = list(model.staged_predict(NEW))
    assert len(staged) == model.n_estimators_ == len(model.kernels_)
    np.testing.assert_allclose(staged[-1], model.predict(NEW), rtol=1e-9, atol=1e-12)
    if stages == "full":
        loss = [((Y - at) ** 2).mean() / 2 for at in model.staged_predict(X)]
        np.testing.assert_allclose(loss, model.history_.train[1:], rtol=1e-6)


def test_early_stopping_keeps_the_records_of_its_stages():
    model = build(early_stopping=True, n_estimators=60, regularization="auto").fit(X, Y)
    assert 0 < len(model.kernels_) == model.n_estimators_ <= 60
    np.testing.assert_allclose(model.kernel_weights_.sum(), 1.0)
    values = [
        sum(t.model.predict_raw(X) for t, k in _terms(model) if k == kernel) for kernel in range(3)
    ]
    assert (model.kernel_weights_ > 0).tolist() == [np.any(value != 0) for value in values]


def _terms(model):
    return [(s.terms[0], k) for s, k in zip(model.model_.stages, model.kernels_, strict=True)]


@pytest.mark.parametrize("loss", ["quantile", "poisson"])
def test_other_losses_decrease_in_every_stage(loss):
    y = np.exp(Y / 2).round() if loss == "poisson" else Y
    model = build(loss=loss, regularization="auto").fit(X, y)
    assert np.isfinite(model.predict(NEW)).all()
    train = model.history_.train
    assert train[-1] < 0.7 * train[0]
    np.testing.assert_allclose(model.kernel_weights_.sum(), 1.0)


@pytest.mark.parametrize("loss", ["log_loss", "hinge"])
def test_losses_of_classes(loss):
    classes = CLASSES + (Y > 1.5)
    given = {} if loss == "log_loss" else {"regularization": 0.1}
    model = KernelBoostingClassifier(loss, kernel=KERNELS, random_state=0, **given)
    assert model.fit(X, classes).score(X, classes) > 0.8
    np.testing.assert_allclose(model.kernel_weights_.sum(), 1.0)


def test_sparse_stages_with_length_scales_and_refits():
    more = {"length_scale_factors": (1.5, 1.0), "refit_every": 3, "n_estimators": 12}
    model = build(stages="sparse", n_basis=20, **more).fit(X, Y)
    assert model.n_estimators_ == 12
    kernels = {id(stage.terms[0].model.kernel) for stage in model.model_.stages}
    assert len(kernels) > len(set(model.kernels_))
    np.testing.assert_allclose(model.kernel_weights_.sum(), 1.0)


@pytest.mark.parametrize("tuning", ["auto", "marginal_likelihood"])
def test_the_marginal_likelihood_fits_the_kernels(tuning):
    model = build(regularization="auto", tuning=tuning).fit(X, Y)
    scale = model.kernel_[0].kernel.kernel.length_scale[0]
    assert (scale != 1.0) == (tuning == "marginal_likelihood")


def test_sun_yao_2006_with_several_kernels():
    model = KernelBoostingRegressor.sun_yao_2006(
        kernel=KERNELS, n_estimators=6, n_basis=20, subset_size=50, random_state=0
    ).fit(X, Y)
    assert len(model.kernels_) == 6


def test_iterative_solvers_take_turns():
    """Conjugate gradients begin anew after the stage of another kernel."""
    from hilboost.learners.kernel_machine import full

    direct = build(stages="full", n_estimators=30).fit(X, Y)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(full, "DIRECT_UP_TO", 0)
        patch.setattr(full, "_ILL_CONDITIONED_DIRECT_UP_TO", 0)
        iterative = build(stages="full", n_estimators=200, tol=1e-6).fit(X, Y)
    np.testing.assert_allclose(direct.predict(NEW), iterative.predict(NEW), atol=2e-3)


def test_exports_to_onnx():
    runtime = pytest.importorskip("onnxruntime")
    model = fitted("full", "auto")
    session = runtime.InferenceSession(to_onnx(model).SerializeToString())
    found = session.run(None, {session.get_inputs()[0].name: NEW})[0]
    np.testing.assert_allclose(np.ravel(found), model.predict(NEW), atol=1e-4)


# Bad input


@pytest.mark.parametrize(
    ("kernel", "error", "message"),
    [
        ([], InvalidParameter, "empty list"),
        (["gausian", "linear"], InvalidParameter, "entry 0 of kernel.*gausian"),
        ([Gaussian(1.0), "auto"], InvalidParameter, "entry 1 of kernel is 'auto'"),
        ([Gaussian(1.0), 3], InvalidType, "entry 1 of kernel.*int"),
        ([Gaussian, Linear()], InvalidType, "entry 0 of kernel.*is a class"),
        ([Gaussian(1.0), [Linear()]], InvalidType, "entry 1 of kernel.*list of 1"),
        ([Linear(), OnColumns(Gaussian(1.0), [6])], InvalidParameter, "columns 0 to 5"),
        ([Linear(), Gaussian([1.0, 2.0])], InvalidParameter, "2 length scales"),
        ({"a": Gaussian(1.0)}, InvalidType, "dict"),
    ],
)
def test_wrong_lists(kernel, error, message):
    with pytest.raises(error, match=message):
        KernelBoostingRegressor(kernel=kernel, regularization=0.1).fit(X, Y)


def test_estimators_of_one_kernel_refuse_lists():
    with pytest.raises(InvalidType, match="one kernel here; got a list of 3"):
        SparseKernelRidge(kernel=KERNELS).fit(X, Y)
    with pytest.raises(InvalidType, match="got list"):
        OutputKernelBoostingRegressor([Gaussian(1.0), Linear()]).fit(X, Y)


@chosen_or_given
def test_constant_targets_give_no_weights(stages, regularization):
    model = build(regularization=regularization, **small(stages)).fit(X, np.full(N, 3.0))
    np.testing.assert_allclose(model.predict(NEW), 3.0)
    np.testing.assert_array_equal(model.kernel_weights_, 0.0)


def test_a_small_memory_budget_is_refused():
    with pytest.raises(InvalidParameter, match="memory_budget"):
        build(stages="full", memory_budget=1e4, n_estimators=2).fit(X, Y)
