"""Files of output kernel models: the same predictions bit for bit, or a refusal."""

import os

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, Ridge
from tests.cases import OUTPUTS, ids
from tests.reloaded import reloaded

from hilboost import (
    BoostingClassifier,
    BoostingRegressor,
    KernelBoostingRegressor,
    OutputKernelBoostingRegressor,
    OutputKernelForestRegressor,
    OutputKernelTreeRegressor,
)
from hilboost.core.errors import IncompatibleParts
from hilboost.kernels import Gaussian, Linear
from hilboost.learners.tree import VectorTreeLearner
from hilboost.outputs import Hierarchy, KernelOutput, LabelSets, PrecomputedOutput

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
NEW = np.concatenate([RNG.normal(size=(10, 3)), X[:5]])


def forest(output, **parameters):
    return OutputKernelForestRegressor(output, n_estimators=3, random_state=0, **parameters)


def boosting(output, learner="extra_trees", **parameters):
    settings = {"n_estimators": 3, "learning_rate": 0.5, "random_state": 0} | parameters
    return OutputKernelBoostingRegressor(output, learner=learner, **settings)


def assert_equal(one, other):
    assert type(one) is type(other)
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    else:
        assert one == other


def assert_same(loaded, model, candidates=None):
    assert type(loaded) is type(model)
    assert_equal(loaded.predict(NEW), model.predict(NEW))
    assert_equal(loaded.predict_embedding(NEW), model.predict_embedding(NEW))
    assert_equal(loaded.predict_kernel(NEW, X), model.predict_kernel(NEW, X))
    weights, other = loaded.predict_weights(NEW), model.predict_weights(NEW)
    assert_equal(weights.toarray(), other.toarray())
    for way in model.output_.ways:
        found = loaded.set_params(decode=way).predict(NEW)
        assert_equal(found, model.set_params(decode=way).predict(NEW))
    for one in (loaded, model):
        one.set_params(decode="auto")
    if candidates is not None:
        assert_equal(loaded.predict(NEW, candidates), model.predict(NEW, candidates))


@pytest.mark.parametrize("case", OUTPUTS, ids=ids(OUTPUTS))
def test_round_trip_of_every_output_space(case):
    y = case.draw(np.random.default_rng(1), 40)
    model = forest(case.make()).fit(X, y)
    loaded = reloaded(model)
    assert_same(loaded, model, y[:7])
    assert loaded.embedding_loss(X, y) == model.embedding_loss(X, y)
    assert loaded.score(X, y) == model.score(X, y)
    assert_same(reloaded(loaded), model)
    assert_equal(loaded.set_params(decode="auto").fit(X, y).predict(NEW), model.predict(NEW))


LEARNERS = {
    "ok3": "ok3",
    "extra_trees": "extra_trees",
    "kernel": "kernel",
    "machine": KernelBoostingRegressor(kernel=Gaussian(2.0), regularization=0.1),
    "sparse": KernelBoostingRegressor(stages="sparse", n_basis=20, length_scale_factors=[2, 1]),
    "trees": VectorTreeLearner(max_splits=4),
    "ridge": Ridge(alpha=0.5),
    "linear": LinearRegression(fit_intercept=False),
}


@pytest.mark.parametrize("output", ["gaussian", "linear"])
@pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS.keys())
def test_round_trip_of_every_learner(learner, output):
    y = np.column_stack([X[:, 0] ** 2, np.sin(X[:, 1])])
    model = boosting(output, learner).fit(X, y)
    loaded = reloaded(model)
    assert_same(loaded, model)
    assert_equal(loaded.history_.train, model.history_.train)
    assert type(loaded.learner_) is type(model.learner_)
    assert repr(loaded) == repr(model)
    assert_equal(loaded.fit(X, y).predict(NEW), model.predict(NEW))


def test_one_tree_and_names_of_columns():
    table = pd.DataFrame(X, columns=["a", "b", "ü"])
    model = OutputKernelTreeRegressor("linear", random_state=0).fit(table, -X[:, 0])
    loaded = reloaded(model)
    assert loaded.feature_names_in_.tolist() == ["a", "b", "ü"]
    new = pd.DataFrame(NEW, columns=table.columns)
    assert loaded.predict(new).shape == (15,)
    assert_equal(loaded.predict(new), model.predict(new))


def test_early_stopping_by_preimages():
    y = np.where(X[:, :1] > 0, [[1, 2, 3]], [[3, 2, 1]])
    settings = {"early_stopping": True, "metric": "preimage", "decode": "nearest"}
    model = boosting("ranking", **settings).fit(X, y)
    loaded = reloaded(model)
    assert loaded.n_estimators_ == model.n_estimators_
    assert_equal(loaded.history_.validation, model.history_.validation)
    assert_equal(loaded.predict(NEW), model.predict(NEW))


