"""A few wrong cells of a table do not ruin a kernel machine."""

import numpy as np
import pytest
from tests.model.editing import assert_refused, contents

import hilboost
from hilboost import BoostingRegressor, KernelBoostingClassifier, KernelBoostingRegressor

RNG = np.random.default_rng(0)
N = 400
TABLE = RNG.uniform(-1, 1, size=(N + 400, 4))
Y = np.sin(3 * TABLE[:, 0]) + TABLE[:, 1] ** 2 + TABLE[:, 2] * TABLE[:, 3]


def with_wrong_cells(share=0.002, value=1e6):
    X = TABLE.copy()
    X.ravel()[np.random.default_rng(1).choice(X.size, round(share * X.size), replace=False)] = value
    return X


@pytest.fixture(scope="module")
def model():
    return KernelBoostingRegressor(random_state=0).fit(with_wrong_cells()[:N], Y[:N])


@pytest.mark.slow
def test_the_error_stays_near_that_of_a_clean_table():
    X = with_wrong_cells(value=-1e15)
    fitted = KernelBoostingRegressor(random_state=0).fit(X[:N], Y[:N])
    clean = (np.abs(X[N:]) < 2).all(axis=1)
    error = (fitted.predict(X[N:]) - Y[N:]) ** 2 / Y.var()
    assert error[clean].mean() < 0.05
    assert error.mean() < 0.1


@pytest.mark.slow
def test_all_kinds_of_machines_are_safe():
    X = with_wrong_cells()
    boosted = BoostingRegressor(learner="kernel", n_estimators=40, random_state=0)
    boosted.fit(X[:N], Y[:N])
    assert np.mean((boosted.predict(X[N:]) - Y[N:]) ** 2) < 0.1 * Y.var()
    labels = (np.median(Y) < Y).astype(int)
    classifier = KernelBoostingClassifier(random_state=0).fit(X[:N], labels[:N])
    assert classifier.score(X[N:], labels[N:]) > 0.9


@pytest.mark.slow
def test_files_keep_the_bounds(model, tmp_path):
    path = tmp_path / "model.hilboost"
    model.save(path, training_data=True)
    X = with_wrong_cells()
    np.testing.assert_array_equal(hilboost.load(path).predict(X), model.predict(X))


@pytest.mark.parametrize(
    "change",
    [
        lambda a: {"inputs.low": a["inputs.high"], "inputs.high": a["inputs.low"]},
        lambda a: {"inputs.high": a["inputs.high"][:, :2]},
        lambda a: {"inputs.low": np.full_like(a["inputs.low"], np.nan)},
        lambda a: {"inputs.low": a["inputs.low"].ravel()},
    ],
)
def test_damaged_bounds_are_refused(model, tmp_path, change):
    path = tmp_path / "model.hilboost"
    model.save(path, training_data=True)
    assert_refused(path, arrays=change(contents(path)[0]))


def test_onnx_keeps_the_bounds(model):
    onnxruntime = pytest.importorskip("onnxruntime")
    proto = hilboost.to_onnx(model, dtype="float64")
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    X = with_wrong_cells()
    (found,) = session.run(None, {"X": X})
    np.testing.assert_allclose(found.ravel(), model.predict(X), atol=1e-6)


def test_models_of_usual_tables_have_no_bounds(tmp_path):
    path = tmp_path / "model.hilboost"
    KernelBoostingRegressor(random_state=0).fit(TABLE[:100], Y[:100]).save(path, training_data=True)
    assert "inputs.low" not in contents(path)[0]
