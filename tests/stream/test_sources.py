"""Sources of streams: the columns of ``pandas.read_parquet``, or one sentence."""

from contextlib import suppress

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from tests.cases import PLAIN
from tests.workers.together import saved

import hilboost.stream
from hilboost import BoostingClassifier, BoostingRegressor
from hilboost.core.errors import DataWarning, HilboostError, InvalidData

MODEL = BoostingRegressor(**PLAIN | {"n_estimators": 3, "random_state": 0, "learner": "tree"})


def frame_of(n=240, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(np.round(rng.normal(size=(n, 2)), 2), columns=["a", "b"])
    return frame.assign(y=frame["a"] * frame["b"])


def in_memory(path):
    frame = pd.read_parquet(path)
    return saved(clone(MODEL).fit(frame.drop(columns="y"), frame["y"]))


def streamed(source):
    return saved(hilboost.stream.fit(clone(MODEL), source, target="y"))


@pytest.mark.parametrize("levels", [[None], ["id"], ["id", None]])
def test_an_index_is_no_feature(levels, tmp_path):
    frame, path = frame_of(), tmp_path / "table.parquet"
    values = [np.random.default_rng(k).permutation(len(frame)) for k in range(len(levels))]
    frame.set_index(pd.MultiIndex.from_arrays(values, names=levels)).to_parquet(path)
    expected = in_memory(path)
    table = pq.read_table(path)
    assert any("__index" in name or name == "id" for name in table.column_names)
    (batch,) = table.to_batches()
    for source in (path, table, ds.dataset(path), batch, iter([batch])):
        assert streamed(source) == expected
    positional = hilboost.stream.fit(clone(MODEL), path, "y")
    assert saved(positional) == expected


def test_an_index_in_some_files_only(tmp_path):
    frame = frame_of()
    frame[:100].to_parquet(tmp_path / "0.parquet")
    frame[100:].set_index(np.arange(140)[::-1]).to_parquet(tmp_path / "1.parquet")
    assert streamed(tmp_path) == saved(clone(MODEL).fit(frame[["a", "b"]], frame["y"]))


def test_folders_are_columns(tmp_path):
    frame = frame_of()
    frame["city"] = np.where(frame["a"] > 0, "Ghent", "Mons")
    frame["year"] = 2020 + np.arange(len(frame)) % 3
    frame["y"] += (frame["city"] == "Mons") + frame["year"] % 2
    frame.to_parquet(tmp_path / "table", partition_cols=["city", "year"])
    assert streamed(tmp_path / "table") == in_memory(tmp_path / "table")
    by_town = hilboost.stream.fit(
        BoostingClassifier(**PLAIN | {"n_estimators": 3}), tmp_path / "table", target="city"
    )
    assert by_town.classes_.tolist() == ["Ghent", "Mons"]
    # Folders around a file are no columns.
    file = next((tmp_path / "table").rglob("*.parquet"))
    assert streamed(file) == in_memory(file)


def test_a_column_that_some_files_lack_is_told(tmp_path):
    frame = frame_of().assign(c=lambda frame: frame["a"] + 1)
    frame[:80].drop(columns="c").to_parquet(tmp_path / "0.parquet")
    frame[80:160].to_parquet(tmp_path / "1.parquet")
    frame[160:].drop(columns="b").to_parquet(tmp_path / "2.parquet")
    with pytest.warns(DataWarning, match=r"columns 'b', 'c' are missing .* '.*2\.parquet'"):
        found = streamed(tmp_path)
    frame.loc[:79, "c"] = np.nan
    frame.loc[160:, "b"] = np.nan
    assert found == saved(clone(MODEL).fit(frame[["a", "b", "c"]], frame["y"]))


KINDS = ["int8", "int64", "float32", "float64"]


@given(st.lists(st.sampled_from(KINDS), min_size=2, max_size=4), st.integers(0, 99))
def test_files_of_different_numbers(tmp_path_factory, kinds, seed):
    folder, rng = tmp_path_factory.mktemp("table"), np.random.default_rng(seed)
    frames = []
    for k, kind in enumerate(kinds):
        frame = frame_of(60, seed + k)
        frame["b"] = rng.integers(0, 9, len(frame)) + 0.5 * ("float" in kind)
        frames.append(frame.astype({"b": kind}))
        frames[-1].to_parquet(folder / f"{k}.parquet")
    table = pd.concat(frames, ignore_index=True)
    assert streamed(folder) == saved(clone(MODEL).fit(table[["a", "b"]], table["y"]))


@given(st.lists(st.booleans(), min_size=2, max_size=4), st.integers(0, 99))
def test_files_of_text_and_of_categories(tmp_path_factory, are_coded, seed):
    folder, rng = tmp_path_factory.mktemp("table"), np.random.default_rng(seed)
    frames = []
    for k, is_coded in enumerate(are_coded):
        frame = frame_of(60, seed + k).assign(b=rng.choice(["x", "y", f"z{k}"], 60))
        frame.loc[:k, "b"] = None
        frames.append(frame)
        frame.astype({"b": "category" if is_coded else "str"}).to_parquet(folder / f"{k}.parquet")
    table = pd.concat(frames, ignore_index=True).astype({"b": "category"})
    expected = saved(clone(MODEL).fit(table[["a", "b"]], table["y"]))
    assert streamed(folder) == expected
    expected = hilboost.stream.fit(clone(MODEL), folder, "y").predict(table[["a", "b"]])
    for listed in (["b"], []):
        by_list = BoostingRegressor(**MODEL.get_params() | {"categorical_features": listed})
        by_list = hilboost.stream.fit(by_list, folder, "y")
        np.testing.assert_array_equal(by_list.predict(table[["a", "b"]]), expected)


# Damaged input: one sentence


def damaged_text():
    offsets = pa.array([0, 1, 3], pa.int32()).buffers()[1]
    return pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"a\xff\xfe")])


