"""Boosted output kernel trees against the Gram-matrix algorithms and plain vector boosting."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import ExtraTreesRegressor, GradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.tree import DecisionTreeRegressor
from tests.reference import output_kernel as reference

from hilboost import (
    OutputKernelBoostingRegressor,
    OutputKernelForestRegressor,
    OutputKernelTreeRegressor,
)
from hilboost.kernels import Gaussian
from hilboost.learners.tree import TreeLearner, VectorTreeLearner
from hilboost.outputs import KernelOutput
from hilboost.training.recipes.output_kernels import pace as automatic_pace

seeds = st.integers(0, 10**6)
SPACES = {
    "linear": "linear",
    "gaussian": KernelOutput(Gaussian(1.5), tolerance=0),
    "precomputed": "precomputed",
}
all_spaces = pytest.mark.parametrize("space", SPACES)


def draw(seed, space):
    """Inputs for learning and for prediction, labels, their Gram matrix."""
    rng = np.random.default_rng(seed)
    n, d, r = int(rng.integers(6, 32)), int(rng.integers(1, 5)), int(rng.integers(1, 5))
    X, Y = rng.normal(size=(n, d)), rng.normal(size=(n, r))
    if seed % 3 == 0:
        X[:, 0] = np.round(X[:, 0])
    Y[:, 0] += np.sin(X[:, 0])
    K = Y @ Y.T if space == "linear" else Gaussian(1.5).block(Y, Y)
    return rng, X, rng.normal(size=(9, d)), K if space == "precomputed" else Y, K


def parameters(rng):
    return {
        "max_splits": int(rng.integers(1, 8)),
        "min_samples_leaf": int(rng.choice([1, 1, 2, 3])),
        "learning_rate": float(rng.choice([0.1, 0.3, 0.5])),
    }


def boosting(space, **options):
    settings = {"learner": "ok3", "sketch": None, "random_state": 0, "decode": "nearest"}
    return OutputKernelBoostingRegressor(SPACES[space], **settings | options)


def partition(cells):
    """Sets of rows, whatever the cells' numbers."""
    return {frozenset(np.flatnonzero(cells == cell)) for cell in np.unique(cells)}


def trees_of(model):
    return [part.model for stage in model.model_.stages for part in stage.terms]


@all_spaces
@given(seed=seeds)
def test_boosting_is_algorithms_3_and_4(space, seed):
    rng, X, X_new, labels, K = draw(seed, space)
    chosen = parameters(rng)
    model = boosting(space, n_estimators=4, **chosen).fit(X, labels)
    expected = reference.okboost(X, K, n_stages=4, **chosen)
    for ours, theirs in zip(trees_of(model), expected.trees, strict=True):
        assert partition(ours.leaves(X)) == {frozenset(rows) for rows in theirs.members.values()}
        together = np.vstack([X, X_new])
        assert partition(ours.leaves(together)) == partition(theirs.apply(together))
    weights = reference.okboost_weights(expected, X_new)
    close = {"rtol": 1e-9, "atol": 1e-9}
    kernel = reference.predict_kernel(weights, K)
    np.testing.assert_allclose(model.predict_kernel(X_new), kernel, **close)
    points = model.predict_embedding(X_new)
    np.testing.assert_allclose(points @ points.T, kernel, **close)
    crossed = reference.predict_kernel(weights, K, reference.okboost_weights(expected, X))
    np.testing.assert_allclose(model.predict_kernel(X_new, X), crossed, **close)
    ours = model.predict_weights(X_new)
    assert ours.shape == (9, len(X))
    np.testing.assert_allclose(ours @ K, weights @ K, **close)
    if space == "linear":
        np.testing.assert_allclose(points, weights @ labels, **close)
        np.testing.assert_allclose(ours @ labels, points, **close)
    cost = np.diag(K) - 2 * weights @ K
    np.testing.assert_array_equal(cost.argmin(axis=1), reference.preimage_index(weights, K))
    found = model.predict(X_new)
    if space != "precomputed":
        found = (found[:, None] == labels[None]).all(axis=2).argmax(axis=1)
    lead = cost[np.arange(9), found] - cost.min(axis=1)  # between equals rounding decides
    assert lead.max() <= 1e-9
    clear = np.sort(cost, axis=1)[:, 1] > cost.min(axis=1) + 1e-9
    np.testing.assert_array_equal(found[clear], cost[clear].argmin(axis=1))


