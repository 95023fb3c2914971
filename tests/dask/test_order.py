"""An index in another order is told, as in a fit in one process."""

import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import PLAIN

pytest.importorskip("distributed")

import dask
import dask.dataframe as dd
from distributed import Client, LocalCluster

import hilboost.dask
from hilboost import BoostingRegressor
from hilboost.core.errors import DataWarning
from hilboost.dask.partitions import other_orders, partitions_of, warn_of_orders

pytestmark = pytest.mark.filterwarnings("default")  # those of dask and its dependencies

N = 600
MODEL = BoostingRegressor(**PLAIN | {"n_estimators": 2, "learner": "tree"})
RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(N, 2)), columns=["a", "b"])
Y, WEIGHT = X["a"] * X["b"], pd.Series(RNG.uniform(1, 2, N))


@pytest.fixture(scope="module")
def client():
    with (
        LocalCluster(n_workers=2, processes=False, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        yield client


def parts(table, n=3):
    return [dask.delayed(table[k * N // n : (k + 1) * N // n]) for k in range(n)]


def told(fit, by="in a different order"):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        fit()
    texts = [str(one.message) for one in found if issubclass(one.category, DataWarning)]
    return [text for text in texts if by in text]


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("y", {"y": Y[::-1]}),
        ("sample_weight", {"sample_weight": WEIGHT.sample(frac=1, random_state=0)}),
        ("offset", {"offset": WEIGHT.sort_values()}),
        ("y_val", {"X_val": X, "y_val": Y[::-1]}),
        ("sample_weight_val", {"X_val": X, "y_val": Y, "sample_weight_val": WEIGHT[::-1]}),
    ],
)
def test_another_order_is_told_once(name, given, client):
    given = {"X": X, "y": Y} | given
    found = {field: parts(table) for field, table in given.items()}
    if "offset" in given:
        found |= {"X_val": parts(X), "y_val": parts(Y), "offset_val": parts(WEIGHT)}
    (text,) = told(lambda: hilboost.dask.fit(MODEL, client=client, **found))
    of = "X_val" if name.endswith("_val") else "X"
    assert text.startswith(f"{name} has the index of {of} in a different order")


def test_dask_frames_in_another_order(client):
    mixed = Y.sample(frac=1, random_state=1)
    frames = [dd.from_pandas(table, npartitions=3, sort=False) for table in (X, mixed)]
    assert len(told(lambda: hilboost.dask.fit(MODEL, *frames, client=client))) == 1
    same = [dd.from_pandas(table, npartitions=3) for table in (X, Y)]
    assert told(lambda: hilboost.dask.fit(MODEL, *same, client=client)) == []


def test_other_rows_are_told(client):
    first, second = (X.assign(y=Y).sample(frac=1, random_state=k)[:450] for k in range(2))
    given = {"X": parts(first[["a", "b"]]), "y": parts(second["y"])}
    (text,) = told(lambda: hilboost.dask.fit(MODEL, client=client, **given))
    assert text.startswith("y has a part of the index of X in a different order")
    ahead = {"X": parts(X[:-3]), "y": parts(Y[3:])}
    assert told(lambda: hilboost.dask.fit(MODEL, client=client, **ahead)) == []


def test_rows_without_common_labels_are_told(client):
    labels = RNG.permutation(2 * N)
    first, second = (X.assign(y=Y).set_axis(some) for some in (labels[:N], labels[N:]))
    for y, n_told in ((second["y"], 1), (first["y"], 0), (second["y"].reset_index(drop=True), 0)):
        given = {"X": parts(first[["a", "b"]]), "y": parts(y)}
        fit = partial(hilboost.dask.fit, MODEL, client=client, **given)
        assert len(told(fit, "y has almost no label of the index of X")) == n_told


@pytest.mark.slow
@given(st.integers(2, 60), st.integers(1, 5), st.integers(0, 9), st.booleans())
def test_orders_of_partitions(n, n_parts, seed, text):
    rng = np.random.default_rng(seed)
    index = np.array([f"row {k}" for k in range(n)]) if text else np.arange(n)
    frame, order = pd.DataFrame({"a": np.arange(n)}, index=index), rng.permutation(n)
    ends = np.sort(rng.integers(0, n + 1, n_parts - 1))
    cuts = list(zip([0, *ends], [*ends, n], strict=True))
    for y, is_told in (
        (frame["a"].iloc[order], (order != np.arange(n)).any()),
        (frame["a"].set_axis([f"other {k}" for k in range(n)]), False),
        (frame["a"].to_numpy()[order], False),
    ):
        divided = [[dask.delayed(table[a:b]) for a, b in cuts] for table in (frame, y)]
        made = dask.compute(*partitions_of("", X=divided[0], y=divided[1]))
        found = [other_orders(one) for one in made]
        assert bool(told(lambda found=found: warn_of_orders(found, ""))) == is_told
