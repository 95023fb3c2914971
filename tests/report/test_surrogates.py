"""Text that is not valid Unicode, which arrays of objects may hold and files may not."""

import json

import numpy as np
import pandas as pd
import pytest
from tests.cli.commands import run

import hilboost

ODD = np.array(["a\ud800", "b", "c"] * 20, dtype=object)
X = np.column_stack([ODD, np.arange(60.0).astype(object)])
Y = np.where(ODD == "b", 1.0, 3.0)


@pytest.fixture(scope="module")
def levels():
    return hilboost.BoostingRegressor(early_stopping=False, n_estimators=3).fit(X, Y)


@pytest.fixture(scope="module")
def classes():
    return hilboost.BoostingClassifier(early_stopping=False, n_estimators=3).fit(Y[:, None], ODD)


def test_pages_show_the_code(levels, classes, tmp_path):
    for model, table, y in ((levels, X, Y), (classes, Y[:, None], ODD)):
        report = model.report(table, y, tmp_path / "page.html")
        assert (tmp_path / "page.html").read_text(encoding="utf-8") == report.html
        assert "a\\ud800" in report.html


def test_files_keep_it(levels, tmp_path):
    levels.save(tmp_path / "model")
    found = hilboost.load(tmp_path / "model")
    np.testing.assert_array_equal(found.predict(X), levels.predict(X))


def test_commands(levels, classes, tmp_path):
    path, table = tmp_path / "model", tmp_path / "table.csv"
    levels.save(path)
    assert "a\\ud800" in run("inspect", path).stdout
    facts = json.loads(run("inspect", path, "--json").stdout)
    assert facts["columns"][0]["levels"] == ["a\ud800", "b", "c"]
    classes.save(path)
    pd.DataFrame({"x": Y}).to_csv(table, index=False)
    result = run("predict", path, table, "--out", tmp_path / "out.csv")
    assert result.exit_code == 1
    assert result.stderr.endswith(
        "error: A predicted class contains '\\ud800', which is not valid Unicode text; rename "
        "the class and fit again.\n"
    )
    assert not (tmp_path / "out.csv").exists()
