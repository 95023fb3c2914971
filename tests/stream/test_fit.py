"""Fits to tables on disk: the bytes of the table in memory."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone
from tests.cases import PLAIN
from tests.workers.together import saved

import hilboost.stream
from hilboost import (
    BoostingClassifier,
    BoostingRegressor,
    KernelBoostingRegressor,
    OutputKernelBoostingRegressor,
)
from hilboost.callbacks import Checkpoint
from hilboost.core.errors import HilboostError
from hilboost.stream import source
from hilboost.tables.files import FileTable
from hilboost.tables.schema import Schema

N = 2000


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(N, 3)), 2)
    X[rng.uniform(size=X.shape) < 0.05] = np.nan
    frame = pd.DataFrame(X, columns=list("abc")).assign(d=rng.choice(["p", "q", None], N))
    frame["w"] = rng.integers(0, 3, N).astype(float)
    frame["y"] = np.nan_to_num(frame["a"]) * (frame["d"] == "p") + rng.normal(size=N)
    return frame


REGRESSOR = BoostingRegressor(**dict(PLAIN, learner="tree", n_estimators=6, random_state=0))
FITS = [
    REGRESSOR,
    clone(REGRESSOR).set_params(early_stopping=True, cv_folds=1, max_features="auto"),
    clone(REGRESSOR).set_params(early_stopping=True, cv_folds=2, subsample=0.5),
    clone(REGRESSOR).set_params(loss="huber", max_bins=20),
    clone(REGRESSOR).set_params(growth="symmetric", max_features=0.7),
    clone(REGRESSOR).set_params(
        target_encoding=True, early_stopping=True, cv_folds=2, eval_metric="mae"
    ),
]


def test_bins_from_a_sample_of_the_rows_of_several_batches():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=201_000), "b": rng.integers(9, size=201_000)})
    y = frame["a"] * frame["b"] + rng.normal(size=201_000)
    model = clone(REGRESSOR).set_params(n_estimators=2)
    found = hilboost.stream.fit(clone(model), pa.Table.from_pandas(frame.assign(y=y)), target="y")
    assert saved(found) == saved(model.fit(frame, y))


@pytest.mark.parametrize("model", FITS)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_parquet_file_saves_the_bytes_of_the_table_in_memory(model, weighted, frame, tmp_path):
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "table.parquet", row_group_size=450)
    weight = frame["w"] if weighted else None
    if not weighted:
        frame = frame.drop(columns="w")
        pq.write_table(pa.Table.from_pandas(frame), tmp_path / "table.parquet", row_group_size=450)
    inputs = frame.drop(columns=["y", "w"], errors="ignore")
    alone = clone(model).fit(inputs, frame["y"], weight)
    found = hilboost.stream.fit(
        clone(model),
        tmp_path / "table.parquet",
        target="y",
        sample_weight="w" if weighted else None,
        folder=tmp_path,
    )
    assert saved(found) == saved(alone)
    assert [path.name for path in tmp_path.iterdir()] == ["table.parquet"]


@pytest.mark.parametrize("folds", [1, 3])
@pytest.mark.parametrize("name", ["groups", "time"])
def test_rows_are_held_out_by_a_column(name, folds, frame):
    """It is no input; groups are text, and times are dates."""
    days = np.arange(N) // 50
    frame["by"] = (
        [f"shop {day % 7}" for day in days]
        if name == "groups"
        else np.datetime64("2026-01-01", "us") + days
    )
    model = clone(REGRESSOR).set_params(early_stopping=True, cv_folds=folds)
    inputs = frame.drop(columns=["y", "w", "by"])
    alone = clone(model).fit(inputs, frame["y"], **{name: frame["by"]})
    table = pa.Table.from_pandas(frame.drop(columns="w"))
    found = hilboost.stream.fit(clone(model), table, target="y", **{name: "by"})
    assert saved(found) == saved(alone)
    assert found.fitted_.held_out_by == alone.fitted_.held_out_by
    assert list(alone.fitted_.held_out_by) == [name]
    with pytest.raises(HilboostError, match=f"{name} must be the name of a column of the table"):
        hilboost.stream.fit(clone(model), table, target="y", **{name: frame["by"]})
    with pytest.raises(HilboostError, match="the table has no column 'b y'"):
        hilboost.stream.fit(clone(model), table, target="y", **{name: "b y"})


def test_bounds_and_several_targets_are_those_of_a_data_frame(frame):
    y = frame["y"][:300]
    frame = frame[:300].assign(lower=np.minimum(y, 1), upper=np.where(y > 1, np.inf, y))
    names = ["lower", "upper"]
    for loss, upper in (("normal", np.inf), ("normal", np.nan), ("squared_error", 9.0)):
        model = clone(REGRESSOR).set_params(loss=loss, n_estimators=2)
        table = frame.drop(columns=["w", "y"]).assign(upper=frame["upper"].replace(np.inf, upper))
        alone = clone(model).fit(table.drop(columns=names), table[names])
        found = hilboost.stream.fit(clone(model), pa.Table.from_pandas(table), names)
        assert saved(found) == saved(alone)
        assert found.predict(table.drop(columns=names)).ndim == (1 if loss == "normal" else 2)
    wrong = pa.Table.from_pandas(table.assign(lower=10.0))
    with pytest.raises(HilboostError, match="row 0 of y .* the lower bound is above the upper"):
        hilboost.stream.fit(clone(REGRESSOR).set_params(loss="normal"), wrong, names)


def test_folders_batches_and_classes(frame, tmp_path):
    frame = frame.drop(columns="w").astype({"a": "float32", "b": "float32", "c": "float32"})
    frame["y"] = np.where(frame["y"] > 0, "up", "down")
    model = BoostingClassifier(**PLAIN | {"n_estimators": 4, "random_state": 0})
    alone = saved(clone(model).fit(frame.drop(columns="y"), frame["y"]))
    table = pa.Table.from_pandas(frame, preserve_index=False)
    for k in range(3):
        part = table.slice(k * 700, 700)
        pq.write_table(part, tmp_path / f"part_{k}.parquet")
    batches = (batch for batch in table.to_batches(max_chunksize=333))
    for given in (str(tmp_path), table, batches):
        assert saved(hilboost.stream.fit(clone(model), given, target="y")) == alone


@pytest.mark.parametrize("target_encoding", [True, False])
def test_more_levels_than_bins(target_encoding, frame):
    rng = np.random.default_rng(3)
    frame["d"] = [f"level {k}" for k in rng.integers(0, 1500, len(frame))]  # some of weight zero
    model = clone(REGRESSOR).set_params(
        target_encoding=target_encoding, early_stopping=True, cv_folds=1
    )
    alone = clone(model).fit(frame.drop(columns=["y", "w"]), frame["y"], frame["w"])
    table = pa.Table.from_pandas(frame)
    found = hilboost.stream.fit(model, table, target="y", sample_weight="w")
    assert saved(found) == saved(alone)


def test_text_is_encoded_once(frame, tmp_path):
    read = []

    def reader(columns):
        read.extend(columns)
        yield from (table.select(columns).slice(k, 700) for k in range(0, N, 700))

    table = pa.Table.from_pandas(frame[["a", "d"]])
    schema = Schema(2, ("a", "d"), ((1, ("p", "q", "r")),))
    codes = FileTable(reader, schema, N, tmp_path).with_stored_codes()[np.arange(0, N, 3)]
    assert read == ["d"]
    expected = frame["d"].map({"p": 0.0, "q": 1.0})[::3]
    np.testing.assert_array_equal(codes.array(), np.column_stack([frame["a"][::3], expected]))
    fewer = codes.with_schema(replace(schema, levels=((1, ("q",)),)))
    np.testing.assert_array_equal(fewer.column(1), expected - 1)
    assert read == ["d", "a", "d", "a"]


def test_a_checkpoint_is_resumed(frame, tmp_path):
    table, path = pa.Table.from_pandas(frame), tmp_path / "fit"

    def end(event):
        return event.stage == 3

    hilboost.stream.fit(clone(REGRESSOR), table, target="y", callbacks=[Checkpoint(path), end])
    seen = []
    given = {"target": "y", "callbacks": [Checkpoint(path), seen.append]}
    found = hilboost.stream.fit(clone(REGRESSOR), table, **given)
    assert [event.stage for event in seen] == [4, 5, 6]
    assert saved(found) == saved(clone(REGRESSOR).fit(frame.drop(columns="y"), frame["y"]))


def test_several_targets(frame):
    table = frame[["a", "b", "y", "w"]].fillna(0.0)
    alone = clone(REGRESSOR).fit(table[["a", "b"]], table[["y", "w"]])
    found = hilboost.stream.fit(clone(REGRESSOR), pa.Table.from_pandas(table), target=["y", "w"])
    assert saved(found) == saved(alone)


def test_offsets(frame):
    rows, model = slice(0, 200), clone(REGRESSOR).set_params(early_stopping=True, cv_folds=1)
    inputs, offset = frame[["a", "b", "c"]], frame["w"]
    held = {"X_val": inputs[rows] + 1e-9, "y_val": frame["y"][rows], "offset_val": offset[rows]}
    alone = clone(model).fit(inputs, frame["y"], offset=offset, **held)
    table = pa.Table.from_pandas(frame[["a", "b", "c", "w", "y"]])
    found = hilboost.stream.fit(model, table, target="y", offset="w", **held)
    assert saved(found) == saved(alone)


def test_refusals(frame, tmp_path):
    table = pa.Table.from_pandas(frame)
    for model, given, target, message in [
        (KernelBoostingRegressor(), table, "y", "only supported by BoostingRegressor"),
        (OutputKernelBoostingRegressor(), table, "y", "only supported by BoostingRegressor"),
        (
            BoostingRegressor(learner="linear"),
            table,
            "y",
            "learner='linear' is not supported by tables",
        ),
        (BoostingRegressor(n_shards=2), table, "y", "n_shards=2 is not supported"),
        (BoostingRegressor(warm_start=True), table, "y", "warm_start=True is not supported"),
        (
            BoostingRegressor(validation="groups"),
            table,
            "y",
            "validation='groups' requires the groups of the rows; pass groups=... to fit",
        ),
        (REGRESSOR, table, "Y", "the table has no column 'Y'; write 'y': names must match"),
        (REGRESSOR, table.select(["y"]), "y", "no column besides the target"),
        (REGRESSOR, tmp_path / "none.parquet", "y", "does not exist"),
        (REGRESSOR, 3, "y", "must be a Parquet file"),
        (REGRESSOR, iter([3]), "y", "must yield pyarrow.RecordBatch"),
        (REGRESSOR, table.slice(0, 0), "y", "has no rows"),
        (REGRESSOR, frame, "y", r"is a DataFrame, .* pass pyarrow\.Table\.from_pandas\(frame\)"),
        (REGRESSOR, table, frame["y"], 'not Series of shape .*, and pass target="NAME"'),
        (REGRESSOR, table, 3, "target must be the name of a column of the table, not 3; write"),
    ]:
        with pytest.raises(HilboostError, match=message):
            hilboost.stream.fit(clone(model), given, target=target)
    on_disk = source.table_of(source.dataset_of(table, tmp_path), ["y"], None, N, tmp_path)
    with pytest.raises(HilboostError, match="only supported in new fits of trees"):
        clone(REGRESSOR).fit(frame[["a", "b"]], frame["y"]).predict(on_disk)


def test_ignored_columns_are_names_of_the_table(frame):
    table = pa.Table.from_pandas(frame)
    for ignore in ("b", ["b"]):
        model = hilboost.stream.fit(clone(REGRESSOR), table, "y", ignore=ignore)
        assert "b" not in model.feature_names_in_
    for ignore in ("ab", ["ab"]):
        with pytest.raises(HilboostError, match="the table has no column 'ab'; "):
            hilboost.stream.fit(clone(REGRESSOR), table, "y", ignore=ignore)
    with pytest.raises(HilboostError, match="ignore must be the name of a column .*, not 3"):
        hilboost.stream.fit(clone(REGRESSOR), table, "y", ignore=3)


def test_several_files_are_a_dataset(tmp_path):
    for given in ([tmp_path / "a.parquet"], tmp_path / "*.parquet"):
        with pytest.raises(HilboostError, match=r"pyarrow\.dataset\.dataset\(\[\.\.\.\]\)") as told:
            hilboost.stream.fit(clone(REGRESSOR), given, "y")
    assert (
        "*.parquet does not exist (patterns are not expanded); pass a Parquet file or a folder"
        in (str(told.value))
    )


def test_a_name_is_no_model(frame):
    with pytest.raises(HilboostError, match=r"must be an estimator, .* got 'tree'\.$"):
        hilboost.stream.fit("tree", frame, target="y")


def test_the_automatic_learner_means_trees(frame):
    table = frame[["a", "b", "y"]]
    found = hilboost.stream.fit(
        clone(REGRESSOR).set_params(learner="auto"), pa.Table.from_pandas(table), target="y"
    )
    alone = clone(REGRESSOR).fit(table[["a", "b"]], table["y"])
    assert found.get_params()["learner"] == "auto"
    np.testing.assert_array_equal(
        found.predict(table[["a", "b"]]), alone.predict(table[["a", "b"]])
    )
    saved(found)
