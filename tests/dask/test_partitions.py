"""Partitions of the inputs and the targets are the same, whatever Dask does with its graphs."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("distributed")
pytest.importorskip("pyarrow")

import dask
import dask.array as da
import dask.dataframe as dd
from distributed import Client, LocalCluster

from hilboost import BoostingRegressor
from hilboost.core.errors import DataWarning
from hilboost.dask import fit, predict
from hilboost.dask.partitions import partitions_of

pytestmark = pytest.mark.filterwarnings("default")  # those of dask and its dependencies


def test_a_folder_of_parquet_files_of_which_the_target_is_one_column(tmp_path):
    X = np.random.default_rng(0).normal(size=(240, 8))
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(8)]).assign(y=X[:, 0])
    for k in range(6):
        frame[40 * k : 40 * (k + 1)].to_parquet(tmp_path / f"{k}.parquet")
    table = dd.read_parquet(tmp_path)
    inputs, y = table.drop(columns="y"), table["y"]
    assert len(y.to_delayed()) < y.npartitions  # as Dask would join them

    parts = dask.compute(*partitions_of("", X=inputs, y=y, sample_weight=None))
    assert [part.number for part in parts] == list(range(6))
    for k, part in enumerate(parts):
        rows = frame[40 * k : 40 * (k + 1)]
        np.testing.assert_array_equal(part.X, rows.drop(columns="y"))
        np.testing.assert_array_equal(part.y, rows["y"])

    model = BoostingRegressor(n_estimators=2, learner="tree")
    found = predict(model.fit(frame[["x0"]], frame[["y", "x1"]].to_numpy()), table[["x0"]])
    assert found.numblocks == (6, 1)
    np.testing.assert_array_equal(found.compute(), model.predict(frame[["x0"]]))


def test_models_with_the_same_parameters_predict_differently():
    """Dask names predictions by the model, and computes those of one name once."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    models = [
        BoostingRegressor(n_estimators=2, learner="tree").fit(X, k * X[:, 0]) for k in (1, -1)
    ]
    blocks = da.from_array(X, chunks=(30, 2))
    found = dask.compute(*(predict(model, blocks) for model in models))
    np.testing.assert_array_equal(found, [model.predict(X) for model in models])


def test_numbers_that_are_text_are_told_in_the_process_of_the_user():
    frame = pd.DataFrame({"a": [f"{k}.5" for k in range(60)]})
    frame.loc[47, "a"] = "none"
    y, model = pd.Series(np.arange(60.0)), BoostingRegressor(n_estimators=2, learner="tree")
    parts = [[dask.delayed(table[:40]), dask.delayed(table[40:])] for table in (frame, y)]
    options = {"processes": False, "dashboard_address": ":0"}
    told = r"1 of its 60 values \('none' in row 7 of partition 1\)"
    with (
        LocalCluster(n_workers=2, **options) as cluster,
        Client(cluster) as client,
        pytest.warns(DataWarning, match=told),
    ):
        fit(model, *parts, client=client)
