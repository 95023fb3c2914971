"""Inputs and targets of other libraries: fitted like plain arrays, or rejected with a remedy."""

import contextlib
import re
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import PLAIN
from tests.refusals import refused

from hilboost import (
    BoostingClassifier,
    BoostingRegressor,
    KernelBoostingRegressor,
    SparseKernelClassifier,
)
from hilboost.core.errors import HilboostError, InvalidData, InvalidParameter, InvalidType
from hilboost.kernels import Precomputed

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
Y = X[:, 0] + 0.1 * RNG.normal(size=60)
LABELS = Y > 0


def regressor():
    return BoostingRegressor(**PLAIN)


def classifier():
    return BoostingClassifier(**PLAIN)


class DataArray:
    """An array with names of its dimensions, which exports its entries as an Arrow stream."""

    dims = ("row", "column")

    def __init__(self, values):
        self.values = values
        self.shape, self.ndim, self.dtype = values.shape, values.ndim, values.dtype

    def __len__(self):
        return len(self.values)

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype=dtype)

    def to_numpy(self):
        return self.values

    def __arrow_c_stream__(self, requested_schema=None):
        return pa.table({"entry": self.values.ravel()}).__arrow_c_stream__(requested_schema)


# Arrays of other libraries


@pytest.mark.parametrize("kind", [np.float32, object])
def test_arrays_with_named_dimensions(kind):
    table = np.round(4 * X).astype(kind)
    expected = regressor().fit(table, Y).predict(table)
    model = regressor().fit(DataArray(table), DataArray(Y), sample_weight=DataArray(np.ones(60)))
    np.testing.assert_array_equal(model.predict(DataArray(table)), expected)
    np.testing.assert_array_equal(model.predict(table), expected)
    of_text = np.where(X > 0, "a", "b")
    model = classifier().fit(DataArray(of_text), DataArray(LABELS))
    np.testing.assert_array_equal(model.predict(DataArray(of_text)), model.predict(of_text))


# Targets without rows


@pytest.mark.parametrize(
    "make",
    [
        lambda y: scipy.sparse.csr_matrix(y[:, None]),
        lambda y: scipy.sparse.coo_array(y),
        lambda y: scipy.sparse.csc_array(np.column_stack([y, y])),
    ],
)
def test_sparse_targets_and_weights(make):
    for model, y in ((regressor(), Y), (classifier(), LABELS.astype(int))):
        with pytest.raises(InvalidType, match=r"^y is a sparse matrix, .* pass y\.toarray\(\)"):
            model.fit(X, make(y))
        with pytest.raises(InvalidType, match=r"^sample_weight is a sparse matrix"):
            model.fit(X, y, sample_weight=make(np.ones(60)))


@pytest.mark.parametrize(
    "make", [lambda y: dict(enumerate(y)).values(), lambda y: object(), lambda y: 3.5]
)
def test_objects_without_an_order_of_their_values(make):
    for model, y in ((regressor(), Y), (classifier(), LABELS)):
        refused(InvalidData, "^y is an? .*; pass the values of the rows", model.fit, X, make(y))
        with pytest.raises(
            InvalidData, match="^sample_weight is an? .*; pass the values of the ro"
        ):
            model.fit(X, y, sample_weight=make(Y))
    with pytest.raises(InvalidType, match=r"X is a dict_values; pass its rows, list\(X\)"):
        regressor().fit(dict(enumerate(X.tolist())).values(), Y)


# Labels that are objects

OBJECTS = {
    "booleans": (LABELS.astype(object), r"y\.astype\(bool\)"),
    "column of booleans": (pd.Series(LABELS, dtype=object), r"y\.astype\(bool\)"),
    "integers": (LABELS.astype(int).astype(object), r"y\.astype\(int\)"),
    "floats": (LABELS.astype(float).astype(object), r"y\.astype\(float\)"),
    "booleans and integers": (
        np.array([2 if one else True for one in LABELS], object),
        r"y\.astype\(int\)",
    ),
    "fractions": ([Fraction(int(one)) for one in LABELS], r"y\.astype\(float\)"),
    "dates and integers": (
        np.array([1 if one else np.datetime64("2020") for one in LABELS], object),
        r"y\.astype\(str\)",
    ),
    "decimals": ([Decimal(int(one)) for one in LABELS], r"y\.astype\(str\)"),
    "mixed": (np.array([1 if one else "no" for one in LABELS], object), r"y\.astype\(str\)"),
    "intervals": (pd.Series(pd.cut(Y, 3)), r"y\.astype\(str\)"),
}


@pytest.mark.parametrize("estimator", [classifier, SparseKernelClassifier])
@pytest.mark.parametrize("name", OBJECTS)
def test_labels_that_are_objects(name, estimator):
    y, remedy = OBJECTS[name]
    with pytest.raises(
        InvalidData,
        match=rf"^Unknown label type: y has dtype object and contains .*; pass {remedy}",
    ):
        estimator().fit(X, y)


@pytest.mark.parametrize("name", OBJECTS)
def test_the_remedy_helps(name):
    y, remedy = OBJECTS[name]
    dtype = {"bool": bool, "int": int, "float": float, "str": str}[remedy[11:-2]]
    y = np.asarray(y).astype(dtype)
    assert set(classifier().fit(X, y).predict(X)) <= set(y)


