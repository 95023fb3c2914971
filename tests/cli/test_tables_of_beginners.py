"""Tables as beginners have them: other separators and formats, numbers that came as text."""

import gzip
import os
import threading

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import hilboost
from hilboost.cli.app import app
from hilboost.core.errors import InvalidData
from hilboost.persistence.atomic import atomic_path

N = 80


@pytest.fixture
def frame(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.integers(1, 60, N), "town": rng.choice(["Ghent", "Mons"], N)})
    frame["price"] = 100.0 * frame["size"] + rng.normal(size=N)
    frame.to_csv("good.csv", index=False)
    return frame


def run(*arguments, **options):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], **options)


def fit(table, *options, out="model"):
    return run("fit", table, "--target", "price", "--out", out, "--n-estimators", 3, *options)


def notes(result):
    assert result.exit_code == 0, result.output
    return [line for line in result.stderr.splitlines() if not line.startswith("note: regression")]


@pytest.mark.parametrize(("mark", "named"), [(";", "';'"), ("\t", "tabs"), ("|", "'|'")])
def test_other_separators_are_named(frame, mark, named):
    frame.to_csv("other.csv", index=False, sep=mark)
    assert fit("good.csv").exit_code == 0
    for result in fit("other.csv", out="none"), run("predict", "model", "other.csv"):
        assert result.exit_code == 1
        assert f"error: The fields of 'other.csv' are separated by {named}" in result.stderr


@pytest.mark.parametrize(
    ("start", "what"),
    [
        (b"PK\x03\x04", "an Excel workbook"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1", "an Excel workbook"),
        (b"PAR1", "a Parquet file"),
        ("price,size".encode("utf-16"), "UTF-16 text"),
    ],
)
def test_other_formats_are_named(frame, tmp_path, start, what):
    (tmp_path / "other.csv").write_bytes(start + bytes(100))
    result = fit("other.csv")
    assert result.exit_code == 1
    assert f"error: 'other.csv' is {what}" in result.stderr


def test_compressed_tables_are_known_by_their_first_bytes(frame, tmp_path):
    assert fit("good.csv").exit_code == 0
    packed = gzip.compress((tmp_path / "good.csv").read_bytes())
    (tmp_path / "packed.csv").write_bytes(packed)
    expected = run("predict", "model", "good.csv").stdout
    assert run("predict", "model", "packed.csv").stdout == expected
    assert run("predict", "model", "-", input=packed).stdout == expected


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes on this system")
def test_a_pipe_is_read_once(frame, tmp_path):
    assert fit("good.csv").exit_code == 0
    expected = run("predict", "model", "good.csv").stdout
    content = (tmp_path / "good.csv").read_bytes()
    os.mkfifo("pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(content,), daemon=True)
    writer.start()
    assert run("predict", "model", "pipe").stdout == expected
    writer.join(timeout=10)


def test_numbers_that_came_as_text_are_told(frame):
    frame["size"] = frame["size"].astype(object)
    frame.loc[4, "size"] = "forty"
    frame.to_csv("train.csv", index=False)
    (told,) = notes(fit("train.csv"))
    assert "column 'size' is treated as categorical because 1 of its 80 values" in told
    assert "'forty' in data row 5" in told


def test_decimal_commas_are_told(frame):
    frame["size"] = [f"{value},{k % 10}" for k, value in enumerate(frame["size"])]
    frame.to_csv("train.csv", index=False)
    (told,) = notes(fit("train.csv"))
    assert "column 'size' is treated as categorical because its numbers contain commas" in told
    assert f"'{frame['size'][0]}' in data row 1" in told


def test_nothing_is_told_of_other_columns(frame):
    frame["code"] = np.where(frame.index % 8 == 0, "12", frame["town"])
    frame["open"] = np.where(frame.index % 3 == 0, "true", "false")
    frame.loc[::7, ["code", "open"]] = None
    frame.to_csv("train.csv", index=False)
    assert notes(fit("train.csv")) == []


def test_warnings_about_the_data_are_notes(frame):
    frame["id"] = [f"h{number}" for number in range(N)]
    frame.to_csv("train.csv", index=False)
    (told,) = notes(fit("train.csv"))
    assert told.startswith("note: column 'id' is text with a different value in each of 80 rows.")


def test_the_text_that_is_no_number_is_shown(frame):
    assert fit("good.csv").exit_code == 0
    frame["size"] = frame["size"].astype(object)
    frame.loc[4, "size"] = "forty"
    frame.to_csv("new.csv", index=False)
    result = run("predict", "model", "new.csv")
    assert result.exit_code == 1
    assert "Column 'size' contained numbers" in result.stderr
    assert "'forty' in data row 5" in result.stderr
    X = frame[["size", "town"]].astype({"size": str})
    with pytest.raises(InvalidData, match="'forty' in row 4"):
        hilboost.load("model").predict(X)


def test_columns_without_any_known_level_are_told(frame):
    assert fit("good.csv").exit_code == 0
    frame["town"] = np.arange(N)
    frame.to_csv("new.csv", index=False)
    result = run("predict", "model", "new.csv")
    assert result.exit_code == 0
    assert "no value of column 'town' occurred in fit" in result.stderr
    assert "now contains '0'" in result.stderr


def test_the_same_command_gives_the_same_model(frame):
    found = []
    for options in [], [], ["--set", "random_state=1"]:
        assert fit("good.csv", "--set", "subsample=0.5", *options).exit_code == 0
        found.append(run("predict", "model", "good.csv").stdout)
    assert found[0] == found[1] != found[2]


def test_one_round_is_no_plural(frame):
    assert "Fitted 1 round on 80 rows" in fit("good.csv", "--n-estimators", 1).stdout


def test_a_failed_write_names_the_file(tmp_path):
    with pytest.raises(OSError, match="No space left") as caught, atomic_path(tmp_path / "m"):
        raise OSError(28, "No space left on device")
    assert caught.value.filename == str(tmp_path / "m")
    assert list(tmp_path.iterdir()) == []
