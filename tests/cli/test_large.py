"""``hilboost fit --stream`` and ``--dask``: the trees of the ordinary command."""

import io
import json

import numpy as np
import pandas as pd
import pytest
from tests.cli.commands import passed, run
from tests.workers.together import saved

import hilboost


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(400, 3)), columns=list("abc"))
    frame["k"] = rng.choice(["x", "y", "z"], 400)
    frame["w"] = rng.integers(1, 3, 400)
    frame["y"] = frame["a"] + (frame["k"] == "x") + 0.1 * rng.normal(size=400)
    frame.to_parquet(tmp_path / "table.parquet")
    return tmp_path / "table.parquet"


def fitted(table, *options):
    out = table.parent / "one.model"
    given = ["--target", "y", "--out", str(out), "--n-estimators", "5"]
    given += ["--set", "learner=tree", *options]
    done = passed("fit", table, *given, "--json", catch_exceptions=False)
    told = json.loads(done.stdout.strip().splitlines()[-1])
    return (told["rows"], told["columns"]), saved(hilboost.load(out))


def test_stream(table):
    options = ["--weights", "w", "--ignore", "c", "--set", "min_samples_leaf=3", "--offset", "b"]
    assert fitted(table, *options, "--stream") == fitted(table, *options)


def test_stream_with_a_time_budget(table):
    fitted(table, "--stream", "--time-budget", "600")
    assert hilboost.load(table.parent / "one.model").time_budget == 600


@pytest.mark.parametrize("as_text", [False, True])
def test_dates_are_ignored(table, as_text):
    rows, days = pd.read_parquet(table), pd.Series(pd.date_range("2024-01-01", periods=400))
    expected = fitted(table, "--stream")
    days = days.dt.strftime("%Y-%m-%d") if as_text else days
    rows.assign(day=days).to_parquet(table)
    assert fitted(table, "--stream") == expected == fitted(table)
    rows[["y"]].assign(day=days).to_parquet(table)
    given = ["--target", "y", "--out", str(table.parent / "one.model"), "--stream"]
    done = run("fit", table, *given)
    assert done.exit_code == 1
    assert "ignoring 'day', which contains dates" in done.output
    assert "replace them by columns of numbers in the table" in done.output
    assert "--dates" not in done.output  # which such a fit refuses


@pytest.mark.filterwarnings("default")
def test_dask(table):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, processes=False, dashboard_address=":0") as cluster:
        address = cluster.scheduler_address
        options = ["--ignore", "w", "--offset", "b"]
        assert fitted(table, "--dask", address, *options) == fitted(table, *options)


@pytest.fixture
def folder(table):
    """The table in files whose columns have various types and orders."""
    rows = pd.read_parquet(table).assign(number=np.arange(400), more="x")
    parts = table.parent / "parts"
    parts.mkdir()
    rows.to_parquet(table)
    rows[:150].to_parquet(parts / "0.parquet")
    rows[150:151].astype({"w": float}).to_parquet(parts / "1.parquet")
    rows[151:].iloc[:, ::-1].astype({"k": "category"}).to_parquet(parts / "2.parquet")
    return parts


def predicted(model, table, *options):
    done = passed("predict", model, table, *options)
    return done.stdout, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("where", ["--stream", "--valid"])
def test_a_folder_is_predicted_as_one_table(table, folder, where):
    fit = ["--stream"] if where == "--stream" else ["--weights", "w"]
    of_folder = fitted(folder, "--ignore", "number", "--ignore", "more", *fit)
    assert of_folder == fitted(table, "--ignore", "number", "--ignore", "more", *fit)
    model = table.parent / "one.model"
    for options in (["--keep", "number"], ["--keep", "k", "--keep", "w"], []):
        whole, notes = predicted(model, table, *options)
        assert whole.count("\n") == 401
        if "w" not in options:
            assert predicted(model, folder, *options) == (whole, notes)
        for suffix in ("csv", "csv.gz", "parquet"):
            out = table.parent / f"out.{suffix}"
            predicted(model, folder, *options, "--out", str(out))
            read = pd.read_parquet if suffix == "parquet" else pd.read_csv
            expected = pd.read_csv(io.StringIO(whole))
            pd.testing.assert_frame_equal(read(out), expected, check_dtype=False, rtol=0, atol=0)
    scored = [run("evaluate", model, path, "--target", "y").stdout for path in (table, folder)]
    assert "rmse" in scored[0]
    assert scored[0] == scored[1]


@pytest.mark.slow
def test_a_large_file_is_predicted_in_parts(table):
    fitted(table, "--stream")
    rng = np.random.default_rng(1)
    rows = pd.DataFrame(rng.normal(size=(70_000, 3)), columns=list("abc"))
    rows = rows.assign(k=np.where(np.arange(70_000) < 69_999, "new", "x"), w=1)
    rows.to_parquet(table)
    model = table.parent / "one.model"
    told, notes = predicted(model, table, "--no-spreadsheet-safe")
    expected = hilboost.load(model).predict(rows)
    assert (pd.read_csv(io.StringIO(told))["prediction"] == expected).all()
    assert not notes  # one row has a known category
    rows[:-1].to_parquet(table)
    assert predicted(model, table)[1].count("no value of column 'k' occurred in fit") == 1
    rows.loc[69_000, "a"] = 1e400
    rows.astype({"a": str}).to_parquet(table)
    assert run("predict", model, table, "--out", f"{table}.csv").exit_code == 1
    assert not table.with_suffix(".parquet.csv").exists()


def test_an_error_names_the_row_of_the_whole_table(table):
    fitted(table, "--stream", "--offset", "b")
    rows = pd.concat([pd.read_parquet(table)] * 200, ignore_index=True)
    rows.loc[70_001, "b"] = np.nan
    rows.to_parquet(table)
    given = [str(table.parent / "one.model"), str(table), "--offset", "b"]
    assert "--offset must be finite; data row 70002 has nan" in run("predict", *given).stderr


@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_a_folder_without_rows(table, folder, command):
    fitted(table, "--stream")
    for path in folder.iterdir():
        pd.read_parquet(path)[:0].to_parquet(path)
    done = run(command, table.parent / "one.model", folder)
    assert done.exit_code == 1
    assert f"'{folder}' has no rows" in " ".join(done.stderr.split())