def two_files(folder, first, second):
    folder.mkdir()
    pq.write_table(pa.table({"a": first, "y": [1.0, 2.0]}), folder / "0.parquet")
    pq.write_table(pa.table({"a": second, "y": [1.0, 2.0]}), folder / "1.parquet")
    return folder


def truncated(path, kept):
    content = path.read_bytes()
    cut = path.with_name("cut.parquet")
    cut.write_bytes(content[: int(len(content) * kept)])
    return cut


def overwritten(path):
    content = bytearray(path.read_bytes())
    content[200 : len(content) // 2] = bytes(len(content) // 2 - 200)
    path.write_bytes(content)
    return path


def read_me(path):
    (path.parent / "README.md").write_text("These are houses.")
    return path.parent


def csv(path):
    frame_of().to_csv(path.parent / "table.csv")
    return path.parent / "table.csv"


def folder(path):
    (path.parent / "empty").mkdir()
    return path.parent / "empty"


def repeated(path):
    table = pq.read_table(path)
    pq.write_table(table.append_column("a", table["a"]), path)
    return path


DAMAGED = {
    "csv": (csv, r"table\.csv' is a CSV file; pass its batches, as by pyarrow.dataset.dataset"),
    "truncated": (lambda path: truncated(path, 0.7), r"cut\.parquet' cannot be read as Parquet"),
    "cut at the start": (lambda path: truncated(path, 0), r"\(Parquet file size is 0 bytes\)"),
    "overwritten": (overwritten, "cannot be read"),
    "read me": (read_me, r"README\.md' cannot be read as Parquet .* or remove it\.$"),
    "empty folder": (folder, "has no Parquet files; add some"),
    "repeated": (repeated, "more than one column named 'a'; rename"),
    "repeated in a table": (
        lambda _: pa.table([[1.0, 2.0]] * 3, names=["a", "y", "a"]),
        "the table has more than one column named 'a'",
    ),
    "text and numbers": (
        lambda path: two_files(path.parent / "two", ["p", "q"], [1, 2]),
        r"1\.parquet' does not fit .* incompatible types: string vs int64\)",
    ),
    "large integers and floats": (
        lambda path: two_files(path.parent / "two", [1, 2**60 + 1], [0.5, 2.0]),
        "the table cannot be read .Integer value 1152921504606846977 not in range",
    ),
    "not UTF-8": (
        lambda _: pa.table({"a": damaged_text(), "y": [1.0, 2.0]}),
        "column 'a' contains text that is not UTF-8",
    ),
    "target not UTF-8": (
        lambda _: pa.table({"a": [1.0, 2.0], "y": damaged_text()}),
        "column 'y' cannot be read .*Invalid UTF8 sequence",
    ),
    "batches of different columns": (
        lambda path: iter([frame_batch("a"), frame_batch("a"), frame_batch("b")]),
        "batch 2 has other columns or types than the first",
    ),
    "something in between": (
        lambda path: iter([frame_batch("a"), 3]),
        "must yield pyarrow.RecordBatch objects, not int; convert data frames",
    ),
}


def frame_batch(name):
    return pa.record_batch({name: [1.0, 2.0], "y": [1.0, 2.0]})


@pytest.mark.parametrize("kind", DAMAGED)
def test_damaged_input_is_told_in_one_sentence(kind, tmp_path):
    damage, message = DAMAGED[kind]
    path = tmp_path / "table" / "x.parquet"
    path.parent.mkdir()
    frame_of().to_parquet(path)
    with pytest.raises(HilboostError, match=message) as caught:
        hilboost.stream.fit(clone(MODEL), damage(path), target="y", folder=tmp_path)
    assert "\n" not in str(caught.value)
    assert [one.name for one in tmp_path.iterdir()] == ["table"]


@given(st.data())
def test_files_with_changed_bytes(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("table") / "x.parquet"
    frame_of().assign(d="p").to_parquet(path)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(len(content) // 2, len(content)))])
    with suppress(HilboostError):
        hilboost.stream.fit(clone(MODEL), path, target="y")


def test_damaged_text_in_memory():
    table = pa.table({"a": damaged_text(), "b": [1.0, 2.0]})
    with pytest.raises(InvalidData, match="column 'a' contains text that is not UTF-8"):
        clone(MODEL).fit(table, [1.0, 2.0])


@pytest.mark.parametrize("name", ["nowhere", "file"])
def test_a_folder_that_is_none(name, tmp_path):
    (tmp_path / "file").write_text("")
    table = pa.Table.from_pandas(frame_of())
    with pytest.raises(HilboostError, match=rf"folder=.*{name}.* create it, or choose"):
        hilboost.stream.fit(clone(MODEL), table, target="y", folder=tmp_path / name)
