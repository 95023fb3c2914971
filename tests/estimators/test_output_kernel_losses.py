"""Losses of the distance in output spaces, with every learner."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsRegressor
from tests.model.own_parts import PseudoHuber
from tests.reference import radial as reference

from hilboost import BoostingRegressor, KernelBoostingRegressor, Loss, OutputKernelBoostingRegressor
from hilboost.core.errors import InvalidData, InvalidParameter, InvalidType
from hilboost.kernels import Gaussian
from hilboost.learners.tree import TreeLearner, VectorTreeLearner
from hilboost.losses import AbsoluteError, Huber, Quantile
from hilboost.outputs import KernelOutput, PrecomputedOutput

seeds = st.integers(0, 10**6)
MACHINE = {"kernel": Gaussian(1.5), "regularization": 0.1, "standardize": False}
LEARNERS = {
    "ok3": VectorTreeLearner(max_splits=7),
    "ok3-et": VectorTreeLearner(max_splits=7, random_cuts=True),
    "trees": TreeLearner(max_leaf_nodes=8, min_samples_leaf=2),
    "ridge": Ridge(),
    "neighbors": KNeighborsRegressor(5),
    "full": KernelBoostingRegressor(stages="full", **MACHINE),
    "sparse": KernelBoostingRegressor(stages="sparse", n_basis=20, **MACHINE),
    "block": KernelBoostingRegressor(stages="block", n_basis=20, **MACHINE),
}
LOSSES = {"absolute_error": "absolute_error", "huber": Huber(0.5), "own": PseudoHuber(0.5)}
learners = pytest.mark.parametrize("learner", LEARNERS)
losses = pytest.mark.parametrize("loss", LOSSES)
GAUSSIAN = KernelOutput(Gaussian(2.0), tolerance=0)


def draw(seed=0, n=60, r=3):
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(n, 3)), rng.normal(size=(n, r))
    Y[:, 0] += 2 * np.sin(X[:, 0])
    Y[::9] += 6 * rng.normal(size=Y[::9].shape)
    return rng, X, Y, rng.integers(1, 4, n).astype(float)


def build(output="linear", loss="absolute_error", learner="ok3", **options):
    few = {"n_estimators": 6, "random_state": 0}
    if "stages" not in vars(LEARNERS[learner]):
        few["learning_rate"] = 0.5
    return OutputKernelBoostingRegressor(
        output, loss=LOSSES[loss], learner=LEARNERS[learner], **few | options
    )


@learners
@pytest.mark.parametrize("loss", ["absolute_error", "huber"])
def test_one_number_is_ordinary_boosting(loss, learner):
    """With a linear kernel."""
    _, X, Y, weight = draw(r=1)
    # Random rows of a weighted table differ: a kernel machine sorts it.
    weight = None if learner in ("neighbors", "sparse", "block") else weight
    model = build(loss=loss, learner=learner).fit(X, Y, weight)
    if "stages" in vars(LEARNERS[learner]):
        plain = clone(LEARNERS[learner]).set_params(loss=LOSSES[loss])
    else:
        plain = BoostingRegressor(LOSSES[loss], learner=LEARNERS[learner], learning_rate=0.5)
        plain.set_params(subsample=1, early_stopping=False)
    plain.set_params(n_estimators=6, random_state=0).fit(X, Y[:, 0], weight)
    rounding = 1e-5 if (loss, learner) != ("huber", "full") else 1e-9
    rounding = rounding if learner in ("full", "sparse", "block") else 1e-11
    np.testing.assert_allclose(model.predict(X)[:, 0], plain.predict(X), atol=rounding)
    np.testing.assert_allclose(model.history_.train, plain.history_.train, atol=rounding)


@pytest.mark.parametrize(
    ("space", "delta"), [("linear", 0.0), ("gaussian", 0.4), ("precomputed", 0.0)]
)
@given(seed=seeds)
def test_trees_from_the_gram_matrix_alone(space, delta, seed):
    rng = np.random.default_rng(seed)
    n, X_new = int(rng.integers(8, 24)), rng.normal(size=(7, 2))
    X, Y = rng.normal(size=(n, 2)), rng.normal(size=(n, 3))
    K = Y @ Y.T if space == "linear" else Gaussian(2.0).block(Y, Y)
    output = {"linear": "linear", "gaussian": GAUSSIAN, "precomputed": "precomputed"}[space]
    chosen = {"max_splits": 3, "learning_rate": 0.5}
    model = OutputKernelBoostingRegressor(
        output,
        loss=Huber(delta) if delta else "absolute_error",
        learner="ok3",
        n_estimators=3,
        sketch=None,
        **chosen,
    ).fit(X, K if space == "precomputed" else Y)
    W, history = reference.boost(X, K, delta, 3, X_new=X_new, **chosen)
    np.testing.assert_allclose(model.history_.train, history, rtol=1e-4)
    np.testing.assert_allclose(model.predict_kernel(X_new), W @ K @ W.T, atol=2e-3)


@losses
@pytest.mark.parametrize("learner", ["ok3", "ok3-et", "neighbors", "full", "sparse"])
def test_rotations_of_the_outputs_carry_over(loss, learner):
    rng, X, Y, weight = draw()
    weight = None if learner == "neighbors" else weight
    rotation, shift = np.linalg.qr(rng.normal(size=(3, 3)))[0], rng.normal(size=3)
    model = build(loss=loss, learner=learner)
    found = model.fit(X, Y @ rotation + shift, weight).predict(X)
    expected = model.fit(X, Y, weight).predict(X) @ rotation + shift
    close = 1e-4 if learner in ("full", "sparse") else 1e-6
    np.testing.assert_allclose(found, expected, atol=close)


@losses
@pytest.mark.parametrize("learner", ["ok3", "full"])
def test_a_weight_is_a_repetition(loss, learner):
    _, X, Y, weight = draw()
    times = weight.astype(int)
    model = build(loss=loss, learner=learner, output=GAUSSIAN)
    repeated = model.fit(np.repeat(X, times, axis=0), np.repeat(Y, times, axis=0)).predict_kernel(X)
    np.testing.assert_allclose(model.fit(X, Y, weight).predict_kernel(X), repeated, atol=1e-4)


@losses
@pytest.mark.parametrize("learner", ["ok3", "full"])
def test_outliers_matter_less(loss, learner):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(300, 2))
    truth = np.column_stack([np.sin(X[:, 0]), X[:, 1], X[:, 0] * X[:, 1]])
    Y = truth + 0.1 * rng.normal(size=truth.shape)
    Y[::10] = rng.permutation(Y)[::10] + 8
    model = build(learner=learner, n_estimators=30)
    errors = [
        ((model.set_params(loss=chosen).fit(X, Y).predict(X) - truth)[1:10] ** 2).mean()
        for chosen in (LOSSES[loss], "squared_error")
    ]
    assert errors[0] < 0.5 * errors[1]


@pytest.mark.parametrize("learner", ["ok3", "full"])
def test_what_the_factor_omits_is_part_of_the_distance(learner):
    _, X, Y, _ = draw()
    output = KernelOutput(Gaussian(1.0), tolerance=0.3)
    model = build(output, learner=learner).fit(X[:40], Y[:40], X_val=X[40:], y_val=Y[40:])
    for rows, history in ((slice(0, 40), "train"), (slice(40, 60), "validation")):
        raw, codes = model.predict_raw(X[rows]), model.output_.encode(Y[rows])
        norms = model.output_.norms(Y[rows])
        square = norms - (codes**2).sum(axis=1) + ((codes - raw) ** 2).sum(axis=1)
        assert (norms - (codes**2).sum(axis=1)).max() > 0.1
        found = getattr(model.history_, history)[model.n_estimators_]
        assert found == pytest.approx(np.sqrt(square).mean(), rel=1e-9)


@losses
@pytest.mark.parametrize(("metric", "learner"), [("embedding", "full"), ("preimage", "ok3")])
def test_early_stopping_by_the_loss(loss, metric, learner):
    _, X, Y, _ = draw()
    model = build(loss=loss, learner=learner, output="gaussian", metric=metric).set_params(
        early_stopping=True, validation_fraction=0.3
    )
    model.fit(X, Y)
    held_out = model.history_.validation
    assert model.n_estimators_ == int(np.argmin(held_out))
    plain = clone(model).set_params(metric="embedding", early_stopping=False)
    whole = clone(plain).set_params(metric=metric).fit(X, Y)
    np.testing.assert_array_equal(whole.predict_raw(X), plain.fit(X, Y).predict_raw(X))


def test_equal_labels_are_learned_at_once():
    _, X, _, _ = draw()
    for loss in LOSSES:
        model = build(loss=loss).fit(X, np.full((60, 2), 3.0))
        np.testing.assert_allclose(model.predict(X), 3.0, rtol=1e-12)


# Refusals


class Undeclared(Loss):
    def initial_raw(self, target):
        return target.y.mean(axis=0)

    def value(self, target, raw):
        return np.abs(target.y - raw).sum(axis=1)

    def gradients(self, target, raw):
        raise AssertionError("never asked")


@pytest.mark.parametrize(
    ("loss", "error", "message"),
    [
        ("quantile", InvalidParameter, "a distance is never negative.*set loss='absolute_error'"),
        (Quantile(0.3), InvalidParameter, "a distance is never negative"),
        ("poisson", InvalidParameter, "'poisson' must depend on the distance.*one of absolute_err"),
        ("hubr", InvalidParameter, "Did you mean 'huber'.*values: absolute_error, huber, squ"),
        (Undeclared, InvalidParameter, "'Undeclared' must depend.*declare symmetric = True"),
        (type("Mine", (AbsoluteError,), {}), InvalidParameter, "declare symmetric = True"),
        (3, InvalidParameter, "'loss' parameter"),
        (dict, InvalidType, "loss must be a name, a Loss object"),
    ],
)
def test_other_losses_are_refused(loss, error, message):
    _, X, Y, _ = draw()
    with pytest.raises(error if loss != 3 else ValueError, match=message):
        OutputKernelBoostingRegressor(loss=loss).fit(X, Y)


def test_new_outputs_need_their_norms():
    """A Gram matrix does not know how far a new output lies from the training outputs."""
    _, X, Y, _ = draw()
    K = Gaussian(1.0).block(Y, Y)
    model = build("precomputed")
    model.fit(X, K)
    options = {"X_val": X[40:], "y_val": K[40:, :40]}
    with pytest.raises(InvalidData, match="k\\(y, y\\) of the new outputs.*pass the kernel"):
        model.fit(X[:40], K[:40, :40], **options)
    known = PrecomputedOutput(Gaussian(1.0), Y[:40])
    model = build(known).fit(X[:40], K[:40, :40], X_val=X[40:], y_val=Y[40:])
    assert model.history_.validation[-1] > 0