@all_spaces
@given(seed=seeds)
def test_a_tree_is_algorithm_1(space, seed):
    rng, X, X_new, labels, K = draw(seed, space)
    limits = {k: v for k, v in parameters(rng).items() if k != "learning_rate"}
    model = OutputKernelTreeRegressor(SPACES[space], **limits, decode="nearest").fit(X, labels)
    expected = reference.grow_ok3(X, K, **limits)
    weights = expected.weights(X_new)
    np.testing.assert_allclose(
        model.predict_kernel(X_new), reference.predict_kernel(weights, K), rtol=1e-9, atol=1e-9
    )
    np.testing.assert_allclose(model.predict_weights(X_new) @ K, weights @ K, rtol=1e-9, atol=1e-9)
    (tree,) = trees_of(model)
    gains = np.sort(tree.gain[tree.gain > 0])
    scores = [node.score * len(node.rows) for node in expected.nodes if node.left is not None]
    np.testing.assert_allclose(gains, np.sort(scores), rtol=1e-7, atol=1e-9)


@given(seed=seeds)
def test_losses_are_those_of_the_kernel(seed):
    """Errφ and ErrY of G2007 from kernel values and weights over the training outputs."""
    rng, X, X_new, Y, K = draw(seed, "gaussian")
    Y_new = rng.normal(size=(9, Y.shape[1]))
    model = boosting("gaussian", n_estimators=5, learning_rate=0.5).fit(X, Y)
    W = model.predict_weights(X_new).toarray()
    crossed = Gaussian(1.5).block(Y_new, Y)
    quadratic = np.einsum("ij,jk,ik->i", W, K, W)
    distance = 1 - 2 * np.einsum("ij,ij->i", W, crossed) + quadratic
    sample_weight = rng.uniform(size=9)
    for weight in (None, sample_weight):
        found = model.embedding_loss(X_new, Y_new, weight)
        assert found == pytest.approx(np.average(distance, weights=weight), rel=1e-6)
    for decode in ("nearest", "continuous"):
        model.set_params(decode=decode)
        predicted = model.predict(X_new)
        apart = 2 - 2 * np.exp(-((predicted - Y_new) ** 2).sum(axis=1) / 2 / 1.5**2)
        for weight in (None, sample_weight):
            found = model.preimage_loss(X_new, Y_new, weight)
            assert found == pytest.approx(np.average(apart, weights=weight), rel=1e-6, abs=1e-9)
    # The mean of the training outputs lies in their span.
    total = 1 - K.mean()
    assert model.score(X, Y) == pytest.approx(1 - model.embedding_loss(X, Y) / total, rel=1e-6)
    assert model.history_.train[-1] == pytest.approx(model.embedding_loss(X, Y) / 2, rel=1e-6)


# Plain least-squares boosting


def regression(r=1, n=120, d=4):
    rng = np.random.default_rng(r)
    X = rng.normal(size=(n, d))
    Y = np.sin(X[:, :1]) + X[:, 1:2] * rng.normal(size=(1, r)) + rng.normal(size=(n, r)) / 5
    return X, Y[:, 0] if r == 1 else Y


def test_stumps_and_deep_trees_are_those_of_scikit_learn():
    X, y = regression()
    for depth, learner in ((1, VectorTreeLearner(1)), (3, VectorTreeLearner(None, max_depth=3))):
        options = {"n_estimators": 20, "learning_rate": 0.3}
        expected = GradientBoostingRegressor(max_depth=depth, **options).fit(X, y).predict(X)
        model = OutputKernelBoostingRegressor(learner=learner, **options).fit(X, y)
        np.testing.assert_allclose(model.predict(X), expected, rtol=1e-9)


