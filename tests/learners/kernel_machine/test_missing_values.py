"""Missing values are completed before columns are scaled."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reloaded import reloaded

from hilboost import (
    BoostingRegressor,
    KernelBoostingClassifier,
    KernelBoostingRegressor,
    SparseKernelRidge,
    to_onnx,
)
from hilboost.core.errors import InvalidData
from hilboost.learners.kernel_machine.inputs import completing, encoded_features

NAN = np.nan
X = np.array([[1.0, NAN, 0], [3, 5, 1], [9, 7, NAN], [4, NAN, 1]])


def table(n=200, share=0.3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    missing = rng.random(X.shape) < share
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 2 * missing[:, 2] + rng.normal(0, 0.1, n)
    X[missing] = NAN
    return X, y


def test_medians_and_indicators():
    found = completing(X, None, categorical=(2,))
    np.testing.assert_array_equal(
        found.complete(X), [[1, 5, 0, 1], [3, 5, 1, 0], [9, 7, -2, 0], [4, 5, 1, 1]]
    )
    assert found.width == 4
    np.testing.assert_array_equal(completing(X[1:2], None).complete(X[:1]), [[1, 5, 0]])


def test_a_column_without_values_is_zero_and_has_no_indicator():
    found = completing(np.column_stack([X[:, 0], np.full(4, NAN)]), None)
    np.testing.assert_array_equal(found.complete(X[:, :2])[:, 1], [0, 5, 7, 0])
    assert not len(found.missing)


@given(st.lists(st.integers(1, 4), min_size=4, max_size=4))
def test_weights_are_repetitions(weight):
    weighted = completing(X, np.array(weight, dtype=float))
    repeated = completing(np.repeat(X, weight, axis=0), None)
    np.testing.assert_array_equal(weighted.numbers, repeated.numbers)
    np.testing.assert_array_equal(weighted.missing, repeated.missing)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_missing", [0, 1, 2, 198, 199, 200])
def test_an_indicator_needs_a_hundredth_of_the_weight_on_both_sides(n_missing, weighted):
    values, Y = np.arange(200.0)[:, None], np.ones((200, 1))
    values[:n_missing] = NAN
    weight = np.where(np.isnan(values[:, 0]), 2.0, 1.0) if weighted else None
    share = np.average(np.isnan(values[:, 0]), weights=weight)
    expected = [0] if 0.01 <= share <= 0.99 else []
    assert completing(values, weight).missing.tolist() == expected
    if n_missing < 199:  # otherwise, the column has one value
        assert encoded_features(values, Y, weight).missing.tolist() == expected


def test_the_place_in_a_wider_table():
    found, columns = completing(X, None), np.array([1, 2, 4])
    wide = np.full((4, 6), NAN)
    wide[:, columns] = X
    np.testing.assert_array_equal(found.placed(columns)(wide), found(X))


@pytest.mark.parametrize(
    "model",
    [
        KernelBoostingRegressor(random_state=0),
        KernelBoostingRegressor(stages="sparse", n_basis=50, random_state=0),
        SparseKernelRidge(n_basis=50, random_state=0),
        BoostingRegressor(learner="kernel", random_state=0),
        BoostingRegressor(learner=["tree", "kernel"], n_estimators=20, random_state=0),
    ],
    ids=["full", "sparse", "ridge", "learner", "list"],
)
def test_estimators_learn_from_missing_values(model):
    X, y = table()
    model.fit(X, y)
    new, expected = table(seed=1)
    assert model.score(new, expected) > 0.6  # 0.4 without indicators
    np.testing.assert_array_equal(reloaded(model).predict(new), model.predict(new))


def test_classes_in_any_unit():
    X, y = table(share=0.1)
    first = KernelBoostingClassifier(random_state=0).fit(X, y > 0).predict_proba(X)
    units = np.array([2.0**-20, 1.0, 2.0**30])
    second = KernelBoostingClassifier(random_state=0).fit(X * units, y > 0).predict_proba(X * units)
    np.testing.assert_allclose(second, first, rtol=1e-6)


def test_onnx():
    runtime = pytest.importorskip("onnxruntime")
    X, y = table()
    model = KernelBoostingRegressor(random_state=0).fit(X, y)
    session = runtime.InferenceSession(to_onnx(model).SerializeToString())
    outputs = session.run(None, {"X": X})[0].ravel()
    np.testing.assert_allclose(outputs, model.predict(X), atol=1e-6)


def test_missing_values_that_the_fit_did_not_see_are_medians():
    X, y = table(share=0.0)
    model = KernelBoostingRegressor(random_state=0).fit(X, y)
    middle = np.sort(X, axis=0)[(len(X) - 1) // 2]
    np.testing.assert_array_equal(model.predict([[NAN] * 3]), model.predict([middle]))


def test_a_kernel_of_the_user_refuses_missing_values():
    with pytest.raises(InvalidData, match="NaN in column 0, which is supported only with kernel="):
        KernelBoostingRegressor(kernel="gaussian").fit(*table())


def test_damaged_files_are_refused():
    X, y = table(60)
    model = SparseKernelRidge(n_basis=10, random_state=0).fit(X, y)
    from hilboost.persistence.kernel_expansions import from_arrays, to_arrays

    terms = [(0, 0, term) for term in model.fitted_.model.stages[0].terms]
    arrays, kernels = to_arrays(terms, 1)
    assert len(from_arrays(arrays, kernels, 1, 3)) == 1
    for name, value in (
        ("inputs.missing", np.array([[2, 0, 0]])),
        ("inputs.indicated", np.full((1, 1), -1)),
        ("inputs.indicated", np.array([[3]])),
        ("inputs.numbers", np.array([[NAN, 0, 0]])),
        ("inputs.numbers", np.zeros((1, 2))),
    ):
        with pytest.raises((ValueError, KeyError)):
            from_arrays(arrays | {name: value}, kernels, 1, 3)
