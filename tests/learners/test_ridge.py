"""Ridge regression as a base learner, against plain NumPy."""

import numpy as np
import pytest

from hilboost import BoostingClassifier, BoostingRegressor
from hilboost.core.errors import InvalidParameter
from hilboost.core.gradients import Gradients
from hilboost.core.row_sample import RowSample
from hilboost.learners.ridge import RidgeLearner

RNG = np.random.default_rng(0)
N = 60
X = RNG.normal(size=(N, 3)) * [1, 10, 0.1] + [5, 0, -2]
CODES = RNG.integers(3, size=N).astype(float)
G = RNG.normal(size=(N, 2))
H = RNG.uniform(0.5, 2, size=(N, 2))
W = RNG.integers(1, 4, size=N).astype(float)


def fitted(table, gradients, weight=None, rows=None, **parameters):
    learner = RidgeLearner(**parameters)
    data = learner.prepare(table, weight, 0, 1)
    (one,) = learner.fit(data, gradients, RowSample(rows, weight), np.random.default_rng(0))
    return one


def twin(table, gradients, weight, l2, levels=0):
    """Closed form with an explicit column of ones that is not penalized."""
    w = np.ones(len(table)) if weight is None else weight
    center = np.average(table, axis=0, weights=w)
    scale = np.sqrt(np.average((table - center) ** 2, axis=0, weights=w))
    A = (table - center) / scale
    if levels:
        A = np.column_stack([A, CODES[:, None] == np.arange(levels)])
    A = np.column_stack([A, np.ones(len(A))])
    outputs = np.empty_like(gradients.negative_gradient)
    for k in range(outputs.shape[1]):
        h = np.ones(len(A)) if gradients.hessian is None else gradients.hessian[:, k]
        penalty = l2 * (w * h).sum() * np.eye(A.shape[1])
        penalty[-1, -1] = 0
        right = A.T @ (w * gradients.negative_gradient[:, k])
        outputs[:, k] = A @ np.linalg.solve((A.T * (w * h)) @ A + penalty, right)
    return outputs


@pytest.mark.parametrize("hessian", [None, H])
@pytest.mark.parametrize("weight", [None, W])
def test_a_stage_is_the_closed_form(hessian, weight):
    gradients = Gradients(G, hessian)
    one = fitted(X, gradients, weight, l2=0.01)
    expected = twin(X, gradients, weight, 0.01)
    np.testing.assert_allclose(one.outputs, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(one.term.model.predict_raw(X), expected, rtol=1e-9, atol=1e-9)


def test_levels_of_categories_have_weights_of_their_own():
    table = np.column_stack([X, CODES])
    one = fitted(table, Gradients(G), None, l2=0.01, categorical=((3, 3),))
    expected = twin(X, Gradients(G), None, 0.01, levels=3)
    np.testing.assert_allclose(one.outputs, expected, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(one.term.model.predict_raw(table), expected, rtol=1e-8, atol=1e-8)


def test_a_missing_number_counts_as_the_mean_and_an_unknown_level_as_none():
    table = np.column_stack([X, CODES])
    model = fitted(table, Gradients(G), None, categorical=((3, 3),)).term.model
    row = table[:1].copy()
    row[0, 1], row[0, 3] = np.nan, -1
    filled = row.copy()
    filled[0, 1] = model.center[1]
    np.testing.assert_allclose(model.predict_raw(row), model.predict_raw(filled))
    table[::5, 0] = np.nan
    assert np.isfinite(fitted(table, Gradients(G), None).outputs).all()


def test_units_of_columns_do_not_matter():
    scaled = X * [2.0**20, 2.0**-30, 1] + 0
    one, other = (fitted(table, Gradients(G)) for table in (X, scaled))
    np.testing.assert_allclose(one.outputs, other.outputs, rtol=1e-7, atol=1e-9)


def test_constant_and_equal_columns():
    table = np.column_stack([X, X[:, 0], np.full(N, 7.0)])
    one = fitted(table, Gradients(G))
    assert np.isfinite(one.outputs).all()
    np.testing.assert_allclose(one.outputs, fitted(X, Gradients(G)).outputs, atol=1e-3)


def test_by_name_it_fits_what_is_linear():
    y = X @ [1.0, -0.2, 3.0] + 4
    assert BoostingRegressor(learner="linear", random_state=0).fit(X, y).score(X, y) > 0.9999
    classes = (y > np.median(y)).astype(int)
    assert (
        BoostingClassifier(learner="linear", random_state=0).fit(X, classes).score(X, classes)
        > 0.95
    )


@pytest.mark.parametrize("l2", [0, -1.0, np.nan, np.inf])
def test_the_penalty_is_positive(l2):
    with pytest.raises(InvalidParameter, match="l2 must be a positive finite number"):
        RidgeLearner(l2=l2)