def boosted(regressor, X, Y, n_stages, rate):
    """Vector boosting in three lines."""
    raw = np.repeat(Y.mean(axis=0)[None], len(Y), axis=0)
    for _ in range(n_stages):
        raw = raw + rate * regressor.fit(X, Y - raw).predict(X).reshape(raw.shape)
    return raw


@pytest.mark.parametrize(
    ("learner", "regressor"),
    [
        (VectorTreeLearner(max_splits=None, max_depth=2), DecisionTreeRegressor(max_depth=2)),
        (VectorTreeLearner(None, min_samples_leaf=9), DecisionTreeRegressor(min_samples_leaf=9)),
        (Ridge(), Ridge()),
        (KNeighborsRegressor(7), KNeighborsRegressor(7)),
    ],
    ids=["depth", "leaf", "ridge", "neighbors"],
)
@pytest.mark.parametrize("r", [1, 3])
def test_several_outputs_are_boosted_together(learner, regressor, r):
    X, Y = regression(r)
    options = {"n_estimators": 8, "learning_rate": 0.3}
    model = OutputKernelBoostingRegressor(learner=learner, **options).fit(X, Y)
    expected = boosted(regressor, X, Y.reshape(120, r), 8, 0.3)
    np.testing.assert_allclose(model.predict(X), expected.reshape(Y.shape), rtol=1e-8, atol=1e-9)
    np.testing.assert_array_equal(model.predict_embedding(X), model.predict(X).reshape(120, r))


@pytest.mark.parametrize("rate", [0.02, 1.9])
def test_the_loss_never_rises_at_rates_up_to_two(rate):
    X, Y = regression(3)
    for learner in ("ok3", "extra_trees"):
        model = OutputKernelBoostingRegressor(
            learner=learner, n_estimators=25, learning_rate=rate, random_state=0
        ).fit(X, Y)
        assert (np.diff(model.history_.train) <= 1e-12).all()


def test_pace_follows_from_the_learner():
    X, Y = regression(2, n=40)
    for learner, pace in (
        *(("ok3", (500, 0.02)), ("extra_trees", (500, 0.02)), ("kernel", (20, 1.0))),
        *((TreeLearner(), (500, 0.02)), (VectorTreeLearner(), (500, 0.02)), (Ridge(), (100, 0.1))),
    ):
        model = OutputKernelBoostingRegressor(learner=learner, random_state=0)
        stages = model._make_learner(learner, len(X), ())
        assert automatic_pace(model.get_params(deep=False), stages) == pace
        for number, rate in ((1000, 0.01), (100, 0.1), (20, 0.5), (3, 1.0)):
            model.set_params(n_estimators=number)
            expected = number, 1.0 if learner == "kernel" else rate
            assert automatic_pace(model.get_params(deep=False), stages) == expected
        assert model.set_params(n_estimators=3, learning_rate=0.5).fit(X, Y).n_estimators_ <= 3


# Forests


def test_forests_are_about_as_good_as_those_of_scikit_learn():
    X, Y = regression(3, n=300)

    def error(model):
        return np.mean((model.fit(X[:150], Y[:150]).predict(X[150:]) - Y[150:]) ** 2)

    settings = {"n_estimators": 60, "random_state": 0}
    extra = OutputKernelForestRegressor(max_features=1.0, **settings)
    assert error(extra) == pytest.approx(error(ExtraTreesRegressor(**settings)), rel=0.15)
    extra.set_params(splitter="best", bootstrap=True)
    assert error(extra) == pytest.approx(error(RandomForestRegressor(**settings)), rel=0.15)


def test_forests_are_means_of_their_trees():
    X, Y = regression(3)
    model = OutputKernelForestRegressor(n_estimators=7, max_splits=9, random_state=0).fit(X, Y)
    trees = [tree.predict_raw(X) for tree in trees_of(model)]
    assert len({raw.tobytes() for raw in trees}) == 7
    np.testing.assert_allclose(model.predict_embedding(X), np.mean(trees, axis=0), rtol=1e-12)
    for k, raw in enumerate(model.staged_predict_embedding(X), start=1):
        np.testing.assert_allclose(raw, np.mean(trees[:k], axis=0), rtol=1e-12)
