"""Several targets of different scales: the unit of one target changes nothing for the others."""

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import r2_score
from tests.model.editing import assert_refused, edit, header_of

import hilboost
from hilboost import (
    AveragedKernelRidge,
    BayesianCommitteeMachine,
    BoostingRegressor,
    ConvexKernelRidge,
    KernelBoostingRegressor,
    MixtureOfKernelExperts,
    SparseKernelRidge,
    StackedKernelRidge,
)
from hilboost.core.errors import InvalidData
from hilboost.core.target import Target
from hilboost.kernels import Gaussian
from hilboost.losses import SquaredError
from hilboost.training.blending import HeldOutOutputs

LOSSES = ["squared_error", "absolute_error", "huber", "poisson"]
LEARNERS = {
    "automatic": {},
    "trees": {"learner": "tree"},
    "shared": {"learner": "tree", "multi_output": "shared"},
}
ESTIMATORS = [
    BoostingRegressor,
    KernelBoostingRegressor,
    SparseKernelRidge,
    AveragedKernelRidge,
    BayesianCommitteeMachine,
    ConvexKernelRidge,
    MixtureOfKernelExperts,
    StackedKernelRidge,
]
powers = st.sampled_from([-300, -20, 20, 300]) | st.integers(-40, 40)


@st.composite
def tables(draw):
    """Inputs, two or three positive targets of different difficulty, and new inputs."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n, c = draw(st.integers(60, 150)), draw(st.integers(2, 3))
    X = rng.uniform(-2, 2, size=(n + 20, 3))
    shapes = [X[:, 0] * X[:, 1], np.floor(X[:, 2] * 2) % 2, rng.normal(size=len(X))]
    noise = draw(st.sampled_from([0.0, 0.3])) * rng.normal(size=(len(X), c))
    Y = np.exp(0.5 * (np.column_stack(rng.permutation(shapes)[:c]) + noise))
    if draw(st.booleans()):
        Y[:, 0] = np.rint(Y[:, 0])
    weight = rng.integers(1, 4, size=n) if draw(st.booleans()) else None
    return X[:n], Y[:n], weight, X[n:]


@pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
@given(table=tables(), loss=st.sampled_from(LOSSES), power=powers, seed=st.integers(0, 9))
def test_a_target_in_another_unit(learner, table, loss, power, seed):
    """Powers of two, which round nothing: the same stages, judged by the same losses."""
    X, Y, weight, new = table
    factors = np.append(2.0**power, np.ones(Y.shape[1] - 1))
    model = BoostingRegressor(loss, n_estimators=12, random_state=seed, **learner)
    model.set_params(early_stopping=True)
    expected, losses = model.fit(X, Y, weight).predict(new), model.history_.validation
    found = model.fit(X, Y * factors, weight).predict(new)
    np.testing.assert_array_equal(model.history_.validation, losses)
    if loss == "poisson":  # which adds the logarithm of the unit
        np.testing.assert_allclose(found / factors, expected, rtol=1e-12)
    else:
        np.testing.assert_array_equal(found / factors, expected)


@pytest.mark.slow
@given(
    estimator=st.sampled_from(ESTIMATORS),
    table=tables(),
    factor=st.sampled_from([1e-6, 1e6]),
    seed=st.integers(0, 9),
)
def test_a_target_in_another_decimal_unit(estimator, table, factor, seed):
    """At the defaults: the predictions of all targets change by rounding errors."""
    X, Y, weight, new = table
    factors = np.append(factor, np.ones(Y.shape[1] - 1))
    expected = estimator(random_state=seed).fit(X, Y, weight).predict(new)
    found = estimator(random_state=seed).fit(X, Y * factors, weight).predict(new) / factors
    assert (np.abs(found - expected) <= 1e-7 * Y.std(axis=0)).all()


def _smooth_and_steps(rng, n):
    X = rng.uniform(-2, 2, size=(n, 5))
    smooth = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]
    steps = np.floor(X[:, 3] * 3) % 2 + (X[:, 4] > 0.5)
    return X, np.column_stack([smooth, steps + rng.normal(0, 0.1, n)])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["automatic", "shared"])
def test_each_target_is_learned(name):
    """By the automatic learner, too, although a kernel machine suits one target only."""
    rng = np.random.default_rng(0)
    X, Y = _smooth_and_steps(rng, 500)
    new, truth = _smooth_and_steps(rng, 1000)
    factors = np.array([100.0, 1.0])
    model = BoostingRegressor(n_estimators=200, random_state=0, **LEARNERS[name])
    model.fit(X, Y * factors)
    scores = r2_score(truth, model.predict(new) / factors, multioutput="raw_values")
    assert min(scores) > 0.9
    if name == "automatic":
        kernel, trees = (model.parts_[name].weights for name in ("kernel", "tree"))
        assert kernel[0] > 0.5
        assert (trees[1], kernel[1]) == (1, 0)


@given(seed=st.integers(0, 10**6), n=st.integers(30, 300), c=st.integers(2, 5))
def test_each_target_has_weights_of_its_own(seed, n, c):
    """As if it were alone, also in that trees remain alone where a kernel machine gains little."""
    rng = np.random.default_rng(seed)
    y, trees, kernel = rng.normal(size=(3, n, c))
    share = rng.choice([0.0, 0.5, 1.0], size=c)
    trees, kernel = y + trees / 2, share * y + kernel / 3
    weight = rng.integers(1, 4, size=n).astype(float)
    both = HeldOutOutputs(SquaredError(), np.zeros(c), Target(y, weight), trees, kernel)
    columns = (np.split(part, c, axis=1) for part in (y, trees, kernel))
    alone = [
        HeldOutOutputs(SquaredError(), np.zeros(1), Target(one, weight), *parts).blend
        for one, *parts in zip(*columns, strict=True)
    ]
    found = both.blend
    for name in ("weights", "shrunk", "material"):
        expected = np.concatenate([getattr(one, name) for one in alone], axis=-1)
        np.testing.assert_array_equal(getattr(found, name), expected)
    trees_alone = found.shrunk[:, ~found.material].T
    np.testing.assert_array_equal(trees_alone, np.tile([1.0, 0.0], (len(trees_alone), 1)))
    assert min(one.gain for one in alone) <= found.gain <= max(one.gain for one in alone)


@pytest.mark.slow
def test_weights_in_words_and_files(tmp_path):
    rng = np.random.default_rng(0)
    X, Y = _smooth_and_steps(rng, 200)
    model = BoostingRegressor(n_estimators=30, random_state=0).fit(X, Y)
    tree, kernel = model.parts_["tree"], model.parts_["kernel"]
    assert kernel.weight == np.mean(kernel.weights) > 0
    listed = " and .* with weights ".join(
        ", ".join(f"{weight:.2f}" for weight in part.weights) for part in (tree, kernel)
    )
    assert re.search(f"trees with weights {listed}", str(model))
    page = model.report(X, Y).save(tmp_path / "page.html").path.read_text()
    for part in (tree, kernel):
        assert f"with {part.text} (held-out gain" in page
    path = tmp_path / "model"
    hilboost.save(model, path, training_data=True)
    loaded = hilboost.load(path)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.parts_["kernel"].weights == kernel.weights
    parts = header_of(path)["parts"]
    for weights in ([0.5], [0.5, 1, 1], [0.5, float("inf")], [0.5, "x"], 0.5, None):
        edited = parts | {"kernel": parts["kernel"] | {"weights": weights}}
        assert_refused(path, header={"parts": edited})
    for part in parts.values():
        del part["weights"]
    edit(path, header={"parts": parts})  # a file of an earlier version
    np.testing.assert_array_equal(hilboost.load(path).predict(X), model.predict(X))


@pytest.mark.parametrize(
    "model",
    [
        BoostingRegressor(n_estimators=10),
        BoostingRegressor("poisson", n_estimators=10),
        BoostingRegressor(n_estimators=10, learner="tree", multi_output="shared"),
        KernelBoostingRegressor("absolute_error", kernel="gaussian", regularization=0.1),
        SparseKernelRidge(kernel="gaussian", n_basis=20),
    ],
    ids=["automatic", "counts", "shared", "kernel", "sparse"],
)
def test_whatever_stands_beside_a_target(model):
    """Constants and units of any size, and numbers as objects."""
    rng = np.random.default_rng(5)
    X = rng.uniform(-2, 2, size=(120, 2))
    y, other = np.exp(np.sin(2 * X.T))
    missing = np.where(rng.uniform(size=120) < 0.2, np.nan, other)

    def predicted(beside):
        model.set_params(random_state=0).fit(X, np.column_stack([y, beside]))
        return model.predict(X)[:, 0]

    expected = predicted(np.full(120, 5.0))
    for constant in (0.1, 5e-324, 1e-300, 1e150):
        np.testing.assert_array_equal(predicted(np.full(120, constant)), expected)
    kinds = [other, missing] if isinstance(model, BoostingRegressor) else [other]
    for beside in kinds:
        expected = predicted(beside)
        np.testing.assert_array_equal(predicted(beside.astype(object)), expected)
        for factor in (1e-300, 1e140):
            np.testing.assert_allclose(predicted(beside * factor), expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("loss", "stages", "searches"),
    [
        ("squared_error", "sparse", True),
        ("absolute_error", "full", False),
        ("huber", "block", False),
        ("poisson", "full", True),
    ],
)
def test_kernel_stages_learn_each_target(loss, stages, searches):
    given = {} if searches else {"kernel": Gaussian(1.0), "regularization": 0.01}
    rng = np.random.default_rng(3)
    X = rng.uniform(-2, 2, size=(220, 2))
    Y = np.exp(np.column_stack([np.sin(2 * X[:, 0]), X[:, 0] * X[:, 1] / 2]))
    model = KernelBoostingRegressor(loss, stages=stages, random_state=0, **given)
    expected = model.fit(X[:150], Y[:150]).predict(X[150:])
    assert r2_score(Y[150:], expected) > 0.9
    factors = np.array([2.0**20, 2.0**-20])
    found = model.fit(X[:150], Y[:150] * factors).predict(X[150:])
    np.testing.assert_allclose(found / factors, expected, rtol=1e-12 * (loss == "poisson"))


def test_standard_deviations_of_several_targets(tmp_path):
    """The data choose them in units of each target; a given kernel and noise are in no unit."""
    rng = np.random.default_rng(4)
    X = rng.uniform(-2, 2, size=(400, 2))
    noise = rng.normal(size=(400, 2)) * 0.2
    Y = (np.column_stack([np.sin(2 * X[:, 0]), X[:, 0] * X[:, 1] / 2]) + noise) * [1e3, 1.0]
    model = KernelBoostingRegressor(random_state=0).fit(X[:200], Y[:200])
    mean, std = model.predict(X[200:], return_std=True)
    scores = ((Y[200:] - mean) / std).std(axis=0)
    assert (np.abs(scores - 1) < 0.3).all()
    path = tmp_path / "model"
    hilboost.save(model, path, training_data=True)
    np.testing.assert_array_equal(hilboost.load(path).predict(X[200:], return_std=True)[1], std)
    machine = header_of(path)["machine"]
    for sizes in ([1.0], [1.0, 0.0], [1.0, float("nan")], 2.0, [1.0, "x"], []):
        assert_refused(path, header={"machine": machine | {"sizes": sizes}})
    given = model.set_params(kernel="gaussian", regularization=0.04).fit(X[:200], Y[:200])
    std = given.predict(X[200:], return_std=True)[1]
    alone = given.fit(X[:200], Y[:200, 1]).predict(X[200:], return_std=True)[1]
    np.testing.assert_allclose(std, np.column_stack([alone, alone]), rtol=1e-9)


@pytest.mark.filterwarnings("ignore:.*which the model then predicts from itself")
def test_targets_of_a_data_frame_keep_their_names(tmp_path):
    X = np.random.default_rng(0).normal(size=(120, 2))
    Y = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X.sum(axis=1)})
    fitted = BoostingRegressor(n_estimators=5, learner="tree", random_state=0).fit(X, Y)
    fitted.save(tmp_path / "model")
    fitted.save(tmp_path / "nameless")  # as files of earlier versions
    edit(tmp_path / "nameless", header={"target_names": None})
    fitted.save(tmp_path / "damaged")
    assert_refused(tmp_path / "damaged", header={"target_names": ["a", "b"]}, match="target_names")
    nameless = hilboost.load(tmp_path / "nameless")
    for model in (fitted, hilboost.load(tmp_path / "model")):
        for use in (model.score, model.report, model.calibrate, model.refit_leaves):
            with pytest.raises(InvalidData, match="'b', 'a', 'c' in this order, and the fit had"):
                use(X, Y[["b", "a", "c"]])
        with pytest.raises(InvalidData, match="'a', 'b', 'd' in this order, and the fit had"):
            model.score(X, Y.rename(columns={"c": "d"}))
        assert model.score(X, Y) == model.score(X, Y.to_numpy()) == nameless.score(X, Y)
        names = [one["name"] for one in model.report(X, Y.to_numpy()).facts["scores"]]
        assert names == ["R²", "R² of a", "R² of b", "R² of c"]
    with pytest.raises(InvalidData, match="y_val: y has the target columns"):
        fitted.fit(X, Y, X_val=X, y_val=Y[["c", "b", "a"]])