@pytest.mark.parametrize("tolerance", [0.0, 0.3])
def test_gram_matrices(tolerance):
    gram = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2))
    space = PrecomputedOutput(tolerance=tolerance)
    model = forest(space).fit(X, gram)
    assert (model.output_.gram is not None) == (tolerance > 0)
    loaded = reloaded(model)
    assert_same(loaded, model, np.arange(9))
    assert loaded.preimage_loss(X, gram) == model.preimage_loss(X, gram)


def test_gram_matrices_with_their_kernel():
    kernel = Gaussian(1.0) + Linear(0.5)
    space = PrecomputedOutput(kernel, X, tolerance=0.01)
    model = forest(space).fit(X, kernel.block(X, X))
    loaded = reloaded(model)
    assert_same(loaded, model, NEW)
    assert loaded.preimage_loss(NEW, NEW) == model.preimage_loss(NEW, NEW)


@pytest.mark.parametrize(
    "sets",
    [
        [{"a", "b"}, {("b", 1)}, {3, 2.5}, {True, "ü"}],
        [np.array(["a", "b"]), np.array(["b"]), [], np.array(["c"])],
        [[1, 0, 1], [0, 1, 0], [1, 1, 1], [0, 0, 0]],
        np.array([[1, 0], [0, 1], [1, 1], [0, 0]], dtype=np.float32),
        pd.DataFrame({"x": [1, 0, 0, 1], "y": [True, False, True, True]}),
    ],
    ids=["objects", "arrays", "rows", "float32", "table"],
)
def test_label_sets_of_every_kind(sets):
    model = forest("label_set").fit(X[:4], sets)
    loaded = reloaded(model)
    assert_same(loaded, model, sets)
    for way in ("threshold", "f1", "top"):
        one, other = (m.set_params(decode=way).predict(NEW) for m in (loaded, model))
        assert_equal(one, other)


def test_parameters_of_spaces():
    weights = {"pet": 1.0, "cat": 2.0, "dog": np.float64(0.5)}
    space = Hierarchy({"cat": "pet", "dog": "pet", "pet": None}, weights=weights)
    loaded = reloaded(forest(space).fit(X[:2], ["cat", "dog"]))
    assert loaded.output == space
    weighting = {("a", 1): 2.0, 3: 1.0}
    loaded = reloaded(forest(LabelSets(weighting)).fit(X[:2], [{("a", 1)}, {3}]))
    assert loaded.output == LabelSets(weighting)
    loaded = reloaded(forest(Gaussian(2.0)).fit(X, -X))
    assert loaded.output.length_scale == (2.0,)
    loaded = reloaded(forest(KernelOutput("laplace", max_rank=3)).fit(X, -X))
    assert loaded.output.max_rank == 3


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("learner", [Ridge(), LinearRegression()], ids=["ridge", "linear"])
def test_linear_base_models_of_other_estimators(learner, dtype):
    rows, new = X.astype(dtype), NEW.astype(dtype)
    for model, y in (
        (BoostingRegressor(learner=learner, n_estimators=4, random_state=0), X[:, :2] ** 2),
        (BoostingRegressor("huber", learner=learner, n_estimators=4, random_state=0), -X[:, 0]),
        (BoostingClassifier(learner=learner, n_estimators=4, random_state=0), np.arange(40) % 3),
    ):
        model.fit(rows, y)
        loaded = reloaded(model)
        for other in (new, NEW):
            assert_equal(loaded.predict(other), model.predict(other))
        again = reloaded(loaded)
        assert_equal(again.predict(new), model.predict(new))
        assert repr(again.learner) == repr(learner)
        assert_equal(loaded.fit(rows, y).predict(new), model.predict(new))


# Models that files do not hold


class Label:
    pass


REFUSED = {
    "function": (lambda A, B: np.eye(len(A), len(B)), X, "output is of type function"),
    "callable in a space": (
        KernelOutput(lambda a, b: float(a == b), pairwise=True, tolerance=0),
        list("ab") * 20,
        "kernel of output is of type function",
    ),
    "objects": ("label_set", [{Label}] * 40, "a label is of type type"),
}


@pytest.mark.filterwarnings("ignore:.*which the model then predicts from itself")
@pytest.mark.parametrize(("output", "y", "message"), REFUSED.values(), ids=list(REFUSED))
def test_outputs_that_files_do_not_hold(output, y, message, tmp_path):
    model = forest(output, max_depth=2).fit(X, y)
    with pytest.raises(IncompatibleParts, match=f"{message}.*pickle or joblib"):
        model.save(tmp_path / "m")
    assert os.listdir(tmp_path) == []
