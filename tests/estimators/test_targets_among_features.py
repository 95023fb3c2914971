"""Columns of the table that are the target, from which a model would predict it."""

import warnings
from math import factorial, prod

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from hilboost import (
    BoostingClassifier,
    BoostingRanker,
    BoostingRegressor,
    BoostingSurvival,
    KernelBoostingRegressor,
    OutputKernelBoostingRegressor,
    OutputKernelForestRegressor,
    SparseKernelClassifier,
    SparseKernelRidge,
)
from hilboost.core.errors import DataWarning
from hilboost.tables.schema import Schema
from hilboost.validation.copies import told_of_copies

RNG = np.random.default_rng(0)
N = 120
TABLE = pd.DataFrame(
    {
        "a": RNG.normal(size=N),
        "count": RNG.integers(0, 4, N),
        "kind": RNG.choice(["x", "y", "z"], N),
        "event": RNG.random(N) < 0.6,
        "time": RNG.exponential(size=N),
        "b": RNG.normal(size=N),
    }
)
NUMBERS = TABLE.drop(columns="kind")
GROUPS = np.arange(N) // 10
SMALL = {"n_estimators": 2, "random_state": 0}
TREES = SMALL | {"learner": "tree"}
MACHINE = {"kernel": "gaussian", "regularization": 1.0, "random_state": 0}


