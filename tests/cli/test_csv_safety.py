"""CSV that harms nobody: NUL bytes coming in, formulas going out; streams that are not there."""

import bz2
import gzip
import io
import lzma
import os
import subprocess
import sys
import threading
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.commands import passed, run

import hilboost
from hilboost.cli.errors import CliError
from hilboost.cli.files import STDIN, without_formulas
from hilboost.cli.tables import read_table, write_tables

FORMULAS = [
    "=1+1",
    "+A1",
    "-A1",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\n=1",
    "=cmd|' /C calc'!A0",
    "-",
    "--1",
]
HARMLESS = ["a=1", "", " b", "'=1", "-1", "+2.5", "-1e-3", "-.5", "+7."]


@pytest.mark.parametrize("text", FORMULAS)
def test_formulas_get_an_apostrophe(text):
    frame, n_changed = without_formulas(pd.DataFrame({"prediction": ["a", text]}))
    assert frame["prediction"].tolist() == ["a", f"'{text}"]
    assert n_changed == 1


@pytest.mark.parametrize("text", HARMLESS)
def test_other_text_stays(text):
    frame, n_changed = without_formulas(pd.DataFrame({"prediction": [text]}))
    assert (frame["prediction"].tolist(), n_changed) == ([text], 0)


def test_numbers_stay_numbers(capsys):
    values = [-1.5, 2.0, -np.inf, np.nan]
    table = pd.DataFrame({"a": values, "b": [-1, 2, 3, -4], "c": [True, False, True, True]})
    frame, n_changed = without_formulas(table)
    pd.testing.assert_frame_equal(frame, table)
    assert n_changed == 0
    write_tables([table], None)
    assert capsys.readouterr().out == table.to_csv(index=False, lineterminator="\n")


@given(st.lists(st.text("=+-@\t\r\nab1.'", max_size=5), min_size=1))
def test_nothing_that_is_written_is_a_formula(texts):
    frame, _ = without_formulas(pd.DataFrame({"prediction": texts}))
    for before, after in zip(texts, frame["prediction"], strict=True):
        assert after in (before, f"'{before}")
        if after.startswith(("=", "+", "-", "@", "\t", "\r", "\n")):
            float(after)


@pytest.fixture
def model(folder):
    frame = pd.DataFrame({"x": np.arange(60.0), "kind": np.where(np.arange(60) < 30, "=1+1", "b")})
    frame.to_csv("train.csv", index=False)
    passed("fit", "train.csv", "--target", "kind", "--out", "model", "--n-estimators", 3)
    return "model"


def test_predictions_of_dangerous_labels(model):
    result = run("predict", model, "train.csv", "--out", "safe.csv")
    assert "note: added an apostrophe to 30 cells that look like a formula" in result.stderr
    assert set(pd.read_csv("safe.csv")["prediction"]) == {"'=1+1", "b"}
    result = run("predict", model, "train.csv", "--no-spreadsheet-safe")
    assert "formula" not in result.stderr
    assert set(pd.read_csv(io.StringIO(result.stdout))["prediction"]) == {"=1+1", "b"}


CSV = b"x,y\n1,2\n3,4\n"
DAMAGED = b"x,y\n1,2\n3\0,4\n5,6\n"
PACKERS = {"csv": bytes, "csv.gz": gzip.compress, "csv.bz2": bz2.compress, "csv.xz": lzma.compress}


@pytest.mark.parametrize("kind", PACKERS)
def test_nul_bytes_are_refused(kind, folder):
    path = Path(f"table.{kind}")
    path.write_bytes(PACKERS[kind](CSV))
    assert read_table(path).to_numpy().tolist() == [[1, 2], [3, 4]]
    path.write_bytes(PACKERS[kind](DAMAGED))
    with pytest.raises(CliError, match=rf"'table.{kind}' contains a NUL byte in line 3, "):
        read_table(path)


def test_nul_bytes_far_down_and_in_the_header(folder):
    path = Path("table.csv")
    path.write_bytes(b"x,y\n" + b"1,2\n" * 400_000 + b"3,\0\n")
    with pytest.raises(CliError, match="NUL byte in line 400002"):
        read_table(path)
    path.write_bytes(b"x\0,y\n1,2\n")
    with pytest.raises(CliError, match="NUL byte in line 1"):
        read_table(path)


def test_nul_bytes_on_standard_input(model):
    result = run("predict", model, "-", input=b"x\n1\n2\0\n")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: '-' contains a NUL byte in line 3")


@pytest.mark.parametrize("stdin", [None, "closed"])
def test_no_standard_input(stdin, monkeypatch):
    if stdin is not None:
        stdin = io.TextIOWrapper(io.BytesIO())
        stdin.close()
    monkeypatch.setattr(sys, "stdin", stdin)
    with pytest.raises(CliError, match="There is no standard input to read; use the path"):
        read_table(STDIN)


def test_no_standard_output():
    message = "There is no standard output to write to; specify a file"
    with redirect_stdout(None), pytest.raises(CliError, match=message):
        write_tables([pd.DataFrame({"a": [1]})], None)


@pytest.mark.slow
def test_closed_standard_input_of_a_shell(model):
    command = f"exec {sys.executable} -m hilboost predict {model} - <&-"
    environment = {**os.environ, "PYTHONPATH": str(Path(hilboost.__file__).parent.parent)}
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, env=environment)
    assert done.returncode == 1
    assert done.stderr == "error: There is no standard input to read; use the path of a file.\n"


def test_predictions_into_a_pipe_with_a_name(model):
    os.mkfifo("pipe")
    found = []
    reader = threading.Thread(target=lambda: found.append(Path("pipe").read_text()), daemon=True)
    reader.start()
    result = run("predict", model, "train.csv", "--out", "pipe")
    reader.join(20)
    assert result.exit_code == 0, result.output
    assert found[0].count("\n") == 61
