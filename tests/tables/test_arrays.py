"""Arrays that NumPy would turn into numbers though they are none, and masked arrays."""

import numpy as np
import pandas as pd
import pytest
from tests.refusals import refused

from hilboost import (
    BoostingClassifier,
    BoostingRegressor,
    KernelBoostingRegressor,
    OutputKernelTreeRegressor,
    SparseKernelRidge,
)
from hilboost.core.errors import InvalidData
from hilboost.network.graph import adjacency_matrix
from hilboost.tables.arrays import without_mask

N = 60
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2))
Y = X[:, 0] + X[:, 1] ** 2
DAYS = np.datetime64("2020-02-28") + np.arange(N)
HOLES = RNG.random((N, 2)) < 0.3
SHORT = {"n_estimators": 3, "random_state": 0}
ESTIMATORS = [
    BoostingRegressor(**SHORT),
    BoostingClassifier(**SHORT),
    KernelBoostingRegressor(**SHORT),
    SparseKernelRidge(),
    OutputKernelTreeRegressor(random_state=0),
]
TARGETS = {"BoostingClassifier": Y > 0}


def name(estimator):
    return type(estimator).__name__


def target(estimator):
    return TARGETS.get(name(estimator), Y)


def gap(days):
    days = days.copy()
    days[3] = "NaT"
    return days


@pytest.mark.parametrize("days", [DAYS, gap(DAYS), DAYS - DAYS[0], gap(DAYS - DAYS[0])])
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=name)
def test_dates_and_durations_are_no_inputs(estimator, days):
    for table in days[:, None], [[day] for day in days]:
        with pytest.raises(InvalidData, match="X contains (dates or times|durations); convert"):
            estimator.fit(table, target(estimator))


@pytest.mark.parametrize("days", [DAYS, gap(DAYS), DAYS - DAYS[0], gap(DAYS - DAYS[0])])
@pytest.mark.parametrize("estimator", ESTIMATORS[:4], ids=name)
def test_dates_and_durations_are_no_targets(estimator, days):
    for y in days, list(days), pd.Series(days), pd.Index(days), np.repeat(days[:2], N // 2):
        refused(InvalidData, "y contains (dates or times|durations); convert", estimator.fit, X, y)


def test_dates_elsewhere():
    model = BoostingRegressor(**SHORT)
    refused(InvalidData, "sample_weight contains dates", model.fit, X, Y, DAYS)
    refused(InvalidData, "y contains dates", model.fit, X, np.column_stack([DAYS, DAYS]))
    refused(InvalidData, "y contains dates", model.fit, X, Y, X_val=X, y_val=DAYS)
    refused(InvalidData, "X contains dates", model.fit(X, Y).predict, np.column_stack([DAYS, DAYS]))
    with pytest.raises(InvalidData, match="must contain numbers; row 0 has"):
        adjacency_matrix(np.full((3, 3), DAYS[0]), 3)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=name)
def test_complex_numbers_are_refused_in_one_sentence(estimator):
    said = r"^Complex data not supported: X must contain real numbers; pass X.real[^\n]*\.$"
    for table in X + 1j, (X + 1j).tolist():
        refused(InvalidData, said, estimator.fit, table, target(estimator))
    y = target(estimator) + 1j
    refused(InvalidData, r"^Complex data not supported: [yY] must[^\n]*\.$", estimator.fit, X, y)


def test_complex_weights_and_rows_to_predict():
    model = BoostingRegressor(**SHORT)
    with pytest.raises(InvalidData, match="Complex data not supported: sample_weight must"):
        model.fit(X, Y, np.ones(N) + 1j)
    refused(InvalidData, "Complex data not supported: X must", model.fit(X, Y).predict, X + 1j)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.bool_])
def test_masked_inputs_are_missing_values(dtype):
    data = np.where(HOLES, 99, np.round(4 * X)).astype(dtype)
    masked = np.ma.array(data, mask=HOLES)
    plain = np.where(HOLES, np.nan, data.astype(np.float64))
    for table in masked, list(masked):
        model = BoostingRegressor(early_stopping=False, **SHORT).fit(table, Y)
        expected = BoostingRegressor(early_stopping=False, **SHORT).fit(plain, Y)
        for rows in masked, plain:
            np.testing.assert_array_equal(model.predict(rows), expected.predict(plain))
    assert (model.predict(masked) != model.predict(data)).any()


def test_masked_text_is_missing_too():
    town = np.ma.array(np.where(Y > 0, "Ghent", "Namur"), mask=HOLES[:, 0])[:, None]
    plain = np.where(HOLES[:, :1], None, town.data.astype(object))
    found, expected = (BoostingRegressor(**SHORT).fit(table, Y) for table in (town, plain))
    np.testing.assert_array_equal(found.predict(town), expected.predict(plain))


def test_kernels_of_users_refuse_masked_values():
    with pytest.raises(ValueError, match="NaN"):
        KernelBoostingRegressor(kernel="gaussian", **SHORT).fit(np.ma.array(X, mask=HOLES), Y)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=name)
def test_masked_targets_are_missing(estimator):
    mask = np.arange(N) == 7
    for y in target(estimator), np.where(Y > 0, 2, 1):
        refused(InvalidData, "NaN.* row 7", estimator.fit, X, np.ma.array(y, mask=mask))


def test_masked_weights_are_missing():
    weight = np.ma.array(np.ones(N), mask=np.arange(N) == 7)
    for estimator in BoostingRegressor(**SHORT), OutputKernelTreeRegressor(random_state=0):
        refused(ValueError, r"sample_weight contains NaN|NaN", estimator.fit, X, Y, weight)


def test_one_of_several_masked_targets():
    both = np.ma.array(np.column_stack([Y, -Y]), mask=HOLES & [[False, True]])
    found = BoostingRegressor(**SHORT).fit(X, both).predict(X)
    expected = BoostingRegressor(**SHORT).fit(X, both.filled(np.nan)).predict(X)
    np.testing.assert_array_equal(found, expected)


def test_nothing_masked_is_the_plain_array():
    masked = np.ma.array(np.arange(3), mask=False)
    assert type(without_mask(masked)) is np.ndarray
    assert without_mask(masked).dtype == np.int64
    np.testing.assert_array_equal(
        BoostingRegressor(**SHORT).fit(np.ma.array(X), np.ma.array(Y)).predict(np.ma.array(X)),
        BoostingRegressor(**SHORT).fit(X, Y).predict(X),
    )
