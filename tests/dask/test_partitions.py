"""Partitions of the inputs and the targets are the same, whatever Dask does with its graphs."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("distributed")
pytest.importorskip("pyarrow")

import dask
import dask.dataframe as dd

from hilboost import BoostingRegressor
from hilboost.dask import predict
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

    parts = dask.compute(*partitions_of("", X=inputs, y=y, weight=None))
    assert [part.number for part in parts] == list(range(6))
    for k, part in enumerate(parts):
        rows = frame[40 * k : 40 * (k + 1)]
        np.testing.assert_array_equal(part.X, rows.drop(columns="y"))
        np.testing.assert_array_equal(part.y, rows["y"])

    model = BoostingRegressor(n_estimators=2, learner="tree")
    found = predict(model.fit(frame[["x0"]], frame[["y", "x1"]].to_numpy()), table[["x0"]])
    assert found.numblocks == (6, 1)
    np.testing.assert_array_equal(found.compute(), model.predict(frame[["x0"]]))
