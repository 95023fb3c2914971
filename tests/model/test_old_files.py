"""Files that former versions wrote are read, and predict what they predicted."""

import json
from pathlib import Path

import numpy as np
import pytest

import hilboost

GOLDEN = Path(__file__).parent / "golden"
X = np.sin(np.outer(np.arange(1, 21), [1.0, 2.3, 0.7]))
CODES = np.column_stack([X[:, 0], np.rint(X[:, 1]), X[:, 2].round(1)])  # format 2 has categories
EXPECTED = {
    f"{name}_format_{number}": expected
    for number in (1, 2)
    for name, expected in json.loads((GOLDEN / f"others_format_{number}.json").read_text()).items()
}
TEXTS = ("hierarchy", "label_sets", "strings")
TRUSTED = [f"tests.model.own_parts:{name}" for name in ("Slopes", "Weighted", "Outer.Slope")]


def plain(model, X=X):
    """Predictions of a model, as JSON has them."""
    found = model.predict(X)
    if isinstance(found, list):
        found = [sorted(map(str, y)) if isinstance(y, set) else y for y in found]
    else:
        found = found.tolist()
    return {"labels": found, "raw": model.predict_raw(X).tolist()}


@pytest.mark.parametrize("name", EXPECTED)
def test_old_files_are_read(name):
    kind, number = name.split("_format_")
    trusted = TRUSTED if kind == "own_parts" else []
    path = GOLDEN / f"{name}.hilboost"
    assert path.stat().st_size < 50_000
    found = plain(hilboost.load(path, trusted), X if number == "1" else CODES)
    np.testing.assert_allclose(found["raw"], EXPECTED[name]["raw"], rtol=1e-9, atol=1e-12)
    labels = EXPECTED[name]["labels"]
    if kind in TEXTS:
        assert found["labels"] == labels
    else:
        np.testing.assert_allclose(found["labels"], labels, rtol=1e-6, atol=1e-9)


def test_all_old_files_are_tested():
    names = {path.stem for path in GOLDEN.glob("*.hilboost")}
    elsewhere = {"trees_format_1", "kernels_format_1", "calibrated_format_1"}
    assert names == EXPECTED.keys() | elsewhere


def test_old_files_are_saved_again(tmp_path):
    old = hilboost.load(GOLDEN / "trees_format_1.hilboost")
    old.save(tmp_path / "again.hilboost")
    rows = np.random.default_rng(0).normal(size=(20, old.n_features_in_))
    again = hilboost.load(tmp_path / "again.hilboost")
    np.testing.assert_array_equal(again.predict(rows), old.predict(rows))