def test_dates_as_labels_name_the_target():
    with pytest.raises(InvalidData, match="'y' contains dates or times"):
        classifier().fit(X, pd.Series(pd.period_range("2020", periods=60, freq="M")))


def test_intervals_in_a_column():
    with pytest.raises(InvalidType, match=r"column 'a' .*for instance with \.astype\(str\)"):
        regressor().fit(pd.DataFrame({"a": pd.cut(Y, 3), "b": Y}), Y)


def test_missing_targets_of_weight_zero():
    weight, y = np.ones(60), Y.copy()
    weight[5], y[5] = 0, np.nan
    labels = np.where(LABELS, "yes", "no").astype(object)
    labels[5] = None
    for model, target in ((regressor(), y), (classifier(), labels)):
        with pytest.raises(InvalidData, match="row 5.*; remove rows .* where their weight is 0"):
            model.fit(X, target, sample_weight=weight)


@given(
    labels=st.lists(
        st.none() | st.booleans() | st.integers(-2, 2) | st.floats(allow_infinity=True)
        | st.sampled_from(["a", b"b", Decimal(1), (1, 2), frozenset([1]), 1j, pd.NaT, Y]),
        min_size=60, max_size=60,
    ),
    as_array=st.booleans(),
)  # fmt: skip
def test_any_objects_are_labels_or_an_error_of_ours(labels, as_array):
    y = labels
    if as_array:
        y = np.empty(60, dtype=object)
        y[:] = labels
    for model in (classifier(), regressor()):
        with warnings.catch_warnings(), contextlib.suppress(HilboostError):
            warnings.simplefilter("ignore")
            try:
                model.fit(X, y)
            except (ValueError, TypeError) as error:
                if not re.search("bytes|1d array|Unknown label", str(error)):  # scikit-learn's
                    raise


# Precomputed kernels


@pytest.mark.parametrize(
    ("estimator", "y"), [(KernelBoostingRegressor, Y), (SparseKernelClassifier, LABELS)]
)
def test_precomputed_kernels(estimator, y):
    gram = X @ X.T + np.eye(60)
    with pytest.raises(InvalidParameter, match=r"pass kernel=hilboost\.kernels\.Precomputed\(gr"):
        estimator(kernel="precomputed").fit(gram, y)
    rows = np.arange(60).reshape(-1, 1)
    model = estimator(kernel=Precomputed(gram), regularization=0.1).fit(rows, y)
    assert model.predict(rows).shape == (60,)


# Labels of several types


@pytest.mark.parametrize(("odd", "kind"), [(1, list), (True, tuple), (np.int64(3), list)])
@pytest.mark.parametrize("estimator", [classifier, lambda: SparseKernelClassifier(n_basis=5)])
def test_text_among_other_labels(odd, kind, estimator):
    """NumPy makes text of a list of both, so that the classes would be ``"1"`` and ``"a"``."""
    labels = kind(["a", "b", odd] * 20)
    with pytest.raises(InvalidData, match=r"text \('a' in row 0\) and other labels .* in row 2\)"):
        estimator().fit(X, labels)
    model = estimator().fit(X, list(map(str, labels)))
    refused(InvalidData, r"other labels .* in row 2\)", model.calibrate, X, labels)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT])
def test_missing_labels_in_a_list_of_text(missing):
    with pytest.raises(InvalidData, match="Input y contains NaN: row 1 has no label"):
        classifier().fit(X, ["a", missing, "b"] * 20)


# Names of targets


def targets_with(value, row=7):
    found = pd.DataFrame({"price": Y, "weight": Y + 1}, dtype=object)
    found.loc[row, "weight"] = value
    return found


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("oops", r"contains text or other objects \('oops' in row 7 of target {}\)"),
        (np.nan, "contains NaN in row 7 of target {}"),
        (np.inf, "infinity or a value too large in row 7 of target {}"),
    ],
)
def test_the_bad_target_is_named(value, said):
    frame = targets_with(value)
    for model in (KernelBoostingRegressor(), regressor().set_params(loss="absolute_error")):
        for y, name in ((frame, "'weight'"), (frame.to_numpy(), "1")):
            refused(InvalidData, said.format(name), model.fit, X, y)
    refused(InvalidData, said.partition(" of target")[0], regressor().fit, X, frame["weight"])


def test_products_of_targets_and_weights_that_overflow():
    model = BoostingRegressor("poisson", learner="linear", n_estimators=2)
    weight = np.where(LABELS, 1e300, 1.0)
    refused(InvalidData, "y times sample_weight exceeds", model.fit, X, abs(Y) * 1e100, weight)
    assert np.isfinite(model.fit(X, abs(Y) * 1e100, weight / 1e200).predict(X)).all()


@pytest.mark.parametrize("kind", [int, bool, float, object])
def test_classes_in_one_hot_columns(kind):
    Y = np.eye(3)[np.arange(len(X)) % 3].astype(kind)
    refused(InvalidData, r"one-hot classes; pass np\.argmax\(y, axis=1\)", classifier().fit, X, Y)
    Y[0] = 1
    refused(InvalidData, "For several labels per row", classifier().fit, X, Y)


@pytest.mark.parametrize("label", [pd.NA, None, "a", 10**400])
def test_columns_of_other_labels_are_no_one_hot_classes(label):
    Y = np.array([[label, 1]] * len(X), dtype=object)
    refused(InvalidData, "For several labels per row", classifier().fit, X, Y)
