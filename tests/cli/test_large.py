"""``hilboost fit --stream`` and ``--dask``: the trees of the ordinary command."""

import json

import numpy as np
import pandas as pd
import pytest
from tests.workers.together import saved
from typer.testing import CliRunner

import hilboost
from hilboost.cli.app import app

RUN = CliRunner()


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
    done = RUN.invoke(app, ["fit", str(table), *given, "--json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
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
    done = RUN.invoke(app, ["fit", str(table), *given])
    assert done.exit_code == 1
    assert "No columns are left, because 'day' contains dates" in done.output
    assert "replace them by columns of numbers in the table" in done.output
    assert "--dates" not in done.output  # which such a fit refuses


@pytest.mark.filterwarnings("default")
def test_dask(table):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, processes=False, dashboard_address=":0") as cluster:
        address = cluster.scheduler_address
        options = ["--ignore", "w", "--offset", "b"]
        assert fitted(table, "--dask", address, *options) == fitted(table, *options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--stream", "--dask", "tcp://x:1"], "exclude each other"),
        (["--stream", "--family", "kernel"], "--family kernel is not supported"),
        (["--dask", "tcp://x:1", "--time-budget", "3"], "--time-budget is not supported"),
        (["--stream", "--group", "k"], "--group is not supported"),
        (["--dask", "tcp://x:1", "--event", "k"], "--event is not supported"),
        (["--stream", "--drop-missing-target"], "--drop-missing-target is not supported"),
        (["--stream", "--dates", "expand"], "--dates expand is not supported"),
        (["--stream", "--missing", "unknown"], "--missing is not supported with --stream"),
        (["--stream", "--thousands", ","], "--thousands is not supported with --stream"),
        (["--dask", "tcp://x:1", "--coerce"], "--coerce is not supported with --dask"),
    ],
)
def test_refusals(table, options, message):
    given = ["--target", "y", "--out", str(table.parent / "one.model"), *options]
    done = RUN.invoke(app, ["fit", str(table), *given])
    assert done.exit_code != 0
    assert message in done.output


def test_only_parquet_tables_without_empty_targets(table):
    rows = pd.read_parquet(table)
    rows.to_csv(table.with_suffix(".csv"))
    out = ["--target", "y", "--out", str(table.parent / "one.model"), "--stream"]
    done = RUN.invoke(app, ["fit", str(table.with_suffix(".csv")), *out])
    assert "requires a Parquet file" in done.output
    rows.loc[7, "y"] = np.nan
    rows.to_parquet(table)
    done = RUN.invoke(app, ["fit", str(table), *out])
    assert "is empty in data row 8" in done.output


@pytest.mark.parametrize("option", [["--stream"], ["--dask", "tcp://x:1"]])
def test_a_csv_file_names_the_remedy(table, option):
    path = table.with_suffix(".csv")
    pd.read_parquet(table).to_csv(path, index=False)
    given = ["--target", "y", "--out", str(table.parent / "one.model"), *option]
    done = RUN.invoke(app, ["fit", str(path), *given])
    assert done.exit_code == 1
    text = " ".join(done.output.split())
    assert "is neither: write it as Parquet, as with pandas.read_csv and to_parquet, or" in text
    assert f"remove {option[0]}." in text
