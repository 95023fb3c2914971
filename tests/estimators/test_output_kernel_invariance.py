"""What output kernel models must not depend on."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import Ridge
from tests.cases import assert_same_model

from hilboost import (
    KernelBoostingRegressor,
    OutputKernelBoostingRegressor,
    OutputKernelForestRegressor,
    OutputKernelTreeRegressor,
)
from hilboost.kernels import Gaussian, Matern
from hilboost.outputs import KernelOutput

seeds = st.integers(0, 10**6)
BOOSTING = {"n_estimators": 6, "learning_rate": 0.3, "max_splits": 6, "random_state": 0}
GAUSSIAN = KernelOutput(Gaussian(2.0), tolerance=0)
MODELS = {
    "ok3": OutputKernelBoostingRegressor(learner="ok3", sketch=None, **BOOSTING),
    "extra_trees": OutputKernelBoostingRegressor(learner="extra_trees", **BOOSTING),
    "tree": OutputKernelTreeRegressor(max_splits=9, random_state=0),
    "extra-tree": OutputKernelTreeRegressor(splitter="random", max_features=0.5, random_state=0),
    "extra-trees": OutputKernelForestRegressor(n_estimators=5, random_state=0),
}
DRAWN = {
    "ok3-sketch": OutputKernelBoostingRegressor(learner="ok3", sketch=2, **BOOSTING),
    "ok3-subsample": OutputKernelBoostingRegressor(learner="ok3", subsample=0.6, **BOOSTING),
    "ok3-et-subsample": OutputKernelBoostingRegressor(subsample=0.6, sketch=2, **BOOSTING),
    "bagging": OutputKernelForestRegressor(
        n_estimators=6, splitter="best", bootstrap=True, random_state=0
    ),
    "few-deep-trees": OutputKernelForestRegressor(n_estimators=2, max_features=1.0, random_state=0),
}
OTHERS = {
    "kernel": OutputKernelBoostingRegressor(
        learner=KernelBoostingRegressor(kernel=Matern(1.5, 2.5), regularization=0.1), random_state=0
    ),
    "ridge": OutputKernelBoostingRegressor(learner=Ridge(), n_estimators=5),
}
models = pytest.mark.parametrize("name", MODELS)


def draw(seed=0, n=60, d=5, r=4, missing=True):
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(n, d)), rng.normal(size=(n, r))
    X[:, 1] = np.round(X[:, 1])
    if missing:
        X[rng.uniform(size=X.shape) < 0.05] = np.nan
    Y[:, 0] += 2 * (np.nan_to_num(X[:, 0]) > 0)
    return rng, X, Y


def built(models_, name, output="linear", **options):
    return clone(models_[name]).set_params(output=output, **options)


# Coordinates of the output space


@models
@given(seed=seeds)
def test_any_factor_of_the_gram_matrix_will_do(name, seed):
    """Pivoted Cholesky on the outputs or on their matrix, eigenvectors, permuted rows."""
    rng, X, Y = draw(seed, n=40)
    K = Gaussian(2.0).block(Y, Y)
    values, vectors = np.linalg.eigh(K)
    eigen = vectors * np.sqrt(np.maximum(values, 0))
    order = rng.permutation(len(X))
    X_new = draw(seed + 1)[1]
    one, *others = (
        built(MODELS, name, output).fit(inputs, labels).predict_kernel(X_new)
        for output, inputs, labels in (
            (GAUSSIAN, X, Y),
            ("precomputed", X, K),
            ("linear", X, eigen),
            (GAUSSIAN, X[order], Y[order]),
        )
    )
    for other in others:
        np.testing.assert_allclose(other, one, rtol=1e-7, atol=1e-7)


@given(seed=seeds, tolerance=st.sampled_from([0.3, 0.03]))
def test_truncated_factors_lose_no_more_than_they_may(seed, tolerance):
    """Errφ of one tree rises by the trace left out at most, split by split (M3)."""
    _, X, Y = draw(seed, n=50)
    exact, short = (
        OutputKernelTreeRegressor(KernelOutput(Gaussian(2.0), tolerance=t), max_splits=1).fit(X, Y)
        for t in (0, tolerance)
    )
    gains = [model.model_.stages[0].terms[0].model.gain.sum() / len(X) for model in (exact, short)]
    assert short.output_.factor.codes.shape[1] < exact.output_.factor.codes.shape[1]
    assert abs(gains[0] - gains[1]) <= tolerance + 1e-12
    assert short.embedding_loss(X, Y) <= exact.embedding_loss(X, Y) + 2 * tolerance


# Threads


@pytest.mark.parametrize("name", [*MODELS, *DRAWN])
@pytest.mark.usefixtures("threads_at_once")
def test_any_number_of_threads_gives_the_same_bits(name):
    _, X, Y = draw(n=90, d=9)
    one, other = (built(MODELS | DRAWN, name, n_jobs=k).fit(X, Y) for k in (1, 7))
    assert_same_model(other, one)
    np.testing.assert_array_equal(other.predict_embedding(X), one.predict_embedding(X))


@pytest.mark.parametrize("name", [*MODELS, *DRAWN])
def test_the_seed_decides(name):
    _, X, Y = draw(n=150)
    one, again, other = (
        built(MODELS | DRAWN, name, random_state=seed).fit(X, Y) for seed in (3, 3, 4)
    )
    assert_same_model(one, again)
    deterministic = name in ("ok3", "tree")
    X_new = draw(1)[1]
    same = np.array_equal(one.predict_embedding(X_new), other.predict_embedding(X_new))
    assert same == deterministic


# The table


@given(seed=seeds)
def test_order_of_the_columns(seed):
    """With leaves of many rows no two columns cut alike."""
    rng, X, Y = draw(seed, n=150, missing=False)
    order = rng.permutation(X.shape[1])
    model = built(MODELS, "ok3", min_samples_leaf=20)
    expected = model.fit(X, Y).predict(X)
    np.testing.assert_array_equal(model.fit(X[:, order], Y).predict(X[:, order]), expected)


@models
@given(seed=seeds)
def test_order_of_the_rows(name, seed):
    rng, X, Y = draw(seed)
    order = rng.permutation(len(X))
    model = built(MODELS, name)
    expected = model.fit(X, Y).predict(X)
    found = model.fit(X[order], Y[order]).predict(X)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@models
@given(seed=seeds, power=st.integers(-60, 60))
def test_columns_scaled_by_a_power_of_two(name, seed, power):
    _, X, Y = draw(seed)
    model = built(MODELS, name)
    expected = model.fit(X, Y).predict(X)
    scale = np.array([1, 2.0**power, 1, 2.0**-power, 1])
    np.testing.assert_array_equal(model.fit(X * scale, Y).predict(X * scale), expected)


@models
@given(seed=seeds)
def test_columns_of_no_use(name, seed):
    _, X, Y = draw(seed)
    model = built(MODELS, name)
    if name in ("ok3", "tree"):
        wider = np.column_stack([X, np.full(len(X), 3.0), np.full(len(X), np.nan), X[:, 0]])
        expected = model.fit(X, Y).predict(X)
        np.testing.assert_array_equal(model.fit(wider, Y).predict(wider), expected)
    else:  # what is drawn depends on the number of columns
        wider = np.column_stack([np.full(len(X), 3.0), X, np.full(len(X), np.nan)])
        for stage in model.fit(wider, Y).model_.stages:
            tree = stage.terms[0].model
            used = tree.column[tree.child != np.arange(len(tree.child))]
            assert set(used) <= set(range(1, 6))


@models
@given(seed=seeds, power=st.integers(-30, 30))
def test_targets_scaled_and_shifted(name, seed, power):
    _, X, Y = draw(seed)
    model = built(MODELS, name)
    expected = model.fit(X, Y).predict(X)
    np.testing.assert_array_equal(model.fit(X, Y * 2.0**power).predict(X), expected * 2.0**power)
    shifted = model.fit(X, Y + 50).predict(X) - 50
    np.testing.assert_allclose(shifted, expected, rtol=1e-7, atol=1e-7)


# Weights


@pytest.mark.parametrize("name", [*MODELS, *OTHERS])
@given(seed=seeds)
def test_whole_weights_are_repeated_rows(name, seed):
    rng, X, Y = draw(seed, n=30, missing=name in MODELS)
    weight = rng.integers(0, 4, size=30)
    weight[0] = 1
    repeated = np.repeat(np.arange(30), weight)
    model = built(MODELS | OTHERS, name, GAUSSIAN, decode="nearest")
    weighted = clone(model).fit(X, Y, sample_weight=weight)
    other = clone(model).fit(X[repeated], Y[repeated])
    np.testing.assert_allclose(
        weighted.predict_kernel(X), other.predict_kernel(X), rtol=1e-7, atol=1e-7
    )
    found = [weighted.embedding_loss(X, Y, weight), weighted.score(X, Y, weight)]
    X, Y = X[repeated], Y[repeated]
    expected = [other.embedding_loss(X, Y), other.score(X, Y)]
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", [*MODELS, *OTHERS])
@given(seed=seeds)
def test_rows_of_weight_zero_do_not_exist(name, seed):
    rng, X, Y = draw(seed, n=30, missing=name in MODELS)
    weight = rng.uniform(0.5, 2, size=30)
    out = rng.uniform(size=30) < 0.3
    out[:2] = False
    Y[out] += 1e6
    model = built(MODELS | OTHERS, name, GAUSSIAN)
    with_zeros = clone(model).fit(X, Y, sample_weight=np.where(out, 0, weight))
    without = clone(model).fit(X[~out], Y[~out], sample_weight=weight[~out])
    np.testing.assert_array_equal(with_zeros.predict_embedding(X), without.predict_embedding(X))
    assert with_zeros.predict_weights(X).shape == (30, (~out).sum())