def told(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    texts = [str(one.message) for one in caught if one.category is DataWarning]
    return [text for text in texts if "the target y" in text]


def columns_told(X, y, names=None):
    X = np.asarray(X, dtype=np.float64)
    return told_of_copies(X, Schema(X.shape[1], names), y, None, None)


ESTIMATORS = {
    "regressor": (BoostingRegressor(**TREES), ["a"], {}),
    "targets": (BoostingRegressor(**TREES), ["time", "a"], {}),
    "kernel": (KernelBoostingRegressor(**MACHINE), ["time"], {}),
    "ridge": (SparseKernelRidge(n_basis=5, **MACHINE), ["b"], {}),
    "output": (OutputKernelBoostingRegressor("gaussian", learner="ok3", **SMALL), ["a", "b"], {}),
    "classifier": (BoostingClassifier(**TREES), ["count"], {}),
    "kernel classifier": (SparseKernelClassifier(n_basis=5, **MACHINE), ["event"], {}),
    "ranker": (BoostingRanker(**TREES), ["count"], {"groups": GROUPS}),
    "survival": (BoostingSurvival(**TREES), ["event", "time"], {}),
}


@pytest.mark.filterwarnings("ignore:A column-vector y was passed")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_warns(name):
    model, columns, more = ESTIMATORS[name]
    target = NUMBERS[columns]
    (text,) = told(lambda: model.fit(NUMBERS, target, **more))
    assert all(repr(column) in text for column in columns)
    rest = NUMBERS.drop(columns=columns)
    assert not told(lambda: model.fit(rest, target, **more))
    if len(columns) == 1:
        one = target[columns[0]]
        for y in (one, one.rename("other"), one.to_numpy(), pl.from_pandas(one), one.tolist()):
            assert told(lambda y=y: model.fit(NUMBERS, y, **more))
            assert not told(lambda y=y: model.fit(rest, y, **more))


@pytest.mark.parametrize(
    "form",
    [
        lambda frame: frame,
        lambda frame: pl.from_pandas(frame).lazy(),
        pa.Table.from_pandas,
        lambda frame: frame.to_numpy().tolist(),
        lambda frame: np.asfortranarray(frame.to_numpy()),
        lambda frame: np.ma.masked_array(frame.to_numpy()),
    ],
)
def test_every_form_of_several_targets_warns(form):
    numbers = NUMBERS[["a", "time", "b"]]
    model = BoostingRegressor(**TREES)
    for targets in (["time", "b"], ["b", "time"]):
        (text,) = told(lambda y=numbers[targets]: model.fit(form(numbers), form(y)))
        assert text.startswith(("the columns 'time', 'b' of X", "the columns 1, 2 of X"))
    assert not told(lambda: model.fit(form(numbers[["a"]]), form(numbers[["b", "time"]])))


def test_categories_and_sparse_and_single_precision_columns_warn():
    classifier, regressor = BoostingClassifier(**TREES), BoostingRegressor(**TREES)
    assert told(lambda: classifier.fit(TABLE, TABLE["kind"].to_numpy()))
    assert told(lambda: classifier.fit(TABLE.to_numpy(), TABLE["kind"].astype("category")))
    single = TABLE[["a", "b"]].astype(np.float32)
    assert told(lambda: regressor.fit(single, TABLE["b"].to_numpy()))
    rare = np.where(RNG.random(N) < 0.3, TABLE["a"], 0)
    table = np.column_stack([TABLE["b"], np.zeros(N), rare])
    (text,) = told(lambda: regressor.fit(csr_array(table), rare))
    assert text.startswith("the column 2 of X is the target y")
    some = NUMBERS[["a", "b"]].mask(RNG.random((N, 2)) < 0.2).dropna(how="all")
    assert told(lambda: regressor.fit(some, some))
    assert not told(lambda: regressor.fit(TABLE, TABLE["b"] + TABLE["a"]))


def test_events_in_structured_arrays_warn():
    y = NUMBERS[["event", "time"]].to_records(index=False)
    (text,) = told(lambda: BoostingSurvival(**TREES).fit(NUMBERS, y))
    assert text.startswith("the columns 'event', 'time' of X are the target y")
    assert told(lambda: BoostingSurvival(**TREES).fit(NUMBERS[["a", "time"]], y))


def test_a_lag_of_as_many_rows_as_the_target_is_behind_warns():
    s = pd.Series(RNG.normal(size=300), name="s")
    lags = pd.DataFrame({f"lag{k}": s.shift(k) for k in (1, 7, 14)}).dropna()
    model = BoostingRegressor(**TREES)
    (text,) = told(lambda: model.fit(lags[:200], s[:200]))
    assert text.startswith("the column 'lag14' of X")
    assert not told(lambda: model.fit(lags[:200], s[14:214]))
    assert not told(lambda: model.fit(lags[:200], s[15:215]))


KINDS = st.sampled_from(["normal", "few", "binary", "rare", "counts", "constant"])


def drawn(rng, kind, n):
    return {
        "normal": lambda: rng.normal(size=n),
        "few": lambda: rng.integers(0, 4, n),
        "binary": lambda: rng.integers(0, 2, n),
        "rare": lambda: rng.permutation(n) < max(1, n // 50),
        "counts": lambda: rng.poisson(0.1, n),
        "constant": lambda: np.ones(n),
    }[kind]()


def n_orders(y):
    """Number of different orders of the values."""
    counts = np.unique(y, return_counts=True)[1].tolist()
    return factorial(len(y)) // prod(map(factorial, counts))


@given(st.integers(2, 400), st.integers(1, 200), KINDS, st.integers(0, 999))
def test_columns_of_chance_do_not_warn(n, d, kind, seed):
    rng = np.random.default_rng(seed)
    y = drawn(rng, kind, n)
    columns = [y == value for value in np.unique(y)[:5]] if kind in ("few", "counts") else []
    columns += [drawn(rng, kind, n) for _ in range(d)]
    copied = n_orders(y) > 2**64 and any(np.array_equal(column, y) for column in columns)
    assert bool(columns_told(np.column_stack(columns), y)) == copied


@given(st.integers(2, 400), st.integers(1, 30), KINDS, st.integers(0, 999))
def test_copies_warn_by_name_or_by_many_rows(n, d, kind, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d + 1))
    place = int(rng.integers(d + 1))
    X[:, place] = y = drawn(rng, kind, n).astype(float)
    names = tuple(f"x{k}" for k in range(d + 1))
    series = pd.Series(y, name=names[place])
    (text,) = columns_told(X, series, names)
    assert text.startswith(f"the column 'x{place}' of X is the target y")
    assert bool(columns_told(X, y)) == (kind != "constant" and n_orders(y) > 2**64)
    other = y.copy()
    other[-1] += 1
    assert not columns_told(X, pd.Series(other, name=names[place]), names)


@pytest.mark.parametrize("first", [[], ["wet"], ["dry", "hot"]], ids=str)
@pytest.mark.parametrize("kind", [list, tuple, np.array], ids=["list", "tuple", "array"])
def test_columns_of_structures_are_no_values(first, kind):
    X = np.random.default_rng(0).normal(size=(60, 3))
    tags = [kind(first), *(kind(["wet"] if x > 0 else ["dry", "hot"]) for x in X[1:, 0])]
    model = OutputKernelForestRegressor("label_set", n_estimators=2, random_state=0)
    expected = model.fit(X, tags).predict(X)
    assert model.fit(X, pd.Series(tags)).predict(X) == expected
